"""How each kind of piece is done: settings in, a result for JSON out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from ...bayes.optimum import optimal
from ...data import read_data, write_data
from ...engine import Evaluation, evaluate, exact, recount
from ...engine.batch import Batch
from ...engine.task import silent, stream
from ...errors import InputError
from ...formulas import Classes, kept_classes, make_classes, search, state_path
from ...learning import learn
from ...learning.spaces import make_space
from ...learning.trace import trace_path
from ...policies import Policy, Start, policy
from ...policies.file import PolicyFile
from ...priors import Prior, prior
from ...workers import Workers
from .paper import PRIORS, TRUE_GAUSSIAN
from .plan import Piece
from .records import Records
from .screening import better, sooner

REFERENCE = "ucb1-tuned"

Report = Callable[[float, str], None]


class Workshop:
    """What the pieces of a run have in common: records, a folder for what is half done, who works."""

    def __init__(
        self, records: Records, folder: Path, workers: Workers, announce: Callable[[str], None]
    ) -> None:
        self.records = records
        self.folder = folder
        self.workers = workers
        self.who: dict[str, Any] = {"threads": workers.threads, "executor": workers.executor}
        self.announce = announce
        self._references: dict[tuple[Any, ...], npt.NDArray[np.floating[Any]]] = {}
        self._policies: dict[str, Policy] = {}
        self.made: Classes | None = None

    def do(self, piece: Piece, report: Report) -> tuple[dict[str, Any], float]:
        """The result of a piece, and the seconds it took, also in runs that were stopped."""
        begun = time.monotonic()
        half = [path for path in self._half_done(piece.id) if path.exists()]
        try:
            result: dict[str, Any] = KINDS[piece.kind](self, piece.settings, piece.id, report)
        except InputError as error:
            if not half:
                raise
            # Made by another version, say, or damaged by a crash: nothing but time is lost.
            self.announce(f"{piece.id} was half done and begins anew: {error}")
            for path in half:
                path.unlink(missing_ok=True)
            result = KINDS[piece.kind](self, piece.settings, piece.id, report)
        seconds = time.monotonic() - begun
        return result, float(result.pop("seconds", seconds))

    def half_done(self, name: str) -> Path:
        """The policy file of a piece that is being worked on."""
        return self.folder / f"{name.replace('/', '-')}.json"

    def _half_done(self, name: str) -> list[Path]:
        """All files of such a piece."""
        out = self.half_done(name)
        return [out, trace_path(out), state_path(out)]

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
        return read_data(PolicyFile, found["file"]).policy.policy(found["label"])

    def classes(self, length: int) -> Classes:
        """All formulas up to a length, sorted into classes once."""
        if self.made is None or self.made.length != length:
            self.made = kept_classes(length, threads=self.workers.threads, announce=self.announce)
        return self.made

    def batch(self, settings: Mapping[str, Any], problems: Prior) -> Batch:
        """The classes, ready to be played."""
        compiled = self.classes(settings["length"]).compile()
        start = Start.read(settings["start"]).resolve(problems)
        return Batch.of(compiled, problems, settings["horizon"], start, self.workers)

    def reference(
        self, settings: Mapping[str, Any], *, other_luck: bool
    ) -> npt.NDArray[np.floating[Any]]:
        """The regret of UCB1-Tuned on each problem of a test."""
        key = (*(settings[name] for name in ("prior", "horizon", "problems", "runs", "seed")), other_luck)  # fmt: skip
        if key not in self._references:
            found = _play(
                policy(REFERENCE),
                settings,
                self.who,
                luck=stream(settings["seed"], 7) if other_luck else None,
            )
            regret = found[0].problem_regret
            assert regret is not None
            self._references[key] = regret
        return self._references[key]


class Helper:
    """What a worker does of a reproduction: whole pieces, with the records that they need."""

    def __init__(self, scale: str, seed: int) -> None:
        self.shop = Workshop(Records(scale, seed), Path(), Workers(1), silent)

    def do(self, piece: Piece, needed: list[dict[str, Any]]) -> tuple[dict[str, Any], float]:
        """The result of a piece, and the seconds it took."""
        for record in needed:
            self.shop.records.add(record)
        # A folder of its own: another thread may do the same piece for someone else.
        with TemporaryDirectory(prefix="metabandit-") as folder:
            shop = copy(self.shop)
            shop.folder = Path(folder)
            return shop.do(piece, lambda share, doing: None)


def _play(which: Policy, settings: Mapping[str, Any], who: dict[str, Any], **options: Any) -> Any:
    return evaluate(
        which,
        prior(settings["prior"], arms=2),
        settings["horizon"],
        method="monte-carlo",
        episodes=settings["problems"] * settings["runs"],
        runs=settings["runs"],
        seed=settings["seed"],
        floor=False,
        **who,
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
        **shop.who,
        measured=False,
        out=out,
        resume=trace.exists(),
        force=not trace.exists(),
        progress=lambda generation: report(
            generation.share, f"generation {generation.number}, {generation.best:.5g}"
        ),
        announce=shop.announce,
    )
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
        "file": write_data(found.file),
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
        **shop.who,
        measured=False,
        out=out,
        resume=resume,
        force=not resume,
        progress=report,
        announce=shop.announce,
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


def _classes(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    # Made anew even if they are kept somewhere: how long that takes is part of the result.
    shop.made = make_classes(
        settings["length"],
        threads=shop.workers.threads,
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
        shop.who,
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
        **shop.who,
        floor=False,
        progress=lambda done, total: report(done / total, f"exactly: {chosen.name}"),
    )
    return {"regret": found[0].mean_regret}


def _floor(shop: Workshop, settings: Mapping[str, Any], name: str, report: Report) -> Any:
    best = optimal(
        prior(PRIORS["bernoulli"], arms=2),
        settings["horizon"],
        start=settings["start"],
        threads=shop.workers.threads,
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
        **shop.who,
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


KINDS: dict[str, Callable[[Workshop, Mapping[str, Any], str, Report], Any]] = {
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
