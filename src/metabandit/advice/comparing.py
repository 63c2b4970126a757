"""Comparing the policies of an advice: on fresh problems of the prior, and on neighbouring ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..engine import Comparison, costs, evaluate, exact, states
from ..engine.results import EXACT
from ..engine.task import Task, stream
from ..errors import IndexFault, InputError
from ..policies import Policy
from ..priors import Prior
from .neighbours import Neighbour, neighbours
from .result import Candidate, Scenario, best_classic

# Policies are evaluated exactly where one takes this many seconds.
_EXACT_SECONDS = 0.15
# What the comparison may take, in plays times arms of a policy, and its most episodes.
_WORK = 6e7
_LEAST_EPISODES, _MOST_EPISODES = 1000, 200_000
_SLOW = 20.0
# A neighbour gets this share.
_NEIGHBOUR = 0.25
# How far each part of the work reaches.
_PARTS = {"formula": 0.3, "learning": 0.7, "ranking": 0.88, "neighbours": 1.0}

Tell = Callable[[float, str], None]


@dataclass(frozen=True)
class Request:
    """What advice is asked for, and whom to tell how far it is."""

    task: Task
    tell: Tell
    announce: Callable[[str], None]

    def part(self, name: str) -> Tell:
        """Progress of one part, told as that of the whole."""
        ends = list(_PARTS.values())
        place = list(_PARTS).index(name)
        low, high = ([0.0, *ends])[place], ends[place]
        return lambda share, doing: self.tell(low + (high - low) * share, doing)


def is_exact(prior: Prior, horizon: int) -> bool:
    """Whether regret is computed exactly; with three arms Thompson sampling cannot be."""
    if prior.arms > 2 or exact.obstacle(prior, [], horizon) is not None:
        return False
    return costs.exact_seconds(prior, horizon) <= _EXACT_SECONDS


def compare(
    policies: Sequence[Policy],
    where: Neighbour,
    request: Request,
    *,
    share: float,
    stream_number: int,
    floor: bool,
    tell: Tell,
) -> tuple[Comparison, list[tuple[str, str]]]:
    """All policies on the same fresh problems, and those whose index failed there."""
    size = where.horizon * where.prior.arms * costs.reward_slowness(where.prior)
    # Fewer for all where one is slow: it came from an exact comparison, which minds less.
    size *= max(1.0, max(map(costs.slowness, policies)) / _SLOW)
    episodes = int(share * request.task.effort * _WORK / size)
    episodes = min(_MOST_EPISODES, max(_LEAST_EPISODES, episodes))
    options: dict[str, Any] = {"method": "monte-carlo", "episodes": episodes}
    if is_exact(where.prior, where.horizon):
        options = {"method": EXACT}
    left = list(policies)
    faults: list[tuple[str, str]] = []
    while True:
        try:
            found = evaluate(
                left,
                where.prior,
                where.horizon,
                seed=stream(request.task.seed, stream_number),
                threads=request.task.workers.threads,
                floor=floor,
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
    request: Request, candidates: Sequence[Candidate], comparison: Comparison
) -> tuple[Scenario, ...]:
    """The policies that matter, on neighbouring problems."""
    classic = best_classic(candidates, comparison)
    matter = [
        place
        for place, item in enumerate(candidates)
        if item.file is not None or place == classic or item.policy.name == "thompson"
    ]
    near = neighbours(request.task.prior, request.task.horizon, seed=stream(request.task.seed, 9))
    tell = request.part("neighbours")
    found = []
    for number, where in enumerate(near):
        tell(number / len(near), where.label)
        places = [place for place in matter if _can_play(candidates[place].policy, where)]
        result, faults = compare(
            [candidates[place].policy for place in places], where, request,
            share=_NEIGHBOUR, stream_number=10 + number, floor=False, tell=lambda share, doing: None,
        )  # fmt: skip
        failed = dict(faults)
        places = [place for place in places if candidates[place].policy.name not in failed]
        found.append(Scenario(where.label, tuple(places), result))
    return tuple(found)


def _can_play(item: Policy, where: Neighbour) -> bool:
    try:
        item.check(where.prior, where.horizon)
        if is_exact(where.prior, where.horizon):
            return states.obstacle(item.plan(where.prior, where.horizon), where.prior.arms) is None
    except InputError:
        return False
    return True
