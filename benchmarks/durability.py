"""Whether a store counts exactly, whatever happens to those who use it: many processes, kills, a restart.

    python benchmarks/durability.py             # at full size: some minutes

Eight processes tell 20,000 rewards each, in random order, a tenth of them twice; workers that tell rewards are killed twenty
times (SIGKILL); and PostgreSQL is restarted while four processes play. Each ends with an error if a count is
not exact. Tests do the same with less.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

import metabandit as mb
from benchmarks.postgres import Postgres, postgresql
from metabandit.play.store import Store

WORKERS = 8
FORK = multiprocessing.get_context("fork")


def make(url: str, policy: str = "ucb1", **options: Any) -> Any:
    """A player of the experiment."""
    given = {"arms": ["a", "b", "c"], "seed": 1, "experiment": "one", "rewards": (0, 1)} | options
    return mb.policy(policy).player(store=url, **given)


def counts(player: Any) -> list[tuple[Any, int, float, float, int]]:
    """What the store has now: arm, rewards, mean, deviation, open selections."""
    player._read_at = -math.inf
    return [
        (view.arm, view.rewarded, view.mean, view.deviation, view.open) for view in player.indices()
    ]


def _choose(url: str, count: int, out: Any) -> None:
    player = make(url, experiment="many")
    found: list[tuple[str, Any]] = []
    while len(found) < count:
        found += [
            (choice.id, choice.arm) for choice in player.choose(min(1000, count - len(found)))
        ]
    player.close()
    out.put(found)


def _tell(url: str, rewards: list[tuple[str, float]], seed: int, size: int) -> None:
    player = make(url, experiment="many")
    random.Random(seed).shuffle(rewards)
    for begin in range(0, len(rewards), size):
        player.reward_many(rewards[begin : begin + size])
    player.close()


def in_processes(function: Any, arguments: list[tuple[Any, ...]]) -> None:
    started = [FORK.Process(target=function, args=item) for item in arguments]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0] * len(started)


def gather(started: list[Any], out: Any) -> list[Any]:
    """What each of the processes puts into the queue; an error if one of them dies."""
    found = []
    while len(found) < len(started):
        if not out.empty():
            found.append(out.get())
            continue
        assert all(process.exitcode in (None, 0) for process in started), "a process died"
        time.sleep(0.01)
    for process in started:
        process.join()
    return found


def check_many(url: str, each: int, size: int) -> None:
    """Eight processes choose, then tell rewards in random order, a tenth of them twice and elsewhere."""
    out = FORK.SimpleQueue()
    player = make(url, experiment="many")
    started = [FORK.Process(target=_choose, args=(url, each, out)) for _ in range(WORKERS)]
    for process in started:
        process.start()
    chosen = gather(started, out)
    rng = random.Random(4)
    # Sixteenths add up without rounding, in any order.
    values = {name: rng.randrange(17) / 16 for part in chosen for name, _ in part}
    assert len(values) == WORKERS * each
    assert sum(item[4] for item in counts(player)) == WORKERS * each
    everything = list(values.items())
    again = rng.sample(everything, len(everything) // 10)
    parts = [everything[place::WORKERS] + again[place::WORKERS] for place in range(WORKERS)]
    in_processes(_tell, [(url, part, seed, size) for seed, part in enumerate(parts)])
    arms = {name: arm for part in chosen for name, arm in part}
    for arm, rewarded, mean, deviation, waiting in counts(player):
        told = [values[name] for name, own in arms.items() if own == arm]
        assert (rewarded, waiting) == (len(told), 0)
        assert mean == sum(told) / len(told)
        spread = sum((value - mean) ** 2 for value in told) / len(told)
        assert math.isclose(deviation, spread**0.5, rel_tol=1e-9)


def _tell_until_killed(url: str, rewards: list[tuple[str, float]], pipe: Any, seed: int) -> None:
    player = make(url, experiment="kills")
    rng = random.Random(seed)
    while True:
        name, value = rng.choice(rewards)
        player.reward(name, value)
        pipe.send(name)


def check_kills(url: str, kills: int, told: int) -> None:
    """Workers tell rewards one by one and are killed; what was acknowledged is there, once."""
    player = make(url, experiment="kills")
    rng = random.Random(8)
    rewards = [(choice.id, rng.randrange(17) / 16) for choice in player.choose(600)]
    acknowledged: set[str] = set()
    values = dict(rewards)
    workers: dict[int, tuple[Any, Any]] = {}

    def start(number: int) -> None:
        ours, theirs = FORK.Pipe(duplex=False)
        process = FORK.Process(target=_tell_until_killed, args=(url, rewards, theirs, number))
        process.start()
        workers[number] = process, ours

    for number in range(3):
        start(number)
    for kill in range(kills):
        victim = rng.choice(list(workers))
        heard = 0
        while heard < told:  # in the middle of something
            for _, pipe in workers.values():
                if pipe.poll(0.01):
                    acknowledged.add(pipe.recv())
                    heard += 1
        process, pipe = workers.pop(victim)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        while pipe.poll():
            try:
                acknowledged.add(pipe.recv())
            except EOFError:
                break
        if kill < kills - 1:
            start(3 + kill)
    for process, _ in workers.values():
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    before = counts(player)
    counted = sum(item[1] for item in before)
    # Told again, all of them: what was acknowledged does not count, and each of the others does once.
    new = player.reward_many(rewards)
    assert counted >= len(acknowledged)
    assert new == len(rewards) - counted
    for name in acknowledged:
        assert player.reward(name, values[name]) is False
    assert sum(item[1] for item in counts(player)) == len(rewards)
    total = sum(item[1] * item[2] for item in counts(player))
    assert math.isclose(total, sum(values.values()), rel_tol=1e-12)


def _play(url: str, steps: int, out: Any) -> None:
    """Choose and tell, step by step; after an error, tell again."""
    player = None
    errors, told = 0, 0
    while told < steps:
        try:
            player = player or make(url, experiment="restart")
            choice = player.choose()
        except mb.StoreError:
            errors += 1
            time.sleep(0.05)
            continue
        for _ in range(1200):  # a minute
            try:
                player.reward(choice.id, 0.5)
                told += 1
                break
            except mb.StoreError:
                errors += 1
                time.sleep(0.05)
    out.put((errors, told))


def check_restart(server: Postgres, steps: int) -> int:
    """Four processes play while the server is restarted; the number of errors that they met."""
    player = make(server.url, experiment="restart")
    before = sum(item[1] for item in counts(player))
    out = FORK.SimpleQueue()
    started = [FORK.Process(target=_play, args=(server.url, steps, out)) for _ in range(4)]
    for process in started:
        process.start()
    while sum(item[1] for item in counts(player)) < before + steps:
        time.sleep(0.02)
    server.stop("immediate")
    time.sleep(0.3)
    server.start()
    found = gather(started, out)
    assert sum(told for _, told in found) == 4 * steps
    assert sum(item[1] for item in counts(player)) == before + 4 * steps
    errors = sum(number for number, _ in found)
    assert errors > 0
    return int(errors)


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether a store counts exactly.")
    parser.add_argument("--rewards", type=int, default=20_000, help="of each of eight processes")
    parser.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, postgresql(fsync=True) as server:
        stores = {"SQLite": f"sqlite:///{folder}/bandit.db"}
        if server is not None:
            stores["PostgreSQL"] = server.url
        for title, url in stores.items():
            Store(url).create()
            began = time.perf_counter()
            check_many(url, options.rewards, 1000)
            took = time.perf_counter() - began
            number = WORKERS * options.rewards
            print(f"{title}: {number:,} rewards, a tenth of them twice: exact ({took:.0f} s)")
            began = time.perf_counter()
            check_kills(url, options.kills, 10)
            took = time.perf_counter() - began
            print(f"{title}: {options.kills} kills: nothing lost, nothing twice ({took:.0f} s)")
        if server is not None:
            errors = check_restart(server, 200)
            print(f"PostgreSQL restarted: {errors} errors, then play went on; counts exact")


if __name__ == "__main__":
    main()
