"""Rules of live play that look their choices up in tables: Gittins indices, and optimal policies."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import numerics
from ..decisions import ByBonus, ByCuts, ByStates, ByTable
from ..errors import InputError
from .arm import Arm, ArmName
from .rule import Moment, Rule


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
