"""What the pass over plain objects reads is what the reader of single records reads."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.json import rows as json_rows
from joins.kernels.json.each import STRICT, JsonRules
from joins.kernels.json.plain import read_plain
from joins.kernels.json.rows import parse
from tests.support.laws import examples

TIME = {b"sql": b"TIME"}
KINDS = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64(), pa.bool_(), pa.string(),
    pa.float32(),
    pa.float64(), pa.decimal128(5, 2), pa.decimal128(3, 3), pa.decimal128(18, 0),
    pa.decimal128(38, 18), pa.date32(), pa.timestamp("us"), pa.timestamp("us", tz="UTC"),
    pa.binary(),
]  # fmt: skip
NAMES = ["a", "b", "id", "ID", "a b", "", "ä", "column_1", "column_2", "\U0001f600", 'q"']


def structs(kinds):
    field = st.tuples(st.sampled_from(NAMES), kinds)
    fields = st.lists(field, min_size=1, max_size=3, unique_by=lambda item: item[0])
    return fields.map(pa.struct)


def nested(kinds):
    return st.one_of(
        structs(kinds), kinds.map(pa.list_), kinds.map(lambda kind: pa.map_(pa.string(), kind))
    )


COLUMNS = st.one_of(
    st.sampled_from(KINDS), st.recursive(st.sampled_from(KINDS), nested, max_leaves=4)
)
SCHEMAS = st.lists(
    st.tuples(st.sampled_from(NAMES), COLUMNS, st.booleans()),
    max_size=5,
    unique_by=lambda item: item[0],
).map(
    lambda items: pa.schema(
        [
            pa.field(name, kind, metadata=TIME if is_time and kind == pa.int64() else None)
            for name, kind, is_time in items
        ]
    )
)

DIGITS = st.text("0123456789", min_size=1, max_size=22)
NUMBERS = st.one_of(
    st.sampled_from(
        [
            "0", "-0", "1", "-1", "127", "128", "-128", "-129", "32767", "32768", "-32768",
            "2147483647", "2147483648", "-2147483648", "9223372036854775807",
            "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
            "18446744073709551615", "18446744073709551616", "9999999999999999999", "00", "01",
            "-01", "1.", ".5", "-.5", "-", "+1", "1.0", "1.50", "-0.0", "0.000", "999.99",
            "999.999", "1000", "1e5", "1E5", "1e+5", "1e-5", "1e", "1e+", "1e99", "1e400", "-1e400",
            "1e-400", "1e39", "3.4028236e38", "0.1", "0.123", "0.1234", "1.7976931348623157e308",
            "NaN", "-NaN", "Infinity", "-Infinity", "Inf", "-Inf", "nan", "1_0", "0x1", "1f", "1 1",
            "- 1", "0." + "1" * 40, "0." + "1" * 41, "1" * 19, "1" * 20, "1" * 309, "1" * 310,
            "0e0", "0e99", "0e999", "5e-324", "2.2250738585072011e-308", "123456789012345678",
            "1234567890123456789", "12345678901234567890.123456789012345678",
        ]
    ),
    st.integers(-(2**65), 2**65).map(str),
    st.integers(-300, 300).map(str),
    st.floats(width=32).map(str),
    st.floats().map(repr),
    st.decimals(-2000, 2000, allow_nan=False, places=2).map(str),
    st.tuples(
        st.sampled_from(["", "-"]), DIGITS, st.sampled_from([".", "e", "e-", "E+", ""]), DIGITS
    ).map("".join),
)  # fmt: skip
TIMES = st.sampled_from(
    [
        "2024-02-29", "2024-02-30", "2024-02-29 01:02:03", "2024-02-29T01:02:03.5",
        "2024-02-29 01:02:03.123456", "2024-02-29 01:02:03.123456789", "2024-02-29T01:02:03Z",
        "2024-02-29 01:02:03+01:00", "01:02:03", "24:00:00", "/wA=", "AAAA", "a",
    ]
)  # fmt: skip
PIECES = st.sampled_from(
    [
        "\\n", '\\"', "\\\\", "\\/", "\\b", "\\u0041", "\\u00e4", "\\u0000", "\\ud83d\\ude00",
        "\\uD83D\\uDE00", "\\ud83d", "\\ude00", "\\ude00\\ud83d", "\\ud83dx", "\\ud83d\\n",
        "\\ud83d\\u0041", "\\u12", "\\u00g0", "\\x", "\\", "\\'", "\\u20ac", "\\uffff", "\\u07ff",
        "\\u0800", "\\ud7ff", "\\ue000", "\\udbff\\udfff", "\t", "\n", "\r", "\x00", "\x0b", "\x1f",
        "\x7f", " ", "ä", "€", "\U0001f600", "\ufeff", "\uffff", "x" * 9, "{", "}", "[", "'", "/",
    ]
)  # fmt: skip
BODIES = st.one_of(
    st.text(max_size=12).map(lambda text: json.dumps(text)[1:-1]),
    st.text(max_size=12).map(lambda text: json.dumps(text, ensure_ascii=False)[1:-1]),
    st.lists(st.one_of(PIECES, st.sampled_from(["a", "abcdefgh"])), max_size=8).map("".join),
    TIMES,
    NUMBERS,
)
STRINGS = BODIES.map(lambda body: f'"{body}"')
WORDS = st.sampled_from(
    ["true", "false", "null", "True", "nul", "nulls", "tru", "truefalse", "NULL", "t", "", "x"]
)
BLANKS = st.sampled_from(["", "", "", " ", "\t", "\n", "\r\n", "  ", "\x0b", "\x0c", "\xa0", "//"])


def objects(values, names):
    member = st.tuples(names, BLANKS, BLANKS, values, BLANKS).map(
        lambda parts: f"{parts[0]}{parts[1]}:{parts[2]}{parts[3]}{parts[4]}"
    )
    return st.tuples(BLANKS, st.lists(member, max_size=4), BLANKS).map(
        lambda parts: "{" + parts[0] + f",{parts[2]}".join(parts[1]) + "}"
    )


def lists(values):
    return st.lists(st.tuples(BLANKS, values, BLANKS).map("".join), max_size=3).map(
        lambda items: "[" + ",".join(items) + "]"
    )


SCALARS = st.one_of(NUMBERS, STRINGS, WORDS)
KEYS = st.one_of(
    st.sampled_from(NAMES).map(lambda name: json.dumps(name, ensure_ascii=False)),
    st.sampled_from(['"\\u0061"', '"i\\u0064"', '"z"', '"zz"', "a", "1", '"', '"a', "''"]),
    STRINGS,
)
ANY = st.recursive(
    SCALARS, lambda inner: st.one_of(lists(inner), objects(inner, KEYS)), max_leaves=5
)


@st.composite
def fitting(draw, fields):
    """A value whose members mostly fit the fields of a schema or of a struct."""
    members = []
    for item in draw(st.permutations(list(fields))):
        value = draw(fitting_value(item.type))
        members.append(f"{json.dumps(item.name, ensure_ascii=False)}:{value}")
    extra = draw(st.lists(st.tuples(KEYS, ANY).map(":".join), max_size=2))
    at = draw(st.integers(0, len(members)))
    return "{" + ",".join([*members[:at], *extra, *members[at:]]) + "}"


def fitting_value(kind):
    if pa.types.is_struct(kind):
        return st.one_of(st.just("null"), fitting(kind), fitting(kind), ANY)
    if pa.types.is_list(kind):
        return st.one_of(st.just("null"), lists(fitting_value(kind.value_type)), ANY)
    if pa.types.is_map(kind):
        return st.one_of(st.just("null"), objects(fitting_value(kind.item_type), KEYS), ANY)
    if pa.types.is_boolean(kind):
        return st.sampled_from(["true", "false", "null"])
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return st.one_of(st.just("null"), NUMBERS)
    if pa.types.is_decimal(kind):
        return st.one_of(NUMBERS, NUMBERS.map(lambda text: f'"{text}"'))
    return st.one_of(STRINGS, TIMES.map(lambda text: f'"{text}"'))


PUT = st.sampled_from(
    [
        b"", b'"', b"\\", b",", b"{", b"}", b"]", b":", b" ", b"\n", b"\x00", b"\x1f", b"0", b"-",
        b"{}", b"null", b"\xff", b"\xc3", b"\xa4", b"\xed\xa0\x80", b"\xc0\x80", b"\xe0\x80\x80",
        b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98\x80", b"\xe2\x82", b"\xef\xbb\xbf",
    ]
)  # fmt: skip


@st.composite
def changed(draw, value):
    at = draw(st.integers(0, len(value)))
    return value[:at] + draw(PUT) + value[at + draw(st.sampled_from([0, 0, 1, len(value)])) :]


@st.composite
def batches(draw):
    schema = draw(SCHEMAS)
    text = st.one_of(fitting(schema), objects(ANY, KEYS), ANY)
    value = text.map(lambda each: each.encode("utf-8", "surrogatepass"))
    around = st.tuples(BLANKS, value, BLANKS).map(
        lambda parts: parts[0].encode() + parts[1] + parts[2].encode()
    )
    values = st.lists(
        st.one_of(st.none(), value, around, value.flatmap(changed)), min_size=1, max_size=6
    )
    return schema, draw(values)


def one_by_one(values, schema, rules=STRICT):
    rows = json_rows._RowCollector(schema, rules)
    json_rows._read_left(values, np.arange(len(values)), 0, rows)
    return rows.finish()


def assert_no_difference(values, schema):
    for rules in (STRICT, JsonRules(ignores_errors=True), JsonRules(needs_all=True)):
        first, other = parse(values, schema, rules), one_by_one(values, schema, rules)
        first.batch.validate(full=True)
        assert first.row_index.equals(other.row_index)
        assert first.bad == other.bad
        assert first.batch.schema.equals(other.batch.schema, check_metadata=True)
        # Unlike in values, -0.0 is told from 0.0 here.
        assert str(first.batch.to_pylist()) == str(other.batch.to_pylist())


@settings(max_examples=examples(2_000))
@given(batches(), st.sampled_from([pa.binary(), pa.large_binary()]), st.integers(0, 2))
def test_it_makes_no_difference_who_reads_a_value(batch, kind, start):
    schema, texts = batch
    values = pa.array([b'{"a":1', None][:start] + texts, kind).slice(start)
    assert_no_difference(values, schema)


ONE_VALUE = st.one_of(
    NUMBERS.map(str.encode),
    st.one_of(STRINGS, ANY).map(lambda text: text.encode("utf-8", "surrogatepass")),
    PUT.map(lambda put: b'"' + put + b'"'),
)


@settings(max_examples=examples(1_000))
@given(st.sampled_from([None, *KINDS]), st.lists(ONE_VALUE, min_size=20, max_size=40))
def test_it_makes_no_difference_who_reads_the_value_of_a_member(kind, texts):
    schema = pa.schema([("y", pa.string())] if kind is None else [("x", kind)])
    assert_no_difference(pa.array([b'{"x":%s}' % text for text in texts], pa.binary()), schema)


SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("t", pa.int8()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.decimal128(5, 2)),
        ("f", pa.float64()),
    ]
)
PLAIN = {
    "no_members": b"{}",
    "blanks": b' \r\n{ "a" :\t1 , "s" : "x" }\n',
    "all_digits_of_an_integer": b'{"a":9223372036854775807}',
    "the_least_small_integer": b'{"t":-128}',
    "not_ascii": '{"s":"ä€\U0001f600","ä":"名"}'.encode(),
    "escapes": b'{"s":"\\"\\\\\\u00e4\\ud83d\\ude00\\n"}',
    "truths": b'{"b":true,"x":false}',
    "nulls": b'{"a":null,"s":null,"x":null}',
    "a_decimal_in_digits_and_in_quotes": b'{"d":-999.99,"x":"1.5"}',
    "a_decimal_in_quotes": b'{"d":"0.5"}',
    "a_number_with_an_exponent": b'{"f":-1.5e-3}',
    "nested_members_of_no_interest": b'{"x":{"a":[1,{"y":[]},"}\\""],"z":{}},"a":1,"w":[[[]]]}',
    "repeated_members_of_no_interest": b'{"x":1,"x":2}',
    "a_byte_order_mark": b'\xef\xbb\xbf {"a":1}',
    "a_number_in_quotes": b'{"a":"-12","t":"7","f":"1.5e3"}',
    "a_fraction_of_zeros_for_an_integer": b'{"a":1.0,"t":-7.000}',
    "the_text_of_a_number": b'{"s":-1.50e+3}',
    "the_text_of_a_boolean": b'{"s":false}',
    "a_number_of_no_interest_that_no_double_holds": b'{"x":1e400}',
}
LEFT = {
    "a_name_with_an_escape": b'{"\\u0061":1}',
    "a_member_twice": b'{"a":1,"a":2}',
    "a_member_twice_as_null": b'{"a":null,"a":null}',
    "an_integer_of_too_many_digits": b'{"a":9223372036854775808}',
    "an_integer_that_goes_round_twice": b'{"a":18446744073709551617}',
    "a_small_integer_beyond_its_range": b'{"t":128}',
    "minus_zero": b'{"a":-0}',
    "a_leading_zero": b'{"a":01}',
    "a_leading_zero_of_no_interest": b'{"x":-00}',
    "a_fraction_for_an_integer": b'{"a":1.01}',
    "an_open_fraction_for_an_integer": b'{"a":1.}',
    "a_fraction_in_quotes_for_an_integer": b'{"a":"1.0"}',
    "a_number_in_open_quotes": b'{"a":"1}',
    "blanks_around_a_number_in_quotes": b'{"a":" 1"}',
    "too_many_digits_for_a_decimal": b'{"d":1000}',
    "too_many_decimals": b'{"d":0.123}',
    "an_exponent_in_a_decimal": b'{"d":1e1}',
    "not_a_number": b'{"f":NaN}',
    "text_for_a_number": b'{"f":"x"}',
    "a_mark_behind_a_blank": b' \xef\xbb\xbf{"a":1}',
    "half_a_mark": b'\xef\xbb{"a":1}',
    "an_object_for_text": b'{"s":{}}',
    "bytes_that_are_not_utf_8": b'{"x":"\xff"}',
    "a_character_in_too_many_bytes": b'{"x":"\xc0\x80"}',
    "half_a_pair_in_bytes": b'{"x":"\xed\xa0\x80"}',
    "a_character_beyond_unicode": b'{"x":"\xf4\x90\x80\x80"}',
    "half_a_pair_of_no_interest": b'{"x":"\\ud83d"}',
    "a_trailing_comma": b'{"a":1,}',
    "a_trailing_comma_in_a_list": b'{"x":[1,]}',
    "brackets_that_do_not_match": b'{"x":[1}}',
    "an_open_string": b'{"s":"x}',
    "an_open_escape": b'{"s":"x\\',
    "a_control_character": b'{"s":"\t"}',
    "text_behind": b"{}x",
    "two_objects": b"{}{}",
    "nothing": b"",
    "deep_nesting": b'{"x":' + b"[" * 61 + b"]" * 61 + b"}",
}


@pytest.mark.parametrize("value", PLAIN.values(), ids=PLAIN)
def test_plain_objects_are_read_by_the_pass(value):
    plain = read_plain(pa.array([b"x", value], pa.binary()), SCHEMA)
    assert plain.rows.tolist() == [1]
    assert plain.batch.equals(one_by_one(pa.array([value], pa.binary()), SCHEMA).batch)


@pytest.mark.parametrize("value", LEFT.values(), ids=LEFT)
def test_what_is_doubtful_is_left_and_does_not_touch_its_neighbours(value):
    one = b'{"a":1,"s":"x","b":true}'
    plain = read_plain(pa.array([one, value, one, value], pa.binary()), SCHEMA)
    assert plain.rows.tolist() == [0, 2]
    row = {"a": 1, "t": None, "s": "x", "b": True, "d": None, "f": None}
    assert plain.batch.to_pylist() == [row, row]


def test_a_null_is_left_whatever_lies_in_its_place():
    whole = pa.array([b'{"a":1}', b'{"a":2}'], pa.binary())
    hidden = pa.py_buffer(bytes([0b01]))
    values = pa.Array.from_buffers(pa.binary(), 2, [hidden, *whole.buffers()[1:]])
    assert read_plain(values, SCHEMA).rows.tolist() == [0]


def test_members_in_changing_order_are_found():
    names = [f"column_{at}" for at in range(100)]
    schema = pa.schema([(name, pa.int64()) for name in names])
    rows = [{name: at for at, name in enumerate(names[cut:] + names[:cut])} for cut in range(100)]
    values = [json.dumps({"z" * cut: cut, **row}).encode() for cut, row in enumerate(rows)]
    plain = read_plain(pa.array(values, pa.binary()), schema)
    assert plain.batch.to_pylist() == [{name: row[name] for name in names} for row in rows]


PARTS = {
    "numbers": (pa.list_(pa.int8()), b"[ 1 ,null,\t-128]", [1, None, -128]),
    "no_parts": (pa.list_(pa.int64()), b"[ ]", []),
    "lists_of_lists": (pa.list_(pa.list_(pa.string())), b'[[],["\\u0041]"]]', [[], ["A]"]]),
    "lists_of_objects": (
        pa.list_(pa.struct([("x", pa.bool_())])),
        b'[{"x":true},{}]',
        [{"x": True}, {"x": None}],
    ),
    "names": (pa.map_(pa.string(), pa.int64()), b'{ "a": 1 , "\\"}":2}', [("a", 1), ('"}', 2)]),
    "no_names": (pa.map_(pa.string(), pa.int64()), b"{}", []),
    "an_object_without_members": (pa.struct([]), b'{"x":[1]}', {}),
    "all_bits": (pa.uint64(), b"18446744073709551615", 2**64 - 1),
    "all_bits_but_one": (pa.uint64(), b"18446744073709551614", 2**64 - 2),
    "a_bit_too_many_for_a_sign": (pa.uint64(), b"9223372036854775808", 2**63),
}
NO_PARTS = {
    "a_part_that_is_not_plain": (pa.list_(pa.int64()), b"[1,1.5]"),
    "a_part_of_a_part": (pa.list_(pa.list_(pa.int8())), b"[[1],[128]]"),
    "an_object_for_a_list": (pa.list_(pa.int64()), b"{}"),
    "a_list_for_a_map": (pa.map_(pa.string(), pa.int64()), b"[]"),
    "a_name_twice": (pa.map_(pa.string(), pa.int64()), b'{"a":1,"\\u0061":1}'),
    "a_bit_too_many": (pa.uint64(), b"18446744073709551616"),
    "many_bits_too_many": (pa.uint64(), b"99999999999999999999"),
    "a_sign": (pa.uint64(), b"-1"),
}


@pytest.mark.parametrize(("kind", "text", "expected"), PARTS.values(), ids=PARTS)
def test_parts_of_values_are_read_by_the_pass(kind, text, expected):
    schema = pa.schema([("a", kind)])
    plain = read_plain(pa.array([b'{"a":%s}' % text, b"{}"], pa.binary()), schema)
    assert plain.batch.column("a").to_pylist() == [expected, None]


@pytest.mark.parametrize(("kind", "text"), NO_PARTS.values(), ids=NO_PARTS)
def test_a_value_with_a_doubtful_part_is_left(kind, text):
    values = pa.array([b"{}", b'{"a":%s}' % text, b'{"a":null}'], pa.binary())
    assert read_plain(values, pa.schema([("a", kind)])).rows.tolist() == [0, 2]


INNER = pa.struct([("x", pa.int64()), ("y", pa.string())])
NESTED = pa.schema([("a", INNER), ("n", pa.int64()), ("b", pa.struct([("c", INNER)]))])


def test_objects_within_objects_are_read_by_the_pass():
    values = [
        b'{"a":{"x":1,"y":"\\u0041"},"b":{"c":{"x":2,"z":[]}},"n":3}',
        b'{"a":null,"b":{"c":null}}',
        b'{"b":{},"n":4}',
        b"{}",
    ]
    plain = read_plain(pa.array(values, pa.binary()), NESTED)
    assert plain.rows.tolist() == [0, 1, 2, 3]
    assert plain.batch.equals(one_by_one(pa.array(values, pa.binary()), NESTED).batch)


def test_an_object_within_one_that_is_doubtful_leaves_the_whole_row():
    doubtful = [b'{"a":{"x":"y"}}', b'{"b":{"c":{"x":1.5}},"a":{"x":1}}', b'{"a":{"x":1,"x":2}}']
    values = [b'{"a":{"x":7}}', *doubtful, b'{"n":8}']
    plain = read_plain(pa.array(values, pa.binary()), NESTED)
    assert plain.rows.tolist() == [0, 4]
    assert plain.batch.column("a").to_pylist() == [{"x": 7, "y": None}, None]
    assert plain.batch.column("n").to_pylist() == [None, 8]
