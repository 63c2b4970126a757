"""Simulated evaluation: any prior, any number of arms, any policy.

Problems depend on the seed and their numbers only, rewards on (seed, episode, arm, pull) only, and
sums over blocks of problems are added up in order: neither threads nor workers nor the size of blocks
change a result. All policies of a comparison play the same problems with the same rewards.

With regret R_i on problem i of N (the mean over its runs), mean regret is the mean of R_i, its
standard error the deviation of R_i over sqrt(N), and differences of policies are paired by problem.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from ..decisions import (
    Belief,
    BetaBelief,
    ByBelief,
    ByBonus,
    ByCuts,
    ByEpochs,
    ByPosterior,
    ByStates,
    ByTable,
    ByTest,
    Decision,
    Index,
    Own,
)
from ..errors import IndexFault, InputError, compiling
from ..feedback import COUNT, IGNORE, IMMEDIATE, PATIENCE, Feedback
from ..memory import check_memory
from ..policies import Plan
from ..priors import Bernoulli, Prior
from ..priors.families import BERNOULLI, GAUSSIAN, Array
from .precision import Precision
from .problems import problem_source, regret_means
from .threads import in_threads

# Episodes that are played in step; as kernels.rows.MOST_LANES, which would load numba.
MOST_LANES = 512
# Episodes that each of many policies plays before all go on to the next problems.
_MOST_AT_ONCE = 131_072
# Arms times points of their distributions; 1 KB each.
_MOST_CELLS = 100_000
# Memory for plays that wait, about the size of a core's cache.
_KEPT_BYTES = 1 << 21


@dataclass(frozen=True)
class Sampling:
    """Which episodes are played, and what is kept of them.

    runs: episodes per problem; seed: of the problems; reward_seed: of the rewards, `seed` by default
    checkpoints: plays after which regret is taken; lanes: episodes played in step
    keep_plays, keep_regret: whether plays and regret of each problem are kept
    simple: whether the regret of many policies is simple regret
    posterior: whether it is the expectation given what was seen, which has the same mean over
        problems and less noise
    growth: on a coarse clock, the share of its plays that an arm is played at once (kernels/coarse.py)
    """

    runs: int = 1
    seed: int = 0
    reward_seed: int | None = None
    checkpoints: tuple[int, ...] = ()
    lanes: int = MOST_LANES
    keep_plays: bool = False
    keep_regret: bool = True
    simple: bool = False
    posterior: bool = False
    growth: float = 0.0


# What a chunk adds, by name. Sums over its problems: `total` and `squares` of regret at each checkpoint and of
# simple regret, which is the last column, [policy, checkpoint]; `products` of regret at the horizon,
# [policy, policy]; `plays` [policy, arm]. If they are kept: `regret` [policy, problem] and `problem_plays`
# [policy, arm, problem].
Sums = dict[str, npt.NDArray[Any]]
SUMMED = ("total", "squares", "products", "plays")


class Played(NamedTuple):
    """A policy as the simulator takes it, and the type of lanes that it plays in."""

    behaviour: Any
    program: Any
    decide: Any
    draw: Any
    kind: Any


def is_compiled(kind: Any = np.float32) -> bool:
    """Whether the simulator is in numba's cache on disk, so that it starts at once."""
    from ..kernels import jit, simulator

    return jit.is_cached(_simulator(simulator, kind))


def _simulator(kernel: Any, kind: Any) -> Any:
    return kernel.simulate if kind is np.float32 else kernel.simulate_precisely


def announce_compilation(
    announce: Callable[[str], None],
    prior: Prior,
    horizon: int,
    played: Sequence[tuple[Array | None, Decision | None]],
) -> None:
    """Say so if the simulator must be compiled first for these pseudo-observations and decisions."""
    precision = Precision.of(prior, horizon)
    if not all(is_compiled(precision.kind(*item)) for item in played):
        announce("compiling the simulator for this machine, once (about half a minute) ...")


