"""Rows of a table that are run one by one and kept: what `learning.py` and `formulas.py` share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def run_rows(
    title: str,
    rows: dict[str, Callable[[], Row]],
    kept: Path,
    *,
    warm_up: Callable[[], None],
    markdown: Callable[[dict[str, Row]], str],
    results: dict[str, Row],
) -> None:
    """Run the rows that the command line names, or all that are missing in the file; fill `results`."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--rows", help="names with commas between; all that are missing by default")
    parser.add_argument("--json", type=Path, default=kept)
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    if options.json.exists():
        results.update(json.loads(options.json.read_text("utf-8")))
    wanted = (
        options.rows.split(",") if options.rows else [row for row in rows if row not in results]
    )
    if wanted:
        warm_up()
    for name in wanted:
        results[name] = rows[name]()
        ordered = {row: results[row] for row in rows if row in results}
        results.clear()
        results.update(ordered)
        options.json.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
        row = results[name]
        print(name, row["reached"], row["wanted"], row["seconds"], row["holds"], flush=True)
    if options.markdown is not None:
        options.markdown.write_text(markdown(results), "utf-8")
