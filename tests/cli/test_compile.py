"""`metabandit compile`: commands run in processes of their own, and what fails is told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from metabandit.cli import compile as compiling
from tests.commands import call


def test_commands_are_run(monkeypatch, tmp_path):
    # The whole list is run whenever kernels change, before the tests (Makefile).
    monkeypatch.setattr(compiling, "_FIRST", ("priors", "policies"))
    done = call(["compile"], tmp_path)
    assert done.returncode == 0
    assert "compiled for this machine" in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


def test_a_command_that_fails_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "_FIRST", ("evaluate nonsense",))
    done = call(["compile"], tmp_path)
    assert done.returncode == 1
    assert "`metabandit evaluate nonsense` failed" in done.stderr
    assert "unknown policy 'nonsense'" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_fails_says_why_even_in_a_box(monkeypatch, tmp_path):
    # Typer sets what it says of options in a box.
    monkeypatch.setattr(compiling, "_FIRST", ("evaluate greedy --nosuch",))
    done = call(["compile"], tmp_path)
    assert done.returncode == 1
    assert "No such option: --nosuch" in done.stderr
    assert "─" not in done.stderr.splitlines()[-1]


def test_a_process_that_is_ended_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "_FIRST", ("priors", "policies"))
    monkeypatch.setattr(compiling, "_run", aborted)
    done = call(["compile"], tmp_path)
    assert done.returncode == 1
    assert "was ended" in done.stderr
    assert "Traceback" not in done.stderr


def aborted(words):
    os.abort()


# What is compiled while a command runs; the clock of long horizons is used for short ones, too.
RECORDED = """
import sys
from numba.core import event
from metabandit.cli import app
from metabandit.learning import judges
judges._LONG_CLOCK = int(sys.argv[1])
with event.install_recorder("numba:compile") as compiled:
    assert not app(sys.argv[2:], standalone_mode=False)
names = {given.data["dispatcher"].py_func.__qualname__ for _, given in compiled.buffer}
print("compiled:", sorted(names), file=sys.stderr)
"""
COMMON = [
    (40_000, "evaluate ucb1 thompson kl-ucb gittins --horizon 50"),
    (40_000, "evaluate ucb1 thompson --arms 10 --horizon 50 --episodes 100"),
    (40_000, "evaluate ucb1 thompson --prior gaussian --arms 4 --horizon 20 --episodes 100"),
    (40_000, "optimal --horizon 50"),
    (40_000, "learn --horizon 20 --effort 0.01"),
    (40_000, "learn --arms 3 --horizon 20 --effort 0.01"),
    (100, "learn --arms 5 --horizon 30 --effort 0.01 --floor-effort 0.01"),
    (40_000, "search --horizon 20 --length 3"),
    (100, "search --arms 5 --horizon 30 --length 2 --effort 0.01 --floor-effort 0.01"),
]


@pytest.mark.slow
def test_common_commands_compile_nothing_afterwards(tmp_path):
    assert call(["compile"], tmp_path).returncode == 0
    for clock, words in COMMON:
        done = subprocess.run(
            [sys.executable, "-c", RECORDED, str(clock), *words.split()],
            cwd=tmp_path,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
        assert "compiled: []" in done.stderr, (words, done.stderr)
