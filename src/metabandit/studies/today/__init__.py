"""Policies of today on the problems that they were published with, beside learned policies and the floor.

`plan.py` has the settings and every step of the work, as data; `work.py` says how they are done;
`report.py` reads records only.
"""

from .plan import SCALES, steps

__all__ = ["SCALES", "steps"]
