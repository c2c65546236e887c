"""Spark's own Delta writer as a sink: whatever a table asks for is kept, once, and fenced."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from traceback import format_exception

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import DeltaLog, create_table, txn_number
from joins.adapters.delta.output import OutputLog, SparkAppend, spark_schema
from joins.dimension.maintenance import OutputMaintenance, Upkeep, UpkeepSettings
from joins.kernels.probe.probe import BatchContext, join_batch
from joins.lookback.history import BatchCommits
from joins.plan.errors import ConstraintViolatedError, FencedError, SinkError
from joins.plan.plan import DeltaSink, SinkWriter
from joins.sinks.delta import (
    DeltaOutputLetterWriter,
    DeltaOutputWriter,
    DeltaSinkWriter,
    SparkDeltaSinkWriter,
)
from tests.support.lanes import some_of
from tests.support.probe import PIN, clicks, probe_task
from tests.support.topic_work import work_of
from tests.support.wait import wait_until

APP = "sluice:job:life"
COLUMNS = (
    "user_id BIGINT, name STRING, _topic STRING, _partition INT, _offset BIGINT, _batch BIGINT, "
    "_dimension_versions STRING"
)
CLICKS = [b'{"user_id":1}', b'{"user_id":3}', b"{", b'{"user_id":2}']
PAIRS = {(1, "r5"), (2, "r5"), (3, None)}
TABLES = {
    "check": (f"({COLUMNS})", "delta.constraints.known"),
    "generated": (f"({COLUMNS}, twice BIGINT GENERATED ALWAYS AS (user_id * 2))", "generated"),
    "identity": (f"({COLUMNS}, n BIGINT GENERATED ALWAYS AS IDENTITY)", "identityColumns"),
    "partitioned": (f"({COLUMNS})", "partition columns name"),
    "mapped": (f"({COLUMNS})", "columnMapping"),
    "mapped_partitioned": (f"({COLUMNS})", "columnMapping"),
    "deletion_vectors": (f"({COLUMNS})", "deletionVectors"),
    "append_only": (f"({COLUMNS})", "appendOnly"),
    "not_null": (f"({COLUMNS.replace('user_id BIGINT', 'user_id BIGINT NOT NULL')})", "NOT NULL"),
}
AFTER = {
    "partitioned": " PARTITIONED BY (name, _dimension_versions)",  # "users=1", in a path "%3D"
    "mapped": " TBLPROPERTIES ('delta.columnMapping.mode'='name')",
    "mapped_partitioned": " PARTITIONED BY (name, _batch)"
    " TBLPROPERTIES ('delta.columnMapping.mode'='name')",
    "deletion_vectors": " TBLPROPERTIES ('delta.enableDeletionVectors'='true')",
    "append_only": " TBLPROPERTIES ('delta.appendOnly'='true')",
}
NOT_RETRACTED = {"identity": "IdentityColumns", "append_only": "append-only"}


@pytest.fixture
def user(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.runSQLOnFiles", "true")
    return session


class Output:
    """A table of somebody's, and a job that writes to it."""

    def __init__(self, root, spark) -> None:
        self.path = root / "out"
        self.spark = spark
        self.task = probe_task(root, DeltaSink("out"))
        self.schema = self.task.kernel.output_schema

    def log(self, wanted=SinkWriter.AUTO, app=APP, spark=None) -> OutputLog:
        return OutputLog(self.path, app, Appends(self.schema, wanted), spark or self.spark)

    def work(self, *values, first=100):
        return work_of(self.spark, clicks(*values, first=first))

    def run(self, writer, pin, *values, epoch=2) -> None:
        report = writer.run(self.work(*(values or CLICKS)), self.task, pin)
        writer.commit(report, pin, epoch)

    def pairs(self, session) -> list[tuple[int | None, str | None]]:
        rows = session.read.format("delta").load(str(self.path)).collect()
        return [(row.user_id, row.name) for row in rows]


@pytest.fixture
def output(tmp_path, spark):
    return Output(tmp_path, spark)


def at(batch, epoch=2):
    return replace(PIN, batch=batch, epoch=epoch)


