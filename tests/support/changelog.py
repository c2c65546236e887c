"""Changelog rows and tables for the tests of the data path."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from joins.adapters.delta.log import DeltaLog, create_table
from joins.kernels.changelog.envelope import CapturedColumn, changelog_schema
from joins.kernels.json.wire import Encoding
from joins.kernels.probe.files import FileOrigin, ParquetStage, StagedFile
from joins.kernels.table_path import TablePath
from joins.plan.types import SqlType, TypeName

COLUMNS = (
    CapturedColumn("id", SqlType(TypeName.BIGINT), Encoding.INTEGER),
    CapturedColumn("name", SqlType(TypeName.STRING), Encoding.STRING),
)
SCHEMA = changelog_schema(COLUMNS)


def record(op: str, id_: int | None, pos: int, offset: int, **more: Any) -> dict[str, Any]:
    """A changelog row; `name` tells which change it is, `more` are columns without underscore."""
    name = None if op in "dw" else f"{op}{pos}"
    row = {"id": id_, "name": name, "_op": op, "_epoch": 0, "_file": 1, "_pos": pos, "_row": 0}
    row |= {"_source_ts": 1_000 + pos, "_partition": 0, "_offset": offset, "_generation": 1}
    return row | {f"_{name}": value for name, value in more.items()}


def watermark(offset: int, *, partition: int = 0, generation: int = 1) -> dict[str, Any]:
    return record("w", None, 9_999, offset, partition=partition, generation=generation, row=-1)


def batch_of(rows: Iterable[Mapping[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)


def stage(
    root: TablePath, batch: pa.RecordBatch, *, number: int = 0, epoch: int = 1, writer: str = ""
) -> StagedFile:
    """`batch` as a complete file of the table at `root`, not yet committed."""
    with ParquetStage(root, batch.schema, FileOrigin(epoch, number, 0, 0, writer)) as staging:
        staging.write(batch)
        staged = staging.finish()
    assert staged is not None
    return staged


class Changelog:
    """A changelog table that is filled commit by commit."""

    def __init__(self, root: TablePath, *, epoch: int = 1) -> None:
        create_table(root, SCHEMA)
        self.log = DeltaLog(root, "app")
        self._epoch = epoch

    def commit(self, *rows: Mapping[str, Any]) -> int:
        """Append `rows` under the next batch number; returns the version."""
        last = self.log.batches.last_batch()
        number = 0 if last is None else last + 1
        files = [stage(self.log.path, batch_of(rows), number=number)] if rows else []
        return self.log.commit(number, self._epoch, files, {"batch": number})
