"""Power-P: the paper's index with numbers to learn (its Section 4.1).

The index is the sum of weights times v1^i v2^j v3^k v4^l, all powers up to P, of four values of an
arm and the moment: v2 = 1/sqrt(n), v3 = r, v4 = s, and v1 = sqrt(ln t) as in the paper, or
sqrt(ln(h + 1)), which tells how many plays are left instead of how many were made. Where rewards come
late, v4 can be w/n instead: the share of the arm's plays that still wait for theirs.
"""

from __future__ import annotations

import re
from itertools import product

from ..errors import InputError, nearest
from ..language import HIGHEST_DEGREE, Apply, Name, Tree, parse

FIRST_VALUES = {"t": "sqrt(ln(t))", "h": "sqrt(ln(h + 1))"}
LAST_VALUES = {"s": "s", "w": "w/n"}


def power_degree(text: str) -> int | None:
    """P of `power-P`, or None if the text is none."""
    match = re.fullmatch(r"power-(\S+)", text)
    if match is None:
        return None
    if not match.group(1).isdecimal() or not 1 <= int(match.group(1)) <= HIGHEST_DEGREE:
        raise InputError(f"P of power-P must be 1 to {HIGHEST_DEGREE}, not {match.group(1)!r}")
    return int(match.group(1))


def powers(degree: int) -> list[tuple[int, ...]]:
    """The exponents (i, j, k, l) of all features, in the order of the weights."""
    return list(product(range(degree + 1), repeat=4))


def feature(exponents: tuple[int, ...]) -> str:
    """A feature as text: `v1^2*v3`; the one without any value is `1`."""
    factors = [
        f"v{position}" if exponent == 1 else f"v{position}^{exponent}"
        for position, exponent in enumerate(exponents, start=1)
        if exponent
    ]
    return "*".join(factors) or "1"


def weight_names(degree: int) -> list[str]:
    """The parameters that hold the weights: w_ijkl."""
    return ["w_" + "".join(map(str, exponents)) for exponents in powers(degree)]


def features(degree: int) -> dict[str, str]:
    """The feature that each parameter is the weight of."""
    return dict(zip(weight_names(degree), map(feature, powers(degree)), strict=True))


def matters(exponents: tuple[int, ...]) -> bool:
    """Whether a feature mentions the arm; what all arms share changes no choice."""
    return any(exponents[1:])


def power_values(v1: str, v4: str) -> dict[str, str]:
    """What Power-P reads, by name."""
    if v1 not in FIRST_VALUES:
        raise InputError(
            f"v1 of Power-P must be t (plays made, as in the paper) or h (plays left), not {v1!r}; "
            f"{nearest(v1, FIRST_VALUES)}",
            about="v1",
        )
    if v4 not in LAST_VALUES:
        raise InputError(
            f"v4 of Power-P must be s (the deviation, as in the paper) or w (the share of plays that "
            f"wait), not {v4!r}; {nearest(v4, LAST_VALUES)}",
            about="v4",
        )
    return {"v1": FIRST_VALUES[v1], "v2": "1/sqrt(n)", "v3": "r", "v4": LAST_VALUES[v4]}


def power_tree(degree: int, v1: str, v4: str = "s") -> Tree:
    """The index of Power-P with its weights as parameters."""
    values = power_values(v1, v4).values()
    weights = [Name(name) for name in weight_names(degree)]
    return Apply("polynomial", (*(parse(value) for value in values), *weights))
