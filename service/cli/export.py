"""`sluice export`: sends lineage and spans to other systems, in a separate process."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import Server, load_settings, open_client
from service.cli.output import say

if TYPE_CHECKING:
    from service.client import Sluice
    from service.export.follow import Exporter

app = typer.Typer(
    help="Export lineage and spans of jobs. Jobs do not depend on it.",
    no_args_is_help=True,
)
To = Annotated[
    str | None,
    typer.Option(help="Receiver address; default: its environment variables.", metavar="URL"),
]
CursorFile = Annotated[
    Path | None,
    typer.Option(
        help="File that stores the position; without it a restart exports everything again.",
        metavar="FILE",
    ),
]
Every = Annotated[float, typer.Option(help="Seconds between two polls.", min=0.1)]
Once = Annotated[
    bool,
    typer.Option("--once", help="Export once and exit; code 1 if the receiver is unreachable."),
]


@app.command()
def openlineage(
    to: To = None,
    namespace: Annotated[str, typer.Option(help="Namespace of jobs in OpenLineage.")] = "sluice",
    cursor: CursorFile = None,
    every: Every = 5.0,
    once: Once = False,
    server: Server = None,
) -> None:
    """Send OpenLineage events of each run: datasets, schemas, columns and outcome.

    Without --to, openlineage.yml or its variables such as OPENLINEAGE_URL name the receiver.
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
    """Send OpenTelemetry spans over OTLP (HTTP): states and batches of each run.

    Without --to, variables such as OTEL_EXPORTER_OTLP_ENDPOINT name the receiver.
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
        say(f"exported {follower.catch_up()} transitions")
        return
    say("exporting until interrupted")
    follower.run(every_s=every_s)
