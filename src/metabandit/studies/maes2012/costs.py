"""The tables of a reproduction that are about the work: formula classes and computing time."""

from __future__ import annotations

from ...report.content import Cell, Cells, ReportTable, row, significant
from ..records import Records
from . import paper
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


def _full(records: Records) -> bool:
    """Whether budgets are the paper's; with others there is nothing to compare."""
    return records.scale == "paper"


def class_counts(records: Records) -> ReportTable | None:
    """How many formulas and classes there are, by length."""
    found = records.found("classes")
    if found is None:
        return None
    rows = [row(*line.values()) for line in found["counts"]]
    rows.append(row("all", *found["totals"].values()))
    if _full(records):
        theirs = (paper.COUNTS.get(name, (None, "")) for name in found["totals"])
        rows.append(row("paper", *(Cell(said, value) for value, said in theirs)))
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


def _better(records: Records, horizon: int) -> Cells | None:
    found = records.found(f"better/{horizon}")
    if found is None:
        return None
    theirs = paper.BETTER[horizon]
    surely = f"{found['surely']:,} of them surely; " if "surely" in found else ""
    how = "exactly" if found["method"] == "exact" else f"on {found['problems']:,} problems"
    return row(
        f"classes that beat every generic policy, T = {horizon}",
        found["classes"],
        Cell(f"about {theirs}" if _full(records) else "", theirs),
        f"{surely}{found['strategies']:,} that play differently; the best generic policy is "
        f"{found['rival']} with {found['rival_regret']:.4g}; compared {how}",
    )


def _sooner(records: Records, horizon: int) -> Cells | None:
    found = records.found(f"sooner/{horizon}")
    if found is None:
        return None
    low, high = paper.SOONER
    ratio = found["equal_seconds"] / found["search_seconds"]
    episodes = found["equal_episodes"] / found["search_episodes"]
    return row(
        f"how many times faster the bandit search is, T = {horizon}",
        Cell(significant(ratio, 2), ratio),
        Cell(f"{low} to {high}" if _full(records) else "", low),
        f"{found['equal_seconds']:,.0f} s for equal effort (from {found['played']} classes) against "
        f"{found['search_seconds']:,.0f} s; by episodes, {episodes:,.0f} times: with equal effort many "
        f"classes play in step, which takes less time per episode",
    )


def search_worth(records: Records) -> ReportTable:
    """What the search for formulas is worth."""
    rows = [make(records, horizon) for make in (_better, _sooner) for horizon in HORIZONS[1:]]
    said = "The paper's figures are for its own budgets, and left out here."
    return ReportTable(
        "classes-better",
        "What the search is worth",
        ("question", "here", "paper", "note"),
        tuple(cells for cells in rows if cells is not None),
        align="lrrl",
        caption="" if _full(records) else said,
    )


def learning_times(records: Records) -> ReportTable | None:
    """How long learning takes, beside the paper."""
    if not _full(records):
        return None
    rows = []
    for (name, label), (seconds, cores) in paper.SECONDS.items():
        if name not in records:
            continue
        ours, threads = (records[name][key] for key in ("seconds", "threads"))
        if name.startswith("search") and "classes" in records:
            ours += records["classes"]["seconds"]
        faster, per_core = seconds / ours, seconds * cores / (threads * ours)
        rows.append(
            row(
                label,
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


def step_times(records: Records) -> ReportTable:
    """How long each kind of step took."""
    everything = list(records.values())
    groups = {
        label: [record for record in everything if record["kind"] == kind]
        for kind, label in _KINDS.items()
    }
    rows = []
    for label, done in (*groups.items(), ("all", everything)):
        if done:
            total = sum(record["seconds"] for record in done)
            longest = max(done, key=lambda record: record["seconds"])
            note = f"{longest['id']} ({_duration(longest['seconds'])})" if label != "all" else ""
            rows.append(row(label, len(done), Cell(_duration(total), total), note))
    columns = ("part", "steps", "time", "longest")
    return ReportTable("parts", "Time of each part", columns, tuple(rows), align="lrrl")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
