"""Replays a committed batch from its pin, without Spark, and compares it with what was committed.

It reads the records again from Kafka, joins them with the pinned versions at the pinned time, and
compares the rows in a canonical form. It changes nothing of the job.
"""
# reads better long: what a replay computes and what it compares are the same fields.

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.kafka.cluster import KafkaCluster, topic_policy
from joins.adapters.kafka.records import KafkaRecords
from joins.batch.event_state import EventState
from joins.durable.pins import Pin, shown_pin
from joins.durable.probe_lives import Gap
from joins.kernels.json.exact import CanonicalRows, Difference, differences
from joins.kernels.probe.probe import JoinedBatch, join_batch
from joins.kernels.records.layout import numbered
from joins.lookback.event_replay import EventReplay, state_differences
from joins.lookback.history import BatchCommit, BatchCommits, History
from joins.lookback.past_indexes import (
    Changes,
    PastIndexes,
    PastRecords,
    Range,
    changed_rows,
    last_changes,
)
from joins.lookback.plans import OfPlans
from joins.plan.errors import (
    BatchNotCommittedError,
    NotReplayableError,
    RecordsExpiredError,
    SinkError,
)
from joins.plan.formats import KafkaFormat, RecordFormat
from joins.plan.plan import DeltaSink, KafkaOptions, KafkaSink
from joins.plan.stream_topics import place_json, place_name
from joins.sinks.kafka import RecordEncoding
from joins.worker.probe_task import pinned_context

MAX_DIFFERENCES = 100
MAX_SINK_RECORDS = 5_000_000
_CLOCK_SLACK_MS = 60_000  # clocks of broker and runner may differ by this much
_COORDINATES = ("partition", "offset")
_COORDINATE_COLUMNS = ["_topic", "_partition", "_offset"]
_PLACES = ["topic", "partition", "offset"]
_SOURCE_HEADERS = ("sluice-src-topic", "sluice-src-partition", "sluice-src-offset")


class Verdict(StrEnum):
    """Result of a replay; only IDENTICAL is evidence that the batch is right."""

    IDENTICAL = "identical"
    DIFFERENT = "different"
    RECORDS_MISSING = "records-missing"  # no difference in what remains; some records are gone
    NOTHING_TO_COMPARE = "nothing-to-compare"


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The result of joining a batch again."""

    rows: CanonicalRows  # canonical, in the form of the sink
    dead: CanonicalRows  # (partition, offset, value) of the dead letters, canonical
    missing: tuple[Range, ...]  # (partition, first, end) of offsets that retention has removed
    read: Mapping[int, npt.NDArray[np.int64]]  # partition → offsets of the records that were read
    event: "EventTimeResult | None" = None  # None without event time or windows
    # the last change of each merge key, which is compared in place of `rows`; None to append
    changes: Changes | None = None

    def was_read(self, difference: Difference) -> bool:
        """True if the record of `difference` was read; compaction removes single ones."""
        if difference.partition is None:
            return True
        if self.event is not None and self.event.came_before(difference):
            return True
        offsets = self.read.get(difference.partition)
        return offsets is not None and bool((offsets == difference.offset).any())


@dataclass(frozen=True, slots=True)
class EventTimeResult:
    """What a batch with event time or windows yields beside rows and dead letters."""

    # partition → first offset of the batch; older records waited in the state
    start: Mapping[int, int]
    # (partition, offset, value) of the late records, canonical; None if unknown
    late: CanonicalRows | None
    after: EventState | None  # state for the next batch; None if unknown

    def came_before(self, difference: Difference) -> bool:
        """True for the row of an earlier batch's record, or of a window: a negative partition."""
        partition, offset = difference.partition or 0, difference.offset or 0
        return partition < 0 or offset < self.start.get(partition, 0)


@dataclass(frozen=True, slots=True)
class Committed:
    """The rows of a batch in the output."""

    rows: CanonicalRows
    dead: CanonicalRows | None  # None if their files are gone: dead letters are not compared
    # `commit` (files that the batch added), `table` (rows of the batch in the newest version: those
    # files were rewritten), `changes` (the commit's changes in an output whose rows replace others)
    # or `topic`
    source: str
    repeated: int = 0  # records that an at-least-once sink has more than once
    # of `changes`: the rows expected after the merge, which depend on the files it removed
    expected: CanonicalRows | None = None
    event: EventTimeResult | None = None


