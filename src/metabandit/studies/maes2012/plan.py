"""The experiments as data: the policies that are tested, and every step of the work with its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from ..run import Step
from .paper import HORIZONS, PRIORS, StudiedPolicy, table1

PARTS = ("table1", "table2", "classes", "curves", "times", "all")
TODAY = {
    "Thompson sampling": "thompson",
    "Bayes-UCB": "bayes-ucb",
    "MOSS": "moss",
    "KL-UCB+": "kl-ucb+",
    "Gittins": "gittins",
}
# Plays per second on two cores, by the space that is learned.
_SPEEDS = {
    "ucb1": 450e6,
    "ucb2": 200e6,
    "ucb-v": 300e6,
    "kl-ucb": 65e6,
    "eps_n-greedy": 370e6,
    "power-1": 450e6,
    "power-2": 300e6,
}
_CANDIDATES = {"power-1": 128, "power-2": 648}
# How many times longer a play of these policies takes.
_SLOW = {"kl-ucb": 6.0, "kl-ucb+": 6.0, "thompson": 10.0, "ucb1-normal": 10.0}


# The budgets of a reproduction.
#     generations, protocol   of the EDA
#     length, pulls           of the search for formulas
#     problems, runs          of a test
#     effort                  of our own learners
#     screening               problems on which classes are compared with the generic policies, round by round
#     patient                 whether to do what takes minutes: exact values and Gittins indices for T = 1000
Scale = Mapping[str, Any]
SCALES: dict[str, Scale] = {
    "quick": {
        "generations": 8,
        "protocol": "paper:problems=100,runs=10",
        "length": 5,
        "pulls": 100_000,
        "problems": 1000,
        "runs": 10,
        "effort": 0.02,
        "screening": [256, 4096],
        "patient": False,
    },
    "paper": {
        "generations": 100,
        "protocol": "paper",
        "length": 7,
        "pulls": 10_000_000,
        "problems": 10_000,
        "runs": 100,
        "effort": 1.0,
        "screening": [128, 1024, 8192, 65_536],
        "patient": True,
    },
}


def studied_policies() -> tuple[StudiedPolicy, ...]:
    """Every policy that is tested: the paper's as printed, those found here, today's and ours."""
    printed = [row for row in table1() if row.text is not None]
    found = []
    for row in table1():
        if row.training is not None:
            symbolic, name = row.group == "symbolic", row.label.lower()
            found.append(
                replace(
                    row,
                    id=f"found/{name}/{row.training}",
                    text=None,
                    source=f"{'search/paper' if symbolic else f'learn/{name}'}/{row.training}",
                    place=int(row.label[-1]) - 1 if symbolic else None,
                )
            )
    today = [StudiedPolicy(f"today/{text}", "today", label, text=text) for label, text in TODAY.items()]  # fmt: skip
    ours = [
        StudiedPolicy(f"ours/{name}/{horizon}", "ours", label, horizon, source=f"{kind}/ours/{horizon}")
        for name, label, kind in (("power-1", "ours, Power-1", "learn"), ("formula", "ours, formula", "search"))
        for horizon in HORIZONS
    ]  # fmt: skip
    return (*printed, *found, *today, *ours)


def _step(
    name: str, parts: str, weight: float, needs: tuple[str, ...] = (), **settings: Any
) -> Step:
    return Step(name, settings, frozenset([*parts.split(), "all"]), needs, weight)


def _learning(scale: Scale, seed: int) -> Iterable[Step]:
    runs = 10 if "runs=10" in scale["protocol"] else 100
    paper: dict[str, Any] = {
        "protocol": scale["protocol"], "generations": scale["generations"], "effort": 1.0, "seed": seed
    }  # fmt: skip
    for horizon in HORIZONS:
        for space, speed in _SPEEDS.items():
            plays = _CANDIDATES.get(space, 40) * scale["generations"] * 100.0 * runs * horizon
            followed = space == "power-1"
            yield _step(
                f"learn/{space}/{horizon}",
                "table1 table2 curves times" if followed and horizon > 10 else "table1 table2",
                1.0 + plays / speed,
                space=space,
                horizon=horizon,
                improvements=followed,
                **paper,
            )
    ours = paper | {"protocol": "default", "generations": None, "effort": scale["effort"]}
    for horizon, seconds in zip(HORIZONS, (1.0, 25.0, 200.0), strict=True):
        yield _step(
            f"learn/ours/{horizon}",
            "table1",
            1.0 + scale["effort"] * seconds,
            space="power-1",
            horizon=horizon,
            improvements=False,
            **ours,
        )


def _formulas(scale: Scale, seed: int) -> Iterable[Step]:
    full = scale["length"] == 7
    shown, weight = "classes table1 table2 times", 30.0 if full else 3.0
    yield _step("classes", shown, weight, length=scale["length"])
    seconds = {
        "paper": (30.0, 50.0, 170.0) if full else (2.0, 3.0, 35.0),
        "ours": (15.0, 30.0, 310.0) if full else (2.0, 3.0, 40.0),
    }
    for whose, weights in seconds.items():
        paper = whose == "paper"
        for horizon, weight in zip(HORIZONS, weights, strict=True):
            shown = f"table1 table2 classes {'times' if horizon > 10 else ''}"
            yield _step(
                f"search/{whose}/{horizon}",
                shown if paper else "table1",
                weight,
                ("classes",),
                length=scale["length"],
                top=50,
                effort=1.0 if scale["patient"] else 0.02,
                seed=seed,
                horizon=horizon,
                strategy="ucb1-tuned" if paper else "auto",
                pulls=scale["pulls"],
                start="each-once" if paper else "prior-counts",
                refine=1 if scale["patient"] and not paper else 0,
            )


def _of(item: StudiedPolicy) -> tuple[dict[str, Any], tuple[str, ...]]:
    """How the settings of a step name a policy, and the steps that find it."""
    if item.source is None:
        return {"text": item.text}, ()
    place = {} if item.place is None else {"place": item.place}
    return {"of": item.source, **place}, (item.source,)


def _testing(scale: Scale, seed: int) -> Iterable[Step]:
    columns = [(family, horizon) for family in PRIORS for horizon in HORIZONS]
    for item, (family, horizon) in product(studied_policies(), columns):
        problems, runs = scale["problems"], scale["runs"]
        if item.text == "bayes-ucb" and horizon > 10:
            # Each play takes a quantile of the Beta distribution.
            runs = max(scale["runs"] // 5, 1)
            problems = scale["problems"] * 10 // max(horizon // 10, 10)
        if item.text == "gittins" and horizon == 1000 and not scale["patient"]:
            continue
        wins = family == "bernoulli" and item.training == horizon and item.group != "ours"
        name = (item.text or item.label.lower()).partition(":")[0]
        weight = 0.05 + problems * runs * horizon * _SLOW.get(name, 1.0) / 3e8
        if horizon == 1000:
            weight += {"gittins": 70.0, "bayes-ucb": 12.0}.get(name, 0.0)
        policy, needs = _of(item)
        yield _step(
            f"test/{item.id}/{family}/{horizon}",
            "table1 table2" if wins else "table1",
            weight,
            needs,
            policy=policy,
            prior=PRIORS[family],
            horizon=horizon,
            problems=problems,
            runs=runs,
            seed=seed + 1,
        )


def _exact_values(scale: Scale) -> Iterable[Step]:
    weights = {10: 0.1, 100: 0.1, 1000: 25.0}
    for horizon, start in product(HORIZONS, ("free", "each-once")):
        if start == "free" or horizon < 1000 or scale["patient"]:
            name = f"floor/{start}/{horizon}"
            yield _step(name, "table1", weights[horizon], start=start, horizon=horizon)
    for item, horizon in product(studied_policies(), HORIZONS):
        if horizon == 1000:
            # Half a minute each: for those made for it, or for any horizon, and the paper's formulas.
            printed = item.group == "symbolic" and item.text is not None
            wanted = printed or item.training in (None, horizon)
            if not scale["patient"] or not wanted or item.text == "thompson":
                continue
        (policy, needs), name = _of(item), f"exact/{item.id}/{horizon}"
        yield _step(name, "table1", weights[horizon], needs, policy=policy, horizon=horizon)


def _looking(scale: Scale, seed: int) -> Iterable[Step]:
    for horizon in HORIZONS[1:]:
        source = f"learn/power-1/{horizon}"
        yield _step(
            f"curve/{horizon}",
            "curves",
            scale["problems"] / 300.0,
            (source,),
            of=source,
            space="power-1",
            horizon=horizon,
            episodes=10 * scale["problems"],
            seed=seed + 1,
        )
    classes: dict[str, Any] = {"length": scale["length"], "start": "each-once", "seed": seed + 1}
    generic = [item.text for item in table1() if item.group in ("untuned", "tuned")]
    for horizon in HORIZONS[1:]:
        yield _step(
            f"better/{horizon}",
            "classes",
            (20.0 if horizon == 100 else 300.0) if scale["length"] == 7 else 5.0,
            ("classes",),
            horizon=horizon,
            rivals=generic,
            screening=scale["screening"],
            **classes,
        )
    for horizon in HORIZONS[1:]:
        source = f"search/paper/{horizon}"
        yield _step(
            f"sooner/{horizon}",
            "classes",
            scale["runs"] * horizon / 10_000.0,
            ("classes", source),
            of=source,
            horizon=horizon,
            sample=256 if scale["patient"] else 64,
            problems=100,
            runs=100,
            **classes,
        )


def steps(part: str, scale: Scale, seed: int) -> list[Step]:
    """The steps of a part, in the order in which they are done: each after those that it needs."""
    everything = [
        *_learning(scale, seed),
        *_formulas(scale, seed),
        *_testing(scale, seed),
        *_looking(scale, seed),
        *_exact_values(scale),
    ]
    wanted = {step.id for step in everything if part in step.parts}
    for step in reversed(everything):
        if step.id in wanted:
            wanted |= set(step.needs)
    return [step for step in everything if step.id in wanted]
