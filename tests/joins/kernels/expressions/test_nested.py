"""ROW, ARRAY and MAP: read from JSON, taken apart by expressions, written as JSON."""

# ruff: noqa: DTZ001 - TIMESTAMP has no zone

import base64
import json
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.delta.source import captured_columns
from joins.kernels.changelog.envelope import BinlogPosition, decode, encode_snapshot
from joins.kernels.changelog.row_changes import row_changes
from joins.kernels.expressions.evaluate import Scope, evaluate_rows
from joins.kernels.expressions.nested import missing_parts
from joins.kernels.json.encode import encode_objects, render_rows
from joins.kernels.json.exact import json_values, row_texts
from joins.kernels.json.rows import parse
from joins.kernels.json.wire import to_wire
from joins.plan.plan import Field
from joins.plan.types import (
    Call,
    Case,
    Cast,
    Column,
    Constant,
    Member,
    SqlType,
    TypeName,
    array_type,
    arrow_type,
    map_type,
    row_type,
)
from tests.support.laws import examples

BIGINT, INT = SqlType(TypeName.BIGINT), SqlType(TypeName.INT)
STRING, BOOLEAN = SqlType(TypeName.STRING), SqlType(TypeName.BOOLEAN)
DOUBLE, DECIMAL = SqlType(TypeName.DOUBLE), SqlType(TypeName.DECIMAL, 10, 2)
DATE, TIMESTAMP = SqlType(TypeName.DATE), SqlType(TypeName.TIMESTAMP, 3)
BYTES = SqlType(TypeName.BYTES)
PAYLOAD = row_type(
    Member("id", BIGINT),
    Member("paid", DECIMAL),
    Member("on", array_type(DATE)),
    Member("deep", row_type(Member("x", BYTES), Member("f", DOUBLE))),
)
LABELS = map_type(row_type(Member("n", INT), Member("on", DATE)))
SCHEMA = pa.schema([("p", arrow_type(PAYLOAD)), ("m", arrow_type(LABELS))])
ROWS_ONLY = pa.schema([SCHEMA.field("p")])


def values(texts):
    return pa.array(texts, pa.binary())


