"""The best that any strategy can do with two Bernoulli arms whose rewards are known at batch ends only.

Backward induction over batches. Let f(k) be what can be expected in a state before a batch of B plays, k of
which go to arm 1: the rewards of the batch and the value of the state after it (kernels/batches.py has the
equation). A strategy that is free gets max_k f(k). With a minimum share q it gives arm 1 a probability
between q and 1 - q at each play, so that it gets u_0(0), with k the plays of arm 1 among the first j:

    u_B(k) = f(k),   u_j(k) = q (u_{j+1}(k + 1) + u_{j+1}(k)) + (1 - 2 q) max(u_{j+1}(k + 1), u_{j+1}(k)).

The values of each number of plays of arm 2 come from those after the batch by single plays: of arm 2
first, then of arm 1, whose rewards are counted on the way.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..feedback import Feedback
from ..memory import check_memory, check_time
from ..priors import Bernoulli
from ..priors.families import Array
from ..progress import Progress

# States that a core passes through per second.
SPEED = 5e8


def batch_seconds(feedback: Feedback, horizon: int) -> float:
    """About how long it takes on one core."""
    return sum(_work(feedback, horizon)) / SPEED


def _work(feedback: Feedback, horizon: int) -> list[int]:
    """About how many states are passed through for each batch."""
    return [
        math.comb(after + 3, 3) * (size + 1) * (size + 2) // 2 * (6 if feedback.min_share else 1)
        for after, size in _batches(feedback, horizon)
    ]


def _batches(feedback: Feedback, horizon: int) -> list[tuple[int, int]]:
    """The plays after each batch, and those of it."""
    return [(after, after - made) for made, after in pairwise([0, *feedback.ends(horizon)])]


def solve_batches(
    prior: Bernoulli,
    horizon: int,
    feedback: Feedback,
    *,
    each_once: bool,
    threads: int,
    progress: Progress | None,
) -> float:
    """The expected reward of the best strategy with these batches and this minimum share."""
    from ..kernels import batches, counts

    what = f"the optimum for 2 arms and {horizon} plays in batches"
    # What every plan of batches needs is looked at before the plan is made, which may be long itself.
    check_memory(32 * math.comb(horizon + 3, 3), what, "choose a shorter horizon")
    plan, work = _batches(feedback, horizon), _work(feedback, horizon)
    threads = min(threads, max(size for _, size in plan) + 1)
    share, entries = feedback.min_share, (3 * threads + 1) * math.comb(horizon + 3, 3)
    if share:
        entries += (max(size for _, size in plan) + 1) * math.comb(horizon + 3, 3)
    check_memory(8 * entries, what, "choose a shorter horizon")
    check_time(sum(work) / SPEED, what, "choose a shorter horizon, or smaller batches")
    chance = counts.chances(prior.alpha, prior.beta, horizon)
    layout = counts.layout(horizon, False)
    value = np.zeros(layout[0][-1])

    def best_of(made: int, size: int, least: int, most: int, parts: int, part: int) -> Array:
        """The best with `part`, part + parts, ... plays of arm 2, of `least` to `most` plays."""
        best = np.full(len(value), -np.inf)
        batches.best_of_batch(
            made, size, least, most, part, parts, value.copy(), np.empty(len(value)), best, layout, chance
        )  # fmt: skip
        return best

    def given(made: int, size: int, second: int) -> Array:
        """What can be expected with so many plays of arm 2: the blocks of the states before them."""
        return best_of(made, size, second, second, size + 1, second)[: layout[0][made + 1]].copy()

    with ThreadPoolExecutor(threads) as pool:
        for place in range(len(plan) - 1, -1, -1):
            after, size = plan[place]
            made = after - size
            if share:
                found = pool.map(partial(given, made, size), range(size, -1, -1))
                _keep_best(value, list(found), made, share, layout, each_once=each_once)
            else:
                # A start that plays each arm once gives play 1 to arm 1 and play 2 to arm 2.
                least = 1 if each_once and made <= 1 < after else 0
                most = size - 1 if each_once and made == 0 else size
                found = pool.map(partial(best_of, made, size, least, most, threads), range(threads))
                value = np.maximum.reduce(list(found))
            if progress is not None:
                progress(sum(work[place:]), sum(work))
    return float(value[0])


def _keep_best(
    value: Array,
    found: list[Array],
    made: int,
    share: float,
    layout: tuple[Any, Any],
    *,
    each_once: bool,
) -> None:
    """Put u_0(0) of the states after `made` plays into `value`, from f(0), f(1), ... of each."""
    offset, stride = layout
    for n1 in range(made + 1):
        begin, end, n2 = offset[n1], offset[n1] + (n1 + 1) * stride[n1], made - n1
        u = np.stack([some[begin:end].reshape(n1 + 1, -1)[:, : n2 + 1] for some in found])
        for j in range(len(found) - 2, -1, -1):
            first, second = u[1:], u[:-1]
            best = np.maximum(first, second)
            # An arm without any play is next, arm 1 before arm 2.
            if each_once and n2 == 0:
                best[j] = second[j]
            if each_once and n1 == 0:
                best[0] = first[0]
            u = share * (first + second) + (1.0 - 2.0 * share) * best
        value[begin:end].reshape(n1 + 1, -1)[:, : n2 + 1] = u[0]
