"""A captured table as the stream of a job."""

from joins.plan.errors import SourceError
from joins.source.chunk_reader import SourceState
from joins.source.snapshot import SnapshotCoordinator


class TableStreamCoordinator(SnapshotCoordinator):
    """Copies a table once, then follows it: the topic has each row of the copy before its changes.

    The binlog is read from LOW when the copy is complete, so the newest record of a key is its
    newest change, or the row of the copy. The table is never copied again: rows that were deleted
    meanwhile would stay in the output.
    """

    # reads better deep: it is the copy of a table in another order.

    def _run_once(self) -> None:
        if self._has_copied(self._load_state()):
            self._start_process(self._require_state())
            self._follow(self._require_state())

    def _check_reading(self) -> None:
        """Nothing runs beside the copy."""

    def _new_state(self, epoch: int, generation: int) -> SourceState:
        if self.state is not None:
            raise SourceError(
                f'table "{self._table.database}.{self._table.table}" cannot be followed any more: '
                f"{self.copied_because}; a new copy would not delete rows of the output",
                hint="Submit the job again, into another output or an emptied one.",
            )
        return super()._new_state(epoch, generation)
