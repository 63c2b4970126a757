"""`metabandit trial`: operating characteristics of adaptive trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ..errors import InputError, about
from ..files import check_new, written
from . import options
from .display import progress_bar, say, show_json, show_rows, told

if TYPE_CHECKING:
    from ..trials import Trial


def command(
    *,
    policies: Annotated[
        list[str],
        Argument(
            help="Designs: policies such as thompson (see `metabandit policies`), expressions or policy files; "
            "equal (equal allocation); crdp:degree=0.9,minimum=10 (constrained randomised dynamic programming).",
            show_default=False,
        ),
    ],
    at: Annotated[
        list[str] | None,
        Option(
            help="Success rates, one per arm, such as 0.3,0.5; or prior, for the average over the prior. May be "
            "given several times.",
            show_default=False,
        ),
    ] = None,
    grid: Annotated[
        str | None, "All combinations of the rates first:last:step, such as 0.1:0.9:0.1."
    ] = None,
    horizon: Annotated[int, "Largest number of patients."] = 100,
    test: Annotated[
        str,
        "The test of equal rates: fisher, z-pooled, z-unpooled, chi-squared, barnard, boschloo, "
        "bayes:c=0.975, exact or exact-conditional (the design's own), or none; one-sided with "
        "fisher:alternative=greater (arm 2 is better).",
    ] = "fisher",
    level: Annotated[float, "The level of the test."] = 0.05,
    prior: Annotated[
        str, "The prior that designs assume for the rates: bernoulli, with alpha and beta."
    ] = "bernoulli",
    arms: Annotated[int | None, "Number of arms.", "as many as --at has rates, otherwise 2"] = None,
    feedback: options.Feedback,
    minimum: Annotated[int, "Patients that every arm gets before the policy decides."] = 0,
    look_every: Annotated[
        int | None, "Patients between looks, at which a trial stops if the test rejects."
    ] = None,
    boundary: Annotated[
        str | None,
        "The boundary for stopping at a look: obrien-fleming, pocock, or one p-value per look, such as "
        "0.001,0.01,0.045.",
        "obrien-fleming",
    ] = None,
    imbalance: Annotated[
        float, "The excess of a worse arm that counts as an imbalance, as a share of all patients."
    ] = 0.1,
    fewer_than: Annotated[
        int | None, "Also compute the probability that an arm has fewer patients than this."
    ] = None,
    method: Annotated[str, "exact, monte-carlo (simulation), or auto: exact if possible."] = "auto",
    episodes: Annotated[
        int | None, "Trials to simulate per point and design.", "100000 if simulated"
    ] = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    details: Annotated[
        bool,
        "Also show the spread of patients and estimates, and in favour of which arm the test rejects.",
    ] = False,
    plot: Annotated[
        Path | None, "Draw power over the grid to this .svg, .png or .pdf file."
    ] = None,
    csv: Annotated[Path | None, "Write all characteristics to this .csv file."] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Compute the operating characteristics of adaptive trials: successes, power, type-I error, bias."""
    # Long because its options are its signature; the body is short.
    from ..priors import prior as read_prior
    from ..trials import operating_characteristics
    from ..trials.final import read_points

    given = [_read_point(text) for text in at or ()]
    known = [point for point in given if point is not None]
    belief = read_prior(prior, arms=len(known[0]) if arms is None and known else arms)
    with about("at"):
        points = read_points([point or belief for point in given], belief.arms)
    if csv is not None:
        check_new(csv, (".csv",), "the table", force=force)
    if plot is not None:
        has_power = grid is not None and belief.arms == 2 and test != "none"
        _check_plot(plot, has_power=has_power, force=force)
    with progress_bar(f"{horizon} patients") as progress:
        trial = operating_characteristics(
            policies,
            points,
            grid=grid, horizon=horizon, test=None if test == "none" else test, level=level,
            prior=belief, feedback=feedback, minimum=minimum, look_every=look_every,
            boundary=boundary, imbalance=imbalance, fewer_than=fewer_than, method=method,
            episodes=episodes, seed=seed, threads=threads, progress=progress,
        )  # fmt: skip
    if csv is not None:
        with written(csv, "the table") as file:
            file.write(trial.csv().encode())
    value = trial.to_dict()
    if plot is not None:
        _draw(value, plot)
    if as_json:
        show_json(value)
    else:
        by = "" if look_every is None else f" by {boundary or 'obrien-fleming'}"
        _show(trial, f"{_caption(trial, by)}{told(feedback)}", details=details)


def _check_plot(plot: Path, *, has_power: bool, force: bool) -> None:
    """Refuse a picture before anything is computed."""
    from ..report.writing import check_picture

    check_picture(plot, force=force)
    if not has_power:
        raise InputError(
            "a picture shows the power of a test over a grid of the rates of two arms: give "
            "--grid 0.1:0.9:0.1, and --test"
        )


def _draw(trial: dict[str, Any], plot: Path) -> None:
    from ..report.trials import power_figure
    from ..report.writing import save

    save(power_figure(trial), plot)
    say(f"drew {plot}")


def _show(trial: Trial, caption: str, *, details: bool) -> None:
    show_rows(trial.rows(), align="llr", caption=caption)
    for name, found in trial.designs.items():
        if (
            trial.test is not None
            and trial.test.startswith("exact")
            and not any(item.rejection for item in found)
        ):
            say(
                f"note: with {name}, the test {trial.test} never rejects here: no outcome is rare enough at every "
                f"common rate; try exact-conditional, or a design with more randomisation"
            )
    if details:
        show_rows(
            trial.more_rows(),
            align="llr",
            caption=f"wrong side: another arm has more patients than the best one, by more than "
            f"{100 * trial.imbalance:g} % of all",
        )


def _caption(trial: Trial, by: str) -> str:
    """What the table shows; `by` says which boundary the looks have."""
    how = "exact"
    if trial.method != "exact":
        count = next(iter(trial.designs.values()))[0].episodes
        how = f"{count:,} trials each: probabilities to ±{0.98 / count**0.5:.2g} (95 %)"
    tested = "" if trial.test is None else f", test {trial.test}"
    if trial.test is not None and not trial.test.startswith("bayes"):
        tested += f" at level {trial.level:g}"
    looks = f", looks after {', '.join(map(str, trial.looks))}" if len(trial.looks) > 1 else ""
    if trial.test is not None and not trial.test.startswith("bayes"):
        looks += by
    looks += f", at least {trial.minimum} per arm" if trial.minimum else ""
    caption = f"Trials of {trial.horizon} patients{tested}{looks}; {how}"
    if trial.test is not None:
        caption += "\nrejects: type-I error where all rates are equal, else power"
    return caption


def _read_point(text: str) -> tuple[Any, ...] | None:
    """Success rates; None stands for the prior."""
    return None if text.strip() == "prior" else tuple(text.split(","))
