"""Compiled code is shared: processes that want the same kernel at once compile it once in all."""

import fcntl
import os
import subprocess
import sys
import time

import numba
import pytest

from metabandit.kernels import jit

# A kernel that calls another, both asked for at once by two threads of each process.
KERNELS = """
from metabandit.kernels.jit import DRAW, jit, pointer

@jit
def inner(x):
    total = x
    for step in range(10):
        total += step * x
    return total

@jit
def outer(x):
    return inner(x) * 2

@pointer(DRAW)
def draw(uniform, parameters, reward):
    for lane in range(uniform.size):
        reward[lane] = inner(uniform[lane])
"""
PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
from numba.core import event
import kernels

value = eval(sys.argv[1])
print("ready", flush=True)
input()
with event.install_recorder("numba:compile") as compiled, ThreadPoolExecutor(3) as pool:
    outer = pool.submit(kernels.outer, value)
    inner = pool.submit(kernels.inner, value)
    draw = pool.submit(kernels.draw).result()
    found = outer.result(), inner.result()
starts = [given.data["dispatcher"].py_func.__name__ for _, given in compiled.buffer if given.is_start]
print(found, starts + ["draw"] * (1 - draw.cache_hits))
"""


@pytest.fixture
def begin(tmp_path):
    """Start a program that can import the kernels of a folder and says when it is ready."""
    begun = []

    places = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])

    def start(program, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": places},
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def finish(processes):
    """Let processes that wait go on at once; what each of them prints."""
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    results = []
    for process in processes:
        printed, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        results.append(printed.strip())
    return results


@pytest.mark.slow
def test_processes_that_start_at_once_compile_once(tmp_path, begin):
    (tmp_path / "kernels.py").write_text(KERNELS)
    values = ["1", "1", "0.5"]
    printed = finish([begin(PROGRAM, value) for value in values])
    expected = {"1": "(92, 46)", "0.5": "(46.0, 23.0)"}
    compiled = []
    for value, line in zip(values, printed, strict=True):
        assert line.startswith(expected[value])
        compiled += eval(line.removeprefix(expected[value]))
    # The numbers are int64 and float64, and the pointer calls the inner kernel with float32.
    assert sorted(compiled) == ["draw"] + ["inner"] * 3 + ["outer"] * 2
    for value in ("1", "0.5"):
        assert finish([begin(PROGRAM, value)]) == [f"{expected[value]} []"], "all is on disk"
    for damaged in ("*.nbi", "*.nbc"):
        for path in (tmp_path / "__pycache__").glob(damaged):
            path.write_bytes(path.read_bytes()[:20])
        (line,) = finish([begin(PROGRAM, "1")])
        assert line.startswith(expected["1"])
        assert "outer" in line, "it is compiled again"
        assert finish([begin(PROGRAM, "1")]) == [f"{expected['1']} []"], "and kept"


def is_locked(path):
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_compilation_that_fails_lets_others_in(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    seen = []

    @jit.jit
    def broken(x):
        return x.nothing_of_that_name

    lock = jit._lock_of(broken)
    assert tmp_path in lock.parents
    kernel_compile = broken._compiler.compile
    broken._compiler.compile = lambda *given: seen.append(is_locked(lock)) or kernel_compile(*given)
    with pytest.raises(numba.TypingError):
        broken(1)
    assert seen == [True]
    assert not is_locked(lock)


HOLDER = """
import sys, time
from pathlib import Path
from metabandit.kernels import jit

with jit._alone(Path(sys.argv[1])):
    print("inside", flush=True)
    time.sleep(600)
"""


def test_a_killed_process_lets_others_in(tmp_path, begin):
    lock = tmp_path / "kernel.lock"
    process = begin(HOLDER, lock)
    assert process.stdout.readline() == "inside\n"
    assert is_locked(lock)
    process.kill()
    process.wait()
    with jit._alone(lock):
        assert is_locked(lock)
        with jit._alone(lock):
            pass
        assert is_locked(lock), "until the outer block is left"
    assert not is_locked(lock)


def test_nobody_waits_for_ever(tmp_path, begin, monkeypatch):
    lock = tmp_path / "kernel.lock"
    process = begin(HOLDER, lock)
    assert process.stdout.readline() == "inside\n"
    monkeypatch.setattr(jit, "_PATIENCE", 0.1)
    entered = False
    with jit._alone(lock):
        entered = True
    assert entered
    assert process.poll() is None


@pytest.mark.parametrize("without", ["folder", "locks"])
def test_where_nothing_can_be_locked_the_block_is_entered(tmp_path, monkeypatch, without):
    lock = tmp_path / "nowhere" / "kernel.lock" if without == "folder" else tmp_path / "kernel.lock"
    if without == "locks":
        monkeypatch.setattr(jit, "fcntl", None)
    with pytest.raises(ZeroDivisionError), jit._alone(lock):
        _ = 1 / 0
    assert not lock.exists()


def test_stale_code_is_removed_by_one_process(tmp_path, begin):
    (tmp_path / "source.py").write_text("x = 1\n")
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    stamp = cache / "kernels.sha256"

    def left():
        return sorted(path.name for path in cache.glob("*.nb[ic]"))

    (cache / "old.nbi").touch()
    jit._Stamp(tmp_path).forget_stale_code()
    assert left() == []
    (cache / "new.nbi").touch()
    jit._Stamp(tmp_path).forget_stale_code()
    assert left() == ["new.nbi"]
    # Another process comes while the cache is emptied, and must leave alone what is then compiled.
    fresh = stamp.read_text()
    stamp.write_text("stale")
    program = """
import sys
from pathlib import Path
from metabandit.kernels import jit

wait = jit._wait_for
jit._wait_for = lambda file: (print("waits", flush=True), wait(file))
jit._Stamp(Path(sys.argv[1])).forget_stale_code()
"""
    with jit._alone(stamp.with_suffix(".lock")):
        process = begin(program, tmp_path)
        assert process.stdout.readline() == "waits\n"
        time.sleep(0.1)
        assert process.poll() is None
        stamp.write_text(fresh)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert left() == ["new.nbi"]
    assert stamp.read_text() == fresh


def test_a_process_with_old_sources_leaves_the_cache_of_newer_ones_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    (tmp_path / "source.py").write_text("x = 1\n")
    stamp = jit._Stamp(tmp_path)
    stamp.forget_stale_code()
    monkeypatch.setattr(jit, "_STAMP", stamp)

    def kept():
        return sorted(path.suffix for path in tmp_path.rglob("*.nb[ic]"))

    @jit.jit
    def double(x):
        return 2 * x

    assert double(1) == 2
    assert kept() == [".nbc", ".nbi"]
    (tmp_path / "source.py").write_text("x = 2\n")
    newer = jit._Stamp(tmp_path)
    newer.forget_stale_code()
    assert double(1.5) == 3.0, "it is compiled, and not kept"
    assert len(kept()) == 2, "the first code was in another folder of the cache"
    monkeypatch.setattr(jit, "_STAMP", newer)

    @jit.jit
    def triple(x):
        return 3 * x

    assert triple(1) == 3
    assert len(kept()) == 4
