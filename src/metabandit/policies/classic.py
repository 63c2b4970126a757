"""The policies that the paper compares with (its Section 2.2 and Table 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..expressions import compile_expression, parse
from ..priors import Prior
from .base import ByCounts, Kernel, KernelPolicy
from .registry import Entry, Parameter, register

_AUER = "Auer, Cesa-Bianchi, Fischer 2002"

register(Entry("greedy", "r", "the arm with the best mean so far"))
register(
    Entry(
        "ucb1",
        "r + sqrt(C * ln(t)/n)",
        _AUER,
        (Parameter("C", 2.0, above=0.0, logarithmic=True),),
    )
)
register(
    # The paper prints a standard deviation inside min; the table needs the variance.
    Entry("ucb1-tuned", "r + sqrt(ln(t)/n * min(1/4, s*s + sqrt(2*ln(t)/n)))", _AUER)
)
register(
    Entry(
        "ucb-v",
        "r + sqrt(2*zeta*s*s*ln(t)/n) + 3*c*zeta*ln(t)/n",
        "Audibert, Munos, Szepesvari 2007",
        (Parameter("c", 1.0, above=0.0), Parameter("zeta", 1.0, above=0.0)),
    )
)
register(
    Entry(
        "kl-ucb",
        "kl_upper(r, (ln(t) + c*ln(ln(t)))/n)",
        "Garivier, Cappe 2011",
        (Parameter("c", 0.0),),
    )
)


def _ucb1_normal(name: str, values: Mapping[str, float]) -> KernelPolicy:
    index = compile_expression(parse("r + 4*s*sqrt(ln(t - 1)/(n - 1))"))

    def settle(prior: Prior, horizon: int) -> Kernel:
        needed = np.ceil(8.0 * np.log(np.maximum(np.arange(horizon), 1)))
        return Kernel("ucb1_normal", uses_s=True, by_counts=ByCounts(index, needed=needed))

    return KernelPolicy(name, settle)


register(
    Entry(
        "ucb1-normal",
        "an arm with fewer than 8 ln(t) plays, else r + 4 s sqrt(ln(t - 1)/(n - 1))",
        _AUER,
        build=_ucb1_normal,
    )
)


def epoch_levels(alpha: float, horizon: int) -> list[tuple[float, float]]:
    """UCB2's epochs: for each value of tau(r) = ceil((1 + alpha)^r), how many epochs r are empty.

    An epoch has length tau(r + 1) - tau(r). Of the epochs with one value of tau, all but the last
    are empty. Returns pairs (tau, empty epochs), up to the first tau beyond the horizon.
    """
    base = 1.0 + alpha

    def tau(epoch: int) -> int:
        return math.ceil(base**epoch)

    levels: list[tuple[float, float]] = []
    epoch = 0
    while not levels or levels[-1][0] <= horizon:
        value = tau(epoch)
        last = max(epoch, math.floor(math.log(value) / math.log(base)) - 1)
        while tau(last + 1) == value:
            last += 1
        levels.append((float(value), float(last - epoch)))
        epoch = last + 1
    return [*levels, (float(tau(epoch)), 0.0)]


def _ucb2(name: str, values: Mapping[str, float]) -> KernelPolicy:
    alpha = values["alpha"]

    def settle(prior: Prior, horizon: int) -> Kernel:
        numbers = [alpha]
        for tau, empty in epoch_levels(alpha, horizon):
            numbers += [tau, math.log(tau), empty]
        reason = "UCB2 keeps a memory beyond the counts (its epochs)"
        # The loops for two arms take nine rows, those for more arms 2 K + 2.
        return Kernel("ucb2", tuple(numbers), memory=2 * prior.arms + 5, by_counts=reason)

    return KernelPolicy(name, settle)


register(
    Entry(
        "ucb2",
        "epochs of tau(i+1) - tau(i) plays by r + sqrt((1 + alpha) ln(e t/tau(i))/(2 tau(i)))",
        _AUER,
        (Parameter("alpha", 0.001, above=1e-5, below=1.0, logarithmic=True),),
        build=_ucb2,
    )
)


def _epsilon_greedy(name: str, values: Mapping[str, float]) -> KernelPolicy:
    c, d = values["c"], values["d"]
    greedy = compile_expression(parse("r"))

    def settle(prior: Prior, horizon: int) -> Kernel:
        rate = np.minimum(1.0, c * prior.arms / (d**2 * (np.arange(horizon) + 1.0)))
        return Kernel("epsilon_greedy", (c, d), by_counts=ByCounts(greedy, rate=rate))

    return KernelPolicy(name, settle)


register(
    Entry(
        "eps_n-greedy",
        "any arm with probability min(1, c K/(d^2 (t + 1))), else the greedy one",
        _AUER,
        (Parameter("c", 1.0, above=0.0), Parameter("d", 1.0, above=0.0)),
        build=_epsilon_greedy,
    )
)


def _uniform(name: str, values: Mapping[str, float]) -> KernelPolicy:
    any_index = compile_expression(parse("0"))

    def settle(prior: Prior, horizon: int) -> Kernel:
        by_counts = ByCounts(any_index, rate=np.ones(horizon))
        return Kernel("uniform", each_once=False, by_counts=by_counts)

    return KernelPolicy(name, settle)


register(Entry("uniform", "any arm, with equal probability", "what chance does", build=_uniform))
