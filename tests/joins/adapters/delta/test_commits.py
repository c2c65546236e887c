"""Entries of our own in a Delta log: by name, behind others, never torn, never in a hole."""

import errno
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joins.adapters.delta.commit import Commit
from joins.adapters.delta.log import DeltaLog, Rewrite, create_table
from joins.plan.errors import FencedError, SinkError
from tests.support.changelog import stage
from tests.support.laws import examples
from tests.support.named_rows import SCHEMA, ids_in, rows_of
from tests.support.wait import wait_until


@pytest.fixture
def table(tmp_path):
    create_table(tmp_path / "out", SCHEMA)
    return tmp_path / "out"


def entries_of(path):
    return sorted(int(p.stem) for p in (path / "_delta_log").glob("*.json") if p.stem.isdigit())


def engine_of(log, version):
    return next(a["commitInfo"]["engineInfo"] for a in log.versions.commit_entry(version))


class Stalled(DeltaLog):
    """A log whose next commit waits between its look and its entry until `before` has happened."""

    def __init__(self, path, app_id):
        super().__init__(path, app_id)
        self.before = None
        self.write, self.writer.write = self.writer.write, self.write_behind

    def write_behind(self, table, commit):
        before, self.before = self.before, None
        if before is not None:
            before()
        return self.write(table, commit)


def stalled(table, before):
    log = Stalled(table, "app")
    log.version()
    log.before = before
    return log


def test_an_epoch_is_written_behind_the_last_batch_of_an_older_runner(table):
    older = DeltaLog(table, "app")
    older.commit_epoch(1)
    newer = stalled(table, lambda: older.commit(0, 1, [stage(table, rows_of(1))], {}))
    newer.commit_epoch(2)
    assert (newer.batches.last_batch(), newer.batches.epoch(newer.versions.fresh())) == (0, 2)
    with pytest.raises(FencedError):
        older.commit(1, 1, [], {})


def test_an_entry_is_like_those_that_other_writers_make(table):
    log = DeltaLog(table, "app")
    file = stage(table, rows_of(1, 2))
    log.commit_epoch(3)
    log.commit(0, 3, [file], {"batch": 0})
    (info, add, *told) = log.versions.commit_entry(2)
    assert (info["commitInfo"]["isBlindAppend"], info["commitInfo"]["readVersion"]) == (True, 1)
    assert add["add"] | {"modificationTime": 0} == {
        "path": file.path,
        "partitionValues": {},
        "size": (table / file.path).stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": file.stats,
    }
    assert told == [
        {"txn": {"appId": "app", "version": 0}},
        {"txn": {"appId": "app:fence", "version": 3}},
    ]
    loaded = DeltaTable(str(table))
    assert loaded.history()[0]["userMetadata"] == '{"batch":0}'
    assert loaded.transaction_version("app:fence") == 3
    assert pa.table(loaded.get_add_actions()).column("num_records").to_pylist() == [2]


def test_a_commit_is_in_the_log_with_all_of_its_transactions_only():
    commit = Commit((Transaction("app", 3), Transaction("app:fence", 2)))
    batch, epoch = ({"txn": {"appId": a, "version": v}} for a, v in [("app", 3), ("app:fence", 2)])
    assert commit.is_in([batch, epoch])
    assert not commit.is_in([batch])
    assert not commit.is_in([epoch])


def test_a_commit_lists_nothing_of_the_log(table):
    log = DeltaLog(table, "app")
    log.commit(0, 1, [stage(table, rows_of(1))], {})
    first = log.versions.entries.path(0)
    first.rename(table / "aside")  # a listing of the log would find that it begins too late
    with pytest.raises(SinkError):
        DeltaLog(table, "app").version()
    assert log.commit(1, 1, [stage(table, rows_of(2))], {}) == 2
    assert (log.version(), log.batches.last_batch()) == (2, 1)
    (table / "aside").rename(first)
    assert ids_in(table) == [1, 2]


def other_job(table):
    DeltaLog(table, "other").commit(7, 9, [stage(table, rows_of(8))], {})
    loaded = DeltaTable(str(table))
    loaded.create_write_transaction(
        [], "append", loaded.schema(), commit_properties=CommitProperties()
    )


def optimized(table):
    DeltaTable(str(table)).optimize.compact()


def new_property(table):
    DeltaTable(str(table)).alter.set_table_properties({"delta.appendOnly": "true"})


def new_constraint(table):
    DeltaTable(str(table)).alter.add_constraint({"small": "id < 3"})


def same_batch(table):
    DeltaLog(table, "app").commit(1, 1, [stage(table, rows_of(5))], {})


