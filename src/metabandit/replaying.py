"""How policies would have done, estimated from a log of plays that were made at random.

Rejection sampling (Li, Chu, Langford, Wang 2011): a policy selects an arm and receives the reward of
the next play of that arm in the log; the plays in between are skipped. In a log of random plays that
reward is a fresh draw of the arm, so the policy sees what it would have seen live. Episodes use
successive parts of the log: their total rewards X_1, ..., X_m are independent, and

    mean X +- t(m - 1, 0.975) sd(X) / sqrt(m)

is the reward of an episode with its 95 % interval.

If the arms were not chosen with equal probabilities, but with known ones, of which none was below c, the log is
thinned first: a play whose arm was chosen with probability p is kept with probability c / p. Then each arm
is the next that is kept with probability c, whatever came before, and what is kept is a log of uniformly random plays,
also if the logger learned from its rewards. (Without this, how long an episode is, and hence which episodes are
whole at the end of the log, would depend on rewards.) It takes 1/c plays of the log per play of a policy. That no arm ever
had less than c can be said by the logger only (its min_share); by default c is the smallest probability in the log.

Whether the arms that are kept were played evenly, n_k times each of n in all, is checked by Pearson's
test, in quarters of the log: sum_k (n_k - n/K)^2 / (n/K) is chi-squared with K - 1 degrees of freedom in each.

What fixed shares of the arms are worth is estimated in offpolicy.py.
"""

from __future__ import annotations

import math
import random
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError, about
from .feedback import Feedback
from .logs import Log, make_log, read_log
from .offpolicy import CERTAIN, DR, Estimate, check_shares, estimate
from .play import ArmName
from .policies import Policy, read_policies
from .progress import Told, with_progress
from .settings import check_horizon, check_seed, read_number
from .showing import Shown

__all__ = ["Estimate", "Log", "Replay", "Replayed", "read_log", "replay"]

