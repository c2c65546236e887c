"""Records of JSON one by one, as Flink's format `json` reads them: the fallback reader.

`joins.kernels.json.plain` takes the simple cases; this reader decides on all others: the rows of a
record, or why it has none. It is plain Python and needs no compiler.

- Numbers, `true` and `false` may stand in quotes, with blanks around them. A number, a boolean, an
object or an array may stand for a STRING, which gets its text.
- An integer may be written as `1.0` or `1e3`. A DECIMAL is rounded half up to its scale.
- A record may begin with a byte order mark, be in UTF-16 or UTF-32, and be an array of objects:
each of them is a row. Strings may have raw control characters.
- A member that is not read never makes a record bad, unless the record is no JSON.

Source: Flink 2.0, `JsonParserToRowDataConverters`; `docs/reference/formats.md` lists where it is
stricter.
"""
# reads better long: the rules of one format, from the bytes of a record to each type.

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import isfinite
from typing import Any

import pyarrow as pa

from joins.kernels.expressions.casts import from_text, time_from_text
from joins.kernels.formats.parsed import batch_of

OF_TEXT = {b"sql": b"TEXT"}
"""Metadata of a string that is always in quotes: other types are read from its text."""

_SHOWN_CHARACTERS = 60
_NO_OBJECT = "the value is not one JSON object"
_BLANKS = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(
    r'"(?:[^"\\]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
    r"|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null|NaN|-?Infinity"
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FLOAT = re.compile(rf"({_DECIMAL.pattern})[fFdD]?")
_NAMED = {"NaN": "nan", "Infinity": "inf", "+Infinity": "inf", "-Infinity": "-inf"}
_BLANK = re.compile(r"[\x00-\x20]+")
_TRIMMED = "".join(map(chr, range(33)))  # what Java's `trim` takes away
_INTEGER_DIGITS = 20
_CONTEXT = Context(prec=80)
_ESCAPES = {chr(code): f"\\u{code:04X}" for code in range(32)}
_ESCAPES |= {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPES |= {'"': '\\"', "\\": "\\\\"}
_ESCAPED = str.maketrans(_ESCAPES)
_Reader = Callable[[Any, str], object]


class WrittenNumber(str):
    """A number with its digits in the JSON text."""

    __slots__ = ()


class _Constant(str):
    __slots__ = ()


class _BadValueError(ValueError): ...


_DECODER = json.JSONDecoder(
    strict=False,
    object_pairs_hook=tuple,
    parse_int=WrittenNumber,
    parse_float=WrittenNumber,
    parse_constant=_Constant,
)


@dataclass(frozen=True, slots=True)
class JsonRules:
    """Treatment of bad records; if it `needs_all`, an object without a declared member is bad.

    With `ignores_errors` a value that does not fit is NULL, at any depth; a record that is no
    object has no row.
    """

    ignores_errors: bool = False
    needs_all: bool = False


STRICT = JsonRules()


@dataclass(frozen=True, slots=True)
class EachRow:
    """Rows, their records (an array has several rows), and the reasons of bad records."""

    batch: pa.RecordBatch
    records: list[int]
    reasons: dict[int, str]


def read_each(
    values: Sequence[bytes | None], schema: pa.Schema, rules: JsonRules = STRICT
) -> EachRow:
    reader = _RecordReader(schema, rules)
    rows: list[Mapping[str, object]] = []
    records: list[int] = []
    reasons: dict[int, str] = {}
    for record, value in enumerate(values):
        try:
            own = list(reader.rows_of(value))
        except _BadValueError as error:
            if not rules.ignores_errors:
                reasons[record] = str(error)
            continue
        rows += own
        records += [record] * len(own)
    columns = [pa.array([row.get(item.name) for row in rows], item.type) for item in schema]
    return EachRow(batch_of(columns, schema, len(rows)), records, reasons)


class _RecordReader:
    def __init__(self, schema: pa.Schema, rules: JsonRules) -> None:
        self._rules = rules
        self._readers = {item.name: _nullable(_reader_of(item, rules), rules) for item in schema}

    def rows_of(self, value: bytes | None) -> Iterator[Mapping[str, object]]:
        text = _text_of(value)
        if text[-1] != {"{": "}", "[": "]"}[text[0]] and not self._rules.ignores_errors:
            raise _BadValueError(_NO_OBJECT)
        if text.startswith("["):
            yield from self._elements(text)
            return
        row, at = self._object(text, 0)
        if at != len(text) and not self._rules.ignores_errors:
            raise _BadValueError("invalid JSON: there is text behind the object")
        yield row

    def _elements(self, text: str) -> Iterator[Mapping[str, object]]:
        at = _behind_blanks(text, 1)
        if text.startswith("]", at):
            at += 1
        else:
            for number in range(len(text)):
                if not text.startswith("{", at):
                    end = _behind_value(text, at)
                    if text[at:end] != "null" and not self._rules.ignores_errors:
                        raise _BadValueError(f"element {number + 1} of the array is no object")
                    at = end
                else:
                    row, at = self._object(text, at)
                    yield row
                at = _behind_blanks(text, at)
                if text.startswith("]", at):
                    at += 1
                    break
                at = _behind_sign(text, at, ",")
        if at != len(text) and not self._rules.ignores_errors:
            raise _BadValueError("invalid JSON: there is text behind the array")

    def _object(self, text: str, at: int) -> tuple[Mapping[str, object], int]:
        """The read members of the object at `at`, and the position after it."""
        members: dict[str, object] = {}
        at = _behind_blanks(text, at + 1)
        if text.startswith("}", at):
            return self._row(members), at + 1
        while True:
            name, at = _name(text, at)
            if name in self._readers:
                if name in members and not self._rules.ignores_errors:
                    raise _BadValueError(f'field "{name}" appears twice')
                members[name], at = self._value(text, at, name)
            else:
                at = _behind_value(text, at)
            at = _behind_blanks(text, at)
            if text.startswith("}", at):
                return self._row(members), at + 1
            at = _behind_sign(text, at, ",")

    def _value(self, text: str, at: int, name: str) -> tuple[object, int]:
        try:
            return _DECODER.raw_decode(text, at)
        except RecursionError:
            if not self._rules.ignores_errors:
                raise _BadValueError(f'field "{name}": it is nested too deeply') from None
            return None, _behind_value(text, at)
        except ValueError as error:
            raise _BadValueError(broken(error)) from None

    def _row(self, members: Mapping[str, object]) -> Mapping[str, object]:
        if self._rules.needs_all:
            _check_all(members, self._readers, "")
        return {name: self._readers[name](value, name) for name, value in members.items()}


# Texts
# ----------------------------------------------------------------------------------------------


def _text_of(value: bytes | None) -> str:
    if value is None:
        raise _BadValueError("the value is null")
    for encoding in (json.detect_encoding(value), "utf-8"):
        with suppress(UnicodeDecodeError):
            text = value.decode(encoding).strip(" \t\n\r")
            break
    else:
        raise _BadValueError("the value is not UTF-8")
    if not text:
        raise _BadValueError("the value is empty")
    if text[0] not in "{[":
        raise _BadValueError(_NO_OBJECT)
    return text


def broken(error: Exception) -> str:
    message = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return f"invalid JSON: {message[:1].lower()}{message[1:100]}"


def _behind_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return at if match is None else match.end()


def _behind_sign(text: str, at: int, sign: str) -> int:
    if not text.startswith(sign, at):
        raise _BadValueError(f"invalid JSON: expected '{sign}' at character {at}")
    return _behind_blanks(text, at + 1)


def _name(text: str, at: int) -> tuple[str, int]:
    if not text.startswith('"', at):
        raise _BadValueError(f"invalid JSON: expected a name in quotes at character {at}")
    try:
        name, at = _DECODER.raw_decode(text, at)
    except ValueError as error:
        raise _BadValueError(broken(error)) from None
    return name, _behind_sign(text, _behind_blanks(text, at), ":")


def _behind_value(text: str, at: int) -> int:
    """The position after the value at `at`, of any depth and with any numbers."""
    open_brackets: list[str] = []
    while True:
        sign = text[at : at + 1]
        closing = {"{": "}", "[": "]"}.get(sign)
        if closing is None:
            match = _SCALAR.match(text, at)
            if match is None:
                raise _BadValueError(f"invalid JSON: expected a value at character {at}")
            at = match.end()
        else:
            at = _behind_blanks(text, at + 1)
            if not text.startswith(closing, at):
                open_brackets.append(closing)
                at = _name(text, at)[1] if closing == "}" else at
                continue
            at += 1
        while open_brackets:
            at = _behind_blanks(text, at)
            if text.startswith(open_brackets[-1], at):
                open_brackets.pop()
                at += 1
                continue
            at = _behind_sign(text, at, ",")
            at = _name(text, at)[1] if open_brackets[-1] == "}" else at
            break
        else:
            return at


# Values
# ----------------------------------------------------------------------------------------------


def _nullable(read: _Reader, rules: JsonRules) -> _Reader:
    def read_or_null(value: object, place: str) -> object:
        if value is None:
            return None
        try:
            return read(value, place)
        except _BadValueError:
            if not rules.ignores_errors:
                raise
            return None

    return read_or_null


def _reader_of(item: pa.Field, rules: JsonRules) -> _Reader:
    """Reader of a type; the metadata of `item` marks a TIME."""
    kind = item.type
    if item.metadata and item.metadata.get(b"sql") == b"TIME":
        return _times(lambda text: time_from_text(text), "a time")
    if pa.types.is_integer(kind):
        return _integers(kind)
    if pa.types.is_floating(kind):
        return _floats(kind)
    if pa.types.is_decimal(kind):
        return _decimals(kind)
    if pa.types.is_boolean(kind):
        return _boolean
    if pa.types.is_string(kind):
        return _string
    if pa.types.is_binary(kind):
        return _binary
    if pa.types.is_struct(kind):
        return _structs(kind, rules)
    if pa.types.is_map(kind):
        return _maps(kind, rules)
    if pa.types.is_list(kind):
        element = _nullable(_reader_of(kind.value_field, rules), rules)
        return lambda value, place: [
            element(part, f"{place}[]") for part in _expected(value, list, "array", place)
        ]
    shown = "a date" if pa.types.is_date(kind) else "a timestamp"
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        shown = "a timestamp with Z or an offset"
    return _times(lambda text: from_text(text, kind), shown)


def _kind_of(value: object) -> str:
    if isinstance(value, (WrittenNumber, _Constant)):
        return "number"
    return {str: "string", bool: "boolean", list: "array"}.get(type(value), "object")


def _expected(value: object, kind: type, expected: str, place: str) -> Any:  # noqa: ANN401
    if type(value) is not kind:
        raise _BadValueError(f'field "{place}": expected {expected}, found {_kind_of(value)}')
    return value


def _unfit(value: object, place: str, expected: str) -> _BadValueError:
    shown = str(value)[:_SHOWN_CHARACTERS]
    return _BadValueError(f'field "{place}": "{shown}" is not {expected}')


def _trimmed(value: object, place: str) -> str:
    if type(value) is str:
        return value.strip(_TRIMMED)
    if isinstance(value, WrittenNumber):
        return value
    if isinstance(value, _Constant):
        raise _unfit(value, place, "a finite number")
    raise _BadValueError(f'field "{place}": expected number, found {_kind_of(value)}')


def _no_number(value: object, place: str, expected: str) -> _BadValueError:
    if type(value) is str:
        return _BadValueError(f'field "{place}": expected number, found string')
    return _unfit(value, place, expected)


def _integers(kind: pa.DataType) -> _Reader:
    limit = 1 << (kind.bit_width - 1)
    least, most = (-limit, limit) if pa.types.is_signed_integer(kind) else (0, 2 * limit)

    def read(value: object, place: str) -> int:
        text = _trimmed(value, place)
        number: int | None = None
        if _INTEGER.fullmatch(text):
            number = int(text)
        elif isinstance(value, WrittenNumber):
            number = _integral(text)
        if number is None:
            raise _no_number(value, place, f"an {kind}")
        if not least <= number < most:
            raise _BadValueError(f'field "{place}": {text[:_SHOWN_CHARACTERS]} is not an {kind}')
        return number

    return read


def _integral(text: str) -> int | None:
    try:
        number = Decimal(text)
    except InvalidOperation:  # of a power beyond all bounds
        return None
    if not number:
        return 0
    if number.adjusted() > _INTEGER_DIGITS or number != number.to_integral_value():
        return None
    return int(number)


def _floats(kind: pa.DataType) -> _Reader:
    def read(value: object, place: str) -> float:
        text = _trimmed(value, place)
        if type(value) is str and text in _NAMED:
            return float(_NAMED[text])
        match = _FLOAT.fullmatch(text)
        if match is None:
            raise _no_number(value, place, "a finite number")
        number = float(match[1])
        if pa.types.is_float32(kind):  # without a DOUBLE between, which would round twice
            number = float(pa.scalar(match[1]).cast(kind).as_py())
        if not isfinite(number):
            raise _unfit(text, place, "a finite number")
        return number

    return read


def decimal_of(kind: pa.DataType) -> Callable[[str], Decimal | None]:
    """The number in a text, rounded half up to the scale of `kind`; None if it does not fit."""
    unit = Decimal(1).scaleb(-kind.scale)
    bound = Decimal(10) ** (kind.precision - kind.scale)

    def read(text: str) -> Decimal | None:
        try:
            number = Decimal(text) if _DECIMAL.fullmatch(text) else None
        except InvalidOperation:
            number = None
        if number is None or (number and number.adjusted() >= kind.precision - kind.scale):
            return None
        rounded = number.quantize(unit, ROUND_HALF_UP, _CONTEXT)
        return rounded if rounded.copy_abs() < bound else None  # abs() rounds to 28 digits

    return read


def _decimals(kind: pa.DataType) -> _Reader:
    expected = f"a DECIMAL({kind.precision}, {kind.scale})"
    rounded = decimal_of(kind)

    def read(value: object, place: str) -> Decimal:
        number = rounded(_trimmed(value, place))
        if number is None:
            raise _unfit(value, place, expected)
        return number

    return read


def _boolean(value: object, place: str) -> bool:
    if isinstance(value, bool):
        return value
    text = value.strip(_TRIMMED).lower() if type(value) is str else None
    if text not in ("true", "false"):
        raise _BadValueError(f'field "{place}": expected boolean, found {_kind_of(value)}')
    return text == "true"


def _string(value: object, place: str) -> str:
    text = value if type(value) is str else _written(value, place)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _BadValueError(f'field "{place}": half of a surrogate pair is no character') from None
    return text


def _written(value: object, place: str) -> str:
    if isinstance(value, WrittenNumber):
        return str(value)
    if isinstance(value, _Constant):
        raise _unfit(value, place, "JSON")
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{','.join(_written(part, place) for part in value)}]"
    if isinstance(value, tuple):
        parts = (f"{_quoted(name)}:{_written(part, place)}" for name, part in dict(value).items())
        return f"{{{','.join(parts)}}}"
    return _quoted(str(value))


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPED)}"'


