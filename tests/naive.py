"""The slow obvious version of everything that the kernels do: one episode at a time, in float64.

It follows the definitions, not the kernels' layout: no lanes, no masks, no float32. The random
numbers are the same functions of (seed, episode, arm, pull), so that play can be compared move by
move.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
from scipy import special

from metabandit.language import Apply, Constant, Name, Tree

MASK32 = 0xFFFFFFFF
MASK64 = 0xFFFFFFFFFFFFFFFF
WEYL = 0x9E3779B9
TIE = 2e-6


# Random numbers ------------------------------------------------------------------------------


def mix64(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


def episode_word(seed: int, episode: int, slot: int) -> int:
    x = mix64((seed + episode * 0x9E3779B97F4A7C15) & MASK64)
    return mix64((x + slot * 0xD1B54A32D192ED03) & MASK64) >> 32


def draw_bits(word: int, key: int) -> int:
    x = word ^ (word >> 16)
    x = (x * 0x7FEB352D) & MASK32
    x ^= x >> 15
    x ^= key
    x = (x * 0x846CA68B) & MASK32
    return x ^ (x >> 16)


def noise_bits(key: int, step: int, stream: int) -> int:
    word = (key + step * WEYL + stream * 0x85EBCA6B) & MASK32
    return draw_bits(word, key ^ 0x68BC21EB)


def unit(bits: int) -> float:
    return ((bits >> 9) + 0.5) / 2**23


def below(bits: int, limit: int) -> int:
    return (bits * limit) >> 32


# Expressions ---------------------------------------------------------------------------------


def kl(p: float, q: float) -> float:
    first = p * math.log(p / q) if p > 0.0 else 0.0
    return first + (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else first


def kl_upper(mean: float, bound: float) -> float:
    if math.isnan(bound) or not 0.0 <= mean <= 1.0:
        return math.nan
    if bound <= 0.0 or mean == 1.0:
        return mean
    low, high = mean, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        if middle < 1.0 and kl(mean, middle) <= bound:
            low = middle
        else:
            high = middle
    return low


def polynomial(values: list[float], weights: list[float]) -> float:
    """The sum of all weights times products of powers of the four values."""
    degree = round(len(weights) ** 0.25) - 1
    exponents = itertools.product(range(degree + 1), repeat=4)
    return sum(
        weight * math.prod(value**power for value, power in zip(values, powers, strict=True))
        for weight, powers in zip(weights, exponents, strict=True)
    )


# Of the first value and the last, as NumPy's numbers, and of all as they are.
_OPERATIONS = {
    "add": lambda x, y, values: x + y,
    "subtract": lambda x, y, values: x - y,
    "multiply": lambda x, y, values: x * y,
    "divide": lambda x, y, values: x / y,
    "invert": lambda x, y, values: 1.0 / x,
    "negate": lambda x, y, values: -x,
    "power": lambda x, y, values: (
        x * x if y == 2.0 else 1.0 if x == y == 0.0 else np.exp(y * np.log(x))
    ),
    "min": lambda x, y, values: min(values[0], values[-1]),
    "max": lambda x, y, values: max(values[0], values[-1]),
    "sqrt": lambda x, y, values: np.sqrt(x),
    "ln": lambda x, y, values: np.log(x),
    "exp": lambda x, y, values: np.exp(x),
    "abs": lambda x, y, values: abs(x),
    "kl_upper": lambda x, y, values: kl_upper(values[0], values[-1]),
    "beta_quantile": lambda x, y, values: special.betaincinv(values[1], values[2], values[0]),
    "polynomial": lambda x, y, values: polynomial(values[:4], values[4:]),
}


def _apply(name: str, values: list[float]) -> float:
    if any(math.isnan(value) for value in values):
        return math.nan
    with np.errstate(all="ignore"):
        return float(_OPERATIONS[name](np.float64(values[0]), np.float64(values[-1]), values))


def value(tree: Tree, state: dict[str, float]) -> float:
    """The value of an expression at a state {n, r, s, t, h, K}."""
    if isinstance(tree, Constant):
        return tree.value
    if isinstance(tree, Name):
        return state[tree.name]
    assert isinstance(tree, Apply)
    return _apply(tree.operator, [value(operand, state) for operand in tree.operands])


# Policies ------------------------------------------------------------------------------------


class Play:
    """What a policy sees of an episode: the rewards of each arm so far, and the episode's key."""

    def __init__(self, arms: int, horizon: int, key: int, counts: np.ndarray) -> None:
        self.rewards: list[list[float]] = [[] for _ in range(arms)]
        self.totals = [0.0] * arms
        self.squares = [0.0] * arms
        self.horizon = horizon
        self.key = key
        self.counts = counts
        self.memory: dict[str, object] = {}

    def receive(self, arm: int, reward: float) -> None:
        self.rewards[arm].append(reward)
        self.totals[arm] += reward
        self.squares[arm] += reward**2

    @property
    def arms(self) -> int:
        return len(self.rewards)

    @property
    def step(self) -> int:
        return sum(len(rewards) for rewards in self.rewards)

    @property
    def t(self) -> float:
        return self.counts[0].sum() + self.step

    def statistics(self, arm: int) -> tuple[float, float, float]:
        plays, total, squares = self.counts[:, arm]
        n = plays + len(self.rewards[arm])
        if not n:
            return 0.0, 0.0, 0.0
        r = (total + self.totals[arm]) / n
        variance = (squares + self.squares[arm]) / n - r * r
        return n, r, math.sqrt(max(variance, 0.0))

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


