"""How fast exact evaluation and the optimum are, beside what memory allows, in one run.

    python benchmarks/exact.py --json benchmarks/exact.json [--quick] [--growth]

Times are by the clock on the wall, the best of several repetitions; calls are whole ones, as a user
makes them, with everything that is set up. States are all states of the counts, (T + 4 over 4) of
them: that a policy cannot reach most, and that exchanging equal arms changes nothing, is part of
what makes the recursion fast. The limit is a triple loop over the same blocks, for every step, that
only adds three arrays. --quick leaves out T = 1000. --growth measures nothing but the optimum at
T = 500, 1000 and 2000, with the seconds of all processors, which other work on the machine changes less.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

import metabandit as mb
from metabandit.bayes.induction import states
from metabandit.kernels.counts import layout
from metabandit.showing import text_table

UNEVEN = mb.Bernoulli(alpha=[3, 1], beta=[2, 1])


@numba.njit(error_model="numpy")
def _add_three(a, b, c):
    for i in range(a.shape[0]):
        a[i] += b[i] + c[i]


@numba.njit(error_model="numpy")
def add_three(horizon, offset, stride, a, b, c):
    """For every step m: over the blocks n1 and their rows s1, a row of s2 = 0, ..., m - n1 at a time."""
    for m in range(horizon):
        for n1 in range(m + 1):
            for s1 in range(n1 + 1):
                begin = offset[n1] + s1 * stride[n1]
                end = begin + m - n1 + 1
                _add_three(a[begin:end], b[begin:end], c[begin:end])


def limit(horizon: int) -> Callable[[], None]:
    offset, stride = layout(horizon, mirror=False)
    arrays = [np.ones(offset[-1]) for _ in range(3)]
    return lambda: add_three(horizon, offset, stride, *arrays)


def optimum(prior: mb.Prior, horizon: int, threads: int = 1) -> Callable[[], float]:
    return lambda: mb.optimal(prior, horizon, threads=threads).regret


def policy(text: str, prior: mb.Prior, horizon: int, threads: int = 1) -> Callable[[], float]:
    options: Any = {"method": "exact", "floor": False, "checkpoints": [horizon]}
    return lambda: mb.evaluate(text, prior, horizon, threads=threads, **options)[0].mean_regret


def alone(code: str) -> dict[str, float]:
    """Seconds, those of processors, result and peak memory of an expression in a process of its own."""
    program = (
        "import json, resource, time, metabandit as mb\n"
        f"from benchmarks.exact import optimum, policy\n"
        f"call = {code}\n"
        "begun, used = time.perf_counter(), time.process_time()\n"
        "value = call()\n"
        "seconds, used = time.perf_counter() - begun, time.process_time() - used\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "print(json.dumps({'regret': value, 'seconds': seconds, 'processor_seconds': used, "
        "'peak_bytes': peak}))\n"
    )
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=root, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def growth() -> None:
    """How the optimum of two uniform arms grows with the horizon, on two threads."""
    rows = []
    alone("optimum(mb.Bernoulli(), 300, threads=2)")  # compile, or load
    for horizon in (500, 1000, 2000):
        found = alone(f"optimum(mb.Bernoulli(), {horizon}, threads=2)")
        rows.append(
            [
                str(horizon),
                f"{found['regret']:.10f}",
                f"{found['seconds']:.1f}",
                f"{found['processor_seconds']:.1f}",
                f"{found['peak_bytes'] / 1e9:.2f}",
                f"{states(2, horizon) / found['processor_seconds'] / 1e9:.2f}",
            ]
        )
    heads = ["T", "regret", "s", "processor s", "GB", "G states/processor s"]
    print(text_table(heads, rows, align="r"))


def main() -> None:
    parser = argparse.ArgumentParser(description="The speed of exact evaluation.")
    parser.add_argument("--json", metavar="PATH", help="write all figures to this file")
    parser.add_argument("--quick", action="store_true", help="leave out T = 1000")
    parser.add_argument("--growth", action="store_true", help="the optimum up to T = 2000, no more")
    options = parser.parse_args()
    if options.growth:
        growth()
        return

    even = mb.Bernoulli()
    rows: list[dict[str, Any]] = []
    for horizon, repetitions in ((100, 60), (300, 6)):
        calls = {
            "adding three arrays": limit(horizon),
            "optimum": optimum(even, horizon),
            "optimum, arms unlike": optimum(UNEVEN, horizon),
            "policy r + 3/(n + 2)": policy("r + 3/(n + 2)", even, horizon),
            "policy r + 3/(n + 2), arms unlike": policy("r + 3/(n + 2)", UNEVEN, horizon),
            "policy ucb1 (with t)": policy("ucb1", even, horizon),
            "policy ucb1 (with t), arms unlike": policy("ucb1", UNEVEN, horizon),
            "policy kl-ucb (with t)": policy("kl-ucb", even, horizon),
            "policy eps_n-greedy": policy("eps_n-greedy", even, horizon),
            "policy thompson": policy("thompson", even, horizon),
        }
        best = dict.fromkeys(calls, float("inf"))
        for call in calls.values():
            call()  # compile, or load
        for _ in range(repetitions):
            for name, call in calls.items():
                begun = time.perf_counter()
                call()
                best[name] = min(best[name], time.perf_counter() - begun)
        rows += [
            {
                "what": name,
                "T": horizon,
                "ms": 1e3 * seconds,
                "M states/s": states(2, horizon) / seconds / 1e6,
                "of the limit": best["adding three arrays"] / seconds,
            }
            for name, seconds in best.items()
        ]
    by = {(row["what"], row["T"]): row for row in rows}
    targets = [
        ("optimum, T=100, ms", by["optimum", 100]["ms"], 15.0),
        ("policy without t, T=100, ms", by["policy r + 3/(n + 2)", 100]["ms"], 20.0),
        ("policy with t, T=100, ms", by["policy ucb1 (with t)", 100]["ms"], 30.0),
    ]
    long = {}
    if not options.quick:
        long = {
            "optimum": alone("optimum(mb.Bernoulli(), 1000, threads=2)"),
            "policy r + 3/(n + 2)": alone(
                "policy('r + 3/(n + 2)', mb.Bernoulli(), 1000, threads=2)"
            ),
            "policy ucb1": alone("policy('ucb1', mb.Bernoulli(), 1000, threads=2)"),
        }
        assert abs(long["optimum"]["regret"] - 3.728631) < 1e-5
        for name, found in long.items():
            most = 100.0 if name == "optimum" else 150.0
            targets.append((f"{name}, T=1000, s", found["seconds"], most))
            targets.append((f"{name}, T=1000, GB", found["peak_bytes"] / 1e9, 2.5))
    judged = [
        {"target": name, "measured": value, "wanted": f"<= {most:g}", "reached": value <= most}
        for name, value, most in targets
    ]
    ratio = by["policy r + 3/(n + 2)", 100]["of the limit"]
    judged.append(
        {
            "target": "policy against adding three arrays, T=100",
            "measured": ratio,
            "wanted": ">= 0.3",
            "reached": ratio >= 0.3,
        }
    )

    cells = [
        [f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row.values()]
        for row in rows
    ]
    print(text_table([*rows[0]], cells, align="lr"))
    if long:
        cells = [
            [name, f"{f['regret']:.6f}", f"{f['seconds']:.1f}", f"{f['peak_bytes'] / 1e9:.2f}"]
            for name, f in long.items()
        ]
        heads = ["T = 1000, two threads", "regret", "s", "GB"]
        print("\n" + text_table(heads, cells, align="lr"))
    cells = [
        [row["target"], f"{row['measured']:.3g}", row["wanted"], "yes" if row["reached"] else "NO"]
        for row in judged
    ]
    print("\n" + text_table([*judged[0]], cells, align="lr"))
    if options.json:
        figures = {
            "versions": {"python": platform.python_version(), "numba": numba.__version__},
            "cores": os.cpu_count(),
            "short": rows,
            "long": long,
            "targets": judged,
        }
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
