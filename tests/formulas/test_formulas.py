"""Formulas: enumeration and classes against brute force, the three ways to search, refinement."""

import json
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metabandit as mb
from metabandit.engine.engine import Engine
from metabandit.engine.programs import ManyPrograms
from metabandit.engine.simulated import Sampling
from metabandit.engine.task import read_task
from metabandit.formulas import enumeration
from metabandit.formulas.refining import free_constants
from metabandit.formulas.strategies import ExactSearch, Halving, Ucb1Tuned
from metabandit.language import length, parse, text
from metabandit.language.compile import compile_expression
from metabandit.policies import Start
from metabandit.workers import Workers
from tests import naive
from tests.tiers import some

pytestmark = pytest.mark.usefixtures("short_reports")

TWO = mb.Bernoulli(arms=2)
SMALL = mb.Grammar(
    operators=("add", "divide", "min", "sqrt", "ln", "negate"),
    variables=("r", "n", "t"),
    constants=(1.0, 2.0),
)


@pytest.fixture(scope="module")
def five():
    """All formulas up to length 5 of the paper's grammar."""
    return mb.make_classes(5)


def batch(formulas, horizon, start="each-once", prior=TWO, threads=2):
    trees = [parse(item) for item in formulas]
    compiled = [compile_expression(tree) for tree in trees]
    return ManyPrograms.of(
        compiled, prior, horizon, Start.read(start).resolve(prior), Workers(threads)
    )


# Grammar and enumeration -----------------------------------------------------------------------


def test_the_papers_grammar_has_the_papers_number_of_formulas():
    counts = mb.Grammar().counts(7)
    assert counts == [9, 45, 711, 8_415, 131_013, 1_947_825, 31_465_755]
    assert sum(counts) == 33_553_773


@pytest.mark.parametrize(
    ("grammar", "longest"),
    [pytest.param(mb.Grammar(), 4, marks=pytest.mark.slow), (SMALL, some(4, 5))],
)
@pytest.mark.parametrize("tolerance", [pytest.param(0.0, marks=pytest.mark.slow), 1e-12])
def test_enumeration_agrees_with_brute_force(grammar, longest, tolerance):
    sample = mb.general_sample(groups=24, arms=3, seed=5)
    found = mb.make_classes(longest, grammar=grammar, sample=sample, tolerance=tolerance, threads=2)
    known: dict = {}
    seen: set = set()
    classes: dict = {}
    sizes: Counter = Counter()
    for position, trees in enumerate(naive.all_formulas(grammar, longest)):
        values = [naive.sampled_values(tree, sample.values, known) for tree in trees]
        valid = [item for item in values if item is not None]
        assert found.formulas[position] == len(trees)
        assert found.invalid[position] == len(trees) - len(valid)
        distinct = {(item + 0.0).tobytes() for item in valid}
        assert found.distinct[position] == len(distinct - seen)
        seen |= distinct
        for item in valid:
            rank = naive.ranks(item, tolerance)
            classes.setdefault(rank, position + 1)
            sizes[rank] += 1
    assert len(found) == len(classes)
    assert sorted(found.lengths.tolist()) == sorted(classes.values())
    assert sorted(found.sizes.tolist()) == sorted(sizes.values())
    # Each class has the formula, the size and the length of its own.
    for tree, size, symbols in zip(found.trees, found.sizes, found.lengths, strict=True):
        rank = naive.ranks(naive.sampled_values(tree, sample.values, known), tolerance)
        assert (sizes[rank], classes[rank]) == (size, symbols) == (size, length(tree))


def test_threads_change_nothing():
    one, two = (mb.make_classes(5, sample=mb.general_sample(groups=64), threads=n) for n in (1, 3))
    assert (one.codes == two.codes).all()
    assert (one.sizes == two.sizes).all()


def test_equal_sums_and_increasing_functions_are_one_class():
    sums = ["(r + s) + n", "r + (s + n)", "(r + n) + s"]
    assert len(set(mb.classify(sums))) == 1
    rising = ["r", "2*r", "sqrt(r)", "r*r", "r + 1", "-(1/(r + 1))", "ln(r + 1)", "r/7 + t"]
    assert len(set(mb.classify(rising))) == 1
    assert mb.classify(["r", "n", "-r", "ln(r)", "1/(n - n)"]) == [0, 1, 2, None, None]


