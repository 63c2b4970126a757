"""What the paper reports: its two tables, and the figures of its text."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

HORIZONS = (10, 100, 1000)
FAMILIES = ("bernoulli", "gaussian")
# How the table's columns come about: its Gaussian regret is counted against the parent's mean.
PRIORS = {"bernoulli": "bernoulli", "gaussian": "truncated-gaussian:regret=parent"}
TRUE_GAUSSIAN = "truncated-gaussian"
# The problems that the table's figures come from.
TEST_PROBLEMS = 10_000

# By length 7, from its section on learning symbolic policies.
COUNTS = {"formulas": 33_500_000, "invalid": 9_500_000, "classes": 99_020}
# Formula classes that beat every generic policy, by horizon ("about").
BETTER = {100: 50, 1000: 80}
# How many times sooner the bandit search is done than evaluating every class equally.
SOONER = (100, 1000)
# Seconds that learning took, and the cores (1.9 GHz) that it took them on.
SECONDS = {
    ("power-1", 100): (3600, 10),
    ("power-1", 1000): (36_000, 10),
    ("formulas", 100): (22 * 60, 1),
    ("formulas", 1000): (3 * 3600, 1),
}


@dataclass(frozen=True)
class Row:
    """A row of Table 1.

    policy, category: as printed; training: the horizon that it was tuned or learned for
    parameters: as printed; `text` is the policy with them, None where the paper does not print them
    regret: by family and horizon
    """

    policy: str
    category: str
    training: int | None
    parameters: str
    regret: Mapping[tuple[str, int], float]

    @property
    def text(self) -> str | None:
        if self.category == "learned numerical":
            return None
        if self.category == "learned symbolic":
            return self.parameters
        settings = ",".join(self.parameters.split())
        return f"{self.policy.lower()}:{settings}" if settings else self.policy.lower()

    def digit(self, family: str, horizon: int) -> float:
        """Half a unit of the last digit that is printed: three digits, two for less than 1."""
        value = self.regret[family, horizon]
        if value < 10.0:
            return 0.005
        return 0.05


def _read(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def table1() -> tuple[Row, ...]:
    """Table 1: regret of untuned, tuned and learned policies."""
    return tuple(
        Row(
            policy=row["policy"],
            category=row["category"],
            training=int(row["training_horizon"]) if row["training_horizon"] else None,
            parameters=row["parameters"],
            regret={
                (family, horizon): float(row[f"{family}_{horizon}"])
                for family in FAMILIES
                for horizon in HORIZONS
            },
        )
        for row in _read("table1.csv")
    )


@cache
def table2() -> dict[tuple[str, int], float]:
    """Table 2: percent of problems won against UCB1-Tuned, by policy and horizon."""
    return {
        (row["policy"], horizon): float(row[f"wins_percent_{horizon}"])
        for row in _read("table2.csv")
        for horizon in HORIZONS
    }


_NEGATIVE_C = (
    "the table's figure is of other problems than most of its rows: those differ from ours alike, as rows that play the same problems do (see "
    "the next table); the rows with c < 0 do not, nor does UCB2 with alpha = 0.000749, which up to T = 100 plays as alpha = 0.001 and yet has 3 to 4 % "
    "more in the table. How these problems were drawn we cannot tell: from 10,000 like the others the distance would be 3 to 6 standard errors up "
    "to T = 100; and 0.73 for Bernoulli arms at T = 10 is less than any c has (0.742, exactly). With c = 0 and c = 3 the table agrees"
)
_SHIFTED = "most rows of this column are about 2 % below the table's, whose problems are other ones (see the next table); what is left is noise"
_SAME_EPOCHS = "the table contradicts itself: up to T = 100 its epochs are those of alpha = 0.001, for which it has 1.28 and 7.90"
# What is known of cells that may differ by more than 3 %, by policy, family and horizon.
NOTES: dict[tuple[str, str, int], str] = {
    ("ucb1-normal", "bernoulli", 10): (
        "up to T = 10 it plays the arms in turn, which costs exactly 10/6 = 1.667"
    ),
    ("r + 1/(n + 1/2)", "bernoulli", 100): (
        "the exact regret is 1.921: the table's 1.85 is out of reach of this formula"
    ),
    ("sqrt(n) * (r - 1/2)", "bernoulli", 1000): (
        "not explained; its ties matter: the index is 0 for every arm with mean 1/2. At random they give 14.11, in favour of the arm "
        "with more plays 14.38, of the other 13.88 (exactly, by adding or subtracting n/1000000000)"
    ),
    ("r + 1/(n + 1/2)", "bernoulli", 1000): (
        "not explained; as at T = 100 the row does not fit this formula: it has less regret there and more here"
    ),
    ("ucb-v:c=1.542,zeta=0.0631", "gaussian", 10): (
        "a misprint, it seems: 1.01 is the figure of the next row, where it agrees; here it is 14 standard errors away, while this policy agrees "
        "at T = 100 and 1000 and on Bernoulli arms"
    ),
    **{("ucb2:alpha=0.000749", "gaussian", horizon): _SAME_EPOCHS for horizon in (10, 100)},
    **{
        (f"kl-ucb:c={c}", "gaussian", horizon): _SHIFTED if horizon == 1000 else _NEGATIVE_C
        for c in ("-1.21", "-1.82", "-1.84")
        for horizon in HORIZONS
    },
    **{
        (f"kl-ucb:c={c}", "bernoulli", 10): "the exact regret is 0.745"
        for c in ("-1.21", "-1.82", "-1.84")
    },
}
