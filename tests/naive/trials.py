"""Trials, literally: all sequences of arms and outcomes are listed, in fractions.

`shares(known, waiting)` gives the probability of each arm, from (plays, successes) of the arms that are
known and the plays of each that wait.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from tests.naive.exact import shares_of
from tests.naive.feedback import comes_after


def final_distribution(shares, rates, horizon, feedback, looks=(), stops=None):
    """The probability of each (plays, successes) at the end; stops(plays, successes) ends it at a look."""
    arms, found, shares = len(rates), {}, cache(shares)

    def seen(history):
        made = len(history)
        known, waiting = [[0, 0] for _ in range(arms)], [0] * arms
        for place, (arm, success) in enumerate(history, start=1):
            if comes_after(feedback, place, horizon, 0.5) <= made:
                known[arm][0] += 1
                known[arm][1] += success
            else:
                waiting[arm] += 1
        return tuple(map(tuple, known)), tuple(waiting)

    def go_on(history, chance):
        plays = tuple(sum(arm == k for arm, _ in history) for k in range(arms))
        wins = tuple(sum(won for arm, won in history if arm == k) for k in range(arms))
        made = len(history)
        if made == horizon or (made in looks and stops(plays, wins)):
            found[plays, wins] = found.get((plays, wins), 0) + chance
            return
        for arm, share in enumerate(shares(*seen(history))):
            for success, p in ((1, rates[arm]), (0, 1 - rates[arm])):
                if share and p:
                    go_on([*history, (arm, success)], chance * share * p)

    go_on([], Fraction(1))
    assert sum(found.values()) == 1
    return found


def known_shares(shares, *, each_once=False, minimum=0):
    """shares(plays, wins) of a policy with immediate feedback, as `final_distribution` takes them."""

    def chosen(known, waiting):
        plays, wins = zip(*known, strict=True)
        arms = len(plays)
        if each_once and sum(plays) < arms:
            return [Fraction(int(arm == sum(plays))) for arm in range(arms)]
        if min(plays) < minimum:
            return shares_of([-n for n in plays])
        # Some twins compute with floats, whose thirds are none.
        return [Fraction(share).limit_denominator(10**9) for share in shares(plays, wins)]

    return chosen


def constrained_shares(horizon, degree, minimum, penalty):
    """Constrained randomised dynamic programming with uniform rates."""

    @cache
    def values(plays, wins):
        found = []
        for arm in (0, 1):
            p = Fraction(wins[arm] + 1, plays[arm] + 2)
            more = tuple(n + (k == arm) for k, n in enumerate(plays))
            won = tuple(s + (k == arm) for k, s in enumerate(wins))
            found.append(p * (1 + value(more, won)) + (1 - p) * value(more, wins))
        return found

    @cache
    def value(plays, wins):
        if sum(plays) == horizon:
            return Fraction(-penalty if min(plays) < minimum else 0)
        both = values(plays, wins)
        return degree * max(both) + (1 - degree) * min(both)

    def shares(plays, wins):
        first, second = values(plays, wins)
        if first == second:
            return [Fraction(1, 2)] * 2
        return [degree, 1 - degree] if first > second else [1 - degree, degree]

    return shares


def characteristics(final, rates, rejects, *, imbalance, fewer_than):
    """What operating_characteristics gives at given rates, from their definitions."""
    arms = len(rates)
    best = [k for k in range(arms) if rates[k] == max(rates)]
    others = [k for k in range(arms) if k not in best]

    def mean(of):
        return sum(chance * of(n, s) for (n, s), chance in final.items())

    def deviation(of):
        centre = mean(of)
        return math.sqrt(mean(lambda n, s: (of(n, s) - centre) ** 2))

    def chosen(n, s, arm):
        seen = [Fraction(s[k], n[k]) if n[k] else -1 for k in range(arms)]
        top = [k for k in range(arms) if seen[k] == max(seen)]
        return Fraction(int(arm in top), len(top))

    def given(there, of):
        share = mean(lambda n, s: int(there(n)))
        return None if not share else mean(lambda n, s: of(n, s) if there(n) else 0) / share

    def rate(n, s, arm):
        return Fraction(s[arm], n[arm])

    def wrong(n, s):
        return max(n[k] for k in others) - max(n[k] for k in best) > imbalance * sum(n)

    def quantile(arm, q):
        return next(x for x in range(100) if mean(lambda n, s, x=x: n[arm] <= x) >= q)

    each = range(arms)
    found = {
        "successes": mean(lambda n, s: sum(s)),
        "successes_sd": deviation(lambda n, s: sum(s)),
        "patients": mean(lambda n, s: sum(n)),
        "patients_sd": deviation(lambda n, s: sum(n)),
        "plays": [mean(lambda n, s, k=k: n[k]) for k in each],
        "plays_sd": [deviation(lambda n, s, k=k: n[k]) for k in each],
        "plays_quantiles": {
            str(float(q)): tuple(quantile(k, q) for k in each)
            for q in (
                Fraction(1, 20),
                Fraction(1, 4),
                Fraction(1, 2),
                Fraction(3, 4),
                Fraction(19, 20),
            )
        },
        "wrong_imbalance": mean(wrong) if others else None,
        "fewer": [mean(lambda n, s, k=k: n[k] < fewer_than) for k in each],
        "correct_selection": mean(lambda n, s: sum(chosen(n, s, k) for k in best)),
        "rejection": mean(rejects),
        "favours": [mean(lambda n, s, k=k: rejects(n, s) * chosen(n, s, k)) for k in each],
        "bias": [
            given(lambda n, k=k: n[k] > 0, lambda n, s, k=k: rate(n, s, k) - rates[k]) for k in each
        ],
        "mse": [
            given(lambda n, k=k: n[k] > 0, lambda n, s, k=k: (rate(n, s, k) - rates[k]) ** 2)
            for k in each
        ],
        "difference_bias": None,
        "difference_mse": None,
    }
    if arms == 2:

        def error(n, s):
            return rate(n, s, 1) - rate(n, s, 0) - (rates[1] - rates[0])

        found["difference_bias"] = given(all, error)
        found["difference_mse"] = given(all, lambda n, s: error(n, s) ** 2)
    return found


def fisher_p(n, s):
    """Fisher's two-sided p-value, in fractions."""
    total = sum(s)
    ways = {
        x: math.comb(n[0], x) * math.comb(n[1], total - x)
        for x in range(max(0, total - n[1]), min(n[0], total) + 1)
    }
    return Fraction(sum(w for w in ways.values() if w <= ways[s[0]]), sum(ways.values()))


