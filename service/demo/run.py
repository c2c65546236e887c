"""Runs the demo: embedded servers, the control plane, the example job, clicks and edits."""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread

import psutil
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from joins.adapters.delta.log import DeltaLog
from joins.durable.pins import PinStore
from service.api.server import ControlPlane
from service.client import RemoteJob, Sluice
from service.config import Settings
from service.demo.shop import (
    Clicks,
    Edits,
    create_topic,
    create_users,
    edit_users,
    job_sql,
    provide,
    servers,
)
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.errors import ServiceError
from service.jobs.store.job import now_ms
from service.jobs.store.layout import CREATE_TIME_TOLERANCE_S, JobLayout, living_runner
from service.jobs.supervise.hooks import default_hooks
from service.schemas.jobs import ChangelogChannelView, DimensionView, JobDetail, ProbeView

_STYLES = {"good": "green", "bad": "red"}


def _watermark(channel: ChangelogChannelView) -> Text:
    if channel.watermark.use_processing_time:
        return Text("processing time", style="green")
    return Text("MIN, waiting", style="yellow")


def _dimension(dimension: DimensionView) -> Table:
    snapshot = dimension.snapshot
    done, total = snapshot.rows_done, snapshot.rows_total
    about = "~" if snapshot.rows_total_is_estimate else ""
    of = "" if total is None else f" of {about}{total:,}"
    grid = Table.grid(padding=(0, 2))
    grid.add_row(
        "snapshot",
        ProgressBar(total=max(total or 0, 1), completed=min(done, total or 0), width=30),
        f"{done:,}{of} rows committed",
    )
    for channel in dimension.channels:
        grid.add_row(channel.channel, _watermark(channel), channel.status.lower())
    grid.add_row("version", str(dimension.changelog_version), _as_of(dimension))
    return grid


def _as_of(dimension: DimensionView) -> str:
    age_ms = None if dimension.freshness is None else dimension.freshness.age_ms
    return "" if age_ms is None else f"as of {age_ms / 1000:.1f} s ago"


