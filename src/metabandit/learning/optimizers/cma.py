"""CMA-ES, from the `cmaes` package: one Gaussian whose covariance follows the function's shape.

With noise, the population is twice as large, so that the mean of its better half says more. Without noise, a search that stands still begins again with twice the population (IPOP-CMA-ES, Auger and
Hansen 2005). With noise, the package's adaptation of the learning rate (Nomura, Akimoto and Ono 2023)
can be switched on: `cma:adapt=1`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ...errors import InputError
from ...priors.families import Array
from .base import Optimizer, check_count, register_optimizer, without_infinities

# A search stands still if its best value has improved by less than this share in many generations.
_STILL = 1e-6
_FAR = 1e20
_LARGEST = 10_000


@register_optimizer
class Cma(Optimizer):
    """Covariance matrix adaptation."""

    name: ClassVar[str] = "cma"
    meaning: ClassVar[str] = "CMA-ES: a Gaussian with a covariance that adapts"
    settings: ClassVar[Mapping[str, float | None]] = {
        "population": None,
        "deviation": None,
        "adapt": 0.0,
    }

    def begin(self) -> None:
        size, deviation, adapt = (self.chosen[key] for key in ("population", "deviation", "adapt"))
        self.population = 4 + math.floor(3 * math.log(len(self.initial)))
        self.population *= 2 if self.noisy else 1
        if size is not None:
            self.population = check_count(size, "population of cma", 4)
        if deviation is not None:
            self.deviation = deviation
        if not 0.0 < self.deviation <= 1e6:
            raise InputError(
                f"deviation of cma must be greater than 0 and at most 1e6, not {self.deviation:g}"
            )
        self.adapt = bool(check_count(adapt or 0.0, "adapt of cma", 0, 1))
        self.starts = 0
        self._start()

    def _start(self) -> None:
        from cmaes import CMA  # takes a second to load

        self.search = CMA(
            mean=self.initial.copy(),
            sigma=self.deviation,
            seed=(self.seed + self.starts) % 2**32,
            population_size=min(self.population * 2**self.starts, _LARGEST),
            lr_adapt=self.adapt,
        )
        self.starts += 1
        self.best: list[float] = []

    def ask(self) -> Array:
        if self._stands_still:
            self._start()
        return np.array([self.search.ask() for _ in range(self.search.population_size)])

    def tell(self, candidates: Array, values: Array) -> None:
        finite = without_infinities(values)
        # The package sorts the list that it is given, and refuses numbers beyond 1e32.
        self.search.tell(list(zip(candidates, np.clip(finite, -1e30, 1e30).tolist(), strict=True)))
        self.best.append(min(float(finite.min()), self.best[-1] if self.best else math.inf))

    @property
    def _stands_still(self) -> bool:
        if self.noisy:
            return False
        patience = 20 + math.ceil(30 * len(self.initial) / self.search.population_size)
        # Not the package's own rule: it takes an index that grows, which changes nothing, for failure.
        if np.abs(self.center).max() > _FAR:
            return True
        if len(self.best) <= patience:
            return False
        gain = self.best[-patience - 1] - self.best[-1]
        return bool(gain <= _STILL * abs(self.best[-1]))

    @property
    def center(self) -> Array:
        return np.asarray(self.search.mean)
