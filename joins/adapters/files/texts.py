"""Files of text as wire columns: a JSON object a line, or rows of CSV; read as records are."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from joins.adapters.files.faults import bad_value, readable
from joins.kernels.expressions.casts import mask_of
from joins.kernels.formats.csv_rows import typed
from joins.kernels.formats.decoders import decoder_of
from joins.kernels.formats.parsed import CsvDialect, dialect_of
from joins.kernels.json.wire import to_wire
from joins.plan.formats import IGNORE_PARSE_ERRORS, KafkaFormat, RecordFormat
from joins.plan.plan import Field

_BATCH_ROWS = 20_000
_BATCH_BYTES = 8 << 20
_MOST_BYTES = 16 << 20  # of a line: what has no line ends is no file of lines
_LOOKED_AT = 100
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_SEEN_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # no part of the first cell


def check_texts(file: Path, form: RecordFormat, fields: Sequence[Field]) -> None:
    """Look at the beginning of a file, in plain Python: the control plane has no compiler.

    Raises:
        SourceError: it cannot be read.
        DefinitionError: a row does not fit.
    """
    with readable(file, _named(form)):
        if form.name is KafkaFormat.CSV:
            _check_csv(file, form, fields)
        elif not form.flag(IGNORE_PARSE_ERRORS):
            _check_json(file, fields)


def text_rows(file: Path, form: RecordFormat, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """The rows of a file as wire columns, in their order.

    Raises:
        SourceUnavailableError: the file is gone.
        SourceError: it cannot be read.
        DefinitionError: a row is not what the columns declare.
    """
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
    """The texts of the rows, some at a time."""
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
    """The lines of a file."""
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
    """All of a file: mapped if it stands there as it is, else read."""
    if file.suffix in _COMPRESSED or file.stat().st_size == 0:
        with _opened(file) as opened:
            content = pa.py_buffer(opened.read())
    else:
        with pa.memory_map(str(file)) as mapped:
            content = mapped.read_buffer()
    has_mark = content[: len(_BYTE_ORDER_MARK)].to_pybytes() == _BYTE_ORDER_MARK
    return content[len(_BYTE_ORDER_MARK) :] if has_mark else content


def _check_csv(file: Path, form: RecordFormat, fields: Sequence[Field]) -> None:
    """Look at the first row; one of the columns' names is no row, and Flink's CSV has none."""
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
    """The cells of the first row, as far as it is seen at once; none if there is no row."""
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
    except csv.Error:  # whoever reads all of it says what is wrong
        return []
    is_cut = len(beginning) == _SEEN_BYTES and reader.line_num == len(lines)
    return [] if is_cut else cells
