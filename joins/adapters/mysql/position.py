"""Positions in the binlog: LOW before a snapshot, HIGH after it, and the validity of old ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from joins.adapters.mysql.connection import (
    MysqlConnectionConfig,
    ServerIdentity,
    connected,
    first_known,
    identity_of,
    is_mariadb,
    rows,
    tables_of,
)
from joins.kernels.changelog.envelope import BinlogPosition
from joins.plan.errors import SourceError
from joins.plan.types import quoted

STATUS_OF_BINLOG = ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS")
"""MySQL 8.4 knows only the second."""
_TELLING = ("Query", "Annotate_rows", "Rows_query", "Table_map")  # events that name what happened
_MOST_TEXT = 160


@dataclass(frozen=True, slots=True)
class BinlogMark:
    """A position, with what is needed to go there and to recognise it."""

    position: BinlogPosition
    prefix: str  # name of the binlog files without their number, such as `binlog`
    digits: int  # minimum number of digits of the number
    # GTIDs that were applied there; on MariaDB different ones mean another history
    gtid: str | None

    @property
    def file_name(self) -> str:
        return f"{self.prefix}.{self.position.file:0{self.digits}d}"


def server_identity(config: MysqlConnectionConfig) -> ServerIdentity:
    with connected(config) as connection:
        return identity_of(connection)


def take_low(config: MysqlConnectionConfig, epoch: int) -> BinlogMark:
    """A position whose predecessors are visible to every read that begins after this call.

    The binlog advances before the storage engine shows a commit, so its end is not enough: MariaDB
    has the position of a consistent snapshot; for MySQL a momentary read lock on the tables waits
    for every transaction that wrote to them. SourceError if the server writes no binlog.
    """
    with connected(config) as connection:
        if is_mariadb(connection):
            return _snapshot_position(connection, epoch)
        while True:
            names = tables_of(connection, config)
            rows(connection, _lock(names))
            try:
                low = end_of_binlog(connection, epoch)
            finally:
                rows(connection, "UNLOCK TABLES")
            if set(tables_of(connection, config)) <= set(names):
                return low


def _lock(names: Iterable[tuple[str, str]]) -> str:
    tables = ", ".join(f"{quoted(database)}.{quoted(table)} READ" for database, table in names)
    return f"LOCK TABLES {tables}"


def begin_read(
    config: MysqlConnectionConfig, connection: "Connection[Any]", epoch: int
) -> tuple[BinlogMark, bool]:
    """Begin a consistent snapshot on `connection`; its position, as exact as that of `take_low`.

    False if the table's engine has no transactions: each read then shows its own time, between the
    position and a later `end_of_binlog`.
    """
    if is_mariadb(connection):
        mark = _snapshot_position(connection, epoch)
    else:
        with connected(config) as locking:  # for a moment, as for LOW
            rows(locking, _lock(tables_of(locking, config)))
            rows(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            rows(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
            mark = end_of_binlog(connection, epoch)
    engines = [
        row
        for name in tables_of(connection, config)
        for row in rows(
            connection,
            "SELECT e.transactions FROM information_schema.tables t "
            "JOIN information_schema.engines e ON e.engine = t.engine "
            "WHERE t.table_schema = %s AND t.table_name = %s",
            *name,
        )
    ]
    return mark, bool(engines) and all(transactions == "YES" for (transactions,) in engines)


def take_high(config: MysqlConnectionConfig, epoch: int) -> BinlogMark:
    """The end of the binlog, behind everything that an earlier read saw."""
    with connected(config) as connection:
        return end_of_binlog(connection, epoch)


def binlog_still_has(config: MysqlConnectionConfig, mark: BinlogMark) -> bool:
    """True if the server still has the file of `mark`, and at least up to it."""
    with connected(config) as connection:
        sizes = {str(row[0]): int(row[1]) for row in rows(connection, "SHOW BINARY LOGS")}
        return sizes.get(mark.file_name, -1) >= mark.position.pos


def same_history(config: MysqlConnectionConfig, mark: BinlogMark) -> bool:
    """True if the binlog at `mark` is the one it was taken from: no RESET, no other server.

    For MySQL this checks only the file's existence; the CDC process compares UUID and creation
    time.
    """
    if not binlog_still_has(config, mark):
        return False
    with connected(config) as connection:
        return (
            mark.gtid is None
            or not is_mariadb(connection)
            or gtid_at(connection, mark.file_name, mark.position.pos) == mark.gtid
        )


def statement_after(config: MysqlConnectionConfig, mark: BinlogMark) -> str:
    """The server's description of the first change behind `mark`, for messages; maybe empty."""
    try:
        with connected(config) as connection:
            events = rows(
                connection,
                "SHOW BINLOG EVENTS IN %s FROM %s LIMIT 8",
                mark.file_name,
                mark.position.pos,
            )
    except (SourceError, UnicodeDecodeError):
        return ""
    texts = (str(row[5]) for row in events if str(row[2]) in _TELLING and row[5] != "BEGIN")
    return next(texts, "")[:_MOST_TEXT]


def binlog_status(connection: "Connection[Any]") -> tuple[str, int] | None:
    status = _status(connection)
    return None if status is None else (str(status["File"]), int(status["Position"]))


def _status(connection: "Connection[Any]") -> Mapping[str, Any] | None:
    status_rows = first_known(connection, STATUS_OF_BINLOG)
    return status_rows[0] if status_rows else None


def _snapshot_position(connection: "Connection[Any]", epoch: int) -> BinlogMark:
    rows(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    rows(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    variables = dict(rows(connection, "SHOW STATUS LIKE 'binlog_snapshot_%%'"))
    status = {str(name).lower(): str(value) for name, value in variables.items()}
    file = status.get("binlog_snapshot_file", "")
    if not file:
        raise _no_binlog()
    return _mark(connection, epoch, file, int(status["binlog_snapshot_position"]))


def end_of_binlog(connection: "Connection[Any]", epoch: int) -> BinlogMark:
    status = _status(connection)
    if status is None:
        raise _no_binlog()
    file, pos = str(status["File"]), int(status["Position"])
    if is_mariadb(connection):
        return _mark(connection, epoch, file, pos)
    executed = status.get("Executed_Gtid_Set")  # what is committed, maybe less than is in the file
    return mark_at(epoch, file, pos, None if executed is None else str(executed))


def _mark(connection: "Connection[Any]", epoch: int, file: str, pos: int) -> BinlogMark:
    return mark_at(epoch, file, pos, gtid_at(connection, file, pos))


def mark_at(epoch: int, file: str, pos: int, gtid: str | None) -> BinlogMark:
    prefix, _, number = file.rpartition(".")
    return BinlogMark(
        position=BinlogPosition(epoch, int(number), pos),
        prefix=prefix,
        digits=len(number),
        gtid=gtid,
    )


def gtid_at(connection: "Connection[Any]", file: str, pos: int) -> str | None:
    gtid = rows(connection, "SELECT BINLOG_GTID_POS(%s, %s)", file, pos)[0][0]
    return None if gtid is None else str(gtid)


def _no_binlog() -> SourceError:
    return SourceError(
        'the database server writes no binlog: setting "log_bin" is OFF, expected ON',
        hint="Start the server with log_bin (and binlog_format=ROW), then submit the job again.",
    )
