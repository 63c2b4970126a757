"""From past tests to a prior: fitted by maximum marginal likelihood, checked, and told (likelihood.py).

What is checked is whether the history is one that the prior could well have made. Histories with the
same plays are drawn from the prior; each arm's mean has a rank among its draws, and so a normal score.
Two figures of the history's scores are compared with those of the drawn histories: how far they are
from a normal distribution after standardising (Cramer, von Mises), which says whether the shape is
right, and the largest deviation of an arm in units of the draws' spread, which says whether there are
outliers. The smaller share of draws that are further off, twice, is the chance told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..settings import check_whole
from ..showing import Shown
from .base import Prior
from .families import Array
from .history import COUNTS, History, read_history
from .likelihood import (
    BetaBinomial,
    BetaLevels,
    FittedValue,
    Maximum,
    Model,
    NormalLevels,
    NormalNormal,
    beta_of,
)
from .parametric import Bernoulli, Gaussian, Hierarchical
from .words import rounded

ALIKE, PER_ARM, LEVELS = "alike", "per-arm", "hierarchical"
_MODELS: dict[tuple[str, bool], type[Model]] = {
    (COUNTS, False): BetaBinomial,
    (COUNTS, True): BetaLevels,
    ("means", False): NormalNormal,
    ("means", True): NormalLevels,
}
# A smaller chance is worth a warning.
_UNLIKELY = 0.01
_FEW_PROBLEMS, _DRAWS, _MOST_DRAWN = 10, 400, 4_000_000


@dataclass(frozen=True, repr=False)
class Fitted(Shown):
    """A prior that was fitted to past tests.

    Attributes
    ----------
    prior
        The prior; `str(prior)` is the text that every command takes.
    estimates
        Its mean and spread (or between and within) with 95 % intervals; per named arm if the arms
        were fitted one by one.
    plausible
        The chance that such a prior makes a history that is as far from it as this one.
    levels, differ
        The chances that tests which do not differ in level, and arms which do not differ by their
        name, look as if they did that much; None if it was not looked at.
    """

    history: History
    model: str
    prior: Prior
    estimates: Mapping[str, tuple[FittedValue, ...]]
    plausible: float
    levels: float | None = None
    differ: float | None = None
    _maxima: tuple[Maximum, ...] = field(repr=False, default=())

    @cached_property
    def shrinkage(self) -> dict[str, float]:
        """What the noise of past means does, for the arm of typical plays.

        plays: of that arm; noise: the standard deviation that it gives to a mean; raw_spread: of the
        means as observed; spread: of the true ones; kept: how much of an observed difference from the
        average is believed
        """
        noise = float(np.mean([maximum.model.noise_variance for maximum in self._maxima]))
        spread = float(np.mean([self._spread(maximum) for maximum in self._maxima]))
        return {
            "plays": float(np.median(self.history.plays)),
            "noise": math.sqrt(noise),
            "raw_spread": float(self.history.mean.std(ddof=1)),
            "spread": spread,
            "kept": spread**2 / (spread**2 + noise),
        }

    @staticmethod
    def _spread(maximum: Maximum) -> float:
        values = maximum.values
        return values.get("spread") or math.hypot(values["between"], values["within"])

    def warnings(self) -> list[str]:
        """Reasons not to trust the prior, and what to do."""
        found = []
        problems = len(self.history.problems)
        if problems < _FEW_PROBLEMS:
            found.append(
                f"The history has only {problems} test{'s' if problems > 1 else ''}, which show only roughly how much "
                f"arms differ. Ten tests give a first idea, forty a good one"
            )
        for arm, estimates in self.estimates.items():
            of = f" of {arm}" if arm else ""
            found += [self._width_warning(each, of) for each in estimates if each.name != "mean"]
        return [item for item in (*found, *self.doubts()) if item]

    def doubts(self) -> list[str]:
        """What in the history speaks against the prior, and what to do."""
        found = []
        if self.plausible < 0.05:
            found.append(
                f"The history does not fit this prior well (p = {self.plausible:.2g}): means may fall into groups, or some "
                f"arms may stand out. Look at --plot, and be careful with results for this prior"
            )
        if self.levels is not None and self.levels < _UNLIKELY:
            found.append(
                f"Tests differ in level (p = {self.levels:.1g}), so arms of one test are more alike than this prior "
                f"says; use --hierarchical"
            )
        if self.differ is not None and self.differ < _UNLIKELY:
            found.append(
                f"Arms of the same name are alike (p = {self.differ:.1g}); use --per-arm if the next test has the "
                f"same arms"
            )
        return found

    def _width_warning(self, each: FittedValue, of: str) -> str:
        if each.low == 0.0 and each.name == "between":
            return f"The history does not tell whether tests differ in level{of}; leave out --hierarchical"
        if each.low == 0.0:
            return (
                f"The history is too short to tell whether arms differ at all{of}: noise alone could explain it. Their "
                f"{each.name} may be anything up to {each.high:.3g}; before you act on this prior, try that as well "
                f"as {each.value:.3g}"
            )
        if each.high > 2.0 * each.low:
            return (
                f"The {each.name} of means{of} is known only to a factor of {each.high / each.low:.2g}; check whether "
                f"{each.low:.3g} and {each.high:.3g} lead to the same decision"
            )
        return ""

    def rows(self) -> list[dict[str, str]]:
        """The parameters as a table of texts."""
        return [
            ({"arm": arm} if arm else {})
            | {
                "parameter": each.name,
                "estimate": f"{each.value:.4g}",
                "95 % interval": f"{each.low:.4g} to {each.high:.4g}",
            }
            for arm, estimates in self.estimates.items()
            for each in estimates
        ]

    def by_arm(self) -> list[dict[str, Any]]:
        """What the history has of each arm, by name."""
        history = self.history
        found = []
        for place, name in enumerate(history.arms):
            mine = history.arm == place
            plays = float(history.plays[mine].sum())
            mean = float(history.total[mine].sum()) / plays
            found.append({"arm": name, "problems": int(mine.sum()), "plays": plays, "mean": mean})
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        parameters = {
            arm: {
                each.name: {"value": each.value, "low": each.low, "high": each.high}
                for each in estimates
            }
            for arm, estimates in self.estimates.items()
        }
        return {
            "prior": str(self.prior),
            "arms": self.prior.arms,
            "model": self.model,
            "parameters": parameters if self.model == PER_ARM else parameters[""],
            "problems": len(self.history.problems),
            "plays": float(self.history.plays.sum()),
            "by_arm": self.by_arm(),
            "plausible": self.plausible,
            "levels": self.levels,
            "differ": self.differ,
            "shrinkage": self.shrinkage,
            "warnings": self.warnings(),
            "notes": list(self.history.notes),
        }

    def resampled(self, count: int, *, seed: int = 0) -> list[Prior]:
        """Fit the prior again to histories made of the same tests, drawn with replacement.

        How much results differ between these priors is what the history leaves open.
        """
        check_whole(count, "the number of histories", 1)
        rng = np.random.default_rng(seed)
        tests = [
            np.flatnonzero(self.history.problem == each)
            for each in range(len(self.history.problems))
        ]
        if len(tests) == 1:  # arms stand for tests
            tests = [np.array([each]) for each in range(len(self.history.plays))]
        found: list[Prior] = []
        while len(found) < count:
            drawn = self.history.take(
                [tests[each] for each in rng.integers(len(tests), size=len(tests))]
            )
            try:
                maxima = _maximise(drawn, self.model, self.history.arms)
            except InputError:
                continue  # no success at all, say, or an arm that was not drawn
            found.append(_make_prior(drawn, self.model, maxima, self.prior.arms))
        return found

    def headline(self) -> str:
        tests = len(self.history.problems)
        return f"{self.prior}, {self.prior.arms} arms, from {tests} test{'s' if tests > 1 else ''}"

    def records(self) -> list[dict[str, Any]]:
        """The parameters as numbers."""
        return [
            ({"arm": arm} if arm else {})
            | {"parameter": each.name, "value": each.value, "low": each.low, "high": each.high}
            for arm, estimates in self.estimates.items()
            for each in estimates
        ]

    def remarks(self) -> list[str]:
        return [*self.history.notes, *self.warnings()]

    def plot(self, axes: Any = None) -> Any:
        """Draw means as observed beside what the prior expects, the noise of the plays included.

        Returns matplotlib's axes.
        """
        from ..drawing import SKY, density, plot_axes

        rng = np.random.default_rng(0)
        drawn = self._drawn(rng, max(200, 50_000 // len(self.history.plays)))
        if self.history.kind == COUNTS:  # bins would hold more or fewer of the whole numbers
            drawn = drawn + rng.uniform(-0.5, 0.5, drawn.shape)
        drawn = drawn / self.history.plays
        true = self.prior.family.mean(self.prior.draw(np.random.default_rng(1), 50_000)).ravel()
        axes = plot_axes(axes, 7.0, 4.0)
        ends = density(
            axes,
            {
                "the prior, with the noise of as many plays": drawn.ravel(),
                "the prior: true means": true,
            },
            x="mean reward of an arm",
            inside=self.history.mean,
        )
        label = "history: means as observed"
        axes.hist(
            self.history.mean, ends, density=True, color=SKY, alpha=0.5, label=label, zorder=0
        )
        axes.set_title(f"{self.prior}, fitted to {len(self.history.problems)} tests", fontsize=9)
        axes.legend(fontsize=8)
        return axes

    def _drawn(self, rng: np.random.Generator, count: int) -> Array:
        return _simulate(self.history, self.model, self._maxima, rng, count)


def fit_prior(
    history: str | Path | Mapping[str, Iterable[Any]],
    *,
    per_arm: bool = False,
    hierarchical: bool = False,
    columns: Mapping[str, str] | None = None,
) -> Fitted:
    """Fit a prior to past tests: how much arms really differ, without the noise of their results.

    Parameters
    ----------
    history
        A CSV file, or columns by name (a data frame, or a dict of lists). One row per arm of a test,
        with columns such as test, variant, sent, clicks; or one row per test with two columns per
        arm, such as "A sent" and "A clicks"; or one row per play, with its reward; or means with
        their standard errors and plays.
    per_arm
        Whether each named arm has a distribution of its own.
    hierarchical
        Whether tests differ in level, with arms around it.
    columns
        The columns by their role (problem, arm, plays, successes, mean, error, deviation, reward),
        where their titles do not say it.

    Returns
    -------
    Fitted
        The prior with intervals, a check of fit, and warnings.

    Examples
    --------
    >>> import metabandit as mb
    >>> past = {"test": [1, 1, 2, 2, 3, 3], "sent": [1000] * 6, "clicks": [31, 52, 18, 40, 61, 29]}
    >>> fitted = mb.fit_prior(past)
    >>> str(fitted.prior), fitted.prior.arms
    ('bernoulli:alpha=7.8...,beta=195...', 2)
    """
    known = read_history(history, columns)
    if per_arm and hierarchical:
        raise InputError("a prior is fitted per arm or with a level per test, not both")
    model = PER_ARM if per_arm else LEVELS if hierarchical else ALIKE
    _check(known, model)
    maxima = _maximise(known, model, known.arms)
    names = known.arms if per_arm else ("",)
    return Fitted(
        history=known,
        model=model,
        prior=_make_prior(known, model, maxima, known.arms_per_problem),
        estimates={name: tuple(each.estimates()) for name, each in zip(names, maxima, strict=True)},
        plausible=_plausible(known, model, maxima),
        levels=_levels_chance(known, maxima[0]) if model == ALIKE else None,
        differ=_names_chance(known, maxima[0]) if model == ALIKE else None,
        _maxima=tuple(maxima),
    )


def _check(history: History, model: str) -> None:
    if len(history.plays) < 3:
        raise InputError(
            f"{history.name} has {len(history.plays)} arms in all: the spread of arms cannot be told from "
            f"so few; describe the prior instead, as in bernoulli:low=0.01,high=0.05"
        )
    sizes = np.bincount(history.problem.astype(int))
    if model == LEVELS and (len(sizes) < 3 or sizes.max() < 2):
        raise InputError(
            f"{history.name} has {len(sizes)} tests with up to {sizes.max()} arms; a level per test takes "
            f"at least 3 tests, some with several arms. Leave out --hierarchical"
        )
    few = [name for place, name in enumerate(history.arms) if (history.arm == place).sum() < 3]
    if model == PER_ARM and few:
        raise InputError(
            f"{history.name} has the arm {few[0]!r} in fewer than 3 tests; arms of their own need "
            f"the same names in every test. Leave out --per-arm"
        )


def _maximise(history: History, model: str, arms: tuple[str, ...]) -> list[Maximum]:
    if history.kind == COUNTS:
        for total, what in ((history.total, "success"), (history.plays - history.total, "failure")):
            if not total.any():
                raise InputError(
                    f"{history.name} has no {what} at all, so it does not show how much arms differ; describe "
                    f"the prior instead, as in bernoulli:low=0.001,high=0.01"
                )
    parts = [history]
    if model == PER_ARM:
        places = [np.flatnonzero(history.arm == place) for place in range(len(arms))]
        if min(map(len, places)) < 2:
            raise InputError("an arm is missing")
        parts = [history.take([[each] for each in place]) for place in places]
    return [Maximum(_MODELS[history.kind, model == LEVELS](part)) for part in parts]


def _make_prior(history: History, model: str, maxima: list[Maximum], arms: int) -> Prior:
    found = [{key: rounded(value) for key, value in each.values.items()} for each in maxima]
    arms = len(found) if model == PER_ARM else max(arms, 2)
    noise = 0.0
    if history.kind != COUNTS:
        # The variance of single rewards, from the standard errors.
        single = history.error**2 * history.plays
        noise = rounded(math.sqrt(float(np.average(single, weights=history.plays))))
    if model == LEVELS:
        more = {"family": "gaussian", "noise": noise} if noise else {}
        return Hierarchical(arms, **found[0], **more)  # type: ignore[arg-type]
    if noise:
        if model == PER_ARM:
            raise InputError("means are fitted for all arms alike; leave out --per-arm")
        return Gaussian(arms, **found[0], noise=noise)
    pairs = [beta_of(each["mean"], each["spread"]) for each in found]
    alpha, beta = ([rounded(value) for value in values] for values in zip(*pairs, strict=True))
    return Bernoulli(arms, alpha=alpha, beta=beta)


def _simulate(
    history: History, model: str, maxima: Iterable[Maximum], rng: np.random.Generator, count: int
) -> Array:
    """Reward sums of drawn histories, [history, entry]."""
    drawn = np.empty((count, len(history.plays)))
    for place, each in enumerate(maxima):
        mine = history.arm == place if model == PER_ARM else slice(None)
        drawn[:, mine] = each.model.simulate(list(each.values.values()), rng, count)
    return drawn


def _plausible(history: History, model: str, maxima: list[Maximum]) -> float:
    """The chance of a history as far from its prior as this one (see above)."""
    from scipy.special import ndtr, ndtri

    rng = np.random.default_rng(0)
    entries = len(history.plays)
    count = int(np.clip(_MOST_DRAWN // entries, 99, _DRAWS))
    sums = np.vstack([history.total, _simulate(history, model, maxima, rng, count)])
    if history.kind == COUNTS:  # equal counts are put in a random order
        sums = sums + rng.random(sums.shape)
    ranks = sums.argsort(axis=0).argsort(axis=0)
    scores = ndtri((ranks + 0.5) / (count + 1.0))
    scores = np.sort((scores - scores.mean(axis=1, keepdims=True)), axis=1)
    # All are alike in a history that is the furthest in every entry.
    scores /= scores.std(axis=1, keepdims=True) + 1e-300
    expected = (np.arange(entries) + 0.5) / entries
    shape = ((ndtr(scores) - expected) ** 2).sum(axis=1)
    center, width = sums[1:].mean(axis=0), sums[1:].std(axis=0) + 1e-300
    furthest = np.abs((sums - center) / width).max(axis=1)
    chances = [(figure[1:] >= figure[0]).mean() for figure in (shape, furthest)]
    return min(1.0, 2.0 * float(min(chances)))


def _levels_chance(history: History, maximum: Maximum) -> float | None:
    """The likelihood ratio test of a level per test; half its distribution is at 0, the boundary."""
    from scipy.special import chdtrc

    sizes = np.bincount(history.problem.astype(int))
    if len(sizes) < 3 or sizes.max() < 2:
        return None
    wider = Maximum(_MODELS[history.kind, True](history))
    ratio = 2.0 * (maximum.loss - wider.loss)
    return 0.5 * float(chdtrc(1, ratio)) if ratio > 0.0 else 1.0


def _names_chance(history: History, maximum: Maximum) -> float | None:
    """The likelihood ratio test of a distribution per named arm."""
    from scipy.special import chdtrc

    counts = np.bincount(history.arm.astype(int))
    if len(counts) < 2 or counts.min() < 3:
        return None
    try:
        each = _maximise(history, PER_ARM, history.arms)
    except InputError:
        return None
    ratio = 2.0 * (maximum.loss - sum(one.loss for one in each))
    return float(chdtrc(2 * (len(counts) - 1), max(ratio, 0.0)))
