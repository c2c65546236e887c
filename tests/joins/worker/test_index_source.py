"""Whatever an index is made from, it shows the rows that the whole changelog says."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from joins.adapters.delta.log import DeltaLog
from joins.dimension.maintenance import ChangelogMaintenance, DimensionKey, Upkeep, UpkeepSettings
from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.digest import ChangelogDigest, ChangelogState
from joins.kernels.index.index import (
    DimensionIndex,
    FoldedRows,
    IndexSpec,
    advance,
    build,
    stored_versions,
)
from joins.plan.errors import IndexBuildError, PinnedVersionExpiredError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from joins.worker.index_source import DimensionTables, IndexSource, newest_fold
from tests.support.changelog import Changelog, batch_of, record, watermark
from tests.support.folds import Current, can_fold, shown, state_of, visible
from tests.support.histories import KEYS, PARTITIONS, copied_histories, histories
from tests.support.laws import examples

FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("name", SqlType(TypeName.STRING)))
BY_ID = IndexSpec(("id",), ("id",), FIELDS, PARTITIONS)
BY_NAME = IndexSpec(("id",), ("name",), FIELDS, PARTITIONS)
EAGER = UpkeepSettings(checkpoint_every=3, min_files=2, current_retention_hours=0)


def names(directory: Path, version: int) -> dict[int, str]:
    """id → name of what an index shows."""
    index = DimensionIndex.attach(directory, version, BY_ID)
    found, rows = index.lookup([pa.array(range(KEYS))])
    assert index.num_rows == len(found) == len(set(found.tolist()))
    return dict(zip(found.tolist(), index.take(rows, ["name"]).column(0).to_pylist(), strict=True))


# The kernel: a fold and what came after it
# ------------------------------------------------------------------------------------------------


def folded(rows):
    state = state_of(rows)
    marks = {(p, generation): offset for p, (generation, offset) in state.marks.items()}
    return FoldedRows([batch_of(visible(rows, PARTITIONS))], Progress(marks, state.high_water))


def as_committed(commits):
    """`commits` as the build side commits them: without what it has seen before."""
    state, kept = ChangelogState(), []
    for commit in commits:
        digest = ChangelogDigest(state.high_water)
        kept.append(digest.take(batch_of(commit)).to_pylist())
        state = digest.state_after(state)
    return kept


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("indexes")


def split(commits, data):
    """The rows up to a commit that can be folded, and the commits after it; None: there is none."""
    found = [
        at
        for at in range(1, len(commits) + 1)
        if can_fold([row for commit in commits[:at] for row in commit], PARTITIONS)
    ]
    if not found:
        return None
    at = data.draw(st.sampled_from(found))
    return [row for commit in commits[:at] for row in commit], commits[at:]


@pytest.fixture(params=[0, 4], ids=["never_merged", "merged"])
def merging(request, monkeypatch):
    monkeypatch.setattr("joins.kernels.index.index._MERGE_FACTOR", request.param)


@settings(
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(commits=copied_histories, data=st.data())
@pytest.mark.usefixtures("merging")
def test_a_fold_and_the_commits_after_it_show_what_all_commits_show(scratch, commits, data):
    parts = split(as_committed(commits), data)
    if parts is None:
        return
    old, new = parts
    behind = data.draw(st.integers(0, len(new)))
    shutil.rmtree(scratch, ignore_errors=True)
    tail = [row for commit in new[:behind] for row in commit]
    build(scratch, 0, BY_ID, [batch_of(tail)], fold=folded(old))
    assert names(scratch, 0) == shown(old + tail, PARTITIONS)
    for version, commit in enumerate(new[behind:], start=1):
        advance(scratch, version - 1, version, BY_ID, [batch_of(commit)])
        tail += commit
        assert names(scratch, version) == shown(old + tail, PARTITIONS)


@settings(max_examples=examples(150))
@given(commits=histories, data=st.data())
def test_what_a_fold_cannot_tell_is_never_guessed(scratch, commits, data):
    """Repeats and copies whose positions go back: right, or refused."""
    parts = split(commits, data)
    if parts is None:
        return
    old, new = parts
    tail = [row for commit in new for row in commit]
    streamed = [row for row in old if row["_op"] in "cud"]
    for row in data.draw(st.lists(st.sampled_from(streamed), max_size=3)) if streamed else ():
        tail.append(row | {"_offset": 1000 + len(tail)})
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        build(scratch, 0, BY_ID, [batch_of(tail)], fold=folded(old))
    except IndexBuildError:
        floor = state_of(old).high_water
        assert any(
            (row["_epoch"], row["_file"], row["_pos"], row["_row"]) <= floor[row["_partition"]]
            for row in tail
            if row["_op"] != "w" and row["_partition"] in floor
        )
    else:
        assert names(scratch, 0) == shown(old + tail, PARTITIONS)


COPY = (record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1), watermark(2))
BOTH = (*COPY, watermark(0, partition=1))
DELETED = (*BOTH, record("d", 2, 9, 3))
NEW = {"generation": 2, "epoch": 1}

TAILS = {
    "nothing": (DELETED, [], {1: "r5"}),
    "a_change": (DELETED, [record("u", 1, 11, 4)], {1: "u11"}),
    "a_zombie's_row_of_a_deleted_key": (DELETED, [record("r", 2, 5, 4, row=-1)], {1: "r5"}),
    "a_deleted_key_is_created_again": (DELETED, [record("c", 2, 12, 4)], {1: "r5", 2: "c12"}),
    "a_copy_that_is_not_complete": (
        DELETED,
        [record("r", 2, 3, 4, row=-1, **NEW), watermark(5, generation=2)],
        {1: "r5", 2: "r3"},
    ),
    "a_copy_that_is_complete": (
        DELETED,
        [
            record("r", 2, 3, 4, row=-1, **NEW),
            watermark(5, generation=2),
            watermark(1, partition=1, generation=2),
        ],
        {2: "r3"},
    ),
    "an_empty_fold": (
        (*BOTH, record("d", 2, 9, 3), record("d", 1, 10, 4)), [record("c", 3, 12, 5)], {3: "c12"},
    ),
}  # fmt: skip


@pytest.mark.usefixtures("merging")
@pytest.mark.parametrize(("old", "tail", "expected"), TAILS.values(), ids=TAILS)
def test_the_protections_of_the_changelog_hold_behind_a_fold(tmp_path, old, tail, expected):
    build(tmp_path, 0, BY_ID, [batch_of(tail)], fold=folded(list(old)))
    assert names(tmp_path, 0) == expected == shown([*old, *tail], PARTITIONS)


def test_a_repeat_of_a_deleted_key_is_refused_and_not_brought_back(tmp_path):
    repeat = [batch_of([record("u", 2, 7, 9)])]
    fold = folded(list(DELETED))
    with pytest.raises(IndexBuildError, match="not newer than the fold"):
        build(tmp_path, 0, BY_ID, repeat, fold=fold)
    assert [path.name for path in (tmp_path / BY_ID.digest).iterdir()] == ["lock"]
    build(tmp_path, 0, BY_ID, [], fold=fold)
    advance(tmp_path, 0, 1, BY_ID, [batch_of([record("u", 1, 10, 5)])])
    before = {path.name for path in (tmp_path / BY_ID.digest).iterdir()}
    with pytest.raises(IndexBuildError, match="not newer than the fold"):
        advance(tmp_path, 1, 2, BY_ID, repeat)
    assert {path.name for path in (tmp_path / BY_ID.digest).iterdir()} <= before
    assert stored_versions(tmp_path, BY_ID) == (0, 1)


# The tables
# ------------------------------------------------------------------------------------------------


class Tables:
    """A changelog, its `current`, and what each version shows."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.changelog = Changelog(directory / "changelog")
        self.current = Current(directory / "current")
        self.rows: list = []
        self.shown = {0: {}}
        self.folded = None

    def commit(self, *rows):
        version = self.changelog.commit(*rows)
        self.rows += rows
        self.shown[version] = shown(self.rows, PARTITIONS)
        return version

    def fold(self):
        if can_fold(self.rows, PARTITIONS):
            self.folded = self.changelog.log.version()
            self.current.fold(self.rows, self.folded, PARTITIONS)

    def expected(self, version):
        return self.shown[max(at for at in self.shown if at <= version)]

    def source(self):
        tables = DimensionTables(self.directory / "changelog", self.directory / "current", "app")
        return IndexSource.of(tables)

    def compact(self, leased):
        table = Upkeep(DeltaLog(self.changelog.log.path, "app"), 1, EAGER)
        maintenance = ChangelogMaintenance(table, DimensionKey(("id",), PARTITIONS))
        maintenance.run(leased, self.folded)


