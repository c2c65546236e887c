"""The keeper: the index of the newest version, built once, advanced by each commit."""

import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from joins.adapters.delta.log import DeltaLog
from joins.dimension import index_keeper
from joins.dimension.index_keeper import IndexKeeper
from joins.kernels.index.index import DimensionIndex, IndexSpec, stored_versions
from joins.plan.errors import IndexDiskFullError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support.beside import at_once
from tests.support.changelog import Changelog, record, watermark
from tests.support.disk import largest_file

ROOT = Path(__file__).parents[3]
FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("name", SqlType(TypeName.STRING)))
BY_ID = IndexSpec(primary_key=("id",), join_key=("id",), fields=FIELDS, partitions=1)
BY_NAME = IndexSpec(primary_key=("id",), join_key=("name",), fields=FIELDS, partitions=1)


@pytest.fixture
def changelog(tmp_path):
    return Changelog(tmp_path / "changelog")


@pytest.fixture
def place(tmp_path):
    return tmp_path / "index"


def names(place, version):
    """id → name of the ids 1 to 4 at `version`."""
    index = DimensionIndex.attach(place, version, BY_ID)
    found, rows = index.lookup([pa.array([1, 2, 3, 4])])
    taken = index.take(rows, ["name"]).column(0).to_pylist()
    return {int(at) + 1: name for at, name in zip(found, taken, strict=True)}


def filled(changelog):
    """A snapshot of two rows, then three commits, one of them empty."""
    changelog.commit(record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1), watermark(2))
    changelog.commit(record("u", 1, 9, 3))
    changelog.commit()
    return changelog.commit(record("d", 2, 12, 4), record("c", 3, 13, 5))


def test_nothing_is_ready_before_the_first_build(changelog, place):
    assert IndexKeeper(place, (BY_ID,), changelog.log).ready_version is None


def test_an_empty_dimension_can_be_looked_up(changelog, place):
    keeper = IndexKeeper(place, (BY_ID,), changelog.log)
    keeper.prepare(0)
    assert (keeper.ready_version, names(place, 0)) == (0, {})


def test_building_at_once_and_advancing_commit_by_commit_answer_the_same(changelog, tmp_path):
    version = filled(changelog)
    stepwise = IndexKeeper(tmp_path / "a", (BY_ID, BY_NAME), changelog.log)
    for each in range(version + 1):
        stepwise.prepare(each)
        assert stepwise.ready_version == each
    at_once = IndexKeeper(tmp_path / "b", (BY_ID, BY_NAME), changelog.log)
    at_once.prepare(version)
    skipping = IndexKeeper(tmp_path / "c", (BY_ID, BY_NAME), changelog.log)
    skipping.prepare(1)
    skipping.prepare(version)
    for place in "abc":
        assert names(tmp_path / place, version) == {1: "u9", 3: "c13"}
    assert names(tmp_path / "a", 1) == {1: "r5", 2: "r5"}
    assert names(tmp_path / "a", 3) == {1: "u9", 2: "r5"}


def test_a_ready_version_never_goes_back(changelog, place):
    version = filled(changelog)
    keeper = IndexKeeper(place, (BY_ID,), changelog.log)
    keeper.prepare(version)
    keeper.prepare(1)
    assert keeper.ready_version == version
    assert stored_versions(place, BY_ID) == (version,)


def test_a_restart_goes_on_with_the_indexes_that_are_there(changelog, place):
    version = filled(changelog)
    IndexKeeper(place, (BY_ID, BY_NAME), changelog.log).prepare(1)
    keeper = IndexKeeper(place, (BY_ID, BY_NAME), DeltaLog(changelog.log.path, "app"))
    keeper.prepare(version)
    assert names(place, version) == {1: "u9", 3: "c13"}
    assert stored_versions(place, BY_NAME) == (1, version)


