"""Policies that compare the posteriors of all arms, by brute force: all outcomes, or integrals on fine grids."""

import math
from functools import cache

import numpy as np
from scipy import special

from .policies import Play
from .randomness import noise_bits, unit


def posteriors(play: Play, belief) -> list[tuple[float, float]]:
    """(a, b), or (mean, deviation), of each arm; what waits counts as if it had paid the posterior mean."""
    found = []
    for arm, rewards in enumerate(play.rewards):
        n, waits, total = len(rewards), play.waits(arm), play.totals[arm]
        if hasattr(belief, "pairs"):
            a, b = belief.pairs[arm][0] + total, belief.pairs[arm][1] + n - total
            found.append((a + waits * a / (a + b), b + waits * b / (a + b)))
        else:
            mean = (belief.plays * belief.mean + total) / (belief.plays + n)
            found.append((mean, belief.noise / math.sqrt(belief.plays + n + waits)))
    return found


@cache
def _beta_gains(a: float, b: float, c: float, most: int) -> list[float]:
    """What m plays of an arm are worth, m = 1, ..., most, from the chances of all numbers of successes."""
    chance, found = np.ones(1), []
    for m in range(most):
        p = (a + np.arange(m + 1)) / (a + b + m)
        chance = np.append(chance * (1 - p), 0) + np.append(0, chance * p)
        means = (a + np.arange(m + 2)) / (a + b + m + 1)
        found.append(float(chance @ np.maximum(means - c, 0)) - max(a / (a + b) - c, 0.0))
    return found


def _normal_gains(mean: float, deviation: float, noise: float, c: float, most: int) -> list[float]:
    m = np.arange(1, most + 1)
    told = np.sqrt(deviation**2 - 1 / (1 / deviation**2 + m / noise**2))
    z = -np.abs(mean - c) / told
    return (told * (z * special.ndtr(z) + np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi))).tolist()


def knowledge_choice(play: Play, belief, star: bool, tie: float = 1e-9) -> int:
    known = posteriors(play, belief)
    beta = hasattr(belief, "pairs")
    means = [a / (a + b) if beta else a for a, b in known]
    left = play.horizon - play.step
    values = []
    for arm, posterior in enumerate(known):
        c = max(means[:arm] + means[arm + 1 :])
        most = left - 1 if star else min(left - 1, 1)
        gains = (
            _beta_gains(*posterior, c, most)
            if beta
            else _normal_gains(*posterior, belief.noise, c, most)
        )
        best = max((gain / (m + 1) for m, gain in enumerate(gains)), default=0.0)
        values.append(means[arm] + (left - 1) * best)
    return play.best(values, tie=tie)


_ODDS = np.arange(-25, 25, 0.02)
_X = special.expit(_ODDS)


@cache
def _on_grid(a: float, b: float):
    """Density over ln(x/(1 - x)), distribution and partial mean of Beta(a, b)."""
    density = np.exp(a * _ODDS - (a + b) * np.logaddexp(0, _ODDS) - special.betaln(a, b))
    return density, special.betainc(a, b, _X), a / (a + b) * special.betainc(a + 1, b, _X)


def _ladder(a: float, b: float) -> np.ndarray:
    """Values of ln(x/(1 - x)) for Beta(a, b), dense where its distribution bends and out to its far ends."""
    far = 60.0 * np.array([-1.0 - 1.0 / min(a, 1.0), 1.0 + 1.0 / min(b, 1.0)])
    centres = [(math.log(a / b), math.sqrt(1 / a + 1 / b))]
    centres += [(place, 1.0) for place in (0.0, math.log(max(a, 1.0)), -math.log(max(b, 1.0)))]
    rungs = [c + w * np.sinh(np.linspace(*np.arcsinh((far - c) / w), 500)) for c, w in centres]
    return np.concatenate(rungs)


