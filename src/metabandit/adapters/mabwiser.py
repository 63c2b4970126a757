"""Our policies with MABWiser's interface (MABWiser need not be installed), and its bandits with ours.

Two things differ: `predict` may be called before `fit`, and an arm that was removed and comes back
still has its rewards. There is no `warm_start`: rewards of one arm say nothing about another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..errors import InputError
from ..play import ArmName, read_arms
from ..policies import Policy, policy
from ..priors import Prior
from .base import LatePlayer, needs


def _column(given: Any, what: str) -> list[Any]:
    """Return a list, an array or a pandas series as a list."""
    if isinstance(given, list):
        return given
    if not hasattr(given, "tolist") or getattr(given, "ndim", 1) != 1:
        raise InputError(
            f"{what} are a list, a NumPy array or a pandas Series, not {type(given).__name__}"
        )
    return list(given.tolist())


class MetaMAB:
    """A policy of metabandit with the interface of MABWiser's MAB.

    Parameters
    ----------
    arms
        The names of the arms: texts or whole numbers.
    learning_policy
        A name of the catalogue, an expression, or a policy such as `metabandit.load` returns.
    seed, horizon, rewards, prior
        As for `Policy.player`.

    Examples
    --------
    >>> mab = MetaMAB(["one", "two"], "ucb1:C=0.17")
    >>> mab.fit(["one", "one", "two"], [1, 0, 1])
    >>> mab.predict()
    'two'
    """

    # What MABWiser's simulator reads of a bandit.
    is_contextual = False
    n_jobs = 1
    backend = None

    def __init__(
        self,
        arms: Sequence[ArmName],
        learning_policy: str | Policy,
        *,
        seed: int = 123456,
        horizon: int | None = None,
        rewards: Any = None,
        prior: str | Prior | None = None,
    ) -> None:
        self.arms: list[ArmName] = list(read_arms(arms))
        self.learning_policy = policy(learning_policy)
        self.seed = seed
        self._new_player = partial(
            LatePlayer, learning_policy, seed=seed, horizon=horizon, rewards=rewards, prior=prior
        )
        self._player = self._new_player()
        self._player.offer(self.arms)

    def fit(self, decisions: Any, rewards: Any, contexts: None = None) -> None:
        """Forget all rewards, and count these."""
        player = self._new_player()
        player.update_many(self.arms, self._results(decisions, rewards, contexts))
        self._player = player

    def partial_fit(self, decisions: Any, rewards: Any, contexts: None = None) -> None:
        """Count more rewards: all of them, or none if one is refused."""
        self._player.update_many(self.arms, self._results(decisions, rewards, contexts))

    def predict(self, contexts: Any = None) -> Any:
        """Return the arm to play; for several contexts, which are ignored, a list of arms."""
        if contexts is None or len(contexts) == 1:
            return self._player.pull(self.arms)
        return [self._player.pull(self.arms) for _ in range(len(contexts))]

    def predict_expectations(self, contexts: Any = None) -> Any:
        """Return what the policy compares, per arm: it plays the arm with the largest value.

        An arm that must be played first has infinity. Policies that compare nothing, such as those that
        play at random, give the mean rewards.
        """
        if contexts is None or len(contexts) == 1:
            return self.arm_to_expectation
        return [self.arm_to_expectation for _ in range(len(contexts))]

    def add_arm(self, arm: ArmName, binarizer: None = None) -> None:
        """Add an arm."""
        if binarizer is not None:
            raise InputError("there is no binarizer here; give the rewards that should count")
        if arm in self.arms:
            raise InputError(f"the arm {arm!r} is there already")
        self._player.offer([*self.arms, arm])
        self.arms.append(arm)

    def remove_arm(self, arm: ArmName) -> None:
        """Stop playing an arm."""
        if arm not in self.arms:
            raise InputError(f"there is no arm {arm!r}; the arms are {self.arms}")
        self._player.offer([other for other in self.arms if other != arm])
        self.arms.remove(arm)

    @property
    def cold_arms(self) -> list[ArmName]:
        """The arms that have no rewards."""
        return [view.arm for view in self._views() if not view.rewarded]

    @property
    def arm_to_expectation(self) -> dict[ArmName, float]:
        views = self._views()
        if all(view.index is None for view in views):
            return {view.arm: view.mean for view in views}
        return {view.arm: math.inf if view.index is None else view.index for view in views}

    @property
    def _imp(self) -> MetaMAB:
        # The simulator looks for expectations inside MABWiser's own bandits.
        return self

    def __repr__(self) -> str:
        return f"MetaMAB({self.arms}, {self.learning_policy.name!r})"

    def _views(self) -> list[Any]:
        return [view for view in self._player.offer(self.arms).indices() if not view.retired]

    def _results(
        self, decisions: Any, rewards: Any, contexts: object
    ) -> list[tuple[ArmName, float]]:
        if contexts is not None:
            raise InputError("these policies know no contexts; leave them out")
        arms, values = _column(decisions, "decisions"), _column(rewards, "rewards")
        if len(arms) != len(values):
            raise InputError(f"there are {len(arms)} decisions and {len(values)} rewards")
        return list(zip(arms, values, strict=True))


def register() -> None:
    """Let `mabwiser.simulator.Simulator` accept a MetaMAB as one of its own bandits."""
    with needs("mabwiser"):
        from mabwiser.base_mab import BaseMAB
    BaseMAB.register(MetaMAB)


class MABContestant:
    """A context-free MAB of MABWiser, for `metabandit.evaluate_external`.

    MABWiser needs past decisions to begin with: each arm is played once before it is asked.

        evaluate_external(
            lambda episode: MABContestant(
                MAB(list(range(episode.arms)), LearningPolicy.UCB1(alpha=1), seed=episode.seed)
            ),
            prior, horizon, beside="ucb1",
        )
    """

    def __init__(self, mab: Any) -> None:
        self.mab = mab
        self._untried = list(mab.arms)

    def select(self) -> Any:
        return self._untried.pop(0) if self._untried else self.mab.predict()

    def update(self, arm: int, reward: float) -> None:
        self.mab.partial_fit(np.array([arm]), np.array([reward]))
