"""The language of index functions: text, tree, LaTeX, and programs for the machine."""

from .compile import compile_expression
from .operators import OPERATORS, VARIABLES, Operator
from .text import ExpressionError, parse
from .tree import Apply, Constant, Name, Tree, bind, latex, length, names, operators, text

__all__ = [
    "OPERATORS",
    "VARIABLES",
    "Apply",
    "Constant",
    "ExpressionError",
    "Name",
    "Operator",
    "Tree",
    "bind",
    "compile_expression",
    "latex",
    "length",
    "names",
    "operators",
    "parse",
    "text",
]
