"""Sessions event by event, as the operator of `watermark.reference.windows` has them.

For those whose rows may be late, or that fire while rows still come. Only spans are moved here;
which rows a session holds is a list of numbers, and what they add up to comes later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from joins.kernels.changelog.row_kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from joins.kernels.windows.spec import WindowSpec
from watermark.model import add_clamped


@dataclass(frozen=True, slots=True)
class Span:
    """A row of a bucket: a session, or a part of one that the batch brings.

    Attributes:
        row: its number.
        fired: whether it is a session that has fired.
        watermark_ms: that a part came behind.
    """

    row: int
    start_ms: int
    end_ms: int
    fired: bool
    watermark_ms: int


@dataclass(slots=True)
class OpenSession:
    """A session, and the numbers of the rows in it."""

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

    Attributes:
        part: the row of the part that causes it, None if the watermark does.
        watermark_ms: that came before; if the watermark causes it, what it reaches.
    """

    kind: int
    start_ms: int
    end_ms: int
    rows: list[int]
    part: int | None
    watermark_ms: int


@dataclass(slots=True)
class Play:
    """All sessions that are played through.

    Attributes:
        sessions: those that are open, or fire yet, when the last of their parts has come.
        late: rows of the parts that no session took.
    """

    spec: WindowSpec
    changes: list[SessionChange] = field(default_factory=list)
    sessions: list[OpenSession] = field(default_factory=list)
    late: list[int] = field(default_factory=list)

    def take(self, sessions: Sequence[Span], parts: Sequence[Span]) -> None:
        """What may be one session in the end: open ones, and parts in order of arrival."""
        live = [OpenSession(s.start_ms, s.end_ms, [s.row], s.fired) for s in sessions]
        for part in parts:
            live = self._reached(live, part.watermark_ms)
            live = self._taken(live, part)
        self.sessions += live

    def _reached(self, live: list[OpenSession], watermark_ms: int) -> list[OpenSession]:
        """Fire what the watermark has reached; the sessions that are left."""
        for each in live:
            if not each.fired and each.due_ms <= watermark_ms:
                self._emit(INSERT, each, None, each.due_ms)
                each.fired = True
        return [each for each in live if not self._is_gone(each.end_ms, watermark_ms)]

    def _taken(self, live: list[OpenSession], part: Span) -> list[OpenSession]:
        """The sessions with the part, unless it is late for what it would be in."""
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
