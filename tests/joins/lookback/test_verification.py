"""A comparison with a real server finds each planted fault, and nothing where the copy is right."""

from datetime import UTC, datetime
from decimal import Decimal
from hashlib import md5

import pyarrow as pa
import pytest

from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.mysql.consistent_read import consistent_read
from joins.adapters.mysql.position import take_high, take_low
from joins.adapters.mysql.source import check_source
from joins.dimension.changelog_scan import DimensionStates
from joins.dimension.maintenance import (
    ChangelogMaintenance,
    DimensionKey,
    Upkeep,
    UpkeepSettings,
)
from joins.kernels.changelog.envelope import changelog_schema
from joins.lookback.verification import Verification, VerifyLimits
from joins.plan.errors import VerificationError
from joins.plan.plan import Dimension, Field, MetadataField, MysqlCdcSource
from joins.plan.types import SqlType, TypeName
from tests.support.changelog import stage
from tests.support.sql import cdc_connection, new_schema, run_sql

COLUMNS = "a BIGINT PRIMARY KEY, v VARCHAR(40), d DECIMAL(12,2), b VARBINARY(20)"
TYPES = ("BIGINT", "STRING", "DECIMAL", "BYTES")
ROWS = 40


def place_of(mark):
    return mark.position.epoch, mark.position.file, mark.position.pos


class Copy:
    """A table on the server, and its changelog, which has what the test sends."""

    def __init__(self, mariadb, schema, root, columns=COLUMNS, key="a", metadata=()):
        self.mariadb, self.schema = mariadb, schema
        run_sql(mariadb, f"CREATE TABLE t ({columns})", schema=schema)
        sizes = {"DECIMAL": (12, 2)}
        fields = tuple(
            Field(name, SqlType(TypeName(kind), *sizes.get(kind, ())))
            for name, kind in zip("avdb", TYPES, strict=True)
        )
        if key != "a":
            fields = (Field("a", SqlType(TypeName.STRING)), *fields[1:])
        fields = (*fields, *(Field(item.name, item.type) for item in metadata))
        login = mariadb.cdc_user, mariadb.cdc_password
        self.config = cdc_connection(mariadb, schema, metadata=metadata)
        self.table = check_source(self.config, fields, ("a",))
        create_table(root, changelog_schema(self.table.captured))
        self.log = DeltaLog(root, "app")
        source = MysqlCdcSource("127.0.0.1", mariadb.port, *login, schema, "t", metadata=metadata)
        self.states = DimensionStates(self.log, Dimension("t", source, fields, ("a",)), 1)
        self.offset = self.batch = 0

    def sql(self, *statements):
        run_sql(self.mariadb, *statements, schema=self.schema)

    def send(self, place, op, rows, *, first=0):
        epoch, file, pos = place
        records = [
            {
                **row,
                "_op": op,
                "_epoch": epoch,
                "_file": file,
                "_pos": pos,
                "_row": -1 if op in "rw" else first + number,
                "_source_ts": 1,
                "_partition": 0,
                "_offset": self.offset + number,
                "_generation": 1,
            }
            for number, row in enumerate(rows)
        ]
        self.offset += len(records)
        batch = pa.RecordBatch.from_pylist(records, schema=changelog_schema(self.table.captured))
        version = self.log.commit(
            self.batch, 1, [stage(self.log.path, batch, number=self.batch)], {}
        )
        self.batch += 1
        return version

    def copy(self):
        low = take_low(self.config, 0)
        with consistent_read(self.config, self.table, 0) as read:
            rows = [
                row
                for chunk in read.chunks(1_000)
                for part in read.rows(chunk)
                for row in part.select([c.name for c in self.table.captured]).to_pylist()
            ]
        self.send(place_of(low), "r", rows)
        self.send(place_of(take_high(self.config, 0)), "w", [{}])

    def follow(self, statement, op, **row):
        """Run `statement`, and send its change as the CDC process does."""
        begins = place_of(take_high(self.config, 0))
        self.sql(statement)
        return self.send(begins, op, [row])

    def verify(self, *, meanwhile=lambda: None, proven=None, is_over=lambda: False, **limits):
        limits = VerifyLimits(**{"chunk_rows": 10, "proof_s": 0.5, "seed": 1, **limits})
        first = self.states.newest()
        with consistent_read(self.config, self.table, 0) as read:
            meanwhile()
            reached = proven or (lambda: place_of(take_high(self.config, 0)))
            return Verification(self.states, read, reached, limits, is_over=is_over).run(first)


@pytest.fixture
def copy(mariadb, tmp_path):
    with new_schema(mariadb) as schema:
        made = Copy(mariadb, schema, tmp_path / "changelog")
        made.sql(
            "INSERT INTO t SELECT seq, CONCAT('v', seq), seq / 4, UNHEX(MD5(seq)) "
            f"FROM seq_1_to_{ROWS}"
        )
        made.copy()
        yield made


def found(result):
    return {item["key"]["a"]: item["kind"] for item in result["items"]}


