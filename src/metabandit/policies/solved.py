"""Policies that are solved for a prior and a horizon: the optimal one, that under constraints, and the Gittins index."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..decisions import ByBonus, ByCuts, ByStates, ByTable, Decision
from ..errors import InputError
from ..files import check_new, written
from ..progress import Progress
from ..settings import check_horizon, check_whole, read_number, write_number
from .base import Policy, Setting
from .start import EACH_ONCE, FREE, Start

if TYPE_CHECKING:
    from ..bayes.optimum import Optimum
    from ..priors import Bernoulli, Prior

_FORMAT = "metabandit optimal policy 1"


def check_target(path: str | Path) -> Path:
    """A path that a policy can be saved to: nothing is overwritten."""
    if Path(path).exists():
        # There is no --force here: half a minute's work is not written over.
        raise InputError(f"the file {path} exists already; remove it or choose another name")
    return check_new(path, (".npz",), "the file of an optimal policy")


def _solvable(prior: Prior) -> Bernoulli:
    from ..bayes.optimum import check_solvable

    return check_solvable(prior, "the optimal policy")


class OptimalPolicy(Policy):
    """The Bayes-optimal policy for two or three Bernoulli arms, as a table of what to do in every state.

    It is optimal for its own prior and horizon. Played on another prior, or for fewer plays, it shows
    what a wrong belief costs.

    Parameters
    ----------
    prior : Bernoulli
        What is known of the two or three arms.
    horizon : int
        Plays in all.
    start : {"free", "each-once"}
        Whether all play is free, or each arm must be played once first.
    name : str, optional
        What tables call it.
    threads : int, optional
        Threads to use; all cores by default.
    progress : callable, optional
        Called as progress(states done, states in all).
    """

    path: Path | None = None
    binary = True

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
        from ..bayes.induction import solve
        from ..bayes.optimum import check_start

        known = _solvable(prior)
        self.horizon = check_horizon(horizon)
        check_start(start, known.arms, self.horizon)
        self.name = name or f"optimal for {self.horizon} plays"
        self.alpha, self.beta = known.alpha, known.beta
        self.start = start
        self.expected_reward, self.best = solve(
            known, self.horizon, start=start, keep=True, threads=threads, progress=progress
        )
        self.regret = self.horizon * known.expected_best() - self.expected_reward

    @property
    def optimum(self) -> Optimum:
        """What the policy gets on its own prior."""
        from ..bayes.optimum import Optimum
        from ..priors import Bernoulli

        prior = str(Bernoulli(alpha=self.alpha, beta=self.beta))
        return Optimum(
            prior, self.arms, self.horizon, self.start, self.expected_reward, self.regret
        )

    def settings(self) -> dict[str, Any]:
        return {"prior": self.optimum.prior, "start": self.start}

    @property
    def arms(self) -> int:
        """Two or three."""
        return len(self.alpha)

    def choose(self, plays: Sequence[int], successes: Sequence[int]) -> tuple[int, ...]:
        """The best arms, numbered from 0, after these plays and successes; two if they are equal.

        >>> import metabandit as mb
        >>> mb.OptimalPolicy(mb.Bernoulli(arms=2), 10).choose(plays=[1, 0], successes=[1, 0])
        (0,)
        """
        if any(
            not hasattr(item, "__len__") or len(item) != self.arms for item in (plays, successes)
        ):
            raise InputError(
                f"plays and successes have one number for each of the {self.arms} arms"
            )
        counts = [check_whole(number, "plays", 0) for number in plays]
        wins = [check_whole(number, "successes", 0) for number in successes]
        m = sum(counts)
        if any(won > made for won, made in zip(wins, counts, strict=True)):
            raise InputError(f"an arm has more successes than plays: {wins} in {counts}")
        if m >= self.horizon:
            raise InputError(
                f"{m} plays are made already, and the policy is for {self.horizon}: solve it for more"
            )
        if self.start == EACH_ONCE and m < self.arms:
            return (m,)
        return self._decision().best_arms(counts, wins)

    def _decision(self) -> ByCuts | ByStates:
        means = tuple(zip(self.alpha, self.beta, strict=True))
        kind: Any = ByCuts if self.arms == 2 else ByStates
        found: ByCuts | ByStates = kind(self.horizon, self.best, means)
        return found

    def content(self) -> Any:
        from .file import Solved

        return Solved(
            horizon=self.horizon,
            start=self.start,
            alpha=tuple(self.alpha),
            beta=tuple(self.beta),
            file=None if self.path is None else str(self.path.absolute()),
        )

    def start_for(self, setting: Setting) -> Start:
        return Start(self.start)

    def check_setting(self, setting: Setting) -> None:
        rewards = setting.rewards
        if setting.arms != self.arms:
            raise InputError(f"{self.name} is for {self.arms} arms, not {setting.arms}")
        if not rewards.binary:
            raise InputError(
                f'{self.name} is for arms that pay 0 or 1 (rewards="binary"), not for rewards of '
                f"{setting.paid_by} between {rewards.low:g} and {rewards.high:g}"
            )
        if setting.horizon is not None and setting.horizon > self.horizon:
            raise InputError(
                f"{self.name} was solved for {self.horizon} plays; the horizon must not be longer, "
                f"not {setting.horizon}"
            )

    def decision(self, setting: Setting, progress: Progress | None = None) -> Decision:
        return self._decision()

    def save(self, path: str | Path) -> Path:
        """Write the policy to a file ending in .npz, which `policy` and the command line read."""
        import numpy as np

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
                cuts=self.best,
            )
        self.path = path
        return path

    @classmethod
    def load(cls, path: str | Path) -> OptimalPolicy:
        """Read a policy that `save` wrote."""
        import numpy as np

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
                policy.best = file["cuts"]
            policy._check()
        except FileNotFoundError:
            raise InputError(f"the file {path} does not exist") from None
        except InputError:
            raise
        except Exception:
            # Whatever NumPy has to say about such a file does not help its owner.
            raise InputError(
                f"{path} is not a policy that metabandit saved, or it is damaged; save it again"
            ) from None
        return policy

    def _check(self) -> None:
        """What a file says must be a policy."""
        if self.start not in (FREE, EACH_ONCE):
            raise ValueError("no such start")
        if len(self.alpha) not in (2, 3) or len(self.beta) != len(self.alpha) or self.horizon < 1:
            raise ValueError("no prior of two or three arms")
        if not all(x > 0.0 for x in (*self.alpha, *self.beta)):
            raise ValueError("no prior")
        table, plays = self.best, self.horizon
        if self.arms == 3:
            if table.shape != (math.comb(plays + 5, 6),) or str(table.dtype) != "uint8":
                raise ValueError("another number of states than the horizon has")
            if int(table.max()) > 7 or self._first_decided().min() == 0:
                raise ValueError("arms that are not there")
        else:
            if table.shape != (math.comb(plays + 2, 3), 2) or str(table.dtype) != "uint16":
                raise ValueError("another number of states than the horizon has")
            if (table[:, 0] > table[:, 1]).any() or int(table.max()) > plays:
                raise ValueError("cuts that cannot be")
        if not (math.isfinite(self.expected_reward) and math.isfinite(self.regret)):
            raise ValueError("values that are no numbers")

    def _first_decided(self) -> Any:
        """The entries of three arms from the first play on that is free."""
        return self.best[math.comb(8, 6) if self.start == EACH_ONCE else 0 :]


def _prior(setting: Setting) -> Prior:
    """The prior; in live play without one all means are equally likely."""
    from ..priors import Bernoulli

    return setting.prior or Bernoulli(max(setting.arms, 2))


def check_optimal(setting: Setting, name: str) -> None:
    """Refuse what the catalogue's `optimal` cannot be solved for."""
    setting.need_horizon(name)
    known = _solvable(_prior(setting))
    if setting.arms != known.arms or not setting.rewards.binary:
        raise InputError(
            f'{name} is for 2 or 3 arms that pay 0 or 1 (rewards="binary"), not for {setting.arms} arms '
            f"with rewards between {setting.rewards.low:g} and {setting.rewards.high:g} ({known})"
        )


