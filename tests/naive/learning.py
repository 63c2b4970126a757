"""The paper's learning algorithm, and the expected regret given what was seen."""

from __future__ import annotations

import math

import numpy as np
from scipy import special


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