def has_posterior(prior: Prior, horizon: int) -> bool:
    """Whether the expectation of regret given the plays is known, and smooth and small enough to compute.

    Of arms that are known better than by 1e5 plays, float32 would be off by more than 0.1 %.
    """
    if type(prior) is not Bernoulli or min(*prior.alpha, *prior.beta) < 0.5:
        return False
    if max(*prior.alpha, *prior.beta) > 1e5:
        return False
    from ..kernels import posterior

    known = max(a + b for a, b in zip(prior.alpha, prior.beta, strict=True))
    return prior.arms * posterior.cells(horizon + known) <= _MOST_CELLS


@cache
def _compiled_rule(function: Callable[..., Any], name: str, kind: Any) -> Any:
    from ..kernels.decide import compile_choice

    with compiling(f"the rule of the policy {name}"):
        return compile_choice(function, kind)


def feedback_obstacle(plan: Plan, feedback: Feedback) -> str | None:
    """Why a policy cannot be played with this feedback, or None."""
    decision = plan.decision
    if isinstance(decision, (ByCuts, ByStates)) and feedback.waits:
        return (
            "the table of the optimal policy is for rewards that are known at once; "
            "metabandit optimal has the floor for batches, and gittins plays them"
        )
    if isinstance(decision, ByEpochs) and feedback.waits and feedback.pending == IGNORE:
        return "its epochs count all plays, so those that wait cannot be ignored"
    if isinstance(decision, ByTest) and feedback.waits and feedback.pending == IGNORE:
        return "its split counts all plays, so those that wait cannot be ignored"
    return None


def coarse_obstacle(prior: Prior, plan: Plan, feedback: Feedback) -> str | None:
    """Why a policy cannot be played on a coarse clock, or None."""
    decision = plan.decision
    if not isinstance(decision, Index) or decision.rate is not None or decision.needed is not None:
        return "only an index without random or needed plays stays the same while nothing becomes known"
    if feedback != IMMEDIATE:
        return "rewards that come later are played one at a time"
    if prior.family not in (BERNOULLI, GAUSSIAN):
        return f"sums of rewards of the family {prior.family.name} cannot be drawn at once"
    return None


def _waiting(arms: int, horizon: int, feedback: Feedback) -> Any:
    """Feedback as the simulator takes it."""
    from ..kernels import waiting

    mean = feedback.mean_delay
    counted = not feedback.waits or feedback.pending == COUNT
    nothing = np.zeros(0, np.int64)
    return waiting.Waiting(
        known=feedback.known(horizon) if feedback.waits and mean is None else nothing,
        ends=nothing if mean is None else feedback.next_end(horizon),
        scale=0.0 if mean is None else 1.0 / math.log(mean / (1.0 + mean)),
        counted=counted,
        share=feedback.min_share,
        patience=float(PATIENCE * arms) if counted else math.inf,
        together=feedback.waits and feedback.delay == 0 and feedback.pending == COUNT,
    )


def _believed(belief: Belief) -> Array:
    """What is believed, as numbers: a and b of each arm, or mean, plays and noise."""
    if isinstance(belief, BetaBelief):
        return np.ravel(belief.pairs).astype(np.float64)
    return np.array([belief.mean, belief.plays, belief.noise])


def _lookahead(decision: ByBelief) -> Any:
    """The function of a rule that compares all arms."""
    from ..kernels import lookahead

    beta = isinstance(decision.belief, BetaBelief)
    if decision.rule == "ada-ucb":
        return lookahead.adaptive
    if decision.rule in ("kg", "kg-star"):
        return lookahead.knowledge_beta if beta else lookahead.knowledge_normal
    return lookahead.shared_beta if beta else lookahead.shared_normal


