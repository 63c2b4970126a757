"""What a search found: a ranking of formulas, and the best as a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..data import write_data
from ..engine import Comparison
from ..language import Tree, latex, length, text
from ..learning.measure import Measurement
from ..policies import Policy
from ..policies.file import Expression, PolicyFile, check_target
from ..showing import Shown

# What records tell of a formula.
_NUMBERS = ("formula", "length", "class_size", "value", "regret", "standard_error")


@dataclass(frozen=True)
class Refined:
    """A formula whose constants were learned, and what it is worth with them and before."""

    content: Expression
    before: Measurement = field(repr=False)
    measurement: Measurement = field(repr=False)

    @property
    def expression(self) -> str:
        """The formula with names for its numbers."""
        return self.content.expression

    @property
    def parameters(self) -> Mapping[str, float]:
        """The numbers that were learned."""
        return self.content.parameters

    @property
    def regret(self) -> float:
        """Mean regret with these numbers; `before` is measured in the same way."""
        return self.measurement.evaluation.mean_regret

    @property
    def standard_error(self) -> float:
        """0 if the regret is exact."""
        return self.measurement.evaluation.standard_error

    def to_dict(self) -> dict[str, Any]:
        return {
            "expression": self.expression,
            "parameters": dict(self.parameters),
            "before": self.before.evaluation.mean_regret,
            "regret": self.regret,
            "standard_error": self.standard_error,
        }


@dataclass(frozen=True, repr=False)
class RankedFormula(Shown):
    """A formula of the ranking.

    Attributes
    ----------
    tree : Tree
        The formula.
    size : int
        How many formulas rank arms alike.
    value : float
        The value of the objective; less is better.
    regret, standard_error : float
        Mean regret, and its standard error: 0 if the regret is exact.
    refined : Refined or None
        The formula with learned constants.

    Examples
    --------
    >>> import metabandit as mb
    >>> best = mb.search(mb.Bernoulli(arms=2), horizon=10, length=4, start="each-once").entries[0]
    >>> best.formula, best.length, best.exact
    ('max(r, 1/5)', 4, True)
    """

    tree: Tree = field(repr=False)
    size: int
    value: float
    regret: float
    standard_error: float
    refined: Refined | None = None

    @property
    def formula(self) -> str:
        """The formula as text."""
        return text(self.tree)

    @property
    def latex(self) -> str:
        """The formula as LaTeX."""
        return latex(self.tree)

    @property
    def length(self) -> int:
        """Its symbols."""
        return length(self.tree)

    def headline(self) -> str:
        return f"{self.formula}: regret {self.regret:.5g}"

    def records(self) -> list[dict[str, Any]]:
        return [{key: self.to_dict()[key] for key in _NUMBERS}]

    @property
    def exact(self) -> bool:
        """Whether the regret is exact."""
        return self.standard_error == 0.0

    def to_dict(self) -> dict[str, Any]:
        low, high = (self.regret + sign * 1.96 * self.standard_error for sign in (-1.0, 1.0))
        return {
            "formula": self.formula,
            "latex": self.latex,
            "length": self.length,
            "class_size": self.size,
            "value": self.value,
            "regret": self.regret,
            "standard_error": self.standard_error,
            "interval": [low, high],
            "method": "exact" if self.exact else "monte-carlo",
            "refined": None if self.refined is None else self.refined.to_dict(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Found(Shown):
    """What a search found.

    Attributes
    ----------
    entries : tuple of RankedFormula
        The ranking, best first, measured on problems that the search never saw.
    of_length : tuple of RankedFormula
        The best formula of each length.
    policy : Policy
        The best of all, refined or not, ready to be evaluated.
    file : PolicyFile
        The same as a policy file holds it.
    comparison : Comparison or None
        The best beside classics, if that was wanted.
    floor : float or None
        The least regret that any policy can have, where it is known.
    strategy, classes : str, int
        How, and among how many classes, it was found.
    stopped : str
        Why the search ended: finished, time limit, interrupted.
    unbeaten : str or None
        The classic that is the result because no formula is better; None if one is.
    seconds : float
        How long it took.

    Examples
    --------
    >>> import metabandit as mb
    >>> found = mb.search(mb.Bernoulli(arms=2), horizon=10, length=3)
    >>> found.strategy, found.classes
    ('exact', 31)
    """

    entries: tuple[RankedFormula, ...]
    of_length: tuple[RankedFormula, ...]
    policy: Policy
    file: PolicyFile
    comparison: Comparison | None
    floor: float | None
    strategy: str
    classes: int
    stopped: str
    unbeaten: str | None
    seconds: float

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the best as a policy file; overwrite one that exists only if `force` says so."""
        self.file.write(check_target(path, force=force))

    def rows(self, *, successes: bool = False) -> list[dict[str, str]]:
        """The ranking, one dict of cells per row; with expected successes beside regret if asked."""
        objective = None if self.file.learned is None else self.file.learned.objective
        shown = []
        for place, entry in enumerate(self.entries, 1):
            error = "exact" if entry.exact else f"±{1.96 * entry.standard_error:.4f}"
            row = {"": str(place), "formula": entry.formula, "length": str(entry.length)}
            if objective != "regret":
                row[str(objective)] = f"{entry.value:.5f}"
            row["regret"] = f"{entry.regret:.5f}"
            if successes and self.comparison is not None and self.comparison.best is not None:
                reward = self.comparison.horizon * self.comparison.best
                row["successes"] = f"{reward - entry.regret:.5f}"
            row["95 %"] = error
            if self.floor:
                row["above the floor"] = f"{100 * (entry.regret / self.floor - 1):.2f} %"
            shown.append(row)
        return shown

    _align = "llr"

    def headline(self) -> str:
        origin = self.file.learned
        assert origin is not None
        return (
            f"{self.policy.name}, best of {self.classes:,} classes; {origin.horizon} plays, "
            f"{origin.arms} arms, {origin.prior}"
        )

    def records(self) -> list[dict[str, Any]]:
        """The ranking as numbers."""
        return [
            {
                **entry.records()[0],
                "above_floor": entry.regret / self.floor - 1.0 if self.floor else None,
                "refined_regret": None if entry.refined is None else entry.refined.regret,
            }
            for entry in self.entries
        ]

    def plot(self, axes: Any = None) -> Any:
        """Draw regret against length: what simplicity costs; returns matplotlib's axes."""
        from ..drawing import lengths, plot_axes

        origin = self.file.learned
        assert origin is not None
        axes = plot_axes(axes, height=4.9)
        lengths(
            self.to_dict(), published={}, levels={}, floor=self.floor, horizon=origin.horizon,
            title=f"{origin.arms} arms, {origin.prior}", axes=axes,
        )  # fmt: skip
        return axes

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            **write_data(self.file),
            "ranking": [entry.to_dict() for entry in self.entries],
            "best_of_length": [entry.to_dict() for entry in self.of_length],
            "strategy": self.strategy,
            "classes": self.classes,
            "stopped": self.stopped,
            "unbeaten": self.unbeaten,
            "seconds": round(self.seconds, 3),
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }
