"""Records of Debezium as columns, one row a record in their order, and what is wrong with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


class RecordKind(StrEnum):
    """What a record is: Debezium's letters of operations, and what is none."""

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
    """A record that is not understood in full.

    Attributes:
        row: its position in the input.
        reason: a fragment that names the column, where it is one.
    """

    row: int
    fault: RecordFault
    reason: str


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """A table as records of it tell, whatever their topic is named; None is what they do not.

    Attributes:
        connector: the connector's name (`topic.prefix`), which its notifications tell, too.
    """

    connector: str | None
    database: str | None
    schema: str | None
    table: str | None

    @property
    def name(self) -> str:
        return ".".join(part for part in (self.database, self.schema, self.table) if part)


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """Records, one row each in the order of the input.

    Attributes:
        kind: `RecordKind` of each. A flat record without `__op` is an update. A tombstone is a
            delete of its key, if nothing of that key was there before.
        key: the columns of the primary key as declared. NULL of truncates, of messages, of other
            tables' records, of bad records, and of a tombstone without a key.
        after: the declared columns; NULL but for reads, creates and updates.
        before: the columns that were asked for, of deletes and updates that have them; or None.
        snapshot: `source.snapshot` as text: `true`, `first`, `first_in_data_collection`,
            `last_in_data_collection`, `last`, `incremental`, `false`. NULL where a record is none
            of an envelope, or a flat one that does not tell. Without the member it is `false`.
        source_ts_ms: `source.ts_ms`, when the database changed the row.
        position: of reads: where the database's log was then (`source.lsn`, or `file` and `pos`),
            the same for all rows of one snapshot; NULL where the source does not tell.
        connector: `source.name`; NULL where a record does not tell, as are the next three.
        database: `source.db`.
        schema: `source.schema`.
        table: `source.table`.
        bad: those of `RecordKind.BAD`, in their order, each once.
    """

    kind: pa.StringArray
    key: pa.RecordBatch
    after: pa.RecordBatch
    before: pa.RecordBatch | None
    snapshot: pa.StringArray
    source_ts_ms: pa.Int64Array
    position: pa.BinaryArray
    connector: pa.StringArray
    database: pa.StringArray
    schema: pa.StringArray
    table: pa.StringArray
    bad: tuple[BadRecord, ...]

    def tables(self) -> list[ForeignTable]:
        """The tables of all records that tell one and are of no other than is read."""
        columns: list[pa.StringArray] = [self.connector, self.database, self.schema, self.table]
        named = pc.and_(self.table.is_valid(), pc.not_equal(self.kind, RecordKind.OTHER_TABLE))
        if not pc.all(named, min_count=0).as_py():
            columns = [column.filter(named) for column in columns]
        each = [column.unique().to_pylist() for column in columns]
        if all(len(names) == 1 for names in each):
            return [ForeignTable(*(names[0] for names in each))]
        rows = dict.fromkeys(zip(*(column.to_pylist() for column in columns), strict=True))
        return [ForeignTable(*row) for row in rows]


Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Faults:
    """Faults by record; `sound` marks the records without one."""

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