def _rows(rows: list[dict[str, object]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("user_id", "item_id", "gender", "name", "_dimension_versions"):
        table.add_column(name.strip("_").replace("_", " "), style="dim" if name[0] == "_" else "")
    for row in rows:
        names = ("user_id", "item_id", "gender", "name", "_dimension_versions")
        table.add_row(*("NULL" if row[n] is None else str(row[n]) for n in names))
    return table


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def render(job: JobDetail, rows: list[dict[str, object]], address: str) -> RenderableType:
    probe = job.probe or ProbeView(topic="")
    assert job.status is not None  # its control plane is of this program
    style = f"bold reverse {_STYLES.get(job.status.tone, 'yellow')}"
    head = Text.assemble((f" {job.status.word} ", style), ("  " + job.status.sentence, "dim"))
    counts = Table.grid(padding=(0, 3))
    counts.add_row(
        f"waiting in Kafka: [bold]{_count(probe.held_records)}[/]",
        f"joined: [bold]{probe.joined_records:,}[/]",
        f"matched: {_count(probe.matched)}",
        f"unmatched: {_count(probe.unmatched)}",
        f"lag: {_count(probe.lag_records)}",
    )
    parts: list[RenderableType] = [head, Text(""), counts, Text("")]
    parts += [_dimension(dimension) for dimension in job.dimensions]
    if rows:
        parts += [Text(""), _rows(rows)]
    return Panel(Group(*parts), title="sluice demo", subtitle=address, padding=(1, 2))


_COLUMNS = ["user_id", "gender", "_batch"]
_SHOWN_COLUMNS = ["user_id", "item_id", "gender", "name", "_dimension_versions"]


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit of the output table."""

    joined_records: int
    matched: int
    unmatched: int
    # rows whose pin is older than the opening, and unmatched rows of users that were in the table
    # at HIGH and never deleted
    early_records: int


@dataclass(frozen=True, slots=True)
class Opened:
    """The gate's opening, from the job's status."""

    at_ms: int
    versions: Mapping[str, int]


def audit_output(
    output: Path, pins: PinStore, opened: Opened, *, users: int, deleted: Collection[int]
) -> Audit:
    """Read every row of `output`; users 1 to `users` existed, and none had gender NULL."""
    log = DeltaLog(output, "audit")
    tables = list(log.files.read_files(log.files.files_at(log.version()), _COLUMNS))
    rows = pa.concat_tables(tables) if tables else pa.table({name: [] for name in _COLUMNS})
    unmatched = rows.filter(pc.is_null(rows.column("gender")))
    early_batches = [
        b for b in pc.unique(rows.column("_batch")).to_pylist() if _is_early(pins, b, opened)
    ]
    early = pc.is_in(rows.column("_batch"), pa.array(early_batches, pa.int64()))
    present = [
        user
        for user in unmatched.column("user_id").to_pylist()
        if user is not None and 1 <= user <= users and user not in deleted
    ]
    return Audit(
        joined_records=rows.num_rows,
        matched=rows.num_rows - unmatched.num_rows,
        unmatched=unmatched.num_rows,
        early_records=(pc.sum(early).as_py() or 0) + len(present),
    )


def _is_early(pins: PinStore, batch: int, opened: Opened) -> bool:
    pin = pins.read(batch)
    if pin is None or pin.batch_timestamp_ms < opened.at_ms:
        return True
    return any(pin.versions.get(name, -1) < version for name, version in opened.versions.items())


class NewestRows:
    """The rows of the output's newest non-empty commit, read once."""

    def __init__(self, output: Path) -> None:
        self._log = DeltaLog(output, "audit")
        self._version = 0
        self._rows = pa.table({})

    def last(self, count: int) -> list[dict[str, object]]:
        rows = self._newest()
        return list(rows.slice(max(rows.num_rows - count, 0)).to_pylist())

    def first_of(self, users: Collection[int]) -> list[dict[str, object]]:
        """The first row of each of `users` that has one."""
        rows = self._newest()
        if not rows.num_rows:
            return []
        places = [pc.index(rows.column("user_id"), user).as_py() for user in sorted(users)]
        present = [place for place in places if place >= 0]
        return list(rows.take(pa.array(present, pa.int64())).to_pylist())

    def _newest(self) -> pa.Table:
        newest = self._log.version()
        for version in range(newest, self._version, -1):
            rows = self._log.files.read_commit(version, _SHOWN_COLUMNS)
            if rows.num_rows:
                self._rows = rows
                break
        self._version = newest
        return self._rows


_PREFIX = "sluice-demo-"
_DATA = "data"
_STOP_TIMEOUT_S = 15.0
_POLL_S = 0.4
_SHOWN_ROWS = 8
_DEFAULT_CLICKS_PER_SECOND = 500
_RECORDS_WITHIN_S = 20
_MOST_CLICKS_PER_SECOND = 15_000


class DemoError(ServiceError, fault="demo"):
    """The demo's job failed."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of the command line; `records` None runs until interrupted.

    `plain`: no live screen; one JSON object is the last line of standard output.
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
    """The demo's running parts."""

    settings: Settings
    database: MariaDb
    kafka: KafkaBroker
    clicks: Clicks
    client: Sluice
    address: str


def run(options: DemoOptions) -> None:
    """Show the demo until it ends. Raises SluiceError if a part does not start or the job fails."""
    started = time.monotonic()
    talk = Console(stderr=True)
    signal.signal(signal.SIGTERM, _interrupt)
    with _stage(options, talk) as stage:
        submitted_at_ms = now_ms()
        stage.clicks.start()
        sql = job_sql(stage.database, stage.kafka.bootstrap_servers)
        job = stage.client.submit(sql, name="demo")
        show = _Show(stage, job, options, talk)
        result = show.until_done(started, submitted_at_ms)
        if options.plain:
            sys.stdout.write(json.dumps(asdict(result)) + "\n")
            sys.stdout.flush()
        else:
            talk.print(
                f"[bold]{result.joined_records:,}[/] records joined, {result.early_records} early"
            )
        stage.clicks.stop()
        job.delete(output=True)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def remove_stale_directories() -> None:
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*-*"):
        if not _in_use(directory):
            shutil.rmtree(directory, ignore_errors=True)


def _in_use(directory: Path) -> bool:
    """True if the demo of `directory` lives, or a runner that has outlived it."""
    pid, started_at_ms, *_ = directory.name.removeprefix(_PREFIX).split("-")
    if not (pid.isdigit() and started_at_ms.isdigit()):
        return True
    try:
        started_at_s = psutil.Process(int(pid)).create_time()
        if abs(started_at_s - int(started_at_ms) / 1000) < CREATE_TIME_TOLERANCE_S:
            return True
    except psutil.NoSuchProcess:
        pass
    jobs = (directory / _DATA / "jobs").glob("*")
    return any(living_runner(job_dir) is not None for job_dir in jobs)


@contextmanager
def _stage(options: DemoOptions, talk: Console) -> Iterator[_Stage]:
    settings = Settings.load()
    remove_stale_directories()
    started_at_ms = int(psutil.Process().create_time() * 1000)
    directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-{started_at_ms}-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        talk.print("starting Kafka and MariaDB …")
        binaries = provide(settings.cache_dir)
        hooks = default_hooks()
        Thread(target=hooks.warm_up, name="warm-up", daemon=True).start()  # while servers start
        kafka, database = stack.enter_context(servers(directory, binaries))
        talk.print(f"loading {options.rows:,} rows into shop.user_info …")
        create_users(database, options.rows)
        create_topic(kafka.bootstrap_servers)
        own = Settings.load(
            data_dir=directory / _DATA,
            warehouse_dir=directory / "warehouse",
            port=options.port,
            kafka_bootstrap_servers=kafka.bootstrap_servers,
            fold_interval_s=5.0,
            stop_with_parent=True,
            stop_timeout_s=_STOP_TIMEOUT_S,
        )
        plane = stack.enter_context(ControlPlane(own, hooks=hooks))
        clicks = Clicks(
            kafka.bootstrap_servers, users=options.rows, per_second=_clicks_per_second(options)
        )
        talk.print(f"control plane: [link={plane.url}]{plane.url}[/link]")
        yield _Stage(own, database, kafka, clicks, Sluice(plane.url), plane.url)


def _clicks_per_second(options: DemoOptions) -> int:
    rate = (options.records or 0) // _RECORDS_WITHIN_S
    return min(max(_DEFAULT_CLICKS_PER_SECOND, rate), _MOST_CLICKS_PER_SECOND)


class _Show:
    def __init__(self, stage: _Stage, job: RemoteJob, options: DemoOptions, talk: Console) -> None:
        self._stage = stage
        self._job = job
        self._options = options
        self._talk = talk
        self._layout = JobLayout(stage.settings.jobs_dir / job.id)
        self._output = stage.settings.warehouse_dir / "enriched"
        self._newest = NewestRows(self._output)
        self._edits: Edits | None = None
        self._unseen: set[int] = set()
        self._first_held_at: float | None = None
        self._opened = False

    def until_done(self, started: float, submitted_at_ms: int) -> DemoResult:
        if self._options.plain:
            job = self._follow(lambda job: None)
        else:
            with Live(console=self._talk, refresh_per_second=4, transient=False) as live:
                job = self._follow(
                    lambda job: live.update(render(job, self._rows(job), self._stage.address))
                )
        return self._result(job, started, submitted_at_ms)

    def _follow(self, show: Callable[[JobDetail], None]) -> JobDetail:
        job = self._job.status()
        try:
            while not self._is_done(job):
                time.sleep(_POLL_S)
                job = self._job.status()
                self._notice(job)
                show(job)
        except KeyboardInterrupt:
            self._talk.print("stopping …")
        return job

    def _is_done(self, job: JobDetail) -> bool:
        if job.state == "FAILED":
            error = job.error
            raise DemoError(
                f"the demo job failed: {'unknown cause' if error is None else error.message}",
                hint="See the runner's log." if error is None else error.hint,
            )
        if self._options.records is None or _joined(job) < self._options.records:
            return False
        return self._edits is not None and not self._unseen

    def _notice(self, job: JobDetail) -> None:
        held = 0 if job.probe is None else job.probe.held_records
        if self._first_held_at is None and held:
            self._first_held_at = time.monotonic()
        if not self._opened and job.opened_at_ms:
            self._opened = True
            opened = job.versions_at_open.items()
            versions = ", ".join(f"{name} at version {at}" for name, at in opened)
            self._talk.print(
                f"[green]copies complete[/]: {job.held_at_open or 0:,} held records "
                f"are joined with {versions}"
            )
        if self._opened and self._edits is None and _joined(job):
            edits = edit_users(self._stage.database, self._options.rows)
            self._stage.clicks.favour(edits.renamed + edits.deleted)
            self._edits, self._unseen = edits, {*edits.renamed, *edits.deleted}
            self._talk.print(f"users {edits.renamed} renamed, users {edits.deleted} deleted")
        elif self._edits is not None and self._unseen:
            for row in self._newest.first_of(self._unseen):
                user, name = int(str(row["user_id"])), row["name"]
                if name == (f"renamed {user}" if user in self._edits.renamed else None):
                    self._unseen.discard(user)
                    self._talk.print(
                        f"click {row['item_id']} of user {user}: name {name or 'NULL'}, "
                        f"joined with {row['_dimension_versions']}"
                    )

    def _rows(self, job: JobDetail) -> list[dict[str, object]]:
        return self._newest.last(_SHOWN_ROWS) if _joined(job) else []

    def _audit(self, job: JobDetail) -> Audit:
        if not job.opened_at_ms:
            return Audit(0, 0, 0, 0)
        opened = Opened(job.opened_at_ms, job.versions_at_open)
        pins = PinStore(self._layout.checkpoint / "pins")
        return audit_output(
            self._output,
            pins,
            opened,
            users=self._options.rows,
            deleted=self._edits.deleted if self._edits is not None else (),
        )

    def _result(self, job: JobDetail, started: float, submitted_at_ms: int) -> DemoResult:
        audit = self._audit(job)
        return DemoResult(
            phase=job.phase or "LOAD",
            snapshot_rows=sum(table.snapshot.rows_done for table in job.dimensions),
            held_records=job.held_at_open or 0,
            joined_records=audit.joined_records,
            matched=audit.matched,
            unmatched=audit.unmatched,
            early_records=audit.early_records,
            dimension_version_at_open=job.versions_at_open.get("user_info", -1),
            dead_letters=0 if job.probe is None else job.probe.dead_letters,
            seconds_to_first_held=round((self._first_held_at or time.monotonic()) - started, 2),
            seconds_to_open=round(((job.opened_at_ms or now_ms()) - submitted_at_ms) / 1000, 2),
            seconds_total=round(time.monotonic() - started, 2),
        )


def _joined(job: JobDetail) -> int:
    return 0 if job.probe is None else job.probe.joined_records
