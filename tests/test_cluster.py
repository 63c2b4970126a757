"""Other processes that do the work: the same figures, whoever does what, and what can go wrong."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metabandit as mb
from metabandit import crew
from metabandit.crew import Crew, Piece, split
from metabandit.errors import IndexFault
from metabandit.evaluation import montecarlo
from metabandit.experiments.reproduce import RECORDS
from metabandit.formulas import searcher
from metabandit.formulas.strategies import Halving
from metabandit.kernels import batch

from .sites import Site, until

TWO = mb.Bernoulli(arms=2)
COMMAND = [sys.executable, "-m", "metabandit"]


# Pieces ------------------------------------------------------------------------------------------


@given(st.integers(1, 500), st.integers(1, 60))
def test_runs_cover_everything_once(items, parts):
    runs = split(items, parts)
    assert [number for low, high in runs for number in range(low, high)] == list(range(items))
    sizes = {high - low for low, high in runs}
    assert max(sizes) - min(sizes) <= 1
    assert len(runs) == min(items, parts)


@given(st.integers(1, 700), st.integers(1, 20_000), st.integers(1, 200))
def test_tiles_cover_everything_once(policies, problems, count):
    cuts = montecarlo.blocks(TWO, 1000, 1, sorted({0, problems // 2, problems}))
    for given_ in (cuts, range(problems + 1)):
        rows, wide = montecarlo._tiles(policies, given_, count)
        for runs, items in ((rows, policies), (wide, len(given_) - 1)):
            assert [k for low, high in runs for k in range(low, high)] == list(range(items))
        # Enough of them, as far as there is something to share.
        assert len(rows) * len(wide) >= min(count, policies * (len(given_) - 1)) / 2


def test_problems_are_shared_evenly():
    cuts = montecarlo.blocks(TWO, 1000, 1, np.linspace(0, 20_000, 9).astype(int).tolist())
    rows, wide = montecarlo._tiles(17, cuts, 6)
    assert rows == [(0, 17)]
    sizes = [cuts[high] - cuts[low] for low, high in wide]
    assert len(sizes) == 6
    assert max(sizes) < 1.2 * min(sizes)
    assert all(size % 512 == 0 for size in sizes[:-1])


@given(st.integers(1, 5000), st.integers(1, 100), st.sampled_from([1, 20, 100]))
def test_blocks_keep_the_cuts_and_do_not_depend_on_who_works(problems, horizon, runs):
    cuts = sorted({0, problems // 3, problems})
    finer = montecarlo.blocks(mb.Bernoulli(arms=50), 1000 * horizon, runs, cuts)
    assert set(cuts) <= set(finer)
    assert finer == sorted(set(finer))
    seconds = [
        montecarlo.work_seconds(mb.Bernoulli(arms=50), 1000 * horizon, runs * (high - low))
        for low, high in pairwise(finer)
    ]
    alone = montecarlo.work_seconds(mb.Bernoulli(arms=50), 1000 * horizon, runs)
    assert max(seconds) <= max(1.0, alone)


def test_pieces_take_seconds_and_are_sized_by_what_others_took():
    class Slots(ThreadPoolExecutor):
        slots = 10

    with Slots(1) as pool:
        many = Crew(1, pool)
        assert not many.worth(0.01, "play")
        assert many.count(1000.0, "play") == 500  # of two seconds
        assert many.count(30.0, "play") == 30  # three for each
        assert many.count(0.5, "play") == 5  # of a tenth of a second
        many.note("play", Piece((), seconds=1.0), 10.0)  # ten times slower than was thought
        assert many.count(100.0, "play") == 500
        assert many.worth(0.03, "play")
        assert many.count(1000.0, "other") == 500
    assert not Crew(1).worth(1e9, "play")


def test_some_of_the_programs_are_those_of_the_others():
    texts = ["r", "r + 1/n", "sqrt(r) * ln(t) / n", "max(r, s)", "r - h"]
    made = [mb.policy(text).plan(TWO, 10).program for text in texts]
    which = np.array([3, 0, 0, 4])
    found = batch.take(batch.pack(made), which)
    wanted = batch.pack([made[place] for place in which])
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        assert (one == other).all()


def test_faults_come_back_whole():
    fault = IndexFault("ln(r)", (1.0, 0.0, 0.0, 2.0, -np.inf), uses_s=False)
    copy = pickle.loads(pickle.dumps(fault))
    assert (type(copy), str(copy), copy.policy) == (IndexFault, str(fault), "ln(r)")
    assert copy.state["n"] == 1.0


def test_another_version_is_refused():
    other = {**crew.stamp(), "metabandit": "9.9 (12345678)"}
    with pytest.raises(mb.WorkerError, match=r"worker on .* has metabandit .* instead of 9\.9"):
        crew.perform(other, b"", "play", b"")
    crew.compare(crew.stamp(), crew.stamp(), "it")


def test_what_is_no_executor_is_refused():
    class Client:
        def get_executor(self):
            raise AssertionError

    for given_, hint in ((3, "not int"), (Client(), r"give client\.get_executor")):
        with pytest.raises(mb.InputError, match=hint):
            mb.evaluate("ucb1", TWO, 10, executor=given_)
    for options in ({}, {"address": "tcp://a:1", "workers": 2}):
        with pytest.raises(mb.InputError, match="give one of them"):
            mb.Cluster(**options)
    for address in ("host", "tcp://host", "tcp:/host:1", "tcp://host:port", "", 8786, "ftp://h:1"):
        with pytest.raises(mb.InputError, match="is such as tcp://host:8786"):
            mb.Cluster(address)
    with pytest.raises(mb.InputError, match="certificates"):
        mb.Cluster("tls://127.0.0.1:9")
    with pytest.raises(mb.InputError, match="at least 1"):
        mb.Cluster(workers=0)


def test_in_one_process_nothing_of_this_is_loaded(tmp_path):
    code = """
