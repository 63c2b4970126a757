"""What an advice compares: policies of the catalogue, on fresh problems of the prior and on neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..engine import Comparison, costs, evaluate, exact, states
from ..engine.results import EXACT
from ..engine.simulated import feedback_obstacle
from ..engine.task import Task, stream
from ..errors import IndexFault, InputError
from ..policies import CATALOGUE, Policy, policy
from .neighbours import neighbours
from .result import Candidate, Scenario, best_classic

TOO_SLOW = "too slow"
# What takes so many times as long as a simple index is not simulated.
_FAR_TOO_SLOW = 50.0
# Up to this many plays the table of the Gittins index takes a few seconds.
_GITTINS_PLAYS = 1000
# Policies are evaluated exactly where one takes this many seconds.
_EXACT_SECONDS = 0.15
# What the comparison may take, in plays times arms of a policy, and its most episodes.
_WORK = 6e7
_LEAST_EPISODES, _MOST_EPISODES = 1000, 200_000
_SLOW = 20.0
# A neighbour gets this share.
_NEIGHBOUR = 0.25

Tell = Callable[[float, str], None]


def quiet(share: float, doing: str) -> None:
    """Show no progress."""


def is_exact(task: Task) -> bool:
    """Whether regret is computed exactly; with three arms Thompson sampling cannot be."""
    if task.prior.arms > 2 or exact.obstacle(task.prior, [], task.horizon, task.feedback):
        return False
    seconds = costs.exact_seconds(task.prior, task.horizon, feedback=task.feedback)
    return seconds <= _EXACT_SECONDS


def playable(task: Task) -> tuple[list[Policy], list[Policy], list[tuple[str, str]]]:
    """Untuned classics, references that need tables, and what is left out with the reason."""
    classics: list[Policy] = []
    references: list[Policy] = []
    skipped: list[tuple[str, str]] = []
    for name in CATALOGUE:
        if name in ("optimal", "whittle"):
            continue  # the one is the floor, the other takes longer than it is worth
        item = policy(name)
        why = _obstacle(item, task)
        if why is not None:
            skipped.append((name, why))
        elif item.tabled:
            references.append(item)
        else:
            classics.append(item)
    return classics, references, skipped


def _obstacle(item: Policy, task: Task) -> str | None:
    """Why a policy is not played, or None."""
    prior, horizon = task.prior, task.horizon
    if item.tabled and horizon > _GITTINS_PLAYS:
        return f"its table takes too long for more than {_GITTINS_PLAYS} plays"
    try:
        item.check(prior, horizon)
    except InputError as error:
        return str(error).partition(";")[0]
    if why := feedback_obstacle(item.plan(prior, horizon), task.feedback):
        return why
    if is_exact(task):
        why = states.obstacle(item.plan(prior, horizon), prior.arms, task.feedback)
        return None if why is None else f"no exact value, as the others have: {why}"
    if (times := costs.slowness(item)) >= _FAR_TOO_SLOW:
        return f"{TOO_SLOW}: a play takes some {times:.0f} times as long as with others"
    return None


def compare(
    policies: Sequence[Policy],
    task: Task,
    *,
    share: float = 1.0,
    stream_number: int = 7,
    floor: bool = False,
    tell: Tell = quiet,
) -> tuple[Comparison, list[tuple[str, str]]]:
    """All policies on the same fresh problems, and those whose index failed there."""
    size = task.horizon * task.prior.arms * costs.reward_slowness(task.prior)
    # Fewer for all where one is slow: it came from an exact comparison, which minds less.
    size *= max(1.0, max(map(costs.slowness, policies)) / _SLOW)
    episodes = min(_MOST_EPISODES, max(_LEAST_EPISODES, int(share * task.effort * _WORK / size)))
    options: dict[str, Any] = {"method": "monte-carlo", "episodes": episodes}
    if is_exact(task):
        options = {"method": EXACT}
    left = list(policies)
    faults: list[tuple[str, str]] = []
    while True:
        try:
            found = evaluate(
                left,
                task.prior,
                task.horizon,
                seed=stream(task.seed, stream_number),
                threads=task.workers.threads,
                floor=floor,
                floor_effort=task.bound_effort,
                feedback=task.feedback,
                progress=lambda done, total: tell(done / total, "comparing on fresh problems"),
                **options,
            )
            return found, faults
        except IndexFault as fault:
            # One that fails is left out and said so; the others play on.
            faults.append((fault.policy, str(fault).partition(";")[0]))
            left = [item for item in left if item.name != fault.policy]
            if len(left) == len(policies) - len(faults) + 1:
                raise


def compare_nearby(
    task: Task, candidates: Sequence[Candidate], comparison: Comparison, *, tell: Tell
) -> tuple[Scenario, ...]:
    """The policies that matter, on neighbouring problems."""
    classic = best_classic(candidates, comparison)
    matter = [
        place
        for place, item in enumerate(candidates)
        if item.file is not None or place == classic or item.policy.name == "thompson"
    ]
    near = neighbours(task)
    found = []
    for number, (label, other) in enumerate(near):
        tell(number / len(near), label)
        places = [place for place in matter if _can_play(candidates[place].policy, other)]
        result, faults = compare(
            [candidates[place].policy for place in places],
            other,
            share=_NEIGHBOUR,
            stream_number=10 + number,
        )
        failed = dict(faults)
        places = [place for place in places if candidates[place].policy.name not in failed]
        found.append(Scenario(label, tuple(places), result))
    return tuple(found)


def _can_play(item: Policy, task: Task) -> bool:
    try:
        item.check(task.prior, task.horizon)
        plan = item.plan(task.prior, task.horizon)
        if feedback_obstacle(plan, task.feedback) is not None:
            return False
        return not is_exact(task) or states.obstacle(plan, task.prior.arms, task.feedback) is None
    except InputError:
        return False
