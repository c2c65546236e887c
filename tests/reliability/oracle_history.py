"""A table's history as the oracle reads it: the database's binlog from the table's creation on.

Every change has its place (file, position of the transaction, ordinal of the change in it), and the
history answers what a key's row was after the first n changes.
"""

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pymysql
from pymysqlreplication import BinLogStreamReader, row_event
from pymysqlreplication import event as binlog_event

Numbers = npt.NDArray[np.int64]
Place = tuple[int, int, int]

_SERVER_ID = 4_209_000
_ROWS = (row_event.WriteRowsEvent, row_event.UpdateRowsEvent, row_event.DeleteRowsEvent)
_EVENTS = [
    binlog_event.RotateEvent,
    binlog_event.GtidEvent,
    binlog_event.MariadbGtidEvent,
    row_event.TableMapEvent,
    *_ROWS,
]


class OracleRefusalError(Exception):
    """The evidence is of a kind that this oracle cannot judge."""


@dataclass(frozen=True)
class Database:
    """A table of a database, and a user who may read its binlog."""

    host: str
    port: int
    user: str
    password: str
    schema: str
    table: str


@dataclass
class Changes:
    """Changes in the order of the binlog; all lists have one length."""

    keys: list[Any] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    rows: list[Mapping[str, Any] | None] = field(default_factory=list)

    def add(self, key: Any, place: Place, row: Mapping[str, Any] | None) -> None:
        self.keys.append(key)
        self.places.append(place)
        self.rows.append(row)


class History:
    """All changes of one table.

    Attributes:
        by_offset: the changelog has each change in this order, those of a copy, too.
        count: number of changes.
        columns: column → its values by place in `keys`' order, as Python values; NULL when deleted.
    """

    by_offset = False

    def __init__(self, changes: Changes, primary_key: str, columns: tuple[str, ...]) -> None:
        self.count = len(changes.keys)
        self._primary_key = primary_key
        self._places = np.array(changes.places, dtype=np.int64).reshape(-1, 3)
        self._codes: dict[Any, int] = {}
        codes = [self._codes.setdefault(key, len(self._codes)) for key in changes.keys]
        order = np.lexsort([np.arange(self.count), np.array(codes, dtype=np.int64)])
        stride = np.int64(self.count + 1)
        self._sorted = np.array(codes, dtype=np.int64)[order] * stride + order
        self._stride = stride
        rows = [changes.rows[at] for at in order]
        self.deleted = np.array([row is None for row in rows], dtype=np.bool_)
        self.columns = {
            name: [None if row is None else row[name] for row in rows] for name in columns
        }

    @property
    def keys(self) -> int:
        return len(self._codes)

    def codes(self, keys: list[Any], levels: Numbers) -> Numbers:
        find = self._codes.get
        return np.fromiter((-1 if k is None else find(k, -1) for k in keys), np.int64, len(keys))

    def partitions(self, partitions: int) -> Numbers:
        name = orjson.dumps(self._primary_key)
        numbers = (
            zlib.crc32(b"{%s:%s}" % (name, orjson.dumps(key))) % partitions for key in self._codes
        )
        return np.fromiter(numbers, np.int64, len(self._codes))

    def place(self, partition: int, place: Place) -> Place:
        return place

    def level(self, places: Mapping[int, Place]) -> int:
        return 0

    def is_whole(self, places: Mapping[int, Place]) -> bool:
        return True

    def before(self, place: Place) -> int:
        """How many changes lie at or before `place`."""
        low, high = 0, self.count
        for column, value in enumerate(place):
            part = self._places[low:high, column]
            found = np.searchsorted(part, value, side="left")
            end = np.searchsorted(part, value, side="right")
            low, high = low + int(found), low + int(end)
        return high

    def at(self, codes: Numbers, changes: Numbers) -> Numbers:
        """Each key's newest change among the first `changes`, as a place in `columns`; or -1."""
        found = np.searchsorted(self._sorted, codes * self._stride + changes, side="left") - 1
        same = (found >= 0) & (codes >= 0)
        same[same] = self._sorted[found[same]] // self._stride == codes[same]
        return np.where(same, found, -1)

    def span(self, code: int) -> range:
        ends = np.searchsorted(self._sorted, [code * self._stride, (code + 1) * self._stride])
        return range(int(ends[0]), int(ends[1]))

    def column(self, name: str, kind: pa.DataType) -> pa.Array:
        return pa.array(self.columns[name], kind)


