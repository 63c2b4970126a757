"""Feedback: when the reward of a play becomes known, and how often every arm must be played.

With batches that end after e_1 < e_2 < ... plays and a delay of d plays, the reward of play i (from 1)
is known from the first batch end that is at least i + d on. Batches of 1 and a delay of 0 are the
immediate feedback of the literature: each reward is known before the next choice.

Until then the play *waits*. A policy reads

    n   plays of the arm, those that wait included (pending="count"), or without them ("ignore"),
    w   plays of the arm that wait; 0 with pending="ignore", so that n - w rewards have come,
    r, s   mean and deviation of the rewards that have come,
    t, h   plays made, and plays left.

A start that plays each arm once goes on until every arm has had a reward: the next arm is the one with
the fewest waiting plays, among these one without a reward, among these the first. With immediate
feedback that is each arm once, in order; a first batch is spread over all arms. Rewards that do not come
do not hold up play for ever: after PATIENCE rewards per arm the policy decides, and an arm that was
played and has had none reads the mean of all rewards (if its waiting plays count; without them it has no n to read).

With a minimum share q each play is, with probability K q, one of a random arm instead, so that every
arm has at least the probability q at every play.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from .errors import InputError, about, nearest
from .settings import check_keys, check_whole, read_number, read_settings, write_number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Whole = npt.NDArray[np.int64]

COUNT, IGNORE = "count", "ignore"
# Rewards per arm after which an arm without any does not hold up play.
PATIENCE = 10
_GEOMETRIC = "geometric"


@dataclass(frozen=True)
class Feedback:
    """When rewards become known.

    Parameters
    ----------
    batch : int, sequence of int or str
        Plays per batch; the rewards of a batch are known when all of it is played. A sequence gives
        the size of each batch, `geometric:growth=1.1` batches that end after plays which grow by that
        factor.
    delay : int or str
        Plays after which a reward is known; `geometric:mean=50` if each takes a random number of them.
    min_share : float
        The probability that every arm keeps at every play.
    pending : {"count", "ignore"}
        Whether plays whose reward is still to come count as plays of their arm.

    Examples
    --------
    >>> import metabandit as mb
    >>> print(mb.Feedback(batch=500, min_share=0.05))
    batches of 500, minimum share 0.05
    """

    batch: int | tuple[int, ...] | str = 1
    delay: int | str = 0
    min_share: float = 0.0
    pending: str = COUNT

    def __post_init__(self) -> None:
        with about("min_share"):
            share = read_number(self.min_share, "the minimum share")
            if not 0.0 <= share <= 1.0:
                raise InputError(f"the minimum share must lie between 0 and 1, not {share:g}")
        if self.pending not in (COUNT, IGNORE):
            raise InputError(
                f"unknown choice {self.pending!r} for pending; {nearest(str(self.pending), (COUNT, IGNORE))}",
                about="pending",
            )
        object.__setattr__(self, "batch", _read_batch(self.batch))
        object.__setattr__(self, "delay", _read_delay(self.delay))
        object.__setattr__(self, "min_share", share)

    @classmethod
    def read(cls, given: Feedback | Mapping[str, Any] | None) -> Feedback:
        """Feedback from what a person gives; None is immediate."""
        if given is None:
            return IMMEDIATE
        if isinstance(given, Feedback):
            return given
        if not isinstance(given, Mapping):
            raise InputError(f"feedback is given as Feedback(batch=500), not {given!r}")
        check_keys(given, cls.__dataclass_fields__, "feedback")
        return cls(**given)

    @property
    def waits(self) -> bool:
        """Whether a reward may come later than before the next choice."""
        return self.batch != 1 or self.delay != 0

    @property
    def mean_delay(self) -> float | None:
        """The mean of random delays; None if all rewards take the same time."""
        if isinstance(self.delay, str):
            return float(read_settings(self.delay, "delay")[1]["mean"])
        return None

    def scaled(self, factor: float) -> Feedback:
        """The same for a horizon that is shorter by this factor: as many batches, shorter delays."""
        if factor == 1.0:
            return self

        def plays(number: int) -> int:
            return max(1, round(number * factor))

        batch, delay = self.batch, self.delay
        if isinstance(batch, tuple):
            batch = tuple(map(plays, batch))
        elif isinstance(batch, int):
            batch = plays(batch)
        if self.mean_delay is not None:
            delay = f"{_GEOMETRIC}:mean={write_number(self.mean_delay * factor)}"
        elif isinstance(delay, int):
            delay = round(delay * factor)
        return replace(self, batch=batch, delay=delay)

    def ends(self, horizon: int) -> list[int]:
        """The plays after which batches end, up to the horizon."""
        if isinstance(self.batch, tuple):
            return [*(end for end in accumulate(self.batch) if end < horizon), horizon]
        if isinstance(self.batch, int):
            return [*range(self.batch, horizon, self.batch), horizon]
        growth = float(read_settings(self.batch, "batch")[1]["growth"])
        ends = [1]
        while ends[-1] < horizon:
            ends.append(min(horizon, max(ends[-1] + 1, math.ceil(growth * ends[-1]))))
        return ends

    def next_end(self, horizon: int) -> Whole:
        """For each number of plays from 0 to the horizon, the first batch end that is not before it."""
        import numpy as np

        ends = np.array(self.ends(horizon))
        return np.asarray(ends[np.searchsorted(ends, np.arange(horizon + 1))])

    def known(self, horizon: int) -> Whole:
        """How many rewards are known after each number of plays, if all take the same time."""
        import numpy as np

        assert isinstance(self.delay, int)
        ends = np.array([0, *self.ends(horizon)])
        last = ends[np.searchsorted(ends, np.arange(horizon + 1), side="right") - 1]
        return np.asarray(np.maximum(last - self.delay, 0))

    def comes_after(self, made: int, ends: Sequence[int], uniform: float) -> int:
        """The plays after which the reward of play number `made` (from 1) is known.

        ends: the batch ends; what comes after the last one is known after one play more
        uniform: a number between 0 and 1, for a random delay
        """
        delay = self.delay
        if isinstance(delay, str):
            mean = self.mean_delay or 1.0
            delay = math.floor(math.log(uniform) / math.log(mean / (1.0 + mean)))
        place = bisect_left(ends, made + delay)
        return ends[place] if place < len(ends) else ends[-1] + 1

    def check(self, arms: int, horizon: int | None = None) -> None:
        """Refuse what does not fit the number of arms or the horizon."""
        if self.min_share * arms > 1.0 + 1e-12:
            raise InputError(
                f"{arms} arms cannot each keep a share of {self.min_share:g}: together that is "
                f"{arms * self.min_share:g}; the minimum share is at most 1/{arms}",
                about="min_share",
            )
        if horizon is None:
            return
        if isinstance(self.batch, tuple) and sum(self.batch) != horizon:
            raise InputError(
                f"the batches {', '.join(map(str, self.batch))} have {sum(self.batch)} plays together, but the "
                f"horizon is {horizon}; give sizes that add up to it",
                about="batch",
            )
        if isinstance(self.batch, int) and self.batch > max(horizon, 1):
            raise InputError(
                f"a batch of {self.batch} plays does not fit the horizon of {horizon}; "
                f"choose at most {horizon}",
                about="batch",
            )
        if isinstance(self.delay, int) and self.delay >= max(horizon, 1) > 0 < self.delay:
            raise InputError(
                f"with a delay of {self.delay} plays no reward is known within the horizon of "
                f"{horizon}; choose a delay below it",
                about="delay",
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)

    def options(self) -> str:
        """The options of the command line that ask for this feedback, each after a blank."""
        text = ""
        for name, value in self.to_dict().items():
            if value != getattr(IMMEDIATE, name):
                shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
                text += f" --{name.replace('_', '-')} {shown}"
        return text

    def __str__(self) -> str:
        parts = []
        if isinstance(self.batch, int) and self.batch > 1:
            parts.append(f"batches of {self.batch}")
        elif isinstance(self.batch, tuple):
            parts.append(f"batches of {', '.join(map(str, self.batch))}")
        elif isinstance(self.batch, str):
            parts.append(f"batches {self.batch}")
        if self.delay != 0:
            parts.append(f"delay {self.delay}")
        if self.min_share:
            parts.append(f"minimum share {self.min_share:g}")
        if self.pending == IGNORE and self.waits:
            parts.append("waiting plays ignored")
        return ", ".join(parts) or "immediate"


@about("batch")
def _read_batch(given: object) -> int | tuple[int, ...] | str:
    if isinstance(given, str) and given.strip().startswith(_GEOMETRIC):
        growth = _read_geometric(given, "batch", "growth")
        if not growth > 1.0:
            raise InputError(
                f"the growth of batches must be greater than 1, such as 1.5, not {growth:g}"
            )
        return f"{_GEOMETRIC}:growth={write_number(growth)}"
    if isinstance(given, str):
        items = given.split(",")
        if len(items) > 1 and not all(item.strip() for item in items):
            raise InputError(
                f"batches {given!r} lack a size beside a comma; give a size for each, such as 100,200,300"
            )
        sizes: list[object] = [_whole(item, "a batch") for item in items]
    elif isinstance(given, (tuple, list)):
        sizes = list(given)
    else:
        return check_whole(given, "the plays of a batch", 1)
    if not sizes:
        raise InputError("the sizes of batches are missing; give at least one")
    checked = [check_whole(size, "the plays of a batch", 1) for size in sizes]
    return checked[0] if len(checked) == 1 and isinstance(given, str) else tuple(checked)


@about("delay")
def _read_delay(given: object) -> int | str:
    if isinstance(given, str) and given.strip().startswith(_GEOMETRIC):
        mean = _read_geometric(given, "delay", "mean")
        if not 0.0 < mean <= 1e9:
            raise InputError(f"the mean of delays must be greater than 0 plays, not {mean:g}")
        return f"{_GEOMETRIC}:mean={write_number(mean)}"
    return check_whole(_whole(given, "a delay") if isinstance(given, str) else given, "a delay", 0)


def _read_geometric(text: str, what: str, key: str) -> float:
    name, settings = read_settings(text, what)
    example = "1.5" if key == "growth" else "100"
    if name != _GEOMETRIC:
        raise InputError(f"unknown {what} {text!r}; did you mean {_GEOMETRIC}:{key}={example}?")
    check_keys(settings, (key,), f"{what} {_GEOMETRIC}")
    if key not in settings:
        raise InputError(
            f"{what} {text!r} has no {key}; write such as {_GEOMETRIC}:{key}={example}"
        )
    return read_number(settings[key], f"the {key} of {what}")


def _whole(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        more = {"a batch": ", sizes such as 100,200,300, or geometric:growth=1.5"}.get(
            what, ", or geometric:mean=100"
        )
        raise InputError(
            f"{what} is a whole number of plays, such as 500{more}, not {text!r}"
        ) from None


IMMEDIATE = Feedback()
