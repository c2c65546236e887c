"""Parts of a Kafka table from checked options: client properties, offsets, dimensions."""

from dataclasses import replace

from joins.kernels.strings.regular import UnknownAnswerError, compiled
from joins.plan.connections import (
    CLIENT_ID,
    CLIENT_SECRET,
    KEY_PASSWORD,
    KEYSTORE_CERTIFICATES,
    KEYSTORE_FILE,
    KEYSTORE_KEY,
    SCOPE,
    TOKEN_URL,
    TRUSTSTORE_CERTIFICATES,
    TRUSTSTORE_FILE,
)
from joins.plan.formats import OF_CHANGES, KafkaFormat
from joins.plan.plan import (
    COMMIT_OFFSETS,
    GROUP_ID,
    OFFSET_RESET,
    BoundedMode,
    Field,
    KafkaSource,
    OffsetReset,
    SnapshotEvidence,
    StartupMode,
    TopicSource,
)
from service.sql.catalog.kafka_options import PROPERTY
from service.sql.catalog.option_values import OptionValues
from service.sql.catalog.topic_options import (
    BIT_COLUMNS,
    DEBEZIUM_JSON,
    SNAPSHOT_OPTIONS,
    TABLE_PATTERN,
)
from service.sql.text.script import suggestion

_PROTOCOL, _MECHANISM = "security.protocol", "sasl.mechanism"
_BY_PASSWORD = ("sasl.username", "sasl.password")
_BY_TOKEN = (TOKEN_URL, CLIENT_ID, CLIENT_SECRET)
_SERVERS = PROPERTY + "bootstrap.servers"


def client_properties(values: OptionValues) -> tuple[tuple[str, str], ...]:
    """The client's properties without their prefix and without the brokers."""
    properties = {
        key.removeprefix(PROPERTY): node.value
        for key, node in values.nodes.items()
        if key.startswith(PROPERTY) and key != _SERVERS
    }
    protocol = properties.get(_PROTOCOL, "PLAINTEXT")
    if protocol.startswith("SASL"):
        mechanism = values.required(PROPERTY + _MECHANISM)
        is_token = mechanism == "OAUTHBEARER"
        for key in _BY_TOKEN if is_token else _BY_PASSWORD:
            values.required(PROPERTY + key)
        other = "SCRAM-SHA-512" if is_token else "OAUTHBEARER"
        for key in _BY_PASSWORD if is_token else (*_BY_TOKEN, SCOPE):
            needed = f"'{PROPERTY}{_MECHANISM}' = '{other}'"
            _refuse_properties(values, properties, key, needed, mechanism)
    else:
        _refuse_properties(
            values, properties, "sasl.", f"'{PROPERTY}{_PROTOCOL}' = 'SASL_SSL'", protocol
        )
    if protocol.endswith("SSL"):
        for text, file in (
            (TRUSTSTORE_CERTIFICATES, TRUSTSTORE_FILE),
            (KEYSTORE_CERTIFICATES, KEYSTORE_FILE),
        ):
            if {PROPERTY + text, PROPERTY + file} <= values.nodes.keys():
                raise values.error(
                    PROPERTY + file,
                    f'both "{PROPERTY}{text}" and "{PROPERTY}{file}" are given',
                    hint="Remove one of the two.",
                )
        values.require_pair(PROPERTY + KEYSTORE_CERTIFICATES, PROPERTY + KEYSTORE_KEY)
        if PROPERTY + KEYSTORE_FILE not in values.nodes:
            values.require_beside(PROPERTY + KEY_PASSWORD, PROPERTY + KEYSTORE_KEY)
    else:
        secured = "SASL_SSL" if protocol.startswith("SASL") else "SSL"
        _refuse_properties(
            values, properties, "ssl.", f"'{PROPERTY}{_PROTOCOL}' = '{secured}'", protocol
        )
    return tuple(sorted(properties.items()))