def uniform_choice(play: Play) -> int:
    return below(noise_bits(play.key, play.step, 2), play.arms)


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


def _gamma(shape: float, key: int, step: int, stream: int) -> float:
    """The logarithm, by Marsaglia and Tsang (2000), with the boost U^(1/a) for shapes below 1."""
    d = shape + (1.0 if shape < 1.0 else 0.0) - 1.0 / 3.0
    attempt = stream
    while True:
        z = special.ndtri(unit(noise_bits(key, step, attempt)))
        v = (1.0 + z / math.sqrt(9.0 * d)) ** 3
        u = unit(noise_bits(key, step, attempt + 1))
        if v > 0.0 and math.log(u) < 0.5 * z * z + d - d * v + d * math.log(v):
            break
        attempt += 1 << 16
    boost = math.log(unit(noise_bits(key, step, stream + 2))) / shape if shape < 1.0 else 0.0
    return math.log(d * v) + boost


def thompson_beta_choice(play: Play, a: float, b: float) -> int:
    draws = []
    for arm, rewards in enumerate(play.rewards):
        total = play.totals[arm]
        wins = _gamma(a + total, play.key, play.step, 16 + 8 * arm)
        losses = _gamma(b + len(rewards) - total, play.key, play.step, 16 + 8 * arm + 4)
        draws.append(wins - losses)
    return draws.index(max(draws))


def thompson_gaussian_choice(play: Play, sigma: float) -> int:
    draws = []
    for arm in range(play.arms):
        n, r, _ = play.statistics(arm)
        z = special.ndtri(unit(noise_bits(play.key, play.step, 16 + arm)))
        draws.append(r + sigma * z / math.sqrt(n))
    return draws.index(max(draws))


def gittins_choice(play: Play, tables: dict, means: list) -> int:
    """The index of each arm from the table of its mean's distribution."""
    values = []
    for arm, rewards in enumerate(play.rewards):
        entry = math.comb(play.step + 2, 3) + math.comb(len(rewards) + 1, 2) + round(sum(rewards))
        values.append(tables[means[arm]][entry])
    return play.best(values, tie=1e-9)


def optimal_choice(play: Play, policy) -> int:
    best = policy.choose(
        [len(rewards) for rewards in play.rewards], [round(sum(r)) for r in play.rewards]
    )
    return best[below(noise_bits(play.key, play.step, 1), len(best))]


# Episodes ------------------------------------------------------------------------------------


