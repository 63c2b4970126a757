"""The experiments as data: every policy that is tested, and every piece of work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .paper import FAMILIES, HORIZONS, PRIORS, Row, table1
from .scales import Scale

PARTS = ("table1", "table2", "classes", "curves", "times", "all")


@dataclass(frozen=True)
class Candidate:
    """A policy that is tested: a row of our tables.

    group: untuned, tuned, numerical, symbolic (the paper's); today, ours
    text: the policy as it is written down, or None if `source`, a piece, finds it
    place: which one of what the piece found
    paper: the row of Table 1 that it belongs to
    """

    id: str
    group: str
    label: str
    training: int | None = None
    text: str | None = None
    source: str | None = None
    place: int | None = None
    paper: Row | None = None

    @property
    def policy(self) -> dict[str, Any]:
        """How a piece's settings name it."""
        if self.text is not None:
            return {"text": self.text}
        if self.place is None:
            return {"of": self.source}
        return {"of": self.source, "place": self.place}


@dataclass(frozen=True)
class Piece:
    """A piece of work, with an id and everything that its result depends on.

    needs: the pieces whose results it uses
    parts: the parts of the reproduction that show it
    weight: about how many seconds it takes on two cores, to tell how far a run is
    """

    id: str
    kind: str
    settings: Mapping[str, Any]
    parts: frozenset[str]
    needs: tuple[str, ...] = ()
    weight: float = field(default=1.0, compare=False)


TUNED = ("UCB1", "UCB2", "UCB-V", "KL-UCB", "eps_n-greedy")
TODAY = {
    "Thompson sampling": "thompson",
    "Bayes-UCB": "bayes-ucb",
    "MOSS": "moss",
    "KL-UCB+": "kl-ucb+",
    "Gittins": "gittins",
}
# The paper's categories, and what we call them, in the order of its table.
GROUPS = {
    "untuned": "untuned",
    "tuned": "tuned",
    "learned numerical": "numerical",
    "learned symbolic": "symbolic",
}


def candidates() -> tuple[Candidate, ...]:
    """Every policy that is tested: the paper's as printed, those found here, today's and ours."""
    printed, found = [], []
    for row in table1():
        group = GROUPS[row.category]
        if row.text is not None:
            known = Candidate(
                f"printed/{row.text}", group, row.policy, row.training, text=row.text, paper=row
            )
            printed.append(known)
        if row.training is None:
            continue
        place = None
        if group == "symbolic":
            source = f"search/paper/{row.training}"
            place = int(row.policy[-1]) - 1
        else:
            source = f"learn/{row.policy.lower()}/{row.training}"
        found.append(
            Candidate(
                f"found/{row.policy.lower()}/{row.training}",
                group,
                row.policy,
                row.training,
                source=source,
                place=place,
                paper=row,
            )
        )
    today = [Candidate(f"today/{text}", "today", label, text=text) for label, text in TODAY.items()]
    ours = [
        Candidate(f"ours/{name}/{horizon}", "ours", label, horizon, source=f"{kind}/ours/{horizon}")
        for name, label, kind in (("power-1", "ours, Power-1", "learn"), ("formula", "ours, formula", "search"))
        for horizon in HORIZONS
    ]  # fmt: skip
    return (*printed, *found, *today, *ours)


def generic() -> list[str]:
    """The paper's generic policies, tuned or not, as printed."""
    return [
        item.text
        for item in candidates()
        if item.text is not None and item.group in ("untuned", "tuned")
    ]


def _learning(scale: Scale, seed: int) -> Iterable[Piece]:
    speeds = {"ucb1": 450e6, "ucb2": 200e6, "ucb-v": 300e6, "kl-ucb": 65e6, "eps_n-greedy": 370e6}
    speeds |= {"power-1": 450e6, "power-2": 300e6}
    populations = {"power-1": 128, "power-2": 648}
    runs = 10 if "runs=10" in scale.protocol else 100
    for horizon in HORIZONS:
        for space in (*map(str.lower, TUNED), "power-1", "power-2"):
            plays = populations.get(space, 40) * scale.generations * 100.0 * runs * horizon
            parts = {"table1", "table2"}
            if space == "power-1" and horizon > 10:
                parts |= {"curves", "times"}
            yield Piece(
                f"learn/{space}/{horizon}",
                "learn",
                {
                    "space": space,
                    "horizon": horizon,
                    "protocol": scale.protocol,
                    "generations": scale.generations,
                    "effort": 1.0,
                    "improvements": space == "power-1",
                    "seed": seed,
                },
                frozenset(parts),
                weight=1.0 + plays / speeds[space],
            )
    for horizon in HORIZONS:
        yield Piece(
            f"learn/ours/{horizon}",
            "learn",
            {
                "space": "power-1",
                "horizon": horizon,
                "protocol": "default",
                "generations": None,
                "effort": scale.effort,
                "improvements": False,
                "seed": seed,
            },
            frozenset({"table1"}),
            weight=1.0 + scale.effort * {10: 1.0, 100: 25.0, 1000: 200.0}[horizon],
        )


def _formulas(scale: Scale, seed: int) -> Iterable[Piece]:
    full = scale.length == 7
    yield Piece(
        "classes",
        "classes",
        {"length": scale.length},
        frozenset({"classes", "table1", "table2", "times"}),
        weight=30.0 if full else 3.0,
    )
    common = {
        "length": scale.length,
        "top": 50,
        "effort": 1.0 if scale.patient else 0.02,
        "seed": seed,
    }
    for horizon in HORIZONS:
        parts = {"table1", "table2", "classes"}
        yield Piece(
            f"search/paper/{horizon}",
            "search",
            {
                **common,
                "horizon": horizon,
                "strategy": "ucb1-tuned",
                "pulls": scale.pulls,
                "start": "each-once",
                "refine": 0,
            },
            frozenset(parts | {"times"} if horizon > 10 else parts),
            ("classes",),
            weight=({10: 30.0, 100: 50.0, 1000: 170.0} if full else {10: 2.0, 100: 3.0, 1000: 35.0})[horizon],
        )  # fmt: skip
    for horizon in HORIZONS:
        yield Piece(
            f"search/ours/{horizon}",
            "search",
            {
                **common,
                "horizon": horizon,
                "strategy": "auto",
                "pulls": scale.pulls,
                "start": "prior-counts",
                "refine": 1 if scale.patient else 0,
            },
            frozenset({"table1"}),
            ("classes",),
            weight=({10: 15.0, 100: 30.0, 1000: 310.0} if full else {10: 2.0, 100: 3.0, 1000: 40.0})[horizon],
        )  # fmt: skip


def _testing(scale: Scale, seed: int) -> Iterable[Piece]:
    slow = {"kl-ucb": 6.0, "kl-ucb+": 6.0, "thompson": 10.0, "ucb1-normal": 10.0}
    for item in candidates():
        for family in FAMILIES:
            for horizon in HORIZONS:
                problems, runs = scale.problems, scale.runs
                if item.text == "bayes-ucb" and horizon > 10:
                    # Each play takes a quantile of the Beta distribution.
                    runs = max(scale.runs // 5, 1)
                    problems = scale.problems * 10 // max(horizon // 10, 10)
                if item.text == "gittins" and horizon == 1000 and not scale.patient:
                    continue
                parts = {"table1"}
                if family == "bernoulli" and item.training == horizon:
                    parts |= {"table2"} if item.group != "ours" else set()
                name = (item.text or item.label.lower()).partition(":")[0]
                work = problems * runs * horizon * slow.get(name, 1.0)
                yield Piece(
                    f"test/{item.id}/{family}/{horizon}",
                    "test",
                    {
                        "policy": item.policy,
                        "prior": PRIORS[family],
                        "horizon": horizon,
                        "problems": problems,
                        "runs": runs,
                        "seed": seed + 1,
                    },
                    frozenset(parts),
                    () if item.source is None else (item.source,),
                    weight=0.05
                    + work / 3e8
                    + (70.0 if item.text == "gittins" and horizon == 1000 else 0.0)
                    + (12.0 if item.text == "bayes-ucb" and horizon == 1000 else 0.0),
                )


def _exactly(scale: Scale) -> Iterable[Piece]:
    for horizon in HORIZONS:
        for start in ("free", "each-once"):
            if start == "free" or horizon < 1000 or scale.patient:
                yield Piece(
                    f"floor/{start}/{horizon}",
                    "floor",
                    {"start": start, "horizon": horizon},
                    frozenset({"table1"}),
                    weight=25.0 if horizon == 1000 else 0.1,
                )
    for item in candidates():
        for horizon in HORIZONS:
            if horizon == 1000:
                # Half a minute each: for what was made for it, or for any horizon, and the paper's formulas.
                printed = item.group == "symbolic" and item.text is not None
                if not scale.patient or not (printed or item.training in (None, horizon)):
                    continue
                if item.text == "thompson":
                    continue
            yield Piece(
                f"exact/{item.id}/{horizon}",
                "exact",
                {"policy": item.policy, "horizon": horizon},
                frozenset({"table1"}),
                () if item.source is None else (item.source,),
                weight=25.0 if horizon == 1000 else 0.1,
            )


def _looking(scale: Scale, seed: int) -> Iterable[Piece]:
    for horizon in HORIZONS[1:]:
        yield Piece(
            f"curve/{horizon}",
            "curve",
            {
                "of": f"learn/power-1/{horizon}",
                "space": "power-1",
                "horizon": horizon,
                "episodes": 10 * scale.problems,
                "seed": seed + 1,
            },
            frozenset({"curves"}),
            (f"learn/power-1/{horizon}",),
            weight=scale.problems / 300.0,
        )
    for horizon in HORIZONS[1:]:
        yield Piece(
            f"better/{horizon}",
            "better",
            {
                "length": scale.length,
                "horizon": horizon,
                "rivals": generic(),
                "start": "each-once",
                "screening": list(scale.screening),
                "seed": seed + 1,
            },
            frozenset({"classes"}),
            ("classes",),
            weight=(20.0 if horizon == 100 else 300.0) if scale.length == 7 else 5.0,
        )
    for horizon in HORIZONS[1:]:
        yield Piece(
            f"sooner/{horizon}",
            "sooner",
            {
                "of": f"search/paper/{horizon}",
                "length": scale.length,
                "horizon": horizon,
                "sample": 256 if scale.patient else 64,
                "problems": 100,
                "runs": 100,
                "start": "each-once",
                "seed": seed + 1,
            },
            frozenset({"classes"}),
            ("classes", f"search/paper/{horizon}"),
            weight=scale.runs * horizon / 10_000.0,
        )


def pieces(part: str, scale: Scale, seed: int) -> tuple[Piece, ...]:
    """The pieces of a part, in the order in which they are done: each after those that it needs."""
    everything = [
        *_learning(scale, seed),
        *_formulas(scale, seed),
        *_testing(scale, seed),
        *_looking(scale, seed),
        *_exactly(scale),
    ]
    everything = [replace(piece, parts=piece.parts | {"all"}) for piece in everything]
    wanted = {piece.id for piece in everything if part in piece.parts}
    for piece in reversed(everything):
        if piece.id in wanted:
            wanted |= set(piece.needs)
    return tuple(piece for piece in everything if piece.id in wanted)
