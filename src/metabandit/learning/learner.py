"""`learn`: the best policy of a space for a prior, measured on problems that learning never saw."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data import write_data
from ..engine import Comparison, Evaluation, costs, exact, simulated
from ..engine.costs import check_simulation
from ..engine.task import Task, read_task, silent, versions
from ..errors import InputError, about, nearest
from ..feedback import Feedback
from ..policies import Policy, Start, policy
from ..policies.file import (
    Origin,
    PolicyFile,
    Power,
    check_target,
    read_file,
    read_target,
    rewards_of,
)
from ..policies.power import feature, powers, weight_names
from ..priors import Prior, Table, read_prior
from ..priors.families import Array
from ..progress import Told, with_progress
from ..settings import check_keys, check_whole, read_number, read_settings
from ..showing import Shown
from ..trials.testing import read_test
from .judges import SIMULATED, judging_method
from .measure import asked, measure, with_floor
from .optimizers.base import read_optimizer
from .search import CoarseClock, Generation, Search
from .spaces import Space, make_space
from .trace import Trace, trace_path

PROTOCOLS = ("default", "paper")
# The paper's protocol: generations, problems drawn once, and runs of each.
_PAPER_GENERATIONS = 100
_TRAINING = {"problems": 100, "runs": 100}
# Candidates of a typical generation.
_POPULATION = 8
# What `to_dict` tells of each generation.
_TRACED = ("generation", "space", "horizon", "best", "median", "noise", "problems", "seconds")


@dataclass(frozen=True, eq=False, repr=False)
class Learned(Shown):
    """The result of learning.

    Attributes
    ----------
    policy : Policy
        The policy, ready to be evaluated.
    parameters : mapping
        The values of the learned parameters.
    file : PolicyFile
        The same as a policy file holds it, with how it was learned.
    comparison : Comparison or None
        The policy and the classics on problems that learning never saw.
    evaluation : Evaluation or None
        The policy's own result: exact where possible, otherwise that of the comparison.
    objective : float or None
        The value of the objective on problems that learning never saw; less is better.
    power : float or None
        The power of a trial with this policy, if the objective asks for it.
    floor : float or None
        The regret of the Bayes-optimal policy, or a lower bound on it, if it is known.
    stopped : str
        Why the search ended: generations, optimum reached, time limit or interrupted.
    unbeaten : str or None
        If nothing better was found: the classic that is the result, or "start" for the initial policy.
    coarse
        The coarse clock on which candidates were judged, and its effect on the result; None if they were judged
        one play at a time, or exactly.
    trace : list
        One record per generation.
    seconds : float
        How long everything took, including the floor and the measurement.
    """

    policy: Policy
    parameters: Mapping[str, float]
    file: PolicyFile
    comparison: Comparison | None
    evaluation: Evaluation | None
    objective: float | None
    power: float | None
    floor: float | None
    stopped: str
    unbeaten: str | None
    coarse: CoarseClock | None
    trace: list[dict[str, Any]] = field(repr=False)
    seconds: float = 0.0

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the policy file; one that exists is overwritten only if `force` says so."""
        self.file.write(check_target(path, force=force))

    def headline(self) -> str:
        origin = self.file.learned
        assert origin is not None
        found = self.evaluation
        regret = "not measured" if found is None else f"regret {found.mean_regret:.5g}"
        if found is not None and self.floor:
            regret += f", {100 * (found.mean_regret / self.floor - 1):.2f} % above the floor"
        return f"{self.policy.name}: {regret}; {origin.horizon} plays, {origin.arms} arms, {origin.prior}"

    def rows(self) -> list[dict[str, str]]:
        """The policy against the classics and the floor."""
        return [] if self.comparison is None else self.comparison.rows()

    def records(self) -> list[dict[str, Any]]:
        """The same as numbers; the generations are in `trace`."""
        return [] if self.comparison is None else self.comparison.records()

    def plot(self, axes: Any = None) -> Any:
        """Draw the value of the best candidate of each generation; returns matplotlib's axes."""
        from ..drawing import curves, plot_axes

        if not self.trace:
            raise InputError("no generation was finished, so there is nothing to draw")
        # Shorter horizons and smaller spaces come first, and their values are other ones.
        last = self.trace[-1]
        own = [
            each
            for each in self.trace
            if (each["space"], each["horizon"]) == (last["space"], last["horizon"])
        ]
        line = (
            "best candidate",
            [each["generation"] for each in own],
            [each["best"] for each in own],
        )
        levels = {"floor": self.floor} if self.floor else {}
        axes = plot_axes(axes)
        curves(
            [(*line, None)], x="generation", y="objective", axis="whole", steps=True,
            levels=levels, title=self.policy.name, axes=axes,
        )  # fmt: skip
        return axes

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            **write_data(self.file),
            "objective": self.objective,
            "power": self.power,
            "unbeaten": self.unbeaten,
            "coarse": None if self.coarse is None else asdict(self.coarse),
            "seconds": round(self.seconds, 3),
            "search_seconds": round(sum(record["seconds"] for record in self.trace), 3),
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "trace": [{key: record[key] for key in _TRACED} for record in self.trace],
        }


