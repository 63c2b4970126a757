"""How likely a history is under a prior, and what it says of the prior's parameters.

An arm's true mean is never seen: it is integrated out. With n plays of an arm in a test, s their
reward sum, and means of mean m and standard deviation d,

    counts    P(s) = C(n, s) B(a + s, b + n - s) / B(a, b),   a + b = m (1 - m)/d^2 - 1,  a = m (a + b)
    means     y = s/n is N(m, d^2 + e^2), where e is its standard error

and arms are independent. With a level L per test (between tests: mean m, deviation D) and arms around
it, the probability of a test is the integral over L of the product over its arms: by Gauss-Hermite
quadrature in x = ln(L/(1 - L)), around the integrand's maximum (Newton), for counts; for means y ~ N(m, D^2 11' + diag(d^2 + e^2)).

The estimates maximise the sum of the logarithms over tests (marginal likelihood). The 95 % interval of
a parameter holds the values x at which twice the fall of the maximum over all other parameters is
below the quantile of F(1, N - p): N arms, p parameters (profile likelihood; F instead of chi-squared
allows for the N that are not many).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from .families import Array
from .history import History

_NODES = 24
# Doublings of the step in the search for the end of an interval.
_TRIES = 12
# Newton's steps to the maximum of an integrand, and what keeps logits where both 1/(1 + e^x) and
# 1/(1 + e^-x) are above 0.
_STEPS, _WIDEST, _FURTHEST = 30, 30.0, 300.0


@cache
def _nodes() -> tuple[Array, Array]:
    """Nodes and weights of an integral over a normal density."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes, weights


@dataclass(frozen=True)
class FittedValue:
    """A parameter with its 95 % interval; `low` is 0 where the history does not tell it from 0."""

    name: str
    value: float
    low: float
    high: float


class Model(ABC):
    """A prior with unknown parameters, and a history.

    Parameters have coordinates without limits: logarithms of deviations, the logit of a mean that is
    a probability.
    """

    names: tuple[str, ...] = ("mean", "spread")

    def __init__(self, history: History) -> None:
        self.history = history

    @abstractmethod
    def log_likelihood(self, values: Sequence[float]) -> float:
        """The logarithm of the history's probability; -inf where there is no such prior."""

    @abstractmethod
    def simulate(self, values: Sequence[float], rng: np.random.Generator, count: int) -> Array:
        """Reward sums of other histories with the same plays, as an array [history, entry]."""

    @abstractmethod
    def start(self) -> list[float]:
        """Parameters from moments, to begin the search with."""

    def coordinate(self, name: str, value: float) -> float:
        return value if name == "mean" else math.log(value)

    def value(self, name: str, coordinate: float) -> float:
        return coordinate if name == "mean" else math.exp(coordinate)

    @cached_property
    def least(self) -> float:
        """The spread below which all arms are as good as equal."""
        return 1e-3 * float(np.sqrt(self.noise_variance))

    @cached_property
    def noise_variance(self) -> float:
        """The variance that noise alone gives to the mean of a typical arm."""
        return float(np.median(self.history.error**2))

    def limit(self, name: str) -> float:
        """The least coordinate of a parameter."""
        return -math.inf if name == "mean" else math.log(self.least)

    def bounds(self, place: int, at: Array) -> tuple[float, float]:
        """Between which coordinates of a parameter there is such a prior, the others held."""
        return -math.inf, math.inf


def _moments(mean: Array, noise: Array) -> tuple[float, float]:
    """Mean and spread of true means, from observed ones and the variances of their noise."""
    center = float(mean.mean())
    spread = float(mean.var(ddof=1)) - float(noise.mean()) if len(mean) > 1 else 0.0
    return center, math.sqrt(max(spread, 0.05 * float(noise.mean()), 1e-18))


def beta_of(mean: float, spread: float) -> tuple[float, float]:
    """The Beta distribution with this mean and standard deviation."""
    total = mean * (1.0 - mean) / spread**2 - 1.0
    return mean * total, (1.0 - mean) * total


