"""The report of the study: a table per setting, made from records only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...engine.results import NORMAL_95
from ...report.content import Cell, Report, ReportTable, Section, number, percent, row
from ..records import Records
from .plan import LEARNED, SCALES, SETTINGS, Studied, policies_of, settings_of

_METHOD = (
    "Policies that read the prior are given the one that problems are drawn from. All policies of a setting play the same "
    "problems with the same rewards, the slow ones (Bayes-UCB, OGI, IDS, KG*) fewer of them. Intervals are 95 % intervals.",
    "The floor is a lower bound on the regret of any policy (docs/floor.md); the last column says how far above it the regret "
    "is. A policy may be closer to the best possible than to the floor.",
    "OGI looks one play ahead with the discount 1 - 1/t, IDS is the one by variances, KG* is kg-star. The learned policy is Power-1 "
    "of `metabandit learn` with its default budget.",
    "The papers' own figures are not quoted here, as they could not be checked against the papers.",
)


def read_report(path: Path) -> Report:
    """The report of the records in a file."""
    return today_report(Records.read(path, "today"))


def published_formulas(learned: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The study has no formulas of its own."""
    return "found in the study of today", []


def _table(records: Records, setting: Studied) -> ReportTable | None:
    floor = records.found(f"floor/{setting.id}")
    rows = []
    for name in (*policies_of(setting), LEARNED):
        key = f"play/{setting.id}/{name}"
        if (found := records.found(key)) is None:
            continue
        half = NORMAL_95 * found["standard_error"]
        above = None if floor is None else found["mean"] / floor["regret"] - 1.0
        episodes = records[key]["settings"]["episodes"]
        label = (
            name
            if name != LEARNED
            else f"learned: {records.result(f'learn/{setting.id}')['label']}"
        )
        regret = number(found["mean"], half=half)
        rows.append((found["mean"], row(label, regret, percent(above), episodes)))
    if not rows:
        return None
    rows.sort(key=lambda item: item[0])
    caption = f"Setting of {setting.source}."
    if floor is not None:
        error = NORMAL_95 * floor["standard_error"]
        rows.insert(0, (0.0, row("floor", number(floor["regret"], half=error), Cell(""), None)))
    return ReportTable(
        f"today-{setting.id}",
        setting.title,
        ("policy", "mean regret", "above the floor", "episodes"),
        tuple(cells for _, cells in rows),
        caption=caption,
    )


def today_report(records: Records) -> Report:
    """The whole report; settings that were not played are left out."""
    tables = [table for setting in SETTINGS if (table := _table(records, setting)) is not None]
    russo = tuple(table for table in tables if "duan" not in table.id)
    duan = tuple(table for table in tables if "duan" in table.id)
    sections = [
        Section("ten-arms", "Ten arms, 1000 plays", (), russo),
        Section("bandits-of-rl2", "The bandits of RL^2", (), duan),
    ]
    versions = {
        ", ".join(f"{name} {value}" for name, value in record["versions"].items())
        for record in records.values()
    }
    scale = SCALES.get(records.scale, SCALES["paper"])
    return Report(
        "Policies of today",
        (
            "The policies that are the strongest today on the problems that they were published with, beside a policy "
            "that metabandit learned and the floor under all of them.",
        ),
        (
            ("scale", records.scale),
            ("seed", str(records.seed)),
            ("settings", f"{len(tables)} of {len(settings_of(scale))}"),
            (
                "command",
                f"metabandit reproduce today --scale {records.scale} --seed {records.seed}",
            ),
            ("versions", "; ".join(sorted(versions))),
        ),
        (
            *(item for item in sections if item.tables),
            Section("method", "How it was done", _METHOD),
        ),
    )
