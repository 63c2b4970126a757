"""Reports of single runs: what `evaluate`, `learn` and `search` print with --json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from ..data import read_data
from ..engine.results import NORMAL_95
from ..errors import InputError
from ..policies.file import PolicyFile
from ..priors import Bernoulli
from ..priors import prior as read_prior
from .content import Cell, Figure, Report, ReportTable, Section, number, percent, row
from .drawing import Line, curves, dots, lengths
from .maps import policy_maps
from .registry import published_formulas

SOURCES = (
    "a report is made from what `evaluate`, `learn` or `search` printed with --json, or from the "
    "records of `reproduce`"
)
# Lines that one picture can hold.
_MOST_LINES = 8
_OBJECTIVES = {
    "regret": "mean regret",
    "worst": "largest regret of a problem",
    "simple": "simple regret",
}
# What a table says of how a policy was learned.
_ORIGIN = (
    "space", "prior", "arms", "horizon", "objective", "protocol", "optimizer", "seed", "stopped",
    "generations", "evaluations",
)  # fmt: skip

Run = Mapping[str, Any]


def run_report(value: Run, prefix: str) -> Report:
    """The report of a run, as its command printed it; the ids of its parts begin with `prefix`."""
    if "results" in value:
        parts = [
            (f"{item['horizon']} plays", run_report(item, f"{prefix}-{place}"))
            for place, item in enumerate(value["results"], 1)
        ]
        return join(parts)
    if "seconds" not in value and "learned" in value:
        raise InputError(
            "this is the policy that was found, not the run; give what `learn` or `search` printed with --json"
        )
    if "ranking" in value:
        return Report("Search for formulas", sections=tuple(_search(value, prefix)))
    if "learned" in value:
        title = f"Learning {value['learned']['space']}"
        return Report(title, sections=tuple(_learning(value, prefix)))
    if "policies" not in value:
        raise InputError(f"this is no result of a run; {SOURCES}")
    return Report("Evaluation", sections=tuple(_evaluation(value, prefix)))


def join(reports: Sequence[tuple[str, Report]]) -> Report:
    """Several reports in one; the name of each stands before the titles of its sections."""
    if len(reports) == 1:
        return reports[0][1]
    sections = [
        replace(section, title=f"{name}: {section.title}")
        for name, report in reports
        for section in report.sections
    ]
    return Report(f"{len(reports)} runs", sections=tuple(sections))


def _evaluation(value: Run | None, prefix: str) -> list[Section]:
    if not value:
        return []
    title = f"Regret after {value['horizon']} plays"
    tables, figures = (_policies(value, prefix),), tuple(_evaluation_figures(value, prefix))
    return [Section(f"{prefix}-evaluation", title, (), tables, figures)]


def _half(item: Run, method: str) -> float | None:
    """Half the 95 % interval of a regret; None if it has no noise."""
    error = item["standard_error"]
    return None if method == "exact" or error is None else NORMAL_95 * error


def _policies(value: Run, prefix: str) -> ReportTable:
    """The policies of an evaluation, best first."""
    method, floor = value["method"], value["floor"]
    how = "exact"
    if method != "exact":
        runs = f", {value['runs']} of each problem" if value["runs"] > 1 else ""
        how = f"{value['episodes']:,} episodes{runs}, seed {value['seed']}"
    rows = []
    for item in sorted(value["policies"], key=lambda item: item["mean_regret"]):
        half = _half(item, method)
        above = []
        if floor is not None:
            share = None if half is None else half / floor["regret"]
            above = [percent(item["above_floor"], 2, half=share)]
        rows.append(
            row(
                item["policy"],
                number(item["mean_regret"], 6 if method == "exact" else 4, half=half),
                *above,
                number(item["simple_regret"], 3),
                " / ".join(f"{plays:.1f}" for plays in item["plays"][:4]),
            )
        )
    columns = ["policy", "regret", "simple regret", "plays of each arm"]
    if floor is not None:
        columns.insert(2, "above the floor")
        rows.append(row("Bayes-optimal", number(floor["regret"], 6), "", "", ""))
    about = f"{value['arms']} arms, {value['prior']}, {value['horizon']} plays; {how}"
    caption = f"{about}. Less is better."
    return ReportTable(
        f"{prefix}-policies", "Regret of each policy", tuple(columns), tuple(rows), caption=caption
    )


def _evaluation_figures(value: Run, prefix: str) -> list[Figure]:
    horizon, exact = value["horizon"], value["method"] == "exact"
    ranked = sorted(value["policies"], key=lambda item: -item["mean_regret"])
    lines = [
        Line(
            item["policy"],
            [point["plays"] for point in item["curve"]],
            [point["mean_regret"] for point in item["curve"]],
            [NORMAL_95 * (point["standard_error"] or 0.0) for point in item["curve"]],
        )
        for item in ranked
    ]
    figures = []
    if lines and len(lines[0].x) > 1:
        shown = lines[-_MOST_LINES:]
        some = f", the best {len(shown)} of {len(lines)} policies" if shown != lines else ""
        figures.append(
            Figure(
                f"{prefix}-curves",
                "Regret over plays",
                f"Mean regret over {horizon} plays{some}"
                + (", exact." if exact else "; bands are 95 % intervals."),
                partial(curves, shown, x="plays", y="regret", axis="log" if horizon > 50 else ""),
            )
        )
    if value["floor"] is not None:
        rows = [
            (item["policy"], "", [100.0 * item["above_floor"]])
            for item in reversed(ranked)
            if item["above_floor"] is not None
        ]
        x = "above the floor (logarithmic)"
        figures.append(
            Figure(
                f"{prefix}-floor",
                "Regret above the Bayes-optimal floor",
                "How much more regret each policy has than the best possible one. Marks at 0.01 % mean "
                "0.01 % or less." + ("" if exact else " Simulated: the table has the noise."),
                partial(dots, rows, [f"T = {horizon}"], x=x, least=0.01),
            )
        )
    return figures


def _maps(value: Run, prefix: str) -> list[Section]:
    """What the policy of a file does, beside UCB1-Tuned and the optimum; two Bernoulli arms."""
    content = {item.name: value[item.name] for item in fields(PolicyFile) if item.name in value}
    file = read_data(PolicyFile, content)
    origin = file.learned
    assert origin is not None
    try:
        known = read_prior(origin.prior, arms=origin.arms)
    except InputError:  # a person's own prior, or a file that is not here
        return []
    if type(known) is not Bernoulli or known.arms != 2 or origin.horizon < 4:
        return []
    made = file.policy.policy("learned")
    figures = policy_maps("learned", made, known, origin.horizon, prefix=prefix)
    if not figures:
        return []
    return [Section(f"{prefix}-maps", "What the policy does", figures=figures)]


def _origin(value: Run, prefix: str) -> ReportTable:
    """How a policy was learned, and its numbers."""
    learned, content = value["learned"], value["policy"]
    rows = [(key, str(learned[key])) for key in _ORIGIN]
    if "expression" in content:
        rows.append(("policy", content["expression"]))
    numbers = content.get("weights", content.get("parameters", {}))
    rows += [(name, f"{weight:.6g}") for name, weight in numbers.items()]
    rows.append(("start", content.get("start", {}).get("kind", "its own")))
    if value.get("objective") is not None:
        rows.append((f"{_objective(learned)} (fresh problems)", f"{value['objective']:.6g}"))
    rows.append(("seconds", f"{value['seconds']:.1f}"))
    title, cells = "The policy, and how it was found", tuple(row(*item) for item in rows)
    return ReportTable(f"{prefix}-origin", title, ("what", "value"), cells, align="l", folded=True)


def _objective(learned: Run) -> str:
    """What the numbers of a search are; less of it is better."""
    name: str = learned["objective"]
    if name == "wins":
        return f"share of problems not won against {learned['reference']}"
    return _OBJECTIVES.get(name, f"{name} of regret")


def _learning(value: Run, prefix: str) -> list[Section]:
    figure, table = _learning_figure(value, prefix), _origin(value, prefix)
    figures = () if figure is None else (figure,)
    return [
        *_evaluation(value.get("comparison"), prefix),
        Section(f"{prefix}-way", "Learning", tables=(table,), figures=figures),
        *_maps(value, prefix),
    ]


def _learning_figure(value: Run, prefix: str) -> Figure | None:
    """The objective, generation by generation, at the horizon that was asked for."""
    learned = value["learned"]
    last = [
        item
        for item in value.get("trace", [])
        if item["horizon"] == learned["horizon"] and item["best"] is not None
    ]
    if len(last) < 2:
        return None
    x = [item["generation"] + 1 for item in last]
    best = [item["best"] for item in last]
    middle = [float("nan") if item["median"] is None else item["median"] for item in last]
    lines = [Line("best candidate of the generation", x, best), Line("middle candidate", x, middle)]
    what, floor = _objective(learned), learned.get("floor")
    levels = {"floor": floor} if floor and learned["objective"] == "regret" else {}
    worst = sorted(best)[len(best) * 9 // 10]
    top = 1.5 * worst if worst > 0 else None
    return Figure(
        f"{prefix}-learning",
        "Learning",
        f"{what[0].upper()}{what[1:]}, generation by generation; less is better.",
        partial(curves, lines, x="generation", y=what, axis="whole", levels=levels, top=top),
    )


def _search(value: Run, prefix: str) -> list[Section]:
    figures = (length_figure(value, prefix),)
    return [
        Section(f"{prefix}-formulas", "Formulas", (), (_ranking(value, prefix),), figures),
        *_evaluation(value.get("comparison"), prefix),
        *_maps(value, prefix),
    ]


def _problems(learned: Run) -> str:
    return f"{learned['arms']} arms, {learned['prior']}, {learned['horizon']} plays"


def _ranking(value: Run, prefix: str) -> ReportTable:
    """The best formulas of a search, best first."""
    floor = value["learned"].get("floor")
    rows = []
    for place, item in enumerate(value["ranking"], 1):
        half = _half(item, item["method"])
        rows.append(
            row(
                item["formula"],
                Cell(str(place), place),
                Cell(str(item["length"]), item["length"]),
                number(item["regret"], 6 if half is None else 4, half=half),
                percent(item["regret"] / floor - 1.0 if floor else None, 2),
                item["class_size"],
            )
        )
    return ReportTable(
        f"{prefix}-ranking",
        f"The best formulas of {value['classes']:,} classes",
        ("formula", "place", "length", "regret", "above the floor", "formulas that rank alike"),
        tuple(rows),
        caption=f"{_problems(value['learned'])}; strategy {value['strategy']}.",
    )


def length_figure(value: Run, prefix: str = "run") -> Figure:
    """The picture of a search: regret against length."""
    learned = value["learned"]
    rivals = value["comparison"]["policies"][1:] if value.get("comparison") else []
    return Figure(
        f"{prefix}-lengths",
        "Length against regret",
        "The best formula of each length; every symbol counts as one.",
        partial(
            lengths,
            value["best_of_length"],
            published=published_formulas(learned),
            levels={item["policy"]: item["mean_regret"] for item in rivals},
            refined=next((item["refined"] for item in value["ranking"] if item["refined"]), None),
            floor=learned.get("floor"),
            horizon=learned["horizon"],
            title=_problems(learned),
        ),
    )
