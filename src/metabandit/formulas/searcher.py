"""`search`: the best small formula for a prior, measured on problems that the search never saw."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..checkpoint import Checkpoint
from ..engine import exact, simulated
from ..engine.floor import floor_of_search
from ..engine.programs import ManyPrograms
from ..engine.task import Task, read_task, silent, versions
from ..errors import InputError, WorkerError, nearest
from ..learning.measure import Measurement, measure
from ..policies import Policy, Progress, Start, policy
from ..policies.file import (
    Expression,
    Origin,
    PolicyFile,
    StartSpec,
    read_target,
    rewards_of,
)
from ..policies.start import default_start
from ..priors import Prior
from ..settings import check_whole
from .classes import Classes
from .grammar import Grammar
from .kept import kept_classes
from .measure import Ranking, measure_classes
from .refine import refined
from .result import Found, RankedFormula
from .sample import problems_of, reachable_sample
from .strategies import STRATEGIES, ExactSearch, Halving, Strategy

AUTO = "auto"
# What `auto` plans for if no time is given, in seconds.
_TIME = 900.0
_HALVING_TIME = 240.0

Report = Callable[[float, str], None]


@dataclass(frozen=True)
class _Search:
    """What is searched for a task, how, and whom to tell."""

    task: Task
    strategy: str
    pulls: int
    top: int
    refine: int
    measured: bool
    progress: Report | None
    announce: Callable[[str], None]


def state_path(out: Path) -> Path:
    """Where a search that writes best.json keeps its state: best.search.npz beside it."""
    return out.with_name(f"{out.stem}.search.npz")


def _strategy(search: _Search, programs: ManyPrograms) -> tuple[str, dict[str, Any]]:
    """The strategy and its settings: the surest within the time."""
    task, name = search.task, search.strategy
    limit, effort = task.time_limit, task.effort
    episodes, within = 1024, 0.0 if limit is None else 0.7 * limit
    if limit is None:
        episodes, within = max(1, round(64 * effort)), _HALVING_TIME * effort
    while episodes > 16 and Halving.seconds(programs, episodes, search.top) > within:
        episodes //= 2
    if name == AUTO:
        possible = ExactSearch.obstacle(task) is None
        quick = possible and ExactSearch.seconds(programs) <= (limit or _TIME * effort)
        name = ExactSearch.name if quick else Halving.name
    settings = {Halving.name: {"episodes": episodes}, "ucb1-tuned": {"pulls": search.pulls}}
    return name, settings.get(name, {})


def search(
    prior: Prior,
    horizon: int,
    *,
    length: int | None = None,
    classes: Classes | str | Path | None = None,
    grammar: Grammar | None = None,
    strategy: str = AUTO,
    pulls: int = 10_000_000,
    objective: str = "regret",
    reference: str | Policy | None = None,
    start: str | Start | None = None,
    top: int = 50,
    refine: int = 0,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    measured: bool = True,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Callable[[float, str], None] | None = None,
    announce: Callable[[str], None] | None = None,
) -> Found:
    """Find the best small formula for problems drawn from a prior.

    Parameters
    ----------
    prior : Prior
        What problems are like.
    horizon : int
        Plays per episode.
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
    pulls : int
        Episodes of the strategy `ucb1-tuned`.
    objective, reference, start
        As for `learn`.
    top : int
        How many of the best to rank.
    refine : int
        Learn the constants of this many of the best.
    seed : int
        One seed, one result, whatever the number of threads.
    effort : float
        2 lets halving, and the measurement of the ranking, take twice as long, 0.5 half as long.
    time_limit : float, optional
        Seconds after which the search ends with the best so far.
    threads : int, optional
        All cores by default.
    executor : concurrent.futures.Executor, optional
        Hands parts of the work to other processes (docs/cluster.md); changes no result.
    measured : bool
        Whether the floor is computed, and the best compared with classics in the end.
    out : path, optional
        The policy file to write; the state of the search is kept beside it until the end.
    resume, force : bool
        Continue the search whose state is there; overwrite what is there.
    progress, announce : callable, optional
        Called with the share that is done and what is going on, and with messages.

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
    began = time.monotonic()
    task = read_task(
        prior, horizon, objective=objective, reference=reference, seed=seed, effort=effort,
        time_limit=time_limit, threads=threads, executor=executor,
    )  # fmt: skip
    if strategy not in (*STRATEGIES, AUTO):
        raise InputError(
            f"unknown strategy {strategy!r}; {nearest(str(strategy), [*STRATEGIES, AUTO])}"
        )
    if strategy != AUTO and (why := STRATEGIES[strategy].obstacle(task)) is not None:
        raise InputError(f"{why}; use the strategy halving")
    asked = _Search(
        task=replace(task, start=Start.read(start or default_start(prior)).resolve(prior)),
        strategy=strategy,
        pulls=check_whole(pulls, "the number of pulls", 1, most=10**12),
        top=check_whole(top, "the number of formulas to rank", 1, most=10_000),
        refine=check_whole(refine, "the number of formulas to refine", 0, most=100),
        measured=measured,
        progress=progress,
        announce=announce or silent,
    )
    policy("r", start=asked.task.start).check(prior, task.horizon)
    target = read_target(out, state_path, resume=resume, force=force)
    known = _classes(asked, length, classes, grammar)
    # A worker can begin with it at once.
    if measured:
        floor = floor_of_search(prior, task.horizon, task.workers, asked.announce)
        asked = replace(asked, task=replace(asked.task, floor=floor))
    found = _run(asked, known, target, began, resume=resume)
    if target is not None:
        found.file.write(target)
        if found.stopped == "finished":
            state_path(target).unlink(missing_ok=True)
    return found


