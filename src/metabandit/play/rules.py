"""How each kind of decision is made in live play: one choice at a time, in plain Python.

These are the decisions of kernels/simulator.py and kernels/decide.py in float64. They use the same
random numbers, so that a player and a simulated episode make the same plays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from .. import numerics
from ..decisions import (
    ByCuts,
    ByEpochs,
    ByPosterior,
    ByTable,
    Decision,
    Index,
    Own,
    check_needed,
    check_rate,
)
from ..errors import IndexFault, InputError
from ..language import Apply, variables
from .arm import Arm, ArmName
from .index import index_functions, index_values, moment_value

# Values closer than this, relative to their size, are equal.
TIE = 1e-9
# Far enough for the further draws of a selection to meet no other selection's.
_FAR = 1 << 24


@dataclass(slots=True)  # frozen ones take longer to make
class Moment:
    """A selection to make: the arms that can be played, and what is known of the time.

    t counts pseudo-plays and all arms; h is at least 1; step counts selections; arms_in_all may be
    more than len(arms) while others wait for their first reward.
    """

    arms: Sequence[Arm]
    t: float
    h: float
    arms_in_all: int
    key: int
    step: int

    def best(self, values: Sequence[float], step: int | None = None) -> tuple[int, bool]:
        """The position of the largest value, ties at random, and whether there was a tie."""
        top = max(values)
        least = top - TIE * abs(top)
        tied = [position for position, value in enumerate(values) if value >= least]
        if len(tied) == 1:
            return tied[0], False
        at = self.step if step is None else step
        return tied[numerics.below(self.key, at, numerics.TIES, len(tied))], True


class Rule:
    """How a decision is made, arm by arm."""

    # What it remembers beyond the counts; most remember nothing.
    memory: dict[str, Any] | None = None

    def choose(self, moment: Moment) -> int:
        """The position of the arm to play."""
        values = self.indices(moment)
        assert values is not None, "a rule that compares nothing has a choose of its own"
        return moment.best(values)[0]

    def indices(self, moment: Moment) -> list[float] | None:
        """What is compared, one number per arm; None if nothing is."""
        return None

    def check(self, arms: Sequence[ArmName]) -> None:
        """Refuse arms that the rule cannot play."""


class IndexRule(Rule):
    """The largest index, after needed plays and random ones (see decisions.py)."""

    def __init__(self, name: str, decision: Index) -> None:
        self.name = name
        self.decision = decision
        self.uses_s = "s" in variables(decision.tree)
        self.quick, self.safe = index_functions(decision.bound)
        self.values = index_values(decision.bound)
        rate, needed = decision.bound_rate, decision.bound_needed
        self.rate = None if rate is None else moment_value(rate)
        self.needed = None if needed is None else moment_value(needed)

    def _behind(self, moment: Moment) -> bool:
        """Whether some arm has fewer plays than it needs."""
        if self.needed is None:
            return False
        needed = self.needed(moment.t, moment.h, moment.arms_in_all)
        check_needed(needed, self.decision)
        return min(arm.plays for arm in moment.arms) < needed

    def indices(self, moment: Moment) -> list[float] | None:
        if self._behind(moment):
            return None
        return self.values(moment.arms, moment.t, moment.h, moment.arms_in_all)

    def choose(self, moment: Moment) -> int:
        if self.needed is not None and self._behind(moment):
            return moment.best([-arm.plays for arm in moment.arms])[0]
        if self.rate is not None:
            rate = self.rate(moment.t, moment.h, moment.arms_in_all)
            if not 0.0 <= rate <= 1.0:
                check_rate(rate, self.decision)
            if numerics.unit(moment.key, moment.step, numerics.CHOICES) < rate:
                return numerics.below(
                    moment.key, moment.step, numerics.CHOICES + 1, len(moment.arms)
                )
        return self.best(moment)

    def best(self, moment: Moment) -> int:
        """The position of the largest index."""
        arms, t, h, K = moment.arms, moment.t, moment.h, moment.arms_in_all
        try:
            values = self.quick(arms, t, h, K)
        except (ArithmeticError, ValueError, TypeError):
            values = self.safe(arms, t, h, K)
        if not math.isfinite(sum(values)):
            values = self.safe(arms, t, h, K)
            for arm, value in zip(arms, values, strict=True):
                if not math.isfinite(value):
                    state = (arm.plays, arm.mean, arm.deviation, moment.t, value)
                    raise IndexFault(self.name, state, uses_s=self.uses_s)
        return moment.best(values)[0]


class KlRule(IndexRule):
    """The largest kl_upper(mean, bound), without computing most of them.

    kl(p, q) >= 2 (q - p)^2 (Pinsker), so the index is at most mean + sqrt(bound/2): where that is
    below an index that is known, the arm cannot win.
    """

    def __init__(self, name: str, decision: Index) -> None:
        super().__init__(name, decision)
        assert isinstance(decision.bound, Apply)
        self.parts = [index_values(operand) for operand in decision.bound.operands]

    def best(self, moment: Moment) -> int:
        arms, t, h, K = moment.arms, moment.t, moment.h, moment.arms_in_all
        means, bounds = (part(arms, t, h, K) for part in self.parts)
        if not math.isfinite(sum(means) + sum(bounds)):
            return super().best(moment)
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
                return super().best(moment)
            best = max(best, value)
        return moment.best(values)[0]


class EpochRule(Rule):
    """UCB2: an arm's memory is its level (ByEpochs.levels) and the empty epochs of it that are past."""

    def __init__(self, decision: ByEpochs, horizon: int | None) -> None:
        self.alpha = decision.alpha
        self.far = horizon or _FAR
        self._more = decision.levels()
        self._levels: list[tuple[int, int]] = []
        self.memory = {"arm": None, "left": 0}

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

    def choose(self, moment: Moment) -> int:
        assert self.memory is not None
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


