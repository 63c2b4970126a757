"""What a policy is wanted for: the problems, the plays, and what to be good at."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from ..policies import Optimum, Policy
from ..priors import Prior
from .objectives import Objective


def stream(seed: int, *path: int) -> int:
    """A seed that depends on the run's seed and on where it is used."""
    state = np.random.SeedSequence((seed, *path)).generate_state(2, np.uint32)
    return (int(state[0]) << 31 ^ int(state[1])) % 2**62


@dataclass(frozen=True, kw_only=True)
class Aim:
    """What is asked, and with which seed and how many threads; the floor, where it is known."""

    prior: Prior
    horizon: int
    objective: Objective
    reference: Policy | None
    seed: int
    threads: int
    floor: Optimum | None = None


def versions() -> dict[str, str]:
    """What a policy was learned with."""
    packages = ("metabandit", "cmaes", "numba", "numpy", "scipy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
