"""Evaluation: what a policy's regret is on problems drawn from a prior."""

from .compare import METHODS, default_checkpoints, evaluate, recount
from .results import Comparison, Difference, Evaluation

__all__ = [
    "METHODS",
    "Comparison",
    "Difference",
    "Evaluation",
    "default_checkpoints",
    "evaluate",
    "recount",
]