import sys
import metabandit as mb
mb.learn("ucb1", mb.Bernoulli(arms=2), 10, generations=1)
mb.search(mb.Bernoulli(arms=2), 10, length=2)
for name in ("distributed", "dask", "cloudpickle", "metabandit.cluster"):
    assert name not in sys.modules, name
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr


# The same figures --------------------------------------------------------------------------------


class Backwards(Executor):
    """Does what it is asked when it has three calls, the last first; copies as other processes do."""

    slots = 3

    def __init__(self):
        self.waiting = []
        self.calls = 0
        self.bytes = 0

    def submit(self, fn, *args):
        future = Future()
        sent = pickle.dumps((fn, args))
        self.bytes = max(self.bytes, len(sent))
        self.waiting.append((future, sent))
        self.calls += 1
        threading.Timer(0.05, self._work).start()
        return future

    def _work(self):
        while self.waiting:
            future, sent = self.waiting.pop()
            if future.set_running_or_notify_cancel():
                fn, args = pickle.loads(sent)
                try:
                    future.set_result(pickle.loads(pickle.dumps(fn(*args))))
                except BaseException as error:
                    future.set_exception(pickle.loads(pickle.dumps(error)))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Site(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture(scope="module", params=["backwards", "processes", "dask", "cluster"])
def executor(request):
    if request.param == "backwards":
        yield Backwards()
        return
    if request.param == "processes":
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            yield pool
        return
    address = request.getfixturevalue("site").address
    if request.param == "cluster":
        with mb.Cluster(address) as joined:
            yield joined
        return
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        yield client.get_executor(pure=False)


@pytest.fixture
def small(monkeypatch):
    """Everything is handed out, in many pieces."""
    monkeypatch.setattr(crew, "_WORTH", 0.0)
    monkeypatch.setattr(crew, "_SHORTEST", 1e-9)
    monkeypatch.setattr(crew, "_LONGEST", 0.05)


def figures(value):
    """Everything but times."""
    if isinstance(value, dict):
        return {
            key: figures(item)
            for key, item in value.items()
            if "seconds" not in key and key not in ("threads", "played")
        }
    return [figures(item) for item in value] if isinstance(value, list) else value


def both(executor, work):
    """What work gives here, and through the executor: the same, and it was handed out."""
    alone = work(threads=1)
    made = []
    found = work(threads=1, executor=_Counting(executor, made))
    assert made, "nothing was handed out"
    assert figures(found.to_dict()) == figures(alone.to_dict())
    return alone, found


class _Counting(Executor):
    def __init__(self, inner, made):
        self.inner = inner
        self.made = made
        self.slots = 2

    def submit(self, fn, *args):
        self.made.append(args[2])
        return self.inner.submit(fn, *args)


def middle(n, r, s, t, h, u):
    """A person's own rule, in a module that workers can import."""
    best = 0
    for k in range(len(r)):
        if r[k] + s[k] / n[k] > r[best] + s[best] / n[best]:
            best = k
    return best


@pytest.mark.usefixtures("small")
def test_evaluate_gives_the_same(executor):
    policies = [
        "ucb1", "r + 3/(n + 2)", "thompson", "ucb2", "eps_n-greedy", "gittins",
        mb.ChoicePolicy("middle", middle),
    ]  # fmt: skip
    options = {"method": "monte-carlo", "episodes": 4_000, "runs": 4, "keep_plays": True}
    for prior in (TWO, mb.BetaRewards(arms=3)):
        alone, found = both(
            executor, lambda prior=prior, **who: mb.evaluate(policies, prior, 20, **options, **who)
        )
        assert (alone.covariance == found.covariance).all()
        for one, other in zip(alone, found, strict=True):
            assert (one.problem_regret == other.problem_regret).all()
            assert (one.problem_plays == other.problem_plays).all()
    both(executor, lambda **who: mb.evaluate(["ucb1", "thompson", "optimal"], TWO, 30, **who))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("space", "prior", "horizon", "options"),
    [
        ("r + a/(n + b)", TWO, 30, {}),
        ("r + a/(n + b)", mb.TruncatedGaussian(arms=3), 30, {"episodes": 2000}),
        ("power-1", TWO, 20, {"objective": "wins", "reference": "ucb1-tuned"}),
        ("power-2", TWO, 450, {"protocol": "paper:problems=10,runs=5"}),
        ("ucb2", mb.Gaussian(arms=2), 20, {"objective": "quantile:q=0.9", "episodes": 2000}),
        ("ucb1", mb.Bernoulli(arms=4), 450, {"episodes": 500}),
        # An index that is not finite on some problems only.
        (
            "r + a*ln(15.5 - n*r)", mb.Bernoulli(arms=4), 20,
            {"objective": "wins", "reference": "ucb1", "initial": {"a": 0.0001}},
        ),
    ],
)  # fmt: skip
def test_learn_gives_the_same(executor, space, prior, horizon, options):
    options = {"generations": 2, "measured": False, **options}
    alone, found = both(
        executor, lambda **who: mb.learn(space, prior, horizon, seed=5, **options, **who)
    )
    assert [item["values"] for item in alone.trace] == [item["values"] for item in found.trace]
    assert alone.parameters == found.parameters


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("exact", {}),
        ("halving", {"effort": 0.01}),
        ("halving", {"effort": 0.01, "objective": "wins", "reference": "ucb1"}),
        ("halving", {"effort": 0.01, "objective": "simple"}),
        ("ucb1-tuned", {"pulls": 5000}),
    ],
)
def test_search_gives_the_same(executor, strategy, options):
    options = {"length": 3, "strategy": strategy, "measured": False, "top": 5, **options}
    both(executor, lambda **who: mb.search(TWO, 25, **options, **who))


