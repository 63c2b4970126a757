"""From tree to program: what depends on the moment alone is split from what is done in each lane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, compiling
from ..kernels.opcodes import (
    COPY,
    EXTERNAL,
    INVERT_SQRT,
    LANE_VARIABLES,
    REDUCE,
    SCRATCH,
    STEP_VARIABLES,
    WIDTH,
)
from .bounds import as_product
from .operators import OPERATORS, Operator, polynomial_degree
from .tree import Apply, Constant, Name, Tree, operators, variables


@dataclass(frozen=True)
class Compiled:
    """A program in the form that kernels.machine.Program describes.

    `parameters` says which scalars hold the values of parameters; `bind` sets them, so that
    thousands of candidates share one program. `tree` is set if the program calls functions of this
    process: in another one it is compiled again.
    """

    lane_code: npt.NDArray[np.int32]
    step_code: npt.NDArray[np.int32]
    scalars: npt.NDArray[np.float64]
    spread: npt.NDArray[np.int32]
    constants: int
    registers: int
    uses_s: bool
    varies: bool
    parameters: tuple[tuple[str, int], ...]
    tree: Tree | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self.tree is not None:
            return _compile_here, (self.tree, self.scalars)
        return Compiled, tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def bind(self, values: Mapping[str, float]) -> Compiled:
        """The same program with values for its parameters."""
        scalars = self.scalars.copy()
        for name, place in self.parameters:
            scalars[place] = values[name]
        return replace(self, scalars=scalars)


@cache
def _compiled(operator: Operator) -> Any:
    """A person's own operator as the machine calls it, kept as long as the process."""
    from ..kernels.machine import compile_operator

    with compiling(f"the function of the operator {operator.name}"):
        return compile_operator(operator.own, operator.arity or 0)


def _address(operator: Operator) -> tuple[int, int]:
    """The last two numbers of an instruction that calls it: the halves of its address."""
    address = _compiled(operator).address
    high, low = np.array([address >> 32, address & 0xFFFFFFFF], np.uint32).view(np.int32)
    return int(high), int(low)


def _parted(tree: Apply) -> Apply:
    """sqrt(x/n) as sqrt(x) * (1/sqrt(n)) if x depends on the moment alone, as in UCB1.

    The second factor then changes only when the arm is played, which fused programs make use of.
    """
    inner = tree.operands[0]
    if tree.operator == "sqrt" and isinstance(inner, Apply) and inner.operator == "divide":
        above, below = inner.operands
        read = variables(above)
        if below == Name("n") and read & {"t", "h"} and read.isdisjoint(LANE_VARIABLES):
            root = Apply("invert", (Apply("sqrt", (below,)),))
            return Apply("multiply", (Apply("sqrt", (above,)), root))
    return tree