# A smaller chance of being that uneven means that the plays were hardly random.
_UNEVEN = 1e-3
_FEW = 10
# Plays of each arm in each quarter of the log that the test of evenness wants.
_EXPECTED = 10


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
        The log's best arm, and its mean reward there.
    least
        The probability that each arm had at least at every play of the log; None if no policy was replayed.
    uneven
        The probability that random plays are at least as uneven as those that were kept of the log.
    estimates
        What each arm, all arms alike and given shares are worth per play, if the log has probabilities.
    """

    log: str
    plays: int
    arms: int
    horizon: int | None
    seed: int
    feedback: Feedback
    chance: float
    best_arm: tuple[ArmName, float]
    least: float | None
    uneven: float | None
    policies: tuple[Replayed, ...]
    estimates: tuple[Estimate, ...] = ()
    notes: tuple[str, ...] = ()

    def headline(self) -> str:
        plays = f"of {self.log}: {self.plays:,} plays of {self.arms} arms"
        if not self.policies:
            return plays
        best = self.policies[0]
        reward = "" if best.reward is None else f"; best: {best.policy} (reward {best.reward:.5g})"
        return f"{plays}, {self.horizon} plays per episode{reward}"

    def records(self) -> list[dict[str, Any]]:
        """Numbers of each policy, best first; without policies, of each estimate."""
        found = []
        for item in self.policies or self.estimates:
            low, high = item.interval or (None, None)
            record = asdict(item) | {"low": low, "high": high}
            if isinstance(item, Replayed):
                assert self.horizon is not None
                per_play = None if item.reward is None else item.reward / self.horizon
                record["reward_per_play"] = per_play
            del record["interval"]
            found.append(record)
        return found

    def remarks(self) -> list[str]:
        return self.warnings()

    def plot(self, axes: Any = None) -> Any:
        """Draw the reward of each policy, or else the worth of each target, with its 95 % interval.

        Returns matplotlib's axes.
        """
        from .drawing import intervals, plot_axes

        known = [
            (item.policy, item.reward, item.interval)
            for item in self.policies
            if item.reward is not None
        ]
        label = f"reward of {self.horizon} plays"
        if not self.policies:
            robust = [item for item in self.estimates if item.method == DR]
            known = [(item.target, item.value, item.interval) for item in robust]
            label = "reward per play, doubly robust"
        axes = plot_axes(axes, height=1.2 + 0.35 * len(known))
        intervals(axes, {"": known}, x=label)
        return axes

    def warnings(self) -> list[str]:
        """Return the reasons not to trust the figures."""
        return [*self._replay_warnings(), *self.notes]

    def _replay_warnings(self) -> list[str]:
        if self.horizon is None or self.least is None or self.uneven is None:
            return []
        found = []
        wanted = math.ceil(self.horizon / self.least)
        least = min(item.episodes for item in self.policies)
        uneven = self.uneven < _UNEVEN
        if least < 2 and not (uneven and self.plays >= 2 * wanted):
            found.append(
                f"The log is too short: an episode of {self.horizon} plays takes about {wanted:,} of its "
                f"plays, and it has {self.plays:,}. Two episodes give an interval, thirty a useful one: "
                f"log about {30 * wanted:,} plays, or choose a shorter --horizon"
            )
        elif 2 <= least < _FEW:
            found.append(
                f"Only {least} episodes fit in the log, so the intervals are wide: thirty take about "
                f"{30 * wanted:,} plays"
            )
        if uneven:
            found.append(
                "The log cannot be used as it is: its arms were not played evenly, as they are if all are "
                f"equally likely at every play (chance of that: {self.uneven:.1g}). If a policy chose them, "
                "log the probability of each choice, and keep a chance for every arm (`metabandit serve "
                "--min-share 0.05`): choices that were sure say nothing about other arms"
                if not self.estimates
                else f"The plays that were kept are not even over the arms (chance of that: {self.uneven:.1g}): "
                f"some arm had a smaller probability than {self.least:.3g} at some plays, or the "
                f"probabilities are wrong. Do not trust these figures; log with --min-share"
            )
        return found

    def rows(self) -> list[dict[str, str]]:
        """Return the table of policies as text; without policies, that of the estimates."""
        if self.horizon is None:
            return self.estimate_rows()
        arm, mean = self.best_arm
        table: list[tuple[str, float | None, str, str]] = []
        for item in self.policies:
            low, high = item.interval or (None, None)
            shown = "-" if low is None else f"{low:.5g} to {high:.5g}"
            table.append((item.policy, item.reward, shown, str(item.episodes)))
        if self.estimates:
            # They say what arms are worth; plain means are biased if the logger learned.
            table.append(("the log itself", self.chance * self.horizon, "", ""))
        else:
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

    def estimate_rows(self) -> list[dict[str, str]]:
        """Return the table of what fixed shares are worth per play, as text."""
        return [
            {
                "every play": item.target,
                "estimate": item.method,
                "per play": f"{item.value:.4g}",
                "95 % interval": f"{item.interval[0]:.4g} to {item.interval[1]:.4g}",
                "effective plays": f"{item.effective:,.0f}",
            }
            for item in self.estimates
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        found = asdict(self) | {"warnings": self.warnings()}
        del found["notes"]
        for item in found["estimates"]:
            item["shares"] = [{"arm": arm, "share": value} for arm, value in item["shares"].items()]
        return found


@with_progress("replaying")
def replay(
    log: str | Path | Log | Iterable[tuple[Any, ...]],
    policies: str | Path | Policy | Sequence[str | Path | Policy] = (),
    *,
    horizon: int | None = None,
    seed: int = 0,
    feedback: Feedback | Mapping[str, Any] | None = None,
    shares: Sequence[Mapping[ArmName, float]] = (),
    least: float | None = None,
    progress: Told = None,
) -> Replay:
    """Estimate how policies would have done, from a log of random plays.

    Without probabilities, all arms must have been equally likely at every play of the log. With the
    probability of each choice, the logger may be any policy that gave every arm some chance, also one that
    learned from its rewards: policies are replayed on a part of the log that is uniformly random,
    and the worth of each arm per play is estimated from all of it (inverse propensity, self-normalised and
    doubly robust).

    Parameters
    ----------
    log
        A CSV file with the columns arm, reward and, if known, probability; or pairs (arm, reward) or
        triples (arm, reward, probability), in order.
    policies
        One policy or several: names, expressions, policy files or policies. None are needed if the log has
        probabilities.
    horizon
        The number of plays per episode; by default that of the first learned policy.
    seed
        The seed of policies that play at random.
    feedback
        When rewards become known; immediately by default.
    shares
        Fixed shares of the arms to estimate the worth of, beside each arm and all arms alike; the log must have
        probabilities.
    least
        The probability that every arm had at least at every play of the log, such as the min_share of its
        policy; by default the smallest probability in the log.
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
    known = make_log(log)
    with about("policies"):
        made = read_policies(policies)
    if known.probabilities is None:
        _check_uniform(known, made, shares, least)
    if made:
        horizon = _find_horizon(made) if horizon is None else check_horizon(horizon)
    else:
        horizon = None
    seed = check_seed(seed)
    asked = Feedback.read(feedback)
    names = sorted(set(known.arms), key=str)
    asked.check(len(names), horizon)
    if len(names) < 2:
        raise InputError(
            f"{known.name} has one arm only, {known.arms[0]!r}: there is nothing to choose"
        )
    estimates, notes = _estimates(known, names, shares)
    results: list[Replayed] = []
    uneven = bound = None
    if horizon is not None:
        bound, kept = _thin(known, len(names), least, seed)
        uneven = _unevenness([known.arms[place] for place in kept], names)
        places: dict[ArmName, list[int]] = {name: [] for name in names}
        for place in kept:
            places[known.arms[place]].append(place)
        for item in made:
            learned = item.learned
            if learned and (note := learned.note("plays with", arms=len(names), horizon=horizon)):
                notes.append(f"{item.name} was {note}")
        results = _replay_all(made, known, places, horizon, seed, asked, progress)
    means = _means(known, names)
    best = max(means, key=lambda name: means[name])
    return Replay(
        log=known.name,
        plays=len(known),
        arms=len(names),
        horizon=horizon,
        seed=seed,
        feedback=asked,
        chance=float(np.mean(known.rewards)),
        best_arm=(best, means[best]),
        least=bound,
        uneven=uneven,
        policies=tuple(results),
        estimates=tuple(estimates),
        notes=tuple(notes),
    )


