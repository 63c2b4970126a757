"""Thousands of index policies at once: their exact regret, or their regret on the same episodes.

The policies have prior, horizon and start in common; only their programs differ. A call costs
microseconds a policy beside the evaluation itself.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..expressions.compile import Compiled
from ..families import Array
from ..policies import IndexPolicy, Plan, Policy, Start
from ..priors import Bernoulli, Prior
from .montecarlo import MOST_LANES, _Simulation, play_population
from .propagation import TwoArms
from .threads import in_threads

Ints = npt.NDArray[np.int64]

# Policies that a thread takes at a time.
_SHARE = 64
# Episodes that a policy plays at a time.
_EPISODES = 16_384


class Batch:
    """Index policies that play one prior and horizon from the same start."""

    def __init__(
        self, compiled: Sequence[Compiled], prior: Prior, horizon: int, start: Start, threads: int
    ) -> None:
        from ..kernels import batch

        self.kernel = batch
        self.prior = prior
        self.horizon = horizon
        self.threads = threads
        self.programs = batch.pack(compiled)
        self.count = len(compiled)
        # A policy that stands for all: the one that needs most room.
        largest = compiled[int(np.argmax(self.programs.registers))]
        self.example = IndexPolicy("r", start=start)
        plan = self.example.plan(prior, horizon)
        self.plan = Plan(
            plan.each_once, plan.counts, largest, uses_s=True, by_counts=plan.by_counts
        )
        self.scalars = int(np.diff(self.programs.scalar_ends).max())
        self.local = threading.local()

    # Exactly -----------------------------------------------------------------------------------

    def _game(self) -> Any:
        """What this thread evaluates with."""
        known = getattr(self.local, "game", None)
        if known is not None:
            return known
        from ..kernels import rows

        assert isinstance(self.prior, Bernoulli)
        way = TwoArms(self.example, self.plan, self.prior, self.horizon, map)
        states = list(way._first_states())
        n = 1 if way.begin else 0
        game = self.kernel.Game(
            way.begin,
            self.horizon,
            way.pseudo_plays,
            self.prior.expected_best(),
            np.array([(n, *counts) for counts, _ in states], np.int64),
            np.array([weight for _, weight in states]),
            np.zeros(0, np.int64),
            way.rooms[0],
            np.zeros(9),
        )
        tables = way.rule.tables._replace(
            scalars=np.zeros(self.scalars),
            file=np.zeros((4 + int(self.programs.registers.max())) * rows.STRIDE),
        )
        known = self.local.game = (game, way.slice, way.rule.choice, tables)
        return known

    def evaluate(
        self,
        which: Ints,
        *,
        points: Sequence[int],
        limits: Array | None = None,
        with_choices: bool = False,
    ) -> tuple[Array, Ints, npt.NDArray[np.uint64]]:
        """Exact regret of policies; how many plays it is of; a fingerprint of all their choices.

        points: the plays after which a policy whose regret is above its limit is given up; the last is
            how far the others are followed
        """
        count = len(which)
        limits = np.full(count, np.inf) if limits is None else limits
        regret = np.empty(count)
        reached = np.empty(count, np.int64)
        choices = np.empty(count if with_choices else 0, np.uint64)
        ends = np.array(points, np.int64)

        def work(first: int) -> None:
            part = slice(first, min(first + _SHARE, count))
            game, states, choice, tables = self._game()
            self.kernel.evaluate_many(
                self.programs,
                which[part],
                limits[part],
                ends,
                game,
                states,
                choice,
                tables,
                regret[part],
                reached[part],
                choices[part] if with_choices else choices,
            )

        in_threads(work, range(0, count, _SHARE), self.threads)
        return regret, reached, choices

    # On episodes -------------------------------------------------------------------------------

    def simulation(self, *, runs: int, seed: int) -> Episodes:
        """The episodes of a seed, which all policies can play."""
        return Episodes(self, runs, seed)


class Episodes:
    """Episodes of problems drawn from the prior, the same for all policies of a batch."""

    def __init__(self, batch: Batch, runs: int, seed: int) -> None:
        self.batch = batch
        self.runs = runs
        self.seed = seed
        self.common = _Simulation(
            [(batch.example, batch.plan)],
            batch.prior,
            batch.horizon,
            runs=runs,
            seed=seed,
            checkpoints=[batch.horizon],
            lanes=MOST_LANES,
        )
        self.turns: dict[tuple[int, int], Any] = {}

    def play(self, which: Ints, first: int, last: int, *, simple: bool = False) -> Array:
        """Regret of policies on the problems first, ..., last - 1, [policy, problem]."""
        out = np.empty((len(which), last - first))
        # In parts, so that the regret of each single run needs little room.
        step = max(1, _EPISODES // self.runs)
        for begin in range(first, last, step):
            end = min(begin + step, last)
            episodes = np.full(len(which), begin * self.runs)
            rows = np.zeros(len(which), np.int64)
            problems = self.common.problems(begin, end)
            out[:, begin - first : end - first] = self._play(
                which, episodes, rows, end - begin, problems, simple
            )
        return out

    def play_other(self, policy: Policy, problems: int) -> Array:
        """Regret of any policy on the problems 0, ..., problems - 1, with the same luck."""
        regret = play_population(
            [(policy, policy.plan(self.batch.prior, self.batch.horizon))],
            self.batch.prior,
            self.batch.horizon,
            problems=problems,
            runs=self.runs,
            seed=self.seed,
            threads=self.batch.threads,
        )
        return np.asarray(regret[0])

    def play_each(self, which: Ints, first: Ints, count: int, training: int) -> Array:
        """The same with episodes first[i], first[i] + 1, ... of policy which[i], `count` of them.

        Episode j is of problem j mod `training`.
        """
        if (training, count) not in self.turns:
            problems = self.common.problems(0, training)
            turns = np.arange(training + count) % training
            self.turns[training, count] = problems._replace(
                parameters=np.ascontiguousarray(problems.parameters[turns]),
                means=np.ascontiguousarray(problems.means[turns]),
            )
        problems = self.turns[training, count]
        return self._play(which, first, first % training, count, problems, False)

    def _play(
        self, which: Ints, first: Ints, rows: Ints, count: int, problems: Any, simple: bool
    ) -> Array:
        batch = self.batch
        episodes = count * self.runs
        lanes = min(MOST_LANES, 16 * -(-episodes // 16))
        out = np.empty((len(which), count))
        rule, program, decide = self.common.plans[0]
        run = self.common.kernel.Run(np.uint64(self.seed), 0, self.runs, batch.horizon, lanes)

        def work(begin: int) -> None:
            part = slice(begin, min(begin + _SHARE, len(which)))
            room = self.common.kernel.workspace(problems, rule, program, lanes)
            each = np.empty((part.stop - part.start, episodes))
            batch.kernel.simulate_many(
                batch.programs,
                which[part],
                first[part],
                rows[part],
                run,
                problems,
                rule,
                self.common.draw,
                decide,
                room._replace(scalars=np.zeros(batch.scalars)),
                self.common.checkpoints,
                np.empty((2, episodes)),
                np.zeros((2, batch.prior.arms, 0), np.float32),
                np.zeros(batch.prior.arms),
                np.zeros(5),
                simple,
                each,
            )
            out[part] = each.reshape(len(each), count, self.runs).mean(axis=2)

        threads = batch.threads if len(which) > _SHARE else 1
        in_threads(work, range(0, len(which), _SHARE), threads)
        return out
