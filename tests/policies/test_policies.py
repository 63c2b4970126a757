"""Every policy of the catalogue must be readable from text, obey its rules, and play everywhere."""

import math
from collections import Counter

import numpy as np
import pytest

import metabandit as mb
from metabandit.decisions import ByEpochs, NormalBelief
from metabandit.language import names, parse, text
from metabandit.policies import CATALOGUE, with_own_names
from metabandit.policies.power import power_tree, weight_names

PRIOR = mb.Bernoulli(arms=3)
ENTRIES = list(CATALOGUE.values())
PARAMETERS = [(entry, parameter) for entry in ENTRIES for parameter in entry.parameters]
EXPECTED = """greedy ucb1 ucb1-tuned ucb1-normal ucb2 ucb-v kl-ucb kl-ucb+ eps_n-greedy uniform moss
bayes-ucb thompson"""


def by_name(value):
    return getattr(value, "name", None)


def test_the_catalogue_is_complete():
    assert set(EXPECTED.split()) <= set(CATALOGUE)


@pytest.mark.parametrize("entry", ENTRIES, ids=by_name)
def test_catalogue_policies_are_made_from_their_names(entry):
    made = mb.policy(entry.name)
    assert made.name == str(made) == entry.name
    made.plan(mb.Bernoulli(arms=2), 10)
    if entry.is_index:
        known = tuple(item.name for item in entry.parameters)
        texts = [entry.formula, entry.rate, entry.needed]
        trees = [parse(item, parameters=known) for item in texts if item is not None]
        used = {name for tree in trees for name in names(tree)}
        # An index that reads the prior has another formula for real rewards.
        assert used == set(known) if entry.index is None else used < set(known)
        defaults = {item.name: item.default for item in entry.parameters if item.name in used}
        assert made.parameters == defaults
        assert made.trees == trees
        assert parse(made.formula) == made.bound


@pytest.mark.parametrize(("entry", "parameter"), PARAMETERS, ids=by_name)
def test_rules_of_parameters_are_kept(entry, parameter):
    if parameter.default is not None:
        assert parameter.check(parameter.default, entry.name) == parameter.default
    ends = [end for end in (parameter.above, parameter.below) if end is not None]
    outside = [*ends, *(end - 1 for end in ends[:1]), *(end + 1 for end in ends[1:])]
    for value in outside:
        with pytest.raises(mb.InputError) as caught:
            mb.policy(f"{entry.name}:{parameter.name}={value!r}")
        for word in (parameter.name, entry.name, parameter.rule, f"{value:g}"):
            assert word in str(caught.value)
    for value in ("x", "nan", "inf"):
        with pytest.raises(mb.InputError, match=f"{parameter.name} of .*{value}"):
            mb.policy(f"{entry.name}:{parameter.name}={value}")


def test_rules_in_words():
    assert mb.Parameter("x", 1.0).rule == "any number"
    assert mb.Parameter("x", 1.0, above=0.0).rule == "greater than 0"
    assert mb.Parameter("x", 0.5, above=0.0, below=1.0).rule == "greater than 0 and less than 1"
    assert mb.Parameter("x", 0.5, below=1.0).rule == "less than 1"