def _check_uniform(
    log: Log,
    policies: Sequence[Policy],
    shares: Sequence[Mapping[ArmName, float]],
    least: float | None,
) -> None:
    """Refuse what a log without probabilities cannot answer."""
    if shares or least is not None:
        raise InputError(
            f"{log.name} has no probabilities, which shares (--shares) and least (--least) need: add the "
            f"column probability, or leave them out"
        )
    if not policies:
        raise InputError(
            "no policy was given to replay: name at least one, such as ucb1 (--policy ucb1)"
        )


def _estimates(
    log: Log, names: Sequence[ArmName], shares: Sequence[Mapping[ArmName, float]]
) -> tuple[list[Estimate], list[str]]:
    """What each arm, all arms alike and fixed shares are worth, and notes; nothing without probabilities."""
    if log.probabilities is None:
        return [], []
    targets: dict[str, Mapping[ArmName, float]] = {f"always {arm}": {arm: 1.0} for arm in names}
    targets["all arms alike"] = dict.fromkeys(names, 1.0 / len(names))
    for given in shares:
        checked = check_shares(given, names)
        targets[", ".join(f"{arm} {share:.4g}" for arm, share in checked.items())] = checked
    return estimate(log, targets)


def _means(log: Log, names: Sequence[ArmName]) -> dict[ArmName, float]:
    """The mean reward of each arm in the log."""
    number_of = {name: number for number, name in enumerate(names)}
    played = np.array([number_of[arm] for arm in log.arms])
    sums = np.bincount(played, np.array(log.rewards))
    return dict(zip(names, (sums / np.bincount(played)).tolist(), strict=True))


