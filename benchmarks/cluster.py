"""What a Dask cluster gives: the same commands in one process, on one worker and on two.

All on this machine: a real scheduler and real workers with one thread each. `--markdown` writes the
tables of docs/cluster-results.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
# Workers import this file for the piece that does nothing, and then need this, too.
sys.path.insert(0, str(ROOT))

from tests.sites import exports, figures  # noqa: E402

COMMANDS = {
    "search": ("search", "--horizon", "1000"),
    "learn": ("learn", "--space", "power-2", "--horizon", "1000", "--effort", "0.1"),
    "evaluate": (
        "evaluate", "ucb1", "ucb1-tuned", "kl-ucb", "thompson", "r + 1/n", "--horizon", "1000",
        "--episodes", "150000", "--no-floor",
    ),
}  # fmt: skip
PIECES = 200
# The machine is shared, and its speed drifts: workers of each run, in an order that favours none; means count.
ORDER = "1,2,0,2,1"
# At the end of these a single piece finds the exact regret of the result.
EXACT = ("search", "learn")


@contextmanager
def site(workers: int, folder: Path) -> Iterator[str]:
    """A scheduler and workers; gives its address."""

    def start(module: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *options, "--no-dashboard"]
        quiet = subprocess.DEVNULL
        env = {**os.environ, **exports()}
        return subprocess.Popen(command, cwd=folder, env=env, stdout=quiet, stderr=quiet)

    contact = folder / "scheduler.json"
    contact.unlink(missing_ok=True)
    here = ("--scheduler-file", str(contact))
    processes = [start("dask_scheduler", "--port", "0", "--host", "127.0.0.1", *here)]
    try:
        # Written in two steps.
        while not contact.exists() or not contact.read_text("utf-8").endswith("}"):
            time.sleep(0.1)
        address = json.loads(contact.read_text("utf-8"))["address"]
        processes += [start("dask_worker", address, "--nthreads", "1") for _ in range(workers)]
        from distributed import Client

        with Client(address) as client:
            client.wait_for_workers(workers)
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def warm_up(folder: Path) -> None:
    """Compile, and make the formula classes, beforehand."""
    for command in (
        "search --horizon 20 --effort 0.01",
        "search --horizon 500 --length 3 --effort 0.01",
        "learn --space power-2 --arms 3 --horizon 20 --generations 1",
        "evaluate ucb1 ucb2 thompson eps_n-greedy ucb1-normal --episodes 1000",
    ):
        whole = [sys.executable, "-m", "metabandit", *command.split()]
        subprocess.run(whole, capture_output=True, cwd=folder, check=True)


def run(name: str, folder: Path, *options: str) -> tuple[float, Any]:
    """Seconds that a command takes, and its figures."""
    command = [sys.executable, "-m", "metabandit", *COMMANDS[name], *options, "--json"]
    begun = time.monotonic()
    done = subprocess.run(
        [*command, "--threads", "1"], capture_output=True, text=True, cwd=folder, check=False
    )
    taken = time.monotonic() - begun
    if done.returncode:
        raise SystemExit(done.stderr)
    return taken, figures(json.loads(done.stdout))


def pieces_of(address: str) -> tuple[int, float]:
    """How many pieces workers did, and their seconds."""
    from distributed import Client

    with Client(address) as client:
        done = client.run(lambda dask_worker: dask_worker.state.executed_count)
        seconds = client.run_on_scheduler(
            lambda dask_scheduler: dask_scheduler.task_prefixes["metabandit"].all_durations[
                "compute"
            ]
        )
        return sum(done.values()), seconds


def overhead(address: str) -> dict[str, float]:
    """Milliseconds a piece that does nothing: one after the other, and many at once."""
    import metabandit as mb
    from metabandit.workers import Job, Workers

    with mb.Cluster(address) as cluster:
        workers = Workers(1, cluster)
        nothing = [Job((), 1.0)] * PIECES
        list(workers.run(Nothing, "do", nothing[:4]))
        begun = time.monotonic()
        for job in nothing[:50]:
            workers.submit(Nothing, "do", job).result()
        alone = (time.monotonic() - begun) / 50
        begun = time.monotonic()
        list(workers.run(Nothing, "do", nothing))
        return {"alone": 1e3 * alone, "many": 1e3 * (time.monotonic() - begun) / PIECES}


class Nothing:
    """A tool whose work takes no time."""

    def do(self) -> None:
        pass


def both_cores() -> float:
    """How much more two processes do at once than one alone: what two workers can give at best here."""
    code = """
import sys, time
import metabandit as mb
def play(seed):
    two = mb.Bernoulli(arms=2)
    mb.evaluate("r + 1/n", two, 1000, episodes=300_000, threads=1, floor=False, seed=seed)
play(0)
print("ready", flush=True)
sys.stdin.readline()
begun = time.perf_counter()
for seed in range(4):
    play(seed)
