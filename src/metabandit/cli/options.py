"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Prior = Annotated[str, typer.Option(help="What problems are like (see `metabandit priors`).")]
Arms = Annotated[int | None, typer.Option(help="Arms of a problem; 2 if the prior does not say.")]
Seed = Annotated[int, typer.Option(help="One seed, one result.")]
Threads = Annotated[int | None, typer.Option(help="All cores by default.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
