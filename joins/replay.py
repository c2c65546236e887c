"""Replays a committed batch from its pin, without Spark, and compares it with what was committed.

The records are read again from Kafka, joined with the pinned versions at the pinned time, and the
rows are compared in a canonical form. Nothing of the job is changed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.adapters.kafka_cluster import KafkaCluster
from joins.adapters.kafka_records import KafkaRecords
from joins.adapters.kafka_sink import RecordEncoding
from joins.errors import (
    BatchNotCommittedError,
    NotReplayableError,
    RecordsExpiredError,
    SinkError,
)
from joins.history import BatchCommit, BatchCommits, History
from joins.kernels.canonical import CanonicalRows, Difference, differences
from joins.kernels.probe import JoinedBatch, join_batch
from joins.kernels.render import with_text_times
from joins.past_indexes import PastIndexes
from joins.pins import Pin, pin_json
from joins.plan import DeltaSink, KafkaSink
from joins.probe_task import pinned_context

MAX_DIFFERENCES = 100
MAX_SINK_RECORDS = 5_000_000
_CLOCK_SLACK_MS = 60_000
_COORDINATES = ("partition", "offset")
_SOURCE_HEADERS = ("sluice-src-topic", "sluice-src-partition", "sluice-src-offset")
Range = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What a batch gives when it is joined again.

    Attributes:
        rows: canonical, in the form of the sink.
        dead: (partition, offset, value) of the dead letters, canonical.
        missing: (partition, first, end) of offsets that retention has removed.
        read: partition → offsets of the records that were read.
    """

    rows: CanonicalRows
    dead: CanonicalRows
    missing: tuple[Range, ...]
    read: Mapping[int, npt.NDArray[np.int64]]

    def was_read(self, difference: Difference) -> bool:
        """Whether the record of `difference` was there; compaction removes single ones."""
        if difference.partition is None:
            return True
        offsets = self.read.get(difference.partition)
        return offsets is not None and bool((offsets == difference.offset).any())


@dataclass(frozen=True, slots=True)
class Committed:
    """What the output has of a batch.

    Attributes:
        source: `commit` (the files that the batch added), `table` (the newest version's rows of the
            batch: somebody has rewritten those files) or `topic`.
        repeated: records that an at-least-once sink has more than once.
    """

    rows: CanonicalRows
    dead: CanonicalRows | None
    source: str
    repeated: int = 0


def refuse_event_batch(pin: Pin, what: str) -> None:
    """See that a batch is a function of its records, its versions and its clock alone.

    Raises:
        NotReplayableError: it also has rows that waited, or windows.
    """
    if pin.event is not None:
        raise NotReplayableError(
            f"{what} is of a job with event time or windows, whose rows also come from its state",
            hint="Look at the output, the dead letters, the late records and `event_time` of the "
            "job's status.",
        )