def test_formulas_with_more_than_two_operands_are_not_compared():
    with pytest.raises(mb.InputError, match="beta_quantile, which has 3"):
        mb.classify(["r", "1 + beta_quantile(1 - 1/t, n*r + 1, n*(1 - r) + 1)"])


def _members():
    """All valid formulas up to length 4, by class; those that are alone in theirs are left out."""
    trees = [tree for made in naive.all_formulas(mb.Grammar(), 4) for tree in made]
    groups = defaultdict(list)
    for tree, number in zip(trees, mb.classify(trees), strict=True):
        if number is not None:
            groups[number].append(tree)
    return [group for group in groups.values() if len(group) > 1]


@pytest.fixture(scope="module")
def members():
    return _members()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), arms=st.integers(2, 5))
def test_formulas_of_one_class_choose_the_same_arms_in_random_plays(members, data, seed, arms):
    group = data.draw(st.sampled_from(members))
    one, two = data.draw(st.sampled_from(group)), data.draw(st.sampled_from(group))
    rng = np.random.default_rng(seed)
    means = rng.uniform(size=arms)
    rewards = [[float(rng.uniform() < mean)] for mean in means]
    for t in range(arms, 40):
        chosen = []
        for tree in (one, two):
            states = [
                {"r": np.mean(item), "s": np.std(item), "n": len(item), "t": t} for item in rewards
            ]
            index = np.array([naive.value(tree, state) for state in states])
            chosen.append(index >= index.max() - 1e-9 * np.abs(index).max())
        assert (chosen[0] == chosen[1]).all(), (text(one), text(two), t)
        arm = int(rng.choice(np.flatnonzero(chosen[0])))
        rewards[arm].append(float(rng.uniform() < means[arm]))


def test_variables_that_are_equal_on_the_sample_are_one_node():
    sample = mb.general_sample(groups=16)
    sample.values["s"] = sample.values["r"]
    found = mb.make_classes(4, sample=sample)
    assert found.distinct[0] == 8
    assert sum(found.sizes) == sum(found.formulas) - sum(found.invalid)
    without = mb.make_classes(4, sample=sample, grammar=mb.Grammar(variables=("r", "n", "t")))
    assert found.trees == without.trees


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variables": "t,h"}, "variable of the arm"),
        ({"variables": "r,x"}, "unknown variable 'x'"),
        ({"variables": "r,r"}, "twice"),
        ({"operators": "add,plus"}, "unknown operator 'plus'"),
        ({"operators": "polynomial"}, "unknown operator"),
        ({"constants": "1,-2"}, "negative"),
        ({"constants": "1,1"}, "twice"),
        ({"constants": "1,x"}, "a number"),
    ],
)
def test_bad_grammars_are_refused(options, message):
    with pytest.raises(mb.InputError, match=message):
        mb.Grammar.read(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0}, "at least 1"),
        ({"length": 10}, r"153,753,453,774 formulas up to length 10.*length 8 fits"),
        ({"length": 3, "tolerance": -1.0}, "tolerance"),
        ({"length": 3, "tolerance": math.nan}, "tolerance"),
    ],
)
def test_what_cannot_be_enumerated_is_refused(options, message):
    with pytest.raises(mb.InputError, match=message):
        mb.make_classes(**options)


# Sample points ---------------------------------------------------------------------------------


def test_the_general_sample_has_the_domains_of_the_notes():
    sample = mb.general_sample(groups=4000, seed=3)
    r, n, t = (sample.values[name] for name in ("r", "n", "t"))
    assert ((r >= 0) & (r <= 1) & (n >= 1) & (n <= t) & (t >= 1) & (t < 1e5)).all()
    assert (t == t[:1]).all(), "arms of a group share the moment"
    assert (n == np.floor(n)).all()
    for share in ((r == 0).mean(), (r == 1).mean()):
        assert share == pytest.approx(1 / 12, abs=0.02), "clipped: a twelfth at each end"
    assert (n == t).mean() > 1 / 12


