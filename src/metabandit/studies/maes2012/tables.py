"""The tables of a reproduction."""

from __future__ import annotations

from dataclasses import replace
from statistics import quantiles

from ...engine.results import NORMAL_95
from ...report.content import Cell, Table, number, percent, significant
from . import paper
from .findings import CLOSE, FAMILY, Comparison, Findings, columns, ordered
from .paper import HORIZONS
from .plan import Candidate, candidates

_MARKS = {
    "agrees": ("", ""),
    "better": ("good", "<"),
    "noise": ("", "~"),
    "known": ("known", "†"),
    "open": ("off", "‡"),
    "": ("", ""),
}
_FLOORS = {
    "Bayes-optimal floor, each arm played once first": "each-once",
    "Bayes-optimal floor": "free",
}
# Fewer rows than these say little of what a column has in common.
_MANY = 8
_LEGEND = (
    "~ more than 3 % apart, but within the noise of both samples; † a difference that is explained; ‡ one that "
    "is not; < better than the paper by more than 3 %. What was learned or tuned here is compared with the table at the "
    "horizon that it was made for."
)


def value_cell(found: Comparison | None, digits: int = 4) -> Cell:
    """Ours with its interval, marked if it stands out."""
    if found is None:
        return Cell("")
    mark, sign = _MARKS[found.verdict]
    text = f"{significant(found.ours, digits)} ± {significant(found.half, 2)}"
    return Cell(f"{text} {sign}".rstrip(), found.ours, mark, found.note)


def above_cell(findings: Findings, item: Candidate, horizon: int) -> Cell:
    """How far a policy is above the floor; with its noise unless it is exact."""
    above, floor = findings.above_floor(item, horizon), findings.floor(horizon)
    if above is None or floor is None or findings.exact(item, horizon) is not None:
        return percent(above, 3 if above is not None and above < 0.1 else 2)
    found = findings.test(item, "bernoulli", horizon)
    half = 100.0 * NORMAL_95 * (found["standard_error"] if found else 0.0) / floor
    return Cell(f"{100.0 * above:+.1f} ± {significant(half, 2)} %", above)


def _least_each_once(findings: Findings) -> str:
    """What the paper's policies cannot go below, in words."""
    floors = [findings.floor(horizon, "each-once") for horizon in HORIZONS]
    if None in floors:
        return ""
    said = ", ".join(significant(value, 5) for value in floors if value is not None)
    return f" Those that play each arm once first, as all of the paper's do, have at least {said}."


def best(findings: Findings) -> Table | None:
    """Our best policies beside the paper's best row, and the floor."""
    rows = []
    for horizon in HORIZONS:
        floor = findings.floor(horizon)
        theirs = min(row.regret["bernoulli", horizon] for row in paper.table1())
        for item in candidates():
            if item.group != "ours" or item.training != horizon:
                continue
            found = findings.compare(item, "bernoulli", horizon)
            if found is None:
                continue
            exact = findings.exact(item, horizon)
            rows.append(
                (
                    Cell(str(horizon), horizon),
                    Cell(item.label),
                    Cell(findings.parameters(item)),
                    value_cell(found),
                    number(exact, 6),
                    Cell(f"{theirs:g}", theirs),
                    number(floor, 6),
                    above_cell(findings, item, horizon),
                )
            )
    if not rows:
        return None
    return Table(
        "best",
        "Our best policies and the best row of the paper",
        ("T", "policy", "parameters", "tested", "exact", "best of the paper", "floor", "above the floor"),
        tuple(rows),
        align="rllr",
        caption="Bernoulli arms, uniform means. The floor is the regret of the Bayes-optimal policy: no policy "
        "has less." + _least_each_once(findings),
    )  # fmt: skip


def overview(findings: Findings, family: str) -> Table:
    """Table 1 for one family: ours, and the paper's in parentheses."""
    rows = []
    for item in ordered(findings):
        cells = [Cell(findings.name(item)), Cell(str(item.training or ""), item.training or 0)]
        known = [findings.compare(item, family, horizon) for horizon in HORIZONS]
        if not any(known):
            continue
        for found in known:
            if found is None:
                cells.append(Cell(""))
                continue
            mark, sign = _MARKS[found.verdict]
            theirs = "" if found.theirs is None else f" ({found.theirs:g})"
            text = f"{significant(found.ours, 3)}{theirs} {sign}".rstrip()
            cells.append(Cell(text, found.ours, mark, found.note))
        rows.append((*cells, Cell(findings.parameters(item))))
    if family == "bernoulli" and rows:
        for label, start in _FLOORS.items():
            floors = [findings.floor(horizon, start) for horizon in HORIZONS]
            if any(floors):
                blank = (Cell(label), Cell("", 0))
                rows.append((*blank, *(number(value, 3) for value in floors), Cell("")))
    return Table(
        f"table1-{family}",
        f"Table 1, {FAMILY[family]}: regret here, and in the paper in parentheses",
        ("policy", "trained for", *(f"T = {horizon}" for horizon in HORIZONS), "parameters"),
        tuple(rows),
        align="lrrrrl",
        caption=_LEGEND,
    )


