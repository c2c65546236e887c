"""Rows of two columns, a number and its name, for the tests of Delta tables."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows_of(*ids: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(ids), "name": [f"n{i}" for i in ids]}, SCHEMA)


def ids_in(path: Path) -> list[int]:
    return sorted(DeltaTable(str(path)).to_pyarrow_table().column("id").to_pylist())
