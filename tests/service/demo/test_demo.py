"""What the demo shows and what it leaves behind."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from joins.adapters.delta.log import DeltaLog, create_table
from joins.kernels.probe.files import StagedFile
from service.demo.run import NewestRows, remove_stale_directories, render
from service.jobs.store.layout import write_runner_pid
from service.schemas.jobs import DimensionView, JobDetail, StatusView
from tests.support.page_jobs import dimension

SCHEMA = pa.schema(
    [
        ("user_id", pa.int64()),
        ("item_id", pa.int64()),
        ("gender", pa.string()),
        ("name", pa.string()),
        ("_dimension_versions", pa.string()),
    ]
)


def commit(log, batch, users):
    """Append one row for each of `users`; its item is its place."""
    rows = [
        {"user_id": user, "item_id": item, "name": f"batch {batch}"}
        for item, user in enumerate(users)
    ]
    path = f"part-{batch}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), log.path / path)
    size = (log.path / path).stat().st_size
    log.commit(batch, 1, [StagedFile(path, size, len(rows), f'{{"numRecords":{len(rows)}}}')], {})


@pytest.fixture
def log(tmp_path):
    create_table(tmp_path / "enriched", SCHEMA)
    return DeltaLog(tmp_path / "enriched", "app")


def test_the_newest_rows_are_of_the_newest_commit_that_has_any(log):
    newest = NewestRows(log.path)
    assert newest.last(3) == []
    assert newest.first_of({1}) == []
    commit(log, 0, [1, 2, 3, 2])
    assert [row["item_id"] for row in newest.last(3)] == [1, 2, 3]
    log.commit(1, 1, [], {})
    assert [row["item_id"] for row in newest.last(9)] == [0, 1, 2, 3]
    assert [row["item_id"] for row in newest.first_of({2, 3, 9})] == [1, 2]
    assert newest.first_of({9}) == []
    commit(log, 2, [9])
    assert [row["name"] for row in newest.last(3)] == ["batch 2"]
    assert [row["user_id"] for row in newest.first_of({9})] == [9]


@pytest.mark.parametrize(
    ("freshness", "shown"), [(None, "version 7"), ({"age_ms": 430}, "version 7 as of 0.4 s ago")]
)
def test_the_screen_shows_how_old_the_table_is(freshness, shown):
    table = {**dimension("user_info", 10, 10), "changelog_version": 7, "freshness": freshness}
    words = {"word": "Running", "tone": "good", "sentence": "", "remedy": None, "action": None}
    status = StatusView(**words, since_ms=1)
    job = JobDetail.model_construct(
        probe=None, status=status, dimensions=[DimensionView.model_validate(table)]
    )
    console = Console(width=120)
    with console.capture() as capture:
        console.print(render(job, [], "http://127.0.0.1"))
    assert shown in [" ".join(line.strip("│ ").split()) for line in capture.get().splitlines()]


@pytest.fixture
def ended():
    """A process that has ended: (pid, start in ms)."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started_at_ms = int(psutil.Process(process.pid).create_time() * 1000)
    return process.pid, started_at_ms


def directory_of(root, pid, started_at_ms) -> Path:
    directory = root / f"sluice-demo-{pid}-{started_at_ms}-x"
    (directory / "data" / "jobs" / "j").mkdir(parents=True)
    return directory


@pytest.mark.usefixtures("processes")
def test_only_what_nobody_uses_is_removed(tmp_path, monkeypatch, ended):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours = int(psutil.Process().create_time() * 1000)
    stale = directory_of(tmp_path, *ended)
    recycled = directory_of(tmp_path, os.getpid(), ours - 60_000)
    living = directory_of(tmp_path, os.getpid(), ours)
    runs_on = directory_of(tmp_path, ended[0], ended[1] + 1)
    write_runner_pid(runs_on / "data" / "jobs" / "j")
    foreign = tmp_path / "sluice-demo-of-somebody"
    foreign.mkdir()
    remove_stale_directories()
    assert set(tmp_path.iterdir()) == {living, runs_on, foreign}
    assert not stale.exists()
    assert not recycled.exists()
