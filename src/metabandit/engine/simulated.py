"""Monte-Carlo evaluation: any prior, any number of arms.

Episodes are simulated in chunks of whole problems. A chunk's problems depend on the seed and
their numbers only, its rewards on (seed, episode, arm, pull) only, and chunks are added up in
order: neither threads nor block size change a result. All policies of a comparison play the same
chunk, so they meet the same problems and the same luck.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..checkpoint import Checkpoint
from ..errors import IndexFault, InputError
from ..interrupts import interrupts_later
from ..policies import Plan, Policy, Progress
from ..priors import Prior
from ..priors.families import Array
from ..workers import Job, Workers
from .results import Evaluation

# Problems are drawn in groups of this many, so that the first problems of a large evaluation are
# those of a small one.
GROUP = 8192
# Steps times arms that a chunk aims at: large enough to keep the overhead small, small enough for
# all cores to share the work.
_CHUNK_WORK = 4_000_000
_MOST_EPISODES = 16_384
# Episodes that are played in step; as kernels.rows.MOST_LANES, which would load numba.
MOST_LANES = 512
# Per-problem regrets that are kept in all; beyond, only sums are.
_MOST_KEPT = 100_000_000
# Plays times arms that a core simulates in a second, about.
_SPEED = 2e8


def work_seconds(prior: Prior, horizon: int, episodes: int) -> float:
    """About how many seconds a core takes to let a policy play so many episodes."""
    return float(episodes) * horizon * prior.arms / _SPEED


def name_plans(plans: Sequence[tuple[Policy, Plan]]) -> list[tuple[str, Plan]]:
    """What can be sent to other processes: a policy may hold more than its plan needs."""
    return [(policy.name, plan) for policy, plan in plans]


@dataclass
class _ChunkResult:
    """What a chunk adds: sums over its problems, of regret at each checkpoint and of simple regret."""

    total: Array  # [policy, checkpoint]; the last column is simple regret
    squares: Array  # the same
    products: Array  # [policy, policy], of regret at the horizon
    plays: Array  # [policy, arm]
    regret: npt.NDArray[np.float32] | None  # [policy, problem], if it is kept
    problem_plays: npt.NDArray[np.float32] | None  # [policy, arm, problem]


def is_compiled() -> bool:
    """Whether the simulator is in numba's cache on disk, so that it starts at once."""
    from ..kernels import jit, simulator

    return jit.is_cached(simulator.simulate)


def announce_compilation(announce: Callable[[str], None]) -> None:
    """Say so if the simulator must be compiled first, which happens once."""
    if not is_compiled():
        announce("compiling the simulator for this machine, once (about half a minute) ...")


