"""Which formulas are one strategy: they rank the arms of a sample alike, or choose alike in every state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..engine.programs import ManyPrograms
from ..engine.states import LONG
from ..errors import InputError
from ..language import OPERATORS, Apply, Constant, Name, Tree, parse
from ..policies import Start
from ..priors import Bernoulli, Prior, check_prior
from ..progress import Told, with_progress
from ..settings import check_horizon
from ..workers import make_workers
from .classes import TOLERANCE, Classes
from .sample import Sample, check_sample, problems_of

# Classes that are evaluated at a time.
_CHUNK = 4096


def classify(
    formulas: Sequence[str | Tree], *, sample: Sample | None = None, tolerance: float = TOLERANCE
) -> list[int | None]:
    """Say which formulas rank the arms of a sample alike.

    Parameters
    ----------
    formulas : sequence of str
        Formulas whose operators have one or two operands.
    sample : Sample, optional
        The points on which they are compared; by default those of `general_sample`.
    tolerance : float
        Values that differ by this share of the larger one are equal.

    Returns
    -------
    list of int or None
        The same number for formulas that rank arms alike, None for invalid ones.

    Examples
    --------
    >>> import metabandit as mb
    >>> mb.classify(["r", "sqrt(r)", "2*r - 1", "r + 1/n", "ln(r)"])
    [0, 0, 0, 1, None]
    """
    from ..kernels import fingerprints

    sample = check_sample(sample)
    if isinstance(formulas, str) or not isinstance(formulas, Sequence):
        raise InputError(f"formulas must be a list of texts, not {formulas!r}")
    for item in formulas:
        if not isinstance(item, (str, Apply, Name, Constant)):
            raise InputError(f"a formula is a text such as 'r + 1/n', not {item!r}")
    trees = [parse(item) if isinstance(item, str) else item for item in formulas]
    rows_of: dict[Tree, int] = {}
    for tree in trees:
        _number(tree, rows_of)
    keys = fingerprints.make_keys(sample.arms, sample.groups, tolerance)
    points = sample.arms * sample.groups
    rows = fingerprints.make_rows(np.zeros(len(rows_of) * points), points)
    values = rows.values.reshape(-1, points)
    nodes = fingerprints.Nodes(*np.zeros((3, len(rows_of)), np.int32))
    valid = np.ones(len(rows_of), np.bool_)
    for tree, row in rows_of.items():
        if isinstance(tree, Name):
            values[row] = sample.values[tree.name].ravel()
        elif isinstance(tree, Constant):
            values[row] = tree.value
        else:
            operands = [rows_of[operand] for operand in tree.operands]
            nodes.operation[row] = OPERATORS[tree.operator].opcode
            nodes.left[row], nodes.right[row] = operands[0], operands[-1]
            fingerprints.store(row, row + 1, nodes, rows)
            valid[row] = valid[operands].all()
        valid[row] &= np.isfinite(values[row]).all()
    ranks = np.zeros(len(rows_of), np.uint64)
    fingerprints.rank(0, len(rows_of), nodes, rows, keys, ranks)
    chosen = [rows_of[tree] for tree in trees]
    numbers = iter(
        fingerprints.Numbering().add(ranks[[row for row in chosen if valid[row]]])[0].tolist()
    )
    return [next(numbers) if valid[row] else None for row in chosen]


def _number(tree: Tree, rows_of: dict[Tree, int]) -> None:
    """Give a row to a formula and all its parts, parts first."""
    if isinstance(tree, Apply) and tree not in rows_of:
        if len(tree.operands) > 2:
            raise InputError(
                f"only formulas whose operators have one or two operands can be compared, not those "
                f"with {tree.operator}, which has {len(tree.operands)}; leave it out"
            )
        for operand in tree.operands:
            _number(operand, rows_of)
    rows_of.setdefault(tree, len(rows_of))


@with_progress("joining the classes")
def sharpen(
    classes: Classes,
    prior: Prior,
    horizon: int,
    *,
    start: str | Start | None = None,
    threads: int | None = None,
    progress: Told = None,
) -> Classes:
    """Join classes whose formulas choose alike wherever play with them leads.

    Two formulas are then in one class if they choose the same arm (or toss a coin) in every state that
    play with them reaches. Formulas whose index is not finite in such a state are left out. Of classes
    made on `every_state`, this is the sharpest partition.

    Parameters
    ----------
    classes : Classes
        What `make_classes` gives.
    prior, horizon : Prior, int
        Two Bernoulli arms, and the plays per episode.
    start : str or Start, optional
        How play begins; by default each arm is played once.
    threads, progress
        As for `make_classes`.

    Returns
    -------
    Classes
        Fewer and larger classes, for this prior, horizon and start only.

    Examples
    --------
    >>> import metabandit as mb
    >>> two = mb.Bernoulli(arms=2)
    >>> every = mb.make_classes(3, sample=mb.every_state(two, horizon=6))
    >>> len(every), len(mb.sharpen(every, two, horizon=6))
    (23, 18)
    """
    if not isinstance(classes, Classes):
        raise InputError(f"classes are what make_classes gives, not {classes!r}")
    horizon = check_horizon(horizon)
    begin = Start.read(start).resolve(check_prior(prior))
    if type(prior) is not Bernoulli or prior.arms != 2 or horizon > LONG:
        raise InputError(
            f"the sharpest partition is for two Bernoulli arms and up to {LONG} plays, not for {prior} "
            f"and {horizon}"
        )
    programs = ManyPrograms.of(
        classes.compile(progress), prior, horizon, begin, make_workers(threads)
    )
    # What can be played, and fingerprints of all that it chooses.
    found, parts = [], []
    for first in range(0, programs.count, _CHUNK):
        chunk = np.arange(first, min(first + _CHUNK, programs.count))
        regret, _, choices = programs.exact_regret(chunk, points=[horizon], with_choices=True)
        playable = np.isfinite(regret)
        found.append(chunk[playable])
        parts.append(choices[playable])
        if progress is not None:
            progress(int(chunk[-1]) + 1, programs.count)
    which, choices = np.concatenate(found), np.concatenate(parts)
    _, first_of, number = np.unique(choices, return_index=True, return_inverse=True)
    sizes = np.bincount(number, classes.sizes[which]).astype(np.int64)
    order = np.argsort(first_of)
    problems = problems_of(prior, horizon, begin)
    return replace(
        classes,
        sample={**classes.sample, "sharp": True, "problems": problems},
        codes=classes.codes[which[first_of[order]]],
        sizes=sizes[order],
    )
