"""Advice: what is ranked, what is recommended, and that it is the same on any number of threads."""

import json

import numpy as np
import pytest

import metabandit as mb
from metabandit.advice import advisor, comparing, readable
from metabandit.advice.advisor import _versus
from metabandit.advice.comparing import playable
from metabandit.advice.neighbours import neighbours
from metabandit.advice.readable import reward_scale, shapes
from metabandit.advice.result import CLASSIC, FORMULA, LEARNED, Candidate, Gain, recommend
from metabandit.engine.results import NORMAL_95
from metabandit.engine.task import read_task, stream
from tests.commands import call

SMALL = {"effort": 0.005, "seed": 3}


@pytest.fixture(scope="module")
def advice(tmp_path_factory):
    """On simulated problems, with what is recommended written."""
    out = tmp_path_factory.mktemp("advice") / "policy.json"
    return mb.advise(mb.Bernoulli(arms=3), 30, out=out, threads=2, **SMALL)


@pytest.fixture(scope="module")
def exact_advice():
    return mb.advise(mb.Bernoulli(arms=2), 12, **SMALL)


def test_the_ranking_is_sorted_and_complete(advice):
    regrets = [item["regret"] for item in advice.to_dict()["ranking"]]
    assert regrets == sorted(regrets)
    roles = [item.role for item in advice.candidates]
    assert (roles.count(FORMULA), roles.count(LEARNED)) == (1, 1)
    named = {item.policy.name for item in advice.candidates} | {name for name, _ in advice.skipped}
    assert named >= set(mb.policies.CATALOGUE) - {"optimal"}
    assert "bayes-ucb" in dict(advice.skipped)


def test_the_figures_are_those_of_evaluate(advice):
    policies = [item.policy for item in advice.candidates]
    seed, episodes = stream(3, 7), advice.comparison.episodes
    result = mb.evaluate(policies, mb.Bernoulli(arms=3), 30, seed=seed, episodes=episodes)
    classic = min(
        (place for place, item in enumerate(advice.candidates) if item.role == CLASSIC),
        key=lambda place: result[place].mean_regret,
    )
    assert advice.classic == classic
    base = result[classic].mean_regret
    best = 30 * 0.75  # the mean of the largest of three uniform numbers
    for place in range(len(policies)):
        assert advice.comparison[place].mean_regret == result[place].mean_regret
        assert advice.reward(place) == pytest.approx(best - result[place].mean_regret)
        apart = result.difference(classic, place)
        over = advice.gain(place)
        assert over.share == pytest.approx(apart.mean / base)
        half = NORMAL_95 * apart.standard_error / base
        assert over.interval == pytest.approx((over.share - half, over.share + half))
        assert over.plays == pytest.approx(apart.mean / ((best - base) / 30))
        assert over.significant == apart.significant


def test_no_search_has_seen_the_problems(monkeypatch):
    seeds = []

    def note(home, name, key):
        made = getattr(home, name)

        def noted(*given, **named):
            seeds.append((name, named[key]))
            return made(*given, **named)

        monkeypatch.setattr(home, name, noted)

    note(readable, "Judge", "seed")
    note(advisor, "learn", "seed")
    note(comparing, "evaluate", "seed")
    mb.advise(mb.Bernoulli(arms=3), 30, **SMALL)
    searched = {seed for name, seed in seeds if name != "evaluate"}
    compared = {seed for name, seed in seeds if name == "evaluate"}
    assert len(searched) == 2
    assert len(compared) >= 5
    assert not searched & compared


def test_slow_classics_and_the_start_are_noted(advice):
    notes = " ".join(advice.notes)
    assert "bayes-ucb is slow, so it was played on" in notes
    assert "plays each arm once first, as it is defined. Begun with the prior's" in notes
    table = mb.advise(mb.Table([[0.1, 0.5, 0.2], [0.3, 0.2, 0.4]]), 30, **SMALL)
    assert any("2 rows of the table" in note for note in table.notes)


def test_gains_in_words():
    def versus(share, significant):
        return _versus(Gain(share, (share, share), None, significant))

    assert versus(0.251, True) == "25 % less regret than"
    assert versus(-0.1, True) == "10 % more regret than"
    assert "noise" in versus(0.1, False)


def test_the_recommended_policy_is_written(advice):
    assert advice.recommended.role in (FORMULA, LEARNED)
    again = mb.evaluate(str(advice.written), mb.Bernoulli(arms=3), 30, episodes=2000, seed=8)
    same = mb.evaluate(advice.recommended.policy, mb.Bernoulli(arms=3), 30, episodes=2000, seed=8)
    assert again[0].mean_regret == same[0].mean_regret
    content = json.loads(advice.written.read_text("utf-8"))
    assert content["learned"]["regret"]["mean"] == advice.comparison[advice.choice].mean_regret


