"""What a server answers when it is asked for its binlog, as our errors."""

import contextlib
import re

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication import event as binlog_event

from joins.adapters.mysql_connection import MysqlConnectionConfig, open_connection, translated
from joins.errors import SnapshotNeededError, SourceError, SourceUnavailableError

_BINLOG_REFUSED = 1236
_OUR_ID_IS_TAKEN = re.compile(r"same server_?(?:uu)?id", re.IGNORECASE)
_TOO_BIG = re.compile(r"max_allowed_packet", re.IGNORECASE)
_ACCESS_DENIED = (1227, 1045)


def require_replication(config: MysqlConnectionConfig, *, server_id: int) -> None:
    """Ask for the binlog from its oldest event on, and give up at once.

    Raises:
        SourceError: the user may not read the binlog.
        SourceUnavailableError: the server cannot be reached.
    """
    reader = BinLogStreamReader(
        connection_settings={},
        server_id=server_id,
        pymysql_wrapper=lambda **settings: open_connection(
            config, **{k: v for k, v in settings.items() if k not in ("charset", "db")}
        ),
        only_events=[binlog_event.RotateEvent],
        enable_logging=False,
    )
    try:
        reader.fetchone()
    except pymysql.err.MySQLError as exc:
        raise stream_error(config, exc) from exc
    except OSError as exc:
        raise lost(config, str(exc)) from exc
    finally:
        with contextlib.suppress(pymysql.err.MySQLError, OSError):
            reader.close()


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
    told = f'database server "{config.server}" cannot give the binlog from our position: {why}'
    if _OUR_ID_IS_TAKEN.search(why):
        return SourceError(
            told, hint="Another replica has our server id: give the table another server-id option."
        )
    if _TOO_BIG.search(why):
        return SourceError(told, hint="Raise max_allowed_packet of the server; we try again.")
    return SnapshotNeededError(
        told,
        hint="The binlog was purged, reset or restored; the table is copied again by itself. Keep "
        "the binlog longer (binlog_expire_logs_seconds) to avoid it.",
    )


def lost(config: MysqlConnectionConfig, why: str) -> SourceUnavailableError:
    """The connection of a stream ended."""
    return SourceUnavailableError(
        f'the binlog connection to database server "{config.server}" was lost: {why}',
        hint="Wait for the server, or restart it; we connect again by ourselves.",
    )
