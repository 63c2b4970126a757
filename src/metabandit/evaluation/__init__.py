"""Evaluation: what a policy's regret is on problems drawn from a prior."""

from .compare import METHODS, default_checkpoints, evaluate, recount
from .results import Comparison, Difference, Evaluation, IndexFault

__all__ = [
    "METHODS",
    "Comparison",
    "Difference",
    "Evaluation",
    "IndexFault",
    "default_checkpoints",
    "evaluate",
    "recount",
]
