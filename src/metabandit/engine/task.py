"""What a policy is wanted for: the problems, the plays, what to be good at; and how it is asked."""

from __future__ import annotations

import platform
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from ..bayes.optimum import Optimum
from ..errors import InputError
from ..policies import Policy, policy
from ..priors import Prior, check_prior
from ..settings import check_horizon, check_whole, read_number
from ..workers import Pending, Workers, make_workers
from .objectives import Objective, read_objective


def stream(seed: int, *path: int) -> int:
    """A seed that depends on the run's seed and on where it is used."""
    state = np.random.SeedSequence((seed, *path)).generate_state(2, np.uint32)
    return (int(state[0]) << 31 ^ int(state[1])) % 2**62


class Floor:
    """What the Bayes-optimal policy has: known, or still being computed by a worker."""

    def __init__(self, known: Optimum | None, asked: Pending | None = None) -> None:
        self.known = known
        self.asked = asked

    def now(self) -> Optimum | None:
        """If it is there."""
        if self.asked is not None and not self.asked.done():
            return None
        return self.wait()

    def wait(self) -> Optimum | None:
        """As soon as it is there; None if no memory is large enough."""
        if self.asked is not None:
            asked, self.asked = self.asked, None
            with suppress(InputError):
                self.known = asked.result()
        return self.known


@dataclass(frozen=True, kw_only=True)
class Aim:
    """What is asked, with which seed, and who does the work; the floor, if it is wanted."""

    prior: Prior
    horizon: int
    objective: Objective
    reference: Policy | None
    seed: int
    workers: Workers
    floor: Floor | None = None

    def least(self) -> Optimum | None:
        """What the Bayes-optimal policy has, if it is wanted and can be had."""
        return None if self.floor is None else self.floor.wait()


def make_aim(
    prior: Prior,
    horizon: int,
    *,
    objective: str,
    reference: str | Policy | None,
    seed: int,
    threads: int | None,
    executor: Executor | None,
) -> Aim:
    """Check what is asked."""
    aim = Aim(
        prior=check_prior(prior),
        horizon=check_horizon(horizon),
        objective=read_objective(objective, reference=reference),
        reference=None if reference is None else policy(reference),
        seed=check_whole(seed, "the seed", 0),
        workers=make_workers(threads, executor),
    )
    if aim.reference is not None:
        aim.reference.check(prior, aim.horizon)
    return aim


def check_effort(effort: float) -> float:
    """A positive number."""
    effort = read_number(effort, "the effort")
    if effort <= 0.0:
        raise InputError(f"the effort must be greater than 0, not {effort:g}")
    return effort


def check_time_limit(limit: float | None) -> float | None:
    """A number of seconds, or None."""
    if limit is not None:
        limit = read_number(limit, "the time limit")
        if limit <= 0.0:
            raise InputError(f"the time limit must be greater than 0 seconds, not {limit:g}")
    return limit


def silent(message: str) -> None:
    """Say nothing: what stands in for `announce`."""


def versions() -> dict[str, str]:
    """What a policy was learned with."""
    packages = ("metabandit", "cmaes", "numba", "numpy", "scipy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