def _binary(value: object, place: str) -> bytes:
    text = _BLANK.sub("", _expected(value, str, "string", place))
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _unfit(value, place, "base64") from None


def _times(convert: Callable[[pa.Array], Any], expected: str) -> _Reader:
    def read(value: object, place: str) -> int:
        text = _expected(value, str, "string", place)
        try:
            checked = convert(pa.array([text], pa.string()))
        except (UnicodeEncodeError, pa.ArrowInvalid):
            raise _unfit(ascii(value), place, expected) from None
        if checked.failed[0]:
            raise _unfit(value, place, expected)
        column = checked.values
        width = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
        return int(column.cast(width)[0].as_py())

    return read


def _structs(kind: pa.StructType, rules: JsonRules) -> _Reader:
    readers = {item.name: _nullable(_reader_of(item, rules), rules) for item in kind}

    def read(value: object, place: str) -> object:
        members: dict[str, object] = {}
        for name, member in _expected(value, tuple, "object", place):
            if name not in readers:
                continue
            if name in members and not rules.ignores_errors:
                raise _BadValueError(f'field "{place}.{name}" appears twice')
            members[name] = member
        if rules.needs_all:
            _check_all(members, readers, f"{place}.")
        return {name: readers[name](member, f"{place}.{name}") for name, member in members.items()}

    return read


def _maps(kind: pa.MapType, rules: JsonRules) -> _Reader:
    """The last of equal names counts; with errors ignored, invalid names are skipped."""
    read_item = _nullable(_reader_of(kind.item_field, rules), rules)

    def read(value: object, place: str) -> object:
        entries: list[tuple[object, object]] = []
        for name, member in dict(_expected(value, tuple, "object", place)).items():
            try:
                key = _string(name, f"{place}[].key")
            except _BadValueError:
                if not rules.ignores_errors:
                    raise
                continue
            entries.append((key, read_item(member, f"{place}[].value")))
        return entries

    return read


def _check_all(members: Mapping[str, object], readers: Mapping[str, _Reader], before: str) -> None:
    missing = next((name for name in readers if name not in members), None)
    if missing is not None:
        raise _BadValueError(f'field "{before}{missing}" is missing')
