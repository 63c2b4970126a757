"""Work in jobs: how it is cut, and the same figures whoever does it."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metabandit as mb
from metabandit import workers
from metabandit.engine import costs, engine
from metabandit.engine.engine import Engine
from metabandit.errors import IndexFault
from metabandit.formulas import searcher
from metabandit.formulas.strategies import Halving
from metabandit.kernels import batch
from metabandit.workers import Job, Workers, split
from tests.sites import Site, figures, wait_for
from tests.tiers import some

TWO = mb.Bernoulli(arms=2)


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
    cuts = Engine(TWO, 1000, Workers(1)).blocks(1, sorted({0, problems // 2, problems}))
    for given_ in (cuts, range(problems + 1)):
        rows, wide = engine._tiles(policies, given_, count)
        for runs, items in ((rows, policies), (wide, len(given_) - 1)):
            assert [k for low, high in runs for k in range(low, high)] == list(range(items))
        # Enough of them, as far as there is something to share.
        assert len(rows) * len(wide) >= min(count, policies * (len(given_) - 1)) / 2


def test_code_that_kernels_write_is_no_part_of_the_version():
    path = Path(workers.__file__).parent / "kernels" / "__pycache__" / "written_by_a_test.py"
    before = workers.stamp.__wrapped__()
    path.write_text("")
    try:
        assert workers.stamp.__wrapped__() == before
    finally:
        path.unlink()


def test_problems_are_shared_evenly():
    cuts = Engine(TWO, 1000, Workers(1)).blocks(1, np.linspace(0, 20_000, 9).astype(int).tolist())
    rows, wide = engine._tiles(17, cuts, 6)
    assert rows == [(0, 17)]
    sizes = [cuts[high] - cuts[low] for low, high in wide]
    assert len(sizes) == 6
    assert max(sizes) < 1.2 * min(sizes)
    assert all(size % 512 == 0 for size in sizes[:-1])


@given(st.integers(1, 5000), st.integers(1, 100), st.sampled_from([1, 20, 100]))
def test_blocks_keep_the_cuts_and_do_not_depend_on_who_works(problems, horizon, runs):
    cuts = sorted({0, problems // 3, problems})
    finer = Engine(mb.Bernoulli(arms=50), 1000 * horizon, Workers(1)).blocks(runs, cuts)
    assert set(cuts) <= set(finer)
    assert finer == sorted(set(finer))
    seconds = [
        costs.simulation_seconds(mb.Bernoulli(arms=50), 1000 * horizon, runs * (high - low))
        for low, high in pairwise(finer)
    ]
    alone = costs.simulation_seconds(mb.Bernoulli(arms=50), 1000 * horizon, runs)
    assert max(seconds) <= max(1.0, alone)


def test_pieces_take_seconds_and_are_sized_by_what_others_took():
    class Slots(ThreadPoolExecutor):
        slots = 10

    with Slots(1) as pool:
        many = Workers(1, pool)
        assert not many.worth(0.01, "play")
        assert many.count(1000.0, "play") == 500  # of two seconds
        assert many.count(30.0, "play") == 30  # three for each
        assert many.count(0.5, "play") == 5  # of a tenth of a second
        many.record("play", Job((), seconds=1.0), 10.0)  # ten times slower than was thought
        assert many.count(100.0, "play") == 500
        assert many.worth(0.03, "play")
        assert many.count(1000.0, "other") == 500
    assert not Workers(1).worth(1e9, "play")


def test_chunks_are_sized_once_it_is_known_what_they_take():
    chunks = [(number, number + 1) for number in range(1000)]

    def sizes(jobs):
        return [len(job.arguments[0]) for job in jobs]

    with ThreadPoolExecutor(2) as pool:
        slow = Workers(1, pool)
        jobs = engine.chunk_jobs(chunks, 0.1, slow)
        assert sizes(islice(jobs, 16)) == [1] * 16
        slow.record("chunks", Job((), seconds=0.1), 1.0)  # ten times what was thought
        rest = list(jobs)
        assert sizes(rest[:100]) == [2] * 100  # two seconds
        assert sizes(rest[-6:]) == [1] * 6
        assert sum(sizes(rest)) == 984
        fast = Workers(1, pool)
        fast.record("chunks", Job((), seconds=0.1), 0.001)
        found = list(engine.chunk_jobs(chunks, 0.1, fast))
        assert [chunk for job in found for chunk in job.arguments[0]] == chunks
        assert sizes(found)[0] == 167  # three for each
        assert sum(job.seconds for job in found) == pytest.approx(100.0)


def test_some_of_the_programs_are_those_of_the_others():
    texts = ["r", "r + 1/n", "sqrt(r) * ln(t) / n", "max(r, s)", "r - h"]
    made = [mb.policy(text).plan(TWO, 10).decision.program() for text in texts]
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
    other = {**workers.stamp(), "metabandit": "9.9 (12345678)"}
    with pytest.raises(mb.WorkerError, match=r"worker on .* has metabandit .* instead of 9\.9"):
        workers.perform(other, b"", "play", b"")
    workers.compare(workers.stamp(), workers.stamp(), "it")


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
    for address in (
        "host",
        "tcp://host",
        "tcp:/host:1",
        "tcp://host:port",
        "",
        8786,
        "ftp://h:1",
        "tcp://h:99999",
    ):
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
mb.learn("ucb1", mb.Bernoulli(arms=2), 10, generations=1, measured=False)
mb.search(mb.Bernoulli(arms=2), 10, length=2, measured=False)
mb.evaluate("ucb1", mb.Bernoulli(arms=2), 10, episodes=100)
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
    with Site(tmp_path_factory.mktemp("site"), workers=2) as made:
        yield made


@pytest.fixture(
    scope="module",
    params=[
        "backwards",
        pytest.param("processes", marks=pytest.mark.slow),
        pytest.param("dask", marks=pytest.mark.cluster),
        pytest.param("cluster", marks=pytest.mark.cluster),
    ],
)
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
    """Everything is handed out, in many jobs."""
    monkeypatch.setattr(workers, "_WORTH", 0.0)
    monkeypatch.setattr(workers, "_SHORTEST", 1e-9)
    monkeypatch.setattr(workers, "_LONGEST", 0.05)


# What work gives in one process; it is done once for all executors.
ALONE = {}


def both(executor, work, *arguments, **options):
    """What work gives here, and through the executor: the same, and it was handed out."""
    case = repr((work.__name__, arguments, options))
    if case not in ALONE:
        ALONE[case] = work(*arguments, **options, threads=1)
    alone, made = ALONE[case], []
    found = work(*arguments, **options, threads=1, executor=_Counting(executor, made))
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


MIDDLE = mb.ChoicePolicy("middle", middle)


@pytest.mark.usefixtures("small")
def test_evaluate_gives_the_same(executor):
    policies = ["ucb1", "r + 3/(n + 2)", "thompson", "ucb2", "eps_n-greedy", "gittins", MIDDLE]
    options = {"method": "monte-carlo", "episodes": 4_000, "runs": 4, "keep_plays": True}
    for prior in (TWO, mb.BetaRewards(arms=3)):
        alone, found = both(executor, mb.evaluate, policies, prior, 20, **options)
        assert (alone.covariance == found.covariance).all()
        for one, other in zip(alone, found, strict=True):
            assert (one.problem_regret == other.problem_regret).all()
            assert (one.problem_plays == other.problem_plays).all()
    both(executor, mb.evaluate, ["ucb1", "thompson", "optimal"], TWO, 30)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("space", "prior", "horizon", "options"),
    [
        ("r + a/(n + b)", TWO, 30, {}),
        ("r + a/(n + b)", mb.TruncatedGaussian(arms=3), 30, {"episodes": 2000}),
        ("power-1", TWO, 20, {"objective": "wins", "reference": "ucb1-tuned"}),
        pytest.param(
            "power-2", TWO, 450, {"protocol": "paper:problems=10,runs=5"}, marks=pytest.mark.slow
        ),
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
    alone, found = both(executor, mb.learn, space, prior, horizon, seed=5, **options)
    assert [item["values"] for item in alone.trace] == [item["values"] for item in found.trace]
    assert alone.parameters == found.parameters


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("exact", {}),
        ("halving", {"effort": some(5, 10) / 1000}),
        pytest.param(
            "halving",
            {"effort": 0.01, "objective": "wins", "reference": "ucb1"},
            marks=pytest.mark.slow,
        ),
        pytest.param("halving", {"effort": 0.01, "objective": "simple"}, marks=pytest.mark.slow),
        ("ucb1-tuned", {"pulls": some(2000, 5000)}),
    ],
)
def test_search_gives_the_same(executor, strategy, options):
    options = {"length": 3, "strategy": strategy, "measured": False, "top": 5, **options}
    both(executor, mb.search, TWO, 25, **options)


@pytest.mark.usefixtures("small")
def test_faults_of_policies_are_the_same(executor):
    messages = []
    for who in ({}, {"executor": executor}):
        with pytest.raises(IndexFault) as caught:
            mb.evaluate("ln(r)", TWO, 20, episodes=30_000, **who)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    with pytest.raises(IndexFault, match=r"the index of ln\(r - a - 5\) is not a number"):
        mb.learn(
            "ln(r - a - 5)", mb.Bernoulli(arms=4), 20, episodes=500, floor=False, executor=executor
        )


def test_pieces_carry_programs_and_seeds(small):
    executor = Backwards()
    mb.learn(
        "power-2", mb.Bernoulli(arms=4), 20, generations=1, episodes=20_000, measured=False,
        floor=False, executor=executor,
    )  # fmt: skip
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


@pytest.mark.slow
def test_a_pool_that_breaks_says_so(small, tmp_path):
    out = tmp_path / "policy.json"
    options = {"episodes": 400, "generations": 5, "measured": False}
    wanted = mb.learn("ucb1", mb.Bernoulli(arms=4), 100, **options)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:

        def kill(generation):
            if generation.number == 3:
                next(iter(pool._processes.values())).kill()

        with pytest.raises(mb.WorkerError, match=r"died|takes no more work"):
            mb.learn(
                "ucb1", mb.Bernoulli(arms=4), 100, executor=pool, out=out, progress=kill, **options
            )
    found = mb.learn("ucb1", mb.Bernoulli(arms=4), 100, out=out, resume=True, **options)
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


@pytest.mark.cluster
def test_no_more_is_sent_than_workers_have_threads(site, tmp_path):
    with mb.Cluster(site.address) as joined:
        assert joined.slots == 2
        end = tmp_path / "end"
        long = joined.submit(wait_for, end)
        short = []
        for number in range(10):
            short.append(joined.submit(abs, -number))
            assert len(joined._busy) <= 2
        dropped = joined.submit(abs, "never sent")
        assert dropped.cancel()
        assert [item.result() for item in short] == list(range(10))
        assert not long.done()
        end.touch()
        assert joined.tell() == "2 workers, 11 of 12 pieces"


@pytest.mark.cluster
@pytest.mark.usefixtures("small")
def test_a_worker_with_several_threads_gives_the_same(tmp_path):
    with Site(tmp_path, workers=1, threads=3) as site, mb.Cluster(site.address) as joined:
        assert joined.slots == 3
        policies = ["ucb1", "thompson", MIDDLE]
        options = {"episodes": 20_000, "method": "monte-carlo"}
        both(joined, mb.evaluate, policies, TWO, 50, **options)
        options = {"length": 3, "strategy": "exact", "measured": False}
        both(joined, mb.search, TWO, 25, **options)
        options = {"generations": 2, "measured": False, "objective": "quantile:q=0.8"}
        both(joined, mb.learn, "power-1", TWO, 30, **options)
