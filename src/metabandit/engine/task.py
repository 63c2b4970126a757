"""The task: what is asked, checked once and passed whole."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from ..bayes.optimum import check_floor
from ..errors import InputError, about, nearest
from ..feedback import IMMEDIATE, Feedback
from ..memory import LONGEST, check_time
from ..policies import Policy, Start, policy
from ..priors import Prior, check_prior
from ..settings import check_horizon, check_seed, check_whole, read_number, read_seconds
from ..workers import Workers, make_workers
from .costs import exact_seconds
from .floor import Floor
from .limits import TimeLimit
from .objectives import REGRET, Objective, read_objective
from .results import EXACT, MONTE_CARLO
from .simulated import MOST_LANES, Sampling

AUTO = "auto"
METHODS = (AUTO, EXACT, MONTE_CARLO)
_EPISODES = 100_000
# About what a search with effort 1 takes on one core.
_EFFORT_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is asked. `read_task` makes one from what a person gives.

    prior, horizon: the problems, and plays per episode
    objective, reference: what a policy is to be good at, and the policy that `wins` compares with
    start: how index policies begin that do not say so themselves
    feedback: when rewards become known
    seed: one seed, one result, whoever works
    workers: threads and, through an executor, other processes
    effort: how long to search
    time_limit: what the whole command may take
    method, episodes, runs: how policies are judged: exactly or on this many episodes, `runs` of them per
        problem; None leaves the number of episodes to whoever judges
    reward_seed: of the rewards, if the same problems are to be played with other rewards
    checkpoints: plays after which the regret curve is taken
    lanes, keep_plays: see `evaluate`
    floor: whether the least possible regret is wanted; None leaves that to whoever measures
    least: that regret, as soon as a search has it
    floor_effort: how much is computed for it where it is a bound; by default as for the search, up to 1
    """

    prior: Prior
    horizon: int
    workers: Workers
    objective: Objective = REGRET
    reference: Policy | None = None
    start: Start = Start()  # noqa: RUF009  (it is frozen)
    feedback: Feedback = IMMEDIATE
    seed: int = 0
    effort: float = 1.0
    time_limit: TimeLimit = field(default_factory=TimeLimit)
    method: str = AUTO
    episodes: int | None = None
    runs: int = 1
    reward_seed: int | None = None
    checkpoints: tuple[int, ...] = ()
    lanes: int = MOST_LANES
    keep_plays: bool = False
    floor: bool | None = None
    least: Floor | None = None
    floor_effort: float | None = None

    @property
    def bound_effort(self) -> float:
        """The effort of the floor where it is a bound."""
        return min(self.effort, 1.0) if self.floor_effort is None else self.floor_effort

    @property
    def problems(self) -> int:
        """Problems that a comparison plays, if it is simulated."""
        episodes = max(_EPISODES // self.runs, 1) * self.runs
        return (episodes if self.episodes is None else self.episodes) // self.runs

    @property
    def exact_seconds(self) -> float:
        """About how long a core takes to evaluate a policy exactly."""
        return exact_seconds(self.prior, self.horizon, feedback=self.feedback)

    @property
    def sampling(self) -> Sampling:
        """The episodes of a comparison, if it is simulated."""
        return Sampling(
            runs=self.runs,
            seed=self.seed,
            reward_seed=self.reward_seed,
            checkpoints=self.checkpoints,
            lanes=self.lanes,
            keep_plays=self.keep_plays,
        )


def read_task(
    prior: Prior,
    horizon: int,
    *,
    threads: int | None = None,
    executor: Executor | None = None,
    objective: str = "regret",
    reference: str | Policy | None = None,
    start: str | Start | None = None,
    feedback: Feedback | Mapping[str, Any] | None = None,
    checkpoints: Sequence[int] | None = None,
    **numbers: object,
) -> Task:
    """Check what a person asks for; `numbers` are the other fields of a task."""
    check_prior(prior)
    horizon = check_horizon(horizon)
    checked = {}
    for name, value in numbers.items():
        if value is not None:
            with about(name):
                checked[name] = _CHECKS[name](value)
    with about("reference"):
        rival = None if reference is None else policy(reference)
    with about("objective"):
        wanted = read_objective(objective, reference=reference)
    with about("start"):
        begun = Start.read(start)
    task = Task(
        prior=prior,
        horizon=horizon,
        workers=make_workers(threads, executor),
        objective=wanted,
        reference=rival,
        start=begun,
        feedback=Feedback.read(feedback),
        checkpoints=tuple(_read_points(checkpoints, horizon)),
        **checked,
    )
    task.feedback.check(prior.arms, horizon)
    if task.floor:
        with about("floor"):
            check_floor(prior)
    if task.reference is not None:
        task.reference.check(prior, horizon)
    if task.episodes is not None and task.episodes % task.runs:
        raise InputError(
            f"the number of episodes ({task.episodes}) must be a multiple of the runs per problem "
            f"({task.runs})",
            about="episodes",
        )
    return task


def default_checkpoints(horizon: int) -> list[int]:
    """Numbers of plays at which regret is looked at: spread evenly in the logarithm."""
    points = np.geomspace(1, horizon, 24).round().astype(int)
    return sorted({int(point) for point in points} | {horizon})


def _read_points(checkpoints: Sequence[int] | None, horizon: int) -> list[int]:
    """The checkpoints in order, the horizon among them."""
    if checkpoints is None or len(checkpoints) == 0:
        return default_checkpoints(horizon)
    points = sorted({check_whole(point, "a checkpoint", -(2**62)) for point in checkpoints})
    if points[0] < 1 or points[-1] > horizon:
        raise InputError(f"checkpoints must lie between 1 and the horizon {horizon}, not {points}")
    return points if points[-1] == horizon else [*points, horizon]


def _check_effort(effort: Any) -> float:
    number = read_number(effort, "the effort")
    if number <= 0.0:
        raise InputError(f"the effort must be greater than 0, not {number:g}")
    check_time(
        number * _EFFORT_SECONDS,
        f"a search with an effort of {number:g}",
        f"choose an effort of at most {LONGEST / _EFFORT_SECONDS:g}",
    )
    return number


def _check_time_limit(limit: Any) -> TimeLimit:
    if isinstance(limit, TimeLimit):
        return limit
    number = read_seconds(limit) if isinstance(limit, str) else read_number(limit, "the time limit")
    if number <= 0.0:
        raise InputError(f"the time limit must be greater than 0 seconds, not {number:g}")
    return TimeLimit(number)


def _check_method(method: object) -> str:
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; {nearest(str(method), METHODS)}")
    return str(method)


def _check_lanes(lanes: object) -> int:
    number = check_whole(lanes, "lanes", 0)
    if number % 64 or not 64 <= number <= MOST_LANES:
        raise InputError(f"lanes must be a multiple of 64 from 64 to 512, not {lanes}")
    return number


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "seed": check_seed,
    "effort": _check_effort,
    "floor": bool,
    "floor_effort": _check_effort,
    "time_limit": _check_time_limit,
    "method": _check_method,
    # What takes too long is refused with an estimate, by whoever knows the rest (costs.py).
    "episodes": lambda value: check_whole(value, "the number of episodes", 1, most=10**18),
    "runs": lambda value: check_whole(value, "the number of runs per problem", 1, most=10**18),
    "reward_seed": lambda value: check_whole(value, "the seed of the rewards", 0, most=2**63 - 1),
    "lanes": _check_lanes,
    "keep_plays": bool,
}


def stream(seed: int, *path: int) -> int:
    """A seed that depends on the run's seed and on where it is used."""
    state = np.random.SeedSequence((seed, *path)).generate_state(2, np.uint32)
    return (int(state[0]) << 31 ^ int(state[1])) % 2**62


def silent(message: str) -> None:
    """Say nothing: what stands in for `announce`."""


def versions() -> dict[str, str]:
    """What a policy was learned with."""
    packages = ("metabandit", "cmaes", "numba", "numpy", "scipy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
