"""JSON records as columns: right or bad, never another record's row."""

# ruff: noqa: DTZ001 - TIMESTAMP has no zone

import json
import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from joins.kernels.json.each import decimal_of
from joins.kernels.json.rows import parse
from tests.support.laws import examples

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string())])
ONE = b'{"a":1,"s":"x"}'
TWO = b'{"a":2,"s":"y"}'


def parsed(values, schema=SCHEMA):
    return parse(pa.array(values, pa.binary()), schema)


NO_OBJECT = "the value is not one JSON object"
BAD = {
    "null_value": (None, "the value is null"),
    "empty_value": (b"", "the value is empty"),
    "blank_value": (b" \n ", "the value is empty"),
    "json_null": (b"null", NO_OBJECT),
    "array_of_numbers": (b"[1]", "element 1 of the array is no object"),
    "array_with_a_number": (b'[{"a":8},2]', "element 2 of the array is no object"),
    "array_with_a_bad_object": (b'[{"a":8},{"a":"x"}]', 'field "a": expected number'),
    "array_that_is_cut_off": (b'[{"a":8}', NO_OBJECT),
    "number": (b"1", NO_OBJECT),
    "two_byte_order_marks": (b"\xef\xbb\xbf\xef\xbb\xbf" + ONE, NO_OBJECT),
    "half_a_byte_order_mark": (b"\xef\xbb" + ONE, "the value is not UTF-8"),
    "two_objects": (b'{"a":8}{"a":9}', "invalid JSON: there is text behind the object"),
    "two_lines": (b'{"a":8}\n{"a":9}', "invalid JSON: there is text behind the object"),
    "two_lines_the_old_mac_way": (b'{"a":8}\r{"a":9}', "invalid JSON: there is text behind"),
    "null_between_objects": (b"{}null{}", "invalid JSON: there is text behind the object"),
    "nul_byte": (b'{"a":8}\x00}', "invalid JSON: there is text behind the object"),
    "trailing_nul": (b'{"a":8}\x00', NO_OBJECT),
    "invalid_utf_8": (b'{"s":"\xff"}', "the value is not UTF-8"),
    "half_a_surrogate_pair": (b'{"s":"\\ud83d"}', 'field "s": half of a surrogate pair'),
    "cut_off": (b'{"a":1,"z":{"x":1}', "invalid JSON: expected ','"),
    "one_brace_too_many": (b'{"a":1}}', "invalid JSON: there is text behind the object"),
    "open_string": (b'{"s":"}', "invalid JSON:"),
    "open_string_of_no_interest": (b'{"z":"}', "invalid JSON: expected a value"),
    "trailing_comma": (b'{"a":1,}', "invalid JSON: expected a name in quotes at character 7"),
    "leading_zero": (b'{"a":01}', "invalid JSON: expected ','"),
    "text_for_a_number": (b'{"a":"x"}', 'field "a": expected number, found string'),
    "boolean_for_a_number": (b'{"a":true}', 'field "a": expected number, found boolean'),
    "fraction": (b'{"a":1.5}', 'field "a": "1.5" is not an int64'),
    "two_to_the_63": (b'{"a":9223372036854775808}', 'field "a": 9223372036854775808 is not an'),
    "power_beyond_all_bounds": (b'{"a":1e99999999999999999999}', 'field "a": '),
    "same_field_twice": (b'{"a":1,"a":2}', 'field "a" appears twice'),
    "same_field_twice_with_null": (b'{"a":null,"a":2}', 'field "a" appears twice'),
    "same_field_twice_escaped": (b'{"a":1,"\\u0061":2}', 'field "a" appears twice'),
}


@pytest.mark.parametrize(("value", "reason"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "between", "last"])
def test_a_bad_value_is_named_and_its_neighbours_stay_right(value, reason, place):
    values = [ONE, TWO]
    values.insert(place, value)
    result = parsed(values)
    assert result.batch.to_pylist() == [{"a": 1, "s": "x"}, {"a": 2, "s": "y"}]
    assert result.row_index.to_pylist() == [at for at in range(3) if at != place]
    assert [bad.row for bad in result.bad] == [place]
    assert result.bad[0].reason.startswith(reason)


def test_rows_that_would_make_up_for_each_other_are_both_found():
    values = [b'{"a":1}{"a":2}', b'{"a":3}', b'{"a":4}\x00}', b'{"a":5}']
    assert parsed(values).batch.column("a").to_pylist() == [3, 5]


