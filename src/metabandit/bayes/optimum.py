"""The Bayes-optimal policy for Bernoulli arms with Beta means: the floor under every regret."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, nearest
from ..files import check_new, written
from ..play import Setting
from ..play.rules import Cuts, Rule
from ..policies.base import ByCounts, Plan, Policy, Progress, decide_by
from ..policies.file import Solved
from ..policies.start import EACH_ONCE
from ..priors import Bernoulli, Prior, check_prior
from ..settings import check_horizon, check_whole
from .induction import FREE, solve, states

__all__ = ["OptimalPolicy", "Optimum", "optimal"]

_FORMAT = "metabandit optimal policy 1"


@dataclass(frozen=True)
class Optimum:
    """What the best of all policies gets: no policy has less expected regret on this prior.

    `start` says whether all play is free, or each arm must be played once first.
    """

    prior: str
    arms: int
    horizon: int
    start: str
    expected_reward: float
    regret: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def has_optimum(prior: Prior) -> bool:
    """Whether backward induction can be done for a prior."""
    return type(prior) is Bernoulli and prior.arms <= 3


def optimum_seconds(prior: Prior, horizon: int) -> float:
    """About how many seconds the optimum takes on one thread."""
    return states(prior.arms, horizon) / (1e9 if prior.arms == 2 else 1e8)


def check_solvable(prior: Prior, what: str) -> Bernoulli:
    """The prior, if backward induction can be done for it."""
    check_prior(prior)
    if type(prior) is not Bernoulli:
        raise InputError(
            f"{what} is for Bernoulli arms with Beta means (the prior bernoulli), not for {prior}; "
            f"no floor is known for others"
        )
    if not has_optimum(prior):
        raise InputError(
            f"{what} is for 2 or 3 arms, not {prior.arms}: the states are too many; the policy "
            f"gittins is a strong reference for more arms, though no bound"
        )
    return prior


def optimal(
    prior: Prior,
    horizon: int,
    *,
    start: str = FREE,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Optimum:
    """The reward and the regret of the Bayes-optimal policy, for two or three Bernoulli arms.

    start: `free`, or `each-once` if each arm must be played once first
    progress: called as progress(states done, states in all)

    >>> import metabandit as mb
    >>> round(mb.optimal(mb.Bernoulli(arms=2), horizon=10).regret, 6)
    0.644881
    """
    known = check_solvable(prior, "the optimum")
    horizon = check_horizon(horizon)
    _check_start(start, known.arms, horizon)
    reward, _ = solve(known, horizon, start=start, keep=False, threads=threads, progress=progress)
    regret = horizon * known.expected_best() - reward
    return Optimum(str(known), known.arms, horizon, start, reward, regret)


def _check_start(start: str, arms: int, horizon: int) -> None:
    if start not in (FREE, EACH_ONCE):
        raise InputError(
            f"unknown start {start!r} of the optimum; {nearest(start, (FREE, EACH_ONCE))}"
        )
    if start == EACH_ONCE and horizon < arms:
        raise InputError(
            f"the start each-once plays each of the {arms} arms, so the horizon must be at least "
            f"{arms}, not {horizon}; choose a longer one, or the start free"
        )


def check_target(path: str | Path) -> Path:
    """A path that a policy can be saved to: nothing is overwritten."""
    if Path(path).exists():
        # There is no --force here: half a minute's work is not written over.
        raise InputError(f"the file {path} exists already; remove it or choose another name")
    return check_new(path, (".npz",), "the file of an optimal policy")


def _check_two_arms(prior: Prior) -> Bernoulli:
    known = check_solvable(prior, "the optimal policy")
    if known.arms != 2:
        raise InputError(
            f"the optimal policy as a table is for 2 arms, not {known.arms}; its value for "
            f"three arms is what metabandit optimal prints"
        )
    return known


class OptimalPolicy(Policy):
    """The Bayes-optimal policy for two Bernoulli arms, as a table of what to do in every state.

    It is solved for one prior and horizon. It can be played on another prior, or for fewer plays than
    it was solved for, which shows what a wrong belief costs: it is optimal for its own only.
    """

    path: Path | None = None

    def __init__(
        self,
        prior: Prior,
        horizon: int,
        *,
        start: str = FREE,
        name: str | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        known = _check_two_arms(prior)
        self.horizon = check_horizon(horizon)
        _check_start(start, 2, self.horizon)
        self.name = name or f"optimal for {self.horizon} plays"
        self.alpha, self.beta = known.alpha, known.beta
        self.start = start
        self.expected_reward, self.cuts = solve(
            known, self.horizon, start=start, keep=True, threads=threads, progress=progress
        )
        self.regret = self.horizon * known.expected_best() - self.expected_reward

    @property
    def optimum(self) -> Optimum:
        """What the policy gets on its own prior."""
        prior = str(Bernoulli(alpha=self.alpha, beta=self.beta))
        return Optimum(prior, 2, self.horizon, self.start, self.expected_reward, self.regret)

    def choose(self, plays: Sequence[int], successes: Sequence[int]) -> tuple[int, ...]:
        """The best arms, numbered from 0, after these plays and successes; two if they are equal.

        >>> import metabandit as mb
        >>> mb.OptimalPolicy(mb.Bernoulli(arms=2), 10).choose(plays=[1, 0], successes=[1, 0])
        (0,)
        """
        if np.shape(plays) != (2,) or np.shape(successes) != (2,):
            raise InputError("plays and successes have one number for each of the 2 arms")
        counts = [check_whole(number, "plays", 0) for number in plays]
        wins = [check_whole(number, "successes", 0) for number in successes]
        m = sum(counts)
        if wins[0] > counts[0] or wins[1] > counts[1]:
            raise InputError(f"an arm has more successes than plays: {wins} in {counts}")
        if m >= self.horizon:
            raise InputError(
                f"{m} plays are made already, and the policy is for {self.horizon}: solve it for more"
            )
        if self.start == EACH_ONCE and m < 2:
            return (m,)
        entry = math.comb(m + 2, 3) + math.comb(counts[0] + 1, 2) + wins[0]
        better, equal = self.cuts[entry]
        if wins[1] < better:
            return (0,)
        return (0, 1) if wins[1] < equal else (1,)

    binary = True

    def content(self) -> Solved:
        return Solved(
            horizon=self.horizon,
            start=self.start,
            alpha=(self.alpha[0], self.alpha[1]),
            beta=(self.beta[0], self.beta[1]),
            file=None if self.path is None else str(self.path.absolute()),
        )

    def rule(self, setting: Setting) -> Rule:
        if len(setting.arms) != 2:
            raise InputError(f"{self.name} is for 2 arms, not {len(setting.arms)}")
        if not setting.rewards.binary:
            raise InputError(
                f'{self.name} is for arms that pay 0 or 1: give rewards="binary", not rewards between '
                f"{setting.rewards.low:g} and {setting.rewards.high:g}"
            )
        if setting.horizon is not None and setting.horizon > self.horizon:
            raise InputError(
                f"{self.name} was solved for {self.horizon} plays; the horizon must not be longer, "
                f"not {setting.horizon}"
            )
        means = tuple(zip(self.alpha, self.beta, strict=True))
        return Cuts(self.horizon, means, self.cuts, each_once=self.start == EACH_ONCE)

    def plan(self, prior: Prior, horizon: int) -> Plan:
        if prior.arms != 2 or not prior.family.binary:
            raise InputError(
                f"{self.name} is for 2 arms that pay 0 or 1, not for {prior.arms} arms of {prior}"
            )
        if horizon > self.horizon:
            raise InputError(
                f"{self.name} was solved for {self.horizon} plays; the horizon must not be longer, "
                f"not {horizon}"
            )
        if self.start == EACH_ONCE:
            self._check_horizon(prior, horizon)

        return Plan(
            self.start == EACH_ONCE,
            np.zeros((3, 2)),
            decide=decide_by("by_cuts"),
            parameters=self.cuts[:, 0] + 65536.0 * self.cuts[:, 1],
            by_counts=ByCounts(cuts=self.cuts),
        )

    def save(self, path: str | Path) -> Path:
        """Write the policy to a file ending in .npz, which `policy` and the command line read."""
        path = check_target(path)
        with written(path, "the policy") as file:
            np.savez_compressed(
                file,
                format=_FORMAT,
                horizon=self.horizon,
                start=self.start,
                alpha=self.alpha,
                beta=self.beta,
                expected_reward=self.expected_reward,
                regret=self.regret,
                cuts=self.cuts,
            )
        self.path = path
        return path

    @classmethod
    def load(cls, path: str | Path) -> OptimalPolicy:
        """Read a policy that `save` wrote."""
        policy = cls.__new__(cls)
        policy.name = str(path)
        policy.path = Path(path)
        try:
            with np.load(path, allow_pickle=False) as file:
                if str(file["format"]) != _FORMAT:
                    raise InputError(f"{path} has another format than {_FORMAT!r}")
                policy.horizon = int(file["horizon"])
                policy.start = str(file["start"])
                policy.alpha = tuple(file["alpha"].tolist())
                policy.beta = tuple(file["beta"].tolist())
                policy.expected_reward = float(file["expected_reward"])
                policy.regret = float(file["regret"])
                policy.cuts = file["cuts"]
            policy._check()
        except FileNotFoundError:
            raise InputError(f"the file {path} does not exist") from None
        except InputError:
            raise
        except Exception:
            # Whatever NumPy has to say of such a file does not help its owner.
            raise InputError(
                f"{path} is no policy that metabandit saved, or it is damaged; save it anew"
            ) from None
        return policy

    def _check(self) -> None:
        """What a file says must be a policy."""
        if self.start not in (FREE, EACH_ONCE):
            raise ValueError("no such start")
        if self.horizon < 1 or self.cuts.shape != (math.comb(self.horizon + 2, 3), 2):
            raise ValueError("another number of states than the horizon has")
        if self.cuts.dtype != np.uint16 or (self.cuts[:, 0] > self.cuts[:, 1]).any():
            raise ValueError("cuts that cannot be")
        if int(self.cuts.max()) > self.horizon:
            raise ValueError("more successes than plays")
        if not (math.isfinite(self.expected_reward) and math.isfinite(self.regret)):
            raise ValueError("values that are no numbers")
        numbers = (*self.alpha, *self.beta)
        if len(self.alpha) != 2 or len(self.beta) != 2 or not all(x > 0.0 for x in numbers):
            raise ValueError("no prior of two arms")


class OptimalForPrior(Policy):
    """The catalogue's `optimal`: solved for the prior and the horizon of the evaluation."""

    binary = True
    reads_prior = True

    def __init__(self, name: str) -> None:
        self.name = name
        self._solved: dict[tuple[str, int], OptimalPolicy] = {}

    def check(self, prior: Prior, horizon: int) -> None:
        _check_two_arms(prior)

    def prepare(self, prior: Prior, horizon: int, progress: Progress | None) -> None:
        key = str(prior), horizon
        if key not in self._solved:
            self._solved[key] = OptimalPolicy(prior, horizon, name=self.name, progress=progress)

    def rule(self, setting: Setting) -> Rule:
        horizon = setting.need_horizon(self.name)
        prior = setting.prior or Bernoulli(len(setting.arms))
        self.prepare(prior, horizon, None)
        return self._solved[str(prior), horizon].rule(setting)

    def plan(self, prior: Prior, horizon: int) -> Plan:
        self.prepare(prior, horizon, None)
        return self._solved[str(prior), horizon].plan(prior, horizon)
