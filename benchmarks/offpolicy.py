"""Whether estimates from logs of a Thompson logger are right: their bias, their errors, and what intervals cover.

    python benchmarks/offpolicy.py                       # a minute or two
    python benchmarks/offpolicy.py --obp FILE.json       # figures of Open Bandit Pipeline on a log

A log has 1,000 plays of three arms, chosen by Thompson sampling with rewards in batches of 25; with and without a minimum
share. Per target: the mean error of the estimate over all logs in its own standard errors, the mean standard
error beside the deviation that estimates really have, and how often the 95 % interval holds the true value. The last
table is of a policy that learns: ucb1-tuned over 20 plays, replayed, against its exact reward.

The second form needs `pip install --no-deps obp` (0.4.1), of which it uses the estimators only; its answers are
tests/reference/obp.json.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

import metabandit as mb
from metabandit.showing import text_table

MEANS = {"a": 0.3, "b": 0.6, "c": 0.5}


def thompson_log(
    seed: int, plays: int, means: dict[str, float] = MEANS, *, batch: int = 25, **options: Any
) -> list[tuple[str, float, float]]:
    """A log of Thompson sampling: arm, reward, probability."""
    rng = random.Random(seed)
    player = mb.policy("thompson").player(list(means), seed=seed, rewards="binary", **options)
    for _ in range(plays // batch):
        choices = player.choose(batch)
        player.reward_many((item.id, float(rng.random() < means[item.arm])) for item in choices)
    return player.log()


def summary(errors: list[tuple[float, float]]) -> list[str]:
    """Of estimates less the truth, with their standard errors: bias, error, deviation, coverage."""
    error, stated = np.array(errors).T
    spread = float(error.std(ddof=1))
    bias = float(error.mean()) / (spread / len(errors) ** 0.5)
    held = float(np.mean(np.abs(error) <= 1.96 * stated))
    return [f"{bias:+.1f}", f"{stated.mean():.4f}", f"{spread:.4f}", f"{100 * held:.0f} %"]


def campaign(logs: int, plays: int) -> None:
    titles = ["min_share", "every play", "estimate", "bias, errors", "stated", "true", "held"]
    cells = []
    replayed: list[tuple[float, float]] = []
    exact = mb.evaluate("ucb1-tuned", mb.Table([list(MEANS.values())]), 20, episodes=400_000)[0]
    truth = 20 * max(MEANS.values()) - exact.mean_regret
    for share in (0.1, 0.02, 0.0):
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for seed in range(logs):
            log = thompson_log(seed, plays, min_share=share)
            policies = ["ucb1-tuned"] if share == 0.1 else []
            horizon = 20 if policies else None
            result = mb.replay(log, policies, horizon=horizon, least=share if policies else None)
            for item in result.estimates:
                true = sum(MEANS[str(arm)] * part for arm, part in item.shares.items())
                key = item.target, item.method
                found.setdefault(key, []).append((item.value - true, item.standard_error))
            for policy in result.policies:
                assert policy.reward is not None
                assert policy.standard_error is not None
                replayed.append((policy.reward - truth, policy.standard_error))
        cells += [[f"{share:g}", *key, *summary(rows)] for key, rows in found.items()]
    print(f"{logs} logs of {plays} plays")
    print(text_table(titles, cells, align="lllr"))
    print("\nucb1-tuned over 20 plays, replayed from logs with a minimum share of 0.1")
    print(text_table(["bias, errors", "stated", "true", "held"], [summary(replayed)], align="r"))


class _Absent(types.ModuleType):
    """Stands for a package that the estimators do not need."""

    __path__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return sys.modules.get(f"{self.__name__}.{name}") or type(name, (), {})


def pipeline_figures(path: Path) -> None:
    """What Open Bandit Pipeline's estimators say of a log, with the same model of rewards."""
    for name in ("", ".nn", ".nn.functional", ".optim", ".utils", ".utils.data"):
        sys.modules.setdefault(f"torch{name}", _Absent(f"torch{name}"))
    from obp.ope import (
        DoublyRobust,
        InverseProbabilityWeighting,
        SelfNormalizedInverseProbabilityWeighting,
    )

    log = thompson_log(5, 300, min_share=0.05)
    names = sorted(MEANS)
    arms = np.array([names.index(arm) for arm, _, _ in log])
    rewards = np.array([reward for _, reward, _ in log])
    model = np.zeros((len(log), len(names)))
    for place in range(len(log)):
        for arm in range(len(names)):
            before = rewards[:place][arms[:place] == arm]
            before = before if len(before) else rewards[:place]
            model[place, arm] = before.mean() if len(before) else 0.0
    figures = {}
    targets = {"always b": [0.0, 1.0, 0.0], "all arms alike": [1 / 3] * 3, "mix": [0.2, 0.5, 0.3]}
    estimators = {
        "inverse propensity": InverseProbabilityWeighting(),
        "self-normalised": SelfNormalizedInverseProbabilityWeighting(),
        "doubly robust": DoublyRobust(),
    }
    for target, shares in targets.items():
        known = {
            "reward": rewards,
            "action": arms,
            "pscore": np.array([chance for _, _, chance in log]),
            "position": np.zeros(len(log), dtype=int),
            "action_dist": np.tile(np.array(shares)[None, :, None], (len(log), 1, 1)),
            "estimated_rewards_by_reg_model": model[:, :, None],
        }
        figures[target] = {
            name: float(item.estimate_policy_value(**known)) for name, item in estimators.items()
        }
    path.write_text(json.dumps({"log": log, "shares": targets, "figures": figures}) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether off-policy estimates are right.")
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--plays", type=int, default=1000)
    parser.add_argument("--obp", type=Path)
    options = parser.parse_args()
    if options.obp:
        pipeline_figures(options.obp)
    else:
        campaign(options.logs, options.plays)


if __name__ == "__main__":
    main()
