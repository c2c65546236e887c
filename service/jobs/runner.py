"""The runner: one process per job, the driver of both sides.

`python -m service.jobs.runner --job-dir DIR`. SIGTERM stops it at a batch boundary. Exit codes: 0
after a stop and at the end of a bounded stream (`status.json` says which), 3 if the job cannot
continue (`status.json` has the cause), 4 if another runner owns the job, 5 if the job has a newer
plan, under which it starts again, 1 otherwise.
"""

import gc

if __name__ == "__main__":
    gc.disable()  # until it joins: looking for garbage in what is loaded takes a sixth of the start

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

import structlog

from joins.adapters.process import process as source_process
from joins.adapters.process.sessions import redact_standard_error
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.requests import Fault, Requests
from joins.job.session import remove_directories
from joins.job.temporal_join import TemporalJoin
from joins.kernels.local_files import is_full
from joins.plan.errors import CheckpointInUseError, FencedError, SourceUnavailableError
from service.config import Settings, control_plane_pid
from service.footprint import kept_for_good
from service.jobs.inspect.facts import shown
from service.jobs.presence import ControlPlaneAbsence
from service.jobs.status import error_of, notes_on, of_job, report_of
from service.jobs.store.layout import JobLayout, write_runner_pid
from service.jobs.store.runner_files import append_event
from service.logs import PerMinute, configure_logs
from service.security.secrets import take_over
from service.wiring.job import OpenJob, open_job
from watermark.errors import SluiceError

EXIT_STOPPED, EXIT_CRASHED, EXIT_FAILED, EXIT_NOT_OWNER, EXIT_SUPERSEDED = 0, 1, 3, 4, 5
_FINISHED = "FINISHED"
_STATUS_EVERY_S = 0.5
_PARENT_LOOK_S = 0.5
_log = structlog.get_logger(__name__)


