"""An attack on the command line: odd values and damaged files end with exit code 0 or 2 and a message.

No traceback, no warning of a library, nothing overwritten, nothing left behind, no hang, bounded memory.
Long work that tells how long it takes, or how far it is, is stopped, as by Ctrl-C, and must end then.
"""

from __future__ import annotations

import contextlib
import re
import resource
import signal
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import metabandit as mb
from metabandit.cli import display
from tests import fuzz
from tests.commands import call

# Seconds after which a run that tells of its progress is stopped, and of which none may pass untold.
ENOUGH, HANG = 1.0, 60
MEMORY = 4e9


class Hang(BaseException):
    """Nothing was told for too long."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that command lines name; a failed attack leaves its own beside them."""
    made = tmp_path_factory.mktemp("attack")
    fuzz.make_files(made, call)
    return made


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@contextlib.contextmanager
def watched():
    """Stop what goes on for long but tells of its progress; raise Hang if it tells nothing."""
    begun = time.monotonic()

    @contextlib.contextmanager
    def bar(*_):
        def tell(*_, **__):
            signal.alarm(HANG)
            if time.monotonic() - begun > ENOUGH:
                raise KeyboardInterrupt

        yield tell

    def say(message):
        display.say(message)
        signal.alarm(HANG)
        # It was announced, or was stopped once already.
        if re.search("this takes about|takes longer|^stopped: measuring", message):
            raise KeyboardInterrupt

    def hang(*_):
        raise Hang

    modules = [import_module(f"metabandit.cli.{name}") for name in (*fuzz.OPTIONS, "running")]
    before = signal.signal(signal.SIGALRM, hang)
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            for name, stand_in in (("progress_bar", bar), ("say", say)):
                if hasattr(module, name):
                    patch.setattr(module, name, stand_in)
        signal.alarm(HANG)
        try:
            yield
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """What is compiled once takes longer than a command may be silent."""
    two, known = mb.Bernoulli(arms=2), mb.Bernoulli(arms=2, alpha=1e7, beta=1e7)
    for prior in (two, known):
        for policy in ("r", "thompson", "ucb2"):
            mb.evaluate(
                policy, prior, 5, start=None if policy != "r" else "prior-counts", episodes=64
            )
    for feedback in (None, mb.Feedback(batch=2)):
        mb.evaluate("r", two, 5, method="exact", feedback=feedback)
    mb.evaluate("r", mb.Bernoulli(arms=3), 5, method="exact")


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def attack(line: list[str], folder: Path) -> str:
    """A command line keeps the rules, whatever is in it; what it says."""
    before, peak_before = contents(folder), peak()
    try:
        with watched(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # NumPy leaves a damaged archive to the garbage collector, which nobody sees.
            warnings.simplefilter("ignore", ResourceWarning)
            done = call(line, folder)
        said = done.stderr
        assert done.returncode in (0, 2, 130), said
        assert done.returncode != 2 or said.strip(), "a refusal says why"
        assert "Traceback" not in said
        assert [str(item.message) for item in caught] == []
        for argument in line:
            # A message repeats 200 characters of the input at the most.
            assert len(argument) <= 250 or argument[:250] not in said
        after = contents(folder)
        if "--force" not in line:
            assert {name: after.get(name) for name in before} == before
        assert [name for name in after if Path(name).name.startswith(".")] == []
        assert [name for name in after if name.endswith(".lock")] == []
        # Where another test of this process had more before, there is nothing to see.
        assert peak() < MEMORY or peak_before >= MEMORY
        return said
    finally:
        for name in reversed(contents(folder)):
            path = folder / name
            if name not in before:
                path.rmdir() if path.is_dir() else path.unlink()
        for name, content in before.items():
            if content is not None:
                (folder / name).write_bytes(content)


def attacks(count: int):
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def _attack(random, folder):
    attack(fuzz.command_line(random), folder)


@attacks(60)
@given(random=st.randoms(use_true_random=False))
def test_odd_command_lines(random, folder):
    _attack(random, folder)


@pytest.mark.slow
def test_many_odd_command_lines(folder):
    for seed in range(100):
        _attack(Random(seed), folder)


# What reads each kind of file.
READERS = {
    "policy.json": "evaluate | policy.json | --horizon | 10 | --no-floor",
    "evaluated.json": "report | evaluated.json | --out | new.md",
    "best.npz": "export | best.npz",
    "classes.npz": "search | --classes | classes.npz | --horizon | 3 | --top | 0",
    "log.csv": "replay | log.csv | --policy | greedy | --horizon | 5",
    "means.csv": "evaluate | greedy | --prior | table:path=means.csv | --episodes | 10 | --horizon | 5",
}


def damaged(name: str, random, folder: Path) -> None:
    """A damaged file is read as it is, or refused."""
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(fuzz.damage(whole, random))
    try:
        if name == "player.json":
            with contextlib.suppress(mb.InputError):
                mb.load_player(folder / name)
        else:
            attack([part.strip() for part in READERS[name].split("|")], folder)
    finally:
        (folder / name).write_bytes(whole)


@pytest.mark.parametrize("name", [*READERS, "player.json"])
@attacks(8)
@given(random=st.randoms(use_true_random=False))
def test_damaged_files(random, name, folder):
    damaged(name, random, folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*READERS, "player.json"])
