"""One experiment of a store: its arms with their counts, and its choices with their rewards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from ..errors import InputError
from .arm import Arm, ArmName
from .choices import REFUSE, Choice, check_second, unknown
from .store import LONGEST_NAME, Store

# The columns of an arm that change.
_COUNTS = ("plays", "total", "spread", "rewarded", "open")


class Experiment:
    """One experiment of a store: what its processes do to it, each in a transaction."""

    def __init__(self, store: Store, name: str | None) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or "\0" in name:
            raise InputError(
                f"an experiment has a name of 1 to {LONGEST_NAME} letters, not {name!r}; give experiment="
            )
        self.store = store
        self.name = name
        self.arms = store.tables["arms"]
        self.choices = store.tables["choices"]
        self.experiments = store.tables["experiments"]

    def begin(self, state: dict[str, Any], arms: Sequence[Arm]) -> dict[str, Any]:
        """What the experiment was begun with: this, if it is new."""
        row = self.experiments.c
        wanted = sa.select(row.state).where(row.name == self.name)
        with self.store.transaction() as connection:
            self.store.check_version(connection)
            if self.store.dialect == "postgresql":
                connection.execute(
                    sa.text("SELECT pg_advisory_xact_lock(7203948, hashtext(:name))"),
                    {"name": self.name},
                )
            found = connection.execute(wanted).scalar()
            if found is None:
                found = json.dumps(state)
                connection.execute(
                    self.experiments.insert().values(name=self.name, state=found, selections=0)
                )
                for place, arm in enumerate(arms):
                    connection.execute(self.arms.insert().values(**self._row(place, arm)))
        return self._parse(found)

    def _parse(self, state: str) -> dict[str, Any]:
        with self.store.sound(f"the experiment {self.name!r}"):
            return dict(json.loads(state))

    def state(self) -> dict[str, Any] | None:
        """What the experiment was begun with; None if there is none of this name."""
        row = self.experiments.c
        with self.store.transaction(reading=True) as connection:
            self.store.check_version(connection)
            found = connection.execute(sa.select(row.state).where(row.name == self.name)).scalar()
        return None if found is None else self._parse(found)

    def _row(self, place: int, arm: Arm) -> dict[str, Any]:
        counts = {key: getattr(arm, key) for key in _COUNTS}
        name = json.dumps(arm.name)
        return {"experiment": self.name, "place": place, "arm": name, "retired": False, **counts}

    def read(self) -> tuple[int, list[Arm]]:
        """The number of selections, and the arms with their counts."""
        with self.store.transaction(reading=True) as connection:
            return self._read(connection)

    def _read(self, connection: sa.Connection) -> tuple[int, list[Arm]]:
        c = self.arms.c
        counter = sa.select(self.experiments.c.selections).where(
            self.experiments.c.name == self.name
        )
        columns = (c.arm, c.plays, c.total, c.spread, c.rewarded, c.open, c.retired)
        rows = connection.execute(
            sa.select(*columns).where(c.experiment == self.name).order_by(c.place)
        ).all()
        arms = []
        for place, (name, *counts, retired) in enumerate(rows):
            with self.store.sound(f"arm {place} of the experiment {self.name!r}"):
                plays, total, spread = map(float, counts[:3])
                rewarded, waiting = map(int, counts[3:])
                arm = Arm(json.loads(name), plays, total, spread, rewarded, waiting, bool(retired))
                arm.follow()
                arms.append(arm)
        with self.store.sound(f"the selections of the experiment {self.name!r}"):
            return int(connection.execute(counter).scalar() or 0), arms

    # What changes it ---------------------------------------------------------------------------

    def number(self, connection: sa.Connection, count: int) -> int:
        """Take the numbers of so many selections; the first of them."""
        row = self.experiments.c
        taken = connection.execute(
            self.experiments.update()
            .where(row.name == self.name)
            .values(selections=row.selections + count)
            .returning(row.selections)
        ).scalar_one()
        return int(taken) - count

    def give_back(self, first: int, end: int) -> None:
        """Numbers that were not used, if nobody has taken any since."""
        row = self.experiments.c
        with self.store.transaction() as connection:
            connection.execute(
                self.experiments.update()
                .where(row.name == self.name, row.selections == end)
                .values(selections=first)
            )

    def open(self, connection: sa.Connection, counts: dict[int, int]) -> None:
        """Selections of arms, by place; negative ones wait no longer."""
        c = self.arms.c
        for place, count in sorted(counts.items()):
            left = c.open + count
            connection.execute(self._at(place).values(open=sa.case((left > 0, left), else_=0)))

    def _at(self, place: int) -> Any:
        return self.arms.update().where(
            self.arms.c.experiment == self.name, self.arms.c.place == place
        )

    def add(self, connection: sa.Connection, place: int, rewards: Sequence[float]) -> None:
        """Count rewards of an arm, one after the other as `Arm.add` does."""
        c = self.arms.c
        if len(rewards) > 1:
            with self._changed(connection, place) as arm:
                for value in rewards:
                    arm.add(value)
            return
        x = sa.literal(rewards[0], sa.Double)
        before = sa.case((c.plays > 0, c.total / sa.func.nullif(c.plays, 0)), else_=x)
        spread = c.spread + (x - before) * (x - (c.total + x) / (c.plays + 1))
        connection.execute(
            self._at(place).values(
                spread=sa.case((spread > 0, spread), else_=0.0),
                total=c.total + x,
                plays=c.plays + 1,
                rewarded=c.rewarded + 1,
                open=sa.case((c.open > 0, c.open - 1), else_=0),
            )
        )

    def add_counts(
        self, connection: sa.Connection, place: int, counts: tuple[int, float, float]
    ) -> None:
        """Count rewards of which the number, the sum and the sum of squares are known."""
        with self._changed(connection, place) as arm:
            arm.add_counts(*counts)

    @contextmanager
    def _changed(self, connection: sa.Connection, place: int) -> Iterator[Arm]:
        """An arm to change here: others wait for its row until the transaction ends."""
        c = self.arms.c
        query = sa.select(c.arm, *(c[key] for key in _COUNTS)).where(
            c.experiment == self.name, c.place == place
        )
        arm = Arm(*connection.execute(query.with_for_update()).one())
        arm.follow()
        yield arm
        connection.execute(self._at(place).values(**{key: getattr(arm, key) for key in _COUNTS}))

    def add_arm(self, connection: sa.Connection, arm: Arm | None, place: int) -> None:
        """A new arm at a place, or one that is there and was retired."""
        if arm is not None:
            connection.execute(self.arms.insert().values(**self._row(place, arm)))
        else:
            connection.execute(self._at(place).values(retired=False))

    def retire(self, connection: sa.Connection, place: int) -> None:
        connection.execute(self._at(place).values(retired=True))

    # Choices ------------------------------------------------------------------------------------

    def choose(
        self, connection: sa.Connection, choices: Sequence[Choice], places: Sequence[int]
    ) -> None:
        """Write choices down, each open."""
        rows = [
            {
                "experiment": self.name,
                "id": choice.id,
                "place": place,
                "probability": choice.probability,
                "time": choice.time,
                "reward": None,
                "closed": False,
            }
            for choice, place in zip(choices, places, strict=True)
        ]
        connection.execute(self.choices.insert(), rows)

    def reward(
        self, connection: sa.Connection, pairs: Sequence[tuple[str, float]], on_duplicate: str
    ) -> list[bool | InputError]:
        """Count the rewards of choices: whether each was counted now, or why it was refused."""
        c = self.choices.c
        ids = sorted({name for name, _ in pairs})
        known: dict[str, list[Any]] = {}
        for begin in range(0, len(ids), 500):
            query = sa.select(c.id, c.place, c.reward, c.closed).where(
                c.experiment == self.name, c.id.in_(ids[begin : begin + 500])
            )
            # In order, so that no two processes wait for each other.
            rows = connection.execute(query.order_by(c.id).with_for_update()).all()
            known |= {name: [place, before, closed] for name, place, before, closed in rows}
        fresh: dict[int, list[float]] = {}
        replaced: list[tuple[int, float, float]] = []
        counted: list[bool | InputError] = []
        for name, value in pairs:
            entry = known.get(name)
            if entry is None:
                counted.append(unknown(name))
                continue
            place, before, closed = entry
            try:
                counted.append(not closed or check_second(on_duplicate, name, before, value))
            except InputError as error:
                counted.append(error)
            if counted[-1] is not True:
                continue
            if before is None:
                fresh.setdefault(place, []).append(value)
            else:
                replaced.append((place, before, value))
            known[name] = [place, value, True]
        changed = {
            name: known[name][1]
            for (name, _), new in zip(pairs, counted, strict=True)
            if new is True
        }
        if changed:
            self._close(connection, changed)
        for place in sorted({*fresh, *(place for place, _, _ in replaced)}):
            if fresh.get(place):
                self.add(connection, place, fresh[place])
            for other, before, value in replaced:
                if other == place:
                    self._replace(connection, place, before, value)
        return counted

    def _close(self, connection: sa.Connection, rewards: dict[str, float]) -> None:
        statement = (
            self.choices.update()
            .where(
                self.choices.c.experiment == self.name, self.choices.c.id == sa.bindparam("choice")
            )
            .values(reward=sa.bindparam("value"), closed=True)
        )
        rows = [{"choice": name, "value": value} for name, value in rewards.items()]
        connection.execute(statement, rows)

    def _replace(self, connection: sa.Connection, place: int, before: float, reward: float) -> None:
        """`Arm.replace` in SQL."""
        c = self.arms.c
        change = sa.literal(reward - before, sa.Double)
        means = (c.total + change) / c.plays + c.total / c.plays
        spread = c.spread + change * (sa.literal(reward + before, sa.Double) - means)
        connection.execute(
            self._at(place).values(
                spread=sa.case((spread > 0, spread), else_=0.0), total=c.total + change
            )
        )

    def expire(self, connection: sa.Connection, before: float, value: float | None) -> int:
        """Close choices that were made before a time, with a reward or none; how many."""
        c = self.choices.c
        late = (c.experiment == self.name, c.closed == sa.false(), c.time < before)
        query = sa.select(c.id, c.place).where(*late).order_by(c.id).limit(1000)
        rows = connection.execute(query.with_for_update(skip_locked=True)).all()
        if not rows:
            return 0
        if value is not None:
            self.reward(connection, [(name, value) for name, _ in rows], REFUSE)
            return len(rows)
        names = [name for name, _ in rows]
        connection.execute(
            self.choices.update()
            .where(c.experiment == self.name, c.id.in_(names))
            .values(closed=True)
        )
        counts: dict[int, int] = {}
        for _, place in rows:
            counts[place] = counts.get(place, 0) - 1
        self.open(connection, counts)
        return len(rows)

    def forget(self, connection: sa.Connection, before: float) -> None:
        """Choices that are closed and were made before a time."""
        c = self.choices.c
        late = (c.experiment == self.name, c.closed == sa.true(), c.time < before)
        connection.execute(self.choices.delete().where(*late))

    # Looking back -------------------------------------------------------------------------------

    def log(self) -> list[tuple[ArmName, float | None, float, float]]:
        """The choices in the order of their times: arm, reward (None if it has none), probability, time."""
        c = self.choices.c
        query = (
            sa.select(c.place, c.reward, c.probability, c.time)
            .where(c.experiment == self.name)
            .order_by(c.time, c.id)
        )
        with self.store.transaction(reading=True) as connection:
            names = [arm.name for arm in self._read(connection)[1]]
            return [(names[place], *more) for place, *more in connection.execute(query)]

    def shares(self, parts: int) -> tuple[float, float, dict[int, list[int]]]:
        """How often each arm was chosen in equal parts of the time: begin, end, and counts by place."""
        c = self.choices.c
        mine = c.experiment == self.name
        ends = sa.select(sa.func.min(c.time), sa.func.max(c.time)).where(mine)
        with self.store.transaction(reading=True) as connection:
            first, last = connection.execute(ends).one()
            if first is None:
                return 0.0, 0.0, {}
            width = max((last - first) / parts, 1e-9)
            part = sa.cast(sa.func.floor((c.time - first) / width), sa.Integer).label("part")
            if self.store.dialect == "sqlite":  # whose casts cut off, and which may lack floor
                part = sa.cast((c.time - first) / width, sa.Integer).label("part")
            query = sa.select(c.place, part, sa.func.count()).where(mine).group_by(c.place, part)
            found: dict[int, list[int]] = {}
            for place, number, count in connection.execute(query):
                counts = found.setdefault(place, [0] * parts)
                counts[min(int(number), parts - 1)] += count
        return first, last, found
