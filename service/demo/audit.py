"""Measures in the output whether a row was joined before the copy was complete."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from joins.adapters.delta.log import DeltaLog
from joins.durable.pins import PinStore
from service.schemas.jobs import ChangelogChannelView, DimensionView, JobDetail, ProbeView

_STYLES = {"good": "green", "bad": "red"}


def _watermark(channel: ChangelogChannelView) -> Text:
    if channel.watermark.use_processing_time:
        return Text("processing time", style="green")
    return Text("MIN, waiting", style="yellow")


def _dimension(dimension: DimensionView) -> Table:
    snapshot = dimension.snapshot
    done, total = snapshot.rows_done, snapshot.rows_total or 0
    about = "~" if snapshot.rows_total_is_estimate else ""
    grid = Table.grid(padding=(0, 2))
    grid.add_row(
        "snapshot",
        ProgressBar(total=max(total, 1), completed=min(done, total), width=30),
        f"{done:,} of {about}{total:,} rows committed",
    )
    for channel in dimension.channels:
        grid.add_row(channel.channel, _watermark(channel), channel.status.lower())
    grid.add_row("version", str(dimension.changelog_version), "")
    return grid


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
