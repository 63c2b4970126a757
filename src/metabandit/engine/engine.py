"""The engine: the regret of policies on a task, exactly or by simulation, here or handed out.

One policy or thousands, over the prior or on given problems: `Exact` and `Simulation` compute, this
module cuts the work into jobs, hands them to whoever works, and puts the results together in order.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..bayes.induction import states
from ..checkpoint import Checkpoint
from ..feedback import IMMEDIATE, Feedback
from ..policies import Plan, Progress
from ..priors import Prior
from ..priors.families import Array
from ..workers import Job, Workers, interrupts_later, split
from .costs import (
    MOST_EPISODES,
    at_once,
    check_exact,
    check_simulation,
    exact_seconds,
    simulation_seconds,
)
from .exact import Exact, without_noise
from .limits import TimeLimit
from .results import Evaluation, evaluation_of
from .simulated import MOST_LANES, SUMMED, Sampling, Simulation, Sums
from .threads import in_order

# Steps times arms that a chunk aims at: large enough to keep the overhead small, small enough for
# all cores to share the work.
_CHUNK_WORK = 4_000_000
# Per-problem regrets that are kept in all; beyond, only sums are.
_MOST_KEPT = 100_000_000
# Plays times arms of a policy between two sums, of which there are not many more than _BLOCKS.
_BLOCK_WORK = 2e8
_BLOCKS = 256
# The fewest episodes that are played in step where a time limit is near.
FEW_LANES = 64


def hand_out(
    workers: Workers,
    tool: Callable[[], Any],
    method: str,
    seconds: float,
    count: int,
    arguments: Callable[[slice], tuple[Any, ...]],
) -> list[Any] | None:
    """What workers give for runs of `count` items in order; None if it is not worth handing out."""
    if not workers.worth(seconds, method):
        return None
    jobs = [
        Job(arguments(slice(first, last)), seconds * (last - first) / count)
        for first, last in workers.cut(count, seconds, method)
    ]
    return list(workers.run(tool, method, jobs))


class Engine:
    """Computes regret for one prior and horizon; the same results whoever works."""

    def __init__(
        self,
        prior: Prior,
        horizon: int,
        workers: Workers,
        *,
        feedback: Feedback = IMMEDIATE,
    ) -> None:
        self.prior = prior
        self.horizon = horizon
        self.feedback = feedback
        self.workers = workers
        # The same object for all calls, so that a worker makes its tool once.
        self._tools: dict[Any, Callable[[], Any]] = {}

    def _tool(self, kind: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        key = (kind, arguments, tuple(options.items()))
        options["feedback"] = self.feedback
        made = partial(kind, self.prior, self.horizon, *arguments, **options)
        return self._tools.setdefault(key, made)

    # Many policies -------------------------------------------------------------------------------

    def exact_regret(
        self, plans: Sequence[Plan], *, simple: bool = False, drawn: tuple[int, int] | None = None
    ) -> Array:
        """Exact regret [policy, problem], of the table's problems or of those drawn from a seed.

        Otherwise there is one column, the mean over the prior.
        """
        tool = self._tool(Exact, drawn=drawn)
        problems = 0 if drawn is None else drawn[1]
        each = exact_seconds(self.prior, self.horizon, problems, feedback=self.feedback)
        parts = hand_out(
            self.workers, tool, "regret", len(plans) * each, len(plans),
            lambda some: (plans[some], simple),
        )  # fmt: skip
        if parts is None:
            parts = [tool().regret(plans, simple, self.workers.threads)]
        return np.concatenate(parts)

    def simulated_regret(
        self,
        plans: Sequence[Plan],
        cuts: Sequence[int],
        *,
        seed: int,
        sampling: Sampling = Sampling(),  # noqa: B008  (it is frozen)
        sums: bool = False,
    ) -> Array:
        """The regret of each policy on each problem from the first cut to the last.

        With `sums` its sum from each cut to the next. A policy that fails on some problems has
        failed on all, however they were cut.
        """
        check_simulation(
            self.prior, self.horizon, policies=len(plans), problems=cuts[-1] - cuts[0],
            runs=sampling.runs, threads=self.workers.threads,
        )  # fmt: skip
        tool = self._tool(Simulation, sampling)
        each = simulation_seconds(self.prior, self.horizon, sampling.runs)
        whole = len(plans) * (cuts[-1] - cuts[0]) * each
        if not self.workers.worth(whole, "regret_of"):
            regret: Array = tool().regret_of(plans, seed, cuts, sums, self.workers.threads)
        else:
            if not sums:
                cuts = range(cuts[0], cuts[-1] + 1)
            rows, columns = _tiles(len(plans), cuts, self.workers.count(whole, "regret_of"))
            tiles = [(slice(*row), column) for column in columns for row in rows]
            jobs = [
                Job(
                    (plans[row], seed, cuts[low : high + 1], sums),
                    len(plans[row]) * (cuts[high] - cuts[low]) * each,
                )
                for row, (low, high) in tiles
            ]
            regret = np.empty((len(plans), len(cuts) - 1))
            found = self.workers.run(tool, "regret_of", jobs)
            for (row, column), part in zip(tiles, found, strict=True):
                regret[row, slice(*column)] = part
        regret[np.isinf(regret).any(axis=1)] = np.inf
        return regret

    def blocks(self, runs: int, cuts: Sequence[int]) -> list[int]:
        """Finer cuts, between which a policy takes about a second at most.

        They do not depend on who works, so that sums do not either. Most are whole rows of lanes
        apart, so that work can be shared evenly and no lane idles.
        """
        size = max(1, int(_BLOCK_WORK / (self.horizon * self.prior.arms * runs)))
        if runs == 1 and size > MOST_LANES:
            even = -(-cuts[-1] // _BLOCKS)
            size = MOST_LANES * max(1, min(even, size) // MOST_LANES)
        finer = set(range(cuts[0], cuts[-1], size))
        return sorted(finer | set(cuts))

    # A comparison, exactly ---------------------------------------------------------------------

    def evaluate_exactly(
        self,
        plans: Sequence[Plan],
        points: Sequence[int],
        *,
        progress: Progress | None,
        file: Checkpoint,
        resume: bool,
    ) -> tuple[Evaluation, ...]:
        """Evaluations without noise, each of which is kept as soon as it is there."""
        found: list[Evaluation] = []

        def state() -> dict[str, Any]:
            known = [item.problem_regret for item in found if item.problem_regret is not None]
            return {
                "simple": np.array([item.simple_regret for item in found]),
                "curve": np.array([item.curve for item in found]),
                "plays": np.array([item.plays for item in found]),
                "regret": np.array(known),
            }

        if resume:
            known = file.read(state().keys())
            for number, simple in enumerate(known["simple"]):
                regret = known["regret"][number] if len(known["regret"]) else None
                curve, plays = known["curve"][number], known["plays"][number]
                name = plans[number].name
                found.append(without_noise(name, points, curve, float(simple), plays, regret))
        try:
            for item in self._exactly(plans[len(found) :], points, progress):
                found.append(item)
                file.write(state)
        finally:
            if found:
                file.write(state, at_once=True)
        return tuple(found)

    def _exactly(
        self, plans: Sequence[Plan], points: Sequence[int], progress: Progress | None
    ) -> Iterator[Evaluation]:
        tool = self._tool(Exact)
        each = exact_seconds(self.prior, self.horizon, feedback=self.feedback)
        # One policy alone is done by the threads of this process together.
        if len(plans) > 1 and self.workers.worth(len(plans) * each, "alone"):
            jobs = [Job((plan, points), each) for plan in plans]
            for number, item in enumerate(self.workers.run(tool, "alone", jobs), 1):
                if progress is not None:
                    progress(number, len(plans))
                yield item
            return
        threads, arms = self.workers.threads, self.prior.arms
        together = at_once(self.horizon, threads, len(plans))
        check_exact(self.prior, self.horizon, plans, at_once=together, feedback=self.feedback)
        total = sum(
            states(arms, self.horizon) - states(arms, arms if plan.each_once else 0)
            for plan in plans
        )
        exact, done, lock = tool(), 0, threading.Lock()

        def report(before: int, after: int) -> None:
            nonlocal done
            with lock:
                done += states(arms, after) - states(arms, before)
                if progress is not None:
                    progress(done, total)

        with ThreadPoolExecutor(threads) as pool:
            share = pool.map if together == 1 and threads > 1 else map

            def run(plan: Plan) -> Evaluation:
                found: Evaluation = exact.evaluate(plan, points, share, report)
                return found

            yield from (pool.map if together > 1 else map)(run, plans)

    # A comparison, by simulation ---------------------------------------------------------------

    def evaluate_by_simulation(
        self,
        plans: Sequence[Plan],
        sampling: Sampling,
        problems: int,
        *,
        progress: Progress | None,
        file: Checkpoint,
        resume: bool,
        limit: TimeLimit,
        announce: Callable[[str], None] | None = None,
    ) -> tuple[tuple[Evaluation, ...], Array, int]:
        """The evaluations of policies that play the same problems, and the covariance of their regrets.

        Also how many problems were played: as many as were asked for, or as the time limit allowed.
        """
        check_simulation(
            self.prior, self.horizon, policies=len(plans), problems=problems, runs=sampling.runs,
            threads=self.workers.threads, plans=plans, announce=announce,
        )  # fmt: skip
        sampling = replace(sampling, keep_regret=problems * len(plans) <= _MOST_KEPT)
        each = len(plans) * simulation_seconds(self.prior, self.horizon, sampling.runs)
        sums, done = _no_sums(len(plans), self.prior.arms, problems, sampling), 0

        def state() -> dict[str, Any]:
            known = {
                name: item if name in SUMMED else item[..., :done] for name, item in sums.items()
            }
            return {"done": done, **known}

        if resume:
            known = file.read(state().keys())
            done = int(known.pop("done"))
            for name, item in known.items():
                sums[name][..., : item.shape[-1]] = item
        make = partial(
            Simulation, self.prior, self.horizon, sampling, plans, feedback=self.feedback
        )
        try:
            for chunks in self._groups(done, problems, sampling.runs, limit):
                for (first, last), part in zip(chunks, self._sums(make, chunks, each), strict=True):
                    # Ctrl-C must not come between the sums and the number of problems.
                    with interrupts_later():
                        for name, item in part.items():
                            if name in SUMMED:
                                sums[name] += item
                            else:
                                sums[name][..., first:last] = item
                        done = last
                    file.write(state)
                    if progress is not None:
                        progress(last, problems)
        finally:
            if done:
                file.write(state, at_once=True)
        return *_evaluations(sums, [plan.name for plan in plans], done, sampling), done

    def _groups(
        self, first: int, problems: int, runs: int, limit: TimeLimit
    ) -> Iterator[list[tuple[int, int]]]:
        """The rest of the problems in chunks; with a time limit in groups, as many as there is time for.

        A chunk is whole blocks of the most lanes, so that no lane idles.
        """
        blocks = _CHUNK_WORK // (self.horizon * self.prior.arms) // MOST_LANES
        size = max(1, min(MOST_EPISODES, max(1, blocks) * MOST_LANES) // runs)
        threads = self.workers.slots
        least = max(1, FEW_LANES // runs) * threads
        count = least if limit.given else problems - first
        while first < problems:
            last, begun = min(first + count, problems), limit.passed
            each = size if not limit.given else min(size, -(-(last - first) // threads))
            yield [(at, min(at + each, last)) for at in range(first, last, each)]
            # Half of what is left at the speed so far, and so on: the end comes in small steps.
            fit = (last - first) / max(limit.passed - begun, 1e-9) * limit.left / 2.0
            if fit < least:
                return
            first, count = last, int(min(fit, problems))

    def _sums(
        self, make: Callable[[], Simulation], chunks: Sequence[tuple[int, int]], each: float
    ) -> Iterator[Sums]:
        """Sums of all chunks in their order, whoever simulates them; a problem takes `each` seconds."""
        each *= (chunks[-1][1] - chunks[0][0]) / len(chunks)
        if not self.workers.worth(each * len(chunks), "chunks"):
            simulation, threads = make(), self.workers.threads
            # Not all at once: their sums take room.
            yield from in_order(
                lambda chunk: simulation.chunk(*chunk), chunks, threads, ahead=3 * threads
            )
            return
        for results in self.workers.run(make, "chunks", chunk_jobs(chunks, each, self.workers)):
            yield from results


def _no_sums(plans: int, arms: int, problems: int, sampling: Sampling) -> Sums:
    """What all policies have done before the first chunk."""
    points = len(sampling.checkpoints) + 1
    sums: Sums = {
        "total": np.zeros((plans, points)),
        "squares": np.zeros((plans, points)),
        "products": np.zeros((plans, plans)),
        "plays": np.zeros((plans, arms)),
    }
    if sampling.keep_regret:
        sums["regret"] = np.empty((plans, problems), np.float32)
    if sampling.keep_plays:
        sums["problem_plays"] = np.empty((plans, arms, problems), np.float32)
    return sums


def _evaluations(
    sums: Sums, names: Sequence[str], problems: int, sampling: Sampling
) -> tuple[tuple[Evaluation, ...], Array]:
    """The evaluations of policies, and the covariance of their regrets."""
    means = sums["total"] / problems
    # Of one problem alone there is no spread.
    freedom = problems - 1 or math.nan
    spread = np.maximum(sums["squares"] - problems * means**2, 0.0)
    errors = np.sqrt(spread / freedom / problems)
    covariance = (sums["products"] - problems * np.outer(means[:, -2], means[:, -2])) / freedom
    evaluations = tuple(
        evaluation_of(
            name,
            sampling.checkpoints,
            means[row],
            errors[row],
            sums["plays"][row] / (problems * sampling.runs),
            *(
                sums[name][row][..., :problems] if name in sums else None
                for name in ("regret", "problem_plays")
            ),
        )
        for row, name in enumerate(names)
    )
    return evaluations, covariance


def chunk_jobs(chunks: Sequence[tuple[int, int]], each: float, workers: Workers) -> Iterator[Job]:
    """Runs of chunks: single ones until it is known how long these policies take."""
    first = 0
    while first < len(chunks):
        left = len(chunks) - first
        size = -(-left // workers.count(each * left, "chunks")) if workers.knows("chunks") else 1
        last = min(first + size, len(chunks))
        yield Job((chunks[first:last],), each * (last - first))
        first = last


def _tiles(
    policies: int, cuts: Sequence[int], count: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Runs of policies and runs of blocks that make about `count` jobs of about the same size."""
    if policies >= 4 * count:  # so that a job carries few programs
        return split(policies, count), [(0, len(cuts) - 1)]
    first, last = cuts[0], cuts[-1]
    ideal = [first + (last - first) * part // count for part in range(1, count)]
    # Of two blocks that begin close together only one is a whole number of rows of lanes away.
    rows = [place for place, cut in enumerate(cuts) if (cut - first) % MOST_LANES == 0]
    allowed = rows if len(rows) > 2 * count else range(len(cuts))
    at = [cuts[place] for place in allowed]
    ends = {0, len(cuts) - 1}
    for wanted in ideal:
        after = min(bisect_left(at, wanted), len(at) - 1)
        before = max(after - 1, 0)
        near = after if at[after] - wanted < wanted - at[before] else before
        ends.add(allowed[near])
    wide = list(pairwise(sorted(ends)))
    return split(policies, -(-count // len(wide))), wide
