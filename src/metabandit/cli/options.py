"""The options that several commands share, each declared once, and how they reach the library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from typer import Option

from ..errors import InputError

Prior = Annotated[str, Option(help="What problems are like (see `metabandit priors`).")]
Arms = Annotated[int | None, Option(help="Arms per problem; 2 if the prior does not say.")]
Horizon = Annotated[int, Option(help="Plays per episode.")]
Start = Annotated[
    str | None,
    Option(
        help="How play begins: each-once, prior-counts, or with numbers, as in "
        "prior-counts:plays=2,sum=1; `learn` can also learn them: prior-counts:learn.",
        show_default="prior-counts if the prior has counts, else each-once",
    ),
]
Seed = Annotated[int, Option(help="The same seed gives the same result.")]
Effort = Annotated[float, Option(help="How long to search: 2 is twice as long, 0.5 half as long.")]
TimeLimit = Annotated[
    str | None, Option(help="End the search after this time, such as 90s, 5m or 1h.")
]
Objective = Annotated[
    str,
    Option(
        help="regret (its mean over problems), wins (against --reference), quantile:q=0.9, "
        "worst (the largest over problems), or simple (regret of the arm chosen at the end)."
    ),
]
Reference = Annotated[str | None, Option(help="The policy that the objective wins compares with.")]
Constants = Annotated[
    str | None, Option(help="Numbers in formulas, separated by commas.", show_default="1,2,3,5,7")
]
Operators = Annotated[
    str | None,
    Option(
        help="Operators in formulas: add, subtract, multiply, divide, min, max, sqrt, ln, abs, negate, "
        "invert; also exp, power and kl_upper.",
        show_default="all but the last three",
    ),
]
Variables = Annotated[
    str | None,
    Option(
        help="Variables in formulas: r, s, n, t; also h (plays left) and K (arms).",
        show_default="r,s,n,t",
    ),
]
Resume = Annotated[bool, Option("--resume", help="Continue the run of --out that was stopped.")]
Force = Annotated[bool, Option("--force", help="Overwrite the files that the options name.")]
Threads = Annotated[int | None, Option(help="All cores by default.")]
Scheduler = Annotated[
    str | None,
    Option(
        "--cluster",
        help="Hand the work to the workers of a running Dask scheduler, such as tcp://host:8786.",
    ),
]
WorkerCount = Annotated[
    int | None,
    Option(
        "--workers", help="Start this many worker processes on this machine for the run, with Dask."
    ),
]
Json = Annotated[bool, Option("--json", help="Print the result as JSON.")]

# Options that the command line deals with itself.
_OWN = ("arms", "cluster", "workers", "as_json")


def arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments for the library's function, from the `locals()` of a command.

    A new option is therefore one line in the command's signature.
    """
    from ..priors import prior

    found = {name: value for name, value in options.items() if name not in _OWN}
    found["prior"] = prior(options["prior"], arms=options["arms"])
    if options.get("time_limit") is not None:
        found["time_limit"] = read_seconds(options["time_limit"])
    return found


def read_seconds(text: str) -> float:
    """Read a time as people write it: 90, 90s, 5m, 1.5h."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([smh]?)\s*", text)
    if match is None or float(match.group(1)) == 0.0:
        raise InputError(f"a time limit is seconds, or such as 90s, 5m or 1h; not {text!r}")
    return float(match.group(1)) * {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}[match.group(2)]
