"""The policies that the paper compares with (its Section 2.2 and Table 1)."""

from __future__ import annotations

from collections.abc import Mapping

from ..decisions import ByEpochs, Decision
from .base import Progress, Setting
from .catalogue import Entry, Parameter, register
from .start import FREE, Start

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
register(
    Entry("ucb1-normal", "r + 4*s*sqrt(ln(t - 1)/(n - 1))", _AUER, needed="8*ln(t)", start=Start())
)


def _ucb2(setting: Setting, values: Mapping[str, float], progress: Progress | None) -> Decision:
    return ByEpochs(values["alpha"])


register(
    Entry(
        "ucb2",
        "epochs of tau(i+1) - tau(i) plays by r + sqrt((1 + alpha) ln(e t/tau(i))/(2 tau(i)))",
        _AUER,
        (Parameter("alpha", 0.001, above=1e-5, below=1.0, logarithmic=True),),
        start=Start(),
        decide=_ucb2,
    )
)
register(
    Entry(
        "eps_n-greedy",
        "r",
        _AUER,
        (Parameter("c", 1.0, above=0.0), Parameter("d", 1.0, above=0.0)),
        rate="min(1, c*K/(d^2*(t + 1)))",
        start=Start(),
    )
)
register(Entry("uniform", "0", "what chance does", rate="1", start=Start(FREE)))
