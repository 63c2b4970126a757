"""What an evaluation returns: regret with its error, per problem, over time, and in pairs.

The unit of all errors is the problem: the runs of one problem share its means, so their average
is one observation. The standard error of mean regret is the deviation of these averages divided
by the root of the number of problems, and the 95 % interval is 1.96 standard errors to each side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..bayes.bounds import BOUND, Bound
from ..bayes.optimum import Optimum
from ..errors import InputError
from ..feedback import Feedback
from ..priors.families import Array
from ..showing import Shown

if TYPE_CHECKING:
    from ..drawing import Line

NORMAL_95 = 1.959963984540054

EXACT, MONTE_CARLO = "exact", "monte-carlo"


def floor_name(kind: str) -> str:
    """What tables call the floor."""
    return "lower bound" if kind == BOUND else "Bayes-optimal"


def interval_95(mean: float, error: float) -> tuple[float, float]:
    """The 95 % interval of a mean with this standard error."""
    return mean - NORMAL_95 * error, mean + NORMAL_95 * error


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Shown):
    """The result of one policy.

    Attributes
    ----------
    policy : str
        The policy as text.
    mean_regret, standard_error : float
        Mean regret over problems of the prior after `horizon` plays, and its standard error.
    simple_regret, simple_error : float
        The mean reward of the best arm minus that of the arm with the best observed mean after all plays, and
        its standard error.
    checkpoints, curve, curve_error : array
        Numbers of plays, the mean regret after each, and its standard error.
    plays : array
        How often each arm was played, on average.
    problem_regret : array or None
        The regret on each problem, averaged over its runs; None if there were too many problems, or if the mean
        over the prior was computed without drawing any.
    problem_plays : array or None
        [arm, problem]: how often each arm was played, averaged over runs; None unless `keep_plays` was given.
    """

    policy: str
    mean_regret: float
    standard_error: float
    simple_regret: float
    simple_error: float
    checkpoints: npt.NDArray[np.int64] = field(repr=False)
    curve: Array = field(repr=False)
    curve_error: Array = field(repr=False)
    plays: Array = field(repr=False)
    problem_regret: npt.NDArray[np.floating[Any]] | None = field(repr=False)
    problem_plays: npt.NDArray[np.floating[Any]] | None = field(default=None, repr=False)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of mean regret."""
        return interval_95(self.mean_regret, self.standard_error)

    def headline(self) -> str:
        low, high = self.interval
        noise = f" (95 %: {low:.5g} to {high:.5g})" if 0.0 < self.standard_error < math.inf else ""
        return f"{self.policy}: regret {self.mean_regret:.5g}{noise} after {self.checkpoints[-1]} plays"

    def records(self) -> list[dict[str, Any]]:
        """The curve: mean regret after each number of plays."""
        curve: list[dict[str, Any]] = self.to_dict()["curve"]
        return curve

    def line(self) -> Line:
        """The curve as a picture has it, with half its 95 % interval."""
        known = np.isfinite(self.curve_error).all() and self.curve_error.any()
        half = NORMAL_95 * self.curve_error if known else None
        return self.policy, self.checkpoints.tolist(), self.curve.tolist(), half  # type: ignore[return-value]

    def plot(self, axes: Any = None) -> Any:
        """Draw regret over time; returns matplotlib's axes."""
        return _plot_curves([self], {}, self.headline(), axes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; numbers that do not exist are None."""
        low, high = self.interval
        return {
            "policy": self.policy,
            "mean_regret": self.mean_regret,
            "standard_error": _or_none(self.standard_error),
            "interval": [_or_none(low), _or_none(high)],
            "simple_regret": _or_none(self.simple_regret),
            "simple_regret_error": _or_none(self.simple_error),
            "plays": [float(value) for value in self.plays],
            "curve": [
                {"plays": int(at), "mean_regret": float(mean), "standard_error": _or_none(error)}
                for at, mean, error in zip(
                    self.checkpoints, self.curve, self.curve_error, strict=True
                )
            ],
        }


def _plot_curves(
    evaluations: Sequence[Evaluation], levels: dict[str, float], title: str, axes: Any
) -> Any:
    from ..drawing import curves, plot_axes

    axes = plot_axes(axes)
    lines = [each.line() for each in evaluations]
    curves(lines, x="plays", y="mean regret", levels=levels, title=title, axes=axes)
    return axes


def evaluation_of(
    policy: str,
    checkpoints: Sequence[int],
    means: Array,
    errors: Array,
    plays: Array,
    problem_regret: npt.NDArray[np.floating[Any]] | None,
    problem_plays: npt.NDArray[np.floating[Any]] | None,
) -> Evaluation:
    """An evaluation from mean regret at each checkpoint and, last, simple regret, with errors."""
    return Evaluation(
        policy=policy,
        mean_regret=float(means[-2]),
        standard_error=float(errors[-2]),
        simple_regret=float(means[-1]),
        simple_error=float(errors[-1]),
        checkpoints=np.array(checkpoints, dtype=np.int64),
        curve=means[:-1],
        curve_error=errors[:-1],
        plays=plays,
        problem_regret=problem_regret,
        problem_plays=problem_plays,
    )


def _or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def check_successes(best: float | None, prior: object) -> None:
    """Refuse to show expected successes where the expected mean of the best arm is not known."""
    if best is None:
        raise InputError(
            f"expected successes are known for the prior bernoulli and for tables of arms that pay "
            f"0 or 1, not for {prior}"
        )


@dataclass(frozen=True)
class Difference:
    """Regret of one policy minus that of another, on the same problems with the same rewards."""

    mean: float
    standard_error: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the difference."""
        return interval_95(self.mean, self.standard_error)

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out zero."""
        low, high = self.interval
        return low > 0.0 or high < 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown, Sequence[Evaluation]):
    """The evaluations of several policies on the same problems, in the order given.

    `method` is "exact" or "monte-carlo"; an exact evaluation has no episodes. `floor` is what the
    Bayes-optimal policy has, or a lower bound, where one is known: no policy can have less. `best` is the
    expected mean of the best arm, where it is known and arms pay 0 or 1: regret is what successes lack
    to that.
    """

    evaluations: tuple[Evaluation, ...]
    prior: str
    arms: int
    horizon: int
    method: str
    episodes: int
    runs: int
    seed: int
    start: str
    feedback: Feedback
    covariance: Array = field(repr=False)
    floor: Optimum | Bound | None = field(default=None, repr=False)
    best: float | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.evaluations)

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self.evaluations)

    def __getitem__(self, which: Any) -> Any:
        """An evaluation by its position or by its policy's text."""
        return self.evaluations[self._position(which) if isinstance(which, str) else which]

    def _position(self, which: int | str) -> int:
        if isinstance(which, int):
            return which
        texts = [evaluation.policy for evaluation in self.evaluations]
        if which not in texts:
            raise InputError(f"no policy {which!r} was evaluated here, only {', '.join(texts)}")
        return texts.index(which)

    def reordered(self, order: Sequence[int]) -> Comparison:
        """The same with the evaluations in another order."""
        places = list(order)
        return replace(
            self,
            evaluations=tuple(self.evaluations[place] for place in places),
            covariance=self.covariance[np.ix_(places, places)],
        )

    def difference(self, first: int | str, second: int | str) -> Difference:
        """Regret of `first` minus regret of `second`, problem by problem."""
        i, j = self._position(first), self._position(second)
        mean = self.evaluations[i].mean_regret - self.evaluations[j].mean_regret
        if self.method == EXACT:
            return Difference(mean, 0.0)
        c = self.covariance
        variance = float(np.maximum(c[i, i] + c[j, j] - 2.0 * c[i, j], 0.0))
        return Difference(mean, math.sqrt(variance / (self.episodes // self.runs)))

    def share_of_wins(self, first: int | str, second: int | str) -> float:
        """The share of problems on which `first` has less regret; equal regret counts half.

        It needs the regret of each problem: a Monte-Carlo evaluation, or an exact one on a `Table`.
        """
        pair = [self.evaluations[self._position(which)].problem_regret for which in (first, second)]
        if pair[0] is None or pair[1] is None:
            raise InputError(
                "the regret of single problems is not known here; draw problems and evaluate on "
                "them: Table(prior.draw(rng, 10_000)[..., 0])"
            )
        return float(np.mean((pair[0] < pair[1]) + 0.5 * (pair[0] == pair[1])))

    def above_floor(self, which: int | str) -> float | None:
        """How much more regret than the floor a policy has, as a share of the floor."""
        if self.floor is None or self.floor.regret <= 0.0:
            return None
        return self.evaluations[self._position(which)].mean_regret / self.floor.regret - 1.0

    def successes(self, which: int | str) -> float | None:
        """Expected successes of a policy; None where `best` is not known."""
        if self.best is None:
            return None
        return self.horizon * self.best - self.evaluations[self._position(which)].mean_regret

    def ranking(self) -> list[Evaluation]:
        """The evaluations by mean regret, best first."""
        return sorted(self.evaluations, key=lambda evaluation: evaluation.mean_regret)

    def rows(self, *, successes: bool = False) -> list[dict[str, str]]:
        """The table's cells, best first: the paired difference is to the best. The floor is last.

        successes: whether expected successes stand beside regret
        """
        if successes:
            check_successes(self.best, self.prior)
        ranking = self.ranking()
        exact = self.method == EXACT
        digits = 6 if exact else 4
        rows = []
        for evaluation in ranking:
            position = self.evaluations.index(evaluation)
            difference = self.difference(position, self.evaluations.index(ranking[0]))
            apart = f"+{difference.mean:.4g}"
            if not exact and math.isfinite(difference.standard_error):
                apart += f" ± {NORMAL_95 * difference.standard_error:.2g}"
            row = {"policy": evaluation.policy, "regret": f"{evaluation.mean_regret:.{digits}f}"}
            if successes:
                row["successes"] = f"{self.successes(position):.{digits}f}"
            if not exact:
                low, high = evaluation.interval
                row["95 % interval"] = f"{low:.4f} to {high:.4f}" if math.isfinite(low) else "-"
            row["to the best"] = "" if evaluation is ranking[0] else apart
            above = self.above_floor(position)
            if above is not None and self.floor is not None:
                own = (1.0 + above) * self.floor.standard_error
                error = math.hypot(evaluation.standard_error, own) / self.floor.regret
                noise = f" ± {100.0 * NORMAL_95 * error:.2g}" if error > 0.0 else ""
                percent = round(100.0 * above, 2) + 0.0  # no minus before a zero
                most = "at most " if self.floor.kind == BOUND else ""
                row["above the floor"] = f"{most}{percent:+.2f}{noise} %"
            rows.append(row)
        if self.floor is not None:
            name = floor_name(self.floor.kind)
            last = {"policy": name, "regret": f"{self.floor.regret:.{digits}f}"}
            if self.floor.standard_error > 0.0:
                low, high = interval_95(self.floor.regret, self.floor.standard_error)
                last["95 % interval"] = f"{low:.4f} to {high:.4f}"
            if self.best is not None:
                last["successes"] = f"{self.floor.expected_reward:.{digits}f}"
            rows.append({title: last.get(title, "") for title in rows[0]})
        return rows

    def headline(self) -> str:
        how = "exact" if self.method == EXACT else f"{self.episodes:,} episodes"
        best = self.ranking()[0]
        policies = f"{len(self)} policies" if len(self) > 1 else "1 policy"
        return (
            f"{policies}, {self.horizon} plays, {self.arms} arms, {self.prior}, {how}; least regret: "
            f"{best.policy} ({best.mean_regret:.5g})"
        )

    def records(self) -> list[dict[str, Any]]:
        """Numbers of each policy, best first; the floor is not among them."""
        ranking = self.ranking()
        first = self.evaluations.index(ranking[0])
        found = []
        for evaluation in ranking:
            place = self.evaluations.index(evaluation)
            low, high = evaluation.interval
            apart = self.difference(place, first)
            found.append(
                {
                    "policy": evaluation.policy,
                    "mean_regret": evaluation.mean_regret,
                    "standard_error": evaluation.standard_error,
                    "low": low,
                    "high": high,
                    "to_best": apart.mean,
                    "to_best_error": apart.standard_error,
                    "above_floor": self.above_floor(place),
                    "successes": self.successes(place),
                    "simple_regret": evaluation.simple_regret,
                    **{f"plays_{arm}": plays for arm, plays in enumerate(evaluation.plays, 1)},
                }
            )
        return found

    def plot(self, axes: Any = None) -> Any:
        """Draw regret over time, best first, and the floor; returns matplotlib's axes."""
        levels = {}
        if self.floor is not None:
            levels = {floor_name(self.floor.kind): self.floor.regret}
        title = f"{self.arms} arms, {self.prior}"
        return _plot_curves(self.ranking(), levels, title, axes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        plain = ("prior", "arms", "horizon", "method", "episodes", "runs", "seed", "start")
        return {
            **{name: getattr(self, name) for name in plain},
            "feedback": self.feedback.to_dict(),
            "floor": None if self.floor is None else self.floor.to_dict(),
            "policies": [
                {
                    **evaluation.to_dict(),
                    "above_floor": self.above_floor(position),
                    "successes": self.successes(position),
                }
                for position, evaluation in enumerate(self.evaluations)
            ],
        }
