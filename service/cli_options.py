"""Arguments and options that commands share, and the client that they speak through."""

from typing import Annotated

import typer

from service.cli_output import Output
from service.client import Client
from service.config import Settings
from service.credentials import Credentials

Server = Annotated[
    str | None, typer.Option(help="Address of the control plane.", envvar="SLUICE_SERVER")
]
Form = Annotated[
    Output, typer.Option("--output", "-o", help="Form of the data on standard output.")
]
Job = Annotated[str, typer.Argument(help="Id, unique beginning of an id, or name.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait at the most.", min=0.0)]
Key = Annotated[str | None, typer.Option(help="Idempotency key: the same key is the same request.")]
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def open_client(server: str | None) -> Client:
    """A client of `server`, else of the control plane that the settings name."""
    credentials = Credentials.of_environment()
    if server is not None:
        return Client(server, credentials)
    settings = Settings.load()
    host = _ANY_ADDRESS.get(settings.host, settings.host)
    host = f"[{host}]" if ":" in host else host
    scheme = "http" if settings.tls_cert is None else "https"
    return Client(f"{scheme}://{host}:{settings.port}", credentials)
