"""What keeps the log and the files of one Delta table from growing for ever."""

from collections.abc import Callable

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from joins.adapters.delta.versions import CHECKPOINTS, TableVersions
from joins.adapters.store.delta_tables import store_faults
from joins.plan.errors import SinkError


class TableUpkeep:
    """Checkpoints, and what may go after them; threads may share it.

    Args:
        versions: of the table.
        may_checkpoint: whether the table takes checkpoints that Spark has not written.
    """

    def __init__(self, versions: TableVersions, may_checkpoint: Callable[[], bool]) -> None:
        self._versions = versions
        self._may_checkpoint = may_checkpoint

    def checkpoints(self) -> list[int]:
        return self._versions.entries.checkpoints()

    def make_checkpoint(self, version: int) -> None:
        """Write the Delta checkpoint of `version`, unless Spark alone may."""
        if not self._may_checkpoint():
            return
        try:
            with store_faults(self._versions.path):
                self._versions.load(version).create_checkpoint()
        except DeltaError as exc:
            raise SinkError(
                f'checkpoint {version} of delta table "{self._versions.path}" cannot be written: '
                f"{exc}",
                hint="Check space and permissions of the table's directory.",
            ) from exc

    def remove_log_before(self, version: int) -> int:
        """Remove what the log has of versions before `version`, which must have a checkpoint.

        Returns:
            How many files are gone.
        """
        with self._versions.lock:  # our own commits find the entry that they follow
            return self._versions.entries.remove_before(version)

    def newest_before(self, second: float) -> int:
        """The newest version whose entry was written before `second` of the epoch, -1 for none."""
        return self._versions.entries.newest_before(second)

    def vacuum(self, retention_hours: int) -> int:
        """Remove the files that no version younger than `retention_hours` needs; returns how many.

        For tables whose only writer is the caller.
        """
        with store_faults(self._versions.path):
            return self._vacuum(self._versions.load(), retention_hours)

    def _vacuum(self, table: DeltaTable, retention_hours: int) -> int:
        if not table.vacuum(
            retention_hours, dry_run=True, enforce_retention_duration=False, full=True
        ):
            return 0
        gone = table.vacuum(
            retention_hours,
            dry_run=False,
            enforce_retention_duration=False,
            post_commithook_properties=CHECKPOINTS,
            full=True,
        )
        return len(gone)
