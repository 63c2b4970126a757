"""Plain Python functions of numbers in JavaScript and C: what exported programs call.

They may have assignments of names, `if`, `while`, `for` over a range, `return`, arithmetic,
comparisons, and calls of `math`, min, max, abs and of functions of numerics.py. Anything else is
refused with its line.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

from .. import numerics
from ..errors import InputError
from ..language import OPERATORS
from ..language.source import real
from ..settings import write_number

_SAME = [
    "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "exp", "expm1", "floor", "log", "log1p",
    "log2", "log10", "pow", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip
_IN_C = [*_SAME, *["copysign", "erf", "erfc", "fabs", "isfinite", "isinf", "isnan", "lgamma"]]
# What constants and functions of Python are called.
_NAMES = {
    "c": {f"math.{name}": name for name in _IN_C}
    | {"math.inf": "INFINITY", "math.nan": "NAN", "math.pi": "3.141592653589793"}
    | {"math.e": "2.718281828459045"}
    | {"min": "fmin", "max": "fmax", "abs": "fabs"},
    "javascript": {f"math.{name}": f"Math.{name}" for name in _SAME}
    | {"math.inf": "Infinity", "math.nan": "NaN", "math.pi": "Math.PI", "math.e": "Math.E"}
    | {"math.isnan": "Number.isNaN", "math.isfinite": "Number.isFinite", "math.lgamma": "lgamma"}
    | {"min": "Math.min", "max": "Math.max", "abs": "Math.abs"},
}
# What JavaScript does not have.
_LGAMMA = """\
/* The logarithm of the gamma function of x > 0: Stirling's series from 10 on. */
function lgamma(x) {
  let product = 1;
  for (; x < 10; x++) product *= x;
  const v = 1 / (x * x);
  let rest = 1 / 1260 - v * (1 / 1680 - v * (1 / 1188 - v * (691 / 360360 - v / 156)));
  rest = (1 / 12 - v * (1 / 360 - v * rest)) / x;
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + rest - Math.log(product);
}"""
_COMMENT = re.compile(r'""".*?"""|/\*.*?\*/|//[^\n]*|#[^\n]*', re.S)
# How closely operators bind: the same in all three languages.
_CHOICE, _OR, _AND, _COMPARE, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)
_SIGNS: dict[type, tuple[str, int]] = {
    ast.Add: ("+", _SUM),
    ast.Sub: ("-", _SUM),
    ast.Mult: ("*", _PRODUCT),
    ast.Div: ("/", _PRODUCT),
    ast.USub: ("-", _SIGN),
    ast.Not: ("!", _SIGN),
    ast.Or: ("||", _OR),
    ast.And: ("&&", _AND),
}
_COMPARISONS: dict[type, str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


class _Translation:
    """One function in one language, as lines."""

    def __init__(self, definition: ast.FunctionDef, source: str, language: str, name: str) -> None:
        self.definition = definition
        self.source = source.splitlines()
        self.language = language
        self.name = name
        self.number = real if language == "c" else write_number
        self.kind = "double" if language == "c" else "let"
        self.lines: list[str] = []
        self.locals: dict[str, None] = {}

    def fail(self, node: ast.AST, what: str) -> NoReturn:
        line = getattr(node, "lineno", 1)
        raise InputError(
            f"{self.name} cannot be translated to {self.language}: {what}, in line {line} of its "
            f"function ({self.source[line - 1].strip()})"
        )

    # Expressions -------------------------------------------------------------------------------

    def text(self, node: ast.expr, least: int = _CHOICE) -> str:
        """An expression, in parentheses if it binds less closely than `least`."""
        written, binds = self.expression(node)
        return written if binds >= least else f"({written})"

    def expression(self, node: ast.expr) -> tuple[str, int]:
        sign, binds = _SIGNS.get(type(getattr(node, "op", None)), ("", _ATOM))
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return self.number(float(node.value)), _ATOM
        if isinstance(node, ast.Name):
            return ("i" if node.id == "_" else node.id), _ATOM
        if isinstance(node, ast.Attribute | ast.Call):
            return self.named(node), _ATOM
        if isinstance(node, ast.BinOp) and sign:
            return f"{self.text(node.left, binds)} {sign} {self.text(node.right, binds + 1)}", binds
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            power = _NAMES[self.language]["math.pow"]
            return f"{power}({self.text(node.left)}, {self.text(node.right)})", _ATOM
        if isinstance(node, ast.UnaryOp) and sign:
            return sign + self.text(node.operand, _ATOM), binds
        if isinstance(node, ast.BoolOp):
            # With parentheses around "and" in "or", which compilers warn for.
            return f" {sign} ".join(self.text(item, _COMPARE) for item in node.values), binds
        if isinstance(node, ast.Compare) and all(type(item) in _COMPARISONS for item in node.ops):
            items = [self.text(item, _SUM) for item in (node.left, *node.comparators)]
            parts = [
                f"{left} {_COMPARISONS[type(kind)]} {right}"
                for left, kind, right in zip(items, node.ops, items[1:], strict=False)
            ]
            return " && ".join(parts), _COMPARE if len(parts) == 1 else _AND
        if isinstance(node, ast.IfExp):
            test, first = self.text(node.test, _OR), self.text(node.body, _OR)
            return f"{test} ? {first} : {self.text(node.orelse)}", _CHOICE
        self.fail(node, f"{ast.unparse(node)} is no arithmetic")

    def named(self, node: ast.Attribute | ast.Call) -> str:
        """A constant or a call."""
        name = ast.unparse(node.func if isinstance(node, ast.Call) else node)
        known = _NAMES[self.language].get(name)
        if name == self.definition.name:
            known = self.name
        elif hasattr(numerics, name):
            known = name
        if known is None or (isinstance(node, ast.Call) and node.keywords):
            self.fail(node, f"{name} is unknown there")
        if isinstance(node, ast.Attribute):
            return known
        items = [self.text(item) for item in node.args]
        while name in ("min", "max") and len(items) > 2:
            items[:2] = [f"{known}({items[0]}, {items[1]})"]
        return f"{known}({', '.join(items)})"

    # Statements --------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt], indent: str) -> None:
        for node in body:
            first = node.lineno - 1
            while first > 0 and self.source[first - 1].lstrip().startswith("#"):
                first -= 1
            for comment in self.source[first : node.lineno - 1]:
                self.lines.append(f"{indent}// {comment.strip('# ')}")
            self.statement(node, indent)

    def inside(self, head: str, body: list[ast.stmt], indent: str) -> None:
        self.lines.append(f"{indent}{head} {{")
        self.block(body, f"{indent}  ")
        self.lines.append(f"{indent}}}")

    def statement(self, node: ast.stmt, indent: str) -> None:
        if isinstance(node, ast.Return) and node.value is not None:
            self.lines.append(f"{indent}return {self.text(node.value)};")
        elif isinstance(node, ast.Assign):
            self.assign(node, indent)
        elif isinstance(node, ast.AugAssign) and type(node.op) in _SIGNS:
            sign = _SIGNS[type(node.op)][0]
            self.lines.append(f"{indent}{self.text(node.target)} {sign}= {self.text(node.value)};")
        elif isinstance(node, ast.If):
            self.inside(f"if ({self.text(node.test)})", node.body, indent)
            if node.orelse:
                self.lines.pop()
                self.inside("} else", node.orelse, indent)
        elif isinstance(node, ast.While) and not node.orelse:
            self.inside(f"while ({self.text(node.test)})", node.body, indent)
        elif isinstance(node, ast.For) and not node.orelse:
            self.inside(self.loop(node), node.body, indent)
        elif isinstance(node, ast.Break | ast.Continue):
            self.lines.append(f"{indent}{ast.unparse(node)};")
        elif not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):  # a docstring
            self.fail(node, "there is no translation")

    def loop(self, node: ast.For) -> str:
        call = node.iter
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "range"):
            self.fail(node, "a loop is over a range")
        if len(call.args) > 2:
            self.fail(node, "a range has no step")
        first, last = [ast.Constant(0), *call.args][-2:]
        name = self.text(node.target)
        return (
            f"for ({self.kind} {name} = {self.text(first)}; {name} < {self.text(last)}; {name}++)"
        )

    def assign(self, node: ast.Assign, indent: str) -> None:
        pairs: list[tuple[str, ast.expr]] = []
        for target in node.targets:
            if isinstance(target, ast.Name):
                pairs.append((target.id, node.value))
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs += zip(map(ast.unparse, target.elts), node.value.elts, strict=True)
            else:
                self.fail(node, "names are assigned numbers")
        after = []
        for place, (name, value) in enumerate(pairs):
            written = self.text(value)
            later = ast.Tuple([item for _, item in pairs[place + 1 :]])
            if name in {item.id for item in ast.walk(later) if isinstance(item, ast.Name)}:
                # It is still read as it was.
                after.append(f"{indent}{name} = next_{name};")
                self.locals[f"next_{name}"] = None
                name = f"next_{name}"
            self.locals[name] = None
            self.lines.append(f"{indent}{name} = {written};")
        self.lines += after

    def write(self) -> str:
        self.block(self.definition.body, "  ")
        given = [item.arg for item in self.definition.args.args]
        declared = ", ".join(name for name in self.locals if name not in given)
        if self.language == "c":
            head = f"static double {self.name}({', '.join(f'double {name}' for name in given)}) {{"
        else:
            head = f"function {self.name}({', '.join(given)}) {{"
        lines = [head, *self.lines, "}"]
        if declared:
            lines[1:1] = textwrap.wrap(
                f"{self.kind} {declared};", 96, initial_indent="  ", subsequent_indent="    "
            )
        comment = (ast.get_docstring(self.definition) or "").partition("\n")[0]
        return "\n".join([f"/* {comment} */", *lines] if comment else lines)


def _definition(function: Callable[..., Any], name: str) -> tuple[ast.FunctionDef, str]:
    """The syntax and text of a function that a program can hold: no names from outside but math."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        parsed = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError):
        parsed, source = ast.Pass(), ""
    if not isinstance(parsed, ast.FunctionDef) or parsed.decorator_list:
        raise InputError(
            f"{name} cannot be exported: the text of its function is not known; define it with def in a "
            f"file, or give its text with register_operator(..., exports={{...}})"
        )
    if function.__module__ == numerics.__name__:
        return parsed, source
    used = [item for item in ast.walk(parsed) if isinstance(item, ast.Name)]
    inner = {item.id for item in used if isinstance(item.ctx, ast.Store)}
    inner |= {item.arg for item in ast.walk(parsed) if isinstance(item, ast.arg)}
    inner |= {parsed.name, "math", *dir(builtins)}
    outside = sorted({item.id for item in used} - inner)
    if outside:
        raise InputError(
            f"{name} cannot be exported: its function uses {', '.join(outside)} from outside, and a "
            f"program has only what is inside the function, and math"
        )
    return parsed, source


