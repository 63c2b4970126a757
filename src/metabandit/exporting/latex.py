"""An index policy as a small LaTeX document: the formula, its symbols, the start and the origin."""

from __future__ import annotations

from importlib.metadata import version

from ..language import VARIABLES, Apply, Constant, Tree, latex
from ..language.operators import VARIABLE_LATEX, weighted_powers
from .policy import ExportedPolicy

# Digits of a weight, and letters of a line of terms, about.
_DIGITS = 6
_LINE = 62
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}
_MEANINGS = VARIABLES | {name: f"number of {VARIABLES[name]}" for name in ("n", "w", "t", "h")}

_DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{amsmath}
\allowdisplaybreaks
\begin{document}

\noindent The bandit policy %(name)s plays the arm $k$ whose index is largest, ties at random:
%(formula)s
%(symbols)s.%(exceptions)s

\medskip
\noindent Start: %(start)s.%(origin)s

\medskip
\noindent Exported by metabandit %(version)s.%(rounded)s

\end{document}
"""


def escape(text: str) -> str:
    """Text as LaTeX shows it."""
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def _number(value: float) -> str:
    return latex(Constant(float(f"{value:.{_DIGITS}g}")))


def _weight(tree: Tree) -> float:
    if isinstance(tree, Constant):
        return tree.value
    assert isinstance(tree, Apply)
    assert tree.operator == "negate"
    return -_weight(tree.operands[0])


def _terms(polynomial: Apply) -> list[str]:
    """The terms with a sign each: weights, and powers of v_1 to v_4."""
    found = []
    for tree, powers in weighted_powers(polynomial.operands):
        weight = _weight(tree)
        if weight == 0.0:
            continue
        factors = [
            f"v_{place}" + (f"^{power}" if power > 1 else "")
            for place, power in enumerate(powers, start=1)
            if power
        ]
        sign = "-" if weight < 0.0 else "+"
        number = _number(abs(weight))
        found.append(f"{sign} {number}" + (r" \, " + " ".join(factors) if factors else ""))
    return found or ["+ 0"]


def _lines(terms: list[str]) -> list[str]:
    lines: list[str] = []
    for term in terms:
        if lines and len(lines[-1]) + len(term) <= _LINE:
            lines[-1] += f" {term}"
        else:
            lines.append(term)
    return lines


def _formula(tree: Tree) -> str:
    """The index as a display; a polynomial on several lines."""
    if not (isinstance(tree, Apply) and tree.operator == "polynomial"):
        return "\\begin{equation*}\n  " + latex(tree) + "\n\\end{equation*}"
    lines = _lines(_terms(tree))
    lines[0] = lines[0].removeprefix("+ ")
    shown = [f"  & {line}" for line in lines]
    values = [
        f"v_{place} = {latex(value)}" for place, value in enumerate(tree.operands[:4], start=1)
    ]
    return (
        "\\begin{align*}\n"
        + " \\\\\n".join(shown)
        + "\n\\end{align*}\nwith $"
        + "$, $".join(values[:-1])
        + f"$ and ${values[-1]}$."
    )


def _exceptions(policy: ExportedPolicy) -> str:
    """When the index is not what decides."""
    words = ""
    if policy.min_share:
        words += (
            f" With probability $K \\cdot {_number(policy.min_share)}$, where $K$ is the number of arms, "
            f"any arm is played at random instead."
        )
    if policy.rate is not None:
        words += f" With probability ${latex(policy.rate)}$ any arm is played at random instead."
    if policy.needed is not None:
        words += (
            f" While some arm has fewer than ${latex(policy.needed)}$ plays, the arm with the fewest is "
            f"played."
        )
    return words


def _symbols(policy: ExportedPolicy) -> str:
    shown = [
        f"${VARIABLE_LATEX[name]}$ is the {meaning}"
        for name, meaning in _MEANINGS.items()
        if policy.reads(name)
    ]
    return "Here " + "; ".join(shown) if shown else "No symbol is read"


def write(policy: ExportedPolicy) -> str:
    """The document as text."""
    tree = policy.tree
    is_power = isinstance(tree, Apply) and tree.operator == "polynomial"
    origin = policy.provenance
    return _DOCUMENT % {
        "name": escape(policy.name),
        "formula": _formula(tree),
        "symbols": _symbols(policy),
        "exceptions": _exceptions(policy),
        "start": escape(policy.start),
        "origin": f" It was {escape(origin)}." if origin else "",
        "version": version("metabandit"),
        "rounded": f" Weights are rounded to {_DIGITS} digits." if is_power else "",
    }
