"""Exported programs against the machine and an obvious chooser, in the interpreters they are for."""

import math
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import metabandit as mb
from metabandit.exporting import TARGETS, write
from metabandit.exporting.policy import read_exported
from metabandit.language import Apply, operators, parse, text
from metabandit.language.operators import OPERATORS
from metabandit.language.values import evaluate_tree
from metabandit.policies import CATALOGUE, IndexPolicy
from metabandit.policies.power import power_tree, weight_names
from tests import exported
from tests.kernels.test_machine import Slow, run_machine
from tests.language.test_text import DIGITS, listed, trees
from tests.tiers import some

PROGRAMS = ("python", "javascript", "c")
HORIZON = 30_000
NO_JAVASCRIPT = "normal_optimist"  # it needs the normal distribution, which JavaScript has not
FORMULAS = listed(
    """r + n | r - s | r*t | r/n | 1/n | -r | n^0.3 | r^2 | (r - 1/2)^2 | r^n | s^(h/t) | min(r, s)
    | max(r, s) | sqrt(n) | ln(n) | exp(r) | abs(r - s) | 2 | K | -(-r) | r - -n | -(r - s) - (s - r)
    | kl_upper(s, 1/n) | kl_upper(r, 3/n) + kl_upper(s, ln(t)/n) | kl_upper(r, kl_upper(s, 1/n)/n)
    | beta_quantile(1/t, n, s + 2) | beta_quantile(1 - 1/(h + 1), r*n + 1/2, n - r*n + 1/2)
    | beta_quantile(r, s, r + 1/50) | r + normal_quantile(1 - 1/(n + 1))/n
    | beta_optimist(1 - 1/(n + 1), r*n + 1, n - r*n + 1) | r + 3/(n + 2) | 1e-7*t + 12345678901234567890*s | exp(t)*r | 1/(r - r)
    | min(1, ln(r - 9)) | max(sqrt(0 - n), 1) | exp(exp(n)) - h | r*(n/(s - t)) | r/(n*t) | 1/(1/n)
    | r + w/(n + 1) | difference(r + 1/n, r) + s | (r + s)*(r + s) | (0 - 2)^n | sqrt(r) + sqrt(sqrt(r) + s)*sqrt(ln(t)/n) + ln(t)/n"""
)


def power(degree, v1, seed, start=None):
    weights = np.random.default_rng(seed).normal(size=(degree + 1) ** 4)
    weights[3] = 0.0
    values = dict(zip(weight_names(degree), weights.tolist(), strict=True))
    return IndexPolicy(
        power_tree(degree, v1), parameters=values, start=start, name=f"power-{degree}"
    )


def within(degree):
    """A polynomial inside of an expression, of values that are not those of Power-P."""
    weights = ", ".join(f"{number:.3f}" for number in np.linspace(0.1, 1.0, (degree + 1) ** 4))
    return IndexPolicy(f"r + 2 * polynomial(ln(t), 1/n, r*s, 0.5, {weights})")


def catalogue():
    policies = [
        mb.policy(name)
        for name, entry in CATALOGUE.items()
        if entry.is_index and entry.rate is entry.needed is None
    ]
    return [*policies, mb.policy("kl-ucb:c=3"), mb.policy("bayes-ucb:c=2.5")]


POLICIES = [
    *catalogue(),
    *(power(degree, v1, degree) for degree in (1, 2) for v1 in "th"),
    power(3, "h", 3),
    within(1),
    within(2),
    *(IndexPolicy(formula) for formula in FORMULAS),
]


