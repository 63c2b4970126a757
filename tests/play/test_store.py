"""Players that share a store: exact counts, whoever is killed; and the choices of a player with a journal."""

import multiprocessing
import os
import random
import subprocess
import sys

import pytest
from benchmarks.durability import (
    FORK,
    check_kills,
    check_many,
    check_restart,
    counts,
    make,
)

import metabandit as mb
from metabandit.play.store import Store
from tests.commands import call


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """A store of its own."""
    if request.param == "sqlite":
        address = f"sqlite:///{tmp_path / 'bandit.db'}"
    else:
        import psycopg

        server = request.getfixturevalue("postgres")
        name = f"store_{os.getpid()}_{random.randrange(10**9)}"
        with psycopg.connect(server.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        address = server.url.replace("/postgres?", f"/{name}?")
    Store(address).create()
    return address


# The same choices ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "refresh"), [("ucb1", 0.05), ("thompson", 0.0), ("r - w/(n + 1)", 0.0)]
)
def test_choices_are_those_of_a_player_with_a_journal(policy, refresh, url, tmp_path):
    """For the same sequence, with restarts, and with counts that are read before every choice."""
    arms = ["a", "b", "c"]
    options = {"seed": 7, "rewards": (0, 1), "min_share": 0.02, "horizon": 300}
    journal = mb.policy(policy).player(arms, journal=tmp_path / f"{refresh}.jsonl", **options)

    def start():
        return make(url, policy, experiment=f"{policy} {refresh}", refresh=refresh, **options)

    shared = start()
    rng, late = random.Random(3), []
    for step in range(50):
        arm = journal.select()
        assert shared.select() == arm
        late.append((arm, round(rng.random(), 3)))
        while late and rng.random() < 0.6:
            given = late.pop(rng.randrange(len(late)))
            journal.update(*given)
            shared.update(*given)
        if step % 20 == 15:
            shared.close()
            shared = start()
        if step == 30:
            assert journal.select(30) == shared.select(30)
            journal.update("b", plays=20, total=9.0, squares=5.0)
            shared.update("b", plays=20, total=9.0, squares=5.0)
    for one, two in zip(journal.indices(), shared.indices(), strict=True):
        assert one == two
    assert journal.probabilities() == shared.probabilities()


def test_the_simulator_makes_the_same_choices(url):
    """One seed, one sequence: the plays of a simulated episode (tests/play/test_twin.py says how)."""
    from tests.play.test_twin import TWO, play_both, twin_choice

    class Shared:
        """A policy whose players are in the store."""

        def __init__(self, policy):
            self.policy = policy

        def __getattr__(self, name):
            return getattr(self.policy, name)

        def player(self, arms, **options):
            return self.policy.player(arms, store=url, experiment="twin", **options)

    policy = mb.policy("ucb1-tuned")
    shared, twin = play_both(Shared(policy), twin_choice(policy, TWO, 40), TWO, 40, 5)
    assert shared == twin


# Several experiments, arms that come and go ---------------------------------------------------------


def test_processes_see_each_other(url):
    one, two = make(url, refresh=0.0), make(url, refresh=0.0)
    other = make(url, "thompson", experiment="other ' \" ; --", arms=[1, "1"])
    choice = one.choose()
    assert two.reward(choice.id, 0.5) is True
    assert one.reward(choice.id, 0.5) is False
    with pytest.raises(mb.InputError, match="no choice with the id"):
        other.reward(choice.id, 0.5)
    with pytest.raises(mb.InputError, match="has had the reward"):
        two.reward(choice.id, 0.25)
    one.add("d")
    two.update("d", 1.0)
    two.retire("a")
    assert one.arms == ("b", "c", "d") == two.arms
    with pytest.raises(mb.InputError, match="no arm 'e'"):
        one.update("e", 1.0)
    one.add("a")
    assert counts(one) == counts(two)
    assert one.plays == 2
    assert counts(other) == [(1, 0, 0.0, 0.0, 0), ("1", 0, 0.0, 0.0, 0)]
    many = two.choose(5)
    assert len({item.id for item in many}) == 5
    pairs = [(item.id, 0.5) for item in many]
    with pytest.raises(mb.InputError, match="no choice"):
        one.reward_many([*pairs, ("nobody", 1.0)])
    assert one.reward_many([*pairs, *pairs]) == 5
    assert two.reward_many(pairs) == 0
    two.indices()
    assert two.plays == 7
    assert sum(item[4] for item in counts(two)) == 0


def test_a_second_reward_replaces_the_first(url):
    player = make(url, on_duplicate="replace", refresh=0.0)
    plain = mb.policy("ucb1").player(["a", "b", "c"], seed=1, rewards=(0, 1))
    rng = random.Random(1)
    for _ in range(20):
        choice, arm = player.choose(), plain.select()
        assert choice.arm == arm
        first, value = rng.random(), rng.random()
        player.reward_many([(choice.id, first), (choice.id, value)])
        plain.update(arm, value)
    for one, two in zip(player.indices(), plain.indices(), strict=True):
        assert (one.mean, one.deviation) == pytest.approx((two.mean, two.deviation))
        assert (one.plays, one.open) == (two.plays, two.open)


class Clock:
    """The time that a player sees."""

    now = 1000.0

    def time(self):
        return self.now

    monotonic = time


