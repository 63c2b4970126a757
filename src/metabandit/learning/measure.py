"""What the result of a search is worth: measured anew, beside classics and the floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..bayes.optimum import Optimum, has_optimum, optimal, optimum_seconds
from ..engine import Comparison, Evaluation, default_checkpoints, evaluate, exact
from ..engine.task import Aim, Floor, stream
from ..errors import InputError
from ..policies import Policy, policy
from ..policies.file import Measured
from ..priors import Prior
from ..workers import Job, Pending, Workers
from .judges import Judge, judging_method

_CLASSICS = ("ucb1", "ucb1-tuned", "kl-ucb", "thompson")
# The floor, and the exact regret of the result, are computed where they take about this many seconds.
_PATIENCE = 60.0
# All policies are evaluated exactly where one takes this many seconds.
_QUICK = 1.0
# What the comparison at the end may take, in plays times arms of a policy, and its most episodes.
_REPORT_WORK = 1e9
_MOST_EPISODES = 1_000_000
_REPORT_PROBLEMS = 10_000


@dataclass(frozen=True)
class Measurement:
    """What a policy is worth on problems that learning never saw.

    comparison: the policy beside classics
    evaluation: its own result: exact where that can be had, else that of the comparison
    objective: the value of the objective; less is better
    """

    comparison: Comparison
    evaluation: Evaluation
    objective: float

    def measured(self) -> Measured:
        """The regret as a policy file has it."""
        simulated = self.comparison.method != "exact" and self.evaluation is self.comparison[0]
        return Measured(
            mean=self.evaluation.mean_regret,
            standard_error=self.evaluation.standard_error,
            interval=self.evaluation.interval,
            method="monte-carlo" if simulated else "exact",
            episodes=self.comparison.episodes if simulated else 0,
        )


class _Optimum:
    """The floor as a piece of work for another process."""

    def __init__(self, prior: Prior, horizon: int) -> None:
        self.prior = prior
        self.horizon = horizon

    def solve(self) -> Optimum:
        return optimal(self.prior, self.horizon, threads=1)


def find_floor(
    prior: Prior, horizon: int, workers: Workers, announce: Callable[[str], None]
) -> Floor | None:
    """The Bayes-optimal regret, where it takes a minute at most."""
    if not has_optimum(prior):
        return None
    seconds = optimum_seconds(prior, horizon)
    if seconds > _PATIENCE:
        return None
    if seconds > 2.0:
        if workers.executor is not None:
            # A worker does it meanwhile: nothing waits for it before the end.
            job = Job((), seconds)
            return Floor(None, workers.submit(partial(_Optimum, prior, horizon), "solve", job))
        announce(
            f"computing the Bayes-optimal floor for {horizon} plays, up to {seconds:.0f} s ..."
        )
    try:
        return Floor(optimal(prior, horizon, threads=workers.threads))
    except InputError:  # more memory than there is
        return None


def _rivals(aim: Aim, more: Sequence[str]) -> list[Policy]:
    """The policies to compare with: classics that can play the prior, others, and the reference."""
    names = list(dict.fromkeys([*_CLASSICS, *more]))
    made = [policy(name) for name in names]
    if aim.reference is not None and aim.reference.name not in names:
        made.append(aim.reference)
    rivals = []
    for item in made:
        try:
            item.check(aim.prior, aim.horizon)
        except InputError:
            continue
        rivals.append(item)
    return rivals


def measure(
    aim: Aim, chosen: Policy, announce: Callable[[str], None], *, beside: Sequence[str] = ()
) -> Measurement:
    """Evaluate what learning chose, beside classics; exactly where that is possible."""
    comparison, evaluation = _evaluate(aim, [chosen, *_rivals(aim, beside)], announce)
    return Measurement(comparison, evaluation, _objective_value(aim, chosen, evaluation))


def _evaluate(
    aim: Aim, everyone: list[Policy], announce: Callable[[str], None]
) -> tuple[Comparison, Evaluation]:
    """All policies, and the first one exactly if that is possible."""
    prior, horizon = aim.prior, aim.horizon
    options: dict[str, Any] = {
        "seed": stream(aim.seed, 3),
        "threads": aim.workers.threads,
        "executor": aim.workers.executor,
        "announce": announce,
        "floor": False,
    }

    def seconds(policies: list[Policy]) -> float:
        """What exact evaluation takes a policy; infinite if it cannot be had."""
        plans = [(item, item.plan(prior, horizon)) for item in policies]
        if exact.obstacle(prior, plans, horizon) is not None:
            return float("inf")
        return exact.cost(prior, horizon)

    if seconds(everyone) <= _QUICK:
        comparison = evaluate(everyone, prior, horizon, method="exact", **options)
        return replace(comparison, floor=aim.least()), comparison[0]
    episodes = int(min(_MOST_EPISODES, max(20_000, _REPORT_WORK / (horizon * prior.arms))))
    first = everyone[:1]
    asked: Pending | None = None
    if seconds(first) <= _PATIENCE and aim.workers.executor is not None:
        # A worker begins with what takes longest.
        make = partial(exact.Exactly, prior, horizon, default_checkpoints(horizon))
        arguments = (first[0].name, first[0].plan(prior, horizon))
        asked = aim.workers.submit(make, "alone", Job(arguments, seconds(first)))
    announce(f"measuring the result beside classics on {episodes:,} fresh problems ...")
    try:
        comparison = evaluate(
            everyone, prior, horizon, method="monte-carlo", episodes=episodes, **options
        )
    except BaseException:
        if asked is not None:
            asked.cancel()
        raise
    comparison = replace(comparison, floor=aim.least())
    if seconds(first) <= _PATIENCE:
        announce("computing its exact regret ...")
        with suppress(InputError):  # more memory than there is
            if asked is not None:
                found: Evaluation = asked.result()
                return comparison, found
            return comparison, evaluate(first, prior, horizon, method="exact", **options)[0]
    return comparison, comparison[0]


def _objective_value(aim: Aim, chosen: Policy, evaluation: Evaluation) -> float:
    if aim.objective.mean:
        simple = aim.objective.simple
        return evaluation.simple_regret if simple else evaluation.mean_regret
    judge = Judge(
        aim.objective,
        aim.prior,
        aim.horizon,
        reference=aim.reference,
        method=judging_method(chosen, aim.prior, aim.horizon, aim.objective),
        seed=stream(aim.seed, 4),
        workers=aim.workers,
    )
    if not judge.fixed:
        judge.problems = _REPORT_PROBLEMS
    return float(judge.judge([chosen], 0).values[0])
