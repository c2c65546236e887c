"""Commits through delta-rs: once each, fenced by the epoch, whole or refused."""

import json
import subprocess
import sys
import threading
from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake import Field as DeltaField
from deltalake import Schema as DeltaSchema
from deltalake.schema import PrimitiveType

from joins.adapters.delta.entries import added_files
from joins.adapters.delta.features import Appends, WriterChoice
from joins.adapters.delta.log import DeltaLog, FileActions, Rewrite, create_table, txn_number
from joins.plan.errors import FencedError, SinkError
from joins.plan.plan import SinkWriter
from tests.support.changelog import stage
from tests.support.named_rows import SCHEMA, ids_in, rows_of

COMMITTER = """
import sys
from pathlib import Path
from joins.adapters.delta.log import DeltaLog
from joins.plan.errors import JoinError

log = DeltaLog(Path(sys.argv[1]), "app")
print("ready", flush=True)
for line in sys.stdin:
    try:
        print(log.commit(int(line), 1, [], {}), flush=True)
    except JoinError:
        print("refused", flush=True)
"""


@pytest.fixture
def table(tmp_path):
    create_table(tmp_path / "out", SCHEMA)
    return tmp_path / "out"


def test_creating_keeps_what_is_there(table):
    log = DeltaLog(table, "app")
    log.commit(0, 1, [stage(table, rows_of(1))], {})
    create_table(table, SCHEMA)
    assert (log.version(), ids_in(table)) == (1, [1])


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SinkError, match="cannot be created"):
        create_table(tmp_path / "file" / "out", SCHEMA)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(SinkError, match="is not there"):
        DeltaLog(tmp_path / "none", "app").version()


def test_committing_a_batch_twice_is_committing_it_once(table):
    log = DeltaLog(table, "app")
    assert log.batches.last_batch() is None
    assert log.commit(0, 1, [stage(table, rows_of(1, 2))], {}) == 1
    again = stage(table, rows_of(1, 2))
    assert log.commit(0, 1, [again], {}) == 1
    assert DeltaLog(table, "app").commit(0, 1, [again], {}) == 1
    assert (ids_in(table), log.batches.last_batch()) == ([1, 2], 0)


def test_an_older_batch_changes_nothing(table):
    log = DeltaLog(table, "app")
    log.commit(5, 1, [], {})
    assert log.commit(4, 1, [stage(table, rows_of(1))], {}) == 1
    assert (ids_in(table), log.batches.last_batch()) == ([], 5)


def test_jobs_with_other_app_ids_do_not_meet(table):
    first, second = DeltaLog(table, "a"), DeltaLog(table, "b")
    first.commit_epoch(9)
    first.commit(3, 9, [stage(table, rows_of(1))], {})
    assert second.batches.last_batch() is None
    second.commit(0, 1, [stage(table, rows_of(2))], {})
    assert ids_in(table) == [1, 2]


def test_an_epoch_is_committed_once_and_fences_older_runners(table):
    old, new = DeltaLog(table, "app"), DeltaLog(table, "app")
    old.commit_epoch(1)
    old.commit_epoch(1)
    assert old.version() == 1
    new.commit_epoch(2)
    with pytest.raises(FencedError, match="epoch 2"):
        old.commit(0, 1, [stage(table, rows_of(1))], {})
    with pytest.raises(FencedError):
        old.commit_epoch(1)
    new.commit(0, 2, [stage(table, rows_of(2))], {})
    assert ids_in(table) == [2]


def loaded(table):
    """A log whose table was loaded before somebody else's commit."""
    log = DeltaLog(table, "app")
    first = log.versions.reload()
    log.versions.fresh = lambda: first
    return log


OTHERS = {
    "the_same_batch": (lambda log, file: log.commit(0, 1, [file], {}), SinkError),
    "a_later_batch": (lambda log, file: log.commit(1, 1, [file], {}), SinkError),
    "a_newer_epoch": (lambda log, file: log.commit_epoch(2), FencedError),
    "a_batch_of_a_newer_epoch": (lambda log, file: log.commit(0, 2, [file], {}), FencedError),
}


