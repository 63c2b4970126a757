"""Which policies of the catalogue an advice compares with, and why others are left out."""

from __future__ import annotations

from ..bayes.gittins import Gittins
from ..errors import InputError
from ..language import operators
from ..policies import CATALOGUE, IndexPolicy, Policy, policy
from ..priors import Prior
from ..priors.families import BETA

TOO_SLOW = "too slow"
# What takes so many times as long as a simple index is not simulated.
_FAR_TOO_SLOW = 50.0
# Up to this many plays the table of the Gittins index takes a second or two.
_GITTINS_PLAYS = 300


def reward_slowness(prior: Prior) -> float:
    """About how many times longer a play takes than with the rewards of other families."""
    return 100.0 if prior.family == BETA else 1.0


def slowness(item: Policy) -> float:
    """About how many times longer a play takes than with a simple index."""
    if not isinstance(item, IndexPolicy):
        return 8.0
    used = operators(item.tree)
    if "beta_quantile" in used:
        return 200.0
    return 6.0 if "kl_upper" in used else 1.0


def playable(
    prior: Prior, horizon: int, *, simulated: bool
) -> tuple[list[Policy], list[Policy], list[tuple[str, str]]]:
    """Untuned classics, references that need tables, and what is left out with the reason."""
    classics: list[Policy] = []
    references: list[Policy] = []
    skipped: list[tuple[str, str]] = []
    for name in CATALOGUE:
        if name == "optimal":
            continue  # it is the floor
        item = policy(name)
        why = _obstacle(item, prior, horizon, simulated=simulated)
        if why is not None:
            skipped.append((name, why))
        elif isinstance(item, Gittins):
            references.append(item)
        else:
            classics.append(item)
    return classics, references, skipped


def _obstacle(item: Policy, prior: Prior, horizon: int, *, simulated: bool) -> str | None:
    """Why a policy is not played, or None."""
    if isinstance(item, Gittins) and horizon > _GITTINS_PLAYS:
        return f"its table takes too long for more than {_GITTINS_PLAYS} plays"
    try:
        item.check(prior, horizon)
    except InputError as error:
        return str(error).partition(";")[0]
    if simulated and slowness(item) >= _FAR_TOO_SLOW:
        return f"{TOO_SLOW}: a play takes some {slowness(item):.0f} times as long as with others"
    if not simulated:
        by_counts = item.plan(prior, horizon).by_counts
        if isinstance(by_counts, str):
            return f"no exact value, as the others have: {by_counts}"
    return None
