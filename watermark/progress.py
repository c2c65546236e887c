"""How far a table's copy is, and on what evidence it was called complete."""

from dataclasses import dataclass
from enum import StrEnum

from watermark.checks import checked
from watermark.errors import InvalidParameterError


@checked
@dataclass(frozen=True, slots=True, order=True)
class RowPosition:
    """A place in a server's history; later places compare greater.

    Attributes:
        epoch: grows whenever positions stop being comparable: failover, RESET, a restored server.
        file: number of the binlog file, 12 for `binlog.000012`.
        pos: position of the transaction's GTID event.
        row: ordinal of the row in its transaction; -1 is before the first.

    >>> RowPosition(0, 9, 900, 4) < RowPosition(0, 10, 4, -1) < RowPosition(1, 1, 4, -1)
    True
    """

    epoch: int
    file: int
    pos: int
    row: int = -1


class Evidence(StrEnum):
    """Why a table counts as complete; shown wherever the opening is shown."""

    IN_BAND_WATERMARK = "in_band_watermark"
    BOUNDED_INPUT_ENDED = "bounded_input_ended"
    LAST_SNAPSHOT_ROW = "last_snapshot_row"
    TABLE_SCAN_COMPLETED = "table_scan_completed"
    FIRST_STREAMED_CHANGE = "first_streamed_change"
    CONNECTOR_OFFSETS = "connector_offsets"
    SNAPSHOT_SKIPPED = "snapshot_skipped"
    OPERATOR_OVERRIDE = "operator_override"


@checked
@dataclass(frozen=True, slots=True)
class SnapshotProgress:
    """The copy of one table.

    Attributes:
        rows_total: None before anything is known.
        is_estimate: `rows_total` comes from the server's statistics.
        chunks_total: None before the chunks are planned.

    Raises:
        InvalidParameterError: a count is negative.

    >>> SnapshotProgress(rows_done=50, rows_total=200).fraction
    0.25
    """

    rows_done: int = 0
    rows_total: int | None = None
    is_estimate: bool = True
    chunks_done: int = 0
    chunks_total: int | None = None

    def __post_init__(self) -> None:
        for count in (self.rows_done, self.rows_total, self.chunks_done, self.chunks_total):
            if count is not None and count < 0:
                raise InvalidParameterError(
                    f"snapshot progress has a count of {count}, expected 0 or more",
                    hint="Count rows and chunks from zero.",
                )

    @property
    def fraction(self) -> float | None:
        """Share that is done, at the most 1.0; None while the total is unknown."""
        if self.rows_total is None:
            return None
        return 1.0 if not self.rows_total else min(1.0, self.rows_done / self.rows_total)


@checked
@dataclass(frozen=True, slots=True)
class TableProgress:
    """A table on its way to completeness.

    Attributes:
        generation: of the snapshot.
        low: where the snapshot began, None before.
        high: what must be applied for completeness, None before the last chunk.
        applied: how far the changes are applied.
        evidence: why it is complete, None while it is not.
        reason: free text kept with an operator's override.
    """

    table: str
    generation: int
    snapshot: SnapshotProgress = SnapshotProgress()
    low: RowPosition | None = None
    high: RowPosition | None = None
    applied: RowPosition | None = None
    evidence: Evidence | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.evidence is Evidence.OPERATOR_OVERRIDE and not self.reason:
            raise InvalidParameterError(
                f'table "{self.table}" was called complete by an operator without a reason',
                hint="Give the reason; it is kept with the job.",
            )

    @property
    def is_complete(self) -> bool:
        """There is evidence of completeness."""
        return self.evidence is not None
