"""The frozen plan of one job: the planner makes it, the job store keeps it, the data path runs it.

A plan holds no secret: options keep their `${secret:name}` references, which the runner resolves.
"""
# reads better long: a plan is one document, whose parts name each other and have one format.

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal
from urllib.parse import urlsplit

from joins.plan.connections import StoreOptions
from joins.plan.formats import (
    JSON_FORMAT,
    OF_CHANGES,
    KafkaFormat,
    RecordFormat,
    RecordKey,
    formats_explained,
)
from joins.plan.stream_topics import HISTORY, HistoryTopic, StreamTopic, StreamTopics
from joins.plan.types import Column, Expression, SqlType, TypeName

PLAN_FORMAT_VERSION = 1
SET_FORMAT_VERSION = 2
"""For plans with several INSERTs: a reader of version 1 would run only the first one."""
TABLES_FORMAT_VERSION = 3
"""For INSERTs with topics of their own: a reader of older versions would read all for each."""
DEFAULT_MAX_FUTURE_MS = 86_400_000


class JoinType(StrEnum):
    """Treatment of unmatched probe rows."""

    INNER = "INNER"
    LEFT = "LEFT"


class StartupMode(StrEnum):
    """Where a Kafka probe starts; resolved to offsets at submission."""

    EARLIEST = "earliest-offset"
    LATEST = "latest-offset"
    TIMESTAMP = "timestamp"
    SPECIFIC = "specific-offsets"
    GROUP = "group-offsets"


class BoundedMode(StrEnum):
    """Where a Kafka probe ends; resolved to offsets at submission."""

    UNBOUNDED = "unbounded"
    LATEST = "latest-offset"
    TIMESTAMP = "timestamp"
    SPECIFIC = "specific-offsets"
    GROUP = "group-offsets"


@dataclass(frozen=True, slots=True)
class Field:
    """A physical column of a record, a table or the output."""

    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class MetadataField:
    """A column that reads the record's metadata; `key` as in `service.sql`, such as `topic`."""

    name: str
    key: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class ComputedField:
    """`name AS expression`; the expression's columns belong to the same relation."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class WatermarkSpec:
    """`WATERMARK FOR rowtime AS expression` of a table, and its options.

    As in Flink's SQL, a channel's watermark is the greatest value of `expression` so far, without
    subtracting a millisecond. Times have at most milliseconds.
    """

    rowtime: str  # a physical, metadata or computed column, TIMESTAMP or TIMESTAMP_LTZ
    # over the table's own columns, of the type of `rowtime`; NULL gives no watermark
    expression: Expression
    # a row's watermark holds for the next row of its partition (`scan.watermark.emit.strategy` =
    # `on-event`); otherwise from the next batch on
    on_event: bool = False
    idle_timeout_ms: int | None = None  # a partition without records for longer is idle; None never
    # a partition of a stream without records for longer follows the clock, this and `bound_ms`
    # behind it; None never
    max_wait_ms: int | None = None
    bound_ms: int = 0  # what `expression` subtracts from `rowtime`; only set beside `max_wait_ms`
    # a row whose rowtime is further ahead of the batch's clock is a dead letter
    max_future_ms: int = DEFAULT_MAX_FUTURE_MS
    # a partition changes to processing time once it has been read up to its end at submission
    # (`scan.watermark.use-processing-time`)
    after_backlog: bool = False


ISOLATION_LEVEL = "isolation.level"


class Isolation(StrEnum):
    """`isolation.level`: which records of a topic with transactions are read."""

    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


COMPRESSION_TYPE = "compression.type"


class Compression(StrEnum):
    """`compression.type` of a sink's records, in Kafka's own order."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


GROUP_ID, OFFSET_RESET = "group.id", "auto.offset.reset"
COMMIT_OFFSETS = "commit.offsets.on.checkpoint"


_EXPLAINED_PROPERTIES = (
    "security.protocol",
    "sasl.mechanism",
    ISOLATION_LEVEL,
    COMPRESSION_TYPE,
    GROUP_ID,
)


@dataclass(frozen=True, slots=True)
class DatasetName:
    """A dataset's name by OpenLineage's rules ("Dataset naming"), which all its tools share."""

    namespace: str
    name: str


def _dataset_of(path: str) -> DatasetName:
    """A path below the warehouse stays relative: only the job's node knows where that is."""
    url = urlsplit(path)
    if not url.scheme or url.scheme == "file":
        return DatasetName("file", url.path)
    return DatasetName(f"{url.scheme}://{url.netloc}", url.path.lstrip("/"))


