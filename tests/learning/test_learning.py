"""Learning: spaces, optimisers, objectives, judges, the search and its trace."""

import json
import math

import numpy as np
import pytest

import metabandit as mb
from metabandit.engine.engine import Engine
from metabandit.engine.objectives import read_objective
from metabandit.engine.simulated import Sampling
from metabandit.engine.task import read_task
from metabandit.kernels import posterior
from metabandit.learning import judges, measure
from metabandit.learning.optimizers import OPTIMIZERS
from metabandit.learning.optimizers.base import make_optimizer
from metabandit.learning.spaces import make_space
from metabandit.policies.power import feature, matters, power_tree, powers, weight_names
from metabandit.workers import Workers
from tests import naive
from tests.language.test_text import listed

TWO = mb.Bernoulli(arms=2)


@pytest.fixture(autouse=True)
def _short_reports(monkeypatch):
    """The measurement at the end is tested elsewhere; here it need not be precise."""
    monkeypatch.setattr(measure, "_MOST_EPISODES", 20_000)


# Power-P ---------------------------------------------------------------------------------------


def test_power_features_are_those_of_the_paper():
    assert [len(powers(degree)) for degree in (1, 2)] == [16, 81]
    assert [sum(map(matters, powers(degree))) for degree in (1, 2)] == [14, 78]
    some = [(0, 0, 0, 0), (1, 0, 0, 2), (0, 1, 1, 0)]
    assert [feature(item) for item in some] == ["1", "v1*v4^2", "v2*v3"]


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("v1", ["t", "h"])
@pytest.mark.parametrize("start", ["each-once", "prior-counts"])
def test_power_index_is_the_sum_over_its_features(degree, v1, start):
    rng = np.random.default_rng(degree)
    names = weight_names(degree)
    weights = dict(zip(names, rng.normal(size=len(names)).tolist(), strict=True))
    power = mb.IndexPolicy(power_tree(degree, v1), parameters=weights, start=start, name="power")
    horizon = 6

    def index(n, r, s, t, h):
        value = math.sqrt(math.log(t if v1 == "t" else h + 1))
        return sum(
            weights[name] * value**i * n ** (-j / 2) * r**k * s**power_of_s
            for (i, j, k, power_of_s), name in zip(powers(degree), names, strict=True)
        )

    counts = power.plan(TWO, horizon).counts

    def shares(plays, wins):
        values = []
        for arm in (0, 1):
            n = counts[0, arm] + plays[arm]
            r = (counts[1, arm] + wins[arm]) / n
            t = counts[0].sum() + sum(plays)
            values.append(index(n, r, math.sqrt(max(r - r * r, 0.0)), t, horizon - sum(plays)))
        return naive.shares_of(values)

    reward = naive.expected_reward(
        naive.by_shares(shares),
        naive.beta_chance((1, 1), (1, 1)),
        2,
        horizon,
        start == "each-once",
    )
    found = mb.evaluate([power], TWO, horizon, method="exact")[0]
    assert found.mean_regret == pytest.approx(horizon * 2 / 3 - float(reward), abs=1e-10)


# Simple regret, and regret expected given the plays ------------------------------------------------


@pytest.mark.parametrize("start", ["each-once", "prior-counts"])
@pytest.mark.parametrize(
    ("alpha", "beta"), [((1, 1), (1, 1)), ((3, 1), (2, 1)), ((1, 1, 1), (1, 1, 1))]
)
def test_simple_regret_is_that_of_a_recursion(alpha, beta, start):
    arms = len(alpha)
    prior = mb.Bernoulli(arms, alpha=list(alpha), beta=list(beta))
    for text in ("r + 1/n", "ucb1", "s - r", "1"):
        policy = mb.policy(text, start=start)
        plan = policy.plan(prior, 6)
        expected = naive.simple_regret(
            naive.index_shares(policy.bound, plan.counts, 6),
            naive.beta_chance(alpha, beta),
            prior.expected_best(),
            plan.counts,
            6,
            plan.each_once,
        )
        found = mb.evaluate([policy], prior, 6, method="exact")[0].simple_regret
        assert found == pytest.approx(expected, abs=1e-12), text


