"""Tests at the end of a trial: p-values of all final counts at once.

With rates x_k = s_k/n_k of two arms, d = x_2 - x_1 and the pooled rate x = (s_1 + s_2)/(n_1 + n_2),

    z-pooled     d / sqrt(x (1 - x) (1/n_1 + 1/n_2)),
    z-unpooled   d / sqrt(x_1 (1 - x_1)/n_1 + x_2 (1 - x_2)/n_2),
    chi-squared  sum_k n_k (x_k - x)^2 / (x (1 - x)), for any number of arms,
    fisher       s_1 given s_1 + s_2 is hypergeometric,
    barnard      max over p of P(a statistic as extreme), binomial counts, ordered by z-pooled,
    boschloo     the same, ordered by Fisher's p-value,
    bayes        P(p_2 > p_1 | counts) > c, uniform rates at first,
    exact        the design's own test (trials/critical.py).

The alternative is that the rates differ (`two-sided`), or that arm 2 is better (`greater`) or worse
(`less`). An arm without patients is no evidence: the statistic is 0 and the p-value 1; so it is with a
pooled rate of 0 or 1. Where the unpooled deviation is 0 and the rates differ, the statistic is infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..engine.states import Counts
from ..errors import InputError, about, nearest
from ..priors.families import Array
from ..settings import check_keys, read_number, read_settings

TWO_SIDED, GREATER, LESS = "two-sided", "greater", "less"
UNCONDITIONAL, CONDITIONAL, BAYES, CHI_SQUARED = (
    "exact",
    "exact-conditional",
    "bayes",
    "chi-squared",
)
# p-values closer than this, relative to their size, are equal: Fisher's test sums rounded numbers.
_EQUAL = 1e-7
# Values of the common rate over which Barnard's and Boschloo's tests take the largest probability.
_NUISANCES = 401
Statistic = Callable[[Counts, Counts], Array]


# Tables of p-values are kept for this many pairs of sizes.
_KEPT = 1024


@dataclass(frozen=True)
class Test:
    """A test of the final counts.

    name: as the command line writes it
    alternative: two-sided, greater or less (of arm 2)
    p_value: of the final counts, of which less is more extreme; None for the tests of the design itself
    statistic: by which those order the counts
    above: of a Bayesian rule, the probability to be exceeded
    rule: a person's own, which says of the final counts whether, or with which probability, to reject
    """

    __test__ = False  # for pytest

    name: str
    alternative: str = TWO_SIDED
    p_value: Statistic | None = None
    statistic: Statistic | None = None
    above: float | None = None
    rule: Callable[[Counts, Counts], Any] | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the critical values come from the design."""
        return self.statistic is not None

    def rejects(self, plays: Counts, successes: Counts, level: float) -> Array:
        """Whether (1 or 0, or with which probability) the hypothesis of equal rates is rejected."""
        if self.rule is None:
            assert self.p_value is not None
            found = self.p_value(plays, successes)
            if self.above is not None:
                return np.asarray(found < 1.0 - self.above, dtype=np.float64)
            return np.asarray(found <= level * (1.0 + 1e-12), dtype=np.float64)
        values = np.asarray(self.rule(plays, successes), dtype=np.float64)
        if values.shape != plays.shape[1:]:
            raise InputError(
                f"a test gives one number per state, an array of shape {plays.shape[1:]}, not "
                f"{values.shape}"
            )
        if not (values >= 0.0).all() or not (values <= 1.0).all():
            raise InputError(
                "a test rejects (1 or True), or not (0), or with a probability between"
            )
        return values


def read_test(given: object, arms: int) -> Test:
    """Read a test: `fisher`, `z-pooled:alternative=greater`, `bayes:c=0.975`, or a function."""
    if callable(given):
        return Test(getattr(given, "__name__", "own"), rule=given)
    if not isinstance(given, str):
        raise InputError(f"a test is a name such as fisher, or a function; not {given!r}")
    name, settings = read_settings(given, "test")
    if name not in NAMES:
        raise InputError(f"unknown test {name!r}; {nearest(name, NAMES)}")
    own = {BAYES: ("c",), UNCONDITIONAL: ("statistic",), CONDITIONAL: ("statistic",)}
    sided = () if name == CHI_SQUARED else ("alternative",)
    check_keys(settings, (*own.get(name, ()), *sided), f"the test {name}")
    exact = name in (UNCONDITIONAL, CONDITIONAL)
    several = name == CHI_SQUARED or (exact and arms != 2)
    if exact and settings.get("statistic") == CHI_SQUARED:
        several = True
    if arms != 2 and not (several and settings.get("statistic", CHI_SQUARED) == CHI_SQUARED):
        raise InputError(
            f"the test {given} compares 2 arms, not {arms}; use chi-squared, exact with "
            f"statistic=chi-squared, or a function of your own"
        )
    alternative = settings.get("alternative", TWO_SIDED)
    if alternative not in (TWO_SIDED, GREATER, LESS):
        raise InputError(
            f"unknown alternative {alternative!r}; {nearest(alternative, (TWO_SIDED, GREATER, LESS))}"
        )
    if exact:
        by = settings.get("statistic", CHI_SQUARED if several else "z-pooled")
        if by not in _STATISTICS:
            raise InputError(f"unknown statistic {by!r}; {nearest(by, _STATISTICS)}")
        if by == CHI_SQUARED and alternative != TWO_SIDED:
            raise InputError("chi-squared has no direction; leave the alternative out")
        return Test(given, alternative, statistic=sided_statistic(_STATISTICS[by], alternative))
    if name == BAYES:
        return _bayes(given, alternative, settings.get("c"))
    return Test(given, alternative, _p_value(name, alternative))


