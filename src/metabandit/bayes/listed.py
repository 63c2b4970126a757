"""The optimum over a list of problems with two Bernoulli arms, one of which is met.

The list is a prior whose arms depend on each other: what one brings says which problem it is, and so what
to expect of the other. Counts are still all that matters. Let L(n, s) be how likely a sequence of rewards
with these counts is, on average over the list with its weights, and u(n, s) the same for independent arms with uniform means.
With r = L/u, p_k = (1 + s_k)/(2 + n_k), and W = r V, V being the most that can be expected of the plays that
are left,

    W_T = 0,   W_m = max_k  p_k (r + W)(n + e_k, s + e_k) + (1 - p_k) W(n + e_k, s),

because p_k r(n + e_k, s + e_k)/r(n, s) is the probability of a success. No number here is far from 1 where it
matters, however long play is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..memory import check_memory
from ..priors import Table
from ..priors.families import BERNOULLI, Array
from ..progress import Progress
from .induction import EACH_ONCE, slice_bytes, states

# Steps between two reports.
_STEPS = 16


def is_listed(prior: object) -> bool:
    """Whether a prior is a list of problems with two Bernoulli arms."""
    return isinstance(prior, Table) and prior.family == BERNOULLI and prior.arms == 2


def logarithms(means: Array) -> tuple[Array, Array]:
    """ln mu and ln(1 - mu), finite: means of 0 and 1 leave no state with the logarithm of 0 any weight."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(means), -700.0), np.maximum(np.log1p(-means), -700.0)


def likelihood_ratios(means: Array, n: int) -> Array:
    """[mean, s]: how much more likely s successes of n are with a mean than if all means are."""
    from scipy.special import betaln

    wins, losses = logarithms(means)
    s = np.arange(n + 1)
    logarithm = np.outer(wins, s) + np.outer(losses, n - s) - betaln(1.0 + s, 1.0 + n - s)
    return np.asarray(np.exp(logarithm))


def ratio_slice(prior: Table, made: int, offset: Any, stride: Any) -> Array:
    """r of all states after `made` plays, laid out as kernels/forward.py has them."""
    problems, place = np.unique(prior.means, axis=0, return_inverse=True)
    weights = np.bincount(place.ravel(), prior.weights)[:, None]
    ratio = np.zeros(offset[-1])
    for n1 in range(made + 1):
        first = likelihood_ratios(problems[:, 0], n1)
        second = likelihood_ratios(problems[:, 1], made - n1)
        block = ratio[offset[n1] : offset[n1] + (n1 + 1) * stride[n1]]
        block.reshape(n1 + 1, stride[n1])[:, : made - n1 + 1] = (first * weights).T @ second
    return ratio


def solve_listed(
    prior: Table, horizon: int, *, start: str, progress: Progress | None = None
) -> float:
    """The largest expected reward."""
    from ..kernels import counts, listed

    check_memory(
        2 * slice_bytes(2, horizon, mirror=False),
        f"the optimum over a table for {horizon} plays",
        "choose a shorter horizon",
    )
    chance = counts.chances((1.0, 1.0), (1.0, 1.0), horizon)
    offset, stride = counts.layout(horizon, False)
    value, ratio = np.zeros(offset[-1]), ratio_slice(prior, horizon, offset, stride)
    begin = 2 if start == EACH_ONCE else 0
    total = states(2, horizon) - states(2, begin)
    last = horizon
    while last > begin:
        first_play = max(begin, last - _STEPS)
        listed.run(first_play, last, value, ratio, offset, stride, chance)
        last = first_play
        if progress is not None:
            progress(states(2, horizon) - states(2, last), total)
    if not begin:
        return float(value[0])
    # One play of each arm: with uniform means each outcome has probability 1/4.
    rows = offset[1] + stride[1] * np.arange(2)
    after = 0.25 * sum(value[row : row + 2].sum() for row in rows)
    return float(prior.average(prior.means.sum(axis=1)) + after)
