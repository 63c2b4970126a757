"""`operating_characteristics`: what designs do at given success rates, exactly or by simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ..engine import exact
from ..engine.costs import simulation_seconds, trial_seconds
from ..engine.results import EXACT, MONTE_CARLO
from ..engine.task import AUTO, METHODS
from ..engine.threads import in_threads
from ..errors import IndexFault, InputError, about, nearest
from ..feedback import Feedback
from ..memory import check_memory
from ..policies import Plan, Policy, with_own_names
from ..priors import Bernoulli, Prior, Table, check_prior, read_prior
from ..priors.families import Array
from ..progress import Told, with_progress
from ..settings import check_horizon, check_seed, check_whole, read_grid, read_number
from .final import Function, Rates, design, make_plan, read_points
from .measures import Characteristics
from .result import Trial
from .running import EPISODES, Work, read_stopping, run_designs
from .stopping import read_looks
from .testing import Test, check_level, read_test

# Longer than this takes a grid that nobody wanted.
_MOST_SECONDS = 3600.0


@with_progress("computing the trials")
def operating_characteristics(
    policies: str | Policy | Sequence[str | Policy],
    arms: Sequence[Rates] | None = None,
    *,
    horizon: int,
    grid: str | None = None,
    test: str | Function | None = "fisher",
    level: float = 0.05,
    prior: str | Prior | None = None,
    feedback: Feedback | Mapping[str, Any] | None = None,
    minimum: int = 0,
    look_every: int | None = None,
    boundary: str | Sequence[float] | None = None,
    imbalance: float = 0.1,
    fewer_than: int | None = None,
    method: str = AUTO,
    episodes: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Told = None,
) -> Trial:
    """The operating characteristics of trials with two arms, or three where memory allows.

    Parameters
    ----------
    policies : str, Policy or a sequence of them
        How patients are assigned to arms: policies, or designs (`equal`, `crdp:degree=0.9,minimum=10`).
    arms : sequence
        The points: success rates, one number per arm, or a prior over which all is averaged.
    horizon : int
        The number of patients.
    grid : str, optional
        More points: all combinations of first:last:step, such as 0.1:0.9:0.1.
    test : str or callable, optional
        The test of equal rates at the end: fisher, z-pooled, z-unpooled, chi-squared, barnard,
        boschloo, bayes, exact or exact-conditional (the design's own), with settings as in
        `fisher:alternative=greater`, `bayes:c=0.99`, `exact:statistic=z-pooled`; or
        function(plays, successes) of the final counts, int32[arm, state], that says whether to reject.
    level : float
        The level of the test.
    prior : Prior or str, optional
        What the designs take the success rates to be; all equally likely by default.
    feedback : Feedback, optional
        Blocks, delays (simulated only) and random plays (`min_share`); immediate by default.
    minimum : int
        Patients that every arm has before a policy decides; while one has fewer, an arm with the
        fewest is next.
    look_every : int, optional
        Patients between looks at which the trial stops if the test rejects.
    boundary : str or sequence of float, optional
        How the level is spread over the looks: `obrien-fleming` (default), `pocock`, or the p-value at
        which to stop at each look. A Bayesian rule and a function of your own apply as they are.
    imbalance : float
        The share of all patients from which on an imbalance to the wrong side counts.
    fewer_than : int, optional
        Also the chance that an arm has fewer patients than this.
    method : {"auto", "exact", "monte-carlo"}
        `auto` is exact where that is possible.
    episodes, seed : int
        Simulated trials per point (100,000 by default), and their seed.
    threads : int, optional
        All cores by default; designs are shared among them.
    progress : callable or bool, optional
        Called as progress(work done, work in all). By default a bar shows in terminals and notebooks if
        it takes more than two seconds; False for none.

    Returns
    -------
    Trial

    Examples
    --------
    >>> import metabandit as mb
    >>> trial = mb.operating_characteristics(["equal", "thompson"], [(0.3, 0.5)], horizon=60)
    >>> [round(point.successes, 3) for (point,) in trial.designs.values()]
    [24.0, 26.904]
    """
    given = _read_designs(policies)
    horizon = check_horizon(horizon)
    count = _count_arms(arms, prior)
    belief = _read_belief(prior, count)
    told = Feedback.read(feedback)
    told.check(count, horizon)
    if method not in METHODS:
        raise InputError(
            f"unknown method {method!r}; {nearest(str(method), METHODS)}", about="method"
        )
    with about("episodes"):
        trials = EPISODES if episodes is None else check_whole(episodes, "the episodes", 1)
    simulated = trials if method == MONTE_CARLO or told.delay != 0 else None
    size = partial(
        _check_size, designs=len(given), prior=Bernoulli(count), horizon=horizon, feedback=told,
        episodes=simulated,
    )  # fmt: skip
    points = _read_points(arms, grid, count, size)
    with about("test"):
        asked_test = None if test is None else read_test(test, count)
    level = check_level(level)
    looks = read_looks(look_every, horizon, told.ends(horizon))
    work = Work(
        horizon, told, points, asked_test, level, looks,
        **read_stopping(asked_test, level, looks, boundary),
        imbalance=_read_share(imbalance),
        fewer_than=None if fewer_than is None else _read_fewer(fewer_than),
    )  # fmt: skip
    plans = {
        item.name: make_plan(item, horizon, prior=belief, minimum=minimum, progress=progress)
        for item in given
    }
    why = exact.obstacle(Bernoulli(count), list(plans.values()), horizon, told)
    chosen = _pick(method, why, asked_test, looks, episodes)
    done = run_designs(
        work, list(plans.values()), chosen, trials, check_seed(seed), threads, progress
    )
    named = dict(zip(plans, done, strict=True))
    return _result(work, named, method=chosen, prior=str(belief), minimum=minimum)


def _result(
    work: Work, done: Mapping[str, tuple[list[Characteristics], float | None]], **told: Any
) -> Trial:
    """The trial as people see it, from what was computed for each design."""
    return Trial(
        designs={name: tuple(found) for name, (found, _) in done.items()},
        horizon=work.horizon,
        test=None if work.test is None else work.test.name,
        level=work.level,
        feedback=work.feedback,
        looks=work.looks,
        boundary=work.levels,
        critical={name: value for name, (_, value) in done.items()},
        imbalance=work.imbalance,
        fewer_than=work.fewer_than,
        **told,
    )


def power_of(
    plans: Sequence[Plan],
    rates: Sequence[float],
    *,
    horizon: int,
    test: str,
    level: float,
    feedback: Feedback,
    threads: int,
) -> Array:
    """How likely the test rejects at these rates, for each of many policies; 0 if it cannot be played."""
    (point,) = read_points([rates], 2)
    asked = read_test(test, 2)
    work = Work(horizon, feedback, [point], asked, check_level(level), looks=(horizon,))

    def power(plan: Plan) -> float:
        try:
            states, rejects, _ = work.states(plan)
        except IndexFault:
            return 0.0
        assert rejects is not None
        return float(states.probability(point) @ rejects)

    return np.array(in_threads(power, plans, threads))


def _read_designs(given: str | Policy | Sequence[str | Policy]) -> list[Policy]:
    several = isinstance(given, Iterable) and not isinstance(given, str)
    items: list[Any] = list(given) if several else [given]  # type: ignore[arg-type]
    found = with_own_names([design(item) for item in items])
    if not found:
        raise InputError("no design was given; name at least one, such as equal")
    if len({item.name for item in found}) < len(found):
        raise InputError("two designs have the same name; leave one out, or give it another name")
    return found


def _read_belief(prior: str | Prior | None, arms: int) -> Prior:
    """What the designs take the success rates to be."""
    belief = Bernoulli(arms) if prior is None else read_prior(prior, arms=arms)
    if not belief.family.binary:
        raise InputError(
            f"outcomes of a trial are successes or failures, but {belief} is of others"
        )
    return belief


def _read_points(
    given: Sequence[Rates] | None, grid: str | None, arms: int, check_size: Callable[[int], None]
) -> list[Rates]:
    """The points that were named, then those of the grid, if all of them together are not too many."""
    points, sides = read_points(given or (), arms), [] if grid is None else read_grid(grid)
    if not points and not sides:
        raise InputError(
            "no success rates were given: give some (--at 0.3,0.5; in Python, (0.3, 0.5)), or a grid "
            "(--grid 0.1:0.9:0.1)"
        )
    rows = sum(len(point.means) if isinstance(point, Table) else 1 for point in points)
    check_size(rows + len(sides) ** arms)
    return [*points, *(product(sides, repeat=arms) if sides else ())]


@about("fewer_than")
def _read_fewer(fewer_than: int) -> int:
    return check_whole(fewer_than, "the number of patients (fewer than)", 1)


@about("imbalance")
def _read_share(imbalance: float) -> float:
    share = read_number(imbalance, "the imbalance")
    if not 0.0 <= share < 1.0:
        raise InputError(f"the imbalance must be at least 0 and below 1, not {share:g}")
    return share


def _count_arms(arms: Sequence[Rates] | None, prior: str | Prior | None) -> int:
    if prior is not None and not isinstance(prior, str):
        return check_prior(prior).arms
    for point in arms or ():
        if isinstance(point, Prior):
            return point.arms
        if hasattr(point, "__len__") and not isinstance(point, str) and len(point) > 1:
            return len(point)
    return 2


def _pick(
    method: str, why: str | None, test: Test | None, looks: Sequence[int], episodes: int | None
) -> str:
    """Exact, or simulated; refuse what a simulation has not."""
    if method == EXACT or (method == AUTO and why is None and episodes is None):
        if why is not None:
            raise InputError(f"{why}; use the method monte-carlo", about="method")
        if episodes is not None:
            raise InputError(
                "episodes are for the method monte-carlo; leave them out", about="episodes"
            )
        return EXACT
    if len(looks) > 1:
        raise InputError(f"early stopping is computed exactly only{f', but {why}' if why else ''}")
    if test is not None and test.is_exact:
        raise InputError(
            f"the critical values of the test {test.name} come from the exact distribution"
            f"{f', but {why}; choose another test' if why else '; choose another test, or the method exact'}"
        )
    return MONTE_CARLO


def _check_size(
    points: int,
    designs: int,
    prior: Bernoulli,
    horizon: int,
    feedback: Feedback,
    episodes: int | None,
) -> None:
    """Refuse what would take hours, or more memory than there is, before anything is made."""
    if episodes is None:
        seconds = designs * trial_seconds(prior, horizon, points, feedback=feedback)
    else:
        seconds = designs * points * simulation_seconds(prior, horizon, episodes)
    if seconds > _MOST_SECONDS:
        raise InputError(
            f"{points:,} point{'s' if points > 1 else ''} of {designs} design{'s' if designs > 1 else ''} "
            f"with {horizon} patients would take about {seconds / 3600:,.1f} hours; choose a coarser grid, "
            f"fewer patients or designs, or simulation (monte-carlo) with fewer episodes"
        )
    check_memory(
        designs * points * (4000 + 8 * (prior.arms + 2) * (horizon + 1)),
        f"{points:,} points of {designs} design{'s' if designs > 1 else ''}",
        "choose a coarser grid",
    )
