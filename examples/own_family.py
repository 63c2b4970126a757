"""A reward family of your own: most visitors buy nothing, the others an exponential amount.

A family is the inverse distribution function of a reward, `quantile(u, first, second)`, which is
compiled once, and its mean. A person's own prior then draws the parameters.
"""

import math

import numpy as np

import metabandit as mb


def purchase(u: float, rate: float, amount: float) -> float:
    """What a visitor spends: 0 with probability 1 - rate, else exponential with mean `amount`."""
    if u <= 1.0 - rate:
        return 0.0
    return -amount * math.log((1.0 - u) / rate)


def mean(parameters: np.ndarray) -> np.ndarray:
    return parameters[..., 0] * parameters[..., 1]


PURCHASES = mb.Family("purchases", ("rate", "amount"), purchase, mean, support=(0.0, math.inf))


class Shops(mb.Prior):
    family = PURCHASES
    arms = 3

    def draw(self, rng: np.random.Generator, problems: int) -> np.ndarray:
        shape = (problems, self.arms)
        return np.stack([rng.uniform(0.1, 0.5, shape), rng.uniform(0.5, 2.0, shape)], axis=-1)


if __name__ == "__main__":
    policies = ["ucb1", "greedy", "r + s/sqrt(n)", "thompson:sigma=0.7"]
    print(mb.evaluate(policies, Shops(), horizon=300, episodes=20_000, seed=1).table())
