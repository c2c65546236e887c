"""What a file says is what the table has, in the declared types; all else names its place."""

import gzip
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joins.adapters.delta.source import captured_columns
from joins.adapters.files.readers import check_files
from joins.kernels.changelog.envelope import decode
from joins.plan.errors import DefinitionError, SourceError
from joins.plan.plan import COORDINATES, Field, FileFormat
from joins.plan.types import Member, SqlType, TypeName, array_type, map_type, row_type
from tests.support.file_feeds import USER_FIELDS, file_feed, source_of, write_json_lines

PARQUET, JSON, CSV = FileFormat
INSTANT = datetime(2024, 2, 29, 12, 30, 1, 234567, UTC)
AT = INSTANT.replace(tzinfo=None)
STRING = SqlType(TypeName.STRING)
COORDINATE_NAMES = tuple(field.name for field in COORDINATES)


def write_parquet(path, columns):
    pq.write_table(pa.table(columns), path)


def values_of(path, format_, kind):
    """The column `v` of all rows by `id`, as the changelog table gets them."""
    source = file_feed(path, format_, (USER_FIELDS[0], Field("v", kind)))
    check_files(path, source_of(format_), source.config.fields)
    source.run()
    columns = captured_columns(source.config.fields)
    decoded = decode(source.sink.topic.batch(), columns, topic="t").batch
    rows = [row for row in decoded.to_pylist() if row["_op"] == "r"]
    return [row["v"] for row in sorted(rows, key=lambda row: row["id"])]


def type_of(name, *digits):
    return SqlType(TypeName(name), *digits)


PARQUET_VALUES = {
    "integers_widen": (pa.array([-1, None], pa.int16()), type_of("BIGINT"), [-1, None]),
    "unsigned_ones_too": (pa.array([2**32 - 1], pa.uint32()), type_of("BIGINT"), [2**32 - 1]),
    "the_largest_is_a_decimal": (
        pa.array([2**64 - 1], pa.uint64()),
        type_of("DECIMAL", 20, 0),
        [Decimal(2**64 - 1)],
    ),
    "floats": (pa.array([1.5], pa.float32()), type_of("DOUBLE"), [1.5]),
    "decimals": (
        pa.array([Decimal("1.20")], pa.decimal128(5, 2)),
        type_of("DECIMAL", 12, 3),
        [Decimal("1.200")],
    ),
    "texts": (pa.array(["ä\n", "", None]), STRING, ["ä\n", "", None]),
    "large_texts": (pa.array(["a"], pa.large_string()), STRING, ["a"]),
    "categories": (pa.array(["a", None]).dictionary_encode(), STRING, ["a", None]),
    "bytes": (pa.array([b"\x00\xff"]), type_of("BYTES"), [b"\x00\xff"]),
    "booleans": (pa.array([True, None]), type_of("BOOLEAN"), [True, None]),
    "dates": (pa.array([date(1969, 12, 31)]), type_of("DATE"), [date(1969, 12, 31)]),
    "times": (pa.array([time(23, 59, 59)]), type_of("TIME"), [86_399_000_000]),
    "local_times": (pa.array([AT], pa.timestamp("us")), type_of("TIMESTAMP", 6), [AT]),
    "instants": (
        pa.array([AT], pa.timestamp("ns", "UTC")),
        type_of("TIMESTAMP_LTZ", 3),
        [INSTANT.replace(microsecond=234_000)],
    ),
    "nothing": (pa.nulls(2), type_of("INT"), [None, None]),
    "lists": (
        pa.array([[1, None], None, []], pa.large_list(pa.int32())),
        array_type(type_of("BIGINT")),
        [[1, None], None, []],
    ),
    "rows_with_parts_left_out": (
        pa.array([{"a": 1, "b": "x"}]),
        row_type(Member("b", STRING)),
        [{"b": "x"}],
    ),
    "maps": (
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        map_type(type_of("BIGINT")),
        [[("k", 1)]],
    ),
}


@pytest.mark.parametrize(
    ("values", "kind", "expected"), PARQUET_VALUES.values(), ids=PARQUET_VALUES
)
def test_columns_of_parquet_are_read_exactly(tmp_path, values, kind, expected):
    write_parquet(tmp_path / "t.parquet", {"id": range(len(values)), "v": values})
    assert values_of(tmp_path / "t.parquet", PARQUET, kind) == expected


