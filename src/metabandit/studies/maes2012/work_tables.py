"""The tables of a reproduction that are about the work: formula classes and computing time."""

from __future__ import annotations

from ...report.content import Cell, Table, significant
from . import paper
from .findings import Findings
from .paper import HORIZONS


def class_tables(findings: Findings) -> list[Table]:
    tables = []
    # With other budgets than the paper's there is nothing to compare.
    full = findings.records.scale == "paper"
    found = findings.get("classes")
    if found is not None:
        rows = [
            tuple(Cell(f"{value:,}", value) for value in row.values()) for row in found["counts"]
        ]
        rows.append(
            (Cell("all"), *(Cell(f"{value:,}", value) for value in found["totals"].values()))
        )
        if full:
            theirs = [paper.COUNTS.get(name) for name in found["totals"]]
            rows.append(
                (Cell("paper"), *(Cell("" if item is None else f"≈ {item:,}" if item > 99_020 else f"{item:,}", item) for item in theirs))
            )  # fmt: skip
        tables.append(
            Table(
                "classes-count",
                "Formulas and their classes, by length",
                tuple(found["counts"][0]),
                tuple(rows),
                align="r",
                caption="invalid: a value is not finite; distinct: values that no shorter or earlier formula has; "
                "classes: ways to rank arms, five at a time with a common t, with equal values as ties; the paper does not say "
                "how its 1024 samples are grouped, nor when values are equal.",
            )
        )
    rows = []
    for horizon in HORIZONS[1:]:
        better = findings.get(f"better/{horizon}")
        if better is not None:
            surely = f"{better['surely']:,} of them surely; " if "surely" in better else ""
            how = (
                "exactly" if better["method"] == "exact" else f"on {better['problems']:,} problems"
            )
            rows.append(
                (
                    Cell(f"classes that beat every generic policy, T = {horizon}"),
                    Cell(f"{better['classes']:,}", better["classes"]),
                    Cell(f"about {paper.BETTER[horizon]}" if full else "", paper.BETTER[horizon]),
                    Cell(
                        f"{surely}{better['strategies']:,} that play differently; the best generic policy is "
                        f"{better['rival']} with {better['rival_regret']:.4g}; compared {how}"
                    ),
                )
            )
    for horizon in HORIZONS[1:]:
        sooner = findings.get(f"sooner/{horizon}")
        if sooner is not None:
            ratio = sooner["equal_seconds"] / sooner["search_seconds"]
            episodes = sooner["equal_episodes"] / sooner["search_episodes"]
            low, high = paper.SOONER
            rows.append(
                (
                    Cell(f"times that the bandit search is sooner done, T = {horizon}"),
                    Cell(significant(ratio, 2), ratio),
                    Cell(f"{low} to {high}" if full else "", low),
                    Cell(
                        f"{sooner['equal_seconds']:,.0f} s for equal effort (from {sooner['played']} classes) against "
                        f"{sooner['search_seconds']:,.0f} s; by episodes it is {episodes:,.0f} times: with equal effort many classes "
                        f"play in step, which takes less time an episode"
                    ),
                )
            )
    if rows:
        tables.append(
            Table(
                "classes-better",
                "What the search is worth",
                ("question", "here", "paper", "note"),
                tuple(rows),
                align="lrrl",
                caption=""
                if full
                else "The paper's figures are for its own budgets, and left out here.",
            )
        )
    return tables


def times(findings: Findings) -> list[Table]:
    rows = []
    # With other budgets than the paper's there is nothing to compare.
    known = paper.SECONDS if findings.records.scale == "paper" else {}
    for (what, horizon), (seconds, cores) in known.items():
        name = f"learn/power-1/{horizon}" if what == "power-1" else f"search/paper/{horizon}"
        if name not in findings.records:
            continue
        ours = findings.records[name]["seconds"]
        if what == "formulas" and "classes" in findings.records:
            ours += findings.records["classes"]["seconds"]
        threads = findings.records[name]["threads"]
        each = seconds * cores / (threads * ours)
        rows.append(
            (
                Cell(f"{'Power-1' if what == 'power-1' else 'formulas'}, T = {horizon}"),
                Cell(f"{ours:,.0f} s on {threads} thread{'s' if threads > 1 else ''}", ours),
                Cell(_duration(seconds) + f" on {cores} core{'s' if cores > 1 else ''}", seconds),
                Cell(f"{seconds / ours:,.0f}", seconds / ours),
                Cell(f"{each:,.0f}", each),
            )
        )
    tables = []
    if rows:
        tables.append(
            Table(
                "times-learning",
                "Time to learn",
                ("what", "here", "paper", "times as fast", "for each core"),
                tuple(rows),
                caption="The paper's cores ran at 1.9 GHz. Ours are shared with others, so times vary; those of the "
                "formulas include making the classes.",
            )
        )
    kinds = {
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
    parts = []
    for kind, label in kinds.items():
        pieces = [record for record in findings.records.values() if record["kind"] == kind]
        if pieces:
            total = sum(record["seconds"] for record in pieces)
            longest = max(pieces, key=lambda record: record["seconds"])
            parts.append(
                (
                    Cell(label),
                    Cell(f"{len(pieces):,}", len(pieces)),
                    Cell(_duration(total), total),
                    Cell(f"{longest['id']} ({_duration(longest['seconds'])})"),
                )
            )
    total = sum(record["seconds"] for record in findings.records.values())
    parts.append((Cell("all"), Cell(f"{len(findings.records):,}", len(findings.records)), Cell(_duration(total), total), Cell("")))  # fmt: skip
    tables.append(
        Table(
            "parts",
            "Time of each part",
            ("part", "pieces", "time", "longest"),
            tuple(parts),
            align="lrrl",
        )
    )
    return tables


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
