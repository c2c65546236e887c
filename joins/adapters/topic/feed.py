"""The process of a topic's dimension: sends a foreign topic to Sluice's changelog topic.

Two options of the source say when the table is complete; only the last kind may be bounded:

    evidence, no history  by the proof of `watermark.foreign`; a later snapshot is a new generation
    history               at the end offsets found behind the files; evidence only serves freshness
    neither               at the end offsets of the submission, or of a topic created since

In each partition `_done` <= `_read` <= end offset. Records below `_done` are acknowledged or have
no row; those from there up to `_read` wait in `_order` for older ones of other partitions.
"""
# reads better long: what is read, labelled, sent and proven shares one position in the topic.

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from joins.adapters.connect import ConnectOffsets
from joins.adapters.kafka.cluster import KafkaCluster, topic_policy
from joins.adapters.kafka.records import KafkaRecords
from joins.adapters.kafka.stream_cluster import GroupOffsets
from joins.adapters.process.sessions import SourceProtocol, run_process, run_sessions
from joins.adapters.topic.decoding import (
    NoticeTopic,
    decoder_of,
    partitions_of,
    schemas_of,
    warm_up,
)
from joins.adapters.topic.feed_state import (
    CopiedHistory,
    FeedJournal,
    FileCounts,
    Offsets,
    TopicFeedConfig,
    abandon,
    history_state,
    read_decisions,
    read_journal,
    write_journal,
)
from joins.adapters.topic.key_memory import KeyMemory, remove_generation, remove_memory
from joins.adapters.topic.producer import RecordSink, TopicProducer
from joins.adapters.topic.start import find_start, lost_deletions, require_topic
from joins.adapters.topic.times import TopicTimes
from joins.durable.dead_rows import SUFFIX, DeadRows
from joins.durable.failpoints import Failpoints
from joins.kernels.changelog.envelope import PART_BYTES, BinlogPosition, now_ms
from joins.kernels.debezium.changes import ChangeRows, ForeignTable
from joins.kernels.debezium.options import ValueLayout, debezium_options
from joins.kernels.topic.pieces import (
    ChangePiece,
    TimeOrder,
    Window,
    by_partition,
    changelog_records,
    epoch_of,
    newest_change_ms,
    pieces_of,
)
from joins.plan.errors import (
    ForeignRecordError,
    RecordsExpiredError,
    SnapshotNeededError,
    SourceError,
    SourceUnavailableError,
)
from joins.plan.plan import BoundedMode
from joins.plan.stream_topics import StreamTopics
from watermark.foreign import ForeignSnapshot, Missing, SnapshotRules, Waiting
from watermark.foreign_journal import Complete, FeedStep, SnapshotJournal
from watermark.foreign_records import NewSnapshot

_COLUMNS = ("key", "value", "partition", "offset", "timestamp")
_READ_AHEAD = 100_000
_READ_AHEAD_BYTES = 128 << 20
_FIRST_RECORD_BYTES = 10_000  # until a record was read
_DECODED_ROWS = 20_000
_WAIT_S = 0.2
_GATHER_S, _GATHER_RECORDS = 0.03, 1_000  # collects records that arrive one by one
_DESCRIBE_S = 1.0  # partitions are not added more often
_STORE_S = 1.0
_STORE_COMPLETE_S = 5.0  # a sync delays changes, and after a kill little is sent again
_CONNECT_S = 2.0
_NOTICES_S = 0.2
_NOTICES_COMPLETE_S = 1.0  # then a notification can only announce a later snapshot
_READ_AGAIN = (
    "The topic is read again from its beginning, as a new generation, by itself; rows that it "
    "does not have any more come back with the connector's next snapshot."
)


