"""The one table of operators, with a form for every target, and the variables an index can read.

The parser, the printer, LaTeX, the machine, NumPy, live play and every export language read this
table. A person's own operator (`register_operator`) is an entry like the others.
"""

from __future__ import annotations

import inspect
import math
import operator as plain
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from types import FunctionType
from typing import Any, TypeVar

from .. import numerics
from ..errors import InputError, nearest
from ..kernels import opcodes
from . import ranges
from .ranges import Range

T = TypeVar("T")

# The languages that a policy can be exported to, each with a form of every operator.
LANGUAGES = ("python", "javascript", "c", "sql")
# How closely names, numbers and calls bind.
ATOM = 9
HIGHEST_DEGREE = 4
_MOST_OPERANDS = 3


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator: how it is written, printed, run, drawn and exported.

    latex: takes the printed operands
    function: what the machine computes, in plain Python; it never raises
    symbol: set for operators that are written between or before their operands; the others are called
        by name
    precedence: a higher one binds closer
    forms: its text in a language, where that is not a call of `function`; "safe python" is what does not
        raise where "python" would
    refused: in words, why a language has no form of it
    rewritten: in words, what it is before any form is asked for
    array: the NumPy function; empty if `function` takes arrays, None if one number at a time
    bounds, raises: the range of its value, and whether its form in Python may raise, from those of its
        operands
    in_unit_interval: whether it is for rewards in [0, 1] only
    declared: what a person gave `register_operator`
    """

    name: str
    arity: int | None  # None: see polynomial_degree
    meaning: str
    latex: str
    function: Callable[..., Any]
    symbol: str = ""
    precedence: int = ATOM
    forms: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    rewritten: str = ""
    array: str | None = None
    bounds: Callable[..., Range] = ranges.anything
    raises: Callable[..., bool] = ranges.never
    commutative: bool = False
    in_unit_interval: bool = False
    declared: Mapping[str, Any] = field(default_factory=dict)

    @property
    def own(self) -> Callable[..., float] | None:
        """The function that a person registered, for numba to compile."""
        return self.declared.get("function")

    @property
    def opcode(self) -> int:
        """The number of the machine's operation; a person's own operator has none to itself."""
        if self.own is not None:
            raise InputError(
                f"{self.name} is an operator of your own, which formulas that are enumerated or compared "
                f"cannot have; leave it out of the grammar, or evaluate the formula as a policy"
            )
        return int(getattr(opcodes, self.name.upper()))

    def form(self, language: str, *, safe: bool = False) -> str | None:
        """The template of its text in a language; None if there is none, and `refused` says why."""
        form = self.forms.get(language)
        if safe:
            form = self.forms.get(f"safe {language}", form if self.own is None else None)
        if form is not None or self.arity is None or language == "sql":
            return form
        return f"{self.helper}({', '.join(f'{{{place}}}' for place in range(self.arity))})"

    @property
    def helper(self) -> str:
        """The name under which programs know `function`."""
        return self.function.__name__ if self.own is None else f"own_{self.name}"


def polynomial_degree(operands: int) -> int | None:
    """The degree of a polynomial with this many operands: four values, (degree + 1)^4 weights."""
    for degree in range(1, HIGHEST_DEGREE + 1):
        if operands == 4 + (degree + 1) ** 4:
            return degree
    return None


def weighted_powers(operands: Sequence[T]) -> Iterator[tuple[T, tuple[int, ...]]]:
    """Each weight of a polynomial with these operands, and the powers of its four values."""
    degree = polynomial_degree(len(operands))
    assert degree is not None, len(operands)
    return zip(operands[4:], product(range(degree + 1), repeat=4), strict=True)


def _polynomial(*operands: Any) -> Any:
    total = 0.0
    for weight, powers in weighted_powers(operands):
        term = weight
        for value, power in zip(operands, powers, strict=False):
            if power:
                term = term * value**power
        total = total + term
    return total


def _same(template: str, *, safe: str | None = None, **others: str) -> dict[str, str]:
    """One text in all languages but some; `safe` does not raise in Python."""
    forms = {**dict.fromkeys(LANGUAGES, template), **others}
    return forms if safe is None else {**forms, "safe python": safe}


# Halving an interval of length 1 so often leaves less than float64 tells apart.
_HALVINGS = 52
_SQL_KL_UPPER = f"""(
  WITH RECURSIVE
    given(mean, bound) AS (SELECT {{0}}, {{1}}),
    halving(i, mean, bound, low, width) AS (
      SELECT 0, mean, bound, mean, (1 - mean) / 2 FROM given WHERE mean > 0 AND mean < 1
      UNION ALL
      SELECT
        i + 1, mean, bound,
        low + CASE
          WHEN low + width >= 1 THEN 0
          WHEN mean * ln(mean / (low + width))
            + (1 - mean) * ln((1 - mean) / (1 - low - width)) <= bound
          THEN width ELSE 0
        END,
        width / 2
      FROM halving WHERE i < {_HALVINGS}
    )
  SELECT CASE
      WHEN bound IS NULL OR mean < -1e-12 OR mean > 1 + 1e-12 THEN NULL
      WHEN bound <= 0 THEN mean
      WHEN mean >= 1 THEN 1.0
      WHEN mean <= 0 THEN CASE WHEN bound < 700 THEN 1 - exp(-bound) ELSE 1.0 END
      ELSE (SELECT low FROM halving WHERE i = {_HALVINGS})
    END
  FROM given
)"""

# Some databases raise an error where a result is too large or too small for a number.
_SQL_EXP = (
    "CASE WHEN {0} > 709 THEN infinity WHEN {0} > -700 THEN exp({0}) WHEN {0} <= -700 THEN 0.0 END"
)
_SQL_POWER = (
    "CASE WHEN {0} = 0 THEN CASE WHEN {1} > 0 THEN 0.0 WHEN {1} = 0 THEN 1.0 WHEN {1} < 0 THEN infinity END "
    "WHEN {0} > 0 THEN CASE WHEN {1} * ln({0}) > 709 THEN infinity "
    "WHEN {1} * ln({0}) > -700 THEN pow({0}, {1}) WHEN {1} * ln({0}) <= -700 THEN 0.0 END "
    "WHEN {1} = 2 THEN {0} * {0} END"
)

_TABLE = (
    Operator(
        "add", 2, "sum", "{0} + {1}", plain.add, "+", 1,
        _same("{0} + {1}"), array="", bounds=ranges.total, commutative=True,
    ),
    Operator(
        "subtract", 2, "difference", "{0} - {1}", plain.sub, "-", 1,
        _same("{0} - {1}"), array="", bounds=ranges.difference,
    ),
    Operator(
        "multiply", 2, "product", r"{0} \, {1}", plain.mul, "*", 2,
        _same("{0} * {1}"), array="", bounds=ranges.product, commutative=True,
    ),
    Operator(
        "divide", 2, "quotient", r"\frac{{{0}}}{{{1}}}", numerics.divide, "/", 2,
        _same("{0} / {1}", safe="divide({0}, {1})")
        | {"safe sql": "CASE WHEN {1} <> 0 THEN {0} / {1} WHEN {0} > 0 THEN infinity WHEN {0} < 0 THEN -infinity END"},
        array="divide", bounds=ranges.quotient, raises=ranges.by_zero,
    ),
    Operator(
        "invert", 1, "one divided by x", r"\frac{{1}}{{{0}}}", partial(numerics.divide, 1.0), "1/", 2,
        _same("{one} / {0}", safe="divide(1.0, {0})")
        | {"safe sql": "CASE WHEN {0} <> 0 THEN 1.0 / {0} WHEN {0} = 0 THEN infinity END"},
        array="reciprocal", bounds=ranges.inverse, raises=ranges.by_zero,
    ),
    Operator(
        "negate", 1, "opposite", "-{0}", plain.neg, "-", 3,
        _same("-{0}"), array="", bounds=ranges.opposite,
    ),
    Operator(
        "power", 2, "x to the power y, for x >= 0", "{{{0}}}^{{{1}}}", numerics.power, "^", 4,
        {"sql": _SQL_POWER},
        bounds=ranges.not_negative,
    ),
    # Python's own min and max forget a value that is no number.
    Operator(
        "min", 2, "the smaller", r"\min({0}, {1})", numerics.minimum,
        forms={"javascript": "Math.min({0}, {1})", "sql": "CASE WHEN {0} < {1} THEN {0} WHEN {0} >= {1} THEN {1} END"},
        array="minimum", bounds=ranges.smaller, commutative=True,
    ),
    Operator(
        "max", 2, "the larger", r"\max({0}, {1})", numerics.maximum,
        forms={"javascript": "Math.max({0}, {1})", "sql": "CASE WHEN {0} > {1} THEN {0} WHEN {0} <= {1} THEN {1} END"},
        array="maximum", bounds=ranges.larger, commutative=True,
    ),
    Operator(
        "sqrt", 1, "square root", r"\sqrt{{{0}}}", numerics.sqrt,
        forms=_same(
            "sqrt({0})", python="math.sqrt({0})", javascript="Math.sqrt({0})", safe="sqrt({0})"
        ) | {"safe sql": "CASE WHEN {0} >= 0 THEN sqrt({0}) END"},
        array="sqrt", bounds=ranges.increasing(math.sqrt, 0.0), raises=ranges.below_zero,
    ),
    Operator(
        "ln", 1, "natural logarithm", r"\ln({0})", numerics.ln,
        forms=_same(
            "log({0})", python="math.log({0})", javascript="Math.log({0})", sql="ln({0})", safe="ln({0})"
        ) | {"safe sql": "CASE WHEN {0} > 0 THEN ln({0}) WHEN {0} = 0 THEN -infinity END"},
        array="log", bounds=ranges.increasing(numerics.ln, 0.0), raises=ranges.not_positive,
    ),
    Operator(
        "exp", 1, "exponential", r"\exp({0})", numerics.exp,
        forms=_same(
            "exp({0})", python="math.exp({0})", javascript="Math.exp({0})", sql=_SQL_EXP, safe="exp({0})"
        ),
        array="exp", bounds=ranges.increasing(numerics.exp, -math.inf), raises=ranges.too_large,
    ),
    Operator(
        "abs", 1, "absolute value", r"\left|{0}\right|", abs,
        forms=_same("abs({0})", javascript="Math.abs({0})", c="fabs({0})"),
        array="", bounds=ranges.size,
    ),
    Operator(
        "difference", 2, "x - y, or 0 where that is lost in rounding", r"\mathrm{{difference}}({0}, {1})",
        numerics.difference,
        forms={"sql": f"CASE WHEN abs({{0}} - {{1}}) < {numerics.LOST!r} * (abs({{0}}) + abs({{1}})) THEN 0.0 ELSE {{0}} - {{1}} END"},
        bounds=ranges.difference,
    ),
    Operator(
        "kl_upper", 2, "the largest q with kl(x, q) <= y, for Bernoulli distributions",
        r"\max\{{q : \mathrm{{kl}}({0}, q) \le {1}\}}", numerics.kl_upper,
        forms={"sql": _SQL_KL_UPPER}, in_unit_interval=True,
    ),
    Operator(
        "beta_quantile", 3, "the x-quantile of the distribution Beta(y, z)",
        r"Q_{{\mathrm{{Beta}}({1}, {2})}}({0})", numerics.beta_quantile,
        refused={"sql": "SQL has no function for it, but kl-ucb, for one, has a form there"},
        bounds=ranges.not_negative, in_unit_interval=True,
    ),
    Operator(
        "normal_quantile", 1, "the x-quantile of the standard normal distribution",
        r"\Phi^{{-1}}({0})", numerics.normal_quantile,
        refused={"sql": "SQL has no function for it"},
    ),
    Operator(
        "beta_optimist", 3,
        "the v with v = (1 - x) m + x E[max(v, u)], for u from Beta(y, z) with the mean m",
        r"V_{{\mathrm{{Beta}}({1}, {2})}}({0})", numerics.beta_optimist,
        refused={"sql": "SQL has no function for it"},
        bounds=ranges.not_negative, in_unit_interval=True,
    ),
    Operator(
        "normal_optimist", 1, "the v with v = x E[max(v, u)], for u from the standard normal distribution",
        r"V_{{N(0, 1)}}({0})", numerics.normal_optimist,
        refused={"sql": "SQL has no function for it"},
    ),
    Operator(
        "polynomial", None,
        "the sum of weights times v^i x^j y^k z^l, all powers up to a degree; the weights follow",
        r"\mathrm{{polynomial}}({0})", _polynomial,
        rewritten="sums and products, by polynomials.plain", array="",
    ),
)  # fmt: skip

OPERATORS: dict[str, Operator] = {operator.name: operator for operator in _TABLE}

VARIABLES: dict[str, str] = {
    "r": "mean reward of the arm",
    "s": "standard deviation of the arm's rewards",
    "n": "plays of the arm",
    "w": "plays of the arm whose reward is still to come",
    "t": "plays made so far",
    "h": "plays left, the next one included",
    "K": "number of arms",
}
# Those that differ from arm to arm.
ARM_VARIABLES = frozenset(("r", "s", "n", "w"))
VARIABLE_LATEX = {
    "r": r"\bar{r}_k",
    "s": r"\bar{\sigma}_k",
    "n": "n_k",
    "w": "w_k",
    "t": "t",
    "h": "h",
    "K": "K",
}


# A person's own operators ----------------------------------------------------------------------


def _without_errors(function: Callable[..., float]) -> Callable[..., float]:
    """The function with nan where Python raises: compiled code does not."""

    def value(*operands: float) -> float:
        try:
            return float(function(*map(float, operands)))
        except (ArithmeticError, ValueError, TypeError):
            return math.nan

    return value


def _count_operands(name: str, function: Callable[..., float], arity: int | None) -> int:
    if not isinstance(function, FunctionType):
        raise InputError(
            f"the operator {name} needs a Python function of numbers, not {function!r}; write one with "
            f"def, for numba to compile"
        )
    count = len(inspect.signature(function).parameters) if arity is None else arity
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MOST_OPERANDS:
        raise InputError(
            f"an operator has 1 to {_MOST_OPERANDS} operands; {name} has {count}. Nest operators for more"
        )
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError as error:
        raise InputError(
            f"the function of the operator {name} cannot be called with {count} numbers: {error}"
        ) from None
    return count


def _check_template(name: str, target: str, template: object, arity: int) -> None:
    marks = [f"<{place}>" for place in range(arity)]
    try:
        written = str(template).format(*marks)
    except (LookupError, ValueError) as error:
        raise InputError(
            f"the form of {name} for {target} cannot be read: {template!r} ({error!r}); its operands are "
            f"{{0}} to {{{arity - 1}}}, and other braces are doubled"
        ) from None
    missing = [mark for mark in marks if mark not in written]
    if missing or not isinstance(template, str):
        raise InputError(
            f"the form of {name} for {target} must be a text with {{0}} to {{{arity - 1}}} for its "
            f"operands, not {template!r}"
        )


def _is_same(one: Callable[..., float], two: Callable[..., float]) -> bool:
    """Whether two functions compute the same: one may be a copy from another process."""

    def content(function: Any) -> tuple[Any, ...]:
        cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
        outside = [function.__globals__.get(name) for name in function.__code__.co_names]
        return function.__code__, function.__defaults__, cells, outside

    return one is two or content(one) == content(two)


def register_operator(
    name: str,
    function: Callable[..., float],
    *,
    arity: int | None = None,
    meaning: str = "",
    latex: str | None = None,
    exports: Mapping[str, str] | None = None,
) -> None:
    """Add an operator to the language of index functions.

    From then on it can be used in every expression: read, printed, evaluated exactly and by
    simulation, played live and exported. Nothing that is already compiled is compiled again.

    Parameters
    ----------
    name
        What expressions call it, as in ``name(r, n)``.
    function
        Its value, from one to three numbers: plain Python that numba can compile. Where it has no
        value it should return ``math.nan``.
    arity
        How many operands it has; by default as many as `function` has parameters.
    meaning
        One line for the list of operators.
    latex
        Its LaTeX, with ``{0}`` to ``{2}`` for the operands and all other braces doubled.
    exports
        Its text in export languages (python, javascript, c, sql), such as
        ``{"sql": "atan({0})"}``. Without one, the text of `function` is exported to Python, and its
        translation to JavaScript and C; what cannot be exported is refused in words.

    Raises
    ------
    InputError
        If the name is taken by another operator or is no name, or if a form cannot be read. A function
        that numba cannot compile is refused when it is first evaluated.

    Examples
    --------
    >>> import math
    >>> import metabandit as mb
    >>> def half_life(n, scale):
    ...     return math.exp(-n / scale)
    >>> mb.register_operator("half_life", half_life, meaning="exp(-x/y)")
    >>> mb.policy("r + half_life(n, 5)").formula
    'r + half_life(n, 5)'
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise InputError(
            f"the name of an operator is letters, digits and _, beginning with a letter, not {name!r}"
        )
    if name in VARIABLES:
        raise InputError(f"{name!r} is a variable ({VARIABLES[name]}); choose another name")
    count = _count_operands(name, function, arity)
    known = OPERATORS.get(name)
    if known is not None:
        if known.own is not None and known.arity == count and _is_same(known.own, function):
            return
        raise InputError(
            f"there is an operator {name} already: {known.meaning}; an operator keeps its meaning while "
            f"Python runs, so choose another name, or start Python again"
        )
    forms = dict(exports or {})
    for language, template in forms.items():
        if language not in LANGUAGES:
            raise InputError(f"no export to {language!r}; {nearest(str(language), LANGUAGES)}")
        _check_template(name, language, template, count)
    if latex is None:
        places = ", ".join(f"{{{place}}}" for place in range(count))
        latex = r"\mathrm{{" + name.replace("_", r"\_") + f"}}}}({places})"
    _check_template(name, "LaTeX", latex, count)
    refused = {"sql": 'give its text there with register_operator(..., exports={"sql": ...})'}
    OPERATORS[name] = Operator(
        name,
        count,
        meaning or "an operator of your own",
        latex,
        _without_errors(function),
        forms=forms,
        refused={} if "sql" in forms else refused,
        declared={
            "name": name, "function": function, "arity": count, "meaning": meaning, "latex": latex,
            "exports": forms,
        },
    )  # fmt: skip
