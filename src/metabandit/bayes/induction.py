"""Backward induction over the counts of two or three Bernoulli arms, on several threads.

With Beta(a_k, b_k) means, plays n_k, successes s_k and p_k = (a_k + s_k)/(a_k + b_k + n_k), the most
that any strategy can expect from the plays that are left is

    V_T = 0,   V_m(n, s) = max_k  p_k (1 + V_{m+1}(n + e_k, s + e_k)) + (1 - p_k) V_{m+1}(n + e_k, s),

m = n_1 + ... + n_K plays being made. V_0 is the Bayes-optimal reward, and T E[max_k mu_k] - V_0 the
least regret that any strategy can have (Bellman 1956). For two arms the better arm changes once as s_2
grows, so that the policy is two cuts per (m, n_1, s_1): where arm 1 stops being better, and where it
stops being as good.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from ..memory import check_memory
from ..priors import Bernoulli
from ..priors.families import Array
from ..settings import check_threads

# How play begins: freely, or with one play of each arm.
FREE, EACH_ONCE = "free", "each-once"
# progress(work done, work in all)
Progress = Callable[[int, int], None]
# What to do in every state: cuts for two arms, bits for three.
Cuts = npt.NDArray[np.unsignedinteger[Any]]

# From this many plays on, the blocks of a step are shared among threads.
_SHARED = 256


def states(arms: int, horizon: int) -> int:
    """How many states of the counts there are in all."""
    return math.comb(horizon + 2 * arms, 2 * arms)


def is_mirrored(prior: Bernoulli) -> bool:
    """Whether exchanging the arms changes nothing."""
    return len(set(zip(prior.alpha, prior.beta, strict=True))) == 1


def slice_bytes(arms: int, horizon: int, *, mirror: bool) -> int:
    """The memory of all states of one step, the last one."""
    if arms == 2:
        return 8 * math.comb(horizon + 3, 3) // (2 if mirror else 1)
    return 2 * 8 * math.comb(horizon + 5, 5)


def first_outcomes(chance: Array) -> Iterator[tuple[tuple[int, ...], float]]:
    """What one play of each arm can bring: the successes of the arms, and how likely that is.

    chance[arm, pair] is the probability of success (kernels/counts.py).
    """
    for outcome in np.ndindex(*(2,) * len(chance)):
        won = np.array(outcome, dtype=bool)
        yield outcome, float(np.prod(np.where(won, chance[:, 0], 1.0 - chance[:, 0])))


def solve(
    prior: Bernoulli,
    horizon: int,
    *,
    start: str,
    keep: bool,
    threads: int | None,
    progress: Progress | None,
) -> tuple[float, Cuts]:
    """The expected reward, and with `keep` what to do in every state."""
    threads = check_threads(threads)
    mirror = is_mirrored(prior) and not keep
    needed = slice_bytes(prior.arms, horizon, mirror=mirror)
    if keep:
        # What to do, and once more as the numbers that the simulator reads.
        entries = math.comb(horizon + 2, 3) if prior.arms == 2 else math.comb(horizon + 5, 6)
        needed += ((4 + 8) if prior.arms == 2 else 2) * entries
    what = "the optimal policy as a table" if keep else "the optimum"
    check_memory(
        needed,
        f"{what} for {prior.arms} arms and {horizon} plays",
        "choose a shorter horizon, or lower_bound for a lower bound on regret",
    )
    first = prior.arms if start == EACH_ONCE else 0
    solved: _TwoArms | _ThreeArms
    if prior.arms == 2:
        solved = _TwoArms(prior, horizon, mirror, keep)
    else:
        solved = _ThreeArms(prior, horizon, keep)
    with ThreadPoolExecutor(threads) as pool:
        solved.run(first, pool if threads > 1 else None, progress)
    if first == 0:
        return solved.value(0, ()), solved.cuts
    reward = sum(
        weight * (sum(outcome) + solved.value(first, outcome))
        for outcome, weight in first_outcomes(solved.chance)
    )
    return reward, solved.cuts


def solve_constrained(
    prior: Bernoulli, horizon: int, degree: float, minimum: int, penalty: float
) -> Cuts:
    """What to do in every state, if the better of two arms is played with probability `degree` only.

    minimum, penalty: what is lost at the end if an arm has fewer plays
    """
    from ..kernels import backward, counts

    entries = math.comb(horizon + 2, 3)
    check_memory(
        slice_bytes(2, horizon, mirror=False) + (4 + 8) * entries,
        f"constrained dynamic programming for {horizon} plays",
        "choose a shorter horizon",
    )
    chance = counts.chances(prior.alpha, prior.beta, horizon)
    offset, stride = counts.layout(horizon, False)
    value = np.zeros(offset[-1])
    for n1 in range(horizon + 1):
        if min(n1, horizon - n1) < minimum:
            value[offset[n1] : offset[n1 + 1]] = -penalty
    cuts = np.zeros((entries, 2), np.uint16)
    status = backward.run_constrained(degree, value, offset, stride, chance, cuts)
    if status != backward.DONE:
        raise RuntimeError("the better arm is not monotone in the successes of an arm")
    return cuts


class _TwoArms:
    """Backward induction for two arms: one slice, changed in place."""

    def __init__(self, prior: Bernoulli, horizon: int, mirror: bool, keep: bool) -> None:
        from ..kernels import backward, counts

        self.kernel = backward
        self.parts = counts.parts
        self.horizon = horizon
        self.mirror = mirror
        self.keep = keep
        self.chance = counts.chances(prior.alpha, prior.beta, horizon)
        self.offset, self.stride = counts.layout(horizon, mirror)
        self.values = np.zeros(self.offset[-1])
        entries = math.comb(horizon + 2, 3) if keep else 0
        self.cuts: Cuts = np.zeros((entries, 2), np.uint16)

    def run(self, first: int, pool: ThreadPoolExecutor | None, progress: Progress | None) -> None:
        total = states(2, self.horizon) - states(2, first)
        last = self.horizon
        while last > first:
            if last > _SHARED and pool is not None:
                begin = last - 1
                self._shared_step(begin, pool)
            else:
                begin = max(first, last - (_SHARED if last <= _SHARED else 1))
                self._check(
                    self.kernel.run_two(
                        begin,
                        last,
                        self.values,
                        self.offset,
                        self.stride,
                        self.chance,
                        self.mirror,
                        self.keep,
                        self.cuts,
                    )
                )
            last = begin
            if progress is not None:
                progress(states(2, self.horizon) - states(2, last), total)

    def _shared_step(self, m: int, pool: ThreadPoolExecutor) -> None:
        parts = self.parts(m, self.mirror, 4)
        # A part needs the block above it as it was before the step.
        edges = [
            np.empty(0)
            if high == parts[-1][1]
            else self.values[self.offset[high] : self.offset[high + 1]].copy()
            for _, high in parts
        ]

        def step(part: tuple[int, int], edge: npt.NDArray[np.float64]) -> int:
            status: int = self.kernel.step_two(
                m,
                *part,
                self.values,
                self.offset,
                self.stride,
                self.chance,
                self.mirror,
                edge,
                self.keep,
                self.cuts,
            )
            return status

        for status in pool.map(step, parts, edges):
            self._check(status)

    def _check(self, status: int) -> None:
        if status != self.kernel.DONE:
            raise RuntimeError("the optimal choice is not monotone in the successes of an arm")

    def value(self, m: int, outcome: Sequence[int]) -> float:
        """The value of the first state, or of that after one play of each arm."""
        if not m:
            return float(self.values[0])
        return float(self.values[self.offset[1] + outcome[0] * self.stride[1] + outcome[1]])


class _ThreeArms:
    """Backward induction for three arms: two slices in turn."""

    def __init__(self, prior: Bernoulli, horizon: int, keep: bool) -> None:
        from ..kernels import counts, three_arms

        self.kernel = three_arms
        self.horizon = horizon
        self.keep = keep
        # For each number of plays and each state which arms are best (decisions.py: ByStates).
        self.cuts: Cuts = np.zeros(math.comb(horizon + 5, 6) if keep else 0, np.uint8)
        self.chance = counts.chances(prior.alpha, prior.beta, horizon)
        shape = (horizon + 2, horizon + 2)
        self.offsets = [np.zeros(shape, np.int64) for _ in range(2)]
        size = three_arms.offsets(horizon, self.offsets[horizon % 2])
        self.values = [np.zeros(size) for _ in range(2)]

    def run(self, first: int, pool: ThreadPoolExecutor | None, progress: Progress | None) -> None:
        total = states(3, self.horizon) - states(3, first)
        for m in range(self.horizon - 1, first - 1, -1):
            self.kernel.offsets(m, self.offsets[m % 2])
            after, before = (m + 1) % 2, m % 2
            best = self.cuts[math.comb(m + 5, 6) : math.comb(m + 6, 6) if self.keep else 0]

            def step(
                n1: int, m: int = m, after: int = after, before: int = before, best: Cuts = best
            ) -> None:
                self.kernel.step_backward(
                    m,
                    n1,
                    n1 + 1,
                    self.values[after],
                    self.offsets[after],
                    self.values[before],
                    self.offsets[before],
                    self.chance,
                    best,
                )

            if pool is None or m < 20:
                for n1 in range(m + 1):
                    step(n1)
            else:
                list(pool.map(step, range(m + 1)))
            if progress is not None:
                progress(states(3, self.horizon) - states(3, m), total)

    def value(self, m: int, outcome: Sequence[int]) -> float:
        values, offset = self.values[m % 2], self.offsets[m % 2]
        if not m:
            return float(values[0])
        a, b, c = outcome
        return float(values[offset[1, 1] + 4 * a + 2 * b + c])
