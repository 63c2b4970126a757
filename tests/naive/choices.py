"""Which twin plays a policy of the catalogue."""

from __future__ import annotations

from functools import partial

import metabandit as mb
from metabandit.bayes.gittins import bonus_table, gittins_table, levels_of
from metabandit.bayes.lagrange import prices_of
from metabandit.decisions import ByBelief, ByPosterior, ByTest

from .lookahead import ada_ucb_choice, knowledge_choice, shares_choice, whittle_choice
from .policies import (
    TIE,
    ab_test_choice,
    epsilon_greedy_choice,
    gaussian_gittins_choice,
    gittins_choice,
    index_choice,
    optimal_choice,
    thompson_beta_choice,
    thompson_gaussian_choice,
    ucb1_normal_choice,
    ucb2_choice,
    uniform_choice,
)


def choice_of(policy, prior, horizon, *, fine=False):
    """The twin's rule for a policy of the catalogue; `fine` is for what the simulator plays in float64."""
    tie = 1e-11 if fine else None
    close = {"tie": tie or 1e-9}
    if isinstance(policy, mb.IndexPolicy) and len(policy.trees) == 1:
        tree = policy.plan(prior, horizon).decision.bound
        return partial(index_choice, tree=tree, tie=tie or TIE)
    if policy.name.partition(":")[0] == "gittins":
        discount = policy.values["discount"]
        levels = levels_of(horizon, discount)
        if isinstance(prior, mb.Gaussian):
            bonus = bonus_table(horizon, prior.spread, prior.noise, discount=discount)
            return partial(
                gaussian_gittins_choice, prior=prior, bonus=bonus, levels=levels, **close
            )
        means = list(zip(prior.alpha, prior.beta, strict=True))
        tables = {mean: gittins_table(horizon, *mean, discount=discount) for mean in means}
        return partial(gittins_choice, tables=tables, means=means, levels=levels, **close)
    if policy.name == "optimal":
        return partial(optimal_choice, policy=mb.OptimalPolicy(prior, horizon))
    plan = policy.plan(prior, horizon)
    if policy.name == "whittle":
        means = list(zip(prior.alpha, prior.beta, strict=True))
        return partial(
            whittle_choice, prices=prices_of(tuple(means), horizon), means=means, **close
        )
    if isinstance(plan.decision, ByBelief):
        known = {"belief": plan.decision.belief}
        return {
            "kg": partial(knowledge_choice, star=False, **known, **close),
            "kg-star": partial(knowledge_choice, star=True, **known, **close),
            "ids": partial(shares_choice, keep=None, **known),
            "ttts": partial(shares_choice, keep=plan.decision.keep, **known),
            "ada-ucb": partial(
                ada_ucb_choice, noise=getattr(known["belief"], "noise", 0.0), **close
            ),
        }[plan.decision.rule]
    if isinstance(plan.decision, ByTest):
        return partial(ab_test_choice, plays=plan.decision.plays, alpha=plan.decision.alpha)
    if isinstance(plan.decision, ByPosterior):
        known = plan.decision.belief
        if prior.family.in_unit_interval:
            return partial(thompson_beta_choice, pairs=known.pairs)
        return partial(thompson_gaussian_choice, **vars(known))
    return {
        "uniform": uniform_choice,
        "eps_n-greedy": partial(epsilon_greedy_choice, c=1.0, d=1.0),
        "ucb1-normal": ucb1_normal_choice,
        "ucb2": partial(ucb2_choice, alpha=0.001),
        "ucb2:alpha=0.03": partial(ucb2_choice, alpha=0.03),
        "ucb2:alpha=0.3": partial(ucb2_choice, alpha=0.3),
    }[policy.name]
