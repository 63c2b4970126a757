"""A test that ends: an equal split, then the winner for good (decisions.ByTest)."""

from __future__ import annotations

import numpy as np

from .decide import TIE, N, S, W, best_of
from .jit import DECIDE, part, pointer

f32 = np.float32
u32 = np.uint32


@part
def _is_clear(stats, sums, leader, z, i):
    """Whether the leader is better than each other arm by z standard errors of the difference."""
    had = np.float64(stats[leader, N, i]) - np.float64(stats[leader, W, i])
    best = np.float64(sums[leader, 0, i]) / had
    noise = np.float64(stats[leader, S, i]) ** 2 / (had - 1.0)
    for k in range(sums.shape[0]):
        if k != leader:
            plays = np.float64(stats[k, N, i]) - np.float64(stats[k, W, i])
            lead = best - np.float64(sums[k, 0, i]) / plays
            error = noise + np.float64(stats[k, S, i]) ** 2 / (plays - 1.0)
            if lead * lead <= z * z * error:
                return False
    return True


@pointer(DECIDE)
def by_test(step, t, horizon, stats, sums, memory, parameters, keys, chosen):
    """The arm with the fewest plays while the test runs, then its winner; ties at random.

    parameters: rewards that every arm must have had; standard errors of a clear lead, 0 if the length
    alone ends the test. Memory: the winner's number from 1 on, 0 while the test runs.
    """
    arms = sums.shape[0]
    values = np.empty(arms)
    for i in range(chosen.shape[0]):
        if memory[0, i] > f32(0):
            chosen[i] = u32(memory[0, i] - f32(1))
            continue
        least = np.inf
        for k in range(arms):
            least = min(least, np.float64(stats[k, N, i]) - np.float64(stats[k, W, i]))
        if least >= parameters[0]:
            for k in range(arms):
                had = np.float64(stats[k, N, i]) - np.float64(stats[k, W, i])
                values[k] = np.float64(sums[k, 0, i]) / had
            leader, _ = best_of(values, keys[i], step, TIE)
            if parameters[1] == 0.0 or _is_clear(stats, sums, leader, parameters[1], i):
                memory[0, i] = f32(leader + 1)
                chosen[i] = u32(leader)
                continue
        for k in range(arms):
            values[k] = -np.float64(stats[k, N, i])
        chosen[i] = best_of(values, keys[i], step, TIE)[0]