def _reporter(progress: Callable[[float, str], None] | None, doing: str) -> Progress:
    """Progress of a part, told as that of a search."""

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(done / total, doing)

    return report


def _classes(
    search: _Search,
    length: int | None,
    given: Classes | str | Path | None,
    grammar: Grammar | None,
) -> Classes:
    """The classes that were given, or those that are kept for this length and grammar."""
    if grammar is not None and not isinstance(grammar, Grammar):
        raise InputError(f"the grammar must be a Grammar, not {grammar!r}")
    if given is None:
        # The general sample is for rewards between 0 and 1.
        sample = None
        if not search.task.prior.family.in_unit_interval:
            sample = reachable_sample(
                search.task.prior,
                search.task.horizon,
                start=search.task.start,
                seed=search.task.seed,
            )
        return kept_classes(
            7 if length is None else length,
            grammar=grammar,
            sample=sample,
            threads=search.task.workers.threads,
            progress=_reporter(search.progress, "making the classes"),
            announce=search.announce,
        )
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
    made_for = known.sample.get("problems")
    here = problems_of(search.task.prior, search.task.horizon, search.task.start)
    if made_for is not None and made_for != here:
        raise InputError(
            f"the class file{where} was made for {made_for}; not for {here}: formulas that play alike "
            f"there may differ here"
        )
    return known


def _run(
    search: _Search, known: Classes, target: Path | None, began: float, *, resume: bool
) -> Found:
    """Let the strategy find the best classes, and measure them."""
    task = search.task
    compiled = known.compile(_reporter(search.progress, "compiling the formulas"))
    programs = ManyPrograms.of(compiled, task.prior, task.horizon, task.start, task.workers)
    name, options = _strategy(search, programs)
    if name == ExactSearch.name:
        exact.announce_compilation(task.prior.arms, search.announce)
    else:
        simulated.announce_compilation(search.announce)
    way = STRATEGIES[name](task, programs, known.lengths, top=search.top, **options)
    settings = {
        **known.header,
        "prior": str(task.prior),
        "horizon": task.horizon,
        "objective": task.objective.name,
        "reference": None if task.reference is None else task.reference.name,
        "start": str(task.start),
        "strategy": name,
        **options,
        "top": search.top,
        "seed": task.seed,
    }
    state = Checkpoint(settings, None if target is None else state_path(target), "search")
    if resume:
        way.restore(state.read(way.state().keys()))
    earlier = way.now_seconds
    try:
        stopped = _steps(way, state, began, task.time_limit, search.progress)
    except WorkerError:
        state.write(way.state, at_once=True)
        raise
    except KeyboardInterrupt:
        state.write(way.state, at_once=True)
        if not search.measured or not len(way.found()):
            raise
        search.announce("stopped: measuring the best so far")
        stopped = "interrupted"
    ranking = measure_classes(task, programs, way.found(), search.announce)
    found = _finish(search, known, ranking, way.name, stopped)
    # What was done before a break counts too.
    return replace(found, seconds=earlier + time.monotonic() - began)


