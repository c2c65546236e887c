"""Kinds of poison: what a topic may hold beside the records that the statement expects.

The probe's columns are `PROBE_COLUMNS`. A `bad` value becomes one dead letter with a reason that
has `REASONS[name]` in it; a `good` one becomes the row `ROWS[name]`, however odd it looks.
"""

from typing import Any, NamedTuple

PROBE_COLUMNS = "user_id BIGINT, url STRING, score DOUBLE, active BOOLEAN"
BIG = 10 << 20


class Kind(NamedTuple):
    """One kind: `verdict` is `bad` or `good`."""

    name: str
    value: bytes | None
    verdict: str


_NOT_OBJECT = "the value is not one JSON object"
_INVALID = "invalid JSON"
_BEHIND = "invalid JSON: there is text behind the object"
_GOOD = b'{"user_id":1,"url":"/a"}'


def _row(
    user_id: int | None = 1,
    url: str | None = "/a",
    score: float | None = None,
    active: bool | None = None,
) -> dict[str, Any]:
    return {"user_id": user_id, "url": url, "score": score, "active": active}


_BAD: dict[str, tuple[bytes | None, str]] = {
    # The record as such
    "null_value": (None, "the value is null"),
    "empty_value": (b"", "the value is empty"),
    "only_blanks": (b" \t\r\n ", "the value is empty"),
    "document_null": (b"null", _NOT_OBJECT),
    "document_number": (b"17", _NOT_OBJECT),
    "document_string": (b'"user_id"', _NOT_OBJECT),
    "document_true": (b"true", _NOT_OBJECT),
    "csv_line": (b"1,/a,0.5", _NOT_OBJECT),
    # More or less than one document
    "null_then_object": (b"null" + _GOOD, _NOT_OBJECT),
    "null_between_objects": (b"{}null{}", _BEHIND),
    "two_documents": (_GOOD + _GOOD, _BEHIND),
    "two_documents_two_lines": (_GOOD + b"\n" + _GOOD, _BEHIND),
    "two_documents_crlf": (_GOOD + b"\r\n" + _GOOD, _BEHIND),
    "hundred_documents": (_GOOD * 100, _BEHIND),
    "first_half": (b'{"user_id":1,"url":"/', _NOT_OBJECT),
    "second_half": (b'a","score":1}', _NOT_OBJECT),
    "half_with_a_brace": (b'{"user_id":1,"x":{"y":1}', _INVALID),
    "open_string": (b'{"url":"}', _INVALID),
    "one_brace_too_many": (b'{"user_id":1}}', _INVALID),
    "trailing_garbage": (_GOOD + b" # done", _NOT_OBJECT),
    "trailing_garbage_in_braces": (_GOOD + b"x}", _INVALID),
    "trailing_comma": (b'{"user_id":1,}', _INVALID),
    # Not JSON, though near
    "line_comment": (b'{"user_id":1 // one\n}', _INVALID),
    "block_comment": (b'{/* one */"user_id":1}', _INVALID),
    "single_quotes": (b"{'user_id':1}", _INVALID),
    "bare_names": (b"{user_id:1}", _INVALID),
    # Bytes
    "nul_byte": (b'{"user_id":1}\0}', _BEHIND),
    "invalid_utf_8": (b'{"user_id":1,"url":"\xff\xfe"}', "the value is not UTF-8"),
    "overlong_utf_8": (b'{"user_id":1,"url":"\xc0\xaf"}', "the value is not UTF-8"),
    "latin_1": ('{"user_id":1,"url":"é"}'.encode("latin-1"), "the value is not UTF-8"),
    "surrogate_as_bytes": (b'{"user_id":1,"url":"\xed\xa0\xbd"}', "the value is not UTF-8"),
    "lone_surrogate": (b'{"user_id":1,"url":"\\ud83d"}', 'field "url": half of a surrogate'),
    "lone_low_surrogate": (b'{"user_id":1,"url":"\\udc00"}', 'field "url": half of a surrogate'),
    "schema_registry_header": (b"\0\0\0\0\x07" + _GOOD, _NOT_OBJECT),
    # Numbers
    "two_to_the_63": (b'{"user_id":9223372036854775808}', 'field "user_id"'),
    "below_minus_two_to_the_63": (b'{"user_id":-9223372036854775809}', 'field "user_id"'),
    "thousand_digits": (b'{"user_id":' + b"1" * 1000 + b"}", 'field "user_id"'),
    "nan": (b'{"user_id":1,"score":NaN}', "is not a finite number"),
    "infinity": (b'{"user_id":1,"score":Infinity}', "is not a finite number"),
    "minus_infinity": (b'{"user_id":1,"score":-Infinity}', "is not a finite number"),
    "beyond_double": (b'{"user_id":1,"score":1e400}', "is not a finite number"),
    "fraction_for_an_integer": (b'{"user_id":1.5}', 'field "user_id"'),
    "leading_zero": (b'{"user_id":01}', _INVALID),
    "leading_plus": (b'{"user_id":+1}', _INVALID),
    "hexadecimal": (b'{"user_id":0x1}', _INVALID),
    # Types
    "string_for_an_integer": (b'{"user_id":"x"}', 'field "user_id": expected number, found string'),
    "boolean_for_an_integer": (
        b'{"user_id":true}',
        'field "user_id": expected number, found boolean',
    ),
    "number_for_a_boolean": (
        b'{"user_id":1,"active":1}',
        'field "active": expected boolean, found number',
    ),
    "array_of_numbers": (b"[1]", "element 1 of the array is no object"),
    "array_for_an_integer": (
        b'{"user_id":[1]}',
        'field "user_id": expected number, found array',
    ),
    "same_field_twice": (b'{"user_id":1,"user_id":2}', 'field "user_id" appears twice'),
    "same_field_twice_escaped": (
        b'{"user_id":1,"\\u0075ser_id":2}',
        'field "user_id" appears twice',
    ),
    # Size
    "ten_mebibytes_of_brackets": (b"[" * BIG, _NOT_OBJECT),
    "ten_mebibytes_cut_off": (b'{"user_id":1,"url":"' + b"x" * BIG + b"}", _INVALID),
    "ten_mebibytes_of_documents": (b"{}" * (BIG // 2), _BEHIND),
    "deep_and_not_closed": (b'{"x":' * 10_000 + b"}", _INVALID),
}

_GOOD_KINDS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "missing_fields": (b"{}", _row(None, None)),
    "document_array": (b'[{"user_id":1}]', _row(1, None)),
    "line_break_in_a_string": (b'{"user_id":1,"url":"a\nb"}', _row(1, "a\nb")),
    "crlf_in_a_string": (b'{"user_id":1,"url":"a\r\nb"}', _row(1, "a\r\nb")),
    "control_byte_in_a_string": (b'{"user_id":1,"url":"a\x01b"}', _row(1, "a\x01b")),
    "nul_byte_in_a_string": (b'{"user_id":1,"url":"a\0b"}', _row(1, "a\0b")),
    "utf_16": ('{"user_id":1}'.encode("utf-16"), _row(1, None)),
    "utf_16_without_mark": ('{"user_id":1}'.encode("utf-16-le"), _row(1, None)),
    "byte_order_mark": (b"\xef\xbb\xbf" + _GOOD, _row()),
    "beyond_double_in_an_extra_field": (b'{"user_id":1,"x":1e400}', _row(1, None)),
    "lone_surrogate_in_an_extra_field": (b'{"user_id":1,"x":"\\ud83d"}', _row(1, None)),
    "exponent_for_an_integer": (b'{"user_id":1e2}', _row(100, None)),
    "string_of_an_integer": (b'{"user_id":"1"}', _row(1, None)),
    "number_for_a_string": (b'{"user_id":1,"url":7}', _row(1, "7")),
    "object_for_a_string": (
        b'{"user_id":1,"url":{"path": "/a"}}',
        _row(1, '{"path":"/a"}'),
    ),
    "all_null": (
        b'{"user_id":null,"url":null,"score":null,"active":null}',
        _row(None, None),
    ),
    "extra_fields": (b'{"user_id":1,"url":"/a","x":[1,{"user_id":7}]}', _row()),
    "extra_field_twice": (b'{"user_id":1,"url":"/a","x":1,"x":"2"}', _row()),
    "other_case": (b'{"USER_ID":7,"user_id":1,"url":"/a"}', _row()),
    "debezium_envelope": (
        b'{"before":null,"after":{"user_id":1,"url":"/a"},"op":"c","ts_ms":1}',
        _row(None, None),
    ),
    "schema_only": (b'{"schema":{"type":"struct","fields":[]}}', _row(None, None)),
    "prototype_keys": (
        b'{"__proto__":{"user_id":7},"constructor":1,"user_id":1,"url":"/a"}',
        _row(),
    ),
    "empty_key": (b'{"":1,"user_id":1,"url":"/a"}', _row()),
    "blanks_around": (b' \r\n\t{"user_id":1,"url":"/a"}\r\n ', _row()),
    "blanks_inside": (b'{ "user_id" :\r\n 1 ,\n\t"url" : "/a" }', _row()),
    "escaped_names": (b'{"\\u0075ser_id":1,"url":"\\/a"}', _row()),
    "escaped_nul": (b'{"user_id":1,"url":"a\\u0000b"}', _row(url="a\0b")),
    "escaped_line_breaks": (b'{"user_id":1,"url":"a\\r\\nb"}', _row(url="a\r\nb")),
    "emoji": ('{"user_id":1,"url":"😀👩‍👩‍👧"}'.encode(), _row(url="😀👩‍👩‍👧")),
    "escaped_emoji": (b'{"user_id":1,"url":"\\ud83d\\ude00"}', _row(url="😀")),
    "right_to_left": (
        '{"user_id":1,"url":"\u202e\u05d0\u05d1\u2066"}'.encode(),
        _row(url="\u202e\u05d0\u05d1\u2066"),
    ),
    "line_separators": (
        '{"user_id":1,"url":"a\u2028b\u0085c"}'.encode(),
        _row(url="a\u2028b\x85c"),
    ),
    "braces_in_a_string": (b'{"user_id":1,"url":"}{\\"}\\n{"}', _row(url='}{"}\n{')),
    "minus_zero": (b'{"user_id":-0,"url":"/a"}', _row(0)),
    "largest_integer": (b'{"user_id":9223372036854775807,"url":"/a"}', _row(2**63 - 1)),
    "smallest_integer": (b'{"user_id":-9223372036854775808,"url":"/a"}', _row(-(2**63))),
    "two_to_the_53_plus_1": (b'{"user_id":9007199254740993,"url":"/a"}', _row(2**53 + 1)),
    "smallest_double": (b'{"user_id":1,"url":"/a","score":5e-324}', _row(score=5e-324)),
    "integer_for_a_double": (b'{"user_id":1,"url":"/a","score":3}', _row(score=3.0)),
    "many_digits_for_a_double": (
        b'{"user_id":1,"url":"/a","score":0.1000000000000000055511151231257827}',
        _row(score=0.1),
    ),
    "nan_in_an_extra_field": (b'{"user_id":1,"url":"/a","x":NaN}', _row()),
    "large_number_in_an_extra_field": (
        b'{"user_id":1,"url":"/a","x":123456789012345678901234567890}',
        _row(),
    ),
    "boolean": (b'{"user_id":1,"url":"/a","active":false}', _row(active=False)),
    "deep_extra_field": (
        b'{"user_id":1,"url":"/a","x":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        _row(),
    ),
    "thousand_extra_fields": (
        b'{"user_id":1,"url":"/a"' + b"".join(b',"x%d":%d' % (i, i) for i in range(1000)) + b"}",
        _row(),
    ),
    "ten_mebibytes_in_an_extra_field": (
        b'{"user_id":1,"url":"/a","x":"' + b"x" * BIG + b'"}',
        _row(),
    ),
}

KINDS: list[Kind] = [
    *(Kind(name, value, "bad") for name, (value, _) in _BAD.items()),
    *(Kind(name, value, "good") for name, (value, _) in _GOOD_KINDS.items()),
]
REASONS: dict[str, str] = {name: reason for name, (_, reason) in _BAD.items()}
ROWS: dict[str, dict[str, Any]] = {name: row for name, (_, row) in _GOOD_KINDS.items()}
