"""CSV is read as Python's module reads it, and what cannot be read is said."""

import csv
import datetime as dt
import io
import math
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.formats.csv_rows import CsvFormatError, CsvRows, rows_of_file
from joins.kernels.formats.parsed import CsvDialect
from joins.plan.plan import Field
from joins.plan.types import Member, SqlType, TypeName, array_type, row_type
from tests.support.formats import bad
from tests.support.laws import examples

STRING, INT = SqlType(TypeName.STRING), SqlType(TypeName.INT)
TWO = (Field("a", STRING), Field("b", STRING))
NUMBERS = (Field("n", INT), Field("t", STRING))
NO_QUOTES = CsvDialect(quote=None)
BACKSLASH = CsvDialect(escape="\\")


def read(text, fields=TWO, dialect=CsvDialect(), **options):  # noqa: B008 - it is frozen
    values = [text] if isinstance(text, bytes | None) else text
    names = tuple(item.name for item in fields)
    return CsvRows(fields, names, dialect, **options).parse(pa.array(values, pa.binary()))


def rows(parsed):
    return [tuple(row.values()) for row in parsed.batch.to_pylist()]


CELLS = {
    "plain": (b"x,y", CsvDialect(), ("x", "y")),
    "blanks_stay": (b" x , y ", CsvDialect(), (" x ", " y ")),
    "empty": (b",", CsvDialect(), ("", "")),
    "quoted": (b'"x,1","y\n2"', CsvDialect(), ("x,1", "y\n2")),
    "doubled_quotes": (b'"""x""",""""', CsvDialect(), ('"x"', '"')),
    "a_quote_within": (b'x"1",y', CsvDialect(), ('x"1"', "y")),
    "an_empty_quoted_one": (b'"",x', CsvDialect(), ("", "x")),
    "a_line_break_behind": (b"x,y\r\n", CsvDialect(), ("x", "y")),
    "empty_lines_behind": (b"x,y\n\n\r\n", CsvDialect(), ("x", "y")),
    "a_comma_behind_the_last": (b"x,y,", CsvDialect(), ("x", "y")),
    "another_delimiter": (b"x;1\ty", CsvDialect(delimiter="\t"), ("x;1", "y")),
    "another_quote": (b"'x,1',\"y", CsvDialect(quote="'"), ("x,1", '"y')),
    "no_quotes": (b'"x",y"', NO_QUOTES, ('"x"', 'y"')),
    "escapes": (b'x\\,1,"y\\"2"', BACKSLASH, ("x,1", 'y"2')),
    "escapes_of_characters": (b"\\0\\n\\r\\t\\\\,\\q", BACKSLASH, ("\0\n\r\t\\", "q")),
    "comments_before": (b"# x\n#y\r\nx,y", CsvDialect(has_comments=True), ("x", "y")),
    "comments_behind": (b"x,#y\n#z", CsvDialect(has_comments=True), ("x", "#y")),
    "blanks_before_a_row_with_comments": (
        b" \n  # x\n x, y",
        CsvDialect(has_comments=True),
        ("x", " y"),
    ),
    "blanks_before_a_row": (b" x,y", CsvDialect(), (" x", "y")),
    "no_comments": (b"#x,y", CsvDialect(), ("#x", "y")),
    "a_null": (b"-,x", CsvDialect(null="-"), (None, "x")),
    "a_quoted_null": (b'"-",-1', CsvDialect(null="-"), (None, "-1")),
    "an_empty_null": (b',""', CsvDialect(null=""), (None, None)),
    "a_byte_order_mark": (b"\xef\xbb\xbfx,\xef\xbb\xbfy", CsvDialect(), ("x", "\ufeffy")),
    "a_mark_before_quotes": (b'\xef\xbb\xbf"x",y', CsvDialect(), ("x", "y")),
    "a_mark_that_is_a_text": ('"\ufeffx",y'.encode(), CsvDialect(), ("\ufeffx", "y")),
    "characters_of_several_bytes": ("ü😀,é".encode(), CsvDialect(), ("ü😀", "é")),
}


@pytest.mark.parametrize(("text", "dialect", "cells"), CELLS.values(), ids=CELLS)
def test_cells_are_read(text, dialect, cells):
    parsed = read([b"1,2", text, b"3,4"] if dialect.delimiter == "," else [text], TWO, dialect)
    assert bad(parsed) == []
    assert cells in rows(parsed)


