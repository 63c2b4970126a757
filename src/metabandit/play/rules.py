"""How each kind of decision is made in live play: one choice at a time, in plain Python.

These are the decisions of kernels/simulator.py and kernels/decide.py in float64. They use the same
random numbers, so that a player and a simulated episode make the same plays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import numerics
from ..decisions import (
    ByBelief,
    ByBonus,
    ByCuts,
    ByEpochs,
    ByPosterior,
    ByStates,
    ByTable,
    ByTest,
    Decision,
    Index,
    Own,
    check_needed,
    check_rate,
)
from ..errors import IndexFault, InputError
from ..language import Apply, variables
from .arm import Arm, ArmName
from .chances import chances_of_a_race
from .index import index_values, moment_value
from .posteriors import BeliefRule, PosteriorRule
from .rule import TIE, Moment, Rule
from .tables import BonusRule, StatesRule, TableRule

# Random numbers that a rule of one's own is tried with.
_DRAWS = 1000
# Far enough for the further draws of a selection to meet no other selection's.
_FAR = 1 << 24


def _lacks(arms: Sequence[Arm]) -> list[float]:
    """What is largest for the arms with the fewest plays, those that wait included."""
    return [-arm.plays - arm.waits for arm in arms]


class IndexRule(Rule):
    """The largest index, after needed plays and random ones (see decisions.py)."""

    fractions = True

    def __init__(self, name: str, decision: Index) -> None:
        self.name = name
        self.decision = decision
        self.uses_s = "s" in variables(decision.tree)
        self.values = index_values(decision.compared)
        rate, needed = decision.bound_rate, decision.bound_needed
        self.rate = None if rate is None else moment_value(rate)
        self.needed = None if needed is None else moment_value(needed)

    def _behind(self, moment: Moment) -> bool:
        """Whether some arm has fewer plays than it needs."""
        if self.needed is None:
            return False
        needed = self.needed(moment.t, moment.h, len(moment.arms))
        check_needed(needed, self.decision)
        return min(arm.plays + arm.waits for arm in moment.arms) < needed

    def indices(self, moment: Moment) -> list[float] | None:
        if self._behind(moment):
            return None
        return self.values(moment.arms, moment.t, moment.h, len(moment.arms))

    def choose(self, moment: Moment) -> int:
        if self._behind(moment):
            return moment.best(_lacks(moment.arms))[0]
        if self.rate is not None:
            rate = self.rate(moment.t, moment.h, len(moment.arms))
            if not 0.0 <= rate <= 1.0:
                check_rate(rate, self.decision)
            if numerics.unit(moment.key, moment.step, numerics.CHOICES) < rate:
                return numerics.below(
                    moment.key, moment.step, numerics.CHOICES + 1, len(moment.arms)
                )
        return moment.best(self.compared(moment))[0]

    def chances(self, moment: Moment) -> list[float]:
        if self._behind(moment):
            return moment.share(moment.tied(_lacks(moment.arms)))
        best = moment.share(moment.tied(self.compared(moment)))
        if self.rate is None:
            return best
        count = len(moment.arms)
        rate = self.rate(moment.t, moment.h, count)
        check_rate(rate, self.decision)
        return [rate / count + (1.0 - rate) * chance for chance in best]

    def compared(self, moment: Moment) -> list[float]:
        """The index of each arm that could be the largest; all of them must be finite."""
        values = self.values(moment.arms, moment.t, moment.h, len(moment.arms))
        if not math.isfinite(sum(values)):
            for arm, value in zip(moment.arms, values, strict=True):
                if not math.isfinite(value):
                    state = (arm.plays + arm.waits, arm.mean, arm.deviation, moment.t, value)
                    raise IndexFault(self.name, state, uses_s=self.uses_s)
        return values


class KlRule(IndexRule):
    """The largest kl_upper(mean, bound), without computing most of them.

    kl(p, q) >= 2 (q - p)^2 (Pinsker), so the index is at most mean + sqrt(bound/2): where that is
    below an index that is known, the arm cannot win.
    """

    def __init__(self, name: str, decision: Index) -> None:
        super().__init__(name, decision)
        assert isinstance(decision.compared, Apply)
        self.parts = [index_values(operand) for operand in decision.compared.operands]

    def compared(self, moment: Moment) -> list[float]:
        arms, t, h, K = moment.arms, moment.t, moment.h, len(moment.arms)
        means, bounds = (part(arms, t, h, K) for part in self.parts)
        if not math.isfinite(sum(means) + sum(bounds)):
            return super().compared(moment)
        most = [
            m + math.sqrt(0.5 * b) if b > 0.0 else m for m, b in zip(means, bounds, strict=True)
        ]
        values = [-math.inf] * len(most)
        best = -math.inf
        for position in sorted(range(len(most)), key=most.__getitem__, reverse=True):
            # Twice the tolerance of ties: `most` has rounding of its own.
            if most[position] < best - 2.0 * TIE * abs(best):
                break
            values[position] = value = numerics.kl_upper(means[position], bounds[position])
            if value != value:
                return super().compared(moment)
            best = max(best, value)
        return values


class EpochRule(Rule):
    """UCB2: an arm's memory is its level (ByEpochs.levels) and the empty epochs of it that are past."""

    def __init__(self, decision: ByEpochs, horizon: int | None) -> None:
        self.alpha = decision.alpha
        self.far = horizon or _FAR
        self._more = decision.levels()
        self._levels: list[tuple[int, int]] = []
        self.memory: dict[str, Any] = {"arm": None, "left": 0}

    def check_memory(self, arms: Sequence[Arm]) -> None:
        arm, left = self.memory["arm"], self.memory["left"]
        if arm is not None and arm not in [item.name for item in arms]:
            raise ValueError(f"memory.arm: there is no arm {arm!r}")
        if type(left) is not int or left < 0:
            raise ValueError(f"memory.left: must be a whole number from 0, not {left!r}")
        for item in arms:
            # Each level but the first was a selection.
            most = item.rewarded + item.open + 1
            if item.memory and not (len(item.memory) == 2 and 0 <= item.memory[0] <= most):
                raise ValueError(f"the arm {item.name!r} cannot be at level {item.memory[0]}")

    def _level(self, number: int) -> tuple[int, int]:
        while len(self._levels) <= number:
            self._levels.append(next(self._more))
        return self._levels[number]

    def indices(self, moment: Moment) -> list[float]:
        values = []
        for arm in moment.arms:
            tau = self._level(arm.memory[0] if arm.memory else 0)[0]
            bonus = (1.0 + self.alpha) * math.log(math.e * moment.t / tau) / (2.0 * tau)
            # tau may be beyond e t while rewards are late.
            values.append(arm.mean + math.sqrt(max(bonus, 0.0)))
        return values

    def chances(self, moment: Moment) -> list[float]:
        names = [arm.name for arm in moment.arms]
        if self.memory["left"] > 0 and self.memory["arm"] in names:
            return moment.share([names.index(self.memory["arm"])])
        tied = moment.tied(self.indices(moment))
        # An arm is drawn again for each of its empty epochs: who is first to have had them all?
        needed = []
        for position in tied:
            level, past = moment.arms[position].memory or (0, 0)
            needed.append(max(0, self._level(level)[1] - past) + 1)
        found = [0.0] * len(names)
        for position, chance in zip(tied, chances_of_a_race(needed), strict=True):
            found[position] = chance
        return found

    def choose(self, moment: Moment) -> int:
        if self.memory["left"] > 0:
            for position, arm in enumerate(moment.arms):
                if arm.name == self.memory["arm"]:
                    self.memory["left"] -= 1
                    return position
        values = self.indices(moment)
        position, tied = moment.best(values)
        step = moment.step
        # An empty epoch is over at once, and the choice made again; without a tie it falls on the
        # same arm, as tau is the same all through a level.
        while tied:
            arm = moment.arms[position]
            level, past = arm.memory or (0, 0)
            if past >= self._level(level)[1]:
                break
            arm.memory = (level, past + 1)
            step += self.far
            position, _ = moment.best(values, step)
        arm = moment.arms[position]
        level = arm.memory[0] if arm.memory else 0
        length = self._level(level + 1)[0] - self._level(level)[0]
        arm.memory = (level + 1, 0)
        self.memory = {"arm": arm.name, "left": length - 1}
        return position


