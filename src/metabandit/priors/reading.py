"""Priors as the command line writes them: `name:key=value,key=value`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..errors import InputError, nearest
from ..settings import check_keys, read_number, read_settings
from .base import Prior
from .parametric import Bernoulli, BetaRewards, Gaussian, TruncatedGaussian
from .table import Table

PRIORS: dict[str, Callable[..., Prior]] = {
    "bernoulli": Bernoulli,
    "truncated-gaussian": TruncatedGaussian,
    "gaussian": Gaussian,
    "beta": BetaRewards,
    "table": Table,
}
# What a person can set; the number of arms is an option of its own.
PRIOR_KEYS = {
    name: tuple(key for key in inspect.signature(make).parameters if key != "arms")
    for name, make in PRIORS.items()
}
_TEXT_KEYS = ("path", "family", "regret")
_KEYS_PER_ARM = ("alpha", "beta")


def prior(text: str, *, arms: int | None = None) -> Prior:
    """Read a prior as the command line writes it.

    Parameters
    ----------
    text : str
        Name and settings, such as `bernoulli:alpha=1,beta=1`; one value per arm is written with colons
        between: `bernoulli:alpha=3:1,beta=2:1`.
    arms : int, optional
        The number of arms.

    Returns
    -------
    Prior
        An object of the class with this name.

    Examples
    --------
    >>> import metabandit as mb
    >>> mb.prior("bernoulli:alpha=3:1,beta=2:1").arms
    2
    """
    name, settings = read_settings(text, "prior")
    if name.endswith(".csv"):
        raise InputError(f"a file of past problems is the prior table:path={name}")
    if name not in PRIORS:
        raise InputError(f"unknown prior {name!r}; {nearest(name, PRIORS)}")
    check_keys(settings, PRIOR_KEYS[name], f"the prior {name}")
    if name == "table" and "path" not in settings:
        raise InputError("the prior table needs its file: table:path=problems.csv")
    values: dict[str, Any] = {"arms": arms}
    for key, value in settings.items():
        if key in _TEXT_KEYS:
            values[key] = value
        else:
            numbers = [read_number(item, f"{key} of the prior {name}") for item in value.split(":")]
            values[key] = numbers[0] if len(numbers) == 1 else numbers
            if len(numbers) > 1 and key not in _KEYS_PER_ARM:
                raise InputError(f"{key} of the prior {name} is one number, not {value!r}")
    return PRIORS[name](**values)
