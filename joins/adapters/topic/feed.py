"""The process of a topic's dimension: sends a foreign topic to Sluice's changelog topic.

Changes keep their position in their topic and the generation of their snapshot. Once a generation
is proven complete, its watermark record goes into every partition. docs/reference/contracts.md
("The process of a topic's dimension") describes the protocol.
"""
# reads better long: what is read, labelled, sent and proven shares one position in the topic.

import glob
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from joins.adapters.connect import ConnectOffsets
from joins.adapters.kafka.cluster import KafkaCluster, topic_policy
from joins.adapters.kafka.records import KafkaRecords
from joins.adapters.kafka.stream_cluster import GroupOffsets
from joins.adapters.process.sessions import SourceProtocol, run_process, run_sessions
from joins.adapters.topic.appended_file import AppendedFile, KeyFile, TimeFile
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
    Offsets,
    TopicFeedConfig,
    abandon,
    history_state,
    read_decisions,
    read_journal,
    write_journal,
)
from joins.adapters.topic.kept_values import ValueFile
from joins.adapters.topic.producer import RecordSink, TopicProducer
from joins.adapters.topic.start import find_start, lost_deletions, require_topic
from joins.adapters.topic.times import TopicTimes
from joins.durable.dead_rows import SUFFIX, DeadRows
from joins.durable.failpoints import Failpoints
from joins.kernels.changelog.envelope import PART_BYTES, BinlogPosition, now_ms
from joins.kernels.debezium.changes import ChangeRows, ForeignTable
from joins.kernels.debezium.options import UnsentValues, ValueLayout, debezium_options
from joins.kernels.topic.keys import DeletionTimes, foreign_keys, key_hashes
from joins.kernels.topic.pieces import (
    Action,
    ChangePiece,
    TimeOrder,
    Window,
    by_partition,
    changelog_records,
    epoch_of,
    newest_change_ms,
    pieces_of,
    snapshot_rows,
)
from joins.kernels.topic.unsent import filled_fields
from joins.plan.errors import (
    ForeignRecordError,
    RecordsExpiredError,
    SnapshotNeededError,
    SourceError,
    SourceUnavailableError,
)
from joins.plan.formats import OF_CHANGES, SOURCE_TIMESTAMP
from joins.plan.plan import BoundedMode, declared_fields
from joins.plan.stream_topics import StreamTopics
from watermark.foreign import ForeignSnapshot, Missing, SnapshotRules, Waiting
from watermark.foreign_journal import Complete, FeedStep, SnapshotJournal
from watermark.foreign_records import NewSnapshot

FILES_OF_KEYS = ("row-keys", "place-keys", "owners", "row-times", "row-offsets", "values")
"""Kinds of all files beside the journal that its entries count."""
_COLUMNS = ("key", "value", "partition", "offset", "timestamp")
_READ_AHEAD = 100_000
_READ_AHEAD_BYTES = 128 << 20
_FIRST_RECORD_BYTES = 10_000  # until a record was read
_DECODED_ROWS = 20_000
_WAIT_S = 0.2
_TOGETHER_S, _FEW = 0.03, 1_000  # collects records that arrive one by one
_DESCRIBED_S = 1.0  # partitions are not added more often
_KEPT_S = 1.0
_KEPT_COMPLETE_S = 5.0  # a sync delays changes, and after a kill little is sent again
_CONNECT_S = 2.0
_HEARD_S = 0.2
_HEARD_COMPLETE_S = 1.0  # then a notification can only announce a later snapshot
_READ_ANEW = (
    "The topic is read again from its beginning, as a new generation, by itself; rows that it "
    "does not have any more come back with the connector's next snapshot."
)


