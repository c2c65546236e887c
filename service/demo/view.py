"""What the demo shows in a terminal while it runs."""

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from service.schemas.jobs import ChangelogChannelView, DimensionView, JobDetail, ProbeView

_PHASE_STYLE = {"LOAD": "yellow", "JOIN": "green"}


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


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


def render(job: JobDetail, rows: list[dict[str, object]], address: str) -> RenderableType:
    """The whole screen: phase and reason, the copy, what is held, the newest joined rows."""
    probe = job.probe or ProbeView(topic="")
    phase = job.phase or "LOAD"
    head = Text.assemble(
        (f" {phase} ", f"bold reverse {_PHASE_STYLE.get(phase, 'yellow')}"),
        f"  {job.state}: ",
        (job.reason, "dim"),
    )
    counts = Table.grid(padding=(0, 3))
    counts.add_row(
        f"held in Kafka: [bold]{_count(probe.held_records)}[/]",
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
