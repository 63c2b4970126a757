"""Monte-Carlo evaluation: any prior, any number of arms.

Episodes are simulated in chunks of whole problems. A chunk's problems depend on the seed and
their numbers only, its rewards on (seed, episode, arm, pull) only, and chunks are added up in
order: neither threads nor block size change a result. All policies of a comparison play the same
chunk, so they meet the same problems and the same luck.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..families import Array
from ..policies import Plan, Policy, Start, policy
from ..priors import Prior
from ..settings import check_horizon, check_whole
from .results import Comparison, Evaluation

# Problems are drawn in groups of this many, so that the first problems of a large evaluation are
# those of a small one.
GROUP = 8192
# Steps times arms that a chunk aims at: large enough to keep the overhead small, small enough for
# all cores to share the work.
_CHUNK_WORK = 4_000_000
_MOST_EPISODES = 16_384
# Per-problem regrets that are kept in all; beyond, only sums are.
_MOST_KEPT = 100_000_000

Progress = Callable[[int, int], None]


class IndexFault(InputError):
    """An index that is not a finite number at a state that play can reach."""

    def __init__(self, policy: str, state: Sequence[float], *, uses_s: bool) -> None:
        n, r, s, t, value = state
        spread = f", s={s:.6g}" if uses_s else ""
        self.policy = policy
        self.state = {"n": n, "r": r, "s": s if uses_s else math.nan, "t": t}
        kind = "not a number" if value != value else "infinite or too large for float32"
        super().__init__(
            f"the index of {policy} is {kind} where an arm has n={n:g}, r={r:.6g}{spread} "
            f"at t={t:g}; an index must be a finite number wherever play can lead, so guard "
            f"divisions and logarithms, as in 1/max(s, 0.01) or ln(max(t, 1))"
        )


@dataclass
class _ChunkResult:
    """What a chunk adds: for each policy and checkpoint, sums over its problems."""

    total: Array  # [policy, checkpoint]
    squares: Array  # [policy, checkpoint]
    products: Array  # [policy, policy], of regret at the horizon
    plays: Array  # [policy, arm]
    regret: npt.NDArray[np.float32]  # [policy, problem]


def is_compiled() -> bool:
    """Whether the simulator is in numba's cache on disk, so that it starts at once."""
    from ..kernels import simulate

    source = Path(simulate.__file__)
    cached = Path(simulate.simulate.stats.cache_path).glob("simulate.simulate-*.nbi")
    return any(file.stat().st_mtime >= source.stat().st_mtime for file in cached)


def default_checkpoints(horizon: int, count: int = 24) -> list[int]:
    """Numbers of plays at which regret is looked at: spread evenly in the logarithm."""
    points = np.geomspace(1, horizon, count).round().astype(int)
    return sorted({int(point) for point in points} | {horizon})


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


