"""What policies that compare all arms at once compute: plain Python that is also compiled.

Posteriors are Beta(a_k, b_k), or normal with mean m_k and deviation d_k; rewards have the deviation
`noise`. All functions fill arrays that they are given, one entry per arm.

Knowledge gradient (Ryzhov, Powell, Frazier 2012). With c the best mean of the other arms and x_m the
mean of arm k after m more plays of it, one could gain per play

    v_m = E[max(x_m, c)] - max(x_0, c),

and the arm with the largest x_0 + (h - 1) v_1 is played, h being the plays left. One play often cannot
change what is best, though, and KG* has the largest v_m/m instead of v_1.

Information-directed sampling (Russo, Van Roy 2018), by variances. With p_k the probability that arm k is
the best one, play is to minimise, over the probabilities q of the arms,

    (sum q_k D_k)^2 / sum q_k g_k,   D_k = E[max x] - E[x_k],   g_k = sum_j p_j (E[x_k | j is best] - E[x_k])^2.

At most two arms have a positive q_k in the minimum.

Top-two Thompson sampling (Russo 2016), for simple regret: a leader i is drawn with probability p_i, and played with
probability `keep`; else another arm j, with probability p_j/(1 - p_i). Chances below exp(-50) count as exp(-50),
so that arms that are all but certainly worse than the leader have equal shares.
"""

from __future__ import annotations

import math
from typing import Any

from .numerics import beta_constant

# Of posteriors: the logarithm of the chance that is left out at either end, and how many standard
# deviations of the narrowest a step between points may have. If leaders are all but certain, top-two sampling
# asks which of very small chances is the larger.
_TAIL, _STEP = -16.0, 0.5
_FINE_TAIL, _FINE_STEP = -50.0, 0.2
# Points that an integral takes at most, and intervals up to which they are evenly spaced.
MOST_POINTS = 4096
_EVENLY = 512.0
# Plays that posteriors are worth beyond which logarithms of the Gamma function would cancel.
_KNOWN = 1e4


def others_best(means: Any, best: Any) -> None:
    """The best mean of the other arms."""
    first = 0
    for k in range(1, len(means)):
        if means[k] > means[first]:
            first = k
    second = -math.inf
    for k in range(len(means)):
        if k != first and means[k] > second:
            second = means[k]
    for k in range(len(means)):
        best[k] = second if k == first else means[first]


def beta_gain(a: float, b: float, c: float, most: int) -> float:
    """The largest v_m/m, m = 1, ..., most, of an arm with a Beta(a, b) mean; 0 if there is none.

    E[max(x_m, c)] grows from m to m + 1 in one state only: with s successes, the whole number for which
    another play decides whether the mean is above c. `chance` is the probability of that state.
    """
    n = a + b
    gain, best, chance = 0.0, 0.0, 1.0
    at = 0.0
    for m in range(most):
        # Where another play never decides it, this is the state without successes, or without failures.
        s = min(max(float(math.floor(c * (n + m + 1.0) - a)), 0.0), float(m))
        if m > 0:
            if s > at:
                chance *= m / s * ((a + at) / (n + m - 1.0))
            else:
                chance *= m / (m - s) * ((b + m - 1.0 - at) / (n + m - 1.0))
            at = s
        mean = (a + s) / (n + m)
        if mean <= c:
            gain += chance * mean * max((a + s + 1.0) / (n + m + 1.0) - c, 0.0)
        else:
            gain += chance * (1.0 - mean) * max(c - (a + s) / (n + m + 1.0), 0.0)
        best = max(best, gain / (m + 1.0))
    return best


def normal_gain(mean: float, deviation: float, noise: float, c: float, plays: float) -> float:
    """v_m/m, m = `plays`, of an arm with a normal mean."""
    # The deviation of x_m: what m plays will have told.
    told = deviation * math.sqrt(plays / (plays + noise * noise / (deviation * deviation)))
    z = abs(mean - c) / told
    tail = 0.5 * math.erfc(z / math.sqrt(2.0))
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return told * max(density - z * tail, 0.0) / plays