@pytest.fixture
def tables(tmp_path):
    return Tables(tmp_path)


def made(source, directory, version, spec=BY_ID):
    """What an index shows that is made from the tables alone, and what it was made from."""
    shutil.rmtree(directory, ignore_errors=True)
    with capture_logs() as logs:
        source.make(directory, version, spec)
    (log,) = [log for log in logs if log["event"] == "index built"]
    return names(directory, version), log["made_from"].split(",")[0]


@settings(
    max_examples=examples(12),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(commits=copied_histories, data=st.data())
def test_every_version_is_right_whatever_was_folded_compacted_and_made_before(
    tmp_path, commits, data
):
    shutil.rmtree(tmp_path, ignore_errors=True)
    tables = Tables(tmp_path)
    leased = 0
    for commit in as_committed(commits):
        tables.commit(*commit)
        what = data.draw(st.integers(0, 5))
        if what <= 1:
            tables.fold()
        if what == 1 and tables.folded is not None:
            leased = data.draw(st.integers(leased, tables.changelog.log.version()))
            tables.compact(leased)
    source, node = tables.source(), tmp_path / "node"
    for version in range(leased, tables.changelog.log.version() + 1):
        shows, made_from = made(source, tmp_path / "index", version)
        assert shows == tables.expected(version), version
        fold = newest_fold(tables.current.log, version)
        assert made_from == "fold" or fold is None or fold.changelog_version < leased
        source.make(node, version, BY_ID)  # from the one before it
        assert names(node, version) == tables.expected(version), version


def filled(tables):
    """Version 2 is folded at table version 2, version 5 at 4; then two more commits."""
    tables.commit(*BOTH)
    tables.commit(record("u", 1, 7, 3), record("d", 2, 9, 4))
    tables.fold()
    for at in range(3):
        tables.commit(record("u", 1, 11 + at, 5 + at))
    tables.fold()
    tables.commit(record("c", 3, 20, 8, partition=1))
    return tables.commit(record("u", 1, 21, 8))


def test_the_newest_fold_that_is_not_newer_is_taken(tables, tmp_path):
    newest = filled(tables)
    folds = {v: newest_fold(tables.current.log, v) for v in range(newest + 1)}
    assert {v: f and f.changelog_version for v, f in folds.items()} == {
        0: None, 1: None, 2: 2, 3: 2, 4: 2, 5: 5, 6: 5, 7: 5,
    }  # fmt: skip
    found = {v: made(tables.source(), tmp_path / "index", v) for v in range(newest + 1)}
    assert {v: shows for v, (shows, _) in found.items()} == tables.shown
    origins = [made_from for _, made_from in found.values()]
    assert origins == ["changelog", "changelog", *["fold"] * 6]


def add_deletion_vectors(tables):
    table = DeltaTable(str(tables.current.log.path))
    table.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    tables.fold()  # of a later version


CANNOT_BE_USED = {
    "current_is_gone": lambda tables: shutil.rmtree(tables.current.log.path),
    "a_file_of_it_is_gone": lambda tables: [
        f.unlink() for f in tables.current.log.files.files_at(4)
    ],
    "a_file_of_it_is_cut_off": lambda tables: [
        f.write_bytes(f.read_bytes()[:-9]) for f in tables.current.log.files.files_at(4)
    ],
    "its_commits_are_not_in_the_log": lambda tables: [
        tables.current.log.upkeep.make_checkpoint(tables.current.log.version()),
        tables.current.log.upkeep.remove_log_before(tables.current.log.version()),
        tables.current.log.versions.entries.path(tables.current.log.version()).unlink(),
    ],
    "a_commit_after_it_is_gone": lambda tables: tables.changelog.log.versions.entries.path(
        6
    ).unlink(),
    "it_has_deletion_vectors": add_deletion_vectors,
    "it_is_of_another_shape": lambda tables: Current(
        (shutil.rmtree(tables.current.log.path), tables.current.log.path)[1]
    ).log.commit(5, 1, [], {"sluice.changelog_version": 5}),
}


@pytest.mark.parametrize("damage", CANNOT_BE_USED.values(), ids=CANNOT_BE_USED)
def test_without_a_fold_that_can_be_used_the_whole_changelog_is_read(tables, tmp_path, damage):
    newest = filled(tables)
    tables.changelog.log.upkeep.make_checkpoint(newest)
    damage(tables)
    shows, made_from = made(tables.source(), tmp_path / "index", newest)
    assert (shows, made_from) == (tables.shown[newest], "changelog")


def test_an_index_is_advanced_from_one_that_is_near_else_made_from_a_nearer_fold(
    tables, tmp_path, monkeypatch
):
    newest = filled(tables)
    source = tables.source()
    source.make(tmp_path / "near", 1, BY_ID)
    source.make(tmp_path / "far", 1, BY_ID)
    with capture_logs() as logs:
        source.make(tmp_path / "near", newest, BY_ID)
        monkeypatch.setattr("joins.worker.index_source._FAR_COMMITS", 2)
        source.make(tmp_path / "far", newest, BY_ID)
    assert [log["made_from"] for log in logs] == ["fold"]
    for place in ("near", "far"):
        assert names(tmp_path / place, newest) == tables.shown[newest]


def test_a_version_whose_tables_are_gone_is_an_error_of_the_pin(tables, tmp_path):
    newest = filled(tables)
    for path in tables.changelog.log.files.files_at(newest):
        path.unlink()
    with pytest.raises(PinnedVersionExpiredError, match=f"version {newest}"):
        tables.source().remake(tmp_path / "index", newest, BY_ID)
