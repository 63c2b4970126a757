"""Reports: records become tables, pictures and one page. Nothing here computes a result."""

from .build import load_report, write_report
from .runs import register_study

__all__ = ["load_report", "register_study", "write_report"]
