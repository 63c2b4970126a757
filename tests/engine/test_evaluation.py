"""What an evaluation reports: errors by problem, pairs, curves, plays; and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

import metabandit as mb
from metabandit.engine import engine

PRIOR = mb.Bernoulli(arms=3)
PAIR = ["ucb1", "r + 3/(n + 2)"]


@pytest.fixture(scope="module")
def result():
    return mb.evaluate(PAIR, PRIOR, 40, episodes=30_000, runs=10, seed=4)


def test_the_standard_error_is_over_problems(result):
    for evaluation in result:
        regret = evaluation.problem_regret.astype(float)
        assert regret.shape == (3000,)
        assert evaluation.mean_regret == pytest.approx(regret.mean(), rel=1e-6)
        expected = regret.std(ddof=1) / math.sqrt(3000)
        assert evaluation.standard_error == pytest.approx(expected, rel=1e-5)
        low, high = evaluation.interval
        assert high - low == pytest.approx(2 * 1.96 * expected, rel=1e-3)


def test_runs_average_the_luck_of_a_problem():
    """More runs of the same problems: less noise in a problem's regret, the same problems."""
    alone = mb.evaluate("ucb1", PRIOR, 40, episodes=2000, seed=4)[0].problem_regret
    often = mb.evaluate("ucb1", PRIOR, 40, episodes=200_000, runs=100, seed=4)[0].problem_regret
    # Both are unbiased for the same 2000 problems, so their mean difference is luck.
    difference = alone.astype(float) - often
    assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(2000)
    assert often.std() < alone.std()
    assert np.corrcoef(alone, often)[0, 1] > 0.5


def test_paired_differences(result):
    first, second = (evaluation.problem_regret.astype(float) for evaluation in result)
    difference = result.difference(*PAIR)
    assert difference.mean == pytest.approx((first - second).mean(), rel=1e-4)
    expected = (first - second).std(ddof=1) / math.sqrt(3000)
    assert difference.standard_error == pytest.approx(expected, rel=1e-3)
    assert difference.significant
    assert result.difference(0, 0).standard_error == 0.0
    unpaired = math.hypot(result[0].standard_error, result[1].standard_error)
    assert difference.standard_error < unpaired


def test_curves_and_plays(result):
    for evaluation in result:
        assert evaluation.checkpoints[-1] == 40
        assert evaluation.curve[-1] == evaluation.mean_regret
        assert (np.diff(evaluation.curve) >= 0).all()
        assert evaluation.plays.sum() == pytest.approx(40)
        # Each arm is the best of a third of the problems.
        assert evaluation.plays == pytest.approx(np.full(3, 40 / 3), rel=0.1)


def test_checkpoints_are_points_of_one_curve():
    every = mb.evaluate("ucb1", PRIOR, 40, episodes=3000, checkpoints=range(1, 41))[0]
    some = mb.evaluate("ucb1", PRIOR, 40, episodes=3000, checkpoints=[7, 19])[0]
    assert list(some.checkpoints) == [7, 19, 40]
    assert some.curve.tolist() == every.curve[[6, 18, 39]].tolist()


def test_uniform_play_has_a_known_regret():
    """T times the expected gap of a random arm: best of K uniform means less 1/2."""
    for arms in (2, 5, 100):
        evaluation = mb.evaluate("uniform", mb.Bernoulli(arms=arms), 20, episodes=20_000)[0]
        expected = 20 * (arms / (arms + 1) - 0.5)
        assert abs(evaluation.mean_regret - expected) < 4 * evaluation.standard_error


def test_prior_counts_need_no_forced_plays():
    """With a start from the prior even one play can be evaluated: the better prior mean is taken."""
    prior = mb.Bernoulli(alpha=[8, 1], beta=[2, 1])
    evaluation = mb.evaluate("r", prior, 1, start="prior-counts", episodes=10_000)[0]
    assert list(evaluation.plays) == [1.0, 0.0]


