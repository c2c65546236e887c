"""The delta sink whose rows replace others by key: once, fenced, whatever a crash leaves."""

import json
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import create_table
from joins.adapters.delta.merge import MergedOutput, MergeSource, change_schema
from joins.kernels.json.exact import differences, row_texts
from joins.kernels.probe.files import FileOrigin, ParquetStage
from joins.lookback.history import BatchCommits
from joins.lookback.past_indexes import changed_rows
from joins.plan.errors import ConstraintViolatedError, FencedError, SinkError
from joins.plan.plan import DeltaSink, SinkWriter
from joins.sinks.delta import MergeSinkWriter
from joins.worker.row_files import RowFiles
from tests.support.lanes import some_of
from tests.support.probe import PIN, clicks, probe_task
from tests.support.topic_work import work_of

APP = "sluice:job:life"
ROWS = pa.schema(
    [
        pa.field("window-start", pa.timestamp("us"), nullable=False),
        pa.field("item", pa.string()),
        ("n", pa.int64()),
        ("_batch", pa.int64()),
    ]
)
KEY = ("window-start", "item")
NOON, ONE = (datetime(2026, 11, 22, hour, tzinfo=UTC).replace(tzinfo=None) for hour in (12, 13))
Change = tuple[int, datetime, str | None, int]


class Output:
    """A table of windows, and the changes that are staged for it."""

    def __init__(self, root, spark, rows=ROWS, key=KEY) -> None:
        self.path, self.files = root / "out", root / "staged"
        self.rows, self.spark, self.key = rows, spark, key
        create_table(self.path, rows)

    def log(self, wanted=SinkWriter.AUTO) -> MergedOutput:
        return MergedOutput(self.path, APP, Appends(self.rows, wanted, self.key), self.spark)

    def stage(self, batch: int, *tasks: Sequence[Change], epoch=1) -> MergeSource:
        """One file for each task; rows have the batch as their last column."""
        files = []
        for at, changes in enumerate(tasks):
            rows = [(*row, batch, kind) for kind, *row in changes]
            columns = zip(*rows, strict=True)
            schema = change_schema(self.rows)
            typed = [pa.array(c, t) for c, t in zip(columns, schema.types, strict=True)]
            origin = FileOrigin(epoch, batch, at, 0)
            with ParquetStage(self.files, schema, origin, kept=False) as stage:
                stage.write(pa.record_batch(typed, schema=schema))
                files.append(str(self.files / stage.finish().path))
        return MergeSource(files, {"batch": batch, "counts": {"joined": batch}})

    def table(self) -> list[tuple]:
        """Its rows in any order, read without Spark."""
        rows = DeltaTable(str(self.path)).to_pyarrow_table().to_pylist()
        return [tuple(row.values()) for row in rows]

    def found(self) -> set[tuple]:
        found = [(f"{at:%H}", *rest) for at, *rest in self.table()]
        assert len(set(found)) == len(found)
        return set(found)


@pytest.fixture
def output(tmp_path, spark):
    return Output(tmp_path, spark)


def test_each_key_has_its_newest_row_after_every_batch(output):
    log = output.log()
    log.log.commit_epoch(1)
    first = output.stage(
        0, [(0, NOON, "a", 1), (0, NOON, "b", 1), (2, NOON, "a", 2)], [(0, NOON, None, 7)]
    )
    log.merge(0, 1, first)
    assert output.found() == {("12", "a", 2, 0), ("12", "b", 1, 0), ("12", None, 7, 0)}
    # The last change in the order of the tasks counts, whichever kind it is.
    log.merge(
        1,
        1,
        output.stage(
            1,
            [(3, NOON, "a", 2), (0, ONE, "c", 1), (3, NOON, "b", 1), (3, NOON, "none", 0)],
            [(2, NOON, None, 8), (0, NOON, "a", 5)],
            [(3, ONE, "c", 1)],
        ),
    )
    assert output.found() == {("12", "a", 5, 1), ("12", None, 8, 1)}
    version = log.merge(2, 1, MergeSource([], {"batch": 2, "counts": {}}))
    # A batch that changes nothing is a commit, too: else it would be tried for ever.
    assert log.merge(3, 1, output.stage(3, [(3, ONE, "x", 0)])) == version + 1
    assert (log.log.batches.last_batch(), len(output.found())) == (3, 2)
    assert [log.log.batches.batch_metadata(batch)["batch"] for batch in range(4)] == [0, 1, 2, 3]
    second, gone = [(NOON, "a", 5, 1), (NOON, None, 8, 1)], [(NOON, "b"), (ONE, "c"), (ONE, "x")]
    assert changed(output, 1, second, gone) == []
    (lost,) = changed(output, 1, second, gone[1:])
    assert (lost.kind, json.loads(lost.expected)["item"]) == ("missing", "b")
    assert changed(output, 2, [], []) == changed(output, 3, [], [(ONE, "x")]) == []