@pytest.mark.parametrize(
    ("prior", "start"),
    [
        (mb.Bernoulli(arms=3), "each-once"),
        (mb.Bernoulli(arms=2), "prior-counts"),
        (mb.TruncatedGaussian(arms=2), "each-once"),
        (mb.Gaussian(arms=2), "each-once"),
    ],
)
def test_the_reachable_sample_is_what_play_can_reach(prior, start):
    sample = mb.reachable_sample(prior, 30, start=start, groups=200)
    counts = Start.read(start).counts(prior)
    n, t, h = (sample.values[name] for name in ("n", "t", "h"))
    played = n - counts[0][:, None]
    assert (played == np.floor(played)).all()
    assert played.min() >= (1 if start == "each-once" else 0)
    assert (n.sum(axis=0) == t[0]).all()
    assert (t - counts[0].sum() + h == 30).all()
    assert h.min() >= 1
    if prior.family.binary:
        wins = sample.values["r"] * n - counts[1][:, None]
        assert np.allclose(wins, np.rint(wins))
    assert np.isfinite(np.stack(list(sample.values.values()))).all()


def test_every_state_is_every_state():
    sample = mb.every_state(TWO, 5)
    states = set()
    for n1 in range(1, 5):
        for n2 in range(1, 5 - n1):
            for s1 in range(n1 + 1):
                for s2 in range(n2 + 1):
                    if (n1, s1) <= (n2, s2):
                        states.add((n1, s1 / n1, n2, s2 / n2))
    r, n = sample.values["r"], sample.values["n"]
    assert set(zip(n[0], r[0], n[1], r[1], strict=True)) == states
    assert sample.groups == len(states)
    with pytest.raises(mb.InputError, match="3 to 33 plays"):
        mb.every_state(TWO, 34)
    with pytest.raises(mb.InputError, match="two Bernoulli arms"):
        mb.every_state(mb.Gaussian(arms=2), 5)


def test_the_sharpest_partition_joins_what_plays_alike_and_nothing_else():
    every = mb.make_classes(4, sample=mb.every_state(TWO, 6))
    sharp = mb.sharpen(every, TWO, 6)
    assert len(sharp) < len(every)
    valid = [tree for tree in every.trees if naive.choices(tree, 6) is not None]
    assert len({naive.choices(tree, 6) for tree in valid}) == len(sharp)
    assert len({naive.choices(tree, 6) for tree in sharp.trees}) == len(sharp)


# Classes as a file -----------------------------------------------------------------------------


def test_classes_are_read_back_as_they_were_written(tmp_path):
    made = mb.make_classes(4, grammar=SMALL)
    path = tmp_path / "classes.npz"
    made.save(path)
    read = mb.Classes.load(path)
    assert read.header == made.header
    assert read.counts() == made.counts()
    assert read.trees == made.trees
    assert (read.sizes == made.sizes).all()
    with pytest.raises(mb.InputError, match="exists"):
        made.save(path)
    made.save(path, force=True)
    for name in ("classes.txt", "none/classes.npz"):
        with pytest.raises(mb.InputError, match=r"\.npz|does not exist"):
            made.save(tmp_path / name)


