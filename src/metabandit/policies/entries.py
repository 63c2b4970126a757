"""The policies of the catalogue: those the paper compares with, those of today, tests, and references."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..decisions import ByEpochs, ByPosterior, ByTest, Decision, NormalBelief
from . import solved
from .base import Progress, Setting
from .beliefs import BELIEF, PosteriorIndex, belief
from .catalogue import Entry, Parameter, register
from .start import FREE, Start


def _ucb2(setting: Setting, values: Mapping[str, float], progress: Progress | None) -> Decision:
    return ByEpochs(values["alpha"])


def _thompson(setting: Setting, values: Mapping[str, float], progress: Progress | None) -> Decision:
    return ByPosterior(belief(setting, values))


def _thompson_start(setting: Setting, values: Mapping[str, float]) -> Start:
    """Where nothing is known before the first play, there is no posterior to draw from."""
    known = belief(setting, values)
    return Start() if isinstance(known, NormalBelief) and not known.plays else Start(FREE)


def _fixed_test(
    setting: Setting, values: Mapping[str, float], progress: Progress | None
) -> Decision:
    horizon = setting.need_horizon("split-then-winner")
    # Less a little: a share of 0.2 of 1000 is to be 200, whatever the rounding.
    return ByTest(max(1, math.ceil(values["share"] * horizon / setting.arms - 1e-9)))


def _fixed_test_check(setting: Setting, name: str) -> None:
    setting.need_horizon(name)


def _ab_test(setting: Setting, values: Mapping[str, float], progress: Progress | None) -> Decision:
    return ByTest(math.ceil(values["least"]), values["alpha"])


_CONFIDENCE = "1 - 1/((t + 1) * ln(t + h)^c)"
_BAYES_UCB = PosteriorIndex(
    f"beta_quantile({_CONFIDENCE}, r*n + a, n - r*n + b)",
    f"{{mean}} + {{deviation}}*normal_quantile({_CONFIDENCE})",
)

_AUER = "Auer, Cesa-Bianchi, Fischer 2002"
# Those of the paper, its Section 2.2 and Table 1.
_PAPER = (
    Entry("greedy", "r", "the arm with the best mean so far"),
    Entry(
        "ucb1",
        "r + sqrt(C * ln(t)/n)",
        _AUER,
        (Parameter("C", 2.0, above=0.0, logarithmic=True),),
    ),
    # The paper prints a standard deviation inside min; the table needs the variance.
    Entry("ucb1-tuned", "r + sqrt(ln(t)/n * min(1/4, s*s + sqrt(2*ln(t)/n)))", _AUER),
    Entry(
        "ucb-v",
        "r + sqrt(2*zeta*s*s*ln(t)/n) + 3*c*zeta*ln(t)/n",
        "Audibert, Munos, Szepesvari 2007",
        (Parameter("c", 1.0, above=0.0), Parameter("zeta", 1.0, above=0.0)),
    ),
    Entry(
        "kl-ucb",
        "kl_upper(r, (ln(t) + c*ln(ln(t)))/n)",
        "Garivier, Cappe 2011",
        (Parameter("c", 0.0),),
    ),
    Entry("ucb1-normal", "r + 4*s*sqrt(ln(t - 1)/(n - 1))", _AUER, needed="8*ln(t)", start=Start()),
    Entry(
        "ucb2",
        "epochs of tau(i+1) - tau(i) plays by r + sqrt((1 + alpha) ln(e t/tau(i))/(2 tau(i)))",
        _AUER,
        (Parameter("alpha", 0.001, above=1e-5, below=1.0, logarithmic=True),),
        start=Start(),
        decide=_ucb2,
    ),
    Entry(
        "eps_n-greedy",
        "r",
        _AUER,
        (Parameter("c", 1.0, above=0.0), Parameter("d", 1.0, above=0.0)),
        rate="min(1, c*K/(d^2*(t + 1)))",
        start=Start(),
    ),
    Entry("uniform", "0", "what chance does", rate="1", start=Start(FREE)),
)
# The baselines that a reader of today expects, and the references that are solved for a prior.
_TODAY = (
    Entry("moss", "r + sqrt(max(0, ln((t + h)/(K*n)))/n)", "Audibert, Bubeck 2009"),
    Entry("kl-ucb+", "kl_upper(r, ln(t/n)/n)", "Garivier, Cappe 2011"),
    Entry(
        "bayes-ucb",
        _BAYES_UCB.beta,
        "Kaufmann, Cappe, Garivier 2012",
        (Parameter("c", 0.0), *BELIEF),
        start=Start(),
        index=_BAYES_UCB,
    ),
    Entry(
        "thompson",
        "the largest draw from the arms' posteriors: Beta(a + r n, b + n - r n) for rewards in [0, 1], "
        "else normal, N(r, sigma^2/n) if neither the prior nor mean and spread say more",
        "Thompson 1933; Chapelle, Li 2011",
        BELIEF,
        start=_thompson_start,
        decide=_thompson,
        reads_prior=True,
    ),
    Entry(
        "gittins",
        "the per-play price at which continuing with the arm just breaks even (a reference, no bound)",
        "Gittins 1979; finite horizon: Nino-Mora 2011",
        (Parameter("discount", 1.0, above=0.0),),
        start=Start(FREE),
        decide=solved.gittins,
        check=solved.check_gittins,
        reads_prior=True,
        tabled=True,
    ),
    Entry(
        "optimal",
        "what backward induction says for this prior and horizon; two or three arms",
        "Bellman 1956",
        start=Start(FREE),
        decide=solved.optimal_for_prior,
        check=solved.check_optimal,
        binary=True,
        reads_prior=True,
        tabled=True,
    ),
)

# What people do who do not learn from rewards as they come.
_TESTS = (
    Entry("split", "-n", "an equal split throughout", start=Start()),
    Entry(
        "split-then-winner",
        "an equal split for this share of the plays, then the arm with the best mean for good",
        "an A/B test of fixed length",
        (Parameter("share", 0.2, above=0.0, below=1.0),),
        start=Start(FREE),
        decide=_fixed_test,
        check=_fixed_test_check,
    ),
    Entry(
        "ab-test",
        "an equal split until an arm is better than each other one at the level alpha (a two-sided "
        "z-test before every play, once each arm has had `least` rewards), then this arm for good",
        "an A/B test that is looked at",
        (Parameter("alpha", 0.05, above=0.0, below=1.0), Parameter("least", 30.0, above=1.0)),
        start=Start(FREE),
        decide=_ab_test,
    ),
)

for _entry in (*_PAPER, *_TODAY, *_TESTS):
    register(_entry)
