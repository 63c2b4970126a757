"""How fast metabandit is beside other ways to simulate the same policies, in one run on one thread.

    python benchmarks/speed.py --json benchmarks/speed.json [--plot speed.svg] [--before PATH] [--quick]

Every contender does the whole job: it draws the problems, plays them and has their regret. A
figure is the best of several repetitions, and contenders take turns, so that a slow moment of the
machine slows them all. Seconds are the thread's own processor time, which does not count what other
programs do meanwhile; only two threads against one is by the clock on the wall, as the median over
pairs of runs, beside the same for vector loops that share nothing.

Programs have code of their own, as in any run of some seconds, and as the kernels by hand have.

With --before, a checkout of another version with a virtual environment in `.venv` plays the same
policies in a process of its own, in the same turns. (versions.py compares more of two versions.)
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event
from river import bandit

import metabandit as mb
import peers
from metabandit.kernels import fused
from metabandit.kernels.simulator import simulate
from metabandit.showing import text_table

HORIZON = 100
SEED = 1
OURS, BEFORE, PEER, LIMIT = "metabandit", "version before", "peer", "limit"
COLOURS = {OURS: "#0072B2", BEFORE: "#56B4E9", PEER: "#E69F00", LIMIT: "#999999"}


def numpy_ucb1(episodes: int, horizon: int, seed: int, arms: int = 2) -> np.ndarray:
    """Vectorised NumPy for any number of arms, 10,000 episodes at once."""
    rng = np.random.default_rng(seed)
    parts = []
    for first in range(0, episodes, 10_000):
        lanes = np.arange(min(10_000, episodes - first))
        # Arms first: a maximum over rows is several times faster than one along them.
        means = rng.random((arms, lanes.size))
        plays = np.ones_like(means)
        sums = (rng.random(means.shape) < means).astype(float)
        for t in range(arms, horizon):
            index = sums / plays + np.sqrt(2.0 * np.log(t) / plays)
            tied = index == index.max(axis=0)
            arm = (tied * rng.random(tied.shape)).argmax(axis=0)
            plays[arm, lanes] += 1.0
            sums[arm, lanes] += rng.random(lanes.size) < means[arm, lanes]
        parts.append(((means.max(axis=0) - means) * plays).sum(axis=0))
    return np.concatenate(parts)


def numpy_ucb1_two(episodes: int, horizon: int, seed: int) -> np.ndarray:
    """The same for two arms alone, by masks: as fast as NumPy gets."""
    rng = np.random.default_rng(seed)
    parts = []
    for first in range(0, episodes, 10_000):
        means = rng.random((2, min(10_000, episodes - first)))
        plays = np.ones_like(means)
        sums = (rng.random(means.shape) < means).astype(float)
        for t in range(2, horizon):
            x, y = sums / plays + np.sqrt(2.0 * np.log(t) / plays)
            second = np.where(x == y, rng.random(x.size) < 0.5, y > x)
            reward = rng.random(x.size) < np.where(second, means[1], means[0])
            plays[1] += second
            plays[0] += ~second
            sums[1] += reward & second
            sums[0] += reward & ~second
        parts.append(((means.max(axis=0) - means) * plays).sum(axis=0))
    return np.concatenate(parts)


def river_ucb1(episodes: int, horizon: int, seed: int) -> np.ndarray:
    """river's UCB with delta = 1, which is UCB1: one pull and one update a step."""
    rng = random.Random(seed)
    regret = np.empty(episodes)
    for episode in range(episodes):
        means = [rng.random(), rng.random()]
        plays = [0, 0]
        policy = bandit.UCB(delta=1, seed=rng.randrange(2**31))
        for _ in range(horizon):
            arm = policy.pull([0, 1])
            policy.update(arm, 1.0 if rng.random() < means[arm] else 0.0)
            plays[arm] += 1
        regret[episode] = sum(n * (max(means) - mean) for n, mean in zip(plays, means, strict=True))
    return regret


