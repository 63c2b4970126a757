"""`metabandit policies`: the catalogue."""

from __future__ import annotations

import typer

from ..policies import Parameter
from . import options
from .display import show_json, show_table


def _shown(item: Parameter) -> str:
    default = "" if item.default is None else f"={item.default:g}"
    by_prior = ", of the prior if it says" if item.matched else ""
    return f"{item.name}{default} ({item.rule}{by_prior})"


def command(as_json: options.Json = False) -> None:
    """List the policies: formula, parameters with defaults and rules, source."""
    from ..language import OPERATORS, VARIABLES
    from ..policies import CATALOGUE

    if as_json:
        show_json(
            [
                {
                    "name": entry.name,
                    "kind": "index" if entry.is_index else "other",
                    "formula": entry.description,
                    "parameters": [
                        {
                            "name": item.name,
                            "default": item.default,
                            "rule": item.rule,
                            "of_prior": item.matched,
                        }
                        for item in entry.parameters
                    ],
                    "source": entry.source,
                }
                for entry in CATALOGUE.values()
            ]
        )
        return
    rows = []
    for entry in CATALOGUE.values():
        numbers = map(_shown, entry.parameters)
        rows.append([entry.name, entry.description, "\n".join(numbers), entry.source])
    show_table(["policy", "formula", "parameters", "source"], rows)
    typer.echo("Any expression is a policy too: metabandit evaluate 'r + 3/(n + 2)'\nVariables:")
    for name, meaning in VARIABLES.items():
        typer.echo(f"  {name}  {meaning}")
    typer.echo("Operators: + - * / ^ and")
    for name, operator in OPERATORS.items():
        if not operator.symbol:
            operands = (
                ", ".join("xyz"[: operator.arity]) if operator.arity else "v, x, y, z, weights"
            )
            typer.echo(f"  {name}({operands})  {operator.meaning}")
