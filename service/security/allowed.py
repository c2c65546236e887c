"""What of the outside a job may reach: the operator's lists of servers, secrets, directories.

Whoever may submit a script chooses where a password is sent and which files are read and written.
These lists are the limit: they are looked at when a job is submitted and when its runner starts.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from joins.plan.connections import FILES, TOKEN_URL, StoreTable, has_credentials, is_in_store
from joins.plan.plan import (
    DeltaSink,
    DeltaTableSource,
    DimensionSource,
    FileSource,
    JoinPlan,
    KafkaOptions,
    KafkaSink,
    KafkaSource,
    MysqlCdcSource,
    SharedSource,
    TopicSource,
)
from service.config import Settings
from service.errors import NotAllowedError
from service.jobs.store.layout import OWN_TABLES


def check_allowed(plan: JoinPlan, settings: Settings) -> None:
    """See that everything that `plan` reaches is on the operator's lists.

    Raises:
        NotAllowedError: something is not; the hint names the setting.
    """
    sinks = [(insert.sink_table, insert.sink) for insert in plan.inserts]
    streams = [(insert.probe.table, insert.probe.source) for insert in plan.inserts]
    for table, end in (*streams, *sinks):
        if isinstance(end, KafkaSource | KafkaSink):
            _check_topic(table, end, settings)
    for dimension in plan.dimensions:
        _check_dimension(dimension.name, dimension.source, settings)
    for _, sink in sinks:
        if isinstance(sink, DeltaSink):
            _check_table(sink, settings)
    if plan.probe.late_records is not None:
        _check_table(plan.probe.late_records, settings)


def _check_table(table: DeltaSink | DeltaTableSource | FileSource, settings: Settings) -> None:
    if isinstance(table, FileSource) or store_address(table, settings) is None:
        confined_path(table, settings)
    else:
        check_store(table, settings)


def store_address(table: DeltaSink | DeltaTableSource, settings: Settings) -> str | None:
    """Where in an object store a table is; None of one in a directory."""
    path = table.path
    if is_in_store(path) or settings.warehouse is None or path.startswith(("/", "file://")):
        return path if is_in_store(path) else None
    return f"{settings.warehouse}/{path}"


def check_store(table: DeltaSink | DeltaTableSource, settings: Settings) -> None:
    """See that a table may be in its object store, with the credentials that it has or has not.

    Those of the environment are the operator's: they serve what the operator has listed.

    Raises:
        NotAllowedError: it may not.
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
            f'table "{table.path}" brings no credentials, and those of the environment are not '
            f'allowed for store "{server}"',
            hint="Give the table credentials of its own, or have the operator add the store to "
            "SLUICE_ALLOWED_STORES.",
        )
    raise NotAllowedError(
        f'table "{table.path}" names store "{server}", which is not allowed',
        hint="Use an allowed store, or have the operator add it to SLUICE_ALLOWED_STORES.",
    )


def _check_dimension(table: str, source: DimensionSource, settings: Settings) -> None:
    if isinstance(source, MysqlCdcSource):
        _check_database(table, source, settings)
    elif isinstance(source, TopicSource):
        _check_topic(table, source, settings)
        if source.evidence is not None and source.evidence.connect_url is not None:
            _check_connect(table, source.evidence.connect_url, settings)
    elif not isinstance(source, SharedSource):  # which was looked at when it was created
        _check_table(source, settings)


def _check_apart(table: DeltaSink | DeltaTableSource, settings: Settings, warehouse: str) -> None:
    """See that what is written is not among the jobs' own tables."""
    address = StoreTable.of(store_address(table, settings) or table.path)
    own = StoreTable.of(f"{warehouse}/{OWN_TABLES}")
    is_near = address.bucket == own.bucket and _overlap(
        Path(f"/{address.key}"), Path(f"/{own.key}")
    )
    if is_near and isinstance(table, DeltaSink):
        raise NotAllowedError(
            f'path "{table.path}" leads to "{own.url}/{own.key}", where Sluice keeps its own '
            "tables, or above it",
            hint="Give the output a path of its own in the warehouse.",
        )


def _check_topic(
    table: str, topic: KafkaSource | KafkaSink | TopicSource, settings: Settings
) -> None:
    _check_kafka(table, topic.kafka, settings)
    for form in (topic.value, *(() if topic.key is None else (topic.key.format,))):
        if form.registry is not None:
            _check_registry(table, form.registry.url, settings)


def check_secret(name: str, servers: str, allowed: str | None) -> None:
    """See that all of `servers` may get to know the secret; what a script has inline is its own.

    Args:
        name: of the secret.
        servers: host:port, separated by commas.
        allowed: the setting; None for any.

    Raises:
        NotAllowedError: one of them may not.
    """
    if allowed is None:
        return
    for server in servers.split(","):
        if not _listed(f"{name}@{server.strip()}", allowed):
            raise NotAllowedError(
                f'secret "{name}" is not allowed to server "{server}"',
                hint="Use a secret of that server, or have the operator add it to "
                "SLUICE_ALLOWED_SECRETS.",
            )


