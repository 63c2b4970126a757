"""All formulas up to a length, bottom-up, in classes that rank arms alike.

The paper's Section 5.2 builds the set of all formulas F with length(F) <= L and puts two of them into one
class if they order the sample points alike; formulas with an invalid value are discarded, and the shortest
of each class stays.

Formulas with the same values on all points are one node here, and a longer formula is made of nodes, not of
formulas: that leaves a few million things to compute out of billions. The number w(v, l) of formulas of
length l that node v stands for keeps the counts those of the whole space:

    w(v, l) = sum over unary U, nodes a with U(a) = v of  w(a, l - 1)
            + sum over binary B, nodes a, b with B(a, b) = v, i = 1, ..., l - 2 of  w(a, i) w(b, l - 1 - i)

The size of a class is the sum of w(v, l) over its nodes and all lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.task import silent
from ..engine.threads import in_threads
from ..errors import InputError, about
from ..language import OPERATORS, Name
from ..memory import free_memory
from ..policies import Progress
from ..priors.families import Array
from ..progress import Told, with_progress
from ..settings import check_threads, check_whole, read_number
from .classes import TOLERANCE, Classes, Ints, path_of
from .grammar import Grammar
from .sample import Sample, check_sample

Numbers = npt.NDArray[np.int32]
Fingerprints = npt.NDArray[np.uint64]

_LONGEST = 30
# Formulas that a thread takes at a time, and that are numbered at a time.
_SHARE = 20_000
_CHUNK = 2_000_000
# What an enumeration takes for each formula of the space, by the last length, on two cores.
_BYTES = 4.0
_SECONDS = 1.5e-6
_MOST_SECONDS = 4 * 3600.0


@with_progress("making the classes")
def make_classes(
    length: int = 7,
    *,
    grammar: Grammar | None = None,
    sample: Sample | None = None,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
    progress: Told = None,
) -> Classes:
    """Enumerate all formulas up to a length, in classes that rank arms alike.

    Parameters
    ----------
    length : int
        Symbols of the longest formulas.
    grammar : Grammar, optional
        What formulas are made of; by default as in the paper.
    sample : Sample, optional
        The points on which they are compared; by default 1024 groups of five arms from domains that
        suit any problem with rewards in [0, 1].
    tolerance : float
        Values that differ by this share of the larger one are equal; 0 compares bit for bit.
    threads : int, optional
        Threads to use; all cores by default. The result does not depend on it.
    progress : callable or bool, optional
        Called with how much is done, and how much there is; a bar by default, False for none.

    Returns
    -------
    Classes
        The shortest formula of each class, and how many formulas it stands for.

    Examples
    --------
    >>> import metabandit as mb
    >>> mb.make_classes(3).counts()[2]
    {'length': 3, 'formulas': 711, 'invalid': 72, 'distinct': 241, 'classes': 24}
    """
    grammar = grammar or Grammar()
    sample = check_sample(sample)
    length = check_length(length)
    tolerance = _check_tolerance(tolerance)
    threads = check_threads(threads)
    check_size(grammar, length)
    return _Enumeration(grammar, length, sample, tolerance, threads).run(progress)


def kept_classes(
    length: int = 7,
    *,
    grammar: Grammar | None = None,
    sample: Sample | None = None,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
) -> Classes:
    """The same as make_classes, from the user's cache folder if an earlier call kept it there."""
    grammar = grammar or Grammar()
    sample = check_sample(sample)
    length = check_length(length)
    path = path_of(length, grammar, sample.description, tolerance)
    if path.exists():
        with suppress(InputError):  # made again
            return Classes.load(path)
    check_size(grammar, length)
    announce = announce or silent
    if length >= 6:
        announce(
            f"making the classes of the {sum(grammar.counts(length)):,} formulas up to length {length}, "
            f"once ..."
        )
    made = make_classes(
        length,
        grammar=grammar,
        sample=sample,
        tolerance=tolerance,
        threads=threads,
        progress=progress,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made.save(path, force=True)
    except (OSError, InputError) as error:
        announce(f"the classes are not kept for later: {error}")
    return made


@about("length")
def check_length(length: object) -> int:
    """The length of the longest formulas."""
    return check_whole(length, "the length of formulas", 1, most=_LONGEST)


@about("tolerance")
def _check_tolerance(tolerance: float) -> float:
    number = read_number(tolerance, "the tolerance")
    if not 0.0 <= number < 0.01:
        raise InputError(f"the tolerance must be at least 0 and less than 0.01, not {number:g}")
    return number


def check_size(grammar: Grammar, length: int) -> None:
    """Refuse a length whose formulas would not fit in memory or time."""
    totals = list(accumulate(grammar.counts(length)))
    free = free_memory()
    fits = [
        position + 1
        for position, total in enumerate(totals)
        if total * _BYTES <= free and total * _SECONDS <= _MOST_SECONDS
    ]
    if len(fits) == length:
        return
    total = totals[-1]
    raise InputError(
        f"there are {total:,} formulas up to length {length}: they would take about "
        f"{total * _SECONDS / 3600:.3g} hours and {total * _BYTES / 1e9:.3g} GB of memory "
        f"({free / 1e9:.3g} GB are free, and {_MOST_SECONDS / 3600:g} hours are the most); length "
        f"{fits[-1] if fits else 0} fits"
        + (f" ({totals[fits[-1] - 1]:,} formulas)" if fits else "")
        + ", or leave operators, variables or constants out",
        about="length",
    )


class _Enumeration:
    """An enumeration in progress."""

    def __init__(
        self, grammar: Grammar, length: int, sample: Sample, tolerance: float, threads: int
    ) -> None:
        from ..kernels import fingerprints

        self.kernel = fingerprints
        self.grammar = grammar
        self.length = length
        self.sample = sample
        self.threads = threads
        self.keys = fingerprints.make_keys(sample.arms, sample.groups, tolerance)
        self.operators = {OPERATORS[name].opcode: OPERATORS[name] for name in grammar.operators}
        # Nodes of length l are ends[l - 1], ..., ends[l] - 1; ways[l] has w(v, l) for those up to there.
        self.nodes = fingerprints.Nodes(*np.zeros((3, 1024), np.int32))
        self.count = 0
        self.ends = [0]
        self.ways = [np.zeros(0)]
        self.numbering = fingerprints.Numbering()
        self.combined: list[tuple[Any, Numbers]] = []
        self.classes = fingerprints.Numbering()
        self.class_of: list[Numbers] = []
        self.shortest: list[Ints] = []
        # Values of the nodes that are operands of longer ones, and threads' copies that are not in use.
        self.points = sample.arms * sample.groups
        self.values = np.zeros(0)
        self.free: list[Any] = []

    def run(self, progress: Progress | None) -> Classes:
        totals = self.grammar.counts(self.length)
        for length in range(1, self.length + 1):
            done = sum(totals[: length - 1])

            def report(share: float, done: int = done, new: int = totals[length - 1]) -> None:
                if progress is not None:
                    progress(int(done + share * new), sum(totals))

            before = self.count
            if length == 1:
                self._add_atoms()
            for combination in self._combinations(length):
                self._combine(combination, report)
            self.ends.append(self.count)
            if 1 < length <= (self.length - 1) // 2:
                self._store(before)
            if length > 1:
                self.ways.append(self._count_ways(length))
            report(1.0)
        sums = np.zeros(self.count)
        for ways in self.ways:
            sums[: len(ways)] += ways
        valid = [int(ways.sum()) for ways in self.ways[1:]]
        sizes = np.bincount(np.concatenate(self.class_of), sums, self.classes.count)
        return Classes(
            grammar=self.grammar,
            length=self.length,
            sample=self.sample.description,
            tolerance=self.keys.tolerance,
            formulas=totals,
            invalid=np.subtract(totals, valid).tolist(),
            distinct=np.diff(self.ends).tolist(),
            codes=self._codes(np.concatenate(self.shortest)),
            sizes=np.rint(sizes).astype(np.int64),
        )

    # Values ------------------------------------------------------------------------------------

    def _keep(self, values: Array) -> None:
        self.values = values
        self.free.clear()

    def _store(self, first: int) -> None:
        """Keep the values of short nodes, which are operands of longer ones."""
        values = np.concatenate([self.values, np.zeros((self.count - first) * self.points)])
        rows = self.kernel.make_rows(values, self.points)
        self.kernel.store(first, self.count, self.nodes, rows)
        self._keep(rows.values[: len(values)].copy())

    def _in_parts(self, fill: Any, first: int, last: int, each: int = 1) -> Fingerprints:
        """What fill(first, last, rows, out) gives for nodes, `each` numbers per node, in threads."""
        out = np.empty((last - first) * each, np.uint64)
        step = max(1, _SHARE // each)

        def work(begin: int) -> None:
            end = min(begin + step, last)
            try:
                rows = self.free.pop()
            except IndexError:
                rows = self.kernel.make_rows(self.values, self.points)
            fill(begin, end, rows, out[(begin - first) * each : (end - first) * each])
            self.free.append(rows)

        in_threads(work, range(first, last, step), self.threads)
        return out

    def _fingerprints(self, combination: Any, first: int, last: int) -> Fingerprints:
        """values(F) of formulas with nodes first, ..., last - 1."""

        def fill(begin: int, end: int, rows: Any, out: Fingerprints) -> None:
            part = combination._replace(first=begin, last=end)
            self.kernel.combine(part, self.nodes, rows, self.keys, out)

        return self._in_parts(fill, first, last, _each(combination))

    def _add_nodes(self, operation: Any, left: Any, right: Any) -> None:
        """Keep new nodes, and put them into classes."""
        first, last = self.count, self.count + len(left)
        if last > len(self.nodes.left):
            more = np.zeros(max(len(self.nodes.left), last), np.int32)
            self.nodes = self.kernel.Nodes(*(np.concatenate([part, more]) for part in self.nodes))
        for part, values in zip(self.nodes, (operation, left, right), strict=True):
            part[first:last] = values
        self.count = last

        def fill(begin: int, end: int, rows: Any, out: Fingerprints) -> None:
            self.kernel.rank(begin, end, self.nodes, rows, self.keys, out)

        numbers, fresh = self.classes.add(self._in_parts(fill, first, last))
        self.class_of.append(numbers)
        self.shortest.append(first + fresh)

    # Lengths -----------------------------------------------------------------------------------

    def _add_atoms(self) -> None:
        """The formulas of length 1: two variables may have equal values, and be one node."""
        from ..kernels.opcodes import COPY

        rows = [
            self.sample.values[atom.name].ravel()
            if isinstance(atom, Name)
            else np.full(self.points, atom.value)
            for atom in self.grammar.atoms
        ]
        self._keep(np.concatenate(rows))
        copies = self.kernel.Combination(0, len(rows), 0, 1, np.array([(COPY, 1)], np.int32), False)
        numbers, fresh = self.numbering.add(self._fingerprints(copies, 0, len(rows)))
        self._keep(np.concatenate([rows[place] for place in fresh]))
        # An atom's left operand is its number in the grammar.
        self._add_nodes(COPY, fresh, np.zeros(len(fresh)))
        self.ways.append(np.bincount(numbers, minlength=len(fresh)).astype(np.float64))

    def _combinations(self, length: int) -> list[Any]:
        """What formulas of a length are made of: by the length of their longer operand."""
        ends = self.ends
        made = []
        for big in range(max(length // 2, 1), length):
            small = length - 1 - big
            variants = []
            for name in self.grammar.binary if small else self.grammar.unary:
                operator = OPERATORS[name]
                # Whether the small node comes second; without one, it does.
                places = (0,) if operator.commutative else (0, 1)
                variants += [(operator.opcode, place) for place in (places if small else (1,))]
            first, end = (ends[small - 1], ends[small]) if small else (0, 1)
            if variants and first < end and ends[big - 1] < ends[big]:
                table, nodes = np.array(variants, np.int32), (ends[big - 1], ends[big], first, end)
                made.append(self.kernel.Combination(*nodes, table, small == big))
        return made

    def _combine(self, combination: Any, report: Callable[[float], None]) -> None:
        """All formulas of a combination: number them, keep what is new."""
        each, variants = _each(combination), combination.variants
        step = max(1, _CHUNK // each)
        parts = []
        for first in range(combination.first, combination.last, step):
            last = min(first + step, combination.last)
            numbers, fresh = self.numbering.add(self._fingerprints(combination, first, last))
            parts.append(numbers)
            big = first + fresh // each
            small = combination.small + fresh % each // len(variants)
            operation, swapped = variants[fresh % len(variants)].T
            left, right = np.where(swapped == 1, (big, small), (small, big))
            self._add_nodes(operation, left, right)
            report(0.9 * (last - combination.first) / (combination.last - combination.first))
        self.combined.append((combination, np.concatenate(parts)))

    def _count_ways(self, length: int) -> Array:
        """w(v, length) of every node v."""
        found = np.zeros(self.count)
        for combination, numbers in self.combined:
            first, last, small, end, variants, same = combination
            ways = np.zeros((last - first, end - small))
            binary = self.operators[int(variants[0, 0])].arity == 2
            if binary:
                for i in range(1, length - 1):
                    big, other = self.ways[i][first:last], self.ways[length - 1 - i][small:end]
                    ways[: len(big), : len(other)] += np.outer(big, other)
            else:
                ways[:, 0] = self.ways[length - 1][first:last]
            if not ways.any():
                continue
            of_variant = numbers.reshape(*ways.shape, len(variants))
            for variant, (opcode, _) in enumerate(variants.tolist()):
                times = ways
                if binary and self.operators[opcode].commutative:
                    times = 2.0 * ways
                    if same:
                        np.fill_diagonal(times, np.diag(ways))
                which = of_variant[:, :, variant]
                valid = which >= 0
                found += np.bincount(which[valid], times[valid], len(found))
        return found

    # Formulas ----------------------------------------------------------------------------------

    def _codes(self, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.int16]:
        """Formulas in prefix order, as a class file has them."""
        symbols = self.grammar.symbols
        code_of = {opcode: symbols.index(item.name) for opcode, item in self.operators.items()}
        known: dict[int, list[int]] = {}

        def code(node: int) -> list[int]:
            if node not in known:
                operands = [int(self.nodes.left[node]), int(self.nodes.right[node])]
                if node < self.ends[1]:
                    known[node] = operands[:1]
                else:
                    opcode = int(self.nodes.operation[node])
                    known[node] = [code_of[opcode]]
                    for operand in operands[: self.operators[opcode].arity]:
                        known[node] += code(operand)
            return known[node]

        codes = np.full((len(chosen), self.length), -1, np.int16)
        for row, node in enumerate(chosen.tolist()):
            formula = code(node)
            codes[row, : len(formula)] = formula
        return codes


def _each(combination: Any) -> int:
    """Formulas of a combination per node."""
    return int(combination.end - combination.small) * len(combination.variants)
