"""The paper's optimiser: estimation of distribution with independent Gaussians (its Algorithm 2).

It minimises Delta(theta), the mean regret of the policy with parameters theta (Eq. 7). Parameter p has a
Gaussian of its own, N(mu_p, sigma_p^2), which begins with variance 1. Every generation

    draws n_p candidates,                       theta_p ~ N(mu_p, sigma_p^2)
    keeps the b with the lowest Delta,          theta^(1), ..., theta^(b)
    and fits new Gaussians to them,             mu_p = 1/b sum over j of  theta^(j)_p
                                                sigma_p^2 = 1/b sum over j of  (theta^(j)_p - mu_p)^2

Section 6.1 sets n_p = max(8 d, 40) for d parameters, and b = n_p / 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ...errors import InputError
from ...priors.families import Array
from .base import Optimizer, check_count, register_optimizer


@register_optimizer
class Eda(Optimizer):
    """The univariate marginal distribution algorithm with Gaussians."""

    name: ClassVar[str] = "eda"
    meaning: ClassVar[str] = "independent Gaussians, fitted to the best quarter (the paper's)"
    settings: ClassVar[Mapping[str, float | None]] = {"population": None, "best": None}

    def begin(self) -> None:
        size, best = self.chosen["population"], self.chosen["best"]
        self.population = max(8 * len(self.initial), 40)  # Section 6.1: n_p
        if size is not None:
            self.population = check_count(size, "population of eda", 2)
        self.best = max(self.population // 4, 1)  # Section 6.1: b
        if best is not None:
            self.best = check_count(best, "best of eda", 1)
        if self.best >= self.population:
            raise InputError(
                f"best of {self.name} must be less than its population ({self.population}), "
                f"not {self.best}"
            )
        self.rng = np.random.default_rng(self.seed)
        self.mean = self.initial.copy()  # Algorithm 2, line 1
        self.variance = np.full(len(self.initial), self.deviation**2)

    def ask(self) -> Array:
        noise = self.rng.standard_normal((self.population, len(self.mean)))
        return np.asarray(self.mean + np.sqrt(self.variance) * noise)  # lines 3 to 6

    def tell(self, candidates: Array, values: Array) -> None:
        best = candidates[np.argsort(values, kind="stable")[: self.best]]  # line 9
        self.mean = best.mean(axis=0)  # line 10
        self.variance = ((best - self.mean) ** 2).mean(axis=0)  # line 11

    @property
    def center(self) -> Array:
        return self.mean
