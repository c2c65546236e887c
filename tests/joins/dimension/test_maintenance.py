"""Maintenance on real tables: what is leased reads the same, whenever it is interrupted."""

import contextlib
import json
import os
import shutil
import time

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joins.adapters.delta.log import DeltaLog, create_table
from joins.dimension.build_side import read_changelog_state
from joins.dimension.index_keeper import IndexKeeper
from joins.dimension.maintenance import (
    ChangelogMaintenance,
    CurrentMaintenance,
    DimensionKey,
    LetterMaintenance,
    Orphans,
    OutputMaintenance,
    Upkeep,
    UpkeepSettings,
)
from joins.kernels.index.index import DimensionIndex, IndexSpec, stored_versions
from joins.kernels.probe.files import FileOrigin
from joins.plan.errors import FencedError, PinnedVersionExpiredError, SinkError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support.changelog import SCHEMA, Changelog, batch_of, record, stage, watermark
from tests.support.folds import shown
from tests.support.histories import KEYS, PARTITIONS, histories
from tests.support.lanes import some_of
from tests.support.laws import examples

FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("name", SqlType(TypeName.STRING)))
BY_ID = IndexSpec(("id",), ("id",), FIELDS, PARTITIONS)
EAGER = UpkeepSettings(checkpoint_every=3, min_files=2, current_retention_hours=0, grace_s=0)


class InterruptedByTestError(Exception):
    """Stands for whatever ends a runner."""


def stop_at(step):
    """Raises when the `step`-th step begins."""
    left = [step]

    def on_step(name):
        left[0] -= 1
        if left[0] < 0:
            raise InterruptedByTestError(name)

    return on_step


class Kept:
    """A changelog with its maintenance, and what each version must show."""

    def __init__(self, directory):
        self.changelog = Changelog(directory / "changelog")
        self.log = self.changelog.log
        self.index = directory / "index"
        self.rows = []
        self.shown = {0: ({}, read_changelog_state(self.log, 0))}
        self.leased = 0
        self.make()

    def make(self, on_step=lambda _: None):
        self.log = DeltaLog(self.log.path, "app")
        table = Upkeep(self.log, 1, EAGER, on_step)
        self.maintenance = ChangelogMaintenance(table, DimensionKey(("id",), PARTITIONS))

    def commit(self, *rows):
        version = self.changelog.commit(*rows)
        self.rows += rows
        self.shown[version] = (shown(self.rows, PARTITIONS), self.state(version))
        return version

    def state(self, version):
        return read_changelog_state(self.log, version)

    def names(self, version):
        keeper = IndexKeeper(self.index, (BY_ID,), self.log)
        shutil.rmtree(self.index, ignore_errors=True)
        keeper.restore(version)
        return names(self.index, version)

    def run(self, leased=None, folded=None):
        newest = self.log.version()
        self.leased = newest if leased is None else leased
        self.maintenance.run(self.leased, newest if folded is None else folded)

    def run_twice(self):
        """The second time, what the first one replaced is leased no more."""
        for _ in range(2):
            self.run()

    def check(self):
        for version in range(self.leased, self.log.version() + 1):
            made_by = max(at for at in self.shown if at <= version)  # maintenance changes nothing
            assert (self.names(version), self.state(version)) == self.shown[made_by], version

    def files(self):
        return {path.name for path in self.log.path.glob("*.parquet")}


def names(place, version):
    index = DimensionIndex.attach(place, version, BY_ID)
    found, rows = index.lookup([pa.array(range(KEYS))])
    return dict(zip(found.tolist(), index.take(rows, ["name"]).column(0).to_pylist(), strict=True))


@pytest.fixture
def kept(tmp_path):
    return Kept(tmp_path)


def filled(kept, updates=12):
    kept.commit(record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1), watermark(2))
    kept.commit(watermark(0, partition=1))
    for at in range(updates):
        kept.commit(record("u", 1, 9 + at, 3 + at))
    return kept.log.version()


# Compaction
# ----------------------------------------------------------------------------------------------