print(time.perf_counter() - begun, flush=True)
"""

    def seconds(count: int) -> float:
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", code]
        processes = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(count)
        ]
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        return max(float(process.communicate()[0]) for process in processes)

    return statistics.median(2 * seconds(1) / seconds(2) for _ in range(3))


def longest() -> float:
    """Seconds of the longest piece: an exact regret for T = 1000."""
    import metabandit as mb

    begun = time.monotonic()
    two = mb.Bernoulli(arms=2)
    mb.evaluate("r + 1/n", two, 1000, method="exact", threads=1, floor=False)
    return time.monotonic() - begun


def measure(name: str, folder: Path, order: str, before: dict[str, Any]) -> dict[str, Any]:
    """Runs in turn, after those before."""
    row = {"command": " ".join(COMMANDS[name]), "same": True, "limits": [], "runs": [], **before}
    row["limits"].append(both_cores())
    found = []
    for workers in map(int, order.split(",")):
        taken: dict[str, Any] = {"workers": workers}
        if not workers:
            taken["seconds"], result = run(name, folder)
        else:
            with site(workers, folder) as address:
                taken["seconds"], result = run(name, folder, "--cluster", address)
                taken["pieces"], taken["busy"] = pieces_of(address)
        found.append(result)
        row["runs"].append(taken)
        print(name, taken, flush=True)
    row["limits"].append(both_cores())
    row["same"] &= all(result == found[0] for result in found)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default=",".join(COMMANDS), help="names with commas between")
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks" / "cluster.json")
    parser.add_argument("--markdown", type=Path, help="also write the tables to this file")
    parser.add_argument("--order", default=ORDER, help="workers of each run, 0 for one process")
    parser.add_argument("--add", action="store_true", help="count the runs that are there, too")
    options = parser.parse_args()
    results = json.loads(options.json.read_text("utf-8")) if options.json.exists() else {}
    sys.path.insert(0, str(Path(__file__).parent))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Workers import this file for the piece that does nothing.
        os.environ["PYTHONPATH"] = str(Path(__file__).parent)
        if options.rows:
            warm_up(folder)
        for row in filter(None, options.rows.split(",")):
            before = results.get(row, {}) if options.add else {}
            results[row] = measure(row, folder, options.order, before)
            options.json.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
            print(row, json.dumps(results[row]), flush=True)
        if options.rows:
            with site(2, folder) as address:
                results["overhead"] = overhead(address) | {"longest": longest()}
            options.json.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    print(json.dumps(results.get("overhead")))
    if options.markdown is not None:
        options.markdown.write_text(markdown(results), "utf-8")


def markdown(results: dict[str, Any]) -> str:
    """The measurement, and the model beside it."""
    cost = results["overhead"]["many"] / 1e3
    measured, every, model = [], [], []
    for name in COMMANDS:
        if name not in results:
            continue
        row = results[name]
        runs = [[item for item in row["runs"] if item["workers"] == count] for count in (0, 1, 2)]
        plain, one, two = (statistics.mean(item["seconds"] for item in some) for some in runs)
        limit = statistics.mean(row["limits"])
        between = f"{limit:.2f} ({min(row['limits']):.2f} to {max(row['limits']):.2f})"
        measured.append(
            f"| `{row['command']}` | {plain:.0f} s | {one:.0f} s | {two:.0f} s | {one / two:.2f} | "
            f"{between} | {100 * (one / plain - 1):+.1f} % | {'yes' if row['same'] else 'NO'} |"
        )
        seconds = [", ".join(f"{item['seconds']:.0f}" for item in some) for some in runs]
        every.append(f"| {name} | {' | '.join(seconds)} |")

        def mean(workers: int, key: str, runs: Any = runs) -> float:
            return statistics.mean(item[key] for item in runs[workers] if "busy" in item)

        pieces, busy = mean(1, "pieces"), mean(1, "busy")
        own = max(mean(1, "seconds") - busy - cost * pieces, 0.0)
        foreseen = own + busy / limit + cost * mean(2, "pieces")
        last = results["overhead"]["longest"] if name in EXACT else busy / pieces
        half = (2 * own + busy + last) / (own + last)
        model.append(
            f"| {name} | {pieces:,.0f} | {busy / pieces:.2f} s | {own:.1f} s | {last:.0f} s | {foreseen:.0f} s | "
            f"{mean(2, 'seconds'):.0f} s | {half:,.0f} |"
        )
    both = results["overhead"]
    return f"""# What a cluster gives

Made by `make cluster` (benchmarks/cluster.py; `--add` adds runs), with client, scheduler and workers on one machine with two
shared cores, one thread each. Figures are means of all runs below, because the machine's speed drifts by 10 % and more.
[Other processes, other machines](cluster.md) explains how it works. *Limit* is how much more two plain processes achieve
than one, measured just before and after (mean, least and most): the most that two workers can gain on these shared cores
(more than 2 is noise).

| command | one process | one worker | two workers | two against one | limit | one worker against one process | same figures |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |
{chr(10).join(measured)}

All runs, in seconds:

| | one process | one worker | two workers |
| --- | --- | --- | --- |
{chr(10).join(every)}

A piece that does nothing takes {both["many"]:.1f} ms if many are handed out at once, {both["alone"]:.1f} ms alone.

## The model

With W workers a run takes about *own* + *work*/W + *pieces* x *overhead*: *own* is what the client does while
workers wait, *work* what pieces take together, both from runs on one worker. For two workers here the limit stands for W. Many workers
wait for the *longest* piece in the end, the exact regret of what was found: the last column is the number of workers at which half of their time is lost, with
*own* + *longest* + (*work* - *longest*)/W for the whole. The model is from the runs that count pieces, the last ones of the table above; so is what it is
compared with.

| command | pieces | time a piece | own | longest | two workers: foreseen | measured | half efficiency at |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(model)}
"""


if __name__ == "__main__":
    main()
