"""The set of formula classes, and its file."""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..files import check_new, kept_path, written
from ..language import Apply, Tree
from ..language.compile import Compiled, compile_expression
from ..policies import Progress
from ..showing import Shown
from .grammar import Grammar, arity

Ints = npt.NDArray[np.int64]

FORMAT = "metabandit formulas"
VERSION = 2
# Values that differ by this share of the larger one are equal.
TOLERANCE = 1e-12
_DAMAGED = (ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Classes(Shown):
    """Formulas that rank arms differently, the shortest of each kind.

    Attributes
    ----------
    grammar, length : Grammar, int
        All formulas of the grammar up to this length were considered.
    sample : dict
        What points they were compared on.
    tolerance : float
        The relative difference that counts as none.
    formulas, invalid, distinct : list of int
        By length: all formulas, those with a value that is not finite, and those whose values no
        shorter or earlier one has.
    codes : array of int16, [class, symbol]
        The formula of each class in prefix order, as positions in the grammar's symbols, padded with -1.
    sizes : array of int64
        How many formulas each class has.

    Examples
    --------
    >>> import metabandit as mb
    >>> classes = mb.make_classes(2)
    >>> len(classes), sum(classes.formulas)
    (7, 54)
    """

    grammar: Grammar
    length: int
    sample: dict[str, Any]
    tolerance: float
    formulas: list[int]
    invalid: list[int]
    distinct: list[int]
    codes: npt.NDArray[np.int16]
    sizes: Ints

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def lengths(self) -> Ints:
        """The length of each class's formula."""
        return np.asarray((self.codes >= 0).sum(axis=1))

    @cached_property
    def trees(self) -> list[Tree]:
        """The formula of each class."""
        symbols = self.grammar.symbols
        made: list[Tree] = []
        for row in self.codes.tolist():
            # Prefix order read backwards: operands come before their operator.
            stack: list[Tree] = []
            for code in reversed([code for code in row if code >= 0]):
                symbol = symbols[code]
                if isinstance(symbol, str):
                    symbol = Apply(symbol, tuple(stack.pop() for _ in range(arity(symbol))))
                stack.append(symbol)
            made += stack
        return made

    def compile(self, progress: Progress | None = None) -> list[Compiled]:
        """The program of each class."""
        made = []
        for position, tree in enumerate(self.trees):
            made.append(compile_expression.__wrapped__(tree))
            if progress is not None and position % 4096 == 0:
                progress(position, len(self))
        return made

    def headline(self) -> str:
        return (
            f"{len(self):,} classes of {sum(self.formulas):,} formulas up to length {self.length}"
        )

    def rows(self) -> list[dict[str, str]]:
        return [{key: f"{value:,}" for key, value in row.items()} for row in self.counts()]

    def records(self) -> list[dict[str, Any]]:
        """The counts of each length."""
        return list(map(dict, self.counts()))

    def counts(self) -> list[dict[str, int]]:
        """For each length: formulas, invalid ones, distinct values, classes whose formula it is."""
        classes = np.bincount(self.lengths, minlength=self.length + 1)[1:].tolist()
        names = ("length", "formulas", "invalid", "distinct", "classes")
        columns = (range(1, self.length + 1), self.formulas, self.invalid, self.distinct, classes)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    @property
    def header(self) -> dict[str, Any]:
        """What identifies the classes: two sets with the same header are the same."""
        return make_header(self.grammar, self.length, self.sample, self.tolerance)

    def save(self, path: Path, *, force: bool = False) -> None:
        """Write the file; overwrite one that exists only if `force` says so."""
        check_path(path, force=force)
        counts = {name: getattr(self, name) for name in ("formulas", "invalid", "distinct")}
        header = json.dumps({**self.header, "counts": counts}).encode()
        with written(path, "the classes") as file:
            np.savez_compressed(
                file,
                header=np.frombuffer(header, np.uint8),
                codes=self.codes,
                sizes=self.sizes,
            )

    @staticmethod
    def load(path: str | Path) -> Classes:
        """Read a file that `save` wrote; refuse what is damaged or of another version."""
        path = Path(path)
        try:
            with np.load(path, allow_pickle=False) as content:
                header = json.loads(bytes(content["header"]))
                codes, sizes = content["codes"], content["sizes"]
            if header["format"] != FORMAT:
                raise ValueError
            version = header["version"]
            if version == VERSION:
                return _read(header, codes, sizes)
        except FileNotFoundError:
            raise InputError(
                f"the class file {path} does not exist; make it with `metabandit formulas --out {path}`"
            ) from None
        except OSError as error:
            raise InputError(f"the class file {path} cannot be read: {error.strerror}") from None
        except _DAMAGED:
            raise InputError(
                f"{path} is not a class file, or it is damaged; make it again with `metabandit formulas`"
            ) from None
        raise InputError(
            f"the class file {path} has version {version!r}, this program reads {VERSION}; make it "
            f"again with `metabandit formulas`"
        )


def make_header(
    grammar: Grammar, length: int, sample: dict[str, Any], tolerance: float
) -> dict[str, Any]:
    """What identifies a set of classes."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "grammar": grammar.to_dict(),
        "length": length,
        "sample": sample,
        "tolerance": tolerance,
    }


def path_of(length: int, grammar: Grammar, sample: dict[str, Any], tolerance: float) -> Path:
    """Where a set of classes is kept between runs."""
    header = make_header(grammar, length, sample, tolerance)
    return kept_path(f"formulas-{length}", header, ".npz")


def check_path(path: Path, *, force: bool) -> None:
    """Refuse to overwrite a file, or to write where that is not possible."""
    check_new(path, (".npz",), "a class file", force=force)


def _read(header: dict[str, Any], codes: Any, sizes: Any) -> Classes:
    """The classes, if all is as it should be; else a ValueError or a KeyError."""
    grammar = Grammar.read(**header["grammar"])
    length = int(header["length"])
    operands = np.array([arity(symbol) for symbol in grammar.symbols])
    whole = codes.dtype == np.int16 and sizes.dtype == np.int64
    if not whole or codes.ndim != 2 or codes.shape[1] != length or sizes.shape != codes.shape[:1]:
        raise ValueError
    if not len(codes) or codes.min() < -1 or codes.max() >= len(operands) or codes[:, 0].min() < 0:
        raise ValueError
    # Every operator takes one place and opens one for each operand: all must be filled at the end.
    used = codes >= 0
    ahead = 1 + np.cumsum(np.where(used, operands[codes] - 1, 0), axis=1)
    if (ahead[:, -1] != 0).any() or ((ahead[:, :-1] > 0) != used[:, 1:]).any():
        raise ValueError
    return Classes(
        grammar=grammar,
        length=length,
        sample=header["sample"],
        tolerance=float(header["tolerance"]),
        codes=codes,
        sizes=sizes,
        **{key: [int(item) for item in values] for key, values in header["counts"].items()},
    )
