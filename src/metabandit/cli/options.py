"""The options that several commands share, each declared once, and how they reach the library.

The type of an option is `Annotated[type, help]`, with the default to show as a third item if it is
not the parameter's, or what Typer wants in full.

A group is a function: its parameters are options, and what it returns is what a command is given. A
command names the group in the type of a parameter, as in `task: options.Task`, and `with_groups` puts
the group's options in that place. Groups may name groups. So an option added to a group is there in
every command that has the group, and reaches the library with the others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ..errors import InputError

Horizon = Annotated[int, "Plays per test (episode)."]
Seed = Annotated[int, "The same seed gives the same result."]
Effort = Annotated[float, "How long to search: 2 takes twice as long, 0.5 half as long."]
Floor = Annotated[
    bool | None,
    Option(
        "--floor/--no-floor",
        help="Whether to compute the floor, which no policy can beat: the least possible regret, or a lower "
        "bound for more arms.",
        show_default="if it is known or quick to compute",
    ),
]
FloorEffort = Annotated[
    float | None,
    "How long to compute the floor if it is a lower bound: 5 takes about a minute.",
    "the effort, up to 1",
]
Arms = Annotated[int | None, "Arms per problem; 2 if the prior does not say."]
Start = Annotated[
    str | None,
    "How play begins: each-once (play each arm once first), prior-counts (pseudo-observations from the prior), or "
    "pseudo-observations of your own, such as prior-counts:plays=2,sum=1; prior-counts:learn for `learn` to find them.",
    "prior-counts if the prior has them, otherwise each-once",
]
Resume = Annotated[bool, "Continue a run that was stopped, with the same --out."]
Force = Annotated[bool, "Overwrite existing files."]
Threads = Annotated[int | None, "Threads to use.", "all cores"]
Show = Annotated[str | None, "successes: also show expected successes, for arms that pay 0 or 1."]
Json = Annotated[bool, Option("--json", help="Print the result as JSON.")]

# Where help shows an option; what people set daily is not named here.
_PANELS = {
    name: panel
    for panel, options in {
        "More": "seed start floor show method episodes resume force threads figures tables formats columns "
        "per-arm hierarchical minimum look-every boundary csv plot min-share top expire token-file "
        "max-body",
        "For experts": "floor-effort pending runs objective reference cluster workers v1 v4 initial "
        "optimizer protocol generations grammar classes strategy pulls refine constants operators "
        "variables groups tolerance sharp imbalance fewer-than",
    }.items()
    for name in options.split()
}


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as Typer wants it: the options of its groups stand among its own."""
    parameters, call = _expand(command)

    def run(**given: Any) -> None:
        call(given)

    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _expand(
    function: Callable[..., Any],
) -> tuple[list[inspect.Parameter], Callable[[dict[str, Any]], Any]]:
    """The options of a function and of its groups, and how to call it with the values of all."""
    parameters: list[inspect.Parameter] = []
    readers: dict[str, Callable[[dict[str, Any]], Any]] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        kind, (first, *default) = parameter.annotation.__origin__, parameter.annotation.__metadata__
        if inspect.isfunction(first):
            inner, readers[name] = _expand(first)
            parameters += inner
            continue
        if isinstance(first, str):
            flag = [f"--{name}"] if kind is bool else []
            first = Option(*flag, help=first, show_default=default[0] if default else True)
        first.rich_help_panel = _PANELS.get(name.replace("_", "-"))
        parameter = parameter.replace(annotation=Annotated[kind, first])
        parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        readers[name] = itemgetter(name)
    return parameters, lambda given: function(
        **{name: read(given) for name, read in readers.items()}
    )


def arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments for the library, from the `locals()` of a command: its options and groups.

    So an option of a command, too, is one declaration. What the command line deals with itself is
    left out.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, dict):  # of a group
            found |= value
        elif name not in ("resources", "as_json", "show"):
            found[name] = value
    return found


def _read_prior(
    prior: Annotated[
        str, "What you know about the arms in advance (see `metabandit priors`)."
    ] = "bernoulli",
    arms: Arms = None,
) -> Any:
    from ..priors import prior as read

    return read(prior, arms=arms)


Prior = Annotated[Any, _read_prior]


def _read_feedback(
    batch: Annotated[
        str | None,
        "Plays per batch, after which its rewards are known: 500, sizes such as 200,300,500, or "
        "geometric:growth=1.1.",
    ] = None,
    delay: Annotated[
        str | None,
        "Plays until a reward is known: 30, or geometric:mean=50 for random delays.",
    ] = None,
    min_share: Annotated[
        float, "The least probability of every arm at every play, whatever the policy."
    ] = 0.0,
    pending: Annotated[
        str,
        "Whether policies count plays whose reward is still to come: count or ignore.",
    ] = "count",
) -> Any:
    from ..feedback import Feedback as Made

    return Made(
        batch=1 if batch is None else batch,
        delay=0 if delay is None else delay,
        min_share=min_share,
        pending=pending,
    )


Feedback = Annotated[Any, _read_feedback]


