"""The policies of the catalogue: those the paper compares with, those of today, tests, and references."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

from ..decisions import ByBelief, ByEpochs, ByPosterior, ByTest, Decision, NormalBelief
from ..progress import Progress
from . import solved
from .base import Setting
from .beliefs import BELIEF, SIGMA, belief, normal_belief, posterior_index, start_of_belief
from .catalogue import Entry, Parameter, register
from .start import FREE, Start


def _ucb2(setting: Setting, values: Mapping[str, float], progress: Progress | None) -> Decision:
    return ByEpochs(values["alpha"])


def _thompson(setting: Setting, values: Mapping[str, float], progress: Progress | None) -> Decision:
    return ByPosterior(belief(setting, values))


def _by_belief(
    rule: Literal["kg", "kg-star", "ids", "ttts"],
) -> Callable[[Setting, Mapping[str, float], Progress | None], Decision]:
    def decide(
        setting: Setting, values: Mapping[str, float], progress: Progress | None
    ) -> Decision:
        return ByBelief(rule, belief(setting, values), values.get("keep", 0.5))

    return decide


def _ada_ucb(setting: Setting, values: Mapping[str, float], progress: Progress | None) -> Decision:
    """Rewards in [0, 1] deviate by 1/2 at most."""
    inside = setting.rewards.in_unit_interval and "sigma" not in values
    known = NormalBelief(noise=0.5) if inside else normal_belief(setting, values)
    return ByBelief("ada-ucb", NormalBelief(noise=known.noise))


def _fixed_test(
    setting: Setting, values: Mapping[str, float], progress: Progress | None
) -> Decision:
    horizon = setting.need_horizon("split-then-winner")
    # Less a little: a share of 0.2 of 1000 is to be 200, whatever the rounding.
    return ByTest(max(1, math.ceil(values["share"] * horizon / setting.arms - 1e-9)))


def _ab_test(setting: Setting, values: Mapping[str, float], progress: Progress | None) -> Decision:
    return ByTest(math.ceil(values["least"]), values["alpha"])


# Indices of the posteriors of rewards in [0, 1], and of Gaussian ones.
_CONFIDENCE = "1 - 1/((t + 1) * ln(t + h)^c)"
_BAYES_UCB = f"beta_quantile({_CONFIDENCE}, r*n + a, n - r*n + b)"
_GAUSSIAN_UCB = f"{{mean}} + {{deviation}}*normal_quantile({_CONFIDENCE})"
_DISCOUNT = "1 - 1/(shift + t + 1)"
_OPTIMISTIC = f"beta_optimist({_DISCOUNT}, r*n + a, n - r*n + b)"
_GAUSSIAN_OPTIMISTIC = f"{{mean}} + {{deviation}}*normal_optimist({_DISCOUNT})"

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
        _BAYES_UCB,
        "Kaufmann, Cappe, Garivier 2012",
        (Parameter("c", 0.0), *BELIEF),
        start=Start(),
        index=partial(posterior_index, _BAYES_UCB, _GAUSSIAN_UCB),
    ),
    Entry(
        "thompson",
        "the largest draw from the arms' posteriors: Beta(a + r n, b + n - r n) for rewards in [0, 1], "
        "else normal, N(r, sigma^2/n) if neither the prior nor mean and spread say more",
        "Thompson 1933; Chapelle, Li 2011",
        BELIEF,
        start=start_of_belief,
        decide=_thompson,
        reads_prior=True,
    ),
    Entry(
        "ids",
        "information-directed sampling by variances: the probabilities of arms with the least squared "
        "expected loss per information about which arm is best",
        "Russo, Van Roy 2018",
        BELIEF,
        start=start_of_belief,
        decide=_by_belief("ids"),
        reads_prior=True,
        slowness=3000.0,
    ),
    Entry(
        "kg",
        "knowledge gradient: the posterior mean and, for each play left, what one more play is worth",
        "Ryzhov, Powell, Frazier 2012",
        BELIEF,
        start=start_of_belief,
        decide=_by_belief("kg"),
        check=Setting.need_horizon,
        reads_prior=True,
        slowness=20.0,
    ),
    Entry(
        "kg-star",
        "KG*: the knowledge gradient of as many plays of the arm as are worth most on average",
        "Ryzhov, Powell, Frazier 2012; Kaminski 2015",
        BELIEF,
        start=start_of_belief,
        decide=_by_belief("kg-star"),
        check=Setting.need_horizon,
        reads_prior=True,
        slowness=3000.0,
    ),
    Entry(
        "ogi",
        _OPTIMISTIC,
        "optimistic Gittins index: Gutin, Farias 2016",
        (Parameter("shift", 0.0, above=-1.0), *BELIEF),
        start=Start(),
        index=partial(posterior_index, _OPTIMISTIC, _GAUSSIAN_OPTIMISTIC),
    ),
    Entry(
        "ada-ucb",
        "r + sigma sqrt(2 ln(T/H)/n), H = sum over arms j of min(n, sqrt(n n_j))",
        "Lattimore 2018",
        (SIGMA,),
        start=Start(),
        decide=_ada_ucb,
        check=Setting.need_horizon,
        reads_prior=True,
    ),
    Entry(
        "ttts",
        "top-two Thompson sampling, for simple regret: with probability keep the best of a draw from the "
        "posteriors, else the best of a draw in which another arm is best",
        "Russo 2016",
        (Parameter("keep", 0.5, above=0.0, below=1.0), *BELIEF),
        start=start_of_belief,
        decide=_by_belief("ttts"),
        reads_prior=True,
        slowness=2000.0,
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
        "whittle",
        "the Lagrangian index: by how much the arm is better played than not, at prices at which all arms "
        "together are played once per step; for many arms and few plays",
        "Whittle 1988; Brown, Smith 2020",
        start=Start(FREE),
        decide=solved.whittle,
        check=solved.check_whittle,
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
        check=Setting.need_horizon,
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
