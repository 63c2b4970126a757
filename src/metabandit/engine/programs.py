"""Thousands of index policies at once: their exact regret, or their regret on the same episodes.

The policies have prior, horizon and start in common; only their programs differ, and lie packed in
flat arrays (kernels/batch.py). A call costs microseconds per policy beside the evaluation itself.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..language.compile import Compiled
from ..policies import IndexPolicy, Policy, Start
from ..priors import Bernoulli, Prior
from ..priors.families import Array
from ..workers import Job, Workers
from .costs import exact_seconds, simulation_seconds
from .engine import Engine
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
        self, packed: Any, prior: Prior, horizon: int, start: Start, workers: Workers
    ) -> None:
        from ..kernels import batch

        self.kernel = batch
        self.prior = prior
        self.horizon = horizon
        self.workers = workers
        self.packed = packed
        self.count = len(packed.registers)
        self._remote = partial(_Remote, prior, horizon, start)
        self.plan = IndexPolicy("r", start=start).plan(prior, horizon)
        self.scalars = int(np.diff(packed.scalar_ends).max())
        self.local = threading.local()
        self._simulations: dict[tuple[int, int], Simulation] = {}
        self._rounds: dict[tuple[int, ...], Any] = {}

    @classmethod
    def of(
        cls,
        compiled: Sequence[Compiled],
        prior: Prior,
        horizon: int,
        start: Start,
        workers: Workers,
    ) -> ManyPrograms:
        """The programs of compiled expressions."""
        from ..kernels import batch

        return cls(batch.pack(compiled), prior, horizon, start, workers)

    def _hand_out(
        self, method: str, which: Ints, seconds: float, *each: Any, **common: Any
    ) -> list[Any] | None:
        """What workers give for policies, in runs of them; None if it is not worth handing out.

        each: arrays with one row per policy; common: the same for all
        """
        if not self.workers.worth(seconds, method):
            return None
        jobs = [
            Job(
                (
                    self.kernel.take(self.packed, which[first:last]),
                    [item[first:last] for item in each],
                    common,
                ),
                seconds * (last - first) / len(which),
            )
            for first, last in self.workers.cut(len(which), seconds, method)
        ]
        return list(self.workers.run(self._remote, method, jobs))

    # Exactly -----------------------------------------------------------------------------------

    def _game(self) -> Any:
        """What this thread evaluates with."""
        known = getattr(self.local, "game", None)
        if known is not None:
            return known
        from ..kernels.rows import STRIDE

        assert isinstance(self.prior, Bernoulli)
        way = TwoArms(self.plan, self.prior, self.horizon)
        found = list(way.first_states())
        n = 1 if way.begin else 0
        game = self.kernel.Game(
            way.begin,
            way.clock,
            self.prior.expected_best(),
            np.array([(n, *counts) for counts, _ in found], np.int64),
            np.array([weight for _, weight in found]),
            way.work[0],
            np.zeros(4),
        )
        tables = way.policy.tables._replace(
            scalars=np.zeros(self.scalars),
            rows=np.zeros((4 + int(self.packed.registers.max())) * STRIDE),
        )
        known = self.local.game = (game, way.slice, way.policy._replace(tables=tables))
        return known

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
        seconds = count * exact_seconds(self.prior, points[-1])
        found = self._hand_out(
            "exact_regret", which, seconds, limits, points=points, with_choices=with_choices
        )
        if found is not None:
            regret, reached, choices = map(np.concatenate, zip(*found, strict=True))
            return regret, reached, choices
        screened = self.kernel.Screened(
            np.empty(count),
            np.empty(count, np.int64),
            np.empty(count if with_choices else 0, np.uint64),
        )
        ends = np.array(points, np.int64)

        def work(first: int) -> None:
            part = slice(first, min(first + _SHARE, count))
            some = self.kernel.Screened(*(item[part] for item in screened))
            self.kernel.evaluate_many(
                self.packed, which[part], limits[part], ends, *self._game(), some
            )

        in_threads(work, range(0, count, _SHARE), self.workers.threads)
        return screened.regret, screened.reached, screened.choices

    # On episodes -------------------------------------------------------------------------------

    def simulation(self, runs: int, seed: int) -> Simulation:
        """The episodes of a seed, which all policies play."""
        key = (runs, seed)
        if key not in self._simulations:
            sampling = Sampling(runs=runs, seed=seed)
            made = Simulation(self.prior, self.horizon, sampling, [self.plan])
            self._simulations[key] = made
        return self._simulations[key]

    def _seconds(self, policies: int, episodes: int) -> float:
        return policies * simulation_seconds(self.prior, self.horizon, episodes)

    def moments(
        self, which: Ints, first: int, last: int, *, runs: int, seed: int, simple: bool = False
    ) -> tuple[Array, Array]:
        """The sum of each policy's regret over problems, and the standard error of its mean."""
        common = {"first": first, "last": last, "runs": runs, "seed": seed, "simple": simple}
        seconds = self._seconds(len(which), (last - first) * runs)
        found = self._hand_out("moments", which, seconds, **common)
        if found is not None:
            sums, errors = map(np.concatenate, zip(*found, strict=True))
            return sums, errors
        regret = self._regret(which, first, last, self.simulation(runs, seed), simple)
        with np.errstate(invalid="ignore"):
            spread = regret.std(axis=1, ddof=1) if last - first > 1 else np.zeros(len(which))
            return regret.sum(axis=1), spread / np.sqrt(last - first)

    def regret(
        self, which: Ints, first: int, last: int, *, runs: int, seed: int, simple: bool = False
    ) -> Array:
        """Regret of policies on the problems first, ..., last - 1, [policy, problem]."""
        common = {"first": first, "last": last, "runs": runs, "seed": seed, "simple": simple}
        seconds = self._seconds(len(which), (last - first) * runs)
        found = self._hand_out("regret", which, seconds, **common)
        if found is not None:
            return np.concatenate(found)
        return self._regret(which, first, last, self.simulation(runs, seed), simple)

    def _regret(
        self, which: Ints, first: int, last: int, simulation: Simulation, simple: bool
    ) -> Array:
        out = np.empty((len(which), last - first))
        runs = simulation.sampling.runs
        # In parts, so that the regret of each single run needs little room.
        step = max(1, _EPISODES // runs)
        for begin in range(first, last, step):
            end = min(begin + step, last)
            episodes = np.full(len(which), begin * runs)
            rows = np.zeros(len(which), np.int64)
            problems = simulation.problems(begin, end)
            out[:, begin - first : end - first] = self._play(
                which, (episodes, rows, end - begin), problems, simulation, simple
            )
        return out

    def regret_of_other(self, policy: Policy, problems: int, *, runs: int, seed: int) -> Array:
        """Regret of any policy on the problems 0, ..., problems - 1, with the same rewards."""
        plan = policy.plan(self.prior, self.horizon)
        engine = Engine(self.prior, self.horizon, self.workers.able_to_send(plan.size))
        sampling = Sampling(runs=runs)
        found = engine.simulated_regret([plan], [0, problems], seed=seed, sampling=sampling)
        return np.asarray(found[0])

    def next_regrets(
        self, which: Ints, first: Ints, count: int, *, training: int, seed: int
    ) -> Array:
        """Regret of policy which[i] in its episodes first[i], first[i] + 1, ..., `count` of them.

        Episode j is of problem j mod `training`.
        """
        common = {"count": count, "training": training, "seed": seed}
        seconds = self._seconds(len(which), count)
        found = self._hand_out("next_regrets", which, seconds, first, **common)
        if found is not None:
            return np.concatenate(found)
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
        return self._play(which, episodes, self._rounds[key], simulation, False)

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
        behaviour, program, function = simulation.played[0]
        # The workspace must do for every program.
        program = program._replace(registers=int(self.packed.registers.max()))
        arms = self.prior.arms

        def work(begin: int) -> None:
            part = slice(begin, min(begin + _SHARE, len(which)))
            room = simulation.kernel.workspace(problems, behaviour, program, lanes)
            outcome = simulation.kernel.Outcome(
                simulation.checkpoints,
                np.empty((2, each)),
                np.zeros((2, arms, 0), np.float32),
                np.zeros(arms),
                np.zeros(5),
            )
            shared = self.kernel.SharedEpisodes(
                simulation.run(0, lanes), problems, behaviour, simulation.draw, function, outcome
            )
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


class _Remote:
    """What a worker makes and keeps for programs: the same with some of them."""

    def __init__(self, prior: Prior, horizon: int, start: Start) -> None:
        self.prior = prior
        self.horizon = horizon
        self.start = start

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):
            raise AttributeError(method)
        return partial(self._call, method)

    def _call(self, method: str, packed: Any, each: list[Any], common: dict[str, Any]) -> Any:
        programs = ManyPrograms(packed, self.prior, self.horizon, self.start, Workers(1))
        return getattr(programs, method)(np.arange(programs.count), *each, **common)
