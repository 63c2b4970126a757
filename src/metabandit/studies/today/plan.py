"""The published settings, the policies that play them, and every step of the work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from ..steps import Step

# Policies and what tables call them; those that are slow play fewer problems.
FAST = {
    "UCB1-Tuned": "ucb1-tuned",
    "MOSS": "moss",
    "KL-UCB+": "kl-ucb+",
    "ADA-UCB": "ada-ucb",
    "KG": "kg",
    "Thompson sampling": "thompson",
    "Gittins": "gittins",
}
SLOW = {
    "Bayes-UCB": "bayes-ucb",
    "OGI": "ogi",
    "IDS": "ids",
    "KG*": "kg-star",
}
# For rewards in [0, 1] only, and up to this many plays.
_UNIT = ("KL-UCB+", "UCB1-Tuned")
_WHITTLE_PLAYS = 200
LEARNED = "learned"
_SPACE = "power-1"


@dataclass(frozen=True)
class Studied:
    """A setting: problems of a prior, and how long they are played."""

    id: str
    title: str
    source: str
    prior: str
    arms: int
    horizon: int


RUSSO = "Russo, Van Roy 2018; Gutin, Farias 2016"
DUAN = "Duan et al. 2016 (RL^2)"
SETTINGS = (
    Studied("bernoulli", "Ten Bernoulli arms, uniform means, 1000 plays", RUSSO, "bernoulli", 10, 1000),
    Studied("gaussian", "Ten Gaussian arms, N(0, 1) means, noise 1, 1000 plays", RUSSO, "gaussian", 10, 1000),
    *(
        Studied(f"duan-{plays}-{arms}", f"{arms} Bernoulli arms, {plays} plays", DUAN, "bernoulli", arms, plays)
        for plays, arms in product((10, 100, 500), (5, 10, 50))
    ),
)  # fmt: skip


@dataclass(frozen=True)
class TodayScale:
    """The budgets of a run.

    episodes, fewer: problems that each policy plays, and that slow ones do
    effort: of learning; floor: of the lower bound
    longest, most: plays and arms beyond which a setting is left out
    """

    episodes: int = 20_000
    fewer: int = 2000
    effort: float = 1.0
    floor: float = 3.0
    longest: int = 1000
    most: int = 50


SCALES = {
    "quick": TodayScale(episodes=500, fewer=40, effort=0.01, floor=0.05, longest=100, most=10),
    "paper": TodayScale(),
}


def policies_of(setting: Studied) -> dict[str, str]:
    """The policies that can play a setting, by what tables call them."""
    found = {**FAST, **SLOW}
    if setting.prior == "gaussian":
        found = {name: text for name, text in found.items() if name not in _UNIT}
    elif setting.horizon <= _WHITTLE_PLAYS:
        found["Lagrangian index"] = "whittle"
    if setting.horizon < setting.arms:
        # Those that play each arm once first cannot even do that.
        found = {name: text for name, text in found.items() if text in _FREE}
    return found


_FREE = ("thompson", "gittins", "ids", "kg", "kg-star", "whittle")


def settings_of(scale: TodayScale) -> list[Studied]:
    """The settings that a scale has."""
    return [item for item in SETTINGS if item.horizon <= scale.longest and item.arms <= scale.most]


def steps(scale: TodayScale, seed: int) -> list[Step]:
    """Every step: for each setting the floor, a learned policy, and every policy on the same problems."""
    return [step for setting in settings_of(scale) for step in _steps(setting, scale, seed)]


def _steps(setting: Studied, scale: TodayScale, seed: int) -> Iterator[Step]:
    known = {"prior": setting.prior, "arms": setting.arms, "horizon": setting.horizon}
    work = setting.horizon * setting.arms
    yield Step(f"floor/{setting.id}", {**known, "effort": scale.floor}, weight=20.0 * scale.floor)
    learn = f"learn/{setting.id}"
    settings = {**known, "space": _SPACE, "effort": scale.effort, "seed": seed}
    yield Step(learn, settings, weight=400.0 * scale.effort)
    for name, text in policies_of(setting).items():
        slow = name in SLOW
        # With many arms, those that compare all of them play fewer still.
        episodes = min(scale.fewer, 20_000 // setting.arms) if slow else scale.episodes
        yield Step(
            f"play/{setting.id}/{name}",
            {**known, "policy": {"text": text}, "episodes": episodes, "seed": seed + 1},
            weight=episodes * work * (3e-6 if slow else 3e-8),
        )
    yield Step(
        f"play/{setting.id}/{LEARNED}",
        {**known, "policy": {"of": learn}, "episodes": scale.episodes, "seed": seed + 1},
        needs=(learn,),
        weight=scale.episodes * work * 1e-8,
    )
