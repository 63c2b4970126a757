"""Upper bounds on the reward of any policy: the charge bound and the Lagrangian bound.

bayes/bounds.py has the mathematics. For the charge bound a scenario is one sequence of rewards per
arm, as the prior makes them likely. Along arm k,

    f_k(n) = sum over i < n of  m_i + (E[U_i] - U_i),

m_i being the mean before pull i + 1 and U_i a number that this pull's reward settles; the scenario's
value is the largest f_1(n_1) + ... + f_K(n_K) over n_1 + ... + n_K = T.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from .counts import pair
from .gittins import PER_DEVIATION, break_even, gaussian_value, go_on, keep_positive
from .jit import jit, lane
from .random import WEYL, draw_bits, episode_bits, slot_word, u32

BERNOULLI = 0
GAUSSIAN = 1

# The coarse states of an arm, to each of which a correction belongs: by pulls (`Arms.level`), by the
# distance of mean and charge in deviations of the mean, and by the charge (`Arms.charge_level`).
DISTANCES = 14
_NEAREST = -2.6
_STEP = 0.5

Arms = namedtuple(
    "Arms",
    "family horizon kind first second low step index slope noise deviation move bonus value "
    "point chance level charge_level cells",
)
Arms.__doc__ = """The arms, the tables of their charges, and what corrections go by.

family: BERNOULLI or GAUSSIAN; horizon: T; kind: int64[arm], the row of an arm in what follows
first, second: float64[row], the Beta distribution of the mean; or the mean of a normal one, and 0
low, step: prices are low + j step; below the first nothing is charged

Bernoulli arms:
index: float64[row, pair], the least price at which an arm is given up
slope: float32[row, pair, price], V(n + 1, s + 1) - V(n + 1, s)

Gaussian arms:
noise: the deviation of a reward
deviation: float64[n], of the mean after n pulls; move: float64[n], of its next change
bonus: float64[n], the index is the mean and this
value: float64[n, j], V as kernels/gittins.py has it
point, chance: float64[q], mean and probability of the q-th interval of a standard normal number; they
    are WIDTH wide from -FURTHEST on, the first and the last without end

level: int64[n], coarse pulls; charge_level: int64[price], coarse charges; cells: coarse states of a row
"""

FURTHEST = 4.0
WIDTH = 0.5

Room = namedtuple(
    "Room", "draw total index cell shift plays best most kept size order choice before after"
)
Room.__doc__ = """What a thread works in.

