"""This version beside another one, in turn on one machine: what a change made faster or slower.

    python benchmarks/versions.py --before PATH [--json FILE] [--plot FILE] [--rows ucb1,exact]

PATH is a checkout of the other version with a virtual environment in `.venv`. Every row is measured in
processes of their own, old and new in turn, three times each; a figure is the median. Seconds are
processor time of one thread, which does not count what other programs do meanwhile, except in rows by
the clock. Both versions are warm: kernels are compiled, and programs that play long have code of
their own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TIMES = 3
# Seconds that a program plays before it is measured: it then has code of its own.
WARM = 9.0

# What a process runs. It uses what both versions have, and prints seconds.
CHILD = """
import inspect, json, sys, time
import metabandit as mb

row, warm = json.loads(sys.argv[1]), float(sys.argv[2])
plain = {"floor": False} if "floor" in inspect.signature(mb.evaluate).parameters else {}
clock = time.perf_counter if row["by_clock"] else time.process_time

def once(amount):
    begun = clock()
    if row["kind"] == "simulate":
        mb.evaluate(row["policy"], PRIOR, row["horizon"], method="monte-carlo", episodes=amount,
                    threads=row["threads"], seed=1, **plain)
    elif row["kind"] == "exact":
        for _ in range(amount):
            mb.evaluate(row["policy"], PRIOR, row["horizon"], method="exact", threads=1, **plain)
    elif row["kind"] == "optimum":
        for _ in range(amount):
            mb.optimal(PRIOR, row["horizon"], threads=1)
    else:
        player = mb.policy(row["policy"], start="each-once").player(
            arms=["a", "b"], horizon=10**6, seed=1)
        for turn in range(amount):
            player.update(player.select(), turn % 3 == 0)
    return clock() - begun

PRIOR = getattr(mb, row["family"])(arms=row["arms"])
amount, spent = row["amount"], once(max(1, row["amount"] // 64))
while (seconds := once(amount)) < 0.3:
    spent, amount = spent + seconds, 2 * amount
while row["kind"] == "simulate" and spent < warm:
    spent += once(amount)
print(min(once(amount) for _ in range(3)) / amount)
"""


@dataclass(frozen=True)
class Row:
    """Something to measure: `amount` episodes, evaluations or plays at first, more if they are quick."""

    name: str
    kind: str
    policy: str = ""
    arms: int = 2
    horizon: int = 100
    family: str = "Bernoulli"
    amount: int = 1
    threads: int = 1
    by_clock: bool = False


def _simulated(
    policy: str, arms: int, horizon: int, family: str = "Bernoulli", threads: int = 1
) -> Row:
    name = f"{policy}, {arms} {family} arms, T={horizon:,}"
    if threads > 1:
        name += f", {threads} threads by the clock"
    amount = max(64, 2_000_000 // (arms * horizon))
    return Row(name, "simulate", policy, arms, horizon, family, amount, threads, threads > 1)


FORMULA = "r + 3/(n + 2)"
ROWS = (
    *(_simulated("ucb1", arms, 100) for arms in (2, 5, 10, 50)),
    *(_simulated("ucb1", arms, 1000) for arms in (2, 10)),
    _simulated("ucb1", 2, 10_000),
    _simulated("ucb1", 2, 100, threads=2),
    *(_simulated(FORMULA, arms, 100) for arms in (2, 10)),
    *(_simulated("kl-ucb", arms, 100) for arms in (2, 10)),
    *(_simulated("thompson", arms, 100) for arms in (2, 10)),
    *(_simulated("bayes-ucb", arms, 100) for arms in (2, 10)),
    *(_simulated("ucb1", arms, 100, family="Gaussian") for arms in (2, 10)),
    *(
        Row(f"{p}, exact, T={t}", "exact", p, 2, t)
        for p in ("ucb1", FORMULA)
        for t in (20, 100, 300)
    ),
    Row("thompson, exact, T=100", "exact", "thompson"),
    *(Row(f"optimum, T={t}", "optimum", "", 2, t) for t in (100, 300)),
    *(Row(f"{p}, live: select and update", "play", p, amount=500) for p in ("ucb1", "thompson")),
)


def measure(checkout: Path, row: Row, warm: float) -> float:
    """Seconds per item of a row: an episode, an evaluation, or a play."""
    done = subprocess.run(
        [checkout / ".venv" / "bin" / "python", "-c", CHILD, json.dumps(vars(row)), str(warm)],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{row.name} in {checkout}:\n{done.stderr}")
    return float(done.stdout)


def in_turn(before: Path, row: Row) -> dict[str, float]:
    """The medians of both versions for one row."""
    found: dict[Path, list[float]] = {before: [], ROOT: []}
    for turn in range(TIMES):
        for checkout, seconds in found.items():
            seconds.append(measure(checkout, row, WARM if turn == 0 else 0.0))
    old, new = map(statistics.median, found.values())
    return {"before": old, "now": new, "times as fast": old / new}


def draw(results: dict[str, dict[str, float]], path: Path) -> None:
    """How many times as fast, one bar per row."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    names = list(results)[::-1]
    figure, axes = plt.subplots(figsize=(8, 0.28 * len(names) + 1), layout="constrained")
    axes.barh(names, [results[name]["times as fast"] for name in names], color="#0072B2")
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("times as fast as the version before")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", type=Path, required=True, help="a checkout with .venv")
    parser.add_argument("--rows", help="parts of names with commas between; all by default")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    before = options.before.resolve()
    if not (before / ".venv" / "bin" / "python").exists():
        raise SystemExit(f"{before} has no .venv/bin/python; make one there with `make .venv/run`")
    wanted = options.rows.split(",") if options.rows else [""]
    results = {}
    print(f"{'':48s} {'before':>12s} {'now':>12s}  times as fast", flush=True)
    for row in ROWS:
        if any(part in row.name for part in wanted):
            found = results[row.name] = in_turn(before, row)
            old, new, ratio = found.values()
            print(
                f"{row.name:48s} {1e6 * old:9.3f} us {1e6 * new:9.3f} us  {ratio:.2f}", flush=True
            )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    if options.plot:
        draw(results, options.plot)


if __name__ == "__main__":
    sys.exit(main())
