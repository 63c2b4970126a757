"""An index policy as a query, in the SQL of six databases: the next arm, or the arms of the next batch.

A query is a chain of tables, each with columns added to the one before, of plain arithmetic: nothing
that a warehouse lacks. What has no value is NULL, and what is infinite comes first.

The query for a batch of B plays gives what B selections one after the other give, without a loop. Let
i_k(j) be the index of arm k when j plays of the batch are its own. Choosing the largest B times takes
the B largest of all m_k(j) = min(i_k(0), ..., i_k(j)). The time in these indices is that of the last
play of the batch: an arm gets the plays that make it no better than the others at the end.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import InputError, about, nearest
from ..feedback import PATIENCE
from ..language import Apply, Constant, Tree, operators, variables
from ..language.source import Assignment, real
from ..language.values import evaluate_tree
from ..settings import check_whole
from .policy import ExportedPolicy
from .program import WIDTH, source_of, statement

MOST_PLAYS = 1_000_000


@dataclass(frozen=True)
class Dialect:
    """What differs between databases.

    double, whole: the types of numbers; infinity: the largest; not_a_number: how NaN becomes NULL, if there is one
    parameter: the random number that a person binds
    recursive: whether a subquery can be recursive
    """

    title: str
    double: str
    infinity: str
    not_a_number: str = ""
    parameter: str = ":u"
    whole: str = "INTEGER"
    recursive: bool = True


DIALECTS = {
    "postgresql": Dialect(
        "PostgreSQL 12",
        "DOUBLE PRECISION",
        "'Infinity'",
        "NULLIF({0}, CAST('NaN' AS DOUBLE PRECISION))",
    ),
    "sqlite": Dialect("SQLite 3.35 with its mathematical functions", "REAL", "9e999"),
    "duckdb": Dialect(
        "DuckDB 1", "DOUBLE", "'Infinity'", "NULLIF({0}, CAST('NaN' AS DOUBLE))", parameter="$u"
    ),
    "bigquery": Dialect(
        "BigQuery (GoogleSQL)",
        "FLOAT64",
        "'inf'",
        "CASE WHEN NOT IS_NAN({0}) THEN {0} END",
        parameter="@u",
        recursive=False,
    ),
    "snowflake": Dialect(
        "Snowflake", "FLOAT", "'inf'", "NULLIF({0}, CAST('NaN' AS FLOAT))", recursive=False
    ),
    # MySQL has no infinity: the largest number stands for it.
    "mysql": Dialect(
        "MySQL 8.0.17", "DOUBLE", "1.7976931348623157e308", parameter="@u", whole="SIGNED"
    ),
}


def check_dialect(name: str) -> Dialect:
    """A dialect by its name, or an error that names those there are."""
    if name not in DIALECTS:
        raise InputError(
            f"no SQL dialect {name!r}; {nearest(str(name), DIALECTS)}", about="dialect"
        )
    return DIALECTS[name]


def _folded(tree: Tree) -> Tree:
    """The tree with one number for each part that reads nothing: databases count those in decimals."""
    if not isinstance(tree, Apply):
        return tree
    if not variables(tree):
        value = float(evaluate_tree(tree, {}))
        if abs(value) < float("inf"):
            return Constant(value)
    return Apply(tree.operator, tuple(_folded(operand) for operand in tree.operands))


def _select(columns: Sequence[str], source: str, where: str = "") -> str:
    """A SELECT with as many columns on a line as fit."""
    lines = ["SELECT "]
    for place, column in enumerate(columns):
        text = column + ("," if place < len(columns) - 1 else "")
        if lines[-1].strip() and len(lines[-1]) + len(text) > WIDTH - 6 and place:
            lines.append("  ")
        lines[-1] += text + " "
    lines.append(f"FROM {source}" + (f" WHERE {where}" if where else ""))
    return "\n".join(line.rstrip() for line in lines)


class _Query:
    """The tables of a query, one after the other."""

    def __init__(self) -> None:
        self.tables: list[tuple[str, str]] = []

    def add(self, name: str, columns: Iterable[str], source: str, where: str = "") -> str:
        """A table with these columns; empty ones are left out."""
        self.tables.append((name, _select([item for item in columns if item], source, where)))
        return name

    def extend(self, assignments: Iterable[Assignment], source: str) -> str:
        """A table per assignment, each with one column more than the one before; the last one's name."""
        for name, value, _ in assignments:
            lines = statement("SELECT *, ", value, f" AS {name}", indent="", brackets=False)
            self.tables.append((f"with_{name}", "\n".join([*lines, f"FROM {source}"])))
            source = f"with_{name}"
        return source

    def write(self, last: str) -> str:
        tables = ",\n".join(
            f"  {name} AS (\n{textwrap.indent(text, '    ')}\n  )" for name, text in self.tables
        )
        return f"WITH\n{tables}\n{last};\n"


