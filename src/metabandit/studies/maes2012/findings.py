"""What a reproduction found, by policy, family and horizon, and how it compares with the paper's figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...engine.results import NORMAL_95
from ..records import Records
from .paper import COLUMNS, NOTES, TEST_PROBLEMS, StudiedPolicy, half_digit
from .plan import studied_policies

# How close a figure must be to the paper's, as a share of it.
CLOSE = 0.03
FAMILY = {"bernoulli": "Bernoulli arms", "gaussian": "Truncated Gaussian arms"}
# In the order of the paper's table.
_GROUPS = ("untuned", "tuned", "numerical", "symbolic", "today", "ours")


@dataclass(frozen=True)
class Reproduced:
    """A figure of ours beside the paper's.

    verdict: agrees, better, noise, known (a difference with a reason), open (one without), or empty
        if the two are not of the same policy
    """

    ours: float
    half: float
    theirs: float | None = None
    verdict: str = ""
    note: str = ""

    @property
    def apart(self) -> float | None:
        return None if self.theirs is None else self.ours / self.theirs - 1.0


def tested(
    records: Records, item: StudiedPolicy, family: str, horizon: int
) -> dict[str, Any] | None:
    """The result of its test, if there was one."""
    return records.found(f"test/{item.id}/{family}/{horizon}")


def exact(records: Records, item: StudiedPolicy, horizon: int) -> float | None:
    """Exact regret on Bernoulli arms, where it is known."""
    return (records.found(f"exact/{item.id}/{horizon}") or {}).get("regret")


def floor(records: Records, horizon: int, start: str = "free") -> float | None:
    """The regret of the Bayes-optimal policy."""
    return (records.found(f"floor/{start}/{horizon}") or {}).get("regret")


def regret(records: Records, item: StudiedPolicy, horizon: int) -> float | None:
    """Regret on Bernoulli arms; exact where that is known."""
    known = exact(records, item, horizon)
    if known is None:
        known = (tested(records, item, "bernoulli", horizon) or {}).get("regret")
    return known


def above_floor(records: Records, item: StudiedPolicy, horizon: int) -> float | None:
    """How much more regret than the floor, as a share of it."""
    least, found = floor(records, horizon), regret(records, item, horizon)
    return None if least is None or found is None else found / least - 1.0


def policies(records: Records) -> list[StudiedPolicy]:
    """What was tested, as the paper has it: by group, policy and training horizon, as printed first."""
    known = studied_policies()
    labels = list(dict.fromkeys(item.label for item in known))
    return sorted(
        (item for item in known if any(tested(records, item, *column) for column in COLUMNS)),
        key=lambda item: (
            _GROUPS.index(item.group),
            labels.index(item.label),
            item.training or 0,
            item.text is None,
        ),
    )


def parameters(records: Records, item: StudiedPolicy) -> str:
    """The numbers of a policy, or its formula."""
    if item.text is not None:
        if item.group == "symbolic":
            return item.text
        return item.text.partition(":")[2].replace(",", ", ")
    found = records.found(item.source or "")
    if found is None:
        return ""
    if item.place is not None:
        return str(found["ranking"][item.place]["formula"])
    content = found["file"]["policy"]
    if content["kind"] == "power":
        return f"{len(content['weights'])} weights"
    numbers = ", ".join(f"{key}={value:.4g}" for key, value in content["parameters"].items())
    if content["kind"] == "expression" and item.group == "ours":
        return f"{content['expression']}{'; ' if numbers else ''}{numbers}"
    return numbers


def name(item: StudiedPolicy) -> str:
    """The policy as a table calls it, and where its numbers are from."""
    here = "tuned here" if item.group == "tuned" else "learned here"
    where = {"printed": "as printed", "found": here}.get(item.origin)
    return item.label if where is None or item.group == "untuned" else f"{item.label}, {where}"


def _excuse(records: Records, item: StudiedPolicy, family: str, horizon: int) -> tuple[str, str]:
    """Why something that was learned here may be worse than the paper's."""
    if records.scale != "paper":
        return "known", "learned with a small budget"
    if family == "gaussian":
        other = compare(records, item, "bernoulli", horizon)
        if other is not None and other.verdict in ("agrees", "better"):
            return "known", (
                "a different policy from the paper's: both were made for Bernoulli arms, where this one is "
                f"no worse ({other.ours:.4g} against {other.theirs:g})"
            )
    return "open", "not explained"


def compare(records: Records, item: StudiedPolicy, family: str, horizon: int) -> Reproduced | None:
    """Ours beside the paper's, if it was tested."""
    found = tested(records, item, family, horizon)
    if found is None:
        return None
    ours, half = found["regret"], NORMAL_95 * found["standard_error"]
    if not item.paper:
        return Reproduced(ours, half)
    theirs = item.paper[family, horizon]
    settings = records[f"test/{item.id}/{family}/{horizon}"]["settings"]
    verdict, note = judge(item, family, horizon, ours, half, settings["problems"])
    if verdict == "open" and item.text is None:
        verdict, note = _excuse(records, item, family, horizon)
    known = exact(records, item, horizon) if family == "bernoulli" else None
    if verdict in ("open", "known") and known is not None:
        # Ours has no noise then; the paper's has.
        if abs(known - theirs) <= half + half_digit(theirs):
            verdict, note = "noise", f"the exact regret is {known:.4g}"
    return Reproduced(ours, half, theirs, verdict, note)


def judge(
    item: StudiedPolicy, family: str, horizon: int, ours: float, half: float, problems: int
) -> tuple[str, str]:
    """How our figure compares with the paper's, and what there is to say."""
    theirs = item.paper[family, horizon]
    apart = ours / theirs - 1.0
    printed = item.text is not None
    if not printed and item.training != horizon:
        return "", ""
    if abs(apart) <= CLOSE:
        return "agrees", ""
    # The paper's figure has the noise of its own 10,000 problems, and was rounded.
    noise = math.hypot(half, half * math.sqrt(problems / TEST_PROBLEMS))
    if abs(ours - theirs) <= noise + half_digit(theirs):
        return "noise", ""
    if apart < 0.0 and not printed:
        return "better", ""
    note = NOTES.get((item.text or item.id, family, horizon), "not explained")
    return ("open" if note.startswith("not explained") else "known"), note
