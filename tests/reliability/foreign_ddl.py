"""Experiment `foreign-ddl`: what others do to a captured table, written in all the ways there are.

Each generated statement runs on the database while the source streams its binlog. After it the rows
that the changelog topic tells are those of `SELECT`, or the source has said why it cannot follow;
then the table is copied again, and the rows are compared again. Daily work has nothing copied.
The source is the product's own CDC session and snapshot reader, without Spark.
"""

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pymysql
from hypothesis import HealthCheck, Phase, given, seed, settings

from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.reliability.experiment import Lab, result
from tests.reliability.followed import Followed, Rows, as_text
from tests.support.foreign_ddl import (
    CONCERNING,
    ODD,
    ROUTINE,
    TABLE,
    UNDONE,
    Deed,
    Written,
    elsewhere,
    written,
)
from tests.support.sql import cdc_connection
from tests.support.topics import unique_name
from watermark.errors import SluiceError

_FIELDS = (
    Field("id", SqlType(TypeName.BIGINT)),
    Field("v", SqlType(TypeName.STRING)),
    Field("n", SqlType(TypeName.STRING)),
)
_SELECT = f"SELECT id, v, n FROM {TABLE}"
_ROWS = (
    f"REPLACE INTO {TABLE} (id, v, n) SELECT seq, CONCAT('v', %s, seq), seq %% 7 FROM seq_1_to_9"
)
_COLUMNS = "(id BIGINT PRIMARY KEY, v VARCHAR(50), n INT, spare VARCHAR(9), KEY by_n (n))"
_TABLES = (
    f"CREATE TABLE {TABLE} {_COLUMNS}",
    "CREATE TABLE carts (id BIGINT PRIMARY KEY, v VARCHAR(50), n INT)",
    f"CREATE TABLE `{ODD}` (id INT)",
    "CREATE TABLE plain (id INT) ENGINE=MyISAM",
    "CREATE TABLE watched (id INT PRIMARY KEY)",
    "CREATE TRIGGER watching AFTER INSERT ON watched FOR EACH ROW"
    f" DELETE FROM {TABLE} WHERE id = NEW.id",
    f"CREATE VIEW seen AS SELECT * FROM {TABLE}",
    f"CREATE PROCEDURE emptying() TRUNCATE TABLE {TABLE}",
    f"CREATE FUNCTION emptied() RETURNS INT DETERMINISTIC BEGIN DELETE FROM {TABLE}; RETURN 1; END",
)
_OBJECTS = (
    "SELECT CONCAT(TABLE_NAME, TABLE_TYPE, IFNULL(ENGINE, ''), IFNULL(CREATE_OPTIONS, ''))"
    " FROM information_schema.TABLES WHERE TABLE_SCHEMA=%s"
    " UNION SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA=%s"
    " UNION SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA=%s"
    " UNION SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA=%s"
    " UNION SELECT CONCAT(TABLE_NAME, COLUMN_NAME, COLUMN_TYPE) FROM information_schema.COLUMNS"
    " WHERE TABLE_SCHEMA=%s UNION SELECT CONCAT(TABLE_NAME, INDEX_NAME)"
    " FROM information_schema.STATISTICS WHERE TABLE_SCHEMA=%s"
)


@dataclass
class Tally:
    """What came out of the statements.

    Attributes:
        refused: the server did not take them; they are no cases.
        copied: the source said why it could not follow, and the copy was right again.
        wrong: rows differed, and the source had said nothing.
        needless: daily work had the table copied.
        failed: neither came in time, or the copy was not right.
    """

    cases: int = 0
    followed: int = 0
    copied: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)
    needless: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


