"""Asks a server for its GTIDs, and whether a table is followed there after a failover."""

from dataclasses import dataclass, replace
from typing import Any

from pymysql.connections import Connection

from joins.adapters.mysql.connection import MysqlConnectionConfig, connected, is_mariadb, rows
from joins.adapters.mysql.gtids import (
    BinlogFile,
    Gtids,
    MariadbHistory,
    MysqlHistory,
    NewTransactions,
    Takeover,
    decide,
    gtid_position,
    gtid_set,
    gtids_of,
    mariadb_numbers,
)
from joins.adapters.mysql.position import BinlogMark, gtid_at, mark_at, take_high
from joins.adapters.mysql.sender import AcknowledgedBoundary, CdcConfig
from joins.plan.errors import SnapshotNeededError

_FIRST_EVENT = 4
_EVENTS_OF_A_HEAD = 4
_HEADS = ("Gtid_list", "Previous_gtids")  # the event that tells what was applied before a file


@dataclass(frozen=True, slots=True)
class FirstRead:
    """Where reading begins on another server, and the end that it had then."""

    takeover: Takeover
    low: BinlogMark
    high: BinlogMark


def take_over(
    config: MysqlConnectionConfig, kept: AcknowledgedBoundary | None, epoch: int
) -> FirstRead:
    """SnapshotNeededError if the table must be copied again; positions are of `epoch`."""
    if kept is None or kept.gtids is None:
        raise _refused("the GTIDs of what was applied are not known")
    if kept.sent is None:
        raise _refused("the CDC process was killed, so what it sent last is not known")
    with connected(config) as connection:
        mariadb = is_mariadb(connection)
        applied, sent = (gtids_of(text, is_mariadb=mariadb) for text in (kept.gtids, kept.sent))
        theirs = _history(connection, mariadb=mariadb)
    decision = decide(applied, sent, theirs)
    if decision.file is None:
        raise _refused(decision.reason)
    takeover = Takeover(str(applied), str(decision.file.before), str(theirs.executed))
    low = mark_at(epoch, decision.file.name, _FIRST_EVENT, None)
    return FirstRead(takeover, low, take_high(config, epoch))


def _refused(why: str) -> SnapshotNeededError:
    return SnapshotNeededError(
        f"another database server answers, on which the table cannot be followed: {why}",
        hint="No action is needed: the table is copied again by itself. A server that has every "
        "transaction of the one before, with its GTID, needs no copy.",
    )


def _history(connection: "Connection[Any]", *, mariadb: bool) -> MysqlHistory | MariadbHistory:
    """What was executed is asked first: all of it is before a position that is asked later."""
    if mariadb:
        names = ("gtid_binlog_state", "gtid_binlog_pos", "gtid_slave_pos")
        state, written, replicated = _values(connection, *names)
        heads = _heads(connection)
        return MariadbHistory(
            executed=gtid_position(replicated, written),
            purged=gtid_position(heads[0][1]),
            files=tuple(BinlogFile(name, gtid_position(head)) for name, head in heads),
            numbers=mariadb_numbers(state, replicated, written),
        )
    executed, purged = _values(connection, "gtid_executed", "gtid_purged")
    heads = _heads(connection)
    return MysqlHistory(
        executed=gtid_set(executed),
        purged=gtid_set(f"{purged},{heads[0][1]}"),
        files=tuple(BinlogFile(name, gtid_set(head)) for name, head in heads),
    )


def _values(connection: "Connection[Any]", *names: str) -> list[str]:
    selected = ", ".join(f"@@GLOBAL.{name}" for name in names)
    return [str(value or "") for value in rows(connection, f"SELECT {selected}")[0]]


def _heads(connection: "Connection[Any]") -> list[tuple[str, str]]:
    """Each binlog file, oldest first, with the GTIDs that were applied before it."""
    names = [str(row[0]) for row in rows(connection, "SHOW BINARY LOGS")]
    return [(name, _head(connection, name)) for name in names]


def _head(connection: "Connection[Any]", name: str) -> str:
    events = rows(connection, f"SHOW BINLOG EVENTS IN %s LIMIT {_EVENTS_OF_A_HEAD}", name)
    gtids = [str(row[5]) for row in events if str(row[2]) in _HEADS]
    if not gtids:
        raise _refused(f'its binlog file "{name}" does not tell which GTIDs are before it')
    return gtids[0]


# The stream
# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Applied:
    """What a stream begins with: GTIDs, None if not known, and which transactions are new."""

    gtids: Gtids | None
    new: NewTransactions | None = None


def applied_at(config: CdcConfig, kept: AcknowledgedBoundary | None) -> Applied:
    """For the boundary `kept`, or the first one; SourceUnavailableError as `connected`."""
    server = config.connection.identity
    mariadb = server is not None and server.is_mariadb
    text = config.low.gtid if kept is None else kept.gtids
    if text is None and kept is not None and mariadb:  # written by an earlier version
        name = replace(config.low, position=kept.position).file_name
        with connected(config.connection) as connection:
            text = gtid_at(connection, name, kept.position.pos)
    known = None if text is None else gtids_of(text, is_mariadb=mariadb)
    if config.takeover is None:
        return Applied(known)
    is_first = kept is None or kept.position == config.low.position
    new = NewTransactions(config.takeover, is_mariadb=mariadb, checked=is_first)
    return Applied(new.applied if is_first else known, new)
