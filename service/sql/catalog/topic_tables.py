"""Kafka tables as dimensions: from checked options to the source of a plan."""

from dataclasses import replace

from joins.plan.formats import OF_CHANGES, KafkaFormat
from joins.plan.plan import (
    Field,
    KafkaSource,
    SnapshotEvidence,
    TopicSource,
)
from service.sql.catalog.option_values import OptionValues
from service.sql.catalog.topic_options import (
    BIT_COLUMNS,
    DEBEZIUM_JSON,
    SNAPSHOT_OPTIONS,
)
from service.sql.text.errors import suggestion

_OF_A_CONNECTOR = tuple(option.key for option in SNAPSHOT_OPTIONS)
_CONNECT_URL, _CONNECTOR = "snapshot.connect.url", "snapshot.connect.connector"


def topic_source(
    values: OptionValues, source: KafkaSource, fields: tuple[Field, ...]
) -> TopicSource:
    """What a table of the connector `kafka` is as a dimension, given as a stream.

    Raises:
        SqlError: options contradict each other or do not fit the columns, which are `fields`.
    """
    kafka, form = source.kafka, source.value.name
    if form not in OF_CHANGES:
        _refuse(values, _OF_A_CONNECTOR, form, KafkaFormat.DEBEZIUM_JSON)
        return TopicSource(kafka, source.value, deletes_by_null=False, key=source.key)
    prefix = f"{form}."
    values.require_pair(_CONNECT_URL, _CONNECTOR)
    for part in ("source.schema", "source.db"):
        values.require_beside(prefix + part, f"{prefix}source.table")
    options = dict(source.value.options)
    if BIT_COLUMNS in options:
        options[BIT_COLUMNS] = ";".join(_bit_columns(values, fields))
    evidence = _evidence(values)
    value = replace(source.value, options=tuple(options.items()))
    return TopicSource(kafka, value, evidence)


def refuse_evidence(values: OptionValues) -> None:
    """See that nothing is said of a connector's snapshots, on which nothing depends.

    Raises:
        SqlError: it is.
    """
    for key in _OF_A_CONNECTOR:
        if key in values.nodes:
            raise values.error(
                key,
                f'option "{key}" has no effect on a table with an end: it is whole there',
                hint="Remove it, or the scan.bounded options, so that the snapshot's end is found "
                "by what the connector shows.",
            )


def _evidence(values: OptionValues) -> SnapshotEvidence:
    return SnapshotEvidence(
        notifications_topic=values.text("snapshot.notifications.topic"),
        connect_url=values.text(_CONNECT_URL),
        connector=values.text(_CONNECTOR),
        settle_ms=values.milliseconds("snapshot.settle-time"),
        opens_when_skipped=values.required("snapshot.on-skipped") == "open",
        replaces=values.required("snapshot.on-repeated") == "replace",
    )


def _bit_columns(values: OptionValues, fields: tuple[Field, ...]) -> tuple[str, ...]:
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
    return names


def _refuse(values: OptionValues, keys: tuple[str, ...], format_: str, owner: str) -> None:
    for key in keys:
        if key in values.nodes:
            raise values.error(
                key,
                f'option "{key}" has no meaning with format {format_}',
                hint=f"Write 'format' = '{owner}', or remove the option.",
            )
