"""How candidates are judged: exactly, on fresh problems, or by the paper's protocol.

A judge gives every candidate of a generation the same problems with the same luck. Where exact
evaluation applies there is no noise at all; otherwise each generation meets problems that no earlier
one has seen, and more of them as soon as their noise hides the differences between the candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from ..engine import exact
from ..engine.objectives import Objective
from ..engine.population import Population, blocks, has_posterior, play_population
from ..errors import IndexFault, InputError
from ..policies import Plan, Policy
from ..priors import Prior, Table
from ..priors.families import Array
from ..workers import Workers

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
    """The problems of the paper's protocol: so many, drawn once, with so many runs each."""

    problems: int = 100
    runs: int = 100


@dataclass(frozen=True)
class Judgement:
    """What a generation is worth, and how surely.

    values: one a candidate; infinite for one that cannot be played
    noise: the standard error of a difference between candidates; 0 if there is none
    problems, runs: on which they were judged; 0 problems if none were drawn
    work: plays times arms that it took, or the states that exact evaluation went through
    """

    values: Array
    noise: float
    problems: int
    runs: int
    work: float


def judging_method(example: Policy, prior: Prior, horizon: int, objective: Objective) -> str:
    """How candidates like this one are judged, unless by the paper's protocol (see Judge)."""
    if exact.obstacle(prior, [(example, example.plan(prior, horizon))], horizon) is not None:
        return SIMULATED
    if objective.mean:
        return EXACTLY if exact.cost(prior, horizon) <= _EXACT_SECONDS else SIMULATED
    seconds = exact.cost(prior, horizon, _FIRST_PROBLEMS)
    return ON_PROBLEMS if prior.arms == 2 and seconds <= 2 * _EXACT_SECONDS else SIMULATED


class Judge:
    """Judges candidates for one prior, horizon and objective.

    method: EXACTLY (the mean over the prior), ON_PROBLEMS (exact on each of the problems drawn, or
        on all of a table) or SIMULATED
    training: the problems of the paper's protocol, drawn once; else they are fresh
    episodes: how many are simulated at first
    """

    def __init__(
        self,
        objective: Objective,
        prior: Prior,
        horizon: int,
        *,
        reference: Policy | None,
        method: str,
        seed: int,
        workers: Workers,
        training: Training | None = None,
        episodes: int | None = None,
    ) -> None:
        self.objective = objective
        self.prior = prior
        self.horizon = horizon
        self.reference = reference
        if reference is not None:
            reference.prepare(prior, horizon, None)
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
            self.problems = max(2, (episodes or _FIRST_EPISODES) // self.runs)
        elif method == ON_PROBLEMS:
            self.problems = len(prior.means) if isinstance(prior, Table) else _FIRST_PROBLEMS
        self.workers = workers.able_to_send(
            0 if reference is None else reference.plan(prior, horizon).size
        )
        # The same object for all generations, so that a worker makes it once.
        self._population = partial(
            Population,
            prior,
            horizon,
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
        plans: list[tuple[Policy, Plan]] = []
        places = []
        for place, candidate in enumerate(candidates):
            if candidate is None:
                continue
            try:
                plans.append((candidate, candidate.plan(self.prior, self.horizon)))
                places.append(place)
            except InputError:
                continue
        values = np.full(len(candidates), np.inf)
        noise = 0.0
        if plans and self.method == EXACTLY:
            values[places] = self._exact_regret(plans).mean(axis=1)
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
        if self.method == SIMULATED:
            return float(self.problems * self.runs * self.horizon * self.prior.arms)
        return 6e8 * exact.cost(self.prior, self.horizon, self.problems)

    def _exact_regret(
        self, plans: Sequence[tuple[Policy, Plan]], drawn: tuple[int, int] | None = None
    ) -> Array:
        """Regret or simple regret, [policy, problem]; infinite where an index is not finite.

        Unless the prior is a table, or problems are drawn, there is one column, the mean over the prior.
        """
        results = exact.evaluate_population(
            plans,
            self.prior,
            self.horizon,
            simple=self.objective.simple,
            workers=self.workers,
            drawn=drawn,
        )
        nothing = np.full(self.problems or 1, np.inf)
        return np.stack([nothing if isinstance(item, IndexFault) else item for item in results])

    def _seed(self, generation: int) -> int:
        """A stream of its own for each generation, and none that a report will use."""
        return (self.seed * 1_000_003 + 2 * generation + 1) % 2**62

    def _cuts(self) -> list[int]:
        """The problems in parts, from which noise is estimated."""
        cuts = np.linspace(0, self.problems, _PARTS + 1).astype(int)
        return sorted(set(cuts.tolist()))

    def _means(self, plans: Sequence[tuple[Policy, Plan]], seed: int) -> tuple[Array, Array]:
        """The mean regret of each policy; the same for each part of the problems, [part, policy]."""
        cuts = self._cuts()
        finer = blocks(self.prior, self.horizon, self.runs, cuts)
        sums = play_population(
            self._population, plans, finer, seed=seed, workers=self.workers, sums=True
        )
        begins = np.searchsorted(finer, cuts[:-1])
        parts = np.add.reduceat(sums, begins, axis=1)
        return parts.sum(axis=1) / self.problems, (parts / np.diff(cuts)).T

    def _by_problem(self, plans: Sequence[tuple[Policy, Plan]], seed: int) -> tuple[Array, Array]:
        """The values of policies on all problems and on each part of them, [part, policy]."""
        every = list(plans)
        if self.reference is not None:
            every.append((self.reference, self.reference.plan(self.prior, self.horizon)))
        if self.method == ON_PROBLEMS:
            known = isinstance(self.prior, Table)
            regret = self._exact_regret(every, None if known else (seed, self.problems))
        else:
            regret = play_population(
                self._population, every, [0, self.problems], seed=seed, workers=self.workers
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
