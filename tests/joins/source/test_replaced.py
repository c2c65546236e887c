"""Another table takes the captured one's place, by the statements of tools that change schemas.

It is followed without a copy exactly if the log tells that its rows are those of the copy.
"""

from functools import partial

import psutil
import pyarrow as pa
import pytest

from joins.kernels.changelog.comparison import Place as LogPlace
from joins.kernels.changelog.comparison import RowDigests, RowsSum
from joins.source.snapshot import SumAt
from tests.joins.source.test_snapshot import (
    CDC,
    FIELDS,
    PARTITIONS,
    REFILL,
    TABLE,
    Source,
    own_place,
    place,
    running,
)
from tests.support.copies import copy_of
from tests.support.rig import descendants
from tests.support.sql import new_schema
from tests.support.topics import consume
from tests.support.wait import wait_until

__all__ = ["own_place", "place"]

NAMES = [field.name for field in FIELDS]
ROWS = pa.schema([(n, pa.string() if n == "v" else pa.int64()) for n in NAMES])
KILL = "kill the process that reads the log"
COPY = "insert ignore into {} (id, v, other) select id, v, other from t where id"

GH_OST = (
    "create /* gh-ost */ table `_t_gho` like `t`",
    "alter /* gh-ost */ table `_t_gho` add column extra int not null default 7, engine=innodb",
    "INSERT INTO t (id, v, other) VALUES (2000, 'while it copies', 2000)",
    "replace /* gh-ost */ into `_t_gho` (id, v, other) values (2000, 'while it copies', 2000)",
    COPY.format("`_t_gho`") + " between 1 and 400 lock in share mode",
    "UPDATE t SET v = 'changed' WHERE id IN (7, 8)",
    "DELETE FROM t WHERE id = 9",
    "update /* gh-ost */ `_t_gho` set v = 'changed' where id in (7, 8)",
    "delete /* gh-ost */ from `_t_gho` where id = 9",
    COPY.format("`_t_gho`") + " between 401 and 3000 lock in share mode",
    "create /* gh-ost */ table `_t_del` (id int auto_increment primary key) engine=InnoDB",
    "drop /* gh-ost */ table `_t_del`",
    "rename /* gh-ost */ table `t` to `_t_del`, `_t_gho` to `t`",
)
PT_OSC = (
    "CREATE TABLE `_t_new` (id BIGINT PRIMARY KEY, v VARCHAR(50), other DECIMAL(9,2),"
    " doubled BIGINT AS (id * 2) VIRTUAL, kept BIGINT AS (id * 3) STORED, UNIQUE (other))",
    "ALTER TABLE `_t_new` ADD COLUMN extra INT NOT NULL DEFAULT 7 FIRST",
    "CREATE TRIGGER `osc_del` AFTER DELETE ON `t` FOR EACH ROW"
    " DELETE IGNORE FROM `_t_new` WHERE `_t_new`.`id` <=> OLD.`id`",
    "CREATE TRIGGER `osc_upd` AFTER UPDATE ON `t` FOR EACH ROW"
    " REPLACE INTO `_t_new` (`id`, `v`, `other`) VALUES (NEW.`id`, NEW.`v`, NEW.`other`)",
    "CREATE TRIGGER `osc_ins` AFTER INSERT ON `t` FOR EACH ROW"
    " REPLACE INTO `_t_new` (`id`, `v`, `other`) VALUES (NEW.`id`, NEW.`v`, NEW.`other`)",
    COPY.format("`_t_new`") + " <= 600",
    "UPDATE t SET v = CONCAT(v, '!') WHERE id % 2",
    "DELETE FROM t WHERE id % 7 = 0",
    COPY.format("`_t_new`") + " > 600",
    "ANALYZE TABLE `_t_new`",
    "RENAME TABLE `t` TO `_t_old`, `_t_new` TO `t`",
    "DROP TABLE IF EXISTS `_t_old`",
    "DROP TRIGGER IF EXISTS `osc_del`",
)
_MADE, _SWAP = "CREATE TABLE t_new LIKE t", "RENAME TABLE t TO t_old, t_new TO t"
_FILL = COPY.format("t_new") + " > 0"
SAME = {
    "gh_ost": GH_OST,
    "pt_online_schema_change": PT_OSC,
    "gh_ost_and_its_reader_dies": (*GH_OST[:7], KILL, *GH_OST[7:]),
    "the_reader_dies_in_the_middle_of_a_transaction": (
        _MADE,
        "START TRANSACTION",
        COPY.format("t_new") + " <= 500",
        KILL,
        COPY.format("t_new") + " > 500",
        "COMMIT",
        _SWAP,
    ),
    "a_column_widened": (_MADE, "ALTER TABLE t_new MODIFY v LONGTEXT", _FILL, _SWAP),
    "a_first_try_given_up": (
        _MADE,
        COPY.format("t_new") + " < 100",
        "DROP TABLE t_new",
        "CREATE OR REPLACE TABLE t_new LIKE t",
        _FILL,
        _SWAP,
    ),
    "another_table_named_after_it": (
        "CREATE TABLE t_other (a INT)",
        "INSERT INTO t_other VALUES (1)",
        _MADE,
        _FILL,
        "RENAME TABLE t TO t_old, t_new TO t_next, t_next TO t",
    ),
    "a_key_moved_there_and_back": (
        _MADE,
        _FILL,
        "UPDATE t_new SET id = id + 9000 WHERE id < 50",
        "UPDATE t_new SET id = id - 9000 WHERE id > 9000",
        _SWAP,
    ),
}
OTHER = {
    "one_row_less": (_MADE, COPY.format("t_new") + " <> 5", _SWAP),
    "one_value_differs": (_MADE, _FILL, "UPDATE t_new SET v = 'w' WHERE id = 5", _SWAP),
    "values_of_two_rows_swapped": (
        _MADE,
        _FILL,
        "UPDATE t_new SET v = IF(id = 1, 'v2', 'v1') WHERE id IN (1, 2)",
        _SWAP,
    ),
    "made_by_if_not_exists": ("CREATE TABLE IF NOT EXISTS t_new LIKE t", _FILL, _SWAP),
    "named_otherwise": (
        "CREATE TABLE n LIKE t",
        COPY.format("n") + " > 0",
        "RENAME TABLE t TO t_old, n TO t",
    ),
    "truncated_meanwhile": (_MADE, _FILL, "TRUNCATE t_new", _FILL, _SWAP),
    "converted_with_rows_in_it": (_MADE, _FILL, "ALTER TABLE t_new MODIFY v VARCHAR(40)", _SWAP),
    "narrower_values": (
        "SET SESSION sql_mode=''",
        _MADE,
        "ALTER TABLE t_new MODIFY v VARCHAR(2)",
        _FILL,
        _SWAP,
    ),
    "in_two_steps": (_MADE, _FILL, "RENAME TABLE t TO t_old", "RENAME TABLE t_new TO t"),
    "rows_without_some_columns": (
        _MADE,
        _FILL,
        "SET SESSION binlog_row_image=MINIMAL",
        "UPDATE t_new SET v = 'w' WHERE id = 1",
        "UPDATE t_new SET v = 'v1' WHERE id = 1",
        "SET SESSION binlog_row_image=FULL",
        _SWAP,
    ),
    "filled_by_a_distributed_transaction": (
        _MADE,
        "XA START 'x'",
        _FILL,
        "XA END 'x'",
        "XA PREPARE 'x'",
        "XA COMMIT 'x'",
        _SWAP,
    ),
    "there_and_back": ("RENAME TABLE t TO t_new, t_new TO t",),
}


