"""Reports of single runs: what `evaluate`, `learn` and `search` print with --json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from ..data import read_data
from ..engine.results import NORMAL_95
from ..errors import InputError
from ..language import length, parse
from ..policies import IndexPolicy, policy
from ..policies.file import PolicyFile
from ..priors import Bernoulli
from ..priors import prior as read_prior
from ..studies.maes2012.paper import table1
from .content import Cell, Figure, Report, Section, Table, number, percent, significant
from .drawing import Dots, Formula, Line, curves, dots, lengths
from .maps import policy_maps

# Lines that one picture can hold.
_MOST_LINES = 8


def run_report(value: Mapping[str, Any], prefix: str) -> Report:
    """The report of a run, as its command printed it; `prefix` begins the names of its parts."""
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
        return Report("Search for formulas", (), (), tuple(_search(value, prefix)))
    if "learned" in value:
        title = f"Learning {value['learned']['space']}"
        return Report(title, (), (), tuple(_learn(value, prefix)))
    if "policies" not in value:
        raise InputError(
            "this is no result of a run; a report is made from what `evaluate`, `learn` or `search` print "
            "with --json, or from the records of `reproduce`"
        )
    return Report("Evaluation", (), (), tuple(_evaluation(value, prefix)))


def join(reports: Sequence[tuple[str, Report]]) -> Report:
    """Several reports in one; the name of each stands before the titles of its sections."""
    if len(reports) == 1:
        return reports[0][1]
    sections = [
        replace(section, title=f"{name}: {section.title}")
        for name, report in reports
        for section in report.sections
    ]
    return Report(f"{len(reports)} runs", (), (), tuple(sections))


def _about(value: Mapping[str, Any]) -> str:
    how = "exact"
    if value["method"] != "exact":
        runs = f", {value['runs']} of each problem" if value["runs"] > 1 else ""
        how = f"{value['episodes']:,} episodes{runs}, seed {value['seed']}"
    return f"{value['arms']} arms, {value['prior']}, {value['horizon']} plays; {how}"


def comparison_table(value: Mapping[str, Any], prefix: str) -> Table:
    """The policies of an evaluation, best first."""
    rows = []
    simulated = value["method"] != "exact"
    floor = value["floor"]
    for item in sorted(value["policies"], key=lambda item: item["mean_regret"]):
        error = item["standard_error"]
        text = significant(item["mean_regret"], 4 if simulated else 6)
        if simulated and error is not None:
            text += f" ± {significant(NORMAL_95 * error, 2)}"
        row = [Cell(item["policy"]), Cell(text, item["mean_regret"])]
        if floor is not None:
            row.append(_above(item, floor, simulated=simulated))
        row.append(number(item["simple_regret"], 3))
        row.append(Cell(" / ".join(f"{plays:.1f}" for plays in item["plays"][:4])))
        rows.append(tuple(row))
    columns = ["policy", "regret"]
    if floor is not None:
        columns.append("above the floor")
        rows.append(
            (Cell("Bayes-optimal"), number(floor["regret"], 6), Cell(""), Cell(""), Cell(""))
        )
    return Table(
        f"{prefix}-policies",
        "Regret of each policy",
        (*columns, "simple regret", "plays of each arm"),
        tuple(rows),
        caption=f"{_about(value)}. Less is better.",
    )


def _above(item: Mapping[str, Any], floor: Mapping[str, Any], *, simulated: bool) -> Cell:
    """How far above the floor, with its noise if it has any."""
    above, error = item["above_floor"], item["standard_error"]
    if above is None or not simulated or error is None:
        return percent(above, 2)
    half = 100.0 * NORMAL_95 * error / floor["regret"]
    return Cell(f"{100.0 * above:+.2f} ± {significant(half, 2)} %", above)


def _comparison_figures(value: Mapping[str, Any], prefix: str) -> list[Figure]:
    horizon = value["horizon"]
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
    some = f", the best {_MOST_LINES} of {len(lines)} policies" if len(lines) > _MOST_LINES else ""
    if lines and len(lines[0].x) > 1:
        figures.append(
            Figure(
                f"{prefix}-curves",
                "Regret over plays",
                f"Mean regret after so many of {horizon} plays{some}"
                + ("; bands are 95 % intervals." if value["method"] != "exact" else ", exact."),
                partial(curves, lines[-_MOST_LINES:], x="plays", y="regret", log_x=horizon > 50),
            )
        )
    if value["floor"] is not None:
        rows = [
            Dots(item["policy"], "", [100.0 * item["above_floor"]])
            for item in reversed(ranked)
            if item["above_floor"] is not None
        ]
        figures.append(
            Figure(
                f"{prefix}-floor",
                "Regret above the Bayes-optimal floor",
                "How much more regret each policy has than the best there can be. Marks at 0.01 % stand for this or less."
                + ("" if value["method"] == "exact" else " Simulated: the table has the noise."),
                partial(dots, rows, [f"T = {horizon}"], x="above the floor (logarithmic)", least=0.01),
            )
        )  # fmt: skip
    return figures


def _evaluation(value: Mapping[str, Any], prefix: str) -> list[Section]:
    return [
        Section(
            f"{prefix}-evaluation",
            f"Regret after {value['horizon']} plays",
            (),
            (comparison_table(value, prefix),),
            tuple(_comparison_figures(value, prefix)),
        )
    ]


def _maps(value: Mapping[str, Any], prefix: str) -> list[Section]:
    """What the policy of a file does, beside UCB1-Tuned and the optimum; two Bernoulli arms."""
    file = read_data(
        PolicyFile,
        {item.name: value[item.name] for item in fields(PolicyFile) if item.name in value},
    )
    origin = file.learned
    assert origin is not None
    try:
        known = read_prior(origin.prior, arms=origin.arms)
    except InputError:  # a person's own prior, or a file that is not here
        return []
    made, rival = file.policy.policy("learned"), policy("ucb1-tuned")
    if type(known) is not Bernoulli or known.arms != 2 or origin.horizon < 4:
        return []
    if not isinstance(made, IndexPolicy) or not isinstance(rival, IndexPolicy):
        return []
    figures = policy_maps(
        {"learned": made, "UCB1-Tuned": rival}, origin.horizon, known, prefix=prefix
    )
    return [Section(f"{prefix}-maps", "What the policy does", (), (), figures)]


def _origin(value: Mapping[str, Any], prefix: str) -> Table:
    """How a policy was learned, and its numbers."""
    learned = value["learned"]
    rows = [(key, learned[key]) for key in ("space", "prior", "arms", "horizon", "objective", "protocol", "optimizer", "seed", "stopped", "generations", "evaluations")]  # fmt: skip
    content = value["policy"]
    if "expression" in content:
        rows.append(("policy", content["expression"]))
    numbers = content.get("weights", content.get("parameters", {}))
    rows += [(name, f"{weight:.6g}") for name, weight in numbers.items()]
    rows.append(("start", content.get("start", {}).get("kind", "its own")))
    if value.get("objective") is not None:
        rows.append((f"{_objective(learned)} (fresh problems)", f"{value['objective']:.6g}"))
    rows.append(("seconds", f"{value['seconds']:.1f}"))
    cells = tuple((Cell(str(name)), Cell(str(content))) for name, content in rows)
    return Table(
        f"{prefix}-origin", "The policy, and how it was found", ("what", "value"), cells, align="l", folded=True
    )  # fmt: skip


def _objective(learned: Mapping[str, Any]) -> str:
    """What the numbers of a search are; less of it is better."""
    if learned["objective"] == "wins":
        return f"share of problems not won against {learned['reference']}"
    words = {
        "regret": "mean regret",
        "worst": "largest regret of a problem",
        "simple": "simple regret",
    }
    return words.get(learned["objective"], f"{learned['objective']} of regret")


def _learn(value: Mapping[str, Any], prefix: str) -> list[Section]:
    sections = []
    if value.get("comparison"):
        sections += _evaluation(value["comparison"], prefix)
    trace = value.get("trace", [])
    horizon = value["learned"]["horizon"]
    last = [item for item in trace if item["horizon"] == horizon and item["best"] is not None]
    figures = []
    if len(last) > 1:
        x = [item["generation"] + 1 for item in last]
        lines = [
            Line("best candidate of the generation", x, [item["best"] for item in last]),
            Line(
                "middle candidate",
                x,
                [float("nan") if item["median"] is None else item["median"] for item in last],
            ),
        ]
        floor = value["learned"].get("floor")
        regret = value["learned"]["objective"] == "regret"
        what = _objective(value["learned"])
        worst = sorted(item["best"] for item in last)[len(last) * 9 // 10]
        figures.append(
            Figure(
                f"{prefix}-learning",
                "Learning",
                f"{what[0].upper()}{what[1:]}, generation by generation; less is better.",
                partial(curves, lines, x="generation", y=what,
                        levels={"floor": floor} if floor and regret else {},
                        top=1.5 * worst if worst > 0 else None, whole=True),
            )
        )  # fmt: skip
    sections.append(
        Section(f"{prefix}-way", "Learning", (), (_origin(value, prefix),), tuple(figures))
    )
    return sections + _maps(value, prefix)


def _search(value: Mapping[str, Any], prefix: str) -> list[Section]:
    learned = value["learned"]
    horizon = learned["horizon"]
    floor = learned.get("floor")
    rows = []
    for place, item in enumerate(value["ranking"], 1):
        error = (
            ""
            if item["method"] == "exact"
            else f" ± {significant(NORMAL_95 * item['standard_error'], 2)}"
        )
        row = [
            Cell(item["formula"]),
            Cell(str(place), place),
            Cell(str(item["length"]), item["length"]),
        ]
        row.append(
            Cell(f"{significant(item['regret'], 6 if not error else 4)}{error}", item["regret"])
        )
        row.append(percent(None if not floor else item["regret"] / floor - 1.0, 2))
        row.append(Cell(f"{item['class_size']:,}", item["class_size"]))
        rows.append(tuple(row))  # fmt: skip
    table = Table(
        f"{prefix}-ranking",
        f"The best formulas of {value['classes']:,} classes",
        ("formula", "place", "length", "regret", "above the floor", "formulas that rank alike"),
        tuple(rows),
        caption=f"{learned['arms']} arms, {learned['prior']}, {horizon} plays; strategy {value['strategy']}.",
    )
    sections = [Section(f"{prefix}-formulas", "Formulas", (), (table,), (_lengths(value, prefix),))]
    if value.get("comparison"):
        sections += _evaluation(value["comparison"], prefix)
    return sections + _maps(value, prefix)


def _lengths(value: Mapping[str, Any], prefix: str) -> Figure:
    learned = value["learned"]
    horizon = learned["horizon"]
    refined = next((item["refined"] for item in value["ranking"] if item["refined"]), None)
    classics = value["comparison"]["policies"][1:] if value.get("comparison") else []
    return Figure(
        f"{prefix}-lengths",
        "Length against regret",
        "The best formula of each length; every symbol counts as one.",
        partial(
            lengths,
            [Formula(item["formula"], item["length"], item["regret"]) for item in value["best_of_length"]],
            paper=_papers(learned),
            paper_label="found in the paper (regret as it reports)",
            levels={item["policy"]: item["mean_regret"] for item in classics},
            refined=None if refined is None else Formula(refined["expression"], 0, refined["regret"]),
            floor=learned.get("floor"),
            horizon=horizon,
            title=f"{learned['arms']} arms, {learned['prior']}, {horizon} plays",
        ),
    )  # fmt: skip


def _papers(learned: Mapping[str, Any]) -> list[Formula]:
    """The paper's formulas for these problems, with the regret that it reports."""
    if learned["arms"] != 2 or learned["prior"] != str(Bernoulli(arms=2)):
        return []
    horizon = learned["horizon"]
    return [
        Formula(row.parameters, length(parse(row.parameters)), row.regret["bernoulli", horizon])
        for row in table1()
        if row.category == "learned symbolic" and row.training == horizon
    ]


def length_figure(found: Mapping[str, Any]) -> Figure:
    """The picture of a search: regret against length."""
    return _lengths(found, "run")
