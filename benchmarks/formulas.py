"""What the search for formulas reaches, and how long it takes: each row is one command.

    python benchmarks/formulas.py [--rows classes-7,exact-10] [--markdown docs/formulas-results.md]

The commands are run as a person runs them, one after the other. Times are those of the whole command,
without compilation (small first runs compile). Classes are kept in a folder of this benchmark's own.
A finished row is kept in the JSON file and not run again unless it is named.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import metabandit as mb
from rows import run_rows

HERE = Path(__file__).parent
CACHE = HERE.parent / "build" / "formulas"
TWO = mb.Bernoulli(arms=2)
# The floor of policies that play each arm once, for 100 plays.
EACH_ONCE_FLOOR = 1.7836


def run(options: str, folder: Path | None = None) -> tuple[dict[str, Any], float, float]:
    """Run `metabandit`; return its JSON output, its seconds, and the memory it took in GB."""
    command = [sys.executable, "-m", "metabandit", *shlex.split(options), "--json"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(CACHE)}
    with tempfile.TemporaryFile("w+") as out:
        begun = time.monotonic()
        child = subprocess.Popen(command, stdout=out, cwd=folder, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        taken = time.monotonic() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"metabandit {options} ended with {child.returncode}")
        out.seek(0)
        return json.load(out), taken, usage.ru_maxrss / 1e6


def as_row(
    options: str, reached: str, wanted: str, taken: float, memory: float, **more: Any
) -> dict[str, Any]:
    """What the table shows of one row; `more` says whether it holds, and its limits."""
    within = more.pop("within", None)
    most = more.pop("most", None)
    fits = (within is None or taken <= within) and (most is None or memory <= most)
    return {
        "command": f"metabandit {options}",
        "reached": reached,
        "wanted": wanted,
        "seconds": round(taken, 1),
        "within": within,
        "memory": round(memory, 2),
        **more,
        "holds": more["holds"] and fits,
    }


def classes(length: int, within: float, most: float) -> dict[str, Any]:
    for path in (CACHE / "metabandit").glob(f"formulas-{length}-*.npz"):
        path.unlink()
    options = f"formulas --length {length}"
    found, taken, memory = run(options)
    totals = found["totals"]
    reached = (
        f"{totals['formulas']:,} formulas, {totals['invalid']:,} invalid, {totals['distinct']:,} "
        f"distinct, {totals['classes']:,} classes, {memory:.2g} GB"
    )
    counts = [row["formulas"] for row in found["counts"]]
    holds = counts == mb.Grammar().counts(length)
    wanted = f"at most {most:g} GB"
    if length == 7:
        holds = holds and abs(totals["invalid"] / 9.5e6 - 1.0) <= 0.01
        holds = holds and totals["formulas"] == 33_553_773
        holds = holds and 85_000 <= totals["classes"] <= 100_000
        wanted = f"33,553,773; 9.5 million; 85,000 to 100,000 classes; {wanted}"
    return as_row(options, reached, wanted, taken, memory, within=within, most=most, holds=holds)


def search(
    options: str, wanted: str, check: Callable[[dict[str, Any], float], bool], within: float | None
) -> dict[str, Any]:
    options = f"search {options}"
    found, taken, memory = run(options)
    best = found["ranking"][0]
    error = "exact" if best["method"] == "exact" else f"± {1.96 * best['standard_error']:.2g}"
    return as_row(
        options,
        f"`{best['formula']}` {best['regret']:.6g} ({error})",
        wanted,
        taken,
        memory,
        within=within,
        regret=best["regret"],
        formula=best["formula"],
        holds=check(best, best["regret"]),
    )


def exact_best(start: str) -> float:
    """The best regret of all classes up to length 7 at T = 100, from the row that found it."""
    return float(RESULTS[f"exact-100-{start}"]["regret"])


def near(start: str, options: str, share: float, within: float) -> dict[str, Any]:
    return search(
        f"--horizon 100 --start {start} {options}",
        f"within {100 * share:g} % of the exact best",
        lambda best, _: _exactly(best["formula"], start) <= exact_best(start) * (1.0 + share),
        within,
    )


def _exactly(formula: str, start: str) -> float:
    made = mb.policy(formula, start=start)
    return mb.evaluate([made], TWO, 100, method="exact")[0].mean_regret


def no_worse(strategy: str, within: float) -> dict[str, Any]:
    """At T = 1000, against the paper's formula on a million fresh episodes, the same for both."""

    def check(best: dict[str, Any], _: float) -> bool:
        if best["formula"] == "r + 3/(n + 2)":
            return True
        test = mb.evaluate([best["formula"], "r + 3/(n + 2)"], TWO, 1000, method="monte-carlo",
                           episodes=1_000_000, seed=4321)  # fmt: skip
        return test.difference(0, 1).interval[0] <= 0.0

    return search(
        f"--horizon 1000 --start each-once --strategy {strategy}",
        "no worse than `r + 3/(n + 2)` on a million fresh episodes",
        check,
        within,
    )


