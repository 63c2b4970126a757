"""A prior of your own: variants of one page, whose conversion rates are alike.

A prior is a class with a family, a number of arms, and `draw`: parameters for many problems at
once, as an array [problem, arm, parameter].
"""

import numpy as np

import metabandit as mb


class SimilarVariants(mb.Prior):
    """Conversion rates around a base rate of the page, which differs from page to page."""

    family = mb.BERNOULLI

    def __init__(self, arms: int, closeness: float) -> None:
        self.arms = arms
        self.closeness = closeness

    def draw(self, rng: np.random.Generator, problems: int) -> np.ndarray:
        base = rng.beta(2.0, 30.0, (problems, 1))
        rates = rng.beta(self.closeness * base, self.closeness * (1 - base), (problems, self.arms))
        return rates[..., None]

    def __str__(self) -> str:
        return f"similar variants, closeness {self.closeness:g}"


if __name__ == "__main__":
    prior = SimilarVariants(arms=4, closeness=100.0)
    policies = ["ucb1", "ucb1-tuned", "thompson", "thompson:a=2,b=30", "r + 1/(n + 20)"]
    print(mb.evaluate(policies, prior, horizon=500, episodes=20_000, seed=1).table())