def _thin(log: Log, arms: int, least: float | None, seed: int) -> tuple[float, list[int]]:
    """The probability that each arm has had at least, and a part of the log that is uniformly random."""
    if log.probabilities is None:
        return 1.0 / arms, list(range(len(log)))
    # Where the arm was certain, others had no chance; that is known before the arm is drawn.
    free = [place for place, chance in enumerate(log.probabilities) if chance < CERTAIN]
    lowest = min(free, key=log.probabilities.__getitem__)
    bound = log.probabilities[lowest]
    if least is not None:
        with about("least"):
            bound = read_number(least, "least")
        if not 0.0 < bound <= (1.0 + 1e-9) / arms:
            raise InputError(
                f"least is a probability that each of {arms} arms can have, above 0 and at most "
                f"{1.0 / arms:.4g}, not {least!r}",
                about="least",
            )
        if bound > log.probabilities[lowest] * (1.0 + 1e-6):
            raise InputError(
                f"{log.name}, play {lowest + 1}: the arm {log.arms[lowest]!r} was chosen with probability "
                f"{log.probabilities[lowest]:.4g}, below the least that was given, {bound:.4g}; give a "
                f"smaller one",
                about="least",
            )
    # A stream that no simulated log has been drawn with: kept plays would be those with certain rewards.
    rng = random.Random(f"plays that replay keeps, {seed}")
    return bound, [place for place in free if rng.random() * log.probabilities[place] < bound]


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


def _plays(
    item: Policy,
    log: Log,
    places: dict[ArmName, list[int]],
    horizon: int,
    seed: int,
    feedback: Feedback,
) -> Iterator[tuple[int, float | None]]:
    """Yield, after each play, the plays of the log passed and, where it ends an episode, its total reward.

    `places` holds the positions of each arm's plays in the log.
    """
    rewards = None if item.learned is not None else _range(log.rewards)
    at, ends = 0, feedback.ends(horizon)
    for episode in count():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notes of the replay say it once
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
            yield at, total if made == horizon else None


def _replay_all(
    policies: Sequence[Policy],
    log: Log,
    places: dict[ArmName, list[int]],
    horizon: int,
    seed: int,
    feedback: Feedback,
    progress: Told,
) -> list[Replayed]:
    """What each policy would have earned, the best first; `places` as for `_plays`."""
    results = []
    for number, item in enumerate(policies):
        totals, passed = [], 0
        for end, total in _plays(item, log, places, horizon, seed, feedback):
            if progress is not None:
                progress(number * len(log) + end, len(policies) * len(log))
            if total is not None:
                totals.append(total)
                passed = end
        results.append(_summary(item.name, totals, horizon, passed))
    return sorted(
        results,
        key=lambda found: -math.inf if found.reward is None else found.reward,
        reverse=True,
    )


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


def _unevenness(arms: Sequence[ArmName], names: Sequence[ArmName]) -> float:
    """Return the p-value of Pearson's chi-squared test that arms are played evenly in each quarter."""
    from scipy.special import chdtrc

    parts = 4 if len(arms) >= 4 * _EXPECTED * len(names) else 1
    statistic = 0.0
    for part in range(parts):
        mine = arms[part * len(arms) // parts : (part + 1) * len(arms) // parts]
        expected = len(mine) / len(names)
        if expected:
            statistic += sum((mine.count(name) - expected) ** 2 / expected for name in names)
    return float(chdtrc(parts * (len(names) - 1), statistic))
