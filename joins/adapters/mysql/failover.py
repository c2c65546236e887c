"""Decides whether a table is followed on another server after a failover, and from where.

The runner calls `take_over` (`joins.source.snapshot`); the CDC process calls `applied_at`.
"""

from dataclasses import dataclass, replace
from typing import Any

from pymysql.connections import Connection

from joins.adapters.mysql.connection import MysqlConnectionConfig, connected, is_mariadb, rows
from joins.adapters.mysql.gtids import (
    BinlogFile,
    Gtids,
    NewTransactions,
    ServerHistory,
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

_FIRST_EVENT = 4  # position of the first event of a binlog file
_HEAD_EVENTS = 4  # events of a file that are searched for one of these, which is among the first
_HEADS = ("Gtid_list", "Previous_gtids")  # has the GTIDs that were applied before the file


@dataclass(frozen=True, slots=True)
class FirstRead:
    """Where reading begins on another server, and the end that it had then."""

    takeover: Takeover
    low: BinlogMark
    high: BinlogMark


def take_over(
    config: MysqlConnectionConfig, kept: AcknowledgedBoundary | None, epoch: int
) -> FirstRead:
    """Where the server's binlog is read, for a table that was followed up to `kept` elsewhere.

    Positions are of `epoch`. SnapshotNeededError if the table must be copied again.
    """
    if kept is None or kept.gtids is None:
        raise _refused("the GTIDs of what was applied are not known")
    if kept.sent is None:  # a session that ends stores it
        raise _refused("the CDC process was killed, so what it sent last is not known")
    with connected(config) as connection:
        mariadb = is_mariadb(connection)
        applied, sent = (gtids_of(text, is_mariadb=mariadb) for text in (kept.gtids, kept.sent))
        theirs = _history(connection, mariadb=mariadb)
    try:
        file = decide(applied, sent, theirs)
    except ValueError as exc:
        raise _refused(str(exc)) from exc
    takeover = Takeover(str(applied), str(file.before), str(theirs.executed))
    low = mark_at(epoch, file.name, _FIRST_EVENT, None)
    return FirstRead(takeover, low, take_high(config, epoch))


def _refused(why: str) -> SnapshotNeededError:
    return SnapshotNeededError(
        f"another database server answers, on which the table cannot be followed: {why}",
        hint="No action is needed: Sluice copies the table again. A server that has every "
        "transaction of the one before, with its GTID, needs no copy.",
    )


def _history(connection: "Connection[Any]", *, mariadb: bool) -> ServerHistory:
    """Reads the executed GTIDs first: they are all before the position that `take_high` takes."""
    if mariadb:
        names = ("gtid_binlog_state", "gtid_binlog_pos", "gtid_slave_pos")
        state, written, replicated = _values(connection, *names)
        heads = _heads(connection)
        return ServerHistory(
            executed=gtid_position(replicated, written),
            purged=gtid_position(heads[0][1]),  # what was applied before the oldest file
            files=tuple(BinlogFile(name, gtid_position(head)) for name, head in heads),
            numbers=mariadb_numbers(state, replicated, written),
        )
    executed, purged = _values(connection, "gtid_executed", "gtid_purged")
    heads = _heads(connection)
    return ServerHistory(
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
    events = rows(connection, f"SHOW BINLOG EVENTS IN %s LIMIT {_HEAD_EVENTS}", name)
    gtids = [str(info) for _, _, kind, _, _, info in events if str(kind) in _HEADS]
    if not gtids:
        raise _refused(f'its binlog file "{name}" does not tell which GTIDs are before it')
    return gtids[0]


# The beginning of the CDC process
# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Applied:
    """GTIDs before the begin of a read, None if unknown; after a failover, which ones are new.

    Changes of `sent` may be in the topic from earlier sessions, also on another server.
    """

    gtids: Gtids | None
    new: NewTransactions | None = None
    sent: Gtids | None = None


def applied_at(config: CdcConfig, kept: AcknowledgedBoundary | None) -> Applied:
    """For a reader that begins at `kept`, or without it at LOW; SourceUnavailableError."""
    server = config.connection.identity
    mariadb = server is not None and server.is_mariadb
    text = config.low.gtid if kept is None else kept.gtids
    if text is None and kept is not None and mariadb:  # written by an earlier version
        begin = replace(config.low, position=kept.position)  # the server's files have one prefix
        with connected(config.connection) as connection:
            text = gtid_at(connection, begin.file_name, kept.position.pos)
    known = None if text is None else gtids_of(text, is_mariadb=mariadb)
    sent = known
    if kept is not None:
        sent = None if kept.sent is None else gtids_of(kept.sent, is_mariadb=mariadb)
    if config.takeover is None:
        return Applied(known, None, sent)
    # the file at LOW has transactions that were applied on the former server; later places do not
    is_at_low = kept is None or kept.position == config.low.position
    new = NewTransactions(config.takeover, is_mariadb=mariadb, is_catching_up=is_at_low)
    return Applied(new.applied if is_at_low else known, new, sent if kept else new.executed)
