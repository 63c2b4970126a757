"""How each kind of step is done: settings in, a result for JSON out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
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
from ...workers import Workers
from ..records import Records
from ..steps import Kind, Progress, Step, StepRunner
from .paper import PRIORS, TRUE_GAUSSIAN
from .screening import better, sooner

REFERENCE = "ucb1-tuned"


class Runner(StepRunner):
    """Does the steps of the reproduction."""

    def __init__(
        self, records: Records, folder: Path, workers: Workers, announce: Callable[[str], None]
    ) -> None:
        super().__init__(records, folder, workers, announce, KINDS)
        self.problems = prior(PRIORS["bernoulli"], arms=2)
        self._references: dict[tuple[Any, ...], npt.NDArray[np.floating[Any]]] = {}
        self.made: Classes | None = None

    # Steps that read all formula classes.
    shared = ("classes", "search", "better", "sooner")

    def classes(self, length: int) -> Classes:
        """All formulas up to a length, sorted into classes once."""
        if self.made is None or self.made.length != length:
            self.made = kept_classes(length, threads=self.workers.threads, announce=self.announce)
        return self.made

    def programs(self, settings: Mapping[str, Any]) -> ManyPrograms:
        """The classes, ready to be played."""
        compiled = self.classes(settings["length"]).compile()
        start = Start.read(settings["start"]).resolve(self.problems)
        return ManyPrograms.of(compiled, self.problems, settings["horizon"], start, self.workers)

    def evaluate(
        self, which: Any, horizon: int, problems: Prior | None = None, **options: Any
    ) -> Comparison:
        """Policies on Bernoulli arms, or on other problems."""
        return evaluate(
            which, problems or self.problems, horizon, floor=False, **self.who, **options
        )

    def play(self, which: Policy, settings: Mapping[str, Any], **options: Any) -> Comparison:
        """A policy on the problems of a test."""
        return self.evaluate(
            which,
            settings["horizon"],
            prior(settings["prior"], arms=2),
            method="monte-carlo",
            episodes=settings["problems"] * settings["runs"],
            runs=settings["runs"],
            seed=settings["seed"],
            **options,
        )

    def obstacle(self, which: Policy, horizon: int) -> str | None:
        """Why a policy has no exact regret, if it has none."""
        return exact.obstacle(self.problems, [which.plan(self.problems, horizon)], horizon)

    def reference(
        self, settings: Mapping[str, Any], *, common: bool
    ) -> npt.NDArray[np.floating[Any]]:
        """The regret of UCB1-Tuned on each problem of a test, with the same or with other random numbers."""
        names = ("prior", "horizon", "problems", "runs", "seed")
        key = (*(settings[name] for name in names), common)
        if key not in self._references:
            reward_seed = None if common else stream(settings["seed"], 7)
            played = self.play(policy(REFERENCE), settings, reward_seed=reward_seed)
            regret = played[0].problem_regret
            assert regret is not None
            self._references[key] = regret
        return self._references[key]


def _counted(progress: Progress, doing: str) -> Callable[[int, int], None]:
    """Progress by how many are done, of how many."""
    return lambda done, total: progress(done / total, doing)


def _learn(runner: Runner, step: Step, progress: Progress) -> Any:
    settings = step.settings
    options = {name: settings[name] for name in ("protocol", "generations", "effort", "seed")}
    found = runner.learn(step, runner.problems, progress, **options)
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
        runner.problems,
        settings["horizon"],
        classes=runner.classes(settings["length"]),
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
    runner.made = make_classes(
        step.settings["length"],
        threads=runner.workers.threads,
        progress=_counted(progress, "making the classes"),
    )
    counts = runner.made.counts()
    totals = {key: sum(row[key] for row in counts) for key in counts[0] if key != "length"}
    return {"counts": counts, "totals": totals}


def _test(runner: Runner, step: Step, progress: Progress) -> Any:
    settings = step.settings
    chosen = runner.policy(settings["policy"])
    gaussian = settings["prior"] != PRIORS["bernoulli"]
    told = _counted(progress, chosen.name)
    found = runner.play(chosen, settings, keep_plays=gaussian, progress=told)
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
    rival = runner.reference(settings, common=False)
    result["wins"] = float(np.mean(own.problem_regret < rival))
    rival = runner.reference(settings, common=True)
    equal = own.problem_regret == rival
    result["wins_common_luck"] = float(np.mean((own.problem_regret < rival) + 0.5 * equal))
    return result


def _exact(runner: Runner, step: Step, progress: Progress) -> Any:
    chosen, horizon = runner.policy(step.settings["policy"]), step.settings["horizon"]
    obstacle = runner.obstacle(chosen, horizon)
    if obstacle is not None:
        return {"regret": None, "obstacle": obstacle}
    told = _counted(progress, f"exactly: {chosen.name}")
    found = runner.evaluate(chosen, horizon, method="exact", progress=told)
    return {"regret": found[0].mean_regret}


def _floor(runner: Runner, step: Step, progress: Progress) -> Any:
    best = optimal(
        runner.problems,
        step.settings["horizon"],
        start=step.settings["start"],
        threads=runner.workers.threads,
        progress=_counted(progress, "the Bayes-optimal policy"),
    )
    return {"regret": best.regret}


def _curve(runner: Runner, step: Step, progress: Progress) -> Any:
    """Training and testing regret of the best candidate so far, wherever it changes."""
    settings, horizon = step.settings, step.settings["horizon"]
    found = runner.records.result(settings["of"])
    space = make_space(settings["space"], runner.problems, paper=True)
    quick = costs.exact_seconds(runner.problems, horizon) < 1.0
    tested = runner.evaluate(
        [space.policy(np.array(item["coordinates"])) for item in found["improvements"]],
        horizon,
        method="exact" if quick else "monte-carlo",
        episodes=None if quick else settings["episodes"],
        seed=settings["seed"],
        progress=_counted(progress, "testing the best candidates so far"),
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


KINDS: dict[str, Kind] = {
    "learn": _learn,
    "search": _search,
    "classes": _classes,
    "test": _test,
    "exact": _exact,
    "floor": _floor,
    "curve": _curve,
    "better": better,
    "sooner": sooner,
}
