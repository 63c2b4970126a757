"""`advise`: what is worth using on problems of a prior, and what it brings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.limits import TimeLimit
from ..engine.problems import draw_problems
from ..engine.results import NORMAL_95
from ..engine.task import Task, read_task, silent, stream
from ..errors import InputError, about
from ..feedback import Feedback
from ..files import check_new, reserving
from ..memory import check_time
from ..policies import Policy, policy
from ..policies.file import Catalogued, Measured, PolicyFile
from ..priors import Bernoulli, Prior, Table, read_prior
from ..priors.families import Array
from ..priors.fitting import Fitted
from ..progress import Told, shares, with_progress
from ..settings import read_number
from .measuring import REFERENCE, episode_size, obstacle
from .neighbours import has_neighbours
from .readable import start_for
from .result import FINISHED, TIME_LIMIT, Advice, Advised
from .steps import SPLIT, Steps

# Plays times arms of a test for which an advice takes about a day: more than a month is refused.
_DAY = 1e9
# Problems that are drawn to say what arms are like.
_DRAWN = 100_000


@with_progress("advising", shares)
@reserving
def advise(
    prior: str | Prior | Fitted,
    horizon: int,
    *,
    arms: int | None = None,
    feedback: Feedback | Mapping[str, Any] | None = None,
    today: str | Policy | None = None,
    unit: str = "rewards",
    value: float | None = None,
    seed: int = 0,
    effort: float | None = None,
    time_limit: float | str | TimeLimit | None = None,
    floor_effort: float | None = None,
    threads: int | None = None,
    out: str | Path | None = None,
    force: bool = False,
    progress: Told = None,
    announce: Callable[[str], None] | None = None,
) -> Advice:
    """Recommend a policy for problems of a prior, and say what it gains.

    Parameters
    ----------
    prior : Prior, str or Fitted
        What is known about the arms in advance: a prior, or its text as on the command line. With the result of
        `fit_prior`, the answer is repeated on priors that are fitted to resampled histories.
    horizon : int
        Plays per test.
    arms : int, optional
        The number of arms, if the prior is a text that does not include it.
    feedback : Feedback, optional
        When rewards become known; immediately by default.
    today : str or Policy, optional
        What you do today, the baseline of all gains; an equal split by default.
    unit : str
        What rewards are called.
    value : float, optional
        What a reward is worth.
    seed : int
        The same seed gives the same result on any number of threads, unless there is a time limit.
    effort : float, optional
        How long to compute: 2 takes about twice as long, 0.5 half as long. By default 1, or what the time limit
        allows.
    time_limit : float, str or TimeLimit, optional
        Time for the whole call, in seconds or as a text such as 5m.
    floor_effort : float, optional
        How long to compute the floor if it is a lower bound (see `lower_bound`); by default the effort, up
        to 1.
    threads : int, optional
        Threads to use; all cores by default.
    out : path, optional
        A .json file for the advice. Every command takes it as the recommended policy, and `metabandit report`
        makes a page of it.
    force : bool
        Overwrite existing files.
    progress : callable or bool, optional
        Called with the share that is done and what is going on. By default a bar shows in terminals and
        notebooks if it takes more than two seconds; False for none.
    announce : callable, optional
        Called with messages.

    Returns
    -------
    Advice

    Notes
    -----
    Ctrl-C ends the search; the advice is made from what was measured so far.

    Examples
    --------
    >>> import metabandit as mb
    >>> advice = mb.advise(mb.Bernoulli(arms=2), horizon=10, effort=0.01)
    >>> advice.recommended.kind, advice.today.name
    ('formula', 'split')
    """
    began = time.monotonic()
    history = prior if isinstance(prior, Fitted) else None
    known = read_prior(prior.prior if isinstance(prior, Fitted) else prior, arms=arms)
    task = read_task(
        known, horizon, feedback=feedback, seed=seed, effort=effort, time_limit=time_limit,
        floor_effort=floor_effort, threads=threads,
    )  # fmt: skip
    target = None if out is None else check_new(out, (".json",), "an advice", force=force)
    if target is None and force:
        raise InputError("--force overwrites a file: give --out, or leave it out")
    unit, value = _read_unit(unit), _read_value(value)
    check_time(
        episode_size(task) / _DAY * 86400.0,
        f"advice for {task.horizon:,} plays of {known.arms:,} arms",
        "choose a shorter horizon",
    )
    task = replace(task, start=start_for(known, task.seed))
    policy("r", start=task.start).check(known, task.horizon)
    base = _read_today(today, task)
    steps = Steps(
        task,
        base,
        history,
        began=began,
        free=effort is None and time_limit is not None,
        tell=progress or (lambda share, doing: None),
        announce=announce or silent,
    )
    steps.run()
    advice = _make(steps, unit=unit, value=value, effort=effort)
    advice = replace(advice, seconds=time.monotonic() - began)
    if target is None:
        return advice
    try:
        advice.save(target, force=True)
    except InputError as error:
        # The advice is worth its time; it is not lost with the file.
        return replace(advice, notes=(*advice.notes, f"The advice was not written: {error}."))
    return replace(advice, written=target)


@about("unit")
def _read_unit(unit: object) -> str:
    if not isinstance(unit, str) or not unit.strip() or not unit.isprintable():
        raise InputError(f"the unit is a word for rewards, such as clicks, not {unit!r}")
    return unit.strip()


@about("value")
def _read_value(value: float | None) -> float | None:
    if value is not None and not (value := read_number(value, "the value of a reward")) > 0.0:
        raise InputError(f"the value of a reward must be greater than 0, not {value:g}")
    return value


@about("today")
def _read_today(today: str | Policy | None, task: Task) -> Policy:
    """The baseline of all gains."""
    base = policy(SPLIT if today is None else today)
    if why := obstacle(base, task):
        raise InputError(f"what you do today, {base.name}, cannot be played here: {why}")
    return base


def _make(steps: Steps, **told: Any) -> Advice:
    """The advice of what was measured."""
    task, found = steps.task, steps.measured
    drawn = draw_problems(task.prior, stream(task.seed, 11), _DRAWN)
    means = np.asarray(task.prior.regret_means(drawn))
    best_reward = task.horizon * _expected_best(task.prior, means)
    best = steps.recommended()
    unsure = [place for place in found.ranking() if not found.is_comparable(place, best)]
    advised = {
        place: _advised(steps, place, best_reward)
        for place in found.ranking()
        if place not in unsure
    }
    chosen = advised[best]
    few = [
        (
            found.policies[place].name,
            f"{found.plays(place)} episodes, all that time allowed, are too few",
        )
        for place in unsure
    ]
    stopped = TIME_LIMIT if steps.stopped == FINISHED and steps.free else steps.stopped
    scenarios, histories = (
        tuple(item for item in items if chosen.name in item.gains)
        for items in (steps.scenarios, steps.histories)
    )
    floor, floor_kind = steps.floor or (None, None)
    return Advice(
        prior=str(task.prior),
        arms=task.prior.arms,
        horizon=task.horizon,
        feedback=task.feedback,
        means=(*np.quantile(means, [0.05, 0.95]).tolist(), float(means.mean())),
        source="" if steps.history is None else steps.history.history.name,
        policies=tuple(advised.values()),
        recommended=chosen,
        today=advised[0],
        best_reward=best_reward,
        floor=floor,
        floor_kind=floor_kind,
        scenarios=scenarios,
        histories=histories,
        seed=task.seed,
        time_limit=task.time_limit.seconds if task.time_limit.given else None,
        skipped=(*steps.skipped, *few),
        doubts=tuple(steps.doubts),
        notes=(*steps.notes, *_remarks(steps, chosen, advised.values())),
        stopped=stopped,
        seconds=0.0,
        **told,
    )


def _advised(steps: Steps, place: int, best_reward: float) -> Advised:
    found, item = steps.measured, steps.measured.policies[place]
    regret = found.regret(place)
    episodes = found.plays(place) if found.is_sampled(place) else 0
    file = steps.files.get(place)
    if file is None:
        content = item.content()
        known = isinstance(content, Catalogued)
        file = PolicyFile(policy=content.on(steps.task.prior) if known else content)
    if file.learned is not None:
        measured = Measured(
            mean=regret.mean,
            standard_error=(regret.high - regret.mean) / NORMAL_95,
            interval=(regret.low, regret.high),
            method="monte-carlo" if episodes else "exact",
            episodes=episodes,
        )
        least = None if steps.floor is None else steps.floor[0]
        file = replace(file, learned=replace(file.learned, regret=measured, floor=least))
    return Advised(
        policy=item,
        kind=steps.kinds[place],
        expected_reward=best_reward - regret.mean,
        gain=found.difference(0, place),
        over_split=found.difference(steps.split, place),
        risk=found.risk(place, 0),
        regret=regret,
        episodes=episodes,
        file=file,
    )


def _remarks(steps: Steps, chosen: Advised, advised: Iterable[Advised]) -> Iterator[str]:
    """What else should be known."""
    for item in advised:
        more = item.expected_reward - chosen.expected_reward
        if item.kind == REFERENCE and more > 0.0:
            yield (
                f"{item.name} brings {more:.3g} more still, but needs a table that is made for the prior "
                f"and the number of plays."
            )
    prior = steps.searched.prior
    if isinstance(prior, Table) and prior.held_out is not None:
        yield (
            f"Formula and learned policy were found on {len(prior.means)} rows of the table, and compared on "
            f"the other {len(prior.held_out.means)}."
        )
    elif isinstance(prior, Table):
        yield (
            f"The problems are the {len(prior.means)} rows of the table, for the searches and for the "
            f"comparison: only the luck is fresh. With 20 rows or more, half are kept for the comparison."
        )
    if not has_neighbours(prior):
        yield (
            f"Near priors are known for the priors of metabandit only, so for {prior} the horizon alone was "
            f"varied."
        )


def _expected_best(prior: Prior, means: Array) -> float:
    """The mean reward of the best arm: exact where that is known, else of problems with these means."""
    if type(prior) is Bernoulli or type(prior) is Table:
        return prior.expected_best()
    return float(means.max(axis=1).mean())
