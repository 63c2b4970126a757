"""What every language needs to know of a policy to write it down: an index with all its numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

from ..errors import InputError
from ..feedback import COUNT
from ..language import Apply, Constant, Name, Tree, bind, text, variables
from ..policies import IndexPolicy, Policy, Start
from ..policies.catalogue import policy as read_policy
from ..policies.file import Origin
from ..policies.start import FREE
from ..settings import check_horizon, write_number

# Comments of an exported program are no longer than this.
_COMMENT = 90
_ZERO, _ONE = Constant(0.0), Constant(1.0)


@dataclass(frozen=True)
class ExportedPolicy:
    """An index policy with all its numbers: the index, how it begins, and where it is from.

    counts: plays, sum and squares of the pseudo-observations, each one number for all arms or one per
        arm; None is the start each-once
    rate: how often any of the arms is played at random instead, of t, h and K
    needed: how many plays every arm has before the index counts, of t, h and K; while one has fewer,
        that with the fewest is played
    """

    name: str
    tree: Tree
    counts: tuple[tuple[float, ...], ...] | None
    horizon: int | None
    origin: Origin | None
    rate: Tree | None = None
    needed: Tree | None = None

    @property
    def min_share(self) -> float:
        """The probability that every arm keeps: what the policy was learned with."""
        return 0.0 if self.origin is None else self.origin.feedback.min_share

    @property
    def random(self) -> bool:
        """Whether some plays are of any arm, at random."""
        return self.rate is not None or self.min_share > 0.0

    @property
    def waiting(self) -> bool:
        """Whether a program must be told how many plays of each arm wait for their reward."""
        if self.origin is None:
            return self.reads("w")
        feedback = self.origin.feedback
        return self.reads("w") or (feedback.waits and feedback.pending == COUNT)

    def reads(self, variable: str) -> bool:
        trees = (self.tree, self.rate, self.needed)
        return any(variable in variables(tree) for tree in trees if tree is not None)

    @property
    def arms(self) -> int | None:
        """For how many arms the start has numbers; None if for any."""
        if self.counts is None or len(self.counts[0]) == 1:
            return None
        return len(self.counts[0])

    @property
    def least_plays(self) -> float:
        """The fewest plays of an arm, pseudo-plays included, that the index is asked for."""
        return 1.0 if self.counts is None else min(self.counts[0])

    @property
    def start(self) -> str:
        """How the policy begins, in words."""
        if self.counts is None:
            return "each arm is played once"
        shown = [", ".join(map(write_number, row)) for row in self.counts]
        each = "each arm" if self.arms is None else "the arms"
        played, total, squared = shown if self.arms is None else [f"({row})" for row in shown]
        words = f"{each} began with {played} plays, rewards of {total} in sum"
        return f"as if {words}" + (f", their squares {squared}" if self.reads("s") else "")

    @property
    def provenance(self) -> str:
        """For what the policy was learned and how well it does; empty if it was not learned."""
        origin = self.origin
        if origin is None:
            return ""
        words = (
            f"learned for {origin.arms} arms, {origin.horizon} plays and the prior {origin.prior}"
        )
        if origin.regret is not None:
            exact = origin.regret.method == "exact"
            error = "exact" if exact else f"standard error {origin.regret.standard_error:.2g}"
            words += f", with a mean regret of {origin.regret.mean:.6g} ({error})"
        return words

    def notes(self) -> list[str]:
        """The lines at the head of a program: what it is, its formula, start and origin."""
        lines = [
            f"The bandit policy {_one_line(self.name)}, exported by metabandit {version('metabandit')}.",
            "",
        ]
        lines += _wrap("Index:   ", formula(self.tree))
        if self.rate is not None:
            lines += _wrap("Random:  ", f"any arm with probability {text(self.rate)}")
        if self.needed is not None:
            lines += _wrap("Needed:  ", f"{text(self.needed)} plays of every arm before the index")
        if self.min_share:
            lines += _wrap(
                "Share:   ", f"every arm keeps the probability {write_number(self.min_share)}"
            )
        lines += _wrap("Start:   ", self.start)
        if self.provenance:
            lines += _wrap("Origin:  ", self.provenance)
        if self.reads("h"):
            lines += _wrap("Horizon: ", f"{self.horizon} plays")
        return lines


def _one_line(name: str) -> str:
    """A name that cannot break out of a comment: what follows a new line would be code."""
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())


def _wrap(label: str, words: str) -> list[str]:
    return textwrap.wrap(
        label + words,
        _COMMENT,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )


def formula(tree: Tree) -> str:
    """The index as text; a polynomial is described in words, as its weights follow in the program."""
    if isinstance(tree, Apply) and tree.operator == "polynomial":
        values = ", ".join(map(text, tree.operands[:4]))
        count = sum(1 for weight in tree.operands[4:] if text(weight) != "0")
        return f"a polynomial of {values} with {count} terms"
    return text(tree)


def settled(tree: Tree, values: Mapping[str, float]) -> Tree:
    """The tree with the values of its parameters; what a parameter of 0 multiplies is left out."""
    if not isinstance(tree, Apply):
        return bind(tree, values)
    off = [isinstance(item, Name) and values.get(item.name) == 0.0 for item in tree.operands]
    if tree.operator == "multiply" and any(off):
        return _ZERO
    if tree.operator == "power" and off[1]:
        return _ONE
    settled_ones = tuple(settled(operand, values) for operand in tree.operands)
    first, last = settled_ones[0], settled_ones[-1]
    if (tree.operator in ("add", "subtract") and last == _ZERO) or (
        tree.operator == "multiply" and last == _ONE
    ):
        return first
    if (tree.operator == "add" and first == _ZERO) or (
        tree.operator == "multiply" and first == _ONE
    ):
        return last
    return Apply(tree.operator, settled_ones)


def _without_waiting(tree: Tree) -> Tree:
    if isinstance(tree, Apply):
        return Apply(tree.operator, tuple(_without_waiting(item) for item in tree.operands))
    return _ZERO if tree == Name("w") else tree


def _numbers(start: Start, reads_s: bool, name: str) -> tuple[tuple[float, ...], ...] | None:
    if start.each_once and start.plays is None:
        return None
    if start.each_once:
        raise InputError(
            f"{name} plays each arm once although it has pseudo-observations, for which exported "
            f"programs have no start"
        )
    if start.kind == FREE:
        raise InputError(
            f"{name} decides before any arm was played, for which exported programs have no start; "
            f"play it from Python, with metabandit.policy({name!r}).player(arms)"
        )
    if start.plays is None:
        raise InputError(
            f"the start prior-counts of {name} takes its numbers from a prior, which a program does "
            f"not know; give them, as in --start prior-counts:plays=2,sum=1,squares=1"
        )
    if start.square_sum is None and reads_s:
        raise InputError(
            f"{name} reads s, the standard deviation, so the start {start} needs squares too: the sum "
            f"of the squared pseudo-rewards, which is the sum itself for rewards of 0 and 1, as in "
            f"--start prior-counts:plays=2,sum=1,squares=1"
        )
    return tuple(zip(*start.complete(binary=True).for_arms(start.arms or 1), strict=True))


def read_exported(
    description: str | Policy, start: str | Start | None, horizon: int | None, *, play: bool
) -> ExportedPolicy:
    """A policy to write; refused if it is no index, or lacks a number that is needed.

    `play` says that a program is to choose arms, not only to show the index.
    """
    chosen = read_policy(description)
    if isinstance(chosen, IndexPolicy) and start is not None:
        if chosen.start_given:
            raise InputError(
                f"{chosen.name} has its own start, so {start} cannot be used with it", about="start"
            )
        chosen = read_policy(chosen, start=start)
    origin = chosen.learned
    if not isinstance(chosen, IndexPolicy):
        raise InputError(
            f"{chosen.name} is not an index policy: its choice is not the largest value of a formula, so "
            f"there is no formula to export. Play it from Python, with "
            f"metabandit.policy({chosen.name!r}).player(arms), or export an index policy (see "
            f"`metabandit policies`)"
        )
    if horizon is not None:
        horizon = check_horizon(horizon)
    elif origin is not None:
        horizon = origin.horizon
    tree, rate, needed = (
        None if item is None else settled(item, chosen.parameters)
        for item in (chosen.tree, chosen.rate, chosen.needed)
    )
    assert tree is not None
    if origin is not None and origin.feedback.pending != COUNT:
        tree = _without_waiting(tree)  # to such a policy no play waits
    reads = {name for item in (tree, rate, needed) if item is not None for name in variables(item)}
    if play and horizon is None and "h" in reads:
        raise InputError(
            f"{chosen.name} reads h, the plays left, so a program needs the number of plays in all; "
            f"give it with --horizon"
        )
    counts = _numbers(chosen.start, "s" in reads, chosen.name)
    return ExportedPolicy(chosen.name, tree, counts, horizon, origin, rate, needed)
