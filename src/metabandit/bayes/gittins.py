"""The finite-horizon Gittins index: a strong reference where the optimum is out of reach."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..errors import InputError
from ..memory import check_memory
from ..play import Setting
from ..play.rules import ByTable, Rule
from ..policies.base import ByCounts, Plan, Policy, Progress, decide_by
from ..priors import Bernoulli, BetaRewards, Prior
from ..priors.families import Array

# Prices between which an index is interpolated; they are taken in groups.
_PRICES = 1024
_GROUP = 64


def gittins_table(
    horizon: int, alpha: float, beta: float, *, progress: Progress | None = None
) -> Array:
    """The indices of an arm with a Beta(alpha, beta) mean.

    For m = 0, 1, ..., horizon - 1 plays made in all: the pairs (plays, successes) of the arm with up
    to m plays. The error is mostly far below 1e-4; with parameters near 0 it can be twice that.
    """
    from ..kernels import gittins

    entries = math.comb(horizon + 2, 3)
    pairs = math.comb(horizon + 2, 2)
    table = np.empty(entries)
    prices = np.linspace(0.0, 1.0, _PRICES + 1)

    def group(first: int) -> None:
        some = prices[first : first + _GROUP + 1]
        gain = np.zeros((pairs, len(some)))
        gittins.calibrate(horizon, alpha, beta, some, gain, np.empty(len(some)), table)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, _ in enumerate(pool.map(group, range(0, _PRICES, _GROUP)), start=1):
            if progress is not None:
                progress(done * _GROUP, _PRICES)
    return table


def _means(prior: Prior) -> list[tuple[float, float]]:
    """The Beta distribution of each arm's mean: the prior's, else uniform."""
    if isinstance(prior, (Bernoulli, BetaRewards)):
        return list(zip(prior.alpha, prior.beta, strict=True))
    return [(1.0, 1.0)] * prior.arms


class Gittins(Policy):
    """Play the arm with the largest finite-horizon Gittins index, ties at random.

    The means' Beta distributions are those of the prior, uniform if it says none. For two arms
    and more this is no optimum: the index is optimal against a known arm, not against others.
    """

    reads_prior = True

    def __init__(self, name: str) -> None:
        self.name = name
        self._tables: dict[tuple[int, float, float], Array] = {}

    def check(self, prior: Prior, horizon: int) -> None:
        if not prior.family.in_unit_interval:
            raise InputError(
                f"{self.name} is for rewards in [0, 1]; those of {prior.family.name} lie between "
                f"{prior.family.support[0]:g} and {prior.family.support[1]:g}"
            )
        # Tables, and what is computed at once by every thread.
        needed = 3 * 8 * math.comb(horizon + 2, 3) * len(set(_means(prior)))
        needed += 8 * (_GROUP + 1) * math.comb(horizon + 2, 2) * (os.cpu_count() or 1)
        check_memory(needed, f"the Gittins index for {horizon} plays", "choose a shorter horizon")

    def prepare(self, prior: Prior, horizon: int, progress: Progress | None) -> None:
        self.check(prior, horizon)
        for pair in set(_means(prior)):
            if (horizon, *pair) not in self._tables:
                self._tables[(horizon, *pair)] = gittins_table(horizon, *pair, progress=progress)

    def rule(self, setting: Setting) -> Rule:
        horizon = setting.need_horizon(self.name)
        prior = setting.prior or Bernoulli(max(len(setting.arms), 2))
        if not setting.rewards.in_unit_interval:
            raise InputError(f"{self.name} is for rewards in [0, 1]; give rewards=(0, 1)")
        self.prepare(prior, horizon, None)
        means = dict(zip(setting.arms, _means(prior), strict=False))
        kinds = set(means.values())
        tables = {pair: self._tables[(horizon, *pair)] for pair in kinds}
        return ByTable(horizon, means, kinds.pop() if len(kinds) == 1 else None, tables)

    def plan(self, prior: Prior, horizon: int) -> Plan:
        self.prepare(prior, horizon, None)
        pairs = _means(prior)
        kinds = list(dict.fromkeys(pairs))
        table = np.stack([self._tables[(horizon, *pair)] for pair in kinds])
        which = np.array([kinds.index(pair) for pair in pairs])
        begins = prior.arms + which * table.shape[1]
        return Plan(
            False,
            np.zeros((3, prior.arms)),
            decide=decide_by("by_table"),
            parameters=np.concatenate([begins.astype(np.float64), table.ravel()]),
            by_counts=ByCounts(table=table, which=which),
        )
