"""An index policy as a query for SQLite over a table of arms."""

from __future__ import annotations

import re

from ..errors import InputError
from ..language import operators
from ..language.source import Language, real
from .layout import statement
from .program import Program, body, simple, value_names

# Halving an interval of length 1 so often leaves less than float64 tells apart.
_HALVINGS = 52
_KL_UPPER = f"""(
  WITH RECURSIVE
    given(mean, bound) AS (SELECT {{0}}, {{1}}),
    halving(i, mean, bound, low, width) AS (
      SELECT 0, mean, bound, mean, (1 - mean) / 2 FROM given WHERE mean > 0 AND mean < 1
      UNION ALL
      SELECT
        i + 1, mean, bound,
        low + CASE
          WHEN mean * ln(mean / (low + width))
            + (1 - mean) * ln((1 - mean) / (1 - low - width)) <= bound
          THEN width ELSE 0
        END,
        width / 2
      FROM halving WHERE i < {_HALVINGS}
    )
  SELECT CASE
      WHEN bound IS NULL OR mean < -1e-12 OR mean > 1 + 1e-12 THEN NULL
      WHEN bound <= 0 THEN mean
      WHEN mean >= 1 THEN 1.0
      WHEN mean <= 0 THEN 1 - exp(-bound)
      ELSE (SELECT low FROM halving WHERE i = {_HALVINGS})
    END
  FROM given
)"""

LANGUAGE = Language(
    {
        "sqrt": "sqrt({0})",
        "ln": "ln({0})",
        "exp": "exp({0})",
        "abs": "abs({0})",
        "min": "min({0}, {1})",
        "max": "max({0}, {1})",
        "power": "CASE WHEN {0} >= 0 OR {1} = 2 THEN pow({0}, {1}) END",
        "kl_upper": _KL_UPPER,
    },
    number=real,
    alone=frozenset({"kl_upper"}),
)
_FUNCTIONS = ("ln", "exp", "sqrt", "abs", "pow", "min", "max")


def _table(name: str, select: list[str]) -> str:
    return f"  {name} AS (\n" + "\n".join(f"    {line}" for line in select) + "\n  )"


def _counts(program: Program) -> list[str]:
    """The tables that add the pseudo-observations of the start."""
    if program.counts is None:
        return [
            _table("counts", ["SELECT arm, plays, plays * 1.0 AS n, total, squares", "FROM arms"])
        ]
    if program.arms is None:
        plays, total, squares = (real(row[0]) for row in program.counts)
        select = [f"SELECT arm, plays, plays + {plays} AS n, total + {total} AS total,"]
        return [_table("counts", [*select, f"  squares + {squares} AS squares", "FROM arms"])]
    rows = [
        f"({arm}, {', '.join(map(real, numbers))})"
        for arm, numbers in enumerate(zip(*program.counts, strict=True))
    ]
    values = [*(f"  {row}," for row in rows[:-1]), f"  {rows[-1]}"]
    select = ["SELECT arm, plays, plays + pseudo_plays AS n, total + pseudo_total AS total,"]
    select += [
        "  squares + pseudo_squares AS squares",
        "FROM arms LEFT JOIN pseudo ON arm = pseudo_arm",
    ]
    names = "pseudo(pseudo_arm, pseudo_plays, pseudo_total, pseudo_squares)"
    return [_table(names, ["VALUES", *values]), _table("counts", select)]


def _moment(program: Program) -> str:
    select = ["SELECT sum(n) AS t, count(*) * 1.0 AS K"]
    if program.reads("h"):
        select[0] += f", max({program.horizon}.0 - sum(plays), 1.0) AS h"
    return _table("moment", [*select, "FROM counts"])


def write(program: Program) -> str:
    """The query as text."""
    if "beta_quantile" in operators(program.tree):
        raise InputError(
            f"{program.name} uses beta_quantile, for which SQL has no function; export it to python, "
            f"javascript or c, or choose another index, such as kl-ucb"
        )
    assignments, index = body(simple(program.tree), LANGUAGE, known=value_names(program.tree))
    tables = [*_counts(program), _moment(program)]
    select = [
        "SELECT *, total / n AS r, sqrt(max(squares / n - (total / n) * (total / n), 0.0)) AS s"
    ]
    tables.append(_table("observed", [*select, "FROM counts, moment"]))
    source = "observed"
    for item in assignments:
        name = f"with_{item.name}"
        written = "\n".join(statement("SELECT *, ", item.text, f" AS {item.name}", indent=""))
        tables.append(_table(name, [*written.splitlines(), f"FROM {source}"]))
        source = name
    lines = statement("", index, ' AS "index"', indent="  ")
    final = ["SELECT arm, n, r, s,", *lines, f"FROM {source}"]
    order = "plays > 0, " if program.counts is None else ""
    query = "WITH\n" + ",\n".join(tables) + "\n" + "\n".join(final)
    query += f'\nORDER BY {order}"index" DESC;\n'
    used = [name for name in _FUNCTIONS if re.search(rf"\b{name}\(", query)]
    notes = program.notes(
        "A query over a table arms(arm, plays, total, squares): the number of each arm, from 0,",
        "its plays, the sum of its rewards and the sum of their squares. The first row is the",
        "arm to play." + (" Arms without plays come first." if program.counts is None else ""),
        *([] if program.arms is None else [f"The arms must be 0 to {program.arms - 1}."]),
        f"For SQLite 3.35 or later; the functions used are {', '.join(used)}. Elsewhere min",
        "and max of two numbers may be called least and greatest. Division by zero and ln of",
        "what is not positive are NULL in SQLite, where other languages have infinity or nan; an",
        "index that is NULL comes last.",
    )
    head = "\n".join(f"-- {note}".rstrip() for note in notes)
    return f"{head}\n\n{query}"
