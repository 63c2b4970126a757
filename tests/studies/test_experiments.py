"""The paper's experiments as data, the steps of the work, and their records."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import metabandit as mb
from metabandit.studies.maes2012 import paper, work
from metabandit.studies.maes2012.plan import PARTS, SCALES, steps, studied_policies
from metabandit.studies.records import Records
from metabandit.studies.run import RECORDS, UNFINISHED, Runner, Step, reproduce
from metabandit.workers import Workers
from tests.commands import answer
from tests.tiers import some

TINY = {
    "generations": 2,
    "protocol": "paper:problems=5,runs=2",
    "length": 3,
    "pulls": 200,
    "problems": 40,
    "runs": 3,
    "effort": 0.001,
    "screening": [16, 64],
    "patient": False,
}


def quietly(share, doing):
    pass


@pytest.fixture
def runner(tmp_path):
    return Runner(Records("tiny", 0), tmp_path, Workers(1), lambda message: None)


# The data ---------------------------------------------------------------------------------------


def test_the_tables_are_the_papers():
    table = paper.table1()
    assert len(table) == 35
    assert [row.group for row in table].count("untuned") == 8
    row = next(row for row in table if row.label == "Power-2" and row.training == 1000)
    assert row.paper["bernoulli", 1000] == 3.95
    assert row.paper["gaussian", 10] == 1.12
    assert paper.table2()["Formula-1", 10] == 61.7
    assert len(paper.table2()) == 27


def test_what_the_table_prints_can_be_played():
    for row in paper.table1():
        if row.text is not None:
            mb.policy(row.text).check(mb.Bernoulli(arms=2), 10)
    # Notes are about cells that exist.
    printed = {row.text for row in paper.table1()}
    for text, family, horizon in paper.NOTES:
        assert text in printed
        assert (family, horizon) in paper.table1()[0].paper


def test_no_c_of_kl_ucb_has_what_the_table_says():
    """As the notes have it: 0.73 for Bernoulli arms at T = 10 is out of reach, rounding included."""
    policies = [f"kl-ucb:c={c:.2f}" for c in np.arange(-2.6, 3.0, 0.02)]
    found = mb.evaluate(policies, mb.Bernoulli(arms=2), 10, method="exact", floor=False)
    assert 0.742 < found.ranking()[0].mean_regret < 0.7425


@pytest.mark.slow
def test_rows_of_the_table_are_not_all_of_one_sample():
    """As the notes have it: where the table prints a policy twice, and how far KL-UCB's rows are away."""
    alike = ["ucb2:alpha=0.001", "ucb2:alpha=0.000749"]
    away = [alike[1], "kl-ucb:c=-1.21", "kl-ucb:c=-1.82", "kl-ucb:c=-1.84"]
    table = {row.text: row.paper for row in paper.table1()}
    prior = mb.prior(paper.PRIORS["gaussian"], arms=2)
    for horizon in (10, 100):
        one, other = (table[text]["gaussian", horizon] for text in alike)
        assert other / one > 1.029
        found = mb.evaluate(
            list(dict.fromkeys(alike + away)),
            prior,
            horizon,
            episodes=400_000,
            runs=20,
            floor=False,
        )
        one, other = (found[text].mean_regret for text in alike)
        assert other == pytest.approx(one, rel=1e-3)
        for text in away:
            more = table[text]["gaussian", horizon] - found[text].mean_regret
            error = found[text].problem_regret.std() / np.sqrt(paper.TEST_PROBLEMS)
            assert 3.0 < more / error < 2.5 * np.sqrt(10.0)


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_steps_have_ids_and_come_after_what_they_need(scale):
    everything = steps("all", scale, 0)
    ids = [step.id for step in everything]
    assert len(set(ids)) == len(ids)
    for part in PARTS:
        done = set()
        for step in steps(part, scale, 0):
            assert set(step.needs) <= done, step.id
            assert json.loads(json.dumps(step.settings)) == step.settings
            done.add(step.id)
        assert done <= set(ids)
    tested = {step.id for step in everything if step.kind == "test"}
    for item in studied_policies():
        for family in paper.FAMILIES:
            assert f"test/{item.id}/{family}/100" in tested


