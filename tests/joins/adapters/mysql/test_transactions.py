"""Transactions that another server's stream has already told are skipped; GTIDs are counted."""

import struct
from uuid import UUID

import pytest

from joins.adapters.mysql.events.transactions import (
    Appeared,
    Begin,
    Boundary,
    RowImages,
    Transactions,
)
from joins.adapters.mysql.gtids import NewTransactions, Takeover, gtid_set
from joins.adapters.mysql.table import one_table
from joins.plan.errors import SnapshotNeededError
from joins.plan.table_patterns import TablePattern
from tests.support import binlogs
from tests.support.binlogs import CHARSETS, GTID, QUERY, TABLE, TABLE_MAP, WRITE, XID

OURS = bytes(range(16))
SOURCE = str(UUID(bytes=OURS))
ROTATE, ANONYMOUS, XA_PREPARE, TAGGED = 4, 34, 38, 42


def insert(number, kind=GTID, source=OURS, table="t"):
    """A transaction that inserts row `number`, ended at 1000 times `number`."""
    yield binlogs.event(kind, binlogs.gtid(number, source), number * 1_000 - 500)
    yield binlogs.event(QUERY, binlogs.query("BEGIN"))
    yield binlogs.event(TABLE_MAP, binlogs.table_map(table))
    yield binlogs.event(WRITE, binlogs.rows(WRITE, [(number, "a")]))
    yield binlogs.event(XID, struct.pack("<Q", 9), number * 1_000)


def told(events, gtids="", new=None, table=TABLE):
    transactions = Transactions(table, CHARSETS, 1, gtid_set(gtids), new)
    for data in events:
        yield from transactions.events_of(binlogs.packet(data).event)


def new_behind(applied, *, is_catching_up=True):
    takeover = Takeover(applied, "", "")
    return NewTransactions(takeover, is_mariadb=False, is_catching_up=is_catching_up)


def test_boundaries_have_the_gtids_of_what_is_before_them():
    events = [*insert(5), *insert(6), *insert(8)]
    boundaries = [e for e in told(events, f"{SOURCE}:1-3") if isinstance(e, Boundary)]
    assert [str(boundary.gtids) for boundary in boundaries] == [
        f"{SOURCE}:1-3:5",
        f"{SOURCE}:1-3:5-6",
        f"{SOURCE}:1-3:5-6:8",
    ]


@pytest.mark.parametrize("kind", [ANONYMOUS, TAGGED])
def test_a_transaction_without_a_gtid_that_is_read_makes_them_unknown(kind):
    found = told([*insert(5), *insert(6, kind), *insert(7)])
    boundaries = [event for event in found if isinstance(event, Boundary)]
    assert [boundary.gtids is None for boundary in boundaries] == [False, True, True]


def test_only_boundaries_are_told_of_what_was_applied():
    """In the other server's order: 7 was not applied, 5 and 8 were."""
    events = [*insert(7), *insert(5), *insert(8), *insert(9)]
    found = list(told(events, f"{SOURCE}:1-6:8", new_behind(f"{SOURCE}:1-6:8")))
    rows = [event.changes()[0][1][0] for event in found if isinstance(event, RowImages)]
    assert rows == [7, 9]
    assert [event.gtid.number for event in found if isinstance(event, Begin)] == [7, 9]
    places = [(event.pos, str(event.gtids)) for event in found if isinstance(event, Boundary)]
    assert places == [
        (7_000, f"{SOURCE}:1-8"),
        (5_000, f"{SOURCE}:1-8"),
        (8_000, f"{SOURCE}:1-8"),
        (9_000, f"{SOURCE}:1-9"),
    ]


def test_a_transaction_at_a_position_before_the_last_one_is_not_followed():
    """Positions have 32 bits: behind 4 GiB of a file they begin at 0 again."""
    with pytest.raises(SnapshotNeededError, match=r"at 4\d+, read behind position 6000"):
        list(told([*insert(6), *insert(5)]))


def test_a_transaction_behind_one_that_ends_beyond_4_gib_is_not_followed():
    """Each begins where the last one ends; a large one ends at a position before its own begin."""
    *large, _ = insert(6)
    end = binlogs.event(XID, struct.pack("<Q", 9), 100)
    behind = binlogs.event(GTID, binlogs.gtid(7), 500)
    with pytest.raises(SnapshotNeededError, match=r"at 4\d+, read behind position 5000"):
        list(told([*insert(5), *large, end, behind]))


def test_a_file_begins_at_0_again_behind_one_beyond_4_gib():
    """The server begins a file behind a transaction that is as large."""
    *large, _ = insert(6)
    end = binlogs.event(XID, struct.pack("<Q", 9), 100)
    rotate = binlogs.event(ROTATE, struct.pack("<Q", 4) + b"binlog.000002", 200)
    found = list(told([*insert(5), *large, end, rotate, *insert(1)]))
    assert [e.pos for e in found if isinstance(e, Begin)][-1] < 1_000