class _Simulation:
    """One comparison: what its chunks have in common."""

    def __init__(
        self,
        policies: Sequence[Policy],
        prior: Prior,
        horizon: int,
        *,
        runs: int,
        seed: int,
        checkpoints: Sequence[int],
        lanes: int,
    ) -> None:
        from ..kernels import machine, simulate

        if not is_compiled():
            # The first time everything is compiled, so that no later run has to wait.
            from ..kernels import choices  # noqa: F401
        self.kernel = simulate
        self.policies = policies
        self.prior = prior
        self.horizon = horizon
        self.runs = runs
        self.seed = seed
        self.checkpoints = np.array(checkpoints, dtype=np.int64)
        self.lanes = lanes
        self.local = threading.local()
        self.source = _ProblemSource(prior, seed)
        self.draw = prior.family.draw_kernel()
        self.plans: list[tuple[Any, Any, Any]] = []
        for item in policies:
            plan = item.plan(prior, horizon)
            decide = plan.decide() if plan.decide is not None else simulate.idle
            self.plans.append((_rule(simulate, plan), _program(machine, plan), decide))

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

    def _room(self, shape: tuple[int, ...]) -> Array:
        """An array of this thread's own, used again: fresh megabytes each time cost page faults."""
        kept: Array | None = getattr(self.local, "room", None)
        if kept is None or kept.shape != shape:
            kept = self.local.room = np.empty(shape)
        return kept

    def chunk(self, first: int, last: int) -> _ChunkResult:
        """Simulate the problems first, ..., last - 1 with every policy."""
        parameters = self.source.take(first, last)
        means = np.ascontiguousarray(self.prior.regret_means(parameters), dtype=np.float64)
        if means.shape != parameters.shape[:2] or not np.isfinite(means).all():
            raise InputError(
                f"regret_means of the prior {self.prior} must give one finite number an arm"
            )
        low, high = self.prior.family.support
        problems = self.kernel.Problems(parameters, means, self.prior.family.binary, low, high)
        count, arms = means.shape
        points = len(self.checkpoints)
        averages = self._room((len(self.plans), points, count))
        plays = np.zeros((len(self.plans), arms))
        several = np.empty((points, count * self.runs)) if self.runs > 1 else None
        run = self.kernel.Run(
            np.uint64(self.seed), first * self.runs, self.runs, self.horizon, self.lanes
        )
        for position, (rule, program, decide) in enumerate(self.plans):
            fault = np.zeros(5)
            regret = averages[position] if several is None else several
            status = self.kernel.simulate(
                run,
                problems,
                rule,
                program,
                self.draw,
                decide,
                self.kernel.workspace(problems, rule, program, self.lanes),
                self.checkpoints,
                regret,
                plays[position],
                fault,
            )
            if status != self.kernel.DONE:
                name = self.policies[position].name
                self._refuse(status, name, fault.tolist(), uses_s=program.uses_s)
            if several is not None:
                averages[position] = several.reshape(points, count, self.runs).mean(axis=2)
        final = averages[:, -1, :]
        return _ChunkResult(
            averages.sum(axis=2),
            np.einsum("pcn,pcn->pc", averages, averages),
            # Not a matrix product: the threads of its library would compete with ours.
            np.einsum("pn,qn->pq", final, final),
            plays,
            final.astype(np.float32),
        )


def _rule(simulate: Any, plan: Plan) -> Any:
    counts = np.ascontiguousarray(plan.counts, dtype=np.float64)
    return simulate.Rule(
        plan.each_once, counts, plan.program is not None, plan.parameters, plan.memory
    )


