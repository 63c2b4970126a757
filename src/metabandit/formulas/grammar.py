"""The grammar of formulas: which operators, variables and constants, and how many formulas that makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, nearest
from ..language import OPERATORS, VARIABLES, Constant, Name, Tree
from ..settings import read_number, write_number

# The paper's grammar (Section 5.1).
_OPERATORS = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "min",
    "max",
    "sqrt",
    "ln",
    "abs",
    "negate",
    "invert",
)


@dataclass(frozen=True)
class Grammar:
    """What formulas are made of; by default as in the paper.

    >>> Grammar().counts(7)
    [9, 45, 711, 8415, 131013, 1947825, 31465755]
    """

    operators: tuple[str, ...] = _OPERATORS
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
        _check_names(self.operators, usable, "operator")
        _check_names(self.variables, list(VARIABLES), "variable")
        if not set(self.variables) & {"r", "s", "n"}:
            raise InputError(
                "a grammar needs a variable of the arm (r, s or n): without one all arms have the "
                "same index"
            )
        for value in self.constants:
            if read_number(value, "a constant of the grammar") < 0.0:
                raise InputError(
                    f"a constant of the grammar must not be negative, as {value:g} is; the operator "
                    f"negate makes it so"
                )
        if len(set(self.constants)) < len(self.constants):
            raise InputError(f"a constant of the grammar is given twice: {self.constants}")

    @property
    def atoms(self) -> list[Tree]:
        """The formulas of length 1."""
        return [*map(Name, self.variables), *map(Constant, self.constants)]

    @property
    def unary(self) -> list[str]:
        return [name for name in self.operators if OPERATORS[name].arity == 1]

    @property
    def binary(self) -> list[str]:
        return [name for name in self.operators if OPERATORS[name].arity == 2]

    def counts(self, longest: int) -> list[int]:
        """How many formulas there are of length 1, 2, ..., `longest`."""
        made = [0, len(self.atoms)]
        for length in range(2, longest + 1):
            pairs = sum(made[left] * made[length - 1 - left] for left in range(1, length - 1))
            made.append(len(self.unary) * made[length - 1] + len(self.binary) * pairs)
        return made[1:]

    def to_dict(self) -> dict[str, Any]:
        return {
            "operators": list(self.operators),
            "variables": list(self.variables),
            "constants": list(self.constants),
        }

    @staticmethod
    def read(
        *,
        operators: str | Sequence[str] | None = None,
        variables: str | Sequence[str] | None = None,
        constants: str | Sequence[float] | None = None,
    ) -> Grammar:
        """A grammar from lists, or texts with commas between; the paper's where nothing is said."""
        paper = Grammar()
        numbers: list[float] = list(paper.constants)
        if constants is not None:
            given = _split(constants)
            numbers = [read_number(item, "a constant of the grammar") for item in given]
        return Grammar(
            paper.operators if operators is None else tuple(map(str, _split(operators))),
            paper.variables if variables is None else tuple(map(str, _split(variables))),
            tuple(numbers),
        )

    def __str__(self) -> str:
        numbers = " ".join(map(write_number, self.constants))
        return f"{' '.join(self.variables)}; {numbers}; {' '.join(self.operators)}"


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
