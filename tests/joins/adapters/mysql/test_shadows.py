"""The sum of a shadow table's rows, over histories of the log and restarts anywhere in them."""

from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.mysql.events.shadows import Shadows, ShadowsAt
from joins.adapters.mysql.events.transactions import Begin, Boundary, ShadowRows
from joins.adapters.mysql.statements import created_empty, put_in_place
from joins.adapters.mysql.tokens import Modes, Statement, TableName, Target
from joins.durable.codec import as_json, from_json
from joins.kernels.changelog.comparison import RowDigests, RowsSum
from tests.support import binlogs
from tests.support.binlogs import TABLE
from tests.support.laws import examples

SWAP = Statement("d", "RENAME TABLE t TO _t_old, _t_new TO t", Modes())
_HEADER_AND_CHECKSUM, _EACH = 23, 1_000  # bytes of an event; between two transactions
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def sum_of(rows: dict[int, str]) -> RowsSum:
    table = pa.Table.from_pylist([{"id": k, "v": v} for k, v in rows.items()], schema=SCHEMA)
    return RowsSum.of(RowDigests.of(table, ["id"], ["id", "v"]))


@dataclass
class Log:
    """A log under construction, and the rows of the shadow at each of its transactions' ends."""

    events: list[bytes] = field(default_factory=list)
    rows: dict[int, str] = field(default_factory=dict)
    pos: int = 100
    number: int = 0

    def _transaction(self, *inside: bytes) -> None:
        self.number += 1
        body = binlogs.gtid(self.number)
        begun = binlogs.event(binlogs.GTID, body, self.pos + _HEADER_AND_CHECKSUM + len(body))
        self.pos += _EACH
        self.events += [begun, *inside]

    def statement(self, sql: str) -> None:
        self._transaction(binlogs.event(binlogs.QUERY, binlogs.query(sql), self.pos + _EACH))

    def change(self, changes: list[tuple[str, int, str]]) -> None:
        """`changes` of the shadow in one transaction, beside one of the captured table."""
        inside = [binlogs.event(binlogs.QUERY, binlogs.query("BEGIN"))]
        for table, kind, images in (("t", "put", [(1, "of t")]), *self._applied(changes)):
            number = {"put": binlogs.WRITE, "update": binlogs.UPDATE}.get(kind, binlogs.DELETE)
            inside.append(binlogs.event(binlogs.TABLE_MAP, binlogs.table_map(table)))
            inside.append(binlogs.event(number, binlogs.rows(number, images)))
        self._transaction(*inside, binlogs.event(binlogs.XID, bytes(8), self.pos + _EACH))

    def _applied(self, changes):
        for kind, key, value in changes:
            before = self.rows.get(key)
            if kind == "delete":
                if before is not None:
                    del self.rows[key]
                    yield "_t_new", "delete", [(key, before)]
                continue
            self.rows[key] = value
            images = [(key, value)] if before is None else [(key, before), (key, value)]
            yield "_t_new", "put" if before is None else "update", images


def feed(shadows: Shadows, events: list, first: int = 0) -> None:
    for event in events[first:]:
        if isinstance(event, Begin):
            shadows.begin(event.file, event.pos)
        elif isinstance(event, Boundary):
            shadows.end(event.file, event.pos)
        elif isinstance(event, ShadowRows):
            shadows.add(event)
        elif isinstance(event, Statement):
            shadows.note(event)


CHANGE = st.tuples(
    st.sampled_from(["put", "put", "delete"]), st.integers(1, 6), st.sampled_from(["a", "b", ""])
)


@given(
    history=st.lists(st.lists(CHANGE, max_size=4), min_size=1, max_size=8),
    data=st.data(),
)
@settings(max_examples=examples(300), deadline=None)
def test_the_sum_is_that_of_the_rows_wherever_a_session_ends(history, data):
    """A session keeps the sums at its last boundary, and the next one begins anywhere before."""
    log = Log()
    log.statement("CREATE TABLE _t_new LIKE t")
    for changes in history:
        log.change(changes)
    told = list(binlogs.told(log.events))
    ends = [at for at, event in enumerate(told) if isinstance(event, Boundary)]
    ended = data.draw(st.integers(1, len(told)), "events of the first session")
    shadows = Shadows(TABLE)
    feed(shadows, told[:ended])
    kept = shadows.kept()
    again = None if kept is None else from_json(ShadowsAt, as_json(kept))
    sent = [at for at in ends if at < ended]
    first = data.draw(st.sampled_from([-1, *sent]), "the boundary that was acknowledged") + 1
    second = Shadows(TABLE, again)
    feed(second, told, first)
    shadow = second.put_in_place(SWAP)
    assert shadow is not None
    assert (shadow.table, shadow.sum) == ("_t_new", sum_of(log.rows))


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE _t_new",
        "TRUNCATE _t_new",
        "RENAME TABLE _t_new TO x",
        "ALTER TABLE _t_new MODIFY v VARCHAR(3)",
        "DROP DATABASE d",
        "INSERT INTO _t_new VALUES (1, 'x')",
    ],
)
def test_a_shadow_whose_rows_a_statement_may_change_is_one_no_longer(statement):
    log = Log()
    log.statement("CREATE TABLE _t_new LIKE t")
    log.change([("put", 1, "a")])
    log.statement(statement)
    shadows = Shadows(TABLE)
    feed(shadows, list(binlogs.told(log.events)))
    assert shadows.put_in_place(SWAP) is None


CREATED = {
    "like": ("CREATE TABLE n LIKE t", TableName("d", "n")),
    "by_gh_ost": ("create /* gh-ost */ table `e`.`_t_gho` like `e`.`t`", TableName("e", "_t_gho")),
    "with_columns": ("CREATE TABLE n (id INT)", TableName("d", "n")),
    "replaced": ("CREATE OR REPLACE TABLE n (id INT)", TableName("d", "n")),
    "that_may_be_there": ("CREATE TABLE IF NOT EXISTS n LIKE t", None),
    "with_rows": ("CREATE TABLE n (id INT) SELECT 1 AS id", None),
    "for_a_session": ("CREATE TEMPORARY TABLE n (id INT)", None),
    "in_one_of_two_readings": ("CREATE TABLE n (id INT) /*!80000 SELECT 1 AS id */", None),
    "no_table": ("CREATE INDEX n ON t (v)", None),
}


@pytest.mark.parametrize(("text", "expected"), CREATED.values(), ids=CREATED)
def test_tables_that_a_statement_creates_empty(text, expected):
    assert created_empty("d", text, Modes()) == expected


PUT = {
    "swapped": ("RENAME TABLE t TO o, n TO t", TableName("d", "n")),
    "with_databases": ("RENAME TABLE d.t TO d.o, e.n TO d.t", TableName("e", "n")),
    "by_a_third_name": ("RENAME TABLE n TO m, t TO n, m TO t", TableName("d", "n")),
    "there_and_back": ("RENAME TABLE t TO o, o TO t", None),
    "only_away": ("RENAME TABLE t TO o", None),
    "of_others": ("RENAME TABLE a TO b, c TO a", None),
    "by_alter": ("ALTER TABLE n RENAME TO t", None),
    "in_another_case": ("RENAME TABLE T TO o, n TO T", None),
}


@pytest.mark.parametrize(("text", "expected"), PUT.values(), ids=PUT)
def test_the_table_that_a_statement_puts_in_place(text, expected):
    assert put_in_place("d", text, Target("d", "t", ("id",)), Modes()) == expected