@pytest.mark.parametrize("text", ["ucb1", "thompson", "uniform"])
def test_simple_regret_is_that_of_simulation(text):
    drawn = mb.Table(np.random.default_rng(3).random((20, 2)))
    for prior in (TWO, drawn, mb.Bernoulli(arms=3)):
        if text == "thompson" and prior.arms == 3:
            continue
        found = mb.evaluate([text], prior, 12, method="exact")[0].simple_regret
        test = mb.evaluate([text], prior, 12, episodes=200_000, method="monte-carlo", seed=5)[0]
        assert abs(found - test.simple_regret) < 4 * test.simple_error


@pytest.mark.parametrize("horizon", [20, 100, 1000])
@pytest.mark.parametrize(
    ("alpha", "beta"), [((1, 1), (1, 1)), ((3, 0.5), (2, 1)), ((1, 2, 1, 1), (1, 1, 0.5, 5))]
)
def test_expected_regret_given_the_plays(horizon, alpha, beta):
    rng = np.random.default_rng(horizon)
    arms, episodes = len(alpha), 70 if horizon == 20 else 20
    shares = rng.dirichlet(np.full(arms, 0.5), episodes)
    plays = np.array([rng.multinomial(horizon, share) for share in shares]).T
    wins = rng.binomial(plays, rng.random((arms, episodes)))
    found = np.empty(episodes)
    posterior.expected_regret(
        np.array(alpha, float),
        np.array(beta, float),
        horizon,
        plays.astype(np.float32),
        wins.astype(np.float32),
        found,
    )
    expected = [
        naive.expected_gap_regret(alpha, beta, plays[:, e], wins[:, e]) for e in range(episodes)
    ]
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_expected_regret_has_the_mean_of_regret_and_less_noise():
    policies = [mb.policy("r + 1/n", start="prior-counts"), mb.policy("ucb1-tuned")]
    plans = [item.plan(TWO, 100) for item in policies]
    problems = 40_000
    engine = Engine(TWO, 100, Workers(2))
    plain, expected = (
        engine.simulated_regret(
            plans, [0, problems], seed=3, sampling=Sampling(posterior=posterior)
        )
        for posterior in (False, True)
    )
    truth = [item.mean_regret for item in mb.evaluate(policies, TWO, 100, method="exact")]
    error = expected.std(axis=1) / math.sqrt(problems)
    assert (np.abs(expected.mean(axis=1) - truth) < 4 * error + 1e-3).all()
    assert (np.diff(expected, axis=0).var() < 0.4 * np.diff(plain, axis=0).var()).all()


# Spaces ------------------------------------------------------------------------------------------


def test_spaces():
    space = make_space("r + a/(n + b)", TWO, initial={"b": 2.0})
    assert space.free == ("a", "b")
    assert space.center.tolist() == [0.0, 2.0]
    candidate = space.policy(np.array([3.0, 2.0]))
    assert candidate.formula == "r + 3/(n + 2)"
    assert str(candidate.start) == "prior-counts:plays=2,sum=1,squares=1"
    assert space.label(np.array([3.00004, 2.0])) == "r + 3/(n + 2)"
    assert make_space("ucb-v:c=1", TWO).free == ("zeta",)
    assert make_space("ucb2", TWO).center.tolist() == [-3.0]
    assert make_space("ucb2", TWO).parameters(np.array([-2.0])) == {"alpha": pytest.approx(0.01)}
    assert len(make_space("power-1", TWO).free) == 14
    assert len(make_space("power-1", TWO, paper=True).free) == 16
    assert len(make_space("power-2", TWO, paper=True).free) == 81
    assert not make_space("power-1", TWO, paper=True).center.any()
    assert str(make_space("power-1", mb.Gaussian(arms=2)).start) == "each-once"