class BetaBinomial(Model):
    """Counts of independent arms."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self.plays, self.wins = history.plays, history.total

    def coordinate(self, name: str, value: float) -> float:
        return math.log(value / (1.0 - value)) if name == "mean" else math.log(value)

    def value(self, name: str, coordinate: float) -> float:
        return 1.0 / (1.0 + math.exp(-coordinate)) if name == "mean" else math.exp(coordinate)

    def bounds(self, place: int, at: Array) -> tuple[float, float]:
        # d^2 < m (1 - m) = 1 / (2 cosh(x/2))^2, where x is the logit of m.
        if place:
            half = 0.5 * abs(float(at[0]))
            return -math.inf, -half - math.log1p(math.exp(-2.0 * half))
        widest = math.exp(min(float(at[1:].max()), 0.0))
        if widest >= 0.5:
            return 0.0, 0.0
        most = 2.0 * math.log((1.0 + math.sqrt(1.0 - 4.0 * widest**2)) / (2.0 * widest))
        return -most, most

    def _pooled_mean(self) -> float:
        # Half a success more: a history without any has a mean, too.
        return float((self.wins.sum() + 0.5) / (self.plays.sum() + 1.0))

    @cached_property
    def noise_variance(self) -> float:
        mean = self._pooled_mean()
        return float(np.median(mean * (1.0 - mean) / self.plays))

    def start(self) -> list[float]:
        mean = self._pooled_mean()
        _, spread = _moments(self.history.mean, mean * (1.0 - mean) / self.plays)
        return [mean, min(spread, 0.5 * math.sqrt(mean * (1.0 - mean)))]

    def log_likelihood(self, values: Sequence[float]) -> float:
        mean, spread = values
        if not (0.0 < mean < 1.0 and spread**2 < mean * (1.0 - mean)):
            return -math.inf
        return float(beta_binomial(self.plays, self.wins, *beta_of(mean, spread)).sum())

    def simulate(self, values: Sequence[float], rng: np.random.Generator, count: int) -> Array:
        return self._draw_wins(rng, rng.beta(*beta_of(*values), (count, len(self.plays))))

    def _draw_wins(self, rng: np.random.Generator, chance: Array) -> Array:
        return rng.binomial(self.plays.astype(np.int64), chance).astype(np.float64)


def beta_binomial(plays: Array, wins: Array, a: float | Array, b: float | Array) -> Array:
    """The logarithm of B(a + s, b + n - s) / B(a, b)."""
    from scipy.special import gammaln

    return np.asarray(
        gammaln(a + wins)
        - gammaln(a)
        + gammaln(b + (plays - wins))
        - gammaln(b)
        - gammaln(a + b + plays)
        + gammaln(a + b)
    )


class NormalNormal(Model):
    """Means of independent arms with their standard errors."""

    def start(self) -> list[float]:
        return list(_moments(self.history.mean, self.history.error**2))

    def log_likelihood(self, values: Sequence[float]) -> float:
        mean, spread = values
        variance = spread**2 + self.history.error**2
        return float(-0.5 * (np.log(variance) + (self.history.mean - mean) ** 2 / variance).sum())

    def simulate(self, values: Sequence[float], rng: np.random.Generator, count: int) -> Array:
        mean, spread = values
        deviation = np.sqrt(spread**2 + self.history.error**2)
        drawn = rng.normal(mean, deviation, (count, len(deviation)))
        return np.asarray(drawn * self.history.plays)


class BetaLevels(BetaBinomial):
    """Counts of arms around a level per test."""

    names = ("mean", "between", "within")

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self.tests = history.problem.astype(int)
        self.count = len(history.problems)
        played = np.bincount(self.tests, self.plays, self.count)
        self.level = (np.bincount(self.tests, self.wins, self.count) + 0.5) / (played + 1.0)
        self.noise = self.level * (1.0 - self.level) / played
        self.arms = np.bincount(self.tests, minlength=self.count)
        self.order = np.argsort(self.tests, kind="stable")
        self.first = np.cumsum(self.arms) - self.arms

    def start(self) -> list[float]:
        mean, spread = super().start()
        _, between = _moments(self.level, self.noise + spread**2 / (2.0 * self.arms))
        return [mean, min(between, 0.5 * math.sqrt(mean * (1.0 - mean))), spread / 2.0]

    def log_likelihood(self, values: Sequence[float]) -> float:
        from scipy.special import betaln

        mean, between, within = values
        if not 0.0 < mean < 1.0:
            return -math.inf
        a, b = beta_of(mean, between)
        concentration = mean * (1.0 - mean) / within**2 - 1.0
        if min(a, b, concentration) <= 0.0:
            return -math.inf
        center, width = self._peaks(a, b, concentration)
        nodes, weights = _nodes()
        # A little wider than the integrand, which falls off no faster.
        scale = 1.2 * width
        x = center[:, None] + scale[:, None] * nodes
        total = self._integrand(x, a, b, concentration) + 0.5 * nodes**2
        top = total.max(axis=1, keepdims=True)
        sums = (np.exp(total - top) * weights).sum(axis=1) * scale
        return float((top[:, 0] + np.log(sums)).sum() - self.count * betaln(a, b))

    def _integrand(self, x: Array, a: float, b: float, concentration: float) -> Array:
        """The logarithm of what is integrated at logits of the levels, [test, point]; without B(a, b)."""
        from scipy.special import expit, log_expit

        # Of L and of 1 - L: neither is the other's rounding error.
        wins, losses = (concentration * expit(way)[self.tests] for way in (x, -x))
        terms = beta_binomial(self.plays[:, None], self.wins[:, None], wins, losses)
        sums = np.add.reduceat(terms[self.order], self.first, axis=0)
        return np.asarray(a * log_expit(x) + b * log_expit(-x) + sums)

    def _peaks(self, a: float, b: float, concentration: float) -> tuple[Array, Array]:
        """Where the integrand of each test is largest, and its width there."""
        # A play of an arm tells as much of the level as (c + 1)/(c + n) plays of the level itself.
        worth = (concentration + 1.0) / (concentration + self.plays)
        wins = a + np.bincount(self.tests, worth * self.wins, self.count)
        losses = b + np.bincount(self.tests, worth * (self.plays - self.wins), self.count)
        x = np.log(wins / losses)
        width = np.minimum(np.sqrt(1.0 / wins + 1.0 / losses), _WIDEST)
        for _ in range(_STEPS):
            step = 0.3 * width
            low, here, high = self._integrand(
                x[:, None] + step[:, None] * np.array([-1.0, 0.0, 1.0]), a, b, concentration
            ).T
            slope, bend = (high - low) / (2.0 * step), (2.0 * here - low - high) / step**2
            # Not far at a time: what is far off may look flat.
            wanted = 1.0 / np.sqrt(np.maximum(bend, 0.1 / width**2))
            width = np.minimum(np.clip(wanted, width / 3.0, 3.0 * width), _WIDEST)
            move = np.clip(slope * width**2, -2.0 * width, 2.0 * width)
            x = np.clip(x + move, -_FURTHEST, _FURTHEST)
            if (np.abs(move) < 0.1 * width).all():
                break
        return x, width

    def simulate(self, values: Sequence[float], rng: np.random.Generator, count: int) -> Array:
        mean, between, within = values
        concentration = mean * (1.0 - mean) / within**2 - 1.0
        level = rng.beta(*beta_of(mean, between), (count, self.count))
        level = np.clip(level, 1e-12, 1.0 - 1e-12)[:, self.tests]
        return self._draw_wins(rng, rng.beta(concentration * level, concentration * (1.0 - level)))


class NormalLevels(NormalNormal):
    """Means of arms around a level per test."""

    names = ("mean", "between", "within")

    def start(self) -> list[float]:
        mean, spread = super().start()
        return [mean, spread / math.sqrt(2.0), spread / math.sqrt(2.0)]

    def log_likelihood(self, values: Sequence[float]) -> float:
        mean, between, within = values
        tests = self.history.problem.astype(int)
        variance = within**2 + self.history.error**2
        off = self.history.mean - mean
        # Sherman, Morrison: the inverse and the determinant of D + u u' for each test.
        weight = np.bincount(tests, 1.0 / variance)
        pull = np.bincount(tests, off / variance)
        grown = 1.0 + between**2 * weight
        squares = (off**2 / variance).sum() - (between**2 * pull**2 / grown).sum()
        return float(-0.5 * (np.log(variance).sum() + np.log(grown).sum() + squares))

    def simulate(self, values: Sequence[float], rng: np.random.Generator, count: int) -> Array:
        mean, between, within = values
        level = rng.normal(mean, between, (count, len(self.history.problems)))
        deviation = np.sqrt(within**2 + self.history.error**2)
        drawn = rng.normal(level[:, self.history.problem.astype(int)], deviation)
        return np.asarray(drawn * self.history.plays)


class Maximum:
    """The maximum of a model's likelihood, and intervals from its profile."""

    def __init__(self, model: Model) -> None:
        from scipy.optimize import minimize

        self.model = model
        self.names = model.names
        self.floor = np.array([model.limit(name) for name in self.names])
        start = np.maximum(self._coordinates(model.start()), self.floor + 1e-3)
        size = 0.3 * np.ones(len(start))
        # A mean without limits is moved by what it is known to.
        if model.coordinate("mean", 0.5) == 0.5:
            size[0] = math.sqrt(model.noise_variance)
        simplex = np.vstack([start, start + np.diag(size)])
        found = minimize(
            self._loss,
            start,
            method="Nelder-Mead",
            options={"initial_simplex": simplex, "xatol": 1e-5, "fatol": 1e-7, "maxiter": 300},
        )
        self.at = np.maximum(found.x, self.floor)
        self.loss = float(self._loss(self.at))

    def _coordinates(self, values: Sequence[float]) -> Array:
        return np.array(
            [self.model.coordinate(*pair) for pair in zip(self.names, values, strict=True)]
        )

    def _values(self, at: Array) -> list[float]:
        at = np.maximum(at, self.floor)
        return [self.model.value(*pair) for pair in zip(self.names, at.tolist(), strict=True)]

    def _loss(self, at: Array) -> float:
        try:
            return -self.model.log_likelihood(self._values(at))
        except OverflowError:
            return math.inf

    @property
    def values(self) -> dict[str, float]:
        return dict(zip(self.names, self._values(self.at), strict=True))

    @cached_property
    def _widths(self) -> Array:
        """About the standard error of each coordinate, the others held."""
        widths = np.empty(len(self.at))
        for place in range(len(self.at)):
            step = 1e-3
            if self.names[place] == "mean" and self.model.coordinate("mean", 0.5) == 0.5:
                step = 1e-3 * math.sqrt(self.model.noise_variance)
            for _ in range(40):
                rise = max(
                    self._loss(self._moved(place, way * step)) - self.loss for way in (-1, 1)
                )
                if rise > 0.05:
                    break
                step *= 2.0
            # The loss rises by half a square of standard errors.
            widths[place] = step / math.sqrt(2.0 * max(rise, 0.05))
        return widths

    def _moved(self, place: int, by: float) -> Array:
        at: Array = self.at.copy()
        at[place] += by
        return at

    def _profile(self, place: int, coordinate: float, others: Array) -> tuple[float, Array]:
        """The least loss with one coordinate held, and where the others are."""
        from scipy.optimize import minimize, minimize_scalar

        free = [each for each in range(len(self.at)) if each != place]
        at = others.copy()
        at[place] = coordinate
        if not math.isfinite(self._loss(at)):
            # There is no such prior: the others cannot stay where they are.
            for one in free:
                bottom, top = self.model.bounds(one, at)
                inset = min(0.1, 0.25 * (top - bottom))
                at[one] = min(max(at[one], bottom + inset), top - inset)
            if not math.isfinite(self._loss(at)):
                return math.inf, others
        if len(free) == 1:
            (one,) = free
            bottom, top = self.model.bounds(one, at)
            for _ in range(20):
                width = 3.0 * self._widths[one]
                low, high = max(at[one] - width, bottom), min(at[one] + width, top)

                def along(x: float) -> float:
                    at[one] = x
                    return min(self._loss(at), 1e300)

                found = minimize_scalar(
                    along, bounds=(low, high), method="bounded", options={"xatol": 0.003 * width}
                )
                at[one] = max(float(found.x), self.floor[one])
                inside = at[one] - low > 0.05 * width or low == bottom
                inside = inside and (high - at[one] > 0.05 * width or high == top)
                if inside or at[one] <= self.floor[one]:
                    break
            return float(self._loss(at)), at
        simplex = np.vstack([at[free], at[free] + np.diag(0.5 * self._widths[free])])

        def over(x: Array) -> float:
            at[free] = x
            return min(self._loss(at), 1e300)

        least = minimize(
            over,
            at[free],
            method="Nelder-Mead",
            options={"initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-3},
        )
        at[free] = np.maximum(least.x, self.floor[free])
        return float(least.fun), at

    def estimates(self) -> list[FittedValue]:
        """Each parameter with its 95 % interval."""
        from scipy.special import fdtri

        freedom = max(len(self.model.history.plays) - len(self.names), 1)
        allowed = 0.5 * float(fdtri(1, freedom, 0.95))
        found = []
        for place, name in enumerate(self.names):
            ends = [self._end(place, way, allowed) for way in (-1.0, 1.0)]
            low, high = (self.model.value(name, min(end, 300.0)) for end in ends)
            if name != "mean" and ends[0] <= self.floor[place]:
                low = 0.0
            found.append(FittedValue(name, self.values[name], low, high))
        return found

    def _end(self, place: int, way: float, allowed: float) -> float:
        """Where the profile has fallen by `allowed`, to one side; the floor if it never does."""
        from scipy.optimize import brentq

        width = float(self._widths[place])

        def excess(coordinate: float, others: Array) -> tuple[float, Array]:
            loss, found = self._profile(place, coordinate, others)
            return float(min(loss - self.loss - allowed, 1e6)), found

        inner, step = float(self.at[place]), 1.5 * width
        outer, others, below = inner, self.at, -allowed
        for _ in range(_TRIES):
            outer = max(inner + way * step, float(self.floor[place]))
            above, found = excess(outer, others)
            if above > 0.0:
                break
            if outer <= self.floor[place]:
                return outer
            inner, others, below, step = outer, found, above, 1.5 * step
        else:
            return outer
        # From where the others are at the inner end, so that a coordinate has one value.
        known = {inner: below, outer: above}

        def between(coordinate: float) -> float:
            return known[coordinate] if coordinate in known else excess(coordinate, others)[0]

        return float(brentq(between, inner, outer, xtol=0.005 * width, rtol=1e-12))
