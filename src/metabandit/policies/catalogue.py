"""The one registry of policies, and how a policy is read from text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..decisions import Decision
from ..errors import InputError, about, nearest
from ..language import VARIABLES, names, parse
from ..progress import Progress
from ..settings import check_keys, read_number, read_settings, write_number
from .base import IndexPolicy, Policy, Setting
from .start import Start


@dataclass(frozen=True)
class Parameter:
    """A number that a policy takes: its default, and the open interval that it must lie in.

    A parameter whose default is None is left out unless it is given. `logarithmic` is for one whose order
    of magnitude is what matters: it is learned as log10. `matched` is for one that the prior says, if it
    can, unless it is given; the default is for other priors.
    """

    name: str
    default: float | None
    above: float | None = None
    below: float | None = None
    logarithmic: bool = False
    matched: bool = False

    @property
    def rule(self) -> str:
        """What the number must satisfy, in words."""
        if self.above is not None and self.below is not None:
            return f"greater than {self.above:g} and less than {self.below:g}"
        if self.above is not None:
            return f"greater than {self.above:g}"
        return "any number" if self.below is None else f"less than {self.below:g}"

    def check(self, value: str | float, policy: str) -> float:
        """The value as a number, or an error that names the rule."""
        number = read_number(value, f"{self.name} of {policy}")
        high = float("inf") if self.below is None else self.below
        low = float("-inf") if self.above is None else self.above
        if not low < number < high:
            raise InputError(f"{self.name} of {policy} must be {self.rule}, not {number:g}")
        return number


@dataclass(frozen=True)
class Entry:
    """A policy of the catalogue: one declaration, which every engine interprets.

    Parameters
    ----------
    name : str
        What it is called.
    formula : str
        The index as an expression, in which the parameters may stand; a description in words if
        there is `decide`.
    source : str
        Where it comes from.
    parameters : tuple of Parameter
        The numbers that it takes.
    rate, needed : str, optional
        Expressions of t, h, K and the parameters: the probability of a play at random, and the plays
        that every arm must have first (see `IndexPolicy`).
    start : Start or callable, optional
        How play begins, or a function of the setting that says so, for policies that have their own
        way; by default it is the user's to choose.
    decide : callable, optional
        decide(setting, values, progress) returns the Decision of a policy that is no index.
    check : callable, optional
        check(setting, name) refuses a setting that the policy cannot play; takes no time.
    index : callable, optional
        index(setting, values, name) returns the index for what is believed of the arms in a setting, for
        an index that reads the prior; `formula` is that where all means are equally likely.
    binary, reads_prior, tabled : bool
        Whether it is for rewards of 0 and 1 only, whether it reads the prior, also in live play, and
        whether it has a table to compute first.
    slowness : float
        About how many times longer a play takes than with a simple index, for budgets.
    """

    name: str
    formula: str
    source: str
    parameters: tuple[Parameter, ...] = ()
    rate: str | None = None
    needed: str | None = None
    start: Start | Callable[[Setting, Mapping[str, float]], Start] | None = None
    decide: Callable[[Setting, Mapping[str, float], Progress | None], Decision] | None = None
    check: Callable[[Setting, str], object] | None = None
    index: Callable[[Setting, Mapping[str, float], str], IndexPolicy] | None = None
    binary: bool = False
    reads_prior: bool = False
    tabled: bool = False
    slowness: float = 3.0

    def __post_init__(self) -> None:
        if self.decide is not None and not self.rate is self.needed is None:
            raise InputError(
                f"rate and needed are for an index; {self.name} has decide, which says it all"
            )
        if self.decide is None and callable(self.start):
            raise InputError(
                f"the start of {self.name} must be a Start: an index begins alike in every setting"
            )

    @property
    def takes_start(self) -> bool:
        """Whether the user may choose how play begins."""
        return self.is_index and self.start is None

    @property
    def is_index(self) -> bool:
        """Whether it is an index, with a rate and needed plays or without."""
        return self.decide is None

    @property
    def description(self) -> str:
        """How it chooses: the index, and what comes before it."""
        if self.rate == "1":
            return "any arm, with equal probability"
        parts = [] if self.needed is None else [f"an arm with fewer than {self.needed} plays"]
        parts += [] if self.rate is None else [f"any arm with probability {self.rate}"]
        return ", else ".join([*parts, self.formula])

    def make(
        self, values: Mapping[str, str | float], start: str | Start | None, name: str
    ) -> Policy:
        """The policy with these parameters; the others have their defaults."""
        check_keys(values, [item.name for item in self.parameters], f"the policy {self.name}")
        if start is not None and not self.takes_start:
            raise InputError(f"the policy {self.name} has its own start; leave {start} out")
        given = {
            item.name: item.check(values[item.name], self.name)
            for item in self.parameters
            if item.name in values
        }
        defaults = {item.name: item.default for item in self.parameters if item.default is not None}
        every = defaults | given
        matched = {item.name for item in self.parameters if item.matched}
        known = {key: value for key, value in every.items() if key in given or key not in matched}
        if self.decide is not None:
            return DecidedPolicy(self, known, name)
        assert not callable(self.start)
        used = every
        if self.index is not None:  # of what is believed, its formula reads a part
            used = {key: every[key] for key in names(parse(self.formula, parameters=None))}
        found = IndexPolicy(
            self.formula,
            parameters=used,
            start=self.start or start,
            name=name,
            rate=self.rate,
            needed=self.needed,
        )
        if self.index is not None:
            found.matched, found.reads_prior = (self, known), True
        return found


class DecidedPolicy(Policy):
    """A policy of the catalogue that is no index, with its parameters."""

    def __init__(self, entry: Entry, values: Mapping[str, float], name: str) -> None:
        self.entry = entry
        self.values = dict(values)
        self.name = name
        self.binary = entry.binary
        self.reads_prior = entry.reads_prior
        self.tabled = entry.tabled
        self.slowness = entry.slowness
        self._known: dict[tuple[Any, ...], Decision] = {}

    def start_for(self, setting: Setting) -> Start:
        start = self.entry.start
        return start(setting, self.values) if callable(start) else start or Start()

    def check_setting(self, setting: Setting) -> None:
        if self.entry.check is not None:
            self.entry.check(setting, self.name)

    def decision(self, setting: Setting, progress: Progress | None = None) -> Decision:
        assert self.entry.decide is not None
        key = (str(setting.prior), setting.horizon, setting.arms, setting.rewards)
        if key not in self._known:
            self._known[key] = self.entry.decide(setting, self.values, progress)
        return self._known[key]

    def settings(self) -> dict[str, Any]:
        return self.values

    def content(self) -> Any:
        from .file import Catalogued

        return Catalogued(name=self.entry.name, parameters=dict(self.values))

    def __getstate__(self) -> dict[str, Any]:
        # Tables are large, and can be computed again.
        return self.__dict__ | {"_known": {}}


CATALOGUE: dict[str, Entry] = {}
_NAME = re.compile(r"[A-Za-z][\w+.-]*")


def register(entry: Entry) -> Entry:
    """Add a policy to the catalogue, so that this process knows it by name everywhere."""
    if not _NAME.fullmatch(entry.name):
        raise InputError(
            f"{entry.name!r} cannot be the name of a policy: use a letter, then letters, digits and any of _ - + ."
        )
    for parameter in entry.parameters:
        if parameter.name == "start":
            raise InputError(f"a parameter of {entry.name} cannot be called start, which is taken")
        if parameter.default is not None:
            parameter.check(parameter.default, entry.name)
    if entry.name in CATALOGUE or entry.name in VARIABLES:
        raise InputError(f"the policy name {entry.name!r} is taken")
    if entry.is_index:
        entry.make({}, None, entry.name)
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
    with about("start"):
        start = None if start is None else Start.read(start)
    if isinstance(description, IndexPolicy) and start is not None and not description.start_given:
        return description.with_start(start)
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
        # A start for all policies is for those that have none of their own.
        return entry.make(settings, chosen or (start if entry.takes_start else None), given)
    match = re.match(r"[A-Za-z_]\w*", head)
    if _NAME.fullmatch(head) and match is not None and match.group() not in VARIABLES:
        raise InputError(f"unknown policy {head!r}; {nearest(head, CATALOGUE)}")
    return IndexPolicy(given, start=start, name=given)


def read_policies(
    given: str | Path | Policy | Iterable[str | Path | Policy], *, start: str | Start | None = None
) -> list[Policy]:
    """Read one policy or several, each with a name of its own."""
    several = isinstance(given, Iterable) and not isinstance(given, str)
    items: list[Any] = list(given) if several else [given]  # type: ignore[arg-type]
    return with_own_names([policy(item, start=start) for item in items])


def with_own_names(policies: Sequence[Policy]) -> list[Policy]:
    """Return policies whose names differ where their numbers or starts do.

    Policies of one formula have the same name, in which their parameters do not show; those that it takes
    to tell them apart follow it.

    >>> from metabandit import IndexPolicy
    >>> pair = [IndexPolicy("r + a/n", parameters={"a": a}) for a in (1, 2)]
    >>> [item.name for item in with_own_names(pair)]
    ['r + a/n (a=1)', 'r + a/n (a=2)']
    """
    named: list[Policy] = []
    for item in policies:
        namesakes = [other.settings() for other in policies if other.name == item.name]
        if told := _distinction(item.settings(), namesakes):
            item = copy(item)
            item.name = f"{item.name} ({', '.join(told)})"
        named.append(item)
    return named


def _distinction(mine: Mapping[str, Any], namesakes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first settings that differ, as many as tell all of the same name apart."""
    differ = [key for key in mine if any(each.get(key) != mine[key] for each in namesakes)]

    def told(count: int) -> int:
        return len({tuple(each.get(key) for key in differ[:count]) for each in namesakes})

    count = next(count for count in range(len(differ) + 1) if told(count) == told(len(differ)))
    return [_shown(key, mine[key], [each.get(key) for each in namesakes]) for key in differ[:count]]


def _shown(key: str, value: Any, values: Sequence[Any]) -> str:
    """A setting in six digits, or in as many as tell it from the others."""
    if not isinstance(value, float):
        return f"{key} {value}"
    others = [each for each in values if isinstance(each, float) and each != value]
    short = f"{value:.6g}"
    return f"{key}={write_number(value) if short in map('{:.6g}'.format, others) else short}"
