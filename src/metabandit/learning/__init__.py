"""Learning: the best policy of a space for a prior."""

from ..engine.objectives import Objective
from .learner import PROTOCOLS, Learned, learn
from .optimizers import OPTIMIZERS, Optimizer, register_optimizer
from .search import Generation

__all__ = [
    "OPTIMIZERS",
    "PROTOCOLS",
    "Generation",
    "Learned",
    "Objective",
    "Optimizer",
    "learn",
    "register_optimizer",
]
