"""JSON as Python values, as in Jackson; paths as in Jayway's JsonPath.

Members are written in the order of their names. A path that may lead to several values gives a list
of those that exist; several names at its end give one object. Refused are filters, functions other
than `length()` at the end of a path to one value, and `..` before indexes or `*` that are not last.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, NoReturn

from joins.kernels.expressions.conversion import java_double
from joins.kernels.expressions.operation import MAX_VALUE_BYTES

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
    """The value of a JSON text; raises JsonError if it is invalid."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise JsonError(str(error)) from error


def written(value: Json) -> str:
    """A value as JSON without blanks; raises TooLongError above 16 MiB."""
    pieces = _JsonText([], MAX_VALUE_BYTES)
    pieces.write(value)
    return "".join(pieces.texts)


class TooLongError(ValueError):
    """A JSON text becomes longer than a value may be."""


@dataclass(slots=True)
class _JsonText:
    """A text in pieces; `rest` is the number of characters left."""

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


MAX_PATH = 1_000
_MODE = re.compile(r"\s*(strict|lax)\s+(.+)", re.IGNORECASE | re.DOTALL)
_NAME = re.compile(r"[^.\[\]()\s'\"*?@,:]+")
_INDEXES = re.compile(r"\s*(-?\d+)\s*(?:,\s*-?\d+\s*)*")
_SLICE = re.compile(r"\s*(-?\d+)?\s*:\s*(-?\d+)?\s*")
_QUOTED = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*""", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_MOST_VALUES = 100_000


class PathError(ValueError):
    """A text is no path, or one with parts that are not supported."""


@dataclass(frozen=True, slots=True)
class Names:
    """Members of an object."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Indexes:
    """Elements of an array, from 0, or from the end if negative."""

    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """Elements from one index up to another one."""

    first: int | None
    stop: int | None


@dataclass(frozen=True, slots=True)
class Every:
    """All members or elements."""


@dataclass(frozen=True, slots=True)
class Below:
    """A value and all that is inside of it, before the next step."""


@dataclass(frozen=True, slots=True)
class Length:
    """The number of elements or members."""


