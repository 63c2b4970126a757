"""`evaluate_external`: the regret of anything that selects arms, beside our own policies.

It plays the problems that `evaluate` draws for the same seed, with the same rewards, one play at a
time: so a paired difference tells two policies apart with few episodes, whoever wrote them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .. import numerics
from ..errors import InputError
from ..feedback import Feedback
from ..numerics import episode_seed
from ..policies import Policy
from ..priors import Prior, read_prior
from ..priors.families import Array, Family
from ..progress import Told, with_progress
from ..settings import check_whole
from .evaluation import compared, evaluate
from .floor import floor_of_comparison
from .precision import Precision
from .problems import draw_problems
from .results import MONTE_CARLO, Comparison, Evaluation, evaluation_of
from .task import Task, read_task

# Rewards of an arm that are drawn at first; then twice as many each time.
_FIRST = 32


def _draw_bits(word: npt.NDArray[np.uint32], key: int) -> npt.NDArray[np.uint32]:
    """As kernels/random.py."""
    x = word ^ (word >> np.uint32(16))
    x *= np.uint32(numerics.HASH_A)
    x ^= x >> np.uint32(15)
    x ^= np.uint32(key)
    x *= np.uint32(numerics.HASH_B)
    x ^= x >> np.uint32(16)
    return x


def _uniform(word: int, key: int, first: int, count: int, kind: Any = np.float32) -> Array:
    """As kernels/random.py: the uniform numbers of pulls, for lanes of this kind."""
    words = np.arange(first, first + count, dtype=np.uint32) * np.uint32(numerics.WEYL_32)
    words += np.uint32(word)
    bits = _draw_bits(words, key)
    if kind is np.float32:
        return ((bits >> np.uint32(9)).astype(np.float64) + 0.5) * 2.0**-23
    more = _draw_bits(words ^ np.uint32(numerics.FINE), key) >> np.uint32(12)
    return (bits.astype(np.float64) * 2.0**20 + more + 0.5) * 2.0**-52


class EpisodeRewards:
    """What each pull of each arm pays in one episode: the rewards that the simulator would draw.

    The reward of an arm's j-th pull is a function of (seed, episode, arm, j), so that whoever plays the
    episode meets the same rewards.

    parameters: [arm, parameter], of the family
    seed: the episode's own (`numerics.episode_seed`)
    kind: the type of lanes in which the simulator would play the episode (precision.py)
    """

    def __init__(
        self, family: Family, parameters: Array, seed: int, *, kind: Any = np.float32
    ) -> None:
        self.kind = kind
        self.family = family
        self.parameters = parameters
        self._key = numerics.word_of(seed, 0)
        self._words = [numerics.word_of(seed, 1 + arm) for arm in range(len(parameters))]
        self._drawn: list[list[float]] = [[] for _ in parameters]

    def plays_at_random(self, step: int, share: float) -> int | None:
        """The arm that is played at random so that each arm keeps its share, or None."""
        arms = len(self.parameters)
        if numerics.unit(self._key, step, numerics.CHOICES + 2) < arms * share:
            return numerics.below(self._key, step, numerics.CHOICES + 3, arms)
        return None

    def lateness(self, arm: int, pull: int) -> float:
        """The uniform number from which the random delay of a reward follows."""
        return float(_uniform(self._words[arm], self._key ^ numerics.DELAY, pull, 1)[0])

    def reward(self, arm: int, pull: int) -> float:
        """The reward of an arm's pull; pulls are counted from 0."""
        drawn = self._drawn[arm]
        while pull >= len(drawn):
            count = max(_FIRST, len(drawn))
            uniform = _uniform(self._words[arm], self._key, len(drawn), count, self.kind)
            rewards = self.family.rewards(uniform, self.parameters[arm], self.kind)
            low, high = self.family.support
            if not (rewards.min() >= low and rewards.max() <= high):
                raise InputError(
                    f"the family {self.family.name} drew a reward that is not a finite number "
                    f"between {low:g} and {high:g}; correct its quantile or its support"
                )
            drawn += rewards.tolist()
        return drawn[pull]


class Contestant(Protocol):
    """What can be evaluated: it names the arm to play, from 0 on, and is told the reward."""

    def select(self) -> Any: ...

    def update(self, arm: int, reward: float, /) -> object: ...


