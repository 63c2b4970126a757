"""The report of a reproduction: the paper's tables and pictures beside ours, made from records only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...language import length, parse
from ...priors import Bernoulli
from ...report.content import Report, Section, filled, section
from ..records import Records, report_facts
from . import figures, tables
from .paper import COLUMNS, FAMILIES, HORIZONS, table1
from .plan import PARTS, SCALES, steps

_GAUSSIAN = (
    "The table's Gaussian regret is counted against the mean of the parent Gaussian, not against the mean of the "
    "rewards, which are truncated; the paper's own definition of regret is the latter. Both are shown: the "
    "parent's mean beside the paper's figure, the true mean in the tables by horizon."
)

_METHOD = (
    "Problems have two arms; Bernoulli means, or the mean and standard deviation of the parent Gaussian, are uniform on "
    "[0, 1]. Every policy plays the same 10,000 problems, which learning never saw, 100 times each, with common random "
    "numbers (except in Table 2). Bayes-UCB plays 20 times each for T = 100 and 1000, and for T = 1000 on 1,000 problems.",
    "Learning and tuning follow the paper's Algorithm 2: 100 problems drawn once with 100 runs each, max(8 d, 40) "
    "candidates, the best quarter, 100 generations, the candidate with the lowest value ever observed. We depart from it in "
    "one thing: C of UCB1 and alpha of UCB2 move as logarithms. With C itself the Gaussians may narrow before they have come "
    "down from 2 to where C is best.",
    "Formulas have at most seven symbols and are sorted into classes by how they rank 1024 groups of five arms with a common "
    "t; values that differ by less than 1e-12 of their size are equal. UCB1-Tuned pulls the classes 10,000,000 times.",
    "t counts the plays already made; UCB1-Tuned has the variance in its minimum, as in Auer et al., where the paper prints "
    "a standard deviation; eps_n-greedy counts the play being made. These conventions reproduce the table.",
    "Our own policies start with prior-counts: every arm starts as if it had been played twice and won once, so that no play "
    "is forced. Power-1 is learned by CMA-ES on exact or fresh values, with the plays left in place of the plays made; "
    "formulas are ranked exactly (by halving for T = 1000), and the numbers in the best one are learned.",
)
_SCALES = {
    "quick": "quick: small budgets, to see that everything works; the figures are rough",
    "paper": "the paper's budgets",
}


def read_report(path: Path) -> Report:
    """The report of the records in a file."""
    return reproduction_report(Records.read(path))


def published_formulas(learned: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The paper's formulas for such problems, with the regret that it reports."""
    horizon, two = learned["horizon"], str(Bernoulli(arms=2))
    return "found in the paper (regret as it reports)", [
        {
            "formula": row.text,
            "length": length(parse(row.text)),
            "regret": row.paper["bernoulli", horizon],
        }
        for row in table1()
        if learned["arms"] == 2 and learned["prior"] == two
        if row.group == "symbolic" and row.text and row.training == horizon
    ]


def _sections(records: Records) -> list[Section]:
    """Everything that may be shown."""
    table1 = [
        *(tables.overview(records, family) for family in FAMILIES),
        tables.differences(records),
        tables.common(records),
        *(tables.detail(records, *column) for column in COLUMNS),
    ]
    formulas = [tables.class_counts(records), tables.search_worth(records)]
    times = [tables.learning_times(records), tables.step_times(records)]
    over_time = [figures.regret_curves(records, horizon) for horizon in HORIZONS[1:]]
    learning = [figures.learning_curve(records, horizon) for horizon in HORIZONS[1:]]
    lengths = [figures.formula_lengths(records, horizon) for horizon in HORIZONS]
    above = "How far each policy is from the best possible one"
    return [
        section("result", above, [tables.best(records)], [figures.above_floor(records)]),
        section("table1", "Table 1", table1, paragraphs=(*tables.tally(records), _GAUSSIAN)),
        section("table2", "Table 2", [tables.wins(records)]),
        section("curves", "Regret over time", figures=over_time),
        section("robustness", "Robustness to the horizon", figures=[figures.robustness(records)]),
        section("learning", "Learning curves", figures=learning),
        section("maps", "What a learned policy does", figures=figures.maps(records)),
        section("formulas", "Formulas", formulas, lengths),
        section("times", "Computing time", times),
    ]


def _done(records: Records) -> str:
    """Which parts are complete, and how many steps that is."""
    scale = SCALES.get(records.scale, SCALES["paper"])
    needed = {part: {step.id for step in steps(part, scale, records.seed)} for part in PARTS}
    complete = [part for part, names in needed.items() if names <= set(records)]
    if "all" in complete:
        complete = ["all"]
    said = ", ".join(complete) or "none is complete yet"
    return f"{said} ({len(records):,} of {len(needed['all']):,} steps)"


def reproduction_report(records: Records) -> Report:
    """The whole report; parts that were not done are left out."""
    method = _METHOD if records.scale == "paper" else _METHOD[:1]
    return Report(
        "Reproduction of Maes, Wehenkel and Ernst (2012)",
        (
            "Meta-Learning of Exploration/Exploitation Strategies: The Multi-Armed Bandit Case, reproduced with "
            "metabandit, beside exact values, the Bayes-optimal floor, today's policies and metabandit's own.",
        ),
        report_facts(
            records, "all", ("parts", _done(records)), scale=_SCALES.get(records.scale, "")
        ),
        (*filled(_sections(records)), Section("method", "How it was done", method)),
    )
