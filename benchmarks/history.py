"""What a fitted prior is worth: do its intervals hold the truth, and are its promises kept?

    python benchmarks/history.py --markdown docs/history-results.md

Histories are simulated: 40 tests of 4 arms with 1,250 plays each, whose true means come from a known prior.
From each history comes a prior, fitted or a table of the raw means, and with it a promise: what Thompson
sampling made for that prior gains over an equal split in 5,000 plays. What the same policy gains on
fresh problems of the true prior is what really comes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

import metabandit as mb
from metabandit.priors.history import read_history
from metabandit.priors.likelihood import BetaBinomial, Maximum, beta_of

TESTS, ARMS, PLAYS, HORIZON = 40, 4, 1250, 5000
TRUTHS = ((3.0, 90.0), (6.0, 540.0))
COLUMNS = {
    "test": np.repeat(np.arange(TESTS), ARMS),
    "sent": np.full(TESTS * ARMS, PLAYS),
}


def draw_clicks(truth: tuple[float, float], seed: int) -> np.ndarray:
    """Clicks [test, arm] of a history."""
    rng = np.random.default_rng(seed)
    return rng.binomial(PLAYS, rng.beta(*truth, (TESTS, ARMS)))


def columns(clicks: np.ndarray) -> dict[str, np.ndarray]:
    return {**COLUMNS, "clicks": clicks.ravel()}


def covered(truth: tuple[float, float], histories: Iterable[int]) -> np.ndarray:
    """Whether the intervals of mean and spread hold the truth, [history, parameter]."""
    mean = truth[0] / sum(truth)
    values = mean, math.sqrt(mean * (1.0 - mean) / (sum(truth) + 1.0))
    found = []
    for seed in histories:
        maximum = Maximum(BetaBinomial(read_history(columns(draw_clicks(truth, seed)))))
        ends = maximum.estimates()
        found.append(
            [each.low <= value <= each.high for each, value in zip(ends, values, strict=True)]
        )
    return np.array(found)


def thompson(alpha: float, beta: float) -> str:
    return f"thompson:a={alpha:.6g},b={beta:.6g}"


def gain(policy: str, prior: mb.Prior, *, episodes: int, seed: int) -> float:
    """Rewards that a policy has more than an equal split has in an episode.

    Regret of the split is known, so that only that of the policy is simulated.
    """
    if isinstance(prior, mb.Table):
        split = float((prior.means.max(axis=1) - prior.means.mean(axis=1)).mean())
    else:
        split = prior.expected_best() - prior.alpha[0] / (prior.alpha[0] + prior.beta[0])
    result = mb.evaluate(policy, prior, HORIZON, episodes=episodes, seed=seed, floor=False)
    return HORIZON * split - float(result[0].mean_regret)


@dataclass
class Promise:
    """What was promised and what came, one entry per history."""

    name: str
    promised: list[float]
    real: list[float]
    ends: list[tuple[float, float]]  # of the interval of the promise

    def row(self) -> list[str]:
        off = np.subtract(self.promised, self.real)
        error = 1.96 * off.std(ddof=1) / math.sqrt(len(off))
        low, high = np.transpose(self.ends)
        kept = int(((low <= self.real) & (self.real <= high)).sum())
        return [
            self.name,
            f"{np.mean(self.promised):.1f}",
            f"{np.mean(self.real):.1f}",
            f"{off.mean():+.1f} ± {error:.1f}",
            f"{low.mean():.1f} to {high.mean():.1f}",
            f"{kept} of {len(off)}",
        ]


def promises(truth: tuple[float, float], histories: Iterable[int], resampled: int) -> list[Promise]:
    """Of the fitted prior; of the raw table as `evaluate` tells it, and with its tests resampled."""
    true = mb.Bernoulli(ARMS, alpha=truth[0], beta=truth[1])
    found = [
        Promise("fitted, interval from resampled histories", [], [], []),
        Promise("raw means as a table, interval of `evaluate`", [], [], []),
        Promise("raw means as a table, interval from resampled tests", [], [], []),
    ]
    for seed in histories:
        clicks = draw_clicks(truth, seed)
        fitted = mb.fit_prior(columns(clicks))
        table = mb.Table(clicks / PLAYS)
        rng = np.random.default_rng(seed)
        tables = [mb.Table(table.means[rng.integers(TESTS, size=TESTS)]) for _ in range(resampled)]
        own = fitted.prior.alpha[0], fitted.prior.beta[0]
        raw = beta_of(float(table.means.mean()), float(table.means.std(ddof=1)))
        for item, prior, policy, others in (
            (found[0], fitted.prior, thompson(*own), fitted.resampled(resampled, seed=seed)),
            (found[2], table, thompson(*raw), tables),
        ):
            item.promised.append(gain(policy, prior, episodes=4000, seed=seed))
            item.real.append(gain(policy, true, episodes=4000, seed=10_000 + seed))
            # The part of the promise that changes from history to history; regret of the policy
            # changes little beside it, and is simulated briefly.
            gains = [gain(policy, other, episodes=500, seed=seed) for other in others]
            # A gain is positive, and known to a factor.
            factor = math.exp(stdtrit(resampled - 1, 0.975) * np.std(np.log(gains), ddof=1))
            item.ends.append((item.promised[-1] / factor, item.promised[-1] * factor))
        told = mb.evaluate(
            [thompson(*raw), "split"], table, HORIZON, episodes=4000, seed=seed, floor=False
        )
        found[1].promised.append(found[2].promised[-1])
        found[1].real.append(found[2].real[-1])
        half = 1.96 * told.difference(1, 0).standard_error
        found[1].ends.append((found[1].promised[-1] - half, found[1].promised[-1] + half))
        print(f"  history {seed}: {[f'{p.promised[-1]:.1f} ({p.real[-1]:.1f})' for p in found]}")
    return found


def markdown(titles: list[str], rows: list[list[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=2000, help="for the intervals")
    parser.add_argument("--promises", type=int, default=60, help="histories for the gains")
    parser.add_argument("--resampled", type=int, default=20)
    parser.add_argument("--markdown", type=Path, help="also write the tables to this file")
    given = parser.parse_args()
    rows = []
    for truth in TRUTHS:
        inside = covered(truth, range(given.histories))
        for number, first in (("the first 200", inside[:200]), (f"all {len(inside):,}", inside)):
            error = 196.0 * math.sqrt(0.95 * 0.05 / len(first))
            shares = [f"{100 * share:.1f} %" for share in first.mean(axis=0)]
            rows.append([f"Beta({truth[0]:g}, {truth[1]:g})", number, *shares, f"± {error:.1f}"])
    parts = [
        "# Fitted priors: measured\n\nMade by `python benchmarks/history.py --markdown docs/history-results.md`"
        f", from simulated histories of {TESTS} tests, {ARMS} arms and {PLAYS:,} plays per arm.\n",
        "## Do 95 % intervals hold the truth?\n",
        markdown(["true means", "histories", "mean", "spread", "chance alone (95 %)"], rows),
    ]
    print(parts[-1])
    parts.append(
        f"\n## Are promises kept?\n\nThe gain of Thompson sampling over an equal split, in clicks per "
        f"{HORIZON:,} plays: as promised by the prior that was made from a history, and as it comes on fresh "
        f"problems of the true prior. Averages over {given.promises} histories.\n"
    )
    for truth in TRUTHS:
        found = promises(truth, range(given.promises), given.resampled)
        titles = ["prior", "promised", "came", "promised too much", "interval", "holds what came"]
        parts.append(
            f"True means Beta({truth[0]:g}, {truth[1]:g}):\n\n"
            f"{markdown(titles, [item.row() for item in found])}\n"
        )
        print(parts[-1])
    if given.markdown is not None:
        given.markdown.write_text("\n".join(parts), "utf-8")


if __name__ == "__main__":
    main()