def quantile(family: str, u: float, parameters: np.ndarray) -> float:
    """The reward of a family at a uniform number; Bernoulli pays 1 for small numbers."""
    if family == "bernoulli":
        return float(u < parameters[0])
    if family == "gaussian":
        return float(parameters[0] + parameters[1] * special.ndtri(u))
    if family == "beta":
        return float(special.betaincinv(parameters[0], parameters[1], u))
    mean, deviation, _, _, low, high = parameters
    under = special.ndtr((low - mean) / deviation)
    inside = special.ndtr((high - mean) / deviation) - under
    return float(mean + deviation * special.ndtri(under + u * inside))


def play_episode(choose, each_once, counts, family, parameters, horizon, seed, episode):
    """The arms played in an episode, in order."""
    arms = len(parameters)
    play = Play(arms, horizon, episode_word(seed, episode, 0), counts)
    words = [episode_word(seed, episode, 1 + arm) for arm in range(arms)]
    moves = []
    for step in range(horizon):
        arm = step if each_once and step < arms else choose(play)
        word = (words[arm] + len(play.rewards[arm]) * WEYL) & MASK32
        reward = quantile(family, unit(draw_bits(word, play.key)), parameters[arm])
        play.receive(arm, reward)
        moves.append(arm)
    return moves


# Exact values --------------------------------------------------------------------------------
#
# Expected reward by recursion over the counts, in fractions. `chance(arm, n, s)` is the probability
# that the arm pays; `shares(plays, wins)` the probability with which each arm is played.


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


def thompson_shares(a: int, b: int):
    """P(X1 > X2) for Beta variates with whole parameters, as a finite sum."""

    def shares(plays, wins):
        a1, a2 = (a + s for s in wins)
        b1, b2 = (b + n - s for n, s in zip(plays, wins, strict=True))
        first = sum(
            _beta(a2 + i, b1 + b2) / ((b1 + i) * _beta(1 + i, b1) * _beta(a2, b2))
            for i in range(a1)
        )
        return [first, 1 - first]

    return shares


def gittins_index(n: int, s: int, left: int, alpha: float, beta: float) -> float:
    """The price at which one is indifferent between stopping and going on, by bisection."""

    def gain(price):
        @cache
        def going_on(n, s, left):
            if not left:
                return 0.0
            p = (alpha + s) / (alpha + beta + n)
            more = p * max(0.0, going_on(n + 1, s + 1, left - 1))
            return p - price + more + (1 - p) * max(0.0, going_on(n + 1, s, left - 1))

        return going_on(n, s, left)

    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gain(middle) > 0 else (low, middle)
    return low


# Learning ------------------------------------------------------------------------------------


def eda(objective, center, generations: int, seed: int):
    """The paper's Algorithm 2, one number at a time: every generation's mean and variance, and the best."""
    d = len(center)
    size = max(8 * d, 40)
    best = size // 4
    rng = np.random.default_rng(seed)
    mean, variance = list(center), [1.0] * d
    history, lowest = [], (math.inf, None)
    for _ in range(generations):
        population = []
        for _ in range(size):
            theta = [mean[p] + math.sqrt(variance[p]) * rng.standard_normal() for p in range(d)]
            score = objective(theta)
            population.append((score, theta))
            lowest = min(lowest, (score, theta), key=lambda item: item[0])
        population.sort(key=lambda item: item[0])
        chosen = [theta for _, theta in population[:best]]
        for p in range(d):
            mean[p] = sum(theta[p] for theta in chosen) / best
            variance[p] = sum((theta[p] - mean[p]) ** 2 for theta in chosen) / best
        history.append((list(mean), list(variance)))
    return history, lowest


def expected_gap_regret(alpha, beta, plays, wins) -> float:
    """The sum over arms of plays times E[best mean - mean], given what was seen, by a fine grid."""
    angle = (np.arange(20_000) + 0.5) / 20_000 * math.pi / 2
    x, weight = np.sin(angle) ** 2, np.sin(2 * angle) * math.pi / 2 / 20_000
    below = [
        special.betainc(a + s, b + n - s, x)
        for a, b, n, s in zip(alpha, beta, plays, wins, strict=True)
    ]
    all_below = np.prod(below, axis=0)
    return sum(
        n * float(((own - all_below) * weight).sum()) for n, own in zip(plays, below, strict=True)
    )


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


