"""A person's past problems as a prior, from a CSV file or an array.

The means may be shares of counted plays, and so noisy. A share of n plays is a multiple of 1/n. Means of d decimals are multiples of 10^-d anyway, and close to
multiples of 1/n for any large n; but that m means are all within h = 10^-d/2 of multiples of 1/n by chance has
the probability (2 n h)^m, for one n. If it is tiny for the least such n, the means are shares of n plays. With
many decimals a row, or even a single mean, is enough; plays may then differ between tests or arms.

The noise of such a mean has the variance x (1 - x)/n on average.
"""

from __future__ import annotations

import math
from copy import copy
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, nearest
from ..settings import check_whole
from ..sheets import Sheet, read_sheet
from .base import Prior, check_arms, check_positive, check_precision, check_scale
from .families import BERNOULLI, BETA, GAUSSIAN, Array, Family, beta_parameters, gaussian_parameters
from .history import id_columns, looks_like_counts

_FEW = 20
# A share of noise that is worth a warning.
_NOISY = 0.02
_WEIGHT = "weight"
_FAMILIES = {family.name: family for family in (BERNOULLI, GAUSSIAN, BETA)}
# Plays that are looked for: fewer could be a grid that a person made up. A smaller chance is none.
_LEAST_PLAYS, _MOST_PLAYS, _CHANCE = 100, 20_000, 1e-6
# Problems, and single means, that are looked at.
_MOST_PROBLEMS, _MOST_MEANS = 100, 200
# Decimals of a number as computers keep them.
_MOST_DECIMALS = 15