@dataclass
class Contender:
    """One bar of the chart. `same_as` names the contender whose mean regret it must have."""

    name: str
    group: str
    episodes: int
    play: Callable[[int], tuple[float, float]]  # episodes -> mean regret, its standard error
    same_as: str | None = None
    clock: Callable[[], float] = time.thread_time
    seconds: float = math.inf
    regret: tuple[float, float] = (math.nan, math.nan)

    @property
    def speed(self) -> float:
        """Steps a second."""
        return self.episodes * HORIZON / self.seconds

    def figures(self) -> dict[str, Any]:
        kept = {key: getattr(self, key) for key in ("name", "group", "episodes", "seconds")}
        regret = {"mean_regret": self.regret[0], "standard_error": self.regret[1]}
        return {**kept, "steps_per_second": self.speed, **regret}

    def take_turn(self) -> None:
        start = self.clock()
        self.regret = self.play(self.episodes)
        self.seconds = min(self.seconds, self.clock() - start)


def evaluate(
    policy: str,
    episodes: int,
    arms: int = 2,
    horizon: int = HORIZON,
    threads: int = 1,
    batch: int = 1,
):
    """metabandit's answer, with nothing but the regret at the horizon asked for."""
    size: Any = {"episodes": episodes, "threads": threads, "checkpoints": [horizon], "floor": False}
    size["feedback"] = mb.Feedback(batch=batch)
    result = mb.evaluate(policy, mb.Bernoulli(arms=arms), horizon, seed=SEED, **size)
    return result.evaluations[0].mean_regret, result.evaluations[0].standard_error


def ours(policy: str, episodes: int, arms: int = 2, batch: int = 1) -> Contender:
    name = f"metabandit: {policy}" + (f", K={arms}" if arms > 2 else "")
    name += f", batches of {batch}" if batch > 1 else ""
    return Contender(name, OURS, episodes, lambda count: evaluate(policy, count, arms, batch=batch))


# What the version before runs: it answers each line with the seconds of processor time and the regret.
CHILD = """
import inspect, json, sys, time
import metabandit as mb

plain = {"floor": False} if "floor" in inspect.signature(mb.evaluate).parameters else {}
for line in sys.stdin:
    policy, arms, horizon, episodes, seed = json.loads(line)
    begun = time.process_time()
    found = mb.evaluate(policy, mb.Bernoulli(arms=arms), horizon, method="monte-carlo", seed=seed,
                        episodes=episodes, threads=1, checkpoints=[horizon], **plain)[0]
    seconds = time.process_time() - begun
    print(json.dumps([seconds, found.mean_regret, found.standard_error]), flush=True)
"""


class VersionBefore:
    """A process of another checkout; `seconds` is what it has spent on evaluations so far."""

    def __init__(self, checkout: Path) -> None:
        python = checkout.resolve() / ".venv" / "bin" / "python"
        if not python.exists():
            raise SystemExit(f"{python} is not there; make it with `make .venv/run` in {checkout}")
        self.process = subprocess.Popen(
            [python, "-c", CHILD], cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )  # fmt: skip
        self.seconds = 0.0

    def evaluate(self, policy: str, episodes: int, arms: int) -> tuple[float, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([policy, arms, HORIZON, episodes, SEED]) + "\n")
        self.process.stdin.flush()
        if not (line := self.process.stdout.readline()):
            raise SystemExit(f"the version before ended with exit code {self.process.wait()}")
        seconds, mean, error = json.loads(line)
        self.seconds += seconds
        return mean, error

    def contender(self, policy: str, episodes: int, arms: int = 2) -> Contender:
        mine = ours(policy, episodes, arms).name
        return Contender(
            mine.replace(OURS, BEFORE),
            BEFORE,
            episodes,
            lambda count: self.evaluate(policy, count, arms),
            same_as=mine,
            clock=lambda: self.seconds,
        )


