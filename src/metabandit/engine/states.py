"""How likely play with a policy leads to each state of the counts, step by step.

With Beta(a_k, b_k) means, p_k = (a_k + s_k)/(a_k + b_k + n_k), and a policy that plays arm k with
probability pi_k in a state of plays n and successes s,

    P_0(0, 0) = 1,   P_{m+1}(n + e_k, s + e_k) += pi_k p_k P_m(n, s),
                     P_{m+1}(n + e_k, s)       += pi_k (1 - p_k) P_m(n, s).

The expected reward of m plays is the sum of P_m(n, s) (s_1 + ... + s_K), and regret is m E[max mu_k]
less that. On a problem with given means mu the same weights serve, each times the likelihood ratio

    prod_k  mu_k^{s_k} (1 - mu_k)^{n_k - s_k} / (B(a_k + s_k, b_k + n_k - s_k) / B(a_k, b_k)).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .. import numerics
from ..bayes.induction import first_outcomes
from ..bayes.listed import likelihood_ratios, logarithms
from ..decisions import (
    BetaBelief,
    ByBelief,
    ByBonus,
    ByCuts,
    ByEpochs,
    ByPosterior,
    ByStates,
    ByTable,
    ByTest,
    Index,
)
from ..errors import IndexFault
from ..feedback import COUNT, IMMEDIATE, PATIENCE, Feedback
from ..language.values import evaluate_tree
from ..policies import Plan
from ..priors import Bernoulli, Prior
from ..priors.families import Array
from .threads import one_blas_thread

Counts = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]

# Above this horizon, the steps from _SHARED plays on are cut into parts for several threads, and several are
# made at a time. The parts do not depend on the number of threads, so that results do not either.
LONG = 400
_SHARED = 256
_PARTS = 8
_STEPS = 4
# Problems whose regret is computed at once.
_PROBLEMS = 2048


# Nodes of Gauss's rule grow with what is believed of three arms.
_MOST_BELIEVED = 1000


def _base(prior: Prior) -> tuple[Sequence[float], Sequence[float]]:
    """The Beta distributions under which states have their weights; uniform for given problems."""
    if isinstance(prior, Bernoulli):
        return prior.alpha, prior.beta
    return (1.0,) * prior.arms, (1.0,) * prior.arms


def mirrors(plan: Plan, prior: Prior) -> bool:
    """Whether exchanging the two arms changes nothing."""
    alpha, beta = _base(prior)
    return (
        prior.arms == 2
        and not isinstance(plan.decision, ByCuts)
        and (not isinstance(plan.decision, ByTable) or len(set(plan.decision.row_of)) == 1)
        and (not isinstance(plan.decision, ByPosterior) or plan.decision.belief.alike)
        and len(set(zip(alpha, beta, strict=True))) == 1
        and bool((plan.counts[:, :1] == plan.counts).all())
    )


def obstacle(plan: Plan, arms: int, feedback: Feedback) -> str | None:
    """Why a policy has no exact evaluation, or None."""
    decision = plan.decision
    if feedback.delay != 0:
        return f"delays are simulated, and feedback is {feedback}"
    if feedback != IMMEDIATE and arms != 2:
        return f"{feedback} is evaluated exactly for 2 arms only, not {arms}"
    if feedback != IMMEDIATE and isinstance(decision, (ByCuts, ByStates)):
        return "the table of the optimal policy is for rewards that are known at once"
    if isinstance(decision, ByPosterior) and isinstance(decision.belief, BetaBelief):
        numbers = [x for pair in decision.belief.pairs for x in pair]
        whole = all(x == int(x) for x in numbers) and sum(numbers) <= _MOST_BELIEVED
        if arms == 2 or whole:
            return None
        return (
            f"of {arms} arms whole numbers a and b must be believed, {_MOST_BELIEVED} in all at most, not "
            f"{decision.belief.pairs}"
        )
    if isinstance(decision, (Index, ByTable, ByCuts, ByStates)):
        return None
    if isinstance(decision, ByTest) and decision.index() is not None:
        return None if feedback == IMMEDIATE else f"a test with {feedback} is simulated"
    if isinstance(decision, ByTest):
        return "its test keeps a memory beyond the counts (whether it has ended)"
    if isinstance(decision, ByBelief):
        return "it compares all arms at once, for which there is no exact evaluation"
    if isinstance(decision, ByEpochs):
        return "UCB2 keeps a memory beyond the counts (its epochs)"
    if isinstance(decision, ByBonus):
        return "it is for Gaussian rewards, which can only be simulated"
    return "a rule of your own can only be simulated"


def _choice(plan: Plan, horizon: int) -> Any:
    """How a policy chooses, in the form that kernels/forward.py reads."""
    from ..kernels import forward

    decision = plan.decision
    kinds = {
        Index: forward.BY_INDEX,
        ByTable: forward.BY_TABLE,
        ByCuts: forward.BY_CUTS,
        ByStates: forward.BY_STATES,
        ByPosterior: forward.BY_POSTERIOR,
    }
    gammas, corner = np.zeros((10, 4)), np.zeros((1, 1))
    if isinstance(decision, ByPosterior):
        assert isinstance(decision.belief, BetaBelief), "obstacle() refuses others"
        one, two = decision.belief.pairs[:2]
        gammas, corner = _posterior_tables(one, two, horizon)
    rate, needed = plan.exceptions(horizon)
    return forward.DecisionArrays(
        kinds[type(decision)],
        rate if len(rate) else np.zeros(horizon),
        needed if len(needed) else np.full(horizon, -np.inf),
        np.ascontiguousarray(plan.counts[0], dtype=np.float64),
        decision.table if isinstance(decision, ByTable) else np.zeros((1, 1)),
        np.array(decision.begins if isinstance(decision, ByTable) else [0]),
        decision.cuts if isinstance(decision, ByCuts) else np.zeros((1, 2), np.uint16),
        gammas,
        corner,
    )


def _judged(plan: Plan, horizon: int) -> Any:
    """A policy as kernels/forward.py takes it: its choice, program and indices by count."""
    from ..kernels import counts, forward, machine, rows

    columns = [tuple(column) for column in plan.counts.T.tolist()]
    kinds = list(dict.fromkeys(columns))
    row_of = np.array([kinds.index(column) for column in columns])
    different = len(kinds)
    if isinstance(plan.decision, ByTable):
        row_of, different = np.array(plan.decision.row_of), plan.decision.table.shape[0]
    count = math.comb(horizon + 2, 2)
    statistics = np.zeros((different, 3, count))
    for row, column in enumerate(kinds[:different]):
        counts.fill_statistics(np.array(column), statistics[row])
    compiled = plan.decision.program() if isinstance(plan.decision, Index) else None
    program = machine.load(compiled, False)
    tables = counts.Tables(
        row_of,
        statistics,
        np.zeros((different, count)),
        np.zeros((different, count)),
        np.zeros((different, count)),
        np.zeros((different, horizon + 1), np.bool_),
        program.scalars.copy(),
        np.zeros((rows.SLOT + 1 + program.registers) * rows.STRIDE),
    )
    return forward.Judged(_choice(plan, horizon), program, tables)


def _posterior_tables(
    one: tuple[float, float], two: tuple[float, float], horizon: int
) -> tuple[Array, Array]:
    """Logarithms of the Gamma function, and P(X1 > X2) for arms without a success.

    Kernels take B(a1 + a2 + ., ...)/(B(a1 + ., ...) B(a2 + ., ...)) from these logarithms. Of large numbers they
    would be too large themselves for their differences, so each is that of Gamma(x + i)/Gamma(x), and the
    quotient of what is left out is in the row of a1 + a2.
    """
    (a1, b1), (a2, b2) = one, two
    begins = (a1, b1, a1 + b1, a2, b2, a2 + b2, a1 + a2, b1 + b2, a1 + b1 + a2 + b2)
    size = max(horizon, 2) + 2
    factors = np.log(np.array(begins)[:, None] + np.arange(2 * size))
    rising = np.zeros((9, 2 * size))
    rising[:, 1:] = np.cumsum(factors[:, :-1], axis=1, dtype=np.longdouble)
    rising[6] += _log_quotient(one, two)
    gammas = np.zeros((10, size))
    gammas[:9] = rising[:, :size]
    gammas[9, :4] = a1, b1, a2, b2
    n = np.arange(horizon + 1)
    total = n[:, None] + n[None, :]
    both = rising[6, 0] + rising[7, total] - rising[8, total]
    own1, own2 = (rising[row + 1, n] - rising[row + 2, n] for row in (0, 3))
    # The density of a draw at a boundary between the arms, over the failures: with one more of an arm,
    # the other is the better one by that much more often.
    rise = np.exp(both - own1[:, None] - own2[None, :])
    fall1 = np.concatenate([[0.0], np.cumsum(rise[:-1, 0] / (b1 + n[:-1]))])
    rise2 = np.cumsum(rise[:, :-1] / (b2 + n[None, :-1]), axis=1)
    corner = _first_is_better(one, two) - fall1[:, None] + np.pad(rise2, ((0, 0), (1, 0)))
    return gammas, np.clip(corner, 0.0, 1.0)


def _log_height(z: Any, a: float, b: float) -> Any:
    """The logarithm of x^a y^b / B(a, b) at x = 1/(1 + e^-z), y = 1 - x: numerics.beta_height, of arrays.

    By z, because draws of an arm with tiny parameters are nearer to 0 and 1 than numbers can be.
    """
    from scipy.special import expit

    x, y, n = expit(z), expit(-z), a + b
    d = b * x - a * y
    far = np.log(n / a) - np.logaddexp(0.0, -z), np.log(n / b) - np.logaddexp(0.0, z)
    with np.errstate(divide="ignore", invalid="ignore"):
        height = a * np.where(abs(d) < 0.5 * a, np.log1p(d / a), far[0])
        height += b * np.where(abs(d) < 0.5 * b, np.log1p(-d / b), far[1])
    return height + numerics.beta_constant(a, b)


def _log_quotient(one: tuple[float, float], two: tuple[float, float]) -> float:
    """The logarithm of B(a1 + a2, b1 + b2)/(B(a1, b1) B(a2, b2))."""
    a, b = one[0] + two[0], one[1] + two[1]
    z = np.log(a / b)
    return float(_log_height(z, *one) + _log_height(z, *two) - _log_height(z, a, b))


# Beyond this z, x or 1 - x is so small that one term of a series is all of the distribution function.
_FAR = 600.0


def _below(z: Array, a: float, b: float) -> Array:
    """P(X < 1/(1 + e^-z)) of a Beta variate, for z far below 0, too; above 0, 1 - _below(-z, b, a) is exact."""
    from scipy.special import betainc, expit

    mode = a * np.log(a / (a + b)) + b * np.log1p(-a / (a + b))
    with np.errstate(over="ignore"):
        far = np.exp(a * z - np.log(a) + numerics.beta_constant(a, b) - mode)
    return np.where(z < -_FAR, far, betainc(a, b, expit(z)))


def _first_is_better(one: tuple[float, float], two: tuple[float, float]) -> float:
    """P(X1 > X2) of Beta variates.

    The integral of g1 F2 over z = ln(x/(1 - x)), where the density g of the narrower one is analytic and
    falls exponentially, however small its parameters are. With z = c + w sinh(u) equal steps in u reach far
    enough, and the trapezoidal rule is exact to rounding.
    """
    if one == two:
        return 0.5
    (a, b), other = one, two
    width = 1.0 / a + 1.0 / b
    if width > 1.0 / other[0] + 1.0 / other[1]:
        return 1.0 - _first_is_better(two, one)
    step = 1.0 / 64.0
    # Densities at the ends are below e^-40.
    far = np.arcsinh(40.0 * (1.0 + 1.0 / min(a, b)) / min(np.sqrt(width), 1.0))
    u = np.arange(-far, far, step)
    scale = min(np.sqrt(width), 1.0)
    z = np.log(a / b) + scale * np.sinh(u)
    density = np.exp(_log_height(z, a, b))
    below = np.where(z < 0.0, _below(z, *other), 1.0 - _below(-z, other[1], other[0]))
    return float(step * scale * (density * below * np.cosh(u)).sum())


class _States(ABC):
    """What the evaluations for two and for three arms have in common.

    share: maps a function over the parts of a step, on threads or not
    weight: of each state, after the plays so far
    """

    weight: Array

    def __init__(self, plan: Plan, prior: Prior, horizon: int, share: Callable[..., Any]) -> None:
        from ..kernels import counts, forward

        if isinstance(plan.decision, ByTest):
            index = plan.decision.index()
            assert index is not None, "obstacle() refuses others"
            plan = replace(plan, decision=index)
        self.kernel = forward
        self.plan = plan
        self.prior = prior
        self.horizon = horizon
        self.share = share
        self.begin = prior.arms if plan.each_once else 0
        self.alpha, self.beta = _base(prior)
        self.chance = counts.chances(self.alpha, self.beta, horizon)
        self.clock = forward.Clock(horizon, plan.pseudo_plays, prior.arms)
        self.policy = _judged(plan, horizon)
        self._check_before_any_play()
        # Whether the indices stay what they are, and are finite.
        kind = self.policy.choice.kind
        self.fixed = kind in (forward.BY_CUTS, forward.BY_STATES, forward.BY_POSTERIOR) or (
            kind == forward.BY_INDEX and not self.policy.program.varies
        )
        self.finite = True
        if self.fixed:
            self.finite = self._set_tables(self.begin, horizon)
        self.fault = np.zeros(5)

    def _check_before_any_play(self) -> None:
        """Refuse an index that has no value for an arm without any play, if play begins with it."""
        decision, arms = self.plan.decision, self.prior.arms
        if not isinstance(decision, Index) or self.begin or self.plan.counts[0].min() > 0.0:
            return
        steps = np.arange(self.horizon, dtype=np.float64)
        moment: dict[str, Any] = {"t": self.plan.pseudo_plays + steps, "h": self.horizon - steps}
        known = {**moment, "K": float(arms), "n": 0.0, "r": 0.0, "s": 0.0}
        values = np.broadcast_to(evaluate_tree(decision.compared, known), self.horizon)
        for step in np.flatnonzero(~np.isfinite(values))[:1]:
            state = (0.0, 0.0, 0.0, self.plan.pseudo_plays + step, float(values[step]))
            raise IndexFault(self.plan.name, state, uses_s=self.policy.program.uses_s)

    def _set_tables(self, m: int, most: int, policy: Any = None) -> bool:
        finite: bool = self.kernel.set_tables(m, self.clock, policy or self.policy, most)
        return finite

    def first_states(self) -> list[tuple[tuple[int, ...], float]]:
        """The states before the first choice: successes of each arm, and their weight."""
        if not self.begin:
            return [((0,) * self.prior.arms, 1.0)]
        return list(first_outcomes(self.chance))

    def _means(self) -> Array:
        """The mean reward of each arm by pair, pseudo-observations included; -1 if there is none."""
        from ..kernels import counts

        statistics = np.zeros((3, math.comb(self.horizon + 2, 2)))
        means = np.empty((self.prior.arms, statistics.shape[1]))
        for arm, column in enumerate(self.plan.counts.T):
            counts.fill_statistics(np.ascontiguousarray(column), statistics)
            means[arm] = np.where(statistics[0] > 0.0, statistics[1], -1.0)
        return means

    @abstractmethod
    def _blocks(self, m: int) -> Iterator[tuple[tuple[int, ...], Counts, Positions]]:
        """The states after m plays by the plays of each arm: successes [arm, state], and their positions."""

    def reached(self, m: int) -> tuple[Counts, Counts, Array, Positions]:
        """The states after m plays that play can come to.

        Their plays and successes, int32[arm, state], their weights, and where they stand among the weights.
        """
        parts = []
        for each, wins, every in self._blocks(m):
            there = np.flatnonzero(self.weight[every] > 0.0)
            repeated = np.repeat(np.array(each, np.int32)[:, None], len(there), axis=1)
            position = every[there]
            parts.append((repeated, wins[:, there], self.weight[position], position))
        plays, successes, weight, position = (
            np.concatenate(items, axis=-1) for items in zip(*parts, strict=True)
        )
        return plays, successes, weight, position

    def drop(self, position: Positions) -> None:
        """No play goes on from the states at these positions."""
        self.weight[position] = 0.0

    def _refuse(self, fault: Array) -> NoReturn:
        arm, n, s, value, m = fault.tolist()
        tables = self.policy.tables
        position = math.comb(int(n) + 1, 2) + int(s)
        plays, mean, spread = tables.statistics[tables.which[int(arm)], :, position].tolist()
        state = (plays, mean, spread, self.plan.pseudo_plays + m, value)
        raise IndexFault(self.plan.name, state, uses_s=self.policy.program.uses_s)


def _at_nodes(pairs: Sequence[tuple[float, float]], horizon: int) -> tuple[Array, Array, Array]:
    """Densities (times weights) and distribution functions of all posteriors, at the nodes of a rule.

    P(X1 > X2, X1 > X3) is an integral of f1 F2 F3, which for whole a and b is a polynomial of degree
    sum (a + b - 2) + plays + 2: Gauss's rule has no error.
    """
    from scipy.special import betainc, betaln

    if not pairs:
        return np.zeros((3, 1, 1)), np.zeros((3, 1, 1)), np.zeros((2, 1))
    degree = sum(a + b - 2.0 for a, b in pairs) + horizon + 2.0
    x, weights = np.polynomial.legendre.leggauss(int(degree // 2) + 1)
    x, weights = 0.5 * (1.0 + x), 0.5 * weights
    n, s = np.tril_indices(horizon + 1)
    density, below = np.empty((2, 3, len(n), len(x)))
    for arm, (a, b) in enumerate(pairs):
        one, two = (a + s)[:, None], (b + n - s)[:, None]
        logarithm = (one - 1.0) * np.log(x) + (two - 1.0) * np.log1p(-x) - betaln(one, two)
        density[arm] = weights * np.exp(logarithm)
        below[arm] = betainc(one, two, x)
    return density, below, np.zeros((2, len(x)))


class TwoArms(_States):
    """The states of two arms after m plays."""

    def __init__(
        self,
        plan: Plan,
        prior: Prior,
        horizon: int,
        share: Callable[..., Any] = map,
        *,
        mirror: bool = True,
    ) -> None:
        super().__init__(plan, prior, horizon, share)
        from ..kernels import counts

        self.parts = counts.parts
        self.mirror = mirror and mirrors(plan, prior)
        self.offset, self.stride = counts.layout(horizon, self.mirror)
        self.weight = np.zeros(self.offset[-1])
        count = math.comb(horizon + 2, 2)
        self.slice = self.kernel.Slice(
            self.weight,
            np.full(count, self.kernel.MOST_PLAYS),
            np.full(count, -1),
            self.offset,
            self.stride,
            self.chance,
            self.mirror,
        )
        n = 1 if self.begin else 0
        for (s1, s2), weight in self.first_states():
            self.weight[self.offset[n] + s1 * self.stride[n] + s2] = weight
            self.slice.first[n + s1] = 0
            self.slice.last[n + s1] = n
        size = rows = 0
        if horizon > LONG:
            blocks = np.arange(len(self.offset) - 1)
            size = int(((blocks + 3) * self.stride[blocks]).max())
            rows = horizon + 2
        self.work = [
            self.kernel.StepWork(
                np.zeros(self.kernel.ROOM),
                np.zeros((_STEPS, size)),
                np.full((_STEPS, rows), self.kernel.MOST_PLAYS),
                np.full((_STEPS, rows), -1),
                np.zeros(5),
            )
            for _ in range(_PARTS if horizon > LONG else 1)
        ]
        # The policy with the indices of each step that is made at a time.
        self.policies = (self.policy,) * _STEPS
        if horizon > LONG and not self.fixed:
            self.policies = tuple(self._with_tables() for _ in range(_STEPS))

    def _with_tables(self) -> Any:
        """The policy with room of its own for indices."""
        tables = self.policy.tables
        shared = ("which", "statistics")
        own = {name: room.copy() for name, room in tables._asdict().items() if name not in shared}
        return self.policy._replace(tables=tables._replace(**own))

    def advance(self, first: int, last: int) -> None:
        """From `first` plays to `last`."""
        shared = max(first, _SHARED) if self.horizon > LONG else last
        if first < shared:
            status = self.kernel.run_two(
                first,
                min(shared, last),
                self.clock,
                self.slice,
                self.policy,
                self.finite,
                self.work[0],
            )
            if status != self.kernel.DONE:
                self._refuse(self.work[0].fault)
        m = shared
        while m < last:
            m += self._shared_steps(m, last)

    def _shared_steps(self, m: int, last: int) -> int:
        """Some steps from m plays on, by several threads; returns how many."""
        parts = self.parts(m, self.mirror, _PARTS)
        # As many as a part has blocks at most.
        steps = min(_STEPS, last - m, *(high - low for low, high in parts))
        finite = self.finite

        def set_tables(k: int) -> bool:
            return self._set_tables(m + k, m + k, self.policies[k])

        if not self.fixed:
            finite = all(list(self.share(set_tables, range(steps))))

        def advance(position: int, follow: bool) -> int:
            work, (low, high) = self.work[position], parts[position]
            status: int = self.kernel.run_part(
                m, steps, low, high, follow, self.slice, self.policies, finite, work, self.work[position - 1]
            )  # fmt: skip
            return status

        for follow in (False, True):
            positions = range(int(follow), len(parts))
            for position, status in zip(
                positions, self.share(partial(advance, follow=follow), positions), strict=True
            ):
                if status != self.kernel.DONE:
                    self._refuse(self.work[position].fault)
        return steps

    def _blocks(self, m: int) -> Iterator[tuple[tuple[int, ...], Counts, Positions]]:
        assert not self.mirror, "both halves must be kept"
        for n1 in range(m + 1):
            wins = np.indices((n1 + 1, m - n1 + 1), np.int32).reshape(2, -1)
            position = self.offset[n1] + wins[0] * self.stride[n1] + wins[1]
            yield (n1, m - n1), wins, position

    def totals(self, m: int) -> tuple[float, Array]:
        """Expected reward and plays of each arm after m plays."""
        sums = np.zeros(4)
        self.kernel.totals(m, self.slice, sums)
        return float(sums[0]), sums[1:3].copy()

    def recommended(self) -> float:
        """The expected mean reward of the arm with the best mean after all plays."""
        return float(self.kernel.recommended(self.horizon, self.slice, self._means()))

    def plays_on(self, means: Array, m: int) -> Array:
        """Expected plays of each arm on given problems, [problem, arm], after m plays."""
        second = self._on_problems(means, m, lambda n1, n2: n2)
        return np.stack([m - second, second], axis=1)

    def recommended_on(self, means: Array) -> Array:
        """How likely each arm has the best mean after all plays, on given problems."""
        by_pair = self._means()

        def second_is_better(n1: int, n2: int) -> Array:
            x = by_pair[0, math.comb(n1 + 1, 2) :][: n1 + 1, None]
            y = by_pair[1, math.comb(n2 + 1, 2) :][None, : n2 + 1]
            slack = 1e-11 * np.abs(x)
            return np.asarray(0.5 * (y >= x - slack) + 0.5 * (y > x + slack))

        second = self._on_problems(means, self.horizon, second_is_better)
        return np.stack([1.0 - second, second], axis=1)

    def _on_problems(self, means: Array, m: int, of: Callable[[int, int], Any]) -> Array:
        """The expectation after m plays, on each problem, of what belongs to arm 2.

        of(n1, n2) is that, for each state [s1, s2]; with the arms exchanged it is of(n2, n1)
        transposed.
        """
        found = np.empty(len(means))
        with one_blas_thread:
            for first in range(0, len(means), _PROBLEMS):
                some = slice(first, first + _PROBLEMS)
                found[some] = self._expect(means[some], m, of)
        return found

    def _expect(self, means: Array, m: int, of: Callable[[int, int], Any]) -> Array:
        from scipy.special import betaln

        wins, losses = logarithms(means)

        def likelihood(arm: int, column: int, n: int) -> Array:
            """How much more likely each number of successes is with these means than under the prior."""
            s = np.arange(n + 1)
            a, b = self.alpha[arm], self.beta[arm]
            weight = betaln(a + s, b + n - s) - betaln(a, b)
            ratio = np.outer(wins[:, column], s) + np.outer(losses[:, column], n - s) - weight
            return np.asarray(np.exp(ratio))

        total = np.zeros(len(means))
        for n1 in range((m // 2 if self.mirror else m) + 1):
            n2 = m - n1
            begin = self.offset[n1]
            block = self.weight[begin : begin + (n1 + 1) * self.stride[n1]]
            block = block.reshape(n1 + 1, self.stride[n1])[:, : n2 + 1]
            if not block.any():
                continue
            orders = [(0, 1)]
            if self.mirror and n1 < n2:
                orders.append((1, 0))
            for one, two in orders:
                value = of(n1, n2) if two == 1 else np.transpose(of(n2, n1))
                reach = likelihood(0, one, n1) @ (block * value)
                total += (reach * likelihood(1, two, n2)).sum(axis=1)
        return total


class Batches(TwoArms):
    """The states of two arms that are played in batches, or with a minimum share.

    The slice is that after the plays asked for, which may lie inside a batch; `base` is that before the
    batch, on which all its choices rest.
    """

    def __init__(
        self,
        plan: Plan,
        prior: Prior,
        horizon: int,
        share: Callable[..., Any],
        feedback: Feedback,
    ) -> None:
        super().__init__(replace(plan, each_once=False), prior, horizon, share, mirror=False)
        from ..kernels import batches

        self.batches = batches
        ends = feedback.ends(horizon)
        self.sizes = dict(zip([0, *ends], np.diff([0, *ends]).tolist(), strict=False))
        self.plan = plan
        self.base, self.base_made = self.weight.copy(), 0
        decision, most = plan.decision, max(self.sizes.values())
        steps = most if isinstance(decision, ByTable) or self.policy.program.varies else 1
        means = decision.means if isinstance(decision, ByTable) else ((1.0, 1.0),) * 2
        self.terms = {
            "share": feedback.min_share,
            "counted": feedback.pending == COUNT,
            "spreads": plan.each_once,
            "patience": PATIENCE * 2.0 if feedback.pending == COUNT else math.inf,
            "means": np.array(means),
        }
        self.room = batches.BatchWork(
            np.zeros((2, steps, most, horizon + 1)),
            np.zeros((2, horizon + 1, most + 1, most + 1)),
            np.zeros(most + 1),
            np.zeros((most + 1, horizon + 1)),
            np.zeros(horizon + 1),
            np.zeros(self.kernel.ROOM),
            np.zeros(5),
        )
        # All rows are full: the kernels that read a slice go by these ranges.
        n1, _s1 = np.tril_indices(horizon + 1)
        self.every_row = (n1, np.zeros_like(n1))

    def _check_before_any_play(self) -> None:
        """Whether an index has a value there is seen when play comes to it."""

    def advance(self, first: int, last: int) -> None:
        """To `last` plays, from the beginning of the batch that play is in."""
        while True:
            size = self.sizes[self.base_made]
            whole = self.base_made + size <= last
            self._play(size if whole else last - self.base_made)
            if not whole:
                return
            self.base_made += size
            np.copyto(self.base, self.weight)
            if self.base_made == last:
                return

    def drop(self, position: Positions) -> None:
        """No play goes on from the states at these positions; to be called where a batch ends."""
        self.weight[position] = 0.0
        self.base[position] = 0.0

    def _play(self, plays: int) -> None:
        """The slice after these plays of the batch."""
        source = self.slice._replace(weight=self.base)
        self.weight[:] = 0.0
        batch = self.batches.BatchTerms(made=self.base_made, size=plays, **self.terms)
        status = self.batches.advance(
            batch, self.clock, source, self.policy, self.weight, self.room
        )
        if status != self.kernel.DONE:
            self.room.fault[4] = self.base_made
            self._refuse(self.room.fault)
        made = self.base_made + plays
        n1 = self.every_row[0]
        self.slice.first[: len(n1)] = np.where(n1 <= made, 0, self.kernel.MOST_PLAYS)
        self.slice.last[: len(n1)] = np.where(n1 <= made, made - n1, -1)


class ThreeArms(_States):
    """The states of three arms after m plays."""

    def __init__(
        self, plan: Plan, prior: Prior, horizon: int, share: Callable[..., Any] = map
    ) -> None:
        super().__init__(plan, prior, horizon, share)
        from ..kernels import three_arms

        self.three = three_arms
        shape = (horizon + 2, horizon + 2)
        self.offset, self.after_offset = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        size = self.three.offsets(horizon, self.offset)
        self.weight, self.after = np.zeros(size), np.zeros(size)
        self.three.offsets(self.begin, self.offset)
        begin = self.offset[1, 1] if self.begin else 0
        for position, (_, weight) in enumerate(self.first_states()):
            self.weight[begin + position] = weight
        self.room = np.zeros(self.three.ROOM)
        decision = plan.decision
        self.best = decision.best if isinstance(decision, ByStates) else np.zeros(0, np.uint8)
        pairs: Sequence[tuple[float, float]] = ()
        if isinstance(decision, ByPosterior) and isinstance(decision.belief, BetaBelief):
            pairs = decision.belief.pairs
        self.draws = self.three.Draws(*_at_nodes(pairs, horizon))

    def advance(self, first: int, last: int) -> None:
        """From `first` plays to `last`."""
        for m in range(first, last):
            finite = self.finite if self.fixed else self._set_tables(m, m)
            size = self.three.offsets(m + 1, self.after_offset)
            self.after[:size] = 0.0
            states = self.three.States(self.weight, self.offset, self.after, self.after_offset)
            status = self.three.step_forward(
                m,
                states,
                self.chance,
                self.policy,
                self.draws,
                self.best,
                finite,
                self.room,
                self.fault,
            )
            if status != self.kernel.DONE:
                self.fault[4] = m
                self._refuse(self.fault)
            self.weight, self.after = self.after, self.weight
            self.offset, self.after_offset = self.after_offset, self.offset

    def _blocks(self, m: int) -> Iterator[tuple[tuple[int, ...], Counts, Positions]]:
        for n1 in range(m + 1):
            for n2 in range(m + 1 - n1):
                n3 = m - n1 - n2
                wins = np.indices((n1 + 1, n2 + 1, n3 + 1), np.int32).reshape(3, -1)
                yield (n1, n2, n3), wins, self.offset[n1, n2] + np.arange(wins.shape[1])

    def totals(self, m: int) -> tuple[float, Array]:
        """Expected reward and plays of each arm after m plays."""
        sums = np.zeros(5)
        self.three.totals(m, self.weight, self.offset, sums)
        return float(sums[0]), sums[1:4].copy()

    def recommended(self) -> float:
        """The expected mean reward of the arm with the best mean after all plays."""
        m = self.horizon
        return float(
            self.three.recommended(m, self.weight, self.offset, self.chance, self._means())
        )

    def plays_on(self, means: Array, m: int) -> Array:
        """Expected plays of each arm on given problems, [problem, arm], after m plays."""
        return self._on_problems(means, m, lambda plays: [np.float64(n) for n in plays])

    def recommended_on(self, means: Array) -> Array:
        """How likely each arm has the best mean after all plays, on given problems."""
        by_pair = self._means()

        def shares(plays: tuple[int, ...]) -> list[Array]:
            grids = np.meshgrid(
                *(by_pair[arm, math.comb(n + 1, 2) :][: n + 1] for arm, n in enumerate(plays)),
                indexing="ij",
            )
            best = np.maximum.reduce(grids)
            tied = [grid >= best - 1e-11 * np.abs(best) for grid in grids]
            return [share / sum(tied) for share in tied]

        return self._on_problems(means, self.horizon, shares)

    def _on_problems(
        self, means: Array, m: int, of: Callable[[tuple[int, ...]], Sequence[Any]]
    ) -> Array:
        """The expectation after m plays, [problem, arm], of what of(plays) says of each arm by successes."""
        found = np.zeros((len(means), 3))
        ratios = [[likelihood_ratios(means[:, arm], n) for n in range(m + 1)] for arm in range(3)]
        for n1 in range(m + 1):
            for n2 in range(m + 1 - n1):
                n3 = m - n1 - n2
                shape = (n1 + 1, n2 + 1, n3 + 1)
                begin = self.offset[n1, n2]
                block = self.weight[begin : begin + math.prod(shape)].reshape(shape)
                if not block.any():
                    continue
                for arm, share in enumerate(of((n1, n2, n3))):
                    rest = ratios[0][n1] @ (block * share).reshape(n1 + 1, -1)
                    rest = rest.reshape(-1, n2 + 1, n3 + 1) * ratios[1][n2][:, :, None]
                    found[:, arm] += (rest.sum(axis=1) * ratios[2][n3]).sum(axis=1)
        return found
