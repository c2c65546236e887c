"""Paths of a job's directory, and the files that record its runner's process.

Every file carries a format version; the directory belongs to its owner only (mode 0700).
"""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from joins.adapters.process.forks import words_of
from joins.adapters.store_path import StorePath
from joins.durable.checkpoint import (
    FORMAT_VERSION,
    read_json,
    write_atomically,
    write_json_atomically,
)
from joins.durable.leases import leases_in
from joins.durable.stored import PLANS, StoredFiles
from joins.kernels.table_path import TablePath
from joins.plan.errors import CheckpointError
from joins.plan.plan import Dimension, SharedSource
from watermark.errors import SluiceError

CREATE_TIME_TOLERANCE_S = 0.05
OWN_TABLES = "_sluice/jobs"
"""Where the tables of jobs are in the warehouse, if that is in an object store."""
OWN_FILES = "files"
"""Where the durable files of a job are beside its tables there."""


class _Below:
    """A path below the directory of a job."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, layout: "JobLayout", owner: type["JobLayout"]) -> Path:
        return layout.job_dir / self._path


class _InTables:
    """A path below the root of the job's tables."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, layout: "JobLayout", owner: type["JobLayout"]) -> TablePath:
        return layout.tables_root / self._path


@dataclass(frozen=True, slots=True)
class JobLayout:
    """Paths of one job; `docs/reference/contracts.md` says who writes what."""

    # reads better long: a name for each file and directory

    job_dir: Path

    plan = _Below("plan.json")
    plans = _Below(PLANS)
    settings = _Below("settings.json")
    secrets = _Below("secrets.json")
    status = _Below("status.json")
    events = _Below("events.jsonl")
    runner_log = _Below("runner.log")
    runner_pid = _Below("runner.pid")
    checkpoint = _Below("checkpoint")
    requests = _Below("requests")
    history = _Below("history.bin")
    verifications = _Below("verifications")
    warehouse = _Below("warehouse.json")
    index = _Below("index")
    leave_topics = _Below("leave-topics")
    acknowledgements = _Below("checkpoint/acknowledgements.jsonl")
    tables = _InTables("tables")
    dead_letters = _InTables("dead_letters")
    late_records = _InTables("late_records")
    state = _InTables("state")

    def plan_of(self, number: int) -> Path:
        return self.plan if number == 1 else self.plans / f"{number}.json"

    def plan_files(self) -> list[Path]:
        return [self.plan, *sorted(self.plans.glob("*.json"))]

    def verification(self, table: str) -> Path:
        return self.verifications / f"{table}.json"

    @property
    def tables_root(self) -> TablePath:
        kept = read_json(self.warehouse)
        if kept is None:
            return self.job_dir
        return own_tables(kept["address"]) / self.job_dir.name

    def stored(self) -> StoredFiles | None:
        """The job's durable files in a store, which `keep_stored` writes; None without one."""
        root = self.tables_root
        return None if isinstance(root, Path) else StoredFiles(self.job_dir, root / OWN_FILES)

    def stored_of_shared(self, source: SharedSource) -> StoredFiles | None:
        """`stored` for the job of a shared table, also before its directory is restored."""
        table, own = self.of_shared(source), self.stored()
        if own is None or table.plan.exists():
            return table.stored()
        return StoredFiles(table.job_dir, own.place.parent.parent / source.job_id / OWN_FILES)

    def of_shared(self, source: SharedSource) -> "JobLayout":
        return JobLayout(self.job_dir.parent / source.job_id)

    def table(self, dimension: Dimension) -> TablePath:
        """Directory of `changelog` and `current`; a shared dimension's is in another job's."""
        source = dimension.source
        if isinstance(source, SharedSource):
            return self.of_shared(source).tables / source.table
        return self.tables / dimension.name

    def lease(self, source: SharedSource) -> Path:
        return leases_in(self.of_shared(source).checkpoint) / f"{self.job_dir.name}.json"

    def is_in_store(self) -> bool:
        return self.warehouse.exists()

    def create(self, warehouse: str | None = None) -> None:
        """Create the directory, for its owner only; `warehouse` is fixed from then on."""
        self.job_dir.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.job_dir.mkdir(mode=0o700)
        if warehouse is not None:
            write_new(self.warehouse, _noted(warehouse))

    def make_room(self, warehouse: str) -> None:
        self.job_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.warehouse.exists():
            write_private(self.warehouse, _noted(warehouse))

    def make_durable(self) -> None:
        """Sync a new job's files, which `write_new` wrote, and their directories."""
        for path in (*self.job_dir.iterdir(), self.job_dir, self.job_dir.parent):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def abandon(self) -> None:
        """Delete a job that was never stored; in the object store, as far as it answers."""
        with suppress(SluiceError, OSError):
            root = self.tables_root
            if isinstance(root, StorePath):
                root.clear()
        self.discard()

    def discard(self) -> None:
        """Delete the directory; without its plan, what is left after a crash is deleted later."""
        with suppress(NotADirectoryError):  # a file between the directories of jobs stays
            self.plan.unlink(missing_ok=True)
        shutil.rmtree(self.job_dir, ignore_errors=True)