def write(policy: ExportedPolicy, dialect: str, batch: int | None = None) -> str:
    """A policy as a query over a table of arms; with `batch`, one for the arms of that many plays."""
    database = check_dialect(dialect)
    if batch is not None:
        with about("batch"):
            batch = check_whole(batch, "the plays of a batch", 1, most=MOST_PLAYS)
    trees = [item for item in (policy.tree, policy.rate, policy.needed) if item is not None]
    if not database.recursive and any("kl_upper" in operators(item) for item in trees):
        raise InputError(
            f"the operator kl_upper cannot be exported to {dialect}: it is found by halving, for which a "
            f"subquery must be recursive; export to {', '.join(_recursive())}, or choose another "
            f"index, such as ucb1-tuned"
        )
    query, last = _write(policy, database, batch)
    notes = [*policy.notes(), "", *_explained(policy, database, batch)]
    head = "\n".join(f"-- {note}".rstrip() for note in notes)
    return f"{head}\n\n{query.write(last)}"


def _recursive() -> list[str]:
    return [name for name, item in DIALECTS.items() if item.recursive]


def _explained(policy: ExportedPolicy, database: Dialect, batch: int | None) -> list[str]:
    """How to use the query, in words."""
    columns = ["plays", "total", *(["squares"] if policy.reads("s") else [])]
    meanings = ["its plays", "the sum of its rewards"]
    if policy.reads("s"):
        meanings.append("the sum of their squares")
    if policy.waiting:
        columns.append("waiting")
        meanings[0] = "its plays that have had their reward"
        meanings.append("its plays whose reward is still to come")
    listed = f"{', '.join(meanings[:-1])} and {meanings[-1]}"
    words = f"A query over a table arms(arm, {', '.join(columns)}): the name of each arm, {listed}."
    if batch is None:
        words += " The first row is the arm to play."
        words += " Arms without plays come first." if policy.counts is None else ""
    else:
        words += f" The answer is how many of the next {batch} plays each arm gets: batch_plays."
        if policy.random:
            words += " Random plays are spread evenly."
    if policy.arms is not None:
        words += f" There must be {policy.arms} arms, in the order of their names."
    if batch is None and policy.random:
        words += f" Bind {database.parameter} to a random number, uniform in [0, 1)."
    words += (
        f" For {database.title} or later."
        if database.title[-1].isdigit()
        else f" For {database.title}."
    )
    return textwrap.wrap(words, 90, break_long_words=False, break_on_hyphens=False)


# The parts of a query --------------------------------------------------------------------------


