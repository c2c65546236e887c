"""`sluice secrets set | ls | rm`: the passwords that scripts name as `${secret:name}`.

They go through the control plane, as an admin. Where none answers and none was named, or with
`--data-dir`, they work on a data directory of this machine and say which. A value is typed, or read
from standard input; it is never an argument, and no command prints one.
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
app = typer.Typer(help="Keep the passwords that scripts refer to.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="As in ${secret:name}.")]
DataDirectory = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Work on the secrets of this data directory, not on a server."),
]


@app.command("set")
def put(name: Name, data_dir: DataDirectory = None, server: Server = None) -> None:
    """Keep a secret; its value is typed, or read from standard input."""
    from service.security.secrets import check_name  # slow to load, as the store is

    check_name(name)
    value = _value(name)

    def put_there(client: "Sluice") -> tuple["SecretView", str]:
        stored = client.set_secret(name, value)
        return stored, f'by the control plane at {client.url}, in "{stored.directory}"'

    def put_here(store: "SecretStore") -> tuple["SecretView", str]:
        store.put(name, value)
        (kept,) = (s for s in _views(store) if (s.name, s.source) == (name, "kept"))
        return kept, f'in "{store.directory}", which a control plane of that data directory reads'

    kept, where = _carry_out(put_there, put_here, data_dir, server)
    if kept.hidden_by is not None:
        say(f"warning: the secret of that name in {_PLACES[kept.hidden_by]} is used first")
    say(f"secret {name} is kept {one_line(where)}; runners read it when they start")
    for job_id in kept.jobs:
        say(
            f"job {job_id} refers to it: sluice jobs stop {job_id} and sluice jobs resume {job_id} "
            "have it read"
        )


@app.command("ls")
def list_secrets(
    data_dir: DataDirectory = None, server: Server = None, output: Form = OutputFormat.TABLE
) -> None:
    """List the secrets that jobs can refer to, without their values."""

    def known_there(client: "Sluice") -> tuple[list["SecretView"], str]:
        known = client.secrets()
        return known.items, f'of the control plane at {client.url}, kept in "{known.directory}"'

    def known_here(store: "SecretStore") -> tuple[list["SecretView"], str]:
        return _views(store), f'that this shell can see, kept in "{store.directory}"'

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
            place += f" (unused: {_PLACES[secret.hidden_by]} is used first)"
        rows.add_row(one_line(secret.name), place, str(len(secret.jobs)))
    show(rows)
    say(f"secrets {one_line(whose)}")


@app.command("rm")
def remove(name: Name, data_dir: DataDirectory = None, server: Server = None) -> None:
    """Forget a secret of the data directory; jobs that need it cannot start any more."""

    def remove_there(client: "Sluice") -> tuple[Iterable[str], str]:
        jobs = [job for each in client.secrets().items if each.name == name for job in each.jobs]
        client.remove_secret(name)
        return jobs, f"from the control plane at {client.url}"

    def remove_here(store: "SecretStore") -> tuple[Iterable[str], str]:
        store.remove(name)
        return store.jobs_of(name), f'from "{store.directory}"'

    jobs, where = _carry_out(remove_there, remove_here, data_dir, server)
    for job_id in dict.fromkeys(jobs):
        say(f"warning: job {job_id} refers to it")
    say(f"secret {name} is removed {one_line(where)}")


def _carry_out(
    there: Callable[["Sluice"], Result],
    here: Callable[["SecretStore"], Result],
    data_dir: Path | None,
    server: str | None,
) -> Result:
    """Have the control plane do it; without one, and unless one was named, do it here."""
    from service.security.secrets import SecretStore

    if data_dir is None:
        try:
            with open_client(server) as client:
                return there(client)
        except UnreachableError:
            if server is not None or os.environ.get("SLUICE_HOST"):
                raise
            say("no control plane answers; the data directory of this machine is used")
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
