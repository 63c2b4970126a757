"""A Dask cluster on the real command line: the same figures, and what can go wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest

import metabandit as mb
from metabandit.cli.running import go_on
from metabandit.studies.run import RECORDS
from tests import commands
from tests.sites import Site, exports, figures, until

pytestmark = pytest.mark.usefixtures("short_reports")
COMMAND = commands.started(commands.SHORT_REPORTS)
EVALUATE = (
    "evaluate", "ucb1", "kl-ucb", "thompson", "--horizon", "1000", "--episodes", "25000",
    "--no-floor", "--json",
)  # fmt: skip
# Exactly, which leaves little to measure in the end.
LEARN_ON = ("learn", "--horizon", "120", "--json")  # until something ends it
LEARN = (*LEARN_ON, "--generations", "12")
SEARCH = ("search", "--horizon", "110", "--length", "4", "--json")
REPRODUCE = ("reproduce", "curves", "--json", "--out", "records")
KINDS = {"evaluate": EVALUATE, "learn": LEARN, "search": SEARCH, "reproduce": REPRODUCE}


def heed_interrupts():
    """Tests that run in the background ignore SIGINT, and what they start would, too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(folder, *arguments):
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=(folder / "errors").open("w"),
        text=True,
        cwd=folder,
        preexec_fn=heed_interrupts,
    )


def finish(process, folder):
    """The exit code, what was printed, and what was said; what hangs would do so for ever."""
    output = process.communicate(timeout=120)[0]
    return process.returncode, output, (folder / "errors").read_text()


