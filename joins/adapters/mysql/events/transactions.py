"""The events of a binlog as what its transactions do to one captured table.

A transaction yields `Begin`, then `RowImages`, `ShadowRows`, `Appeared` and statements in the order
of the binlog, then `Boundary`. One that was applied before, on another server, yields only its
`Boundary`. Between transactions come `FileOpened` and further boundaries.

`row_events` and `compressed` decode bytes; `joins.adapters.mysql.statements` judges statements.
Positions in the headers of row events are not used.
"""

import contextlib
import struct
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
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

_STANDALONE, _PREPARED_XA = 1, 64  # flags of a GTID event of MariaDB
_FIXED_BYTES = 8  # before table maps and row events; newer row events have two more


@dataclass(frozen=True, slots=True)
class Boundary:
    """Between two transactions: everything before (file, pos) has been yielded.

    `gtids` are those of the transactions before it, None if unknown.
    """

    file: int
    pos: int
    gtids: Gtids | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FileOpened:
    """The stream enters a binlog file; `created_at_s` distinguishes files of one name."""

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
        with _decoding("a row in the binlog"):
            return list(self.decoder.changes(self.event, self.at_s))


@contextlib.contextmanager
def _decoding(what: str) -> Iterator[None]:
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
    """Rows of a table that matches the captured table's pattern and is not one of its parts."""

    database: str
    table: str


@dataclass(frozen=True, slots=True)
class ShadowRows:
    """Changed rows of a table that may replace the captured one; None if they are unreadable."""

    database: str
    table: str
    images: RowImages | None


Event = Boundary | FileOpened | Begin | RowImages | ShadowRows | Appeared | Statement


def shadow_made_by(statement: Statement, table: CapturedTable) -> tuple[str, str] | None:
    """The table that the statement creates beside `table` and names after it.

    Tools that change a schema do so: `_t_gho`, `_t_new`.
    """
    if table.pattern is not None:
        return None
    made = created_empty(statement.schema, statement.text, statement.modes)
    if made is None or made.database != table.database or made.table == table.table:
        return None
    return (made.database, made.table) if table.table in made.table else None


class _Kind(Enum):
    """What ends the current transaction, and when its rows count."""

    NONE = auto()  # no transaction is open; a GTID event begins one
    STATEMENT = auto()  # its statement ends it; BEGIN makes it ROWS, and XA START makes it XA
    ROWS = auto()  # XID, COMMIT or ROLLBACK ends it; its rows count
    XA = auto()  # XA PREPARE ends it; its rows count if another transaction is their XA COMMIT


@dataclass(slots=True)
class _Transaction:
    kind: _Kind = _Kind.NONE
    gtid: Gtid | None = None
    is_new: bool = True  # false if it was applied before
    has_yielded: bool = False  # rows of the captured table or of a shadow
    has_prepared: bool = False  # rows of the captured table in XA, new or not; never yielded


@dataclass(frozen=True, slots=True)
class _MappedTable:
    """The table of a number in row events, as its newest table map defines it.

    The captured table or a part of it has a `decoder`. A shadow has its name, and a `decoder` if
    its rows are readable. Any other table has neither.
    """

    body: bytes
    decoder: RowDecoder | None = None
    shadow: tuple[str, str] | None = None


