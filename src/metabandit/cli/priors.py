"""`metabandit priors`: what a prior can be."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from . import options
from .display import show_json, show_table


def command(as_json: options.Json = False) -> None:
    """List the priors, with their parameters and defaults."""
    from ..priors import PRIORS
    from ..priors.words import words_of

    items: list[dict[str, Any]] = []
    for name, make in PRIORS.items():
        signature = inspect.signature(make).parameters
        defaults = {key: signature[key].default for key in make.keys}
        items.append(
            {
                "name": name,
                "meaning": (make.__doc__ or "").split("\n\n")[0].strip(),
                "parameters": {
                    key: None if value is inspect.Parameter.empty else value
                    for key, value in defaults.items()
                },
            }
        )
    if as_json:
        show_json(items)
        return
    rows = []
    for item in items:
        parameters = item["parameters"].items()
        shown = [key if value is None else f"{key}={value}" for key, value in parameters]
        if words := words_of(item["name"]):
            shown.append("or {} and {}".format(*words))
            shown.append("or {} and {}".format(*words[2:]))
        rows.append([item["name"], item["meaning"], "\n".join(shown)])
    show_table(["prior", "meaning", "parameters"], rows)
    typer.echo(
        "Write name:key=value,key=value, as in bernoulli:low=0.01,high=0.06: nine means in ten lie between low "
        "and high; mean and sd are those of the arms' means. alpha=3:1 gives each arm a value of its own.\n"
        "To write a prior of your own in Python, see docs/extending.md"
    )
