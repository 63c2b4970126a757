"""Evaluation: what a policy's regret is on problems drawn from a prior."""

from .evaluation import Comparison, Difference, Evaluation
from .montecarlo import IndexFault, Progress, default_checkpoints, evaluate, is_compiled

__all__ = [
    "Comparison",
    "Difference",
    "Evaluation",
    "IndexFault",
    "Progress",
    "default_checkpoints",
    "evaluate",
    "is_compiled",
]
