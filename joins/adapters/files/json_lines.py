"""Files of JSON objects, one a line, as wire columns: read as records of a stream are."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from joins.adapters.files.faults import bad_value, readable
from joins.kernels.expressions.casts import mask_of
from joins.kernels.json.rows import json_schema, parse
from joins.kernels.json.wire import to_wire
from joins.plan.plan import Field

_BATCH_ROWS = 20_000
_BATCH_BYTES = 8 << 20
_MOST_BYTES = 16 << 20  # of a line: what has no line ends is no file of lines
_LOOKED_AT = 100
_JSON = "lines of JSON"


def check_json(file: Path, fields: Sequence[Field]) -> None:
    """Look at the first lines of a file, in plain Python: the control plane has no compiler.

    Raises:
        SourceError: it cannot be read.
        DefinitionError: a line is no object, or lacks what may not be NULL.
    """
    needed = [field.name for field in fields if not field.nullable]
    with readable(file, _JSON):
        for number, line in enumerate(islice(_lines(file), _LOOKED_AT), start=1):
            row = _object(file, number, line)
            missing = [name for name in needed if row.get(name) is None]
            if missing:
                reason = f'column "{missing[0]}": it is missing or NULL'
                raise bad_value(file, f"line {number}", reason)


def json_rows(file: Path, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """The rows of a file as wire columns, in their order; a missing member is NULL.

    Raises:
        SourceUnavailableError: the file is gone.
        SourceError: it cannot be read.
        DefinitionError: a line is no object, or not what the columns declare.
    """
    first = 1
    with readable(file, _JSON):
        for lines in _batches(_lines(file)):
            yield _rows(file, first, lines, fields)
            first += len(lines)


def _lines(file: Path) -> Iterator[bytes]:
    """The lines of a file; one that is compressed (gz, bz2, zst, lz4) tells so by its name."""
    stream: Any = pa.input_stream(str(file), compression="detect")
    with io.BufferedReader(stream, 1 << 20) as opened:
        number = 0
        while line := opened.readline(_MOST_BYTES + 1):
            number += 1
            if len(line) > _MOST_BYTES:
                raise bad_value(file, f"line {number}", f"it has more than {_MOST_BYTES:,} bytes")
            yield line.rstrip(b"\r\n")


def _batches(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _rows(file: Path, first: int, lines: list[bytes], fields: Sequence[Field]) -> pa.RecordBatch:
    parsed = parse(pa.array(lines, pa.binary()), json_schema(fields))
    bad = {each.row: each.reason for each in parsed.bad[:1]}
    for field, values in zip(fields, parsed.batch.columns, strict=True):
        if not field.nullable and values.null_count:
            at = int(np.flatnonzero(mask_of(values.is_null()))[0])
            bad[parsed.row_index[at].as_py()] = f'column "{field.name}": it is missing or NULL'
    if bad:
        row = min(bad)
        raise bad_value(file, f"line {first + row}", bad[row])
    columns = [
        to_wire(values, field.type)
        for field, values in zip(fields, parsed.batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=[field.name for field in fields])


def _object(file: Path, number: int, line: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise bad_value(file, f"line {number}", f"it is not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise bad_value(file, f"line {number}", "it is no object")
    return value
