"""Policy files: a policy as JSON that a person can read, checked when it is loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..data import read_data, write_data
from ..errors import InputError
from ..feedback import IMMEDIATE, Feedback
from ..files import check_new, read_json, written
from ..language import HIGHEST_DEGREE, names, parse
from ..rewards import Rewards
from ..settings import check_horizon
from ..showing import Shown
from .base import IndexPolicy, Policy
from .catalogue import CATALOGUE
from .power import features, power_tree, power_values
from .start import PRIOR_COUNTS, Start

if TYPE_CHECKING:
    from ..priors import Prior

FORMAT: Literal["metabandit policy"] = "metabandit policy"
PLAYER_FORMAT = "metabandit player"
ADVICE_FORMAT = "metabandit advice"
VERSION: Literal[1] = 1


def _check_start(start: Start) -> None:
    """A file does not know the prior that numbers could be taken from."""
    if start.kind == PRIOR_COUNTS and None in (start.plays, start.reward_sum, start.square_sum):
        raise ValueError("the start prior-counts needs plays, sum and squares")


@dataclass(frozen=True, kw_only=True)
class Expression:
    """An index as text, with values for its parameters; rate and needed plays as IndexPolicy has."""

    kind: Literal["expression"] = "expression"
    expression: str
    parameters: dict[str, float]
    start: Start
    rate: str | None = None
    needed: str | None = None

    def __post_init__(self) -> None:
        _check_start(self.start)
        texts = [text for text in (self.expression, self.rate, self.needed) if text is not None]
        wanted = [item for text in texts for item in names(parse(text, parameters=None))]
        if set(wanted) != set(self.parameters):
            raise ValueError(f"the parameters of {self.expression} are {', '.join(wanted)}")

    def policy(self, name: str) -> Policy:
        return IndexPolicy(
            self.expression,
            parameters=self.parameters,
            start=self.start,
            name=name,
            rate=self.rate,
            needed=self.needed,
        )


@dataclass(frozen=True, kw_only=True)
class Power:
    """A Power-P index: what v1 and v4 are, and the weight of each feature; those left out are zero."""

    kind: Literal["power"] = "power"
    degree: int
    v1: Literal["t", "h"]
    v4: Literal["s", "w"] = "s"
    values: dict[str, str]
    weights: dict[str, float]
    start: Start

    def __post_init__(self) -> None:
        _check_start(self.start)
        if self.start.each_once and self.start.plays is not None:
            raise ValueError("the start each-once has no parameters here")
        if not 1 <= self.degree <= HIGHEST_DEGREE:
            raise ValueError(f"degree must be 1 to {HIGHEST_DEGREE}, not {self.degree}")
        if not self.weights:
            raise ValueError("weights must not be empty")
        if self.values != (read := power_values(self.v1, self.v4)):
            raise ValueError(f"values must be {read}: what v1, v2, v3 and v4 are")
        known = features(self.degree).values()
        for name in self.weights:
            if name not in known:
                raise ValueError(f"power-{self.degree} has no feature {name!r}")

    @classmethod
    def of(cls, degree: int, v1: str, v4: str, parameters: dict[str, float], start: Start) -> Power:
        known = features(degree).items()
        weights = {feature: parameters[name] for name, feature in known if parameters[name] != 0.0}
        if not weights:  # what learning may begin with; a file without weights is damaged
            weights = dict.fromkeys(list(features(degree).values())[:1], 0.0)
        return cls(
            degree=degree,
            v1="h" if v1 == "h" else "t",
            v4="w" if v4 == "w" else "s",
            values=power_values(v1, v4),
            weights=weights,
            start=start,
        )

    def policy(self, name: str) -> Policy:
        known = features(self.degree).items()
        parameters = {parameter: self.weights.get(feature, 0.0) for parameter, feature in known}
        tree = power_tree(self.degree, self.v1, self.v4)
        return IndexPolicy(tree, parameters=parameters, start=self.start, name=name)


@dataclass(frozen=True, kw_only=True)
class Catalogued:
    """A policy of the catalogue that is no index, with its parameters."""

    kind: Literal["catalogue"] = "catalogue"
    name: str
    parameters: dict[str, float]

    def policy(self, name: str) -> Policy:
        if self.name not in CATALOGUE:
            raise InputError(f"the catalogue has no policy {self.name!r}")
        return CATALOGUE[self.name].make(self.parameters, None, name)

    def on(self, prior: Prior) -> Catalogued:
        """The same policy, with what the prior says in numbers."""
        from .beliefs import stated

        known = (item.name for item in CATALOGUE[self.name].parameters)
        return replace(self, parameters=stated(self.parameters, known, prior))


@dataclass(frozen=True, kw_only=True)
class Solved:
    """The optimal policy for two or three arms: where it is, or what it was solved for."""

    kind: Literal["optimal"] = "optimal"
    horizon: int
    start: str
    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    file: str | None = None

    def policy(self, name: str) -> Policy:
        from ..priors import Bernoulli
        from .solved import OptimalPolicy

        if self.file is not None and Path(self.file).exists():
            found = OptimalPolicy.load(self.file)
            # Another policy may have taken its place.
            if replace(found.content(), file=self.file) == self:
                return found
        prior = Bernoulli(alpha=self.alpha, beta=self.beta)
        return OptimalPolicy(prior, self.horizon, start=self.start, name=name)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Regret on problems that learning never saw; an exact one has no error."""

    mean: float
    standard_error: float
    interval: tuple[float, float]
    method: Literal["exact", "monte-carlo"]
    episodes: int


