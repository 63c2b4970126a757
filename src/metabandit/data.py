"""Convert plain data from files to dataclasses and back, checked field by field.

It needs the standard library only: a service that plays a policy reads its file at start.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def read_data(kind: type[T], value: Any, where: str = "") -> T:
    """Convert a JSON value to a type; a ValueError names the place and the rule that it breaks.

    Types are dataclasses, float (finite), int, str, bool, None, Any, Literal, dict[str, ...],
    tuple[..., ...] and unions; the field `kind` tells dataclasses of a union apart. A field's metadata
    may name its `key`, where that is another name.
    """
    return cast(T, _read(kind, value, where))


def _fault(where: str, rule: str, value: Any) -> ValueError:
    text = repr(value)
    shown = text if len(text) <= 60 else text[:57] + "..."
    return ValueError(f"{where or 'the file'}: must be {rule}, not {shown}")


def _read(kind: Any, value: Any, where: str) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return value
    if origin is Literal:
        for known in get_args(kind):
            if value == known and type(value) is type(known):
                return value
        raise _fault(where, " or ".join(map(repr, get_args(kind))), value)
    if origin in (Union, types.UnionType):
        return _read_one_of(get_args(kind), value, where)
    if origin is tuple:
        return _read_tuple(get_args(kind), value, where)
    if origin is dict:
        if not isinstance(value, dict):
            raise _fault(where, "an object", value)
        inner = get_args(kind)[1]
        return {key: _read(inner, item, _place(where, key)) for key, item in value.items()}
    if is_dataclass(kind):
        return _read_object(cast(type, kind), value, where)
    return _read_plain(kind, value, where)


def _read_plain(kind: Any, value: Any, where: str) -> Any:
    if kind is float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _fault(where, "a number", value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise _fault(where, "a finite number", value)
        return number
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _fault(where, "a whole number", value)
        return value
    names = {str: "a text", bool: "true or false", types.NoneType: "null"}
    if not isinstance(value, kind):
        raise _fault(where, names[kind], value)
    return value


def _place(where: str, key: object) -> str:
    return f"{where}.{key}" if where else str(key)


def _read_tuple(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if not isinstance(value, (list, tuple)):
        raise _fault(where, "a list", value)
    each = kinds[:1] * len(value) if kinds[1:] == (...,) else kinds
    if len(each) != len(value):
        raise _fault(where, f"a list of {len(each)} values", value)
    return tuple(
        _read(kind, item, _place(where, position))
        for position, (kind, item) in enumerate(zip(each, value, strict=True))
    )


def _read_one_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    objects = [kind for kind in kinds if is_dataclass(kind)]
    if len(objects) > 1 and isinstance(value, dict):
        by_name = {get_args(_types(cast(type, kind))["kind"])[0]: kind for kind in objects}
        name = value.get("kind")
        if not isinstance(name, str) or name not in by_name:
            raise _fault(_place(where, "kind"), " or ".join(map(repr, by_name)), name)
        return _read(by_name[name], value, where)
    if value is None and types.NoneType in kinds:
        return None
    # The text alone: an error that is kept would keep alive all that its frames know.
    failure = ""
    for kind in kinds:
        try:
            return _read(kind, value, where)
        except ValueError as error:
            failure = failure or str(error)
    raise ValueError(failure)


@cache
def _types(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _key(field: Field[Any]) -> str:
    return str(field.metadata.get("key", field.name))


def _read_object(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise _fault(where, "an object", value)
    types_of = _types(kind)
    known = {_key(field): field for field in fields(kind)}
    for key in value:
        if key not in known:
            raise ValueError(f"{_place(where, key)}: there is no such field")
    found = {}
    for key, field in known.items():
        if key in value:
            found[field.name] = _read(types_of[field.name], value[key], _place(where, key))
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{_place(where, key)}: it is missing")
    try:
        return kind(**found)
    except ValueError as error:
        raise ValueError(f"{where or 'the file'}: {error}") from None


def write_data(value: Any) -> Any:
    """Convert to plain data for JSON, without fields that are None."""
    if is_dataclass(value):
        pairs = ((_key(field), getattr(value, field.name)) for field in fields(value))
        return {key: write_data(item) for key, item in pairs if item is not None}
    if isinstance(value, Mapping):
        return {key: write_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [write_data(item) for item in value]
    return value
