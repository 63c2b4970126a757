"""The one registry of policies, and how a policy is read from text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, nearest
from ..language import VARIABLES, parse
from ..settings import check_keys, read_number, read_settings
from .base import IndexPolicy, Policy
from .start import Start


@dataclass(frozen=True)
class Parameter:
    """A number that a policy takes: its default, and the open interval that it must lie in.

    `logarithmic` is for one whose order of magnitude is what matters: it is learned as log10.
    """

    name: str
    default: float
    above: float | None = None
    below: float | None = None
    logarithmic: bool = False

    @property
    def rule(self) -> str:
        """What the number must satisfy, in words."""
        if self.above is not None and self.below is not None:
            return f"greater than {self.above:g} and less than {self.below:g}"
        if self.above is not None:
            return f"greater than {self.above:g}"
        return "any number" if self.below is None else f"less than {self.below:g}"

    def check(self, value: float, policy: str) -> float:
        """The value, or an error that names the rule."""
        high = float("inf") if self.below is None else self.below
        low = float("-inf") if self.above is None else self.above
        if not low < value < high:
            raise InputError(f"{self.name} of {policy} must be {self.rule}, not {value:g}")
        return value


@dataclass(frozen=True)
class Entry:
    """A policy of the catalogue.

    `formula` is its index as an expression; a policy with a kernel of its own has `build`
    instead, and `formula` describes it in words.
    """

    name: str
    formula: str
    source: str
    parameters: tuple[Parameter, ...] = ()
    build: Callable[[str, Mapping[str, float]], Policy] | None = None

    def make(self, values: Mapping[str, float], start: str | Start | None, name: str) -> Policy:
        """The policy with these parameters; the others have their defaults."""
        check_keys(
            values, [parameter.name for parameter in self.parameters], f"the policy {self.name}"
        )
        numbers = {
            parameter.name: parameter.check(
                read_number(
                    values.get(parameter.name, parameter.default),
                    f"{parameter.name} of {self.name}",
                ),
                self.name,
            )
            for parameter in self.parameters
        }
        if self.build is not None:
            made = self.build(name, numbers)
            made.catalogued = self.name, numbers
            return made
        return IndexPolicy(self.formula, parameters=numbers, start=start, name=name)


CATALOGUE: dict[str, Entry] = {}
_NAME = re.compile(r"[A-Za-z][\w+.-]*")


def register(entry: Entry) -> Entry:
    """Add a policy to the catalogue: it is then known by name everywhere."""
    if not _NAME.fullmatch(entry.name):
        raise InputError(f"{entry.name!r} is no name for a policy: letters, digits, - and + only")
    for parameter in entry.parameters:
        if parameter.name == "start":
            raise InputError(f"a parameter of {entry.name} cannot be called start, which is taken")
        parameter.check(parameter.default, entry.name)
    if entry.name in CATALOGUE or entry.name in VARIABLES:
        raise InputError(f"the policy name {entry.name!r} is taken")
    if entry.build is None:
        parse(entry.formula, parameters=tuple(parameter.name for parameter in entry.parameters))
    CATALOGUE[entry.name] = entry
    return entry


def policy(description: str | Path | Policy, *, start: str | Start | None = None) -> Policy:
    """Read a policy: a name of the catalogue with parameters, or any expression.

    >>> import metabandit as mb
    >>> mb.policy("ucb1:C=0.17")
    <IndexPolicy ucb1:C=0.17>
    >>> mb.policy("r + 3/(n + 2)").formula
    'r + 3/(n + 2)'

    `start` is how index policies begin: `each-once` (default) or `prior-counts`. The text of a
    catalogue policy can set its own: `ucb1:C=0.17,start=prior-counts`.
    """
    if isinstance(description, IndexPolicy) and start is not None and not description.start_given:
        return IndexPolicy(
            description.tree,
            parameters=description.parameters,
            start=start,
            name=description.name,
        )
    if isinstance(description, Policy):
        return description
    if isinstance(description, Path):
        description = str(description)
    if not isinstance(description, str):
        raise InputError(f"a policy is a text or a Policy, not {description!r}")
    given = description.strip()
    if given.endswith((".json", ".npz")):
        from .file import load

        return load(given)
    head = given.partition(":")[0].strip()
    if head in CATALOGUE:
        name, settings = read_settings(given, "policy")
        chosen: str | Start | None = settings.pop("start", None)
        entry = CATALOGUE[name]
        if chosen is not None and entry.build is not None:
            raise InputError(f"the policy {name} is no index policy and has its own start")
        numbers = {key: read_number(value, f"{key} of {name}") for key, value in settings.items()}
        return entry.make(numbers, chosen or start, given)
    match = re.match(r"[A-Za-z_]\w*", head)
    if _NAME.fullmatch(head) and match is not None and match.group() not in VARIABLES:
        raise InputError(f"unknown policy {head!r}; {nearest(head, CATALOGUE)}")
    return IndexPolicy(given, start=start, name=given)
