"""Laws of the decoder: what a model of the converters writes reads back, and nothing else does."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.debezium.changes import RecordKind
from joins.kernels.debezium.decoder import DebeziumDecoder
from joins.kernels.debezium.options import (
    BigintUnsignedHandling,
    BinaryHandling,
    DebeziumOptions,
    DecimalHandling,
    TimePrecision,
)
from joins.plan.plan import Field
from tests.support import debezium_values as model
from tests.support.expressions import sql_type
from tests.support.laws import examples

EXAMPLES = examples(200)
DAYS = st.dates(date(1, 1, 1), date(9999, 12, 31))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def moments(digits, mode):
    """Timestamps of a precision that a mode can write."""
    years = ("1700", "2200") if mode == "nanoseconds" else ("0001", "9999")
    values = st.datetimes(*(datetime.fromisoformat(f"{year}-12-30") for year in years))
    unit = 10 ** (6 - digits)
    return values.map(lambda at: at.replace(microsecond=at.microsecond // unit * unit))


def clocks(digits):
    unit = 10 ** (6 - digits)
    return st.integers(0, 86_400_000_000 // unit - 1).map(lambda n: n * unit)


def decimals(precision, scale):
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda n: Decimal(n).scaleb(-scale, model.WIDE))


class Case(NamedTuple):
    """Values of a declared type, how they are written, and how they are read."""

    kind: str
    values: st.SearchStrategy
    write: Callable
    read: Callable = lambda value: value
    options: DebeziumOptions = DebeziumOptions()


def listed(write):
    return lambda values: model.array(
        None if values is None else [write(each) for each in values], write(None)
    )


def whole_numbers():
    for kind, bits in (("TINYINT", 8), ("SMALLINT", 16), ("INT", 32), ("BIGINT", 64)):
        limit = 1 << (bits - 1)
        yield kind, Case(kind, st.integers(-limit, limit - 1), partial(model.integer, bits=bits))
    for mode in (BigintUnsignedHandling.LONG, BigintUnsignedHandling.PRECISE):
        options = DebeziumOptions(bigint_unsigned=mode)
        write = partial(model.unsigned, mode=mode.value)
        case = Case("DECIMAL(20, 0)", st.integers(0, 2**64 - 1), write, Decimal, options)
        yield f"unsigned {mode}", case


def scalars():
    narrow = st.floats(width=32, allow_nan=False)
    yield "DOUBLE", Case("DOUBLE", st.floats(allow_nan=False), model.double)
    yield "FLOAT as double", Case("FLOAT", narrow, model.double)
    short = narrow.map(lambda value: float(str(np.float32(value))))
    case = Case("FLOAT", short, partial(model.double, kind="float"), lambda v: float(np.float32(v)))
    yield "FLOAT in its digits", case
    yield "STRING", Case("STRING", TEXTS, model.string)
    for as_number in (False, True):
        write = partial(model.boolean, as_number=as_number)
        yield f"BOOLEAN, number={as_number}", Case("BOOLEAN", st.booleans(), write)
    for mode in BinaryHandling:
        write = partial(model.binary, mode=mode.value)
        options = DebeziumOptions(binary_handling=mode)
        yield f"BYTES {mode}", Case("BYTES", st.binary(max_size=20), write, options=options)


def all_decimals():
    for precision, scale in ((10, 2), (18, 0), (38, 10), (5, 5), (19, 19)):
        kind, values = f"DECIMAL({precision}, {scale})", decimals(precision, scale)
        for mode in ("precise", "string", "numeric"):
            handling = DecimalHandling.STRING if mode == "string" else DecimalHandling.PRECISE
            write = partial(model.decimal, scale=scale, mode=mode)
            options = DebeziumOptions(decimal_handling=handling)
            yield f"{kind} {mode}", Case(kind, values, write, options=options)
        yield f"{kind} variable", Case(kind, values, model.variable_decimal)
    options = DebeziumOptions(decimal_handling=DecimalHandling.DOUBLE)
    write = partial(model.decimal, scale=2, mode="double")
    yield "DECIMAL double", Case("DECIMAL(10, 2)", decimals(10, 2), write, options=options)


def times():
    for mode in TimePrecision:
        options, word = DebeziumOptions(time_precision=mode), mode.value
        yield f"DATE {mode}", Case("DATE", DAYS, partial(model.day, mode=word), options=options)
        for digits in (0, 3) if mode is TimePrecision.CONNECT else (0, 3, 6):
            kind, write = f"TIME({digits})", partial(model.clock, mode=word, precision=digits)
            yield f"{kind} {mode}", Case(kind, clocks(digits), write, options=options)
            kind = f"TIMESTAMP({digits})"
            write = partial(model.moment, mode=word, precision=digits)
            yield f"{kind} {mode}", Case(kind, moments(digits, word), write, options=options)
        write = partial(model.instant, mode=word)
        case = Case(
            "TIMESTAMP_LTZ(6)", moments(6, word), write, lambda v: v.replace(tzinfo=UTC), options
        )
        yield f"TIMESTAMP_LTZ {mode}", case


def nested():
    whole = st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=4)
    yield "ARRAY<INT>", Case("ARRAY<INT>", whole, listed(partial(model.integer, bits=32)))
    prices = st.lists(st.none() | decimals(10, 2), max_size=4)
    write = listed(partial(model.decimal, scale=2))
    yield "ARRAY<DECIMAL>", Case("ARRAY<DECIMAL(10, 2)>", prices, write)
    pairs = st.dictionaries(TEXTS, st.none() | TEXTS, max_size=4)
    for mode in ("json", "map"):
        write = partial(model.text_map, mode=mode)
        yield f"MAP {mode}", Case("MAP<STRING, STRING>", pairs, write, lambda v: list(v.items()))


CASES = dict(chain(whole_numbers(), scalars(), all_decimals(), times(), nested()))


def records(values, keys=None):
    texts = [None if value is None else value.encode("utf-8") for value in values]
    keys = keys or [None] * len(texts)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([None if k is None else k.encode("utf-8") for k in keys], pa.binary()),
            "value": pa.array(texts, pa.binary()),
        }
    )


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_what_the_converters_write_reads_back(name, data):
    kind, values, write, read, options = CASES[name]
    wrapped, ascii_only = data.draw(st.booleans()), data.draw(st.booleans())
    chosen = data.draw(st.lists(st.none() | values, min_size=1, max_size=5))
    columns = [Field("id", sql_type("INT")), Field("x", sql_type(kind))]
    rows = [{"id": model.integer(at, 32), "x": write(v)} for at, v in enumerate(chosen)]
    texts = [model.envelope(row, wrapped=wrapped) for row in rows]
    keys = [model.key_of(row, ["id"], wrapped=wrapped) for row in rows]
    batch = records(
        [model.text_of(each, ascii_only=ascii_only) for each in texts],
        [model.text_of(each, ascii_only=ascii_only) for each in keys],
    )
    changes = DebeziumDecoder(columns, ["id"], options).decode(batch)
    assert changes.bad == ()
    expected = [None if value is None else read(value) for value in chosen]
    assert changes.after.column("x").to_pylist() == expected
    assert changes.key.column("id").to_pylist() == list(range(len(chosen)))


COLUMNS = {
    "id": "BIGINT",
    "name": "STRING",
    "price": "DECIMAL(10, 2)",
    "at": "TIMESTAMP(3)",
    "is_on": "BOOLEAN",
    "score": "DOUBLE",
    "raw": "BYTES",
    "ids": "ARRAY<INT>",
}
FIELDS = [Field(name, sql_type(kind)) for name, kind in COLUMNS.items()]


def sample(number):
    return {
        "id": model.integer(number),
        "name": model.string('é"\\n'),
        "price": model.decimal(Decimal("-12.34"), 2),
        "at": model.moment(datetime.fromisoformat("2024-02-29T01:02:03.004"), "adaptive", 3),
        "is_on": model.boolean(True),
        "score": model.double(1.5e300),
        "raw": model.binary(b"abcd"),
        "ids": model.array([model.integer(1), model.integer(None)], model.integer(1)),
    }


class NotARowError(Exception):
    """The reference does not understand a record."""


class Members(dict):
    """An object, and which names it has twice: of those that are read it must not."""

    def __init__(self, pairs):
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        "".join(names).encode("utf-8")
        self.twice = {name for name in names if names.count(name) > 1}

    def require_once(self, names):
        if self.twice & set(names):
            raise NotARowError


def reference(value):
    """The row of an envelope, value by value; or `NotARowError`."""
    try:
        whole = json.loads(
            value.decode(json.detect_encoding(value)),
            strict=False,
            object_pairs_hook=Members,
            parse_int=lambda text: ("int", text),
            parse_float=lambda text: ("float", text),
            parse_constant=lambda text: ("constant", text),
        )
    except (ValueError, RecursionError) as exc:
        raise NotARowError from exc
    if not isinstance(whole, dict) or whole.get("op") not in ("c", "u", "r"):
        raise NotARowError
    whole.require_once(("before", "after", "op", "source"))
    if isinstance(whole.get("source"), dict):
        whole["source"].require_once(
            ("snapshot", "ts_ms", "db", "schema", "table", "lsn", "file", "pos")
        )
    after = whole.get("after")
    if not isinstance(after, dict) or any(name not in after for name in COLUMNS):
        raise NotARowError
    after.require_once(COLUMNS)
    return [None if after[n] is None else READ[n](after[n]) for n in COLUMNS]


def _integer(value, bits):
    if not isinstance(value, tuple) or value[0] != "int":
        raise NotARowError
    number = int(value[1])
    if value[1] == "-0" or not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise NotARowError
    return number


def _whole(value, bits):
    if isinstance(value, tuple) and value[0] == "float":
        number = Decimal(value[1])
        if abs(number.adjusted()) < 30 and number == number.to_integral_value():
            return _integer(("int", str(int(number))), bits)
    return _integer(value, bits)


def _text(value):
    if not isinstance(value, str) or any("\ud800" <= each <= "\udfff" for each in value):
        raise NotARowError
    return value


def _base64(value):
    try:
        raw = base64.b64decode(_text(value), validate=True)
    except ValueError as exc:
        raise NotARowError from exc
    if base64.b64encode(raw).decode() != value:
        raise NotARowError
    return raw


def _decimal(value):
    if isinstance(value, str):
        raw = _base64(value)
        if not raw:
            raise NotARowError
        number = Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-2)
    elif isinstance(value, tuple) and value[0] != "constant":
        number = Decimal(value[1])
        if abs(number) >= 10**8 or number != number.quantize(Decimal("0.01"), context=model.WIDE):
            raise NotARowError
    else:
        raise NotARowError
    if abs(number) >= 10**8:
        raise NotARowError
    return number


def _moment(value):
    if isinstance(value, str):
        raise NotARowError  # texts and objects are not made here
    millis = _integer(value, 64)
    if not -62_135_596_800_000 <= millis <= 253_402_300_799_999:
        raise NotARowError
    micros = millis * 1000
    return micros


def _boolean(value):
    if isinstance(value, tuple):
        value = {("int", "0"): False, ("int", "1"): True}.get(value)
    if not isinstance(value, bool):
        raise NotARowError
    return value


def _double(value):
    if not isinstance(value, tuple) or value[0] == "constant":
        raise NotARowError
    number = float(value[1])
    if number in (float("inf"), float("-inf")):
        raise NotARowError
    if value[0] == "int" and int(value[1]) != int(number):
        raise NotARowError
    return number


def _list(value):
    if not isinstance(value, list):
        raise NotARowError
    return [None if each is None else _whole(each, 32) for each in value]


READ = {
    "id": lambda value: _whole(value, 64),
    "name": _text,
    "price": _decimal,
    "at": _moment,
    "is_on": _boolean,
    "score": _double,
    "raw": _base64,
    "ids": _list,
}


def damaged(data, text):
    """Bytes with some changed, removed, put in or doubled."""
    value = bytearray(text)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(value)))
        how = data.draw(st.sampled_from("cdix"))
        piece = data.draw(st.sampled_from(PIECES))
        if how == "c" and at < len(value):
            value[at] = data.draw(st.integers(0, 255))
        elif how == "d":
            del value[at : at + data.draw(st.integers(1, 8))]
        elif how == "i":
            value[at:at] = piece
        else:
            length = data.draw(st.integers(1, 30))
            value[at:at] = value[at : at + length]
    return bytes(value)


PIECES = [
    b"0",
    b"1",
    b"9",
    b"-",
    b".5",
    b"E5",
    b"e-3",
    b'"',
    b"\\",
    b"\\u0041",
    b"\\ud800",
    b"null",
]
PIECES += [b"{", b"}", b"[", b"]", b",", b":", b" ", b"\n", b"\xff", b"\xc3\xa9", b"NaN", b"true"]
PIECES += [b'"op":"c",', b'"after":{},', b"=", b"AA==", b"/", b"_", b"00"]


@settings(max_examples=examples(4_000))
@given(data=st.data())
def test_damaged_bytes_are_bad_or_what_a_slow_reference_reads(data):
    number = data.draw(st.integers(-5, 5))
    whole = model.text_of(model.envelope(sample(number))).encode()
    value = damaged(data, whole)
    batch = pa.RecordBatch.from_pydict(
        {"key": pa.array([None], pa.binary()), "value": pa.array([value], pa.binary())}
    )
    changes = DebeziumDecoder(FIELDS, []).decode(batch)
    kind = changes.kind[0].as_py()
    try:
        expected = reference(value)
    except NotARowError:
        assert kind not in (RecordKind.READ, RecordKind.CREATE, RecordKind.UPDATE), value
        return
    if kind == RecordKind.BAD:
        assert not changes.bad[0].reason.startswith("invalid JSON"), value
        return
    row = [column[0].as_py() for column in changes.after.columns]
    row[3] = changes.after.column(3).cast(pa.int64())[0].as_py()
    assert row == expected


@settings(max_examples=examples(1_000))
@given(values=st.lists(st.none() | st.binary(max_size=40), min_size=1, max_size=5), data=st.data())
def test_no_bytes_raise(values, data):
    keys = [data.draw(st.none() | st.binary(max_size=20)) for _ in values]
    batch = pa.RecordBatch.from_pydict(
        {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
    )
    changes = DebeziumDecoder(FIELDS, ["id"]).decode(batch)
    rows = [each.row for each in changes.bad]
    bad = [row for row, kind in enumerate(changes.kind.to_pylist()) if kind == RecordKind.BAD]
    assert rows == bad
