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
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

from .. import numerics
from ..errors import InputError
from ..language import OPERATORS
from ..language.source import real
from ..settings import write_number

_SAME = ("acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "exp", "expm1", "floor", "log",
         "log1p", "log2", "log10", "pow", "sin", "sinh", "sqrt", "tan", "tanh", "trunc")  # fmt: skip
_CALLS = {
    "c": {
        **{f"math.{name}": name for name in (*_SAME, "erf", "erfc", "lgamma", "copysign")},
        **{f"math.{name}": name for name in ("isnan", "isinf", "isfinite", "fabs")},
        **{"min": "fmin", "max": "fmax", "abs": "fabs"},
    },
    "javascript": {
        **{f"math.{name}": f"Math.{name}" for name in _SAME},
        **{"math.isnan": "Number.isNaN", "math.isfinite": "Number.isFinite"},
        **{"math.lgamma": "lgamma", "math.fabs": "Math.abs"},
        **{"min": "Math.min", "max": "Math.max", "abs": "Math.abs"},
    },
}
_CONSTANTS = {
    "c": {"math.inf": "INFINITY", "math.nan": "NAN"},
    "javascript": {"math.inf": "Infinity", "math.nan": "NaN"},
}
_NUMBERS = {"math.pi": 3.141592653589793, "math.e": 2.718281828459045}
# What JavaScript has not.
_JAVASCRIPT = {
    "lgamma": """\
/* The logarithm of the gamma function of x > 0: Stirling's series from 10 on. */
function lgamma(x) {
  let product = 1;
  for (; x < 10; x++) product *= x;
  const v = 1 / (x * x);
  let rest = 1 / 1260 - v * (1 / 1680 - v * (1 / 1188 - v * (691 / 360360 - v / 156)));
  rest = (1 / 12 - v * (1 / 360 - v * rest)) / x;
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + rest - Math.log(product);
}"""
}
_COMMENT = re.compile(r'""".*?"""|/\*.*?\*/|//[^\n]*|#[^\n]*', re.S)
# How closely operators bind: the same in all three languages.
_CHOICE, _OR, _AND, _COMPARE, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)
_ARITHMETIC: dict[type, tuple[str, int]] = {
    ast.Add: ("+", _SUM),
    ast.Sub: ("-", _SUM),
    ast.Mult: ("*", _PRODUCT),
    ast.Div: ("/", _PRODUCT),
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
        self.lines: list[str] = []
        # Names that are assigned once, in the outermost block, are declared there; others before.
        self.parameters = [item.arg for item in definition.args.args]
        stored = (item for item in ast.walk(definition) if isinstance(item, ast.Name))
        self.assigned = Counter(item.id for item in stored if isinstance(item.ctx, ast.Store))
        self.extra: list[str] = []

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
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return self.number(float(node.value)), _ATOM
        if isinstance(node, ast.Name):
            return ("i" if node.id == "_" else node.id), _ATOM
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            if name in _NUMBERS:
                return self.number(_NUMBERS[name]), _ATOM
            if name in _CONSTANTS[self.language]:
                return _CONSTANTS[self.language][name], _ATOM
            self.fail(node, f"{name} is unknown there")
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            sign, binds = _ARITHMETIC[type(node.op)]
            return f"{self.text(node.left, binds)} {sign} {self.text(node.right, binds + 1)}", binds
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            power = _CALLS[self.language]["math.pow"]
            return f"{power}({self.text(node.left)}, {self.text(node.right)})", _ATOM
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            sign = "-" if isinstance(node.op, ast.USub) else "!"
            return sign + self.text(node.operand, _ATOM), _SIGN
        if isinstance(node, ast.BoolOp):
            sign, binds = ("||", _OR) if isinstance(node.op, ast.Or) else ("&&", _AND)
            # With parentheses around "and" in "or", which compilers warn for.
            return f" {sign} ".join(self.text(item, _COMPARE) for item in node.values), binds
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.IfExp):
            parts = [self.text(item, _OR) for item in (node.test, node.body)]
            return f"{parts[0]} ? {parts[1]} : {self.text(node.orelse)}", _CHOICE
        if isinstance(node, ast.Call):
            return self.call(node), _ATOM
        self.fail(node, f"{ast.unparse(node)} is no arithmetic")

    def comparison(self, node: ast.Compare) -> tuple[str, int]:
        items = [self.text(item, _SUM) for item in (node.left, *node.comparators)]
        parts = []
        for place, kind in enumerate(node.ops):
            if type(kind) not in _COMPARISONS:
                self.fail(node, f"{ast.unparse(node)} is no comparison of numbers")
            sign = _COMPARISONS[type(kind)]
            if self.language == "javascript" and len(sign) == 2 and sign in ("==", "!="):
                sign += "="
            parts.append(f"{items[place]} {sign} {items[place + 1]}")
        return " && ".join(parts), _COMPARE if len(parts) == 1 else _AND

    def call(self, node: ast.Call) -> str:
        name = ast.unparse(node.func)
        known = _CALLS[self.language].get(name)
        if name == self.definition.name:
            known = self.name
        elif hasattr(numerics, name):
            known = name
        if known is None or node.keywords:
            self.fail(node, f"{name} is unknown there")
        items = [self.text(item) for item in node.args]
        if name in ("min", "max"):
            written = items[0]
            for item in items[1:]:
                written = f"{known}({written}, {item})"
            return written
        return f"{known}({', '.join(items)})"

    # Statements --------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt], depth: int) -> None:
        for statement in body:
            indent = "  " * depth
            self.lines += [f"{indent}// {comment}" for comment in self.comments(statement.lineno)]
            self.statement(statement, indent, depth)

    def comments(self, line: int) -> list[str]:
        """The comments right above a line."""
        first = line - 1
        while first > 0 and self.source[first - 1].lstrip().startswith("#"):
            first -= 1
        return [text.strip("# ") for text in self.source[first : line - 1]]

    def statement(self, node: ast.stmt, indent: str, depth: int) -> None:
        if isinstance(node, ast.Return) and node.value is not None:
            self.lines.append(f"{indent}return {self.text(node.value)};")
        elif isinstance(node, ast.Assign):
            self.assign(node, indent, depth)
        elif isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
            sign = _ARITHMETIC[type(node.op)][0]
            target = self.text(node.target)
            self.lines.append(f"{indent}{target} {sign}= {self.text(node.value)};")
        elif isinstance(node, ast.If):
            self.branches(node, indent, depth)
        elif isinstance(node, ast.While) and not node.orelse:
            self.inside(f"while ({self.text(node.test)})", node.body, indent, depth)
        elif isinstance(node, ast.For) and not node.orelse:
            self.inside(self.loop(node), node.body, indent, depth)
        elif isinstance(node, ast.Break | ast.Continue):
            word = "break" if isinstance(node, ast.Break) else "continue"
            self.lines.append(f"{indent}{word};")
        elif not (isinstance(node, ast.Pass) or _is_docstring(node)):
            self.fail(node, "there is no translation")

    def inside(self, head: str, body: list[ast.stmt], indent: str, depth: int) -> None:
        self.lines.append(f"{indent}{head} {{")
        self.block(body, depth + 1)
        self.lines.append(f"{indent}}}")

    def branches(self, node: ast.If, indent: str, depth: int) -> None:
        self.inside(f"if ({self.text(node.test)})", node.body, indent, depth)
        if node.orelse:
            self.lines[-1] = f"{indent}}} else {{"
            self.block(node.orelse, depth + 1)
            self.lines.append(f"{indent}}}")

    def loop(self, node: ast.For) -> str:
        call = node.iter
        simple = isinstance(call, ast.Call) and ast.unparse(call.func) == "range"
        if not (isinstance(call, ast.Call) and simple and isinstance(node.target, ast.Name)):
            self.fail(node, "a loop is over a range")
        if len(call.args) > 2:
            self.fail(node, "a range has no step")
        first, last = ([ast.Constant(0)] * (2 - len(call.args)) + list(call.args))[-2:]
        name, kind = self.text(node.target), "double" if self.language == "c" else "let"
        return f"for ({kind} {name} = {self.text(first)}; {name} < {self.text(last)}; {name}++)"

    def assign(self, node: ast.Assign, indent: str, depth: int) -> None:
        pairs: list[tuple[str, ast.expr]] = []
        for target in node.targets:
            if isinstance(target, ast.Name):
                pairs.append((target.id, node.value))
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs += zip(
                    (ast.unparse(item) for item in target.elts), node.value.elts, strict=True
                )
            else:
                self.fail(node, "names are assigned numbers")
        read = [
            {item.id for item in ast.walk(value) if isinstance(item, ast.Name)}
            for _, value in pairs
        ]
        lost = {
            name for place, (name, _) in enumerate(pairs) if name in set().union(*read[place + 1 :])
        }
        after = []
        for name, value in pairs:
            written = self.text(value)
            if name in lost:
                after.append(f"{indent}{name} = next_{name};")
                name = f"next_{name}"
                self.extra.append(name)
            kind = "const double" if self.language == "c" else "const"
            single = depth == 1 and self.assigned[name] == 1 and name not in self.parameters
            self.lines.append(f"{indent}{f'{kind} ' if single else ''}{name} = {written};")
        self.lines += after

    def write(self) -> str:
        self.block(self.definition.body, 1)
        top = {
            item.id
            for statement in self.definition.body
            if isinstance(statement, ast.Assign)
            for item in ast.walk(statement)
            if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
            if self.assigned[item.id] == 1
        }
        loops = {
            ast.unparse(item.target)
            for item in ast.walk(self.definition)
            if isinstance(item, ast.For)
        }
        declared = [
            name
            for name in [*self.assigned, *dict.fromkeys(self.extra)]
            if name not in top and name not in loops and name not in self.parameters
        ]
        kind = "double" if self.language == "c" else "let"
        head = textwrap.wrap(
            f"{kind} {', '.join(declared)};", 96, initial_indent="  ", subsequent_indent="    "
        )
        comment = (ast.get_docstring(self.definition) or "").partition("\n")[0]
        if self.language == "c":
            given = ", ".join(f"double {name}" for name in self.parameters)
            first = f"static double {self.name}({given}) {{"
        else:
            first = f"function {self.name}({', '.join(self.parameters)}) {{"
        return "\n".join(
            [
                *([f"/* {comment} */"] if comment else []),
                first,
                *(head if declared else []),
                *self.lines,
                "}",
            ]
        )


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _definition(function: Callable[..., Any], name: str) -> tuple[ast.FunctionDef, str]:
    """A function's syntax and text, if Python can tell."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        parsed = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError):
        parsed, source = None, ""
    if not isinstance(parsed, ast.FunctionDef) or parsed.decorator_list:
        raise InputError(
            f"{name} cannot be exported: the text of its function is not known; define it with def in a "
            f"file, or give its text with register_operator(..., exports={{...}})"
        )
    return parsed, source


def _python(function: Callable[..., Any], name: str) -> str:
    """The text of a function under another name, if it needs no names from outside but math."""
    definition, source = _definition(function, name)
    used = [item for item in ast.walk(definition) if isinstance(item, ast.Name)]
    inner = {item.id for item in used if isinstance(item.ctx, ast.Store)}
    inner |= {item.arg for item in ast.walk(definition) if isinstance(item, ast.arg)}
    inner |= {definition.name, "math", *dir(builtins)}
    if function.__module__ != numerics.__name__:
        outside = sorted({item.id for item in used} - inner)
        if outside:
            raise InputError(
                f"{name} cannot be exported: its function uses {', '.join(outside)} from outside, and a "
                f"program has only what is inside the function, and math"
            )
    return re.sub(rf"\b{definition.name}(?=\()", name, source).rstrip()


@cache
def helper(name: str, language: str) -> str | None:
    """The text of a function that programs of a language may call; None if there is none by that name."""
    if name in _CALLS.get(language, {}).values():
        return _JAVASCRIPT.get(name) if language == "javascript" else None
    own = OPERATORS.get(name.removeprefix("own_")) if name.startswith("own_") else None
    function = getattr(numerics, name, None) if own is None else own.own
    if not inspect.isfunction(function):
        return None
    if language == "python":
        return _python(function, name)
    return _Translation(*_definition(function, name), language, name).write()


def helpers(text: str, language: str) -> list[str]:
    """The functions that a text calls, and those that they call; what is called comes first."""
    order: dict[str, str] = {}

    def add(used: str, inside: str = "") -> None:
        code = re.sub(_COMMENT, "", used)
        for name in dict.fromkeys(re.findall(r"(?<![\w.])(\w+)\(", code)):
            found = None if name in order or name == inside else helper(name, language)
            if found is not None:
                add(found, name)
                order[name] = found

    add(text)
    return list(order.values())
