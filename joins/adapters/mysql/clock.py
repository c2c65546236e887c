"""Asks a server for its time and the end of its binlog, and tells which answer is reached."""

import threading
import time
from contextlib import suppress
from typing import Any

from pymysql.connections import Connection

from joins.adapters.mysql.connection import (
    MysqlConnectionConfig,
    connected,
    is_mariadb,
    rows,
)
from joins.adapters.mysql.position import binlog_status
from joins.plan.errors import SourceError
from joins.plan.positions import file_number
from watermark.freshness import Freshness, Proof

_FILE_BITS = 40


def ask(connection: "Connection[Any]", *, mariadb: bool) -> Proof | None:
    """T, then P: whatever was committed when the question was sent is before P.

    `NOW(6)` and the GTIDs come in one statement; the position in the file is read after it, as no
    statement has both. Its end is channel 0. None if the server writes no binlog.
    """
    gtids = "@@GLOBAL.gtid_binlog_pos" if mariadb else "@@GLOBAL.gtid_executed"
    before_ns = time.time_ns()
    question = f"SELECT UNIX_TIMESTAMP(NOW(6)), {gtids}, @@GLOBAL.server_id"
    now_s, gtid, server_id = rows(connection, question)[0]
    took_ns = max(0, time.time_ns() - before_ns)
    status = binlog_status(connection)
    if status is None:
        return None
    file, pos = status
    source_ms, middle_ms = int(now_s * 1000), (before_ns + took_ns // 2) // 1_000_000
    return Proof(
        time_ms=before_ns // 1_000_000,
        position={
            "file": file,
            "pos": pos,
            "gtid": str(gtid).replace("\n", ""),
            "server_id": int(server_id),
        },
        ends={0: at(file_number(file), pos)},
        source_ms=source_ms,
        offset_ms=source_ms - middle_ms,
        within_ms=1 + took_ns // 2_000_000,
    )


def at(file: int, pos: int) -> int:
    """A position in the binlog as one number."""
    return (file << _FILE_BITS) | pos


class PositionClock:
    """Asks on a thread; a server that does not answer leaves T where it is."""

    def __init__(self, config: MysqlConnectionConfig, every_s: float) -> None:
        self._config = config
        self._every_s = every_s
        self._lock = threading.Lock()
        self._proofs = Freshness()
        self._stopping = threading.Event()
        self.has_news = False
        """True from an answer until it is reached."""
        threading.Thread(target=self._run, name="clock", daemon=True).start()

    def close(self) -> None:
        self._stopping.set()

    def reached(self, file: int, pos: int) -> Proof | None:
        """The newest answer up to this position, None if there is no newer one than before."""
        with self._lock:
            proof = self._proofs.news({0: at(file, pos)})
            if proof is not None:
                self.has_news = len(self._proofs) > 1
            return proof

    def _run(self) -> None:
        while not self._stopping.is_set():
            with suppress(SourceError):  # the stream of the same server reports what is wrong
                self._ask_on()
            self._stopping.wait(self._every_s)

    def _ask_on(self) -> None:
        with connected(self._config) as connection:
            mariadb = is_mariadb(connection)
            while not self._stopping.is_set():
                proof = ask(connection, mariadb=mariadb)
                if proof is not None:
                    with self._lock:
                        self._proofs.add(proof)
                        self.has_news = True
                self._stopping.wait(self._every_s)