def _noted(warehouse: str) -> bytes:
    return json.dumps({"format_version": FORMAT_VERSION, "address": warehouse}).encode()


def own_tables(warehouse: str) -> StorePath:
    return StorePath.of(warehouse, ()) / OWN_TABLES


def write_private(path: Path, content: bytes) -> None:
    write_atomically(path, content, mode=0o600)


def write_new(path: Path, content: bytes) -> None:
    """Write a private file of a job that is not stored yet; `make_durable` syncs it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


def write_runner_pid(job_dir: Path, pid: int | None = None) -> None:
    """Record process `pid` (default: this one), which has the checkpoint's lock, as the runner."""
    process = psutil.Process(pid)
    write_json_atomically(
        JobLayout(job_dir).runner_pid, {"pid": process.pid, "started_at_s": process.create_time()}
    )


def noted_pid(job_dir: Path) -> int | None:
    content = _note(job_dir)
    return None if content is None else int(content["pid"])


def living_runner(
    job_dir: Path, processes: Mapping[str, psutil.Process] | None = None
) -> psutil.Process | None:
    """The job's living runner: the process of `runner.pid`, else one with our command line.

    It must have the owner of the job's directory: other users may start a similar process.
    """
    content = _note(job_dir)
    if content is not None:
        process = _same_process(int(content["pid"]), float(content["started_at_s"]))
        if process is not None and _is_owned_alike(process, job_dir):
            return process
    processes_by_job = processes_on_jobs() if processes is None else processes
    return processes_by_job.get(str(job_dir))


def _note(job_dir: Path) -> dict[str, Any] | None:
    """The content of `runner.pid`; None if it is damaged, as processes can still be searched."""
    try:
        content = read_json(JobLayout(job_dir).runner_pid)
    except CheckpointError:
        return None
    return content if content is not None and content.keys() >= {"pid", "started_at_s"} else None


def _same_process(pid: int, started_at_s: float) -> psutil.Process | None:
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - started_at_s) < CREATE_TIME_TOLERANCE_S
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None


def processes_on_jobs() -> dict[str, psutil.Process]:
    """Runners by job directory, also those without a `runner.pid`."""
    processes = {}
    for process in psutil.process_iter(["cmdline", "status"]):
        command = words_of(process.info["cmdline"] or [])
        leads = process.pid == _group_of(process.pid)
        alive = process.info["status"] != psutil.STATUS_ZOMBIE
        is_runner = alive and leads and command[-2:-1] == ["--job-dir"]
        if is_runner and _is_owned_alike(process, Path(command[-1])):
            processes[command[-1]] = process
    return processes


def _is_owned_alike(process: psutil.Process, job_dir: Path) -> bool:
    try:
        return bool(process.uids().effective == job_dir.stat().st_uid)
    except (OSError, psutil.Error):
        return False


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None
