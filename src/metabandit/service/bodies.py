"""What clients send: JSON, read into dataclasses that check it and that the docs are made from.

The docs are a description of the service for programs (OpenAPI 3.1), made from operations and their bodies.

The type of a field is `Annotated[type, what the docs say of it]`.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ..data import read_data
from ..errors import InputError
from ..play import ArmName

T = TypeVar("T")

# What one request may ask for.
MOST_CHOICES = 10_000
MOST_ARMS = 1_000
LONGEST_NAME = 200


def _limited(name: object) -> None:
    if isinstance(name, str) and len(name) > LONGEST_NAME:
        raise ValueError(f"the name of an arm has at most {LONGEST_NAME} letters, not {len(name)}")


def _not_too_many(items: tuple[Any, ...], what: str) -> None:
    if not 1 <= len(items) <= MOST_CHOICES:
        raise ValueError(f"{what}: 1 to {MOST_CHOICES:,} at a time, not {len(items):,}")


@dataclass(frozen=True, kw_only=True)
class New:
    """An experiment to begin; what is left out is as in `Policy.player`."""

    policy: Annotated[
        str | dict[str, Any],
        "A name such as ucb1-tuned, an expression such as r + 1/(n + 2), or the content of a policy file.",
    ]
    arms: Annotated[tuple[ArmName, ...], "The names of the arms: texts or whole numbers."]
    seed: Annotated[int, "For ties and for policies that play at random."] = 0
    horizon: Annotated[int | None, "Plays in all, for policies that read it."] = None
    prior: Annotated[str | None, "What is known of the arms, as in bernoulli:alpha=1,beta=9."] = (
        None
    )
    rewards: Annotated[
        Literal["binary"] | tuple[float | None, float | None] | None,
        "binary (0 and 1), or the smallest and the largest reward.",
    ] = None
    min_share: Annotated[float | None, "The probability that every arm keeps."] = None
    pending: Annotated[
        Literal["count", "ignore"] | None,
        "Whether choices that wait for their reward count as plays.",
    ] = None
    on_duplicate: Annotated[
        Literal["refuse", "replace"], "What a second, different reward for an id does."
    ] = "refuse"
    expire: Annotated[float | None, "Seconds after which a choice waits no longer."] = None
    expired: Annotated[float | None, "The reward that then counts; none by default."] = None

    def __post_init__(self) -> None:
        if len(self.arms) > MOST_ARMS:
            raise ValueError(
                f"an experiment has at most {MOST_ARMS:,} arms here, not {len(self.arms):,}"
            )
        for name in self.arms:
            _limited(name)


@dataclass(frozen=True, kw_only=True)
class Choose:
    """How many choices to make."""

    count: Annotated[int | None, "So many choices; one if it is left out."] = None

    def __post_init__(self) -> None:
        if self.count is not None and not 1 <= self.count <= MOST_CHOICES:
            raise ValueError(f"count: 1 to {MOST_CHOICES:,}, not {self.count:,}")


@dataclass(frozen=True, kw_only=True)
class Reward:
    """The reward of a choice."""

    id: Annotated[str, "The id of the choice."]
    value: Annotated[float, "Its reward."]


@dataclass(frozen=True, kw_only=True)
class RewardMany:
    """The rewards of many choices: all are counted, or none if one is refused."""

    rewards: Annotated[tuple[Reward, ...], "Pairs of id and value."]

    def __post_init__(self) -> None:
        _not_too_many(self.rewards, "rewards")


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch of plays to spread over the arms."""

    plays: Annotated[int, "The plays of the batch."]

    def __post_init__(self) -> None:
        if not 1 <= self.plays <= 100 * MOST_CHOICES:
            raise ValueError(f"plays: 1 to {100 * MOST_CHOICES:,}, not {self.plays:,}")


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Rewards of an arm by their number and sum."""

    arm: Annotated[ArmName, "The arm."]
    plays: Annotated[int, "How many rewards."]
    total: Annotated[float, "Their sum."]
    squares: Annotated[
        float | None, "The sum of their squares; not needed for rewards of 0 and 1."
    ] = None


@dataclass(frozen=True, kw_only=True)
class CountMany:
    """Counts of arms, such as a warehouse has: all are counted, or none if one is refused."""

    counts: Annotated[tuple[Counted, ...], "The counts, an entry per arm."]

    def __post_init__(self) -> None:
        _not_too_many(self.counts, "counts")


def read_body(kind: type[T], content: bytes) -> T:
    """The body of a request, or an error that says what is wrong with it."""
    try:
        value = json.loads(content or b"{}", parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is no JSON: {error}") from None
    try:
        return read_data(kind, value, "the body")
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(error)) from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number in JSON")


_PLAIN = {str: "string", float: "number", int: "integer", bool: "boolean", types.NoneType: "null"}
_WRONG = {
    "400": "The request is wrong; nothing was changed.",
    "401": "The token is missing or wrong.",
    "404": "There is no such experiment.",
    "413": "The body is too large.",
    "415": "The body is not declared as JSON.",
    "503": "The store does not answer; try again.",
}


@dataclass(frozen=True)
class Operation:
    """Something that can be asked.

    handler: the method of the service that answers
    body: the dataclass of what is sent, if anything is
    answer: what comes back, by name with its JSON type
    """

    method: str
    path: str
    handler: str
    summary: str
    body: type | None = None
    answer: dict[str, str] | None = None


def _schema(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type that `data.read_data` reads."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(item) for item in inner]}
    if origin is tuple:
        if inner[1:] == (...,):
            return {"type": "array", "items": _schema(inner[0])}
        size = len(inner)
        items = [_schema(item) for item in inner]
        return {"type": "array", "prefixItems": items, "minItems": size, "maxItems": size}
    if origin is dict:
        return {"type": "object"}
    if is_dataclass(kind):
        return _object(kind)
    return {"type": _PLAIN[kind]}


def _object(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    found: dict[str, Any] = {}
    for item in fields(kind):
        inner, text = get_args(hints[item.name])
        found[item.name] = _schema(inner) | {"description": text}
        if item.default is not MISSING and item.default is not None:
            found[item.name]["default"] = item.default
    needed = [item.name for item in fields(kind) if item.default is MISSING]
    schema = {"type": "object", "description": kind.__doc__, "properties": found}
    return schema | {"additionalProperties": False} | ({"required": needed} if needed else {})


def _answer(operation: Operation) -> dict[str, Any]:
    if operation.answer is None:
        return {"description": "A page.", "content": {"text/html": {}}}
    properties = {name: {"type": kind} for name, kind in operation.answer.items()}
    schema = {"type": "object", "properties": properties}
    return {"description": "Done.", "content": {"application/json": {"schema": schema}}}


def _describe(operation: Operation) -> dict[str, Any]:
    named = "{name}" in operation.path
    statuses = ["503"]
    if operation.answer is not None and operation.path.startswith("/experiments"):
        statuses += ["401"] + (["404"] if named and operation.method != "PUT" else [])
    if operation.body is not None:
        statuses += ["400", "413", "415"]
    answers = {"200": _answer(operation)}
    if operation.method == "PUT":
        answers |= {
            "201": _answer(operation),
            "409": {"description": "It was begun with other settings."},
        }
    answers |= {status: {"description": _WRONG[status]} for status in sorted(statuses)}
    found: dict[str, Any] = {
        "operationId": operation.handler,
        "summary": operation.summary,
        "responses": answers,
    }
    if not operation.path.startswith("/experiments") or operation.answer is None:
        found["security"] = []
    if named:
        schema = {"type": "string", "minLength": 1, "maxLength": 200}
        found["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": schema}]
    if operation.body is not None:
        content = {"application/json": {"schema": _object(operation.body)}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def describe(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """The whole description."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        entry = _describe(operation)
        if operation.handler == "show_page":  # one page for two paths
            entry["operationId"] += str(len(paths))
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
    return {
        "openapi": "3.1.0",
        "info": {"title": "metabandit", "version": version},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }
