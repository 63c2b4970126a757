"""Objectives: what a policy is to be good at, as one number of which less is better.

Each is a function of the regret on each problem; `simple` of the simple regret. Those that are a
mean over problems need no problems where exact evaluation gives the mean over the prior.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError, nearest
from ..priors.families import Array
from ..settings import check_keys, read_number, read_settings


@dataclass(frozen=True)
class Objective:
    """What is minimised.

    value: from regret [policy, problem] and that of the reference [problem] to one number per policy
    mean: whether it is a mean over problems, which exact evaluation gives without drawing any
    simple: whether it is about simple regret
    needs_reference: whether it compares with another policy
    """

    name: str
    meaning: str
    value: Callable[[Array, Array | None], Array] = field(repr=False)
    mean: bool = False
    simple: bool = False
    needs_reference: bool = False


def _mean(regret: Array, reference: Array | None) -> Array:
    return np.asarray(regret.mean(axis=1))


def _losses(regret: Array, reference: Array | None) -> Array:
    assert reference is not None
    # Regrets that differ by rounding only are equal.
    slack = 1e-9 * (1.0 + np.abs(reference))
    worse = 0.5 * (regret > reference - slack) + 0.5 * (regret > reference + slack)
    return np.asarray(worse.mean(axis=1))


def _worst(regret: Array, reference: Array | None) -> Array:
    return np.asarray(regret.max(axis=1))


def _quantile(settings: Mapping[str, float]) -> Objective:
    q = settings["q"]
    if not 0.0 < q < 1.0:
        raise InputError(f"q of the objective quantile must be between 0 and 1, not {q:g}")

    def value(regret: Array, reference: Array | None) -> Array:
        # Infinite regrets, of policies that cannot be played, leave no number to interpolate.
        with np.errstate(invalid="ignore"):
            found = np.quantile(regret, q, axis=1)
        return np.where(np.isnan(found), np.inf, found)

    return Objective(f"quantile:q={q:g}", f"the {q:g}-quantile of regret over problems", value)


REGRET = Objective("regret", "mean regret over problems", _mean, mean=True)
_KINDS: dict[str, Callable[[Mapping[str, float]], Objective]] = {
    "regret": lambda settings: REGRET,
    "wins": lambda settings: Objective(
        "wins",
        "the share of problems on which a reference policy has less regret; equal counts half",
        _losses,
        needs_reference=True,
    ),
    "quantile": _quantile,
    "worst": lambda settings: Objective("worst", "the largest regret over problems", _worst),
    "simple": lambda settings: Objective(
        "simple",
        "mean simple regret: what the arm with the best mean at the end lacks to the best arm",
        _mean,
        mean=True,
        simple=True,
    ),
}
_DEFAULTS: dict[str, dict[str, float]] = {"quantile": {"q": 0.9}}


def read_objective(text: str, *, reference: object) -> Objective:
    """An objective as the command line writes it: `regret`, `wins`, `quantile:q=0.9`, ..."""
    name, settings = read_settings(text, "objective")
    if name not in _KINDS:
        raise InputError(f"unknown objective {name!r}; {nearest(name, _KINDS)}")
    defaults = _DEFAULTS.get(name, {})
    check_keys(settings, defaults, f"the objective {name}")
    numbers = {key: read_number(value, f"{key} of {name}") for key, value in settings.items()}
    objective = _KINDS[name]({**defaults, **numbers})
    if objective.needs_reference and reference is None:
        raise InputError(
            f"the objective {name} compares with another policy: name it with --reference, such as "
            f"--reference ucb1-tuned"
        )
    if not objective.needs_reference and reference is not None:
        raise InputError(f"a reference is for the objective wins; {name} has none")
    return objective