@cache
def helper(name: str, language: str) -> str | None:
    """The text of a function that programs of a language may call; None if there is none by that name."""
    if name in _NAMES.get(language, {}).values():
        return _LGAMMA if (name, language) == ("lgamma", "javascript") else None
    own = OPERATORS.get(name.removeprefix("own_")) if name.startswith("own_") else None
    function = getattr(numerics, name, None) if own is None else own.own
    if not inspect.isfunction(function):
        return None
    definition, source = _definition(function, name)
    if language == "python":
        return re.sub(rf"\b{definition.name}(?=\()", name, source).rstrip()
    if own is not None and definition.args.defaults:
        raise InputError(
            f"{name} cannot be exported to {language}: its function has default values; write them into "
            f"it, or give its text with register_operator(..., exports={{...}})"
        )
    return _Translation(definition, source, language, name).write()


def helpers(text: str, language: str) -> list[str]:
    """The functions that a text calls, and those that they call; what is called comes first."""
    order: dict[str, str] = {}

    def add(used: str, inside: str = "") -> None:
        for name in dict.fromkeys(re.findall(r"(?<![\w.])(\w+)\(", _COMMENT.sub("", used))):
            found = None if name in order or name == inside else helper(name, language)
            if found is not None:
                add(found, name)
                order[name] = found

    add(text)
    return list(order.values())
