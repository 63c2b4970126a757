"""The pictures of a reproduction."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...engine.results import NORMAL_95
from ...language import length, parse
from ...priors import Bernoulli
from ...report.content import Figure
from ...report.drawing import DotRow, Line, curves, dots, heat_maps, lengths
from ...report.maps import policy_maps
from .findings import Findings
from .paper import HORIZONS
from .plan import StudiedPolicy, studied_policies


def above_floor(findings: Findings) -> Figure | None:
    """Every policy by its distance from the floor."""
    rows = _dot_rows(findings)
    if not rows:
        return None
    series, x = [f"T = {horizon}" for horizon in HORIZONS], "regret above the floor (logarithmic)"
    return Figure(
        "above-floor",
        "Regret above the Bayes-optimal floor",
        "How much more regret each policy has than the Bayes-optimal one, on the paper's prior, by horizon. Tuned "
        "and learned policies were trained for the horizon shown. Marks at 0.01 % mean 0.01 % or less.",
        partial(dots, rows, series, x=x, least=0.01),
    )


def _dot_rows(findings: Findings) -> list[DotRow]:
    """Each policy once, as made for the horizon that it is tested on."""
    kinds: dict[tuple[str, str], list[StudiedPolicy]] = {}
    for item in findings.policies():
        if item.group == "tuned" and item.origin == "found":
            continue
        label = item.label
        if item.group == "untuned" and item.text and ":" in item.text:
            label += f", {findings.parameters(item)}"
        elif item.group == "tuned":
            label += ", tuned (paper)"
        elif item.group == "symbolic":
            label += f" ({'paper' if item.origin == 'printed' else 'found here'})"
        elif item.group == "numerical":
            label += " (learned here)"
        kinds.setdefault((label, item.group), []).append(item)
    rows: list[DotRow] = []
    for (label, group), items in kinds.items():
        values = []
        for horizon in HORIZONS:
            made = next((item for item in items if item.training in (None, horizon)), None)
            above = None if made is None else findings.above_floor(made, horizon)
            values.append(None if above is None else 100.0 * above)
        if any(value is not None for value in values):
            rows.append((label, group, values))
    return rows


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
                    f"Mean regret over the plays, on Bernoulli arms; bands are 95 % intervals. At the end: {ends}.",
                    partial(curves, lines, x="plays", y="regret", axis="log"),
                )
            )
    return figures


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
    for item in studied_policies():
        found = findings.test(item, "bernoulli", horizon)
        if item.id in wanted and found is not None and "curve" in found:
            x, y, error = zip(*found["curve"], strict=True)
            lines.append(Line(wanted[item.id], x, y, [NORMAL_95 * value for value in error]))
    return sorted(lines, key=lambda line: -line.y[-1])


def robustness(findings: Findings) -> Figure | None:
    """Training against testing horizon, for policies learned here: percent above the floor."""
    maps = {}
    for label in ("Power-1", "Power-2", "Formula-1", "Formula-2", "UCB1", "KL-UCB"):
        values = np.full((len(HORIZONS), len(HORIZONS)), np.nan)
        for item in studied_policies():
            if item.label == label and item.origin == "found":
                above = [findings.above_floor(item, horizon) for horizon in HORIZONS]
                row = HORIZONS.index(item.training or 0)
                values[row] = [np.nan if share is None else 100.0 * share for share in above]
        if np.isfinite(values).all():
            maps[f"{label}{', tuned' if label in ('UCB1', 'KL-UCB') else ''}"] = values
    if not maps:
        return None
    labels = [str(horizon) for horizon in HORIZONS]
    return Figure(
        "horizons",
        "Trained for one horizon, tested on another",
        "Percent above the floor, for policies learned or tuned here; rows are the training horizon, columns the "
        "testing horizon; darker is worse.",
        partial(heat_maps, maps, labels, x="tested on T", y="trained for T", unit=" %"),
    )


def learning_curves(findings: Findings) -> list[Figure]:
    """Training and testing regret, generation by generation."""
    figures = []
    for horizon in HORIZONS[1:]:
        found = findings.get(f"curve/{horizon}")
        source = findings.get(f"learn/power-1/{horizon}")
        if found is not None and source is not None and found["points"]:
            last = {**found["points"][-1], "generation": len(source["best"])}
            figures.append(_learning_curve(findings, [*found["points"], last], horizon))
    return figures


def _learning_curve(findings: Findings, points: list[dict[str, Any]], horizon: int) -> Figure:
    x, training, testing, error = (
        [point[name] for point in points]
        for name in ("generation", "training", "testing", "standard_error")
    )
    lines = [
        Line("training: 100 problems, drawn once", x, training, steps=True),
        Line("testing: the whole prior", x, testing, [NORMAL_95 * half for half in error], steps=True),
    ]  # fmt: skip
    levels = {}
    floor = findings.floor(horizon)
    if floor is not None:
        levels["floor"] = floor
    rival = findings.get(f"test/printed/ucb1-tuned/bernoulli/{horizon}")
    if rival is not None:
        levels["UCB1-Tuned"] = rival["regret"]
    top = 1.25 * max(levels.values(), default=max(testing))
    return Figure(
        f"learning-{horizon}",
        f"Learning Power-1 for T = {horizon}",
        f"Regret of the best candidate so far, by generation of the paper's algorithm: on its training problems, and "
        f"on problems that it never saw ({testing[0]:.3g} at first, {testing[-1]:.4g} in the end).",
        partial(
            curves,
            lines,
            x="generation",
            y=f"regret after {horizon} plays",
            axis="whole",
            levels=levels,
            top=top,
            width=5.4,
        ),
        narrow=True,
    )


def maps(findings: Findings) -> tuple[Figure, ...]:
    """The index of our policy for T = 100, beside UCB1-Tuned's and the optimum's choices."""
    source = "learn/ours/100"
    if source not in findings.records:
        return ()
    made = findings.records.policy({"of": source})
    return policy_maps("ours, Power-1", made, Bernoulli(arms=2), 100, prefix="map")


def formula_lengths(findings: Findings) -> list[Figure]:
    """Length against regret, by horizon."""
    return [
        _length_figure(findings, found, horizon)
        for horizon in HORIZONS
        if (found := findings.get(f"search/ours/{horizon}")) is not None
    ]


def _length_figure(findings: Findings, found: dict[str, Any], horizon: int) -> Figure:
    printed: list[dict[str, Any]] = []
    levels = {}
    for item in studied_policies():
        if item.text is None or findings.test(item, "bernoulli", horizon) is None:
            continue
        regret = findings.regret(item, horizon)
        assert regret is not None
        if item.group == "symbolic" and item.training == horizon:
            size = length(parse(item.text))
            printed.append({"formula": item.text, "length": size, "regret": regret})
        if item.id in ("printed/ucb1-tuned", "today/thompson", "today/gittins"):
            levels[item.label] = regret
    return Figure(
        f"lengths-{horizon}",
        f"Length against regret, T = {horizon}",
        f"The best formula of each length, by regret after {horizon} plays, with the start prior-counts; "
        f"the paper's formulas play each arm once. Every symbol counts as one.",
        partial(
            lengths,
            found["best_of_length"],
            published={"found in the paper (each arm played once)": printed},
            levels=levels,
            refined=next((item["refined"] for item in found["ranking"] if item["refined"]), None),
            floor=findings.floor(horizon),
            horizon=horizon,
            title=f"two Bernoulli arms, {horizon} plays",
        ),
    )
