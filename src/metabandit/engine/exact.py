"""Exact evaluation: Bernoulli arms, nothing is sampled.

What play with a policy can lead to is a set of counts; their probabilities, over the prior and all
luck, follow step by step (kernels/forward.py). The expected reward after m plays is then a sum over
the states of step m, and regret is what it lacks to always playing the best arm. The same
probabilities give the regret on any given problem: each state's is multiplied by how much more
likely the state is on that problem than under the prior.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..bayes.induction import slice_bytes, states
from ..errors import IndexFault
from ..memory import check_memory
from ..policies import Plan, Policy, Progress
from ..priors import Bernoulli, Prior, Table
from ..priors.families import BERNOULLI, Array
from ..workers import Job, Workers
from .results import Evaluation
from .states import LONG, ThreeArms, TwoArms, mirrors
from .threads import in_threads

_MOST_PLAYS = 4096


def obstacle(prior: Prior, plans: Sequence[tuple[Policy, Plan]], horizon: int) -> str | None:
    """Why there is no exact evaluation, or None if there is."""
    on_problems = isinstance(prior, Table) and prior.family == BERNOULLI
    if not (on_problems or type(prior) is Bernoulli):
        return (
            f"exact evaluation is for Bernoulli arms, with Beta means (the prior bernoulli) or given "
            f"ones (a table), not for {prior}"
        )
    most = 2 if on_problems else 3
    if prior.arms > most:
        return f"exact evaluation is for up to {most} arms of {prior}, not {prior.arms}"
    if horizon > _MOST_PLAYS:
        return f"exact evaluation is for up to {_MOST_PLAYS} plays, not {horizon}"
    for policy, plan in plans:
        if isinstance(plan.by_counts, str):
            return f"{policy.name} has no exact evaluation: {plan.by_counts}"
        if plan.by_counts.posterior is not None and prior.arms > 2:
            return f"{policy.name} has an exact evaluation for 2 arms only, not {prior.arms}"
    return None


def is_compiled(arms: int) -> bool:
    """Whether the kernels are in numba's cache on disk, so that they start at once."""
    from ..kernels import forward, jit, three_arms

    return jit.is_cached(forward.run_two if arms == 2 else three_arms.step_forward)


def announce_compilation(arms: int, announce: Callable[[str], None]) -> None:
    """Say so if the kernels must be compiled first, which happens once."""
    if not is_compiled(arms):
        announce("compiling the exact evaluation for this machine, once (about 20 s) ...")


def cost(prior: Prior, horizon: int, problems: int = 0) -> float:
    """About how many seconds one policy takes on one thread, with its regret on so many problems.

    The problems of a table need not be counted: they are known.
    """
    if prior.arms > 2:
        return states(prior.arms, horizon) / 1e8
    problems = len(prior.means) if isinstance(prior, Table) else problems
    return states(2, horizon) / 8e8 + problems * horizon**3 / 1e10


class Exactly:
    """Policies that have no obstacle, one after the other: what a piece of work for another process is."""

    def __init__(self, prior: Prior, horizon: int, checkpoints: Sequence[int]) -> None:
        self.prior = prior
        self.horizon = horizon
        self.points = np.array(checkpoints, dtype=np.int64)

    def evaluate(
        self,
        name: str,
        plan: Plan,
        share: Callable[..., Any] = map,
        report: Callable[[int, int], None] = lambda before, after: None,
    ) -> Evaluation:
        """The evaluation of a policy, without noise."""
        kind = TwoArms if self.prior.arms == 2 else ThreeArms
        return _reduce(kind(name, plan, self.prior, self.horizon, share), self.points, report)

    def alone(self, name: str, plan: Plan) -> Evaluation:
        """The same in a process of its own."""
        _check_memory(self.prior, self.horizon, [plan], at_once=1)
        return self.evaluate(name, plan)


def _check_memory(prior: Prior, horizon: int, plans: Sequence[Plan], *, at_once: int) -> None:
    check_memory(
        at_once * slice_bytes(prior.arms, horizon, mirror=all(mirrors(p, prior) for p in plans)),
        f"exact evaluation for {prior.arms} arms and {horizon} plays",
        "choose a shorter horizon, or the method monte-carlo",
    )


def evaluate_exactly(
    plans: Sequence[tuple[Policy, Plan]],
    prior: Prior,
    horizon: int,
    *,
    checkpoints: Sequence[int],
    workers: Workers,
    progress: Progress | None,
) -> Iterator[Evaluation]:
    """The evaluations of policies that have no obstacle, without noise, one after the other."""
    make = partial(Exactly, prior, horizon, checkpoints)
    named = [(policy.name, plan) for policy, plan in plans]
    each = cost(prior, horizon)
    # One policy alone is done by the threads of this process together.
    if len(named) > 1 and workers.worth(len(named) * each, "alone"):
        jobs = [Job(item, each) for item in named]
        for number, found in enumerate(workers.run(make, "alone", jobs), 1):
            if progress is not None:
                progress(number, len(named))
            yield found
        return
    threads = workers.threads
    at_once = min(threads, len(plans)) if horizon <= LONG else 1
    _check_memory(prior, horizon, [plan for _, plan in plans], at_once=at_once)
    total = sum(
        states(prior.arms, horizon) - states(prior.arms, prior.arms if plan.each_once else 0)
        for _, plan in plans
    )
    done = 0
    lock = threading.Lock()

    def report(before: int, after: int) -> None:
        nonlocal done
        with lock:
            done += states(prior.arms, after) - states(prior.arms, before)
            if progress is not None:
                progress(done, total)

    tool = make()
    with ThreadPoolExecutor(threads) as pool:
        share = pool.map if at_once == 1 and threads > 1 else map

        def run(item: tuple[str, Plan]) -> Evaluation:
            return tool.evaluate(*item, share, report)

        yield from (pool.map if at_once > 1 else map)(run, named)


