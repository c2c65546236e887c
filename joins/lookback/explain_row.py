"""Explains one record of the stream: its batch, its pin, and the rows it was joined with.

The record alone is joined again with the versions of its pin, role by role; the dimensions' rows
come from the changelog. Nothing of the job changes.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from joins.durable.letter_replays import LetterReplays
from joins.durable.pins import Pin, shown_pin
from joins.kernels.changelog.row_kinds import DELETE
from joins.kernels.formats.decoders import RecordColumns
from joins.kernels.formats.encoders import values_of
from joins.kernels.index.dimension_index import DimensionIndex
from joins.kernels.probe.probe import JoinedBatch, join_batch
from joins.kernels.records.layout import MORE_OF_A_RECORD
from joins.lookback.dead_letters import DeadLetter, DeadLetters
from joins.lookback.event_replay import EventJourneys, Journey
from joins.lookback.history import History
from joins.lookback.past_indexes import PastIndexes, PastRecords
from joins.lookback.plans import OfPlans
from joins.lookback.row_matches import RowMatches, json_rows, limited_rows
from joins.plan.errors import (
    RecordsExpiredError,
    SourceError,
    UnknownLetterError,
    UnknownTopicError,
)
from joins.plan.plan import JoinType
from joins.plan.stream_topics import partition_of
from joins.worker.probe_task import pinned_context

_DELETED = (
    "the output has no row of its key: the record deletes it, has no match in an INNER JOIN, or "
    "WHERE is not true for it"
)
_NO_BATCH = {"batch": None, "pin": None, "committed_at_ms": None}


@dataclass(frozen=True, slots=True)
class Coordinates:
    """A record's address; `partition` is the topic's own, or the stream's number of it."""

    topic: str
    partition: int
    offset: int

    def as_json(self) -> dict[str, Any]:
        partition = partition_of(self.partition)
        return {"topic": self.topic, "partition": partition, "offset": self.offset}


@dataclass(frozen=True, slots=True)
class _Outcome:
    state: str
    reason: str
    rows: Sequence[Mapping[str, Any]]
    rows_from: str | None


