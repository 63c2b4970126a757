"""How candidates are judged: exactly, on fresh problems, or by the paper's protocol.

A judge gives every candidate of a generation the same problems with the same rewards. Where exact
evaluation applies there is no noise at all; otherwise each generation meets problems that no earlier
one has seen, and more of them as soon as their noise hides the differences between the candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..engine import costs, exact
from ..engine.engine import Engine
from ..engine.simulated import Sampling, has_posterior
from ..engine.task import Task
from ..errors import InputError
from ..policies import Plan, Policy
from ..priors import Table
from ..priors.families import Array

EXACTLY, ON_PROBLEMS, SIMULATED = "exact", "problems", "simulated"
# Exact evaluation is used where a candidate takes less than this many seconds.
_EXACT_SECONDS = 0.15
_FIRST_PROBLEMS = 1000
_MOST_PROBLEMS = 20_000
# Runs of a problem where the regret of each single problem matters.
_RUNS = 100
_FIRST_EPISODES = 20_000
_MOST_EPISODES = 4_000_000
# More problems are drawn once the noise is this share of the differences among the better half.
_NOISE_SHARE = 0.7
_GROWTH = 1.1
# Noise is estimated from the objective on this many parts of the problems.
_PARTS = 8


@dataclass(frozen=True)
class Training:
    """The problems of the paper's protocol, drawn once, and the runs of each."""

    problems: int = 100
    runs: int = 100


@dataclass(frozen=True)
class Judgement:
    """What a generation is worth, and how surely.

    values: one per candidate; infinite for one that cannot be played
    noise: the standard error of a difference between candidates; 0 if there is none
    problems, runs: on which they were judged; 0 problems if none were drawn
    work: plays times arms that it took, or the states that exact evaluation went through
    """

    values: Array
    noise: float
    problems: int
    runs: int
    work: float


def judging_method(example: Policy, task: Task) -> str:
    """How candidates like this one are judged, unless by the paper's protocol (see Judge)."""
    prior, horizon = task.prior, task.horizon
    if exact.obstacle(prior, [example.plan(prior, horizon)], horizon) is not None:
        return SIMULATED
    if task.objective.mean:
        quick = costs.exact_seconds(prior, horizon) <= _EXACT_SECONDS
        return EXACTLY if quick else SIMULATED
    seconds = costs.exact_seconds(prior, horizon, _FIRST_PROBLEMS)
    return ON_PROBLEMS if prior.arms == 2 and seconds <= 2 * _EXACT_SECONDS else SIMULATED