def result_of(kind, output):
    found = json.loads(output)
    if kind == "reproduce":
        return {item["id"]: figures(item["result"]) for item in found["records"]}
    return figures(found)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What each kind of run gives in one process."""
    known = {}

    def find(kind):
        if kind not in known:
            output = commands.answer(KINDS[kind], tmp_path_factory.mktemp(kind))
            known[kind] = result_of(kind, output)
        return known[kind]

    return find


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A scheduler for all that do not kill it."""
    with Site(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.cluster
def test_a_cluster_gives_the_same_though_a_worker_is_killed(kind, plain, site, tmp_path):
    site.have(2)
    process = start(tmp_path, *KINDS[kind], "--cluster", site.address)
    # In the middle: the second worker has some pieces behind it.
    log = tmp_path / "errors"
    until(lambda: "workers      2" in log.read_text(), "the run")
    until(lambda: site.least() >= 1, "pieces")
    os.kill(site.workers[1].pid, signal.SIGKILL)
    code, output, errors = finish(process, tmp_path)
    assert code == 0, errors
    assert result_of(kind, output) == plain(kind)


@pytest.mark.cluster
def test_workers_of_its_own(plain, tmp_path):
    process = start(tmp_path, *EVALUATE, "--workers", "2")
    code, output, errors = finish(process, tmp_path)
    assert (code, errors) == (0, "workers      2 at this machine, 2 pieces at once\n")
    assert result_of("evaluate", output) == plain("evaluate")


def test_the_guide_calms_dask_as_own_workers_do():
    from metabandit.cluster.joining import CALM

    names = {name.upper().replace(".", "__").replace("-", "_"): str(CALM[name]) for name in CALM}
    assert exports() == {f"DASK_{name}": value for name, value in names.items()}


@pytest.mark.cluster
def test_ctrl_c_is_not_for_the_workers(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, *LEARN_ON, "--generations", "4000", "--workers", "2", "--out", "policy.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    trace = tmp_path / "policy.trace.jsonl"
    until(lambda: trace.exists() and trace.read_bytes().count(b"\n") > 3, "generations")
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "stopped: measuring the best so far" in errors
    assert "Traceback" not in errors
    assert json.loads(output)["learned"]["stopped"] == "interrupted"


@pytest.mark.cluster
def test_a_worker_that_joins_late_is_used(plain, site, tmp_path):
    site.have(1)
    process = start(tmp_path, *LEARN, "--cluster", site.address)
    until(lambda: site.least() >= 1, "pieces")
    site.add()
    code, output, errors = finish(process, tmp_path)
    assert code == 0, errors
    assert result_of("learn", output) == plain("learn")
    assert site.least() >= 1


# What can go wrong -------------------------------------------------------------------------------


def refused(folder, *arguments):
    """A run that ends with an error and says why."""
    code, output, errors = finish(start(folder, *arguments), folder)
    assert output == ""
    assert "Traceback" not in errors
    return code, errors


@pytest.mark.cluster
def test_a_scheduler_that_cannot_be_reached(tmp_path):
    code, errors = refused(tmp_path, *EVALUATE, "--cluster", "tcp://127.0.0.1:9")
    assert code == 2
    assert "the scheduler tcp://127.0.0.1:9 cannot be reached" in errors
    assert "dask scheduler" in errors


@pytest.mark.parametrize("says", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n"])
@pytest.mark.cluster
def test_what_is_no_scheduler(tmp_path, says):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            kept = []
            with suppress(OSError):
                while True:
                    kept.append(server.accept()[0])
                    if says is not None:
                        kept[-1].sendall(says)

        threading.Thread(target=answer, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        code, errors = refused(tmp_path, *EVALUATE, "--cluster", address)
        server.shutdown(socket.SHUT_RDWR)
    assert code == 2
    assert f"the scheduler {address} cannot be reached" in errors


@pytest.mark.slow
def test_ctrl_c_says_what_is_kept(tmp_path):
    longer = [item for item in EVALUATE if item != "--json"]
    longer[longer.index("25000")] = "50000000"
    # A file of one's own beside it is not what was done.
    (tmp_path / "result.log").write_text("mine")
    assert go_on(tmp_path / "result.json", tmp_path / "result.1000.npz").startswith("nothing")
    process = start(tmp_path, *longer, "--out", "result.json")
    until((tmp_path / "result.1000.npz").exists, "a first state")
    process.send_signal(signal.SIGINT)
    code, _, errors = finish(process, tmp_path)
    assert code == 130
    assert "stopped: what was done is kept: give the same options and --resume" in errors


@pytest.mark.cluster
def test_a_scheduler_without_workers(site, tmp_path):
    site.have(0)
    code, errors = refused(tmp_path, *EVALUATE, "--cluster", site.address)
    assert code == 2
    assert f"has no worker; start some with `dask worker {site.address}`" in errors


@pytest.mark.cluster
def test_a_worker_that_hangs_is_told(site, tmp_path):
    site.have(2)
    hanging = site.workers[1]
    # At the beginning it is refused.
    hanging.send_signal(signal.SIGSTOP)
    code, errors = refused(tmp_path, *EVALUATE, "--cluster", site.address)
    assert code == 2
    assert "does not answer; what it is given would wait for it" in errors
    # Later it is named; and what it was given is done by the other once it has ended.
    hanging.send_signal(signal.SIGCONT)
    process = start(tmp_path, *LEARN, "--cluster", site.address)
    until(lambda: site.least() >= 1, "pieces")
    hanging.send_signal(signal.SIGSTOP)
    until(lambda: "not been heard of" in (tmp_path / "errors").read_text(), "the message")
    hanging.kill()
    code, _, errors = finish(process, tmp_path)
    assert code == 0, errors


@pytest.mark.cluster
def test_ctrl_c_before_there_is_a_worker(site, tmp_path):
    site.have(0)
    for command in (LEARN, SEARCH):
        process = start(tmp_path, *command, "--cluster", site.address, "--out", "result.json")
        until(lambda: site.clients() > 1, "the run to join")
        process.send_signal(signal.SIGINT)
        code, _, errors = finish(process, tmp_path)
        assert code == 130
        assert "stopped: nothing was" in errors


@pytest.mark.parametrize("options", [("--cluster", "host"), ("--workers", "0")])
def test_bad_options_are_refused(tmp_path, options):
    commands.refused([*EVALUATE, *options], tmp_path, options[1])


def test_without_dask_it_says_what_to_install(tmp_path):
    (tmp_path / "distributed.py").write_text("raise ImportError('not here')")
    found = subprocess.run(
        [*COMMAND, *EVALUATE, "--workers", "2"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 2
    assert "pip install 'metabandit[cluster]'" in found.stderr


@pytest.fixture(scope="module")
def other_version(tmp_path_factory):
    """The same metabandit with one more line."""
    folder = tmp_path_factory.mktemp("other")
    source = Path(mb.__file__).parent
    for path in source.rglob("*"):
        if path.suffix in (".py", ".csv", ".c", ".mjs"):
            copy = folder / "metabandit" / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    with (folder / "metabandit" / "errors.py").open("a") as file:
        file.write("# Another version.\n")
    return folder


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.cluster
def test_a_worker_of_another_version(site, tmp_path, other_version, late):
    site.have(1)
    if not late:
        site.add(path=other_version)
    process = start(tmp_path, *LEARN_ON, "--generations", "400", "--cluster", site.address)
    if late:
        until(lambda: site.least() >= 1, "pieces")
        site.add(path=other_version)
    code, _, errors = finish(process, tmp_path)
    site.have(0)
    assert code == (1 if late else 2)
    assert "has metabandit" in errors
    assert "instead of" in errors
    assert "Traceback" not in errors


def kept(kind, folder):
    """How much was finished."""
    if kind == "evaluate":
        return int(np.load(folder / "result.1000.npz")["done"])
    if kind == "search":
        return float(np.load(folder / "result.search.npz")["now_done"])
    path = folder / "result.trace.jsonl" if kind == "learn" else folder / "records" / RECORDS
    if not path.exists():
        return 0
    return len(path.read_text("utf-8").splitlines()) - 1


@pytest.mark.parametrize(
    ("kind", "lost"), [*((kind, "workers") for kind in KINDS), ("learn", "scheduler")]
)
@pytest.mark.cluster
def test_what_was_finished_is_kept_when_all_is_lost(kind, lost, plain, site, tmp_path):
    command = [item for item in KINDS[kind] if item != "--json"]
    if kind != "reproduce":
        command += ["--out", "result.json"]
    folder = tmp_path / "run"
    with Site(tmp_path) if lost == "scheduler" else nullcontext(site) as site:
        site.have(1)
        process = start(folder, *command, "--cluster", site.address)
        until(lambda: "workers      1" in (folder / "errors").read_text(), "the run")
        if kind == "reproduce":
            until(lambda: kept(kind, folder) > 0, "a record")
        else:
            # Of a generation there are a few, and what a worker has done must have come back.
            until(lambda: site.least() >= {"learn": 7, "evaluate": 4, "search": 1}[kind], "pieces")
        for victim in [site.scheduler] if lost == "scheduler" else site.workers:
            victim.kill()
        code, _, errors = finish(process, folder)
    assert code == 1, errors
    assert ("lost its last worker" if lost == "workers" else "the scheduler tcp://") in errors
    assert "go on" in errors or "goes on" in errors
    assert "Traceback" not in errors
    # In one process, from what is there.
    assert kept(kind, folder) > 0
    again = () if kind == "reproduce" else ("--resume",)
    output = commands.answer([*command, *again, "--json"], folder)
    assert result_of(kind, output) == plain(kind)