def _read_fitting(
    per_arm: Annotated[
        bool, Option("--per-arm", help="Fit one distribution per named arm.")
    ] = False,
    hierarchical: Annotated[
        bool, "Fit a level per test, with arms around it, for tests that differ in level."
    ] = False,
    columns: Annotated[
        str | None,
        "Titles of columns, if they are not recognised: plays=Mails,successes=Answers; also problem, arm, "
        "mean, error, deviation, reward.",
    ] = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"per_arm": per_arm, "hierarchical": hierarchical, "columns": None}
    if columns is not None:
        given["columns"] = found = {}
        for item in columns.split(","):
            role, equals, title = item.partition("=")
            if not (equals and role.strip() and title.strip()):
                raise InputError(f"--columns {columns!r}: {item!r} is not of the form plays=Mails")
            found[role.strip()] = title.strip()
    return given


# How a history is read: keyword arguments of `fit_prior`.
Fitting = Annotated[dict[str, Any], _read_fitting]


def _read_task(
    prior: Prior,
    feedback: Feedback,
    seed: Seed = 0,
    floor: Floor = None,
    floor_effort: FloorEffort = None,
) -> dict[str, Any]:
    return arguments(locals())


# What `evaluate`, `learn` and `search` are asked about, as their keyword arguments.
Task = Annotated[dict[str, Any], _read_task]


def _read_history_task(
    prior: Annotated[
        str | None,
        "What you know about the arms in advance (see `metabandit priors`).",
        "bernoulli",
    ] = None,
    arms: Arms = None,
    history: Annotated[
        Path | None,
        "A CSV file of past tests, to fit the prior to (see `metabandit fit`).",
    ] = None,
    *,
    fitting: Fitting,
    feedback: Feedback,
    seed: Seed = 0,
    floor_effort: FloorEffort = None,
) -> dict[str, Any]:
    asked = {"feedback": feedback, "seed": seed, "floor_effort": floor_effort}
    if history is None:
        if fitting != {"per_arm": False, "hierarchical": False, "columns": None}:
            raise InputError(
                "--per-arm, --hierarchical and --columns are for a history of past tests: give --history"
            )
        return {"prior": _read_prior(prior or "bernoulli", arms), **asked}
    if prior is not None:
        raise InputError(
            f"--prior {prior} and --history {history} cannot both be given: the prior is fitted to the history; leave "
            f"one of them out"
        )
    from ..priors.fitting import fit_prior

    fitted = fit_prior(history, **fitting)
    if arms is not None:
        fitted = replace(fitted, prior=_read_prior(str(fitted.prior), arms))
    return {"prior": fitted, **asked}


# The same of `advise`, which can also be given a history.
HistoryTask = Annotated[dict[str, Any], _read_history_task]


def _read_run(
    task: Task,
    horizon: Horizon = 100,
    objective: Annotated[
        str,
        "What to minimise: regret (its mean over problems), wins (the share lost against --reference), "
        "quantile:q=0.9 (of regret), worst (the largest regret), simple (regret of the arm chosen at the end). "
        "`learn` also takes power:p1=0.3,p2=0.5,least=0.8,test=fisher (regret of a trial with this power) and "
        "worst:grid=0.1:0.9:0.1 (the largest regret over these success rates).",
    ] = "regret",
    reference: Annotated[str | None, "The policy to compare with, for --objective wins."] = None,
    start: Start = None,
    effort: Effort = 1.0,
    time_limit: Annotated[
        str | None,
        "Time for the whole command, such as 90s, 5m or 1h, not counting compilation, which is done once.",
    ] = None,
    resume: Resume = False,
    force: Force = False,
) -> dict[str, Any]:
    return arguments(locals())


# The same of a search that can be stopped and resumed: `learn` and `search`.
Run = Annotated[dict[str, Any], _read_run]


def _read_resources(
    threads: Threads = None,
    cluster: Annotated[
        str | None,
        "The address of a running Dask scheduler whose workers do the work, such as tcp://host:8786.",
    ] = None,
    workers: Annotated[
        int | None, "Worker processes to start on this machine for the run, with Dask."
    ] = None,
) -> tuple[int | None, str | None, int | None]:
    return threads, cluster, workers


# Who works: threads, the address of a scheduler, how many workers to start (see running.py).
Resources = Annotated[tuple[int | None, str | None, int | None], _read_resources]


def _read_grammar(
    constants: Annotated[
        str | None, "Numbers in formulas, separated by commas.", "1,2,3,5,7"
    ] = None,
    operators: Annotated[
        str | None,
        "Operators in formulas: add, subtract, multiply, divide, min, max, sqrt, ln, abs, "
        "negate, invert; also exp, power and kl_upper.",
        "all but the last three",
    ] = None,
    variables: Annotated[
        str | None,
        "Variables in formulas: r, s, n, t; also h (plays left), K (arms) and w (waiting plays).",
        "r,s,n,t",
    ] = None,
) -> Any:
    if constants is operators is variables is None:
        return None
    from ..formulas import Grammar

    return Grammar.read(operators=operators, variables=variables, constants=constants)


# A `Grammar`, or None if no option asks for one.
Grammar = Annotated[Any, _read_grammar]
