"""The floor under every regret: the Bayes optimum, or a lower bound where it is out of reach."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..errors import InputError, about, nearest
from ..feedback import COUNT, IMMEDIATE, Feedback
from ..priors import Bernoulli, Prior, Table, check_prior, read_prior
from ..progress import Progress, Told, with_progress
from ..settings import check_horizon, check_threads
from ..showing import Shown
from .batches import SPEED, batch_seconds, solve_batches
from .bounds import Bound, has_bound, kept_bound
from .induction import EACH_ONCE, FREE, solve, states
from .listed import is_listed, solve_listed

# Seconds of a core that backward induction takes at most where a looser bound takes its place.
_SHORT = 20.0


@dataclass(frozen=True, repr=False)
class Optimum(Shown):
    """What the best of all policies gets: no policy has less expected regret on this prior.

    `start` says whether all play is free, or each arm must be played once first.
    """

    prior: str
    arms: int
    horizon: int
    start: str
    expected_reward: float
    regret: float
    feedback: str = "immediate"

    kind = "optimum"
    standard_error = 0.0

    def headline(self) -> str:
        return (
            f"regret {self.regret:.6g}, reward {self.expected_reward:.6g}: the best possible in "
            f"{self.horizon} plays, {self.arms} arms, {self.prior}"
        )

    def records(self) -> list[dict[str, Any]]:
        return [self.to_dict()]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"kind": self.kind, **asdict(self), "standard_error": self.standard_error}


def has_optimum(prior: Prior, feedback: Feedback = IMMEDIATE) -> bool:
    """Whether backward induction can be done for a prior."""
    if is_listed(prior):
        return feedback == IMMEDIATE
    if type(prior) is not Bernoulli:
        return False
    if feedback == IMMEDIATE:
        return prior.arms <= 3
    return prior.arms == 2 and feedback.delay == 0


def solved_feedback(prior: Prior, horizon: int, feedback: Feedback) -> Feedback:
    """The feedback whose optimum is the floor: that given, or one with which no less can be expected.

    Without the delay more is known, and without the minimum share policies are freer. Where backward
    induction over batches would take long for such a bound, that of immediate feedback has to do.
    """
    if has_optimum(prior, feedback) and not feedback.min_share:
        return feedback
    punctual = replace(feedback, delay=0, pending=COUNT)
    if has_optimum(prior, punctual) and states(2, horizon) <= _SHORT * SPEED:
        for looser in (punctual, replace(punctual, min_share=0.0)):
            if batch_seconds(looser, horizon) <= _SHORT:
                return looser
    return IMMEDIATE


def check_solvable(prior: Prior, what: str) -> Bernoulli:
    """The prior, if backward induction can be done for it."""
    check_prior(prior)
    if type(prior) is not Bernoulli:
        raise InputError(
            f"{what} is for Bernoulli arms with Beta means (the prior bernoulli), not for {prior}"
        )
    if prior.arms > 3:
        raise InputError(
            f"{what} is for 2 or 3 arms, not {prior.arms}: the states are too many; for more arms there "
            f"are a lower bound on regret (metabandit optimal prints it) and the policy gittins"
        )
    return prior


def check_floor(prior: Prior) -> None:
    """Refuse a prior for which neither the optimum nor a bound is known."""
    check_prior(prior)
    if not (has_optimum(prior) or has_bound(prior)):
        raise InputError(
            f"no floor under regret is known for {prior}: the optimum is for 2 or 3 Bernoulli arms with "
            f"Beta means and for tables of 2 Bernoulli arms, and a lower bound for any number of arms of "
            f"the priors bernoulli and gaussian"
        )


@with_progress("computing the optimum")
def optimal(
    prior: str | Prior,
    horizon: int,
    *,
    arms: int | None = None,
    start: str = FREE,
    feedback: Feedback | Mapping[str, Any] | None = None,
    effort: float = 1.0,
    threads: int | None = None,
    progress: Told = None,
) -> Optimum | Bound:
    """The least regret that any policy can have: the optimum, or a lower bound where it is out of reach.

    The optimum is for two or three Bernoulli arms with Beta means, and for a table of problems with two
    Bernoulli arms: the best that is possible for one who knows the rows, but not which one it is. The
    bound is for more arms, and for Gaussian arms. The `kind` of the result says which it is: "optimum"
    or "bound".

    With batches or a minimum share, the optimum of two arms is that of the policies which keep to them.
    Otherwise the bound is for feedback with which no less can be expected: without delays, without the
    minimum share if it makes the computation long, or immediate.

    Parameters
    ----------
    prior : Bernoulli, Gaussian, Table or str
        What is known of the arms: a prior, or its text.
    horizon : int
        Plays in all.
    arms : int, optional
        The number of arms, if the prior is a text that does not include it.
    start : {"free", "each-once"}
        Whether all play is free, or each arm must be played once first. A bound is for both.
    feedback : Feedback, optional
        When rewards become known; immediately by default.
    effort : float
        How much is computed for a bound, which is kept for the next time (see `lower_bound`).
    threads : int, optional
        Threads to use; all cores by default.
    progress : callable or bool, optional
        Called as progress(work done, work in all). By default a bar shows in terminals and notebooks if
        it takes more than two seconds; False for none.

    Examples
    --------
    >>> import metabandit as mb
    >>> round(mb.optimal(mb.Bernoulli(arms=2), horizon=10).regret, 6)
    0.644881
    >>> mb.optimal(mb.Bernoulli(arms=8), horizon=10, effort=0.01).kind
    'bound'
    """
    asked = Feedback.read(feedback)
    prior = read_prior(prior, arms=arms)
    check_floor(prior)
    horizon = check_horizon(horizon)
    check_start(start, prior.arms, horizon)
    asked.check(prior.arms, horizon)
    if not has_optimum(prior):
        found = kept_bound(prior, horizon, effort=effort, threads=threads, progress=progress)
        assert found is not None
        return replace(found, feedback=str(asked))
    solved = solved_feedback(prior, horizon, asked)
    exact = solved == replace(asked, pending=solved.pending)
    if not exact:
        start = FREE
    assert isinstance(prior, (Bernoulli, Table))
    begin = time.perf_counter()
    reward = _largest_reward(prior, horizon, start, solved, threads, progress)
    regret = horizon * prior.expected_best() - reward
    if exact:
        return Optimum(str(prior), prior.arms, horizon, start, reward, regret, str(asked))
    return Bound(
        prior=str(prior),
        arms=prior.arms,
        horizon=horizon,
        method=f"{solved} feedback" if solved == IMMEDIATE else str(solved),
        expected_reward=reward,
        regret=regret,
        standard_error=0.0,
        policy_regret=None,
        effort=1.0,
        seed=0,
        seconds=time.perf_counter() - begin,
        feedback=str(asked),
    )


def _largest_reward(
    prior: Bernoulli | Table,
    horizon: int,
    start: str,
    feedback: Feedback,
    threads: int | None,
    progress: Progress | None,
) -> float:
    """The most that can be expected, by backward induction."""
    if isinstance(prior, Table):
        return solve_listed(prior, horizon, start=start, progress=progress)
    if feedback == IMMEDIATE:
        return solve(prior, horizon, start=start, keep=False, threads=threads, progress=progress)[0]
    each_once, threads = start == EACH_ONCE, check_threads(threads)
    return solve_batches(
        prior, horizon, feedback, each_once=each_once, threads=threads, progress=progress
    )


@about("start")
def check_start(start: str, arms: int, horizon: int) -> None:
    if start not in (FREE, EACH_ONCE):
        raise InputError(
            f"unknown start {start!r} of the optimum; {nearest(start, (FREE, EACH_ONCE))}"
        )
    if start == EACH_ONCE and horizon < arms:
        raise InputError(
            f"the start each-once plays each of the {arms} arms, so the horizon must be at least "
            f"{arms}, not {horizon}; choose a longer one, or the start free"
        )
