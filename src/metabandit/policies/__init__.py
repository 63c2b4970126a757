"""Policies: how an arm is chosen, and how a play begins."""

from . import classic, gittins, modern  # noqa: F401  (they fill the catalogue)
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
from .optimum import OptimalPolicy, Optimum, optimal
from .registry import CATALOGUE, Entry, Parameter, policy, register
from .start import Start

__all__ = [
    "CATALOGUE",
    "ByCounts",
    "ChoicePolicy",
    "Entry",
    "IndexPolicy",
    "Kernel",
    "KernelPolicy",
    "OptimalPolicy",
    "Optimum",
    "Parameter",
    "Plan",
    "Policy",
    "Progress",
    "Start",
    "optimal",
    "policy",
    "register",
]
