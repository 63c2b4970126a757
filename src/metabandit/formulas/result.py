"""What a search found: a ranking of formulas, the best as a policy, a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..evaluation import Comparison, evaluate
from ..expressions import Tree, latex, length, text
from ..learning.measure import Measurement
from ..policies import Policy, policy
from ..policies.file import Expression, PolicyFile, check_target
from ..tables import text_table

# The two best formulas that the paper found for each horizon (its Table 1), for the picture.
PAPER = {
    10: ("sqrt(n) * (r - 1/2)", "abs(r - 1/(n + t))"),
    100: ("r + 1/(n + 1/2)", "r + min(1/n, ln(2))"),
    1000: ("r + 3/(n + 2)", "1/n - 1/(r - 2)"),
}


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


@dataclass(frozen=True)
class Entry:
    """A formula of the ranking; `value` is that of the objective, an exact regret has no error."""

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


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found.

    entries: the ranking, best first, measured on problems that the search never saw
    of_length: the best formula of each length that was looked at
    policy, file: the best of all, refined or not, ready to be evaluated; the same as a policy file
    comparison: it beside classics, if that was wanted; floor: the least regret that any policy can have, where it is known
    strategy, classes: how, and among how many, it was found
    stopped: why the search ended: finished, time limit, interrupted
    """

    entries: tuple[Entry, ...]
    of_length: tuple[Entry, ...]
    policy: Policy
    file: PolicyFile
    comparison: Comparison | None
    floor: float | None
    strategy: str
    classes: int
    stopped: str
    seconds: float

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the best as a policy file; one that exists is overwritten only if `force` says so."""
        self.file.write(check_target(path, force=force))

    def rows(self) -> list[dict[str, str]]:
        """The ranking as a table's cells."""
        objective = None if self.file.learned is None else self.file.learned.objective
        shown = []
        for place, entry in enumerate(self.entries, 1):
            error = "exact" if entry.exact else f"±{1.96 * entry.standard_error:.4f}"
            row = {"": str(place), "formula": entry.formula, "length": str(entry.length)}
            if objective != "regret":
                row[str(objective)] = f"{entry.value:.5f}"
            row |= {"regret": f"{entry.regret:.5f}", "95 %": error}
            if self.floor:
                row["above the floor"] = f"{100 * (entry.regret / self.floor - 1):.2f} %"
            shown.append(row)
        return shown

    def table(self) -> str:
        """The ranking as text."""
        rows = self.rows()
        cells = [list(row.values()) for row in rows]
        return text_table(list(rows[0]), cells, numbers=len(rows[0]) - 2)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            **self.file.model_dump(mode="json", exclude_none=True),
            "ranking": [entry.to_dict() for entry in self.entries],
            "best_of_length": [entry.to_dict() for entry in self.of_length],
            "strategy": self.strategy,
            "classes": self.classes,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }

    def plot(self, path: str | Path) -> None:
        """A picture of regret against length: simplicity has a price, and here it is.

        It shows the best formula of each length, the paper's formulas, the classics and the floor.
        """
        target = check_picture(path, force=True)
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt

        with matplotlib.rc_context({"svg.hashsalt": "metabandit", "font.size": 10}):
            figure = _draw(self, plt)
            try:
                figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)
            except OSError as error:
                raise InputError(
                    f"the picture cannot be written to {target}: {error.strerror}"
                ) from None
            finally:
                plt.close(figure)


def check_picture(path: str | Path, *, force: bool) -> Path:
    """The path of a picture to draw; refused where something is, or nothing can be drawn."""
    target = Path(path)
    if target.suffix not in (".svg", ".png", ".pdf"):
        raise InputError(f"a picture ends in .svg, .png or .pdf, not {target}")
    if not target.parent.is_dir():
        raise InputError(f"the folder {target.parent} of {target} does not exist; make it first")
    if target.exists() and not force:
        raise InputError(f"{target} exists; choose another name, or overwrite it with --force")
    if find_spec("matplotlib") is None:
        raise InputError("a picture needs matplotlib: pip install 'metabandit[plot]'")
    return target