def squared_z(n, s):
    """The square of the pooled statistic, in fractions."""
    total, made = sum(s), sum(n)
    if 0 in n or total in (0, made):
        return Fraction(0)
    x = Fraction(total, made)
    difference = Fraction(s[1], n[1]) - Fraction(s[0], n[0])
    return difference**2 / (x * (1 - x) * (Fraction(1, n[0]) + Fraction(1, n[1])))


def second_is_better(n, s):
    """P(p2 > p1 | counts) with uniform rates at first."""

    def beta(a, b):
        return Fraction(math.factorial(a - 1) * math.factorial(b - 1), math.factorial(a + b - 1))

    a1, a2 = s[0] + 1, s[1] + 1
    b1, b2 = n[0] - s[0] + 1, n[1] - s[1] + 1
    return sum(
        beta(a1 + i, b1 + b2) / ((b2 + i) * beta(1 + i, b2) * beta(a1, b1)) for i in range(a2)
    )


def conditional_rejections(shares, horizon, feedback, level):
    """The final counts in which the design's own conditional test rejects."""
    # Of all sequences with a common rate of 1/2; given the successes the rate does not matter.
    final = final_distribution(shares, [Fraction(1, 2)] * 2, horizon, feedback)
    found = set()
    for n, s in final:
        alike = {state: p for state, p in final.items() if sum(state[1]) == sum(s)}
        value = squared_z(n, s)
        tail = sum(p for state, p in alike.items() if squared_z(*state) >= value)
        if value > 0 and tail / sum(alike.values()) <= level:
            found.add((n, s))
    return found


def largest_null(final_at, rejects, nulls):
    """The largest probability to reject, of these common rates."""
    return max(sum(p for state, p in final_at(null).items() if rejects(*state)) for null in nulls)
