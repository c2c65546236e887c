"""`sluice tables`: the catalog; `sluice dim`, `preview`, `verify`: tables and output of a job."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from service.cli.options import Form, Job, Server, Sink, Timeout, complete_table, open_client
from service.cli.output import (
    OutputFormat,
    clean,
    console,
    facts_table,
    instant,
    number,
    one_line,
    say,
    say_more,
    show,
    table,
    tell,
    warn,
    working,
)
from service.cli.scripts import read_script
from service.jobs.store.job import STATE_WORDS, JobState

if TYPE_CHECKING:
    from service.schemas.tables import (
        AbsentKey,
        CatalogTable,
        CatalogTableDetail,
        DimensionChanges,
        DimensionHistory,
        DimensionRows,
        DimensionVersions,
        OldestOfKey,
        Preview,
        PreviewBatch,
        PreviewRow,
        RowChange,
        TableCreation,
        VersionOfKey,
    )
    from service.schemas.verification import TableVerification, VerificationReport

_CELL = 100
_COORDINATES = ("_topic", "_partition", "_offset")
_SHORT_FOR = {*_COORDINATES, "_batch", "_dimension_versions"}  # RECORD and BATCH replace them
_MARKS = {"insert": "+", "delete": "-", "update": "~"}
_REASONS = {
    "deleted": "was deleted",
    "not-copied-again": "is not in the newest snapshot",
    "no-record": "has no record",
}
app = typer.Typer(help="Show the tables that a job joins with.", no_args_is_help=True)
catalog = typer.Typer(help="Manage the catalog of tables and views.", no_args_is_help=True)
CatalogName = Annotated[str, typer.Argument(help="Name of the table or view.")]
TableName = Annotated[
    str, typer.Argument(help="Name of the table in the script.", autocompletion=complete_table)
]
Limit = Annotated[int, typer.Option(help="Maximum number of rows.", min=1, max=1000)]
PageCursor = Annotated[str | None, typer.Option(help="Cursor of the previous page.")]


@app.command("ls")
def list_dimensions(job: Job, server: Server = None, output: Form = OutputFormat.TABLE) -> None:
    """List the tables of a job with their readable versions."""
    with open_client(server) as client:
        tell(client.job(job).dimensions(), output, _show_versions)


def _show_versions(tables: Iterable["DimensionVersions"]) -> None:
    rows = table("TABLE", "SOURCE", "KEY", "OLDEST", "NEWEST", "PINNED", "COMPLETE")
    for each in tables:
        versions = map(number, (each.oldest_version, each.version, each.pinned_version))
        key = one_line(", ".join(each.primary_key))
        names = (one_line(each.table), one_line(each.source), key)
        rows.add_row(*names, *versions, "yes" if each.complete else "no")
    show(rows)


@app.command("get")
def get_rows(
    job: Job,
    name: TableName,
    keys: Annotated[
        list[str] | None,
        typer.Argument(help="Keys; a composite key as a JSON array, such as '[\"DE\",7]'."),
    ] = None,
    version: Annotated[
        int | None, typer.Option(help="Version; default: the newest.", min=0)
    ] = None,
    limit: Limit = 100,
    cursor: PageCursor = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show rows of a table as the join saw them; exits with 1 if a key has no row."""
    if cursor is not None and (keys or version is not None):
        raise typer.BadParameter("--cursor cannot be combined with keys or --version")
    with open_client(server) as client:
        answer = client.job(job).dimension(name).at(version).rows(keys or None).page(limit, cursor)
    tell(answer, output, _show_rows)
    if answer.absent:
        raise typer.Exit(1)


def _show_rows(answer: "DimensionRows") -> None:
    names = [column.name for column in answer.columns]
    rows = table(*(one_line(name) for name in names), "CHANGED AT")
    for item in answer.items:
        at_ms = item.source_ts_ms
        changed = "-" if at_ms is None else instant(at_ms)
        rows.add_row(*_cells(item.values, names), changed)
    show(rows)
    for absent in answer.absent:
        say(f"key {_shown(absent.key)} {_why(absent)}{_when(absent)}")
    if not answer.complete:
        say(f"version {answer.version} is incomplete: a snapshot of the table is running")
    say_more(answer.next_cursor)


