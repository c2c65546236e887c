"""What benchmarks of event time join and count: timed clicks, users with versions.

Clicks are so far apart that those of one round take `SPAN_MS` together, whatever their number is.
A user's versions begin at times of the user's own, a third of the span apart, so that each moment
has users in all of them.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.embedded.database import MariaDb
from tests.support.rig import Rig, cdc_table, kafka_table
from tests.support.sql import new_schema, run_sql

SPAN_MS = 4_200_000
DELAY_MS = 1_000
VERSIONS = 3
CLICKS = "user_id BIGINT, item_id BIGINT, ts TIMESTAMP(3)"
ABSENT_EVERY = 100
CLOSING = 1_000  # users whose last change lets the table's watermark pass everything
_BASE = np.datetime64("2024-01-01T00:00:00.000", "ms")
_BASE_SQL = "2024-01-01 00:00:00"
_USERS = (
    "CREATE TABLE user_info (user_id BIGINT PRIMARY KEY, gender VARCHAR(8), name VARCHAR(64), "
    "updated_at DATETIME(3))"
)
_USERS_DDL = (
    "user_id BIGINT, gender STRING, name STRING, updated_at TIMESTAMP(3), "
    "PRIMARY KEY (user_id) NOT ENFORCED"
)
_UPDATED_AT_ONCE = 50_000


def step_ms(records: int) -> int:
    return max(1, SPAN_MS // records)


# The stream
# --------------------------------------------------------------------------------------------------


def timed_clicks(users: int, step: int, first_ms: int = 0) -> Callable[[range], list[bytes]]:
    """Clicks by their item's number, in the order of their times; a hundredth is of nobody."""

    def click(items: range) -> list[bytes]:
        numbers = np.arange(items.start, items.stop)
        times = (_BASE + first_ms + numbers * step).astype(str).tolist()
        return [
            b'{"user_id":%d,"item_id":%d,"ts":"%s"}'
            % (users + 1 + i if i % ABSENT_EVERY == 0 else 1 + i * 7919 % users, i, at.encode())
            for i, at in zip(items, times, strict=True)
        ]

    return click


def click_table(rig: Rig, topic: str) -> str:
    """The stream in SQL; its watermark is a second behind."""
    watermark = f"WATERMARK FOR ts AS ts - INTERVAL '{DELAY_MS // 1_000}' SECOND"
    columns = f"{CLICKS}, proctime AS PROCTIME(), {watermark}"
    return kafka_table(rig.kafka, "click_event", topic, columns)


# The table
# --------------------------------------------------------------------------------------------------


def versioned_users(mariadb: MariaDb, users: int, span_ms: int) -> AbstractContextManager[str]:
    third = span_ms // VERSIONS
    fill = (
        "INSERT INTO user_info SELECT seq, IF(seq % 2, 'F', 'M'), CONCAT('user ', seq, ' v1'), "
        f"TIMESTAMPADD(MICROSECOND, (seq * 7919 % {third}) * 1000, '{_BASE_SQL}') "
        f"FROM seq_1_to_{users}"
    )
    return new_schema(mariadb, "SET sql_log_bin = 0", _USERS, fill)


def add_versions(mariadb: MariaDb, schema: str, users: int, span_ms: int) -> int:
    """Give every user the other versions, and a few a last one; returns how many changes."""
    third = span_ms // VERSIONS
    for version in range(2, VERSIONS + 1):
        for first in range(1, users + 1, _UPDATED_AT_ONCE):
            run_sql(
                mariadb,
                f"UPDATE user_info SET name = CONCAT('user ', user_id, ' v{version}'), "
                f"updated_at = TIMESTAMPADD(MICROSECOND, {third * 1_000}, updated_at) "
                f"WHERE user_id BETWEEN {first} AND {first + _UPDATED_AT_ONCE - 1}",
                schema=schema,
            )
    last = min(CLOSING, users)
    run_sql(
        mariadb,
        "UPDATE user_info SET name = CONCAT('user ', user_id, ' last'), "
        f"updated_at = '2044-01-01 00:00:00' WHERE user_id <= {last}",
        schema=schema,
    )
    return (VERSIONS - 1) * users + last


def join_script(rig: Rig, places: tuple[str, str, str], *, as_of: bool) -> str:
    """Clicks with the user's gender and name: of their own time, or of now.

    Args:
        places: schema, topic and path of the output.
    """
    schema, topic, path = places
    versioned = ", WATERMARK FOR updated_at AS updated_at" if as_of else ""
    return (
        cdc_table(rig.mariadb, schema, "user_info", _USERS_DDL + versioned)
        + click_table(rig, topic)
        + f"CREATE TABLE enriched ({CLICKS}, gender STRING, name STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.user_id, c.item_id, c.ts, u.gender, u.name "
        "FROM click_event AS c LEFT JOIN user_info FOR SYSTEM_TIME AS OF "
        f"c.{'ts' if as_of else 'proctime'} AS u ON c.user_id = u.user_id;"
    )


def wrong_rows(rows: pa.Table, users: int, span_ms: int) -> int:
    """How many rows of the as-of join have not the version of their own time."""
    third = span_ms // VERSIONS
    user = rows["user_id"].to_numpy()
    at_ms = pc.cast(rows["ts"], pa.timestamp("ms")).to_numpy() - _BASE
    since = at_ms.astype(np.int64) - user * 7919 % third
    version = np.minimum(since // third + 1, VERSIONS)
    found = rows["name"].to_pylist()
    expected = [
        None if u > users or v < 1 else f"user {u} v{v}"
        for u, v in zip(user.tolist(), version.tolist(), strict=True)
    ]
    return sum(one != other for one, other in zip(found, expected, strict=True))


# Windows
# --------------------------------------------------------------------------------------------------


def window_script(rig: Rig, topic: str, path: str, minutes: int) -> str:
    """Clicks of each user in windows of so many minutes."""
    columns = "user_id BIGINT, window_start TIMESTAMP(3), window_end TIMESTAMP(3), clicks BIGINT"
    return (
        click_table(rig, topic)
        + f"CREATE TABLE counts ({columns}) WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO counts SELECT user_id, window_start, window_end, COUNT(*) FROM TABLE("
        f"TUMBLE(TABLE click_event, DESCRIPTOR(ts), INTERVAL '{minutes}' MINUTES)) "
        "GROUP BY user_id, window_start, window_end;"
    )


def clicks_counted(rows: pa.Table, from_ms: int, until_ms: int) -> int:
    start, end = (
        pc.cast(rows[name].cast(pa.timestamp("us")), pa.timestamp("ms"), safe=False).to_numpy()
        for name in ("window_start", "window_end")
    )
    inside = (start >= _BASE + from_ms) & (end <= _BASE + until_ms)
    return int(pc.sum(rows["clicks"].filter(pa.array(inside))).as_py() or 0)
