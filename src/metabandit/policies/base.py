"""What a policy is: how play begins (`Start`), and what it decides by (`Decision`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..decisions import ByBonus, ByCuts, ByStates, ByTable, Decision, Index, Own, check_moment
from ..errors import InputError, shown
from ..language import OPERATORS, VARIABLES, Tree, latex, names, operators, parse, text, variables
from ..progress import Progress
from ..rewards import Rewards
from ..settings import read_number, write_number
from ..showing import Shown
from .start import Start

if TYPE_CHECKING:
    from ..decisions import Array
    from ..play import ArmName, Player
    from ..priors import Prior
    from .catalogue import Entry
    from .file import Origin


@dataclass(frozen=True)
class Setting:
    """What a policy is put to use on.

    rewards: those that can come; `paid_by` says whose they are, for messages
    horizon: plays in all, and prior: what is known of the arms; live play may know neither
    """

    arms: int
    rewards: Rewards
    horizon: int | None = None
    prior: Prior | None = None
    paid_by: str = "this player"

    @classmethod
    def of(cls, prior: Prior, horizon: int) -> Setting:
        """The setting of an evaluation."""
        family = prior.family
        rewards = Rewards(*family.support, binary=family.binary)
        return cls(prior.arms, rewards, horizon, prior, family.name)

    def need_horizon(self, policy: str) -> int:
        """The horizon, for policies that cannot do without."""
        if self.horizon is None:
            raise InputError(f"{policy} must know how many plays there are: give horizon=")
        return self.horizon


@dataclass(frozen=True)
class Plan:
    """A policy for one prior and horizon: what engines interpret, and what is sent to workers.

    each_once: whether each arm is played once, in order, before the first decision
    counts: pseudo-observations [plays, reward sum, sum of squares; arm]
    minimum: plays that every arm must have before the decision counts; while one has fewer, an arm
        with the fewest is next
    """

    name: str
    each_once: bool
    counts: Array
    decision: Decision
    minimum: int = 0

    @property
    def pseudo_plays(self) -> float:
        return float(self.counts[0].sum())

    def exceptions(self, horizon: int) -> tuple[Array, Array]:
        """Rate and needed plays after each number of plays; empty where there are none."""
        import numpy as np

        rate = needed = np.zeros(0)
        if isinstance(self.decision, Index):
            arms = self.counts.shape[1]
            moment = (horizon, arms if self.each_once else 0, self.pseudo_plays, arms)
            rate, needed = self.decision.rates(*moment), self.decision.needed_plays(*moment)
        elif isinstance(self.decision, ByCuts) and self.decision.rate > 0.0:
            rate = np.full(horizon, self.decision.rate)
        if self.minimum:
            least = float(self.minimum)
            needed = np.maximum(needed, least) if len(needed) else np.full(horizon, least)
        return rate, needed

    @property
    def size(self) -> int:
        """Bytes of its tables."""
        if isinstance(self.decision, ByTable):
            return self.decision.table.nbytes
        if isinstance(self.decision, ByBonus):
            return self.decision.bonus.nbytes
        if isinstance(self.decision, ByStates):
            return self.decision.best.nbytes
        return self.decision.cuts.nbytes if isinstance(self.decision, ByCuts) else 0


class Policy(Shown, ABC):
    """A strategy for choosing arms.

    Attributes
    ----------
    name : str
        What tables call it.
    learned : Origin or None
        How it was learned, if it comes from a file.
    """

    name: str
    learned: Origin | None = None
    # Whether it is for rewards of 0 and 1 only, whether it reads the prior, also in live play, and
    # whether it has a table to compute first.
    binary = False
    reads_prior = False
    tabled = False
    # About how many times longer a play takes than with a simple index.
    slowness = 3.0

    @abstractmethod
    def decision(self, setting: Setting, progress: Progress | None = None) -> Decision:
        """What the policy decides by in this setting; tables are computed once and kept."""

    def start_for(self, setting: Setting) -> Start:
        """How play begins; by playing each arm once unless a policy says otherwise."""
        return Start()

    def check_setting(self, setting: Setting) -> None:
        """Refuse a setting that this policy cannot play; takes no time."""
        return

    def settings(self) -> dict[str, Any]:
        """What tells it from others of the same name: parameters, and how play begins."""
        return {}

    def content(self) -> Any:
        """The policy as a file has it (see policies/file.py), or None if no file can hold it."""
        return None

    def check(self, prior: Prior, horizon: int) -> None:
        """Refuse a prior or horizon that this policy cannot play; takes no time."""
        self._begin(Setting.of(prior, horizon), prior, horizon)

    def plan(self, prior: Prior, horizon: int, progress: Progress | None = None) -> Plan:
        """How engines play this policy."""
        setting = Setting.of(prior, horizon)
        each_once, counts = self._begin(setting, prior, horizon)
        return Plan(self.name, each_once, counts, self.decision(setting, progress))

    def _begin(self, setting: Setting, prior: Prior, horizon: int) -> tuple[bool, Array]:
        self.check_setting(setting)
        start = self.start_for(setting)
        if start.each_once and horizon < prior.arms:
            raise InputError(
                f"{shown(self.name)} plays each of the {prior.arms} arms once before it decides, so the "
                f"horizon must be at least {prior.arms}, not {horizon}; raise --horizon, or use "
                f"--start prior-counts where the policy allows it"
            )
        return start.each_once, start.counts(prior)

    def player(
        self,
        arms: int | Iterable[ArmName],
        *,
        seed: int = 0,
        horizon: int | None = None,
        prior: str | Prior | None = None,
        rewards: object = None,
        journal: str | Path | None = None,
        store: str | None = None,
        experiment: str | None = None,
        refresh: float = 0.05,
        min_share: float | None = None,
        pending: str | None = None,
        on_duplicate: str = "refuse",
        expire: float | None = None,
        expired: float | None = None,
        warm_start: object = None,
        warm_weight: float = 1.0,
    ) -> Player:
        """Put the policy to use on these arms.

        A policy that was learned for another number of arms, other plays or another prior warns, and plays.

        Parameters
        ----------
        arms : int or iterable of str or int
            The names of the arms, or how many there are, which are then called 0, 1, ...
        seed : int
            For ties and for policies that play at random; one seed, one sequence of choices.
        horizon : int, optional
            Plays in all, for policies that read it; a learned policy has its own. Beyond it, every
            play is taken for the last.
        prior : str or Prior, optional
            What is known of the arms, for starts and policies that read it; a learned policy knows.
            Without it, policies that read it take all means to be equally likely.
        rewards : "binary" or (low, high), optional
            The rewards that can come; others are refused. By default as the policy was learned, or
            as the prior says, else (0, 1).
        journal : path, optional
            A .jsonl file to which each reward is written before it counts. If it exists, the player
            continues where it ended.
        store : str, optional
            The URL of a database in which counts are kept, for any number of processes, such as
            ``sqlite:///bandit.db``; `metabandit store init` makes its tables.
        experiment : str
            The name of the experiment in the store.
        refresh : float
            How old counts may be that selections rest on, in seconds.
        min_share : float, optional
            The probability that every arm keeps at every selection; none by default, or as the policy
            was learned.
        pending : {"count", "ignore"}, optional
            Whether selections that still wait for their reward count as plays of their arm; they do by
            default, or as the policy was learned.
        on_duplicate : {"refuse", "replace"}
            What a second, different reward for the id of a choice does.
        expire : float, optional
            Seconds after which a choice waits for its reward no longer.
        expired : float, optional
            The reward that counts for a choice that expired, such as 0; none by default.
        warm_start : mapping, data frame or path, optional
            What the arms have done before: a mapping from arms to (plays, total) or (plays, total,
            squares), or a data frame or CSV file with the columns arm, plays, total and squares. It counts
            as pseudo-observations; arms that have some need no first play.
        warm_weight : float
            The weight of a play of that history, above 0 and up to 1; a fifth for 0.2.

        Returns
        -------
        Player

        Examples
        --------
        >>> import metabandit as mb
        >>> player = mb.policy("ucb1:C=0.17").player(arms=["red", "green"], seed=1)
        >>> player.select()
        'red'
        >>> player.update("red", 1)
        """
        from ..play.players import keep_player, make_player

        player = make_player(
            self,
            arms,
            seed=seed,
            horizon=horizon,
            prior=prior,
            rewards=rewards,
            min_share=min_share,
            pending=pending,
            on_duplicate=on_duplicate,
            expire=expire,
            expired=expired,
            warm_start=warm_start,
            warm_weight=warm_weight,
        )
        return keep_player(
            player, journal=journal, store=store, experiment=experiment, refresh=refresh
        )

    def __str__(self) -> str:
        return self.name

    def remarks(self) -> list[str]:
        """How it was learned, if it was."""
        known = self.learned
        if known is None:
            return []
        return [f"Learned for {known.horizon} plays, {known.arms} arms, {known.prior}"]


def _read_tree(given: str | float | Tree, parameters: Iterable[str]) -> Tree:
    if isinstance(given, int | float) and not isinstance(given, bool):
        given = write_number(read_number(given, "an expression"))
    if isinstance(given, str):
        return parse(given, parameters=tuple(parameters))
    if not isinstance(given, Tree):
        raise InputError(f"an expression is a text such as r + 1/n, not {given!r}")
    return given


class IndexPolicy(Policy):
    """Play the arm whose index is largest, ties at random.

    Parameters
    ----------
    expression : str or Tree
        The index. Names in it that are no variables are parameters.
    parameters : mapping, optional
        The values of the parameters.
    start : str or Start, optional
        How play begins; see `policy`.
    name : str, optional
        What tables call it; the expression by default.
    rate : str, float or Tree, optional
        The probability with which any arm is played instead: an expression of t, h, K and parameters.
    needed : str, float or Tree, optional
        Plays that every arm must have before the index counts: an expression of t, h, K and
        parameters. While an arm has fewer, the arm with the fewest plays is next.

    Examples
    --------
    >>> import metabandit as mb
    >>> mine = mb.IndexPolicy("r", rate="min(1, c/(t + 1))", parameters={"c": 2}, name="mine")
    >>> round(mb.evaluate(mine, mb.Bernoulli(arms=2), horizon=20, method="exact")[0].mean_regret, 4)
    1.5255
    """

    # Of an index of the catalogue that reads the prior: its entry and the values of its parameters. As an
    # index of its own, without a setting, it is that for equally likely means.
    matched: tuple[Entry, Mapping[str, float]] | None = None

    def __init__(
        self,
        expression: str | Tree,
        *,
        parameters: Mapping[str, float] | None = None,
        start: str | Start | None = None,
        name: str | None = None,
        rate: str | float | Tree | None = None,
        needed: str | float | Tree | None = None,
    ) -> None:
        self.parameters = {
            key: read_number(number, f"the parameter {key}")
            for key, number in (parameters or {}).items()
        }
        self.tree = _read_tree(expression, self.parameters)
        self.rate = None if rate is None else _read_tree(rate, self.parameters)
        self.needed = None if needed is None else _read_tree(needed, self.parameters)
        for tree, what in ((self.rate, "the rate"), (self.needed, "needed")):
            if tree is not None:
                check_moment(tree, f"{what} of {name or text(self.tree)}")
        for tree in self.trees:
            missing = [item for item in names(tree) if item not in self.parameters]
            if missing:
                raise InputError(f"{text(tree)}: the parameter {missing[0]!r} has no value")
        for item in self.parameters:
            if item in VARIABLES:
                raise InputError(f"{item!r} is a variable ({VARIABLES[item]}), not a parameter")
        self.start = start if isinstance(start, Start) else Start.read(start)
        self.start_given = start is not None
        exceptions = [
            f"{what} {text(tree)}"
            for what, tree in (("rate", self.rate), ("needed", self.needed))
            if tree is not None
        ]
        self.name = name or ", ".join([text(self.tree), *exceptions])

    @property
    def trees(self) -> list[Tree]:
        """The index, and rate and needed plays where there are any."""
        return [tree for tree in (self.tree, self.rate, self.needed) if tree is not None]

    def with_parameters(self, values: Mapping[str, float], start: Start) -> IndexPolicy:
        """The same index with other values for its parameters, and its own start."""
        other = copy(self)
        other.parameters = {
            key: read_number(values[key], f"the parameter {key}") for key in self.parameters
        }
        return other.with_start(start)

    def with_start(self, start: str | Start) -> IndexPolicy:
        """The same index with another start."""
        other = copy(self)
        other.start = Start.read(start)
        other.start_given = True
        return other

    @property
    def bound(self) -> Tree:
        """The index with the values of the parameters in it."""
        return self._index.bound

    @property
    def formula(self) -> str:
        """The index as text."""
        return text(self.bound)

    @property
    def latex(self) -> str:
        """The index as LaTeX."""
        return latex(self.bound)

    def remarks(self) -> list[str]:
        """The index as notebooks set it, the start, and how it was learned."""
        one = len(self.trees) == 1 and len(self.latex) < 1000
        index = [f"$\\displaystyle {self.latex}$"] if one else []
        return [*index, f"Start: {self.start}", *super().remarks()]

    @property
    def _index(self) -> Index:
        return Index(self.tree, self.parameters, self.rate, self.needed)

    def on(self, setting: Setting) -> IndexPolicy:
        """The policy as it is in a setting: another one if it reads the prior."""
        if self.matched is None:
            return self
        entry, values = self.matched
        assert entry.index is not None
        found = entry.index(setting, values, self.name)
        found.learned = self.learned
        return found

    def decision(self, setting: Setting, progress: Progress | None = None) -> Decision:
        return self.on(setting)._index

    def start_for(self, setting: Setting) -> Start:
        return self.on(setting).start

    def settings(self) -> dict[str, Any]:
        return {**self.parameters, "start": self.start}

    def content(self) -> Any:
        from .file import Catalogued, Expression

        if self.matched is not None:
            entry, values = self.matched
            return Catalogued(name=entry.name, parameters=dict(values))
        used = {item for tree in self.trees for item in names(tree)}
        return Expression(
            expression=text(self.tree),
            parameters={name: self.parameters[name] for name in self.parameters if name in used},
            start=self.start,
            rate=None if self.rate is None else text(self.rate),
            needed=None if self.needed is None else text(self.needed),
        )

    def check_setting(self, setting: Setting) -> None:
        here = self.on(setting)
        if setting.horizon is None and any("h" in variables(tree) for tree in here.trees):
            setting.need_horizon(self.name)
        if setting.rewards.in_unit_interval:
            return
        for operator in sorted(operators(here.tree), reverse=True):
            if OPERATORS[operator].in_unit_interval:
                raise InputError(
                    f"{shown(self.name)} uses {operator}, which is for rewards in [0, 1]; those of "
                    f"{setting.paid_by} lie between {setting.rewards.low:g} and "
                    f"{setting.rewards.high:g}"
                )


class ChoicePolicy(Policy):
    """A rule of your own, for policies without an index; each arm is played once before the rule is first called.

    Parameters
    ----------
    name : str
        What tables call it.
    choose : callable
        choose(n, r, s, t, h, u) returns the number of the arm to play: n, r and s are arrays with one
        entry per arm, t and h are numbers, and u is a uniform random number for rules that need one.
        numba compiles it, once per process.
    """

    def __init__(self, name: str, choose: Callable[..., int]) -> None:
        self.name = name
        self.choose = choose

    def check_setting(self, setting: Setting) -> None:
        setting.need_horizon(self.name)

    def decision(self, setting: Setting, progress: Progress | None = None) -> Decision:
        return Own(self.choose)
