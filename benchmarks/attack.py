"""The attack on robustness, with thousands of cases: counts, and what broke a rule.

    python benchmarks/attack.py lines --to 5000        # odd command lines
    python benchmarks/attack.py files --to 1000        # damaged files of each kind
    python benchmarks/attack.py grid --to 2000         # exact, simulated and twin on extreme priors
    python benchmarks/attack.py kills --to 200         # kills during play, saving and compacting
    python benchmarks/attack.py bits --to 1000         # flipped bits of journals and players

A case is a number, which seeds all that is random in it: `--from` and `--to` cut a campaign into pieces.
The suite runs a few cases of each (tests/cli/test_fuzz.py, tests/engine/test_extremes.py,
tests/play/test_journal.py); the rules are in tests/attack.py.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests import attack, fuzz  # noqa: E402
from tests.commands import call  # noqa: E402
from tests.engine import test_extremes as extremes  # noqa: E402
from tests.play import test_journal as journals  # noqa: E402

import metabandit as mb  # noqa: E402

# Seconds after which a process that does not even listen to signals ends itself.
DEAD = 600
ENDS = {0: "done", 1: "no store", 2: "refused", 130: "stopped after a word of progress"}


class Counts:
    """What the cases of a campaign came to."""

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.bad: list[str] = []
        self.slowest, self.silent = (0.0, ""), (0.0, "")

    def run(self, case: str, attempt: Callable[[], attack.Outcome]) -> None:
        """Count one case; what breaks a rule is shown at once."""
        faulthandler.dump_traceback_later(DEAD, exit=True)
        try:
            outcome = attempt()
        except (Exception, attack.Hang) as error:
            found = f"{case}\n    {type(error).__name__}: {str(error)[:1500]}"
            self.bad.append(found)
            print(found, flush=True)
            return
        finally:
            faulthandler.cancel_dump_traceback_later()
        self.ends[ENDS[outcome.code]] += 1
        self.slowest = max(self.slowest, (outcome.seconds, case))
        self.silent = max(self.silent, (outcome.silence, case))

    def show(self, title: str) -> None:
        ends = ", ".join(f"{count} {name}" for name, count in sorted(self.ends.items()))
        print(
            f"{title}: {sum(self.ends.values()) + len(self.bad)} cases; {ends}; broken rules: {len(self.bad)}"
        )
        for what, (seconds, case) in (("longest", self.slowest), ("longest silence", self.silent)):
            if seconds:
                print(f"    {what}: {seconds:.1f} s, {case[:200]}")
        print(f"    peak memory: {attack.peak() / 1e9:.2f} GB", flush=True)


def lines(cases: range, folder: Path) -> bool:
    fuzz.make_files(folder, call)
    counts = Counts()
    for seed in cases:
        line = fuzz.command_line(Random(seed))
        shown = " ".join(part[:80] for part in line)
        counts.run(f"{seed}: {shown!r}", lambda line=line: attack.attack(line, folder))
    counts.show("odd command lines")
    return not counts.bad


def files(cases: range, folder: Path, kinds: list[str]) -> bool:
    fuzz.make_files(folder, call)
    good = True
    for name in kinds:
        counts = Counts()
        for seed in cases:
            counts.run(
                f"{name} {seed}", lambda n=name, s=seed: attack.damaged(n, Random(s), folder)
            )
        counts.show(name)
        good = good and not counts.bad
    return good


def grid(cases: range, folder: Path) -> bool:
    refused: Counter[str] = Counter()
    largest, bad, seen = 0.0, 0, 0
    for seed in range(cases.start // 100, -(-cases.stop // 100)):
        for text, start, prior, horizon in extremes.some_cells(100, seed=1000 + seed):
            cell = f"{text}, {start}, {prior}, K={prior.arms}, T={horizon}"
            z = extremes.look_at(text, start, prior, horizon, seed=seed)
            seen += 1
            if isinstance(z, str):
                refused[z] += 1
                continue
            if z >= 5.0:
                bad += 1
                print(f"{seed}: {cell}: z = {z:.1f}", flush=True)
            largest = max(largest, z)
    print(f"grid: {seen} cells, {seen - refused.total()} compared, largest z {largest:.2f}")
    for why, count in refused.most_common():
        print(f"    refused {count}: {why}")
    return not bad


def kills(cases: range, folder: Path) -> bool:
    acknowledged, plays = journals.kill_often(folder, len(cases), seed=cases.start)
    print(f"{len(cases)} kills: {acknowledged} updates acknowledged, {plays} in the journal")
    return acknowledged <= plays <= acknowledged + 1


def bits(cases: range, folder: Path) -> bool:
    """Of a journal and a saved player."""
    unnoticed = 0
    for path in journals.states(folder):
        whole = path.read_bytes()
        missed = 0
        for seed in cases:
            bit = Random(seed).randrange(8 * len(whole))
            path.write_bytes(journals.flipped(whole, bit))
            with contextlib.suppress(mb.InputError):
                mb.load_player(path).close()
                missed += 1
        print(f"{path.name}: {len(cases)} flipped bits, {missed} not noticed")
        unnoticed += missed
    return not unnoticed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("campaign", choices=["lines", "files", "grid", "kills", "bits"])
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int, default=100)
    parser.add_argument("--kind", action="append", choices=attack.KINDS)
    given = parser.parse_args()
    cases, begun = range(given.first, given.last), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        if given.campaign == "files":
            good = files(cases, where, given.kind or attack.KINDS)
        else:
            good = globals()[given.campaign](cases, where)
    print(f"    {time.monotonic() - begun:.0f} s in all")
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