def plain(value):
    """A value of Arrow, maps as dictionaries."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: plain(item) for key, item in value}
    return [plain(item) for item in value] if isinstance(value, list) else value


GOOD = {
    "nothing": (b"{}", {"p": None, "m": None}),
    "nulls": (b'{"p":null,"m":null}', {"p": None, "m": None}),
    "empty": (
        b'{"p":{},"m":{}}',
        {"p": {"id": None, "paid": None, "on": None, "deep": None}, "m": []},
    ),
    "all_of_it": (
        b'{"p":{"id":1,"paid":1.25,"on":["2026-11-22",null],"deep":{"x":"YWI=","f":1}},'
        b'"m":{"a":{"n":2,"on":"2026-11-22"},"b":null}}',
        {
            "p": {
                "id": 1,
                "paid": Decimal("1.25"),
                "on": [date(2026, 11, 22), None],
                "deep": {"x": b"ab", "f": 1.0},
            },
            "m": [("a", {"n": 2, "on": date(2026, 11, 22)}), ("b", None)],
        },
    ),
    "of_equal_keys_the_last_one_counts": (
        b'{"m":{"a":{"n":1},"a":{"n":2}}}',
        {"p": None, "m": [("a", {"n": 2, "on": None})]},
    ),
    "unknown_members_are_ignored": (
        b'{"u":{"p":1},"m":{"a":{"n":1,"u":[{}],"u":2}}}',
        {"p": None, "m": [("a", {"n": 1, "on": None})]},
    ),
}


@pytest.mark.parametrize(("text", "row"), GOOD.values(), ids=GOOD)
def test_nested_values_are_read(text, row):
    result = parse(values([b"{}", text, b"{}"]), SCHEMA)
    assert result.bad == ()
    assert result.batch.schema == SCHEMA
    assert result.batch.to_pylist()[1] == row


BAD = {
    "row_is_a_number": (b'{"p":5}', 'field "p": expected object, found number'),
    "row_is_an_array": (b'{"p":[]}', 'field "p": expected object, found array'),
    "field_is_text": (b'{"p":{"id":"x"}}', 'field "p.id": expected number, found string'),
    "field_is_a_fraction": (b'{"p":{"id":1.5}}', 'field "p.id": '),
    "field_twice": (b'{"p":{"id":1,"id":2}}', 'field "p.id" appears twice'),
    "array_is_an_object": (b'{"p":{"on":{}}}', 'field "p.on": expected array, found object'),
    "element_is_no_date": (b'{"p":{"on":["x"]}}', 'field "p.on[]": "x" is not a date'),
    "element_is_a_row": (b'{"p":{"on":[{}]}}', 'field "p.on[]": expected string, found object'),
    "deep_bytes": (b'{"p":{"deep":{"x":"#"}}}', 'field "p.deep.x": "#" is not base64'),
    "deep_infinity": (b'{"p":{"deep":{"f":1e999}}}', 'field "p.deep.f": "1e999" is not a'),
    "deep_nan": (b'{"p":{"deep":{"f":NaN}}}', 'field "p.deep.f": "NaN" is not a finite number'),
    "cut_off": (b'{"p":{"id":1}', "invalid JSON: "),
    "two_documents": (b"{}{}", ""),
}
BAD_MAPS = {
    "map_is_an_array": (b'{"m":[]}', 'field "m": expected object, found array'),
    "map_of_entries": (b'{"m":[{"key":"a","value":null}]}', 'field "m": expected object'),
    "map_value_is_text": (b'{"m":{"a":"x"}}', 'field "m[].value": expected object, found string'),
    "map_field_is_text": (b'{"m":{"a":{"n":"x"}}}', 'field "m[].value.n": expected number'),
    "map_date": (b'{"m":{"a":{"on":"x"}}}', 'field "m[].value.on": "x" is not a date'),
    "too_deep": (b'{"m":' + b"[" * 3000 + b"]" * 3000 + b"}", 'field "m": it is nested too deeply'),
}


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("schema", [ROWS_ONLY, SCHEMA], ids=["as_it_is", "next_to_a_map"])
def test_a_nested_value_that_does_not_fit_is_named(schema, text, reason):
    result = parse(values([b'{"p":{"id":1}}', text, b'{"p":{"id":2}}']), schema)
    assert [bad.row for bad in result.bad] == [1]
    assert result.bad[0].reason.startswith(reason)
    assert [row["p"]["id"] for row in result.batch.to_pylist()] == [1, 2]


@pytest.mark.parametrize(("text", "reason"), BAD_MAPS.values(), ids=BAD_MAPS)
def test_a_map_that_does_not_fit_is_named(text, reason):
    result = parse(values([b'{"m":{"a":null}}', text]), SCHEMA)
    assert [(bad.row, bad.reason.startswith(reason)) for bad in result.bad] == [(1, True)]


SCALARS = {
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    BOOLEAN: st.booleans(),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    DECIMAL: st.integers(-(10**8) + 1, 10**8 - 1),
    DATE: st.dates(date(1, 1, 1)).map(date.isoformat),
    TIMESTAMP: st.datetimes().map(lambda moment: moment.isoformat(" ", "microseconds")),
    BYTES: st.binary(max_size=4).map(lambda data: base64.b64encode(data).decode()),
}
STRANGE = st.sampled_from([True, 1, 0.5, "x", [], {}, [1], {"a": 1}])
KINDS = st.recursive(
    st.sampled_from(list(SCALARS)),
    lambda inner: st.one_of(
        inner.map(array_type),
        inner.map(map_type),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: row_type(*(Member(f"f{at}", kind) for at, kind in enumerate(kinds)))
        ),
    ),
    max_leaves=4,
)


def documents(kind):
    """JSON values that mostly fit `kind`."""
    if kind.name is TypeName.ROW:
        fits = st.fixed_dictionaries(
            {}, optional={member.name: documents(member.type) for member in kind.members}
        )
    elif kind.name is TypeName.ARRAY:
        fits = st.lists(documents(kind.members[0].type), max_size=3)
    elif kind.name is TypeName.MAP:
        fits = st.dictionaries(SCALARS[STRING], documents(kind.members[1].type), max_size=3)
    else:
        fits = SCALARS[TIMESTAMP if kind.name is TypeName.TIMESTAMP else kind]
    return st.integers(0, 19).flatmap(
        lambda chance: STRANGE if chance == 0 else st.none() if chance == 1 else fits
    )


class UnfitError(Exception):
    """The reference finds that a value does not fit."""


def reference(value, kind):
    """What `kind` makes of a value of `json.loads`, one value after the other."""
    if value is None:
        return None
    if kind == STRING and not isinstance(value, str):
        return json.dumps(value, separators=(",", ":"))  # as it is written
    python = {BIGINT: int, STRING: str, BOOLEAN: bool, DOUBLE: (int, float), DECIMAL: (int, float)}
    python |= {DATE: str, TIMESTAMP: str, BYTES: str}
    wanted = {TypeName.ROW: dict, TypeName.MAP: dict, TypeName.ARRAY: list}.get(kind.name)
    wanted = wanted or python[kind]
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind != BOOLEAN):
        raise UnfitError
    if kind.name is TypeName.ROW:
        return {m.name: reference(value.get(m.name), m.type) for m in kind.members}
    if kind.name is TypeName.MAP:
        return {key: reference(item, kind.members[1].type) for key, item in value.items()}
    if kind.name is TypeName.ARRAY:
        return [reference(item, kind.members[0].type) for item in value]
    try:
        if kind == DATE:
            return date.fromisoformat(value)
        if kind == TIMESTAMP:
            return datetime.fromisoformat(value)
        if kind == BYTES:
            return base64.b64decode(value, validate=True)
    except ValueError:
        raise UnfitError from None
    return Decimal(str(value)) if kind == DECIMAL else value


def expected_of(texts, kind):
    rows, bad = {}, set()
    for at, text in enumerate(texts):
        try:
            rows[at] = reference(json.loads(text).get("v"), kind)
        except UnfitError:
            bad.add(at)
    return rows, bad


def text_of(value):
    return json.dumps({"v": value}).encode()


@settings(max_examples=examples(60))
@given(st.data())
def test_parsing_gives_what_a_reader_of_single_values_gives(data):
    kind = data.draw(KINDS)
    texts = data.draw(st.lists(documents(kind).map(text_of), min_size=1, max_size=6))
    rows, bad = expected_of(texts, kind)
    own = pa.field("v", arrow_type(kind))
    for schema in (pa.schema([own]), pa.schema([own, ("other", arrow_type(LABELS))])):
        result = parse(values(texts), schema)
        found = [plain(value) for value in result.batch.column("v").to_pylist()]
        assert {each.row for each in result.bad} == bad
        # An empty list and an empty map are the same in Python's form of them.
        assert dict(zip(result.row_index.to_pylist(), found, strict=True)) == {
            at: plain(like(row, kind)) for at, row in rows.items()
        }


def like(value, kind):
    """A value in the form in which Arrow shows it: a map as pairs."""
    if value is None or not kind.is_nested:
        return value
    if kind.name is TypeName.ROW:
        return {m.name: like(value[m.name], m.type) for m in kind.members}
    if kind.name is TypeName.ARRAY:
        return [like(item, kind.members[0].type) for item in value]
    return [(key, like(item, kind.members[1].type)) for key, item in value.items()]


@settings(max_examples=examples(60))
@given(st.data())
def test_what_is_written_as_json_is_read_back_the_same(data):
    kind = data.draw(KINDS)
    texts = data.draw(st.lists(documents(kind).map(text_of), min_size=1, max_size=6))
    batch = parse(values(texts), pa.schema([("v", arrow_type(kind))])).batch
    for part in (batch, batch.slice(1)):
        written = encode_objects(part)
        again = parse(written.cast(pa.binary()), part.schema)
        assert again.bad == ()
        assert again.batch.to_pylist() == part.to_pylist()
        assert row_texts(part).to_pylist() == written.to_pylist()


def exact(kind):
    """The type with all digits of a microsecond."""
    members = tuple(replace(part, type=exact(part.type)) for part in kind.members)
    return replace(kind, precision=6 if kind == TIMESTAMP else kind.precision, members=members)


@settings(max_examples=examples(60))
@given(st.data())
def test_what_a_dimension_sends_is_in_its_changelog_as_it_was(data):
    kind = exact(data.draw(KINDS.filter(lambda found: found.is_nested)))
    texts = data.draw(st.lists(documents(kind).map(text_of), min_size=1, max_size=6))
    found = parse(values(texts), pa.schema([("v", arrow_type(kind))])).batch.column("v")
    sent = pa.record_batch(
        [pa.array(range(len(found)), pa.int64()), to_wire(found, kind)], ["id", "v"]
    )
    columns = captured_columns((Field("id", BIGINT), Field("v", kind)))
    for first in (0, 1):
        place = BinlogPosition(0, 1, 0)
        records = encode_snapshot(sent.slice(first), ("id",), place, generation=1, partitions=1)
        offsets = pa.array(range(records.num_rows))
        read = decode(records.append_column("offset", offsets), columns, topic="t").batch
        assert read.column("v").type == arrow_type(kind)
        assert read.column("v").to_pylist() == found.slice(first).to_pylist()


@settings(max_examples=examples(40))
@given(st.data())
def test_a_nested_value_is_a_change_where_it_is_another_one(data):
    kind = data.draw(KINDS.filter(lambda found: found.is_nested))
    texts = data.draw(st.lists(documents(kind).map(text_of), min_size=2, max_size=6))
    found = parse(values(texts), pa.schema([("v", arrow_type(kind))])).batch.column("v")
    before, after = (
        pa.record_batch([pa.array(range(len(side)), pa.int64()), to_wire(side, kind)], ["id", "v"])
        for side in (found, found[::-1])
    )
    shown = [json.dumps(value) for value in json_values(found)]  # 0.0 is not -0.0
    changed = [at for at, value in enumerate(shown) if value != shown[-1 - at]]
    assert row_changes(before, after, ("id",)).column("after").to_pylist() == changed


ITEMS = array_type(row_type(Member("sku", STRING), Member("n", INT)))
TAGS = map_type(STRING)
COLUMNS = {
    "payload": (row_type(Member("id", BIGINT), Member("a", array_type(INT))), None),
    "items": (ITEMS, None),
    "tags": (TAGS, None),
    "at": (INT, None),
    "key": (STRING, None),
}
DATA = {
    "payload": [{"id": 1, "a": [7, 8]}, None, {"id": None, "a": []}, {"id": 3, "a": None}],
    "items": [[{"sku": "x", "n": 1}, None], None, [], [{"sku": "y", "n": 2}]],
    "tags": [[("a", "1"), ("b", None)], None, [], [("b", "2")]],
    "at": [2, 1, None, 1],
    "key": ["a", "a", None, "b"],
}


def column(name):
    return Column("t", name, COLUMNS[name][0])


def field(of, name):
    kind = next(member.type for member in of.type.members if member.name == name)
    return Call(".", (of, Constant(name, STRING)), kind)


def element(of, key):
    return Call("[]", (of, key), of.type.members[-1].type)


def number(value):
    return Constant(str(value), INT)


COUNTS = map_type(INT)
KEY_OR_C = Call("COALESCE", (column("key"), Constant("c", STRING)), STRING)
WORDS = Call("MAP_KEYS", (column("tags"),), array_type(STRING))
VALUES = Call("MAP_VALUES", (column("tags"),), array_type(STRING))
ACCESS = {
    "field": (field(column("payload"), "id"), [1, None, None, 3]),
    "element": (element(field(column("payload"), "a"), number(2)), [8, None, None, None]),
    "behind_the_end": (element(field(column("payload"), "a"), number(3)), [None] * 4),
    "before_the_start": (element(field(column("payload"), "a"), number(0)), [None] * 4),
    "negative": (element(field(column("payload"), "a"), number(-1)), [None] * 4),
    "field_of_an_element": (
        field(element(column("items"), number(1)), "sku"),
        ["x", None, None, "y"],
    ),
    "element_of_a_column": (
        field(element(column("items"), column("at")), "n"),
        [None, None, None, 2],
    ),
    "map_value": (element(column("tags"), Constant("b", STRING)), [None, None, None, "2"]),
    "map_value_of_a_column": (element(column("tags"), column("key")), ["1", None, None, "2"]),
    "array_size": (Call("CARDINALITY", (column("items"),), INT), [2, None, 0, 1]),
    "map_size": (Call("CARDINALITY", (column("tags"),), INT), [2, None, 0, 1]),
    "row_is_null": (Call("IS NULL", (column("payload"),), BOOLEAN), [False, True, False, False]),
    "map_is_null": (Call("IS NOT NULL", (column("tags"),), BOOLEAN), [True, False, True, True]),
    "case": (
        Call(
            "CARDINALITY",
            (Case(((Call("IS NULL", (column("at"),), BOOLEAN), column("items")),), None, ITEMS),),
            INT,
        ),
        [None, None, 0, None],
    ),
    "coalesce": (
        Call("CARDINALITY", (Call("COALESCE", (column("tags"), column("tags")), TAGS),), INT),
        [2, None, 0, 1],
    ),
    "row_made": (
        Call("ROW", (column("at"), column("tags")), row_type(Member("a", INT), Member("b", TAGS))),
        [{"a": at, "b": tags} for at, tags in zip(DATA["at"], DATA["tags"], strict=True)],
    ),
    "array_made": (
        Call("ARRAY", (column("at"), number(9), column("at")), array_type(INT)),
        [[at, 9, at] for at in DATA["at"]],
    ),
    "array_made_of_constants": (
        Call("ARRAY", (number(1), number(2)), array_type(INT)),
        [[1, 2]] * 4,
    ),
    "map_made": (
        Call(
            "MAP", (Constant("x", STRING), column("at"), Constant("y", STRING), number(7)), COUNTS
        ),
        [[("x", at), ("y", 7)] for at in DATA["at"]],
    ),
    "of_equal_keys_of_a_map_the_last_one_counts": (
        Call("MAP", (KEY_OR_C, column("at"), Constant("a", STRING), number(7)), COUNTS),
        [[("a", 7)], [("a", 7)], [("c", None), ("a", 7)], [("b", 1), ("a", 7)]],
    ),
    "three_keys_of_a_map": (
        Call(
            "MAP",
            (KEY_OR_C, number(1), Constant("a", STRING), number(2), KEY_OR_C, number(3)),
            COUNTS,
        ),
        [[("a", 3)], [("a", 3)], [("a", 2), ("c", 3)], [("a", 2), ("b", 3)]],
    ),
    "map_made_of_constants": (
        Call("MAP", (Constant("x", STRING), number(1), Constant("x", STRING), number(2)), COUNTS),
        [[("x", 2)]] * 4,
    ),
    "map_keys": (
        Call("MAP_KEYS", (column("tags"),), array_type(STRING)),
        [["a", "b"], None, [], ["b"]],
    ),
    "map_values": (
        Call("MAP_VALUES", (column("tags"),), array_type(STRING)),
        [["1", None], None, [], ["2"]],
    ),
    "contains": (
        Call("ARRAY_CONTAINS", (field(column("payload"), "a"), number(8)), BOOLEAN),
        [True, None, False, None],
    ),
    "contains_a_column": (
        Call("ARRAY_CONTAINS", (WORDS, column("key")), BOOLEAN),
        [True, None, False, True],
    ),
    "contains_null": (
        Call("ARRAY_CONTAINS", (VALUES, Constant(None, STRING)), BOOLEAN),
        [True, None, False, False],
    ),
    "joined": (
        Call("ARRAY_JOIN", (VALUES, Constant(",", STRING)), STRING),
        ["1", None, "", "2"],
    ),
    "joined_with_a_text_for_null": (
        Call("ARRAY_JOIN", (VALUES, column("key"), Constant("?", STRING)), STRING),
        ["1a?", None, None, "2"],
    ),
    "of_a_null": (field(Constant(None, row_type(Member("x", INT))), "x"), [None] * 4),
}


@pytest.mark.parametrize(("expression", "expected"), ACCESS.values(), ids=ACCESS)
@pytest.mark.parametrize("first", [0, 1, 3], ids=["whole", "slice", "last"])
def test_parts_are_taken_out(expression, expected, first):
    arrays = {
        name: pa.array(DATA[name], arrow_type(kind)).slice(first)
        for name, (kind, _) in COLUMNS.items()
    }
    scope = Scope(lambda column: arrays[column.name], 4 - first, 0)
    answer = evaluate_rows(expression, scope)
    assert answer.errors == {}
    assert answer.values.type == arrow_type(expression.type)
    assert answer.values.to_pylist() == expected[first:]


def test_a_record_fails_where_a_key_of_a_map_is_null():
    made = Call("MAP", (column("key"), number(1)), COUNTS)
    keys = pa.array(DATA["key"], pa.string())
    answer = evaluate_rows(made, Scope(lambda _: keys, 4, 0))
    assert list(answer.errors) == [2]
    assert answer.errors[2].startswith('"MAP": a key is NULL')
    assert answer.values.to_pylist() == [[("a", 1)], [("a", 1)], None, [("b", 1)]]


def test_a_cast_goes_to_the_same_places_and_names_the_row_that_fails():
    source = array_type(row_type(Member("a", STRING), Member("b", INT)))
    target = array_type(row_type(Member("x", INT), Member("y", BIGINT)))
    rows = [[{"a": "1", "b": 2}], None, [{"a": "5", "b": 6}, {"a": "no", "b": 1}], []]
    array = pa.array(rows, arrow_type(source))
    for safe, failing in ((False, {2}), (True, set())):
        cast = Cast(Column("t", "c", source), target, safe=safe)
        answer = evaluate_rows(cast, Scope(lambda _: array, 4, 0))
        assert set(answer.errors) == failing
        assert answer.values.to_pylist() == [[{"x": 1, "y": 2}], None, None, []]


def test_parts_that_must_be_there_are_missed_where_they_should_be():
    inner = row_type(Member("a", INT, nullable=False), Member("b", INT))
    kind = row_type(
        Member("r", inner), Member("l", array_type(INT, nullable=False)), Member("m", map_type(INT))
    )
    rows = [
        {"r": {"a": 1, "b": None}, "l": [1], "m": [("k", None)]},
        {"r": None, "l": None, "m": None},
        None,
        {"r": {"a": None, "b": 1}, "l": [], "m": []},
        {"r": None, "l": [1, None], "m": []},
    ]
    found = {
        path: mask.nonzero()[0].tolist()
        for path, mask in missing_parts(pa.array(rows, arrow_type(kind)), kind, "p")
    }
    assert found == {"p.r.a": [3], "p.l[]": [4]}


def test_nested_values_are_shown_as_flink_prints_them_and_as_json():
    batch = pa.RecordBatch.from_arrays(
        [pa.array(DATA[name], arrow_type(COLUMNS[name][0])) for name in ("payload", "tags")],
        names=["payload", "tags"],
    )
    assert render_rows(batch, "").to_pylist() == [
        "+I[+I[1, [7, 8]], {a=1, b=null}]",
        "+I[null, null]",
        "+I[+I[null, []], {}]",
        "+I[+I[3, null], {b=2}]",
    ]
    assert json_values(batch.column("payload")) == DATA["payload"]
    assert json_values(batch.column("tags"))[0] == {"a": "1", "b": None}
    moment = pa.array(
        [[datetime(2026, 11, 22) + timedelta(seconds=1)]], pa.list_(pa.timestamp("us"))
    )
    assert json_values(moment) == [["2026-11-22T00:00:01.000000"]]
