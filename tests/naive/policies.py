"""What each policy plays next, given all that an episode has shown so far."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from metabandit.language import Tree
from tests.naive.language import value
from tests.naive.randomness import below, noise_bits, unit

TIE = 2e-6


class Play:
    """What a policy sees of an episode: the rewards of each arm so far, and the episode's key."""

    def __init__(self, arms: int, horizon: int, key: int, counts: np.ndarray) -> None:
        self.rewards: list[list[float]] = [[] for _ in range(arms)]
        self.totals = [0.0] * arms
        self.squares = [0.0] * arms
        self.horizon = horizon
        self.key = key
        self.counts = counts
        self.begun = float(counts[0].sum())
        self.received = 0
        self.memory: dict[str, object] = {}

    def receive(self, arm: int, reward: float) -> None:
        self.received += 1
        self.rewards[arm].append(reward)
        self.totals[arm] += reward
        self.squares[arm] += reward**2

    @property
    def arms(self) -> int:
        return len(self.rewards)

    @property
    def step(self) -> int:
        return self.received

    @property
    def t(self) -> float:
        return self.begun + self.step

    def statistics(self, arm: int) -> tuple[float, float, float]:
        plays, total, squares = self.counts[:, arm]
        n = plays + len(self.rewards[arm])
        if not n:
            return 0.0, 0.0, 0.0
        r = (total + self.totals[arm]) / n
        variance = (squares + self.squares[arm]) / n - r * r
        return n, r, math.sqrt(max(variance, 0.0))

    def waits(self, arm: int) -> int:
        """Plays whose reward is still to come, if they count (see naive/feedback.py)."""
        return 0

    def best(self, values: list[float], attempt: int | None = None, tie: float = TIE) -> int:
        """The position of the largest value, ties at random."""
        top = max(values)
        tied = [k for k, v in enumerate(values) if abs(v - top) <= tie * max(abs(v), abs(top))]
        bits = noise_bits(self.key, self.step if attempt is None else attempt, 1)
        return tied[below(bits, len(tied))]


def index_choice(play: Play, tree: Tree, tie: float = TIE) -> int:
    values = []
    for arm in range(play.arms):
        n, r, s = play.statistics(arm)
        left = play.horizon - play.step
        state = {"n": n, "r": r, "s": s, "t": play.t, "h": left, "K": play.arms}
        values.append(value(tree, state))
    return play.best(values, tie=tie)


def decision_choice(play: Play, decision, tie: float = TIE) -> int:
    """An index with needed plays and random ones, as decisions.py defines it."""
    moment = {"t": play.t, "h": play.horizon - play.step, "K": play.arms}
    n = [play.statistics(arm)[0] for arm in range(play.arms)]
    if decision.needed is not None and min(n) < value(decision.bound_needed, moment):
        return play.best([-plays for plays in n], tie=tie)
    if decision.rate is not None:
        if unit(noise_bits(play.key, play.step, 2)) < value(decision.bound_rate, moment):
            return below(noise_bits(play.key, play.step, 3), play.arms)
    return index_choice(play, decision.bound, tie)


def uniform_choice(play: Play) -> int:
    # A play at random: whether is drawn from stream 2, which arm from stream 3.
    return below(noise_bits(play.key, play.step, 3), play.arms)


def epsilon_greedy_choice(play: Play, c: float, d: float) -> int:
    rate = min(1.0, c * play.arms / (d * d * (play.t + 1)))
    if unit(noise_bits(play.key, play.step, 2)) < rate:
        return below(noise_bits(play.key, play.step, 3), play.arms)
    return play.best([play.statistics(arm)[1] for arm in range(play.arms)], tie=1e-9)


def ucb1_normal_choice(play: Play) -> int:
    counts = [len(rewards) for rewards in play.rewards]
    if min(counts) < math.ceil(8 * math.log(play.t)):
        return play.best([-count for count in counts], tie=1e-9)
    values = []
    for arm, n in enumerate(counts):
        _, r, s = play.statistics(arm)
        q = n * (s * s + r * r)
        values.append(r + math.sqrt(16 * (q - n * r * r) / (n - 1) * math.log(play.t - 1) / n))
    return play.best(values, tie=1e-9)


def ucb2_choice(play: Play, alpha: float) -> int:
    """Literally: an epoch of length zero raises r and the choice is made again."""
    epochs = play.memory.setdefault("epochs", [0] * play.arms)
    queue = play.memory.setdefault("queue", [])
    if queue:
        return queue.pop()
    t, attempt = play.t, play.step
    means = [play.statistics(arm)[1] for arm in range(play.arms)]
    while True:
        taus = [math.ceil((1 + alpha) ** epoch) for epoch in epochs]
        values = [
            mean + math.sqrt((1 + alpha) * math.log(math.e * t / tau) / (2 * tau))
            for mean, tau in zip(means, taus, strict=True)
        ]
        arm = play.best(values, attempt, tie=1e-9)
        length = math.ceil((1 + alpha) ** (epochs[arm] + 1)) - taus[arm]
        epochs[arm] += 1
        attempt += play.horizon
        if length:
            queue.extend([arm] * (length - 1))
            return arm


# The y of x = 1, where y grows with x by (x (1 - x))^(-2/3) / 3.
PERIOD = special.beta(1 / 3, 1 / 3) / 3


