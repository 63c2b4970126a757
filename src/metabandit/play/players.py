"""From a policy to a player, and from a player's file or journal back to one."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..data import read_data, write_data
from ..errors import InputError, about
from ..feedback import IMMEDIATE, Feedback
from ..files import read_json, read_text
from ..journal import Journal, unseal
from ..policies.base import IndexPolicy, Policy, Setting
from ..policies.file import FORMAT as POLICY_FORMAT
from ..policies.file import PLAYER_FORMAT as FORMAT
from ..policies.file import Catalogued, Expression, Power, Solved
from ..policies.start import PRIOR_COUNTS
from ..rewards import Rewards
from ..settings import check_horizon, check_whole, read_number
from .arm import Arm, ArmName, read_arms
from .counts import read_counts
from .player import VERSION, Player
from .rule import Rule
from .rules import make_rule
from .terms import Terms

if TYPE_CHECKING:
    from ..priors import Prior
    from .experiment import Experiment
    from .shared import SharedPlayer

# How old counts may be that selections rest on, in seconds.
REFRESH = 0.05
# A journal with more operations than this is made short when it is opened.
_LONG = 10_000


@dataclass(frozen=True, kw_only=True)
class _State:
    """What a player's file, or the first line of its journal, holds."""

    format: Literal["metabandit player"]
    version: Literal[1]
    policy: Expression | Power | Catalogued | Solved
    prior: str | None = None
    name: str
    seed: int
    horizon: int | None
    rewards: str | tuple[float | None, float | None]
    selections: int
    began: tuple[str | int, ...]
    begin: tuple[float, float, float] | None
    memory: dict[str, str | int | None] | None
    arms: tuple[Arm, ...]
    min_share: float = 0.0
    pending: Literal["count", "ignore"] = "count"
    on_duplicate: Literal["refuse", "replace"] = "refuse"
    expire: float | None = None
    expired: float | None = None
    choices: tuple[tuple[str, str | int, float, float, float | None, bool], ...] = ()
    warm: tuple[tuple[float, float, float], ...] | None = None

    def __post_init__(self) -> None:
        if all(arm.retired for arm in self.arms):
            raise ValueError("arms: there is no arm to select")
        if len({arm.name for arm in self.arms}) < len(self.arms):
            raise ValueError("arms: a name is there twice")
        check_player_seed(self.seed)
        check_whole(self.selections, "selections", 0)
        if self.horizon is not None:
            check_horizon(self.horizon)
        rewards = Rewards.read(self.rewards)
        for arm in self.arms:
            rewards.check_counts(arm.plays, arm.total, f"the arm {arm.name!r}")
            if not arm.plays >= arm.rewarded >= 0 or arm.open < 0 or arm.spread < 0.0:
                raise ValueError(
                    f"the arm {arm.name!r} has {arm.plays} plays, {arm.rewarded} of them rewarded, "
                    f"{arm.open} open and the spread {arm.spread}, which cannot be"
                )
            arm.follow()
        known = {arm.name for arm in self.arms}
        for choice, arm_name, *_ in self.choices:
            if arm_name not in known:
                raise ValueError(f"choices: {choice!r} is of an arm {arm_name!r} that is not there")


@about("seed")
def check_player_seed(seed: object) -> int:
    """A seed; all 64 bits, as the seeds of single episodes have (numerics.episode_seed)."""
    return check_whole(seed, "the seed", 0, most=2**64 - 1)


def _read_prior(prior: str | Prior | None, arms: int) -> Prior | None:
    if prior is None:
        return None
    from ..priors import read_prior

    known = read_prior(prior, arms=arms if isinstance(prior, str) else None)
    if known.arms != arms:
        raise InputError(
            f"the prior {known} is for {known.arms} arms, but there are {arms}", about="prior"
        )
    return known


def _horizon(policy: Policy, given: int | None) -> int | None:
    """The plays in all, as far as anything says so."""
    if given is not None:
        return check_horizon(given)
    return None if policy.learned is None else policy.learned.horizon


def _rewards(policy: Policy, prior: Prior | None) -> Rewards:
    """What rewards the policy is for, as far as anything says so."""
    origin = policy.learned
    if prior is not None:
        family = prior.family
        return Rewards(*family.support, binary=family.binary)
    if origin is not None and origin.support is not None:
        return replace(Rewards.read(origin.support), binary=origin.family == "bernoulli")
    return Rewards(binary=policy.binary)