# Formulas --------------------------------------------------------------------------------------


def all_formulas(grammar, longest: int) -> list[list[Tree]]:
    """Every formula of length 1, 2, ..., as trees."""
    made: list[list[Tree]] = [[], list(grammar.atoms)]
    for length in range(2, longest + 1):
        trees: list[Tree] = [
            Apply(name, (inner,)) for name in grammar.unary for inner in made[length - 1]
        ]
        for left in range(1, length - 1):
            pairs = itertools.product(grammar.binary, made[left], made[length - 1 - left])
            trees += [Apply(name, (one, two)) for name, one, two in pairs]
        made.append(trees)
    return made[1:]


def sampled_values(tree: Tree, values: dict[str, np.ndarray], known: dict) -> np.ndarray | None:
    """The values of a formula on sample points, None if any of its parts is not finite."""
    if tree not in known:
        if isinstance(tree, Name):
            found = values[tree.name]
        elif isinstance(tree, Constant):
            found = np.full(values["r"].shape, tree.value)
        else:
            parts = [sampled_values(operand, values, known) for operand in tree.operands]
            found = None
            if all(part is not None for part in parts):
                flat = zip(*(part.ravel().tolist() for part in parts), strict=True)
                numbers = [_apply(tree.operator, list(point)) for point in flat]
                found = np.array(numbers).reshape(values["r"].shape)
        finite = found is not None and np.isfinite(found).all()
        known[tree] = found if finite else None
    return known[tree]


def ranks(found: np.ndarray, tolerance: float) -> bytes:
    """How the values order the arms of every group: the sign of every difference, 0 for ties."""
    signs = []
    for one, two in itertools.combinations(found, 2):
        slack = tolerance * np.maximum(np.abs(one), np.abs(two))
        signs.append(np.where(one - two > slack, 1, 0) - np.where(two - one > slack, 1, 0))
    return np.array(signs, np.int8).tobytes()


def choices(tree: Tree, horizon: int) -> frozenset | None:
    """What a formula chooses in every state that its play of two Bernoulli arms reaches, each played once."""
    seen, found = set(), set()
    states = [((1, one), (1, two)) for one in (0, 1) for two in (0, 1)]
    while states:
        state = states.pop()
        made = sum(n for n, _ in state)
        if made == horizon or state in seen:
            continue
        seen.add(state)
        index = []
        for n, wins in state:
            r = wins / n
            s = math.sqrt(max(r - r * r, 0.0))
            index.append(value(tree, {"r": r, "s": s, "n": n, "t": made}))
        if not all(map(math.isfinite, index)):
            return None
        slack = 1e-11 * max(map(abs, index))
        best = tuple(item >= max(index) - slack for item in index)
        found.add((state, best))
        for arm in (0, 1):
            if best[arm]:
                n, wins = state[arm]
                for reward in (0, 1):
                    after = list(state)
                    after[arm] = (n + 1, wins + reward)
                    states.append(tuple(after))
    return frozenset(found)


def ucb1_tuned_pulls(rewards, pulls: int) -> list[int]:
    """How often UCB1-Tuned pulls each arm, whose rewards come from rewards(arm, number)."""
    arms = rewards.arms
    history = [[rewards(arm, 0)] for arm in range(arms)]
    for t in range(arms, pulls):
        best, chosen = -math.inf, 0
        for arm in range(arms):
            n, mean = len(history[arm]), sum(history[arm]) / len(history[arm])
            variance = max(sum(x * x for x in history[arm]) / n - mean * mean, 0.0)
            width = min(0.25, variance + math.sqrt(2.0 * math.log(t) / n))
            index = mean + math.sqrt(math.log(t) / n * width)
            if index > best:
                best, chosen = index, arm
        history[chosen].append(rewards(chosen, len(history[chosen])))
    return [len(item) for item in history]
