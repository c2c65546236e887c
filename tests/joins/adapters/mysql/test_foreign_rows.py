"""What others do to a table: its rows are right, or the source says why and what helps."""

import pytest

from joins.plan.errors import SourceError
from tests.support.foreign_rows import Watched, row_images, server_types
from tests.support.sql import new_schema, run_sql

TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT, spare INT DEFAULT 1)"
CHANGES = (
    "INSERT INTO t (id, v) VALUES (1, 'a'), (2, 'b'), (3, NULL)",
    "UPDATE t SET spare = 2",
    "UPDATE t SET v = 'c' WHERE id = 2",
    "UPDATE t SET id = 4 WHERE id = 1",
    "DELETE FROM t WHERE id = 3",
)


def test_each_row_image_of_the_server_is_followed_or_its_hint_helps(mariadb):
    images = row_images(mariadb)
    assert "FULL_NODUP" in images
    reasons = {}
    for image in images:
        with new_schema(mariadb, TABLE) as schema:
            watched = Watched(mariadb, schema)
            table, low = watched.captured(), watched.low()
            run_sql(mariadb, f"SET SESSION binlog_row_image='{image}'", *CHANGES, schema=schema)
            outcome = watched.followed(table, low, {})
            if outcome.rows is None:
                reasons[image] = (outcome.why, outcome.hint)
                low, held = watched.low(), watched.copied(table)
                with_full = "SET SESSION binlog_row_image=FULL"
                run_sql(mariadb, with_full, "UPDATE t SET v = 'd'", schema=schema)
                outcome = watched.followed(table, low, held)
            assert outcome.rows == watched.copied(table) == watched.selected(table)
    assert reasons.keys() == {"MINIMAL", "NOBLOB"}
    for why, hint in reasons.values():
        assert "without column" in why
        assert "Set binlog_row_image=FULL" in hint


def test_a_column_whose_length_is_not_told_is_read_after_what_the_hint_says(own_database):
    with new_schema(own_database, TABLE) as schema:
        watched = Watched(own_database, schema)
        table, low = watched.captured(), watched.low()
        try:
            run_sql(
                own_database,
                "SET GLOBAL mysql56_temporal_format=OFF",
                "ALTER TABLE t ADD ts TIMESTAMP(1) NULL FIRST",
                schema=schema,
            )
        finally:
            run_sql(own_database, "SET GLOBAL mysql56_temporal_format=ON")
        insert = "INSERT INTO t (ts, id, v) VALUES (NOW(), {}, 'a')"
        run_sql(own_database, insert.format(1), schema=schema)
        assert watched.followed(table, low, {}).rows is None
        with pytest.raises(SourceError, match='"ts"'):
            watched.captured()
        run_sql(own_database, "ALTER TABLE t FORCE", schema=schema)
        table, low = watched.captured(), watched.low()
        run_sql(own_database, insert.format(2), schema=schema)
        rows = watched.followed(table, low, watched.copied(table)).rows
        assert rows == watched.selected(table) == {1: "a", 2: "a"}


def test_types_come_from_the_servers_own_words(mariadb):
    with new_schema(mariadb) as schema:
        types = server_types(mariadb, schema)
    assert len(types) > 60
    named = {kind.split("(")[0].split()[0].upper() for kind in types}
    assert {"UUID", "INET6", "POINT", "BIT", "DATETIME"} <= named