class _Compiler:
    """Where each value is: ~i for scalar i, else a lane variable, else the result of an instruction."""

    def __init__(self) -> None:
        self.scalars: list[float] = [0.0] * len(STEP_VARIABLES)
        # Scalars that depend on t or h.
        self.moving = {~STEP_VARIABLES.index(name) for name in STEP_VARIABLES if name != "K"}
        self.parameters: list[tuple[str, int]] = []
        self.step: list[tuple[int, ...]] = []
        # Operation, operands, and the last two numbers of the instruction.
        self.lane: list[tuple[int, list[int], tuple[int, int]]] = []
        self.known: dict[Tree, int] = {}

    def visit(self, tree: Tree) -> int:
        # Equal subtrees are computed once.
        if tree not in self.known:
            self.known[tree] = self.place(tree)
        return self.known[tree]

    def number(self, value: float) -> int:
        self.scalars.append(value)
        return ~(len(self.scalars) - 1)

    def parameter(self, name: str) -> int:
        self.parameters.append((name, len(self.scalars)))
        return self.number(np.nan)

    def instruction(self, opcode: int, operands: list[int], more: tuple[int, int]) -> int:
        self.lane.append((opcode, operands, more))
        return len(LANE_VARIABLES) + len(self.lane) - 1

    def place(self, tree: Tree) -> int:
        if isinstance(tree, Constant):
            return self.number(tree.value)
        if isinstance(tree, Name):
            if tree.name in STEP_VARIABLES:
                return ~STEP_VARIABLES.index(tree.name)
            if tree.name in LANE_VARIABLES:
                return LANE_VARIABLES.index(tree.name)
            return self.parameter(tree.name)
        if tree.operator == "polynomial":
            return self.polynomial(tree)
        tree = _parted(as_product(tree))
        operator = OPERATORS[tree.operator]
        if operator.own is None:
            opcode, more = operator.opcode, (0, 0)
        else:
            opcode, more = EXTERNAL, _address(operator)
        inner = tree.operands[0]
        if tree.operator == "invert" and isinstance(inner, Apply) and inner.operator == "sqrt":
            opcode = INVERT_SQRT  # two operations in one pass
            tree = inner
        operands = [self.visit(operand) for operand in tree.operands]
        if max(operands) >= 0:
            return self.instruction(opcode, operands, more)
        target = self.number(0.0)
        places = [*(~operand for operand in operands), 0, 0]
        self.step.append((opcode, ~target, *places[:3], *more))
        if self.moving.intersection(operands):
            self.moving.add(target)
        return target

    def polynomial(self, tree: Apply) -> int:
        degree = polynomial_degree(len(tree.operands))
        if degree is None:
            raise ValueError(f"a polynomial cannot have {len(tree.operands)} operands")
        first, *others = (self.visit(operand) for operand in tree.operands[:4])
        if first >= 0:
            raise InputError(
                "the first value of polynomial must be the same for all arms: of t, h, K and numbers"
            )
        weights = len(self.scalars)
        for operand in tree.operands[4:]:
            negative = isinstance(operand, Apply) and operand.operator == "negate"
            number = operand.operands[0] if isinstance(operand, Apply) and negative else operand
            if isinstance(number, Constant):
                self.number(-number.value if negative else number.value)
            elif isinstance(number, Name) and not negative:
                if number.name in STEP_VARIABLES + LANE_VARIABLES:
                    raise InputError(f"a weight of polynomial is a number, not {number.name}")
                self.parameter(number.name)
            else:
                raise InputError("the weights of polynomial must be numbers or parameters")
        coefficients = len(self.scalars)
        self.scalars += [0.0] * (degree + 1) ** 3
        self.step.append((REDUCE, coefficients, ~first, 0, 0, weights, degree))
        return self.instruction(OPERATORS["polynomial"].opcode, others, (coefficients, degree))

    def compile(self, tree: Tree) -> Compiled:
        result, first = self.visit(tree), len(LANE_VARIABLES)
        if result < first:
            self.instruction(COPY, [result], (0, 0))
        scalars = dict.fromkeys(
            item for _, operands, _ in self.lane for item in operands if item < 0
        )
        # Those that stay the same come first.
        spread = sorted(scalars, key=self.moving.__contains__)
        lane = []
        for position, (opcode, operands, more) in enumerate(self.lane):
            codes = [
                first + spread.index(item) if item < 0 else item + len(spread) * (item >= first)
                for item in operands
            ]
            lane.append((opcode, first + len(spread) + position, *[*codes, 0, 0][:3], *more))
        read, called = variables(tree), (OPERATORS[name] for name in operators(tree))
        return Compiled(
            lane_code=np.array(lane, np.int32).reshape(-1, WIDTH),
            step_code=np.array(self.step, np.int32).reshape(-1, WIDTH),
            scalars=np.array(self.scalars, np.float64),
            spread=np.array([~item for item in spread], np.int32),
            constants=len(set(spread) - self.moving),
            registers=len(spread) + len(self.lane) + SCRATCH,
            uses_s="s" in read,
            varies=not read.isdisjoint(("t", "h")),
            parameters=tuple(self.parameters),
            tree=tree if any(operator.own is not None for operator in called) else None,
        )


@lru_cache(maxsize=256)
def compile_expression(tree: Tree) -> Compiled:
    """The program of an expression; its parameters must be bound before it is run."""
    return _Compiler().compile(tree)


def _compile_here(tree: Tree, scalars: npt.NDArray[np.float64]) -> Compiled:
    return replace(compile_expression(tree), scalars=scalars)
