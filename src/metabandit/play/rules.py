"""How each kind of decision is made in live play: one choice at a time, in plain Python.

These are the decisions of kernels/simulator.py and kernels/decide.py in float64. They use the same
random numbers, so that a player and a simulated episode make the same plays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from .. import lookahead, numerics
from ..decisions import (
    BetaBelief,
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
    NormalBelief,
    Own,
    check_needed,
    check_rate,
)
from ..errors import IndexFault, InputError
from ..language import Apply, variables
from .arm import Arm, ArmName
from .chances import beta_draw, chances_of_a_race, chances_of_the_largest, normal_draw
from .index import index_functions, index_values, moment_value

# Values closer than this, relative to their size, are equal.
TIE = 1e-9
# Random numbers that a rule of one's own is tried with.
_DRAWS = 1000
# Far enough for the further draws of a selection to meet no other selection's.
_FAR = 1 << 24


@dataclass(slots=True)  # frozen ones take longer to make
class Moment:
    """A selection to make: the arms that can be played, and what is known of the time.

    t counts pseudo-plays, and plays that wait for their reward; h is at least 1; step counts selections.
    """

    arms: Sequence[Arm]
    t: float
    h: float
    key: int
    step: int

    def best(self, values: Sequence[float], step: int | None = None) -> tuple[int, bool]:
        """The position of the largest value, ties at random, and whether there was a tie."""
        tied = self.tied(values)
        if len(tied) == 1:
            return tied[0], False
        at = self.step if step is None else step
        return tied[numerics.below(self.key, at, numerics.TIES, len(tied))], True

    def tied(self, values: Sequence[float]) -> list[int]:
        """The positions of the largest value."""
        top = max(values)
        least = top - TIE * abs(top)
        return [position for position, value in enumerate(values) if value >= least]

    def share(self, positions: Sequence[int]) -> list[float]:
        """The chance of each arm if one of these positions is drawn at random."""
        found = [0.0] * len(self.arms)
        for position in positions:
            found[position] = 1.0 / len(positions)
        return found


class Rule:
    """How a decision is made, arm by arm."""

    # What it remembers beyond the counts; most remember nothing.
    memory: dict[str, Any] | None = None
    # Whether an arm may have had half a play.
    fractions = False
    # The arms that it knows, if they differ, so that nothing is known of another one.
    only: Container[ArmName] | None = None

    def choose(self, moment: Moment) -> int:
        """The position of the arm to play."""
        values = self.indices(moment)
        assert values is not None, "a rule that compares nothing has a choose of its own"
        return moment.best(values)[0]

    def indices(self, moment: Moment) -> list[float] | None:
        """What is compared, one number per arm; None if nothing is."""
        return None

    def chances(self, moment: Moment) -> list[float]:
        """The probability of each arm to be chosen, before the random numbers of the moment are known."""
        values = self.indices(moment)
        assert values is not None, "a rule that compares nothing has chances of its own"
        return moment.share(moment.tied(values))

    def check(self, arms: Sequence[ArmName]) -> None:
        """Refuse arms that the rule cannot play."""
        for arm in arms:
            if self.only is not None and arm not in self.only:
                raise InputError(
                    f"the arms have means of different distributions, so nothing is known of another "
                    f"arm, {arm!r}; begin again with a prior for all arms"
                )

    def check_memory(self, arms: Sequence[Arm]) -> None:
        """Refuse, with a ValueError, what the rule cannot remember of these arms."""


class IndexRule(Rule):
    """The largest index, after needed plays and random ones (see decisions.py)."""

    fractions = True

    def __init__(self, name: str, decision: Index) -> None:
        self.name = name
        self.decision = decision
        self.uses_s = "s" in variables(decision.tree)
        self.quick, self.safe = index_functions(decision.compared)
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
        if self.needed is not None and self._behind(moment):
            return moment.best([-arm.plays - arm.waits for arm in moment.arms])[0]
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
            fewest = [-arm.plays - arm.waits for arm in moment.arms]
            return moment.share(moment.tied(fewest))
        best = moment.share(moment.tied(self.compared(moment)))
        if self.rate is None:
            return best
        count = len(moment.arms)
        rate = self.rate(moment.t, moment.h, count)
        check_rate(rate, self.decision)
        return [rate / count + (1.0 - rate) * chance for chance in best]

    def compared(self, moment: Moment) -> list[float]:
        """The index of each arm that could be the largest; all of them must be finite."""
        arms, t, h, K = moment.arms, moment.t, moment.h, len(moment.arms)
        try:
            values = self.quick(arms, t, h, K)
        except (ArithmeticError, ValueError, TypeError):
            values = self.safe(arms, t, h, K)
        if not math.isfinite(sum(values)):
            values = self.safe(arms, t, h, K)
            for arm, value in zip(arms, values, strict=True):
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
        self.memory = {"arm": None, "left": 0}

    def check_memory(self, arms: Sequence[Arm]) -> None:
        assert self.memory is not None
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
        assert self.memory is not None
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


def _betas(
    belief: BetaBelief, places: Mapping[ArmName, int], arms: Sequence[Arm]
) -> list[tuple[float, float]]:
    """The Beta posterior (a, b) of each arm; one that was added is like the others."""
    found = []
    for arm in arms:
        a, b = belief.pairs[places.get(arm.name, 0)]
        found.append((a + arm.total, max(b + arm.plays - arm.total, 1e-6)))
    return found


def _places(arms: Sequence[ArmName]) -> dict[ArmName, int]:
    return {arm: place for place, arm in enumerate(arms)}


class PosteriorRule(Rule):
    """Thompson sampling: the largest draw from the posteriors."""

    fractions = True

    def __init__(self, decision: ByPosterior, arms: Sequence[ArmName]) -> None:
        self.belief, self.places = decision.belief, _places(arms)
        self.only = None if self.belief.alike else self.places
        # The chances that were computed last: they change with rewards only, and take long.
        self._known: tuple[list[tuple[float, float]], list[float]] | None = None

    def choose(self, moment: Moment) -> int:
        if isinstance(self.belief, BetaBelief):
            draws = self._beta(moment, _betas(self.belief, self.places, moment.arms))
        else:
            draws = self._gaussian(moment, self.belief)
        return draws.index(max(draws))

    def chances(self, moment: Moment) -> list[float]:
        if isinstance(self.belief, BetaBelief):
            betas = _betas(self.belief, self.places, moment.arms)
            if self._known is None or self._known[0] != betas:
                draws = [beta_draw(*item) for item in betas]
                self._known = betas, chances_of_the_largest(draws)
            return self._known[1]
        # An arm of which nothing is known draws more than any other, or less, with equal chances.
        posteriors = [self.belief.posterior(arm.plays, arm.mean) for arm in moment.arms]
        found, left = [0.0] * len(posteriors), 1.0
        for position, (_, deviation) in enumerate(posteriors):
            if deviation == math.inf:
                left *= 0.5
                found[position] = left
        known = [position for position, item in enumerate(posteriors) if item[1] < math.inf]
        if not known:
            found[0] += left
            return found
        draws = [normal_draw(*posteriors[position]) for position in known]
        for position, chance in zip(known, chances_of_the_largest(draws), strict=True):
            found[position] = left * chance
        return found

    def _beta(self, moment: Moment, posteriors: Sequence[tuple[float, float]]) -> list[float]:
        # X / (X + Y) with Gamma variates is a Beta variate; ln X - ln Y orders them alike.
        draws = []
        key, step, stream = moment.key, moment.step, numerics.ARMS
        for a, b in posteriors:
            wins = _log_gamma_draw(a, key, step, stream)
            draws.append(wins - _log_gamma_draw(b, key, step, stream + 4))
            stream += 8
        return draws

    def _gaussian(self, moment: Moment, belief: NormalBelief) -> list[float]:
        quantile = _normal_quantile()
        draws = []
        for position, arm in enumerate(moment.arms):
            mean, deviation = belief.posterior(arm.plays, arm.mean)
            z = quantile(numerics.unit(moment.key, moment.step, numerics.ARMS + position))
            draws.append(mean + deviation * z)
        return draws


class BeliefRule(Rule):
    """A rule that compares what is believed of all arms at once."""

    def __init__(self, decision: ByBelief, arms: Sequence[ArmName], horizon: int | None) -> None:
        self.decision = decision
        self.places = _places(arms)
        self.only = None if decision.belief.alike else self.places
        self.horizon = horizon
        self._room: list[list[list[float]]] = []

    def indices(self, moment: Moment) -> list[float] | None:
        arms, decision = moment.arms, self.decision
        values, best = [0.0] * len(arms), [0.0] * len(arms)
        if decision.rule == "ada-ucb":
            assert self.horizon is not None
            assert isinstance(decision.belief, NormalBelief)
            plays, means = [arm.plays + arm.waits for arm in arms], [arm.mean for arm in arms]
            noise = decision.belief.noise
            lookahead.adaptive_bounds(plays, means, float(self.horizon), noise, values)
            return values
        if decision.rule in ("ids", "ttts"):
            return None
        star, left = decision.number > 0.0, round(moment.h)
        betas = self._betas(arms)
        if betas is not None:
            a, b = zip(*betas, strict=True)
            lookahead.beta_knowledge(a, b, left, star, best, values)
            return values
        means, deviations = self._normals(arms)
        assert isinstance(decision.belief, NormalBelief)
        noise = decision.belief.noise
        lookahead.normal_knowledge(means, deviations, noise, left, star, best, values)
        return values

    def _betas(self, arms: Sequence[Arm]) -> list[tuple[float, float]] | None:
        """Posteriors in which what waits counts as if it had paid the posterior mean."""
        if not isinstance(self.decision.belief, BetaBelief):
            return None
        found = _betas(self.decision.belief, self.places, arms)
        more = [1.0 + arm.waits / (a + b) for arm, (a, b) in zip(arms, found, strict=True)]
        return [(a * share, b * share) for share, (a, b) in zip(more, found, strict=True)]

    def _normals(self, arms: Sequence[Arm]) -> tuple[list[float], list[float]]:
        belief = self.decision.belief
        assert isinstance(belief, NormalBelief)
        means = [belief.posterior(arm.plays, arm.mean)[0] for arm in arms]
        return means, [belief.posterior(arm.plays + arm.waits, 0.0)[1] for arm in arms]

    def _shares(self, moment: Moment) -> list[float]:
        count = len(moment.arms)
        if not self._room or len(self._room[0]) != count:
            self._room = [[[0.0] * lookahead.MOST_POINTS for _ in range(count)] for _ in range(3)]
            self._room.append([[0.0] * lookahead.MOST_POINTS for _ in range(3)])
        *rows, lines = self._room
        by_arm = [[0.0] * count for _ in range(4)]
        fine = self.decision.number >= 0.0
        betas = self._betas(moment.arms)
        if betas is not None:
            a, b = zip(*betas, strict=True)
            by_arm[0] = [one / (one + two) for one, two in betas]
            points, step = lookahead.fill_beta(a, b, fine, rows[0], rows[1], rows[2], lines)
        else:
            by_arm[0], deviations = self._normals(moment.arms)
            points, step = lookahead.fill_normal(
                by_arm[0], deviations, fine, rows[0], rows[1], rows[2], lines[0]
            )
        lookahead.shares(self.decision.number, points, step, rows, lines, by_arm)
        return by_arm[3]

    def choose(self, moment: Moment) -> int:
        if self.decision.rule not in ("ids", "ttts"):
            return super().choose(moment)
        u = numerics.unit(moment.key, moment.step, numerics.CHOICES)
        last = 0
        for position, share in enumerate(self._shares(moment)):
            if share > 0.0:
                last = position
                u -= share
                if u < 0.0:
                    break
        return last

    def chances(self, moment: Moment) -> list[float]:
        drawn = self.decision.rule in ("ids", "ttts")
        return self._shares(moment) if drawn else super().chances(moment)


def _posterior_means(arms: Sequence[Arm], means: Sequence[tuple[float, float]]) -> list[float]:
    """What counts at the last play, and beyond the horizon."""
    return [(a + arm.total) / (a + b + arm.plays) for arm, (a, b) in zip(arms, means, strict=True)]


class TableRule(Rule):
    """The largest index from a table; an arm that is added is like the others if these are alike."""

    def __init__(self, decision: ByTable, arms: Sequence[ArmName]) -> None:
        self.decision = decision
        self.rows = dict(zip(arms, decision.row_of, strict=False))
        self.means = dict(zip(decision.row_of, decision.means, strict=True))
        self.only = None if len(self.means) == 1 else self.rows

    def indices(self, moment: Moment) -> list[float]:
        made = round(moment.t)
        rows = [self.rows.get(arm.name, 0) for arm in moment.arms]
        if made >= self.decision.horizon:
            return _posterior_means(moment.arms, [self.means[row] for row in rows])
        values = []
        for arm, row in zip(moment.arms, rows, strict=True):
            table, total = self.decision.table[row], arm.total
            plays = round(arm.plays + arm.waits)
            if arm.waits:  # as if each had paid the posterior mean
                total += arm.waits * _posterior_means([arm], [self.means[row]])[0]
            total = min(max(total, 0.0), plays)
            whole = int(total)
            level = self.decision.begins[plays + self.decision.horizon - made]
            entry = level + math.comb(plays + 1, 2) + whole
            value = float(table[entry])
            if total > whole:
                value += (total - whole) * (float(table[entry + 1]) - value)
            values.append(value)
        return values


class BonusRule(Rule):
    """The largest posterior mean and bonus of Gaussian arms."""

    def __init__(self, decision: ByBonus) -> None:
        self.decision = decision

    def indices(self, moment: Moment) -> list[float]:
        decision = self.decision
        means = [decision.posterior_mean(arm.plays, arm.total) for arm in moment.arms]
        left = decision.horizon - round(moment.t)
        if left <= 0:
            return means
        values = []
        for mean, arm in zip(means, moment.arms, strict=True):
            plays = round(arm.plays + arm.waits)
            values.append(mean + float(decision.bonus[decision.begins[plays + left] + plays]))
        return values


class StatesRule(Rule):
    """The best of two or three arms that pay 0 or 1, from a table, by the rewards that have come."""

    def __init__(self, decision: ByCuts | ByStates) -> None:
        self.decision = decision

    def check(self, arms: Sequence[ArmName]) -> None:
        known = len(self.decision.means)
        if len(arms) != known:
            raise InputError(f"the optimal policy is a table for {known} arms, not {len(arms)}")

    def _tied(self, moment: Moment) -> list[int]:
        plays = [round(arm.plays) for arm in moment.arms]
        if sum(plays) >= self.decision.horizon:
            return moment.tied(_posterior_means(moment.arms, self.decision.means))
        return list(self.decision.best_arms(plays, [round(arm.total) for arm in moment.arms]))

    def _rate(self, moment: Moment) -> float:
        """The rate of random plays, which ends with the table."""
        if isinstance(self.decision, ByStates):
            return 0.0
        made = round(sum(arm.plays for arm in moment.arms))
        return self.decision.rate if made < self.decision.horizon else 0.0

    def choose(self, moment: Moment) -> int:
        if numerics.unit(moment.key, moment.step, numerics.CHOICES) < self._rate(moment):
            return numerics.below(moment.key, moment.step, numerics.CHOICES + 1, 2)
        tied = self._tied(moment)
        if len(tied) == 1:
            return tied[0]
        return tied[numerics.below(moment.key, moment.step, numerics.TIES, len(tied))]

    def chances(self, moment: Moment) -> list[float]:
        rate = self._rate(moment)
        return [0.5 * rate + (1.0 - rate) * share for share in moment.share(self._tied(moment))]


class TestRule(Rule):
    """The arm with the fewest plays while the test runs, then its winner."""

    def __init__(self, decision: ByTest) -> None:
        self.plays = decision.plays
        self.errors = decision.errors
        self.memory = {"winner": None}

    def choose(self, moment: Moment) -> int:
        assert self.memory is not None
        arms = moment.arms
        for position, arm in enumerate(arms):
            if arm.name == self.memory["winner"]:
                return position
        if min(arm.plays for arm in arms) >= self.plays:
            leader, _ = moment.best([arm.mean for arm in arms])
            if self._is_clear(arms, leader):
                self.memory = {"winner": arms[leader].name}
                return leader
        return moment.best([-arm.plays - arm.waits for arm in arms])[0]

    def chances(self, moment: Moment) -> list[float]:
        assert self.memory is not None
        arms = moment.arms
        known = [place for place, arm in enumerate(arms) if arm.name == self.memory["winner"]]
        if not known and min(arm.plays for arm in arms) >= self.plays:
            leaders = moment.tied([arm.mean for arm in arms])
            # Leaders that are tied are all clear, or none is.
            known = leaders if self._is_clear(arms, leaders[0]) else []
        return moment.share(known or moment.tied([-arm.plays - arm.waits for arm in arms]))

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