def test_the_papers_scale_is_the_papers():
    scale = SCALES["paper"]
    assert (scale["generations"], scale["pulls"], scale["length"]) == (100, 10**7, 7)
    assert (scale["problems"], scale["runs"], scale["protocol"]) == (10_000, 100, "paper")


# How steps are done ----------------------------------------------------------------------------


def test_a_test_is_an_evaluation_with_wins(runner):
    settings = {
        "policy": {"text": "ucb1:C=0.17"},
        "prior": "bernoulli",
        "horizon": 20,
        "problems": 500,
        "runs": 10,
        "seed": 3,
    }
    found, seconds = runner.do(Step("test/x", settings), quietly)
    pair = mb.evaluate(
        ["ucb1:C=0.17", "ucb1-tuned"], mb.Bernoulli(arms=2), 20, episodes=5000, runs=10, seed=3
    )
    assert found["regret"] == pair[0].mean_regret
    assert found["standard_error"] == pair[0].standard_error
    assert found["wins_common_luck"] == pair.share_of_wins(0, 1)
    theirs = pair[1].problem_regret
    assert found["wins"] == np.mean(
        pair[0].problem_regret < work.reference(runner, settings, common=False)
    )
    # With rewards of its own the rival does about as well, but not the same on each problem.
    assert found["wins"] != found["wins_common_luck"]
    other = work.reference(runner, settings, common=False)
    assert abs(other.mean() - theirs.mean()) < 5 * (other - theirs).std() / np.sqrt(500)
    assert seconds > 0.0


def test_gaussian_regret_is_counted_both_ways(runner):
    settings = {
        "policy": {"text": "ucb1-tuned"},
        "prior": paper.PRIORS["gaussian"],
        "horizon": 30,
        "problems": 300,
        "runs": 4,
        "seed": 5,
    }
    found, _ = runner.do(Step("test/x", settings), quietly)
    for key, regret in (("regret", "parent"), ("true_regret", "true")):
        known = mb.evaluate(
            "ucb1-tuned", mb.TruncatedGaussian(regret=regret), 30, episodes=1200, runs=4, seed=5
        )
        assert found[key] == pytest.approx(known[0].mean_regret, rel=1e-6)
    true = mb.evaluate("ucb1-tuned", mb.TruncatedGaussian(), 30, episodes=1200, runs=4, seed=5)
    assert found["true_standard_error"] == pytest.approx(true[0].standard_error, rel=1e-5)


def test_recounting_needs_the_plays():
    found = mb.evaluate("ucb1", mb.TruncatedGaussian(), 10, episodes=100)
    with pytest.raises(mb.InputError, match="keep_plays=True"):
        mb.recount(found, mb.TruncatedGaussian(regret="parent"))
    for other in (mb.Bernoulli(arms=2), mb.TruncatedGaussian(arms=3)):
        with pytest.raises(mb.InputError, match="other problems"):
            mb.recount(found, other)
    with pytest.raises(mb.InputError, match="what evaluate gave"):
        mb.recount(3, mb.TruncatedGaussian())
    with pytest.raises(mb.InputError, match="monte-carlo"):
        mb.recount(mb.evaluate("ucb1", mb.Bernoulli(arms=2), 10), mb.Bernoulli(arms=2))


def test_reward_seeds_and_plays_are_those_of_a_simulation():
    prior = mb.Bernoulli(arms=2)
    assert mb.evaluate("ucb1", prior, 10, keep_plays=True).method == "monte-carlo"
    assert mb.evaluate("ucb1", prior, 10, reward_seed=3).method == "monte-carlo"
    with pytest.raises(mb.InputError, match="no seed of the rewards and no plays of each problem"):
        mb.evaluate("ucb1", prior, 10, reward_seed=3, keep_plays=True, method="exact")