@pytest.mark.parametrize("expired", [None, 0.0])
def test_choices_expire(url, expired, monkeypatch):
    from metabandit.play import shared

    clock = Clock()
    monkeypatch.setattr(shared, "time", clock)
    player = make(url, expire=60, expired=expired, refresh=0.0)
    choices = player.choose(3)
    player.reward(choices[0].id, 1.0)
    clock.now += 61
    last = player.choose()
    assert player.plays == (1 if expired is None else 3)
    assert sum(item[4] for item in counts(player)) == 1
    with pytest.raises(mb.InputError, match=r"expired without|had the reward 0"):
        player.reward(choices[1].id, 1.0)
    assert player.reward(last.id, 1.0) is True
    clock.now += 200
    player.choose()
    with pytest.raises(mb.InputError, match="no choice with the id"):
        player.reward(last.id, 1.0)


# What is refused -----------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused(url, tmp_path):
    make(url)
    cases = [
        ({"policy": "moss", "horizon": 9}, "was begun with another policy"),
        ({"seed": 2}, "another seed"),
        ({"arms": ["a", "b"]}, "other arms"),
        ({"experiment": None}, "give experiment="),
        ({"experiment": "x" * 201}, "1 to 200 letters"),
        ({"policy": "ucb2"}, "remembers more than counts"),
        ({"journal": tmp_path / "plays.jsonl"}, "a journal or a store"),
        ({"refresh": -1}, "from 0 to 3600"),
    ]
    for options, message in cases:
        with pytest.raises(mb.InputError, match=message):
            make(url, **options)
    with pytest.raises(mb.InputError, match="give store="):
        mb.policy("ucb1").player(2, experiment="one")
    with pytest.raises(mb.InputError, match="no journal to compact"):
        make(url).compact()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("bandit.db", "is not the URL"),
        ("mysql://localhost/x", "SQLite or PostgreSQL, not in mysql"),
        ("sqlite://", "a file that processes share"),
        (3, "named by a URL"),
    ],
)
def test_what_is_no_store_is_refused(given, message):
    with pytest.raises(mb.InputError, match=message):
        make(given)


def test_the_command_makes_the_tables(tmp_path):
    address = f"sqlite:///{tmp_path / 'bandit.db'}"
    with pytest.raises(mb.InputError, match="metabandit store init"):
        make(address)
    assert "tables are made" in call(f"store | init | {address}", tmp_path).stderr
    assert "tables are there" in call(f"store | init | {address}", tmp_path).stderr
    make(address).update("a", 1.0)
    listed = call(f"store | list | {address}", tmp_path)
    assert listed.returncode == 0
    assert "one" in listed.stdout
    done = call(f"store | destroy | {address}", tmp_path)
    assert done.returncode == 2
    import sqlite3

    with sqlite3.connect(tmp_path / "bandit.db") as connection:
        connection.execute("UPDATE metabandit_schema SET version = 9")
    with pytest.raises(mb.InputError, match="tables of version 9"):
        make(address)


def test_a_store_that_cannot_be_reached_says_so(tmp_path):
    away = f"postgresql+psycopg://nobody@/x?host={tmp_path}"
    with pytest.raises(mb.StoreError, match=r"does not answer.*Try again"):
        make(away)
    done = call(f"store | init | {away}", tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_play_without_a_store_imports_no_database():
    program = (
        "import sys, metabandit as mb; p = mb.policy('thompson').player(2); c = p.choose(); "
        "p.reward(c.id, 1); assert not {'sqlalchemy', 'numpy', 'numba', 'psycopg'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# Many processes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
def test_eight_processes_count_exactly(url):
    check_many(url, 40, 20)


def test_workers_that_are_killed_lose_nothing(url):
    check_kills(url, 1, 8)


def test_play_goes_on_after_a_restart_of_the_server():
    from tests.databases import postgres_server

    with postgres_server() as server:
        Store(server.url).create()
        check_restart(server, 15)
        player = make(server.url, refresh=0.0)
        choices = player.choose(5)
        player.reward(choices[0].id, 1.0)
        server.stop("immediate")
        for attempt in (player.select, player.choose, lambda: player.reward(choices[1].id, 0.5)):
            with pytest.raises(mb.StoreError, match=r"does not answer.*Try again"):
                attempt()
        server.start()
        assert player.reward(choices[1].id, 0.5) is True
        assert player.reward(choices[0].id, 1.0) is False
        player.select()
        player.choose()
        assert player.plays == 2
        assert sum(item[1] for item in counts(player)) == 2


def _play_forked(player, pipe):
    arms = [player.select() for _ in range(10)]
    player.update("a", 1.0)
    pipe.send(arms)


def test_a_child_process_has_its_own_connection(url):
    player = make(url, "thompson", refresh=0.0)
    for arm in player.arms:
        player.update(arm, 0.5)
    player.select()
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = FORK.Process(target=_play_forked, args=(player, theirs))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert len(ours.recv()) == 10
    player.update("a", 1.0)
    assert [item[1] for item in counts(player)] == [3, 1, 1]


def test_without_sqlalchemy_a_store_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    for name in ("store", "experiment"):
        monkeypatch.delitem(sys.modules, f"metabandit.play.{name}", raising=False)
    with pytest.raises(mb.InputError, match=r"metabandit\[store\]"):
        mb.policy("ucb1").player(["a", "b"], store="sqlite:///bandit.db", experiment="one")
