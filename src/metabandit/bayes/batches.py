"""The best that any strategy can do that decides a whole batch at once, for two Bernoulli arms.

Backward induction over batches; kernels/batches.py has the equation. The values of each number of plays
of arm 2 come from those after the batch by single plays: of arm 2 first, then of arm 1, whose rewards
are counted on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from ..memory import check_memory, check_time
from ..priors import Bernoulli
from ..priors.families import Array
from .induction import Progress


def batch_work(ends: Sequence[int]) -> list[int]:
    """About how many states are passed through for each batch; `ends` begins with 0."""
    return [
        math.comb(after + 3, 3) * (after - made + 1) * (after - made + 2) // 2
        for made, after in pairwise(ends)
    ]


def solve_batches(
    prior: Bernoulli,
    ends: Sequence[int],
    *,
    each_once: bool,
    threads: int,
    progress: Progress | None,
) -> float:
    """The expected reward of the best strategy with batches that end after these plays."""
    from ..kernels import batches, counts

    horizon = ends[-1]
    threads = min(threads, max(after - made for made, after in pairwise([0, *ends])) + 1)
    check_memory(
        (3 * threads + 1) * 8 * math.comb(horizon + 3, 3),
        f"the optimum for 2 arms and {horizon} plays in batches",
        "choose a shorter horizon",
    )
    check_time(
        sum(batch_work([0, *ends])) / 5e8,
        f"the optimum for 2 arms and {horizon} plays in batches",
        "choose a shorter horizon, or smaller batches",
    )
    chance = counts.chances(prior.alpha, prior.beta, horizon)
    layout = counts.layout(horizon, False)
    value = np.zeros(layout[0][-1])
    ends = [0, *ends]
    work = batch_work(ends)

    def best_of(part: int, made: int, size: int) -> Array:
        best = np.full(len(value), -np.inf)
        # A start that plays each arm once gives play 1 to arm 1 and play 2 to arm 2.
        least = 1 if each_once and made <= 1 < made + size else 0
        most = size - 1 if each_once and made == 0 else size
        batches.best_of_batch(
            made, size, least, most, part, threads, value.copy(), np.empty(len(value)), best,
            layout, chance,
        )  # fmt: skip
        return best

    with ThreadPoolExecutor(threads) as pool:
        for position in range(len(ends) - 2, -1, -1):
            made, size = ends[position], ends[position + 1] - ends[position]
            parts = pool.map(lambda part, m=made, s=size: best_of(part, m, s), range(threads))
            value = np.maximum.reduce(list(parts))
            if progress is not None:
                progress(sum(work[position:]), sum(work))
    return float(value[0])
