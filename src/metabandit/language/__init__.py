"""The language of index functions: text, tree, LaTeX.

`compile` makes programs for the machine, `values` evaluates on arrays; both need NumPy, and are
imported where they are used.
"""

from .cancelling import guarded
from .operators import (
    ARM_VARIABLES,
    HIGHEST_DEGREE,
    OPERATORS,
    VARIABLES,
    Operator,
    register_operator,
)
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

__all__ = [
    "ARM_VARIABLES",
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
    "guarded",
    "latex",
    "length",
    "names",
    "operators",
    "parse",
    "register_operator",
    "text",
    "variables",
]