@pytest.mark.usefixtures("small")
def test_faults_of_policies_are_the_same(executor):
    messages = []
    for who in ({}, {"executor": executor}):
        with pytest.raises(IndexFault) as caught:
            mb.evaluate("ln(r)", TWO, 20, episodes=30_000, **who)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    with pytest.raises(IndexFault, match=r"the index of ln\(r - a - 5\) is not a number"):
        mb.learn("ln(r - a - 5)", mb.Bernoulli(arms=4), 20, episodes=500, executor=executor)


def test_pieces_carry_programs_and_seeds(small):
    executor = Backwards()
    mb.learn("power-2", mb.Bernoulli(arms=3), 50, generations=1, measured=False, executor=executor)
    assert executor.calls > 3
    assert executor.bytes < 100_000  # 20,000 problems, all their arms


def test_own_rules_are_refused_where_they_cannot_be_sent(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    mine = mb.ChoicePolicy("mine", lambda n, r, s, t, h, u: 0)
    with pytest.raises(mb.InputError, match="cannot be sent to other processes"):
        mb.evaluate(mine, TWO, 20, episodes=30_000, executor=Backwards())


def test_large_tables_stay_here(small):
    said = []
    options = {"episodes": 2000, "floor": False}
    wanted = mb.evaluate("gittins", TWO, 120, **options)
    found = mb.evaluate("gittins", TWO, 120, executor=Backwards(), announce=said.append, **options)
    assert found[0].mean_regret == wanted[0].mean_regret
    assert any("too large to be sent" in message for message in said)


def test_a_pool_that_breaks_says_so(small, tmp_path):
    out = tmp_path / "policy.json"
    options = {"episodes": 400, "generations": 40, "measured": False}
    wanted = mb.learn("ucb1", mb.Bernoulli(arms=4), 300, **options)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:

        def kill(generation):
            if generation.number == 3:
                next(iter(pool._processes.values())).kill()

        with pytest.raises(mb.WorkerError, match=r"died|takes no more work"):
            mb.learn(
                "ucb1", mb.Bernoulli(arms=4), 300, executor=pool, out=out, progress=kill, **options
            )
    found = mb.learn("ucb1", mb.Bernoulli(arms=4), 300, out=out, resume=True, **options)
    assert found.parameters == wanted.parameters


def test_a_search_that_loses_its_workers_while_it_measures_goes_on(tmp_path, monkeypatch):
    options = {"length": 3, "strategy": "halving", "effort": 0.01, "measured": False}
    wanted = mb.search(TWO, 25, **options)

    def lost(*_, **__):
        raise mb.WorkerError("gone")

    out = tmp_path / "best.json"
    with monkeypatch.context() as patch:
        patch.setattr(searcher, "measure_classes", lost)
        with pytest.raises(mb.WorkerError):
            mb.search(TWO, 25, out=out, **options)
    # There is nothing left to do but that.
    monkeypatch.setattr(Halving, "step", lost)
    found = mb.search(TWO, 25, out=out, resume=True, **options)
    assert figures(found.to_dict()) == figures(wanted.to_dict())
    assert [path.name for path in tmp_path.iterdir()] == ["best.json"]


@pytest.mark.usefixtures("small")
def test_a_worker_with_several_threads_gives_the_same(tmp_path):
    with Site(tmp_path, workers=1, threads=3) as site, mb.Cluster(site.address) as joined:
        assert joined.slots == 3
        policies = ["ucb1", "thompson", mb.ChoicePolicy("middle", middle)]
        options = {"episodes": 20_000, "method": "monte-carlo"}
        both(joined, lambda **who: mb.evaluate(policies, TWO, 50, **options, **who))
        options = {"length": 3, "strategy": "exact", "measured": False}
        both(joined, lambda **who: mb.search(TWO, 25, **options, **who))
        options = {"generations": 2, "measured": False, "objective": "quantile:q=0.8"}
        both(joined, lambda **who: mb.learn("power-1", TWO, 30, **options, **who))


# The command line --------------------------------------------------------------------------------

EVALUATE = (
    "evaluate", "ucb1", "kl-ucb", "thompson", "--horizon", "1000", "--episodes", "50000",
    "--no-floor", "--json",
)  # fmt: skip
LEARN = (
    "learn", "--horizon", "70", "--objective", "quantile:q=0.9", "--generations", "5", "--json",
)  # fmt: skip
SEARCH = ("search", "--horizon", "110", "--length", "4", "--json")
REPRODUCE = ("reproduce", "curves", "--json", "--out", "records")
KINDS = {"evaluate": EVALUATE, "learn": LEARN, "search": SEARCH, "reproduce": REPRODUCE}


def start(folder, *arguments):
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=(folder / "errors").open("w"),
        text=True,
        cwd=folder,
    )


