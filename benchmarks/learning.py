"""What the learner reaches, and how long it takes: each row is one or two commands.

    python benchmarks/learning.py [--rows paper-1-100,wins] [--markdown docs/learning-results.md]

The commands are run as a person runs them, one after the other. Times are those of the whole command,
without compilation (a small first run compiles). A finished row is kept in the JSON file and not run
again unless it is named.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import metabandit as mb
from metabandit.studies.maes2012.paper import table1
from rows import run_rows

HERE = Path(__file__).parent
TUNED = ("ucb1", "ucb2", "ucb-v", "kl-ucb", "eps_n-greedy")


def learn(options: str, folder: Path | None = None) -> tuple[dict[str, Any], float]:
    """Run `metabandit learn`; return its JSON output, and the seconds it took."""
    command = [sys.executable, "-m", "metabandit", "learn", *shlex.split(options), "--json"]
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise SystemExit(f"metabandit learn {options}\n{done.stderr}")
    return json.loads(done.stdout), time.monotonic() - begun


def as_row(
    commands: list[str], reached: str, wanted: str, taken: float, **more: Any
) -> dict[str, Any]:
    """What the table shows of one row; `more` has at least whether it holds."""
    return {
        "command": "; ".join(f"metabandit learn {options}" for options in commands),
        "reached": reached,
        "wanted": wanted,
        "seconds": round(taken, 1),
        "error": None,
        "within": None,
        **more,
    }


def regret_row(options: str, limit: float, seconds: float | None = None) -> dict[str, Any]:
    result, taken = learn(options)
    measured = result["learned"]["regret"]
    return as_row(
        [options],
        f"{measured['mean']:.6g}",
        f"{limit:g} or less",
        taken,
        error=measured["standard_error"],
        search=round(result["search_seconds"], 1),
        within=seconds,
        floor=result["learned"].get("floor"),
        holds=measured["mean"] <= limit and (seconds is None or taken <= seconds),
    )


def tuned_row(name: str, horizon: int) -> dict[str, Any]:
    row = next(row for row in table1() if row.label.lower() == name and row.training == horizon)
    paper = row.paper["bernoulli", horizon]
    options = f"--space {name} --protocol paper --horizon {horizon}"
    result, taken = learn(options)
    measured = result["learned"]["regret"]
    parameters = result["policy"]["parameters"]
    return as_row(
        [options],
        f"{measured['mean']:.5g}",
        f"{paper:g} within 3 %",
        taken,
        error=measured["standard_error"],
        parameters=", ".join(f"{key}={value:.4g}" for key, value in parameters.items()),
        paper_parameters=row.parameters,
        search=round(result["search_seconds"], 1),
        holds=abs(measured["mean"] / paper - 1.0) <= 0.03,
    )


def many_arms() -> dict[str, Any]:
    options = "--space power-1 --arms 10 --horizon 200 --out policy.json"
    with tempfile.TemporaryDirectory() as name:
        _, taken = learn(options, Path(name))
        rivals = ["thompson", "kl-ucb", "ucb1-tuned"]
        learned = mb.policy(str(Path(name) / "policy.json"))
        prior = mb.Bernoulli(arms=10)
        test = mb.evaluate([learned, *rivals], prior, 200, episodes=200_000, seed=12345)
    apart = [test.difference(position, 0) for position in (1, 2, 3)]
    return as_row(
        [options],
        f"{test[0].mean_regret:.4f}",
        "below " + ", ".join(f"{item.policy} {item.mean_regret:.2f}" for item in test[1:]),
        taken,
        error=test[0].standard_error,
        holds=all(item.interval[0] > 0.0 for item in apart),
    )


def other_family() -> dict[str, Any]:
    there = "--space power-1 --prior truncated-gaussian --horizon 100 --out gaussian.json"
    here = "--space power-1 --prior bernoulli --horizon 100 --out bernoulli.json"
    # The one learned on Bernoulli arms begins as the other does, so that the prior is the difference.
    again = "--space power-1 --prior bernoulli --start each-once --horizon 100 --out forced.json"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        taken = sum(learn(options, folder)[1] for options in (there, here, again))
        made = [
            mb.policy(str(folder / f"{item}.json")) for item in ("gaussian", "bernoulli", "forced")
        ]
        prior = mb.TruncatedGaussian(arms=2)
        test = mb.evaluate(made, prior, 100, episodes=1_000_000, seed=12345)
    apart = [test.difference(position, 0) for position in (1, 2)]
    return as_row(
        [there, here, again],
        f"{test[0].mean_regret:.4f}",
        f"below those learned on Bernoulli arms: {test[1].mean_regret:.4f} (prior-counts), "
        f"{test[2].mean_regret:.4f} (each-once)",
        taken,
        error=test[0].standard_error,
        holds=all(item.interval[0] > 0.0 for item in apart),
    )


def wins() -> dict[str, Any]:
    share = "--space power-1 --horizon 100 --objective wins --reference ucb1-tuned --out wins.json"
    mean = "--space power-1 --horizon 100 --out mean.json"
    import numpy as np

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        taken = sum(learn(options, folder)[1] for options in (share, mean))
        made = [mb.policy(str(folder / f"{item}.json")) for item in ("wins", "mean")]
        # Exact on each of 10,000 problems that no learner saw.
        problems = mb.Table(mb.Bernoulli(arms=2).draw(np.random.default_rng(987), 10_000)[..., 0])
        test = mb.evaluate([*made, "ucb1-tuned"], problems, 100, method="exact")
    shares = [test.share_of_wins(position, 2) for position in (0, 1)]
    return as_row(
        [share, mean],
        f"{100 * shares[0]:.2f} % of problems won",
        f"more than {100 * shares[1]:.2f} % (learned on mean regret)",
        taken,
        holds=shares[0] > shares[1],
    )


ROWS: dict[str, Callable[[], dict[str, Any]]] = {
    "default-10": lambda: regret_row("--space power-1 --horizon 10", 0.64489, 10),
    "default-100": lambda: regret_row("--space power-1 --horizon 100", 1.75, 180),
    "paper-1-100": lambda: regret_row(
        "--space power-1 --protocol paper --horizon 100", 1.84 * 1.03, 40
    ),
    "paper-2-100": lambda: regret_row(
        "--space power-2 --protocol paper --horizon 100", 1.82 * 1.03, 240
    ),
    "paper-1-1000": lambda: regret_row(
        "--space power-1 --protocol paper --horizon 1000", 4.04 * 1.03, 360
    ),
    "default-1000": lambda: regret_row("--space power-1 --horizon 1000", 3.75, 600),
    "once-1-100": lambda: regret_row("--space power-1 --start each-once --horizon 100", 1.81),
    "once-2-100": lambda: regret_row("--space power-2 --start each-once --horizon 100", 1.80),
    "ten-arms": many_arms,
    "gaussian": other_family,
    "wins": wins,
    **{
        f"tuned-{name}-{horizon}": lambda name=name, horizon=horizon: tuned_row(name, horizon)
        for horizon in (10, 100, 1000)
        for name in TUNED
    },
}


def markdown(results: dict[str, dict[str, Any]]) -> str:
    lines = [
        "# What learning reaches",
        "",
        "Made by `make learning`: each row shows what its commands reached, run one after the other on two shared",
        "cores. Seconds are those of the whole command (start, floor, search and measurement); in",
        "parentheses those of the search alone. Regret without an error is exact.",
        "",
        "| command | reached | wanted | seconds | at most |",
        "| --- | ---: | --- | ---: | ---: |",
    ]
    for row in results.values():
        commands = "<br>".join(f"`{item}`" for item in row["command"].split("; "))
        error = f" ± {1.96 * row['error']:.2g}" if row["error"] else ""
        extra = f" ({row['parameters']})" if "parameters" in row else ""
        missed = "" if row["holds"] else " **missed**"
        paper = f" ({row['paper_parameters']})" if "paper_parameters" in row else ""
        search = f" ({row['search']:.0f})" if "search" in row else ""
        lines.append(
            f"| {commands} | {row['reached']}{error}{extra}{missed} | {row['wanted']}{paper} "
            f"| {row['seconds']:.0f}{search} | {row['within'] or ''} |"
        )
    return "\n".join(lines) + "\n"


def warm_up() -> None:
    """Compile everything."""
    learn("--space power-1 --horizon 5 --generations 2")
    learn("--space power-1 --horizon 5 --generations 2 --protocol paper")


if __name__ == "__main__":
    run_rows(
        __doc__.splitlines()[0],
        ROWS,
        HERE / "learning.json",
        warm_up=warm_up,
        markdown=markdown,
        results={},
    )
