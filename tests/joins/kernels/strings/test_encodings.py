"""Base64, character sets and URLs, as Java 17 answers."""

import pytest

from tests.support.expressions import arrays, evaluated, planned

FAILS = object()
OF_JAVA = {
    "base64_without_padding": ("FROM_BASE64(t)", "Zm8", "fo"),
    "base64_with_padding": ("FROM_BASE64(t)", "Zm8=", "fo"),
    "too_little_padding": ("FROM_BASE64(t)", "Zg=", FAILS),
    "too_much_padding": ("FROM_BASE64(t)", "Zm9v==", FAILS),
    "nothing_but_padding": ("FROM_BASE64(t)", "==", FAILS),
    "a_mark_of_the_order_of_bytes": ("ENCODE(t, 'UTF-16')", "a", b"\xfe\xff\x00a"),
    "no_mark_before_nothing": ("ENCODE(t, 'UTF-16')", "", b""),
    "an_archive_without_entry": ("PARSE_URL(t, 'PROTOCOL')", "jar:file:/x", None),
    "an_entry_of_an_archive": ("PARSE_URL(t, 'PROTOCOL')", "jar:file:/x!/y", "jar"),
}


@pytest.mark.parametrize(("call", "text", "expected"), OF_JAVA.values(), ids=OF_JAVA)
def test_encodings_are_those_of_java(call, text, expected):
    types = {"t": "STRING"}
    answer = evaluated(planned(call, types), arrays(types, [[text]]))
    if expected is FAILS:
        assert list(answer.errors) == [0]
    else:
        assert (answer.values.to_pylist(), answer.errors) == ([expected], {})
