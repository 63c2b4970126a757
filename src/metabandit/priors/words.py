"""Priors in words: the mean and deviation of arms' means, or the range that most of them lie in.

    mean, sd    mean and standard deviation of the arms' means
    low, high   their 5 % and 95 % quantiles: nine arms in ten have a mean between them

Each pair has one Beta, normal or gamma distribution: with mean m and variance v

    Beta     a + b = m (1 - m)/v - 1,  a = m (a + b)
    gamma    shape = m^2/v,  rate = m/v

and for quantiles two equations are solved, F(low) = 0.05 and F(high) = 0.95.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ..errors import InputError
from ..settings import read_number
from .likelihood import beta_of

_CENTRAL = 0.9
_TAIL = (1.0 - _CENTRAL) / 2.0
_Z = 1.6448536269514722  # the standard normal quantile of 0.95


def _solve(
    low: float, high: float, below: Callable[[float, float, float], float], start: Any, what: str
) -> tuple[float, float]:
    """The two positive parameters with F(low) = 0.05 and F(high) = 0.95."""
    from scipy.optimize import root

    def excess(at: Any) -> list[float]:
        first, second = np.exp(np.clip(at, -30.0, 30.0))
        shares = below(first, second, low), 1.0 - below(first, second, high)
        # Logarithms: where a tail is empty the equations still say which way to go.
        return [math.log(max(share, 1e-300) / _TAIL) for share in shares]

    found = root(excess, np.log(start), method="hybr", options={"xtol": 1e-12})
    if max(map(abs, excess(found.x))) > 1e-6:
        raise InputError(
            f"{what}: no such distribution has 90 % of its means between {low:g} and {high:g}; choose "
            f"a wider range, or give mean= and sd="
        )
    first, second = np.exp(found.x).tolist()
    return first, second


@cache
def beta_between(low: float, high: float, what: str) -> tuple[float, float]:
    """The Beta distribution with these 5 % and 95 % quantiles."""
    from scipy.special import betainc

    if not 0.0 < low < high < 1.0:
        raise InputError(f"{what} needs 0 < low < high < 1, not low={low:g} and high={high:g}")
    mean, spread = normal_between(low, high, what)
    start = beta_of(mean, min(spread, 0.9 * math.sqrt(mean * (1.0 - mean))))
    return _solve(low, high, lambda a, b, x: float(betainc(a, b, x)), start, what)


def beta_with(mean: float, spread: float, what: str) -> tuple[float, float]:
    """The Beta distribution with this mean and standard deviation."""
    if not 0.0 < mean < 1.0:
        raise InputError(f"the mean of {what} must lie between 0 and 1, not {mean:g}")
    most = math.sqrt(mean * (1.0 - mean))
    if not 0.0 < spread < most:
        raise InputError(
            f"the sd of {what} must be greater than 0 and, for a mean of {mean:g}, less than "
            f"{most:.4g}; not {spread:g}"
        )
    return beta_of(mean, spread)


@cache
def gamma_between(low: float, high: float, what: str) -> tuple[float, float]:
    """Shape and rate of the gamma distribution with these 5 % and 95 % quantiles."""
    from scipy.special import gammainc

    if not 0.0 < low < high:
        raise InputError(f"{what} needs 0 < low < high, not low={low:g} and high={high:g}")
    start = gamma_with(*normal_between(low, high, what), what)
    return _solve(low, high, lambda a, b, x: float(gammainc(a, b * x)), start, what)


def gamma_with(mean: float, spread: float, what: str) -> tuple[float, float]:
    """Shape and rate of the gamma distribution with this mean and standard deviation."""
    for name, value in (("mean", mean), ("sd", spread)):
        if not value > 0.0:
            raise InputError(f"the {name} of {what} must be greater than 0, not {value:g}")
    return (mean / spread) ** 2, mean / spread**2


def normal_between(low: float, high: float, what: str) -> tuple[float, float]:
    """Mean and standard deviation of the normal distribution with these quantiles."""
    if not low < high:
        raise InputError(f"{what} needs low < high, not low={low:g} and high={high:g}")
    return (low + high) / 2.0, (high - low) / (2.0 * _Z)


def _normal_with(mean: float, spread: float, what: str) -> tuple[float, float]:
    return mean, spread


Solver = Callable[[float, float, str], tuple[float, float]]
_BETA = (beta_with, beta_between, ("alpha", "beta"))
# For each prior: from mean and sd, from low and high, and what they are solved for.
_WAYS: dict[str, tuple[Solver, Solver, tuple[str, str]]] = {
    "bernoulli": _BETA,
    "beta": _BETA,
    "revenue": _BETA,
    "counts": (gamma_with, gamma_between, ("shape", "rate")),
    "gaussian": (_normal_with, normal_between, ("mean", "spread")),
}
# Of revenue the words are about the share of rewards that are not zero.
_NAMES = {"revenue": ("share", "share_sd", "share_low", "share_high")}
_PLAIN = ("mean", "sd", "low", "high")


def words_of(name: str) -> tuple[str, ...]:
    """The words that a prior takes instead of parameters."""
    return _NAMES.get(name, _PLAIN) if name in _WAYS else ()


def read_words(name: str, settings: Mapping[str, str]) -> dict[str, str | list[float]]:
    """The settings of a prior, with words replaced by what they stand for."""
    given = [word for word in words_of(name) if word in settings]
    # The mean of Gaussian arms is a parameter, too.
    if not given or (name == "gaussian" and given == ["mean"]):
        return dict(settings)
    words, what = words_of(name), f"the prior {name}"
    with_mean, between, keys = _WAYS[name]
    if given not in (list(words[:2]), list(words[2:])):
        raise InputError(
            f"{what} takes {words[0]} and {words[1]} together, or {words[2]} and {words[3]}, not "
            f"{' and '.join(given)}"
        )
    solve = with_mean if words[0] in given else between
    taken = [key for key in keys if key in settings and key not in given]
    if taken:
        raise InputError(
            f"{what}: {' and '.join(given)} say what {' and '.join(taken)} would; give one or the other"
        )
    first, second = (
        [read_number(item, f"{word} of {what}") for item in settings[word].split(":")]
        for word in given
    )
    count = max(len(first), len(second))
    first, second = (item * count if len(item) == 1 else item for item in (first, second))
    if len(first) != len(second):
        raise InputError(f"{what}: {' and '.join(given)} are for different numbers of arms")
    pairs = [solve(x, y, what) for x, y in zip(first, second, strict=True)]
    found: dict[str, str | list[float]] = {
        key: value for key, value in settings.items() if key not in given
    }
    for key, values in zip(keys, zip(*pairs, strict=True), strict=True):
        found[key] = [rounded(value) for value in values]
    return found


def rounded(value: float) -> float:
    """A parameter that was solved for, in as many digits as anybody wants to read."""
    return float(f"{value:.6g}")