GOOD = {
    "missing_fields_are_null": (b"{}", {"a": None, "s": None}),
    "unknown_fields_are_ignored": (b'{"z":[1,{"a":7}],"a":1}', {"a": 1, "s": None}),
    "unknown_fields_may_repeat": (b'{"z":1,"z":"x","a":1}', {"a": 1, "s": None}),
    "blanks_around": (b' \n{"a":1}\r\n', {"a": 1, "s": None}),
    "printed_on_several_lines": (b'{\r\n  "a": 1,\n  "s": "x"\n}', {"a": 1, "s": "x"}),
    "two_to_the_53_plus_1": (b'{"a":9007199254740993}', {"a": 9007199254740993, "s": None}),
    "smallest_integer": (b'{"a":-9223372036854775808}', {"a": -(2**63), "s": None}),
    "escapes": (b'{"s":"\\u00e4\\n\\u0000\\ud83d\\ude00"}', {"a": None, "s": "ä\n\0😀"}),
    "number_in_quotes": (b'{"a":" 12 "}', {"a": 12, "s": None}),
    "integral_fraction": (b'{"a":1.000}', {"a": 1, "s": None}),
    "integral_power": (b'{"a":15e1}', {"a": 150, "s": None}),
    "minus_zero": (b'{"a":-0}', {"a": 0, "s": None}),
    "number_for_text": (b'{"s":1.50}', {"a": None, "s": "1.50"}),
    "boolean_for_text": (b'{"s":true}', {"a": None, "s": "true"}),
    "object_for_text": (b'{"s":{"b": [1, 2e5, null]}}', {"a": None, "s": '{"b":[1,2e5,null]}'}),
    "array_for_text": (b'{"s":[ "\\u001f/\\"", {} ]}', {"a": None, "s": '["\\u001F/\\"",{}]'}),
    "control_characters": (b'{"s":"a\nb\x00\t","a":1}', {"a": 1, "s": "a\nb\0\t"}),
    "byte_order_mark": (b"\xef\xbb\xbf \n" + ONE, {"a": 1, "s": "x"}),
    "utf_16": (ONE.decode().encode("utf-16-le"), {"a": 1, "s": "x"}),
    "utf_32_with_a_mark": (ONE.decode().encode("utf-32"), {"a": 1, "s": "x"}),
    "array_of_one": (b'[{"a":1}]', {"a": 1, "s": None}),
    "array_of_one_and_null": (b'[null, {"a":1}]', {"a": 1, "s": None}),
    "huge_number_of_no_interest": (b'{"z":1e400,"a":1}', {"a": 1, "s": None}),
    "long_number_of_no_interest": (b'{"z":%s,"a":1}' % (b"1" * 5000), {"a": 1, "s": None}),
    "half_a_pair_of_no_interest": (b'{"z":"\\ud83d","\\ude00":1,"a":1}', {"a": 1, "s": None}),
    "nan_of_no_interest": (b'{"z":[NaN,{"y":-Infinity}],"a":1}', {"a": 1, "s": None}),
    "braces_in_text": (b'{"s":"}{\\"}{"}', {"a": None, "s": '}{"}{'}),
}


@pytest.mark.parametrize(("value", "row"), GOOD.values(), ids=GOOD)
def test_good_values_are_read(value, row):
    result = parsed([ONE, value, TWO])
    assert result.bad == ()
    assert result.batch.to_pylist()[1] == row


