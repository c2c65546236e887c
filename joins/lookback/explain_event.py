"""The way of one record through a job with event time or windows: came, waited, left, was counted.

The pins tell the watermarks before each batch, which are those behind the batch before it; so the
batch that let a record go is found without running any.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from joins.batch.event_state import EventSpec, EventState
from joins.batch.event_view import shown_ms
from joins.durable.pins import Pin
from joins.kernels.index.dimension_index import DimensionIndex
from joins.kernels.probe.event_times import LATE_RECORDS, event_times
from joins.kernels.probe.probe import JoinedBatch, join_arrivals, parse_records
from joins.kernels.windows.partials import partials
from joins.kernels.windows.spec import WindowSpec
from joins.kernels.windows.state import DUE, END, START
from joins.lookback.event_replay import PastState
from joins.lookback.history import History, PastEvent
from joins.plan.stream_topics import partition_of
from joins.worker.event_task import WINDOW_BUCKETS
from joins.worker.probe_task import pinned_context
from joins.worker.window_task import WindowClock


@dataclass(frozen=True, slots=True)
class Passed:
    """The batch in which the time came to where something waited for it.

    Attributes:
        after: how the time stood behind it.
    """

    pin: Pin
    after: EventState


@dataclass(frozen=True, slots=True)
class Journey:
    """What became of a record until it was joined.

    Attributes:
        arrived: the batch that has read it.
        arrival: the record behind the scan; None if it is not there, or dead.
        rowtime_ms: None of a record in processing time, too.
        released: the batch that joins it; None while it waits, or if it is not joined.
        late: what the table of late records says of it.
    """

    arrived: Pin
    arrival: pa.RecordBatch | None
    rowtime_ms: int | None
    released: Passed | None
    late: Mapping[str, Any] | None

    @property
    def pin(self) -> Pin:
        return self.arrived if self.released is None else self.released.pin

    @property
    def waits(self) -> bool:
        return self.arrival is not None and self.released is None and self.late is None

    def as_json(self) -> dict[str, Any]:
        before = EventState.before(self.arrived.of_event)
        release = self.released
        return {
            "rowtime_ms": self.rowtime_ms,
            "arrived_in_batch": self.arrived.batch,
            "watermark_at_arrival_ms": shown_ms(before.watermark),
            "released_in_batch": None if release is None else release.pin.batch,
            "released_by_watermark_ms": None
            if release is None
            else shown_ms(release.after.watermark),
            "released_by_processing_time": release is not None and release.after.processing_time,
            "late": self.late,
        }


class EventJourneys:
    """Finds the ways of records of one job."""

    def __init__(self, history: History, event: PastEvent) -> None:
        self._history = history
        self._kernel = history.places.kernel
        self._plan = event.plan
        self._spec = EventSpec.of(event.plan)
        self._state = PastState(event.places, history.places.app_id)

    def of(self, record: pa.RecordBatch | None, place: tuple[int, int], arrived: Pin) -> Journey:
        """The way of the record at `place`, which the batch of `arrived` has read."""
        late = self._late(*place)
        if record is None:
            return Journey(arrived, None, None, None, late)
        parsed = parse_records(self._kernel, record, pinned_context(arrived))
        if self._kernel.watermark is None:
            arrival = parsed.as_arrivals(parsed.living())
            return self._scanned(arrival, None, arrived, late)
        times = event_times(parsed, self._kernel.watermark, arrived.batch_timestamp_ms)
        before = EventState.before(arrived.of_event)
        watermark = before.watermark if self._spec.waits else before.window_watermark
        timed = (pa.array(times.times), pa.repeat(pa.scalar(watermark), len(times.times)))
        arrival = parsed.as_arrivals(times.rows, *timed)
        rowtime_ms = int(times.times[0]) if len(times.times) else None
        return self._scanned(arrival, rowtime_ms, arrived, late)

    def _scanned(
        self,
        arrival: pa.RecordBatch,
        rowtime_ms: int | None,
        arrived: Pin,
        late: Mapping[str, Any] | None,
    ) -> Journey:
        if arrival.num_rows == 0:
            return Journey(arrived, None, rowtime_ms, None, late)
        release = None
        if late is None or late["reason"] == "window":
            release = self._released(arrived, rowtime_ms)
        return Journey(arrived, arrival, rowtime_ms, release, late)

    def _released(self, arrived: Pin, rowtime_ms: int | None) -> Passed | None:
        if not self._spec.waits or rowtime_ms is None:
            return self._first(arrived, lambda _: True)
        return self._first(arrived, lambda state: state.release_ms >= rowtime_ms)

    def _first(self, arrived: Pin, holds: Callable[[EventState], bool]) -> Passed | None:
        """The first batch from that of `arrived` on behind which `holds`, as it does later on."""
        later = self._history.first_behind(
            arrived, lambda pin: holds(EventState.before(pin.of_event))
        )
        if later is not None:
            pin = self._history.last_before(later, arrived)
            return Passed(pin, EventState.before(later.of_event))
        newest = self._history.pins.newest() or arrived
        after = self._state.after(newest.batch)
        if after is None or not holds(after) or not self._history.is_committed(newest.batch):
            return None
        return Passed(newest, after)

    def _late(self, partition: int, offset: int) -> dict[str, Any] | None:
        """What the late records say of a record; None if it is none of them."""
        table = self._history.late
        assert table is not None, "a job with event time has a table of late records"
        place = {"partition": partition_of(partition), "offset": offset}
        for row in table.rows_now(place, LATE_RECORDS).to_pylist():
            if row["topic"] == self._kernel.topics.topic_of(partition).name:
                stamp = row["watermark"]
                late_at_ms = None if stamp is None else round(stamp.timestamp() * 1_000)
                return {"reason": row["reason"], "watermark_ms": late_at_ms}
        return None

    def joined(self, journey: Journey, indexes: Mapping[str, DimensionIndex]) -> JoinedBatch | None:
        """The rows of a record; below windows those that go into them."""
        if journey.arrival is None or journey.released is None:
            return None
        context = pinned_context(journey.pin)
        return join_arrivals(self._kernel, journey.arrival, indexes, context)

    def windows(self, journey: Journey, joined: JoinedBatch) -> list[dict[str, Any]]:
        """The windows that the rows of a record are counted in, and who has fired them.

        A session is told as far as the record alone makes it, and not who fired it: others merge.
        """
        if self._plan.window is None:
            return []
        spec = WindowSpec.of(self._plan, WINDOW_BUCKETS)
        clock = WindowClock.of(journey.pin, follows_clock=self._spec.follows_clock)
        bounds = partials(spec, clock.timed(joined.rows)).table.select([START, END, DUE])
        documents = []
        for start, end, due in sorted(set(zip(*bounds.to_pydict().values(), strict=True))):
            window: dict[str, Any] = {"start_ms": start, "end_ms": end, "merges": spec.merges}
            fired = None if spec.merges else self._fired(journey.pin, due)
            documents.append({**window, "fired_in_batch": fired})
        return documents

    def _fired(self, pin: Pin, due: int) -> int | None:
        firing = self._first(pin, lambda state: state.window_watermark >= due)
        return None if firing is None else firing.pin.batch
