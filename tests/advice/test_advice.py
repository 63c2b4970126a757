"""Advice: what is measured, what is recommended, what it says, and that it is the same on any number of threads."""

import json
import math

import numpy as np
import pytest

import metabandit as mb
from metabandit.advice import readable, steps
from metabandit.advice.measuring import (
    BASELINE,
    CLASSIC,
    FEWEST,
    FORMULA,
    LEARNED,
    Gain,
    Measurements,
    obstacle,
)
from metabandit.advice.neighbours import neighbours
from metabandit.advice.readable import reward_scale, shapes, start_for
from metabandit.advice.sentences import amount
from metabandit.advice.steps import recommend
from metabandit.engine.limits import TimeLimit
from metabandit.engine.results import NORMAL_95
from metabandit.engine.task import read_task, stream
from metabandit.policies import CATALOGUE
from metabandit.policies.beliefs import stated
from tests import tiers
from tests.commands import call

pytestmark = pytest.mark.usefixtures("short_reports")

SMALL = {"effort": 0.001, "seed": 3}
TODAY = "split-then-winner:share=0.2"


@pytest.fixture(scope="module")
def advice(tmp_path_factory):
    """On simulated problems, written to a file."""
    out = tmp_path_factory.mktemp("advice") / "advice.json"
    told = {"today": TODAY, "unit": "clicks", "value": 0.5}
    return mb.advise(mb.Bernoulli(arms=3), 30, out=out, threads=2, **told, **SMALL)


@pytest.fixture
def no_search(monkeypatch):
    """For tests of what is known before other policies and problems are looked at: in the quick tier, they are not."""
    if tiers.quick:

        def announce(found):
            found.seconds = found._estimates(found.task.effort)

        monkeypatch.setattr(steps.Steps, "_search", announce)
        monkeypatch.setattr(steps.Steps, "_vary", lambda _: None)


@pytest.fixture(scope="module")
def exact_advice():
    return mb.advise(mb.Bernoulli(arms=2), 12, **SMALL)


# What is measured ---------------------------------------------------------------------------------


def test_the_ranking_is_sorted_and_complete(advice):
    rewards = [item["expected_reward"] for item in advice.to_dict()["policies"]]
    assert rewards == sorted(rewards, reverse=True)
    kinds = [item.kind for item in advice.policies]
    assert (kinds.count(FORMULA), kinds.count(LEARNED)) == (1, 1)
    named = {item.name for item in advice.policies} | {name for name, _ in advice.skipped}
    # Today's is the catalogue's with another text.
    assert named >= set(mb.policies.CATALOGUE) - {"optimal", "split-then-winner"}
    assert "split-then-winner" not in named
    assert "too slow" in dict(advice.skipped)["bayes-ucb"]


def test_the_figures_are_those_of_evaluate(advice):
    """Of the policies that played as far as today's."""
    full = [item for item in advice.policies if item.episodes == advice.today.episodes]
    assert {advice.recommended.name, TODAY, "split"} <= {item.name for item in full}
    result = mb.evaluate(
        [item.policy for item in full],
        mb.Bernoulli(arms=3),
        30,
        seed=stream(3, 7),
        episodes=advice.today.episodes,
    )
    best = 30 * 0.75  # the mean of the largest of three uniform numbers
    for place, item in enumerate(full):
        assert item.regret.mean == pytest.approx(result[place].mean_regret, rel=1e-6)
        assert item.expected_reward == pytest.approx(best - result[place].mean_regret, rel=1e-6)
        if item is advice.today:
            continue
        apart = result.difference(TODAY, place)
        half = NORMAL_95 * apart.standard_error
        expected = (apart.mean, apart.mean - half, apart.mean + half)
        assert item.gain == pytest.approx(expected, rel=1e-4, abs=1e-6)
        split = result.difference("split", place)
        assert item.over_split.mean == pytest.approx(split.mean, abs=1e-6)
        pair = result[place].problem_regret, result[TODAY].problem_regret
        assert item.risk == pytest.approx(np.mean(pair[0] > pair[1] * (1 + 1e-6)), abs=0.01)


def _measured(*policies, problems=256, clock=None, prior=None, horizon=20):
    task = read_task(prior or mb.Bernoulli(arms=3), horizon, threads=2)
    found = Measurements(task, 5, clock or TimeLimit(), map(mb.policy, policies))
    found.play(range(len(policies)), problems)
    return found


