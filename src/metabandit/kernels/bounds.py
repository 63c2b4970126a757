"""The charge bound on the reward of any policy, in one scenario after the other.

bayes/bounds.py has the mathematics. A scenario is one sequence of rewards per
arm, as the prior makes them likely. Along arm k,

    f_k(n) = sum over i < n of  m_i + (E[U_i] - U_i),

m_i being the mean before pull i + 1 and U_i a number that this pull's reward settles; the scenario's
value is the largest f_1(n_1) + ... + f_K(n_K) over n_1 + ... + n_K = T.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from . import charge as charges
from .counts import pair
from .gittins import PER_DEVIATION, gaussian_value
from .jit import jit, lane, part
from .random import WEYL, draw_bits, episode_bits, slot_word, u32

BERNOULLI = 0
GAUSSIAN = 1

# The coarse state of an arm: its pulls (`Arms.level`), and the distance of mean and charge in deviations of
# the mean. To each belong corrections, of which three are added up: one by the distance of mean and rival, one by
# the rival (`Arms.worth_level`), and one by the pulls of the other arms that come first, as a share of
# those that are left.
DISTANCES = 14
_NEAREST = -2.6
_STEP = 0.5
WORTHS = 8
RIVALS = 10
_NEAREST_RIVAL = -2.7
_RIVAL_STEP = 0.6
TURNS = 10
_TURN_STEP = 0.15
CORRECTIONS = RIVALS + WORTHS + TURNS

Arms = namedtuple(
    "Arms",
    "family horizon kind first second low step index slope stage phase far edge noise deviation move bonus "
    "value point chance level worth_level cells",
)
Arms.__doc__ = """The arms, the tables of their charges, and what corrections go by.

family: BERNOULLI or GAUSSIAN; horizon: T; kind: int64[arm], the row of an arm in what follows
first, second: float64[row], the Beta distribution of the mean; or the mean of a normal one, and 0
low, step: prices are low + j step; below the first nothing is charged

Bernoulli arms (kernels/charge.py):
index: float64[row, pair], the least price at which an arm is given up, of the first pulls
slope: float32[row, pair, price], V(n + 1, s + 1) - V(n + 1, s), of the first pulls; the last price is 1
stage: int64[n], the entry before other pulls, -1 for the first; phase: float64[n], the share of the next
far: float32[row, stage, price, distance], that slope as a share of the pulls left
edge: float64[row, stage, price], where an arm is given up

Gaussian arms:
noise: the deviation of a reward
deviation: float64[n], of the mean after n pulls; move: float64[n], of its next change
bonus: float64[n], the index is the mean and this
value: float64[n, j], V as kernels/gittins.py has it
point, chance: float64[q], mean and probability of the q-th interval of a standard normal number; they
    are WIDTH wide from -FURTHEST on, the first and the last without end

level: int64[n], coarse pulls; worth_level: int64[price], coarse rivals; cells: coarse states of a row
"""

FURTHEST = 4.0
WIDTH = 0.5

ScenarioWork = namedtuple(
    "ScenarioWork",
    "draw mean total index cell shift first second lead dearer all_dearer plays best most kept at loss size order choice "
    "before after",
)
ScenarioWork.__doc__ = """What a thread works in.

draw: float64[arm, n], what settles a reward: a uniform number, or a standard normal one
mean, index: float64[arm, n], after n pulls; total: float64[arm, n], f
first, second: float64[n], the two largest means after n pulls each, and lead: int64[n], the arm of the first
dearer: int64[arm, price], pulls of an arm until its charge is down to a price; all_dearer: int64[price],
    of all arms together
