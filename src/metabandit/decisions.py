"""What a policy decides by: data that exact evaluation, simulation, live play and export interpret.

A decision says everything about how an arm is chosen, given what is known of the arms. Nothing else
knows a policy: an engine either honours all of a decision or refuses it. How play begins is not part
of it (see policies/start.py).

`Index` covers most policies of the literature. With index values x_k, rate e(t, h, K) and needed
plays m(t, h, K), the next arm is

    an arm with the fewest plays        if some arm has fewer than m plays,
    any arm, with equal probability     with probability e otherwise,
    an arm with the largest x_k         otherwise,

ties at random. Plays include the pseudo-plays of the start, as n does.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

from .errors import InputError
from .language import ARM_VARIABLES, Constant, Tree, bind, guarded, parse, text, variables

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .language.compile import Compiled

    Array = npt.NDArray[np.float64]


def check_moment(tree: Tree, what: str) -> None:
    """Refuse an expression that reads more than the moment: a rate is the same for all arms."""
    read = variables(tree) & ARM_VARIABLES
    if read:
        raise InputError(
            f"{what} must be the same for all arms, so it may read t, h and K only; "
            f"{text(tree)} reads {', '.join(sorted(read))}"
        )


@dataclass(frozen=True)
class Index:
    """The arm with the largest index, with random plays and needed plays where they are wanted.

    tree: the index; parameters: the values of the names in it (and in rate and needed)
    rate: the probability with which any arm is played instead, of t, h and K
    needed: plays that every arm must have before the index counts, of t, h and K
    """

    tree: Tree
    parameters: Mapping[str, float] = field(default_factory=dict)
    rate: Tree | None = None
    needed: Tree | None = None

    @property
    def bound(self) -> Tree:
        """The index with the values of its parameters."""
        return bind(self.tree, self.parameters)

    @property
    def compared(self) -> Tree:
        """What arms are compared by: the index, 0 where it is lost in rounding (see language/cancelling.py)."""
        return bind(guarded(self.tree), self.parameters)

    @property
    def bound_rate(self) -> Tree | None:
        return None if self.rate is None else bind(self.rate, self.parameters)

    @property
    def bound_needed(self) -> Tree | None:
        return None if self.needed is None else bind(self.needed, self.parameters)

    def program(self) -> Compiled:
        """The index as the machine runs it; all candidates of a tree share its code."""
        from .language.compile import compile_expression

        return compile_expression(guarded(self.tree)).bind(self.parameters)

    def rates(self, horizon: int, begin: int, pseudo_plays: float, arms: int) -> Array:
        """The rate after each number of plays from `begin` on; empty if there is none."""
        values = self._by_step(self.bound_rate, horizon, begin, pseudo_plays, arms)
        for value in values[begin:]:
            check_rate(float(value), self)
        return values

    def needed_plays(self, horizon: int, begin: int, pseudo_plays: float, arms: int) -> Array:
        """The plays that every arm needs after each number of plays; empty if none are needed."""
        values = self._by_step(self.bound_needed, horizon, begin, pseudo_plays, arms)
        for value in values[begin:]:
            check_needed(float(value), self)
        return values

    def _by_step(
        self, tree: Tree | None, horizon: int, begin: int, pseudo_plays: float, arms: int
    ) -> Array:
        import numpy as np

        from .language.values import evaluate_tree

        if tree is None:
            return np.zeros(0)
        steps = np.arange(begin, horizon, dtype=np.float64)
        moment: dict[str, Any] = {"t": pseudo_plays + steps, "h": horizon - steps, "K": float(arms)}
        values = np.zeros(horizon)
        values[begin:] = evaluate_tree(tree, moment)
        return values


def check_rate(value: float, decision: Index) -> None:
    """Refuse what is no probability."""
    if not 0.0 <= value <= 1.0:
        assert decision.bound_rate is not None
        raise InputError(
            f"the rate of random plays, {text(decision.bound_rate)}, must lie between 0 and 1 at every "
            f"play, but it is {value:g} at one; limit it, as in min(1, ...)"
        )


def check_needed(value: float, decision: Index) -> None:
    """Refuse what is no number of plays."""
    if math.isnan(value):
        assert decision.bound_needed is not None
        raise InputError(
            f"the plays that each arm needs first, {text(decision.bound_needed)}, are not a number at "
            f"some play; guard its divisions and logarithms"
        )


def _begins(horizon: int, levels: tuple[int, ...], sizes: list[int]) -> list[int]:
    """For N = 0, ..., horizon: where the first level from N on begins in a table."""
    places = [bisect_left(levels, last) for last in range(horizon + 1)]
    begins = list(accumulate(sizes, initial=0))
    return [begins[place] for place in places]


@dataclass(frozen=True, eq=False)
class ByTable:
    """The largest index from a table by plays made and counts (plays, reward sum) of the arm.

    After m plays, an arm with n of them can have N = n + horizon - m in all.

    table: [row, entry], for each level the index of each pair (plays, successes) of the arm with fewer
        plays; between whole reward sums it is interpolated
    levels: rising, the last one being the horizon; the first that is no less than N counts
    row_of: the row of each arm
    means: the Beta distribution (a, b) of each arm's mean, which decides after the last play
    """

    horizon: int
    table: Array
    levels: tuple[int, ...]
    row_of: tuple[int, ...]
    means: tuple[tuple[float, float], ...]

    @cached_property
    def begins(self) -> list[int]:
        """For each N, where the pairs of its level begin in a row."""
        return _begins(self.horizon, self.levels, [math.comb(n + 1, 2) for n in self.levels])


@dataclass(frozen=True, eq=False)
class ByBonus:
    """The largest posterior mean and bonus, for Gaussian rewards of arms with normal means.

    After n plays with reward sum x the mean is (mean/spread^2 + x/noise^2) / (1/spread^2 + n/noise^2).

    bonus: for each level (see ByTable) that of n = 0, 1, ... plays of the arm
    mean, spread: of the arms' means; noise: the deviation of a reward
    """

    horizon: int
    bonus: Array
    levels: tuple[int, ...]
    mean: float
    spread: float
    noise: float

    @cached_property
    def begins(self) -> list[int]:
        """For each N, where its level begins."""
        return _begins(self.horizon, self.levels, list(self.levels))

    def posterior_mean(self, plays: float, total: float) -> float:
        """What is expected of an arm after so many plays with this reward sum."""
        prior, reward = self.spread**-2, self.noise**-2
        return (self.mean * prior + total * reward) / (prior + plays * reward)


@dataclass(frozen=True, eq=False)
class ByCuts:
    """The better of two arms that pay 0 or 1, from a table.

    cuts: uint16[entry, 2], for each number of plays made and each (plays, successes) of arm 1: arm 1
        is better while arm 2 has fewer successes than the first number, as good while it has fewer
        than the second
    means: the Beta distribution (a, b) of each arm's mean, which decides after the last play
    rate: the probability with which any arm is played instead
    """

    horizon: int
    cuts: npt.NDArray[np.uint16]
    means: tuple[tuple[float, float], ...]
    rate: float = 0.0

    def best_arms(self, plays: Sequence[int], wins: Sequence[int]) -> tuple[int, ...]:
        """The better arm in a state, or both if they are equally good."""
        entry = math.comb(sum(plays) + 2, 3) + math.comb(plays[0] + 1, 2) + wins[0]
        better, equal = self.cuts[entry]
        if wins[1] < better:
            return (0,)
        return (0, 1) if wins[1] < equal else (1,)


@dataclass(frozen=True, eq=False)
class ByStates:
    """The best of three arms that pay 0 or 1, from a table.

    best: uint8[entry], for each number of plays made and each state (plays and successes of each arm) which
        arms are best: bit k for arm k
    means: the Beta distribution (a, b) of each arm's mean, which decides after the last play
    """

    horizon: int
    best: npt.NDArray[np.uint8]
    means: tuple[tuple[float, float], ...]

    def best_arms(self, plays: Sequence[int], wins: Sequence[int]) -> tuple[int, ...]:
        """The best arms in a state: one, or several that are equally good."""
        (n1, n2, n3), (s1, s2, s3) = plays, wins
        made = n1 + n2 + n3
        # As kernels/three_arms.py has them: blocks by n1 and n2, in each all successes. Sums over blocks
        # are sums over those that follow, taken away from all.
        later, rest = made - n1, n3
        entry = math.comb(made + 5, 6) + math.comb(made + 5, 5)
        entry -= math.comb(later + 5, 5) + n1 * math.comb(later + 4, 4)
        block = math.comb(later + 3, 3) - math.comb(rest + 3, 3) - n2 * math.comb(rest + 2, 2)
        entry += (n1 + 1) * block + (s1 * (n2 + 1) + s2) * (n3 + 1) + s3
        bits = int(self.best[entry])
        return tuple(arm for arm in range(3) if bits >> arm & 1)


@dataclass(frozen=True)
class BetaBelief:
    """What is believed of the mean of each arm whose rewards lie in [0, 1]: Beta(a, b) of its pair.

    After n plays with reward sum x it is Beta(a + x, b + n - x).
    """

    pairs: tuple[tuple[float, float], ...]

    @property
    def alike(self) -> bool:
        """Whether the same is believed of all arms."""
        return len(set(self.pairs)) == 1


@dataclass(frozen=True)
class NormalBelief:
    """What is believed of the mean of every arm: N(mean, noise^2/plays), noise the deviation of rewards.

    It is worth so many plays: after n more with mean reward r it is
    N((plays mean + n r)/(plays + n), noise^2/(plays + n)). With 0 plays nothing is known before the first.
    """

    mean: float = 0.0
    plays: float = 0.0
    noise: float = 1.0

    alike = True

    def posterior(self, plays: float, mean: float) -> tuple[float, float]:
        """Mean and deviation after so many plays with this mean reward."""
        both = self.plays + plays
        if not both:
            return mean, math.inf
        return mean + self.plays / both * (self.mean - mean), self.noise / math.sqrt(both)


Belief = BetaBelief | NormalBelief


@dataclass(frozen=True)
class ByPosterior:
    """Thompson sampling: the largest draw from the arms' posteriors."""

    belief: Belief


