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
from .operators import OPERATORS, Operator, polynomial_degree
from .tree import Apply, Constant, Name, Tree, operators


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


@dataclass
class _Value:
    """Where a subtree's value is: a scalar number, or a lane operand once it is in a row."""

    scalar: bool
    where: int
    moment: bool  # depends on t or h


class _Compiler:
    def __init__(self) -> None:
        self.scalars: list[float] = [0.0] * len(STEP_VARIABLES)
        self.parameters: list[tuple[str, int]] = []
        self.step: list[tuple[int, ...]] = []
        # Operation, operands, and the last two numbers of the instruction.
        self.lane: list[tuple[int, list[_Value], tuple[int, int]]] = []
        self.known: dict[Tree, _Value] = {}
        self.uses_s = False
        self.varies = False

    def visit(self, tree: Tree) -> _Value:
        # Equal subtrees are computed once.
        if tree not in self.known:
            self.known[tree] = self.place(tree)
        return self.known[tree]

    def number(self, value: float) -> int:
        self.scalars.append(value)
        return len(self.scalars) - 1

    def place(self, tree: Tree) -> _Value:
        if isinstance(tree, Constant):
            return _Value(True, self.number(tree.value), False)
        if isinstance(tree, Name):
            if tree.name in STEP_VARIABLES:
                return _Value(True, STEP_VARIABLES.index(tree.name), tree.name != "K")
            if tree.name in LANE_VARIABLES:
                self.uses_s |= tree.name == "s"
                return _Value(False, LANE_VARIABLES.index(tree.name), False)
            where = self.number(np.nan)
            self.parameters.append((tree.name, where))
            return _Value(True, where, False)
        if tree.operator == "polynomial":
            return self.polynomial(tree)
        if tree.operator == "power" and tree.operands[1] == Constant(2.0):
            # A square is a product, also of negative numbers.
            tree = Apply("multiply", (tree.operands[0], tree.operands[0]))
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
        if all(operand.scalar for operand in operands):
            target = self.number(0.0)
            places = [operand.where for operand in operands] + [0, 0]
            self.step.append((opcode, target, *places[:3], *more))
            return _Value(True, target, any(operand.moment for operand in operands))
        self.lane.append((opcode, operands, more))
        return _Value(False, -len(self.lane), False)

    def polynomial(self, tree: Apply) -> _Value:
        degree = polynomial_degree(len(tree.operands))
        if degree is None:
            raise ValueError(f"a polynomial cannot have {len(tree.operands)} operands")
        first, *others = (self.visit(operand) for operand in tree.operands[:4])
        if not first.scalar:
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
                self.parameters.append((number.name, self.number(np.nan)))
            else:
                raise InputError("the weights of polynomial must be numbers or parameters")
        coefficients = len(self.scalars)
        self.scalars += [0.0] * (degree + 1) ** 3
        self.step.append((REDUCE, coefficients, first.where, 0, 0, weights, degree))
        self.varies |= first.moment
        self.lane.append((OPERATORS["polynomial"].opcode, others, (coefficients, degree)))
        return _Value(False, -len(self.lane), False)

    def finish(self, result: _Value) -> Compiled:
        if result.scalar or result.where >= 0:
            self.lane.append((COPY, [result], (0, 0)))
        spread = {
            operand.where: operand.moment
            for _, operands, _ in self.lane
            for operand in operands
            if operand.scalar
        }
        fixed = [scalar for scalar, moment in spread.items() if not moment]
        moving = [scalar for scalar, moment in spread.items() if moment]
        rows = {scalar: row for row, scalar in enumerate([*fixed, *moving])}
        first = len(LANE_VARIABLES)

        def operand_code(value: _Value) -> int:
            if value.scalar:
                return first + rows[value.where]
            if value.where >= 0:
                return value.where
            return first + len(rows) + (-value.where - 1)

        lane = []
        for position, (opcode, operands, more) in enumerate(self.lane):
            codes = [operand_code(operand) for operand in operands] + [0, 0]
            lane.append((opcode, first + len(rows) + position, *codes[:3], *more))
        return Compiled(
            lane_code=np.array(lane, np.int32).reshape(-1, WIDTH),
            step_code=np.array(self.step, np.int32).reshape(-1, WIDTH),
            scalars=np.array(self.scalars, np.float64),
            spread=np.array([*fixed, *moving], np.int32),
            constants=len(fixed),
            registers=len(rows) + len(self.lane) + SCRATCH,
            uses_s=self.uses_s,
            varies=self.varies or bool(moving),
            parameters=tuple(self.parameters),
        )


@lru_cache(maxsize=256)
def compile_expression(tree: Tree) -> Compiled:
    """The program of an expression; its parameters must be bound before it is run."""
    compiler = _Compiler()
    compiled = compiler.finish(compiler.visit(tree))
    own = any(OPERATORS[name].own is not None for name in operators(tree))
    return replace(compiled, tree=tree) if own else compiled


def _compile_here(tree: Tree, scalars: npt.NDArray[np.float64]) -> Compiled:
    return replace(compile_expression(tree), scalars=scalars)
