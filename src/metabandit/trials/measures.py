"""Operating characteristics as means over the final counts.

With the observed rates x_k = s_k/n_k and true rates p_k, at given rates or averaged over a prior:

    successes            E[s_1 + ... + s_K] and its standard deviation
    plays                E[n_k]; their distribution and quantiles
    correct_selection    P(the arm with the largest x_k has the largest p_k), ties shared evenly
    bias, mse            E[x_k - p_k], E[(x_k - p_k)^2], given that n_k > 0
    difference_bias, difference_mse   the same of x_2 - x_1 (two arms), given that both have patients
    wrong_imbalance      P(another arm has more patients than the best one, by more than a share of all)
    fewer                P(n_k < m)
    rejection            P(the test rejects): its type-I error where all p_k are equal, else its power

All but the standard deviation and the ratios are linear in the probabilities of the final states, so
that they are averaged over a prior before anything else is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from ..engine.states import Counts
from ..engine.threads import one_blas_thread
from ..priors import Bernoulli, Table
from ..priors.families import Array
from ..showing import Shown
from .final import FinalStates, Rates

# Points at which probabilities are computed at once.
_POINTS = 64
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Rates closer than this are equal.
_EQUAL = 1e-12


@dataclass(frozen=True, repr=False)
class Characteristics(Shown):
    """The operating characteristics of a design at given success rates, or averaged over a prior.

    Attributes
    ----------
    rates : tuple of float, or str
        The success rates of the arms, or the prior that they are drawn from.
    successes, successes_sd : float
        Expected successes among all patients, and their standard deviation.
    patients, patients_sd : float
        The same of the number of patients, for trials that may stop early.
    plays, plays_sd : tuple of float
        Expected patients of each arm, and their standard deviations.
    plays_quantiles : mapping
        The 0.05, 0.25, 0.5, 0.75 and 0.95 quantiles of the patients of each arm.
    wrong_imbalance : float or None
        The chance that another arm has more patients than the best one, by more than a share of all;
        None if all arms are equally good.
    fewer : tuple of float or None
        The chance that each arm has fewer patients than was asked about.
    correct_selection : float
        The chance that the arm with the best observed rate is a best one.
    rejection : float or None
        The chance that the test rejects equal rates: type-I error where they are equal, else power.
    favours : tuple of float or None
        The chance that it rejects, and the arm has the best observed rate.
    bias, mse : tuple of float
        Of the observed rate of each arm, if it has patients; None if it has none for sure.
    difference_bias, difference_mse : float or None
        Of the difference between arm 2 and arm 1, if both have patients; None for three arms.
    stopped : tuple of float
        The chance that the trial ends at each look, the last one being its planned end.
    episodes : int
        Simulated trials; 0 if the numbers are exact.
    """

    rates: tuple[float, ...] | str
    successes: float
    successes_sd: float
    patients: float
    patients_sd: float
    plays: tuple[float, ...]
    plays_sd: tuple[float, ...]
    plays_quantiles: Mapping[str, tuple[int, ...]]
    wrong_imbalance: float | None
    fewer: tuple[float, ...] | None
    correct_selection: float
    rejection: float | None
    favours: tuple[float, ...] | None
    bias: tuple[float | None, ...]
    mse: tuple[float | None, ...]
    difference_bias: float | None
    difference_mse: float | None
    stopped: tuple[float, ...]
    episodes: int = 0

    def headline(self) -> str:
        rejects = "" if self.rejection is None else f", rejects {self.rejection:.4f}"
        return f"at {rates_text(self.rates)}: {self.successes:.3f} successes{rejects}, chooses best {self.correct_selection:.4f}"

    def records(self) -> list[dict[str, Any]]:
        """One record with a column per number."""
        line: dict[str, Any] = {}
        for key, value in self.to_dict().items():
            if isinstance(value, tuple):
                line |= {f"{key}_{place}": item for place, item in enumerate(value, 1)}
            elif isinstance(value, dict):
                for q, numbers in value.items():
                    line |= {f"{key}_{q}_{arm}": n for arm, n in enumerate(numbers, 1)}
            else:
                line[key] = value
        return [line]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def rates_text(rates: Sequence[float] | str) -> str:
    """Success rates as people write them."""
    return rates if isinstance(rates, str) else ", ".join(f"{rate:g}" for rate in rates)


def _sets(arms: int) -> list[list[int]]:
    """All sets of arms that can be the best ones, if not all are; those of one arm come first."""
    every = [[arm for arm in range(arms) if bits >> arm & 1] for bits in range(1, 2**arms - 1)]
    return sorted(every, key=len)


# Functions of final counts (plays, successes, rejects), [function, state], by name.
Columns = Callable[[Counts, Counts, Array | None], dict[str, Array]]


def _columns(
    n: Counts,
    s: Counts,
    rejects: Array | None,
    *,
    imbalance: float,
    fewer_than: int | None,
    looks: Sequence[int],
) -> dict[str, Array]:
    """See `measure`, which says what is asked."""
    there = n > 0
    x = np.where(there, s / np.maximum(n, 1), 0.0)
    made, both = n.sum(axis=0), there.all(axis=0)
    # An arm without patients is never the one with the best observed rate.
    rates = np.where(there, x, -1.0)
    best_rates = rates >= rates.max(axis=0) - _EQUAL
    chosen = best_rates / best_rates.sum(axis=0)
    d = np.where(both, x[1] - x[0], 0.0)
    wrong = []
    for best in _sets(len(n)):
        lead = np.delete(n, best, axis=0).max(axis=0) - n[best].max(axis=0)
        wrong.append(lead > imbalance * made + 1e-9)
    found = {
        "there": there,
        "x": x,
        "xx": x * x,
        "both": np.stack([both, d, d * d]),
        "chosen": chosen,
        "wrong": np.stack(wrong),
        "ends": np.stack([made == look for look in looks]),
    }
    if fewer_than is not None:
        found["fewer"] = n < fewer_than
    if rejects is not None:
        found["rejects"] = np.concatenate([rejects[None], rejects * chosen])
    return {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}


def _counts_matrix(states: FinalStates, some: slice) -> Any:
    """A sparse matrix that adds probabilities up: of patients of each arm, of successes, of patients."""
    from scipy.sparse import csc_matrix

    n, s = states.plays[:, some], states.successes[:, some]
    rows = np.concatenate([n, s.sum(axis=0)[None], n.sum(axis=0)[None]])
    size = states.horizon + 1
    rows = rows + size * np.arange(len(rows))[:, None]
    begins = len(rows) * np.arange(rows.shape[1] + 1)
    shape = (len(rows) * size, rows.shape[1])
    return csc_matrix((np.ones(rows.size), rows.T.ravel(), begins), shape)


def measure(
    states: FinalStates,
    points: Sequence[Rates],
    rejects: Array | None,
    frequency: Array | None = None,
    *,
    imbalance: float,
    fewer_than: int | None,
    looks: Sequence[int],
) -> list[Characteristics]:
    """The characteristics at each point; `frequency` are simulated probabilities at the one point.

    imbalance: the share of all patients from which on an imbalance counts
    fewer_than: the patients that `fewer` compares with, if it is asked for
    looks: the numbers of patients at which a trial may end
    """
    columns = partial(_columns, imbalance=imbalance, fewer_than=fewer_than, looks=looks)
    # A table is many points, which are averaged in the end.
    flat: list[Rates] = []
    owner: list[int] = []
    for place, point in enumerate(points):
        rows = [tuple(row) for row in point.means.tolist()] if isinstance(point, Table) else [point]
        flat += rows
        owner += [place] * len(rows)
    parts = [
        _sums(states, flat[begin : begin + _POINTS], rejects, columns, frequency)
        for begin in range(0, len(flat), _POINTS)
    ]
    means = {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
    found = []
    for place, point in enumerate(points):
        mine = [at for at, whose in enumerate(owner) if whose == place]
        linear = []
        for at in mine:
            here = {name: value[:, at] for name, value in means.items()}
            chosen = flat[at]
            if isinstance(chosen, Bernoulli):
                linear.append(here | _over_prior(states, chosen, columns))
            else:
                linear.append(here | _at_rates(np.array(chosen), here))
        weights = point.weights if isinstance(point, Table) and not point.even else None
        shared = {
            key: np.average([item[key] for item in linear], axis=0, weights=weights)
            for key in linear[0]
        }
        found.append(_finish(point, shared, states.arms))
    return found


def _sums(
    states: FinalStates,
    points: Sequence[Rates],
    rejects: Array | None,
    columns: Columns,
    frequency: Array | None,
) -> dict[str, Array]:
    """The means of all columns, and the distributions, [function, point]."""
    total: dict[str, Any] = {}
    everything = [(0, frequency[:, None])] if frequency is not None else states.chunks(points)
    with one_blas_thread:
        for first, chunk in everything:
            some = slice(first, first + len(chunk))
            rejected = None if rejects is None else rejects[some]
            found = columns(states.plays[:, some], states.successes[:, some], rejected)
            stacked = np.concatenate(list(found.values())) @ chunk
            bounds = np.cumsum([len(value) for value in found.values()])[:-1]
            for name, value in zip(found, np.split(stacked, bounds), strict=True):
                total[name] = total.get(name, 0.0) + value
            counted = _counts_matrix(states, some) @ chunk
            total["counts"] = total.get("counts", 0.0) + counted
    return total


def _at_rates(p: Array, mean: Mapping[str, Array]) -> dict[str, Array]:
    """What depends on the true rates, and is linear in the probabilities of the states."""
    there, x, both = mean["there"], mean["x"], mean["both"]
    delta = p[1] - p[0]
    best = np.flatnonzero(p >= p.max() - _EQUAL).tolist()
    alike = len(best) == len(p)
    return {
        "bias": x - p * there,
        "mse": mean["xx"] - 2.0 * p * x + p**2 * there,
        "difference": np.array(
            [both[1] - delta * both[0], both[2] - 2.0 * delta * both[1] + delta**2 * both[0]]
        ),
        "correct": mean["chosen"][best].sum(),
        "unequal": np.array(0.0 if alike else 1.0),
        "wrong": np.array(0.0) if alike else mean["wrong"][_sets(len(p)).index(best)],
    }


def _over_prior(states: FinalStates, prior: Bernoulli, columns: Columns) -> dict[str, Array]:
    """The same over Beta rates: given the counts, the rates are Beta(a_k + s_k, b_k + n_k - s_k)."""
    total: dict[str, Any] = {"bias": 0.0, "mse": 0.0, "difference": 0.0}
    for first, chunk in states.chunks([prior]):
        some, weight = slice(first, first + len(chunk)), chunk[:, 0]
        n, s = states.plays[:, some], states.successes[:, some]
        a, b = np.array(prior.alpha)[:, None] + s, np.array(prior.beta)[:, None] + n - s
        mean = a / (a + b)
        square = mean * (a + 1.0) / (a + b + 1.0)
        there = n > 0
        both = there.all(axis=0)
        x = np.where(there, s / np.maximum(n, 1), 0.0)
        d, delta = x[1] - x[0], mean[1] - mean[0]
        squared = square[0] + square[1] - 2.0 * mean[0] * mean[1]
        error = np.stack([d - delta, d * d - 2.0 * d * delta + squared])
        total["bias"] += ((x - mean) * there) @ weight
        total["mse"] += ((x * x - 2.0 * x * mean + square) * there) @ weight
        total["difference"] += (error * both) @ weight
    correct, wrong = _where_best(states, prior, columns)
    return total | {"correct": correct, "wrong": wrong, "unequal": np.array(1.0)}


def _where_best(states: FinalStates, prior: Bernoulli, columns: Columns) -> Array:
    """How likely the best arm is chosen, and the imbalance is against it, over Beta rates.

    Given the counts, arm k has the rate x and all others less with the density f_k(x) prod_j F_j(x),
    which is integrated by the Gauss rule for the prior of x; without error if it is a polynomial.
    """
    from scipy.special import betainc, roots_sh_jacobi

    total = np.zeros(2)
    count = math.ceil((states.horizon + sum(prior.alpha) + sum(prior.beta)) / 2.0) + 1
    for arm in range(states.arms):
        a, b = prior.alpha[arm], prior.beta[arm]
        nodes, weights = roots_sh_jacobi(count, a + b - 1.0, a)
        weights = weights / weights.sum()
        tables = []
        for other in range(states.arms):
            if other == arm:
                tables.append(states.ratios(arm, [(x,) * states.arms for x in nodes]))
                continue
            n, s = np.tril_indices(int(states.plays[other].max(initial=0)) + 1)
            above = prior.alpha[other] + s[:, None], prior.beta[other] + (n - s)[:, None]
            tables.append(states.ratios(other, [prior]) * betainc(*above, nodes))
        for first, chunk in states.chunks_by(tables):
            some = slice(first, first + len(chunk))
            found = columns(states.plays[:, some], states.successes[:, some], None)
            total += np.stack([found["chosen"][arm], found["wrong"][arm]]) @ (chunk @ weights)
    return total


def _ratio(value: Array, by: Array) -> tuple[float | None, ...]:
    return tuple(
        float(item / share) if share > _EQUAL else None
        for item, share in zip(np.atleast_1d(value), np.atleast_1d(by), strict=True)
    )


def _moments(spread: Array) -> tuple[float, float]:
    """Mean and standard deviation of a distribution over 0, 1, ..."""
    numbers = np.arange(len(spread))
    mean = float(spread @ numbers)
    return mean, math.sqrt(float(spread @ (numbers - mean) ** 2))


def _quantiles(spread: Array) -> dict[str, tuple[int, ...]]:
    """The smallest numbers of patients that have at least these probabilities up to them."""
    upto = np.cumsum(spread, axis=1)
    return {f"{q:g}": tuple(int(np.argmax(row >= q - 1e-12)) for row in upto) for q in QUANTILES}


def _finish(point: Rates, mean: Mapping[str, Array], arms: int) -> Characteristics:
    spread = mean["counts"].reshape(arms + 2, -1)
    *each, (successes, successes_sd), (patients, patients_sd) = map(_moments, spread)
    plays, plays_sd = zip(*each, strict=True)
    difference: tuple[float | None, ...] = (None, None)
    if arms == 2:
        difference = _ratio(mean["difference"], np.repeat(mean["both"][0], 2))
    unequal = float(mean["unequal"])
    return Characteristics(
        rates=str(point) if not isinstance(point, tuple) else point,
        successes=successes,
        successes_sd=successes_sd,
        patients=patients,
        patients_sd=patients_sd,
        plays=plays,
        plays_sd=plays_sd,
        plays_quantiles=_quantiles(spread[:arms]),
        wrong_imbalance=float(mean["wrong"]) / unequal if unequal > 0.0 else None,
        fewer=tuple(map(float, mean["fewer"])) if "fewer" in mean else None,
        correct_selection=float(mean["correct"]),
        rejection=float(mean["rejects"][0]) if "rejects" in mean else None,
        favours=tuple(map(float, mean["rejects"][1:])) if "rejects" in mean else None,
        bias=_ratio(mean["bias"], mean["there"]),
        mse=_ratio(mean["mse"], mean["there"]),
        difference_bias=difference[0],
        difference_mse=difference[1],
        stopped=tuple(map(float, mean["ends"])),
    )
