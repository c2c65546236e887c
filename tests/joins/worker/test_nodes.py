"""Nodes that have no index of the pinned version: their workers make it, once, with real kills."""

import contextlib
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from joins.kernels.index.index import stored_versions
from joins.kernels.probe.files import SharedTable
from joins.plan.errors import IndexBuildError, IndexDirectoryError, PinnedVersionExpiredError
from joins.worker.index_source import DimensionTables, on_this_node
from joins.worker.probe_task import IndexPlace, ProbeTask, stage_delta
from joins.worker.staging import merge_reports
from tests.support.changelog import SCHEMA, Changelog, record, stage
from tests.support.node import STOPS
from tests.support.probe import PIN, clicks, probe_task
from tests.support.wait import wait_until

ROOT = Path(__file__).parents[3]
ROWS = 200_000


def on_another_node(task: ProbeTask, directory: Path) -> ProbeTask:
    indexes = {alias: replace(p, directory=directory / "node") for alias, p in task.indexes.items()}
    tables = {"users": DimensionTables(directory / "changelog", directory / "current", "app")}
    return replace(task, indexes=indexes, tables=tables)


@pytest.fixture
def task(tmp_path):
    return on_another_node(probe_task(tmp_path), tmp_path)


def place_of(task: ProbeTask) -> IndexPlace:
    (place,) = task.indexes.values()
    return place


def home(task: ProbeTask) -> Path:
    place = place_of(task)
    return place.directory / place.spec.digest


def versions(task: ProbeTask) -> tuple[int, ...]:
    return stored_versions(place_of(task).directory, place_of(task).spec)


def names(task: ProbeTask, version: int) -> list[str | None]:
    (index,) = task.attach({"users": version}).values()
    _, rows = index.lookup([pa.array([1, 2])])
    return index.take(rows, ["name"]).column(0).to_pylist()


# One process
# ------------------------------------------------------------------------------------------------


def test_a_pinned_version_that_is_not_on_the_node_is_made_there(task):
    assert names(task, 1) == ["r5", "r5"]
    assert names(task, 2) == ["u9"]


def test_versions_that_no_later_batch_pins_leave_the_node(task):
    names(task, 1)
    old = {path.name for path in home(task).iterdir()}
    names(task, 2)
    assert versions(task) == (2,)
    names(task, 1)  # the retry of a batch that was pinned before
    assert versions(task) == (1, 2)
    newest = Changelog(place_of(task).directory.parent / "changelog").commit(
        *(record("c", at, 20 + at, 20 + at) for at in range(3, 20))
    )
    names(task, newest)
    assert versions(task) == (newest,)
    assert not old & ({path.name for path in home(task).iterdir()} - {"lock"})


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


SEEN_WHEN_ATTACHED = {
    "the_manifest_is_cut_off": ("v2.json", lambda path: path.write_text("{")),
    "rows_are_gone": ("*.arrow", Path.unlink),
    "hashes_are_cut_off": ("*.primary", lambda path: path.write_bytes(path.read_bytes()[:-1])),
}


@pytest.mark.parametrize(("files", "damage"), SEEN_WHEN_ATTACHED.values(), ids=SEEN_WHEN_ATTACHED)
def test_a_missing_or_shortened_file_is_made_anew(task, files, damage):
    names(task, 2)
    for path in home(task).glob(files):
        damage(path)
    assert names(task, 2) == ["u9"]


def test_a_changed_file_is_made_anew_by_the_attempt_that_comes_after(task):
    names(task, 2)
    (rows,) = home(task).glob("*.arrow")
    flip_a_byte(rows)
    task.repair({"users": 2})
    assert names(task, 2) == ["u9"]
    assert [path.name for path in home(task).glob("*.arrow")] != [rows.name]
    before = sorted(home(task).iterdir())
    task.repair({"users": 2})
    assert sorted(home(task).iterdir()) == before


def test_a_task_that_does_not_know_the_tables_finds_its_index_or_fails(task):
    with pytest.raises(IndexBuildError, match="version 1"):
        replace(task, tables={}).attach({"users": 1})


def test_a_version_that_the_tables_do_not_have_is_an_error_of_the_pin(task):
    with pytest.raises(PinnedVersionExpiredError, match="version 9"):
        task.attach({"users": 9})


def test_a_directory_can_be_another_one_on_each_node(monkeypatch, task, tmp_path):
    monkeypatch.setenv("NODE_DISK", str(tmp_path / "disk"))
    monkeypatch.setattr("socket.gethostname", lambda: "node-7")
    place = replace(place_of(task), directory=Path("{NODE_DISK}/{host}/users"))
    assert place.on_node == tmp_path / "disk" / "node-7" / "users"
    (task,) = (replace(task, indexes={"u": place}),)
    assert names(task, 2) == ["u9"]
    assert (tmp_path / "disk" / "node-7" / "users" / place.spec.digest / "v2.json").exists()
    monkeypatch.delenv("NODE_DISK")
    with pytest.raises(IndexDirectoryError, match=r'NODE_DISK.*"node-7"'):
        on_this_node(place.directory)


