"""Published experiments, each a module that uses metabandit as any other study would.

A study has

    PARTS, SCALES             what can be reproduced, and the budgets by name
    steps(part, scale, seed)  the experiments as data, in the order in which they are done
    KINDS                     how each kind of step is done: kind(runner, step, progress) returns its
                              result, as JSON has it
    SHARED                    kinds of steps that are never handed out whole to other processes
    read_report(path)         the report of its records, and maybe published_formulas(learned): see
                              `metabandit.report.runs`, where studies are registered
"""

from ..report import register_study
from .records import FORMATS

for _study, _format in FORMATS.items():
    register_study(_format, f"{__name__}.{_study}")
