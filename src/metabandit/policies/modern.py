"""The baselines that a reader of today expects, and the references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..play import Setting, rules
from .base import ByCounts, Kernel, KernelPolicy, Policy
from .catalogue import Entry, Parameter, register

if TYPE_CHECKING:
    from ..priors import Prior

register(
    Entry(
        "moss",
        "r + sqrt(max(0, ln((t + h)/(K*n)))/n)",
        "Audibert, Bubeck 2009",
    )
)
register(Entry("kl-ucb+", "kl_upper(r, ln(t/n)/n)", "Garivier, Cappe 2011"))
register(
    Entry(
        "bayes-ucb",
        "beta_quantile(1 - 1/((t + 1) * ln(t + h)^c), r*n + 1, n - r*n + 1)",
        "Kaufmann, Cappe, Garivier 2012",
        (Parameter("c", 0.0),),
    )
)


def _thompson(name: str, values: Mapping[str, float]) -> KernelPolicy:
    def settle(prior: Prior, horizon: int) -> Kernel:
        if prior.family.in_unit_interval:
            posterior = values["a"], values["b"]
            by_counts = ByCounts(posterior=posterior)
            return Kernel("thompson_beta", posterior, each_once=False, by_counts=by_counts)
        return Kernel("thompson_gaussian", (values["sigma"],))

    def rule(setting: Setting) -> rules.Rule:
        if setting.rewards.in_unit_interval:
            return rules.ThompsonBeta(values["a"], values["b"])
        return rules.ThompsonGaussian(values["sigma"])

    return KernelPolicy(name, settle, rule)


register(
    Entry(
        "thompson",
        "the largest draw from Beta(a + r n, b + n - r n) for rewards in [0, 1], "
        "else from N(r, sigma^2/n)",
        "Thompson 1933; Chapelle, Li 2011",
        (
            Parameter("a", 1.0, above=0.0, below=1e6),
            Parameter("b", 1.0, above=0.0, below=1e6),
            Parameter("sigma", 1.0, above=0.0),
        ),
        build=_thompson,
    )
)


def _gittins(name: str, values: Mapping[str, float]) -> Policy:
    from ..bayes.gittins import Gittins

    return Gittins(name)


register(
    Entry(
        "gittins",
        "the price a play at which the arm is just worth going on with (a reference, no bound)",
        "Gittins 1979; finite horizon: Nino-Mora 2011",
        build=_gittins,
    )
)


def _optimal(name: str, values: Mapping[str, float]) -> Policy:
    from ..bayes.optimum import OptimalForPrior

    return OptimalForPrior(name)


register(
    Entry(
        "optimal",
        "what backward induction says for this prior and horizon; two arms",
        "Bellman 1956",
        build=_optimal,
    )
)