def newer_epoch(table):
    DeltaLog(table, "app").commit_epoch(2)


MEANWHILE = {
    "another_job_commits": (other_job, None),
    "files_are_compacted": (optimized, None),
    "a_property_is_set": (new_property, SinkError),
    "a_constraint_is_added": (new_constraint, SinkError),
    "the_same_batch_is_committed": (same_batch, SinkError),
    "a_newer_runner_takes_over": (newer_epoch, FencedError),
}


@pytest.mark.parametrize(("other", "error"), MEANWHILE.values(), ids=MEANWHILE)
def test_a_commit_goes_behind_others_or_conflicts_with_them(table, other, error):
    files = [stage(table, rows_of(1)) for _ in range(2)]  # enough for a compaction
    DeltaLog(table, "app").commit(0, 1, files, {})
    log = stalled(table, lambda: other(table))
    before = log.version()
    file = stage(table, rows_of(2))
    if error is None:
        version = log.commit(1, 1, [file], {})
        assert version == log.version() == DeltaLog(table, "app").version() > before + 1
        assert ids_in(table).count(2) == 1
        return
    with pytest.raises(error, match="met"):
        log.commit(1, 1, [file], {})
    assert 2 not in ids_in(table)
    assert DeltaTable(str(table)).version() == before + 1


# Numbers that look free
# ----------------------------------------------------------------------------------------------


def taken_over(table, shorten_to):
    """A newer runner commits versions 5 to 10 and shortens the log."""
    newer = DeltaLog(table, "app")
    newer.commit_epoch(2)
    for batch in range(3, 8):
        newer.commit(batch, 2, [stage(table, rows_of(batch))], {})
    newer.upkeep.make_checkpoint(shorten_to)
    newer.upkeep.remove_log_before(shorten_to)


STALE = {
    "a_batch": lambda log, file: log.commit(3, 1, [file], {}),
    "a_batch_that_the_newer_runner_has_last": lambda log, file: log.commit(7, 1, [file], {}),
    "an_epoch": lambda log, file: log.commit_epoch(1),
    "a_rewrite": lambda log, file: log.rewrite(Rewrite([file]), 1, {}),
}


@pytest.mark.parametrize("shorten_to", [5, 6, 7, 10])
@pytest.mark.parametrize("commit", STALE.values(), ids=STALE)
def test_a_stalled_runner_leaves_nothing_where_the_log_was_shortened(table, commit, shorten_to):
    """Its look was at version 4; entry 5 is gone again from a log that begins at 6 or later."""
    first = DeltaLog(table, "app")
    if commit is not STALE["an_epoch"]:
        first.commit_epoch(1)
    for batch in range(3 if commit is not STALE["an_epoch"] else 4):
        DeltaLog(table, "app:old").commit(batch, 1, [stage(table, rows_of(batch))], {})
    assert first.version() == 4
    log = stalled(table, lambda: taken_over(table, shorten_to))
    with pytest.raises(FencedError, match="epoch 2"):
        commit(log, stage(table, rows_of(99)))
    assert entries_of(table) == list(range(shorten_to, 11))
    assert 99 not in ids_in(table)
    assert DeltaLog(table, "app").batches.newest_batch(99) == (10, 7)


def test_an_entry_that_a_crash_has_left_in_a_hole_is_no_part_of_the_log(table):
    DeltaLog(table, "app").commit_epoch(1)
    for batch in range(3):
        DeltaLog(table, "app").commit(batch, 1, [], {})
    stale, seen = DeltaLog(table, "app"), DeltaLog(table, "app").versions.commit_entry(4)
    assert stale.version() == 4
    taken_over(table, 8)
    stale.versions.entries.put(5, seen)  # and then it was killed
    log = DeltaLog(table, "app")
    assert (log.version(), log.versions.oldest_entry(), log.batches.newest_batch(99)) == (
        10,
        8,
        (10, 7),
    )
    assert (stale.version(), stale.batches.last_batch()) == (10, 7)
    log.upkeep.make_checkpoint(10)
    log.upkeep.remove_log_before(10)
    assert entries_of(table) == [10]


# Crashes and file systems
# ----------------------------------------------------------------------------------------------