def test_other_rewards_on_the_same_problems():
    options = {"episodes": 2000, "runs": 1000, "seed": 4, "keep_plays": True}
    prior = mb.Bernoulli(arms=2)
    one, two = (mb.evaluate("ucb1", prior, 50, reward_seed=seed, **options) for seed in (None, 9))
    same = mb.evaluate("ucb1", prior, 50, reward_seed=4, **options)
    assert one[0].mean_regret == same[0].mean_regret != two[0].mean_regret
    # Two problems, each played a thousand times: the same problems have nearly the same regret.
    assert two[0].problem_regret == pytest.approx(one[0].problem_regret, rel=0.15)
    with pytest.raises(mb.InputError, match="the seed of the rewards must be at least 0"):
        mb.evaluate("ucb1", prior, 50, reward_seed=-1, episodes=10)


@pytest.mark.parametrize("horizon", [12, pytest.param(1000, marks=pytest.mark.slow)])
def test_classes_that_are_better_are_counted_one_by_one(runner, horizon, monkeypatch):
    settings = {
        "length": 4,
        "horizon": horizon,
        "rivals": ["ucb1", "moss"],
        "start": "each-once",
        "screening": [32, 256],
        "seed": 1,
    }
    # Sure enough that nothing is left out by chance.
    monkeypatch.setattr(work, "_SURE", 6.0)
    found, _ = runner.do(Step("better/x", settings), quietly)
    options = {"method": "exact"} if horizon == 12 else {"episodes": 256, "seed": 1}
    assert found["method"] == ("exact" if horizon == 12 else "monte-carlo")
    prior = mb.Bernoulli(arms=2)
    known = mb.evaluate(["ucb1", "moss"], prior, horizon, floor=False, **options)
    level = known.ranking()[0].mean_regret
    regrets = []
    for tree in runner.kept["classes", 4].trees:
        made = mb.IndexPolicy(tree, start="each-once")
        try:
            regrets.append(mb.evaluate(made, prior, horizon, floor=False, **options)[0].mean_regret)
        except mb.IndexFault:
            continue
    assert found["rival_regret"] == pytest.approx(level)
    assert found["classes"] == sum(regret < level - 1e-12 for regret in regrets)
    assert 0 < found["strategies"] <= found["classes"]


def test_learning_curves_end_with_what_was_learned(runner):
    learn = {
        "space": "power-1",
        "horizon": 20,
        "protocol": "paper:problems=20,runs=5",
        "generations": 6,
        "effort": 1.0,
        "improvements": True,
        "seed": 2,
    }
    found, seconds = runner.do(Step("learn/power-1/20", learn), quietly)
    assert not list(runner.folder.iterdir())
    runner.records["learn/power-1/20"] = {"result": found, "seconds": seconds}
    look = {
        "of": "learn/power-1/20",
        "space": "power-1",
        "horizon": 20,
        "episodes": 100,
        "seed": 3,
    }
    curve, _ = runner.do(Step("curve/20", look), quietly)
    points = curve["points"]
    assert [point["training"] for point in points] == sorted(
        (point["training"] for point in points), reverse=True
    )
    assert points[-1]["training"] == min(found["best"])
    made = runner.policy({"of": "learn/power-1/20"})
    exact = mb.evaluate(made, mb.Bernoulli(arms=2), 20, method="exact")[0].mean_regret
    assert points[-1]["testing"] == pytest.approx(exact, rel=1e-12)


# Records ----------------------------------------------------------------------------------------


def result_of(line):
    """What must be the same each time: all but how long it took."""
    record = json.loads(line)
    if record.get("kind") == "sooner":
        record["result"] = None
    return {key: value for key, value in record.items() if key != "seconds"}