@dataclass(frozen=True)
class Episode:
    """What a contestant may know before it plays.

    Attributes
    ----------
    number : int
        The number of the episode, which is also that of its problem.
    arms, horizon : int
        The arms and the plays of the episode.
    seed : int
        A seed for the contestant's own random choices. A player with this seed makes the same random plays as
        in the simulator.
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


def _play(
    player: Contestant, name: str, rewards: EpisodeRewards, gaps: Array, task: Task
) -> tuple[list[float], list[int]]:
    """Let a contestant play an episode: regret at each checkpoint and simple regret, and plays."""
    arms, feedback = len(gaps), task.feedback
    ends = feedback.ends(task.horizon)
    plays, sums = [0] * arms, [0.0] * arms
    due: dict[int, list[tuple[int, float]]] = {}
    regret = []
    for begin, point in pairwise([0, *task.checkpoints]):
        for made in range(begin + 1, point + 1):
            arm = _choice(player.select(), name, arms)
            if feedback.min_share:
                other = rewards.plays_at_random(made - 1, feedback.min_share)
                arm = arm if other is None else other
            reward = rewards.reward(arm, plays[arm])
            when = made
            if feedback.waits:
                when = feedback.comes_after(made, ends, rewards.lateness(arm, plays[arm]))
            due.setdefault(when, []).append((arm, reward))
            plays[arm] += 1
            sums[arm] += reward
            for item in due.pop(made, ()):
                player.update(*item)
        # In the simulator's order, so that the same plays have the same regret to the last bit.
        regret.append(sum(n * gap for n, gap in zip(plays, gaps, strict=True)))
    means = [total / n if n else -np.inf for total, n in zip(sums, plays, strict=True)]
    regret.append(gaps[np.array(means) == max(means)].mean())
    return regret, plays


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


def _play_all(makers: Mapping[str, Make], task: Task, progress: Told) -> tuple[Array, Array]:
    """Regret [contestant, checkpoint, episode] and plays [contestant, arm, episode]."""
    prior, episodes = task.prior, task.problems
    kind = Precision.of(prior, task.horizon).kind()
    problems = draw_problems(prior, task.seed, episodes)
    means = prior.regret_means(problems)
    gaps = means.max(axis=1, keepdims=True) - means
    regret = np.empty((len(makers), len(task.checkpoints) + 1, episodes))
    plays = np.empty((len(makers), prior.arms, episodes))
    for number, parameters in enumerate(problems):
        episode = Episode(number, prior.arms, task.horizon, episode_seed(task.seed, number))
        rewards = EpisodeRewards(prior.family, parameters, episode.seed, kind=kind)
        for row, (name, make) in enumerate(makers.items()):
            found = _play(make(episode), name, rewards, gaps[number], task)
            regret[row, :, number], plays[row, :, number] = found
        if progress is not None:
            progress(number + 1, episodes)
    return regret, plays


def _evaluate_ours(
    policies: str | Policy | Sequence[str | Policy], task: Task
) -> tuple[Evaluation, ...]:
    """Policies of ours on the same episodes, in the simulator."""
    given = [policies] if isinstance(policies, (str, Policy)) else list(policies)
    if not given:
        return ()
    return evaluate(
        given,
        task.prior,
        task.horizon,
        method=MONTE_CARLO,
        episodes=task.problems,
        seed=task.seed,
        feedback=task.feedback,
        floor=False,
        checkpoints=list(task.checkpoints),
        keep_plays=True,
    ).evaluations


@with_progress("evaluating")
def evaluate_external(
    contestants: Make | Mapping[str, Make],
    prior: str | Prior,
    horizon: int,
    *,
    arms: int | None = None,
    beside: str | Policy | Sequence[str | Policy] = (),
    episodes: int = 1000,
    seed: int = 0,
    feedback: Feedback | Mapping[str, Any] | None = None,
    floor: bool | None = None,
    checkpoints: Sequence[int] | None = None,
    progress: Told = None,
) -> Comparison:
    """The regret of other people's policies, on the problems and with the rewards of `evaluate`.

    Parameters
    ----------
    contestants : callable or mapping
        make(episode) returns an object with select() and update(arm, reward), a new one for each
        episode; one such function, or several by name.
    prior, horizon, arms
        As for `evaluate`.
    beside : str, Policy or a sequence of them, optional
        Policies of ours that play the same episodes, in the simulator; they come last.
    episodes, seed, feedback, floor, checkpoints
        As for `evaluate`, with one run per problem. Rewards are handed over when they are known.
    progress : callable or bool, optional
        Called as progress(episodes done, episodes in all); a bar by default, False for none.

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
    prior = read_prior(prior, arms=arms)
    episodes = check_whole(episodes, "the number of episodes", 2)
    task = read_task(
        prior, horizon, method=MONTE_CARLO, episodes=episodes, seed=seed, feedback=feedback,
        checkpoints=checkpoints, floor=floor,
    )  # fmt: skip
    lowest = floor_of_comparison(
        prior, task.horizon, task.floor, feedback=task.feedback, threads=1, progress=None
    )
    ours = _evaluate_ours(beside, task)
    for evaluation in ours:
        if evaluation.policy in makers:
            raise InputError(
                f"two policies are called {evaluation.policy!r}; give one another name"
            )

    regret, plays = _play_all(makers, task, progress)
    means, spread = regret.mean(axis=2), regret.std(axis=2, ddof=1)
    theirs = [
        evaluation_of(
            name,
            list(task.checkpoints),
            means[row],
            spread[row] / np.sqrt(episodes),
            plays[row].mean(axis=1),
            regret[row, -2].astype(np.float32),
            plays[row].astype(np.float32),
        )
        for row, name in enumerate(makers)
    ]
    evaluations = (*theirs, *ours)
    at_end = np.stack([np.asarray(item.problem_regret, np.float64) for item in evaluations])
    covariance = np.atleast_2d(np.cov(at_end))
    return compared(task, evaluations, covariance, lowest, start="their own")
