"""What policies bring on the same fresh problems, measured as far as time allows.

Every policy plays problems 0, 1, ... of one seed with the same rewards, some of them further than others.
With R_i(p) the regret of policy i on problem p, i and j are compared by the mean of R_i - R_j over the
problems that both have played; its standard error is the deviation of these differences over the root of
their number. The regret of a policy is that of the base (which plays as far as any) plus its difference
to the base: so a ranking does not depend on who met the harder problems.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..engine import costs, exact, states
from ..engine.engine import Engine
from ..engine.limits import TimeLimit
from ..engine.results import NORMAL_95, interval_95
from ..engine.simulated import feedback_obstacle
from ..engine.task import Task
from ..engine.threads import in_order
from ..errors import InputError
from ..policies import Plan, Policy
from ..priors.families import Array
from ..workers import Workers

# Kinds of policies: of the catalogue as they are, what people do without learning, what was searched for,
# what needs a table for the prior, and the user's own policy of today.
CLASSIC, BASELINE, FORMULA, LEARNED = "classic", "baseline", "formula", "learned"
REFERENCE, YOURS = "reference", "yours"
# The fewest problems that say anything, which is also how many episodes are played in step.
FEWEST = 64
_MOST_AT_ONCE = 8192
# Plays times arms, with a simple index, that are played without a look at the clock.
_BLOCK_WORK = 2e7
# A policy that is this many standard errors worse than the best is out of the race.
_WORSE = 4.0


class Gain(NamedTuple):
    """A mean with its 95 % interval: of rewards, of a difference or of regret."""

    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half of the interval; 0 if the mean is exact."""
        return (self.high - self.low) / 2.0


def gain_of(mean: float, error: float) -> Gain:
    """A mean with its 95 % interval, from its standard error."""
    return Gain(mean, *interval_95(mean, error))


def is_exact(task: Task) -> bool:
    """Whether regret is computed exactly; with three arms Thompson sampling cannot be."""
    if task.prior.arms > 2 or exact.obstacle(task.prior, [], task.horizon, task.feedback):
        return False
    return task.exact_seconds <= costs.EXACT_SECONDS


def obstacle(policy: Policy, task: Task) -> str | None:
    """Why a policy cannot play a task, or None; tables are not computed for that."""
    try:
        policy.check(task.prior, task.horizon)
        if not policy.tabled:
            return feedback_obstacle(policy.plan(task.prior, task.horizon), task.feedback)
    except InputError as error:
        return str(error).partition(";")[0]
    return None