def optimal_for_prior(
    setting: Setting, values: Mapping[str, float], progress: Progress | None
) -> Decision:
    """The optimal policy for the prior and the horizon of the setting."""
    horizon = setting.need_horizon("optimal")
    return OptimalPolicy(_prior(setting), horizon, progress=progress).decision(setting)


class ConstrainedPolicy(Policy):
    """Constrained randomised dynamic programming for two Bernoulli arms (Williamson et al. 2017).

    The better arm is played with probability `degree`, the other one else, and every arm is to have a
    minimum of plays: among such policies this one has the largest expected reward less a penalty for
    each trial in which an arm falls short. With degree p, and k the better of the arms,

        V_T = -penalty if min(n_1, n_2) < minimum, else 0,
        V_m = max_k  p Q_k + (1 - p) Q_other,   Q_k = p_k (1 + V_{m+1}^{k, success}) + (1 - p_k) V_{m+1}^{k, failure}.

    Parameters
    ----------
    degree : float
        The degree of randomisation: from 0.5, which plays arms with equal probability, to 1, which is
        deterministic but for ties.
    minimum : int
        Plays that each arm is to have at the end.
    penalty : float, optional
        What a trial loses in which an arm has fewer; the horizon by default.
    name : str, optional
        What tables call it.

    Examples
    --------
    >>> import metabandit as mb
    >>> design = mb.ConstrainedPolicy(degree=0.9, minimum=5)
    >>> round(mb.evaluate(design, mb.Bernoulli(arms=2), horizon=40, method="exact")[0].mean_regret, 4)
    2.4869
    """

    binary = True
    reads_prior = True
    tabled = True

    def __init__(
        self,
        *,
        degree: float = 0.9,
        minimum: int = 0,
        penalty: float | None = None,
        name: str | None = None,
    ) -> None:
        self.degree = read_number(degree, "the degree of randomisation")
        if not 0.5 <= self.degree <= 1.0:
            raise InputError(
                f"the degree of randomisation must lie between 0.5 and 1, not {self.degree:g}"
            )
        self.minimum = check_whole(minimum, "the minimum per arm", 0)
        self.penalty = None if penalty is None else read_number(penalty, "the penalty")
        if self.penalty is not None and self.penalty < 0.0:
            raise InputError(f"the penalty must be at least 0, not {self.penalty:g}")
        least = f",minimum={self.minimum}" if self.minimum else ""
        lost = "" if self.penalty is None else f",penalty={write_number(self.penalty)}"
        self.name = name or f"crdp:degree={write_number(self.degree)}{least}{lost}"
        self._known: dict[tuple[Any, ...], Decision] = {}

    def start_for(self, setting: Setting) -> Start:
        return Start(FREE)

    def check_setting(self, setting: Setting) -> None:
        check_optimal(setting, self.name)
        if setting.arms != 2:
            raise InputError(f"{self.name} is for 2 arms, not {setting.arms}")
        horizon = setting.need_horizon(self.name)
        if 2 * self.minimum > horizon:
            raise InputError(
                f"{self.name}: 2 arms cannot each have {self.minimum} of {horizon} plays; the minimum "
                f"is at most {horizon // 2}"
            )

    def decision(self, setting: Setting, progress: Progress | None = None) -> Decision:
        from ..bayes.induction import solve_constrained

        prior, horizon = _solvable(_prior(setting)), setting.need_horizon(self.name)
        key = (prior.alpha, prior.beta, horizon)
        if key not in self._known:
            penalty = float(horizon) if self.penalty is None else self.penalty
            cuts = solve_constrained(prior, horizon, self.degree, self.minimum, penalty)
            means = tuple(zip(prior.alpha, prior.beta, strict=True))
            self._known[key] = ByCuts(horizon, cuts, means, rate=2.0 * (1.0 - self.degree))
        return self._known[key]

    def __getstate__(self) -> dict[str, Any]:
        # Tables are large, and can be computed again.
        return self.__dict__ | {"_known": {}}


