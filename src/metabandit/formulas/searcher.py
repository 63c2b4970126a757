"""`search`: the best small formula for a prior, measured on problems that the search never saw."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..checkpoint import Checkpoint
from ..engine import exact, simulated
from ..engine.batch import Batch
from ..engine.task import Aim, check_effort, check_time_limit, make_aim, silent, stream, versions
from ..errors import InputError, WorkerError, nearest
from ..learning.measure import Measurement, find_floor, measure
from ..policies import Policy, Progress, Start, policy
from ..policies.file import Expression, Origin, PolicyFile, StartSpec, check_target, rewards_of
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
from .strategies import STRATEGIES, Exact, Halving, Strategy

AUTO = "auto"
# What `auto` plans for if no time is given, in seconds.
_TIME = 900.0
_HALVING_TIME = 240.0


def state_path(out: Path) -> Path:
    """Where a search that writes best.json keeps its state: best.search.npz beside it."""
    return out.with_name(f"{out.stem}.search.npz")


def _choose(
    name: str, batch: Batch, aim: Aim, top: int, limit: float | None, effort: float
) -> tuple[str, int]:
    """The strategy, and the episodes of halving's first round."""
    episodes, within = 1024, 0.0 if limit is None else 0.7 * limit
    if limit is None:
        episodes, within = max(1, round(64 * effort)), _HALVING_TIME * effort
    while episodes > 16 and Halving.seconds(batch, episodes, top) > within:
        episodes //= 2
    if name != AUTO:
        return name, episodes
    possible = Exact.obstacle(aim) is None
    if possible and Exact.seconds(batch) <= (limit or _TIME * effort):
        return Exact.name, episodes
    return Halving.name, episodes


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

    length: of the longest formulas, 7 by default; or `classes`: a set that was made before, or its file
    grammar: what formulas are made of; by default as in the paper
    strategy: `exact` (all classes, nothing left to chance; two Bernoulli arms), `halving` (all on the
        same problems, the worse half goes), `ucb1-tuned` (as in the paper, with so many `pulls`), or
        `auto`: exact if that is possible in the time given, else halving
    objective, reference, start: as for `learn`
    top: how many of the best to rank
    refine: learn the constants of so many of the best
    effort: 2 lets halving, and the measurement of the ranking, take twice as long, 0.5 half as long
    time_limit: seconds after which the search ends with the best so far
    executor: hands pieces of the work to other processes (docs/cluster.md); changes no result
    measured: whether the floor is computed, and the best compared with classics in the end
    out: the policy file to write; the state of the search is kept beside it until the end
    resume: go on with the search whose state is there; force: overwrite what is there
    progress: called with the share that is done and what is going on; announce: called with messages

    Ctrl-C ends the search with the best so far, if it is to be measured; with `out` it can go on later.

    >>> import metabandit as mb
    >>> found = mb.search(mb.Bernoulli(arms=2), horizon=10, length=4, start="each-once")
    >>> found.entries[0].formula
    'max(r, 1/5)'
    """
    began = time.monotonic()
    announce = announce or silent
    aim = make_aim(
        prior,
        horizon,
        objective=objective,
        reference=reference,
        seed=seed,
        threads=threads,
        executor=executor,
    )
    if strategy not in (*STRATEGIES, AUTO):
        raise InputError(
            f"unknown strategy {strategy!r}; {nearest(str(strategy), [*STRATEGIES, AUTO])}"
        )
    if strategy != AUTO and (why := STRATEGIES[strategy].obstacle(aim)) is not None:
        raise InputError(f"{why}; use the strategy halving")
    top = check_whole(top, "the number of formulas to rank", 1, most=10_000)
    refine = check_whole(refine, "the number of formulas to refine", 0, most=100)
    pulls = check_whole(pulls, "the number of pulls", 1, most=10**12)
    effort = check_effort(effort)
    time_limit = check_time_limit(time_limit)
    begin = Start.read(start or default_start(prior)).resolve(prior)
    policy("r", start=begin).check(prior, aim.horizon)
    target = None if out is None else check_target(out, resume=resume, force=force)
    if target is None and (resume or force):
        raise InputError("--resume and --force need the policy file: give --out")
    path = None if target is None else state_path(target)
    if path is not None and path.exists() and not (resume or force):
        raise InputError(
            f"{path} is there, of a search that did not end: go on with it (--resume), or begin anew "
            f"(--force)"
        )
    known = _classes(length, classes, grammar, aim, begin, progress, announce)
    # A worker can begin with it at once.
    if measured:
        aim = replace(aim, floor=find_floor(prior, aim.horizon, aim.crew, announce))
    compiled = known.compile(_reporter(progress, "compiling the formulas"))
    batch = Batch.of(compiled, prior, aim.horizon, begin, aim.crew)
    name, episodes = _choose(strategy, batch, aim, top, time_limit, effort)
    options: dict[str, Any] = {
        Exact.name: {},
        Halving.name: {"episodes": episodes},
        "ucb1-tuned": {"pulls": pulls},
    }[name]
    if name == Exact.name:
        exact.announce_compilation(prior.arms, announce)
    else:
        simulated.announce_compilation(announce)
    way = STRATEGIES[name](
        batch,
        known.lengths,
        aim.objective,
        aim.reference,
        top=top,
        seed=stream(aim.seed, 1),
        **options,
    )
    settings = {
        **known.header,
        "prior": str(prior),
        "horizon": aim.horizon,
        "objective": aim.objective.name,
        "reference": None if aim.reference is None else aim.reference.name,
        "start": str(begin),
        "strategy": name,
        **options,
        "top": top,
        "seed": aim.seed,
    }
    state = Checkpoint(settings, path, "search")
    if resume:
        way.restore(state.read(way.state().keys()))
    earlier = way.now_seconds
    try:
        stopped = _run(way, state, began, time_limit, progress)
    except WorkerError:
        state.write(way.state, at_once=True)
        raise
    except KeyboardInterrupt:
        state.write(way.state, at_once=True)
        if not measured or not len(way.found()):
            raise
        announce("stopped: measuring the best so far")
        stopped = "interrupted"
    ranking = measure_classes(aim, batch, way.found(), announce, effort=effort)
    found = _finish(
        aim, way, known, ranking, begin, top, refine, stopped, announce, measured=measured
    )
    # What was done before a break counts too.
    found = replace(found, seconds=earlier + time.monotonic() - began)
    if target is not None:
        found.file.write(target)
    if stopped == "finished":
        state.remove()
    return found


def _reporter(progress: Callable[[float, str], None] | None, doing: str) -> Progress:
    """Progress of a part, told as that of a search."""

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(done / total, doing)

    return report


def _classes(
    length: int | None,
    given: Classes | str | Path | None,
    grammar: Grammar | None,
    aim: Aim,
    begin: Start,
    progress: Callable[[float, str], None] | None,
    announce: Callable[[str], None],
) -> Classes:
    """The classes that were given, or those that are kept for this length and grammar."""
    if grammar is not None and not isinstance(grammar, Grammar):
        raise InputError(f"the grammar must be a Grammar, not {grammar!r}")
    if given is None:
        # The general sample is for rewards between 0 and 1.
        sample = None
        if not aim.prior.family.in_unit_interval:
            sample = reachable_sample(aim.prior, aim.horizon, start=begin, seed=aim.seed)
        return kept_classes(
            7 if length is None else length,
            grammar=grammar,
            sample=sample,
            threads=aim.crew.threads,
            progress=_reporter(progress, "making the classes"),
            announce=announce,
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
    here = problems_of(aim.prior, aim.horizon, begin)
    if made_for is not None and made_for != here:
        raise InputError(
            f"the class file{where} was made for {made_for}; not for {here}: formulas that play alike "
            f"there may differ here"
        )
    return known


def _run(
    way: Strategy,
    state: Checkpoint,
    began: float,
    limit: float | None,
    progress: Callable[[float, str], None] | None,
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
    aim: Aim,
    way: Strategy,
    known: Classes,
    ranking: Ranking,
    begin: Start,
    top: int,
    refine: int,
    stopped: str,
    announce: Callable[[str], None],
    *,
    measured: bool,
) -> Found:
    """Refine the best, measure them, and put everything together."""
    which, values, regrets, errors = ranking
    if not len(which):
        raise InputError(
            f"no formula of the classes can be played: the index of each is not finite somewhere on "
            f"problems of {aim.prior}"
        )
    everything = [
        RankedFormula(
            known.trees[item],
            int(known.sizes[item]),
            float(value),
            float(regret),
            float(error),
        )
        for item, value, regret, error in zip(which, values, regrets, errors, strict=True)
    ]
    shortest: dict[int, RankedFormula] = {}
    for entry in everything:
        shortest.setdefault(entry.length, entry)
    entries = [
        refined(entry, aim, begin, announce) if place < refine else entry
        for place, entry in enumerate(everything[:top])
    ]
    # The best and its refinements, on problems that nothing was chosen by.
    best = Expression(expression=entries[0].formula, parameters={}, start=StartSpec.of(begin))
    freed = [entry.refined for entry in entries if entry.refined is not None]
    worth: Measurement | None = None
    if entries[0].refined is not None:
        worth = entries[0].refined.before
    elif measured or freed:
        worth = measure(aim, best.policy(best.expression), announce)
    for item in freed:
        if worth is None or item.measurement.objective < worth.objective:
            best, worth = item.content, item.measurement
    least = aim.least()
    origin = Origin(
        space=f"formulas up to length {known.length}",
        prior=str(aim.prior),
        arms=aim.prior.arms,
        horizon=aim.horizon,
        **rewards_of(aim.prior),
        objective=aim.objective.name,
        reference=None if aim.reference is None else aim.reference.name,
        protocol="search",
        optimizer=way.name,
        seed=aim.seed,
        stopped=stopped,
        generations=0,
        evaluations=len(known),
        regret=None if worth is None else worth.measured(),
        floor=None if least is None else least.regret,
        versions=versions(),
    )
    return Found(
        entries=tuple(entries),
        of_length=tuple(shortest[item] for item in sorted(shortest)),
        policy=best.policy(best.expression if worth is None else worth.comparison[0].policy),
        file=PolicyFile(policy=best, learned=origin),
        comparison=None if worth is None else worth.comparison,
        floor=None if least is None else least.regret,
        strategy=way.name,
        classes=len(known),
        stopped=stopped,
        seconds=way.now_seconds,
    )
