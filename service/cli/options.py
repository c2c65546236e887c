"""What commands share: arguments, options, their completion, and the client."""

import os
import threading
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from service.cli.output import OutputFormat
from service.security.credentials import DEFAULT_HOST, DEFAULT_PORT, Credentials
from watermark.errors import SluiceError

if TYPE_CHECKING:
    from service.client import Sluice
    from service.config import Settings
    from service.schemas.jobs import JobSummary

_COMPLETION_PATIENCE_S = 1.0
_PLACE_VARIABLES = ("SLUICE_HOST", "SLUICE_PORT", "SLUICE_TLS_CERT")
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class DataCommand(TyperCommand):
    """A command; where its data has a form, `--json` is short for `--output json`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 (private in typer)
        """Read the arguments, the short form first written out."""
        if any("--output" in param.opts for param in self.params):
            end = args.index("--") if "--" in args else len(args)
            words = (["--output", "json"] if word == "--json" else [word] for word in args[:end])
            args = [*chain.from_iterable(words), *args[end:]]
        return super().parse_args(ctx, args)


def open_client(server: str | None, *, attempts: int = 1) -> "Sluice":
    """A client of `server`, else of the control plane that the settings name."""
    from service.client import Sluice  # slow to load, and the help does without

    shown = Credentials.of_environment()
    return Sluice(_address(server), token=shown.token, ca_file=shown.ca_file, attempts=attempts)


def load_settings(**options: object) -> "Settings":
    """The settings of this process.

    Args:
        options: those of the command.

    Raises:
        ConfigError: one is not what it may be.
    """
    from service.config import Settings  # slow to load, and seldom needed

    return Settings.load(**options)


def _address(server: str | None) -> str:
    if server is not None:
        return server
    if not any(os.environ.get(name) for name in _PLACE_VARIABLES):
        return f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
    settings = load_settings()
    host = _ANY_ADDRESS.get(settings.host, settings.host)
    host = f"[{host}]" if ":" in host else host
    scheme = "http" if settings.tls_cert is None else "https"
    return f"{scheme}://{host}:{settings.port}"


def complete_job(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids and names of jobs that begin with `incomplete`, for a shell that is waiting.

    Says nothing, whatever happens, and waits for a second at the most.
    """
    jobs: list[JobSummary] = []
    server = context.params.get("server")

    def ask() -> None:
        try:
            with open_client(server) as client:
                jobs.extend(client.jobs())
        except (SluiceError, ValueError):
            return  # no control plane, or another program at its address: there is nothing to offer

    asking = threading.Thread(target=ask, name="completion", daemon=True)
    asking.start()
    asking.join(_COMPLETION_PATIENCE_S)
    return list(_references(tuple(jobs), incomplete))


def _references(jobs: Iterable["JobSummary"], incomplete: str) -> Iterator[tuple[str, str]]:
    for job in jobs:
        if job.id.startswith(incomplete):
            yield job.id, f"{job.name} {job.state}"
    if incomplete:
        for name in dict.fromkeys(job.name for job in jobs):
            if name.startswith(incomplete) and " " not in name:  # a shell would split it
                yield name, "job"


Server = Annotated[
    str | None, typer.Option(help="Address of the control plane.", envvar="SLUICE_SERVER")
]
Form = Annotated[
    OutputFormat,
    typer.Option("--output", "-o", help="Form of the data on standard output; or --json."),
]
Job = Annotated[
    str,
    typer.Argument(
        help="Id, unique beginning of an id, or name.", metavar="JOB", autocompletion=complete_job
    ),
]
Sink = Annotated[
    str | None,
    typer.Option(help="Of a statement set: the table, or the number, of the INSERT that is meant."),
]
Timeout = Annotated[
    float, typer.Option(help="Seconds to wait at the most.", metavar="SECONDS", min=0.0)
]
Key = Annotated[str | None, typer.Option(help="Idempotency key: the same key is the same request.")]
Script = Annotated[
    Path, typer.Argument(help="The SQL script, - for standard input.", metavar="SCRIPT")
]