class TestRule(Rule):
    """The arm with the fewest plays while the test runs, then its winner."""

    def __init__(self, decision: ByTest) -> None:
        self.plays = decision.plays
        self.errors = decision.errors
        self.memory: dict[str, Any] = {"winner": None}

    def choose(self, moment: Moment) -> int:
        arms = moment.arms
        for position, arm in enumerate(arms):
            if arm.name == self.memory["winner"]:
                return position
        if min(arm.plays for arm in arms) >= self.plays:
            leader, _ = moment.best([arm.mean for arm in arms])
            if self._is_clear(arms, leader):
                self.memory = {"winner": arms[leader].name}
                return leader
        return moment.best(_lacks(arms))[0]

    def chances(self, moment: Moment) -> list[float]:
        arms = moment.arms
        known = [place for place, arm in enumerate(arms) if arm.name == self.memory["winner"]]
        if not known and min(arm.plays for arm in arms) >= self.plays:
            leaders = moment.tied([arm.mean for arm in arms])
            # Leaders that are tied are all clear, or none is.
            known = leaders if self._is_clear(arms, leaders[0]) else []
        return moment.share(known or moment.tied(_lacks(arms)))

    def _is_clear(self, arms: Sequence[Arm], leader: int) -> bool:
        if not self.errors:
            return True
        best = arms[leader]
        noise = best.deviation**2 / (best.plays - 1.0)
        for position, arm in enumerate(arms):
            lead, error = best.mean - arm.mean, noise + arm.deviation**2 / (arm.plays - 1.0)
            if position != leader and lead * lead <= self.errors**2 * error:
                return False
        return True