def server_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def confined_path(table: DeltaSink | DeltaTableSource | FileSource, settings: Settings) -> Path:
    """Where a table of delta or files are; symbolic links are followed before it is compared.

    Raises:
        NotAllowedError: it is neither in the warehouse nor in an allowed directory, or it is an
            output, or files of a user's, among Sluice's own files.
    """
    path = settings.warehouse_dir / table.path.removeprefix("file://")
    real = _real(path)
    roots = (settings.warehouse_dir, *settings.allowed_directories)
    if not any(real.is_relative_to(_real(root)) for root in roots):
        raise NotAllowedError(
            f'path "{table.path}" leads to "{real}", outside the warehouse '
            f'"{settings.warehouse_dir}"',
            hint="Give a path relative to the warehouse, or have the operator add the directory to "
            "SLUICE_ALLOWED_PATHS.",
        )
    if not isinstance(table, DeltaTableSource) and _is_among_our_files(real, settings):
        raise NotAllowedError(
            f'path "{table.path}" leads to "{real}", where Sluice keeps its own files',
            hint="Give the output, or the files, a path of their own in the warehouse.",
        )
    return path


def _is_among_our_files(real: Path, settings: Settings) -> bool:
    own = (settings.jobs_dir, settings.kept_secrets_dir, settings.cache_dir)
    if any(_overlap(real, _real(place)) for place in own):
        return True
    data = _real(settings.data_dir)
    inside = (settings.warehouse_dir, *settings.allowed_directories)
    meant = [root for root in map(_real, inside) if root.is_relative_to(data) and root != data]
    return real.is_relative_to(data) and not any(real.is_relative_to(root) for root in meant)


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as exc:  # a loop of links
        raise NotAllowedError(
            f'path "{path}" cannot be followed: {exc}', hint="Remove the symbolic links."
        ) from exc


def confined_pem(file: str, directories: Sequence[Path]) -> Path:
    """Where a PEM file is that a script names; symbolic links are followed before it is compared.

    Args:
        file: as the script has it.
        directories: those of the setting.

    Raises:
        NotAllowedError: it is in none of them.
    """
    real = _real(Path(file))
    if not any(real.is_relative_to(_real(directory)) for directory in directories):
        raise NotAllowedError(
            f'PEM file "{file}" is in no directory that scripts may name files of',
            hint="Give the text as a secret, by the option ….certificates, or have the operator "
            "add the directory to SLUICE_ALLOWED_PEM_PATHS.",
        )
    return real


def _check_kafka(table: str, kafka: KafkaOptions, settings: Settings) -> None:
    _check_brokers(table, kafka.bootstrap_servers, settings)
    for name, value in kafka.properties:
        if name == TOKEN_URL:
            _check_token_endpoint(table, value, settings)
        elif name in FILES:
            confined_pem(value, settings.pem_directories)


def _check_token_endpoint(table: str, url: str, settings: Settings) -> None:
    server = server_of(url)
    if settings.allowed_token_endpoints is None or _listed(
        server, settings.allowed_token_endpoints
    ):
        return
    raise NotAllowedError(
        f'table "{table}" names token endpoint "{server}", which is not allowed',
        hint="Use an allowed one, or have the operator add it to SLUICE_ALLOWED_TOKEN_ENDPOINTS.",
    )


def _check_brokers(table: str, servers: str, settings: Settings) -> None:
    if settings.allowed_brokers is None:
        return
    known = ",".join(filter(None, (settings.allowed_brokers, settings.kafka_bootstrap_servers)))
    for server in servers.split(","):
        if not _listed(server, known):
            raise NotAllowedError(
                f'table "{table}" names broker "{server}", which is not allowed',
                hint="Use an allowed broker, or have the operator add it to "
                "SLUICE_ALLOWED_BROKERS.",
            )


def _check_database(table: str, source: MysqlCdcSource, settings: Settings) -> None:
    server = f"{source.hostname}:{source.port}"
    if settings.allowed_databases is None or _listed(server, settings.allowed_databases):
        return
    raise NotAllowedError(
        f'table "{table}" names database server "{server}", which is not allowed',
        hint="Use an allowed server, or have the operator add it to SLUICE_ALLOWED_DATABASES.",
    )


def _check_connect(table: str, url: str, settings: Settings) -> None:
    server = server_of(url)
    if settings.allowed_connect is None or _listed(server, settings.allowed_connect):
        return
    raise NotAllowedError(
        f'table "{table}" names Kafka Connect at "{server}", which is not allowed',
        hint="Use an allowed server, or have the operator add it to SLUICE_ALLOWED_CONNECT.",
    )


def _check_registry(table: str, url: str, settings: Settings) -> None:
    server = server_of(url)
    if settings.allowed_registries is None or _listed(server, settings.allowed_registries):
        return
    raise NotAllowedError(
        f'table "{table}" names schema registry "{server}", which is not allowed',
        hint="Use an allowed server, or have the operator add it to SLUICE_ALLOWED_REGISTRIES.",
    )


def _listed(server: str, patterns: str) -> bool:
    return any(
        re.fullmatch("[^:@]*".join(map(re.escape, pattern.split("*"))), server, re.IGNORECASE)
        for pattern in patterns.split(",")
    )
