"""`metabandit policies`: the catalogue."""

from __future__ import annotations

from typing import Annotated

import typer

from .display import show_json, show_table


def policies(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the policies: formula, parameters with defaults and rules, source."""
    from ..language import OPERATORS, VARIABLES
    from ..policies import CATALOGUE

    if as_json:
        show_json(
            [
                {
                    "name": entry.name,
                    "kind": "index" if entry.build is None else "kernel",
                    "formula": entry.formula,
                    "parameters": [
                        {"name": item.name, "default": item.default, "rule": item.rule}
                        for item in entry.parameters
                    ],
                    "source": entry.source,
                }
                for entry in CATALOGUE.values()
            ]
        )
        return
    rows = [
        [
            entry.name,
            entry.formula,
            "\n".join(f"{item.name}={item.default:g} ({item.rule})" for item in entry.parameters),
            entry.source,
        ]
        for entry in CATALOGUE.values()
    ]
    show_table(["policy", "formula", "parameters", "source"], rows)
    variables = "\n".join(f"  {name}  {meaning}" for name, meaning in VARIABLES.items())
    functions = "\n".join(
        f"  {name}({', '.join('xyz'[: operator.arity]) if operator.arity else 'v, x, y, z, weights'})  {operator.meaning}"
        for name, operator in OPERATORS.items()
        if not operator.symbol
    )
    typer.echo(
        "Any expression is a policy too: metabandit evaluate 'r + 3/(n + 2)'\n"
        f"Variables:\n{variables}\nOperators: + - * / ^ and\n{functions}"
    )