def make(user, output, name):
    ddl = TABLES[name][0]
    user.sql(f"CREATE TABLE delta.`{output.path}` {ddl} USING delta{AFTER.get(name, '')}")
    if name == "check":
        known = "ADD CONSTRAINT known CHECK (user_id < 100)"
        user.sql(f"ALTER TABLE delta.`{output.path}` {known}")


def nothing_is_cached(spark):
    return spark._jsparkSession.sharedState().cacheManager().isEmpty()


WRITTEN = ("identity", "partitioned", "mapped_partitioned", "deletion_vectors", "append_only")


@pytest.mark.parametrize("name", some_of(WRITTEN, "identity", "partitioned"))
def test_a_table_gets_its_rows_once_and_they_are_read_back_without_spark(user, output, name):
    make(user, output, name)
    log = output.log()
    writer = DeltaOutputWriter(log)
    assert writer.choice.is_spark
    assert TABLES[name][1] in writer.choice.reason
    log.commit_epoch(2)
    log.commit_epoch(2)
    assert writer.committed_counts(at(0)) is None
    output.run(writer, at(0))
    counts = {
        "joined": 3,
        "matched": 2,
        "unmatched": 1,
        "dead_letters": 1,
        "records": 4,
        "bytes": 40,
    }
    assert writer.committed_counts(at(0)) == counts
    again = DeltaOutputWriter(output.log())
    assert again.committed_counts(at(0)) == counts
    output.run(again, at(0))  # a crash before our notes: the batch comes again
    output.run(again, at(1))
    assert sorted(output.pairs(user), key=str) == sorted([*PAIRS, *PAIRS], key=str)
    assert log.batches.last_batch() == 1
    commits = BatchCommits(output.path, APP)
    commit = commits.of(0)
    read = pa.concat_tables(commits.rows_added(commit), promote_options="permissive")
    assert set(zip(*(read[c].to_pylist() for c in ("user_id", "name")), strict=True)) == PAIRS
    now = commits.rows_now({"_batch": 1}, output.schema)
    assert set(zip(*(now[c].to_pylist() for c in ("user_id", "name")), strict=True)) == PAIRS
    assert all(path.is_file() for path in log.files.files_at(log.version()))
    assert nothing_is_cached(output.spark)
    see_it_retracted(user, output, log, NOT_RETRACTED.get(name))


def see_it_retracted(user, output, log, why_not):
    """The newest batch goes, its number stays used; or an error says why, and all stays."""
    if why_not is None:
        assert log.retract(1, 2) == log.version()
        assert log.retract(1, 2) is None
        assert set(output.pairs(user)) == PAIRS
        output.run(DeltaOutputWriter(output.log()), at(1))
        assert len(output.pairs(user)) == len(PAIRS)
        return
    version = log.version()
    with pytest.raises(SinkError, match=why_not) as caught:
        log.retract(1, 2)
    assert caught.value.message.startswith(
        f'batch 1 cannot be removed from delta table "{log.path}'
    )
    assert f"version {version} of the table" in caught.value.hint
    assert (log.version(), len(output.pairs(user))) == (version, 2 * len(PAIRS))


def test_a_batch_of_which_somebody_has_deleted_a_row_is_retracted_when_he_deletes_the_rest(
    user, output
):
    """Delta would not find the file that we name: it has a deletion vector then."""
    make(user, output, "deletion_vectors")
    log = output.log()
    log.commit_epoch(2)
    for batch in (0, 1):
        output.run(DeltaOutputWriter(log), at(batch))
    user.sql(f"DELETE FROM delta.`{output.path}` WHERE _batch = 1 AND user_id = 1")
    with pytest.raises(SinkError, match="deletion vectors"):
        log.retract(1, 2)
    assert len(output.pairs(user)) == 2 * len(PAIRS) - 1
    user.sql(f"DELETE FROM delta.`{output.path}` WHERE _batch = 1")
    assert log.retract(1, 2) is None
    assert set(output.pairs(user)) == PAIRS


def test_what_delta_fills_is_filled(user, output):
    make(user, output, "generated")
    output.run(DeltaOutputWriter(output.log()), at(0))
    rows = user.read.format("delta").load(str(output.path)).collect()
    assert sorted((row.user_id, row.twice) for row in rows) == [(1, 2), (2, 4), (3, 6)]