UTC = UTC
TYPED = {
    "decimal_from_a_number": (
        pa.decimal128(20, 2),
        b"90071992547409.93",
        Decimal("90071992547409.93"),
    ),
    "decimal_from_text": (pa.decimal128(20, 2), b'"-0.10"', Decimal("-0.10")),
    "decimal_of_as_many_digits_as_it_may_have": (
        pa.decimal128(5, 2),
        b"-999.99",
        Decimal("-999.99"),
    ),
    "decimal_with_exponent": (pa.decimal128(5, 2), b"1.5e1", Decimal("15.00")),
    "decimal_of_an_exponent_with_as_many_digits_as_it_may_have": (
        pa.decimal128(38, 10),
        b"99999999999999999999999999995e-1",
        Decimal("9999999999999999999999999999.5"),
    ),
    "decimal_of_a_tiny_number": (pa.decimal128(38, 38), b"15e-37", Decimal("15e-37")),
    "decimal_beside_a_tiny_number": (
        pa.struct([("m", pa.decimal128(5, 2))]),
        b'{"t": 7e-8322294, "m": 1, "s": "1e-400"}',
        {"m": Decimal("1.00")},
    ),
    "date": (pa.date32(), b'"2024-02-29"', date(2024, 2, 29)),
    "timestamp_as_in_sql": (
        pa.timestamp("us"),
        b'"2024-02-29 01:02:03.5"',
        datetime(2024, 2, 29, 1, 2, 3, 500000),
    ),
    "timestamp_as_in_iso": (
        pa.timestamp("us"),
        b'"2024-02-29T01:02:03"',
        datetime(2024, 2, 29, 1, 2, 3),
    ),
    "nanoseconds_are_cut": (
        pa.timestamp("us"),
        b'"2024-02-29T01:02:03.123456999"',
        datetime(2024, 2, 29, 1, 2, 3, 123456),
    ),
    "instant": (
        pa.timestamp("us", tz="UTC"),
        b'"2024-02-29 01:02:03Z"',
        datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC),
    ),
    "instant_with_offset": (
        pa.timestamp("us", tz="UTC"),
        b'"2024-02-29T01:02:03.1+01:00"',
        datetime(2024, 2, 29, 0, 2, 3, 100000, tzinfo=UTC),
    ),
    "bytes": (pa.binary(), b'"/wA="', b"\xff\x00"),
    "boolean": (pa.bool_(), b"true", True),
    "tinyint": (pa.int8(), b"-128", -128),
    "float": (pa.float32(), b"0.5", 0.5),
    "integer_as_double": (pa.float64(), b"3", 3.0),
    "null": (pa.timestamp("us"), b"null", None),
    "decimal_with_too_many_decimals": (pa.decimal128(5, 2), b"1.235", Decimal("1.24")),
    "negative_decimal_in_quotes": (pa.decimal128(5, 2), b'" -1.235"', Decimal("-1.24")),
    "decimal_that_is_too_small_for_arrow": (
        pa.decimal128(18, 0),
        b"7197686276e-8322294",
        Decimal(0),
    ),
    "decimal_that_arrow_takes_for_0": (pa.decimal128(18, 0), b"1e-39", Decimal(0)),
    "decimal_of_text_that_is_too_small": (pa.decimal128(18, 0), b'"1E-8322294"', Decimal(0)),
    "decimal_of_escaped_text_that_is_too_small": (
        pa.decimal128(18, 0),
        b'"1\\u0065-\\u0038322294"',
        Decimal(0),
    ),
    "double_in_quotes": (pa.float64(), b'"1.5"', 1.5),
    "double_as_java_writes_it": (pa.float64(), b'" +1.5e3D"', 1500.0),
    "infinity_in_quotes": (pa.float64(), b'"-Infinity"', -math.inf),
    "float_in_quotes": (pa.float32(), b'"0.5"', 0.5),
    "boolean_in_quotes": (pa.bool_(), b'" TRUE"', True),
    "bytes_in_lines": (pa.binary(), b'"/\\nw A="', b"\xff\x00"),
}


@pytest.mark.parametrize(("kind", "text", "expected"), TYPED.values(), ids=TYPED)
def test_types_are_read_exactly(kind, text, expected):
    result = parsed([b'{"x":' + text + b"}", b"{}"], pa.schema([("x", kind)]))
    assert result.bad == ()
    assert result.batch.schema.field("x").type == kind
    assert result.batch.column("x").to_pylist() == [expected, None]


UNFIT = {
    "decimal_with_too_many_digits": (pa.decimal128(5, 2), b"12345.6"),
    "decimal_with_too_many_digits_before_the_point": (pa.decimal128(5, 2), b"1000"),
    "decimal_of_text_with_too_many_digits": (pa.decimal128(5, 2), b'"-1000"'),
    "decimal_of_an_exponent_with_too_many_digits": (pa.decimal128(5, 2), b"1e3"),
    "decimal_from_words": (pa.decimal128(5, 2), b'"x"'),
    "decimal_from_nan": (pa.decimal128(5, 2), b"NaN"),
    "decimal_with_a_huge_exponent": (pa.decimal128(5, 2), b'"1e999999999"'),
    "decimal_that_is_rounded_to_too_many_digits": (pa.decimal128(5, 2), b"999.995"),
    "tinyint_128": (pa.int8(), b"128"),
    "nan": (pa.float64(), b"NaN"),
    "infinity": (pa.float64(), b"-Infinity"),
    "too_large_for_float": (pa.float32(), b"1e39"),
    "february_30": (pa.date32(), b'"2024-02-30"'),
    "days": (pa.date32(), b"5"),
    "instant_without_zone": (pa.timestamp("us", tz="UTC"), b'"2024-02-29 01:02:03"'),
    "timestamp_with_zone": (pa.timestamp("us"), b'"2024-02-29 01:02:03Z"'),
    "second_60": (pa.timestamp("us"), b'"2024-02-29 01:02:60"'),
    "not_base64": (pa.binary(), b'"a"'),
    "boolean_of_other_text": (pa.bool_(), b'"yes"'),
    "boolean_of_a_number": (pa.bool_(), b"1"),
}


