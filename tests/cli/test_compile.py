"""`metabandit compile`: commands run in processes of their own, and what fails is told."""

from __future__ import annotations

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
    assert "Traceback" not in done.stderr