DAMAGES = {
    "the_manifest_is_cut": lambda home: next(home.glob("v1*.json")).write_text("{"),
    "a_data_file_is_gone": lambda home: next(home.glob("s1*")).unlink(),
    "everything_is_gone": shutil.rmtree,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_after_damage_the_next_version_is_built_anew(changelog, place, damage):
    version = filled(changelog)
    IndexKeeper(place, (BY_ID,), changelog.log).prepare(1)
    damage(place / BY_ID.digest)
    IndexKeeper(place, (BY_ID,), changelog.log).prepare(version)
    assert names(place, version) == {1: "u9", 3: "c13"}


def test_a_full_disk_is_not_answered_by_building_everything_anew(changelog, place):
    """An advance without room is an error; the version that is ready stays so, with its files."""
    keeper = IndexKeeper(place, (BY_ID,), changelog.log)
    keeper.prepare(changelog.commit(record("c", 1, 5, 0)))
    before = set(place.rglob("*"))
    version = changelog.commit(*(record("c", at, 9 + at, at) for at in range(2, 500)))
    with largest_file(4096), pytest.raises(IndexDiskFullError):
        keeper.prepare(version)
    assert (keeper.ready_version, set(place.rglob("*"))) == (version - 1, before)


def test_after_a_full_disk_nothing_is_read_in_vain(changelog, place, monkeypatch):
    version = changelog.commit(*(record("c", at, 5 + at, at) for at in range(1, 500)))
    keeper = IndexKeeper(place, (BY_ID,), changelog.log)
    with largest_file(4096), pytest.raises(IndexDiskFullError) as first:
        keeper.prepare(version)
    hidden = changelog.log.path.rename(changelog.log.path.with_name("hidden"))
    for _ in range(2):
        with pytest.raises(IndexDiskFullError) as again:
            keeper.prepare(version)
        assert again.value is first.value
    hidden.rename(changelog.log.path)
    late = time.monotonic() + 61
    monkeypatch.setattr("time.monotonic", lambda: late)
    keeper.prepare(version)
    assert names(place, version) == {at: f"c{5 + at}" for at in range(1, 5)}


FULL_DISK = """
import pathlib, shutil, structlog, sys
from joins.adapters.delta.log import DeltaLog
from joins.plan.errors import IndexDiskFullError
from tests.joins.dimension.test_index_keeper import BY_ID, BY_NAME, IndexKeeper, names

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
place, version = pathlib.Path(sys.argv[2]), int(sys.argv[3])
keeper = IndexKeeper(place / "index", (BY_ID, BY_NAME), DeltaLog(pathlib.Path(sys.argv[1]), "app"))
ballast = place / "ballast"
ballast.write_bytes(bytes(shutil.disk_usage(place).free - (128 << 10)))
for _ in range(2):
    try:
        keeper.prepare(version)
    except IndexDiskFullError as error:
        print(error.message, error.needed_bytes > 128 << 10)
print(sorted(path.name for path in place.rglob("*") if path.is_file()))
ballast.unlink()
keeper.prepare(version)
print(names(place / "index", version))
"""


@pytest.mark.usefixtures("processes")
def test_a_dimension_larger_than_its_disk_is_built_once_there_is_room(changelog, tmp_path):
    """On a file system of its own, which needs a mount namespace."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=4m none {disk}"
    program = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*program, mount], check=False).returncode:
        pytest.skip("no mount namespaces on this machine")
    version = changelog.commit(*(record("c", at, 5 + at, at) for at in range(1, 9_000)))
    arguments = [str(changelog.log.path), str(disk), str(version)]
    run = shlex.join([sys.executable, "-c", FULL_DISK, *arguments])
    done = subprocess.run(
        [*program, f"{mount} && exec {run}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    first, again, files, found = done.stdout.splitlines()
    assert f'index directory "{disk / "index" / BY_ID.digest}" on node ' in first
    assert " needs 1 MiB more: " in first
    assert first.endswith("MiB are free True")
    assert again == first
    assert files == str(["ballast", "lock"])
    assert found == str({at: f"c{5 + at}" for at in range(1, 5)})


def test_threads_that_ask_at_once_get_the_newest_version(changelog, place):
    version = filled(changelog)
    keeper = IndexKeeper(place, (BY_ID,), changelog.log)
    at_once(keeper.prepare, range(version + 1))
    assert keeper.ready_version == version
    assert names(place, version) == {1: "u9", 3: "c13"}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_pinned_version_whose_index_is_lost_is_made_again(changelog, place, damage):
    version = filled(changelog)
    keeper = IndexKeeper(place, (BY_ID,), changelog.log)
    keeper.prepare(1)
    keeper.prepare(version)
    damage(place / BY_ID.digest)
    keeper.restore(1)
    keeper.restore(1)
    assert names(place, 1) == {1: "r5", 2: "r5"}
    assert keeper.ready_version == version


@pytest.mark.parametrize("kind", ["arrow", "primary", "hidden"])
def test_a_file_that_vanishes_is_made_again_for_whoever_has_it_mapped(changelog, place, kind):
    """The driver still has the old file; a worker, which must map it, has not."""
    version = filled(changelog)
    keeper = IndexKeeper(place, (BY_ID,), changelog.log)
    keeper.prepare(version)
    mapped = DimensionIndex.attach(place, version, BY_ID)
    for path in (place / BY_ID.digest).glob(f"*.{kind}"):
        path.unlink()
    assert DimensionIndex.attach(place, version, BY_ID) is mapped
    keeper.restore(version)
    assert DimensionIndex.attach(place, version, BY_ID) is not mapped
    assert names(place, version) == {1: "u9", 3: "c13"}
    newer = changelog.commit(record("u", 1, 50, 50))
    keeper.prepare(newer)
    assert names(place, newer) == {1: "u50", 3: "c13"}


def test_a_sound_index_is_left_as_it_is(changelog, place):
    version = filled(changelog)
    keeper = IndexKeeper(place, (BY_ID,), changelog.log)
    keeper.prepare(version)
    mapped = DimensionIndex.attach(place, version, BY_ID)
    keeper.restore(version)
    assert DimensionIndex.attach(place, version, BY_ID) is mapped


def test_pruning_leaves_the_newest_versions_and_the_pinned_one(changelog, place):
    keeper = IndexKeeper(place, (BY_ID, BY_NAME), changelog.log)
    keeper.prune(None)
    versions = [filled(changelog)]
    versions += [changelog.commit(record("u", 1, 20 + at, 20 + at)) for at in range(30)]
    for version in versions:
        keeper.prepare(version)
    keeper.prune(versions[3])
    for spec in (BY_ID, BY_NAME):
        assert stored_versions(place, spec) == (versions[3], *versions[-16:])
    assert names(place, versions[3]) == {1: "u22", 3: "c13"}
    assert names(place, versions[-1]) == {1: "u49", 3: "c13"}
    before = set(place.rglob("*"))
    keeper.prune(versions[3])
    assert set(place.rglob("*")) == before
    keeper.prune(None)
    assert stored_versions(place, BY_ID) == tuple(versions[-16:])
    keeper.prepare(changelog.commit(record("d", 1, 99, 99)))
    assert names(place, keeper.ready_version) == {3: "c13"}


def test_equal_indexes_of_several_jobs_are_one_and_each_leaves_what_others_need(
    changelog, place, monkeypatch
):
    monkeypatch.setattr(index_keeper, "KEPT_FOR_OTHERS", 4)
    versions = [filled(changelog)]
    versions += [changelog.commit(record("u", 1, 20 + at, 20 + at)) for at in range(10)]

    def job(*specs):
        return IndexKeeper(place, specs, changelog.log, is_shared=True)

    ahead, behind, other = job(BY_ID), job(BY_ID), job(BY_NAME)
    other.prepare(versions[0])
    behind.prepare(versions[0])
    for version in versions:
        ahead.prepare(version)
    ahead.prune(versions[-1])
    assert stored_versions(place, BY_ID) == tuple(versions[-4:])
    assert stored_versions(place, BY_NAME) == (versions[0],), "that is not its own"
    behind.restore(versions[1])  # it lags too far behind: what is gone is made again
    assert names(place, versions[1]) == {1: "u20", 3: "c13"}
    files = set(place.rglob("s*"))
    behind.prepare(versions[-1])
    assert set(place.rglob("s*")) == files, "nothing is made twice"
    behind.prune(versions[1])
    assert stored_versions(place, BY_ID)[0] == versions[1], "its batches need it"