class OffsetReset(StrEnum):
    """`auto.offset.reset`: where a stream starts whose group has no usable offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """Connection to a topic; `properties` are allow-listed, without `bootstrap.servers`."""

    bootstrap_servers: str
    topic: str
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def dataset(self) -> DatasetName:
        server = self.bootstrap_servers.split(",")[0].strip()
        return DatasetName(f"kafka://{server}", self.topic)

    def explained(self, topics: str = "") -> str:
        shown = [f"{key}={v}" for key, v in self.properties if key in _EXPLAINED_PROPERTIES]
        return ", ".join([f"{topics or self.topic} @ {self.bootstrap_servers}", *shown])

    @property
    def isolation(self) -> Isolation:
        return Isolation(dict(self.properties).get(ISOLATION_LEVEL, Isolation.COMMITTED))

    @property
    def compression(self) -> Compression:
        return Compression(dict(self.properties).get(COMPRESSION_TYPE, Compression.NONE))

    @property
    def group(self) -> str | None:
        return dict(self.properties).get(GROUP_ID)

    @property
    def reported_group(self) -> str | None:
        return None if dict(self.properties).get(COMMIT_OFFSETS) == "false" else self.group

    @property
    def offset_reset(self) -> OffsetReset:
        return OffsetReset(dict(self.properties).get(OFFSET_RESET, OffsetReset.NONE))

    def uncommitted(self) -> "KafkaOptions":
        return self._with(ISOLATION_LEVEL, Isolation.UNCOMMITTED)

    def unreported(self) -> "KafkaOptions":
        return self._with(COMMIT_OFFSETS, "false") if self.group is not None else self

    def compressing(self, compression: Compression) -> "KafkaOptions":
        return self._with(COMPRESSION_TYPE, compression)

    def _with(self, name: str, value: str) -> "KafkaOptions":
        others = tuple(each for each in self.properties if each[0] != name)
        return replace(self, properties=tuple(sorted((*others, (name, str(value))))))


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """A Kafka topic of rows, or several that are one stream.

    Once offsets are resolved, partitions are numbers of `joins.plan.stream_topics`; before that, a
    partition applies to each topic. Offsets are pairs with the partition; end offsets are
    exclusive.
    """

    kafka: KafkaOptions  # with the first topic; "" before a pattern is resolved
    startup_mode: StartupMode = StartupMode.LATEST
    startup_timestamp_ms: int | None = None
    startup_offsets: tuple[tuple[int, int], ...] = ()
    # over all partitions; None for the default, as for bytes
    max_records_per_batch: int | None = None
    bounded_mode: BoundedMode = BoundedMode.UNBOUNDED
    bounded_timestamp_ms: int | None = None  # exclusive
    bounded_offsets: tuple[tuple[int, int], ...] = ()  # nothing is read of other partitions
    max_bytes_per_batch: int | None = None
    bounded_records: int | None = None  # maximum per partition, None for all up to its end
    # ends at submission with a watermark `after_backlog`; empty before they are resolved
    backlog_offsets: tuple[tuple[int, int], ...] = ()
    value: RecordFormat = JSON_FORMAT
    key: RecordKey | None = None  # None without key columns
    more_topics: tuple[str, ...] = ()
    # a regular expression of Java for the names of the stream's topics
    topic_pattern: str | None = None
    # interval of the search for new topics that match; None for never
    discovery_ms: int | None = None
    # Kafka's UUIDs of the topics that resolved offsets belong to; empty before
    topic_ids: tuple[str, ...] = ()
    history: "TopicHistory | None" = None  # files with the stream's older rows
    # the primary key of a table of changes: a record replaces or deletes the row of its key; empty
    # for a stream of rows
    changes_by: tuple[str, ...] = ()
    kind: Literal["kafka"] = "kafka"

    @property
    def topics(self) -> StreamTopics:
        topics = StreamTopics.one(self.kafka.topic).with_more(map(StreamTopic, self.more_topics))
        if self.history is None or self.history.listed is None:
            return topics
        return replace(topics, history=self.history.listed.as_topic(self.kafka.topic))


class DatagenKind(StrEnum):
    """Generator of a datagen field."""

    RANDOM = "random"
    SEQUENCE = "sequence"


COLLECTION_SIZE = 3
"""Elements of a generated ARRAY, entries of a MAP, unless an option says otherwise; as in Flink."""


@dataclass(frozen=True, slots=True)
class DatagenField:
    """One generated field; bounds are inclusive text numbers, `length` is of strings and arrays."""

    # of a column, or the path of a part of one: `payload.id`, `items.element`, `labels.key`,
    # `labels.value`
    name: str
    generator: DatagenKind
    minimum: str | None = None
    maximum: str | None = None
    start: str | None = None
    end: str | None = None  # last value of a sequence, after which the source is bounded
    length: int | None = None
    expression: str | None = None  # a template of `joins.plan.faker`
    skew: float | None = None  # exponent of Zipf's law: the first possible values are frequent
    null_rate: float = 0.0  # share of NULL values
    max_past_ms: int = 0  # the furthest that a time lies before the clock


@dataclass(frozen=True, slots=True)
class DatagenSource:
    """A seeded generator process that writes to an internal Kafka topic.

    `rows_per_second` is the rate over all fields (Flink's default is 10,000); `number_of_rows` is
    None for unbounded.
    """

    rows_per_second: int
    number_of_rows: int | None
    fields: tuple[DatagenField, ...]
    kind: Literal["datagen"] = "datagen"


NO_STREAM = DatagenSource(rows_per_second=0, number_of_rows=None, fields=())
"""Stream of a job that keeps a shared table: its topic stays empty."""


@dataclass(frozen=True, slots=True)
class ProbeSource:
    """The stream side of the join, whose records wait for the dimensions."""

    alias: str  # its name in the statement
    table: str
    source: "KafkaSource | DatagenSource | TableStream"
    fields: tuple[Field, ...]
    metadata_fields: tuple[MetadataField, ...] = ()
    computed_fields: tuple[ComputedField, ...] = ()
    watermark: WatermarkSpec | None = None
    # `late-records.path`: absolute, relative to the warehouse or in an object store; None for the
    # job's own table
    late_records_path: str | None = None
    late_store: StoreOptions = ()
    # indexes of this table's topics in the stream; empty for all, also future ones
    reads: tuple[int, ...] = ()
    # columns by which a newer record replaces the row of an older one, as a change does
    # (`ROW_NUMBER() OVER (PARTITION BY … ORDER BY proctime DESC) = 1`)
    newest_by: tuple[str, ...] = ()

    @property
    def late_records(self) -> "DeltaSink | None":
        if self.late_records_path is None:
            return None
        return DeltaSink(self.late_records_path, store=self.late_store)

    @property
    def topic_names(self) -> tuple[str, ...]:
        if not isinstance(self.source, KafkaSource):
            return ()
        return self.source.topics.of(self.reads).names

    @property
    def captured(self) -> "Dimension | None":
        """The table of a `TableStream`, under the name of its files; None for other streams."""
        source = self.source
        if not isinstance(source, TableStream):
            return None
        return Dimension(f"{self.table}.stream", source.table, self.fields, source.changes_by)

    @property
    def unnamed(self) -> "ProbeSource":
        return replace(self, alias="", computed_fields=())


class TlsMode(StrEnum):
    """Use and verification of TLS for a database connection; names of Debezium."""

    DISABLED = "disabled"
    PREFERRED = "preferred"
    REQUIRED = "required"
    VERIFY_CA = "verify_ca"
    VERIFY_IDENTITY = "verify_identity"


@dataclass(frozen=True, slots=True)
class MysqlTls:
    """TLS of a database connection; PEM texts, or `${secret:name}` references to them."""

    mode: TlsMode = TlsMode.PREFERRED
    # signers of the server's certificate, None for those that this machine trusts
    ca: str | None = field(default=None, repr=False)
    # the client's certificate, for accounts that require one; `key` belongs to it
    cert: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)


PREFERRED_TLS = MysqlTls()

DATABASE_NAME, TABLE_NAME, OP_TS = "database_name", "table_name", "op_ts"
"""Keys of metadata of a captured table: its names, and the time of the change in whole seconds."""


@dataclass(frozen=True, slots=True)
class MysqlCdcSource:
    """A MySQL or MariaDB table, or all that its names match: a snapshot, then the binlog."""

    hostname: str
    port: int
    username: str
    password: str = field(repr=False)  # may be a `${secret:name}` reference
    database: str
    table: str
    server_id: int | None = None  # of the binlog client; None lets the runner choose a free one
    chunk_rows: int = 50_000
    changelog_partitions: int | None = None  # None for the setting's default
    tls: MysqlTls = PREFERRED_TLS
    zone: str = "UTC"  # in which an instant of the server has the date and clock of a TIMESTAMP
    # columns whose values are not the server's; their keys are `DATABASE_NAME` …
    metadata: tuple[MetadataField, ...] = ()
    kind: Literal["mysql-cdc"] = "mysql-cdc"

    @property
    def dataset(self) -> DatasetName:
        server = f"mysql://{self.hostname}:{self.port}"
        return DatasetName(server, f"{self.database}.{self.table}")

    @property
    def explained(self) -> str:
        return f"mysql-cdc({self.database}.{self.table} @ {self.hostname}:{self.port})"


@dataclass(frozen=True, slots=True)
class TableStream:
    """The stream of a captured table: the rows of one copy, then each change of them.

    The job's own process sends them to an internal topic. `changes_by` is the primary key.
    """

    table: MysqlCdcSource
    changes_by: tuple[str, ...]
    kind: Literal["mysql-cdc"] = "mysql-cdc"


class Database(StrEnum):
    """A kind of database that is read by its queries."""

    POSTGRESQL = "postgresql"
    MYSQL = "mysql"


@dataclass(frozen=True, slots=True)
class PolledSource:
    """A table of a database, read again and again: whole, or the rows that a column says are new.

    Between whole reads, without a column at each read, a row that is gone stays in the copy.
    """

    database_kind: Database
    hostname: str
    port: int
    username: str
    password: str = field(repr=False)  # may be a `${secret:name}` reference
    database: str
    table: str  # of PostgreSQL with its schema in front, if it is named
    refresh_ms: int  # from the start of a read to the start of the next one
    column: str | None = None  # one that grows with each change of a row
    whole_refresh_ms: int = 3_600_000  # with a column: from a whole read to the next one
    changelog_partitions: int | None = None  # None for the setting's default
    tls: MysqlTls = PREFERRED_TLS
    zone: str = "UTC"  # as of `MysqlCdcSource`
    kind: Literal["jdbc"] = "jdbc"

    @property
    def dataset(self) -> DatasetName:
        if self.database_kind is not Database.POSTGRESQL:
            server = f"mysql://{self.hostname}:{self.port}"
            return DatasetName(server, f"{self.database}.{self.table}")
        schema, _, table = self.table.rpartition(".")
        server = f"postgres://{self.hostname}:{self.port}"
        return DatasetName(server, f"{self.database}.{schema or 'public'}.{table}")

    @property
    def explained(self) -> str:
        place = f"{self.database}.{self.table} @ {self.hostname}:{self.port}"
        by = ""
        if self.column is not None:
            by = f" by {self.column}, all rows every {self.whole_refresh_ms} ms"
        return f"jdbc({self.database_kind.value} {place}, read every {self.refresh_ms} ms{by})"


@dataclass(frozen=True, slots=True)
class DeltaTableSource:
    """A Delta table of other writers: one version of it, then each later commit."""

    # absolute, relative to the warehouse directory of the settings, or in an object store
    path: str
    monitor_interval_ms: int = 1_000
    changelog_partitions: int | None = None  # None for the setting's default
    store: StoreOptions = ()
    kind: Literal["delta"] = "delta"

    @property
    def dataset(self) -> DatasetName:
        return _dataset_of(self.path)

    @property
    def explained(self) -> str:
        return f"delta({self.path}, every {self.monitor_interval_ms} ms)"


@dataclass(frozen=True, slots=True)
class SnapshotEvidence:
    """Sources of evidence that a connector has copied the whole table, and requirements on it."""

    notifications_topic: str | None = None  # of the connector, on the cluster of the table's topic
    # Kafka Connect's REST API; `connector` is the connector's name there
    connect_url: str | None = None
    connector: str | None = None
    # without better proof: how long a record may be on its way into the topic
    settle_ms: int = 120_000
    # a connector without a snapshot counts as one that has copied the table
    opens_when_skipped: bool = False
    # a later snapshot is a new generation; else its rows are ordinary changes
    replaces: bool = True
    heartbeat_topic: str | None = None  # of the connector, on the cluster of the table's topic


class FileFormat(StrEnum):
    """Format of a table's files; JSON has one object a line."""

    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files of other writers, read once, in their state when the job begins."""

    path: str  # of a file, or of a directory of them; absolute, or relative to the warehouse
    format: FileFormat
    options: tuple[tuple[str, str], ...] = ()  # of the format, without its prefix
    changelog_partitions: int | None = None  # None for the setting's default
    kind: Literal["filesystem"] = "filesystem"

    @property
    def dataset(self) -> DatasetName:
        return _dataset_of(self.path)

    @property
    def explained(self) -> str:
        return f"filesystem({self.path}, {self.format}, read once)"

    @property
    def of_rows(self) -> RecordFormat:
        return RecordFormat(KafkaFormat(self.format), self.options)


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a stream's history; `path` as its table has it."""

    path: str
    size_bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class FileListing:
    """The files of a stream's history in the order of their rows, as submission found them."""

    files: tuple[ListedFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    def as_topic(self, topic: str) -> HistoryTopic:
        texts = "".join(f"{each.path}\0{each.size_bytes}\0{each.rows}\n" for each in self.files)
        listing_id = hashlib.sha256(texts.encode()).hexdigest()[:32]
        return HistoryTopic(f"{HISTORY}{topic}", listing_id, self.rows)


@dataclass(frozen=True, slots=True)
class TopicHistory:
    """Files with a table's rows, read before its topic; and where the topic starts behind them.

    Submission resolves the mode to `specific-offsets`, unless a column of the files has the time.
    """

    files: FileSource | DeltaTableSource
    startup_mode: StartupMode = StartupMode.EARLIEST
    startup_timestamp_ms: int | None = None
    startup_offsets: tuple[tuple[int, int], ...] = ()
    startup_column: str | None = None  # its maximum in the files is the timestamp of the start
    version: int | None = None  # of a Delta table; None for files, and before it is resolved
    # of a stream: the column whose least value in each file is the order of the files; None for
    # the order of their paths
    order_column: str | None = None
    listed: FileListing | None = None  # of a stream, once it is resolved

    @property
    def explained(self) -> str:
        """The files, and where the topic starts behind them."""
        start = [self.startup_mode.value]
        if self.startup_column is not None:
            start.append(f"maximum of {self.startup_column}")
        if self.startup_timestamp_ms is not None:
            start.append(f"{self.startup_timestamp_ms} ms")
        start += [f"{partition}:{offset}" for partition, offset in self.startup_offsets]
        files = self.files.explained
        if isinstance(self.files, DeltaTableSource):
            version = "newest version" if self.version is None else f"version {self.version}"
            files = f"delta({self.files.path}, {version})"
        if self.order_column is not None:
            files += f" by {self.order_column}"
        if self.listed is not None:
            files += f", {len(self.listed.files)} files of {self.listed.rows} rows"
        return f"{files} until {' '.join(start)},"

    def starting_at(self, offsets: Mapping[int, int]) -> "TopicHistory":
        pairs = tuple(sorted(offsets.items()))
        return replace(
            self,
            startup_mode=StartupMode.SPECIFIC,
            startup_timestamp_ms=None,
            startup_offsets=pairs,
        )


@dataclass(frozen=True, slots=True)
class TopicSource:
    """A Kafka topic of other writers: a table from a connector, or rows by key."""

    kafka: KafkaOptions
    value: RecordFormat
    # for a connector's topic; None for others, which are complete at `end_offsets`
    evidence: SnapshotEvidence | None = None
    deletes_by_null: bool = True  # a null value deletes the row of its key
    key: RecordKey | None = None  # None for a connector's topic
    # (partition, end offset at submission, or the end of what is read); empty before they are
    # resolved
    end_offsets: tuple[tuple[int, int], ...] = ()
    # where the table ends, if it does: it is complete there, without further changes
    bounded_mode: BoundedMode = BoundedMode.UNBOUNDED
    bounded_timestamp_ms: int | None = None
    bounded_offsets: tuple[tuple[int, int], ...] = ()
    changelog_partitions: int | None = None  # as many as the topic has; None before they are known
    # columns with times of records, in neither key nor value
    metadata: tuple[MetadataField, ...] = ()
    # the time of versions, if it is computed; over the row's other columns
    computed: tuple[ComputedField, ...] = ()
    # Kafka's UUID of the topic that `end_offsets` and the history's start belong to; "" before
    topic_id: str = ""
    history: TopicHistory | None = None
    kind: Literal["topic"] = "topic"

    @property
    def dataset(self) -> DatasetName:
        return self.kafka.dataset

    @property
    def explained(self) -> str:
        if self.value.name in OF_CHANGES:
            registry = self.value.registry
            formats = [] if registry is None else [f"schemas {registry.url}"]
        else:
            formats = formats_explained(self.value, self.key)
            key = None if self.key is None else RecordKey(self.key.fields)
            if key is not None and formats == formats_explained(JSON_FORMAT, key):
                formats = []  # the primary key is shown anyhow
        ends = [f"{partition}:{offset}" for partition, offset in self.bounded_offsets]
        end = (end_explained(self, ends),) if self.is_bounded else ()
        place = f"{self.kafka.topic} @ {self.kafka.bootstrap_servers}"
        text = f"{self.value.name}({', '.join((place, *formats, *end))})"
        return text if self.history is None else f"{self.history.explained} then {text}"

    @property
    def is_bounded(self) -> bool:
        return self.bounded_mode is not BoundedMode.UNBOUNDED

    def parsed_fields(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        times = {each.name for each in self.metadata} | {each.name for each in self.computed}
        return tuple(item for item in declared_fields(fields) if item.name not in times)


@dataclass(frozen=True, slots=True)
class SharedSource:
    """A shared table: job `job_id` copies it, follows it and commits its changelog."""

    job_id: str
    table: str
    changelog_partitions: int | None
    kind: Literal["shared"] = "shared"
    dataset = None

    @property
    def explained(self) -> str:
        return f"shared({self.table}, kept by job {self.job_id})"


def end_explained(source: KafkaSource | TopicSource, ends: list[str]) -> str:
    if source.bounded_timestamp_ms is not None:
        ends = [*ends, f"{source.bounded_timestamp_ms} ms"]
    return " ".join(("until", source.bounded_mode.value, *ends))


DimensionSource = (
    MysqlCdcSource | PolledSource | DeltaTableSource | TopicSource | FileSource | SharedSource
)


def files_of(source: DimensionSource) -> FileSource | DeltaTableSource | None:
    """The files or the Delta table that a source reads, alone or before its topic."""
    if isinstance(source, TopicSource) and source.history is not None:
        return source.history.files
    return source if isinstance(source, FileSource | DeltaTableSource) else None


COORDINATES = (
    Field("_source_partition", SqlType(TypeName.INT), nullable=False),
    Field("_source_offset", SqlType(TypeName.BIGINT), nullable=False),
)
"""The key of rows whose table has none: partition and offset of a record, or file and row."""


def declared_fields(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(field for field in fields if field not in COORDINATES)


@dataclass(frozen=True, slots=True)
class VerifySchedule:
    """How often the control plane compares a copy with its source, and how fast it reads that."""

    interval_ms: int
    rows_per_s: int


@dataclass(frozen=True, slots=True)
class Dimension:
    """A versioned table on the build side."""

    name: str  # the table's name in SQL, unique in the plan; several roles may join it
    source: DimensionSource
    fields: tuple[Field, ...]  # the declared columns, then `COORDINATES` if the table has no key
    primary_key: tuple[str, ...]  # column names in key order, never empty
    # makes it a versioned table: `FOR SYSTEM_TIME AS OF` a rowtime sees the version that was valid
    # then. Its expression reads `Column("", name)`. None for the newest rows.
    watermark: WatermarkSpec | None = None
    # how much newer than the table's time a record may be that is joined with it; None without a
    # limit
    max_staleness_ms: int | None = None
    verify: VerifySchedule | None = None  # None if it is compared with its source by hand only
    # how long a record without a match in the table waits for it; None if it does not wait
    late_wait_ms: int | None = None
    # how long after that a row of the table still corrects the record's output; None if it does not
    late_correct_ms: int | None = None

    @property
    def declared_fields(self) -> tuple[Field, ...]:
        return declared_fields(self.fields)

    @property
    def compared_fields(self) -> tuple[Field, ...]:
        """The fields that a second read of the source has again: not the time of a change."""
        source = self.source
        metadata = source.metadata if isinstance(source, MysqlCdcSource) else ()
        times = {item.name for item in metadata if item.key == OP_TS}
        return tuple(item for item in self.fields if item.name not in times)

    @property
    def declared_key(self) -> tuple[str, ...]:
        coordinates = {field.name for field in COORDINATES}
        return tuple(name for name in self.primary_key if name not in coordinates)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """One equality of an ON clause; the planner has cast both sides to one type."""

    probe: Expression  # an expression over the relations to the left
    # a column, or the name that `computed` has in the index
    dimension_column: str
    null_safe: bool = False  # `IS NOT DISTINCT FROM`: NULL matches only NULL
    # for a null-safe pair, `probe` before a cast that gives NULL for values that the column cannot
    # have; such a value matches nothing. None without such a cast.
    uncast: Expression | None = None
    # over the columns of the dimension; None for a bare column
    computed: Expression | None = None


@dataclass(frozen=True, slots=True)
class DimensionJoin:
    """One `JOIN dimension FOR SYSTEM_TIME AS OF …`, in the order of the statement."""

    alias: str  # the role's name in the statement
    dimension: str
    join_type: JoinType
    keys: tuple[KeyPair, ...]
    # the part of ON beyond the equalities; it belongs to the match
    condition: Expression | None = None
    # the probe's rowtime column in `FOR SYSTEM_TIME AS OF`: the record waits until the combined
    # watermark has reached it. None for a processing-time column.
    time: Column | None = None


@dataclass(frozen=True, slots=True)
class Unnest:
    """`JOIN UNNEST(value) AS alias`: a row for each element, before all joins.

    The columns of `alias` are the fields of an ARRAY of ROW, `element` of other ARRAYs, `key` and
    `value` of a MAP. NULL has no elements. LEFT keeps a row without elements, with NULL in all
    columns of `alias`.
    """

    alias: str
    value: Expression
    join_type: JoinType


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the sink; the expression already has the sink's type."""

    name: str
    expression: Expression
    nullable: bool = True


class WindowKind(StrEnum):
    """A window table function."""

    TUMBLE = "TUMBLE"
    HOP = "HOP"
    CUMULATE = "CUMULATE"
    SESSION = "SESSION"


class AggregateKind(StrEnum):
    """Aggregate functions of windows."""

    COUNT_ALL = "COUNT(*)"
    COUNT = "COUNT"
    SUM = "SUM"
    MIN = "MIN"
    MAX = "MAX"
    AVG = "AVG"
    LISTAGG = "LISTAGG"
    FIRST_VALUE = "FIRST_VALUE"
    LAST_VALUE = "LAST_VALUE"
    ROWS = "ROWS"  # an ARRAY of all arguments, which are ROWs


IN_ORDER_OF_ARRIVAL = (
    AggregateKind.LISTAGG,
    AggregateKind.FIRST_VALUE,
    AggregateKind.LAST_VALUE,
    AggregateKind.ROWS,
)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a window."""

    name: str  # its column in the relation of the windows
    function: AggregateKind
    argument: Expression | None  # over the joined row, None for `COUNT_ALL`; NULL does not count
    type: SqlType  # of the result, as in Flink
    distinct: bool = False  # equal arguments count once
    where: Expression | None = None  # `FILTER (WHERE …)`; rows where it is not true do not count
    separator: str = ","  # of `LISTAGG`. `LISTAGG` and `FIRST_VALUE` use the order of arrival.


WINDOW = "$window"
ROW_NUMBER = "row_number"


@dataclass(frozen=True, slots=True)
class SortKey:
    """An expression of ORDER BY."""

    expression: Expression
    descending: bool
    nulls_last: bool


@dataclass(frozen=True, slots=True)
class TopN:
    """`ROW_NUMBER() OVER (PARTITION BY window_start, window_end, … ORDER BY …)` and its limits.

    All expressions are over the relation `WINDOW`, which it gives the column `ROW_NUMBER`.
    """

    partition: tuple[Expression, ...]  # besides the bounds of the window
    order: tuple[SortKey, ...]
    first: int  # the least number that is kept
    last: int
    newest_first: bool = False  # of equal rows the one that came last has the lowest number
    having: Expression | None = None  # a condition of the numbered rows


@dataclass(frozen=True, slots=True)
class Windowing:
    """`GROUP BY window_start, window_end, …` over a window table function.

    The joined rows that pass `JoinPlan.where` go into windows; `JoinPlan.output` then reads the
    relation `WINDOW`, with the columns `window_start`, `window_end` (exclusive) and `window_time`
    (its end less a millisecond), and the columns of `keys` and `aggregates`. It has a row for each
    element of the aggregate `ROWS`, whose fields are columns.
    """

    kind: WindowKind
    size_ms: int  # of a window; the gap of a session
    # the rowtime column; None for processing time: a row belongs to the batch's clock
    time: Column | None
    time_type: SqlType  # of the window columns: TIMESTAMP(3), or TIMESTAMP_LTZ(3)
    keys: tuple[OutputColumn, ...]  # the other columns of GROUP BY
    aggregates: tuple[Aggregate, ...]
    slide_ms: int | None = None  # of HOP, the step of CUMULATE; None for others
    offset_ms: int = 0  # windows begin at multiples of the size (HOP: of the slide) plus this
    having: Expression | None = None  # over the relation `WINDOW`
    lateness_ms: int = 0  # `table.exec.emit.allow-lateness`
    rank: TopN | None = None  # of the rows that pass `having`

    @property
    def rows(self) -> Aggregate | None:
        """The aggregate whose elements are rows."""
        return next((a for a in self.aggregates if a.function is AggregateKind.ROWS), None)


class SinkWriter(StrEnum):
    """Writer of a Delta output; AUTO is columnar where the table allows it."""

    AUTO = "auto"
    COLUMNAR = "columnar"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class DeltaSink:
    """A Delta table, exactly once."""

    # absolute, relative to the warehouse directory of the settings, or in an object store
    path: str
    # add `_topic`, `_partition`, `_offset`, `_batch` and `_dimension_versions`
    row_metadata: bool = True
    writer: SinkWriter = SinkWriter.AUTO
    # columns by which later rows replace earlier ones (the sink's PRIMARY KEY, when the query gives
    # updates); empty to append
    merge_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()  # partition columns of the table, if the job creates it
    store: StoreOptions = ()
    kind: Literal["delta"] = "delta"

    @property
    def dataset(self) -> DatasetName:
        return _dataset_of(self.path)

    @property
    def explained(self) -> str:
        writer = "" if self.writer is SinkWriter.AUTO else f", {self.writer.value} writer"
        key = f", merged by {', '.join(self.merge_key)}" if self.merge_key else ""
        metadata = "" if self.row_metadata else ", no row metadata"
        cut = f", partitioned by {', '.join(self.partition_by)}" if self.partition_by else ""
        return f"delta({self.path}{metadata}{writer}{key}{cut})"


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """A Kafka topic of rows, with coordinates in the headers."""

    kafka: KafkaOptions
    value: RecordFormat = JSON_FORMAT
    key: RecordKey | None = None  # None for records without a key
    # the connector `upsert-kafka`: the key is the primary key; a null value deletes a row
    upsert: bool = False
    # exactly once with this prefix; None for at least once
    transactional_id_prefix: str | None = None
    # Kafka's id of the cluster, from the submission; None before, or if the brokers have none
    cluster_id: str | None = None
    kind: Literal["kafka"] = "kafka"

    @property
    def dataset(self) -> DatasetName:
        return self.kafka.dataset

    @property
    def explained(self) -> str:
        name = "upsert-kafka" if self.upsert else "kafka"
        once = () if self.transactional_id_prefix is None else ("exactly once",)
        parts = (self.kafka.explained(), *formats_explained(self.value, self.key), *once)
        return f"{name}({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class PrintSink:
    """The runner's standard output: a row is `+I[…]`, or `+I{…}`, a JSON object, in a preview.

    `row_limit` is the maximum number of rows of a preview; None without a preview.
    """

    print_identifier: str = ""
    row_limit: int | None = None
    kind: Literal["print"] = "print"
    dataset = None

    @property
    def explained(self) -> str:
        limit = "" if self.row_limit is None else f", {self.row_limit} rows"
        return f"print({self.print_identifier}{limit})"


@dataclass(frozen=True, slots=True)
class BlackholeSink:
    """Counts rows and drops them."""

    kind: Literal["blackhole"] = "blackhole"
    dataset = None
    explained = "blackhole()"


Sink = DeltaSink | KafkaSink | PrintSink | BlackholeSink


@dataclass(frozen=True, slots=True)
class StreamTable:
    """A table of the same stream as the first INSERT's, but with other topics.

    `reads` are the indexes of its topics in the stream.
    """

    name: str
    reads: tuple[int, ...]
    fields: tuple[Field, ...]
    metadata_fields: tuple[MetadataField, ...] = ()
    value: RecordFormat = JSON_FORMAT
    key: RecordKey | None = None
    changes_by: tuple[str, ...] = ()

    def of(self, stream: ProbeSource) -> ProbeSource:
        assert isinstance(stream.source, KafkaSource), "only topics are told apart"
        return replace(
            stream,
            table=self.name,
            source=replace(
                stream.source, value=self.value, key=self.key, changes_by=self.changes_by
            ),
            fields=self.fields,
            metadata_fields=self.metadata_fields,
            reads=self.reads,
        )


@dataclass(frozen=True, slots=True)
class FurtherInsert:
    """A later INSERT of a statement set; it reads the stream of the first one."""

    alias: str  # of the stream in this query, also for `computed_fields`
    computed_fields: tuple[ComputedField, ...]
    joins: tuple[DimensionJoin, ...]
    where: Expression | None
    output: tuple[OutputColumn, ...]
    sink_table: str
    sink: Sink
    unnests: tuple[Unnest, ...] = ()
    table: StreamTable | None = None  # None for the table of the first INSERT


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """The meaning of an INSERT, a statement set or the SELECT of a preview."""

    name: str
    sql: str  # the script as submitted, with references for inline secrets; only for display
    probe: ProbeSource
    # of all INSERTs; a batch pins one version of each for all of them
    dimensions: tuple[Dimension, ...]
    joins: tuple[DimensionJoin, ...]
    where: Expression | None
    output: tuple[OutputColumn, ...]
    sink_table: str
    sink: Sink
    settings: tuple[tuple[str, str], ...] = ()
    window: Windowing | None = None  # None for a plain join
    format_version: int = PLAN_FORMAT_VERSION
    more_inserts: tuple[FurtherInsert, ...] = ()  # of a statement set, those after the first
    unnests: tuple[Unnest, ...] = ()
    # the table that the job keeps for others: its only dimension, joined with nothing (its stream
    # is `NO_STREAM`). None for all other jobs.
    shared_table: str | None = None
    # of the job's plans: 1 at submission, one more for each update; a pin names the plan of a batch
    number: int = 1

    @property
    def attached(self) -> tuple[str, ...]:
        sources = (dimension.source for dimension in self.dimensions)
        return tuple(dict.fromkeys(s.job_id for s in sources if isinstance(s, SharedSource)))

    @property
    def inserts(self) -> tuple["JoinPlan", ...]:
        first = replace(self, more_inserts=(), format_version=PLAN_FORMAT_VERSION)
        return (first, *(_of_one(first, insert) for insert in self.more_inserts))

    @property
    def late_joins(self) -> tuple[DimensionJoin, ...]:
        """The joins for whose match a record waits."""
        waited = {each.name for each in self.dimensions if each.late_wait_ms is not None}
        return tuple(join for join in self.joins if join.dimension in waited)

    @property
    def late_wait_ms(self) -> int | None:
        """How long records wait for a match; None without `late_joins`."""
        return self._late_bound(lambda dimension: dimension.late_wait_ms)

    @property
    def late_correct_ms(self) -> int | None:
        """How long a row that comes after the bound still corrects the output."""
        return self._late_bound(lambda dimension: dimension.late_correct_ms)

    def _late_bound(self, of: Callable[[Dimension], int | None]) -> int | None:
        joined = {join.dimension for join in self.late_joins}
        bounds = (of(each) for each in self.dimensions if each.name in joined)
        return max((bound for bound in bounds if bound is not None), default=None)

    @property
    def needs_event_batches(self) -> bool:
        in_time = any(join.time is not None for join in self.joins)
        return in_time or self.window is not None or bool(self.late_joins)


def shared_table_plan(dimension: Dimension, sql: str) -> JoinPlan:
    column, alias = Field("nothing", SqlType(TypeName.BIGINT)), "nothing"
    value = Column(alias, column.name, column.type)
    return JoinPlan(
        name=dimension.name,
        sql=sql,
        probe=ProbeSource(alias, alias, NO_STREAM, (column,)),
        dimensions=(dimension,),
        joins=(),
        where=None,
        output=(OutputColumn(column.name, value),),
        sink_table=alias,
        sink=BlackholeSink(),
        shared_table=dimension.name,
    )


def _of_one(first: JoinPlan, insert: FurtherInsert) -> JoinPlan:
    probe = first.probe if insert.table is None else insert.table.of(first.probe)
    probe = replace(probe, alias=insert.alias, computed_fields=insert.computed_fields)
    return replace(
        first,
        probe=probe,
        joins=insert.joins,
        where=insert.where,
        output=insert.output,
        sink_table=insert.sink_table,
        sink=insert.sink,
        unnests=insert.unnests,
    )
