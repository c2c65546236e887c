"""`sluice up`: all servers for a first try on one machine, and the next commands."""

import os
import shlex
import shutil
import signal
import sys
import webbrowser
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import Form, open_client
from service.cli.output import OutputFormat, facts_table, say, show, show_json, working

if TYPE_CHECKING:
    from service.demo.up import Up
    from service.schemas.jobs import JobSummary


class Further(StrEnum):
    """Optional servers."""

    POSTGRES = "postgres"


_FIRST = "first"  # name of the job in the provided script


def up(
    port: Annotated[
        int | None, typer.Option(help="Port of the control plane; 0 picks a free one.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Data directory; the next sluice up continues there.")
    ] = None,
    further: Annotated[
        Further | None,
        typer.Option("--with", help="Also run PostgreSQL, with Debezium writing to Kafka."),
    ] = None,
    opens: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser of this desktop.")
    ] = True,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Run Kafka, MariaDB and a control plane for a first try. Interrupt it to stop everything."""
    from service.config import Settings  # slow to load
    from service.demo.shop import provide, provide_debezium
    from service.demo.up import everything
    from service.logs import configure_logs

    configure_logs("WARNING")
    settings = Settings.load()
    directory = (data_dir or settings.data_dir / "up").expanduser().absolute()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    binaries = provide(settings.cache_dir)
    debezium = provide_debezium(settings.cache_dir, binaries.java) if further else None
    with ExitStack() as stack:
        with working("starting Kafka, MariaDB and the control plane"):
            running = stack.enter_context(everything(directory, port, binaries, debezium))
        places = _places(running, directory)
        show_json(places) if output is OutputFormat.JSON else _tell(places, settings.port)
        if opens and has_display(os.environ) and sys.stdout.isatty():
            webbrowser.open(places["page"])
        try:
            running.wait(say)
        except KeyboardInterrupt:
            say("stopping the runners, the control plane and the servers")
    say(f"stopped; data is in {directory}, and running jobs continue at the next sluice up")


def has_display(variables: Mapping[str, str]) -> bool:
    """True if a browser would have a window; a browser in the terminal would hide the output."""
    named = any(variables.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return sys.platform == "darwin" or named


def _places(running: "Up", directory: Path) -> dict[str, str]:
    return {
        "page": f"{running.url}/#/new/{_FIRST}",
        "control_plane": running.url,
        "kafka": running.kafka.bootstrap_servers,
        "mariadb": f"{running.database.host}:{running.database.port}",
        "mariadb_options": str(running.client_file),
        "script": str(running.script),
        "directory": str(directory),
        **({} if running.captured is None else running.captured.places()),
    }


def _tell(places: dict[str, str], usual_port: int) -> None:
    show(facts_table((name.replace("_", " "), value) for name, value in places.items()))
    say("")
    say("The page has an example that runs: select Submit there. Or in another terminal:")
    with open_client(places["control_plane"]) as client:
        jobs = list(client.jobs())
    for job in jobs:
        if job.desired_state == "RUNNING":
            say(f"  # {job.name} ({job.id}) continues")
    firsts = [job for job in jobs if job.name == _FIRST]
    for line in next_commands(places, usual_port, firsts):
        say(f"  {line}")


def next_commands(
    places: Mapping[str, str], usual_port: int, firsts: Sequence["JobSummary"]
) -> Iterable[str]:
    """Commands to type in another terminal.

    `firsts` are jobs of the provided script that an earlier `sluice up` left, newest first.
    """
    programs = Path(sys.executable).parent
    if shutil.which("sluice") is None and (programs / "sluice").exists():
        yield f"export PATH={shlex.quote(str(programs))}:$PATH"
    if not places["control_plane"].endswith(f":{usual_port}"):
        yield f"export SLUICE_SERVER={places['control_plane']}"
    job = firsts[0].id if len(firsts) > 1 else _FIRST
    if firsts and firsts[0].desired_state != "RUNNING":
        yield f"sluice jobs resume {job} --wait"
    elif not firsts:
        yield f"sluice submit {shlex.quote(places['script'])} --wait join"
    if "postgres_script" in places:
        yield f"sluice submit {shlex.quote(places['postgres_script'])} --wait join"
    yield f"sluice jobs watch {job}"
    yield f"sluice jobs logs {job} --follow"
    yield f"sluice jobs rm {job}"
