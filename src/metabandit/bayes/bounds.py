"""Lower bounds on the regret of any policy, for any number of independent arms.

With T plays, m_i the posterior mean of an arm before its pull i + 1 and V* the most that a policy can
expect, regret is at least T E[max_k mu_k] - V*; an upper bound on V* is a floor under every regret.

**The charge bound** is an information relaxation (Brown, Smith and Sun 2010). All rewards are known in
advance, but pulls are penalised by numbers with mean zero for all who do not look ahead. At a price c
per pull, an arm that may be given up at any time is worth

    V_c(n, s) = max(0, m - c + m V_c(n + 1, s + 1) + (1 - m) V_c(n + 1, s)),   V_c(T, .) = 0,

and its index g(n, s) is the least c at which that is 0. Along the arm's rewards the prevailing charge
(Weber 1992) is c_i = min(g_0, ..., g_i), and

    f_k(n) = sum over i < n of  m_i + E[V_{c_i}(i + 1, .) | state i] - V_{c_i}(i + 1, s_{i+1}).

Whether a policy makes pull i + 1 is settled before that pull's reward is seen, so that its expected
reward is E[sum_k f_k(N_k)], and V* <= E[max of sum_k f_k(n_k) over n_1 + ... + n_K = T]. This holds for any
table in place of V: errors of the grid cost tightness only. For normal means and Gaussian rewards V depends on
m - c, and expectations are over intervals of the reward (kernels/bounds.py), again without error.

**A correction** theta x (T - i - 1)(E[m_{i+1}] - m_{i+1}) with mean zero makes f tighter. theta depends on i,
m_i, c_i and on the other arms' whole sequences: as arms are independent, these say nothing of the next reward
of this one, so that the mean stays zero. What says most is the best mean that another arm has after T - i
pulls, all that i pulls of this one leave, and how many pulls of other arms have charges above c_i: an index
policy makes those before this one. The bound is convex in theta, which is learned by stochastic
subgradients, on scenarios of its own.

**Long horizons.** After the first pulls V is tabulated at some numbers of pulls only (kernels/charge.py), and
the maximum over n_1 + ... + n_K = T is taken over blocks of pulls (kernels/bounds.py: relax), which
can only make it larger. Memory and time of a scenario then grow like K T.

**Little noise.** Let F be what the policy "largest index" gets with the same penalties: its mean is
T E[max mu] - R, and R, that policy's regret, is found precisely by long simulation. With the best value in hindsight H,
T E[max mu] - mean(H) + b (mean(F) - T E[max mu] + R) is the estimate, b a regression coefficient.

**The Lagrangian bound** (lagrange.py) is good for many arms and few plays.

Which of the three is reported is decided on other scenarios than those that give the figure.
"""

from __future__ import annotations

import json
import math
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..errors import InputError, about
from ..files import kept_path, written
from ..journal import seal, unseal
from ..memory import check_time
from ..priors import Bernoulli, Gaussian, Prior, check_prior, read_prior
from ..priors.base import check_positive
from ..priors.families import Array
from ..progress import Progress, Told, with_progress
from ..settings import check_horizon, check_seed, check_threads
from ..showing import Shown
from .lagrange import lagrangian_prices, suits_lagrangian
from .scenarios import BATCH, Scenarios, scenario_seconds, table_seconds

# A change of this file that changes figures makes it another version: kept bounds are computed again.
VERSION = 3

BOUND = "bound"
CHARGE, CORRECTED, LAGRANGIAN = "charge", "corrected charge", "Lagrangian"

# Scenarios that a task takes on, as a share of the seconds of effort 1 on one core.
_LEARN, _CHOOSE, _REPORT, _PLAY = 16.0, 2.0, 8.0, 6.0
# More are not worth their while with effort 1, however short; fewer say too little.
_MOST_STEPS, _MOST = 5000, 400_000
_FEWEST_STEPS, _FEWEST_CHOOSING, _FEWEST, _FEWEST_EPISODES = 12, 64, 128, 4000


