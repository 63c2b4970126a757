"""Reports: records become tables, pictures and one page. Nothing here computes a result."""

from .build import load_report, write_report

__all__ = ["load_report", "write_report"]
