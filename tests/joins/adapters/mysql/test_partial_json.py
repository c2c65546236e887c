"""Updates that have only the changed parts of JSON are the rows of whole images, or are refused."""

import copy
import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.mysql import row_images
from joins.adapters.mysql.events.row_events import PARTIAL_JSON
from joins.adapters.mysql.events.transactions import RowImages
from joins.adapters.mysql.image_json import json_text
from joins.adapters.mysql.table import CapturedTable, ServerColumn, capture
from joins.plan.errors import SnapshotNeededError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support import binlogs
from tests.support.binary_json import INSERT, REMOVE, REPLACE, binary, member, part
from tests.support.binlogs import GTID, PAYLOAD, QUERY, TABLE_MAP, UPDATE, XID
from tests.support.laws import examples

# Nine JSON columns, so that their bits fill more than a byte; the captured ones are not in order.
JSON_COLUMNS = [f"j{number}" for number in range(9)]
CAPTURED = (8, 0, 4)
TABLE = CapturedTable(
    "d",
    "t",
    capture(
        "d.t",
        (
            Field("id", SqlType(TypeName.BIGINT)),
            *(Field(f"j{number}", SqlType(TypeName.STRING)) for number in CAPTURED),
        ),
        [
            ServerColumn("id", "bigint", "bigint", 19, 0, None),
            *(ServerColumn(name, "json", "json", 0, 0, None) for name in JSON_COLUMNS),
        ],
    ),
    ("id",),
)
ALL = (1 << 10) - 1


def table_map():
    names = b"".join(binlogs.packed(len(n)) + n.encode() for n in ("id", *JSON_COLUMNS))
    optional = b"\x01\x01\x00" + b"\x04" + binlogs.packed(len(names)) + names
    types = bytes([8, *[245] * 9])
    return b"\7\0\0\0\0\0\1\0\1d\0\1t\0\x0a" + types + b"\x09" + b"\4" * 9 + b"\xfe\3" + optional


def image(row_id, values):
    """By column, NULL where a value is None."""
    nulls = sum(1 << at for at, value in enumerate(values, 1) if value is None)
    sized = (struct.pack("<I", len(value)) + value for value in values if value is not None)
    return struct.pack("<H", nulls) + struct.pack("<q", row_id) + b"".join(sized)


def update(kind, images, *, before=ALL, after=ALL):
    masks = struct.pack("<HH", before, after)
    return kind, b"\7\0\0\0\0\0\1\0\2\0\x0a" + masks + images


def transaction(kind, body, *, in_one=False):
    inside = [
        binlogs.event(QUERY, binlogs.query("BEGIN")),
        binlogs.event(TABLE_MAP, table_map()),
        binlogs.event(kind, body),
        binlogs.event(XID, struct.pack("<Q", 9), 0 if in_one else 4_096),
    ]
    if in_one:
        inside = [binlogs.event(PAYLOAD, binlogs.payload(inside), 4_096)]
    return [binlogs.event(GTID, binlogs.gtid(5), 200), *inside]


def rows_of(kind, body, *, in_one=False):
    """Rows before and after, as a stream has them."""
    events = binlogs.told(transaction(kind, body, in_one=in_one), TABLE)
    return [row for event in events if isinstance(event, RowImages) for row in event.changes()]


def options(*partial):
    """What is before an image after an update: the numbers of JSON columns that are parts."""
    return b"\1" + struct.pack("<H", sum(1 << number for number in partial))