def test_policies_that_stop_early_are_compared_on_common_problems():
    found = _measured("split", "greedy", "ucb1")
    found.play([0, 1], 512)
    assert [found.plays(place) for place in range(3)] == [512, 512, 256]
    rows = _measured("split", "greedy", "ucb1", problems=512)
    regrets = [rows._regrets[place] for place in range(3)]
    apart = regrets[2][:256] - regrets[0][:256]
    assert found.difference(2, 0).mean == pytest.approx(apart.mean())
    assert found.regret(2).mean == pytest.approx(regrets[0].mean() + apart.mean())
    assert found.regret(1).mean == pytest.approx(regrets[1].mean())
    # Its noise is that of the base and of the difference.
    errors = [values.std(ddof=1) / math.sqrt(len(values)) for values in (regrets[0], apart)]
    assert found.regret(2).high - found.regret(2).mean == pytest.approx(
        NORMAL_95 * math.hypot(*errors)
    )


def test_a_race_leaves_the_clearly_worse_behind():
    found = _measured("split", "ucb1-tuned", "uniform", "kl-ucb", problems=FEWEST, horizon=60)
    found.race([0, 1], 4096)
    assert found.plays(0) == found.plays(1) == 4096
    assert found.plays(2) < 4096
    assert found.ranking()[0] in (1, 3)


def test_no_time_stops_play_but_for_what_is_surely_played():
    found = _measured("split", "greedy", problems=0, clock=TimeLimit(0.0))
    found.play([0, 1], 128)
    assert found.played() == []
    found.play([0, 1], 128, surely=True)
    assert found.played() == [0, 1]


def test_no_search_has_seen_the_problems(monkeypatch):
    seeds = []

    def note(home, name, key):
        made = getattr(home, name)

        def noted(*given, **named):
            seeds.append((name, named[key] if key in named else given[key]))
            return made(*given, **named)

        monkeypatch.setattr(home, name, noted)

    note(readable, "Judge", "seed")
    note(steps, "learn", "seed")
    note(steps, "Measurements", 1)
    mb.advise(mb.Bernoulli(arms=3), 30, **SMALL)
    searched = {seed for name, seed in seeds if name != "Measurements"}
    compared = {seed for name, seed in seeds if name == "Measurements"}
    assert len(searched) == 2
    assert len(compared) >= 5
    assert not searched & compared


def test_one_seed_one_result_on_any_number_of_threads(advice):
    told = {"today": TODAY, "unit": "clicks", "value": 0.5}
    other = mb.advise(mb.Bernoulli(arms=3), 30, threads=1, **told, **SMALL)
    first, second = advice.to_dict(), other.to_dict()
    for key in ("recommended", "seconds", "next"):
        first.pop(key), second.pop(key)
    assert first == second


def test_exact_where_that_is_quick(exact_advice):
    result = exact_advice.to_dict()
    assert result["floor"] == pytest.approx(mb.optimal(mb.Bernoulli(arms=2), 12).regret)
    assert result["floor_kind"] == "optimum"
    measured = {item["policy"]: item for item in result["policies"]}
    assert measured["thompson"]["episodes"] == 0
    exact = mb.evaluate("thompson", mb.Bernoulli(arms=2), 12, method="exact")[0].mean_regret
    assert measured["thompson"]["regret"] == pytest.approx(exact, rel=1e-12)
    assert measured["ucb2"]["episodes"] > 0, "it has no exact value, so it is simulated"
    assert min(item["regret"] for item in measured.values()) >= result["floor"] - 1e-12
    assert exact_advice.best_possible == pytest.approx(12 * 2 / 3 - result["floor"])
    assert exact_advice.rows()[-1]["policy"] == "best possible"
    assert "gittins" in measured


def test_an_advice_shows_itself(exact_advice):
    assert len(repr(exact_advice)) < 200
    assert repr(exact_advice).startswith("<Advice Use ")
    assert "<table>" in exact_advice._repr_html_()
    assert exact_advice.table().splitlines()[0].startswith("policy")
    frame = exact_advice.to_frame()
    assert list(frame.policy) == [item.name for item in exact_advice.policies]
    assert frame.gain.max() == exact_advice.policies[0].gain.mean
    axes = exact_advice.plot()
    assert len(axes.get_yticklabels()) == len(exact_advice.policies)


@pytest.mark.usefixtures("no_search")
def test_a_prior_as_text():
    found = mb.advise("bernoulli:low=0.1,high=0.5", 10, arms=2, **SMALL)
    assert found.arms == 2


# What is recommended --------------------------------------------------------------------------------