# Many processes
# ------------------------------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path):
    """A task whose index takes a while to build, and the version to pin."""
    task = on_another_node(probe_task(tmp_path), tmp_path)
    numbers = pa.array(range(10, 10 + ROWS))
    constants = {"_op": "c", "_epoch": 0, "_file": 2, "_row": 0, "_source_ts": 0}
    constants |= {"_partition": 0, "_generation": 1, "name": "x" * 40}
    columns = [
        pa.repeat(pa.scalar(constants[item.name], item.type), ROWS)
        if item.name in constants
        else numbers.cast(item.type)
        for item in SCHEMA
    ]
    changelog = Changelog(tmp_path / "changelog")
    log, batch = changelog.log, pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    number = (log.batches.last_batch() or 0) + 1
    version = log.commit(number, 1, [stage(log.path, batch, number=number)], {})
    (tmp_path / "task").write_bytes(pickle.dumps(task))
    return task, version


class Worker:
    """A process that attaches the version; made by whoever comes first."""

    def __init__(
        self, directory: Path, version: int, limit: int | None = None, **variables: str
    ) -> None:
        def fewer_bytes() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit or 0, limit or 0))

        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.node", str(directory / "task"), str(version)],
            cwd=ROOT,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=fewer_bytes if limit is not None else None,
        )

    def answer(self) -> int:
        out, err = self.process.communicate(timeout=240)
        assert self.process.returncode == 0, err
        return int(json.loads(out.splitlines()[-1])["rows"])

    def is_at(self, lock: Path) -> bool:
        """Whether it has or wants the lock."""
        for opened in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed since it was listed
                if opened.readlink() == lock:
                    return True
        return False


@pytest.mark.usefixtures("processes")
def test_workers_that_come_at_once_make_an_index_once(large, tmp_path):
    task, version = large
    workers = [Worker(tmp_path, version) for _ in range(4)]
    assert [worker.answer() for worker in workers] == [ROWS + 1] * 4
    kinds = sorted(path.suffix for path in home(task).iterdir())
    assert kinds == ["", ".arrow", ".hidden", ".json", ".positions", ".primary"]


@pytest.mark.usefixtures("processes")
def test_a_worker_that_is_killed_while_it_builds_leaves_nothing_and_another_goes_on(
    large, tmp_path
):
    task, version = large
    killed = Worker(tmp_path, version, **{STOPS: "yes"})
    try:
        stopped = psutil.Process(killed.process.pid)
        wait_until(
            lambda: stopped.status() == psutil.STATUS_STOPPED, what="it builds", deadline_s=120
        )
        left = {path.name for path in home(task).iterdir()} - {"lock"}
        assert left
        assert versions(task) == ()
        others = [Worker(tmp_path, version) for _ in range(2)]
        lock = home(task) / "lock"
        wait_until(lambda: all(w.is_at(lock) for w in others), what="they wait", deadline_s=120)
        assert versions(task) == ()
    finally:
        killed.process.kill()
    killed.process.communicate()
    assert [worker.answer() for worker in others] == [ROWS + 1] * 2
    found = {path.name for path in home(task).iterdir()}
    assert not found & left
    assert len([name for name in found if name.endswith(".arrow")]) == 1
    assert not [name for name in found if name.endswith(".partial")]


@pytest.mark.usefixtures("processes")
def test_a_full_disk_is_an_error_that_names_directory_and_node(large, tmp_path):
    task, version = large
    worker = Worker(tmp_path, version, limit=1 << 20)
    _, err = worker.process.communicate(timeout=240)
    last = err.strip().splitlines()[-1]
    assert "IndexDiskFullError: index directory" in last
    assert str(home(task)) in last
    assert "on node" in last
    assert [path.name for path in home(task).iterdir()] == ["lock"]
    assert Worker(tmp_path, version).answer() == ROWS + 1


# Tasks
# ------------------------------------------------------------------------------------------------


def test_a_task_joins_with_an_index_that_it_made_itself(task, tmp_path):
    records = clicks(b'{"user_id":1}', b'{"user_id":2}', b'{"user_id":3}')
    (answer,) = stage_delta(
        iter([records]), task=task, pin=PIN, output=SharedTable(tmp_path / "out")
    )
    assert merge_reports(answer.column(0).to_pylist()).counts["matched"] == 2


@pytest.mark.experiment
def test_executors_of_a_cluster_make_the_indexes_that_they_do_not_have(tmp_path, java, spark_jars):
    """Two executors with directories of their own; the driver's index is in a third one."""
    command = [sys.executable, "-m", "tests.support.cluster", str(tmp_path), *map(str, spark_jars)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert [counts["matched"] for counts in told["counts"]] == [27, 14]
    homes = [{str(Path(path).parent) for path in told["manifests"][v]} for v in ("1", "2")]
    assert len(homes[0]) == 2
    assert homes[1] == homes[0]
    assert told["processes"] > 2, "the executors"
    assert told["with_the_secret"] == [], "they authenticate, and nobody can read with what"
    table = DeltaTable(str(tmp_path / "out")).to_pyarrow_table()
    shown = {(row["_batch"], row["user_id"]): row["name"] for row in table.to_pylist()}
    assert shown == {
        (0, 1): "r5", (0, 2): "r5", (0, 3): None, (1, 1): "u9", (1, 2): None, (1, 3): None,
    }  # fmt: skip
