"""SQL's functions of JSON: the value of a text at a path, and values written as JSON.

A lax path that leads nowhere is ON EMPTY. An invalid text, a strict path that leads nowhere, and a
value of another form are ON ERROR.
"""

import base64
import re
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from joins.kernels.calendar.java_patterns import moment_of
from joins.kernels.calendar.ticks import ticks_of
from joins.kernels.expressions.casts import Checked
from joins.kernels.expressions.conversion import java_double, java_float
from joins.kernels.expressions.json_paths import (
    Json,
    JsonError,
    JsonPath,
    Raw,
    number_text,
    parsed,
    path_of,
    written,
)
from joins.kernels.expressions.nested import parts_of
from joins.kernels.expressions.operation import (
    Function,
    Operation,
    Value,
    bounded,
    bytes_of,
    grown,
    of_rows,
    with_nulls,
)
from joins.plan.types import SqlType, TypeName

EMPTIES = {"EMPTY ARRAY": "[]", "EMPTY OBJECT": "{}"}


def _is_scalar(value: Json) -> bool:
    return not isinstance(value, dict | list)


def _exists(text: str, path: str, on_error: str) -> bool | None:
    try:
        return path_of(path).read(parsed(text)) is not None
    except JsonError:
        if on_error == "ERROR":
            raise
        return {"TRUE": True, "FALSE": False}.get(on_error)


def _value(op: Operation) -> Value | Checked:
    """The arguments: text, path, on empty, on error, and the values of both if they are DEFAULT."""
    convert = _CONVERTED[op.result.name]

    def of_row(text: str | None, path: str, empty: str, error: str, *defaults: object) -> object:
        if text is None:
            return None
        way = path_of(path)
        try:
            value = way.read(parsed(text))
            if value is not None and _is_scalar(value):
                return convert(value)
            if value is not None and way.strict:
                raise JsonError("a scalar value is required")
        except JsonError:
            return _instead(error, defaults[1])
        return _instead(empty, defaults[0])

    return with_nulls(of_row)(op)


def _instead(behaviour: str, default: object) -> object:
    if behaviour == "ERROR":
        raise ValueError(behaviour)
    return default if behaviour == "DEFAULT" else None


def _as_text(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return java_double(value) if isinstance(value, float) else str(value)


def _exactly(kind: type) -> Callable[[Json], Json]:
    def convert(value: Json) -> Json:
        if type(value) is not kind:
            raise ValueError(f"{value!r} is no {kind.__name__}")
        return value

    return convert


def _as_int(value: Json) -> int:
    number: int = _exactly(int)(value)
    if not -(2**31) <= number < 2**31:
        raise ValueError(number)
    return number


_CONVERTED: Mapping[TypeName, Callable[[Json], object]] = {
    TypeName.STRING: _as_text,
    TypeName.BOOLEAN: _exactly(bool),
    TypeName.INT: _as_int,
    TypeName.DOUBLE: _exactly(float),
}


def _query(op: Operation) -> Value | Checked:
    """The arguments: text, path, wrapper, on empty, on error."""
    result = _list_of if op.result.name is TypeName.ARRAY else written

    def of_row(text: str, path: str, wrapper: str, empty: str, error: str) -> object:
        way = path_of(path)
        try:
            value = _wrapped(way, parsed(text), wrapper)
            if value is not None and not _is_scalar(value):
                return result(value)
            if value is not None and way.strict:
                raise JsonError("an array or object is required")
        except JsonError:
            return _emptied(error, op.result)
        return _emptied(empty, op.result)

    return of_rows(of_row)(op)


def _wrapped(path: JsonPath, document: Json, wrapper: str) -> Json:
    value = path.read(document)
    if value is None or wrapper == "WITHOUT":
        return value
    return value if wrapper == "CONDITIONAL" and isinstance(value, list) else [value]


def _list_of(value: Json) -> list[str | None]:
    if not isinstance(value, list):
        raise JsonError("an array is required")
    return [
        None if each is None else each if isinstance(each, str) else written(each) for each in value
    ]


def _emptied(behaviour: str, result: SqlType) -> object:
    if behaviour == "ERROR":
        raise ValueError(behaviour)
    if behaviour not in EMPTIES:
        return None
    return [] if result.name is TypeName.ARRAY else EMPTIES[behaviour]


def _is_json(text: str, form: str) -> bool:
    try:
        value = parsed(text)
    except JsonError:
        return False
    if form == "SCALAR":
        return _is_scalar(value)
    return form == "VALUE" or isinstance(value, list if form == "ARRAY" else dict)


def _length(text: str, path: str = "lax $") -> int | None:
    """NULL without a value, for several values, and for invalid JSON."""
    way = path_of(path)
    try:
        value = way.read(parsed(text))
    except JsonError:
        return None
    if not way.is_definite:
        value = value[0] if len(value) == 1 else None
    if value is None:
        return None
    return 1 if _is_scalar(value) else len(value)


QUESTIONS: Mapping[str, Function] = {
    "JSON_EXISTS": of_rows(_exists),
    "JSON_VALUE": _value,
    "JSON_QUERY": bounded(_query, lambda op: bytes_of(op.array(0))),
    "IS JSON": of_rows(_is_json),
    "JSON_LENGTH": of_rows(_length),
}


_QUOTES = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n",
           "\r": "\\r", "\t": "\\t"}  # fmt: skip
_PLAIN = {code[1]: char for char, code in _QUOTES.items()}
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.?))", re.DOTALL)
_INSTANTS = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)


