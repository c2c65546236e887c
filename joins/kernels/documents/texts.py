"""JSON as Python's values and back, as Flink's parser (Jackson) reads and writes it.

Members of objects are written in the order of their names, numbers with a point as Java's DOUBLE.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

from joins.kernels.expressions.conversion import java_double
from joins.kernels.expressions.result_limits import MAX_VALUE_BYTES

Json = Any
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r",
            "\t": "\\t"}  # fmt: skip
_TO_ESCAPE = re.compile(r'["\\\x00-\x1f]')


class JsonError(ValueError):
    """A text is no JSON, or a path does not lead anywhere in it."""


class Raw(str):
    """A text that is JSON already."""

    __slots__ = ()


def _no_constant(name: str) -> NoReturn:
    raise JsonError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def parsed(text: str) -> Json:
    """The value of a JSON text.

    Raises:
        JsonError: it is none.
    """
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise JsonError(str(error)) from error


def written(value: Json) -> str:
    """A value as JSON without blanks.

    Raises:
        TooLongError: it has more than 16 MiB.
    """
    pieces = _JsonText([], MAX_VALUE_BYTES)
    pieces.write(value)
    return "".join(pieces.texts)


class TooLongError(ValueError):
    """A JSON text becomes longer than a value may be."""


@dataclass(slots=True)
class _JsonText:
    """A text in pieces, which may have so many characters more."""

    texts: list[str]
    rest: int

    def add(self, text: str) -> None:
        self.rest -= len(text)
        if self.rest < 0:
            raise TooLongError(f"more than {MAX_VALUE_BYTES >> 20} MiB")
        self.texts.append(text)

    def write(self, value: Json) -> None:
        if isinstance(value, dict):
            members = sorted(value.items(), key=lambda member: _in_java(member[0]))
            self._each("{}", [(f"{quoted(k)}:", v) for k, v in members])
        elif isinstance(value, list):
            self._each("[]", [("", each) for each in value])
        else:
            self.add(_scalar(value))

    def _each(self, around: str, parts: list[tuple[str, Json]]) -> None:
        self.add(around[0])
        for at, (before, value) in enumerate(parts):
            self.add(f"{',' if at else ''}{before}")
            self.write(value)
        self.add(around[1])


def _scalar(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value) if isinstance(value, Raw) else quoted(value)
    if isinstance(value, float):
        return number_text(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def number_text(number: float, text: Callable[[float], str] = java_double) -> str:
    shown = text(number)
    return shown if shown[-1].isdigit() else f'"{shown}"'


def quoted(text: str) -> str:
    return f'"{_TO_ESCAPE.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}"


def _in_java(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