def test_a_true_copy_is_equal(copy):
    copy.follow("UPDATE t SET v = 'new' WHERE a = 3", "u", **row_of(3, v="new"))
    copy.follow("DELETE FROM t WHERE a = 4", "d", a=4)
    copy.follow("INSERT INTO t VALUES (99, NULL, 1.50, NULL)", "c", a=99, d=Decimal("1.50"))
    result = copy.verify()

    assert (result["differences"], result["rows"], result["chunks"]) == (0, ROWS, 4)
    assert (result["sample"], result["finds_extra"], result["items"]) == (1.0, True, [])
    assert result["position"]["file"].rpartition(".")[2].isdigit()


def row_of(number, **changed):
    """The row that the fixture has written."""
    row = {
        "a": number,
        "v": f"v{number}",
        "d": Decimal(number) / 4,
        "b": md5(str(number).encode(), usedforsecurity=False).digest(),
    }
    return {**row, **changed}


FAULTS = {
    "a_change_without_binlog": (
        lambda c: c.sql("SET sql_log_bin = 0", "UPDATE t SET v = 'odd' WHERE a = 7"),
        {7: "changed"},
    ),
    "an_insert_without_binlog": (
        lambda c: c.sql("SET sql_log_bin = 0", "INSERT INTO t VALUES (1000, 'x', 1, NULL)"),
        {1000: "missing"},
    ),
    "a_lost_insert": (lambda c: c.sql("INSERT INTO t VALUES (0, 'x', 1, NULL)"), {0: "missing"}),
    "a_lost_delete": (lambda c: c.sql("DELETE FROM t WHERE a = 12"), {12: "extra"}),
    "a_lost_update_to_null": (
        lambda c: c.sql("UPDATE t SET d = NULL WHERE a = 12"),
        {12: "changed"},
    ),
    "a_byte": (
        lambda c: c.follow("UPDATE t SET b = x'0102' WHERE a = 5", "u", **row_of(5, b=b"\x01\x03")),
        {5: "changed"},
    ),
    "a_deletion_that_the_source_does_not_have": (
        lambda c: c.send(place_of(take_high(c.config, 0)), "d", [{"a": 6}]) and c.sql(PASSES),
        {6: "missing"},
    ),
    "an_old_row_a_second_time": (
        lambda c: (
            c.follow("UPDATE t SET v = 'now' WHERE a = 8", "u", **row_of(8, v="now")),
            c.send(place_of(take_high(c.config, 0)), "u", [row_of(8)]),
            c.sql(PASSES),
        ),
        {8: "changed"},
    ),
}
PASSES = "INSERT INTO other VALUES (1)"
"""A change of another table: the position is behind what was sent at the end of the binlog."""


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_found(copy, case):
    plant, expected = FAULTS[case]
    copy.sql("CREATE TABLE other (a INT)")
    plant(copy)

    result = copy.verify()

    assert found(result) == expected
    assert result["differences"] == len(expected)


def test_a_difference_shows_both_rows_and_since_when(copy):
    version = copy.follow("UPDATE t SET v = 'right' WHERE a = 9", "u", **row_of(9, v="wrong"))

    (item,) = copy.verify()["items"]

    assert (item["ours"]["v"], item["theirs"]["v"]) == ("wrong", "right")
    assert item["our_position"]["row"] == 0
    assert item["since_version"] is not None
    assert item["since_version"] <= version


def test_changes_between_the_position_and_now_are_no_differences(copy):
    def meanwhile():
        copy.follow("UPDATE t SET v = 'later' WHERE a = 3", "u", **row_of(3, v="later"))
        copy.follow("DELETE FROM t WHERE a = 4", "d", a=4)
        copy.follow("INSERT INTO t VALUES (0, 'x', 1, NULL)", "c", a=0, v="x", d=Decimal(1))

    result = copy.verify(meanwhile=meanwhile)

    assert (result["differences"], result["rows"]) == (0, ROWS)


def test_changes_that_arrive_later_than_the_read_count_up_to_the_position(copy):
    begins = place_of(take_high(copy.config, 0))
    copy.sql("UPDATE t SET v = 'slow' WHERE a = 3")

    result = copy.verify(meanwhile=lambda: copy.send(begins, "u", [row_of(3, v="slow")]))

    assert result["differences"] == 0


def test_a_compaction_meanwhile_hides_no_state(copy):
    """The compaction drops what row 3 was at the position, as it has changed since."""

    def meanwhile():
        copy.follow("UPDATE t SET v = 'later' WHERE a = 3", "u", **row_of(3, v="later"))
        table = Upkeep(copy.log, 1, UpkeepSettings(min_files=2))
        maintenance = ChangelogMaintenance(table, DimensionKey(("a",), 1))
        files = len(copy.log.files.files_at(copy.log.version()))
        maintenance.run(leased=copy.states.newest(), folded=copy.states.newest())
        assert len(copy.log.files.files_at(copy.log.version())) < files

    result = copy.verify(meanwhile=meanwhile)

    assert (result["differences"], result["rows"]) == (0, ROWS)


