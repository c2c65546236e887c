"""raw: a record is one value, or is bad."""

import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.formats.decoders import decoder_of
from joins.plan.formats import KafkaFormat
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support.formats import bad, batch_of, batches, form, read, written
from tests.support.laws import examples

PLAIN = form(KafkaFormat.RAW)
LITTLE = form(KafkaFormat.RAW, endianness="little-endian")
NAMES = {
    TypeName.BOOLEAN: ("?", True),
    TypeName.TINYINT: ("b", -2),
    TypeName.SMALLINT: ("h", -2),
    TypeName.INT: ("i", 70_000),
    TypeName.BIGINT: ("q", -(2**40)),
    TypeName.FLOAT: ("f", 0.5),
    TypeName.DOUBLE: ("d", -1e300),
}


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_a_number_has_the_bytes_of_its_type(name):
    fields, (code, number) = (Field("c", SqlType(name)),), NAMES[name]
    for how, order in ((PLAIN, ">"), (LITTLE, "<")):
        whole = struct.pack(order + code, number)
        parsed = read(how, fields, [whole, None, whole + b"\0", b"", whole])
        assert parsed.batch.to_pylist() == [{"c": number}, {"c": None}, {"c": number}]
        assert [row for row, _ in bad(parsed)] == [2, 3]
        rows = batch_of(fields, [(number,), (None,)])
        assert written(how, fields, rows).to_pylist() == [whole, None]


def test_what_is_wrong_is_said():
    of = {name: (Field("c", SqlType(name)),) for name in TypeName}
    assert bad(read(PLAIN, of[TypeName.BOOLEAN], [b"\2", b"\1"])) == [
        (0, 'field "c": a BOOLEAN is a byte 0 or 1, not 2')
    ]
    assert bad(read(PLAIN, of[TypeName.INT], [b"12345"])) == [
        (0, 'field "c": it has 5 bytes, expected 4 of INT')
    ]
    assert bad(read(PLAIN, of[TypeName.STRING], [b"a\xff"])) == [(0, 'field "c" is not UTF-8')]
    ascii_ = form(KafkaFormat.RAW, charset="US-ASCII")
    assert bad(read(ascii_, of[TypeName.STRING], ["é".encode()])) == [(0, 'field "c" is not ASCII')]


TEXTS = {
    "UTF-8": "aé😀",
    "UTF-16BE": "aé😀",
    "UTF-16LE": "aé😀",
    "ISO-8859-1": "aé",
    "US-ASCII": "a",
}


@pytest.mark.parametrize("charset", TEXTS)
def test_a_text_has_its_charset(charset):
    how, fields = form(KafkaFormat.RAW, charset=charset), (Field("c", SqlType(TypeName.STRING)),)
    text = TEXTS[charset]
    parsed = read(how, fields, [text.encode(charset), None, b""])
    assert [row["c"] for row in parsed.batch.to_pylist()] == [text, None, ""]
    assert written(how, fields, batch_of(fields, [(text,)])).to_pylist() == [text.encode(charset)]


def test_rows_are_there_although_the_column_is_not_read():
    fields = (Field("c", SqlType(TypeName.INT)),)
    parsed = decoder_of(PLAIN, fields, ()).parse(pa.array([b"1234", b"1"], pa.binary()))
    assert (parsed.row_index.to_pylist(), len(parsed.bad), parsed.batch.num_rows) == ([0], 1, 1)


@pytest.mark.parametrize("name", [*NAMES, TypeName.STRING, TypeName.BYTES], ids=str)
def test_what_is_written_is_read(name):
    fields = (Field("c", SqlType(name)),)
    utf_16 = form(KafkaFormat.RAW, charset="UTF-16LE")

    @settings(max_examples=examples(60))
    @given(batches(fields), st.sampled_from([PLAIN, LITTLE, utf_16]))
    def holds(rows, how):
        parsed = read(how, fields, written(how, fields, rows))
        assert (bad(parsed), parsed.batch.equals(rows)) == ([], True)

    holds()
