"""What a policy is to the evaluators: a plan of how to begin and how to decide."""

from __future__ import annotations

import copyreg
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, compiling
from ..language import (
    OPERATORS,
    VARIABLES,
    Tree,
    bind,
    latex,
    names,
    operators,
    parse,
    text,
    variables,
)
from ..play.rules import OwnRule, Rule, index_rule
from ..settings import read_number
from .start import Start

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..language.compile import Compiled
    from ..play import ArmName, Player, Setting
    from ..priors import Prior
    from ..priors.families import Array
    from .file import Origin

# progress(work done, work in all)
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ByCounts:
    """A choice that depends on the plays and successes of the arms only: what exact evaluation needs.

    One of `program` (an index), `table` (an index by plays made and pair, one row for each different
    arm, `which` says whose), `cuts` (see kernels.forward.Choice) and `posterior` (Thompson sampling
    from Beta(a + successes, b + failures)). After m plays any arm is played with probability rate[m],
    and an arm with fewer than needed[m] plays comes first.
    """

    program: Compiled | None = None
    rate: Array | None = None
    needed: Array | None = None
    table: Array | None = None
    which: npt.NDArray[np.int64] | None = None
    cuts: npt.NDArray[np.uint16] | None = None
    posterior: tuple[float, float] | None = None


def _no_parameters() -> Array:
    import numpy as np

    return np.zeros(1)


@dataclass(frozen=True)
class Plan:
    """A policy for one prior and horizon, in terms that a kernel understands.

    Either `program` is the index that the machine runs, or `decide` gives the compiled function
    that names the arm, with its `parameters` and so many rows of `memory`. `by_counts` is the same
    choice for exact evaluation, or says why there is none.
    """

    each_once: bool
    counts: Array
    program: Compiled | None = None
    decide: Callable[[], Any] | None = None
    parameters: Array = field(default_factory=_no_parameters)
    memory: int = 0
    uses_s: bool = False
    by_counts: ByCounts | str = "it is known as a rule to simulate only"

    @property
    def size(self) -> int:
        """Bytes of its tables."""
        tables: list[npt.NDArray[Any]] = [self.parameters]
        if isinstance(self.by_counts, ByCounts):
            known = (self.by_counts.table, self.by_counts.cuts)
            tables += [table for table in known if table is not None]
        return sum(table.nbytes for table in tables)