def _refuse_properties(
    values: OptionValues, properties: dict[str, str], prefix: str, needed: str, protocol: str
) -> None:
    extra = [key for key in properties if key.startswith(prefix)]
    if extra:
        raise values.error(
            PROPERTY + extra[0],
            f'option "{PROPERTY}{extra[0]}" has no effect with {protocol}',
            hint=f"Add {needed}.",
        )


TOPIC, PATTERN = "topic", "topic-pattern"
DISCOVERY = "scan.topic-partition-discovery.interval"
STARTUP = "scan.startup.mode"
GROUP, RESET, COMMITS = PROPERTY + GROUP_ID, PROPERTY + OFFSET_RESET, PROPERTY + COMMIT_OFFSETS


def topics(values: OptionValues) -> list[str]:
    """The names of the topics; [""] for a pattern, which the cluster resolves."""
    pattern = values.text(PATTERN)
    if pattern is not None:
        return [_checked(values, pattern)]
    if not values.is_set(TOPIC):
        raise values.error(
            TOPIC,
            'option "topic" is missing',
            hint="Add 'topic' = '…' to WITH (…), or 'topic-pattern' for a stream.",
        )
    names = values.required(TOPIC).split(";")
    for name in names:
        if names.count(name) > 1:
            raise values.error(
                TOPIC, f'topic "{name}" is given twice', hint="Name each topic once."
            )
    return names


def _checked(values: OptionValues, pattern: str) -> str:
    if values.is_set(TOPIC):
        raise values.error(
            PATTERN,
            'options "topic" and "topic-pattern" are both given',
            hint="Remove one of the two.",
        )
    _require_expression(values, PATTERN, pattern, example="clicks-.*")
    return ""


def _require_expression(values: OptionValues, key: str, pattern: str, *, example: str) -> None:
    try:
        usable = compiled(pattern) is not None
    except UnknownAnswerError as exc:
        raise values.error(
            key,
            f'option "{key}" uses a feature that only Java has: {exc}',
            hint="Remove lookahead, lookbehind, possessive quantifiers, back-references, and (?i) "
            "beside letters beyond ASCII.",
        ) from exc
    if not usable:
        raise values.error(
            key,
            f'option "{key}" is "{pattern[:100]}", which is not a regular expression',
            hint=f"Write a Java regular expression, such as '{example}'.",
        )


def discovery_ms(values: OptionValues) -> int | None:
    """Interval of the search for new topics; None for never."""
    if values.text(PATTERN) is not None:
        return values.milliseconds(DISCOVERY) or None
    if values.is_set(DISCOVERY):
        values.ignore(DISCOVERY, "new partitions are found before each batch")
    return None


def check_group(values: OptionValues, start: StartupMode, end: BoundedMode) -> None:
    """Require a consumer group for modes that use one; refuse group options without effect."""
    if start is StartupMode.GROUP:
        values.required(GROUP)
    elif values.is_set(STARTUP) and values.is_set(RESET):
        values.ignore(RESET, f"it belongs to another start than {start}")
    if end is BoundedMode.GROUP:
        values.required(GROUP)
    check_commits(values)


def startup_mode(values: OptionValues) -> StartupMode:
    """Where a stream starts; Kafka's `auto.offset.reset` alone says it as in Flink.

    Flink starts at the offsets of the group, and by `auto.offset.reset` where it has none.
    """
    reset = values.text(RESET) if values.is_set(RESET) else None
    if reset is None or values.is_set(STARTUP):
        return StartupMode(values.required(STARTUP))
    if values.text(GROUP) is not None or reset not in (OffsetReset.EARLIEST, OffsetReset.LATEST):
        return StartupMode.GROUP
    return StartupMode.EARLIEST if reset == OffsetReset.EARLIEST else StartupMode.LATEST


def check_commits(values: OptionValues) -> None:
    if COMMITS in values.nodes:
        values.require_beside(COMMITS, GROUP)


def timestamp(values: OptionValues, prefix: str, mode: StartupMode | BoundedMode) -> int | None:
    key = f"{prefix}.timestamp-millis"
    if mode.value == "timestamp":
        return int(values.required(key))
    _ignore_of_other_mode(values, key, mode)
    return None


