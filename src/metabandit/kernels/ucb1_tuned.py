"""UCB1-Tuned over policies: the paper's search for the best formula (Section 5.2).

Policies are the arms, an episode is a pull, and its reward is minus the regret of the episode. The policy
to pull after t pulls has the largest index (the paper's Eq. 3)

    mean + sqrt(ln(t)/n * min(1/4, variance + sqrt(2 ln(t)/n)))

of its n rewards. While the minimum is 1/4, the index is mean + scale sqrt(ln t) with scale = sqrt(1/(4n)),
and only ln t changes from pull to pull.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from .jit import jit, lane, part

Pulls = namedtuple("Pulls", "count total squares ready taken buffer")
Pulls.__doc__ = """What was pulled of each policy: how often, the sum of its rewards and of their squares.

buffer[policy] holds rewards that come next: `ready` of them, of which `taken` were used up
"""


@lane
def _bonus(count, total, squares, log):
    mean = total / count
    variance = max(squares / count - mean * mean, 0.0)
    return np.sqrt(log / count * min(0.25, variance + np.sqrt(2.0 * log / count)))


@jit
def upper_bounds(pulls, t, out):
    """The UCB1-Tuned index of every policy after t pulls."""
    log = np.log(t)
    for k in range(out.shape[0]):
        bonus = _bonus(pulls.count[k], pulls.total[k], pulls.squares[k], log)
        out[k] = pulls.total[k] / pulls.count[k] + bonus


@part
def _note(c, k, log, pulls, mean, scale):
    """The index of candidate c is mean + scale sqrt(ln t) while the variance is out of play, else -1."""
    count = pulls.count[k]
    mean[c] = pulls.total[k] / count
    variance = max(pulls.squares[k] / count - mean[c] * mean[c], 0.0)
    free = variance + np.sqrt(2.0 * log / count) >= 0.25
    scale[c] = np.sqrt(0.25 / count) if free else -1.0


@jit
def pull(most, t, candidates, mean, scale, pulls):
    """Make `most` pulls, each of the candidate with the largest index; returns how many were made.

    It ends early if the policy to pull has no reward ready; candidates[0] is then its number. One that
    stays above what all others can reach by the end is pulled again without a look at them.
    """
    log = np.log(t)
    last = np.log(t + most)
    last_root = np.sqrt(last)
    made = 0
    for c in range(candidates.shape[0]):
        _note(c, candidates[c], log, pulls, mean, scale)
    while made < most:
        log = np.log(t + made)
        root = np.sqrt(log)
        best = -np.inf
        chosen = 0
        for c in range(candidates.shape[0]):
            value = mean[c] + scale[c] * root
            if scale[c] < 0.0:
                k = candidates[c]
                value = mean[c] + _bonus(pulls.count[k], pulls.total[k], pulls.squares[k], log)
            if value > best:
                best = value
                chosen = c
        rival = -np.inf
        for c in range(candidates.shape[0]):
            value = mean[c] + scale[c] * last_root
            if scale[c] < 0.0:
                k = candidates[c]
                value = mean[c] + _bonus(pulls.count[k], pulls.total[k], pulls.squares[k], last)
            rival = value if value > rival and c != chosen else rival
        k = candidates[chosen]
        while True:
            if pulls.taken[k] == pulls.ready[k]:
                candidates[0] = k
                return made
            reward = np.float64(pulls.buffer[k, pulls.taken[k]])
            pulls.taken[k] += 1
            pulls.count[k] += 1
            pulls.total[k] += reward
            pulls.squares[k] += reward * reward
            made += 1
            _note(chosen, k, log, pulls, mean, scale)
            # What it is now is a lower bound for what it is at the next pull.
            bonus = _bonus(pulls.count[k], pulls.total[k], pulls.squares[k], log)
            if made == most or mean[chosen] + bonus <= rival:
                break
    return most