class Policy(ABC):
    """A strategy for choosing arms; `name` is what tables call it.

    learned: how it was learned, if it comes from a file
    catalogued: its name in the catalogue and its parameters, if it is no index
    """

    name: str
    learned: Origin | None = None
    catalogued: tuple[str, Mapping[str, float]] | None = None

    @abstractmethod
    def plan(self, prior: Prior, horizon: int) -> Plan:
        """How the kernels play this policy."""

    def check(self, prior: Prior, horizon: int) -> None:
        """Refuse a prior or horizon that this policy cannot play; takes no time."""
        self.plan(prior, horizon)

    def prepare(self, prior: Prior, horizon: int, progress: Progress | None) -> None:
        """Compute beforehand what `plan` needs, for policies that take their time."""
        return

    # Whether it is for rewards of 0 and 1 only, and whether it needs the prior to be played live.
    binary = False
    reads_prior = False

    def content(self) -> Any:
        """The policy as a file has it (see policies/file.py), or None if no file can hold it."""
        from .file import Catalogued

        if self.catalogued is None:
            return None
        name, parameters = self.catalogued
        return Catalogued(name=name, parameters=dict(parameters))

    def rule(self, setting: Setting) -> Rule:
        """How the policy chooses in live play."""
        raise InputError(
            f"{self.name} can be evaluated but not played live: {type(self).__name__} has no rule()"
        )

    def player(
        self,
        arms: int | Iterable[ArmName],
        *,
        seed: int = 0,
        horizon: int | None = None,
        prior: str | Prior | None = None,
        rewards: object = None,
        journal: str | Path | None = None,
    ) -> Player:
        """Put the policy to use on these arms.

        arms: their names, or how many there are, which are then called 0, 1, ...
        seed: for ties and for policies that play at random; one seed, one sequence of choices
        horizon: plays in all, for policies that read it; a learned policy has its own. Beyond it,
            every play is taken for the last
        prior: what is known of the arms, for starts and policies that need it; a learned policy knows.
            Without it, gittins and optimal take all means for equally likely
        rewards: `"binary"` for 0 and 1 or a range such as (0, 1); others are refused. By default as the
            policy was learned, or as the prior says, else (0, 1)
        journal: a .jsonl file to which each reward is written before it counts. If it is there, the
            player goes on where it ended

        >>> import metabandit as mb
        >>> player = mb.policy("ucb1:C=0.17").player(arms=["red", "green"], seed=1)
        >>> player.select()
        'red'
        >>> player.update("red", 1)
        """
        from ..play.players import make_player

        return make_player(
            self,
            arms,
            seed=seed,
            horizon=horizon,
            prior=prior,
            rewards=rewards,
            journal=journal,
        )

    def _check_horizon(self, prior: Prior, horizon: int) -> None:
        if horizon < prior.arms:
            raise InputError(
                f"{self.name} plays each of the {prior.arms} arms once before it decides, so the "
                f"horizon must be at least {prior.arms}, not {horizon}; raise --horizon, or use "
                f"--start prior-counts where the policy allows it"
            )

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class IndexPolicy(Policy):
    """Play the arm whose index is largest, ties at random.

    `expression` is text or a tree; names in it that are no variables are parameters, which get
    their values from `parameters`.
    """

    def __init__(
        self,
        expression: str | Tree,
        *,
        parameters: Mapping[str, float] | None = None,
        start: str | Start | None = None,
        name: str | None = None,
    ) -> None:
        self.parameters = {
            key: read_number(number, f"the parameter {key}")
            for key, number in (parameters or {}).items()
        }
        if isinstance(expression, str):
            expression = parse(expression, parameters=tuple(self.parameters))
        missing = [item for item in names(expression) if item not in self.parameters]
        if missing:
            raise InputError(f"{text(expression)}: the parameter {missing[0]!r} has no value")
        for item in self.parameters:
            if item in VARIABLES:
                raise InputError(f"{item!r} is a variable ({VARIABLES[item]}), not a parameter")
        self.tree = expression
        self.start = Start.read(start)
        self.start_given = start is not None
        self.name = name or text(expression)

    def with_parameters(self, values: Mapping[str, float], start: Start) -> IndexPolicy:
        """The same index with other values for its parameters, and its own start."""
        other = copy(self)
        other.parameters = {
            key: read_number(values[key], f"the parameter {key}") for key in self.parameters
        }
        other.start = start
        other.start_given = True
        return other

    @property
    def bound(self) -> Tree:
        """The index with the values of the parameters in it."""
        return bind(self.tree, self.parameters)

    @property
    def formula(self) -> str:
        """The index as text."""
        return text(self.bound)

    @property
    def latex(self) -> str:
        """The index as LaTeX."""
        return latex(self.bound)

    def content(self) -> Any:
        from .file import Expression, StartSpec

        return Expression(
            expression=text(self.tree),
            parameters={name: self.parameters[name] for name in names(self.tree)},
            start=StartSpec.of(self.start),
        )

    def _check_rewards(self, low: float, high: float, family: str) -> None:
        if low >= 0.0 and high <= 1.0:
            return
        for operator in sorted(operators(self.tree), reverse=True):
            if OPERATORS[operator].in_unit_interval:
                raise InputError(
                    f"{self.name} uses {operator}, which is for rewards in [0, 1]; those of "
                    f"{family} lie between {low:g} and {high:g}"
                )

    def rule(self, setting: Setting) -> Rule:
        self._check_rewards(setting.rewards.low, setting.rewards.high, "this player")
        if "h" in variables(self.tree):
            setting.need_horizon(self.name)
        return index_rule(self.name, self.bound, each_once=self.start.each_once)

    def plan(self, prior: Prior, horizon: int) -> Plan:
        if self.start.each_once:
            self._check_horizon(prior, horizon)
        self._check_rewards(*prior.family.support, prior.family.name)
        from ..language.compile import compile_expression

        program = compile_expression(self.tree).bind(self.parameters)
        counts = self.start.counts(prior)
        return Plan(
            self.start.each_once,
            counts,
            program,
            uses_s=program.uses_s,
            by_counts=ByCounts(program),
        )


