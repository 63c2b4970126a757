"""The policies that the paper compares with (its Section 2.2 and Table 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..language import parse
from ..play import rules
from .base import ByCounts, Kernel, KernelPolicy
from .catalogue import Entry, Parameter, register

if TYPE_CHECKING:
    from ..language.compile import Compiled
    from ..priors import Prior

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


def _compiled(text: str) -> Compiled:
    from ..language.compile import compile_expression

    return compile_expression(parse(text))


def _ucb1_normal(name: str, values: Mapping[str, float]) -> KernelPolicy:
    def settle(prior: Prior, horizon: int) -> Kernel:
        import numpy as np

        index = _compiled("r + 4*s*sqrt(ln(t - 1)/(n - 1))")
        needed = np.ceil(8.0 * np.log(np.maximum(np.arange(horizon), 1)))
        return Kernel("ucb1_normal", uses_s=True, by_counts=ByCounts(index, needed=needed))

    return KernelPolicy(name, settle, lambda setting: rules.Ucb1Normal())


register(
    Entry(
        "ucb1-normal",
        "an arm with fewer than 8 ln(t) plays, else r + 4 s sqrt(ln(t - 1)/(n - 1))",
        _AUER,
        build=_ucb1_normal,
    )
)


def epoch_levels(alpha: float, horizon: int) -> list[tuple[int, int]]:
    """UCB2's epochs up to the first tau beyond the horizon, and one more (see rules.epoch_levels)."""
    levels: list[tuple[int, int]] = []
    for tau, empty in rules.epoch_levels(alpha):
        beyond = bool(levels) and levels[-1][0] > horizon
        levels.append((tau, 0 if beyond else empty))
        if beyond:
            break
    return levels


def _ucb2(name: str, values: Mapping[str, float]) -> KernelPolicy:
    alpha = values["alpha"]

    def settle(prior: Prior, horizon: int) -> Kernel:
        numbers = [alpha]
        for tau, empty in epoch_levels(alpha, horizon):
            numbers += [tau, math.log(tau), empty]
        reason = "UCB2 keeps a memory beyond the counts (its epochs)"
        # The loops for two arms take nine rows, those for more arms 2 K + 2.
        return Kernel("ucb2", tuple(numbers), memory=2 * prior.arms + 5, by_counts=reason)

    return KernelPolicy(name, settle, lambda setting: rules.Ucb2(alpha, setting.horizon))


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

    def settle(prior: Prior, horizon: int) -> Kernel:
        import numpy as np

        rate = np.minimum(1.0, c * prior.arms / (d**2 * (np.arange(horizon) + 1.0)))
        return Kernel("epsilon_greedy", (c, d), by_counts=ByCounts(_compiled("r"), rate=rate))

    return KernelPolicy(name, settle, lambda setting: rules.EpsilonGreedy(c, d))


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
    def settle(prior: Prior, horizon: int) -> Kernel:
        import numpy as np

        by_counts = ByCounts(_compiled("0"), rate=np.ones(horizon))
        return Kernel("uniform", each_once=False, by_counts=by_counts)

    return KernelPolicy(name, settle, lambda setting: rules.Uniform())


register(Entry("uniform", "any arm, with equal probability", "what chance does", build=_uniform))
