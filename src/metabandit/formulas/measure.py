"""What the best classes are worth, on problems that the search never saw."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..engine import exact
from ..engine.batch import Batch
from ..engine.states import LONG
from ..engine.task import Aim, stream
from ..priors import Bernoulli
from ..priors.families import Array
from .strategies import CORES, SPEED

Ints = npt.NDArray[np.int64]
# Classes, best first: numbers, values of the objective, mean regrets, their standard errors.
Ranking = tuple[Ints, Array, Array, Array]

# What it may take: seconds if exact, plays times arms if simulated.
_EXACT_SECONDS = 120.0
_WORK = 2e10
_MOST_EPISODES = 1_000_000
_MOST_NUMBERS = 5e7
_LEAST_PROBLEMS = 2000
# Where each single problem matters.
_RUNS = 100
_MOST_SINGLE = 10_000
_PATIENCE = 2.0


def measure_classes(
    aim: Aim, batch: Batch, which: Ints, announce: Callable[[str], None], *, effort: float
) -> Ranking:
    """Classes by their value of the objective.

    Of classes that play alike, the first stays; those that cannot be played go.
    """

    def tell(seconds: float, how: str) -> None:
        if seconds > _PATIENCE:
            announce(f"measuring the {len(which):,} best anew, {how} ...")

    seconds = len(which) * exact.cost(aim.prior, aim.horizon) / CORES
    known = type(aim.prior) is Bernoulli and aim.prior.arms == 2 and aim.horizon <= LONG
    if known and aim.objective.name == "regret" and seconds <= _EXACT_SECONDS * effort:
        tell(seconds, "exactly")
        regret, _, choices = batch.evaluate(which, points=[aim.horizon], with_choices=True)
        return _ranked(which, regret, regret, np.zeros(len(which)), choices)
    runs = 1 if aim.objective.mean else _RUNS
    work = len(which) * aim.horizon * aim.prior.arms * runs
    problems = int(min(_MOST_EPISODES, _WORK * effort / work, _MOST_NUMBERS / len(which)))
    if runs > 1:
        problems = min(problems, _MOST_SINGLE)
    problems = max(problems, int(_LEAST_PROBLEMS * min(effort, 1.0)), 2)
    tell(problems * work / SPEED / aim.workers.slots, f"on {problems:,} fresh problems")
    fresh = batch.simulation(runs=runs, seed=stream(aim.seed, 2))
    if aim.objective.mean:
        sums, errors = fresh.moments(which, 0, problems)
        values = means = sums / problems
        if aim.objective.simple:
            values = fresh.moments(which, 0, problems, simple=True)[0] / problems
    else:
        regret = fresh.play(which, 0, problems)
        with np.errstate(invalid="ignore"):
            means, errors = regret.mean(axis=1), regret.std(axis=1, ddof=1) / np.sqrt(problems)
        reference = None
        if aim.reference is not None:
            reference = fresh.play_other(aim.reference, problems)
        values = aim.objective.value(regret, reference)
    # With the same luck, policies that play alike have the same sums to the last bit.
    alike = np.array([hash(item) for item in zip(values, means, errors, strict=True)])
    return _ranked(which, values, means, errors, alike)


def _ranked(
    which: Ints, values: Array, means: Array, errors: Array, alike: npt.NDArray[np.generic]
) -> Ranking:
    """Best first; one of each that play alike."""
    _, first = np.unique(alike, return_index=True)
    playable = [place for place in first.tolist() if np.isfinite(means[place])]
    order = np.array(sorted(playable, key=lambda place: (values[place], place)), np.int64)
    return which[order], values[order], means[order], errors[order]