class TopicFeedSession:
    """Follows the topic from the stored journal until it is stopped or cannot continue.

    `history` is what was copied before a topic with a history begins; None behind its beginning. A
    row that no message of the changelog topic can hold is left out.
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
        config, kafka = self._config, self._config.source.kafka
        self._cluster = clients.enter_context(closing(KafkaCluster(kafka, keep_open=True)))
        self._records = clients.enter_context(closing(KafkaRecords(kafka)))
        self._group = self._schemas = None
        if kafka.reported_group is not None:
            self._group = clients.enter_context(closing(GroupOffsets(kafka)))
        schemas = schemas_of(config.source)
        if schemas is not None:
            self._schemas = clients.enter_context(closing(schemas))
        self._is_placed = declared_fields(config.fields) != config.fields  # the key is the place
        self._decoder = decoder_of(config.source, config.fields, config.primary_key, self._schemas)
        self._partitions = partitions_of(dict(config.source.value.options))
        self._deletions = _deletions_of(config)
        markers = config.state_file.parent / "failpoints"
        self._hit = Failpoints(config.failpoints, markers).hit
        self._journal = read_journal(config.state_file)
        self._notices: NoticeTopic | None = None
        self._times: TimeFile | None = None
        self._time_offsets: TimeFile | None = None
        self._begin()
        self._decisions = read_decisions(config.decisions_file)
        self._order = TimeOrder(range(config.partitions))
        self._read = dict(self._done)
        self._notices = self._find_notices()
        if self._notices is not None:
            clients.enter_context(closing(self._notices))
        self._connect = self._find_connect()
        if self._connect is not None:
            clients.enter_context(closing(self._connect))
        self._connect_at_s = self._kept_at_s = self._heard_at_s = 0.0
        self._connect_error: str | None = None
        self._is_marked = False
        self._record_bytes = _FIRST_RECORD_BYTES
        self._sent = 0
        self._source_ts_ms = 0
        self._answer = self._snapshot.ask(now_ms(), self._done)
        times = TopicTimes(config, self._connect, self._schemas)
        self._clock = clients.enter_context(closing(times))

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
            self._tell(event, paced=event == "progress")
            event = "progress"
            pause_s = _KEPT_COMPLETE_S if isinstance(self._answer, Complete) else _KEPT_S
            if time.monotonic() - self._kept_at_s >= pause_s:
                self._keep()
            if self._is_marked and self._config.source.is_bounded:
                self._protocol.tell("ended", {})
                self._protocol.stopped.set()
            elif is_idle:
                self._records.wait(self._name, self._read, _WAIT_S)
            elif sum(self._read.values()) - read < _FEW:
                left_s = begun_at_s + _TOGETHER_S - time.monotonic()
                self._protocol.stopped.wait(max(0.0, left_s))
        self._keep()

    def step(self, producer: RecordSink) -> bool:
        """Read, send and check the evidence once; False if there is nothing to do now."""
        self._hear()
        time_ms = self._clock.look_up()  # before the ends, which have everything up to then
        ends = self.ends()
        if time_ms is not None:
            self._clock.take_ends(time_ms, ends)
        pieces = self._fetch(ends)
        if pieces:
            self._process(producer, Window(pieces))
            self._tell("progress", paced=True)
        for partition in ends:
            if not self._order.held(partition):
                self._done[partition] = self._read[partition]
        self._answer = self._ask()
        self._mark(producer)
        proof = self._clock.newest_proof(self._done) if self._is_marked else None
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

    # The beginning
    # -----------------------------------------------------------------------------------------

    def _find_rules(self, ends: Offsets | None) -> SnapshotRules:
        source = self._config.source
        is_compacted = topic_policy(self._cluster, self._topic).is_compacted
        if source.evidence is None or source.history is not None:
            return SnapshotRules(
                ends=ends,
                has_end=source.is_bounded,
                replaces=False,
                counts=False,
                is_compacted=is_compacted,
            )
        return SnapshotRules(
            settle_ms=source.evidence.settle_ms,
            is_compacted=is_compacted,
            opens_when_skipped=source.evidence.opens_when_skipped,
            replaces=source.evidence.replaces,
            counts=source.evidence.notifications_topic is not None
            and source.evidence.replaces
            and self._partitions is None,
        )

    def _begin(self) -> None:
        kept = self._journal
        description = self._description = self._cluster.require(self._topic)
        self._described_at_s = 0.0
        self._check_partitions(len(description.partitions))
        self._topic_id = description.topic_id
        self._name = StreamTopics.one(self._topic, description.topic_id)
        begins = self._cluster.beginning_offsets(description)
        partitions = range(self._config.partitions)
        if not kept.begins:
            self._check_kept(kept, begins)
        ends = self._find_ends() if kept.begins else kept.ends or self._config.source.end_offsets
        self._bounds = dict(ends or ())
        self._rules = self._find_rules(ends)
        self._has_tombstones = self._find_tombstones()
        if kept.begins:
            journal, self._done = self._find_start(kept, begins)
            self._snapshot = ForeignSnapshot(partitions, self._rules, journal)
            self._table = None
            self._remove_left_over()
            self._find_times((0, 0), (0, 0))
            self._values = self._find_values(FeedJournal())
            self._find_keys(0, 0, (0, 0))
            nothing: tuple[str, Offsets] = ("", ())
            self._commit(
                FeedStep.BEGIN,
                topic_id=self._topic_id,
                ends=ends,
                needed=None,
                notices=nothing,
                begun_ms=now_ms(),
            )
        else:
            self._snapshot = ForeignSnapshot(partitions, self._rules, kept.snapshot)
            self._done, self._table = dict(kept.position.offsets), kept.table
            self._find_times(kept.times, kept.time_offsets)
            self._values = self._find_values(kept)
            self._find_keys(kept.counted, kept.placed, kept.owners)
        for generation in (kept.generation, self._snapshot.generation - 1):
            if generation < self._snapshot.generation:  # a kill may have left them
                self._remove_keys(generation)

    def _find_start(
        self, kept: FeedJournal, begins: dict[int, int]
    ) -> tuple[SnapshotJournal, dict[int, int]]:
        """The first entry of a generation and its start; behind a history no record is missing."""
        history = self._config.source.history
        if history is None:
            return SnapshotJournal.first(kept.generation + 1, begins), begins
        assert self._history is not None, "the files are read before the topic begins"
        require_topic(self._config.source, self._topic_id)
        start = find_start(self._cluster, self._topic, history, self._history.newest_ms)
        return SnapshotJournal.first(self._history.generation, {}), start

    def _find_ends(self) -> Offsets | None:
        """End offsets of a table without connector, or behind a history; None with a connector.

        Ends found at submission are invalid if the topic was recreated or lost records before them.
        """
        source, kept = self._config.source, self._journal.position.topic_id
        if source.history is not None:
            return tuple(sorted(self._cluster.end_offsets(self._description).items()))
        if source.evidence is not None:
            return None
        if source.bounded_mode in (BoundedMode.SPECIFIC, BoundedMode.GROUP):
            return source.end_offsets
        there = self._cluster.end_offsets(self._description)
        is_same = self._topic_id == (source.topic_id or kept or self._topic_id)
        if is_same and all(there[p] >= end for p, end in source.end_offsets):
            return source.end_offsets
        if source.bounded_timestamp_ms is not None:
            there = self._cluster.offsets_at(self._topic, source.bounded_timestamp_ms)
        return tuple(sorted(there.items()))

    def _find_keys(self, counted: int, placed: int, owners: tuple[int, int]) -> None:
        file = self._config.state_file
        number = self._snapshot.generation
        owned = file.with_suffix(f".owners-{number}")
        self._owners = None if self._partitions is None else TimeFile(owned, owners)
        self._dead: DeadRows | None = None
        self._counted = KeyFile(file.with_suffix(f".row-keys-{number}"), counted)
        self._placed = KeyFile(file.with_suffix(f".place-keys-{number}"), placed)

    def _dead_rows(self, producer: RecordSink) -> DeadRows:
        if self._dead is None:
            file, history = self._config.state_file, self._config.source.history
            copied = None if history is None else history_state(file).with_suffix(SUFFIX)
            most_bytes = producer.message_bytes()
            generation = self._snapshot.generation
            self._dead = DeadRows(file.with_suffix(SUFFIX), generation, most_bytes, copied)
        return self._dead

    def _remove_keys(self, generation: int) -> None:
        file = self._config.state_file
        for name in (f".row-keys-{generation}", f".place-keys-{generation}"):
            AppendedFile(file.with_suffix(name), 1, 0).remove()
        for path in file.parent.glob(f"{glob.escape(file.stem)}.owners-{generation}-*"):
            AppendedFile(path, 1, 0).remove()

    def _remove_left_over(self) -> None:
        """Remove the files of all earlier generations, before the first one of a topic begins."""
        file = self._config.state_file
        for kind in FILES_OF_KEYS:
            for path in file.parent.glob(f"{glob.escape(file.stem)}.{kind}-*"):
                AppendedFile(path, 1, 0).remove()

    def _find_times(self, kept: tuple[int, int], offsets: tuple[int, int]) -> None:
        self._times = self._time_offsets = None
        if self._deletions is not None and self._deletions.needs_rows:
            file = self._config.state_file
            self._times = TimeFile(file.with_suffix(".row-times"), kept)
            if self._rules.replaces:
                self._time_offsets = TimeFile(file.with_suffix(".row-offsets"), offsets)

    def _find_tombstones(self) -> bool:
        """True if tombstones count: one of several tables' names none, and may have any key.

        In an envelope's topic each follows the deletion of its row, unless compaction removed that.
        """
        options = debezium_options(dict(self._config.source.value.options))
        is_one_of_several = options.table is not None and not options.table.is_pattern
        is_flat = options.layout is ValueLayout.FLAT
        return is_flat or self._rules.is_compacted or not is_one_of_several

    def _find_values(self, kept: FeedJournal) -> ValueFile | None:
        config = self._config
        options = debezium_options(dict(config.source.value.options))
        is_filled = options.unsent_values is UnsentValues.LAST_VERSION
        if config.source.value.name not in OF_CHANGES or not is_filled:
            return None
        fields = filled_fields(config.fields, config.primary_key)
        path, live = config.state_file.with_suffix(".values"), kept.values_live
        return ValueFile(path, fields, kept.values, kept.value_places, live=live)

    def _check_partitions(self, there: int) -> None:
        if there != self._config.partitions:
            raise SourceError(
                f'topic "{self._topic}" has {there} partitions, and had {self._config.partitions} '
                "when the job was submitted: a key may lie in another one now",
                hint="Remove the job and submit it again, best with a topic that the connector has "
                "filled from the start with as many partitions.",
            )

    def _check_kept(self, kept: FeedJournal, begins: Mapping[int, int]) -> None:
        self._check_id(kept.position.topic_id)
        offsets = kept.position.offsets
        lost = sorted(p for p, offset in offsets.items() if begins.get(p, 0) > offset)
        if lost:
            raise self._expired(f"partition {lost[0]}")
        since_ms = kept.begun_ms if self._config.source.history is None else None
        gone = lost_deletions(self._cluster, self._topic, offsets, since_ms)
        if gone:
            raise SnapshotNeededError(
                f'topic "{self._topic}" may have removed deletions of partition {min(gone)} before '
                "they were read",
                hint=f"{_READ_ANEW} Let the topic's 'delete.retention.ms' be longer than the job "
                "stands still.",
            )

    def _check_id(self, expected: str) -> None:
        if self._description.topic_id != expected:
            raise SnapshotNeededError(
                f'topic "{self._topic}" has id {self._description.topic_id}, expected {expected}: '
                "it was deleted and created again",
                hint=_READ_ANEW,
            )

    def _expired(self, where: str) -> SnapshotNeededError:
        return SnapshotNeededError(
            f'topic "{self._topic}" lost records of {where} before they were read',
            hint=f"{_READ_ANEW} Raise the topic's retention, so that it does not happen again.",
        )

    def _find_notices(self) -> NoticeTopic | None:
        source = self._config.source
        if source.evidence is None or source.evidence.notifications_topic is None:
            return None
        kafka = replace(source.kafka, topic=source.evidence.notifications_topic)
        read = self._journal.notices
        return NoticeTopic(kafka, self._topic, read, self._schemas, self._partitions)

    def _find_connect(self) -> ConnectOffsets | None:
        evidence = self._config.source.evidence
        if evidence is None or evidence.connect_url is None or evidence.connector is None:
            return None
        return ConnectOffsets(evidence.connect_url, evidence.connector)

    # What is read
    # -----------------------------------------------------------------------------------------

    def ends(self) -> dict[int, int]:
        """Next offsets to which there are records; not beyond the bounds of a bounded table."""
        if time.monotonic() >= self._described_at_s + _DESCRIBED_S:
            self._described_at_s = time.monotonic()
            self._description = self._cluster.require(self._topic)
            self._check_id(self._topic_id)
        ends = self._cluster.end_offsets(self._description)
        self._check_partitions(len(ends))
        if self._config.source.is_bounded:
            bounds = self._bounds
            ends = {p: min(end, max(bounds[p], self._read[p])) for p, end in ends.items()}
        for partition, end in ends.items():
            if end < self._read[partition]:
                raise SnapshotNeededError(
                    f'partition {partition} of topic "{self._topic}" ends at {end}, and was read '
                    f"up to {self._read[partition]}: the topic is another one",
                    hint=_READ_ANEW,
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
            with self._reading():
                for batch in self._in_parts(self._records.batches(self._name, ranges, _COLUMNS)):
                    self._take(batch)
            self._read |= {p: end for p, (_, end) in ranges.items()}
        return self._order.take([p for p, end in ends.items() if self._read[p] >= end])

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except RecordsExpiredError as exc:
            raise self._expired("a partition") from exc

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

    def _take(self, records: pa.RecordBatch) -> None:
        changes = self._decoder.decode(records)
        self._check_bad(records, changes)
        self._check_table(records, changes)
        for piece in pieces_of(
            records,
            changes,
            has_partitions=self._partitions is not None,
            has_tombstones=self._has_tombstones,
        ):
            self._order.add(piece)
            self._read[piece.partition] = int(piece.offsets[-1]) + 1

    def _check_bad(self, records: pa.RecordBatch, changes: ChangeRows) -> None:
        for bad in changes.bad:
            partition, offset = (
                records.column(name)[bad.row].as_py() for name in ("partition", "offset")
            )
            if (partition, offset) not in self._decisions.skipped(self._topic_id):
                raise ForeignRecordError(
                    f'record {partition}/{offset} of topic "{self._topic}" cannot be taken: '
                    f"{bad.reason}",
                    hint="Correct the declaration or the format's options in a new job; or "
                    "acknowledge it, and the record is left out.",
                    place=(partition, offset),
                )

    def _check_table(self, records: pa.RecordBatch, changes: ChangeRows) -> None:
        """Require that all records are of one table, and with evidence of one connector."""
        options = f"{self._config.source.value.name}."
        for table in changes.tables():
            if self._partitions is not None:
                table = replace(table, schema=self._partitions.schema, table=self._partitions.table)
            known = self._table or table
            if replace(table, connector=known.connector) != known:
                raise self._other(
                    records,
                    ("table", table.name, known.name),
                    hint=f"Name the table in a new job: '{options}source.table', and if need be "
                    f"'{options}source.schema' or '{options}source.db'. If they are partitions of "
                    f"one table, '{options}source.table-pattern' reads all of them.",
                )
            names = {each.connector for each in (table, known) if each.connector is not None}
            if len(names) > 1 and self._config.source.evidence is not None:
                raise self._other(
                    records,
                    ("connector", table.connector, known.connector),
                    hint="Let each connector write a separate topic: what shows that the rows of "
                    "one are whole shows nothing of those of another.",
                )
            if self._table is None or (known.connector is None and names):
                self._learn(table)

    def _other(
        self, records: pa.RecordBatch, names: tuple[str, str | None, str | None], *, hint: str
    ) -> SourceError:
        kind, other, known = names
        return SourceError(
            f'topic "{self._topic}" has records of {kind} "{other}" beside those of "{known}", '
            f"among those from offset {records.column('offset')[0].as_py()} of partition "
            f"{records.column('partition')[0].as_py()} on",
            hint=hint,
        )

    def _learn(self, table: ForeignTable) -> None:
        """Note the records' table; notifications were matched by the topic's name before."""
        self._table = table
        if self._notices is not None:
            self._notices.begin_again()
            self._heard_at_s = 0.0
            if table.connector is not None:  # others may have matched: "a" and "a.b" of "a.b.c.d"
                self._snapshot.forget_notices()

    # What it belongs to
    # -----------------------------------------------------------------------------------------

    def _process(self, producer: RecordSink, window: Window) -> None:
        snapshot, generations, at = self._snapshot, [], 0
        new: NewSnapshot | None = None
        while at < len(window) and (new is None or not new.must_read_again):
            if new is not None:
                self._begin_generation(new)
            older = window.older(
                at,
                changes_from_ms=snapshot.journal.changes_from_ms,
                rows_after_ms=snapshot.journal.rows_after_ms,
                position=snapshot.journal.log_position,
                truncated_at=snapshot.journal.facts.truncated_at,
            )
            end, new = self._labelled(window, at, older)
            generations.append(snapshot.generation - older[: end - at].astype(np.int64))
            other_ms = window.newest_without_mark(at, end)
            if other_ms is not None:
                snapshot.take_unmarked(other_ms)
            at = end
            if new is not None and at == len(window) and not new.must_read_again:
                self._begin_generation(new)
        self._send(producer, window, np.concatenate(generations))
        if new is not None and new.must_read_again:
            self._begin_generation(new)

    def _labelled(
        self, window: Window, first: int, older: np.ndarray
    ) -> tuple[int, NewSnapshot | None]:
        """Up to where the records are of this generation, and the snapshot that begins there."""
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
        self._find_keys(0, 0, (0, 0))
        self._is_marked = False
        self._done |= back
        self._commit(FeedStep.SUPERSEDE)
        self._answer = self._snapshot.ask(now_ms(), self._done)
        self._remove_keys(self._snapshot.generation - 1)
        for partition, offset in back.items():
            self._read[partition] = offset
            self._order.forget(partition)

    def _send(self, producer: RecordSink, window: Window, generations: np.ndarray) -> None:
        labelled = {id(piece): labels for piece, labels in window.by_piece(generations)}
        parts: list[tuple[ChangePiece, np.ndarray]] = []
        for pieces in by_partition(window.pieces).values():
            for piece in pieces:
                labels = labelled[id(piece)]
                count = int((labels > 0).sum())  # those behind are read again: they have -1
                if count:
                    part = piece.slice(0, count)
                    self._check_places(part, labels[:count])
                    part = self._with_times(self._with_values(part))
                    parts.append((part, labels[:count]))
                size = sum(part.after.nbytes for part, _ in parts)
                if size >= PART_BYTES or sum(len(part) for part, _ in parts) >= _DECODED_ROWS:
                    self._write(producer, parts)
                    parts = []
                if count < len(piece):
                    break
        if parts:
            self._write(producer, parts)

    def _write(self, producer: RecordSink, parts: Sequence[tuple[ChangePiece, np.ndarray]]) -> None:
        """Send the changes of the table; all are acknowledged on return."""
        copied = None if self._snapshot.is_complete else self._snapshot.generation
        dead = self._dead_rows(producer)
        limited = changelog_records(
            [part for part, _ in parts],
            np.concatenate([labels for _, labels in parts]),
            self._config.fields,
            self._config.primary_key,
            copied=copied,
            most_bytes=dead.row_bytes,
        )
        records = dead.take(limited)
        if records.num_rows:
            producer.send(records)
            self._sent += records.num_rows
        for part, _ in parts:
            self._done[part.partition] = int(part.offsets[-1]) + 1
            self._source_ts_ms = max(self._source_ts_ms, int(part.source_ms.max()))
            self._clock.take_change(newest_change_ms(part))

    def _check_places(self, piece: ChangePiece, generations: np.ndarray) -> None:
        """Count the rows of this snapshot, and require that no key changes its partition."""
        own = generations == self._snapshot.generation
        acts = own & (piece.actions != Action.NOTHING)
        is_row = own & snapshot_rows(piece)
        if self._rules.counts and is_row.any():
            rows = piece.key.filter(pa.array(is_row))
            self._counted.add(key_hashes(rows.columns), 0)
            self._snapshot.take_row_count(len(self._counted))
        if self._owners is not None and acts.any():
            self._check_owners(piece, acts, self._owners)
        if self._config.partitions == 1 or self._is_placed or not acts.any():
            return
        rows = piece.key.filter(pa.array(acts))
        known = self._placed.add(key_hashes(rows.columns), piece.partition)
        for row in np.flatnonzero(known != piece.partition).tolist():
            place = np.flatnonzero(acts)[row]
            self._leave_out(
                piece,
                int(place),
                f"has a key whose records were in partition {known[row]} before: their order is "
                "undefined",
                "Give records of one primary key one message key and do not add partitions; then "
                "let the connector take a new snapshot into a new topic and submit the job again. "
                "Acknowledged, the record is left out.",
            )

    def _check_owners(self, piece: ChangePiece, acts: np.ndarray, owners: TimeFile) -> None:
        """Require that no key has rows in two partitions of the table at once."""
        while True:
            places = np.flatnonzero(acts & (piece.actions != Action.NOTHING))
            foreign = foreign_keys(piece, places, owners)
            if not len(foreign):
                return
            self._leave_out(  # the first one: without it later ones of its key may be right
                piece,
                int(foreign[0]),
                "has a key of which another partition of the table has a row",
                "Declare a PRIMARY KEY that is unique in all partitions, and let "
                "'source.table-pattern' match partitions only, not their parent, in a "
                "new job. Acknowledged, the record is left out.",
            )

    def _with_values(self, piece: ChangePiece) -> ChangePiece:
        if self._values is None:
            return piece
        while True:
            filled = self._values.fill(piece)
            if not len(filled.unknown):
                self._values.keep(filled)
                return filled.piece
            for place in filled.unknown.tolist():
                self._leave_out(
                    piece,
                    place,
                    "lacks a value that the database did not send, and there is no version of its "
                    "row to take it from",
                    "Let the connector take a new snapshot, or set REPLICA IDENTITY FULL "
                    "for the table; acknowledged, the record is left out.",
                )

    def _with_times(self, piece: ChangePiece) -> ChangePiece:
        if self._deletions is None:
            return piece
        piece, unknown = self._deletions.of(piece, self._times, self._time_offsets)
        for place in unknown.tolist():
            self._leave_out(
                piece,
                place,
                f'deletes a row and does not say when: it has no "{SOURCE_TIMESTAMP}", nor has a '
                "deletion before it",
                "Declare the time as METADATA FROM 'timestamp' in a new job, which "
                "tombstones have, too; or acknowledge it, and the record is left out.",
            )
        return piece

    def _leave_out(self, piece: ChangePiece, place: int, fault: str, hint: str) -> None:
        """Leave out a record that was acknowledged; ForeignRecordError for any other."""
        at = (piece.partition, int(piece.offsets[place]))
        if at not in self._decisions.skipped(self._topic_id):
            raise ForeignRecordError(
                f'record {at[0]}/{at[1]} of topic "{self._topic}" {fault}', hint=hint, place=at
            )
        piece.actions[place] = Action.NOTHING

    # Evidence
    # -----------------------------------------------------------------------------------------

    def _hear(self) -> None:
        self._decisions = read_decisions(self._config.decisions_file)
        word = self._decisions.words.get(self._snapshot.generation)
        if word is not None:
            self._snapshot.override(word)
        waits = not isinstance(self._answer, Complete)
        pause_s = _HEARD_S if waits else _HEARD_COMPLETE_S
        if self._notices is not None and time.monotonic() >= self._heard_at_s + pause_s:
            self._heard_at_s = time.monotonic()
            new = self._snapshot.notify(self._notices.read(self._table))
            if new is not None:
                self._begin_generation(new)
        if self._connect is not None and waits and time.monotonic() >= self._connect_at_s:
            self._connect_at_s = time.monotonic() + _CONNECT_S
            self._ask_connect(self._connect)

    def _ask_connect(self, connect: ConnectOffsets) -> None:
        """Connect may not answer: other evidence may suffice, and the status shows the error."""
        self._connect_error = None
        try:
            committed = connect.committed_ms()
        except SourceError as exc:
            self._connect_error = exc.message
            return
        if committed is not None:
            self._snapshot.take_commit(committed)

    def _ask(self) -> Complete | Waiting:
        is_deaf = self._notices is not None and not self._notices.is_read
        if is_deaf and not self._snapshot.is_complete:
            return Waiting(Missing.EVIDENCE, "the notifications are being read")
        answer = self._snapshot.ask(now_ms(), self._done)
        if not isinstance(answer, Complete) and answer.missing is Missing.ENDS:
            ends = self._cluster.end_offsets(self._topic)
            self._description = self._cluster.require(self._topic)
            self._check_id(self._topic_id)  # after the ends, which were looked up by name
            self._snapshot.take_ends(ends)
            answer = self._snapshot.ask(now_ms(), self._done)
        return answer

    def _mark(self, producer: RecordSink) -> None:
        """Write the watermark of a complete generation, again after each start.

        Completeness is stored before, so that later rows count as changes after a restart, too.
        """
        if self._is_marked or not isinstance(self._answer, Complete):
            return
        self._keep()
        self._tell("progress")
        _promise(producer, self._protocol, self._snapshot.generation)
        self._is_marked = True

    # What is kept and told
    # -----------------------------------------------------------------------------------------

    def _keep(self) -> None:
        is_proof = self._snapshot.is_complete and not self._journal.is_whole
        self._commit(FeedStep.PROVE if is_proof else FeedStep.ADVANCE)

    def _commit(self, step: FeedStep, **changes: Any) -> None:  # noqa: ANN401
        """Make one step of the journal durable: the only durable state of a session."""
        self._hit("F1")
        self._kept_at_s = time.monotonic()
        if self._notices is not None:
            changes["notices"] = self._notices.read_to
        values, places = ((0, 0), (0, 0)) if self._values is None else self._values.save()
        self._journal = self._journal.after(
            step,
            offsets=dict(self._done),
            snapshot=self._snapshot.journal,
            table=self._table,
            counted=self._counted.save(),
            placed=self._placed.save(),
            times=(0, 0) if self._times is None else self._times.save(),
            time_offsets=(0, 0) if self._time_offsets is None else self._time_offsets.save(),
            values=values,
            value_places=places,
            values_live=0 if self._values is None else self._values.live,
            owners=(0, 0) if self._owners is None else self._owners.save(),
            **changes,
        )
        write_journal(self._config.state_file, self._journal)
        self._hit("F2")
        if self._group is not None:
            self._group.report(self._done)

    def _tell(self, event: str, *, paced: bool = False) -> None:
        if not self._protocol.is_due(paced=paced):
            return
        state = _state_of(self._snapshot, self._answer)
        if not state["complete"] and self._connect_error is not None:
            state["text"] += f"; {self._connect_error}"
        self._protocol.tell(
            event,
            {
                "state": state,
                "position": {
                    "epoch": epoch_of(self._snapshot.generation),
                    "file": 0,
                    "pos": sum(self._done.values()),
                },
                "records": self._sent,
                "source_ts_ms": self._source_ts_ms,
                "freshness_waits_for": self._clock.waits_for(),
                "group_offsets": None if self._group is None else self._group.warning(),
            },
        )


def _deletions_of(config: TopicFeedConfig) -> DeletionTimes | None:
    """None for a table without versions, or with the time in its key (a single version)."""
    if config.rowtime is None or config.rowtime in config.primary_key:
        return None
    keys = {each.name: each.key for each in config.source.metadata}
    return DeletionTimes(config.rowtime, keys.get(config.rowtime))


def _state_of(snapshot: ForeignSnapshot, answer: Complete | Waiting) -> dict[str, Any]:
    rows, total = snapshot.row_counts
    return {
        "generation": snapshot.generation,
        "complete": isinstance(answer, Complete),
        "evidence": answer.evidence,
        "quiet": answer.quiet if isinstance(answer, Complete) else None,
        "missing": None if isinstance(answer, Complete) else answer.missing,
        "text": answer.text,
        "rows": rows,
        "rows_total": total,
    }


def _repeat(config: TopicFeedConfig, protocol: SourceProtocol, kept: FeedJournal) -> None:
    snapshot = ForeignSnapshot(range(config.partitions), SnapshotRules(), kept.snapshot)
    place = {
        "epoch": epoch_of(kept.generation),
        "file": 0,
        "pos": sum(kept.position.offsets.values()),
    }
    state = _state_of(snapshot, snapshot.ask(now_ms(), kept.position.offsets))
    said = {"state": state, "position": place, "records": 0, "source_ts_ms": 0}
    protocol.tell("streaming", said)
    topic = config.source.kafka.topic
    with closing(TopicProducer(config.kafka, config.partitions, topic)) as producer:
        _promise(producer, protocol, kept.generation)
    protocol.tell("ended", {})
    protocol.stopped.set()


def _promise(producer: RecordSink, protocol: SourceProtocol, generation: int) -> None:
    written = producer.watermark(BinlogPosition(epoch_of(generation), 0, 0), generation)
    protocol.tell_watermark(generation, written)


def run(config: TopicFeedConfig, protocol: SourceProtocol) -> int:
    retried = (SnapshotNeededError, ForeignRecordError, SourceUnavailableError)
    return run_sessions(protocol, lambda: run_session(config, protocol), retried)


def run_session(
    config: TopicFeedConfig, protocol: SourceProtocol, history: CopiedHistory | None = None
) -> None:
    kept = read_journal(config.state_file)
    if config.source.is_bounded and kept.is_whole:
        _repeat(config, protocol, kept)
        return
    try:
        with closing(TopicFeedSession(config, protocol, history)) as session:
            topic = config.source.kafka.topic
            with closing(TopicProducer(config.kafka, config.partitions, topic)) as producer:
                warm_up(config.source)  # after the connections, whose faults are reported first
                session.run(producer)
    except SnapshotNeededError as error:
        abandon(config.state_file, error.message)
        raise
    except ForeignRecordError as error:
        topic_id = read_journal(config.state_file).position.topic_id
        protocol.tell("unreadable", {"record": list(error.place), "topic_id": topic_id})
        raise


def main() -> int:
    return run_process(SourceProtocol(), TopicFeedConfig, run)


if __name__ == "__main__":
    sys.exit(main())
