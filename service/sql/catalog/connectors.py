"""From checked options to the sources and sinks of a plan."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from joins.plan.formats import RecordKey
from joins.plan.plan import (
    BlackholeSink,
    BoundedMode,
    DatagenSource,
    DeltaSink,
    DeltaTableSource,
    Field,
    FileFormat,
    FileSource,
    KafkaOptions,
    KafkaSink,
    KafkaSource,
    MysqlCdcSource,
    MysqlTls,
    PrintSink,
    SinkWriter,
    StartupMode,
    TlsMode,
    TopicSource,
)
from joins.plan.stream_topics import StreamTopic, StreamTopics
from service.sql.catalog.datagen_fields import datagen_source
from service.sql.catalog.format_columns import check_format
from service.sql.catalog.formats import record_columns, value_format
from service.sql.catalog.kafka_tables import (
    PATTERN,
    TOPIC,
    check_commits,
    check_group,
    client_properties,
    discovery_ms,
    offsets,
    refuse_evidence,
    timestamp,
    topic_source,
    topics,
)
from service.sql.catalog.option_values import FORMAT_OPTION, OptionValues
from service.sql.catalog.options import (
    EXACTLY_ONCE,
)
from service.sql.catalog.store_tables import store_options

_BOOTSTRAP = "properties.bootstrap.servers"
_TRANSACTIONAL_ID_PREFIX = "sluice"
_BOUNDED = "scan.bounded"


@dataclass(frozen=True, slots=True)
class KafkaTable:
    """A topic; its place in the statement decides whether it is read, joined or written.

    Attributes:
        dimension: what it is where it is joined.
        has_startup_mode: the user chose one; if not, the default deserves a warning.
        several_topics: the option that makes it a stream of several topics, None of one.
    """

    source: KafkaSource
    sink: KafkaSink
    dimension: TopicSource
    has_startup_mode: bool
    several_topics: str | None = None


@dataclass(frozen=True, slots=True)
class UpsertKafkaTable:
    """A topic of rows by key; it is joined or written."""

    dimension: TopicSource
    sink: KafkaSink

    def with_key(self, key: RecordKey | None) -> "UpsertKafkaTable":
        dimension, sink = replace(self.dimension, key=key), replace(self.sink, key=key)
        return replace(self, dimension=dimension, sink=sink)


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """A Delta table; its place in the statement decides whether it is a dimension or the sink."""

    source: DeltaTableSource
    sink: DeltaSink


Connector = (
    MysqlCdcSource
    | KafkaTable
    | UpsertKafkaTable
    | DatagenSource
    | DeltaTable
    | FileSource
    | PrintSink
    | BlackholeSink
)


def build_connector(name: str, values: OptionValues, fields: tuple[Field, ...]) -> Connector:
    """The source or sink that a table's options describe; `fields` are its physical columns.

    Raises:
        SqlError: options contradict each other or do not fit the columns.
    """
    return _BUILDERS[name](values, fields)


def _mysql(values: OptionValues, fields: tuple[Field, ...]) -> Connector:
    return MysqlCdcSource(
        hostname=values.required("hostname"),
        port=int(values.required("port")),
        username=values.required("username"),
        password=values.required("password"),
        database=values.required("database-name"),
        table=values.required("table-name"),
        server_id=values.number("server-id"),
        chunk_rows=int(values.required("scan.incremental.snapshot.chunk.size")),
        changelog_partitions=values.number("changelog.partitions"),
        tls=_tls(values),
    )


def _tls(values: OptionValues) -> MysqlTls:
    tls = MysqlTls(
        TlsMode(values.required("database.ssl.mode")),
        ca=values.text("database.ssl.ca"),
        cert=values.text("database.ssl.cert"),
        key=values.text("database.ssl.key"),
    )
    verifies = tls.mode in (TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY)
    if tls.ca is not None and not verifies:
        raise values.error(
            "database.ssl.ca",
            f'option "database.ssl.ca" has no meaning with database.ssl.mode {tls.mode}',
            hint="Set 'database.ssl.mode' = 'verify_identity', or 'verify_ca'.",
        )
    if (tls.cert is None) != (tls.key is None):
        option = "database.ssl.cert" if tls.key is None else "database.ssl.key"
        raise values.error(
            option,
            f'option "{option}" is given without the other one of the pair',
            hint="Give database.ssl.cert and database.ssl.key, or neither.",
        )
    if tls.cert is not None and tls.mode in (TlsMode.DISABLED, TlsMode.PREFERRED):
        raise values.error(
            "database.ssl.cert",
            f'option "database.ssl.cert" has no meaning with database.ssl.mode {tls.mode}',
            hint="Set 'database.ssl.mode' = 'required', or one that verifies.",
        )
    return tls


def _kafka(values: OptionValues, fields: tuple[Field, ...]) -> Connector:
    columns = record_columns(values, fields)
    first, *more = names = topics(values)
    several = StreamTopics(tuple(map(StreamTopic, names)))
    options = _kafka_options(values, first)
    start = StartupMode(values.required("scan.startup.mode"))
    end = BoundedMode(values.required("scan.bounded.mode"))
    check_group(values, start, end)
    source = KafkaSource(
        kafka=options,
        startup_mode=start,
        startup_timestamp_ms=timestamp(values, "scan.startup", start),
        startup_offsets=several.in_each(offsets(values, "scan.startup", start)),
        max_records_per_batch=values.number("scan.max-records-per-batch"),
        bounded_mode=end,
        bounded_timestamp_ms=timestamp(values, _BOUNDED, end),
        bounded_offsets=several.in_each(offsets(values, _BOUNDED, end)),
        max_bytes_per_batch=values.memory("scan.max-bytes-per-batch"),
        value=columns.value,
        key=columns.key,
        more_topics=tuple(more),
        topic_pattern=values.text(PATTERN),
        discovery_ms=discovery_ms(values),
    )
    prefix = _transactional_id_prefix(values)
    return KafkaTable(
        source,
        KafkaSink(options, columns.value, columns.key, transactional_id_prefix=prefix),
        _with_end(values, topic_source(values, source, fields)),
        has_startup_mode="scan.startup.mode" in values.nodes,
        several_topics=PATTERN if source.topic_pattern else TOPIC if more else None,
    )


def _upsert_kafka(values: OptionValues, fields: tuple[Field, ...]) -> Connector:
    """Without its key, which is that of the table."""
    prefix = _transactional_id_prefix(values)
    kafka = _kafka_options(values, values.required(TOPIC))
    value = value_format(values)
    check_commits(values)
    return UpsertKafkaTable(
        _with_end(values, TopicSource(kafka, value)),
        KafkaSink(kafka, value, upsert=True, transactional_id_prefix=prefix),
    )


def _with_end(values: OptionValues, source: TopicSource) -> TopicSource:
    """A topic as a dimension, with its end if it has one: it is whole there, whoever wrote it."""
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
    """Of a sink that promises exactly once."""
    prefix = values.text("sink.transactional-id-prefix")
    if values.required("sink.delivery-guarantee") == EXACTLY_ONCE:
        return prefix or _TRANSACTIONAL_ID_PREFIX
    if prefix is not None:
        raise values.error(
            "sink.transactional-id-prefix",
            'option "sink.transactional-id-prefix" has no meaning with at-least-once',
            hint="Set 'sink.delivery-guarantee' = 'exactly-once', or remove the option.",
        )
    return None


def _kafka_options(values: OptionValues, topic: str) -> KafkaOptions:
    return KafkaOptions(
        bootstrap_servers=_bootstrap(values),
        topic=topic,
        properties=client_properties(values),
    )


def _bootstrap(values: OptionValues) -> str:
    servers = [server.strip() for server in values.required(_BOOTSTRAP).split(",")]
    for server in servers:
        if not 1 <= int(server.rpartition(":")[2]) <= 65535:
            raise values.error(
                _BOOTSTRAP,
                f'broker "{server}" has a port that is not from 1 to 65535',
                hint="Write host:port, separated by commas.",
            )
    return ",".join(servers)


def _delta(values: OptionValues, fields: tuple[Field, ...]) -> Connector:
    path = values.required("path")
    store = store_options(values, path)
    return DeltaTable(
        source=DeltaTableSource(
            path=path,
            monitor_interval_ms=values.milliseconds("source.monitor-interval"),
            changelog_partitions=values.number("changelog.partitions"),
            store=store,
        ),
        sink=DeltaSink(
            path=path,
            row_metadata=values.flag("row-metadata"),
            writer=SinkWriter(values.required("sink.writer")),
            store=store,
        ),
    )


def _files(values: OptionValues, fields: tuple[Field, ...]) -> Connector:
    form, options = FileFormat(values.required("format")), {}
    for key, node in sorted(values.nodes.items()):
        match = FORMAT_OPTION.match(key)
        if match is None:
            continue
        if match["role"] or match["format"] != form:
            raise values.error(
                key,
                f'option "{key}" has no meaning for files of format {form}',
                hint="Remove the option, or name its format by 'format'; files have no keys.",
            )
        options[key.removeprefix(f"{form}.")] = node.value
    source = FileSource(
        path=values.required("path"),
        format=form,
        options=tuple(options.items()),
        changelog_partitions=values.number("changelog.partitions"),
    )
    if form is not FileFormat.PARQUET:
        check_format(values, source.of_rows, fields, (f"{form}.",))
    return source


def _print(values: OptionValues, fields: tuple[Field, ...]) -> Connector:
    return PrintSink(print_identifier=values.required("print-identifier"))


def _blackhole(values: OptionValues, fields: tuple[Field, ...]) -> Connector:
    return BlackholeSink()


_BUILDERS: dict[str, Callable[[OptionValues, tuple[Field, ...]], Connector]] = {
    "mysql-cdc": _mysql,
    "kafka": _kafka,
    "upsert-kafka": _upsert_kafka,
    "delta": _delta,
    "filesystem": _files,
    "datagen": datagen_source,
    "print": _print,
    "blackhole": _blackhole,
}