def detail(findings: Findings, family: str, horizon: int) -> Table:
    """One column of Table 1, with everything that is known of it."""
    gaussian = family == "gaussian"
    more = ("true means",) if gaussian else ("exact", "above the floor")
    rows = []
    for item in ordered(findings):
        found = findings.compare(item, family, horizon)
        test = findings.test(item, family, horizon)
        if found is None or test is None:
            continue
        if gaussian:
            half = NORMAL_95 * test["true_standard_error"]
            true = test["true_regret"]
            extra = [Cell(f"{significant(true, 4)} ± {significant(half, 2)}", true)]
        else:
            extra = [number(findings.exact(item, horizon), 6)]
            extra.append(above_cell(findings, item, horizon))
        rows.append(
            (
                Cell(findings.name(item)),
                Cell(str(item.training or ""), item.training or 0),
                value_cell(found),
                Cell("" if found.theirs is None else f"{found.theirs:g}", found.theirs),
                percent(found.apart),
                *extra,
                Cell(findings.parameters(item)),
            )
        )
    counted = ", regret against the parent's mean as in the table" if gaussian else ""
    floor = findings.floor(horizon)
    lowest = "" if gaussian or floor is None else f" The floor is {floor:.6f}."
    return Table(
        f"detail-{family}-{horizon}",
        f"{FAMILY[family]}, T = {horizon}",
        ("policy", "trained for", f"here{' (parent)' if gaussian else ''}", "paper", "difference", *more, "parameters"),
        tuple(rows),
        align="lrrrr" + "r" * len(more) + "l",
        caption=f"Regret after {horizon} plays{counted}; ± is the 95 % interval.{lowest}",
        folded=True,
    )  # fmt: skip


def _column(family: str, horizon: int) -> str:
    return f"{family.capitalize()}, T = {horizon}"


def differences(findings: Findings) -> Table | None:
    """Every cell that is more than 3 % away from the paper's."""
    rows = []
    for item in ordered(findings):
        for family, horizon in columns():
            found = findings.compare(item, family, horizon)
            if found is None or found.verdict in ("", "agrees") or found.theirs is None:
                continue
            say = {"noise": "within the noise of both samples", "better": "better here"}
            if found.verdict == "noise" and found.note:
                say["noise"] += f"; {found.note}"
                found = replace(found, note="")
            rows.append(
                (
                    Cell(findings.name(item)),
                    Cell(_column(family, horizon)),
                    value_cell(found),
                    Cell(f"{found.theirs:g}", found.theirs),
                    percent(found.apart),
                    Cell(findings.parameters(item)),
                    Cell(found.note or say.get(found.verdict, "")),
                )
            )
    if not rows:
        return None
    return Table(
        "differences",
        "Cells that are more than 3 % from the table",
        ("policy", "column", "here", "paper", "difference", "parameters", "note"),
        tuple(rows),
        align="llrrrll",
    )


def common(findings: Findings) -> Table | None:
    """How far rows as printed are from the table, column by column: those of the same problems alike."""
    if findings.records.scale != "paper":  # too few runs: noise would be taken for a difference
        return None
    rows = []
    for family, horizon in columns():
        apart = {}
        for item in ordered(findings):
            found = findings.compare(item, family, horizon) if item.text is not None else None
            if found is not None and found.apart is not None:
                apart[f"{item.label} {findings.parameters(item)}".rstrip()] = found.apart
        if len(apart) < _MANY:
            continue
        quarters = quantiles(apart.values(), n=4)
        far = [name for name, value in apart.items() if abs(value - quarters[1]) > CLOSE]
        rows.append(
            (
                Cell(_column(family, horizon)),
                Cell(str(len(apart)), len(apart)),
                *map(percent, quarters),
                Cell(f"3 points or more from the median: {'; '.join(far)}" if far else ""),
            )
        )
    if not rows:
        return None
    return Table(
        "common",
        "What the rows of a column have in common",
        ("column", "rows", "a quarter is below", "median", "a quarter is above", "note"),
        tuple(rows),
        align="lrrrrl",
        caption="How far regret is from the table's, with the paper's own parameters and formulas. Rows that play the "
        "same problems are off alike, for harder problems are so for every policy: in each column most are, and what is "
        "not was tested on other problems, or is another policy or figure than the table says.",
    )  # fmt: skip


