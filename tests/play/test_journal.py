"""The journal of a player: what was acknowledged is never lost."""

from __future__ import annotations

import json
import os
import random
import signal
from functools import partial

import pytest

import metabandit as mb
from metabandit import files
from metabandit import journal as lines
from tests.forked import forked

TWO = mb.Bernoulli(arms=2)


def play(folder, say):
    player = mb.policy("ucb1-tuned").player(arms=3, seed=5, journal=folder / "plays.jsonl")
    say("begin", player.plays)
    for _ in range(1000):
        arm = player.select()
        player.update(arm, arm == 1)
        say(player.plays)


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path):
    journal = tmp_path / "plays.jsonl"
    rng = random.Random(1)
    acknowledged = 0
    for _ in range(20):
        with forked(play, tmp_path) as (process, said):
            first = said.readline().split()
            assert first[0] == "begin"
            # One more than was acknowledged may have been written.
            assert acknowledged <= int(first[1]) <= acknowledged + 1
            acknowledged = int(first[1])
            for _ in range(rng.randrange(60)):
                acknowledged = int(said.readline())
            os.kill(process, signal.SIGKILL)
            rest = said.read().split("\n")
            whole = [line for line in rest[:-1] if line]
            acknowledged = int(whole[-1]) if whole else acknowledged
    player = mb.load_player(journal)
    assert acknowledged <= player.plays <= acknowledged + 1
    # What is in the journal is one play after the other, none lost and none twice.
    lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    rewards = [line for line in lines[1:] if line[0] == "update"]
    assert len(rewards) == player.plays
    assert all(reward == (arm == 1) for _, arm, reward, _ in rewards)
    assert [item.name for item in tmp_path.iterdir()] == ["plays.jsonl"]


def test_half_a_line_at_the_end_is_dropped(tmp_path):
    journal = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(2, journal=journal)
    player.update(0, 1)
    player.close()
    with journal.open("ab") as file:
        file.write(b'["update", 0, ')
    player = mb.load_player(journal)
    assert player.plays == 1
    player.update(1, 1)
    player.close()
    player = mb.load_player(journal)
    assert [view.rewarded for view in player.indices()] == [1, 1]
    player.close()
    with pytest.raises(mb.InputError, match="is closed"):
        player.update(1, 1)


def test_a_journal_that_cannot_be_written_refuses_the_reward(tmp_path):
    journal = tmp_path / "plays.jsonl"
    player = mb.policy("ucb2").player(2, journal=journal)
    player.update_many([(0, 1), (1, 1)])
    state = player.to_dict()
    full = os.open("/dev/full", os.O_WRONLY)
    kept = os.dup(player._journal.file.fileno())
    os.dup2(full, player._journal.file.fileno())
    for refused in (player.select, partial(player.update, 0, 1), partial(player.retire, 0)):
        with pytest.raises(mb.InputError, match="cannot be written"):
            refused()
        player._journal.length = None
    os.dup2(kept, player._journal.file.fileno())
    os.close(kept)
    os.close(full)
    assert player.to_dict() == state
    player.update(0, 1)
    player.close()
    assert mb.load_player(journal).plays == 3


def test_one_writer_a_journal(tmp_path):
    journal = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(2, journal=journal)
    for _ in range(2):
        with pytest.raises(mb.InputError, match="another run is writing"):
            mb.load_player(journal)
        player.compact()
    player.close()
    mb.load_player(journal).close()


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"policy": "ucb1:C=1"}, "another policy"),
        ({"seed": 1}, "another seed"),
        ({"arms": 3}, "other arms"),
        ({"horizon": 7}, "another horizon"),
        ({"rewards": "binary"}, "other rewards"),
    ],
)
def test_a_journal_is_gone_on_with_by_the_same_player_only(tmp_path, changed, word):
    journal = tmp_path / "plays.jsonl"
    mb.policy("ucb1").player(2, journal=journal).close()
    before = journal.read_bytes()
    arguments = {"policy": "ucb1", "arms": 2} | changed
    policy = mb.policy(arguments.pop("policy"))
    with pytest.raises(mb.InputError, match=word):
        policy.player(**arguments, journal=journal)
    assert journal.read_bytes() == before


def test_a_long_journal_is_made_short_when_it_is_opened(tmp_path):
    journal = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(2, journal=journal)
    for _ in range(10_001):
        player.select()
    player.update_many([(0, 1)] * 5)
    state = player.to_dict()
    player.close()
    player = mb.load_player(journal)
    assert player.to_dict() == state
    assert len(journal.read_text("utf-8").splitlines()) == 1


