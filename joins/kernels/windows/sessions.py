"""Sessions that grow, merge and fire: the state of a bucket is all of its open sessions.

Spans that touch, directly or through others, may become one session. A group of them in which no
session fires before its last part has come is merged at once; the others are replayed part by part
(`SessionReplay`), as then the order of parts and of the watermark's steps decides.

A fired session that a later row merges into another one is deleted: -D with its last row. LISTAGG
and DISTINCT list by session, then by arrival: merging sessions do not mix their lists.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from joins.kernels.changelog.row_kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from joins.kernels.expressions.casts import Mask, mask_of
from joins.kernels.probe.arrival_files import WATERMARK
from joins.kernels.windows.spec import Groups, Rows, WindowSpec, connected
from joins.kernels.windows.state import (
    DUE,
    END,
    FIRED,
    IS_LATE,
    KEEP,
    LATE,
    OF_WATERMARK,
    START,
    WatermarkAdvance,
    WindowFiring,
    by_steps,
    column,
    keeps,
    key_names,
    living,
    merged,
    numbers,
)
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP, add_clamped


@dataclass(frozen=True, slots=True)
class Span:
    """A session or a new part, as a row of a bucket; `watermark_ms` came before a part."""

    row: int
    start_ms: int
    end_ms: int
    fired: bool
    watermark_ms: int


@dataclass(slots=True)
class OpenSession:
    """A session, and the numbers of its rows."""

    start_ms: int
    end_ms: int
    rows: list[int]
    fired: bool

    @property
    def due_ms(self) -> int:
        return self.end_ms - 1


@dataclass(frozen=True, slots=True)
class SessionChange:
    """A session as it is emitted.

    `part` is the row of the part that causes it, None if the watermark does; `watermark_ms` is the
    watermark before the part, or the one reached.
    """

    kind: int
    start_ms: int
    end_ms: int
    rows: list[int]
    part: int | None
    watermark_ms: int


@dataclass(slots=True)
class SessionReplay:
    """Replays groups of spans; `late` are rows of parts that no session took.

    `sessions` are those that are open or have not fired when the last of their parts has come.
    """

    spec: WindowSpec
    changes: list[SessionChange] = field(default_factory=list)
    sessions: list[OpenSession] = field(default_factory=list)
    late: list[int] = field(default_factory=list)

    def take(self, sessions: Sequence[Span], parts: Sequence[Span]) -> None:
        """Replay spans that may become one session: open ones, and parts in order of arrival."""
        live = [OpenSession(s.start_ms, s.end_ms, [s.row], s.fired) for s in sessions]
        for part in parts:
            live = self._reached(live, part.watermark_ms)
            live = self._taken(live, part)
        self.sessions += live

    def _reached(self, live: list[OpenSession], watermark_ms: int) -> list[OpenSession]:
        for each in live:
            if not each.fired and each.due_ms <= watermark_ms:
                self._emit(INSERT, each, None, each.due_ms)
                each.fired = True
        return [each for each in live if not self._is_gone(each.end_ms, watermark_ms)]

    def _taken(self, live: list[OpenSession], part: Span) -> list[OpenSession]:
        """The sessions with the part, unless it is too late for its session."""
        merged = [
            each for each in live if each.start_ms <= part.end_ms and part.start_ms <= each.end_ms
        ]
        start_ms = min([part.start_ms, *(each.start_ms for each in merged)])
        end_ms = max([part.end_ms, *(each.end_ms for each in merged)])
        if self._is_gone(end_ms, part.watermark_ms):
            self.late.append(part.row)
            return live
        rows = [row for each in merged for row in each.rows]
        session = OpenSession(start_ms, end_ms, [*rows, part.row], fired=False)
        same = [each for each in merged if each.fired and _bounds(each) == _bounds(session)]
        for each in sorted(merged, key=_bounds):
            if each.fired and each not in same:
                self._emit(DELETE, each, part.row, part.watermark_ms)
        if session.due_ms <= part.watermark_ms:
            if same and self.spec.needs_old_rows:
                self._emit(UPDATE_BEFORE, same[0], part.row, part.watermark_ms)
            kind = UPDATE_AFTER if same else INSERT
            self._emit(kind, session, part.row, part.watermark_ms)
            session.fired = True
        return [*(each for each in live if each not in merged), session]

    def _is_gone(self, end_ms: int, watermark_ms: int) -> bool:
        return add_clamped(end_ms - 1, self.spec.lateness_ms) <= watermark_ms

    def _emit(self, kind: int, session: OpenSession, part: int | None, watermark_ms: int) -> None:
        change = SessionChange(
            kind, session.start_ms, session.end_ms, session.rows, part, watermark_ms
        )
        self.changes.append(change)


def _bounds(session: OpenSession) -> tuple[int, int]:
    return session.start_ms, session.end_ms


@dataclass(frozen=True, slots=True)
class FiredSessions:
    """Emissions, sessions that stay open, and rows too late for any session."""

    emissions: list[WindowFiring]
    state: pa.Table
    late: pa.Table


def fire_sessions(
    spec: WindowSpec, old: pa.Table, new: pa.Table, advance: WatermarkAdvance
) -> FiredSessions:
    rows = pa.concat_tables([old, new.select(old.schema.names)]).combine_chunks()
    is_ended = _ended(rows, new)
    gone, rows = rows.filter(pa.array(is_ended)), rows.filter(pa.array(~is_ended))
    bucket = _Bucket(spec, rows, _spans(spec, rows), new, advance)
    is_replayed = bucket.needs_replay()
    replay = bucket.replay(np.flatnonzero(is_replayed))
    tables = [gone, bucket.merged(np.flatnonzero(~is_replayed)), bucket.open_sessions(replay)]
    sessions = pa.concat_tables(tables).combine_chunks()
    fired = mask_of(column(sessions, FIRED))
    fires = ~fired & (numbers(sessions, DUE) <= advance.after_ms)
    emissions = [
        bucket.emission(replay.changes),
        by_steps(sessions.filter(pa.array(fires)), advance, INSERT),
    ]
    state = living(_with_fired(sessions, fired | fires), advance.after_ms)
    late = np.sort(replay.late).astype(np.int64) - bucket.sessions
    return FiredSessions(emissions, state, new.select(LATE.names).take(pa.array(late)))


def _ended(rows: pa.Table, new: pa.Table) -> Mask:
    """Sessions of the state whose lateness ends before the first part comes: none can join them."""
    is_ended = np.zeros(rows.num_rows, dtype=np.bool_)
    if new.num_rows:
        count, first_ms = rows.num_rows - new.num_rows, numbers(new, WATERMARK).min()
        is_ended[:count] = numbers(rows, KEEP)[:count] <= first_ms
    return is_ended


def _spans(spec: WindowSpec, rows: pa.Table) -> Groups:
    keys = Groups.of([column(rows, name) for name in key_names(spec)], rows.num_rows)
    return connected(keys.codes, numbers(rows, START), numbers(rows, END))


@dataclass(frozen=True, slots=True)
class _Bucket:
    """A bucket's rows, sessions before the batch's parts; `spans` groups touching rows."""

    spec: WindowSpec
    rows: pa.Table
    spans: Groups
    new: pa.Table
    advance: WatermarkAdvance

    @property
    def sessions(self) -> int:
        return int(self.rows.num_rows - self.new.num_rows)

    def needs_replay(self) -> Mask:
        """The rows of groups with a part in which a session fires before, or a row is late."""
        count, codes = self.sessions, self.spans.codes
        seen = np.full(self.spans.count, MIN_TIMESTAMP)
        np.maximum.at(seen, codes[count:], numbers(self.new, WATERMARK))
        is_early = numbers(self.rows, END) - 1 <= seen[codes]
        is_early[count:] |= mask_of(column(self.new, IS_LATE))
        has_early, has_part = (np.zeros(self.spans.count, dtype=np.bool_) for _ in range(2))
        has_early[codes[is_early]] = True
        has_part[codes[count:]] = True
        of_rows: Mask = (has_early & has_part)[codes]
        return of_rows

    def merged(self, rows: Rows) -> pa.Table:
        groups = Groups.of([self.spans.codes[rows]], len(rows))
        table = self.rows if len(rows) == self.rows.num_rows else self.rows.take(pa.array(rows))
        if groups.are_rows:
            return table
        low, high = np.full(groups.count, MAX_TIMESTAMP), np.full(groups.count, MIN_TIMESTAMP)
        np.minimum.at(low, groups.codes, numbers(table, START))
        np.maximum.at(high, groups.codes, numbers(table, END))
        return _with_bounds(self.spec, merged(self.spec, table, groups), low, high)

    def replay(self, rows: Rows) -> SessionReplay:
        codes = self.spans.codes[rows]
        order = np.argsort(codes, kind="stable")
        cuts = np.flatnonzero(np.diff(codes[order])) + 1
        replay = SessionReplay(self.spec)
        if len(rows):
            spans = self._listed(rows[order])
            for low, high in zip([0, *cuts], [*cuts, len(spans)], strict=True):
                of_span = spans[low:high]
                sessions = [each for each in of_span if each.row < self.sessions]
                replay.take(sessions, of_span[len(sessions) :])
        return replay

    def open_sessions(self, replay: SessionReplay) -> pa.Table:
        sessions = replay.sessions
        starts = np.array([each.start_ms for each in sessions], dtype=np.int64)
        ends = np.array([each.end_ms for each in sessions], dtype=np.int64)
        added = self._added([each.rows for each in sessions])
        table = _with_bounds(self.spec, added, starts, ends)
        return _with_fired(table, np.array([each.fired for each in sessions], dtype=np.bool_))

    def emission(self, changes: Sequence[SessionChange]) -> WindowFiring:
        starts = np.array([each.start_ms for each in changes], dtype=np.int64)
        ends = np.array([each.end_ms for each in changes], dtype=np.int64)
        added = self._added([each.rows for each in changes])
        seen = np.array([each.watermark_ms for each in changes], dtype=np.int64)
        parts = np.array([-1 if c.part is None else c.part for c in changes], dtype=np.int64)
        by_part = parts >= 0
        steps = np.where(by_part, self.advance.seen(seen), self.advance.steps_at(seen))
        return WindowFiring(
            _with_bounds(self.spec, added, starts, ends),
            np.array([each.kind for each in changes], dtype=np.int8),
            steps,
            np.where(by_part, parts * len(changes) + np.arange(len(changes)), OF_WATERMARK),
            np.where(by_part, seen, self.advance.held(steps)),
        )

    def _listed(self, rows: Rows) -> list[Span]:
        watermarks = np.full(self.rows.num_rows, MIN_TIMESTAMP)
        watermarks[self.sessions :] = numbers(self.new, WATERMARK)
        columns = (
            rows,
            numbers(self.rows, START)[rows],
            numbers(self.rows, END)[rows],
            mask_of(column(self.rows, FIRED))[rows],
            watermarks[rows],
        )
        return [Span(*values) for values in zip(*(c.tolist() for c in columns), strict=True)]

    def _added(self, members: Sequence[Sequence[int]]) -> pa.Table:
        lengths = [len(each) for each in members]
        rows = np.array([row for each in members for row in each], dtype=np.int64)
        groups = Groups(np.repeat(np.arange(len(members)), lengths), len(members))
        return merged(self.spec, self.rows.take(pa.array(rows)), groups)


def _with_bounds(spec: WindowSpec, table: pa.Table, starts: Rows, ends: Rows) -> pa.Table:
    due = ends - 1
    values = {START: starts, END: ends, DUE: due, KEEP: keeps(due, spec.lateness_ms)}
    return _with(table, {name: pa.array(column) for name, column in values.items()})


def _with_fired(table: pa.Table, fired: Mask) -> pa.Table:
    due = np.where(fired, MAX_TIMESTAMP, numbers(table, DUE))
    return _with(table, {FIRED: pa.array(fired), DUE: pa.array(due)})


def _with(table: pa.Table, columns: dict[str, pa.Array]) -> pa.Table:
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), values)
    return table
