"""What takes how long and how much memory: one model, which everybody asks.

The figures are for planning: they say which method is cheaper, how work is cut and how many problems
are drawn. They depend on the task only, never on the machine, or results would too.

A core simulates about PLAYS plays times arms per second (three times as many with the simplest
index), and exact evaluation passes through about 8e8 states of two arms per second, 1e8 of three.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..bayes.induction import slice_bytes, states
from ..language import operators
from ..memory import check_memory
from ..policies import IndexPolicy, Plan, Policy
from ..priors import Prior, Table
from ..priors.families import BETA
from .states import LONG, mirrors

# Plays times arms that a core simulates per second: with a typical policy, and with a simple index.
PLAYS = 2e8
SIMPLE_PLAYS = 3 * PLAYS
# Cores that plans count on.
CORES = 2
# Episodes after which the standard error of a typical policy is 0.1 % of its regret.
EPISODES_FOR_COMPARISON = 1_000_000


def simulation_seconds(prior: Prior, horizon: int, episodes: float) -> float:
    """About how many seconds a core takes to let a policy play these episodes."""
    return float(episodes) * horizon * prior.arms / PLAYS


def exact_seconds(prior: Prior, horizon: int, problems: int = 0) -> float:
    """About how many seconds one policy takes on one thread, with its regret on this many problems.

    The problems of a table need not be counted: they are known.
    """
    if prior.arms > 2:
        return states(prior.arms, horizon) / 1e8
    problems = len(prior.means) if isinstance(prior, Table) else problems
    return states(2, horizon) / 8e8 + problems * horizon**3 / 1e10


def optimum_seconds(prior: Prior, horizon: int) -> float:
    """About how many seconds the optimum takes on one thread."""
    return states(prior.arms, horizon) / (1e9 if prior.arms == 2 else 1e8)


def exact_is_cheaper(prior: Prior, horizon: int) -> bool:
    """Whether exact evaluation takes less than simulating to 0.1 % of the regret."""
    work = EPISODES_FOR_COMPARISON * horizon * prior.arms
    return exact_seconds(prior, horizon) <= work / SIMPLE_PLAYS


def slowness(policy: Policy) -> float:
    """By which factor plays count against the budget of a search, beside those of a simple index.

    Roughly how much longer a play takes; an index with a rate or needed plays takes hardly longer, but
    results with the same seed and effort depend on these factors.
    """
    if not isinstance(policy, IndexPolicy) or len(policy.trees) > 1:
        return 3.0
    used = operators(policy.tree)
    if "beta_quantile" in used:
        return 200.0
    return 6.0 if "kl_upper" in used else 1.0


def reward_slowness(prior: Prior) -> float:
    """About how many times longer a play takes than with the rewards of other families."""
    return 60.0 if prior.family == BETA else 1.0


def check_exact_memory(
    prior: Prior, horizon: int, plans: Sequence[Plan], *, at_once: int = 1
) -> None:
    """Refuse an exact evaluation that does not fit in memory, with this many policies at once."""
    mirror = all(mirrors(plan, prior) for plan in plans)
    check_memory(
        at_once * slice_bytes(prior.arms, horizon, mirror=mirror),
        f"exact evaluation for {prior.arms} arms and {horizon} plays",
        "choose a shorter horizon, or the method monte-carlo",
    )


def at_once(horizon: int, threads: int, plans: int) -> int:
    """How many policies are evaluated exactly at once: long ones share the threads instead."""
    return min(threads, plans) if horizon <= LONG else 1
