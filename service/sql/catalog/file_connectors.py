"""The connectors `delta` and `filesystem`: Delta tables, and files of others."""

from dataclasses import replace

from joins.plan.plan import DeltaSink, DeltaTableSource, Field, FileFormat, FileSource, SinkWriter
from service.sql.catalog.format_columns import check_format
from service.sql.catalog.format_options import OPTIONS_OF_FORMATS
from service.sql.catalog.option import (
    PARTITIONS,
    Option,
    OptionType,
    TableRole,
    duration,
    ignored,
    only_of,
)
from service.sql.catalog.option_values import (
    FORMAT_OPTION,
    Connector,
    Endpoints,
    Home,
    OptionValues,
)
from service.sql.catalog.stores import (
    PATH,
    PATH_FORM,
    STORE_OPTIONS,
    TABLE_PATH,
    TABLE_PATH_FORM,
    store_options,
)
from service.sql.catalog.watermarks import (
    DIMENSION_OPTIONS,
    IDLE_OPTION,
)

_DELTA = (
    Option(
        "path",
        "Where the table is: relative to the warehouse, absolute, or file:///…, without `..`; or "
        "in an object store: s3://bucket/table, "
        "abfss://container@account.dfs.core.windows.net/table, az://container/table.",
        required=True,
        pattern=TABLE_PATH,
        form=TABLE_PATH_FORM,
    ),
    *only_of(STORE_OPTIONS, TableRole.SINK, TableRole.DIMENSION),
    Option(
        "row-metadata",
        "Of a sink: add _topic, _partition, _offset, _batch and _dimension_versions to each row.",
        OptionType.FLAG,
        default="true",
        roles=frozenset((TableRole.SINK,)),
    ),
    duration(
        "source.monitor-interval",
        "Of a dimension: how often the table is looked at for a new version.",
        "100 ms to 1 h, such as 500 ms or 2 s",
        default="1 s",
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
    *only_of((IDLE_OPTION,), TableRole.DIMENSION),
    *DIMENSION_OPTIONS,
    Option(
        "sink.writer",
        "Writer: columnar, or Spark's Delta writer where the table needs it.",
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
        pattern=PATH,
        form=PATH_FORM,
    ),
    Option(
        "format",
        "What the files are: Parquet, lines of JSON, or CSV.",
        OptionType.CHOICE,
        required=True,
        choices=tuple(FileFormat),
    ),
    PARTITIONS,
    *only_of(
        (
            replace(option, meaning=_OF_FILES[option.key] or option.meaning)
            for option in OPTIONS_OF_FORMATS
            if option.key in _OF_FILES
        ),
        TableRole.DIMENSION,
    ),
    *DIMENSION_OPTIONS,
    *ignored("filesystem"),
)


def _delta(
    values: OptionValues, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> Endpoints:
    path = values.required("path")
    store = store_options(values, path)
    return Endpoints(
        dimension=DeltaTableSource(
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


def _files(
    values: OptionValues, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> Endpoints:
    return Endpoints(dimension=file_source(values, fields))


def file_source(values: OptionValues, fields: tuple[Field, ...]) -> FileSource:
    form, options = FileFormat(values.required("format")), {}
    for key, node in sorted(values.nodes.items()):
        match = FORMAT_OPTION.match(key)
        if match is None:
            continue
        if match["role"] or match["format"] != form:
            raise values.error(
                key,
                f'option "{values.prefix}{key}" has no effect for files of format {form}',
                hint=f"Remove the option, or name its format by '{values.prefix}format'; files "
                "have no keys.",
                is_needless=True,
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


DELTA = Connector("delta", _DELTA, _delta, Home.DELTA)
FILESYSTEM = Connector("filesystem", _FILESYSTEM, _files, Home.FILES)
