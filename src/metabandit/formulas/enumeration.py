"""All formulas up to a length, bottom-up, and their partition into classes that rank arms alike.

Formulas with the same values on all sample points are one node, so a longer formula is made of nodes,
not of formulas: that leaves a few million things to compute out of billions. Each node knows how many
formulas of each length it stands for, so that the counts are those of the whole space. Nodes that order
the arms of every group alike are one class, for which its shortest formula stands.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.threads import in_threads
from ..errors import InputError
from ..language import OPERATORS, Apply, Constant, Name, Tree
from ..memory import free_memory
from ..policies import Progress
from ..priors.families import Array
from .grammar import Grammar
from .nodes import Index, Nodes, kernel_sample
from .sample import Sample

Ints = npt.NDArray[np.int64]

# Values that differ by this share of the larger one are equal.
TOLERANCE = 1e-12

# Formulas that a thread takes at a time, and that are numbered at a time.
_SHARE = 20_000
_CHUNK = 2_000_000
# What an enumeration takes for each formula of the space, by the last length, on two cores.
_BYTES = 4.0
_SECONDS = 1.5e-6
_MOST_SECONDS = 4 * 3600.0


@dataclass(frozen=True, eq=False)
class Enumeration:
    """What an enumeration found.

    formulas, invalid, distinct: by length; all formulas, those with a value that is not finite, and
        those with values that no shorter or earlier one has
    shortest: the formula of each class
    sizes: how many formulas each class has
    """

    formulas: list[int]
    invalid: list[int]
    distinct: list[int]
    shortest: list[Tree]
    sizes: Ints


def check_size(grammar: Grammar, length: int) -> None:
    """Refuse a length whose formulas would not fit in memory or time."""
    totals = np.cumsum(grammar.counts(length))
    free = free_memory()
    fits = [
        position + 1
        for position, total in enumerate(totals.tolist())
        if total * _BYTES <= free and total * _SECONDS <= _MOST_SECONDS
    ]
    if len(fits) == length:
        return
    total = int(totals[-1])
    raise InputError(
        f"there are {total:,} formulas up to length {length}: they would take about "
        f"{total * _SECONDS / 3600:.3g} hours and {total * _BYTES / 1e9:.3g} GB of memory "
        f"({free / 1e9:.3g} GB are free, and {_MOST_SECONDS / 3600:g} hours are the most); length "
        f"{fits[-1] if fits else 0} fits"
        + (f" ({int(totals[fits[-1] - 1]):,} formulas)" if fits else "")
        + ", or leave operators, variables or constants out"
    )


@dataclass
class _Batch:
    """Formulas made of nodes first, ..., last - 1 and nodes small, ..., end - 1, and their numbers."""

    first: int
    last: int
    small: int
    end: int
    variants: npt.NDArray[np.int32]
    binary: bool
    same: bool
    numbers: npt.NDArray[np.int32] | None = None


class _Enumerator:
    def __init__(
        self, grammar: Grammar, length: int, sample: Sample, tolerance: float, threads: int
    ) -> None:
        from ..kernels import opcodes, vectors

        self.kernel = vectors
        self.grammar = grammar
        self.length = length
        self.points = sample.arms * sample.groups
        self.threads = threads
        self.local = threading.local()
        self.nodes = Nodes()
        self.index = Index()
        self.classes = Index()
        self.class_of: list[npt.NDArray[np.int32]] = []
        self.shortest: list[Ints] = []
        # Nodes of length l are ends[l - 1], ..., ends[l] - 1.
        self.ends = [0]
        self.batches: list[_Batch] = []
        self.sample = kernel_sample(sample, tolerance, stored=0)
        self.variables = sample.values
        self.copy = opcodes.COPY
        self.rows = np.zeros(0)
        self.version = 0

    # Values ------------------------------------------------------------------------------------

    def _file(self) -> tuple[Any, Any]:
        """This thread's rows: those of the short nodes, and room."""
        known = getattr(self.local, "file", None)
        if known is None or known[0] != self.version:
            file = np.zeros(len(self.rows) + self.kernel.ROOM * self.points)
            file[: len(self.rows)] = self.rows
            known = self.local.file = (self.version, file, self.kernel.room())
        return known[1], known[2]

    def _view(self) -> Any:
        nodes = self.nodes
        return self.kernel.Nodes(nodes.operation, nodes.left, nodes.right)

    def _store(self, first: int, last: int) -> None:
        """Keep the values of short nodes, which are operands of longer ones."""
        self._keep_rows(np.concatenate([self.rows, np.zeros((last - first) * self.points)]))
        file, room = self._file()
        self.kernel.store(first, last, self._view(), self.sample, file, room)
        self._keep_rows(file[: len(self.rows)].copy())

    def _keep_rows(self, rows: Array) -> None:
        self.rows = rows
        self.sample = self.sample._replace(stored=len(rows) // self.points)
        self.version += 1  # every thread takes them over

    def _fingerprints(self, batch: _Batch, first: int, last: int) -> npt.NDArray[np.uint64]:
        each = (batch.end - batch.small) * len(batch.variants)
        out = np.empty((last - first) * each, np.uint64)
        step = max(1, _SHARE // each)

        def work(begin: int) -> None:
            end = min(begin + step, last)
            file, room = self._file()
            self.kernel.expand(
                begin,
                end,
                batch.small,
                batch.end,
                batch.variants,
                batch.same,
                self._view(),
                self.sample,
                file,
                room,
                out[(begin - first) * each : (end - first) * each],
            )

        in_threads(work, range(first, last, step), self.threads)
        return out

    def _rank(self, first: int, last: int) -> None:
        """Put new nodes into classes."""
        out = np.empty(last - first, np.uint64)

        def work(begin: int) -> None:
            end = min(begin + _SHARE, last)
            file, room = self._file()
            which = np.arange(begin, end)
            self.kernel.rank(
                which, self._view(), self.sample, file, room, out[begin - first : end - first]
            )

        in_threads(work, range(first, last, _SHARE), self.threads)
        numbers, fresh = self.classes.add(out)
        self.class_of.append(numbers)
        self.shortest.append(first + fresh)

    # Lengths -----------------------------------------------------------------------------------

    def _variants(self, *, binary: bool) -> npt.NDArray[np.int32]:
        """Operations, and whether the small node comes second (or there is none)."""
        rows = []
        for name in self.grammar.binary if binary else self.grammar.unary:
            operator = OPERATORS[name]
            if binary:
                rows.append((operator.opcode, 0))
            if not (binary and operator.commutative):
                rows.append((operator.opcode, 1))
        return np.array(rows, np.int32).reshape(-1, 2)

    def _plan(self, length: int) -> list[_Batch]:
        """What formulas of a length are made of."""
        ends = self.ends
        made = []
        for big in range(length // 2, length):
            small = length - 1 - big
            binary = small > 0
            variants = self._variants(binary=binary)
            place = (ends[small - 1], ends[small]) if binary else (0, 1)
            if len(variants) and place[0] < place[1] and ends[big - 1] < ends[big]:
                made.append(
                    _Batch(ends[big - 1], ends[big], *place, variants, binary, small == big)
                )
        return made

    def run(self, progress: Progress | None) -> Enumeration:
        totals = self.grammar.counts(self.length)
        small = max((self.length - 1) // 2, 1)
        done = 0
        counts = np.zeros((0, self.length + 1))
        sums = np.zeros(0)
        invalid = []
        for length in range(1, self.length + 1):
            before = self.nodes.count
            if length == 1:
                self._first()
            else:
                for batch in self._plan(length):
                    self._expand(batch, length, done, totals, progress)
                    self.batches.append(batch)
            self.ends.append(self.nodes.count)
            if 1 < length <= small:
                self._store(before, self.nodes.count)
            grown = np.zeros((self.nodes.count - len(counts), self.length + 1))
            if length < self.length:
                counts = np.concatenate([counts, grown])
            sums = np.concatenate([sums, np.zeros(len(grown))])
            found = np.zeros(self.nodes.count)
            if length == 1:
                found[:] = self.multiplicity
            else:
                self._count(length, counts, found)
            if length < self.length:
                counts[:, length] = found
            sums += found
            invalid.append(totals[length - 1] - int(found.sum()))
            done += totals[length - 1]
            if progress is not None:
                progress(done, sum(totals))
        class_of = np.concatenate(self.class_of)
        sizes = np.bincount(class_of, sums, self.classes.count)
        chosen = np.concatenate(self.shortest)
        return Enumeration(
            totals,
            invalid,
            np.diff(self.ends).tolist(),
            self._trees(chosen),
            np.rint(sizes).astype(np.int64),
        )

    def _first(self) -> None:
        """The formulas of length 1: two variables may have equal values, and be one node."""
        rows = [
            self.variables[atom.name].ravel()
            if isinstance(atom, Name)
            else np.full(self.points, atom.value)
            for atom in self.grammar.atoms
            if isinstance(atom, (Name, Constant))
        ]
        self._keep_rows(np.concatenate(rows))
        out = np.empty(len(rows), np.uint64)
        file, room = self._file()
        variants = np.array([(self.copy, 1)], np.int32)
        self.kernel.expand(
            0, len(rows), 0, 1, variants, False, self._view(), self.sample, file, room, out
        )
        numbers, fresh = self.index.add(out)
        self.multiplicity = np.bincount(numbers, minlength=len(fresh)).astype(np.float64)
        self.atom_of = fresh
        self.nodes.add(self.copy, np.arange(len(fresh)), np.zeros(len(fresh), np.int64))
        self._keep_rows(np.concatenate([rows[place] for place in fresh]))
        self._rank(0, len(fresh))

    def _expand(
        self,
        batch: _Batch,
        length: int,
        done: int,
        totals: Sequence[int],
        progress: Progress | None,
    ) -> None:
        """All formulas of a batch: number them, keep what is new."""
        each = (batch.end - batch.small) * len(batch.variants)
        step = max(1, _CHUNK // each)
        parts = []
        nodes = batch.last - batch.first
        for first in range(batch.first, batch.last, step):
            last = min(first + step, batch.last)
            numbers, fresh = self.index.add(self._fingerprints(batch, first, last))
            parts.append(numbers)
            big = first + fresh // each
            small = batch.small + fresh % each // len(batch.variants)
            variant = fresh % len(batch.variants)
            swapped = batch.variants[variant, 1] == 1
            before = self.nodes.count
            self.nodes.add(
                batch.variants[variant, 0],
                np.where(swapped, big, small),
                np.where(swapped, small if batch.binary else 0, big),
            )
            self._rank(before, self.nodes.count)
            if progress is not None:
                share = (last - batch.first) / nodes
                progress(int(done + 0.9 * share * totals[length - 1]), sum(totals))
        batch.numbers = np.concatenate(parts)

    def _count(self, length: int, counts: Array, found: Array) -> None:
        """How many formulas of a length each node stands for."""
        for batch in self.batches:
            assert batch.numbers is not None
            big = counts[batch.first : batch.last]
            small = counts[batch.small : batch.end]
            if batch.binary:
                # All ways to divide the length between the two operands.
                ways = np.zeros((len(big), len(small)))
                for left in range(1, length - 1):
                    ways += np.outer(big[:, left], small[:, length - 1 - left])
            else:
                ways = big[:, length - 1 : length].copy()
            if not ways.any():
                continue
            numbers = batch.numbers.reshape(len(big), -1, len(batch.variants))
            for variant, (opcode, swapped) in enumerate(batch.variants.tolist()):
                times = ways
                both = batch.binary and not swapped and _is_commutative(opcode)
                if both:
                    times = 2.0 * ways
                    if batch.same:
                        np.fill_diagonal(times, np.diag(ways))
                which = numbers[:, :, variant]
                valid = which >= 0
                found += np.bincount(which[valid], times[valid], len(found))

    # Trees -------------------------------------------------------------------------------------

    def _trees(self, chosen: Ints) -> list[Tree]:
        names = {item.opcode: name for name, item in OPERATORS.items() if item.own is None}
        arity = {item.opcode: item.arity for item in OPERATORS.values() if item.own is None}
        atoms = self.grammar.atoms
        known: dict[int, Tree] = {}

        def tree(node: int) -> Tree:
            if node not in known:
                operation = int(self.nodes.operation[node])
                if node < self.ends[1]:
                    known[node] = atoms[int(self.atom_of[node])]
                else:
                    operands = [int(self.nodes.left[node]), int(self.nodes.right[node])]
                    inner = tuple(tree(item) for item in operands[: arity[operation]])
                    known[node] = Apply(names[operation], inner)
            return known[node]

        return [tree(int(node)) for node in chosen]


def _is_commutative(opcode: int) -> bool:
    return any(item.commutative and item.opcode == opcode for item in OPERATORS.values())


def enumerate_formulas(
    grammar: Grammar,
    length: int,
    sample: Sample,
    *,
    tolerance: float,
    threads: int,
    progress: Progress | None = None,
) -> Enumeration:
    """All formulas of a grammar up to a length, in classes that rank the arms of a sample alike."""
    check_size(grammar, length)
    return _Enumerator(grammar, length, sample, tolerance, threads).run(progress)
