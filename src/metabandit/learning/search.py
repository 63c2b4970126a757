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
from ..policies import Policy
from ..priors.families import Array
from .judges import EXACTLY, SIMULATED, Judge, judging_method
from .optimizers.base import make_optimizer
from .spaces import Space
from .trace import Trace, digest, read_values, write_values

# What a search may take, in plays times arms: some minutes on one core for a simple index.
_WORK = 1.2e11
# With exact values: judgements for each number to learn.
_EVALUATIONS = 400
# A stage that only prepares the next gets this share of both.
_PREPARATION = 0.25
# From this horizon on a tenth of it is learned first.
_LONG = 400
_REACHED = 1e-7
_FINALISTS = 6


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


@dataclass
class Stage:
    """One space at one horizon; all but the last only prepare the next."""

    space: Space
    judge: Judge
    last: bool
    center: Array
    deviation: float = 1.0
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
            if self.training is None:
                method = judging_method(which.policy(which.center), task)
            seed = stream(task.seed, 1, number)
            judge = Judge(task, method, seed=seed, training=self.training)
            yield Stage(which, judge, number == len(steps) - 1, which.center)

    def run(self) -> Iterator[Generation]:
        """All stages, one generation after the other."""
        for number, stage in enumerate(self.stages):
            if number:
                before = self.stages[number - 1]
                grown = stage.space.grow(before.space, before.space.normalise(before.result()))
                stage.center = stage.space.normalise(grown)
                stage.deviation = 0.1 if stage.space.degree else 0.3
            yield from self._run_stage(stage, number)
            if self.stopped == "time limit":
                return

    def _run_stage(self, stage: Stage, number: int) -> Iterator[Generation]:
        judge = stage.judge
        optimizer = make_optimizer(
            self.optimizer,
            stage.center,
            stage.deviation,
            seed=stream(self.task.seed, 2, number),
            noisy=judge.noisy,
        )
        done = judged = 0
        work = 0.0
        while not self.stopped or not done:
            begun = time.monotonic()
            with one_blas_thread:
                candidates = optimizer.ask()
            record = self.trace.recall(self.generation, candidates)
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
            judge.adapt(values, noise)
            done += 1
            judged += len(candidates)
            work += record["work"]
            self.generation += 1
            self.evaluations += len(candidates)
            share = self._share(stage, done, judged, work)
            self.stopped = self._why_to_stop(stage, share)
            yield self._report(stage, number, values, record, share)

    def _share(self, stage: Stage, done: int, judged: int, work: float) -> float:
        """How much of what a stage may take is spent, from 0 to 1."""
        if self.generations is not None:
            return min(done / self.generations, 1.0)
        effort = self.task.effort * stage.share
        slowness = costs.slowness(stage.space.policy(stage.space.center))
        slowness *= costs.reward_slowness(self.task.prior)
        share = work * slowness / (_WORK * effort)
        if not stage.judge.noisy and self.training is None:
            share = max(share, judged / (_EVALUATIONS * effort * len(stage.center)))
        return min(share, 1.0)

    def _why_to_stop(self, stage: Stage, share: float) -> str:
        """Why the stage ends, or nothing if it does not."""
        if self._floor_reached(stage):
            return "optimum reached"
        limit = self.task.time_limit
        # What is on record was done before; a limit is for what comes.
        if limit is not None and self.trace.seconds >= limit:
            if self.generation >= self.trace.replayed:
                return "time limit"
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
        if not (stage.last and exact) or self.task.floor is None or stage.best is None:
            return False
        floor = self.task.floor.wait()
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
        floor = None if self.task.floor is None else self.task.floor.now()
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
    def _reached(self) -> Stage:
        """The last stage that has a generation."""
        return [stage for stage in self.stages if stage.centers][-1]

    def result(self) -> tuple[Space, Array]:
        """The result so far, without another look: the best if values have no noise, else the middle."""
        stage = self._reached
        return stage.space, stage.space.normalise(stage.result())

    def pick(self) -> tuple[Space, Array]:
        """The result; with noise it is the best of a few on fresh problems."""
        stage = self._reached
        judge = stage.judge
        if not judge.noisy:
            return self.result()
        recent = stage.centers[-max(1, len(stage.centers) // 3) :]
        finalists = [stage.centers[-1], np.mean(recent, axis=0), *stage.leaders[-_FINALISTS:]]
        # What learning began with is a candidate to the end.
        finalists.append(stage.space.center)
        judge.problems *= 2
        # Numbers that no generation had: fresh problems.
        values, _ = judge.judge([stage.candidate(item) for item in finalists], 2**31)
        return stage.space, stage.space.normalise(finalists[int(np.argmin(values))])
