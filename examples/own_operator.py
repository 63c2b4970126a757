"""An operator of your own: evaluated exactly, simulated, played live and exported like any other."""

import math

import metabandit as mb


def fade(n: float, scale: float) -> float:
    """From 1 down to 0 over about `scale` plays, slowly at first."""
    return 1.0 / (1.0 + math.pow(n / scale, 2.0))


mb.register_operator("fade", fade, meaning="1/(1 + (x/y)^2)", latex=r"\phi_{{{1}}}({0})")

if __name__ == "__main__":
    policies = ["r + fade(n, 3)", "r + fade(n, ln(t))", "ucb1-tuned"]
    exact = mb.evaluate(policies, mb.Bernoulli(), horizon=100, method="exact")
    print(exact.table())
    prior = mb.TruncatedGaussian(arms=5)
    print(mb.evaluate(policies, prior, horizon=100, episodes=5000).table())

    player = mb.policy("r + fade(n, 3)").player(arms=["red", "green"], seed=1)
    player.update(player.select(), 1)
    print(player)

    # Python gets the function as it is, JavaScript and C its translation.
    for language in ("python", "javascript", "c"):
        assert "own_fade" in mb.export("r + fade(n, 3)", language)
