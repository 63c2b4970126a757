"""How each kind of piece is done: settings in, a result for JSON out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..evaluation import Evaluation, evaluate, exact, recount
from ..evaluation.batch import Batch
from ..families import Array
from ..formulas import search
from ..formulas.classes import Classes, kept_classes, make_classes
from ..formulas.state import state_path
from ..learning import learn
from ..learning.aim import stream
from ..learning.spaces import make_space
from ..learning.trace import trace_path
from ..policies import Policy, Start, optimal, policy
from ..policies.file import PolicyFile
from ..priors import Prior, prior
from .paper import PRIORS, TRUE_GAUSSIAN
from .plan import Piece
from .records import Records

REFERENCE = "ucb1-tuned"
# Classes stay in the screening unless they are so many standard errors worse than the best rival.
_SURE = 4.0

Report = Callable[[float, str], None]


class Workshop:
    """What the pieces of a run have in common: records, a folder for what is half done, threads."""

    def __init__(
        self, records: Records, folder: Path, threads: int, announce: Callable[[str], None]
    ) -> None:
        self.records = records
        self.folder = folder
        self.threads = threads
        self.announce = announce
        self._references: dict[tuple[Any, ...], npt.NDArray[np.floating[Any]]] = {}
        self._policies: dict[str, Policy] = {}
        self.made: Classes | None = None

    def do(self, piece: Piece, report: Report) -> tuple[dict[str, Any], float]:
        """The result of a piece, and the seconds it took, also in runs that were stopped."""
        begun = time.monotonic()
        result: dict[str, Any] = KINDS[piece.kind](self, piece.settings, piece.id, report)
        seconds = time.monotonic() - begun
        return result, float(result.pop("seconds", seconds))

    def half_done(self, name: str) -> Path:
        """The policy file of a piece that is being worked on."""
        return self.folder / f"{name.replace('/', '-')}.json"

    def policy(self, given: Mapping[str, Any]) -> Policy:
        """A policy as settings name it: as text, or as what a piece found."""
        key = str(given.get("text", given))
        if key not in self._policies:
            self._policies[key] = self._make_policy(given)
        return self._policies[key]

    def _make_policy(self, given: Mapping[str, Any]) -> Policy:
        if "text" in given:
            return policy(given["text"])
        found = self.records.result(given["of"])
        if "place" in given:
            return policy(found["ranking"][given["place"]]["formula"], start="each-once")
        return PolicyFile.model_validate(found["file"]).policy.policy(found["label"])

    def classes(self, length: int) -> Classes:
        """All formulas up to a length, sorted into classes once."""
        if self.made is None or self.made.length != length:
            self.made = kept_classes(length, threads=self.threads, announce=self.announce)
        return self.made

    def batch(self, settings: Mapping[str, Any], problems: Prior) -> Batch:
        """The classes, ready to be played."""
        compiled = self.classes(settings["length"]).compile()
        start = Start.read(settings["start"]).resolve(problems)
        return Batch(compiled, problems, settings["horizon"], start, self.threads)

    def reference(
        self, settings: Mapping[str, Any], *, other_luck: bool
    ) -> npt.NDArray[np.floating[Any]]:
        """The regret of UCB1-Tuned on each problem of a test."""
        key = (*(settings[name] for name in ("prior", "horizon", "problems", "runs", "seed")), other_luck)  # fmt: skip
        if key not in self._references:
            found = _play(
                policy(REFERENCE),
                settings,
                self.threads,
                luck=stream(settings["seed"], 7) if other_luck else None,
            )
            regret = found[0].problem_regret
            assert regret is not None
            self._references[key] = regret
        return self._references[key]


def _play(which: Policy, settings: Mapping[str, Any], threads: int, **options: Any) -> Any:
    return evaluate(
        which,
        prior(settings["prior"], arms=2),
        settings["horizon"],
        method="monte-carlo",
        episodes=settings["problems"] * settings["runs"],
        runs=settings["runs"],
        seed=settings["seed"],
        threads=threads,
        floor=False,
        **options,
    )


def _learn(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    out = shop.half_done(name)
    trace = trace_path(out)
    found = learn(
        settings["space"],
        prior(PRIORS["bernoulli"], arms=2),
        settings["horizon"],
        protocol=settings["protocol"],
        generations=settings["generations"],
        effort=settings["effort"],
        seed=settings["seed"],
        threads=shop.threads,
        measured=False,
        out=out,
        resume=trace.exists(),
        force=not trace.exists(),
        progress=lambda generation: report(
            generation.share, f"generation {generation.number}, {generation.best:.5g}"
        ),
        announce=shop.announce,
    )
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    values = [record["best"] for record in found.trace]
    improvements = []
    if settings["improvements"]:
        lowest = float("inf")
        for record in found.trace:
            if record["best"] is not None and record["best"] < lowest:
                lowest = record["best"]
                improvements.append(
                    {
                        "generation": record["generation"] + 1,
                        "coordinates": record["best_candidate"],
                    }
                )
    origin = found.file.learned
    assert origin is not None
    for path in (out, trace):
        path.unlink()
    return {
        "label": found.policy.name,
        "file": found.file.model_dump(mode="json", exclude_none=True),
        "parameters": dict(found.parameters),
        "evaluations": origin.evaluations,
        "stopped": found.stopped,
        "best": values,
        "median": [record["median"] for record in found.trace],
        "improvements": improvements,
        "seconds": sum(record["seconds"] for record in found.trace),
    }


def _search(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    out = shop.half_done(name)
    resume = state_path(out).exists()
    found = search(
        prior(PRIORS["bernoulli"], arms=2),
        settings["horizon"],
        classes=shop.classes(settings["length"]),
        strategy=settings["strategy"],
        pulls=settings["pulls"],
        start=settings["start"],
        top=settings["top"],
        refine=settings["refine"],
        effort=settings["effort"],
        seed=settings["seed"],
        threads=shop.threads,
        measured=False,
        out=out,
        resume=resume,
        force=not resume,
        progress=report,
        announce=shop.announce,
    )
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    out.unlink()
    shown = found.to_dict()
    return {
        "label": found.policy.name,
        "file": found.file.model_dump(mode="json", exclude_none=True),
        "strategy": found.strategy,
        "classes": found.classes,
        "ranking": shown["ranking"][:10],
        "best_of_length": shown["best_of_length"],
    }


def _classes(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    # Made anew even if they are kept somewhere: how long that takes is part of the result.
    shop.made = make_classes(
        settings["length"],
        threads=shop.threads,
        progress=lambda done, total: report(done / total, "making the classes"),
    )
    counts = shop.made.counts()
    totals = {key: sum(row[key] for row in counts) for key in counts[0] if key != "length"}
    return {"counts": counts, "totals": totals}


def _digits(value: float) -> float:
    """Six digits are enough for a picture."""
    return float(f"{value:.6g}")


def _test(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    chosen = shop.policy(settings["policy"])
    gaussian = settings["prior"] != PRIORS["bernoulli"]
    found = _play(
        chosen,
        settings,
        shop.threads,
        keep_plays=gaussian,
        progress=lambda done, total: report(done / total, chosen.name),
    )
    own: Evaluation = found[0]
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
        [int(at), _digits(mean), _digits(error)]
        for at, mean, error in zip(own.checkpoints, own.curve, own.curve_error, strict=True)
    ]
    # As in the paper each policy has its own luck. With common luck less is left to chance, but the two
    # often play alike, so that a problem with equal regret counts half.
    rival = shop.reference(settings, other_luck=True)
    result["wins"] = float(np.mean(own.problem_regret < rival))
    rival = shop.reference(settings, other_luck=False)
    equal = own.problem_regret == rival
    result["wins_common_luck"] = float(np.mean((own.problem_regret < rival) + 0.5 * equal))
    return result


def _exact(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    chosen = shop.policy(settings["policy"])
    problems, horizon = prior(PRIORS["bernoulli"], arms=2), settings["horizon"]
    chosen.prepare(problems, horizon, None)
    obstacle = exact.obstacle(problems, [(chosen, chosen.plan(problems, horizon))], horizon)
    if obstacle is not None:
        return {"regret": None, "obstacle": obstacle}
    found = evaluate(
        chosen,
        problems,
        horizon,
        method="exact",
        threads=shop.threads,
        floor=False,
        progress=lambda done, total: report(done / total, f"exactly: {chosen.name}"),
    )
    return {"regret": found[0].mean_regret}


def _floor(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    best = optimal(
        prior(PRIORS["bernoulli"], arms=2),
        settings["horizon"],
        start=settings["start"],
        threads=shop.threads,
        progress=lambda done, total: report(done / total, "the Bayes-optimal policy"),
    )
    return {"regret": best.regret}


def _curve(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    """Training and testing regret of the best candidate so far, wherever it changes."""
    found = shop.records.result(settings["of"])
    problems, horizon = prior(PRIORS["bernoulli"], arms=2), settings["horizon"]
    space = make_space(settings["space"], problems, paper=True)
    made = [space.policy(np.array(item["coordinates"])) for item in found["improvements"]]
    quick = exact.cost(problems, horizon) < 1.0
    tested = evaluate(
        made,
        problems,
        horizon,
        method="exact" if quick else "monte-carlo",
        episodes=None if quick else settings["episodes"],
        seed=settings["seed"],
        threads=shop.threads,
        floor=False,
        progress=lambda done, total: report(done / total, "testing what was best on the way"),
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


def _better(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    """How many classes have less regret than every one of the rivals."""
    problems, horizon = prior(PRIORS["bernoulli"], arms=2), settings["horizon"]
    batch = shop.batch(settings, problems)
    rivals = [policy(text) for text in settings["rivals"]]
    if exact.cost(problems, horizon) < 1.0:
        playable = [
            item
            for item in rivals
            if exact.obstacle(problems, [(item, item.plan(problems, horizon))], horizon) is None
        ]
        known = evaluate(playable, problems, horizon, method="exact", floor=False)
        best = known.ranking()[0]
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
        threads=shop.threads,
        floor=False,
    )
    best = known.ranking()[0]
    rival = next(item for item in rivals if item.name == best.policy)
    episodes = batch.simulation(runs=1, seed=settings["seed"])
    level = episodes.play_other(rival, rounds[-1])
    left = np.arange(batch.count)
    mean = error = alike = np.zeros(0)
    for place, count in enumerate(rounds):
        report(place / len(rounds), f"{len(left):,} classes on {count:,} problems")
        mean, error, alike = _against(episodes, left, level[:count])
        stay = mean < _SURE * error
        left, mean, error, alike = left[stay], mean[stay], error[stay], alike[stay]
    better = mean < 0.0
    return {
        "method": "monte-carlo",
        "rival": best.policy,
        "rival_regret": best.mean_regret,
        "classes": int(better.sum()),
        "surely": int((mean < -1.96 * error).sum()),
        "strategies": len(np.unique(alike[better])),
        "problems": rounds[-1],
    }


def _against(
    episodes: Any, which: npt.NDArray[np.int64], level: Array
) -> tuple[Array, Array, Array]:
    """Regret of classes minus the rival's: mean, standard error; and a sum that shows who plays alike."""
    mean, error = np.empty(len(which)), np.empty(len(which))
    alike = np.empty(len(which))
    # In parts, so that single regrets need little room.
    step = max(1, 20_000_000 // len(level))
    for first in range(0, len(which), step):
        part = slice(first, first + step)
        apart = episodes.play(which[part], 0, len(level)) - level
        with np.errstate(invalid="ignore"):
            mean[part] = apart.mean(axis=1)
            error[part] = apart.std(axis=1, ddof=1) / np.sqrt(len(level))
        alike[part] = mean[part]
    # Classes that cannot be played have no mean.
    playable = np.isfinite(mean)
    return np.where(playable, mean, np.inf), np.where(playable, error, 0.0), alike


def _sooner(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    """What evaluating every class equally would take, from some of them, beside the bandit search."""
    problems = prior(PRIORS["bernoulli"], arms=2)
    batch = shop.batch(settings, problems)
    rng = np.random.default_rng(settings["seed"])
    some = rng.choice(batch.count, min(settings["sample"], batch.count), replace=False)
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


KINDS: dict[str, Callable[[Workshop, Mapping[str, Any], str, Report], Any]] = {
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