def topic_sum(servers: str, topic: str) -> SumAt:
    """The rows that a topic tells, as a job knows them by its changelog."""

    def sum_at(at: LogPlace, generation: int) -> RowsSum:
        copy = copy_of(consume(servers, topic), PARTITIONS)
        assert copy.generation == generation
        rows = pa.Table.from_pylist(list(copy.rows.values()), schema=ROWS)
        return RowsSum.of(RowDigests.of(rows, ["id"], NAMES))

    return sum_at


following = partial(running, sum_of=topic_sum)


def play(source: Source, statements: tuple[str, ...]) -> None:
    """All in one session."""
    with source.database.connect(source.schema) as connection, connection.cursor() as cursor:
        for statement in statements:
            if statement == KILL:
                (child,) = wait_until(partial(descendants, psutil.Process(), CDC))
                child.kill()
                wait_until(lambda gone=child: not gone.is_running())
            else:
                cursor.execute(statement)


def begin_again(source: Source) -> None:
    tables = "t_old, _t_old, _t_del, t_new, _t_new, _t_gho, t_other, n"
    source.sql(
        f"DROP TABLE IF EXISTS {tables}",
        *(f"DROP TRIGGER IF EXISTS osc_{event}" for event in ("del", "upd", "ins")),
        "ALTER TABLE t DROP COLUMN IF EXISTS extra, MODIFY v LONGTEXT",
        *REFILL,
    )


@pytest.mark.experiment
def test_the_rows_of_the_copy_in_another_table_need_no_copy(own_place):
    with new_schema(own_place.database, *TABLE) as schema, following(own_place, schema) as source:
        source.wait_same(1)
        for name, statements in SAME.items():
            play(source, statements)
            source.sql("UPDATE t SET v = 'behind it' WHERE id = 500")
            source.wait_same(1, what=name)
            begin_again(source)
            source.wait_same(1, what=f"behind {name}")


@pytest.mark.experiment
def test_other_rows_or_rows_that_the_log_does_not_tell_are_copied(own_place):
    with new_schema(own_place.database, *TABLE) as schema, following(own_place, schema) as source:
        source.wait_same(1)
        for generation, (name, statements) in enumerate(OTHER.items(), start=2):
            play(source, statements)
            source.sql("UPDATE t SET v = 'e' WHERE id = 500")
            source.wait_same(generation, what=name)
            begin_again(source)
            source.wait_same(generation, what=f"behind {name}")
