"""Spaces of candidate policies: what the numbers to learn are, and the policy that they make.

A space is an index with free parameters (Power-P, or any expression), or a policy of the catalogue
whose parameters are free. A candidate is a vector of coordinates, which optimisers move freely: a
coordinate is the parameter itself, or its logarithm where only the magnitude matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..errors import InputError, about, nearest
from ..language import ARM_VARIABLES, VARIABLES, Name, Tree, bind, names, parse, text, variables
from ..policies import CATALOGUE, Entry, IndexPolicy, Policy, Start
from ..policies.file import Catalogued, Expression, Power
from ..policies.power import (
    matters,
    power_degree,
    power_tree,
    powers,
    weight_names,
)
from ..policies.start import PRIOR_COUNTS, default_start
from ..priors import Prior
from ..priors.families import Array
from ..settings import check_keys, read_number, read_settings, write_number

LEARNED_START = f"{PRIOR_COUNTS}:learn"
_LARGEST = 1e12
_START_NAMES = ("start_plays", "start_mean", "start_deviation")


@dataclass(frozen=True)
class Space:
    """A set of policies with numbers to learn.

    name: as it was asked for
    free: the parameters to learn; `initial` has their values to begin with, `logarithmic` those
        that are learned as log10
    fixed: the values of all other parameters
    tree or entry: the index, or the policy of the catalogue
    start: how candidates begin; None if that is learned too (its parameters are among the free
        ones, and `support` is the range of rewards), or for policies that have their own way
    """

    name: str
    free: tuple[str, ...]
    initial: tuple[float, ...]
    fixed: Mapping[str, float]
    logarithmic: frozenset[str] = frozenset()
    tree: Tree | None = None
    entry: Entry | None = None
    degree: int = 0
    v1: str = ""
    v4: str = ""
    start: Start | None = None
    support: tuple[float, float] = (0.0, 1.0)

    @property
    def center(self) -> Array:
        """The coordinates that learning begins with."""
        return np.array(list(map(self._coordinate, self.free, self.initial)))

    def _coordinate(self, name: str, value: float) -> float:
        if name not in self.logarithmic:
            return value
        if value <= 0.0:
            raise InputError(
                f"{name} of {self.name} is learned as its logarithm and must be greater than 0, "
                f"not {value:g}"
            )
        return math.log10(value)

    def normalise(self, coordinates: Array) -> Array:
        """The same policy in coordinates of a common size: an index can be scaled freely."""
        if not self.degree:
            return coordinates
        count = len(self.free) - len(self._start_names)
        size = float(np.sqrt(np.mean(coordinates[:count] ** 2)))
        scaled = coordinates.copy()
        scaled[:count] /= size if size > 0.0 else 1.0
        return scaled

    def parameters(self, coordinates: Array) -> dict[str, float]:
        """The values of all parameters at these coordinates."""
        values = dict(self.fixed)
        for name, coordinate in zip(self.free, coordinates.tolist(), strict=True):
            if name in self.logarithmic:
                coordinate = 10.0**coordinate if coordinate < 300.0 else math.inf
            values[name] = coordinate
        return values

    @property
    def start_text(self) -> str:
        """How candidates begin, as a person writes it."""
        return LEARNED_START if self._start_names else str(self.start)

    @property
    def _start_names(self) -> tuple[str, ...]:
        return tuple(name for name in _START_NAMES if name in self.free)

    def _start(self, values: dict[str, float]) -> Start | None:
        """The start, whose own parameters leave `values`."""
        if not self._start_names:
            return self.start
        plays = values.pop("start_plays")
        low, high = self.support
        mean = values.pop("start_mean")
        if low > -math.inf and high < math.inf:
            # Any number gives a mean between the least and the largest reward.
            mean = low + (high - low) / (1.0 + math.exp(-min(max(mean, -500.0), 500.0)))
        total = plays * mean
        deviation = values.pop("start_deviation", None)
        squares = total if deviation is None else plays * (mean**2 + deviation**2)
        return Start(PRIOR_COUNTS, plays, total, squares)

    def policy(self, coordinates: Array) -> Policy:
        """The candidate at these coordinates; InputError if there is none."""
        values = self.parameters(coordinates)
        start = self._start(values)
        if self.entry is not None:
            return self.entry.make(values, start, self.name)
        assert start is not None
        return self._template.with_parameters(values, start)

    @cached_property
    def _template(self) -> IndexPolicy:
        assert self.tree is not None
        values = self.parameters(self.center)
        self._start(values)
        return IndexPolicy(self.tree, parameters=values, name=self.name)

    def describe(self, coordinates: Array) -> Expression | Power | Catalogued:
        """The candidate as a policy file holds it."""
        values = self.parameters(coordinates)
        start = self._start(values)
        if self.degree:
            assert start is not None
            return Power.of(self.degree, self.v1, self.v4, values, start)
        if self.entry is not None:
            content = self.entry.make(values, start, self.name).content()
            if isinstance(content, Expression):
                # As it was declared, to the letter.
                return replace(content, expression=self.entry.formula)
            assert isinstance(content, Catalogued)
            return content
        assert self.tree is not None
        assert start is not None
        return Expression(expression=text(self.tree), parameters=values, start=start)

    def label(self, coordinates: Array) -> str:
        """What tables call the candidate: short, with rounded numbers."""
        values = {
            name: float(f"{value:.4g}") for name, value in self.parameters(coordinates).items()
        }
        if self.degree:
            return f"learned {self.name}"
        if self.entry is not None:
            given = ",".join(
                f"{item.name}={write_number(values[item.name])}"
                for item in self.entry.parameters
                if item.name in values
            )
            return f"{self.entry.name}:{given}"
        assert self.tree is not None
        return text(bind(self.tree, values))

    def grow(self, smaller: Space, coordinates: Array) -> Array:
        """Coordinates of this space for a candidate of a smaller one; what is new is zero."""
        values = smaller.parameters(coordinates)
        return np.array([self._coordinate(name, values.get(name, 0.0)) for name in self.free])

    def smaller(self) -> Space | None:
        """Power-(P-1) for Power-P: worth learning first, because its policies are among these."""
        if self.degree < 2:
            return None
        name = f"power-{self.degree - 1}"
        inner = _power(self.degree - 1, self.v1, self.v4, every=False, name=name)
        at = dict(zip(self.free, self.initial, strict=True))
        values = {name: at[name] for name in self._start_names}
        return replace(inner._learning_start(values, self.support), start=self.start)

    def _learning_start(self, values: Mapping[str, float], support: tuple[float, float]) -> Space:
        """The space in which the pseudo-observations are free too, beginning with these values."""
        return replace(
            self,
            free=(*self.free, *values),
            initial=(*self.initial, *values.values()),
            logarithmic=self.logarithmic | ({"start_plays", "start_deviation"} & set(values)),
            support=support,
        )


def _power(degree: int, v1: str, v4: str, *, every: bool, name: str) -> Space:
    """Power-P; features that do not mention the arm are learned only if `every` one is wanted."""
    all_names = weight_names(degree)
    free = [
        name
        for name, exponents in zip(all_names, powers(degree), strict=True)
        if every or matters(exponents)
    ]
    # The paper begins with zeros; here the search begins around the index r.
    greedy = "w_0010" if not every else ""
    return Space(
        name,
        tuple(free),
        tuple(1.0 if name == greedy else 0.0 for name in free),
        {name: 0.0 for name in all_names if name not in free},
        tree=power_tree(degree, v1, v4),
        degree=degree,
        v1=v1,
        v4=v4,
    )


def _catalogued(description: str) -> Space:
    name, settings = read_settings(description, "space")
    entry = CATALOGUE[name]
    check_keys(settings, [item.name for item in entry.parameters], f"the policy {name}")
    fixed = {key: read_number(value, f"{key} of {name}") for key, value in settings.items()}
    for parameter in entry.parameters:
        if parameter.name in fixed:
            parameter.check(fixed[parameter.name], name)
    free = [
        (item, item.default)
        for item in entry.parameters
        if item.name not in fixed and item.default is not None
    ]
    if not free:
        what = "no parameters" if not entry.parameters else "no parameter left free"
        raise InputError(
            f"the space {description} has {what}, so there is nothing to learn; evaluate it as it is"
        )
    return Space(
        description,
        tuple(item.name for item, _ in free),
        tuple(default for _, default in free),
        fixed,
        logarithmic=frozenset(item.name for item, _ in free if item.logarithmic),
        entry=entry,
    )


def _expression(description: str) -> Space:
    if description.endswith(".json"):
        raise InputError(
            f"{description} is a policy file, not a space; to begin with its numbers, name its space "
            f"and give --initial {description}"
        )
    tree = parse(description, parameters=None)
    free = names(tree)
    if isinstance(tree, Name) and free:
        known = [*CATALOGUE, "power-1", "power-2"]
        raise InputError(f"unknown space {description!r}; {nearest(description, known)}")
    if not free:
        raise InputError(
            f"the space {description} has no free parameter, so there is nothing to learn; names "
            f"other than {', '.join(VARIABLES)} are parameters, as a and b in 'r + a/(n + b)'"
        )
    if not variables(tree) & ARM_VARIABLES:
        raise InputError(
            f"the space {description} mentions nothing of an arm (r, s or n), so its index is the "
            f"same for all arms"
        )
    for name in free:
        if name in _START_NAMES:
            raise InputError(f"a parameter cannot be called {name}, which is taken; rename it")
    return Space(description, tuple(free), (0.0,) * len(free), {}, tree=tree)


def _learned_start(prior: Prior) -> dict[str, float]:
    """Where learning of the pseudo-observations begins: with those of the prior if it has any."""
    low, high = prior.family.support
    bounded = low > -math.inf and high < math.inf
    plays, mean, deviation = 2.0, (low + high) / 2.0 if bounded else 0.0, 0.1
    counts = prior.counts()
    if counts is not None:
        if not (counts == counts[:, :1]).all():
            raise InputError(
                f"the start {LEARNED_START} gives all arms the same pseudo-observations, but the "
                f"arms of {prior} differ; use the start prior-counts, which takes them from the prior"
            )
        plays, total, squares = counts[:, 0].tolist()
        mean = total / plays
        deviation = math.sqrt(max(squares / plays - mean**2, 1e-4))
    if bounded:
        share = (mean - low) / (high - low)
        mean = math.log(share / (1.0 - share))
    values = {"start_plays": plays, "start_mean": mean}
    if not prior.family.binary:
        values["start_deviation"] = deviation
    return values


@about("space")
def make_space(
    description: str,
    prior: Prior,
    *,
    start: str | Start | None = None,
    v1: str | None = None,
    v4: str | None = None,
    paper: bool = False,
    initial: Mapping[str, float] | None = None,
) -> Space:
    """Read a space: `power-1`, a policy of the catalogue with parameters, or any expression.

    start: `each-once`, `prior-counts`, such as `prior-counts:plays=2,sum=1`, or
        `prior-counts:learn` to learn the pseudo-observations too; by default those of the prior if
        it has any, else each-once
    v1: what Power-P reads first: `h`, the plays left (default), or `t`, the plays made
    v4: what Power-P reads last: `s`, the deviation (default), or `w`, the share of plays that wait
    paper: as the paper has it: each-once, v1 = t, all features
    initial: values of parameters to begin with
    """
    if not isinstance(description, str):
        raise InputError(f"a space is a text such as power-1, not {description!r}")
    given = description.strip()
    degree = power_degree(given)
    if degree is not None:
        space = _power(degree, v1 or ("t" if paper else "h"), v4 or "s", every=paper, name=given)
    elif v1 is not None or v4 is not None:
        raise InputError(
            f"v1 and v4 are for the spaces power-1, power-2, ...; {given} has none",
            about="v4" if v1 is None else "v1",
        )
    elif given.partition(":")[0].strip() in CATALOGUE:
        space = _catalogued(given)
    else:
        space = _expression(given)
    if space.entry is not None and not space.entry.takes_start:
        if start is not None:
            raise InputError(
                f"the policy {space.entry.name} has its own start; leave --start out", about="start"
            )
    elif start == LEARNED_START:
        space = space._learning_start(_learned_start(prior), prior.family.support)
    else:
        if start is None and not paper:
            start = default_start(prior)
        with about("start"):
            space = replace(space, start=Start.read(start).resolve(prior))
    space = replace(space, initial=_read_initial(initial or {}, space, f"the space {given}"))
    # Numbers that no policy can have are refused now; those met while learning only rank last.
    _ = space.center
    return space


@about("initial")
def _read_initial(initial: Mapping[str, float], space: Space, what: str) -> tuple[float, ...]:
    """The values that a search begins with: those that are given, else those of the space."""
    values = dict(zip(space.free, space.initial, strict=True))
    for name, value in initial.items():
        if name in VARIABLES:
            raise InputError(f"{name} is a variable ({VARIABLES[name]}), not a parameter to learn")
        check_keys([name], space.free, what)
        values[name] = read_number(value, f"{name} to begin with")
        if abs(values[name]) > _LARGEST:
            raise InputError(f"{name} to begin with must be at most {_LARGEST:g}, not {value}")
    return tuple(values.values())
