"""The experiments of Maes, Wehenkel and Ernst (2012), reproduced with metabandit into records and a report.

`paper.py` has the published figures and `plan.py` every step of the work, as data. `work.py` says how steps
are done; `findings.py`, `tables.py` and `figures.py` read records only, and `report.py` puts them in order.
"""

from .plan import PARTS, SCALES, steps
from .report import published_formulas, read_report
from .work import KINDS, SHARED

__all__ = ["KINDS", "PARTS", "SCALES", "SHARED", "published_formulas", "read_report", "steps"]
