"""Types, values, character sets, row images and ALTERs of a real server: copy = log = `SELECT`.

A case is a value of a type in a table that is followed: the copy, the binlog and a plain `SELECT`
must give the same for it, or the source must say why it cannot. `wrong` is a row that differs
although the source had said nothing, `stuck` a table that is not right after a new copy either.
All that is tried is drawn from what the server says that it has.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pymysql

from joins.adapters.mysql.table import CapturedTable
from joins.plan.errors import SourceError
from tests.reliability.experiment import Lab, result
from tests.support.foreign_rows import (
    VALUES,
    Outcome,
    Watched,
    character_sets,
    insert_each,
    row_images,
    server_types,
    texts_of,
)
from tests.support.sql import run_sql
from tests.support.topics import unique_name

_FULL = "FULL"
_STRICT = ("", "STRICT_TRANS_TABLES")
# What servers add to a table, or keep of it, without a word: it is in row images all the same.
_SHAPES = (
    "note TEXT DEFAULT UUID(), UNIQUE (note)",
    "hidden INT INVISIBLE DEFAULT 5",
    "made INT AS (id + 1) VIRTUAL, stored INT AS (id + 2) STORED",
    "packed TEXT COMPRESSED DEFAULT 'abc', short VARCHAR(300) COMPRESSED DEFAULT 'd'",
    "place POINT DEFAULT POINT(1, 2), id6 INET6 DEFAULT '::1', u UUID DEFAULT UUID()",
    "since TIMESTAMP(6) GENERATED ALWAYS AS ROW START, until TIMESTAMP(6) GENERATED ALWAYS AS ROW"
    " END, PERIOD FOR SYSTEM_TIME (since, until)) WITH SYSTEM VERSIONING -- ",
)
_OLD_TIMES = ("TIMESTAMP(1)", "TIMESTAMP", "DATETIME(3)", "DATETIME", "TIME(6)", "TIME")


@dataclass
class Tally:
    """What came out.

    Attributes:
        followed: rows that are the same in all three ways.
        reasons: rows of tables of which the source said why it cannot follow or capture them.
        wrong: rows that differed, and the source had said nothing.
        stuck: tables that were not right after a new copy, or reasons without a word.
    """

    followed: int = 0
    reasons: int = 0
    wrong: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return self.followed + self.reasons + len(self.wrong) + len(self.stuck)


class Trial:
    """One schema in which tables are made, changed, followed and compared."""

    def __init__(self, lab: Lab) -> None:
        assert lab.mariadb is not None
        self._lab, self._mariadb = lab, lab.mariadb
        self.schema = unique_name("rows")
        self.tally = Tally()
        self._number = 0
        self.sql(f"CREATE DATABASE {self.schema}", schema=None)
        self.types = server_types(self._mariadb, self.schema)
        self.images = row_images(self._mariadb)
        lab.say(f"{len(self.types)} types, {len(self.images)} row images")

    def close(self) -> None:
        self.sql(f"DROP DATABASE {self.schema}", schema=None)

    def sql(self, *statements: str, schema: str | None = "") -> list[Any]:
        where = self.schema if schema == "" else schema
        return list(run_sql(self._mariadb, *statements, schema=where))

    def insert(self, values: Sequence[str], *, first: int, table: str) -> None:
        insert_each(
            self._mariadb,
            self.schema,
            [
                f"INSERT INTO {table} (id, v) VALUES ({first + n}, {v})"
                for n, v in enumerate(values)
            ],
        )

    def made(self, definition: str) -> Watched | None:
        """A new table with these columns behind `id`; None if the server does not take it."""
        self._number += 1
        name = f"t{self._number}"
        try:
            self.sql(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, {definition})")
        except pymysql.MySQLError:
            return None
        return Watched(self._mariadb, self.schema, name=name)

    # Judgement
    # ----------------------------------------------------------------------------------------------

    def compare(self, what: str, watched: Watched, table: CapturedTable, found: Outcome) -> None:
        """Each row of the log against the copy and `SELECT`."""
        if found.rows is None:
            self._explained(what, watched, found)
            return
        copied, selected = watched.copied(table), watched.selected(table)
        for key in sorted({*copied, *selected, *found.rows}):
            ways = [rows.get(key, "no row") for rows in (copied, found.rows, selected)]
            if all(repr(way) == repr(ways[0]) for way in ways):
                self.tally.followed += 1
            else:
                self.tally.wrong.append(f"{what}, row {key}: {ways!r}"[:600])
                self._lab.say(f"WRONG {self.tally.wrong[-1]}")

    def _explained(self, what: str, watched: Watched, found: Outcome) -> None:
        """What the source does not follow is right after a new copy, or is refused by its name."""
        if not (found.why and found.hint):
            self._stuck(what, "it gave no reason")
            return
        try:
            table = watched.captured()
            low, before = watched.low(), watched.copied(table)
            self.sql(f"UPDATE {watched.config.table} SET id = id + 100000 ORDER BY id DESC")
            again = watched.followed(table, low, before)
        except SourceError as exc:
            again = Outcome(None, exc.message)
            if exc.hint and f'"{watched.config.table}"' in exc.message.replace(".", '"'):
                self.tally.reasons += max(1, self._count(watched))
                return
        if again.rows is None or again.rows != watched.copied(table):
            self._stuck(what, f"{found.why}; after a new copy: {again.why or again.rows}")
        else:
            self.tally.reasons += max(1, len(again.rows))

    def _stuck(self, what: str, why: str) -> None:
        self.tally.stuck.append(f"{what}: {why}"[:600])
        self._lab.say(f"STUCK {self.tally.stuck[-1]}")

    def _count(self, watched: Watched) -> int:
        return int(self.sql(f"SELECT COUNT(*) FROM {watched.config.table}")[0][0])

    # What is tried
    # ----------------------------------------------------------------------------------------------

    def values(self, kind: str, image: str) -> None:
        watched = self.made(f"v {kind} NULL, spare INT DEFAULT 1")
        if watched is not None:
            self._changed(f"{kind} with {image}", watched, image, "spare = spare + 1")

    def shape(self, shape: str, image: str) -> None:
        watched = self.made(f"v VARCHAR(40), spare INT DEFAULT 1, {shape})#"[:-2])
        if watched is not None:
            self._changed(f"{shape} with {image}", watched, image, "spare = spare + 1")

    def _changed(self, what: str, watched: Watched, image: str, change: str) -> None:
        name = watched.config.table
        try:
            table = watched.captured()
        except SourceError as exc:
            self._refused(what, watched, exc)
            return
        low = watched.low()
        self.insert(VALUES, first=0, table=name)
        self.sql(
            "SET SESSION sql_mode='', time_zone='+00:00'",
            f"SET SESSION binlog_row_image='{image}'",
            f"UPDATE {name} SET {change} WHERE id % 2",
            f"UPDATE IGNORE {name} AS a, (SELECT id, v FROM {name}) AS b SET a.v = b.v"
            " WHERE a.id = b.id + 1 AND a.id % 3 = 0",
            f"UPDATE {name} SET id = id + 1000 WHERE id % 7 = 0",
            f"DELETE FROM {name} WHERE id % 11 = 0",
            f"INSERT INTO {name} (id, v) SELECT id + 2000, v FROM {name} WHERE id % 5 = 0",
        )
        self.compare(what, watched, table, watched.followed(table, low, {}))

    def _refused(self, what: str, watched: Watched, error: SourceError) -> None:
        """A type that is not captured is named, and does not disturb those beside it."""
        if f'.{watched.config.table}" is a ' in error.message and error.hint:
            self.tally.reasons += 1
            return
        if '"v"' not in error.message or not error.hint:
            self._stuck(what, f"refused without its column: {error.message}")
            return
        name = watched.config.table
        self.sql(f"ALTER TABLE {name} CHANGE v other {watched_type(self, name)} NULL, ADD v INT")
        table, low = watched.captured(), watched.low()
        insert_each(
            self._mariadb,
            self.schema,
            [
                f"INSERT INTO {name} (id, other, v) VALUES ({n}, {value}, {n})"
                for n, value in enumerate(VALUES)
                if "(v)" not in value
            ],
        )
        self.compare(f"beside {what}", watched, table, watched.followed(table, low, {}))

    def characters(self, charset: str, most_bytes: int) -> None:
        """Every code point and every sequence of bytes in a character set, and members in it."""
        watched = self.made(f"v TEXT CHARACTER SET {charset}")
        if watched is None:
            return
        table, low = watched.captured(), watched.low()
        self.insert(list(texts_of(charset, most_bytes)), first=0, table=watched.config.table)
        self.compare(f"characters of {charset}", watched, table, watched.followed(table, low, {}))
        members = r"'a','a\\b','c\nd','it''s','\0','\"','é','ß','Ж','ω','ﾊ','똠','中','\\'"
        for kind in ("ENUM", "SET"):
            watched = self.made(f"v {kind}({members}) CHARACTER SET {charset}")
            if watched is None:
                watched = self.made(rf"v {kind}('a','a\\b','c\nd','it''s') CHARACTER SET {charset}")
            if watched is not None:
                table, low = watched.captured(), watched.low()
                self.insert([str(n) for n in range(20)], first=0, table=watched.config.table)
                found = watched.followed(table, low, {})
                self.compare(f"{kind} in {charset}", watched, table, found)

    def altered(self, before: str, after: str, mode: str) -> None:
        """Rows before, between and after two changes of a type."""
        watched = self.made(f"v {before} NULL, spare INT")
        if watched is None:
            return
        name, what = watched.config.table, f"{before} to {after} with sql_mode '{mode}'"
        try:
            table = watched.captured()
        except SourceError as exc:
            if '"v"' in exc.message and exc.hint:
                self.tally.reasons += 1
            else:
                self._stuck(what, exc.message)
            return
        some = self._lab.random("foreign-rows", before, after).sample(VALUES, 9)
        self.insert(some[:3], first=0, table=name)
        low, held = watched.low(), watched.copied(table)
        self.insert(some[3:5], first=10, table=name)
        if not self._modified(name, after, mode):
            return
        self.insert(some[5:7], first=20, table=name)
        is_back = self._modified(name, before, mode)
        self.insert(some[7:], first=30, table=name)
        found = watched.followed(table, low, held)
        if found.rows is not None and not is_back:
            try:
                table = watched.captured()
            except SourceError as exc:
                self.tally.wrong.append(f"{what}: followed, and now {exc.message}")
                return
        self.compare(what, watched, table, found)

    def _modified(self, name: str, kind: str, mode: str) -> bool:
        try:
            self.sql(
                f"SET SESSION sql_mode='{mode}', time_zone='+00:00'",
                f"ALTER TABLE {name} MODIFY v {kind} NULL",
            )
        except pymysql.MySQLError:
            return False
        return True

    def old_times(self, kind: str) -> None:
        """Columns in the format of MariaDB 5.3, from the beginning or added later."""
        self.sql("SET GLOBAL mysql56_temporal_format=OFF")
        try:
            first = self.made(f"v VARCHAR(9), ts {kind} NULL, last INT")
            later = self.made("v VARCHAR(9), last INT")
            assert first is not None
            assert later is not None
            table, low = later.captured(), later.low()
            self.sql(f"ALTER TABLE {later.config.table} ADD ts {kind} NULL DEFAULT NULL AFTER id")
            self.sql(f"INSERT INTO {later.config.table} VALUES (1, NOW(), 'a', 3)")
            self.sql("SET GLOBAL mysql56_temporal_format=ON")
            self.sql(f"ALTER TABLE {later.config.table} DROP ts")
        finally:
            self.sql("SET GLOBAL mysql56_temporal_format=ON")
        try:
            self.tally.wrong.append(f"old {kind} was captured: {first.captured()}")
        except SourceError as exc:
            if '"ts"' in exc.message and "FORCE" in exc.hint:
                self.tally.reasons += 1
            else:
                self._stuck(f"old {kind}", exc.message)
        found = later.followed(table, low, {})
        if found.rows is not None:
            self.tally.wrong.append(f"old {kind} was followed: {found.rows}")
        else:
            self._explained(f"old {kind} for a while", later, found)


def watched_type(trial: Trial, table: str) -> str:
    line = next(
        row for row in trial.sql(f"SHOW CREATE TABLE {table}")[0][1].split("\n") if "`v`" in row
    )
    return str(line).strip().removeprefix("`v` ").rstrip(",").split(" DEFAULT")[0]


def plan_of(trial: Trial, lab: Lab) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What is tried: all of it at full scale, else what the seed chooses."""
    chosen = lab.random("foreign-rows")

    def some(items: Sequence[Any], few: int) -> list[Any]:
        return list(items) if lab.full else chosen.sample(list(items), min(few, len(items)))

    others = [image for image in trial.images if image != _FULL]
    yield from (("values", (kind, _FULL)) for kind in some(trial.types, 14))
    yield from (("values", pair) for pair in some(list(product(trial.types, others)), 8))
    yield from (("shape", pair) for pair in some(list(product(_SHAPES, trial.images)), 5))
    yield from (("characters", one) for one in some(character_sets_of(lab), 4))
    yield from (("old_times", (kind,)) for kind in some(_OLD_TIMES, 2))
    pairs = [(a, b, mode) for a, b in product(trial.types, repeat=2) for mode in _STRICT if a != b]
    count = lab.cases(30, 2_500)
    yield from (("altered", one) for one in chosen.sample(pairs, min(count, len(pairs))))


def character_sets_of(lab: Lab) -> list[tuple[str, int]]:
    assert lab.mariadb is not None
    return [one for one in character_sets(lab.mariadb) if one[0] != "binary"]


def run(lab: Lab) -> dict[str, Any]:
    """Each type, character set, row image and change of a type."""
    logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)  # warns of what we handle
    trial = Trial(lab)
    try:
        for number, (name, arguments) in enumerate(plan_of(trial, lab)):
            if number % 200 == 0:
                lab.say(f"{number}: {name} {arguments}")
            getattr(trial, name)(*arguments)
    finally:
        trial.close()
    told = trial.tally
    passed = told.followed + told.reasons
    is_ok = not (told.wrong or told.stuck)
    return {
        **result(lab, "foreign-rows", told.cases, passed, (), ok=is_ok),
        "wrong": len(told.wrong),
        "stuck": len(told.stuck),
        "followed": told.followed,
        "refused": told.reasons,
        "examples": [*told.wrong, *told.stuck][:20],
    }
