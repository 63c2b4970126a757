"""What policies believe of the arms before any play: what the prior says, unless they are told otherwise.

Beta means of rewards in [0, 1] and normal means of Gaussian rewards are updated in closed form. Where
the prior has neither, all means of rewards in [0, 1] are equally likely, and of the means of other
rewards nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..decisions import BetaBelief, NormalBelief
from ..errors import InputError
from .base import IndexPolicy, Setting
from .catalogue import Parameter
from .start import EACH_ONCE, FREE, Start

if TYPE_CHECKING:
    from ..priors import Prior

_MOST = 1e6  # pseudo-observations that a policy may be told
# Given any of those for its rewards, a policy does not read the prior.
A = Parameter("a", 1.0, above=0.0, below=_MOST, matched=True)
B = Parameter("b", 1.0, above=0.0, below=_MOST, matched=True)
MEAN = Parameter("mean", None)
SPREAD = Parameter("spread", None, above=0.0)
SIGMA = Parameter("sigma", 1.0, above=0.0, matched=True)
BELIEF = (A, B, MEAN, SPREAD, SIGMA)


def beta_belief(setting: Setting, values: Mapping[str, float]) -> BetaBelief:
    """What is believed of arms with rewards in [0, 1]."""
    if "a" in values or "b" in values:
        return BetaBelief(((values.get("a", 1.0), values.get("b", 1.0)),) * setting.arms)
    if setting.prior is None:
        return BetaBelief(((1.0, 1.0),) * setting.arms)
    from ..bayes.gittins import means_of

    return BetaBelief(tuple(means_of(setting.prior)))


def normal_belief(setting: Setting, values: Mapping[str, float]) -> NormalBelief:
    """What is believed of arms with other rewards."""
    prior = setting.prior
    if prior is not None and values.keys().isdisjoint(("mean", "spread", "sigma")):
        from ..priors import Gaussian

        if isinstance(prior, Gaussian):
            return NormalBelief(prior.mean, (prior.noise / prior.spread) ** 2, prior.noise)
    if ("mean" in values) != ("spread" in values):
        raise InputError(
            "what is believed of the arms' means is their mean and their spread; give both, or none"
        )
    sigma = values.get("sigma", 1.0)
    if "spread" not in values:
        return NormalBelief(noise=sigma)
    return NormalBelief(values["mean"], (sigma / values["spread"]) ** 2, sigma)


def belief(setting: Setting, values: Mapping[str, float]) -> BetaBelief | NormalBelief:
    """What is believed of the arms of a setting."""
    if setting.rewards.in_unit_interval:
        return beta_belief(setting, values)
    return normal_belief(setting, values)


def stated(values: Mapping[str, float], known: Iterable[str], prior: Prior) -> dict[str, float]:
    """The parameters of a policy with what the prior says in numbers, if arms are alike.

    A policy that is kept in a file is then the same for those who do not know the prior.

    known: the parameters that the policy has
    """
    from ..priors import Gaussian

    setting, told = Setting.of(prior, 1), {}
    if setting.rewards.in_unit_interval:
        beta = beta_belief(setting, {})
        if beta.alike and max(beta.pairs[0]) < _MOST:
            told = dict(zip("ab", beta.pairs[0], strict=True))
    elif isinstance(prior, Gaussian):
        told = {"mean": prior.mean, "spread": prior.spread, "sigma": prior.noise}
    if told.keys() <= set(known) and told.keys().isdisjoint(values):
        return {**values, **told}
    return dict(values)


def start_of_belief(setting: Setting, values: Mapping[str, float]) -> Start:
    """Where nothing is known before the first play, there is no posterior to begin with."""
    known = belief(setting, values)
    return Start() if isinstance(known, NormalBelief) and not known.plays else Start(FREE)


def posterior_index(
    of_beta: str, of_normal: str, setting: Setting, values: Mapping[str, float], name: str
) -> IndexPolicy:
    """An index of an arm's posterior, for what is believed in a setting.

    of_beta: expression of the posterior Beta(r*n + a, n - r*n + b)
    of_normal: of the posterior mean and deviation, which are written {mean} and {deviation}
    """
    start = Start()
    given = {key: value for key, value in values.items() if key not in _NAMES}
    if not setting.rewards.in_unit_interval:
        known = normal_belief(setting, values)
        formula = of_normal.format(mean="r", deviation="sigma/sqrt(n)")
        given["sigma"] = known.noise
        if known.plays:
            mean = "(r + plays/(n + plays)*(mean - r))"
            formula = of_normal.format(mean=mean, deviation="sigma/sqrt(n + plays)")
            given |= {"mean": known.mean, "plays": known.plays}
        return IndexPolicy(formula, parameters=given, start=start, name=name)
    beta = beta_belief(setting, values)
    formula, (a, b) = of_beta, beta.pairs[0]
    if not beta.alike:
        # Arms that differ have pseudo-observations instead: the same posteriors.
        plays, wins = tuple(sum(pair) for pair in beta.pairs), tuple(a for a, _ in beta.pairs)
        start = Start(EACH_ONCE, plays, wins, wins)
        formula = re.sub(r"\bt\b", "(t - before)", of_beta)
        given["before"], a, b = sum(plays), 0.0, 0.0
    return IndexPolicy(formula, parameters=given | {"a": a, "b": b}, start=start, name=name)


_NAMES = frozenset(item.name for item in BELIEF)
