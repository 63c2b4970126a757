"""Designs of trials: every policy, equal allocation, and constrained randomised dynamic programming."""

from __future__ import annotations

from ..errors import InputError
from ..policies import ConstrainedPolicy, IndexPolicy, Policy, Start, policy
from ..policies.start import FREE
from ..settings import check_keys, read_number, read_settings

EQUAL, CONSTRAINED = "equal", "crdp"


def design(given: str | Policy) -> Policy:
    """Read a design: a policy, `equal`, or `crdp:degree=0.9,minimum=10,penalty=75`.

    `equal` gives the next patient to an arm with the fewest, ties at random, so that arms differ by one
    patient at most.
    """
    if not isinstance(given, str):
        return policy(given)
    name = given.partition(":")[0].strip()
    if name not in (EQUAL, CONSTRAINED):
        return policy(given)
    settings = read_settings(given, "design")[1]
    known = ("degree", "minimum", "penalty") if name == CONSTRAINED else ()
    check_keys(settings, known, f"the design {name}")
    if name == EQUAL:
        return IndexPolicy("-n", start=Start(FREE), name=EQUAL)
    numbers = {key: read_number(value, f"{key} of {name}") for key, value in settings.items()}
    minimum = numbers.pop("minimum", 0.0)
    if minimum != int(minimum):
        raise InputError(f"the minimum of {name} is a whole number of patients, not {minimum:g}")
    return ConstrainedPolicy(minimum=int(minimum), name=given, **numbers)