def check_gittins(setting: Setting, name: str) -> None:
    """Refuse rewards that it has no index for, and tables that do not fit in memory."""
    from ..bayes.gittins import check_gittins_memory
    from ..priors import Gaussian

    horizon = setting.need_horizon(name)
    if not setting.rewards.in_unit_interval and not isinstance(setting.prior, Gaussian):
        raise InputError(
            f"{name} is for rewards in [0, 1] and for the prior gaussian; those of {setting.paid_by} lie between "
            f"{setting.rewards.low:g} and {setting.rewards.high:g}"
        )
    check_gittins_memory(_prior(setting), horizon)


def gittins(setting: Setting, values: Mapping[str, float], progress: Progress | None) -> Decision:
    """The Gittins index of each arm as a table: of finite horizon, or discounted.

    The means' Beta distributions are those of the prior, uniform if it says none. For two arms and
    more this is no optimum: the index is optimal against a known arm, not against others.
    """
    import numpy as np

    from ..bayes.gittins import bonus_table, gittins_table, levels_of, means_of
    from ..priors import Gaussian

    horizon = setting.need_horizon("gittins")
    discount = values["discount"]
    if discount > 1.0:
        raise InputError(
            f"discount of gittins must be at most 1, which is no discount, not {discount:g}"
        )
    levels = levels_of(horizon, discount)
    prior = _prior(setting)
    if isinstance(prior, Gaussian):
        spread, noise = prior.spread, prior.noise
        bonus = bonus_table(horizon, spread, noise, discount=discount, progress=progress)
        return ByBonus(horizon, bonus, levels, prior.mean, spread, noise)
    means = means_of(prior)
    kinds = list(dict.fromkeys(means))
    table = np.stack(
        [gittins_table(horizon, *kind, discount=discount, progress=progress) for kind in kinds]
    )
    return ByTable(horizon, table, levels, tuple(map(kinds.index, means)), tuple(means))