def refined(options: str) -> dict[str, Any]:
    options = f"search {options} --refine 1"
    found, taken, memory = run(options)
    best = found["ranking"][0]
    after = best["refined"]
    numbers = ", ".join(f"{key}={value:.5g}" for key, value in after["parameters"].items())
    return as_row(
        options,
        f"`{best['formula']}` {after['before']:.5g} -> `{after['expression']}` {after['regret']:.5g} "
        f"({numbers})",
        "lower after refinement, both exact",
        taken,
        memory,
        holds=after["standard_error"] == 0.0 and after["regret"] < after["before"],
    )


ROWS: dict[str, Callable[[], dict[str, Any]]] = {
    "classes-7": lambda: classes(7, 90, 8),
    "exact-10": lambda: search(
        "--horizon 10 --start each-once --strategy exact",
        "`sqrt(n) * (r - 1/2)`, 0.718687",
        lambda best, regret: (
            best["formula"] == "sqrt(n) * (r - 1/2)" and abs(regret - 0.718687) < 1e-6
        ),
        60,
    ),
    "exact-100-each-once": lambda: search(
        "--horizon 100 --start each-once --strategy exact",
        "exact and exhaustive",
        lambda best, _: best["method"] == "exact",
        900,
    ),
    "exact-100-prior-counts": lambda: search(
        "--horizon 100 --start prior-counts --strategy exact",
        f"below {EACH_ONCE_FLOOR}, the floor of each-once",
        lambda best, regret: best["method"] == "exact" and regret < EACH_ONCE_FLOOR,
        900,
    ),
    "halving-100-each-once": lambda: near("each-once", "--strategy halving", 0.005, 60),
    "halving-100-prior-counts": lambda: near("prior-counts", "--strategy halving", 0.005, 60),
    "paper-100": lambda: near("each-once", "--strategy ucb1-tuned --pulls 10000000", 0.02, 90),
    "halving-1000": lambda: no_worse("halving", 300),
    "paper-1000": lambda: no_worse("ucb1-tuned --pulls 10000000", 600),
    "refine-100": lambda: refined("--horizon 100 --strategy exact"),
    "refine-1000": lambda: refined("--horizon 1000 --strategy halving"),
    "classes-8": lambda: classes(8, 1200, 16),
    "exact-100-length-8": lambda: search(
        "--horizon 100 --length 8 --strategy exact",
        "shown beside length 7",
        lambda best, regret: regret <= exact_best("prior-counts"),
        None,
    ),
}
RESULTS: dict[str, dict[str, Any]] = {}


def markdown(results: dict[str, dict[str, Any]]) -> str:
    lines = [
        "# What the search for formulas reaches",
        "",
        "Made by `make formulas`: each row shows what a command reached, run one after the other on two shared",
        "cores. Seconds are those of the whole command. Regret is measured on fresh problems, or exact where",
        "it says so.",
        "",
        "| command | reached | wanted | seconds | at most |",
        "| --- | --- | --- | ---: | ---: |",
    ]
    for row in results.values():
        missed = "" if row["holds"] else " **missed**"
        lines.append(
            f"| `{row['command']}` | {row['reached']}{missed} | {row['wanted']} "
            f"| {row['seconds']:.0f} | {row['within'] or ''} |"
        )
    return "\n".join(lines) + "\n"


def warm_up() -> None:
    """Compile everything."""
    CACHE.mkdir(parents=True, exist_ok=True)
    run("search --horizon 5 --length 3 --strategy exact --refine 1")
    run("search --horizon 5 --length 3 --strategy halving")
    run("search --horizon 5 --length 3 --strategy ucb1-tuned --pulls 1000")


if __name__ == "__main__":
    run_rows(
        __doc__.splitlines()[0],
        ROWS,
        HERE / "formulas.json",
        warm_up=warm_up,
        markdown=markdown,
        results=RESULTS,
    )
