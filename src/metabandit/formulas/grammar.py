"""The grammar of formulas (the paper's Section 5.1), and how many formulas it makes.

    F ::= B(F, F) | U(F) | V | C

with binary operators B, unary operators U, variables V and constants C. The length of a formula is the
number of its symbols, so the number N(l) of formulas of length l follows from

    N(1) = |V| + |C|
    N(l) = |U| N(l - 1) + |B| sum over i = 1, ..., l - 2 of  N(i) N(l - 1 - i)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import InputError, about, nearest, shown
from ..language import ARM_VARIABLES, OPERATORS, VARIABLES, Constant, Name, Tree
from ..settings import read_number, write_number

_OPERATORS = "add subtract multiply divide min max sqrt ln abs negate invert"
_CONSTANT = "a constant of the grammar"
# Symbols are kept as numbers of 16 bits.
_MOST_CONSTANTS = 10_000


@dataclass(frozen=True)
class Grammar:
    """What formulas are made of; by default as in the paper.

    Parameters
    ----------
    operators : tuple of str
        Names of operators with one or two operands.
    variables : tuple of str
        Variables, at least one of them of the arm: r, s or n.
    constants : tuple of float
        Numbers that are not negative.

    Examples
    --------
    >>> import metabandit as mb
    >>> mb.Grammar().counts(7)
    [9, 45, 711, 8415, 131013, 1947825, 31465755]
    """

    operators: tuple[str, ...] = tuple(_OPERATORS.split())
    variables: tuple[str, ...] = ("r", "s", "n", "t")
    constants: tuple[float, ...] = (1.0, 2.0, 3.0, 5.0, 7.0)

    def __post_init__(self) -> None:
        for given in (self.operators, self.variables, self.constants):
            if not isinstance(given, tuple):
                raise InputError(
                    f"operators, variables and constants of a grammar are tuples, not {given!r}; "
                    f"Grammar.read takes lists and texts"
                )
        usable = [name for name, operator in OPERATORS.items() if operator.arity in (1, 2)]
        with about("operators"):
            _check_names(self.operators, usable, "operator")
        with about("variables"):
            _check_names(self.variables, list(VARIABLES), "variable")
            self._check_arm()
        with about("constants"):
            self._check_constants()

    def _check_arm(self) -> None:
        if not set(self.variables) & ARM_VARIABLES:
            raise InputError(
                "a grammar needs a variable of the arm (r, s, n or w): without one all arms have the "
                "same index"
            )

    def _check_constants(self) -> None:
        for value in self.constants:
            if read_number(value, _CONSTANT) < 0.0:
                raise InputError(
                    f"{_CONSTANT} must be at least 0, not {value:g}; the operator negate makes "
                    f"negative numbers"
                )
        if len(self.constants) > _MOST_CONSTANTS:
            raise InputError(
                f"a grammar has at most {_MOST_CONSTANTS:,} constants, not {len(self.constants):,}; `learn` "
                f"finds numbers for formulas with names in them"
            )
        if len(set(self.constants)) < len(self.constants):
            raise InputError(f"{_CONSTANT} is given twice: {shown(self.constants)}")

    @property
    def atoms(self) -> list[Name | Constant]:
        """The formulas of length 1."""
        return [*map(Name, self.variables), *map(Constant, self.constants)]

    @property
    def symbols(self) -> list[Name | Constant | str]:
        """Atoms, then names of operators: their positions are the codes of a class file."""
        return [*self.atoms, *self.operators]

    @property
    def unary(self) -> list[str]:
        """The operators with one operand."""
        return [name for name in self.operators if OPERATORS[name].arity == 1]

    @property
    def binary(self) -> list[str]:
        """The operators with two operands."""
        return [name for name in self.operators if OPERATORS[name].arity == 2]

    def counts(self, longest: int) -> list[int]:
        """How many formulas there are of length 1, 2, ..., `longest`."""
        made = [0, len(self.atoms)]
        for length in range(2, longest + 1):
            both = sum(made[left] * made[length - 1 - left] for left in range(1, length - 1))
            made.append(len(self.unary) * made[length - 1] + len(self.binary) * both)
        return made[1:]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {key: list(value) for key, value in asdict(self).items()}

    @staticmethod
    def read(
        *,
        operators: str | Sequence[str] | None = None,
        variables: str | Sequence[str] | None = None,
        constants: str | Sequence[float] | None = None,
    ) -> Grammar:
        """A grammar from lists, or texts with commas between; the paper's where nothing is given."""
        given: dict[str, Any] = {}
        if operators is not None:
            given["operators"] = tuple(map(str, _split(operators)))
        if variables is not None:
            given["variables"] = tuple(map(str, _split(variables)))
        if constants is not None:
            with about("constants"):
                given["constants"] = tuple(
                    read_number(item, _CONSTANT) for item in _split(constants)
                )
        return Grammar(**given)

    def __str__(self) -> str:
        numbers = " ".join(map(write_number, self.constants))
        return f"{' '.join(self.variables)}; {numbers}; {' '.join(self.operators)}"


def arity(symbol: Tree | str) -> int:
    """How many operands a symbol of a grammar has."""
    return (OPERATORS[symbol].arity or 0) if isinstance(symbol, str) else 0


def _split(given: str | Sequence[Any]) -> list[Any]:
    if isinstance(given, str):
        return [item.strip() for item in given.split(",") if item.strip()]
    return list(given)


def _check_names(given: Sequence[str], known: Sequence[str], what: str) -> None:
    for name in given:
        if name not in known:
            raise InputError(f"unknown {what} {name!r} in the grammar; {nearest(name, known)}")
    if len(set(given)) < len(given):
        raise InputError(f"the grammar has a {what} twice: {', '.join(given)}")
