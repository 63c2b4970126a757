"""What takes how long and how much memory: one model, which everybody asks.

The figures are for planning: they say which method is cheaper, how work is cut and how many problems
are drawn. They depend on the task only, never on the machine, or results would too.

A core simulates about PLAYS plays times arms per second (three times as many with the simplest
index), and exact evaluation passes through about 8e8 states of two arms per second, 1e8 of three.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from ..bayes.batches import batch_seconds
from ..bayes.induction import is_mirrored, optimum_bytes, slice_bytes, states
from ..bayes.optimum import has_optimum
from ..decisions import Index
from ..feedback import IMMEDIATE, Feedback
from ..language import Tree, operators
from ..memory import LONGEST, check_memory, check_time, duration, free_memory
from ..policies import IndexPolicy, Plan, Policy
from ..priors import Bernoulli, Prior, Table
from ..priors.families import BETA
from .problems import GROUP
from .simulated import MOST_LANES
from .states import LONG, mirrors

# Episodes of a part of the work.
MOST_EPISODES = 16_384

# Plays times arms that a core simulates per second: with a typical policy, and with a simple index.
PLAYS = 2e8
SIMPLE_PLAYS = 3 * PLAYS
# Cores that plans count on.
CORES = 2
# Plays that an exact evaluation can have; batches pass through so many states that it is fewer.
MOST_PLAYS = 4096
# Where many policies are judged, each is evaluated exactly if that takes this many seconds.
EXACT_SECONDS = 0.15
# Seconds after which a person is told how long something takes.
_PATIENCE = 20.0
# Episodes after which the standard error of a typical policy is 0.1 % of its regret.
EPISODES_FOR_COMPARISON = 1_000_000


def simulation_seconds(prior: Prior, horizon: int, episodes: float) -> float:
    """About how many seconds a core takes to let a policy play these episodes."""
    return float(episodes) * horizon * prior.arms / PLAYS


def coarse_plays(arms: int, horizon: int, growth: float) -> float:
    """Plays one at a time that take as long as these on a coarse clock of this growth, if any."""
    if not growth:
        return float(horizon)
    # Blocks of the best arm, and of arms that are played a thousandth of the time.
    best, others = (1.0 + math.log(max(growth * plays, 1.0)) for plays in (horizon, horizon / 1e3))
    return min(float(horizon), 3.0 * (best + (arms - 1) * others) / growth)


def exact_seconds(
    prior: Prior, horizon: int, problems: int = 0, *, feedback: Feedback = IMMEDIATE
) -> float:
    """About how many seconds one policy takes on one thread, with its regret on this many problems.

    The problems of a table need not be counted: they are known.
    """
    problems = len(prior.means) if isinstance(prior, Table) else problems
    if prior.arms > 2:
        final = states(3, horizon) - states(3, horizon - 1) if prior.arms == 3 else 0
        return states(prior.arms, horizon) / 1e8 + problems * final / 2e8
    # Short horizons have little to compute, but every problem has its pass.
    on_problems = problems * (horizon**3 / 1e10 + horizon / 1e7) + (5e-4 if problems else 0.0)
    if feedback != IMMEDIATE and horizon > MOST_PLAYS:
        return math.inf
    if feedback != IMMEDIATE:
        # Of a batch, the indices of each play and the states that it leads to.
        ends = [0, *feedback.ends(horizon)]
        passed = sum(
            math.comb(after + 3, 3) * (after - made + 3) + (made + 1) ** 2 * (after - made) ** 2
            for made, after in pairwise(ends)
        )
        return passed / 5e7 + on_problems
    return states(2, horizon) / 8e8 + on_problems


def trial_seconds(
    prior: Prior, horizon: int, points: int, *, feedback: Feedback = IMMEDIATE
) -> float:
    """About how many seconds the characteristics of a trial take, at this many points."""
    final = states(prior.arms, horizon) - states(prior.arms, max(horizon - 1, 0))
    return (
        2.0 * exact_seconds(prior, horizon, feedback=feedback)
        + final * (5e-7 + points * 3e-8)
        + points * 1e-3
    )


def optimum_seconds(prior: Prior, horizon: int, feedback: Feedback = IMMEDIATE) -> float:
    """About how many seconds the optimum takes on one thread; infinite if it is not known."""
    if not has_optimum(prior, feedback) or (feedback != IMMEDIATE and horizon > MOST_PLAYS):
        return math.inf
    if feedback != IMMEDIATE:
        return batch_seconds(feedback, horizon)
    if isinstance(prior, Table):
        rows = len(prior.means) * (math.comb(horizon + 3, 3) / 2e9 + horizon * horizon / 2e7)
        return states(2, horizon) / 4e8 + rows
    if prior.arms == 2:
        assert isinstance(prior, Bernoulli)
        return states(2, horizon) / (2.5e9 if is_mirrored(prior) else 1.25e9)
    return states(prior.arms, horizon) / 1e8


def optimum_memory(prior: Prior, horizon: int, feedback: Feedback = IMMEDIATE) -> int:
    """The bytes that the optimum of Bernoulli arms takes with immediate feedback; 0 for others."""
    if type(prior) is not Bernoulli or not has_optimum(prior, feedback) or feedback != IMMEDIATE:
        return 0
    return optimum_bytes(prior, horizon)


def program_seconds(prior: Prior, horizon: int) -> float:
    """The same for one of many programs of two arms, of which a table's mean regret is all that is asked."""
    return states(2, horizon) / (4e8 if isinstance(prior, Table) else 8e8)