class _ProblemSource:
    """Problems by number: group g comes from a stream of its own."""

    def __init__(self, prior: Prior, seed: int) -> None:
        self.prior = prior
        self.seed = seed
        self.last: tuple[int, Array] | None = None
        self.lock = threading.Lock()

    def group(self, number: int) -> Array:
        with self.lock:
            if self.last is not None and self.last[0] == number:
                return self.last[1]
        rng = np.random.default_rng(np.random.SeedSequence((self.seed, number)))
        drawn = np.asarray(self.prior.draw(rng, GROUP), dtype=np.float64)
        expected = (GROUP, self.prior.arms, len(self.prior.family.parameters))
        if drawn.shape != expected:
            raise InputError(
                f"draw of the prior {self.prior} gave an array of shape {drawn.shape}, "
                f"not (problems, arms, parameters) = {expected}"
            )
        if not np.isfinite(drawn).all():
            raise InputError(f"draw of the prior {self.prior} gave parameters that are not finite")
        low, high = self.prior.family.support
        means = self.prior.family.mean(drawn)
        if not (means.min() >= low and means.max() <= high):
            raise InputError(
                f"draw of the prior {self.prior} gave arms with means from {means.min():g} to "
                f"{means.max():g}; rewards of the family {self.prior.family.name} lie between "
                f"{low:g} and {high:g}"
            )
        with self.lock:
            self.last = (number, drawn)
        return drawn

    def take(self, first: int, last: int) -> Array:
        groups = range(first // GROUP, (last - 1) // GROUP + 1)
        drawn = np.concatenate([self.group(number) for number in groups])
        offset = groups[0] * GROUP
        return np.ascontiguousarray(drawn[first - offset : last - offset])


def draw_problems(prior: Prior, seed: int, problems: int) -> Array:
    """The parameters of the first problems of a seed: those that `simulate` lets policies play."""
    return _ProblemSource(prior, seed).take(0, problems)


class Simulation:
    """One comparison: what its chunks have in common."""

    def __init__(
        self,
        plans: Sequence[tuple[str, Plan]],
        prior: Prior,
        horizon: int,
        *,
        runs: int,
        seed: int,
        checkpoints: Sequence[int],
        lanes: int,
        luck: int | None = None,
        keep_plays: bool = False,
        keep_regret: bool = True,
    ) -> None:
        from ..kernels import machine, simulator

        if not is_compiled():
            # The first time everything is compiled, so that no later run has to wait.
            from ..kernels import (
                decide,
                jit,
            )

            jit.compile_pointers()
        self.kernel = simulator
        self.names = [name for name, _ in plans]
        self.prior = prior
        self.horizon = horizon
        self.runs = runs
        self.luck = seed if luck is None else luck
        self.keep_plays = keep_plays
        self.keep_regret = keep_regret
        self.checkpoints = np.array(checkpoints, dtype=np.int64)
        self.lanes = lanes
        self.local = threading.local()
        self.source = _ProblemSource(prior, seed)
        self.draw = prior.family.draw_kernel()
        self.plans: list[tuple[Any, Any, Any]] = []
        for _, plan in plans:
            rule = simulator.Rule(
                plan.each_once,
                np.ascontiguousarray(plan.counts, dtype=np.float64),
                plan.program is not None,
                plan.parameters,
                plan.memory,
            )
            decide = plan.decide() if plan.decide is not None else simulator.idle()
            self.plans.append((rule, machine.load(plan.program, plan.uses_s), decide))

    def _refuse(self, status: int, name: str, state: Sequence[float], *, uses_s: bool) -> NoReturn:
        """Say what stopped the simulation."""
        if status == self.kernel.INDEX_NOT_FINITE:
            raise IndexFault(name, state, uses_s=uses_s)
        if status == self.kernel.NO_SUCH_ARM:
            raise InputError(
                f"the policy {name} chose an arm that does not exist at t={state[3]:g}; "
                f"there are {self.prior.arms}, numbered from 0"
            )
        low, high = self.prior.family.support
        raise InputError(
            f"the family {self.prior.family.name} drew a reward that is not a finite number between "
            f"{low:g} and {high:g}; its quantile must be, for every u between 0 and 1 and all "
            f"parameters of the prior, or its support must be another"
        )

    def play(
        self,
        position: int,
        problems: Any,
        first: int,
        regret: Array,
        plays: Array,
        final: npt.NDArray[np.float32] | None = None,
    ) -> None:
        """Let a policy play problems, of which `first` is the number of the first."""
        if final is None:
            final = np.zeros((2, self.prior.arms, 0), np.float32)
        rule, program, decide = self.plans[position]
        fault = np.zeros(5)
        status = self.kernel.simulate(
            self.kernel.Run(
                np.uint64(self.luck), first * self.runs, self.runs, self.horizon, self.lanes
            ),
            problems,
            rule,
            program,
            self.draw,
            decide,
            self._workspace(problems, rule, program),
            self.checkpoints,
            regret,
            final,
            plays,
            fault,
        )
        if status != self.kernel.DONE:
            self._refuse(status, self.names[position], fault.tolist(), uses_s=program.uses_s)

    def _workspace(self, problems: Any, rule: Any, program: Any) -> Any:
        """Room for a simulation; candidates with the same program use it one after the other."""
        key = (program.registers, rule.memory)
        known = getattr(self.local, "workspace", None)
        if known is None or known[0] != key:
            made = self.kernel.workspace(problems, rule, program, self.lanes)
            known = self.local.workspace = (key, made)
        return known[1]._replace(scalars=program.scalars.copy())

    def problems(self, first: int, last: int) -> Any:
        """The problems first, ..., last - 1 as the kernel takes them."""
        parameters = self.source.take(first, last)
        means = np.ascontiguousarray(self.prior.regret_means(parameters), dtype=np.float64)
        if means.shape != parameters.shape[:2] or not np.isfinite(means).all():
            raise InputError(
                f"regret_means of the prior {self.prior} must give one finite number an arm"
            )
        low, high = self.prior.family.support
        return self.kernel.Problems(parameters, means, self.prior.family.binary, low, high)

    def _room(self, shape: tuple[int, ...]) -> Array:
        """An array of this thread's own, used again: fresh megabytes each time cost page faults."""
        kept: Array | None = getattr(self.local, "room", None)
        if kept is None or kept.shape != shape:
            kept = self.local.room = np.empty(shape)
        return kept

    def chunks(self, ranges: Sequence[tuple[int, int]]) -> list[_ChunkResult]:
        """Several, one after the other: a piece of work for another process."""
        return [self.chunk(*item) for item in ranges]

    def chunk(self, first: int, last: int) -> _ChunkResult:
        """Simulate the problems first, ..., last - 1 with every policy."""
        problems = self.problems(first, last)
        count, arms = problems.means.shape
        points = len(self.checkpoints) + 1
        averages = self._room((len(self.plans), points, count))
        plays = np.zeros((len(self.plans), arms))
        several = np.empty((points, count * self.runs)) if self.runs > 1 else None
        final = problem_plays = None
        if self.keep_plays:
            final = np.empty((2, arms, count * self.runs), np.float32)
            problem_plays = np.empty((len(self.plans), arms, count), np.float32)
        for position in range(len(self.plans)):
            regret = averages[position] if several is None else several
            self.play(position, problems, first, regret, plays[position], final)
            if problem_plays is not None and final is not None:
                each = final[0].reshape(arms, count, self.runs)
                problem_plays[position] = each.mean(axis=2, dtype=np.float64)
            if several is not None:
                averages[position] = several.reshape(points, count, self.runs).mean(axis=2)
        last_column = averages[:, -2, :]
        return _ChunkResult(
            averages.sum(axis=2),
            np.einsum("pcn,pcn->pc", averages, averages),
            # Not a matrix product: the threads of its library would compete with ours.
            np.einsum("pn,qn->pq", last_column, last_column),
            plays,
            last_column.astype(np.float32) if self.keep_regret else None,
            problem_plays,
        )


def _in_order(
    work: Callable[[int, int], _ChunkResult], chunks: Sequence[tuple[int, int]], threads: int
) -> Iterator[_ChunkResult]:
    """Results of all chunks in their order, at most a few ahead of the one that is due."""
    if threads == 1 or len(chunks) == 1:
        for chunk in chunks:
            yield work(*chunk)
        return
    pool = ThreadPoolExecutor(threads)
    waiting: list[Future[_ChunkResult]] = []
    try:
        position = 0
        while position < len(chunks) or waiting:
            while position < len(chunks) and len(waiting) < 3 * threads:
                waiting.append(pool.submit(work, *chunks[position]))
                position += 1
            yield waiting.pop(0).result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _results(
    make: Callable[[], Simulation], chunks: Sequence[tuple[int, int]], each: float, workers: Workers
) -> Iterator[_ChunkResult]:
    """Results of all chunks in their order, whoever simulates them; each takes so many seconds."""
    if not workers.worth(each * len(chunks), "chunks"):
        yield from _in_order(make().chunk, chunks, workers.threads)
        return
    for results in workers.run(make, "chunks", _jobs(chunks, each, workers)):
        yield from results


def _jobs(chunks: Sequence[tuple[int, int]], each: float, workers: Workers) -> Iterator[Job]:
    """Runs of chunks: single ones until it is known how long these policies take."""
    first = 0
    while first < len(chunks):
        left = len(chunks) - first
        size = -(-left // workers.count(each * left, "chunks")) if workers.knows("chunks") else 1
        last = min(first + size, len(chunks))
        yield Job((chunks[first:last],), each * (last - first))
        first = last


def simulate(
    plans: Sequence[tuple[Policy, Plan]],
    prior: Prior,
    horizon: int,
    *,
    episodes: int,
    runs: int,
    seed: int,
    checkpoints: Sequence[int],
    workers: Workers,
    lanes: int,
    luck: int | None = None,
    keep_plays: bool = False,
    keep: Checkpoint,
    resume: bool,
    progress: Progress | None,
) -> tuple[tuple[Evaluation, ...], Array]:
    """The evaluations of policies that play the same problems, and the covariance of their regrets."""
    problems = episodes // runs
    kept = problems * len(plans) <= _MOST_KEPT
    make = partial(
        Simulation,
        name_plans(plans),
        prior,
        horizon,
        runs=runs,
        seed=seed,
        checkpoints=checkpoints,
        lanes=lanes,
        luck=luck,
        keep_plays=keep_plays,
        keep_regret=kept,
    )
    # Whole blocks of the most lanes, so that no lane idles.
    blocks = _CHUNK_WORK // (horizon * prior.arms) // MOST_LANES
    size = max(1, min(_MOST_EPISODES, max(1, blocks) * MOST_LANES) // runs)
    chunks = [(first, min(first + size, problems)) for first in range(0, problems, size)]
    each = len(plans) * work_seconds(prior, horizon, episodes) / len(chunks)

    count = len(plans)
    total = np.zeros((count, len(checkpoints) + 1))
    squares = np.zeros_like(total)
    products = np.zeros((count, count))
    plays = np.zeros((count, prior.arms))
    regret = np.empty((count, problems if kept else 0), np.float32)
    kept_plays = np.empty((count, prior.arms, problems if keep_plays else 0), np.float32)
    now = {"total": total, "squares": squares, "products": products, "plays": plays}
    done = 0

    def state() -> dict[str, Any]:
        ahead = chunks[done][0] if done < len(chunks) else problems
        return {
            **now,
            "done": done,
            "regret": regret[:, :ahead],
            "kept_plays": kept_plays[:, :, :ahead],
        }

    if resume:
        known = keep.read(state().keys())
        done = int(known["done"])
        for name, sums in now.items():
            sums[:] = known[name]
        regret[:, : known["regret"].shape[1]] = known["regret"]
        kept_plays[:, :, : known["kept_plays"].shape[2]] = known["kept_plays"]
    try:
        rest = chunks[done:]
        for (first, last), result in zip(rest, _results(make, rest, each, workers), strict=True):
            # Ctrl-C must not come between the sums and their number.
            with interrupts_later():
                total += result.total
                squares += result.squares
                products += result.products
                plays += result.plays
                if kept:
                    regret[:, first:last] = result.regret
                if keep_plays:
                    kept_plays[:, :, first:last] = result.problem_plays
                done += 1
            keep.write(state)
            if progress is not None:
                progress(last, problems)
    finally:
        if done:
            keep.write(state, at_once=True)

    means = total / problems
    freedom = problems - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.sqrt(np.maximum(squares - problems * means**2, 0.0) / freedom / problems)
        covariance = (products - problems * np.outer(means[:, -2], means[:, -2])) / freedom
    evaluations = tuple(
        Evaluation(
            policy=plans[position][0].name,
            mean_regret=float(means[position, -2]),
            standard_error=float(errors[position, -2]) if freedom else math.nan,
            simple_regret=float(means[position, -1]),
            simple_error=float(errors[position, -1]) if freedom else math.nan,
            checkpoints=np.array(checkpoints, dtype=np.int64),
            curve=means[position, :-1],
            curve_error=errors[position, :-1],
            plays=plays[position] / episodes,
            problem_regret=regret[position] if kept else None,
            problem_plays=kept_plays[position] if keep_plays else None,
        )
        for position in range(count)
    )
    return evaluations, covariance
