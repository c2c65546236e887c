"""Where the topics of a command are: brokers, registry, and how to log in."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from joins.plan.connections import (
    CLIENT_ID,
    CLIENT_SECRET,
    FILES,
    KEY_PASSWORD,
    SCOPE,
    TOKEN_URL,
    VERIFIED_NAME,
)
from service.cli.options import open_client
from service.cli.output import one_line
from service.errors import UnreachableError

if TYPE_CHECKING:
    from joins.plan.connections import RegistryOptions
    from joins.plan.plan import KafkaOptions  # slow to load, and few commands ask brokers

_CLIENT = frozenset(
    {
        *("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password"),
        *(TOKEN_URL, CLIENT_ID, CLIENT_SECRET, SCOPE),
        *(*FILES, KEY_PASSWORD, VERIFIED_NAME),
    }
)
_REGISTRY = "schema.registry."
_USER, _CA = f"{_REGISTRY}basic.auth.user.info", f"{_REGISTRY}ssl.ca.location"
_KNOWN = _CLIENT | {_USER, _CA}
_USUAL = "localhost:9092"

TopicName = Annotated[str, typer.Argument(help="Name of the topic.", metavar="TOPIC")]
Servers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        "--bootstrap",
        help="Brokers of its cluster, such as localhost:9092; those of the control plane, such as "
        "the one of sluice up, if left out.",
        envvar="SLUICE_KAFKA_BOOTSTRAP_SERVERS",
    ),
]
ClientConfig = Annotated[
    Path | None,
    typer.Option(
        help=f"File of NAME=VALUE lines: {', '.join(sorted(_KNOWN))}.", exists=True, dir_okay=False
    ),
]


def brokers(servers: str | None, server: str | None) -> str:
    """The brokers that a command means: named, or those that its control plane uses by itself."""
    if servers is not None:
        return servers
    try:
        with open_client(server) as client:
            return client.version().kafka_bootstrap_servers or _USUAL
    except UnreachableError:
        return _USUAL


def read_config(config: Path | None) -> dict[str, str]:
    """The names and values of a file; none without one.

    Raises:
        typer.BadParameter: a line is something else.
    """
    known: dict[str, str] = {}
    for line in [] if config is None else config.read_text(encoding="utf-8").split("\n"):
        name, sign, value = (part.strip() for part in line.partition("="))
        if not name or name.startswith("#"):
            continue
        if not sign or name not in _KNOWN:
            raise typer.BadParameter(
                f'"{one_line(name)}" is none of {", ".join(sorted(_KNOWN))}', param_hint="--config"
            )
        known[name] = value
    return known


def kafka_of(topic: str, servers: str, known: dict[str, str]) -> "KafkaOptions":
    """How a topic is reached, given what `read_config` has read."""
    from joins.plan.plan import KafkaOptions

    properties = {name: value for name, value in known.items() if name in _CLIENT}
    for file, text in FILES.items():
        if file in properties:
            properties[text] = _pem(properties.pop(file)) or ""
    return KafkaOptions(servers, topic, tuple(sorted(properties.items())))


def registry_of(url: str | None, known: dict[str, str]) -> "RegistryOptions | None":
    """How a schema registry is reached; None without an address."""
    from joins.plan.connections import RegistryOptions

    if url is None:
        return None
    return RegistryOptions(url, known.get(_USER), ca=_pem(known.get(_CA)))


def _pem(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as exc:
        raise typer.BadParameter(
            f'"{one_line(path)}" cannot be read as PEM: {type(exc).__name__}', param_hint="--config"
        ) from exc
