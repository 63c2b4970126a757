"""All formula classes against the generic policies: how many are better, and what evaluating each would cost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...engine import exact
from ...engine.batch import Batch
from ...policies import Policy, policy
from ...priors.families import Array

if TYPE_CHECKING:
    from .plan import Step
    from .work import Progress, Runner

# How many standard errors worse than the best rival a class must be to drop out.
_SURE = 4.0
# Episodes of a rival that has no exact regret.
_EPISODES = 100_000


def better(runner: Runner, step: Step, progress: Progress) -> Any:
    """How many classes have less regret than every one of the rivals."""
    batch = runner.batch(step.settings)
    rivals = [policy(text) for text in step.settings["rivals"]]
    if exact.cost(batch.prior, batch.horizon) < 1.0:
        return _compare(runner, batch, rivals, step.settings["seed"])
    return _screen(runner, batch, rivals, step.settings, progress)


def _compare(runner: Runner, batch: Batch, rivals: list[Policy], seed: int) -> dict[str, Any]:
    """Exactly; a rival that has no exact regret is simulated."""
    results = []
    for item in rivals:
        how: dict[str, Any] = {"method": "exact"}
        if runner.obstacle(item, batch.horizon) is not None:
            how = {"episodes": _EPISODES, "seed": seed}
        results.append(runner.evaluate(item, batch.horizon, **how)[0])
    best = min(results, key=lambda item: item.mean_regret)
    regret, reached, choices = batch.evaluate(
        np.arange(batch.count),
        points=np.unique(np.geomspace(10, batch.horizon, 8).round().astype(int)).tolist(),
        limits=np.full(batch.count, best.mean_regret),
        with_choices=True,
    )
    better = (reached == batch.horizon) & (regret < best.mean_regret)
    return {
        "method": "exact",
        "rival": best.policy,
        "rival_regret": best.mean_regret,
        "classes": int(better.sum()),
        "strategies": len(np.unique(choices[better])),
    }


def _screen(
    runner: Runner,
    batch: Batch,
    rivals: list[Policy],
    settings: Mapping[str, Any],
    progress: Progress,
) -> dict[str, Any]:
    """The same on episodes: classes that are surely worse are left out, the others play more."""
    rounds, seed = settings["screening"], settings["seed"]
    known = runner.evaluate(rivals, batch.horizon, episodes=rounds[-1], seed=seed)
    best = known.ranking()[0]
    rival = next(item for item in rivals if item.name == best.policy)
    episodes = batch.simulation(runs=1, seed=seed)
    level = episodes.play_other(rival, rounds[-1])
    left = np.arange(batch.count)
    mean = error = np.zeros(0)
    for place, count in enumerate(rounds):
        progress(place / len(rounds), f"{len(left):,} classes on {count:,} problems")
        mean, error = _against(episodes, left, level[:count])
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


def _against(episodes: Any, which: npt.NDArray[np.int64], level: Array) -> tuple[Array, Array]:
    """Regret of classes minus the rival's: mean and standard error."""
    mean, error = np.empty(len(which)), np.empty(len(which))
    # In parts, so that the regrets of single problems take little memory.
    step = max(1, 20_000_000 // len(level))
    for first in range(0, len(which), step):
        part = slice(first, first + step)
        apart = episodes.play(which[part], 0, len(level)) - level
        with np.errstate(invalid="ignore"):
            mean[part] = apart.mean(axis=1)
            error[part] = apart.std(axis=1, ddof=1) / np.sqrt(len(level))
    # Classes that cannot be played have no mean.
    playable = np.isfinite(mean)
    return np.where(playable, mean, np.inf), np.where(playable, error, 0.0)


def sooner(runner: Runner, step: Step, progress: Progress) -> Any:
    """How long evaluating every class equally would take, from some of them, beside the bandit search."""
    settings = step.settings
    batch = runner.batch(settings)
    rng = np.random.default_rng(settings["seed"])
    # Enough that every thread has several shares of the work.
    count = min(max(settings["sample"], 256 * runner.workers.threads), batch.count)
    some = rng.choice(batch.count, count, replace=False)
    episodes = batch.simulation(runs=settings["runs"], seed=settings["seed"])
    episodes.play(some[:1], 0, 1)
    begun = time.monotonic()
    episodes.play(some, 0, settings["problems"])
    taken = time.monotonic() - begun
    searched = runner.records[settings["of"]]
    return {
        "classes": batch.count,
        "played": len(some),
        "equal_seconds": taken * batch.count / len(some),
        "search_seconds": searched["seconds"],
        "equal_episodes": batch.count * settings["problems"] * settings["runs"],
        "search_episodes": searched["settings"]["pulls"],
    }