def changed(output, batch, rows, deleted):
    """Where what the commit of `batch` has changed is not `rows`, nor what was `deleted`."""
    columns = pa.schema([item.with_nullable(True) for item in output.rows])
    whole = [dict(zip(columns.names, row, strict=True)) for row in rows]
    keys = [dict(zip(KEY, key, strict=True)) for key in deleted]
    batches = [pa.RecordBatch.from_pylist(found, schema=columns) for found in (whole, keys)]
    names = [row_texts(found.select(list(KEY))).to_pylist() for found in batches]
    changes = dict.fromkeys(names[1]) | dict(
        zip(names[0], row_texts(batches[0]).to_pylist(), strict=True)
    )
    commits = BatchCommits(output.path, APP)
    commit = commits.of(batch)
    files = (commits.rows_added(commit), commits.rows_removed(commit))
    typed = ([table.select(columns.names).cast(columns) for table in each] for each in files)
    return differences(*changed_rows(changes, *typed, KEY))


def test_a_batch_that_comes_again_changes_nothing(output):
    log = output.log()
    log.merge(0, 1, output.stage(0, [(0, NOON, "a", 1)]))
    version = log.merge(1, 1, output.stage(1, [(2, NOON, "a", 2)]))
    again = output.log()  # of a runner that has not seen that its commit was made
    for batch, kind in ((0, 0), (1, 3)):
        assert again.merge(batch, 1, output.stage(batch, [(kind, NOON, "a", 9)])) == version
    assert output.found() == {("12", "a", 2, 1)}


def test_a_batch_that_is_retracted_gives_back_the_rows_that_it_has_replaced(output):
    log = output.log()
    log.merge(0, 1, output.stage(0, [(0, NOON, "a", 1), (0, NOON, "b", 1)]))
    before = output.found()
    log.merge(1, 1, output.stage(1, [(2, NOON, "a", 2), (0, ONE, "c", 1)]))
    assert output.found() != before
    log.log.retract(1, 1)
    assert output.found() == before


class Unaware(MergedOutput):
    """A runner that looks at the fence and the table before somebody else's commit."""

    before = None

    def __init__(self, path, app_id, appends, spark):
        super().__init__(path, app_id, appends, spark)
        batches = self.log.batches
        self.check, batches.check_epoch = batches.check_epoch, self.check_later

    def check_later(self, epoch, table=None):
        if self.before is None:
            self.check(epoch, table)

    def _execute(self, changes):
        self.act()
        super()._execute(changes)

    def _append(self, changes, table, transaction):
        self.act()
        return super()._append(changes, table, transaction)

    def act(self):
        before, self.before = self.before, None
        if before is not None:
            before()


def test_a_stale_runner_merges_nothing(output):
    old, new = output.log(), output.log()
    old.log.commit_epoch(1)
    old.merge(0, 1, output.stage(0, [(0, NOON, "a", 1)]))
    late = output.stage(1, [(2, NOON, "a", 99)])
    new.log.commit_epoch(2)
    version = new.log.version()
    with pytest.raises(FencedError, match="epoch 2"):
        old.merge(1, 1, late)
    with pytest.raises(FencedError):
        old.log.commit_epoch(1)
    unaware = Unaware(output.path, APP, Appends(ROWS, merge_key=KEY), output.spark)
    unaware.before = lambda: setattr(unaware, "before", None)
    with pytest.raises(FencedError, match="epoch 2"):
        unaware.merge(1, 1, late)
    assert (new.log.version(), output.found()) == (version, {("12", "a", 1, 0)})
    new.merge(1, 2, output.stage(1, [(2, NOON, "a", 2)], epoch=2))
    assert output.found() == {("12", "a", 2, 1)}


def test_a_runner_that_takes_over_before_the_first_merge_fences_it(output):
    """Nothing of the table has a transaction of Spark's yet but for the epochs'."""
    output.log().log.commit_epoch(1)
    stale = Unaware(output.path, APP, Appends(ROWS, merge_key=KEY), output.spark)
    stale.before = lambda: output.log().log.commit_epoch(2)
    with pytest.raises(FencedError, match="epoch 2"):
        stale.merge(0, 1, output.stage(0, [(0, NOON, "a", 1)]))
    assert output.found() == set()


