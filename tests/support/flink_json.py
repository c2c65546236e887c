"""What Flink's format `json` makes of one value, and where Sluice is stricter; independent of ours.

Source: Flink 2.0, `JsonParserToRowDataConverters` and Jackson's tokens. A value is a token in
JSON; the answer is a Python value, `FAILS`, or `STRICTER` for what Flink takes and Sluice makes a
dead letter on purpose (the table in `docs/reference/formats.md`).
"""

import base64
import datetime as dt
import json
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from joins.plan.types import SqlType, TypeName

FAILS, STRICTER = "fails", "stricter than Flink"
_BOUNDS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_EXACT = Context(prec=1000)
_JAVA_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?", re.ASCII)
_JAVA_HEX = re.compile(r"[+-]?0[xX][0-9a-fA-F]+\.?[0-9a-fA-F]*[pP][+-]?\d+[fFdD]?")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def flink_reads(token: str, kind: SqlType, *, ignores_errors: bool = False) -> Any:
    value = json.loads(
        token, parse_int=_Int, parse_float=_Float, object_pairs_hook=list_of, strict=False
    )
    return _read(value, kind, ignores_errors)


class _Int(str):
    """VALUE_NUMBER_INT."""


class _Float(str):
    """VALUE_NUMBER_FLOAT."""


class _Object(list):
    """START_OBJECT, with its members."""


def list_of(pairs: list[tuple[str, Any]]) -> _Object:
    return _Object(pairs)


def _read(value: Any, kind: SqlType, ignores: bool) -> Any:
    if value is None:
        return None
    found = _by_type(value, kind, ignores)
    return None if ignores and found in (FAILS, STRICTER) else found


def _by_type(value: Any, kind: SqlType, ignores: bool) -> Any:
    if kind.members:
        return _nested(value, kind, ignores)
    if kind.name is TypeName.STRING:
        return _text(value)
    if kind.name is TypeName.BOOLEAN:
        return _boolean(value)
    if kind.name in _BOUNDS:
        return _integer(value, _BOUNDS[kind.name])
    if kind.name in (TypeName.FLOAT, TypeName.DOUBLE):
        return _double(value)
    if kind.name is TypeName.DECIMAL:
        return _decimal(value, kind)
    if not isinstance(value, str) or isinstance(value, _Int | _Float):
        return FAILS
    if kind.name is TypeName.BYTES:
        try:
            return base64.b64decode(re.sub(r"[\x00- ]", "", value), validate=True)
        except ValueError:
            return FAILS
    return _time(value, kind.name)


def _nested(value: Any, kind: SqlType, ignores: bool) -> Any:
    if isinstance(value, _Object) != (kind.name is not TypeName.ARRAY) or not isinstance(
        value, list
    ):
        return FAILS
    if kind.name is TypeName.ARRAY:
        return _whole([_read(part, kind.members[0].type, ignores) for part in value])
    if kind.name is TypeName.MAP:
        entries = {key: _read(part, kind.members[1].type, ignores) for key, part in value}
        return FAILS if _whole(list(entries.values())) == FAILS else list(entries.items())
    names = [key for key, _ in value]
    known = {part.name: part.type for part in kind.members}
    if any(names.count(each) > 1 for each in known) and not ignores:
        return STRICTER
    row = dict.fromkeys(known)
    row |= {key: _read(part, known[key], ignores) for key, part in value if key in known}
    return FAILS if _whole(list(row.values())) == FAILS else row


def _whole(values: list[Any]) -> Any:
    return FAILS if any(isinstance(v, str) and v in (FAILS, STRICTER) for v in values) else values


def _boolean(value: Any) -> Any:
    """Flink takes any other text, and any number, for false."""
    if isinstance(value, bool):
        return value
    text = value.strip(_BLANKS).lower() if isinstance(value, str) else ""
    return text == "true" if text in ("true", "false") else STRICTER


_BLANKS = "".join(chr(code) for code in range(33))


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = str(value)
        return STRICTER if any("\ud800" <= each <= "\udfff" for each in text) else text
    return _compact(value)


def _compact(value: Any) -> str:
    """Without blanks; numbers as they are written, which Flink writes as doubles."""
    if isinstance(value, _Object):
        members = (f"{json.dumps(key)}:{_compact(part)}" for key, part in dict(value).items())
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_compact, value))}]"
    return str(value) if isinstance(value, _Int | _Float) else json.dumps(value)


def _integer(value: Any, bits: int) -> Any:
    if isinstance(value, bool | list) or value is None:
        return FAILS
    number: int
    if isinstance(value, _Float):
        exact = Decimal(value)
        if (exact and exact.adjusted() > 25) or exact != exact.to_integral_value():
            return STRICTER  # Flink cuts the fraction of INT and BIGINT
        number = int(exact)
    else:
        text = value.strip(_BLANKS)
        if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
            return FAILS
        number = int(text)
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else FAILS


def _double(value: Any) -> Any:
    if isinstance(value, bool | list):
        return FAILS
    text = value.strip(_BLANKS)
    if not isinstance(value, _Int | _Float):
        if text.lstrip("+-") in ("NaN", "Infinity") and len(text) - len(text.lstrip("+-")) < 2:
            # Java takes a sign before NaN
            return float(text.replace("Infinity", "inf")) if text in _NAMED else STRICTER
        if _JAVA_HEX.fullmatch(text):
            return STRICTER
    if not _JAVA_FLOAT.fullmatch(text):
        return FAILS
    number = float(text.rstrip("fFdD"))
    return STRICTER if number in (float("inf"), float("-inf")) else number


_NAMED = ("NaN", "Infinity", "+Infinity", "-Infinity")


def _decimal(value: Any, kind: SqlType) -> Any:
    if isinstance(value, bool | list):
        return FAILS
    text = value.strip(_BLANKS)
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII):
        return FAILS
    number = Decimal(text)
    if number and number.adjusted() > 50:
        return STRICTER  # Flink: NULL
    rounded = number.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, _EXACT)
    return rounded if abs(rounded) < Decimal(10) ** (kind.precision - kind.scale) else STRICTER


def _time(text: str, name: TypeName) -> Any:
    """Of forms that both take, but for a TIMESTAMP without a time, which Flink does not read."""
    try:
        if name is TypeName.DATE:
            return dt.date.fromisoformat(text) if _ISO_DATE.fullmatch(text) else FAILS
        if name is TypeName.TIME:
            at = dt.time.fromisoformat(text) if re.fullmatch(r"\d\d:\d\d:\d\d.*", text) else None
            if at is None or at.tzinfo is not None:
                return FAILS
            return ((at.hour * 60 + at.minute) * 60 + at.second) * 1_000_000 + at.microsecond
        if name is TypeName.TIMESTAMP and _ISO_DATE.fullmatch(text):
            return dt.datetime.fromisoformat(text)
        if not re.fullmatch(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?", text):
            return FAILS
        at = dt.datetime.fromisoformat(text)
    except ValueError:
        return FAILS
    return at if (at.tzinfo is not None) == (name is TypeName.TIMESTAMP_LTZ) else FAILS
