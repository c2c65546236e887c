"""The operator's allow-lists: servers, secrets and directories that jobs may use.

A script chooses where passwords are sent and which files are read and written; these lists limit
it. They are checked at submission and when the runner starts.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from joins.plan.connections import FILES, TOKEN_URL, StoreTable, has_credentials, is_in_store
from joins.plan.plan import (
    DeltaSink,
    DeltaTableSource,
    FileSource,
    KafkaOptions,
    KafkaSink,
    KafkaSource,
    TopicSource,
)
from service.config import Settings
from service.errors import NotAllowedError
from service.jobs.store.layout import OWN_TABLES


def check_table(table: DeltaSink | DeltaTableSource | FileSource, settings: Settings) -> None:
    if isinstance(table, FileSource) or store_address(table, settings) is None:
        confined_path(table, settings)
    else:
        check_store(table, settings)


def store_address(table: DeltaSink | DeltaTableSource, settings: Settings) -> str | None:
    """The address of a table in an object store; None for a directory."""
    path = table.path
    if is_in_store(path) or settings.warehouse is None or path.startswith(("/", "file://")):
        return path if is_in_store(path) else None
    return f"{settings.warehouse}/{path}"


def check_store(table: DeltaSink | DeltaTableSource, settings: Settings) -> None:
    """Raise NotAllowedError unless a table may use its object store.

    The environment's credentials belong to the operator and serve only listed stores.
    """
    if settings.warehouse is not None:
        _check_apart(table, settings, settings.warehouse)
        if not is_in_store(table.path):
            return
    place = StoreTable.of(table.path)
    server = f"{place.bucket}@{place.server(table.store)}"
    allowed, is_own = settings.allowed_stores, has_credentials(table.store)
    if (allowed is None and is_own) or (allowed is not None and _listed(server, allowed)):
        return
    if allowed is None:
        raise NotAllowedError(
            f'table "{table.path}" has no credentials, and those of the environment are not '
            f'allowed for store "{server}"',
            hint="Give the table its own credentials, or have the operator add the store to "
            "SLUICE_ALLOWED_STORES.",
        )
    raise NotAllowedError(
        f'table "{table.path}" names store "{server}", which is not allowed',
        hint="Use an allowed store, or have the operator add it to SLUICE_ALLOWED_STORES.",
    )


def _check_apart(table: DeltaSink | DeltaTableSource, settings: Settings, warehouse: str) -> None:
    address = StoreTable.of(store_address(table, settings) or table.path)
    own = StoreTable.of(f"{warehouse}/{OWN_TABLES}")
    is_near = address.bucket == own.bucket and _overlap(
        Path(f"/{address.key}"), Path(f"/{own.key}")
    )
    if is_near and isinstance(table, DeltaSink):
        raise NotAllowedError(
            f'path "{table.path}" overlaps "{own.url}/{own.key}", which holds tables of Sluice',
            hint="Give the output a separate path in the warehouse.",
        )


def check_topic_place(
    table: str, topic: KafkaSource | KafkaSink | TopicSource, settings: Settings
) -> None:
    _check_kafka(table, topic.kafka, settings)
    for form in (topic.value, *(() if topic.key is None else (topic.key.format,))):
        if form.registry is not None:
            server, allowed = server_of(form.registry.url), settings.allowed_registries
            check_server(table, "schema registry", server, allowed, "SLUICE_ALLOWED_REGISTRIES")


def check_secret(name: str, servers: str, allowed: str | None) -> None:
    """Raise NotAllowedError unless all `servers` (host:port, comma-separated) may get the secret.

    `allowed` is the setting; None permits any server.
    """
    if allowed is None:
        return
    for server in servers.split(","):
        if not _listed(f"{name}@{server.strip()}", allowed):
            raise NotAllowedError(
                f'secret "{name}" is not allowed to server "{server}"',
                hint="Use another secret, or have the operator add it to SLUICE_ALLOWED_SECRETS.",
            )


def server_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def confined_path(table: DeltaSink | DeltaTableSource | FileSource, settings: Settings) -> Path:
    """The path of a table in a directory, compared after symbolic links are resolved.

    Raises NotAllowedError outside the warehouse and the allowed directories, and for an output or a
    file source among Sluice's own files.
    """
    path = settings.warehouse_dir / table.path.removeprefix("file://")
    real = _real(path)
    roots = (settings.warehouse_dir, *settings.allowed_directories)
    if not any(real.is_relative_to(_real(root)) for root in roots):
        leads = "" if str(real) == table.path else f', which leads to "{real}",'
        raise NotAllowedError(
            f'path "{table.path}"{leads} is outside of the warehouse "{settings.warehouse_dir}"',
            hint="Give a path relative to the warehouse, or have the operator add the directory to "
            "SLUICE_ALLOWED_PATHS.",
        )
    if not isinstance(table, DeltaTableSource) and _is_among_our_files(real, settings):
        raise NotAllowedError(
            f'path "{table.path}" leads to "{real}", where Sluice stores its own files',
            hint="Give the output, or the files, a separate path in the warehouse.",
        )
    return path


def _is_among_our_files(real: Path, settings: Settings) -> bool:
    own = (settings.jobs_dir, settings.kept_secrets_dir, settings.cache_dir)
    if any(_overlap(real, _real(place)) for place in own):
        return True
    data = _real(settings.data_dir)
    inside = (settings.warehouse_dir, *settings.allowed_directories)
    allowed = [root for root in map(_real, inside) if root.is_relative_to(data) and root != data]
    return real.is_relative_to(data) and not any(real.is_relative_to(root) for root in allowed)


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as exc:  # a loop of symbolic links
        raise NotAllowedError(
            f'path "{path}" cannot be resolved: {exc}', hint="Remove the symbolic links."
        ) from exc


def confined_pem(file: str, directories: Sequence[Path]) -> Path:
    """The resolved path of a PEM file; raises NotAllowedError outside the `directories`."""
    real = _real(Path(file))
    if not any(real.is_relative_to(_real(directory)) for directory in directories):
        raise NotAllowedError(
            f'PEM file "{file}" is not in an allowed directory',
            hint="Give the text as a secret with the option ….certificates, or have the operator "
            "add the directory to SLUICE_ALLOWED_PEM_PATHS.",
        )
    return real


def _check_kafka(table: str, kafka: KafkaOptions, settings: Settings) -> None:
    _check_brokers(table, kafka.bootstrap_servers, settings)
    for name, value in kafka.properties:
        if name == TOKEN_URL:
            server, allowed = server_of(value), settings.allowed_token_endpoints
            setting = "SLUICE_ALLOWED_TOKEN_ENDPOINTS"
            check_server(table, "token endpoint", server, allowed, setting)
        elif name in FILES:
            confined_pem(value, settings.pem_directories)


def check_server(table: str, kind: str, server: str, allowed: str | None, setting: str) -> None:
    if allowed is not None and not _listed(server, allowed):
        raise NotAllowedError(
            f'table "{table}" names {kind} "{server}", which is not allowed',
            hint=f"Use an allowed one, or have the operator add it to {setting}.",
        )


def _check_brokers(table: str, servers: str, settings: Settings) -> None:
    if settings.allowed_brokers is None:
        return
    known = ",".join(filter(None, (settings.allowed_brokers, settings.kafka_bootstrap_servers)))
    for server in servers.split(","):
        check_server(table, "broker", server, known, "SLUICE_ALLOWED_BROKERS")


def _listed(server: str, patterns: str) -> bool:
    return any(
        re.fullmatch("[^:@]*".join(map(re.escape, pattern.split("*"))), server, re.IGNORECASE)
        for pattern in patterns.split(",")
    )
