"""Policy files: a policy as JSON that a person can read, checked when it is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from ..errors import InputError
from ..expressions import names, parse
from ..files import check_new, written
from .base import IndexPolicy, Policy
from .power import FIRST_VALUES, feature, power_tree, powers, weight_names
from .registry import CATALOGUE
from .start import EACH_ONCE, PRIOR_COUNTS, Start

FORMAT: Literal["metabandit policy"] = "metabandit policy"
VERSION: Literal[1] = 1


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class StartSpec(_Model):
    """How the policy begins; the pseudo-observations are for all arms, or one number an arm."""

    kind: Literal["each-once", "prior-counts"]
    plays: FiniteFloat | tuple[FiniteFloat, ...] | None = None
    sum: FiniteFloat | tuple[FiniteFloat, ...] | None = None
    squares: FiniteFloat | tuple[FiniteFloat, ...] | None = None

    @model_validator(mode="after")
    def _complete(self) -> StartSpec:
        if self.kind == PRIOR_COUNTS and None in (self.plays, self.sum, self.squares):
            raise ValueError("the start prior-counts needs plays, sum and squares")
        if self.kind == EACH_ONCE and not self.plays is self.sum is self.squares is None:
            raise ValueError("the start each-once has no pseudo-observations")
        return self

    @classmethod
    def of(cls, start: Start) -> StartSpec:
        return cls.model_validate(
            {
                "kind": start.kind,
                "plays": start.plays,
                "sum": start.reward_sum,
                "squares": start.square_sum,
            }
        )

    def start(self) -> Start:
        return Start(self.kind, self.plays, self.sum, self.squares)


class Expression(_Model):
    """An index as text, with values for its parameters."""

    kind: Literal["expression"] = "expression"
    expression: str
    parameters: dict[str, FiniteFloat]
    start: StartSpec

    @model_validator(mode="after")
    def _complete(self) -> Expression:
        wanted = names(parse(self.expression, parameters=None))
        if set(wanted) != set(self.parameters):
            raise ValueError(f"the parameters of {self.expression} are {', '.join(wanted)}")
        return self

    def policy(self, name: str) -> Policy:
        return IndexPolicy(
            self.expression, parameters=self.parameters, start=self.start.start(), name=name
        )


def _meanings(v1: str) -> dict[str, str]:
    return {"v1": FIRST_VALUES[v1], "v2": "1/sqrt(n)", "v3": "r", "v4": "s"}


class Power(_Model):
    """A Power-P index: what v1 is, and the weight of each feature; those left out are zero."""

    kind: Literal["power"] = "power"
    degree: Annotated[int, Field(ge=1, le=4)]
    v1: Literal["t", "h"]
    values: dict[str, str]
    weights: Annotated[dict[str, FiniteFloat], Field(min_length=1)]
    start: StartSpec

    @model_validator(mode="after")
    def _known(self) -> Power:
        if self.values != _meanings(self.v1):
            raise ValueError(f"values must be {_meanings(self.v1)}: what v1, v2, v3 and v4 are")
        known = {feature(exponents) for exponents in powers(self.degree)}
        for name in self.weights:
            if name not in known:
                raise ValueError(f"power-{self.degree} has no feature {name!r}")
        return self

    @classmethod
    def of(cls, degree: int, v1: str, parameters: dict[str, float], start: Start) -> Power:
        weights = {
            feature(exponents): parameters[name]
            for exponents, name in zip(powers(degree), weight_names(degree), strict=True)
            if parameters[name] != 0.0
        }
        return cls.model_validate(
            {
                "degree": degree,
                "v1": v1,
                "values": _meanings(v1),
                "weights": weights,
                "start": StartSpec.of(start),
            }
        )

    def policy(self, name: str) -> Policy:
        parameters = {
            parameter: self.weights.get(feature(exponents), 0.0)
            for exponents, parameter in zip(
                powers(self.degree), weight_names(self.degree), strict=True
            )
        }
        tree = power_tree(self.degree, self.v1)
        return IndexPolicy(tree, parameters=parameters, start=self.start.start(), name=name)


class Catalogued(_Model):
    """A policy of the catalogue that is no index, with its parameters."""

    kind: Literal["catalogue"] = "catalogue"
    name: str
    parameters: dict[str, FiniteFloat]

    def policy(self, name: str) -> Policy:
        if self.name not in CATALOGUE:
            raise InputError(f"the catalogue has no policy {self.name!r}")
        return CATALOGUE[self.name].make(self.parameters, None, name)


class Measured(_Model):
    """Regret on problems that learning never saw; an exact one has no error."""

    mean: FiniteFloat
    standard_error: FiniteFloat
    interval: tuple[FiniteFloat, FiniteFloat]
    method: Literal["exact", "monte-carlo"]
    episodes: int


class Origin(_Model):
    """How a policy was learned."""

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
    floor: FiniteFloat | None = None
    versions: dict[str, str]


class PolicyFile(_Model):
    """What a policy file holds."""

    format: Literal["metabandit policy"] = FORMAT
    version: Literal[1] = VERSION
    policy: Annotated[Expression | Power | Catalogued, Field(discriminator="kind")]
    learned: Origin | None = None

    def write(self, path: Path) -> None:
        """Write the file; a crash in the middle leaves the old one, or none."""
        text = json.dumps(self.model_dump(mode="json", exclude_none=True), indent=2) + "\n"
        with written(path, "the policy") as file:
            file.write(text.encode())


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where or 'the file'}: {first['msg']}"


def read_file(path: str | Path) -> PolicyFile:
    """A policy file, or an error that says what is wrong with it."""
    try:
        content = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"the file {path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the file {path} cannot be read: {error}") from None
    try:
        value: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is damaged, or no policy file: it is not valid JSON ({error})"
        ) from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise InputError(f'{path} is no policy file: it has no "format": "{FORMAT}"')
    if value.get("version") != VERSION or isinstance(value["version"], bool):
        raise InputError(
            f"{path} has version {value.get('version')!r}; this metabandit reads version {VERSION}. "
            f"Update metabandit, or learn the policy again"
        )
    try:
        return PolicyFile.model_validate_json(content)
    except ValidationError as error:
        raise InputError(f"{path} is damaged: {_explain(error)}") from None


def read_policy(path: str | Path) -> Policy:
    """The policy of a file; tables call it by the file's name."""
    file = read_file(path)
    try:
        return file.policy.policy(str(path))
    except InputError as error:
        raise InputError(f"{path} is damaged: {error}") from None


def check_target(path: object, *, resume: bool = False, force: bool = False) -> Path:
    """The path of a policy file to write; refused where something is, or nothing can be written."""
    if not isinstance(path, (str, Path)):
        raise InputError(f"a policy file is named by a text or a Path, not {path!r}")
    if resume and force:
        raise InputError("--resume goes on with a run and --force begins it anew; give one of them")
    return check_new(path, (".json",), "a policy file", force=resume or force)