draw: float64[arm, n], what settles a reward: a uniform number, or a standard normal one
total: float64[arm, n], f; index: float64[arm, n]
cell: int32[arm, n] and shift: float64[arm, n], the correction of a pull is theta[cell] * shift
plays: int64[arm], of the index policy; best: int64[arm], of the best in hindsight
most, kept, size, order, choice, before, after: for `relax`
"""


@jit
def _subtract(won, failed, out):
    for j in range(out.shape[0]):
        out[j] = won[j] - failed[j]


@jit
def charge_bernoulli(horizon, alpha, beta, prices, value, room, slope, index):
    """V at rising prices by backward induction, and the indices that lie between them.

    value: float64[s, price], zeros. Fills slope[pair, price] and, for pairs whose index lies between
    the first and the last price, index[pair].
    """
    last = prices.shape[0] - 1
    for n in range(horizon - 1, -1, -1):
        for s in range(n + 1):
            p = (alpha + s) / (alpha + beta + n)
            _subtract(value[s + 1], value[s], slope[pair(n, s)])
            positive = go_on(value[s + 1], value[s], p, prices, 1.0, room)
            keep_positive(room, value[s])
            if 0 < positive <= last:
                index[pair(n, s)] = break_even(positive, prices, room)


@lane
def _uniform(word, key):
    return (np.float64(draw_bits(word, key)) + 0.5) * 2.0**-32


@lane
def _normal(word, other, key):
    """A standard normal number (Box and Muller 1958)."""
    radius = np.sqrt(-2.0 * np.log(_uniform(word, key)))
    return radius * np.cos(2.0 * np.pi * _uniform(other, key))


@lane
def _cell(arms, row, n, distance, price):
    """The coarse state of an arm."""
    level = np.int64((distance - _NEAREST) / _STEP)
    level = arms.level[n] * DISTANCES + min(max(level, 0), DISTANCES - 1)
    return row * arms.cells + level * (arms.charge_level[-1] + 1) + arms.charge_level[price]


@jit
def _bernoulli_arm(arms, k, draw, theta, total, index, cell, shift):
    """f of one arm along its rewards, its indices, and what corrections act on."""
    row = arms.kind[k]
    a, b = arms.first[row], arms.second[row]
    horizon = arms.horizon
    last = arms.slope.shape[2] - 2
    charge = np.inf
    s = 0
    total[0] = 0.0
    for n in range(horizon):
        at = pair(n, s)
        mean = (a + s) / (a + b + n)
        index[n] = arms.index[row, at]
        charge = min(charge, index[n])
        position = (charge - arms.low) / arms.step
        slope = 0.0
        price = 0
        if position >= 0.0:
            price = min(np.int64(position), last)
            share = min(position - price, 1.0)
            table = arms.slope[row, at]
            slope = table[price] * (1.0 - share) + table[price + 1] * share
        deviation = np.sqrt(mean * (1.0 - mean) / (a + b + n + 1.0))
        cell[n] = _cell(arms, row, n, (mean - charge) / deviation, price)
        won = 1 if draw[n] < mean else 0
        # A change of the mean, times the pulls that it can matter for.
        shift[n] = (mean - won) / (a + b + n + 1.0) * (horizon - n - 1)
        total[n + 1] = total[n] + mean + (mean - won) * slope + theta[cell[n]] * shift[n]
        s += won


@jit
def _gaussian_arm(arms, k, draw, theta, total, index, cell, shift):
    """The same for Gaussian rewards."""
    row = arms.kind[k]
    horizon = arms.horizon
    mean = arms.first[row]
    charge = np.inf
    last = arms.charge_level.shape[0] - 1
    total[0] = 0.0
    for n in range(horizon):
        index[n] = mean + arms.bonus[n]
        charge = min(charge, index[n])
        left = np.float64(horizon - n - 1)
        z = draw[n]
        move = arms.move[n]
        position = (charge - arms.low) / arms.step
        penalty = 0.0
        price = 0
        if position >= 0.0:
            price = min(np.int64(position), last)
            # U is V where the mean of z's interval leads, and V's slope there times the rest of z:
            # its expectation is a finite sum, without any error.
            inside = np.int64(
                min(max((z + FURTHEST) / WIDTH + 1.0, 0.0), arms.point.shape[0] - 1.0)
            )
            scale = PER_DEVIATION / arms.deviation[n + 1]
            ahead = arms.value[n + 1]
            for q in range(arms.point.shape[0]):
                y = mean - charge + move * arms.point[q]
                value, slope = gaussian_value(ahead, left, scale, y)
                penalty += arms.chance[q] * value
                if q == inside:
                    penalty -= value + slope * move * (z - arms.point[q])
        cell[n] = _cell(arms, row, n, (mean - charge) / arms.deviation[n], price)
        shift[n] = -move * z * left
        total[n + 1] = total[n] + mean + penalty + theta[cell[n]] * shift[n]
        mean += move * z


@jit
def _first_two(index):
    """The arm with the largest index, and the next largest index."""
    best = 0
    rival = -np.inf
    for k in range(1, index.shape[0]):
        if index[k] > index[best]:
            rival = index[best]
            best = k
        else:
            rival = max(rival, index[k])
    return best, rival


@jit
def _play(total, index, plays, now):
    """What the index policy gets in a scenario, penalties included."""
    arms, horizon = total.shape[0], total.shape[1] - 1
    for k in range(arms):
        plays[k] = 0
        now[k] = index[k, 0]
    made = 0
    while made < horizon:
        k, rival = _first_two(now)
        n = plays[k] + 1
        made += 1
        # Nothing changes until the index of this arm falls below the next.
        while made < horizon and index[k, n] >= rival:
            n += 1
            made += 1
        plays[k] = n
        now[k] = index[k, n]
    value = 0.0
    for k in range(arms):
        value += total[k, plays[k]]
    return value


@jit
def _tops(total, price, most, best):
    """For each arm the largest f(n) - price n, and the n; returns the sum of these n."""
    pulls = 0
    for k in range(total.shape[0]):
        top = total[k, 0]
        for n in range(total.shape[1]):
            top = max(top, total[k, n] - price * n)
        n = 0
        while total[k, n] - price * n < top:
            n += 1
        most[k] = top
        best[k] = n
        pulls += n
    return pulls


@jit
def _price(total, most, best):
    """The price of a pull at which about T pulls are wanted: where the dual is least."""
    horizon = total.shape[1] - 1
    low, high = 0.0, 0.0
    for k in range(total.shape[0]):
        slope = total[k, horizon] / horizon
        high = max(high, slope) if k else slope
        low = min(low, slope) if k else slope
    width = max(high - low, 1e-3)
    while _tops(total, low, most, best) < horizon:
        low -= width
        width *= 2.0
    width = max(high - low, 1e-3)
    while _tops(total, high, most, best) > horizon:
        high += width
        width *= 2.0
    for _ in range(12):
        middle = 0.5 * (low + high)
        if _tops(total, middle, most, best) > horizon:
            low = middle
        else:
            high = middle
    _tops(total, high, most, best)
    return high


@jit
def relax(total, known, room):
    """The largest sum of f_k(n_k) with n_1 + ... + n_K = T; leaves the n_k in room.best.

    known: a value that can be had. Pulls are priced, so that every n_k beyond the arm's best loses;
    what loses more than the dual and a known value differ cannot be part of the best.
    """
    arms, horizon = total.shape[0], total.shape[1] - 1
    most, best, kept, size, order = room.most, room.best, room.kept, room.size, room.order
    price = _price(total, most, best)
    bound = price * horizon
    pulls = 0
    value = 0.0
    for k in range(arms):
        bound += most[k]
        pulls += best[k]
        value += total[k, best[k]]
    for k in range(arms):
        rest = horizon - pulls + best[k]
        if 0 <= rest <= horizon:
            known = max(known, value - total[k, best[k]] + total[k, rest])
    slack = bound - known + 1e-9 * (1.0 + abs(bound))
    for k in range(arms):
        count = 0
        for n in range(horizon + 1):
            if total[k, n] - price * n >= most[k] - slack:
                kept[k, count] = n
                count += 1
        size[k] = count
        order[k] = k
    for i in range(1, arms):
        k = order[i]
        j = i
        while j > 0 and size[order[j - 1]] > size[k]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = k
    # before[m]: the loss by so many pulls of the arms so far, compared with their best at that price.
    before, after, choice = room.before, room.after, room.choice
    for m in range(horizon + 1):
        before[m] = np.inf
    before[0] = 0.0
    lowest, highest = 0, 0
    for i in range(arms - 1):
        k = order[i]
        least, largest = kept[k, 0], kept[k, size[k] - 1]
        for m in range(lowest + least, min(highest + largest, horizon) + 1):
            after[m] = np.inf
        for m in range(lowest, highest + 1):
            if not before[m] <= slack:
                continue
            for j in range(size[k]):
                n = kept[k, j]
                if m + n > horizon:
                    break
                loss = before[m] + most[k] - (total[k, n] - price * n)
                if loss < after[m + n]:
                    after[m + n] = loss
                    choice[i, m + n] = n
        lowest, highest = lowest + least, min(highest + largest, horizon)
        before, after = after, before
    k = order[arms - 1]
    least_loss = np.inf
    for j in range(size[k]):
        n = kept[k, j]
        m = horizon - n
        if lowest <= m <= highest:
            loss = before[m] + most[k] - (total[k, n] - price * n)
            if loss < least_loss:
                least_loss = loss
                best[k] = n
    left = horizon - best[k]
    for i in range(arms - 2, -1, -1):
        n = choice[i, left]
        best[order[i]] = n
        left -= n
    value = 0.0
    for i in range(arms):
        value += total[i, best[i]]
    return value


@jit
def _draw(arms, bits, draw):
    """What settles the rewards of a scenario."""
    key = slot_word(bits, 0)
    for k in range(draw.shape[0]):
        word = slot_word(bits, 1 + k)
        for n in range(draw.shape[1]):
            one = u32(word + u32(u32(2 * n) * WEYL))
            if arms.family == BERNOULLI:
                draw[k, n] = _uniform(one, key)
            else:
                draw[k, n] = _normal(one, u32(one + WEYL), key)


@jit
def value_scenario(arms, theta, room):
    """The scenario of room.draw: what the index policy gets, and the best in hindsight."""
    for k in range(arms.kind.shape[0]):
        draw, total, index = room.draw[k], room.total[k], room.index[k]
        cell, shift = room.cell[k], room.shift[k]
        if arms.family == BERNOULLI:
            _bernoulli_arm(arms, k, draw, theta, total, index, cell, shift)
        else:
            _gaussian_arm(arms, k, draw, theta, total, index, cell, shift)
    policy = _play(room.total, room.index, room.plays, room.most)
    return policy, relax(room.total, policy, room)


@jit
def scenarios(arms, seed, first, theta, policy, hindsight, gradient, room):
    """The values of scenarios first, first + 1, ...

    gradient: if it is not empty, the derivatives of the gaps by theta are added to it.
    """
    for i in range(policy.shape[0]):
        _draw(arms, episode_bits(seed, first + i), room.draw)
        policy[i], hindsight[i] = value_scenario(arms, theta, room)
        if gradient.shape[0] > 0:
            for k in range(arms.kind.shape[0]):
                for n in range(room.plays[k], room.best[k]):
                    gradient[room.cell[k, n]] += room.shift[k, n]
                for n in range(room.best[k], room.plays[k]):
                    gradient[room.cell[k, n]] -= room.shift[k, n]


@jit
def index_policy(arms, seed, first, means, regret, room):
    """The index policy on problems: its regret.

    means: float64[problem, arm], of problems first, first + 1, ...
    """
    count = arms.kind.shape[0]
    plays, index, state = room.plays, room.most, room.before
    for i in range(means.shape[0]):
        bits = episode_bits(seed, first + i)
        key = slot_word(bits, 0)
        for k in range(count):
            plays[k] = 0
            row = arms.kind[k]
            if arms.family == BERNOULLI:
                state[k] = 0.0
                index[k] = arms.index[row, 0]
            else:
                state[k] = arms.first[row]
                index[k] = state[k] + arms.bonus[0]
        k, rival = _first_two(index[:count])
        for t in range(arms.horizon):
            if index[k] < rival:
                k, rival = _first_two(index[:count])
            row = arms.kind[k]
            n = plays[k]
            one = u32(slot_word(bits, 1 + k) + u32(u32(2 * n) * WEYL))
            plays[k] = n + 1
            if arms.family == BERNOULLI:
                state[k] += 1.0 if _uniform(one, key) < means[i, k] else 0.0
                if t + 1 < arms.horizon:
                    index[k] = arms.index[row, pair(n + 1, np.int64(state[k]))]
            else:
                reward = means[i, k] + arms.noise * _normal(one, u32(one + WEYL), key)
                share = arms.move[n] / arms.deviation[n]
                state[k] += share * share * (reward - state[k])
                if t + 1 < arms.horizon:
                    index[k] = state[k] + arms.bonus[n + 1]
        best = means[i, 0]
        for k in range(1, count):
            best = max(best, means[i, k])
        lost = 0.0
        for k in range(count):
            lost += plays[k] * (best - means[i, k])
        regret[i] = lost


@jit
def lagrange(horizon, alpha, beta, prices, warmth, value, share, weight, played):
    """What an arm alone is worth if a play at time t costs prices[t], and when it is played.

    The value is an upper bound for any `warmth`, which makes the maximum smooth; 0 gives the maximum
    itself. share: float32[entry], the probability of a play, for each t the pairs with up to t plays;
    if it is empty, played[t], the probability of a play at time t, is not computed.
    """
    keep = share.shape[0] > 0
    for i in range(value.shape[0]):
        value[i] = 0.0
    for t in range(horizon - 1, -1, -1):
        begin = t * (t + 1) * (t + 2) // 6
        for n in range(t + 1):
            after = pair(n + 1, 0)
            for s in range(n + 1):
                at = pair(n, s)
                p = (alpha + s) / (alpha + beta + n)
                stay = value[at]
                failed = value[after + s]
                play = p - prices[t] + failed + p * (value[after + s + 1] - failed)
                x = play - stay
                chance = 1.0 if x > 0.0 else 0.0
                best = max(play, stay)
                if abs(x) < 30.0 * warmth:
                    e = np.exp(-abs(x) / warmth)
                    best += warmth * np.log1p(e)
                    chance = (1.0 if x > 0.0 else e) / (1.0 + e)
                value[at] = best
                if keep:
                    share[begin + at] = chance
    if keep:
        for i in range(weight.shape[0]):
            weight[i] = 0.0
        weight[0] = 1.0
        for t in range(horizon):
            begin = t * (t + 1) * (t + 2) // 6
            total = 0.0
            for n in range(t, -1, -1):
                after = pair(n + 1, 0)
                for s in range(n + 1):
                    at = pair(n, s)
                    moved = weight[at] * share[begin + at]
                    weight[at] -= moved
                    won = moved * (alpha + s) / (alpha + beta + n)
                    weight[after + s + 1] += won
                    weight[after + s] += moved - won
                    total += moved
            played[t] = total
    return value[0]