def make_player(
    policy: Policy,
    arms: int | Iterable[ArmName],
    *,
    seed: int,
    horizon: int | None,
    prior: str | Prior | None,
    rewards: object,
    min_share: float | None,
    pending: str | None,
    on_duplicate: str,
    expire: float | None,
    expired: float | None,
    warm_start: object,
    warm_weight: float,
) -> Player:
    """A player that is kept nowhere yet; see `Policy.player`."""
    names = read_arms(arms)
    feedback = _read_feedback(policy, min_share, pending)
    feedback.check(len(names))
    known = _read_prior(prior, len(names))
    horizon = _horizon(policy, horizon)
    allowed = _rewards(policy, known) if rewards is None else Rewards.read(rewards)
    setting = Setting(len(names), allowed, horizon, known)
    policy.check_setting(setting)
    if policy.learned is not None:
        note = policy.learned.note("plays with", arms=len(names), horizon=horizon, prior=known)
        if note is not None:
            warnings.warn(f"{policy.name} was {note}", stacklevel=3)  # of Policy.player
    policy, counts = _begin(policy, setting)
    rule = _rule(policy, setting, names)
    warm = None if warm_start is None else _warm(warm_start, warm_weight, allowed, names)
    if warm is not None and not rule.fractions:
        raise InputError(
            f"{policy.name} looks its choices up by whole counts of its own plays, so it takes no warm "
            f"start; give it the history as a prior (metabandit fit), or choose an index or thompson"
        )
    terms = Terms(
        name=policy.name,
        policy=_describe(policy, known),
        each_once=policy.start_for(setting).each_once,
        seed=check_player_seed(seed),
        horizon=horizon,
        rewards=allowed,
        begin=counts[0] if len(set(counts)) == 1 else None,
        began=names,
        min_share=feedback.min_share,
        pending=feedback.pending,
        on_duplicate=on_duplicate,
        expire=expire,
        expired=None if expired is None else allowed.check(expired),
        warm=warm,
    )
    if warm is not None:
        counts = [
            (n + more[0], total + more[1], squares + more[2])
            for (n, total, squares), more in zip(counts, warm, strict=True)
        ]
    return Player(rule, [Arm.begin(*item) for item in zip(names, counts, strict=True)], terms)


def keep_player(
    player: Player,
    *,
    journal: str | Path | None,
    store: str | None,
    experiment: str | None,
    refresh: float,
) -> Player:
    """The player with its journal or store, going on where that ended; see `Policy.player`."""
    if store is not None:
        if journal is not None:
            raise InputError("a player has a journal or a store, not both; leave one of them out")
        return _share(player, store, experiment, refresh)
    if experiment is not None:
        raise InputError("experiment= names what is in a store; give store=, too")
    if journal is None:
        return player
    return _go_on(_journal_path(journal), player)


def _warm(
    history: object, weight: float, rewards: Rewards, names: tuple[ArmName, ...]
) -> tuple[tuple[float, float, float], ...]:
    """What arms have of a history: plays, sum and squares, each counted as `weight` of a play."""
    share = read_number(weight, "warm_weight")
    if not 0.0 < share <= 1.0:
        raise InputError(f"warm_weight is a number above 0 and up to 1, not {weight!r}")
    known = dict.fromkeys(names, (0.0, 0.0, 0.0))
    for arm, (plays, total, squares) in read_counts(history, rewards):
        if arm not in known:
            raise InputError(
                f"the warm start has an arm {arm!r}, which is not among the arms; leave it out, or add "
                f"it to the arms"
            )
        if known[arm][0]:
            raise InputError(f"the warm start has the arm {arm!r} twice; sum its counts up")
        known[arm] = (share * plays, share * total, share * squares)
    return tuple(known.values())


def _share(player: Player, url: str, experiment: str | None, refresh: float) -> Player:
    """The player of an experiment in a store, which is begun if it is new."""
    from .store import Store

    seconds = read_number(refresh, "refresh")
    if not 0.0 <= seconds <= 3600.0:
        raise InputError(f"refresh is a number of seconds from 0 to 3600, not {refresh!r}")
    store = Store(url)
    from .experiment import Experiment  # which needs what the store has looked for

    found = Experiment(store, experiment)
    begin_experiment(player, found)
    return _shared(player, found, seconds)


def begin_experiment(player: Player, found: Experiment) -> None:
    """Begin an experiment as this player does; one that is there must have begun like that."""
    if player._rule.memory is not None:
        raise InputError(
            f"{player.name} remembers more than counts, which processes cannot share; choose another "
            f"policy, or play it in one process, with a journal"
        )
    state = player.to_dict()
    kept = found.begin(state, list(player._by_name.values()))
    where = f"the experiment {found.name!r} in {found.store.name}"
    _check_same(kept, state, where, "continue as it was begun, or choose another name")


