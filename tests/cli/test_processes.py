"""What takes a process of its own: starting, exit codes, signals, closed pipes, kills."""

import json
import signal
import subprocess
import sys
import time

import pytest

import metabandit
from tests.commands import SHORT_REPORTS, answer, begin, call, refused, run

pytestmark = pytest.mark.usefixtures("short_reports")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("evaluate | ucb1 | greedy | --horizon | 10", 0),
        ("evaluate | greedy | --prior | bernouli", 2),
        ("evaluate | greedy | --nosuch", 2),
    ],
)
def test_a_process_says_what_a_call_says(command, code, tmp_path):
    """Most tests of the command line call it; this is what entitles them to."""
    process, called = run(command, tmp_path), call(command, tmp_path)
    assert process.returncode == called.returncode == code
    assert process.stdout == called.stdout
    assert process.stderr.replace("python -m metabandit", "metabandit") == called.stderr
    assert "Traceback" not in process.stderr


def test_help_and_version_load_no_numpy(tmp_path):
    code = """if True:
        import sys
        from metabandit.cli import main
        try:
            main()
        finally:
            assert not {"numpy", "scipy", "numba", "matplotlib"} & set(sys.modules)
    """
    for option, words in (("--version", metabandit.__version__), ("--help", "evaluate")):
        done = subprocess.run(
            [sys.executable, "-c", code, option], capture_output=True, text=True, cwd=tmp_path
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert words in done.stdout


def test_output_that_cannot_be_written_is_an_error(tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "metabandit", "policies", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
    assert done.returncode == 1
    assert "the output cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


LONG = """learn | --space | power-1 | --horizon | 60 | --generations | 40 | --seed | 7 | --out"""


def wait_until(condition, process):
    """Until a condition holds, which a process is to bring about."""
    for _ in range(2400):
        if condition():
            return
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    raise AssertionError("nothing was recorded within two minutes")


def wait_for_generations(trace, count, process):
    """Until so many generations are on record."""
    wait_until(lambda: trace.exists() and trace.read_text("utf-8").count("\n") > count, process)


@pytest.mark.slow
def test_a_killed_run_is_resumed_bit_for_bit(tmp_path):
    answer(f"{LONG} | whole.json", tmp_path)
    whole = (tmp_path / "whole.json").read_bytes()
    out = tmp_path / "killed.json"
    for attempt, threads in enumerate((2, 1)):
        command = f"{LONG} | {out.name} | --threads | {threads}"
        with begin(command + ("| --resume" if attempt else ""), tmp_path) as process:
            wait_for_generations(tmp_path / "killed.trace.jsonl", 5 + 12 * attempt, process)
            process.send_signal(signal.SIGKILL)
            process.wait()
    assert not out.exists()
    refused(command, tmp_path, "--resume")
    answer(f"{command} | --resume", tmp_path)
    assert out.read_bytes() == whole


@pytest.mark.parametrize("name", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow)])
def test_an_interrupted_run_writes_the_best_so_far(tmp_path, name):
    command = "learn | --space | power-1 | --horizon | 40 | --effort | 50 | --out | policy.json"
    with begin(command, tmp_path, SHORT_REPORTS) as process:
        wait_for_generations(tmp_path / "policy.trace.jsonl", 3, process)
        process.send_signal(getattr(signal, name))
        printed, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "ended: interrupted" in printed
    content = json.loads((tmp_path / "policy.json").read_text("utf-8"))
    assert content["learned"]["stopped"] == "interrupted"
    assert content["learned"]["regret"]["mean"] > 1.0
    answer("evaluate | policy.json | --horizon | 40", tmp_path)


SEARCH = """search | --horizon | 20 | --length | 4 | --strategy | ucb1-tuned | --pulls | 500000 | --top | 3
| --out"""
# It keeps its state from its first step on.
OFTEN = "from metabandit import checkpoint\ncheckpoint._WRITTEN = 0.0"


@pytest.mark.slow
def test_a_killed_search_is_resumed(tmp_path):
    answer(f"{SEARCH} | whole.json", tmp_path)
    state = tmp_path / "killed.search.npz"
    with begin(f"{SEARCH} | killed.json | --threads | 1", tmp_path, OFTEN) as process:
        wait_until(state.exists, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "killed.json").exists()
    for wrong, words in (("", "--resume"), ("| --resume | --seed | 4", "another search")):
        refused(f"{SEARCH} | killed.json {wrong}", tmp_path, words)
    answer(f"{SEARCH} | killed.json | --resume", tmp_path)
    assert (tmp_path / "killed.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert not state.exists()


@pytest.mark.slow
def test_an_interrupted_search_writes_the_best_so_far(tmp_path):
    longer = SEARCH.replace("500000", "200000000") + "| best.json"
    with begin(longer, tmp_path, f"{OFTEN}\n{SHORT_REPORTS}") as process:
        wait_until((tmp_path / "best.search.npz").exists, process)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "ended: interrupted" in printed
    content = json.loads((tmp_path / "best.json").read_text("utf-8"))
    assert content["learned"]["stopped"] == "interrupted"
