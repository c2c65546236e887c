"""A dimension's tables in an object store: indexed, compacted, cleaned up and folded there."""

import pytest

from joins.adapters.delta.log import DeltaLog, FileActions
from joins.dimension.fold import Fold
from joins.dimension.fold_files import FoldFiles
from joins.dimension.index_keeper import IndexKeeper
from joins.dimension.maintenance import (
    ChangelogMaintenance,
    CurrentMaintenance,
    DimensionKey,
    OutputMaintenance,
    Upkeep,
    UpkeepSettings,
)
from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.fold_rows import FoldTask
from joins.kernels.index.index import DimensionIndex, IndexSpec
from joins.kernels.probe.files import FileOrigin
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from joins.worker.index_source import fold_metadata
from tests.support.changelog import SCHEMA, Changelog, batch_of, record, stage, watermark
from tests.support.folds import state_of

FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("name", SqlType(TypeName.STRING)))
BY_ID = IndexSpec(("id",), ("id",), FIELDS, 1)
EAGER = UpkeepSettings(checkpoint_every=3, min_files=2, current_retention_hours=0, grace_s=0)
SNAPSHOT = [record("r", 1, 1, 0), record("r", 2, 2, 1), watermark(2)]
CHANGES = [record("u", 1, 10, 3), record("c", 3, 11, 4), record("d", 2, 12, 5)]


@pytest.fixture
def changelog(store, request) -> Changelog:
    return Changelog(store.path(f"{request.node.name}/changelog"))


def names(directory, log, version):
    IndexKeeper(directory, (BY_ID,), log).restore(version)
    index = DimensionIndex.attach(directory, version, BY_ID)
    ids, at = index.lookup([batch_of([record("r", i, 0, 0) for i in range(5)]).column("id")])
    return dict(zip(ids.tolist(), index.take(at, ["name"]).column(0).to_pylist(), strict=True))


def test_what_an_index_shows_stays_over_compaction_and_clean_up(changelog, tmp_path):
    changelog.commit(*SNAPSHOT)
    for change in CHANGES:
        version = changelog.commit(change)
    before = names(tmp_path / "before", changelog.log, version)
    assert before == {1: "u10", 3: "c11"}
    table = Upkeep(changelog.log, 1, EAGER)
    maintenance = ChangelogMaintenance(table, DimensionKey(("id",), 1))
    for _ in range(2):
        newest = changelog.log.version()
        maintenance.run(newest, newest)
    root = changelog.log.path
    assert len([each for each in root.iterdir() if each.name.endswith(".parquet")]) == 1
    log = DeltaLog(root, "app")
    assert log.versions.oldest_entry() > 0
    assert names(tmp_path / "after", log, log.version()) == before


def test_a_fold_of_another_process_replaces_what_has_changed(changelog, store):
    path = changelog.log.path.parent / "current"
    Fold.create(path, SCHEMA)
    current = DeltaLog(path, "app:current")

    def fold(first: int, version: int, rows: list) -> None:
        files = changelog.log.files.files_added(first, version)
        paths = sorted(current.files.rows_at(current.version()))
        held = [path / each for each in paths]
        task = FoldTask(files, ("id",), Progress({(0, 1): 2}), 1, held)
        work = FoldFiles(task, path, FileOrigin(1, version, 0, 0))
        staged = FoldFiles.from_json(work.to_json()).write()
        gone = [paths[at] for at in staged.rewritten]
        change = FileActions(staged.added, gone, changed=staged.changed)
        current.commit_change(version, 1, change, fold_metadata(version, state_of(rows)))

    first = changelog.commit(*SNAPSHOT)
    fold(1, first, SNAPSHOT)
    second = changelog.commit(*CHANGES)
    fold(first + 1, second, [*SNAPSHOT, *CHANGES])
    files = current.files.read_files(current.files.files_at(current.version()))
    rows = [row for each in files for row in each.to_pylist()]
    assert sorted((row["id"], row["name"]) for row in rows) == [(1, "u10"), (3, "c11")]
    CurrentMaintenance(Upkeep(current, 1, EAGER)).run()
    assert len(current.files.files_at(current.version())) == 1


def test_files_of_an_older_runner_that_were_never_committed_go(changelog):
    log = DeltaLog(changelog.log.path, "app")
    kept = changelog.commit(*SNAPSHOT)
    writer = log.shared.writer
    orphan = stage(log.path, batch_of(CHANGES), number=7, epoch=1, writer=writer)
    foreign = stage(log.path, batch_of(CHANGES), number=7, epoch=1, writer="0" * 16)
    log.commit_epoch(2)
    OutputMaintenance(Upkeep(log, 2, EAGER)).run()
    assert not (log.path / orphan.path).exists()
    assert (log.path / foreign.path).exists()
    assert log.version() == kept + 1
