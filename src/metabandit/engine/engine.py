"""The engine: the regret of policies on a task, exactly or by simulation, here or handed out.

One policy or thousands, over the prior or on given problems: `Exact` and `Simulation` compute, this
module cuts the work into jobs, hands them to whoever works, and puts the results together in order.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..bayes.induction import states
from ..checkpoint import Checkpoint
from ..interrupts import interrupts_later
from ..policies import Plan, Progress
from ..priors import Prior
from ..priors.families import Array
from ..workers import Job, Workers, split
from .costs import at_once, check_exact_memory, exact_seconds, simulation_seconds
from .exact import Exact, without_noise
from .results import Evaluation
from .simulated import MOST_LANES, ChunkSums, Sampling, Simulation

# Steps times arms that a chunk aims at: large enough to keep the overhead small, small enough for
# all cores to share the work.
_CHUNK_WORK = 4_000_000
_MOST_EPISODES = 16_384
# Per-problem regrets that are kept in all; beyond, only sums are.
_MOST_KEPT = 100_000_000
# Plays times arms of a policy between two sums, of which there are not many more than _BLOCKS.
_BLOCK_WORK = 2e8
_BLOCKS = 256


class Engine:
    """Computes regret for one prior and horizon; the same results whoever works."""

    def __init__(self, prior: Prior, horizon: int, workers: Workers) -> None:
        self.prior = prior
        self.horizon = horizon
        self.workers = workers
        # The same object for all calls, so that a worker makes its tool once.
        self._tools: dict[Any, Callable[[], Any]] = {}

    def _tool(self, kind: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        key = (kind, arguments, tuple(options.items()))
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
        each = exact_seconds(self.prior, self.horizon, 0 if drawn is None else drawn[1])
        whole = len(plans) * each
        if not self.workers.worth(whole, "regret"):
            found: Array = tool().regret(plans, simple, self.workers.threads)
            return found
        jobs = [
            Job((plans[first:last], simple), (last - first) * each)
            for first, last in self.workers.cut(len(plans), whole, "regret")
        ]
        return np.concatenate(list(self.workers.run(tool, "regret", jobs)))

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
        each = exact_seconds(self.prior, self.horizon)
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
        check_exact_memory(self.prior, self.horizon, plans, at_once=together)
        total = sum(
            states(arms, self.horizon) - states(arms, arms if plan.each_once else 0)
            for plan in plans
        )
        report = _adding_up(lambda m: states(arms, m), total, progress)
        exact = tool()
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
    ) -> tuple[tuple[Evaluation, ...], Array]:
        """The evaluations of policies that play the same problems, and the covariance of their regrets."""
        kept = problems * len(plans) <= _MOST_KEPT
        sampling = replace(sampling, keep_regret=kept)
        chunks = self._chunks(problems, sampling.runs)
        each = len(plans) * simulation_seconds(
            self.prior, self.horizon, problems * sampling.runs / len(chunks)
        )
        sums = _Sums(len(plans), self.prior.arms, problems, sampling)
        if resume:
            sums.restore(file.read(sums.state(0).keys()))

        def state() -> dict[str, Any]:
            return sums.state(chunks[sums.done][0] if sums.done < len(chunks) else problems)

        try:
            rest = chunks[sums.done :]
            make = partial(Simulation, self.prior, self.horizon, sampling, plans)
            for (first, last), part in zip(rest, self._sums(make, rest, each), strict=True):
                # Ctrl-C must not come between the sums and their number.
                with interrupts_later():
                    sums.add(part, first, last)
                file.write(state)
                if progress is not None:
                    progress(last, problems)
        finally:
            if sums.done:
                file.write(state, at_once=True)
        return sums.evaluations([plan.name for plan in plans])

    def _chunks(self, problems: int, runs: int) -> list[tuple[int, int]]:
        """Runs of problems; whole blocks of the most lanes, so that no lane idles."""
        blocks = _CHUNK_WORK // (self.horizon * self.prior.arms) // MOST_LANES
        size = max(1, min(_MOST_EPISODES, max(1, blocks) * MOST_LANES) // runs)
        return [(first, min(first + size, problems)) for first in range(0, problems, size)]

    def _sums(
        self, make: Callable[[], Simulation], chunks: Sequence[tuple[int, int]], each: float
    ) -> Iterator[ChunkSums]:
        """Sums of all chunks in their order, whoever simulates them; each takes `each` seconds."""
        if not self.workers.worth(each * len(chunks), "chunks"):
            yield from _in_order(make().chunk, chunks, self.workers.threads)
            return
        for results in self.workers.run(make, "chunks", chunk_jobs(chunks, each, self.workers)):
            yield from results


class _Sums:
    """What all policies have done so far, added up chunk by chunk."""

    def __init__(self, plans: int, arms: int, problems: int, sampling: Sampling) -> None:
        self.sampling = sampling
        self.problems = problems
        self.done = 0
        self.total = np.zeros((plans, len(sampling.checkpoints) + 1))
        self.squares = np.zeros_like(self.total)
        self.products = np.zeros((plans, plans))
        self.plays = np.zeros((plans, arms))
        self.regret = np.empty((plans, problems if sampling.keep_regret else 0), np.float32)
        self.kept_plays = np.empty(
            (plans, arms, problems if sampling.keep_plays else 0), np.float32
        )

    def add(self, part: ChunkSums, first: int, last: int) -> None:
        self.total += part.total
        self.squares += part.squares
        self.products += part.products
        self.plays += part.plays
        if self.sampling.keep_regret:
            self.regret[:, first:last] = part.regret
        if self.sampling.keep_plays:
            self.kept_plays[:, :, first:last] = part.problem_plays
        self.done += 1

    def state(self, ahead: int) -> dict[str, Any]:
        """What is known of the problems before `ahead`, to be written to a file."""
        sums = {name: getattr(self, name) for name in ("total", "squares", "products", "plays")}
        kept = {"regret": self.regret[:, :ahead], "kept_plays": self.kept_plays[:, :, :ahead]}
        return {**sums, "done": self.done, **kept}

    def restore(self, known: dict[str, Any]) -> None:
        self.done = int(known["done"])
        for name in ("total", "squares", "products", "plays"):
            getattr(self, name)[:] = known[name]
        self.regret[:, : known["regret"].shape[1]] = known["regret"]
        self.kept_plays[:, :, : known["kept_plays"].shape[2]] = known["kept_plays"]

    def evaluations(self, names: Sequence[str]) -> tuple[tuple[Evaluation, ...], Array]:
        problems, sampling = self.problems, self.sampling
        means = self.total / problems
        freedom = problems - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.maximum(self.squares - problems * means**2, 0.0)
            errors = np.sqrt(spread / freedom / problems)
            covariance = (self.products - problems * np.outer(means[:, -2], means[:, -2])) / freedom
        evaluations = tuple(
            Evaluation(
                policy=name,
                mean_regret=float(means[row, -2]),
                standard_error=float(errors[row, -2]) if freedom else math.nan,
                simple_regret=float(means[row, -1]),
                simple_error=float(errors[row, -1]) if freedom else math.nan,
                checkpoints=np.array(sampling.checkpoints, dtype=np.int64),
                curve=means[row, :-1],
                curve_error=errors[row, :-1],
                plays=self.plays[row] / (problems * sampling.runs),
                problem_regret=self.regret[row] if sampling.keep_regret else None,
                problem_plays=self.kept_plays[row] if sampling.keep_plays else None,
            )
            for row, name in enumerate(names)
        )
        return evaluations, covariance


def _adding_up(
    size: Callable[[int], int], total: int, progress: Progress | None
) -> Callable[[int, int], None]:
    """report(before, after) of several policies at once, told as one progress."""
    done = 0
    lock = threading.Lock()

    def report(before: int, after: int) -> None:
        nonlocal done
        with lock:
            done += size(after) - size(before)
            if progress is not None:
                progress(done, total)

    return report


def _in_order(
    work: Callable[[int, int], ChunkSums], chunks: Sequence[tuple[int, int]], threads: int
) -> Iterator[ChunkSums]:
    """Results of all chunks in their order, at most a few ahead of the one that is due."""
    if threads == 1 or len(chunks) == 1:
        for chunk in chunks:
            yield work(*chunk)
        return
    pool = ThreadPoolExecutor(threads)
    waiting: list[Future[ChunkSums]] = []
    try:
        position = 0
        while position < len(chunks) or waiting:
            while position < len(chunks) and len(waiting) < 3 * threads:
                waiting.append(pool.submit(work, *chunks[position]))
                position += 1
            yield waiting.pop(0).result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


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
