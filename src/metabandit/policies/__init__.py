"""Policies: how an arm is chosen, and how a play begins."""

from . import classic, modern  # noqa: F401  (they fill the catalogue)
from .base import ChoicePolicy, IndexPolicy, Kernel, KernelPolicy, Plan, Policy
from .registry import CATALOGUE, Entry, Parameter, policy, register
from .start import Start

__all__ = [
    "CATALOGUE",
    "ChoicePolicy",
    "Entry",
    "IndexPolicy",
    "Kernel",
    "KernelPolicy",
    "Parameter",
    "Plan",
    "Policy",
    "Start",
    "policy",
    "register",
]
