"""`search`: the best small formula for a prior, measured on problems that the search never saw."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..checkpoint import Checkpoint
from ..engine import costs, exact, simulated
from ..engine.costs import check_simulation
from ..engine.programs import ManyPrograms
from ..engine.task import Task, read_task, silent, versions
from ..errors import InputError, WorkerError, about, nearest
from ..feedback import Feedback
from ..files import reserving
from ..learning.measure import Measurement, asked, with_floor
from ..memory import duration
from ..policies import Policy, Progress, Start, policy
from ..policies.file import (
    Expression,
    Origin,
    PolicyFile,
    read_target,
    rewards_of,
)
from ..policies.start import default_start
from ..priors import Prior, Table, read_prior
from ..priors.table import reported_on
from ..progress import Told, shares, with_progress
from ..settings import check_whole
from .classes import Classes
from .enumeration import kept_classes
from .grammar import Grammar
from .measure import Ranking, measure_classes
from .refining import best_of_all, refine_first
from .result import Found, RankedFormula
from .sample import problems_of, reachable_sample
from .strategies import STRATEGIES, ExactSearch, Halving, Strategy, Ucb1Tuned

AUTO = "auto"
# What `auto` plans for if no time is given, in seconds.
_TIME = 900.0
_HALVING_TIME = 240.0
# The share of a time limit after which the search ends; if numbers are to be learned after it.
_SEARCHED, _SEARCHED_BEFORE_REFINING = 0.6, 0.35
# Formulas per thread, and their episodes, on which speed is measured.
_TRIED, _TRIED_EPISODES = 64, 16

Report = Callable[[float, str], None]


def state_path(out: Path) -> Path:
    """Where a search that writes best.json keeps its state: best.search.npz beside it."""
    return out.parent / f"{out.stem}.search.npz"


@with_progress("searching", shares)
@reserving
def search(
    prior: str | Prior,
    horizon: int,
    *,
    arms: int | None = None,
    length: int | None = None,
    classes: Classes | str | Path | None = None,
    grammar: Grammar | None = None,
    strategy: str = AUTO,
    pulls: int | None = None,
    objective: str = "regret",
    reference: str | Policy | None = None,
    start: str | Start | None = None,
    feedback: Feedback | Mapping[str, Any] | None = None,
    top: int = 50,
    refine: int = 0,
    seed: int = 0,
    effort: float = 1.0,
    floor: bool | None = None,
    floor_effort: float | None = None,
    time_limit: float | str | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    measured: bool = True,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Told = None,
    announce: Callable[[str], None] | None = None,
) -> Found:
    """Find the best small formula for problems drawn from a prior.

    Parameters
    ----------
    prior : Prior or str
        What is known about the arms in advance: a prior, or its text as on the command line.
    horizon : int
        Plays per episode.
    arms : int, optional
        The number of arms, if the prior is a text that does not include it.
    length : int, optional
        Symbols of the longest formulas, 7 by default.
    classes : Classes or path, optional
        A set of classes that was made before, or its file, instead of `length`.
    grammar : Grammar, optional
        What formulas are made of; by default as in the paper.
    strategy : {"auto", "exact", "halving", "ucb1-tuned"}
        `exact` (all classes, nothing left to chance; two Bernoulli arms), `halving` (all on the same
        problems, the worse half goes), `ucb1-tuned` (as in the paper, with this many `pulls`), or
        `auto`: exact if that is possible in the time given, else halving.
    pulls : int, optional
        Episodes of the strategy `ucb1-tuned`, 10 million by default; other strategies have none.
    objective, reference, start
        As for `learn`.
    top : int
        How many of the best to rank.
    refine : int
        Learn the constants of this many of the best.
    seed : int
        The same seed gives the same result on any number of threads.
    effort : float
        2 lets halving, and the measurement of the ranking, take twice as long, 0.5 half as long.
    floor : bool, optional
        Whether to compute the floor, which no policy can beat (see `optimal`). By default it is computed if
        that takes about a minute at most, and a small share of the time limit.
    floor_effort : float, optional
        How long to compute the floor if it is a lower bound (see `lower_bound`); by default the effort, up
        to 1.
    time_limit : float or str, optional
        Seconds that all of it may take, or a text such as 5m: classes, floor, search and measurement, but
        not compiling.
    threads : int, optional
        Threads to use; all cores by default.
    executor : concurrent.futures.Executor, optional
        Other processes that share the work (docs/cluster.md); the result is the same.
    measured : bool
        Whether the floor is computed, and the best compared with classics in the end.
    out : path, optional
        The policy file to write; the state of the search is kept beside it until the end.
    resume, force : bool
        Continue the search whose state is there; overwrite what is there.
    progress : callable or bool, optional
        Called with the share that is done and what is going on; a bar by default, False for none.
    announce : callable, optional
        Called with messages.

    Returns
    -------
    Found

    Notes
    -----
    Ctrl-C ends the search with the best so far, if it is to be measured; with `out` it can continue
    later.

    Examples
    --------
    >>> import metabandit as mb
    >>> found = mb.search(mb.Bernoulli(arms=2), horizon=10, length=4, start="each-once")
    >>> found.entries[0].formula
    'max(r, 1/5)'
    """
    # Long because its arguments are its signature; the body is short.
    began = time.monotonic()
    prior = read_prior(prior, arms=arms, announce=announce)
    task = read_task(
        prior.split() if isinstance(prior, Table) else prior, horizon, objective=objective,
        reference=reference, seed=seed, effort=effort, floor=floor, floor_effort=floor_effort,
        time_limit=time_limit, threads=threads, executor=executor, feedback=feedback,
    )  # fmt: skip
    task = _check(task, strategy, grammar, start)
    pulls = _read_pulls(pulls, strategy)
    with about("top"):
        top = check_whole(top, "the number of formulas to rank", 1, most=10_000)
    with about("refine"):
        refine = check_whole(refine, "the number of formulas to refine", 0, most=100)
    target = read_target(out, state_path, resume=resume, force=force)
    announce = announce or silent
    known = _classes(task, length, classes, grammar, progress, announce)
    programs = ManyPrograms.of(
        known.compile(_reporter(progress, "compiling the formulas")),
        task.prior, task.horizon, task.start, task.workers, feedback=task.feedback,
    )  # fmt: skip
    name, options = _choose(strategy, task, programs, pulls=pulls, top=top)
    _announce_work(task, name, len(known), options.get("episodes", pulls), announce)
    if measured:
        # Nothing is refused any more; a worker can begin with it at once.
        task = with_floor(task, announce)
    way = STRATEGIES[name](task, programs, known.lengths, top=top, **options)
    state = _state(way, known, options, target)
    if resume:
        way.restore(state.read(way.state().keys()))
    # What was done before a break counts too.
    began -= way.now_seconds
    share = _SEARCHED_BEFORE_REFINING if refine else _SEARCHED
    stopped = _run(way, state, share, progress, announce, measured=measured)
    report = _reporter(progress, "measuring the best again")
    ranked = _rank(known, measure_classes(task, programs, way.found(), announce, report), task)
    entries = refine_first(ranked[:top], refine, task, announce)
    best, worth = best_of_all(task, entries, announce, measured=measured)
    found = _found(way, known, entries, _best_of_length(ranked), best, worth, stopped, began)
    if target is not None:
        found.file.write(target)
        if stopped == "finished":
            state_path(target).unlink(missing_ok=True)
    return found


def _check(task: Task, strategy: str, grammar: Grammar | None, start: str | Start | None) -> Task:
    """The task with the start of the formulas; what they cannot be searched for is refused."""
    if task.objective.exact:
        raise InputError(
            f"the objective {task.objective.name} is for learn; search by regret, then learn the numbers",
            about="objective",
        )
    if strategy not in (*STRATEGIES, AUTO):
        raise InputError(
            f"unknown strategy {strategy!r}; {nearest(str(strategy), [*STRATEGIES, AUTO])}",
            about="strategy",
        )
    if strategy != AUTO and (why := STRATEGIES[strategy].obstacle(task)) is not None:
        raise InputError(f"{why}; use the strategy halving", about="strategy")
    reads_w = isinstance(grammar, Grammar) and "w" in grammar.variables
    if reads_w and not task.feedback.waits:
        raise InputError(
            "the variable w (plays that wait for their reward) is always 0 with immediate feedback; "
            "give batches or a delay, or leave w out",
            about="variables",
        )
    with about("start"):
        begin = Start.read(start or default_start(task.prior)).resolve(task.prior)
    policy("r", start=begin).check(task.prior, task.horizon)
    return replace(task, start=begin)


@about("pulls")
def _read_pulls(pulls: int | None, strategy: str) -> int:
    if pulls is not None and strategy != Ucb1Tuned.name:
        raise InputError(
            f"the number of pulls is for the strategy {Ucb1Tuned.name}, not {strategy}: leave it out, or "
            f"choose that strategy"
        )
    return check_whole(10**7 if pulls is None else pulls, "the number of pulls", 1, most=10**12)


def _state(
    way: Strategy, known: Classes, options: Mapping[str, int], target: Path | None
) -> Checkpoint:
    """The file from which a search can go on, and what it is a search for."""
    task = way.task
    settings = {
        **known.header,
        **asked(task),
        "feedback": str(task.feedback),
        "start": str(task.start),
        "strategy": way.name,
        **options,
        "top": way.top,
    }
    return Checkpoint(settings, None if target is None else state_path(target), "search")


def _announce_work(
    task: Task, strategy: str, classes: int, episodes: int, announce: Callable[[str], None]
) -> None:
    """Say what takes long, or refuse it."""
    prior, horizon = task.prior, task.horizon
    if strategy == ExactSearch.name:
        exact.announce_compilation(prior.arms, horizon, announce, task.feedback)
        return
    check_simulation(
        prior, horizon, policies=classes if strategy == Halving.name else 1, problems=episodes,
        threads=task.workers.threads, announce=announce,
    )  # fmt: skip
    counts = task.start.counts(prior)
    simulated.announce_compilation(announce, prior, horizon, [(counts, None)])


def _rank(known: Classes, ranking: Ranking, task: Task) -> list[RankedFormula]:
    """The classes that were measured, best first."""
    if not len(ranking[0]):
        raise InputError(
            f"no formula of the classes can be played: the index of each is not finite somewhere on "
            f"problems of {task.prior}"
        )
    return [
        RankedFormula(
            known.trees[item], int(known.sizes[item]), float(value), float(regret), float(error)
        )
        for item, value, regret, error in zip(*ranking, strict=True)
    ]


def _best_of_length(ranked: list[RankedFormula]) -> tuple[RankedFormula, ...]:
    # From the back, so that the first of each length stays.
    of_length = {entry.length: entry for entry in reversed(ranked)}
    return tuple(of_length[item] for item in sorted(of_length))


def _found(
    way: Strategy,
    known: Classes,
    entries: list[RankedFormula],
    of_length: tuple[RankedFormula, ...],
    best: Expression,
    worth: Measurement | None,
    stopped: str,
    began: float,
) -> Found:
    """The result: its policy is the best formula, or a classic that was not beaten."""
    task, content, unbeaten = way.task, best, None
    if worth is not None and worth.unbeaten:
        unbeaten, content = worth.policy.name, worth.policy.content()
    least = None if task.least is None else task.least.wait()
    origin = Origin(
        **asked(task),
        **rewards_of(task.prior),
        optimizer=way.name,
        stopped=stopped,
        space=f"formulas up to length {known.length}",
        protocol="search",
        generations=0,
        evaluations=len(known),
        regret=None if worth is None else worth.measured(),
        floor=None if least is None else least.regret,
        versions=versions(),
    )
    return Found(
        entries=tuple(entries),
        of_length=of_length,
        policy=best.policy(best.expression) if worth is None else worth.policy,
        file=PolicyFile(policy=content, learned=origin),
        comparison=None if worth is None else worth.comparison,
        # The ranking of a table is on the part that was searched on, the floor is under the other one.
        floor=origin.floor if reported_on(task.prior) is task.prior else None,
        strategy=way.name,
        classes=len(known),
        stopped=stopped,
        unbeaten=unbeaten,
        seconds=time.monotonic() - began,
    )


def _reporter(progress: Report | None, doing: str) -> Progress:
    """Progress of a part, told as that of a search."""

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(done / total, doing)

    return report


def _classes(
    task: Task,
    length: int | None,
    given: Classes | str | Path | None,
    grammar: Grammar | None,
    progress: Report | None,
    announce: Callable[[str], None],
) -> Classes:
    """The classes that were given, or those that are kept for this length and grammar."""
    prior, horizon, start = task.prior, task.horizon, task.start
    if grammar is not None and not isinstance(grammar, Grammar):
        raise InputError(f"the grammar must be a Grammar, not {grammar!r}")
    if given is None:
        # The general sample is for rewards between 0 and 1.
        sample = None
        if not prior.family.in_unit_interval:
            waiting = task.feedback.waits
            sample = reachable_sample(prior, horizon, start=start, waiting=waiting, seed=task.seed)
        return kept_classes(
            7 if length is None else length,
            grammar=grammar,
            sample=sample,
            threads=task.workers.threads,
            progress=_reporter(progress, "making the classes"),
            announce=announce,
        )
    return _given_classes(task, length, given, grammar)


@about("classes")
def _given_classes(
    task: Task, length: int | None, given: Classes | str | Path, grammar: Grammar | None
) -> Classes:
    """The classes that were given, if formulas of this task can be looked for among them."""
    if not isinstance(given, (Classes, str, Path)):
        raise InputError(f"classes are what make_classes gives, or its file, not {given!r}")
    known = given if isinstance(given, Classes) else Classes.load(given)
    where = "" if isinstance(given, Classes) else f" {given}"
    if grammar is not None and grammar != known.grammar:
        raise InputError(
            f"the class file{where} was made with another grammar: {known.grammar}; not {grammar}"
        )
    if length is not None and length != known.length:
        raise InputError(
            f"the class file{where} is for formulas up to length {known.length}, not {length}; leave "
            f"--length out, or make another one with `metabandit formulas --length {length}`"
        )
    made_for, here = (
        known.sample.get("problems"),
        problems_of(task.prior, task.horizon, task.start, waiting=task.feedback.waits),
    )
    if made_for is not None and made_for != here:
        raise InputError(
            f"the class file{where} was made for {made_for}; not for {here}: formulas that play alike "
            f"there may differ here"
        )
    return known


def _choose(
    name: str, task: Task, programs: ManyPrograms, *, pulls: int, top: int
) -> tuple[str, dict[str, int]]:
    """The strategy and its settings; for `auto` the surest within the time."""
    limit, effort = task.time_limit, task.effort
    time = _TIME * effort
    if limit.given:
        time = _SEARCHED * limit.seconds - limit.passed
    if name == AUTO:
        possible = ExactSearch.obstacle(task) is None
        quick = possible and ExactSearch.seconds(programs) <= time
        name = ExactSearch.name if quick else Halving.name
    episodes, slowness = max(1, round(64 * effort)), 1.0
    if limit.given:
        episodes = 1024
        slowness = _slowness(task, programs) if name == Halving.name else 1.0
    within = time if limit.given else _HALVING_TIME * effort
    while episodes > 16 and slowness * Halving.seconds(programs, episodes, top) > within:
        episodes //= 2
    if limit.given and name == Halving.name:
        each = slowness * costs.simulation_seconds(task.prior, task.horizon, episodes) / costs.CORES
        if each * programs.count > time:
            fitting = int(time / each)
            fit = f" (about {fitting:,} formulas fit)" if fitting > 0 else ""
            raise InputError(
                f"the time limit leaves no time to search: {programs.count:,} formulas on {episodes} "
                f"episodes of {task.horizon:,} plays take about {duration(each * programs.count)}, a "
                f"first round of many; choose a shorter --length{fit}, "
                f"a shorter horizon, or a time limit of {duration(3 * each * programs.count / _SEARCHED)}"
            )
    settings = {Halving.name: {"episodes": episodes}, "ucb1-tuned": {"pulls": pulls}}
    return name, settings.get(name, {})


def _slowness(task: Task, programs: ManyPrograms) -> float:
    """How many times longer formulas take to play than planned, measured on some of them."""
    threads = task.workers.slots
    some = np.linspace(0, programs.count - 1, min(programs.count, _TRIED * threads)).astype(int)
    some = np.unique(some)
    for _ in range(2):  # the first time compiles, and draws problems
        begun = task.time_limit.passed
        programs.moments(some, 0, _TRIED_EPISODES, runs=1, seed=0)
        seconds = task.time_limit.passed - begun
    episodes = len(some) * _TRIED_EPISODES
    return seconds * costs.CORES / costs.simulation_seconds(task.prior, task.horizon, episodes)


def _run(
    way: Strategy,
    state: Checkpoint,
    share: float,
    progress: Report | None,
    announce: Callable[[str], None],
    *,
    measured: bool,
) -> str:
    """Search for this share of the time limit, if there is one; says why it ended."""
    try:
        return _steps(way, state, share * way.task.time_limit.seconds, progress)
    except (WorkerError, KeyboardInterrupt) as error:
        state.write(way.state, at_once=True)
        if isinstance(error, WorkerError) or not measured or not len(way.found()):
            raise
        announce("stopped: measuring the best so far")
        return "interrupted"


def _steps(way: Strategy, state: Checkpoint, until: float, progress: Report | None) -> str:
    """Step by step to the end, or as long as there is time for another step."""
    earlier, limit = way.now_seconds, way.task.time_limit
    took = 0.0
    while way.now_share < 1.0:
        if took and limit.passed + took > until:
            return "time limit"
        if progress is not None:
            progress(way.now_share, way.doing)
        begun = limit.passed
        way.now_share = way.step()
        took = limit.passed - begun
        way.now_seconds = earlier + limit.passed
        state.write(way.state)
    # What comes may fail as well.
    state.write(way.state, at_once=True)
    return "finished"
