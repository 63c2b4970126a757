"""Exact evaluation: Bernoulli arms, nothing is sampled (the recursion is in states.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import IndexFault
from ..feedback import IMMEDIATE, Feedback
from ..policies import Plan
from ..priors import Bernoulli, Prior, Table
from ..priors.families import BERNOULLI, Array
from . import states
from .costs import MOST_PLAYS, at_once, check_exact
from .results import Evaluation
from .states import LONG, Batches, ThreeArms, TwoArms
from .threads import in_threads


def obstacle(
    prior: Prior, plans: Sequence[Plan], horizon: int, feedback: Feedback = IMMEDIATE
) -> str | None:
    """Why there is no exact evaluation, or None if there is."""
    on_problems = isinstance(prior, Table) and prior.family == BERNOULLI
    if not (on_problems or type(prior) is Bernoulli):
        return (
            f"exact evaluation is for Bernoulli arms, with Beta means (the prior bernoulli) or given "
            f"ones (a table), not for {prior}"
        )
    if prior.arms > 3:
        return f"exact evaluation is for up to 3 arms of {prior}, not {prior.arms}"
    if horizon > MOST_PLAYS:
        return f"exact evaluation is for up to {MOST_PLAYS} plays, not {horizon}"
    for plan in plans:
        if (why := states.obstacle(plan, prior.arms, feedback)) is not None:
            return f"{plan.name} has no exact evaluation: {why}"
    return None


def announce_compilation(
    arms: int, horizon: int, announce: Callable[[str], None], feedback: Feedback = IMMEDIATE
) -> None:
    """Say so if the kernels must be compiled first, which happens once."""
    from ..kernels import batches, forward, jit, three_arms

    kernel = three_arms.step_forward
    if arms == 2 and feedback != IMMEDIATE:
        kernel = batches.advance
    elif arms == 2:
        kernel = forward.run_part if horizon > LONG else forward.run_two
    if not jit.is_cached(kernel):
        announce("compiling the exact evaluation for this machine, once (about 20 s) ...")


class Exact:
    """Exact regret for one prior and horizon: what a worker makes once and keeps.

    drawn: a seed and a number of problems of two arms, which are drawn from the prior and stand in
        its place
    """

    def __init__(
        self,
        prior: Prior,
        horizon: int,
        *,
        drawn: tuple[int, int] | None = None,
        feedback: Feedback = IMMEDIATE,
    ) -> None:
        if drawn is not None:
            seed, problems = drawn
            prior = Table(prior.draw(np.random.default_rng(seed), problems)[..., 0])
        self.prior = prior
        self.horizon = horizon
        self.feedback = feedback
        self.best = prior.expected_best() if isinstance(prior, Bernoulli) else 0.0
        self.gaps = np.zeros(0)
        if isinstance(prior, Table):
            self.gaps = prior.means.max(axis=1, keepdims=True) - prior.means

    def _states(self, plan: Plan, share: Callable[..., Any]) -> TwoArms | ThreeArms:
        if self.feedback != IMMEDIATE:
            return Batches(plan, self.prior, self.horizon, share, self.feedback)
        kind = TwoArms if self.prior.arms == 2 else ThreeArms
        return kind(plan, self.prior, self.horizon, share)

    def evaluate(
        self,
        plan: Plan,
        points: Sequence[int],
        share: Callable[..., Any] = map,
        report: Callable[[int, int], None] = lambda before, after: None,
    ) -> Evaluation:
        """The evaluation of a policy, without noise; report(before, after) says which plays are done."""
        run = self._states(plan, share)
        curve = np.empty(len(points))
        regret: Array | None = None
        plays = np.zeros(self.prior.arms)
        begun = run.begin
        for position, point in enumerate(points):
            while begun < point:
                # Long plays in small pieces, so that people see how far it is.
                after = point if self.horizon <= LONG else min(point, begun + 10)
                run.advance(begun, after)
                report(begun, after)
                begun = after
            curve[position], plays, regret = self._after(run, point)
        return without_noise(plan.name, points, curve, self._simple(run), plays, regret)

    def _after(self, run: TwoArms | ThreeArms, point: int) -> tuple[float, Array, Array | None]:
        """Regret, plays of each arm and regret on each problem of a table, after `point` plays."""
        # Before the first choice each arm is played once, in order.
        forced = (np.arange(self.prior.arms) < min(point, run.begin)).astype(np.float64)
        if isinstance(self.prior, Table):
            each = np.broadcast_to(forced, self.gaps.shape)
            if point >= run.begin:
                each = run.plays_on(self.prior.means, point)
            regret = (each * self.gaps).sum(axis=1)
            # With weights the single problems are no sample of the prior.
            known = regret if self.prior.even else None
            return self.prior.average(regret), self.prior.average(each), known
        if point >= run.begin:
            reward, plays = run.totals(point)
            return point * self.best - reward, plays, None
        return point * self.best - run.chance[forced > 0.0, 0].sum(), forced, None

    def _simple(self, run: TwoArms | ThreeArms) -> float:
        if isinstance(self.prior, Table):
            each = run.recommended_on(self.prior.means)
            return float(self.prior.average((each * self.gaps).sum(axis=1)))
        return self.best - run.recommended()

    def alone(self, plan: Plan, points: Sequence[int]) -> Evaluation:
        """The same in a process of its own."""
        check_exact(self.prior, self.horizon, [plan], feedback=self.feedback)
        return self.evaluate(plan, points)

    def regret(self, plans: Sequence[Plan], simple: bool, threads: int = 1) -> Array:
        """Regret or simple regret of each policy: its mean, or that on each problem of a table.

        If the problems of a table have different weights, each is scaled by its own, so that the mean of
        all is that over the prior.

        [policy, problem] with one column for the mean; infinite where an index is not finite.
        """
        together = at_once(self.horizon, threads, len(plans))
        check_exact(self.prior, self.horizon, plans, at_once=together, feedback=self.feedback)
        if self.horizon <= LONG:
            rows = in_threads(lambda plan: self._regret(plan, simple, map), plans, threads)
        else:
            with ThreadPoolExecutor(threads) as pool:
                share = pool.map if threads > 1 else map
                rows = [self._regret(plan, simple, share) for plan in plans]
        return np.stack(rows)

    def _regret(self, plan: Plan, simple: bool, share: Callable[..., Any]) -> Array:
        try:
            run = self._states(plan, share)
            run.advance(run.begin, self.horizon)
        except IndexFault:
            return np.full(max(len(self.gaps), 1), np.inf)
        if isinstance(self.prior, Table):
            means = self.prior.means
            each = run.recommended_on(means) if simple else run.plays_on(means, self.horizon)
            regret = (each * self.gaps).sum(axis=1)
            return np.asarray(
                regret if self.prior.even else regret * self.prior.weights * len(regret)
            )
        if simple:
            return np.array([self.best - run.recommended()])
        return np.array([self.horizon * self.best - run.totals(self.horizon)[0]])


def without_noise(
    name: str,
    points: Sequence[int],
    curve: Array,
    simple: float,
    plays: Array,
    regret: Array | None,
) -> Evaluation:
    """An evaluation whose numbers are exact."""
    checkpoints: npt.NDArray[np.int64] = np.asarray(points, dtype=np.int64)
    return Evaluation(
        policy=name,
        mean_regret=float(curve[-1]),
        standard_error=0.0,
        simple_regret=simple,
        simple_error=0.0,
        checkpoints=checkpoints,
        curve=curve,
        curve_error=np.zeros(len(points)),
        plays=plays,
        problem_regret=regret,
    )
