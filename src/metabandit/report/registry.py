"""What studies add to reports: the report of their own records, and formulas that they published.

A study is a module with two functions. It is imported when one of them is needed.

    read_report(path)             the report of the records in a file
    published_formulas(learned)   what to call its formulas for such problems (`learned`, of a policy
                                  file), and each as a dict with formula, length and regret
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES: dict[str, str] = {}


def register_study(kind: str, module: str) -> None:
    """Let a module make the reports of records whose first line has this `format`."""
    _MODULES[kind] = module


def study_of(header: Any) -> Any:
    """The study whose records begin with this value, or None."""
    module = _MODULES.get(str(header.get("format"))) if isinstance(header, dict) else None
    return None if module is None else import_module(module)


def published_formulas(learned: Any) -> dict[str, list[dict[str, Any]]]:
    """Formulas that studies published for such problems, by what to call them."""
    return dict(import_module(name).published_formulas(learned) for name in _MODULES.values())