def test_a_copy_that_does_not_reach_the_position_is_not_compared(copy):
    with pytest.raises(VerificationError, match="has not reached"):
        copy.verify(proven=lambda: (0, 0, 0))


def test_a_comparison_does_not_wait_for_a_job_that_has_ended(copy):
    """Its transaction keeps others from changing the table meanwhile."""
    with pytest.raises(VerificationError, match=r"has not reached .* and the job has ended"):
        copy.verify(proven=lambda: (0, 0, 0), is_over=lambda: True, proof_s=600.0)
    assert copy.verify(is_over=lambda: True)["differences"] == 0


def test_a_copy_that_is_not_complete_is_refused_before_its_source_is_read(mariadb, tmp_path):
    with new_schema(mariadb) as schema:
        copy = Copy(mariadb, schema, tmp_path / "changelog")
        copy.sql("INSERT INTO t VALUES (1, 'a', NULL, NULL)")
        copy.send(place_of(take_low(copy.config, 0)), "r", [{"a": 1, "v": "a"}])
        with pytest.raises(VerificationError, match="is being copied"):
            copy.verify(proven=lambda: None)


def test_a_sample_reads_some_chunks_and_finds_what_is_in_them(copy):
    copy.sql("DELETE FROM t WHERE a IN (5, 15, 25, 35)", "UPDATE t SET v = 'x' WHERE a % 10 = 6")

    result = copy.verify(sample=0.5)

    assert (result["chunks"], result["chunks_total"], result["finds_extra"]) == (2, 4, True)
    assert sorted(found(result).values()) == ["changed", "changed", "extra", "extra"]


def test_a_sample_of_text_keys_tells_what_it_cannot_find(mariadb, tmp_path):
    columns = COLUMNS.replace("a BIGINT", "a VARCHAR(20)")
    with new_schema(mariadb) as schema:
        copy = Copy(mariadb, schema, tmp_path / "changelog", columns, key="text")
        copy.sql("INSERT INTO t SELECT CONCAT('k', seq), 'v', 1, NULL FROM seq_1_to_40")
        copy.copy()
        copy.sql("DELETE FROM t WHERE a = 'k7'", "UPDATE t SET v = 'x' WHERE a <> 'k7'")

        sample, whole = copy.verify(sample=0.3), copy.verify()

    assert (sample["finds_extra"], set(found(sample).values())) == (False, {"changed"})
    assert (whole["finds_extra"], found(whole)["k7"], whole["differences"]) == (True, "extra", 40)


def test_a_table_without_transactions_is_compared_between_two_positions(mariadb, tmp_path):
    with new_schema(mariadb) as schema:
        copy = Copy(mariadb, schema, tmp_path / "changelog", f"{COLUMNS}) ENGINE=MyISAM -- ")
        copy.sql("INSERT INTO t VALUES (1, 'a', NULL, NULL), (2, 'b', NULL, NULL)")
        copy.copy()

        def meanwhile():
            copy.follow("UPDATE t SET v = 'c' WHERE a = 1", "u", a=1, v="c")

        result = copy.verify(meanwhile=meanwhile)
        copy.sql("SET sql_log_bin = 0", "UPDATE t SET v = 'odd' WHERE a = 2")
        odd = copy.verify()

    assert (result["differences"], result["changing"]) == (0, 1)
    assert found(odd) == {2: "changed"}


def test_rows_that_no_message_can_hold_are_left_out(copy):
    copy.sql("INSERT INTO t VALUES (1000, 'large', 1, NULL)")
    first = copy.states.newest()
    with consistent_read(copy.config, copy.table, 0) as read:
        proven = lambda: place_of(take_high(copy.config, 0))  # noqa: E731
        result = Verification(
            copy.states, read, proven, VerifyLimits(), without=['{"a":1000}']
        ).run(first)

    assert (result["differences"], result["left_out"]) == (0, 1)


def test_the_time_of_a_change_is_not_compared(mariadb, tmp_path):
    """The source gives it only once; a row with another value is a difference as ever."""
    op_ts = MetadataField("at", "op_ts", SqlType(TypeName.TIMESTAMP_LTZ, 3))
    with new_schema(mariadb) as schema:
        copy = Copy(mariadb, schema, tmp_path / "changelog", metadata=(op_ts,))
        copy.sql("INSERT INTO t (a, v) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        copy.copy()
        now = datetime(2026, 11, 29, tzinfo=UTC)
        copy.follow("UPDATE t SET v = 'new' WHERE a = 2", "u", a=2, v="new", at=now)
        assert copy.verify()["differences"] == 0
        copy.follow("UPDATE t SET v = 'newer' WHERE a = 3", "u", a=3, v="wrong", at=now)
        result = copy.verify()
        assert found(result) == {3: "changed"}
        assert "'at'" not in repr(result["items"][0])
