"""Which policies of the catalogue an advice compares with, and why others are left out."""

from __future__ import annotations

from ..engine import costs, states
from ..errors import InputError
from ..policies import CATALOGUE, Policy, policy
from ..priors import Prior

TOO_SLOW = "too slow"
# What takes so many times as long as a simple index is not simulated.
_FAR_TOO_SLOW = 50.0
# Up to this many plays the table of the Gittins index takes a second or two.
_GITTINS_PLAYS = 300


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
        elif item.reads_prior:
            references.append(item)
        else:
            classics.append(item)
    return classics, references, skipped


def _obstacle(item: Policy, prior: Prior, horizon: int, *, simulated: bool) -> str | None:
    """Why a policy is not played, or None."""
    if item.reads_prior and horizon > _GITTINS_PLAYS:
        return f"its table takes too long for more than {_GITTINS_PLAYS} plays"
    try:
        item.check(prior, horizon)
    except InputError as error:
        return str(error).partition(";")[0]
    if simulated and costs.slowness(item) >= _FAR_TOO_SLOW:
        return (
            f"{TOO_SLOW}: a play takes some {costs.slowness(item):.0f} times as long as with others"
        )
    if not simulated:
        why = states.obstacle(item.plan(prior, horizon), prior.arms)
        if why is not None:
            return f"no exact value, as the others have: {why}"
    return None
