"""Runs the demo: embedded servers, the control plane, the example job, clicks and edits."""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.live import Live

from joins.pins import PinStore
from service.api.server import ControlPlane
from service.client import Client
from service.config import Settings
from service.demo.audit import Audit, Opened, audit_output, newest_rows
from service.demo.shop import Clicks, Edits, create_topic, create_users, edit_users, job_sql
from service.demo.view import render
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.jarlock import JarSet
from service.embedded.jars import JarCache
from service.embedded.java import find_java
from service.errors import ServiceError
from service.jobs.layout import JobLayout

_PREFIX = "sluice-demo-"
_POLL_S = 0.4
_SHOWN_ROWS = 8
_DEFAULT_CLICKS_PER_SECOND = 500
_RECORDS_WITHIN_S = 20
_MOST_CLICKS_PER_SECOND = 15_000


class DemoError(ServiceError):
    """The demo could not be shown."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What the command line asks for.

    Attributes:
        rows: users in the table.
        records: stop after so many joined records; None goes on until interrupted.
        plain: no live screen; one JSON object is the last line of standard output.
        port: of the control plane, 0 takes a free one.
    """

    rows: int = 200_000
    records: int | None = None
    plain: bool = False
    port: int = 0


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The demo's figures; `early_records` must be 0."""

    phase: str
    snapshot_rows: int
    held_records: int
    joined_records: int
    matched: int
    unmatched: int
    early_records: int
    dimension_version_at_open: int
    dead_letters: int
    seconds_to_first_held: float
    seconds_to_open: float
    seconds_total: float


@dataclass(frozen=True, slots=True)
class _Stage:
    """Everything that runs."""

    settings: Settings
    database: MariaDb
    kafka: KafkaBroker
    clicks: Clicks
    client: Client
    address: str


def run(options: DemoOptions) -> None:
    """Show the demo; returns after it has ended.

    Raises:
        SluiceError: a part did not start, or the job failed.
    """
    started = time.monotonic()
    talk = Console(stderr=True)
    signal.signal(signal.SIGTERM, _interrupt)
    with _stage(options, talk) as stage:
        submitted = time.monotonic()
        stage.clicks.start()
        sql = job_sql(stage.database, stage.kafka.bootstrap_servers)
        job_id = stage.client.submit(sql, name="demo")["id"]
        show = _Show(stage, job_id, options, talk)
        result = show.until_done(started, submitted)
        if options.plain:
            sys.stdout.write(json.dumps(asdict(result)) + "\n")
            sys.stdout.flush()
        else:
            talk.print(
                f"[bold]{result.joined_records:,}[/] records joined, {result.early_records} early"
            )
        stage.clicks.stop()
        stage.client.remove(job_id, output=True)
        show.wait_removed()


def _interrupt(_number: int, _frame: object) -> None:
    """SIGTERM ends the demo as Ctrl-C does: everything that was started is stopped."""
    raise KeyboardInterrupt