def _write(policy: ExportedPolicy, database: Dialect, batch: int | None) -> tuple[_Query, str]:
    query = _Query()
    least = policy.least_plays
    chain: list[Assignment] = []
    for name, tree in (("rate", policy.rate), ("needed", policy.needed)):
        if tree is not None:
            assignments, text = source_of(_folded(tree), "sql", least, names=f"{name}_x")
            chain += [*assignments, (name, text, True)]
    assignments, text = source_of(_folded(policy.tree), "sql", least)
    values = [*assignments, ("arm_index", text, False)]
    infinite = any("infinity" in value for _, value, _ in (*chain, *values))
    if infinite and database.not_a_number:
        values[-1] = ("raw_index", text, False)
        values.append(("arm_index", database.not_a_number.format("raw_index"), False))

    if batch is not None:
        _add_turns(query, batch)
    _add_counts(query, policy, database, waits=policy.waiting or batch is not None)
    source = _add_moment(query, policy, database, batch, infinite=infinite)
    moment = query.extend(chain, source)
    if batch is not None:
        moment = _add_last_moment(query, policy, batch, moment)
    last = query.extend(values, _add_means(query, policy, moment, batch))
    if batch is None:
        return query, _next_arm(policy, last)
    return query, _next_batch(query, policy, database.whole, last, batch)


def _add_turns(query: _Query, batch: int) -> None:
    """The numbers from 0 to the size of the batch, without a loop."""
    digits = " UNION ALL ".join(f"SELECT {digit}" for digit in range(1, 10))
    lines = textwrap.wrap(f"SELECT 0 AS digit UNION ALL {digits}", WIDTH - 10)
    query.tables.append(("digits", "\n".join(lines)))
    letters = [f"d{place}" for place in range(len(str(batch - 1)))]
    turn = " + ".join(f"{10**place} * {letter}.digit" for place, letter in enumerate(letters))
    crossed = " CROSS JOIN ".join(f"digits AS {letter}" for letter in letters)
    query.add("all_turns", [f"{turn} AS turn"], crossed)
    query.add("turns", ["turn"], "all_turns", f"turn < {batch}")


def _add_counts(query: _Query, policy: ExportedPolicy, database: Dialect, *, waits: bool) -> None:
    """The arms with their numbers, the start's among them; `rewarded` is NULL without any."""

    def number(column: str) -> str:
        return f"CAST({column} AS {database.double})"

    reads_s = policy.reads("s")
    given = ["plays", "total", *(["squares"] if reads_s else [])]
    # An arm without rewards comes out of a LEFT JOIN with NULLs.
    columns = [f"{number(f'COALESCE({name}, 0)')} AS {name}" for name in given]
    if waits:
        columns.append(f"{number('COALESCE(waiting, 0)' if policy.waiting else '0')} AS waiting")
    query.add("given", ["arm", "ROW_NUMBER() OVER (ORDER BY arm) - 1 AS place", *columns], "arms")
    kept = ["arm", "place", "plays"]
    waiting = "waiting" if waits else ""
    if policy.counts is None:
        more = ["NULLIF(plays, 0) AS rewarded", *given[1:], waiting]
        query.add("counts", [*kept, *more], "given")
        return
    numbers = [[real(value) for value in row] for row in policy.counts]
    if policy.arms is None:
        pseudo, source = [row[0] for row in numbers], "given"
    else:
        pseudo, source = [f"start_{name}" for name in ("plays", "total", "squares")], ""
        rows = [
            ", ".join(
                [
                    f"{place} AS start_place",
                    *(f"{item} AS {name}" for item, name in zip(row, pseudo, strict=True)),
                ]
            )
            for place, row in enumerate(zip(*numbers, strict=True))
        ]
        query.tables.append(("start_counts", "\nUNION ALL ".join(f"SELECT {row}" for row in rows)))
        source = "given LEFT JOIN start_counts ON place = start_place"
    more = [f"plays + {pseudo[0]} AS rewarded", f"total + {pseudo[1]} AS total"]
    more += [f"squares + {pseudo[2]} AS squares"] if reads_s else []
    query.add("counts", [*kept, *more, waiting], source)


