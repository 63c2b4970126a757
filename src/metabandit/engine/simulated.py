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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..decisions import ByCuts, ByEpochs, ByPosterior, ByTable, Index, Own
from ..errors import IndexFault, InputError, compiling
from ..policies import Plan
from ..priors import Bernoulli, Prior
from ..priors.families import Array
from .threads import in_threads

# Problems are drawn in groups of this many, so that the first problems of a large evaluation are
# those of a small one.
GROUP = 8192
# Episodes that are played in step; as kernels.rows.MOST_LANES, which would load numba.
MOST_LANES = 512
# Episodes that each of many policies plays before all go on to the next problems.
_MOST_AT_ONCE = 131_072


@dataclass(frozen=True)
class Sampling:
    """Which episodes are played, and what is kept of them.

    runs: episodes per problem; seed: of the problems; reward_seed: of the rewards, `seed` by default
    checkpoints: plays after which regret is taken; lanes: episodes played in step
    keep_plays, keep_regret: whether plays and regret of each problem are kept
    simple: whether the regret of many policies is simple regret
    posterior: whether it is the expectation given what was seen, which has the same mean over
        problems and less noise
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


@dataclass
class ChunkSums:
    """What a chunk adds: sums over its problems, of regret at each checkpoint and of simple regret."""

    total: Array  # [policy, checkpoint]; the last column is simple regret
    squares: Array  # the same
    products: Array  # [policy, policy], of regret at the horizon
    plays: Array  # [policy, arm]
    regret: npt.NDArray[np.float32] | None  # [policy, problem], if it is kept
    problem_plays: npt.NDArray[np.float32] | None  # [policy, arm, problem]


def is_compiled() -> bool:
    """Whether the simulator is in numba's cache on disk, so that it starts at once."""
    from ..kernels import jit, simulator

    return jit.is_cached(simulator.simulate)


def announce_compilation(announce: Callable[[str], None]) -> None:
    """Say so if the simulator must be compiled first, which happens once."""
    if not is_compiled():
        announce("compiling the simulator for this machine, once (about half a minute) ...")


def has_posterior(prior: Prior) -> bool:
    """Whether the expectation of regret given the plays is known, and smooth enough to compute."""
    return type(prior) is Bernoulli and min(*prior.alpha, *prior.beta) >= 0.5


