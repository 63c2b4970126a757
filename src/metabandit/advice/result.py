"""What an advice says: a ranking, what to use and why, and what happens if the prior is wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..engine import Comparison, Evaluation
from ..errors import InputError
from ..policies import IndexPolicy, Policy
from ..policies.file import PolicyFile, check_target
from ..tables import text_table

CLASSIC, REFERENCE, FORMULA, LEARNED = "classic", "reference", "formula", "learned"
# A formula may have this much more regret than the learned policy and still be what is recommended.
_WORTH_IT = 0.01
# Less than this share is nothing, even where it is exact.
_SOMETHING = 0.001


@dataclass(frozen=True)
class Candidate:
    """A policy that may be worth using; those that were searched for have a file."""

    role: str
    policy: Policy
    file: PolicyFile | None = None


@dataclass(frozen=True)
class Gain:
    """How much less regret than the best untuned classic a policy has.

    share: of the classic's regret, with the 95 % interval of the paired difference
    plays: the extra reward divided by what a play of the classic brings; None if that is nothing
    significant: whether the interval leaves out zero
    """

    share: float
    interval: tuple[float, float]
    plays: float | None
    significant: bool

    def __str__(self) -> str:
        half = (self.interval[1] - self.interval[0]) / 2.0
        noise = f" ± {100.0 * half:.2g}" if half > 0.0 else ""
        unsure = "" if self.significant or half == 0.0 else " (noise)"
        return f"{100.0 * self.share:+.1f}{noise} %{unsure}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "percent": _number(100.0 * self.share),
            "interval": [_number(100.0 * end) for end in self.interval],
            "plays": self.plays,
            "significant": self.significant,
        }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def gain(comparison: Comparison, which: int, classic: int, best: float | None = None) -> Gain:
    """Of one policy over another; `best` is the reward of always playing the best arm."""
    difference = comparison.difference(classic, which)
    base = comparison[classic].mean_regret
    ends = difference.interval
    share = [part / base if base > 0.0 else 0.0 for part in (difference.mean, *ends)]
    plays = None
    if best is not None and best > base:
        plays = difference.mean * comparison.horizon / (best - base)
    return Gain(share[0], (share[1], share[2]), plays, difference.significant)


@dataclass(frozen=True)
class Scenario:
    """The policies that matter on other problems; `places` is where they are among the candidates."""

    label: str
    places: tuple[int, ...]
    comparison: Comparison = field(repr=False)

    def regret(self, place: int) -> Evaluation | None:
        """The result of a candidate, or None if it cannot be played here."""
        if place not in self.places:
            return None
        found: Evaluation = self.comparison[self.places.index(place)]
        return found

    def gain(self, place: int, classic: int) -> Gain | None:
        """Of a candidate over the classic, here."""
        if place == classic or place not in self.places or classic not in self.places:
            return None
        return gain(self.comparison, self.places.index(place), self.places.index(classic))


def best_classic(candidates: Sequence[Candidate], comparison: Comparison) -> int:
    """Where the untuned classic with the least regret is."""
    classics = [place for place, item in enumerate(candidates) if item.role == CLASSIC]
    return min(classics, key=lambda place: float(comparison[place].mean_regret))


def recommend(candidates: Sequence[Candidate], comparison: Comparison) -> int:
    """What to use: the simplest that nothing beats by more than noise and, for a formula, by 1 %."""
    roles = [item.role for item in candidates]
    classic = best_classic(candidates, comparison)
    formula, learned = roles.index(FORMULA), roles.index(LEARNED)

    def beats(first: int, second: int, least: float = _SOMETHING) -> bool:
        difference = comparison.difference(second, first)
        enough = difference.mean > least * comparison[second].mean_regret
        return difference.significant and enough

    searched = learned if beats(learned, formula, _WORTH_IT) else formula
    for place in (searched, learned):
        if beats(place, classic):
            return place
    return classic


@dataclass(frozen=True, eq=False)
class Advice:
    """What is worth using for problems of a prior.

    candidates: policies that were compared; `comparison` has their results, in the same order, on
        problems that no search has seen
    best_reward: what always playing the best arm brings
    scenarios: the policies that matter on neighbouring problems
    skipped: policies that were not played, and why
    written: the policy file, if there is one
    """

    candidates: tuple[Candidate, ...]
    comparison: Comparison
    best_reward: float
    scenarios: tuple[Scenario, ...]
    skipped: tuple[tuple[str, str], ...]
    seed: int
    effort: float
    notes: tuple[str, ...] = ()
    written: Path | None = None

    @property
    def classic(self) -> int:
        """Where the best untuned classic is among the candidates."""
        return best_classic(self.candidates, self.comparison)

    @property
    def choice(self) -> int:
        """Where the recommended policy is among the candidates."""
        return recommend(self.candidates, self.comparison)

    @property
    def recommended(self) -> Candidate:
        """What to use."""
        return self.candidates[self.choice]

    def name(self, place: int) -> str:
        """The name of a candidate."""
        return self.candidates[place].policy.name

    def gain(self, place: int) -> Gain:
        """Of a candidate over the best untuned classic."""
        return gain(self.comparison, place, self.classic, self.best_reward)

    def reward(self, place: int) -> float:
        """The expected reward of an episode."""
        return self.best_reward - float(self.comparison[place].mean_regret)

    def ranking(self) -> list[int]:
        """The candidates' places, least regret first."""
        return sorted(
            range(len(self.candidates)), key=lambda place: float(self.comparison[place].mean_regret)
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the recommended policy; a classic needs no file and is refused."""
        target = check_target(path, force=force)
        if self.recommended.file is None:
            raise InputError(
                f"{self.recommended.policy.name} is a policy of the catalogue and needs no file: use its name"
            )
        self.recommended.file.write(target)

    def summary(self) -> str:
        """What to use and why, in plain words."""
        from .sentences import summary

        return summary(self)

    def rows(self, *, successes: bool = False) -> list[dict[str, str]]:
        """The ranking as a table's cells; the floor is last. Rewards of 0 or 1 can be called successes."""
        from .sentences import ranking_rows

        return ranking_rows(self, "successes" if successes else "reward")

    def scenario_rows(self) -> list[dict[str, str]]:
        """Regret if the prior is wrong, as a table's cells."""
        from .sentences import scenario_rows

        return scenario_rows(self)

    def table(self) -> str:
        """The ranking as text."""
        rows = self.rows()
        return text_table(list(rows[0]), [list(row.values()) for row in rows], align="llr")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        comparison, chosen = self.comparison, self.recommended
        floor = comparison.floor
        return {
            "prior": comparison.prior,
            "arms": comparison.arms,
            "horizon": comparison.horizon,
            "seed": self.seed,
            "effort": self.effort,
            "method": comparison.method,
            "episodes": comparison.episodes,
            "summary": self.summary(),
            "recommended": _describe(chosen),
            "best_classic": self.name(self.classic),
            "floor": None if floor is None else floor.regret,
            "best_reward": self.best_reward,
            "ranking": [
                {
                    **_describe(self.candidates[place]),
                    **_result(comparison[place]),
                    "expected_reward": self.reward(place),
                    "gain": self.gain(place).to_dict(),
                }
                for place in self.ranking()
            ],
            "if_the_prior_is_wrong": [self._scenario(item) for item in self.scenarios],
            "skipped": [{"policy": name, "reason": why} for name, why in self.skipped],
            "notes": list(self.notes),
            "written": None if self.written is None else str(self.written),
        }

    def _scenario(self, item: Scenario) -> dict[str, Any]:
        over = item.gain(self.choice, self.classic)
        return {
            "difference": item.label,
            "prior": item.comparison.prior,
            "horizon": item.comparison.horizon,
            "method": item.comparison.method,
            "episodes": item.comparison.episodes,
            "gain": None if over is None else over.to_dict(),
            "policies": [
                {**_describe(self.candidates[place]), **_result(result)}
                for place, result in zip(item.places, item.comparison, strict=True)
            ],
        }


def _describe(candidate: Candidate) -> dict[str, Any]:
    item = candidate.policy
    index = item if isinstance(item, IndexPolicy) else None
    return {
        "policy": item.name,
        "role": candidate.role,
        "formula": None if index is None or len(index.trees) > 1 else index.formula,
        "start": None if index is None else str(index.start),
    }


def _result(result: Evaluation) -> dict[str, Any]:
    return {
        "regret": result.mean_regret,
        "standard_error": _number(result.standard_error),
        "interval": [_number(end) for end in result.interval],
    }
