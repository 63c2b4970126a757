"""Time limits: whether commands end in time, and with a result that is no worse than what was known before.

    python benchmarks/limits.py [--limits 10,60,300] [--tasks two-100,many] [--threads 2] [--markdown FILE]

Each row is one command. It is first run with the least of the limits and not counted, so that all is compiled.
`took` is the whole command by the clock, from the start of Python on, and `processor` its processor time: if that is far
below, others were at work on the machine, and `took` says little. The result then plays fresh problems of
another seed, beside the classics and what learning of Power-1 begins with (the index r), each of which may take --check seconds: `ahead`
is the 95 % interval of how much less regret it has than the best of these.
"""

from __future__ import annotations

import argparse
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import metabandit as mb
from metabandit.policies.start import default_start
from metabandit.priors import read_prior

CLASSICS = ("ucb1", "ucb1-tuned", "kl-ucb", "thompson")
SEED = 20_000


class Task(NamedTuple):
    """A command, and its prior, arms, plays and batches for the measurement of its result."""

    command: str
    prior: str
    arms: int
    horizon: int
    batch: int | None = None


TASKS = {
    "two-100": Task("learn", "bernoulli", 2, 100),
    "ten-200": Task("learn", "bernoulli", 10, 200),
    "gaussian": Task("learn", "gaussian", 10, 1000),
    "banners": Task("learn", "bernoulli:alpha=6,beta=540", 12, 100_000),
    "batches": Task("learn", "bernoulli", 3, 500, 50),
    "search": Task("search", "bernoulli", 2, 1000),
}


def run(task: Task, limit: float, threads: int, out: Path) -> tuple[float, float, bool]:
    """Run the command; the seconds that it took, by the clock and of the processor, and whether there was time for it."""
    line = f"{task.command} --prior {task.prior} --arms {task.arms} --horizon {task.horizon}"
    line += "" if task.batch is None else f" --batch {task.batch}"
    line += f" --time-limit {limit:g} --threads {threads} --force"
    command = [sys.executable, "-m", "metabandit", *shlex.split(line), "--out", str(out)]
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    refused = done.returncode == 2 and "leaves no time" in done.stderr
    if done.returncode and not refused:
        raise SystemExit(f"metabandit {line}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - begun, spent, not refused


def check(task: Task, out: Path, seconds: float, threads: int) -> tuple[str, mb.Difference]:
    """The best of what was known before, and its regret minus that of the result, paired by problem."""
    prior = read_prior(task.prior, arms=task.arms)
    feedback = None if task.batch is None else mb.Feedback(batch=task.batch)
    known: list[Any] = [mb.policy(out)]
    for item in (*map(mb.policy, CLASSICS), mb.policy("r", start=default_start(prior))):
        with suppress(mb.InputError):
            item.check(prior, task.horizon)
            known.append(item)
    test = mb.evaluate(
        known, prior, task.horizon, feedback=feedback, method="monte-carlo", episodes=400_000,
        seed=SEED, time_limit=seconds * len(known), threads=threads, floor=False,
    )  # fmt: skip
    best = min(range(1, len(known)), key=lambda place: test[place].mean_regret)
    return test[best].policy, test.difference(best, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--limits", default="10,60,300", help="seconds")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--check", type=float, default=10.0, help="seconds per policy")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    limits = sorted(map(float, options.limits.split(",")))
    lines = [
        "| task | limit, s | took, s | of the limit | processor, s | ahead of | by | holds |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: | --- |",
    ]
    print("\n".join(lines))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "policy.json"
        for name in options.tasks.split(","):
            task = TASKS[name]
            run(task, limits[0], options.threads, out)
            for limit in limits:
                took, spent, found = run(task, limit, options.threads, out)
                if not found:
                    lines.append(
                        f"| {name} | {limit:g} | {took:.1f} | {100 * took / limit:.0f} % | {spent:.1f} | "
                        f"refused: too little time | | {'yes' if took <= limit else 'NO'} |"
                    )
                    print(lines[-1], flush=True)
                    continue
                rival, ahead = check(task, out, options.check, options.threads)
                low, high = ahead.interval
                holds = took <= 1.1 * limit and high >= 0.0
                lines.append(
                    f"| {name} | {limit:g} | {took:.1f} | {100 * took / limit:.0f} % | "
                    f"{spent:.1f} | {rival} | "
                    f"{low:.3g} to {high:.3g} | {'yes' if holds else 'NO'} |"
                )
                print(lines[-1], flush=True)
    if options.markdown is not None:
        options.markdown.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
