"""Arguments and options that commands share, their completion, and the client."""

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from service.cli.output import OutputFormat
from service.security.tokens import Credentials
from watermark.errors import SluiceError

if TYPE_CHECKING:
    from service.client import Sluice
    from service.config import Settings
    from service.schemas.jobs import JobDetail, JobSummary

Offered = TypeVar("Offered")
_COMPLETION_PATIENCE_S = 1.0
_SENTENCE = 400


class DataCommand(TyperCommand):
    """A command; with an option `--output`, `--json` is short for `--output json`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 (private in typer)
        if any("--output" in param.opts for param in self.params):
            end = args.index("--") if "--" in args else len(args)
            words = (["--output", "json"] if word == "--json" else [word] for word in args[:end])
            args = [*chain.from_iterable(words), *args[end:]]
        return super().parse_args(ctx, args)

    def get_short_help_str(self, limit: int = 45) -> str:
        """The whole first sentence: lists of commands wrap it."""
        return super().get_short_help_str(max(limit, _SENTENCE))


def open_client(server: str | None, *, attempts: int = 1) -> "Sluice":
    """A client of `server`, by default of the control plane in the settings."""
    from service.client.sluice import Sluice, usual_address  # slow to load, not needed for help

    shown = Credentials.of_environment()
    return Sluice(
        server or usual_address(), token=shown.token, ca_file=shown.ca_file, attempts=attempts
    )


def load_settings(**options: object) -> "Settings":
    """The settings of this process with the `options` of the command; raises ConfigError."""
    from service.config import Settings  # slow to load, rarely needed

    return Settings.load(**options)


def complete_job(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    jobs = _offered(context, lambda client: tuple(client.jobs()))
    return list(_references(jobs, incomplete))


def complete_table(context: typer.Context, incomplete: str) -> list[str]:
    return _of_job(context, incomplete, lambda job: [each.name for each in job.dimensions])


def complete_sink(context: typer.Context, incomplete: str) -> list[str]:
    return _of_job(context, incomplete, lambda job: [each.table for each in job.sinks])


def _of_job(
    context: typer.Context, incomplete: str, names_of: Callable[["JobDetail"], list[str]]
) -> list[str]:
    job = context.params.get("job")
    if job is None:
        return []
    names = _offered(context, lambda client: tuple(names_of(client.job(job).status())))
    return [name for name in names if name.startswith(incomplete) and " " not in name]


def _offered(
    context: typer.Context, ask: Callable[["Sluice"], tuple[Offered, ...]]
) -> tuple[Offered, ...]:
    """The control plane's answer; empty after a second or on any error, as a shell waits."""
    offered: list[Offered] = []
    server = context.params.get("server")

    def asking() -> None:
        try:
            with open_client(server) as client:
                offered.extend(ask(client))
        except (SluiceError, ValueError):
            return  # no control plane, or another program at its address

    thread = threading.Thread(target=asking, name="completion", daemon=True)
    thread.start()
    thread.join(_COMPLETION_PATIENCE_S)
    return tuple(offered)


def _references(jobs: Iterable["JobSummary"], incomplete: str) -> Iterator[tuple[str, str]]:
    for job in jobs:
        if job.id.startswith(incomplete):
            word = job.state if job.status is None else job.status.word
            yield job.id, f"{job.name} {word}"
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
        help="Id, unique prefix of an id, or name.", metavar="JOB", autocompletion=complete_job
    ),
]
Sink = Annotated[
    str | None,
    typer.Option(
        help="For a statement set: sink table or number of the INSERT.",
        autocompletion=complete_sink,
    ),
]
Timeout = Annotated[
    float, typer.Option(help="Maximum seconds to wait.", metavar="SECONDS", min=0.0)
]
Key = Annotated[str | None, typer.Option(help="Idempotency key: the same key is the same request.")]
Script = Annotated[
    Path, typer.Argument(help="The SQL script, - for standard input.", metavar="SCRIPT")
]
Name = Annotated[str | None, typer.Option(help="Name of the job.")]
Append = Annotated[
    bool, typer.Option("--append", help="Allow an output that another job also writes to.")
]
