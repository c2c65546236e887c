"""Reads a source of records or files once more, by the rules of its copy, to compare both.

The sessions of a copy run here without the runner: their records go to a file, their state to a
directory that is removed afterwards. The newest record of each key is the row that the copy has.
"""

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.files.feed import FileFeedSession
from joins.adapters.files.listing import FileFeedConfig, FileStamp
from joins.adapters.process.sessions import SourceProtocol
from joins.adapters.topic.feed import TopicFeedSession
from joins.adapters.topic.feed_state import (
    CopiedHistory,
    Decisions,
    TopicFeedConfig,
    read_decisions,
    write_decisions,
)
from joins.kernels.changelog.changes import GENERATION, numbers
from joins.kernels.changelog.comparison import Place, hashes_of
from joins.kernels.changelog.envelope import BinlogPosition, CapturedColumn, decode
from joins.kernels.expressions.casts import Mask, mask_of
from joins.kernels.json.wire import declared_encoding
from joins.plan.errors import VerificationError
from joins.plan.plan import Field

_EVERYTHING = 1 << 62  # beyond every offset
_MOST_BYTES = 1 << 40  # rows that the copy left out are excluded by their keys
_LOOKS = 3  # at the ends, while records come
_NEVER_S = 1e9
_PAUSE_S = 0.05
_TEXT = "__key"


class SilentProtocol(SourceProtocol):
    """Of sessions that report to no runner."""

    def tell(self, event: str, value: Mapping[str, Any]) -> None:
        """Drop the event."""


class RecordFile:
    """The records of a copy in a file, and which of them are rows of its newest generation."""

    def __init__(
        self,
        path: Path,
        fields: tuple[Field, ...],
        primary_key: tuple[str, ...],
        rows_per_s: int | None = None,
    ) -> None:
        self._path = path
        self._rows_per_s = rows_per_s
        self._key = list(primary_key)
        self._columns = tuple(
            CapturedColumn(f.name, f.type, declared_encoding(f.type)) for f in fields
        )
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        self._count = 0
        self._orders: list[np.ndarray] = []  # key, generation, offset, deleted

    def message_bytes(self) -> int:
        return _MOST_BYTES

    def send(self, records: pa.RecordBatch) -> None:
        if not records.num_rows:
            return
        began_s = time.monotonic()
        offsets = np.arange(self._count, self._count + records.num_rows)
        self._count += records.num_rows
        numbered = records.append_column("offset", pa.array(offsets))
        rows = decode(numbered, self._columns, topic="the source").batch
        table = pa.Table.from_batches([rows])
        key = hashes_of(table, self._key)
        deleted = mask_of(pc.equal(rows.column("_op"), "d"))
        place = (numbers(table, GENERATION), numbers(table, "_pos"), deleted.astype(np.int64))
        self._orders.append(np.column_stack([key.view(np.int64), *place]))
        texts = records.column("key").cast(pa.string())
        kept = rows.append_column(_TEXT, texts)
        if self._writer is None:
            self._writer = pa.ipc.new_file(str(self._path), kept.schema)
        self._writer.write_batch(kept)
        if self._rows_per_s is not None:
            due_s = began_s + records.num_rows / self._rows_per_s
            time.sleep(max(0.0, due_s - time.monotonic()))

    def watermark(self, high: BinlogPosition, generation: int) -> list[tuple[int, int]]:
        return []

    def newest(self, generation: int, ends: Mapping[int, int] | None) -> "RowsOfCopy":
        """The rows of `generation`, without records of a topic that are behind `ends`."""
        if self._writer is not None:
            self._writer.close()
        order = np.concatenate([np.zeros((0, 4), np.int64), *self._orders])
        known = np.ones(len(order), np.bool_)
        if ends is not None and len(order):
            known = self._before(ends)
        at = np.flatnonzero(known)
        key, generations, offset, deleted = order[at].T
        places = np.lexsort((at, offset, generations, key))
        is_last = np.ones(len(places), np.bool_)
        is_last[:-1] = key[places][1:] != key[places][:-1]
        chosen = places[is_last]
        is_row = (generations[chosen] == generation) & (deleted[chosen] == 0)
        rows = np.zeros(self._count, np.bool_)
        rows[at[chosen[is_row]]] = True
        return RowsOfCopy(self._path, rows)

    def _before(self, ends: Mapping[int, int]) -> Mask:
        parts = []
        for table in _tables(self._path):
            offsets, partitions = numbers(table, "_pos"), numbers(table, "_partition")
            last = np.array([ends.get(int(p), 0) for p in partitions], np.int64)
            parts.append((numbers(table, "_row") < 0) | (offsets < last))  # files come first
        return np.concatenate(parts)


class RowsOfCopy:
    """Rows of a `RecordFile`, marked by their numbers."""

    def __init__(self, path: Path, marked: Mask) -> None:
        self._path = path
        self._marked = marked

    def tables(self) -> Iterator[pa.Table]:
        first = 0
        for table in _tables(self._path) if len(self._marked) else ():
            yield table.filter(pa.array(self._marked[first : first + table.num_rows]))
            first += table.num_rows


def _tables(path: Path) -> Iterator[pa.Table]:
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        for number in range(reader.num_record_batches):
            yield pa.Table.from_batches([reader.get_batch(number)])


