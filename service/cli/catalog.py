"""`sluice tables create | ls | get | rm`: tables and views that every later script may name."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from service.cli.options import Form, Server, open_client
from service.cli.output import (
    OutputFormat,
    clean,
    facts_table,
    number,
    one_line,
    say,
    show,
    table,
    tell,
)
from service.cli.progress import working
from service.cli.scripts import read_script, warn

if TYPE_CHECKING:
    from service.schemas.catalog import CatalogTable, CatalogTableDetail, TableCreation

app = typer.Typer(help="Keep tables and views for every later script.", no_args_is_help=True)
CatalogName = Annotated[str, typer.Argument(help="Name of the table or view.")]


@app.command("create")
def create_tables(
    script: Annotated[
        Path, typer.Option("--file", "-f", help="The CREATE statements, - for standard input.")
    ],
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Keep the tables and views of a script; a shared table begins its copy."""
    sql = read_script(script)
    with open_client(server) as client, working("checking what the script names"):
        creation = client.create_tables(sql)
    tell(creation, output, show_creation)


def show_creation(creation: "TableCreation") -> None:
    """What a script has brought into the catalog."""
    warn(creation.warnings)
    for name in creation.created:
        typer.echo(one_line(name))
    for name in creation.kept:
        say(f"{one_line(name)} is there already")


@app.command("ls")
def list_tables(server: Server = None, output: Form = OutputFormat.TABLE) -> None:
    """List tables and views; of shared tables their state, version, lag and readers."""
    with open_client(server) as client:
        tables = client.tables()
    tell(tables, output, _show_tables)


def _show_tables(tables: Iterable["CatalogTable"]) -> None:
    rows = table("NAME", "KIND", "STATE", "PHASE", "VERSION", "ROWS", "LAG", "JOBS")
    for each in tables:
        numbers = map(number, (each.version, each.snapshot_rows, each.lag_records))
        jobs = "-" if each.job_id is None else str(len(each.attached))
        rows.add_row(
            one_line(each.name), each.kind, each.state or "-", each.phase or "-", *numbers, jobs
        )
    show(rows)


@app.command("get")
def get_table(name: CatalogName, server: Server = None, output: Form = OutputFormat.TABLE) -> None:
    """Show a table or view: its statement, how far its copy is, who reads it."""
    with open_client(server) as client:
        answer = client.table(name)
    tell(answer, output, _show_table)


def _show_table(answer: "CatalogTableDetail") -> None:
    facts = [("name", one_line(answer.name)), ("kind", answer.kind)]
    if answer.job_id is not None:
        facts += [
            ("job", answer.job_id),
            ("state", f"{answer.state} ({answer.phase or '-'})"),
            ("reason", one_line(answer.reason or "-", 500)),
            ("version", number(answer.version)),
            ("rows of the copy", number(answer.snapshot_rows)),
            ("lag", number(answer.lag_records)),
            *(("read by", f"{one.id} {one_line(one.name)}") for one in answer.attached),
        ]
    show(facts_table(facts), Text(""))
    typer.echo(clean(answer.sql))


@app.command("rm")
def remove_table(name: CatalogName, server: Server = None) -> None:
    """Drop a table or view; one that jobs or views use stays."""
    with open_client(server) as client:
        client.drop_table(name)
    say(f"{one_line(name)} is dropped")
