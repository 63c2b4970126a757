"""The pictures of a reproduction."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...engine.results import NORMAL_95
from ...language import length, parse
from ...policies import IndexPolicy, policy
from ...priors import Bernoulli
from ...report.content import Figure
from ...report.drawing import Dots, Formula, Line, curves, dots, heat_maps, lengths
from ...report.maps import policy_maps
from .findings import Findings, ordered
from .paper import HORIZONS
from .plan import Candidate, candidates


def _robust(findings: Findings) -> dict[str, Any]:
    """Percent above the floor by training and testing horizon, for what was learned here."""
    maps = {}
    for label in ("Power-1", "Power-2", "Formula-1", "Formula-2", "UCB1", "KL-UCB"):
        values = np.full((3, 3), np.nan)
        for item in candidates():
            if item.label != label or not item.id.startswith("found"):
                continue
            row = HORIZONS.index(item.training or 0)
            for column, horizon in enumerate(HORIZONS):
                above = findings.above_floor(item, horizon)
                if above is not None:
                    values[row, column] = 100.0 * above
        if np.isfinite(values).all():
            maps[f"{label}{', tuned' if label in ('UCB1', 'KL-UCB') else ''}"] = values
    return maps


def _dot_rows(findings: Findings) -> list[Dots]:
    """Each policy once, as made for the horizon that it is tested on."""
    rows = []
    kinds: dict[tuple[str, str, str], list[Candidate]] = {}
    for item in ordered(findings):
        kind = item.id.partition("/")[0]
        if item.group == "tuned" and kind == "found":
            continue
        label = item.label
        if item.group == "untuned" and item.text and ":" in item.text:
            label = f"{item.label}, {findings.parameters(item)}"
        elif item.group == "tuned":
            label = f"{item.label}, tuned (paper)"
        elif item.group == "symbolic":
            label = f"{item.label} ({'paper' if kind == 'printed' else 'found here'})"
        elif item.group == "numerical":
            label = f"{item.label} (learned here)"
        kinds.setdefault((item.group, kind, label), []).append(item)
    for (group, _, label), items in kinds.items():
        values = []
        for horizon in HORIZONS:
            made = next((item for item in items if item.training in (None, horizon)), None)
            above = None if made is None else findings.above_floor(made, horizon)
            values.append(None if above is None else 100.0 * above)
        if any(value is not None for value in values):
            rows.append(Dots(label, group, values))
    return rows


def _curve_lines(findings: Findings, horizon: int) -> list[Line]:
    """Regret over plays of a few policies that say most."""
    wanted = {
        "printed/ucb1:C=2": "UCB1",
        "printed/ucb1-tuned": "UCB1-Tuned",
        "printed/kl-ucb:c=0": "KL-UCB",
        "today/thompson": "Thompson sampling",
        f"found/formula-1/{horizon}": "Formula-1, found here",
        f"found/power-2/{horizon}": "Power-2, learned here",
        f"ours/power-1/{horizon}": "ours, Power-1",
    }
    lines = []
    for item in candidates():
        found = findings.test(item, "bernoulli", horizon)
        if item.id in wanted and found is not None and "curve" in found:
            x, y, error = zip(*found["curve"], strict=True)
            lines.append(Line(wanted[item.id], x, y, [NORMAL_95 * value for value in error]))
    return sorted(lines, key=lambda line: -line.y[-1])


def learning_curves(findings: Findings) -> list[Figure]:
    figures = []
    for horizon in HORIZONS[1:]:
        found = findings.get(f"curve/{horizon}")
        source = findings.get(f"learn/power-1/{horizon}")
        if found is None or source is None or not found["points"]:
            continue
        last = len(source["best"])
        points = [*found["points"], {**found["points"][-1], "generation": last}]
        x = [point["generation"] for point in points]
        lines = [
            Line("training: 100 problems, drawn once", x, [point["training"] for point in points], steps=True),
            Line("testing: the whole prior", x, [point["testing"] for point in points],
                 [NORMAL_95 * point["standard_error"] for point in points], steps=True),
        ]  # fmt: skip
        levels = {}
        floor = findings.floor(horizon)
        if floor is not None:
            levels["floor"] = floor
        rival = findings.get(f"test/printed/ucb1-tuned/bernoulli/{horizon}")
        if rival is not None:
            levels["UCB1-Tuned"] = rival["regret"]
        ends = [point["testing"] for point in found["points"]]
        figures.append(
            Figure(
                f"learning-{horizon}",
                f"Learning Power-1 for T = {horizon}",
                f"Regret of the best candidate so far by generation of the paper's algorithm: on its training "
                f"problems, and on problems that it never saw ({ends[0]:.3g} at first, {ends[-1]:.4g} in the end).",
                partial(curves, lines, x="generation",
                    whole=True, y=f"regret after {horizon} plays", levels=levels,
                        top=1.25 * max(levels.values(), default=max(ends)), width=5.4),
                narrow=True,
            )
        )  # fmt: skip
    return figures


def formula_lengths(findings: Findings) -> list[Figure]:
    figures = []
    for horizon in HORIZONS:
        found = findings.get(f"search/ours/{horizon}")
        if found is None:
            continue
        best = [
            Formula(item["formula"], item["length"], item["regret"])
            for item in found["best_of_length"]
        ]
        printed = []
        levels = {}
        for item in candidates():
            test = findings.test(item, "bernoulli", horizon)
            if test is None or item.text is None:
                continue
            value = findings.exact(item, horizon) or test["regret"]
            if item.group == "symbolic" and item.training == horizon:
                printed.append(Formula(item.text, length(parse(item.text)), value))
            if item.id in ("printed/ucb1-tuned", "today/thompson", "today/gittins"):
                levels[item.label] = value
        refined = next((item["refined"] for item in found["ranking"] if item["refined"]), None)
        figures.append(
            Figure(
                f"lengths-{horizon}",
                f"Length against regret, T = {horizon}",
                f"The best formula of each length, by regret after {horizon} plays, with the start prior-counts; "
                f"the paper's formulas play each arm once. Every symbol counts as one.",
                partial(
                    lengths,
                    best,
                    paper=printed,
                    levels=levels,
                    refined=None if refined is None else Formula(refined["expression"], 0, refined["regret"]),
                    floor=findings.floor(horizon),
                    horizon=horizon,
                    title=f"two Bernoulli arms, {horizon} plays",
                ),
            )
        )  # fmt: skip
    return figures


def maps(findings: Findings) -> tuple[Figure, ...]:
    """The index of our policy for T = 100, beside UCB1-Tuned's and the optimum's choices."""
    learned = next((item for item in candidates() if item.id == "ours/power-1/100"), None)
    if learned is None or learned.source not in findings.records:
        return ()
    made = findings.policy(learned)
    rival = policy("ucb1-tuned")
    if not isinstance(made, IndexPolicy) or not isinstance(rival, IndexPolicy):
        return ()
    return policy_maps(
        {"ours, Power-1": made, "UCB1-Tuned": rival}, 100, Bernoulli(arms=2), prefix="map"
    )


def above_floor(findings: Findings) -> Figure | None:
    """Every policy by its distance to the floor."""
    rows = _dot_rows(findings)
    if not rows:
        return None
    return Figure(
        "above-floor",
        "Regret above the Bayes-optimal floor",
        "Each policy on the prior of the paper, by horizon: how much more regret it has than the "
        "Bayes-optimal policy. Those that are tuned or learned are as made for that horizon. Marks at 0.01 % "
        "stand for this or less.",
        partial(
            dots,
            rows,
            [f"T = {horizon}" for horizon in HORIZONS],
            x="regret above the floor (logarithmic)",
            least=0.01,
        ),
    )


def regret_curves(findings: Findings) -> list[Figure]:
    """Regret over plays, for the longer horizons."""
    figures = []
    for horizon in HORIZONS[1:]:
        lines = _curve_lines(findings, horizon)
        if lines:
            ends = ", ".join(f"{line.label} {line.y[-1]:.3g}" for line in lines)
            figures.append(
                Figure(
                    f"curves-{horizon}",
                    f"Regret over {horizon} plays",
                    f"Mean regret after so many plays, on Bernoulli arms; bands are 95 % intervals. At the end: "
                    f"{ends}.",
                    partial(curves, lines, x="plays", y="regret", log_x=True),
                )
            )
    return figures


def robustness(findings: Findings) -> Figure | None:
    """Training against testing horizon."""
    found = _robust(findings)
    if not found:
        return None
    return Figure(
        "horizons",
        "Trained for one horizon, tested on another",
        "Percent above the floor, for policies learned or tuned here; rows are the horizon of training, columns "
        "that of testing; darker is worse.",
        partial(
            heat_maps,
            found,
            [str(horizon) for horizon in HORIZONS],
            x="tested on T",
            y="trained for T",
            unit=" %",
        ),
    )
