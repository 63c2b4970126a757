"""Objectives: what a policy is to be good at, as one number of which less is better.

Each is a function of the regret on each problem; `simple` of the simple regret. Those that are a
mean over problems need no problems where exact evaluation gives the mean over the prior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import InputError, nearest
from ..priors.families import Array
from ..settings import check_keys, read_grid, read_number, read_settings


@dataclass(frozen=True)
class WantedPower:
    """The power that a policy must have as the design of a trial; what it lacks costs regret.

    rates: the success rates of two arms at which the test must reject with probability `least`
    test, level: the test, as `trials` reads it
    penalty: regret per play for a power that lacks 1
    """

    rates: tuple[float, float]
    least: float = 0.8
    test: str = "fisher"
    level: float = 0.05
    penalty: float = 1.0


@dataclass(frozen=True)
class Objective:
    """What is minimised.

    value: from regret [policy, problem] and that of the reference [problem] to one number per policy
    mean: whether it is a mean over problems, which exact evaluation gives without drawing any
    simple: whether it is about simple regret
    needs_reference: whether it compares with another policy
    power: the power that a policy must have, if that is part of it
    grid: the success rates whose combinations are the problems, if it is not about those of the prior
    """

    name: str
    meaning: str
    value: Callable[[Array, Array | None], Array] = field(repr=False)
    mean: bool = False
    simple: bool = False
    needs_reference: bool = False
    power: WantedPower | None = None
    grid: tuple[float, ...] | None = None

    @property
    def exact(self) -> bool:
        """Whether it is for learning where exact evaluation applies."""
        return self.power is not None or self.grid is not None


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


def _quantile(q: float) -> Objective:
    if not 0.0 < q < 1.0:
        raise InputError(f"q of the objective quantile must be between 0 and 1, not {q:g}")

    def value(regret: Array, reference: Array | None) -> Array:
        # Infinite regrets, of policies that cannot be played, leave no number to interpolate.
        with np.errstate(invalid="ignore"):
            found = np.quantile(regret, q, axis=1)
        return np.where(np.isnan(found), np.inf, found)

    return Objective(f"quantile:q={q:g}", f"the {q:g}-quantile of regret over problems", value)


REGRET = Objective("regret", "mean regret over problems", _mean, mean=True)
_KINDS = {
    "regret": REGRET,
    "wins": Objective(
        "wins",
        "the share of problems on which a reference policy has less regret; equal counts half",
        _losses,
        needs_reference=True,
    ),
    "quantile": _quantile(0.9),
    "worst": Objective("worst", "the largest regret over problems", _worst),
    "simple": Objective(
        "simple",
        "mean simple regret: what the arm with the best mean at the end lacks to the best arm",
        _mean,
        mean=True,
        simple=True,
    ),
}


def _worst_of_grid(text: str, given: str) -> Objective:
    meaning = f"the largest regret over the success rates {given} of each arm"
    return replace(_KINDS["worst"], name=text, meaning=meaning, grid=tuple(read_grid(given)))


_POWER = "power"
_POWER_KEYS = ("p1", "p2", "least", "test", "level", "penalty")


def _power(text: str, settings: dict[str, str]) -> Objective:
    """Mean regret, which is what expected successes lack, with a penalty for too little power."""
    for key in ("p1", "p2"):
        if key not in settings:
            raise InputError(
                f"the objective {text} needs the success rates at which power counts: "
                f"power:p1=0.3,p2=0.5,least=0.8"
            )
    test = settings.pop("test", "fisher")
    numbers = {key: read_number(value, f"{key} of power") for key, value in settings.items()}
    penalty = numbers.get("penalty", 1.0)
    for key, value in numbers.items():
        if key != "penalty" and not 0.0 <= value <= 1.0:
            raise InputError(
                f"{key} of the objective power must lie between 0 and 1, not {value:g}"
            )
    if penalty < 0.0:
        raise InputError(f"the penalty of the objective power must be at least 0, not {penalty:g}")
    rates = numbers.pop("p1"), numbers.pop("p2")
    wanted = WantedPower(rates, test=test, **numbers)
    meaning = (
        f"mean regret, with power of at least {wanted.least:g} at {rates[0]:g} and {rates[1]:g}"
    )
    return Objective(text, meaning, _mean, mean=True, power=wanted)


def read_objective(text: str, *, reference: object) -> Objective:
    """An objective as the command line writes it: `regret`, `wins`, `quantile:q=0.9`, ..."""
    name, settings = read_settings(text, "objective")
    if name not in (*_KINDS, _POWER):
        raise InputError(f"unknown objective {name!r}; {nearest(name, (*_KINDS, _POWER))}")
    known = {"quantile": ("q",), "worst": ("grid",), _POWER: _POWER_KEYS}.get(name, ())
    check_keys(settings, known, f"the objective {name}")
    if name == _POWER:
        objective = _power(text, settings)
    elif "grid" in settings:
        objective = _worst_of_grid(text, settings["grid"])
    else:
        q = settings.get("q")
        objective = _KINDS[name] if q is None else _quantile(read_number(q, "q of quantile"))
    if objective.needs_reference and reference is None:
        raise InputError(
            f"the objective {name} compares with another policy: name it with --reference, such as "
            f"--reference ucb1-tuned"
        )
    if not objective.needs_reference and reference is not None:
        raise InputError(
            f"a reference is for the objective wins; {name} has none", about="reference"
        )
    return objective