def _reduce(
    run: TwoArms | ThreeArms, points: npt.NDArray[np.int64], report: Callable[[int, int], None]
) -> Evaluation:
    """Go from checkpoint to checkpoint and collect regret."""
    prior = run.prior
    curve = np.empty(len(points))
    regret: Array | None = None
    begun = run.begin
    best = prior.expected_best() if isinstance(prior, Bernoulli) else 0.0
    plays = np.zeros(prior.arms)
    gaps = np.zeros(0)
    if isinstance(prior, Table):
        gaps = prior.means.max(axis=1, keepdims=True) - prior.means
    for position, point in enumerate(points.tolist()):
        # Before the first choice each arm is played once, in order.
        forced = np.arange(prior.arms) < min(point, run.begin)
        while begun < point:
            # Long plays in small pieces, so that people see how far it is.
            after = point if run.horizon <= LONG else min(point, begun + 10)
            run.advance(begun, after)
            report(begun, after)
            begun = after
        if isinstance(prior, Table):
            assert isinstance(run, TwoArms), "obstacle() refuses tables of more arms"
            each = (
                run.plays_on(prior.means, point)
                if point >= run.begin
                else np.broadcast_to(forced.astype(np.float64), gaps.shape)
            )
            regret = (each * gaps).sum(axis=1)
            curve[position] = regret.mean()
            plays = each.mean(axis=0)
        elif point >= run.begin:
            reward, plays = run.totals(point)
            curve[position] = point * best - reward
        else:
            curve[position] = point * best - run.chance[forced, 0].sum()
            plays = forced.astype(np.float64)
    if isinstance(prior, Table):
        assert isinstance(run, TwoArms), "obstacle() refuses tables of more arms"
        simple = float((run.recommended_on(prior.means) * gaps).sum(axis=1).mean())
    else:
        simple = best - run.recommended()
    return without_noise(run.name, points, curve, simple, plays, regret)


def without_noise(
    name: str,
    points: Sequence[int] | npt.NDArray[np.int64],
    curve: Array,
    simple: float,
    plays: Array,
    regret: Array | None,
) -> Evaluation:
    """An evaluation whose numbers are exact."""
    return Evaluation(
        policy=name,
        mean_regret=float(curve[-1]),
        standard_error=0.0,
        simple_regret=simple,
        simple_error=0.0,
        checkpoints=np.asarray(points, dtype=np.int64),
        curve=curve,
        curve_error=np.zeros(len(points)),
        plays=plays,
        problem_regret=regret,
    )


class Population:
    """The regret of many policies, or their simple regret: on each problem of a table, else its mean alone.

    A policy whose index is not finite somewhere has the fault in its place. `drawn` is a seed and a number of
    problems: of two arms drawn from the prior, instead of the mean over it.
    """

    def __init__(
        self,
        prior: Prior,
        horizon: int,
        *,
        simple: bool = False,
        drawn: tuple[int, int] | None = None,
    ) -> None:
        if drawn is not None:
            seed, problems = drawn
            prior = Table(prior.draw(np.random.default_rng(seed), problems)[..., 0])
        self.prior = prior
        self.horizon = horizon
        self.simple = simple
        self.best = prior.expected_best() if isinstance(prior, Bernoulli) else 0.0

    def exactly(
        self, plans: Sequence[tuple[str, Plan]], threads: int = 1
    ) -> list[Array | IndexFault]:
        """One entry a policy."""
        at_once = threads if self.horizon <= LONG else 1
        memory = at_once * slice_bytes(self.prior.arms, self.horizon, mirror=False)
        what = f"exact evaluation for {self.horizon} plays"
        check_memory(memory, what, "choose a shorter horizon")
        if at_once > 1:
            return in_threads(self._evaluate, plans, threads)
        with ThreadPoolExecutor(threads) as pool:
            return [self._evaluate(item, pool.map if threads > 1 else map) for item in plans]

    def _evaluate(
        self, item: tuple[str, Plan], share: Callable[..., Any] = map
    ) -> Array | IndexFault:
        prior, horizon = self.prior, self.horizon
        kind = TwoArms if prior.arms == 2 else ThreeArms
        try:
            way = kind(*item, prior, horizon, share)
            way.advance(way.begin, horizon)
        except IndexFault as fault:
            return fault
        if isinstance(prior, Table):
            assert isinstance(way, TwoArms)
            gaps = prior.means.max(axis=1, keepdims=True) - prior.means
            means = prior.means
            each = way.recommended_on(means) if self.simple else way.plays_on(means, horizon)
            return np.asarray((each * gaps).sum(axis=1))
        if self.simple:
            return np.array([self.best - way.recommended()])
        return np.array([horizon * self.best - way.totals(horizon)[0]])


def evaluate_population(
    plans: Sequence[tuple[Policy, Plan]],
    prior: Prior,
    horizon: int,
    *,
    simple: bool,
    workers: Workers,
    drawn: tuple[int, int] | None = None,
) -> list[Array | IndexFault]:
    """The same, whoever does it."""
    make = partial(Population, prior, horizon, simple=simple, drawn=drawn)
    named = [(policy.name, plan) for policy, plan in plans]
    each = cost(prior, horizon, 0 if drawn is None else drawn[1])
    if not workers.worth(len(named) * each, "exactly"):
        return make().exactly(named, workers.threads)
    jobs = [
        Job((named[first:last],), (last - first) * each)
        for first, last in workers.cut(len(named), len(named) * each, "exactly")
    ]
    return [item for part in workers.run(make, "exactly", jobs) for item in part]
