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

**A correction** theta(i, m_i, c_i) x (T - i - 1)(E[m_{i+1}] - m_{i+1}) with mean zero makes f tighter.
The bound is convex in theta, which is learned by stochastic subgradients, on scenarios of its own.

**Little noise.** Let F be what the policy "largest index" gets with the same penalties: its mean is
T E[max mu] - R, and R, that policy's regret, is found precisely by long simulation. With the best value in hindsight H,
T E[max mu] - mean(H) + b (mean(F) - T E[max mu] + R) is the estimate, b a regression coefficient.

**The Lagrangian bound** lets plays exceed one per step, at prices l_t: V* <= sum_t l_t + sum_k V_k(l), with
V_k(l) the value of arm k alone when a play at time t costs l_t. Good for many arms and few plays. The
prices are found by a smoothed maximum and L-BFGS; the bound is computed without smoothing.

Which of the three is reported is decided on other scenarios than those that give the figure.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..files import written
from ..journal import seal, unseal
from ..memory import check_memory
from ..priors import Bernoulli, Gaussian, Prior, check_prior, read_prior
from ..priors.base import check_positive
from ..priors.families import Array
from ..progress import Told, with_progress
from ..settings import check_horizon, check_seed, check_threads
from ..showing import Shown
from .gittins import gaussian_moves, solve_gaussian
from .induction import Progress

# A change of this file that changes figures makes it another version: kept bounds are computed again.
VERSION = 1

BOUND = "bound"
CHARGE, CORRECTED, LAGRANGIAN = "charge", "corrected charge", "Lagrangian"
AT_ONCE = "immediate feedback"

# Prices of a table: as many as fit in half a gigabyte, within these.
_FEWEST_PRICES, _MOST_PRICES = 48, 400
_TABLE_ENTRIES = 2**27
_PRICES_AT_ONCE = 64

# Corrections: how many levels of the charge, scenarios of a step, and the step's size at first.
_CHARGE_LEVELS = 8
_BATCH = 64
_RATE = 0.02

# Scenarios that a task takes on, as a share of the seconds of effort 1 on one core.
_LEARN, _CHOOSE, _REPORT, _PLAY = 24.0, 3.0, 12.0, 10.0
# More are not worth their while with effort 1, however short.
_MOST_STEPS, _MOST = 2000, 400_000
# Scenarios at once: about so many seconds.
_AT_ONCE = 0.02
_SHORT = 0.004


