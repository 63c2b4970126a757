"""What a reproduction found, by policy, family and horizon, and how it compares with the paper's figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...engine.results import NORMAL_95
from . import paper
from .paper import FAMILIES, HORIZONS
from .plan import GROUPS, StudiedPolicy, studied_policies
from .records import Records

# How close a figure must be to the paper's, as a share of it.
CLOSE = 0.03
FAMILY = {"bernoulli": "Bernoulli arms", "gaussian": "Truncated Gaussian arms"}
# The columns of Table 1.
COLUMNS = [(family, horizon) for family in FAMILIES for horizon in HORIZONS]


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


class Findings:
    """What the records say, by policy, family and horizon."""

    def __init__(self, records: Records) -> None:
        self.records = records

    def get(self, name: str) -> dict[str, Any] | None:
        """The result of a step, if it was done."""
        return self.records.result(name) if name in self.records else None

    def test(self, item: StudiedPolicy, family: str, horizon: int) -> dict[str, Any] | None:
        return self.get(f"test/{item.id}/{family}/{horizon}")

    def exact(self, item: StudiedPolicy, horizon: int) -> float | None:
        found = self.get(f"exact/{item.id}/{horizon}")
        return None if found is None else found["regret"]

    def floor(self, horizon: int, start: str = "free") -> float | None:
        found = self.get(f"floor/{start}/{horizon}")
        return None if found is None else found["regret"]

    def regret(self, item: StudiedPolicy, horizon: int) -> float | None:
        """Regret on Bernoulli arms; exact where that is known."""
        exact, test = self.exact(item, horizon), self.test(item, "bernoulli", horizon)
        return exact if exact is not None or test is None else float(test["regret"])

    def above_floor(self, item: StudiedPolicy, horizon: int) -> float | None:
        """How much more regret than the floor, as a share of it."""
        floor, regret = self.floor(horizon), self.regret(item, horizon)
        return None if floor is None or regret is None else regret / floor - 1.0

    def policies(self) -> list[StudiedPolicy]:
        """What was tested, as the paper has it: by group, policy and training horizon, as printed first."""
        known = studied_policies()
        groups = [*GROUPS.values(), "today", "ours"]
        labels = list(dict.fromkeys(item.label for item in known))
        return sorted(
            (item for item in known if any(self.test(item, *column) for column in COLUMNS)),
            key=lambda item: (
                groups.index(item.group),
                labels.index(item.label),
                item.training or 0,
                item.text is None,
            ),
        )

    def parameters(self, item: StudiedPolicy) -> str:
        """The numbers of a policy, or its formula."""
        if item.text is not None:
            if item.group == "symbolic":
                return item.text
            return item.text.partition(":")[2].replace(",", ", ")
        found = self.get(item.source or "")
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

    def name(self, item: StudiedPolicy) -> str:
        """The policy as a table calls it, and where its numbers are from."""
        here = "tuned here" if item.group == "tuned" else "learned here"
        where = {"printed": "as printed", "found": here}.get(item.origin)
        return item.label if where is None or item.group == "untuned" else f"{item.label}, {where}"

    def _excuse(self, item: StudiedPolicy, family: str, horizon: int) -> tuple[str, str]:
        """Why something that was learned here may be worse than the paper's."""
        if self.records.scale != "paper":
            return "known", "learned with a small budget"
        if family == "gaussian":
            other = self.compare(item, "bernoulli", horizon)
            if other is not None and other.verdict in ("agrees", "better"):
                return "known", (
                    "a different policy from the paper's: both were made for Bernoulli arms, where this one is "
                    f"no worse ({other.ours:.4g} against {other.theirs:g})"
                )
        return "open", "not explained"

    def compare(self, item: StudiedPolicy, family: str, horizon: int) -> Reproduced | None:
        """Ours beside the paper's, if it was tested."""
        found = self.test(item, family, horizon)
        if found is None:
            return None
        ours, half = found["regret"], NORMAL_95 * found["standard_error"]
        if item.paper is None:
            return Reproduced(ours, half)
        theirs = item.paper.regret[family, horizon]
        settings = self.records[f"test/{item.id}/{family}/{horizon}"]["settings"]
        verdict, note = judge(item, family, horizon, ours, half, settings["problems"])
        if verdict == "open" and item.text is None:
            verdict, note = self._excuse(item, family, horizon)
        exact = self.exact(item, horizon) if family == "bernoulli" else None
        if verdict in ("open", "known") and exact is not None:
            # Ours has no noise then; the paper's has.
            if abs(exact - theirs) <= half + item.paper.digit(family, horizon):
                verdict, note = "noise", f"the exact regret is {exact:.4g}"
        return Reproduced(ours, half, theirs, verdict, note)


def judge(
    item: StudiedPolicy, family: str, horizon: int, ours: float, half: float, problems: int
) -> tuple[str, str]:
    """How our figure compares with the paper's, and what there is to say."""
    assert item.paper is not None
    theirs = item.paper.regret[family, horizon]
    apart = ours / theirs - 1.0
    printed = item.text is not None
    if not printed and item.training != horizon:
        return "", ""
    if abs(apart) <= CLOSE:
        return "agrees", ""
    # The paper's figure has the noise of its own 10,000 problems, and was rounded.
    noise = math.hypot(half, half * math.sqrt(problems / paper.TEST_PROBLEMS))
    if abs(ours - theirs) <= noise + item.paper.digit(family, horizon):
        return "noise", ""
    if apart < 0.0 and not printed:
        return "better", ""
    note = paper.NOTES.get((item.text or item.id, family, horizon), "not explained")
    return ("open" if note.startswith("not explained") else "known"), note
