"""Kafka tables as dimensions: from checked options to the source of a plan."""

from joins.plan.plan import KafkaFormat, KafkaOptions, SnapshotEvidence, TopicFormat, TopicSource
from service.sql.catalog.option_values import OptionValues
from service.sql.catalog.options import LOOKUP_STRATEGY
from service.sql.catalog.topic_options import DEBEZIUM_JSON, FORMAT_OPTIONS, SNAPSHOT_OPTIONS

_OF_DEBEZIUM = tuple(option.key for option in (*FORMAT_OPTIONS, *SNAPSHOT_OPTIONS))
_TABLE = f"{DEBEZIUM_JSON}source.table"
_URL, _CONNECTOR = "snapshot.connect.url", "snapshot.connect.connector"


def topic_source(values: OptionValues, kafka: KafkaOptions, format_: KafkaFormat) -> TopicSource:
    """The source of a table of the connector `kafka`.

    Raises:
        SqlError: options contradict each other.
    """
    if format_ is KafkaFormat.JSON:
        _refuse(values, _OF_DEBEZIUM, "json", "Write 'format' = 'debezium-json', or remove it.")
        return TopicSource(kafka, TopicFormat.JSON, deletes_by_null=False)
    _check_pairs(values)
    options = tuple(
        (key.removeprefix(DEBEZIUM_JSON), node.value)
        for key, node in sorted(values.nodes.items())
        if key.startswith(DEBEZIUM_JSON)
    )
    return TopicSource(kafka, TopicFormat.DEBEZIUM_JSON, options, _evidence(values))


def upsert_source(kafka: KafkaOptions) -> TopicSource:
    """The source of a table of the connector `upsert-kafka`."""
    return TopicSource(kafka, TopicFormat.JSON)


def dimension_options(values: OptionValues) -> tuple[str, ...]:
    """The options that were given and that only a dimension has."""
    return tuple(key for key in (*_OF_DEBEZIUM, LOOKUP_STRATEGY) if key in values.nodes)


def _evidence(values: OptionValues) -> SnapshotEvidence:
    return SnapshotEvidence(
        notifications_topic=values.text("snapshot.notifications.topic"),
        connect_url=values.text(_URL),
        connector=values.text(_CONNECTOR),
        settle_ms=values.milliseconds("snapshot.settle-time"),
        opens_when_skipped=values.required("snapshot.on-skipped") == "open",
        replaces=values.required("snapshot.on-repeated") == "replace",
    )


def _check_pairs(values: OptionValues) -> None:
    if (values.text(_URL) is None) != (values.text(_CONNECTOR) is None):
        option, missing = (_URL, _CONNECTOR) if values.text(_URL) else (_CONNECTOR, _URL)
        raise values.error(
            option, f'option "{option}" needs "{missing}"', hint=f"Add '{missing}' to WITH (…)."
        )
    for part in ("source.schema", "source.db"):
        if values.text(DEBEZIUM_JSON + part) is not None and values.text(_TABLE) is None:
            raise values.error(
                DEBEZIUM_JSON + part,
                f'option "{DEBEZIUM_JSON}{part}" needs "{_TABLE}"',
                hint=f"Add '{_TABLE}' to WITH (…).",
            )


def _refuse(values: OptionValues, keys: tuple[str, ...], format_: str, hint: str) -> None:
    for key in keys:
        if key in values.nodes:
            raise values.error(
                key, f'option "{key}" has no meaning with format {format_}', hint=hint
            )
