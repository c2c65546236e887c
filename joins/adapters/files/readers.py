"""Rows of files as wire columns: Parquet, lines of JSON, and CSV."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from joins.adapters.delta.source import (
    Item,
    complaints,
    declarable,
    in_declared_shape,
    matching,
    place_of,
)
from joins.adapters.files.listing import bad_value, list_files, readable
from joins.kernels.expressions.casts import mask_of, try_each
from joins.kernels.formats.decoders import decoder_of
from joins.kernels.formats.parsed import CsvDialect, dialect_of
from joins.kernels.json.wire import to_wire
from joins.kernels.table_path import batch_rows
from joins.plan.errors import DefinitionError, of_columns
from joins.plan.formats import IGNORE_PARSE_ERRORS, KafkaFormat, RecordFormat
from joins.plan.plan import Field, FileFormat, FileSource
from joins.plan.types import arrow_type

_SHOWN = 300
_NAMES: tuple[tuple[pa.DataType, str], ...] = (
    (pa.int8(), "byte"),
    (pa.int16(), "short"),
    (pa.int32(), "integer"),
    (pa.int64(), "long"),
    (pa.float32(), "float"),
    (pa.float64(), "double"),
    (pa.bool_(), "boolean"),
    (pa.string(), "string"),
    (pa.binary(), "binary"),
    (pa.date32(), "date"),
    (pa.time64("us"), "time"),
)


def check_parquet(file: Path, fields: Sequence[Field]) -> int:
    """Check that the columns of a file may be declared as `fields`; returns its row count."""
    with readable(file, "Parquet"), pq.ParquetFile(file) as opened:
        matched_columns(file, opened.schema_arrow, fields)
        return int(opened.metadata.num_rows)


def parquet_rows(file: Path, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """Rows as wire columns in file order; DefinitionError for wrong columns or a NULL."""
    with (
        readable(file, "Parquet"),
        pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened,
    ):
        items = matched_columns(file, opened.schema_arrow, fields)
        names = [item["name"] for item in items.values()]
        first = 0
        count_each = batch_rows(opened, names, _BATCH_ROWS, _BATCH_BYTES)
        for batch in opened.iter_batches(count_each, columns=names):
            columns = []
            for field in fields:
                values, item = batch.column(items[field.name]["name"]), items[field.name]
                columns.append(_column(file, field, item, (first, values)))
            yield pa.RecordBatch.from_arrays(columns, names=[f.name for f in fields])
            first += batch.num_rows


def _column(file: Path, field: Field, item: Item, rows: tuple[int, pa.Array]) -> pa.Array:
    """The wire column of the values from row `first` on."""
    first, values = rows
    if pa.types.is_null(values.type):
        values = values.cast(arrow_type(field.type))
    plain = values.cast(plain_type(values.type))
    shape = in_declared_shape(plain, field.type, place_of(item, field.type, "none").parts)
    wire = to_wire(shape.slice(0, 0), field.type)
    made = try_each(shape, lambda part: to_wire(part, field.type), wire.type)
    bad = made.failed if field.nullable else made.failed | mask_of(made.values.is_null())
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        value = values[row].as_py()
        what = "it is NULL" if value is None else f"{str(value)[:60]} does not fit {field.type}"
        raise bad_value(file, f"row {first + row + 1}", f'column "{field.name}": {what}')
    return made.values


def matched_columns(file: Path, schema: pa.Schema, fields: Sequence[Field]) -> dict[str, Item]:
    items = {item.name: _item(item) for item in schema}
    matches = {field.name: matching(field.name, items) for field in fields}
    missing = [name for name, item in matches.items() if item is None]
    if missing:
        raise DefinitionError(
            f'file "{file}" has no column "{missing[0]}"', hint=of_columns(missing[0], items)
        )
    there = {name: item for name, item in matches.items() if item is not None}
    for field in fields:
        item = there[field.name]
        if item["type"] == "null":
            continue
        why = "; ".join(complaints(item["name"], item["type"], field.type))[:_SHOWN]
        if why:
            text = declarable(item["type"])
            raise DefinitionError(
                f'file "{file}" does not fit its declaration: {why}',
                hint=f"Declare {field.name} {text}."[:_SHOWN]
                if text is not None
                else "Leave the column out of the declaration.",
            )
    return there


def _item(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": _kind(plain_type(field.type)), "metadata": {}}


def _kind(plain: pa.DataType) -> str | Mapping[str, Any]:
    if pa.types.is_struct(plain):
        return {"type": "struct", "fields": [_item(part) for part in plain]}
    if pa.types.is_list(plain):
        return {"type": "array", "elementType": _kind(plain.value_type)}
    if pa.types.is_map(plain):
        key, value = _kind(plain.key_type), _kind(plain.item_type)
        return {"type": "map", "keyType": key, "valueType": value}
    if pa.types.is_timestamp(plain):
        return "timestamp_ntz" if plain.tz is None else "timestamp"
    if pa.types.is_decimal(plain):
        return f"decimal({plain.precision},{plain.scale})"
    return str(dict(_NAMES).get(plain, plain))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The canonical type among those with the same values."""
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if types.is_struct(kind):
        return pa.struct([part.with_type(plain_type(part.type)) for part in kind])
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    if types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    return _plain_scalar(kind)


