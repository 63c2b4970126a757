"""A formula that a person can read: the best of a few shapes with round numbers in them.

Shapes that were good on all kinds of problems, each with a grid of numbers, play the same problems with the
same rewards; the worse half goes, and those that are left play twice as many. Exactly, in one round, where that
is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from ..engine import costs
from ..engine.task import Task, stream, versions
from ..errors import InputError
from ..language import length
from ..learning.judges import EXACTLY, SIMULATED, Judge, judging_method
from ..learning.measure import asked
from ..policies import IndexPolicy
from ..policies.file import Expression, Origin, PolicyFile, rewards_of
from ..priors import Prior
from ..priors.families import Array
from ..settings import write_number

_BONUS = (0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
_FACTOR = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5)
_LEAST = (0.05, 0.1, 0.2, 0.4)
# What all formulas together may take: plays times arms if simulated, seconds of a core if exact.
_WORK = 1.2e9
_SECONDS = 8.0
_LEAST_PROBLEMS = 16
_LAST = 8
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


def reward_scale(prior: Prior, seed: int) -> float:
    """About how far apart rewards lie, as a round number: 1 where they lie in [0, 1]."""
    if prior.family.in_unit_interval:
        return 1.0
    rng = np.random.default_rng(stream(seed, 5))
    parameters = prior.draw(rng, 256)
    uniform = rng.random(16)
    drawn = [prior.family.rewards(uniform, row) for problem in parameters for row in problem[:8]]
    spread = 2.0 * float(np.std(drawn))
    power = 10.0 ** np.floor(np.log10(spread)) if spread > 0.0 else 1.0
    return float(power * min((1.0, 2.0, 5.0, 10.0), key=lambda step: abs(step - spread / power)))


def find_readable(task: Task, progress: Callable[[float, str], None]) -> tuple[str, PolicyFile]:
    """The best formula for a task, as text and as a policy file; it begins as task.start says."""
    prior, horizon = task.prior, task.horizon
    scale = reward_scale(prior, task.seed)
    policies = [
        IndexPolicy(text, start=task.start)
        for text in shapes(scale, unit=prior.family.in_unit_interval)
    ]
    method = judging_method(policies[0], task)
    seconds = costs.exact_seconds(prior, horizon, feedback=task.feedback) * len(policies)
    if method == EXACTLY and seconds > _SECONDS * task.effort:
        method = SIMULATED
    rounds = 1 if method != SIMULATED else int(np.ceil(np.log2(len(policies) / _LAST))) + 1
    left, values = _halve(task, policies, method, rounds, progress)
    if not np.isfinite(values[left[0]]):
        raise InputError(
            f"no formula can be played on problems of {prior}: their indices are not finite numbers "
            f"there; see whether the prior's rewards are"
        )
    alike = [i for i in left.tolist() if values[i] <= values[left[0]] * _SAME]
    best = policies[min(alike, key=lambda i: length(policies[i].tree))]
    content = Expression(expression=best.name, parameters={}, start=task.start)
    origin = Origin(
        **asked(task),
        **rewards_of(prior),
        space="readable formulas",
        protocol="advise",
        optimizer="exhaustive" if method == EXACTLY else "halving",
        stopped="finished",
        generations=rounds,
        evaluations=len(policies),
        versions=versions(),
    )
    return best.name, PolicyFile(policy=content, learned=origin)


def _halve(
    task: Task,
    policies: Sequence[IndexPolicy],
    method: str,
    rounds: int,
    progress: Callable[[float, str], None],
) -> tuple[npt.NDArray[np.int64], Array]:
    """The formulas that are left in the end, best first, and the mean regret of all."""
    judge = Judge(task, method, seed=stream(task.seed, 6))
    plays = rounds * len(policies) * task.horizon * task.prior.arms
    share = _WORK * task.effort / plays / costs.reward_slowness(task.prior)
    first = max(_LEAST_PROBLEMS, int(share))
    sums, problems = np.zeros(len(policies)), 0
    left = np.arange(len(policies))
    for number in range(rounds):
        progress(number / rounds, f"{len(left)} formulas, round {number + 1} of {rounds}")
        judge.problems = first << number
        values, _ = judge.judge([policies[i] for i in left.tolist()], number)
        sums[left] += judge.problems * values
        problems += judge.problems
        order = left[np.argsort(sums[left], kind="stable")]
        left = order if number == rounds - 1 else order[: max(_LAST, len(order) // 2)]
    return left, sums / problems
