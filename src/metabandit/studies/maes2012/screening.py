"""All formula classes against the generic policies: how many are better, and what evaluating each would cost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...engine import costs
from ...engine.programs import ManyPrograms
from ...policies import Policy, policy
from ...priors.families import Array

if TYPE_CHECKING:
    from ..steps import Progress, Step
    from .work import Runner

# How many standard errors worse than the best rival a class must be to drop out.
_SURE = 4.0
# Episodes of a rival that has no exact regret.
_EPISODES = 100_000


def better(runner: Runner, step: Step, progress: Progress) -> Any:
    """How many classes have less regret than every one of the rivals."""
    programs = runner.programs(step.settings)
    rivals = [policy(text) for text in step.settings["rivals"]]
    if costs.exact_seconds(programs.prior, programs.horizon) < 1.0:
        return _compare(runner, programs, rivals, step.settings["seed"])
    return _screen(runner, programs, rivals, step.settings, progress)


def _compare(
    runner: Runner, programs: ManyPrograms, rivals: list[Policy], seed: int
) -> dict[str, Any]:
    """Exactly; a rival that has no exact regret is simulated."""
    results = []
    for item in rivals:
        how: dict[str, Any] = {"method": "exact"}
        if runner.obstacle(item, programs.horizon) is not None:
            how = {"episodes": _EPISODES, "seed": seed}
        results.append(runner.evaluate(item, programs.horizon, **how)[0])
    best = min(results, key=lambda item: item.mean_regret)
    regret, reached, choices = programs.exact_regret(
        np.arange(programs.count),
        np.full(programs.count, best.mean_regret),
        points=np.unique(np.geomspace(10, programs.horizon, 8).round().astype(int)).tolist(),
        with_choices=True,
    )
    better = (reached == programs.horizon) & (regret < best.mean_regret)
    return {
        "method": "exact",
        "rival": best.policy,
        "rival_regret": best.mean_regret,
        "classes": int(better.sum()),
        "strategies": len(np.unique(choices[better])),
    }


def _screen(
    runner: Runner,
    programs: ManyPrograms,
    rivals: list[Policy],
    settings: Mapping[str, Any],
    progress: Progress,
) -> dict[str, Any]:
    """The same on episodes: classes that are surely worse are left out, the others play more."""
    rounds, seed = settings["screening"], settings["seed"]
    known = runner.evaluate(rivals, programs.horizon, episodes=rounds[-1], seed=seed)
    best = known.ranking()[0]
    rival = next(item for item in rivals if item.name == best.policy)
    level = programs.regret_of_other(rival, rounds[-1], runs=1, seed=seed)
    left = np.arange(programs.count)
    mean = error = np.zeros(0)
    for place, count in enumerate(rounds):
        progress(place / len(rounds), f"{len(left):,} classes on {count:,} problems")
        mean, error = _against(programs, left, level[:count], seed)
        stay = mean < _SURE * error
        left, mean, error = left[stay], mean[stay], error[stay]
    better = mean < 0.0
    return {
        "method": "monte-carlo",
        "rival": best.policy,
        "rival_regret": best.mean_regret,
        "classes": int(better.sum()),
        "surely": int((mean < -1.96 * error).sum()),
        # With common random numbers, classes that play alike have the same mean to the last bit.
        "strategies": len(np.unique(mean[better])),
        "problems": rounds[-1],
    }


def _against(
    programs: ManyPrograms, which: npt.NDArray[np.int64], level: Array, seed: int
) -> tuple[Array, Array]:
    """Regret of classes minus the rival's: mean and standard error."""
    mean, error = np.empty(len(which)), np.empty(len(which))
    # In parts, so that the regrets of single problems take little memory.
    step = max(1, 20_000_000 // len(level))
    for first in range(0, len(which), step):
        part = slice(first, first + step)
        apart = programs.regret(which[part], 0, len(level), runs=1, seed=seed) - level
        with np.errstate(invalid="ignore"):
            mean[part] = apart.mean(axis=1)
            error[part] = apart.std(axis=1, ddof=1) / np.sqrt(len(level))
    # Classes that cannot be played have no mean.
    playable = np.isfinite(mean)
    return np.where(playable, mean, np.inf), np.where(playable, error, 0.0)


def sooner(runner: Runner, step: Step, progress: Progress) -> Any:
    """How long evaluating every class equally would take, from some of them, beside the bandit search."""
    settings = step.settings
    programs = runner.programs(settings)
    rng = np.random.default_rng(settings["seed"])
    # Enough that every thread has several shares of the work.
    count = min(max(settings["sample"], 256 * runner.workers.threads), programs.count)
    some = rng.choice(programs.count, count, replace=False)
    episodes = {"runs": settings["runs"], "seed": settings["seed"]}
    programs.regret(some[:1], 0, 1, **episodes)
    begun = time.monotonic()
    programs.regret(some, 0, settings["problems"], **episodes)
    taken = time.monotonic() - begun
    searched = runner.records[settings["of"]]
    return {
        "classes": programs.count,
        "played": len(some),
        "equal_seconds": taken * programs.count / len(some),
        "search_seconds": searched["seconds"],
        "equal_episodes": programs.count * settings["problems"] * settings["runs"],
        "search_episodes": searched["settings"]["pulls"],
    }
