"""What a format writes of any row, it reads back equal."""

import csv
import io
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.plan.formats import KafkaFormat
from joins.plan.plan import Field
from joins.plan.types import Member, SqlType, TypeName, array_type, row_type
from tests.support.formats import ALL_TYPES, TEXTS, bad, batch_of, batches, form, read, written
from tests.support.laws import examples

NULL = "\\N"
STRING, INT = SqlType(TypeName.STRING), SqlType(TypeName.INT)
DIALECTS = (
    {},
    {"field_delimiter": ";", "quote_character": "'"},
    {"field_delimiter": "\\t", "escape_character": "\\"},
    {"field_delimiter": "-", "quote_character": "."},
    {"field_delimiter": " ", "escape_character": "'"},
    {"disable_quote_character": "true", "escape_character": "|"},
    {"write_bigdecimal_in_scientific_notation": "false", "field_delimiter": ":"},
    {"field_delimiter": "\\u0001", "escape_character": "#", "allow_comments": "true"},
)


def is_written(how, fields, rows):
    parsed = read(how, fields, written(how, fields, rows))
    assert bad(parsed) == []
    assert parsed.batch.equals(rows), (parsed.batch.to_pylist(), rows.to_pylist())


@pytest.mark.parametrize("options", DIALECTS, ids=lambda options: " ".join(options.values()))
def test_csv_is_read_as_it_was_written(options):
    texts = TEXTS.filter(lambda text: text not in (NULL, "NULL"))

    @settings(max_examples=examples(120))
    @given(batches(ALL_TYPES, texts))
    def holds(rows):
        null = "NULL" if "\\" in (options.get("escape_character"),) else NULL
        is_written(form(KafkaFormat.CSV, null_literal=null, **options), ALL_TYPES, rows)

    holds()


def test_a_row_of_one_text_is_never_an_empty_line():
    fields = (Field("a", STRING),)
    rows = batch_of(fields, [("",), ("x",), (None,), ("#",), ("\ufeff",)])
    how = form(KafkaFormat.CSV, null_literal="-", allow_comments="true")
    assert written(how, fields, rows).to_pylist() == [
        b'""',
        b"x",
        b"-",
        b'"#"',
        '"\ufeff"'.encode(),
    ]
    is_written(how, fields, rows)


def test_without_a_literal_null_is_an_empty_cell():
    fields = (Field("a", STRING), Field("n", INT))
    texts = written(form(KafkaFormat.CSV), fields, batch_of(fields, [(None, 1), ("x", None)]))
    assert texts.to_pylist() == [b",1", b"x,"]
    parsed = read(form(KafkaFormat.CSV), fields, texts)
    assert parsed.batch.to_pylist() == [{"a": "", "n": 1}]
    assert bad(parsed) == [(1, 'field "n": "" is not an INT')]


PARTS = (
    Field("l", array_type(INT)),
    Field("r", row_type(Member("x", INT), Member("d", SqlType(TypeName.DECIMAL, 5, 1)))),
    Field("f", array_type(SqlType(TypeName.DOUBLE))),
)
NUMBERS = st.none() | st.integers(-99, 99)


@settings(max_examples=examples(150))
@given(
    st.lists(
        st.tuples(
            st.none() | st.lists(NUMBERS, max_size=3).filter(lambda made: made != [None]),
            st.none() | st.fixed_dictionaries({"x": NUMBERS, "d": NUMBERS}),
            st.none() | st.lists(st.floats(), max_size=2),
        ),
        max_size=4,
    ),
    st.sampled_from([";", ",", "||"]),
)
def test_parts_of_cells_are_read_as_they_were_written(rows, elements):
    how = form(KafkaFormat.CSV, null_literal="-", array_element_delimiter=elements)
    batch = batch_of(PARTS, rows)
    parsed = read(how, PARTS, written(how, PARTS, batch))
    assert bad(parsed) == []
    assert repr(parsed.batch.to_pylist()) == repr(batch.to_pylist())  # NaN is NaN here


@settings(max_examples=examples(150))
@given(batches((Field("a", STRING, nullable=False), Field("b", STRING, nullable=False))))
def test_pythons_module_reads_what_is_written(rows):
    fields = (Field("a", STRING), Field("b", STRING))
    texts = written(form(KafkaFormat.CSV), fields, rows).cast(pa.string()).to_pylist()
    for text, row in zip(texts, rows.to_pylist(), strict=True):
        assert next(csv.reader(io.StringIO(text, newline=""), strict=True)) == list(row.values())


def test_a_decimal_has_its_digits_or_a_power():
    fields = (Field("d", SqlType(TypeName.DECIMAL, 38, 2)),)
    rows = batch_of(fields, [(Decimal(text),) for text in ("100000", "1.50", "0", "-7")])
    for flag, expected in (
        ("true", [b"1E+5", b"1.5", b"0", b"-7"]),
        ("false", [b"100000.00", b"1.50", b"0.00", b"-7.00"]),
    ):
        how = form(KafkaFormat.CSV, write_bigdecimal_in_scientific_notation=flag)
        assert written(how, fields, rows).to_pylist() == expected
        is_written(replace(how), fields, rows)
