"""The process of a `jdbc` dimension: reads a table again and again, and sends what has changed.

Each read is compared by key with the one before; docs/reference/contracts.md ("The process of a
`jdbc` dimension") describes the protocol.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.polled.table import (
    OpenTable,
    PolledConfig,
    PolledState,
    is_due,
    is_whole_due,
)
from joins.adapters.process.sessions import SourceProtocol, run_process, run_sessions
from joins.adapters.topic.producer import RecordSink, TopicProducer
from joins.durable.checkpoint import read_document, write_document
from joins.durable.codec import as_json
from joins.durable.dead_rows import SUFFIX, DeadRows
from joins.kernels.changelog.comparison import hashes_of
from joins.kernels.changelog.envelope import RECORDS_SCHEMA, Envelopes, now_ms
from joins.kernels.changelog.row_changes import source_block
from joins.kernels.expressions.casts import whole_batch
from joins.kernels.index.hash_table import Hashes
from joins.kernels.json.encode import encode_objects
from joins.kernels.local_files import sync
from joins.plan.errors import SnapshotNeededError, SourceError, SourceUnavailableError
from joins.plan.types import TypeName
from watermark.freshness import Proof

_LONGEST_PAUSE_S = 1.0
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (of wire columns)
_HASH = ""  # the column of hashes beside those of the key
_KEYS, _CHANGES = ".keys.arrow", ".changes.arrow"


@dataclass(frozen=True, slots=True)
class Image:
    """The keys of a table's rows by one read, as wire columns, and a hash of each row."""

    keys: pa.RecordBatch
    hashes: Hashes

    @staticmethod
    def of(parts: list["Image"]) -> "Image | None":
        if not parts:
            return None
        keys = whole_batch([part.keys for part in parts])
        return Image(keys, np.concatenate([part.hashes for part in parts]))

    def only(self, kept: np.ndarray) -> "Image":
        return Image(self.keys.filter(pa.array(kept)), self.hashes[kept])

    def write(self, path: Path) -> None:
        batch = self.keys.append_column(_HASH, pa.array(self.hashes))
        with _written(path, batch.schema) as writer:
            writer.write_batch(batch)

    @staticmethod
    def read(path: Path) -> "Image | None":
        if not path.exists():
            return None
        with pa.memory_map(str(path)) as file:
            batch = whole_batch(list(pa.ipc.open_stream(file)))
        return Image(batch.drop_columns([_HASH]), batch.column(_HASH).to_numpy())


@contextmanager
def _written(path: Path, schema: pa.Schema) -> Iterator[pa.ipc.RecordBatchStreamWriter]:
    """A file of record batches, which is durable and has its name once the block has ended."""
    aside = path.with_name(f"{path.name}.part")
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with aside.open("wb") as file:
        with pa.ipc.new_stream(file, schema, options=options) as writer:
            yield writer
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    sync(path.parent)


class _Comparison:
    """Compares the rows of one read, batch by batch, with the image of the read before."""

    def __init__(self, config: PolledConfig, before: Image | None) -> None:
        self._key, self._column = config.primary_key, config.column
        self._before = before
        self._keys = None if before is None else encode_objects(before.keys)
        self._met = np.zeros(0 if before is None else len(before.hashes), np.bool_)
        self._parts: list[Image] = []
        self._greatest: int | str | None = None

    def changed(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.StringArray]:
        """The rows that are new or different, with their operations."""
        keys = rows.select(list(self._key))
        hashes = hashes_of(pa.Table.from_batches([rows]), rows.schema.names)
        self._parts.append(Image(keys, hashes))
        self._note_greatest(rows)
        if self._before is None or self._keys is None:
            return rows, pa.repeat(pa.scalar("c"), rows.num_rows)
        at = pc.index_in(encode_objects(keys), value_set=self._keys)
        there = at.is_valid().to_numpy(zero_copy_only=False)
        places = pc.fill_null(at, 0).to_numpy(zero_copy_only=False)
        self._met[places[there]] = True
        kept = pa.array(~there | (self._before.hashes[places] != hashes))
        return rows.filter(kept), pc.if_else(at.is_valid(), "u", "c").filter(kept)

    def gone(self) -> pa.RecordBatch | None:
        """After a read of all rows: the keys that it did not have."""
        return None if self._before is None else self._before.only(~self._met).keys

    def after(self, *, is_whole: bool) -> Image | None:
        """The image of this read; SourceError if two of its rows have one key."""
        read = Image.of(self._parts)
        if read is not None:
            texts = encode_objects(read.keys)
            if pc.count_distinct(texts).as_py() < len(texts):
                counts = pc.value_counts(texts)
                twice = counts.filter(pc.greater(counts.field("counts"), 1))[0].as_py()
                raise SourceError(
                    f"two rows of the table have the key {twice['values']}",
                    hint="Declare a PRIMARY KEY whose columns tell all rows apart.",
                )
        rest = [] if is_whole or self._before is None else [self._before.only(~self._met)]
        return Image.of([*rest, *([] if read is None else [read])])

    def _note_greatest(self, rows: pa.RecordBatch) -> None:
        newest = None if self._column is None else pc.max(rows.column(self._column)).as_py()
        if newest is not None and (self._greatest is None or newest > self._greatest):
            self._greatest = newest

    def greatest(self, kind: TypeName | None) -> str | None:
        """The greatest value of the column that grows, as the database writes it."""
        value = self._greatest
        if isinstance(value, str):  # an instant of MySQL
            return value.replace("T", " ").removesuffix("Z")
        if value is None or kind not in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
            return None if value is None else str(value)
        return str(_EPOCH + timedelta(microseconds=value))


