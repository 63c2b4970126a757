"""The tables of a reproduction: the paper's two beside what was found here, formula classes, computing time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import quantiles

from ...engine.results import NORMAL_95
from ...report.content import Cell, Cells, ReportTable, number, percent, row, significant
from ..records import Records
from . import findings, paper
from .findings import CLOSE, FAMILY, Reproduced
from .paper import COLUMNS, HORIZONS, StudiedPolicy, table1, table2
from .plan import studied_policies

# How a cell with a verdict stands out, the sign after its figure, and what the verdict means.
_VERDICTS = {
    "better": ("good", "<", "better by more"),
    "noise": ("", "~", "within the noise of both samples"),
    "known": ("known", "†", "different for a known reason"),
    "open": ("off", "‡", "different for an unknown reason"),
}
_FLOORS = {
    "Bayes-optimal floor, each arm played once first": "each-once",
    "Bayes-optimal floor": "free",
}
# Fewer rows than these say little about what a column has in common.
_MANY = 8
# Points of Table 2 that are far from the paper's.
_FAR = 5.0
_LEGEND = (
    "~ more than 3 % apart, but within the noise of both samples; † a difference that is explained; ‡ one that "
    "is not; < better than the paper by more than 3 %. Policies learned or tuned here are compared with the table "
    "at the horizon they were made for."
)
# Kinds of steps, as the table of their times calls them.
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
# What was compared, by whether it is as printed.
_ORIGINS = {
    True: "with the paper's own parameters and formulas",
    False: "tuned or learned here, at the horizon they were made for",
}


def _value(found: Reproduced | None, *, beside: bool = False) -> Cell:
    """Ours with its interval, or with the paper's in parentheses; marked if it stands out."""
    if found is None:
        return Cell("")
    mark, sign, _ = _VERDICTS.get(found.verdict, ("", "", ""))
    if not beside:
        return number(found.ours, half=found.half, sign=sign, mark=mark, note=found.note)
    theirs = "" if found.theirs is None else f"({found.theirs:g}) "
    return number(found.ours, 3, sign=f"{theirs}{sign}", mark=mark, note=found.note)


def _printed(value: float | None) -> Cell:
    """A figure as the paper prints it."""
    return Cell("" if value is None else f"{value:g}", value)


def _above(records: Records, item: StudiedPolicy, horizon: int) -> Cell:
    """How far a policy is above the floor; with its noise unless it is exact."""
    above, floor = findings.above_floor(records, item, horizon), findings.floor(records, horizon)
    if above is None or floor is None or findings.exact(records, item, horizon) is not None:
        return percent(above, 3 if above is not None and above < 0.1 else 2)
    found = findings.tested(records, item, "bernoulli", horizon)
    assert found is not None
    return percent(above, half=NORMAL_95 * found["standard_error"] / floor)


def _named(records: Records, item: StudiedPolicy, *cells: Cell, training: bool = True) -> Cells:
    """A row about a policy: its name, the horizon it was made for, cells, and its parameters."""
    made = [Cell(str(item.training or ""), item.training or 0)] if training else []
    return row(findings.name(item), *made, *cells, findings.parameters(records, item))


def _compared(
    records: Records, columns: Sequence[tuple[str, int]] = COLUMNS
) -> Iterator[tuple[StudiedPolicy, str, int, Reproduced]]:
    """What was tested, policy by policy, in these columns of Table 1."""
    for item in findings.policies(records):
        for family, horizon in columns:
            found = findings.compare(records, item, family, horizon)
            if found is not None:
                yield item, family, horizon, found


def best(records: Records) -> ReportTable:
    """Our best policies beside the paper's best row, and the floor."""
    rows = [
        row(
            Cell(str(horizon), horizon),
            item.label,
            findings.parameters(records, item),
            _value(found),
            number(findings.exact(records, item, horizon), 6),
            _printed(min(line.paper["bernoulli", horizon] for line in table1())),
            number(findings.floor(records, horizon), 6),
            _above(records, item, horizon),
        )
        for column in COLUMNS[: len(HORIZONS)]
        for item, _, horizon, found in _compared(records, [column])
        if item.group == "ours" and item.training == horizon
    ]
    caption = (
        "Bernoulli arms, uniform means. The floor is the regret of the Bayes-optimal policy: no "
        "policy has less."
    )
    floors = [findings.floor(records, horizon, "each-once") for horizon in HORIZONS]
    if None not in floors:
        said = ", ".join(significant(value, 5) for value in floors if value is not None)
        caption += f" Policies that play each arm once first, as all of the paper's do, have at least {said}."
    return ReportTable(
        "best",
        "Our best policies and the best row of the paper",
        ("T", "policy", "parameters", "tested", "exact", "best of the paper", "floor", "above the floor"),
        tuple(rows),
        align="rllr",
        caption=caption,
    )  # fmt: skip