@cache
def _normal_quantile() -> Callable[[float], float]:
    from statistics import NormalDist

    return NormalDist().inv_cdf


def _log_gamma_draw(shape: float, key: int, step: int, stream: int) -> float:
    """The logarithm of a Gamma variate (Marsaglia, Tsang 2000), with U^(1/a) for shapes below 1."""
    quantile = _normal_quantile()
    log = math.log
    d = shape + 2.0 / 3.0 if shape < 1.0 else shape - 1.0 / 3.0
    attempt = stream
    while True:
        z = quantile(numerics.unit(key, step, attempt))
        root = 1.0 + z / math.sqrt(9.0 * d)
        if root > 0.0:
            log_v = 3.0 * log(root)
            least = 0.5 * z * z + d - d * root * root * root + d * log_v
            if log(numerics.unit(key, step, attempt + 1)) < least:
                break
        attempt += 1 << 16
    result = log(d) + log_v
    if shape < 1.0:
        result += log(numerics.unit(key, step, stream + 2)) / shape
    return result


class PosteriorRule(Rule):
    """Thompson sampling: the largest draw from the posteriors."""

    def __init__(self, decision: ByPosterior) -> None:
        self.decision = decision

    def choose(self, moment: Moment) -> int:
        beta = self.decision.beta
        draws = self._gaussian(moment) if beta is None else self._beta(moment, *beta)
        return draws.index(max(draws))

    def _beta(self, moment: Moment, a: float, b: float) -> list[float]:
        # X / (X + Y) with Gamma variates is a Beta variate; ln X - ln Y orders them alike.
        draws = []
        key, step, stream = moment.key, moment.step, numerics.ARMS
        for arm in moment.arms:
            wins = _log_gamma_draw(a + arm.total, key, step, stream)
            failures = max(b + arm.plays - arm.total, 1e-6)
            draws.append(wins - _log_gamma_draw(failures, key, step, stream + 4))
            stream += 8
        return draws

    def _gaussian(self, moment: Moment) -> list[float]:
        quantile = _normal_quantile()
        draws = []
        for position, arm in enumerate(moment.arms):
            z = quantile(numerics.unit(moment.key, moment.step, numerics.ARMS + position))
            draws.append(arm.mean + self.decision.sigma * z / math.sqrt(arm.plays))
        return draws


