"""The connectors `kafka` and `upsert-kafka`: topics as streams, dimensions and sinks."""

from dataclasses import replace

from joins.plan.formats import OF_CHANGES, KafkaFormat
from joins.plan.plan import (
    COMPRESSION_TYPE,
    ISOLATION_LEVEL,
    BoundedMode,
    Compression,
    Field,
    Isolation,
    KafkaOptions,
    KafkaSink,
    KafkaSource,
    OffsetReset,
    StartupMode,
    TopicSource,
)
from joins.plan.stream_topics import MOST_TOPICS, StreamTopic, StreamTopics, in_each
from service.sql.catalog.format_options import (
    ALL,
    EXCEPT_KEY,
    FIELDS_INCLUDE,
    FORMAT,
    KEY_FIELDS,
    KEY_FORMAT,
    KEY_PREFIX,
    OPTIONS_OF_FORMATS,
    ROW_FORMATS,
    VALUE_FORMAT,
)
from service.sql.catalog.formats import keyed_columns, record_columns, value_format
from service.sql.catalog.kafka_options import CLIENT_OPTIONS, IGNORED, OF_FLINK, OF_FLINK_KAFKA
from service.sql.catalog.kafka_tables import (
    COMMITS,
    DISCOVERY,
    GROUP,
    PATTERN,
    RESET,
    STARTUP,
    TOPIC,
    check_commits,
    check_group,
    client_properties,
    discovery_ms,
    offsets,
    refuse_evidence,
    startup_mode,
    timestamp,
    topic_source,
    topics,
)
from service.sql.catalog.option import (
    HOST,
    READ,
    Option,
    OptionType,
    TableRole,
    only_of,
)
from service.sql.catalog.option_values import Connector, Endpoints, Home, OptionValues, memory_bytes
from service.sql.catalog.topic_history import (
    HISTORY_OPTIONS,
    STREAM_HISTORY_OPTIONS,
    require_beginning,
    stream_history,
    with_history,
)
from service.sql.catalog.topic_options import AVRO_OPTIONS, JSON_OPTIONS, SNAPSHOT_OPTIONS
from service.sql.catalog.watermarks import (
    AFTER_BACKLOG,
    DIMENSION_OPTIONS,
    USE_PROCESSING_TIME,
    WATERMARK_OPTIONS,
)