def overview(records: Records, family: str) -> ReportTable:
    """Table 1 for one family: ours, and the paper's in parentheses."""
    rows = []
    for item in findings.policies(records):
        known = [findings.compare(records, item, family, horizon) for horizon in HORIZONS]
        if any(known):
            rows.append(_named(records, item, *(_value(found, beside=True) for found in known)))
    if family == "bernoulli" and rows:
        for label, start in _FLOORS.items():
            floors = [findings.floor(records, horizon, start) for horizon in HORIZONS]
            if any(floors):
                rows.append(row(label, Cell("", 0), *(number(value, 3) for value in floors), ""))
    return ReportTable(
        f"table1-{family}",
        f"Table 1, {FAMILY[family]}: regret here, and in the paper in parentheses",
        ("policy", "trained for", *(f"T = {horizon}" for horizon in HORIZONS), "parameters"),
        tuple(rows),
        align="lrrrrl",
        caption=_LEGEND,
    )


def detail(records: Records, family: str, horizon: int) -> ReportTable:
    """One column of Table 1, with everything that is known of it."""
    gaussian, floor = family == "gaussian", findings.floor(records, horizon)
    here, more = "here", ["exact", "above the floor"]
    said = f"Regret after {horizon} plays"
    if gaussian:
        here, more = "here (parent)", ["true means"]
        said += ", regret against the parent's mean as in the table"
    lowest = "" if gaussian or floor is None else f" The floor is {floor:.6f}."
    rows = []
    for item, _, _, found in _compared(records, [(family, horizon)]):
        if gaussian:
            test = records.result(f"test/{item.id}/{family}/{horizon}")
            half = NORMAL_95 * test["true_standard_error"]
            extra = [number(test["true_regret"], half=half)]
        else:
            exact = findings.exact(records, item, horizon)
            extra = [number(exact, 6), _above(records, item, horizon)]
        beside = _printed(found.theirs), percent(found.apart)
        rows.append(_named(records, item, _value(found), *beside, *extra))
    return ReportTable(
        f"detail-{family}-{horizon}",
        f"{FAMILY[family]}, T = {horizon}",
        ("policy", "trained for", here, "paper", "difference", *more, "parameters"),
        tuple(rows),
        align="lrrrr" + "r" * len(more) + "l",
        caption=f"{said}; ± is the 95 % interval.{lowest}",
        folded=True,
    )


def _column(family: str, horizon: int) -> str:
    return f"{family.capitalize()}, T = {horizon}"


def differences(records: Records) -> ReportTable:
    """Every cell that is more than 3 % away from the paper's."""
    rows = []
    for item, family, horizon, found in _compared(records):
        if found.verdict in ("", "agrees"):
            continue
        note = found.note or ("better here" if found.verdict == "better" else "")
        if found.verdict == "noise":
            note = f"within the noise of both samples{f'; {note}' if note else ''}"
            found = replace(found, note="")
        cells = _value(found), _printed(found.theirs), percent(found.apart)
        where = Cell(_column(family, horizon))
        rows.append((*_named(records, item, where, *cells, training=False), Cell(note)))
    return ReportTable(
        "differences",
        "Cells that are more than 3 % from the table",
        ("policy", "column", "here", "paper", "difference", "parameters", "note"),
        tuple(rows),
        align="llrrrll",
    )


def common(records: Records) -> ReportTable | None:
    """How far rows as printed are from the table, column by column: those of the same problems alike."""
    if records.scale != "paper":  # too few runs: noise would pass for a difference
        return None
    rows = []
    for column in COLUMNS:
        apart = {
            f"{item.label} {findings.parameters(records, item)}".rstrip(): found.apart
            for item, _, _, found in _compared(records, [column])
            if item.text is not None and found.apart is not None
        }
        if len(apart) < _MANY:
            continue
        quarters = quantiles(apart.values(), n=4)
        far = [name for name, value in apart.items() if abs(value - quarters[1]) > CLOSE]
        note = f"3 points or more from the median: {'; '.join(far)}" if far else ""
        rows.append(row(_column(*column), len(apart), *map(percent, quarters), note))
    return ReportTable(
        "common",
        "What the rows of a column have in common",
        ("column", "rows", "a quarter is below", "median", "a quarter is above", "note"),
        tuple(rows),
        align="lrrrrl",
        caption="How far regret is from the table's, with the paper's own parameters and formulas. Rows that play "
        "the same problems are off alike, since harder problems are harder for every policy: in each column most "
        "rows are, and a row that is not was tested on other problems, or is another policy or figure than the "
        "table says.",
    )


