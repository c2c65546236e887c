"""Tables that are read again and again: after each read the records say what the table was."""

import random
from dataclasses import replace

import pytest

from joins.durable.dead_rows import RESERVED_BYTES, SUFFIX, left_out
from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support.polled import mariadb_table, postgres_table

ID = Field("id", SqlType(TypeName.BIGINT), nullable=False)
NAME, VERSION = Field("name", SqlType(TypeName.STRING)), Field("version", SqlType(TypeName.BIGINT))
FIELDS = (ID, NAME, VERSION)
TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(400), version BIGINT)"
FIRST = "INSERT INTO t VALUES (1, 'a', 1), (2, NULL, 2), (3, '', 3)"


@pytest.fixture(params=["postgres", "mariadb"])
def table(request, postgres, mariadb, tmp_path):
    if request.param == "postgres":
        made = postgres_table(postgres, tmp_path, TABLE, FIRST)
    else:
        made = mariadb_table(mariadb, tmp_path, TABLE, FIRST)
    with made as one:
        yield one


def row(number, name, version=None):
    return {"id": number, "name": name, "version": number if version is None else version}


def test_the_first_read_is_the_whole_copy_and_later_ones_send_what_changed(table):
    session = table.sent(table.session(table.config(FIELDS)))
    assert table.rows() == [row(1, "a"), row(2, None), row(3, "")]
    assert table.topic.topic.copy().generation == 1
    first = len(table.topic.topic.records)
    table.read(session)
    assert len(table.topic.topic.records) == first, "equal rows are no change"
    table.run(
        "INSERT INTO t VALUES (4, 'd', 4)",
        "UPDATE t SET name = 'b' WHERE id = 2",
        "DELETE FROM t WHERE id = 3",
    )
    table.read(session)
    assert table.rows() == [row(1, "a"), row(2, "b"), row(4, "d")]
    assert len(table.topic.topic.records) == first + 3
    assert (session.state.rows, session.state.sent) == (3, 3)


def test_a_table_that_is_emptied_is_empty_after_the_next_read(table):
    session = table.sent(table.session(table.config(FIELDS)))
    table.run("DELETE FROM t")
    table.read(session)
    assert table.rows() == []
    table.read(session)
    table.run("INSERT INTO t VALUES (1, 'again', 1)")
    table.read(table.session(table.config(FIELDS)))
    assert table.rows() == [row(1, "again")]


def test_keys_of_a_read_that_was_cut_off_are_not_those_of_an_empty_table(table):
    config = table.config(FIELDS)
    session = table.sent(table.session(config))
    before = config.state_file.read_bytes()
    session.read(table.topic)  # it has written its keys, and is killed before its state
    config.state_file.write_bytes(before)
    table.run("DELETE FROM t")
    table.read(table.session(config))
    assert table.rows() == []
    table.run("INSERT INTO t VALUES (1, 'a', 1)")
    table.read(table.session(config))
    assert table.rows() == [row(1, "a")]


def test_its_time_is_that_of_the_begin_of_a_read_of_all_rows(table):
    session = table.sent(table.session(table.config(FIELDS, column="version")))
    (first,) = table.told.proofs()
    assert first["time_ms"] == session.state.whole_ms == session.state.started_ms
    assert abs(first["source_ms"] - first["time_ms"]) < 60_000, "one machine has both clocks"
    table.read(session)
    assert {proof["time_ms"] for proof in table.told.proofs()} == {first["time_ms"]}
    assert session.state.started_ms > session.state.whole_ms
    table.told.events.clear()
    config = table.config(FIELDS, column="version", whole_refresh_ms=0)
    every = table.read(table.session(config))
    assert table.told.proofs()[-1]["time_ms"] == every.state.started_ms


def test_by_a_column_only_newer_rows_are_read_until_all_are_read(table):
    config = table.config(FIELDS, column="version")
    session = table.sent(table.session(config))
    table.run(
        "INSERT INTO t VALUES (4, 'd', 4)",
        "INSERT INTO t VALUES (5, 'same version as the greatest', 3)",
        "UPDATE t SET name = 'unseen' WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
    )
    table.read(session)
    same = row(5, "same version as the greatest", 3)
    assert table.rows() == [row(1, "a"), row(2, None), row(3, ""), row(4, "d"), same]
    table.read(table.session(replace(config, whole_refresh_ms=0)))
    assert table.rows() == [row(1, "unseen"), row(3, ""), row(4, "d"), same]


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_LTZ", "INT"])
def test_each_kind_of_growing_column_is_compared_as_the_database_has_it(
    kind, postgres, mariadb, tmp_path
):
    column = Field("at", SqlType(TypeName(kind), 6 if kind != "INT" else 0))
    types = {"TIMESTAMP": ("timestamp", "DATETIME(6)"), "INT": ("int", "INT")}
    types["TIMESTAMP_LTZ"] = ("timestamptz", "TIMESTAMP(6) NULL")
    value = (lambda n: str(n)) if kind == "INT" else (lambda n: f"'2026-01-02 03:04:05.00000{n}'")
    for made, database, type_ in (
        (postgres_table, postgres, types[kind][0]),
        (mariadb_table, mariadb, types[kind][1]),
    ):
        (tmp_path / type_).mkdir(parents=True)
        with made(
            database, tmp_path / type_, f"CREATE TABLE t (id BIGINT PRIMARY KEY, at {type_})"
        ) as one:
            one.run(f"INSERT INTO t VALUES (1, {value(4)}), (2, {value(5)}), (3, NULL)")
            config = one.config((ID, column), column="at")
            session = one.sent(one.session(config))
            one.run(
                f"INSERT INTO t VALUES (4, {value(6)}), (5, {value(4)})",
                "DELETE FROM t WHERE id = 1",
            )
            one.read(session)
            assert [each["id"] for each in one.rows()] == [1, 2, 3, 4], type_
            one.run(f"INSERT INTO t VALUES (6, {value(7)})")
            one.read(one.session(config))
            assert [each["id"] for each in one.rows()] == [1, 2, 3, 4, 6], type_