# What the server makes of random documents
# --------------------------------------------------------------------------------------------------
KEYS = st.text(max_size=4) | st.sampled_from(
    [
        "a",
        "b",
        "a b",
        'a"b',
        "k.x",
        "é",
        "[0]",
        "\\",
        "\n",
        "",
        "last",
        "*",
        "$",
        "\xa0",
        "🐬",
        "k" * 300,
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.integers(-3, 300)
    | st.sampled_from([0.5, -2.25, "x" * 200])
    | st.text(max_size=5)
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
) | st.sampled_from([{"a": ["x" * 40_000, {"b": 70_000}]}, [[], {}, ["y" * 70_000, -1]]])


def text_of(document):
    """As the server shows it: keys by their length, then by their bytes."""
    if isinstance(document, dict):
        in_order = sorted(document, key=lambda key: (len(key.encode()), key.encode()))
        inside = (f"{text_of(key)}: {text_of(document[key])}" for key in in_order)
        return f"{{{', '.join(inside)}}}"
    if isinstance(document, list):
        return f"[{', '.join(map(text_of, document))}]"
    return json.dumps(document, ensure_ascii=False)


def containers(document, path="$"):
    """(path, container), each item also by its number from the end."""
    if not isinstance(document, dict | list):
        return
    yield path, document
    for leg, item in legs_of(document):
        for way in leg:
            yield from containers(item, path + way)


def legs_of(container):
    """Ways to write a member or an item, and the value."""
    if isinstance(container, dict):
        return [((member(key),), value) for key, value in container.items()]
    count = len(container)
    return [((f"[{at}]", from_end(count - 1 - at)), v) for at, v in enumerate(container)]


def from_end(back):
    return f"[last-{back}]" if back else "[last]"


@st.composite
def changed(draw):
    """A document, what changes it, and what becomes of it."""
    before = draw(DOCUMENTS)
    after, parts = copy.deepcopy(before), b""
    for _ in range(draw(st.integers(0, 4))):
        places = list(containers(after))
        if not places:
            break
        path, holder = draw(st.sampled_from(places))
        operation = draw(st.sampled_from([REPLACE, INSERT, REMOVE] if holder else [INSERT]))
        value = copy.deepcopy(draw(DOCUMENTS))
        if operation != INSERT:
            at = draw(st.integers(0, len(holder) - 1))
            way = draw(st.sampled_from(legs_of(holder)[at][0]))
            leg = at if isinstance(holder, list) else list(holder)[at]
        elif isinstance(holder, list):
            leg = draw(st.integers(0, len(holder) + 2))  # behind the end is at the end
            way = f"[{leg}]"
            if draw(st.booleans()):
                back = draw(st.integers(0, len(holder) + 2))
                leg, way = max(0, len(holder) - 1 - back), from_end(back)
        else:
            leg = draw(KEYS.filter(lambda key, holder=holder: key not in holder))
            way = member(leg)
        parts += part(operation, path + way, value)
        if operation == REMOVE:
            del holder[leg]
        elif operation == INSERT and isinstance(holder, list):
            holder.insert(leg, value)
        else:
            holder[leg] = value
    return before, parts, after


@st.composite
def updates(draw):
    """A row as (bytes before, bytes after if whole, bytes after if in parts, what is in parts)."""
    befores, wholes, shorts, partial = [], [], [], []
    for number in range(len(JSON_COLUMNS)):
        how = draw(st.sampled_from(["parts", "whole", "null"] if number in CAPTURED else ["null"]))
        if how == "parts":
            before, parts, after = draw(changed())
            befores.append(binary(before))
            wholes.append(binary(after))
            shorts.append(parts)
            partial.append(number)
        else:
            befores.append(draw(st.none() | DOCUMENTS.map(binary)))
            after = None if how == "null" else binary(draw(DOCUMENTS))
            wholes.append(after)
            shorts.append(after)
    return befores, wholes, shorts, partial


@given(DOCUMENTS)
@settings(max_examples=examples(300))
def test_a_document_has_the_text_of_its_parts(document):
    assert json_text(binary(document)) == text_of(document)


@given(changed())
@settings(max_examples=examples(2_000))
def test_a_changed_document_is_what_its_changes_make_of_it(change):
    before, parts, after = change
    others = [b"\4\0"] * 8
    images = image(1, [binary(before), *others]) + options(0) + image(1, [parts, *others])
    ((row, now),) = rows_of(*update(PARTIAL_JSON, images))
    assert (row[2], now[2]) == (text_of(before), text_of(after))


@given(st.lists(updates(), min_size=1, max_size=3), st.booleans())
@settings(max_examples=examples(300), deadline=None)
def test_rows_with_parts_are_those_of_whole_images(rows, in_one):
    whole, short = b"", b""
    for row_id, (before, after, parts, partial) in enumerate(rows):
        whole += image(row_id, before) + image(row_id, after)
        shared = options(*partial) if partial else b"\0"
        short += image(row_id, before) + shared + image(row_id, parts)
    expected = rows_of(*update(UPDATE, whole))
    assert len(expected) == len(rows)
    assert rows_of(*update(PARTIAL_JSON, short), in_one=in_one) == expected


def test_an_update_without_parts_reads_each_document_once(monkeypatch):
    """With `binlog_row_value_options=PARTIAL_JSON` every update may be one of these."""
    read = []
    monkeypatch.setattr(row_images, "json_text", lambda raw: read.append(raw) or json_text(raw))
    images = image(1, [binary(["old"])] * 9) + b"\0" + image(1, [binary(["new"])] * 9)
    assert len(rows_of(*update(PARTIAL_JSON, images))) == 1
    assert read == [binary([text]) for text in ("old", "new") for _ in CAPTURED]


def test_parts_of_a_column_that_is_not_captured_are_passed_over():
    before = [binary({"a": 1})] * 9
    after = [binary([number]) for number in range(9)]
    after[3] = part(9, "no path") + b"\xff"
    images = image(1, before) + options(3) + image(1, after)
    assert rows_of(*update(PARTIAL_JSON, images)) == [
        ([1, *['{"a": 1}'] * 3], [1, "[8]", "[0]", "[4]"])
    ]


# What is not understood
# --------------------------------------------------------------------------------------------------
DOCUMENT = {"a": [1, 2], "o": {"b": "x"}, "s": "text"}


def with_parts(parts, document=DOCUMENT, *, shared=None, **masks):
    others = [b"\4\0"] * 8
    before = None if document is None else binary(document)
    images = image(1, [before, *others])
    images += options(0) if shared is None else shared
    return update(PARTIAL_JSON, images + image(1, [parts, *others]), **masks)


NESTED = [[]]
for _ in range(60):
    NESTED = [NESTED]
DEEP = "$" + "[0]" * 61
FITS = part(REPLACE, "$.a[1]", 5)
REFUSED = {
    "an_operation": (with_parts(part(3, "$.a", 1)), "change 3 at"),
    "value_options": (with_parts(FITS, shared=b"\3\0\0"), "value options 3"),
    "value_options_without_a_number": (with_parts(FITS, shared=b"\xfb\0\0"), "0xFB"),
    **{
        f"no_place_{operation}_{path}": (with_parts(part(operation, path, 1)), "does not fit")
        for operation, path in [
            (REPLACE, "$.b"),
            (REMOVE, "$.b"),
            (INSERT, "$.a"),
            (REPLACE, "$.a[2]"),
            (REMOVE, "$.a[2]"),
            (REPLACE, "$.a[last-2]"),
            (REMOVE, "$[0]"),
            (INSERT, "$[0]"),
            (INSERT, "$.a.b"),
            (REPLACE, "$.s[0]"),
            (INSERT, "$.s[0]"),
            (INSERT, "$.s.b"),
            (REPLACE, "$.b.c"),
            (INSERT, "$.b.c"),
            (INSERT, "$.a[2][0]"),
        ]
    },
    **{
        f"path_{path}": (with_parts(part(REPLACE, path, 1)), "path")
        for path in [
            *("", "$", "a", ".a", "$ .a", "$.a ", "$a", "$..a", "$.*", "$[*]", "$**.a", "$.a[]"),
            *("$.a[-1]", "$.a[0 to 1]", "$.a[0", "$.a[last-]", "$.a[12345678901]", '$."a', '$.a"'),
            "$.\\u0061",
        ]
    },
    "path_with_an_escape": (with_parts(part(REPLACE, '$."\\x"', 1)), "Invalid"),
    "path_of_another_encoding": (with_parts(b"\0\3$.\xff\2\4\0"), "utf-8"),
    "path_behind_the_end": (with_parts(b"\2\x7f$.a"), "127 bytes are expected"),
    "value_behind_the_end": (with_parts(FITS[:-1]), "bytes are expected"),
    "no_value": (with_parts(b"\0\3$.a"), "1 bytes are expected"),
    "an_empty_value": (with_parts(b"\0\3$.a\0"), "1 bytes too early"),
    "a_value_of_a_type": (with_parts(b"\0\3$.a\2\x0d\0"), "type 13"),
    "a_short_value": (with_parts(b"\0\3$.a\3\x09\0\0"), "unpack_from"),
    "bytes_behind": (with_parts(FITS + b"\0"), "1 bytes are expected"),
    "a_change_that_does_not_fit_the_one_before": (with_parts(part(REMOVE, "$.a") + FITS), "fit"),
    "a_scalar": (with_parts(FITS, 7), "does not fit"),
    "a_document_without_bytes": (
        update(PARTIAL_JSON, image(1, [b""] * 9) + options(0) + image(1, [FITS, *[b""] * 8])),
        "does not fit",
    ),
    "a_null_before": (with_parts(FITS, None), "there was none"),
    "too_deep": (
        with_parts(part(REPLACE, DEEP, NESTED) + part(REPLACE, DEEP + "[0]" * 61, 1), NESTED),
        "too many levels",
    ),
    "no_column_before": (with_parts(FITS, before=ALL - 2), "binlog_row_image"),
    "minimal_images": (with_parts(FITS, before=1, after=2), "binlog_row_image"),
    "cut": (
        update(PARTIAL_JSON, image(1, [binary(DOCUMENT), *[b"\4\0"] * 8]) + b"\1\1"),
        "2 bytes are expected",
    ),
    "no_options": (
        update(PARTIAL_JSON, image(1, [binary(DOCUMENT), *[b"\4\0"] * 8])),
        "1 bytes are expected",
    ),
}


@pytest.mark.parametrize(("event", "text"), REFUSED.values(), ids=REFUSED)
def test_parts_that_are_not_understood_are_copied_again_with_the_reason(event, text):
    with pytest.raises(SnapshotNeededError, match=text) as caught:
        rows_of(*event)
    assert "copied again" in caught.value.hint


def test_an_object_with_a_key_twice_is_refused():
    twice = b"\0\2\0\x14\0" + b"\x12\0\1\0\x13\0\1\0" + b"\5\1\0\5\2\0" + b"aa"
    assert json_text(twice.replace(b"aa", b"ab")) == '{"a": 1, "b": 2}'
    with pytest.raises(ValueError, match="key twice"):
        json_text(twice)


@given(changed(), st.integers(0, 400), st.binary(max_size=4))
@settings(max_examples=examples(1_000))
def test_damaged_parts_are_a_row_or_refused(change, place, other):
    before, parts, _ = change
    place = place % (len(parts) + 1)
    try:
        found = rows_of(*with_parts(parts[:place] + other + parts[place + len(other) :], before))
    except SnapshotNeededError:
        return
    assert isinstance(json.loads(found[0][1][2]), object)
