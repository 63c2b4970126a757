"""Scenarios of all rewards for the charge bound (bounds.py has the mathematics), on several threads."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..memory import check_memory
from ..priors import Bernoulli, Gaussian, Prior
from ..priors.families import Array
from .gittins import gaussian_moves, solve_gaussian

# Pulls of an arm for which a table has each pair (pulls, successes), and by which factor later stages grow.
_FIRST = 256
_RATIO = 1.04
# Prices of a table, within these, such that tables take about so many steps of backward induction.
_FEWEST_PRICES, _MOST_PRICES = 64, 256
_TABLE_STEPS = 1.5e10
_PRICES_AT_ONCE = 64

# Corrections: scenarios of a step, and the size of a step, at first and in the end.
BATCH = 64
_RATE, _SHRINKING = 0.02, 0.025

# Blocks in which the pulls of an arm are taken, if there are more.
_BLOCKS = 1024
# Scenarios at once: about so many seconds.
_AT_ONCE = 0.02
_SHORT = 0.004


def scenario_seconds(prior: Prior, horizon: int) -> tuple[float, float]:
    """About the seconds of a scenario and of an episode of the index policy, on one core.

    They depend on the task only, so that the same is computed on every machine.
    """
    pulls = prior.arms * horizon
    slow = 1.0 if isinstance(prior, Bernoulli) else 2.0
    scenario = 7e-8 * slow * pulls * (1.0 + min(horizon, _BLOCKS) / 1000.0)
    return 2e-6 + scenario, 1e-6 + 3e-8 * slow * (horizon + prior.arms)


def table_seconds(prior: Prior, horizon: int) -> float:
    """About the seconds of the tables, on one core."""
    if isinstance(prior, Gaussian):
        return 5e-6 * horizon
    return _steps(prior, horizon) * _prices(prior, horizon) * 1e-9


def _kinds(prior: Bernoulli) -> list[tuple[float, float]]:
    """The different Beta distributions of the means."""
    return list(dict.fromkeys(zip(prior.alpha, prior.beta, strict=True)))


def _steps(prior: Prior, horizon: int) -> float:
    """About the steps of backward induction at one price."""
    assert isinstance(prior, Bernoulli)
    return len(_kinds(prior)) * horizon * min(horizon / 2.0, 6.0 * math.sqrt(horizon))


def _prices(prior: Prior, horizon: int) -> int:
    most = int(_TABLE_STEPS / _steps(prior, horizon))
    return min(max(most, _FEWEST_PRICES), _MOST_PRICES)


def _stages(horizon: int) -> Any:
    """The numbers of pulls after the first ones that have entries in the tables."""
    begin = min(horizon, _FIRST)
    # What matters is how many pulls an arm has had, and how many are left.
    growing = begin * _RATIO ** np.arange(math.log(horizon / begin) / math.log(_RATIO) + 1.0)
    left = 4.0 * _RATIO ** np.arange(max(math.log(horizon / 4.0), 0.0) / math.log(_RATIO))
    ends = np.concatenate([growing, horizon - left, [horizon - 1]]).astype(np.int64)
    return np.unique(ends[(ends >= begin) & (ends < horizon)])


class Scenarios:
    """Scenarios of a prior, on several threads: what depends on the seed does not on the threads."""

    def __init__(self, prior: Prior, horizon: int, seed: int, threads: int) -> None:
        from ..kernels import bounds

        self.kernel = bounds
        self.prior = prior
        self.horizon = horizon
        self.seed = seed
        self.threads = threads
        self.width = math.ceil(horizon / _BLOCKS)
        self._check()
        self.pool = ThreadPoolExecutor(threads)
        self.local = threading.local()
        # So many problems are drawn at once, fewer where each is large.
        self.group = min(max(2**20 // prior.arms, 128), 8192)
        problems = prior.draw(np.random.default_rng([seed, 0]), self.group)
        best = np.max(prior.regret_means(problems), axis=1)
        if isinstance(prior, Bernoulli):
            self.arms = self._bernoulli(prior, best)
        else:
            assert isinstance(prior, Gaussian)
            self.arms = self._gaussian(prior, best)

    def _check(self) -> None:
        """Refuse what does not fit in memory or time."""
        arms, horizon = self.prior.arms, self.horizon
        needed = self.threads * arms * ((horizon + 1) * 60 + _MOST_PRICES * 8)
        if isinstance(self.prior, Bernoulli):
            entries = math.comb(min(horizon, _FIRST) + 1, 2) + 129 * len(_stages(horizon))
            needed += 4 * len(_kinds(self.prior)) * entries * _prices(self.prior, horizon)
        else:
            needed += 8 * 337 * (horizon + 1)
        what = f"a lower bound for {arms} arms and {horizon} plays"
        check_memory(needed, what, "choose a shorter horizon or fewer threads")

    def __enter__(self) -> Scenarios:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)

    def map(self, work: Callable[[int], Any], count: int) -> list[Any]:
        """Do items 0, 1, ... on the threads."""
        if count == 1:
            return [work(0)]
        return list(self.pool.map(work, range(count)))

    def stream(self, name: str) -> np.uint64:
        """The seed of a kind of scenarios."""
        digest = hashlib.sha256(f"{self.seed} {name}".encode()).digest()
        return np.uint64(int.from_bytes(digest[:8], "little"))

    def _levels(self, best: Array, prices: Array) -> dict[str, Any]:
        """What corrections go by: pulls by powers of the root of 2, rivals by how often they occur."""
        pulls = np.floor(2.0 * np.log2(np.arange(self.horizon) + 1.0))
        level = np.unique(pulls, return_inverse=True)[1].astype(np.int64)
        worths = self.kernel.WORTHS
        ends = np.quantile(best, np.arange(1, worths) / worths)
        return {
            "level": level,
            "worth_level": np.searchsorted(ends, prices, side="right").astype(np.int64),
            "cells": (int(level[-1]) + 1) * self.kernel.DISTANCES,
        }

    def corrections(self) -> int:
        """How many numbers corrections consist of."""
        return len(self.arms.first) * int(self.arms.cells) * self.kernel.CORRECTIONS

    def _bernoulli(self, prior: Bernoulli, best: Array) -> Any:
        from .gittins import gittins_index

        horizon, kinds, stages = self.horizon, _kinds(prior), _stages(self.horizon)
        pulls = np.arange(horizon)
        stage = np.searchsorted(stages[:-1], pulls, side="right") - 1
        phase = np.zeros(horizon)
        if len(stages):
            phase = (pulls - stages[stage]) / (stages[1:] - stages[:-1])[stage]
        # No charge is above the first, and an arm whose charge is below what the best arm ever has is
        # not worth a table.
        high = max(gittins_index(a, b, horizon) for a, b in kinds)
        low = float(np.quantile(best, 0.0005) - 1.2 * np.std(best))
        prices = np.linspace(min(max(low, 0.005 * high), 0.8 * high), high, _prices(prior, horizon))
        none = np.zeros(1)
        means = list(zip(prior.alpha, prior.beta, strict=True))
        return self.kernel.Arms(
            family=self.kernel.BERNOULLI,
            horizon=horizon,
            kind=np.array([kinds.index(mean) for mean in means]),
            first=np.array([a for a, _ in kinds]),
            second=np.array([b for _, b in kinds]),
            low=float(prices[0]),
            step=float(prices[1] - prices[0]),
            stage=stage,
            phase=phase,
            noise=1.0,
            deviation=none,
            move=none,
            bonus=none,
            value=np.zeros((1, 1)),
            point=none,
            chance=none,
            **self._charges(kinds, prices, stages),
            **self._levels(best, prices),
        )

    def _charges(
        self, kinds: list[tuple[float, float]], prices: Array, stages: Any
    ) -> dict[str, Any]:
        """The tables of charges and indices of Bernoulli arms, as fields of the kernel's `Arms`."""
        from ..kernels import charge

        horizon, low, count = self.horizon, float(prices[0]), len(prices)
        begin = min(horizon, _FIRST)
        # An index can be above: that of an arm which did better than one expects of any.
        beyond = np.append(prices, 1.0)
        pairs = math.comb(begin + 1, 2)
        n, s = np.tril_indices(begin)
        slope = np.empty((len(kinds), pairs, count + 1), np.float32)
        far = np.zeros((len(kinds), max(len(stages), 1), count, charge.DISTANCES), np.float32)
        edge = np.zeros(far.shape[:3])
        index = np.empty((len(kinds), pairs))
        for row, (a, b) in enumerate(kinds):
            index[row] = np.minimum((a + s) / (a + b + n), low)
        groups = [
            (row, first) for row in range(len(kinds)) for first in range(0, count, _PRICES_AT_ONCE)
        ]

        def solve(item: int) -> None:
            row, first = groups[item]
            part = slice(first, first + _PRICES_AT_ONCE + 1)
            some = beyond[part]
            value = np.zeros((begin + 1, len(some)))
            worth = np.zeros(horizon + 2)
            for j, price in enumerate(prices[part] if horizon > begin else []):
                at = far[row, :, first + j], edge[row, :, first + j]
                charge.charge_stages(horizon, begin, *kinds[row], price, stages, worth, *at)
                value[:, j] = worth[: begin + 1]
            room = np.empty(len(some))
            charge.charge_bernoulli(
                begin, *kinds[row], some, value, room, slope[row, :, part], index[row]
            )

        self.map(solve, len(groups))
        return {"index": index, "slope": slope, "far": far, "edge": edge}

    def _gaussian(self, prior: Gaussian, best: Array) -> Any:
        from scipy.special import ndtr

        kernel, horizon = self.kernel, self.horizon
        deviation, move = gaussian_moves(horizon, prior.spread, prior.noise)
        value, bonus = solve_gaussian(horizon, prior.spread, prior.noise)
        inner = np.arange(-kernel.FURTHEST, kernel.FURTHEST + 1e-9, kernel.WIDTH)
        ends = np.concatenate([[-np.inf], inner, [np.inf]])
        chance = np.diff(ndtr(ends))
        density = np.exp(-0.5 * ends**2) / math.sqrt(2.0 * math.pi)
        low = float(np.quantile(best, 0.0005)) - 0.2 * prior.spread
        prices = np.linspace(low, float(np.max(best)), _MOST_PRICES)
        return kernel.Arms(
            family=kernel.GAUSSIAN,
            horizon=horizon,
            kind=np.zeros(prior.arms, np.int64),
            first=np.array([prior.mean]),
            second=np.zeros(1),
            low=low,
            step=float(prices[1] - prices[0]),
            index=np.zeros((1, 1)),
            slope=np.zeros((1, 1, 2), np.float32),
            stage=np.full(horizon, -1),
            phase=np.zeros(horizon),
            far=np.zeros((1, 1, 2, 2), np.float32),
            edge=np.zeros((1, 1, 2)),
            noise=prior.noise,
            deviation=deviation,
            move=move,
            bonus=bonus,
            value=value,
            point=(density[:-1] - density[1:]) / chance,
            chance=chance,
            **self._levels(best, prices),
        )

    def room(self) -> Any:
        """What a thread works in, made once."""
        if not hasattr(self.local, "room"):
            arms, horizon = self.prior.arms, self.horizon
            by_arm, by_play = (arms, horizon + 1), max(arms, horizon) + 1
            by_block = (arms, horizon // self.width + 1)
            prices = len(self.arms.worth_level)
            self.local.room = self.kernel.ScenarioWork(
                draw=np.zeros((arms, horizon)),
                mean=np.zeros(by_arm),
                total=np.zeros(by_arm),
                index=np.zeros(by_arm),
                cell=np.zeros((arms, horizon, 3), np.int32),
                shift=np.zeros((arms, horizon)),
                first=np.zeros(horizon + 1),
                second=np.zeros(horizon + 1),
                lead=np.zeros(horizon + 1, np.int64),
                dearer=np.zeros((arms, prices), np.int64),
                all_dearer=np.zeros(prices, np.int64),
                plays=np.zeros(arms, np.int64),
                best=np.zeros(arms, np.int64),
                most=np.zeros(arms),
                kept=np.zeros(by_block, np.int64),
                at=np.zeros(by_block, np.int64),
                loss=np.zeros(by_block),
                size=np.zeros(arms, np.int64),
                order=np.zeros(arms, np.int64),
                choice=np.zeros(by_block, np.int64),
                before=np.zeros(by_play),
                after=np.zeros(by_play),
            )
        return self.local.room

    def _run(
        self, name: str, first: int, count: int, theta: Array, *, chunk: int, slopes: bool
    ) -> tuple[Array, Array, Array]:
        seed = self.stream(name)
        policy, hindsight = np.empty(count), np.empty(count)
        parts = range(0, count, chunk)
        gradients = np.zeros((len(parts), len(theta) if slopes else 0))

        def work(item: int) -> None:
            part = slice(parts[item], min(parts[item] + chunk, count))
            self.kernel.scenarios(
                self.arms,
                seed,
                first + part.start,
                theta,
                self.width,
                policy[part],
                hindsight[part],
                gradients[item],
                self.room(),
            )

        self.map(work, len(parts))
        return policy, hindsight, np.sum(gradients, axis=0) / count

    def values(self, name: str, count: int, theta: Array) -> tuple[Array, Array]:
        """What the index policy gets in each scenario with its penalties, and the best in hindsight."""
        chunk = math.ceil(_AT_ONCE / scenario_seconds(self.prior, self.horizon)[0])
        policy, hindsight, _ = self._run(name, 0, count, theta, chunk=chunk, slopes=False)
        return policy, hindsight

    def learn(self, steps: int, report: Callable[[float], None]) -> Array:
        """Corrections by Adam (Kingma and Ba 2015), the average of the second half of its steps."""
        size = self.corrections()
        theta: Array = np.zeros(size)
        mean, square, average = np.zeros((3, size))
        # Threads take longer to begin than the scenarios of a short step.
        short = BATCH * scenario_seconds(self.prior, self.horizon)[0] < _SHORT
        chunk = BATCH if short else BATCH // 4
        # The more noise there is, and the fewer steps to average it away, the smaller they are.
        rate = _RATE * min(1.0, math.sqrt(steps / 2000.0 * 100.0 / self.horizon))
        for step in range(1, steps + 1):
            first = (step - 1) * BATCH
            _, _, slope = self._run("learn", first, BATCH, theta, chunk=chunk, slopes=True)
            mean += 0.1 * (slope - mean)
            square += 0.01 * (slope * slope - square)
            pace = rate * _SHRINKING ** (step / steps) / (1.0 - 0.9**step)
            theta = theta - pace * mean / (np.sqrt(square / (1.0 - 0.99**step)) + 1e-4)
            if 2 * step > steps:
                average += theta
            report(step / steps)
        learned: Array = average / (steps - steps // 2)
        return learned

    def regret(self, name: str, episodes: int) -> tuple[float, float]:
        """The mean regret of the index policy on problems of the prior, and its standard error."""
        seed = self.stream(f"play {name}")
        group = self.group
        regret = np.empty(episodes)

        def work(item: int) -> None:
            part = slice(item * group, min((item + 1) * group, episodes))
            rng = np.random.default_rng([int(seed), item])
            problems = self.prior.draw(rng, part.stop - part.start)
            means = np.ascontiguousarray(self.prior.regret_means(problems), dtype=np.float64)
            self.kernel.index_policy(self.arms, seed, part.start, means, regret[part], self.room())

        self.map(work, math.ceil(episodes / group))
        return float(np.mean(regret)), float(np.std(regret)) / math.sqrt(episodes)
