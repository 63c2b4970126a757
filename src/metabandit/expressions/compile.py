"""From tree to program: what depends on the moment alone is split from what is done in each lane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..kernels.opcodes import COPY, LANE_VARIABLES, SCRATCH, STEP_VARIABLES
from .operators import OPERATORS
from .tree import Apply, Constant, Name, Tree


@dataclass(frozen=True)
class Compiled:
    """A program in the form that kernels.machine.Program describes."""

    lane_code: npt.NDArray[np.int32]
    step_code: npt.NDArray[np.int32]
    scalars: npt.NDArray[np.float64]
    spread: npt.NDArray[np.int32]
    constants: int
    registers: int
    uses_s: bool
    varies: bool


@dataclass
class _Value:
    """Where a subtree's value is: a scalar number, or a lane operand once it is in a row."""

    scalar: bool
    where: int
    moment: bool  # depends on t or h


class _Compiler:
    def __init__(self) -> None:
        self.scalars: list[float] = [0.0] * len(STEP_VARIABLES)
        self.step: list[tuple[int, ...]] = []
        self.lane: list[tuple[int, list[_Value]]] = []
        self.known: dict[Tree, _Value] = {}
        self.uses_s = False

    def visit(self, tree: Tree) -> _Value:
        # Equal subtrees are computed once.
        if tree not in self.known:
            self.known[tree] = self.place(tree)
        return self.known[tree]

    def place(self, tree: Tree) -> _Value:
        if isinstance(tree, Constant):
            self.scalars.append(tree.value)
            return _Value(True, len(self.scalars) - 1, False)
        if isinstance(tree, Name):
            if tree.name in STEP_VARIABLES:
                return _Value(True, STEP_VARIABLES.index(tree.name), tree.name != "K")
            if tree.name not in LANE_VARIABLES:
                raise ValueError(f"the parameter {tree.name!r} has no value")
            self.uses_s |= tree.name == "s"
            return _Value(False, LANE_VARIABLES.index(tree.name), False)
        if tree.operator == "power" and tree.operands[1] == Constant(2.0):
            # A square is a product, also of negative numbers.
            tree = Apply("multiply", (tree.operands[0], tree.operands[0]))
        operands = [self.visit(operand) for operand in tree.operands]
        opcode = OPERATORS[tree.operator].opcode
        if all(operand.scalar for operand in operands):
            self.scalars.append(0.0)
            target = len(self.scalars) - 1
            places = [operand.where for operand in operands] + [0, 0]
            self.step.append((opcode, target, *places[:3]))
            return _Value(True, target, any(operand.moment for operand in operands))
        self.lane.append((opcode, operands))
        return _Value(False, -len(self.lane), False)

    def finish(self, result: _Value) -> Compiled:
        if result.scalar or result.where >= 0:
            self.lane.append((COPY, [result]))
        spread = {
            operand.where: operand.moment
            for _, operands in self.lane
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
        for position, (opcode, operands) in enumerate(self.lane):
            codes = [operand_code(operand) for operand in operands] + [0, 0]
            lane.append((opcode, first + len(rows) + position, *codes[:3]))
        return Compiled(
            lane_code=np.array(lane, np.int32).reshape(-1, 5),
            step_code=np.array(self.step, np.int32).reshape(-1, 5),
            scalars=np.array(self.scalars, np.float64),
            spread=np.array([*fixed, *moving], np.int32),
            constants=len(fixed),
            registers=len(rows) + len(self.lane) + SCRATCH,
            uses_s=self.uses_s,
            varies=bool(moving),
        )


def compile_expression(tree: Tree) -> Compiled:
    """The program of an expression whose parameters all have values."""
    compiler = _Compiler()
    return compiler.finish(compiler.visit(tree))
