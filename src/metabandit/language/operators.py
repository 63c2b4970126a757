"""The one table of operators and the variables that an index can read."""

from __future__ import annotations

from dataclasses import dataclass

from ..kernels import opcodes


@dataclass(frozen=True)
class Operator:
    """An operator of the language: how it is written, printed and run.

    `symbol` is set for operators that are written between or before their operands; the others
    are called by name. A higher `precedence` binds closer. `latex` takes the printed operands.
    """

    name: str
    arity: int | None  # None: see polynomial_degree
    opcode: int
    meaning: str
    latex: str
    symbol: str = ""
    precedence: int = 9

    @property
    def commutative(self) -> bool:
        """Whether the operands can change places."""
        return self.name in ("add", "multiply", "min", "max")


def polynomial_degree(operands: int) -> int | None:
    """The degree of a polynomial with so many operands: four values, (degree + 1)^4 weights."""
    for degree in range(1, HIGHEST_DEGREE + 1):
        if operands == 4 + (degree + 1) ** 4:
            return degree
    return None


ATOM = 9
HIGHEST_DEGREE = 4
_TABLE = (
    Operator("add", 2, opcodes.ADD, "sum", "{0} + {1}", "+", 1),
    Operator("subtract", 2, opcodes.SUBTRACT, "difference", "{0} - {1}", "-", 1),
    Operator("multiply", 2, opcodes.MULTIPLY, "product", r"{0} \, {1}", "*", 2),
    Operator("divide", 2, opcodes.DIVIDE, "quotient", r"\frac{{{0}}}{{{1}}}", "/", 2),
    Operator("invert", 1, opcodes.INVERT, "one divided by x", r"\frac{{1}}{{{0}}}", "1/", 2),
    Operator("negate", 1, opcodes.NEGATE, "opposite", "-{0}", "-", 3),
    Operator("power", 2, opcodes.POWER, "x to the power y, for x >= 0", "{{{0}}}^{{{1}}}", "^", 4),
    Operator("min", 2, opcodes.MINIMUM, "the smaller", r"\min({0}, {1})"),
    Operator("max", 2, opcodes.MAXIMUM, "the larger", r"\max({0}, {1})"),
    Operator("sqrt", 1, opcodes.SQRT, "square root", r"\sqrt{{{0}}}"),
    Operator("ln", 1, opcodes.LN, "natural logarithm", r"\ln({0})"),
    Operator("exp", 1, opcodes.EXP, "exponential", r"\exp({0})"),
    Operator("abs", 1, opcodes.ABS, "absolute value", r"\left|{0}\right|"),
    Operator(
        "kl_upper",
        2,
        opcodes.KL_UPPER,
        "the largest q with kl(x, q) <= y, for Bernoulli distributions",
        r"\max\{{q : \mathrm{{kl}}({0}, q) \le {1}\}}",
    ),
    Operator(
        "beta_quantile",
        3,
        opcodes.BETA_QUANTILE,
        "the x-quantile of the distribution Beta(y, z)",
        r"Q_{{\mathrm{{Beta}}({1}, {2})}}({0})",
    ),
    Operator(
        "polynomial",
        None,
        opcodes.POLYNOMIAL,
        "the sum of weights times v^i x^j y^k z^l, all powers up to a degree; the weights follow",
        r"\mathrm{{polynomial}}({0})",
    ),
)

OPERATORS: dict[str, Operator] = {operator.name: operator for operator in _TABLE}
FUNCTIONS = {name: operator for name, operator in OPERATORS.items() if not operator.symbol}

VARIABLES: dict[str, str] = {
    "r": "mean reward of the arm",
    "s": "standard deviation of the arm's rewards",
    "n": "plays of the arm",
    "t": "plays made so far",
    "h": "plays left, the next one included",
    "K": "number of arms",
}
VARIABLE_LATEX = {
    "r": r"\bar{r}_k",
    "s": r"\bar{\sigma}_k",
    "n": "n_k",
    "t": "t",
    "h": "h",
    "K": "K",
}