def test_nothing_is_done_twice(tmp_path, monkeypatch):
    monkeypatch.setitem(SCALES, "tiny", TINY)
    first = reproduce("curves", scale="tiny", out=tmp_path, seed=3)
    before = (tmp_path / RECORDS).read_bytes()
    assert {step.id for step in steps("curves", TINY, 3)} == set(first)
    monkeypatch.setattr(Runner, "do", None)
    again = reproduce("curves", scale="tiny", out=tmp_path, seed=3)
    assert dict(again) == dict(first)
    assert (tmp_path / RECORDS).read_bytes() == before
    assert not (tmp_path / UNFINISHED).exists()


def test_records_of_another_run_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setitem(SCALES, "tiny", TINY)
    path = tmp_path / RECORDS
    reproduce("curves", scale="tiny", out=tmp_path)
    before = path.read_bytes()
    with pytest.raises(mb.InputError, match="its seed is 0, not 1"):
        reproduce("curves", scale="tiny", out=tmp_path, seed=1)
    with pytest.raises(mb.InputError, match="its scale is 'tiny', not 'quick'"):
        reproduce("curves", out=tmp_path)
    monkeypatch.setitem(SCALES, "tiny", TINY | {"generations": 3})
    with pytest.raises(mb.InputError, match="other settings"):
        reproduce("curves", scale="tiny", out=tmp_path)
    assert path.read_bytes() == before
    for foreign in ('{"a": 1}\n{"b": 2}', '{"precious": 1}'):
        path.write_text(foreign)
        with pytest.raises(mb.InputError, match=r"does not hold the records|damaged"):
            reproduce("curves", scale="tiny", out=tmp_path)
        assert path.read_text() == foreign
    path.write_text('{"format": "something else"}\n')
    with pytest.raises(mb.InputError, match="does not hold the records"):
        reproduce("curves", scale="tiny", out=tmp_path)
    path.write_bytes(before.replace(b'"result"', b'"rseult"'))
    with pytest.raises(mb.InputError, match="damaged"):
        reproduce("curves", scale="tiny", out=tmp_path)
    with pytest.raises(mb.InputError, match="damaged"):
        Records.read(path)


def line(name, result):
    return {
        "id": name,
        "kind": "test",
        "settings": {},
        "threads": 1,
        "versions": {},
        "seconds": 1.0,
        "result": result,
    }


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "report.html").write_text("precious")
    with pytest.raises(mb.InputError, match=r"holds other files, report\.html"):
        reproduce("curves", out=tmp_path)
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]


def test_a_half_done_step_that_cannot_go_on_starts_from_scratch(tmp_path, monkeypatch):
    monkeypatch.setitem(SCALES, "tiny", TINY)
    whole = reproduce("curves", scale="tiny", out=tmp_path / "whole")
    half = tmp_path / "half" / UNFINISHED
    half.mkdir(parents=True)
    Records.open(tmp_path / "half" / RECORDS, "tiny", 0).close()
    (half / "learn-power-1-100.trace.jsonl").write_text("")
    (half / "learn-power-1-1000.trace.jsonl").write_text('{"trace": 1, "settings": {}}\n')
    said = []
    again = reproduce("curves", scale="tiny", out=tmp_path / "half", announce=said.append)
    assert [item.partition(" ")[0] for item in said] == ["learn/power-1/100", "learn/power-1/1000"]
    assert [again.result(name) for name in again] == [whole.result(name) for name in whole]


