"""A shared table as a job reads it: the state is that of the job that commits, commit by commit."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.delta.log import DeltaLog
from joins.dimension.build_side import BuildHooks
from joins.dimension.dimension import DimensionPlaces
from joins.dimension.followed import CommitReader, FollowedDimension
from joins.dimension.maintenance import (
    ChangelogMaintenance,
    DimensionKey,
    Upkeep,
    UpkeepSettings,
)
from joins.durable.failpoints import Failpoints
from joins.durable.leases import Lease, oldest_attached
from joins.kernels.changelog.digest import ChangelogDigest, ChangelogState
from joins.loop import BatchTurns, LoopGuards
from joins.plan.plan import Dimension, Field, SharedSource
from joins.plan.types import SqlType, TypeName
from tests.support.changelog import Changelog, batch_of, record, watermark
from tests.support.folds import Current
from tests.support.histories import PARTITIONS, histories
from tests.support.laws import examples
from watermark.model import PROCESSING_TIME

USERS = Dimension(
    "users",
    SharedSource("0199", "users", PARTITIONS),
    (Field("id", SqlType(TypeName.BIGINT), nullable=False),),
    ("id",),
)
EAGER = UpkeepSettings(checkpoint_every=3, min_files=2)


class Reader:
    """A job's view of the changelog below `root`, its lease, and what it told the valve."""

    def __init__(self, root: Path, name: str = "reader") -> None:
        places = DimensionPlaces(
            "t", PARTITIONS, root / "changelog", root / "current", root / name, (), root / "spark"
        )
        self.told = []
        self.lease = Lease(root / "leases" / f"{name}.json")
        self.dimension = FollowedDimension(
            USERS,
            places,
            self.lease,
            app_id="app",
            on_watermark=lambda _, partition, mark: self.told.append((partition, mark)),
        )
        self.dimension.open()
        hooks = BuildHooks(
            state=lambda: self.dimension.state,
            on_start=self.dimension._look_again,
            on_commit=self.dimension._committed,
            rest=lambda: None,
            guards=LoopGuards(Failpoints(), BatchTurns(), lambda _: None),
            freshness=self.dimension.freshness,
        )
        log, version = self.dimension.changelog, lambda: self.dimension.version
        self.steps = CommitReader(log, PARTITIONS, version, hooks)


def _changelog(root: Path) -> Changelog:
    made = Changelog(root / "changelog")
    made.log = DeltaLog(root / "changelog", "app:users")
    return made


def _state(commits) -> ChangelogState:
    """What the job that commits says after these commits."""
    state = ChangelogState()
    for rows in commits:
        digest = ChangelogDigest(state.high_water)
        digest.count(batch_of(rows))
        state = digest.state_after(state)
    return state


@settings(
    max_examples=examples(120),
)
@given(histories, st.lists(st.sampled_from(["read", "keep house", "nothing"]), max_size=40))
def test_whenever_it_reads_its_state_is_that_of_the_commits(commits, moments):
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        changelog, reader, done = _changelog(root), Reader(root), []
        for number, rows in enumerate(commits):
            version = changelog.commit(*rows)
            done.append(rows)
            moment = moments[number] if number < len(moments) else "nothing"
            if moment == "keep house":
                _keep_house(changelog, root, version)
            if moment == "read":
                _check_read(reader, _state(done))
        _check_read(reader, _state(done))


def _keep_house(changelog: Changelog, root: Path, newest: int) -> None:
    held = oldest_attached(root / "leases")
    assert held is not None
    upkeep = Upkeep(changelog.log, 1, EAGER)
    ChangelogMaintenance(upkeep, DimensionKey(("id",), PARTITIONS)).run(min(held, newest), newest)


def _check_read(reader: Reader, expected: ChangelogState) -> None:
    reader.steps.step()
    dimension = reader.dimension
    assert dimension.state == expected
    complete = {p for p in range(PARTITIONS) if expected.is_complete(p)}
    newest = dict(reader.told)
    assert {p for p, mark in newest.items() if mark == PROCESSING_TIME} == complete
    dimension.keep(None)
    assert reader.steps.step() is False, "nothing is read twice"


def test_before_the_table_is_begun_there_is_nothing_to_read(tmp_path):
    reader = Reader(tmp_path)
    assert reader.steps.step() is False
    reader.steps.recover()
    assert not reader.dimension.complete
    changelog = _changelog(tmp_path)
    changelog.commit(record("r", 1, 10, 0), watermark(1), watermark(0, partition=1))
    assert reader.steps.step() is True
    assert reader.dimension.complete
    assert reader.told == [(0, PROCESSING_TIME), (1, PROCESSING_TIME)]


def test_a_new_copy_voids_the_watermarks_until_it_is_complete(tmp_path):
    changelog, reader = _changelog(tmp_path), Reader(tmp_path)
    changelog.commit(record("r", 1, 10, 0), watermark(1), watermark(0, partition=1))
    reader.steps.step()
    reader.told.clear()
    changelog.commit(record("r", 1, 10, 2, generation=2))
    reader.steps.step()
    assert reader.told == [(0, None), (1, None)]
    changelog.commit(watermark(3, generation=2), watermark(1, partition=1, generation=2))
    reader.steps.step()
    assert reader.told[2:] == [(0, PROCESSING_TIME), (1, PROCESSING_TIME)]


def test_what_was_cleaned_up_behind_it_is_read_from_the_newest_version(tmp_path):
    changelog, reader = _changelog(tmp_path), Reader(tmp_path)
    changelog.commit(record("r", 1, 10, 0))
    reader.steps.step()
    for number in range(12):
        version = changelog.commit(record("u", 1, 20 + number, 1 + number))
    version = changelog.commit(watermark(13), watermark(0, partition=1))
    for _ in range(2):
        upkeep = Upkeep(changelog.log, 1, EAGER)
        ChangelogMaintenance(upkeep, DimensionKey(("id",), PARTITIONS)).run(version, version)
    assert changelog.log.versions.oldest_entry() > 2, "its next commit is gone"
    reader.steps.step()
    assert reader.dimension.complete
    assert reader.dimension.version == changelog.log.version()


def test_a_fold_of_the_other_job_is_seen(tmp_path):
    changelog, reader = _changelog(tmp_path), Reader(tmp_path)
    rows = [record("r", 1, 10, 0), watermark(1), watermark(0, partition=1)]
    version = changelog.commit(*rows)
    reader.steps.step()
    assert reader.dimension.fold(None, None) is None
    current = Current(tmp_path / "current")
    current.log = DeltaLog(tmp_path / "current", "app:users:current")
    current.fold(rows, version, PARTITIONS)
    assert reader.dimension.fold(None, None) == version
