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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from typing import Any

import numpy as np
import numpy.typing as npt

from ..memory import check_memory
from ..priors import Bernoulli
from ..priors.families import Array
from ..progress import Progress
from ..settings import check_threads

# How play begins: freely, or with one play of each arm.
FREE, EACH_ONCE = "free", "each-once"
# What to do in every state: cuts for two arms, bits for three.
Cuts = npt.NDArray[np.unsignedinteger[Any]]

# Two arms: how many levels a pass makes, and how many rows of each a tile has. What it needs fits the cache.
_LEVELS, _WIDTH = 12, 12
# For more plays than this, tiles run on several threads, this many plays of arm 2 at a time.
_SHARED, _BLOCK = 256, 32


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


def optimum_bytes(prior: Bernoulli, horizon: int, *, keep: bool = False) -> int:
    """The memory of the values that backward induction needs at a time."""
    if prior.arms != 2:
        return slice_bytes(prior.arms, horizon, mirror=False)
    return _row_bytes(horizon, is_mirrored(prior) and not keep)


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
    """The expected reward, and with `keep` what to do in every state.

    Below, both functions return the values that play begins with: of the first state, or of those after one
    play of each arm, by their successes.
    """
    from ..kernels import counts

    threads = check_threads(threads)
    needed = optimum_bytes(prior, horizon, keep=keep)
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
    solve_arms = _solve_two if prior.arms == 2 else _solve_three
    with ThreadPoolExecutor(threads) as pool:
        values, cuts = solve_arms(
            prior, horizon, first, keep, pool if threads > 1 else None, progress
        )
    if first == 0:
        return values[()], cuts
    chance = counts.chances(prior.alpha, prior.beta, 1)
    reward = sum(
        weight * (sum(outcome) + values[outcome]) for outcome, weight in first_outcomes(chance)
    )
    return reward, cuts


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


def _solve_two(
    prior: Bernoulli,
    horizon: int,
    first: int,
    keep: bool,
    pool: ThreadPoolExecutor | None,
    progress: Progress | None,
) -> tuple[dict[tuple[int, ...], float], Cuts]:
    """One level, changed in place, several levels per pass over it."""
    from ..kernels import counts

    mirror = is_mirrored(prior) and not keep
    chance = counts.chances(prior.alpha, prior.beta, horizon)
    rows = _Levels(horizon, mirror)
    cuts: Cuts = np.zeros((math.comb(horizon + 2, 3) if keep else 0, 2), np.uint16)
    passes = _passes(horizon, mirror)
    if first and not keep:
        passes.pop()  # nobody asks for states without a play of arm 1
    work = [
        sum(_level_states(horizon, n1, mirror) for n1 in range(low, top + 1)) for top, low in passes
    ]

    def value(s1: int, n2: int, s2: int) -> float:
        return float(rows.values[rows.at[s1, n2] + s2])

    found: dict[tuple[int, ...], float] = {}
    for done, (top, low) in enumerate(passes, start=1):
        rows.begin(top, low)
        _run_pass(rows, top, low, chance, keep, cuts, pool if horizon > _SHARED else None)
        rows.end(top, low)
        if first and low == 1:
            found = {(a, b): value(a, 1, b) for a in range(2) for b in range(2)}
        if progress is not None:
            progress(sum(work[:done]), sum(work))
    return found if first else {(): value(0, 0, 0)}, cuts


def _run_pass(
    rows: _Levels,
    top: int,
    low: int,
    chance: Array,
    keep: bool,
    cuts: Cuts,
    pool: ThreadPoolExecutor | None,
) -> None:
    """From the level top + 1 to the level `low`."""
    from ..kernels import backward

    horizon, levels = rows.horizon, top - low + 1
    last = top + 1 if rows.mirror else 0
    corner = np.empty((levels, top + 1, top + 2)) if rows.mirror else None
    # Where no other thread waits for it, a tile is run as one block of plays of arm 2.
    size = horizon + 1 if pool is None else _BLOCK
    blocks = [
        (begin, max(last, begin - size + 1)) for begin in range(horizon - low, last - 1, -size)
    ]
    firsts = range(0, top + 1, _WIDTH)
    # How many blocks of the tile before are done.
    ready = [Semaphore(0) for _ in range(len(firsts) + 1)]
    for _ in blocks:
        ready[0].release()

    def run(tile: int) -> int:
        status: int = backward.DONE
        work = np.empty((levels, _WIDTH, horizon + 2))
        try:
            for begin, end in blocks:
                ready[tile].acquire()
                status |= backward.run_tile(
                    horizon, top, firsts[tile], begin, end, rows.values, rows.at, chance, work, keep, cuts
                )  # fmt: skip
                ready[tile + 1].release()
        except BaseException:
            ready[tile + 1].release(len(blocks) + 1)  # nobody waits for what has failed
            raise
        if corner is not None:
            backward.keep_corner(top, firsts[tile], work, corner)
        return status

    tiles = range(len(firsts))
    # A pool begins tasks in their order, so the tile that another waits for is being run.
    for status in map(run, tiles) if pool is None else pool.map(run, tiles):
        if status != backward.DONE:
            raise RuntimeError("the optimal choice is not monotone in the successes of an arm")
    if corner is not None:
        backward.run_corner(horizon, top, rows.values, rows.at, chance, corner)


