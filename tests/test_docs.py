"""The code in README and docs runs, and so do the examples."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

from metabandit.cli import app
from metabandit.report.content import significant
from metabandit.studies.maes2012 import findings
from metabandit.studies.maes2012.paper import HORIZONS, table1
from metabandit.studies.maes2012.plan import studied_policies
from metabandit.studies.records import Records

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# These start processes, as the tests of what they register need not, or write a journal play by play.
SLOW = {"cluster.md-0", "production.md-0", "extending.md-4", "extending.md-6", "extending.md-7"}
BLOCKS = [
    pytest.param(*code, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", page.read_text("utf-8"), re.S)
    )
    for name in [f"{page.name}-{number}"]
]

# What registers something, or starts processes that import it, gets a process of its own.
APART = re.compile(r"\bregister|__main__|ProcessPool")


def run(*arguments: str, folder: Path) -> str:
    """What a script prints that runs in a process of its own."""
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(code: str, folder: Path) -> str:
    """What code prints."""
    if APART.search(code):
        return run("-c", code, folder=folder)
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(code, "docs", "exec"), {"__name__": "__main__"})
    return output.getvalue()


@pytest.mark.parametrize(("code", "output"), BLOCKS)
def test_code_in_the_docs_runs_and_prints_what_stands_below_it(code, output, tmp_path):
    assert printed(code, tmp_path) == output or not output


# In a line of its own, perhaps continued; or in a sentence.
COMMAND = re.compile(r"^    metabandit ((?:[^\\\n]|\\[\s\S])*)|`metabandit ([^`]*)`", re.M)
EPILOGUES = [command.epilog for command in app.registered_commands]
COMMANDS = [
    pytest.param(" ".join(found.groups("")), id=f"{name}-{number}")
    for name, text in [
        *((page.name, page.read_text("utf-8")) for page in PAGES),
        ("help", "\n".join(EPILOGUES)),
    ]
    for number, found in enumerate(COMMAND.finditer(text))
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_in_the_docs_are_understood(line):
    """Every option is one that the command has, with a value of its type; nothing is run."""
    words = shlex.split(line.replace("\\\n", " "), comments=True)
    name, *arguments = itertools.takewhile(lambda word: word not in ("|", ">", "&&", "&"), words)
    commands = typer.main.get_command(app).commands
    if name.startswith("-"):
        assert name in ("--help", "--version", "--install-completion")
    elif arguments and "..." not in arguments:  # else the name of a command in a sentence
        commands[name].make_context(name, arguments)
    else:
        assert name in commands


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run_and_are_short(path, tmp_path):
    assert "to the best" in run(str(path), folder=tmp_path)
    assert len(path.read_text("utf-8").splitlines()) < 40


@pytest.mark.slow
def test_a_new_option_is_one_line(tmp_path):
    """The recipe of docs/extending.md, on a copy of the sources with what was compiled for them."""
    guide = (ROOT / "docs" / "extending.md").read_text("utf-8")
    line = re.search(r"```\n(    reward_seed: .*\n)```", guide).group(1)
    shutil.copytree(ROOT / "src", tmp_path / "src")
    path = tmp_path / "src" / "metabandit" / "cli" / "evaluate.py"
    code = path.read_text("utf-8")
    before = "    task: options.Task,\n"
    path.write_text(code.replace(before, f"{before}{line}"))

    script = """if True:
        import contextlib, sys
        from metabandit.cli import main
        command = "evaluate ucb1 --horizon 20 --method monte-carlo --json --episodes 1000".split()
        for more in (["--reward-seed", "0"], [], ["--reward-seed", "7"]):
            sys.argv[1:] = command + more
            with contextlib.suppress(SystemExit):
                main()
            print("----")
    """
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
    )  # fmt: skip
    *printed, rest = done.stdout.split("----\n")
    zero, without, seven = (json.loads(item)["policies"][0]["mean_regret"] for item in printed)
    assert zero == without != seven
    assert rest == ""


def test_links_in_the_docs_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            made = target in ("api.md", "commands.md")  # by docs/hooks.py
            assert made or (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_extra_that_is_named_exists():
    """In the docs, and in messages that say what to install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for path in (*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "examples").glob("*")):
        for names in re.findall(r"metabandit\[([\w,]+)\]", path.read_text("utf-8")):
            unknown = set(names.split(",")) - set(project["optional-dependencies"])
            assert not unknown, f"{path.name}: {unknown}"


def test_what_it_is_worth_is_what_the_records_say():
    """What it is worth: every number is a record's."""
    records = Records.read(ROOT / "docs" / "reproduction" / "records.jsonl")
    known = {item.id: item for item in studied_policies()}
    ids = {
        "UCB1": "printed/ucb1:C=2",
        "Thompson sampling": "today/thompson",
        "UCB1-Tuned": "printed/ucb1-tuned",
        "the paper's Power-2, reproduced": "found/power-2/{}",
        "**a formula found by metabandit**": "ours/formula/{}",
        "**Power-1 learned by metabandit**": "ours/power-1/{}",
    }
    text = (ROOT / "docs" / "paper.md").read_text("utf-8").partition("## What it is worth")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", text, re.M)[:10]
    shown = {row[0].strip(): row[1:] for row in rows}
    for place, horizon in enumerate(HORIZONS):
        for label, name in ids.items():
            item = known[name.format(horizon)]
            value = findings.regret(records, item, horizon)
            written = shown[label][place].partition(" ±")[0]
            assert written == significant(value, len(written.replace(".", "").lstrip("0")))
        best = min(row.paper["bernoulli", horizon] for row in table1())
        assert float(shown["the best row of the paper"][place]) == best
        for label, start in (
            ("the Bayes-optimal floor", "free"),
            ("the same if each arm must be played once first, as in the paper", "each-once"),
        ):
            assert shown[label][place] == significant(findings.floor(records, horizon, start), 4)
