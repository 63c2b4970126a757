"""How each kind of policy chooses among arms in live play: one class each, in plain Python.

These are the rules of kernels/choices.py, one choice at a time and in float64. They use the same
random numbers, so that a player and a simulated episode make the same plays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from .. import numerics
from ..errors import IndexFault, InputError
from ..language import Apply, Tree, variables
from .arm import Arm, ArmName
from .index import index_values

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
    """How to choose. `each_once`: every arm is played before the rule is asked."""

    each_once = True

    def choose(self, moment: Moment) -> int:
        """The position of the arm to play."""
        return moment.best(self.indices(moment) or ())[0]

    def indices(self, moment: Moment) -> list[float] | None:
        """What is compared, one number an arm; None if nothing is."""
        return None

    def check(self, arms: Sequence[ArmName]) -> None:
        """Refuse arms that the rule cannot play."""

    # What the rule remembers beyond the counts; most remember nothing.
    memory: dict[str, Any] | None = None


class IndexRule(Rule):
    """The largest index."""

    def __init__(self, name: str, tree: Tree, *, each_once: bool) -> None:
        self.name = name
        self.each_once = each_once
        self.uses_s = "s" in variables(tree)
        self.values = index_values(tree)

    def indices(self, moment: Moment) -> list[float]:
        return self.values(moment.arms, moment.t, moment.h, moment.arms_in_all)

    def choose(self, moment: Moment) -> int:
        values = self.values(moment.arms, moment.t, moment.h, moment.arms_in_all)
        if not math.isfinite(sum(values)):
            for arm, value in zip(moment.arms, values, strict=True):
                if not math.isfinite(value):
                    state = (arm.plays, arm.mean, arm.deviation, moment.t, value)
                    raise IndexFault(self.name, state, uses_s=self.uses_s)
        return moment.best(values)[0]


class KlRule(IndexRule):
    """The largest kl_upper(mean, bound), without computing most of them.

    kl(p, q) >= 2 (q - p)^2 (Pinsker), so the index is at most mean + sqrt(bound/2): where that is
    below an index that is known, the arm cannot win.
    """

    def __init__(self, name: str, tree: Apply, *, each_once: bool) -> None:
        super().__init__(name, tree, each_once=each_once)
        self.parts = [index_values(operand) for operand in tree.operands]

    def choose(self, moment: Moment) -> int:
        arms, t, h, K = moment.arms, moment.t, moment.h, moment.arms_in_all
        means, bounds = (part(arms, t, h, K) for part in self.parts)
        if not math.isfinite(sum(means) + sum(bounds)):
            return super().choose(moment)
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
                return super().choose(moment)
            best = max(best, value)
        return moment.best(values)[0]


def index_rule(name: str, tree: Tree, *, each_once: bool) -> IndexRule:
    """The rule for an index."""
    if isinstance(tree, Apply) and tree.operator == "kl_upper":
        return KlRule(name, tree, each_once=each_once)
    return IndexRule(name, tree, each_once=each_once)


class Uniform(Rule):
    """Any arm."""

    each_once = False

    def choose(self, moment: Moment) -> int:
        return numerics.below(moment.key, moment.step, numerics.CHOICES, len(moment.arms))


@dataclass(frozen=True)
class EpsilonGreedy(Rule):
    """eps_n-greedy (Auer et al. 2002): any arm with probability min(1, c K / (d^2 (t + 1)))."""

    c: float
    d: float

    def indices(self, moment: Moment) -> list[float]:
        return [arm.mean for arm in moment.arms]

    def choose(self, moment: Moment) -> int:
        rate = min(1.0, self.c * moment.arms_in_all / (self.d**2 * (moment.t + 1.0)))
        if numerics.unit(moment.key, moment.step, numerics.CHOICES) < rate:
            return numerics.below(moment.key, moment.step, numerics.CHOICES + 1, len(moment.arms))
        return moment.best(self.indices(moment))[0]


class Ucb1Normal(Rule):
    """UCB1-Normal (Auer et al. 2002): an arm with fewer than ceil(8 ln t) plays, else the index."""

    def _behind(self, moment: Moment) -> bool:
        needed = math.ceil(8.0 * math.log(moment.t))
        return min(arm.plays for arm in moment.arms) < max(needed, 2)

    def indices(self, moment: Moment) -> list[float] | None:
        if self._behind(moment):
            return None
        log = 16.0 * math.log(moment.t - 1.0)
        return [
            arm.mean + math.sqrt(log * arm.deviation**2 / (arm.plays - 1.0)) for arm in moment.arms
        ]

    def choose(self, moment: Moment) -> int:
        values = self.indices(moment) or [-arm.plays for arm in moment.arms]
        return moment.best(values)[0]


def epoch_levels(alpha: float) -> Iterator[tuple[int, int]]:
    """UCB2's epochs: for each value of tau(r) = ceil((1 + alpha)^r), how many epochs r are empty.

    An epoch has length tau(r + 1) - tau(r). Of the epochs with one value of tau, all but the last
    are empty.
    """
    base = 1.0 + alpha

    def tau(epoch: int) -> int:
        return math.ceil(base**epoch)

    epoch = 0
    while True:
        value = tau(epoch)
        last = max(epoch, math.floor(math.log(value) / math.log(base)) - 1)
        while tau(last + 1) == value:
            last += 1
        yield value, last - epoch
        epoch = last + 1


class Ucb2(Rule):
    """UCB2 (Auer et al. 2002): the arm of the best index is played for an epoch.

    Each arm's memory is its level (see `epoch_levels`) and the empty epochs of it that are past.
    """

    def __init__(self, alpha: float, horizon: int | None) -> None:
        self.alpha = alpha
        self.far = horizon or _FAR
        self._more = epoch_levels(alpha)
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


@dataclass(frozen=True)
class ThompsonBeta(Rule):
    """Thompson sampling for rewards in [0, 1]: the largest draw from Beta(a + sum, b + n - sum)."""

    a: float
    b: float
    each_once = False

    def choose(self, moment: Moment) -> int:
        # X / (X + Y) with Gamma variates is a Beta variate; ln X - ln Y orders them alike.
        draws = []
        key, step, stream = moment.key, moment.step, numerics.ARMS
        for arm in moment.arms:
            wins = _log_gamma_draw(self.a + arm.total, key, step, stream)
            failures = max(self.b + arm.plays - arm.total, 1e-6)
            draws.append(wins - _log_gamma_draw(failures, key, step, stream + 4))
            stream += 8
        return draws.index(max(draws))


@dataclass(frozen=True)
class ThompsonGaussian(Rule):
    """Thompson sampling for other rewards: the largest draw from N(mean, sigma^2 / n)."""

    sigma: float

    def choose(self, moment: Moment) -> int:
        quantile = _normal_quantile()
        draws = []
        for position, arm in enumerate(moment.arms):
            z = quantile(numerics.unit(moment.key, moment.step, numerics.ARMS + position))
            draws.append(arm.mean + self.sigma * z / math.sqrt(arm.plays))
        return draws.index(max(draws))


def _posterior_means(arms: Sequence[Arm], means: Sequence[tuple[float, float]]) -> list[float]:
    """What counts at the last play, and beyond the horizon."""
    return [(a + arm.total) / (a + b + arm.plays) for arm, (a, b) in zip(arms, means, strict=True)]


class ByTable(Rule):
    """The largest index from a table by plays made and pair (plays, reward sum) of the arm.

    means: the Beta distribution of each arm's mean by its name, and that of an arm that is added
    tables: for each such distribution, the indices; between whole reward sums they are interpolated
    """

    each_once = False

    def __init__(
        self,
        horizon: int,
        means: dict[ArmName, tuple[float, float]],
        others: tuple[float, float] | None,
        tables: dict[tuple[float, float], Any],
    ) -> None:
        self.horizon = horizon
        self.means = means
        self.others = others
        self.tables = tables

    def check(self, arms: Sequence[ArmName]) -> None:
        for arm in arms:
            if self.others is None and arm not in self.means:
                raise InputError(
                    f"the arms have means of different distributions, so nothing is known of another "
                    f"arm, {arm!r}; begin anew with a prior for all arms"
                )

    def _mean(self, arm: Arm) -> tuple[float, float]:
        found = self.means.get(arm.name, self.others)
        assert found is not None, arm.name  # check() has refused it
        return found

    def indices(self, moment: Moment) -> list[float]:
        made = round(moment.t)
        means = [self._mean(arm) for arm in moment.arms]
        if made >= self.horizon:
            return _posterior_means(moment.arms, means)
        values = []
        for arm, mean in zip(moment.arms, means, strict=True):
            table = self.tables[mean]
            total = min(max(arm.total, 0.0), arm.plays)
            whole = int(total)
            entry = math.comb(made + 2, 3) + math.comb(round(arm.plays) + 1, 2) + whole
            value = float(table[entry])
            if total > whole:
                value += (total - whole) * (float(table[entry + 1]) - value)
            values.append(value)
        return values


class Cuts(Rule):
    """The Bayes-optimal choice between two arms that pay 0 or 1, from a table (OptimalPolicy.cuts)."""

    def __init__(
        self, horizon: int, means: Sequence[tuple[float, float]], cuts: Any, *, each_once: bool
    ) -> None:
        self.horizon = horizon
        self.means = means
        self.cuts = cuts
        self.each_once = each_once

    def check(self, arms: Sequence[ArmName]) -> None:
        if len(arms) != 2:
            raise InputError(f"the optimal policy is a table for 2 arms, not {len(arms)}")

    def choose(self, moment: Moment) -> int:
        made = round(moment.t)
        if made >= self.horizon:
            return moment.best(_posterior_means(moment.arms, self.means))[0]
        first, second = moment.arms
        entry = math.comb(made + 2, 3) + math.comb(round(first.plays) + 1, 2) + round(first.total)
        better, equal = self.cuts[entry]
        if second.total < better:
            return 0
        if second.total < equal:
            return numerics.below(moment.key, moment.step, numerics.TIES, 2)
        return 1


class OwnRule(Rule):
    """A person's own choose(n, r, s, t, h, u), as it is."""

    def __init__(self, name: str, choose: Callable[..., int]) -> None:
        self.name = name
        self.own = choose

    def choose(self, moment: Moment) -> int:
        import numpy as np

        arms = moment.arms
        rows = [[arm.plays, arm.mean, arm.deviation] for arm in arms]
        n, r, s = np.array(rows).T.copy()
        u = numerics.unit(moment.key, moment.step, numerics.CHOICES)
        arm = int(self.own(n, r, s, moment.t, moment.h, u))
        if not 0 <= arm < len(arms):
            raise InputError(f"the rule of {self.name} chose arm {arm} of {len(arms)}")
        return arm
