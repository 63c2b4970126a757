"""What is known of the problems in advance: reward families, and priors over problems."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..errors import InputError, about, nearest
from ..settings import check_keys, read_number, read_settings
from .amounts import Counts, Empirical, Revenue
from .base import Prior, check_arms, check_prior
from .families import BERNOULLI, BETA, GAUSSIAN, Family
from .parametric import Bernoulli, BetaRewards, Gaussian, Hierarchical, TruncatedGaussian
from .table import Table
from .words import read_words, words_of

__all__ = [
    "BERNOULLI",
    "BETA",
    "GAUSSIAN",
    "PRIORS",
    "Bernoulli",
    "BetaRewards",
    "Counts",
    "Empirical",
    "Family",
    "Gaussian",
    "Hierarchical",
    "Prior",
    "Revenue",
    "Table",
    "TruncatedGaussian",
    "check_prior",
    "prior",
    "read_prior",
]

PRIORS: dict[str, type[Prior]] = {
    each.text_name: each
    for each in (
        Bernoulli, TruncatedGaussian, Gaussian, BetaRewards, Hierarchical, Counts, Revenue, Table, Empirical,
    )
}  # fmt: skip


@about("prior")
def prior(text: str, *, arms: int | None = None) -> Prior:
    """Read a prior as the command line writes it.

    Parameters
    ----------
    text : str
        Name and settings, such as `bernoulli:alpha=1,beta=1`; one value per arm is written with colons
        between: `bernoulli:alpha=3:1,beta=2:1`. Or in words: `bernoulli:low=0.005,high=0.02`, between
        which nine means in ten lie, or `bernoulli:mean=0.03,sd=0.01`.
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
    >>> str(mb.prior("bernoulli:mean=0.25,sd=0.25"))
    'bernoulli:alpha=0.5,beta=1.5'
    """
    name, settings = read_settings(text, "prior")
    if name.endswith(".csv"):
        raise InputError(f"a file of past problems is the prior table:path={name}")
    if name not in PRIORS:
        raise InputError(f"unknown prior {name!r}; {nearest(name, PRIORS)}")
    kind = PRIORS[name]
    check_keys(settings, (*kind.keys, *words_of(name)), f"the prior {name}")
    if name in ("table", "empirical") and "path" not in settings:
        example = {"table": "problems.csv", "empirical": "rewards.csv,factor=0.1"}[name]
        raise InputError(f"the prior {name} needs its file: {name}:path={example}")
    values: dict[str, Any] = {"arms": arms}
    for key, value in read_words(name, settings).items():
        if key in kind.text_keys:
            values[key] = value
            continue
        numbers = value
        if isinstance(value, str):
            numbers = [read_number(item, f"{key} of the prior {name}") for item in value.split(":")]
        values[key] = numbers[0] if len(numbers) == 1 else numbers
        if len(numbers) > 1 and key not in kind.keys_per_arm:
            raise InputError(f"{key} of the prior {name} is one number, not {settings.get(key)!r}")
    return kind(**values)


def read_prior(
    given: str | Prior,
    *,
    arms: int | None = None,
    announce: Callable[[str], None] | None = None,
) -> Prior:
    """A prior, or the text of one, as functions take it; `arms` must agree with a prior that has them.

    Noisy means of a table are announced, or, if nobody listens, are worth a Python warning.
    """
    known = prior(given, arms=arms) if isinstance(given, str) else check_prior(given)
    if arms is not None and check_arms(arms) != known.arms:
        raise InputError(
            f"the prior has {known.arms} arms, not {arms}; leave out arms", about="arms"
        )
    if isinstance(known, Table) and not known.told:
        known.told = True
        for text in known.noisy:
            if announce is None:
                warnings.warn(text, stacklevel=4)  # of the function with progress that was called
            else:
                announce(f"warning: {text}")
    return known
