"""Options of a Kafka table that is a dimension: the connector that wrote it, and completeness."""

from joins.kernels.debezium.options import (
    UNAVAILABLE_VALUE,
    BigintUnsignedHandling,
    BinaryHandling,
    DecimalHandling,
    SpecialValues,
    TimePrecision,
    UnsentValues,
    ValueLayout,
)
from joins.plan.formats import KafkaFormat
from service.sql.catalog.option import (
    ADDRESS,
    PEM,
    Option,
    OptionType,
    TableRole,
    duration,
    only_of,
    with_prefix,
)

DEBEZIUM_JSON = f"{KafkaFormat.DEBEZIUM_JSON}."
DEBEZIUM_AVRO = f"{KafkaFormat.DEBEZIUM_AVRO_CONFLUENT}."
BIT_COLUMNS = "bit.columns"
TABLE_PATTERN = "source.table-pattern"
URL = "url"
AUTH_SOURCE, USER_INFO = "basic-auth.credentials-source", "basic-auth.user-info"
SSL_CA = "ssl.truststore.certificates"
SSL_CERT, SSL_KEY = "ssl.keystore.certificate.chain", "ssl.keystore.key"
_NAME = r"[^\x00-\x1f\x7f]{1,128}"
_OF_BOTH = (
    Option(
        "layout",
        "Of a dimension: whole envelopes, or rows as ExtractNewRecordState makes them.",
        OptionType.CHOICE,
        default=ValueLayout.ENVELOPE,
        choices=tuple(ValueLayout),
    ),
    Option(
        "fail-on-missing-field",
        "Of a dimension: whether a record without a declared column stalls it; else the column is "
        "NULL.",
        OptionType.FLAG,
        default="true",
    ),
    Option(
        "bigint.unsigned.handling.mode",
        "The connector's property: how it writes BIGINT UNSIGNED, which is DECIMAL(20, 0) here. "
        "While it is unknown, what may be one and may be something else stalls the dimension.",
        OptionType.CHOICE,
        default=BigintUnsignedHandling.UNKNOWN,
        choices=tuple(BigintUnsignedHandling),
    ),
    Option(
        "binary.handling.mode",
        "The connector's property: how it writes BYTES; a schema tells only that it is a text.",
        OptionType.CHOICE,
        default=BinaryHandling.BYTES,
        choices=tuple(BinaryHandling),
    ),
    Option(
        "unavailable.value.placeholder",
        "The connector's property: what stands for a large value that was not changed.",
        default=UNAVAILABLE_VALUE,
    ),
    Option(
        "unsent.values",
        "Of a dimension: what becomes of a change without a large value (TOAST of PostgreSQL): the "
        "record stalls it, or the column keeps the value of the row's last version.",
        OptionType.CHOICE,
        default=UnsentValues.FAIL,
        choices=tuple(UnsentValues),
    ),
    Option(
        "special.values",
        "Of a dimension: what becomes of `infinity`, `-infinity` and NaN of PostgreSQL in columns "
        "that have none (DATE, TIMESTAMP, DECIMAL): the record stalls it, the column is NULL, or "
        "the last or first day that the type has; NaN and infinite numbers are then NULL.",
        OptionType.CHOICE,
        default=SpecialValues.FAIL,
        choices=tuple(SpecialValues),
    ),
    Option(
        "source.table",
        "Of a dimension: the table whose records are read, where a topic has those of several.",
        pattern=_NAME,
        form="one name of at most 128 characters",
    ),
    Option(
        TABLE_PATTERN,
        "Of a dimension: a regular expression of the partitions of one table, whose records are in "
        "one topic; their rows are the rows of one table.",
        pattern=_NAME,
        form="one regular expression of Java of at most 128 characters",
    ),
    Option(
        "source.schema",
        "With `source.table` or `source.table-pattern`: its schema, in a database that has some.",
        pattern=_NAME,
        form="one name of at most 128 characters",
    ),
    Option(
        "source.db",
        "With `source.table` or `source.table-pattern`: its database.",
        pattern=_NAME,
        form="one name of at most 128 characters",
    ),
)
_OF_JSON = (
    Option(
        "schema-include",
        "Of a dimension: whether keys and values carry their schema; when missing, each record "
        "tells by itself.",
        OptionType.FLAG,
    ),
    Option(
        "decimal.handling.mode",
        "The connector's property: how it writes DECIMAL; of records without a schema.",
        OptionType.CHOICE,
        default=DecimalHandling.PRECISE,
        choices=tuple(DecimalHandling),
    ),
    Option(
        "time.precision.mode",
        "The connector's property: how it writes times; of records without a schema. With the "
        "adaptive ones TIME and TIMESTAMP must be declared with the database's precision.",
        OptionType.CHOICE,
        default=TimePrecision.ADAPTIVE_TIME_MICROSECONDS,
        choices=tuple(TimePrecision),
    ),
    Option(
        BIT_COLUMNS,
        "Of a dimension: columns that are BIT(n) in the database, separated by semicolons: without "
        "a schema they look like BYTES, but are base64 whatever `binary.handling.mode` says.",
    ),
)
OF_A_REGISTRY = (
    Option(
        URL,
        "The schema registry's address; required.",
        **ADDRESS,
    ),
    Option(
        AUTH_SOURCE,
        "Login to the registry; needs `basic-auth.user-info`.",
        OptionType.CHOICE,
        choices=("USER_INFO",),
    ),
    Option(
        USER_INFO,
        "User and password for the registry.",
        credential=True,
        reference=True,
        pattern=r"[^:\x00-\x1f\x7f]{1,256}:[^\x00-\x1f\x7f]{0,1024}|\$\{secret:[^{}]{1,128}\}",
        form="user:password, or ${secret:name} of a secret that is that",
    ),
    Option(
        SSL_CA,
        "CA certificates for the registry's certificate; the machine's CA store when missing. "
        "Flink's `ssl.truststore.location` names a file, this and the next two are texts.",
        **PEM,
    ),
    Option(SSL_CERT, "Client certificate, for a registry that requires one.", **PEM),
    Option(SSL_KEY, "Its key, without a passphrase.", credential=True, **PEM),
)


JSON_OPTIONS = only_of(with_prefix(DEBEZIUM_JSON, *_OF_BOTH, *_OF_JSON), TableRole.DIMENSION)
AVRO_OPTIONS = only_of(with_prefix(DEBEZIUM_AVRO, *OF_A_REGISTRY, *_OF_BOTH), TableRole.DIMENSION)
_OF_A_SNAPSHOT = (
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
        **ADDRESS,
    ),
    Option(
        "snapshot.connect.connector",
        "The connector's name there.",
        pattern=_NAME,
        form="one name of at most 128 characters",
    ),
    Option(
        "freshness.heartbeat.topic",
        "Of a dimension: the topic of the connector's heartbeats, on the same cluster; they show "
        "how far the connector is while the table is quiet.",
        pattern=r"(?!sluice\.)(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}",
        form="one topic name outside sluice.*",
    ),
    duration(
        "snapshot.settle-time",
        "Of a dimension: without a count, without Connect and before each partition has changes: "
        "how long a row of the snapshot may be on its way into the topic.",
        "0 s to 1 d, such as 120 s",
        default="120 s",
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
SNAPSHOT_OPTIONS = only_of(_OF_A_SNAPSHOT, TableRole.DIMENSION)
