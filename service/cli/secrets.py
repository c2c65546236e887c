"""`sluice secrets set | ls | rm`: the passwords that scripts reference as `${secret:name}`.

The commands use the control plane, as an admin. With `--data-dir`, or if none answers and none was
named, they use a data directory of this machine. Values are typed or read from standard input,
never arguments, and never printed.
"""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from service.cli.options import Form, Server, load_settings, open_client
from service.cli.output import OutputFormat, one_line, say, show, show_json, table
from service.errors import SecretError, UnreachableError

if TYPE_CHECKING:
    from service.client import Sluice
    from service.schemas.tokens import SecretView
    from service.security.secrets import SecretStore

Result = TypeVar("Result")
_MOST_BYTES = 64 * 1024
_PLACES = {
    "environment": "environment",
    "directory": "SLUICE_SECRETS_DIR",
    "kept": "data directory",
}
app = typer.Typer(help="Store the passwords that scripts reference.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name, as in ${secret:name}.")]
DataDirectory = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Use the secrets of this data directory, not of a server."),
]


@app.command("set")
def put(name: Name, data_dir: DataDirectory = None, server: Server = None) -> None:
    """Store a secret; its value is typed or read from standard input."""
    from service.security.secrets import check_name  # slow to load, as the store is

    check_name(name)
    value = _value(name)

    def put_there(client: "Sluice") -> tuple["SecretView", str]:
        stored = client.secrets.set(name, value)
        return stored, f'by the control plane at {client.url}, in "{stored.directory}"'

    def put_here(store: "SecretStore") -> tuple["SecretView", str]:
        store.put(name, value)
        (kept,) = (s for s in _views(store) if (s.name, s.source) == (name, "kept"))
        return kept, f'in "{store.directory}", which a control plane of that data directory reads'

    kept, where = _carry_out(put_there, put_here, data_dir, server)
    if kept.hidden_by is not None:
        say(f"warning: the secret of this name in {_PLACES[kept.hidden_by]} takes precedence")
    say(f"secret {name} stored {one_line(where)}; runners read it when they start")
    for job_id in kept.jobs:
        say(
            f"job {job_id} references it; apply it with sluice jobs stop {job_id} and "
            f"sluice jobs resume {job_id}"
        )


@app.command("ls")
def list_secrets(
    data_dir: DataDirectory = None, server: Server = None, output: Form = OutputFormat.TABLE
) -> None:
    """List the secrets that jobs can reference, without values."""

    def known_there(client: "Sluice") -> tuple[list["SecretView"], str]:
        known = client.secrets.list()
        return known.items, f'of the control plane at {client.url}, stored in "{known.directory}"'

    def known_here(store: "SecretStore") -> tuple[list["SecretView"], str]:
        return _views(store), f'visible to this shell, stored in "{store.directory}"'

    known, whose = _carry_out(known_there, known_here, data_dir, server)
    if output is OutputFormat.JSON:
        show_json(
            [
                {"name": s.name, "source": s.source, "jobs": s.jobs, "hidden_by": s.hidden_by}
                for s in known
            ]
        )
        return
    rows = table("NAME", "FROM", "JOBS")
    for secret in known:
        place = _PLACES[secret.source]
        if secret.hidden_by is not None:
            place += f" (unused: {_PLACES[secret.hidden_by]} takes precedence)"
        rows.add_row(one_line(secret.name), place, str(len(secret.jobs)))
    show(rows)
    say(f"secrets {one_line(whose)}")


@app.command("rm")
def remove(name: Name, data_dir: DataDirectory = None, server: Server = None) -> None:
    """Remove a secret; jobs that reference it can no longer start."""

    def remove_there(client: "Sluice") -> tuple[Iterable[str], str]:
        jobs = [
            job for each in client.secrets.list().items if each.name == name for job in each.jobs
        ]
        client.secrets.remove(name)
        return jobs, f"from the control plane at {client.url}"

    def remove_here(store: "SecretStore") -> tuple[Iterable[str], str]:
        store.remove(name)
        return store.jobs_of(name), f'from "{store.directory}"'

    jobs, where = _carry_out(remove_there, remove_here, data_dir, server)
    for job_id in dict.fromkeys(jobs):
        say(f"warning: job {job_id} references it")
    say(f"secret {name} removed {one_line(where)}")


def _carry_out(
    there: Callable[["Sluice"], Result],
    here: Callable[["SecretStore"], Result],
    data_dir: Path | None,
    server: str | None,
) -> Result:
    """Use the control plane; if none answers and none was named, the local data directory."""
    from service.security.secrets import SecretStore

    if data_dir is None:
        try:
            with open_client(server) as client:
                return there(client)
        except UnreachableError:
            if server is not None or os.environ.get("SLUICE_HOST"):
                raise
            say("no control plane answers; using the data directory of this machine")
    return here(SecretStore(load_settings(data_dir=data_dir)))


def _views(store: "SecretStore") -> list["SecretView"]:
    from service.schemas.tokens import SecretView

    return [
        SecretView(name=s.name, source=s.source, jobs=list(s.jobs), hidden_by=s.hidden_by)
        for s in store.known()
    ]


def _value(name: str) -> str:
    if sys.stdin.isatty():
        typed: str = typer.prompt(
            f"Value of {name}", hide_input=True, confirmation_prompt=True, err=True
        )
        return typed
    content = sys.stdin.buffer.read(_MOST_BYTES + 1)
    try:
        return content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as exc:
        raise SecretError(
            f'value of secret "{name}" is not UTF-8', hint="Give the password as UTF-8 text."
        ) from exc