def test_one_seed_one_result_on_any_number_of_threads(advice):
    other = mb.advise(mb.Bernoulli(arms=3), 30, threads=1, **SMALL)
    first, second = advice.to_dict(), other.to_dict()
    assert first.pop("written") != second.pop("written")
    assert first == second


def test_exact_where_that_is_quick(exact_advice):
    result = exact_advice.to_dict()
    assert result["method"] == "exact"
    assert result["floor"] == pytest.approx(mb.optimal(mb.Bernoulli(arms=2), 12).regret)
    assert min(item["regret"] for item in result["ranking"]) >= result["floor"] - 1e-12
    assert "ucb2" in dict(exact_advice.skipped)
    assert exact_advice.rows()[-1]["policy"] == "Bayes-optimal"
    assert "successes" in exact_advice.rows(successes=True)[0]
    assert "gittins" in {item.policy.name for item in exact_advice.candidates}
    assert exact_advice.summary().startswith("Use ")


def test_neighbouring_problems_are_played(exact_advice):
    labels = [item.label for item in exact_advice.scenarios]
    assert labels[-2:] == ["half the plays", "twice the plays"]
    assert len(labels) == 5
    for item in exact_advice.scenarios:
        names = {exact_advice.candidates[place].policy.name for place in item.places}
        assert {"thompson", "learned power-1"} <= names
        for place, found in zip(item.places, item.comparison, strict=True):
            assert item.regret(place) is found
    half = exact_advice.scenarios[-2].comparison
    policies = [exact_advice.candidates[p].policy for p in exact_advice.scenarios[-2].places]
    same = mb.evaluate(policies, mb.Bernoulli(arms=2), 6, method="exact")
    assert [item.mean_regret for item in half] == [item.mean_regret for item in same]


def _ranked(*regrets, noise=0.0):
    """What is recommended of a formula, a learned policy and a classic with these regrets."""
    result = mb.evaluate(["r", "r + 1/n", "ucb1"], mb.Bernoulli(arms=2), 5, episodes=100)
    evaluations = []
    for item, regret in zip(result, regrets, strict=True):
        values = {**vars(item), "mean_regret": regret}
        evaluations.append(type(item)(**values))
    fields = {
        **vars(result),
        "evaluations": tuple(evaluations),
        "covariance": noise**2 * 100 / 2 * np.eye(3),
    }
    candidates = [Candidate(role, mb.policy("r")) for role in (FORMULA, LEARNED, CLASSIC)]
    return candidates[recommend(candidates, type(result)(**fields))].role


def test_the_simplest_policy_that_is_good_is_recommended():
    assert _ranked(1.00, 0.995, 2.0) == FORMULA, "less than 1 % apart"
    assert _ranked(1.10, 1.000, 2.0) == LEARNED
    assert _ranked(1.10, 1.000, 2.0, noise=0.2) == FORMULA, "apart by noise only"
    assert _ranked(1.90, 1.950, 2.0, noise=0.2) == CLASSIC, "no better than noise"
    assert _ranked(2.10, 2.200, 2.0) == CLASSIC
    assert _ranked(1.99, 1.800, 2.0, noise=0.1) == LEARNED, "the formula is no better than noise"
    assert _ranked(1.9999, 1.9999, 2.0) == CLASSIC, "nothing to speak of"


class Own(mb.Prior):
    """A prior that metabandit knows nothing about."""

    family = mb.BERNOULLI
    arms = 2

    def draw(self, rng, problems):
        return rng.choice([0.2, 0.8], (problems, 2, 1))


PRIORS = [
    (mb.Bernoulli(arms=3, alpha=[1, 2, 3], beta=2), 5),
    (mb.BetaRewards(arms=2), 5),
    (mb.TruncatedGaussian(arms=2), 5),
    (mb.Gaussian(arms=2), 5),
    (mb.Table([[0.1, 0.5], [0.3, 0.2]]), 5),
    (mb.Table([[1.0, 5.0], [3.0, 2.0]], family="gaussian"), 5),
    (Own(), 2),
]


@pytest.mark.parametrize(("prior", "count"), PRIORS, ids=lambda item: str(item))
def test_neighbours_of_every_kind_of_prior(prior, count):
    found = [item for _, item in neighbours(read_task(prior, 40, seed=1))]
    assert len(found) == count
    assert [item.horizon for item in found[-2:]] == [20, 80]
    for item in found:
        assert item.prior.arms == prior.arms
        assert item.prior.draw(np.random.default_rng(0), 4).shape[:2] == (4, prior.arms)


