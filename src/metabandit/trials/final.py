"""The distribution of the final counts of a trial, exactly: what every characteristic is a mean over.

A design reaches the final counts (n, s), plays and successes of each arm, with probability

    P(n, s | p) = g(n, s) prod_k p_k^{s_k} (1 - p_k)^{n_k - s_k},

in which g, the sum over all sequences of the products of the design's own probabilities, does not
depend on the success rates p. The forward recursion (engine/states.py) gives the weight w of each state
under uniform rates, w = g prod_k B(s_k + 1, n_k - s_k + 1), so one pass serves all rates,

    P(n, s | p) = w prod_k L_k,   L_k = p_k^{s_k} (1 - p_k)^{n_k - s_k} / B(s_k + 1, n_k - s_k + 1),

and Beta(a_k, b_k) rates alike, with B(a_k + s_k, b_k + n_k - s_k) / B(a_k, b_k) in place of the powers.
A trial that may stop early has final counts of several sizes: where it stops, play goes no further.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..bayes.induction import states as state_count
from ..engine import exact
from ..engine.states import Batches, Counts, ThreeArms, TwoArms
from ..errors import InputError, about
from ..feedback import IMMEDIATE, Feedback
from ..memory import check_memory
from ..policies import ConstrainedPolicy, IndexPolicy, Plan, Policy, Progress, Start, policy
from ..policies.start import FREE
from ..priors import Bernoulli, Prior, Table, read_prior
from ..priors.families import BERNOULLI, Array
from ..progress import Told, with_progress
from ..settings import check_horizon, check_keys, check_whole, read_number, read_settings
from ..showing import Shown

# Success rates of each arm, or the distribution that they are drawn from.
Rates = Sequence[float] | Prior
# values(plays, successes), int32[arm, state] each, has one number per state.
Function = Callable[[Counts, Counts], Any]

EQUAL, CONSTRAINED = "equal", "crdp"
# States whose probabilities are computed at once.
_CHUNK = 1 << 13


@dataclass(frozen=True, eq=False, repr=False)
class FinalStates(Shown):
    """The final counts that a design can come to, and how likely it does.

    Attributes
    ----------
    policy : str
        The design.
    horizon : int
        Patients, at most.
    plays, successes : array
        int32[arm, state]: patients and successes of each arm.
    weight : array
        The probability of each state if all success rates are equally likely, from 0 to 1.
    """

    policy: str
    horizon: int
    plays: Counts
    successes: Counts
    weight: Array

    @property
    def arms(self) -> int:
        """The number of arms."""
        return len(self.plays)

    def headline(self) -> str:
        return f"{self.policy}: {self.plays.shape[1]:,} final counts of {self.horizon} patients, {self.arms} arms"

    def mean(self, function: Function, rates: Rates) -> float:
        """The mean of a function of the final counts.

        Parameters
        ----------
        function : callable
            function(plays, successes) of arrays int32[arm, state] gives one number per state.
        rates : sequence of float or Prior
            The success rates of the arms, or what they are drawn from.

        Examples
        --------
        >>> import metabandit as mb
        >>> final = mb.final_states("equal", 20)
        >>> round(final.mean(lambda plays, successes: successes.sum(axis=0), (0.3, 0.5)), 9)
        8.0
        """
        values = np.asarray(function(self.plays, self.successes), dtype=np.float64)
        if values.shape != self.weight.shape:
            raise InputError(
                f"a function of the final counts gives one number per state, an array of shape "
                f"{self.weight.shape}, not {values.shape}"
            )
        probability = self.probability(rates)
        # Where a state cannot be, the function need not have a value.
        there = probability > 0.0
        terms = values[there] * probability[there]
        # Without the error of adding one number after the other.
        return math.fsum(terms.tolist()) if len(terms) < 1 << 20 else float(terms.sum())

    def p_value(
        self,
        plays: Sequence[int],
        successes: Sequence[int],
        *,
        test: str = "exact-conditional",
    ) -> float:
        """The p-value of the design's own test, for the outcome of a trial.

        Parameters
        ----------
        plays, successes : sequence of int
            The patients and the successes of each arm.
        test : str
            `exact-conditional` or `exact`, with settings as for `operating_characteristics`.

        Examples
        --------
        >>> import metabandit as mb
        >>> final = mb.final_states("thompson", 30)
        >>> round(final.p_value((6, 24), (0, 15)), 4)
        0.0009
        """
        from .critical import own_p_value

        return own_p_value(self, plays, successes, test)

    def probability(self, rates: Rates) -> Array:
        """How likely each state is, with these success rates."""
        found = np.zeros(len(self.weight))
        points = read_points([rates], self.arms)
        for first, some in self.chunks(points):
            found[first : first + len(some)] = some.mean(axis=1)
        return found

    def chunks(self, points: Sequence[Rates]) -> Iterator[tuple[int, Array]]:
        """The probabilities of some states after the other, [state, point].

        points: rates, or Beta distributions of them (the prior bernoulli); a table is one point per row
        """
        return self.chunks_by([self.ratios(arm, points) for arm in range(self.arms)])

    def chunks_by(self, tables: Sequence[Array]) -> Iterator[tuple[int, Array]]:
        """The same from how much more likely each pair of each arm is, [pair, point]."""
        for first in range(0, len(self.weight), _CHUNK):
            some = slice(first, first + _CHUNK)
            found = np.repeat(self.weight[some, None], tables[0].shape[1], axis=1)
            for table, n, s in zip(tables, self.plays, self.successes, strict=True):
                whole = n[some].astype(np.int64)
                # Where (plays, successes) stands among all pairs.
                found *= table[whole * (whole + 1) // 2 + s[some]]
            yield first, found

    def ratios(self, arm: int, points: Sequence[Rates]) -> Array:
        """How much more likely each pair (plays, successes) of an arm is than with uniform rates."""
        from scipy.special import betaln, xlog1py, xlogy

        n, s = np.tril_indices(int(self.plays[arm].max(initial=0)) + 1)
        uniform = betaln(s + 1, n - s + 1)
        columns = []
        for point in points:
            if isinstance(point, Bernoulli):
                a, b = point.alpha[arm], point.beta[arm]
                columns.append(betaln(a + s, b + n - s) - betaln(a, b) - uniform)
                continue
            rates = point.means[:, arm] if isinstance(point, Table) else [point[arm]]  # type: ignore[index]
            columns += [xlogy(s, p) + xlog1py(n - s, -p) - uniform for p in rates]
        return np.exp(np.stack(columns, axis=1))


def design(given: str | Policy) -> Policy:
    """Read a design: a policy, `equal`, or `crdp:degree=0.9,minimum=10,penalty=75`.

    `equal` gives the next patient to an arm with the fewest, ties at random, so that arms differ by one
    patient at most.
    """
    if not isinstance(given, str):
        return policy(given)
    name = given.partition(":")[0].strip()
    if name not in (EQUAL, CONSTRAINED):
        return policy(given)
    settings = read_settings(given, "design")[1]
    known = ("degree", "minimum", "penalty") if name == CONSTRAINED else ()
    check_keys(settings, known, f"the design {name}")
    if name == EQUAL:
        return IndexPolicy("-n", start=Start(FREE), name=EQUAL)
    numbers = {key: read_number(value, f"{key} of {name}") for key, value in settings.items()}
    minimum = numbers.pop("minimum", 0.0)
    if minimum != int(minimum):
        raise InputError(f"the minimum of {name} is a whole number of patients, not {minimum:g}")
    return ConstrainedPolicy(minimum=int(minimum), name=given, **numbers)


def read_points(given: Sequence[Any], arms: int) -> list[Rates]:
    """Check success rates, one per arm, or what they are drawn from."""
    points: list[Rates] = []
    for point in given:
        if isinstance(point, Prior):
            known = isinstance(point, Table) and point.family == BERNOULLI
            if not known and type(point) is not Bernoulli:
                raise InputError(
                    f"success rates are drawn from the prior bernoulli or a table, not from {point}"
                )
            if point.arms != arms:
                raise InputError(f"{point} has {point.arms} arms, but the trial has {arms}")
            points.append(point)
            continue
        if isinstance(point, str) or not isinstance(point, (Sequence, np.ndarray)):
            raise InputError(
                f"success rates are one number per arm, such as (0.3, 0.5); not {point!r}"
            )
        rates = tuple(read_number(rate, "a success rate") for rate in point)
        if len(rates) != arms:
            raise InputError(
                f"{len(rates)} success rates are given, {', '.join(f'{rate:g}' for rate in rates)}, "
                f"but the trial has {arms} arms: give one for each"
            )
        for rate in rates:
            if not 0.0 <= rate <= 1.0:
                raise InputError(f"a success rate must lie between 0 and 1, not {rate:g}")
        points.append(rates)
    return points


def make_plan(
    given: str | Policy,
    horizon: int,
    *,
    prior: Prior,
    minimum: int = 0,
    progress: Progress | None = None,
) -> Plan:
    """The design as engines play it, with a minimum of patients per arm."""
    item = design(given)
    horizon = check_horizon(horizon)
    item.check(prior, horizon)
    with about("minimum"):
        minimum = check_whole(minimum, "the minimum per arm", 0)
    if minimum * prior.arms > horizon:
        raise InputError(
            f"{prior.arms} arms cannot each have {minimum} of {horizon} patients; the minimum per arm "
            f"is at most {horizon // prior.arms}",
            about="minimum",
        )
    return replace(item.plan(prior, horizon, progress), minimum=minimum)


@with_progress("computing the trial")
def final_states(
    policy: str | Policy,
    horizon: int,
    *,
    prior: str | Prior | None = None,
    feedback: Feedback | Mapping[str, Any] | None = None,
    minimum: int = 0,
    progress: Told = None,
) -> FinalStates:
    """All final counts of a trial and how likely they are, whatever the success rates.

    Parameters
    ----------
    policy : str or Policy
        How patients are assigned to arms: a policy, or a design (`equal`, `crdp:degree=0.9`).
    horizon : int
        The number of patients.
    prior : Prior or str, optional
        What the design takes the success rates to be; two arms, all rates equally likely by default.
    feedback : Feedback, optional
        Blocks of patients whose outcomes are known together; immediate by default.
    minimum : int
        Patients that every arm has before the policy decides.
    progress : callable or bool, optional
        Called as progress(work done, work in all). By default a bar shows in terminals and notebooks if
        it takes more than two seconds; False for none.

    Returns
    -------
    FinalStates

    Examples
    --------
    >>> import metabandit as mb
    >>> final = mb.final_states("thompson", 30)
    >>> round(final.mean(lambda plays, successes: plays[1] > plays[0], (0.3, 0.5)), 4)
    0.7904
    """
    prior = read_prior("bernoulli" if prior is None else prior)
    plan = make_plan(policy, horizon, prior=prior, minimum=minimum, progress=progress)
    return run_plan(plan, prior.arms, check_horizon(horizon), Feedback.read(feedback))


def run_plan(
    plan: Plan,
    arms: int,
    horizon: int,
    feedback: Feedback,
    looks: Sequence[int] = (),
    stops: Callable[[int, Counts, Counts], Any] | None = None,
) -> FinalStates:
    """Play with a plan until the horizon, or until stops(look, plays, successes) at one of the looks."""
    feedback.check(arms, horizon)
    uniform = Bernoulli(arms)
    if (why := exact.obstacle(uniform, [plan], horizon, feedback)) is not None:
        raise InputError(f"{why}; use the method monte-carlo")
    final = state_count(arms, horizon) - (state_count(arms, horizon - 1) if horizon else 0)
    check_memory(
        (200 if arms == 2 else 260) * final,
        f"the final states of {arms} arms and {horizon} patients",
        "choose fewer patients, or the method monte-carlo",
    )
    run: TwoArms | ThreeArms
    if feedback != IMMEDIATE:
        run = Batches(plan, uniform, horizon, map, feedback)
    elif arms == 2:
        run = TwoArms(plan, uniform, horizon, mirror=False)
    else:
        run = ThreeArms(plan, uniform, horizon)
    ended, begun = [], run.begin
    for number, look in enumerate(looks):
        if look >= horizon or stops is None:
            break
        if look > begun:
            run.advance(begun, look)
            begun = look
        plays, successes, weight, position = run.reached(look)
        stopped = np.asarray(stops(number, plays, successes), dtype=bool)
        run.drop(position[stopped])
        ended.append((plays[:, stopped], successes[:, stopped], weight[stopped]))
    run.advance(begun, horizon)
    ended.append(run.reached(horizon)[:3])
    plays, successes, weight = (
        np.concatenate(items, axis=-1) for items in zip(*ended, strict=True)
    )
    return FinalStates(plan.name, horizon, plays, successes, weight)