class ProblemSource:
    """Problems by number: group g comes from a stream of its own."""

    def __init__(self, prior: Prior, seed: int) -> None:
        self.prior = prior
        self.seed = seed
        self.last: tuple[int, Array] | None = None
        self.lock = threading.Lock()

    def group(self, number: int) -> Array:
        with self.lock:
            if self.last is not None and self.last[0] == number:
                return self.last[1]
        rng = np.random.default_rng(np.random.SeedSequence((self.seed, number)))
        drawn = np.asarray(self.prior.draw(rng, GROUP), dtype=np.float64)
        expected = (GROUP, self.prior.arms, len(self.prior.family.parameters))
        if drawn.shape != expected:
            raise InputError(
                f"draw of the prior {self.prior} gave an array of shape {drawn.shape}, "
                f"not (problems, arms, parameters) = {expected}"
            )
        if not np.isfinite(drawn).all():
            raise InputError(f"draw of the prior {self.prior} gave parameters that are not finite")
        low, high = self.prior.family.support
        means = self.prior.family.mean(drawn)
        if not (means.min() >= low and means.max() <= high):
            raise InputError(
                f"draw of the prior {self.prior} gave arms with means from {means.min():g} to "
                f"{means.max():g}; rewards of the family {self.prior.family.name} lie between "
                f"{low:g} and {high:g}"
            )
        with self.lock:
            self.last = (number, drawn)
        return drawn

    def take(self, first: int, last: int) -> Array:
        groups = range(first // GROUP, (last - 1) // GROUP + 1)
        drawn = np.concatenate([self.group(number) for number in groups])
        offset = groups[0] * GROUP
        return np.ascontiguousarray(drawn[first - offset : last - offset])


def draw_problems(prior: Prior, seed: int, problems: int) -> Array:
    """The parameters of the first problems of a seed: those that policies play."""
    return ProblemSource(prior, seed).take(0, problems)


@cache
def _compiled_rule(function: Callable[..., Any], name: str) -> Any:
    from ..kernels.decide import compile_choice

    with compiling(f"the rule of the policy {name}"):
        return compile_choice(function)


def _interpret(plan: Plan, horizon: int) -> tuple[Any, Any, Any]:
    """A policy as the simulator takes it: its behaviour, its program and its compiled function."""
    from ..kernels import decide, machine, simulator

    decision, arms = plan.decision, plan.counts.shape[1]
    program = machine.load(None, isinstance(decision, Own))
    function, memory = simulator.idle(), 0
    rate, needed = plan.exceptions(horizon)
    parameters = np.zeros(1)
    if isinstance(decision, Index):
        program = machine.load(decision.program(), False)
        if len(needed):
            # The indices of all arms are set again at each step.
            program = program._replace(varies=True)
    elif isinstance(decision, ByTable):
        size = decision.table.shape[1]
        begins = [float(arms + row * size) for row in decision.row_of]
        function, parameters = decide.by_table(), np.concatenate([begins, decision.table.ravel()])
    elif isinstance(decision, ByCuts):
        function, cuts = decide.by_cuts(), decision.cuts
        parameters = cuts[:, 0] + 65536.0 * cuts[:, 1]
    elif isinstance(decision, ByPosterior):
        beta = decision.beta
        function = decide.thompson_gaussian() if beta is None else decide.thompson_beta()
        parameters = np.array([decision.sigma] if beta is None else beta)
    elif isinstance(decision, ByEpochs):
        levels = [(tau, math.log(tau), empty) for tau, empty in decision.levels_up_to(horizon)]
        function, parameters = decide.ucb2(), np.array([decision.alpha, *np.ravel(levels)])
        # The loops for two arms take nine rows, those for more arms 2 K + 2.
        memory = 2 * arms + 5
    else:
        function = _compiled_rule(decision.function, plan.name)
    behaviour = simulator.Behaviour(
        plan.each_once,
        np.ascontiguousarray(plan.counts, dtype=np.float64),
        isinstance(decision, Index),
        rate,
        needed,
        parameters,
        memory,
    )
    return behaviour, program, function


class Simulation:
    """Policies that play problems of a prior: what a worker makes once and keeps."""

    def __init__(
        self, prior: Prior, horizon: int, sampling: Sampling, plans: Sequence[Plan] = ()
    ) -> None:
        from ..kernels import simulator

        if not is_compiled():
            # The first time everything is compiled, so that no later run has to wait.
            from ..kernels import decide, jit, rewards  # noqa: F401

            jit.compile_pointers()
        self.kernel = simulator
        self.prior = prior
        self.horizon = horizon
        self.sampling = sampling
        self.plans = plans
        self.played = [_interpret(plan, horizon) for plan in plans]
        self.draw = prior.family.draw_kernel()
        self.source = ProblemSource(prior, sampling.seed)
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
        lanes = sampling.lanes if lanes is None else lanes
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
        behaviour, program, function = self.played[position]
        outcome = self.kernel.Outcome(
            self.checkpoints,
            regret,
            np.zeros((2, arms, 0), np.float32) if final is None else final,
            np.zeros(arms) if plays is None else plays,
            np.zeros(5),
        )
        status = self.kernel.simulate(
            self.run(first * self.sampling.runs),
            problems,
            behaviour,
            program,
            self.draw,
            function,
            self._workspace(problems, behaviour, program),
            outcome,
        )
        if status != self.kernel.DONE:
            name, state = self.plans[position].name, outcome.fault.tolist()
            self._refuse(status, name, state, uses_s=program.uses_s)

    def _workspace(self, problems: Any, behaviour: Any, program: Any) -> Any:
        """Room for a simulation; candidates with the same program use it one after the other."""
        key = (program.registers, behaviour.memory)
        known = getattr(self.local, "workspace", None)
        if known is None or known[0] != key:
            made = self.kernel.workspace(problems, behaviour, program, self.sampling.lanes)
            known = self.local.workspace = (key, made)
        return known[1]._replace(scalars=program.scalars.copy())

    def problems(self, first: int, last: int) -> Any:
        """The problems first, ..., last - 1 as the kernel takes them."""
        parameters = self.source.take(first, last)
        means = np.ascontiguousarray(self.prior.regret_means(parameters), dtype=np.float64)
        if means.shape != parameters.shape[:2] or not np.isfinite(means).all():
            raise InputError(
                f"regret_means of the prior {self.prior} must give one finite number per arm"
            )
        low, high = self.prior.family.support
        return self.kernel.Problems(parameters, means, self.prior.family.binary, low, high)

    # All policies, reduced to sums -------------------------------------------------------------

    def _room(self, shape: tuple[int, ...]) -> Array:
        """An array of this thread's own, used again: fresh megabytes each time cost page faults."""
        kept: Array | None = getattr(self.local, "room", None)
        if kept is None or kept.shape != shape:
            kept = self.local.room = np.empty(shape)
        return kept

    def chunks(self, ranges: Sequence[tuple[int, int]]) -> list[ChunkSums]:
        """Several, one after the other: a job for another process."""
        return [self.chunk(*item) for item in ranges]

    def chunk(self, first: int, last: int) -> ChunkSums:
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
        return ChunkSums(
            averages.sum(axis=2),
            np.einsum("pcn,pcn->pc", averages, averages),
            # Not a matrix product: the threads of its library would compete with ours.
            np.einsum("pn,qn->pq", at_end, at_end),
            plays,
            at_end.astype(np.float32) if self.sampling.keep_regret else None,
            problem_plays,
        )

    # Many policies ------------------------------------------------------------------------------

    def regret_of(
        self, plans: Sequence[Plan], seed: int, cuts: Sequence[int], sums: bool, threads: int = 1
    ) -> Array:
        """The regret of many policies on the problems of a seed; threads share the policies.

        [policy, problem] from the first cut to the last; with `sums` its sum from each cut to the
        next. A policy whose index is not a finite number somewhere has infinite regret.
        """
        sampling = replace(self.sampling, seed=seed, checkpoints=())
        fresh = Simulation(self.prior, self.horizon, sampling, plans)
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
