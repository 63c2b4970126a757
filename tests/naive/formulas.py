"""All formulas, their classes, and the search among them, one formula at a time."""

from __future__ import annotations

import itertools
import math

import numpy as np

from metabandit.language import Apply, Constant, Name, Tree
from tests.naive.language import apply, value


def all_formulas(grammar, longest: int) -> list[list[Tree]]:
    """Every formula of length 1, 2, ..., as trees."""
    made: list[list[Tree]] = [[], list(grammar.atoms)]
    for length in range(2, longest + 1):
        trees: list[Tree] = [
            Apply(name, (inner,)) for name in grammar.unary for inner in made[length - 1]
        ]
        for left in range(1, length - 1):
            pairs = itertools.product(grammar.binary, made[left], made[length - 1 - left])
            trees += [Apply(name, (one, two)) for name, one, two in pairs]
        made.append(trees)
    return made[1:]


def sampled_values(tree: Tree, values: dict[str, np.ndarray], known: dict) -> np.ndarray | None:
    """The values of a formula on sample points, None if any of its parts is not finite."""
    if tree not in known:
        if isinstance(tree, Name):
            found = values[tree.name]
        elif isinstance(tree, Constant):
            found = np.full(values["r"].shape, tree.value)
        else:
            parts = [sampled_values(operand, values, known) for operand in tree.operands]
            found = None
            if all(part is not None for part in parts):
                flat = zip(*(part.ravel().tolist() for part in parts), strict=True)
                numbers = [apply(tree.operator, list(point)) for point in flat]
                found = np.array(numbers).reshape(values["r"].shape)
        finite = found is not None and np.isfinite(found).all()
        known[tree] = found if finite else None
    return known[tree]


def ranks(found: np.ndarray, tolerance: float) -> bytes:
    """How the values order the arms of every group: the sign of every difference, 0 for ties."""
    signs = []
    for one, two in itertools.combinations(found, 2):
        slack = tolerance * np.maximum(np.abs(one), np.abs(two))
        signs.append(np.where(one - two > slack, 1, 0) - np.where(two - one > slack, 1, 0))
    return np.array(signs, np.int8).tobytes()


def choices(tree: Tree, horizon: int) -> frozenset | None:
    """What a formula chooses in every state that its play of two Bernoulli arms reaches, each played once."""
    seen, found = set(), set()
    states = [((1, one), (1, two)) for one in (0, 1) for two in (0, 1)]
    while states:
        state = states.pop()
        made = sum(n for n, _ in state)
        if made == horizon or state in seen:
            continue
        seen.add(state)
        index = []
        for n, wins in state:
            r = wins / n
            s = math.sqrt(max(r - r * r, 0.0))
            index.append(value(tree, {"r": r, "s": s, "n": n, "t": made}))
        if not all(map(math.isfinite, index)):
            return None
        slack = 1e-11 * max(map(abs, index))
        best = tuple(item >= max(index) - slack for item in index)
        found.add((state, best))
        for arm in (0, 1):
            if best[arm]:
                n, wins = state[arm]
                for reward in (0, 1):
                    after = list(state)
                    after[arm] = (n + 1, wins + reward)
                    states.append(tuple(after))
    return frozenset(found)


def ucb1_tuned_pulls(rewards, pulls: int) -> list[int]:
    """How often UCB1-Tuned pulls each arm, whose rewards come from rewards(arm, number)."""
    arms = rewards.arms
    history = [[rewards(arm, 0)] for arm in range(arms)]
    for t in range(arms, pulls):
        best, chosen = -math.inf, 0
        for arm in range(arms):
            n, mean = len(history[arm]), sum(history[arm]) / len(history[arm])
            variance = max(sum(x * x for x in history[arm]) / n - mean * mean, 0.0)
            width = min(0.25, variance + math.sqrt(2.0 * math.log(t) / n))
            index = mean + math.sqrt(math.log(t) / n * width)
            if index > best:
                best, chosen = index, arm
        history[chosen].append(rewards(chosen, len(history[chosen])))
    return [len(item) for item in history]
