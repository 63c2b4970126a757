"""The baselines that a reader of today expects, and the references that are solved for a prior."""

from __future__ import annotations

from collections.abc import Mapping

from ..decisions import ByPosterior, Decision
from . import solved
from .base import Progress, Setting
from .catalogue import Entry, Parameter, register
from .start import FREE, Start

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


def _thompson(setting: Setting, values: Mapping[str, float], progress: Progress | None) -> Decision:
    if setting.rewards.in_unit_interval:
        return ByPosterior(beta=(values["a"], values["b"]))
    return ByPosterior(sigma=values["sigma"])


def _thompson_start(setting: Setting) -> Start:
    """A Gaussian posterior has no variance before the first play."""
    return Start(FREE) if setting.rewards.in_unit_interval else Start()


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
        start=_thompson_start,
        decide=_thompson,
    )
)
register(
    Entry(
        "gittins",
        "the per-play price at which continuing with the arm just breaks even (a reference, no bound)",
        "Gittins 1979; finite horizon: Nino-Mora 2011",
        start=Start(FREE),
        decide=solved.gittins,
        check=solved.check_gittins,
        reads_prior=True,
    )
)
register(
    Entry(
        "optimal",
        "what backward induction says for this prior and horizon; two arms",
        "Bellman 1956",
        start=Start(FREE),
        decide=solved.optimal_for_prior,
        check=solved.check_optimal,
        binary=True,
        reads_prior=True,
    )
)
