"""Three ways to find the best of many classes: exactly, by halving, and as the paper does."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from ..bayes.listed import is_listed
from ..engine import costs
from ..engine.programs import ManyPrograms
from ..engine.states import LONG
from ..engine.task import Task, stream
from ..errors import InputError
from ..feedback import IMMEDIATE
from ..priors import Bernoulli
from ..priors.families import Array
from ..workers import interrupts_later
from .classes import Ints

# The best of each length are kept to the end, for the picture of regret against length.
_OF_EACH_LENGTH = 2
# At most so many classes are looked at for each that is wanted: many may play alike.
_MOST_ALIKE = 100


class Strategy(ABC):
    """Looks for the classes with the lowest value of the objective, in steps of a second or so.

    Attributes that begin with `now_` are its state, from which a killed search goes on.

    lengths: of the formulas; top: how many of the best are wanted
    """

    name: ClassVar[str]
    only_regret: ClassVar[bool] = False

    def __init__(self, task: Task, programs: ManyPrograms, lengths: Ints, *, top: int) -> None:
        self.task = task
        self.objective = task.objective
        self.programs = programs
        self.lengths = lengths
        self.top = min(top, programs.count)
        self.seed = stream(task.seed, 1)
        self.now_share = 0.0
        self.now_seconds = 0.0

    @classmethod
    def obstacle(cls, task: Task) -> str | None:
        """Why it cannot be used, or None."""
        if cls.only_regret and task.objective.name != "regret":
            return f"the strategy {cls.name} is for the objective regret, not {task.objective.name}"
        return None

    @abstractmethod
    def step(self) -> float:
        """Go on for a while; the share that is done, 1 at the end."""

    @abstractmethod
    def found(self) -> Ints:
        """The best classes so far: the first is the best."""

    @property
    @abstractmethod
    def doing(self) -> str:
        """What is going on, for people to see."""

    def state(self) -> dict[str, Any]:
        """Arrays and numbers from which `restore` can go on."""
        return {key: value for key, value in vars(self).items() if key.startswith("now_")}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for key, value in state.items():
            known = getattr(self, key)
            setattr(self, key, value if value.ndim else type(known)(value.item()))

    def _with_lengths(self, order: Ints, count: int) -> Ints:
        """Places in an order of classes: the first, and the first few of each length."""
        kept = np.arange(len(order)) < count
        for length in np.unique(self.lengths[order]):
            kept[np.flatnonzero(self.lengths[order] == length)[:_OF_EACH_LENGTH]] = True
        return np.flatnonzero(kept)


class ExactSearch(Strategy):
    """Every class exactly: first for some of the plays, then the promising ones for all.

    Regret only grows with the plays, so a class whose regret is above what the best reach in the end
    can be given up on the way. Nothing is left to chance: the result is the best of all classes.
    """

    name = "exact"
    only_regret = True
    _SCREENED = 8192
    _CHUNK = 512

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        horizon = self.programs.horizon
        self.first = horizon if horizon <= 20 else max(12, horizon // 5)
        self.now_done = 0
        self.now_first = np.full(self.programs.count, np.inf)
        self.now_value = np.full(self.programs.count, np.inf)

    @classmethod
    def obstacle(cls, task: Task) -> str | None:
        """Why it cannot be used, or None."""
        if not (is_listed(task.prior) or (type(task.prior) is Bernoulli and task.prior.arms == 2)):
            return (
                f"the strategy exact is for two Bernoulli arms, not for {task.prior.arms} arms of "
                f"{task.prior}"
            )
        if task.feedback != IMMEDIATE:
            return f"the strategy exact is for immediate feedback, not for {task.feedback}"
        if task.horizon > LONG:
            return f"the strategy exact is for up to {LONG} plays, not {task.horizon}"
        return super().obstacle(task)

    @staticmethod
    def seconds(programs: ManyPrograms) -> float:
        """About how long it takes."""
        prior, horizon = programs.prior, programs.horizon
        some = programs.count * costs.program_seconds(prior, max(12, horizon // 5))
        return (some + 3000 * costs.program_seconds(prior, horizon)) / costs.CORES

    def step(self) -> float:
        count = self.programs.count
        if self.now_done < count:
            which = np.arange(self.now_done, min(self.now_done + self._SCREENED, count))
            self.now_first[which], _, _ = self.programs.exact_regret(which, points=[self.first])
            self.now_done = int(which[-1]) + 1
            if self.now_done == count and self.first == self.programs.horizon:
                self.now_value[:] = self.now_first
                self.now_done = 2 * count
            return 0.3 * self.now_done / count if self.now_done < 2 * count else 1.0
        order = np.argsort(self.now_first, kind="stable")
        begin = self.now_done - count
        limits = self._limits()
        rest = order[begin:]
        open_ones = rest[self.now_first[rest] <= limits[self.lengths[rest]]]
        which = open_ones[: self._CHUNK]
        if not len(which):
            self.now_done = 2 * count
            return 1.0
        horizon = self.programs.horizon
        steps = max(1, round(math.log(horizon / self.first) / math.log(1.25)))
        points = np.unique(np.geomspace(self.first, horizon, steps + 1).round().astype(int))
        regret, reached, _ = self.programs.exact_regret(
            which, limits[self.lengths[which]], points=points.tolist()
        )
        self.now_value[which] = np.where(reached == horizon, regret, np.inf)
        self.now_done = count + begin + int(np.flatnonzero(rest == which[-1])[0]) + 1
        return 0.3 + 0.69 * (1.0 - max(len(open_ones) - len(which), 0) / max(len(rest), 1))

    def _limits(self) -> Array:
        """By length: the regret above which a class is neither among the best nor best of its length."""
        best = self._worth_ranking()
        limits = np.full(int(self.lengths.max()) + 1, best)
        for length in np.unique(self.lengths):
            of_length = np.sort(self.now_value[self.lengths == length])
            limits[length] = max(best, of_length[min(_OF_EACH_LENGTH, len(of_length)) - 1])
        return limits * (1.0 + 1e-12)

    def _worth_ranking(self) -> float:
        """The regret of the last of the best so far; those with the same regret mostly play alike."""
        values = np.sort(self.now_value[np.isfinite(self.now_value)])
        fresh = np.flatnonzero(np.diff(values) > 1e-10 * values[:-1]) + 1
        places = [0, *fresh.tolist()]
        return float(values[places[self.top - 1]]) if len(places) >= self.top else math.inf

    def found(self) -> Ints:
        # Before the second part has begun, regret after some of the plays must do.
        known = self.now_value
        if not np.isfinite(known).any():
            known = self.now_first
        order: Ints = np.argsort(known, kind="stable")
        order = order[np.isfinite(known[order])]
        count = self.top
        if known is self.now_value:
            count = int((known <= self._worth_ranking() * (1.0 + 1e-9)).sum())
        return order[self._with_lengths(order, min(count, _MOST_ALIKE * self.top))]

    @property
    def doing(self) -> str:
        count = self.programs.count
        if self.now_done < count:
            return f"exact for {self.first} plays: {self.now_done:,} of {count:,} classes"
        return f"exact for {self.programs.horizon} plays: best {np.min(self.now_value):.5g}"


class Halving(Strategy):
    """Rounds in which all that are left play the same new problems with the same rewards.

    After each round the worse half goes, by the mean over all problems so far, and the number of problems
    doubles: every round takes about the same time. Of classes with the same regret on all of many
    problems, which play alike for all one can see, the first stays.
    """

    name = "halving"
    # So many problems show which classes play alike; before, more are kept.
    _MANY = 1000
    _MORE = 8

    def __init__(self, *arguments: Any, episodes: int = 64, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.first = episodes
        self.runs = 1 if self.objective.mean else 20
        self.episodes: dict[str, Any] = {"runs": self.runs, "seed": self.seed}
        self.now_left = np.arange(self.programs.count)
        self.now_round = 0
        self.now_problems = 0
        # Sums for means; every single regret where the objective needs it.
        self.now_sums = np.zeros(self.programs.count)
        self.now_regret = np.zeros((self.programs.count, 0), np.float32)
        self.last = max(2 * self.top, 16)
        self.rounds = self._rounds(self.programs.count, self.last, self.first)

    @classmethod
    def _rounds(cls, count: int, last: int, episodes: int) -> int:
        """Enough to come down to the last, and to see which play alike."""
        down = math.ceil(math.log2(max(count / last, 1.0))) + 1
        return max(down, math.ceil(math.log2(20 * cls._MANY / episodes)))

    @classmethod
    def seconds(cls, programs: ManyPrograms, episodes: int, top: int) -> float:
        """About how long it takes."""
        rounds = cls._rounds(programs.count, 2 * top, episodes)
        played = rounds * programs.count * episodes
        seconds = costs.simulation_seconds(programs.prior, programs.horizon, played)
        return seconds / costs.CORES

    def step(self) -> float:
        new = max(1, (self.first << self.now_round) // self.runs)
        first, last = self.now_problems, self.now_problems + new
        left, sums, regret = self.now_left, self.now_sums, self.now_regret
        if self.objective.mean:
            simple = self.objective.simple
            more, _ = self.programs.moments(left, first, last, simple=simple, **self.episodes)
            sums = sums + more
            values = sums / last
        else:
            played = self.programs.regret(left, first, last, **self.episodes)
            regret = np.concatenate([regret, played.astype(np.float32)], axis=1)
            reference = None
            if self.task.reference is not None:
                other = self.task.reference
                reference = self.programs.regret_of_other(other, last, **self.episodes)
            values = self.objective.value(regret.astype(np.float64), reference)
        order = np.lexsort((left, values))
        least = self.last
        if last * self.runs >= self._MANY:
            alike = sums if self.objective.mean else regret.sum(axis=1)
            _, places = np.unique(alike[order], return_index=True)
            order = order[np.sort(places)]
        else:
            least = self._MORE * self.last
        done = self.now_round + 1
        if done < self.rounds:
            order = order[self._with_lengths(left[order], max(least, len(order) // 2))]
        # All at once: a state that is written is of one round.
        with interrupts_later():
            self.now_round, self.now_problems = done, last
            self.now_left, self.now_sums, self.now_regret = left[order], sums[order], regret[order]
        return done / self.rounds

    def found(self) -> Ints:
        # A search that is stopped has many left.
        return self.now_left[self._with_lengths(self.now_left, 4 * self.top)]

    @property
    def doing(self) -> str:
        return (
            f"round {self.now_round + 1} of {self.rounds}: {len(self.now_left):,} classes, "
            f"{self.first << self.now_round:,} episodes each"
        )


class Ucb1Tuned(Strategy):
    """The paper's way: classes are arms, one episode is a pull, UCB1-Tuned says which is next.

    The j-th pull of a class plays training problem 1 + j mod N; a reward is minus the regret of the
    episode. The pulls are those of one after the other, though episodes are played in blocks ahead of
    time: what a class's next episodes give does not depend on when they are played.
    """

    name = "ucb1-tuned"
    only_regret = True
    TRAINING = 100
    _EPOCH = 1000
    _SIZES = (16, 64, 256)

    def __init__(self, *arguments: Any, pulls: int = 10_000_000, **options: Any) -> None:
        from ..kernels import ucb1_tuned

        super().__init__(*arguments, **options)
        self.kernel = ucb1_tuned
        if pulls < self.programs.count:
            raise InputError(
                f"{pulls:,} pulls are too few: each of the {self.programs.count:,} classes is pulled once "
                f"before the first choice; raise --pulls"
            )
        self.pulls = pulls
        self.now_pulled = 0
        self.now_count = np.zeros(self.programs.count, np.int64)
        self.now_total, self.now_squares = np.zeros((2, self.programs.count))
        self._forget()

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._forget()

    def _forget(self) -> None:
        """Nothing is ready: what comes next is played when it is needed."""
        ready, taken = np.zeros((2, self.programs.count), np.int64)
        buffer = np.zeros((self.programs.count, self._SIZES[-1]), np.float32)
        self.table = self.kernel.Pulls(
            self.now_count, self.now_total, self.now_squares, ready, taken, buffer
        )

    def _prepare(self, which: Ints) -> None:
        """Play the next episodes of classes: more of those that were pulled often."""
        size = np.searchsorted((16, 256), self.now_count[which], side="right")
        for position, episodes in enumerate(self._SIZES):
            group = which[size == position]
            if len(group):
                regret = self.programs.next_regrets(
                    group, self.now_count[group], episodes, training=self.TRAINING, seed=self.seed
                )
                # A class that cannot be played is pulled once and never again.
                self.table.buffer[group, :episodes] = -np.minimum(regret, 1e9)
                self.table.ready[group] = episodes
                self.table.taken[group] = 0

    def step(self) -> float:
        count = self.programs.count
        if not self.now_pulled:
            self._prepare(np.arange(count))
            first = self.table.buffer[:, 0].astype(np.float64)
            self.table.taken[:] = 1
            self.now_count += 1
            self.now_total += first
            self.now_squares += first**2
            self.now_pulled = count
        end = min(self.now_pulled + 200 * self._EPOCH, self.pulls)
        while self.now_pulled < end:
            self._epoch(min(self._EPOCH, end - self.now_pulled))
        return self.now_pulled / self.pulls

    def _epoch(self, most: int) -> None:
        """Some pulls. At any time one of the `most` best at the outset was not pulled yet, and its index
        has only grown; so only classes that can come up to the least of these can be pulled.
        """
        kernel, count = self.kernel, self.programs.count
        index, later = np.empty(count), np.empty(count)
        kernel.upper_bounds(self.table, self.now_pulled, index)
        kernel.upper_bounds(self.table, self.now_pulled + most, later)
        place = max(count - most, 0)
        least = np.partition(index, place)[place]
        self._prepare(np.flatnonzero((index >= least) & (self.table.taken == self.table.ready)))
        candidates = np.flatnonzero(later >= least)
        mean, scale = np.empty(len(candidates)), np.empty(len(candidates))
        end = self.now_pulled + most
        while self.now_pulled < end:
            these = candidates.copy()
            self.now_pulled += kernel.pull(
                end - self.now_pulled, self.now_pulled, these, mean, scale, self.table
            )
            if self.now_pulled < end:
                self._prepare(these[:1])

    def found(self) -> Ints:
        order = np.argsort(-self.now_total / self.now_count, kind="stable")
        return order[self._with_lengths(order, 4 * self.top)]

    @property
    def doing(self) -> str:
        if not self.now_pulled:
            return "pulling each class once"
        best = int(np.argmax(self.now_total / self.now_count))
        return (
            f"{self.now_pulled:,} of {self.pulls:,} pulls, best "
            f"{-self.now_total[best] / self.now_count[best]:.4g} ({self.now_count[best]:,} pulls)"
        )


STRATEGIES: dict[str, type[Strategy]] = {
    item.name: item for item in (ExactSearch, Halving, Ucb1Tuned)
}
