"""Policies of your own: an expression, an entry of the catalogue, and a rule that is no index."""

import metabandit as mb

# 1. Any expression of r, s, n, w, t, h and K is a policy, with parameters if you like.
shrinking = mb.IndexPolicy("r + a * sqrt(h/(t + h))/n", parameters={"a": 0.8}, name="shrinking")

# 2. In the catalogue it has a name, defaults and rules, on equal terms with the others.
mb.register(
    mb.Entry(
        "optimist",
        formula="r + a/(n + b)",
        source="this example",
        parameters=(mb.Parameter("a", 1.0, above=0.0), mb.Parameter("b", 0.5, above=0.0)),
    )
)


# 3. A rule that is no index: try the arms in turn for a while, then stay with the best.
def explore_then_commit(n, r, s, t, h, u):  # type: ignore[no-untyped-def]
    if t < 0.1 * (t + h):
        return int(t) % len(n)
    return r.argmax()


if __name__ == "__main__":
    commit = mb.ChoicePolicy("explore-then-commit", explore_then_commit)
    policies = [shrinking, "optimist", "optimist:a=3,b=2", commit, "ucb1-tuned", "thompson"]
    prior = mb.Bernoulli(arms=3)
    print(mb.evaluate(policies, prior, horizon=200, episodes=20_000, seed=1).table())
