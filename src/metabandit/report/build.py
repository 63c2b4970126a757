"""From files to a report, and from a report to files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import check_new, written
from ..studies.maes2012.records import Records, is_reproduction
from .content import Report


def load_report(paths: str | Path | Sequence[str | Path]) -> Report:
    """The report of a reproduction's records, or of runs whose commands printed --json to files."""
    paths = [paths] if isinstance(paths, (str, Path)) else paths
    found = [Path(path) / "records.jsonl" if Path(path).is_dir() else Path(path) for path in paths]
    if not found:
        raise InputError("a report needs records: name at least one file")
    if len(found) == 1 and _holds_records(found[0]):
        from ..studies.maes2012.report import reproduction_report

        return reproduction_report(Records.read(found[0]))
    from .runs import join, run_report

    made: list[tuple[str, Report]] = []
    for path in found:
        value = _read(path)
        try:
            made.append((path.stem, run_report(value, f"run{len(made) + 1}")))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InputError):
                raise InputError(f"{path}: {error}") from None
            raise InputError(
                f"{path} is damaged, or no result of a run; a report is made from what `evaluate`, `learn` or "
                f"`search` printed with --json, or from the records of `reproduce`"
            ) from None
    return join(made)


def _holds_records(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return is_reproduction(json.loads(file.readline()))
    except OSError as error:
        raise InputError(f"the records {path} cannot be read: {error.strerror}") from None
    except ValueError:
        return False


def _read(path: Path) -> dict[str, Any]:
    if _holds_records(path):
        raise InputError(f"{path} holds the records of a reproduction: it has a report of its own")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the records {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(
            f"{path} is neither JSON, as the commands print it with --json, nor the records of `reproduce`"
        ) from None
    if not isinstance(value, dict):
        raise InputError(
            f"{path} is no result of a run; a report is made from what `evaluate`, `learn` or `search` printed "
            f"with --json, or from the records of `reproduce`"
        )
    return value


def check_targets(
    out: Path | None, tables: Path | None, figures: Path | None, *, force: bool
) -> None:
    """Refuse what cannot be written, before anything is drawn."""
    if out is not None:
        check_new(out, (".html", ".md"), "a report", force=force)
    for folder in (tables, figures):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is no folder")


def _make(folder: Path, names: Sequence[str], *, force: bool) -> None:
    """Make a folder; refuse to overwrite what is there by these names."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror}") from None
    for path in folder.iterdir():
        if path.stem in names and not force:
            raise InputError(
                f"{path} exists; choose another folder than {folder}, or overwrite it with --force"
            )


def _write(path: Path, text: str) -> None:
    with written(path, "the report") as file:
        file.write(text.encode())


def write_report(
    report: Report,
    out: str | Path | None = None,
    *,
    tables: str | Path | None = None,
    figures: str | Path | None = None,
    formats: str | Sequence[str] = "svg",
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Write a report; what was written.

    out: one page (.html) that needs nothing else; or text and tables (.md), with the pictures of
        `figures` if there is such a folder
    tables: a folder for each table as Markdown and as LaTeX
    figures: a folder for each picture, in the formats svg, png or pdf
    """
    if not isinstance(report, Report):
        raise InputError(f"a report is what load_report gives, not {report!r}")
    if out is None and tables is None and figures is None:
        raise InputError("nothing is to be written: give out, tables or figures")
    formats = [formats] if isinstance(formats, str) else formats
    if not formats:
        raise InputError("no format is given for the pictures: svg, png or pdf")
    from .drawing import FORMATS, save
    from .page import page
    from .writing import as_markdown, latex, markdown

    known = [item.removeprefix(".") for item in FORMATS]
    for name in formats:
        if name not in known:
            raise InputError(f"a picture is one of {', '.join(known)}, not {name!r}")
    target = None if out is None else Path(out)
    places = [None if folder is None else Path(folder) for folder in (tables, figures)]
    check_targets(target, *places, force=force)
    done = []
    names = [[table.id for table in report.tables()], [figure.id for figure in report.figures()]]
    for folder, parts in zip(places, names, strict=True):
        if folder is not None:
            _make(folder, parts, force=force)
    if places[0] is not None:
        for table in report.tables():
            for suffix, render in ((".md", markdown), (".tex", latex)):
                path = places[0] / f"{table.id}{suffix}"
                above = f"{table.caption}\n\n" if table.caption and suffix == ".md" else ""
                _write(path, above + render(table))
                done.append(path)
    pictures = {}
    if places[1] is not None:
        for figure in report.figures():
            for name in formats:
                path = places[1] / f"{figure.id}.{name}"
                save(figure, path)
                done.append(path)
            if target is not None:
                # The first of these that there is.
                kind = next(item for item in known if item in formats)
                path = places[1] / f"{figure.id}.{kind}"
                link = Path(os.path.relpath(path, target.parent)).as_posix()
                plain = re.fullmatch(r"[\w./-]+", link)
                pictures[figure.id] = link if plain else f"<{link}>"
    if target is not None:
        text = page(report, progress) if target.suffix == ".html" else as_markdown(report, pictures)
        _write(target, text)
        done.insert(0, target)
    return done
