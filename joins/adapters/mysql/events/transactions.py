"""Events of the binlog as transactions of one table: boundaries, row images and statements.

Header positions of row events are not used.
"""

import contextlib
import struct
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from pymysqlreplication import event as binlog_event

from joins.adapters.mysql.charsets import Charsets
from joins.adapters.mysql.events.compressed import (
    PAYLOAD,
    QUERY,
    payload_events,
    rows_body,
    statement_event,
    type_of,
)
from joins.adapters.mysql.events.packets import GTIDS, OUTSIDE, BodyEvent, require_known
from joins.adapters.mysql.events.row_events import (
    COMPRESSED_ROWS,
    FRAGMENT,
    NO_TABLE,
    TABLE_MAP,
    WITH_EXTRA,
    Fragments,
    RowsEvent,
    rows_event,
    table_id_of,
    table_map,
    table_of,
)
from joins.adapters.mysql.gtids import Gtid, Gtids, NewTransactions, followed_by
from joins.adapters.mysql.row_images import Change, RowDecoder
from joins.adapters.mysql.statements import created_empty
from joins.adapters.mysql.table import CapturedTable
from joins.adapters.mysql.tokens import (
    STATEMENT_BYTES,
    UNDECODED,
    QueryEvent,
    Statement,
    load_statement,
    query_statement,
)
from joins.plan.errors import SnapshotNeededError, SourceError
from joins.plan.positions import file_number

_Foreign = Any  # objects of python-mysql-replication, which have no types

_STANDALONE = 1
_PREPARED_XA = 64
_FIXED_BYTES = 8  # before table maps and row events; newer row events have two more


@dataclass(frozen=True, slots=True)
class Boundary:
    """Between two transactions: everything before (file, pos) has been delivered.

    `gtids` are those of what was applied here, None if they are not known.
    """

    file: int
    pos: int
    gtids: Gtids | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FileOpened:
    """A binlog file begins or is entered; `created_at_s` distinguishes files of one name."""

    file: int
    created_at_s: int


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins at (file, pos), the position of its GTID event."""

    file: int
    pos: int
    gtid: Gtid | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RowImages:
    """Changed rows of the captured table, or of one of its parts."""

    decoder: RowDecoder
    event: RowsEvent
    at_s: int

    @property
    def op(self) -> str:
        return self.event.op

    @property
    def size(self) -> int:
        """Bytes of the images."""
        return len(self.event.images)

    def changes(self) -> list[Change]:
        """Rows before and after as wire values, all or none; SnapshotNeededError if unreadable."""
        with _understood("a row in the binlog"):
            return list(self.decoder.changes(self.event, self.at_s))


@contextlib.contextmanager
def _understood(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, LookupError, struct.error) as exc:
        raise SnapshotNeededError(
            f"{what} cannot be decoded: {exc}",
            hint="The table is copied again by itself; report it with the server's version and the "
            "table's definition.",
        ) from exc


@dataclass(frozen=True, slots=True)
class Appeared:
    """Rows of a table that matches the captured one's names, but is none of its parts."""

    database: str
    table: str


@dataclass(frozen=True, slots=True)
class ShadowRows:
    """Changed rows of a table that may take the captured one's place; None if unreadable."""

    database: str
    table: str
    images: RowImages | None


Event = Boundary | FileOpened | Begin | RowImages | ShadowRows | Appeared | Statement


def shadow_made_by(statement: Statement, table: CapturedTable) -> tuple[str, str] | None:
    """Database and name of a table that was created beside `table` and is named after it.

    Tools that change a schema name theirs so: `_t_gho`, `_t_new`.
    """
    if table.pattern is not None:
        return None
    made = created_empty(statement.schema, statement.text, statement.modes)
    if made is None or made.database != table.database or made.table == table.table:
        return None
    return (made.database, made.table) if table.table in made.table else None


