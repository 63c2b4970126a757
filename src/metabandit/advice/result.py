"""What an advice says: what each policy brings, what to use, and what happens if the prior is wrong."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..data import write_data
from ..feedback import Feedback
from ..files import check_new, written
from ..policies import IndexPolicy, Policy
from ..policies.file import ADVICE_FORMAT, PolicyFile
from ..showing import Shown
from . import sentences
from .measuring import FORMULA, LEARNED, Gain

# Why an advice ended.
FINISHED, TIME_LIMIT, INTERRUPTED = "finished", "time limit", "interrupted"


@dataclass(frozen=True, kw_only=True)
class Advised:
    """A policy that was measured, in rewards per test (an episode of all plays).

    expected_reward: what it brings
    gain, over_split: what it brings more than today's policy, and than an equal split, with 95 % intervals
    risk: the chance that it brings less than today's policy on a single test; None if it was not played
    regret: what it lacks to always playing the best arm
    episodes: that it played; 0 if its figures are exact
    file: the policy as a file has it
    """

    policy: Policy
    kind: str
    expected_reward: float
    gain: Gain
    over_split: Gain
    risk: float | None
    regret: Gain
    episodes: int
    file: PolicyFile = field(repr=False)

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.policy.name

    @property
    def text(self) -> str:
        """The policy as commands take it; what was searched for may also need its start."""
        searched = self.kind in (FORMULA, LEARNED) and isinstance(self.policy, IndexPolicy)
        return self.policy.formula if searched else self.name  # type: ignore[attr-defined]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        index = self.policy if isinstance(self.policy, IndexPolicy) else None
        return {
            "policy": self.name,
            "kind": self.kind,
            "expected_reward": self.expected_reward,
            "gain": self.gain.mean,
            "gain_interval": _ends(self.gain),
            "gain_over_split": self.over_split.mean,
            "gain_over_split_interval": _ends(self.over_split),
            "risk": self.risk,
            "regret": self.regret.mean,
            "regret_interval": _ends(self.regret),
            "episodes": self.episodes,
            "formula": None if index is None or len(index.trees) > 1 else index.formula,
            "start": None if index is None else str(index.start),
        }


@dataclass(frozen=True)
class Scenario:
    """The policies that matter on other problems: what they bring more there than today's policy."""

    label: str
    prior: str
    horizon: int
    gains: Mapping[str, Gain]

    @property
    def best(self) -> str:
        """The policy that brings most."""
        return max(self.gains, key=lambda name: self.gains[name].mean)

    def to_dict(self, recommended: str) -> dict[str, Any]:
        """Plain data, for JSON; the gain is that of the recommended policy."""
        own = self.gains[recommended]
        return {
            "difference": self.label,
            "prior": self.prior,
            "horizon": self.horizon,
            "gain": own.mean,
            "gain_interval": _ends(own),
            "best": self.best,
            "policies": [
                {"policy": name, "gain": item.mean, "gain_interval": _ends(item)}
                for name, item in self.gains.items()
            ],
        }


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Advice(Shown):
    """The recommendation for problems of a prior, and what it rests on; `advise` makes it.

    Attributes
    ----------
    means : tuple of float
        Means of arms: nine in ten lie between the first two; the third is the average.
    source : str
        The history that the prior was fitted to, if any.
    policies : tuple
        All policies that were measured, best first, on the same problems, which no search has seen.
    recommended, today
        The policy to use, and the one that gains are counted from.
    best_reward : float
        What always playing the best arm would bring.
    floor : float or None
        The least possible regret, or a lower bound on it; None if it is not known.
    scenarios, histories : tuple
        The finalists if the prior is wrong, and on priors that were fitted to resampled histories.
    unit, value : str, float or None
        What a reward is called, and what it is worth.
    skipped : tuple
        Policies that were not played, and why.
    doubts : tuple
        What in the history speaks against the prior.
    stopped : str
        Why it ended: finished, time limit or interrupted.
    """

    prior: str
    arms: int
    horizon: int
    feedback: Feedback
    means: tuple[float, float, float]
    source: str
    policies: tuple[Advised, ...]
    recommended: Advised
    today: Advised
    best_reward: float
    floor: float | None
    floor_kind: str | None
    scenarios: tuple[Scenario, ...]
    histories: tuple[Scenario, ...]
    unit: str
    value: float | None
    seed: int
    effort: float | None
    time_limit: float | None
    skipped: tuple[tuple[str, str], ...]
    doubts: tuple[str, ...]
    notes: tuple[str, ...]
    stopped: str
    seconds: float
    written: Path | None = None

    _align = "llr"

    @property
    def best_possible(self) -> float:
        """A reward that no policy can exceed on average."""
        return self.best_reward - (self.floor or 0.0)

    @property
    def below_best(self) -> float | None:
        """How much less than the best possible the recommended policy brings at most, as a share."""
        if not self.best_possible > 0.0:
            return None
        return max(0.0, 1.0 - self.recommended.expected_reward / self.best_possible)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the advice; every command takes the file as the recommended policy."""
        target = check_new(path, (".json",), "an advice", force=force)
        with written(target, "the advice") as file:
            file.write((json.dumps(self.to_dict(target), indent=2) + "\n").encode())

    def summary(self) -> str:
        """What to use and what it is worth, in two sentences; then what to be careful about."""
        return " ".join(sentences.summary(self))

    def rows(self, *, regret: bool = False) -> list[dict[str, str]]:
        """The ranking as a table's cells."""
        return sentences.ranking_rows(self, regret=regret)

    def scenario_rows(self) -> list[dict[str, str]]:
        """What policies gain if the prior is wrong, as a table's cells."""
        return sentences.scenario_rows(self)

    def headline(self) -> str:
        """The answer."""
        return self.summary()

    def records(self) -> list[dict[str, Any]]:
        """What was measured of each policy, best first."""
        return [
            {key: value for key, value in item.to_dict().items() if not isinstance(value, list)}
            | {"gain_low": item.gain.low, "gain_high": item.gain.high}
            for item in self.policies
        ]

    def remarks(self) -> list[str]:
        return list(self.notes)

    def plot(self, axes: Any = None) -> Any:
        """Draw what each policy brings more than today's; returns matplotlib's axes."""
        from ..drawing import gains, plot_axes

        rows = [
            (item.name, item.gain.mean, (item.gain.low, item.gain.high), item is self.recommended)
            for item in self.policies
        ]
        axes = plot_axes(axes, 6.2, 1.1 + 0.36 * len(rows))
        gains(rows, x=f"{self.unit} more per test", axes=axes)
        return axes

    def next_steps(self, path: Path | None = None) -> list[tuple[str, str]]:
        """What to do next, as (what for, command)."""
        name = str(path or self.written or "advice.json")
        file, rival = shlex.quote(name), shlex.quote(self.today.text)
        asked = f"--prior {shlex.quote(self.prior)} --arms {self.arms} --horizon {self.horizon}"
        if self.recommended.name == self.today.name:
            rival = "thompson"
        told = [f"arms={self.arms}"]
        if self.recommended.file.learned is None:  # what was learned knows the task itself
            told += [f"horizon={self.horizon}", f"prior={json.dumps(self.prior)}"]
        told.append('journal="plays.jsonl"')
        steps = [
            (
                "Measure it again, on other problems",
                f"metabandit evaluate {file} {rival} {asked}{self.feedback.options()} --seed 1",
            ),
            (
                "Use it in a Python service",
                f"player = metabandit.load({json.dumps(name)}).player({', '.join(told)})",
            ),
        ]
        if isinstance(self.recommended.policy, IndexPolicy):  # others cannot be exported
            steps.append(("Use it elsewhere", f"metabandit export {file} --to sql"))
        return steps

    def to_dict(self, path: Path | None = None) -> dict[str, Any]:
        """Plain data, for JSON; `path` is the file that it is written to."""
        file = path or self.written
        best = self.recommended
        return {
            "format": ADVICE_FORMAT,
            "version": 1,
            "recommended": best.text if file is None else str(file),
            "recommended_policy": best.name,
            "today": self.today.name,
            "summary": sentences.summary(self),
            "explanation": sentences.explanation(self),
            "assumed": sentences.assumptions(self),
            "prior": self.prior,
            "arms": self.arms,
            "horizon": self.horizon,
            "feedback": self.feedback.to_dict(),
            "means": dict(zip(("low", "high", "mean"), self.means, strict=True)),
            "unit": self.unit,
            "value": self.value,
            "policies": [item.to_dict() for item in self.policies],
            "best_reward": self.best_reward,
            "best_possible": self.best_possible,
            "below_best": self.below_best,
            "floor": self.floor,
            "floor_kind": self.floor_kind,
            "if_the_prior_is_wrong": [item.to_dict(best.name) for item in self.scenarios],
            "if_history_is_noisy": [item.to_dict(best.name) for item in self.histories],
            "skipped": [{"policy": name, "reason": why} for name, why in self.skipped],
            "doubts": list(self.doubts),
            "notes": list(self.notes),
            "next": [{"what": what, "command": text} for what, text in self.next_steps(file)],
            "seed": self.seed,
            "effort": self.effort,
            "time_limit": self.time_limit,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "policy_file": write_data(best.file),
        }


def _ends(gain: Gain) -> list[float | None]:
    return [end if math.isfinite(end) else None for end in (gain.low, gain.high)]
