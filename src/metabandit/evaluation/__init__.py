"""Evaluation: what a policy's regret is on problems drawn from a prior."""

from .montecarlo import IndexFault, Progress, default_checkpoints, evaluate
from .results import Comparison, Difference, Evaluation

__all__ = [
    "Comparison",
    "Difference",
    "Evaluation",
    "IndexFault",
    "Progress",
    "default_checkpoints",
    "evaluate",
]