class Replayer:
    """Replays batches of one job; close it when done."""

    def __init__(self, history: History, indexes: PastIndexes) -> None:
        self._history = history
        self.places = history.places
        self._indexes = indexes
        places = history.places
        self._event = (
            None
            if places.event is None
            else EventReplay(places.event, places.kernel, places.app_id)
        )
        self.records = PastRecords(history)
        self._topics = self.records.topics
        self._of_plans = OfPlans(history, Replayer)

    def close(self) -> None:
        self._of_plans.close()
        self.records.close()

    def replay(self, batch: int, *, diff: bool = False) -> dict[str, Any]:
        """Join `batch` again under the plan of its pin and compare; returns JSON values.

        `verdict` is one of `Verdict`: NOTHING_TO_COMPARE for a batch without rows, dead letters and
        late records. With `diff`, the first `MAX_DIFFERENCES` differences; else only their number.

        Raises:
            UnknownBatchError: it has no pin.
            BatchNotCommittedError: it is not committed, or the output's log has lost its commit.
            NotReplayableError: the sink keeps no rows, or has lost the rows of the batch.
            SinkError: a file is gone that the output still names.
            RecordsExpiredError: Kafka has lost all of its records or, with event time or windows,
                some.
            PinnedVersionExpiredError: a version cannot be read any more.
        """
        if not isinstance(self.places.sink, DeltaSink | KafkaSink):
            raise NotReplayableError(
                f'sink "{self.places.sink.kind}" keeps no rows, a delta or kafka sink does',
                hint="Use explain-row to see what a record is joined with.",
            )
        pin = self._history.pin(batch)
        if pin.plan != self.places.plan:
            return self._of_plans.of(pin.plan).replay(batch, diff=diff)
        if not self._history.is_committed(batch):
            raise BatchNotCommittedError(
                f"batch {batch} is pinned and not committed",
                hint="It is running or was abandoned; look again, or choose an older batch.",
            )
        expected = self.recomputed(pin)
        committed = self.committed(pin, expected)
        return self._result(pin, expected, committed, diff=diff)

    def recomputed(self, pin: Pin) -> Recomputed:
        ranges, missing = self.records.kept(pin)
        if self._event is not None:
            return self._event_batch(self._event, pin, missing)
        if missing and not any(first < end for first, end in ranges.values()):
            raise RecordsExpiredError(
                f'topic "{self._topics.text}" has no record of batch {pin.batch} any more',
                hint="Its retention removed them; only younger batches can be replayed.",
            )
        indexes, context = self._indexes.of(pin.versions), pinned_context(pin)
        rows: list[CanonicalRows] = []
        dead: list[CanonicalRows] = []
        answers: list[JoinedBatch] = []
        read: dict[int, list[pa.Array]] = {}
        key = self._merge_key
        for records in self.records.read(ranges):
            partition = records.column("partition")[0].as_py()  # of all records of a read
            read.setdefault(partition, []).append(records.column("offset"))
            joined = join_batch(self.places.kernel, records, indexes, context)
            rows.append(self._canonical(joined, pin))
            dead.append(self._letters([joined.dead_letters]))
            answers += [joined] if key else []
        offsets = {p: pa.concat_arrays(parts).to_numpy() for p, parts in read.items()}
        return Recomputed(
            CanonicalRows.merged(rows),
            CanonicalRows.merged(dead),
            missing,
            offsets,
            changes=last_changes(answers, key) if key else None,
        )

    def _event_batch(self, replay: EventReplay, pin: Pin, missing: tuple[Range, ...]) -> Recomputed:
        """Join again a batch whose records advance the watermark, and release waiting rows."""
        if missing:
            partition, first, end = missing[0]
            raise RecordsExpiredError(
                f"{place_name(self._topics, partition)} does not have the records {first} to "
                f"{end - 1} of batch {pin.batch} any more",
                hint="All records of such a batch move its time; only younger batches can be "
                "replayed.",
            )
        read: dict[int, list[pa.Array]] = {}

        def records() -> Iterator[pa.RecordBatch]:
            read.clear()  # the records may be read twice
            for partition, bounds in sorted(pin.ranges().items()):
                for batch in self.records.read({partition: bounds}):
                    read.setdefault(partition, []).append(batch.column("offset"))
                    yield batch

        again = replay.run(pin, records, self._indexes.of(pin.versions))
        key = self._merge_key
        return Recomputed(
            CanonicalRows.merged(self._canonical(each, pin) for each in again.answers),
            self._letters(again.dead_letters),
            (),
            {p: pa.concat_arrays(parts).to_numpy() for p, parts in read.items()},
            EventTimeResult(pin.start_offsets, self._letters(again.late), again.after),
            last_changes(again.answers, key) if key else None,
        )

    @property
    def _merge_key(self) -> tuple[str, ...]:
        sink = self.places.sink
        return tuple(sink.merge_key) if isinstance(sink, DeltaSink) else ()

    def _canonical(self, joined: JoinedBatch, pin: Pin) -> CanonicalRows:
        places = joined.coordinates.select(list(_COORDINATES))
        sink, output = self.places.sink, self.places.kernel.output
        if not isinstance(sink, KafkaSink):
            return CanonicalRows.of([(joined.rows, places)])
        records = RecordEncoding.of(sink, output)(joined, pin)
        columns = (records.column(name).to_pylist() for name in _PLACES)
        keys, values = (records.column(name).to_pylist() for name in ("key", "value"))
        texts = (_sent_text(sink, *sent) for sent in zip(keys, values, strict=True))
        return CanonicalRows.of_texts(
            (self._number_of(topic, partition), _int_or_none(offset), text)
            for topic, partition, offset, text in zip(*columns, texts, strict=True)
        )

    def _number_of(self, topic: bytes | None, partition: bytes | None) -> int | None:
        """The partition in the headers of a sent record, None for the row of a window."""
        if partition is None:
            return None
        name = self._topics.names[0] if topic is None else topic.decode()
        return self._topics.number(name, int(partition))

    def committed(self, pin: Pin, expected: Recomputed) -> Committed:
        committed = self._committed_rows(pin, expected)
        return (
            committed
            if self._event is None
            else replace(committed, event=self._committed_event(pin))
        )

    def _committed_rows(self, pin: Pin, expected: Recomputed) -> Committed:
        dead = self._letters_in(self._history.dead_letters, pin.batch, self._of_this_insert)
        if isinstance(self.places.sink, KafkaSink):
            rows, repeated = self._sent(pin, self.places.sink, expected.rows)
            return Committed(rows.outside(_places_of(expected.dead)), dead, "topic", repeated)
        output = self._history.output
        commit = None if output is None else output.of(pin.batch)
        if output is None or commit is None:
            raise BatchNotCommittedError(
                f"commit of batch {pin.batch} is not in the output's log any more",
                hint="The output was replaced, or its log was cleaned by its owner.",
            )
        if expected.changes is not None:
            return self._merged(pin, output, commit, expected.changes, dead)
        return self._appended(pin, output, commit, expected.dead, dead)

    def _merged(
        self,
        pin: Pin,
        output: BatchCommits,
        commit: BatchCommit,
        changes: Changes,
        dead: CanonicalRows | None,
    ) -> Committed:
        if output.has_deletion_vectors:
            raise NotReplayableError(
                f"output of batch {pin.batch} has deletion vectors, "
                "expected files that tell what a commit has changed",
                hint="Compare with Spark, by `VERSION AS OF` the batch's commit and the one before "
                "it; `sluice explain-row` works.",
            )
        try:
            added = map(self._typed, output.rows_added(commit))
            removed = map(self._typed, output.rows_removed(commit))
            expected_rows, rows = changed_rows(changes, added, removed, self._merge_key)
        except OSError as exc:
            raise NotReplayableError(
                f"files that batch {pin.batch} has added or replaced are gone from the output, "
                f"so nothing tells what it has changed: {exc}",
                hint="VACUUM has removed them; replay a younger batch, or keep them longer with "
                "'delta.deletedFileRetentionDuration'.",
            ) from exc
        return Committed(rows, dead, "changes", expected=expected_rows)

    def _typed(self, table: pa.Table) -> pa.Table:
        schema = pa.schema([f.with_nullable(True) for f in self.places.kernel.output_schema])
        return table.select(schema.names).cast(schema)

    def _appended(
        self,
        pin: Pin,
        output: BatchCommits,
        commit: BatchCommit,
        expected_dead: CanonicalRows,
        dead: CanonicalRows | None,
    ) -> Committed:
        # rows without metadata do not tell their batch: only the files of the commit do
        tell_batch = self.places.kernel.row_metadata
        try:
            if not tell_batch or output.is_untouched(commit):
                return Committed(self._rows_of(output.rows_added(commit)), dead, "commit")
            if not self.places.has_own_table:
                raise NotReplayableError(
                    f"files of batch {pin.batch} were rewritten in a table that two INSERTs of "
                    "the job write: its rows do not tell which one they are of",
                    hint="Give each INSERT a separate table.",
                )
            now = output.rows_now({"_batch": pin.batch}, self.places.kernel.output_schema)
            # a dead letter that was sent again later has the number of this batch
            rows = self._rows_of([now]).outside(_places_of(expected_dead))
            return Committed(rows, dead, "table")
        except OSError as exc:
            if tell_batch or output.is_untouched(commit):
                raise SinkError(
                    f"a file with rows of batch {pin.batch} is gone from the output: {exc}",
                    hint="Restore the file; the table's log still names it.",
                ) from exc
            raise NotReplayableError(
                f"files of batch {pin.batch} were rewritten and removed, and rows without metadata "
                f"do not tell their batch: {exc}",
                hint="Replay a younger batch, or leave 'row-metadata' on in the next job.",
            ) from exc

    def _rows_of(self, tables: Iterable[pa.Table]) -> CanonicalRows:
        parts: list[tuple[pa.RecordBatch, pa.RecordBatch | None]] = []
        for table in tables:
            if table.num_rows:
                for rows in self._typed(table).to_batches():
                    parts.append((rows, self._places_in(rows)))
        return CanonicalRows.of(parts)

    def _places_in(self, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        if not self.places.kernel.rows_tell_records:
            return None
        return self._numbered(rows.select(_COORDINATE_COLUMNS).rename_columns(_PLACES))

    def _numbered(self, places: pa.RecordBatch) -> pa.RecordBatch:
        topics, partitions, offsets = places.columns
        numbers = numbered(self._topics, topics, partitions)
        return pa.RecordBatch.from_arrays([numbers, offsets], names=list(_COORDINATES))

    def _letters(self, batches: Iterable[pa.RecordBatch]) -> CanonicalRows:
        return CanonicalRows.of(
            (batch.select(["value"]), self._numbered(batch.select(_PLACES))) for batch in batches
        )

    def _letters_in(
        self,
        table: BatchCommits,
        batch: int,
        keep: Callable[[pa.Table], pa.Table] = lambda added: added,
    ) -> CanonicalRows | None:
        """None if they cannot be read any more; a batch without any has no commit."""
        commit = table.of(batch)
        if commit is None:
            return CanonicalRows.merged([]) if table.covers(batch) else None
        try:
            tables = [keep(added) for added in table.rows_added(commit)]
        except OSError:
            return None
        return self._letters(
            batch for table in tables for batch in table.select([*_PLACES, "value"]).to_batches()
        )

    def _committed_event(self, pin: Pin) -> EventTimeResult:
        assert self._event is not None, "the job has event time or windows"
        late = self._history.late
        assert late is not None, "such a job has a table of late records"
        records = self._letters_in(late, pin.batch)
        return EventTimeResult(pin.start_offsets, records, self._event.state.after(pin.batch))

    def _of_this_insert(self, letters: pa.Table) -> pa.Table:
        """In a statement set, the letters of this INSERT's topics and with one of its reasons."""
        kernel = self.places.kernel
        if kernel.member is None:
            return letters
        if kernel.reads:
            letters = letters.filter(pc.is_in(letters["topic"], pa.array(kernel.topic_names)))
        own = [kernel.member.is_told(reason) for reason in letters.column("reason").to_pylist()]
        return letters.filter(pa.array(own, pa.bool_()))

    def _sent(
        self, pin: Pin, sink: KafkaSink, expected: CanonicalRows
    ) -> tuple[CanonicalRows, int]:
        """The records of a Kafka sink; repeats of expected records are counted, not returned."""
        header = ("sluice-batch", str(pin.batch).encode())
        awaited = expected.counted()
        rows: list[tuple[int | None, int | None, str]] = []
        seen: dict[tuple[int | None, int | None, str], int] = {}
        repeated = 0
        with KafkaRecords(_as_sent(sink)) as records:
            ranges = self._sent_ranges(pin, sink)
            sent = records.marked(sink.kafka.topic, ranges, header, _SOURCE_HEADERS)
            for (topic, partition, offset), key, value in sent:
                if topic is None or topic.decode() not in self.places.kernel.topic_names:
                    continue
                place = (self._number_of(topic, partition), _int_or_none(offset))
                row = (*place, _sent_text(sink, key, value))
                seen[row] = seen.get(row, 0) + 1
                if row in awaited and seen[row] > awaited[row]:
                    repeated += 1
                else:
                    rows.append(row)
        if len(rows) < len(expected):
            _require_kept(pin, sink, ranges, (len(rows), len(expected)))
        return CanonicalRows.of_texts(rows), repeated

    def _sent_ranges(self, pin: Pin, sink: KafkaSink) -> dict[int, tuple[int, int]]:
        """Offsets from the batch's time to the next batch's, which contain all its records."""
        cluster, topic = KafkaCluster(_as_sent(sink)), sink.kafka.topic
        start = cluster.offsets_at(topic, pin.batch_timestamp_ms - _CLOCK_SLACK_MS)
        after = self._history.pins.read(pin.batch + 1)
        end = (
            cluster.end_offsets(topic)
            if after is None
            else cluster.offsets_at(topic, after.batch_timestamp_ms + _CLOCK_SLACK_MS)
        )
        count = sum(end[p] - start.get(p, 0) for p in end)
        if count > MAX_SINK_RECORDS:
            raise NotReplayableError(
                f'topic "{topic}" has {count} records around batch {pin.batch}, '
                f"expected at most {MAX_SINK_RECORDS}",
                hint="Replay a batch of a quieter time, or write to a delta sink.",
            )
        return {p: (start.get(p, 0), end[p]) for p in end}

    def _result(
        self, pin: Pin, expected: Recomputed, in_output: Committed, *, diff: bool
    ) -> dict[str, Any]:
        expected_rows = expected.rows if in_output.expected is None else in_output.expected
        committed = in_output.rows
        if len(committed) and committed.places()[0] == (None, None):  # no row has a place
            expected_rows = expected_rows.without_places()
        unlike = [("output", d) for d in differences(expected_rows, committed)]
        if in_output.dead is not None:
            unlike += [("dead_letters", d) for d in differences(expected.dead, in_output.dead)]
        unlike += _event_differences(expected.event, in_output.event)
        ranges = pin.ranges()
        lost = {d for _, d in unlike if _is_of(ranges, d) and not expected.was_read(d)}
        shown = [(table, d) for table, d in unlike if d not in lost]
        gone = _with_single(lost, expected.missing)
        verdict = _verdict(expected, in_output, is_different=bool(shown), is_incomplete=bool(gone))
        return {
            "batch": pin.batch,
            "pin": shown_pin(pin, self._topics),
            "verdict": verdict,
            "identical": verdict is Verdict.IDENTICAL,
            "compared_with": in_output.source,
            "rows": len(committed),
            "expected_rows": len(expected_rows),
            "digest": expected_rows.digest(),
            "committed_digest": committed.digest(),
            "dead_letters": None if in_output.dead is None else len(in_output.dead),
            "expected_dead_letters": len(expected.dead),
            "repeated": in_output.repeated,
            "difference_count": len(shown),
            "differences": [self._shown(table, d) for table, d in shown[:MAX_DIFFERENCES]]
            if diff
            else [],
            "records_missing": [Gap(*each).as_json(self._topics) for each in gone],
        }

    def _shown(self, table: str, difference: Difference) -> dict[str, Any]:
        number = difference.partition
        where = {"partition": None} if number is None else place_json(self._topics, number)
        values = {"expected": difference.expected, "found": difference.actual}
        return {
            "kind": difference.kind,
            "table": table,
            **where,
            "offset": difference.offset,
            **{name: None if text is None else json.loads(text) for name, text in values.items()},
        }


def _as_sent(sink: KafkaSink) -> KafkaOptions:
    """How the topic is read: what an aborted transaction has sent is in no committed batch."""
    return sink.kafka.uncommitted() if sink.transactional_id_prefix is None else sink.kafka


def _require_kept(
    pin: Pin, sink: KafkaSink, ranges: Mapping[int, tuple[int, int]], rows: tuple[int, int]
) -> None:
    """NotReplayableError if records of the batch may be removed, or cannot be read yet."""
    cluster, topic = KafkaCluster(sink.kafka), sink.kafka.topic
    readable = cluster.end_offsets(topic) if sink.transactional_id_prefix is not None else {}
    if readable and readable != cluster.high_watermarks(topic):
        raise NotReplayableError(
            f'topic "{topic}" has {rows[0]} of the {rows[1]} rows of batch {pin.batch}, and an '
            "open transaction keeps the others from being read",
            hint="Replay the batch again when that transaction has ended.",
        )
    begin = cluster.beginning_offsets(topic)
    is_cut = any(first <= begin[p] > 0 for p, (first, _) in ranges.items())
    if is_cut or topic_policy(cluster, topic).is_compacted:
        raise NotReplayableError(
            f'topic "{topic}" has {rows[0]} of the {rows[1]} rows of batch {pin.batch}, and its '
            f"{'retention' if is_cut else 'compaction'} may have removed the others",
            hint="Replay a younger batch, or let the topic keep its records longer.",
        )


def _is_of(ranges: Mapping[int, tuple[int, int]], difference: Difference) -> bool:
    """True if the record of `difference` is one of the batch's."""
    first, end = ranges.get(difference.partition or 0, (0, 0))
    return difference.offset is not None and first <= difference.offset < end


def _int_or_none(text: bytes | None) -> int | None:
    return None if text is None else int(text)


def _sent_text(sink: KafkaSink, key: bytes | None, value: bytes | None) -> str:
    if value is not None:
        return _json_text(sink.value, value)
    shown = "null" if key is None or sink.key is None else _json_text(sink.key.format, key)
    return f'{{"deleted":{shown}}}'


def _json_text(form: RecordFormat, data: bytes) -> str:
    """JSON as is, other text as a JSON string, other bytes in hexadecimal."""
    if form.name in (KafkaFormat.JSON, KafkaFormat.DEBEZIUM_JSON):
        return data.decode()
    try:
        return json.dumps({"text": data.decode()})
    except UnicodeDecodeError:
        return json.dumps({"bytes": data.hex()})


def _places_of(dead: CanonicalRows) -> set[tuple[int, int]]:
    return {(p, o) for p, o in dead.places() if p is not None and o is not None}


def _verdict(
    expected: Recomputed, in_output: Committed, *, is_different: bool, is_incomplete: bool
) -> Verdict:
    if is_different:
        return Verdict.DIFFERENT
    if is_incomplete:
        return Verdict.RECORDS_MISSING
    pairs: list[tuple[CanonicalRows | None, CanonicalRows | None]] = [
        (expected.rows, in_output.rows),
        (expected.dead, in_output.dead),
    ]
    if expected.event is not None and in_output.event is not None:
        pairs.append((expected.event.late, in_output.event.late))
    known = [pair for pair in pairs if pair[0] is not None and pair[1] is not None]
    if expected.changes or any(one or other for one, other in known):
        return Verdict.IDENTICAL
    return Verdict.NOTHING_TO_COMPARE


def _event_differences(
    expected: EventTimeResult | None, actual: EventTimeResult | None
) -> list[tuple[str, Difference]]:
    unlike: list[tuple[str, Difference]] = []
    if expected is None or actual is None:
        return unlike
    if expected.late is not None and actual.late is not None:
        unlike += [("late_records", d) for d in differences(expected.late, actual.late)]
    if expected.after is not None and actual.after is not None:
        state = state_differences(expected.after, actual.after)
        if state is not None:
            unlike.append(("state", Difference("changed", None, None, *map(json.dumps, state))))
    return unlike


def _with_single(rows: set[Difference], gone: tuple[Range, ...]) -> list[Range]:
    ranges = list(gone)
    for partition, offset in sorted({(d.partition or 0, d.offset or 0) for d in rows}):
        if not any(p == partition and first <= offset < end for p, first, end in gone):
            ranges.append((partition, offset, offset + 1))
    return ranges
