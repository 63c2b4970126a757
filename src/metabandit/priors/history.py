"""Past tests as a file has them: which column is what, and the counts or means of each arm."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..settings import check_keys
from ..sheets import Sheet, is_blank, make_sheet, read_sheet
from .families import Array

PROBLEM, ARM, PLAYS, SUCCESSES = "problem", "arm", "plays", "successes"
MEAN, ERROR, DEVIATION, REWARD = "mean", "error", "deviation", "reward"
# Words in titles that say what a column holds; of several columns that could be the test, or the arm,
# the one whose word comes first here is.
_WORDS = {
    PROBLEM: "problem test experiment campaign mailing newsletter email id key nr no number index week "
    "month date day",
    ARM: "arm variant variation version creative group banner treatment option cell",
    PLAYS: "plays sent trials n impressions visitors visits views sends delivered recipients users "
    "sessions shown mails emails customers",
    SUCCESSES: "successes clicks conversions wins orders purchases opens converted clicked sales signups "
    "responses hits opened bought",
    MEAN: "mean rate ctr average avg cvr",
    ERROR: "error se stderr sem",
    DEVIATION: "sd std stdev deviation",
    REWARD: "reward rewards revenue value amount outcome spend profit",
}
_ROLE_OF = {word: role for role, words in _WORDS.items() for word in words.split()}
# Where a title has words of several, the first of these decides: "click rate" is a rate.
_ORDER = (ERROR, DEVIATION, MEAN, SUCCESSES, PLAYS, REWARD, ARM, PROBLEM)
_UNNAMED = re.compile(r"unnamed: \d+|#|", re.I)
COUNTS, MEANS = "counts", "means"
# Rewards in words.
_SAID = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
# Rows that people call one of these, or that have one of these words in their names.
_TOTALS = {"sum", "all variants", "all arms"}
_TOTAL_WORDS = {
    "total",
    "totals",
    "subtotal",
    "subtotals",
    "sub-total",
    "overall",
    "summe",
    "gesamt",
    "insgesamt",
    "σ",
}


@dataclass(frozen=True)
class History:
    """What past tests say of their arms, one entry per arm of a test.

    kind: counts of plays and successes, or means with standard errors
    problem, arm: of each entry, numbered; problems, arms: their names
    plays, total: plays and the sum of their rewards; error: the standard error of the mean
    notes: what was done to the file
    """

    name: str
    kind: str
    problem: Array
    arm: Array
    problems: tuple[str, ...]
    arms: tuple[str, ...]
    plays: Array
    total: Array
    error: Array
    notes: tuple[str, ...] = ()

    @property
    def mean(self) -> Array:
        """The mean reward of each entry."""
        return self.total / self.plays

    @property
    def arms_per_problem(self) -> int:
        """How many arms most tests have."""
        return int(np.bincount(np.bincount(self.problem.astype(int))).argmax())

    def take(self, chosen: Any) -> History:
        """Some of the entries; problems may be given several times, each then a test of its own."""
        problem = np.repeat(np.arange(len(chosen)), [len(each) for each in chosen])
        at = np.concatenate(chosen).astype(int)
        return History(
            self.name, self.kind, problem.astype(float), self.arm[at],
            tuple(map(str, range(len(chosen)))), self.arms,
            self.plays[at], self.total[at], self.error[at],
        )  # fmt: skip


def _tokens(title: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", title)]


def _role(title: str) -> tuple[str | None, str]:
    """What a column holds, and what its title says besides: the name of an arm in wide form."""
    tokens = _tokens(title)
    found = {_ROLE_OF[token]: token for token in tokens if token in _ROLE_OF}
    for role in _ORDER:
        if role in found:
            # A letter may be an arm's name: the n of "sent n" is.
            rest = [
                token
                for token in tokens
                if token != found[role] and (token not in _ROLE_OF or len(token) == 1)
            ]
            # The arm may be called Variant.
            others = [token for token in tokens if token != found[role]]
            return role, " ".join(rest or others)
    return None, " ".join(tokens)


def _rank(title: str, role: str) -> int:
    words = _WORDS[role].split()
    return min(words.index(token) for token in _tokens(title) if token in words)


def role_of(title: str) -> str | None:
    """What a column with this title holds."""
    return _role(title)[0]


def id_columns(sheet: Sheet) -> list[int]:
    """The first columns, as far as they say which problem a row is of."""
    found = []
    for column in sheet.columns:
        title = sheet.title(column)
        numbered = [row[column] for row in sheet.rows] in (
            [str(begin + row) for row in range(len(sheet.rows))] for begin in (0, 1)
        )
        named = bool(sheet.titles) and (
            _role(title)[0] == PROBLEM or (bool(_UNNAMED.fullmatch(title)) and numbered)
        )
        if not (named or sheet.is_text(column)):
            break
        found.append(column)
    return found


def looks_like_counts(sheet: Sheet) -> bool:
    """Whether a file has plays and successes."""
    return {PLAYS, SUCCESSES} <= {_role(title)[0] for title in sheet.titles}


def read_history(
    given: str | Path | Mapping[str, Iterable[Any]], columns: Mapping[str, str] | None = None
) -> History:
    """Read past tests from a CSV file, or from columns by name; `columns` names those of a file."""
    if isinstance(given, str | Path):
        sheet = read_sheet(given)
    elif hasattr(given, "keys"):
        sheet = make_sheet(given)
    elif hasattr(given, "columns"):  # data frames of polars
        sheet = make_sheet({name: given[name] for name in given.columns})
    else:
        raise InputError(f"a history is a CSV file, or columns by name, not {given!r}")
    if not sheet.titles or not sheet.rows:
        raise InputError(
            f"{sheet.name} needs titles in its first line and rows below, such as "
            f"test,variant,sent,clicks"
        )
    check_keys(columns or {}, _WORDS, "--columns")
    wide = _wide_columns(sheet) if not columns else {}
    return (
        _read_wide(sheet, wide) if wide else _read_long(sheet, _long_columns(sheet, columns or {}))
    )


def _wide_columns(sheet: Sheet) -> dict[str, dict[str, int]]:
    """The columns of plays and successes of each arm; none if the file is not of that form."""
    by_arm: dict[str, dict[str, int]] = {}
    for column in sheet.columns:
        role, rest = _role(sheet.title(column))
        if role in (PLAYS, SUCCESSES):
            if role in by_arm.setdefault(rest, {}):
                return {}
            by_arm[rest][role] = column
    whole = {arm: pair for arm, pair in by_arm.items() if len(pair) == 2}
    if len(whole) < 2:
        return {}
    for arm, pair in by_arm.items():
        if len(pair) < 2:
            ((role, column),) = pair.items()
            other = PLAYS if role == SUCCESSES else SUCCESSES
            raise InputError(
                f"{sheet.name}, column {column + 1} ({sheet.title(column)}): there is no column with the "
                f"{other} of {arm!r} beside it; an arm has two columns, such as 'A sent' and 'A clicks'"
            )
    return whole


def _long_columns(sheet: Sheet, given: Mapping[str, str]) -> dict[str, int]:
    """The column of each role."""
    found: dict[str, list[int]] = {}
    for column in sheet.columns:
        role, _ = _role(sheet.title(column))
        if role is not None and role not in given:
            found.setdefault(role, []).append(column)
    chosen = {}
    for role, title in given.items():
        if title not in sheet.titles:
            titles = ", ".join(filter(None, sheet.titles))
            raise InputError(f"{sheet.name} has no column {title!r} for {role}; it has: {titles}")
        chosen[role] = sheet.titles.index(title)
    for role, several in found.items():
        several = [column for column in several if column not in chosen.values()]
        if role in (PROBLEM, ARM):
            several = sorted(several, key=lambda column: _rank(sheet.title(column), role))[:1]
        plain = [column for column in several if len(_tokens(sheet.title(column))) == 1]
        several = plain if len(plain) == 1 else several
        if len(several) > 1:
            titles = " and ".join(repr(sheet.title(column)) for column in several)
            raise InputError(
                f"{sheet.name}: the columns {titles} could all be {role}; say which, as in "
                f"--columns {role}={sheet.title(several[0])}"
            )
        if several:
            chosen[role] = several[0]
    return chosen


@dataclass
class _Entries:
    """What has been read so far, by problem and arm."""

    sheet: Sheet
    rows: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    repeated: int = 0

    def add(self, problem: str, arm: str, *numbers: float) -> None:
        known = self.rows.get((problem, arm))
        if known is None:
            self.rows[problem, arm] = list(numbers)
        else:
            self.repeated += 1
            self.rows[problem, arm] = [a + b for a, b in zip(known, numbers, strict=True)]

    def sums_to(self, *numbers: float) -> bool:
        """Whether the rows so far, or those of the last problem, which are several, add up to these numbers."""
        last = next(reversed(self.rows), ("", ""))[0]
        own = [known for (problem, _), known in self.rows.items() if problem == last]
        return any(
            len(rows) > 1 and list(numbers) == [sum(column) for column in zip(*rows, strict=True)]
            for rows in (own, list(self.rows.values()))
        )

    def history(self, kind: str, notes: list[str]) -> History:
        if not self.rows:
            raise InputError(f"{self.sheet.name} holds no arm that was played")
        if self.repeated:
            notes.append(
                f"{self.repeated} rows of an arm that had one in its test already were added to it"
            )
        problems = list(dict.fromkeys(problem for problem, _ in self.rows))
        arms = list(dict.fromkeys(arm for _, arm in self.rows))
        place = {name: number for number, name in enumerate(problems)}
        at = {name: number for number, name in enumerate(arms)}
        numbers = np.array(list(self.rows.values()), dtype=float)
        return History(
            name=self.sheet.name,
            kind=kind,
            problem=np.array([place[problem] for problem, _ in self.rows], dtype=float),
            arm=np.array([at[arm] for _, arm in self.rows], dtype=float),
            problems=tuple(problems),
            arms=tuple(arms),
            plays=numbers[:, 0],
            total=numbers[:, 1],
            error=numbers[:, 2] if numbers.shape[1] > 2 else np.zeros(len(numbers)),
            notes=tuple(notes),
        )


def _count(sheet: Sheet, row: int, column: int, what: str) -> float:
    value = sheet.number(row, column, f"a number of {what} is needed")
    if value < 0 or value != math.floor(value):
        raise InputError(
            f"{sheet.where(row, column)}: {sheet.rows[row][column]!r} is not a number of {what}; a whole "
            f"number from 0 on is needed"
        )
    return value


def _check_pair(sheet: Sheet, row: int, column: int, plays: float, successes: float) -> None:
    if successes > plays:
        raise InputError(
            f"{sheet.where(row, column)}: {successes:g} successes of {plays:g} plays; are the columns "
            f"exchanged? Say which is which, as in --columns plays=sent,successes=clicks"
        )


def _read_wide(sheet: Sheet, pairs: Mapping[str, Mapping[str, int]]) -> History:
    entries = _Entries(sheet)
    unplayed = 0
    ids = id_columns(sheet)
    for row in range(len(sheet.rows)):
        problem = " ".join(sheet.rows[row][column] for column in ids) or str(sheet.lines[row])
        for arm, pair in pairs.items():
            if all(is_blank(sheet.rows[row][column]) for column in pair.values()):
                unplayed += 1
                continue
            plays = _count(sheet, row, pair[PLAYS], "plays")
            successes = _count(sheet, row, pair[SUCCESSES], "successes")
            _check_pair(sheet, row, pair[SUCCESSES], plays, successes)
            if plays:
                entries.add(problem, arm, plays, successes)
            else:
                unplayed += 1
    notes = [f"{unplayed} blank arms were left out"] if unplayed else []
    return entries.history(COUNTS, notes)


def _read_long(sheet: Sheet, columns: Mapping[str, int]) -> History:
    if PLAYS in columns and (SUCCESSES in columns or (MEAN in columns and not _has_error(columns))):
        return _read_counts(sheet, columns)
    if MEAN in columns and _has_error(columns) and PLAYS in columns:
        return _read_means(sheet, columns)
    if (REWARD in columns or SUCCESSES in columns) and PLAYS not in columns:
        return _read_rewards(sheet, columns)
    if MEAN in columns and _has_error(columns):
        missing = "plays, from which the noise of a single reward follows"
    elif MEAN in columns:
        missing = "plays behind each mean: without them noise cannot be told from spread"
    else:
        missing = "plays and successes of each arm, or one reward per row"
    titles = ", ".join(filter(None, sheet.titles))
    raise InputError(
        f"{sheet.name} has no column with the {missing}; it has: {titles}. Name a column that is called "
        f"something else, as in --columns plays=Mails,successes=Answers, or arm=Version,reward=Amount"
    )


def _has_error(columns: Mapping[str, int]) -> bool:
    return ERROR in columns or DEVIATION in columns


def _labels(
    sheet: Sheet, columns: Mapping[str, int], *, single: bool = False
) -> list[tuple[str, str]]:
    """Problem and arm of each row."""
    labels: list[tuple[str, str]] = []
    seen: dict[str, int] = {}
    for row in range(len(sheet.rows)):
        problem = "all"
        named = [sheet.rows[row][columns[role]] for role in (PROBLEM, ARM) if role in columns]
        # A total may have a name in one of the columns only.
        total = next(filter(_says_total, named), None)
        if PROBLEM in columns:
            problem = total or sheet.text(row, columns[PROBLEM], "every row needs its test")
        if ARM in columns:
            arm = total or sheet.text(row, columns[ARM], "every row needs its arm")
        elif single:
            raise InputError(
                f"{sheet.name} has no column that says which arm a reward is of; name it, as in "
                f"--columns arm=Version"
            )
        else:
            seen[problem] = seen.get(problem, 0) + 1
            arm = str(seen[problem])
        labels.append((problem, arm))
    if PROBLEM not in columns and not single and len(set(labels)) < len(labels):
        raise InputError(
            f"{sheet.name} has several rows per arm and no column that says of which test they are; "
            f"name it, as in --columns problem=Mailing"
        )
    return labels


def _says_total(name: str) -> bool:
    """Whether a row of this name must be a sum of others."""
    plain = name.strip().strip(":").lower()
    return plain in _TOTALS or not _TOTAL_WORDS.isdisjoint(plain.split())


def _read_counts(sheet: Sheet, columns: Mapping[str, int]) -> History:
    entries, unplayed, rounded, totals = _Entries(sheet), 0, 0, 0
    sums: dict[str, list[tuple[str, str]]] = {}
    for row, label in enumerate(_labels(sheet, columns)):
        plays = _count(sheet, row, columns[PLAYS], "plays")
        if SUCCESSES in columns:
            column = columns[SUCCESSES]
            successes = _count(sheet, row, column, "successes") if plays else 0.0
        else:
            column = columns[MEAN]
            rate = sheet.number(row, column, "a share of successes is needed") if plays else 0.0
            if not 0.0 <= rate <= 1.0:
                raise InputError(
                    f"{sheet.where(row, column)}: {rate:g} is not a share; it lies between 0 and 1, or is "
                    f"written with a percent sign"
                )
            successes = round(rate * plays)
            rounded += 1
        _check_pair(sheet, row, column, plays, successes)
        is_sum = plays > 0.0 and entries.sums_to(plays, successes)
        if any(map(_says_total, label)):
            if not is_sum:
                raise InputError(
                    f"{sheet.where(row, columns[PLAYS])}: the row is called a total, and is not the sum of "
                    f"the rows above; remove it, or give the arm another name"
                )
            totals += 1
        elif plays:
            if is_sum:
                sums.setdefault(label[1], []).append(label)
            entries.add(*label, plays, successes)
        else:
            unplayed += 1
    notes = (
        [f"{unplayed} arm{'' if unplayed == 1 else 's'} without plays left out"] if unplayed else []
    )
    for arm, found in sums.items():
        rows = sum(name == arm for _, name in entries.rows)
        if len(found) == rows > 1:
            raise InputError(
                f"{sheet.name}: {arm!r} is the sum of the other rows in each of {rows} tests; remove these "
                f"totals, or call them 'total'"
            )
        notes.append(
            f"{' '.join(found[0])} is the sum of the rows above it: if it is a total, remove it"
        )
    if totals:
        notes.append(f"left out: {totals} row{'s' if totals > 1 else ''} with totals")
    if rounded:
        notes.append("successes were computed from plays and rates, and rounded")
    return entries.history(COUNTS, notes)


def _read_means(sheet: Sheet, columns: Mapping[str, int]) -> History:
    entries = _Entries(sheet)
    for row, label in enumerate(_labels(sheet, columns)):
        plays = _count(sheet, row, columns[PLAYS], "plays")
        if any(map(_says_total, label)):
            raise InputError(
                f"{sheet.where(row, columns[PLAYS])}: the row is called a total, and means cannot be added; "
                f"remove it, or give the arm another name"
            )
        if not plays:
            continue
        mean = sheet.number(row, columns[MEAN], "a mean is needed")
        column = columns[ERROR] if ERROR in columns else columns[DEVIATION]
        error = sheet.number(row, column, "a standard error is needed")
        if not error > 0.0:
            raise InputError(f"{sheet.where(row, column)}: {error:g} must be greater than 0")
        if ERROR not in columns:
            error /= math.sqrt(plays)
        if label in entries.rows:
            raise InputError(
                f"{sheet.where(row, columns[MEAN])}: {' '.join(label)} is given twice, and means cannot "
                f"be added; give one row per arm of a test"
            )
        entries.add(*label, plays, mean * plays, error)
    return entries.history(MEANS, [])


def _read_rewards(sheet: Sheet, columns: Mapping[str, int]) -> History:
    """One row per play: counts if all rewards are 0 or 1, else means with standard errors."""
    column = columns.get(REWARD, columns.get(SUCCESSES, 0))
    entries, kinds = _Entries(sheet), set()
    for row, label in enumerate(_labels(sheet, columns, single=True)):
        said = sheet.rows[row][column].lower()
        reward = _SAID.get(said)
        if reward is None:
            reward = sheet.number(row, column, "every play needs its reward")
        kinds.add("binary" if reward in (0.0, 1.0) else "other")
        entries.add(*label, 1.0, reward, reward * reward)
    entries.repeated = 0
    numbers = np.array(list(entries.rows.values()))
    if kinds == {"binary"}:
        for key, (plays, total, _) in entries.rows.items():
            entries.rows[key] = [plays, total]
        return entries.history(COUNTS, [])
    plays, total, squares = numbers.T
    freedom = float((plays - 1).sum())
    if freedom < 1:
        raise InputError(
            f"{sheet.name} has one reward per arm: their noise cannot be told from the spread of means; "
            f"a file of single rewards needs several plays of an arm"
        )
    # One noise for all arms, as the prior has it: arms with a few plays have no estimate of their own.
    variance = float((squares - total**2 / plays).sum()) / freedom
    if not variance > 0.0:
        raise InputError(
            f"{sheet.name}: the rewards of every arm are all the same, so there is no noise to fit"
        )
    for key, (count, amount, _) in entries.rows.items():
        entries.rows[key] = [count, amount, math.sqrt(variance / count)]
    return entries.history(MEANS, [])