def tally(records: Records) -> tuple[str, ...]:
    """How many cells agree, as sentences."""
    counts: dict[tuple[bool, str], Counter[str]] = {}
    for item, family, _, found in _compared(records):
        if found.verdict:
            box = counts.setdefault((item.text is not None, family), Counter())
            box[found.verdict] += 1
    lines = []
    for (printed, family), box in counts.items():
        parts = [f"{box['agrees']} of {box.total()} are within 3 % of the table"]
        parts += [f"{box[name]} {said}" for name, (_, _, said) in _VERDICTS.items() if box[name]]
        lines.append(f"{FAMILY[family]}, {_ORIGINS[printed]}: {', '.join(parts)}.")
    return tuple(lines)


def _remark(records: Records, item: StudiedPolicy, horizon: int) -> str:
    """What there is to say of a share of wins that is far from the paper's."""
    for twin in studied_policies():
        if twin.text is None or twin.paper is not item.paper or twin is item:
            continue
        here, there = findings.exact(records, item, horizon), findings.exact(records, twin, horizon)
        if here is None or there is None or here >= there:
            break
        said = (
            f"{item.label} as tuned here for T = {horizon} ({findings.parameters(records, item)}) has less mean regret, "
            f"{here:.4g}, than as printed, {there:.4g}, and that is what it was tuned for; it wins fewer problems."
        )
        found = findings.tested(records, twin, "bernoulli", horizon)
        if found is not None:
            apart = 100.0 * found["wins"] - table2()[item.label, horizon]
            said += f" As printed it is {apart:+.1f} points from the paper."
        return said
    return f"{findings.name(item)}, for T = {horizon}: not explained."


def wins(records: Records) -> ReportTable:
    """Table 2: the share of problems won against UCB1-Tuned."""
    made: dict[tuple[str, str], dict[int, StudiedPolicy]] = {}
    for item in findings.policies(records):
        if item.training is not None:
            made.setdefault((item.label, item.origin), {})[item.training] = item
    rows = []
    remarks: list[str] = []
    for (label, origin), items in made.items():
        cells: list[Cell] = []
        for horizon in HORIZONS:
            printed = table2().get((label, horizon))
            cells += _wins(records, items.get(horizon), horizon, printed, remarks)
        if any(cell.text for cell in cells[::4]):
            where = {"printed": ", as printed", "found": ", learned here"}.get(origin, "")
            rows.append(row(f"{label}{where}", *cells))
    columns = ["policy"]
    for horizon in HORIZONS:
        columns += [f"T = {horizon}", "paper", "points", "common random numbers"]
    return ReportTable(
        "table2-wins",
        "Table 2: problems won against UCB1-Tuned",
        tuple(columns),
        tuple(rows),
        caption="Each policy as tuned or learned for the horizon it is tested on; the regret of a problem is the "
        "average of its runs. As in the paper each policy has its own random numbers, and a problem with equal regret "
        "is not won; with common random numbers less is left to chance, and equal regret counts half. "
        + (
            "‡ is more than 5 points from the paper, for policies as printed, or below it, for those learned "
            "here. " + " ".join(remarks)
            if records.scale == "paper"
            else "The fewer runs a problem has, the closer all shares are to one half: with this budget they "
            "say little."
        ),
    )


def _wins(
    records: Records,
    item: StudiedPolicy | None,
    horizon: int,
    printed: float | None,
    remarks: list[str],
) -> Cells:
    """The four cells of a policy and horizon: ours, the paper's, points apart, ours with common random numbers."""
    theirs = Cell("" if printed is None else f"{printed:.1f} %", printed)
    found = None if item is None else findings.tested(records, item, "bernoulli", horizon)
    if item is None or found is None:
        return row("", theirs, "", "")
    points = Cell("")
    if printed is not None:
        apart = 100.0 * found["wins"] - printed
        far = (apart > _FAR and item.origin == "printed") or apart < -_FAR
        far = far and records.scale == "paper"
        if far:
            remarks.append(_remark(records, item, horizon))
        points = Cell(f"{apart:+.1f}{' ‡' if far else ''}", apart, "off" if far else "")
    share, common = (percent(found[name], sign=False) for name in ("wins", "wins_common_luck"))
    return (share, theirs, points, common)


# What is about the work: formula classes and computing time ------------------------------------


def class_counts(records: Records) -> ReportTable | None:
    """How many formulas and classes there are, by length."""
    found = records.found("classes")
    if found is None:
        return None
    rows = [row(*line.values()) for line in found["counts"]]
    rows.append(row("all", *found["totals"].values()))
    if records.scale == "paper":
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
        Cell(f"about {theirs}" if records.scale == "paper" else "", theirs),
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
        Cell(f"{low} to {high}" if records.scale == "paper" else "", low),
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
        caption="" if records.scale == "paper" else said,
    )


def learning_times(records: Records) -> ReportTable | None:
    """How long learning takes, beside the paper."""
    if records.scale != "paper":
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
