"""The description of the service for programs (OpenAPI 3.1), made from the operations and their bodies."""

from __future__ import annotations

import types
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

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