class _Replay:
    """Follows the binlog; what it cannot follow it refuses."""

    def __init__(self, database: Database, primary_key: str, columns: tuple[str, ...]) -> None:
        self._database = database
        self._key = primary_key
        self._columns = columns
        self._named = re.compile(rf"(?<![\w$]){re.escape(database.table)}(?![\w$])", re.IGNORECASE)
        self._file = 0
        self._place = (0, 0)
        self._ordinal = 0
        self._live: dict[Any, None] = {}
        self._created = False
        self.changes = Changes()

    def take(self, event: Any) -> None:
        if isinstance(event, binlog_event.RotateEvent):
            name = event.next_binlog
            text = name.decode() if isinstance(name, bytes) else name
            self._file = int(text.rpartition(".")[2])
        elif isinstance(event, binlog_event.GtidEvent | binlog_event.MariadbGtidEvent):
            self._place = (self._file, event.packet.log_pos - event.packet.event_size)
            self._ordinal = 0
        elif isinstance(event, binlog_event.QueryEvent):
            self._statement(event)
        elif isinstance(event, _ROWS):
            self._rows(event)

    def _statement(self, event: Any) -> None:
        text = event.query.strip()
        word = text.split(None, 1)[0].upper() if text else ""
        schema = event.schema.decode("utf-8", "replace")
        here = schema == self._database.schema or self._database.schema in text
        if word == "DROP" and "DATABASE" in text.upper() and self._database.schema in text:
            raise OracleRefusalError(f"schema was dropped: {text[:80]}")
        if not here or not self._named.search(text):
            return
        if word == "CREATE":
            self._created = True
        elif word == "TRUNCATE":
            for key in list(self._live):
                self._add(key, None)
        elif word != "ALTER":
            raise OracleRefusalError(f"history of the table has a statement: {text[:80]}")

    def _rows(self, event: Any) -> None:
        if not self._created:
            raise OracleRefusalError("the binlog does not begin with the table's creation")
        for row in event.rows:
            if isinstance(event, row_event.WriteRowsEvent):
                self._add(row["values"][self._key], row["values"])
            elif isinstance(event, row_event.DeleteRowsEvent):
                self._add(row["values"][self._key], None)
            else:
                self._update(row["before_values"], row["after_values"])

    def _update(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        if before[self._key] != after[self._key]:
            self._add(before[self._key], None)
        self._add(after[self._key], after)

    def _add(self, key: Any, row: Mapping[str, Any] | None) -> None:
        kept = None if row is None else {name: row[name] for name in self._columns}
        self.changes.add(key, (*self._place, self._ordinal), kept)
        self._ordinal += 1
        if row is None:
            self._live.pop(key, None)
        else:
            self._live[key] = None


def _first_file(database: Database) -> str:
    with (
        pymysql.connect(**_login(database)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SHOW BINARY LOGS")
        return str(cursor.fetchall()[0][0])


def _login(database: Database) -> dict[str, Any]:
    return {
        "host": database.host,
        "port": database.port,
        "user": database.user,
        "password": database.password,
    }


def _connect(**settings: Any) -> Any:
    if "db" in settings:
        settings["database"] = settings.pop("db")
    return pymysql.connect(**settings)


def _events(database: Database) -> Iterator[Any]:
    first = _first_file(database)
    reader = BinLogStreamReader(
        connection_settings={**_login(database), "charset": "utf8mb4"},
        server_id=_SERVER_ID,
        blocking=False,
        resume_stream=True,
        log_file=first,
        log_pos=4,
        only_events=[*_EVENTS, binlog_event.QueryEvent, *binlog_event.QueryEvent.__subclasses__()],
        only_schemas=[database.schema],
        only_tables=[database.table],
        pymysql_wrapper=_connect,
    )
    try:
        yield from reader
    finally:
        reader.close()


def read_history(database: Database, primary_key: str, columns: tuple[str, ...]) -> History:
    """The history of a table up to now, with `columns` of its rows.

    Raises:
        OracleRefusalError: its binlog does not reach back to the creation, or has what no row
            images tell.
    """
    replay = _Replay(database, primary_key, columns)
    for event in _events(database):
        replay.take(event)
    return History(replay.changes, primary_key, columns)