VIOLATIONS = {
    "check": (b'{"user_id":4711}', r"CHECK constraint known \(user_id < 100\)"),
    "not_null": (b'{"name":"nobody"}', "NOT NULL of column: user_id"),
}


@pytest.mark.parametrize(("name", "case"), VIOLATIONS.items(), ids=VIOLATIONS)
def test_a_row_that_violates_a_constraint_keeps_its_whole_batch_out(user, output, name, case):
    make(user, output, name)
    value, told = case
    writer = DeltaOutputWriter(output.log())
    with pytest.raises(ConstraintViolatedError, match=told) as raised:
        output.run(writer, at(0), *CLICKS, value)
    assert str(output.path) in raised.value.message
    assert "4711" not in raised.value.message + raised.value.hint
    assert "constraint" in raised.value.hint
    assert (output.pairs(user), writer.committed_counts(at(0))) == ([], None)
    assert nothing_is_cached(output.spark)
    output.run(writer, at(0))
    assert set(output.pairs(user)) == PAIRS


def test_a_text_that_is_too_long_for_its_column_is_not_shown(user, output):
    ddl = COLUMNS.replace("name STRING", "name VARCHAR(1)")
    user.sql(f"CREATE TABLE delta.`{output.path}` ({ddl}) USING delta")
    writer = DeltaOutputWriter(output.log())
    assert "VARCHAR" in writer.choice.reason
    with pytest.raises(ConstraintViolatedError, match=r"(?i)length") as raised:
        output.run(writer, at(0))
    assert "r5" not in raised.value.message.replace(str(output.path), "")
    output.run(writer, at(0), b'{"user_id":3}')
    assert output.pairs(user) == [(3, None)]


def test_overlapping_writes_hide_rows_from_logs_until_the_last_has_ended(output):
    log4j = output.spark._jvm.org.apache.logging.log4j

    def level():
        return str(log4j.LogManager.getLogger("org.apache.spark.executor.Executor").getLevel())

    commits, before = output.log().spark, level()
    first, second = commits.refusals(1), commits.refusals(2)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert level() == "OFF"
    second.__exit__(None, None, None)
    assert level() == before != "OFF"


def test_an_error_of_spark_shows_no_value_of_a_row_in_traceback_or_log(user, output, capfd):
    ddl = f"{COLUMNS}, n INT GENERATED ALWAYS AS (CAST(name AS INT))"
    user.sql(f"CREATE TABLE delta.`{output.path}` ({ddl}) USING delta")
    with pytest.raises(SinkError, match="TASK_WRITE_FAILED") as raised:
        output.run(DeltaOutputWriter(output.log()), at(0))
    assert "'r5'" not in "".join(format_exception(raised.value))
    assert "'r5'" not in "".join(capfd.readouterr())


def test_a_commit_with_another_number_of_rows_is_refused_at_each_try(user, output):
    make(user, output, "check")
    writer = DeltaOutputWriter(output.log())
    report = writer.run(output.work(*CLICKS), output.task, at(0))
    report.counts["joined"] += 1
    with pytest.raises(SinkError, match="adds 3 rows, expected 4"):
        writer.commit(report, at(0), 2)
    with pytest.raises(SinkError, match="adds 3 rows, expected 4"):
        DeltaOutputWriter(output.log()).committed_counts(at(0))


def test_rows_that_somebody_deletes_are_gone_from_what_is_read(user, output):
    make(user, output, "deletion_vectors")
    output.run(DeltaOutputWriter(output.log()), at(0))
    commits = BatchCommits(output.path, APP)
    user.sql(f"DELETE FROM delta.`{output.path}` WHERE user_id = 1")
    commit = commits.of(0)
    assert not commits.is_untouched(commit)
    now = commits.rows_now({"_batch": 0, "_partition": 0}, output.schema)
    assert sorted(now["user_id"].to_pylist()) == [2, 3]
    assert sum(part.num_rows for part in commits.rows_added(commit)) == 3


# Entries of our own
# ----------------------------------------------------------------------------------------------


