"""How many selections and rewards per second a store takes, with one and four processes, beside a journal.

    python benchmarks/store.py --json benchmarks/store.json

A step is one selection and one update of ten arms (`select`, `update`), or one choice with its id and
probability and one reward (`choose`, `reward`); UCB1. Each process has a player of its own. PostgreSQL is a server
of this run, on a socket, with its own durability (fsync on); it is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

import metabandit as mb
from benchmarks.postgres import postgresql
from metabandit.play.store import Store
from metabandit.showing import text_table

ARMS = 10
FORK = multiprocessing.get_context("fork")


def play(settings: dict[str, Any], steps: int, ids: bool, ready: Any, out: Any) -> None:
    """Steps of a process; the seconds of its selections, and of its rewards."""
    player = mb.policy("ucb1").player(ARMS, seed=1, **settings)
    for arm in range(ARMS):
        player.update(arm, 1)
    selecting = rewarding = 0.0
    ready.wait()
    for place in range(steps):
        began = time.perf_counter()
        chosen = player.choose() if ids else player.select()
        middle = time.perf_counter()
        if ids:
            player.reward(chosen.id, place % 3 == 0)
        else:
            player.update(chosen, place % 3 == 0)
        selecting += middle - began
        rewarding += time.perf_counter() - middle
    out.put((selecting, rewarding))


def per_second(
    settings: dict[str, Any], workers: int, steps: int, *, ids: bool
) -> tuple[float, float]:
    """Selections and rewards per second, of all processes together."""
    ready, out = FORK.Barrier(workers), FORK.SimpleQueue()
    started = [
        FORK.Process(target=play, args=(settings, steps, ids, ready, out)) for _ in range(workers)
    ]
    for process in started:
        process.start()
    found = [out.get() for _ in started]
    for process in started:
        process.join()
    selecting, rewarding = (sum(item) / workers for item in zip(*found, strict=True))
    return workers * steps / selecting, workers * steps / rewarding


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast a store is.")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name, postgresql(fsync=True) as server:
        journal = {"journal": Path(name) / "plays.jsonl"}
        stores = {"SQLite": f"sqlite:///{name}/bandit.db"} | (
            {"PostgreSQL": server.url} if server else {}
        )
        select, update = per_second(journal, 1, options.steps, ids=False)
        figures["journal, 1 process"] = {"select": select, "update": update}
        for title, url in stores.items():
            Store(url).create()
            for ids in (False, True):
                for workers in (1, 4):
                    settings = {"store": url, "experiment": f"{ids} {workers}"}
                    a, b = per_second(settings, workers, options.steps, ids=ids)
                    kind = "choose, reward" if ids else "select, update"
                    label = f"{title}, {workers} process{'es' if workers > 1 else ''}, {kind}"
                    figures[label] = {"select": a, "update": b}
    cells = [
        [name, f"{row['select']:,.0f}", f"{row['update']:,.0f}"] for name, row in figures.items()
    ]
    print(text_table(["per second", "selections", "rewards"], cells, align="lr"))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