class _Ranked:
    """Measurements with these regrets and this noise of each difference."""

    def __init__(self, regrets, noise):
        self.regrets, self.noise = regrets, noise

    def difference(self, first, second):
        return Gain(
            mean := self.regrets[first] - self.regrets[second],
            mean - 2 * self.noise,
            mean + 2 * self.noise,
        )

    def regret(self, place):
        return Gain(self.regrets[place], 0, 0)


def _recommended(*regrets, noise=0.0):
    """Of a baseline, a classic, a formula and a learned policy with these regrets."""
    kinds = (BASELINE, CLASSIC, FORMULA, LEARNED)
    there = {kind: place for place, kind in enumerate(kinds) if regrets[place] is not None}
    return kinds[recommend(_Ranked(regrets, noise), there)]


def test_the_simplest_policy_that_is_good_is_recommended():
    assert _recommended(9.0, 2.0, 1.00, 0.995) == FORMULA, "less than 1 % apart"
    assert _recommended(9.0, 2.0, 1.10, 1.000) == LEARNED
    assert _recommended(9.0, 2.0, 1.10, 1.000, noise=0.1) == FORMULA, "apart by noise only"
    assert _recommended(9.0, 2.0, 1.90, 1.950, noise=0.1) == CLASSIC, "no better than noise"
    assert _recommended(9.0, 2.0, 2.10, 2.200) == CLASSIC
    assert _recommended(9.0, 2.0, 1.99, 1.800, noise=0.09) == LEARNED
    assert _recommended(9.0, 2.0, 1.9999, 1.9999) == CLASSIC, "nothing to speak of"
    assert _recommended(1.0, 2.0, 1.9, 1.8) == BASELINE
    assert _recommended(2.0, 1.9, 2.5, 2.5, noise=0.1) == BASELINE, "the classic by noise only"
    assert _recommended(2.0, 1.5, 1.6, None, noise=0.1) == CLASSIC
    assert _recommended(9.0, None, None, 1.0) == LEARNED


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
def test_nothing_is_recommended_that_is_worse_than_the_best_baseline(noise):
    rng = np.random.default_rng(1)
    for regrets in rng.uniform(1.0, 2.0, (200, 4)):
        there = dict(zip((BASELINE, CLASSIC, FORMULA, LEARNED), range(4), strict=True))
        assert regrets[recommend(_Ranked(regrets, noise), there)] <= regrets[0]


@pytest.mark.slow
def test_the_policy_of_today_is_kept_where_nothing_is_better():
    """Arms that are equal in all problems."""
    equal = mb.Table(np.full((30, 3), 0.3))
    advice = mb.advise(equal, 20, today="split", effort=0.002)
    assert advice.recommended is advice.today
    assert advice.summary().startswith("Keep an equal split: it brings 6.000 rewards per test")


@pytest.mark.parametrize(
    "today",
    [
        "r + 1/n",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("gittins", "bayes-ucb", "thompson:a=2")
        ),
    ],
)
@pytest.mark.usefixtures("no_search")
def test_any_policy_can_be_what_is_done_today(today):
    found = mb.advise(mb.Bernoulli(arms=3), 8, today=today, effort=0.0005)
    assert found.today.name == today
    assert found.recommended.expected_reward >= found.today.expected_reward
    assert found.today.gain == (0.0, 0.0, 0.0)


# What is said -----------------------------------------------------------------------------------


def test_the_answer_is_in_the_units_of_the_user(advice):
    first, second, *cautions = advice.to_dict()["summary"]
    best = advice.recommended
    assert first.startswith(f"Use {best.name}: it brings ")
    assert "clicks per test of 30 plays, +" in first
    assert f"against what you do today ({TODAY}), worth +{0.5 * best.gain.mean:.2f}" in first
    assert "against an equal split." in first
    assert "On a single test it brings less than what you do today with a chance of" in second
    assert "at most" in second
    assert "below the best possible" in second
    assert "prior is wrong" in cautions[0] or "Be sure of the prior" in cautions[0]
    rows = advice.rows()
    assert {"clicks per test", "worth", "chance of less"} <= set(rows[0])
    assert "regret" not in rows[0]
    assert "regret" in advice.rows(regret=True)[0]


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [(212.4, 30.0, "212"), (12.345, 0.06, "12.35"), (1234567.0, 0.0, "1,234,567"), (0.0, 0.0, "0.00"),
     (1.23456, 0.0, "1.235"), (math.nan, 0.0, "not known")],
)  # fmt: skip
def test_numbers_have_the_digits_that_noise_leaves(value, half, text):
    assert amount(value, half) == text