class Table(Prior):
    """Past problems from a CSV file: one row per problem, one column per arm (its mean reward).

    Problems are drawn from the rows with equal probability, or in proportion to weights, and their means are
    taken for the truth. If they were measured, they are noisy: fit a prior to the counts instead (see
    `fit_prior`).

    Parameters
    ----------
    path : str, Path or array
        The file, whose first row may hold column names, and whose first columns may say which test
        a row is of; or an array [problem, arm]. A column with the title "weight" has the weights of the rows.
    arms : int, optional
        The number of arms, to be compared with the columns.
    family : {"bernoulli", "gaussian", "beta"}
        What the rewards are.
    noise : float
        Standard deviation of Gaussian rewards.
    concentration : float
        Of Beta rewards: the larger, the closer they are to their mean.
    weights : array, optional
        Of an array of problems: how often each is met, in proportion to the others.

    Examples
    --------
    >>> import metabandit as mb
    >>> past = mb.Table([[0.04, 0.05], [0.06, 0.05], [0.03, 0.07]])
    >>> past.arms, str(past)
    (2, 'table:problems=3,family=bernoulli')
    >>> often = mb.Table([[0.04, 0.05], [0.06, 0.05]], weights=[3, 1])
    >>> round(often.expected_best(), 4)
    0.0525
    """

    text_name = "table"
    keys = ("path", "family", "noise", "concentration")
    text_keys = ("path", "family")
    # The problems that a part does not have.
    held_out: Table | None = None
    # Whether a person was told that means are noisy.
    told = False

    def __init__(
        self,
        path: str | Path | npt.ArrayLike,
        *,
        arms: int | None = None,
        family: str = "bernoulli",
        noise: float = 1.0,
        concentration: float = 10.0,
        weights: npt.ArrayLike | None = None,
    ) -> None:
        self.path = Path(path) if isinstance(path, (str, Path)) else None
        if family not in _FAMILIES:
            raise InputError(f"unknown family {family!r} for a table; {nearest(family, _FAMILIES)}")
        self.family = _FAMILIES[family]
        self.noise = check_scale(noise, "noise of the table")
        self.concentration = check_positive(concentration, "concentration of the table")
        if self.path is None:
            self.means = _check_means(path, self.family)
            self.weights = _check_weights(weights, len(self.means))
        elif weights is not None:
            raise InputError(
                f"weights were given beside the file {self.path}; write them into the file, as a column with "
                f"the title weight"
            )
        else:
            self.means, self.weights = _read_problems(self.path, self.family)
        self.arms = check_whole(
            self.means.shape[1],
            f"the number of columns of {self.path or 'the table'}",
            2,
            most=10_000,
        )
        if self.family == GAUSSIAN:
            check_precision(float(np.abs(self.means).max()), self.noise)
        if arms is not None and check_arms(arms) != self.arms:
            raise InputError(
                f"{self.path or 'the table'} has {self.arms} columns, so its problems have "
                f"{self.arms} arms, not {arms}; leave out --arms"
            )

    def remarks(self) -> list[str]:
        """Why its means must be noisy, if that shows."""
        return [*super().remarks(), *self.noisy]

    @cached_property
    def noisy(self) -> tuple[str, ...]:
        """A warning if means must be noisy: shares of plays that can be told from the numbers."""
        plays = find_plays(self.means) if self.family == BERNOULLI else None
        if plays is None or (share := noise_share(self.means, plays)) < _NOISY:
            return ()
        return (
            f"The means of {self.path or 'the table'} are shares of about {plays:,.0f} plays, so {100 * share:.0f} % "
            f"of how much they differ (their variance) is noise, which a table takes for true: gains on it are "
            f"too good. Fit a prior to the counts instead: metabandit fit",
        )

    def split(self) -> Table:
        """The part to learn on: half of the problems; `held_out` is the other half, to report on.

        What is learned on problems looks better on them than on others. A table of fewer than
        20 problems is left whole.
        """
        if len(self.means) < _FEW or self.held_out is not None:
            return self
        order = np.random.default_rng(len(self.means)).permutation(len(self.means))
        half = (len(order) + 1) // 2
        part, rest = copy(self), copy(self)
        for some, rows in ((part, order[:half]), (rest, order[half:])):
            some.means = self.means[rows]
            some.weights = self.weights[rows] / self.weights[rows].sum()
        part.held_out = rest
        return part

    def expected_best(self) -> float:
        """The mean of the best arm's mean reward over the problems."""
        return float(self.average(self.means.max(axis=1)))

    @property
    def even(self) -> bool:
        """Whether all problems have the same weight."""
        return bool(np.ptp(self.weights) <= 1e-12 * self.weights[0])

    def average(self, values: Array) -> Any:
        """The mean of [problem, ...] over the problems."""
        return (
            values.mean(axis=0) if self.even else np.average(values, axis=0, weights=self.weights)
        )

    def draw(self, rng: np.random.Generator, problems: int) -> Array:
        count = len(self.means)
        means = self.means[
            rng.integers(0, count, problems)
            if self.even
            else rng.choice(count, problems, p=self.weights)
        ]
        if self.family == GAUSSIAN:
            return gaussian_parameters(means, self.noise)
        if self.family == BETA:
            return beta_parameters(means, self.concentration)
        return means[..., None]

    def settings(self) -> dict[str, Any]:
        rows = {"path": str(self.path)} if self.path else {"problems": str(len(self.means))}
        more = {"gaussian": {"noise": self.noise}, "beta": {"concentration": self.concentration}}
        name = self.family.name
        return {**rows, "family": name, **more.get(name, {})}


def reported_on(prior: Prior) -> Prior:
    """The problems that results are measured on: those that a part of a table does not have."""
    rest = prior.held_out if isinstance(prior, Table) else None
    return prior if rest is None else rest


def _read_problems(path: Path, family: Family) -> tuple[Array, Array]:
    """Mean rewards [problem, arm] from a CSV file, each checked against the family's support; and weights."""
    sheet = read_sheet(path)
    columns = [column for column in sheet.columns if column not in id_columns(sheet)]
    weighing = [column for column in columns if sheet.title(column).strip().lower() == _WEIGHT]
    if len(weighing) > 1:
        raise InputError(f"{path} has {len(weighing)} columns with the title weight; one is enough")
    columns = [column for column in columns if column not in weighing]
    if sheet.rows and len(columns) < 2:
        raise InputError(
            f"{path} has {len(columns)} column of means; a problem has at least 2 arms, one column each"
        )
    if looks_like_counts(sheet):
        raise InputError(
            f"{path} holds counts ({', '.join(filter(None, sheet.titles))}), and a table holds means; "
            f"what the counts say of such problems is a prior that `metabandit fit {path}` finds"
        )
    rows = [
        [_read_mean(sheet, row, column, family) for column in columns]
        for row in range(len(sheet.rows))
    ]
    if not rows:
        raise InputError(
            f"{path} holds no problem: one row per problem, one column per arm is expected"
        )
    weights = [
        _read_weight(sheet, row, column) for column in weighing for row in range(len(sheet.rows))
    ]
    return np.array(rows), _check_weights(weights or None, len(rows))


