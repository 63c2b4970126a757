"""The pictures of a reproduction."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...drawing import Line, curves, dots, heat_maps, lengths
from ...engine.results import NORMAL_95
from ...language import length, parse
from ...priors import Bernoulli
from ...report.content import Figure
from ...report.maps import policy_maps
from ..records import Records
from . import findings
from .paper import HORIZONS
from .plan import studied_policies


def above_floor(records: Records) -> Figure | None:
    """Every policy by its distance from the floor, as made for the horizon that it is tested on."""
    kinds: dict[tuple[str, str], dict[int, float]] = {}
    for item in findings.policies(records):
        if item.group == "tuned" and item.origin == "found":
            continue
        label = item.label
        if item.group == "untuned" and item.text and ":" in item.text:
            label += f", {findings.parameters(records, item)}"
        elif item.group == "tuned":
            label += ", tuned (paper)"
        elif item.group == "symbolic":
            label += f" ({'paper' if item.origin == 'printed' else 'found here'})"
        elif item.group == "numerical":
            label += " (learned here)"
        for horizon in HORIZONS if item.training is None else (item.training,):
            above = findings.above_floor(records, item, horizon)
            if above is not None:
                kinds.setdefault((label, item.group), {})[horizon] = 100.0 * above
    if not kinds:
        return None
    rows = [
        (*kind, [values.get(horizon) for horizon in HORIZONS]) for kind, values in kinds.items()
    ]
    series, x = [f"T = {horizon}" for horizon in HORIZONS], "regret above the floor (logarithmic)"
    return Figure(
        "above-floor",
        "Regret above the Bayes-optimal floor",
        "How much more regret each policy has than the Bayes-optimal one, on the paper's prior, by horizon. Tuned "
        "and learned policies were trained for the horizon shown. Marks at 0.01 % mean 0.01 % or less.",
        partial(dots, rows, series, x=x),
    )


def regret_curves(records: Records, horizon: int) -> Figure | None:
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
    lines: list[Line] = []
    for name, label in wanted.items():
        found = records.found(f"test/{name}/bernoulli/{horizon}")
        if found is not None:
            x, y, error = zip(*found["curve"], strict=True)
            lines.append((label, x, y, [NORMAL_95 * value for value in error]))
    if not lines:
        return None
    lines.sort(key=lambda line: -line[2][-1])
    ends = ", ".join(f"{label} {regret[-1]:.3g}" for label, _, regret, _ in lines)
    return Figure(
        f"curves-{horizon}",
        f"Regret over {horizon} plays",
        f"Mean regret over the plays, on Bernoulli arms; bands are 95 % intervals. At the end: {ends}.",
        partial(curves, lines, x="plays", y="regret", axis="log"),
    )


def robustness(records: Records) -> Figure | None:
    """Training against testing horizon, for policies learned here: percent above the floor."""
    maps = {}
    for label in ("Power-1", "Power-2", "Formula-1", "Formula-2", "UCB1", "KL-UCB"):
        values = np.full((len(HORIZONS), len(HORIZONS)), np.nan)
        for item in studied_policies():
            if item.label == label and item.origin == "found":
                above = [findings.above_floor(records, item, horizon) for horizon in HORIZONS]
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


def learning_curve(records: Records, horizon: int) -> Figure | None:
    """Training and testing regret, generation by generation."""
    found = records.found(f"curve/{horizon}")
    source = records.found(f"learn/power-1/{horizon}")
    if found is None or source is None or not found["points"]:
        return None
    last = {**found["points"][-1], "generation": len(source["best"])}
    x, training, testing, error = (
        [point[name] for point in (*found["points"], last)]
        for name in ("generation", "training", "testing", "standard_error")
    )
    lines: list[Line] = [
        ("training: 100 problems, drawn once", x, training, None),
        ("testing: the whole prior", x, testing, [NORMAL_95 * half for half in error]),
    ]
    rival = records.found(f"test/printed/ucb1-tuned/bernoulli/{horizon}") or {}
    known = {"floor": findings.floor(records, horizon), "UCB1-Tuned": rival.get("regret")}
    levels = {name: level for name, level in known.items() if level is not None}
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
            steps=True,
            levels=levels,
            top=top,
            width=5.4,
        ),
        narrow=True,
    )


def maps(records: Records) -> tuple[Figure, ...]:
    """The index of our policy for T = 100, beside UCB1-Tuned's and the optimum's choices."""
    source = "learn/ours/100"
    if source not in records:
        return ()
    made = records.policy({"of": source})
    return policy_maps("ours, Power-1", made, Bernoulli(arms=2), 100, prefix="map")


def formula_lengths(records: Records, horizon: int) -> Figure | None:
    """Length against regret."""
    found = records.found(f"search/ours/{horizon}")
    if found is None:
        return None
    printed: list[dict[str, Any]] = []
    levels = {}
    for item in studied_policies():
        if item.text is None or findings.tested(records, item, "bernoulli", horizon) is None:
            continue
        regret = findings.regret(records, item, horizon)
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
            found,
            published={"found in the paper (each arm played once)": printed},
            levels=levels,
            floor=findings.floor(records, horizon),
            horizon=horizon,
            title=f"two Bernoulli arms, {horizon} plays",
        ),
    )
