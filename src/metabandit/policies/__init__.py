"""Policies: the catalogue, how play begins, and policies as files.

Importing them takes no NumPy, which a service that plays one may do without; what needs it is
imported when it is used.
"""

from ..progress import Progress
from . import entries  # noqa: F401  (it fills the catalogue)
from .base import ChoicePolicy, IndexPolicy, Plan, Policy, Setting
from .catalogue import (
    CATALOGUE,
    DecidedPolicy,
    Entry,
    Parameter,
    policy,
    read_policies,
    register,
    with_own_names,
)
from .file import load
from .solved import ConstrainedPolicy, OptimalPolicy
from .start import Start

__all__ = [
    "CATALOGUE",
    "ChoicePolicy",
    "ConstrainedPolicy",
    "DecidedPolicy",
    "Entry",
    "IndexPolicy",
    "OptimalPolicy",
    "Parameter",
    "Plan",
    "Policy",
    "Progress",
    "Setting",
    "Start",
    "load",
    "policy",
    "read_policies",
    "register",
    "with_own_names",
]