def draw_states(seed, moments=40, lanes=50):
    """States as play meets them, and beyond: rows r, s, n, t, h, K, w, a block for each moment."""
    rng = np.random.default_rng(seed)
    states = np.empty((moments, lanes, 7))
    states[..., 0] = rng.choice([0.0, 1.0, 0.5, np.nan], states.shape[:2], p=[0.05, 0.05, 0.1, 0.8])
    states[..., 0] = np.where(
        np.isnan(states[..., 0]), rng.uniform(size=states.shape[:2]), states[..., 0]
    )
    states[..., 1] = (
        0.5 * rng.uniform(size=states.shape[:2]) * (rng.uniform(size=states.shape[:2]) < 0.9)
    )
    states[..., 2] = np.floor(10 ** rng.uniform(0, 4, states.shape[:2]))
    states[..., 3] = np.floor(10 ** rng.uniform(0.31, 5, (moments, 1)))
    states[..., 4] = np.floor(10 ** rng.uniform(0, 4, (moments, 1)))
    states[..., 5] = rng.integers(2, 20, (moments, 1))
    states[..., 6] = np.minimum(rng.integers(0, 9, states.shape[:2]), states[..., 2])
    return states


def machine(policy, states):
    """The index of every state, by the machine in float64."""
    values = []
    for block in states:
        lanes = dict(zip("rsnw", block[:, [0, 1, 2, 6]].T, strict=True))
        moment = dict(zip("thK", block[0, 3:6].tolist(), strict=True))
        values.append(run_machine(policy.bound, lanes, moment, float))
    return np.concatenate(values)


def difference(values, expected):
    """The largest difference relative to max(1, |value|), and whether the same ones are finite."""
    finite = np.isfinite(expected)
    same = np.array_equal(finite, np.isfinite(values))
    error = np.abs(values[finite] - expected[finite]) / np.maximum(1.0, np.abs(expected[finite]))
    return error.max(initial=0.0), same


def test_every_operator_is_in_some_formula():
    known = {
        part.operator
        for policy in POLICIES
        for part in parts(policy.tree)
        if isinstance(part, Apply)
    }
    built_in = {name for name, operator in OPERATORS.items() if operator.own is None}
    assert known == built_in - {NO_JAVASCRIPT}


def test_what_javascript_lacks_is_refused_in_words():
    policy = IndexPolicy(f"r + {NO_JAVASCRIPT}(1 - 1/(h + 1))/n")
    with pytest.raises(mb.InputError, match=r"normal_optimist cannot be translated to javascript"):
        mb.export(policy, "javascript", horizon=HORIZON)


@pytest.fixture(scope="module")
def expected():
    states = draw_states(1)
    return states, [machine(policy, states) for policy in POLICIES]


@pytest.mark.parametrize("language", PROGRAMS)
def test_the_index_is_that_of_the_machine(language, expected, tmp_path):
    states, values = expected
    programs = [mb.export(policy, language, horizon=HORIZON) for policy in POLICIES]
    answers = exported.run(language, programs, tmp_path, "index", states).reshape(len(POLICIES), -1)
    for policy, answer, value in zip(POLICIES, answers, values, strict=True):
        error, same = difference(answer, value)
        assert same, policy.name
        assert error <= 1e-12, policy.name


