"""A table of MySQL or MariaDB that is read by queries, with SELECT as its only grant."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from joins.adapters.mysql.chunks import rows_where
from joins.adapters.mysql.connection import (
    MysqlConnectionConfig,
    SafeConnection,
    connected,
    rows,
)
from joins.adapters.mysql.table import CapturedTable
from joins.adapters.polled.table import Take
from joins.kernels.expressions.casts import whole_batch
from joins.plan.types import quoted

_BATCH_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class _MysqlTable:
    connection: SafeConnection
    table: CapturedTable

    def clock_ms(self) -> int:
        return int(rows(self.connection, "SELECT UNIX_TIMESTAMP(NOW(6))")[0][0] * 1000)

    def read(self, since: tuple[str, str] | None, take: Take) -> None:
        """One statement: InnoDB gives the rows of one moment."""
        where = "TRUE"
        if since is not None:
            columns = {each.captured.name: each.server.name for each in self.table.columns}
            value = since[1].replace("\\", "\\\\").replace("'", "''")
            where = f"{quoted(columns[since[0]])} >= '{value}'"
        waiting: list[pa.RecordBatch] = []
        for batch in rows_where(self.connection, self.table, where):
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= _BATCH_ROWS:
                take(whole_batch(waiting))
                waiting = []
        if waiting:
            take(whole_batch(waiting))


@contextmanager
def opened_mysql(config: MysqlConnectionConfig, table: CapturedTable) -> Iterator[_MysqlTable]:
    """SourceUnavailableError if the server cannot be reached or is lost, SourceError if refused."""
    with connected(config) as connection:
        yield _MysqlTable(connection, table)
