"""Logs of plays: which arm was played, with which probability it was chosen, and what reward it had."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import InputError
from .play import ArmName, check_arm
from .settings import read_number
from .sheets import read_sheet
from .showing import Shown

_FORM = "a log is a CSV file, or pairs (arm, reward), or triples (arm, reward, probability)"


@dataclass(frozen=True, repr=False)
class Log(Shown):
    """Plays in order: the arm of each, its reward and the probability of its choice, if that is known."""

    name: str
    arms: tuple[ArmName, ...]
    rewards: tuple[float, ...]
    probabilities: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for place, chance in enumerate(self.probabilities or (), start=1):
            if not 0.0 < chance <= 1.0 + 1e-9:
                raise InputError(
                    f"{self.name}, play {place}: a choice that was made had a probability above 0 and at "
                    f"most 1, not {chance!r}; give the probability of the arm that was chosen. A log of sure "
                    f"choices cannot be used: keep a chance for every arm when you log (`metabandit serve "
                    f"--min-share 0.05`)"
                )

    def __len__(self) -> int:
        return len(self.arms)

    def headline(self) -> str:
        return f"{self.name}: {len(self):,} plays of {len(set(self.arms))} arms"

    def records(self) -> list[dict[str, Any]]:
        """The plays in order."""
        keys = ("arm", "reward", "probability")
        columns = [self.arms, self.rewards, *([self.probabilities] if self.probabilities else [])]
        return [dict(zip(keys, play, strict=False)) for play in zip(*columns, strict=True)]


def read_log(path: str | Path) -> Log:
    """Read a log from a CSV file.

    Parameters
    ----------
    path
        A file with the columns `arm`, `reward` and, if it is known, `probability` (others are ignored), or two
        columns without titles.

    Returns
    -------
    Log
        The plays, in order.
    """
    sheet = read_sheet(path)
    titles = [title.lower() for title in sheet.titles]
    chance = None
    if "arm" in titles and "reward" in titles:
        arm, reward = titles.index("arm"), titles.index("reward")
        chance = titles.index("probability") if "probability" in titles else None
    elif sheet.width == 2 and not titles:
        arm, reward = 0, 1
    elif sheet.width:
        shown = ", ".join(sheet.titles or sheet.rows[0])[:200]
        raise InputError(
            f"{path}: a log has the columns arm and reward, by name in its first line; here are: {shown}"
        )
    if not sheet.rows:
        raise InputError(f"{path} holds no play; a line has an arm and its reward")
    rows = range(len(sheet.rows))
    return Log(
        str(path),
        tuple(sheet.text(row, arm, "every play needs its arm") for row in rows),
        tuple(sheet.number(row, reward, "every play needs its reward") for row in rows),
        None
        if chance is None
        else tuple(sheet.number(row, chance, "every play needs its probability") for row in rows),
    )


def make_log(given: str | Path | Log | Iterable[tuple[Any, ...]]) -> Log:
    """A log from whatever describes one."""
    if isinstance(given, Log):
        return given
    if isinstance(given, (str, Path)):
        return read_log(given)
    if not isinstance(given, Iterable):
        raise InputError(f"{_FORM}, not {given!r}")
    plays = list(given)
    sizes = {len(play) if isinstance(play, (tuple, list)) else 0 for play in plays}
    if sizes not in ({2}, {3}):
        raise InputError(f"{_FORM}: at least one, and all alike")
    arms, rewards, *more = zip(*plays, strict=True)
    return Log(
        "the log",
        tuple(check_arm(arm) for arm in arms),
        tuple(read_number(item, "a reward") for item in rewards),
        tuple(read_number(item, "a probability") for item in more[0]) if more else None,
    )
