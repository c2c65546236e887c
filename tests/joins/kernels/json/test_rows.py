"""JSON records as columns: right or bad, never another record's row."""

# ruff: noqa: DTZ001 - TIMESTAMP has no zone

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.json import rows as json_rows
from joins.kernels.json.rows import parse
from joins.kernels.json.screen import Screen
from tests.support.laws import examples

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string())])
ONE = b'{"a":1,"s":"x"}'
TWO = b'{"a":2,"s":"y"}'


def parsed(values, schema=SCHEMA):
    return parse(pa.array(values, pa.binary()), schema)


BAD = {
    "null_value": (None, "the value is null"),
    "empty_value": (b"", "the value is empty"),
    "blank_value": (b" \n ", "the value is empty"),
    "json_null": (b"null", "the value is not one JSON object"),
    "array": (b"[1]", "the value is not one JSON object"),
    "number": (b"1", "the value is not one JSON object"),
    "byte_order_mark": (b"\xef\xbb\xbf" + ONE, "the value is not one JSON object"),
    "two_objects": (b'{"a":8}{"a":9}', "2 JSON documents in place of 1"),
    "two_lines": (b'{"a":8}\n{"a":9}', "2 JSON documents in place of 1"),
    "two_lines_the_old_mac_way": (b'{"a":8}\r{"a":9}', "2 JSON documents in place of 1"),
    "null_between_objects": (b"{}null{}", "3 JSON documents in place of 1"),
    "nul_byte": (b'{"a":8}\x00}', "the value has a NUL byte"),
    "trailing_nul": (b'{"a":8}\x00', "the value is not one JSON object"),
    "invalid_utf_8": (b'{"s":"\xff"}', "the value is not UTF-8"),
    "half_a_surrogate_pair": (b'{"s":"\\ud83d"}', "invalid JSON: the surrogate pair"),
    "cut_off": (b'{"a":1,"z":{"x":1}', "invalid JSON: missing a comma"),
    "one_brace_too_many": (b'{"a":1}}', "invalid JSON: the document is empty"),
    "line_break_in_a_string": (b'{"s":"a\nb"}', "invalid JSON: invalid encoding"),
    "open_string": (b'{"s":"}', "invalid JSON:"),
    "trailing_comma": (b'{"a":1,}', "invalid JSON: missing a name"),
    "leading_zero": (b'{"a":01}', "invalid JSON: missing a comma"),
    "number_in_quotes": (b'{"a":"1"}', 'field "a": expected number, found string'),
    "fraction": (b'{"a":1.5}', 'field "a": '),
    "integral_fraction": (b'{"a":1.0}', 'field "a": '),
    "two_to_the_63": (b'{"a":9223372036854775808}', 'field "a": '),
    "huge_number_in_an_unknown_field": (b'{"x":1e400}', "invalid JSON: number too big"),
    "object_in_place_of_text": (b'{"s":{}}', 'field "s": expected string, found object'),
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
}


@pytest.mark.parametrize(("kind", "text", "expected"), TYPED.values(), ids=TYPED)
def test_types_are_read_exactly(kind, text, expected):
    result = parsed([b'{"x":' + text + b"}", b"{}"], pa.schema([("x", kind)]))
    assert result.bad == ()
    assert result.batch.schema.field("x").type == kind
    assert result.batch.column("x").to_pylist() == [expected, None]


UNFIT = {
    "decimal_with_too_many_decimals": (pa.decimal128(5, 2), b"1.234"),
    "decimal_with_too_many_digits": (pa.decimal128(5, 2), b"12345.6"),
    "decimal_with_too_many_digits_before_the_point": (pa.decimal128(5, 2), b"1000"),
    "decimal_of_text_with_too_many_digits": (pa.decimal128(5, 2), b'"-1000"'),
    "decimal_of_an_exponent_with_too_many_digits": (pa.decimal128(5, 2), b"1e3"),
    "decimal_from_words": (pa.decimal128(5, 2), b'"x"'),
    "decimal_from_nan": (pa.decimal128(5, 2), b"NaN"),
    "decimal_with_a_huge_exponent": (pa.decimal128(5, 2), b'"1e999999999"'),
    "decimal_that_is_too_small_for_arrow": (pa.decimal128(18, 0), b"7197686276e-8322294"),
    "decimal_that_arrow_takes_for_0": (pa.decimal128(18, 0), b"1e-39"),
    "decimal_of_text_that_is_too_small": (pa.decimal128(18, 0), b'"1E-8322294"'),
    "decimal_of_escaped_text_that_is_too_small": (
        pa.decimal128(18, 0),
        b'"1\\u0065-\\u0038322294"',
    ),
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
    "boolean_in_quotes": (pa.bool_(), b'"true"'),
}


@pytest.mark.parametrize(("kind", "text"), UNFIT.values(), ids=UNFIT)
def test_unfit_values_are_bad_and_name_their_field(kind, text):
    schema = pa.schema([("x", kind), ("a", pa.int64())])
    result = parsed([b'{"a":1}', b'{"a":2,"x":' + text + b"}", b'{"a":3}'], schema)
    assert result.batch.column("a").to_pylist() == [1, 3]
    assert [bad.row for bad in result.bad] == [1]
    assert result.bad[0].reason.startswith('field "x": ')


