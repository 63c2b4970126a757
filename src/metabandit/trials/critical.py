"""The exact test of a design itself: critical values from the distribution of a statistic under it.

If all arms have the rate p, a design ends in (n, s) with probability g(n, s) p^S (1 - p)^(N - S), S being
the successes and N the patients of all arms (trials/final.py). So

    conditional     given S and N the probabilities g / sum g do not depend on p: the hypothesis is
                    rejected if P(statistic as large | S, N) <= level,
    unconditional   it is rejected if the statistic is at least c, the smallest number for which

                        max over p of  sum_{S, N} A_c(S, N) p^S (1 - p)^(N - S)  <=  level,

                    A_c(S, N) being the sum of g over the states with a statistic of at least c.

Either way the level holds whatever the common rate, for an adaptive design too (Baas, Jacko, Villar 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..priors.families import Array
from .final import FinalStates
from .testing import CONDITIONAL, Test, read_test

# Common rates that the worst is looked for among, before the best of them is refined.
_NULLS = 401
# A level that is reached but for rounding is kept.
_SLACK = 1e-12


def _totals(states: FinalStates) -> tuple[Any, Any, Any]:
    """S and N of each state, and the number of their pair."""
    wins = states.successes.sum(axis=0, dtype=np.int64)
    made = states.plays.sum(axis=0, dtype=np.int64)
    return wins, made, made * (states.horizon + 1) + wins


def _null_weight(states: FinalStates) -> Array:
    """g B(S + 1, N - S + 1): how likely a state is if one uniform rate is that of all arms."""
    from scipy.special import betaln

    wins, made, _ = _totals(states)
    own = betaln(states.successes + 1, states.plays - states.successes + 1).sum(axis=0)
    return np.asarray(states.weight * np.exp(betaln(wins + 1, made - wins + 1) - own))


def worst_null(states: FinalStates) -> Callable[[Array], float]:
    """A function of chosen states (1 or 0, or with a probability): how likely one of them is at the worst common rate."""
    from scipy.optimize import minimize_scalar
    from scipy.special import betaln, xlog1py, xlogy

    weight = _null_weight(states)
    known, group = np.unique(_totals(states)[2], return_inverse=True)
    made, wins = np.divmod(known, states.horizon + 1)
    losses = made - wins
    scale = betaln(wins + 1, losses + 1)

    def likely(nulls: Array) -> Array:
        rates = nulls[:, None]
        return np.asarray(np.exp(xlogy(wins, rates) + xlog1py(losses, -rates) - scale))

    nulls = np.sin(np.linspace(0.0, np.pi / 2.0, _NULLS)) ** 2
    on_grid = likely(nulls)

    def largest(chosen: Array) -> float:
        sums = np.bincount(group, weight * chosen, len(wins))
        grid = on_grid @ sums
        best = float(grid.max())
        # Every local maximum on the grid that might be the largest is refined.
        for place in map(int, np.flatnonzero(grid >= 0.98 * best)):
            first, last = max(place - 1, 0), min(place + 1, _NULLS - 1)
            if grid[place] < grid[first : last + 1].max():
                continue
            refined = minimize_scalar(
                lambda rate: -float((likely(np.array([rate])) @ sums)[0]),
                bounds=(nulls[first], nulls[last]),
                method="bounded",
                options={"xatol": 1e-10},
            )
            best = max(best, -float(refined.fun))
        return best

    return largest


def own_rejections(test: Test, states: FinalStates, level: float) -> tuple[Array, float | None]:
    """The states in which the design's own test rejects, and its critical value if there is one."""
    assert test.statistic is not None
    # Statistics that are equal but for rounding are equal.
    value = np.round(test.statistic(states.plays, states.successes), 10)
    if test.name.partition(":")[0] == CONDITIONAL:
        return _conditional(states, value, level), None
    return _unconditional(states, value, level)


def own_p_value(
    states: FinalStates, plays: Sequence[int], successes: Sequence[int], test: str
) -> float:
    """The p-value of the design's own test for one outcome (see FinalStates.p_value)."""
    read = read_test(test, states.arms)
    if read.statistic is None:
        raise InputError(f"the design's own tests are exact and exact-conditional, not {test}")
    if not len(plays) == len(successes) == states.arms:
        raise InputError(f"an outcome is patients and successes of each of the {states.arms} arms")
    at = np.flatnonzero(
        (states.plays == np.array(plays)[:, None]).all(axis=0)
        & (states.successes == np.array(successes)[:, None]).all(axis=0)
        & (states.weight > 0.0)
    )
    if not len(at):
        raise InputError(
            f"{states.policy} with {states.horizon} patients never ends with "
            f"{', '.join(map(str, plays))} patients and {', '.join(map(str, successes))} successes"
        )
    value = np.round(read.statistic(states.plays, states.successes), 10)
    extreme = (value >= value[at[0]]).astype(np.float64)
    if read.name.partition(":")[0] != CONDITIONAL:
        return min(worst_null(states)(extreme), 1.0)
    if value[at[0]] <= 0.0:
        return 1.0
    _, _, pair = _totals(states)
    alike = pair == pair[at[0]]
    weight = _null_weight(states)[alike]
    return float(weight @ extreme[alike] / weight.sum())


def _conditional(states: FinalStates, value: Array, level: float) -> Array:
    _, _, pair = _totals(states)
    order = np.lexsort((-value, pair))
    weight, pair, value = _null_weight(states)[order], pair[order], value[order]
    begins = np.flatnonzero(np.concatenate([[True], np.diff(pair) != 0]))
    sizes = np.diff([*begins, len(pair)])
    totals = np.add.reduceat(weight, begins)
    rejects = np.zeros(len(pair))
    for begin, size, total in zip(begins, sizes, totals, strict=True):
        some = slice(begin, begin + size)
        tail = np.cumsum(weight[some]) / total
        # Equal statistics have the tail of their last.
        last = np.searchsorted(-value[some], -value[some], side="right") - 1
        # Where no outcome is more extreme than another nothing is shown.
        rejects[some] = (tail[last] <= level * (1.0 + _SLACK)) & (value[some] > 0.0)
    found = np.empty(len(pair))
    found[order] = rejects
    return found


def _unconditional(states: FinalStates, value: Array, level: float) -> tuple[Array, float]:
    largest = worst_null(states)
    candidates = np.unique(value)
    # The more extreme the critical value, the less likely it is reached: cut in halves.
    low, high = -1, len(candidates)
    while high - low > 1:
        middle = (low + high) // 2
        if largest((value >= candidates[middle]).astype(np.float64)) <= level * (1 + _SLACK):
            high = middle
        else:
            low = middle
    critical = float(candidates[high]) if high < len(candidates) else np.inf
    return (value >= critical).astype(np.float64), critical
