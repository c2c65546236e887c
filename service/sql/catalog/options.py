"""WITH options of each connector, for the planner and the reference."""
# reads better long: a row an option, in one table.

from dataclasses import replace

from joins.plan.connections import STORE_PATH
from joins.plan.formats import KafkaFormat
from joins.plan.plan import (
    COMMIT_OFFSETS,
    COMPRESSION_TYPE,
    GROUP_ID,
    ISOLATION_LEVEL,
    OFFSET_RESET,
    Compression,
    FileFormat,
    Isolation,
    OffsetReset,
    TlsMode,
)
from joins.plan.stream_topics import MOST_TOPICS
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
from service.sql.catalog.kafka_options import CLIENT_OPTIONS
from service.sql.catalog.option import PEM, READ, Option, OptionType, TableRole, only_of
from service.sql.catalog.store_options import OF_STORES, of_late_records
from service.sql.catalog.topic_options import AVRO_OPTIONS, JSON_OPTIONS, SNAPSHOT_OPTIONS

EMIT_STRATEGY = "scan.watermark.emit.strategy"
IDLE_TIMEOUT = "scan.watermark.idle-timeout"
MAX_FUTURE = "scan.watermark.max-future"
USE_PROCESSING_TIME = "scan.watermark.use-processing-time"
AFTER_BACKLOG = "after-backlog"
AT_LEAST_ONCE, EXACTLY_ONCE = "at-least-once", "exactly-once"
LATE_STORE = "late-records."
LATE_RECORDS = f"{LATE_STORE}path"
_PATH = (
    r"(?:file://(?=/))?/?"
    r"(?!\.{1,2}(?:/|$))[A-Za-z0-9_=+,@.-]+(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9_=+,@.-]+)*/?"
)
_PATH_FORM = 'a path without "..": relative to the warehouse, absolute, or file:///…'
_TABLE_PATH = f"(?:{_PATH}|{STORE_PATH})"
_TABLE_PATH_FORM = (
    f"{_PATH_FORM}; or in an object store: s3://bucket/table, "
    "abfss://container@account.dfs.core.windows.net/table, az://container/table"
)
_IDLE = Option(
    IDLE_TIMEOUT,
    "A partition without records for longer does not hold back the watermark; 0 s for never, the "
    "setting table.exec.source.idle-timeout when missing.",
    OptionType.DURATION,
    highest=86_400_000,
    form="0 s to 1 d, such as 30 s",
    roles=READ,
)
LATE_TABLE = Option(
    LATE_RECORDS,
    "Delta table of the records that come too late; one of the job's own when missing.",
    pattern=_TABLE_PATH,
    form=_TABLE_PATH_FORM,
    roles=frozenset((TableRole.STREAM,)),
)
_WATERMARK = (
    Option(
        EMIT_STRATEGY,
        "When a record's watermark holds: from the next batch on, or for the very next record.",
        OptionType.CHOICE,
        choices=("on-periodic", "on-event"),
        roles=frozenset((TableRole.STREAM,)),
    ),
    _IDLE,
    Option(
        MAX_FUTURE,
        "A record whose time is further ahead of the clock is a dead letter, and one of a "
        "dimension gives no watermark; 1 d when missing.",
        OptionType.DURATION,
        highest=3_650 * 86_400_000,
        form="0 s to 3650 d, such as 1 h",
        roles=READ,
    ),
    LATE_TABLE,
    *of_late_records(LATE_STORE, LATE_TABLE),
)
DISCOVERY = "scan.topic-partition-discovery.interval"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,252})|\[[0-9A-Fa-f:.]+\])"
_OFFSETS = r"partition:\d{1,9},offset:\d{1,18}(?:;partition:\d{1,9},offset:\d{1,18})*;?"
_OFFSETS_FORM = "partition:0,offset:42;partition:1,offset:300"
_IDENTIFIER = r"[^\x00-\x1f\x7f`/\\*+?|()\[\]{}^,;]{1,64}"
_IDENTIFIER_FORM = "one name of at most 64 characters, not a pattern"
_SYSTEM_SCHEMAS = "mysql|sys|information_schema|performance_schema"
_MYSQL = (
    Option(
        "hostname",
        "Host of the MySQL or MariaDB server.",
        required=True,
        pattern=_HOST,
        form="a host name or address",
    ),
    Option(
        "port",
        "Port of the server.",
        OptionType.NUMBER,
        default="3306",
        lowest=1,
        highest=65535,
    ),
    Option("username", "User with SELECT and replication grants.", required=True, reference=True),
    Option(
        "password",
        "Its password.",
        required=True,
        credential=True,
        reference=True,
        pattern=r"[^\x00-\x1f\x7f]{0,1024}",
    ),
    Option(
        "database-name",
        "Database of the table; none of the server's own.",
        required=True,
        pattern=rf"(?i:(?!(?:{_SYSTEM_SCHEMAS})\Z)){_IDENTIFIER}",
        form=_IDENTIFIER_FORM + ", outside the server's own databases",
    ),
    Option("table-name", "The table.", required=True, pattern=_IDENTIFIER, form=_IDENTIFIER_FORM),
    Option(
        "database.ssl.mode",
        "TLS of every connection to the server: as it likes, never, always, or verified by "
        "authority, or also by host name.",
        OptionType.CHOICE,
        default="preferred",
        choices=tuple(TlsMode),
    ),
    Option(
        "database.ssl.ca",
        "Who must have signed the server's certificate, with verify_ca and verify_identity; whom "
        "this machine trusts when missing.",
        **PEM,
    ),
    Option("database.ssl.cert", "Our certificate, for an account that asks for one.", **PEM),
    Option("database.ssl.key", "Its key, without a passphrase.", credential=True, **PEM),
    Option(
        "server-id",
        "Id of our binlog client, unique among the server's clients; chosen when missing.",
        OptionType.NUMBER,
        lowest=1,
        highest=2**32 - 1,
    ),
    Option(
        "scan.incremental.snapshot.chunk.size",
        "Rows of a snapshot chunk at the most.",
        OptionType.NUMBER,
        default="50000",
        lowest=1,
        highest=50_000,
    ),
    Option(
        "changelog.partitions",
        "Partitions of the changelog topic; the service's setting when missing.",
        OptionType.NUMBER,
        lowest=1,
        highest=1024,
    ),
    _IDLE,
)
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
        pattern=rf"{_HOST}:\d{{1,5}}(?:,\s*{_HOST}:\d{{1,5}})*",
        form="host:port, separated by commas",
    ),
)
_OF_A_SINK = (
    Option(
        "sink.delivery-guarantee",
        "What a sink promises to readers of committed records; with exactly-once each batch is a "
        "transaction.",
        OptionType.CHOICE,
        default=AT_LEAST_ONCE,
        choices=(AT_LEAST_ONCE, EXACTLY_ONCE),
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
_BOUNDED = (
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
    f"properties.{GROUP_ID}",
    "Of a stream or a dimension: the consumer group to which the next offsets are committed behind "
    "each batch, for those who watch groups. It has no members, and the job's own offsets decide. "
    "The user needs READ on the group.",
    pattern=r"(?!sluice\.)[^\x00-\x1f\x7f]{1,255}",
    form="1 to 255 printable characters, not starting with sluice.",
    roles=READ,
)
_RESET = Option(
    f"properties.{OFFSET_RESET}",
    "With startup mode group-offsets: where a partition starts whose offset the group has not, or "
    "the topic has not any more; none, Kafka's name for it, refuses the job.",
    OptionType.CHOICE,
    default=OffsetReset.NONE,
    choices=tuple(OffsetReset),
    roles=frozenset((TableRole.STREAM,)),
)
_COMMITS = Option(
    f"properties.{COMMIT_OFFSETS}",
    "With a group: whether offsets are committed to it, or only read from it at the start.",
    OptionType.FLAG,
    default="true",
    roles=READ,
)
OF_A_GROUP = _GROUP.key, _RESET.key, _COMMITS.key
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
        "Records of a micro-batch at the most, over all partitions.",
        OptionType.NUMBER,
        lowest=1,
        highest=100_000_000,
    ),
    Option(
        "scan.max-bytes-per-batch",
        "About how much the records of a micro-batch may have, over all partitions; the service's "
        "setting when missing.",
        OptionType.MEMORY,
        lowest=1 << 10,
        highest=1 << 40,
    ),
)
_KAFKA = (
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
    *only_of(_BOUNDED, *READ),
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
    *_WATERMARK,
    *OPTIONS_OF_FORMATS,
    *JSON_OPTIONS,
    *AVRO_OPTIONS,
    *SNAPSHOT_OPTIONS,
    Option(
        USE_PROCESSING_TIME,
        "Whether the stream goes on in processing time behind what was in it at submission.",
        OptionType.CHOICE,
        default="never",
        choices=("never", AFTER_BACKLOG),
        roles=frozenset((TableRole.STREAM,)),
    ),
)
_UPSERT_KAFKA = (
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
    *only_of((_GROUP, _COMMITS), TableRole.DIMENSION),
    *only_of(
        (
            replace(
                _BOUNDED[0], choices=("unbounded", "latest-offset", "timestamp", "specific-offsets")
            ),
            *_BOUNDED[1:],
        ),
        TableRole.DIMENSION,
    ),
    *only_of((option for option in _WATERMARK if option.roles == READ), TableRole.DIMENSION),
)
_DELTA = (
    Option(
        "path",
        "Where the table is: relative to the warehouse, absolute, or file:///…, without `..`; or "
        "in an object store: s3://bucket/table, "
        "abfss://container@account.dfs.core.windows.net/table, az://container/table.",
        required=True,
        pattern=_TABLE_PATH,
        form=_TABLE_PATH_FORM,
    ),
    *only_of(OF_STORES, TableRole.SINK, TableRole.DIMENSION),
    Option(
        "row-metadata",
        "Of a sink: add _topic, _partition, _offset, _batch and _dimension_versions to each row.",
        OptionType.FLAG,
        default="true",
        roles=frozenset((TableRole.SINK,)),
    ),
    Option(
        "source.monitor-interval",
        "Of a dimension: how often the table is looked at for a new version.",
        OptionType.DURATION,
        default="1 s",
        lowest=100,
        highest=3_600_000,
        form="100 ms to 1 h, such as 500 ms or 2 s",
        roles=frozenset((TableRole.DIMENSION,)),
    ),
    Option(
        "changelog.partitions",
        "Of a dimension: partitions of the changelog topic; the service's setting when missing.",
        OptionType.NUMBER,
        lowest=1,
        highest=1024,
        roles=frozenset((TableRole.DIMENSION,)),
    ),
    *only_of((_IDLE,), TableRole.DIMENSION),
    Option(
        "sink.writer",
        "Who appends: our columnar writer, or Spark's own Delta writer where the table needs it.",
        OptionType.CHOICE,
        default="auto",
        choices=("auto", "columnar", "spark"),
        roles=frozenset((TableRole.SINK,)),
    ),
)
_OF_FILES = {
    "json.fail-on-missing-field": "Whether a line without one of the declared columns stalls the "
    "job; else what is missing is NULL.",
    "json.ignore-parse-errors": "Whether what does not fit its column is NULL, and a line that is "
    "no object is passed over without a trace; else either stalls the job.",
    "csv.field-delimiter": None,
    "csv.quote-character": None,
    "csv.disable-quote-character": None,
    "csv.escape-character": None,
    "csv.allow-comments": "Whether lines that begin with # are passed over.",
    "csv.ignore-parse-errors": "Whether a cell that does not fit its column, or is not there, is "
    "NULL, and what is no row is passed over without a trace; else either stalls the job.",
    "csv.array-element-delimiter": None,
    "csv.null-literal": "The text of a cell that is NULL. When missing no cell is.",
}
_FILESYSTEM = (
    Option(
        "path",
        "A file, or a directory of files: relative to the warehouse, absolute, or file:///…; "
        "without `..`.",
        required=True,
        pattern=_PATH,
        form=_PATH_FORM,
    ),
    Option(
        "format",
        "What the files are: Parquet, lines of JSON, or CSV.",
        OptionType.CHOICE,
        required=True,
        choices=tuple(FileFormat),
    ),
    Option(
        "changelog.partitions",
        "Partitions of the changelog topic; the service's setting when missing.",
        OptionType.NUMBER,
        lowest=1,
        highest=1024,
    ),
    *only_of(
        (
            replace(option, meaning=_OF_FILES[option.key] or option.meaning)
            for option in OPTIONS_OF_FORMATS
            if option.key in _OF_FILES
        ),
        TableRole.DIMENSION,
    ),
)
_DATAGEN = (
    Option(
        "rows-per-second",
        "Rows a second.",
        OptionType.NUMBER,
        default="10000",
        lowest=1,
        highest=10_000_000,
    ),
    Option(
        "number-of-rows",
        "Rows until the source ends, and the job with it; unbounded when missing.",
        OptionType.NUMBER,
        lowest=1,
    ),
    Option(
        "fields.#.kind",
        "How a column is made; a sequence when start or end is given.",
        OptionType.CHOICE,
        choices=("random", "sequence"),
    ),
    Option("fields.#.min", "Smallest value of a random number.", pattern=r"[+-]?[0-9.eE+-]{1,60}"),
    Option("fields.#.max", "Largest value of a random number.", pattern=r"[+-]?[0-9.eE+-]{1,60}"),
    Option("fields.#.start", "First value of a sequence.", pattern=r"[+-]?\d{1,40}"),
    Option("fields.#.end", "Last value of a sequence, which bounds it.", pattern=r"[+-]?\d{1,40}"),
    Option(
        "fields.#.length",
        "Length of a random text, 100 when missing; of an ARRAY or a MAP, 3 when missing.",
        OptionType.NUMBER,
        lowest=1,
        highest=65_536,
    ),
    Option(
        "fields.#.expression",
        "What values are made by: text with parts such as #{Name.fullName}, #{Internet.uuid}, "
        "#{Options.option 'a','b'}, #{Number.numberBetween '1','9'} (below 9), "
        "#{Date.past '15','SECONDS'}.",
    ),
    Option(
        "fields.#.skew",
        "Exponent of Zipf's law: the first of the possible values are the most frequent, as in "
        "real keys; 1.1 is usual.",
        pattern=r"[0-9]{1,2}(\.[0-9]{1,6})?",
    ),
    Option(
        "fields.#.null-rate", "Share of the values that are NULL.", pattern=r"0(\.[0-9]{1,6})?|1"
    ),
    Option(
        "fields.#.max-past",
        "How far a TIMESTAMP lies before the clock at most; it is the clock's when missing.",
        OptionType.DURATION,
        lowest=0,
        highest=3_650 * 86_400_000,
    ),
    *_WATERMARK,
)
_PRINT = (Option("print-identifier", "Put in front of each row.", default=""),)
CONNECTORS: dict[str, tuple[Option, ...]] = {
    "mysql-cdc": _MYSQL,
    "kafka": _KAFKA,
    "upsert-kafka": _UPSERT_KAFKA,
    "delta": _DELTA,
    "filesystem": _FILESYSTEM,
    "datagen": _DATAGEN,
    "print": _PRINT,
    "blackhole": (),
}