def test_many_damaged_files(name, folder):
    for seed in range(25):
        damaged(name, Random(seed), folder)


# What an attack found before, with a word of the message.
FOUND = [
    ("evaluate | greedy | --episodes | 1000000000000000", "would take about"),
    ("evaluate | greedy | --runs | 1000000000000 | --episodes | 1000000000000", "runs per problem"),
    ("evaluate | greedy | --threads | 1000000000000", "threads must be at most"),
    ("evaluate | greedy | --prior | table:path=wide.csv", "columns"),
    ("evaluate | greedy | --prior | gaussian:noise=1e300", "another unit"),
    ("evaluate | greedy | --prior | beta:concentration=1e9", "between 1e-6 and 1e6"),
    ("evaluate | greedy | --prior | truncated-gaussian:low=0,high=1e-300", "another unit"),
    ("evaluate | greedy | --method | exact | --batch | 4096 | --horizon | 4096", "GB of memory"),
    ("evaluate | greedy | --out | .", "ends in .json"),
    (["evaluate", "greedy", "--out", ""], "ends in .json"),
    (["evaluate", "greedy", "--out", "a" * 300 + ".json"], "File name too long"),
    (["evaluate", "\udcff.json"], "does not exist"),
    (["evaluate", "greedy", "--horizon", "9" * 5000], "Invalid value"),
    ("learn | --effort | 1e300", "would take about"),
    ("learn | --protocol | paper:problems=1000000000000", "would take about"),
    ("optimal | --horizon | 700 | --batch | 700", "this takes about"),
    ("search | --length | 2 | --strategy | ucb1-tuned | --pulls | 1000000000000 | --horizon | 10000",
     "would take about"),
    ("report | deep.json", "neither JSON"),
    ("evaluate | deep.json", "nested too deeply"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "word"), FOUND, ids=[str(line)[:60] for line, _ in FOUND])
def test_what_attacks_found(line, word, folder):
    given = [part.strip() for part in line.split("|")] if isinstance(line, str) else line
    assert word in " ".join(re.sub(r"[│╭╰─╮╯\n]+", " ", attack(given, folder)).split())


def test_hundreds_of_constants_make_their_classes(folder):
    numbers = ",".join(map(str, range(1, 400)))
    printed = call(["formulas", "--length", "2", "--constants", numbers, "--json"], folder)
    assert mb.make_classes(2, grammar=mb.Grammar.read(constants=numbers)).trees
    assert '"formulas": 403' in printed.stdout


def test_a_report_has_no_live_links(folder):
    import json

    run = json.loads((folder / "evaluated.json").read_text())
    run["policies"][0]["policy"] = r"[x](javascript:alert(1)) \[y](javascript:alert(2)) <b>"
    (folder / "evil.json").write_text(json.dumps(run))
    assert call("report | evil.json | --out | evil.md", folder).returncode == 0
    text = (folder / "evil.md").read_text()
    assert "javascript" in text
    # A bracket with an odd number of backslashes before it ends no link.
    for match in re.finditer(r"(\\*)\]\(javascript", text):
        assert len(match.group(1)) % 2 == 1
    for name in ("evil.json", "evil.md"):
        (folder / name).unlink()


def test_the_streams_may_be_closed_or_narrow(tmp_path):
    import subprocess

    command = [sys.executable, "-m", "metabandit", "priors"]
    for redirection, code in ((">&-", 2), ("2>&-", 0), (">/dev/full", 1), (">&- 2>&-", 2)):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {redirection}', "sh", *command], capture_output=True, text=True
        )
        assert done.returncode == code, redirection
        assert "Traceback" not in done.stderr
