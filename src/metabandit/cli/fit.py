"""`metabandit fit`: a prior from past tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ..errors import about
from . import options
from .display import progress_bar, say, show_facts, show_json, show_rows

if TYPE_CHECKING:
    from ..priors.fitting import Fitted


def command(
    history: Annotated[
        Path,
        Argument(
            help="A CSV file of past tests: with the columns test, variant, sent, clicks; or one row per test with "
            "two columns per arm; or one row per play.",
            show_default=False,
        ),
    ],
    fitting: options.Fitting,
    plot: Annotated[
        Path | None,
        Option(
            help="Draw the history and the prior to this .png, .svg or .pdf file.",
            show_default=False,
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Fit a prior to past tests: how much arms really differ, without the noise of their results."""
    from ..files import check_new
    from ..priors.fitting import fit_prior

    if plot is not None:
        with about("plot"):
            plot = check_new(plot, (".png", ".svg", ".pdf"), "the picture", force=force)
    with progress_bar("fitting"):
        fitted = fit_prior(history, **fitting)
    if plot is not None:
        _draw(fitted, plot)
    if as_json:
        show_json(fitted.to_dict())
    else:
        _show(fitted)


def _draw(fitted: Fitted, plot: Path) -> None:
    from ..drawing import new_axes
    from ..files import written

    figure, axes = new_axes(7.0, 4.0)
    fitted.plot(axes)
    with written(plot, "the picture") as file:
        figure.savefig(file, format=plot.suffix[1:], dpi=160)
    say(f"drew the history and the prior to {plot}")


def _show(fitted: Fitted) -> None:
    known, figures = fitted.history, fitted.shrinkage
    caption = (
        f"What {known.name} says about arms: {len(known.problems)} tests, {len(known.plays)} arms, "
        f"{known.plays.sum():,.0f} plays"
    )
    show_rows(fitted.rows(), align="lr", caption=caption)
    sys.stdout.write("\n")
    show_facts(
        [
            ("prior", fitted.prior),
            (
                "check",
                f"a history from this prior looks at least as unusual with probability {fitted.plausible:.2g}",
            ),
            (
                "noise",
                f"observed means have a spread of {figures['raw_spread']:.3g}, true ones of "
                f"{figures['spread']:.3g}; chance adds {figures['noise']:.3g} in {figures['plays']:,.0f} plays",
            ),
            (
                "shrinkage",
                f"believe {100 * figures['kept']:.0f} % of an observed difference from the average",
            ),
            (
                "next",
                f"metabandit advise --prior {fitted.prior} --arms {fitted.prior.arms} --horizon 5000",
            ),
        ]
    )
    for note in (*known.notes, *fitted.warnings()):
        say(f"note: {note}")
