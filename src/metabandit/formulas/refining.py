"""Refining: the constants of a formula as numbers to learn, and the best of all formulas in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from string import ascii_lowercase

from ..engine.task import Task
from ..language import VARIABLES, Apply, Name, Tree, text, variables
from ..language.values import evaluate_tree
from ..learning import learn
from ..learning.measure import Measurement, measure
from ..policies import policy
from ..policies.file import Expression
from .result import RankedFormula, Refined

# How long to learn: the formula is good already.
_EFFORT = 0.25
# What learning may take of the time for one formula; the rest is for measuring it as it was.
_LEARNING_SHARE = 0.7


def free_constants(tree: Tree) -> tuple[Tree, dict[str, float]]:
    """The formula with a name for each of its numbers, and their values.

    Whatever reads no variable is one number (ln(2), 1/3), and the 1 of 1/x is one, too: `r + 1/(n + 2)`
    becomes `r + a/(n + b)` with a = 1 and b = 2.
    """
    values: dict[str, float] = {}
    fresh = (letter for letter in ascii_lowercase if letter not in VARIABLES)

    def number(value: float) -> Name:
        name = next(fresh)
        values[name] = value
        return Name(name)

    def visit(node: Tree) -> Tree:
        if not variables(node):
            return number(float(evaluate_tree(node, {})))
        if not isinstance(node, Apply):
            return node
        if node.operator == "invert":
            return Apply("divide", (number(1.0), visit(node.operands[0])))
        return Apply(node.operator, tuple(visit(operand) for operand in node.operands))

    return visit(tree), values


def _refined(
    entry: RankedFormula, task: Task, announce: Callable[[str], None], *, more: int
) -> RankedFormula:
    """The entry with its constants learned as well, if it has any and that finds something better.

    more: how many are to be refined, this one included, in what is left of a time limit
    """
    tree, values = free_constants(entry.tree)
    if not values:
        return entry
    announce(f"learning the numbers of {text(tree)} ...")
    learned = learn(
        text(tree),
        task.prior,
        task.horizon,
        objective=task.objective.name,
        reference=task.reference,
        start=task.start,
        feedback=task.feedback,
        time_limit=_LEARNING_SHARE * task.time_limit.left / more if task.time_limit.given else None,
        initial=values,
        effort=_EFFORT,
        floor=False,
        seed=task.seed,
        threads=task.workers.threads,
        executor=task.workers.executor,
    )
    if learned.unbeaten is not None:
        return entry
    assert isinstance(learned.file.policy, Expression)
    # Both with the effort and seed of the task: the same method, the same problems, the same rewards.
    before = measure(task, policy(entry.formula, start=task.start), announce)
    after = measure(task, learned.policy, announce)
    if after.unbeaten:
        return entry
    return replace(entry, refined=Refined(learned.file.policy, before, after))


def refine_first(
    ranked: list[RankedFormula], count: int, task: Task, announce: Callable[[str], None]
) -> list[RankedFormula]:
    """The ranking with the numbers of the first few learned."""
    count = min(count, len(ranked))
    first = [
        _refined(entry, task, announce, more=count - place)
        for place, entry in enumerate(ranked[:count])
    ]
    return [*first, *ranked[count:]]


def best_of_all(
    task: Task, entries: list[RankedFormula], announce: Callable[[str], None], *, measured: bool
) -> tuple[Expression, Measurement | None]:
    """The best of the first and all refined ones, on problems that nothing was chosen by."""
    first, start = entries[0], task.start
    best = Expression(expression=first.formula, parameters={}, start=start)
    freed = [entry.refined for entry in entries if entry.refined is not None]
    worth: Measurement | None = None
    if first.refined is not None:
        worth = first.refined.before
    elif measured or freed:
        worth = measure(task, best.policy(best.expression), announce)
    for item in freed:
        if worth is None or item.measurement.objective < worth.objective:
            best, worth = item.content, item.measurement
    return best, worth
