"""Thousands of index policies at once: their exact regret, or their regret on the same episodes.

The policies have prior, horizon and start in common; only their programs differ, and lie packed in
flat arrays (kernels/batch.py). A call costs microseconds per policy beside the evaluation itself.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..bayes.listed import ratio_slice
from ..feedback import IMMEDIATE, Feedback
from ..language.compile import Compiled
from ..policies import IndexPolicy, Policy, Start
from ..priors import Bernoulli, Prior, Table
from ..priors.families import Array
from ..workers import Workers
from .costs import program_seconds, simulation_seconds
from .engine import Engine, hand_out
from .simulated import MOST_LANES, Sampling, Simulation
from .states import TwoArms
from .threads import in_threads

Ints = npt.NDArray[np.int64]

# Policies that a thread takes at a time.
_SHARE = 64
# Episodes that a policy plays at a time.
_EPISODES = 16_384


class ManyPrograms:
    """Index policies that play one prior and horizon from the same start.

    packed: as kernels.batch.pack gives them
    """

    def __init__(
        self,
        packed: Any,
        prior: Prior,
        horizon: int,
        start: Start,
        workers: Workers,
        *,
        feedback: Feedback = IMMEDIATE,
    ) -> None:
        from ..kernels import batch

        self.kernel = batch
        self.prior = prior
        self.horizon = horizon
        self.workers = workers
        self.packed = packed
        self.count = len(packed.registers)
        self.feedback = feedback
        self._remote = partial(_remote, prior, horizon, start, feedback)
        self.plan = IndexPolicy("r", start=start).plan(prior, horizon)
        self.scalars = int(np.diff(packed.scalar_ends).max())
        self.local = threading.local()
        self._simulations: dict[tuple[int, int], Simulation] = {}
        self._rounds: dict[tuple[int, ...], Any] = {}
        self._points: tuple[list[int], Array] = ([], np.zeros((0, 0)))

    @classmethod
    def of(
        cls,
        compiled: Sequence[Compiled],
        prior: Prior,
        horizon: int,
        start: Start,
        workers: Workers,
        *,
        feedback: Feedback = IMMEDIATE,
    ) -> ManyPrograms:
        """The programs of compiled expressions."""
        from ..kernels import batch

        return cls(batch.pack(compiled), prior, horizon, start, workers, feedback=feedback)

    def _share(self, method: str, seconds: float, which: Ints, *arguments: Any) -> Any:
        """The arrays that a method gives for policies, done here or handed out.

        Arguments that are arrays have one row per policy; others are the same for all.
        """

        def some(part: slice) -> tuple[Any, ...]:
            rows = (item[part] if isinstance(item, np.ndarray) else item for item in arguments)
            return self.kernel.take(self.packed, which[part]), *rows

        parts = hand_out(self.workers, self._remote, method, seconds, len(which), some)
        if parts is None:
            return getattr(self, method)(which, *arguments)
        return tuple(map(np.concatenate, zip(*parts, strict=True)))

    # Exactly -----------------------------------------------------------------------------------

    def _game(self) -> Any:
        """What this thread evaluates with."""
        known = getattr(self.local, "game", None)
        if known is not None:
            return known
        from ..kernels.rows import SLOT, STRIDE

        assert isinstance(self.prior, (Bernoulli, Table))
        way = TwoArms(self.plan, self.prior, self.horizon, mirror=not isinstance(self.prior, Table))
        found = list(way.first_states())
        n = 1 if way.begin else 0
        first = (
            np.array([(n, *counts) for counts, _ in found], np.int64),
            np.array([weight for _, weight in found]),
        )
        game = (way.begin, way.clock, self.prior.expected_best(), first, way.work[0], np.zeros(4))
        tables = way.policy.tables._replace(
            scalars=np.zeros(self.scalars),
            rows=np.zeros((SLOT + 1 + int(self.packed.registers.max())) * STRIDE),
        )
        known = self.local.game = (game, way.slice, way.policy._replace(tables=tables))
        return known

    def _ratios(self, points: list[int]) -> Array:
        """For a table: how much more likely its states are than with uniform means, after each point."""
        if not isinstance(self.prior, Table):
            return np.zeros((0, 0))
        if points != self._points[0]:
            from ..kernels.counts import layout

            slices = [ratio_slice(self.prior, m, *layout(self.horizon, False)) for m in points]
            self._points = (points, np.stack(slices))
        return self._points[1]

    def exact_regret(
        self,
        which: Ints,
        limits: Array | None = None,
        *,
        points: Sequence[int],
        with_choices: bool = False,
    ) -> tuple[Array, Ints, npt.NDArray[np.uint64]]:
        """Exact regret of policies; after how many plays; a fingerprint of all their choices.

        points: the plays after which a policy whose regret is above its limit is given up; the last is
            how far the others are followed
        """
        count = len(which)
        limits = np.full(count, np.inf) if limits is None else limits
        seconds = count * program_seconds(self.prior, points[-1])
        regret, reached, choices = self._share(
            "_exact", seconds, which, limits, list(points), with_choices
        )
        return regret, reached, choices

    def _exact(self, which: Ints, limits: Array, points: list[int], with_choices: bool) -> Any:
        count = len(which)
        regret, reached = np.empty(count), np.empty(count, np.int64)
        choices = np.empty(count if with_choices else 0, np.uint64)
        ends = np.array(points, np.int64)
        ratios = self._ratios(points)

        def work(first: int) -> None:
            part = slice(first, min(first + _SHARE, count))
            screened = (regret[part], reached[part], choices[part])
            self.kernel.evaluate_many(
                self.packed, which[part], limits[part], ends, ratios, *self._game(), screened
            )

        in_threads(work, range(0, count, _SHARE), self.workers.threads)
        return regret, reached, choices

    # On episodes -------------------------------------------------------------------------------

    def simulation(self, runs: int, seed: int) -> Simulation:
        """The episodes of a seed, which all policies play."""
        key = (runs, seed)
        if key not in self._simulations:
            sampling = Sampling(runs=runs, seed=seed)
            made = Simulation(
                self.prior, self.horizon, sampling, [self.plan], feedback=self.feedback
            )
            self._simulations[key] = made
        return self._simulations[key]

    def _seconds(self, policies: int, episodes: int) -> float:
        return policies * simulation_seconds(self.prior, self.horizon, episodes)

    def moments(
        self, which: Ints, first: int, last: int, *, runs: int, seed: int, simple: bool = False
    ) -> tuple[Array, Array]:
        """The sum of each policy's regret over problems, and the standard error of its mean."""
        seconds = self._seconds(len(which), (last - first) * runs)
        sums, errors = self._share("_moments", seconds, which, first, last, runs, seed, simple)
        return sums, errors

    def _moments(self, which: Ints, first: int, last: int, *options: Any) -> tuple[Array, Array]:
        (regret,) = self._regret(which, first, last, *options)
        with np.errstate(invalid="ignore"):
            spread = regret.std(axis=1, ddof=1) if last - first > 1 else np.zeros(len(which))
            return regret.sum(axis=1), spread / np.sqrt(last - first)

    def regret(
        self, which: Ints, first: int, last: int, *, runs: int, seed: int, simple: bool = False
    ) -> Array:
        """Regret of policies on the problems first, ..., last - 1, [policy, problem]."""
        seconds = self._seconds(len(which), (last - first) * runs)
        (regret,) = self._share("_regret", seconds, which, first, last, runs, seed, simple)
        return np.asarray(regret)

    def _regret(
        self, which: Ints, first: int, last: int, runs: int, seed: int, simple: bool
    ) -> tuple[Array]:
        out = np.empty((len(which), last - first))
        simulation = self.simulation(runs, seed)
        # In parts, so that the regret of each single run needs little room.
        step = max(1, _EPISODES // runs)
        for begin in range(first, last, step):
            end = min(begin + step, last)
            numbers = np.full(len(which), begin * runs)
            episodes = (numbers, np.zeros_like(numbers), end - begin)
            problems = simulation.problems(begin, end)
            found = self._play(which, episodes, problems, simulation, simple)
            out[:, begin - first : end - first] = found
        return (out,)

    def regret_of_other(self, policy: Policy, problems: int, *, runs: int, seed: int) -> Array:
        """Regret of any policy on the problems 0, ..., problems - 1, with the same rewards."""
        plan = policy.plan(self.prior, self.horizon)
        workers = self.workers.able_to_send(plan.size)
        engine = Engine(self.prior, self.horizon, workers, feedback=self.feedback)
        sampling = Sampling(runs=runs)
        found = engine.simulated_regret([plan], [0, problems], seed=seed, sampling=sampling)
        return np.asarray(found[0])

    def next_regrets(
        self, which: Ints, first: Ints, count: int, *, training: int, seed: int
    ) -> Array:
        """Regret of policy which[i] in its episodes first[i], first[i] + 1, ..., `count` of them.

        Episode j is of problem j mod `training`.
        """
        seconds = self._seconds(len(which), count)
        (regret,) = self._share("_next_regrets", seconds, which, first, count, training, seed)
        return np.asarray(regret)

    def _next_regrets(
        self, which: Ints, first: Ints, count: int, training: int, seed: int
    ) -> tuple[Array]:
        simulation = self.simulation(1, seed)
        key = (seed, training, count)
        if key not in self._rounds:
            problems = simulation.problems(0, training)
            turns = np.arange(training + count) % training
            self._rounds[key] = problems._replace(
                parameters=np.ascontiguousarray(problems.parameters[turns]),
                means=np.ascontiguousarray(problems.means[turns]),
            )
        episodes = (first, first % training, count)
        return (self._play(which, episodes, self._rounds[key], simulation, False),)

    def _play(
        self,
        which: Ints,
        episodes: tuple[Ints, Ints, int],
        problems: Any,
        simulation: Simulation,
        simple: bool,
    ) -> Array:
        """The mean regret of policies on problems; episodes: the first, its row, and how many."""
        first, rows, count = episodes
        runs = simulation.sampling.runs
        each = count * runs
        lanes = min(MOST_LANES, 16 * -(-each // 16))
        out = np.empty((len(which), count))
        played = simulation.played[0]
        behaviour = played.behaviour
        # The workspace must do for every program.
        program = played.program._replace(registers=int(self.packed.registers.max()))
        arms = self.prior.arms

        def work(begin: int) -> None:
            part = slice(begin, min(begin + _SHARE, len(which)))
            room = simulation.kernel.workspace(problems, behaviour, program, lanes, played.kind)
            outcome = simulation.kernel.Outcome(
                simulation.checkpoints,
                np.empty((2, each)),
                np.zeros((2, arms, 0), np.float32),
                np.zeros(arms),
                np.zeros(5),
            )
            run = simulation.run(0, lanes)
            shared = (run, problems, behaviour, played.draw, played.decide, outcome)
            regret = np.empty((part.stop - part.start, each))
            self.kernel.simulate_many(
                self.packed,
                which[part],
                first[part],
                rows[part],
                shared,
                room._replace(scalars=np.zeros(self.scalars)),
                simple,
                regret,
            )
            out[part] = regret.reshape(len(regret), count, runs).mean(axis=2)

        threads = self.workers.threads if len(which) > _SHARE else 1
        in_threads(work, range(0, len(which), _SHARE), threads)
        return out


def _remote(prior: Prior, horizon: int, start: Start, feedback: Feedback) -> Any:
    """What a worker makes and keeps: the methods that are handed out, for programs that come later."""

    def call(method: str, packed: Any, *arguments: Any) -> Any:
        programs = ManyPrograms(packed, prior, horizon, start, Workers(1), feedback=feedback)
        return getattr(programs, method)(np.arange(programs.count), *arguments)

    methods = ("_exact", "_moments", "_regret", "_next_regrets")
    return SimpleNamespace(**{method: partial(call, method) for method in methods})
