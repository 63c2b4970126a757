"""The rules that odd command lines and damaged files must keep, and what watches over them.

Exit code 0, 2 or, if it was stopped, 130; a refusal says why; no traceback, no warning of a library, nothing
overwritten or left behind, nothing silent for long, bounded memory. Long work that tells how long it
takes, or how far it is, is stopped, as by Ctrl-C, and must end then.
"""

from __future__ import annotations

import contextlib
import gc
import re
import resource
import signal
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from unittest import mock

import metabandit as mb
from metabandit import progress
from metabandit.cli import display
from tests import fuzz
from tests.commands import call

# Seconds after which a run that tells of its progress is stopped, and of which none may pass in silence.
ENOUGH, HANG = 1.0, 60
MEMORY = 4e9
# Where a database cannot be reached, or is none, that is no fault of the command line.
CODES = {"store": (0, 1, 2, 130)}


class Hang(BaseException):
    """Nothing was told for too long."""


@dataclass
class Outcome:
    """How a command line ended: its exit code, what it said, its seconds, and the longest silence in them."""

    code: int = 0
    said: str = ""
    seconds: float = 0.0
    silence: float = 0.0


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder, without what SQLite keeps beside a database while it is used."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith(("-shm", "-wal"))
    }


@contextlib.contextmanager
def watched() -> Iterator[Outcome]:
    """Stop what goes on for long but tells of its progress; raise Hang if it tells nothing."""
    begun = last = time.monotonic()
    outcome = Outcome()

    def heard() -> float:
        nonlocal last
        now = time.monotonic()
        outcome.silence, last = max(outcome.silence, now - last), now
        signal.alarm(HANG)
        return now - begun

    @contextlib.contextmanager
    def bar(*_):
        def tell(*_, **__):
            if heard() > ENOUGH:
                raise KeyboardInterrupt

        yield tell

    def say(message):
        display.say(message)
        heard()
        # It was announced, or was stopped once already.
        if re.search("this takes about|takes longer|^stopped: measuring", message):
            raise KeyboardInterrupt

    def hang(*_):
        # The bar says so.
        if progress.is_compiling():
            heard()
            return
        raise Hang(f"nothing was told for {HANG} s")

    modules = [import_module(f"metabandit.cli.{name}") for name in (*fuzz.OPTIONS, "running")]
    before = signal.signal(signal.SIGALRM, hang)
    with contextlib.ExitStack() as patches:
        for module in modules:
            for name, stand_in in (("progress_bar", bar), ("say", say)):
                if hasattr(module, name):
                    patches.enter_context(mock.patch.object(module, name, stand_in))
        signal.alarm(HANG)
        try:
            yield outcome
        finally:
            outcome.seconds = heard()
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _check(kept: object, what: str) -> None:
    """A rule, also where pytest does not explain assertions."""
    if not kept:
        raise AssertionError(what)


def attack(line: list[str], folder: Path, resumed: str = "") -> Outcome:
    """A command line keeps the rules, whatever is in it.

    resumed: the file of a run that it goes on with, which is gone when the run has ended
    """
    before, peak_before = contents(folder), peak()
    try:
        with watched() as outcome, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # NumPy leaves a damaged archive to the garbage collector, which nobody sees.
            warnings.simplefilter("ignore", ResourceWarning)
            done = call(line, folder)
        outcome.code, outcome.said = done.returncode, said = done.returncode, done.stderr
        warned = [str(item.message) for item in caught]
        # A message repeats 200 characters of the input at the most.
        repeated = [item[:30] for item in line if len(item) > 250 and item[:250] in said]
        after = contents(folder)
        changed = [name for name in before if after.get(name) != before[name] and name != resumed]
        # A reproduction keeps what it has begun in a folder of its own.
        left = [name for name in after if re.search(r"(^|/)\.(?!unfinished)|\.lock$", name)]
        _check(
            done.returncode in CODES.get(line[0], (0, 2, 130)), f"exit {done.returncode}: {said}"
        )
        _check(done.returncode not in (1, 2) or said.strip(), "a refusal says why")
        _check("Traceback" not in said, said)
        _check(not warned, f"warnings {warned}")
        _check(not repeated, f"repeats {repeated}")
        _check(not changed or "--force" in line, f"overwritten {changed}")
        _check(not left, f"left behind {left}")
        # Where another test of this process had more before, there is nothing to see.
        _check(peak() < MEMORY or peak_before >= MEMORY, f"{peak() / 1e9:.1f} GB")
        return outcome
    finally:
        for name in reversed(contents(folder)):
            path = folder / name
            if name not in before:
                path.rmdir() if path.is_dir() else path.unlink()
        for name, content in before.items():
            if content is not None:
                (folder / name).write_bytes(content)


# What reads each kind of file.
_HALF = "--horizon | 10 | --out | half.json | --resume"
READERS = {
    "policy.json": "evaluate | policy.json | --horizon | 10 | --no-floor",
    "evaluated.json": "report | evaluated.json | --out | new.md",
    "learned.json": "report | learned.json | --out | new.md",
    "found.json": "report | found.json | --out | new.md",
    "trial.json": "report | trial.json | --out | new.md",
    "records.jsonl": "report | records.jsonl | --tables | new",
    "best.npz": "export | best.npz",
    "classes.npz": "search | --classes | classes.npz | --horizon | 3 | --top | 0",
    "half.trace.jsonl": f"learn | --space | r + a/(n + b) | --generations | 2 | {_HALF}",
    "half.search.npz": f"search | --length | 3 | --strategy | halving | {_HALF}",
    "half.10.npz": "evaluate | ucb1 | greedy | --method | monte-carlo | --episodes | 64 | --no-floor | "
    + _HALF,
    "log.csv": "replay | log.csv | --policy | greedy | --horizon | 5",
    "means.csv": "evaluate | greedy | --prior | table:path=means.csv | --episodes | 10 | --horizon | 5",
    "rewards.csv": "evaluate | greedy | --prior | empirical:path=rewards.csv,factor=0.2 | --episodes | 10 | --horizon | 5",
    "history.csv": "fit | history.csv",
    "store.db": "store | list | sqlite:///store.db",
}
# These are read by services, not by a command.
PLAYERS = ("player.json", "plays.jsonl", "store.db")
KINDS = [*READERS, "player.json", "plays.jsonl"]


def read_player(name: str, folder: Path) -> None:
    """Go on with a player."""
    if name == "store.db":
        url = f"sqlite:///{folder / name}"
        player = mb.policy("ucb1").player(2, store=url, experiment="e")
    else:
        player = mb.load_player(folder / name)
    with contextlib.closing(player):
        player.update(player.select(), 1.0)


def damaged(name: str, random: Random, folder: Path) -> Outcome:
    """A damaged file is read as it is, or refused."""
    whole = (folder / name).read_bytes()
    spoiled = fuzz.damage(whole, random)
    outcome = Outcome()
    try:
        _forget(folder / name)
        (folder / name).write_bytes(spoiled)
        if name in READERS:
            line = [part.strip() for part in READERS[name].split("|")]
            outcome = attack(line, folder, name if "--resume" in line else "")
        if name in PLAYERS:
            try:
                read_player(name, folder)
            except (mb.InputError, mb.StoreError) as error:
                outcome.code, outcome.said = 2, str(error)
    finally:
        _forget(folder / name)
        (folder / name).write_bytes(whole)
    return outcome


def _forget(path: Path) -> None:
    """Leave nothing of a database elsewhere."""
    if path.suffix != ".db":
        return
    gc.collect()  # those that are still open
    for kind in ("-shm", "-wal"):
        path.with_name(path.name + kind).unlink(missing_ok=True)