def _read_weight(sheet: Sheet, row: int, column: int) -> float:
    value = sheet.number(row, column, "every problem needs its weight")
    if value <= 0.0:
        raise InputError(
            f"{sheet.where(row, column)}: a weight must be greater than 0, not {value:g}; leave out "
            f"problems that are never met"
        )
    return value


def _check_weights(weights: Any, problems: int) -> Array:
    """How likely each problem is, from weights in any unit; all alike without any."""
    if weights is None:
        return np.full(problems, 1.0 / problems)
    try:
        array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "the weights of a table must be numbers, one per problem, such as [3, 1]"
        ) from None
    if array.shape != (problems,):
        raise InputError(
            f"a table has one weight per problem, so {problems} here; the weights given have the shape "
            f"{array.shape}"
        )
    if not (np.isfinite(array).all() and array.min() > 0.0):
        raise InputError(
            f"the weights of a table must be finite and greater than 0; those given reach from "
            f"{array.min():g} to {array.max():g}"
        )
    # Divided by the largest first: the sum of finite numbers need not be finite.
    array /= array.max()
    return np.asarray(array / array.sum())


def _read_mean(sheet: Sheet, row: int, column: int, family: Family) -> float:
    value = sheet.number(row, column, "every arm needs its mean reward")
    low, high = family.support
    if not low <= value <= high:
        raise InputError(
            f"{sheet.where(row, column)}: {value:g} cannot be the mean of a {family.name} reward, "
            f"which lies between {low:g} and {high:g}"
        )
    return value


def _check_means(means: Any, family: Family) -> Array:
    """Mean rewards that are given as an array [problem, arm]."""
    try:
        array = np.array(means, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("problems must be a file or an array of numbers [problem, arm]") from None
    low, high = family.support
    if array.ndim != 2 or not len(array) or array.shape[1] < 2:
        raise InputError(
            f"an array of problems has one row per problem and at least 2 columns, one per arm; "
            f"its shape is {array.shape}"
        )
    if np.isnan(array).any():
        raise InputError("every arm of every problem needs its mean reward; some are not a number")
    if not (np.isfinite(array).all() and array.min() >= low and array.max() <= high):
        raise InputError(
            f"means of {family.name} rewards must lie between {low:g} and {high:g}; those given "
            f"reach from {array.min():g} to {array.max():g}"
        )
    return array


def _decimals(means: Array) -> int:
    """Decimals with which means were written."""
    found = (-int(Decimal(repr(mean)).as_tuple().exponent) for mean in means.ravel().tolist())
    return min(max(found, default=0), _MOST_DECIMALS)


def _plays(means: Array, decimals: int) -> int | None:
    """The least number of plays of which all means are shares; None if that may be chance."""
    shares = np.unique(means)
    shares = shares[(shares > 0.0) & (shares < 1.0)]
    half = 0.5000001 * 10.0**-decimals
    # Multiples of 10^-d are as close to those of most finer grids.
    left = np.arange(2, min(_MOST_PLAYS, math.floor(0.4 * 10.0**decimals)) + 1)
    for share in shares:
        left = left[np.abs(share * left - np.rint(share * left)) <= half * left]
    plays = int(left[0]) if len(left) else 0
    # Each number of plays is a try of its own.
    chance = plays * (2.0 * plays * half) ** len(shares)
    return plays if plays >= _LEAST_PLAYS and chance <= _CHANCE else None


def find_plays(means: Array) -> float | None:
    """About the plays behind each mean of a table, [problem, arm]; None if they do not show."""
    means = means[:_MOST_PROBLEMS]
    decimals = _decimals(means)
    for parts in ([means], means, means.ravel()[:_MOST_MEANS]):
        each = [_plays(part, decimals) for part in parts]
        known = [plays for plays in each if plays is not None]
        # Some, such as 0 or 1/2, do not tell.
        if len(known) > 0.8 * len(each):
            return float(np.median(known))
    return None


def noise_share(means: Array, plays: float) -> float:
    """How much of the variance of means is noise, if each mean is the share of wins in this many plays."""
    variance = float(means.var())
    return float((means * (1.0 - means)).mean()) / plays / variance if variance else 1.0