@dataclass(frozen=True)
class Kernel:
    """A function of kernels/choices.py by name, what it needs, and the same by counts."""

    name: str
    parameters: tuple[float, ...] = (0.0,)
    each_once: bool = True
    memory: int = 0
    uses_s: bool = False
    by_counts: ByCounts | str = "it is known as a rule to simulate only"


def decide_by(name: str) -> Callable[[], Any]:
    """What a plan's `decide` is: gives a function of kernels/choices.py when it is asked for."""
    return partial(_choice, name)


def _choice(name: str) -> Any:
    from ..kernels import decide

    return getattr(decide, name)()


class KernelPolicy(Policy):
    """A policy with a kernel of its own.

    `settle` picks it for a prior and a horizon, `rule` is the same choice in live play.
    """

    def __init__(
        self,
        name: str,
        settle: Callable[[Prior, int], Kernel],
        rule: Callable[[Setting], Rule],
    ) -> None:
        self.name = name
        self._settle = settle
        self._rule = rule

    def __reduce__(self) -> tuple[Any, ...]:
        # Functions that were made for it cannot be pickled: a copy is made from the catalogue.
        content = self.content()
        if content is None:
            return copyreg.__newobj__, (type(self),), self.__dict__  # type: ignore[attr-defined]
        return type(content).policy, (content, self.name), {"learned": self.learned}

    def rule(self, setting: Setting) -> Rule:
        return self._rule(setting)

    def plan(self, prior: Prior, horizon: int) -> Plan:
        import numpy as np

        kernel = self._settle(prior, horizon)
        if kernel.each_once:
            self._check_horizon(prior, horizon)
        return Plan(
            kernel.each_once,
            np.zeros((3, prior.arms)),
            decide=decide_by(kernel.name),
            parameters=np.array(kernel.parameters, dtype=np.float64),
            memory=kernel.memory,
            uses_s=kernel.uses_s,
            by_counts=kernel.by_counts,
        )


class ChoicePolicy(Policy):
    """A person's own rule: choose(n, r, s, t, h, u) returns the number of the arm to play.

    n, r and s are arrays with one entry an arm, t and h are numbers, and u is a uniform random
    number for rules that need one. The function is compiled with numba, once a process. Each arm
    is played once before the first call.
    """

    def __init__(self, name: str, choose: Callable[..., int]) -> None:
        self.name = name
        self.choose = choose
        self._compiled: Any = None

    def rule(self, setting: Setting) -> Rule:
        setting.need_horizon(self.name)
        return OwnRule(self.name, self.choose)

    def plan(self, prior: Prior, horizon: int) -> Plan:
        import numpy as np

        self._check_horizon(prior, horizon)
        return Plan(True, np.zeros((3, prior.arms)), decide=self._decide, uses_s=True)

    def _decide(self) -> Any:
        from ..kernels.decide import compile_choice

        if self._compiled is None:
            with compiling(f"the rule of the policy {self.name}"):
                self._compiled = compile_choice(self.choose)
        return self._compiled

    def __getstate__(self) -> dict[str, Any]:
        # What was compiled stays in its process.
        return self.__dict__ | {"_compiled": None}