def test_damaged_class_files_are_refused(tmp_path):
    made = mb.make_classes(3, grammar=SMALL)
    path = tmp_path / "classes.npz"
    made.save(path)
    content = path.read_bytes()
    with np.load(path) as arrays:
        good = dict(arrays)

    def refused(match, **changes):
        np.savez(path, **{**good, **changes})
        with pytest.raises(mb.InputError, match=match):
            mb.Classes.load(path)

    header = json.loads(bytes(good["header"]))

    def altered(**changes):
        return np.frombuffer(json.dumps({**header, **changes}).encode(), np.uint8)

    refused("version 9", header=altered(version=9))
    refused("damaged", header=altered(format="something"))
    refused("damaged", header=altered(length=4))
    refused("damaged", header=np.zeros(4, np.uint8))
    wrong = good["codes"].copy()
    wrong[0, 0] = 100
    refused("damaged", codes=wrong)
    wrong = good["codes"].copy()
    wrong[-1, -1] = -1
    refused("damaged", codes=wrong)
    refused("damaged", sizes=good["sizes"][1:])
    middle = len(content) // 3
    flipped = content[:middle] + bytes(255 - item for item in content[middle : middle + 40])
    for broken in (
        content[: len(content) // 2],
        b"",
        b"nonsense",
        flipped + content[middle + 40 :],
    ):
        path.write_bytes(broken)
        with pytest.raises(mb.InputError, match="damaged"):
            mb.Classes.load(path)
    with pytest.raises(mb.InputError, match="does not exist"):
        mb.Classes.load(tmp_path / "none.npz")


def test_classes_are_made_once(monkeypatch):
    first = enumeration.kept_classes(3)
    monkeypatch.setattr(enumeration, "make_classes", None)
    again = enumeration.kept_classes(3)
    assert (first.codes == again.codes).all()


# Many at once ----------------------------------------------------------------------------------

SOME = [
    "r",
    "r + 1/n",
    "sqrt(n)*(r - 1/2)",
    "r + sqrt(ln(t)/n)",
    "-n",
    "t",
    "r + s/n",
    "max(r, 1/5)",
]


@pytest.mark.parametrize("start", ["each-once", "prior-counts"])
@pytest.mark.parametrize("prior", [TWO, mb.Bernoulli(arms=2, alpha=(1, 3), beta=(2, 1))])
def test_a_batch_evaluates_as_single_policies_do(start, prior):
    many = batch(SOME, 25, start, prior)
    regret, reached, _ = many.exact_regret(np.arange(len(SOME)), points=[5, 25])
    single = mb.evaluate([mb.policy(item, start=start) for item in SOME], prior, 25, method="exact")
    assert regret == pytest.approx([item.mean_regret for item in single], abs=1e-12)
    assert (reached == 25).all()


def test_a_batch_gives_up_where_regret_is_above_the_limit():
    many = batch(SOME, 40)
    which = np.arange(len(SOME))
    whole, _, _ = many.exact_regret(which, points=[40])
    limit = np.full(len(SOME), np.sort(whole)[3])
    regret, reached, _ = many.exact_regret(which, limit, points=[10, 20, 30, 40])
    kept = reached == 40
    assert (regret[kept] == whole[kept]).all()
    assert set(np.flatnonzero(whole <= limit)) <= set(np.flatnonzero(kept))
    assert (regret[~kept] > limit[~kept]).all()
    assert (~kept).any()
    # What was given up leaves nothing behind for the next.
    assert (many.exact_regret(which[::-1].copy(), points=[40])[0][::-1] == whole).all()


def test_a_batch_knows_which_policies_choose_alike():
    formulas = ["r", "2*r", "r*r + 1", "r + 1/n", "r + 1/n/10", "-r"]
    _, _, choices = batch(formulas, 8).exact_regret(np.arange(6), points=[8], with_choices=True)
    assert choices[0] == choices[1] == choices[2]
    assert len(set(choices.tolist())) == 4


def test_a_policy_without_a_finite_index_has_infinite_regret():
    regret, _, _ = batch(["r", "ln(r)", "r + 1/n"], 10).exact_regret(np.arange(3), points=[10])
    assert np.isinf(regret).tolist() == [False, True, False]
    many = batch(["r", "ln(r)", "r + 1/n"], 10)
    played = many.regret(np.arange(3), 0, 64, runs=1, seed=1)
    assert np.isinf(played).all(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize("prior", [TWO, mb.TruncatedGaussian(arms=3)])
def test_a_batch_plays_as_single_policies_do(prior):
    made = [mb.policy(item) for item in SOME]
    plans = [item.plan(prior, 20) for item in made]
    wanted = Engine(prior, 20, Workers(1)).simulated_regret(
        plans, [0, 70], seed=11, sampling=Sampling(runs=3)
    )
    many, every = batch(SOME, 20, prior=prior), np.arange(len(SOME))
    assert (many.regret(every, 0, 70, runs=3, seed=11) == wanted).all()
    assert (many.regret(every, 30, 50, runs=3, seed=11) == wanted[:, 30:50]).all()


def test_each_policy_can_play_its_own_episodes():
    many = batch(SOME, 20)
    which, first = np.array([1, 2, 4]), np.array([0, 37, 80])
    found = many.next_regrets(which, first, 20, training=100, seed=11)
    wanted = many.regret(which, 0, 100, runs=1, seed=11)
    for row, begin in enumerate(first):
        assert (found[row] == wanted[row, begin : begin + 20]).all()
    # After the last training problem the first comes again, with other luck.
    later = many.next_regrets(np.arange(3), np.full(3, 100), 16, training=100, seed=11)
    assert not (later == many.regret(np.arange(3), 0, 16, runs=1, seed=11)).all()


# The ways to search ----------------------------------------------------------------------------


def finished(way):
    while way.step() < 1.0:
        pass
    return way


@pytest.mark.parametrize("start", ["each-once", "prior-counts"])
def test_the_exact_search_finds_the_best_of_all(five, start):
    begin = Start.read(start).resolve(TWO)
    many = ManyPrograms.of(five.compile(), TWO, 30, begin, Workers(2))
    whole, _, _ = many.exact_regret(np.arange(many.count), points=[30])
    way = finished(ExactSearch(read_task(TWO, 30), many, five.lengths, top=10))
    found = way.found()
    best = np.sort(whole)[:10]
    assert np.allclose(np.sort(whole[found])[:10], best, rtol=1e-12)
    for symbols in range(1, 6):
        of_length = five.lengths == symbols
        least = whole[of_length].min()
        assert whole[found][five.lengths[found] == symbols].min() == pytest.approx(least)


def test_halving_comes_close_to_the_best(five):
    many = ManyPrograms.of(
        five.compile(), TWO, 30, Start.read("prior-counts").resolve(TWO), Workers(2)
    )
    whole, _, _ = many.exact_regret(np.arange(many.count), points=[30])
    way = finished(Halving(read_task(TWO, 30, seed=3), many, five.lengths, top=10))
    assert whole[way.found()].min() == pytest.approx(whole.min(), rel=0.005)
    # The value of each that is left is its mean over all problems so far.
    left = way.now_left[:4]
    regret = many.regret(left, 0, way.now_problems, **way.episodes)
    assert way.now_sums[:4] / way.now_problems == pytest.approx(regret.mean(axis=1))


def test_a_short_ranking_by_halving_has_no_gaps(five):
    """Classes that play alike must not crowd out the next best."""
    begin = Start.read("prior-counts").resolve(TWO)
    many = ManyPrograms.of(five.compile(), TWO, 15, begin, Workers(2))
    whole, _, choices = many.exact_regret(np.arange(many.count), points=[15], with_choices=True)
    best = []
    for place in np.argsort(whole):
        if choices[place] not in {choices[item] for item in best}:
            best.append(place)
    found = mb.search(TWO, 15, classes=five, top=5, strategy="halving")
    regrets = [entry.regret for entry in found.entries]
    assert regrets == pytest.approx(whole[best[:5]].tolist(), rel=0.005)


def test_ucb1_tuned_pulls_as_the_slow_version_does():
    formulas = [*SOME, "r + 2/n", "r + 1/(n + 1)", "s", "n"]
    many = batch(formulas, 10)
    lengths = np.full(len(formulas), 3)
    way = Ucb1Tuned(read_task(TWO, 10, seed=5), many, lengths, top=3, pulls=3000)
    way._EPOCH = 37
    finished(way)

    class Rewards:
        arms = len(formulas)
        table = -np.concatenate(
            [
                many.next_regrets(
                    np.arange(12), np.full(12, begin), 100, training=way.TRAINING, seed=way.seed
                )
                for begin in range(0, 3000, 100)
            ],
            axis=1,
        ).astype(np.float32)

        def __call__(self, arm, number):
            return float(self.table[arm, number])

    assert way.now_count.tolist() == naive.ucb1_tuned_pulls(Rewards(), 3000)
    assert way.now_count.sum() == 3000


@pytest.mark.parametrize(
    "kind", [ExactSearch, Halving, pytest.param(Ucb1Tuned, marks=pytest.mark.slow)]
)
def test_a_search_goes_on_from_its_state(five, kind, monkeypatch):
    monkeypatch.setattr(ExactSearch, "_SCREENED", 500)
    monkeypatch.setattr(ExactSearch, "_CHUNK", 100)

    def make(threads):
        many = ManyPrograms.of(five.compile(), TWO, 25, Start.read("each-once"), Workers(threads))
        options = {"pulls": 500_000} if kind is Ucb1Tuned else {}
        return kind(read_task(TWO, 25, seed=2), many, five.lengths, top=5, **options)

    whole = finished(make(2))
    part = make(1)
    for _ in range(2):
        part.step()
    state = {key: np.array(value) for key, value in part.state().items()}
    other = make(2)
    other.restore(state)
    finished(other)
    assert (other.found() == whole.found()).all()
    for key, value in whole.state().items():
        assert np.array_equal(value, other.state()[key])


@pytest.mark.parametrize(
    ("objective", "reference"),
    [
        pytest.param("simple", None, marks=pytest.mark.slow),
        ("wins", "ucb1-tuned"),
        pytest.param("quantile:q=0.9", None, marks=pytest.mark.slow),
        pytest.param("worst", None, marks=pytest.mark.slow),
    ],
)
def test_formulas_are_searched_for_every_objective(objective, reference):
    found = mb.search(TWO, 15, length=4, objective=objective, reference=reference, top=5)
    assert found.strategy == "halving"
    values = [entry.value for entry in found.entries]
    assert values == sorted(values)
    assert len(values) == 5
    assert all(entry.regret < 5 for entry in found.entries)


def test_search_finds_and_measures(tmp_path):
    out = tmp_path / "best.json"
    steps = []
    found = mb.search(
        TWO, 10, length=5, top=8, refine=8, out=out,
        progress=lambda share, doing: steps.append((share, doing)),
    )  # fmt: skip
    assert found.strategy == "exact"
    assert found.classes == 1439
    assert steps
    regrets = [entry.regret for entry in found.entries]
    assert regrets == sorted(regrets)
    assert len(set(regrets)) > 1
    for entry in found.entries[:2]:
        alone = mb.evaluate(
            [mb.policy(entry.formula, start="prior-counts")], TWO, 10, method="exact"
        )
        assert entry.regret == pytest.approx(alone[0].mean_regret)
        assert entry.exact
    pairs = [(entry.regret, entry.refined.regret) for entry in found.entries if entry.refined]
    assert pairs
    assert all(after <= before + 1e-12 for before, after in pairs)
    least = min(after for _, after in pairs)
    assert found.floor <= least
    again = mb.evaluate([str(out)], TWO, 10, method="exact")
    assert again[0].mean_regret == pytest.approx(min(least, regrets[0]))
    lengths = [entry.length for entry in found.of_length]
    assert lengths == sorted(set(lengths))
    assert (lengths[0], lengths[-1]) == (1, 5)
    assert found.table().count("\n") == 9
    json.dumps(found.to_dict())
    assert not (tmp_path / "best.search.npz").exists()


@pytest.mark.slow
def test_search_plays_other_priors_too():
    found = mb.search(
        mb.TruncatedGaussian(arms=3), 20, length=3, top=5, effort=0.2, floor_effort=0.02
    )
    assert found.strategy == "halving"
    assert found.file.policy.start.kind == "each-once"
    assert not found.entries[0].exact
    assert found.entries[0].regret < found.comparison["ucb1"].mean_regret


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "best"}, "unknown strategy"),
        ({"strategy": "exact", "objective": "simple"}, "exact is for the objective regret"),
        ({"strategy": "exact", "prior": mb.Bernoulli(arms=3)}, "two Bernoulli arms"),
        ({"strategy": "exact", "horizon": 401}, "up to 400 plays"),
        ({"strategy": "ucb1-tuned", "pulls": 3}, "too few"),
        ({"strategy": "ucb1-tuned", "objective": "worst"}, "for the objective regret"),
        ({"objective": "wins"}, "--reference"),
        ({"top": 0}, "at least 1"),
        ({"refine": -1}, "at least 0"),
        ({"time_limit": 0}, "greater than 0"),
        ({"horizon": 1, "start": "each-once"}, "at least 2"),
        ({"start": "sometimes"}, "unknown start"),
        ({"resume": True}, "--out"),
        ({"classes": "none.npz"}, "does not exist"),
        ({"prior": 3}, "must be a Prior"),
    ],
)
def test_bad_searches_are_refused(options, message):
    arguments = {"prior": TWO, "horizon": 10, "length": 2, **options}
    if "classes" in options:
        del arguments["length"]
    with pytest.raises(mb.InputError, match=message):
        mb.search(**arguments)


