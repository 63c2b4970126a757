"""Decisions that compare the posteriors of all arms (see ../lookahead.py): one `decide` function each."""

from __future__ import annotations

import numpy as np

from .. import lookahead
from .counts import TIE as FINE_TIE
from .decide import TIE, N, R, W, best_of
from .jit import DECIDE, part, pointer
from .random import CHOICE_STREAM, noise_bits, unit

u32 = np.uint32
_POINTS = lookahead.MOST_POINTS


@part
def _beta_posteriors(parameters, stats, sums, i, a, b):
    """Beta posteriors of a lane, from a and b of each arm; what waits counts as if it had paid the mean."""
    for k in range(a.shape[0]):
        w = np.float64(stats[k, W, i])
        total = np.float64(sums[k, 0, i])
        wins = parameters[2 * k] + total
        losses = max(parameters[2 * k + 1] + np.float64(stats[k, N, i]) - w - total, 1e-6)
        more = 1.0 + w / (wins + losses)
        a[k] = wins * more
        b[k] = losses * more


@part
def _normal_posteriors(parameters, stats, sums, i, means, deviations):
    """Normal posteriors of a lane, from mean, plays and noise; what waits counts as if it had paid the mean."""
    mean, plays, noise = parameters[0], parameters[1], parameters[2]
    for k in range(means.shape[0]):
        n = np.float64(stats[k, N, i])
        had = plays + n - np.float64(stats[k, W, i])
        means[k] = np.float64(stats[k, R, i])
        if had > 0.0:
            means[k] = (plays * mean + np.float64(sums[k, 0, i])) / had
        deviations[k] = noise / np.sqrt(plays + n)


@part
def _drawn(shares, key, step):
    """An arm, drawn with these probabilities."""
    u = np.float64(unit(noise_bits(key, step, CHOICE_STREAM)))
    arm = 0
    for k in range(shares.shape[0]):
        if shares[k] > 0.0:
            arm = k
            u -= shares[k]
            if u < 0.0:
                break
    return u32(arm)


@pointer(DECIDE)
def knowledge_beta(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """KG, or KG* if parameters[0] is 1, of arms with Beta means; then a and b of each arm."""
    arms = sums.shape[0]
    a, b, best, values = np.empty(arms), np.empty(arms), np.empty(arms), np.empty(arms)
    tie = TIE if stats.itemsize == 4 else FINE_TIE
    for i in range(chosen.shape[0]):
        _beta_posteriors(parameters[1:], stats, sums, i, a, b)
        lookahead.beta_knowledge(a, b, horizon - step, parameters[0] > 0.0, best, values)
        chosen[i] = best_of(values, keys[i], step, tie)[0]


@pointer(DECIDE)
def knowledge_normal(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """KG, or KG* if parameters[0] is 1, of arms with normal means; then mean, plays and noise."""
    arms = sums.shape[0]
    means, deviations, best, values = (
        np.empty(arms), np.empty(arms), np.empty(arms), np.empty(arms),
    )  # fmt: skip
    tie = TIE if stats.itemsize == 4 else FINE_TIE
    star = parameters[0] > 0.0
    for i in range(chosen.shape[0]):
        _normal_posteriors(parameters[1:], stats, sums, i, means, deviations)
        lookahead.normal_knowledge(
            means, deviations, parameters[3], horizon - step, star, best, values
        )
        chosen[i] = best_of(values, keys[i], step, tie)[0]


@pointer(DECIDE)
def shared_beta(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """Information-directed or top-two Thompson sampling (lookahead.shares) of arms with Beta means.

    parameters[0]: the probability of the leader, or -1; then a and b of each arm.
    """
    arms = sums.shape[0]
    a, b, room = np.empty(arms), np.empty(arms), np.empty((4, arms))
    rows, lines = np.empty((3, arms, _POINTS + 8)), np.empty((3, _POINTS))
    fine = parameters[0] >= 0.0
    for i in range(chosen.shape[0]):
        _beta_posteriors(parameters[1:], stats, sums, i, a, b)
        points, distance = lookahead.fill_beta(a, b, fine, rows[0], rows[1], rows[2], lines)
        for k in range(arms):
            room[0, k] = a[k] / (a[k] + b[k])
        lookahead.shares(parameters[0], points, distance, rows, lines, room)
        chosen[i] = _drawn(room[3], keys[i], step)


@pointer(DECIDE)
def shared_normal(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """The same of arms with normal means: parameters[1:] are mean, plays and noise."""
    arms = sums.shape[0]
    deviations, room = np.empty(arms), np.empty((4, arms))
    rows, lines = np.empty((3, arms, _POINTS + 8)), np.empty((3, _POINTS))
    fine = parameters[0] >= 0.0
    for i in range(chosen.shape[0]):
        _normal_posteriors(parameters[1:], stats, sums, i, room[0], deviations)
        points, distance = lookahead.fill_normal(
            room[0], deviations, fine, rows[0], rows[1], rows[2], lines[0]
        )
        lookahead.shares(parameters[0], points, distance, rows, lines, room)
        chosen[i] = _drawn(room[3], keys[i], step)


@pointer(DECIDE)
def adaptive(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """ADA-UCB; the last of the parameters is the deviation of rewards."""
    arms = sums.shape[0]
    plays, means, values = np.empty(arms), np.empty(arms), np.empty(arms)
    tie = TIE if stats.itemsize == 4 else FINE_TIE
    for i in range(chosen.shape[0]):
        for k in range(arms):
            plays[k] = stats[k, N, i]
            means[k] = stats[k, R, i]
        lookahead.adaptive_bounds(plays, means, np.float64(horizon), parameters[3], values)
        chosen[i] = best_of(values, keys[i], step, tie)[0]
