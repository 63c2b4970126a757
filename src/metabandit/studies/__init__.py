"""Published experiments, each a package that uses metabandit as any other study would.

A study registers here what it adds to reports (`metabandit.report.registry`).
"""

from ..report import register_study

register_study("metabandit reproduction", "metabandit.studies.maes2012.report")
register_study("metabandit study today", "metabandit.studies.today.report")
