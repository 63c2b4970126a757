"""Problems by number: those that policies play, and checks of what a prior draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ..errors import InputError
from ..priors import Prior
from ..priors.families import Array

# Problems are drawn in groups of this many, so that the first problems of a large evaluation are
# those of a small one.
GROUP = 8192


def check_problems(prior: Prior, drawn: object, count: int) -> Array:
    """What a prior drew as an array [problem, arm, parameter], or an error."""
    array = np.asarray(drawn, dtype=np.float64)
    expected = (count, prior.arms, len(prior.family.parameters))
    if array.shape != expected:
        raise InputError(
            f"draw of the prior {prior} gave an array of shape {array.shape}, "
            f"not (problems, arms, parameters) = {expected}"
        )
    if not np.isfinite(array).all():
        raise InputError(f"draw of the prior {prior} gave parameters that are not finite")
    low, high = prior.family.support
    means = prior.family.mean(array)
    if not (means.min() >= low and means.max() <= high):
        raise InputError(
            f"draw of the prior {prior} gave arms with means from {means.min():g} to "
            f"{means.max():g}; rewards of the family {prior.family.name} lie between "
            f"{low:g} and {high:g}"
        )
    return array


def regret_means(prior: Prior, parameters: Array) -> Array:
    """The means that regret is counted against, [problem, arm], or an error."""
    means = np.ascontiguousarray(prior.regret_means(parameters), dtype=np.float64)
    if means.shape != parameters.shape[:2] or not np.isfinite(means).all():
        raise InputError(f"regret_means of the prior {prior} must give one finite number per arm")
    return means


def problem_source(prior: Prior, seed: int) -> Callable[[int, int], Array]:
    """A function that gives the problems first, ..., last - 1; group g comes from a stream of its own."""

    @lru_cache(maxsize=1)
    def group(number: int) -> Array:
        rng = np.random.default_rng(np.random.SeedSequence((seed, number)))
        return check_problems(prior, prior.draw(rng, GROUP), GROUP)

    def take(first: int, last: int) -> Array:
        groups = range(first // GROUP, (last - 1) // GROUP + 1)
        drawn = np.concatenate([group(number) for number in groups])
        offset = groups[0] * GROUP
        return np.ascontiguousarray(drawn[first - offset : last - offset])

    return take


def draw_problems(prior: Prior, seed: int, problems: int) -> Array:
    """The parameters of the first problems of a seed: those that policies play."""
    return problem_source(prior, seed)(0, problems)