def _interpret(plan: Plan, precision: Precision, feedback: Feedback, waiting: Any) -> Played:
    """A policy as the simulator takes it."""
    from ..kernels import machine, simulator

    if (why := feedback_obstacle(plan, feedback)) is not None:
        raise InputError(f"{plan.name} cannot be played with {feedback}: {why}")
    decision, kind = plan.decision, precision.kind(plan.counts, plan.decision)
    rate, needed = plan.exceptions(precision.horizon)
    if isinstance(decision, Index):
        program = machine.load(decision.program(), False)
        if len(needed):
            # The indices of all arms are set again at each step.
            program = program._replace(varies=True)
        function, memory, parameters = simulator.idle, 0, np.zeros(1)
    else:
        reads_s = isinstance(decision, ByTest) and decision.alpha is not None
        program = machine.load(None, reads_s or isinstance(decision, Own))
        plain = not feedback.waits and feedback.min_share == 0.0 and kind is np.float32
        function, memory, parameters = _decider(plan, precision.horizon, plain=plain)
    behaviour = simulator.Behaviour(
        plan.each_once,
        np.ascontiguousarray(plan.counts, dtype=np.float64),
        isinstance(decision, Index),
        rate,
        needed,
        parameters,
        memory,
        waiting,
    )
    draw = precision.prior.family.draw_kernel(kind)
    return Played(behaviour, program, function(kind), draw, kind)


def _decider(plan: Plan, horizon: int, *, plain: bool) -> tuple[Callable[[Any], Any], int, Array]:
    """The kernel of a decision that is no index, the rows that it remembers per lane, and what it reads.

    plain: whether rewards come at once, to float32 lanes, and no arm keeps a share
    """
    from ..kernels import ab_test, decide

    decision, arms = plan.decision, plan.counts.shape[1]
    assert not isinstance(decision, Index)
    function: Callable[[Any], Any]
    memory, parameters = 0, np.zeros(1)
    if isinstance(decision, ByTable):
        size = decision.table.shape[1]
        first = 3 * arms + horizon + 1
        heads = [
            (float(first + row * size), *mean)
            for row, mean in zip(decision.row_of, decision.means, strict=True)
        ]
        parameters = np.concatenate([np.ravel(heads), decision.begins, decision.table.ravel()])
        function = decide.by_table
    elif isinstance(decision, ByBonus):
        numbers = [decision.mean, decision.spread**-2, decision.noise**-2]
        begins = np.array(decision.begins, float) + len(numbers) + horizon + 1
        function = decide.by_bonus
        parameters = np.concatenate([numbers, begins, decision.bonus])
    elif isinstance(decision, ByCuts):
        function, cuts = decide.by_cuts, decision.cuts
        parameters = np.concatenate([[decision.rate], cuts[:, 0] + 65536.0 * cuts[:, 1]])
    elif isinstance(decision, ByStates):
        function = decide.by_states
        bits = np.pad(decision.best, (0, -len(decision.best) % 16)).reshape(-1, 16)
        parameters = bits @ 8.0 ** np.arange(16)
    elif isinstance(decision, ByPosterior):
        beta = isinstance(decision.belief, BetaBelief)
        function = decide.thompson_beta if beta else decide.thompson_gaussian
        parameters = _believed(decision.belief)
        if beta:
            parameters, memory = np.array([float(plain), *parameters]), 9 + 4 * arms
    elif isinstance(decision, ByBelief):
        function = _lookahead(decision)
        parameters = np.array([decision.number, *_believed(decision.belief)])
    elif isinstance(decision, ByEpochs):
        levels = [(tau, math.log(tau), empty) for tau, empty in decision.levels_up_to(horizon)]
        function = decide.ucb2
        parameters = np.array([decision.alpha, float(plain), *np.ravel(levels)])
        # The loops for two arms take nine rows, those for more arms 2 K + 2.
        memory = 2 * arms + 5
    elif isinstance(decision, ByTest):
        function, memory = ab_test.by_test, 1
        parameters = np.array([float(decision.plays), decision.errors])
    else:
        function = partial(_compiled_rule, decision.function, plan.name)
    return function, memory, parameters


