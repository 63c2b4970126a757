"""What an optimiser is: it asks for candidates to be judged and is told their values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ...errors import InputError, nearest
from ...priors.families import Array
from ...settings import check_keys, read_number, read_settings


class Optimizer(ABC):
    """Minimises a function of d numbers by ask and tell.

    A new optimiser subclasses this and is decorated with `register_optimizer`. All its randomness must
    come from `seed`: a run that was killed is resumed by asking and telling again what is on record.

    Attributes
    ----------
    name, meaning, settings : str, str, mapping
        Set by the class: its name, what it is, and numbers that a person may set, with their defaults;
        None is for the optimiser to choose.
    chosen : dict
        The settings as the person set them.
    initial, deviation : array, float
        Where to begin, and how far around it to look at first.
    seed, noisy : int, bool
        Seed of the random numbers, and whether values are noisy.

    Examples
    --------
    >>> import metabandit as mb
    >>> class Best(mb.Optimizer):
    ...     name, meaning = "best", "goes to the best of a cloud"
    ...     def begin(self):
    ...         self.rng, self.at = np.random.default_rng(self.seed), self.initial
    ...     def ask(self):
    ...         return self.at + self.deviation * self.rng.normal(size=(8, len(self.at)))
    ...     def tell(self, candidates, values):
    ...         self.at = candidates[np.argmin(values)]
    ...     @property
    ...     def center(self):
    ...         return self.at
    """

    name: ClassVar[str]
    meaning: ClassVar[str]
    settings: ClassVar[Mapping[str, float | None]] = {}

    def __init__(
        self, settings: Mapping[str, float], center: Array, deviation: float, seed: int, noisy: bool
    ) -> None:
        self.chosen = {**self.settings, **settings}
        self.initial, self.deviation = center, deviation
        self.seed, self.noisy = seed, noisy
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Check `chosen`, and set up what the first generation is drawn from."""

    @abstractmethod
    def ask(self) -> Array:
        """The candidates of the next generation, [candidate, coordinate]."""

    @abstractmethod
    def tell(self, candidates: Array, values: Array) -> None:
        """Learn what the candidates are worth; less is better, infinite is not possible at all."""

    @property
    @abstractmethod
    def center(self) -> Array:
        """The middle of the distribution from which candidates come."""


OPTIMIZERS: dict[str, type[Optimizer]] = {}


def register_optimizer(kind: type[Optimizer]) -> type[Optimizer]:
    """Make an optimiser known by its name.

    Parameters
    ----------
    kind : type
        A subclass of `Optimizer`.

    Returns
    -------
    type
        The same class, so that this is a decorator.
    """
    OPTIMIZERS[kind.name] = kind
    return kind


def read_optimizer(text: str) -> tuple[type[Optimizer], dict[str, float]]:
    """An optimiser as the command line writes it: `cma`, `eda:population=64`."""
    name, settings = read_settings(text, "optimizer")
    if name not in OPTIMIZERS:
        raise InputError(f"unknown optimizer {name!r}; {nearest(name, OPTIMIZERS)}")
    kind = OPTIMIZERS[name]
    check_keys(settings, kind.settings, f"the optimizer {name}")
    return kind, {key: read_number(value, f"{key} of {name}") for key, value in settings.items()}


def make_optimizer(
    text: str, center: Array, deviation: float, *, seed: int, noisy: bool
) -> Optimizer:
    """The optimiser of this text, about to begin."""
    kind, settings = read_optimizer(text)
    return kind(settings, center, deviation, seed, noisy)


def check_count(value: float, what: str, least: int, most: int = 10_000) -> int:
    """A whole number as a person set it."""
    if value != int(value) or not least <= value <= most:
        raise InputError(f"{what} must be a whole number from {least} to {most}, not {value:g}")
    return int(value)


def without_infinities(values: Array) -> Array:
    """Values without infinities, which some optimisers cannot take: those become the worst."""
    finite = np.isfinite(values)
    if finite.all():
        return values
    known = values[finite]
    worst = float(known.max()) if known.size else 0.0
    return np.where(finite, values, worst + 1.0 + abs(worst))
