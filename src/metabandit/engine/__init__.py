"""The engine: the regret of policies on a task, exactly or by simulation, here or elsewhere."""

from .evaluation import evaluate, recount
from .external import Contestant, Episode, evaluate_external
from .results import Comparison, Difference, Evaluation
from .task import METHODS, default_checkpoints

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
