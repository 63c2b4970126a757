"""What is computed for each design of a trial: its final states, when it stops, and when it rejects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine.results import MONTE_CARLO
from ..engine.simulated import Sampling, Simulation, feedback_obstacle
from ..engine.states import Counts
from ..engine.threads import in_order, in_threads
from ..errors import InputError
from ..feedback import Feedback
from ..memory import check_memory
from ..policies import Plan, Progress
from ..priors import Prior, Table
from ..priors.families import Array
from ..settings import check_threads
from .critical import own_rejections, worst_null
from .final import FinalStates, Rates, run_plan
from .measures import Characteristics, measure
from .stopping import OBRIEN_FLEMING, p_values, read_boundary, shape
from .testing import CONDITIONAL, TWO_SIDED, Test

EPISODES = 100_000
# Simulated trials that are played at once.
_AT_ONCE = 65_536


def read_stopping(
    test: Test | None,
    level: float,
    looks: tuple[int, ...],
    boundary: str | Sequence[float] | None,
) -> dict[str, tuple[float, ...]]:
    """How a trial may stop, as fields of `Work`: `levels`, or the `shape` of an exact boundary."""
    if len(looks) == 1:
        if boundary is not None:
            raise InputError(
                "a boundary is for looks before the end: say how often to look (--look-every 25)",
                about="boundary",
            )
        return {}
    if test is None:
        raise InputError("a trial stops early by a test: give one")
    if test.rule is not None or test.above is not None:
        if boundary is not None:
            raise InputError(
                f"the test {test.name} stops by itself; leave the boundary out", about="boundary"
            )
        return {}
    read = read_boundary(OBRIEN_FLEMING if boundary is None else boundary, looks)
    if test.is_exact:
        if test.name.partition(":")[0] == CONDITIONAL or not isinstance(read, str):
            raise InputError(
                "early stopping by the design's own test is for the test exact, with the boundary "
                "pocock or obrien-fleming"
            )
        return {"shape": tuple(shape(read, looks).tolist())}
    if isinstance(read, str):
        two_sided = test.alternative == TWO_SIDED
        read = tuple(p_values(read, looks, level, two_sided=two_sided).tolist())
    return {"levels": read}


@dataclass(frozen=True)
class Work:
    """What is computed for each design.

    looks: the numbers of patients at which it may end
    levels, shape: the p-value to stop at at each look, or the shape of an exact boundary
    imbalance, fewer_than: see `measure`
    """

    horizon: int
    feedback: Feedback
    points: Sequence[Rates]
    test: Test | None
    level: float
    looks: tuple[int, ...]
    levels: tuple[float, ...] | None = None
    shape: tuple[float, ...] | None = None
    imbalance: float = 0.1
    fewer_than: int | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """What `measure` is asked about."""
        return {"imbalance": self.imbalance, "fewer_than": self.fewer_than, "looks": self.looks}

    def exactly(self, plan: Plan) -> tuple[list[Characteristics], float | None]:
        """The characteristics at all points, and the critical value of the design's own test."""
        states, rejects, critical = self.states(plan)
        return measure(states, self.points, rejects, **self.asked), critical

    def states(self, plan: Plan) -> tuple[FinalStates, Array | None, float | None]:
        """The final states, in which of them the test rejects, and its critical value."""
        if self.test is None:
            return self._run(plan, None), None, None
        if self.shape is not None:
            return self._scaled(plan)
        if self.test.is_exact:
            states = self._run(plan, None)
            rejects, critical = own_rejections(self.test, states, self.level)
            return states, rejects, critical
        states = self._run(plan, self._stops)
        made = states.plays.sum(axis=0)
        rejects = np.zeros(len(made))
        for number, look in enumerate(self.looks):
            some = made == look
            rejects[some] = self._rejects(number, states.plays[:, some], states.successes[:, some])
        return states, rejects, None

    def _run(self, plan: Plan, stops: Any) -> FinalStates:
        arms = plan.counts.shape[1]
        return run_plan(plan, arms, self.horizon, self.feedback, self.looks, stops)

    def _rejects(self, look: int, plays: Counts, successes: Counts) -> Array:
        assert self.test is not None
        level = self.level if self.levels is None else self.levels[look]
        return self.test.rejects(plays, successes, level)

    def _stops(self, look: int, plays: Counts, successes: Counts) -> Any:
        rejects = self._rejects(look, plays, successes)
        if ((rejects > 0.0) & (rejects < 1.0)).any():
            raise InputError("a trial that may stop early needs a test that rejects or does not")
        return rejects > 0.0

    def _scaled(self, plan: Plan) -> tuple[FinalStates, Array, float]:
        """The smallest multiple of the boundary at which the level holds, whatever the common rate."""
        assert self.test is not None
        assert self.test.statistic is not None
        assert self.shape is not None
        statistic, form = self.test.statistic, self.shape

        def at(scale: float) -> tuple[FinalStates, Array, float]:
            def stops(look: int, plays: Counts, successes: Counts) -> Any:
                return statistic(plays, successes) >= scale * form[look] - 1e-10

            states = self._run(plan, stops)
            made = states.plays.sum(axis=0)
            reached = np.select([made == look for look in self.looks], form)
            value = statistic(states.plays, states.successes)
            return states, (value >= scale * reached - 1e-10).astype(np.float64), scale

        low, high = 0.0, 16.0
        while high - low > 1e-4:
            middle = 0.5 * (low + high)
            states, rejects, _ = at(middle)
            if worst_null(states)(rejects) <= self.level:
                high = middle
            else:
                low = middle
        return at(high)

    def simulated(
        self, plan: Plan, episodes: int, seed: int, threads: int, tell: Callable[[int], None]
    ) -> tuple[list[Characteristics], None]:
        """The same from simulated trials; `tell` is called with the number of those that are done."""
        if (why := feedback_obstacle(plan, self.feedback)) is not None:
            raise InputError(f"{plan.name} cannot be played with {self.feedback}: {why}")
        found = []
        for point in self.points:
            if isinstance(point, Prior):
                raise InputError(
                    f"simulated trials have given success rates, not those of {point}; name them"
                )
            plays, successes, frequency = self._sample(plan, point, episodes, seed, threads, tell)
            states = FinalStates(plan.name, self.horizon, plays, successes, frequency)
            rejects = None
            if self.test is not None:
                rejects = self.test.rejects(plays, successes, self.level)
            (one,) = measure(states, [point], rejects, frequency, **self.asked)
            found.append(replace(one, episodes=episodes))
        return found, None

    def _sample(
        self,
        plan: Plan,
        rates: Sequence[float],
        episodes: int,
        seed: int,
        threads: int,
        tell: Callable[[int], None],
    ) -> tuple[Counts, Counts, Array]:
        """Final counts of simulated trials, each once, and how often they came."""
        arms = len(rates)
        problems = Table([list(rates)])
        simulation = Simulation(
            problems, self.horizon, Sampling(seed=seed), [plan], feedback=self.feedback
        )

        def play(first: int) -> Any:
            last = min(first + _AT_ONCE, episodes)
            final = np.empty((2, arms, last - first), np.float32)
            drawn, regret = simulation.problems(first, last), np.empty((2, last - first))
            simulation.play(0, drawn, first, regret, final=final)
            return final.reshape(2 * arms, -1).round().astype(np.int32)

        parts = []
        for part in in_order(play, range(0, episodes, _AT_ONCE), threads, 2 * threads):
            parts.append(part)
            tell(part.shape[1])
        counts = np.concatenate(parts, axis=1)
        unique, times = np.unique(counts, axis=1, return_counts=True)
        return unique[:arms], unique[arms:], times / episodes


def run_designs(
    work: Work,
    plans: Sequence[Plan],
    method: str,
    episodes: int,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> list[tuple[list[Characteristics], float | None]]:
    """The characteristics of each design at all points, and the critical value of its own test."""
    several, simulated = check_threads(threads), method == MONTE_CARLO
    told, every = 0, len(plans) * (len(work.points) * episodes if simulated else 1)

    def tell(more: int) -> None:
        nonlocal told
        told += more
        if progress is not None:
            progress(told, every)

    def exactly(plan: Plan) -> tuple[list[Characteristics], float | None]:
        found = work.exactly(plan)
        tell(1)
        return found

    if not simulated:
        return in_threads(exactly, plans, several)
    arms = plans[0].counts.shape[1]
    # Their counts, and what sorting them takes.
    check_memory(
        40 * arms * episodes,
        f"{episodes:,} simulated trials of {arms} arms",
        "choose fewer episodes",
    )
    return [work.simulated(plan, episodes, seed, several, tell) for plan in plans]
