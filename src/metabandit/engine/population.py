"""A population of policies on the same episodes: learning's candidates, generation after generation.

Regret is kept for each problem, or as its sums over blocks of problems that do not depend on who does the
work: sums are added up in the same order whoever played.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import IndexFault
from ..policies import Plan, Policy
from ..priors import Bernoulli, Prior
from ..priors.families import Array
from ..workers import Crew, Piece, split
from .simulated import MOST_LANES, Simulation, name_plans, work_seconds
from .threads import in_threads

# Episodes that each policy plays before all go on to the next problems.
_MOST_AT_ONCE = 131_072
# Plays times arms of a policy between two sums, of which there are not many more than so many.
_BLOCK_WORK = 2e8
_BLOCKS = 256


def has_posterior(prior: Prior) -> bool:
    """Whether the expectation of regret given the plays is known, and smooth enough to compute."""
    return type(prior) is Bernoulli and min(*prior.alpha, *prior.beta) >= 0.5


def _expect(prior: Bernoulli, horizon: int, final: npt.NDArray[np.float32], regret: Array) -> None:
    """Expected regret of episodes given how often each arm was played and won."""
    from ..kernels import posterior

    alpha, beta = np.array(prior.alpha), np.array(prior.beta)
    posterior.expected_regret(alpha, beta, horizon, final[0], final[1], regret)


class Population:
    """Many policies on few problems, [policy, problem]: threads share the policies.

    simple: whether regret is simple regret
    posterior: whether it is the expectation given what was seen, which has the same mean over problems and
        less noise
    A policy whose index is not a finite number somewhere has infinite regret.
    """

    def __init__(
        self,
        prior: Prior,
        horizon: int,
        *,
        runs: int = 1,
        simple: bool = False,
        posterior: bool = False,
    ) -> None:
        self.prior = prior
        self.horizon = horizon
        self.runs = runs
        self.simple = simple
        self.posterior = posterior

    def each(
        self, plans: Sequence[tuple[str, Plan]], seed: int, cuts: Sequence[int], threads: int = 1
    ) -> Array:
        """The regret of each policy on each problem from the first cut to the last, averaged over runs."""
        simulation = Simulation(
            plans,
            self.prior,
            self.horizon,
            runs=self.runs,
            seed=seed,
            checkpoints=[self.horizon],
            lanes=MOST_LANES,
        )
        first, last = cuts[0], cuts[-1]
        size = max(1, _MOST_AT_ONCE // self.runs)
        regret = np.empty((len(plans), last - first))
        for begin in range(first, last, size):
            end = min(begin + size, last)
            drawn = simulation.problems(begin, end)

            def play(position: int, begin: int = begin, end: int = end, drawn: Any = drawn) -> None:
                each = self._play(simulation, position, drawn, begin, end)
                regret[position, begin - first : end - first] = each

            in_threads(play, range(len(plans)), threads)
        return regret

    def _play(
        self, simulation: Simulation, position: int, drawn: Any, first: int, last: int
    ) -> Array:
        count = (last - first) * self.runs
        arms = self.prior.arms
        both = np.empty((2, count))
        final = np.empty((2, arms, count if self.posterior else 0), np.float32)
        try:
            simulation.play(position, drawn, first, both, np.zeros(arms), final)
            if self.posterior:
                assert isinstance(self.prior, Bernoulli)
                _expect(self.prior, self.horizon, final, both[0])
        except IndexFault:
            both[:] = np.inf
        each = both[1 if self.simple else 0].reshape(last - first, self.runs)
        return np.asarray(each.mean(axis=1))

    def sums(
        self, plans: Sequence[tuple[str, Plan]], seed: int, cuts: Sequence[int], threads: int = 1
    ) -> Array:
        """The sum of each policy's regret over the problems from each cut to the next."""
        sums = np.empty((len(plans), len(cuts) - 1))
        most = max(1, _MOST_AT_ONCE // self.runs)
        block = 0
        while block < len(cuts) - 1:
            after = block + 1
            while after < len(cuts) - 1 and cuts[after + 1] - cuts[block] <= most:
                after += 1
            some = np.array(cuts[block : after + 1])
            for row, regret in enumerate(self.each(plans, seed, some.tolist(), threads)):
                parts = np.split(regret, some[1:-1] - some[0])
                sums[row, block:after] = [part.sum() for part in parts]
            block = after
        return sums


def blocks(prior: Prior, horizon: int, runs: int, cuts: Sequence[int]) -> list[int]:
    """Finer cuts, between which a policy takes about a second at most.

    They do not depend on who does the work, so that sums do not either. Most are whole rows of lanes apart,
    so that work can be shared evenly and no lane idles.
    """
    size = max(1, int(_BLOCK_WORK / (horizon * prior.arms * runs)))
    if runs == 1 and size > MOST_LANES:
        even = -(-cuts[-1] // _BLOCKS)
        size = MOST_LANES * max(1, min(even, size) // MOST_LANES)
    finer = set(range(cuts[0], cuts[-1], size))
    return sorted(finer | set(cuts))


def _tiles(
    policies: int, cuts: Sequence[int], count: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Runs of policies and runs of blocks that make about so many pieces of about the same size."""
    if policies >= 4 * count:  # so that a piece carries few programs
        return split(policies, count), [(0, len(cuts) - 1)]
    first, last = cuts[0], cuts[-1]
    ideal = [first + (last - first) * part // count for part in range(1, count)]
    # Of two blocks that begin close together only one is a whole number of rows of lanes away.
    rows = [place for place, cut in enumerate(cuts) if (cut - first) % MOST_LANES == 0]
    allowed = rows if len(rows) > 2 * count else range(len(cuts))
    at = [cuts[place] for place in allowed]
    ends = {0, len(cuts) - 1}
    for wanted in ideal:
        after = min(bisect_left(at, wanted), len(at) - 1)
        before = max(after - 1, 0)
        near = after if at[after] - wanted < wanted - at[before] else before
        ends.add(allowed[near])
    wide = list(pairwise(sorted(ends)))
    return split(policies, -(-count // len(wide))), wide


def play_population(
    make: Callable[[], Population],
    plans: Sequence[tuple[Policy, Plan]],
    cuts: Sequence[int],
    *,
    seed: int,
    crew: Crew,
    sums: bool = False,
) -> Array:
    """The regret of each policy on each problem from the first cut to the last; with `sums` its sum from
    each cut to the next.
    """
    population, named = make(), name_plans(plans)
    method = "sums" if sums else "each"
    # Of a policy on a problem.
    seconds = work_seconds(population.prior, population.horizon, population.runs)
    whole = len(plans) * (cuts[-1] - cuts[0]) * seconds
    if not crew.worth(whole, method):
        return _whole(getattr(population, method)(named, seed, cuts, crew.threads))
    if not sums:
        cuts = range(cuts[0], cuts[-1] + 1)
    rows, columns = _tiles(len(plans), cuts, crew.count(whole, method))
    tiles = [(slice(*row), column) for column in columns for row in rows]
    pieces = [
        Piece(
            (named[row], seed, cuts[low : high + 1]),
            len(named[row]) * (cuts[high] - cuts[low]) * seconds,
        )
        for row, (low, high) in tiles
    ]
    regret = np.empty((len(plans), len(cuts) - 1))
    for (row, column), part in zip(tiles, crew.do(make, method, pieces), strict=True):
        regret[row, slice(*column)] = part
    return _whole(regret)


def _whole(regret: Array) -> Array:
    """A policy that fails on some problems has failed on all, however they were cut."""
    regret[np.isinf(regret).any(axis=1)] = np.inf
    return regret
