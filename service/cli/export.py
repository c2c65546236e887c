"""`sluice export`: lineage and spans for other systems, from a process of its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import Server, load_settings, open_client
from service.cli.output import say

if TYPE_CHECKING:
    from service.client import Sluice
    from service.export.follow import Exporter

app = typer.Typer(
    help="Tell other systems about jobs. Nothing waits for it: jobs do not know of it.",
    no_args_is_help=True,
)
To = Annotated[
    str | None,
    typer.Option(help="Address of the receiver; left out, its own variables say.", metavar="URL"),
]
CursorFile = Annotated[
    Path | None,
    typer.Option(
        help="File that keeps how far it has come; without it all is told again at a restart.",
        metavar="FILE",
    ),
]
Every = Annotated[float, typer.Option(help="Seconds between two looks.", min=0.1)]
Once = Annotated[
    bool,
    typer.Option(
        "--once", help="Tell what there is, and end; with code 1 if the receiver is away."
    ),
]


@app.command()
def openlineage(
    to: To = None,
    namespace: Annotated[str, typer.Option(help="Of the jobs in OpenLineage.")] = "sluice",
    cursor: CursorFile = None,
    every: Every = 5.0,
    once: Once = False,
    server: Server = None,
) -> None:
    """Emit OpenLineage's events of each run: datasets, schemas, columns and how it ended.

    Without --to its own variables and openlineage.yml say where to, as OPENLINEAGE_URL.
    """
    from service.export.lineage import LineageExporter, open_receiver

    _configure()
    receiver = open_receiver(to)
    with open_client(server, attempts=6) as client:
        exporter = LineageExporter(client, receiver, namespace)
        _follow(client, exporter, cursor, every, once=once)


@app.command()
def otel(
    to: To = None,
    cursor: CursorFile = None,
    every: Every = 30.0,
    once: Once = False,
    server: Server = None,
) -> None:
    """Send OpenTelemetry spans over OTLP (HTTP): the states of each run, and its batches.

    Without --to the variables of OpenTelemetry say where to, as OTEL_EXPORTER_OTLP_ENDPOINT.
    """
    from service.export.spans import SpanExporterOfJobs, SpanSender, open_collector

    _configure()
    sender = SpanSender(open_collector(to))
    with open_client(server, attempts=6) as client:
        _follow(client, SpanExporterOfJobs(client, sender), cursor, every, once=once)


def _configure() -> None:
    from service.logs import configure_logs  # slow to load, and only these commands need it

    configure_logs(load_settings().log_level)


def _follow(
    client: "Sluice", exporter: "Exporter", cursor: Path | None, every_s: float, *, once: bool
) -> None:
    from service.export.follow import Follower, FollowPosition  # slow to load

    follower = Follower(client, exporter, FollowPosition(cursor))
    if once:
        say(f"told of {follower.catch_up()} transitions")
        return
    say("telling of jobs until it is interrupted")
    follower.run(every_s=every_s)