def _beta_draw(a: float, b: float, key: int, step: int, stream: int) -> float:
    """ln(x / (1 - x)) for x from Beta(a, b), from a normal variate in y, taken if a uniform one says so.

    x has the density x^(a - 1/3) (1 - x)^(b - 1/3), times a constant, in y.
    """
    p = (a - 1 / 3) / (a + b - 2 / 3)
    mode = PERIOD * special.betainc(1 / 3, 1 / 3, p)
    spread = (9 * (a + b - 2 / 3)) ** -0.5 * (p * (1 - p)) ** (-1 / 6)
    attempt = stream
    while True:
        word = noise_bits(key, step, attempt)
        z = special.ndtri(unit(word))
        u = (word % 512 + unit(noise_bits(key, step, attempt + 1))) / 512
        y = (mode + spread * z) / PERIOD
        if 0.0 < y < 1.0:
            x, rest = special.betaincinv(1 / 3, 1 / 3, y), special.betaincinv(1 / 3, 1 / 3, 1.0 - y)
            ratio = (a - 1 / 3) * math.log(x / p) + (b - 1 / 3) * math.log(rest / (1.0 - p))
            if math.log(u) < ratio + 0.5 * z * z:
                return math.log(x / rest)
        attempt += 1 << 16


def _posterior_draw(a: float, b: float, key: int, step: int, stream: int) -> float:
    """The same for all shapes: Beta(a + 1, b), or that times u^(1/a) with chance b / (a + b), is Beta(a, b)."""

    def lessened(odds: float, a: float, b: float, stream: int) -> float:
        v = (noise_bits(key, step, stream) + unit(noise_bits(key, step, stream + 1))) / 2**32
        if v >= b / (a + b):
            return odds
        ln_x = special.log_expit(odds) + math.log(v * (a + b) / b) / a
        return ln_x - math.log(-math.expm1(ln_x))

    more_a, more_b = a + (a < 0.5), b + (b < 0.5)
    odds = _beta_draw(more_a, more_b, key, step, stream)
    odds = odds if b >= 0.5 else -lessened(-odds, b, more_a, stream + 2)
    return odds if a >= 0.5 else lessened(odds, a, b, stream + 4)


def thompson_beta_choice(play: Play, pairs) -> int:
    """The largest draw from Beta(a + reward sum, b + the rest of the plays), with (a, b) of each arm."""
    draws = []
    for arm, rewards in enumerate(play.rewards):
        (a, b), total = pairs[arm], play.totals[arm]
        shapes = a + total, b + len(rewards) - total
        draws.append(_posterior_draw(*shapes, play.key, play.step, 16 + 8 * arm))
    return draws.index(max(draws))


def thompson_gaussian_choice(play: Play, mean: float, plays: float, noise: float) -> int:
    """The largest draw from the normal posteriors of a belief that is worth so many plays."""
    draws = []
    for arm in range(play.arms):
        n, r, _ = play.statistics(arm)
        n -= play.waits(arm)
        z = special.ndtri(unit(noise_bits(play.key, play.step, 16 + arm)))
        centre = (plays * mean + n * r) / (plays + n)
        draws.append(centre + noise * z / math.sqrt(plays + n))
    return draws.index(max(draws))


def ab_test_choice(play: Play, plays: int, alpha: float | None = None) -> int:
    """An A/B test literally: an equal split until it ends, then the winner for good."""
    if "winner" in play.memory:
        return play.memory["winner"]
    had = [len(rewards) for rewards in play.rewards]
    if min(had) >= plays:
        means = [sum(rewards) / len(rewards) for rewards in play.rewards]
        leader = play.best(means, tie=1e-9)
        ended = True
        for arm in range(play.arms):
            if alpha is not None and arm != leader:
                error = math.sqrt(
                    sum(np.var(play.rewards[k], ddof=1) / had[k] for k in (arm, leader))
                )
                z = special.ndtri(1 - alpha / 2)
                ended = ended and means[leader] - means[arm] > z * error
        if ended:
            play.memory["winner"] = leader
            return leader
    return play.best([-play.statistics(arm)[0] for arm in range(play.arms)], tie=1e-9)


def gittins_choice(
    play: Play, tables: dict, means: list, levels: tuple[int, ...], tie: float = 1e-9
) -> int:
    """The index of each arm from the table of its mean's distribution.

    Plays that wait count as if they had paid the posterior mean; the table is interpolated then.
    """
    values = []
    for arm, rewards in enumerate(play.rewards):
        (a, b), waiting = means[arm], play.waits(arm)
        plays = len(rewards) + waiting
        total = sum(rewards) + waiting * (a + sum(rewards)) / (a + b + len(rewards))
        before = sum(
            math.comb(level + 1, 2) for level in levels if level < plays + play.horizon - play.step
        )
        row = tables[means[arm]][before + math.comb(plays + 1, 2) :][: plays + 1]
        values.append(float(np.interp(total, range(plays + 1), row)))
    return play.best(values, tie=tie)


def gaussian_gittins_choice(
    play: Play, prior, bonus, levels: tuple[int, ...], tie: float = 1e-9
) -> int:
    """The posterior mean of the rewards that have come, and the bonus of all plays, of each arm."""
    values = []
    for arm, rewards in enumerate(play.rewards):
        plays = len(rewards) + play.waits(arm)
        most = plays + play.horizon - play.step
        entry = sum(level for level in levels if level < most) + plays
        weight = 1.0 / prior.spread**2
        total = prior.mean * weight + play.totals[arm] / prior.noise**2
        values.append(total / (weight + len(rewards) / prior.noise**2) + bonus[entry])
    return play.best(values, tie=tie)


def optimal_choice(play: Play, policy) -> int:
    best = policy.choose(
        [len(rewards) for rewards in play.rewards], [round(sum(r)) for r in play.rewards]
    )
    return best[below(noise_bits(play.key, play.step, 1), len(best))]
