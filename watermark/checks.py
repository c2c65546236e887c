"""Checks of arguments against the annotations of a signature.

Python would count the letters of a string as channels and take half a millisecond for a size; the
wrong result would come much later and somewhere else.

>>> @checked
... class Bucket:
...     def __init__(self, size_ms: int) -> None:
...         self.size_ms = size_ms
>>> Bucket("5 s")
Traceback (most recent call last):
watermark.errors.InvalidParameterError: Bucket got size_ms '5 s', expected int
"""

import types
import typing
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from watermark.errors import InvalidParameterError

_C = TypeVar("_C")
_Check = Callable[[Any], bool]
_LONGEST = 60


def checked(cls: type[_C]) -> type[_C]:
    """Check the arguments of a class's constructor and public methods, as a decorator.

    Methods that run for each record are `unchecked` and check their arguments themselves.
    """
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, classmethod):
            setattr(cls, name, classmethod(_holding(member.__func__)))
        elif isinstance(member, types.FunctionType) and not hasattr(member, "unchecked"):
            setattr(cls, name, _holding(member))
    return cls


def unchecked(method: _C) -> _C:
    method.unchecked = True  # type: ignore[attr-defined]
    return method


def refused(where: str, parameter: str, value: object, expected: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"{where} got {parameter} {_shown(value)}, expected {expected}",
        hint=f"Give {parameter} as {expected}.",
    )


def require_time(where: str, parameter: str, value: object) -> None:
    """Raise InvalidParameterError unless `value` is a whole number of milliseconds."""
    if type(value) is not int:
        raise refused(where, parameter, value, "int")


def require_positive(what: str, parameter: str, value: int, unit: str = " ms") -> None:
    """Raise InvalidParameterError unless `value` is a whole number above 0."""
    require_time(what, parameter, value)
    if value <= 0:
        raise InvalidParameterError(
            f"{what} has a {parameter} of {value}{unit}, expected more than 0",
            hint=f"Give a {parameter} of 1{unit} or more.",
        )


def require_not_negative(what: str, parameter: str, value: int, unit: str = " ms") -> None:
    """Raise InvalidParameterError unless `value` is a whole number, 0 or above."""
    require_time(what, parameter, value)
    if value < 0:
        raise InvalidParameterError(
            f"{what} has a {parameter} of {value}{unit}, expected 0 or more",
            hint=f"Give a {parameter} of 0{unit} or more.",
        )


def _holding(function: Callable[..., Any]) -> Callable[..., Any]:
    names = list(signature(function).parameters)
    if len(names) == 1:
        return function  # only `self`
    checks: dict[str, tuple[_Check, str]] | None = None

    @wraps(function)
    def held(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 (those of the function)
        nonlocal checks
        if checks is None:  # late, because annotations may name later definitions
            checks = _checks_of(function)
        named = zip(names, args, strict=False)
        for name, value in (*named, *kwargs.items()) if kwargs else named:
            check = checks.get(name)
            if check is not None and not check[0](value):
                where = function.__qualname__.removesuffix(".__init__")
                raise refused(where, name, value, check[1])
        return function(*args, **kwargs)

    return held


def _checks_of(function: Callable[..., Any]) -> dict[str, tuple[_Check, str]]:
    hints = typing.get_type_hints(function)
    checks = {name: (_check_of(hint), _named(hint)) for name, hint in hints.items()}
    return {name: check for name, check in checks.items() if check[0] is not _anything}


def _check_of(hint: Any) -> _Check:  # noqa: ANN401 (annotations have no common type)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        either = [_check_of(each) for each in arguments]
        return lambda value: any(check(value) for check in either)
    if isinstance(origin, type):
        return _generic(origin, arguments)
    if hint is int:
        return lambda value: type(value) is int
    if hint is float:
        return lambda value: type(value) in (int, float)
    if not isinstance(hint, type) or hint is Any or hint is object:
        return _anything
    if getattr(hint, "_is_protocol", False):
        members = [name for name in vars(hint) if not name.startswith("_")]
        return lambda value: all(hasattr(value, name) for name in members)
    return lambda value: isinstance(value, hint)


def _generic(origin: type, arguments: tuple[Any, ...]) -> _Check:
    if issubclass(origin, Mapping):
        key, item = map(_check_of, arguments)
        return lambda value: (
            isinstance(value, origin) and all(key(each) and item(value[each]) for each in value)
        )
    if issubclass(origin, Collection) and (origin is not tuple or arguments[1:] == (...,)):
        item = _check_of(arguments[0])
        return lambda value: (
            isinstance(value, origin)
            and not isinstance(value, str | bytes | Mapping)
            and all(map(item, value))
        )
    return lambda value: isinstance(value, origin)


def _anything(value: object) -> bool:
    return True


def _named(hint: Any) -> str:  # noqa: ANN401 (annotations have no common type)
    if hint is types.NoneType:
        return "None"
    if isinstance(hint, type) and not typing.get_args(hint):
        return hint.__name__
    arguments = [_named(each) for each in typing.get_args(hint) if each is not ...]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(arguments)
    if typing.get_origin(hint) is Callable:
        return "a function"
    name = getattr(typing.get_origin(hint), "__name__", str(hint))
    return f"{name} of {' and '.join(arguments)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