# Beside a mean of 1 a deviation of this size has nine digits, as many as ids tells values apart by.
_LEAST_DEVIATION = 1e-7


@dataclass(frozen=True)
class ByBelief:
    """A rule that compares what is believed of all arms at once (see lookahead.py).

    rule: kg or kg-star, the largest index of the knowledge gradient; ada-ucb, the largest index of ADA-UCB,
        which reads the noise only; ids or ttts, an arm drawn with the probabilities of information-directed
        or of top-two Thompson sampling
    keep: of ttts, the probability with which the leader is played
    """

    rule: Literal["kg", "kg-star", "ada-ucb", "ids", "ttts"]
    belief: Belief
    keep: float = 0.5

    @property
    def number(self) -> float:
        """What tells rules of a kind apart: 1 for KG*, -1 for no leader."""
        return {"kg-star": 1.0, "ids": -1.0, "ttts": self.keep}.get(self.rule, 0.0)

    def __post_init__(self) -> None:
        """Refuse beliefs whose deviations are lost beside means near 1: ids compares the deviations."""
        if self.rule != "ids" or not isinstance(self.belief, BetaBelief):
            return
        narrow = [
            (a, b)
            for a, b in self.belief.pairs
            if a > b and math.sqrt(a * b / (a + b + 1.0)) < _LEAST_DEVIATION * (a + b)
        ]
        if len(narrow) > 1:
            a, b = narrow[0]
            raise InputError(
                f"ids compares how far arms may be from their means, which float64 does not resolve for "
                f"Beta({a:g}, {b:g}): the mean is almost 1, and the deviation below {_LEAST_DEVIATION:g} for "
                f"more than one arm; choose another policy, such as thompson or ttts, or a prior that knows less"
            )