def open_experiment(found: Experiment) -> SharedPlayer | None:
    """The player of an experiment, as the store says that it was begun; None if there is none."""
    state = found.state()
    if state is None:
        return None
    where = f"the experiment {found.name!r} in {found.store.name}"
    return _shared(restore_player(state, where), found, REFRESH)


def _shared(player: Player, found: Experiment, refresh: float) -> SharedPlayer:
    from .shared import SharedPlayer

    arms = list(player._by_name.values())
    shared = SharedPlayer(player._rule, arms, player.terms, found, refresh)
    shared.selections = found.read()[0]
    shared.indices()
    return shared


def _told(value: Any) -> Any:
    """A setting as a message shows it: the formula or the name of a policy, not all of its file."""
    if not isinstance(value, dict):
        return value
    parameters = value.get("parameters") or {}
    settings = ", ".join(f"{name}={number}" for name, number in parameters.items())
    name = value.get("expression") or value.get("name") or value.get("kind") or value
    return f"{name} ({settings})" if settings else name


def _check_same(kept: dict[str, Any], wanted: dict[str, Any], where: str, remedy: str) -> None:
    """Refuse to go on with something else than what was begun."""
    kept, wanted = (json.loads(json.dumps(item)) for item in (kept, wanted))
    for item in (kept, wanted):
        if isinstance(item.get("policy"), dict):
            item["policy"].pop("file", None)  # where a table is does not matter
    for key, what in _SAME.items():
        if kept.get(key) != wanted[key]:
            raise InputError(
                f"{where} was begun with {what}: {_told(kept.get(key))}, not {_told(wanted[key])}; "
                f"{remedy}"
            )


def _read_feedback(policy: Policy, min_share: float | None, pending: str | None) -> Feedback:
    """How a player keeps shares and counts waiting plays; a learned policy's own by default."""
    known = IMMEDIATE if policy.learned is None else policy.learned.feedback
    return Feedback(
        min_share=known.min_share if min_share is None else min_share,
        pending=known.pending if pending is None else pending,
    )


def _rule(policy: Policy, setting: Setting, arms: tuple[ArmName, ...]) -> Rule:
    rule = make_rule(policy.decision(setting), policy.name, arms, setting.horizon)
    rule.check(arms)
    return rule


def _begin(policy: Policy, setting: Setting) -> tuple[Policy, list[tuple[float, float, float]]]:
    """The policy with the numbers of its start, and the pseudo-observations of each arm."""
    arms = setting.arms
    if not isinstance(policy, IndexPolicy):
        return policy, [(0.0, 0.0, 0.0)] * arms
    policy = policy.on(setting)
    start = policy.start
    if start.plays is None and start.kind != PRIOR_COUNTS:
        return policy, [(0.0, 0.0, 0.0)] * arms
    if start.plays is None and setting.prior is None:
        raise InputError(
            f"{policy.name} begins with the pseudo-observations of a prior: give prior=, or the "
            f"numbers, as in prior-counts:plays=2,sum=1"
        )
    if start.plays is None and setting.prior is not None:
        start = start.resolve(setting.prior)
    start = start.complete(binary=setting.rewards.binary)
    counts = start.for_arms(arms)
    for plays, total, squares in counts:
        setting.rewards.check_counts(plays, total, f"the start {start}")
        if squares < total * total / plays * (1.0 - 1e-9):
            raise InputError(
                f"squares of the start must be at least sum^2 / plays = {total * total / plays:g}, "
                f"not {squares:g}"
            )
    changed = policy.with_parameters(policy.parameters, start)
    changed.learned = policy.learned
    return changed, counts


def _describe(policy: Policy, prior: Prior | None) -> dict[str, Any] | None:
    content = policy.content()
    if content is None:
        return None
    text = None
    if policy.reads_prior and prior is not None:
        from ..priors import Bernoulli, BetaRewards, Gaussian

        # For others these policies take means that are uniform, as without a prior.
        text = str(prior) if type(prior) in (Bernoulli, BetaRewards, Gaussian) else None
    return {"policy": write_data(content), "prior": text}


# Files -----------------------------------------------------------------------------------------