def test_a_commit_in_between_keeps_an_append_out(output):
    """Somebody else adds a row of the same key behind the version that was looked at."""
    mine, theirs = Unaware(output.path, APP, Appends(ROWS, merge_key=KEY), output.spark), "their"
    other = MergedOutput(output.path, theirs, Appends(ROWS, merge_key=KEY), output.spark)
    row = output.stage(0, [(0, NOON, "a", 1)])
    mine.before = lambda: other.merge(0, 1, row)
    with pytest.raises(SinkError, match="another was faster behind version"):
        mine.merge(0, 1, row)
    assert mine.log.batches.last_batch() is None
    mine.merge(0, 1, output.stage(0, [(2, NOON, "a", 2)]))
    assert output.found() == {("12", "a", 2, 0)}
    assert operations(output) == ["WRITE", "MERGE"]


def operations(output):
    """What the commits with files say that they did, the oldest first."""
    entries = sorted((output.path / "_delta_log").glob("*.json"))
    actions = [[json.loads(line) for line in path.read_text().splitlines()] for path in entries]
    infos = [each for each in actions if any("add" in action for action in each)]
    return [a["commitInfo"]["operation"] for each in infos for a in each if "commitInfo" in a]


def test_windows_are_appended_until_one_comes_again(output):
    log = output.log()
    log.log.commit_epoch(1)
    hours = [NOON + timedelta(hours=each) for each in range(5)]
    for batch, at in enumerate((*hours[:3], hours[1], *hours[3:])):
        changes = [(0, at, "a", batch), (2, at, "a", 7), (0, at, "b", 1), (3, at, "b", 1)]
        log.merge(batch, 1, output.stage(batch, changes))
    assert operations(output) == [*["WRITE"] * 3, "MERGE", *["WRITE"] * 2]
    batches = zip(["12", "13", "14", "15", "16"], (0, 3, 2, 4, 5), strict=True)
    assert output.found() == {(hour, "a", 7, batch) for hour, batch in batches}
    assert [log.log.batches.batch_metadata(batch)["batch"] for batch in range(6)] == [*range(6)]


def test_keys_that_are_new_to_the_job_are_appended_among_those_of_files(output):
    log = output.log()
    log.log.commit_epoch(1)
    log.merge(0, 1, output.stage(0, [(0, NOON, "a", 1), (0, ONE, "b", 1)]))
    between = NOON + timedelta(minutes=5)
    log.merge(1, 1, replace(output.stage(1, [(0, between, "c", 1)]), is_new=True))
    log.merge(2, 1, output.stage(2, [(2, between, "c", 2)]))
    assert operations(output) == ["WRITE", "WRITE", "MERGE"]
    assert output.found() == {("12", "a", 1, 0), ("13", "b", 1, 0), ("12", "c", 2, 2)}


@pytest.mark.parametrize("seed", some_of(range(3), 0))
def test_appends_and_merges_make_the_same_table(tmp_path, spark, seed):
    """Of batches of any keys, NULL among them; one of the two tables is merged always."""
    choose, key = random.Random(seed), ("window-start", "item")
    roots = [tmp_path / name for name in ("auto", "spark")]
    outputs = [Output(root, spark, key=key) for root in roots]
    writers = (SinkWriter.AUTO, SinkWriter.SPARK)
    logs = [each.log(writer) for each, writer in zip(outputs, writers, strict=True)]
    for batch in range(6):
        first = choose.choice([0, 0, batch, batch, batch])
        changes = [
            (
                choose.choice([0, 2, 3]),
                NOON + timedelta(hours=first, milliseconds=choose.choice([0, 0, 1])),
                choose.choice(["a", "b", "\U0001f600", None]),
                choose.randrange(100),
            )
            for _ in range(choose.randrange(6))
        ]
        tasks = [part for part in (changes[:2], changes[2:]) if part]
        for output, log in zip(outputs, logs, strict=True):
            log.merge(batch, 1, output.stage(batch, *tasks))
        merged, appended = (sorted(map(str, each.table())) for each in outputs)
        assert merged == appended
    assert "WRITE" in operations(outputs[0])
    assert "WRITE" not in operations(outputs[1])


def test_only_files_with_keys_of_the_batch_are_read(output):
    log = output.log()
    for batch, at in enumerate((NOON, ONE)):
        log.merge(batch, 1, output.stage(batch, [(0, at, "a", 1)]))
    cold, _ = sorted(log.log.files.files_at(log.log.version()))
    away = cold.rename(cold.with_suffix(".away"))
    log.merge(2, 1, output.stage(2, [(2, ONE, "a", 2)]))
    away.rename(cold)
    assert operations(output) == ["WRITE", "WRITE", "MERGE"]
    assert output.found() == {("12", "a", 1, 0), ("13", "a", 2, 2)}


