"""Learning from end to end: what is reached, reported and refused."""

import numpy as np
import pytest

import metabandit as mb
from metabandit.engine.task import read_task
from metabandit.learning import judges
from metabandit.learning.spaces import make_space

TWO = mb.Bernoulli(arms=2)


def test_ten_plays_are_learned_to_the_optimum():
    found = mb.learn("power-1", TWO, 10)
    assert found.evaluation.mean_regret <= 0.64489
    assert found.stopped == "optimum reached"
    assert found.floor == pytest.approx(0.644881, abs=1e-6)
    again = mb.evaluate([found.policy], TWO, 10, method="exact")[0]
    assert again.mean_regret == found.evaluation.mean_regret
    assert found.comparison.ranking()[0].policy == found.policy.name


@pytest.mark.slow
def test_two_numbers_beat_the_papers_formula():
    found = mb.learn("r + a/(n + b)", TWO, 100, effort=0.3)
    formula = mb.evaluate("r + 1/(n + 1/2)", TWO, 100, start="prior-counts")[0]
    assert found.evaluation.mean_regret <= formula.mean_regret + 1e-9
    assert set(found.parameters) == {"a", "b"}


@pytest.mark.parametrize(
    ("space", "prior", "options"),
    [
        ("power-1", TWO, {"effort": 0.02}),
        pytest.param(
            "r + a/n",
            mb.Bernoulli(arms=3),
            {"protocol": "paper", "generations": 3},
            marks=pytest.mark.slow,
        ),
        ("ucb1", mb.Gaussian(arms=3), {"generations": 4, "episodes": 2000, "floor_effort": 0.02}),
        pytest.param(
            "ucb1",
            TWO,
            {"objective": "wins", "reference": "ucb1-tuned", "generations": 3},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_one_seed_one_policy_on_any_number_of_threads(space, prior, options):
    files = [
        mb.learn(space, prior, 30, threads=threads, seed=4, **options).file for threads in (1, 2)
    ]
    assert files[0] == files[1]
    other = mb.learn(space, prior, 30, seed=5, **options).file
    assert other.policy != files[0].policy


def test_the_papers_protocol():
    found = mb.learn("ucb1", TWO, 30, protocol="paper", generations=12)
    record = found.trace[0]
    assert (record["problems"], record["runs"], len(record["values"])) == (100, 100, 40)
    assert found.file.policy.start.kind == "each-once"
    values = [min(record["values"]) for record in found.trace]
    best = found.trace[int(np.argmin(values))]
    assert found.parameters["C"] == pytest.approx(10.0 ** best["best_candidate"][0])
    assert len(found.trace) == 12
    # The same problems with the same luck: the same candidate has the same value.
    space = make_space("ucb1", TWO, paper=True)
    task = read_task(TWO, 30, threads=1)
    judge = judges.Judge(task, "simulated", seed=8, training=(100, 100))
    candidate = space.policy(np.array([-0.77]))
    assert judge.judge([candidate], 0)[0] == judge.judge([candidate], 7)[0]


def test_the_reported_regret_is_measured_on_fresh_problems():
    found = mb.learn("ucb1", mb.Gaussian(arms=2), 20, generations=5, floor_effort=0.02)
    seeds = {found.comparison.seed}
    assert seeds.isdisjoint({record.get("seed") for record in found.trace})
    low, high = found.evaluation.interval
    assert low < found.evaluation.mean_regret < high
    names = [item.policy for item in found.comparison]
    assert names[0].startswith("ucb1:C=")
    assert {"ucb1", "ucb1-tuned", "thompson"} <= set(names)
    assert "kl-ucb" not in names, "it cannot play Gaussian rewards"


@pytest.mark.slow
def test_wins_are_learned():
    options = {"effort": 0.1, "seed": 1}
    aim = mb.learn(
        "power-1", TWO, 30, objective="wins", reference="ucb1-tuned", generations=20, seed=1
    )
    mean = mb.learn("power-1", TWO, 30, **options)
    problems = mb.Table(TWO.draw(np.random.default_rng(77), 4000)[..., 0])
    test = mb.evaluate([aim.policy, mean.policy, "ucb1-tuned"], problems, 30, method="exact")
    wins = [test.share_of_wins(position, 2) for position in (0, 1)]
    assert wins[0] > wins[1]
    assert 1.0 - aim.objective == pytest.approx(wins[0], abs=0.03)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"objective": "wins"}, "--reference"),
        ({"objective": "profit"}, "unknown objective"),
        ({"objective": "quantile:q=2"}, "between 0 and 1"),
        ({"reference": "ucb1"}, "for the objective wins"),
        ({"protocol": "mine"}, "unknown protocol"),
        ({"effort": 0}, "greater than 0"),
        ({"generations": 0}, "at least 1"),
        ({"time_limit": -1}, "greater than 0"),
        ({"seed": -1}, "at least 0"),
        ({"resume": True}, "give --out"),
        ({"v1": "x", "space": "power-1"}, "v1 of Power-P"),
        ({"v1": "t"}, "has none"),
        ({"initial": {"r": 1.0}}, "is a variable"),
        ({"initial": {"z": 1.0}}, "no parameter"),
        ({"initial": {"C": 1e40}}, "at most 1e"),
        ({"initial": [1, 2]}, "to begin with"),
        ({"initial": "nowhere.json"}, "does not exist"),
        ({"objective": None}, "must be a text"),
        ({"optimizer": 3}, "must be a text"),
        ({"start": 3}, "must be a text"),
        ({"out": 3}, "text or a Path"),
        ({"space": "power-1.5"}, "1 to 4"),
        ({"space": "policy.json"}, "--initial policy.json"),
        ({"start": "each-once", "space": "thompson"}, "its own start"),
    ],
)
def test_bad_input_is_refused(options, word):
    arguments = {"space": "ucb1", "prior": TWO, "horizon": 10, **options}
    with pytest.raises(mb.InputError, match=word):
        mb.learn(**arguments)