class TopicFeedSession:
    """Follows the topic from the stored journal until it is stopped or cannot continue.

    `history` is what was copied before a topic with a history begins; None behind its beginning. A
    row that no message of the changelog topic can hold is left out.

    While `_answer` is Waiting, the session copies a generation. When it is Complete, the session
    stores that and writes the watermark record; with `_has_watermark` it proves freshness, until
    a later snapshot begins a generation. A restart repeats the watermark record.
    """

    def __init__(
        self,
        config: TopicFeedConfig,
        protocol: SourceProtocol,
        history: CopiedHistory | None = None,
    ) -> None:
        self._config = config
        self._history = history
        self._protocol = protocol
        self._topic = config.source.kafka.topic
        with ExitStack() as clients:
            self._open(clients)
            self._clients = clients.pop_all()

    def _open(self, clients: ExitStack) -> None:
        """Connect, and begin or continue a generation; `clients` closes what is connected."""
        config, source = self._config, self._config.source
        self._journal = read_journal(config.state_file)
        self._decisions = read_decisions(config.decisions_file)
        self._hit = Failpoints(config.failpoints, config.state_file.parent / "failpoints").hit
        self._cluster = clients.enter_context(closing(KafkaCluster(source.kafka, keep_open=True)))
        self._records = clients.enter_context(closing(KafkaRecords(source.kafka)))
        self._group = self._schemas = self._notices = self._connect = None
        if source.kafka.reported_group is not None:
            self._group = clients.enter_context(closing(GroupOffsets(source.kafka)))
        schemas = schemas_of(source)
        if schemas is not None:
            self._schemas = clients.enter_context(closing(schemas))
        self._decoder = decoder_of(source, config.fields, config.primary_key, self._schemas)
        self._partitions = partitions_of(dict(source.value.options))
        self._stored_at_s = self._described_at_s = self._notices_at_s = self._connect_at_s = 0.0
        evidence = source.evidence
        if evidence is not None and evidence.notifications_topic is not None:
            kafka = replace(source.kafka, topic=evidence.notifications_topic)
            read = ("", ()) if self._journal.begins else self._journal.notices
            notices = NoticeTopic(kafka, self._topic, read, self._schemas, self._partitions)
            self._notices = clients.enter_context(closing(notices))
        if evidence is not None and evidence.connect_url and evidence.connector:
            connect = ConnectOffsets(evidence.connect_url, evidence.connector)
            self._connect = clients.enter_context(closing(connect))
        self._connect_error: str | None = None
        times = TopicTimes(config, self._connect, self._schemas)
        self._clock = clients.enter_context(closing(times))
        self._begin()
        self._order = TimeOrder(range(config.partitions))
        self._read = dict(self._done)
        self._record_bytes = _FIRST_RECORD_BYTES
        self._sent = self._source_ts_ms = 0
        self._has_watermark = False
        self._answer = self._snapshot.ask(now_ms(), self._done)

    def close(self) -> None:
        self._clients.close()

    def run(self, producer: RecordSink) -> None:
        """Follow the topic until the protocol stops, or a bounded table is complete.

        SourceUnavailableError: a new session may succeed. SnapshotNeededError: the records cannot
        be followed. ForeignRecordError: an operator may skip the record. SourceError: the topic
        cannot be read as declared.
        """
        event = "streaming"
        while not self._protocol.stopped.is_set():
            begun_at_s, read = time.monotonic(), sum(self._read.values())
            is_idle = not self.step(producer)
            self._report(event, paced=event == "progress")
            event = "progress"
            pause_s = _STORE_COMPLETE_S if isinstance(self._answer, Complete) else _STORE_S
            if time.monotonic() - self._stored_at_s >= pause_s:
                self._store()
            if self._has_watermark and self._config.source.is_bounded:
                self._protocol.tell("ended", {})
                self._protocol.stopped.set()
            elif is_idle:
                self._records.wait(self._name, self._read, _WAIT_S)
            elif sum(self._read.values()) - read < _GATHER_RECORDS:
                left_s = begun_at_s + _GATHER_S - time.monotonic()
                self._protocol.stopped.wait(max(0.0, left_s))
        self._store()

    def step(self, producer: RecordSink) -> bool:
        """Read, send and check the evidence once; False if there is nothing to do now."""
        self._take_evidence()
        time_ms = self._clock.look_up()  # before the ends, which have everything up to then
        ends = self.ends()
        if time_ms is not None:
            self._clock.take_ends(time_ms, ends)
        pieces = self._fetch(ends)
        if pieces:
            self._process(producer, Window(pieces))
            self._report("progress", paced=True)
        for partition in ends:
            if not self._order.held(partition):
                self._done[partition] = self._read[partition]
        self._answer = self._ask()
        if isinstance(self._answer, Complete) and not self._has_watermark:
            self._store()  # before, so that later rows count as changes after a restart, too
            self._report("progress")
            _write_watermark(producer, self._protocol, self.generation)
            self._has_watermark = True
        proof = self._clock.newest_proof(self._done) if self._has_watermark else None
        if proof is not None:
            self._protocol.tell_proof(proof)
        return bool(pieces) or any(self._read[p] < end for p, end in ends.items())

    # What a second read looks at
    # -----------------------------------------------------------------------------------------

    @property
    def has_lost_records(self) -> bool:
        """True if the oldest records of a partition were gone when the topic was first read."""
        return bool(self._snapshot.journal.lost_at_start)

    @property
    def generation(self) -> int:
        return self._snapshot.generation

    def has_sent(self, ends: Mapping[int, int]) -> bool:
        return all(self._done[partition] >= end for partition, end in ends.items())

    def missing(self) -> str | None:
        """What keeps the table from being proven whole; None if it is."""
        return None if isinstance(self._answer, Complete) else self._answer.text

    # Begin or continue a generation
    # -----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        config, journal, is_new = self._config, self._journal, self._journal.begins
        self._description = self._cluster.require(self._topic)
        self._topic_id = self._description.topic_id
        self._name = StreamTopics.one(self._topic, self._topic_id)
        self._check_partitions(len(self._description.partitions))
        begins = self._cluster.beginning_offsets(self._description)
        if not is_new:
            self._check_journal(begins)
        ends = self._find_ends() if is_new else journal.ends or config.source.end_offsets
        self._bounds = dict(ends or ())
        self._rules = self._find_rules(ends)
        self._has_tombstones = self._find_tombstones()
        if is_new:
            snapshot, self._done = self._find_start(begins)
            self._table, counts = None, FileCounts()
            remove_memory(config.state_file, journal.generation)
        else:
            snapshot, self._done = journal.snapshot, dict(journal.position.offsets)
            self._table, counts = journal.table, journal.memory
            remove_generation(config.state_file, journal.generation - 1)  # a kill may have left it
        self._snapshot = ForeignSnapshot(range(config.partitions), self._rules, snapshot)
        self._dead: DeadRows | None = None
        skipped = self._require_skipped
        self._memory = KeyMemory(config, self._rules, self.generation, counts, skipped)
        if is_new:
            begun = {"topic_id": self._topic_id, "ends": ends, "begun_ms": now_ms()}
            self._commit(FeedStep.BEGIN, **begun, needed=None)

    def _find_ends(self) -> Offsets | None:
        """End offsets of a table without connector, or behind a history; None with a connector.

        Ends found at submission are invalid if the topic was recreated or lost records before them.
        """
        source, stored_id = self._config.source, self._journal.position.topic_id
        if source.history is not None:
            return tuple(sorted(self._cluster.end_offsets(self._description).items()))
        if source.evidence is not None:
            return None
        if source.bounded_mode in (BoundedMode.SPECIFIC, BoundedMode.GROUP):
            return source.end_offsets
        ends = self._cluster.end_offsets(self._description)
        is_same = self._topic_id == (source.topic_id or stored_id or self._topic_id)
        if is_same and all(ends[p] >= end for p, end in source.end_offsets):
            return source.end_offsets
        if source.bounded_timestamp_ms is not None:
            ends = self._cluster.offsets_at(self._topic, source.bounded_timestamp_ms)
        return tuple(sorted(ends.items()))

    def _find_rules(self, ends: Offsets | None) -> SnapshotRules:
        source = self._config.source
        is_compacted = topic_policy(self._cluster, self._topic).is_compacted
        if source.evidence is None or source.history is not None:
            rules = SnapshotRules(is_compacted=is_compacted, replaces=False, counts=False)
            return replace(rules, ends=ends, has_end=source.is_bounded)
        return SnapshotRules(
            settle_ms=source.evidence.settle_ms,
            is_compacted=is_compacted,
            opens_when_skipped=source.evidence.opens_when_skipped,
            replaces=source.evidence.replaces,
            counts=source.evidence.notifications_topic is not None
            and source.evidence.replaces
            and self._partitions is None,
        )

    def _find_start(self, begins: dict[int, int]) -> tuple[SnapshotJournal, dict[int, int]]:
        """The first proof of a generation and its start; behind a history no record is missing."""
        history = self._config.source.history
        if history is None:
            return SnapshotJournal.first(self._journal.generation + 1, begins), begins
        assert self._history is not None, "the files are read before the topic begins"
        require_topic(self._config.source, self._topic_id)
        start = find_start(self._cluster, self._topic, history, self._history.newest_ms)
        return SnapshotJournal.first(self._history.generation, {}), start

    def _find_tombstones(self) -> bool:
        """True if tombstones delete rows: not in a topic of several tables, as they name none.

        In an envelope's topic each follows the deletion of its row, unless compaction removed that.
        """
        options = debezium_options(dict(self._config.source.value.options))
        is_one_of_several = options.table is not None and not options.table.is_pattern
        is_flat = options.layout is ValueLayout.FLAT
        return is_flat or self._rules.is_compacted or not is_one_of_several

    def _check_partitions(self, count: int) -> None:
        if count != self._config.partitions:
            raise SourceError(
                f'topic "{self._topic}" has {count} partitions, and had {self._config.partitions} '
                "when the job was submitted: a key may lie in another one now",
                hint="Remove the job and submit it again, best with a topic that the connector has "
                "filled from the start with as many partitions.",
            )

    def _check_journal(self, begins: Mapping[int, int]) -> None:
        """Require that the topic still has all records behind the stored offsets."""
        offsets = self._journal.position.offsets
        self._check_id(self._journal.position.topic_id)
        lost = sorted(p for p, offset in offsets.items() if begins.get(p, 0) > offset)
        if lost:
            raise self._expired(f"partition {lost[0]}")
        since_ms = self._journal.begun_ms if self._config.source.history is None else None
        gone = lost_deletions(self._cluster, self._topic, offsets, since_ms)
        if gone:
            raise SnapshotNeededError(
                f'topic "{self._topic}" may have removed deletions of partition {min(gone)} before '
                "they were read",
                hint=f"{_READ_AGAIN} Let the topic's 'delete.retention.ms' be longer than the job "
                "stands still.",
            )

    def _check_id(self, expected: str) -> None:
        if self._description.topic_id != expected:
            raise SnapshotNeededError(
                f'topic "{self._topic}" has id {self._description.topic_id}, expected {expected}: '
                "it was deleted and created again",
                hint=_READ_AGAIN,
            )

    def _expired(self, where: str) -> SnapshotNeededError:
        return SnapshotNeededError(
            f'topic "{self._topic}" lost records of {where} before they were read',
            hint=f"{_READ_AGAIN} Raise the topic's retention, so that it does not happen again.",
        )

    def _require_skipped(self, record: tuple[int, int], fault: str, hint: str) -> None:
        """ForeignRecordError, unless an operator has decided to leave out this record."""
        if record not in self._decisions.skipped(self._topic_id):
            raise ForeignRecordError(
                f'record {record[0]}/{record[1]} of topic "{self._topic}" {fault}',
                hint=hint,
                place=record,
            )

    # Read and decode
    # -----------------------------------------------------------------------------------------

    def ends(self) -> dict[int, int]:
        """Next offsets to which there are records; not beyond the bounds of a bounded table."""
        if time.monotonic() >= self._described_at_s + _DESCRIBE_S:
            self._described_at_s = time.monotonic()
            self._description = self._cluster.require(self._topic)
            self._check_id(self._topic_id)
        ends = self._cluster.end_offsets(self._description)
        self._check_partitions(len(ends))
        if self._config.source.is_bounded:
            ends = {p: min(end, max(self._bounds[p], self._read[p])) for p, end in ends.items()}
        for partition, end in ends.items():
            if end < self._read[partition]:
                raise SnapshotNeededError(
                    f'partition {partition} of topic "{self._topic}" ends at {end}, and was read '
                    f"up to {self._read[partition]}: the topic is another one",
                    hint=_READ_AGAIN,
                )
        return ends

    def _fetch(self, ends: Mapping[int, int]) -> list[ChangePiece]:
        """Read partitions with few held records; pieces that no older record can precede."""
        most = min(_READ_AHEAD, _READ_AHEAD_BYTES // self._record_bytes)
        most = max(1, most // self._config.partitions)
        ranges = {
            p: (self._read[p], min(end, self._read[p] + most))
            for p, end in ends.items()
            if self._read[p] < end and self._order.held(p) < most
        }
        if ranges:
            try:
                for batch in self._in_parts(self._records.batches(self._name, ranges, _COLUMNS)):
                    self._decode(batch)
            except RecordsExpiredError as exc:
                raise self._expired("a partition") from exc
            self._read |= {p: end for p, (_, end) in ranges.items()}
        return self._order.take([p for p, end in ends.items() if self._read[p] >= end])

    def _in_parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches joined and cut for decoding: many partitions may have a few records each."""
        waiting: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            self._record_bytes = 1 + batch.nbytes // batch.num_rows
            most = max(1, min(_DECODED_ROWS, PART_BYTES // self._record_bytes))
            for first in range(0, batch.num_rows, most):
                part = batch.slice(first, most)
                waiting.append(part)
                rows, size = rows + part.num_rows, size + part.nbytes
                if rows >= _DECODED_ROWS or size >= PART_BYTES:
                    yield pa.concat_batches(waiting)
                    waiting, rows, size = [], 0, 0
        if waiting:
            yield pa.concat_batches(waiting)

    def _decode(self, records: pa.RecordBatch) -> None:
        changes = self._decoder.decode(records)
        for bad in changes.bad:
            partition, offset = (
                records.column(n)[bad.row].as_py() for n in ("partition", "offset")
            )
            self._require_skipped(
                (partition, offset),
                f"cannot be taken: {bad.reason}",
                "Correct the declaration or the format's options in a new job; or acknowledge it, "
                "and the record is left out.",
            )
        self._check_table(records, changes)
        for piece in pieces_of(
            records,
            changes,
            has_partitions=self._partitions is not None,
            has_tombstones=self._has_tombstones,
        ):
            self._order.add(piece)
            self._read[piece.partition] = int(piece.offsets[-1]) + 1

    def _check_table(self, records: pa.RecordBatch, changes: ChangeRows) -> None:
        """Require that all records are of one table, and with evidence of one connector."""
        source = self._config.source
        options = f"{source.value.name}."
        for table in changes.tables():
            if self._partitions is not None:
                table = replace(table, schema=self._partitions.schema, table=self._partitions.table)
            first, fault = self._table or table, None
            names = {each.connector for each in (table, first) if each.connector is not None}
            if replace(table, connector=first.connector) != first:
                fault = f'table "{table.name}" beside those of "{first.name}"'
                hint = (
                    f"Name the table in a new job: '{options}source.table', and if need be "
                    f"'{options}source.schema' or '{options}source.db'. If they are partitions of "
                    f"one table, '{options}source.table-pattern' reads all of them."
                )
            elif len(names) > 1 and source.evidence is not None:
                fault = f'connector "{table.connector}" beside those of "{first.connector}"'
                hint = (
                    "Let each connector write a separate topic: what shows that the rows of one "
                    "are whole shows nothing of those of another."
                )
            if fault is not None:
                offset, partition = (records.column(n)[0] for n in ("offset", "partition"))
                raise SourceError(
                    f'topic "{self._topic}" has records of {fault}, among those from offset '
                    f"{offset} of partition {partition} on",
                    hint=hint,
                )
            if self._table is None or (first.connector is None and names):
                self._identify(table)

    def _identify(self, table: ForeignTable) -> None:
        """Note the records' table; notifications were matched by the topic's name before."""
        self._table = table
        if self._notices is not None:
            self._notices.begin_again()
            self._notices_at_s = 0.0
            if table.connector is not None:  # others may have matched: "a" and "a.b" of "a.b.c.d"
                self._snapshot.forget_notices()

    # Label with generations and send
    # -----------------------------------------------------------------------------------------

    def _process(self, producer: RecordSink, window: Window) -> None:
        """Label records with their generation and send them, up to one that must be read again.

        A record may begin a later snapshot. If none of its records were taken before, it begins at
        once; otherwise all before it are sent first, and the topic is read again from its start.
        """
        snapshot, labels, at = self._snapshot, [], 0
        new: NewSnapshot | None = None
        while at < len(window) and (new is None or not new.must_read_again):
            older = window.older(
                at,
                changes_from_ms=snapshot.journal.changes_from_ms,
                rows_after_ms=snapshot.journal.rows_after_ms,
                position=snapshot.journal.log_position,
                truncated_at=snapshot.journal.facts.truncated_at,
            )
            end, new = self._generation_end(window, at, older)
            labels.append(self.generation - older[: end - at].astype(np.int64))
            unmarked_ms = window.newest_without_mark(at, end)
            if unmarked_ms is not None:
                snapshot.take_unmarked(unmarked_ms)
            if new is not None and not new.must_read_again:
                self._begin_generation(new)
            at = end
        self._send(producer, window, np.concatenate(labels))
        if new is not None and new.must_read_again:
            self._begin_generation(new)

    def _generation_end(
        self, window: Window, first: int, older: np.ndarray
    ) -> tuple[int, NewSnapshot | None]:
        """Up to where records belong to this generation, and the snapshot that begins there."""
        for at, run in window.runs(first, older):
            new = self._snapshot.take(run)
            if new is not None:
                return (at if run.first_ms >= new.at_ms else window.place_at(at, new.at_ms)), new
        return len(window), None

    def _begin_generation(self, new: NewSnapshot) -> None:
        """Begin a later snapshot at its start, in one step of the journal.

        Its records that were already sent in the previous generation are read again.
        """
        back: dict[int, int] = {}
        if new.must_read_again:
            first = self._cluster.offsets_at(self._topic, new.at_ms)
            back = {p: min(offset, self._done[p]) for p, offset in first.items()}
        self._snapshot.begin_generation(new)
        self._memory.begin_generation(self.generation)
        self._dead, self._has_watermark = None, False
        self._done |= back
        self._commit(FeedStep.SUPERSEDE)
        self._answer = self._snapshot.ask(now_ms(), self._done)
        remove_generation(self._config.state_file, self.generation - 1)
        for partition, offset in back.items():
            self._read[partition] = offset
            self._order.forget(partition)

    def _send(self, producer: RecordSink, window: Window, generations: np.ndarray) -> None:
        labelled = {id(piece): labels for piece, labels in window.by_piece(generations)}
        parts: list[tuple[ChangePiece, np.ndarray]] = []
        for pieces in by_partition(window.pieces).values():
            for piece in pieces:
                labels = labelled[id(piece)]
                count = int((labels > 0).sum())  # the rest has -1 and is read again
                if count:
                    part = self._memory.take(piece.slice(0, count), labels[:count])
                    parts.append((part, labels[:count]))
                size = sum(part.after.nbytes for part, _ in parts)
                if size >= PART_BYTES or sum(len(part) for part, _ in parts) >= _DECODED_ROWS:
                    self._write(producer, parts)
                    parts = []
                if count < len(piece):
                    break
        if parts:
            self._write(producer, parts)
        self._snapshot.take_row_count(self._memory.row_count)

    def _write(self, producer: RecordSink, parts: Sequence[tuple[ChangePiece, np.ndarray]]) -> None:
        """Send the changes of the table; all are acknowledged on return."""
        if self._dead is None:
            file, history = self._config.state_file, self._config.source.history
            copied = None if history is None else history_state(file).with_suffix(SUFFIX)
            most_bytes = producer.message_bytes()
            self._dead = DeadRows(file.with_suffix(SUFFIX), self.generation, most_bytes, copied)
        limited = changelog_records(
            [part for part, _ in parts],
            np.concatenate([labels for _, labels in parts]),
            self._config.fields,
            self._config.primary_key,
            copied=None if self._snapshot.is_complete else self.generation,
            most_bytes=self._dead.row_bytes,
        )
        records = self._dead.take(limited)
        if records.num_rows:
            producer.send(records)
            self._sent += records.num_rows
        for part, _ in parts:
            self._done[part.partition] = int(part.offsets[-1]) + 1
            self._source_ts_ms = max(self._source_ts_ms, int(part.source_ms.max()))
            self._clock.take_change(newest_change_ms(part))

    # Evidence
    # -----------------------------------------------------------------------------------------

    def _take_evidence(self) -> None:
        """Read decisions, and notifications and Connect's offsets if it is time."""
        self._decisions = read_decisions(self._config.decisions_file)
        reason = self._decisions.overrides.get(self.generation)
        if reason is not None:
            self._snapshot.override(reason)
        is_waiting = not isinstance(self._answer, Complete)
        pause_s = _NOTICES_S if is_waiting else _NOTICES_COMPLETE_S
        if self._notices is not None and time.monotonic() >= self._notices_at_s + pause_s:
            self._notices_at_s = time.monotonic()
            new = self._snapshot.notify(self._notices.read(self._table))
            if new is not None:
                self._begin_generation(new)
        if self._connect is not None and is_waiting and time.monotonic() >= self._connect_at_s:
            self._connect_at_s, self._connect_error = time.monotonic() + _CONNECT_S, None
            try:
                committed_ms = self._connect.committed_ms()
                if committed_ms is not None:
                    self._snapshot.take_commit(committed_ms)
            except SourceError as exc:  # shown in the status: other evidence may suffice
                self._connect_error = exc.message

    def _ask(self) -> Complete | Waiting:
        is_unread = self._notices is not None and not self._notices.is_read
        if is_unread and not self._snapshot.is_complete:
            return Waiting(Missing.EVIDENCE, "the notifications are being read")
        answer = self._snapshot.ask(now_ms(), self._done)
        if not isinstance(answer, Complete) and answer.missing is Missing.ENDS:
            ends = self._cluster.end_offsets(self._topic)
            self._description = self._cluster.require(self._topic)
            self._check_id(self._topic_id)  # after the ends, which were looked up by name
            self._snapshot.take_ends(ends)
            answer = self._snapshot.ask(now_ms(), self._done)
        return answer

    # Store and report
    # -----------------------------------------------------------------------------------------

    def _store(self) -> None:
        is_proof = self._snapshot.is_complete and not self._journal.is_whole
        self._commit(FeedStep.PROVE if is_proof else FeedStep.ADVANCE)

    def _commit(self, step: FeedStep, **changes: Any) -> None:  # noqa: ANN401
        """Make one step of the journal durable, with `changes` of fields that others keep."""
        self._hit("F1")
        self._stored_at_s = time.monotonic()
        self._journal = self._journal.after(
            step,
            offsets=dict(self._done),
            snapshot=self._snapshot.journal,
            table=self._table,
            notices=("", ()) if self._notices is None else self._notices.read_to,
            memory=self._memory.save(),
            **changes,
        )
        write_journal(self._config.state_file, self._journal)
        self._hit("F2")
        if self._group is not None:
            self._group.report(self._done)

    def _report(self, event: str, *, paced: bool = False) -> None:
        if not self._protocol.is_due(paced=paced):
            return
        status = _status_of(self._snapshot, self._answer, self._done)
        if not isinstance(self._answer, Complete) and self._connect_error is not None:
            status["state"]["text"] += f"; {self._connect_error}"
        more = {
            "records": self._sent,
            "source_ts_ms": self._source_ts_ms,
            "freshness_waits_for": self._clock.waits_for(),
            "group_offsets": None if self._group is None else self._group.warning(),
        }
        self._protocol.tell(event, status | more)


def _status_of(
    snapshot: ForeignSnapshot, answer: Complete | Waiting, offsets: Mapping[int, int]
) -> dict[str, Any]:
    rows, total = snapshot.row_counts
    epoch, position = epoch_of(snapshot.generation), sum(offsets.values())
    return {
        "state": {
            "generation": snapshot.generation,
            "complete": isinstance(answer, Complete),
            "evidence": answer.evidence,
            "quiet": answer.quiet if isinstance(answer, Complete) else None,
            "missing": None if isinstance(answer, Complete) else answer.missing,
            "text": answer.text,
            "rows": rows,
            "rows_total": total,
        },
        "position": {"epoch": epoch, "file": 0, "pos": position},
        "records": 0,
        "source_ts_ms": 0,
    }


def _write_watermark(producer: RecordSink, protocol: SourceProtocol, generation: int) -> None:
    written = producer.watermark(BinlogPosition(epoch_of(generation), 0, 0), generation)
    protocol.tell_watermark(generation, written)


def run(config: TopicFeedConfig, protocol: SourceProtocol) -> int:
    retried = (SnapshotNeededError, ForeignRecordError, SourceUnavailableError)
    return run_sessions(protocol, lambda: run_session(config, protocol), retried)


def run_session(
    config: TopicFeedConfig, protocol: SourceProtocol, history: CopiedHistory | None = None
) -> None:
    journal, topic = read_journal(config.state_file), config.source.kafka.topic
    if config.source.is_bounded and journal.is_whole:
        _repeat_end(config, protocol, journal)
        return
    try:
        with (
            closing(TopicFeedSession(config, protocol, history)) as session,
            closing(TopicProducer(config.kafka, config.partitions, topic)) as producer,
        ):
            warm_up(config.source)  # after the connections, whose faults are reported first
            session.run(producer)
    except SnapshotNeededError as error:
        abandon(config.state_file, error.message)
        raise
    except ForeignRecordError as error:
        topic_id = read_journal(config.state_file).position.topic_id
        protocol.tell("unreadable", {"record": list(error.place), "topic_id": topic_id})
        raise


def _repeat_end(config: TopicFeedConfig, protocol: SourceProtocol, journal: FeedJournal) -> None:
    """Report a bounded table that is complete, and its watermark, without reading the topic."""
    snapshot = ForeignSnapshot(range(config.partitions), SnapshotRules(), journal.snapshot)
    offsets, topic = journal.position.offsets, config.source.kafka.topic
    protocol.tell("streaming", _status_of(snapshot, snapshot.ask(now_ms(), offsets), offsets))
    with closing(TopicProducer(config.kafka, config.partitions, topic)) as producer:
        _write_watermark(producer, protocol, journal.generation)
    protocol.tell("ended", {})
    protocol.stopped.set()


def main() -> int:
    return run_process(SourceProtocol(), TopicFeedConfig, run)


if __name__ == "__main__":
    sys.exit(main())