class _Changes:
    """Encodes the changes of one read into a file; the first read is the copy."""

    def __init__(
        self,
        config: PolledConfig,
        dead: DeadRows,
        file: pa.ipc.RecordBatchStreamWriter,
        state: PolledState,
        at_ms: int,
    ) -> None:
        self._config, self._dead, self._file = config, dead, file
        self._is_copy = state.done == 0
        self._place = state.place(state.done + 1)
        self._source = (state.generation, at_ms)
        self._ordinal = 0

    def write(self, rows: pa.RecordBatch, ops: pa.StringArray) -> None:
        if not self._is_copy:
            self._write(Envelopes(ops, self._block(rows.num_rows), None, rows))
            return
        config = self._config
        for records in self._dead.copied(rows, config.primary_key, self._place, config.partitions):
            self._file.write_batch(records)

    def delete(self, keys: pa.RecordBatch) -> None:
        ops = pa.repeat(pa.scalar("d"), keys.num_rows)
        self._write(Envelopes(ops, self._block(keys.num_rows), keys, None))

    def _block(self, count: int) -> pa.RecordBatch:
        ordinals = np.arange(self._ordinal, self._ordinal + count)
        self._ordinal += count
        return source_block(ordinals, self._place, self._source)

    def _write(self, changes: Envelopes) -> None:
        config = self._config
        for records in self._dead.changed(changes, config.primary_key, config.partitions):
            self._file.write_batch(records)


def _opened(config: PolledConfig) -> AbstractContextManager[OpenTable]:
    """The table as it is declared; SourceUnavailableError, or SourceError if it does not fit."""
    if config.captured is None:
        from joins.adapters.polled.postgres import opened_postgres  # its client is large

        return opened_postgres(config.connection, config.fields, config.primary_key)
    from joins.adapters.polled.mysql import opened_mysql  # compiles what reads its rows

    return opened_mysql(config.connection, config.captured)