class ControlPlaneWatch:
    """Ends this process when its control plane is gone; the job gets `grace_s` to stop."""

    def __init__(self, is_gone: Callable[[], bool], *, grace_s: float) -> None:
        self._is_gone = is_gone
        self._grace_s = grace_s
        self._stop: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._watch, name="control plane", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop_first(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def _watch(self) -> None:
        while not self._is_gone():
            time.sleep(_PARENT_LOOK_S)
        stop = self._stop
        _log.warning("control plane is gone", job_runs=stop is not None)
        if stop is not None:
            stop()
            time.sleep(self._grace_s)
        os._exit(EXIT_CRASHED)


class StatusFile:
    """Writes `status.json` and the transitions of one runner.

    A finished job stays finished: its runner only answers requests. On a full disk nothing is
    written and the runner continues: the control plane sees the disk itself.
    """

    def __init__(self, layout: JobLayout) -> None:
        self._layout = layout
        self._job_id = layout.job_dir.name
        self._started_at_ms = time.time_ns() // 1_000_000
        self._written_at = 0.0
        self._said = PerMinute()
        before = read_json(layout.status)
        self._state: str | None = before["state"] if before else None
        self._last: dict[str, Any] = before or {}
        self._reported = self._last

    @property
    def is_finished(self) -> bool:
        return self._state == _FINISHED

    def tick(self, join: TemporalJoin) -> None:
        """Write the status about twice a second, and at once when the state changes."""
        if self.is_finished:
            return
        report = report_of(
            join, job_id=self._job_id, pid=os.getpid(), started_at_ms=self._started_at_ms
        )
        self._last = status = report.model_dump(mode="json", by_alias=True)
        now = time.monotonic()
        if status["state"] != self._state or now - self._written_at >= _STATUS_EVERY_S:
            self._write(status, notes_on(self._reported, status))
            self._reported, self._written_at = status, now

    def note(self, state: str, reason: str, fault: Fault | None = None) -> None:
        """Write `state` while there is no running join; committed values stay."""
        if self.is_finished:
            return
        error = None if fault is None else error_of(fault).model_dump()
        before = shown(self._last, is_live=False)
        self._write(
            {
                "phase": "LOAD",
                **{k: v for k, v in before.items() if k != "format_version"},
                "job_id": self._job_id,
                "pid": os.getpid(),
                "state": state,
                "reason": reason,
                "updated_at_ms": time.time_ns() // 1_000_000,
                "started_at_ms": self._started_at_ms,
                "error": error,
            }
        )

    def _write(self, status: dict[str, Any], notes: Iterable[str] = ()) -> None:
        try:
            for text in notes if self._state is not None else ():
                note = {"at_ms": status["updated_at_ms"], "from": self._state, "to": self._state}
                append_event(self._layout.job_dir, {**note, "cause": text})
                _log.info("noted", cause=text)
            self._store(status)
        except OSError as exc:
            if not is_full(exc):
                raise
            if self._said.due(exc.errno) is not None:
                _log.error("report cannot be written", error=str(exc))

    def _store(self, status: dict[str, Any]) -> None:
        status = of_job(status, self._job_id)
        write_json_atomically(self._layout.status, status)
        self._last = status
        if status["state"] != self._state:
            event = {"at_ms": status["updated_at_ms"], "from": self._state, "to": status["state"]}
            append_event(self._layout.job_dir, {**event, "cause": status["reason"]})
            _log.info("state changed", **event, cause=status["reason"])
            self._state = status["state"]


def run(job_dir: Path, driver: Path | None = None) -> int:
    """Run the job of `job_dir` until it stops; returns the exit code.

    `driver` is the file with the shared driver's address, for a runner that a host has forked; the
    host then watches the control plane.
    """
    layout = JobLayout(job_dir)
    try:
        settings = Settings.of_runner(job_dir)
        configure_logs(settings.log_level)
        watch = _watch_control_plane(job_dir, settings, has_host=driver is not None)
        with open_job(layout, settings, driver) as opened:
            write_runner_pid(job_dir)
            return _run_opened(opened, StatusFile(layout), watch)
    except CheckpointInUseError as exc:
        _log.error("job is in use", error=exc.message, hint=exc.hint)
        return EXIT_NOT_OWNER


def _watch_control_plane(
    job_dir: Path, settings: Settings, *, has_host: bool
) -> ControlPlaneWatch | None:
    if settings.stop_with_parent:
        if has_host:
            return None
        # It is handed over: a late getppid() could return init.
        parent = control_plane_pid(job_dir) or os.getppid()
        watch = ControlPlaneWatch(lambda: os.getppid() != parent, grace_s=settings.stop_timeout_s)
    else:
        absence = ControlPlaneAbsence(settings.data_dir, settings.runner_orphan_s)
        watch = ControlPlaneWatch(absence.is_over_limit, grace_s=settings.stop_timeout_s)
    watch.start()
    return watch


def _run_opened(opened: OpenJob, status: StatusFile, watch: ControlPlaneWatch | None) -> int:
    status.note("STARTING", "the runner starts Spark and looks at the sources")
    join: TemporalJoin | None = None
    try:

        def tick(join: TemporalJoin) -> None:
            status.tick(join)
            opened.log.flush()

        with kept_for_good():
            join = opened.start(tick)
        if watch is not None:
            watch.stop_first(join.request_stop)
        request_stop = join.request_stop
        signal.signal(signal.SIGTERM, lambda *_: request_stop())
        signal.signal(signal.SIGINT, lambda *_: request_stop())
        join.run()
    except SluiceError as exc:
        if isinstance(exc, FencedError) or opened.checkpoint.has_newer_runner():
            _log.error("fenced", error=exc.message, hint=exc.hint)
            return EXIT_NOT_OWNER
        stops = join is not None and join.is_stop_requested
        if join is None or not (stops and isinstance(exc, SourceUnavailableError)):
            return _failed(opened.layout, status, exc)
        _log.warning("the job stopped without what it talks to", error=exc.message, hint=exc.hint)
    if join.is_finished:
        status.note(_FINISHED, "all up to the end of the stream is joined and committed")
    elif join.is_superseded and not join.is_stop_requested:
        status.note("STARTING", "the runner starts again under a newer plan of the job")
        return EXIT_SUPERSEDED
    else:
        status.note("STOPPED", "the runner was told to end, and has")
    return EXIT_STOPPED


def _failed(layout: JobLayout, status: StatusFile, exc: SluiceError) -> int:
    if status.is_finished:
        _log.error("requests are refused", error=exc.message, hint=exc.hint)
        Requests(layout.requests, {}).refuse_all(exc)
        return EXIT_STOPPED
    if isinstance(exc, SourceUnavailableError):
        status.note("STALLED", f"{exc.message}. {exc.hint}", Fault.of(exc))
        return EXIT_CRASHED
    status.note("FAILED", f"{exc.message}. {exc.hint}", Fault.of(exc))
    return EXIT_FAILED


def main() -> None:
    parser = argparse.ArgumentParser(prog="sluice-runner")
    parser.add_argument("--job-dir", type=Path, required=True)
    arguments = parser.parse_args()
    run_to_the_end(arguments.job_dir.resolve())


def _end_group(*_: object) -> None:
    """End our process group, before there is a job to stop in order.

    A JVM that loses its parent during its start does not end if its directory is gone.
    """
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(EXIT_CRASHED)


def run_to_the_end(job_dir: Path, driver: Path | None = None) -> NoReturn:
    """Exit this process with the result of `run`; nothing may run in it before."""
    signal.signal(signal.SIGTERM, _end_group)
    source_process.prepare()
    take_over()
    redact_standard_error()
    code = run(job_dir, driver)
    remove_directories()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
