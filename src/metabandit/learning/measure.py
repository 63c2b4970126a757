"""What the result of a search is worth: measured on fresh problems, beside classics and the floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..engine import Comparison, Evaluation, costs, default_checkpoints, evaluate, exact
from ..engine.simulated import feedback_obstacle
from ..engine.task import Task, stream
from ..errors import InputError
from ..policies import Policy, policy
from ..policies.file import Measured
from ..priors import Table
from ..priors.table import reported_on
from ..workers import Job, Pending
from .judges import Judge, judging_method

_CLASSICS = ("ucb1", "ucb1-tuned", "kl-ucb", "thompson")
# The exact regret of the result is computed where it takes about this many seconds.
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


def asked(task: Task) -> dict[str, Any]:
    """What was asked, as policy files and the files of unfinished runs name it."""
    return {
        "prior": str(task.prior),
        "arms": task.prior.arms,
        "horizon": task.horizon,
        "objective": task.objective.name,
        "reference": None if task.reference is None else task.reference.name,
        "feedback": task.feedback,
        "seed": task.seed,
    }


def _rivals(task: Task, more: Sequence[str]) -> list[Policy]:
    """The policies to compare with: classics that can play the prior, others, and the reference."""
    names = list(dict.fromkeys([*_CLASSICS, *more]))
    made = [policy(name) for name in names]
    if task.reference is not None and task.reference.name not in names:
        made.append(task.reference)
    rivals = []
    for item in made:
        with suppress(InputError):
            item.check(task.prior, task.horizon)
            if feedback_obstacle(item.plan(task.prior, task.horizon), task.feedback) is None:
                rivals.append(item)
    return rivals


def measure(
    task: Task, chosen: Policy, announce: Callable[[str], None], *, beside: Sequence[str] = ()
) -> Measurement:
    """Evaluate what learning chose, beside classics; exactly where that is possible."""
    rest = reported_on(task.prior)
    if isinstance(task.prior, Table) and isinstance(rest, Table) and rest is not task.prior:
        announce(
            f"learned on {len(task.prior.means)} problems of the table, measured on the other {len(rest.means)}"
        )
        task = replace(task, prior=rest)
    comparison, evaluation = _evaluate(task, [chosen, *_rivals(task, beside)], announce)
    comparison = replace(comparison, floor=None if task.floor is None else task.floor.wait())
    return Measurement(comparison, evaluation, _objective_value(task, chosen, evaluation))


def _exact_seconds(task: Task, policies: Sequence[Policy]) -> float:
    """What exact evaluation takes per policy; infinite if there is none."""
    plans = [item.plan(task.prior, task.horizon) for item in policies]
    if exact.obstacle(task.prior, plans, task.horizon, task.feedback) is not None:
        return float("inf")
    return costs.exact_seconds(task.prior, task.horizon, feedback=task.feedback)


def _evaluate(
    task: Task, everyone: list[Policy], announce: Callable[[str], None]
) -> tuple[Comparison, Evaluation]:
    """All policies, and the first one exactly if that is possible."""
    prior, horizon, workers = task.prior, task.horizon, task.workers
    options: dict[str, Any] = {
        "seed": stream(task.seed, 3),
        "threads": workers.threads,
        "executor": workers.executor,
        "announce": announce,
        "feedback": task.feedback,
        "floor": False,
    }
    if _exact_seconds(task, everyone) <= _QUICK:
        comparison = evaluate(everyone, prior, horizon, method="exact", **options)
        return comparison, comparison[0]
    episodes = int(min(_MOST_EPISODES, max(20_000, _REPORT_WORK / (horizon * prior.arms))))
    first = everyone[:1]
    seconds = _exact_seconds(task, first)
    pending: Pending | None = None
    if seconds <= _PATIENCE and workers.executor is not None:
        # A worker begins with what takes longest.
        tool = partial(exact.Exact, prior, horizon, feedback=task.feedback)
        arguments = (first[0].plan(prior, horizon), default_checkpoints(horizon))
        pending = workers.submit(tool, "alone", Job(arguments, seconds))
    announce(f"measuring the result beside classics on {episodes:,} fresh problems ...")
    try:
        comparison = evaluate(
            everyone, prior, horizon, method="monte-carlo", episodes=episodes, **options
        )
    except BaseException:
        if pending is not None:
            pending.cancel()
        raise
    if seconds <= _PATIENCE:
        announce("computing its exact regret ...")
        with suppress(InputError):  # more memory than there is
            if pending is not None:
                found: Evaluation = pending.result()
                return comparison, found
            return comparison, evaluate(first, prior, horizon, method="exact", **options)[0]
    return comparison, comparison[0]


def _objective_value(task: Task, chosen: Policy, evaluation: Evaluation) -> float:
    if task.objective.mean and task.objective.power is None:
        simple = task.objective.simple
        return evaluation.simple_regret if simple else evaluation.mean_regret
    # On as many problems as a judge begins with by itself, whatever learning was told.
    task = replace(task, episodes=None)
    judge = Judge(task, judging_method(chosen, task), seed=stream(task.seed, 4))
    if not judge.fixed:
        judge.problems = _REPORT_PROBLEMS
    return float(judge.judge([chosen], 0)[0][0])
