"""Policies: how an arm is chosen, and how a play begins.

Importing them takes no NumPy, which a service that plays one may do without; what needs it is
imported when it is used (`gittins`, `optimum`, the plans for evaluation).
"""

from ..play.players import load_player
from . import classic, modern  # noqa: F401  (they fill the catalogue)
from .base import (
    ByCounts,
    ChoicePolicy,
    IndexPolicy,
    Kernel,
    KernelPolicy,
    Plan,
    Policy,
    Progress,
)
from .catalogue import CATALOGUE, Entry, Parameter, policy, register
from .file import load
from .start import Start

__all__ = [
    "CATALOGUE",
    "ByCounts",
    "ChoicePolicy",
    "Entry",
    "IndexPolicy",
    "Kernel",
    "KernelPolicy",
    "Parameter",
    "Plan",
    "Policy",
    "Progress",
    "Start",
    "load",
    "load_player",
    "policy",
    "register",
]
