"""Our policies with river's interface, and river's policies on our problems."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from types import SimpleNamespace
from typing import Any

from ..engine import Comparison, Episode, evaluate_external
from ..errors import InputError
from ..play import ArmName
from ..policies import Policy
from ..policies import policy as read_policy
from ..priors import Prior
from .base import LatePlayer, needs

with needs("river"):
    from river import bandit, stats


class RiverPolicy(bandit.base.Policy):
    """A policy of metabandit as a bandit policy of river.

    Arms that appear in `pull` are added; arms that are no longer offered rest until they come back. A
    pull without a reward, as in `bandit.evaluate_offline`, does not count.

    Parameters
    ----------
    policy
        A name of the catalogue, an expression, or a policy such as `metabandit.load` returns.
    seed
        Random number generator seed for reproducibility.
    horizon
        The number of plays, for policies that read it; a learned policy has its own.
    rewards
        `"binary"` for 0 and 1, or a range such as (0, 1); other rewards are refused.
    prior
        What is known about the arms, for policies that need it.
    reward_obj
        What `ranking` and the printed table show; the policy itself uses the rewards.
    reward_scaler
        As for river's policies: the policy learns from scaled rewards, so `rewards` must fit them.
    burn_in
        The number of pulls of each arm before the policy is asked.
    """

    def __init__(
        self,
        policy: str | Policy,
        *,
        seed: int | None = None,
        horizon: int | None = None,
        rewards: Any = None,
        prior: str | Prior | None = None,
        reward_obj: Any = None,
        reward_scaler: Any = None,
        burn_in: int = 0,
    ) -> None:
        super().__init__(reward_obj=reward_obj, reward_scaler=reward_scaler, burn_in=burn_in)
        self.policy = policy
        self.seed = seed
        self.horizon = horizon
        self.rewards = rewards
        self.prior = prior
        # As usual in river, no seed means another sequence of choices each time.
        chosen = random.SystemRandom().getrandbits(63) if seed is None else seed
        self._player = LatePlayer(
            policy, seed=chosen, horizon=horizon, rewards=rewards, prior=prior
        )

    def _pull(self, arm_ids: Sequence[ArmName]) -> ArmName:
        return self._player.pull(arm_ids)

    def update(self, arm_id: ArmName, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Count a reward, one number.

        Parameters
        ----------
        arm_id
            The arm to update.
        reward_args
            The reward.
        """
        if len(reward_args) != 1 or reward_kwargs:
            raise InputError(
                f"a reward is one number: update(arm, reward), not {reward_args} {reward_kwargs}"
            )
        reward = reward_args[0]
        if self.reward_scaler is None:
            # Before river counts it, so that a reward that is refused changes nothing.
            self._player.check(reward)
        super().update(arm_id, reward)
        if self.reward_scaler is not None:
            reward = self.reward_scaler.func(reward)
        self._player.update(arm_id, reward)

    def __repr__(self) -> str:
        # River's table cannot be printed before the first reward.
        return str(super().__repr__()) if self._rewards else _name(self)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"policy": "ucb1"}
        yield {"policy": "thompson", "rewards": "binary"}

    def _unit_test_skips(self) -> set[str]:
        # Tags belong to river's estimators; none of its bandit policies has any.
        return {"check_tags"}


def _make(policy: Any, episode: Episode) -> Any:
    """Clone a river policy for an episode."""
    made = policy.clone({"seed": episode.seed} if hasattr(policy, "seed") else None)
    select = partial(made.pull, list(range(episode.arms)))
    return SimpleNamespace(select=select, update=made.update)


def _name(given: Any) -> str:
    """Return the class and its settings but the seed; river prints a policy as a table of its arms."""
    defaults = {key: item.default for key, item in signature(type(given)).parameters.items()}
    values = {key: getattr(given, key, None) for key in defaults if key != "seed"}
    shown = []
    for key, value in values.items():
        plain = isinstance(value, (str, int, float, Policy))
        if plain and value != defaults[key]:
            shown.append(f"{key}={value}")
        elif not plain and value is not None and type(value) is not stats.Mean:
            shown.append(f"{key}={type(value).__name__}")
    return f"{type(given).__name__}({', '.join(shown)})"


def _read_policies(given: Any) -> tuple[dict[str, Any], list[str | Policy]]:
    """Return river's policies by name, and ours."""
    if isinstance(given, Mapping):
        named = list(given.items())
    elif isinstance(given, (str, Policy, bandit.base.Policy)) or not isinstance(given, Sequence):
        named = [(None, given)]
    else:
        named = [(None, item) for item in given]
    theirs: dict[str, Any] = {}
    ours: list[str | Policy] = []
    for name, item in named:
        if isinstance(item, bandit.base.ContextualPolicy):
            raise InputError(
                f"{type(item).__name__} needs a context, which these problems have not"
            )
        if isinstance(item, (str, Policy)) and name is None:
            ours.append(read_policy(item))
        elif isinstance(item, bandit.base.Policy):
            name = _name(item) if name is None else str(name)
            if name in theirs:
                raise InputError(
                    f"two policies are {name}; name them: {{'first': ..., 'second': ...}}"
                )
            theirs[name] = item
        else:
            raise InputError(
                f"a policy of river was expected, such as bandit.UCB(delta=1), not {item!r}"
            )
    if not theirs:
        raise InputError("no policy of river was given; metabandit's alone are for evaluate")
    return theirs, ours


def evaluate_river(
    policies: Any,
    prior: Prior,
    horizon: int,
    *,
    episodes: int = 1000,
    seed: int = 0,
    floor: bool | None = None,
) -> Comparison:
    """Return the regret of river's policies on the problems and rewards of `metabandit.evaluate`.

    Parameters
    ----------
    policies
        A policy of river, a list, or a dict by name. A list may also hold our policies: they play the
        same episodes in the simulator and come last.
    prior, horizon, episodes, seed, floor
        As in `metabandit.evaluate`. A policy plays each episode as a clone with the episode's seed.
    """
    theirs, ours = _read_policies(policies)
    return evaluate_external(
        {name: partial(_make, item) for name, item in theirs.items()},
        prior,
        horizon,
        beside=ours,
        episodes=episodes,
        seed=seed,
        floor=floor,
    )