def _add_moment(
    query: _Query, policy: ExportedPolicy, database: Dialect, batch: int | None, *, infinite: bool
) -> str:
    """What is the same for all arms; for a batch, one row per play."""
    waits = policy.waiting or batch is not None
    each_once = policy.counts is None
    made = "plays + waiting" if waits else "plays"
    n = "plays" if each_once else "rewarded"
    n += " + waiting" if waits else ""
    columns = [f"NULLIF(SUM({n}), 0) AS t", f"CAST(COUNT(*) AS {database.double}) AS K"]
    kept = ["K"]
    if policy.reads("h"):
        assert policy.horizon is not None
        left = f"{policy.horizon} - SUM({made})"
        columns.append(f"CASE WHEN {left} > 1 THEN {left} ELSE 1.0 END AS h")
    if infinite:
        columns.append(f"CAST({database.infinity} AS {database.double}) AS infinity")
        kept.append("infinity")
    if policy.needed is not None:
        columns.append(f"MIN({n}) AS fewest")
        kept.append("fewest")
    if waits and each_once:
        lacking = f"MIN(plays) = 0 AND SUM(plays) < {PATIENCE} * COUNT(*)"
        columns.append(f"CASE WHEN {lacking} THEN 1 ELSE 0 END AS begins")
        columns.append("SUM(total) / NULLIF(SUM(plays), 0) AS all_mean")
        kept += ["begins", "all_mean"]
    if batch is None and policy.random:
        columns.append(f"CAST({database.parameter} AS {database.double}) AS u")
    query.add("moment", columns, "counts")
    if batch is not None:
        h = "CASE WHEN h - turn > 1 THEN h - turn ELSE 1.0 END AS h" if policy.reads("h") else ""
        source = "moment CROSS JOIN turns"
        return query.add("moments", ["turn AS turn_now", "t + turn AS t", h, *kept], source)
    if not policy.min_share:
        return "moment"
    share = f"K * {real(policy.min_share)}"
    query.add("shares", ["*", f"{share} AS share"], "moment")
    v = "CASE WHEN u >= share AND share < 1 THEN (u - share) / (1 - share) END AS v"
    return query.add("luck", ["*", v], "shares")


def _add_last_moment(query: _Query, policy: ExportedPolicy, batch: int, moment: str) -> str:
    """The moment of a batch's last play, with the arms; and their random plays, spread evenly."""
    source, where = moment, f"turn_now = {batch - 1}"
    if not policy.random:
        last = query.add("last_moment", ["*"], source, where)
        return f"counts CROSS JOIN {last}"
    share = f"K * {real(policy.min_share)}" if policy.min_share else ""
    chance = share
    if policy.rate is not None:
        query.add("paces", ["AVG(rate) AS pace"], moment)
        source += " CROSS JOIN paces"
        # While arms are played once each, the rate has no say.
        rate = "COALESCE(pace, 0.0)"
        if policy.counts is None:
            rate = "CASE WHEN begins = 0 THEN pace ELSE 0.0 END"
        chance = f"{share} + (1 - {share}) * {rate}" if share else rate
    query.add("last_moment", ["*", f"{chance} AS chance"], source, where)
    number = f"FLOOR({batch} * chance + 0.5) AS random_plays"
    query.add("random_moment", ["*", number], "last_moment")
    extra = "FLOOR((random_plays - 1 - place) / K) + 1 AS extra"
    return query.add("shared", ["*", extra], "counts CROSS JOIN random_moment")