def test_given_parameters_reach_the_formula_and_the_kernel():
    assert mb.policy("ucb1:C=0.17").formula == "r + sqrt(0.17 * ln(t)/n)"
    assert mb.policy(" ucb-v : c = 2 , zeta = 0.5 ").parameters == {"c": 2.0, "zeta": 0.5}
    assert mb.policy("kl-ucb:c=-3").formula == "kl_upper(r, (ln(t) + -3 * ln(ln(t)))/n)"
    greedy = mb.policy("eps_n-greedy:d=0.2,c=5").plan(PRIOR, 10).decision
    assert text(greedy.bound_rate) == "min(1, 5 * K/(0.2^2 * (t + 1)))"
    assert mb.policy("thompson:a=2,b=3").plan(PRIOR, 10).decision.belief.pairs[0] == (2.0, 3.0)
    gaussian = mb.policy("thompson:sigma=4").plan(mb.Gaussian(arms=3), 10).decision.belief
    assert gaussian == NormalBelief(noise=4.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ucb", ["unknown policy 'ucb'", "did you mean", "ucb1", "ucb2"]),
        ("thomson", ["unknown policy 'thomson'", "did you mean thompson?"]),
        ("kl_ucb", ["unknown policy 'kl_ucb'", "kl-ucb"]),
        ("zzz:C=1", ["unknown policy 'zzz'", "known: ab-test, ada-ucb,"]),
        ("ucb1:D=1", ["ucb1", "no parameter 'D'", "known: C"]),
        ("greedy:C=1", ["greedy", "no parameter 'C'", "it has none"]),
        ("ucb1:", ["nothing follows the colon"]),
        ("ucb1:C", ["'C'", "key=value"]),
        ("ucb1:C=1,C=2", ["C is given twice"]),
        ("ucb1:start=sometimes", ["unknown start 'sometimes'", "each-once"]),
        ("thompson:start=prior-counts", ["thompson", "its own start"]),
        ("r + C/n", ["unknown variable 'C'"]),
        ("nowhere.json", ["nowhere.json", "does not exist"]),
        (3, ["text or a Policy", "3"]),
    ],
)
def test_bad_policies_are_refused(text, words):
    with pytest.raises(mb.InputError) as caught:
        mb.policy(text)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize("text", ["r-n", "K-n*r", "t", " r + 3/(n + 2) ", "-n", "ln(t) - n"])
def test_expressions_are_policies(text):
    made = mb.policy(text)
    assert made.name == text.strip()
    assert made.tree == parse(text)


def test_index_policy_with_parameters():
    made = mb.IndexPolicy("r + C/(n + d)", parameters={"C": 3, "d": -0.5})
    assert made.formula == "r + 3/(n + -0.5)"
    assert made.latex == r"\bar{r}_k + \frac{3}{n_k + \left(-0.5\right)}"
    assert mb.IndexPolicy(parse("r*C", parameters=None), parameters={"C": 2}).formula == "r * 2"
    with pytest.raises(mb.InputError, match="'d'"):
        mb.IndexPolicy("r + C/(n + d)", parameters={"C": 3})
    with pytest.raises(mb.InputError, match="'C'"):
        mb.IndexPolicy(parse("r*C", parameters=None))
    for value in (math.nan, math.inf, "x"):
        with pytest.raises(mb.InputError, match="C"):
            mb.IndexPolicy("r*C", parameters={"C": value})


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (None, [0, 0, 0]),
        ("each-once", [0, 0, 0]),
        ("prior-counts", [5, 2, 2]),
        ("prior-counts:plays=4,sum=1", [4, 1, 1]),
        ("prior-counts:plays=4,sum=1,squares=0.5", [4, 1, 0.5]),
    ],
)
def test_starts(text, counts):
    start = mb.Start.read(text)
    assert mb.Start.read(str(start)) == start
    assert mb.Start.read(start) is start
    assert start.each_once == (counts[0] == 0)
    prior = mb.Bernoulli(arms=2, alpha=2, beta=3)
    assert start.counts(prior).tolist() == [[number] * 2 for number in counts]
    plan = mb.policy("ucb1", start=text).plan(prior, 10)
    assert plan.each_once == start.each_once
    assert np.array_equal(plan.counts, start.counts(prior))


def test_text_of_a_start_keeps_every_digit():
    start = mb.Start("prior-counts", plays=1 / 3, reward_sum=0.1234567891)
    assert mb.Start.read(str(start)) == start


def test_starts_without_squares_depend_on_the_family():
    start = mb.Start.read("prior-counts:plays=4,sum=2")
    assert start.counts(mb.Gaussian(arms=2))[2].tolist() == [1.0, 1.0]  # no spread