def peer(name: str, episodes: int, simulator: Any, same_as: str | None, group: str = PEER):
    def play(count: int) -> tuple[float, float]:
        regret = simulator(count, HORIZON, SEED + 1)
        return float(regret.mean()), float(regret.std(ddof=1) / math.sqrt(count))

    return Contender(name, group, episodes, play, same_as)


# Policies, arms and episodes that this version and the one before play.
OURS_PLAYED = (
    ("ucb1", 2, 400_000),
    ("r + 3/(n + 2)", 2, 400_000),
    ("kl-ucb", 2, 40_000),
    ("thompson", 2, 40_000),
    ("ucb1", 10, 40_000),
    ("r + 3/(n + 2)", 10, 40_000),
    ("thompson", 10, 8_000),
    ("ucb2", 2, 20_000),
    ("bayes-ucb", 2, 10_000),
)


def contenders(quick: bool, before: Path | None) -> dict[str, Contender]:
    ucb1, kl, ten = "metabandit: ucb1", "metabandit: kl-ucb", "metabandit: ucb1, K=10"
    made = [
        *(ours(policy, episodes, arms) for policy, arms, episodes in OURS_PLAYED),
        ours("ucb1", 100_000, batch=10),
        ours("r + 3/(n + 2)", 100_000, batch=10),
        ours("ucb1", 20_000, arms=10, batch=10),
        peer("NumPy: UCB1", 20_000, numpy_ucb1, ucb1),
        peer("NumPy: UCB1, two arms only", 40_000, numpy_ucb1_two, ucb1),
        peer("NumPy: UCB1, K=10", 10_000, lambda *run: numpy_ucb1(*run, arms=10), ten),
        peer("numba, scalar: UCB1", 40_000, peers.scalar_ucb1, ucb1),
        peer("numba, scalar: KL-UCB", 2_000, peers.scalar_kl_ucb, kl),
        peer("river: UCB(delta=1)", 200, river_ucb1, ucb1),
        peer("by hand: UCB1", 400_000, peers.hand_ucb1, ucb1),
        peer("by hand: UCB1, rearranged", 400_000, peers.hand_ucb1_rearranged, ucb1),
        peer("draws only", 200_000, peers.draws_only, None, LIMIT),
    ]
    if before is not None:
        other = VersionBefore(before)
        made += [other.contender(policy, episodes, arms) for policy, arms, episodes in OURS_PLAYED]
    for contender in made:
        contender.play(100)  # compile
        if quick:
            contender.episodes = max(100, contender.episodes // 4)
    return {contender.name: contender for contender in made}


def check_regret(made: dict[str, Contender]) -> None:
    """Whoever claims to simulate the same policy must find the same regret."""
    for contender in made.values():
        if contender.same_as is not None:
            (mean, error), (other, other_error) = contender.regret, made[contender.same_as].regret
            limit = 3.0 * math.hypot(error, other_error)
            assert abs(mean - other) < limit, f"{contender.name}: {mean} instead of {other}"


def compilations_for_a_second_policy() -> int:
    """What numba compiles for two more expressions and two more classics, after the first policy."""
    evaluate("ucb1", 1000)
    signatures = len(simulate.signatures)
    with event.install_recorder("numba:run_pass") as recorder:
        for policy in ("r + 1/(n + 1/2)", "max(r, s) + sqrt(ln(t)/n)", "ucb1-tuned", "ucb2"):
            evaluate(policy, 1000)
    compiled = {(item.data["module"], item.data["qualname"]) for _, item in recorder.buffer}
    return max(len(compiled), len(simulate.signatures) - signatures)


def best_of(
    repetitions: int, runs: Sequence[Callable[[], Any]], clock: Callable[[], float]
) -> list[float]:
    """The shortest time of each, in turns."""
    best = [math.inf] * len(runs)
    for _ in range(repetitions):
        for position, run in enumerate(runs):
            start = clock()
            run()
            best[position] = min(best[position], clock() - start)
    return best


def gains(repetitions: int, pairs: Sequence[Sequence[Callable[[], Any]]]) -> list[float]:
    """How many times as fast the second of each pair is: the median over moments.

    The speed of a shared machine changes from moment to moment, so runs are compared with those just
    before and after, and not with the best of another moment.
    """
    ratios: list[list[float]] = [[] for _ in pairs]
    for _ in range(repetitions):
        for position, runs in enumerate(pairs):
            seconds = []
            for run in runs:
                start = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - start)
            ratios[position].append(seconds[0] / seconds[1])
    return [float(np.median(found)) for found in ratios]


