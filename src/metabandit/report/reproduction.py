"""The report of a reproduction: the paper's tables and pictures beside ours, made from records only."""

from __future__ import annotations

from collections.abc import Sequence

from ..experiments import PARTS, SCALES
from ..experiments.paper import FAMILIES
from ..experiments.plan import pieces
from ..experiments.records import Records
from . import paper_figures as figures
from . import paper_tables as tables
from .content import Figure, Report, Section, Table
from .findings import Findings, columns

_GAUSSIAN = (
    "The table's Gaussian regret is counted against the mean of the parent Gaussian, not against the mean of the "
    "rewards, which are truncated; the paper's own definition of regret is the latter. Both are shown: the "
    "parent's mean beside the paper's figure, the true mean in the tables by horizon."
)
_SCALES = {
    "quick": "quick: small budgets, to see that everything works; the figures are rough",
    "paper": "the paper's budgets",
}


def _section(
    name: str,
    title: str,
    *,
    paragraphs: Sequence[str] = (),
    tables: Sequence[Table | None] = (),
    figures: Sequence[Figure | None] = (),
) -> list[Section]:
    """A section with what there is; none if there is nothing."""
    shown = tuple(table for table in tables if table is not None and table.rows)
    drawn = tuple(figure for figure in figures if figure is not None)
    if not shown and not drawn:
        return []
    return [Section(name, title, tuple(paragraphs), shown, drawn)]


def _part(records: Records) -> str:
    """The part that was done: the smallest that has all these pieces."""
    done = set(records)
    scale = SCALES.get(records.scale, SCALES["paper"])
    sizes = {part: {piece.id for piece in pieces(part, scale, records.seed)} for part in PARTS}
    fitting = [part for part in PARTS if done <= sizes[part]]
    return min(fitting, key=lambda part: len(sizes[part]), default="all")


def reproduction_report(records: Records) -> Report:
    """The whole report; parts that were not done are left out."""
    findings = Findings(records)
    sections = [
        *_section(
            "result",
            "How far each policy is from the best there can be",
            tables=[tables.best(findings)],
            figures=[figures.above_floor(findings)],
        ),
        *_section(
            "table1",
            "Table 1",
            paragraphs=[*tables.tally(findings), _GAUSSIAN],
            tables=[
                *(tables.overview(findings, family) for family in FAMILIES),
                tables.differences(findings),
                *(tables.detail(findings, *column) for column in columns()),
            ],
        ),
        *_section("table2", "Table 2", tables=[tables.wins(findings)]),
        *_section("curves", "Regret over time", figures=figures.regret_curves(findings)),
        *_section(
            "robustness",
            "Robustness to the horizon",
            figures=[figures.robustness(findings)],
        ),
        *_section("learning", "Learning curves", figures=figures.learning_curves(findings)),
        *_section("maps", "What a learned policy does", figures=figures.maps(findings)),
        *_section(
            "formulas",
            "Formulas",
            tables=tables.class_tables(findings),
            figures=figures.formula_lengths(findings),
        ),
        *_section("times", "Computing time", tables=tables.times(findings)),
    ]
    versions = {
        ", ".join(f"{name} {value}" for name, value in record["versions"].items())
        for record in records.values()
    }
    part = _part(records)
    return Report(
        "Reproduction of Maes, Wehenkel and Ernst (2012)",
        (
            "Meta-Learning of Exploration/Exploitation Strategies: The Multi-Armed Bandit Case, done anew by "
            "metabandit, beside exact values, the Bayes-optimal floor, policies of today and metabandit's own.",
        ),
        (
            ("scale", _SCALES.get(records.scale, records.scale)),
            ("seed", str(records.seed)),
            (
                "command",
                f"metabandit reproduce {part} --scale {records.scale} --seed {records.seed}",
            ),
            ("versions", "; ".join(sorted(versions))),
        ),
        tuple(sections),
    )
