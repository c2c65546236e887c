"""Options of a Kafka table that is a dimension: how a connector wrote it, and when it is whole."""

from joins.kernels.debezium.options import (
    UNAVAILABLE_VALUE,
    BigintUnsignedHandling,
    BinaryHandling,
    DecimalHandling,
    TimePrecision,
    ValueLayout,
)
from service.sql.catalog.option import Option, OptionType

DEBEZIUM_JSON = "debezium-json."
_NAME = r"[^\x00-\x1f\x7f]{1,128}"
FORMAT_OPTIONS = (
    Option(
        f"{DEBEZIUM_JSON}schema-include",
        "Of a dimension: whether keys and values carry their schema; when missing, each record "
        "tells by itself.",
        OptionType.FLAG,
    ),
    Option(
        f"{DEBEZIUM_JSON}layout",
        "Of a dimension: whole envelopes, or rows as ExtractNewRecordState makes them.",
        OptionType.CHOICE,
        default=ValueLayout.ENVELOPE,
        choices=tuple(ValueLayout),
    ),
    Option(
        f"{DEBEZIUM_JSON}fail-on-missing-field",
        "Of a dimension: whether a record without a declared column stalls it; else the column is "
        "NULL.",
        OptionType.FLAG,
        default="true",
    ),
    Option(
        f"{DEBEZIUM_JSON}decimal.handling.mode",
        "The connector's property: how it writes DECIMAL; of records without a schema.",
        OptionType.CHOICE,
        default=DecimalHandling.PRECISE,
        choices=tuple(DecimalHandling),
    ),
    Option(
        f"{DEBEZIUM_JSON}bigint.unsigned.handling.mode",
        "The connector's property: how it writes BIGINT UNSIGNED, which is DECIMAL(20, 0) here.",
        OptionType.CHOICE,
        default=BigintUnsignedHandling.LONG,
        choices=tuple(BigintUnsignedHandling),
    ),
    Option(
        f"{DEBEZIUM_JSON}time.precision.mode",
        "The connector's property: how it writes times; of records without a schema. With the "
        "adaptive ones TIME and TIMESTAMP must be declared with the database's precision.",
        OptionType.CHOICE,
        default=TimePrecision.ADAPTIVE_TIME_MICROSECONDS,
        choices=tuple(TimePrecision),
    ),
    Option(
        f"{DEBEZIUM_JSON}binary.handling.mode",
        "The connector's property: how it writes BYTES; of records without a schema.",
        OptionType.CHOICE,
        default=BinaryHandling.BYTES,
        choices=tuple(BinaryHandling),
    ),
    Option(
        f"{DEBEZIUM_JSON}unavailable.value.placeholder",
        "The connector's property: what stands for a large value that was not changed; it stalls "
        "the dimension.",
        default=UNAVAILABLE_VALUE,
    ),
    Option(
        f"{DEBEZIUM_JSON}source.table",
        "Of a dimension: the table whose records are read, where a topic has those of several.",
        pattern=_NAME,
        form="one name of at most 128 characters",
    ),
    Option(
        f"{DEBEZIUM_JSON}source.schema",
        "With `source.table`: its schema, in a database that has some.",
        pattern=_NAME,
        form="one name of at most 128 characters",
    ),
    Option(
        f"{DEBEZIUM_JSON}source.db",
        "With `source.table`: its database.",
        pattern=_NAME,
        form="one name of at most 128 characters",
    ),
)
SNAPSHOT_OPTIONS = (
    Option(
        "snapshot.notifications.topic",
        "Of a dimension: the topic of the connector's notifications, which tell how many rows were "
        "copied; on the same cluster.",
        pattern=r"(?!sluice\.)(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}",
        form="one topic name outside sluice.*",
    ),
    Option(
        "snapshot.connect.url",
        "Of a dimension: Kafka Connect's REST interface, which tells what the connector has "
        "committed; needs `snapshot.connect.connector`.",
        pattern=r"https?://(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,252}|\[[0-9A-Fa-f:.]+\])"
        r"(?::\d{1,5})?(?:/[A-Za-z0-9._~/-]{0,200})?",
        form="http://host:port or https://host:port, without a login",
    ),
    Option(
        "snapshot.connect.connector",
        "The connector's name there.",
        pattern=_NAME,
        form="one name of at most 128 characters",
    ),
    Option(
        "snapshot.settle-time",
        "Of a dimension: without a count, without Connect and before each partition has changes: "
        "how long a row of the snapshot may be on its way into the topic.",
        OptionType.DURATION,
        default="120 s",
        highest=86_400_000,
        form="0 s to 1 d, such as 120 s",
    ),
    Option(
        "snapshot.on-skipped",
        "Of a dimension: a connector that copies no rows first stalls it, or counts as one that "
        "has copied all.",
        OptionType.CHOICE,
        default="stall",
        choices=("stall", "open"),
    ),
    Option(
        "snapshot.on-repeated",
        "Of a dimension: once it is complete, a later snapshot of the connector replaces all rows, "
        "or its rows are merged into those that are there, as those of an ad hoc snapshot of a "
        "part of the table must be.",
        OptionType.CHOICE,
        default="replace",
        choices=("replace", "merge"),
    ),
)