class RowExplainer:
    """Explains records of one job; close it when done."""

    def __init__(self, history: History, indexes: PastIndexes) -> None:
        self._history = history
        self.places = history.places
        self._indexes = indexes
        self._matches = RowMatches(history.places, indexes)
        self._records = PastRecords(history)
        event = history.places.event
        self._journeys = None if event is None else EventJourneys(history, event)
        self._letters = DeadLetters(
            history.places.dead_letters,
            LetterReplays(history.places.replays),
            lambda: self._records.topics,
        )
        self._of_plans = OfPlans(history, RowExplainer)

    def close(self) -> None:
        self._of_plans.close()
        self._records.close()

    def explain(self, place: Coordinates) -> dict[str, Any]:
        """Explain the record at `place` by the plan of its batch; returns JSON values.

        `state` is one of `joined`, `unmatched` (a row padded with NULL by LEFT JOIN), `filtered`
        (by WHERE), `no-match` (by INNER JOIN), `deleted` (by a change), `dead-letter`,
        `being-joined`, `not-yet-joined`, `in-open-transaction`, `held`, `before-start`,
        `after-end` (of a bounded stream), `skipped`, `expired`, `no-record`, `beyond-end` (of the
        topic); with event time or windows also `waiting`, `late` and `in-windows`; `reason` is a
        sentence. With event time, `event_time` has the record's journey, and batch and pin belong
        to the batch that joined it.

        Raises:
            UnknownTopicError: the job does not read that topic or partition.
            PinnedVersionExpiredError: a version of its pin cannot be read any more.
        """
        topics = self._records.topics
        number = topics.number(place.topic, place.partition)
        kernel = self.places.kernel
        if number is None or place.offset < 0 or not kernel.is_read(number):
            known, place_text = topics.of(kernel.reads), f"{place.partition}/{place.offset}"
            reader = kernel.member.name if kernel.member and kernel.reads else "the job"
            raise UnknownTopicError(
                f'topic "{place.topic}" at {place_text} is not read by {reader}',
                hint=f"Write {known.names[0]}/partition/offset, with numbers from 0 on"
                + (f"; its topics are {known.text}." if topics.are_several else "."),
            )
        document = self._explained(replace(place, partition=number))
        file = self._records.file_of(number, place.offset)
        if file is not None:
            document["reason"] += f"; it is {file}"
        return document

    def _explained(self, place: Coordinates) -> dict[str, Any]:
        pin = self._history.covering(place.partition, place.offset)
        if pin is None:
            return self._without_batch(place)
        if pin.plan != self.places.plan:
            return self._of_plans.of(pin.plan).explain_in(place, pin)
        return self.explain_in(place, pin)

    def explain_in(self, place: Coordinates, pin: Pin) -> dict[str, Any]:
        """Like `explain`, for a record of the batch of `pin`, which has this plan."""
        if self._journeys is not None:
            return self._with_journey(self._journeys, place, pin)
        return self._with_batch(place, pin)

    # Records that no batch has
    # ------------------------------------------------------------------------------------------

    def _without_batch(self, place: Coordinates) -> dict[str, Any]:
        state, reason = self._why_without_batch(place)
        record = self._record_now(place) if state in ("held", "not-yet-joined") else None
        return {
            "coordinates": place.as_json(),
            "state": state,
            "reason": reason,
            **_NO_BATCH,
            **limited_rows("output_rows", ()),
            "rows_from": None,
            **_record_json(record, self.places.kernel.columns),
            "dimensions": [],
            "dead_letter": None,
        }

    def _why_without_batch(self, place: Coordinates) -> tuple[str, str]:
        begin, end = self._records.ends(place.partition)
        at, last = place.offset, end.get(place.partition)
        if last is None:
            raise UnknownTopicError(
                f'topic "{place.topic}" has no partition {partition_of(place.partition)}, it has '
                f"{[*map(partition_of, sorted(end))]}",
                hint="Use one of the topic's partitions.",
            )
        late = self._behind(place)
        if late is not None:
            return late
        if at >= last:
            return self._behind_transaction(place, last)
        early = self._before(place)
        if early is not None:
            return early
        if at < begin.get(place.partition, 0):
            return "expired", "retention has removed the record before a batch had it"
        if self._history.pins.newest() is None and not self._is_open():
            return "held", "the record waits until every table is complete"
        return "not-yet-joined", "no batch has the record yet; it is the next ones' turn"

    def _behind_transaction(self, place: Coordinates, last: int) -> tuple[str, str]:
        """Records after the last stable offset do not exist, or are not readable yet."""
        end = self._records.high_watermarks(place.partition).get(place.partition, last)
        if place.offset >= end:
            return "beyond-end", f"the partition ends at offset {end}: there is no such record"
        reason = f"an open transaction keeps the partition from being read from offset {last} on"
        return "in-open-transaction", reason

    def _before(self, place: Coordinates) -> tuple[str, str] | None:
        """Why no kept batch has a record that is older than the next one to be joined."""
        lives, oldest = self._history.lives(), self._history.oldest_pin()
        first, start = (
            life.start_offsets.get(place.partition, 0) for life in (lives[0], lives[-1])
        )
        if place.offset < first:
            return "before-start", f"the job starts at offset {first} of the partition"
        known = 0 if oldest is None else oldest.start_offsets.get(place.partition, 0)
        if oldest is not None and oldest.batch > 0 and place.offset < known:
            return "expired", f"its batch is older than batch {oldest.batch}, the oldest kept pin"
        if place.offset < start:
            cause = lives[-1].cause
            return "skipped", f'"{cause}" was acknowledged: the job went on at offset {start}'
        return None

    def _behind(self, place: Coordinates) -> tuple[str, str] | None:
        """Why a bounded job never joins a record, even one that does not exist."""
        ends = self._history.lives()[-1].end_offsets
        if ends is None:
            return None
        end = ends.get(place.partition)
        if end is None:
            return "after-end", "the job is bounded, and the partition is not one of its partitions"
        if place.offset >= end:
            return "after-end", f"the job is bounded and ends at offset {end} of the partition"
        return None

    def _is_open(self) -> bool:
        return self.places.checkpoint.read_phase() is not None

    def _record_now(self, place: Coordinates) -> pa.RecordBatch | None:
        ranges = {place.partition: (place.offset, place.offset + 1)}
        return next(self._records.read(ranges), None)

    # Records of a batch
    # ------------------------------------------------------------------------------------------

    def _with_batch(self, place: Coordinates, pin: Pin) -> dict[str, Any]:
        letter = self._letter(place, pin)
        record = self._record(place, pin, letter)
        indexes = self._indexes.of(pin.versions) if record is not None else {}
        joined = None if record is None else self._join(record, indexes, pin)
        if joined is not None and self.places.kernel.member and not joined.dead_letters.num_rows:
            letter = None  # of another INSERT
        outcome = self._outcome(place, pin, joined, letter)
        return {
            **self._document(place, pin, outcome, letter),
            **_record_json(record, self.places.kernel.columns),
            "dimensions": self._matches.of(record, indexes, pin),
        }

    def _with_journey(
        self, journeys: EventJourneys, place: Coordinates, arrived: Pin
    ) -> dict[str, Any]:
        letter = self._letter(place, arrived)
        record = self._record(place, arrived, letter)
        journey = journeys.of(record, (place.partition, place.offset), arrived)
        pin = journey.pin
        letter = letter or self._letter(place, pin)
        is_joined = journey.arrival is not None and journey.released is not None
        indexes = self._indexes.of(pin.versions) if is_joined else {}
        joined = journeys.joined(journey, indexes)
        windows = [] if joined is None else journeys.windows(journey, joined)
        outcome = self._event_outcome(journey, joined, letter, windows)
        if outcome is None:
            outcome = self._outcome(place, pin, joined, letter)
            if journey.waited is not None and (
                journey.waited.waited_ms or journey.waited.corrected_ms
            ):
                reason = f"{outcome.reason}; it {journey.waited.text}"
                outcome = replace(outcome, reason=reason)
        return {
            **self._document(place, pin, outcome, letter),
            **_record_json(record, self.places.kernel.columns),
            "dimensions": self._matches.of(record if is_joined else None, indexes, pin),
            "event_time": {**journey.as_json(), "windows": windows},
        }

    def _event_outcome(
        self,
        journey: Journey,
        joined: JoinedBatch | None,
        letter: DeadLetter | None,
        windows: Sequence[Mapping[str, Any]],
    ) -> _Outcome | None:
        """Outcomes that exist only with event time or windows; None for others."""
        if letter is not None or not self._history.is_committed(journey.arrived.batch):
            return None
        if journey.waited is not None and journey.late is not None:
            reason = (
                f"it {journey.waited.text}, and an INNER JOIN found no row: see the late records"
            )
            return _Outcome("late", reason, (), None)
        if journey.waited is not None and journey.waits:
            return _Outcome("waiting", f"it {journey.waited.text}", (), None)
        if journey.late is not None:
            what = "the join" if journey.late["reason"] == "join" else "every one of its windows"
            reason = f"it came behind the watermark, too late for {what}: see the late records"
            return _Outcome("late", reason, (), None)
        if journey.waits:
            reason = "it waits until the watermark has passed its rowtime"
            return _Outcome("waiting", reason, (), None)
        if joined is None or not windows:
            return None
        fired = sum(window["fired_in_batch"] is not None for window in windows)
        reason = f"it is counted in {len(windows)} windows, of which {fired} have fired"
        if windows[0]["merges"]:
            reason = "it is counted in a session, which others may have made longer"
        return _Outcome("in-windows", reason, (), None)

    def _document(
        self, place: Coordinates, pin: Pin, outcome: _Outcome, letter: DeadLetter | None
    ) -> dict[str, Any]:
        return {
            "coordinates": place.as_json(),
            "state": outcome.state,
            "reason": outcome.reason,
            "batch": pin.batch,
            "pin": shown_pin(pin, self._records.topics),
            "committed_at_ms": self._history.committed_at_ms(pin.batch),
            **limited_rows("output_rows", outcome.rows),
            "rows_from": outcome.rows_from,
            "dead_letter": None if letter is None else letter.as_json(shown_bytes=0),
        }

    def _letter(self, place: Coordinates, pin: Pin) -> DeadLetter | None:
        try:
            return self._letters.find(place.partition, place.offset, pin.batch)
        except UnknownLetterError:
            return None

    def _record(
        self, place: Coordinates, pin: Pin, letter: DeadLetter | None
    ) -> pa.RecordBatch | None:
        try:
            self._records.check_topics(pin)
            record = self._record_now(place)
        except (RecordsExpiredError, SourceError):
            record = None
        if record is not None or letter is None:
            return record
        stamp = None if letter.timestamp is None else letter.timestamp
        columns = {
            "value": pa.array([letter.value], pa.binary()),
            "partition": pa.array([place.partition], pa.int32()),
            "offset": pa.array([place.offset], pa.int64()),
            "timestamp": pa.array([stamp], pa.timestamp("us", tz="UTC")),
        }
        for item in MORE_OF_A_RECORD:
            columns[item.name] = pa.array([letter.more.get(item.name)], item.type)
        return pa.RecordBatch.from_pydict(columns)

    def _join(
        self, record: pa.RecordBatch, indexes: Mapping[str, DimensionIndex], pin: Pin
    ) -> JoinedBatch:
        return join_batch(self.places.kernel, record, indexes, pinned_context(pin))

    def _outcome(
        self, place: Coordinates, pin: Pin, joined: JoinedBatch | None, letter: DeadLetter | None
    ) -> _Outcome:
        if not self._history.is_committed(pin.batch):
            return _Outcome(*self._uncommitted(pin), (), None)
        rows, rows_from = self._rows(place, pin, joined)
        if letter is not None:
            by = letter.rows_by.get(self.places.insert + 1)
            replayed = "" if by is None else f"; replay {by} joined it"
            return _Outcome("dead-letter", letter.reason + replayed, rows, rows_from)
        if joined is None and not rows:
            reason = (
                "the record is not in Kafka any more, or the offset has none: it is of an aborted "
                "transaction, or the mark of one that has ended"
            )
            return _Outcome("expired" if self._is_removed(place) else "no-record", reason, (), None)
        if rows:
            return self._with_rows(joined, rows, rows_from)
        return _Outcome(*self._without_rows(joined), (), rows_from)

    def _uncommitted(self, pin: Pin) -> tuple[str, str]:
        if any(pin.batch in life.abandoned for life in self._history.lives()):
            return "skipped", f"batch {pin.batch} was given up with an operator's acknowledgement"
        return "being-joined", f"batch {pin.batch} is pinned and not committed yet"

    def _is_removed(self, place: Coordinates) -> bool:
        begin, _ = self._records.ends(place.partition)
        return place.offset < begin.get(place.partition, 0)

    def _rows(
        self, place: Coordinates, pin: Pin, joined: JoinedBatch | None
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Rows from the output if they have the record's coordinates, else computed again."""
        output = self._history.output
        kernel = self.places.kernel
        if output is not None and kernel.rows_tell_records and self.places.has_own_table:
            where = {"_partition": partition_of(place.partition), "_offset": place.offset}
            if self._journeys is None or joined is not None:  # else its batch is unknown
                where["_batch"] = pin.batch
            rows = output.rows_now(where, kernel.output_schema)
            return json_rows(rows.filter(pc.equal(rows["_topic"], place.topic))), "output"
        if joined is None:
            return [], None
        rows, kinds = joined.rows, joined.kinds
        if kinds is not None:
            rows = rows.filter(pc.not_equal(kinds, DELETE))
        return json_rows(pa.Table.from_batches([rows])), "computed"

    def _with_rows(
        self, joined: JoinedBatch | None, rows: Sequence[Mapping[str, Any]], rows_from: str | None
    ) -> _Outcome:
        if joined is not None and joined.matched == 0:
            reason = "a LEFT JOIN found no row of the table: its columns are NULL"
            return _Outcome("unmatched", reason, rows, rows_from)
        count = "one row" if len(rows) == 1 else f"{len(rows)} rows"
        return _Outcome("joined", f"the record has {count} in the output", rows, rows_from)

    def _without_rows(self, joined: JoinedBatch | None) -> tuple[str, str]:
        if joined is not None and joined.kinds is not None and DELETE in joined.kinds.to_pylist():
            return "deleted", _DELETED
        if joined is None or joined.rows.num_rows:
            return "joined", "the output does not have the record's rows any more"
        if joined.dead_letters.num_rows:
            return "dead-letter", str(joined.dead_letters.column("reason")[0].as_py())
        if joined.matched:
            return "filtered", "the record has a match, and WHERE is not true for it"
        inner = any(j.join_type is JoinType.INNER for j in self.places.kernel.joins)
        if inner and self.places.kernel.where is None:
            return "no-match", "an INNER JOIN found no row of the table"
        return "filtered", "no row is left after the joins and WHERE"


def _value(record: pa.RecordBatch, columns: RecordColumns) -> bytes | None:
    value: bytes | None = values_of(record, columns.value, columns.fields)[0].as_py()
    return value


def _record_json(record: pa.RecordBatch | None, columns: RecordColumns) -> dict[str, Any]:
    value = None if record is None else _value(record, columns)
    if value is None:
        return {"record": None}
    try:
        return {"record": value.decode("utf-8")}
    except UnicodeDecodeError:
        return {"record": None, "record_base64": base64.b64encode(value).decode()}
