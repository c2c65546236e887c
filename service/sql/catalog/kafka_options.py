"""Options of Kafka's client under Kafka's names: used, accepted without effect, or refused."""

from dataclasses import replace
from typing import Any

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
    VERIFIED_NAME,
    ClientNumber,
)
from service.sql.catalog.option import (
    ADDRESS,
    PEM,
    READ,
    Option,
    OptionType,
    TableRole,
    ignored,
    only_value,
)

PROPERTY = "properties."
_FILE: dict[str, Any] = {
    "pattern": r"/[^\x00-\x1f\x7f]{1,1023}",
    "form": "an absolute path in a directory of SLUICE_ALLOWED_PEM_PATHS",
}
_SECURITY = (
    Option(
        "security.protocol",
        "How to reach the brokers.",
        OptionType.CHOICE,
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    Option(
        "sasl.mechanism",
        "How to log in.",
        OptionType.CHOICE,
        choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
    ),
    Option("sasl.username", "User of the login by PLAIN or SCRAM.", reference=True),
    Option("sasl.password", "Its password.", credential=True, reference=True),
    Option(
        TOKEN_URL,
        "With OAUTHBEARER: where the client's id and secret are exchanged for a token (grant "
        "`client_credentials`).",
        **ADDRESS,
    ),
    Option(CLIENT_ID, "With OAUTHBEARER: the client's id.", reference=True),
    Option(CLIENT_SECRET, "With OAUTHBEARER: its secret.", credential=True, reference=True),
    Option(SCOPE, "With OAUTHBEARER: the requested scope; none when missing."),
    Option(
        "ssl.truststore.type",
        "Only PEM texts are read, no Java keystores.",
        OptionType.CHOICE,
        choices=("PEM",),
    ),
    Option(
        TRUSTSTORE_CERTIFICATES,
        "With TLS: CA certificates for the brokers' certificates; the machine's CA store when "
        "missing.",
        **PEM,
    ),
    Option(TRUSTSTORE_FILE, "The same as a file of the control plane's machine.", **_FILE),
    Option(
        "ssl.keystore.type",
        "Only PEM texts are read, no Java keystores.",
        OptionType.CHOICE,
        choices=("PEM",),
    ),
    Option(
        KEYSTORE_CERTIFICATES, "With TLS: client certificate, for brokers that require one.", **PEM
    ),
    Option(KEYSTORE_KEY, "Its key.", credential=True, **PEM),
    Option(KEYSTORE_FILE, "A file with the client certificate and its key.", **_FILE),
    Option(KEY_PASSWORD, "The key's passphrase, if it has one.", credential=True, reference=True),
    Option(
        VERIFIED_NAME,
        "With TLS: whether a broker's certificate must have its host's name; with '' only its CA "
        "is checked.",
        OptionType.CHOICE,
        default="https",
        choices=("https", ""),
    ),
)
_MEANINGS = {
    ClientNumber.FETCH_BYTES: "Bytes that a broker sends at once when records are read.",
    ClientNumber.PARTITION_BYTES: "Bytes of a partition that a broker sends at once.",
    ClientNumber.IDLE_MS: "After how long an unused connection is closed.",
    ClientNumber.METADATA_MS: "Interval at which the cluster's partitions are refreshed.",
    ClientNumber.BACKOFF_MS: "First delay before a reconnect to a broker.",
    ClientNumber.BACKOFF_MAX_MS: "Longest delay before a reconnect to a broker.",
    ClientNumber.RETRY_MS: "Delay before a failed request is repeated.",
    ClientNumber.RECEIVE_BYTES: "Receive buffer of a socket.",
    ClientNumber.SEND_BYTES: "Send buffer of a socket.",
}
_OF_FETCHES = (ClientNumber.FETCH_BYTES, ClientNumber.PARTITION_BYTES)
_TUNING = (
    Option(
        "client.id",
        "Client id in the brokers' logs, metrics and quotas.",
        pattern=r"[A-Za-z0-9._-]{1,200}",
        form="1 to 200 letters, digits, '.', '_' or '-'",
    ),
    *(
        Option(
            name,
            meaning,
            OptionType.NUMBER,
            lowest=1,
            highest=2**31 - 1,
            roles=READ if name in _OF_FETCHES else frozenset(TableRole),
        )
        for name, meaning in _MEANINGS.items()
    ),
)


def _property(option: Option) -> Option:
    return replace(option, key=PROPERTY + option.key)


CLIENT_OPTIONS = tuple(map(_property, (*_SECURITY, *_TUNING)))
_BY_USER = "'properties.sasl.username' and 'properties.sasl.password'"
_BY_TOKEN = f"'{PROPERTY}{CLIENT_ID}' and '{PROPERTY}{CLIENT_SECRET}'"
_JAVA = "it configures the Java client"
_NO_MEMBER = "the job is not a member of a consumer group"
_BATCHES = "a sink sends whole batches, each once, and waits for all replicas"
_READS = "records are read from partition leaders as soon as they arrive, and timeouts are reported"
_TLS = "TLS 1.2 or 1.3 is used, with the ciphers of this machine's OpenSSL"


def _of_client(instead: str, *names: str) -> tuple[Option, ...]:
    return ignored(instead, *(PROPERTY + name for name in names))


IGNORED = (
    *_of_client("'scan.max-records-per-batch' limits a batch", "max.poll.records"),
    *_of_client("'properties.client.id' names the client", "client.id.prefix"),
    *_of_client(
        "with 'properties.group.id' offsets are committed behind each batch, unless "
        "'properties.commit.offsets.on.checkpoint' is false",
        "enable.auto.commit",
        "auto.commit.interval.ms",
    ),
    *_of_client(
        _NO_MEMBER,
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "partition.assignment.strategy",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
    ),
    *_of_client(
        _BATCHES,
        "acks",
        "retries",
        "batch.size",
        "linger.ms",
        "buffer.memory",
        "enable.idempotence",
        "max.block.ms",
        "max.request.size",
        "max.in.flight.requests.per.connection",
        "delivery.timeout.ms",
        "transaction.timeout.ms",
        "partitioner.*",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
    ),
    *_of_client(
        _JAVA,
        "key.deserializer",
        "value.deserializer",
        "key.serializer",
        "value.serializer",
        "interceptor.classes",
        "metric.*",
        "metrics.*",
        "register.consumer.metrics",
        "auto.include.jmx.reporter",
        "security.providers",
    ),
    *_of_client(
        _READS,
        "fetch.min.bytes",
        "fetch.max.wait.ms",
        "check.crcs",
        "client.rack",
        "client.dns.lookup",
        "request.timeout.ms",
        "default.api.timeout.ms",
        "socket.*",
        "exclude.internal.topics",
        "allow.auto.create.topics",
        "metadata.max.idle.ms",
        "metadata.recovery.*",
        "retry.backoff.max.ms",
    ),
    *_of_client(
        "new partitions are found before each batch, and read from their beginning",
        "partition.discovery.interval.ms",
    ),
    *_of_client(
        _TLS,
        "ssl.protocol",
        "ssl.enabled.protocols",
        "ssl.cipher.suites",
        "ssl.provider",
        "ssl.keymanager.algorithm",
        "ssl.trustmanager.algorithm",
        "ssl.secure.random.implementation",
        "ssl.engine.factory.class",
    ),
    *_of_client("no client of this service reads it", "*"),
)
"""Names of Kafka and Flink that have no effect here; `REFUSED` goes first."""
REFUSED = (
    (r"sasl\.jaas\.config", f"Write {_BY_USER} instead; with OAUTHBEARER {_BY_TOKEN}."),
    (r"transactional\.id", "Write 'sink.transactional-id-prefix' instead."),
    (
        r"ssl\.(?:truststore|keystore)\.(?:password|location)|ssl\.key\.location",
        "Remove it: only a key of PEM has a passphrase, 'properties.ssl.key.password'.",
    ),
    (
        r"sasl\.kerberos\..*",
        "Remove it: there is no Kerberos; log in by SCRAM-SHA-512, PLAIN or OAUTHBEARER.",
    ),
    (
        r"sasl\.(?:login|client|oauthbearer)\..*",
        "Remove it: a token is requested with the client's id and secret, and renewed before it "
        "expires.",
    ),
    (
        r"ssl\..*",
        "Remove it: TLS 1.2 or 1.3 is used, with the ciphers of this machine's OpenSSL.",
    ),
)
"""Names, without their prefix, whose loss would change who is let in; and what to do."""
_PARTITIONS = "the partitions of the topic and the cores of Spark say what runs at once"
_BUFFERED = "a sink writes the rows of a batch at once"
OF_FLINK = (
    *ignored(_PARTITIONS, "scan.parallelism", "sink.parallelism"),
    *ignored(_BUFFERED, "sink.buffer-flush.max-rows", "sink.buffer-flush.interval"),
    *ignored(
        "the transactional ids of a job are numbered, and reused",
        "sink.transaction-naming-strategy",
    ),
    *ignored(
        "each column is read from the part of the record that has it",
        "key.format-projection-pushdown-level",
        "value.format-projection-pushdown-level",
        "key.format-projection-pushdown",
        "value.format-projection-pushdown",
    ),
    *ignored("keys of a MAP are never NULL", "json.map-null-key.mode", "json.map-null-key.literal"),
    *ignored(
        "one parser reads every record",
        "json.decode.json-parser.enabled",
    ),
    *ignored("records have no codec", "avro.codec"),
    *ignored(
        "it configures the Java client",
        "avro-confluent.properties.*",
        "debezium-avro-confluent.properties.*",
    ),
)
OF_FLINK_KAFKA = (
    *OF_FLINK,
    only_value(
        "sink.partitioner",
        ("default", "fixed", "round-robin"),
        "a record goes to the partition of its key; without a key the partitions take turns",
        "Remove it: code cannot be added to a job.",
    ),
    only_value(
        "sink.semantic",
        ("at-least-once", "none"),
        "'sink.delivery-guarantee' is its newer name, and at-least-once its default",
        "Write 'sink.delivery-guarantee' = 'exactly-once' instead.",
    ),
    *(
        only_value(
            f"record.{part}.include.kafka.connect.json.schema",
            ("false",),
            "records of rows have no schema in them",
            "Remove it, and let the connector write without schemas: "
            "'value.converter.schemas.enable' = 'false' in its configuration.",
        )
        for part in ("key", "value")
    ),
    *ignored(
        "a record that cannot be read stalls the dimension, and is shown",
        "debezium-json.ignore-parse-errors",
    ),
    *ignored(
        "times are read as the connector writes them",
        "debezium-json.timestamp-format.standard",
        "debezium-json.map-null-key.mode",
        "debezium-json.map-null-key.literal",
        "debezium-json.encode.decimal-as-plain-number",
        "debezium-json.encode.ignore-null-fields",
    ),
)