def test_power_spaces_are_scaled_and_grow():
    small, large = make_space("power-1", TWO), make_space("power-2", TWO)
    inner = large.smaller()
    assert inner is not None
    assert inner.free == small.free
    coordinates = np.random.default_rng(0).normal(size=len(small.free))
    scaled = small.normalise(coordinates)
    assert np.mean(scaled**2) == pytest.approx(1.0)
    policies = [
        small.policy(coordinates),
        small.policy(scaled),
        large.policy(large.grow(inner, coordinates)),
    ]
    regrets = [item.mean_regret for item in mb.evaluate(policies, TWO, 30, method="exact")]
    assert regrets == pytest.approx([regrets[0]] * 3, abs=1e-12)


@pytest.mark.parametrize("prior", [TWO, mb.TruncatedGaussian(arms=2), mb.Gaussian(arms=2)])
def test_pseudo_observations_can_be_learned(prior):
    space = make_space("power-1", prior, start="prior-counts:learn")
    extra = 2 if prior.family.binary else 3
    assert len(space.free) == 14 + extra
    start = space.policy(space.center).start
    assert start.plays == pytest.approx(2.0)
    if prior is TWO:
        assert start.reward_sum == pytest.approx(1.0)
    counts = start.counts(prior)
    assert np.isfinite(counts).all()
    found = mb.learn(
        "r + a/n",
        prior,
        20,
        start="prior-counts:learn",
        generations=3,
        episodes=2000,
        measured=False,
    )
    assert set(found.parameters) >= {"a", "start_plays", "start_mean"}
    assert found.policy.start.plays == pytest.approx(found.parameters["start_plays"])


BAD_SPACES = """ucb1-tuned : no parameters | ucb1:C=1 : left free | r + 1/n : no free parameter
| power1 : unknown space | power-9 : 1 to 4 | power-x : 1 to 4 | a + t : nothing of an arm | ucb1:D=3 : no parameter
| r + : character | start_mean + r : taken | optimal : no parameters"""


@pytest.mark.parametrize("case", listed(BAD_SPACES))
def test_spaces_that_make_no_sense_are_refused(case):
    text, word = case.rsplit(" : ", 1)
    with pytest.raises(mb.InputError, match=word):
        mb.learn(text, TWO, 10)


# Optimisers ----------------------------------------------------------------------------------------


def bowl(candidate):
    return sum((position + 1) * (x - position) ** 2 for position, x in enumerate(candidate))


@pytest.mark.parametrize("dimensions", [1, 3, 6])
def test_the_eda_is_the_papers_algorithm(dimensions):
    """The same draws give the same Gaussians and the same best candidate as the naive twin."""
    center = np.zeros(dimensions)
    optimizer = make_optimizer("eda", center, 1.0, seed=11, noisy=False)
    history, (lowest, best) = naive.eda(bowl, center.tolist(), 15, 11)
    seen = []
    for mean, variance in history:
        candidates = optimizer.ask()
        assert len(candidates) == max(8 * dimensions, 40)
        values = np.array([bowl(candidate) for candidate in candidates])
        seen += zip(values.tolist(), candidates.tolist(), strict=True)
        optimizer.tell(candidates, values)
        assert np.allclose(optimizer.mean, mean, rtol=1e-9, atol=1e-12)
        assert np.allclose(optimizer.variance, variance, rtol=1e-9, atol=1e-15)
    found = min(seen, key=lambda item: item[0])
    assert found[0] == pytest.approx(lowest, rel=1e-9)
    assert found[1] == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
