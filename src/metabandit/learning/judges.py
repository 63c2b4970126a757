"""How candidates are judged: exactly, on fresh problems, or by the paper's protocol.

A judge gives every candidate of a generation the same problems with the same rewards. Where exact
evaluation applies there is no noise at all; otherwise each generation meets problems that no earlier
one has seen, and more of them as soon as their noise hides the differences between the candidates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise, product

import numpy as np

from ..engine import costs, exact
from ..engine.engine import Engine
from ..engine.simulated import Sampling, coarse_obstacle, has_posterior
from ..engine.task import Task
from ..errors import InputError
from ..policies import Plan, Policy
from ..priors import Prior, Table
from ..priors.families import Array
from ..trials import power_of

EXACTLY, ON_PROBLEMS, SIMULATED = "exact", "problems", "simulated"
_FIRST_PROBLEMS = 1000
_MOST_PROBLEMS = 20_000
# Runs of a problem where the regret of each single problem matters.
_RUNS = 100
# At first candidates differ by much more than the noise of few episodes; where the regret of each single
# problem matters, that takes more of them.
_FIRST_EPISODES, _FIRST_OF_RUNS = 1000, 20_000
_MOST_EPISODES = 4_000_000
# More problems are drawn once the noise is three times the differences among the better half: many generations
# on few problems, fresh ones each time, come further than few generations on many.
_NOISE_SHARE = 3.0
_GROWTH = 1.25
# Plays times arms from which the clock is coarse, and its growth: regret is then right to 1 %.
_LONG_CLOCK = 40_000
_COARSE = 0.02
# Problems on which speed is measured, at most; as many as this work allows, and a few at least.
_TRIED, _TRIED_WORK, _FEWEST = 512, 5e7, 16
# Generations that no search comes to: fresh problems.
CHOOSING = 2**31
_NO_GENERATION = 2**31 + 1
# Noise is estimated from the objective on this many parts of the problems.
_PARTS = 8


def judged_on(task: Task) -> Prior:
    """The problems of the objective: those of the prior, or a grid of success rates."""
    rates, prior = task.objective.grid, task.prior
    if rates is None:
        return prior
    if not prior.family.binary:
        raise InputError(f"a grid of success rates is for arms that pay 0 or 1, not for {prior}")
    if prior.arms > 2:
        raise InputError(f"the worst over a grid is computed for 2 arms, not {prior.arms}")
    return Table(list(product(rates, repeat=prior.arms)))


def judging_method(example: Policy, task: Task) -> str:
    """How candidates like this one are judged, unless by the paper's protocol (see Judge)."""
    prior, horizon, feedback = judged_on(task), task.horizon, task.feedback
    why = exact.obstacle(prior, [example.plan(task.prior, horizon)], horizon, feedback)
    if task.objective.exact:
        if why is not None:
            raise InputError(
                f"the objective {task.objective.name} is computed exactly, but {why}; choose another "
                f"objective"
            )
        return EXACTLY if task.objective.grid is None else ON_PROBLEMS
    if why is not None:
        return SIMULATED
    if task.objective.mean:
        quick = costs.exact_seconds(prior, horizon, feedback=feedback) <= costs.EXACT_SECONDS
        return EXACTLY if quick else SIMULATED
    seconds = costs.exact_seconds(prior, horizon, _FIRST_PROBLEMS, feedback=feedback)
    return ON_PROBLEMS if prior.arms == 2 and seconds <= 2 * costs.EXACT_SECONDS else SIMULATED


def coarse_growth(example: Policy, task: Task) -> float:
    """The growth of the clock on which candidates like this one are judged; 0 for one play at a time.

    A coarse clock pays where most plays are of arms that are well known (docs/learning.md).
    """
    if task.horizon * task.prior.arms < _LONG_CLOCK:
        return 0.0
    plan = example.plan(task.prior, task.horizon)
    return 0.0 if coarse_obstacle(task.prior, plan, task.feedback) is not None else _COARSE