@pytest.mark.parametrize(("kind", "text"), UNFIT.values(), ids=UNFIT)
def test_unfit_values_are_bad_and_name_their_field(kind, text):
    schema = pa.schema([("x", kind), ("a", pa.int64())])
    result = parsed([b'{"a":1}', b'{"a":2,"x":' + text + b"}", b'{"a":3}'], schema)
    assert result.batch.column("a").to_pylist() == [1, 3]
    assert [bad.row for bad in result.bad] == [1]
    assert result.bad[0].reason.startswith('field "x": ')


TINY_INSIDE = {
    "in_a_list": (pa.list_(pa.decimal128(18, 0)), b"[1, 7e-8322294]", [1, 0]),
    "in_a_map": (
        pa.map_(pa.string(), pa.decimal128(18, 0)),
        b'{"a": 7e-8322294}',
        [("a", 0)],
    ),
}


@pytest.mark.parametrize(("kind", "text", "expected"), TINY_INSIDE.values(), ids=TINY_INSIDE)
def test_a_decimal_that_arrow_cannot_bear_is_rounded(kind, text, expected):
    schema = pa.schema([("x", kind)])
    result = parse(pa.array([b'{"x":%s}' % text], pa.binary()), schema)
    assert result.bad == ()
    assert result.batch.column("x").to_pylist() == [expected]


def test_time_of_day_is_marked_in_the_schema():
    schema = pa.schema([pa.field("t", pa.int64(), metadata={b"sql": b"TIME"})])
    result = parsed([b'{"t":"01:00:00.5"}', b'{"t":5}', b'{"t":"24:00:00"}'], schema)
    assert result.batch.column("t").to_pylist() == [3_600_500_000]
    assert [bad.row for bad in result.bad] == [1, 2]


def test_structs_are_objects():
    row = pa.struct([("id", pa.int64()), ("d", pa.date32()), ("m", pa.decimal128(9, 2))])
    schema = pa.schema([("before", row), ("after", row), ("op", pa.string())])
    values = [
        b'{"before":null,"after":{"id":1,"d":"1970-01-04","m":"1.50"},"op":"c"}',
        b'{"before":1}',
    ]
    result = parsed(values, schema)
    after = {"id": 1, "d": date(1970, 1, 4), "m": Decimal("1.50")}
    assert result.batch.to_pylist() == [{"before": None, "after": after, "op": "c"}]
    assert result.bad[0].reason == 'field "before": expected object, found number'


def test_no_values_and_no_fields():
    assert parsed([]).batch.schema == SCHEMA
    assert parsed([None]).batch.num_rows == 0
    nothing = parsed([b'{"a":1}', b"x", b"{}"], pa.schema([]))
    assert (nothing.batch.num_rows, nothing.row_index.to_pylist()) == (2, [0, 2])


def test_an_array_is_as_many_rows_as_it_has_objects():
    values = [ONE, b'[{"a":7}, {"a":"8","s":1}, null]', b" [ ] ", b"x", TWO]
    result = parsed(values)
    assert result.row_index.to_pylist() == [0, 1, 1, 4]
    assert result.batch.column("a").to_pylist() == [1, 7, 8, 2]
    assert [bad.row for bad in result.bad] == [3]


def test_large_and_deep_values_do_no_harm():
    large = b'{"s":"' + b"x" * (10 << 20) + b'","a":5}'
    deep = b'{"z":' + b"[" * 200_000 + b"]" * 200_000 + b',"a":6}'
    deep_field = b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    unbalanced = b'{"z":' + b'{"z":' * 200_000 + b"}"
    values = [ONE, large, deep, deep_field, unbalanced, TWO]
    result = parsed(values)
    assert result.batch.column("a").to_pylist() == [1, 5, 6, 2]
    assert [bad.row for bad in result.bad] == [3, 4]