def _steps(
    way: Strategy, state: Checkpoint, began: float, limit: float | None, progress: Report | None
) -> str:
    """Step by step to the end, or until the time is over."""
    earlier = way.now_seconds
    while way.now_share < 1.0:
        if progress is not None:
            progress(way.now_share, way.doing)
        way.now_share = way.step()
        taken = time.monotonic() - began
        way.now_seconds = earlier + taken
        state.write(way.state)
        if way.now_share < 1.0 and limit is not None and taken > limit:
            return "time limit"
    # What comes may fail as well.
    state.write(way.state, at_once=True)
    return "finished"


def _finish(
    search: _Search, known: Classes, ranking: Ranking, strategy: str, stopped: str
) -> Found:
    """Refine the best, measure them, and put everything together."""
    task = search.task
    which, values, regrets, errors = ranking
    if not len(which):
        raise InputError(
            f"no formula of the classes can be played: the index of each is not finite somewhere on "
            f"problems of {task.prior}"
        )
    everything = [
        RankedFormula(
            known.trees[item], int(known.sizes[item]), float(value), float(regret), float(error)
        )
        for item, value, regret, error in zip(which, values, regrets, errors, strict=True)
    ]
    shortest: dict[int, RankedFormula] = {}
    for entry in everything:
        shortest.setdefault(entry.length, entry)
    entries = [
        refined(entry, task, search.announce) if place < search.refine else entry
        for place, entry in enumerate(everything[: search.top])
    ]
    best, worth = _best(search, entries)
    least = None if task.floor is None else task.floor.wait()
    floor = None if least is None else least.regret
    origin = Origin(
        space=f"formulas up to length {known.length}",
        prior=str(task.prior),
        arms=task.prior.arms,
        horizon=task.horizon,
        **rewards_of(task.prior),
        objective=task.objective.name,
        reference=None if task.reference is None else task.reference.name,
        protocol="search",
        optimizer=strategy,
        seed=task.seed,
        stopped=stopped,
        generations=0,
        evaluations=len(known),
        regret=None if worth is None else worth.measured(),
        floor=floor,
        versions=versions(),
    )
    return Found(
        entries=tuple(entries),
        of_length=tuple(shortest[item] for item in sorted(shortest)),
        policy=best.policy(best.expression if worth is None else worth.comparison[0].policy),
        file=PolicyFile(policy=best, learned=origin),
        comparison=None if worth is None else worth.comparison,
        floor=floor,
        strategy=strategy,
        classes=len(known),
        stopped=stopped,
        seconds=0.0,
    )


def _best(search: _Search, entries: list[RankedFormula]) -> tuple[Expression, Measurement | None]:
    """The best of the first and all refined ones, on problems that nothing was chosen by."""
    start = StartSpec.of(search.task.start)
    best = Expression(expression=entries[0].formula, parameters={}, start=start)
    freed = [entry.refined for entry in entries if entry.refined is not None]
    worth: Measurement | None = None
    if entries[0].refined is not None:
        worth = entries[0].refined.before
    elif search.measured or freed:
        worth = measure(search.task, best.policy(best.expression), search.announce)
    for item in freed:
        if worth is None or item.measurement.objective < worth.objective:
            best, worth = item.content, item.measurement
    return best, worth