class Judge:
    """Judges candidates for a task; task.episodes is how many are simulated at first.

    method: EXACTLY (the mean over the prior), ON_PROBLEMS (exact on each of the problems drawn, or
        on all of a table) or SIMULATED
    training: the number of problems of the paper's protocol, drawn once, and of the runs of each;
        None draws fresh problems for each generation
    growth: of a coarse clock (see `coarse_growth`), 0 for one play at a time
    """

    def __init__(
        self,
        task: Task,
        method: str,
        *,
        seed: int,
        training: tuple[int, int] | None = None,
        growth: float = 0.0,
    ) -> None:
        prior, objective = judged_on(task), task.objective
        self.task, self.prior, self.objective = task, prior, objective
        self.method, self.seed = method, seed
        # Problems with different weights are drawn from the table, like those of other priors.
        self.listed = isinstance(prior, Table) and prior.even
        self.fixed = training is not None or (method == ON_PROBLEMS and self.listed)
        self.growth = growth
        self.problems, self.runs = training or (0, 1)
        if training is None and method == SIMULATED:
            self.runs = 1 if objective.mean else _RUNS
            first = _FIRST_EPISODES if objective.mean else _FIRST_OF_RUNS
            self.problems = max(2, (task.episodes or first) // self.runs)
        elif method == ON_PROBLEMS:
            self.problems = _FIRST_PROBLEMS
            if isinstance(prior, Table) and prior.even:
                self.problems = len(prior.means)
        self.reference: Plan | None = None
        size = 0
        if task.reference is not None:
            self.reference = task.reference.plan(task.prior, task.horizon)
            size = self.reference.size
        # The same for all generations, so that a worker makes its tools once.
        workers = task.workers.able_to_send(size)
        self.engine = Engine(prior, task.horizon, workers, feedback=task.feedback)
        self.sampling = Sampling(
            runs=self.runs,
            simple=objective.simple,
            posterior=objective.name == "regret"
            and self.runs == 1
            and has_posterior(prior, task.horizon),
            growth=growth,
        )

    @property
    def noisy(self) -> bool:
        """Whether values change with the problems that are drawn."""
        return self.method != EXACTLY and not self.fixed

    @property
    def simulates_mean(self) -> bool:
        """Whether a value is the mean over simulated episodes."""
        return self.method == SIMULATED and self.objective.mean

    def can_judge(self, candidate: Policy) -> bool:
        """Whether this way of judging is for the candidate, too."""
        horizon, feedback = self.task.horizon, self.task.feedback
        plan = candidate.plan(self.task.prior, horizon)
        why = exact.obstacle(self.prior, [plan], horizon, feedback)
        return self.method == SIMULATED or why is None

    def judge(self, candidates: Sequence[Policy | None], generation: int) -> tuple[Array, float]:
        """The values of candidates, infinite where one cannot be played, and their noise.

        None stands for a candidate that does not exist. The noise is the standard error of the
        difference between two candidates, 0 if values are exact.
        """
        values, parts = self.judge_parts(candidates, generation)
        return values, 0.0 if parts is None else _noise(values, parts)

    def judge_parts(
        self, candidates: Sequence[Policy | None], generation: int
    ) -> tuple[Array, Array | None]:
        """The same with the values on each part of the problems, [part, policy]; None if they are exact."""
        plans: list[Plan] = []
        places = []
        for place, candidate in enumerate(candidates):
            if candidate is None:
                continue
            with suppress(InputError):
                plan = candidate.plan(self.task.prior, self.task.horizon)
                plan.exceptions(self.task.horizon)  # a rate that is no probability is refused here
                plans.append(plan)
                places.append(place)
        values = np.full(len(candidates), np.inf)
        if not plans:
            return values, None
        if self.method == EXACTLY:
            regret = self.engine.exact_regret(plans, simple=self.objective.simple)
            values[places] = regret.mean(axis=1)
            if self.objective.power is not None:
                lacking = np.maximum(self.objective.power.least - self.power(plans), 0.0)
                values[places] += self.objective.power.penalty * self.task.horizon * lacking
            return values, None
        seed = self._seed(0 if self.fixed else generation)
        values[places], known = (self._means if self.simulates_mean else self._by_problem)(
            plans, seed
        )
        if not self.noisy:
            return values, None
        parts = np.full((len(known), len(candidates)), np.inf)
        parts[:, places] = known
        return values, parts

    def pace(self, example: Policy) -> float:
        """The seconds that a candidate like this one takes per problem, or in all if there are none."""
        workers, limit = self.task.workers, self.task.time_limit
        arms, horizon, problems = self.task.prior.arms, self.task.horizon, self.problems
        each = costs.coarse_plays(arms, horizon, self.growth) * arms * self.runs
        self.problems = min(problems, max(_FEWEST, min(_TRIED, int(_TRIED_WORK / each))))
        copies = workers.slots
        begun = limit.passed
        self.judge([example] * copies, _NO_GENERATION)
        seconds = (limit.passed - begun) / copies
        tried, self.problems = max(self.problems, 1), problems
        return seconds / tried

    def power(self, plans: Sequence[Plan]) -> Array:
        """The power of policies at the success rates of the objective."""
        wanted = self.objective.power
        assert wanted is not None
        return power_of(
            plans, wanted.rates, horizon=self.task.horizon, test=wanted.test, level=wanted.level,
            feedback=self.task.feedback, threads=self.task.workers.threads,
        )  # fmt: skip

    def work(self, candidates: int) -> float:
        """Plays times arms that a generation takes, or what exact evaluation takes in that time."""
        prior, horizon = self.prior, self.task.horizon
        if self.method == SIMULATED:
            plays = costs.coarse_plays(prior.arms, horizon, self.growth)
            return float(candidates * self.problems * self.runs * plays * prior.arms)
        feedback = self.task.feedback
        each = costs.exact_seconds(prior, horizon, self.problems, feedback=feedback)
        return candidates * costs.SIMPLE_PLAYS * each

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
        every = [*plans] if self.reference is None else [*plans, self.reference]
        if self.method == ON_PROBLEMS:
            drawn = None if self.listed else (seed, self.problems)
            regret = self.engine.exact_regret(every, simple=self.objective.simple, drawn=drawn)
        else:
            regret = self.engine.simulated_regret(
                every, [0, self.problems], seed=seed, sampling=self.sampling
            )
        # One column per problem, also of the reference, if there is one.
        regret, other = regret[: len(plans)], regret[len(plans) :]

        def value(some: slice) -> Array:
            return self.objective.value(regret[:, some], other[0, some] if len(other) else None)

        parts = np.array([value(slice(low, high)) for low, high in pairwise(self._cuts())])
        # A policy that cannot be played would lose against any reference, which is a finite value.
        parts[:, ~np.isfinite(regret).all(axis=1)] = np.inf
        return value(slice(None)), parts

    def adapt(self, values: Array, noise: float) -> None:
        """Draw more problems from now on if noise hides the differences that matter."""
        if not self.noisy:
            return
        finite = np.sort(values[np.isfinite(values)])
        better = finite[: max(2, len(finite) // 2)]
        signal = float(np.sqrt(2.0) * better.std()) if len(better) > 1 else 0.0
        most = _MOST_EPISODES // self.runs if self.method == SIMULATED else _MOST_PROBLEMS
        if noise > _NOISE_SHARE * signal:
            self.problems = min(math.ceil(self.problems * _GROWTH), max(most, self.problems))


def difference_errors(parts: Array) -> Array:
    """The standard errors of each policy's difference from the first; parts: [part, policy]."""
    with np.errstate(invalid="ignore"):
        apart = parts - parts[:, :1]
        errors = apart.std(axis=0, ddof=1) / np.sqrt(len(parts))
    return np.where(np.isfinite(errors), errors, 0.0)


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