def _remove_stale_directories() -> None:
    """What a demo left behind that was killed with SIGKILL."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        pid = directory.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _stage(options: DemoOptions, talk: Console) -> Iterator[_Stage]:
    settings = Settings.load()
    settings.cache_dir.mkdir(parents=True, exist_ok=True)
    _remove_stale_directories()
    directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        talk.print("starting Kafka and MariaDB …")
        java = find_java(settings.cache_dir)
        cache = JarCache(settings.cache_dir, java)
        cache.jars(JarSet.SPARK)
        broker = KafkaBroker(directory / "kafka", java, cache.jars(JarSet.BROKER))
        kafka = stack.enter_context(broker)
        database = stack.enter_context(MariaDb(directory / "mariadb", cache.database_home()))
        talk.print(f"loading {options.rows:,} rows into shop.user_info …")
        create_users(database, options.rows)
        create_topic(kafka.bootstrap_servers)
        own = Settings.load(
            data_dir=directory / "data",
            warehouse_dir=directory / "warehouse",
            port=options.port,
            kafka_bootstrap_servers=kafka.bootstrap_servers,
            fold_interval_s=5.0,
            stop_with_parent=True,
        )
        plane = stack.enter_context(ControlPlane(own))
        clicks = Clicks(
            kafka.bootstrap_servers, users=options.rows, per_second=_clicks_per_second(options)
        )
        talk.print(f"control plane: [link={plane.url}]{plane.url}[/link]")
        yield _Stage(own, database, kafka, clicks, Client(plane.url), plane.url)


def _clicks_per_second(options: DemoOptions) -> int:
    wanted = (options.records or 0) // _RECORDS_WITHIN_S
    return min(max(_DEFAULT_CLICKS_PER_SECOND, wanted), _MOST_CLICKS_PER_SECOND)


class _Show:
    """Follows the job and shows it."""

    def __init__(self, stage: _Stage, job_id: str, options: DemoOptions, talk: Console) -> None:
        self._stage = stage
        self._job_id = job_id
        self._options = options
        self._talk = talk
        self._layout = JobLayout(stage.settings.jobs_dir / job_id)
        self._output = stage.settings.warehouse_dir / "enriched"
        self._edits: Edits | None = None
        self._unseen: set[int] = set()
        self._first_held_at: float | None = None
        self._opened_at: float | None = None

    def until_done(self, started: float, submitted: float) -> DemoResult:
        """Poll and show until enough is joined, or until the user interrupts."""
        if self._options.plain:
            job = self._follow(lambda job: None)
        else:
            with Live(console=self._talk, refresh_per_second=4, transient=False) as live:
                job = self._follow(
                    lambda job: live.update(render(job, self._rows(job), self._stage.address))
                )
        return self._result(job, started, submitted)

    def _follow(self, show: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        job: dict[str, Any] = {}
        try:
            while not self._is_done(job):
                time.sleep(_POLL_S)
                job = self._stage.client.job(self._job_id)
                self._notice(job)
                show(job)
        except KeyboardInterrupt:
            self._talk.print("stopping …")
        return job

    def _is_done(self, job: dict[str, Any]) -> bool:
        if job.get("state") == "FAILED":
            error = job.get("error") or {}
            raise DemoError(
                f"the demo job failed: {error.get('message', 'unknown cause')}",
                hint=error.get("hint") or "See the runner's log.",
            )
        joined = (job.get("probe") or {}).get("joined_records", 0)
        if self._options.records is None or joined < self._options.records:
            return False
        return self._edits is not None and not self._unseen

    def _notice(self, job: dict[str, Any]) -> None:
        probe = job.get("probe") or {}
        now = time.monotonic()
        if self._first_held_at is None and probe.get("held_records", 0) > 0:
            self._first_held_at = now
        if self._opened_at is None and job.get("opened_at_ms"):
            self._opened_at = now
            versions = job.get("versions_at_open")
            self._talk.print(
                f"[green]gate open[/]: {job.get('held_at_open', 0):,} held records "
                f"are joined with {versions}"
            )
        if self._opened_at is not None and self._edits is None and probe.get("joined_records", 0):
            self._edit()
        elif self._edits is not None and self._unseen:
            self._look_for_edits(self._edits)

    def _edit(self) -> None:
        edits = edit_users(self._stage.database, self._options.rows)
        self._stage.clicks.favour(edits.renamed + edits.deleted)
        self._edits, self._unseen = edits, {*edits.renamed, *edits.deleted}
        self._talk.print(f"users {edits.renamed} renamed, users {edits.deleted} deleted")

    def _look_for_edits(self, edits: Edits) -> None:
        """Say when a click of each edited user shows the edit."""
        for row in newest_rows(self._output):
            user, name = row["user_id"], row["name"]
            renamed = user in edits.renamed and name == f"renamed {user}"
            if user in self._unseen and (renamed or (user in edits.deleted and name is None)):
                self._unseen.discard(int(str(user)))
                self._talk.print(
                    f"click {row['item_id']} of user {user}: name {name or 'NULL'}, "
                    f"joined with {row['_dimension_versions']}"
                )

    def _rows(self, job: dict[str, Any]) -> list[dict[str, object]]:
        joined = (job.get("probe") or {}).get("joined_records", 0)
        return newest_rows(self._output)[-_SHOWN_ROWS:] if joined else []

    def _audit(self, job: dict[str, Any]) -> Audit:
        opened = Opened(job["opened_at_ms"], job["versions_at_open"])
        pins = PinStore(self._layout.checkpoint / "pins")
        return audit_output(
            self._output,
            pins,
            opened,
            users=self._options.rows,
            deleted=self._edits.deleted if self._edits is not None else (),
        )

    def _result(self, job: dict[str, Any], started: float, submitted: float) -> DemoResult:
        opened = self._opened_at
        audit = self._audit(job) if opened is not None else Audit(0, 0, 0, 0)
        dimension = (job.get("dimensions") or [{}])[0]
        return DemoResult(
            phase=job.get("phase", "LOAD"),
            snapshot_rows=(dimension.get("snapshot") or {}).get("rows_done", 0),
            held_records=job.get("held_at_open") or 0,
            joined_records=audit.joined_records,
            matched=audit.matched,
            unmatched=audit.unmatched,
            early_records=audit.early_records,
            dimension_version_at_open=(job.get("versions_at_open") or {}).get("user_info", -1),
            dead_letters=(job.get("probe") or {}).get("dead_letters", 0),
            seconds_to_first_held=round((self._first_held_at or time.monotonic()) - started, 2),
            seconds_to_open=round((opened or time.monotonic()) - submitted, 2),
            seconds_total=round(time.monotonic() - started, 2),
        )

    def wait_removed(self) -> None:
        """Return when the job's directory is gone, or after half a minute."""
        deadline = time.monotonic() + 30
        while self._layout.job_dir.exists() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
