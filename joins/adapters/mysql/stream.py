"""One connection to the binlog of a server.

It connects once: after python-mysql-replication's reconnect the position would be unknown, so a
lost connection ends the stream with an error.
"""

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysqlreplication.exceptions import MalformedBinLogEvent, StatusVariableMismatch

from joins.adapters.mysql.charsets import server_charsets
from joins.adapters.mysql.connection import (
    MysqlConnectionConfig,
    open_connection,
    rows,
)
from joins.adapters.mysql.events.packets import EVENTS, Reader
from joins.adapters.mysql.events.transactions import Event, Transactions
from joins.adapters.mysql.gtids import Gtids, NewTransactions
from joins.adapters.mysql.replication import lost, stream_error
from joins.adapters.mysql.table import CapturedTable
from joins.plan.errors import SnapshotNeededError
from joins.plan.positions import file_number

_Foreign = Any  # objects of python-mysql-replication and PyMySQL's internals, which have no types

HEARTBEAT_S = 0.5
_READ_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Start of a stream: a transaction boundary in the binlog file `<prefix>.<digits>`.

    `gtids` were applied there, None if they are not known; what `new` does not call new is skipped.
    """

    server_id: int
    file_name: str
    pos: int
    gtids: Gtids | None = None
    new: NewTransactions | None = None


class BinlogStream:
    """One connection to the binlog; iterate `events` once, from one thread."""

    def __init__(
        self,
        config: MysqlConnectionConfig,
        table: CapturedTable,
        start: StreamStart,
        shadows: Collection[tuple[str, str]] = (),
    ) -> None:
        self._config = config
        self._transactions = Transactions(
            table,
            server_charsets(config),
            file_number(start.file_name),
            start.gtids,
            start.new,
            shadows,
        )
        self._connections: list[_Foreign] = []
        self._reader = Reader(
            connection_settings={"read_timeout": _READ_TIMEOUT_S},
            server_id=start.server_id,
            blocking=True,
            resume_stream=True,
            log_file=start.file_name,
            log_pos=start.pos,
            only_events=EVENTS,
            filter_non_implemented_events=False,
            slave_heartbeat=HEARTBEAT_S,
            report_slave=("sluice", "", "", 0),
            pymysql_wrapper=self._connect,
            enable_logging=False,
        )

    def events(self) -> Iterator[Event]:
        """Events until an error ends the stream.

        SourceUnavailableError if the connection was lost, SnapshotNeededError if the binlog is gone
        or its changes cannot be followed row by row, SourceError if access is refused.
        """
        try:
            for event in self._reader:
                yield from self._transactions.events_of(event)
        except pymysql.err.MySQLError as exc:
            raise stream_error(self._config, exc) from exc
        except OSError as exc:
            raise lost(self._config, str(exc)) from exc
        except (StatusVariableMismatch, MalformedBinLogEvent) as exc:
            raise SnapshotNeededError(
                f"the binlog has an event that cannot be read: {exc!r}",
                hint="Report it with the server's version; the table is copied again.",
            ) from exc
        raise lost(self._config, "the server ended the stream")

    def close(self) -> None:
        """Close the connection; another thread may call this to end a blocked `events`."""
        for connection in self._connections:
            with contextlib.suppress(pymysql.err.MySQLError, OSError, AttributeError):
                connection.cut()
                connection._force_close()

    def _connect(self, **settings: object) -> _Foreign:
        if len(self._connections) == 2:  # the stream and the library's control connection
            raise lost(self._config, "the stream was cut")
        settings.pop("charset", None)
        settings.pop("db", None)
        connection = open_connection(self._config, **settings)
        self._connections.append(connection)
        # else a server without them now refuses the files that have checksums
        rows(connection, "SET @master_binlog_checksum = @@global.binlog_checksum")
        return connection