class Transactions:
    """What the events of a binlog, in order from a boundary in `file`, do to one table.

    `gtids` are those of what was applied at the boundary. Of transactions that `new` does not call
    new only the boundaries are yielded. `shadows` are tables that may take the captured one's
    place; tables that are created beside it join them.
    """

    def __init__(
        self,
        table: CapturedTable,
        charsets: Charsets,
        file: int,
        gtids: Gtids | None = None,
        new: NewTransactions | None = None,
        shadows: Collection[tuple[str, str]] = (),
    ) -> None:
        self._gtids = gtids
        self._new = new
        self._gtid: Gtid | None = None
        self._is_new = True
        self._table = table
        self._parts = {(part.database, part.table): part for part in table.parts}
        self._file, self._reached = file, 0
        self._charsets = charsets
        self._maps: dict[int, bytes] = {}
        self._decoders: dict[int, RowDecoder | None] = {}
        self._shadows = set(shadows)
        self._shadow_of: dict[int, tuple[str, str]] = {}
        self._fragments = Fragments()
        self._in_transaction = False
        self._standalone = False
        self._is_ours = self._xa = self._xa_is_ours = False
        self._prepared: dict[str, bool] = {}

    def events_of(self, event: _Foreign) -> Iterator[Event]:
        """SnapshotNeededError if the event cannot be followed row by row."""
        packet = event.packet
        require_known(packet.event_type)
        if isinstance(event, binlog_event.RotateEvent):
            yield self._rotated(event.next_binlog, event.position)
        elif isinstance(event, binlog_event.FormatDescriptionEvent):
            self._maps.clear()
            self._decoders.clear()
            yield FileOpened(self._file, event.timestamp)
        elif packet.event_type == PAYLOAD:
            yield from self._payload(event)
        elif packet.event_type == QUERY:
            with _understood("a compressed statement in the binlog"):
                fixed = event.header_bytes(QUERY, STATEMENT_BYTES)
                plain = packet.inside(statement_event(packet.header, event.body, fixed))
            yield from self._control(plain.event, plain)
        elif isinstance(event, BodyEvent):
            yield from self._body(event)
        else:
            yield from self._control(event, packet)

    def _payload(self, event: BodyEvent) -> Iterator[Event]:
        """The events of a compressed transaction, one at a time."""
        with _understood("a compressed transaction in the binlog"):
            for data in payload_events(event.body):
                number = type_of(data)
                if number in OUTSIDE:
                    raise ValueError(f"it has an event of type {number}")
                require_known(number)
                packet = event.packet.inside(data)
                if packet.event is not None:
                    yield from self.events_of(packet.event)

    def _rotated(self, file_name: str | bytes, position: int) -> Boundary:
        name = file_name.decode() if isinstance(file_name, bytes) else file_name
        self._file = file_number(name)
        if self._in_transaction and self._is_ours:
            raise SnapshotNeededError(
                f'rows of table "{self._table.database}.{self._table.table}" are in a transaction '
                f'that has no end before binlog file "{name}"',
                hint="The server ended amid it and undid it; the table is copied again by itself.",
            )
        self._in_transaction = False
        self._gtid, self._is_new = None, True
        self._reached = 0
        return self._boundary(position)

    def _boundary(self, pos: int) -> Boundary:
        self._reached = max(self._reached, pos)
        return Boundary(self._file, pos, self._gtids)

    def _begin(self, pos: int) -> Begin:
        if pos < self._reached:  # rows there would count as older than those before them
            raise SnapshotNeededError(
                f"binlog file number {self._file} has a transaction at {pos}, read behind "
                f"position {self._reached}",
                hint="The file is larger than 4 GiB, where positions begin at 0 again; the table "
                "is copied again by itself. Change fewer rows in one transaction to avoid it.",
            )
        return Begin(self._file, pos, self._gtid)

    def _control(self, event: _Foreign, packet: _Foreign) -> Iterator[Event]:
        if packet.event_type in GTIDS:
            flags = event.flags if isinstance(event, binlog_event.MariadbGtidEvent) else 0
            self._in_transaction, self._xa = True, bool(flags & _PREPARED_XA)
            self._is_ours = self._xa_is_ours = False
            self._standalone = bool(flags & _STANDALONE) or not self._mariadb(event)
            self._gtid = _gtid_of(event)
            self._is_new = self._new is None or self._is_new_by(self._new, self._gtid)
            if self._is_new:
                yield self._begin(packet.log_pos - packet.event_size)
        elif isinstance(event, QueryEvent):
            yield from self._query(event, packet)
        elif isinstance(event, binlog_event.ExecuteLoadQueryEvent):
            if self._is_new:
                yield load_statement(event)
        elif isinstance(event, binlog_event.XidEvent | binlog_event.XAPrepareEvent):
            if getattr(event, "one_phase", False) and self._xa_is_ours and self._is_new:
                raise self._changed_by_xa("one phase")
            yield from self._ended(packet)
        elif not self._in_transaction and packet.log_pos:
            yield self._boundary(packet.log_pos)

    def _is_new_by(self, new: NewTransactions, gtid: Gtid | None) -> bool:
        if gtid is None:
            if not new.checked:
                return True
            raise _other_history("it has a transaction without a GTID that can be read")
        try:
            return new.is_new(gtid)
        except ValueError as exc:
            raise _other_history(str(exc)) from exc

    @staticmethod
    def _mariadb(event: _Foreign) -> bool:
        return isinstance(event, binlog_event.MariadbGtidEvent)

    def _query(self, event: _Foreign, packet: _Foreign) -> Iterator[Event]:
        statement = query_statement(event, self._charsets.collations)
        text = statement.text.removeprefix(UNDECODED).lstrip()
        word = text[:16].upper()
        if word == "BEGIN":
            self._standalone = False
        elif word.startswith("XA "):
            yield from self._distributed(text, packet)
        elif word.startswith("ROLLBACK"):
            self._require_none_undone(text)
            if not word.startswith("ROLLBACK TO"):
                yield from self._ended(packet)
        elif word == "COMMIT":
            yield from self._ended(packet)
        elif not word.startswith("SAVEPOINT"):
            if self._is_new:
                made = shadow_made_by(statement, self._table)
                if made is not None:
                    self._shadows.add(made)
                yield statement
            if self._standalone:
                yield from self._ended(packet)

    def _require_none_undone(self, text: str) -> None:
        if self._is_ours:
            raise SnapshotNeededError(
                f'rows of table "{self._table.database}.{self._table.table}" were undone by '
                f'"{text[:120]}" when they were in the binlog already',
                hint="The table is copied again by itself; change no tables without transactions, "
                "such as those of MyISAM, in one transaction with it to avoid it.",
            )

    def _distributed(self, text: str, packet: _Foreign) -> Iterator[Event]:
        """XA: rows are in the binlog when prepared, and count when committed."""
        _, verb, xid = text.split(None, 2)
        verb = verb.upper()
        if verb == "START":
            self._standalone, self._xa = False, True
        elif verb == "END":
            self._prepared[xid] = self._xa_is_ours
        else:
            is_ours = self._prepared.pop(xid, True)
            if verb == "COMMIT" and is_ours and self._is_new:
                raise self._changed_by_xa(xid)
            yield from self._ended(packet)

    def _changed_by_xa(self, xid: str) -> SnapshotNeededError:
        return SnapshotNeededError(
            f'table "{self._table.database}.{self._table.table}" was, or may have been, changed '
            f"by distributed (XA) transaction {xid}, whose rows came before it was decided",
            hint="The table is copied again by itself; change it by ordinary transactions to avoid "
            "it.",
        )

    def _ended(self, packet: _Foreign) -> Iterator[Event]:
        self._in_transaction = self._standalone = self._xa = False
        if self._is_new:
            self._gtids = followed_by(self._gtids, self._gtid)
        self._gtid, self._is_new = None, True
        if packet.log_pos:
            yield self._boundary(packet.log_pos)

    def _body(self, event: BodyEvent) -> Iterator[RowImages | ShadowRows | Appeared]:
        number, body = event.packet.event_type, event.body
        if number == TABLE_MAP:
            with _understood("a table in the binlog"):
                other = self._table_mapped(event)
            if other is not None:
                yield other
            return
        if number == FRAGMENT:
            with _understood("a row event in parts"):
                whole = self._fragments.add(body)
            if whole is None:
                return
            number, body = whole
        with _understood("a row event in the binlog"):
            has_extra = COMPRESSED_ROWS.get(number, number) in WITH_EXTRA
            fixed = event.header_bytes(number, _FIXED_BYTES + (2 if has_extra else 0))
            if number in COMPRESSED_ROWS:
                number, body = rows_body(number, body, fixed)
            table_id = table_id_of(body, fixed)
            decoder, shadow = self._decoder_of(table_id), self._shadow_of.get(table_id)
            if decoder is None and shadow is None:
                return
            rows = rows_event(number, body, fixed)
            if shadow is not None and self._is_new:
                self._is_ours = True
                images = None
                if decoder is not None and not self._xa:
                    images = RowImages(decoder, rows, event.timestamp)
                yield ShadowRows(*shadow, images)
            elif shadow is None and decoder is not None:
                yield from self._rows(decoder, rows, event.timestamp)

    def _decoder_of(self, table_id: int) -> RowDecoder | None:
        if table_id in NO_TABLE:
            return None
        if table_id not in self._decoders:
            raise ValueError(f"table number {table_id} was not described before")
        return self._decoders[table_id]

    def _table_mapped(self, event: BodyEvent) -> Appeared | None:
        """A table that matches and is no part, told at its first transaction that is new."""
        fixed = event.header_bytes(TABLE_MAP, _FIXED_BYTES)
        table_id, database, table = table_of(event.body, fixed)
        if self._maps.get(table_id) == event.body:
            return None
        decoder, part = None, self._parts.get((database, table))
        self._shadow_of.pop(table_id, None)
        if part is not None:
            decoder = self._decoder(event, fixed, part)
        elif (database, table) in self._shadows:
            self._shadow_of[table_id] = database, table
            with contextlib.suppress(SnapshotNeededError, SourceError, ValueError):
                decoder = self._decoder(event, fixed, self._table)
        self._decoders[table_id] = decoder
        pattern = self._table.pattern
        is_another = part is None and pattern is not None and pattern.has(database, table)
        if is_another and not self._is_new:
            self._maps.pop(table_id, None)
            return None
        self._maps[table_id] = event.body
        return Appeared(database, table) if is_another else None

    def _decoder(self, event: BodyEvent, fixed: int, table: CapturedTable) -> RowDecoder:
        is_mariadb = event.dbms == "mariadb"
        columns = table_map(event.body, fixed, is_mariadb=is_mariadb)
        return RowDecoder(columns, table, self._charsets, is_mariadb=is_mariadb)

    def _rows(self, decoder: RowDecoder, rows: RowsEvent, at_s: int) -> Iterator[RowImages]:
        if self._xa:
            self._xa_is_ours = True
            return
        if not self._is_new:
            return
        self._is_ours = True
        yield RowImages(decoder, rows, at_s)


def _gtid_of(event: _Foreign) -> Gtid | None:
    """None for a transaction without one, and for MySQL's with a tag."""
    if isinstance(event, binlog_event.MariadbGtidEvent):
        return Gtid(str(event.domain_id), event.gtid_seq_no, event.packet.server_id)
    if isinstance(event, binlog_event.GtidEvent):
        return Gtid(str(uuid.UUID(bytes=bytes(event.sid))), event.gno)
    return None


def _other_history(why: str) -> SnapshotNeededError:
    return SnapshotNeededError(
        f"the server that answers now has another history than the one before: {why}",
        hint="No action is needed: the table is copied again by itself. With gtid_strict_mode=ON "
        "on all servers of MariaDB, or gtid_mode=ON of MySQL, a failover needs no copy.",
    )
