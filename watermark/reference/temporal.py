"""The reference temporal join: one operator for event time and processing time.

In event time a probe row waits until the combined watermark has reached it, and sees the version
that was valid at its time. When both inputs are in processing time, all waiting rows are joined;
later rows are joined as they come, with the newest version, without timers and without clean-up by
time. A probe row without event time waits for that moment. So a build side without watermarks until
its snapshot is complete, then in processing time, gives a join that is never early.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from watermark.checks import checked, refused
from watermark.model import MIN_TIMESTAMP, Watermark
from watermark.reference.operator import Operator
from watermark.reference.timers import OutputTag, Record, SideRecord, Timer, Value

PROBE = "probe"
BUILD = "build"


class RowKind(Enum):
    """Effect of a build record."""

    INSERT = "+I"
    UPDATE_BEFORE = "-U"
    UPDATE_AFTER = "+U"
    DELETE = "-D"


@checked
@dataclass(frozen=True, slots=True)
class Change:
    """A change of the build side. `UPDATE_BEFORE` has no effect; a DELETE needs only the key."""

    kind: RowKind
    row: Value


@dataclass(frozen=True, slots=True)
class JoinedRow:
    """A probe row with its match; `build` is None for an unmatched row of a left join."""

    probe: Value
    build: Value | None


@checked
@dataclass(frozen=True, slots=True)
class TemporalJoinSpec:
    """Keys and options of a temporal join."""

    probe_key: Callable[[Value], Hashable]  # None never matches
    build_key: Callable[[Value], Hashable]
    left_outer: bool = False  # emit probe rows without a match
    late_tag: OutputTag | None = None  # destination of late probe rows, None to count and drop them
    uid: str = "temporal-join"


@dataclass(frozen=True, slots=True)
class _Version:
    """A row (None: deleted) and the start of its validity, inclusive."""

    since_ms: int
    row: Value | None


@checked
class TemporalJoinOperator(Operator):
    """Joins each probe row with one version of the build side.

    `late_records_dropped` counts late probe rows without a side output.

    Source: FLIP-326, "TemporalRowTimeJoinOperator".
    """

    def __init__(self, spec: TemporalJoinSpec) -> None:
        super().__init__(uid=spec.uid, inputs=(PROBE, BUILD))
        self.spec = spec
        self.late_records_dropped = 0
        self._waiting: list[Record] = []
        self._next_due_ms: int | None = None
        self._versions: dict[Hashable, list[_Version]] = {}

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def versions(self) -> int:
        return sum(map(len, self._versions.values()))

    def _on_record(self, record: Record, source: str) -> None:
        if source == BUILD:
            self._on_build(record)
        else:
            self._on_probe(record)

    def _on_probe(self, record: Record) -> None:
        if self.timers.follows_clock:
            self._join(record, newest=True)
        elif not _has_time(record):
            self._waiting.append(record)
        elif _time_of(record) > self.current_watermark_ms:
            self._waiting.append(record)
            self._plan(_time_of(record))
        elif self.spec.late_tag is not None:
            self._out.append(SideRecord(self.spec.late_tag, record))
        else:
            self.late_records_dropped += 1

    def _on_build(self, record: Record) -> None:
        change: Change = record.value
        if not isinstance(change, Change):
            raise refused(f'operator "{self.uid}"', "build record", change, "Change")
        if change.kind is RowKind.UPDATE_BEFORE:
            return
        key = self.spec.build_key(change.row)
        row = None if change.kind is RowKind.DELETE else change.row
        if self.timers.follows_clock:
            self._keep_newest(key, row)
            return
        versions = self._versions.setdefault(key, [])
        since_ms = _time_of(record)
        place = bisect_right(versions, since_ms, key=_since)
        if place and versions[place - 1].since_ms == since_ms:
            versions[place - 1] = _Version(since_ms, row)  # at one time the last change wins
        else:
            versions.insert(place, _Version(since_ms, row))
        self._trim(key)

    def _before_forwarding(self, watermark: Watermark) -> None:
        if watermark.use_processing_time:
            waiting, self._waiting, self._next_due_ms = self._waiting, [], None
            for record in waiting:
                self._join(record, newest=not _has_time(record))
            for key in list(self._versions):
                self._keep_newest(key, self._versions[key][-1].row)
        elif self._next_due_ms is not None and self._next_due_ms <= watermark.timestamp_ms:
            self._release(watermark.timestamp_ms)

    def _release(self, watermark_ms: int) -> None:
        waiting, self._waiting, self._next_due_ms = self._waiting, [], None
        for record in waiting:
            if _has_time(record) and _time_of(record) <= watermark_ms:
                self._join(record, newest=False)
            else:
                self._waiting.append(record)
                if _has_time(record):
                    self._plan(_time_of(record))

    def _join(self, record: Record, *, newest: bool) -> None:
        key = self.spec.probe_key(record.value)
        versions = [] if key is None else self._versions.get(key, [])
        place = len(versions) if newest else bisect_right(versions, _time_of(record), key=_since)
        row = versions[place - 1].row if place else None
        if row is not None or self.spec.left_outer:
            self._out.append(Record(JoinedRow(record.value, row), record.timestamp_ms))

    def _plan(self, timestamp_ms: int) -> None:
        if self._next_due_ms is None or timestamp_ms < self._next_due_ms:
            self._next_due_ms = timestamp_ms

    def _keep_newest(self, key: Hashable, row: Value | None) -> None:
        if row is None:
            self._versions.pop(key, None)
        else:
            self._versions[key] = [_Version(MIN_TIMESTAMP, row)]

    def _trim(self, key: Hashable) -> None:
        """Drop versions that no waiting or future row can see; the last valid one stays."""
        versions = self._versions[key]
        oldest_ms = self.current_watermark_ms
        if self._next_due_ms is not None:
            oldest_ms = min(oldest_ms, self._next_due_ms)
        place = bisect_right(versions, oldest_ms, key=_since)
        del versions[: max(0, place - 1)]

    def _on_timer(self, timer: Timer) -> None:
        """It sets no timers: the watermark releases rows in the order of their arrival."""

    def _own_state(self) -> dict[str, object]:
        return {
            "late_records_dropped": self.late_records_dropped,
            "waiting": [(each.value, each.timestamp_ms) for each in self._waiting],
            "versions": [
                (key, [(each.since_ms, each.row) for each in versions])
                for key, versions in self._versions.items()
            ],
        }

    def _restore_own(self, own: Mapping[str, Any]) -> None:
        self.late_records_dropped = own["late_records_dropped"]
        self._waiting = [Record(*each) for each in own["waiting"]]
        self._versions = {
            key: [_Version(*each) for each in versions] for key, versions in own["versions"]
        }
        times = [_time_of(each) for each in self._waiting if _has_time(each)]
        self._next_due_ms = min(times, default=None)


def _has_time(record: Record) -> bool:
    return record.timestamp_ms is not None and record.timestamp_ms != MIN_TIMESTAMP


def _time_of(record: Record) -> int:
    return MIN_TIMESTAMP if record.timestamp_ms is None else record.timestamp_ms


def _since(version: _Version) -> int:
    return version.since_ms