def test_the_text_of_a_policy_sets_its_start():
    made = mb.policy("ucb1:C=0.17,start=prior-counts", start="each-once")
    assert str(made.start) == "prior-counts"
    assert made.parameters == {"C": 0.17}
    assert str(mb.policy("ucb1", start="prior-counts").start) == "prior-counts"
    assert str(mb.policy("r", start="prior-counts").start) == "prior-counts"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("never", ["'never'", "each-once, prior-counts"]),
        ("each-once:plays=2,sum=1", ["each-once has no parameters"]),
        ("prior-counts:plays=2", ["plays and sum together"]),
        ("prior-counts:squares=2", ["plays and sum together"]),
        ("prior-counts:plays=0,sum=0", ["plays", "greater than 0", "0"]),
        ("prior-counts:plays=2,sum=x", ["sum", "'x'"]),
        ("prior-counts:games=2", ["'games'", "plays"]),
    ],
)
def test_bad_starts_are_refused(text, words):
    with pytest.raises(mb.InputError) as caught:
        mb.Start.read(text)
    assert [word for word in words if word not in str(caught.value)] == []


def test_starts_that_do_not_fit_the_prior_are_refused():
    with pytest.raises(mb.InputError, match=r"gaussian.*plays=2,sum=1"):
        mb.Start.read("prior-counts").counts(mb.Gaussian(arms=2))
    with pytest.raises(
        mb.InputError, match=r"at least sum\^2 / plays = \[2.0, 2.0\], not \[1.0, 1.0\]"
    ):
        mb.Start.read("prior-counts:plays=2,sum=2,squares=1").counts(mb.Gaussian(arms=2))


def test_register_adds_a_policy_and_refuses_bad_ones(monkeypatch):
    monkeypatch.setattr("metabandit.policies.catalogue.CATALOGUE", dict(CATALOGUE))
    entry = mb.Entry("mine", "r + c/n", "this test", (mb.Parameter("c", 1.0, above=0.0),))
    mb.register(entry)
    assert mb.policy("mine:c=2").formula == "r + 2/n"
    for taken in ("mine", "ucb1", "r"):
        with pytest.raises(mb.InputError, match=f"'{taken}' is taken"):
            mb.register(mb.Entry(taken, "r", "this test"))
    with pytest.raises(mb.InputError, match="'two words'"):
        mb.register(mb.Entry("two words", "r", "this test"))
    with pytest.raises(mb.ExpressionError, match="'c'"):
        mb.register(mb.Entry("other", "r + c/n", "this test"))


@pytest.mark.parametrize("name", ["ucb1", "r + 1/n", "ucb2", "ucb1-normal", "eps_n-greedy"])
def test_each_arm_needs_a_play(name):
    with pytest.raises(mb.InputError, match="at least 3, not 2"):
        mb.policy(name).plan(PRIOR, 2)
    mb.policy(name).plan(PRIOR, 3)


def test_short_horizons_are_fine_without_a_play_of_each_arm():
    for made in (mb.policy("ucb1:start=prior-counts"), mb.policy("uniform"), "thompson"):
        assert mb.evaluate(made, PRIOR, 1, episodes=10)[0].plays.sum() == 1.0


@pytest.mark.parametrize("alpha", [1e-5, 0.001, 0.01, 0.1, 0.25, 0.5, 0.7, 0.999])
@pytest.mark.parametrize("horizon", [1, 2, 10, 1000])
def test_epoch_levels_against_the_definition(alpha, horizon):
    taus = [1]
    while taus[-1] <= 4 * horizon + 4:
        taus.append(math.ceil((1 + alpha) ** len(taus)))
    levels = ByEpochs(alpha).levels_up_to(horizon)
    # A level is a value of tau; all epochs with it but the last have length zero.
    epochs = Counter(taus)
    values = sorted(epochs)[: len(levels)]
    assert [level[0] for level in levels] == values
    assert [level[1] for level in levels[:-1]] == [epochs[tau] - 1 for tau in values[:-1]]
    assert levels[-2][0] > horizon, "the kernel looks one level beyond the horizon"


def test_a_choice_that_is_no_arm_is_refused():
    choice = mb.ChoicePolicy("third of two", lambda n, r, s, t, h, u: 2)
    with pytest.raises(mb.InputError, match="third of two"):
        mb.evaluate(choice, mb.Bernoulli(arms=2), 5, episodes=10)


class Recorded(mb.Prior):
    """A prior that keeps what it draws."""

    def __init__(self, prior):
        self.prior, self.family, self.arms = prior, prior.family, prior.arms

    def draw(self, rng, problems):
        self.drawn = self.prior.draw(rng, problems)
        return self.drawn

    def regret_means(self, parameters):
        return self.prior.regret_means(parameters)