def best_normal_gain(mean: float, deviation: float, noise: float, c: float, most: int) -> float:
    """The largest v_m/m, m = 1, ..., most: v_m/m rises, then falls."""
    low, high = 1, most
    while high - low > 2:
        third = (high - low) // 3
        left, right = low + third, high - third
        if normal_gain(mean, deviation, noise, c, left) <= normal_gain(
            mean, deviation, noise, c, right
        ):
            low = left + 1
        else:
            high = right
    best = 0.0
    for plays in range(low, high + 1):
        best = max(best, normal_gain(mean, deviation, noise, c, float(plays)))
    return best


def beta_knowledge(a: Any, b: Any, left: int, star: bool, best: Any, values: Any) -> None:
    """KG or KG* of arms with Beta means, `left` plays being left; `best` is room."""
    for k in range(len(a)):
        values[k] = a[k] / (a[k] + b[k])
    others_best(values, best)
    for k in range(len(a)):
        most = max(left - 1, 0)
        most = most if star else min(most, 1)
        values[k] += (left - 1.0) * beta_gain(a[k], b[k], best[k], most)


def normal_knowledge(
    means: Any, deviations: Any, noise: float, left: int, star: bool, best: Any, values: Any
) -> None:
    """KG or KG* of arms with normal means, `left` plays being left; `best` is room."""
    others_best(means, best)
    for k in range(len(means)):
        most = max(left - 1, 0)
        most = most if star else min(most, 1)
        gain = 0.0
        if most:
            gain = best_normal_gain(means[k], deviations[k], noise, best[k], most)
        values[k] = means[k] + (left - 1.0) * gain


def wide(tail: float) -> float:
    """Standard deviations beyond which a normal variate is with a chance of about exp(tail) only."""
    return 1.0 + math.sqrt(-2.0 * tail)


def beta_end(a: float, b: float, tail: float) -> float:
    """ln(x/(1 - x)) for an x below which a Beta(a, b) variate hardly ever is.

    Its chance is at most x^a/(a B(a, b)) for b >= 1, which is not close where a is large.
    """
    # Means that are hardly ever near 1 may matter most.
    tail += min(math.log(10.0 * min(a, b)), 0.0)
    far = (tail + math.lgamma(a + 1.0) + math.lgamma(b) - math.lgamma(a + b)) / a
    if a < 20.0:
        return far
    return max(far, math.log(a / b) - wide(tail) * math.sqrt(1.0 / a + 1.0 / b))


