"""The parts of an advice: a first look, searches, a comparison on fresh problems, the floor, other problems.

Without a time limit all budgets are numbers of plays: one seed, one result, on any machine. With one, each
part gets a share of the time that is left, as many plays as the machine makes in it, and stops when it is over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..bayes.bounds import bound_seconds, has_bound
from ..bayes.optimum import has_optimum, optimal
from ..engine import costs, exact, simulated
from ..engine.floor import solving_seconds
from ..engine.limits import TimeLimit
from ..engine.simulated import has_posterior
from ..engine.task import Task, stream
from ..errors import InputError
from ..feedback import Feedback
from ..learning import learn
from ..learning.judges import EXACTLY, SIMULATED, Judge, judging_method
from ..learning.search import mean_work
from ..memory import duration
from ..policies import CATALOGUE, Policy, policy
from ..policies.file import Expression, PolicyFile
from ..priors import Table
from ..priors.fitting import Fitted
from .measuring import (
    BASELINE,
    CLASSIC,
    FEWEST,
    FORMULA,
    LEARNED,
    REFERENCE,
    YOURS,
    Measurements,
    obstacle,
)
from .neighbours import neighbours
from .readable import find_readable, is_quick, search_work
from .result import FINISHED, INTERRUPTED, Scenario
from .sentences import signed

LEARNED_NAME = "learned power-1"
SPLIT = "split"
_BASELINES = (SPLIT, "split-then-winner", "ab-test")
# What takes this many times as long as a simple index is not simulated.
_FAR_TOO_SLOW = 50.0
# Up to this many plays the table of the Gittins index takes some seconds.
_MOST_SOLVED = 1000
# Seconds that the optimum may take as a floor, and a lower bound; with less effort it says little.
_FLOOR_SECONDS, _BOUND_SECONDS, _LEAST_BOUND = 5.0, 20.0, 0.02
# Plays times arms, of all policies together: of the first look, and of the comparison.
_FIRST_WORK, _COMPARISON_WORK = 6e8, 3e9
_FINALISTS, _MOST_PROBLEMS = 5, 200_000
# Other problems are played this many times less often than those of the prior.
_NEARBY = 8
_HISTORIES = 20
# What is spent on learning: plays times arms if candidates are simulated, and seconds of a core if exact.
_LEARNING_WORK, _EXACT_LEARNING = 4.8e9, 24.0
# The weights of Power-1, and the candidates that `learn` judges exactly with effort 1; its index takes this
# many times as long as a formula. From _LONG plays on a quarter is spent on shorter ones.
_WEIGHTS, _LEARNING_CANDIDATES, _POWER, _LONG = 14, 400 * 14, 1.6, 400
# A generation of Power-1 has 22 candidates if they are simulated, and there should be _GENERATIONS of them,
# _FEW at least.
_GENERATION, _GENERATIONS, _FEW = 22, 15, 8
# Shares of the time that is left: first look, formulas, learning, comparison, floor; then wrong priors.
_SHARES = {"first": 0.2, "formulas": 0.25, "learning": 0.4, "comparison": 0.6, "floor": 0.25}
# Of a time limit, the share and the seconds that are kept for the end.
_RESERVE, _RESERVED = 0.03, 0.3
# A formula may have this much more regret than the learned policy and still be what is recommended; less
# than the second share is nothing, even where it is exact.
_WORTH_IT, _SOMETHING = 0.01, 0.001

Tell = Callable[[float, str], None]


class Steps:
    """An advice in the making.

    measured: what policies bring on problems that no search has seen; the first is today's
    kinds, files: of each of these policies; the second only of what was searched for
    began: when, by the monotonic clock
    free: whether the time limit alone says how much is computed
    """

    def __init__(
        self,
        task: Task,
        today: Policy,
        history: Fitted | None,
        *,
        began: float,
        free: bool,
        tell: Tell,
        announce: Callable[[str], None],
    ) -> None:
        self.searched = task
        if isinstance(task.prior, Table):
            # What is found on problems looks better on them than on others.
            part = task.prior.split()
            self.searched = replace(task, prior=part)
            task = replace(task, prior=part.held_out or part)
        self.task, self.today, self.history, self.free = task, today, history, free
        self.announce = announce
        self.clock, self.began = TimeLimit(), began
        self.kinds: list[str] = []
        self.files: dict[int, PolicyFile] = {}
        self.skipped: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.doubts: list[str] = []
        if history is not None:
            self.doubts = history.doubts()
            self.notes += (f"History: {note}." for note in history.history.notes)
            self.notes += (item for item in history.warnings() if item not in self.doubts)
        self.scenarios: list[Scenario] = []
        self.histories: list[Scenario] = []
        self.floor: tuple[float, str] | None = None
        self.stopped = FINISHED
        self._tell, self._begin, self._end = tell, 0.0, 0.0
        self.measured = Measurements(task, stream(task.seed, 7), self.clock)
        self.size = self.measured.size

    def run(self) -> None:
        """Everything in turn; Ctrl-C ends it once there is something to say."""
        try:
            self._warm_up()
            self._look_first()
            self._search()
            self._compare()
            self._find_floor()
            self._vary()
        except KeyboardInterrupt:
            if len(self.measured.played()) < 2 or 0 not in self.measured.played():
                raise
            self.stopped = INTERRUPTED

    def _tell_part(self, share: float, doing: str) -> None:
        self._tell(self._begin + share * (self._end - self._begin), doing)

    def _go_to(self, part: str, doing: str) -> None:
        """Another part begins: progress goes from where the last one ended."""
        ends = np.cumsum(list(self.seconds.values()))
        place = list(self.seconds).index(part)
        self._begin, self._end = self._end, float(ends[place] / ends[-1])
        self._tell_part(0.0, doing)

    # Before --------------------------------------------------------------------------------------

    def _warm_up(self) -> None:
        """Load what is compiled, or compile it, which no time limit is for."""
        from ..kernels.jit import seconds_compiling

        task, ready = self.task, simulated.is_compiled()
        if self.measured.exact:
            exact.announce_compilation(task.prior.arms, task.horizon, self.announce, task.feedback)
        simulated.announce_compilation(
            self.announce, task.prior, task.horizon, [(task.prior.counts(), None)]
        )
        judge = Judge(
            replace(task, horizon=task.prior.arms, feedback=Feedback()), SIMULATED, seed=0
        )
        judge.problems = 2
        judge.judge([policy("r", start=task.start)], 0)
        limit = task.time_limit
        # To load what is compiled is part of the command.
        spent = limit.passed + (seconds_compiling() if ready else 0.0)
        self.clock = TimeLimit((1.0 - _RESERVE) * limit.seconds - _RESERVED - spent)

    # First look ----------------------------------------------------------------------------------

    def _look_first(self) -> None:
        """Classics and baselines on a few problems: a first ranking after seconds."""
        self._tell(0.0, "a first look at classics and baselines")
        task, found = self.task, self.measured
        self._add(self.today, self._kind(self.today))
        # An equal split, then the quickest first.
        able = sorted(self._playable(), key=lambda item: (item.name != SPLIT, costs.slowness(item)))
        for item in able:
            self._add(item, self._kind(item))
        everyone = [
            place
            for place, item in enumerate(found.policies)
            if place == 0 or costs.slowness(item) < _FAR_TOO_SLOW
        ]
        work = self.size * sum(costs.slowness(found.policies[place]) for place in everyone)
        first = FEWEST * min(64, max(1, int(_FIRST_WORK * task.effort / work / FEWEST)))
        found.clock = self.clock.part(_SHARES["first"])
        found.play(everyone[:2], FEWEST, surely=True)
        found.play(everyone, FEWEST)
        found.play(everyone, first)
        self.first = max(found.plays(place) for place in everyone)
        for place, item in enumerate(found.policies):
            if place not in found.played():
                failed = place in found.failed
                why = "its index is not a finite number there" if failed else "no time was left"
                self.skipped.append((item.name, why))
        if 0 in found.failed:
            raise InputError(f"what you do today, {self.today.name}, has no finite index here")
        best = found.ranking()[0]
        text = f"first look ({self.first} episodes): {found.policies[best].name}"
        if best:
            apart = found.difference(0, best)
            text += f" brings {signed(apart)} per test against {self.today.name}"
        self.announce(text)

    def _playable(self) -> Iterator[Policy]:
        """The policies of the catalogue that are worth a look; the others are skipped with the reason."""
        for name in CATALOGUE:
            item = policy(name)
            if name == "optimal" or item.content() == self.today.content():
                continue  # the floor, and what is there already
            why = obstacle(item, self.task)
            if why is None and item.tabled and self.task.horizon > _MOST_SOLVED:
                why = f"its table takes too long for more than {_MOST_SOLVED} plays"
            elif why is None and item.tabled and not self.clock.allows(30.0):
                why = "no time for its table"
            times = costs.slowness(item)
            if why is None and times >= _FAR_TOO_SLOW and not self.measured.exact:
                why = f"too slow: a play takes some {times:.0f} times as long as with others"
            if why is None:
                yield item
            else:
                self.skipped.append((name, why))

    def _kind(self, item: Policy) -> str:
        if item.tabled:
            return REFERENCE
        if item.name.partition(":")[0] in _BASELINES:
            return BASELINE
        return CLASSIC if item.name in CATALOGUE else YOURS

    def _add(self, item: Policy, kind: str, file: PolicyFile | None = None) -> int:
        place = self.measured.add(item)
        self.kinds.append(kind)
        if file is not None:
            self.files[place] = file
        return place

    # Searching -----------------------------------------------------------------------------------

    def _search(self) -> None:
        """Other starts of the best classics, a readable formula, and a learned policy."""
        effort = self.task.effort
        self.seconds = self._estimates(effort)
        if not self.clock.given:
            seconds = time.monotonic() - self.began + sum(self.seconds.values())
            self.announce(f"this takes about {duration(float(f'{seconds:.2g}'))} in all ...")
        self._start_like_the_prior()
        self._go_to("formulas", "looking for a formula")
        part = self.clock.part(_SHARES["formulas"])
        file = find_readable(
            self.searched, self._affordable("formulas", part), part, self._tell_part
        )
        if file is None:
            self.notes.append("No time was left to look for a formula.")
        elif isinstance(file.policy, Expression):
            self._take_in(FORMULA, file.policy.expression, file)
        self._go_to("learning", "learning")
        self._learn(self.clock.part(_SHARES["learning"]))

    def _affordable(self, which: str, clock: TimeLimit) -> float:
        """The effort of a part: as asked for, or what the time allows."""
        if not self.free:
            return self.task.effort
        return max(1e-6, 0.9 * clock.left / self._estimates(1.0)[which])

    def _estimates(self, effort: float) -> dict[str, float]:
        """About the seconds of each part, from the pace of the first look."""
        task, found = self.task, self.measured
        threads = min(task.workers.threads, costs.CORES)
        simple = min(
            (place for place in found.played() if found.plays(place)),
            key=lambda place: found.seconds(place, 1.0),
        )
        pace = 1.3 * found.seconds(simple, 1.0) / self.size / threads
        each = task.exact_seconds
        rounds, work = search_work(self.searched, effort)
        formulas = work * pace
        if is_quick(self.searched, effort):
            formulas = rounds[0][0] * each / threads
        learning = _LEARNING_WORK * effort * _POWER * pace
        learning *= 1.25 if task.horizon >= _LONG else 1.0
        if self._learns_exactly():
            learning = effort * min(_EXACT_LEARNING, _LEARNING_CANDIDATES * each) / threads
        rivals = [place for place in found.ranking()[:_FINALISTS] if found.plays(place)]
        race = sum(found.seconds(place, self._problems(effort)) for place in rivals) / threads
        floor = 0.0
        if has_optimum(task.prior):
            floor = solving_seconds(task.prior, task.horizon, task.feedback)
            floor = floor if floor <= _FLOOR_SECONDS else 0.0
        elif has_bound(task.prior):
            floor = self._bound_within(_BOUND_SECONDS)[1]
        others = len(neighbours(task)) + 1 + (_HISTORIES if self.history is not None else 0)
        fewest = sum(found.seconds(place, FEWEST) for place in rivals) / threads
        return {
            "formulas": formulas,
            "learning": learning,
            "comparison": race,
            "floor": floor,
            "other problems": others * max(race / _NEARBY, fewest),
        }

    def _problems(self, effort: float) -> int:
        """Problems that finalists play."""
        fitting = int(_COMPARISON_WORK * effort / (_FINALISTS * self.size))
        return FEWEST * max(1, min(_MOST_PROBLEMS, fitting) // FEWEST)

    def _start_like_the_prior(self) -> None:
        """The best classics that are indices, begun with the prior's pseudo-observations."""
        if self.task.prior.counts() is None:
            return
        found = self.measured
        able = [
            place
            for place in found.ranking()
            if self.kinds[place] == CLASSIC and CATALOGUE[found.policies[place].name].takes_start
        ]
        found.clock = self.clock
        for place in able[:2]:
            text = f"{found.policies[place].name}:start=prior-counts"
            other = policy(found.policies[place].name, start=self.task.start)
            other.name = text
            if costs.slowness(other) < _FAR_TOO_SLOW:
                found.play([self._add(other, CLASSIC)], self.first)

    def _take_in(self, kind: str, name: str, file: PolicyFile) -> None:
        """Measure what was found beside the others, so that it is known from now on."""
        place = self._add(file.policy.policy(name), kind, file)
        self.measured.clock = self.clock
        self.measured.play([place], self.first)

    def _learns_exactly(self) -> bool:
        return judging_method(policy("r", start=self.task.start), self.searched) == EXACTLY

    def _learn(self, clock: TimeLimit) -> None:
        """Power-1, learned with a small part of what `learn` spends."""
        if not clock.left:
            self.notes.append("No time was left to learn a policy.")
            return
        task, share = self.searched, self._affordable("learning", clock)
        noisy = not has_posterior(task.prior, task.horizon)
        whole = mean_work(_WEIGHTS, task.horizon, noisy=noisy)
        effort, episodes = share * _LEARNING_WORK / whole, FEWEST
        if self._learns_exactly():
            each = task.exact_seconds
            effort = share * min(1.0, _EXACT_LEARNING / (_LEARNING_CANDIDATES * each))
            effort = min(effort, 1.0) if self.free else effort
        else:
            work = _LEARNING_WORK * share
            fitting = int(work / (_GENERATION * _GENERATIONS * self.size))
            episodes = min(3000, max(FEWEST, fitting))
            least = _FEW * _GENERATION * episodes * self.size
            seconds = self._estimates(1.0)["learning"] * least / _LEARNING_WORK
            if not clock.allows(seconds):
                self.notes.append(
                    f"No time was left to learn a policy: that takes {duration(seconds)} at least."
                )
                return
        found = learn(
            "power-1",
            task.prior,
            task.horizon,
            start=task.start,
            feedback=task.feedback,
            seed=stream(task.seed, 8),
            effort=effort,
            episodes=episodes,
            # A quarter of its time is for a comparison that is made here.
            time_limit=1.25 * clock.left if clock.given else None,
            threads=task.workers.threads,
            measured=False,
            progress=lambda item: self._tell_part(
                item.share, f"learning, generation {item.number}"
            ),
        )
        if found.unbeaten is None:
            self._take_in(LEARNED, LEARNED_NAME, found.file)
        else:
            self.notes.append("Learning found nothing better than what it began with.")

    # Comparing -----------------------------------------------------------------------------------

    def _place(self, kind: str) -> int | None:
        found = self.measured.played()
        return next((place for place in found if self.kinds[place] == kind), None)

    @property
    def split(self) -> int:
        """Where the equal split is: first or second."""
        return 0 if self.today.name == SPLIT else 1

    def _finalists(self) -> list[int]:
        """Today's policy, an equal split, what was searched for, and the best of the others."""
        known = self._best(CLASSIC, BASELINE, YOURS)
        found = [0, self.split, self._place(FORMULA), self._place(LEARNED), known]
        return list(dict.fromkeys(place for place in found if place is not None))

    def _best(self, *kinds: str) -> int | None:
        """The best policy of some kinds, of those that played enough to be compared with today's."""
        found = self.measured
        able = (
            place
            for place in found.ranking()
            if self.kinds[place] in kinds and found.is_comparable(place, 0)
        )
        return next(able, None)

    def _compare(self) -> None:
        """Those that may be the best play on."""
        self._go_to("comparison", "comparing on fresh problems")
        found = self.measured
        found.clock = self.clock.part(_SHARES["comparison"])
        problems = _MOST_PROBLEMS if self.free else self._problems(self.task.effort)
        if found.exact:
            problems = 4096  # only chances are estimated from them
        found.race(
            self._finalists(),
            problems,
            lambda share: self._tell_part(share, "comparing on fresh problems"),
        )
        for place in sorted(found.failed & set(self.files)):
            self.skipped.append(
                (found.policies[place].name, "its index is not a finite number there")
            )

    def recommended(self) -> int:
        """What to use."""
        baseline = self._best(BASELINE)
        if baseline is None or self.measured.difference(baseline, 0).mean >= 0.0:
            baseline = 0
        candidates = {
            BASELINE: baseline,
            CLASSIC: self._best(CLASSIC),
            FORMULA: self._place(FORMULA),
            LEARNED: self._place(LEARNED),
        }
        known = {kind: place for kind, place in candidates.items() if place is not None}
        return recommend(self.measured, known)

    def _find_floor(self) -> None:
        """The least possible regret, where it takes seconds."""
        task = self.task
        self._go_to("floor", "computing the best possible")
        part = self.clock.part(_SHARES["floor"])
        effort = task.bound_effort
        if has_optimum(task.prior):
            seconds = solving_seconds(task.prior, task.horizon, task.feedback)
            wanted = seconds <= _FLOOR_SECONDS
        else:
            limit = part.left / 1.5 if self.clock.given else _BOUND_SECONDS
            effort, seconds = self._bound_within(limit)
            wanted = effort > 0.0
        if not wanted or not part.allows(seconds):
            return
        found = optimal(
            task.prior, task.horizon, feedback=task.feedback, effort=effort,
            threads=task.workers.threads,
        )  # fmt: skip
        self.floor = found.regret, found.kind

    def _bound_within(self, limit: float) -> tuple[float, float]:
        """The effort of a lower bound that takes no longer than this, and its seconds; 0 if none does."""
        task, effort = self.task, self.task.bound_effort
        while has_bound(task.prior) and effort >= _LEAST_BOUND:
            seconds = bound_seconds(task.prior, task.horizon, effort) / task.workers.threads
            if seconds <= limit:
                return effort, seconds
            effort /= 2.0
        return 0.0, 0.0

    # Other problems ------------------------------------------------------------------------------

    def _vary(self) -> None:
        """The finalists on neighbouring problems, and on priors of resampled histories."""
        self._go_to("other problems", "if the prior is wrong")
        near = neighbours(self.task)
        if self.history is not None:
            priors = self.history.resampled(_HISTORIES, seed=stream(self.task.seed, 12))
            near += [
                (f"history {number}", replace(self.task, prior=item))
                for number, item in enumerate(priors, 1)
            ]
        finalists = list(dict.fromkeys([self.recommended(), *self._finalists()]))
        for number, (label, other) in enumerate(near):
            self._tell_part(number / len(near), label)
            # With little time some are looked at, not all for too short a time.
            part = self.clock.part(max(0.2, 1.0 / (len(near) - number)))
            made = self._play_elsewhere(label, other, finalists, number, part)
            if made is not None:
                (self.histories if label.startswith("history") else self.scenarios).append(made)
        if self.clock.given and len(self.scenarios) + len(self.histories) < len(near):
            self.notes.append(
                f"Time allowed {len(self.scenarios) + len(self.histories)} of the {len(near)} looks at other problems."
            )
        self._tell(1.0, "done")

    def _play_elsewhere(
        self, label: str, task: Task, finalists: list[int], number: int, clock: TimeLimit
    ) -> Scenario | None:
        """What the finalists bring on other problems; None if they cannot be measured there."""
        able = [self.measured.policies[place] for place in finalists]
        able = [self.today] + [item for item in able if item is not self.today]
        able = [item for item in able if obstacle(item, task) is None]
        if self.today not in able or self.measured.policies[finalists[0]] not in able:
            return None
        found = Measurements(task, stream(task.seed, 10 + number), clock, able)
        if not found.exact:
            places = range(len(able))
            longer = task.horizon / self.task.horizon
            needed = sum(self.measured.seconds(place, FEWEST) for place in finalists) * longer
            if not clock.allows(needed / min(task.workers.threads, costs.CORES)):
                return None
            problems = self._problems(task.effort)
            if self.free:
                problems = 2 * self.measured.plays(finalists[0])
            found.play(places, FEWEST, surely=True)
            found.race(places, max(FEWEST, problems // _NEARBY))
        gains = {item.name: found.difference(0, place) for place, item in enumerate(able)}
        kept = {name: gain for name, gain in gains.items() if math.isfinite(gain.mean)}
        if self.measured.policies[finalists[0]].name not in kept:
            return None
        return Scenario(label, str(task.prior), task.horizon, kept)


def recommend(found: Measurements, candidates: Mapping[str, int]) -> int:
    """What to use of policies by their kind, the simplest first.

    A policy is taken instead of a simpler one if it has less regret by more than noise, and by at least
    0.1 %, or 1 % if that is a formula. None is taken while a simpler one has less regret.
    """
    places = list(candidates.values())
    chosen = places[0]
    for number, place in enumerate(places):
        least = _WORTH_IT if chosen == candidates.get(FORMULA) else _SOMETHING
        apart = found.difference(chosen, place)
        if apart.low > 0.0 and apart.mean > least * found.regret(chosen).mean:
            if all(found.difference(other, place).mean >= 0.0 for other in places[:number]):
                chosen = place
    return chosen