def test_neighbours_keep_or_lower_the_mean():
    near = neighbours(read_task(mb.Bernoulli(arms=2, alpha=2, beta=6), 10))
    closer, apart, lower = [item for _, item in near[:3]]
    means = [
        item.prior.alpha[0] / (item.prior.alpha[0] + item.prior.beta[0])
        for item in (closer, apart, lower)
    ]
    assert means == pytest.approx([0.25, 0.25, 0.25 / 3])
    assert sum((closer.prior.alpha[0], closer.prior.beta[0])) == pytest.approx(24)
    assert sum((lower.prior.alpha[0], lower.prior.beta[0])) == pytest.approx(8)


def test_what_cannot_be_played_is_skipped_with_the_reason():
    _, references, skipped = playable(read_task(mb.Gaussian(arms=2), 50))
    assert [item.name for item in references] == ["gittins"]
    why = dict(skipped)
    assert "[0, 1]" in why["kl-ucb"]
    assert "[0, 1]" in why["bayes-ucb"]
    _, _, skipped = playable(read_task(mb.Bernoulli(arms=3), 50))
    assert "too slow" in dict(skipped)["bayes-ucb"]
    assert "too long" in dict(playable(read_task(mb.Bernoulli(arms=2), 2000))[2])["gittins"]


def test_formulas_fit_the_size_of_rewards():
    assert reward_scale(mb.Bernoulli(arms=2), 0) == 1.0
    large = reward_scale(mb.Gaussian(arms=2, spread=100.0, noise=100.0), 0)
    assert 100.0 <= large <= 500.0
    texts = list(shapes(large, unit=False))
    assert len(set(texts)) == len(texts)
    assert not any("sqrt(r)" in text for text in texts)


def test_a_policy_that_fails_is_left_out_and_said_so(monkeypatch):
    entry = mb.Entry("failing", "1/(n - 2)", "infinite after two plays")
    monkeypatch.setitem(mb.policies.CATALOGUE, "failing", entry)
    advice = mb.advise(mb.Bernoulli(arms=3), 8, effort=0.001)
    assert "infinite" in dict(advice.skipped)["failing"]
    assert "failing" not in {item.policy.name for item in advice.candidates}
    assert len(advice.candidates) == len(advice.comparison)


def test_a_prior_of_ones_own(tmp_path):
    out = tmp_path / "policy.json"
    advice = mb.advise(Own(), 6, effort=0.001, out=out)
    assert any("horizon alone" in note for note in advice.notes)
    assert out.exists() == (advice.recommended.role != CLASSIC)
    assert (advice.written is None) == (advice.recommended.role == CLASSIC)


def command(*arguments, folder):
    return call(["advise", *arguments], folder)


def test_the_command_line(tmp_path, exact_advice):
    done = command(
        *("--arms", "2", "--horizon", "12", "--seed", "3", "--effort", "0.005"),
        *("--out", "policy.json"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(exact_advice.summary())
    assert "\x1b" not in done.stdout
    for text in ("In plays: the extra reward", "if the prior is wrong", "not ranked   ucb2"):
        assert text in done.stdout
    assert ("written      policy.json" in done.stdout) == (tmp_path / "policy.json").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prior", "bernouli"], ["'bernouli'", "did you mean bernoulli"]),
        (["--out", "there.json"], ["there.json exists", "--force"]),
    ],
    ids=" ".join,
)
def test_bad_input_ends_the_command(arguments, words, tmp_path):
    (tmp_path / "there.json").write_text("mine")
    done = command("--json", *arguments, folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert [word for word in words if word not in done.stderr] == []
    assert (tmp_path / "there.json").read_text() == "mine"


BAD = [
    ({"horizon": 0}, "horizon must be at least 1, not 0"),
    ({"effort": 0}, "effort must be greater than 0, not 0"),
    ({"out": "policy.txt"}, "ends in .json.*not policy.txt"),
    ({"out": 3}, "policy file.*not 3"),
    ({"force": True}, "--out"),
    ({"seed": -1}, "seed must be at least 0, not -1"),
    ({"threads": 0}, "threads must be at least 1, not 0"),
    ({"prior": "bernoulli"}, "must be a Prior"),
    ({"prior": mb.Gaussian(arms=5), "horizon": 4}, "at least 5, not 4"),
]


@pytest.mark.parametrize(("changed", "words"), BAD, ids=[words for _, words in BAD])
def test_bad_input_is_refused_before_anything_is_computed(changed, words, monkeypatch):
    monkeypatch.setattr("metabandit.advice.advisor.find_readable", None)
    given = {"prior": mb.Bernoulli(arms=2), "horizon": 10, **changed}
    with pytest.raises(mb.InputError, match=words):
        mb.advise(**given)
