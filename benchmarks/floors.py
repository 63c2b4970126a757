"""How close lower bounds on regret are: beside the optimum where it can be computed, and where it cannot.

    python benchmarks/floors.py [--quick]

Prints one line per setting as soon as it is there: the bound, its standard error, the optimum or else the regret
of the index policy on which the bound rests, their ratio, and the seconds of the bound. --quick leaves out
1000 plays.
"""

from __future__ import annotations

import argparse

import metabandit as mb

PRIORS = [(1.0, 1.0), (1.0, 9.0), (3.0, 90.0), (5.0, 5.0), (0.5, 0.5)]
SOLVED = [(3, 50), (2, 100), (3, 100), (2, 1000)]
BEYOND: list[tuple[mb.Prior, int]] = [
    (mb.Bernoulli(10), 200),
    (mb.Bernoulli(50), 200),
    (mb.Gaussian(10), 200),
    (mb.Bernoulli(10), 1000),
]


def line(prior: mb.Prior, horizon: int, above: str) -> str:
    """The bound for a setting, beside the optimum or the index policy."""
    bound = mb.lower_bound(prior, horizon, progress=False)
    other = (
        mb.optimal(prior, horizon, progress=False).regret
        if above == "optimum"
        else bound.policy_regret
    )
    assert other is not None
    return (
        f"{prior.arms:3d} arms, {horizon:4d} plays, {prior!s:32}  {bound.regret:8.4f} ± {bound.standard_error:.4f}  "
        f"{above} {other:8.4f}  ratio {bound.regret / other:.4f}  {bound.seconds:5.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    # What is compiled first is not measured.
    for small in (mb.Bernoulli(3), mb.Gaussian(3)):
        mb.lower_bound(small, 10, effort=0.01, progress=False)
    for arms, horizon in SOLVED:
        for alpha, beta in PRIORS:
            if not (quick and horizon >= 1000):
                print(
                    line(mb.Bernoulli(arms, alpha=alpha, beta=beta), horizon, "optimum"), flush=True
                )
    for prior, horizon in BEYOND:
        if not (quick and horizon >= 1000):
            print(line(prior, horizon, "index policy"), flush=True)


if __name__ == "__main__":
    main()