def _passes(horizon: int, mirror: bool) -> list[tuple[int, int]]:
    """The levels (n1) of each pass, from the highest to the lowest; level 0 is one by itself."""
    highest = horizon // 2 if mirror else horizon
    tops = range(highest, 0, -_LEVELS)
    return [(top, max(1, top - _LEVELS + 1)) for top in tops] + [(0, 0)]


def _level_states(horizon: int, n1: int, mirror: bool) -> int:
    """How many states of a level are computed."""
    rows = math.comb(horizon - n1 + 2, 2) - (math.comb(n1 + 1, 2) if mirror else 0)
    return (n1 + 1) * rows


class _Levels:
    """Memory for the rows of each level of two arms, by s1 and n2.

    Of arms that differ all rows are kept: a row is used at n1 >= s1, so that s1 + n2 <= horizon. Of arms that
    are alike (mirror) a level has those with n1 <= n2 <= horizon - n1 only. With each level come the rows of two
    more n2, n1 and horizon - n1, for each s1; as long as horizon + 2 together, they share a cell. The cells of an
    s1 > n1 are used again.
    """

    def __init__(self, horizon: int, mirror: bool) -> None:
        self.horizon, self.half, self.mirror = horizon, horizon // 2, mirror
        self.values = np.zeros(_row_bytes(horizon, mirror) // 8)
        if mirror:
            self.at = np.zeros((self.half + 2, horizon + 1), np.int64)
            # Where the cells begin that are free.
            self.free = np.arange(len(self.values) // (horizon + 2))[::-1] * (horizon + 2)
        else:
            lengths = np.tril(np.broadcast_to(np.arange(1, horizon + 2), (horizon + 1,) * 2))[::-1]
            ends = np.cumsum(lengths).reshape(lengths.shape)
            self.at = np.ascontiguousarray(ends - lengths)

    def begin(self, top: int, low: int) -> None:
        """Make room for the rows of s1 <= top that the levels down to `low` add."""
        if not self.mirror:
            return
        count = (top + 1) * (top - low + 1)
        taken, self.free = self.free[-count:].reshape(top + 1, -1), self.free[:-count]
        plays = np.arange(low, top + 1)
        self.at[: top + 1, low : top + 1] = taken
        # For as many plays of both arms as there are in all, one row is all.
        other = np.where(2 * plays == self.horizon, 0, plays + 1)
        self.at[: top + 1, self.horizon - plays] = taken + other

    def end(self, top: int, low: int) -> None:
        """Free the rows of s1 > low, which the level `low` does not have."""
        if not self.mirror:
            return
        old = self.at[low + 1 : top + 1, low : self.half + 1].ravel()
        older = self.at[top + 1, top + 1 : self.half + 1]
        self.free = np.concatenate([self.free, old, older])


def _row_bytes(horizon: int, mirror: bool) -> int:
    """The memory of the rows of two arms."""
    if not mirror:
        return 8 * math.comb(horizon + 3, 3)
    half = horizon // 2
    # During a pass: the rows down to n2 = low for all s1 <= top, and those above top for s1 = top + 1.
    cells = max((top + 1) * (half - low + 1) + half - top for top, low in _passes(horizon, mirror))
    return 8 * cells * (horizon + 2)


def _solve_three(
    prior: Bernoulli,
    horizon: int,
    first: int,
    keep: bool,
    pool: ThreadPoolExecutor | None,
    progress: Progress | None,
) -> tuple[dict[tuple[int, ...], float], Cuts]:
    """Two slices in turn."""
    from ..kernels import counts, three_arms

    # For each number of plays and each state which arms are best (decisions.py: ByStates).
    cuts: Cuts = np.zeros(math.comb(horizon + 5, 6) if keep else 0, np.uint8)
    chance = counts.chances(prior.alpha, prior.beta, horizon)
    offsets = [np.zeros((horizon + 2, horizon + 2), np.int64) for _ in range(2)]
    size = three_arms.offsets(horizon, offsets[horizon % 2])
    values = [np.zeros(size) for _ in range(2)]
    total = states(3, horizon) - states(3, first)
    for m in range(horizon - 1, first - 1, -1):
        three_arms.offsets(m, offsets[m % 2])
        after, before = (m + 1) % 2, m % 2
        best = cuts[math.comb(m + 5, 6) : math.comb(m + 6, 6) if keep else 0]
        slices = values[after], offsets[after], values[before], offsets[before]

        def step(n1: int, m: int = m, slices: Any = slices, best: Cuts = best) -> None:
            three_arms.step_backward(m, n1, n1 + 1, *slices, chance, best)

        # All of a slice before the next.
        list(map(step, range(m + 1)) if pool is None or m < 20 else pool.map(step, range(m + 1)))
        if progress is not None:
            progress(states(3, horizon) - states(3, m), total)
    if not first:
        return {(): float(values[0][0])}, cuts
    # After one play of each arm.
    at = values[1][offsets[1][1, 1] :]
    return {outcome: float(at[place]) for place, outcome in enumerate(np.ndindex(2, 2, 2))}, cuts