TINY_INSIDE = {
    "in_a_list": (
        pa.list_(pa.decimal128(18, 0)),
        b"[1, 7e-8322294]",
        'field "x[]": "7e-8322294" is not a DECIMAL(18, 0)',
    ),
    "in_a_map": (
        pa.map_(pa.string(), pa.decimal128(18, 0)),
        b'{"a": 7e-8322294}',
        'field "x[].value": "7e-8322294" is not a DECIMAL(18, 0)',
    ),
    "in_a_second_document": (
        pa.decimal128(18, 0),
        b'1}{"x": 7e-8322294',
        "invalid JSON: extra data: line 1 column 8 (char 7)",
    ),
}


@pytest.mark.parametrize(("kind", "text", "reason"), TINY_INSIDE.values(), ids=TINY_INSIDE)
def test_a_decimal_that_arrow_cannot_bear_never_gets_there(kind, text, reason):
    schema = pa.schema([("x", kind)])
    (bad,) = parse(pa.array([b'{"x":%s}' % text], pa.binary()), schema).bad
    assert bad.reason == reason


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


def test_many_bad_values_among_many_blocks():
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


def expected_row(value):
    """The row of `value` by the standard library, or None if it is bad."""
    try:
        pairs = json.loads(value.decode(), object_pairs_hook=list, parse_float=lambda _: math.inf)
    except (ValueError, AttributeError):
        return None
    if value.lstrip(b" \t\r\n")[:1] != b"{" or json.loads(value) is None:
        return None
    row = {"a": None, "s": None}
    names = [name for name, _ in pairs if name in row]
    if len(names) != len(set(names)):
        return None
    row.update({name: found for name, found in pairs if name in row})
    return row


def fits(row):
    number, text = row["a"], row["s"]
    integer = number is None or (type(number) is int and -(2**63) <= number < 2**63)
    return integer and (text is None or type(text) is str)


def surrogates(row):
    return any(0xD800 <= ord(character) < 0xE000 for character in row["s"] or "")


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(VALUES, max_size=12), st.integers(1, 64))
def test_every_row_comes_from_its_own_record(values, block_bytes):
    json_rows._BLOCK_BYTES, kept = block_bytes, json_rows._BLOCK_BYTES
    try:
        result = parsed(values)
    finally:
        json_rows._BLOCK_BYTES = kept
    rows = dict(zip(result.row_index.to_pylist(), result.batch.to_pylist(), strict=True))
    assert sorted([*rows, *(bad.row for bad in result.bad)]) == list(range(len(values)))
    for at, value in enumerate(values):
        expected = expected_row(value) if value is not None else None
        if at in rows:
            assert rows[at] == expected
        elif expected is not None and fits(expected) and not surrogates(expected):
            assert too_strict(value), value


def too_strict(value):
    """Values that `json` takes and we need not: huge numbers, NUL and control characters."""
    return b"e9" in value or b"NaN" in value or b"E" in value or b"Infinity" in value


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
        repeats = ('field "a" appears twice', 'field "s" appears twice', "invalid JSON: missing")
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


LOOKS_RIGHT = {
    "all_members": b'{"a":1,"s":"x"}',
    "blanks": b'{ "a" : -1 ,\t"s":"\xc3\xa4" }',
    "other_members": b'{"z":1.5e3,"as":{"x":[1,"}"]},"":true,"a":null}',
    "escapes": b'{"s":"\\"\\u00e4\\n"}',
    "empty": b"{}",
}
LOOKS_WRONG = {
    "text_for_a_number": b'{"a":"1"}',
    "number_for_a_text": b'{"s":1}',
    "fraction": b'{"a":1.5}',
    "trailing_comma": b'{"a":1,}',
    "no_colon": b'{"a" 1}',
    "two_objects": b"{}{}",
    "not_closed": b'{"z":{"a":1}',
    "half_a_surrogate_pair": b'{"s":"\\ud83d"}',
}


def test_the_screen_lets_common_lines_pass_and_stops_bad_ones():
    lines = [*LOOKS_RIGHT.values(), *LOOKS_WRONG.values()]
    found = Screen(SCHEMA).screened(pa.array([line.decode() + "\n" for line in lines]))
    assert found.right == list(range(len(LOOKS_RIGHT)))
    assert sorted([*found.doubtful, *found.alone, *found.wrong]) == list(
        range(len(LOOKS_RIGHT), len(lines))
    )


def test_the_screen_lets_nested_members_of_the_right_kind_pass():
    schema = pa.schema(
        [("r", pa.struct([("a", pa.int64())])), ("l", pa.list_(pa.int64())), ("u", pa.uint64())]
    )
    lines = ['{"r":{"a":1},"l":[1],"u":18446744073709551615}', '{"r":null,"l":null}']
    wrong = ['{"r":[]}', '{"l":{}}', '{"r":{},"r":{}}', '{"r":{"a":1}']
    found = Screen(schema).screened(pa.array([f"{line}\n" for line in [*lines, *wrong]]))
    assert found.right == [1]  # a number of 20 digits is doubtful
    assert (found.doubtful, found.alone, list(found.wrong)) == ([0, 4], [5], [2, 3])