def _posterior_means(arms: Sequence[Arm], means: Sequence[tuple[float, float]]) -> list[float]:
    """What counts at the last play, and beyond the horizon."""
    return [(a + arm.total) / (a + b + arm.plays) for arm, (a, b) in zip(arms, means, strict=True)]


class TableRule(Rule):
    """The largest index from a table; an arm that is added is like the others if these are alike."""

    def __init__(self, decision: ByTable, arms: Sequence[ArmName]) -> None:
        self.decision = decision
        self.rows = dict(zip(arms, decision.row_of, strict=False))
        self.means = dict(zip(decision.row_of, decision.means, strict=True))
        self.alike = len(self.means) == 1

    def check(self, arms: Sequence[ArmName]) -> None:
        for arm in arms:
            if not self.alike and arm not in self.rows:
                raise InputError(
                    f"the arms have means of different distributions, so nothing is known of another "
                    f"arm, {arm!r}; begin again with a prior for all arms"
                )

    def indices(self, moment: Moment) -> list[float]:
        made = round(moment.t)
        rows = [self.rows.get(arm.name, 0) for arm in moment.arms]
        if made >= self.decision.horizon:
            return _posterior_means(moment.arms, [self.means[row] for row in rows])
        values = []
        for arm, row in zip(moment.arms, rows, strict=True):
            table = self.decision.table[row]
            total = min(max(arm.total, 0.0), arm.plays)
            whole = int(total)
            entry = math.comb(made + 2, 3) + math.comb(round(arm.plays) + 1, 2) + whole
            value = float(table[entry])
            if total > whole:
                value += (total - whole) * (float(table[entry + 1]) - value)
            values.append(value)
        return values


class CutsRule(Rule):
    """The better of two arms that pay 0 or 1, from a table."""

    def __init__(self, decision: ByCuts) -> None:
        self.decision = decision

    def check(self, arms: Sequence[ArmName]) -> None:
        if len(arms) != 2:
            raise InputError(f"the optimal policy is a table for 2 arms, not {len(arms)}")

    def choose(self, moment: Moment) -> int:
        made = round(moment.t)
        if made >= self.decision.horizon:
            return moment.best(_posterior_means(moment.arms, self.decision.means))[0]
        first, second = moment.arms
        entry = math.comb(made + 2, 3) + math.comb(round(first.plays) + 1, 2) + round(first.total)
        better, equal = self.decision.cuts[entry]
        if second.total < better:
            return 0
        if second.total < equal:
            return numerics.below(moment.key, moment.step, numerics.TIES, 2)
        return 1


class OwnRule(Rule):
    """A person's own choose(n, r, s, t, h, u), as it is."""

    def __init__(self, name: str, decision: Own) -> None:
        self.name = name
        self.function = decision.function

    def choose(self, moment: Moment) -> int:
        import numpy as np

        arms = moment.arms
        rows = [[arm.plays, arm.mean, arm.deviation] for arm in arms]
        n, r, s = np.array(rows).T.copy()
        u = numerics.unit(moment.key, moment.step, numerics.CHOICES)
        arm = int(self.function(n, r, s, moment.t, moment.h, u))
        if not 0 <= arm < len(arms):
            raise InputError(f"the rule of {self.name} chose arm {arm} of {len(arms)}")
        return arm


def make_rule(decision: Decision, name: str, arms: Sequence[ArmName], horizon: int | None) -> Rule:
    """The rule of a decision, for arms of these names."""
    if isinstance(decision, Index):
        tree = decision.bound
        kl = isinstance(tree, Apply) and tree.operator == "kl_upper"
        return KlRule(name, decision) if kl else IndexRule(name, decision)
    if isinstance(decision, ByEpochs):
        return EpochRule(decision, horizon)
    if isinstance(decision, ByPosterior):
        return PosteriorRule(decision)
    if isinstance(decision, ByTable):
        return TableRule(decision, arms)
    if isinstance(decision, ByCuts):
        return CutsRule(decision)
    return OwnRule(name, decision)