class OwnRule(Rule):
    """A person's own choose(n, r, s, t, h, u), as it is."""

    fractions = True

    def __init__(self, name: str, decision: Own) -> None:
        self.name = name
        self.function = decision.function

    def choose(self, moment: Moment) -> int:
        return self._chosen(moment, [numerics.unit(moment.key, moment.step, numerics.CHOICES)])[0]

    def chances(self, moment: Moment) -> list[float]:
        """By what it does with evenly spread random numbers, and with the one that it will be given."""
        luck = [(place + 0.5) / _DRAWS for place in range(_DRAWS)]
        luck.append(numerics.unit(moment.key, moment.step, numerics.CHOICES))
        chosen = self._chosen(moment, luck)
        return [chosen.count(position) / len(luck) for position in range(len(moment.arms))]

    def _chosen(self, moment: Moment, luck: Sequence[float]) -> list[int]:
        import numpy as np

        arms = moment.arms
        rows = [[arm.plays + arm.waits, arm.mean, arm.deviation] for arm in arms]
        n, r, s = np.array(rows).T.copy()
        found = []
        for u in luck:
            arm = int(self.function(n, r, s, moment.t, moment.h, u))
            if not 0 <= arm < len(arms):
                raise InputError(f"the rule of {self.name} chose arm {arm} of {len(arms)}")
            found.append(arm)
        return found


def make_rule(decision: Decision, name: str, arms: Sequence[ArmName], horizon: int | None) -> Rule:
    """The rule of a decision, for arms of these names."""
    if isinstance(decision, Index):
        tree = decision.bound
        kl = isinstance(tree, Apply) and tree.operator == "kl_upper"
        return KlRule(name, decision) if kl else IndexRule(name, decision)
    if isinstance(decision, ByEpochs):
        return EpochRule(decision, horizon)
    if isinstance(decision, ByPosterior):
        return PosteriorRule(decision, arms)
    if isinstance(decision, ByBelief):
        return BeliefRule(decision, arms, horizon)
    if isinstance(decision, ByTable):
        return TableRule(decision, arms)
    if isinstance(decision, ByBonus):
        return BonusRule(decision)
    if isinstance(decision, (ByCuts, ByStates)):
        return StatesRule(decision)
    if isinstance(decision, ByTest):
        return TestRule(decision)
    return OwnRule(name, decision)