@dataclass(frozen=True, kw_only=True)
class Origin:
    """How a policy was learned; `support` has the smallest and the largest reward, None if none is."""

    space: str
    prior: str
    arms: int
    horizon: int
    objective: str
    reference: str | None = None
    protocol: str
    optimizer: str
    seed: int
    stopped: str
    generations: int
    evaluations: int
    regret: Measured | None = None
    floor: float | None = None
    family: str | None = None
    support: tuple[float | None, float | None] | None = None
    feedback: Feedback = IMMEDIATE
    versions: dict[str, str]

    def __post_init__(self) -> None:
        check_horizon(self.horizon)
        if self.support is not None:
            Rewards.read(self.support)

    def note(
        self,
        doing: str,
        *,
        arms: int,
        horizon: int | None = None,
        prior: Prior | None = None,
        feedback: Feedback | None = None,
    ) -> str | None:
        """What a policy was learned for, if it is not what it is used for now; what is not known is not compared."""
        now = [
            (f"{self.arms} arms", f"{arms} arms"),
            (f"{self.horizon} plays", horizon and f"{horizon} plays"),
            (f"the prior {self.prior}", prior and f"the prior {prior}"),
            (f"feedback {self.feedback}", feedback and f"feedback {feedback}"),
        ]
        differing = [(was, here) for was, here in now if here is not None and was != here]
        if not differing:
            return None
        was, here = (", ".join(texts) for texts in zip(*differing, strict=True))
        return f"learned for {was}, and {doing} {here}; a policy learned for that may do better"


def rewards_of(prior: Prior) -> dict[str, Any]:
    """What Origin says of the rewards: their family, and the range that they lie in."""
    bounds = tuple(bound if abs(bound) < float("inf") else None for bound in prior.family.support)
    return {"family": prior.family.name, "support": bounds}


@dataclass(frozen=True, kw_only=True, repr=False)
class PolicyFile(Shown):
    """What a policy file holds."""

    format: Literal["metabandit policy"] = FORMAT
    version: Literal[1] = VERSION
    policy: Expression | Power | Catalogued
    learned: Origin | None = None

    def headline(self) -> str:
        known = self.learned
        of = (
            "" if known is None else f" for {known.horizon} plays, {known.arms} arms, {known.prior}"
        )
        return f"{self.policy.kind} policy{of}"

    def write(self, path: Path) -> None:
        """Write the file; a crash in the middle leaves the old one, or none."""
        try:
            content = json.dumps(write_data(self), indent=2, allow_nan=False) + "\n"
        except ValueError:
            raise InputError(
                "a policy with numbers that are not finite cannot be written"
            ) from None
        with written(path, "the policy") as file:
            file.write(content.encode())


def read_file(path: str | Path) -> PolicyFile:
    """A policy file, or an error that says what is wrong with it."""
    return _check_content(read_json(path, "a policy file"), path)


def policy_of(content: object, where: str) -> Policy:
    """The policy that the content of a policy file describes; errors name where it is from."""
    file = _check_content(content, where)
    try:
        policy = file.policy.policy(where)
    except InputError as error:
        raise InputError(f"{where} is damaged: {error}") from None
    policy.learned = file.learned
    return policy


def _check_content(value: Any, path: str | Path) -> PolicyFile:
    if isinstance(value, dict) and value.get("format") == ADVICE_FORMAT:
        value = value.get("policy_file")  # the policy that was recommended
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        hint = ""
        if isinstance(value, dict) and value.get("format") == PLAYER_FORMAT:
            hint = ", but a player's: load_player reads it"
        raise InputError(f'{path} is not a policy file{hint}: it has no "format": "{FORMAT}"')
    if value.get("version") != VERSION or isinstance(value["version"], bool):
        raise InputError(
            f"{path} has version {value.get('version')!r}; this metabandit reads version {VERSION}. "
            f"Update metabandit, or learn the policy again"
        )
    try:
        return read_data(PolicyFile, value)
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}") from None


def load(path: str | Path) -> Policy:
    """Read a policy from a file; tables call it by the name of the file.

    `.json` files come from `learn`, `search` and `advise`, `.npz` files from `optimal`. To play the policy, see
    `Policy.player`.
    """
    if str(path).endswith(".npz"):
        from .solved import OptimalPolicy

        return OptimalPolicy.load(path)
    return policy_of(read_json(path, "a policy file"), str(path))


def check_target(path: object, *, resume: bool = False, force: bool = False) -> Path:
    """The path of a policy file to write; refused where something is, or nothing can be written."""
    if resume and force:
        raise InputError("--resume goes on with a run and --force starts over; give one of them")
    return check_new(path, (".json",), "a policy file", force=resume or force)


def read_target(
    out: object, unfinished: Callable[[Path], Path], *, resume: bool, force: bool
) -> Path | None:
    """The policy file that a run writes, beside which nothing of an unfinished run may stand.

    unfinished: from the policy file to the file that such a run leaves
    """
    if out is None:
        if resume or force:
            raise InputError("--resume and --force need the policy file: give --out")
        return None
    target = check_target(out, resume=resume, force=force)
    path = unfinished(target)
    if path.exists() and not (resume or force):
        raise InputError(
            f"{path} is there, of a run that did not end: continue it (--resume), or begin again "
            f"(--force)"
        )
    return target