BAD = {
    "null": (None, "the value is null"),
    "empty": (b"", "the value is empty"),
    "a_line_break": (b"\n", "the value is empty"),
    "too_few": (b"x", "it has 1 cell, expected 2"),
    "too_many": (b"x,y,z", "it has 3 cells, expected 2"),
    "two_behind": (b"x,y,,", "it has 4 cells, expected 2"),
    "an_empty_quoted_cell_behind": (b'x,y,""', "it has 3 cells, expected 2"),
    "an_open_quote": (b'x,"y', "a quoted cell does not end"),
    "text_behind_a_quote": (
        b'"x"y,z',
        "there is something between a quoted cell and the next one",
    ),
    "two_rows": (b"x,y\nz,w", "it has more than one row"),
    "no_utf_8": (b"x,\xff", 'field "b" is not UTF-8'),
}


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD)
def test_what_is_no_row_is_bad_alone(text, reason):
    parsed = read([b"1,2", text, b"3,4"])
    assert bad(parsed) == [(1, reason)]
    assert (rows(parsed), parsed.row_index.to_pylist()) == ([("1", "2"), ("3", "4")], [0, 2])
    assert bad(read([text], ignores_errors=True)) == []


def test_an_escape_at_the_end_is_bad():
    assert bad(read([b"x,y\\", b'x,"y\\'], TWO, BACKSLASH)) == [
        (0, "it ends with an escape character"),
        (1, "a quoted cell does not end"),
    ]


def test_lines_that_are_comments_are_no_rows():
    parsed = read([b"#x", b"x,y", b"# z\n", b""], TWO, CsvDialect(has_comments=True))
    assert (rows(parsed), bad(parsed)) == ([("x", "y")], [(3, "the value is empty")])


VALUES = {
    "BOOLEAN": (SqlType(TypeName.BOOLEAN), [" TRUE", "false "], [True, False], ["t", "1", ""]),
    "TINYINT": (SqlType(TypeName.TINYINT), ["-128", " +1 "], [-128, 1], ["128", "1.0", "", "x"]),
    "BIGINT": (SqlType(TypeName.BIGINT), ["9223372036854775807"], [2**63 - 1], [str(2**63)]),
    "DOUBLE": (
        SqlType(TypeName.DOUBLE),
        ["1e3", ".5", "-Infinity"],
        [1000.0, 0.5, -math.inf],
        ["1e999", "", "inf", "nan"],
    ),
    "FLOAT": (SqlType(TypeName.FLOAT), ["0.25"], [0.25], ["1e39", "0x1"]),
    "DECIMAL": (
        SqlType(TypeName.DECIMAL, 5, 2),
        ["1", "-1.50", "1E+2", " 999.99", "1.234", "-1.235", "1e-3", "7e-8322294"],
        [Decimal(each) for each in ("1", "-1.5", "100", "999.99", "1.23", "-1.24", "0", "0")],
        ["1000", "999.995", "", "NaN", "1e999", "x"],
    ),
    "BYTES": (SqlType(TypeName.BYTES), ["AQ==", ""], [b"\x01", b""], ["AQ", "?"]),
    "DATE": (
        SqlType(TypeName.DATE),
        ["2026-02-28"],
        [dt.date(2026, 2, 28)],
        ["2026-02-30", "28.2.2026", ""],
    ),
    "TIME": (
        SqlType(TypeName.TIME, 3),
        ["01:02:03.004", "01:02"],
        [3_723_004_000, 3_720_000_000],
        ["25:00:00", ""],
    ),
    "TIMESTAMP": (
        SqlType(TypeName.TIMESTAMP, 3),
        ["2026-01-02 03:04:05.006", "2026-01-02T03:04:05"],
        [dt.datetime(2026, 1, 2, 3, 4, 5, 6000), dt.datetime(2026, 1, 2, 3, 4, 5)],  # noqa: DTZ001
        ["2026-01-02 25:00:00", "2026-01-02 03:04:05Z", ""],
    ),
    "TIMESTAMP_LTZ": (
        SqlType(TypeName.TIMESTAMP_LTZ, 3),
        ["2026-01-02 03:04:05Z"],
        [dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)],
        ["2026-01-02 03:04:05", ""],
    ),
    "ARRAY": (array_type(INT), ["1; 2;-", "", "3"], [[1, 2, None], [], [3]], ["1;x", "1;;2"]),
    "ARRAY_OF_STRING": (array_type(STRING), ["a;;-"], [["a", "", None]], []),
    "ROW": (
        row_type(Member("x", INT), Member("y", STRING)),
        ["1;a", "-;"],
        [{"x": 1, "y": "a"}, {"x": None, "y": ""}],
        ["1", "1;a;b", "x;a", ""],
    ),
}


