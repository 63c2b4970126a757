"""The records of a study: one line of JSON per step that is done.

A line has the step's id, kind and settings, the seed, the versions, how long it took, and the result.
Reports read these lines and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data import read_data
from ..errors import InputError
from ..journal import Journal, read_lines
from ..showing import Shown

if TYPE_CHECKING:
    from ..policies import Policy

VERSION = 1
# Studies, modules beside this one, and the `format` in the first line of their records.
FORMATS = {"maes2012": "metabandit reproduction", "today": "metabandit study today"}
_KEYS = {"id", "kind", "settings", "threads", "versions", "seconds", "result"}


class Records(Shown, dict[str, dict[str, Any]]):
    """The records of a study, by the id of their step.

    Parameters
    ----------
    scale : str
        The budgets of the run: ``quick`` or ``paper``.
    seed : int
        The seed of the run.
    study : str
        ``maes2012``, the paper's, or ``today``.

    Examples
    --------
    >>> from pathlib import Path
    >>> import metabandit as mb
    >>> records = mb.Records.read(Path("docs/reproduction/records.jsonl"))
    >>> round(records.result("floor/free/100")["regret"], 5)
    1.74825
    """

    def __init__(self, scale: str, seed: int, study: str = "maes2012") -> None:
        self.study = study
        self.scale = scale
        self.seed = seed
        self.journal: Journal | None = None

    def headline(self) -> str:
        return f"{len(self)} records of a reproduction, scale {self.scale}, seed {self.seed}"

    def result(self, key: str) -> dict[str, Any]:
        """The result of a step."""
        result: dict[str, Any] = self[key]["result"]
        return result

    def found(self, key: str) -> dict[str, Any] | None:
        """The result of a step, if it was done."""
        return self.result(key) if key in self else None

    def policy(self, given: Mapping[str, Any]) -> Policy:
        """A policy as the settings of a step name it: as text, or as what a step found."""
        from ..policies import policy
        from ..policies.file import PolicyFile

        if "text" in given:
            return policy(given["text"])
        found = self.result(given["of"])
        if "place" in given:
            return policy(found["ranking"][given["place"]]["formula"], start="each-once")
        return read_data(PolicyFile, found["file"]).policy.policy(found["label"])

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record, on disk before anything else happens."""
        self[record["id"]] = record
        if self.journal is not None:
            self.journal.append(record)

    def sort(self, order: Sequence[str]) -> None:
        """Put them in this order; the file keeps the order in which the steps were done."""
        rest = [name for name in self if name not in order]
        for name in (*order, *rest):
            self[name] = self.pop(name)

    def close(self) -> None:
        if self.journal is not None:
            self.journal.close()
            self.journal = None

    @classmethod
    def open(cls, path: Path, scale: str, seed: int, study: str = "maes2012") -> Records:
        """The records of a run that begins, or goes on, with these settings."""
        records = cls(scale, seed, study)
        records.journal = Journal(path)
        try:
            asked = {"scale": scale, "seed": seed}
            values = _read(path, records.journal.read)
            if not values:
                values = [{"format": FORMATS[study], "version": VERSION, **asked}]
                records.journal.clear()
                records.journal.append(values[0])
            header = records._load(values, path)
            for key, value in asked.items():
                if header.get(key) != value:
                    raise InputError(
                        f"{path} is of another run: its {key} is {header.get(key)!r}, not {value!r}; "
                        f"choose another folder (--out)"
                    )
        except BaseException:
            records.close()
            raise
        return records

    @classmethod
    def read(cls, path: Path, study: str = "maes2012") -> Records:
        """The records of a file, to look at."""
        records = cls("", 0, study)
        header = records._load(_read(path, partial(read_lines, path)), path)
        records.scale, records.seed = str(header.get("scale")), header.get("seed", 0)
        return records

    def _load(self, values: list[Any], path: Path) -> dict[str, Any]:
        """Take in the records of a file; returns its first line."""
        header = values[0] if values else None
        if not isinstance(header, dict) or header.get("format") != FORMATS[self.study]:
            raise InputError(
                f"{path} does not hold the records of this study; choose another folder (--out)"
            )
        if header.get("version") != VERSION:
            raise InputError(f"{path} has version {header.get('version')!r}, not {VERSION}")
        for number, record in enumerate(values[1:], 2):
            if not isinstance(record, dict) or not _KEYS <= record.keys():
                raise _damaged(path, f"line {number} is not a record")
            self[record["id"]] = record
        return header


def report_facts(
    records: Records, command: str, *more: tuple[str, str], scale: str = ""
) -> tuple[tuple[str, str], ...]:
    """What a report says of the run: its settings, how to repeat it, and what it was made with."""
    versions = {
        ", ".join(f"{name} {value}" for name, value in record["versions"].items())
        for record in records.values()
    }
    again = f"metabandit reproduce {command} --scale {records.scale} --seed {records.seed}"
    return (
        ("scale", scale or records.scale),
        ("seed", str(records.seed)),
        *more,
        ("command", again),
        ("versions", "; ".join(sorted(versions))),
    )


def _read(path: Path, read: Callable[[], list[Any]]) -> list[Any]:
    try:
        return read()
    except OSError as error:
        raise InputError(f"the records {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise _damaged(path, str(error)) from None


def _damaged(path: Path, why: str) -> InputError:
    return InputError(
        f"the records {path} are damaged: {why}; delete that line, and its step is done again, or choose "
        f"another folder (--out)"
    )
