"""Expected reward and simple regret by recursion over the counts, in fractions.

`chance(arm, n, s)` is the probability that the arm pays; `shares(plays, wins)` the probability with
which each arm is played.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from metabandit.language import Tree
from tests.naive.language import value


def beta_chance(alpha, beta):
    return lambda arm, n, s: Fraction(alpha[arm] + s) / (alpha[arm] + beta[arm] + n)


def expected_reward(choose, chance, arms: int, horizon: int, each_once: bool):
    """`choose(values, plays, wins)` combines what each arm is worth into the value of a state."""

    @cache
    def value(plays, wins):
        made = sum(plays)
        if made == horizon:
            return Fraction(0)
        worth = []
        for arm in range(arms):
            p = chance(arm, plays[arm], wins[arm])
            more = tuple(n + (k == arm) for k, n in enumerate(plays))
            won = tuple(s + (k == arm) for k, s in enumerate(wins))
            if each_once and made < arms and arm != made:
                worth.append(None)  # not allowed yet
            else:
                worth.append(p * (1 + value(more, won)) + (1 - p) * value(more, wins))
        if each_once and made < arms:
            return worth[made]
        return choose(worth, plays, wins)

    return value((0,) * arms, (0,) * arms)


def best_of(worth, plays, wins):
    return max(worth)


def optimal_slices(alpha, beta, horizon: int) -> float:
    """The most reward of two arms in float64, a whole slice value[n1, s1, s2] at a time for longer horizons."""
    after = np.zeros((horizon + 2, horizon + 2, horizon + 2))
    n1, s1, s2 = np.ogrid[: horizon + 1, : horizon + 1, : horizon + 1]
    first = (alpha[0] + s1) / (alpha[0] + beta[0] + n1)
    for made in range(horizon - 1, -1, -1):
        n2 = np.maximum(made - n1, 0)
        second = (alpha[1] + s2) / (alpha[1] + beta[1] + n2)
        won, failed = after[1:, 1:, :-1], after[1:, :-1, :-1]
        one = first * (1 + won) + (1 - first) * failed
        two = second * (1 + after[:-1, :-1, 1:]) + (1 - second) * after[:-1, :-1, :-1]
        possible = (n1 <= made) & (s1 <= n1) & (s2 <= n2)
        after[:-1, :-1, :-1] = np.where(possible, np.maximum(one, two), 0.0)
    return float(after[0, 0, 0])


def by_shares(shares):
    def choose(worth, plays, wins):
        return sum(
            share * value for share, value in zip(shares(plays, wins), worth, strict=True) if share
        )

    return choose


def shares_of(values, tie: float = 1e-9):
    """The best values share the play evenly."""
    top = max(values)
    tied = [abs(v - top) <= tie * max(abs(v), abs(top)) for v in values]
    return [Fraction(int(t), sum(tied)) for t in tied]


def index_shares(tree: Tree, counts: np.ndarray, horizon: int):
    def shares(plays, wins):
        values = []
        made = sum(plays)
        for arm, (extra, s) in enumerate(zip(plays, wins, strict=True)):
            n = counts[0, arm] + extra
            r = (counts[1, arm] + s) / n
            variance = (counts[2, arm] + s) / n - r * r
            state = {"n": n, "r": r, "s": math.sqrt(max(variance, 0.0))}
            state |= {"t": counts[0].sum() + made, "h": horizon - made, "K": len(plays)}
            values.append(value(tree, state))
        return shares_of(values)

    return shares


def decision_shares(decision, counts: np.ndarray, horizon: int):
    """An index with needed plays and random ones, as decisions.py defines it."""
    by_index = index_shares(decision.bound, counts, horizon)

    def shares(plays, wins):
        made, arms = sum(plays), len(plays)
        moment = {"t": counts[0].sum() + made, "h": horizon - made, "K": arms}
        n = [counts[0, arm] + extra for arm, extra in enumerate(plays)]
        if decision.needed is not None and min(n) < value(decision.bound_needed, moment):
            return shares_of([-plays_of_arm for plays_of_arm in n])
        rate = 0.0 if decision.rate is None else value(decision.bound_rate, moment)
        return [rate / arms + (1 - rate) * share for share in by_index(plays, wins)]

    return shares


def epsilon_greedy_shares(c, d):
    def shares(plays, wins):
        rate = min(Fraction(1), Fraction(c) * len(plays) / (Fraction(d) ** 2 * (sum(plays) + 1)))
        greedy = shares_of([s / n for n, s in zip(plays, wins, strict=True)])
        return [rate / len(plays) + (1 - rate) * share for share in greedy]

    return shares


def ucb1_normal_shares(plays, wins):
    t = sum(plays)
    if min(plays) < math.ceil(8 * math.log(t)):
        return shares_of([-n for n in plays])
    values = []
    for n, s in zip(plays, wins, strict=True):
        r = s / n
        values.append(r + 4 * math.sqrt(r * (1 - r) * math.log(t - 1) / (n - 1)))
    return shares_of(values)


def uniform_shares(plays, wins):
    return [Fraction(1, len(plays))] * len(plays)


def _beta(a: int, b: int) -> Fraction:
    return Fraction(math.factorial(a - 1) * math.factorial(b - 1), math.factorial(a + b - 1))


def thompson_shares(alpha, beta):
    """P(X1 > X2) for Beta variates with whole parameters, one pair per arm, as a finite sum."""

    def shares(plays, wins):
        a1, a2 = (a + s for a, s in zip(alpha, wins, strict=True))
        b1, b2 = (b + n - s for b, n, s in zip(beta, plays, wins, strict=True))
        first = sum(
            _beta(a2 + i, b1 + b2) / ((b1 + i) * _beta(1 + i, b1) * _beta(a2, b2))
            for i in range(a1)
        )
        return [first, 1 - first]

    return shares


def simple_regret(shares, chance, expected_best, counts, horizon: int, each_once: bool):
    """E[best mean] - E[mean of the arm with the best mean after all plays], by recursion."""
    arms = counts.shape[1]

    def at_the_end(plays, wins):
        means = [
            (float(counts[1, arm]) + wins[arm]) / (float(counts[0, arm]) + plays[arm])
            if counts[0, arm] + plays[arm] > 0
            else -math.inf
            for arm in range(arms)
        ]
        top = max(means)
        tied = [arm for arm in range(arms) if abs(means[arm] - top) < 1e-12]
        return sum(float(chance(arm, plays[arm], wins[arm])) for arm in tied) / len(tied)

    @cache
    def value(plays, wins):
        made = sum(plays)
        if made == horizon:
            return at_the_end(plays, wins)
        if each_once and made < arms:
            share = [float(arm == made) for arm in range(arms)]
        else:
            share = [float(item) for item in shares(plays, wins)]
        total = 0.0
        for arm in range(arms):
            if share[arm]:
                p = float(chance(arm, plays[arm], wins[arm]))
                more = tuple(n + (k == arm) for k, n in enumerate(plays))
                won = tuple(s + (k == arm) for k, s in enumerate(wins))
                total += share[arm] * (p * value(more, won) + (1 - p) * value(more, wins))
        return total

    return expected_best - value((0,) * arms, (0,) * arms)
