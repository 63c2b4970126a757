"""River's policies and ours, in both directions: on the same problems, and in river's own loop."""

from river import bandit, proba

import metabandit as mb
from metabandit.adapters.river import RiverPolicy, evaluate_river

if __name__ == "__main__":
    # 1. River's policies on our problems: all meet the same arms and the same luck.
    policies = [
        bandit.UCB(delta=1),
        bandit.ThompsonSampling(proba.Beta()),
        bandit.EpsilonGreedy(epsilon=0.1),
        "ucb1",
        "r + 3/(n + 2)",
    ]
    print(evaluate_river(policies, mb.Bernoulli(arms=2), horizon=100, episodes=300).table())

    # 2. Our policy in river's code: arms may come and go.
    policy = RiverPolicy("r + 3/(n + 2)", seed=1)
    clicks = {"red": 0.2, "green": 0.4, "blue": 0.6}
    luck = mb.policy("uniform").player(arms=1000, seed=2)
    for play in range(300):
        arm = policy.pull(["red", "green"] if play < 100 else list(clicks))
        policy.update(arm, int(luck.select()) < 1000 * clicks[arm])
    print(policy)
