"""Evaluation: what a policy's regret is on problems drawn from a prior."""

from .evaluation import METHODS, default_checkpoints, evaluate, recount
from .external import Contestant, Episode, evaluate_external
from .results import Comparison, Difference, Evaluation

__all__ = [
    "METHODS",
    "Comparison",
    "Contestant",
    "Difference",
    "Episode",
    "Evaluation",
    "default_checkpoints",
    "evaluate",
    "evaluate_external",
    "recount",
]
