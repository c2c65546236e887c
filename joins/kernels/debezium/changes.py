"""Records of Debezium as columns, one row a record in their order, and what is wrong with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]


class RecordKind(StrEnum):
    """Kind of a record: Debezium's operation, or another kind."""

    READ = "r"
    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    TRUNCATE = "t"
    MESSAGE = "m"
    TOMBSTONE = "tombstone"
    OTHER_TABLE = "other"
    BAD = "bad"


class RecordFault(StrEnum):
    """Why a record is bad."""

    UNREADABLE = "unreadable"
    """It is not JSON or Avro, or its schema cannot be had."""
    LAYOUT = "layout"
    """It is no change of a row, or not as the options say."""
    KEY = "key"
    """Its key cannot be read, or is not that of its row."""
    COLUMN = "column"
    """A column is missing, or its value is not of the declared type."""
    UNAVAILABLE = "unavailable"
    """The database did not send the value of a column: it is large and was not changed."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that cannot be decoded; `row` is its position, `reason` names a bad column."""

    row: int
    fault: RecordFault
    reason: str


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """A table as its records name it, else None; `connector` is its `topic.prefix`."""

    connector: str | None
    database: str | None
    schema: str | None
    table: str | None

    @property
    def name(self) -> str:
        return ".".join(part for part in (self.database, self.schema, self.table) if part)


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """Decoded records, one row each in input order; None and NULL if unknown."""

    # a flat record without `__op` is an update. A tombstone deletes its key if a row of that key
    # exists.
    kind: pa.StringArray
    # columns of the primary key. NULL for truncates, messages, other tables' records, bad records,
    # and tombstones without a key.
    key: pa.RecordBatch
    after: pa.RecordBatch  # declared columns; NULL unless the record is a read, create or update
    # requested columns of deletes and updates, NULL where the record has none; None if no column is
    # requested
    before: pa.RecordBatch | None
    # `source.snapshot` as text: `true`, `first`, `first_in_data_collection`,
    # `last_in_data_collection`, `last`, `incremental`, `false`. `false` if an envelope lacks it,
    # NULL for tombstones and for flat rows without it.
    snapshot: pa.StringArray
    source_ts_ms: pa.Int64Array  # `source.ts_ms`, when the database changed the row
    # log position at which a snapshot row was read (`source.lsn`, or `file` and `pos`), equal for
    # all rows of one snapshot
    position: pa.BinaryArray
    # connector, database, schema, table: `source.name`, `db`, `schema`, `table`
    connector: pa.StringArray
    database: pa.StringArray
    schema: pa.StringArray
    table: pa.StringArray
    bad: tuple[BadRecord, ...]  # records of `RecordKind.BAD` in order, each once
    # values of `after` that the database did not send, one column a declared one; None if there are
    # none
    unsent: Mask | None = None

    def tables(self) -> list[ForeignTable]:
        """Tables that records name, except those of `RecordKind.OTHER_TABLE`."""
        columns: list[pa.StringArray] = [self.connector, self.database, self.schema, self.table]
        named = pc.and_(self.table.is_valid(), pc.not_equal(self.kind, RecordKind.OTHER_TABLE))
        if not pc.all(named, min_count=0).as_py():
            columns = [column.filter(named) for column in columns]
        each = [column.unique().to_pylist() for column in columns]
        if all(len(names) == 1 for names in each):
            return [ForeignTable(*(names[0] for names in each))]
        rows = dict.fromkeys(zip(*(column.to_pylist() for column in columns), strict=True))
        return [ForeignTable(*row) for row in rows]


@dataclass(slots=True)
class Faults:
    """The first fault of each record; `sound` marks records without one."""

    sound: Mask
    _records: dict[int, BadRecord] = field(default_factory=dict)

    @classmethod
    def of(cls, count: int) -> Self:
        return cls(np.ones(count, np.bool_))

    def add(self, fault: RecordFault, row: int, reason: str) -> None:
        if self.sound[row]:
            self.sound[row] = False
            self._records[row] = BadRecord(row, fault, reason)

    def add_all(self, fault: RecordFault, reasons: Mapping[int, str]) -> None:
        for row, reason in reasons.items():
            self.add(fault, row, reason)

    def where(self, fault: RecordFault, mask: Mask, reason: str) -> None:
        for row in np.flatnonzero(mask & self.sound).tolist():
            self.add(fault, row, reason)

    def records(self) -> tuple[BadRecord, ...]:
        return tuple(self._records[row] for row in sorted(self._records))
