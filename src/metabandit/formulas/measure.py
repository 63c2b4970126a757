"""What the best classes are worth on problems that the search never saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine import costs
from ..engine.programs import ManyPrograms
from ..engine.task import Task, stream
from ..priors.families import Array
from .classes import Ints
from .strategies import ExactSearch

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
# Of what is left of a time limit; and the episodes on which speed is measured.
_SHARE = 0.4
_FEW = 64
# Parts in which it is done, so that progress can be told.
_PARTS = 20


def measure_classes(
    task: Task,
    programs: ManyPrograms,
    which: Ints,
    announce: Callable[[str], None],
    progress: Callable[[int, int], None],
) -> Ranking:
    """Classes by their value of the objective.

    Of classes that play alike, the first stays; those that cannot be played go.
    """
    prior, horizon = task.prior, task.horizon

    def parts(count: int) -> Iterator[tuple[int, int]]:
        size = -(-count // _PARTS)
        for begin in range(0, count, size):
            progress(begin, count)
            yield begin, min(begin + size, count)

    def tell(seconds: float, how: str) -> None:
        if seconds > _PATIENCE:
            announce(f"measuring the {len(which):,} best again, {how} ...")

    limit = task.time_limit
    seconds = len(which) * costs.program_seconds(prior, horizon) / costs.CORES
    within = min(_EXACT_SECONDS * task.effort, _SHARE * limit.left)
    if ExactSearch.obstacle(task) is None and seconds <= within:
        tell(seconds, "exactly")
        found = [
            programs.exact_regret(which[begin:end], points=[horizon], with_choices=True)
            for begin, end in parts(len(which))
        ]
        regret, _, choices = map(np.concatenate, zip(*found, strict=True))
        return _ranked(which, regret, regret, np.zeros(len(which)), choices)
    runs = 1 if task.objective.mean else _RUNS
    problems = _problems(task, len(which), runs)
    if limit.given:
        # A few problems tell how many there is time for.
        begun, few = limit.passed, max(1, _FEW // runs)
        programs.moments(which, 0, few, runs=runs, seed=0)
        fit = int(few * _SHARE * limit.left / max(limit.passed - begun, 1e-9))
        problems = max(2, min(problems, fit))
    seconds = costs.simulation_seconds(prior, horizon, len(which) * problems * runs)
    tell(seconds / task.workers.slots, f"on {problems:,} fresh problems")
    values, means, errors = _simulate(task, programs, which, parts, problems, runs)
    # With the same rewards, policies that play alike have the same sums to the last bit.
    alike = np.array([hash(item) for item in zip(values, means, errors, strict=True)])
    return _ranked(which, values, means, errors, alike)


def _simulate(
    task: Task,
    programs: ManyPrograms,
    which: Ints,
    parts: Callable[[int], Iterator[tuple[int, int]]],
    problems: int,
    runs: int,
) -> tuple[Array, Array, Array]:
    """Values of the objective, mean regrets and their standard errors, on fresh problems."""
    objective = task.objective
    fresh: dict[str, Any] = {"runs": runs, "seed": stream(task.seed, 2)}
    if objective.mean:
        means, errors = _together(
            [
                (end - begin, *programs.moments(which, begin, end, **fresh))
                for begin, end in parts(problems)
            ]
        )
        if not objective.simple:
            return means, means, errors
        simple = [programs.moments(which, *part, simple=True, **fresh) for part in parts(problems)]
        values = sum((sums for sums, _ in simple), np.zeros(1)) / problems
        return values, means, errors
    regret = np.concatenate(
        [programs.regret(which, *part, **fresh) for part in parts(problems)], axis=1
    )
    with np.errstate(invalid="ignore"):
        means, errors = regret.mean(axis=1), regret.std(axis=1, ddof=1) / np.sqrt(problems)
    reference = None
    if task.reference is not None:
        reference = programs.regret_of_other(task.reference, problems, **fresh)
    return objective.value(regret, reference), means, errors


def _together(parts: list[tuple[int, Array, Array]]) -> tuple[Array, Array]:
    """Mean and standard error over all problems, from the problems, sums and standard errors of parts."""
    count = sum(size for size, _, _ in parts)
    mean = sum((sums for _, sums, _ in parts), np.zeros(1)) / count
    squares = np.zeros(len(mean))
    for size, sums, error in parts:
        squares += size * (size - 1) * error**2 + size * (sums / size - mean) ** 2
    return mean, np.sqrt(squares / max(count - 1, 1) / count)


def _problems(task: Task, classes: int, runs: int) -> int:
    """How many fresh problems the effort allows."""
    work = classes * task.horizon * task.prior.arms * runs
    problems = int(min(_MOST_EPISODES, _WORK * task.effort / work, _MOST_NUMBERS / classes))
    if runs > 1:
        problems = min(problems, _MOST_SINGLE)
    return max(problems, int(_LEAST_PROBLEMS * min(task.effort, 1.0)), 2)


def _ranked(
    which: Ints, values: Array, means: Array, errors: Array, alike: npt.NDArray[np.generic]
) -> Ranking:
    """Best first; one of each that play alike."""
    _, first = np.unique(alike, return_index=True)
    playable = [place for place in first.tolist() if np.isfinite(means[place])]
    order = np.array(sorted(playable, key=lambda place: (values[place], place)), np.int64)
    return which[order], values[order], means[order], errors[order]