def _add_means(query: _Query, policy: ExportedPolicy, moment: str, batch: int | None) -> str:
    """What is known of each arm: n, r, s and w; for a batch, after each number of plays of it."""
    waits = policy.waiting or batch is not None
    waiting = "waiting" + _taken(policy, batch)
    if policy.counts is None:
        n = f"NULLIF(plays + {waiting}, 0)" if waits else "rewarded"
        r = "COALESCE(total / rewarded, all_mean)" if waits else "total / rewarded"
    else:
        n = f"rewarded + {waiting}" if waits else "rewarded"
        r = "total / rewarded"
    w = f"{waiting} AS w" if policy.reads("w") else ""
    source = f"counts CROSS JOIN {moment}" if batch is None else f"{moment} CROSS JOIN turns"
    means = query.add("means", ["*", f"{n} AS n", f"{r} AS r", w], source)
    if not policy.reads("s"):
        return means
    query.add("variances", ["*", "squares / rewarded - r * r AS variance"], means)
    s = "CASE WHEN variance > 0 THEN SQRT(variance) ELSE 0.0 END AS s"
    return query.add("deviations", ["*", s], "variances")


def _taken(policy: ExportedPolicy, batch: int | None) -> str:
    """The plays of the batch that an arm has had already."""
    return "" if batch is None else (" + extra" if policy.random else "") + " + turn"


def _order(policy: ExportedPolicy, batch: int | None) -> list[str]:
    """What decides before the index: rewards that are wanted, and needed plays."""
    keys = []
    waiting = "waiting" + _taken(policy, batch)
    if policy.counts is None and (policy.waiting or batch is not None):
        keys.append(f"CASE WHEN begins = 1 THEN {waiting} END")
        keys.append(f"CASE WHEN plays = 0 AND (begins = 1 OR {waiting} = 0) THEN 0 ELSE 1 END")
        keys.append("CASE WHEN begins = 1 THEN place END")
    elif policy.counts is None:
        keys.append("CASE WHEN plays > 0 THEN 1 ELSE 0 END")
    if policy.needed is not None:
        behind = "fewest < needed" if batch is None else "n < needed"
        keys.append(f"CASE WHEN {behind} THEN 0 ELSE 1 END")
        keys.append(f"CASE WHEN {behind} THEN n ELSE 0 END")
    return keys


def _next_arm(policy: ExportedPolicy, last: str) -> str:
    keys = _order(policy, None)
    if policy.rate is not None:
        u = "v" if policy.min_share else "u"
        drawn = f"{u} < rate AND place = FLOOR({u} / NULLIF(rate, 0) * K)"
        keys.append(f"CASE WHEN {drawn} THEN 0 ELSE 1 END")
    if policy.min_share:
        drawn = "u < share AND place = FLOOR(u / share * K)"
        keys.insert(0, f"CASE WHEN {drawn} THEN 0 ELSE 1 END")
    keys += ["CASE WHEN arm_index IS NULL THEN 1 ELSE 0 END", "arm_index DESC", "place"]
    shown = ["arm", "plays", "r", *(["s"] if policy.reads("s") else []), "arm_index"]
    return f"SELECT {', '.join(shown)}\nFROM {last}\nORDER BY\n  " + ",\n  ".join(keys)


def _next_batch(query: _Query, policy: ExportedPolicy, whole: str, last: str, batch: int) -> str:
    least = "MIN(arm_index) OVER (PARTITION BY place ORDER BY turn) AS least_index"
    query.add("merged", ["*", least], last)
    keys = _order(policy, batch)
    keys += ["CASE WHEN least_index IS NULL THEN 1 ELSE 0 END", "least_index DESC", "turn", "place"]
    over = "  ROW_NUMBER() OVER (ORDER BY\n    " + ",\n    ".join(keys) + "\n  ) AS turn_taken"
    query.tables.append(("taken", f"SELECT *,\n{over}\nFROM merged"))
    limit = f"{batch} - random_plays" if policy.random else f"{batch}"
    plays = f"SUM(CASE WHEN turn_taken <= {limit} THEN 1 ELSE 0 END)"
    if policy.random:
        plays = f"MAX(extra) + {plays}"
    columns = f"arm,\n  CAST({plays} AS {whole}) AS batch_plays"
    return f"SELECT {columns}\nFROM taken\nGROUP BY arm, place\nORDER BY place"