def _program(machine: Any, plan: Plan) -> Any:
    compiled = plan.program
    if compiled is None:
        code = np.zeros((0, 5), np.int32)
        spread = np.zeros(0, np.int32)
        return machine.Program(
            code, code, np.zeros(3), spread, 0, machine.SCRATCH, plan.uses_s, True
        )
    return machine.Program(
        compiled.lane_code,
        compiled.step_code,
        compiled.scalars,
        compiled.spread,
        compiled.constants,
        compiled.registers,
        compiled.uses_s,
        compiled.varies,
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


def evaluate(
    policies: str | Policy | Sequence[str | Policy],
    prior: Prior,
    horizon: int,
    *,
    episodes: int = 100_000,
    runs: int = 1,
    seed: int = 0,
    start: str | Start | None = None,
    checkpoints: Sequence[int] | None = None,
    threads: int | None = None,
    lanes: int = 512,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
) -> Comparison:
    """Estimate the regret of policies on problems drawn from a prior, all with the same luck.

    policies: names, expressions or Policy objects; one or several
    horizon: plays an episode
    episodes: plays of a problem in all, `runs` of them for each problem that is drawn
    seed: one seed, one result, whatever the number of threads
    start: how index policies begin, unless their text says (see `policy`)
    checkpoints: numbers of plays at which the regret curve is taken; spread evenly by default
    threads: all cores by default
    lanes: episodes that are played in step, a multiple of 64 up to 512; changes no result
    progress: called as progress(problems done, problems in all) after each chunk
    announce: called with a message if the simulator must be compiled first, which happens once

    >>> import metabandit as mb
    >>> result = mb.evaluate(["ucb1", "greedy"], mb.Bernoulli(arms=2), horizon=10, episodes=1000)
    >>> [evaluation.policy for evaluation in result.ranking()]
    ['greedy', 'ucb1']
    """
    given: list[Any]
    if isinstance(policies, Iterable) and not isinstance(policies, str):
        given = list(policies)
    else:
        given = [policies]
    if not given:
        raise InputError("no policy was given; name at least one, such as ucb1")
    if not isinstance(prior, Prior):
        raise InputError(f"the prior must be a Prior such as Bernoulli(arms=2), not {prior!r}")
    made = [policy(item, start=start) for item in given]
    horizon = check_horizon(horizon)
    episodes = check_whole(episodes, "the number of episodes", 1)
    runs = check_whole(runs, "the number of runs a problem", 1)
    seed = check_whole(seed, "the seed", 0)
    threads = check_whole(
        (os.cpu_count() or 1) if threads is None else threads, "the number of threads", 1
    )
    if seed >= 2**63:
        raise InputError(f"the seed must be less than 2^63, not {seed}")
    if episodes % runs:
        raise InputError(
            f"the number of episodes ({episodes}) must be a multiple of the runs a problem ({runs})"
        )
    if lanes % 64 or not 64 <= lanes <= 512:
        raise InputError(f"lanes must be a multiple of 64 from 64 to 512, not {lanes}")
    if checkpoints is None or len(checkpoints) == 0:
        checkpoints = default_checkpoints(horizon)
    points = sorted({check_whole(point, "a checkpoint", -(2**62)) for point in checkpoints})
    if points[0] < 1 or points[-1] > horizon:
        raise InputError(f"checkpoints must lie between 1 and the horizon {horizon}, not {points}")
    if points[-1] != horizon:
        points.append(horizon)

    if announce is not None and not is_compiled():
        announce("compiling the simulator for this machine, once (about half a minute) ...")
    simulation = _Simulation(
        made, prior, horizon, runs=runs, seed=seed, checkpoints=points, lanes=lanes
    )
    problems = episodes // runs
    # Whole blocks of the most lanes, so that no lane idles.
    blocks = _CHUNK_WORK // (horizon * prior.arms) // 512
    size = max(1, min(_MOST_EPISODES, max(1, blocks) * 512) // runs)
    chunks = [(first, min(first + size, problems)) for first in range(0, problems, size)]

    count, arms = len(made), prior.arms
    total = np.zeros((count, len(points)))
    squares = np.zeros_like(total)
    products = np.zeros((count, count))
    plays = np.zeros((count, arms))
    kept = problems * count <= _MOST_KEPT
    regret = np.empty((count, problems if kept else 0), np.float32)
    for (first, last), result in zip(
        chunks, _in_order(simulation.chunk, chunks, threads), strict=True
    ):
        total += result.total
        squares += result.squares
        products += result.products
        plays += result.plays
        if kept:
            regret[:, first:last] = result.regret
        if progress is not None:
            progress(last, problems)

    means = total / problems
    freedom = problems - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.sqrt(np.maximum(squares - problems * means**2, 0.0) / freedom / problems)
        covariance = (products - problems * np.outer(means[:, -1], means[:, -1])) / freedom
    evaluations = tuple(
        Evaluation(
            policy=made[position].name,
            mean_regret=float(means[position, -1]),
            standard_error=float(errors[position, -1]) if freedom else math.nan,
            checkpoints=simulation.checkpoints,
            curve=means[position],
            curve_error=errors[position],
            plays=plays[position] / episodes,
            problem_regret=regret[position] if kept else None,
        )
        for position in range(count)
    )
    return Comparison(
        evaluations=evaluations,
        prior=str(prior),
        arms=arms,
        horizon=horizon,
        method="monte-carlo",
        episodes=episodes,
        runs=runs,
        seed=seed,
        start=str(Start.read(start)),
        covariance=covariance,
    )