def json_values(column: pa.Array, kind: SqlType) -> list[Json]:
    if kind.name is TypeName.ARRAY:
        return _spans(column, kind, lambda lists: list(lists[0]))
    if kind.name is TypeName.MAP:
        return _spans(column, kind, lambda lists: dict(zip(*lists, strict=True)))
    if kind.name is TypeName.ROW:
        return _rows(column, kind)
    if kind.name in _INSTANTS:
        return _moments(column, kind)
    values: list[Json] = column.to_pylist()
    if kind.name is TypeName.BYTES:
        return [None if v is None else base64.b64encode(v).decode() for v in values]
    if kind.name is TypeName.FLOAT:
        return [None if v is None else Raw(number_text(v, java_float)) for v in values]
    return values


def _spans(column: pa.Array, kind: SqlType, made: Callable[[list[list[Json]]], Json]) -> list[Json]:
    parts = parts_of(column, entries=kind.name is TypeName.MAP)
    assert parts.lengths is not None, "it has elements"
    inner = [
        json_values(child, member.type)
        for child, member in zip(parts.children, kind.members, strict=True)
    ]
    spans = zip(parts.starts.tolist(), parts.lengths.tolist(), strict=True)
    valid = column.is_valid().to_pylist()
    return [
        made([values[first : first + count] for values in inner]) if there else None
        for (first, count), there in zip(spans, valid, strict=True)
    ]


def _rows(column: pa.Array, kind: SqlType) -> list[Json]:
    names = [member.name for member in kind.members]
    inner = [
        json_values(child, member.type)
        for child, member in zip(parts_of(column).children, kind.members, strict=True)
    ]
    valid = column.is_valid().to_pylist()
    return [
        dict(zip(names, row, strict=True)) if there else None
        for row, there in zip(zip(*inner, strict=True), valid, strict=True)
    ]


def _moments(column: pa.Array, kind: SqlType) -> list[Json]:
    ticks = ticks_of(column, kind)
    zone = "Z" if kind.name is TypeName.TIMESTAMP_LTZ else ""
    texts: list[Json] = []
    for micros, nanos, there in zip(ticks.micros, ticks.nanos, ticks.valid, strict=True):
        time = moment_of(int(micros)) if there else None
        if time is None:
            texts.append(None)
            continue
        fraction = f"{time.microsecond:06}{int(nanos):03}".rstrip("0")
        clock = f"{time:%H:%M:%S}" + (f".{fraction}" if fraction else "")
        texts.append(f"{time.year:04}-{time:%m-%d}T{clock}{zone}")
    return texts


def json_string(op: Operation) -> pa.Array:
    values = json_values(op.array(0), op.types[0])
    return pa.array([None if each is None else written(each) for each in values], pa.string())


def json_raw(op: Operation) -> Checked:
    """`JSON(text)` in the constructors below: NULL for an empty text; invalid JSON fails."""
    failed = np.zeros(op.num_rows, dtype=np.bool_)
    texts: list[str | None] = []
    for row, text in enumerate(op.array(0).to_pylist()):
        try:
            texts.append(written(parsed(text)) if text and text.strip() else None)
        except ValueError:
            failed[row] = True
            texts.append(None)
    return Checked(pa.array(texts, pa.string()), failed)


def _parts(op: Operation) -> tuple[str, list[list[Json]]]:
    """The rule for NULL, and the values of the arguments after it; `raw` ones are JSON."""
    rule, marks = (op.constant(at) for at in (0, 1))
    assert rule is not None, "the planner says it"
    assert marks is not None, "the planner says it"
    columns = []
    for at, mark in enumerate(marks.as_py(), 2):
        values = json_values(op.array(at), op.types[at])
        columns.append([None if v is None else Raw(v) for v in values] if mark == "r" else values)
    return rule.as_py(), columns


def json_object(op: Operation) -> Checked:
    """`JSON_OBJECT(key, value, …)`; the first arguments are the rule for NULL and marks."""
    rule, columns = _parts(op)
    keys, values = columns[::2], columns[1::2]
    texts: list[str | None] = []
    failed = np.zeros(op.num_rows, dtype=np.bool_)
    for row in range(op.num_rows):
        members = {k[row]: v[row] for k, v in zip(keys, values, strict=True)}
        failed[row] = None in members
        kept = {k: v for k, v in members.items() if v is not None or rule == "NULL"}
        texts.append(None if failed[row] else written(kept))
    return Checked(pa.array(texts, pa.string()), failed)


def json_array(op: Operation) -> pa.Array:
    rule, columns = _parts(op)
    texts = []
    for row in range(op.num_rows):
        values = [column[row] for column in columns]
        texts.append(written([each for each in values if each is not None or rule == "NULL"]))
    return pa.array(texts, pa.string())


def _quote(text: str) -> str:
    return f'"{"".join(_QUOTES.get(each) or _ascii(each) for each in text)}"'


def _ascii(character: str) -> str:
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _unquote(text: str) -> str:
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    inside = text[1:-1]
    if any(m[1] is None and m[2] not in _PLAIN for m in _ESCAPED.finditer(inside)):
        return text
    plain = _ESCAPED.sub(lambda m: chr(int(m[1], 16)) if m[1] else _PLAIN[m[2]], inside)
    return plain.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


VALUES: Mapping[str, Function] = {
    "JSON": json_raw,
    "JSON_STRING": grown(json_string, 6),
    "JSON_OBJECT": grown(json_object, 6),
    "JSON_ARRAY": grown(json_array, 6),
    "JSON_QUOTE": grown(of_rows(_quote), 6),
    "JSON_UNQUOTE": of_rows(_unquote),
}