@pytest.mark.parametrize(("kind", "good", "meant", "wrong"), VALUES.values(), ids=VALUES)
def test_a_cell_is_its_value_or_the_record_is_bad(kind, good, meant, wrong):
    fields, dialect = (Field("c", kind), Field("t", STRING)), CsvDialect(null="-")
    texts = [f"{text},x".encode() for text in (*good, *wrong, "-")]
    parsed = read(texts, fields, dialect)
    assert [row for row, _ in rows(parsed)] == [*meant, None]
    assert [row for row, _ in bad(parsed)] == list(range(len(good), len(good) + len(wrong)))
    for _, reason in bad(parsed):
        assert reason.startswith('field "c": "')
    lenient = read(texts, fields, dialect, ignores_errors=True)
    assert [row for row, _ in rows(lenient)] == [*meant, *([None] * (len(wrong) + 1))]


def test_with_ignored_errors_cells_that_are_not_there_are_null():
    parsed = read([b"1", b"x,y", b"1,2,3", b'"', b""], NUMBERS, ignores_errors=True)
    assert (rows(parsed), bad(parsed)) == ([(1, None), (None, "y")], [])
    assert parsed.row_index.to_pylist() == [0, 1]


def test_only_columns_that_are_read_are_looked_at():
    reader = CsvRows(NUMBERS, ("t",), CsvDialect())
    parsed = reader.parse(pa.array([b"x,1", b"2,3,4"], pa.binary()))
    assert (rows(parsed), bad(parsed)) == ([("1",)], [(1, "it has 3 cells, expected 2")])
    parsed = CsvRows(NUMBERS, (), CsvDialect()).parse(pa.array([b"x,1", b"2"], pa.binary()))
    assert (parsed.row_index.to_pylist(), len(parsed.bad)) == ([0], 1)


CELL = st.text("ab,;\"\\\n\r #'é", max_size=4)
LINES = st.lists(st.lists(CELL, min_size=2, max_size=2), max_size=4)


@settings(max_examples=examples(300))
@given(LINES, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), st.sampled_from(",;#"))
def test_what_pythons_module_writes_is_read(lines, quoting, delimiter):
    texts = []
    for line in lines:
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\r\n").writerow(line)
        texts.append(out.getvalue())
    dialect = CsvDialect(delimiter=delimiter)
    parsed = read([text.encode() for text in texts], TWO, dialect)
    assert (rows(parsed), bad(parsed)) == ([tuple(line) for line in lines], [])
    whole = rows_of_file("".join(texts).encode(), dialect)
    parsed = CsvRows(TWO, ("a", "b"), dialect).parse(whole)
    assert (rows(parsed), bad(parsed)) == ([tuple(line) for line in lines], [])


@settings(max_examples=examples(400))
@given(st.text('a,"\n;', max_size=12))
def test_any_text_is_read_as_pythons_module_does_or_refused_as_by_it(text):
    try:
        known = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error:
        known = None
    dialect = CsvDialect()
    try:
        texts = rows_of_file(text.encode(), dialect)
    except CsvFormatError:
        assert known is None
        return
    assert known is not None
    width = max(map(len, known), default=1)
    fields = tuple(Field(f"c{at}", STRING) for at in range(width))
    found = CsvRows(fields, tuple(f.name for f in fields), dialect).parse(texts)
    by_row = dict(zip(found.row_index.to_pylist(), rows(found), strict=True))
    assert len(known) == len(texts)
    for at, row in enumerate(known):
        if len(row) == width:
            assert by_row[at] == tuple(row)
        else:
            assert at not in by_row


def test_a_file_is_split_into_rows():
    text = b'# head\r\n\n1,"a\nb"\n#x\n2,c\r\n\n'
    dialect = CsvDialect(has_comments=True)
    found = rows_of_file(text, dialect)
    assert rows(CsvRows(NUMBERS, ("n", "t"), dialect).parse(found)) == [(1, "a\nb"), (2, "c")]
    assert len(rows_of_file(b"", dialect)) == len(rows_of_file(b"#x\n\n", dialect)) == 0
    for wrong, row in ((b'1,2\n3,"4', 2), (b'"1"2,3', 1)):
        with pytest.raises(CsvFormatError, match=f"row {row} "):
            rows_of_file(wrong, replace(dialect, has_comments=False))