def test_the_advice_is_a_file_that_commands_take(advice, tmp_path):
    content = json.loads(advice.written.read_text("utf-8"))
    assert content["recommended"] == str(advice.written)
    assert {"policies", "today", "seconds", "if_the_prior_is_wrong"} <= set(content)
    again, same = (
        mb.evaluate(item, mb.Bernoulli(arms=3), 30, episodes=2000, seed=8)[0].mean_regret
        for item in (str(advice.written), advice.recommended.policy)
    )
    assert again == same
    learned = content["policy_file"]["learned"]
    assert learned["regret"]["mean"] == advice.recommended.regret.mean
    assert mb.load(advice.written).learned.horizon == 30
    with pytest.raises(mb.InputError, match="exists"):
        advice.save(advice.written)
    content.pop("policy_file")
    (tmp_path / "bad.json").write_text(json.dumps(content))
    with pytest.raises(mb.InputError, match="not a policy file"):
        mb.load(tmp_path / "bad.json")


def test_an_advised_policy_of_the_catalogue_knows_the_prior_it_was_advised_for():
    prior = mb.Bernoulli(arms=2, alpha=3, beta=90)
    for name in ("thompson", "kg", "bayes-ucb"):
        known = [item.name for item in CATALOGUE[name].parameters]
        parameters = stated({}, known, prior)
        assert parameters == {"a": 3.0, "b": 90.0}
        made = CATALOGUE[name].make(parameters, None, name)
        one, other = (mb.evaluate(item, prior, 30, floor=False) for item in (made, name))
        assert one[0].mean_regret == other[0].mean_regret
    assert stated({"a": 1.0}, ["a", "b"], prior) == {"a": 1.0}
    assert stated({}, ["c"], prior) == {}
    assert stated({}, ["a", "b"], mb.Bernoulli(alpha=[1, 2], beta=[1, 1])) == {}
    gaussian = stated({}, ["a", "b", "mean", "spread", "sigma"], mb.Gaussian(2, mean=3, noise=2))
    assert gaussian == {"mean": 3.0, "spread": 1.0, "sigma": 2.0}


@pytest.mark.slow
def test_a_table_is_split_and_said_so():
    rows = np.random.default_rng(2).uniform(size=(40, 3))
    many = mb.advise(mb.Table(rows), 20, **SMALL)
    assert any("20 rows of the table, and compared on the other 20" in item for item in many.notes)
    few = mb.advise(mb.Table(rows[:2]), 20, **SMALL)
    assert any("2 rows of the table" in note for note in few.notes)


# Time -------------------------------------------------------------------------------------------


def test_a_time_limit_has_an_answer_and_ends(monkeypatch):
    """With a second of time; the clock itself is not asserted."""
    said = []
    found = mb.advise(mb.Bernoulli(arms=4), 500, time_limit=1.0, announce=said.append)
    assert found.stopped == "time limit"
    assert found.to_dict()["time_limit"] == 1.0
    assert found.recommended.expected_reward >= found.today.expected_reward
    assert any(text.startswith("first look") for text in said)


@pytest.mark.slow
def test_a_time_limit_that_is_over_at_once_has_an_answer():
    found = mb.advise(mb.Bernoulli(arms=2), 10, time_limit=1e-6)
    assert found.stopped == "time limit"
    assert "No time was left to learn a policy." in found.notes


def test_an_effort_with_a_time_limit_ends_before_it():
    long = mb.advise(mb.Bernoulli(arms=3), 20, time_limit=1000.0, **SMALL)
    short = mb.advise(mb.Bernoulli(arms=3), 20, **SMALL)
    assert long.stopped == short.stopped == "finished"
    regrets = [[item.regret.mean for item in found.policies] for found in (long, short)]
    assert regrets[0] == regrets[1]


