"""The paper's optimiser (its Algorithm 2): independent Gaussians, fitted to the best candidates.

Each parameter has its own Gaussian. A generation draws n_p = max(8 d, 40) candidates from them;
the best b = n_p / 4 give the new means (the average) and variances (the average squared distance from
the new mean, divided by b). It begins with variance 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ...errors import InputError
from ...priors.families import Array
from .base import Optimizer, Task, check_count, register_optimizer


@register_optimizer
class Eda(Optimizer):
    """The univariate marginal distribution algorithm with Gaussians."""

    name: ClassVar[str] = "eda"
    meaning: ClassVar[str] = "independent Gaussians, fitted to the best quarter (the paper's)"
    settings: ClassVar[Mapping[str, float | None]] = {"population": None, "best": None}

    def __init__(self, task: Task, settings: Mapping[str, float]) -> None:
        super().__init__(task, settings)
        size, best = self.chosen["population"], self.chosen["best"]
        self.population = max(8 * len(task.center), 40)
        if size is not None:
            self.population = check_count(size, "population of eda", 2)
        self.best = max(self.population // 4, 1)
        if best is not None:
            self.best = check_count(best, "best of eda", 1)
        if self.best >= self.population:
            raise InputError(
                f"best of {self.name} must be less than its population ({self.population}), "
                f"not {self.best}"
            )
        self.rng = np.random.default_rng(task.seed)
        self.mean = task.center.copy()
        self.variance = np.full(len(task.center), task.deviation**2)

    def ask(self) -> Array:
        noise = self.rng.standard_normal((self.population, len(self.mean)))
        return np.asarray(self.mean + np.sqrt(self.variance) * noise)

    def tell(self, candidates: Array, values: Array) -> None:
        best = candidates[np.argsort(values, kind="stable")[: self.best]]
        self.mean = best.mean(axis=0)
        self.variance = ((best - self.mean) ** 2).mean(axis=0)

    @property
    def center(self) -> Array:
        return self.mean
