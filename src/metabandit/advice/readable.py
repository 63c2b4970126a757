"""A formula that a person can read: the best of a few shapes with round numbers in them.

Shapes that were good on all kinds of problems, each with a grid of numbers, play the same problems with the
same rewards; the best quarter goes on to more problems. Exactly, in one round, where that is quick. Where a
time limit allows no more, some formulas are tried instead of all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from ..engine.limits import TimeLimit
from ..engine.task import Task, stream, versions
from ..errors import InputError
from ..language import length
from ..learning.judges import EXACTLY, SIMULATED, Judge, judging_method
from ..learning.measure import asked
from ..policies import IndexPolicy, Start
from ..policies.file import Expression, Origin, PolicyFile, rewards_of
from ..policies.start import PRIOR_COUNTS
from ..priors import Prior
from ..priors.families import Array
from ..settings import write_number
from .measuring import FEWEST, episode_size

_BONUS = (0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
_FACTOR = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5)
_LEAST = (0.05, 0.1, 0.2, 0.4)
# What all formulas together may take: plays times arms if simulated, seconds of a core if exact.
_WORK = 2e9
_SECONDS = 8.0
# Rounds, the best of which go on to the next, and how many do at least.
_ROUNDS, _SHARE, _LAST = 4, 4, 8
_MOST_PROBLEMS = 4096
# Formulas that are judged without a look at the clock.
_AT_ONCE = 8
# A step between the formulas that are tried one after the other: far apart, and all in the end.
_STRIDE = 89
# Quantiles that stand for the rewards of an arm.
_QUANTILES = 512
# Means of all arms vary this much more than those of one problem: arms of a problem are alike.
_ALIKE = 1.3
# Of formulas this much worse than the best at most, the shortest is taken.
_SAME = 1.003


def shapes(scale: float, *, unit: bool) -> Iterator[str]:
    """All formulas that are tried; `scale` is the size of rewards, `unit` whether they lie in [0, 1]."""
    bonus, factor, least = (
        [write_number(float(f"{scale * a:.3g}")) for a in grid]
        for grid in (_BONUS, _FACTOR, _LEAST)
    )
    yield "r"
    for a in bonus:
        yield f"r + {a}/n"
        yield f"r + {a}/sqrt(n)"
    for a, b in product(bonus, ("0.5", "1", "2", "3", "5", "10")):
        yield f"r + {a}/(n + {b})"
    for a, b in product(bonus, ("2", "3", "5")):
        yield f"r + {a}/max(n, {b})"
    for a in factor:
        yield f"r + {a}*sqrt(ln(h + 1)/n)"
    for a, b in product(factor, ("2", "5", "10", "30")):
        yield f"r + {a}*sqrt(ln(1 + h/{b})/n)"
    for a, b in product(("0.5*", "", "1.5*", "2*", "3*"), least):
        yield f"r + {a}(s + {b})/n"
        yield f"r + {a}(s + {b})/sqrt(n)"
    for a, b in product(("0.3*", "0.5*", "0.7*", "", "1.5*"), least):
        yield f"r + {a}(s + {b})*sqrt(ln(h + 1)/n)"
        yield f"r + {a}(s + {b})*ln(h + 1)/n"
    if unit:
        for a in bonus:
            yield f"sqrt(r) + {a}/n"
        for a, b in product(bonus, ("1", "3")):
            yield f"sqrt(r) + {a}/(n + {b})"


def _sample(prior: Prior, seed: int) -> tuple[Array, Array]:
    """Means of arms [problem, arm], and rewards of some of them [arm, reward]."""
    rng = np.random.default_rng(stream(seed, 5))
    parameters = prior.draw(rng, 1024)
    uniform = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    some = [
        prior.family.rewards(uniform, row) for problem in parameters[:64] for row in problem[:8]
    ]
    return np.asarray(prior.family.mean(parameters)), np.array(some)


def reward_scale(prior: Prior, seed: int) -> float:
    """About how far apart rewards lie, as a round number: 1 where they lie in [0, 1]."""
    if prior.family.in_unit_interval:
        return 1.0
    spread = 2.0 * float(np.std(_sample(prior, seed)[1]))
    power = 10.0 ** np.floor(np.log10(spread)) if spread > 0.0 else 1.0
    return float(power * min((1.0, 2.0, 5.0, 10.0), key=lambda step: abs(step - spread / power)))


def start_for(prior: Prior, seed: int) -> Start:
    """How what is searched for begins: with pseudo-observations that say the same as the prior.

    Where the prior has none of its own, they are as many plays as make the best linear estimate of an
    arm's mean, the variance of rewards over that of means, and have the mean and variance of rewards.
    Where that is less than one play, or arms of a problem are alike, each arm is played once.
    """
    if prior.counts() is not None:
        return Start(PRIOR_COUNTS).resolve(prior)
    means, rewards = _sample(prior, seed)
    noise, center = float(rewards.var(axis=1, ddof=1).mean()), float(means.mean())
    within = float(means.var(axis=1, ddof=1).mean())
    # Of arms with a common level the mean of all problems says little.
    if within <= 0.0 or noise < within or float(means.var()) > _ALIKE * within:
        return Start()
    plays = noise / within
    squares = None if prior.family.binary else plays * (noise + center**2)
    rounded = [x if x is None else float(f"{x:.3g}") for x in (plays, plays * center, squares)]
    return Start(PRIOR_COUNTS, *rounded).complete(binary=prior.family.binary)


def search_work(task: Task, effort: float) -> tuple[list[tuple[int, int]], float]:
    """The rounds of a search as (formulas, problems of each), and their plays times arms."""
    count = sum(1 for _ in shapes(1.0, unit=task.prior.family.in_unit_interval))
    share = int(_WORK * effort / (_ROUNDS * count * episode_size(task)))
    first = FEWEST * max(1, round(share / FEWEST))
    # Where the fewest problems are many already, later rounds grow less.
    growth = 2 if share < FEWEST else _SHARE
    rounds = []
    for number in range(_ROUNDS):
        problems = min(first * growth**number, max(first, _MOST_PROBLEMS))
        rounds.append((max(_LAST, count // _SHARE**number), problems))
    return rounds, sum(each * problems for each, problems in rounds) * episode_size(task)


def is_quick(task: Task, effort: float) -> bool:
    """Whether all formulas are evaluated exactly."""
    example = IndexPolicy("r", start=task.start)
    if judging_method(example, task) != EXACTLY:
        return False
    rounds, _ = search_work(task, effort)
    each = task.exact_seconds
    return rounds[0][0] * each <= _SECONDS * effort


def find_readable(
    task: Task, effort: float, clock: TimeLimit, tell: Callable[[float, str], None]
) -> PolicyFile | None:
    """The best formula for a task; it begins as task.start says. None if time allows no look at any."""
    prior = task.prior
    scale = reward_scale(prior, task.seed)
    policies = [
        IndexPolicy(text, start=task.start)
        for text in shapes(scale, unit=prior.family.in_unit_interval)
    ]
    method = EXACTLY if is_quick(task, effort) else SIMULATED
    rounds, _ = search_work(task, effort)
    if method == EXACTLY:
        rounds = [(len(policies), 1)]
    left, values, tried = _race(task, policies, method, rounds, clock, tell)
    if not left:
        return None
    if not np.isfinite(values[left[0]]):
        raise InputError(
            f"no formula can be played on problems of {prior}: their indices are not finite numbers "
            f"there; see whether the prior's rewards are"
        )
    alike = [i for i in left if values[i] <= values[left[0]] * _SAME]
    best = policies[min(alike, key=lambda i: length(policies[i].tree))]
    content = Expression(expression=best.name, parameters={}, start=task.start)
    origin = Origin(
        **asked(task),
        **rewards_of(prior),
        space="readable formulas",
        protocol="advise",
        optimizer="exhaustive" if method == EXACTLY else "halving",
        stopped="finished" if tried == len(policies) else "time limit",
        generations=len(rounds),
        evaluations=tried,
        versions=versions(),
    )
    return PolicyFile(policy=content, learned=origin)


def _race(
    task: Task,
    policies: Sequence[IndexPolicy],
    method: str,
    rounds: Sequence[tuple[int, int]],
    clock: TimeLimit,
    tell: Callable[[float, str], None],
) -> tuple[list[int], Array, int]:
    """The formulas that are left in the end, best first; the mean regret of all; how many were tried."""
    judge = Judge(task, method, seed=stream(task.seed, 6))
    means, played, tried = np.full(len(policies), np.inf), 0, 0
    left = [place * _STRIDE % len(policies) for place in range(len(policies))]
    assert len(set(left)) == len(left), "the stride divides the number of formulas"
    for number, (count, problems) in enumerate(rounds):
        left = left[:count]
        judge.problems = problems
        # The first round may take half of the time.
        mine = clock.part(0.5) if number == 0 and len(rounds) > 1 else clock
        found: dict[int, float] = {}
        took = 0.0
        for first in range(0, len(left), _AT_ONCE):
            tell((number + first / len(left)) / len(rounds), f"{len(left)} formulas")
            some = left[first : first + _AT_ONCE]
            begun = time.monotonic()
            if not mine.allows(took):
                break
            values, _ = judge.judge([policies[i] for i in some], number)
            found |= zip(some, values.tolist(), strict=True)
            took = time.monotonic() - begun
        tried = max(tried, len(found))
        if number and len(found) < len(left):
            break  # who played more problems than others is not compared with them
        for i, value in found.items():
            before = played * means[i] if number else 0.0
            means[i] = (before + problems * value) / (played + problems)
        played += problems
        left = sorted(found, key=lambda i: float(means[i]))
    return left, means, tried