def test_regret_against_the_parent_or_the_true_mean():
    parent = mb.evaluate("uniform", mb.TruncatedGaussian(regret="parent"), 10, episodes=50_000)[0]
    true = mb.evaluate("uniform", mb.TruncatedGaussian(), 10, episodes=50_000)[0]
    # The parents' means are uniform on [0, 1]: a gap of 1/3 on average.
    assert abs(parent.mean_regret - 10 / 6) < 4 * parent.standard_error
    assert true.mean_regret < 0.8 * parent.mean_regret


def test_progress_and_plain_data(result):
    seen = []
    mb.evaluate("ucb1", PRIOR, 10, episodes=20_000, progress=lambda *done: seen.append(done))
    assert seen[-1] == (20_000, 20_000)
    assert len(seen) > 1
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    data = result.to_dict()
    assert [item["policy"] for item in data["policies"]] == PAIR
    assert data["prior"] == "bernoulli:alpha=1,beta=1"
    assert (
        mb.evaluate("ucb1", PRIOR, 10, episodes=1).to_dict()["policies"][0]["standard_error"]
        is None
    )


def test_table_is_sorted_and_names_everything(result):
    lines = result.table().splitlines()
    assert lines[2].startswith("r + 3/(n + 2)")
    assert lines[3].startswith("ucb1")
    with pytest.raises(mb.InputError, match="greedy"):
        result["greedy"]


def test_many_problems_keep_sums_only(monkeypatch):

    kept = mb.evaluate(PAIR, PRIOR, 10, episodes=20_000)
    monkeypatch.setattr(engine, "_MOST_KEPT", 1000)
    sums = mb.evaluate(PAIR, PRIOR, 10, episodes=20_000)
    assert sums[0].problem_regret is None
    assert sums.to_dict() == kept.to_dict()
    assert sums.difference(0, 1) == kept.difference(0, 1)


def test_an_index_that_is_not_finite_names_the_state():
    for arms in (2, 5):
        with pytest.raises(mb.IndexFault) as caught:
            mb.evaluate("1/s", mb.Bernoulli(arms=arms), 10, episodes=100)
        assert caught.value.state["n"] == 1
        assert caught.value.state["s"] == 0
        assert caught.value.state["t"] == arms
    with pytest.raises(mb.IndexFault, match="not a number"):
        mb.evaluate("ln(r - 2) + 1/t", mb.Bernoulli(), 10, episodes=100)


def test_what_a_person_wrote_is_checked():
    class Wrong(mb.Prior):
        family = mb.BERNOULLI
        arms = 2

        def draw(self, rng, problems):
            return rng.random((problems, 3, 1))

    with pytest.raises(mb.InputError, match=r"shape \(64, 3, 1\)"):
        mb.evaluate("ucb1", Wrong(), 10)
    with pytest.raises(mb.InputError, match="chose an arm that does not exist"):
        mb.evaluate(mb.ChoicePolicy("lost", lambda n, r, s, t, h, u: 2), PRIOR.__class__(), 10)
    with pytest.raises(mb.InputError, match="the rule of the policy text cannot be compiled"):
        mb.evaluate(mb.ChoicePolicy("text", lambda n, r, s, t, h, u: "first"), PRIOR, 10)

    class Endless(mb.Prior):
        family = mb.Family("endless", ("a",), lambda u, a: math.log(u - 0.5), lambda p: p[..., 0])
        arms = 2

        def draw(self, rng, problems):
            return rng.random((problems, 2, 1))

    with pytest.raises(mb.InputError, match="the family endless drew a reward"):
        mb.evaluate("ucb1", Endless(), 10)