def finish(process, folder):
    """The exit code, what was printed, and what was said."""
    output = process.communicate(timeout=240)[0]
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
            folder = tmp_path_factory.mktemp(kind)
            code, output, errors = finish(start(folder, *KINDS[kind]), folder)
            assert code == 0, errors
            known[kind] = result_of(kind, output)
        return known[kind]

    return find


@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_gives_the_same_though_a_worker_is_killed(kind, plain, tmp_path):
    with Site(tmp_path) as site:
        process = start(tmp_path / "run", *KINDS[kind], "--cluster", site.address)
        # In the middle: the second worker has some pieces behind it.
        log = tmp_path / "run" / "errors"
        until(lambda: "workers      2" in log.read_text(), "the run")
        until(lambda: site.least() >= 1, "pieces")
        os.kill(site.workers[1].pid, signal.SIGKILL)
        code, output, errors = finish(process, tmp_path / "run")
        assert code == 0, errors
        assert result_of(kind, output) == plain(kind)


def test_workers_of_its_own(plain, tmp_path):
    process = start(tmp_path, *EVALUATE, "--workers", "2")
    code, output, errors = finish(process, tmp_path)
    assert (code, errors) == (0, "workers      2 at this machine, 2 pieces at once\n")
    assert result_of("evaluate", output) == plain("evaluate")