JSON_VALUES = {
    "integers": ("7", type_of("SMALLINT"), 7),
    "decimals": ("1.10", type_of("DECIMAL", 5, 2), Decimal("1.10")),
    "decimals_as_text": ('"1.1"', type_of("DECIMAL", 5, 2), Decimal("1.10")),
    "texts": (r'"\u00e4\n"', STRING, "ä\n"),
    "dates": ('"2024-02-29"', type_of("DATE"), date(2024, 2, 29)),
    "local_times": ('"2024-02-29 12:30:01.234567"', type_of("TIMESTAMP", 6), AT),
    "null": ("null", STRING, None),
    "rows": ('{"b": "x", "c": 1}', row_type(Member("b", STRING)), {"b": "x"}),
}


@pytest.mark.parametrize(("text", "kind", "expected"), JSON_VALUES.values(), ids=JSON_VALUES)
def test_members_of_json_are_read_as_the_streams_are(tmp_path, text, kind, expected):
    write_json_lines(tmp_path / "t.json", [f'{{"id": 1, "v": {text}, "other": [1]}}'])
    assert values_of(tmp_path / "t.json", JSON, kind) == [expected]


CSV_FILES = {
    "cells_as_they_stand": ("1,a\n2,b\n", {}, ["a", "b"]),
    "quoted_cells_of_several_lines": ('1,"a\n""b"""\n2,c', {}, ['a\n"b"', "c"]),
    "other_ends_of_lines": ("1,a\r\n\r\n2,b\r\n", {}, ["a", "b"]),
    "comments": ("#,\n1,a\n# 3\n2,#b\n", {"allow_comments": "true"}, ["a", "#b"]),
    "another_dialect": (
        "1\t'a\tb'\n2\t-",
        {"field_delimiter": "\\t", "quote_character": "'", "null_literal": "-"},
        ["a\tb", None],
    ),
    "what_is_wrong_on_demand": ("1,a\nx\n2", {"ignore_parse_errors": "true"}, ["a", None]),
    "a_byte_order_mark": ("\ufeff1,a\n2,\ufeffb\n", {}, ["a", "\ufeffb"]),
    "nothing": ("", {}, []),
    "a_first_row_that_is_long": (f"1,{'a' * 70_000}\n", {}, ["a" * 70_000]),
}


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize(("content", "options", "expected"), CSV_FILES.values(), ids=CSV_FILES)
def test_rows_of_csv_are_read_as_flink_does(tmp_path, content, options, expected, compressed):
    path = tmp_path / ("t.csv.gz" if compressed else "t.csv")
    path.write_bytes(gzip.compress(content.encode()) if compressed else content.encode())
    fields = tuple(replace(field, nullable=True) for field in USER_FIELDS)
    check_files(path, source_of(CSV, options), fields)
    source = file_feed(path, CSV, (*fields, *COORDINATES), COORDINATE_NAMES, **options)
    source.run()
    rows = [row for row in source.rows() if row["id"] is not None]
    assert [row["name"] for row in rows] == expected


def test_lines_may_end_as_they_like_and_files_may_be_compressed(tmp_path):
    path = tmp_path / "t"
    path.mkdir()
    (path / "a.json").write_bytes(b'{"id":1,"v":"a"}\r\n{"id":2}')
    (path / "b.json.gz").write_bytes(gzip.compress(b'{"id":3,"v":"c"}\n'))
    assert values_of(path, JSON, STRING) == ["a", None, "c"]


def test_many_rows_are_read_in_order(tmp_path):
    lines = [f'{{"id": {n}, "name": "n{n}"}}' for n in range(45_000)]
    write_json_lines(tmp_path / "t.json", lines)
    columns = {"id": range(45_000), "name": [f"n{n}" for n in range(45_000)]}
    write_parquet(tmp_path / "t.parquet", columns)
    (tmp_path / "t.csv").write_text("".join(f"{n},n{n}\n" for n in range(45_000)))
    for format_ in FileFormat:
        source = file_feed(tmp_path / f"t.{format_}", format_)
        source.run()
        assert [row["name"] for row in source.rows()] == columns["name"]


def parquet(**columns):
    return lambda path: write_parquet(path, columns)


def lines(*texts):
    return lambda path: write_json_lines(path, ['{"id": 1, "name": "a"}', *texts])


def text(content):
    return lambda path: path.write_text(content)