def tally(findings: Findings) -> tuple[str, ...]:
    """How many cells agree, in words."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for item in candidates():
        for family, horizon in columns():
            found = findings.compare(item, family, horizon)
            if found is None or not found.verdict:
                continue
            kind = "printed" if item.text is not None else "found"
            box = counts.setdefault((kind, family), {})
            box[found.verdict] = box.get(found.verdict, 0) + 1
    lines = []
    names = {
        "printed": "with the paper's own parameters and formulas",
        "found": "tuned or learned anew, at the horizon that it was made for",
    }
    for (kind, family), box in counts.items():
        total = sum(box.values())
        parts = [f"{box.get('agrees', 0)} of {total} are within 3 % of the table"]
        for verdict, words in (
            ("better", "better by more"),
            ("noise", "within the noise of both samples"),
            ("known", "different for a reason that is known"),
            ("open", "different for a reason that we do not know"),
        ):
            if box.get(verdict):
                parts.append(f"{box[verdict]} {words}")
        lines.append(f"{FAMILY[family]}, {names[kind]}: {', '.join(parts)}.")
    return tuple(lines)


def _remark(findings: Findings, item: Candidate, horizon: int) -> str:
    """What there is to say of a share of wins that is far from the paper's."""
    twin = next(
        (
            other
            for other in candidates()
            if other.text is not None and other.paper is item.paper and other is not item
        ),
        None,
    )
    here, there = (
        None if which is None else findings.exact(which, horizon) for which in (item, twin)
    )
    if here is not None and there is not None and here < there:
        said = (
            f"{item.label} as tuned here for T = {horizon} ({findings.parameters(item)}) has less mean regret, "
            f"{here:.4g}, than as printed, {there:.4g}, and that is what it was tuned for; it wins fewer problems."
        )
        found = None if twin is None else findings.test(twin, "bernoulli", horizon)
        if found is not None:
            apart = 100.0 * found["wins"] - paper.table2()[item.label, horizon]
            said += f" As printed it is {apart:+.1f} points from the paper."
        return said
    return f"{findings.name(item)}, for T = {horizon}: not explained."


def wins(findings: Findings) -> Table | None:
    """Table 2: the share of problems won against UCB1-Tuned."""
    theirs = paper.table2()
    chosen = [item for item in ordered(findings) if item.training is not None]
    labels: dict[tuple[str, str], list[Candidate]] = {}
    for item in chosen:
        kind = item.id.partition("/")[0]
        labels.setdefault((item.label, kind), []).append(item)
    rows = []
    remarks: list[str] = []
    for (label, kind), items in labels.items():
        where = {"printed": "as printed", "found": "learned here", "ours": ""}[kind]
        cells = [Cell(f"{label}, {where}".rstrip(", "))]
        known = False
        for horizon in HORIZONS:
            made = next((item for item in items if item.training == horizon), None)
            found = None if made is None else findings.test(made, "bernoulli", horizon)
            share = None if found is None else found["wins"]
            printed = theirs.get((label, horizon)) if kind != "ours" else None
            known = known or share is not None
            cells.append(percent(share, sign=False))
            cells.append(Cell("" if printed is None else f"{printed:.1f} %", printed))
            apart = None if share is None or printed is None else 100.0 * share - printed
            far = apart is not None and (abs(apart) > 5.0 if kind == "printed" else apart < -5.0)
            far = far and findings.records.scale == "paper"
            if far and made is not None:
                remarks.append(_remark(findings, made, horizon))
            cells.append(
                Cell(
                    "" if apart is None else f"{apart:+.1f}{' ‡' if far else ''}",
                    apart,
                    "off" if far else "",
                )
            )
            cells.append(percent(None if found is None else found["wins_common_luck"], sign=False))
        if known:
            rows.append(tuple(cells))
    if not rows:
        return None
    columns = ["policy"]
    for horizon in HORIZONS:
        columns += [f"T = {horizon}", "paper", "points", "same luck"]
    return Table(
        "table2-wins",
        "Table 2: problems won against UCB1-Tuned",
        tuple(columns),
        tuple(rows),
        caption="Each policy as tuned or learned for the horizon that it is tested on; regret of a problem is an "
        "average of its runs. As in the paper each "
        "policy has luck of its own, and a problem with equal regret is not won; with the same luck for both less is "
        "left to chance, and equal regret counts half. "
        + (
            "‡ is more than 5 points away from the paper, for what is as printed, or below it, for what was "
            "learned here. " + " ".join(remarks)
            if findings.records.scale == "paper"
            else "The fewer runs a problem has, the closer to one half all shares are: with this budget they "
            "say little."
        ),
    )
