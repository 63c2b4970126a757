"""All formula classes against the generic policies: how many are better, and what looking at each costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...engine import evaluate, exact
from ...engine.batch import Batch
from ...policies import Policy, policy
from ...priors import prior
from ...priors.families import Array
from .paper import PRIORS

if TYPE_CHECKING:
    from .work import Workshop

# Classes stay in the screening unless they are so many standard errors worse than the best rival.
_SURE = 4.0
# Episodes of a rival that has no exact regret.
_EPISODES = 100_000

Report = Callable[[float, str], None]


def better(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    """How many classes have less regret than every one of the rivals."""
    problems, horizon = prior(PRIORS["bernoulli"], arms=2), settings["horizon"]
    batch = shop.batch(settings, problems)
    rivals = [policy(text) for text in settings["rivals"]]
    if exact.cost(problems, horizon) < 1.0:
        options: dict[str, Any] = {**shop.who, "floor": False}
        results = [
            evaluate(item, problems, horizon, episodes=_EPISODES, seed=settings["seed"], **options)[
                0
            ]
            if exact.obstacle(problems, [(item, item.plan(problems, horizon))], horizon)
            else evaluate(item, problems, horizon, method="exact", **options)[0]
            for item in rivals
        ]
        best = min(results, key=lambda item: item.mean_regret)
        points = np.unique(np.geomspace(10, horizon, 8).round().astype(int)).tolist()
        limits = np.full(batch.count, best.mean_regret)
        everything = np.arange(batch.count)
        regret, reached, choices = batch.evaluate(
            everything, points=points, limits=limits, with_choices=True
        )
        better = (reached == horizon) & (regret < best.mean_regret)
        return {
            "method": "exact",
            "rival": best.policy,
            "rival_regret": best.mean_regret,
            "classes": int(better.sum()),
            "strategies": len(np.unique(choices[better])),
        }
    return _screen(shop, batch, rivals, settings, report)


def _screen(
    shop: Workshop,
    batch: Batch,
    rivals: list[Policy],
    settings: Mapping[str, Any],
    report: Report,
) -> dict[str, Any]:
    """The same on episodes: classes that are surely worse are left out, the others play more."""
    rounds = settings["screening"]
    known = evaluate(
        rivals,
        batch.prior,
        batch.horizon,
        episodes=rounds[-1],
        seed=settings["seed"],
        **shop.who,
        floor=False,
    )
    best = known.ranking()[0]
    rival = next(item for item in rivals if item.name == best.policy)
    episodes = batch.simulation(runs=1, seed=settings["seed"])
    level = episodes.play_other(rival, rounds[-1])
    left = np.arange(batch.count)
    mean = error = np.zeros(0)
    for place, count in enumerate(rounds):
        report(place / len(rounds), f"{len(left):,} classes on {count:,} problems")
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
        # With the same luck, classes that play alike have the same mean to the last bit.
        "strategies": len(np.unique(mean[better])),
        "problems": rounds[-1],
    }


def _against(episodes: Any, which: npt.NDArray[np.int64], level: Array) -> tuple[Array, Array]:
    """Regret of classes minus the rival's: mean and standard error."""
    mean, error = np.empty(len(which)), np.empty(len(which))
    # In parts, so that single regrets need little room.
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


def sooner(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    """What evaluating every class equally would take, from some of them, beside the bandit search."""
    problems = prior(PRIORS["bernoulli"], arms=2)
    batch = shop.batch(settings, problems)
    rng = np.random.default_rng(settings["seed"])
    # Enough that every thread has several shares of the work.
    count = min(max(settings["sample"], 256 * shop.workers.threads), batch.count)
    some = rng.choice(batch.count, count, replace=False)
    episodes = batch.simulation(runs=settings["runs"], seed=settings["seed"])
    episodes.play(some[:1], 0, 1)
    begun = time.monotonic()
    episodes.play(some, 0, settings["problems"])
    taken = time.monotonic() - begun
    searched = shop.records[settings["of"]]
    each = settings["problems"] * settings["runs"]
    return {
        "classes": batch.count,
        "played": len(some),
        "equal_seconds": taken * batch.count / len(some),
        "search_seconds": searched["seconds"],
        "equal_episodes": batch.count * each,
        "search_episodes": searched["settings"]["pulls"],
    }
