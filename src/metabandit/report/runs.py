"""Reports of single runs: what `evaluate`, `learn`, `search`, `trial` and `advise` print with --json.

Studies register what they add to reports: those of their own records, and formulas that they published.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from typing import Any

from ..data import read_data
from ..drawing import Line, curves, dots, lengths
from ..engine.results import NORMAL_95, floor_name
from ..errors import InputError
from ..policies.file import ADVICE_FORMAT, PolicyFile
from ..priors import Bernoulli
from ..priors import prior as read_prior
from .advice import advice_report
from .content import (
    Cell,
    Figure,
    Report,
    ReportTable,
    Run,
    Section,
    filled,
    number,
    percent,
    row,
    section,
)
from .maps import policy_maps
from .trials import trial_sections

SOURCES = (
    "a report is made from an advice, from what `evaluate`, `learn`, `search` or `trial` printed with --json, "
    "or from the records of `reproduce`"
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


def run_report(value: Run, prefix: str) -> Report:
    """The report of a run, as its command printed it; the ids of its parts begin with `prefix`."""
    if "results" in value:
        return join(
            [
                (f"{item['horizon']} plays", run_report(item, f"{prefix}-{place}"))
                for place, item in enumerate(value["results"], 1)
            ]
        )
    if value.get("format") == ADVICE_FORMAT:
        return advice_report(value, prefix)
    if "seconds" not in value and "learned" in value:
        raise InputError(
            "this is the policy that was found, not the run; give what `learn` or `search` printed with --json"
        )
    if "ranking" in value:
        title, parts = "Search for formulas", _search(value, prefix)
    elif "learned" in value:
        title, parts = f"Learning {value['learned']['space']}", _learning(value, prefix)
    elif "designs" in value:
        title, parts = "Operating characteristics", trial_sections(value, prefix)
    elif "policies" in value:
        title, parts = "Evaluation", _evaluation(value, prefix)
    else:
        raise InputError(f"this is not the result of a run; {SOURCES}")
    return Report(title, sections=filled(parts))


def join(reports: Sequence[tuple[str, Report]]) -> Report:
    """Several reports in one; the name of each stands before the titles of its sections."""
    if len(reports) == 1:
        return reports[0][1]
    sections = [
        replace(item, title=f"{name}: {item.title}")
        for name, report in reports
        for item in report.sections
    ]
    return Report(f"{len(reports)} runs", sections=tuple(sections))


def _evaluation(value: Run | None, prefix: str) -> list[Section]:
    if not value:
        return []
    title = f"Regret after {value['horizon']} plays"
    # The best first.
    value = {**value, "policies": sorted(value["policies"], key=lambda item: item["mean_regret"])}
    figures = [_curves(value, prefix), _above_floor(value, prefix)]
    return [section(f"{prefix}-evaluation", title, [_policies(value, prefix)], figures)]


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
    digits = 6 if method == "exact" else 4
    rows: list[dict[str, Any]] = []
    for item in value["policies"]:
        half = _half(item, method)
        cells = {"policy": item["policy"], "regret": number(item["mean_regret"], digits, half=half)}
        if item.get("successes") is not None:
            cells["successes"] = number(item["successes"], digits)
        if floor is not None:
            share = None if half is None else half / floor["regret"]
            cells["above the floor"] = percent(item["above_floor"], 2, half=share)
        cells["simple regret"] = number(item["simple_regret"], 3)
        cells["plays of each arm"] = " / ".join(f"{count:.1f}" for count in item["plays"][:4])
        rows.append(cells)
    columns = list(rows[0])
    if floor is not None:
        last = {
            "policy": floor_name(floor.get("kind", "")),
            "regret": number(floor["regret"], 6),
            "successes": number(floor.get("expected_reward"), digits),
        }
        rows.append({title: last.get(title, "") for title in columns})
    return ReportTable(
        f"{prefix}-policies",
        "Regret of each policy",
        tuple(columns),
        tuple(row(*cells.values()) for cells in rows),
        caption=f"{_problems(value)}; {how}. Less is better.",
    )


def _curves(value: Run, prefix: str) -> Figure | None:
    """Regret over plays, of the best policies."""
    shown = value["policies"][:_MOST_LINES]
    lines: list[Line] = []
    for item in reversed(shown):
        plays, regret = (
            [point[key] for point in item["curve"]] for key in ("plays", "mean_regret")
        )
        half = [NORMAL_95 * (point["standard_error"] or 0.0) for point in item["curve"]]
        lines.append((item["policy"], plays, regret, half))
    if not lines or len(lines[0][1]) < 2:
        return None
    horizon = value["horizon"]
    total = len(value["policies"])
    some = f", the best {len(shown)} of {total} policies" if len(shown) < total else ""
    noise = ", exact." if value["method"] == "exact" else "; bands are 95 % intervals."
    axis = "log" if horizon > 50 else ""
    return Figure(
        f"{prefix}-curves",
        "Regret over plays",
        f"Mean regret over {horizon} plays{some}{noise}",
        partial(curves, lines, x="plays", y="regret", axis=axis),
    )


def _above_floor(value: Run, prefix: str) -> Figure | None:
    """How far each policy is above the floor."""
    if value["floor"] is None:
        return None
    rows = [
        (item["policy"], "", [100.0 * item["above_floor"]])
        for item in value["policies"]
        if item["above_floor"] is not None
    ]
    noise = "" if value["method"] == "exact" else " Simulated: the table has the noise."
    series, x = [f"T = {value['horizon']}"], "above the floor (logarithmic)"
    return Figure(
        f"{prefix}-floor",
        "Regret above the Bayes-optimal floor",
        "How much more regret each policy has than the best possible one. Marks at 0.01 % mean "
        f"0.01 % or less.{noise}",
        partial(dots, rows, series, x=x),
    )


def _maps(value: Run, prefix: str) -> Section:
    """What the policy of a file does, beside UCB1-Tuned and the optimum; two Bernoulli arms."""
    content = {item.name: value[item.name] for item in fields(PolicyFile) if item.name in value}
    file = read_data(PolicyFile, content)
    origin = file.learned
    assert origin is not None
    known = None
    figures: Sequence[Figure] = ()
    with suppress(InputError):  # a person's own prior, or a file that is not here
        known = read_prior(origin.prior, arms=origin.arms)
    if type(known) is Bernoulli and known.arms == 2 and origin.horizon >= 4:
        made = file.policy.policy("learned")
        figures = policy_maps("learned", made, known, origin.horizon, prefix=prefix)
    return section(f"{prefix}-maps", "What the policy does", figures=figures)


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
    table, figure = _origin(value, prefix), _learning_figure(value, prefix)
    way = section(f"{prefix}-way", "Learning", [table], [figure])
    return [*_evaluation(value.get("comparison"), prefix), way, _maps(value, prefix)]


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
    lines: list[Line] = [
        ("best candidate of the generation", x, best, None),
        ("middle candidate", x, middle, None),
    ]
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
    table, figure = _ranking(value, prefix), length_figure(value, prefix)
    found = section(f"{prefix}-formulas", "Formulas", [table], [figure])
    return [found, *_evaluation(value.get("comparison"), prefix), _maps(value, prefix)]


def _problems(about: Run) -> str:
    return f"{about['arms']} arms, {about['prior']}, {about['horizon']} plays"


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
            value,
            published=published_formulas(learned),
            levels={item["policy"]: item["mean_regret"] for item in rivals},
            floor=learned.get("floor"),
            horizon=learned["horizon"],
            title=_problems(learned),
        ),
    )


# Modules of studies by the `format` of their records. A module is imported when it is needed, and has
#     read_report(path)             the report of the records in a file
#     published_formulas(learned)   if it published formulas: what to call those for such problems
#                                   (`learned`, of a policy file), and each as a dict with formula,
#                                   length and regret
_MODULES: dict[str, str] = {}


def register_study(kind: str, module: str) -> None:
    """Let a module make the reports of records whose first line has this `format`."""
    _MODULES[kind] = module


def study_of(header: Any) -> Any:
    """The study whose records begin with this value, or None."""
    module = _MODULES.get(str(header.get("format"))) if isinstance(header, dict) else None
    return None if module is None else import_module(module)


def published_formulas(learned: Any) -> dict[str, list[dict[str, Any]]]:
    """Formulas that studies published for such problems, by what to call them."""
    studies = map(import_module, _MODULES.values())
    return dict(
        study.published_formulas(learned)
        for study in studies
        if hasattr(study, "published_formulas")
    )