def _plain_scalar(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_unsigned_integer(kind):
        signed = {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}
        return signed.get(kind.bit_width, pa.decimal128(20, 0))
    if types.is_time(kind):
        return pa.time64("us")
    return pa.float32() if types.is_float16(kind) else kind


_BATCH_ROWS = 20_000
_BATCH_BYTES = 8 << 20
_MOST_BYTES = 16 << 20  # of a line: a file without line ends is no file of lines
_LOOKED_AT = 100
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_SEEN_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # not part of the first cell


def check_texts(file: Path, form: RecordFormat, fields: Sequence[Field]) -> None:
    """Check the beginning of a file in plain Python: the control plane does not load numba."""
    with readable(file, _named(form)):
        if form.name is KafkaFormat.CSV:
            _check_csv(file, form, fields)
        elif not form.flag(IGNORE_PARSE_ERRORS):
            _check_json(file, fields)


def text_rows(file: Path, form: RecordFormat, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """The rows of a file as wire columns, in file order; DefinitionError if one does not fit."""
    first = 0
    decoder = decoder_of(form, tuple(fields), tuple(field.name for field in fields))
    with readable(file, _named(form)):
        if form.name is KafkaFormat.CSV:
            _check_csv(file, form, fields)
        for values in _values(file, form):
            parsed = decoder.parse(values)
            bad = {each.row: each.reason for each in parsed.bad[:1]}
            for field, column in zip(fields, parsed.batch.columns, strict=True):
                if not field.nullable and column.null_count:
                    at = int(np.flatnonzero(mask_of(column.is_null()))[0])
                    row = parsed.row_index[at].as_py()
                    bad.setdefault(row, f'field "{field.name}": it is missing or NULL')
            if bad:
                raise bad_value(file, _place(form, first + min(bad)), bad[min(bad)])
            columns = zip(fields, parsed.batch.columns, strict=True)
            yield pa.RecordBatch.from_arrays(
                [to_wire(column, field.type) for field, column in columns],
                names=[field.name for field in fields],
            )
            first += len(values)


def _named(form: RecordFormat) -> str:
    return "CSV" if form.name is KafkaFormat.CSV else "lines of JSON"


def _place(form: RecordFormat, row: int) -> str:
    return f"row {row + 1}" if form.name is KafkaFormat.CSV else f"line {row + 1}"


def _values(file: Path, form: RecordFormat) -> Iterator[pa.Array]:
    if form.name is not KafkaFormat.CSV:
        yield from _batches(_lines(file))
        return
    from joins.kernels.formats.csv_rows import CsvFormatError, rows_of_file  # loads numba

    try:
        rows = rows_of_file(_content(file), dialect_of(form))
    except CsvFormatError as exc:
        raise bad_value(file, "a row", str(exc)) from exc
    for first in range(0, len(rows), _BATCH_ROWS):
        yield rows.slice(first, _BATCH_ROWS)


# Lines
# ----------------------------------------------------------------------------------------------


def _lines(file: Path) -> Iterator[bytes]:
    with _opened(file) as opened:
        number = 0
        while line := opened.readline(_MOST_BYTES + 1):
            number += 1
            if len(line) > _MOST_BYTES:
                raise bad_value(file, f"line {number}", f"it has more than {_MOST_BYTES:,} bytes")
            yield line.rstrip(b"\r\n")


def _batches(lines: Iterator[bytes]) -> Iterator[pa.Array]:
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield pa.array(batch, pa.binary())
            batch, size = [], 0
    if batch:
        yield pa.array(batch, pa.binary())


def _opened(file: Path) -> io.BufferedReader:
    compression = "detect" if file.suffix in _COMPRESSED else None
    stream: Any = pa.input_stream(str(file), compression=compression)
    return io.BufferedReader(stream, 1 << 20)


def _check_json(file: Path, fields: Sequence[Field]) -> None:
    needed = [field.name for field in fields if not field.nullable]
    for number, line in enumerate(islice(_lines(file), _LOOKED_AT)):
        place = _place(RecordFormat(), number)
        try:
            row = json.loads(line, strict=False)
        except (ValueError, RecursionError) as exc:
            raise bad_value(file, place, f"it is not JSON: {exc}") from exc
        if not isinstance(row, dict):
            raise bad_value(file, place, "it is no object")
        missing = [name for name in needed if row.get(name) is None]
        if missing:
            raise bad_value(file, place, f'field "{missing[0]}": it is missing or NULL')


# CSV
# ----------------------------------------------------------------------------------------------


def _content(file: Path) -> pa.Buffer:
    if file.suffix in _COMPRESSED or file.stat().st_size == 0:
        with _opened(file) as opened:
            content = pa.py_buffer(opened.read())
    else:
        with pa.memory_map(str(file)) as mapped:
            content = mapped.read_buffer()
    has_mark = content[: len(_BYTE_ORDER_MARK)].to_pybytes() == _BYTE_ORDER_MARK
    return content[len(_BYTE_ORDER_MARK) :] if has_mark else content


def _check_csv(file: Path, form: RecordFormat, fields: Sequence[Field]) -> None:
    """Check the first row; a row of column names is refused, as Flink's CSV has no header."""
    from joins.kernels.formats.csv_rows import typed  # loads numba

    dialect = dialect_of(form)
    cells = _first_cells(file, dialect)
    names = [field.name.casefold() for field in fields]
    if [cell.strip().casefold() for cell in cells] == names:
        raise bad_value(file, "row 1", "it has the names of the columns; remove it")
    if not cells or form.flag(IGNORE_PARSE_ERRORS):
        return
    if len(cells) < len(names) or len(cells) - (cells[-1] == "") > len(names):
        raise bad_value(file, "row 1", f"it has {len(cells)} cells, expected {len(names)}")
    for field, cell in zip(fields, cells, strict=False):
        text = pa.array([None if cell == dialect.null else cell], pa.string())
        if typed(text, field.type, dialect.elements, dialect.null).failed[0]:
            shown = f'"{cell[:60]}" is not {field.type}'
            raise bad_value(file, "row 1", f'field "{field.name}": {shown}')


def _first_cells(file: Path, dialect: CsvDialect) -> list[str]:
    """The cells of the first row; empty if there is no row or it is too long to be seen whole."""
    with _opened(file) as opened:
        beginning = opened.read(_SEEN_BYTES)
    text = beginning.removeprefix(_BYTE_ORDER_MARK).decode(errors="replace")
    lines = [
        line
        for line in io.StringIO(text, newline="")
        if line.strip("\r\n") and not (dialect.has_comments and line.startswith("#"))
    ]
    reader = csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quotechar=dialect.quote,
        quoting=csv.QUOTE_NONE if dialect.quote is None else csv.QUOTE_MINIMAL,
        escapechar=dialect.escape,
    )
    try:
        cells = next(reader, [])
    except csv.Error:  # the full read reports what is wrong
        return []
    is_cut = len(beginning) == _SEEN_BYTES and reader.line_num == len(lines)
    return [] if is_cut else cells


_FILES_LOOKED_AT = 100  # files; the process checks all of them


def check_files(root: Path, source: FileSource, fields: Sequence[Field]) -> int:
    """Check that files exist and the first ones fit; returns the number of files."""
    files = list_files(root)
    for file in files[:_FILES_LOOKED_AT]:
        if source.format is FileFormat.PARQUET:
            check_parquet(root / file.path, fields)
        else:
            check_texts(root / file.path, source.of_rows, fields)
    return len(files)


def read_file(file: Path, source: FileSource, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    if source.format is FileFormat.PARQUET:
        return parquet_rows(file, fields)
    return text_rows(file, source.of_rows, fields)