@pytest.mark.parametrize("noisy", [False, True])
def test_every_optimizer_finds_the_bottom_of_a_bowl(name, noisy):
    optimizer, again = (
        make_optimizer(name, np.array([0.5, 0.5, 1.5]), 1.0, seed=5, noisy=noisy) for _ in range(2)
    )
    for _ in range(60):
        candidates = optimizer.ask()
        assert np.array_equal(candidates, again.ask()), "one seed, one result"
        values = np.array([bowl(item) if item[0] > -3 else math.inf for item in candidates])
        optimizer.tell(candidates, values)
        again.tell(candidates, values)
    assert optimizer.center == pytest.approx([0.0, 1.0, 2.0], abs=0.02)


def test_cma_begins_again_when_it_stands_still():
    optimizer = make_optimizer("cma:population=6", np.zeros(2), 1.0, seed=5, noisy=False)
    sizes = set()
    for _ in range(200):
        candidates = optimizer.ask()
        sizes.add(len(candidates))
        optimizer.tell(candidates, np.ones(len(candidates)))
    assert {6, 12, 24} <= sizes


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("adam", "unknown optimizer"),
        ("eda:size=3", "no parameter"),
        ("eda:population=1", "from 2 to"),
        ("cma:population=1e9", "to 10000"),
        ("cma:population=0", "from 4"),
        ("cma:deviation=1e300", "at most 1e6"),
        ("cma:adapt=2", "from 0 to 1"),
        ("eda:population=8,best=8", "less than"),
        ("cma:population=2.5", "whole number"),
        ("cma:deviation=-1", "greater than 0"),
    ],
)
def test_optimizers_that_make_no_sense_are_refused(text, word):
    with pytest.raises(mb.InputError, match=word):
        mb.learn("ucb1", TWO, 10, optimizer=text)


def test_a_persons_own_optimizer():
    class Walk(mb.Optimizer):
        name = "walk"
        meaning = "the best of random steps"

        def begin(self):
            self.rng = np.random.default_rng(self.seed)
            self.at = self.initial

        def ask(self):
            return self.at + self.deviation * self.rng.normal(size=(6, len(self.at)))

        def tell(self, candidates, values):
            self.at = candidates[np.argmin(values)]

        @property
        def center(self):
            return self.at

    mb.register_optimizer(Walk)
    try:
        found = mb.learn("ucb1", TWO, 10, optimizer="walk", generations=5)
    finally:
        del OPTIMIZERS["walk"]
    assert found.file.learned.optimizer == "walk"
    assert found.evaluation.mean_regret < 1.0


# Objectives and judges -------------------------------------------------------------------------


def test_objectives():
    regret = np.array([[1.0, 2.0, 3.0, 10.0], [2.0, 2.0, 2.0, 2.0]])
    other = np.array([2.0, 2.0, 2.0, 2.0])

    def value(text):
        return read_objective(text, reference="x" if text == "wins" else None).value(regret, other)

    assert value("regret").tolist() == [4.0, 2.0]
    assert value("worst").tolist() == [10.0, 2.0]
    assert value("quantile:q=0.5").tolist() == [2.5, 2.0]
    assert value("wins").tolist() == [0.625, 0.5], "the share that the reference wins"


@pytest.mark.parametrize("text", ["regret", "simple", "wins", "quantile:q=0.9", "worst"])
def test_judges_agree_whether_exact_or_simulated(text):
    reference = mb.policy("ucb1-tuned") if text == "wins" else None
    objective = read_objective(text, reference=reference)
    candidates = [mb.policy(item) for item in ("ucb1", "greedy", "r + 1/n")]
    problems = mb.Table(TWO.draw(np.random.default_rng(1), 200)[..., 0])
    method = "exact" if objective.mean else "problems"

    def judge(prior, method):
        task = read_task(prior, 20, objective=text, reference=reference, threads=2)
        return judges.Judge(task, method, seed=3)

    exactly = judge(problems, method).judge(candidates, 0)
    assert exactly.noise == 0.0
    simulated = judge(problems, "simulated")
    simulated.problems, simulated.runs = 20_000, 1 if objective.mean else 100
    found = simulated.judge(candidates, 0)
    assert found.noise > 0.0
    # Averages over 100 runs are still noisy: they blur wins and widen the tails.
    slack = {"regret": 0.05, "simple": 0.002, "wins": 0.12, "quantile:q=0.9": 0.5, "worst": 2.5}
    assert np.abs(found.values - exactly.values).max() < slack[text]
    assert np.argmin(found.values) == np.argmin(exactly.values)


