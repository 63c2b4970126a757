"""Rules of live play that decide by posteriors: Thompson sampling, and what compares all arms at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from .. import lookahead, numerics
from ..decisions import BetaBelief, ByBelief, ByPosterior, NormalBelief
from .arm import Arm, ArmName
from .chances import beta_draw, chances_of_the_largest, normal_draw
from .rule import Moment, Rule


@cache
def _normal_quantile() -> Callable[[float], float]:
    from statistics import NormalDist

    return NormalDist().inv_cdf


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
        return [
            numerics.beta_draw(a, b, moment.key, moment.step, numerics.ARMS + 8 * position)
            for position, (a, b) in enumerate(posteriors)
        ]

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
        # Whether an arm is drawn with the shares that are computed; else the largest value wins.
        self.drawn = decision.rule in ("ids", "ttts")
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
        if self.drawn:
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
        if not self.drawn:
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
        return self._shares(moment) if self.drawn else super().chances(moment)
