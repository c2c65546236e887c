"""The state of a job with event time between batches: one Delta table per operator.

A batch reads its pin's version and ends in one fenced commit of added and removed files, so that a
repeated batch sees the same rows and an abandoned one can be undone. A row is dead once the
watermark reaches its `keep` column; a file goes once all its rows are dead or a batch has rewritten
the rest.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.adapters.delta.entries import added_files
from joins.adapters.delta.log import INTERNAL_TABLE_PROPERTIES, DeltaLog, FileActions, create_table
from joins.kernels.probe.files import StagedFile
from joins.kernels.table_path import TablePath
from joins.plan.errors import CheckpointError

AFTER = "sluice.after"
_LOOK_BACK = 1_000  # entries; between two batches there are one or two


@dataclass(frozen=True, slots=True)
class StateColumns:
    """Integer columns of a state table, never NULL: `bucket` is the operator's part.

    A row has something to do when `due` (milliseconds), and is needed until `keep`.
    """

    due: str
    keep: str
    bucket: str


@dataclass(frozen=True, slots=True)
class StateFile:
    """A data file of one bucket; `path` is relative to the table's root."""

    path: str
    rows: int
    size_bytes: int
    min_due: int
    max_due: int
    max_keep: int
    bucket: int

    def has_due(self, after: int, upto: int) -> bool:
        return self.min_due <= upto and self.max_due > after


@dataclass(frozen=True, slots=True)
class StateChange:
    """The state changes of a batch; `after` is the next batch's starting value."""

    added: Sequence[StagedFile] = ()
    removed: Sequence[str] = ()
    after: Mapping[str, Any] = field(default_factory=dict)


class StateLog:
    """The state of one operator of one job; for one thread, except its `log`."""

    def __init__(self, log: DeltaLog, columns: StateColumns) -> None:
        self.log = log
        self._columns = columns
        self._files: tuple[int, tuple[StateFile, ...]] | None = None
        self._dues: dict[str, tuple[int, int | None]] = {}

    @staticmethod
    def create(path: TablePath, schema: pa.Schema) -> None:
        create_table(path, schema, properties=INTERNAL_TABLE_PROPERTIES)

    def version(self) -> int:
        return self.log.version()

    def files(self, version: int) -> tuple[StateFile, ...]:
        """The files of `version`, sorted by name."""
        if self._files is None or self._files[0] != version:
            files = self._followed(version)
            if files is None:
                files = map(self._described, self.log.files.described_at(version))
            self._files = version, tuple(sorted(files, key=lambda file: file.path))
            known = {file.path for file in self._files[1]}
            self._dues = {path: due for path, due in self._dues.items() if path in known}
        return self._files[1]

    def _followed(self, version: int) -> Iterable[StateFile] | None:
        """The files of `version` by its entry, if that of the version before is known."""
        if self._files is None or self._files[0] != version - 1:
            return None
        entry = self.log.versions.entries.find(version)
        if entry is None:
            return None
        files = {file.path: file for file in self._files[1]}
        for removed in (action["remove"] for action in entry if "remove" in action):
            files.pop(removed["path"], None)
        for added in added_files(entry):
            stats = json.loads(added["stats"])
            bounds = {"min": stats["minValues"], "max": stats["maxValues"]}
            rows = {"num_records": stats["numRecords"], "size_bytes": added["size"]}
            files[added["path"]] = self._described({"path": added["path"], **rows, **bounds})
        return files.values()

    def _described(self, action: Mapping[str, Any]) -> StateFile:
        low, high, columns = action.get("min") or {}, action.get("max") or {}, self._columns
        try:
            return StateFile(
                path=action["path"],
                rows=int(action["num_records"]),
                size_bytes=int(action["size_bytes"]),
                min_due=int(low[columns.due]),
                max_due=int(high[columns.due]),
                max_keep=int(high[columns.keep]),
                bucket=int(low[columns.bucket]),
            )
        except (KeyError, TypeError) as exc:
            raise CheckpointError(
                f'file "{action["path"]}" of state "{self.log.path}" has no bounds of its times',
                hint="The table was changed from outside; restore it, or submit the job again.",
            ) from exc

    def newest_files(self) -> tuple[StateFile, ...]:
        return self.files(self.version())

    def next_due(self, after: int) -> int | None:
        """Exact due time of the next row after `after`, None if no row waits.

        Reads the column of files whose range contains `after`, once per `after`.
        """
        dues = (self._next_due(file, after) for file in self.newest_files())
        return min((due for due in dues if due is not None), default=None)

    def _next_due(self, file: StateFile, after: int) -> int | None:
        if file.max_due <= after:
            return None
        if file.min_due > after:
            return file.min_due
        known = self._dues.get(file.path)
        if known is None or known[0] != after:
            self._dues[file.path] = known = after, self._read_next_due(file, after)
        return known[1]

    def _read_next_due(self, file: StateFile, after: int) -> int | None:
        (table,) = self.log.files.read_files([self.log.path / file.path], [self._columns.due])
        dues: npt.NDArray[np.int64] = table.column(0).to_numpy()
        later = dues[dues > after]
        return int(later.min()) if len(later) else None

    # Commits

    def commit(self, batch: int, epoch: int, change: StateChange) -> int:
        """Commit the state changes of `batch` once; returns the version after it."""
        metadata = {"sluice.batch": batch, "sluice.epoch": epoch, AFTER: dict(change.after)}
        files = FileActions(change.added, change.removed, of_version=self._replaced(change))
        return self.log.commit_change(batch, epoch, files, metadata)

    def _replaced(self, change: StateChange) -> int | None:
        """The newest version, where an entry of ours may remove files; delta-rs takes longer."""
        newest = self.log.versions.fresh()
        is_ours = bool(change.removed) and self.log.writer.takes_entries(newest)
        return newest.at if is_ours else None

    def after(self, batch: int) -> Mapping[str, Any]:
        metadata = self.find_after(batch)
        if metadata is None:
            raise CheckpointError(
                f'state "{self.log.path}" has no commit of batch {batch}, which is committed',
                hint="The table was changed from outside; restore it, or submit the job again.",
            )
        return metadata

    def find_after(self, batch: int) -> Mapping[str, Any] | None:
        metadata = self.log.batches.batch_metadata(batch)
        return None if metadata is None or AFTER not in metadata else dict(metadata[AFTER])

    def newest_after(self) -> Mapping[str, Any] | None:
        metadata = self._newest_metadata()
        return None if metadata is None else dict(metadata[AFTER])

    def _newest_metadata(self) -> Mapping[str, Any] | None:
        newest = self.version()
        for version in range(
            newest, max(self.log.versions.oldest_entry(), newest - _LOOK_BACK) - 1, -1
        ):
            metadata = self.log.batches.metadata_at(version) or {}
            if AFTER in metadata:
                return metadata
        return None

    def undo(self, batch: int, epoch: int, version: int, after: Mapping[str, Any]) -> None:
        """Restore what the abandoned `batch` has read, from its pin; its number stays used."""
        metadata = self._newest_metadata() or {}
        if metadata.get("sluice.batch") != batch:
            return  # it has not come so far, or is undone
        telling = {"sluice.undone": batch, "sluice.epoch": epoch, AFTER: dict(after)}
        self.log.go_back(version, epoch, telling)