def test_histories_with_kills_and_lost_brokers_end_as_the_table_is(table):
    """Whatever is sent twice, or half, after a complete read the records are the table."""
    chance = random.Random(7)
    config = table.config(FIELDS)
    session = table.sent(table.session(config))
    for _ in range(25):
        for _ in range(chance.randrange(6)):
            number = chance.randrange(8)
            table.run(f"DELETE FROM t WHERE id = {number}")
            if chance.random() < 0.7:
                version = chance.randrange(3)
                table.run(f"INSERT INTO t VALUES ({number}, 'n{chance.randrange(3)}', {version})")
        table.topic.topic.takes = chance.choice([None, 0, 1, 2])
        try:
            table.sent(session).read(table.topic)
            if chance.random() < 0.5:
                session = table.session(config)  # as after a kill: found, not sent
            table.sent(session)
        except SourceUnavailableError:
            session = table.session(config)
        table.topic.topic.takes = None
        if chance.random() < 0.5:
            table.read(session)
            expected = table.run("SELECT id, name, version FROM t ORDER BY id")
            assert [tuple(each.values()) for each in table.rows()] == [tuple(e) for e in expected]


def test_a_read_that_fails_has_no_effect(table):
    session = table.sent(table.session(table.config(FIELDS)))
    table.run("INSERT INTO t VALUES (4, 'd', 4)", "ALTER TABLE t DROP COLUMN name")
    with pytest.raises(SourceError):
        session.read(table.topic)
    assert table.rows() == [row(1, "a"), row(2, None), row(3, "")]
    assert list(table.directory.glob("*.changes.arrow")) == []
    table.run("ALTER TABLE t ADD COLUMN name VARCHAR(9)")
    table.read(table.session(table.config(FIELDS)))
    assert [each["name"] for each in table.rows()] == [None] * 4


@pytest.mark.parametrize("lost", ["keys", "changes"])
def test_without_the_files_of_the_last_read_the_table_is_copied_again(table, lost):
    session = table.sent(table.session(table.config(FIELDS)))
    table.run("DELETE FROM t WHERE id = 1", "UPDATE t SET name = 'x' WHERE id = 2")
    session.read(table.topic)
    for path in table.directory.glob(f"*.{lost}.arrow"):
        path.unlink()
    again = table.sent(table.session(table.config(FIELDS)))
    assert (again.state.generation, table.topic.topic.copy().generation) == (2, 2)
    assert table.rows() == [row(2, "x"), row(3, "")]


def test_a_row_that_no_message_can_hold_is_left_out_and_named(table):
    table.topic.most_bytes = RESERVED_BYTES + 300
    table.run(f"INSERT INTO t VALUES (4, '{'x' * 400}', 4)")
    session = table.sent(table.session(table.config(FIELDS)))
    assert [each["id"] for each in table.rows()] == [1, 2, 3]
    table.run(f"UPDATE t SET name = '{'y' * 400}' WHERE id = 1")
    table.read(session)
    assert [each["id"] for each in table.rows()] == [2, 3]
    dead = left_out([table.directory / f"t{SUFFIX}"], 1)
    assert sorted(dead.rows) == ['{"id":1}', '{"id":4}']
    table.run("UPDATE t SET name = 'short' WHERE id = 1")
    table.read(session)
    assert table.rows()[0] == row(1, "short")


def test_only_the_files_of_the_last_read_are_kept(table):
    session = table.sent(table.session(table.config(FIELDS)))
    for number in range(3):
        table.run(f"UPDATE t SET version = {number}")
        table.read(session)
    kept = sorted(path.name for path in table.directory.glob("*.arrow*"))
    assert kept == ["t.1-4.keys.arrow"]


def test_two_rows_of_one_key_stall_the_table(postgres, tmp_path):
    view = "CREATE VIEW t AS SELECT * FROM (VALUES (1::bigint, 'a'), (1, 'b')) AS v (id, name)"
    with postgres_table(postgres, tmp_path, view) as one:
        session = one.session(one.config((ID, NAME)))
        with pytest.raises(SourceError, match="two rows of the table"):
            session.read(one.topic)
