"""Three ways to find the best of many classes: exactly, by halving, and as the paper does."""

from .base import Strategy
from .exact import ExactSearch
from .halving import Halving
from .ucb1_tuned import Ucb1Tuned

STRATEGIES: dict[str, type[Strategy]] = {
    item.name: item for item in (ExactSearch, Halving, Ucb1Tuned)
}

__all__ = ["STRATEGIES", "ExactSearch", "Halving", "Strategy", "Ucb1Tuned"]
