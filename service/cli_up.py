"""`sluice up`: everything for a first hour on one machine, and what to type next."""

import shlex
import signal
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from service.cli_options import Form
from service.cli_output import Output, facts_table, say, show, show_json
from service.cli_progress import working
from service.config import Settings
from service.logs import configure_logs


def up(
    port: Annotated[
        int | None, typer.Option(help="Port of the control plane, 0 takes a free one.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where all of it is kept; the next up goes on there.")
    ] = None,
    output: Form = Output.TABLE,
) -> None:
    """Run Kafka, MariaDB and a control plane for a first hour. Interrupt it to stop all of it."""
    from service.demo.servers import provide  # slow to load, and only this command needs it
    from service.demo.up import everything

    configure_logs("WARNING")
    settings = Settings.load()
    directory = (data_dir or settings.data_dir / "up").expanduser().absolute()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends as Ctrl-C does
    binaries = provide(settings.cache_dir)
    with ExitStack() as stack:
        with working("starting Kafka, MariaDB and the control plane"):
            running = stack.enter_context(everything(directory, port, binaries))
        found = {
            "control_plane": running.url,
            "kafka": running.kafka.bootstrap_servers,
            "mariadb": f"{running.database.host}:{running.database.port}",
            "mariadb_options": str(running.client_file),
            "script": str(running.script),
            "directory": str(directory),
        }
        show_json(found) if output is Output.JSON else _tell(found, settings.port)
        try:
            running.wait()
        except KeyboardInterrupt:
            say("stopping the jobs, the control plane and the servers")
    say(f"all is stopped; {directory} has the data, and the next sluice up goes on with it")


def _tell(found: dict[str, str], usual_port: int) -> None:
    show(facts_table((name.replace("_", " "), value) for name, value in found.items()))
    say("")
    say("Everything runs until you interrupt it. In another terminal:")
    for line in _next_commands(found, usual_port):
        say(f"  {line}")


def _next_commands(found: dict[str, str], usual_port: int) -> Iterable[str]:
    if not found["control_plane"].endswith(f":{usual_port}"):
        yield f"export SLUICE_SERVER={found['control_plane']}"
    yield f"sluice submit {shlex.quote(found['script'])} --wait join"
    yield "sluice jobs watch first"
    yield "sluice jobs logs first --follow"
    yield "sluice jobs rm first"
