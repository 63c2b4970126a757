"""Thousands of index policies at once: their exact regret, or their regret on the same episodes.

The policies have prior, horizon and start in common; only their programs differ. A call costs
microseconds a policy beside the evaluation itself.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..language.compile import Compiled
from ..policies import IndexPolicy, Plan, Policy, Start
from ..priors import Bernoulli, Prior
from ..priors.families import Array
from ..workers import Job, Workers
from . import exact
from .population import Population, play_population
from .simulated import MOST_LANES, Simulation, work_seconds
from .states import TwoArms
from .threads import in_threads

Ints = npt.NDArray[np.int64]

# Policies that a thread takes at a time.
_SHARE = 64
# Episodes that a policy plays at a time.
_EPISODES = 16_384


class Batch:
    """Index policies that play one prior and horizon from the same start.

    programs: as kernels.batch.pack gives them
    """

    def __init__(
        self, programs: Any, prior: Prior, horizon: int, start: Start, workers: Workers
    ) -> None:
        from ..kernels import batch

        self.kernel = batch
        self.prior = prior
        self.horizon = horizon
        self.workers = workers
        self.programs = programs
        self.count = len(programs.registers)
        # What workers make and keep.
        self.remote = partial(Remote, prior, horizon, start)
        # A policy that stands for all: the one that needs most room.
        code = batch.unpack(programs, int(np.argmax(programs.registers)))
        largest = Compiled(**code._asdict(), parameters=())
        self.example = IndexPolicy("r", start=start)
        plan = self.example.plan(prior, horizon)
        self.plan = Plan(
            plan.each_once, plan.counts, largest, uses_s=True, by_counts=plan.by_counts
        )
        self.scalars = int(np.diff(self.programs.scalar_ends).max())
        self.local = threading.local()

    @classmethod
    def of(
        cls,
        compiled: Sequence[Compiled],
        prior: Prior,
        horizon: int,
        start: Start,
        workers: Workers,
    ) -> Batch:
        """The batch of compiled expressions."""
        from ..kernels import batch

        return cls(batch.pack(compiled), prior, horizon, start, workers)

    def hand_out(
        self, method: str, which: Ints, seconds: float, *each: Any, **common: Any
    ) -> list[Any]:
        """What workers give for policies, in runs of them; `each` has one row a policy."""
        jobs = [
            Job(
                (
                    self.kernel.take(self.programs, which[first:last]),
                    *(item[first:last] for item in each),
                    common,
                ),
                seconds * (last - first) / len(which),
            )
            for first, last in self.workers.cut(len(which), seconds, method)
        ]
        return list(self.workers.run(self.remote, method, jobs))

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
        seconds = count * exact.cost(self.prior, points[-1])
        if self.workers.worth(seconds, "regret"):
            found = self.hand_out(
                "regret", which, seconds, limits, points=points, with_choices=with_choices
            )
            first, second, third = map(np.concatenate, zip(*found, strict=True))
            return first, second, third
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

        in_threads(work, range(0, count, _SHARE), self.workers.threads)
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
        self._numbers = {"runs": runs, "seed": seed}
        self.common = Simulation(
            [(batch.example.name, batch.plan)],
            batch.prior,
            batch.horizon,
            runs=runs,
            seed=seed,
            checkpoints=[batch.horizon],
            lanes=MOST_LANES,
        )
        self.turns: dict[tuple[int, int], Any] = {}

    def _seconds(self, policies: int, problems: int) -> float:
        """What it takes policies to play so many problems, about."""
        batch = self.batch
        return policies * work_seconds(batch.prior, batch.horizon, problems * self.runs)

    def moments(
        self, which: Ints, first: int, last: int, *, simple: bool = False
    ) -> tuple[Array, Array]:
        """The sum of each policy's regret over problems, and the standard error of its mean."""
        seconds = self._seconds(len(which), last - first)
        if self.batch.workers.worth(seconds, "moments"):
            found = self.batch.hand_out(
                "moments", which, seconds, **self._numbers, first=first, last=last, simple=simple
            )
            sums, errors = map(np.concatenate, zip(*found, strict=True))
            return sums, errors
        regret = self._here(which, first, last, simple)
        with np.errstate(invalid="ignore"):
            spread = regret.std(axis=1, ddof=1) if last - first > 1 else np.zeros(len(which))
            return regret.sum(axis=1), spread / np.sqrt(last - first)

    def play(self, which: Ints, first: int, last: int, *, simple: bool = False) -> Array:
        """Regret of policies on the problems first, ..., last - 1, [policy, problem]."""
        seconds = self._seconds(len(which), last - first)
        if self.batch.workers.worth(seconds, "play"):
            found = self.batch.hand_out(
                "play", which, seconds, **self._numbers, first=first, last=last, simple=simple
            )
            return np.concatenate(found)
        return self._here(which, first, last, simple)

    def _here(self, which: Ints, first: int, last: int, simple: bool) -> Array:
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
        batch = self.batch
        plan = policy.plan(batch.prior, batch.horizon)
        regret = play_population(
            partial(Population, batch.prior, batch.horizon, runs=self.runs),
            [(policy, plan)],
            [0, problems],
            seed=self.seed,
            workers=batch.workers.able_to_send(plan.size),
        )
        return np.asarray(regret[0])

    def play_each(self, which: Ints, first: Ints, count: int, training: int) -> Array:
        """The same with episodes first[i], first[i] + 1, ... of policy which[i], `count` of them.

        Episode j is of problem j mod `training`.
        """
        seconds = self._seconds(len(which), count)
        if self.batch.workers.worth(seconds, "play_each"):
            found = self.batch.hand_out(
                "play_each", which, seconds, first, **self._numbers, count=count, training=training
            )
            return np.concatenate(found)
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

        threads = batch.workers.threads if len(which) > _SHARE else 1
        in_threads(work, range(0, len(which), _SHARE), threads)
        return out


class Remote:
    """What a worker does for a batch: the same with some of its policies."""

    def __init__(self, prior: Prior, horizon: int, start: Start) -> None:
        self.prior = prior
        self.horizon = horizon
        self.start = start

    def _batch(self, programs: Any) -> tuple[Batch, Ints]:
        batch = Batch(programs, self.prior, self.horizon, self.start, Workers(1))
        return batch, np.arange(batch.count)

    def regret(self, programs: Any, limits: Array, common: dict[str, Any]) -> Any:
        batch, every = self._batch(programs)
        return batch.evaluate(every, limits=limits, **common)

    def _episodes(self, programs: Any, common: dict[str, Any]) -> tuple[Episodes, Ints]:
        batch, every = self._batch(programs)
        return batch.simulation(runs=common.pop("runs"), seed=common.pop("seed")), every

    def play(self, programs: Any, common: dict[str, Any]) -> Array:
        episodes, every = self._episodes(programs, common)
        return episodes.play(every, **common)

    def moments(self, programs: Any, common: dict[str, Any]) -> tuple[Array, Array]:
        episodes, every = self._episodes(programs, common)
        return episodes.moments(every, **common)

    def play_each(self, programs: Any, first: Ints, common: dict[str, Any]) -> Array:
        episodes, every = self._episodes(programs, common)
        return episodes.play_each(every, first, **common)