def test_spark_reads_and_continues_a_log_with_entries_of_our_own(user, output):
    """Appends of ours, checkpoints of both, and Spark's own changes take turns in one log."""
    properties = "'delta.checkpointInterval' = '3', 'delta.enableChangeDataFeed' = 'true'"
    user.sql(
        f"CREATE TABLE delta.`{output.path}` ({COLUMNS}) USING delta TBLPROPERTIES ({properties})"
    )
    log = output.log()
    assert not log.choice().is_spark
    log.commit_epoch(2)
    output.run(DeltaSinkWriter(log), at(0))
    assert set(output.pairs(user)) == PAIRS
    user.sql(f"DELETE FROM delta.`{output.path}` WHERE user_id = 1")
    output.run(DeltaSinkWriter(log), at(1))
    user.sql(f"INSERT INTO delta.`{output.path}` SELECT * FROM delta.`{output.path}`")
    output.run(DeltaSinkWriter(log), at(2))
    kept = [pair for pair in PAIRS if pair[0] != 1]
    assert sorted(output.pairs(user), key=str) == sorted(
        [*kept, *PAIRS, *kept, *PAIRS, *PAIRS], key=str
    )
    history = user.sql(f"DESCRIBE HISTORY delta.`{output.path}`").collect()
    ours = [row.version for row in history if row.engineInfo == "Sluice"]
    assert (ours, all(row.isBlindAppend for row in history if row.version in ours)) == (
        [6, 4, 2, 1],
        True,
    )
    wait_until(lambda: 2 in log.upkeep.checkpoints(), what="the checkpoint")
    feed = user.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    kinds = [row._change_type for row in feed.load(str(output.path)).collect()]
    assert (kinds.count("insert"), kinds.count("delete")) == (3 * 3 + 5, 1)
    assert DeltaLog(output.path, APP).batches.last_batch() == 2


# Fencing
# ----------------------------------------------------------------------------------------------


def test_a_stale_runner_commits_nothing(user, output):
    make(user, output, "check")
    old, new = output.log(), output.log()
    writer = DeltaOutputWriter(old)
    old.commit_epoch(1)
    output.run(writer, at(0, 1), epoch=1)
    report = writer.run(output.work(*CLICKS), output.task, at(1, 1))
    new.commit_epoch(2)
    version = new.version()
    with pytest.raises(FencedError, match="epoch 2"):
        writer.commit(report, at(1, 1), 1)
    with pytest.raises(FencedError):
        old.commit_epoch(1)
    assert new.version() == version
    assert DeltaTable(str(output.path)).transaction_version(f"{APP}:spark") == txn_number(2, 0)
    output.run(DeltaOutputWriter(new), at(1))
    assert len(output.pairs(user)) == 6


class Unaware(OutputLog):
    """A log whose look at the fence came before somebody else's commit."""

    looked = False

    def __init__(self, path, app_id, appends, spark):
        super().__init__(path, app_id, appends, spark)
        self.check, self.batches.check_epoch = self.batches.check_epoch, self.check_later

    def check_later(self, epoch, table=None):
        if not self.looked:
            self.looked = True
            return
        self.check(epoch, table)


def test_what_sparks_writer_skips_is_no_commit(user, output):
    """The newer runner was first: Delta writes nothing and says nothing."""
    make(user, output, "check")
    output.log().commit_epoch(2)
    version = output.log().version()
    stale = Unaware(output.path, APP, Appends(output.schema), output.spark)
    rows = output.spark.createDataFrame([], spark_schema(output.schema))
    with pytest.raises(FencedError, match="epoch 2"):
        stale.append(0, 1, SparkAppend(rows, 0))
    assert output.log().version() == version


def test_of_two_sessions_that_commit_at_the_same_time_the_newer_runner_wins(user, output):
    """The stale runner's snapshot is older than the newer runner's commit: Delta finds it."""
    make(user, output, "check")
    output.log().commit_epoch(1)
    stale = output.log(spark=output.spark.newSession())
    newer = output.log(spark=user)
    started = output.path.parent / "started"

    def slow(batches):
        started.touch()
        while not (started.parent / "taken-over").exists():
            pass
        yield from batches

    frame = stale.spark.session.createDataFrame(
        pa.Table.from_pylist([{"user_id": 1, "_batch": 0}], output.schema),
        spark_schema(output.schema),
    )
    waiting = frame.mapInArrow(slow, frame.schema)
    with ThreadPoolExecutor(1) as pool:
        attempt = pool.submit(stale.append, 0, 1, SparkAppend(waiting, 1))
        while not started.exists():
            assert not attempt.done(), attempt.result()
        try:
            newer.commit_epoch(2)
        finally:
            (started.parent / "taken-over").touch()
        with pytest.raises(FencedError, match="epoch 2"):
            attempt.result(timeout=120)
    assert output.pairs(user) == []