_EARLIEST = "earliest-offset"
_AT_LEAST_ONCE, _EXACTLY_ONCE = "at-least-once", "exactly-once"
_OFFSETS = r"partition:\d{1,9},offset:\d{1,18}(?:;partition:\d{1,9},offset:\d{1,18})*;?"
_MOST_BYTES = "scan.max-bytes-per-batch"
_OFFSETS_FORM = "partition:0,offset:42;partition:1,offset:300"
_TOPIC_NAME = r"(?!sluice\.)(?!\.{1,2}(?:;|\Z))[A-Za-z0-9._-]{1,249}"
_ONE_TOPIC = Option(
    "topic",
    "The topic; names that start with `sluice.` are the service's own.",
    required=True,
    pattern=_TOPIC_NAME,
    form="one topic name outside sluice.*",
)
_TOPICS = (
    Option(
        "topic",
        "The topic; of a stream also several, separated by semicolons. Names that start with "
        "`sluice.` are the service's own.",
        pattern=rf"{_TOPIC_NAME}(?:;{_TOPIC_NAME}){{0,{MOST_TOPICS - 1}}}",
        form=f"1 to {MOST_TOPICS:,} topic names outside sluice.*, separated by semicolons",
    ),
    Option(
        "topic-pattern",
        "Of a stream, instead of `topic`: a regular expression that the whole name of each of its "
        "topics matches; topics of Kafka's and the service's own are left out.",
        pattern=r"[^\x00-\x1f\x7f]{1,1000}",
        form="1 to 1,000 printable characters",
    ),
    Option(
        DISCOVERY,
        "With `topic-pattern`: how often new topics are looked for, which are then read from their "
        "beginning; 0 for never. New partitions are seen before each batch, whatever this is.",
        OptionType.DURATION,
        default="5 min",
        highest=86_400_000,
        form="0 s to 1 d, such as 30 s or 5 min",
    ),
)
_BROKERS = (
    Option(
        "properties.bootstrap.servers",
        "Brokers as host:port, separated by commas.",
        required=True,
        pattern=rf"{HOST}:\d{{1,5}}(?:,\s*{HOST}:\d{{1,5}})*",
        form="host:port, separated by commas",
    ),
)
_OF_A_SINK = (
    Option(
        "sink.delivery-guarantee",
        "What a sink promises to readers of committed records; with exactly-once each batch is a "
        "transaction.",
        OptionType.CHOICE,
        default=_AT_LEAST_ONCE,
        choices=(_AT_LEAST_ONCE, _EXACTLY_ONCE),
    ),
    Option(
        "sink.transactional-id-prefix",
        "With exactly-once: what the job's transactional ids, and the groups of the same names, "
        "begin with; `sluice` when missing. The user needs WRITE on these ids, READ on these "
        "groups and on the topic.",
        pattern=r"[A-Za-z0-9._-]{1,100}",
        form="1 to 100 letters, digits, '.', '_' or '-'",
    ),
    Option(
        f"properties.{COMPRESSION_TYPE}",
        "How a sink compresses its records.",
        OptionType.CHOICE,
        default=Compression.NONE,
        choices=tuple(Compression),
    ),
)
_KEY = (
    Option(
        KEY_PREFIX,
        "What the names of the columns of the key begin with here, and not in the key; needs "
        "`value.fields-include` EXCEPT_KEY.",
        pattern=r"[^\x00-\x1f\x7f;]{1,128}",
        form="1 to 128 printable characters",
    ),
    Option(
        FIELDS_INCLUDE,
        "Whether the value has the columns of the key, too, which are then read from it.",
        OptionType.CHOICE,
        default=ALL,
        choices=(ALL, EXCEPT_KEY),
    ),
)
_END_OPTIONS = (
    Option(
        "scan.bounded.mode",
        "Where a source ends; the end is resolved to offsets at submission. A dimension is whole "
        "there, and has no further changes; group-offsets is of a stream.",
        OptionType.CHOICE,
        default="unbounded",
        choices=("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets"),
    ),
    Option(
        "scan.bounded.timestamp-millis",
        "With bounded mode timestamp: epoch milliseconds; records from there on are not read.",
        OptionType.NUMBER,
        highest=2**53,
    ),
    Option(
        "scan.bounded.specific-offsets",
        "With bounded mode specific-offsets: the offset behind the last record of each partition; "
        "nothing is read of the others.",
        pattern=_OFFSETS,
        form=_OFFSETS_FORM,
    ),
)
_GROUP = Option(
    GROUP,
    "Of a stream or a dimension: the consumer group to which the next offsets are committed behind "
    "each batch, for monitoring. It has no members, and the job's own offsets decide. "
    "The user needs READ on the group.",
    pattern=r"(?!sluice\.)[^\x00-\x1f\x7f]{1,255}",
    form="1 to 255 printable characters, not starting with sluice.",
    roles=READ,
)
_RESET = Option(
    RESET,
    "With startup mode group-offsets: where a partition starts whose offset the group has not, or "
    "the topic has not any more; none, Kafka's name for it, refuses the job.",
    OptionType.CHOICE,
    default=OffsetReset.NONE,
    choices=tuple(OffsetReset),
    roles=frozenset((TableRole.STREAM,)),
)
_COMMITS = Option(
    COMMITS,
    "With a group: whether offsets are committed to it, or only read from it at the start.",
    OptionType.FLAG,
    default="true",
    roles=READ,
)
_STARTUP = (
    Option(
        "scan.startup.mode",
        "Where a source starts; resolved to offsets at submission, the job's own count from then "
        "on. Flink's default is group-offsets; here a source starts at the end of the topic.",
        OptionType.CHOICE,
        default="latest-offset",
        choices=(
            "earliest-offset",
            "latest-offset",
            "group-offsets",
            "timestamp",
            "specific-offsets",
        ),
    ),
    Option(
        "scan.startup.timestamp-millis",
        "With mode timestamp: epoch milliseconds of the first record.",
        OptionType.NUMBER,
        highest=2**53,
    ),
    Option(
        "scan.startup.specific-offsets",
        "With mode specific-offsets: the first offset of each partition.",
        pattern=_OFFSETS,
        form=_OFFSETS_FORM,
    ),
)
_BATCH = (
    Option(
        "scan.max-records-per-batch",
        "Maximum records of a micro-batch, over all partitions.",
        OptionType.NUMBER,
        lowest=1,
        highest=100_000_000,
    ),
    Option(
        _MOST_BYTES,
        "Approximate maximum size of a micro-batch, over all partitions; the service's "
        "setting when missing.",
        OptionType.MEMORY,
        lowest=1 << 10,
        highest=1 << 40,
    ),
)
_KAFKA_OPTIONS = (
    *_TOPICS,
    *_BROKERS,
    Option(FORMAT, "Format of the value.", OptionType.CHOICE, choices=tuple(KafkaFormat)),
    Option(
        VALUE_FORMAT,
        "The same as `format`; options of the format may then begin with `value.`.",
        OptionType.CHOICE,
        choices=tuple(KafkaFormat),
    ),
    Option(
        KEY_FORMAT,
        "Format of the key; needs `key.fields`. Options of the format begin with `key.`.",
        OptionType.CHOICE,
        choices=ROW_FORMATS,
    ),
    Option(KEY_FIELDS, "Columns of the key, separated by semicolons."),
    *_KEY,
    *only_of(_STARTUP, TableRole.STREAM),
    *only_of(_END_OPTIONS, *READ),
    *(_GROUP, _RESET, _COMMITS),
    Option(
        f"properties.{ISOLATION_LEVEL}",
        "Which records a source reads of a topic with transactions: those of committed ones only, "
        "or also those of aborted and open ones. Flink's default, Kafka's own, reads them all.",
        OptionType.CHOICE,
        default=Isolation.COMMITTED,
        choices=tuple(Isolation),
        roles=READ,
    ),
    *only_of(_BATCH, TableRole.STREAM),
    *only_of(_OF_A_SINK, TableRole.SINK),
    *CLIENT_OPTIONS,
    *WATERMARK_OPTIONS,
    *DIMENSION_OPTIONS,
    *OPTIONS_OF_FORMATS,
    *JSON_OPTIONS,
    *AVRO_OPTIONS,
    *SNAPSHOT_OPTIONS,
    *STREAM_HISTORY_OPTIONS,
    Option(
        USE_PROCESSING_TIME,
        "Whether the stream goes on in processing time behind what was in it at submission.",
        OptionType.CHOICE,
        default="never",
        choices=("never", AFTER_BACKLOG),
        roles=frozenset((TableRole.STREAM,)),
    ),
    *OF_FLINK_KAFKA,
    *IGNORED,
)
_UPSERT_OPTIONS = (
    _ONE_TOPIC,
    *_BROKERS,
    Option(
        KEY_FORMAT,
        "Format of the key, which is the primary key. Its options begin with `key.`.",
        OptionType.CHOICE,
        required=True,
        choices=ROW_FORMATS,
    ),
    Option(
        VALUE_FORMAT,
        "Format of the value. Its options may begin with `value.`.",
        OptionType.CHOICE,
        required=True,
        choices=ROW_FORMATS,
    ),
    *_KEY,
    *OPTIONS_OF_FORMATS,
    *only_of(_OF_A_SINK, TableRole.SINK),
    *CLIENT_OPTIONS,
    *only_of((_GROUP, _COMMITS), *READ),
    *only_of(
        (
            replace(
                _END_OPTIONS[0],
                choices=("unbounded", "latest-offset", "timestamp", "specific-offsets"),
            ),
            *_END_OPTIONS[1:],
        ),
        *READ,
    ),
    *only_of(_BATCH, TableRole.STREAM),
    *only_of((option for option in WATERMARK_OPTIONS if option.roles == READ), TableRole.DIMENSION),
    *only_of(
        (
            replace(
                _STARTUP[0],
                meaning="With a history: where the topic starts behind it; resolved to offsets at "
                "submission. Without one the topic is read from its beginning.",
                default=_EARLIEST,
                choices=(_EARLIEST, "timestamp", "specific-offsets"),
                otherwise="Remove it: a dimension that starts elsewhere lacks rows.",
            ),
            *_STARTUP[1:],
        ),
        TableRole.DIMENSION,
    ),
    *HISTORY_OPTIONS,
    *OF_FLINK,
    *IGNORED,
    *DIMENSION_OPTIONS,
)
_BOOTSTRAP = "properties.bootstrap.servers"
_TRANSACTIONAL_ID_PREFIX = "sluice"
_BOUNDED = "scan.bounded"