class Own(mb.Prior):
    """A prior whose methods a test can set."""

    family = mb.BERNOULLI
    arms = 2

    def __init__(self, **methods):
        for name, method in methods.items():
            setattr(self, name, method)

    def draw(self, rng, problems):
        return rng.random((problems, 2, 1))


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({"counts": lambda: np.full((1, 1), 2.0)}, r"shape \(3, 2\)"),
        ({"counts": lambda: np.zeros((3, 2))}, "greater than 0"),
        ({"counts": lambda: np.array([[1, 1], [5, 5], [5, 5]])}, "sum of the start"),
        ({"draw": lambda rng, problems: np.full((problems, 2, 1), 1.7)}, "means from 1.7"),
        ({"regret_means": lambda p: np.full(p.shape[:2], np.nan)}, "one finite number per arm"),
        ({"regret_means": lambda p: np.zeros(5)}, "one finite number per arm"),
    ],
)
def test_what_a_prior_says_is_checked(methods, words):
    with pytest.raises(mb.InputError, match=words):
        mb.evaluate(
            "r",
            Own(**methods),
            10,
            start="prior-counts:plays=2,sum=1" if "counts" not in methods else "prior-counts",
        )


def test_rewards_outside_the_support_are_refused():
    losses = mb.Family("losses", ("p",), lambda u, p: -u * p, lambda p: p[..., 0] / 2)
    with pytest.raises(mb.InputError, match="between 0 and 1"):
        mb.evaluate("thompson", Own(family=losses), 10, episodes=100)


def test_a_start_applies_to_index_policies_without_one_of_their_own():
    text = mb.evaluate("r", PRIOR, 10, start="prior-counts", episodes=1000)
    made = mb.evaluate(mb.IndexPolicy("r"), PRIOR, 10, start="prior-counts", episodes=1000)
    own = mb.evaluate(
        mb.IndexPolicy("r", start="each-once"), PRIOR, 10, start="prior-counts", episodes=1000
    )
    assert text[0].mean_regret == made[0].mean_regret != own[0].mean_regret
    assert text.to_dict()["start"] == "prior-counts"


def test_a_family_of_ones_own_draws_what_it_says():
    """Three parameters: the mean reward of an arm, measured by playing it, is the family's mean."""

    class Ramp(mb.Prior):
        family = mb.Family(
            "ramp",
            ("low", "width", "power"),
            lambda u, p: p[0] + p[1] * u ** p[2],
            lambda p: p[..., 0] + p[..., 1] / (1 + p[..., 2]),
            support=(-1.0, 3.0),
        )
        arms = 2

        def draw(self, rng, problems):
            shape = (problems, 2)
            numbers = [
                rng.uniform(-1, 1, shape),
                rng.uniform(1, 2, shape),
                rng.uniform(0.5, 3, shape),
            ]
            return np.stack(numbers, axis=-1)

    # Playing on greedily after many forced plays finds the better arm nearly always.
    greedy = mb.evaluate("greedy", Ramp(), 200, episodes=4000)[0]
    uniform = mb.evaluate("uniform", Ramp(), 200, episodes=4000)[0]
    assert greedy.mean_regret < 0.3 * uniform.mean_regret


class Stop(Exception):
    """Something that ends an evaluation."""