def test_keys_of_each_kind_meet_their_rows_in_any_time_zone(tmp_path, spark, monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    kinds = {"day": pa.date32(), "at": pa.timestamp("us", tz="UTC"), "id": pa.int64()}
    rows = pa.schema([*kinds.items(), ("n", pa.int64()), ("_batch", pa.int64())])
    output = Output(tmp_path, spark, rows, tuple(kinds))
    key = (date(1, 1, 1), NOON.replace(tzinfo=UTC), 2**62)
    for batch in (0, 1):
        output.log().merge(batch, 1, output.stage(batch, [(0, *key, batch)]))
    monkeypatch.undo()
    time.tzset()
    (row,) = spark.read.format("delta").load(str(output.path)).collect()
    assert (row.id, row.n) == (2**62, 1)


def test_a_row_that_violates_a_constraint_keeps_its_whole_batch_out(output):
    session = output.spark.newSession()
    session.conf.set("spark.sql.runSQLOnFiles", "true")
    session.sql(f"ALTER TABLE delta.`{output.path}` ADD CONSTRAINT few CHECK (n < 100)")
    log = output.log()
    with pytest.raises(ConstraintViolatedError, match=r"CHECK constraint few") as raised:
        log.merge(0, 1, output.stage(0, [(0, NOON, "a", 4711), (0, NOON, "b", 1)]))
    assert "4711" not in raised.value.message
    assert (output.found(), log.log.batches.last_batch()) == (set(), None)


REFUSED = {
    "append_only": ({"delta.appendOnly": "true"}, SinkWriter.AUTO, "is append-only"),
    "columnar": ({}, SinkWriter.COLUMNAR, "cannot have the columnar writer: its rows replace"),
}


@pytest.mark.parametrize(("properties", "wanted", "told"), REFUSED.values(), ids=REFUSED)
def test_a_table_that_keeps_no_newest_row_is_refused(tmp_path, spark, properties, wanted, told):
    create_table(tmp_path / "out", ROWS, properties=properties)
    with pytest.raises(SinkError, match=told):
        Output(tmp_path, spark).log(wanted).log.choice()


# The writer
# ----------------------------------------------------------------------------------------------


class Job(Output):
    """The same table with the rows of a join, and its job's writer as a runner makes it."""

    def __init__(self, root, spark) -> None:
        self.task = probe_task(root, DeltaSink("out", merge_key=("user_id",)))
        super().__init__(root, spark, self.task.kernel.output_schema, ("user_id",))

    def writer(self) -> MergeSinkWriter:
        return MergeSinkWriter(self.log(), RowFiles(self.files))

    def run(self, writer, pin, *values):
        return writer.run(work_of(self.spark, clicks(*values)), self.task, pin)

    def names(self):
        rows = self.spark.read.format("delta").load(str(self.path)).collect()
        return sorted((row.user_id, row.name, row._batch) for row in rows)


def test_what_a_crash_leaves_is_neither_lost_nor_doubled(tmp_path, spark):
    """A crash behind the staging, then one behind the merge."""
    job, pin = Job(tmp_path, spark), replace(PIN, batch=0)
    values = [b'{"user_id":1}', b'{"user_id":3}', b"{", b'{"user_id":1}']
    crashed = job.writer()
    job.run(crashed, pin, *values)
    left = set(job.files.iterdir())
    assert left
    second = job.writer()
    assert second.committed_counts(pin) is None
    report = job.run(second, pin, *values)
    assert report.counts["joined"] == 3
    assert not left & set(job.files.iterdir())
    second.commit(report, pin, 2)
    assert list(job.files.iterdir()) == []
    third = job.writer()
    assert third.committed_counts(pin) == report.counts
    assert third.choice.reason == "its rows replace others by (user_id)"
    assert job.names() == [(1, "r5", 0), (3, None, 0)]


def test_an_attempt_that_was_given_up_commits_nothing(tmp_path, spark):
    job, pin = Job(tmp_path, spark), replace(PIN, batch=0)
    slow, next_one = job.writer(), job.writer()
    left = job.run(slow, pin, b'{"user_id":2}')
    report = job.run(next_one, pin, b'{"user_id":3}')
    with pytest.raises(SinkError, match="is gone"):
        slow.commit(left, pin, 2)
    assert next_one.committed_counts(pin) is None
    next_one.commit(report, pin, 2)
    assert job.names() == [(3, None, 0)]
