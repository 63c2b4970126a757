"""Regret on the coarse clock beside regret one play at a time: ranking, difference, and time.

python -m benchmarks.coarse [--quick]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import metabandit as mb
from metabandit.engine.simulated import Sampling, Simulation
from metabandit.learning.judges import _COARSE

INDICES = ("r + 3/(n + 1)", "r + sqrt(0.5*ln(t + 1)/n)", "r + s*sqrt(ln(t + 1)/n)", "r + 1/(n + 1)")
TASKS = ((2, 1000, 200_000), (10, 1000, 50_000), (2, 10_000, 100_000), (10, 10_000, 20_000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the episodes")
    quick = parser.parse_args().quick
    for arms, horizon, episodes in TASKS:
        prior = mb.Bernoulli(arms=arms)
        episodes //= 10 if quick else 1
        plans = [mb.policy(item, start="prior-counts").plan(prior, horizon) for item in INDICES]
        found, seconds = [], []
        for growth in (0.0, _COARSE):
            simulation = Simulation(prior, horizon, Sampling(growth=growth))
            simulation.regret_of(plans, 1, [0, 64], False)
            begun = time.perf_counter()
            found.append(simulation.regret_of(plans, 1, [0, episodes], False, 2))
            seconds.append(time.perf_counter() - begun)
        fine, coarse = found
        apart = coarse - fine
        mean = fine.mean(axis=1)
        share = 100.0 * apart.mean(axis=1) / mean
        error = 196.0 * apart.std(axis=1) / np.sqrt(episodes) / mean
        same = (np.argsort(mean) == np.argsort(coarse.mean(axis=1))).all()
        print(f"K = {arms}, T = {horizon:,}, {episodes:,} episodes: {seconds[0] / seconds[1]:.2f} times as fast, "
              f"{'same ranking' if same else 'ANOTHER RANKING'}")  # fmt: skip
        for index, value, part, noise in zip(INDICES, mean, share, error, strict=True):
            print(f"  {index:28} {value:9.3f}  {part:+.2f} ± {noise:.2f} %")


if __name__ == "__main__":
    main()
