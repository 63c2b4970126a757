"""How each kind of step is done: settings in, a result for JSON out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ...bayes.bounds import kept_bound
from ...data import write_data
from ...engine import evaluate
from ...engine.task import stream
from ...priors import Prior, prior
from ..steps import Progress, Step, StepRunner


def _problems(settings: Mapping[str, Any]) -> Prior:
    return prior(settings["prior"], arms=settings["arms"])


def _floor(runner: StepRunner, step: Step, progress: Progress) -> Any:
    found = kept_bound(
        _problems(step.settings),
        step.settings["horizon"],
        effort=step.settings["effort"],
        threads=runner.workers.threads,
        progress=lambda done, total: progress(done / total, "scenarios"),
    )
    assert found is not None
    return found.to_dict()


def _learn(runner: StepRunner, step: Step, progress: Progress) -> Any:
    settings = step.settings
    options = {"effort": settings["effort"], "seed": stream(settings["seed"], 3)}
    found = runner.learn(step, _problems(settings), progress, **options)
    return {"label": found.policy.name, "file": write_data(found.file)}


def _play(runner: StepRunner, step: Step, progress: Progress) -> Any:
    settings = step.settings
    found = evaluate(
        runner.policy(settings["policy"]),
        _problems(settings),
        settings["horizon"],
        episodes=settings["episodes"],
        seed=settings["seed"],
        method="monte-carlo",
        floor=False,
        progress=lambda done, total: progress(done / total, "episodes"),
        **runner.who,
    )[0]
    return {
        "mean": found.mean_regret,
        "standard_error": found.standard_error,
        "simple_regret": found.simple_regret,
    }


Runner = partial(StepRunner, kinds={"floor": _floor, "learn": _learn, "play": _play})