def offsets(
    values: OptionValues, prefix: str, mode: StartupMode | BoundedMode
) -> tuple[tuple[int, int], ...]:
    key = f"{prefix}.specific-offsets"
    if mode.value != "specific-offsets":
        _ignore_of_other_mode(values, key, mode)
        return ()
    pairs: dict[int, int] = {}
    for part in values.required(key).rstrip(";").split(";"):
        partition, offset = (int(item.partition(":")[2]) for item in part.split(","))
        if partition in pairs:
            raise values.error(
                key, f"partition {partition} is given twice", hint="Name each partition once."
            )
        pairs[partition] = offset
    return tuple(sorted(pairs.items()))


def _ignore_of_other_mode(values: OptionValues, key: str, mode: StartupMode | BoundedMode) -> None:
    if key in values.nodes:
        values.ignore(key, f"it belongs to another mode than {mode.value}")


_OF_A_CONNECTOR = tuple(option.key for option in SNAPSHOT_OPTIONS)
_CONNECT_URL, _CONNECTOR = "snapshot.connect.url", "snapshot.connect.connector"


def topic_source(
    values: OptionValues, source: KafkaSource, fields: tuple[Field, ...]
) -> TopicSource:
    """The dimension that a `kafka` table is; `source` is the table as a stream."""
    kafka, form = source.kafka, source.value.name
    if form not in OF_CHANGES:
        _refuse_options(values, _OF_A_CONNECTOR, form, KafkaFormat.DEBEZIUM_JSON)
        return TopicSource(kafka, source.value, deletes_by_null=False, key=source.key)
    prefix = f"{form}."
    values.require_pair(_CONNECT_URL, _CONNECTOR)
    _check_source(values, prefix)
    options = dict(source.value.options)
    if BIT_COLUMNS in options:
        key = DEBEZIUM_JSON + BIT_COLUMNS
        names = tuple(name.strip() for name in values.required(key).split(";"))
        known = [field.name for field in fields]
        for name in names:
            if name not in known:
                raise values.error(
                    key,
                    f'{key} names "{name}", which is not a column',
                    hint=suggestion(name, known, "Columns are " + ", ".join(known) + "."),
                )
        options[BIT_COLUMNS] = ";".join(names)
    evidence = _evidence(values)
    value = replace(source.value, options=tuple(options.items()))
    return TopicSource(kafka, value, evidence)


def _check_source(values: OptionValues, prefix: str) -> None:
    table, key = f"{prefix}source.table", prefix + TABLE_PATTERN
    pattern = values.text(key)
    if pattern is None:
        for part in ("source.schema", "source.db"):
            values.require_beside(prefix + part, table)
        return
    if values.is_set(table):
        raise values.error(
            key, f'options "{table}" and "{key}" are both given', hint="Remove one of the two."
        )
    _require_expression(values, key, pattern, example="orders_.*")


def refuse_evidence(values: OptionValues) -> None:
    for key in _OF_A_CONNECTOR:
        if key in values.nodes:
            raise values.error(
                key,
                f'option "{key}" has no effect on a bounded table',
                hint="Remove it, or remove the scan.bounded options.",
                is_needless=True,
            )


def _evidence(values: OptionValues) -> SnapshotEvidence:
    return SnapshotEvidence(
        notifications_topic=values.text("snapshot.notifications.topic"),
        connect_url=values.text(_CONNECT_URL),
        connector=values.text(_CONNECTOR),
        settle_ms=values.milliseconds("snapshot.settle-time"),
        opens_when_skipped=values.required("snapshot.on-skipped") == "open",
        replaces=values.required("snapshot.on-repeated") == "replace",
        heartbeat_topic=values.text("freshness.heartbeat.topic"),
    )


def _refuse_options(values: OptionValues, keys: tuple[str, ...], format_: str, owner: str) -> None:
    for key in keys:
        if key in values.nodes:
            raise values.error(
                key,
                f'option "{key}" has no effect with format {format_}',
                hint=f"Write 'format' = '{owner}', or remove the option.",
            )