@dataclass(frozen=True, repr=False)
class Bound(Shown):
    """A lower bound on the regret of every policy, where the optimum cannot be computed.

    Attributes
    ----------
    method : str
        The best bound: "charge", "corrected charge" or "Lagrangian"; or the feedback whose optimum it is,
        such as "immediate feedback", if that with the given feedback cannot be computed.
    expected_reward : float
        No policy can expect more.
    regret, standard_error : float
        No policy has less regret; the standard error of the bound, 0 if nothing was sampled.
    policy_regret : float or None
        The regret of the index policy on which the charge bound is built, for comparison.
    feedback : str
        The feedback that was asked for. Sampled bounds are for immediate feedback and hold for any other.
    """

    prior: str
    arms: int
    horizon: int
    method: str
    expected_reward: float
    regret: float
    standard_error: float
    policy_regret: float | None
    effort: float
    seed: int
    seconds: float
    feedback: str = "immediate"

    kind = BOUND

    def headline(self) -> str:
        noise = f" ± {1.96 * self.standard_error:.2g}" if self.standard_error else ""
        return (
            f"regret at least {self.regret:.6g}{noise}, reward at most {self.expected_reward:.6g} in "
            f"{self.horizon} plays, {self.arms} arms, {self.prior}"
        )

    def records(self) -> list[dict[str, Any]]:
        return [self.to_dict()]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"kind": self.kind, **asdict(self)}


def has_bound(prior: Prior) -> bool:
    """Whether a lower bound on regret is known for a prior."""
    return type(prior) in (Bernoulli, Gaussian)


@with_progress("computing a lower bound")
def lower_bound(
    prior: str | Prior,
    horizon: int,
    *,
    arms: int | None = None,
    effort: float = 1.0,
    seed: int = 0,
    threads: int | None = None,
    progress: Told = None,
) -> Bound:
    """A lower bound on the regret of any policy, for Bernoulli arms with Beta means or Gaussian arms.

    It is computed for immediate feedback and holds for any other: batches, delays and minimum shares can
    only cost regret.

    Parameters
    ----------
    prior : Bernoulli, Gaussian or str
        What is known of the arms, of which there may be any number: a prior, or its text.
    horizon : int
        Plays in all.
    arms : int, optional
        The number of arms, if the prior is a text that does not include it.
    effort : float
        How much is computed; 1 is about a quarter of a minute on two cores, more with 50,000 plays.
    seed : int
        The same seed gives the same bound, whatever the number of threads.
    threads : int, optional
        Threads to use; all cores by default.
    progress : callable or bool, optional
        Called as progress(work done, work in all). By default a bar shows in terminals and notebooks if
        it takes more than two seconds; False for none.

    Examples
    --------
    >>> import metabandit as mb
    >>> bound = mb.lower_bound(mb.Bernoulli(arms=2), horizon=10, effort=0.05)
    >>> 0.5 < bound.regret < mb.optimal(mb.Bernoulli(arms=2), horizon=10).regret
    True
    """
    prior = read_prior(prior, arms=arms)
    if not has_bound(prior):
        raise InputError(
            f"a lower bound on regret is known for Bernoulli arms with Beta means and for Gaussian arms "
            f"(the priors bernoulli and gaussian), not for {prior}"
        )
    horizon = check_horizon(horizon)
    effort = _check_effort(effort)
    seed = check_seed(seed)
    check_time(
        bound_seconds(prior, horizon, effort),
        f"a lower bound for {prior.arms:,} arms and {horizon:,} plays",
        "choose a shorter horizon or less effort",
    )
    begin = time.perf_counter()
    with Scenarios(prior, horizon, seed, check_threads(threads)) as scenarios:
        method, regret, error, policy_regret = _best_of(prior, horizon, effort, scenarios, progress)
    return Bound(
        prior=str(prior),
        arms=prior.arms,
        horizon=horizon,
        method=method,
        expected_reward=horizon * _expected_best(prior) - max(regret, 0.0),
        regret=max(regret, 0.0),
        standard_error=error,
        policy_regret=policy_regret,
        effort=effort,
        seed=seed,
        seconds=time.perf_counter() - begin,
    )


@about("floor_effort")
def _check_effort(effort: float) -> float:
    return check_positive(effort, "the effort of a lower bound")


def _plan(prior: Prior, horizon: int, effort: float) -> tuple[int, int, int, int]:
    """How many steps of learning, scenarios to choose by and to report, and episodes.

    Few steps of learning would be noise, so that there are none.
    """
    cost, episode = scenario_seconds(prior, horizon)
    steps = math.ceil(effort * min(_LEARN / cost / BATCH, _MOST_STEPS))
    return (
        steps if steps >= _FEWEST_STEPS else 0,
        max(math.ceil(effort * min(_CHOOSE / cost, 0.1 * _MOST)), _FEWEST_CHOOSING),
        max(math.ceil(effort * min(_REPORT / cost, _MOST)), _FEWEST),
        max(math.ceil(effort * min(_PLAY / episode, 5.0 * _MOST)), _FEWEST_EPISODES),
    )


