"""One episode on a coarse clock: blocks of plays of one arm, while the clock stands still."""

from __future__ import annotations

from tests.naive.language import value
from tests.naive.policies import TIE, Play
from tests.naive.randomness import MASK32, WEYL, episode_word


class CoarsePlay(Play):
    """An episode in which rewards come as sums."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.plays = [0] * self.arms

    def receive_sum(self, arm: int, count: int, total: float) -> None:
        """Rewards of 0 and 1, whose squares are themselves."""
        self.plays[arm] += count
        self.totals[arm] += total
        self.squares[arm] += total

    def statistics(self, arm):
        plays, total, squares = self.counts[:, arm]
        n = plays + self.plays[arm]
        r = (total + self.totals[arm]) / n if n else 0.0
        return n, r, max((squares + self.squares[arm]) / n - r * r, 0.0) ** 0.5 if n else 0.0


def play_coarsely(tree, counts, horizon, seed, episode, growth, times, block_sum, each_once):
    """How often each arm is played; block_sum(arm, count, word, key) draws a sum of rewards."""
    arms = counts.shape[1]
    play = CoarsePlay(arms, horizon, episode_word(seed, episode, 0), counts)
    words = [episode_word(seed, episode, 1 + arm) for arm in range(arms)]

    def play_block(arm: int, count: int) -> None:
        word = (words[arm] + play.plays[arm] * WEYL) & MASK32
        play.receive_sum(arm, count, block_sum(arm, count, word, play.key))

    if each_once:
        for arm in range(arms):
            play_block(arm, 1)
    for turn in range(len(times) - 1):
        middle = (times[turn] + times[turn + 1] - 1) / 2
        block = 0
        while sum(play.plays) < times[turn + 1]:
            values = []
            for arm in range(arms):
                n, r, s = play.statistics(arm)
                moment = {"t": counts[0].sum() + middle, "h": horizon - middle, "K": arms}
                values.append(value(tree, {"n": n, "r": r, "s": s, **moment}))
            arm = play.best(values, attempt=turn + (block << 20), tie=TIE)
            count = max(1, int(growth * play.statistics(arm)[0]))
            play_block(arm, min(count, horizon - sum(play.plays)))
            block += 1
    return play.plays
