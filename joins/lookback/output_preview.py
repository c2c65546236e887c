"""The newest rows of a Delta output, each with the batch that wrote it.

A row is shown while the table has it: where its owner has rewritten or deleted rows since, the
table is asked for those of the batch that are left. Commits of other programs are passed over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from joins.adapters.delta.entries import has_log
from joins.adapters.delta.log import DeltaLog, added_files
from joins.durable.app_ids import replay_app_id
from joins.lookback.history import user_metadata
from joins.plan.errors import NotReadableError, SinkError

_BATCH_COLUMN = "_batch"
_MOST_COMMITS = 2_000


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Newest rows of one commit.

    Attributes:
           batch: that has written them; None of a replay of dead letters.
           replay: number of that replay, else None.
           version: of the output, after the commit.
        metadata: the runner's, in the commit: of a batch, its pin and its counts.
           rows: the last ones, in the order of the stream; in the order of the output's columns.
           row_count: how many rows of the commit the table has.
    """

    batch: int | None
    replay: int | None
    version: int
    committed_at_ms: int | None
    metadata: Mapping[str, Any]
    rows: pa.Table
    row_count: int


class OutputPreview:
    """Reads the newest rows of one job's output.

    Args:
        log: the output under the job's app id.
        schema: of the rows, as the job writes them.
        has_own_table: no other INSERT of the job writes to it.
    """

    def __init__(self, log: DeltaLog, schema: pa.Schema, *, has_own_table: bool = True) -> None:
        self._has_own_table = has_own_table
        self._log = log
        self._replays = DeltaLog(log.path, replay_app_id(log.app_id))
        self._schema = pa.schema([item.with_nullable(True) for item in schema])

    def newest(self, rows: int) -> list[WrittenRows]:
        """The newest `rows` rows, by commit, the newest commit first; none before the first batch.

        Raises:
            NotReadableError: what is left of a batch cannot be told from rows of other INSERTs.
            SinkError: the table cannot be read without Spark.
        """
        if not has_log(self._log.path):
            return []
        newest = self._log.version()
        active = {path.name for path in self._log.files.files_at(newest)}
        batches_shown: list[WrittenRows] = []
        for version in range(
            newest, max(self._log.versions.oldest_entry(), newest - _MOST_COMMITS) - 1, -1
        ):
            written = self._written(version, rows, active)
            if written is not None and written.rows.num_rows:
                batches_shown.append(written)
                rows -= written.rows.num_rows
            if rows <= 0:
                break
        return batches_shown

    def _written(self, version: int, most: int, active: set[str]) -> WrittenRows | None:
        entry = self._log.versions.commit_entry(version)
        info: Mapping[str, Any] = next((a["commitInfo"] for a in entry if "commitInfo" in a), {})
        metadata = user_metadata(info)
        batch = self._log.batches.batch_in(entry)
        replay = self._replays.batches.batch_in(entry) if batch is None else None
        added = [action for action in added_files(entry) if action.get("dataChange", True)]
        if not added or (batch is None and replay is None):
            return None
        rows = self._rows_left(added, batch, active)
        return WrittenRows(
            batch=batch,
            replay=replay,
            version=version,
            committed_at_ms=info.get("timestamp"),
            metadata=metadata,
            rows=self._newest_of(rows, most),
            row_count=rows.num_rows,
        )

    def _rows_left(
        self, added: Sequence[Mapping[str, Any]], batch: int | None, active: set[str]
    ) -> pa.Table:
        """What the table still has of a commit."""
        table = self._log.files.table_rows()
        left = [action for action in added if action["path"].rpartition("/")[2] in active]
        untouched = len(left) == len(added) and not table.has_deletion_vectors
        if not untouched and not self._has_own_table:
            raise NotReadableError(
                f'files of delta table "{self._log.path}" were rewritten, and its rows do not tell '
                "which INSERT of the job they are of",
                hint="Read the table itself, or give each INSERT a table of its own.",
            )
        if not untouched and batch is not None and _BATCH_COLUMN in self._schema.names:
            return table.where({_BATCH_COLUMN: batch}, self._schema)
        try:
            parts = list(table.of_files(left))
        except OSError as exc:
            raise SinkError(
                f'a file of delta table "{self._log.path}" is gone: {exc}',
                hint="Restore the file; the table's log still names it.",
            ) from exc
        typed = [part.select(self._schema.names).cast(self._schema) for part in parts]
        return pa.concat_tables([self._schema.empty_table(), *typed])

    def _newest_of(self, rows: pa.Table, most: int) -> pa.Table:
        """The last `most` rows; by partition and offset where the rows have them."""
        places = [(n, "ascending") for n in ("_partition", "_offset") if n in rows.schema.names]
        if len(places) == 2:
            rows = rows.sort_by(places)
        return rows.slice(max(0, rows.num_rows - most))
