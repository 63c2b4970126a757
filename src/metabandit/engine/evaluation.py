"""`evaluate`: the regret of policies on a prior, exactly or by simulation, and the floor under it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..bayes.optimum import Optimum, check_solvable, has_optimum, optimal, optimum_seconds
from ..checkpoint import Checkpoint
from ..errors import InputError, nearest
from ..files import check_new
from ..policies import IndexPolicy, Plan, Policy, Progress, Start, policy
from ..priors import Prior, Table, check_prior
from ..settings import check_horizon, check_seed, check_whole
from ..workers import Workers, make_workers, stamp
from . import exact, simulated
from .results import EXACT, MONTE_CARLO, Comparison, Evaluation

AUTO = "auto"
METHODS = (AUTO, EXACT, MONTE_CARLO)
_EPISODES = 100_000
# Episodes after which the standard error of a typical policy is 0.1 % of its regret.
_EPISODES_FOR_COMPARISON = 1_000_000
# The floor is added where it takes less than about a second.
_FLOOR_SECONDS = 1.0


def default_checkpoints(horizon: int, count: int = 24) -> list[int]:
    """Numbers of plays at which regret is looked at: spread evenly in the logarithm."""
    points = np.geomspace(1, horizon, count).round().astype(int)
    return sorted({int(point) for point in points} | {horizon})


def _check_method(method: str, *, asked: bool) -> None:
    """`asked` is whether numbers were given that only a simulation has."""
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; {nearest(str(method), METHODS)}")
    if method == EXACT and asked:
        raise InputError(
            "episodes, runs, luck and keep_plays are for the method monte-carlo; exact evaluation has none, so "
            "leave them out"
        )


def _pick_method(
    method: str, plans: Sequence[tuple[Policy, Plan]], prior: Prior, horizon: int, *, asked: bool
) -> str:
    if method == MONTE_CARLO or (method == AUTO and asked):
        return MONTE_CARLO
    obstacle = exact.obstacle(prior, plans, horizon)
    if method == EXACT:
        if obstacle is not None:
            raise InputError(f"{obstacle}; use the method monte-carlo")
        return EXACT
    simulation = _EPISODES_FOR_COMPARISON * horizon * prior.arms / 6e8
    cheaper = obstacle is None and exact.cost(prior, horizon) <= simulation
    return EXACT if cheaper else MONTE_CARLO


def read_points(checkpoints: Sequence[int] | None, horizon: int) -> list[int]:
    """The checkpoints in order, the horizon among them."""
    if checkpoints is None or len(checkpoints) == 0:
        return default_checkpoints(horizon)
    points = sorted({check_whole(point, "a checkpoint", -(2**62)) for point in checkpoints})
    if points[0] < 1 or points[-1] > horizon:
        raise InputError(f"checkpoints must lie between 1 and the horizon {horizon}, not {points}")
    return points if points[-1] == horizon else [*points, horizon]


def find_floor(
    prior: Prior, horizon: int, wanted: bool | None, *, threads: int, progress: Progress | None
) -> Optimum | None:
    """What the Bayes-optimal policy has, if it is wanted; None is for where that is quick."""
    quick = has_optimum(prior) and optimum_seconds(prior, horizon) <= _FLOOR_SECONDS
    if wanted or (wanted is None and quick):
        return optimal(prior, horizon, threads=threads, progress=progress if wanted else None)
    return None


def evaluate(
    policies: str | Policy | Sequence[str | Policy],
    prior: Prior,
    horizon: int,
    *,
    method: str = AUTO,
    episodes: int | None = None,
    runs: int | None = None,
    seed: int = 0,
    start: str | Start | None = None,
    floor: bool | None = None,
    checkpoints: Sequence[int] | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    lanes: int = simulated.MOST_LANES,
    luck: int | None = None,
    keep_plays: bool = False,
    keep: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
) -> Comparison:
    """The regret of policies on problems drawn from a prior, all with the same luck.

    policies: names, expressions or Policy objects; one or several
    horizon: plays an episode
    method: `exact` computes expected regret without noise (Bernoulli arms, two or three);
        `monte-carlo` simulates; `auto` is exact where that is cheaper than simulating to 0.1 %,
        unless episodes or runs are given
    episodes: plays of a problem in all (100,000 by default), `runs` of them for each problem drawn
    seed: one seed, one result, whatever the number of threads
    start: how index policies begin, unless their text says (see `policy`)
    floor: whether to add what the Bayes-optimal policy has; by default where that is quick
    checkpoints: numbers of plays at which the regret curve is taken; spread evenly by default
    threads: all cores by default
    executor: hands pieces of the work to other processes (docs/cluster.md); changes no result
    luck: the seed of the rewards, if the same problems are to be played with other luck
    keep_plays: whether a simulation keeps how often each arm of each problem was played
    keep: an .npz file for what is done so far; with `resume` an evaluation that was stopped goes on from
        it. It stays until it is removed
    lanes: episodes that are simulated in step, a multiple of 64 up to 512; changes no result
    progress: called as progress(work done, work in all)
    announce: called with a message if something must be compiled first, which happens once

    >>> import metabandit as mb
    >>> result = mb.evaluate(["ucb1", "greedy"], mb.Bernoulli(arms=2), horizon=10)
    >>> result.method, [evaluation.policy for evaluation in result.ranking()]
    ('exact', ['greedy', 'ucb1'])
    >>> round(result["greedy"].mean_regret, 5), round(result.floor.regret, 5)
    (0.78416, 0.64488)
    """
    given: list[Any]
    if isinstance(policies, Iterable) and not isinstance(policies, str):
        given = list(policies)
    else:
        given = [policies]
    if not given:
        raise InputError("no policy was given; name at least one, such as ucb1")
    check_prior(prior)
    made = [policy(item, start=start) for item in given]
    horizon = check_horizon(horizon)
    asked = not episodes is runs is luck is None or keep_plays
    runs = check_whole(1 if runs is None else runs, "the number of runs a problem", 1)
    if episodes is None:
        episodes = max(_EPISODES // runs, 1) * runs
    episodes = check_whole(episodes, "the number of episodes", 1)
    seed = check_seed(seed)
    workers = make_workers(threads, executor)
    luck = seed if luck is None else check_seed(luck, "the seed of the luck")
    if episodes % runs:
        raise InputError(
            f"the number of episodes ({episodes}) must be a multiple of the runs a problem ({runs})"
        )
    if lanes % 64 or not 64 <= lanes <= simulated.MOST_LANES:
        raise InputError(f"lanes must be a multiple of 64 from 64 to 512, not {lanes}")
    points = read_points(checkpoints, horizon)
    # Everything that can be refused is refused before anything is computed.
    _check_method(method, asked=asked)
    if keep is not None:
        check_new(keep, (".npz",), "the file for what is done", force=resume)
    elif resume:
        raise InputError("an evaluation goes on from the file that `keep` names: give it")
    if floor:
        check_solvable(prior, "the optimum")
    for item in made:
        item.check(prior, horizon)
    for item in made:
        item.prepare(prior, horizon, progress)
    plans = [(item, item.plan(prior, horizon)) for item in made]
    workers = workers.able_to_send(sum(plan.size for _, plan in plans))
    if executor is not None and workers.executor is None and announce is not None:
        largest = max(plans, key=lambda item: item[1].size)[0].name
        announce(f"the table of {largest} is too large to be sent: all play in this process")
    method = _pick_method(method, plans, prior, horizon, asked=asked)
    file = Checkpoint({}, None, "evaluation")
    if keep is not None:
        settings = {
            **_identity(made, prior),
            "horizon": horizon,
            "method": method,
            "checkpoints": points,
        }
        if method == MONTE_CARLO:
            settings |= {"episodes": episodes, "runs": runs, "seed": seed, "luck": luck}
            settings |= {"keep_plays": keep_plays}
        file = Checkpoint(settings, Path(keep), "evaluation")

    if method == EXACT:
        if announce is not None:
            exact.announce_compilation(prior.arms, announce)
        evaluations = _exactly(
            plans, prior, horizon, points, workers, progress, file, resume=resume
        )
        covariance = np.zeros((len(made), len(made)))
        episodes = 0
    else:
        if announce is not None:
            simulated.announce_compilation(announce)
        evaluations, covariance = simulated.simulate(
            plans,
            prior,
            horizon,
            episodes=episodes,
            runs=runs,
            seed=seed,
            checkpoints=points,
            workers=workers,
            lanes=lanes,
            luck=luck,
            keep_plays=keep_plays,
            keep=file,
            resume=resume,
            progress=progress,
        )
    return Comparison(
        evaluations=evaluations,
        prior=str(prior),
        arms=prior.arms,
        horizon=horizon,
        method=method,
        episodes=episodes,
        runs=runs,
        seed=seed,
        start=str(Start.read(start)),
        covariance=covariance,
        floor=find_floor(prior, horizon, floor, threads=workers.threads, progress=progress),
    )


def _identity(policies: Sequence[Policy], prior: Prior) -> dict[str, Any]:
    """What an evaluation must have in common with the one that it goes on with."""

    def digest(*parts: bytes) -> str:
        return hashlib.sha256(b"|".join(parts)).hexdigest()[:16]

    some = prior.means if isinstance(prior, Table) else prior.draw(np.random.default_rng(0), 64)
    return {
        "policies": ", ".join(item.name for item in policies),
        "prior": str(prior),
        "arms": prior.arms,
        # Names may stay when what they stand for changes.
        "rules of the policies": digest(*map(_essence, policies)),
        "sample of the problems": digest(np.ascontiguousarray(some).tobytes()),
        "versions": stamp(),
    }


def _essence(item: Policy) -> bytes:
    """What tells a policy from others of its name."""
    if isinstance(item, IndexPolicy):
        return repr((item.formula, str(item.start))).encode()
    code = getattr(getattr(item, "choose", None), "__code__", None)
    rule = None if code is None else (code.co_code, code.co_consts)
    return repr((item.content(), rule)).encode()


def _exactly(
    plans: Sequence[tuple[Policy, Plan]],
    prior: Prior,
    horizon: int,
    points: list[int],
    workers: Workers,
    progress: Progress | None,
    file: Checkpoint,
    *,
    resume: bool,
) -> tuple[Evaluation, ...]:
    """Exact evaluations, of which each is kept as soon as it is there."""
    found: list[Evaluation] = []

    def state() -> dict[str, Any]:
        return {
            "simple": np.array([item.simple_regret for item in found]),
            "curve": np.array([item.curve for item in found]),
            "plays": np.array([item.plays for item in found]),
            "regret": np.array(
                [item.problem_regret for item in found if item.problem_regret is not None]
            ),
        }

    if resume:
        known = file.read(state().keys())
        for number, simple in enumerate(known["simple"]):
            regret = known["regret"][number] if len(known["regret"]) else None
            curve, plays = known["curve"][number], known["plays"][number]
            name = plans[number][0].name
            found.append(exact.without_noise(name, points, curve, float(simple), plays, regret))
    try:
        for item in exact.evaluate_exactly(
            plans[len(found) :],
            prior,
            horizon,
            checkpoints=points,
            workers=workers,
            progress=progress,
        ):
            found.append(item)
            file.write(state)
    finally:
        if found:
            file.write(state, at_once=True)
    return tuple(found)


def recount(comparison: Comparison, prior: Prior) -> Comparison:
    """The same plays of the same problems, with regret counted by another prior's means.

    `prior` must draw the problems that were played, as `TruncatedGaussian()` does those of
    `TruncatedGaussian(regret="parent")`; the plays must have been kept. There is no curve, only regret
    after all plays, and no simple regret.
    """
    if not isinstance(comparison, Comparison):
        raise InputError(f"what is counted anew is what evaluate gave, not {comparison!r}")
    kind, wanted = (text.partition(":")[0] for text in (comparison.prior, str(check_prior(prior))))
    if (kind, comparison.arms) != (wanted, prior.arms):
        raise InputError(
            f"the plays are of {comparison.arms} arms of {comparison.prior}; {prior.arms} arms of {prior} are "
            f"other problems"
        )
    if comparison.method == EXACT:
        raise InputError(
            "regret is counted anew from plays, which exact evaluation has not: simulate"
        )
    problems = comparison.episodes // comparison.runs
    means = prior.regret_means(simulated.draw_problems(prior, comparison.seed, problems))
    gaps = means.max(axis=1, keepdims=True) - means
    regrets = []
    for evaluation in comparison:
        if evaluation.problem_plays is None:
            raise InputError(
                "regret is counted anew from kept plays: evaluate with keep_plays=True"
            )
        regrets.append((evaluation.problem_plays * gaps.T).sum(axis=0))
    covariance = np.atleast_2d(np.cov(np.stack(regrets)))
    errors = np.sqrt(np.diag(covariance) / problems)
    return replace(
        comparison,
        prior=str(prior),
        floor=None,
        covariance=covariance,
        evaluations=tuple(
            replace(
                evaluation,
                mean_regret=float(regret.mean()),
                standard_error=float(error),
                simple_regret=math.nan,
                simple_error=math.nan,
                checkpoints=np.array([comparison.horizon]),
                curve=np.array([regret.mean()]),
                curve_error=np.array([error]),
                problem_regret=regret,
            )
            for evaluation, regret, error in zip(comparison, regrets, errors, strict=True)
        ),
    )
