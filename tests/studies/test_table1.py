"""Table 1 of the paper and exact values, at small scale (`metabandit reproduce`: at full scale)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import metabandit as mb
from metabandit.studies.maes2012.paper import NOTES, PRIORS, half_digit, table1
from tests.tiers import some

REFERENCE = Path(__file__).parents[1] / "reference"

EXACT = {
    "UCB1 C=2": "ucb1:C=2",
    "UCB1-Tuned": "ucb1-tuned",
    "UCB-V c=1 zeta=1": "ucb-v:c=1,zeta=1",
    "KL-UCB c=0": "kl-ucb:c=0",
    "eps_n-greedy c=1 d=1": "eps_n-greedy:c=1,d=1",
    "greedy (index r)": "greedy",
}


def rows(name):
    with open(REFERENCE / name, encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("horizon", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_exact_values(horizon):
    """Within three standard errors of the Bayes regret computed without noise."""
    exact = {
        EXACT.get(row["policy"], row["policy"]): float(row["bayes_regret"])
        for row in rows("exact_values.csv")
        if int(row["horizon"]) == horizon and not row["policy"].startswith("Bayes-optimal")
    }
    result = mb.evaluate(list(exact), mb.Bernoulli(), horizon, episodes=1_000_000, seed=1)
    for evaluation in result:
        distance = abs(evaluation.mean_regret - exact[evaluation.policy])
        assert distance < 3 * evaluation.standard_error, evaluation


@pytest.mark.parametrize("family", ["bernoulli", "gaussian"])
@pytest.mark.parametrize(
    ("horizon", "episodes"),
    [(10, some(100_000, 200_000)), pytest.param(100, 100_000, marks=pytest.mark.slow)],
)
def test_rows_that_can_be_played(family, horizon, episodes):
    """Within 3 % of the table, and three standard errors on top for the smaller sample."""
    prior = mb.prior(PRIORS[family], arms=2)
    table = {
        row.text: row
        for row in table1()
        if row.text is not None and (row.text, family, horizon) not in NOTES
    }
    assert len(table) > 20
    result = mb.evaluate(list(table), prior, horizon, episodes=episodes, seed=2)
    for evaluation in result:
        row = table[evaluation.policy]
        expected = row.paper[family, horizon]
        # The table is itself a sample of 10,000 problems, and rounded.
        slack = 0.03 * expected + 3 * evaluation.standard_error + half_digit(expected)
        assert abs(evaluation.mean_regret - expected) < slack, (evaluation, expected)