class Transactions:
    """Follows one captured table through the events of a binlog, from a boundary in `file` on.

    `gtids` are those of the transactions before that boundary. `new` decides which transactions
    were applied before; without it all are new. `shadows` are tables that may replace the captured
    one; a table that is created beside it joins them.
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
        self._table, self._name = table, f'table "{table.database}.{table.table}"'
        self._parts = {(part.database, part.table): part for part in table.parts}
        self._charsets = charsets
        self._file, self._reached = file, 0
        self._gtids = gtids
        self._new = new
        self._transaction = _Transaction()
        self._prepared: dict[str, bool] = {}  # XA id → `has_prepared`
        self._shadows = set(shadows)
        self._mapped: dict[int, _MappedTable] = {}
        self._fragments = Fragments()

    def events_of(self, event: _Foreign) -> Iterator[Event]:
        """SnapshotNeededError if the event cannot be followed row by row."""
        packet = event.packet
        require_known(packet.event_type)
        if packet.event_type == PAYLOAD:
            yield from self._payload(event)
        elif packet.event_type == QUERY:
            with _decoding("a compressed statement in the binlog"):
                fixed = event.header_bytes(QUERY, STATEMENT_BYTES)
                plain = packet.inside(statement_event(packet.header, event.body, fixed))
            yield from self._query(plain.event)
        elif packet.event_type in GTIDS:
            yield from self._begin(event)
        elif isinstance(event, QueryEvent):
            yield from self._query(event)
        elif isinstance(event, binlog_event.ExecuteLoadQueryEvent):
            if self._transaction.is_new:
                yield load_statement(event)
        elif isinstance(event, BodyEvent):
            yield from self._table_map_or_rows(event)
        elif isinstance(event, binlog_event.XidEvent | binlog_event.XAPrepareEvent):
            yield from self._end(event)
        elif isinstance(event, binlog_event.RotateEvent):
            yield self._rotate(event.next_binlog, event.position)
        elif isinstance(event, binlog_event.FormatDescriptionEvent):
            self._mapped.clear()
            yield FileOpened(self._file, event.timestamp)
        elif self._transaction.kind is _Kind.NONE and packet.log_pos:
            yield self._boundary(packet.log_pos)

    def _payload(self, event: BodyEvent) -> Iterator[Event]:
        """The events of a compressed transaction, one at a time."""
        with _decoding("a compressed transaction in the binlog"):
            for data in payload_events(event.body):
                number = type_of(data)
                if number in OUTSIDE:
                    raise ValueError(f"it has an event of type {number}")
                require_known(number)
                packet = event.packet.inside(data)
                if packet.event is not None:
                    yield from self.events_of(packet.event)

    def _begin(self, event: _Foreign) -> Iterator[Begin]:
        gtid, kind = None, _Kind.STATEMENT
        if isinstance(event, binlog_event.MariadbGtidEvent):
            gtid = Gtid(str(event.domain_id), event.gtid_seq_no, event.packet.server_id)
            if event.flags & _PREPARED_XA:
                kind = _Kind.XA
            elif not event.flags & _STANDALONE:
                kind = _Kind.ROWS
        elif isinstance(event, binlog_event.GtidEvent):  # one with a tag is not read
            gtid = Gtid(str(uuid.UUID(bytes=bytes(event.sid))), event.gno)
        self._transaction = _Transaction(kind, gtid, self._is_new(gtid))
        if not self._transaction.is_new:
            return
        pos = event.packet.log_pos - event.packet.event_size
        if pos < self._reached:  # rows there would count as older than those before them
            raise SnapshotNeededError(
                f"binlog file number {self._file} has a transaction at {pos}, read behind "
                f"position {self._reached}",
                hint="The file is larger than 4 GiB, where positions begin at 0 again; the table "
                "is copied again by itself. Change fewer rows in one transaction to avoid it.",
            )
        yield Begin(self._file, pos, gtid)

    def _is_new(self, gtid: Gtid | None) -> bool:
        try:
            return self._new is None or self._new.is_new(gtid)
        except ValueError as exc:
            raise SnapshotNeededError(
                f"the server that answers now has another history than the one before: {exc}",
                hint="No action is needed: the table is copied again by itself. With "
                "gtid_strict_mode=ON on all servers of MariaDB, or gtid_mode=ON of MySQL, a "
                "failover needs no copy.",
            ) from exc

    def _end(self, event: _Foreign) -> Iterator[Boundary]:
        transaction = self._transaction
        is_xa_commit = getattr(event, "one_phase", False)  # of XA COMMIT ... ONE PHASE
        if is_xa_commit and transaction.has_prepared and transaction.is_new:
            raise self._changed_by_xa("one phase")
        if transaction.is_new:
            self._gtids = followed_by(self._gtids, transaction.gtid)
        self._transaction = _Transaction()
        if event.packet.log_pos:
            yield self._boundary(event.packet.log_pos)

    def _boundary(self, pos: int) -> Boundary:
        self._reached = max(self._reached, pos)
        return Boundary(self._file, pos, self._gtids)

    def _rotate(self, name: str, position: int) -> Boundary:
        if self._transaction.has_yielded:
            raise SnapshotNeededError(
                f"rows of {self._name} are in a transaction that has no end before binlog file "
                f'"{name}"',
                hint="The server ended amid it and undid it; the table is copied again by itself.",
            )
        self._transaction = _Transaction()
        self._file, self._reached = file_number(name), 0
        return self._boundary(position)

    def _query(self, event: _Foreign) -> Iterator[Event]:
        transaction = self._transaction
        statement = query_statement(event, self._charsets.collations)
        text = statement.text.removeprefix(UNDECODED).lstrip()
        word = text[:16].upper()
        if word == "BEGIN":
            if transaction.kind is _Kind.STATEMENT:
                transaction.kind = _Kind.ROWS
        elif word.startswith("XA "):
            yield from self._xa(text, event)
        elif word.startswith("ROLLBACK"):
            if transaction.has_yielded:
                raise SnapshotNeededError(
                    f'rows of {self._name} were undone by "{text[:120]}" when they were in the '
                    "binlog already",
                    hint="The table is copied again by itself; change no tables without "
                    "transactions, such as those of MyISAM, in one transaction with it to avoid "
                    "it.",
                )
            if not word.startswith("ROLLBACK TO"):
                yield from self._end(event)
        elif word == "COMMIT":
            yield from self._end(event)
        elif not word.startswith("SAVEPOINT"):
            if transaction.is_new:
                made = shadow_made_by(statement, self._table)
                if made is not None:
                    self._shadows.add(made)
                yield statement
            if transaction.kind is _Kind.STATEMENT:
                yield from self._end(event)

    def _xa(self, text: str, event: _Foreign) -> Iterator[Boundary]:
        transaction = self._transaction
        _, verb, xid = text.split(None, 2)
        verb = verb.upper()
        if verb == "START":
            transaction.kind = _Kind.XA
        elif verb == "END":
            self._prepared[xid] = transaction.has_prepared
        else:  # COMMIT or ROLLBACK, maybe of what was prepared before the stream began
            has_prepared = self._prepared.pop(xid, True)
            if verb == "COMMIT" and has_prepared and transaction.is_new:
                raise self._changed_by_xa(xid)
            yield from self._end(event)

    def _changed_by_xa(self, xid: str) -> SnapshotNeededError:
        return SnapshotNeededError(
            f"{self._name} was, or may have been, changed by distributed (XA) transaction {xid}, "
            "whose rows came before it was decided",
            hint="The table is copied again by itself; change it by ordinary transactions to avoid "
            "it.",
        )

    def _table_map_or_rows(self, event: BodyEvent) -> Iterator[RowImages | ShadowRows | Appeared]:
        number, body = event.packet.event_type, event.body
        if number == TABLE_MAP:
            with _decoding("a table in the binlog"):
                yield from self._map_table(event)
            return
        if number == FRAGMENT:
            with _decoding("a row event in parts"):
                whole = self._fragments.add(body)
            if whole is None:
                return
            number, body = whole
        with _decoding("a row event in the binlog"):
            has_extra = COMPRESSED_ROWS.get(number, number) in WITH_EXTRA
            fixed = event.header_bytes(number, _FIXED_BYTES + (2 if has_extra else 0))
            if number in COMPRESSED_ROWS:
                number, body = rows_body(number, body, fixed)
            table_id = table_id_of(body, fixed)
            if table_id in NO_TABLE:
                return
            if table_id not in self._mapped:
                raise ValueError(f"table number {table_id} was not described before")
            mapped = self._mapped[table_id]
            if mapped.decoder is not None or mapped.shadow is not None:
                yield from self._rows(mapped, rows_event(number, body, fixed), event.timestamp)

    def _rows(
        self, mapped: _MappedTable, rows: RowsEvent, at_s: int
    ) -> Iterator[RowImages | ShadowRows]:
        transaction = self._transaction
        is_xa = transaction.kind is _Kind.XA
        images = None
        if mapped.decoder is not None and not is_xa:
            images = RowImages(mapped.decoder, rows, at_s)
        if mapped.shadow is None and is_xa:
            transaction.has_prepared = True
        elif transaction.is_new:
            transaction.has_yielded = True
            if mapped.shadow is not None:
                yield ShadowRows(*mapped.shadow, images)
            elif images is not None:
                yield images

    def _map_table(self, event: BodyEvent) -> Iterator[Appeared]:
        fixed = event.header_bytes(TABLE_MAP, _FIXED_BYTES)
        table_id, database, table = table_of(event.body, fixed)
        if table_id in self._mapped and self._mapped[table_id].body == event.body:
            return
        part, pattern = self._parts.get((database, table)), self._table.pattern
        decoder, shadow, body = None, None, event.body
        if part is not None:
            decoder = self._decoder(event, fixed, part)
        elif (database, table) in self._shadows:
            shadow = database, table
            with contextlib.suppress(SnapshotNeededError, SourceError, ValueError):
                decoder = self._decoder(event, fixed, self._table)
        elif pattern is not None and pattern.has(database, table):
            if self._transaction.is_new:
                yield Appeared(database, table)
            else:
                body = b""  # no map equals it, so the table's next transaction is judged
        self._mapped[table_id] = _MappedTable(body, decoder, shadow)

    def _decoder(self, event: BodyEvent, fixed: int, table: CapturedTable) -> RowDecoder:
        is_mariadb = event.dbms == "mariadb"
        columns = table_map(event.body, fixed, is_mariadb=is_mariadb)
        return RowDecoder(columns, table, self._charsets, is_mariadb=is_mariadb)