# Long, because the loops over points share a dozen values, which would be arguments otherwise.
def fill_beta(
    a: Any, b: Any, fine: bool, density: Any, below: Any, partial: Any, lines: Any
) -> tuple[int, float]:
    """Density, distribution and partial mean of Beta posteriors at points; returns points and distance.

    Densities are taken over y = ln(x/(1 - x)), x^a (1 - x)^b / B(a, b): they are smooth and fall
    exponentially to both sides. The points begin where the best arm may be, and are evenly spaced in u, with

        y = c + s sinh(u/s),   y' = sqrt(1 + z^2),   y'' = z/s,   z = (y - c)/s,

    and what is kept is the density over u. An infinite s makes them evenly spaced in y. Where arms are known
    so differently that this takes too many points, c is the arm known best and s a multiple of its
    width: all others that matter are about as far from c as they are wide, or less. Densities with
    small a or b are wide, but bend within a distance of about 1. What lies between points is a sum with
    the correction of Euler and Maclaurin.

    lines: the points x, and room for two rows as long
    """
    x, bends, places = lines[0], lines[1], lines[2]
    tail = _FINE_TAIL if fine else _TAIL
    part = _FINE_STEP if fine else _STEP
    low, high, narrow, centre = -math.inf, -math.inf, math.inf, 0.0
    for k in range(len(a)):
        low = max(low, beta_end(a[k], b[k], tail))
        high = max(high, -beta_end(b[k], a[k], tail))
    for k in range(len(a)):
        width = math.sqrt(1.0 / a[k] + 1.0 / b[k])
        if -beta_end(b[k], a[k], tail) > low and width < narrow:
            narrow, centre = width, math.log(a[k] / b[k])
    bend, first, last = math.inf, 0.0, high - low
    step = min(part * narrow, 0.75)
    if last <= _EVENLY * step:
        centre = low
    else:
        centre = min(max(centre, low), high)
        narrow = min(narrow, 1.5)
        bend = 2.0 * wide(tail) * narrow
        first, last = (
            bend * math.asinh((low - centre) / bend),
            bend * math.asinh((high - centre) / bend),
        )
        step = 0.5 * part * narrow
    points, step = spaced(first, last, step)
    for g in range(points):
        y = centre + first + g * step
        if bend < math.inf:
            y = centre + bend * math.sinh((first + g * step) / bend)
        odds = math.exp(-abs(y))
        x[g] = (odds if y < 0.0 else 1.0) / (1.0 + odds)
        bends[g] = math.log1p(odds)
        places[g] = y
    for k in range(len(a)):
        n, mean = a[k] + b[k], a[k] / (a[k] + b[k])
        # The logarithm of a density is a y or -b y, less n ln(1 + exp(-|y|)), and a constant.
        scale = math.lgamma(n) - math.lgamma(a[k]) - math.lgamma(b[k])
        mode, highest = math.inf, 0.0
        if n > _KNOWN:
            # Near the highest point large numbers would cancel.
            mode = math.log(a[k] / b[k])
            highest = beta_constant(a[k], b[k])
            scale = highest + n * math.log1p(math.exp(-abs(mode)))
            scale -= a[k] * mode if mode < 0.0 else -b[k] * mode
        f, row, values = density[k], below[k], partial[k]
        mass, total = 0.0, 0.0
        for g in range(points):
            share, y = x[g], places[g]
            if abs(y - mode) < 1.0:
                off = math.log1p(mean * math.expm1(y - mode)) - mean * (y - mode)
                height = highest - n * off
            else:
                height = scale + (a[k] * y if y < 0.0 else -b[k] * y) - n * bends[g]
            z = (y - centre) / bend
            rise = math.sqrt(1.0 + z * z)
            f[g] = math.exp(height) * rise
            slope = f[g] * ((a[k] - n * share) * rise + z / bend / rise)
            mass += 0.5 * f[g]
            total += 0.5 * f[g] * share
            row[g] = step * (mass - step / 12.0 * slope)
            slope = slope * share + f[g] * share * (1.0 - share) * rise
            values[g] = step * (total - step / 12.0 * slope)
            mass += 0.5 * f[g]
            total += 0.5 * f[g] * share
        # What lies below the first point is what is missing to all; less is rounding.
        before, rest = 1.0 - row[points - 1], mean - values[points - 1]
        before = before if before > 1e-9 else -row[0]
        rest = rest if rest > 1e-9 * mean else -values[0]
        for g in range(points):
            row[g] = max(before + row[g], 0.0)
            values[g] = max(rest + values[g], 0.0)
    return points, step


def spaced(low: float, high: float, step: float) -> tuple[int, float]:
    """How many points to put between two, and how far apart they then are."""
    points = int(min(math.ceil((high - low) / step), MOST_POINTS - 1.0)) + 1
    return points, (high - low) / (points - 1.0)


def fill_normal(
    means: Any, deviations: Any, fine: bool, density: Any, below: Any, partial: Any, x: Any
) -> tuple[int, float]:
    """The same for normal posteriors, from where the best arm may be upwards; returns points and distance."""
    far = wide(_FINE_TAIL if fine else _TAIL)
    low, high, narrow = -math.inf, -math.inf, math.inf
    for k in range(len(means)):
        low = max(low, means[k] - far * deviations[k])
        high = max(high, means[k] + far * deviations[k])
    for k in range(len(means)):
        if means[k] + far * deviations[k] > low:
            narrow = min(narrow, deviations[k])
    points, step = spaced(low, high, _STEP * narrow)
    for g in range(points):
        x[g] = low + g * step
    for k in range(len(means)):
        scale = 1.0 / (deviations[k] * math.sqrt(2.0 * math.pi))
        for g in range(points):
            z = (x[g] - means[k]) / deviations[k]
            f = scale * math.exp(-0.5 * z * z)
            density[k][g] = f
            below[k][g] = 0.5 * math.erfc(-z / math.sqrt(2.0))
            partial[k][g] = means[k] * below[k][g] - deviations[k] * deviations[k] * f
    return points, step


def best_chances(
    points: int, step: float, density: Any, below: Any, product: Any, chance: Any
) -> None:
    """The probability of each arm to be the best one.

    Each density is left as the integrand: times the distributions of all other arms, over the sum.
    """
    for g in range(points):
        product[g] = step
    for k in range(len(chance)):
        row = below[k]
        for g in range(points):
            product[g] *= row[g]
    whole = 0.0
    for k in range(len(chance)):
        row, f = below[k], density[k]
        part = 0.0
        for g in range(points):
            f[g] = f[g] * product[g] / row[g] if row[g] > 1e-200 else 0.0
            part += f[g]
        chance[k] = part
        whole += part
    for k in range(len(chance)):
        f = density[k]
        for g in range(points):
            f[g] /= whole
        chance[k] /= whole