def _shares_below(y: np.ndarray, a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """The chances of a Beta(a, b) variate x to have ln(x/(1 - x)) below and above y, from -inf to inf."""
    with np.errstate(all="ignore"):
        left, right = (
            special.betainc(a, b, special.expit(y)),
            special.betainc(b, a, special.expit(-y)),
        )
        # What is too near to 0 or 1 for float64: powers of x, and of 1 - x.
        constant = special.betaln(a, b)
        left = np.where(y < -600, np.exp(np.minimum(a * y - math.log(a) - constant, 0)), left)
        right = np.where(y > 600, np.exp(np.minimum(-b * y - math.log(b) - constant, 0)), right)
    left, right = np.where(y > 0, 1 - right, left), np.where(y < 0, 1 - left, right)
    return np.concatenate([[0], left, [1]]), np.concatenate([[1], right, [0]])


def _best_of_extreme(known):
    """`best_arms` for any Beta distributions: sums over the intervals between many points."""
    y = np.unique(np.concatenate([_ladder(a, b) for a, b in known]))
    chances, parts, below, partial = [], [], [], []
    for a, b in known:
        left, right = _shares_below(y, a, b)
        first, last = _shares_below(y, a + 1, b)
        chances.append(np.where(left[1:] < 0.5, np.diff(left), -np.diff(right)))
        parts.append(a / (a + b) * np.where(first[1:] < 0.5, np.diff(first), -np.diff(last)))
        below.append((left[1:] + left[:-1]) / 2)
        partial.append(a / (a + b) * (first[1:] + first[:-1]) / 2)
    arms = range(len(known))
    chance, means = np.empty(len(known)), np.empty((len(known), len(known)))
    for j in arms:
        chance[j] = math.prod([chances[j], *(below[i] for i in arms if i != j)]).sum()
        for k in arms:
            first = parts[j] if k == j else chances[j] * partial[k]
            means[j, k] = math.prod([first, *(below[i] for i in arms if i not in (j, k))]).sum()
    return chance / chance.sum(), means / np.maximum(chance, 1e-300)[:, None]


def best_arms(known, beta: bool):
    """The chances of arms to be best, and the mean of each arm k if arm j is best, [j, k]."""
    if beta and not all(0.2 <= x <= 1e4 for pair in known for x in pair):
        return _best_of_extreme(known)
    if beta:
        x, step = _X, 0.02
        rows = [_on_grid(*posterior) for posterior in known]
    else:
        low = max(m - 12 * d for m, d in known)
        x = np.linspace(low, max(m + 12 * d for m, d in known), 6000)
        step, rows = x[1] - x[0], []
        for m, d in known:
            z = (x - m) / d
            density = np.exp(-(z**2) / 2) / (d * math.sqrt(2 * math.pi))
            rows.append((density, special.ndtr(z), m * special.ndtr(z) - d**2 * density))
    density, below, partial = (np.array(item) for item in zip(*rows, strict=True))
    below = np.maximum(below, 1e-250)
    weight = density * np.prod(below, axis=0) / below * step
    chance = weight.sum(axis=1)
    means = weight @ (partial / below).T / np.maximum(chance, 1e-300)[:, None]
    np.fill_diagonal(means, weight @ x / np.maximum(chance, 1e-300))
    return chance / chance.sum(), means


def ids_shares(known, beta: bool):
    chance, given = best_arms(known, beta)
    means = np.array([a / (a + b) if beta else a for a, b in known])
    lost = np.maximum(chance @ np.diag(given) - means, 0)
    told = chance @ (given - means) ** 2
    if lost.min() == 0.0:
        return np.eye(len(means))[lost.argmin()]
    i, j = np.triu_indices(len(means))

    def ratio(q):
        below = q * told[i] + (1 - q) * told[j]
        with np.errstate(all="ignore"):
            found = (q * lost[i] + (1 - q) * lost[j]) ** 2 / below
        return np.where(below > 0, found, np.inf)

    low, high = np.zeros(len(i)), np.ones(len(i))
    for _ in range(90):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        falls = ratio(left) > ratio(right)
        low, high = np.where(falls, left, low), np.where(falls, high, right)
    q = np.where(ratio(np.ones(len(i))) <= ratio(low) * (1 + 1e-12), 1.0, low)
    values = ratio(q)
    pair = np.flatnonzero(values <= values.min() * (1 + 1e-9))[0]
    shares = np.zeros(len(means))
    if not math.isfinite(values[pair]):
        shares[lost.argmin()] = 1.0
        return shares
    shares[i[pair]] += q[pair]
    shares[j[pair]] += 1 - q[pair]
    return shares


_known_ids_shares = cache(ids_shares)


def ttts_shares(known, beta: bool, keep: float):
    chance, _ = best_arms(known, beta)
    chance = np.maximum(chance, math.exp(-50.0))
    shares = keep * chance
    for leader in range(len(chance)):
        rest = np.delete(chance, leader).sum()
        for arm in range(len(chance)):
            if arm != leader:
                shares[arm] += (1 - keep) * chance[leader] * chance[arm] / rest
    return shares


def shares_choice(play: Play, belief, keep: float | None) -> int:
    """An arm drawn with the shares of IDS, or of top-two Thompson sampling."""
    known, beta = tuple(posteriors(play, belief)), hasattr(belief, "pairs")
    shares = _known_ids_shares(known, beta) if keep is None else ttts_shares(known, beta, keep)
    u = unit(noise_bits(play.key, play.step, 2))
    return min(int(np.searchsorted(np.cumsum(shares), u, side="right")), len(shares) - 1)


def ada_ucb_choice(play: Play, noise: float, tie: float = 1e-9) -> int:
    plays = [play.statistics(arm)[0] for arm in range(play.arms)]
    values = []
    for arm, n in enumerate(plays):
        others = sum(min(n, math.sqrt(n * other)) for other in plays)
        bonus = math.sqrt(2 / n * max(math.log(play.horizon / others), 0.0))
        values.append(play.statistics(arm)[1] + noise * bonus)
    return play.best(values, tie=tie)


def whittle_choice(play: Play, prices, means, tie: float = 1e-9) -> int:
    """The advantage of playing an arm now, by recursion over what may happen to it."""

    @cache
    def value(pair, m, n, s):
        if m == play.horizon:
            return 0.0
        return max(0.0, advantage(pair, m, n, s)) + value(pair, m + 1, n, s)

    @cache
    def advantage(pair, m, n, s):
        p = (pair[0] + s) / (sum(pair) + n)
        won, lost = value(pair, m + 1, n + 1, s + 1), value(pair, m + 1, n + 1, s)
        return p - prices[m] + p * won + (1 - p) * lost - value(pair, m + 1, n, s)

    known = play.memory.setdefault("advantage", advantage)
    values = [
        known(means[arm], play.step, len(rewards), round(sum(rewards)))
        for arm, rewards in enumerate(play.rewards)
    ]
    return play.best(values, tie=tie)
