"""Formulas: all small ones, in classes that rank arms alike, and the search for the best."""

from .classes import Classes
from .enumeration import kept_classes, make_classes
from .grammar import Grammar
from .partition import classify, sharpen
from .result import Found, RankedFormula, Refined
from .sample import Sample, every_state, general_sample, reachable_sample
from .searcher import AUTO, search, state_path
from .strategies import STRATEGIES

__all__ = [
    "AUTO",
    "STRATEGIES",
    "Classes",
    "Found",
    "Grammar",
    "RankedFormula",
    "Refined",
    "Sample",
    "classify",
    "every_state",
    "general_sample",
    "kept_classes",
    "make_classes",
    "reachable_sample",
    "search",
    "sharpen",
    "state_path",
]