Step = Names | Indexes | Slice | Every | Below | Length


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path; a `strict` one fails where it does not lead anywhere."""

    steps: tuple[Step, ...]
    strict: bool

    @property
    def is_definite(self) -> bool:
        last = len(self.steps) - 1
        return all(_is_definite(step, leaf=at == last) for at, step in enumerate(self.steps))

    def read(self, document: Json) -> Json:
        """The value at the path, None if a lax one leads nowhere; raises JsonError."""
        if document is None:
            raise JsonError("the document is null")
        values: list[Json] = []
        for value in self._reached(document, 0, definite=True):
            values.append(value)
            if len(values) > _MOST_VALUES:
                raise JsonError(f"the path leads to more than {_MOST_VALUES} values")
        if not self.is_definite:
            return values
        if not values and self.strict:
            raise JsonError("the path leads nowhere")
        return values[-1] if values else None

    def _reached(self, value: Json, at: int, *, definite: bool) -> Iterator[Json]:
        """The values behind the step at `at`; `definite` says that one value can reach it.

        Only there a strict path fails at a value of another kind, and at a member that is missing
        and not the last step.
        """
        if at == len(self.steps):
            yield value
            return
        step, leaf = self.steps[at], at == len(self.steps) - 1
        must = self.strict and definite
        inner: Iterable[Json]
        if isinstance(step, Below):
            for node in _nodes(value):
                if _begins(node, self.steps[at + 1]):
                    yield from self._reached(node, at + 1, definite=False)
            return
        if isinstance(step, Every):
            inner = _inside(value)
        elif isinstance(step, Length):
            inner = [len(value) if isinstance(value, dict | list) else None]
        elif isinstance(step, Names) and isinstance(value, dict):
            there = {name: value[name] for name in step.names if name in value}
            if must and not leaf and not there and len(step.names) == 1:
                raise JsonError("the path leads to a member that is missing")
            inner = [there] if leaf and len(step.names) > 1 else there.values()
        elif isinstance(step, Indexes | Slice) and isinstance(value, list):
            inner = _elements(value, step)
        elif must:
            raise JsonError("the path leads into a value of another kind")
        else:
            return
        definite = definite and _is_definite(step, leaf=leaf)
        for each in inner:
            yield from self._reached(each, at + 1, definite=definite)


def _is_definite(step: Step, *, leaf: bool) -> bool:
    """True if the step leads to one value; several names at the end make one object."""
    if isinstance(step, Names):
        return leaf or len(step.names) == 1
    return isinstance(step, Length) or (isinstance(step, Indexes) and len(step.indexes) == 1)


def _nodes(value: Json) -> Iterator[Json]:
    if isinstance(value, dict | list):
        yield value
        for inner in _inside(value):
            yield from _nodes(inner)


def _begins(node: Json, step: Step) -> bool:
    """True if the path goes on from `node`, by the step behind `..`."""
    if isinstance(step, Names):
        return isinstance(node, dict) and all(name in node for name in step.names)
    return isinstance(node, list) or isinstance(step, Every)


def _elements(values: list[Json], step: Indexes | Slice) -> list[Json]:
    count = len(values)
    if isinstance(step, Indexes):
        at: Iterable[int] = step.indexes
    elif step.first is None or step.stop is None:
        return values[step.first : step.stop]
    else:
        at = range(step.first, min(step.stop, count))  # from below zero on up to zero and beyond
    return [values[index] for index in at if -count <= index < count]


def _inside(value: Json) -> Collection[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


@lru_cache(maxsize=512)
def path_of(text: str) -> JsonPath:
    """Parse `[strict|lax] path`, strict by default; raises PathError if it is invalid."""
    mode = _MODE.fullmatch(text)
    plain = (mode[2] if mode else text).strip()
    if not plain or len(plain) > MAX_PATH:
        raise PathError(text[:100])
    if plain[0] != "$":
        plain = f"$.{plain}"
    steps = tuple(_steps(plain))
    path = JsonPath(steps, strict=mode is None or mode[1].lower() == "strict")
    # Jayway's answers to these follow no rule.
    below = any(
        isinstance(step, Below) and not isinstance(behind, Names)
        for step, behind in pairwise(steps[:-1])
    )
    lengths = [at for at, step in enumerate(steps, 1) if isinstance(step, Length)]
    if below or (lengths and (lengths[0] < len(steps) or not path.is_definite)):
        raise PathError(text)
    return path


def _steps(text: str) -> Iterator[Step]:
    at = 1
    while at < len(text):
        if text.startswith("..", at):
            yield Below()
            at += 2
            if text[at : at + 1] == "[":
                continue
        elif text[at] == ".":
            at += 1
            if text[at : at + 1] == "[":
                continue
        elif text[at] != "[":
            raise PathError(text)
        if text[at : at + 1] == "[":
            step, at = _brackets(text, at + 1)
        else:
            step, at = _dotted(text, at)
        yield step


def _dotted(text: str, at: int) -> tuple[Step, int]:
    if text[at : at + 1] == "*":
        return Every(), at + 1
    name = _NAME.match(text, at)
    if name is None:
        raise PathError(text)
    if text.startswith("()", name.end()):
        if name[0] not in ("length", "size"):
            raise PathError(text)
        return Length(), name.end() + 2
    return Names((name[0],)), name.end()


def _plain(escaped: re.Match[str]) -> str:
    return chr(int(escaped[1], 16)) if escaped[1] else _CONTROLS.get(escaped[2], escaped[2])


def _brackets(text: str, at: int) -> tuple[Step, int]:
    end = at
    step: Step
    if (match := re.compile(r"\s*\*\s*").match(text, at)) is not None:
        step, end = Every(), match.end()
    elif (match := _SLICE.match(text, at)) is not None and ":" in match[0]:
        first, stop = (None if part is None else int(part) for part in match.groups())
        step, end = Slice(first, stop), match.end()
    elif (match := _INDEXES.match(text, at)) is not None:
        step, end = Indexes(tuple(map(int, match[0].split(",")))), match.end()
    else:
        names = []
        while (match := _QUOTED.match(text, end)) is not None:
            names.append(_ESCAPED.sub(_plain, match[1] if match[1] is not None else match[2]))
            end = match.end()
            if text[end : end + 1] != ",":
                break
            end += 1
        if not names:
            raise PathError(text)
        step = Names(tuple(names))
    if text[end : end + 1] != "]":
        raise PathError(text)
    return step, end + 1