def test_ctrl_c_is_not_for_the_workers(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, *LEARN, "--generations", "4000", "--workers", "2", "--out", "policy.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )
    trace = tmp_path / "policy.trace.jsonl"
    until(lambda: trace.exists() and trace.read_bytes().count(b"\n") > 8, "generations")
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "stopped: measuring the best so far" in errors
    assert "Traceback" not in errors
    assert json.loads(output)["learned"]["stopped"] == "interrupted"


def test_a_worker_that_joins_late_is_used(plain, tmp_path):
    with Site(tmp_path, workers=1) as site:
        process = start(tmp_path / "run", *LEARN, "--cluster", site.address)
        until(lambda: site.least() >= 1, "pieces")
        site.add()
        code, output, errors = finish(process, tmp_path / "run")
        assert code == 0, errors
        assert result_of("learn", output) == plain("learn")
        assert site.least() >= 1


# What can go wrong -------------------------------------------------------------------------------


def refused(folder, *arguments):
    """A run that ends with an error, in time, and says why."""
    begun = time.monotonic()
    code, output, errors = finish(start(folder, *arguments), folder)
    assert output == ""
    assert "Traceback" not in errors
    assert time.monotonic() - begun < 15.0 + 10.0  # the machine is shared
    return code, errors


def test_a_scheduler_that_cannot_be_reached(tmp_path):
    code, errors = refused(tmp_path, *EVALUATE, "--cluster", "tcp://127.0.0.1:9")
    assert code == 2
    assert "the scheduler tcp://127.0.0.1:9 cannot be reached" in errors
    assert "dask scheduler" in errors


def test_a_scheduler_without_workers(tmp_path):
    with Site(tmp_path, workers=0) as site:
        code, errors = refused(tmp_path / "run", *EVALUATE, "--cluster", site.address)
    assert code == 2
    assert f"has no worker; start some with `dask worker {site.address}`" in errors


@pytest.mark.parametrize("options", [("--cluster", "host"), ("--workers", "0")])
def test_bad_options_are_refused(tmp_path, options):
    code, errors = refused(tmp_path, *EVALUATE, *options)
    assert code == 2
    assert options[1] in errors


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
def test_a_worker_of_another_version(tmp_path, other_version, late):
    with Site(tmp_path, workers=1) as site:
        if not late:
            site.add(path=other_version)
        process = start(tmp_path / "run", *LEARN, "--generations", "400", "--cluster", site.address)
        if late:
            until(lambda: site.least() >= 1, "pieces")
            site.add(path=other_version)
        begun = time.monotonic()
        code, _, errors = finish(process, tmp_path / "run")
        assert time.monotonic() - begun < 15.0
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
def test_what_was_finished_is_kept_when_all_is_lost(kind, lost, plain, tmp_path):
    command = [item for item in KINDS[kind] if item != "--json"]
    if kind != "reproduce":
        command += ["--out", "result.json"]
    folder = tmp_path / "run"
    with Site(tmp_path, workers=1) as site:
        process = start(folder, *command, "--cluster", site.address)
        until(lambda: "workers      1" in (folder / "errors").read_text(), "the run")
        if kind == "reproduce":
            until(lambda: kept(kind, folder) > 0, "a record")
        else:
            # Of a generation there are a few.
            until(lambda: site.least() >= (7 if kind == "learn" else 1), "pieces")
        for victim in [site.scheduler] if lost == "scheduler" else site.workers:
            victim.kill()
        begun = time.monotonic()
        code, _, errors = finish(process, folder)
        assert time.monotonic() - begun < 15.0
    assert code == 1, errors
    assert ("lost its last worker" if lost == "workers" else "the scheduler tcp://") in errors
    assert "go on" in errors or "goes on" in errors
    assert "Traceback" not in errors
    # In one process, from what is there.
    assert kept(kind, folder) > 0
    again = () if kind == "reproduce" else ("--resume",)
    code, output, errors = finish(start(folder, *command, *again, "--json"), folder)
    assert code == 0, errors
    assert result_of(kind, output) == plain(kind)
