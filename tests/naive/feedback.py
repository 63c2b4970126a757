"""Feedback, literally: episodes in which rewards come later, and batches in fractions."""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import cache

import numpy as np

from tests.naive.episodes import quantile
from tests.naive.policies import Play
from tests.naive.randomness import MASK32, WEYL, below, draw_bits, episode_word, noise_bits, unit

DELAY = 0x3C6EF372


class WaitingPlay(Play):
    """What a policy sees while rewards are still to come: `waiting[arm]` plays have had none."""

    def __init__(self, arms, horizon, key, counts, counted) -> None:
        super().__init__(arms, horizon, key, counts)
        self.waiting = [0] * arms
        self.counted = counted
        self.blank = None  # what an arm without a reward reads as its mean

    @property
    def step(self) -> int:
        return super().step + sum(self.waiting)

    def statistics(self, arm):
        n, r, s = super().statistics(arm)
        if not n and self.blank is not None:
            r = self.blank
        return n + (self.waiting[arm] if self.counted else 0), r, s

    def waits(self, arm) -> int:
        return self.waiting[arm] if self.counted else 0


def comes_after(feedback, made: int, horizon: int, delay_uniform: float) -> int:
    """The number of plays after which the reward of play number `made` (from 1) is known."""
    delay = feedback.delay
    if isinstance(delay, str):
        mean = float(delay.partition("=")[2])
        delay = math.floor(math.log(delay_uniform) / math.log(mean / (1 + mean)))
    ends = feedback.ends(horizon)
    place = bisect_left(ends, made + delay)
    return ends[place] if place < len(ends) else horizon + 1


def wanted_arm(play: WaitingPlay) -> int | None:
    """The arm that is played because some arm has had no reward; None if the policy decides."""
    had = [len(rewards) for rewards in play.rewards]
    if min(had) > 0:
        return None
    played = [n + w for n, w in zip(had, play.waiting, strict=True)]
    if play.counted and min(played) > 0 and sum(had) >= 10 * play.arms:
        play.blank = sum(play.totals) / sum(had)
        return None
    return min(range(play.arms), key=lambda arm: (play.waiting[arm], had[arm] > 0, arm))


def play_with_feedback(choose, plan, family, parameters, horizon, seed, episode, feedback):
    """The arms played in an episode, in order; choose(play) sees what has come."""
    arms = len(parameters)
    key = episode_word(seed, episode, 0)
    play = WaitingPlay(arms, horizon, key, plan.counts, feedback.pending == "count")
    words = [episode_word(seed, episode, 1 + arm) for arm in range(arms)]
    pulls, moves, due = [0] * arms, [], {}
    for step in range(horizon):
        arm = wanted_arm(play) if plan.each_once else None
        if arm is None:
            arm = choose(play)
        if unit(noise_bits(key, step, 4)) < arms * feedback.min_share:
            arm = below(noise_bits(key, step, 5), arms)
        word = (words[arm] + pulls[arm] * WEYL) & MASK32
        reward = quantile(family, unit(draw_bits(word, key)), parameters[arm])
        when = comes_after(feedback, step + 1, horizon, unit(draw_bits(word, key ^ DELAY)))
        due.setdefault(when, []).append((arm, reward))
        pulls[arm] += 1
        play.waiting[arm] += 1
        moves.append(arm)
        for came, value in due.pop(step + 1, []):
            play.waiting[came] -= 1
            play.receive(came, value)
    return moves


def batched_reward(shares, chance, sizes):
    """The expected reward of a policy that two arms are played with in batches.

    shares(known, waiting): the probability of each arm, given (plays, successes) of the arms that are
    known, and the plays of each that wait
    """
    horizon = sum(sizes)
    ends = set(np.cumsum(sizes).tolist())

    @cache
    def value(known, true):
        made = sum(n for n, _ in true)
        if made == horizon:
            return Fraction(0)
        waiting = tuple(n - k for (n, _), (k, _) in zip(true, known, strict=True))
        total = Fraction(0)
        for arm, share in enumerate(shares(known, waiting)):
            if not share:
                continue
            p = chance(arm, *true[arm])
            for success in (0, 1):
                after = tuple(
                    (n + (k == arm), s + success * (k == arm)) for k, (n, s) in enumerate(true)
                )
                seen = after if made + 1 in ends else known
                weight = p if success else 1 - p
                total += share * weight * (success + value(seen, after))
        return total

    start = ((0, 0), (0, 0))
    return value(start, start)


def best_batched_reward(chance, sizes, *, each_once=False, min_share=0):
    """The most that can be expected: at each play of a batch, either arm is the one that is meant.

    With a minimum share the other one comes with that probability. What has been played of a batch is
    known, its rewards are not.
    """

    @cache
    def value(state, arms, batch):
        if batch == len(sizes):
            return Fraction(0)
        if len(arms) == sizes[batch]:
            return outcome(state, arms, batch)
        plays = [state[arm][0] + arms.count(arm) for arm in (0, 1)]
        meant = [plays.index(0)] if each_once and 0 in plays else [0, 1]
        return max(
            (1 - min_share) * value(state, (*arms, arm), batch)
            + min_share * value(state, (*arms, 1 - arm), batch)
            for arm in meant
        )

    def outcome(state, arms, batch):
        if not arms:
            return value(state, (), batch + 1)
        arm, rest = arms[0], arms[1:]
        n, s = state[arm]
        p = chance(arm, n, s)
        total = Fraction(0)
        for success in (0, 1):
            after = list(state)
            after[arm] = (n + 1, s + success)
            weight = p if success else 1 - p
            total += weight * (success + outcome(tuple(after), rest, batch))
        return total

    return value(((0, 0), (0, 0)), (), 0)
