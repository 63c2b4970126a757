"""The experiments of Maes, Wehenkel and Ernst (2012), reproduced with metabandit into records and a report.

`paper.py` has the published figures and `plan.py` every step of the work, as data. `run.py` does the
steps (`work.py` and `screening.py` say how) and keeps their records; `findings.py`,
`tables.py`, `costs.py` and `figures.py` read records only, and `report.py` puts them in order.
"""

from ..records import Records
from .plan import PARTS, SCALES
from .run import default_folder, reproduce

__all__ = ["PARTS", "SCALES", "Records", "default_folder", "reproduce"]
