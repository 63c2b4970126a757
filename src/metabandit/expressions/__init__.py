"""The language of index functions: text, tree, LaTeX, and programs for the machine."""

from .compile import compile_expression
from .operators import HIGHEST_DEGREE, OPERATORS, VARIABLES, Operator
from .text import ExpressionError, parse
from .tree import (
    Apply,
    Constant,
    Name,
    Tree,
    bind,
    latex,
    length,
    names,
    operators,
    text,
    variables,
)
from .values import evaluate_tree

__all__ = [
    "HIGHEST_DEGREE",
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
    "evaluate_tree",
    "latex",
    "length",
    "names",
    "operators",
    "parse",
    "text",
    "variables",
]
