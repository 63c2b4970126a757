"""Policies of today on the problems that they were published with, beside learned policies and the floor.

`plan.py` has the settings and every step of the work, as data; `run.py` does the steps (`work.py` says how) and
keeps their records; `report.py` reads records only.
"""

from .plan import SCALES
from .run import TodayRecords, default_folder, reproduce

__all__ = ["SCALES", "TodayRecords", "default_folder", "reproduce"]
