"""`advise`: search a little, compare with the classics on fresh problems, and say what is worth using.

All budgets are numbers of plays, never seconds: one seed, one result, on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..bayes.bounds import has_bound
from ..bayes.optimum import has_optimum
from ..engine import Comparison, costs, exact, simulated
from ..engine.floor import solving_seconds
from ..engine.problems import draw_problems
from ..engine.results import EXACT
from ..engine.task import Task, read_task, silent, stream
from ..errors import InputError
from ..feedback import Feedback
from ..files import reserving
from ..learning import Generation, learn
from ..learning.judges import EXACTLY, judging_method
from ..memory import check_time
from ..policies import IndexPolicy, Policy, Start, policy
from ..policies.file import Measured, PolicyFile, check_target
from ..policies.start import default_start
from ..priors import Bernoulli, Prior, Table
from .comparing import TOO_SLOW, Tell, compare, compare_nearby, is_exact, playable, quiet
from .neighbours import has_neighbours
from .readable import find_readable
from .result import CLASSIC, FORMULA, LEARNED, REFERENCE, Advice, Candidate, Gain, gain

LEARNED_NAME = "learned power-1"
_FLOOR_SECONDS = 5.0
# How much of what `learn` takes by default is spent: simulated, and seconds of a core if exact.
_EFFORT = 0.04
_EXACT_LEARNING = 24.0
# What `learn` takes with effort 1, in plays times arms and in candidates (Power-1 has 14 weights).
_LEARNING_WORK, _LEARNING_CANDIDATES = 1.2e11, 400 * 14
# A generation of Power-1 has 11 candidates, and there should be _GENERATIONS of them.
_GENERATION, _GENERATIONS = 11, 15
# Episodes that are played at least, plays times arms of a second on two cores, and when to say so.
_LEAST_WORK, _SPEED, _PATIENCE = 1.2e5, 3e8, 90.0


@reserving
def advise(
    prior: Prior,
    horizon: int,
    *,
    feedback: Feedback | Mapping[str, Any] | None = None,
    seed: int = 0,
    effort: float = 1.0,
    floor_effort: float | None = None,
    threads: int | None = None,
    out: str | Path | None = None,
    force: bool = False,
    progress: Tell | None = None,
    announce: Callable[[str], None] | None = None,
) -> Advice:
    """What is worth using on problems of a prior: a classic, a readable formula or a learned policy.

    Parameters
    ----------
    prior : Prior
        What problems are like.
    horizon : int
        Plays per episode.
    feedback : Feedback, optional
        When rewards become known; immediately by default.
    seed : int
        One seed, one result, whatever the number of threads.
    effort : float
        2 lets searches and comparisons take twice as long, 0.5 half as long.
    floor_effort : float, optional
        How much is computed for the floor where it is a lower bound (see `lower_bound`); by default as
        the effort, up to 1.
    threads : int, optional
        All cores by default.
    out : path, optional
        The policy file to write if what is recommended was searched for.
    force : bool
        Overwrite what is there.
    progress, announce : callable, optional
        Called with the share that is done and what is going on, and with messages.

    Returns
    -------
    Advice

    Examples
    --------
    >>> import metabandit as mb
    >>> advice = mb.advise(mb.Bernoulli(arms=2), horizon=10, effort=0.01)
    >>> advice.recommended.role
    'formula'
    """
    task = read_task(
        prior, horizon, feedback=feedback, seed=seed, effort=effort, floor_effort=floor_effort,
        threads=threads,
    )  # fmt: skip
    target = None if out is None else check_target(out, force=force)
    if target is None and force:
        raise InputError("--force overwrites a policy file: give --out, or leave it out")
    task = replace(task, start=Start.read(default_start(prior)).resolve(prior))
    policy("r", start=task.start).check(prior, task.horizon)
    tell = progress or quiet
    classics, references, skipped = playable(task)
    _announce_time(task, announce or silent)

    formula, readable = find_readable(task, _between(tell, 0.0, 0.3))
    learned = _learn(task, _between(tell, 0.3, 0.7))
    candidates = [
        Candidate(FORMULA, readable.policy.policy(formula), readable),
        Candidate(LEARNED, learned.policy.policy(LEARNED_NAME), learned),
        *(Candidate(CLASSIC, item) for item in classics),
        *(Candidate(REFERENCE, item) for item in references),
    ]
    comparison, faults = compare(
        [item.policy for item in candidates],
        task,
        floor=_quick_floor(task),
        tell=_between(tell, 0.7, 0.88),
    )
    kept = [item for item in candidates if item.policy.name not in dict(faults)]
    kept = [_measured(item, comparison, place) for place, item in enumerate(kept)]
    scenarios = compare_nearby(task, kept, comparison, tell=_between(tell, 0.88, 1.0))
    advice = Advice(
        candidates=tuple(kept),
        comparison=comparison,
        best_reward=task.horizon * _expected_best(prior, comparison),
        scenarios=scenarios,
        skipped=(*skipped, *faults),
        seed=task.seed,
        effort=task.effort,
    )
    advice = replace(advice, notes=tuple(_notes(advice, task)))
    if target is not None and advice.recommended.file is not None:
        try:
            advice.recommended.file.write(target)
        except InputError as error:
            # The advice is worth a minute; it is not lost with the file.
            return replace(advice, notes=(*advice.notes, f"The policy was not written: {error}."))
        advice = replace(advice, written=target)
    return advice


def _between(tell: Tell, low: float, high: float) -> Tell:
    """Progress of one part, told as that of the whole."""
    return lambda share, doing: tell(low + (high - low) * share, doing)


def _slow_note(slow: Policy, advice: Advice, task: Task) -> str:
    """A classic that is too slow for the ranking, on fewer problems: is it better than the best there?"""
    chosen, rival = (advice.candidates[at].policy for at in (advice.choice, advice.classic))
    found, faults = compare([slow, rival, *([] if chosen is rival else [chosen])], task)
    text = f"{slow.name} is slow, so it was played on {found.episodes:,} episodes only: "
    if faults:
        return f"{text}its index failed there."
    return f"{text}it has {_versus(gain(found, 0, 1))} {rival.name}" + (
        "." if chosen is rival else f", and {chosen.name} has {_versus(gain(found, 2, 0))} it."
    )


def _versus(over: Gain) -> str:
    """A gain in words, before the name of what it is compared with."""
    if not over.significant:
        return "neither more nor less regret, by more than noise, than"
    return f"{100.0 * abs(over.share):.0f} % {'less' if over.share > 0.0 else 'more'} regret than"


def _start_note(advice: Advice, task: Task) -> Iterator[str]:
    """How much of the gain is due to the start: classics play each arm once, as they are defined."""
    chosen, rival = (advice.candidates[at].policy for at in (advice.choice, advice.classic))
    if (
        task.start.each_once
        or chosen is rival
        or not isinstance(rival, IndexPolicy)
        or rival.reads_prior
    ):
        return
    begun = IndexPolicy(
        rival.tree,
        parameters=rival.parameters,
        start=task.start,
        name=f"{rival.name} from pseudo-observations",
    )
    found, faults = compare([chosen, rival, begun], task)
    text = f"{rival.name} plays each arm once first, as it is defined"
    if faults:
        yield (
            f"{text}; {chosen.name} begins with the prior's pseudo-observations. {rival.name} cannot."
        )
        return
    yield (
        f"{text}. Begun with the prior's pseudo-observations, as {chosen.name} is, it would have a "
        f"regret of {found[2].mean_regret:.4g}, and {chosen.name} has {_versus(gain(found, 0, 2))} that."
    )


def _notes(advice: Advice, task: Task) -> Iterator[str]:
    """What else should be known."""
    for place, item in enumerate(advice.candidates):
        apart = advice.comparison.difference(advice.choice, place)
        if item.role == REFERENCE and apart.significant and apart.mean > 0.0:
            share = apart.mean / advice.comparison[advice.choice].mean_regret
            yield (
                f"{item.policy.name} has {100.0 * share:.1f} % less regret still, but needs a table that is "
                f"made for the prior and the number of plays."
            )
    for name, why in advice.skipped:
        if why.startswith(TOO_SLOW):
            yield _slow_note(policy(name), advice, task)
    yield from _start_note(advice, task)
    if isinstance(task.prior, Table):
        yield (
            f"The problems are the {len(task.prior.means)} rows of the table, for the searches and for the "
            f"comparison: only the luck is fresh. With few rows, keep some in a file of their own and "
            f"evaluate on them."
        )
    if not has_neighbours(task.prior):
        yield (
            f"Near priors are known for the priors of metabandit only, so for {task.prior} the horizon "
            f"alone was varied."
        )


def _quick_floor(task: Task) -> bool:
    if not has_optimum(task.prior):
        return has_bound(task.prior)
    return solving_seconds(task.prior, task.horizon, task.feedback) <= _FLOOR_SECONDS


def _size(task: Task) -> float:
    """What an episode takes, in plays times arms with simple rewards."""
    return task.horizon * task.prior.arms * costs.reward_slowness(task.prior)


def _announce_time(task: Task, announce: Callable[[str], None]) -> None:
    """Say what a person has to wait for: code that is compiled once, and many plays."""
    if is_exact(task):
        exact.announce_compilation(task.prior.arms, announce, task.feedback)
    simulated.announce_compilation(announce, task.prior, task.horizon, [task.prior.counts()])
    seconds = _LEAST_WORK * _size(task) / _SPEED
    check_time(
        seconds,
        f"advice for {task.horizon:,} plays of {task.prior.arms:,} arms",
        "choose a shorter horizon",
    )
    if seconds > _PATIENCE:
        announce(f"this number of plays takes longer: about {seconds / 60.0:.0f} minutes ...")


def _learn(task: Task, tell: Tell) -> PolicyFile:
    """Power-1, learned with a small part of what `learn` spends."""
    effort = _EFFORT * task.effort
    if judging_method(policy("r", start=task.start), task) == EXACTLY:
        each = costs.exact_seconds(task.prior, task.horizon, feedback=task.feedback)
        seconds = _LEARNING_CANDIDATES * each
        effort = task.effort * min(1.0, _EXACT_LEARNING / seconds)
    fitting = _LEARNING_WORK * effort / (_GENERATION * _GENERATIONS * _size(task))

    def told(generation: Generation) -> None:
        tell(generation.share, f"learning, generation {generation.number}")

    return learn(
        "power-1",
        task.prior,
        task.horizon,
        start=task.start,
        feedback=task.feedback,
        seed=stream(task.seed, 8),
        effort=effort,
        episodes=int(min(3000, max(200, fitting))),
        threads=task.workers.threads,
        measured=False,
        progress=told,
    ).file


def _measured(candidate: Candidate, comparison: Comparison, place: int) -> Candidate:
    """The candidate, its file with the regret that was measured."""
    if candidate.file is None or candidate.file.learned is None:
        return candidate
    result, floor = comparison[place], comparison.floor
    regret = Measured(
        mean=result.mean_regret,
        standard_error=result.standard_error,
        interval=result.interval,
        method="exact" if comparison.method == EXACT else "monte-carlo",
        episodes=comparison.episodes,
    )
    least = None if floor is None else floor.regret
    origin = replace(candidate.file.learned, regret=regret, floor=least)
    return replace(candidate, file=PolicyFile(policy=candidate.file.policy, learned=origin))


def _expected_best(prior: Prior, comparison: Comparison) -> float:
    """The mean reward of the best arm: exact where that is known, else of the problems played."""
    if type(prior) is Bernoulli:
        return prior.expected_best()
    if type(prior) is Table:
        return float(prior.means.max(axis=1).mean())
    problems = draw_problems(prior, comparison.seed, comparison.episodes)
    return float(np.max(prior.regret_means(problems), axis=1).mean())