def bound_seconds(prior: Prior, horizon: int, effort: float) -> float:
    """About how long a lower bound takes on one core."""
    cost, episode = scenario_seconds(prior, horizon)
    steps, choosing, reporting, episodes = _plan(prior, horizon, _check_effort(effort))
    scenarios = steps * BATCH + 2 * choosing + reporting
    return table_seconds(prior, horizon) + scenarios * cost + episodes * episode


def _best_of(
    prior: Prior, horizon: int, effort: float, scenarios: Scenarios, progress: Progress | None
) -> tuple[str, float, float, float]:
    """Method, bound and its standard error, and the regret of the index policy."""
    steps, choosing, reporting, episodes = _plan(prior, horizon, effort)

    def report(done: float) -> None:
        if progress is not None:
            progress(round(1000 * done), 1000)

    report(0.0)
    most = horizon * _expected_best(prior)
    theta = np.zeros(scenarios.corrections())
    method, pilot = CHARGE, scenarios.values("choose", choosing, theta)
    if steps:
        learned = scenarios.learn(steps, lambda share: report(0.5 * share))
        corrected = scenarios.values("choose", choosing, learned)
        if np.mean(corrected[1] - corrected[0]) < np.mean(pilot[1] - pilot[0]):
            method, pilot, theta = CORRECTED, corrected, learned
    # Of H on F; without scatter F is exact by itself.
    covariance = np.cov(pilot)
    weight = float(covariance[0, 1] / covariance[0, 0]) if covariance[0, 0] > 0.0 else 0.0
    report(0.6)
    if isinstance(prior, Bernoulli) and suits_lagrangian(prior, horizon):
        first, _ = scenarios.regret("choose", max(episodes // 8, 1000))
        estimate = _estimate(most, pilot, weight, first)
        lagrangian = most - lagrangian_prices(prior, horizon, scenarios.map)[0]
        if lagrangian > estimate:
            policy_regret, _ = scenarios.regret("report", episodes)
            report(1.0)
            return LAGRANGIAN, lagrangian, 0.0, policy_regret
    report(0.7)
    values = scenarios.values("report", reporting, theta)
    report(0.85)
    policy_regret, policy_error = scenarios.regret("report", episodes)
    report(1.0)
    rest = values[1] - weight * values[0]
    error = math.hypot(float(np.std(rest)) / math.sqrt(len(rest)), weight * policy_error)
    return method, _estimate(most, values, weight, policy_regret), error, policy_regret


def _estimate(most: float, values: tuple[Array, Array], weight: float, regret: float) -> float:
    """The charge bound from scenarios and the index policy's regret."""
    policy, hindsight = values
    return most - float(np.mean(hindsight)) + weight * (float(np.mean(policy)) - most + regret)


def _expected_best(prior: Prior) -> float:
    """The expected mean of the best arm."""
    if isinstance(prior, Bernoulli):
        return prior.expected_best()
    assert isinstance(prior, Gaussian)
    from scipy.special import ndtr

    # The integral of 1 - P(best <= x) above 0 and of -P(best <= x) below, by the trapezoidal rule.
    x = np.linspace(-12.0, 12.0, 4801)
    below = ndtr(x) ** prior.arms
    values = np.where(x > 0.0, 1.0 - below, -below)
    values[x == 0.0] = 0.5 - below[x == 0.0]
    return prior.mean + prior.spread * float(np.sum(values) * (x[1] - x[0]))


def kept_bound(
    prior: Prior,
    horizon: int,
    *,
    effort: float = 1.0,
    threads: int | None = None,
    progress: Progress | None = None,
    compute: bool = True,
) -> Bound | None:
    """The same as lower_bound, from the file that an earlier call left; else computed, and kept.

    compute: whether to compute what is not there; else it is None
    """
    check_prior(prior)
    horizon = check_horizon(horizon)
    header = {
        "version": VERSION,
        "prior": str(prior),
        "arms": prior.arms,
        "horizon": horizon,
        "effort": float(effort),
    }
    path = kept_path("bound", header, ".json")
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(unseal(path.read_text(encoding="utf-8"))[0])
        if kept.pop("header") == header:
            return Bound(**kept)
    if not compute:
        return None
    bound = lower_bound(prior, horizon, effort=effort, threads=threads, progress=progress)
    # What cannot be kept is computed again the next time.
    with suppress(OSError, InputError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with written(path, "a lower bound") as file:
            file.write(seal(json.dumps({"header": header, **asdict(bound)}))[0].encode())
    return bound
