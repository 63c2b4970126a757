"""Policy files: what is written is read back as the same policy, and damage is named."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metabandit as mb
from metabandit.learning import measure
from metabandit.learning.spaces import make_space
from metabandit.policies.file import PolicyFile, read_file
from tests.tiers import some

TWO = mb.Bernoulli(arms=2)


@pytest.fixture(autouse=True)
def _short_reports(monkeypatch):
    monkeypatch.setattr(measure, "_MOST_EPISODES", 20_000)


UNEVEN = mb.Bernoulli(arms=2, alpha=[3, 1], beta=[2, 1])


@settings(deadline=None, max_examples=some(10, 40))
@given(
    st.sampled_from(
        ["power-1", "power-2", "r + a/(n + b)", "ucb1", "ucb-v:c=1", "ucb2", "thompson"]
    ),
    st.sampled_from([TWO, UNEVEN]),
    st.integers(0, 2**32),
)
def test_a_policy_survives_its_file(tmp_path_factory, space, prior, seed):
    made = make_space(space, prior)
    # Around values that every policy allows.
    coordinates = made.center + 0.1 * np.random.default_rng(seed).uniform(size=len(made.free))
    path = tmp_path_factory.mktemp("policies") / "policy.json"
    PolicyFile(policy=made.describe(coordinates)).write(path)
    assert [item.name for item in path.parent.iterdir()] == ["policy.json"]
    loaded = mb.policy(str(path))
    assert loaded.name == str(path)
    plans = [item.plan(prior, 20) for item in (made.policy(coordinates), loaded)]
    assert plans[0].each_once == plans[1].each_once
    assert np.array_equal(plans[0].counts, plans[1].counts)
    assert plans[0].decision == plans[1].decision


@pytest.fixture
def written(tmp_path):
    """A policy file as data, and what writes it back."""
    path = tmp_path / "policy.json"
    mb.learn("power-1", TWO, 10, out=path, generations=2)
    return json.loads(path.read_text("utf-8")), path


def test_the_file_says_how_the_policy_was_learned(written):
    content, path = written
    learned = content["learned"]
    expected = {"space": "power-1", "arms": 2, "horizon": 10, "objective": "regret", "seed": 0}
    assert {key: learned[key] for key in expected} == expected
    assert learned["regret"]["method"] == "exact"
    assert learned["floor"] == pytest.approx(0.644881, abs=1e-6)
    assert {"metabandit", "numpy", "cmaes"} <= set(learned["versions"])
    assert content["policy"]["values"]["v1"] == "sqrt(ln(h + 1))"
    assert content["policy"]["start"] == {
        "kind": "prior-counts",
        "plays": 2.0,
        "sum": 1.0,
        "squares": 1.0,
    }
    measured = mb.evaluate(str(path), TWO, 10)[0].mean_regret
    assert measured == learned["regret"]["mean"]


def change(content, keys, value):
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value


@pytest.mark.parametrize(
    ("keys", "value", "word"),
    [
        (["version"], 7, "version 7"),
        (["version"], True, "version True"),
        (["policy", "weights"], {}, "weights"),
        (["policy", "weights", "v2"], "1", "v2"),
        (["policy", "weights", "v2"], True, "v2"),
        (["policy", "values", "v3"], "s", "what v1, v2, v3 and v4 are"),
        (["format"], "something", "not a policy file"),
        (["policy", "kind"], "neural", "damaged: policy"),
        (["policy", "weights", "v2"], "much", "v2"),
        (["policy", "weights", "v2"], float("nan"), "v2"),
        (["policy", "weights", "v9"], 1.0, "no feature 'v9'"),
        (["policy", "degree"], 12, "degree"),
        (["policy", "start", "plays"], -2.0, "greater than 0"),
        (["policy", "start", "sum"], None, "takes plays and sum together"),
        (["policy", "start", "squares"], None, "needs plays, sum and squares"),
        (["policy", "start", "kind"], "late", "unknown start 'late'"),
        (["policy", "start", "kind"], "each-once", "has no parameters"),
        (["policy", "start", "reward_sum"], 1.0, "no such field"),
        (["policy", "surprise"], 1, "surprise"),
        (["learned", "horizon"], "long", "horizon"),
        (["learned", "horizon"], -5, "horizon must be at least 1"),
        (["learned", "support"], [1, 0], "below the largest"),
        (["policy", "weights", "v2"], 10**400, "finite"),
    ],
)
def test_damage_is_named(written, keys, value, word):
    content, path = written
    change(content, keys, value)
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(mb.InputError, match=word) as caught:
        mb.policy(str(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"a": 1}', "\x00", "[" * 100_000])
def test_what_is_no_policy_file_is_refused(tmp_path, content):
    path = tmp_path / "policy.json"
    path.write_text(content, "utf-8")
    with pytest.raises(mb.InputError, match=r"policy\.json"):
        read_file(path)
    with pytest.raises(mb.InputError, match="does not exist"):
        read_file(tmp_path / "other.json")


def test_a_policy_for_unlike_arms_is_for_that_many_arms(tmp_path):
    path = tmp_path / "policy.json"
    mb.learn("r + a/n", UNEVEN, 10, out=path, generations=1)
    mb.evaluate(str(path), UNEVEN, 10)
    with pytest.raises(mb.InputError, match="is for 2 arms"):
        mb.evaluate(str(path), mb.Bernoulli(arms=3), 10)


def test_a_policy_for_arms_that_are_alike_is_for_any_number(tmp_path):
    path = tmp_path / "policy.json"
    mb.learn("r + a/n", TWO, 10, out=path, generations=1)
    for prior in (mb.Bernoulli(arms=5), mb.TruncatedGaussian(arms=3)):
        mb.evaluate(str(path), prior, 10, episodes=1000)


def test_parameters_are_those_of_the_expression(tmp_path):
    path = tmp_path / "policy.json"
    mb.learn("r + a/n", TWO, 10, out=path, generations=1)
    content = json.loads(path.read_text("utf-8"))
    content["policy"]["parameters"]["b"] = 1.0
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(mb.InputError, match="the parameters of"):
        mb.policy(str(path))


@pytest.mark.parametrize(
    "prior",
    [
        mb.TruncatedGaussian(arms=2),
        mb.Table([[0.1, 0.2, 0.3]]),
        pytest.param(mb.BetaRewards(arms=2), marks=pytest.mark.slow),
    ],
)
def test_policies_without_a_floor_are_read_back(tmp_path, prior):
    path = tmp_path / "policy.json"
    found = mb.learn("r + a/n", prior, 10, out=path, generations=1, optimizer="cma:population=4")
    assert "floor" not in json.loads(path.read_text("utf-8"))["learned"]
    assert mb.policy(str(path)).formula == found.policy.formula


def test_a_broken_policy_of_the_catalogue(tmp_path):
    path = tmp_path / "policy.json"
    policy = {"kind": "catalogue", "name": "ucb3", "parameters": {"alpha": 0.1}}
    content = {"format": "metabandit policy", "version": 1, "policy": policy}
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(mb.InputError, match="ucb3"):
        mb.policy(str(path))
    policy.update(name="ucb2", parameters={"alpha": 5.0})
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(mb.InputError, match="alpha of ucb2"):
        mb.policy(str(path))