class PastRecords:
    """The records of old batches, as far as Kafka still has them."""

    def __init__(self, history: History) -> None:
        self._history = history
        kafka = history.places.probe_kafka
        self._records = KafkaRecords(kafka)
        self._cluster = KafkaCluster(kafka, keep_open=True)

    def close(self) -> None:
        """End both connections."""
        self._records.close()
        self._cluster.close()

    def check_topic(self, pin: Pin) -> None:
        """See that the topic is still the one that the batch has read.

        Raises:
            RecordsExpiredError: it is gone, or another one has its name.
        """
        found = self._cluster.describe(pin.topic)
        wanted = self._history.life_of(pin.batch).topic_id
        if found is None or found.topic_id != wanted:
            told = "is gone" if found is None else f"has id {found.topic_id}, expected {wanted}"
            raise RecordsExpiredError(
                f'topic "{pin.topic}" of batch {pin.batch} {told}',
                hint="The records of this batch cannot be read again.",
            )

    def ends(self, topic: str) -> tuple[dict[int, int], dict[int, int]]:
        """(oldest offsets, offsets behind the newest record) by partition."""
        return self._cluster.beginning_offsets(topic), self._cluster.end_offsets(topic)

    def kept(self, pin: Pin) -> tuple[dict[int, tuple[int, int]], tuple[Range, ...]]:
        """(partition → range that is there, ranges that retention has removed) of a batch."""
        self.check_topic(pin)
        begin = self._cluster.beginning_offsets(pin.topic)
        ranges: dict[int, tuple[int, int]] = {}
        gone: list[Range] = []
        for partition, end in sorted(pin.end_offsets.items()):
            start = pin.start_offsets.get(partition, 0)
            first = min(max(start, begin.get(partition, end)), end)
            ranges[partition] = (first, end)
            if start < first:
                gone.append((partition, start, first))
        return ranges, tuple(gone)

    def read(self, topic: str, ranges: Mapping[int, tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        """The records of `ranges`, in the form that the kernel takes."""
        return self._records.batches(topic, ranges)


class Replayer:
    """Replays batches of one job; close it when done."""

    def __init__(self, history: History, indexes: PastIndexes) -> None:
        self._history = history
        self.places = history.places
        self._indexes = indexes
        self.records = PastRecords(history)

    def close(self) -> None:
        """End the connections."""
        self.records.close()

    def replay(self, batch: int, *, diff: bool = False) -> dict[str, Any]:
        """Join `batch` again and compare; the result is JSON values.

        Args:
            batch: its number.
            diff: tell the differences, the first `MAX_DIFFERENCES`; else only their number.

        Raises:
            UnknownBatchError: it has no pin.
            BatchNotCommittedError: it has no output.
            NotReplayableError: the sink keeps nothing, or not what the batch gave it.
            RecordsExpiredError: none of its records is in Kafka any more.
            PinnedVersionExpiredError: a version cannot be read any more.
        """
        if not isinstance(self.places.sink, DeltaSink | KafkaSink):
            raise NotReplayableError(
                f'sink "{self.places.sink.kind}" keeps no rows, a delta or kafka sink does',
                hint="Use explain-row to see what a record is joined with.",
            )
        if isinstance(self.places.sink, DeltaSink) and self.places.sink.merge_key:
            raise NotReplayableError(
                f"rows of later batches replace those of batch {batch} in the output",
                hint="Replay a batch of a job that only adds rows.",
            )
        pin = self._history.pin(batch)
        refuse_event_batch(pin, f"batch {batch}")
        if not self._history.is_committed(batch):
            raise BatchNotCommittedError(
                f"batch {batch} is pinned and not committed",
                hint="It is running or was abandoned; look again, or choose an older batch.",
            )
        expected = self.recomputed(pin)
        found = self.committed(pin, expected)
        return _result(pin, expected, found, diff=diff)

    def recomputed(self, pin: Pin) -> Recomputed:
        """Join the records of `pin` again."""
        ranges, missing = self.records.kept(pin)
        if missing and not any(first < end for first, end in ranges.values()):
            raise RecordsExpiredError(
                f'topic "{pin.topic}" has no record of batch {pin.batch} any more',
                hint="Its retention removed them; only younger batches can be replayed.",
            )
        indexes, context = self._indexes.of(pin.versions), pinned_context(pin)
        rows: list[CanonicalRows] = []
        dead: list[CanonicalRows] = []
        read: dict[int, list[pa.Array]] = {}
        for records in self.records.read(pin.topic, ranges):
            read.setdefault(records.column("partition")[0].as_py(), []).append(
                records.column("offset")
            )
            joined = join_batch(self.places.kernel, records, indexes, context)
            rows.append(self._canonical(joined))
            dead.append(_letters([joined.dead_letters]))
        offsets = {p: pa.concat_arrays(parts).to_numpy() for p, parts in read.items()}
        return Recomputed(CanonicalRows.merged(rows), CanonicalRows.merged(dead), missing, offsets)

    def _canonical(self, joined: JoinedBatch) -> CanonicalRows:
        places = joined.coordinates.select(list(_COORDINATES))
        sink, output = self.places.sink, self.places.kernel.output
        if not isinstance(sink, KafkaSink):
            return CanonicalRows.of([(joined.rows, places)])
        encoding = RecordEncoding.of(sink, output)
        texts = encoding.values(with_text_times(joined.rows, output), joined.kinds).to_pylist()
        columns = (places.column(name).to_pylist() for name in _COORDINATES)
        return CanonicalRows.of_texts(zip(*columns, texts, strict=True))

    # The other side
    # ------------------------------------------------------------------------------------

    def committed(self, pin: Pin, expected: Recomputed) -> Committed:
        """What the output has of the batch."""
        dead = self._committed_letters(pin)
        if isinstance(self.places.sink, KafkaSink):
            rows, repeated = self._sent(pin, self.places.sink, expected.rows)
            return Committed(rows, dead, "topic", repeated)
        output = self._history.output
        commit = None if output is None else output.of(pin.batch)
        if output is None or commit is None:
            raise BatchNotCommittedError(
                f"commit of batch {pin.batch} is not in the output's log any more",
                hint="The output was replaced, or its log was cleaned by its owner.",
            )
        return self._appended(pin, output, commit, (dead, expected.dead))

    def _appended(
        self,
        pin: Pin,
        output: BatchCommits,
        commit: BatchCommit,
        dead: tuple[CanonicalRows | None, CanonicalRows],
    ) -> Committed:
        committed, expected = dead
        with_places = self.places.kernel.row_metadata
        try:
            is_untouched = not with_places or output.is_untouched(commit)
            if not is_untouched and not self.places.has_own_table:
                raise NotReplayableError(
                    f"files of batch {pin.batch} were rewritten in a table that two INSERTs of "
                    "the job write: its rows do not tell which one they are of",
                    hint="Give each INSERT a table of its own.",
                )
            if not is_untouched:
                schema = self.places.kernel.output_schema
                now = output.rows_now({"_batch": pin.batch}, schema)
                letters = {(p, o) for p, o in expected.places() if p is not None and o is not None}
                rows = self._rows_of([now]).outside(letters)  # those replayed came later
                return Committed(rows, committed, "table")
            return Committed(self._rows_of(output.rows_added(commit)), committed, "commit")
        except OSError as exc:
            raise SinkError(
                f"a file of batch {pin.batch} is gone from the output: {exc}",
                hint="Restore the file; the table's log still names it.",
            ) from exc

    def _rows_of(self, tables: Iterable[pa.Table]) -> CanonicalRows:
        schema = pa.schema([f.with_nullable(True) for f in self.places.kernel.output_schema])
        parts: list[tuple[pa.RecordBatch, pa.RecordBatch | None]] = []
        for table in tables:
            if table.num_rows:
                for rows in table.select(schema.names).cast(schema).to_batches():
                    parts.append((rows, self._places_in(rows)))
        return CanonicalRows.of(parts)

    def _places_in(self, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        if not self.places.kernel.row_metadata:
            return None
        return rows.select(["_partition", "_offset"]).rename_columns(list(_COORDINATES))

    def _committed_letters(self, pin: Pin) -> CanonicalRows | None:
        """The dead letters that the batch committed, None if that cannot be told any more."""
        commit = self._history.dead_letters.of(pin.batch)
        if commit is None:
            return None
        try:
            tables = list(self._history.dead_letters.rows_added(commit))
        except OSError:
            return None
        return _letters(
            batch
            for table in tables
            for batch in self._told_here(table).select([*_COORDINATES, "value"]).to_batches()
        )

    def _told_here(self, letters: pa.Table) -> pa.Table:
        """Of a statement set, the letters that are not of another INSERT alone."""
        member = self.places.kernel.member
        if member is None:
            return letters
        reasons = letters.column("reason").to_pylist()
        return letters.filter(pa.array([member.is_told(reason) for reason in reasons], pa.bool_()))

    def _sent(
        self, pin: Pin, sink: KafkaSink, expected: CanonicalRows
    ) -> tuple[CanonicalRows, int]:
        """The records of a Kafka sink, repeats of the expected ones left out and counted."""
        header = ("sluice-batch", str(pin.batch).encode())
        wanted = expected.counted()
        rows: list[tuple[int, int, str]] = []
        seen: dict[tuple[int, int, str], int] = {}
        repeated = 0
        with KafkaRecords(sink.kafka) as records:
            ranges = self._sent_ranges(pin, sink)
            found = records.marked(sink.kafka.topic, ranges, header, _SOURCE_HEADERS)
            for (topic, partition, offset), _, value in found:
                if topic != pin.topic.encode():
                    continue
                row = (int(partition or b"-1"), int(offset or b"-1"), (value or b"").decode())
                seen[row] = seen.get(row, 0) + 1
                if row in wanted and seen[row] > wanted[row]:
                    repeated += 1
                else:
                    rows.append(row)
        return CanonicalRows.of_texts(rows), repeated

    def _sent_ranges(self, pin: Pin, sink: KafkaSink) -> dict[int, tuple[int, int]]:
        """Between the batch's time and the next batch's: nothing of it is sent before or after."""
        cluster, topic = KafkaCluster(sink.kafka), sink.kafka.topic
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


def _letters(batches: Iterable[pa.RecordBatch]) -> CanonicalRows:
    """Dead letters by record and value: the wording of a reason may change between versions."""
    return CanonicalRows.of(
        (batch.select(["value"]), batch.select(list(_COORDINATES))) for batch in batches
    )


def _result(pin: Pin, expected: Recomputed, found: Committed, *, diff: bool) -> dict[str, Any]:
    wanted, committed = expected.rows, found.rows
    if len(committed) and committed.places()[0] == (None, None):
        wanted = wanted.without_places()
    unlike = [("output", d) for d in differences(wanted, committed)]
    if found.dead is not None:
        unlike += [("dead_letters", d) for d in differences(expected.dead, found.dead)]
    shown = [(table, d) for table, d in unlike if expected.was_read(d)]
    gone = _with_single({d for _, d in unlike if not expected.was_read(d)}, expected.missing)
    return {
        "batch": pin.batch,
        "pin": pin_json(pin),
        "identical": not shown and not gone,
        "compared_with": found.source,
        "rows": len(committed),
        "expected_rows": len(wanted),
        "digest": wanted.digest(),
        "committed_digest": committed.digest(),
        "dead_letters": None if found.dead is None else len(found.dead),
        "expected_dead_letters": len(expected.dead),
        "repeated": found.repeated,
        "difference_count": len(shown),
        "differences": [_shown(table, d) for table, d in shown[:MAX_DIFFERENCES]] if diff else [],
        "records_missing": [{"partition": p, "from": first, "to": end} for p, first, end in gone],
    }


def _with_single(rows: set[Difference], gone: tuple[Range, ...]) -> list[Range]:
    """`gone`, and the offsets of `rows` that are not in it."""
    ranges = list(gone)
    for partition, offset in sorted({(d.partition or 0, d.offset or 0) for d in rows}):
        if not any(p == partition and first <= offset < end for p, first, end in gone):
            ranges.append((partition, offset, offset + 1))
    return ranges


def _shown(table: str, difference: Difference) -> dict[str, Any]:
    values = {"expected": difference.expected, "found": difference.found}
    return {
        "kind": difference.kind,
        "table": table,
        "partition": difference.partition,
        "offset": difference.offset,
        **{name: None if text is None else json.loads(text) for name, text in values.items()},
    }
