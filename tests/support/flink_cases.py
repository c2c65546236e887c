"""Flink's own expression cases as data: bound to columns, planned, evaluated, compared.

`tests/data/flink_expressions.json` has inputs and expected results of Flink's tests of scalar
expressions, `tests/data/flink_expression_tables.json` the columns of its test classes.
"""

import datetime as dt
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from enum import StrEnum
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from joins.kernels.expressions.casts import CastRules
from joins.kernels.expressions.conversion import convert
from joins.plan.types import SqlType, TypeName, arrow_type
from service.sql.text.script import SqlError
from tests.support.expressions import evaluated, planned, sql_type

DATA = Path(__file__).parents[1] / "data"
STRING = SqlType(TypeName.STRING)
BITS = {TypeName.TINYINT: 8, TypeName.SMALLINT: 16, TypeName.INT: 32, TypeName.BIGINT: 64}
INSTANTS = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)
INTERVALS = (TypeName.INTERVAL_MONTH, TypeName.INTERVAL_SECOND)
EXACT = Context(prec=80)


class Verdict(StrEnum):
    """Our answer beside Flink's; LENIENT is a value where Flink fails."""

    AGREES = "agrees"
    REFUSED = "refused"
    WRONG = "wrong"
    RAISES = "raises"
    LENIENT = "lenient"
    UNBOUND = "unbound"


@dataclass(frozen=True, slots=True)
class Outcome:
    verdict: Verdict
    detail: str = ""


class UnboundError(Exception):
    """A case has an input or a result that is no data: Flink's test makes it by code."""


@cache
def cases():
    return json.loads((DATA / "flink_expressions.json").read_text("utf-8"))["cases"]


@cache
def tables():
    return json.loads((DATA / "flink_expression_tables.json").read_text("utf-8"))