@pytest.mark.parametrize(
    "part",
    [
        "_search",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("_compare", "_find_floor")),
        "_vary",
    ],
)
def test_an_interrupted_advice_says_what_is_known(part, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(steps.Steps, part, stop)
    found = mb.advise(mb.Bernoulli(arms=3), 20, **SMALL)
    assert found.stopped == "interrupted"
    assert found.recommended in found.policies
    assert (FORMULA in {item.kind for item in found.policies}) == (part != "_search")


def test_an_interrupt_before_anything_is_known_goes_on(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(steps.Steps, "_look_first", stop)
    with pytest.raises(KeyboardInterrupt):
        mb.advise(mb.Bernoulli(arms=3), 20, **SMALL)


def test_the_time_is_announced_without_a_limit(monkeypatch):
    monkeypatch.setattr(steps.Steps, "_vary", lambda _: None)
    monkeypatch.setattr(steps, "find_readable", lambda *_: None)
    said = []
    mb.advise(mb.Bernoulli(arms=3), 20, announce=said.append, **SMALL)
    assert any("this takes about" in text for text in said)


# Other problems ---------------------------------------------------------------------------------


def test_neighbouring_problems_are_played(exact_advice):
    labels = [item.label for item in exact_advice.scenarios]
    assert labels[-2:] == ["half the plays", "twice the plays"]
    assert len(labels) == 5
    half = exact_advice.scenarios[-2]
    best = exact_advice.recommended
    same = mb.evaluate([best.policy, "split"], mb.Bernoulli(arms=2), 6, method="exact")
    gain = same[1].mean_regret - same[0].mean_regret
    assert half.gains[best.name].mean == pytest.approx(gain)
    assert half.horizon == 6


PAST = {
    "test": [number for number in range(12) for _ in range(2)],
    "sent": [400] * 24,
    "clicks": [20, 31, 12, 28, 41, 22, 15, 33, 27, 19, 24, 36, 11, 23, 30, 18, 25, 39, 21, 14, 34, 26, 17, 29],
}  # fmt: skip


def test_a_history_is_resampled():
    fitted = mb.fit_prior(PAST)
    found = mb.advise(fitted, 40, effort=0.003)
    assert len(found.histories) == 20
    assert len({item.prior for item in found.histories}) == 20
    assert found.prior == str(fitted.prior)
    assert "20 resampled ones" in found.summary()
    content = found.to_dict()["if_history_is_noisy"]
    assert [item["gain"] for item in content] == [
        item.gains[found.recommended.name].mean for item in found.histories
    ]


def test_what_speaks_against_the_prior_stands_beside_the_answer():
    levels = np.repeat(np.linspace(0.02, 0.3, 12), 2)
    past = {**PAST, "sent": [4000] * 24, "clicks": np.round(4000 * levels).astype(int).tolist()}
    found = mb.advise(mb.fit_prior(past), 40, effort=0.001)
    assert len(found.doubts) == 1
    assert "tests differ in level" in found.summary()
    assert "use --hierarchical" in found.summary()
    assert found.to_dict()["doubts"] == list(found.doubts)
    assert not any("differ in level" in note for note in found.notes)


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
    (mb.Revenue(arms=2), 6),
    (mb.Counts(arms=2), 5),
    (mb.Empirical([0.0, 1.0, 4.0], factor=0.2), 4),
    (mb.Hierarchical(arms=3), 5),
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


@pytest.mark.slow
def test_a_prior_of_ones_own(tmp_path):
    out = tmp_path / "advice.json"
    found = mb.advise(Own(), 6, effort=0.001, out=out)
    assert any("horizon alone" in note for note in found.notes)
    assert found.written == out
    assert mb.load(out).plan(Own(), 6).name == str(out)


# Searching --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_search")
def test_what_cannot_be_played_is_skipped_with_the_reason():
    gaussian = read_task(mb.Gaussian(arms=2), 50)
    assert obstacle(mb.policy("gittins"), gaussian) is None
    assert "[0, 1]" in obstacle(mb.policy("kl-ucb"), gaussian)
    found = mb.advise(mb.Gaussian(arms=2), 1200, effort=0.0005)
    why = dict(found.skipped)
    assert "[0, 1]" in why["kl-ucb"]
    assert "too long" in why["gittins"]


def test_formulas_fit_the_size_of_rewards():
    assert reward_scale(mb.Bernoulli(arms=2), 0) == 1.0
    large = reward_scale(mb.Gaussian(arms=2, spread=100.0, noise=100.0), 0)
    assert 100.0 <= large <= 500.0
    texts = list(shapes(large, unit=False))
    assert len(set(texts)) == len(texts)
    assert not any("sqrt(r)" in text for text in texts)


def test_pseudo_observations_make_the_best_linear_estimate():
    """A normal mean with variance 1 and noise of variance 16 is estimated as if 16 plays had been seen."""
    found = start_for(mb.Gaussian(arms=4, mean=2.0, spread=1.0, noise=4.0), 0)
    assert found.plays == pytest.approx(16.0, rel=0.1)
    assert found.reward_sum / found.plays == pytest.approx(2.0, abs=0.15)
    assert found.square_sum / found.plays == pytest.approx(16.0 + 4.0, rel=0.1)
    assert str(start_for(mb.Bernoulli(arms=2), 0)) == "prior-counts:plays=2,sum=1,squares=1"
    assert start_for(mb.Gaussian(arms=2, spread=3.0), 0).each_once, "little noise"
    assert start_for(mb.Hierarchical(arms=3, mean=0.1, between=0.05, within=0.01), 0).each_once


@pytest.mark.usefixtures("no_search")
def test_a_policy_that_fails_is_left_out_and_said_so(monkeypatch):
    entry = mb.Entry("failing", "1/(n - 2)", "infinite after two plays")
    monkeypatch.setitem(mb.policies.CATALOGUE, "failing", entry)
    found = mb.advise(mb.Bernoulli(arms=3), 8, effort=0.001)
    assert "not a finite number" in dict(found.skipped)["failing"]
    assert "failing" not in {item.name for item in found.policies}


# The command line -------------------------------------------------------------------------------


def command(*arguments, folder):
    return call(["advise", *arguments], folder)


def test_the_command_line(tmp_path, exact_advice):
    done = command(
        *("--arms", "2", "--horizon", "12", "--seed", "3", "--effort", "0.001"),
        *("--out", "advice.json", "--show", "regret"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(exact_advice.summary())
    assert "\x1b" not in done.stdout
    for text in ("rewards per test", "regret", "if the prior is wrong", "written      advice.json"):
        assert text in done.stdout
    assert "first look" in done.stderr
    made = call(["report", "advice.json", "--out", "page.html"], tmp_path)
    assert made.returncode == 0, made.stderr
    assert "more per test: use" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.slow
def test_a_history_on_the_command_line(tmp_path):
    rows = zip(*PAST.values(), strict=True)
    lines = [",".join(PAST), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "past.csv").write_text("\n".join(lines))
    given = ("--history", "past.csv", "--horizon", "20", "--effort", "0.001", "--json")
    done = command(*given, "--arms", "3", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert value["arms"] == 3
    assert value["today"] == "split"
    assert len(value["if_history_is_noisy"]) == 20
    for item in value["policies"]:
        assert {"policy", "expected_reward", "gain", "gain_interval"} <= set(item)
    again = mb.evaluate(value["recommended"], mb.prior(value["prior"], arms=3), 20, episodes=100)
    assert again[0].policy == value["recommended"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prior", "bernouli"], ["'bernouli'", "did you mean bernoulli"]),
        (["--out", "there.json"], ["there.json exists", "--force"]),
        (["--show", "money"], ["--show takes regret", "'money'"]),
        (["--show", "successes", "--prior", "gaussian"], ["bernoulli", "gaussian"]),
        (["--history", "none.csv"], ["none.csv does not exist"]),
        (["--history", "none.csv", "--prior", "bernoulli"], ["cannot both be given"]),
        (["--per-arm"], ["give --history"]),
        (["--time-limit", "soon"], ["90s", "'soon'"]),
        (["--today", "nothing"], ["'nothing'"]),
        (["--today", "kl-ucb", "--prior", "gaussian"], ["today, kl-ucb, cannot", "[0, 1]"]),
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
    ({"time_limit": 0}, "time limit must be greater than 0"),
    ({"out": "advice.txt"}, "must end in .json.*not advice.txt"),
    ({"out": 3}, "an advice.*not 3"),
    ({"force": True}, "--out"),
    ({"seed": -1}, "seed must be at least 0, not -1"),
    ({"threads": 0}, "threads must be at least 1, not 0"),
    ({"prior": 3}, "must be a Prior"),
    ({"prior": "bernouli"}, "did you mean bernoulli"),
    ({"unit": " "}, "unit is a word"),
    ({"value": -1}, "value of a reward must be greater than 0, not -1"),
    ({"today": 7}, "a policy is a text"),
    ({"prior": mb.Gaussian(arms=5), "horizon": 4}, "at least 5, not 4"),
]


@pytest.mark.parametrize(("changed", "words"), BAD, ids=[words for _, words in BAD])
def test_bad_input_is_refused_before_anything_is_computed(changed, words, monkeypatch):
    monkeypatch.setattr("metabandit.advice.advisor.Steps", None)
    given = {"prior": mb.Bernoulli(arms=2), "horizon": 10, **changed}
    with pytest.raises(mb.InputError, match=words):
        mb.advise(**given)