@dataclass(frozen=True, repr=False)
class Bound(Shown):
    """A floor under the regret of every policy, where the optimum is out of reach.

    method: "charge", "corrected charge" or "Lagrangian", the best of which is reported; or "immediate
        feedback", the optimum with it where that with the feedback asked for is out of reach
    expected_reward: no policy can expect more
    regret, standard_error: no policy has less regret; its standard error if it is sampled, else 0
    policy_regret: that of the index policy on which the charge bound rests, for comparison
    feedback: what the floor was asked for; the bound is that for immediate feedback, which holds for any
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
        The number of arms, if the prior is a text that does not say it.
    effort : float
        How much is computed; 1 is about a quarter of a minute on two cores.
    seed : int
        The same seed gives the same bound, whatever the number of threads.
    threads : int, optional
        All cores by default.
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
    effort = check_positive(effort, "the effort of a lower bound")
    seed = check_seed(seed)
    begin = time.perf_counter()
    with _Scenarios(prior, horizon, seed, check_threads(threads)) as scenarios:
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


def _best_of(
    prior: Prior, horizon: int, effort: float, scenarios: _Scenarios, progress: Progress | None
) -> tuple[str, float, float, float]:
    """Method, bound and its standard error, and the regret of the index policy."""
    cost, episode = _seconds(prior, horizon)
    steps = math.ceil(effort * min(_LEARN / cost / _BATCH, _MOST_STEPS))
    chosen_on = max(math.ceil(effort * min(_CHOOSE / cost, 0.1 * _MOST)), 64)
    reported_on = max(math.ceil(effort * min(_REPORT / cost, _MOST)), 128)
    episodes = max(math.ceil(effort * min(_PLAY / episode, 5.0 * _MOST)), 4000)

    def report(done: float) -> None:
        if progress is not None:
            progress(round(1000 * done), 1000)

    report(0.0)
    most = horizon * _expected_best(prior)
    theta = scenarios.learn(steps, lambda share: report(0.5 * share))
    plain, corrected = (
        scenarios.values("choose", chosen_on, some) for some in (np.zeros_like(theta), theta)
    )
    better = np.mean(corrected[1] - corrected[0]) < np.mean(plain[1] - plain[0])
    method, pilot = (CORRECTED, corrected) if better else (CHARGE, plain)
    if not better:
        theta = np.zeros_like(theta)
    # Of H on F; without scatter F is exact by itself.
    covariance = np.cov(pilot)
    weight = float(covariance[0, 1] / covariance[0, 0]) if covariance[0, 0] > 0.0 else 0.0
    report(0.6)
    if isinstance(prior, Bernoulli) and _suits_lagrangian(prior, horizon):
        first, _ = scenarios.regret("choose", max(episodes // 8, 1000))
        estimate = _estimate(most, pilot, weight, first)
        lagrangian = most - lagrangian_prices(prior, horizon, scenarios.map)[0]
        if lagrangian > estimate:
            policy_regret, _ = scenarios.regret("report", episodes)
            report(1.0)
            return LAGRANGIAN, lagrangian, 0.0, policy_regret
    report(0.7)
    values = scenarios.values("report", reported_on, theta)
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


def _seconds(prior: Prior, horizon: int) -> tuple[float, float]:
    """About the seconds of a scenario and of an episode of the index policy, on one core.

    They depend on the task only, so that the same is computed on every machine.
    """
    pulls = prior.arms * horizon
    slow = 1.0 if isinstance(prior, Bernoulli) else 2.0
    scenario = 1.5e-7 * slow * pulls * (1.0 + horizon / 1000.0)
    return 2e-6 + scenario, 1e-6 + 3e-8 * slow * (horizon + prior.arms)


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


class _Scenarios:
    """Scenarios of a prior, on several threads: what depends on the seed does not on the threads."""

    def __init__(self, prior: Prior, horizon: int, seed: int, threads: int) -> None:
        from ..kernels import bounds

        self.kernel = bounds
        self.prior = prior
        self.horizon = horizon
        self.seed = seed
        self.pool = ThreadPoolExecutor(threads)
        self.local = threading.local()
        # So many problems are drawn at once, fewer where each is large.
        self.group = min(max(2**20 // prior.arms, 128), 8192)
        problems = prior.draw(np.random.default_rng([seed, 0]), self.group)
        best = np.max(prior.regret_means(problems), axis=1)
        if isinstance(prior, Bernoulli):
            self.arms = self._bernoulli(prior, best)
        else:
            assert isinstance(prior, Gaussian)
            self.arms = self._gaussian(prior, best)

    def __enter__(self) -> _Scenarios:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)

    def map(self, work: Callable[[int], Any], count: int) -> list[Any]:
        """Do items 0, 1, ... on the threads."""
        if count == 1:
            return [work(0)]
        return list(self.pool.map(work, range(count)))

    def stream(self, name: str) -> np.uint64:
        """The seed of a kind of scenarios."""
        digest = hashlib.sha256(f"{self.seed} {name}".encode()).digest()
        return np.uint64(int.from_bytes(digest[:8], "little"))

    def _levels(self, best: Array, prices: Array) -> dict[str, Any]:
        """What corrections go by: pulls by powers of the root of 2, charges by how often they occur."""
        pulls = np.floor(2.0 * np.log2(np.arange(self.horizon) + 1.0))
        level = np.unique(pulls, return_inverse=True)[1].astype(np.int64)
        ends = np.quantile(best, np.arange(1, _CHARGE_LEVELS) / _CHARGE_LEVELS)
        charge_level = np.searchsorted(ends, prices, side="right").astype(np.int64)
        charge_level[-1] = _CHARGE_LEVELS - 1
        cells = (int(level[-1]) + 1) * self.kernel.DISTANCES * _CHARGE_LEVELS
        return {"level": level, "charge_level": charge_level, "cells": cells}

    def _bernoulli(self, prior: Bernoulli, best: Array) -> Any:
        horizon = self.horizon
        means = list(zip(prior.alpha, prior.beta, strict=True))
        kinds = list(dict.fromkeys(means))
        pairs = math.comb(horizon + 1, 2)
        fitting = _TABLE_ENTRIES // (pairs * len(kinds))
        count = min(max(fitting, _FEWEST_PRICES), _MOST_PRICES)
        check_memory(
            (4 * count + 8) * pairs * len(kinds),
            f"a lower bound for {horizon} plays",
            "choose a shorter horizon",
        )
        # An arm whose charge is below what the best arm ever has is not worth a table.
        low = max(0.0, float(np.quantile(best, 0.0005)) - 0.1)
        prices = np.linspace(low, 1.0, count)
        n, s = np.tril_indices(horizon)
        slope = np.empty((len(kinds), pairs, count), np.float32)
        index = np.empty((len(kinds), pairs))
        for row, (a, b) in enumerate(kinds):
            index[row] = np.minimum((a + s) / (a + b + n), low)
        groups = [
            (row, begin)
            for row in range(len(kinds))
            for begin in range(0, count - 1, _PRICES_AT_ONCE)
        ]

        def solve(item: int) -> None:
            row, begin = groups[item]
            some = prices[begin : begin + _PRICES_AT_ONCE + 1]
            self.kernel.charge_bernoulli(
                horizon,
                *kinds[row],
                some,
                np.zeros((horizon + 1, len(some))),
                np.empty(len(some)),
                slope[row, :, begin : begin + len(some)],
                index[row],
            )

        self.map(solve, len(groups))
        none = np.zeros(1)
        return self.kernel.Arms(
            family=self.kernel.BERNOULLI,
            horizon=horizon,
            kind=np.array([kinds.index(mean) for mean in means]),
            first=np.array([a for a, _ in kinds]),
            second=np.array([b for _, b in kinds]),
            low=low,
            step=float(prices[1] - prices[0]),
            index=index,
            slope=slope,
            noise=1.0,
            deviation=none,
            move=none,
            bonus=none,
            value=np.zeros((1, 1)),
            point=none,
            chance=none,
            **self._levels(best, prices),
        )

    def _gaussian(self, prior: Gaussian, best: Array) -> Any:
        from scipy.special import ndtr

        kernel, horizon = self.kernel, self.horizon
        deviation, move = gaussian_moves(horizon, prior.spread, prior.noise)
        value, bonus = solve_gaussian(horizon, prior.spread, prior.noise)
        inner = np.arange(-kernel.FURTHEST, kernel.FURTHEST + 1e-9, kernel.WIDTH)
        ends = np.concatenate([[-np.inf], inner, [np.inf]])
        chance = np.diff(ndtr(ends))
        density = np.exp(-0.5 * ends**2) / math.sqrt(2.0 * math.pi)
        low = float(np.quantile(best, 0.0005)) - 0.2 * prior.spread
        prices = np.linspace(low, float(np.max(best)), _MOST_PRICES)
        return kernel.Arms(
            family=kernel.GAUSSIAN,
            horizon=horizon,
            kind=np.zeros(prior.arms, np.int64),
            first=np.array([prior.mean]),
            second=np.zeros(1),
            low=low,
            step=float(prices[1] - prices[0]),
            index=np.zeros((1, 1)),
            slope=np.zeros((1, 1, 2), np.float32),
            noise=prior.noise,
            deviation=deviation,
            move=move,
            bonus=bonus,
            value=value,
            point=(density[:-1] - density[1:]) / chance,
            chance=chance,
            **self._levels(best, prices),
        )

    def room(self) -> Any:
        """What a thread works in, made once."""
        if not hasattr(self.local, "room"):
            arms, horizon = self.prior.arms, self.horizon
            by_arm, by_play = (arms, horizon + 1), max(arms, horizon) + 1
            self.local.room = self.kernel.Room(
                draw=np.zeros((arms, horizon)),
                total=np.zeros(by_arm),
                index=np.zeros(by_arm),
                cell=np.zeros((arms, horizon), np.int32),
                shift=np.zeros((arms, horizon)),
                plays=np.zeros(arms, np.int64),
                best=np.zeros(arms, np.int64),
                most=np.zeros(arms),
                kept=np.zeros(by_arm, np.int64),
                size=np.zeros(arms, np.int64),
                order=np.zeros(arms, np.int64),
                choice=np.zeros(by_arm, np.int64),
                before=np.zeros(by_play),
                after=np.zeros(by_play),
            )
        return self.local.room

    def _run(
        self, name: str, first: int, count: int, theta: Array, *, chunk: int, slopes: bool
    ) -> tuple[Array, Array, Array]:
        seed = self.stream(name)
        policy, hindsight = np.empty(count), np.empty(count)
        parts = range(0, count, chunk)
        gradients = np.zeros((len(parts), len(theta) if slopes else 0))

        def work(item: int) -> None:
            part = slice(parts[item], min(parts[item] + chunk, count))
            self.kernel.scenarios(
                self.arms,
                seed,
                first + part.start,
                theta,
                policy[part],
                hindsight[part],
                gradients[item],
                self.room(),
            )

        self.map(work, len(parts))
        return policy, hindsight, np.sum(gradients, axis=0) / count

    def values(self, name: str, count: int, theta: Array) -> tuple[Array, Array]:
        """What the index policy gets in each scenario with its penalties, and the best in hindsight."""
        chunk = math.ceil(_AT_ONCE / _seconds(self.prior, self.horizon)[0])
        policy, hindsight, _ = self._run(name, 0, count, theta, chunk=chunk, slopes=False)
        return policy, hindsight

    def learn(self, steps: int, report: Callable[[float], None]) -> Array:
        """Corrections by Adam (Kingma and Ba 2015), the average of the second half of its steps."""
        size = len(self.arms.first) * self.arms.cells
        theta: Array = np.zeros(size)
        mean, square, average = np.zeros((3, size))
        # Threads take longer to begin than the scenarios of a short step.
        short = _BATCH * _seconds(self.prior, self.horizon)[0] < _SHORT
        chunk = _BATCH if short else _BATCH // 4
        for step in range(1, steps + 1):
            first = (step - 1) * _BATCH
            _, _, slope = self._run("learn", first, _BATCH, theta, chunk=chunk, slopes=True)
            mean += 0.1 * (slope - mean)
            square += 0.01 * (slope * slope - square)
            pace = _RATE * (1.0 - 0.9 * step / steps) / (1.0 - 0.9**step)
            theta = theta - pace * mean / (np.sqrt(square / (1.0 - 0.99**step)) + 1e-4)
            if 2 * step > steps:
                average += theta
            report(step / steps)
        learned: Array = average / (steps - steps // 2)
        return learned

    def regret(self, name: str, episodes: int) -> tuple[float, float]:
        """The mean regret of the index policy on problems of the prior, and its standard error."""
        seed = self.stream(f"play {name}")
        group = self.group
        regret = np.empty(episodes)

        def work(item: int) -> None:
            part = slice(item * group, min((item + 1) * group, episodes))
            rng = np.random.default_rng([int(seed), item])
            problems = self.prior.draw(rng, part.stop - part.start)
            means = np.ascontiguousarray(self.prior.regret_means(problems), dtype=np.float64)
            self.kernel.index_policy(self.arms, seed, part.start, means, regret[part], self.room())

        self.map(work, math.ceil(episodes / group))
        return float(np.mean(regret)), float(np.std(regret)) / math.sqrt(episodes)


def _suits_lagrangian(prior: Bernoulli, horizon: int) -> bool:
    """Whether the Lagrangian bound may be the best: many arms, or few plays, so that it costs nothing."""
    return horizon <= 30 or (horizon <= 8 * prior.arms and horizon <= 500)


def lagrangian_prices(
    prior: Bernoulli, horizon: int, do: Callable[[Callable[[int], Any], int], list[Any]]
) -> tuple[float, Array]:
    """The Lagrangian bound on the reward, and the price of a play at each time that gives it."""
    from scipy.optimize import fmin_l_bfgs_b

    from ..kernels import bounds

    kinds = list(Counter(zip(prior.alpha, prior.beta, strict=True)).items())
    pairs, entries = math.comb(horizon + 2, 2), math.comb(horizon + 2, 3)
    check_memory(
        (16 * pairs + 4 * entries) * len(kinds),
        f"the Lagrangian bound for {horizon} plays",
        "choose a shorter horizon",
    )
    rooms = [
        (np.empty(pairs), np.empty(entries, np.float32), np.empty(pairs), np.empty(horizon))
        for _ in kinds
    ]

    def bound(prices: Array, warmth: float) -> tuple[float, Array]:
        def arm(item: int) -> float:
            (a, b), _ = kinds[item]
            value: float = bounds.lagrange(horizon, a, b, prices, warmth, *rooms[item])
            return value

        values = do(arm, len(kinds))
        total, slope = float(np.sum(prices)), np.ones(horizon)
        for value, room, (_, count) in zip(values, rooms, kinds, strict=True):
            total += count * value
            slope -= count * room[3]
        return total, slope

    prices = np.full(horizon, 0.8 * prior.expected_best())
    least, best = np.inf, prices
    for warmth in (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003):
        prices = fmin_l_bfgs_b(bound, prices, args=(warmth,), m=20, maxiter=60)[0]
        value = bound(prices, 0.0)[0]
        if value < least:
            least, best = value, prices
    return float(least), best


def _kept_path(header: dict[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()[:16]
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "metabandit" / f"bound-{digest}.json"


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
    path = _kept_path(header)
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
