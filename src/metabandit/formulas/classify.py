"""Which of some formulas rank arms alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from ..language import OPERATORS, Apply, Constant, Name, Tree, parse
from ..priors.families import Array
from .enumeration import TOLERANCE
from .nodes import Index, kernel_sample
from .sample import Sample, check_sample


def classify(
    formulas: Sequence[str | Tree], *, sample: Sample | None = None, tolerance: float = TOLERANCE
) -> list[int | None]:
    """The same number for formulas that rank the arms of a sample alike, None for invalid ones.

    >>> import metabandit as mb
    >>> mb.classify(["r", "sqrt(r)", "2*r - 1", "r + 1/n", "ln(r)"])
    [0, 0, 0, 1, None]
    """
    from ..kernels import vectors

    sample = check_sample(sample)
    if isinstance(formulas, str) or not isinstance(formulas, Sequence):
        raise InputError(f"formulas must be a list of texts, not {formulas!r}")
    for item in formulas:
        if not isinstance(item, (str, Apply, Name, Constant)):
            raise InputError(f"a formula is a text such as 'r + 1/n', not {item!r}")
    trees = [parse(item) if isinstance(item, str) else item for item in formulas]
    compared = kernel_sample(sample, tolerance, stored=3)
    room = vectors.room()
    nothing = np.zeros(vectors.ROOM * compared.points)
    known: dict[Tree, Array] = {}

    def values(tree: Tree) -> Array:
        if tree not in known:
            if isinstance(tree, Name):
                known[tree] = sample.values[tree.name].ravel()
            elif isinstance(tree, Apply):
                # Operands in rows 0 and 1, the result in row 2.
                x, *rest = map(values, tree.operands)
                file = np.concatenate([x, rest[0] if rest else x, x, nothing])
                operation = np.full(3, OPERATORS[tree.operator].opcode, np.int32)
                left, right = np.zeros(3, np.int32), np.ones(3, np.int32)
                nodes = vectors.Nodes(operation, left, right)
                vectors.store(2, 3, nodes, compared, file, room)
                known[tree] = file.reshape(-1, compared.points)[2]
            else:
                known[tree] = np.full(compared.points, tree.value)
        return known[tree]

    def is_valid(tree: Tree) -> bool:
        inner = all(map(is_valid, tree.operands)) if isinstance(tree, Apply) else True
        return inner and bool(np.isfinite(values(tree)).all())

    index = Index()
    found: list[int | None] = []
    for tree in trees:
        if not is_valid(tree):
            found.append(None)
            continue
        file = np.concatenate([values(tree), nothing])
        out = np.zeros(1, np.uint64)
        empty = vectors.Nodes(*(np.zeros(1, np.int32) for _ in range(3)))
        vectors.rank(np.zeros(1, np.int64), empty, compared, file, room, out)
        found.append(int(index.add(out)[0][0]))
    return found