def outcome(case) -> Outcome:
    """How we answer a case, beside Flink's answer."""
    try:
        columns = columns_of(case)
        typed = planned(case["expr"], {n: t for n, (t, _) in columns.items()}, _zone(case))
        values = {n: pa.array([v], arrow_type(sql_type(t))) for n, (t, v) in columns.items()}
    except SqlError as error:
        return Outcome(Verdict.AGREES if case.get("fails") else Verdict.REFUSED, str(error))
    except (UnboundError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        return Outcome(Verdict.UNBOUND, str(error))
    answer = evaluated(typed, values)
    if answer.errors:
        verdict = Verdict.AGREES if case.get("fails") else Verdict.RAISES
        return Outcome(verdict, answer.errors[0])
    if case.get("fails"):
        return Outcome(Verdict.LENIENT, str(shown(answer.values, typed.type, _zone(case))))
    return _compared(case, answer.values, typed.type)


def _compared(case, values, kind: SqlType) -> Outcome:
    expected = case["expected"]
    if isinstance(expected, list) and "type" not in case:
        return Outcome(Verdict.UNBOUND, "several expressions")
    is_typed = case.get("type", "?") != "?" or not isinstance(expected, str | None)
    try:
        wanted_value = expected_value(expected)
    except UnboundError as error:
        return Outcome(Verdict.UNBOUND, str(error))
    actual = plain(values[0], kind) if is_typed else shown(values, kind, _zone(case))
    same = same_values(actual, wanted_value)
    detail = f"{actual!r}: {kind}, in Flink {wanted_value!r}"
    return Outcome(Verdict.AGREES if same else Verdict.WRONG, detail)


def shown(values, kind: SqlType, zone: str):
    """A result as Flink's tests of text show it."""
    if kind.name is TypeName.BYTES:
        value = values[0].as_py()
        return None if value is None else value.decode("utf-8", "replace")
    return convert(values, kind, STRING, CastRules(zone=zone)).values[0].as_py()


def _zone(case) -> str:
    return case.get("zone", "UTC")


# Inputs
# --------------------------------------------------------------------------------------------------


def columns_of(case) -> Mapping[str, tuple[str, object]]:
    """The columns that an expression names, with Python values for Arrow."""
    if "columns" in case:
        every = {f"f{at}": pair for at, pair in enumerate(case["columns"])}
    else:
        every = tables()[case["id"].partition(":")[0]]
    words = set(re.findall(r"[A-Za-z_]\w*", case["expr"]))
    return {name: _bound(*pair) for name, pair in every.items() if name in words}


def _bound(text: str, value):
    if text == "?":
        raise UnboundError("a type that the test names by code")
    kind = text.removesuffix(" NOT NULL")
    made = value_of(value, sql_type(kind))
    fixed = re.match(r"(CHAR|BINARY)\((\d+)\)", kind)
    if fixed is None or made is None:
        return kind, made
    return kind, made.ljust(int(fixed[2]), " " if fixed[1] == "CHAR" else b"\0")


def value_of(value, kind: SqlType):
    """A value of the data as Python's, for a column of this type."""
    if value is None:
        return None
    if isinstance(value, dict):
        return _tagged(value["$"], value.get("v"), kind)
    if kind.name is TypeName.ARRAY:
        return [value_of(each, kind.members[0].type) for each in value]
    if kind.name is TypeName.DECIMAL:
        return _scaled(str(value), kind)
    if kind.name in (TypeName.FLOAT, TypeName.DOUBLE):
        return float(value)
    if kind.name in BITS:  # Java's literals have wrapped
        half = 2 ** (BITS[kind.name] - 1)
        return (int(value) + half) % (2 * half) - half
    return value


def _tagged(tag: str, inner, kind: SqlType):
    if tag == "row":
        return {m.name: value_of(v, m.type) for m, v in zip(kind.members, inner, strict=True)}
    if tag == "map":
        key, item = kind.members
        return [(value_of(k, key.type), value_of(v, item.type)) for k, v in inner]
    if tag == "decimal":
        return _scaled(inner, kind)
    if tag == "time":
        micros = _micros(inner)
        return micros - micros % 10 ** (6 - kind.precision)
    if tag in ("timestamp", "instant", "instant_ns"):
        return _moment(inner if tag == "instant_ns" else _nanos(inner), kind)
    if tag == "time_micros":
        return inner
    return _scalar(tag, inner)


def _scalar(tag: str, inner):
    if tag in ("float", "double"):
        return float(inner)
    if tag == "bytes":
        return bytes.fromhex(inner)
    if tag == "date":
        return dt.date.fromisoformat(inner)
    raise UnboundError(f"{tag} {inner}")


def _scaled(text: str, kind: SqlType) -> Decimal:
    return Decimal(text).quantize(Decimal(1).scaleb(-kind.scale), context=EXACT)


def _micros(text: str) -> int:
    hours, minutes, seconds = text.split(":")
    return (int(hours) * 3600 + int(minutes) * 60) * 1_000_000 + int(Decimal(seconds) * 1_000_000)


def _nanos(text: str) -> int:
    whole, _, fraction = text.removesuffix("Z").replace("T", " ").partition(".")
    moment = dt.datetime.fromisoformat(whole).replace(tzinfo=dt.UTC)
    seconds = int((moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(seconds=1))
    return seconds * 10**9 + int(fraction.ljust(9, "0")[:9])


def _moment(nanos: int, kind: SqlType):
    cut = nanos - nanos % 10 ** (9 - kind.precision)
    if kind.precision > 6:
        return cut
    return pa.scalar(cut // 1_000, pa.int64()).cast(arrow_type(kind)).as_py()


# Results
# --------------------------------------------------------------------------------------------------


def plain(scalar, kind: SqlType):
    """A result in a form to compare: nested values with their parts, times as numbers."""
    if not scalar.is_valid:
        return None
    if kind.is_nested:
        return _parts(scalar, kind)
    if kind.name is TypeName.TIME:
        return ("time", scalar.as_py())
    if kind.name in INSTANTS:
        tag = "timestamp" if kind.name is TypeName.TIMESTAMP else "instant"
        return (tag, scalar.cast(pa.int64()).as_py() * (1 if kind.precision > 6 else 1_000))
    if kind.name in INTERVALS:
        return ("interval", scalar.as_py())
    return np.float32(scalar.as_py()) if kind.name is TypeName.FLOAT else scalar.as_py()


def _parts(scalar, kind: SqlType):
    if kind.name is TypeName.ROW:
        return ("row", [plain(scalar[at], m.type) for at, m in enumerate(kind.members)])
    if kind.name is TypeName.ARRAY:
        return [plain(each, kind.members[0].type) for each in scalar.values]
    key, item = kind.members
    pairs = [(plain(pair[0], key.type), plain(pair[1], item.type)) for pair in scalar.values]
    return ("map", sorted(pairs, key=repr))


def expected_value(value):
    """The same of what Flink gives."""
    if isinstance(value, list):
        return [expected_value(each) for each in value]
    if not isinstance(value, dict):
        return value
    tag, inner = value["$"], value.get("v")
    if tag == "row":
        return ("row", [expected_value(each) for each in inner])
    if tag == "map":
        pairs = [(expected_value(k), expected_value(v)) for k, v in inner]
        return ("map", sorted(pairs, key=repr))
    if tag == "time":
        return ("time", _micros(inner))
    if tag in ("timestamp", "instant"):
        return (tag, _nanos(inner))
    return Decimal(inner) if tag == "decimal" else _scalar(tag, inner)


def same_values(actual, expected) -> bool:
    """Equal values of one kind."""
    if isinstance(actual, list | tuple) and isinstance(expected, list | tuple):
        return len(actual) == len(expected) and all(map(same_values, actual, expected))
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected
    if isinstance(actual, np.float32):
        return bool(actual == np.float32(expected))
    if isinstance(actual, float) and isinstance(expected, float | int):
        return actual == expected or (math.isnan(actual) and math.isnan(expected))
    if isinstance(actual, Decimal) and isinstance(expected, int | float | Decimal):
        return actual == Decimal(str(expected))
    return type(actual) is type(expected) and actual == expected
