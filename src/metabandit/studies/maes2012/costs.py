"""The tables of a reproduction that are about the work: formula classes and computing time."""

from __future__ import annotations

from ...report.content import Cell, Cells, ReportTable, row, significant
from . import paper
from .findings import Findings
from .paper import HORIZONS

_KINDS = {
    "learn": "learning and tuning",
    "classes": "formula classes",
    "search": "searching formulas",
    "test": "testing",
    "curve": "learning curves",
    "better": "classes that beat generic policies",
    "sooner": "time of equal effort",
    "floor": "floors",
    "exact": "exact values",
}


def _full(findings: Findings) -> bool:
    """Whether budgets are the paper's; with others there is nothing to compare."""
    return findings.records.scale == "paper"


def class_counts(findings: Findings) -> ReportTable | None:
    """How many formulas and classes there are, by length."""
    found = findings.get("classes")
    if found is None:
        return None
    rows = [row(*line.values()) for line in found["counts"]]
    rows.append(row("all", *found["totals"].values()))
    if _full(findings):
        theirs = [paper.COUNTS.get(name) for name in found["totals"]]
        rounded = [
            item if item is None or item == paper.COUNTS["classes"] else Cell(f"≈ {item:,}", item)
            for item in theirs
        ]
        rows.append(row("paper", *rounded))
    return ReportTable(
        "classes-count",
        "Formulas and their classes, by length",
        tuple(found["counts"][0]),
        tuple(rows),
        align="r",
        caption="invalid: a value is not finite; distinct: values that no shorter or earlier formula has; "
        "classes: ways to rank arms, five at a time with a common t, with equal values as ties; the paper does "
        "not say how its 1024 samples are grouped, nor when values are equal.",
    )


def _better(findings: Findings, horizon: int) -> Cells | None:
    found = findings.get(f"better/{horizon}")
    if found is None:
        return None
    theirs = paper.BETTER[horizon]
    surely = f"{found['surely']:,} of them surely; " if "surely" in found else ""
    how = "exactly" if found["method"] == "exact" else f"on {found['problems']:,} problems"
    return row(
        f"classes that beat every generic policy, T = {horizon}",
        found["classes"],
        Cell(f"about {theirs}" if _full(findings) else "", theirs),
        f"{surely}{found['strategies']:,} that play differently; the best generic policy is "
        f"{found['rival']} with {found['rival_regret']:.4g}; compared {how}",
    )


def _sooner(findings: Findings, horizon: int) -> Cells | None:
    found = findings.get(f"sooner/{horizon}")
    if found is None:
        return None
    low, high = paper.SOONER
    ratio = found["equal_seconds"] / found["search_seconds"]
    episodes = found["equal_episodes"] / found["search_episodes"]
    return row(
        f"how many times faster the bandit search is, T = {horizon}",
        Cell(significant(ratio, 2), ratio),
        Cell(f"{low} to {high}" if _full(findings) else "", low),
        f"{found['equal_seconds']:,.0f} s for equal effort (from {found['played']} classes) against "
        f"{found['search_seconds']:,.0f} s; by episodes, {episodes:,.0f} times: with equal effort many "
        f"classes play in step, which takes less time per episode",
    )


def search_worth(findings: Findings) -> ReportTable:
    """What the search for formulas is worth."""
    rows = [make(findings, horizon) for make in (_better, _sooner) for horizon in HORIZONS[1:]]
    said = "The paper's figures are for its own budgets, and left out here."
    return ReportTable(
        "classes-better",
        "What the search is worth",
        ("question", "here", "paper", "note"),
        tuple(cells for cells in rows if cells is not None),
        align="lrrl",
        caption="" if _full(findings) else said,
    )


def learning_times(findings: Findings) -> ReportTable | None:
    """How long learning takes, beside the paper."""
    if not _full(findings):
        return None
    rows = []
    for (what, horizon), (seconds, cores) in paper.SECONDS.items():
        name = f"learn/power-1/{horizon}" if what == "power-1" else f"search/paper/{horizon}"
        if name not in findings.records:
            continue
        ours, threads = (findings.records[name][key] for key in ("seconds", "threads"))
        if what == "formulas" and "classes" in findings.records:
            ours += findings.records["classes"]["seconds"]
        faster, per_core = seconds / ours, seconds * cores / (threads * ours)
        rows.append(
            row(
                f"{'Power-1' if what == 'power-1' else 'formulas'}, T = {horizon}",
                Cell(f"{ours:,.0f} s on {threads} thread{'s' if threads > 1 else ''}", ours),
                Cell(f"{_duration(seconds)} on {cores} core{'s' if cores > 1 else ''}", seconds),
                Cell(f"{faster:,.0f}", faster),
                Cell(f"{per_core:,.0f}", per_core),
            )
        )
    return ReportTable(
        "times-learning",
        "Time to learn",
        ("what", "here", "paper", "times as fast", "per core"),
        tuple(rows),
        caption="The paper's cores ran at 1.9 GHz. Ours are shared with others, so times vary; those of the "
        "formulas include making the classes.",
    )


def step_times(findings: Findings) -> ReportTable:
    """How long each kind of step took."""
    rows = []
    for kind, label in _KINDS.items():
        done = [record for record in findings.records.values() if record["kind"] == kind]
        if done:
            longest = max(done, key=lambda record: record["seconds"])
            note = f"{longest['id']} ({_duration(longest['seconds'])})"
            rows.append(row(label, len(done), _total(done), note))
    everything = list(findings.records.values())
    rows.append(row("all", len(everything), _total(everything), ""))
    columns = ("part", "steps", "time", "longest")
    return ReportTable("parts", "Time of each part", columns, tuple(rows), align="lrrl")


def _total(records: list[dict[str, float]]) -> Cell:
    total = sum(record["seconds"] for record in records)
    return Cell(_duration(total), total)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
