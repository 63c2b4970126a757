"""Policies of today on the problems that they were published with, beside learned policies and the floor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from ..bayes.bounds import kept_bound
from ..data import write_data
from ..engine import evaluate
from ..engine.results import NORMAL_95
from ..engine.task import stream
from ..policies.solved import WHITTLE_PLAYS
from ..priors import Prior, prior
from ..report.content import Report, ReportTable, Section, filled, number, percent, row, section
from .records import Records, report_facts
from .run import Progress, Runner, Step, counted

PARTS = ("today",)
# Policies and what tables call them; those that are slow play fewer problems.
SLOW = {"Bayes-UCB": "bayes-ucb", "OGI": "ogi", "IDS": "ids", "KG*": "kg-star"}
POLICIES = {
    "UCB1-Tuned": "ucb1-tuned",
    "MOSS": "moss",
    "KL-UCB+": "kl-ucb+",
    "ADA-UCB": "ada-ucb",
    "KG": "kg",
    "Thompson sampling": "thompson",
    "Gittins": "gittins",
    **SLOW,
    "Lagrangian index": "whittle",
}
# For rewards in [0, 1] only; those that need not play each arm once first.
_UNIT = ("kl-ucb+", "ucb1-tuned", "whittle")
_FREE = ("thompson", "gittins", "ids", "kg", "kg-star", "whittle")
LEARNED = "learned"

# A setting: its title, its source, and the problems with the number of plays.
Setting = tuple[str, str, Mapping[str, Any]]
_RUSSO = "Russo, Van Roy 2018; Gutin, Farias 2016"
SETTINGS: dict[str, Setting] = {
    "bernoulli": (
        "Ten Bernoulli arms, uniform means, 1000 plays",
        _RUSSO,
        {"prior": "bernoulli", "arms": 10, "horizon": 1000},
    ),
    "gaussian": (
        "Ten Gaussian arms, N(0, 1) means, noise 1, 1000 plays",
        _RUSSO,
        {"prior": "gaussian", "arms": 10, "horizon": 1000},
    ),
    **{
        f"duan-{plays}-{arms}": (
            f"{arms} Bernoulli arms, {plays} plays",
            "Duan et al. 2016 (RL^2)",
            {"prior": "bernoulli", "arms": arms, "horizon": plays},
        )
        for plays, arms in product((10, 100, 500), (5, 10, 50))
    },
}

# The budgets of a run.
#     episodes, fewer   problems that each policy plays, and that slow ones do
#     effort, floor     of learning; of the lower bound
#     longest, most     plays and arms beyond which a setting is left out
Scale = Mapping[str, Any]
SCALES: dict[str, Scale] = {
    "quick": {
        "episodes": 500, "fewer": 40, "effort": 0.01, "floor": 0.05, "longest": 100, "most": 10,
    },
    "paper": {
        "episodes": 20_000, "fewer": 2000, "effort": 1.0, "floor": 3.0, "longest": 1000, "most": 50,
    },
}  # fmt: skip


def policies_of(known: Mapping[str, Any]) -> dict[str, str]:
    """The policies that can play such problems, by what tables call them."""
    found = dict(POLICIES)
    if known["horizon"] > WHITTLE_PLAYS:
        del found["Lagrangian index"]
    if known["prior"] == "gaussian":
        found = {name: text for name, text in found.items() if text not in _UNIT}
    if known["horizon"] < known["arms"]:
        found = {name: text for name, text in found.items() if text in _FREE}
    return found


def _settings_of(scale: Scale) -> list[str]:
    """The settings that a scale has."""
    return [
        name
        for name, (_, _, known) in SETTINGS.items()
        if known["horizon"] <= scale["longest"] and known["arms"] <= scale["most"]
    ]


def steps(part: str, scale: Scale, seed: int) -> list[Step]:
    """Every step: for each setting the floor, a learned policy, and every policy on the same problems."""
    return [step for name in _settings_of(scale) for step in _steps(name, scale, seed)]


def _steps(setting: str, scale: Scale, seed: int) -> Iterator[Step]:
    known = SETTINGS[setting][2]
    work = known["horizon"] * known["arms"]
    effort, episodes = scale["effort"], scale["episodes"]
    yield Step(
        f"floor/{setting}", {**known, "effort": scale["floor"]}, weight=20.0 * scale["floor"]
    )
    learn = f"learn/{setting}"
    settings = {**known, "space": "power-1", "effort": effort, "seed": seed}
    yield Step(learn, settings, weight=400.0 * effort)
    played = {**known, "episodes": episodes, "seed": seed + 1}
    for name, text in policies_of(known).items():
        own, pace = {**played, "policy": {"text": text}}, 3e-8
        if name in SLOW:
            # With many arms, those that compare all of them play fewer still.
            own["episodes"], pace = min(scale["fewer"], 20_000 // known["arms"]), 3e-6
        yield Step(f"play/{setting}/{name}", own, weight=own["episodes"] * work * pace)
    yield Step(
        f"play/{setting}/{LEARNED}",
        {**played, "policy": {"of": learn}},
        needs=(learn,),
        weight=episodes * work * 1e-8,
    )


# How each kind of step is done: settings in, a result for JSON out -----------------------------


def _problems(settings: Mapping[str, Any]) -> Prior:
    return prior(settings["prior"], arms=settings["arms"])


def _floor(runner: Runner, step: Step, progress: Progress) -> Any:
    found = kept_bound(
        _problems(step.settings),
        step.settings["horizon"],
        effort=step.settings["effort"],
        threads=runner.workers.threads,
        progress=counted(progress, "scenarios"),
    )
    assert found is not None
    return found.to_dict()


def _learn(runner: Runner, step: Step, progress: Progress) -> Any:
    settings = step.settings
    options = {"effort": settings["effort"], "seed": stream(settings["seed"], 3)}
    found = runner.learn(step, _problems(settings), progress, **options)
    return {"label": found.policy.name, "file": write_data(found.file)}


def _play(runner: Runner, step: Step, progress: Progress) -> Any:
    settings = step.settings
    found = evaluate(
        runner.policy(settings["policy"]),
        _problems(settings),
        settings["horizon"],
        episodes=settings["episodes"],
        seed=settings["seed"],
        method="monte-carlo",
        floor=False,
        progress=counted(progress, "episodes"),
        **runner.who,
    )[0]
    return {
        "mean": found.mean_regret,
        "standard_error": found.standard_error,
        "simple_regret": found.simple_regret,
    }


KINDS = {"floor": _floor, "learn": _learn, "play": _play}
SHARED = ()


# The report, from records only -----------------------------------------------------------------

_METHOD = (
    "Policies that read the prior are given the one that problems are drawn from. All policies of a setting play the same "
    "problems with the same rewards, the slow ones (Bayes-UCB, OGI, IDS, KG*) fewer of them. Intervals are 95 % intervals.",
    "The floor is a lower bound on the regret of any policy (docs/floor.md); the last column says how far above it the regret "
    "is. A policy may be closer to the best possible than to the floor.",
    "OGI looks one play ahead with the discount 1 - 1/t, IDS is the one by variances, KG* is kg-star. The learned policy is Power-1 "
    "of `metabandit learn` with its default budget.",
    "The papers' own figures are not quoted here, as they could not be checked against the papers.",
)


def _table(records: Records, setting: str) -> ReportTable:
    """What was played of a setting, best first, below the floor."""
    title, source, known = SETTINGS[setting]
    floor = records.found(f"floor/{setting}")
    rows = []
    for name in (*policies_of(known), LEARNED):
        key = f"play/{setting}/{name}"
        if (found := records.found(key)) is None:
            continue
        above = None if floor is None else found["mean"] / floor["regret"] - 1.0
        if name == LEARNED:
            name = f"learned: {records.result(f'learn/{setting}')['label']}"
        regret = number(found["mean"], half=NORMAL_95 * found["standard_error"])
        episodes = records[key]["settings"]["episodes"]
        rows.append((found["mean"], row(name, regret, percent(above), episodes)))
    rows.sort(key=lambda item: item[0])
    if rows and floor is not None:
        least = number(floor["regret"], half=NORMAL_95 * floor["standard_error"])
        rows.insert(0, (0.0, row("floor", least, None, None)))
    return ReportTable(
        f"today-{setting}",
        title,
        ("policy", "mean regret", "above the floor", "episodes"),
        tuple(cells for _, cells in rows),
        caption=f"Setting of {source}.",
    )


def today_report(records: Records) -> Report:
    """The whole report; settings that were not played are left out."""
    tables = {setting: _table(records, setting) for setting in SETTINGS}
    russo, duan = (
        [table for setting, table in tables.items() if setting.startswith("duan") == theirs]
        for theirs in (False, True)
    )
    sections = (
        section("ten-arms", "Ten arms, 1000 plays", russo),
        section("bandits-of-rl2", "The bandits of RL^2", duan),
    )
    shown = sum(1 for table in tables.values() if table.rows)
    every = len(_settings_of(SCALES.get(records.scale, SCALES["paper"])))
    return Report(
        "Policies of today",
        (
            "The policies that are the strongest today on the problems that they were published with, beside a policy "
            "that metabandit learned and the floor under all of them.",
        ),
        report_facts(records, "today", ("settings", f"{shown} of {every}")),
        (*filled(sections), Section("method", "How it was done", _METHOD)),
    )


def read_report(path: Path) -> Report:
    """The report of the records in a file."""
    return today_report(Records.read(path, "today"))
