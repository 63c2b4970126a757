"""Three cases of advice, each measured again on problems of another seed: does the ranking hold?

    python benchmarks/advice.py build/advice
    python benchmarks/advice.py build/advice --time-limit 60

Writes one advice per case to the folder (those that are there already are only measured again), and prints, for
the advised policy, the best of the others that need no search, and an equal split, the gain over what is done
today as advised and as measured again, both with 95 % intervals.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import metabandit as mb

TODAY = "split-then-winner:share=0.2"
# Plays times arms of a policy that is measured again.
WORK = 1e9


def history() -> dict[str, list[int]]:
    """40 tests of 4 mails, each sent 1,250 times, with Beta(3, 90) click rates."""
    rng = np.random.default_rng(5)
    clicks = [int(rng.binomial(1250, rng.beta(3, 90))) for _ in range(160)]
    tests = np.repeat(np.arange(1, 41), 4)
    return {"test": tests.tolist(), "sent": [1250] * 160, "clicks": clicks}


def cases() -> dict[str, dict[str, Any]]:
    """What `advise` is asked."""
    return {
        "email": {
            "prior": mb.fit_prior(history()),
            "horizon": 5000,
            "feedback": mb.Feedback(batch=500),
            "unit": "clicks",
        },
        "banners": {
            "prior": "bernoulli:low=0.005,high=0.02",
            "arms": 12,
            "horizon": 100_000,
            "unit": "clicks",
        },
        "revenue": {
            "prior": "revenue:share=0.05,share_sd=0.01,value=40,value_sd=30",
            "arms": 3,
            "horizon": 2000,
            "unit": "euros",
        },
    }


def again(path: Path, seed: int) -> list[tuple[str, tuple[float, ...], tuple[float, ...]]]:
    """Gains over today's policy, as advised and on fresh problems: name, (mean, low, high) twice."""
    value = json.loads(path.read_text("utf-8"))
    known = {item["policy"]: item for item in value["policies"]}
    others = [
        name
        for name, item in known.items()
        if item["kind"] in ("classic", "baseline") and name not in (value["today"], "split")
    ]
    names = list(dict.fromkeys([value["recommended_policy"], others[0], "split"]))
    texts = [str(path) if name == value["recommended_policy"] else name for name in names]
    episodes = max(512, min(50_000, int(WORK / value["horizon"] / value["arms"])))
    found = mb.evaluate(
        [value["today"], *texts],
        value["prior"],
        value["horizon"],
        arms=value["arms"],
        feedback=value["feedback"],
        seed=seed,
        episodes=episodes,
        floor=False,
    )
    rows = []
    for place, name in enumerate(names, 1):
        item, apart = known[name], found.difference(0, place)
        rows.append((name, (item["gain"], *item["gain_interval"]), (apart.mean, *apart.interval)))
    return rows


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    reader.add_argument("folder", type=Path)
    reader.add_argument("--time-limit", type=float)
    reader.add_argument("--seed", type=int, default=1000)
    given = reader.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print("| case | policy | gain as advised | measured again | seconds |")
    print("| --- | --- | --- | --- | --- |")
    for name, asked in cases().items():
        path = given.folder / f"{name}.json"
        if not path.exists():
            mb.advise(**asked, today=TODAY, time_limit=given.time_limit, out=path)
        seconds = json.loads(path.read_text("utf-8"))["seconds"]
        for policy, told, found in again(path, given.seed):
            cells = [
                f"{mean:+,.1f} ({low:,.1f} to {high:,.1f})" for mean, low, high in (told, found)
            ]
            print(f"| {name} | `{policy}` | {' | '.join(cells)} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