def test_slices_and_large_binary_are_values_too():
    array = pa.array([b"x", ONE, None, TWO, b"y"], pa.large_binary())
    result = parse(array.slice(1, 3), SCHEMA)
    assert result.row_index.to_pylist() == [0, 2]
    assert result.batch.column("a").to_pylist() == [1, 2]


def test_many_bad_values_among_many_good_ones():
    values = [b'{"a":%d}' % at for at in range(100_000)]
    wrong = [b'{"a":1.5}', b'{"a":"x"}', b"{}{}", b'{"a":}', b"x", b'{"s":"\xff"}']
    for at in range(0, len(values), 97):
        values[at] = wrong[at % len(wrong)]
    result = parsed(values)
    good = [at for at in range(len(values)) if at % 97]
    assert result.row_index.to_pylist() == good
    assert result.batch.column("a").to_pylist() == good


FRAGMENTS = st.sampled_from(
    [
        b"{", b"}", b'"', b":", b",", b"[", b"]", b"null", b"\n", b"\r", b"\t", b" ", b"\x00", b"1",
        b'"a"', b'"a":1', b'"s":"x"', b'{"a":3}', b"{}", b"\\", b"\xff", b"\xef\xbb\xbf", b"NaN",
        b"-", b"e9", b"true", b'"a":"', b'{"a":', b'"z":{',
    ]
)  # fmt: skip
MEMBERS = st.dictionaries(
    st.sampled_from(["a", "s", "z"]),
    st.one_of(
        st.none(), st.integers(-(2**64), 2**64), st.text(max_size=5), st.floats(), st.booleans()
    ),
)
VALUES = st.one_of(
    st.none(),
    st.lists(FRAGMENTS, max_size=7).map(b"".join),
    st.lists(FRAGMENTS, max_size=5).map(lambda parts: b"{" + b"".join(parts) + b"}"),
    MEMBERS.map(lambda row: json.dumps(row).encode()),
    MEMBERS.map(lambda row: json.dumps(row, ensure_ascii=False, indent=1).encode()),
)


CONSTANT = object()  # NaN or an infinity, which JSON has not


def has_constant(value):
    parts = dict(value).values() if isinstance(value, tuple) else value
    inside = isinstance(value, tuple | list) and any(map(has_constant, parts))
    return inside or value is CONSTANT


def expected_rows(value):
    """The rows of `value` by the standard library, or None if it is bad."""
    try:
        text = value.decode(json.detect_encoding(value)).strip(" \t\r\n")
        whole = json.loads(
            text,
            object_pairs_hook=tuple,
            parse_float=Decimal,
            parse_constant=lambda _: CONSTANT,
            strict=False,
        )
    except (ValueError, AttributeError):
        return None
    if text[:1] == "{":
        return None if (row := expected_row(whole)) is None else [row]
    if text[:1] != "[":
        return None
    rows = [expected_row(each) for each in whole if each is not None]
    return None if None in rows else rows


def expected_row(pairs):
    """The row of an object, or None if it is none."""
    if not isinstance(pairs, tuple):
        return None
    row = {"a": None, "s": None}
    names = [name for name, _ in pairs if name in row]
    if len(names) != len(set(names)):
        return None
    found = dict(pairs)
    number, text = found.get("a"), found.get("s")
    if isinstance(number, str):
        number = int(number) if re.fullmatch(r"\s*[+-]?[0-9]+\s*", number, re.ASCII) else "bad"
    if isinstance(number, Decimal):
        number = int(number) if number == number.to_integral_value() else "bad"
    if number is not None and (type(number) is not int or not -(2**63) <= number < 2**63):
        return None
    if has_constant(text):
        return None
    if text is not None and not isinstance(text, str):
        text = ...  # the text of what is no text is looked at elsewhere
    if isinstance(text, str) and any("\ud800" <= each < "\ue000" for each in text):
        return None
    return {"a": number, "s": text}