cell: int32[arm, n, 3] and shift: float64[arm, n], the correction of a pull is shift times the sum of theta[cell]
plays: int64[arm], of the index policy; best: int64[arm], of the best in hindsight
most, kept, at, loss, size, order, choice, before, after: for `relax`
"""


@lane
def _uniform(word, key):
    return (np.float64(draw_bits(word, key)) + 0.5) * 2.0**-32


@lane
def _normal(word, other, key):
    """A standard normal number (Box and Muller 1958)."""
    radius = np.sqrt(-2.0 * np.log(_uniform(word, key)))
    return radius * np.cos(2.0 * np.pi * _uniform(other, key))


@lane
def _level(distance, nearest, step, count):
    return np.int64(min(max((distance - nearest) / step, 0.0), count - 1.0))


@lane
def _price_below(arms, x):
    """The last price that is not above a charge or mean."""
    last = arms.worth_level.shape[0] - 1.0
    return np.int64(min(max((x - arms.low) / arms.step, 0.0), last))


@lane
def _rival(room, k, n):
    """The best mean of the other arms after the pulls that n of this arm leave."""
    left = room.mean.shape[1] - 1 - n
    return room.second[left] if room.lead[left] == k else room.first[left]


@lane
def _place(arms, room, k, n, charge, deviation, cell):
    """The corrections of a pull.

    Charges fall from pull to pull, and play goes by the largest. The other arms have had the pulls whose
    charges are above this one when its turn comes, if they leave any.
    """
    row, mean, rival = arms.kind[k], room.mean[k, n], _rival(room, k, n)
    distance = (mean - charge) / deviation
    at = arms.level[n] * DISTANCES + _level(distance, _NEAREST, _STEP, DISTANCES)
    at = (row * arms.cells + at) * CORRECTIONS
    near = _level((mean - rival) / deviation, _NEAREST_RIVAL, _RIVAL_STEP, RIVALS)
    price = _price_below(arms, charge)
    before = (room.all_dearer[price] - room.dearer[k, price]) / (arms.horizon - n)
    cell[0] = at + near
    cell[1] = at + RIVALS + arms.worth_level[_price_below(arms, rival)]
    cell[2] = at + RIVALS + WORTHS + _level(before, 0.0, _TURN_STEP, TURNS)


@lane
def _priced(arms, row, n, mean, root, price):
    """The mean and the bonus of an arm whose index is about `price`."""
    position = min(max((price - arms.low) / arms.step, 0.0), arms.edge.shape[2] - 1.0)
    j = min(np.int64(position), arms.edge.shape[2] - 2)
    share = position - j
    stage = arms.stage[n]
    edge, later = arms.edge[row, stage], arms.edge[row, stage + 1]
    bonus = edge[j] + share * (edge[j + 1] - edge[j])
    bonus += arms.phase[n] * (later[j] + share * (later[j + 1] - later[j]) - bonus)
    return min(mean + bonus * root * np.sqrt(price * (1.0 - price)), 1.0 - 1e-9)


@lane
def bernoulli_index(arms, row, n, s):
    """The index of an arm with n pulls and s successes."""
    if arms.stage[n] < 0:
        return arms.index[row, pair(n, s)]
    total = arms.first[row] + arms.second[row] + n
    mean = (arms.first[row] + s) / total
    root = 1.0 / np.sqrt(total + 1.0)
    # A fixed point (Steffensen's method).
    price = mean
    for _ in range(2):
        one = _priced(arms, row, n, mean, root, price)
        two = _priced(arms, row, n, mean, root, one)
        bend = two - 2.0 * one + price
        price = two
        if abs(bend) > 1e-12:
            price = min(max(two - (two - one) ** 2 / bend, mean), 1.0 - 1e-9)
    return price


@lane
def _between(table, price, share, q, part):
    """An entry of a stage, interpolated between prices and distances."""
    here = table[price, q] + part * (table[price, q + 1] - table[price, q])
    above = table[price + 1, q] + part * (table[price + 1, q + 1] - table[price + 1, q])
    return here + share * (above - here)


@lane
def _far_slope(arms, row, n, total, mean, charge, price, share):
    """V(n + 1, s + 1) - V(n + 1, s), interpolated between stages."""
    deviation = np.sqrt(charge * (1.0 - charge) / (total + 1.0))
    distance = ((mean - charge) / deviation + charges.FAR) * charges.PER_DEVIATION
    distance = min(max(distance, 0.0), charges.DISTANCES - 1.0)
    q = min(np.int64(distance), charges.DISTANCES - 2)
    stage = arms.stage[n]
    part = _between(arms.far[row, stage], price, share, q, distance - q)
    later = _between(arms.far[row, stage + 1], price, share, q, distance - q)
    part += arms.phase[n] * (later - part)
    return part * (arms.horizon - n - 1) / (total + 1.0)


@part
def _bernoulli_path(arms, k, draw, path, index):
    """The means and indices of one arm along its rewards."""
    row = arms.kind[k]
    a, b = arms.first[row], arms.second[row]
    s = 0
    for n in range(arms.horizon):
        path[n] = (a + s) / (a + b + n)
        index[n] = bernoulli_index(arms, row, n, s)
        s += 1 if draw[n] < path[n] else 0
    path[arms.horizon] = (a + s) / (a + b + arms.horizon)


@part
def _gaussian_path(arms, k, draw, path, index):
    """The same for Gaussian rewards."""
    path[0] = arms.first[arms.kind[k]]
    for n in range(arms.horizon):
        index[n] = path[n] + arms.bonus[n]
        path[n + 1] = path[n] + arms.move[n] * draw[n]


@part
def _rivals(room):
    """The two largest means after each number of pulls."""
    for n in range(room.mean.shape[1]):
        room.first[n] = room.mean[0, n]
        room.second[n] = -np.inf
        room.lead[n] = 0
    for k in range(1, room.mean.shape[0]):
        path = room.mean[k]
        for n in range(path.shape[0]):
            if path[n] > room.first[n]:
                room.second[n] = room.first[n]
                room.first[n] = path[n]
                room.lead[n] = k
            else:
                room.second[n] = max(room.second[n], path[n])


@part
def _dearer(arms, room):
    """How many pulls arms have until their charges are down to each price."""
    last = arms.worth_level.shape[0] - 1
    room.all_dearer[:] = 0
    for k in range(room.index.shape[0]):
        n = 0
        charge = room.index[k, 0]
        at = _price_below(arms, charge)
        for price in range(last, -1, -1):
            while at > price and n < arms.horizon:
                n += 1
                if n < arms.horizon:
                    charge = min(charge, room.index[k, n])
                    at = _price_below(arms, charge)
            room.dearer[k, price] = n
            room.all_dearer[price] += n


@part
def _bernoulli_arm(arms, k, theta, room):
    """f of one arm along its rewards, and what corrections act on."""
    row = arms.kind[k]
    pseudo = arms.first[row] + arms.second[row]
    draw, path, index = room.draw[k], room.mean[k], room.index[k]
    total, cell, shift = room.total[k], room.cell[k], room.shift[k]
    horizon = arms.horizon
    last = arms.far.shape[2] - 2
    charge = np.inf
    s = 0
    total[0] = 0.0
    for n in range(horizon):
        mean = path[n]
        charge = min(charge, index[n])
        position = (charge - arms.low) / arms.step
        slope = 0.0
        if position >= 0.0:
            price = min(np.int64(position), last)
            share = min(position - price, 1.0)
            if arms.stage[n] < 0:
                table = arms.slope[row, pair(n, s)]
                slope = table[price] * (1.0 - share) + table[price + 1] * share
            else:
                slope = _far_slope(arms, row, n, pseudo + n, mean, charge, price, share)
        deviation = np.sqrt(mean * (1.0 - mean) / (pseudo + n + 1.0))
        _place(arms, room, k, n, charge, deviation, cell[n])
        won = 1 if draw[n] < mean else 0
        # A change of the mean, times the pulls that it can matter for.
        shift[n] = (mean - won) / (pseudo + n + 1.0) * (horizon - n - 1)
        weight = theta[cell[n, 0]] + theta[cell[n, 1]] + theta[cell[n, 2]]
        total[n + 1] = total[n] + mean + (mean - won) * slope + weight * shift[n]
        s += won


@part
def _gaussian_arm(arms, k, theta, room):
    """The same for Gaussian rewards."""
    draw, path, index = room.draw[k], room.mean[k], room.index[k]
    total, cell, shift = room.total[k], room.cell[k], room.shift[k]
    horizon = arms.horizon
    charge = np.inf
    total[0] = 0.0
    for n in range(horizon):
        mean = path[n]
        charge = min(charge, index[n])
        left = np.float64(horizon - n - 1)
        z = draw[n]
        move = arms.move[n]
        penalty = 0.0
        if charge >= arms.low:
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
        deviation = arms.deviation[n]
        _place(arms, room, k, n, charge, deviation, cell[n])
        shift[n] = -move * z * left
        weight = theta[cell[n, 0]] + theta[cell[n, 1]] + theta[cell[n, 2]]
        total[n + 1] = total[n] + mean + penalty + weight * shift[n]


@part
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


@part
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


@part
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


@part
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


@part
def _keep_cheap(total, price, slack, width, room):
    """Keep, of each arm, the n (the cheapest of a block) that lose at most `slack` at this price; arms by how many."""
    most, kept, size, order = room.most, room.kept, room.size, room.order
    for k in range(total.shape[0]):
        count = 0
        block = -1
        for n in range(total.shape[1]):
            lost = most[k] - (total[k, n] - price * n)
            if lost > slack:
                continue
            if n // width != block:
                block = n // width
                kept[k, count] = block
                room.at[k, count] = n
                room.loss[k, count] = lost
                count += 1
            elif lost < room.loss[k, count - 1]:
                room.at[k, count - 1] = n
                room.loss[k, count - 1] = lost
        size[k] = count
        order[k] = k
    for i in range(1, total.shape[0]):
        k = order[i]
        j = i
        while j > 0 and size[order[j - 1]] > size[k]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = k


@part
def _join(before, after, i, lowest, highest, blocks, slack, room):
    """The least losses `after` one more arm, the i-th by size; choice[i] has what it takes."""
    k = room.order[i]
    kept = room.kept
    least, largest = kept[k, 0], kept[k, room.size[k] - 1]
    for m in range(lowest + least, min(highest + largest, blocks) + 1):
        after[m] = np.inf
    for m in range(lowest, highest + 1):
        if not before[m] <= slack:
            continue
        for j in range(room.size[k]):
            n = m + kept[k, j]
            if n > blocks:
                break
            loss = before[m] + room.loss[k, j]
            if loss < after[n]:
                after[n] = loss
                room.choice[i, n] = j
    return lowest + least, min(highest + largest, blocks)


@jit
def relax(total, known, width, room):
    """The largest sum of f_k(n_k) with n_1 + ... + n_K = T; leaves the n_k in room.best.

    known: a value that can be had. Pulls are priced, so that every n_k beyond the arm's best loses;
    what loses more than the dual and a known value differ cannot be part of the best.
    width: if it is above 1, the n of an arm are taken in blocks that wide, each with its least loss, and
    blocks go together if any of their n do: the value is then an upper bound, and much quicker.
    """
    arms, horizon = total.shape[0], total.shape[1] - 1
    most, best, kept, order = room.most, room.best, room.kept, room.order
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
    _keep_cheap(total, price, slack, width, room)
    # before[m]: the loss by so many blocks of the arms so far, compared with their best at that price.
    blocks = horizon // width
    before, after = room.before, room.after
    for m in range(blocks + 1):
        before[m] = np.inf
    before[0] = 0.0
    lowest, highest = 0, 0
    for i in range(arms - 1):
        lowest, highest = _join(before, after, i, lowest, highest, blocks, slack, room)
        before, after = after, before
    k = order[arms - 1]
    fewest = max((horizon - arms * (width - 1) + width - 1) // width, 0)
    least_loss = np.inf
    left = 0
    for j in range(room.size[k]):
        for together in range(fewest, blocks + 1):
            m = together - kept[k, j]
            if lowest <= m <= highest:
                loss = before[m] + room.loss[k, j]
                if loss < least_loss:
                    least_loss = loss
                    best[k] = room.at[k, j]
                    left = m
    for i in range(arms - 2, -1, -1):
        k = order[i]
        j = room.choice[i, left]
        best[k] = room.at[k, j]
        left -= kept[k, j]
    value = 0.0
    pulls = 0
    for i in range(arms):
        value += total[i, best[i]]
        pulls += best[i]
    return value + price * (horizon - pulls)


@part
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
def value_scenario(arms, theta, width, room):
    """The scenario of room.draw: what the index policy gets, and the best in hindsight."""
    for k in range(arms.kind.shape[0]):
        if arms.family == BERNOULLI:
            _bernoulli_path(arms, k, room.draw[k], room.mean[k], room.index[k])
        else:
            _gaussian_path(arms, k, room.draw[k], room.mean[k], room.index[k])
    _rivals(room)
    _dearer(arms, room)
    for k in range(arms.kind.shape[0]):
        if arms.family == BERNOULLI:
            _bernoulli_arm(arms, k, theta, room)
        else:
            _gaussian_arm(arms, k, theta, room)
    policy = _play(room.total, room.index, room.plays, room.most)
    return policy, relax(room.total, policy, width, room)


@jit
def scenarios(arms, seed, first, theta, width, policy, hindsight, gradient, room):
    """The values of scenarios first, first + 1, ...

    gradient: if it is not empty, the derivatives of the gaps by theta are added to it.
    """
    for i in range(policy.shape[0]):
        _draw(arms, episode_bits(seed, first + i), room.draw)
        policy[i], hindsight[i] = value_scenario(arms, theta, width, room)
        if gradient.shape[0] > 0:
            for k in range(arms.kind.shape[0]):
                sign = 1.0 if room.best[k] > room.plays[k] else -1.0
                begin = min(room.plays[k], room.best[k])
                for n in range(begin, max(room.plays[k], room.best[k])):
                    for c in range(3):
                        gradient[room.cell[k, n, c]] += sign * room.shift[k, n]


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
                index[k] = bernoulli_index(arms, row, 0, 0)
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
                    index[k] = bernoulli_index(arms, row, n + 1, np.int64(state[k]))
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