def _paper_formulas(found: Found) -> list[tuple[str, int, float]]:
    """Text, length and regret of the paper's formulas, each arm played once as there."""
    from ..priors import Bernoulli, prior

    origin = found.file.learned
    if origin is None or origin.horizon not in PAPER:
        return []
    problems = prior(origin.prior, arms=origin.arms)
    if not isinstance(problems, Bernoulli) or problems.arms != 2:
        return []
    made = [policy(item, start="each-once") for item in PAPER[origin.horizon]]
    if origin.horizon > 200:
        results = evaluate(made, problems, origin.horizon, episodes=100_000)
    else:
        results = evaluate(made, problems, origin.horizon, method="exact")
    return [
        (item.name, length(item.tree), result.mean_regret)
        for item, result in zip(made, results, strict=True)
        if hasattr(item, "tree")
    ]


def _draw(found: Found, plt: Any) -> Any:
    figure, axes = plt.subplots(figsize=(8.0, 4.8), layout="constrained")
    best = [entry for entry in found.of_length if entry.regret < float("inf")]
    highest = 2.2 * found.entries[0].regret
    front: list[Entry] = []
    for entry in best:
        if not front or entry.regret < front[-1].regret:
            front.append(entry)
    shown = [entry for entry in best if entry.regret <= highest]
    axes.plot(
        [entry.length for entry in shown],
        [entry.regret for entry in shown],
        "o",
        color="#56B4E9",
        label="best formula of each length",
    )
    steps = [entry for entry in front if entry.regret <= highest]
    axes.step(
        [entry.length for entry in steps] + [found.of_length[-1].length],
        [entry.regret for entry in steps] + [steps[-1].regret],
        where="post",
        color="#0072B2",
        linewidth=2,
        label="best up to a length",
    )
    for entry in steps:
        axes.annotate(
            entry.formula,
            (entry.length, entry.regret),
            xytext=(6, 8),
            textcoords="offset points",
            fontsize=8,
            color="#0072B2",
        )
    paper = [item for item in _paper_formulas(found) if item[2] <= highest]
    if paper:
        axes.plot(
            [item[1] for item in paper],
            [item[2] for item in paper],
            "^",
            color="#D55E00",
            label="found in the paper (each arm played once)",
        )
        for name, symbols, regret in paper:
            axes.annotate(
                name,
                (symbols, regret),
                xytext=(6, -3),
                textcoords="offset points",
                fontsize=8,
                color="#D55E00",
            )
    refined = [entry.refined for entry in found.entries if entry.refined is not None]
    if refined:
        lowest = min(refined, key=lambda item: item.regret)
        axes.axhline(
            lowest.regret,
            color="#CC79A7",
            linestyle="-.",
            label=f"with learned numbers: {lowest.expression}",
        )
    last = found.of_length[-1].length
    for result in found.comparison.evaluations[1:] if found.comparison else ():
        if result.mean_regret <= highest:
            axes.axhline(result.mean_regret, color="0.6", linewidth=1, linestyle="--")
            axes.annotate(
                result.policy,
                (last + 0.9, result.mean_regret),
                fontsize=8,
                ha="right",
                va="bottom",
                color="0.35",
            )
    if found.floor is not None:
        axes.axhline(found.floor, color="black", linewidth=1.5, label="Bayes-optimal floor")
    axes.set_xlim(0.5, last + 1)
    axes.set_xlabel("length of the formula (symbols)")
    origin = found.file.learned
    assert origin is not None
    axes.set_ylabel(f"regret after {origin.horizon} plays")
    axes.set_title(f"{origin.arms} arms, {origin.prior}, {origin.horizon} plays", loc="left")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.0, -0.13), ncols=2)
    axes.grid(alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure
