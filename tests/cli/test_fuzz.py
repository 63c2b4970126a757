"""An attack on the command line: odd values and damaged files end with exit code 0 or 2 and a message.

The rules are in tests/attack.py; benchmarks/attack.py is the same with thousands of cases.
"""

from __future__ import annotations

import re
import sys
from random import Random

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import metabandit as mb
from metabandit.cli import app
from tests import fuzz
from tests.attack import KINDS, attack, damaged
from tests.commands import call
from tests.tiers import some

pytestmark = pytest.mark.usefixtures("short_reports")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that command lines name; a failed attack leaves its own beside them."""
    made = tmp_path_factory.mktemp("attack")
    fuzz.make_files(made, call)
    return made


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


def attacks(count: int):
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def _attack(random, folder):
    attack(fuzz.command_line(random), folder)


def test_every_command_and_option_is_attacked():
    commands = typer.main.get_command(app).commands
    # A service does not end by itself, its requests have tests of their own; compile takes no options.
    for name in set(commands) - {"serve", "compile"}:
        command = commands[name]
        options = [item for item in command.params if item.param_type_name == "option"]
        known = {text for item in options for text in (*item.opts, *item.secondary_opts)}
        assert known == set(fuzz.OPTIONS[name]), name


@attacks(some(20, 60))
@given(random=st.randoms(use_true_random=False))
def test_odd_command_lines(random, folder):
    _attack(random, folder)


@pytest.mark.slow
def test_many_odd_command_lines(folder):
    for seed in range(40):
        _attack(Random(seed), folder)


@pytest.mark.parametrize("name", KINDS)
@attacks(some(2, 4))
@given(random=st.randoms(use_true_random=False))
def test_damaged_files(random, name, folder):
    damaged(name, random, folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_many_damaged_files(name, folder):
    for seed in range(8):
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
    ("evaluate | greedy | --out | .", "must end in .json"),
    (["evaluate", "greedy", "--out", ""], "must end in .json"),
    (["evaluate", "greedy", "--out", "a" * 300 + ".json"], "File name too long"),
    (["evaluate", "\udcff.json"], "does not exist"),
    (["evaluate", "greedy", "--horizon", "9" * 5000], "Invalid value"),
    ("learn | --effort | 1e300", "would take about"),
    ("learn | --protocol | paper:problems=1000000000000", "would take about"),
    ("optimal | --horizon | 700 | --batch | 700", "this takes about"),
    ("search | --length | 2 | --strategy | ucb1-tuned | --pulls | 1000000000000 | --horizon | 10000",
     "would take about"),
    ("report | deep.json", "neither JSON"),
    ("report | /dev/full", "it is a device"),
    ("search | --length | 2 | --force | --out | .", "must end in .json"),
    ("trial | ab-test | --at | 0.3,0.5 | --episodes | 1000000000000000", "GB of memory"),
    ("evaluate | greedy | --horizon | 16777215 | --episodes | 10", "this takes about"),
    ("store | list | sqlite:///none.db", "has no tables"),
    (["store", "list", "sqlite:///\udcff.db"], "is not the URL"),
    ("evaluate | deep.json", "nested too deeply"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "word"), FOUND, ids=[str(line)[:60] for line, _ in FOUND])
def test_what_attacks_found(line, word, folder):
    given = [part.strip() for part in line.split("|")] if isinstance(line, str) else line
    assert word in " ".join(re.sub(r"[│╭╰─╮╯\n]+", " ", attack(given, folder).said).split())


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
