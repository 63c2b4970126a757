"""Replay of a log: rejection sampling against its definition, and against what policies really get."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import metabandit as mb
from tests.commands import call
from tests.tiers import some

CHANCES = {"a": 0.3, "b": 0.6, "c": 0.5}


def make_log(plays, seed=1, chances=CHANCES):
    rng = random.Random(seed)
    arms = [rng.choice(list(chances)) for _ in range(plays)]
    return [(arm, float(rng.random() < chances[arm])) for arm in arms]


def rejection_sampling(log, policy, horizon, seed):
    """Literally: each play of the log is kept if the policy would have made it, else thrown away."""
    totals = []
    events = iter(log)
    names = sorted({arm for arm, _ in log})
    try:
        while True:
            player = mb.policy(policy).player(
                names, horizon=horizon, seed=seed + len(totals), rewards="binary"
            )
            total, kept = 0.0, 0
            wanted = player.select()
            while kept < horizon:
                arm, reward = next(events)
                if arm == wanted:
                    player.update(arm, reward)
                    total += reward
                    kept += 1
                    if kept < horizon:
                        wanted = player.select()
            totals.append(total)
    except StopIteration:
        return totals


@pytest.mark.parametrize("policy", ["ucb1-tuned", "thompson", "r + 1/n", "ucb2", "uniform"])
def test_replay_is_rejection_sampling(policy):
    log = make_log(3000)
    expected = rejection_sampling(log, policy, 40, 5)
    found = mb.replay(log, policy, horizon=40, seed=5).policies[0]
    assert found.episodes == len(expected)
    assert found.plays == 40 * len(expected)
    assert found.reward == pytest.approx(np.mean(expected))
    error = np.std(expected, ddof=1) / len(expected) ** 0.5
    assert found.standard_error == pytest.approx(error)


def test_replay_tells_what_a_policy_gets():
    # The exact reward on this problem, from 2000 episodes of a log; in the quick tier, from 500.
    chances = {"a": 0.4, "b": 0.55}
    exact = mb.evaluate("ucb1-tuned", mb.Table([list(chances.values())]), 50, method="exact")[0]
    found = mb.replay(
        make_log(some(50_000, 200_000), 2, chances), "ucb1-tuned", horizon=50
    ).policies[0]
    expected = 50 * 0.55 - exact.mean_regret
    assert found.episodes > some(450, 1800)
    assert abs(found.reward - expected) < 3 * found.standard_error
    low, high = found.interval
    assert low < found.reward < high
    assert high - low == pytest.approx(3.92 * found.standard_error, rel=0.01)


def test_policies_are_ranked_beside_the_log_itself():
    found = mb.replay(make_log(20_000), ["uniform", "ucb1-tuned"], horizon=100)
    assert [item.policy for item in found.policies] == ["ucb1-tuned", "uniform"]
    assert found.best_arm[0] == "b"
    assert found.chance == pytest.approx(sum(CHANCES.values()) / 3, abs=0.02)
    assert found.warnings() == []
    titles = [row["policy"] for row in found.rows()]
    assert titles == ["ucb1-tuned", "uniform", "any arm (the log itself)", "always b"]


def test_a_log_that_is_too_short_is_said_to_be():
    log = make_log(400)
    none = mb.replay(log, "ucb1", horizon=200)
    assert none.policies[0].reward is None
    assert "too short" in none.warnings()[0]
    assert "about 18,000 plays" in none.warnings()[0]
    one = mb.replay(log, "ucb1", horizon=80).policies[0]
    assert one.episodes == 1
    assert one.reward is not None
    assert one.interval is None
    few = mb.replay(log, "ucb1", horizon=30)
    assert "the intervals are wide" in few.warnings()[0]


def test_a_log_that_was_not_random_is_said_to_be():
    log = make_log(2000) + [("a", 1.0)] * 500
    assert any(
        "not played evenly" in note for note in mb.replay(log, "ucb1", horizon=20).warnings()
    )


def test_a_learned_policy_brings_its_horizon_and_its_rewards(tmp_path):
    path = tmp_path / "policy.json"
    mb.learn("r + a/n", mb.Bernoulli(arms=2), 30, generations=1, measured=False, out=path)
    log = make_log(3000)
    assert mb.replay(log, ["ucb1", str(path)]).horizon == 30
    with pytest.raises(mb.InputError, match=r"play \d+: .* 0 or 1, not 0.5"):
        mb.replay([(arm, 0.5 * reward) for arm, reward in log], str(path))
    # Others take what comes.
    mb.replay([(arm, 7 * reward - 2) for arm, reward in log], "ucb1", horizon=30)


def write_log(path, log, first="time,Arm, reward \n"):
    lines = [f"{time},{arm},{reward}" for time, (arm, reward) in enumerate(log)]
    path.write_text(first + "\n".join(lines) + "\n", "utf-8")
    return path


def test_the_command(tmp_path):
    log = write_log(tmp_path / "log.csv", make_log(3000))
    arguments = (log, "--policy", "ucb1-tuned", "--policy", "r", "--horizon", 50)
    done = call(["replay", *arguments], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Reward of 50 plays, replayed from 3,000 random plays of 3 arms" in done.stdout
    assert "always b" in done.stdout
    data = json.loads(call(["replay", *arguments, "--json"], tmp_path).stdout)
    same = mb.replay(make_log(3000), ["ucb1-tuned", "r"], horizon=50)
    assert [item["reward"] for item in data["policies"]] == [i.reward for i in same.policies]
    short = call(["replay", log, "--policy", "ucb1", "--horizon", 5000], tmp_path)
    assert short.returncode == 0
    assert "too short" in short.stderr


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "holds no play"),
        ("arm,reward\n", "holds no play"),
        ("arm,reward\na,1\na,0\n", "one arm only"),
        ("a,b,c\n1,2,3\n", "columns arm and reward"),
        ("arm,reward\na,1\nb,much\n", "line 3, column 2 (reward): 'much' is not a number"),
        ("arm,reward\na,1\nb,nan\n", "line 3, column 2 (reward): the cell is empty ('nan')"),
        ("arm,reward\na,1\nb\n", "line 3: 1 cells, the first line has 2"),
        ("arm,reward\na,1\n,1\n", "line 3, column 1 (arm): the cell is empty"),
    ],
)
def test_logs_that_cannot_be_read(tmp_path, content, word):
    path = tmp_path / "log.csv"
    path.write_text(content, "utf-8")
    done = call(["replay", path, "--policy", "ucb1", "--horizon", 5], tmp_path)
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_what_else_is_refused(tmp_path):
    log = write_log(tmp_path / "log.csv", make_log(50))
    for arguments, word in (
        ((tmp_path / "none.csv", "--policy", "ucb1", "--horizon", 5), "does not exist"),
        ((log, "--policy", "ucb1"), "--horizon 100"),
        ((log, "--policy", "ucb9", "--horizon", 5), "unknown policy"),
        ((log, "--policy", "thompson:a=0", "--horizon", 5), "greater than 0"),
    ):
        done = call(["replay", *arguments], tmp_path)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
        assert word in done.stderr
    with pytest.raises(mb.InputError, match="no policy"):
        mb.replay(make_log(50), [], horizon=5)
    for log in ([1, 2], None, [([], 1), ([], 0)]):
        with pytest.raises(mb.InputError, match=r"pairs|an arm is called"):
            mb.replay(log, "ucb1", horizon=5)
    with pytest.raises(mb.InputError, match="a policy is"):
        mb.replay(make_log(50), None, horizon=5)
    mb.replay(make_log(200), "ucb1", horizon=5, seed=2**63 - 1)


def test_two_columns_need_no_titles(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("".join(f"{arm},{reward}\n" for arm, reward in make_log(60)), "utf-8")
    assert len(mb.read_log(path)) == 60
