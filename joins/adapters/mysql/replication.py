"""What a server answers when it is asked for its binlog, as our errors."""

import re
import struct
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants import COMMAND

from joins.adapters.mysql.connection import MysqlConnectionConfig, rows, translated
from joins.adapters.mysql.position import binlog_status
from joins.plan.errors import SnapshotNeededError, SourceError, SourceUnavailableError

_FIRST_EVENT = 4  # of a binlog file: what is before it says that it is one
_DO_NOT_WAIT = 1  # for events that are not written yet
_KNOWS_GTIDS = 4  # else a MariaDB makes others of such events
_BINLOG_REFUSED = 1236
_OUR_ID_IS_TAKEN = re.compile(r"same server_?(?:uu)?id", re.IGNORECASE)
_TOO_BIG = re.compile(r"max_allowed_packet", re.IGNORECASE)
_ACCESS_DENIED = (1227, 1045)


def require_replication(
    connection: "Connection[Any]", config: MysqlConnectionConfig, *, server_id: int
) -> None:
    """Ask for the newest binlog, read its first packet, and no more.

    Args:
        connection: is good for nothing afterwards but to be closed.
        config: who it belongs to, for messages.
        server_id: of whoever asks; the server ends another one's stream that has the same.

    Raises:
        SourceError: the user may not read the binlog.
        SourceUnavailableError: the server cannot be reached.
    """
    status = binlog_status(connection)
    assert status is not None, "whether there is a binlog is checked first"
    request = struct.pack("<IHI", _FIRST_EVENT, _DO_NOT_WAIT, server_id) + status[0].encode()
    rows(connection, "SET @master_binlog_checksum = @@global.binlog_checksum")
    rows(connection, f"SET @mariadb_slave_capability = {_KNOWS_GTIDS}")
    protocol: Any = connection  # what of PyMySQL speaks it has no stubs
    try:
        protocol._execute_command(COMMAND.COM_BINLOG_DUMP, request)
        protocol._read_packet()
    except pymysql.err.MySQLError as exc:
        raise stream_error(config, exc) from exc
    except OSError as exc:
        raise lost(config, str(exc)) from exc


def stream_error(config: MysqlConnectionConfig, exc: pymysql.err.MySQLError) -> SourceError:
    """Our error for the one that ended a stream, or kept it from beginning."""
    code = exc.args[0] if exc.args else 0
    if code == _BINLOG_REFUSED:
        return _refused(config, str(exc.args[1]))
    if code in _ACCESS_DENIED and code != _ACCESS_DENIED[1]:
        return SourceError(
            f'user "{config.username}" lacks REPLICATION SLAVE on *.* of server "{config.server}"',
            hint="Run GRANT REPLICATION SLAVE ON *.* TO that user.",
        )
    return translated(config, exc)


def _refused(config: MysqlConnectionConfig, why: str) -> SourceError:
    message = f'database server "{config.server}" cannot give the binlog from our position: {why}'
    if _OUR_ID_IS_TAKEN.search(why):
        return SourceError(
            message,
            hint="Another replica has our server id: give the table another server-id option.",
        )
    if _TOO_BIG.search(why):
        return SourceError(message, hint="Raise max_allowed_packet of the server; we try again.")
    return SnapshotNeededError(
        message,
        hint="The binlog was purged, reset or restored; the table is copied again by itself. Keep "
        "the binlog longer (binlog_expire_logs_seconds) to avoid it.",
    )


def lost(config: MysqlConnectionConfig, why: str) -> SourceUnavailableError:
    """The connection of a stream ended."""
    return SourceUnavailableError(
        f'the binlog connection to database server "{config.server}" was lost: {why}',
        hint="Wait for the server, or restart it; we connect again by ourselves.",
    )