class Place:
    """One schema, its captured table, and a source that follows it."""

    def __init__(self, lab: Lab) -> None:
        self.schema = unique_name("ddl")
        self._lab = lab
        self._connection = cdc_connection(lab.mariadb, self.schema, TABLE)
        self._source = Followed(lab, "foreign-ddl", TABLE, _FIELDS)
        self._objects: Sequence[Any] = ()
        self.tally = Tally()

    def close(self) -> None:
        """End everything and remove what is there."""
        self._source.close()
        self._sql(*self._dropped())

    def run(self, plan: Sequence[tuple[Written, bool]]) -> None:
        """Carry out each of `plan`, which says whether it is daily work."""
        for number, (one, is_routine) in enumerate(plan):
            self._prepare()
            self._sql(_ROWS % number)
            try:
                self._do(one)
            except pymysql.MySQLError as exc:
                self.tally.refused += 1
                self._lab.say(f"refused: {one.text!r}: {exc}")
                continue
            self.tally.cases += 1
            try:
                self._judge(one, is_routine)
            except TimeoutError as exc:
                self._fail(f"{one.text!r}: {exc}")

    def _sql(self, *statements: str) -> list[Any]:
        with self._lab.mariadb.connect() as connection, connection.cursor() as cursor:
            with contextlib.suppress(pymysql.err.OperationalError):  # the schema may be gone
                connection.select_db(self.schema)
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def _do(self, one: Written) -> None:
        with self._lab.mariadb.connect(one.default) as connection, connection.cursor() as cursor:
            for statement in (*one.deed.before, one.text, *one.deed.after):
                cursor.execute(statement)

    def _judge(self, one: Written, is_routine: bool) -> None:
        label = f"{one.text!r} in {one.default!r} after {one.deed.before}"
        error = self._source.settled(self._connection)
        table = self._table()
        if error is None:
            good = table is not None and self._source.rows() == table
            self.tally.followed += good
            if not good:
                self.tally.wrong.append(label)
                self._lab.say(f"WRONG: {label}: {self._source.rows()} for {table}")
                self._source.end()
            return
        self._source.end()
        if is_routine:
            self.tally.needless.append(f"{label}: {error['message']}")
            self._lab.say(f"needless: {label}: {error['message']}")
        told = error["message"] and error["hint"] and error["type"] == "SnapshotNeededError"
        try:
            good = bool(told) and self._copied_again(table)
        except SluiceError as exc:  # it does not fit any more, and says so
            good = bool(exc.message and exc.hint)
        self.tally.copied += good
        if not good:
            self._fail(f"{label}: {error}")

    def _fail(self, what: str) -> None:
        self.tally.failed.append(what)
        self._lab.say(f"FAILED: {what}")
        self._source.end()

    def _copied_again(self, table: Rows | None) -> bool:
        self._source.start(self._connection)
        return self._source.settled(self._connection) is None and self._source.rows() == table

    def _table(self) -> Rows | None:
        """The rows of the server, None without a table."""
        names = [one.name for one in _FIELDS]
        try:
            found = self._sql(_SELECT)
        except pymysql.MySQLError:
            return None
        return as_text({(row[0],): dict(zip(names, row, strict=True)) for row in found})

    # The source
    # ----------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """The tables as they are at first, and a source that follows."""
        names = [self.schema] * 6
        with self._lab.mariadb.connect() as connection, connection.cursor() as cursor:
            cursor.execute(_OBJECTS, names)
            objects = sorted(cursor.fetchall())
            if not self._objects or objects != self._objects:
                self._source.end()
                self._sql(*self._dropped(), f"CREATE DATABASE {self.schema}")
                self._sql(*_TABLES, *self._made_elsewhere())
                cursor.execute(_OBJECTS, names)
                self._objects = sorted(cursor.fetchall())
        if not self._source.is_running:
            self._source.start(self._connection)
            error = self._source.settled(self._connection)
            assert error is None, error

    def _dropped(self) -> tuple[str, ...]:
        schemas = (self.schema, elsewhere(self.schema))
        return tuple(f"DROP DATABASE IF EXISTS {name}" for name in schemas)

    def _made_elsewhere(self) -> tuple[str, ...]:
        name = elsewhere(self.schema)
        return f"CREATE DATABASE IF NOT EXISTS {name}", f"CREATE TABLE {name}.{TABLE} (id INT)"


def ways(lab: Lab, deed: Deed, schema: str, count: int) -> list[Written]:
    """`count` ways to write `deed`, the same for the same seed; the first one is the plain one."""
    found: list[Written] = []

    @seed(f"{lab.seed} {deed}")
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(written(deed, schema, is_gated=deed not in ROUTINE))
    def collect(one: Written) -> None:
        found.append(one)

    collect()
    return found


def plan_of(lab: Lab, schema: str) -> list[tuple[Written, bool]]:
    """What is carried out, and whether it is daily work, in an order of the seed's."""
    few, many = lab.cases(1, 30), lab.cases(1, 30)
    found = [(one, False) for d in (*CONCERNING, *UNDONE) for one in ways(lab, d, schema, few)]
    found += [(one, True) for deed in ROUTINE for one in ways(lab, deed, schema, many)]
    lab.random("foreign-ddl").shuffle(found)
    return found


def run(lab: Lab) -> dict[str, Any]:
    """Every deed in several ways."""
    logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)  # warns of what we handle
    with contextlib.closing(Place(lab)) as place:
        plan = plan_of(lab, place.schema)
        lab.say(f"{len(plan)} statements")
        place.run(plan)
    told = place.tally
    passed = told.followed + told.copied - len(told.needless)
    is_ok = not (told.wrong or told.needless or told.failed)
    return {
        **result(lab, "foreign-ddl", told.cases, passed, (), ok=is_ok),
        "wrong": len(told.wrong),
        "needless": len(told.needless),
        "copied": told.copied,
        "followed": told.followed,
        "refused": told.refused,
        "examples": [*told.wrong, *told.needless, *told.failed][:20],
    }
