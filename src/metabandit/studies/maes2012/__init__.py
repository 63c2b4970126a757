"""The experiments of Maes, Wehenkel and Ernst (2012), reproduced with metabandit into records and a report.

`paper.py` has the published figures and `plan.py` every step of the work, as data. `work.py` and `screening.py`
say how steps are done; `findings.py`,
`tables.py`, `costs.py` and `figures.py` read records only, and `report.py` puts them in order.
"""

from .plan import PARTS, SCALES, steps

__all__ = ["PARTS", "SCALES", "steps"]
