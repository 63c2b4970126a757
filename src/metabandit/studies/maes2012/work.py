"""How each kind of step is done: settings in, a result for JSON out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...bayes.optimum import optimal
from ...data import write_data
from ...engine import Comparison, costs, evaluate, exact, recount
from ...engine.programs import ManyPrograms
from ...engine.task import stream
from ...formulas import Classes, kept_classes, make_classes, search, state_path
from ...learning.spaces import make_space
from ...policies import Policy, Start, policy
from ...priors import Prior, prior
from ...priors.families import Array
from ..run import Progress, Runner, Step, counted
from .paper import PRIORS, TRUE_GAUSSIAN

REFERENCE = "ucb1-tuned"
# How many standard errors worse than the best rival a class must be to drop out.
_SURE = 4.0
# Episodes of a rival that has no exact regret.
_EPISODES = 100_000


def _problems() -> Prior:
    """Two Bernoulli arms, on which everything is learned."""
    return prior(PRIORS["bernoulli"], arms=2)


def _classes_of(runner: Runner, length: int) -> Classes:
    """All formulas up to a length, sorted into classes once."""
    found: Classes = runner.once(
        ("classes", length),
        partial(kept_classes, length, threads=runner.workers.threads, announce=runner.announce),
    )
    return found


def _programs(runner: Runner, settings: Mapping[str, Any]) -> ManyPrograms:
    """The classes, ready to be played."""
    compiled = _classes_of(runner, settings["length"]).compile()
    start = Start.read(settings["start"]).resolve(_problems())
    return ManyPrograms.of(compiled, _problems(), settings["horizon"], start, runner.workers)


def _play(runner: Runner, which: Policy, settings: Mapping[str, Any], **options: Any) -> Comparison:
    """A policy on the problems of a test."""
    return evaluate(
        which,
        prior(settings["prior"], arms=2),
        settings["horizon"],
        method="monte-carlo",
        episodes=settings["problems"] * settings["runs"],
        runs=settings["runs"],
        seed=settings["seed"],
        floor=False,
        **runner.who,
        **options,
    )


def _obstacle(which: Policy, horizon: int) -> str | None:
    """Why a policy has no exact regret, if it has none."""
    return exact.obstacle(_problems(), [which.plan(_problems(), horizon)], horizon)


def reference(
    runner: Runner, settings: Mapping[str, Any], *, common: bool
) -> npt.NDArray[np.floating[Any]]:
    """The regret of UCB1-Tuned on each problem of a test, with the same or with other random numbers."""
    names = ("prior", "horizon", "problems", "runs", "seed")

    def play() -> Any:
        reward_seed = None if common else stream(settings["seed"], 7)
        return _play(runner, policy(REFERENCE), settings, reward_seed=reward_seed)[0].problem_regret

    found: npt.NDArray[np.floating[Any]] = runner.once(
        ("reference", *(settings[name] for name in names), common), play
    )
    return found


def _learn(runner: Runner, step: Step, progress: Progress) -> Any:
    settings = step.settings
    options = {name: settings[name] for name in ("protocol", "generations", "effort", "seed")}
    found = runner.learn(step, _problems(), progress, **options)
    improvements = []
    lowest = float("inf")
    for record in found.trace if settings["improvements"] else ():
        if record["best"] is not None and record["best"] < lowest:
            lowest = record["best"]
            improvements.append(
                {"generation": record["generation"] + 1, "coordinates": record["best_candidate"]}
            )
    origin = found.file.learned
    assert origin is not None
    return {
        "label": found.policy.name,
        "file": write_data(found.file),
        "parameters": dict(found.parameters),
        "evaluations": origin.evaluations,
        "stopped": found.stopped,
        "best": [record["best"] for record in found.trace],
        "median": [record["median"] for record in found.trace],
        "improvements": improvements,
        "seconds": sum(record["seconds"] for record in found.trace),
    }


def _search(runner: Runner, step: Step, progress: Progress) -> Any:
    settings, out = step.settings, runner.unfinished(step)
    resume = state_path(out).exists()
    same = ["strategy", "start", "top", "refine", "effort", "seed"]
    if settings["strategy"] == "ucb1-tuned":
        same.append("pulls")
    found = search(
        _problems(),
        settings["horizon"],
        classes=_classes_of(runner, settings["length"]),
        **{name: settings[name] for name in same},
        **runner.who,
        measured=False,
        out=out,
        resume=resume,
        force=not resume,
        progress=progress,
        announce=runner.announce,
    )
    out.unlink()
    shown = found.to_dict()
    return {
        "label": found.policy.name,
        "file": write_data(found.file),
        "strategy": found.strategy,
        "classes": found.classes,
        "ranking": shown["ranking"][:10],
        "best_of_length": shown["best_of_length"],
        "seconds": found.seconds,
    }


def _classes(runner: Runner, step: Step, progress: Progress) -> Any:
    # Made from scratch even if they are kept somewhere: how long that takes is part of the result.
    made = make_classes(
        step.settings["length"],
        threads=runner.workers.threads,
        progress=counted(progress, "making the classes"),
    )
    runner.kept["classes", step.settings["length"]] = made
    counts = made.counts()
    totals = {key: sum(row[key] for row in counts) for key in counts[0] if key != "length"}
    return {"counts": counts, "totals": totals}


def _test(runner: Runner, step: Step, progress: Progress) -> Any:
    settings = step.settings
    chosen = runner.policy(settings["policy"])
    gaussian = settings["prior"] != PRIORS["bernoulli"]
    told = counted(progress, chosen.name)
    found = _play(runner, chosen, settings, keep_plays=gaussian, progress=told)
    own = found[0]
    result: dict[str, Any] = {
        "policy": chosen.name,
        "regret": own.mean_regret,
        "standard_error": own.standard_error,
        "simple_regret": own.simple_regret,
    }
    if gaussian:
        true = recount(found, prior(TRUE_GAUSSIAN, arms=2))[0]
        result["true_regret"] = true.mean_regret
        result["true_standard_error"] = true.standard_error
        return result
    assert own.problem_regret is not None
    result["curve"] = [
        # Six digits are enough for a picture.
        [int(at), float(f"{mean:.6g}"), float(f"{error:.6g}")]
        for at, mean, error in zip(own.checkpoints, own.curve, own.curve_error, strict=True)
    ]
    # As in the paper each policy has its own random numbers. With common ones less is left to chance, but
    # the two often play alike, so a problem with equal regret counts half.
    rival = reference(runner, settings, common=False)
    result["wins"] = float(np.mean(own.problem_regret < rival))
    rival = reference(runner, settings, common=True)
    equal = own.problem_regret == rival
    result["wins_common_luck"] = float(np.mean((own.problem_regret < rival) + 0.5 * equal))
    return result


def _exact(runner: Runner, step: Step, progress: Progress) -> Any:
    chosen, horizon = runner.policy(step.settings["policy"]), step.settings["horizon"]
    obstacle = _obstacle(chosen, horizon)
    if obstacle is not None:
        return {"regret": None, "obstacle": obstacle}
    told = counted(progress, f"exactly: {chosen.name}")
    found = evaluate(
        chosen, _problems(), horizon, method="exact", floor=False, progress=told, **runner.who
    )
    return {"regret": found[0].mean_regret}


def _floor(runner: Runner, step: Step, progress: Progress) -> Any:
    best = optimal(
        _problems(),
        step.settings["horizon"],
        start=step.settings["start"],
        threads=runner.workers.threads,
        progress=counted(progress, "the Bayes-optimal policy"),
    )
    return {"regret": best.regret}


def _curve(runner: Runner, step: Step, progress: Progress) -> Any:
    """Training and testing regret of the best candidate so far, wherever it changes."""
    settings, horizon = step.settings, step.settings["horizon"]
    found = runner.records.result(settings["of"])
    space = make_space(settings["space"], _problems(), paper=True)
    quick = costs.exact_seconds(_problems(), horizon) < 1.0
    tested = evaluate(
        [space.policy(np.array(item["coordinates"])) for item in found["improvements"]],
        _problems(),
        horizon,
        method="exact" if quick else "monte-carlo",
        episodes=None if quick else settings["episodes"],
        seed=settings["seed"],
        floor=False,
        progress=counted(progress, "testing the best candidates so far"),
        **runner.who,
    )
    return {
        "method": tested.method,
        "points": [
            {
                "generation": item["generation"],
                "training": found["best"][item["generation"] - 1],
                "testing": evaluation.mean_regret,
                "standard_error": evaluation.standard_error,
            }
            for item, evaluation in zip(found["improvements"], tested, strict=True)
        ],
    }


# All formula classes against the generic policies --------------------------------------------


def _better(runner: Runner, step: Step, progress: Progress) -> Any:
    """How many classes have less regret than every one of the rivals."""
    programs = _programs(runner, step.settings)
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
        if _obstacle(item, programs.horizon) is not None:
            how = {"episodes": _EPISODES, "seed": seed}
        found = evaluate(item, programs.prior, programs.horizon, floor=False, **how, **runner.who)
        results.append(found[0])
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
    known = evaluate(
        rivals, programs.prior, programs.horizon, episodes=rounds[-1], seed=seed, floor=False,
        **runner.who,
    )  # fmt: skip
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


def _sooner(runner: Runner, step: Step, progress: Progress) -> Any:
    """How long evaluating every class equally would take, from some of them, beside the bandit search."""
    settings = step.settings
    programs = _programs(runner, settings)
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


KINDS = {
    "learn": _learn,
    "search": _search,
    "classes": _classes,
    "test": _test,
    "exact": _exact,
    "floor": _floor,
    "curve": _curve,
    "better": _better,
    "sooner": _sooner,
}
# Steps that read all formula classes.
SHARED = ("classes", "search", "better", "sooner")