def load_player(path: str | Path) -> Player:
    """A player as `save` wrote it (.json), or as its journal says (.jsonl), which it continues.

    It makes the same choices as one that was never stopped.
    """
    if not isinstance(path, (str, Path)):
        raise InputError(f"a player's file is named by a text or a Path, not {path!r}")
    path = Path(path)
    if path.suffix == ".jsonl":
        if not _has_content(path):
            raise InputError(f"the journal {path} does not exist, or is empty")
        return _go_on(path, None)
    value, content = read_json(path, "a player's file"), read_text(path)
    _check_format(value, path)
    try:
        value = json.loads(unseal(content.removesuffix("\n"))[0])
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}") from None
    return restore_player(value, path)


def _check_format(value: Any, path: str | Path) -> None:
    """Refuse what is no player's file, or of another version."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        hint = ""
        if isinstance(value, dict) and value.get("format") == POLICY_FORMAT:
            hint = ", but a policy: load reads it"
        raise InputError(f'{path} is not a player\'s file{hint}: it has no "format": "{FORMAT}"')
    if value.get("version") != VERSION:
        raise InputError(
            f"{path} has version {value.get('version')!r}; this metabandit reads version {VERSION}. "
            f"Update metabandit"
        )


def restore_player(value: Any, path: str | Path) -> Player:
    """The player that `to_dict` described; errors name the path."""
    _check_format(value, path)
    try:
        state = read_data(_State, value)
        prior = _read_prior(state.prior, len(state.began))
        rewards = Rewards.read(state.rewards)
        setting = Setting(len(state.began), rewards, state.horizon, prior)
        policy = state.policy.policy(state.name)
        policy.check_setting(setting)
        rule = _rule(policy, setting, state.began)
        if rule.memory is not None:
            if state.memory is None or set(state.memory) != set(rule.memory):
                raise ValueError(f"memory: must have {', '.join(rule.memory)}")
            rule.memory = state.memory
            rule.check_memory(state.arms)
        terms = Terms(
            policy={"policy": write_data(state.policy), "prior": state.prior},
            each_once=policy.start_for(setting).each_once,
            rewards=rewards,
            **{name: getattr(state, name) for name in _TERMS},
        )
        return Player(rule, state.arms, terms, state.selections, state.choices)
    except (ValueError, KeyError) as error:
        raise InputError(f"{path} is damaged: {error}") from None


def _journal_path(path: object) -> Path:
    if not isinstance(path, (str, Path)) or Path(path).suffix != ".jsonl":
        raise InputError(f"a journal is a file that ends in .jsonl, not {path!r}")
    if not Path(path).parent.is_dir():
        raise InputError(f"the folder of the journal {path} does not exist; make it first")
    return Path(path)


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


# The terms of a player that are in its file as they are.
_TERMS = (
    "name", "seed", "horizon", "begin", "began", "min_share", "pending", "on_duplicate", "expire",
    "expired", "warm",
)  # fmt: skip
# What must be the same if a journal is continued.
_SAME = {
    "policy": "another policy",
    "prior": "another prior",
    "seed": "another seed",
    "horizon": "another horizon",
    "rewards": "other rewards",
    "began": "other arms",
    "min_share": "another minimum share",
    "pending": "another choice for pending",
    "warm": "another warm start",
}


def _go_on(path: Path, fresh: Player | None) -> Player:
    """The player of a journal; `fresh` is one that it must be the continuation of."""
    if fresh is not None:
        fresh.to_dict()  # refused before there is a file
    journal = Journal(path, sealed=True)
    try:
        try:
            values = journal.read()
        except ValueError as error:
            raise InputError(f"{path} is damaged, or no journal of a player: {error}") from None
        if not values:
            # There is none yet, or not even its first line was finished: nothing was ever counted.
            if fresh is None:
                raise InputError(f"the journal {path} has no whole line; begin it again")
            journal.append(fresh.to_dict())
            fresh.attach(journal, [])
            return fresh
        state, *operations = values
        player = restore_player(state, path)
        if fresh is not None:
            remedy = "continue it with load_player, or choose another file"
            _check_same(state, fresh.to_dict(), f"the journal {path}", remedy)
            # How rewards are treated from now on may change.
            now = fresh.terms
            player.terms = replace(
                player.terms,
                on_duplicate=now.on_duplicate,
                expire=now.expire,
                expired=now.expired,
            )
        player.attach(journal, operations)
        if len(operations) > _LONG:
            # Where it cannot be, as on a full disk, it stays long.
            with suppress(InputError):
                player.compact()
        return player
    except BaseException:
        journal.close()
        raise
