"""`evaluate_external`: the regret of anything that selects arms, beside our own policies.

It plays the problems that `evaluate` draws for the same seed, with the same rewards, one play at a
time: so a paired difference tells two policies apart with few episodes, whoever wrote them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..errors import InputError
from ..numerics import episode_seed
from ..policies import Policy, Progress
from ..priors import Prior
from ..priors.families import Array
from ..settings import check_whole
from . import simulated
from .evaluation import evaluate
from .floor import floor_of_comparison
from .results import MONTE_CARLO, Comparison, Evaluation
from .rewards import EpisodeRewards
from .task import read_task


class Contestant(Protocol):
    """What can be evaluated: it names the arm to play, from 0 on, and is told the reward."""

    def select(self) -> Any: ...

    def update(self, arm: int, reward: float, /) -> object: ...


@dataclass(frozen=True)
class Episode:
    """What a contestant may know before it plays.

    number: of the episode, which is that of its problem
    seed: for what is random in the contestant. A player of ours with it makes the same random plays
        as in the simulator
    """

    number: int
    arms: int
    horizon: int
    seed: int


Make = Callable[[Episode], Contestant]


def _choice(arm: object, name: str, arms: int) -> int:
    try:
        number = operator.index(arm)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if not 0 <= number < arms:
        raise InputError(
            f"{name} selected {arm!r}; there are {arms} arms, which are called 0 to {arms - 1}"
        )
    return number


class _Tally:
    """What one contestant has done: regret at each checkpoint and simple regret, and plays."""

    def __init__(self, name: str, points: Sequence[int], arms: int, episodes: int) -> None:
        self.name = name
        self.points = points
        self.regret = np.empty((len(points) + 1, episodes))
        self.plays = np.empty((arms, episodes))

    def play(self, player: Contestant, rewards: EpisodeRewards, gaps: Array, episode: int) -> None:
        """Let the contestant play an episode."""
        arms = len(gaps)
        plays, sums = [0] * arms, [0.0] * arms
        done = 0
        for row, point in enumerate(self.points):
            for _ in range(point - done):
                arm = _choice(player.select(), self.name, arms)
                reward = rewards.reward(arm, plays[arm])
                plays[arm] += 1
                sums[arm] += reward
                player.update(arm, reward)
            done = point
            # In the simulator's order, so that the same plays have the same regret to the last bit.
            self.regret[row, episode] = sum(n * gap for n, gap in zip(plays, gaps, strict=True))
        means = [total / n if n else -np.inf for total, n in zip(sums, plays, strict=True)]
        self.regret[-1, episode] = gaps[np.array(means) == max(means)].mean()
        self.plays[:, episode] = plays

    def evaluation(self) -> Evaluation:
        means = self.regret.mean(axis=1)
        errors = self.regret.std(axis=1, ddof=1) / np.sqrt(self.regret.shape[1])
        return Evaluation(
            policy=self.name,
            mean_regret=float(means[-2]),
            standard_error=float(errors[-2]),
            simple_regret=float(means[-1]),
            simple_error=float(errors[-1]),
            checkpoints=np.array(self.points, dtype=np.int64),
            curve=means[:-1],
            curve_error=errors[:-1],
            plays=self.plays.mean(axis=1),
            problem_regret=self.regret[-2].astype(np.float32),
            problem_plays=self.plays.astype(np.float32),
        )


def _read_contestants(given: object) -> dict[str, Make]:
    if callable(given):
        return {getattr(given, "__name__", type(given).__name__): given}
    if not isinstance(given, Mapping) or not given:
        raise InputError(
            f"contestants are a function that makes one for an episode, or a dict of such functions "
            f"by name; not {given!r}"
        )
    for name, make in given.items():
        if not isinstance(name, str) or not callable(make):
            raise InputError(f"a contestant is a name and a function, not {name!r} and {make!r}")
    return dict(given)


def evaluate_external(
    contestants: Make | Mapping[str, Make],
    prior: Prior,
    horizon: int,
    *,
    beside: str | Policy | Sequence[str | Policy] = (),
    episodes: int = 1000,
    seed: int = 0,
    floor: bool | None = None,
    checkpoints: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """The regret of other people's policies, on the problems and with the rewards of `evaluate`.

    Parameters
    ----------
    contestants : callable or mapping
        make(episode) returns an object with select() and update(arm, reward), a new one for each
        episode; one such function, or several by name.
    prior, horizon
        As for `evaluate`.
    beside : str, Policy or a sequence of them, optional
        Policies of ours that play the same episodes, in the simulator; they come last.
    episodes, seed, floor, checkpoints
        As for `evaluate`, with one run per problem.
    progress : callable, optional
        Called as progress(episodes done, episodes in all).

    Returns
    -------
    Comparison
        Simple regret goes by the mean of the rewards that came; for a policy `beside` that begins
        with pseudo-observations it goes by the mean that includes them.

    Examples
    --------
    >>> import metabandit as mb
    >>> class Switch:
    ...     arm = 0
    ...     def select(self):
    ...         return self.arm
    ...     def update(self, arm, reward):
    ...         self.arm = arm if reward else 1 - arm
    >>> prior = mb.Bernoulli(arms=2)
    >>> result = mb.evaluate_external(
    ...     {"switch": lambda episode: Switch()}, prior, 50, beside="ucb1", episodes=200
    ... )
    >>> [evaluation.policy for evaluation in result.ranking()]
    ['ucb1', 'switch']
    """
    makers = _read_contestants(contestants)
    episodes = check_whole(episodes, "the number of episodes", 2)
    task = read_task(prior, horizon, episodes=episodes, seed=seed, checkpoints=checkpoints)
    horizon, seed, points = task.horizon, task.seed, list(task.checkpoints)
    lowest = floor_of_comparison(prior, horizon, floor, threads=1, progress=None)
    ours: tuple[Evaluation, ...] = ()
    given = [beside] if isinstance(beside, (str, Policy)) else list(beside)
    if given:
        ours = evaluate(
            given,
            prior,
            horizon,
            method=MONTE_CARLO,
            episodes=episodes,
            seed=seed,
            floor=False,
            checkpoints=points,
            keep_plays=True,
        ).evaluations
    for evaluation in ours:
        if evaluation.policy in makers:
            raise InputError(
                f"two policies are called {evaluation.policy!r}; give one another name"
            )

    problems = simulated.draw_problems(prior, seed, episodes)
    means = prior.regret_means(problems)
    gaps = means.max(axis=1, keepdims=True) - means
    tallies = [_Tally(name, points, prior.arms, episodes) for name in makers]
    for number, parameters in enumerate(problems):
        episode = Episode(number, prior.arms, horizon, episode_seed(seed, number))
        rewards = EpisodeRewards(prior.family, parameters, episode.seed)
        for tally, make in zip(tallies, makers.values(), strict=True):
            tally.play(make(episode), rewards, gaps[number], number)
        if progress is not None:
            progress(number + 1, episodes)

    evaluations = (*(tally.evaluation() for tally in tallies), *ours)
    regret = np.stack([np.asarray(item.problem_regret, np.float64) for item in evaluations])
    return Comparison(
        evaluations=evaluations,
        prior=str(prior),
        arms=prior.arms,
        horizon=horizon,
        method=MONTE_CARLO,
        episodes=episodes,
        runs=1,
        seed=seed,
        start="their own",
        covariance=np.atleast_2d(np.cov(regret)),
        floor=lowest,
    )
