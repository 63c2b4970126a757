"""Published experiments, each a package that uses metabandit as any other study would.

A study registers here what it adds to reports (`metabandit.report.runs`).
"""

from ..report import register_study
from .records import FORMATS

for _study, _format in FORMATS.items():
    register_study(_format, f"{__name__}.{_study}.report")
