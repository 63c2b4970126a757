"""Every class, exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...engine import costs
from ...engine.programs import ManyPrograms
from ...engine.states import LONG
from ...engine.task import Task
from ...priors import Bernoulli
from ...priors.families import Array
from .base import OF_EACH_LENGTH, Ints, Strategy

# At most so many classes are looked at for each that is wanted: many may play alike.
_MOST_ALIKE = 100


class ExactSearch(Strategy):
    """Every class exactly: first for some of the plays, then the promising ones for all.

    Regret only grows with the plays, so a class whose regret is above what the best reach in the end
    can be given up on the way. Nothing is left to chance: the result is the best of all classes.
    """

    name = "exact"
    _SCREENED = 8192
    _CHUNK = 512

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        horizon = self.programs.horizon
        self.first = horizon if horizon <= 20 else max(12, horizon // 5)
        self.now_done = 0
        self.now_first = np.full(self.programs.count, np.inf)
        self.now_value = np.full(self.programs.count, np.inf)

    @staticmethod
    def obstacle(task: Task) -> str | None:
        """Why it cannot be used, or None."""
        if task.objective.name != "regret":
            return f"the strategy exact is for the objective regret, not {task.objective.name}"
        if type(task.prior) is not Bernoulli or task.prior.arms != 2:
            return (
                f"the strategy exact is for two Bernoulli arms, not for {task.prior.arms} arms of "
                f"{task.prior}"
            )
        if task.horizon > LONG:
            return f"the strategy exact is for up to {LONG} plays, not {task.horizon}"
        return None

    @staticmethod
    def seconds(programs: ManyPrograms) -> float:
        """About how long it takes."""
        prior, horizon = programs.prior, programs.horizon
        some = programs.count * costs.exact_seconds(prior, max(12, horizon // 5))
        return (some + 3000 * costs.exact_seconds(prior, horizon)) / costs.CORES

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
            limits[length] = max(best, of_length[min(OF_EACH_LENGTH, len(of_length)) - 1])
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
        order = np.argsort(known, kind="stable")
        order = order[np.isfinite(known[order])]
        count = self.top
        if known is self.now_value:
            count = int((known <= self._worth_ranking() * (1.0 + 1e-9)).sum())
        return self._with_lengths(order, min(count, _MOST_ALIKE * self.top))

    @property
    def doing(self) -> str:
        count = self.programs.count
        if self.now_done < count:
            return f"exact for {self.first} plays: {self.now_done:,} of {count:,} classes"
        return f"exact for {self.programs.horizon} plays: best {np.min(self.now_value):.5g}"