REFUSED = {
    "a_missing_column": (PARQUET, parquet(id=[1], nam=["a"]), 'no column "name"', True),
    "a_column_of_another_type": (
        PARQUET,
        parquet(id=[1], name=[5]),
        'column "name" is long, declared STRING',
        True,
    ),
    "a_column_of_no_type_of_ours": (
        PARQUET,
        parquet(id=[1], name=pa.array([1], pa.duration("s"))),
        'column "name" is duration',
        True,
    ),
    "no_key": (
        PARQUET,
        parquet(id=[1, None], name=["a", "b"]),
        'row 2 of file .* column "id": it is NULL',
        False,
    ),
    "no_parquet": (PARQUET, lines(), "cannot be read as Parquet", True),
    "no_json": (JSON, lines("id,name"), "line 2 of file .*JSON", True),
    "no_object": (JSON, lines("[1]"), "line 2 of file .* object", True),
    "no_line": (JSON, lines(""), "line 2 of file .*(not JSON|empty)", True),
    "no_key_in_a_line": (
        JSON,
        lines('{"name": "b"}'),
        'line 2 of file .*"id": it is missing or NULL',
        True,
    ),
    "a_value_of_another_type": (JSON, lines('{"id": 1.5}'), "line 2 of file .*id", False),
    "a_value_out_of_range": (JSON, lines(f'{{"id": {2**63}}}'), "line 2 of file .*id", False),
    "not_utf_8": (
        JSON,
        lambda path: path.write_bytes(b'{"id":1,"name":"\xff"}\n'),
        "line 1 of file",
        True,
    ),
    "a_line_of_names": (CSV, text("id,name\n1,a\n"), "row 1 .* names of the columns", True),
    "a_line_of_names_behind_a_mark": (CSV, text("\ufeffid,name\n"), "names of the columns", True),
    "a_cell_of_another_type": (CSV, text("1,a\nx,b\n"), 'row 2 .*"id": "x" is not a BIGINT', False),
    "a_first_cell_of_another_type": (CSV, text("x,b\n"), 'row 1 .*"x" is not', True),
    "a_cell_too_few": (CSV, text("1\n"), "row 1 .* it has 1 cell", True),
    "a_cell_too_many_later": (CSV, text("1,a\n\n2,b,c\n"), "row 2 .* it has 3 cells", False),
    "a_quote_that_does_not_end": (CSV, text('1,a\n2,"b\n3,c\n'), "row 2 has a quoted", False),
    "an_empty_key": (CSV, text("1,a\n,b\n"), 'row 2 .*"id"', False),
    "a_compressed_file_that_is_not": (
        JSON,
        lambda path: path.with_suffix(".gz").write_text("{}"),
        "cannot be read as lines of JSON",
        True,
    ),
}


@pytest.mark.parametrize(
    ("format_", "write", "message", "is_seen_early"), REFUSED.values(), ids=REFUSED
)
def test_what_does_not_fit_is_never_a_row(tmp_path, format_, write, message, is_seen_early):
    path = tmp_path / "t"
    path.mkdir()
    write(path / "a.file")
    source = file_feed(path, format_)
    if is_seen_early:
        with pytest.raises(SourceError, match=message):
            check_files(path, source_of(format_), USER_FIELDS)
    else:
        check_files(path, source_of(format_), USER_FIELDS)
    with pytest.raises(SourceError, match=message):
        source.run()
    assert source.copy().rows == {}
    assert source.copy().generation == 0
    for file in path.iterdir():
        file.unlink()
    good = {PARQUET: parquet(id=[1], name=["a"]), JSON: lines(), CSV: text("1,a\n")}
    good[format_](path / "a.file")
    check_files(path, source_of(format_), USER_FIELDS)
    source.run()
    assert source.rows() == [{"id": 1, "name": "a"}]


def test_a_column_is_declared_as_the_hint_says_or_left_out(tmp_path):
    path = tmp_path / "t.parquet"
    write_parquet(path, {"id": [1], "name": [5], "took": pa.array([1], pa.duration("s"))})
    hints = []
    for name, kind in (("nam", STRING), ("name", STRING), ("took", STRING)):
        with pytest.raises(DefinitionError) as caught:
            check_files(path, source_of(PARQUET), (USER_FIELDS[0], Field(name, kind)))
        hints.append(caught.value.hint)
    assert hints[:2] == ['Did you mean "name"?', "Declare name BIGINT."]
    assert hints[2] == "Leave the column out of the declaration."
    fields = (USER_FIELDS[0], Field("name", type_of("BIGINT")))
    assert check_files(path, source_of(PARQUET), fields) == 1
