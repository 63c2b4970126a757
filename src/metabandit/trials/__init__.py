"""Trials: the operating characteristics of response-adaptive designs, exactly (docs/trials.md)."""

from .final import FinalStates, final_states
from .measures import Characteristics
from .result import Trial
from .trial import operating_characteristics, power_of

__all__ = [
    "Characteristics",
    "FinalStates",
    "Trial",
    "final_states",
    "operating_characteristics",
    "power_of",
]