def arms_tables(seed, count):
    """Tables of arms with plays, sums and sums of squares; every arm was played."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        arms = int(rng.integers(2, 40))
        plays = np.floor(10 ** rng.uniform(0, rng.uniform(0.4, 4), arms))
        means = rng.choice([0.0, 1.0, rng.uniform()], arms) * rng.uniform(0.5, 1, arms)
        sums = np.round(means * plays, 2)
        squares = sums**2 / plays + rng.uniform(0, 0.3, arms) * plays
        yield np.stack([plays, sums, squares], axis=1)


def observed(table, horizon):
    """The state of each arm of a table: rows r, s, n, t, h, K, w; no play waits."""
    n, sums, squares = table.T[:3]
    r = sums / n
    s = np.sqrt(np.maximum(squares / n - r * r, 0.0))
    moment = [n.sum(), max(horizon - n.sum(), 1.0), len(n)]
    return np.column_stack([r, s, n, np.tile(moment, (len(n), 1)), np.zeros(len(n))])


def parts(tree):
    yield tree
    for operand in tree.operands if isinstance(tree, Apply) else ():
        yield from parts(operand)


def has_infinite_part(tree, state):
    """Where some part of the expression is no finite number: SQLite has NULL there."""
    variables = dict(zip("rsnthKw", state.T, strict=True))
    found = np.zeros(len(state), bool)
    for part in parts(tree):
        found |= ~np.isfinite(np.broadcast_to(evaluate_tree(part, variables), len(state)))
    return found


def refused_in_sql(policy):
    """The operators of a policy that SQL has no text for."""
    return [name for name in operators(policy.tree) if "sql" in OPERATORS[name].refused]


def check_sql(policy, tables):
    """Compare with the machine; the largest difference, or None if the query is refused."""
    if refused := refused_in_sql(policy):
        with pytest.raises(mb.InputError, match=rf"({'|'.join(refused)}).*javascript"):
            mb.export(policy, "sql", horizon=HORIZON)
        return None
    query = mb.export(policy, "sql", horizon=HORIZON)
    worst = 0.0
    for table, rows in zip(tables, exported.run_sql(query, tables), strict=True):
        state = observed(table, HORIZON)
        value = machine(policy, state[None])
        arms = [row[0] for row in rows]
        answer = np.full(len(table), np.nan)
        answer[arms] = [math.nan if row[-1] is None else row[-1] for row in rows]
        lost = has_infinite_part(policy.bound, state)
        assert not np.isfinite(answer[~np.isfinite(value)]).any(), policy.name
        error, same = difference(answer[~lost], value[~lost])
        assert same, policy.name
        assert error <= 1e-9, policy.name
        ordered = [row[-1] for row in rows if row[-1] is not None]
        assert ordered == sorted(ordered, reverse=True)
        worst = max(worst, error)
    return worst


def test_the_index_of_sql_is_that_of_the_machine():
    tables = list(arms_tables(2, some(4, 12)))
    errors = [check_sql(policy, tables) for policy in POLICIES]
    assert sum(error is not None for error in errors) > 40


@settings(deadline=None, max_examples=some(1, 2), suppress_health_check=list(HealthCheck))
@given(
    st.lists(trees(DIGITS | st.floats(0.001, 100)), min_size=25, max_size=25), st.integers(0, 99)
)
@example([parse("beta_quantile(r, h, 0.5)"), parse("kl_upper(r - s, ln(ln(n)))")], 1)
@example([parse("r^s^n - (2 - (n - t))"), parse("(r/(s*n))/(t/h)"), parse("-(1/n) - -(r*s)")], 2)
@example([parse("1/(1/(r - r))"), parse("min(1/s, K)"), parse("n^-n"), parse("exp(-n)^0")], 3)
def test_any_formula_is_what_the_machine_computes(tmp_path_factory, several, seed):
    table = next(arms_tables(seed, 1))
    count = len(table)
    state = observed(table, HORIZON)[None]
    policies = [IndexPolicy(tree) for tree in several if NO_JAVASCRIPT not in operators(tree)]
    answers = {}
    for language in PROGRAMS:
        if shutil.which({"javascript": "node", "c": "gcc"}.get(language, sys.executable)):
            programs = [mb.export(policy, language, horizon=HORIZON) for policy in policies]
            folder = tmp_path_factory.mktemp("formulas")
            answer = exported.run(language, programs, folder, "index", state)
            answers[language] = answer.reshape(len(policies), -1)
    variables = dict(zip("rsnthKw", state[0].T, strict=True))
    for place, policy in enumerate(policies):
        value = machine(policy, state)
        slow = Slow(1e-14, 1e290, count, seed)
        with np.errstate(all="ignore"):
            samples = slow.value(policy.tree, variables)
            spread = np.abs(samples - samples[0]).max(axis=0)
        # Where rounding can change more than the third digit there is nothing to compare.
        sure = np.isfinite(samples).all(axis=0) & ~slow.unsure
        sure &= spread <= 1e-3 * np.abs(samples[0])
        lost = ~np.isfinite(samples).any(axis=0) & ~slow.unsure
        for language, answer in answers.items():
            room = 1e-12 * np.maximum(1.0, np.abs(value[sure])) + 10 * spread[sure]
            close = np.abs(answer[place, sure] - value[sure]) <= room
            assert close.all(), (language, text(policy.tree), answer[place, sure][~close])
            assert not np.isfinite(answer[place, lost]).any(), (language, text(policy.tree))
        if not refused_in_sql(policy):
            rows = exported.run_sql(mb.export(policy, "sql", horizon=HORIZON), [table])[0]
            answer = np.array([math.nan if row[-1] is None else row[-1] for row in sorted(rows)])
            sure &= ~has_infinite_part(policy.tree, state[0])
            room = 1e-9 * np.maximum(1.0, np.abs(value[sure])) + 10 * spread[sure]
            assert (np.abs(answer[sure] - value[sure]) <= room).all(), ("sql", text(policy.tree))
            assert not np.isfinite(answer[lost]).any(), ("sql", text(policy.tree))


STARTS = [
    None,
    "prior-counts:plays=2,sum=1,squares=1",
    "prior-counts:plays=0.5,sum=0.2,squares=0.1",
]
EACH = "prior-counts:plays=1:2:3,sum=0.5:1:1,squares=0.5:1:1"


def twin(policy, horizon, plays, sums, squares, u, rate=None, needed=None):
    """The arm to play, as the definition says; `rate` and `needed` are expressions."""
    start = policy.start
    if start.each_once and 0 in plays:
        return list(plays).index(0)
    zeros = [0.0] * 3
    more = zeros if start.each_once else [start.plays, start.reward_sum, start.square_sum]
    n, total, squared = (
        np.array(row) + np.array(extra)
        for row, extra in zip((plays, sums, squares), more, strict=True)
    )
    r = total / n
    s = np.sqrt(np.maximum(squared / n - r * r, 0.0))
    state = {"r": r, "s": s, "n": n, "t": n.sum(), "h": max(horizon - sum(plays), 1), "K": len(n)}
    if needed is not None and n.min() < float(evaluate_tree(parse(needed), state)):
        behind = np.flatnonzero(n == n.min())
        return behind[min(math.floor(u * len(behind)), len(behind) - 1)]
    if rate is not None:
        chance = float(evaluate_tree(parse(rate), state))
        if u < chance:
            return math.floor(u / chance * len(n))
        u = (u - chance) / (1 - chance)
    values = np.broadcast_to(evaluate_tree(policy.bound, state), len(n))
    if np.isnan(values).any():
        return -1
    best = values.max()
    slack = 1e-9 * abs(best) if math.isfinite(best) else 0.0
    tied = [arm for arm, value in enumerate(values) if value >= best - slack]
    return tied[min(math.floor(u * len(tied)), len(tied) - 1)]


# How often any arm is played instead of the index, and how many plays every arm has first.
EXCEPTIONS = [
    ("min(1, 2*K/(t + 1))", None),
    (None, "2*ln(t)"),
    ("0.3", "ln(t) + sqrt(h)/9"),
    ("min(1, kl_upper(1/K, ln(t)/t))", "max(2, ln(t)*ln(t))"),
]


@pytest.mark.parametrize("language", PROGRAMS)
@pytest.mark.parametrize("name", ["eps_n-greedy:c=2,d=0.7", "ucb1-normal"])
def test_the_catalogue_is_exported_with_its_exceptions(name, language, tmp_path):
    """Declared once: the exported program plays as the definition says."""
    policy, rng = mb.policy(name), np.random.default_rng(3)
    decision = policy.plan(mb.Bernoulli(arms=2), 50).decision
    rate, needed = (
        None if item is None else text(item)
        for item in (decision.bound_rate, decision.bound_needed)
    )
    sent, expected = [], []
    for _ in range(200):
        plays = rng.integers(1, 60, 2).astype(float)
        sums, u = np.floor(rng.uniform(0, 1, 2) * (plays + 1)), rng.uniform()
        sent.append([0, u, 2, *plays, *sums, *sums])
        lists = plays.tolist(), sums.tolist(), sums.tolist()
        expected.append(twin(policy, 50, *lists, u, rate, needed))
    programs = [mb.export(policy, language, horizon=50)]
    answers = exported.run(language, programs, tmp_path, "choose", np.concatenate(sent))
    assert (answers == expected).all()


def test_a_policy_that_needs_no_play_has_no_program():
    with pytest.raises(mb.InputError, match="before any arm was played"):
        mb.export("uniform", "python")


def with_exceptions(policy, rate, needed):
    given = read_exported(policy, None, 12, play=True)
    return replace(given, rate=rate and parse(rate), needed=needed and parse(needed))


@pytest.fixture(scope="module")
def exceptions():
    """Programs with a rate or needed plays; states, random numbers, and what is played there."""
    rng = np.random.default_rng(8)
    made, cases, expected = [], [], []
    for formula, start in [("ucb1-tuned", None), ("r + 1/n", STARTS[1]), ("moss", EACH)]:
        policy = mb.policy(formula, start=start)
        for rate, needed in EXCEPTIONS:
            for _ in range(some(60, 250)):
                arms = 3 if start == EACH else int(rng.integers(2, 7))
                plays = rng.integers(0 if rng.random() < 0.2 else 1, 5, arms).astype(float)
                sums = np.floor(rng.uniform(0, 1, arms) * (plays + 1))
                u = rng.choice([0.0, rng.uniform(), rng.uniform(), 1 - 2**-53])
                cases.append((len(made), u, plays, sums))
                lists = plays.tolist(), sums.tolist(), sums.tolist()
                expected.append(twin(policy, 12, *lists, u, rate, needed))
            made.append((policy, with_exceptions(policy, rate, needed), rate, needed))
    return made, cases, np.array(expected)


@pytest.mark.parametrize("language", PROGRAMS)
def test_random_and_needed_plays_are_as_the_definition_says(language, exceptions, tmp_path):
    made, cases, expected = exceptions
    programs = [write(item[1], language) for item in made]
    sent = np.concatenate([[which, u, len(p), *p, *s, *s] for which, u, p, s in cases])
    answers = exported.run(language, programs, tmp_path, "choose", sent)
    wrong = answers != expected
    assert not wrong.any(), (wrong.sum(), answers[wrong][:9], expected[wrong][:9])


def test_random_and_needed_plays_of_sql(exceptions):
    made, cases, expected = exceptions
    answers = []
    for place, item in enumerate(made):
        given = [(u, plays, sums) for which, u, plays, sums in cases if which == place]
        tables = [np.stack([plays, sums, sums], axis=1) for _, plays, sums in given]
        # The cases of a policy stand together.
        answers += exported.run_sql(write(item[1], "sql"), tables, [u for u, _, _ in given])
    at_random = 0
    for (which, u, plays, sums), arm, rows in zip(cases, expected, answers, strict=True):
        policy, _, rate, needed = made[which]
        first = rows[0][0]
        if policy.start.each_once and 0 in plays:
            assert plays[first] == 0
            continue
        t = plays.sum() + (
            0.0 if policy.start.each_once else np.sum(policy.start.plays + 0 * plays)
        )
        moment = {"t": t, "h": max(12 - plays.sum(), 1), "K": len(plays)}
        more = 0.0 if policy.start.each_once else policy.start.plays
        fewest = (plays + np.array(more)).min()
        behind = needed is not None and fewest < evaluate_tree(parse(needed), moment)
        if rate is not None and not behind and u < evaluate_tree(parse(rate), moment):
            assert first == arm
            at_random += 1
        else:
            # Equals come in any order.
            lists = plays.tolist(), sums.tolist(), sums.tolist()
            numbers = (np.arange(12) + 0.5) / 12  # each of up to 6 equals is met
            assert any(first == twin(policy, 12, *lists, v, None, needed) for v in numbers)
    assert at_random > some(25, 100)


def test_the_head_says_when_the_index_does_not_decide():
    policy = with_exceptions("ucb1", "min(1, K/t)", "ln(t)")
    for to in TARGETS:
        written = " ".join(write(policy, to).split())
        if to == "latex":
            assert r"With probability $\min(1, \frac{K}{t})$ any arm is played" in written
            assert (
                r"While some arm has fewer than $\ln(t)$ plays, the arm with the fewest" in written
            )
            assert "number of arms" in written
        else:
            assert "any arm with probability min(1, K/t)" in written
            assert "ln(t) plays of every arm before the index" in written


def test_a_rate_that_is_no_number_is_an_error(tmp_path):
    given = [
        with_exceptions("ucb1", "ln(1 - K)", None),
        with_exceptions("ucb1", None, "sqrt(K - t)"),
    ]
    for language in PROGRAMS:
        folder = tmp_path / language
        folder.mkdir()
        programs = [write(policy, language) for policy in given]
        cases = [[which, 0.5, 2, 3, 4, 1, 1, 1, 1] for which in (0, 1)]
        answers = exported.run(language, programs, folder, "choose", np.concatenate(cases))
        assert answers.tolist() == [-1, -1], language


@pytest.fixture(scope="module")
def choices():
    rng = np.random.default_rng(4)
    names = [*CATALOGUE, "r + 3/(n + 2)", "ln(r - 1/3)", "1/r", "2", "r - 1/r"]
    formulas = [item for item in names if item not in CATALOGUE or CATALOGUE[item].start is None]
    policies = [mb.policy(name, start=start) for name in formulas for start in [*STARTS, EACH]]
    policies += [power(1, "h", 1, start) for start in [*STARTS, EACH]]
    cases, expected = [], []
    for place, policy in enumerate(policies):
        for _ in range(40):
            arms = 3 if isinstance(policy.start.plays, tuple) else int(rng.integers(2, 7))
            # Few plays, so that there are ties and arms without any.
            plays = rng.integers(0 if rng.random() < 0.3 else 1, 4, arms).astype(float)
            sums = np.floor(rng.uniform(0, 1, arms) * (plays + 1))
            u = rng.choice([0.0, rng.uniform(), 1 - 2**-53])
            cases += [[place, u, arms], plays, sums, sums]
            expected.append(twin(policy, 12, plays.tolist(), sums.tolist(), sums.tolist(), u))
    return policies, np.concatenate(cases), np.array(expected)


@pytest.mark.parametrize("language", PROGRAMS)
def test_choose_is_what_the_definition_says(language, choices, tmp_path):
    policies, cases, expected = choices
    assert (expected == -1).sum() > 20
    assert (expected == 0).mean() < 0.6
    programs = [mb.export(policy, language, horizon=12) for policy in policies]
    answers = exported.run(language, programs, tmp_path, "choose", cases)
    wrong = answers != expected
    assert not wrong.any(), (wrong.sum(), answers[wrong][:9], expected[wrong][:9])


@pytest.mark.parametrize("start", [*STARTS, EACH])
def test_the_first_row_of_sql_is_the_arm_to_play(start):
    rng = np.random.default_rng(5)
    policy = mb.policy("ucb1-tuned", start=start)
    tables = []
    for _ in range(40):
        plays = rng.integers(0, 5, 3).astype(float)
        sums = np.floor(rng.uniform(0, 1, 3) * (plays + 1))
        tables.append(np.stack([plays, sums, sums], axis=1))
    for table, rows in zip(tables, exported.run_sql(mb.export(policy, "sql"), tables), strict=True):
        ways = {twin(policy, 12, *table.T.tolist(), u) for u in np.linspace(0, 0.999, 7)}
        if start is None and 0 in table[:, 0]:
            ways = set(np.flatnonzero(table[:, 0] == 0))
        assert rows[0][0] in ways


def test_the_sqlite_command_runs_the_query():
    if shutil.which("sqlite3") is None:
        pytest.skip("sqlite3 is not installed")
    table = "CREATE TABLE arms(arm, plays, total, squares); INSERT INTO arms VALUES (0,3,1,1),(1,5,4,4);"
    done = subprocess.run(
        ["sqlite3"],
        input=table + mb.export("kl-ucb", "sql"),
        capture_output=True,
        text=True,
        check=False,
    )
    if "no such function: ln" in done.stderr:
        pytest.skip("this sqlite3 has no mathematical functions")
    assert [line.split("|")[0] for line in done.stdout.splitlines()] == ["1", "0"], done.stderr