class Late(OutputLog):
    """A log whose look at the table came before an older runner's last batch."""

    before = None

    def __init__(self, path, app_id, appends, spark):
        super().__init__(path, app_id, appends, spark)
        self.look, self.batches.last_in_log = self.batches.last_in_log, self.last_in_log

    def last_in_log(self, table):
        found = self.look(table)
        before, self.before = self.before, None
        if before is not None:
            before()
        return found


LOOKS = {"by_delta_rs": ("check", 1), "by_spark": ("identity", 3)}


@pytest.mark.parametrize(("name", "others"), LOOKS.values(), ids=LOOKS)
def test_a_new_runner_knows_a_batch_that_came_between_its_look_and_its_commit(
    user, output, name, others
):
    """delta-rs refuses the table with an identity column, so that Spark commits its epochs."""
    make(user, output, name)
    old = output.log()
    old.commit_epoch(1)
    writer = DeltaOutputWriter(old)
    output.run(writer, at(0, 1), epoch=1)
    new = Late(output.path, APP, Appends(output.schema), output.spark)
    looks = iter([None] * others + [lambda: output.run(writer, at(1, 1), epoch=1)])

    def look():
        following = next(looks, None)
        if following is not None:
            following()
        new.before = look

    new.before = look
    new.commit_epoch(2)
    assert next(looks, "all are done") == "all are done"
    assert (new.batches.last_batch(), new.batches.version_of(1)) == (1, old.batches.version_of(1))
    assert DeltaTable(str(output.path)).transaction_version(f"{APP}:spark") == txn_number(2, 1)
    with pytest.raises(FencedError):
        output.run(writer, at(2, 1), epoch=1)
    output.run(DeltaOutputWriter(new), at(1))
    assert len(output.pairs(user)) == 6


# Tables that change, and both writers
# ----------------------------------------------------------------------------------------------


def test_a_table_that_gains_a_constraint_gets_sparks_writer_with_the_next_run(user, output):
    create_table(output.path, output.schema)
    log = output.log()
    writer = DeltaOutputWriter(log)
    log.commit_epoch(2)
    output.run(writer, at(0))
    assert (writer.choice.is_spark, writer.choice.reason) == (False, None)
    report = writer.run(output.work(*CLICKS), output.task, at(1))
    known = "ADD CONSTRAINT known CHECK (user_id < 100)"
    user.sql(f"ALTER TABLE delta.`{output.path}` {known}")
    with pytest.raises(SinkError, match=r"needs spark's writer now.*constraints\.known"):
        writer.commit(report, at(1), 2)
    assert writer.committed_counts(at(1)) is None
    output.run(writer, at(1))
    assert writer.choice.is_spark
    user.sql(f"ALTER TABLE delta.`{output.path}` DROP CONSTRAINT known")
    output.run(writer, at(2))
    assert len(output.pairs(user)) == 9
    commits = BatchCommits(output.path, APP)
    assert [commits.of(batch).batch for batch in (0, 1, 2)] == [0, 1, 2]
    assert not [n for n in (0, 1, 2) if not writer.committed_counts(at(n))]


def test_the_writers_take_turns_on_one_plain_table(user, output):
    create_table(output.path, output.schema)
    for batch, wanted in enumerate((SinkWriter.SPARK, SinkWriter.AUTO, SinkWriter.SPARK)):
        log = output.log(wanted)
        log.commit_epoch(batch + 1)
        writer = DeltaOutputWriter(log)
        output.run(writer, at(batch, batch + 1), epoch=batch + 1)
        assert writer.choice.is_spark == (wanted is SinkWriter.SPARK)
    assert len(output.pairs(user)) == 9
    for epoch, wanted in ((1, SinkWriter.SPARK), (2, SinkWriter.COLUMNAR)):
        with pytest.raises(FencedError):
            output.run(DeltaOutputWriter(output.log(wanted)), at(3, epoch), epoch=epoch)
    last = DeltaLog(output.path, APP)
    assert (last.batches.last_batch(), last.batches.batch_metadata(1)["batch"]) == (2, 1)


