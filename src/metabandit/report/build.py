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
from .content import FORMATS, Report
from .registry import study_of


def load_report(paths: str | Path | Sequence[str | Path]) -> Report:
    """Make the report of a study's records, or of single runs.

    Parameters
    ----------
    paths : path or sequence of paths
        The folder or the ``records.jsonl`` of a reproduction; or files with what ``evaluate``,
        ``learn`` or ``search`` printed with ``--json``, which become one report.

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
        report: Report = study.read_report(found[0])
        return report
    from .runs import join

    return join([(path.stem, _load_run(path, f"run{n}")) for n, path in enumerate(found, 1)])


def _study(path: Path) -> Any:
    """The study that made a file of records, or None."""
    try:
        with path.open(encoding="utf-8") as file:
            header = json.loads(file.readline())
    except OSError as error:
        raise InputError(f"the records {path} cannot be read: {error.strerror}") from None
    except ValueError:
        return None
    return study_of(header)


def _load_run(path: Path, prefix: str) -> Report:
    """The report of a file with one run."""
    from .runs import SOURCES, run_report

    if _study(path) is not None:
        raise InputError(f"{path} holds the records of a reproduction: it has a report of its own")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise InputError(
            f"{path} is neither JSON, as the commands print it with --json, nor the records of `reproduce`"
        ) from None
    if not isinstance(value, dict):
        raise InputError(f"{path} is no result of a run; {SOURCES}")
    try:
        return run_report(value, prefix)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError):
        raise InputError(f"{path} is damaged, or no result of a run; {SOURCES}") from None


def check_targets(
    out: Path | None, tables: Path | None, figures: Path | None, *, force: bool
) -> None:
    """Refuse what cannot be written, before anything is drawn."""
    if out is not None:
        check_new(out, (".html", ".md"), "a report", force=force)
    for folder in (tables, figures):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is no folder")


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
    formats = _check_formats(formats)
    target, tabled, drawn = (
        None if path is None else Path(path) for path in (out, tables, figures)
    )
    check_targets(target, tabled, drawn, force=force)
    _make_folder(tabled, [table.id for table in report.tables()], force=force)
    _make_folder(drawn, [figure.id for figure in report.figures()], force=force)
    done = _write_parts(report, tabled, drawn, formats)
    if target is not None:
        _write_text(target, _text(report, target, drawn, formats, progress))
        done.insert(0, target)
    return done


def _check_formats(formats: str | Sequence[str]) -> Sequence[str]:
    formats = [formats] if isinstance(formats, str) else formats
    if not formats:
        raise InputError("no format is given for the pictures: svg, png or pdf")
    for name in formats:
        if name not in FORMATS:
            raise InputError(f"a picture is one of {', '.join(FORMATS)}, not {name!r}")
    return formats


def _make_folder(folder: Path | None, names: Sequence[str], *, force: bool) -> None:
    """Make a folder, if one is given; refuse to overwrite files with these names."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror}") from None
    for path in folder.iterdir():
        if path.stem in names and not force:
            raise InputError(
                f"{path} exists; choose another folder than {folder}, or overwrite it with --force"
            )


def _write_text(path: Path, text: str) -> Path:
    with written(path, "the report") as file:
        file.write(text.encode())
    return path


def _write_parts(
    report: Report, tables: Path | None, figures: Path | None, formats: Sequence[str]
) -> list[Path]:
    """Each table and each picture as a file."""
    from .drawing import save
    from .writing import latex, markdown

    done = []
    if tables is not None:
        for table in report.tables():
            above = f"{table.caption}\n\n" if table.caption else ""
            done.append(_write_text(tables / f"{table.id}.md", above + markdown(table)))
            done.append(_write_text(tables / f"{table.id}.tex", latex(table)))
    if figures is not None:
        for figure in report.figures():
            done += [save(figure, figures / f"{figure.id}.{name}") for name in formats]
    return done


def _text(
    report: Report,
    target: Path,
    figures: Path | None,
    formats: Sequence[str],
    progress: Callable[[int, int], None] | None,
) -> str:
    """The report as a page, or as Markdown with links to its pictures."""
    if target.suffix == ".html":
        from .page import as_page

        return as_page(report, progress)
    from .writing import as_markdown

    links = {}
    if figures is not None:
        folder = Path(os.path.relpath(figures, target.parent))
        kind = next(name for name in FORMATS if name in formats)
        for figure in report.figures():
            link = (folder / f"{figure.id}.{kind}").as_posix()
            links[figure.id] = link if re.fullmatch(r"[\w./-]+", link) else f"<{link}>"
    return as_markdown(report, links)
