"""Problems of a prior as a Gymnasium environment, and our policies as players of any environment.

Importing this registers `metabandit/Bandit-v0`, so that
`gymnasium.make("metabandit.adapters.gymnasium:metabandit/Bandit-v0")` needs no import at all.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine.external import EpisodeRewards
from ..engine.precision import Precision
from ..errors import InputError
from ..policies import Policy
from ..policies import policy as read_policy
from ..priors import Prior, read_prior
from ..priors.families import Array
from ..settings import check_horizon, check_seed, check_whole
from .base import needs

with needs("gymnasium"):
    import gymnasium
    from gymnasium.spaces import Box, Dict, Discrete

ID = "metabandit/Bandit-v0"


class BanditEnv(gymnasium.Env):
    """An environment whose episodes are problems drawn from a prior and end after `horizon` plays.

    An action is an arm. An observation has the "plays" and "means" of each arm's rewards so far (an arm
    that was never played has mean 0, or the smallest reward if that is greater), and the share of plays
    that are "left". The info has the true "means" of the arms and, after a play, its "regret" and the
    "total_regret" so far.

    `reset(seed=...)` fixes the problems and the rewards: copies of an environment pay the same for the
    same pull of an arm, whatever was played in between.

    Parameters
    ----------
    prior
        A `Prior`, or its text, with the number of `arms`.
    horizon
        The number of plays per episode.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own)

    def __init__(
        self, prior: str | Prior, horizon: int, *, arms: int | None = None, render_mode: None = None
    ) -> None:
        self.prior = read_prior(prior, arms=arms)
        if render_mode is not None:
            raise InputError(
                f"there is nothing to render; render_mode must be None, not {render_mode!r}"
            )
        self.horizon = check_horizon(horizon)
        self.render_mode = None
        low, high = self.prior.family.support
        shape = (self.prior.arms,)
        self.action_space = Discrete(self.prior.arms)
        self.observation_space = Dict(
            {
                "plays": Box(0.0, float(self.horizon), shape, np.float32),
                "means": Box(_outward(low, -math.inf), _outward(high, math.inf), shape, np.float32),
                "left": Box(0.0, 1.0, (1,), np.float32),
            }
        )
        self._unplayed = max(low, 0.0) if high >= 0.0 else low
        self._rewards: EpisodeRewards | None = None
        self._kind = Precision.of(self.prior, self.horizon).kind()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        parameters = np.asarray(self.prior.draw(self.np_random, 1), dtype=np.float64)
        seed = int(self.np_random.integers(2**63))
        self._rewards = EpisodeRewards(self.prior.family, parameters[0], seed, kind=self._kind)
        self._means = np.asarray(self.prior.regret_means(parameters)[0], dtype=np.float64)
        self._plays = np.zeros(self.prior.arms)
        self._sums = np.zeros(self.prior.arms)
        self._made = 0
        self._regret = 0.0
        return self._observation(), {"means": self._means.copy()}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        if self._rewards is None or self._made >= self.horizon:
            raise InputError("there is no episode to play; call reset first")
        if not self.action_space.contains(action):
            raise InputError(f"an action is an arm from 0 to {self.prior.arms - 1}, not {action!r}")
        arm = operator.index(action)
        reward = self._rewards.reward(arm, int(self._plays[arm]))
        self._plays[arm] += 1
        self._sums[arm] += reward
        self._made += 1
        regret = float(self._means.max() - self._means[arm])
        self._regret += regret
        info = {"means": self._means.copy(), "regret": regret, "total_regret": self._regret}
        return self._observation(), reward, self._made == self.horizon, False, info

    def _observation(self) -> dict[str, Any]:
        played = self._plays > 0
        means = np.where(played, self._sums / np.maximum(self._plays, 1.0), self._unplayed)
        space = self.observation_space["means"]
        return {
            "plays": self._plays.astype(np.float32),
            # The mean of many rewards at the end of the range may lie beyond it in the last digit.
            "means": np.clip(means.astype(np.float32), space.low, space.high),
            "left": np.array([1.0 - self._made / self.horizon], np.float32),
        }


def _outward(bound: float, direction: float) -> float:
    """Round a bound to float32, away from the interval."""
    near = np.float32(bound)
    inside = near > bound if direction < 0.0 else near < bound
    return float(np.nextafter(near, np.float32(direction)) if inside else near)


def register() -> None:
    """Register the environment as `metabandit/Bandit-v0`; importing this file does it.

    It has two Bernoulli arms and 100 plays, unless `gymnasium.make` is told otherwise.
    """
    if ID not in gymnasium.registry:
        gymnasium.register(
            ID,
            entry_point="metabandit.adapters.gymnasium:BanditEnv",
            kwargs={"prior": "bernoulli", "horizon": 100},
        )


register()


@dataclass(frozen=True, eq=False)
class EnvPlay:
    """The rewards of a policy in each episode of an environment, and its regrets if they are known."""

    policy: str
    rewards: Array = field(repr=False)
    regrets: Array | None = field(repr=False)

    @property
    def mean_reward(self) -> float:
        return float(self.rewards.mean())

    @property
    def reward_error(self) -> float:
        """The standard error of `mean_reward`."""
        return _error(self.rewards)

    @property
    def mean_regret(self) -> float:
        return math.nan if self.regrets is None else float(self.regrets.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of `mean_regret`."""
        return math.nan if self.regrets is None else _error(self.regrets)


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def play_env(
    policy: str | Policy,
    env: Any,
    *,
    episodes: int = 100,
    seed: int = 0,
    horizon: int | None = None,
    prior: str | Prior | None = None,
    rewards: object = None,
) -> EnvPlay:
    """Let a policy play an environment whose actions are arms, with a new player per episode.

    Parameters
    ----------
    policy
        A name of the catalogue, an expression, or a policy such as `metabandit.load` returns.
    env
        An environment with a Discrete action space; a `BanditEnv` also gives its horizon and prior.
    episodes, seed
        How many episodes to play, and the seed of environment and player.
    horizon, prior, rewards
        As for `Policy.player`.
    """
    if not isinstance(env.action_space, Discrete):
        raise InputError(f"the actions must be arms, a Discrete space; not {env.action_space}")
    inner = env.unwrapped
    if isinstance(inner, BanditEnv):
        horizon = inner.horizon if horizon is None else horizon
        prior = inner.prior if prior is None else prior
    first = int(env.action_space.start)
    arms = range(first, first + int(env.action_space.n))
    made = read_policy(policy)
    episodes = check_whole(episodes, "the number of episodes", 1)
    check_seed(seed)
    seeds = np.random.SeedSequence(seed).generate_state(episodes, np.uint32)
    totals, regrets = np.zeros(episodes), np.full(episodes, np.nan)
    for episode, each in enumerate(seeds.tolist()):
        player = made.player(arms, seed=each, horizon=horizon, prior=prior, rewards=rewards)
        env.reset(seed=each)
        ended, info = False, {}
        while not ended:
            arm = player.select()
            _, reward, terminated, truncated, info = env.step(arm)
            player.update(arm, float(reward))
            totals[episode] += float(reward)
            ended = terminated or truncated
        regrets[episode] = info.get("total_regret", math.nan)
    return EnvPlay(made.name, totals, None if np.isnan(regrets).any() else regrets)