@settings(
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(commits=histories, data=st.data())
def test_leased_versions_are_the_same_before_and_after_maintenance(tmp_path, commits, data):
    shutil.rmtree(tmp_path, ignore_errors=True)
    kept = Kept(tmp_path)
    for commit in commits:
        kept.commit(*commit)
        if data.draw(st.integers(0, 3)) == 0:
            newest = kept.log.version()
            leased = data.draw(st.integers(kept.leased, newest))
            kept.make(stop_at(data.draw(st.integers(0, 20))))
            with contextlib.suppress(InterruptedByTestError):
                kept.run(leased, data.draw(st.integers(0, newest)))
            kept.make()
            kept.run(leased, leased)
    kept.check()
    kept.run()
    kept.check()


def test_superseded_rows_and_small_files_go(kept):
    before = filled(kept)
    kept.run()
    after = kept.log.version()
    assert after == before + 1
    assert len(kept.log.files.files_at(after)) == 1
    kept.check()
    assert kept.log.files.rows_at(after)[next(iter(kept.log.files.rows_at(after)))] == 4
    kept.run()
    assert kept.log.version() == after


def test_files_go_when_no_lease_needs_them(kept):
    filled(kept)
    kept.run(leased=5)
    held = kept.files()
    assert {path.name for path in kept.log.files.files_at(5)} <= held
    kept.check()
    kept.run()
    kept.run()
    assert kept.files() == {path.name for path in kept.log.files.files_at(kept.log.version())}
    kept.check()


def test_rows_behind_the_fold_stay_as_they_are(kept):
    newest = filled(kept)
    kept.run(leased=newest - 1, folded=4)
    last = kept.log.version()
    assert len(kept.log.files.files_added(5, last)) == newest - 4
    assert kept.log.files.read_commit(newest).column("_pos").to_pylist() == [20]
    assert kept.log.files.read_commit(last).num_rows == 0
    kept.check()


def test_without_leases_nothing_is_removed(kept):
    filled(kept)
    before = kept.files()
    kept.maintenance.run(None, None)
    kept.maintenance.run(None, 7)
    assert kept.files() == before
    assert kept.log.versions.oldest_entry() == 0
    kept.check()


def test_a_large_file_waits_until_the_small_ones_are_worth_it(kept, tmp_path):
    rows = [record("r", at, 5, at, row=-1) for at in range(20_000)]
    kept.changelog.commit(*rows)
    for at in range(4):
        kept.changelog.commit(record("u", 1, 9 + at, 20_000 + at))
    kept.run()
    assert sorted(kept.log.files.rows_at(kept.log.version()).values()) == [1, 20_000]
    small = UpkeepSettings(checkpoint_every=100, min_files=2, max_rows=100)
    limited = ChangelogMaintenance(Upkeep(kept.log, 1, small), DimensionKey(("id",), PARTITIONS))
    for at in range(9):
        kept.changelog.commit(*[record("u", i, 20 + at, 30_000) for i in range(30)])
    limited.run(kept.log.version(), kept.log.version())
    assert max(kept.log.files.rows_at(kept.log.version()).values()) == 20_000


STEPS = range(20)


def filled_and_staged(directory):
    """It has a file, too, that a runner has left behind."""
    kept = Kept(directory)
    filled(kept)
    stage(kept.log.path, batch_of([record("u", 1, 99, 99)]))
    return kept


@pytest.fixture(scope="module")
def files_in_the_end(tmp_path_factory):
    kept = filled_and_staged(tmp_path_factory.mktemp("whole"))
    kept.run_twice()
    return len(kept.files())


@pytest.mark.parametrize("step", some_of(STEPS, *STEPS[::6]))
def test_after_a_crash_at_any_step_the_next_run_ends_at_the_same(tmp_path, files_in_the_end, step):
    kept = filled_and_staged(tmp_path)
    kept.make(stop_at(step))
    with pytest.raises(InterruptedByTestError):
        kept.run_twice()
    kept.check()
    kept.make()
    kept.run_twice()
    kept.check()
    assert len(kept.files()) == files_in_the_end
    kept.commit(record("u", 1, 200, 200))
    kept.check()


def test_a_runner_that_was_taken_over_changes_nothing(kept):
    filled(kept)
    DeltaLog(kept.log.path, "app").commit_epoch(2)
    before = kept.files(), sorted(os.listdir(kept.log.path / "_delta_log"))
    with pytest.raises(FencedError):
        kept.run()
    version = kept.log.version()
    left = {path.name for path in kept.log.files.files_at(version)}
    assert left <= kept.files()
    assert sorted(os.listdir(kept.log.path / "_delta_log")) == before[1]
    with pytest.raises(FencedError):
        Upkeep(kept.log, 1).remove(sorted(before[0]))
    assert kept.files() >= before[0]


# The log
# ----------------------------------------------------------------------------------------------


def test_the_log_is_shortened_to_a_checkpoint_that_no_lease_is_older_than(kept):
    newest = filled(kept)
    kept.run(leased=8)
    assert kept.log.versions.oldest_version() == 8
    with pytest.raises(SinkError, match="version 7"):
        kept.log.files.files_at(7)
    kept.check()
    reopened = DeltaLog(kept.log.path, "app")
    assert (reopened.batches.last_batch(), reopened.version()) == (newest - 1, newest + 1)
    with pytest.raises(SinkError, match="commit 1 "):
        reopened.files.files_added(1, newest)


def test_batches_are_found_as_long_as_the_log_has_them(kept):
    newest = filled(kept)
    assert [kept.log.batches.version_of(batch) for batch in range(newest)] == list(
        range(1, newest + 1)
    )
    assert kept.log.batches.version_of(newest) is None
    kept.run(leased=8)
    assert kept.log.batches.batch_metadata(newest - 1) == {"batch": newest - 1}
    assert kept.log.batches.batch_metadata(0) is None


def test_the_index_goes_on_across_a_maintenance_commit_and_a_shortened_log(kept, tmp_path):
    filled(kept)
    keeper = IndexKeeper(tmp_path / "index", (BY_ID,), kept.log)
    keeper.prepare(3)
    kept.run(leased=3)
    keeper.prepare(kept.log.version())
    assert names(tmp_path / "index", kept.log.version()) == {1: "u20", 2: "r5"}
    behind = IndexKeeper(tmp_path / "behind", (BY_ID,), kept.log)
    behind.prepare(3)
    for at in range(4):
        kept.commit(record("u", 2, 40 + at, 40 + at))
    kept.run()
    newest = kept.commit(record("u", 1, 60, 60))
    for each, place in ((keeper, "index"), (behind, "behind")):
        each.prepare(newest)
        assert names(tmp_path / place, newest) == {1: "u60", 2: "u43"}
    assert stored_versions(tmp_path / "behind", BY_ID) == (3, newest)


def test_a_pinned_version_that_is_gone_is_an_error_of_its_own(kept, tmp_path):
    newest = filled(kept)
    keeper = IndexKeeper(tmp_path / "index", (BY_ID,), kept.log)
    kept.run(leased=8)
    with pytest.raises(PinnedVersionExpiredError, match="version 5"):
        keeper.restore(5)
    assert keeper.oldest_available(5) == 8
    assert keeper.oldest_available(10) == 10
    keeper.restore(8)
    kept.log.files.files_added(8, 8)[0].unlink()
    with pytest.raises(PinnedVersionExpiredError, match="version 10"):
        keeper.restore(10)
    assert keeper.oldest_available(8) == newest + 1


def test_other_readers_of_delta_see_the_table(kept):
    newest = filled(kept)
    kept.run(leased=8)
    for version in range(8, newest + 2):
        table = DeltaTable(str(kept.log.path), version=version)
        rows = table.to_pyarrow_table().num_rows
        assert rows == sum(kept.log.files.rows_at(version).values())
    told = [
        json.loads(line)
        for line in kept.log.versions.entries.path(newest + 1).read_text().splitlines()
    ]
    changed = [a[k]["dataChange"] for a in told for k in ("add", "remove") if k in a]
    assert changed == [False] * (newest + 1)


# Orphans
# ----------------------------------------------------------------------------------------------


def test_uncommitted_files_go_when_nobody_will_commit_them(kept):
    newest = filled(kept)
    rows = batch_of([record("u", 1, 99, 99)])
    root = kept.log.path
    gone = [
        stage(root, rows, number=n, epoch=e).path for n, e in ((0, 1), (newest - 1, 1), (99, 0))
    ]
    left = [stage(root, rows, number=n, epoch=e).path for n, e in ((newest, 1), (0, 2))]
    (root / "mine.parquet").write_bytes(b"a user's")
    kept.run()
    assert not kept.files() & set(gone)
    assert {*left, "mine.parquet"} <= kept.files()


@pytest.fixture
def output(tmp_path):
    create_table(tmp_path / "out", SCHEMA)
    return DeltaLog(tmp_path / "out", "app")


def test_an_output_keeps_all_that_was_ever_committed(output):
    rows = batch_of([record("u", 1, 99, 99)])
    root = output.path
    tag = output.shared.writer
    kept = [stage(root, rows, number=n, epoch=2, writer=tag) for n in range(6)]
    for batch, file in enumerate(kept):
        output.commit(batch, 2, [file], {})
    output.retract(5, 2)
    DeltaTable(str(root)).optimize.compact()
    replay = stage(root, rows, number=0, epoch=2, writer=tag)
    DeltaLog(root, "app:replay").commit(0, 2, [replay], {})
    numbers = ((3, 2), (40, 1), (9_000_000_001, 1))  # the last one of a replay
    orphans = [stage(root, rows, number=n, epoch=e, writer=tag).path for n, e in numbers]
    running = [stage(root, rows, number=n, epoch=2, writer=tag).path for n in (6, 7)]
    running.append(stage(root, rows, number=3, epoch=1).path)  # of nobody knows whom
    before = {path.name for path in root.glob("*.parquet")}
    maintenance = OutputMaintenance(Upkeep(output, 2, EAGER))
    log_before = output.versions.oldest_entry()
    for _ in range(2):
        maintenance.run()
        assert before - {path.name for path in root.glob("*.parquet")} == set(orphans)
    assert set(running) < before
    assert output.versions.oldest_entry() == log_before == 0
    assert output.upkeep.checkpoints() == [output.version()]


def test_a_young_file_of_this_runner_in_an_output_stays(output):
    output.commit(4, 2, [], {})
    rows = batch_of([record("u", 1, 99, 99)])
    young = stage(output.path, rows, number=1, epoch=2, writer=output.shared.writer)
    patient = UpkeepSettings(grace_s=60)
    OutputMaintenance(Upkeep(output, 2, patient)).run()
    assert (output.path / young.path).exists()
    old = time.time() - 61
    os.utime(output.path / young.path, (old, old))
    OutputMaintenance(Upkeep(output, 2, patient)).run()
    assert not (output.path / young.path).exists()


class Slow(DeltaLog):
    """A log that lets others work between its check of the staged files and its commit."""

    def __init__(self, path, app_id, meanwhile):
        super().__init__(path, app_id)
        self.meanwhile = meanwhile
        self.write, self.writer.write = self.writer.write, self.write_late

    def write_late(self, table, commit):
        self.meanwhile()
        return self.write(table, commit)


@pytest.mark.parametrize("other", ["sluice:b:1", "sluice:a:1:insert-2"], ids=["job", "insert"])
@pytest.mark.parametrize("epoch", [1, 9], ids=["older_epoch", "newer_epoch"])
def test_upkeep_of_one_writer_of_an_output_leaves_what_another_has_staged(tmp_path, epoch, other):
    """Epochs and batches of two jobs say nothing of each other."""
    create_table(tmp_path / "out", SCHEMA)
    mine = DeltaLog(tmp_path / "out", "sluice:a:1")
    mine.commit(40, 5, [], {})
    upkeep = OutputMaintenance(Upkeep(mine, 5, EAGER))
    theirs = Slow(tmp_path / "out", other, upkeep.run)
    rows = batch_of([record("u", 1, 99, 99)])
    for batch in range(3):
        with theirs.shared.stage(SCHEMA, FileOrigin(epoch, batch, 0, 0)) as staging:
            staging.write(rows)
            staged = staging.finish()
        upkeep.run()
        theirs.commit(batch, epoch, [staged], {})
        upkeep.run()
    assert DeltaTable(str(tmp_path / "out")).to_pyarrow_table().num_rows == 3


# Dead letters
# ----------------------------------------------------------------------------------------------


def letters_of(log, batches):
    """Commits batches, every third one with a file of letters; batch → file."""
    rows, files = batch_of([record("u", 1, 99, 99)]), {}
    for batch in batches:
        staged = [stage(log.path, rows, number=batch, epoch=2)] if batch % 3 == 0 else []
        log.commit(batch, 2, staged, {"batch": batch})
        if staged:
            files[batch] = staged[0].path
    return files


def test_the_log_of_dead_letters_begins_at_the_oldest_kept_pin_and_all_letters_stay(output):
    files = letters_of(output, range(20))
    output.retract(18, 2)
    maintenance = LetterMaintenance(Upkeep(output, 2, EAGER))
    maintenance.run_behind(None)
    assert output.versions.oldest_entry() == 0
    maintenance.run_behind(12)
    assert (output.batches.version_of(12), output.versions.oldest_entry()) == (13, 13)
    assert [output.batches.batch_metadata(batch) for batch in (11, 12)] == [None, {"batch": 12}]
    assert {path.name for path in output.path.glob("*.parquet")} == set(files.values())
    again = DeltaLog(output.path, "app")
    assert (again.batches.last_batch(), len(again.files.files_at(again.version()))) == (19, 6)
    letters_of(output, range(20, 30))
    maintenance.run_behind(25)
    assert output.batches.version_of(25) == output.versions.oldest_entry() == 27
    assert DeltaTable(str(output.path)).to_pyarrow_table().num_rows == 9


def test_files_that_are_no_letters_go_also_behind_a_shortened_log(output):
    files = letters_of(output, range(12))
    for batch in (3, 9):
        output.retract(batch, 2)
    rows = batch_of([record("u", 1, 99, 99)])
    orphan, running = (stage(output.path, rows, number=n, epoch=2).path for n in (4, 12))
    LetterMaintenance(Upkeep(output, 2, EAGER)).run_behind(8)
    found = {path.name for path in output.path.glob("*.parquet")}
    assert found == {files[0], files[6], files[9], running}  # the commit of batch 9 is there
    assert orphan not in found


@pytest.mark.parametrize("step", range(6))
def test_upkeep_of_dead_letters_may_end_anywhere(tmp_path, step):
    create_table(tmp_path / "letters", SCHEMA)
    log = DeltaLog(tmp_path / "letters", "app")
    files = letters_of(log, range(9))
    with contextlib.suppress(InterruptedByTestError):
        LetterMaintenance(Upkeep(log, 2, EAGER, stop_at(step))).run_behind(7)
    assert DeltaLog(log.path, "app").batches.newest_batch(8) == (9, 8)
    LetterMaintenance(Upkeep(log, 2, EAGER)).run_behind(7)
    assert (log.versions.oldest_entry(), log.batches.last_batch()) == (8, 8)
    assert {path.name for path in log.files.files_at(log.version())} == set(files.values())


# `current`
# ----------------------------------------------------------------------------------------------


def test_current_keeps_what_is_younger_than_its_retention(tmp_path):
    create_table(tmp_path / "current", SCHEMA)
    current = DeltaLog(tmp_path / "current", "app:current")
    batch = batch_of([record("u", 1, 99, 99)])
    for version in range(8):
        current.commit(version, 1, [stage(current.path, batch)], {"sluice.changelog_version": 1})
    DeltaTable(str(current.path)).optimize.compact()
    CurrentMaintenance(Upkeep(current, 1, UpkeepSettings(checkpoint_every=3))).run()
    assert (len(list(current.path.glob("*.parquet"))), current.versions.oldest_entry()) == (9, 0)
    CurrentMaintenance(Upkeep(current, 1, EAGER)).run()
    assert len(list(current.path.glob("*.parquet"))) == 1
    assert current.versions.oldest_entry() > 0
    assert DeltaLog(current.path, "app:current").batches.last_batch() == 7
    assert DeltaTable(str(current.path)).to_pyarrow_table().num_rows == 8


# Bounds
# ----------------------------------------------------------------------------------------------


def test_a_large_directory_is_listed_seldom_and_a_small_one_each_time(output):
    asked: list[int] = []

    def needed():
        asked.append(1)
        return set()

    orphans = Orphans(Upkeep(output, 2, EAGER))
    for _ in range(2):
        orphans.find(None, needed)
    assert len(asked) == 2
    for number in range(1_100):
        (output.path / FileOrigin(1, number, 0, 0).file_name()).touch()
    assert len(orphans.find(None, needed)) == 1_100
    assert orphans.find(None, needed) == {}
    assert len(asked) == 3, "not before 22 s have passed"


def test_upkeep_of_an_output_keeps_no_names_but_of_files_that_are_not_in_the_table(output):
    rows = batch_of([record("u", 1, 99, 99)])
    maintenance = OutputMaintenance(Upkeep(output, 2, EAGER))
    for batch in range(5):
        output.commit(batch, 2, [stage(output.path, rows, number=batch, epoch=2)], {})
        maintenance.run()
    assert maintenance._committed == set()
