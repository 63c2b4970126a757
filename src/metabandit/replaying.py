"""How policies would have done, estimated from a log of plays that were made at random.

Rejection sampling (Li, Chu, Langford, Wang 2011): a policy selects an arm and receives the reward of
the next play of that arm in the log; the plays in between are skipped. In a log of random plays that
reward is a fresh draw of the arm, so the policy sees what it would have seen live. Episodes use
successive parts of the log: their total rewards X_1, ..., X_m are independent, and

    mean X +- t(m - 1, 0.975) sd(X) / sqrt(m)

is the reward of an episode with its 95 % interval. Whether the arms were played evenly, n_k times each
of n in all, is checked by Pearson's test: sum_k (n_k - n/K)^2 / (n/K) is chi-squared with K - 1
degrees of freedom.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError
from .feedback import Feedback
from .play import ArmName, check_arm
from .policies import Policy, policy
from .progress import Told, with_progress
from .settings import check_horizon, check_seed, read_number
from .sheets import read_sheet
from .showing import Shown

__all__ = ["Log", "Replay", "Replayed", "read_log", "replay"]

# A smaller chance of being that uneven means that the plays were hardly random.
_UNEVEN = 1e-3
_FEW = 10


@dataclass(frozen=True, repr=False)
class Log(Shown):
    """Plays in order: the arm of each, and its reward."""

    name: str
    arms: tuple[ArmName, ...]
    rewards: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.arms)

    def headline(self) -> str:
        return f"{self.name}: {len(self):,} plays of {len(set(self.arms))} arms"

    def records(self) -> list[dict[str, Any]]:
        """The plays in order."""
        return [
            {"arm": arm, "reward": reward}
            for arm, reward in zip(self.arms, self.rewards, strict=True)
        ]


@dataclass(frozen=True)
class Replayed:
    """The replay of a policy.

    Attributes
    ----------
    episodes
        The number of whole episodes that the log allowed.
    plays
        Their plays.
    used
        The share of the log's plays that counted, of those that were passed.
    reward, standard_error, interval
        The mean reward per episode, with standard error and 95 % interval; None if unknown.
    """

    policy: str
    episodes: int
    plays: int
    used: float
    reward: float | None
    standard_error: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, repr=False)
class Replay(Shown):
    """What a log says about policies, the best first.

    Attributes
    ----------
    chance
        The mean reward of the log's own plays.
    best_arm
        The log's best arm, and its mean reward.
    uneven
        The probability that random plays are at least as uneven as the log's.
    """

    log: str
    plays: int
    arms: int
    horizon: int
    seed: int
    feedback: Feedback
    chance: float
    best_arm: tuple[ArmName, float]
    uneven: float
    policies: tuple[Replayed, ...]

    def headline(self) -> str:
        best = self.policies[0]
        reward = "" if best.reward is None else f"; best: {best.policy} (reward {best.reward:.5g})"
        return (
            f"of {self.log}: {self.plays:,} plays of {self.arms} arms, {self.horizon} plays per "
            f"episode{reward}"
        )

    def records(self) -> list[dict[str, Any]]:
        """Numbers of each policy, best first."""
        found = []
        for item in self.policies:
            low, high = item.interval or (None, None)
            per_play = None if item.reward is None else item.reward / self.horizon
            record = asdict(item) | {"low": low, "high": high, "reward_per_play": per_play}
            del record["interval"]
            found.append(record)
        return found

    def remarks(self) -> list[str]:
        return self.warnings()

    def plot(self, axes: Any = None) -> Any:
        """Draw the reward of each policy with its 95 % interval; returns matplotlib's axes."""
        from .drawing import intervals, plot_axes

        axes = plot_axes(axes, height=1.2 + 0.35 * len(self.policies))
        rows = [(item.policy, item.reward, item.interval) for item in self.policies]
        known = [(name, reward, ends) for name, reward, ends in rows if reward is not None]
        intervals(axes, {"": known}, x=f"reward of {self.horizon} plays")
        return axes

    def warnings(self) -> list[str]:
        """Return the reasons not to trust the figures."""
        found = []
        wanted = self.arms * self.horizon
        least = min(item.episodes for item in self.policies)
        if least < 2:
            found.append(
                f"The log is too short: an episode of {self.horizon} plays takes about {wanted:,} of its "
                f"plays, and it has {self.plays:,}. Two episodes give an interval, thirty a useful one: "
                f"log about {30 * wanted:,} plays, or choose a shorter --horizon"
            )
        elif least < _FEW:
            found.append(
                f"Only {least} episodes fit in the log, so the intervals are wide: thirty take about "
                f"{30 * wanted:,} plays"
            )
        if self.uneven < _UNEVEN:
            found.append(
                "The arms of the log were not played evenly, as uniformly random plays are (chance of "
                f"that: {self.uneven:.1g}), and these figures are right for such a log only. If earlier "
                "rewards had a say in which arm was played, they are wrong"
            )
        return found

    def rows(self) -> list[dict[str, str]]:
        """Return the table, as text."""
        arm, mean = self.best_arm
        table: list[tuple[str, float | None, str, str]] = []
        for item in self.policies:
            low, high = item.interval or (None, None)
            shown = "-" if low is None else f"{low:.5g} to {high:.5g}"
            table.append((item.policy, item.reward, shown, str(item.episodes)))
        table.append(("any arm (the log itself)", self.chance * self.horizon, "", ""))
        table.append((f"always {arm}", mean * self.horizon, "", ""))
        return [
            {
                "policy": name,
                "reward": "-" if reward is None else f"{reward:.5g}",
                "95 % interval": interval,
                "a play": "-" if reward is None else f"{reward / self.horizon:.4g}",
                "episodes": episodes,
            }
            for name, reward, interval, episodes in table
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return asdict(self) | {"warnings": self.warnings()}


def read_log(path: str | Path) -> Log:
    """Read a log from a CSV file.

    Parameters
    ----------
    path
        A file with the columns `arm` and `reward` (others are ignored), or two columns without titles.

    Returns
    -------
    Log
        The plays, in order.
    """
    sheet = read_sheet(path)
    titles = [title.lower() for title in sheet.titles]
    if "arm" in titles and "reward" in titles:
        arm, reward = titles.index("arm"), titles.index("reward")
    elif sheet.width == 2 and not titles:
        arm, reward = 0, 1
    elif sheet.width:
        shown = ", ".join(sheet.titles or sheet.rows[0])[:200]
        raise InputError(
            f"{path}: a log has the columns arm and reward, by name in its first line; here are: {shown}"
        )
    if not sheet.rows:
        raise InputError(f"{path} holds no play; a line has an arm and its reward")
    rows = range(len(sheet.rows))
    return Log(
        str(path),
        tuple(sheet.text(row, arm, "every play needs its arm") for row in rows),
        tuple(sheet.number(row, reward, "every play needs its reward") for row in rows),
    )


def _read(log: str | Path | Log | Iterable[tuple[ArmName, float]]) -> Log:
    if isinstance(log, Log):
        return log
    if isinstance(log, (str, Path)):
        return read_log(log)
    if not isinstance(log, Iterable):
        raise InputError(f"a log is a CSV file, or pairs (arm, reward), not {log!r}")
    pairs = list(log)
    if not pairs or any(not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in pairs):
        raise InputError("a log is a CSV file, or pairs (arm, reward), at least one")
    arms = tuple(check_arm(arm) for arm, _ in pairs)
    return Log("the log", arms, tuple(read_number(item, "a reward") for _, item in pairs))


@with_progress("replaying")
def replay(
    log: str | Path | Log | Iterable[tuple[ArmName, float]],
    policies: str | Path | Policy | Sequence[str | Path | Policy],
    *,
    horizon: int | None = None,
    seed: int = 0,
    feedback: Feedback | Mapping[str, Any] | None = None,
    progress: Told = None,
) -> Replay:
    """Estimate how policies would have done, from a log of uniformly random plays.

    Parameters
    ----------
    log
        A CSV file with the columns arm and reward, or pairs (arm, reward), in order.
    policies
        One policy or several: names, expressions, policy files or policies.
    horizon
        The number of plays per episode; by default that of the first learned policy.
    seed
        The seed of policies that play at random.
    feedback
        When rewards become known; immediately by default.
    progress
        Called as progress(plays of the log passed, plays for all policies); a bar by default, False for
        none.

    Returns
    -------
    Replay
        The rewards of the policies, the best first, and warnings.

    Examples
    --------
    >>> import metabandit as mb
    >>> import random
    >>> rng = random.Random(1)
    >>> arms = [rng.choice("ab") for _ in range(4000)]
    >>> log = [(arm, rng.random() < {"a": 0.3, "b": 0.6}[arm]) for arm in arms]
    >>> found = mb.replay(log, ["ucb1-tuned", "uniform"], horizon=100)
    >>> found.policies[0].policy, found.policies[0].episodes
    ('ucb1-tuned', 19)
    """
    known = _read(log)
    several = isinstance(policies, Iterable) and not isinstance(policies, str)
    given: list[Any] = list(policies) if several else [policies]  # type: ignore[arg-type]
    made = [policy(item) for item in given]
    if not made:
        raise InputError("there is no policy to replay; give one or more")
    horizon = _find_horizon(made) if horizon is None else check_horizon(horizon)
    seed = check_seed(seed)
    asked = Feedback.read(feedback)
    asked.check(len(set(known.arms)), horizon)
    places: dict[ArmName, list[int]] = {name: [] for name in sorted(set(known.arms), key=str)}
    if len(places) < 2:
        raise InputError(
            f"{known.name} has one arm only, {known.arms[0]!r}: there is nothing to choose"
        )
    for place, arm in enumerate(known.arms):
        places[arm].append(place)
    results = []
    for number, item in enumerate(made):
        totals, passed = [], 0
        for total, passed in _episodes(item, known, places, horizon, seed, asked):
            totals.append(total)
            if progress is not None:
                progress(number * len(known) + passed, len(made) * len(known))
        results.append(_summary(item.name, totals, horizon, passed))
    results.sort(key=lambda item: -math.inf if item.reward is None else item.reward, reverse=True)
    rewards = np.array(known.rewards)
    means = {name: float(rewards[each].mean()) for name, each in places.items()}
    best = max(means, key=lambda name: means[name])
    return Replay(
        log=known.name,
        plays=len(known),
        arms=len(places),
        horizon=horizon,
        seed=seed,
        feedback=asked,
        chance=float(rewards.mean()),
        best_arm=(best, means[best]),
        uneven=_unevenness([len(each) for each in places.values()]),
        policies=tuple(results),
    )


def _find_horizon(policies: Sequence[Policy]) -> int:
    for item in policies:
        if item.learned is not None:
            return item.learned.horizon
    raise InputError(
        "none of the policies was learned for a number of plays, so say how many an episode has: "
        "--horizon 100"
    )


def _range(rewards: Sequence[float]) -> object:
    """Return the rewards there are, for policies that were not learned for any."""
    if all(reward in (0.0, 1.0) for reward in rewards):
        return "binary"
    return (0.0, 1.0) if min(rewards) >= 0.0 and max(rewards) <= 1.0 else (None, None)


def _episodes(
    item: Policy,
    log: Log,
    places: dict[ArmName, list[int]],
    horizon: int,
    seed: int,
    feedback: Feedback,
) -> Iterator[tuple[float, int]]:
    """Yield the total reward of each whole episode, and the plays of the log passed by its end.

    `places` holds the positions of each arm's plays in the log.
    """
    rewards = None if item.learned is not None else _range(log.rewards)
    at, ends = 0, feedback.ends(horizon)
    for episode in count():
        player = item.player(
            list(places), seed=seed + episode, horizon=horizon, rewards=rewards,
            min_share=feedback.min_share, pending=feedback.pending,
        )  # fmt: skip
        late = random.Random(seed + episode)
        due: dict[int, list[tuple[ArmName, float]]] = {}
        total = 0.0
        for made in range(1, horizon + 1):
            arm = player.select()
            mine = places[arm]
            position = bisect_left(mine, at)
            if position == len(mine):
                return
            at = mine[position] + 1
            reward = log.rewards[at - 1]
            when = feedback.comes_after(made, ends, 1.0 - late.random())
            due.setdefault(when, []).append((arm, reward))
            try:
                player.update_many(due.pop(made, ()))
            except InputError:
                allowed = player.rewards
                kind = "0 or 1" if allowed.binary else f"{allowed.low:g} to {allowed.high:g}"
                raise InputError(
                    f"{log.name}, play {at}: {item.name} is for rewards of {kind}, not {reward:g}; scale "
                    f"the rewards of the log, or choose another policy"
                ) from None
            total += reward
        yield total, at


def _summary(name: str, totals: list[float], horizon: int, passed: int) -> Replayed:
    episodes, plays = len(totals), len(totals) * horizon
    if not episodes:
        return Replayed(name, 0, 0, 0.0, None, None, None)
    used, mean = plays / passed, float(np.mean(totals))
    if episodes == 1:
        return Replayed(name, 1, plays, used, mean, None, None)
    from scipy.special import stdtrit

    error = float(np.std(totals, ddof=1)) / math.sqrt(episodes)
    half = float(stdtrit(episodes - 1, 0.975)) * error
    return Replayed(name, episodes, plays, used, mean, error, (mean - half, mean + half))


def _unevenness(counts: Sequence[int]) -> float:
    """Return the p-value of Pearson's chi-squared test that arms are played evenly."""
    from scipy.special import chdtrc

    expected = sum(counts) / len(counts)
    return float(chdtrc(len(counts) - 1, sum((c - expected) ** 2 / expected for c in counts)))