def test_a_learned_start_needs_arms_that_are_alike():
    uneven = mb.Bernoulli(arms=2, alpha=[3, 1], beta=[2, 1])
    with pytest.raises(mb.InputError, match="differ"):
        mb.learn("ucb1", uneven, 10, start="prior-counts:learn")
    found = mb.learn("r + a/n", uneven, 10, effort=0.05)
    assert found.file.policy.start.plays == (5.0, 2.0)


def test_a_time_limit_ends_the_search():
    found = mb.learn("power-1", TWO, 50, time_limit=0.2)
    assert found.stopped == "time limit"
    assert sum(record["seconds"] for record in found.trace) < 5.0


def test_a_policy_file_to_begin_with(tmp_path):
    out = tmp_path / "first.json"
    first = mb.learn("power-1", TWO, 50, out=out, effort=0.1)
    second = mb.learn(
        "power-1", TWO, 50, initial=out, generations=1, optimizer="cma:deviation=1e-6"
    )
    assert second.evaluation.mean_regret == pytest.approx(first.evaluation.mean_regret, abs=1e-3)


@pytest.mark.slow
def test_long_horizons_are_learned_in_stages():
    found = mb.learn("power-1", TWO, 400, effort=0.01)
    assert {record["horizon"] for record in found.trace} == {40, 400}
    assert found.evaluation.mean_regret < mb.evaluate("ucb1-tuned", TWO, 400)[0].mean_regret
    assert found.comparison.floor.regret < found.evaluation.mean_regret


def test_a_table_is_split_into_a_part_to_learn_on_and_a_part_to_report_on():
    means = TWO.draw(np.random.default_rng(3), 41)[..., 0]
    table = mb.Table(means)
    part = table.split()
    assert (len(part.means), len(part.held_out.means)) == (21, 20)
    both = np.concatenate([part.means, part.held_out.means])
    assert sorted(map(tuple, both)) == sorted(map(tuple, means))
    assert part.split() is part
    assert mb.Table(means[:19]).split().held_out is None
    said = []
    learned = mb.learn("r + a/n", table, 20, generations=2, announce=said.append, start="each-once")
    assert any("learned on 21 problems of the table, measured on the other 20" in x for x in said)
    again = mb.evaluate(learned.policy, part.held_out, 20, method="exact")[0]
    assert learned.evaluation.mean_regret == pytest.approx(again.mean_regret)


@pytest.mark.parametrize("objective", ["worst", "quantile:q=0.9"])
def test_objectives_over_problems_keep_to_the_effort(objective):
    learned = mb.learn("ucb1", TWO, 5, objective=objective, effort=0.001, measured=False)
    # Each candidate is judged on a thousand problems, which takes about a millisecond.
    assert learned.stopped == "generations"
    assert len(learned.trace) < 100