def directed_shares(points: int, density: Any, below: Any, partial: Any, x: Any, room: Any) -> None:
    """The shares of information-directed sampling, after `best_chances`; `room` is that of `shares`."""
    means, lost, told, chance = room[0], room[1], room[2], room[3]
    top = 0.0
    for k in range(len(means)):
        row, values = below[k], partial[k]
        told[k] = 0.0
        for g in range(points):
            # The mean of an arm that is below a point.
            values[g] = values[g] / row[g] if row[g] > 1e-200 else 0.0
    for j in range(len(means)):
        if chance[j] > 0.0:
            f = density[j]
            for k in range(len(means)):
                values = x if k == j else partial[k]
                part = 0.0
                for g in range(points):
                    part += f[g] * values[g]
                apart = part / chance[j] - means[k]
                told[k] += chance[j] * apart * apart
                if k == j:
                    top += part
    for k in range(len(means)):
        lost[k] = max(top - means[k], 0.0)
    least_ratio(lost, told, chance)


def least_ratio(lost: Any, told: Any, shares: Any) -> None:
    """The shares q of the least (sum q lost)^2 / sum q told: of two arms at most; of ratios that are equal, the first's."""
    least, one, two, share = math.inf, 0, 0, 1.0
    for k in range(len(lost)):
        if lost[k] < lost[one]:
            one = k
    # Where an arm loses nothing, nothing need be told.
    for i in range(len(lost) if lost[one] > 0.0 else 0):
        for j in range(i, len(lost)):
            # With a share q of arm i the ratio is convex, with its minimum where q is `inner`.
            less, more = lost[i] - lost[j], told[i] - told[j]
            inner = 1.0
            if i != j and less != 0.0 and more != 0.0:
                inner = min(max(lost[j] / less - 2.0 * told[j] / more, 0.0), 1.0)
            elif i != j and less > 0.0:
                inner = 0.0
            above, below = lost[j] + inner * less, told[j] + inner * more
            if below > 0.0 and above * above / below < least * (1.0 - 1e-9):
                least, one, two, share = above * above / below, i, j, inner
    for k in range(len(lost)):
        shares[k] = 0.0
    shares[one] += share
    shares[two] += 1.0 - share


def top_two_shares(chance: Any, keep: float, shares: Any) -> None:
    """The shares of top-two Thompson sampling, from the probabilities of arms to be the best one."""
    least = math.exp(_FINE_TAIL)
    for k in range(len(chance)):
        shares[k] = keep * chance[k]
    for i in range(len(chance)):
        rest = 0.0
        for k in range(len(chance)):
            rest += max(chance[k], least) if k != i else 0.0
        for k in range(len(chance)):
            if k != i:
                shares[k] += (1.0 - keep) * chance[i] * max(chance[k], least) / rest
        if len(chance) == 1:
            shares[i] = 1.0


def shares(keep: float, points: int, step: float, rows: Any, lines: Any, room: Any) -> None:
    """The probabilities of the arms: of top-two Thompson sampling, or directed by information if keep < 0.

    rows: density, distribution and partial mean of each arm; lines: the points, and room for two rows as long
    room: by arm, their means, what is lost, what is told, and the probabilities
    """
    if keep < 0.0:
        best_chances(points, step, rows[0], rows[1], lines[1], room[3])
        directed_shares(points, rows[0], rows[1], rows[2], lines[0], room)
    else:
        best_chances(points, step, rows[0], rows[1], lines[1], room[1])
        top_two_shares(room[1], keep, room[3])


def adaptive_bounds(plays: Any, means: Any, horizon: float, noise: float, values: Any) -> None:
    """The index of ADA-UCB (Lattimore 2018): r + noise sqrt(2 ln(horizon/H)/n), H = sum_j min(n, sqrt(n n_j))."""
    for k in range(len(plays)):
        n = plays[k]
        h = 0.0
        for j in range(len(plays)):
            h += min(n, math.sqrt(n * plays[j]))
        values[k] = means[k] + noise * math.sqrt(2.0 * max(math.log(horizon / h), 0.0) / n)