DYING = """
import os, signal, sys
from pathlib import Path
from joins.adapters.delta.commit import Commit
from joins.adapters.delta.log import DeltaLog

link, when = os.link, sys.argv[2]

def die(source, target):
    if when == "after":
        link(source, target)
    os.kill(os.getpid(), signal.SIGKILL)

os.link = die
DeltaLog(Path(sys.argv[1]), "app").commit(1, 1, [], {"batch": 1})
"""


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(("when", "is_there"), [("before", False), ("after", True)])
def test_a_crash_leaves_a_whole_entry_or_none(table, when, is_there):
    log = DeltaLog(table, "app")
    log.commit(0, 1, [], {})
    died = subprocess.run([sys.executable, "-c", DYING, str(table), when], check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL
    assert len(list((table / "_delta_log").glob(".*.tmp"))) == 1
    assert DeltaTable(str(table)).version() == log.version() == (2 if is_there else 1)
    assert log.batches.last_batch() == int(is_there)
    assert log.commit(1, 1, [], {"batch": 1}) == 2
    assert log.batches.batch_metadata(1) == {"batch": 1}
    log.commit(2, 1, [], {})
    log.upkeep.make_checkpoint(3)
    log.upkeep.remove_log_before(3)
    assert not list((table / "_delta_log").glob(".*.tmp"))


def test_a_full_disk_leaves_nothing(table, monkeypatch):
    log = DeltaLog(table, "app")
    log.version()
    before = sorted(os.listdir(table / "_delta_log"))

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(SinkError, match="No space left"):
            log.commit(0, 1, [], {})
    assert sorted(os.listdir(table / "_delta_log")) == before
    assert log.commit(0, 1, [], {}) == 1


def test_where_files_cannot_be_linked_delta_rs_commits(table, monkeypatch):
    def refuse(source, target):
        raise OSError(errno.EPERM, "Operation not permitted")

    log = DeltaLog(table, "app")
    assert log.commit(0, 1, [], {}) == 1
    monkeypatch.setattr(os, "link", refuse)
    assert [log.commit(batch, 1, [stage(table, rows_of(batch))], {}) for batch in (1, 2)] == [2, 3]
    assert [engine_of(log, version).split(":")[0] for version in (1, 2)] == ["Sluice", "delta-rs"]
    assert (ids_in(table), log.batches.last_batch()) == ([1, 2], 2)
    assert not list((table / "_delta_log").glob(".*.tmp"))


@pytest.mark.parametrize("cut", [1, 60, -3])
def test_a_torn_entry_of_another_writer_is_an_error_and_stays(table, cut):
    log = DeltaLog(table, "app")
    log.commit(0, 1, [], {})
    whole = log.versions.entries.path(1).read_bytes()
    log.versions.entries.path(2).write_bytes(whole[:cut])
    for _ in range(2):
        with pytest.raises(SinkError, match="cannot be read"):
            log.commit(1, 1, [], {})
    log.versions.entries.path(2).write_bytes(whole.replace(b'"app"', b'"someone"'))
    assert log.commit(1, 1, [], {}) == 3


# Tables that ask for more
# ----------------------------------------------------------------------------------------------

ASKING = {
    "nothing": ({}, "Sluice"),
    "a_change_feed": ({"delta.enableChangeDataFeed": "true"}, "Sluice"),
    "deletion_vectors": ({"delta.enableDeletionVectors": "true"}, "delta-rs"),
    "a_property_that_we_do_not_know": ({"delta.dataSkippingNumIndexedCols": "1"}, "delta-rs"),
}


@pytest.mark.parametrize(("properties", "engine"), ASKING.values(), ids=ASKING)
def test_only_a_table_that_asks_for_nothing_unknown_gets_our_entries(tmp_path, properties, engine):
    create_table(tmp_path, SCHEMA, properties=properties)
    log = DeltaLog(tmp_path, "app")
    log.commit_epoch(1)
    log.commit(0, 1, [stage(tmp_path, rows_of(1))], {})
    assert [engine_of(log, at).split(":")[0] for at in (1, 2)] == [engine] * 2
    assert list(log.files.rows_at(2).values()) == [1]


def test_what_a_table_asks_for_is_seen_as_soon_as_it_does(table):
    log = DeltaLog(table, "app")
    log.commit(0, 1, [], {})
    new_constraint(table)
    log.commit(1, 1, [], {})
    DeltaTable(str(table)).alter.drop_constraint("small")
    version = log.commit(2, 1, [], {})
    assert [engine_of(log, at).split(":")[0] for at in (1, 3, version)] == [
        "Sluice",
        "delta-rs",
        "Sluice",
    ]


def test_checkpoints_come_as_often_as_the_table_says_and_readers_go_by_them(tmp_path):
    create_table(tmp_path, SCHEMA, properties={"delta.checkpointInterval": "5"})
    log = DeltaLog(tmp_path, "app")
    for batch in range(12):
        version = log.commit(batch, 1, [stage(tmp_path, rows_of(batch))], {})
        if version in (4, 9):  # another is not begun while one is written
            wait_until(lambda: version in log.upkeep.checkpoints(), what="the checkpoint")  # noqa: B023
    assert log.upkeep.checkpoints() == [4, 9]
    for version in range(9):
        log.versions.entries.remove(version)
    loaded = DeltaTable(str(tmp_path))
    assert (loaded.version(), loaded.transaction_version("app")) == (12, 11)
    assert ids_in(tmp_path) == list(range(12))
    assert log.commit(12, 1, [], {}) == 13


def test_no_commit_waits_for_a_checkpoint_or_fails_with_one(tmp_path):
    may_go_on, asked = threading.Event(), []

    class Log(DeltaLog):
        def _may_checkpoint(self) -> bool:
            asked.append(self.version())
            assert may_go_on.wait(60)
            if len(asked) == 1:
                raise SinkError("no space", hint="Planted.")
            return True

    create_table(tmp_path, SCHEMA, properties={"delta.checkpointInterval": "5"})
    log = Log(tmp_path, "app")
    for batch in range(8):
        assert log.commit(batch, 1, [], {}) == batch + 1
    wait_until(lambda: asked, what="the checkpoint is begun")
    may_go_on.set()
    wait_until(lambda: "checkpoint" not in {each.name for each in threading.enumerate()})
    assert log.upkeep.checkpoints() == []
    log.commit(8, 1, [], {})
    wait_until(lambda: log.upkeep.checkpoints() == [9], what="the next checkpoint")


# Laws
# ----------------------------------------------------------------------------------------------

WORK = st.sampled_from(["commit", "commit", "commit", "epoch", "rewrite", "shorten"])
STEPS = st.lists(st.tuples(st.integers(0, 2), WORK, st.booleans()), min_size=1, max_size=12)


class Runners:
    """Runners of one job after another; a stalled one commits when all others have had a turn."""

    def __init__(self, table):
        self.table = table
        self.logs = [Stalled(table, "app") for _ in range(3)]
        self.epochs = [1, 1, 1]
        self.newest_epoch = 1
        self.committed = {}
        self.ids = iter(range(1_000))

    def play(self, steps):
        for at, (runner, work, stalls) in enumerate(steps):
            log = self.logs[runner]
            if stalls and log.before is None and work != "shorten":
                rest = steps[at + 1 :]
                log.before = lambda rest=rest: self.play(rest)
                self.step(runner, work)
                log.before = None
                return
            self.step(runner, work)

    def step(self, runner, work):
        with suppress(SinkError, FencedError):  # nothing of it is there, as is seen at the end
            getattr(self, work)(runner, self.logs[runner])

    def epoch(self, runner, log):
        self.newest_epoch += 1
        self.epochs[runner] = self.newest_epoch
        log.commit_epoch(self.epochs[runner])

    def commit(self, runner, log):
        last = log.batches.last_batch()
        batch = 0 if last is None else last + 1
        row = next(self.ids)
        file = stage(self.table, rows_of(row), number=batch, epoch=self.epochs[runner])
        version = log.commit(batch, self.epochs[runner], [file], {"batch": batch})
        if log.versions.commit_entry(version) and log.files.files_named(version, version) == {
            file.path
        }:
            assert batch not in self.committed
            self.committed[batch] = row

    def rewrite(self, runner, log):
        files = log.files.rows_at(log.version())
        if len(files) > 1:
            tables = list(log.files.read_files([self.table / name for name in files]))
            ids = [i for each in tables for i in each.column("id").to_pylist()]
            log.rewrite(Rewrite([stage(self.table, rows_of(*ids))], list(files)), 1, {})

    def shorten(self, runner, log):
        version = log.version()
        log.upkeep.make_checkpoint(version)
        log.upkeep.remove_log_before(version)


@settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
def test_whatever_stalls_each_batch_is_there_once_or_never(tmp_path_factory, steps):
    table = tmp_path_factory.mktemp("law") / "out"
    create_table(table, SCHEMA)
    runners = Runners(table)
    runners.play(steps)
    loaded = DeltaTable(str(table))
    assert ids_in(table) == sorted(runners.committed.values())
    assert sorted(runners.committed) == list(range(len(runners.committed)))
    fresh = DeltaLog(table, "app")
    assert entries_of(table) == list(range(fresh.versions.oldest_entry(), loaded.version() + 1))
    for log in (fresh, *runners.logs):
        assert log.version() == loaded.version()
        assert log.batches.last_batch() == loaded.transaction_version("app")
        assert log.files.rows_at(log.version()) == fresh.files.rows_at(fresh.version())