@about("level")
def check_level(level: object) -> float:
    """Check the level of a test."""
    number = read_number(level, "the level")  # type: ignore[arg-type]
    if not 0.0 < number < 1.0:
        raise InputError(f"the level of a test must lie between 0 and 1, not {number:g}")
    return number


# Statistics ------------------------------------------------------------------------------------


def estimates(plays: Counts, successes: Counts) -> Array:
    """The success rates that are observed; not a number for an arm without patients."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(successes / plays)


def z_pooled(plays: Counts, successes: Counts) -> Array:
    n1, n2 = plays.astype(np.float64)
    x1, x2 = estimates(plays, successes)
    x = successes.sum(axis=0) / np.maximum(plays.sum(axis=0), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (x2 - x1) / np.sqrt(x * (1.0 - x) * (1.0 / n1 + 1.0 / n2))
    return np.where(np.isfinite(z), z, 0.0)


def z_unpooled(plays: Counts, successes: Counts) -> Array:
    n1, n2 = plays.astype(np.float64)
    x1, x2 = estimates(plays, successes)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (x2 - x1) / np.sqrt(x1 * (1.0 - x1) / n1 + x2 * (1.0 - x2) / n2)
    return np.where(np.isnan(z), 0.0, z)


def chi_squared(plays: Counts, successes: Counts) -> Array:
    x = successes.sum(axis=0) / np.maximum(plays.sum(axis=0), 1)
    rates = np.where(plays > 0, successes / np.maximum(plays, 1), x)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = (plays * (rates - x) ** 2).sum(axis=0) / (x * (1.0 - x))
    return np.where(np.isfinite(total), total, 0.0)


def log_odds(plays: Counts, successes: Counts) -> Array:
    """ln(q/(1 - q)), q being the probability that arm 2 is better, given the counts."""
    second = np.clip(_by_sizes(plays, successes, _second_better), 1e-15, 1.0 - 1e-15)
    return np.log(second / (1.0 - second))


_STATISTICS = {
    "z-pooled": z_pooled,
    "z-unpooled": z_unpooled,
    BAYES: log_odds,
    CHI_SQUARED: chi_squared,
}
NAMES = ("fisher", "z-pooled", "z-unpooled", CHI_SQUARED, "barnard", "boschloo", BAYES, UNCONDITIONAL,
         CONDITIONAL)  # fmt: skip


def sided_statistic(statistic: Statistic, alternative: str) -> Statistic:
    """The statistic, of which more is more extreme for the alternative."""
    if alternative == GREATER or statistic is chi_squared:
        return statistic
    if alternative == LESS:
        return lambda plays, successes: -statistic(plays, successes)
    return lambda plays, successes: np.abs(statistic(plays, successes))


# p-values --------------------------------------------------------------------------------------


def _p_value(name: str, alternative: str) -> Statistic:
    from scipy.stats import chi2, norm

    if name == CHI_SQUARED:
        return lambda plays, successes: chi2.sf(chi_squared(plays, successes), len(plays) - 1)
    if name in ("z-pooled", "z-unpooled"):
        statistic = sided_statistic(_STATISTICS[name], alternative)
        sides = 2.0 if alternative == TWO_SIDED else 1.0
        return lambda plays, successes: sides * norm.sf(statistic(plays, successes))
    table = {"fisher": _fisher, "barnard": _barnard, "boschloo": _boschloo}[name]
    return lambda plays, successes: _by_sizes(
        plays, successes, lambda n1, n2: table(n1, n2, alternative)
    )


def _by_sizes(plays: Counts, successes: Counts, table: Callable[[int, int], Array]) -> Array:
    """Look p-values up: table(n1, n2) has them by successes of the arms."""
    found = np.empty(plays.shape[1])
    sizes = plays[0].astype(np.int64) * (int(plays.max(initial=0)) + 1) + plays[1]
    order = np.argsort(sizes, kind="stable")
    bounds = np.flatnonzero(np.diff(sizes[order])) + 1
    for some in np.split(order, bounds):
        if len(some):
            n1, n2 = map(int, plays[:, some[0]])
            found[some] = table(n1, n2)[successes[0, some], successes[1, some]]
    return found


@lru_cache(_KEPT)
def _fisher(n1: int, n2: int, alternative: str) -> Array:
    """Fisher's p-values [s1, s2]."""
    from scipy.special import gammaln

    def choose(n: Any, k: Any) -> Array:
        return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))

    found = np.ones((n1 + 1, n2 + 1))
    ways1, ways2 = choose(n1, np.arange(n1 + 1)), choose(n2, np.arange(n2 + 1))
    for total in range(n1 + n2 + 1):
        first = np.arange(max(0, total - n2), min(n1, total) + 1)
        chance = np.exp(ways1[first] + ways2[total - first] - choose(n1 + n2, total))
        chance /= chance.sum()
        if alternative == GREATER:  # few successes of arm 1 are many of arm 2
            p = np.cumsum(chance)
        elif alternative == LESS:
            p = np.cumsum(chance[::-1])[::-1]
        else:
            rising = np.sort(chance)
            upto = np.searchsorted(rising, chance * (1.0 + _EQUAL), side="right")
            p = np.cumsum(rising)[upto - 1]
        found[first, total - first] = np.minimum(p, 1.0)
    return found


