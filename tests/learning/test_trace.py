"""The trace of a run: stopped, resumed, refused, never overwritten."""

import json

import pytest

import metabandit as mb
from metabandit.learning import judges

TWO = mb.Bernoulli(arms=2)


def stopped_after(count):
    def progress(generation):
        if generation.number == count:
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_run_is_written_and_resumed(tmp_path):
    options = {"generations": 12, "seed": 3}
    whole = mb.learn("r + a/(n + b)", TWO, 20, out=tmp_path / "whole.json", **options)
    out = tmp_path / "broken.json"
    part = mb.learn("r + a/(n + b)", TWO, 20, out=out, progress=stopped_after(5), **options)
    assert part.stopped == "interrupted"
    assert mb.policy(str(out)).formula == part.policy.formula
    trace = out.with_name("broken.trace.jsonl")
    content = trace.read_text("utf-8")
    assert len(content.splitlines()) == 6
    # A kill may leave half a line.
    trace.write_text(content + '{"generation": 5, "val', "utf-8")
    seen = []
    mb.learn("r + a/(n + b)", TWO, 20, out=out, resume=True, progress=seen.append, **options)
    assert out.read_text("utf-8") == (tmp_path / "whole.json").read_text("utf-8")
    assert len(seen) == 12
    records = [json.loads(line) for line in trace.read_text("utf-8").splitlines()[1:]]
    assert [{**item, "seconds": 0} for item in records] == [
        {**item, "seconds": 0} for item in whole.trace
    ]


def test_a_trace_of_another_run_is_not_resumed(tmp_path):
    out = tmp_path / "policy.json"
    mb.learn("ucb1", TWO, 10, out=out, generations=2)
    with pytest.raises(mb.InputError, match="its seed is 0, not 1"):
        mb.learn("ucb1", TWO, 10, out=out, generations=2, seed=1, resume=True)
    trace = out.with_name("policy.trace.jsonl")
    lines = trace.read_text("utf-8").splitlines()
    record = {**json.loads(lines[1]), "candidates": "0"}
    trace.write_text("\n".join([lines[0], json.dumps(record)]) + "\n", "utf-8")
    with pytest.raises(mb.InputError, match="other candidates"):
        mb.learn("ucb1", TWO, 10, out=out, generations=2, resume=True)
    for damage in ({"values": None}, {"values": ["x"]}, {"noise": "much"}):
        record = {**json.loads(lines[1]), **damage}
        trace.write_text("\n".join([lines[0], json.dumps(record)]) + "\n", "utf-8")
        with pytest.raises(mb.InputError, match="damaged"):
            mb.learn("ucb1", TWO, 10, out=out, generations=2, resume=True)
    for content in ('{"trace": 1, "settings": 3}\n', lines[0] + "\n3\n", "\n", ""):
        trace.write_text(content, "utf-8")
        with pytest.raises(mb.InputError, match="damaged"):
            mb.learn("ucb1", TWO, 10, out=out, generations=2, resume=True)
    trace.write_text("nonsense\n", "utf-8")
    with pytest.raises(mb.InputError, match="damaged"):
        mb.learn("ucb1", TWO, 10, out=out, generations=2, resume=True)
    trace.unlink()
    with pytest.raises(mb.InputError, match="nothing to resume"):
        mb.learn("ucb1", TWO, 10, out=out, generations=2, resume=True)


def test_nothing_is_overwritten(tmp_path):
    out = tmp_path / "policy.json"
    mb.learn("ucb1", TWO, 10, out=out, generations=1)
    before = out.read_text("utf-8")
    for change in ({}, {"resume": True, "force": True}):
        with pytest.raises(mb.InputError):
            mb.learn("ucb1", TWO, 10, out=out, generations=1, seed=9, **change)
    assert out.read_text("utf-8") == before
    out.unlink()
    with pytest.raises(mb.InputError, match="did not end"):
        mb.learn("ucb1", TWO, 10, out=out, generations=1)
    mb.learn("ucb1", TWO, 10, out=out, generations=1, seed=9, force=True)
    assert out.exists()
    for name, word in (
        ("policy.txt", "must end in .json"),
        ("nowhere/policy.json", "does not exist"),
    ):
        with pytest.raises(mb.InputError, match=word):
            mb.learn("ucb1", TWO, 10, out=tmp_path / name, generations=1)


def test_one_run_at_a_time_writes_a_file(tmp_path):
    out = tmp_path / "policy.json"
    refused = []

    def second(generation):
        for options in ({"resume": True}, {"force": True}):
            with pytest.raises(mb.InputError, match="another run is writing"):
                mb.learn("ucb1", TWO, 10, out=out, generations=2, **options)
            refused.append(options)

    mb.learn("ucb1", TWO, 10, out=out, generations=2, progress=second)
    assert len(refused) == 4
    assert len(out.with_name("policy.trace.jsonl").read_text("utf-8").splitlines()) == 3


def test_stopped_before_anything_was_learned(tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(judges.Judge, "judge", stop)
    with pytest.raises(KeyboardInterrupt):
        mb.learn("ucb1", TWO, 10, out=tmp_path / "policy.json", generations=2)
    assert list(tmp_path.iterdir()) == []


def test_a_learned_policy_is_saved_but_nothing_overwritten(tmp_path):
    found = mb.learn("ucb1", mb.TruncatedGaussian(arms=3), 10, generations=1)
    path = tmp_path / "policy.json"
    found.save(path)
    assert found.floor is None
    assert mb.policy(path.as_posix()).parameters == found.policy.parameters
    with pytest.raises(mb.InputError, match="exists"):
        found.save(path)
    found.save(path, force=True)
