"""What the next batch of the event loop is: its offsets, its versions, its clock, and its pin."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from joins.adapters.kafka.cluster import KafkaCluster
from joins.batch.event_batch import EventTables
from joins.batch.event_channels import Steps
from joins.batch.event_state import Advance, EventSpec, EventState, advance, batch_input
from joins.batch.event_view import EventView
from joins.batch.probe_side import ProbeHooks, ProbeSettings
from joins.durable.event_pin import EventPin
from joins.durable.pins import Pin
from joins.stream.bounds import behind_backlog, cut, up_to_backlog
from joins.stream.guards import first_offsets

_RECORDS_ON_EVENT = 20_000  # each may move the watermark, and every work item has all moves


@dataclass(frozen=True, slots=True)
class EventParts:
    """What the loop asks and tells beside `ProbeHooks`.

    Attributes:
        heard: versions of dimensions → name → partition → (watermark, newest change), JSON values.
        seen: how the time stands; the newest of them is for the status.
        trim: no row will ask for a version of a dimension before this time any more.
        pool: Spark's scheduler pool.
    """

    spec: EventSpec
    epoch: int
    tables: EventTables
    heard: Callable[[Mapping[str, int]], Mapping[str, Mapping[str, Any]]]
    seen: Callable[[EventView], None]
    trim: Callable[[int], None]
    pool: str = "probe"


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What the next batch would be.

    Attributes:
        event: what its pin says of time and state before it.
        now_ms: its clock.
    """

    start: Mapping[int, int]
    end: Mapping[int, int]
    versions: Mapping[str, int]
    event: EventPin
    now_ms: int

    def has_records(self) -> bool:
        """Whether there is something to read."""
        return any(end > self.start.get(p, 0) for p, end in self.end.items())


def spread(start: Mapping[int, int], end: Mapping[int, int], limit: int) -> dict[int, int]:
    """Where a batch of about `limit` records ends: each partition has its share of what there is.

    So all partitions are read up to their ends together, and none holds the watermark back for
    long. A partition with records has at least one.
    """
    there = {p: max(0, offset - start.get(p, 0)) for p, offset in end.items()}
    total = sum(there.values())
    if total <= limit:
        return dict(end)
    shares = {p: max(1, count * limit // total) if count else 0 for p, count in there.items()}
    return {p: start.get(p, 0) + min(shares[p], there[p]) for p in end}


class BatchPlanner:
    """Plans the batches of one loop, on its thread."""

    def __init__(self, settings: ProbeSettings, hooks: ProbeHooks, parts: EventParts) -> None:
        self._settings = settings
        self._hooks = hooks
        self._parts = parts
        self._cluster = KafkaCluster(settings.kafka, keep_open=True)

    def close(self) -> None:
        """Close the connection."""
        self._cluster.close()

    def next(self, number: int, behind: Mapping[int, int], state: EventState) -> BatchPlan:
        """Batch `number`, behind these offsets and this state, as things are now.

        Raises:
            GuardError: the topic lacks what it had.
            SourceUnavailableError: no broker answers.
        """
        life, topic = self._settings.life, self._settings.kafka.topic
        there = cut(self._cluster.end_offsets(topic), life.end_offsets)
        start = first_offsets(topic, behind, there, life)
        there = up_to_backlog(start, there, life.backlog_offsets)
        limit = self._settings.max_records_per_batch
        if self._parts.spec.on_event:
            limit = min(limit, _RECORDS_ON_EVENT)
        return self._planned(number, (start, spread(start, there, limit)), state)

    def quiet(self, number: int, behind: Mapping[int, int], state: EventState) -> BatchPlan:
        """The same without records; the topic is not asked."""
        return self._planned(number, (behind, behind), state)

    def _planned(
        self,
        number: int,
        offsets: tuple[Mapping[int, int], Mapping[int, int]],
        state: EventState,
    ) -> BatchPlan:
        start, end = offsets
        life = self._settings.life
        first = life.versions if number == life.first_batch else None
        versions = dict(self._hooks.versions() if first is None else first)
        bounds, backlog = life.end_offsets, life.backlog_offsets
        now_ms = max(time.time_ns() // 1_000_000, state.clock_ms)
        event = EventPin(
            **{**state.as_json(), "clock_ms": now_ms},
            at_end=[p for p in sorted(start) if bounds and start[p] >= bounds[p]],
            backlog={
                "read": behind_backlog(end, backlog),
                "read_before": behind_backlog(start, backlog),
            },
            dimensions=self._parts.heard(versions),
            state_versions=self._parts.tables.versions(),
        )
        return BatchPlan(start, end, versions, event, now_ms)

    def moved(self, plan: BatchPlan, state: EventState) -> Advance:
        """Where `plan` would take the time without its records."""
        steps: Steps | None = {} if self._parts.spec.on_event else None
        return advance(self._parts.spec, state, batch_input(plan.event, plan.start, steps))

    def pinned(self, plan: BatchPlan, number: int) -> Pin:
        """The pin of `plan`, durable when this returns.

        Raises:
            FencedError: a newer runner has taken over.
        """
        # it binds newer runners, too
        self._hooks.dead_letters.batches.check_epoch(self._parts.epoch)
        return self._hooks.pins.create(
            Pin(
                batch=number,
                topic=self._settings.kafka.topic,
                start_offsets=plan.start,
                end_offsets=plan.end,
                versions=plan.versions,
                batch_timestamp_ms=plan.now_ms,
                epoch=self._parts.epoch,
                source_ts_ms=dict(self._hooks.source_times(plan.versions)),
                event=plan.event,
            )
        )