@lru_cache(_KEPT)
def _barnard(n1: int, n2: int, alternative: str) -> Array:
    s1, s2 = np.indices((n1 + 1, n2 + 1), np.int32).reshape(2, -1)
    plays = np.stack([np.full_like(s1, n1), np.full_like(s2, n2)])
    statistic = sided_statistic(z_pooled, alternative)(plays, np.stack([s1, s2]))
    return _largest_tail(n1, n2, -statistic)


@lru_cache(_KEPT)
def _boschloo(n1: int, n2: int, alternative: str) -> Array:
    if alternative == TWO_SIDED:
        both = [_boschloo(n1, n2, side) for side in (GREATER, LESS)]
        return np.minimum(2.0 * np.minimum(*both), 1.0)
    return _largest_tail(n1, n2, _fisher(n1, n2, alternative).ravel())


def _largest_tail(n1: int, n2: int, order: Array) -> Array:
    """The largest probability, over the common rate, of what is as small in the order [s1, s2]."""
    from scipy.stats import binom

    nuisance = np.sin(np.linspace(0.0, np.pi / 2.0, _NUISANCES)) ** 2
    # Equal but for rounding is equal.
    rank = np.round(order, 10)
    by = np.argsort(rank, kind="stable")
    s1, s2 = np.divmod(by, n2 + 1)
    one = np.asarray(binom.pmf(np.arange(n1 + 1)[:, None], n1, nuisance))
    two = np.asarray(binom.pmf(np.arange(n2 + 1)[:, None], n2, nuisance))
    largest = np.zeros(len(by))
    for some in np.array_split(np.arange(_NUISANCES), max(1, len(by) * _NUISANCES >> 22)):
        tail = np.cumsum(one[s1][:, some] * two[s2][:, some], axis=0).max(axis=1)
        largest = np.maximum(largest, tail)
    last = np.searchsorted(rank[by], rank[by], side="right") - 1
    found = np.empty(len(by))
    found[by] = np.minimum(largest[last], 1.0)
    return found.reshape(n1 + 1, n2 + 1)


# The Bayesian rule -----------------------------------------------------------------------------


def _bayes(name: str, alternative: str, given: str | None) -> Test:
    above = 0.975 if given is None else read_number(given, "c of the test bayes")
    if not 0.5 <= above < 1.0:
        raise InputError(f"c of the test bayes must be at least 0.5 and below 1, not {above:g}")

    def p_value(plays: Counts, successes: Counts) -> Array:
        second = _by_sizes(plays, successes, _second_better)
        if alternative == GREATER:
            return 1.0 - second
        return second if alternative == LESS else np.minimum(second, 1.0 - second)

    return Test(name, alternative, p_value, above=above)


@lru_cache(_KEPT)
def _second_better(n1: int, n2: int) -> Array:
    """P(X2 > X1) [s1, s2] of draws from Beta(1 + s, 1 + n - s).

    With a = s1 + 1, b = n1 - s1, c = s2 + 1, d = n2 - s2 + 1, one success more of arm 1 instead of a
    failure takes (1/a + 1/b) B(a + c, b + d) / (B(a, b) B(c, d)) from it.
    """
    from scipy.special import betaln

    s1, s2 = np.indices((n1 + 1, n2 + 1))
    found = np.empty((n1 + 1, n2 + 1))
    # Without a success of arm 1 it is 1 - E[(1 - X2)^(n1 + 1)].
    c, d = s2[0] + 1, n2 - s2[0] + 1
    found[0] = 1.0 - np.exp(betaln(c, d + n1 + 1) - betaln(c, d))
    a, b = s1[:-1] + 1, n1 - s1[:-1]
    fall = (1.0 / a + 1.0 / b) * np.exp(betaln(a + c, b + d) - betaln(a, b) - betaln(c, d))
    found[1:] = found[0] - np.cumsum(fall, axis=0)
    return np.clip(found, 0.0, 1.0)