def test_any_prior_leaves_a_journal_that_can_be_opened(tmp_path):
    class Own(mb.Prior):
        family, arms = mb.BERNOULLI, 2

        def draw(self, rng, problems):
            return rng.random((problems, 2, 1))

    past = tmp_path / "past.csv"
    past.write_text("0.1,0.2\n0.3,0.1\n", "utf-8")
    priors = (mb.Table([[0.1, 0.2], [0.3, 0.1]]), mb.prior(f"table:path={past}"), Own(), TWO, None)
    for name in ("thompson", "ucb2", "gittins", "ucb1"):
        for number, prior in enumerate(priors):
            journal = tmp_path / f"{name}{number}.jsonl"
            arguments = {"prior": prior, "horizon": 20, "rewards": "binary", "journal": journal}
            for plays in range(3):
                player = mb.policy(name).player(2, **arguments)
                assert player.plays == plays
                player.update(0, 1)
                player.close()
            player = mb.load_player(journal)
            player.select()
            player.close()


def reopened(tmp_path, policy, told, **arguments):
    """A player that was told rewards, compacted, closed and opened again."""
    journal = tmp_path / "plays.jsonl"
    player = policy.player(2, journal=journal, **arguments)
    player.update_many(told)
    state = player.to_dict()
    player.compact()
    player.close()
    again = mb.load_player(journal)
    again.close()
    assert again.to_dict() == state
    journal.unlink()


def test_sums_with_rounding_can_be_loaded(tmp_path):
    ucb1 = mb.policy("ucb1")
    reopened(tmp_path, ucb1, [(0, 1e9 / 3)] * 50, rewards=(0, 1e9 / 3))
    reopened(tmp_path, ucb1, [(0, 4999.99)] * 100_000, rewards=(0, 4999.99))
    reopened(tmp_path, ucb1, [(0, 1e149), (0, -1e149), (1, 0)], rewards=(None, None))
    for plays in (0.2, 1.2):
        begun = mb.policy("r + 1/n", start=f"prior-counts:plays={plays},sum={0.11 * plays}")
        reopened(tmp_path, begun, [(0, 0.11)])
    with pytest.raises(mb.InputError, match="at most 1e"):
        ucb1.player(2, rewards=(None, None)).update(0, 1e160)


def test_a_forked_process_cannot_write_the_journal(tmp_path):
    journal = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(2, journal=journal)
    player.update(0, 1)
    child = os.fork()
    if not child:
        refused = 0
        for operation in (player.select, partial(player.update, 0, 1), player.compact):
            try:
                operation()
            except mb.InputError as error:
                refused += "forked" in str(error)
        player.close()
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    player.update(1, 1)
    player.close()
    assert mb.load_player(journal).plays == 2


