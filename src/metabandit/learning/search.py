"""The search: stages of generations, each asked for, judged and told; then the pick of the best.

A stage is one space at one horizon. Hard problems are approached in steps, each of which begins where
the one before ended: a shorter horizon first, and Power-1 before Power-2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..engine import costs, evaluate
from ..engine.task import Task, stream
from ..engine.threads import one_blas_thread
from ..errors import InputError
from ..memory import duration
from ..policies import Policy
from ..priors.families import Array
from .judges import CHOOSING, EXACTLY, SIMULATED, Judge, coarse_growth, judging_method
from .measure import least_seconds
from .optimizers.base import Optimizer, make_optimizer
from .spaces import Space
from .trace import Trace, digest, read_values, write_values

# What a search may take, in plays times arms: some minutes on one core for a simple index. Without noise
# it is over after so many judgements for each number to learn.
_WORK, _EVALUATIONS = 1.2e11, 400
# Means of simulated episodes need less: so much for each number, as if there were some more numbers, which is
# half a minute for Power-1; more where noise is larger, because regret is not replaced by its expectation or the
# horizon is long; and more with a time limit, which says itself when the search ends.
_MEAN_WORK, _MORE_NUMBERS, _LONGER_WORK, _NOISIER, _WITH_LIMIT = 1.6e9, 4, 1.25, 2.0, 4.0
# A stage that only prepares the next gets this share of both.
_PREPARATION = 0.25
# From this horizon on a tenth of it is learned first.
_LONG = 400
_REACHED = 1e-7
# A positive factor of all weights changes no policy, and with noise they grow: beyond this they are scaled back.
_FAR = 1e6
_FINALISTS = 6
# Of a time limit, the share after which the search ends, its result is chosen, and, if that was on a
# coarse clock, chosen one play at a time.
_SEARCHED, _CHOSEN, _PLAYED_OUT = 0.6, 0.7, 0.8
# Choosing among noisy finalists takes this share of what the search took.
_CHOICE = 0.1
# Finalists that are played one play at a time, the work for that, and the most and fewest episodes.
_LAST, _LAST_WORK, _MOST_LAST, _FEWEST_LAST = 3, 2e10, 20_000, 256
# With a time limit problems are drawn so that a stage has time for this many generations; the fewest
# with which one is worth its time; and by how much longer than the last one the next may take.
_GENERATIONS = 15
_FEWEST = 500
_LONGER = 1.3


def mean_work(numbers: int, horizon: int, *, noisy: bool) -> float:
    """What a search for so many numbers may take with effort 1 if values are means of simulated episodes."""
    more = _NOISIER if noisy else _LONGER_WORK if horizon >= _LONG else 1.0
    most = _MEAN_WORK * (numbers + _MORE_NUMBERS) * more
    return min(_WORK, most)


@dataclass(frozen=True)
class Generation:
    """How far the search is, for people to see."""

    number: int
    best: float
    noise: float
    space: str
    horizon: int
    problems: int
    share: float
    above_floor: float | None
    prepares: bool
    record: dict[str, Any]

    def __str__(self) -> str:
        text = f"generation {self.number}: {self.best:.5g}"
        if self.noise:
            text += f" on {self.problems:,} problems"
        if self.above_floor is not None:
            text += f", {100 * self.above_floor:.2f} % above the floor"
        return f"first for {self.horizon} plays, {text}" if self.prepares else text


@dataclass(frozen=True)
class CoarseClock:
    """What the clock on which candidates were judged does to the result.

    growth: the share of its plays that an arm is played at once
    coarse, full: the value of the result on that clock, and one play at a time, on the same problems
    standard_error: of their difference
    """

    growth: float
    coarse: float
    full: float
    standard_error: float
    problems: int


@dataclass
class Stage:
    """One space at one horizon; all but the last only prepare the next.

    until: seconds after which it ends, if there is a time limit
    """

    space: Space
    judge: Judge
    last: bool
    center: Array
    deviation: float = 1.0
    until: float = math.inf
    best: tuple[float, Array] | None = None
    centers: list[Array] = field(default_factory=list)
    leaders: list[Array] = field(default_factory=list)

    @property
    def share(self) -> float:
        """How much of what a search may take."""
        return 1.0 if self.last else _PREPARATION

    def candidate(self, coordinates: Array) -> Policy | None:
        """The policy at these coordinates, or None if there is none."""
        try:
            return self.space.policy(coordinates)
        except InputError:
            return None

    def learn_from(self, candidates: Array, values: Array, center: Array) -> None:
        """Keep what may be the result of this stage."""
        position = int(np.argmin(values))
        value = float(values[position])
        if math.isfinite(value) and (self.best is None or value < self.best[0]):
            self.best = (value, candidates[position].copy())
        self.centers.append(center.copy())
        self.leaders.append(candidates[position].copy())

    def result(self) -> Array:
        """The coordinates to go on with: the best if values have no noise, else the middle."""
        if not self.centers:
            return self.center
        if self.judge.noisy:
            return self.centers[-1]
        assert self.best is not None
        return self.best[1]


class Search:
    """A search in progress. `run` yields after each generation; `pick` gives the result.

    training: the problems and runs of the paper's protocol, None for ours
    generations: how many there are, instead of what the effort allows
    """

    def __init__(
        self,
        task: Task,
        space: Space,
        *,
        optimizer: str,
        training: tuple[int, int] | None,
        generations: int | None,
        trace: Trace,
    ) -> None:
        self.task = task
        self.optimizer = optimizer
        self.training = training
        self.generations = generations
        self.trace = trace
        self.generation = 0
        self.evaluations = 0
        self.stopped = ""
        self.coarse: CoarseClock | None = None
        self.stages = list(self._stages(space))

    def _stages(self, space: Space) -> Iterator[Stage]:
        horizons, spaces = [self.task.horizon], [space]
        while self.training is None and horizons[0] >= _LONG:
            horizons.insert(0, horizons[0] // 10)
        while self.training is None and (smaller := spaces[0].smaller()) is not None:
            spaces.insert(0, smaller)
        steps = [(spaces[0], horizon) for horizon in horizons]
        steps += [(bigger, self.task.horizon) for bigger in spaces[1:]]
        for number, (which, horizon) in enumerate(steps):
            shorter = self.task.feedback.scaled(horizon / self.task.horizon)
            task, method = replace(self.task, horizon=horizon, feedback=shorter), SIMULATED
            growth, example = 0.0, which.policy(which.center)
            if self.training is None:
                method = judging_method(example, task)
                growth = coarse_growth(example, task) if method == SIMULATED else 0.0
            seed = stream(task.seed, 1, number)
            judge = Judge(task, method, seed=seed, training=self.training, growth=growth)
            yield Stage(which, judge, number == len(steps) - 1, which.center)

    def _end(self, share: float) -> float:
        """The seconds after which a step ends that may take this share of the time limit: less if measuring needs more."""
        whole = self.task.time_limit.seconds
        return share * min(whole, max(whole - least_seconds(self.task), 0.0) / _PLAYED_OUT)

    def plan_time(self) -> str | None:
        """Give each stage its share of the time limit; says why if there is no time for a generation.

        Of a stage that simulates, fewer problems are drawn rather than too few generations.
        """
        limit = self.task.time_limit
        if not limit.given:
            return None
        last = self.stages[-1]
        optimizer = self._optimizer(last, 0)
        with one_blas_thread:
            population = len(optimizer.ask())
        pace = population * last.judge.pace(last.space.policy(last.space.center))
        shares = [stage.share for stage in self.stages]
        begin, end = limit.passed, self._end(_SEARCHED)
        for number, stage in enumerate(self.stages):
            stage.until = begin + (end - begin) * sum(shares[: number + 1]) / sum(shares)
        time_left = (end - begin) * last.share / sum(shares)
        judge = last.judge
        if judge.method == SIMULATED and self.training is None and self.task.episodes is None:
            fit = max(int(time_left / (_GENERATIONS * pace)), _FEWEST // judge.runs, 2)
            for stage in self.stages:
                stage.judge.problems = min(stage.judge.problems, fit)
        needed = pace * max(judge.problems, 1)
        if needed <= time_left:
            return None
        whole = (limit.seconds - end + begin) * 1.1 + needed * sum(shares)
        shorter = int(self.task.horizon * max(time_left, 0.0) / needed)
        remedy = f"a time limit of {duration(max(whole, 1.0))}"
        if shorter >= 2 * self.task.prior.arms:
            remedy += f", or a horizon of {shorter:,} plays,"
        return (
            f"the time limit leaves no time to learn: a generation of {population} candidates takes about "
            f"{duration(needed)} at {self.task.horizon:,} plays; {remedy} would do"
        )

    def run(self) -> Iterator[Generation]:
        """All stages, one generation after the other."""
        for number, stage in enumerate(self.stages):
            if number:
                before = self.stages[number - 1]
                grown = stage.space.grow(before.space, before.space.normalise(before.result()))
                stage.center = stage.space.normalise(grown)
                stage.deviation = 0.1 if stage.space.degree else 0.3
            yield from self._run_stage(stage, number)

    def _optimizer(self, stage: Stage, number: int) -> Optimizer:
        return make_optimizer(
            self.optimizer,
            stage.center,
            stage.deviation,
            seed=stream(self.task.seed, 2, number),
            # A stage that prepares a noisy one had better not narrow too soon either.
            noisy=self.stages[-1].judge.noisy,
        )

    def _scaled(
        self, optimizer: Optimizer, stage: Stage, number: int, candidates: Array
    ) -> Optimizer:
        """The optimiser, or one that goes on from the same policy with weights of usual size."""
        size = float(np.abs(optimizer.center).max())
        if not (stage.space.degree and stage.judge.noisy and size > _FAR):
            return optimizer
        center = stage.space.normalise(optimizer.center)
        shrunk = float(np.abs(center).max()) / size
        return make_optimizer(
            self.optimizer, center, shrunk * float(np.median(candidates.std(axis=0))),
            seed=stream(self.task.seed, 2, number, self.generation), noisy=True,
        )  # fmt: skip

    def _run_stage(self, stage: Stage, number: int) -> Iterator[Generation]:
        judge, limit = stage.judge, self.task.time_limit
        optimizer = self._optimizer(stage, number)
        taken = 0.0
        self.stopped = ""
        done = judged = 0
        work = 0.0
        while not self.stopped:
            begun, passed = time.monotonic(), limit.passed
            with one_blas_thread:
                candidates = optimizer.ask()
            record = self.trace.recall(self.generation, candidates)
            # What is on record takes no time.
            if record is None and passed + _LONGER * taken > stage.until:
                self.stopped = "time limit"
                return
            if record is None:
                values, noise = judge.judge([stage.candidate(item) for item in candidates], done)
            else:
                values, noise = read_values(record["values"]), record["noise"]
            if not done and not np.isfinite(values).any():
                self._refuse(stage, candidates)
            with one_blas_thread:
                optimizer.tell(candidates, values)
            stage.learn_from(candidates, values, optimizer.center)
            if record is None:
                record = self._record(stage, number, candidates, values, noise)
                record["seconds"] = round(time.monotonic() - begun, 6)
                self.trace.add(record)
                taken = limit.passed - passed
            judge.adapt(values, noise)
            done += 1
            judged += len(candidates)
            work += record["work"]
            self.generation += 1
            self.evaluations += len(candidates)
            optimizer = self._scaled(optimizer, stage, number, candidates)
            share = self._share(stage, done, judged, work)
            self.stopped = self._why_to_stop(stage, share)
            yield self._report(stage, number, values, record, share)

    def _share(self, stage: Stage, done: int, judged: int, work: float) -> float:
        """How much of what a stage may take is spent, from 0 to 1."""
        if self.generations is not None:
            return min(done / self.generations, 1.0)
        effort = self.task.effort * stage.share
        work *= costs.slowness(stage.space.policy(stage.space.center))
        work *= costs.reward_slowness(self.task.prior)
        numbers, judge = len(stage.center), stage.judge
        most = _WORK
        if judge.simulates_mean:
            most = mean_work(numbers, self.task.horizon, noisy=not judge.sampling.posterior)
            if self.task.time_limit.given:
                most *= _WITH_LIMIT
        share = work / most
        if not judge.noisy:
            share = max(share, judged / (_EVALUATIONS * numbers))
        return min(share / effort, 1.0)

    def _why_to_stop(self, stage: Stage, share: float) -> str:
        """Why the stage ends, or nothing if it does not."""
        if self._floor_reached(stage):
            return "optimum reached"
        return "generations" if share >= 1.0 else ""

    def _refuse(self, stage: Stage, candidates: Array) -> None:
        """Say why no candidate of the first generation can be played."""
        example = stage.space.policy(candidates[0])
        evaluate([example], self.task.prior, stage.judge.task.horizon, episodes=1000)
        raise InputError(
            f"no candidate of the space {stage.space.name} can be played: their indices are not "
            f"finite numbers everywhere; guard divisions and logarithms, or give other values to "
            f"begin with (--initial)"
        )

    def _floor_reached(self, stage: Stage) -> bool:
        exact = stage.judge.method == EXACTLY and self.task.objective.name == "regret"
        if not (stage.last and exact) or self.task.least is None or stage.best is None:
            return False
        floor = self.task.least.wait()
        return floor is not None and stage.best[0] <= floor.regret * (1.0 + _REACHED)

    def _record(
        self, stage: Stage, number: int, candidates: Array, values: Array, noise: float
    ) -> dict[str, Any]:
        finite = values[np.isfinite(values)]
        half = finite.size > len(values) / 2
        return {
            "generation": self.generation,
            "stage": number,
            "space": stage.space.name,
            "horizon": stage.judge.task.horizon,
            "values": write_values(values),
            "best": float(finite.min()) if finite.size else None,
            "median": float(np.median(values)) if half else None,
            "noise": noise,
            "problems": stage.judge.problems,
            "runs": stage.judge.runs,
            "work": stage.judge.work(len(candidates)),
            "spread": float(candidates.std(axis=0).mean()),
            "best_candidate": candidates[int(np.argmin(values))].tolist(),
            "center": stage.centers[-1].tolist(),
            "candidates": digest(candidates),
        }

    def _report(
        self, stage: Stage, number: int, values: Array, record: dict[str, Any], share: float
    ) -> Generation:
        if stage.judge.noisy:
            # The best of noisy values is lucky; the better half on average is not.
            best = float(np.sort(values)[: max(1, len(values) // 2)].mean())
        else:
            best = math.inf if stage.best is None else stage.best[0]
        shares = [item.share for item in self.stages]
        done = sum(shares[:number]) + shares[number] * share
        floor = None if self.task.least is None else self.task.least.now()
        above = None
        if floor is not None and stage.last and self.task.objective.name == "regret":
            above = best / floor.regret - 1.0
        return Generation(
            number=self.generation,
            best=best,
            share=done / sum(shares),
            above_floor=above,
            prepares=not stage.last and stage.judge.task.horizon != self.task.horizon,
            record=record,
            **{key: record[key] for key in ("noise", "space", "horizon", "problems")},
        )

    @property
    def judged(self) -> bool:
        """Whether there is a generation of the last stage, which alone is what was asked for."""
        return bool(self.stages[-1].centers)

    def result(self) -> Array:
        """The result so far, without another look: the best if values have no noise, else the middle."""
        stage = self.stages[-1]
        return stage.space.normalise(stage.result())

    def pick(self) -> Array:
        """The result: the best of a few for what was asked, the point that learning began with among them."""
        stage = self.stages[-1]
        judge, space = stage.judge, stage.space
        finalists = [stage.result()]
        if judge.noisy and self.judged:
            recent = [space.normalise(item) for item in stage.centers]
            recent = recent[-max(1, len(recent) // 3) :]
            finalists += [np.mean(recent, axis=0), *stage.leaders[-_FINALISTS:]]
            taken = sum(
                record["work"]
                for record in self.trace.records
                if record["stage"] == len(self.stages) - 1
            )
            each = judge.work(len(finalists) + 1) / judge.problems
            judge.problems = max(2 * judge.problems, int(_CHOICE * taken / each))
        finalists.append(space.center)
        limit = self.task.time_limit
        if limit.given and judge.noisy:
            pace = judge.pace(space.policy(space.center)) * len(finalists)
            fit = int((self._end(_CHOSEN) - limit.passed) / pace)
            judge.problems = max(2, min(judge.problems, fit))
        # Numbers that no generation had: fresh problems.
        values, _ = judge.judge([stage.candidate(item) for item in finalists], CHOOSING)
        best = finalists[int(np.argmin(values))]
        if judge.growth:
            order = np.argsort(values, kind="stable")[:_LAST].tolist()
            places = dict.fromkeys([*order, len(finalists) - 1])
            best = self._play_out([finalists[place] for place in places])
        return space.normalise(best)

    def _play_out(self, finalists: list[Array]) -> Array:
        """The best of finalists from a coarse clock, one play at a time; notes how far the two are apart."""
        stage, limit = self.stages[-1], self.task.time_limit
        judge = Judge(stage.judge.task, SIMULATED, seed=stage.judge.seed)
        work = judge.work(len(finalists)) / judge.problems
        problems = min(_MOST_LAST // judge.runs, int(_LAST_WORK * self.task.effort / work))
        if limit.given:
            pace = judge.pace(stage.space.policy(stage.space.center)) * len(finalists)
            problems = min(problems, int((self._end(_PLAYED_OUT) - limit.passed) / pace))
        judge.problems = stage.judge.problems = max(problems, _FEWEST_LAST // judge.runs, 2)
        candidates = [stage.candidate(item) for item in finalists]
        values, parts = judge.judge_parts(candidates, CHOOSING)
        best = int(np.argmin(values))
        coarse, coarse_parts = stage.judge.judge_parts([candidates[best]], CHOOSING)
        assert parts is not None
        assert coarse_parts is not None
        apart = coarse_parts[:, 0] - parts[:, best]
        self.coarse = CoarseClock(
            growth=stage.judge.growth,
            coarse=float(coarse[0]),
            full=float(values[best]),
            standard_error=float(apart.std(ddof=1) / np.sqrt(len(apart))),
            problems=judge.problems,
        )
        return finalists[best]