def _why(absent: "AbsentKey | OldestOfKey") -> str:
    return _REASONS.get(absent.reason or "", str(absent.reason))


def _when(absent: "AbsentKey | OldestOfKey") -> str:
    at_ms = absent.source_ts_ms
    return f" at {instant(at_ms)}" if at_ms else ""


@app.command("diff")
def show_changes(
    job: Job,
    name: TableName,
    first: Annotated[
        int | None, typer.Option("--from", help="Earlier version; not with --cursor.", min=0)
    ] = None,
    last: Annotated[
        int | None, typer.Option("--to", help="Later version; default: the newest.", min=0)
    ] = None,
    limit: Limit = 100,
    cursor: PageCursor = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show which rows were inserted (+), updated (~) or deleted (-) between two versions."""
    if cursor is not None and (first is not None or last is not None):
        raise typer.BadParameter("--cursor cannot be combined with --from or --to")
    if cursor is None and first is None:
        raise typer.BadParameter("--from is missing: the earlier version")
    if first is not None and last is not None and first >= last:
        raise typer.BadParameter(f"--from {first} is not before --to {last}")
    with open_client(server) as client:
        tell(
            client.job(job).dimension(name).between(first, last).page(limit, cursor),
            output,
            _show_changes,
        )


def _show_changes(changes: "DimensionChanges") -> None:
    rows = table("", "KEY", "BEFORE", "AFTER")
    for item in changes.items:
        before, after = _changed(item, changes.primary_key)
        rows.add_row(_MARKS.get(item.change, item.change), _shown(item.key), before, after)
    show(rows)
    if not changes.complete:
        say("one of the versions is incomplete: a snapshot of the table is or was running")
    say_more(changes.next_cursor)


def _changed(item: "RowChange | VersionOfKey", key: Iterable[str]) -> tuple[str, str]:
    """Values before and after; for an update only the changed ones."""
    before, after = item.before or {}, item.after or {}
    names = [name for name in {**before, **after} if name not in set(key)]
    if item.change == "update":
        names = [name for name in names if before.get(name) != after.get(name)]
    sides = ({n: side[n] for n in names if n in side} for side in (before, after))
    old, new = (_shown(side) if side else "" for side in sides)
    return old, new


@app.command("history")
def show_history(
    job: Job,
    name: TableName,
    key: Annotated[
        str | None,
        typer.Argument(help="Key, a composite one as a JSON array; not with --cursor."),
    ] = None,
    limit: Limit = 100,
    cursor: PageCursor = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show which versions inserted (+), updated (~) or deleted (-) the row of a key."""
    if cursor is not None and key is not None:
        raise typer.BadParameter("--cursor cannot be combined with a key")
    if cursor is None and key is None:
        raise typer.BadParameter("the key is missing")
    with open_client(server) as client:
        tell(
            client.job(job).dimension(name).history(key).page(limit, cursor), output, _show_history
        )


def _show_history(history: "DimensionHistory") -> None:
    rows = table("VERSION", "", "BEFORE", "AFTER", "CHANGED AT", "IN THE TABLE AT")
    for item in history.items:
        instants = (item.source_ts_ms, item.committed_at_ms)
        times = ("-" if at_ms is None else instant(at_ms) for at_ms in instants)
        mark = _MARKS.get(item.change, item.change)
        rows.add_row(number(item.version), mark, *_changed(item, history.primary_key), *times)
    show(rows)
    if history.beginning is not None:
        first = history.beginning
        state = _why(first) if first.values is None else f"had {_shown(first.values)}"
        begins = f"the history begins with version {first.version}, the oldest readable one"
        say(f"{begins}: key {_shown(history.key)} {state}{_when(first)}")
    say_more(history.next_cursor)


def preview(
    job: Job,
    limit: Limit = 20,
    sink: Sink = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show the newest rows of a job's Delta output and the batches that wrote them."""
    with open_client(server) as client:
        tell(client.job(job).inspect.preview(limit=limit, sink=sink), output, _show_preview)


def _show_preview(answer: "Preview") -> None:
    names = [column.name for column in answer.columns]
    has_batches = console().is_terminal and "_batch" in names
    has_records = has_batches and set(_COORDINATES) <= set(names)
    own = [n for n in names if n not in _SHORT_FOR] if has_batches else names
    heads = [*(("RECORD",) if has_records else ()), *(("BATCH",) if has_batches else ())]
    rows = table(*(one_line(name) for name in own), *heads)
    topics = {str(item.values.get(_COORDINATES[0])) for item in answer.items}
    for item in answer.items:
        record = [_record(item, has_topic=len(topics) > 1)] if has_records else []
        batch = [number(item.batch)] if has_batches else []
        rows.add_row(*_cells(item.values, own), *record, *batch)
    show(rows)
    if answer.batches:
        topic = (
            [("topic", one_line(next(iter(topics))))] if has_records and len(topics) == 1 else []
        )
        show(Text(""), facts_table([*topic, *_batch_facts(answer.batches)]))
    if not answer.items:
        say("the job has written no rows yet")


def _record(row: "PreviewRow", *, has_topic: bool) -> str:
    places = [row.values.get(name) for name in _COORDINATES[0 if has_topic else 1 :]]
    return "-" if None in places else one_line("/".join(map(str, places)))


def _batch_facts(batches: Iterable["PreviewBatch"]) -> Iterable[tuple[str, str]]:
    for batch in batches:
        replay = f"replay {batch.replay}"
        name = replay if batch.batch is None else f"batch {batch.batch}"
        rows = f"{number(batch.rows)} row{'' if batch.rows == 1 else 's'}"
        versions = _shown((batch.pin or {}).get("versions") or {})
        met = f", versions {versions}" if versions else ""
        at_ms = batch.committed_at_ms
        committed = "" if at_ms is None else f", committed {instant(at_ms)}"
        yield name, one_line(f"{rows}{met}{committed}", 300)


def _cells(values: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    return [_cell(values.get(name)) for name in names]


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    return one_line(value if isinstance(value, str) else json.dumps(value), _CELL)


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{one_line(name)}={_cell(value)}" for name, value in values.items())


# The catalog
# --------------------------------------------------------------------------------------------------


@catalog.command("create")
def create_tables(
    script: Annotated[
        Path, typer.Option("--file", "-f", help="Script of CREATE statements; - for stdin.")
    ],
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Create the tables and views of a script; a shared table starts its copy."""
    sql = read_script(script)
    with open_client(server) as client, working("checking the script"):
        creation = client.catalog.create(sql)
    tell(creation, output, show_creation)


def show_creation(creation: "TableCreation") -> None:
    warn(creation.warnings)
    for name in creation.created:
        typer.echo(one_line(name))
    for name in creation.kept:
        say(f"{one_line(name)} already exists")


@catalog.command("ls")
def list_tables(server: Server = None, output: Form = OutputFormat.TABLE) -> None:
    """List tables and views; of shared tables their state, version, lag and readers."""
    with open_client(server) as client:
        tell(client.catalog.tables(), output, _show_tables)


def _word(state: str | None) -> str:
    """The word of a stored state; that of a newer control plane as it is."""
    if state is None:
        return "-"
    return STATE_WORDS[JobState(state)] if state in list(JobState) else state


def _show_tables(tables: Iterable["CatalogTable"]) -> None:
    rows = table("NAME", "KIND", "STATE", "VERSION", "ROWS", "LAG", "JOBS")
    for each in tables:
        numbers = map(number, (each.version, each.snapshot_rows, each.lag_records))
        jobs = "-" if each.job_id is None else str(len(each.attached))
        rows.add_row(one_line(each.name), each.kind, _word(each.state), *numbers, jobs)
    show(rows)


@catalog.command("get")
def get_table(name: CatalogName, server: Server = None, output: Form = OutputFormat.TABLE) -> None:
    """Show a table or view: its statement, the progress of its copy, its readers."""
    with open_client(server) as client:
        tell(client.catalog.table(name), output, _show_table)


def _show_table(answer: "CatalogTableDetail") -> None:
    facts = [("name", one_line(answer.name)), ("kind", answer.kind)]
    if answer.job_id is not None:
        facts += [
            ("job", answer.job_id),
            ("state", _word(answer.state)),
            ("reason", one_line(answer.reason or "-", 500)),
            ("version", number(answer.version)),
            ("copied rows", number(answer.snapshot_rows)),
            ("lag", number(answer.lag_records)),
            *(("read by", f"{one.id} {one_line(one.name)}") for one in answer.attached),
        ]
    show(facts_table(facts), Text(""))
    typer.echo(clean(answer.sql))


@catalog.command("rm")
def remove_table(name: CatalogName, server: Server = None) -> None:
    """Drop a table or view that no job or view uses."""
    with open_client(server) as client:
        client.catalog.drop(name)
    say(f"{one_line(name)} dropped")


def read_share(text: str) -> float:
    """The share in `text`, such as 5% or 0.05; raises typer.BadParameter."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise typer.BadParameter(f'"{text}" is no share, expected 5% or 0.05')
    return share


def verify(
    job: Job,
    of_table: Annotated[
        str | None, typer.Option("--table", help="Only this table of the job; default: all.")
    ] = None,
    sample: Annotated[
        float,
        typer.Option(
            help="Share of the chunks to compare, such as 5%.", metavar="SHARE", parser=read_share
        ),
    ] = "100%",  # type: ignore[assignment]  # typer gives it to the parser
    rows_per_s: Annotated[
        int | None, typer.Option(help="Rows a second to read from the source.", min=1)
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Send rows that differ again, then compare again.")
    ] = False,
    timeout: Timeout = 3600.0,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Compare tables with their sources as of one position; the job joins meanwhile.

    Exits with 1 if a row differs, or a table cannot be compared.
    """
    with open_client(server) as client:
        report = client.job(job).inspect.verify(
            of_table, sample=sample, rows_per_s=rows_per_s, repair=repair, timeout_s=timeout
        )
    tell(report, output, _show_verified)
    if not report.ok:
        raise typer.Exit(1)


def _show_verified(report: "VerificationReport") -> None:
    rows = table("TABLE", "RESULT", "ROWS", "DIFFERENCES", "POSITION")
    for each in report.tables:
        position = " ".join(f"{name} {value}" for name, value in each.position.items())
        rows.add_row(
            one_line(each.table),
            one_line(each.state),
            number(each.rows),
            number(each.differences),
            one_line(position),
        )
    show(rows)
    for each in report.tables:
        _show_differences(each)


def _show_differences(verified: "TableVerification") -> None:
    name = one_line(verified.table)
    if verified.repaired is not None:
        done = verified.repaired
        say(f"{name}: {number(done.written)} rows sent again, {number(done.deleted)} deleted")
    if verified.not_repaired is not None:
        say(f"{name}: not repaired: {one_line(verified.not_repaired, 500)}")
    if verified.reason is not None:
        say(f"{name}: {one_line(verified.reason, 500)}")
    if verified.hint is not None:
        say(f"hint: {one_line(verified.hint, 500)}")
    if not verified.finds_extra:
        say(f"{name}: a sample does not find rows that only the copy has; verify all chunks")
    if not verified.items:
        return
    rows = table("KEY", "DIFFERENCE", "COPY", "SOURCE", "SINCE VERSION")
    for item in verified.items:
        since = "-" if item.since_version is None else number(item.since_version)
        rows.add_row(
            _text(item.key), one_line(item.kind), _text(item.ours), _text(item.theirs), since
        )
    show(rows)


def _text(values: Mapping[str, Any] | None) -> str:
    return "-" if values is None else one_line(json.dumps(values, ensure_ascii=False), _CELL)