class Measurements:
    """Policies of a task, each with its regret on the problems that it has played.

    The first policy is the base. A policy whose index fails is in `failed`, and is played no more.
    """

    def __init__(
        self, task: Task, seed: int, clock: TimeLimit, policies: Iterable[Policy] = ()
    ) -> None:
        self.task = task
        self.seed = seed
        self.clock = clock
        self.exact = is_exact(task)
        self.size = episode_size(task)
        self.policies: list[Policy] = []
        self.failed: set[int] = set()
        self._plans: list[Plan] = []
        self._regrets: list[Array] = []
        self._exact: list[float | None] = []
        # The last block of each policy, once it has played: its episodes, and its seconds on one thread.
        self._last: list[tuple[int, float] | None] = []
        self._engine = Engine(task.prior, task.horizon, Workers(1), feedback=task.feedback)
        for item in policies:
            self.add(item)

    def add(self, policy: Policy) -> int:
        """Add a policy that has played nothing yet; says where it is."""
        plan = policy.plan(self.task.prior, self.task.horizon)
        self.policies.append(policy)
        self._plans.append(plan)
        self._regrets.append(np.zeros(0))
        self._last.append(None)
        value: float | None = None
        if self.exact and states.obstacle(plan, self.task.prior.arms, self.task.feedback) is None:
            value = float(self._engine.exact_regret([plan]).mean())
            if not math.isfinite(value):
                self.failed.add(len(self._exact))
        self._exact.append(value)
        return len(self.policies) - 1

    # Playing -----------------------------------------------------------------------------------

    def play(
        self,
        places: Sequence[int],
        problems: int,
        *,
        surely: bool = False,
        tell: Callable[[float], None] | None = None,
    ) -> None:
        """Let policies play up to this many problems; those that time does not allow stop before.

        surely: whether they play whatever the clock says
        """
        blocks = sorted(
            block
            for place in places
            if place not in self.failed
            for block in self._blocks(place, problems)
        )
        stopped: set[int] = set()

        def due() -> Iterator[tuple[int, int, int]]:
            for first, place, last in blocks:
                # The other threads are busy as long, and one such block may be under way.
                if surely or self.clock.allows(2.0 * self.seconds(place, last - first)):
                    if place not in stopped:
                        yield first, place, last
                else:
                    stopped.add(place)

        threads = self.task.workers.threads
        played = in_order(self._play, due(), threads, ahead=threads)
        for done, (place, regret) in enumerate(played, 1):
            if place not in self.failed:
                self._regrets[place] = np.concatenate([self._regrets[place], regret])
            if not np.isfinite(regret).all():
                self.failed.add(place)
            if tell is not None:
                tell(done / len(blocks))

    def _play(self, block: tuple[int, int, int]) -> tuple[int, Array]:
        first, place, last = block
        begun = time.monotonic()
        found = self._engine.simulated_regret([self._plans[place]], [first, last], seed=self.seed)
        self._last[place] = last - first, time.monotonic() - begun
        return place, found[0]

    def _blocks(self, place: int, problems: int) -> Iterator[tuple[int, int, int]]:
        """What a policy still has to play, in parts that grow: how long one takes tells of the next."""
        rows = int(_BLOCK_WORK / self.size / costs.slowness(self.policies[place])) // FEWEST
        most = FEWEST * min(max(1, rows), _MOST_AT_ONCE // FEWEST)
        first = self.plays(place)
        while first < problems:
            last = min(first + min(most, max(FEWEST, first)), problems)
            yield first, place, last
            first = last

    def seconds(self, place: int, episodes: float) -> float:
        """About how long a policy takes on one thread: as it took so far, else as others did."""
        own = self._last[place]
        if own is not None:
            return own[1] * _times(episodes / own[0])
        known = [
            last[1] / costs.slowness(policy) * _times(episodes / last[0])
            for last, policy in zip(self._last, self.policies, strict=True)
            if last is not None
        ]
        simple = float(np.median(known)) if known else self.size * episodes / costs.PLAYS
        return simple * costs.slowness(self.policies[place])

    def race(
        self,
        always: Iterable[int],
        problems: int,
        tell: Callable[[float], None] | None = None,
    ) -> None:
        """Double the problems up to this many; who is clearly worse than the best plays no more.

        always: policies that play on in any case
        """
        always = set(always)
        while self.played() and (now := max(self.plays(place) for place in always)) < problems:
            best = self.ranking()[0]
            running = [
                place
                for place in self.played()
                if place in always or not self._clearly_worse(place, best)
            ]
            aim = min(2 * now, problems)
            self.play(running, aim)
            if tell is not None:
                tell(max(self.plays(place) for place in always) / problems)
            if min(self.plays(place) for place in always if place not in self.failed) < aim:
                return  # no time is left

    def _clearly_worse(self, place: int, best: int) -> bool:
        mean, low, _ = self.difference(place, best)
        return mean > _WORSE / NORMAL_95 * (mean - low)

    # What was found ----------------------------------------------------------------------------

    def plays(self, place: int) -> int:
        """Episodes that a policy has played."""
        return len(self._regrets[place])

    def played(self) -> list[int]:
        """The policies that are measured."""
        return [
            place
            for place in range(len(self.policies))
            if place not in self.failed and (self._exact[place] is not None or self.plays(place))
        ]

    def is_sampled(self, place: int) -> bool:
        """Whether the regret of a policy has noise."""
        return self._exact[place] is None

    def difference(self, first: int, second: int) -> Gain:
        """Regret of one policy minus that of another, problem by problem."""
        pair = self._exact[first], self._exact[second]
        if pair[0] is not None and pair[1] is not None:
            return gain_of(pair[0] - pair[1], 0.0)
        apart = self._apart(first, second)
        if not len(apart):
            return Gain(math.nan, -math.inf, math.inf)
        return gain_of(float(apart.mean()), _error(apart))

    def _apart(self, first: int, second: int) -> Array:
        common = min(self.plays(first), self.plays(second))
        return np.asarray(self._regrets[first][:common] - self._regrets[second][:common])

    def regret(self, place: int) -> Gain:
        """The mean regret of a policy, from that of the base and the difference to it."""
        known = self._exact[place]
        if known is not None:
            return gain_of(known, 0.0)
        own = self._regrets[place]
        if self._exact[0] is None and len(own) >= self.plays(0):
            return gain_of(float(own.mean()), _error(own))
        base, apart = self.regret(0) if place else None, self._apart(place, 0)
        assert base is not None, "the base has played further than any"
        error = math.hypot(base.half / NORMAL_95, _error(apart))
        return gain_of(base.mean + float(apart.mean()), error)

    def is_comparable(self, place: int, other: int) -> bool:
        """Whether a policy has played half as far as another at least, or is clearly worse already."""
        enough = not self.is_sampled(place) or 2 * self.plays(place) >= self.plays(other)
        return enough or self._clearly_worse(place, other)

    def ranking(self) -> list[int]:
        """The policies that are measured, least regret first."""
        return sorted(self.played(), key=lambda place: self.regret(place).mean)

    def risk(self, place: int, other: int) -> float | None:
        """The share of problems on which a policy has more regret than another; None if none was played."""
        common = min(self.plays(place), self.plays(other))
        if not common:
            return None
        mine, theirs = (self._regrets[which][:common] for which in (place, other))
        # Equal plays may differ in the last bits.
        return float(np.mean(mine - theirs > 1e-9 * (np.abs(mine) + np.abs(theirs))))


def episode_size(task: Task) -> float:
    """What an episode takes, in plays times arms with simple rewards."""
    return task.horizon * task.prior.arms * costs.reward_slowness(task.prior)


def _times(more: float) -> float:
    """How many times as long it takes to play this many times the episodes; wide rows are quicker."""
    return more if more < 1.0 else 0.3 + 0.7 * more


def _error(values: Array) -> float:
    """The standard error of a mean; of one value it is not known."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.inf