@settings(max_examples=examples(400))
@given(st.lists(VALUES, max_size=12))
@example([b'{"s": Infinity}'])
@example([b'{"s": [{"x": NaN, "x": 1}]}'])
@example([b'{"s": {"x": [-Infinity]}}'])
def test_every_row_comes_from_its_own_record(values):
    result = parsed(values)
    rows = {at: [] for at in range(len(values))}
    for at, row in zip(result.row_index.to_pylist(), result.batch.to_pylist(), strict=True):
        rows[at].append(row)
    bad = {each.row for each in result.bad}
    for at, value in enumerate(values):
        expected = None if value is None else expected_rows(value)
        assert (at in bad) == (expected is None), value
        for row, right in zip(rows[at], expected or [], strict=True):
            assert row["a"] == right["a"]
            assert right["s"] in (..., row["s"])


CUT_IN_A_CHARACTER = {
    "the_next_value_completes_it": [b"\xc3", b"\xa4"],
    "the_next_value_is_whole": [b'{"s":"\xc3', TWO],
    "the_next_value_is_empty": [b"\xe2\x82", b"", b"\xac"],
    "it_is_the_last_one": [ONE, b'{"s":"\xf0\x9f'],
}


@pytest.mark.parametrize("values", CUT_IN_A_CHARACTER.values(), ids=CUT_IN_A_CHARACTER)
def test_a_value_that_is_cut_in_a_character_is_not_utf_8_whatever_comes_next(values):
    result = parsed([ONE, *values, b'{"s":"\xc3\xa4"}'])
    reasons = {bad.row - 1: bad.reason for bad in result.bad}
    for at, value in enumerate(values):
        if value in {ONE, TWO}:
            assert at not in reasons
        else:
            assert reasons[at] == ("the value is not UTF-8" if value else "the value is empty")
    assert result.batch.column("s").to_pylist()[-1] == "ä"


def test_many_values_that_are_not_utf_8_are_all_found():
    values = [b'{"s":"%s\xc3\xa4"}' % (b"x" * (at % 50)) for at in range(20_000)]
    for at in range(0, len(values), 61):
        values[at] = (b'{"s":"\xff"}', b'\xa4{"s":1}', b'{"s":"\xed\xa0\xbd"}')[at % 3]
    result = parsed(values)
    assert [bad.row for bad in result.bad] == list(range(0, len(values), 61))
    assert {bad.reason for bad in result.bad} == {"the value is not UTF-8"}
    assert result.row_index.to_pylist() == [at for at in range(len(values)) if at % 61]


def test_repeated_members_among_many_good_ones_are_all_named():
    values = [b'{"a":%d,"s":"a","x":{"a":1}}' % at for at in range(20_000)]
    for at in range(0, len(values), 701):
        values[at] = (b'{"a":1,"s":"a","a":2}', b'{"s":"a","\\u0073":"b"}', b'{"a":1 "a"}')[at % 3]
    result = parsed(values)
    assert [bad.row for bad in result.bad] == list(range(0, len(values), 701))
    for bad in result.bad:
        repeats = ('field "a" appears twice', 'field "s" appears twice', "invalid JSON: expected")
        assert bad.reason.startswith(repeats[bad.row % 3])
    assert result.batch.column("a").to_pylist() == [at for at in range(20_000) if at % 701]


NAMES = {
    "one_is_the_beginning_of_another": ["a", "ab", "abc"],
    "signs_of_patterns": ["a.b", "a*", "[a]", "^", "-", "$a", "(a"],
    "not_ascii": ["ä", "änder", "名"],
    "none": [""],
    "as_many_as_a_table_may_have": [f"column_{at}_with_a_long_name" for at in range(1000)],
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_names_of_all_kinds_are_found_beside_a_bad_line(names):
    schema = pa.schema([(name, pa.int64()) for name in names])
    row = {name: at for at, name in enumerate(names)}
    more = {f"{name}?": "x" for name in names}
    values = [json.dumps({**more, **row}, ensure_ascii=False).encode(), b'{"x":}', b"{}"]
    result = parsed(values, schema)
    assert [bad.row for bad in result.bad] == [1]
    assert result.batch.to_pylist() == [row, dict.fromkeys(names)]


@given(st.integers(1, 38), st.data())
def test_every_decimal_of_its_type_is_read_and_the_next_one_is_not(precision, data):
    scale = data.draw(st.integers(0, precision))
    read = decimal_of(pa.decimal128(precision, scale))
    digits = data.draw(st.one_of(st.just("9" * precision), st.integers(0, 10**precision - 1)))
    for sign in (1, -1):
        number = sign * int(digits)
        exact = Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))
        assert read(f"{number}e-{scale}") == exact
        assert read(f"{sign * 10**precision}e-{scale}") is None