@pytest.mark.parametrize("kind", ["learn", "search"])
def test_a_person_can_stop_a_step_and_go_on(kind, runner, monkeypatch):
    settings = {
        "learn": {
            "space": "ucb1",
            "horizon": 20,
            "protocol": "paper:problems=20,runs=5",
            "generations": 6,
            "effort": 1.0,
            "improvements": False,
            "seed": 2,
        },
        "search": {
            "length": 4,
            "horizon": 20,
            "strategy": "halving",
            "pulls": 1000,
            "start": "each-once",
            "top": 5,
            "effort": 1.0,
            "refine": 1,
            "seed": 2,
        },
    }[kind]
    step = Step(f"{kind}/y", settings)
    whole, _ = runner.do(step, quietly)
    calls = 0

    def stop(share, doing):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.do(step, stop)
    assert list(runner.folder.iterdir())
    again, _ = runner.do(step, quietly)
    assert not list(runner.folder.iterdir())
    assert again == whole
    # What was found can be played, refined numbers and all.
    runner.records[step.id] = {"result": again}
    runner.policy({"of": step.id}).check(mb.Bernoulli(arms=2), 20)


def test_plans_do_not_depend_on_the_machine(tmp_path):
    settings = {
        "length": 3,
        "horizon": 500,
        "strategy": "auto",
        "pulls": 1000,
        "start": "prior-counts",
        "top": 5,
        "effort": 0.001,
        "refine": 0,
        "seed": 2,
    }
    step = Step("search/x", settings)
    found = []
    for threads in (1, 5, 2)[: some(2, 3)]:
        runner = Runner(Records("tiny", 0), tmp_path, Workers(threads), lambda message: None)
        found.append(runner.do(step, quietly)[0])
    assert all(item == found[0] for item in found[1:])


def test_one_writer_at_a_time(tmp_path):
    path = tmp_path / RECORDS
    held = Records.open(path, "quick", 0)
    with pytest.raises(mb.InputError, match="another run is writing"):
        Records.open(path, "quick", 0)
    held.add(line("a", {"x": 1}))
    held.close()
    assert Records.open(path, "quick", 0).result("a") == {"x": 1}


def test_half_a_line_is_dropped(tmp_path):
    path = tmp_path / RECORDS
    held = Records.open(path, "quick", 0)
    for name in "ab":
        held.add(line(name, {}))
    held.close()
    path.write_bytes(path.read_bytes()[:-7])
    assert list(Records.read(path)) == ["a"]
    held = Records.open(path, "quick", 0)
    held.add(line("c", {}))
    held.close()
    assert list(Records.read(path)) == ["a", "c"]
    assert json.loads(path.read_bytes().splitlines()[0])["format"] == "metabandit reproduction"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"part": "tabel1"}, "did you mean table1"),
        ({"scale": "papers"}, "did you mean paper"),
        ({"seed": -1}, "the seed must be at least 0"),
        ({"threads": 0}, "the number of threads must be at least 1"),
    ],
)
def test_what_cannot_be_reproduced_is_refused(options, message, tmp_path):
    part = options.pop("part", "all")
    with pytest.raises(mb.InputError, match=message):
        reproduce(part, out=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_records(tmp_path):
    """The real command, killed in the middle of two steps."""
    command = ["reproduce", "curves", "--scale", "quick"]
    answer([*command, "--out", "whole"], tmp_path)
    path = tmp_path / "broken" / RECORDS
    for horizon in (100, 1000):
        run = subprocess.Popen(
            [sys.executable, "-m", "metabandit", *command, "--out", "broken"],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
        )
        trace = path.parent / UNFINISHED / f"learn-power-1-{horizon}.trace.jsonl"
        # Its settings and two generations at least.
        while not trace.exists() or trace.read_bytes().count(b"\n") < 3:
            assert run.poll() is None
            time.sleep(0.005)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        assert f"learn/power-1/{horizon}" not in Records.read(path)
    answer([*command, "--out", "broken"], tmp_path)
    lines = [(tmp_path / name / RECORDS).read_text().splitlines() for name in ("whole", "broken")]
    assert [result_of(line) for line in lines[0]] == [result_of(line) for line in lines[1]]
    assert sorted(item.name for item in path.parent.iterdir()) == [RECORDS, "report.html"]
    assert Path(tmp_path / "whole" / "report.html").read_text().startswith("<!doctype html>")