class Judge:
    """Judges candidates for a task; task.episodes is how many are simulated at first.

    method: EXACTLY (the mean over the prior), ON_PROBLEMS (exact on each of the problems drawn, or
        on all of a table) or SIMULATED
    training: the problems of the paper's protocol, drawn once; else they are fresh
    """

    def __init__(
        self, task: Task, method: str, *, seed: int, training: Training | None = None
    ) -> None:
        prior, objective = task.prior, task.objective
        self.task = task
        self.objective = objective
        self.method = method
        all_known = method == ON_PROBLEMS and isinstance(prior, Table)
        self.fixed = training is not None or all_known
        self.seed = seed
        self.runs = 1
        self.problems = 0
        if training is not None:
            self.problems, self.runs = training.problems, training.runs
        elif method == SIMULATED:
            self.runs = 1 if objective.mean else _RUNS
            self.problems = max(2, (task.episodes or _FIRST_EPISODES) // self.runs)
        elif method == ON_PROBLEMS:
            self.problems = len(prior.means) if isinstance(prior, Table) else _FIRST_PROBLEMS
        self.reference: Plan | None = None
        size = 0
        if task.reference is not None:
            self.reference = task.reference.plan(prior, task.horizon)
            size = self.reference.size
        # The same for all generations, so that a worker makes its tools once.
        self.engine = Engine(prior, task.horizon, task.workers.able_to_send(size))
        self.sampling = Sampling(
            runs=self.runs,
            simple=objective.simple,
            posterior=objective.name == "regret" and self.runs == 1 and has_posterior(prior),
        )

    @property
    def noisy(self) -> bool:
        """Whether values change with the problems that are drawn."""
        return self.method != EXACTLY and not self.fixed

    def judge(self, candidates: Sequence[Policy | None], generation: int) -> Judgement:
        """The values of candidates; None stands for one that cannot be played."""
        plans: list[Plan] = []
        places = []
        for place, candidate in enumerate(candidates):
            if candidate is None:
                continue
            try:
                plan = candidate.plan(self.task.prior, self.task.horizon)
                plan.exceptions(self.task.horizon)  # a rate that is no probability is refused here
                plans.append(plan)
                places.append(place)
            except InputError:
                continue
        values = np.full(len(candidates), np.inf)
        noise = 0.0
        if plans and self.method == EXACTLY:
            regret = self.engine.exact_regret(plans, simple=self.objective.simple)
            values[places] = regret.mean(axis=1)
        elif plans:
            seed = self._seed(0 if self.fixed else generation)
            if self.method == SIMULATED and self.objective.mean:
                known, parts = self._means(plans, seed)
            else:
                known, parts = self._by_problem(plans, seed)
            values[places] = known
            if self.noisy:
                noise = _noise(known, parts)
        return Judgement(
            values, noise, self.problems, self.runs, float(len(candidates)) * self._work()
        )

    def _work(self) -> float:
        """Plays times arms of one candidate, or what exact evaluation takes in that time."""
        prior, horizon = self.task.prior, self.task.horizon
        if self.method == SIMULATED:
            return float(self.problems * self.runs * horizon * prior.arms)
        return costs.SIMPLE_PLAYS * costs.exact_seconds(prior, horizon, self.problems)

    def _seed(self, generation: int) -> int:
        """A stream of its own for each generation, and none that a report will use."""
        return (self.seed * 1_000_003 + 2 * generation + 1) % 2**62

    def _cuts(self) -> list[int]:
        """The problems in parts, from which noise is estimated."""
        cuts = np.linspace(0, self.problems, _PARTS + 1).astype(int)
        return sorted(set(cuts.tolist()))

    def _means(self, plans: Sequence[Plan], seed: int) -> tuple[Array, Array]:
        """The mean regret of each policy; the same for each part of the problems, [part, policy]."""
        cuts = self._cuts()
        finer = self.engine.blocks(self.runs, cuts)
        sums = self.engine.simulated_regret(
            plans, finer, seed=seed, sampling=self.sampling, sums=True
        )
        begins = np.searchsorted(finer, cuts[:-1])
        parts = np.add.reduceat(sums, begins, axis=1)
        return parts.sum(axis=1) / self.problems, (parts / np.diff(cuts)).T

    def _by_problem(self, plans: Sequence[Plan], seed: int) -> tuple[Array, Array]:
        """The values of policies on all problems and on each part of them, [part, policy]."""
        every = list(plans)
        if self.reference is not None:
            every.append(self.reference)
        if self.method == ON_PROBLEMS:
            drawn = None if isinstance(self.task.prior, Table) else (seed, self.problems)
            regret = self.engine.exact_regret(every, simple=self.objective.simple, drawn=drawn)
        else:
            regret = self.engine.simulated_regret(
                every, [0, self.problems], seed=seed, sampling=self.sampling
            )
        reference = None
        if self.reference is not None:
            regret, reference = regret[:-1], regret[-1]
        parts = np.array(
            [
                self.objective.value(
                    regret[:, low:high], None if reference is None else reference[low:high]
                )
                for low, high in pairwise(self._cuts())
            ]
        )
        # Who cannot be played loses, which is a number, too.
        parts[:, ~np.isfinite(regret).all(axis=1)] = np.inf
        return self.objective.value(regret, reference), parts

    def adapt(self, judgement: Judgement) -> None:
        """Draw more problems from now on if noise hides the differences that matter."""
        if not self.noisy:
            return
        finite = np.sort(judgement.values[np.isfinite(judgement.values)])
        better = finite[: max(2, len(finite) // 2)]
        signal = float(np.sqrt(2.0) * better.std()) if len(better) > 1 else 0.0
        most = _MOST_EPISODES // self.runs if self.method == SIMULATED else _MOST_PROBLEMS
        self.problems = judgement.problems
        if judgement.noise > _NOISE_SHARE * signal:
            self.problems = min(int(judgement.problems * _GROWTH), max(most, judgement.problems))


def _noise(values: Array, parts: Array) -> float:
    """The standard error of the difference between two of the better candidates.

    parts: values on each part of the problems, [part, policy]
    """
    playable = np.isfinite(parts).all(axis=0) & np.isfinite(values)
    if playable.sum() < 2:
        return 0.0
    order = np.argsort(values[playable], kind="stable")
    better = parts[:, playable][:, order[: max(2, len(order) // 2)]]
    apart = better - better.mean(axis=1, keepdims=True)
    variance = apart.var(axis=0, ddof=1).mean() / len(parts)
    return float(np.sqrt(2.0 * variance))