@pytest.mark.parametrize(("other", "error"), OTHERS.values(), ids=OTHERS)
def test_of_two_that_loaded_the_table_at_the_same_time_one_commits(table, other, error):
    late = loaded(table)
    assert late.version() == 0
    other(DeltaLog(table, "app"), stage(table, rows_of(1)))
    before = ids_in(table)
    with pytest.raises(error, match="met"):
        late.commit(0, 1, [stage(table, rows_of(2))], {})
    assert ids_in(table) == before
    assert DeltaLog(table, "app").version() == 1


@pytest.mark.usefixtures("processes")
def test_processes_that_commit_the_same_batches_commit_each_once(table):
    with (
        subprocess.Popen(
            [sys.executable, "-c", COMMITTER, str(table)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as one,
        subprocess.Popen(
            [sys.executable, "-c", COMMITTER, str(table)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as two,
    ):
        try:
            for process in (one, two):
                assert process.stdout.readline() == "ready\n"
            for batch in range(8):
                for process in (one, two):
                    process.stdin.write(f"{batch}\n")
                    process.stdin.flush()
                answers = {process.stdout.readline().strip() for process in (one, two)}
                assert answers <= {str(batch + 1), "refused"}
                assert answers != {"refused"}
        finally:
            one.kill()
            two.kill()
    log = DeltaLog(table, "app")
    assert (log.version(), log.batches.last_batch()) == (8, 7)


CHANGED = {
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_staged_file_that_was_changed_is_refused(table, change):
    log = DeltaLog(table, "app")
    good, bad = stage(table, rows_of(1)), stage(table, rows_of(2))
    change(table / bad.path)
    with pytest.raises(SinkError, match="staged file"):
        log.commit(0, 1, [good, bad], {})
    assert (log.version(), log.batches.last_batch()) == (0, None)
    log.commit(0, 1, [good, stage(table, rows_of(2))], {})
    assert ids_in(table) == [1, 2]


def swallowing(table):
    """A log whose writes go to the table under another app id."""
    log = DeltaLog(table, "app")
    write = log.writer.write

    def write_another(seen, commit):
        mine = tuple(replace_app(transaction) for transaction in commit.transactions)
        return write(seen, replace(commit, transactions=mine))

    log.writer.write = write_another
    return log


def replace_app(transaction):
    return Transaction(f"other:{transaction.app_id}", transaction.version)


def test_a_commit_that_does_not_show_afterwards_is_an_error(table):
    with pytest.raises(SinkError, match="shows batch None"):
        swallowing(table).commit(0, 1, [], {})


def test_a_commit_tells_its_metadata_as_delta_users_see_it(table):
    log = DeltaLog(table, "app")
    version = log.commit(7, 3, [stage(table, rows_of(1))], {"batch": 7, "versions": {"u": 4}})
    actions = log.versions.commit_entry(version)
    told = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    assert json.loads(told["userMetadata"]) == {"batch": 7, "versions": {"u": 4}}
    transactions = {a["txn"]["appId"]: a["txn"]["version"] for a in actions if "txn" in a}
    assert transactions == {"app": 7, "app:fence": 3}


def test_a_commit_is_read_back_by_itself_and_as_part_of_a_version(table):
    log = DeltaLog(table, "app")
    log.commit(0, 1, [stage(table, rows_of(1)), stage(table, rows_of(2))], {})
    log.commit(1, 1, [], {})
    log.commit(2, 1, [stage(table, rows_of(3))], {})
    assert log.files.read_commit(1).column("id").to_pylist() == [1, 2]
    assert log.files.read_commit(2).num_rows == 0
    assert log.files.read_commit(3, ["name"]).to_pylist() == [{"name": "n3"}]
    added = [len(log.files.files_added(first, 3)) for first in (1, 2, 3, 4)]
    assert added == [3, 1, 1, 0]
    assert [len(log.files.files_at(version)) for version in range(4)] == [0, 2, 2, 3]
    tables = log.files.read_files(log.files.files_at(3))
    assert sorted(i for t in tables for i in t.column("id").to_pylist()) == [1, 2, 3]


# Commits that replace and remove


def test_files_are_replaced_in_one_commit_that_is_no_change(table):
    log = DeltaLog(table, "app")
    old = [stage(table, rows_of(i)) for i in (1, 2, 3)]
    for batch, file in enumerate(old):
        log.commit(batch, 1, [file], {})
    whole = stage(table, rows_of(1, 2))
    change = Rewrite([whole], [file.path for file in old[:2]], {"dropped": 7})
    assert log.rewrite(change, 1, {"why": "small"}) == 4
    assert ids_in(table) == [1, 2, 3]
    assert [log.batches.counters(["dropped"], at).get("dropped", 0) for at in (3, 4)] == [0, 7]
    assert (log.batches.last_batch(), log.batches.metadata_at(4)) == (2, {"why": "small"})
    assert [path.name for path in log.files.files_added(1, 4)] == [file.path for file in old]
    assert log.files.files_named(4, 4) == {whole.path}
    assert log.files.rows_at(4) == {whole.path: 2, old[2].path: 1}
    with pytest.raises(SinkError, match="to replace"):
        log.rewrite(change, 1, {})
    DeltaLog(table, "app").commit_epoch(2)
    with pytest.raises(FencedError):
        log.rewrite(Rewrite(), 1, {})


SHORTENED = {"up_to_what_was_seen": 3, "up_to_the_next_one": 4, "beyond_it": 6}


@pytest.mark.parametrize("kept_from", SHORTENED.values(), ids=SHORTENED)
def test_commits_of_others_are_seen_although_the_log_was_shortened_meanwhile(table, kept_from):
    log, other = DeltaLog(table, "app"), DeltaLog(table, "app")
    files = [stage(table, rows_of(batch)) for batch in range(7)]
    for batch in range(3):
        log.commit(batch, 1, [files[batch]], {})
    assert log.version() == 3
    for batch in range(3, 7):
        other.commit(batch, 1, [files[batch]], {})
    other.upkeep.make_checkpoint(kept_from)
    assert other.upkeep.remove_log_before(kept_from) > 0
    assert (log.version(), log.batches.last_batch()) == (7, 6)
    assert log.files.rows_at(7) == {file.path: 1 for file in files}
    assert log.commit(7, 1, [stage(table, rows_of(7))], {}) == 8
    other.commit_epoch(2)
    with pytest.raises(FencedError, match="epoch 2"):
        log.commit(8, 1, [], {})


def test_a_look_at_a_quiet_table_opens_nothing_but_names(table):
    log = DeltaLog(table, "app")
    log.commit(0, 1, [stage(table, rows_of(1))], {})
    hidden = table / "_delta_log" / f"{0:020d}.json"
    hidden.rename(table / "aside")  # a listing of the log would find that it begins too late
    entry = table / "_delta_log" / f"{1:020d}.json"
    entry.chmod(0)
    assert (log.version(), log.batches.last_batch(), list(log.files.rows_at(1).values())) == (
        1,
        0,
        [1],
    )


def test_a_batch_is_retracted_once_and_its_number_stays_used(table):
    log = DeltaLog(table, "app")
    for batch in range(3):
        log.commit(batch, 1, [stage(table, rows_of(batch)), stage(table, rows_of(batch))], {})
    assert log.retract(1, 1) == 4
    assert ids_in(table) == [0, 0, 2, 2]
    assert (log.retract(1, 1), log.retract(7, 1), log.version()) == (None, None, 4)
    assert log.commit(1, 1, [stage(table, rows_of(1))], {}) == 4
    DeltaLog(table, "app").commit_epoch(2)
    with pytest.raises(FencedError):
        log.retract(2, 1)


REMOVED_1 = CommitProperties(custom_metadata={"userMetadata": "removed batch 1"})


def test_a_batch_whose_rows_were_compacted_is_not_retracted_before_they_are_deleted(table):
    log = DeltaLog(table, "app")
    for batch in range(3):
        log.commit(batch, 1, [stage(table, rows_of(batch))], {})
    user = DeltaTable(str(table))
    user.optimize.compact()
    log.commit(3, 1, [stage(table, rows_of(3))], {})
    with pytest.raises(SinkError, match="its files were rewritten with others") as caught:
        log.retract(1, 1)
    assert "userMetadata = 'removed batch 1'" in caught.value.hint
    assert log.retract(3, 1) == log.version(), "what came later is in a file of its batch"
    assert ids_in(table) == [0, 1, 2]
    user.update_incremental()
    user.delete("id = 1", commit_properties=REMOVED_1)
    assert log.retract(1, 1) is None
    assert ids_in(table) == [0, 2]


def compacted_and_deleted(user):
    user.optimize.compact()
    user.delete("id = 0")


def deleted(user):
    user.delete("id = 11")


def compacted_and_deleted_for_another_batch(user):
    user.optimize.compact()
    another = CommitProperties(custom_metadata={"userMetadata": "removed batch 12"})
    user.delete("id = 0", commit_properties=another)


def removed_and_brought_back(user):
    user.optimize.compact()
    version = user.version()
    user.delete("id in (1, 11)", commit_properties=REMOVED_1)
    user.restore(version)


@pytest.mark.parametrize(
    "change",
    [
        deleted,
        compacted_and_deleted,
        compacted_and_deleted_for_another_batch,
        removed_and_brought_back,
    ],
)
def test_a_deletion_for_another_reason_leaves_the_rows_of_the_batch(table, change):
    log = DeltaLog(table, "app")
    for batch in range(3):
        log.commit(batch, 1, [stage(table, rows_of(batch, batch + 10))], {})
    change(DeltaTable(str(table)))
    with pytest.raises(SinkError, match="its files were rewritten with others"):
        log.retract(1, 1)
    assert 1 in ids_in(table)
    user = DeltaTable(str(table))
    user.delete("id in (1, 11)", commit_properties=REMOVED_1)
    assert log.retract(1, 1) is None


def test_rows_that_were_compacted_may_be_deleted_by_a_deletion_vector(table):
    """The file of the compaction stays, under its name."""
    log = DeltaLog(table, "app")
    for batch in range(3):
        log.commit(batch, 1, [stage(table, rows_of(batch))], {})
    DeltaTable(str(table)).optimize.compact()
    with pytest.raises(SinkError, match="its files were rewritten with others"):
        log.retract(1, 1)
    version = log.version()
    (compacted,) = added_files(log.versions.commit_entry(version))
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1}
    new = {**compacted, "dataChange": True}
    new["deletionVector"] = {**vector, "sizeInBytes": 36, "cardinality": 1}
    old = {"path": compacted["path"], "deletionTimestamp": 1, "dataChange": True}
    said = {"operation": "DELETE", "userMetadata": "removed batch 1"}
    actions = ({"commitInfo": said}, {"remove": old}, {"add": new})
    entry = "\n".join(json.dumps(action) for action in actions)
    (table / "_delta_log" / f"{version + 1:020d}.json").write_text(entry)
    assert log.retract(1, 1) is None


@pytest.fixture
def replacing(table):
    """Batch 0 has three rows in two files; batch 1 replaces both files and adds a row."""
    log = DeltaLog(table, "app")
    files = [stage(table, rows_of(*ids)) for ids in ((1, 2), (3,))]
    log.commit(0, 1, files, {})
    files_of = [file.path for file in files]
    change = FileActions([stage(table, rows_of(1, 2, 3, 4))], files_of, of_version=1)
    log.commit_change(1, 1, change, {})
    assert ids_in(table) == [1, 2, 3, 4]
    return log


def test_a_batch_that_has_replaced_files_is_retracted_by_their_return(replacing, table):
    assert replacing.retract(1, 1) == 3
    assert ids_in(table) == [1, 2, 3]
    assert (replacing.retract(1, 1), replacing.batches.last_batch()) == (None, 1)
    replacing.commit(2, 1, [stage(table, rows_of(5))], {})
    assert ids_in(table) == [1, 2, 3, 5]


def test_a_batch_whose_replaced_files_are_gone_keeps_its_rows_until_an_operator_acts(
    replacing, table
):
    (first, *_) = replacing.files.files_at(1)
    content = first.read_bytes()
    first.unlink()
    with pytest.raises(SinkError, match="batch 1 cannot be removed") as caught:
        replacing.retract(1, 1)
    assert "RESTORE TABLE … TO VERSION AS OF 1" in caught.value.hint
    assert ids_in(table) == [1, 2, 3, 4]
    first.write_bytes(content)
    DeltaTable(str(table)).restore(1)
    assert replacing.retract(1, 1) is None
    assert ids_in(table) == [1, 2, 3]


def test_a_batch_that_has_replaced_files_is_not_retracted_by_half(table):
    """A user has deleted what is in one of its files: the other may have rows of before it."""
    log = DeltaLog(table, "app")
    log.commit(0, 1, [stage(table, rows_of(1))], {})
    (file,) = log.files.rows_at(1)
    added = [stage(table, rows_of(1, 2)), stage(table, rows_of(3))]
    log.commit_change(1, 1, FileActions(added, [file], of_version=1), {})
    user = DeltaTable(str(table))
    user.delete("id = 3")
    with pytest.raises(SinkError, match="its files that replaced others have changed since"):
        log.retract(1, 1)
    user.update_incremental()
    user.delete("id = 2", commit_properties=REMOVED_1)
    assert log.retract(1, 1) is None
    assert ids_in(table) == [1]


def test_a_file_whose_rows_were_counted_wrong_is_refused(table):
    wrong = replace(stage(table, rows_of(1, 2)), rows=1)
    with pytest.raises(SinkError, match="has 2 rows, its task counted 1"):
        DeltaLog(table, "app").commit(0, 1, [wrong], {})
    assert DeltaLog(table, "app").version() == 0


def losing(table):
    """A log that commits one file less than it is asked to."""
    log = DeltaLog(table, "app")
    write = log.writer.write

    def write_less(seen, commit):
        version = write(seen, replace(commit, added=commit.added[1:]))
        return log.writer.verified(commit, range(version, version + 1))[0]

    log.writer.write = write_less
    return log


def test_a_commit_with_other_rows_than_were_staged_is_an_error(table):
    files = [stage(table, rows_of(1)), stage(table, rows_of(2, 3))]
    with pytest.raises(SinkError, match="adds 2 rows and removes 0 files, expected 3 and 0"):
        losing(table).commit(0, 1, files, {})


def test_batches_are_found_among_the_commits_of_others(table):
    log, other = DeltaLog(table, "app"), DeltaLog(table, "other")
    where = {}
    for batch in range(12):
        where[batch * 3] = log.commit(batch * 3, 1, [], {"batch": batch})
        for at in range(batch % 4):
            other.commit(batch * 10 + at, 1, [], {})
    assert {batch: log.batches.version_of(batch) for batch in where} == where
    assert [log.batches.version_of(batch) for batch in (1, 2, 34, 99)] == [None] * 4
    assert log.batches.batch_metadata(9) == {"batch": 3}
    assert DeltaLog(table, "none").batches.version_of(0) is None


def test_threads_that_commit_under_one_log_do_not_conflict(table):
    log = DeltaLog(table, "app")
    log.commit(0, 1, [stage(table, rows_of(0))], {})
    errors = []

    def commit():
        try:
            for batch in range(1, 21):
                log.commit(batch, 1, [stage(table, rows_of(batch))], {})
        except SinkError as exc:
            errors.append(exc)

    thread = threading.Thread(target=commit)
    thread.start()
    for _ in range(10):
        log.rewrite(Rewrite(counters={"n": 1}), 1, {})
    thread.join()
    assert (errors, ids_in(table), log.version()) == ([], list(range(21)), 31)


# Which tables of others may be written


def delta_field(name, kind, **more):
    return DeltaField(name, PrimitiveType(kind), **more)


ID, NAME = delta_field("id", "long"), delta_field("name", "string")
REFUSED = {
    "another_order": ([NAME, ID], {}, "has columns"),
    "another_type": ([delta_field("id", "integer"), NAME], {}, "has columns"),
    "a_column_more": ([ID, NAME, delta_field("x", "long")], {}, "has columns"),
    "not_null_where_rows_may_be_null": (
        [delta_field("id", "long", nullable=False), NAME],
        {},
        "NOT NULL",
    ),
    "a_generated_column": (
        [delta_field("id", "long", metadata={"delta.generationExpression": "1"}), NAME],
        {},
        "generationExpression",
    ),
    "a_property_that_we_do_not_know": (
        [ID, NAME],
        {"delta.dataSkippingNumIndexedCols": "1"},
        "uses",
    ),
    "deletion_vectors": ([ID, NAME], {"delta.enableDeletionVectors": "true"}, "uses"),
}


@pytest.mark.parametrize(("fields", "properties", "told"), REFUSED.values(), ids=REFUSED)
def test_a_table_that_this_writer_could_harm_is_refused(tmp_path, fields, properties, told):
    DeltaTable.create(str(tmp_path), DeltaSchema(fields), configuration=properties)
    with pytest.raises(SinkError, match=told):
        DeltaLog(tmp_path, "app").choose_writer(Appends(SCHEMA, SinkWriter.COLUMNAR))


def test_a_partitioned_table_is_refused(tmp_path):
    DeltaTable.create(str(tmp_path), DeltaSchema([ID, NAME]), partition_by=["id"])
    with pytest.raises(SinkError, match="partition"):
        DeltaLog(tmp_path, "app").choose_writer(Appends(SCHEMA, SinkWriter.COLUMNAR))


def test_a_table_that_is_there_keeps_the_columns_that_cut_its_files(tmp_path):
    create_table(tmp_path, SCHEMA, partition_by=("id",))
    log = DeltaLog(tmp_path, "app")
    assert log.choose_writer(Appends(SCHEMA, partition_by=("id",))).is_spark
    assert log.choose_writer(Appends(SCHEMA)).is_spark
    with pytest.raises(SinkError, match=r"is partitioned by \(id\), expected \(name\)"):
        log.choose_writer(Appends(SCHEMA, partition_by=("name",)))
    assert Appends(SCHEMA, partition_by=("id",)).choose_new(tmp_path).is_spark


WRITABLE = {
    "ours": SCHEMA,
    "not_null_on_our_side": pa.schema(
        [pa.field("id", pa.int64(), nullable=False), SCHEMA.field(1)]
    ),
    "times": pa.schema([("a", pa.timestamp("us")), ("b", pa.timestamp("us", tz="UTC"))]),
    "bytes": pa.schema([("a", pa.binary()), ("b", pa.decimal128(10, 2)), ("c", pa.date32())]),
}


@pytest.mark.parametrize("schema", WRITABLE.values(), ids=WRITABLE)
def test_a_table_that_we_created_may_be_written(tmp_path, schema):
    create_table(tmp_path, schema)
    log = DeltaLog(tmp_path, "app")
    assert log.choose_writer(Appends(schema)) == WriterChoice(SinkWriter.COLUMNAR)
    forced = log.choose_writer(Appends(schema, SinkWriter.SPARK))
    assert (forced.is_spark, forced.reason) == (True, "'sink.writer' is 'spark'")


OTHER_COLUMNS = ("another_order", "another_type", "a_column_more")
NEEDS_SPARK = {name: case for name, case in REFUSED.items() if name not in OTHER_COLUMNS}


@pytest.mark.parametrize(("fields", "properties", "told"), NEEDS_SPARK.values(), ids=NEEDS_SPARK)
def test_such_a_table_gets_sparks_writer_unless_it_is_ruled_out(tmp_path, fields, properties, told):
    DeltaTable.create(str(tmp_path), DeltaSchema(fields), configuration=properties)
    found = DeltaLog(tmp_path, "app").choose_writer(Appends(SCHEMA))
    assert found.is_spark
    assert told in found.reason or "delta." in found.reason


@pytest.mark.parametrize("name", OTHER_COLUMNS)
def test_a_table_with_other_columns_gets_no_writer_at_all(tmp_path, name):
    DeltaTable.create(str(tmp_path), DeltaSchema(REFUSED[name][0]))
    for wanted in SinkWriter:
        with pytest.raises(SinkError, match="has columns"):
            DeltaLog(tmp_path, "app").choose_writer(Appends(SCHEMA, wanted))


FILLED = {
    "generated": {"delta.generationExpression": "id * 2"},
    "identity": {"delta.identity.start": 1},
    "default": {"CURRENT_DEFAULT": "'x'"},
}


@pytest.mark.parametrize("metadata", FILLED.values(), ids=FILLED)
def test_a_column_that_delta_fills_need_not_be_in_the_rows(tmp_path, metadata):
    more = delta_field("x", "long", metadata=metadata)
    DeltaTable.create(str(tmp_path), DeltaSchema([ID, more, NAME]))
    found = DeltaLog(tmp_path, "app").choose_writer(Appends(SCHEMA))
    assert found.is_spark
    assert " of x" in found.reason


def test_what_a_row_can_violate_is_named(tmp_path):
    fields = [delta_field("id", "long", nullable=False), NAME]
    DeltaTable.create(str(tmp_path), DeltaSchema(fields))
    DeltaTable(str(tmp_path)).alter.add_constraint({"positive": "id > 0"})
    found = DeltaLog(tmp_path, "app").choose_writer(Appends(SCHEMA))
    assert found.rules == ("CHECK positive", "NOT NULL of id")
    assert "column id is NOT NULL in the table and may be NULL in a row" in found.reason
    assert "delta.constraints.positive" in found.reason


def test_a_table_that_asks_for_more_since_the_files_were_staged_gets_none_of_them(table):
    log = DeltaLog(table, "app", Appends(SCHEMA))
    log.commit(0, 1, [stage(table, rows_of(1))], {})
    staged = stage(table, rows_of(-1))
    DeltaTable(str(table)).alter.add_constraint({"positive": "id > 0"})
    with pytest.raises(SinkError, match=r"needs spark's writer now.*constraints\.positive"):
        log.commit(1, 1, [staged], {})
    assert (ids_in(table), log.batches.last_batch()) == ([1], 0)


# Commits of Spark's writer in the same log


def commit_as_spark(table, epoch, batch, metadata):
    loaded = DeltaTable(str(table))
    loaded.create_write_transaction(
        [],
        "append",
        loaded.schema(),
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": json.dumps(metadata)},
            app_transactions=[Transaction("app:spark", txn_number(epoch, batch))],
        ),
    )


def test_batches_and_epochs_of_both_writers_are_one_sequence(table):
    log = DeltaLog(table, "app")
    commit_as_spark(table, 1, None, {"sluice.epoch": 1})
    assert log.batches.last_batch() is None
    commit_as_spark(table, 1, 0, {"batch": 0})
    assert (log.batches.last_batch(), log.batches.version_of(0)) == (0, 2)
    log.commit_epoch(2)
    assert DeltaTable(str(table)).transaction_version("app:spark") == txn_number(2, 0)
    assert log.commit(0, 2, [stage(table, rows_of(1))], {}) == 3
    log.commit(1, 2, [stage(table, rows_of(1))], {"batch": 1})
    commit_as_spark(table, 3, 1, {"sluice.epoch": 3})
    with pytest.raises(FencedError, match="epoch 3"):
        log.commit(2, 2, [], {})
    commit_as_spark(table, 3, 2, {"batch": 2})
    commit_as_spark(table, 4, 2, {"sluice.epoch": 4})
    again = DeltaLog(table, "app")
    assert again.batches.last_batch() == 2
    assert [again.batches.version_of(batch) for batch in (0, 1, 2, 3)] == [2, 4, 6, None]
    assert again.batches.batch_metadata(2) == {"batch": 2}


def test_a_size_that_was_told_wrong_is_refused(table):
    wrong = replace(stage(table, rows_of(1)), size_bytes=1)
    with pytest.raises(SinkError, match="expected 1"):
        DeltaLog(table, "app").commit(0, 1, [wrong], {})
