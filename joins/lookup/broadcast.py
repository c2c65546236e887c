"""The `broadcast` lookup: all rows of a dimension's version in every worker, made by the driver."""

import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from pyspark import SparkContext
from pyspark.core.broadcast import Broadcast

from joins.adapters.delta.log import DeltaLog
from joins.kernels.changelog.changes import CompactedChanges, Progress, read_changes
from joins.kernels.index.dimension_index import DimensionIndex
from joins.kernels.index.spec import IndexSpec
from joins.lookup.index_source import IndexSource
from joins.plan.errors import DimensionTooLargeError, SinkError

DEFAULT_MAX_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class RowsCopy:
    """The rows of a dimension as a worker gets them; picklable.

    Attributes:
        token: names this broadcast among all of a dimension.
    """

    dimension: str
    token: str
    rows: Broadcast[bytes]

    _made: ClassVar[dict[tuple[str, IndexSpec], tuple[str, DimensionIndex]]] = {}

    def index(self, spec: IndexSpec) -> DimensionIndex:
        """An index in memory of the rows: made once a process, kept until there are newer rows."""
        key = (self.dimension, spec)
        known = self._made.get(key)
        if known is not None and known[0] == self.token:
            return known[1]
        self._made.pop(key, None)  # before the next one is made: two may be too many
        with pa.ipc.open_stream(pa.py_buffer(self.rows.value)) as reader:
            made = DimensionIndex.of_rows(reader.read_all(), spec)
        self._made[key] = (self.token, made)
        return made


class BroadcastRows:
    """The rows of one dimension at the version that was asked for last; one caller at a time.

    Args:
        dimension: its name.
        spec: its primary key and the columns that any role needs.
        changelog: where the rows are.
        max_bytes: of the rows in Arrow; each worker process holds them and their hash tables.
    """

    def __init__(
        self, dimension: str, spec: IndexSpec, changelog: DeltaLog, max_bytes: int
    ) -> None:
        self._dimension = dimension
        self._spec = spec
        self._changelog = changelog
        self._max_bytes = max_bytes
        self._at: tuple[int, CompactedChanges] | None = None
        self._sent: tuple[int, RowsCopy] | None = None
        self._refused: tuple[int, DimensionTooLargeError] | None = None

    def rows(self, version: int) -> pa.Table:
        """The visible rows of `version`.

        Raises:
            DimensionTooLargeError: they are more than workers should hold.
            PinnedVersionExpiredError: the version cannot be read any more.
        """
        if self._refused is not None and self._refused[0] == version:
            raise self._refused[1]
        visible = self._changes(version).visible(self._spec)
        if visible.nbytes > self._max_bytes:
            self._at = None
            self._refused = (version, self._too_large(version, visible))
            raise self._refused[1]
        return visible

    def copy(self, context: SparkContext, version: int) -> RowsCopy:
        """The rows of `version` for the workers; the copies of other versions are given up.

        Raises:
            DimensionTooLargeError, PinnedVersionExpiredError: as `rows`.
        """
        if self._sent is None or self._sent[0] != version:
            rows = self.rows(version)
            self.forget()
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows.schema) as writer:
                writer.write_table(rows)
            sent = context.broadcast(sink.getvalue().to_pybytes())
            self._sent = (version, RowsCopy(self._dimension, uuid.uuid4().hex, sent))
        return self._sent[1]

    def forget(self) -> None:
        """Give up what was sent; the workers that have it drop it with the next copy."""
        if self._sent is not None:
            self._sent[1].rows.destroy()
            self._sent = None

    def _changes(self, version: int) -> CompactedChanges:
        """As of `version`: what is known and the commits since then, else the whole changelog."""
        known, self._at = self._at, None
        changes = None
        if known is not None and known[0] <= version:
            with suppress(SinkError):  # the log does not have those commits one by one any more
                later = self._commits(known[0] + 1, version)
                changes = known[1].followed_by(later, self._spec)
        if changes is None:
            source = IndexSource(self._changelog, None)
            with source.pinned(version):
                batches = source.everything(version, self._spec)
                changes = read_changes(batches, self._spec, Progress())
        self._at = (version, changes)
        return changes

    def _commits(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        for table in self._changelog.read_files(self._changelog.files_added(first, last)):
            yield from table.to_batches()

    def _too_large(self, version: int, rows: pa.Table) -> DimensionTooLargeError:
        return DimensionTooLargeError(
            f'dimension "{self._dimension}" has {rows.num_rows:,} rows of '
            f"{rows.nbytes >> 20} MiB at version {version}, expected at most "
            f"{self._max_bytes >> 20} MiB for 'lookup.strategy' = 'broadcast'",
            hint="Submit the job with 'lookup.strategy' = 'index' or 'shuffle', or raise "
            "SLUICE_LOOKUP_BROADCAST_MAX_MIB if every worker has the memory.",
        )