@dataclass(frozen=True)
class ByEpochs:
    """UCB2 (Auer et al. 2002): the arm of the best index is played for an epoch.

    Epoch i of an arm has tau(i + 1) - tau(i) plays, tau(i) = ceil((1 + alpha)^i), and the index is
    r + sqrt((1 + alpha) ln(e t / tau(i)) / (2 tau(i))).
    """

    alpha: float

    def levels(self) -> Iterator[tuple[int, int]]:
        """Each value of tau, and how many epochs with that value are empty: all but the last."""
        base = 1.0 + self.alpha

        def tau(epoch: int) -> int:
            return math.ceil(base**epoch)

        epoch = 0
        while True:
            value = tau(epoch)
            last = max(epoch, math.floor(math.log(value) / math.log(base)) - 1)
            while tau(last + 1) == value:
                last += 1
            yield value, last - epoch
            epoch = last + 1

    def levels_up_to(self, horizon: int) -> list[tuple[int, int]]:
        """The levels up to the first tau beyond the horizon, and one more."""
        found: list[tuple[int, int]] = []
        for tau, empty in self.levels():
            beyond = bool(found) and found[-1][0] > horizon
            found.append((tau, 0 if beyond else empty))
            if beyond:
                break
        return found


@dataclass(frozen=True)
class ByTest:
    """An A/B test: the arm with the fewest plays until the test ends, then its winner for good.

    plays: rewards that every arm must have had for the test to end; the arm with the best mean wins
    alpha: if given, the winner must also be better than each other arm by a two-sided z-test at this
        level, r_1 - r_k > z(1 - alpha/2) sqrt(s_1^2/(n_1 - 1) + s_k^2/(n_k - 1)); it is looked at
        before every play, and not corrected for that, as is the custom
    """

    plays: int
    alpha: float | None = None

    @property
    def errors(self) -> float:
        """Standard errors by which the winner must lead; 0 if the length alone ends the test."""
        from statistics import NormalDist

        return 0.0 if self.alpha is None else NormalDist().inv_cdf(1.0 - self.alpha / 2.0)

    def index(self) -> Index | None:
        """The same as an index, for rewards of 0 and 1 that are known at once; None with alpha.

        When the test ends all arms have t/K plays; then the winner has more, which outweighs any mean.
        """
        if self.alpha is not None:
            return None
        return Index(parse("r + 4*max(0, n - t/K)"), needed=Constant(float(self.plays)))


@dataclass(frozen=True)
class Own:
    """A person's own rule: choose(n, r, s, t, h, u) returns the number of the arm to play."""

    function: Callable[..., Any]


Decision = (
    Index | ByTable | ByBonus | ByCuts | ByStates | ByPosterior | ByBelief | ByEpochs | ByTest | Own
)