@numba.njit(nogil=True, fastmath=True)
def _vector_loop(row: np.ndarray, rounds: int) -> None:
    for _ in range(rounds):
        for i in range(row.shape[0]):
            row[i] = np.sqrt(row[i] * row[i] + np.float32(1e-6))


def independent_loops(threads: int) -> None:
    """Vector code that shares nothing, not even memory: what the cores of the machine allow."""
    rows = [np.ones(2048, np.float32) for _ in range(2)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda row: _vector_loop(row, 50_000), rows))


def growth(repetitions: int, quick: bool) -> dict[str, list[dict[str, float]]]:
    """Seconds with the horizon, the arms and the episodes: linear growth is a constant column."""
    part = 4 if quick else 1
    settings = {
        "T": [(2, 10, 200_000), (2, 100, 100_000), (2, 1000, 20_480), (2, 10_000, 2048)],
        "K": [(K, 1000, 2048) for K in (2, 5, 10, 20, 50, 100)],
        "episodes": [(2, HORIZON, count) for count in (10_000, 100_000, 1_000_000)],
    }
    rows: dict[str, list[dict[str, float]]] = {}
    for what, sizes in settings.items():
        cases = [(K, T, count // part) for K, T, count in sizes]
        runs = [
            lambda K=K, T=T, count=count: evaluate("ucb1", count, K, T) for K, T, count in cases
        ]
        times = best_of(repetitions, runs, time.thread_time)
        rows[what] = [
            {
                **{"K": K, "T": T, "episodes": count, "seconds": seconds},
                "ns/step": 1e9 * seconds / (count * T),
                "ns/(step*arm)": 1e9 * seconds / (count * T * K),
            }
            for (K, T, count), seconds in zip(cases, times, strict=True)
        ]
    return rows


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n{title}\n{text_table(heads, rows, align='lr')}")


def plot(made: dict[str, Contender], path: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch

    order = sorted(made.values(), key=lambda contender: contender.speed)
    figure, axes = plt.subplots(figsize=(9, 0.28 * len(made) + 1), layout="constrained")
    speeds = [contender.speed for contender in order]
    colours = [COLOURS[contender.group] for contender in order]
    bars = axes.barh([contender.name for contender in order], speeds, color=colours)
    labels = [
        f"{speed / 1e6:,.0f} M" if speed > 1e8 else f"{speed / 1e6:.3g} M" for speed in speeds
    ]
    axes.bar_label(bars, labels, padding=4)
    axes.set_xscale("log")
    axes.set_xlim(min(speeds) / 3, max(speeds) * 6)
    axes.set_xlabel(f"steps a second, one thread (two Bernoulli arms unless said, T = {HORIZON})")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        handles=[Patch(color=c, label=group) for group, c in COLOURS.items()], loc="center right"
    )
    figure.savefig(path)


# How many times as fast as the version before batches and delays, at least.
GAINS = {"ucb1, K=10": 2.0, "r + 3/(n + 2), K=10": 2.0, "thompson": 2.0, "bayes-ucb": 5.0}


def judge(made: dict[str, Contender], threads: float, compilations: int) -> list[dict[str, Any]]:
    """The targets, and whether they are reached."""

    def ratio(name: str, other: str) -> float:
        return made[f"metabandit: {name}"].speed / made[other].speed

    targets = [
        ("UCB1 against vectorised NumPy", ratio("ucb1", "NumPy: UCB1"), 15.0),
        ("UCB1 against river", ratio("ucb1", "river: UCB(delta=1)"), 800.0),
        ("UCB1 against a kernel by hand", ratio("ucb1", "by hand: UCB1"), 0.7),
        ("KL-UCB against scalar bisection", ratio("kl-ucb", "numba, scalar: KL-UCB"), 15.0),
        ("two threads against one", threads, 1.7),
    ]
    targets += [
        (f"{name} against the version before", ratio(name, f"{BEFORE}: {name}"), least)
        for name, least in GAINS.items()
        if f"{BEFORE}: {name}" in made
    ]
    rows = [
        {"target": target, "measured": value, "wanted": f">= {least:g}", "reached": value >= least}
        for target, value, least in targets
    ]
    none = {"target": "compilations for a second policy", "measured": compilations, "wanted": "0"}
    return [*rows, {**none, "reached": compilations == 0}]


def main() -> None:
    parser = argparse.ArgumentParser(description="The speed of metabandit beside its peers.")
    parser.add_argument("--json", metavar="PATH", help="write all figures to this file")
    parser.add_argument("--plot", metavar="PATH", help="draw the contenders' speeds, as SVG")
    parser.add_argument("--before", metavar="PATH", type=Path, help="a checkout with .venv")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer repetitions")
    options = parser.parse_args()
    repetitions = 4 if options.quick else 40

    compilations = compilations_for_a_second_policy()
    # A program that plays for seconds gets code of its own: here at once.
    fused._PATIENCE = 0.0
    made = contenders(options.quick, options.before)
    for _ in range(repetitions):
        for contender in made.values():
            contender.take_turn()
    check_regret(made)
    base = made["metabandit: ucb1"].speed
    cells = [
        [
            c.name,
            f"{c.speed / 1e6:.2f} M",
            f"{base / c.speed:.2f}",
            *(f"{x:.3f}" for x in c.regret),
        ]
        for c in made.values()
    ]
    heads = ["contender", "steps/s", "ucb1 / this", "mean regret", "+-"]
    print_table(f"One thread, two Bernoulli arms unless said, T = {HORIZON}", heads, cells)

    count = 1_000_000 if options.quick else 4_000_000
    runs = [lambda n=n: evaluate("ucb1", count, threads=n) for n in (1, 2)]
    loops = [lambda n=n: independent_loops(n) for n in (1, 2)]
    gain, free_gain = gains(repetitions, [runs, loops])
    print(
        f"\ntwo threads: {gain:.2f} times the speed of one ({count:,} episodes); "
        f"independent vector loops: {free_gain:.2f}"
    )
    print(f"compilations for a second policy: {compilations}")

    grown = growth(max(2, repetitions // 4), options.quick)
    for what, rows in grown.items():
        cells = [
            [f"{cell:.3f}" if isinstance(cell, float) else f"{cell:,}" for cell in row.values()]
            for row in rows
        ]
        print_table(f"UCB1, time with {what}", [*rows[0]], cells)

    judged = judge(made, gain, compilations)
    cells = [
        [row["target"], f"{row['measured']:,.2f}", row["wanted"], "yes" if row["reached"] else "NO"]
        for row in judged
    ]
    print_table("Targets", [*judged[0]], cells)

    if options.json:
        modules = {"numpy": np, "numba": numba, "metabandit": mb}
        versions = {name: module.__version__ for name, module in modules.items()}
        figures = {
            "versions": {"python": platform.python_version(), **versions},
            "cores": os.cpu_count(),
            "quick": options.quick,
            "horizon": HORIZON,
            "contenders": [contender.figures() for contender in made.values()],
            "threads": {
                **{"episodes": count, "ratio": gain},
                "ratio_of_independent_loops": free_gain,
            },
            "compilations_for_a_second_policy": compilations,
            "growth": grown,
            "targets": judged,
        }
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n")
    if options.plot:
        plot(made, options.plot)


if __name__ == "__main__":
    main()
