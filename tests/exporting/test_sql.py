"""Queries in six dialects: run by PostgreSQL, DuckDB and SQLite, and parsed and transpiled for the others."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import metabandit as mb
from metabandit.exporting import write
from metabandit.exporting.policy import read_exported
from metabandit.exporting.sql import DIALECTS
from metabandit.language import operators
from metabandit.policies import IndexPolicy
from tests import exported
from tests.databases import open_database
from tests.exporting.test_export import (
    EACH,
    HORIZON,
    POLICIES,
    PROGRAMS,
    STARTS,
    arms_tables,
    difference,
    has_infinite_part,
    machine,
    observed,
    power,
    refused_in_sql,
    with_exceptions,
)
from tests.exporting.test_export_text import learned as learned
from tests.tiers import some

RUN = ("sqlite", "duckdb", "postgresql")
OTHERS = tuple(name for name in DIALECTS if name not in RUN)
# Names that would end a text, a comment or an identifier, if a query held them.
NAMES = ["O'Brien", 'a "b"', "c;-- d", "`e`\\", "50 %s {0} :u", "ü", "", "SELECT"]


@pytest.fixture(params=RUN)
def database(request):
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    with open_database(request.param, server) as found:
        yield found


def query_of(policy, database, **options):
    return mb.export(policy, "sql", dialect=database.dialect, **options)


def queries(policies):
    """Policies that have a query."""
    return [policy for policy in policies if not refused_in_sql(policy)]


@pytest.mark.parametrize("batch", [None, 20])
def test_an_arm_without_rewards_may_have_nulls(database, batch):
    query = query_of("r + 3/(n + 2)", database, start="prior-counts:plays=2,sum=1", batch=batch)
    zeros = database.run(query, [("a", 10, 3.0), ("b", 0, 0.0), ("c", 8, 2.0)])
    assert database.run(query, [("a", 10, 3.0), ("b", None, None), ("c", 8, 2.0)]) == zeros


def test_the_index_is_that_of_the_machine(database):
    tables = list(arms_tables(3, 1 if database.dialect == "duckdb" else some(2, 4)))
    infinite = 0
    for policy in queries(POLICIES):
        query = query_of(policy, database, horizon=HORIZON)
        for table in tables:
            rows = [(arm, *row, 0.0) for arm, row in enumerate(table.tolist())]
            found = {row[0]: row[-1] for row in database.run(query, rows)}
            answer = np.array([found[arm] for arm in range(len(table))], dtype=float)
            state = observed(table, HORIZON)
            value = machine(policy, state[None])
            lost = has_infinite_part(policy.bound, state)
            error, same = difference(answer[~lost], value[~lost])
            assert same, policy.name
            assert error <= 1e-9, policy.name
            # What is infinite is so here; what is no number is NULL.
            assert not np.isfinite(answer[~np.isfinite(value)]).any(), policy.name
            endless = np.isinf(value) & ~np.isnan(answer)
            assert (answer[endless] == value[endless]).all(), policy.name
            infinite += endless.sum()
    assert infinite > 20


def test_names_zero_plays_infinite_and_equal_indices(database):
    counts = [[3, 1], [2, 0], [5, 4], [2, 0], [4, 4], [9, 1], [1, 1], [2, 2]]
    rows = [(name, *map(float, row)) for name, row in zip(NAMES, counts, strict=True)]

    def run(policy, rows, **options):
        return database.run(query_of(policy, database, **options), rows)

    found = run("1/r", rows)
    assert {row[0] for row in found} == set(NAMES)
    # Two means of 0 have an infinite index: they are first, and equal.
    assert {row[0] for row in found[:2]} == {NAMES[1], NAMES[3]}
    assert [row[-1] for row in found[:2]] == [math.inf] * 2
    # An index that is no number comes last.
    assert found[2][-1] == 9.0
    assert {row[0] for row in run("ln(r - 1/2)", rows)[:3]} == {NAMES[4], NAMES[6], NAMES[7]}
    assert run("ln(r - 1/2)", rows)[-1][-1] is None
    # No plays at all, and plays of some arms only.
    for policy in ("ucb1", "ucb1-tuned", "kl-ucb", "moss", "1/r", "eps_n-greedy", "ucb1-normal"):
        given = read_exported(policy, None, 100, play=True)
        u = 0.5 if given.random else None
        query = write(given, "sql", database.dialect)
        several = [(*row, row[2]) for row in rows]
        nothing = [(name, 0.0, 0.0, 0.0) for name in NAMES]
        found = database.run(query, nothing, u=u)
        assert {row[0] for row in found} == set(NAMES)
        assert all(row[1] == 0.0 for row in found)
        found = database.run(query, [*several[:5], *nothing[5:]], u=u)
        assert {row[0] for row in found[:3]} == set(NAMES[5:])
    # Equal indices: all arms alike share a batch evenly.
    alike = [(name, 3.0, 1.0, 1.0) for name in NAMES]
    for policy in ("ucb1", "r", "2", "1/(r - 1/3)"):
        found = run(policy, alike, batch=80)
        assert [row[1] for row in found] == [10] * 8, policy
    assert [row[1] for row in run("ucb1", nothing, batch=19)] == [3, 3, 3, 2, 2, 2, 2, 2]
    shares = dict(run("1/r", rows, batch=80))
    assert shares[NAMES[1]] == shares[NAMES[3]] == 40
    assert sum(shares.values()) == 80


BATCHED = [
    "ucb1", "ucb1:C=0.2", "ucb1-tuned", "moss", "kl-ucb", "ucb-v", "r + 3/(n + 2)", "r - w/(n + 1)",
    "r + sqrt(ln(h + 1))/(n + 1)", "r + sqrt(t)/n - s/9", "greedy",
]  # fmt: skip


def player_after(policy, seed, *, arms, waiting):
    """A player with continuous rewards, so that no two indices are equal; and its arms as rows."""
    rng = random.Random(seed)
    player = mb.policy(policy).player(arms, horizon=3000, rewards=(0, 1), seed=seed)
    for arm in range(arms):
        level = rng.uniform(0.2, 0.4)
        for _ in range(rng.choice([1, 3, 30, 200])):
            player.update(arm, level + 0.6 * rng.random())
    if waiting:
        for _ in range(rng.randrange(40)):
            player.select()
    known = player._by_name.values()
    rows = [
        (arm.name, arm.plays, arm.total, arm.spread + arm.total**2 / arm.plays, float(arm.open))
        for arm in known
    ]
    return player, rows


@pytest.mark.parametrize("policy", BATCHED)
def test_a_batch_is_what_the_player_selects(policy, database):
    waiting = "w" in policy.split("/")[0]
    for seed in range(6 if database.dialect == "sqlite" else 2):
        player, rows = player_after(policy, seed, arms=2 + seed, waiting=waiting)
        batch = (1, 20, 200)[seed % 3]
        query = query_of(policy, database, horizon=3000, batch=batch)
        found = dict(database.run(query, rows))
        if policy == "greedy":
            # Its index does not fall while plays wait: the whole batch is of one arm.
            assert sorted(found.values())[-1] == batch
        assert found == player.select(batch), (policy, seed)


def test_a_batch_before_every_arm_has_a_reward(database):
    """It is spread over all arms; after ten rewards per arm the index decides without them."""
    for seed, many in ((0, False), (1, True), (2, True)):
        rng = random.Random(seed)
        player = mb.policy("r - w/(n + 9)").player(4, rewards=(0, 1), seed=seed)
        for arm in (0, 2):
            for _ in range(30 if many else 3):
                player.update(arm, rng.random())
        if seed == 2:
            player.select(3)
        rows = [
            (arm.name, arm.plays, arm.total, arm.total, float(arm.open))
            for arm in player._by_name.values()
        ]
        query = query_of("r - w/(n + 9)", database, batch=21)
        assert dict(database.run(query, rows)) == player.select(21), seed


def test_starts_and_exceptions_of_batches(database):
    rng = np.random.default_rng(6)
    for start in [*STARTS, EACH]:
        plays = rng.integers(1, 9, 3)
        total = rng.uniform(0, 1, 3) * plays
        rows = [(arm, float(plays[arm]), total[arm], total[arm]) for arm in range(3)]
        found = database.run(
            query_of(mb.policy("ucb1-tuned", start=start), database, batch=50), rows
        )
        player = mb.policy("ucb1-tuned", start=start).player(3, rewards=(0, 1))
        for arm, n, x, y in rows:
            player.update(arm, plays=int(n), total=x, squares=y)
        assert dict(found) == player.select(50), start
    # Half of the plays are random ones, which are spread evenly; then the fewest plays come first.
    given = with_exceptions("r", "1/2", None)
    rows = [(0, 5.0, 1.0), (1, 5.0, 4.0), (2, 5.0, 2.0)]
    assert database.run(write(given, "sql", database.dialect, 60), rows) == [
        (0, 10),
        (1, 40),
        (2, 10),
    ]
    given = with_exceptions("r", None, "20")
    rows = [(0, 5.0, 1.0), (1, 25.0, 20.0), (2, 10.0, 2.0)]
    assert database.run(write(given, "sql", database.dialect, 30), rows) == [
        (0, 15),
        (1, 5),
        (2, 10),
    ]


@pytest.fixture(scope="module")
def shared(learned, tmp_path_factory):
    """A policy that was learned with a minimum share and batches."""
    content = json.loads(learned.read_text("utf-8"))
    content["policy"]["expression"] = content["learned"]["space"] = "r + a/(n + b)"
    content["learned"]["feedback"] = mb.Feedback(batch=10, min_share=0.1).to_dict()
    path = tmp_path_factory.mktemp("shared") / "policy.json"
    path.write_text(json.dumps(content), "utf-8")
    return str(path)


@pytest.fixture(scope="module")
def shared_arms():
    return [(0, 6.0, 2.0, 2.0, 3.0), (1, 4.0, 3.0, 3.0, 0.0), (2, 5.0, 1.0, 1.0, 1.0)]


def test_a_minimum_share_is_kept(database, shared, shared_arms):
    query = query_of(shared, database)
    numbers = [(place + 0.5) / 60 for place in range(60)]
    # Without squares, which this index does not read.
    rows = [(name, n, total, waiting) for name, n, total, _, waiting in shared_arms]
    columns = ("plays", "total", "waiting")
    chosen = [database.run(query, rows, columns, u=u)[0][0] for u in numbers]
    assert sorted(chosen.count(arm) for arm in range(3)) == [6, 6, 48]
    batch = dict(database.run(query_of(shared, database, batch=60), rows, columns))
    assert sum(batch.values()) == 60
    assert min(batch.values()) >= 6


@pytest.mark.parametrize("language", PROGRAMS)
def test_programs_keep_a_minimum_share(language, shared, shared_arms, tmp_path):
    _, plays, sums, squares, waiting = map(list, zip(*shared_arms, strict=True))
    cases = []
    for place in range(600):
        cases.append([0, (place + 0.5) / 600, 3, *plays, *sums, *squares, *waiting])
    programs = [mb.export(shared, language)]
    chosen = exported.run(language, programs, tmp_path, "choose-waiting", cases).tolist()
    assert sorted(chosen.count(arm) for arm in range(3)) == [60, 60, 480]
    share = replace(mb.load(shared).learned.feedback, pending="ignore")
    content = json.loads(Path(shared).read_text("utf-8"))
    content["learned"]["feedback"] = share.to_dict()
    (tmp_path / "ignores.json").write_text(json.dumps(content))
    assert "waiting" not in mb.export(str(tmp_path / "ignores.json"), language)


def test_the_share_is_in_the_formula(shared):
    assert r"With probability $K \cdot 0.1$" in mb.export(shared, "latex")


@pytest.mark.parametrize("language", PROGRAMS)
def test_waiting_plays_in_programs_are_those_of_the_player(language, tmp_path):
    given = ["r - w/(n + 1)", "r + sqrt(ln(t)/n) - w/99 + h/1e9", "r - w/9 + s/(n + w)"]
    policies = [mb.policy(item, start=start) for item in given for start in (STARTS[0], STARTS[1])]
    cases, expected = [], []
    for place, policy in enumerate(policies):
        for seed in range(6):
            rng = random.Random(seed)
            player = policy.player(4, horizon=400, rewards=(0, 1), seed=seed)
            if not policy.start.each_once:
                player.update_many((arm, 0.1 + 0.217 * arm) for arm in range(4))  # no ties
            for _ in range(60):
                arms = player._by_name.values()
                squares = [
                    arm.spread + arm.total**2 / arm.plays - (arm.plays - arm.rewarded) / 2
                    if arm.plays else 0.0
                    for arm in arms
                ]  # fmt: skip
                sums = [arm.total - (arm.plays - arm.rewarded) / 2 for arm in arms]
                rewarded = [arm.rewarded for arm in arms]
                cases.append(
                    [place, 0.3, 4, *rewarded, *sums, *squares, *(arm.open for arm in arms)]
                )
                expected.append(player.select())
                if rng.random() < 0.6:
                    # Of arm 3 no reward comes until the policy has to do without.
                    open_ones = [arm.name for arm in arms if arm.open and arm.name != 3]
                    if open_ones:
                        player.update(rng.choice(open_ones), 0.9 * rng.random() + 0.05)
                if seed == 5:
                    player.update(rng.randrange(3), 0.9 * rng.random() + 0.05)
    programs = [mb.export(policy, language, horizon=400) for policy in policies]
    sent = np.concatenate(cases)
    answers = exported.run(language, programs, tmp_path, "choose-waiting", sent)
    wrong = np.flatnonzero(answers != expected)
    assert not wrong.size, [(cases[number], answers[number], expected[number]) for number in wrong]


# Dialects that no test runs ----------------------------------------------------------------------


def has_query(policy, dialect):
    return DIALECTS[dialect].recursive or "kl_upper" not in operators(policy.tree)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sqlglot_parses_every_query(dialect):
    sqlglot = pytest.importorskip("sqlglot")
    reading = {"postgresql": "postgres"}.get(dialect, dialect)
    texts = [
        mb.export(policy, "sql", dialect=dialect, horizon=HORIZON, batch=batch)
        for policy in queries(POLICIES)[:: some(7, 1) if dialect == "bigquery" else some(20, 3)]
        if has_query(policy, dialect)
        for batch in (None, 500)
    ]
    texts += [
        mb.export(mb.policy("ucb1-tuned", start=EACH), "sql", dialect=dialect, batch=batch)
        for batch in (None, 500)
    ]
    texts += [
        write(with_exceptions("r", "min(1, K/t)", "ln(t)"), "sql", dialect, batch)
        for batch in (None, 9)
    ]
    for text in texts:
        statements = sqlglot.parse(text, read=reading, error_level=sqlglot.ErrorLevel.RAISE)
        found = [item for item in statements if item is not None]
        assert [item.key for item in found] == ["select"]


@pytest.mark.parametrize(
    "dialect",
    [pytest.param(name, marks=[] if name == "mysql" else [pytest.mark.slow]) for name in OTHERS],
)
def test_other_dialects_say_the_same_when_they_are_transpiled(dialect):
    sqlglot = pytest.importorskip("sqlglot")
    pytest.importorskip("duckdb")
    tables = [
        next(arms_tables(4, 1))[:6].tolist(),
        [[0.0, 0.0, 0.0]] * 6,  # no plays
        [[3.0, 1.0, 1.0], [0.0, 0.0, 0.0], [2.0, 2.0, 2.0]],  # no plays of one
        [
            [3.0, 1.0, 1.0],
            [2.0, 0.0, 0.0],
            [9.0, 5.0, 5.0],
            [4.0, 0.0, 0.0],
        ],  # 1/r is infinite twice
        [[3.0, 1.0, 1.0]] * 5,  # equal indices
    ]
    several = [
        "1/r",
        "ucb1-tuned",
        "moss",
        "1/(r - 1/3)",
        "r^n + exp(s*n)",
        "min(r, s) - w",
        power(1, "h", 1),
    ]
    several += ["kl-ucb"] if DIALECTS[dialect].recursive else []
    with open_database("duckdb") as database:
        for policy in several[:: some(2, 1)]:
            for batch in (None, 30):
                text = mb.export(policy, "sql", dialect=dialect, horizon=99, batch=batch)
                text = sqlglot.transpile(text, read=dialect, write="duckdb")[0]
                own = mb.export(policy, "sql", dialect="duckdb", horizon=99, batch=batch)
                for table in tables:
                    rows = [(NAMES[arm], *row, 0.0) for arm, row in enumerate(table)]
                    found, wanted = database.run(text, rows), database.run(own, rows)
                    assert [row[0] for row in found] == [row[0] for row in wanted]
                    for row, other in zip(found, wanted, strict=True):
                        same = row[-1] == (None if other[-1] is None else pytest.approx(other[-1]))
                        assert same or (
                            dialect == "mysql" and abs(row[-1]) > 1e308 and math.isinf(other[-1])
                        ), (policy, batch, found, wanted)


# What is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        ("ucb1", {"dialect": "oracle"}, "no SQL dialect 'oracle'.*postgresql"),
        ("kl-ucb", {"dialect": "bigquery"}, "kl_upper.*bigquery.*export to postgresql, sqlite"),
        ("kl-ucb", {"dialect": "snowflake"}, "kl_upper.*snowflake"),
        ("bayes-ucb", {"dialect": "duckdb"}, "beta_quantile"),
        ("ucb1", {"batch": 0}, "plays of a batch must be at least 1"),
        ("ucb1", {"batch": 2.5}, "plays of a batch"),
        ("ucb1", {"to": "python", "dialect": "sqlite"}, "dialect is for queries"),
        ("ucb1", {"to": "c", "batch": 5}, "batch is for queries"),
        ("ucb1", {"to": "latex", "batch": 5}, "batch is for queries"),
    ],
)
def test_what_has_no_query_is_refused(policy, options, message):
    with pytest.raises(mb.InputError, match=message):
        mb.export(policy, **{"to": "sql"} | options)


def test_an_operator_of_ones_own_is_in_every_dialect():
    def third(x):
        return x / 3.0

    mb.register_operator("sql_third", third, exports={"sql": "{0} / 3.0"})
    for dialect in DIALECTS:
        assert "/ 3.0" in mb.export(IndexPolicy("r + sql_third(n)"), "sql", dialect=dialect)
