"""`sluice secrets set | ls | rm`: the passwords that scripts name as `${secret:name}`.

They work on the data directory of this machine, as its user, without a control plane. A value is
asked for, or read from standard input; it is never an argument, and no command prints one.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import Form, load_settings
from service.cli.output import OutputFormat, one_line, say, show, show_json, table
from service.errors import SecretError

if TYPE_CHECKING:
    from service.security.secret_store import SecretStore

_MOST_BYTES = 64 * 1024
_PLACES = {
    "environment": "environment",
    "directory": "SLUICE_SECRETS_DIR",
    "kept": "data directory",
}
app = typer.Typer(help="Keep the passwords that scripts refer to.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="As in ${secret:name}.")]
DataDirectory = Annotated[
    Path | None, typer.Option("--data-dir", help="Data directory of the control plane.")
]


@app.command("set")
def put(name: Name, data_dir: DataDirectory = None) -> None:
    """Keep a secret; its value is asked for, or read from standard input."""
    from service.security.secrets import check_name  # slow to load, as the store is

    check_name(name)
    store = _store(data_dir)
    store.put(name, _value(name))
    hidden = next(
        (s.hidden_by for s in store.known() if (s.name, s.source) == (name, "kept")), None
    )
    if hidden is not None:
        say(f"warning: the secret of that name in {_PLACES[hidden]} is asked first")
    say(f"secret {name} is kept; runners read it when they start")


@app.command("ls")
def list_secrets(data_dir: DataDirectory = None, output: Form = OutputFormat.TABLE) -> None:
    """List the secrets that this shell can see, without their values."""
    known = _store(data_dir).known()
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
            place += f" (unused: {_PLACES[secret.hidden_by]} is asked first)"
        rows.add_row(one_line(secret.name), place, str(len(secret.jobs)))
    show(rows)


@app.command("rm")
def remove(name: Name, data_dir: DataDirectory = None) -> None:
    """Forget a secret of the data directory; jobs that need it cannot start any more."""
    store = _store(data_dir)
    store.remove(name)
    for job_id in store.jobs_of(name):
        say(f"warning: job {job_id} refers to it")
    say(f"secret {name} is removed")


def _store(data_dir: Path | None) -> "SecretStore":
    from service.security.secret_store import SecretStore

    return SecretStore(load_settings(data_dir=data_dir))


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