@pytest.mark.parametrize("method", ["exact", "monte-carlo"])
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_an_evaluation_goes_on_where_it_was_stopped(tmp_path, method, calls):
    options = {"method": method, "checkpoints": [5, 30], "threads": 1, "floor": False}
    if method == "monte-carlo":
        options |= {"episodes": 60_000, "runs": 2, "seed": 9, "keep_plays": True}
    prior, policies = mb.Bernoulli(arms=2, alpha=[1, 2]), ["ucb1", "r + 1/n", "thompson"]
    wanted = mb.evaluate(policies, prior, 30, **options)
    # Two reports are of the first policy, which is kept when it is finished.
    left = calls + (2 if method == "exact" else 0)

    def stop(done, total):
        nonlocal left
        left -= 1
        if not left:
            raise Stop

    path = tmp_path / "kept.npz"
    with pytest.raises(Stop):
        mb.evaluate(policies, prior, 30, keep=path, progress=stop, **options)
    with pytest.raises(mb.InputError, match=r"kept\.npz exists"):
        mb.evaluate(policies, prior, 30, keep=path, **options)
    with pytest.raises(mb.InputError, match=r"another evaluation: its policies is 'ucb1, r \+ 1/n"):
        mb.evaluate(policies[:2], prior, 30, keep=path, resume=True, **options)
    with pytest.raises(mb.InputError, match="rules of the policies"):
        mb.evaluate(
            ["ucb1", mb.IndexPolicy("r + 2/n", name="r + 1/n"), "thompson"],
            prior, 30, keep=path, resume=True, **options,
        )  # fmt: skip
    for _ in range(2):  # the second time there is nothing left to do
        found = mb.evaluate(policies, prior, 30, keep=path, resume=True, **options)
        assert found.to_dict() == wanted.to_dict()
        assert (found.covariance == wanted.covariance).all()
        for one, other in zip(found, wanted, strict=True):
            assert np.array_equal(one.problem_plays, other.problem_plays)
            assert np.array_equal(one.problem_regret, other.problem_regret)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(mb.InputError, match="damaged"):
        mb.evaluate(policies, prior, 30, keep=path, resume=True, **options)
    with pytest.raises(mb.InputError, match="keep"):
        mb.evaluate(policies, prior, 30, resume=True, **options)


def test_policies_that_begin_with_the_prior_can_be_kept(tmp_path):
    options = {"start": "prior-counts", "keep": tmp_path / "kept.npz"}
    wanted = mb.evaluate(["ucb1", "optimal"], mb.Bernoulli(arms=2), 20, **options)
    found = mb.evaluate(["ucb1", "optimal"], mb.Bernoulli(arms=2), 20, resume=True, **options)
    assert found.to_dict() == wanted.to_dict()
    options["start"] = "each-once"
    with pytest.raises(mb.InputError, match="rules of the policies"):
        mb.evaluate(["ucb1", "optimal"], mb.Bernoulli(arms=2), 20, resume=True, **options)


def test_exact_regret_on_given_problems_goes_on_too(tmp_path):
    prior = mb.Table([[0.2, 0.8], [0.5, 0.4], [0.1, 0.3]])
    options = {"method": "exact", "keep": tmp_path / "kept.npz"}
    wanted = mb.evaluate(["ucb1", "greedy"], prior, 20, **options)
    found = mb.evaluate(["ucb1", "greedy"], prior, 20, resume=True, **options)
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(one.problem_regret, other.problem_regret)
        assert one.simple_regret == other.simple_regret


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": 0}, "at least 1, not 0"),
        ({"horizon": 2**25}, "at most 16,777,216"),
        ({"horizon": 2.5}, "whole number, not 2.5"),
        ({"episodes": 0}, "at least 1, not 0"),
        ({"episodes": 10, "runs": 3}, "multiple of the runs"),
        ({"runs": 0}, "at least 1, not 0"),
        ({"seed": -1}, "at least 0, not -1"),
        ({"seed": 2**63}, "at most"),
        ({"threads": 0}, "at least 1, not 0"),
        ({"lanes": 100}, "multiple of 64"),
        ({"checkpoints": [0, 5]}, "between 1 and the horizon"),
        ({"checkpoints": [50]}, "between 1 and the horizon"),
        ({"policies": []}, "no policy"),
        ({"policies": None}, "not None"),
        ({"checkpoints": [2.5]}, "whole number, not 2.5"),
        ({"policies": "kl-ucb", "prior": mb.Gaussian()}, r"rewards in \[0, 1\]"),
        ({"policies": [3]}, "not 3"),
        ({"prior": 3}, "must be a Prior"),
    ],
)
def test_bad_settings_are_refused(options, words):
    settings = {"policies": "ucb1", "prior": PRIOR, "horizon": 20, **options}
    with pytest.raises(mb.InputError, match=words):
        mb.evaluate(**settings)
