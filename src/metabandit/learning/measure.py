"""What the result of a search is worth: measured on fresh problems, beside classics and the floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..engine import Comparison, Evaluation, default_checkpoints, evaluate, exact
from ..engine.costs import simulation_seconds
from ..engine.engine import FEW_LANES
from ..engine.floor import floor_of_search
from ..engine.simulated import feedback_obstacle
from ..engine.task import Task, stream
from ..errors import InputError
from ..policies import Policy, policy
from ..policies.file import Measured
from ..priors import Table
from ..priors.families import Array
from ..priors.table import reported_on
from ..workers import Job, Pending
from .judges import EXACTLY, Judge, difference_errors, judging_method

_CLASSICS = ("ucb1", "ucb1-tuned", "kl-ucb", "thompson")
# The exact regret of the result is computed where it takes about this many seconds.
_PATIENCE = 60.0
# All policies are evaluated exactly where one takes this many seconds.
_QUICK = 1.0
# What the comparison at the end may take with effort 1, in plays times arms of a policy, and its most
# episodes. A lower effort takes less, a higher one no more.
_REPORT_WORK = 3e8
_MOST_EPISODES = 1_000_000
_REPORT_PROBLEMS = 10_000
_OBJECTIVE_WORK = 1e10
# Of these many there are always as many as this work allows; of the fewest, whatever it takes.
_ENOUGH_EPISODES, _ENOUGH_WORK = 20_000, 5e9
_LEAST_EPISODES = 2000
# How much more a step of few episodes takes per episode than one of many.
_FEW_LANES_COST = 3.0
# A policy is better than what was chosen if its value is less by this many standard errors.
_CLEARLY = 3.0


@dataclass(frozen=True)
class Measurement:
    """What a policy is worth on problems that learning never saw.

    policy: the policy: what was chosen, or one beside it that turned out to be clearly better
    comparison: the policy, which comes first, beside classics
    evaluation: its own result: exact where that can be had, else that of the comparison
    objective: the value of the objective; less is better
    power: that of a trial with this policy, if the objective asks for some
    unbeaten: whether the policy is one that was beside
    """

    policy: Policy
    comparison: Comparison
    evaluation: Evaluation
    objective: float
    unbeaten: bool = False
    power: float | None = None

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


def with_floor(task: Task, announce: Callable[[str], None]) -> Task:
    """The task with the floor that its result is to be compared with."""
    if task.floor is False:
        return task
    least = floor_of_search(
        reported_on(task.prior), task.horizon, task.workers, announce, wanted=task.floor is True,
        feedback=task.feedback, effort=task.bound_effort, limit=task.time_limit,
    )  # fmt: skip
    return replace(task, least=least)


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


def least_seconds(task: Task) -> float:
    """About how long the comparison at the end takes at least: a block of few episodes, of every policy."""
    policies = len(_CLASSICS) + 2
    return _FEW_LANES_COST * policies * simulation_seconds(task.prior, task.horizon, FEW_LANES)


def _rivals(task: Task, more: Sequence[Policy]) -> list[Policy]:
    """The policies to compare with: classics that can play the prior, others, and the reference."""
    made = [policy(name) for name in _CLASSICS]
    made += more if task.reference is None else [*more, task.reference]
    rivals: dict[str, Policy] = {}
    for item in made:
        with suppress(InputError):
            item.check(task.prior, task.horizon)
            if feedback_obstacle(item.plan(task.prior, task.horizon), task.feedback) is None:
                rivals.setdefault(item.name, item)
    return list(rivals.values())


def measure(
    task: Task,
    chosen: Policy,
    announce: Callable[[str], None],
    *,
    beside: Sequence[Policy] = (),
    learned: bool = True,
) -> Measurement:
    """Evaluate what was chosen beside classics and others; exactly where that is possible.

    The result is the best that is known: if one of the others is clearly better, it takes the place of
    what was chosen. If that was not `learned`, nothing speaks for it, and the lowest value decides.
    """
    margin = _CLEARLY if learned else 0.0
    rest = reported_on(task.prior)
    if isinstance(task.prior, Table) and isinstance(rest, Table) and rest is not task.prior:
        announce(
            f"learned on {len(task.prior.means)} problems of the table, measured on the other {len(rest.means)}"
        )
        task = replace(task, prior=rest)
    elif isinstance(task.prior, Table):
        announce(
            f"warning: the table has {len(task.prior.means)} problems only, on which the result is learned and "
            f"measured: it looks better than on others. From 20 problems on, half are kept to measure on"
        )
    everyone = [chosen, *(item for item in _rivals(task, beside) if item.name != chosen.name)]
    comparison, evaluation = _evaluate(task, everyone, announce)
    values, errors = _standing(task, everyone, comparison, evaluation)
    best = 0
    for place in range(1, len(everyone)):
        if values[place] < min(values[0] - margin * errors[place], values[best]):
            best = place
    if best:
        announce(f"{everyone[best].name} is better than the best that was found, and is the result")
        order = [best, *(place for place in range(len(everyone)) if place != best)]
        comparison = comparison.reordered(order)
        evaluation = comparison[0]
    comparison = replace(comparison, floor=None if task.least is None else task.least.wait())
    found = everyone[best]
    return Measurement(
        found,
        comparison,
        evaluation,
        float(values[best]),
        unbeaten=best > 0,
        power=_power(task, found),
    )


def _exact_seconds(task: Task, policies: Sequence[Policy]) -> float:
    """What exact evaluation takes per policy; infinite if there is none."""
    plans = [item.plan(task.prior, task.horizon) for item in policies]
    if exact.obstacle(task.prior, plans, task.horizon, task.feedback) is not None:
        return float("inf")
    return task.exact_seconds


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
    work, limit, effort = horizon * prior.arms, task.time_limit, min(task.effort, 1.0)
    enough = max(_REPORT_WORK / work, min(_ENOUGH_EPISODES, _ENOUGH_WORK / work))
    episodes = int(min(_MOST_EPISODES, max(effort * enough, _LEAST_EPISODES)))
    first = everyone[:1]
    seconds = _exact_seconds(task, first)
    patience = min(effort * _PATIENCE, limit.left / 4.0)
    pending: Pending | None = None
    if seconds <= patience and workers.executor is not None:
        # A worker begins with what takes longest.
        tool = partial(exact.Exact, prior, horizon, feedback=task.feedback)
        arguments = (first[0].plan(prior, horizon), default_checkpoints(horizon))
        pending = workers.submit(tool, "alone", Job(arguments, seconds))
    announce(f"measuring the result and the classics on {episodes:,} fresh problems ...")
    if limit.given:
        # At least some are played, however little time is left.
        left = limit.left - (seconds if seconds <= patience else 0.0)
        # Objectives other than a mean are measured after it.
        options["time_limit"] = max(left if task.objective.mean else left / 2.0, 1e-3)
    try:
        comparison = evaluate(
            everyone, prior, horizon, method="monte-carlo", episodes=episodes, **options
        )
    except BaseException:
        if pending is not None:
            pending.cancel()
        raise
    options.pop("time_limit", None)
    if seconds <= patience:
        announce("computing its exact regret ...")
        with suppress(InputError):  # more memory than there is
            if pending is not None:
                found: Evaluation = pending.result()
                return comparison, found
            return comparison, evaluate(first, prior, horizon, method="exact", **options)[0]
    return comparison, comparison[0]


def _standing(
    task: Task, everyone: Sequence[Policy], comparison: Comparison, evaluation: Evaluation
) -> tuple[Array, Array]:
    """The values of policies, and the standard errors of their differences from the first."""
    objective = task.objective
    if objective.mean and objective.power is None:
        if objective.simple:
            simple = np.array([item.simple_regret for item in comparison])
            errors = np.array([item.simple_error for item in comparison])
            return simple - simple[0] + evaluation.simple_regret, np.hypot(errors, errors[0])
        differences = [comparison.difference(place, 0) for place in range(len(everyone))]
        # The first may be known exactly: the others by how far they are from it.
        values = np.array([evaluation.mean_regret + item.mean for item in differences])
        return values, np.array([item.standard_error for item in differences])
    # On as many problems as a judge begins with by itself, whatever learning was told.
    task = replace(task, episodes=None)
    judge = Judge(task, judging_method(everyone[0], task), seed=stream(task.seed, 4))
    values, errors = np.full(len(everyone), np.inf), np.zeros(len(everyone))
    places = [place for place, item in enumerate(everyone) if judge.can_judge(item)]
    if task.time_limit.given and judge.noisy:
        fit = task.time_limit.left / (2 * len(places) * judge.pace(everyone[0]))
        judge.problems = max(2, min(judge.problems, int(fit)))
    # All on a few problems, then the better ones on many.
    for more in (False, True):
        if more and judge.noisy and not task.time_limit.given:
            work = task.horizon * task.prior.arms * judge.runs
            wanted = min(_REPORT_PROBLEMS, int(_OBJECTIVE_WORK / work))
            judge.problems = max(judge.problems, int(min(task.effort, 1.0) * wanted))
        values[:] = np.inf
        values[places], parts = judge.judge_parts(
            [everyone[place] for place in places], 0 if more else 1
        )
        if parts is None:
            break
        errors[places] = difference_errors(parts)
        places = [0, *np.flatnonzero(values[1:] - values[0] < _CLEARLY * errors[1:]) + 1]
    return values, errors


def _power(task: Task, chosen: Policy) -> float | None:
    """The power of a trial, if the objective asks for some."""
    if task.objective.power is None:
        return None
    judge = Judge(task, EXACTLY, seed=0)
    return float(judge.power([chosen.plan(task.prior, task.horizon)])[0])