class SecondCopy:
    """What a source has, read as its copy was; one chunk.

    Attributes:
        ends: partition → next offset of a topic; None of files.
    """

    is_repeatable = True

    def __init__(
        self,
        rows: RowsOfCopy,
        epoch: int,
        position: Mapping[str, Any],
        ends: Mapping[int, int] | None = None,
    ) -> None:
        self._rows = rows
        self._position = position
        self.ends = ends
        self.low: Place = (epoch, 0, _EVERYTHING)
        self.left_out = 0

    def chunks(self, rows_each: int) -> list[None]:
        return [None]

    def rows(self, chunk: None, without: Collection[str] = ()) -> Iterator[pa.Table]:
        """Rows whose keys, as JSON, are not in `without`."""
        excluded = pa.array(list(without), pa.string())
        for table in self._rows.tables():
            if len(excluded):
                kept = pc.invert(pc.is_in(table.column(_TEXT), value_set=excluded))
                self.left_out += table.num_rows - (pc.sum(kept).as_py() or 0)
                table = table.filter(kept)
            if table.num_rows:
                yield table

    def high(self) -> tuple[Place, Mapping[str, Any]]:
        return self.low, self._position

    def keys_in(self, keys: pa.Table, chunk: None) -> Mask | None:
        return None

    def counted(self) -> pc.Expression | None:
        """Which records of a changelog are before the topic's ends; None if all are."""
        if self.ends is None:
            return None
        behind = pc.scalar(False)
        for partition, end in self.ends.items():
            behind |= (pc.field("_partition") == partition) & (pc.field("_pos") >= end)
        return (pc.field("_row") < 0) | ~behind  # rows of files are before the topic


def read_files(
    config: FileFeedConfig,
    directory: Path,
    epoch: int,
    copied: tuple[FileStamp, ...],
    rows_per_s: int | None = None,
) -> SecondCopy:
    """The rows of the files; VerificationError if they are not those that were copied."""
    config = replace(config, state_file=directory / "state")
    records = RecordFile(directory / "rows.arrow", config.fields, config.primary_key, rows_per_s)
    session = FileFeedSession(config, SilentProtocol())
    if session.state.files != copied:
        raise VerificationError(
            f'files at "{config.path}" have changed since they were copied',
            hint="Files are copied once; submit the job again to read the new ones.",
        )
    session.copy(records)
    rows = records.newest(session.state.generation, None)
    return SecondCopy(rows, epoch, {"files": len(copied)})


def read_topic(
    config: TopicFeedConfig,
    directory: Path,
    epoch: int,
    proof_s: float,
    rows_per_s: int | None = None,
) -> SecondCopy:
    """The rows of the topic up to its present ends, behind those of its history.

    VerificationError if its records do not prove a whole table, as some were removed, or what has
    proven it before is gone.
    """
    source = config.source
    skips = tuple(d for d in read_decisions(config.decisions_file).all if d.place is not None)
    config = replace(
        config,
        source=replace(source, kafka=source.kafka.unreported()),
        state_file=directory / "state",
        decisions_file=directory / "decisions",
        failpoints="",
        freshness_s=_NEVER_S,
    )
    # records are left out as in the copy; that a generation is whole was said of another read
    write_decisions(config.decisions_file, Decisions(skips))
    records = RecordFile(directory / "rows.arrow", config.fields, config.primary_key, rows_per_s)
    history = None
    if source.history is not None:
        files = FileFeedSession(config.files, SilentProtocol())
        files.copy(records)
        history = CopiedHistory(files.state.generation, files.state.newest_ms)
    session = TopicFeedSession(config, SilentProtocol(), history)
    try:
        _require_all(session, config)
        ends, generation = _read(session, records)
        _require_complete(session, records, config, proof_s)
        if session.generation != generation:
            raise VerificationError(
                f'a new snapshot has begun in topic "{source.kafka.topic}" while it was read',
                hint="Verify the table again.",
            )
    finally:
        session.close()
    offsets = {str(partition): end for partition, end in sorted(ends.items())}
    rows = records.newest(generation, ends)
    return SecondCopy(rows, epoch, {"offsets": offsets}, ends)


def _read(session: TopicFeedSession, records: RecordFile) -> tuple[Mapping[int, int], int]:
    """Ends up to which everything is read, and the generation there.

    Compaction may remove a record once a later one of its key is there: so the ends are looked up
    when nearly all is read.
    """
    ends: Mapping[int, int] = {}
    for _ in range(_LOOKS):
        there = session.ends()
        if there == ends:
            break
        ends = there
        while not session.has_sent(ends):
            if not session.step(records):
                time.sleep(_PAUSE_S)
    return ends, session.generation


def _require_all(session: TopicFeedSession, config: TopicFeedConfig) -> None:
    source = config.source
    if source.evidence is None and source.history is None and session.has_lost_records:
        raise VerificationError(
            f'topic "{source.kafka.topic}" has removed records, so it does not have all rows',
            hint="Compact the topic instead (cleanup.policy=compact), or compare the table with "
            "what writes the topic by a query.",
        )


def _require_complete(
    session: TopicFeedSession, records: RecordFile, config: TopicFeedConfig, proof_s: float
) -> None:
    deadline_s = (
        time.monotonic()
        + proof_s
        + (0 if config.source.evidence is None else config.source.evidence.settle_ms / 1000)
    )
    while (missing := session.missing()) is not None:
        if time.monotonic() > deadline_s:
            raise VerificationError(
                f'records of topic "{config.source.kafka.topic}" do not prove a whole table when '
                f"they are read again: {missing}",
                hint="Let the connector take a new snapshot, which is copied, too; then verify "
                "the table again. Or compare it with the database by a query.",
            )
        session.step(records)
        time.sleep(_PAUSE_S)
