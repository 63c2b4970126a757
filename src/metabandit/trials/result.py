"""The result of `operating_characteristics`: designs beside each other, as tables and as data."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, nearest
from ..feedback import Feedback
from ..showing import Shown
from .measures import Characteristics, rates_text


@dataclass(frozen=True, repr=False)
class Trial(Shown):
    """The operating characteristics of designs at some points.

    Attributes
    ----------
    designs : mapping
        For each design the characteristics at each point, in the order of the points.
    horizon : int
        Patients, at most.
    test, level : str and float
        The test at the end, or None, and its level.
    method : str
        `exact` or `monte-carlo`.
    prior : str
        What the designs take the success rates to be.
    feedback : Feedback
        When outcomes become known.
    minimum : int
        Patients that every arm has before a policy decides.
    looks : tuple of int
        The numbers of patients at which a trial may end; the last one is its planned end.
    boundary : tuple of float or None
        The p-value at which a trial stops at each look, if it may stop early.
    critical : mapping
        For each design the critical value of its own exact test, if that is the test.
    imbalance : float
        The share of all patients from which on an imbalance to the wrong side counts.
    fewer_than : int or None
        The number of patients that `fewer` compares with.
    """

    designs: Mapping[str, tuple[Characteristics, ...]]
    horizon: int
    test: str | None
    level: float
    method: str
    prior: str
    feedback: Feedback
    minimum: int
    looks: tuple[int, ...]
    boundary: tuple[float, ...] | None
    critical: Mapping[str, float | None]
    imbalance: float
    fewer_than: int | None

    def __getitem__(self, name: str) -> tuple[Characteristics, ...]:
        if name not in self.designs:
            raise InputError(f"no design is called {name!r}; {nearest(name, self.designs)}")
        return self.designs[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "designs": [
                {
                    "policy": name,
                    "critical_value": self.critical[name],
                    "points": [point.to_dict() for point in points],
                }
                for name, points in self.designs.items()
            ],
            "horizon": self.horizon,
            "test": self.test,
            "level": self.level,
            "method": self.method,
            "prior": self.prior,
            "feedback": self.feedback.to_dict(),
            "minimum": self.minimum,
            "looks": list(self.looks),
            "boundary": None if self.boundary is None else list(self.boundary),
            "imbalance": self.imbalance,
            "fewer_than": self.fewer_than,
        }

    def rows(self) -> list[dict[str, str]]:
        """The rows of a table for people: one per point and design."""
        found = []
        for row, point in self._begun_rows():
            row["successes"] = f"{point.successes:.3f} (sd {point.successes_sd:.2f})"
            row["patients per arm"] = " / ".join(f"{n:.1f}" for n in point.plays)
            if len(self.looks) > 1:
                row["patients"] = f"{point.patients:.1f}"
            if point.rejection is not None:
                row["rejects"] = f"{point.rejection:.4f}"
            row["chooses best"] = f"{point.correct_selection:.4f}"
            row["bias"] = " / ".join(map(signed, point.bias))
            found.append(row)
        return found

    def _begun_rows(self) -> Iterator[tuple[dict[str, str], Characteristics]]:
        """The first cells of a row about each point and design, with its characteristics."""
        for points in zip(*self.designs.values(), strict=True):
            for name, point in zip(self.designs, points, strict=True):
                yield {"rates": rates_text(point.rates), "design": name}, point

    def more_rows(self) -> list[dict[str, str]]:
        """The rows of a second table: how patients and estimates are spread."""
        found = []
        for row, point in self._begun_rows():
            spread = (point.plays_quantiles[q] for q in ("0.5", "0.05", "0.95"))
            row["patients: median (5 % to 95 %)"] = " / ".join(
                f"{middle} ({low} to {high})" for middle, low, high in zip(*spread, strict=True)
            )
            row["wrong side"] = share(point.wrong_imbalance)
            if point.fewer is not None:
                row[f"fewer than {self.fewer_than}"] = " / ".join(map(share, point.fewer))
            if point.favours is not None:
                row["rejects for each arm"] = " / ".join(map(share, point.favours))
            row["root mse"] = " / ".join(map(_root, point.mse))
            if len(point.mse) == 2:
                row["difference: bias"] = signed(point.difference_bias)
                row["root mse of it"] = _root(point.difference_mse)
            if len(self.looks) > 1:
                row["ends at each look"] = " / ".join(map(share, point.stopped))
            found.append(row)
        return found

    _align = "llr"

    def headline(self) -> str:
        points = len(next(iter(self.designs.values())))
        tested = "" if self.test is None else f", test {self.test}"
        return (
            f"{len(self.designs)} design{'s' if len(self.designs) > 1 else ''} at {points} "
            f"point{'s' if points > 1 else ''}, {self.horizon} patients{tested}, {self.method}: "
            f"{', '.join(self.designs)}"
        )

    def plot(self, axes: Any = None) -> Any:
        """Draw how likely each design's test rejects at each point, or successes if there is none.

        Returns matplotlib's axes.
        """
        from ..drawing import intervals, plot_axes

        points = len(next(iter(self.designs.values())))
        axes = plot_axes(axes, height=1.2 + min(0.3 * points, 14.0))
        key = "successes" if self.test is None else "rejection"
        series = {
            name: [(rates_text(each.rates), float(getattr(each, key)), None) for each in found]
            for name, found in self.designs.items()
        }
        title = "expected successes" if self.test is None else f"chance that {self.test} rejects"
        intervals(axes, series, x=title)
        axes.set_ylabel("success rates")
        return axes

    def records(self) -> list[dict[str, Any]]:
        """All characteristics: one record per design and point."""
        return [
            {"policy": name, **point.records()[0]}
            for name, points in self.designs.items()
            for point in points
        ]

    def csv(self) -> str:
        """All characteristics as CSV: one line per design and point, one column per number."""
        lines = self.records()
        columns = list(dict.fromkeys(key for line in lines for key in line))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        return text.getvalue()


def share(value: float | None) -> str:
    """A probability, in a cell."""
    return "-" if value is None else f"{value:.4f}"


def signed(value: float | None) -> str:
    """A bias, in a cell; without a minus before a zero."""
    return "-" if value is None else f"{round(value, 4) + 0.0:+.4f}"


def _root(mse: float | None) -> str:
    return share(None if mse is None else math.sqrt(mse))