def _kafka(
    values: OptionValues, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> Endpoints:
    columns = record_columns(values, fields)
    first, *more = names = topics(values)
    several = StreamTopics(tuple(map(StreamTopic, names)))
    history = stream_history(values, fields)
    start = startup_mode(values) if history is None else history.startup_mode
    end = BoundedMode(values.required("scan.bounded.mode"))
    check_group(values, start, end)
    options = _kafka_options(values, first)
    source = KafkaSource(
        kafka=options,
        startup_mode=start,
        startup_timestamp_ms=timestamp(values, "scan.startup", start)
        if history is None
        else history.startup_timestamp_ms,
        startup_offsets=in_each(several, offsets(values, "scan.startup", start)),
        max_records_per_batch=values.number("scan.max-records-per-batch"),
        bounded_mode=end,
        bounded_timestamp_ms=timestamp(values, _BOUNDED, end),
        bounded_offsets=in_each(several, offsets(values, _BOUNDED, end)),
        max_bytes_per_batch=memory_bytes(values.text(_MOST_BYTES) or ""),
        value=columns.value,
        key=columns.key,
        changes_by=primary_key if columns.value.name in OF_CHANGES else (),
        more_topics=tuple(more),
        topic_pattern=values.text(PATTERN),
        discovery_ms=discovery_ms(values),
        history=history,
    )
    prefix = _transactional_id_prefix(values)
    return Endpoints(
        source,
        with_history(
            values, _with_end(values, topic_source(values, source, fields)), fields, primary_key
        ),
        KafkaSink(options, columns.value, columns.key, transactional_id_prefix=prefix),
        has_startup_mode=values.is_set(STARTUP) or values.is_set(RESET) or history is not None,
        several_topics=PATTERN if source.topic_pattern else TOPIC if more else None,
    )


def _upsert_kafka(
    values: OptionValues, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> Endpoints:
    prefix = _transactional_id_prefix(values)
    kafka = _kafka_options(values, values.required(TOPIC))
    value = value_format(values)
    check_commits(values)
    dimension = _with_end(values, TopicSource(kafka, value))
    dimension = with_history(values, dimension, fields, primary_key)
    if dimension.history is None:
        require_beginning(values)
    key_columns = keyed_columns(values, fields, primary_key).key
    stream = KafkaSource(
        kafka=kafka,
        startup_mode=StartupMode.EARLIEST,
        max_records_per_batch=values.number("scan.max-records-per-batch"),
        bounded_mode=dimension.bounded_mode,
        bounded_timestamp_ms=dimension.bounded_timestamp_ms,
        bounded_offsets=dimension.bounded_offsets,
        max_bytes_per_batch=memory_bytes(values.text(_MOST_BYTES) or ""),
        value=value,
        key=key_columns,
        changes_by=primary_key,
    )
    return Endpoints(
        stream,
        replace(dimension, key=key_columns),
        sink=KafkaSink(kafka, value, key_columns, upsert=True, transactional_id_prefix=prefix),
    )


def _with_end(values: OptionValues, source: TopicSource) -> TopicSource:
    """A topic as a dimension; a bounded one is complete at its end and needs no evidence."""
    end = BoundedMode(values.required(f"{_BOUNDED}.mode"))
    source = replace(
        source,
        bounded_mode=end,
        bounded_timestamp_ms=timestamp(values, _BOUNDED, end),
        bounded_offsets=offsets(values, _BOUNDED, end),
    )
    if not source.is_bounded:
        return source
    refuse_evidence(values)
    return replace(source, evidence=None)


def _transactional_id_prefix(values: OptionValues) -> str | None:
    if values.required("sink.delivery-guarantee") == _EXACTLY_ONCE:
        return values.text("sink.transactional-id-prefix") or _TRANSACTIONAL_ID_PREFIX
    if values.is_set("sink.transactional-id-prefix"):
        values.ignore("sink.transactional-id-prefix", "at-least-once has no transactions")
    return None


def _kafka_options(values: OptionValues, topic: str) -> KafkaOptions:
    servers = [server.strip() for server in values.required(_BOOTSTRAP).split(",")]
    for server in servers:
        if not 1 <= int(server.rpartition(":")[2]) <= 65535:
            raise values.error(
                _BOOTSTRAP,
                f'broker "{server}" has a port that is not from 1 to 65535',
                hint="Write host:port, separated by commas.",
            )
    return KafkaOptions(
        bootstrap_servers=",".join(servers),
        topic=topic,
        properties=client_properties(values),
    )


KAFKA = Connector("kafka", _KAFKA_OPTIONS, _kafka, Home.RECORDS)
UPSERT_KAFKA = Connector(
    "upsert-kafka", _UPSERT_OPTIONS, _upsert_kafka, Home.RECORDS, needs_primary_key=True
)
