"""How policies would have done, from a log of plays that were made at random.

Rejection sampling (Li, Chu, Langford, Wang 2011): a policy selects an arm, and the log is gone through
to the next play of that arm, whose reward the policy is given; the plays between are not used. In a
log of random plays that reward is a fresh draw of the arm, so the policy meets what it would have met
live. Episodes are replayed one after the other, on parts of the log that do not overlap: they are
independent, and their spread gives the interval.
"""

from __future__ import annotations

import csv
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError
from .play import ArmName, check_arm
from .policies import Policy, policy
from .settings import check_horizon, check_seed, is_number, read_number

__all__ = ["Log", "Replay", "Replayed", "read_log", "replay"]

# A log of random plays is less even than this in one of a thousand.
_UNEVEN = 1e-3
_FEW = 10
_NAMES = ("arm", "reward")


@dataclass(frozen=True)
class Log:
    """Plays in their order: the arm of each, and its reward."""

    name: str
    arms: tuple[ArmName, ...]
    rewards: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.arms)


@dataclass(frozen=True)
class Replayed:
    """A policy's replay.

    episodes: how many whole ones the log allowed; used: of the plays gone through for them, the share
        that counted
    reward: the mean of an episode, with standard error and 95 % interval; None where there is none
    """

    policy: str
    episodes: int
    plays: int
    used: float
    reward: float | None
    standard_error: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Replay:
    """What a log tells of policies; the best come first.

    chance: the mean reward of the log's own plays; best_arm: its best arm, and the mean of that
    uneven: how likely a log of random plays is that uneven
    """

    log: str
    plays: int
    arms: int
    horizon: int
    seed: int
    chance: float
    best_arm: tuple[ArmName, float]
    uneven: float
    policies: tuple[Replayed, ...]

    def warnings(self) -> list[str]:
        """What keeps the figures from being trusted, in plain words."""
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
        """The table, as text."""
        table = []
        for item in self.policies:
            known = item.reward is not None
            table.append(
                {
                    "policy": item.policy,
                    "reward": f"{item.reward:.5g}" if known else "-",
                    "95 % interval": "-"
                    if item.interval is None
                    else f"{item.interval[0]:.5g} to {item.interval[1]:.5g}",
                    "a play": f"{item.reward / self.horizon:.4g}"
                    if item.reward is not None
                    else "-",
                    "episodes": str(item.episodes),
                }
            )
        arm, mean = self.best_arm
        for name, each in (("any arm (the log itself)", self.chance), (f"always {arm}", mean)):
            table.append(
                {
                    "policy": name,
                    "reward": f"{each * self.horizon:.5g}",
                    "95 % interval": "",
                    "a play": f"{each:.4g}",
                    "episodes": "",
                }
            )
        return table

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self) | {"warnings": self.warnings()}


def read_log(path: str | Path) -> Log:
    """A log from a CSV file: columns `arm` and `reward` (others are ignored), or two without titles."""
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read_rows(path, csv.reader(file))
    except FileNotFoundError:
        raise InputError(f"the file {path} does not exist") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the file {path} cannot be read as CSV: {error}") from None


def _read_rows(path: Path, rows: Any) -> Log:
    columns: tuple[int, int] | None = None
    arms: list[ArmName] = []
    rewards: list[float] = []
    for cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        where = f"{path}, line {rows.line_num}"
        if columns is None:
            titles = [cell.strip().lower() for cell in cells]
            if all(name in titles for name in _NAMES):
                columns = titles.index("arm"), titles.index("reward")
                continue
            if len(cells) != 2 or not is_number(cells[1]):
                raise InputError(
                    f"{where}: a log has the columns arm and reward, in the first line by name and with "
                    f"commas between; here are: {', '.join(cells)[:200]}"
                )
            columns = 0, 1
        if len(cells) <= max(columns):
            raise InputError(f"{where}: there is no {_NAMES[columns.index(max(columns))]}")
        arm = cells[columns[0]].strip()
        if not arm:
            raise InputError(f"{where}: the arm is missing")
        arms.append(arm)
        rewards.append(read_number(cells[columns[1]], f"{where}: the reward"))
    if not arms:
        raise InputError(f"{path} holds no play; a line has an arm and its reward")
    return Log(str(path), tuple(arms), tuple(rewards))


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