def _lanes(most: int, waiting: Any, horizon: int) -> int:
    """Episodes to play in step, such that the plays that wait stay in the cache."""
    from ..kernels import simulator

    window = simulator.window(waiting)
    each = 8 * window + (8 * horizon if len(waiting.ends) else 0)
    check_memory(
        64 * each,
        f"a simulation in which up to {window} plays wait",
        "choose a shorter horizon, or smaller batches",
    )
    return min(most, max(64, _KEPT_BYTES // max(each, 1) // 64 * 64))


class Simulation:
    """Policies that play problems of a prior: what a worker makes once and keeps."""

    def __init__(
        self,
        prior: Prior,
        horizon: int,
        sampling: Sampling,
        plans: Sequence[Plan] = (),
        *,
        feedback: Feedback = IMMEDIATE,
    ) -> None:
        from ..kernels import simulator

        if not is_compiled():
            # The first time everything is compiled, so that no later run has to wait.
            from ..kernels import ab_test, decide, jit, rewards  # noqa: F401

            jit.compile_pointers()
        self.kernel = simulator
        self.prior = prior
        self.horizon = horizon
        self.feedback = feedback
        waiting = _waiting(prior.arms, horizon, feedback)
        self.lanes = _lanes(sampling.lanes, waiting, horizon)
        self.sampling = sampling
        self.plans = plans
        precision = Precision.of(prior, horizon)
        self.played = [_interpret(plan, precision, feedback, waiting) for plan in plans]
        if sampling.growth:
            for plan in plans:
                if (why := coarse_obstacle(prior, plan, feedback)) is not None:
                    raise InputError(f"{plan.name} cannot be played on a coarse clock: {why}")
        self.take_problems = problem_source(prior, sampling.seed)
        self.local = threading.local()
        points = sampling.checkpoints or (horizon,)
        self.checkpoints = np.array(points, dtype=np.int64)

    # One policy --------------------------------------------------------------------------------

    def _refuse(self, status: int, name: str, state: Sequence[float], *, uses_s: bool) -> NoReturn:
        """Say what stopped the simulation."""
        if status == self.kernel.INDEX_NOT_FINITE:
            raise IndexFault(name, state, uses_s=uses_s)
        if status == self.kernel.NO_SUCH_ARM:
            raise InputError(
                f"the policy {name} chose an arm that does not exist at t={state[3]:g}; "
                f"there are {self.prior.arms}, numbered from 0"
            )
        low, high = self.prior.family.support
        raise InputError(
            f"the family {self.prior.family.name} drew a reward that is not a finite number between "
            f"{low:g} and {high:g}; its quantile must be, for every u between 0 and 1 and all "
            f"parameters of the prior, or its support must be another"
        )

    def run(self, first_episode: int, lanes: int | None = None) -> Any:
        """The episodes from this one on, as the kernel takes them."""
        sampling = self.sampling
        seed = sampling.seed if sampling.reward_seed is None else sampling.reward_seed
        lanes = self.lanes if lanes is None else min(lanes, self.lanes)
        return self.kernel.Run(np.uint64(seed), first_episode, sampling.runs, self.horizon, lanes)

    def play(
        self,
        position: int,
        problems: Any,
        first: int,
        regret: Array,
        plays: Array | None = None,
        final: npt.NDArray[np.float32] | None = None,
    ) -> None:
        """Let a policy play problems, of which `first` is the number of the first."""
        arms = self.prior.arms
        played = self.played[position]
        outcome = self.kernel.Outcome(
            self.checkpoints,
            regret,
            np.zeros((2, arms, 0), np.float32) if final is None else final,
            np.zeros(arms) if plays is None else plays,
            np.zeros(5),
        )
        begin = first * self.sampling.runs
        if self._play_fused(begin, problems, played, outcome):
            return
        run, work = self.run(begin), self._workspace(problems, played)
        begun = time.thread_time()
        if self.sampling.growth:
            from ..kernels import coarse

            growth, pseudo_plays = self.sampling.growth, float(played.behaviour.counts[0].sum())
            times = coarse.clock(self.horizon, pseudo_plays, growth)
            status = coarse.simulate_coarsely(
                run, problems, played.behaviour, played.program, growth, times, work, outcome
            )
        else:
            status = _simulator(self.kernel, played.kind)(
                run, problems, played.behaviour, played.program, played.draw, played.decide, work,
                outcome,
            )  # fmt: skip
        if status != self.kernel.DONE:
            name, state = self.plans[position].name, outcome.fault.tolist()
            self._refuse(status, name, state, uses_s=played.program.uses_s)
        elif self._can_fuse(played):
            from ..kernels import fused

            fused.spend(played.program, arms, time.thread_time() - begun)

    def _can_fuse(self, played: Played) -> bool:
        """Whether a program may be played by code of its own (kernels/fused.py)."""
        behaviour, waiting = played.behaviour, played.behaviour.waiting
        plain = behaviour.by_index and not len(behaviour.rate) + len(behaviour.needed)
        at_once = not len(waiting.known) + len(waiting.ends) and waiting.share == 0.0
        return bool(
            plain
            and at_once
            and played.kind is np.float32
            and self.prior.family.binary
            and self.sampling.growth == 0.0
            and (not played.program.uses_s or (behaviour.counts[1] == behaviour.counts[2]).all())
        )

    def _play_fused(self, begin: int, problems: Any, played: Played, outcome: Any) -> bool:
        """Play with code of the program's own, if there is any; its plays are those of the simulator.

        False also where an index is not a finite number: the simulator then finds the state.
        """
        from ..kernels import fused

        arms = self.prior.arms
        code = fused.find(played.program, arms) if self._can_fuse(played) else None
        if code is None:
            return False
        lanes = fused.lanes(arms)
        work = self._workspace(problems, played, lanes, fused.registers(played.program, arms))
        plays = outcome.plays.copy()
        run = self.run(begin)._replace(lanes=lanes)
        if code(run, problems, played.behaviour, played.program, work, outcome) == self.kernel.DONE:
            return True
        outcome.plays[:] = plays
        return False

    def _workspace(
        self, problems: Any, played: Played, lanes: int | None = None, registers: int = 0
    ) -> Any:
        """Room for a simulation; candidates with the same program use it one after the other."""
        behaviour, program, kind = played.behaviour, played.program, played.kind
        program = program._replace(registers=max(program.registers, registers))
        lanes = self.lanes if lanes is None else lanes
        key = (program.registers, behaviour.memory, kind, lanes)
        known = getattr(self.local, "workspace", None)
        if known is None or known[0] != key:
            made = self.kernel.workspace(problems, behaviour, program, lanes, kind)
            known = self.local.workspace = (key, made)
        return known[1]._replace(scalars=program.scalars.copy())

    def problems(self, first: int, last: int) -> Any:
        """The problems first, ..., last - 1 as the kernel takes them."""
        parameters = self.take_problems(first, last)
        means = regret_means(self.prior, parameters)
        low, high = self.prior.family.support
        return self.kernel.Problems(parameters, means, self.prior.family.binary, low, high)

    # All policies, reduced to sums -------------------------------------------------------------

    def _room(self, shape: tuple[int, ...]) -> Array:
        """An array of this thread's own, used again: fresh megabytes each time cost page faults."""
        kept: Array | None = getattr(self.local, "room", None)
        if kept is None or kept.shape != shape:
            kept = self.local.room = np.empty(shape)
        return kept

    def chunks(self, ranges: Sequence[tuple[int, int]]) -> list[Sums]:
        """Several, one after the other: a job for another process."""
        return [self.chunk(*item) for item in ranges]

    def chunk(self, first: int, last: int) -> Sums:
        """Simulate the problems first, ..., last - 1 with every policy."""
        problems = self.problems(first, last)
        count, arms = problems.means.shape
        runs, points = self.sampling.runs, len(self.checkpoints) + 1
        averages = self._room((len(self.plans), points, count))
        plays = np.zeros((len(self.plans), arms))
        several = np.empty((points, count * runs)) if runs > 1 else None
        final = problem_plays = None
        if self.sampling.keep_plays:
            final = np.empty((2, arms, count * runs), np.float32)
            problem_plays = np.empty((len(self.plans), arms, count), np.float32)
        for position in range(len(self.plans)):
            regret = averages[position] if several is None else several
            self.play(position, problems, first, regret, plays[position], final)
            if problem_plays is not None and final is not None:
                each = final[0].reshape(arms, count, runs)
                problem_plays[position] = each.mean(axis=2, dtype=np.float64)
            if several is not None:
                averages[position] = several.reshape(points, count, runs).mean(axis=2)
        at_end = averages[:, -2, :]
        sums: Sums = {
            "total": averages.sum(axis=2),
            "squares": np.einsum("pcn,pcn->pc", averages, averages),
            # Not a matrix product: the threads of its library would compete with ours.
            "products": np.einsum("pn,qn->pq", at_end, at_end),
            "plays": plays,
        }
        if self.sampling.keep_regret:
            sums["regret"] = at_end.astype(np.float32)
        if problem_plays is not None:
            sums["problem_plays"] = problem_plays
        return sums

    # Many policies ------------------------------------------------------------------------------

    def regret_of(
        self, plans: Sequence[Plan], seed: int, cuts: Sequence[int], sums: bool, threads: int = 1
    ) -> Array:
        """The regret of many policies on the problems of a seed; threads share the policies.

        [policy, problem] from the first cut to the last; with `sums` its sum from each cut to the
        next. A policy whose index is not a finite number somewhere has infinite regret.
        """
        # Lanes without an episode take as long as others.
        lanes = min(self.sampling.lanes, 64 * -(-(cuts[-1] - cuts[0]) * self.sampling.runs // 64))
        sampling = replace(self.sampling, seed=seed, checkpoints=(), lanes=lanes)
        fresh = Simulation(self.prior, self.horizon, sampling, plans, feedback=self.feedback)
        if not sums:
            return fresh._each(cuts[0], cuts[-1], threads)
        found = np.empty((len(plans), len(cuts) - 1))
        most = max(1, _MOST_AT_ONCE // self.sampling.runs)
        block = 0
        while block < len(cuts) - 1:
            after = block + 1
            while after < len(cuts) - 1 and cuts[after + 1] - cuts[block] <= most:
                after += 1
            some = np.array(cuts[block : after + 1])
            for row, regret in enumerate(fresh._each(some[0], some[-1], threads)):
                parts = np.split(regret, some[1:-1] - some[0])
                found[row, block:after] = [part.sum() for part in parts]
            block = after
        return found

    def _each(self, first: int, last: int, threads: int) -> Array:
        """The regret of each policy on each problem, averaged over runs."""
        size = max(1, _MOST_AT_ONCE // self.sampling.runs)
        regret = np.empty((len(self.plans), last - first))
        for begin in range(first, last, size):
            end = min(begin + size, last)
            drawn = self.problems(begin, end)

            def play(position: int, begin: int = begin, end: int = end, drawn: Any = drawn) -> None:
                regret[position, begin - first : end - first] = self._one(position, drawn, begin)

            in_threads(play, range(len(self.plans)), threads)
        return regret

    def _one(self, position: int, drawn: Any, first: int) -> Array:
        sampling, count = self.sampling, len(drawn.means)
        both = np.empty((2, count * sampling.runs))
        final = None
        if sampling.posterior:
            final = np.empty((2, self.prior.arms, count * sampling.runs), np.float32)
        try:
            self.play(position, drawn, first, both, final=final)
            if final is not None:
                self._expect(final, both[0])
        except IndexFault:
            both[:] = np.inf
        each = both[1 if sampling.simple else 0].reshape(count, sampling.runs)
        return np.asarray(each.mean(axis=1))

    def _expect(self, final: npt.NDArray[np.float32], regret: Array) -> None:
        """Expected regret of episodes given how often each arm was played and won."""
        from ..kernels import posterior

        assert isinstance(self.prior, Bernoulli), "has_posterior() refuses others"
        alpha, beta = np.array(self.prior.alpha), np.array(self.prior.beta)
        posterior.expected_regret(alpha, beta, self.horizon, final[0], final[1], regret)
