"""Tables that may take the captured table's place, and the sums of their rows.

A tool such as gh-ost or pt-online-schema-change creates a shadow table, fills it while the captured
one changes, and gives it that one's name by one RENAME TABLE. Every row event of a shadow since its
creation is added up here, so its sum says which rows it has at that moment. If the copy has the
same rows there, it is a copy of the shadow, too, and is followed on.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from joins.adapters.mysql.events.transactions import ShadowRows, shadow_made_by
from joins.adapters.mysql.row_images import Row, wire_rows
from joins.adapters.mysql.statements import effect_of, put_in_place
from joins.adapters.mysql.table import CapturedTable
from joins.adapters.mysql.tokens import Effect, Statement, Target
from joins.kernels.changelog.comparison import RowDigests, RowsSum, copied_rows
from joins.plan.errors import SnapshotNeededError

_MOST_PENDING = 20_000
_ADDED, _REMOVED = 1, -1


@dataclass(frozen=True, slots=True)
class Shadow:
    """A table that was created empty while the log was followed, and what rows it has."""

    database: str
    table: str
    sum: RowsSum


@dataclass(frozen=True, slots=True)
class ShadowsAt:
    """All shadows at a boundary of the log, which may be behind that of what was sent."""

    file: int
    pos: int
    shadows: tuple[Shadow, ...]


@dataclass(slots=True)
class _Counted:
    """One shadow: its sum at the last boundary, and what the transaction since has changed."""

    at_boundary: RowsSum = field(default_factory=RowsSum)
    since: RowsSum = field(default_factory=RowsSum)
    # rows that no sum has yet; the first `ended` of them are before the boundary
    pending: list[tuple[int, Row]] = field(default_factory=list)
    ended: int = 0


class Shadows:
    """The shadows of one session, from those that were `kept` at a boundary on."""

    def __init__(self, table: CapturedTable, kept: ShadowsAt | None = None) -> None:
        self._table = table
        self._key = list(table.primary_key)
        self._columns = [column.name for column in table.captured]
        self._kept = (0, 0) if kept is None else (kept.file, kept.pos)
        self._boundary = self._kept
        self._is_counted = False  # what follows is in the kept sums
        shadows = () if kept is None else kept.shadows
        self._counted = {(s.database, s.table): _Counted(s.sum) for s in shadows}

    @property
    def names(self) -> Collection[tuple[str, str]]:
        return tuple(self._counted)

    def begin(self, file: int, pos: int) -> None:
        self._is_counted = (file, pos) < self._kept

    def add(self, rows: ShadowRows) -> None:
        """Add what one event has changed; a shadow that has unreadable rows is one no longer."""
        name = rows.database, rows.table
        counted = self._counted.get(name)
        if counted is None or self._is_counted:
            return
        try:
            changes = None if rows.images is None else rows.images.changes()
        except SnapshotNeededError:
            changes = None
        if changes is None:
            del self._counted[name]
            return
        for before, after in changes:
            if before is not None:
                counted.pending.append((_REMOVED, before))
            if after is not None:
                counted.pending.append((_ADDED, after))
        if len(counted.pending) >= _MOST_PENDING:
            self._count(counted)

    def end(self, file: int, pos: int) -> None:
        """A boundary: what was added so far is before it."""
        self._boundary = max(self._boundary, (file, pos))
        for counted in self._counted.values():
            counted.at_boundary, counted.since = counted.at_boundary + counted.since, RowsSum()
            counted.ended = len(counted.pending)

    def note(self, statement: Statement) -> None:
        """Begin to count a table that the statement creates; forget those that it may change."""
        if self._is_counted:
            return
        made = shadow_made_by(statement, self._table)
        for name in list(self._counted):
            if name != made and not self._keeps(name, statement):
                del self._counted[name]
        if made is not None:
            self._counted[made] = _Counted()

    def _keeps(self, name: tuple[str, str], statement: Statement) -> bool:
        target = Target(*name, tuple(self._columns))
        effect = effect_of(statement.schema, statement.text, target, statement.modes)
        is_empty = not self._sum(self._counted[name]).rows
        may_convert = is_empty and effect is Effect.CONVERTED
        return effect in (Effect.NONE, Effect.ALTERED) or may_convert

    def put_in_place(self, statement: Statement) -> Shadow | None:
        """The shadow that the statement gives the captured table's name."""
        if not self._counted:
            return None
        target = Target(self._table.database, self._table.table, tuple(self._columns))
        name = put_in_place(statement.schema, statement.text, target, statement.modes)
        counted = None if name is None else self._counted.get((name.database, name.table))
        if name is None or counted is None:
            return None
        return Shadow(name.database, name.table, self._sum(counted))

    def kept(self) -> ShadowsAt | None:
        """What is to be kept, None if there is nothing."""
        for counted in self._counted.values():
            self._count(counted)
        shadows = tuple(Shadow(*name, one.at_boundary) for name, one in self._counted.items())
        return ShadowsAt(*self._boundary, shadows) if shadows else None

    def _sum(self, counted: _Counted) -> RowsSum:
        self._count(counted)
        return counted.at_boundary + counted.since

    def _count(self, counted: _Counted) -> None:
        pending, ended = counted.pending, counted.ended
        counted.pending, counted.ended = [], 0
        counted.at_boundary += self._sum_of(pending[:ended])
        counted.since += self._sum_of(pending[ended:])

    def _sum_of(self, changes: list[tuple[int, Row]]) -> RowsSum:
        total = RowsSum()
        for sign in (_ADDED, _REMOVED):
            rows = [row for each, row in changes if each == sign]
            if rows:
                wire = wire_rows(rows, self._table)
                copied = copied_rows(wire, self._table.primary_key, self._table.captured)
                part = RowsSum.of(RowDigests.of(copied, self._key, self._columns))
                total = total + part if sign == _ADDED else total - part
        return total