def test_exact_judges_are_evaluate():
    candidates = [mb.policy(item) for item in ("ucb1", "thompson", "optimal", "eps_n-greedy")]
    plans = [item.plan(TWO, 20) for item in candidates]
    engine = Engine(TWO, 20, Workers(2))
    expected = mb.evaluate(candidates, TWO, 20, method="exact")
    for simple, name in ((False, "mean_regret"), (True, "simple_regret")):
        found = engine.exact_regret(plans, simple=simple)
        assert found[:, 0].tolist() == pytest.approx(
            [getattr(item, name) for item in expected], abs=1e-12
        )
    broken = mb.policy("r + ln(r - 0.5)")
    assert np.isinf(engine.exact_regret([broken.plan(TWO, 20)])).all()


def test_more_problems_are_drawn_when_noise_hides_the_differences():
    judge = judges.Judge(read_task(TWO, 20, threads=1), "simulated", seed=1)
    before = judge.problems
    clear = judges.Judgement(np.array([1.0, 2.0, 3.0, 4.0]), 0.01, before, 1, 0.0)
    judge.adapt(clear)
    assert judge.problems == before
    judge.adapt(judges.Judgement(np.array([1.0, 1.001, 1.002, 1.003]), 0.01, before, 1, 0.0))
    assert judge.problems > before


def test_candidates_that_cannot_be_played_come_last():
    found = mb.learn("r + ln(a + r)", TWO, 10, effort=0.2)
    assert any(None in record["values"] for record in found.trace)
    assert math.isfinite(found.evaluation.mean_regret)
    with pytest.raises(mb.InputError, match="not a number"):
        mb.learn("r + a*ln(0 - n)", TWO, 10)


# Learning ----------------------------------------------------------------------------------------


def test_ten_plays_are_learned_to_the_optimum():
    found = mb.learn("power-1", TWO, 10)
    assert found.evaluation.mean_regret <= 0.64489
    assert found.stopped == "optimum reached"
    assert found.floor == pytest.approx(0.644881, abs=1e-6)
    again = mb.evaluate([found.policy], TWO, 10, method="exact")[0]
    assert again.mean_regret == found.evaluation.mean_regret
    assert found.comparison.ranking()[0].policy == found.policy.name


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
        ("ucb1", mb.Gaussian(arms=3), {"generations": 4}),
        ("ucb1", TWO, {"objective": "wins", "reference": "ucb1-tuned", "generations": 3}),
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
    judge = judges.Judge(task, "simulated", seed=8, training=judges.Training())
    candidate = space.policy(np.array([-0.77]))
    assert judge.judge([candidate], 0).values == judge.judge([candidate], 7).values


def test_the_reported_regret_is_measured_on_fresh_problems():
    found = mb.learn("ucb1", mb.Gaussian(arms=2), 20, generations=5)
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


# The trace -----------------------------------------------------------------------------------------


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
    for name, word in (("policy.txt", "ends in .json"), ("nowhere/policy.json", "does not exist")):
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
    found = mb.learn("ucb1", mb.Gaussian(arms=3), 10, generations=1)
    path = tmp_path / "policy.json"
    found.save(path)
    assert found.floor is None
    assert mb.policy(path.as_posix()).parameters == found.policy.parameters
    with pytest.raises(mb.InputError, match="exists"):
        found.save(path)
    found.save(path, force=True)


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
