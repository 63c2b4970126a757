"""`evaluate`: the regret of policies on a prior, exactly or by simulation, and the floor under it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..bayes.bounds import Bound
from ..bayes.optimum import Optimum
from ..checkpoint import Checkpoint
from ..errors import InputError
from ..feedback import Feedback
from ..files import check_new
from ..language import text
from ..policies import IndexPolicy, Plan, Policy, Start, read_policies
from ..priors import Bernoulli, Prior, Table, check_prior, read_prior
from ..priors.families import Array
from ..progress import Told, with_progress
from ..workers import Workers, stamp
from . import exact, simulated
from .costs import exact_is_cheaper
from .engine import Engine
from .floor import floor_of_comparison
from .problems import draw_problems
from .results import EXACT, MONTE_CARLO, Comparison, Evaluation
from .task import AUTO, Task, read_task


@with_progress("evaluating")
def evaluate(
    policies: str | Policy | Sequence[str | Policy],
    prior: str | Prior,
    horizon: int,
    *,
    arms: int | None = None,
    method: str = AUTO,
    episodes: int | None = None,
    runs: int | None = None,
    seed: int = 0,
    start: str | Start | None = None,
    feedback: Feedback | Mapping[str, Any] | None = None,
    floor: bool | None = None,
    floor_effort: float | None = None,
    checkpoints: Sequence[int] | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    lanes: int = simulated.MOST_LANES,
    reward_seed: int | None = None,
    keep_plays: bool = False,
    time_limit: float | None = None,
    keep: str | Path | None = None,
    resume: bool = False,
    progress: Told = None,
    announce: Callable[[str], None] | None = None,
) -> Comparison:
    """Compute the regret of policies on problems drawn from a prior, with the same rewards for all.

    Parameters
    ----------
    policies : str, Policy or a sequence of them
        Names, expressions or Policy objects.
    prior : Prior or str
        What is known about the arms in advance: a prior, or its text as on the command line.
    horizon : int
        Plays per episode.
    arms : int, optional
        The number of arms, if the prior is a text that does not include it.
    method : {"auto", "exact", "monte-carlo"}
        `exact` computes expected regret without noise (Bernoulli arms, two or three); `monte-carlo`
        simulates; `auto` is exact if that is cheaper than simulating to 0.1 %, unless episodes or runs
        are given.
    episodes, runs : int, optional
        Episodes in all (100,000 by default), `runs` of them for each problem that is drawn.
    seed : int
        The same seed gives the same result on any number of threads.
    start : str or Start, optional
        How index policies begin, unless their text says (see `policy`).
    feedback : Feedback, optional
        When rewards become known: in batches, after a delay; immediately by default.
    floor : bool, optional
        Whether to add the floor, which no policy can beat: the Bayes optimum, or a lower bound (see
        `optimal`). By default it is added if it is quick to compute, or known from an earlier call.
    floor_effort : float, optional
        How much is computed for a lower bound, 1 by default.
    checkpoints : sequence of int, optional
        Numbers of plays at which the regret curve is taken; spread evenly by default.
    threads : int, optional
        Threads to use; all cores by default.
    executor : concurrent.futures.Executor, optional
        Other processes that share the work (docs/cluster.md); the result is the same.
    lanes : int
        Episodes that are simulated in parallel, a multiple of 64 up to 512; the result is the same.
    reward_seed : int, optional
        The seed of the rewards, to play the same problems with other rewards.
    keep_plays : bool
        Whether a simulation keeps how often each arm of each problem was played.
    time_limit : float, optional
        Seconds after which a simulation ends with the problems that were played by then.
    keep : path, optional
        An .npz file for unfinished work; with `resume`, an evaluation that was stopped continues from it. It
        stays until you remove it.
    progress : callable or bool, optional
        Called as progress(work done, work in all). By default a bar shows in terminals and notebooks if
        it takes more than two seconds; False for none.
    announce : callable, optional
        Called with a message if something must be compiled first, which happens once.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import metabandit as mb
    >>> result = mb.evaluate(["ucb1", "greedy"], mb.Bernoulli(arms=2), horizon=10)
    >>> result.method, [evaluation.policy for evaluation in result.ranking()]
    ('exact', ['greedy', 'ucb1'])
    >>> round(result["greedy"].mean_regret, 5), round(result.floor.regret, 5)
    (0.78416, 0.64488)
    """
    # Long because its arguments are its signature; the body is short.
    made = _read_policies(policies, start)
    prior = read_prior(prior, arms=arms, announce=announce)
    # Everything that can be refused is refused before anything is computed.
    task = read_task(
        prior, horizon, method=method, episodes=episodes, runs=runs, seed=seed, start=start,
        feedback=feedback, checkpoints=checkpoints, threads=threads, executor=executor, lanes=lanes,
        reward_seed=reward_seed, keep_plays=keep_plays, floor=floor, floor_effort=floor_effort,
        time_limit=time_limit,
    )  # fmt: skip
    numbers = {
        "episodes": episodes, "runs": runs, "seed of the rewards": reward_seed,
        "time limit": time_limit, "plays of each problem": keep_plays or None,
    }  # fmt: skip
    asked = any(number is not None for number in numbers.values())
    if task.method == EXACT:
        _refuse_simulated(numbers)
    if keep is not None:
        check_new(keep, (".npz",), "the file for what is done", force=resume)
    elif resume:
        raise InputError("an evaluation continues from the file that `keep` names: give it")
    for item in made:
        item.check(prior, task.horizon)
        _note_origin(item, task, announce)
    plans = [item.plan(prior, task.horizon, progress) for item in made]
    task = replace(
        task,
        method=_pick_method(task, plans, asked=asked),
        workers=_who_works(task.workers, plans, announce),
    )
    file = Checkpoint({}, None, "evaluation")
    if keep is not None:
        file = Checkpoint(_identity(task, made), Path(keep), "evaluation")
    task, evaluations, covariance = _evaluate_plans(
        task, plans, announce, progress=progress, file=file, resume=resume
    )
    lowest = floor_of_comparison(
        prior, task.horizon, task.floor,
        feedback=task.feedback, effort=task.bound_effort, threads=task.workers.threads,
        progress=progress,
    )  # fmt: skip
    return compared(task, evaluations, covariance, lowest, start=str(task.start))


def _refuse_simulated(numbers: Mapping[str, object]) -> None:
    """Refuse numbers that only a simulation has."""
    given = [name for name, number in numbers.items() if number is not None]
    if given:
        raise InputError(
            f"exact evaluation simulates nothing, so it has no {' and no '.join(given)}: leave that "
            f"out, or use the method monte-carlo",
            about="method",
        )


def _read_policies(
    given: str | Policy | Sequence[str | Policy], start: str | Start | None
) -> list[Policy]:
    if found := read_policies(given, start=start):
        return found
    raise InputError("no policy was given; name at least one, such as ucb1")


def _note_origin(item: Policy, task: Task, announce: Callable[[str], None] | None) -> None:
    """Say so if a policy was learned for something else than it is evaluated on."""
    if announce is None or item.learned is None:
        return
    prior = task.prior
    note = item.learned.note(
        "is evaluated with",
        arms=prior.arms,
        horizon=task.horizon,
        prior=prior,
        feedback=task.feedback,
    )
    if note is not None:
        announce(f"note: {item.name} was {note}")


def _pick_method(task: Task, plans: Sequence[Plan], *, asked: bool) -> str:
    """`asked` is whether numbers were given that only a simulation has."""
    if task.method == MONTE_CARLO or (task.method == AUTO and asked):
        return MONTE_CARLO
    obstacle = exact.obstacle(task.prior, plans, task.horizon, task.feedback)
    if task.method == EXACT:
        if obstacle is not None:
            raise InputError(f"{obstacle}; use the method monte-carlo", about="method")
        return EXACT
    cheaper = obstacle is None and exact_is_cheaper(task.prior, task.horizon, task.feedback)
    return EXACT if cheaper else MONTE_CARLO


def _who_works(
    workers: Workers, plans: Sequence[Plan], announce: Callable[[str], None] | None
) -> Workers:
    """This process alone where tables are too large to be sent."""
    able = workers.able_to_send(sum(plan.size for plan in plans))
    if workers.executor is not None and able.executor is None and announce is not None:
        largest = max(plans, key=lambda plan: plan.size).name
        announce(f"the table of {largest} is too large to be sent: all play in this process")
    return able


def _evaluate_plans(
    task: Task, plans: Sequence[Plan], announce: Callable[[str], None] | None, **how: Any
) -> tuple[Task, tuple[Evaluation, ...], Array]:
    """The task with the episodes that were played, the result of each plan, and their covariance.

    `how` is what the engine takes whatever the method: progress, file and resume.
    """
    engine = Engine(task.prior, task.horizon, task.workers, feedback=task.feedback)
    if task.method == EXACT:
        if announce is not None:
            exact.announce_compilation(task.prior.arms, task.horizon, announce, task.feedback)
        evaluations = engine.evaluate_exactly(plans, task.checkpoints, **how)
        return task, evaluations, np.zeros((len(plans), len(plans)))
    if announce is not None:
        simulated.announce_compilation(
            announce, task.prior, task.horizon, [(plan.counts, plan.decision) for plan in plans]
        )
    evaluations, covariance, problems = engine.evaluate_by_simulation(
        plans, task.sampling, task.problems, limit=task.time_limit, announce=announce, **how
    )
    return replace(task, episodes=problems * task.runs), evaluations, covariance


def compared(
    task: Task,
    evaluations: tuple[Evaluation, ...],
    covariance: Array,
    floor: Optimum | Bound | None,
    *,
    start: str,
) -> Comparison:
    """Evaluations of a task beside each other."""
    return Comparison(
        evaluations=evaluations,
        prior=str(task.prior),
        arms=task.prior.arms,
        horizon=task.horizon,
        method=task.method,
        episodes=0 if task.method == EXACT else task.problems * task.runs,
        runs=task.runs,
        seed=task.seed,
        start=start,
        feedback=task.feedback,
        covariance=covariance,
        floor=floor,
        best=expected_best(task.prior),
    )


def expected_best(prior: Prior) -> float | None:
    """The expected mean of the best arm, of arms that pay 0 or 1; None where it is not known."""
    if type(prior) is Bernoulli:
        return prior.expected_best()
    if isinstance(prior, Table) and prior.family.binary:
        return prior.expected_best()
    return None


def _identity(task: Task, policies: Sequence[Policy]) -> dict[str, Any]:
    """What an evaluation must have in common with the one that it continues."""

    def digest(*parts: bytes) -> str:
        return hashlib.sha256(b"|".join(parts)).hexdigest()[:16]

    prior = task.prior
    some = [prior.draw(np.random.default_rng(0), 64)]
    if isinstance(prior, Table):
        some = [prior.means] if prior.even else [prior.means, prior.weights]
    settings = {
        "policies": ", ".join(item.name for item in policies),
        "prior": str(prior),
        "arms": prior.arms,
        # Names may stay when what they stand for changes.
        "rules of the policies": digest(*map(_essence, policies)),
        "sample of the problems": digest(*(np.ascontiguousarray(part).tobytes() for part in some)),
        "versions": stamp(),
        "horizon": task.horizon,
        "feedback": str(task.feedback),
        "method": task.method,
        "checkpoints": list(task.checkpoints),
    }
    if task.method == MONTE_CARLO:
        settings |= {
            "episodes": task.problems * task.runs,
            "runs": task.runs,
            "seed": task.seed,
            "reward_seed": task.seed if task.reward_seed is None else task.reward_seed,
            "keep_plays": task.keep_plays,
        }
    return settings


def _essence(item: Policy) -> bytes:
    """What tells a policy from others of its name."""
    if isinstance(item, IndexPolicy):
        return repr(([*map(text, item.trees)], item.parameters, str(item.start))).encode()
    code = getattr(getattr(item, "choose", None), "__code__", None)
    rule = None if code is None else (code.co_code, code.co_consts)
    return repr((item.content(), rule)).encode()


def recount(comparison: Comparison, prior: Prior) -> Comparison:
    """The same plays of the same problems, with regret counted by another prior's means.

    `prior` must draw the problems that were played, as `TruncatedGaussian()` does those of
    `TruncatedGaussian(regret="parent")`; the plays must have been kept. There is no curve, only regret
    after all plays, and no simple regret.
    """
    if not isinstance(comparison, Comparison):
        raise InputError(f"what is counted again is what evaluate gave, not {comparison!r}")
    kind, wanted = (text.partition(":")[0] for text in (comparison.prior, str(check_prior(prior))))
    if (kind, comparison.arms) != (wanted, prior.arms):
        raise InputError(
            f"the plays are of {comparison.arms} arms of {comparison.prior}; {prior.arms} arms of {prior} are "
            f"other problems"
        )
    if comparison.method == EXACT:
        raise InputError(
            'exact evaluation keeps no plays to count regret from; use method="monte-carlo"'
        )
    problems = comparison.episodes // comparison.runs
    means = prior.regret_means(draw_problems(prior, comparison.seed, problems))
    gaps = means.max(axis=1, keepdims=True) - means
    regrets = []
    for evaluation in comparison:
        if evaluation.problem_plays is None:
            raise InputError("regret is counted from kept plays: evaluate with keep_plays=True")
        regrets.append((evaluation.problem_plays * gaps.T).sum(axis=0))
    covariance = np.atleast_2d(np.cov(np.stack(regrets)))
    errors = np.sqrt(np.diag(covariance) / problems)
    return replace(
        comparison,
        prior=str(prior),
        floor=None,
        best=expected_best(prior),
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