PRIORS = """bernoulli | bernoulli:alpha=0.5,beta=2 | truncated-gaussian | gaussian | beta
| truncated-gaussian:regret=parent | truncated-gaussian:low=-2,high=1 | beta:concentration=0.5
| table:path=FILE | table:path=FILE,family=gaussian | table:path=FILE,family=beta"""


@pytest.mark.parametrize("arms", [2, 5])
@pytest.mark.parametrize("text", [item.strip() for item in PRIORS.split("|")])
def test_every_policy_plays_on_every_prior(text, arms, tmp_path):
    path = tmp_path / "means.csv"
    np.savetxt(path, np.random.default_rng(1).random((50, arms)), delimiter=",")
    prior = Recorded(mb.prior(text.replace("FILE", str(path)), arms=arms))
    chosen = [
        name
        for name in EXPECTED.split()
        if prior.family.in_unit_interval or name not in ("kl-ucb", "kl-ucb+")
    ]
    result = mb.evaluate(chosen, prior, 30, episodes=300, seed=5)
    means = prior.regret_means(prior.drawn)[:300]
    most = 30 * (means.max(axis=1) - means.min(axis=1))
    for evaluation in result:
        assert math.isfinite(evaluation.mean_regret)
        assert math.isfinite(evaluation.standard_error)
        assert evaluation.plays.sum() == pytest.approx(30)
        assert (evaluation.problem_regret >= 0).all()
        assert (evaluation.problem_regret <= most * (1 + 1e-6)).all()
        assert 0 < evaluation.mean_regret < most.mean()


def test_policies_with_one_formula_and_other_numbers_have_names_of_their_own():
    pair = [mb.IndexPolicy("r + a/n", parameters={"a": a}) for a in (0.5, 2)]
    result = mb.evaluate([*pair, "greedy"], mb.Bernoulli(arms=2), 10)
    names = [evaluation.policy for evaluation in result]
    assert names == ["r + a/n (a=0.5)", "r + a/n (a=2)", "greedy"]
    assert [item.name for item in pair] == ["r + a/n", "r + a/n"]
    pair = [mb.IndexPolicy("r + 1/n", start=start) for start in ("each-once", "prior-counts")]
    trial = mb.operating_characteristics(pair, [(0.3, 0.5)], horizon=10)
    assert list(trial.designs) == ["r + 1/n (start each-once)", "r + 1/n (start prior-counts)"]
    close = [mb.IndexPolicy("r + a/n", parameters={"a": a}) for a in (1, 1.00000001)]
    assert [item.name for item in with_own_names(close)] == [
        "r + a/n (a=1)",
        "r + a/n (a=1.00000001)",
    ]
    # As many of sixteen weights as it takes.
    weights = dict.fromkeys(weight_names(1), 0.0)
    learned = [
        mb.IndexPolicy(power_tree(1, "t"), parameters={**weights, **more}, name="learned power-1")
        for more in ({"w_0010": 1}, {"w_0010": 1, "w_0011": 0.5}, {"w_0010": 2})
    ]
    assert [item.name for item in with_own_names(learned)] == [
        "learned power-1 (w_0010=1, w_0011=0)",
        "learned power-1 (w_0010=1, w_0011=0.5)",
        "learned power-1 (w_0010=2, w_0011=0)",
    ]
    solved = [mb.OptimalPolicy(mb.Bernoulli(2, alpha=a), 5) for a in (1, 2)]
    assert [item.name for item in with_own_names(solved)] == [
        "optimal for 5 plays (prior bernoulli:alpha=1,beta=1)",
        "optimal for 5 plays (prior bernoulli:alpha=2,beta=1)",
    ]
    sampled = [CATALOGUE["thompson"].make({"a": a}, None, "mine") for a in (1, 2)]
    assert [item.name for item in with_own_names(sampled)] == ["mine (a=1)", "mine (a=2)"]
    same = mb.evaluate(["greedy", "greedy"], mb.Bernoulli(arms=2), 10)
    assert [evaluation.policy for evaluation in same] == ["greedy", "greedy"]