def exact_is_cheaper(prior: Prior, horizon: int, feedback: Feedback = IMMEDIATE) -> bool:
    """Whether exact evaluation takes less than simulating to 0.1 % of the regret."""
    work = EPISODES_FOR_COMPARISON * horizon * prior.arms
    return exact_seconds(prior, horizon, feedback=feedback) <= work / SIMPLE_PLAYS


def slowness(policy: Policy) -> float:
    """By which factor plays count against the budget of a search, beside those of a simple index.

    Roughly how much longer a play takes; an index with a rate or needed plays takes hardly longer, but
    results with the same seed and effort depend on these factors.
    """
    if not isinstance(policy, IndexPolicy) or len(policy.trees) > 1:
        return policy.slowness
    return _index_slowness(policy.tree)


def _index_slowness(tree: Tree) -> float:
    used = operators(tree)
    if used & {"beta_quantile", "beta_optimist"}:
        return 200.0
    return 6.0 if "kl_upper" in used else 1.0


def _slowness_of_plan(plan: Plan) -> float:
    """About how many times longer a play takes than with a typical policy; 1 for quicker ones."""
    if not isinstance(plan.decision, Index):
        return 1.0
    return max(1.0, _index_slowness(plan.decision.tree) * PLAYS / SIMPLE_PLAYS)


def reward_slowness(prior: Prior) -> float:
    """About how many times longer a play takes than with the rewards of other families."""
    return 60.0 if prior.family == BETA else 1.0


def check_exact(
    prior: Prior,
    horizon: int,
    plans: Sequence[Plan],
    *,
    at_once: int = 1,
    feedback: Feedback = IMMEDIATE,
) -> None:
    """Refuse an exact evaluation that does not fit in memory or time, with this many policies at once."""
    mirror = feedback == IMMEDIATE and all(mirrors(plan, prior) for plan in plans)
    needed = slice_bytes(prior.arms, horizon, mirror=mirror)
    if feedback != IMMEDIATE:
        # Of a batch: the indices of each play, and the chances of what it can bring (states.Batches).
        most = max(after - made for made, after in pairwise([0, *feedback.ends(horizon)]))
        needed = 2 * needed + 16 * (horizon + 1) * (most * most + (most + 1) ** 2)
    told = "" if feedback == IMMEDIATE else f" with {feedback}"
    what = f"exact evaluation for {prior.arms} arms and {horizon} plays{told}"
    remedy = "choose a shorter horizon, or the method monte-carlo"
    check_memory(at_once * needed, what, remedy)
    seconds = exact_seconds(prior, horizon, feedback=feedback)
    check_time(len(plans) * seconds, what, remedy)


def check_simulation(
    prior: Prior,
    horizon: int,
    *,
    policies: int,
    problems: int,
    runs: int = 1,
    threads: int = 1,
    plans: Sequence[Plan] = (),
    announce: Callable[[str], None] | None = None,
) -> None:
    """Refuse a simulation that does not fit in memory or time; tell how long one takes that does.

    problems, runs: what each policy plays
    plans: the policies, if they are known; others are taken as typical
    """
    episodes = problems * runs
    # A few episodes take as long as all that can be played in step.
    seconds = reward_slowness(prior) * simulation_seconds(prior, horizon, max(episodes, MOST_LANES))
    seconds *= sum(map(_slowness_of_plan, plans)) + policies - len(plans)
    fit = int(episodes * LONGEST / seconds) if seconds else episodes
    check_time(
        seconds,
        f"to simulate {episodes:,} episodes of {horizon:,} plays of {prior.arms:,} arms, {policies:,} "
        f"{'policy' if policies == 1 else 'policies'} each",
        f"choose at most {fit:,} episodes" if fit else "choose a shorter horizon",
    )
    # Problems are drawn in groups; a thread plays some in step, and keeps the regret at checkpoints.
    group = 8 * GROUP * prior.arms * (2 + len(prior.family.parameters))
    lanes, kept = 64 * MOST_LANES * prior.arms, 400
    fit = int(max(0.0, free_memory() - group) / threads - lanes) // kept
    check_memory(
        group + threads * (lanes + kept * min(episodes, max(MOST_EPISODES, runs))),
        f"to simulate problems of {prior.arms:,} arms, {runs:,} episodes each, with {threads} threads",
        f"choose at most {fit:,} runs per problem" if fit > 0 else "choose fewer arms or threads",
    )
    announce_time(seconds, min(threads, -(-episodes // MOST_LANES)), announce)


def announce_time(
    seconds: float,
    threads: int,
    announce: Callable[[str], None] | None = None,
    *,
    memory: int = 0,
) -> None:
    """Tell how long something takes that is not over at once, and how much memory if that is known."""
    cores = min(threads, CORES)
    if announce is not None and _PATIENCE < seconds / cores <= LONGEST:
        room = f" and {memory / 1e9:.2g} GB of memory" if memory else ""
        announce(f"this takes about {duration(seconds / cores)}{room} ...")


def at_once(horizon: int, threads: int, plans: int) -> int:
    """How many policies are evaluated exactly at once: long ones share the threads instead."""
    return min(threads, plans) if horizon <= LONG else 1