class PolledSession:
    """Reads the table from the stored state on until it is stopped or cannot continue.

    A row that no message of the topic can hold is left out.
    """

    def __init__(self, config: PolledConfig, protocol: SourceProtocol) -> None:
        self._config = config
        self._protocol = protocol
        self.state, self._image = self._begin(read_document(config.state_file, PolledState))
        self._dead: DeadRows | None = None
        self._is_marked = False
        self._records = 0

    def run(self, producer: RecordSink) -> None:
        """Copy the table, then read it again and again until the protocol stops.

        SourceUnavailableError: a new session may succeed. SourceError: the table cannot be read as
        declared.
        """
        self._tell("streaming")
        while not self._protocol.stopped.is_set():
            if not self.step(producer):
                self._tell("progress", paced=True)
                self._protocol.stopped.wait(min(self._config.refresh_ms / 1000, _LONGEST_PAUSE_S))

    def step(self, producer: RecordSink) -> bool:
        """Send a read's changes or the watermark, or read; False if there is nothing to do."""
        if self.state.done > self.state.sent:
            self._send(producer)
        elif self.state.sent and not self._is_marked:
            self._write_watermark(producer)
        elif is_due(self._config, self.state):
            self.read(producer)
        else:
            return False
        return True

    def _begin(self, kept: PolledState | None) -> tuple[PolledState, Image | None]:
        """The stored state if the files beside it belong to it; else a new copy begins.

        On another machine, or without them, what was sent is not known row by row.
        """
        if kept is not None and kept.needed is None:
            # without rows it has written no file; one that is there is of a read that was cut off
            image = Image.read(self._file(kept, kept.done, _KEYS)) if kept.rows else None
            is_whole = kept.done == kept.sent or self._file(kept, kept.done, _CHANGES).exists()
            if is_whole and (image is not None or kept.rows == 0):
                return kept, image
        state = PolledState(generation=1 if kept is None else kept.generation + 1)
        write_document(self._config.state_file, state)
        return state, None

    def _file(self, state: PolledState, read: int, suffix: str) -> Path:
        return self._config.state_file.with_suffix(f".{state.generation}-{read}{suffix}")

    def _keep(self, state: PolledState) -> None:
        write_document(self._config.state_file, state)
        self.state = state

    # A read
    # -----------------------------------------------------------------------------------------

    def read(self, producer: RecordSink) -> None:
        """Read the table, and keep its changes in a file; nothing of a failed read is kept."""
        config, state = self._config, self.state
        assert state.done == state.sent, "what an earlier read has shown is sent first"
        is_whole, started_ms = is_whole_due(config, state), now_ms()
        since = None if is_whole else (str(config.column), str(state.greatest))
        comparison = _Comparison(config, self._image)
        read = state.done + 1
        with _written(self._file(state, read, _CHANGES), RECORDS_SCHEMA) as changes:
            writer = _Changes(config, self._dead_rows(producer), changes, state, started_ms)
            with _opened(config) as table:
                clock_ms = table.clock_ms()
                table.read(since, lambda rows: writer.write(*comparison.changed(rows)))
            gone = comparison.gone() if is_whole else None
            if gone is not None:
                writer.delete(gone)
        image = comparison.after(is_whole=is_whole)
        if image is not None:
            image.write(self._file(state, read, _KEYS))
        kind = next((f.type.name for f in config.fields if f.name == config.column), None)
        self._image = image
        self._keep(
            replace(
                state,
                done=read,
                rows=0 if image is None else len(image.hashes),
                started_ms=started_ms,
                whole_ms=started_ms if is_whole else state.whole_ms,
                clock_ms=clock_ms if is_whole else state.clock_ms,
                greatest=comparison.greatest(kind) or (None if is_whole else state.greatest),
            )
        )

    def _send(self, producer: RecordSink) -> None:
        """Send a read's changes, the same ones after each start, then what the read proves."""
        state = self.state
        path = self._file(state, state.done, _CHANGES)
        with path.open("rb") as file, pa.ipc.open_stream(file) as changes:
            for records in changes:
                producer.send(records)
                self._records += records.num_rows
                self._tell("progress", paced=True)
                if self._protocol.stopped.is_set():
                    return
        self._keep(replace(state, sent=state.done))
        self._remove_rest()
        if self._is_marked:
            self._prove()
        self._tell("progress")

    def _write_watermark(self, producer: RecordSink) -> None:
        """Runs after each start; a repeated watermark record has no effect."""
        state = self.state
        written = producer.watermark(state.place(1), state.generation)
        self._protocol.tell_watermark(state.generation, written)
        self._is_marked = True
        self._prove()

    def _prove(self) -> None:
        """All that the table had when the newest read of all rows began is sent.

        A column that grows does not show that nothing else has changed.
        """
        state = self.state
        position = {"version": state.sent}
        self._protocol.tell_proof(Proof(state.whole_ms, position, source_ms=state.clock_ms))

    def _remove_rest(self) -> None:
        state_file, kept = self._config.state_file, self._file(self.state, self.state.sent, _KEYS)
        for path in state_file.parent.glob(f"{state_file.stem}.*-*.*.arrow*"):
            if path != kept:
                path.unlink(missing_ok=True)

    def _dead_rows(self, producer: RecordSink) -> DeadRows:
        if self._dead is None:
            file = self._config.state_file.with_suffix(SUFFIX)
            self._dead = DeadRows(file, self.state.generation, producer.message_bytes())
        return self._dead

    def _tell(self, event: str, *, paced: bool = False) -> None:
        if not self._protocol.is_due(paced=paced):
            return
        state = self.state
        place = state.place(state.sent)
        self._protocol.tell(
            event,
            {
                "state": as_json(state),
                "position": {"epoch": place.epoch, "file": place.file, "pos": place.pos},
                "records": self._records,
                "source_ts_ms": state.started_ms if state.sent else 0,
            },
        )


def run(config: PolledConfig, protocol: SourceProtocol) -> int:
    retried = (SnapshotNeededError, SourceUnavailableError)
    return run_sessions(protocol, lambda: _run_session(config, protocol), retried)


def _run_session(config: PolledConfig, protocol: SourceProtocol) -> None:
    server = config.connection.server
    with closing(TopicProducer(config.kafka, config.partitions, server)) as producer:
        PolledSession(config, protocol).run(producer)


def main() -> int:
    return run_process(SourceProtocol(), PolledConfig, run)


if __name__ == "__main__":
    sys.exit(main())