# Beyond this many plays the prices take minutes.
WHITTLE_PLAYS = 200


def check_whittle(setting: Setting, name: str) -> None:
    """Refuse what the Lagrangian bound gives no index for."""
    horizon = setting.need_horizon(name)
    if not setting.rewards.in_unit_interval:
        raise InputError(
            f"{name} is for rewards in [0, 1]; those of {setting.paid_by} lie between "
            f"{setting.rewards.low:g} and {setting.rewards.high:g}"
        )
    if horizon > WHITTLE_PLAYS:
        raise InputError(
            f"{name} is for up to {WHITTLE_PLAYS} plays, as its prices take minutes for more, not for "
            f"{horizon}; gittins is for longer horizons"
        )


def whittle(setting: Setting, values: Mapping[str, float], progress: Progress | None) -> Decision:
    """The Lagrangian index of each arm as a table.

    The means' Beta distributions are those of the prior, uniform if it says none.
    """
    import numpy as np

    from ..bayes.gittins import means_of
    from ..bayes.lagrange import advantages, prices_of

    horizon = setting.need_horizon("whittle")
    means = tuple(means_of(_prior(setting)))
    prices = prices_of(means, horizon)
    kinds = list(dict.fromkeys(means))
    table = np.stack([advantages(kind, prices) for kind in kinds])
    levels = tuple(range(1, horizon + 1))
    return ByTable(horizon, table, levels, tuple(map(kinds.index, means)), means)