def replay(
    log: str | Path | Log | Iterable[tuple[ArmName, float]],
    policies: str | Path | Policy | Sequence[str | Path | Policy],
    *,
    horizon: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Replay:
    """Estimate how policies would have done, from a log of uniformly random plays.

    log: a CSV file with the columns arm and reward, or pairs (arm, reward), in their order
    horizon: plays of an episode; by default that of the first policy that was learned for one
    progress: called as progress(plays of the log gone through, for all policies)

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
    given: list[str | Path | Policy]
    if isinstance(policies, (str, Path, Policy)):
        given = [policies]
    elif isinstance(policies, Iterable):
        given = list(policies)
    else:
        raise InputError(f"a policy is a text or a Policy, not {policies!r}")
    if not given:
        raise InputError("there is no policy to replay; give one or more")
    made = [policy(item) for item in given]
    horizon = _find_horizon(made) if horizon is None else check_horizon(horizon)
    seed = check_seed(seed)
    names = sorted(set(known.arms), key=str)
    if len(names) < 2:
        raise InputError(f"{known.name} has one arm only, {names[0]!r}: there is nothing to choose")
    places: dict[ArmName, list[int]] = {name: [] for name in names}
    for place, arm in enumerate(known.arms):
        places[arm].append(place)
    rewards = np.array(known.rewards)
    range_of = _range(rewards)
    results = []
    for number, item in enumerate(made):

        def tell(done: int, number: int = number) -> None:
            if progress is not None:
                progress(number * len(known) + done, len(made) * len(known))

        results.append(_replay_one(item, known, places, range_of, horizon, seed, tell))
    results.sort(key=lambda item: -math.inf if item.reward is None else item.reward, reverse=True)
    means = {name: float(rewards[each].mean()) for name, each in places.items()}
    best = max(means, key=lambda name: means[name])
    return Replay(
        log=known.name,
        plays=len(known),
        arms=len(names),
        horizon=horizon,
        seed=seed,
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


def _range(rewards: np.ndarray[Any, Any]) -> object:
    """What rewards there are, for policies that were not learned for any."""
    if np.isin(rewards, (0.0, 1.0)).all():
        return "binary"
    inside = rewards.min() >= 0.0 and rewards.max() <= 1.0
    return (0.0, 1.0) if inside else (None, None)


def _replay_one(
    item: Policy,
    log: Log,
    places: dict[ArmName, list[int]],
    range_of: object,
    horizon: int,
    seed: int,
    tell: Callable[[int], None],
) -> Replayed:
    totals: list[float] = []
    at = 0
    counted = 0
    arms = list(places)
    while True:
        player = item.player(
            arms,
            seed=seed + len(totals),
            horizon=horizon,
            rewards=None if item.learned is not None else range_of,
        )
        total = 0.0
        for _ in range(horizon):
            arm = player.select()
            mine = places[arm]
            position = bisect_left(mine, at)
            if position == len(mine):
                break
            at = mine[position] + 1
            reward = log.rewards[at - 1]
            try:
                player.update(arm, reward)
            except InputError:
                allowed = player.rewards
                kind = "0 or 1" if allowed.binary else f"{allowed.low:g} to {allowed.high:g}"
                raise InputError(
                    f"{log.name}, play {at}: {item.name} is for rewards of {kind}, not {reward:g}; scale "
                    f"the rewards of the log, or choose another policy"
                ) from None
            total += reward
        else:
            totals.append(total)
            counted = at
            tell(at)
            continue
        break
    return _summary(item.name, totals, horizon, counted)


def _summary(name: str, totals: list[float], horizon: int, counted: int) -> Replayed:
    episodes = len(totals)
    used = episodes * horizon / counted if counted else 0.0
    if not episodes:
        return Replayed(name, 0, 0, 0.0, None, None, None)
    mean = float(np.mean(totals))
    if episodes == 1:
        return Replayed(name, 1, horizon, used, mean, None, None)
    from scipy.special import stdtrit

    error = float(np.std(totals, ddof=1)) / math.sqrt(episodes)
    half = float(stdtrit(episodes - 1, 0.975)) * error
    return Replayed(
        name, episodes, episodes * horizon, used, mean, error, (mean - half, mean + half)
    )


def _unevenness(counts: Sequence[int]) -> float:
    """The chance that random plays are as uneven (chi-squared test)."""
    from scipy.special import chdtrc

    expected = sum(counts) / len(counts)
    return float(chdtrc(len(counts) - 1, sum((c - expected) ** 2 / expected for c in counts)))
