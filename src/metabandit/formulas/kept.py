"""Classes kept between runs, in the user's cache folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..policies import Progress
from .classes import Classes, make_header
from .enumeration import check_length, check_size, make_classes
from .fingerprints import TOLERANCE
from .grammar import Grammar
from .sample import Sample, check_sample


def kept_path(length: int, grammar: Grammar, sample: dict[str, Any], tolerance: float) -> Path:
    """Where a set of classes is kept."""
    header = json.dumps(make_header(grammar, length, sample, tolerance), sort_keys=True)
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
    length = check_length(length)
    path = kept_path(length, grammar, sample.description, tolerance)
    if path.exists():
        try:
            return Classes.load(path)
        except InputError:
            pass  # made again
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
