"""Dataclasses as JSON documents and back, by their types."""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

_Kind = TypeVar("_Kind")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 (a type)
    return TypeAdapter(kind)


def as_json(value: Any) -> dict[str, Any]:  # noqa: ANN401 (a dataclass)
    document: dict[str, Any] = _adapter(cast(Any, type(value))).dump_python(value, mode="json")
    return document


def from_json(kind: type[_Kind], document: Mapping[str, Any]) -> _Kind:
    """`document` as `kind`: members that it lacks have their defaults, others are ignored."""
    value: _Kind = _adapter(cast(Any, kind)).validate_python(document)
    return value
