"""How much work goes into a reproduction."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """The budgets of a reproduction.

    generations, protocol: of the EDA
    length, pulls: of the search for formulas
    problems, runs: of a test
    effort: of our own learners
    screening: problems on which classes are compared with the generic policies, round by round
    patient: whether what takes minutes is done: exact values and Gittins indices for T = 1000
    """

    generations: int
    protocol: str
    length: int
    pulls: int
    problems: int
    runs: int
    effort: float
    screening: tuple[int, ...]
    patient: bool


SCALES = {
    "quick": Scale(
        generations=8,
        protocol="paper:problems=100,runs=10",
        length=5,
        pulls=100_000,
        problems=1000,
        runs=10,
        effort=0.02,
        screening=(256, 4096),
        patient=False,
    ),
    "paper": Scale(
        generations=100,
        protocol="paper",
        length=7,
        pulls=10_000_000,
        problems=10_000,
        runs=100,
        effort=1.0,
        screening=(128, 1024, 8192, 65_536),
        patient=True,
    ),
}