def test_a_columnar_writer_that_is_asked_for_by_name_refuses_such_a_table(user, output):
    make(user, output, "check")
    with pytest.raises(SinkError, match="cannot have the columnar writer"):
        DeltaOutputWriter(output.log(SinkWriter.COLUMNAR))


# Types, names, dead letters, upkeep
# ----------------------------------------------------------------------------------------------

TYPES = pa.schema(
    [
        ("report", pa.string()),
        ("lines", pa.string()),
        ("b", pa.bool_()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("f", pa.float32()),
        ("dec", pa.decimal128(38, 10)),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("ltz", pa.timestamp("us", tz="UTC")),
    ]
)


def test_every_type_of_an_output_comes_back_as_it_was(tmp_path, spark):
    create_table(tmp_path / "t", TYPES)
    log = OutputLog(tmp_path / "t", APP, Appends(TYPES, SinkWriter.SPARK), spark)
    row = {
        "report": "x",
        "lines": "a\u2028b\u2029c\x85",  # as it is in the log's statistics
        "b": True,
        "i8": -128,
        "i16": 32767,
        "f": 0.5,
        "dec": Decimal("1234567890.0123456789"),
        "bytes": b"\x00\xff",
        "day": date(1, 1, 1),
        "ts": datetime(1969, 12, 31, 23, 59, 59, 999999, UTC).replace(tzinfo=None),
        "ltz": datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC),
    }
    table = pa.Table.from_pylist([row, dict.fromkeys(row)], TYPES)
    frame = spark.createDataFrame(table, spark_schema(TYPES))
    log.append(0, 1, SparkAppend(frame, 2))
    found = DeltaTable(str(tmp_path / "t")).to_pyarrow_table().cast(TYPES).to_pylist()
    assert sorted(found, key=str) == sorted(table.to_pylist(), key=str)


def test_rows_of_replayed_dead_letters_are_written_once(user, output):
    make(user, output, "check")
    log = output.log(app=f"{APP}:replay")
    log.commit_epoch(2)
    writer = DeltaOutputLetterWriter(log, output.spark)
    context = BatchContext(PIN.batch_timestamp_ms, 7, (("users", 1),))
    indexes = output.task.attach({"users": 1})
    joined = join_batch(output.task.kernel, clicks(b'{"user_id":1}'), indexes, context)
    for _ in range(2):
        writer.write(iter([(joined, PIN)]), 1, 2, lambda: {"rows": 1})
    writer.write(iter([]), 2, 2, lambda: {"rows": 0})
    assert output.pairs(user) == [(1, "r5")]
    assert [writer.committed(number) for number in (1, 2, 3)] == [{"rows": 1}, {"rows": 0}, None]
    output.run(DeltaOutputWriter(output.log()), at(0))
    assert len(output.pairs(user)) == 4


def test_upkeep_leaves_the_checkpoints_and_files_of_sparks_writer_alone(user, output):
    make(user, output, "mapped")
    log = output.log()
    output.run(DeltaOutputWriter(log), at(0))
    tag = log.shared.writer
    stray = output.path / f"part-00001-{0:010d}-00000-1-{'0' * 32}-{tag}.parquet"
    stray.touch()
    before = {p for p in output.path.rglob("*") if p.is_file()}
    OutputMaintenance(Upkeep(log, 2, UpkeepSettings(checkpoint_every=1))).run()
    assert before - {p for p in output.path.rglob("*") if p.is_file()} == {stray}
    assert log.upkeep.checkpoints() == []
    assert set(output.pairs(user)) == PAIRS


def test_the_report_of_a_task_never_becomes_a_row(output):
    create_table(output.path, output.schema)
    writer = SparkDeltaSinkWriter(output.log(SinkWriter.SPARK))
    output.run(writer, at(0), b"{")  # dead letters only
    assert writer.committed_counts(at(0))["joined"] == 0
    assert DeltaTable(str(output.path)).to_pyarrow_table().num_rows == 0