@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_in_the_journal_undoes_the_operation(tmp_path, monkeypatch, after):
    path = tmp_path / "plays.jsonl"
    player = mb.policy("ucb2:alpha=0.5").player(2, journal=path)
    player.update_many([(0, 1), (1, 1)])
    real = lines._write

    def interrupted(*given, **named):
        if after:
            real(*given, **named)
        raise KeyboardInterrupt

    for operation in (player.select, partial(player.update, 0, 1)) * 2:
        state = player.to_dict()
        monkeypatch.setattr(lines, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            operation()
        assert player.to_dict() == state
        monkeypatch.setattr(lines, "_write", real)
        player.select()
    monkeypatch.setattr(lines, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        player.update(0, 1)
    state = player.to_dict()
    player.close()
    again = mb.load_player(path)
    assert again.to_dict() == state


def test_a_failed_sync_does_not_count_after_a_restart(tmp_path, monkeypatch):
    path = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(2, journal=path)
    with monkeypatch.context() as patch:
        patch.setattr(
            os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(5, "I/O error"))
        )
        with pytest.raises(mb.InputError, match="I/O error"):
            player.update(0, 1)
    player.close()
    assert mb.load_player(path).plays == 0


def test_a_closed_player_leaves_the_journal_alone(tmp_path):
    path = tmp_path / "plays.jsonl"
    first = mb.policy("ucb1").player(2, journal=path)
    first.update(0, 1)
    first.close()
    second = mb.load_player(path)
    second.update(1, 1)
    with pytest.raises(mb.InputError, match="is closed"):
        first.compact()
    second.close()
    assert mb.load_player(path).plays == 2


def test_a_journal_that_cannot_be_made_short_is_opened_all_the_same(tmp_path, monkeypatch):
    path = tmp_path / "plays.jsonl"
    player = mb.policy("ucb1").player(2, journal=path)
    for _ in range(10_001):
        player.select()
    player.close()

    def full(*given, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lines, "_write", full)
    player = mb.load_player(path)
    assert player.selections == 10_001
    player.close()
    assert [item.name for item in tmp_path.iterdir()] == ["plays.jsonl"]


def test_a_journal_that_is_moved_or_deleted_counts_no_more(tmp_path):
    path, moved = tmp_path / "plays.jsonl", tmp_path / "moved.jsonl"
    player = mb.policy("ucb1").player(2, seed=1, journal=path)
    player.update(0, 1)
    path.rename(moved)
    for call in (partial(player.update, 0, 1), player.select, player.compact):
        with pytest.raises(mb.InputError, match="renamed, replaced or deleted"):
            call()
    # Another player begins where it was, and is left alone.
    other = mb.policy("ucb1").player(2, seed=2, journal=path)
    for _ in range(12):
        other.update(1, 0)
    with pytest.raises(mb.InputError, match="renamed"):
        player.compact()
    assert player.plays == 1
    player.close()
    other.close()
    assert mb.load_player(path).plays == 12
    assert mb.load_player(moved).plays == 1
    gone = mb.policy("ucb1").player(2, journal=tmp_path / "gone.jsonl")
    (tmp_path / "gone.jsonl").unlink()
    with pytest.raises(mb.InputError, match="deleted"):
        gone.update(0, 1)
    assert gone.plays == 0
    gone.close()
    # What is put back can be gone on with.
    player = mb.load_player(moved)
    moved.rename(path.with_name("there.jsonl"))
    with pytest.raises(mb.InputError, match="renamed"):
        player.update(0, 1)
    path.with_name("there.jsonl").rename(moved)
    player.update(1, 1)
    player.close()
    assert mb.load_player(moved).plays == 2


def states(folder):
    """A journal and a saved player that have seen a little of everything."""
    path = folder / "plays.jsonl"
    player = mb.policy("ucb2").player(["a", "b"], seed=3, journal=path)
    for reward in (0, 1, 1, 0, 1):
        player.update(player.select(), reward)
    player.select(3)
    player.add("c")
    player.cancel("a" if {v.arm: v.open for v in player.indices()}["a"] else "b")
    player.save(folder / "player.json")
    player.close()
    return path, folder / "player.json"


def flipped(content, bit):
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(
    "step", [pytest.param(23, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)]
)
def test_every_flipped_bit_is_noticed(tmp_path, kind, step, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # nothing crashes here
    path = states(tmp_path)[kind]
    content = path.read_bytes()
    mb.load_player(path).close()
    kept = path.read_bytes()
    assert kept == content
    for bit in range(0, 8 * len(content), step):
        with path.open("r+b") as file:  # in place, which takes less than a new file
            file.write(flipped(content, bit))
        with pytest.raises(mb.InputError):
            mb.load_player(path).close()
        assert path.stat().st_size == len(content)


def test_lines_that_are_lost_or_swapped_are_noticed(tmp_path):
    path, _ = states(tmp_path)
    first, *others = path.read_bytes().splitlines(keepends=True)
    for changed in (others[1:], [*others[:1], *others], [others[1], others[0], *others[2:]]):
        path.write_bytes(b"".join([first, *changed]))
        with pytest.raises(mb.InputError, match=r"line \d is damaged"):
            mb.load_player(path)


def play_and_save(folder, say):
    player = mb.policy("ucb1-tuned").player(arms=3, seed=5, journal=folder / "plays.jsonl")
    say("begin", player.plays)
    for number in range(100000):
        player.update(player.select(), 1)
        say(player.plays)
        if number % 3 == 0:
            player.compact()
        if number % 3 == 1:
            player.save(folder / "player.json")


def kill_often(folder, kills, seed):
    """Kill a service again and again; the updates that it acknowledged, and those in its journal."""
    rng = random.Random(seed)
    acknowledged = 0
    for _ in range(kills):
        with forked(play_and_save, folder) as (process, said):
            begin = int(said.readline().split()[1])
            assert acknowledged <= begin <= acknowledged + 1
            for _ in range(rng.randrange(2, 20)):
                acknowledged = int(said.readline())
            os.kill(process, signal.SIGKILL)
            whole = said.read().split("\n")[:-1]
            acknowledged = int(whole[-1]) if whole else acknowledged
        # What one that was killed in the middle of naming a file left is gone when the next has written.
        own = f".metabandit.{process}."
        left = {item.name for item in folder.iterdir() if not item.name.startswith(own)}
        assert left <= {"plays.jsonl", "player.json"}
    player = mb.load_player(folder / "plays.jsonl")
    player.compact()
    player.close()
    assert {item.name for item in folder.iterdir()} <= {"plays.jsonl", "player.json"}
    assert mb.load_player(folder / "player.json").plays <= player.plays
    return acknowledged, player.plays


def test_what_a_kill_left_between_two_calls_is_removed_unless_somebody_has_it(tmp_path):
    left, used = tmp_path / ".metabandit.1.1", tmp_path / ".metabandit.2.2"
    left.write_text("{}")
    other = files.lock_file(used)
    mb.policy("ucb1").player(2).save(tmp_path / "player.json")
    assert sorted(item.name for item in tmp_path.iterdir()) == [used.name, "player.json"]
    other.close()


@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_kills_while_compacting_and_saving_lose_nothing_and_leave_nothing(tmp_path, kills):
    acknowledged, plays = kill_often(tmp_path, kills, seed=1)
    assert acknowledged <= plays <= acknowledged + 1
