"""`advise`: search a little, compare with the classics on fresh problems, and say what is worth using.

All budgets are numbers of plays, never seconds: one seed, one result, on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..evaluation import Comparison, IndexFault, evaluate, exact, montecarlo
from ..evaluation.results import EXACT
from ..learning import Generation, learn
from ..learning.aim import Aim, check_effort, make_aim, silent, stream
from ..learning.judges import EXACTLY, judging_method
from ..policies import Policy, Start, policy
from ..policies.file import Measured, PolicyFile, check_target
from ..policies.optimum import has_optimum, optimum_seconds
from ..policies.start import default_start
from ..priors import Bernoulli, Prior, Table
from .classics import playable, reward_slowness, slowness
from .neighbours import Neighbour, has_neighbours, neighbours
from .readable import find_readable
from .result import (
    CLASSIC,
    FORMULA,
    LEARNED,
    REFERENCE,
    Advice,
    Candidate,
    Scenario,
    best_classic,
)

LEARNED_NAME = "learned power-1"
# Policies are evaluated exactly where one takes this many seconds.
_EXACT_SECONDS = 0.15
_FLOOR_SECONDS = 5.0
# What the comparison may take, in plays times arms of a policy, and its most episodes.
_WORK = 6e7
_LEAST_EPISODES, _MOST_EPISODES = 1000, 200_000
_SLOW = 20.0
# A neighbour gets this share.
_NEIGHBOUR = 0.25
# How much of what `learn` takes by default is spent: simulated, and seconds of a core if exact.
_EFFORT = 0.015
_EXACT_LEARNING = 24.0
# What `learn` takes with effort 1, in plays times arms and in candidates (Power-1 has 14 weights).
_LEARNING_WORK, _LEARNING_CANDIDATES = 1.2e11, 400 * 14
# A generation of Power-1 has 11 candidates, and there should be so many generations.
_GENERATION, _GENERATIONS = 11, 15
# Episodes that are played at least, plays times arms of a second on two cores, and when to say so.
_LEAST_WORK, _SPEED, _PATIENCE = 1.2e5, 3e8, 90.0
# How far each part of the work reaches.
_PARTS = {"formula": 0.3, "learning": 0.7, "ranking": 0.88, "neighbours": 1.0}

Tell = Callable[[float, str], None]


@dataclass(frozen=True)
class _Desk:
    """What all parts of an advice need: the problems, how hard to work, and whom to tell."""

    aim: Aim
    effort: float
    begin: Start
    tell: Tell
    announce: Callable[[str], None]

    def part(self, name: str) -> Tell:
        """Progress of one part, told as that of the whole."""
        ends = list(_PARTS.values())
        place = list(_PARTS).index(name)
        low, high = ([0.0, *ends])[place], ends[place]
        return lambda share, doing: self.tell(low + (high - low) * share, doing)


def advise(
    prior: Prior,
    horizon: int,
    *,
    seed: int = 0,
    effort: float = 1.0,
    threads: int | None = None,
    out: str | Path | None = None,
    force: bool = False,
    progress: Tell | None = None,
    announce: Callable[[str], None] | None = None,
) -> Advice:
    """What is worth using on problems of a prior: a classic, a readable formula or a learned policy.

    seed: one seed, one result, whatever the number of threads
    effort: 2 lets searches and comparisons take twice as long, 0.5 half as long
    out: the policy file to write if what is recommended was searched for; force: overwrite what is there
    progress: called with the share that is done and what is going on; announce: called with messages

    >>> import metabandit as mb
    >>> advice = mb.advise(mb.Bernoulli(arms=2), horizon=10, effort=0.01)
    >>> advice.recommended.role
    'formula'
    """
    aim = make_aim(prior, horizon, objective="regret", reference=None, seed=seed, threads=threads)
    effort = check_effort(effort)
    target = None if out is None else check_target(out, force=force)
    if target is None and force:
        raise InputError("--force overwrites a policy file: give --out, or leave it out")
    begin = Start.read(default_start(prior)).resolve(prior)
    policy("r", start=begin).check(prior, aim.horizon)
    desk = _Desk(aim, effort, begin, progress or (lambda share, doing: None), announce or silent)
    simulated = not _exactly(prior, aim.horizon)
    classics, references, skipped = playable(prior, aim.horizon, simulated=simulated)
    _announce_compilation(desk)

    readable = find_readable(aim, begin, effort=effort, progress=desk.part("formula"))
    candidates = [
        Candidate(FORMULA, readable.file.policy.policy(readable.formula), readable.file),
        _learned(desk),
        *(Candidate(CLASSIC, item) for item in classics),
        *(Candidate(REFERENCE, item) for item in references),
    ]
    comparison, faults = _compare(
        [item.policy for item in candidates], Neighbour("", prior, aim.horizon), desk,
        share=1.0, stream_number=7, floor=_quick_floor(prior, aim.horizon),
        tell=desk.part("ranking"),
    )  # fmt: skip
    kept = [item for item in candidates if item.policy.name not in dict(faults)]
    kept = [_measured(item, comparison, place) for place, item in enumerate(kept)]
    scenarios = _scenarios(desk, kept, comparison)
    advice = Advice(
        candidates=tuple(kept),
        comparison=comparison,
        best_reward=aim.horizon * _expected_best(prior, comparison),
        scenarios=scenarios,
        skipped=(*skipped, *faults),
        seed=aim.seed,
        effort=effort,
    )
    advice = replace(advice, notes=tuple(_notes(advice, prior)))
    if target is not None and advice.recommended.file is not None:
        advice.recommended.file.write(target)
        advice = replace(advice, written=target)
    return advice


def _notes(advice: Advice, prior: Prior) -> Iterator[str]:
    """What else should be known."""
    for place, item in enumerate(advice.candidates):
        apart = advice.comparison.difference(advice.choice, place)
        if item.role == REFERENCE and apart.significant and apart.mean > 0.0:
            share = apart.mean / advice.comparison[advice.choice].mean_regret
            yield (
                f"{item.policy.name} has {100.0 * share:.1f} % less regret still, but needs a table that is "
                f"made for the prior and the number of plays."
            )
    if not has_neighbours(prior):
        yield (
            f"Near priors are known for the priors of metabandit only, so for {prior} the horizon alone was "
            f"varied."
        )


def _exactly(prior: Prior, horizon: int) -> bool:
    """Whether regret is computed exactly; with three arms Thompson sampling cannot be."""
    if prior.arms > 2 or exact.obstacle(prior, [], horizon) is not None:
        return False
    return exact.cost(prior, horizon) <= _EXACT_SECONDS


def _quick_floor(prior: Prior, horizon: int) -> bool:
    return has_optimum(prior) and optimum_seconds(prior, horizon) <= _FLOOR_SECONDS


def _announce_compilation(desk: _Desk) -> None:
    if _exactly(desk.aim.prior, desk.aim.horizon):
        exact.announce_compilation(desk.aim.prior.arms, desk.announce)
    montecarlo.announce_compilation(desk.announce)
    size = desk.aim.horizon * desk.aim.prior.arms * reward_slowness(desk.aim.prior)
    if (seconds := _LEAST_WORK * size / _SPEED) > _PATIENCE:
        desk.announce(f"so many plays take longer: about {seconds / 60.0:.0f} minutes ...")


def _learned(desk: _Desk) -> Candidate:
    """Power-1, learned with a small part of what `learn` spends."""
    aim, tell = desk.aim, desk.part("learning")
    work = aim.horizon * aim.prior.arms * reward_slowness(aim.prior)
    effort = _EFFORT * desk.effort
    if (
        judging_method(policy("r", start=desk.begin), aim.prior, aim.horizon, aim.objective)
        == EXACTLY
    ):
        seconds = _LEARNING_CANDIDATES * exact.cost(aim.prior, aim.horizon)
        effort = desk.effort * min(1.0, _EXACT_LEARNING / seconds)
    fitting = _LEARNING_WORK * effort / (_GENERATION * _GENERATIONS * work)

    def told(generation: Generation) -> None:
        tell(generation.share, f"learning, generation {generation.number}")

    learned = learn(
        "power-1",
        aim.prior,
        aim.horizon,
        start=desk.begin,
        seed=stream(aim.seed, 8),
        effort=effort,
        episodes=int(min(3000, max(200, fitting))),
        threads=aim.threads,
        measured=False,
        progress=told,
    )
    return Candidate(LEARNED, learned.file.policy.policy(LEARNED_NAME), learned.file)


def _compare(
    policies: Sequence[Policy],
    where: Neighbour,
    desk: _Desk,
    *,
    share: float,
    stream_number: int,
    floor: bool,
    tell: Tell,
) -> tuple[Comparison, list[tuple[str, str]]]:
    """All policies on the same fresh problems, and those whose index failed there."""
    size = where.horizon * where.prior.arms * reward_slowness(where.prior)
    # Fewer for all where one is slow: it came from an exact comparison, which minds less.
    size *= max(1.0, max(map(slowness, policies)) / _SLOW)
    episodes = int(share * desk.effort * _WORK / size)
    episodes = min(_MOST_EPISODES, max(_LEAST_EPISODES, episodes))
    options: dict[str, Any] = {"method": "monte-carlo", "episodes": episodes}
    if _exactly(where.prior, where.horizon):
        options = {"method": EXACT}
    left = list(policies)
    faults: list[tuple[str, str]] = []
    while True:
        try:
            found = evaluate(
                left,
                where.prior,
                where.horizon,
                seed=stream(desk.aim.seed, stream_number),
                threads=desk.aim.threads,
                floor=floor,
                progress=lambda done, total: tell(done / total, "comparing on fresh problems"),
                **options,
            )
            return found, faults
        except IndexFault as fault:
            # One that fails is left out and said so; the others play on.
            faults.append((fault.policy, str(fault).partition(";")[0]))
            left = [item for item in left if item.name != fault.policy]
            if len(left) == len(policies) - len(faults) + 1:
                raise


def _measured(candidate: Candidate, comparison: Comparison, place: int) -> Candidate:
    """The candidate, its file with the regret that was measured."""
    if candidate.file is None or candidate.file.learned is None:
        return candidate
    result, floor = comparison[place], comparison.floor
    regret = Measured(
        mean=result.mean_regret,
        standard_error=result.standard_error,
        interval=result.interval,
        method="exact" if comparison.method == EXACT else "monte-carlo",
        episodes=comparison.episodes,
    )
    origin = candidate.file.learned.model_copy(
        update={"regret": regret, "floor": None if floor is None else floor.regret}
    )
    return replace(candidate, file=PolicyFile(policy=candidate.file.policy, learned=origin))


def _scenarios(
    desk: _Desk, candidates: Sequence[Candidate], comparison: Comparison
) -> tuple[Scenario, ...]:
    """The policies that matter, on neighbouring problems."""
    classic = best_classic(candidates, comparison)
    matter = [
        place
        for place, item in enumerate(candidates)
        if item.file is not None or place == classic or item.policy.name == "thompson"
    ]
    near = neighbours(desk.aim.prior, desk.aim.horizon, seed=stream(desk.aim.seed, 9))
    tell = desk.part("neighbours")
    found = []
    for number, where in enumerate(near):
        tell(number / len(near), where.label)
        places = [place for place in matter if _can_play(candidates[place].policy, where)]
        result, faults = _compare(
            [candidates[place].policy for place in places], where, desk,
            share=_NEIGHBOUR, stream_number=10 + number, floor=False, tell=lambda share, doing: None,
        )  # fmt: skip
        failed = dict(faults)
        places = [place for place in places if candidates[place].policy.name not in failed]
        found.append(Scenario(where.label, tuple(places), result))
    return tuple(found)


def _can_play(item: Policy, where: Neighbour) -> bool:
    try:
        item.check(where.prior, where.horizon)
        if _exactly(where.prior, where.horizon):
            return not isinstance(item.plan(where.prior, where.horizon).by_counts, str)
    except InputError:
        return False
    return True


def _expected_best(prior: Prior, comparison: Comparison) -> float:
    """The mean reward of the best arm: exact where that is known, else of the problems played."""
    if type(prior) is Bernoulli:
        return prior.expected_best()
    if type(prior) is Table:
        return float(prior.means.max(axis=1).mean())
    problems = montecarlo.draw_problems(prior, comparison.seed, comparison.episodes)
    return float(np.max(prior.regret_means(problems), axis=1).mean())