@pytest.mark.parametrize("table", ["t", "other"])
def test_rows_of_a_transaction_that_its_file_does_not_end_are_not_followed(table):
    """MariaDB leaves what it had written of it when it crashed, and undoes it in the table."""
    *open_ended, _ = insert(6, table=table)
    rotate = binlogs.event(ROTATE, struct.pack("<Q", 4) + b"binlog.000002", 200)
    events = [*insert(5), *open_ended, rotate, *insert(7)]
    if table == "t":
        with pytest.raises(SnapshotNeededError, match="no end before binlog file"):
            list(told(events, f"{SOURCE}:1-4"))
        return
    boundaries = [e for e in told(events, f"{SOURCE}:1-4") if isinstance(e, Boundary)]
    assert str(boundaries[-1].gtids) == f"{SOURCE}:1-5:7"


def test_rows_of_another_table_that_matches_are_told_where_they_are_new():
    """The table of the first transaction, which was applied, is that of the second."""
    matching = one_table(TablePattern("d", "t.*"), [TABLE])
    events = [*insert(5, table="t2"), *insert(6, table="t2"), *insert(7, table="s")]
    found = told(events, "", new_behind(f"{SOURCE}:1-5"), matching)
    assert [event for event in found if isinstance(event, Appeared)] == [Appeared("d", "t2")]


def test_a_statement_that_was_applied_is_not_judged_again():
    truncate = [
        binlogs.event(GTID, binlogs.gtid(5), 4_500),
        binlogs.event(QUERY, binlogs.query("TRUNCATE t"), 5_000),
    ]
    assert list(told(truncate, "", new_behind(f"{SOURCE}:1-5"))) == [Boundary(1, 5_000)]
    assert [type(e).__name__ for e in told(truncate, "", new_behind(f"{SOURCE}:1-4"))] == [
        "Begin",
        "Statement",
        "Boundary",
    ]


@pytest.mark.parametrize("kind", [ANONYMOUS, TAGGED])
def test_a_transaction_without_a_gtid_is_in_doubt_until_the_server_is_caught_up_with(kind):
    with pytest.raises(SnapshotNeededError, match="without a GTID"):
        list(told(insert(5, kind), "", new_behind("")))
    caught_up = new_behind("", is_catching_up=False)
    assert any(isinstance(event, RowImages) for event in told(insert(5, kind), "", caught_up))


def prepared(table, end=b"\0"):
    """An XA transaction with a row of `table`; `end` is 1 for XA COMMIT ... ONE PHASE."""
    yield binlogs.event(GTID, binlogs.gtid(5), 4_500)
    yield binlogs.event(QUERY, binlogs.query("XA START 'x'"))
    yield binlogs.event(TABLE_MAP, binlogs.table_map(table))
    yield binlogs.event(WRITE, binlogs.rows(WRITE, [(5, "a")]))
    yield binlogs.event(QUERY, binlogs.query("XA END 'x'"))
    yield binlogs.event(XA_PREPARE, end + struct.pack("<III", 1, 0, 0), 5_000)


def decided(sql):
    yield binlogs.event(GTID, binlogs.gtid(6), 5_500)
    yield binlogs.event(QUERY, binlogs.query(sql), 6_000)


XA = {
    "rolled_back": ("t", "XA ROLLBACK 'x'", "", False),
    "committed": ("t", "XA COMMIT 'x'", "", True),
    "committed_where_only_the_preparation_was_applied": ("t", "XA COMMIT 'x'", "1-5", True),
    "committed_and_applied": ("t", "XA COMMIT 'x'", "1-6", False),
    "of_another_table": ("other", "XA COMMIT 'x'", "", False),
    "prepared_before_the_stream_began": ("other", "XA COMMIT 'y'", "", True),
}


@pytest.mark.parametrize(("table", "sql", "applied", "is_refused"), XA.values(), ids=XA)
def test_rows_of_an_xa_transaction_are_refused_where_they_count(table, sql, applied, is_refused):
    events = [*prepared(table), *decided(sql)]
    new = new_behind(f"{SOURCE}:{applied}" if applied else "")
    if is_refused:
        with pytest.raises(SnapshotNeededError, match=r"distributed \(XA\) transaction '[xy]'"):
            list(told(events, "", new))
        return
    found = list(told(events, "", new))
    assert [e.pos for e in found if isinstance(e, Boundary)] == [5_000, 6_000]
    assert not any(isinstance(event, RowImages) for event in found)


@pytest.mark.parametrize("table", ["t", "other"])
def test_an_xa_transaction_of_one_phase_counts_at_its_end(table):
    if table == "t":
        with pytest.raises(SnapshotNeededError, match="one phase"):
            list(told(prepared(table, b"\1")))
    else:
        assert isinstance(list(told(prepared(table, b"\1")))[-1], Boundary)
