"""From files to a report, and from a report to files."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError, shown
from ..files import check_new, read_text, written
from ..progress import Told, with_progress
from .content import FORMATS, Report
from .runs import SOURCES, join, run_report, study_of
from .writing import as_markdown, as_page, latex, markdown, save


def load_report(paths: str | Path | Sequence[str | Path]) -> Report:
    """Make the report of a study's records, or of single runs.

    Parameters
    ----------
    paths : path or sequence of paths
        The folder or the ``records.jsonl`` of a reproduction; an advice; or files with what
        ``evaluate``, ``learn`` or ``search`` printed with ``--json``, which become one report.

    Returns
    -------
    Report
        Its title, sections, tables and figures; `write_report` writes it to files.

    Examples
    --------
    >>> import metabandit as mb
    >>> report = mb.load_report("docs/reproduction")
    >>> report.title
    'Reproduction of Maes, Wehenkel and Ernst (2012)'
    """
    paths = [paths] if isinstance(paths, (str, Path)) else paths
    found = [Path(path) / "records.jsonl" if Path(path).is_dir() else Path(path) for path in paths]
    if not found:
        raise InputError("a report needs records: name at least one file")
    study = _study(found[0])
    if len(found) == 1 and study is not None:
        with _as_damage(found[0], "no records of `reproduce`"):
            report: Report = study.read_report(found[0])
        return report
    return join([(path.stem, _load_run(path, f"run{n}")) for n, path in enumerate(found, 1)])


def _study(path: Path) -> Any:
    """The study that made a file of records, or None."""
    try:
        header = json.loads(read_text(path).partition("\n")[0])
    except InputError:
        raise
    except (ValueError, RecursionError):
        return None
    return study_of(header)


@contextmanager
def _as_damage(path: object, what: str) -> Iterator[None]:
    """Turn what goes wrong with the values of a file, also while they are drawn, into its damage."""
    try:
        with warnings.catch_warnings():
            # Of letters that a font lacks, or values that a picture cannot show.
            warnings.simplefilter("ignore")
            yield
    except InputError:
        raise
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise InputError(
            f"{shown(path)} is damaged, or {what} ({type(error).__name__} in its values)"
        ) from None


def _load_run(path: Path, prefix: str) -> Report:
    """The report of a file with one run."""
    if _study(path) is not None:
        raise InputError(f"{path} holds the records of a reproduction: it has a report of its own")
    content = read_text(path)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise InputError(
            f"{path} is neither JSON, as the commands print it with --json, nor the records of `reproduce`"
        ) from None
    if not isinstance(value, dict):
        raise InputError(f"{path} is not the result of a run; {SOURCES}")
    with _as_damage(path, f"not the result of a run; {SOURCES}"):
        try:
            return run_report(value, prefix)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def check_targets(
    out: Path | None, tables: Path | None, figures: Path | None, *, force: bool
) -> None:
    """Refuse what cannot be written, before anything is drawn."""
    if out is not None:
        check_new(out, (".html", ".md"), "a report", force=force)
    for folder in (tables, figures):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is not a folder")


@with_progress("drawing")
def write_report(
    report: Report,
    out: str | Path | None = None,
    *,
    tables: str | Path | None = None,
    figures: str | Path | None = None,
    formats: str | Sequence[str] = "svg",
    force: bool = False,
    progress: Told = None,
) -> list[Path]:
    """Write a report to files.

    Parameters
    ----------
    report : Report
        What `load_report` gives.
    out : path, optional
        One page (``.html``) that needs nothing else; or text and tables (``.md``), with the
        pictures of `figures` if that folder is given.
    tables : path, optional
        A folder for each table as Markdown and as LaTeX.
    figures : path, optional
        A folder for each picture.
    formats : str or sequence of str
        Formats of the pictures: ``svg``, ``png``, ``pdf``.
    force : bool
        Overwrite files.
    progress : callable, optional
        Called with the number of pictures drawn for the page, and with how many there are.

    Returns
    -------
    list of Path
        The files that were written, `out` first.

    Examples
    --------
    >>> import metabandit as mb
    >>> report = mb.load_report("docs/reproduction")
    >>> mb.write_report(report, "report.html")  # doctest: +SKIP
    [PosixPath('report.html')]
    """
    if not isinstance(report, Report):
        raise InputError(f"a report is what load_report gives, not {report!r}")
    if out is None and tables is None and figures is None:
        raise InputError("nothing is to be written: give out, tables or figures")
    formats = [formats] if isinstance(formats, str) else formats
    if not formats:
        raise InputError("no format is given for the pictures: svg, png or pdf")
    for name in formats:
        if name not in FORMATS:
            raise InputError(
                f"a picture is one of {', '.join(FORMATS)}, not {name!r}", about="formats"
            )
    target, tabled, drawn = (
        None if path is None else Path(path) for path in (out, tables, figures)
    )
    check_targets(target, tabled, drawn, force=force)
    done = []
    for folder, parts in ((tabled, report.tables()), (drawn, report.figures())):
        if folder is not None:
            _make_folder(folder, {part.id for part in parts}, force=force)
    if tabled is not None:
        for table in report.tables():
            above = f"{table.caption}\n\n" if table.caption else ""
            done.append(_write(tabled / f"{table.id}.md", above + markdown(table)))
            done.append(_write(tabled / f"{table.id}.tex", latex(table)))
    # Some values are looked at only now.
    with _as_damage("what the report is made from", "no result of a run"):
        if drawn is not None:
            for figure in report.figures():
                done += [save(figure, drawn / f"{figure.id}.{name}") for name in formats]
        if target is not None:
            if target.suffix == ".html":
                text = as_page(report, progress)
            else:
                text = as_markdown(report, _links(report, target, drawn, formats))
            done.insert(0, _write(target, text))
    return done


def _make_folder(folder: Path, names: set[str], *, force: bool) -> None:
    """Make a folder for parts of a report; refuse to overwrite files with their names."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror}") from None
    for path in folder.iterdir():
        if path.stem in names and not force:
            raise InputError(
                f"{path} exists; choose another folder than {folder}, or overwrite it with --force"
            )


def _write(path: Path, text: str) -> Path:
    with written(path, "the report") as file:
        file.write(text.encode("utf-8", "backslashreplace"))
    return path


def _links(
    report: Report, target: Path, figures: Path | None, formats: Sequence[str]
) -> dict[str, str]:
    """Where the pictures of a Markdown file are, as it links to them."""
    if figures is None:
        return {}
    folder = Path(os.path.relpath(figures, target.parent))
    kind = next(name for name in FORMATS if name in formats)
    links = {}
    for figure in report.figures():
        link = (folder / f"{figure.id}.{kind}").as_posix()
        links[figure.id] = link if re.fullmatch(r"[\w./-]+", link) else f"<{link}>"
    return links
