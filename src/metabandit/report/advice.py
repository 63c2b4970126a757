"""The page of an advice: the answer, one picture of what is gained, what was assumed, what to do next; then details."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..drawing import gains
from .content import (
    Cell,
    Figure,
    Report,
    ReportTable,
    Run,
    Section,
    number,
    percent,
    row,
    significant,
)

# Policies that the picture shows at most.
_MOST_SHOWN = 9


def advice_report(value: Run, prefix: str) -> Report:
    """The report of an advice, as `advise` writes it."""
    best, today = value["recommended_policy"], value["today"]
    answer, risk, *cautions = value["summary"]
    title = f"Keep {_called(today)}"
    if best != today:
        gain = next(item["gain"] for item in value["policies"] if item["policy"] == best)
        title = f"{significant(gain, 3)} {value['unit']} more per test: use {best}"
    sections = [
        Section(
            f"{prefix}-gain", "What it brings", tuple(cautions), (), (_gain_figure(value, prefix),)
        ),
        Section(f"{prefix}-assumed", "What was assumed", tuple(value["assumed"])),
        Section(
            f"{prefix}-next",
            "What to do next",
            tuple(filter(None, [value["explanation"]])),
            code=tuple((item["what"], item["command"]) for item in value["next"]),
        ),
        Section(
            f"{prefix}-details", "Details", tuple(value["notes"]), tuple(_tables(value, prefix))
        ),
    ]
    return Report(title, tuple(filter(None, [answer, risk])), _facts(value), tuple(sections))


def _signed(value: float) -> str:
    return f"{'+' if value > 0.0 else ''}{significant(value, 4)}"


def _called(name: str) -> str:
    return "the equal split" if name == "split" else name


def _facts(value: Run) -> tuple[tuple[str, str], ...]:
    ended = {"finished": "", "time limit": ", as long as was allowed"}.get(
        value["stopped"], ", interrupted: a first answer"
    )
    return (
        ("gains are per", f"test of {value['horizon']:,} plays of {value['arms']} arms"),
        ("computed in", f"{value['seconds']:.0f} s{ended}"),
    )


def _gain_figure(value: Run, prefix: str) -> Figure:
    """What the best policies, and those that people use, bring more than today's."""
    best, today = value["recommended_policy"], value["today"]
    ranked = value["policies"]
    wanted = [
        item for item in ranked if item["policy"] in (best, today) or item["kind"] == "baseline"
    ]
    others = [item for item in ranked if item not in wanted]
    some = wanted + others[: max(0, _MOST_SHOWN - len(wanted))]
    rows = []
    for item in ranked:
        if item in some:
            name = "equal split" if item["policy"] == "split" else item["policy"]
            label = f"{name} (today)" if item["policy"] == today else name
            rows.append((label, item["gain"], tuple(item["gain_interval"]), item["policy"] == best))
    return Figure(
        f"{prefix}-gains",
        f"Gain over {_called(today)}",
        f"{value['unit'].capitalize()} more than {_called(today)} per test; bars are 95 % intervals.",
        partial(gains, rows, x=f"{value['unit']} more per test"),
    )


def _tables(value: Run, prefix: str) -> list[ReportTable]:
    tables, today = [_policies(value, prefix)], value["today"]
    for key, name, title in (
        ("if_the_prior_is_wrong", "wrong", f"Gain over {_called(today)} if the prior is wrong"),
        (
            "if_history_is_noisy",
            "histories",
            "The same for priors that were fitted to resampled histories",
        ),
    ):
        if value[key]:
            tables.append(_others(value[key], today, f"{prefix}-{name}", title))
    if value["skipped"]:
        tables.append(
            ReportTable(
                f"{prefix}-skipped",
                "Policies that were not played",
                ("policy", "note"),
                tuple(row(item["policy"], item["reason"]) for item in value["skipped"]),
                align="l",
                folded=True,
            )
        )
    return tables


def _policies(value: Run, prefix: str) -> ReportTable:
    """What every policy brings, best first."""
    unit, today = value["unit"], _called(value["today"])
    columns = ["policy", "kind", f"{unit} per test", f"gain over {today}", "95 % interval"]
    if value["value"] is not None:
        columns.append("worth")
    columns += ["chance of less", "regret", "tests played"]
    rows = []
    for item in value["policies"]:
        low, high = item["gain_interval"]
        between = (
            "not known"
            if low is None
            else "exact"
            if low == high
            else f"{significant(low, 4)} to {significant(high, 4)}"
        )
        itself = item["policy"] == value["today"]
        good = "good" if item["policy"] == value["recommended_policy"] else ""
        cells: list[Any] = [
            Cell(item["policy"], mark=good),
            item["kind"],
            number(item["expected_reward"], 5),
            Cell("today" if itself else _signed(item["gain"]), item["gain"]),
            Cell("" if itself else between, low),
        ]
        if value["value"] is not None:
            money = value["value"] * item["gain"]
            cells.append(Cell("" if itself else f"{money:+,.2f}", money))
        played = Cell("exact") if not item["episodes"] else item["episodes"]
        risk = percent(None if itself else item["risk"], 1, sign=False)
        rows.append(row(*cells, risk, number(item["regret"], 4), played))
    return ReportTable(
        f"{prefix}-policies",
        "Every policy that was measured",
        tuple(columns),
        tuple(rows),
        align="llr",
        caption=f"Chance of less: the share of tests on which a policy brings less than {today}. Regret: what "
        f"it lacks to always playing the best arm; no policy can have less than "
        f"{0.0 if value['floor'] is None else value['floor']:.4g}.",
    )


def _others(items: Sequence[Run], today: str, name: str, title: str) -> ReportTable:
    """What the policies that matter gain on other problems."""
    every = dict.fromkeys(each["policy"] for item in items for each in item["policies"])
    names = [policy for policy in every if policy != today]
    rows = []
    for item in items:
        found = {each["policy"]: each["gain"] for each in item["policies"]}
        cells = [
            Cell(_signed(found[policy]), found[policy]) if policy in found else Cell("")
            for policy in names
        ]
        rows.append(row(item["difference"], *cells))
    return ReportTable(name, title, ("what differs", *names), tuple(rows), folded=True)
