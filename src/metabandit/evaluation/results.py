"""What an evaluation returns: regret with its error, per problem, over time, and in pairs.

The unit of all errors is the problem: the runs of one problem share its means, so their average
is one observation. The standard error of mean regret is the deviation of these averages divided
by the root of the number of problems, and the 95 % interval is 1.96 standard errors to each side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..families import Array
from ..tables import text_table

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of one policy.

    policy: its text
    mean_regret, standard_error: over problems of the prior, after `horizon` plays
    checkpoints, curve, curve_error: mean regret after so many plays, and its standard error
    plays: how often each arm was played, on average
    problem_regret: regret of each problem, averaged over its runs; None if they were too many
    """

    policy: str
    mean_regret: float
    standard_error: float
    checkpoints: npt.NDArray[np.int64] = field(repr=False)
    curve: Array = field(repr=False)
    curve_error: Array = field(repr=False)
    plays: Array = field(repr=False)
    problem_regret: npt.NDArray[np.float32] | None = field(repr=False)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of mean regret."""
        half = NORMAL_95 * self.standard_error
        return self.mean_regret - half, self.mean_regret + half

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; numbers that do not exist are None."""
        low, high = self.interval
        return {
            "policy": self.policy,
            "mean_regret": self.mean_regret,
            "standard_error": _or_none(self.standard_error),
            "interval": [_or_none(low), _or_none(high)],
            "plays": [float(value) for value in self.plays],
            "curve": [
                {"plays": int(at), "mean_regret": float(mean), "standard_error": _or_none(error)}
                for at, mean, error in zip(
                    self.checkpoints, self.curve, self.curve_error, strict=True
                )
            ],
        }


def _or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


@dataclass(frozen=True)
class Difference:
    """Regret of one policy minus that of another, on the same problems with the same luck."""

    mean: float
    standard_error: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the difference."""
        half = NORMAL_95 * self.standard_error
        return self.mean - half, self.mean + half

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out zero."""
        low, high = self.interval
        return low > 0.0 or high < 0.0


@dataclass(frozen=True, eq=False)
class Comparison(Sequence[Evaluation]):
    """The evaluations of several policies on the same problems, in the order given."""

    evaluations: tuple[Evaluation, ...]
    prior: str
    arms: int
    horizon: int
    method: str
    episodes: int
    runs: int
    seed: int
    start: str
    covariance: Array = field(repr=False)

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

    def difference(self, first: int | str, second: int | str) -> Difference:
        """Regret of `first` minus regret of `second`, problem by problem."""
        i, j = self._position(first), self._position(second)
        mean = self.evaluations[i].mean_regret - self.evaluations[j].mean_regret
        c = self.covariance
        variance = float(np.maximum(c[i, i] + c[j, j] - 2.0 * c[i, j], 0.0))
        problems = self.episodes // self.runs
        return Difference(mean, math.sqrt(variance / problems))

    def ranking(self) -> list[Evaluation]:
        """The evaluations by mean regret, best first."""
        return sorted(self.evaluations, key=lambda evaluation: evaluation.mean_regret)

    def rows(self) -> list[dict[str, str]]:
        """The table's cells, best first: the paired difference is to the best."""
        ranking = self.ranking()
        rows = []
        for evaluation in ranking:
            difference = self.difference(
                self.evaluations.index(evaluation), self.evaluations.index(ranking[0])
            )
            low, high = evaluation.interval
            apart = f"+{difference.mean:.4g}"
            if math.isfinite(difference.standard_error):
                apart += f" ± {NORMAL_95 * difference.standard_error:.2g}"
            rows.append(
                {
                    "policy": evaluation.policy,
                    "regret": f"{evaluation.mean_regret:.4f}",
                    "95 % interval": f"{low:.4f} to {high:.4f}" if math.isfinite(low) else "-",
                    "to the best": "" if evaluation is ranking[0] else apart,
                }
            )
        return rows

    def table(self) -> str:
        """The comparison as a text table, best first."""
        rows = self.rows()
        return text_table(list(rows[0]), [list(row.values()) for row in rows], numbers=3)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "prior": self.prior,
            "arms": self.arms,
            "horizon": self.horizon,
            "method": self.method,
            "episodes": self.episodes,
            "runs": self.runs,
            "seed": self.seed,
            "start": self.start,
            "policies": [evaluation.to_dict() for evaluation in self.evaluations],
        }
