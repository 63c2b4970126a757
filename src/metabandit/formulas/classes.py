"""The set of formula classes: made once, kept as a file, used by every search."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.batch import Batch
from ..engine.states import LONG
from ..errors import InputError
from ..files import check_new, written
from ..language import OPERATORS, Apply, Constant, Name, Tree
from ..language.compile import Compiled, compile_expression
from ..policies import Progress, Start
from ..priors import Bernoulli, Prior, check_prior
from ..settings import check_horizon, check_threads, check_whole, read_number, write_number
from ..workers import make_workers
from .enumeration import TOLERANCE, check_size, enumerate_formulas
from .grammar import Grammar
from .sample import Sample, check_sample, problems_of

Ints = npt.NDArray[np.int64]

FORMAT = "metabandit formulas"
VERSION = 1
_LONGEST = 30


@dataclass(frozen=True, eq=False)
class Classes:
    """Formulas that rank arms differently, the shortest of each kind.

    grammar, length: all formulas of the grammar up to this length were considered
    sample, tolerance: the points on which they were compared, and the relative difference that counts
        as none
    formulas, invalid, distinct: by length; all formulas, those with a value that is not finite, those
        whose values no shorter or earlier one has
    codes: int8[class, symbol], the formula of each class in prefix order, padded with -1
    sizes: how many formulas each class has
    """

    grammar: Grammar
    length: int
    sample: dict[str, Any]
    tolerance: float
    formulas: list[int]
    invalid: list[int]
    distinct: list[int]
    codes: npt.NDArray[np.int8]
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
        symbols = _symbols(self.grammar)
        atoms = self.grammar.atoms
        made: list[Tree] = []
        for row in self.codes.tolist():
            # Prefix order read backwards: operands come before their operator.
            stack: list[Tree] = []
            for code in reversed([code for code in row if code >= 0]):
                if code < len(atoms):
                    stack.append(atoms[code])
                else:
                    name = symbols[code]
                    arity = OPERATORS[name].arity or 0
                    operands = tuple(stack.pop() for _ in range(arity))
                    stack.append(Apply(name, operands))
            (tree,) = stack
            made.append(tree)
        return made

    def compile(self, progress: Progress | None = None) -> list[Compiled]:
        """The program of each class."""
        made = []
        for position, tree in enumerate(self.trees):
            made.append(compile_expression.__wrapped__(tree))
            if progress is not None and position % 4096 == 0:
                progress(position, len(self))
        return made

    def counts(self) -> list[dict[str, int]]:
        """For each length: formulas, invalid ones, distinct values, classes whose formula it is."""
        classes = np.bincount(self.lengths, minlength=self.length + 1)[1:]
        return [
            {
                "length": position + 1,
                "formulas": self.formulas[position],
                "invalid": self.invalid[position],
                "distinct": self.distinct[position],
                "classes": int(classes[position]),
            }
            for position in range(self.length)
        ]

    @property
    def header(self) -> dict[str, Any]:
        """What the classes are of; two sets with the same header are the same."""
        return _header(self.grammar, self.length, self.sample, self.tolerance)

    def save(self, path: Path, *, force: bool = False) -> None:
        """Write the file; one that exists is overwritten only if `force` says so."""
        check_path(path, force=force)
        header = {
            **self.header,
            "counts": {
                "formulas": self.formulas,
                "invalid": self.invalid,
                "distinct": self.distinct,
            },
        }
        with written(path, "the classes") as file:
            np.savez_compressed(
                file,
                header=np.frombuffer(json.dumps(header).encode(), np.uint8),
                codes=self.codes,
                sizes=self.sizes,
            )

    @staticmethod
    def load(path: str | Path) -> Classes:
        """Read a file that `save` wrote; what is damaged or of another version is refused."""
        path = Path(path)
        try:
            with np.load(path, allow_pickle=False) as content:
                header = json.loads(bytes(content["header"]))
                codes, sizes = content["codes"], content["sizes"]
            if header["format"] != FORMAT:
                raise ValueError
            version = header["version"]
            if version == VERSION:
                return _check(header, codes, sizes)
        except FileNotFoundError:
            raise InputError(
                f"the class file {path} does not exist; make it with `metabandit formulas --out {path}`"
            ) from None
        except OSError as error:
            raise InputError(f"the class file {path} cannot be read: {error.strerror}") from None
        except (
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            EOFError,
            zipfile.BadZipFile,
            zlib.error,
        ):
            raise InputError(
                f"{path} is no class file, or damaged; make it anew with `metabandit formulas`"
            ) from None
        raise InputError(
            f"the class file {path} has version {version!r}, this program reads {VERSION}; make it anew "
            f"with `metabandit formulas`"
        )


def _check(header: dict[str, Any], codes: Any, sizes: Any) -> Classes:
    """The classes, if all is as it should be; else a ValueError or a KeyError."""
    grammar = Grammar.read(**header["grammar"])
    length = int(header["length"])
    symbols = _symbols(grammar)
    whole = codes.dtype == np.int8 and sizes.dtype == np.int64
    if not whole or codes.ndim != 2 or codes.shape[1] != length or sizes.shape != codes.shape[:1]:
        raise ValueError
    if not len(codes) or codes.min() < -1 or codes.max() >= len(symbols) or (codes[:, 0] < 0).any():
        raise ValueError
    # Every operator takes one place and opens one for each operand: all must be filled at the end.
    arity = np.array([OPERATORS[name].arity or 0 if name in OPERATORS else 0 for name in symbols])
    used = codes >= 0
    ahead = 1 + np.cumsum(np.where(used, arity[codes] - 1, 0), axis=1)
    if (ahead[:, -1] != 0).any() or ((ahead[:, :-1] > 0) != used[:, 1:]).any():
        raise ValueError
    counts = {key: [int(item) for item in values] for key, values in header["counts"].items()}
    return Classes(
        grammar=grammar,
        length=length,
        sample=header["sample"],
        tolerance=float(header["tolerance"]),
        codes=codes,
        sizes=sizes,
        **counts,
    )


def _symbols(grammar: Grammar) -> list[str]:
    """What the codes of a class file mean: variables, constants, then operators."""
    atoms = [
        atom.name if isinstance(atom, Name) else write_number(atom.value)
        for atom in grammar.atoms
        if isinstance(atom, (Name, Constant))
    ]
    return [*atoms, *grammar.operators]


def _header(
    grammar: Grammar, length: int, sample: dict[str, Any], tolerance: float
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "grammar": grammar.to_dict(),
        "length": length,
        "sample": sample,
        "tolerance": tolerance,
    }


def _encode(tree: Tree, places: dict[Any, int], into: list[int]) -> None:
    if isinstance(tree, Apply):
        into.append(places[tree.operator])
        for operand in tree.operands:
            _encode(operand, places, into)
    else:
        into.append(places[tree])


def check_path(path: Path, *, force: bool) -> None:
    """Refuse to write where something is, or where nothing can be written."""
    check_new(path, (".npz",), "a class file", force=force)


def make_classes(
    length: int = 7,
    *,
    grammar: Grammar | None = None,
    sample: Sample | None = None,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Classes:
    """All formulas up to a length, in classes that rank arms alike.

    grammar: what formulas are made of; by default as in the paper
    sample: the points on which they are compared; by default 1024 groups of five arms from domains that
        suit any problem with rewards in [0, 1]
    tolerance: values that differ by this share of the larger one are equal; 0 compares bit for bit

    >>> import metabandit as mb
    >>> mb.make_classes(3).counts()[2]
    {'length': 3, 'formulas': 711, 'invalid': 72, 'distinct': 241, 'classes': 24}
    """
    grammar = grammar or Grammar()
    sample = check_sample(sample)
    length = check_whole(length, "the length of formulas", 1, most=_LONGEST)
    tolerance = read_number(tolerance, "the tolerance")
    if not 0.0 <= tolerance < 0.01:
        raise InputError(f"the tolerance must be at least 0 and less than 0.01, not {tolerance:g}")
    found = enumerate_formulas(
        grammar,
        length,
        sample,
        tolerance=tolerance,
        threads=check_threads(threads),
        progress=progress,
    )
    symbols = grammar.operators
    places: dict[Any, int] = {atom: position for position, atom in enumerate(grammar.atoms)}
    places |= {name: len(places) + position for position, name in enumerate(symbols)}
    codes = np.full((len(found.shortest), length), -1, np.int8)
    for row, tree in enumerate(found.shortest):
        code: list[int] = []
        _encode(tree, places, code)
        codes[row, : len(code)] = code
    return Classes(
        grammar,
        length,
        sample.description,
        tolerance,
        found.formulas,
        found.invalid,
        found.distinct,
        codes,
        found.sizes,
    )


def kept_path(length: int, grammar: Grammar, sample: dict[str, Any], tolerance: float) -> Path:
    """Where a set of classes is kept between runs."""
    header = json.dumps(_header(grammar, length, sample, tolerance), sort_keys=True)
    digest = hashlib.sha256(header.encode()).hexdigest()[:12]
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "metabandit" / f"formulas-{length}-{digest}.npz"


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
    """The same as make_classes, from the file that an earlier call left; else made, and kept."""
    grammar = grammar or Grammar()
    sample = check_sample(sample)
    length = check_whole(length, "the length of formulas", 1, most=_LONGEST)
    path = kept_path(length, grammar, sample.description, tolerance)
    if path.exists():
        try:
            return Classes.load(path)
        except InputError:
            pass  # made anew
    check_size(grammar, length)
    if announce is not None and length >= 6:
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
        if announce is not None:
            announce(f"the classes are not kept for later: {error}")
    return made


def sharpen(
    classes: Classes,
    prior: Prior,
    horizon: int,
    *,
    start: str | Start | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Classes:
    """Join classes whose formulas choose alike wherever play with them leads.

    For two Bernoulli arms. Two formulas are then in one class if they choose the same arm (or toss a
    coin) in every state that play with them reaches in so many plays. Formulas whose index is not finite
    in such a state are left out. Of classes made on `every_state`, this is the sharpest partition.
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
    batch = Batch.of(classes.compile(progress), prior, horizon, begin, make_workers(threads))
    found: list[Ints] = []
    parts = []
    step = 4096
    for first in range(0, len(classes), step):
        which = np.arange(first, min(first + step, len(classes)))
        regret, _, choices = batch.evaluate(which, points=[horizon], with_choices=True)
        playable = np.isfinite(regret)
        found.append(which[playable])
        parts.append(choices[playable])
        if progress is not None:
            progress(int(which[-1]) + 1, len(classes))
    which = np.concatenate(found)
    _, first_of, number = np.unique(np.concatenate(parts), return_index=True, return_inverse=True)
    sizes = np.bincount(number, classes.sizes[which]).astype(np.int64)
    order = np.argsort(first_of)
    problems = problems_of(prior, horizon, begin)
    sample = {**classes.sample, "sharp": True, "problems": problems}
    return replace(
        classes, sample=sample, codes=classes.codes[which[first_of[order]]], sizes=sizes[order]
    )