def test_classes_of_another_grammar_or_length_are_refused(tmp_path):
    path = tmp_path / "small.npz"
    mb.make_classes(3, grammar=SMALL).save(path)
    with pytest.raises(mb.InputError, match="another grammar"):
        mb.search(TWO, 10, classes=path, grammar=mb.Grammar())
    with pytest.raises(mb.InputError, match="up to length 3, not 5"):
        mb.search(TWO, 10, classes=path, length=5)
    assert mb.search(TWO, 10, classes=path, top=3).classes == len(mb.Classes.load(path))


def test_classes_for_other_problems_are_refused():
    sharp = mb.sharpen(mb.make_classes(3, sample=mb.every_state(TWO, 6)), TWO, 6)
    assert mb.search(TWO, 6, classes=sharp, start="each-once", top=2).classes == len(sharp)
    for prior, horizon, start in (
        (TWO, 7, "each-once"),
        (TWO, 6, "prior-counts"),
        (mb.Gaussian(arms=2), 6, "each-once"),
    ):
        with pytest.raises(mb.InputError, match=r"was made for 2 arms .* 6 plays, start each-once"):
            mb.search(prior, horizon, classes=sharp, start=start)


@pytest.mark.slow
def test_rewards_beyond_the_unit_interval_have_classes_of_their_own():
    assert mb.classify(["r", "r*r"]) == [0, 0]
    reached = mb.reachable_sample(mb.Gaussian(arms=2), 10)
    assert mb.classify(["r", "r*r"], sample=reached) == [0, 1]
    found = mb.search(mb.Gaussian(arms=2), 10, length=3, top=3, measured=False)
    assert found.classes == len(mb.make_classes(3, sample=reached))