@about("initial")
def _initial(given: str | Path | Mapping[str, float] | None) -> dict[str, float]:
    """Values to begin with: as they are, or those of a policy file."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str) and not given.endswith(".json"):
        _, settings = read_settings(f"initial:{given}", "initial values")
        return {key: read_number(value, f"{key} to begin with") for key, value in settings.items()}
    if not isinstance(given, (str, Path)):
        raise InputError(
            f"values to begin with are such as a=1,b=2 or a policy file, not {given!r}"
        )
    content = read_file(given).policy
    if isinstance(content, Power):
        names = dict(
            zip(map(feature, powers(content.degree)), weight_names(content.degree), strict=True)
        )
        return {names[item]: weight for item, weight in content.weights.items()}
    return dict(content.parameters)


@with_progress("learning", lambda bar: lambda each: bar(each.share, 1.0, str(each)))
def learn(
    space: str,
    prior: str | Prior,
    horizon: int,
    *,
    arms: int | None = None,
    objective: str = "regret",
    reference: str | Policy | None = None,
    start: str | Start | None = None,
    feedback: Feedback | Mapping[str, Any] | None = None,
    v1: str | None = None,
    v4: str | None = None,
    initial: str | Path | Mapping[str, float] | None = None,
    optimizer: str | None = None,
    protocol: str = "default",
    seed: int = 0,
    effort: float = 1.0,
    floor: bool | None = None,
    floor_effort: float | None = None,
    generations: int | None = None,
    episodes: int | None = None,
    time_limit: float | str | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    measured: bool = True,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Told = None,
    announce: Callable[[str], None] | None = None,
) -> Learned:
    """Learn the parameters of a policy for problems drawn from a prior.

    Parameters
    ----------
    space : str
        `power-1`, `power-2`, ...; a policy of the catalogue, whose parameters are learned (`ucb1`,
        `ucb-v:c=1` for zeta only); or an expression, whose unknown names are learned:
        `r + a/(n + b)`.
    prior : Prior or str
        What is known about the arms in advance: a prior, or its text as on the command line.
    horizon : int
        Plays per episode.
    arms : int, optional
        The number of arms, if the prior is a text that does not include it.
    objective : str
        `regret` (its mean over problems), `wins` (against `reference`), `quantile:q=0.9`, `worst`,
        `simple`; for trials (docs/trials.md) `power:p1=0.3,p2=0.5,least=0.8`, which is regret with at
        least that power, or `worst:grid=0.1:0.9:0.1`, the largest regret over these success rates.
    reference : str or Policy, optional
        The policy that the objective `wins` compares with.
    start : str or Start, optional
        How play begins (see `policy`); by default with the prior's pseudo-observations if it has any,
        otherwise by playing each arm once. `prior-counts:learn` learns the pseudo-observations.
    feedback : Feedback, optional
        When rewards become known; immediately by default. The policy is judged, chosen and measured under
        it.
    v1 : {"h", "t"}, optional
        The first feature of Power-P: from plays left (default) or plays made.
    v4 : {"s", "w"}, optional
        The last feature of Power-P: the standard deviation (default), or the share of plays that wait for
        their reward.
    initial : mapping, str or path, optional
        Where the search begins: values of parameters, or a policy file.
    optimizer : str, optional
        `cma` (default) or `eda` (default of the paper's protocol), with settings such as
        `cma:population=24`.
    protocol : str
        `default`, or `paper`: 100 problems drawn once, 100 runs each, 100 generations, each-once, v1 =
        t, and the candidate with the lowest value ever observed; `paper:problems=50,runs=10` has
        other numbers.
    seed : int
        The same seed gives the same result on any number of threads.
    effort : float
        How long to search: 2 takes twice as long, 0.5 half as long. Below 1, the measurement at the end has
        fewer episodes too.
    floor : bool, optional
        Whether to compute the floor, which no policy can beat (see `optimal`). By default it is computed if
        that takes about a minute at most, and a small share of the time limit.
    floor_effort : float, optional
        How long to compute the floor if it is a lower bound (see `lower_bound`); by default the effort, up
        to 1.
    generations : int, optional
        Number of generations, instead of what the effort allows.
    episodes : int, optional
        Episodes per candidate in the first generation if candidates are simulated: by default 1000, or 20,000
        if the regret of each single problem matters. With fewer, a small effort has more generations.
    time_limit : float or str, optional
        Time for the whole call, in seconds or as a text such as 5m: floor, search, choice and measurement, but
        not compilation. The result is the best policy so far, which may be a classic (see
        `Learned.unbeaten`).
    threads : int, optional
        Threads to use; all cores by default.
    executor : concurrent.futures.Executor, optional
        Other processes that share the work (docs/cluster.md); the result is the same.
    measured : bool
        Whether to compute the floor and to compare the result with classics at the end.
    out : path, optional
        The policy file to write; a trace of all generations is written next to it.
    resume : bool
        Continue a run that was stopped, from its trace; the result is that of an uninterrupted run.
    force : bool
        Overwrite existing files.
    progress : callable or bool, optional
        Called after each generation; a bar by default, False for none.
    announce : callable, optional
        Called with messages.

    Returns
    -------
    Learned

    Notes
    -----
    Ctrl-C ends the search with the best so far, if it is to be measured; with `out` it can continue
    later.

    Examples
    --------
    >>> import metabandit as mb
    >>> learned = mb.learn("r + a/(n + b)", mb.Bernoulli(arms=2), horizon=20, effort=0.2)
    >>> learned.evaluation.mean_regret < mb.evaluate("ucb1", mb.Bernoulli(arms=2), 20)[0].mean_regret
    True
    """
    # Long because its arguments are its signature; the body is short.
    began = time.monotonic()
    prior = read_prior(prior, arms=arms, announce=announce)
    if isinstance(prior, Table):
        prior = prior.split()
    task = read_task(
        prior, horizon, objective=objective, reference=reference, seed=seed, effort=effort,
        floor=floor, floor_effort=floor_effort, episodes=episodes, time_limit=time_limit, threads=threads, executor=executor,
        feedback=feedback,
    )  # fmt: skip
    training = _read_protocol(protocol)
    paper = training is not None
    made = make_space(
        space, prior, start=start, v1=v1, v4=v4, paper=paper, initial=_initial(initial)
    )
    optimizer = optimizer or ("eda" if paper else "cma")
    with about("optimizer"):
        read_optimizer(optimizer)
    generations = _read_generations(generations, task, paper=paper)
    if episodes is not None:
        with about("episodes"):
            check_whole(episodes, "the number of episodes", 2)
    _check_candidate(made.policy(made.center), task, paper=paper)
    target = read_target(out, trace_path, resume=resume, force=force)
    announce = announce or silent
    if measured:
        task = with_floor(task, announce)
    settings = _settings(task, made, optimizer, training, generations)
    trace = Trace(settings, None if target is None else trace_path(target), resume=resume)
    try:
        search = Search(
            task, made, optimizer=optimizer, training=training, generations=generations, trace=trace
        )
        stopped = _run(search, progress, announce, measured=measured)
        learned = _finish(search, stopped, announce, measured=measured)
        if target is not None:
            learned.file.write(target)
        return replace(learned, seconds=time.monotonic() - began)
    finally:
        trace.close()


@about("generations")
def _read_generations(generations: int | None, task: Task, *, paper: bool) -> int | None:
    """The number of generations; None leaves it to the effort."""
    if generations is not None:
        return check_whole(generations, "the number of generations", 1, most=10**9)
    return max(1, round(_PAPER_GENERATIONS * task.effort)) if paper else None


def _check_candidate(candidate: Policy, task: Task, *, paper: bool) -> None:
    """Refuse a task that candidates cannot play, or cannot be judged on."""
    candidate.check(task.prior, task.horizon)
    if task.objective.exact:
        if paper:
            raise InputError(
                f"the paper's protocol draws problems, which the objective {task.objective.name} does "
                f"without; leave the protocol out",
                about="protocol",
            )
        judging_method(candidate, task)
    if task.objective.power is not None:
        read_test(task.objective.power.test, task.prior.arms)


def _settings(
    task: Task,
    space: Space,
    optimizer: str,
    training: tuple[int, int] | None,
    generations: int | None,
) -> dict[str, Any]:
    """What a run is, for its trace: another one can go on with it only if it is the same."""
    return {
        "space": space.name,
        "parameters": list(space.free),
        "initial": list(space.initial),
        "v1": space.v1 or None,
        "v4": space.v4 or None,
        "start": space.start_text,
        **asked(task),
        "feedback": str(task.feedback),
        "optimizer": optimizer,
        "protocol": _write_protocol(training),
        "effort": task.effort,
        "generations": generations,
        "episodes": task.episodes,
        "versions": versions(),
    }


def _run(
    search: Search,
    progress: Callable[[Generation], None] | None,
    announce: Callable[[str], None],
    *,
    measured: bool,
) -> str:
    """Search, generation by generation; says why it ended."""
    if (why := search.plan_time()) is not None:
        announce(why)
        return "time limit"
    last = search.stages[-1].judge
    if last.method == SIMULATED:
        check_simulation(
            search.task.prior, int(costs.coarse_plays(search.task.prior.arms, last.task.horizon, last.growth)),
            policies=_POPULATION, problems=last.problems,
            runs=last.runs, threads=search.task.workers.threads,
            announce=lambda text: announce(f"of a generation with {_POPULATION} candidates: {text}"),
        )  # fmt: skip
    for method in sorted({stage.judge.method for stage in search.stages}):
        if method == SIMULATED:
            prior, horizon = search.task.prior, search.task.horizon
            simulated.announce_compilation(announce, prior, horizon, [(prior.counts(), None)])
        else:
            exact.announce_compilation(
                search.task.prior.arms, search.task.horizon, announce, search.task.feedback
            )
    try:
        for generation in search.run():
            if progress is not None:
                progress(generation)
    except KeyboardInterrupt:
        if not search.judged or not measured:
            raise
        announce("stopped: measuring the best so far (Ctrl-C again to write it without figures)")
        return "interrupted"
    return search.stopped


@about("protocol")
def _read_protocol(protocol: str) -> tuple[int, int] | None:
    """The problems and runs of the paper's protocol; None for ours."""
    name, settings = read_settings(protocol, "protocol")
    if name not in PROTOCOLS:
        raise InputError(f"unknown protocol {name!r}; {nearest(name, PROTOCOLS)}")
    check_keys(settings, _TRAINING if name == "paper" else (), f"the protocol {name}")
    if name != "paper":
        return None
    numbers = {**_TRAINING}
    for key, value in settings.items():
        number = read_number(value, f"{key} of the protocol")
        if number < 1 or number != int(number):
            raise InputError(f"{key} of the protocol must be a whole number from 1, not {number:g}")
        numbers[key] = int(number)
    return numbers["problems"], numbers["runs"]


def _write_protocol(training: tuple[int, int] | None) -> str:
    """The protocol as `learn` takes it."""
    if training is None:
        return "default"
    if training == tuple(_TRAINING.values()):
        return "paper"
    return f"paper:problems={training[0]},runs={training[1]}"


def _as_kept(space: Space, coordinates: Array) -> Policy:
    """The policy as its file has it."""
    return space.describe(coordinates).policy(space.label(coordinates))


def _finish(
    search: Search, stopped: str, announce: Callable[[str], None], *, measured: bool
) -> Learned:
    """Pick the result and measure it on fresh problems."""
    task, space = search.task, search.stages[-1].space
    coordinates, found = search.result(), None
    try:
        coordinates = search.pick()
        # The policy as its file has it, so that what is measured is what is kept.
        chosen = _as_kept(space, coordinates)
        # What learning began with is a candidate to the end, as the classics are.
        beside = [_as_kept(space, space.center)]
        if space.entry is not None:
            beside.append(policy(space.entry.name))
        as_begun = np.array_equal(coordinates, space.normalise(space.center))
        if measured:
            found = measure(task, chosen, announce, beside=beside, learned=not as_begun)
    except KeyboardInterrupt:
        if not search.judged:
            raise
        stopped = "interrupted"
    content, values = space.describe(coordinates), space.parameters(coordinates)
    best = content.policy(space.label(coordinates))
    unbeaten = "start" if np.array_equal(coordinates, space.normalise(space.center)) else None
    if found is not None and found.unbeaten:
        best, content = found.policy, found.policy.content()
        if best is beside[0]:
            unbeaten, values = "start", space.parameters(space.center)
        else:
            unbeaten, values = best.name, dict(getattr(content, "parameters", {}))
    # A person who stops a run twice does not want to wait for the floor.
    known = task.least
    least = None if known is None else known.now() if found is None else known.wait()
    floor = None if least is None else least.regret
    settings = search.trace.settings | asked(task) | {"generations": search.generation}
    names = {field.name for field in fields(Origin)}
    origin = Origin(
        **{key: value for key, value in settings.items() if key in names},
        **rewards_of(task.prior),
        stopped=stopped,
        evaluations=search.evaluations,
        regret=None if found is None else found.measured(),
        floor=floor,
    )
    return Learned(
        policy=best,
        parameters={name: values[name] for name in values if name in space.free or unbeaten},
        file=PolicyFile(policy=content, learned=origin),
        comparison=None if found is None else found.comparison,
        evaluation=None if found is None else found.evaluation,
        objective=None if found is None else found.objective,
        power=None if found is None else found.power,
        floor=floor,
        stopped=stopped,
        unbeaten=unbeaten,
        coarse=search.coarse,
        trace=search.trace.records,
    )
