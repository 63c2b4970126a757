"""How fast a policy starts and plays, beside river and MABWiser, in one run.

    python benchmarks/play.py --json benchmarks/play.json

A start is a new process that imports, makes a player of ten arms and selects one, less an empty
process. A step is one selection and one update, after 200 plays of ten arms; all figures are the
best of several repetitions, by the clock on the wall.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mabwiser.mab as mabwiser
from river import bandit, proba

import metabandit as mb
from metabandit.showing import text_table

ARMS = 10
BEFORE = 200
HORIZON = 100_000

STARTS = {
    "metabandit": "import metabandit as mb; mb.load({policy!r}).player(arms=10).select()",
    "river": "from river import bandit; bandit.UCB(delta=1, seed=1).pull(range(10))",
    "MABWiser": (
        "from mabwiser.mab import MAB, LearningPolicy; m = MAB(list(range(10)), LearningPolicy.UCB1());"
        "m.fit(list(range(10)), [0] * 10); m.predict()"
    ),
}


def start_seconds(program: str) -> float:
    # As after a usual installation: modules are compiled.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    best = float("inf")
    for _ in range(10):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True, env=environment)
        best = min(best, time.perf_counter() - began)
    return best


def microseconds(call: Callable[[], Any], *, number: int = 500) -> float:
    return 1e6 * min(timeit.repeat(call, number=number, repeat=9)) / number


def reward(place: int) -> int:
    return int(place % 3 == 0)


def our_steps(policy: mb.Policy, **arguments: Any) -> tuple[float, float]:
    player = policy.player(ARMS, seed=1, horizon=HORIZON, **arguments)
    for place in range(BEFORE):
        player.update(player.select(), reward(place))
    return microseconds(player.select), microseconds(lambda: player.update(3, 1))


def river_steps(policy: bandit.base.Policy) -> tuple[float, float]:
    arms = list(range(ARMS))
    for place in range(BEFORE):
        policy.update(policy.pull(arms), reward(place))
    return microseconds(lambda: policy.pull(arms)), microseconds(lambda: policy.update(3, 1))


def mabwiser_steps(policy: Any) -> tuple[float, float]:
    model = mabwiser.MAB(list(range(ARMS)), policy, seed=1)
    model.fit(list(range(ARMS)), [0] * ARMS)
    for place in range(BEFORE):
        model.partial_fit([model.predict()], [reward(place)])
    select = microseconds(model.predict, number=100)
    return select, microseconds(lambda: model.partial_fit([3], [1]), number=100)


def all_steps(learned: dict[str, mb.Policy], folder: Path) -> dict[str, tuple[float, float]]:
    ours = ["ucb1", "ucb1-tuned", "ucb2", "eps_n-greedy", "kl-ucb", "thompson", "bayes-ucb"]
    steps = {f"metabandit {name}": our_steps(policy) for name, policy in learned.items()}
    steps |= {f"metabandit {name}": our_steps(mb.policy(name)) for name in ours}
    steps["metabandit ucb1, with a journal"] = our_steps(
        mb.policy("ucb1"), journal=folder / "plays.jsonl"
    )
    steps["river UCB"] = river_steps(bandit.UCB(delta=1, seed=1))
    steps["river ThompsonSampling"] = river_steps(
        bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=1)
    )
    steps["MABWiser UCB1"] = mabwiser_steps(mabwiser.LearningPolicy.UCB1())
    steps["MABWiser ThompsonSampling"] = mabwiser_steps(mabwiser.LearningPolicy.ThompsonSampling())
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast a policy starts and plays.")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        learned: dict[str, mb.Policy] = {}
        for space in ("power-1", "power-2", "r + a/(n + b)"):
            path = folder / f"{len(learned)}.json"
            prior = mb.Bernoulli(arms=2)
            mb.learn(space, prior, 100, generations=2, measured=False, out=path)
            learned[f"learned {space}"] = mb.load(path)
        empty = start_seconds("pass")
        starts = {
            name: start_seconds(program.format(policy=str(folder / "0.json"))) - empty
            for name, program in STARTS.items()
        }
        steps = all_steps(learned, folder)
    print(f"An empty process takes {empty:.3f} s; to start takes, besides:\n")
    cells = [[name, f"{seconds:.3f}"] for name, seconds in starts.items()]
    print(text_table(["start", "s"], cells, align="lr"))
    cells = [[name, f"{a:.1f}", f"{b:.1f}"] for name, (a, b) in steps.items()]
    print("\n" + text_table(["ten arms", "select µs", "update µs"], cells, align="lr"))
    judged = [["start of metabandit, s", f"{starts['metabandit']:.3f}", "< 0.2"]]
    for name in ("learned power-1", "learned power-2", "ucb1"):
        slower = max(steps[f"metabandit {name}"])
        judged.append([f"step of {name}, µs", f"{slower:.1f}", "< 20"])
    print("\n" + text_table(["target", "measured", "wanted"], judged, align="lr"))
    if options.json:
        packages = ("numpy", "river", "mabwiser")
        figures = {
            "versions": {"python": platform.python_version()}
            | {package: version(package) for package in packages},
            "start_seconds": starts,
            "microseconds": {
                name: {"select": select, "update": update}
                for name, (select, update) in steps.items()
            },
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