@pytest.mark.parametrize(
    "call",
    [
        lambda: mb.classify("r"),
        lambda: mb.classify([1]),
        lambda: mb.classify(None),
        lambda: mb.every_state("bernoulli", 5),
        lambda: mb.reachable_sample(None, 5),
        lambda: mb.sharpen(5, TWO, 5),
        lambda: mb.make_classes(2, sample=5),
        lambda: mb.search(TWO, 10, classes=5),
        lambda: mb.search(TWO, 10, length=2, grammar="r"),
        lambda: mb.Grammar(constants=5),
    ],
)
def test_wrong_types_are_refused(call):
    with pytest.raises(mb.InputError):
        call()


def test_nothing_is_overwritten(tmp_path):
    out = tmp_path / "best.json"
    state = tmp_path / "best.search.npz"
    out.write_text("mine")
    with pytest.raises(mb.InputError, match="exists"):
        mb.search(TWO, 10, length=2, out=out)
    out.unlink()
    state.write_bytes(b"half a search")
    with pytest.raises(mb.InputError, match="did not end"):
        mb.search(TWO, 10, length=2, out=out)
    with pytest.raises(mb.InputError, match="damaged"):
        mb.search(TWO, 10, length=2, out=out, resume=True)
    assert state.read_bytes() == b"half a search"
    mb.search(TWO, 10, length=2, out=out, force=True)
    with pytest.raises(mb.InputError, match="nothing to resume"):
        mb.search(TWO, 10, length=2, out=out, resume=True)


