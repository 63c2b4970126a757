"""How precisely a task is simulated: in lanes of float32, or of float64 where those would lose.

Lanes of float32 take a third to half of the time. They count up to 2^24, draw rewards from uniform numbers of 23 bits,
and tell indices apart that differ by 2e-6 of their size. That is enough unless

- there are more plays than can be counted;
- pseudo-plays outweigh a reward, which moves the mean r of n plays by r/n or (1 - r)/n, so that indices
  before and after it are ties; or there are so few pseudo-failures b (or successes) that r is
  almost 1 (or 0) after some plays: an upper bound q by KL divergence has 1 - q of about (n/t)^(1/b) b/n;
  the same holds for what a policy believes of the arms without pseudo-plays;
- the index has a constant, or a term of t and h, beside which n and r are small, or a quantile of an arm's posterior, whose level is
  near 1: with 1 - 1/(t ln(T)^5), the quantiles of all arms would be 1;
- terms of the index cancel, and what is left is rounding;
- rewards of 0 and 1 are so rare, or so common, that 23 bits do not resolve their probability;
- the means of other rewards are large beside their differences: with sums of size T |mean|, what is lost
  in T plays is 2e-6 T |mean|, to be compared with the differences, of which regret is made.

The choice depends on the prior, the horizon and the policy only, so that neither threads nor other policies of
a comparison change a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..decisions import BetaBelief, ByBelief, ByPosterior, ByTable, Decision, Index
from ..errors import InputError
from ..language import ARM_VARIABLES, Apply, Constant, Tree, variables
from ..language.tree import walk
from ..language.values import evaluate_tree
from ..priors import Prior
from ..priors.families import Array
from .problems import check_problems, regret_means

# Plays that float32 can count.
_MOST_PLAYS = 2**24
# Pseudo-plays of an arm, the least reward sum of a start (or what is missing to its plays), and the least
# change of its mean by a reward, that float32 does with.
_MOST_PSEUDO_PLAYS = 1000.0
_LEAST_PSEUDO_SUM = 0.5
_LEAST_CHANGE = 2e-4
# The least a and b from which lanes of float32 draw Beta variates.
_LEAST_SHAPE = 0.5
# The rarest rewards that 23 bits do for: their probability is then right to 0.06 %.
_RAREST = 1e-4
# Size of the means times plays, over the differences of means, that float32 and float64 do with.
_MOST_OFFSET = 5e4
_MOST_OFFSET_64 = 1e10
# The largest constant of an index beside which float32 resolves its other terms.
_MOST_CONSTANT = 1000.0
# Operators that the machine computes in float64, whatever the lanes are, and the one whose operands cancel.
_FINE_OPERATORS = {
    "beta_quantile",
    "beta_optimist",
    "normal_quantile",
    "normal_optimist",
    "difference",
}

# Problems that are looked at.
_SAMPLE = 64


@dataclass(frozen=True)
class Precision:
    """What the problems of a prior ask for.

    rare: the least mean probability of an arm's reward of 0 or 1; 1 for other rewards
    offset: the size of the means over their differences; 0 for rewards of 0 and 1
    """

    prior: Prior
    horizon: int
    rare: float = 1.0
    offset: float = 0.0

    @classmethod
    def of(cls, prior: Prior, horizon: int) -> Precision:
        drawn = check_problems(prior, prior.draw(np.random.default_rng(0), _SAMPLE), _SAMPLE)
        means = regret_means(prior, drawn)
        if prior.family.binary:
            each = means.mean(axis=0)
            rarer = np.minimum(each, 1.0 - each)
            # What never happens needs no bits.
            return cls(prior, horizon, rare=float(rarer[rarer > 0.0].min(initial=1.0)))
        gap = float((means.max(axis=1) - means.min(axis=1)).mean())
        size = float(np.abs(means).mean())
        # Without any difference there is no regret to be wrong about.
        return cls(prior, horizon, offset=size / gap if gap > 0.0 else 0.0)

    def kind(self, counts: Array | None = None, decision: Decision | None = None) -> Any:
        """The type of lanes for a start with these pseudo-observations, or an error if none does."""
        if self.offset * self.horizon > _MOST_OFFSET_64:
            raise InputError(
                f"the means of {self.prior} are {self.offset:.3g} times as large as their differences, "
                f"which {self.horizon} plays cannot resolve (that times the plays may be "
                f"{_MOST_OFFSET_64:g} at most); subtract what is common to all rewards, as regret does not "
                f"depend on it"
            )
        wide = (
            self.horizon >= _MOST_PLAYS - _MOST_PSEUDO_PLAYS
            or self.rare < _RAREST
            or self.offset * self.horizon > _MOST_OFFSET
            or (counts is not None and _is_extreme(counts, binary=self.prior.family.binary))
            or (decision is not None and self._asks_for_more(decision))
        )
        return np.float64 if wide else np.float32

    def _asks_for_more(self, decision: Decision) -> bool:
        """Whether a decision computes with what float32 would lose."""
        if isinstance(decision, Index):
            return any(_is_fine(node) or self._drowns(node) for node in walk(decision.compared))
        pairs: tuple[tuple[float, float], ...] = ()
        if isinstance(decision, ByTable):
            pairs = decision.means
        elif isinstance(decision, (ByBelief, ByPosterior)):
            pairs = decision.belief.pairs if isinstance(decision.belief, BetaBelief) else ()
        if isinstance(decision, ByPosterior) and pairs and min(map(min, pairs)) < _LEAST_SHAPE:
            return True
        believed = np.array([(a + b, a) for a, b in pairs]).T
        return bool(pairs) and _is_extreme(believed, binary=self.prior.family.binary)

    def _drowns(self, node: Tree) -> bool:
        """Whether a sum has a term of the moment alone beside which what it has of rewards is small."""
        if not isinstance(node, Apply) or node.operator not in ("add", "subtract"):
            return False
        for term, other in (node.operands, node.operands[::-1]):
            read = variables(term)
            if read.isdisjoint(ARM_VARIABLES) and not variables(other).isdisjoint("rs"):
                t = np.unique(np.geomspace(1, self.horizon, 64).round())
                moments: dict[str, Any] = {
                    "t": t,
                    "h": self.horizon - t + 1,
                    "K": float(self.prior.arms),
                }
                with np.errstate(all="ignore"):
                    size = np.abs(evaluate_tree(term, moments))
                if np.any(size > _MOST_CONSTANT):
                    return True
        return False


def _is_fine(node: Tree) -> bool:
    """Whether a part of an index is too large for float32 to have the rest, or is computed in float64."""
    if isinstance(node, Constant):
        return node.value > _MOST_CONSTANT
    return (
        isinstance(node, Apply)
        and node.operator in _FINE_OPERATORS
        and not variables(node).isdisjoint(ARM_VARIABLES)
    )


def _is_extreme(counts: Array, *, binary: bool) -> bool:
    """Whether pseudo-observations are too many or too few for float32."""
    plays, total = counts[0], counts[1]
    if not plays.any():
        return False
    if plays.max() > _MOST_PSEUDO_PLAYS or plays.min() < _LEAST_PSEUDO_SUM:
        return True
    # Indices of arms that hardly ever pay are small, about 1/sqrt(n), and so is what float32 loses of them.
    failures, successes = (plays - total) / plays**2, total / plays**1.5
    least = np.minimum(total, plays - total)
    # A start without successes, or without failures, changes by as much as 1/n.
    few = (least < _LEAST_PSEUDO_SUM) | (np.minimum(failures, successes) < _LEAST_CHANGE)
    return binary and bool((few & (least > 0.0)).any())