def test_a_search_of_other_problems_is_not_resumed(tmp_path):
    """Priors write themselves alike for any number of arms."""

    def stop(share, doing):
        if doing.startswith("round 2"):
            raise KeyboardInterrupt

    options = {"length": 3, "strategy": "halving", "measured": False, "out": tmp_path / "best.json"}
    with pytest.raises(KeyboardInterrupt):
        mb.search(TWO, 10, progress=stop, **options)
    with pytest.raises(mb.InputError, match="its arms is 2, not 3"):
        mb.search(mb.Bernoulli(arms=3), 10, resume=True, **options)
    assert mb.search(TWO, 10, resume=True, **options).stopped == "finished"


# Refinement and picture ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "space", "values"),
    [
        ("r + 3/(n + 2)", "r + a/(n + b)", {"a": 3.0, "b": 2.0}),
        ("r + 1/max(n, sqrt(7))", "r + a/max(n, b)", {"a": 1.0, "b": math.sqrt(7)}),
        ("sqrt(n) * (r - 1/2)", "sqrt(n) * (r - a)", {"a": 0.5}),
        ("r - s", "r - s", {}),
        ("r + ln(2)/n - t*(1 + 2)", "r + a/n - t * b", {"a": math.log(2), "b": 3.0}),
    ],
)
def test_numbers_of_a_formula_become_parameters(formula, space, values):
    tree, found = free_constants(parse(formula))
    assert text(tree) == space
    assert found == pytest.approx(values)
