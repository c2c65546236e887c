"""The history of a topic: options of what is read before it, and where it starts."""

from dataclasses import replace

from joins.plan.plan import (
    BoundedMode,
    DeltaTableSource,
    Field,
    FileFormat,
    FileSource,
    KafkaSource,
    StartupMode,
    TopicHistory,
    TopicSource,
)
from joins.plan.types import TypeName
from service.sql.catalog.file_connectors import DELTA, FILESYSTEM, file_source
from service.sql.catalog.kafka_tables import STARTUP, offsets, timestamp
from service.sql.catalog.option import (
    READ,
    Option,
    OptionType,
    TableRole,
    only_of,
    with_prefix,
)
from service.sql.catalog.option_values import FORMAT_OPTION, Connector, OptionValues, check_option
from service.sql.catalog.stores import STORE_OPTIONS, store_options
from service.sql.text.script import suggestion

HISTORY = "history."
_CONNECTOR, STARTUP_COLUMN = f"{HISTORY}connector", f"{HISTORY}startup-column"
_VERSION, ORDER_COLUMN = f"{HISTORY}version", f"{HISTORY}order-column"
_STARTUP_OPTIONS = (STARTUP, "scan.startup.timestamp-millis", "scan.startup.specific-offsets")
_STARTUP_MODES = (StartupMode.EARLIEST, StartupMode.TIMESTAMP, StartupMode.SPECIFIC)
_OF_A_SNAPSHOT = ("snapshot.notifications.topic", "snapshot.on-skipped", "snapshot.on-repeated")
_CONNECTORS = {connector.name: connector for connector in (FILESYSTEM, DELTA)}
_READ_ONCE = frozenset((*(option.key for option in STORE_OPTIONS), "path", "format"))
"""Options of the connectors that say what is read; those of formats are read, too."""


def _taken(connector: Connector) -> dict[str, Option]:
    """The connector's options that a history has, by their names there."""
    return {
        option.key: replace(option, required=False)
        for option in connector.options
        if option.key in _READ_ONCE or FORMAT_OPTION.match(option.key)
    }


_OPTIONS = (
    Option(
        _CONNECTOR,
        "What has the rows of the table that are older than the topic's start. They are read "
        "first; then follow the topic's records. In a dimension each one replaces the row of "
        "its key.",
        OptionType.CHOICE,
        choices=tuple(_CONNECTORS),
    ),
    Option(
        STARTUP_COLUMN,
        "A TIMESTAMP_LTZ column of the table: its maximum in the files is the timestamp of "
        "`scan.startup.mode` `timestamp`.",
        pattern=r"[^\x00-\x1f\x7f]{1,128}",
        form="one column name",
    ),
    Option(
        _VERSION,
        "Of `delta`: the version that is read; the newest one at submission when missing.",
        OptionType.NUMBER,
    ),
    *with_prefix(HISTORY, *(_taken(FILESYSTEM) | _taken(DELTA)).values()),
)
HISTORY_OPTIONS = only_of(_OPTIONS, TableRole.DIMENSION)
STREAM_HISTORY_OPTIONS = (
    *only_of(_OPTIONS, *READ),
    *only_of(
        (
            Option(
                ORDER_COLUMN,
                "A column of the table: the files are read in the order of its minimum in each. "
                "They are read in the order of their paths when missing.",
                pattern=r"[^\x00-\x1f\x7f]{1,128}",
                form="one column name",
            ),
        ),
        TableRole.STREAM,
    ),
)


def with_history(
    values: OptionValues,
    source: TopicSource,
    fields: tuple[Field, ...],
    primary_key: tuple[str, ...],
) -> TopicSource:
    """`source` behind the files of the options `history.…`; unchanged without them."""
    if not _is_set(values):
        return source
    if not primary_key and source.evidence is None and not source.deletes_by_null:
        return source  # a stream of rows; a dimension is refused
    if not primary_key:
        raise values.error(
            _CONNECTOR,
            f'table "{values.table}" has a history and no primary key',
            hint="Add PRIMARY KEY (…) NOT ENFORCED: a record replaces the row of its key.",
        )
    if source.is_bounded:
        raise values.error(
            "scan.bounded.mode",
            'option "scan.bounded.mode" has no effect on a table with a history',
            hint="Remove the scan.bounded options: the topic is followed.",
            is_needless=True,
        )
    for key in _OF_A_SNAPSHOT:
        if values.is_set(key):
            raise values.error(
                key,
                f'option "{key}" has no effect on a table with a history, which takes the place of '
                "the connector's snapshot",
                hint="Remove the option.",
                is_needless=True,
            )
    return replace(source, history=_with_start(values, _history(values, fields), fields))


def stream_history(values: OptionValues, fields: tuple[Field, ...]) -> TopicHistory | None:
    """The history of a table as a stream; `stream_history_fault` has what it cannot be."""
    if not _is_set(values):
        return None
    history = _with_start(values, _history(values, fields), fields)
    order = values.text(ORDER_COLUMN)
    names = [field.name for field in fields]
    if order is not None and order not in names:
        raise values.error(
            ORDER_COLUMN,
            f'option "{ORDER_COLUMN}" is "{order}", which is not a column of the table',
            hint=suggestion(order, names, f"Columns are {', '.join(names)}."),
        )
    return replace(history, order_column=order)


def stream_history_fault(
    history: TopicHistory, source: KafkaSource, *, has_metadata: bool
) -> tuple[str, str] | None:
    """Why a stream cannot have this history, and a hint; None if it can."""
    if isinstance(history.files, FileSource) and history.files.format is not FileFormat.PARQUET:
        return (
            f"has a history in {history.files.format}, and a stream reads Parquet",
            "Write the files as Parquet, or a Delta table.",
        )
    if has_metadata:
        return (
            "has a history and metadata columns, which files do not have",
            "Remove the columns with METADATA, or declare ones that files and records have.",
        )
    if source.more_topics or source.topic_pattern is not None:
        return ("has a history and several topics", "Name one topic, which the files precede.")
    if source.bounded_mode is BoundedMode.GROUP:
        return (
            "has a history and ends at a group's offsets, which no group has for files",
            "Use another 'scan.bounded.mode'.",
        )
    return None


def _is_set(values: OptionValues) -> bool:
    if values.is_set(_CONNECTOR):
        return True
    for key in values.nodes:
        if key.startswith(HISTORY):
            values.require_beside(key, _CONNECTOR)
    return False


def _history(values: OptionValues, fields: tuple[Field, ...]) -> TopicHistory:
    connector = _CONNECTORS[values.required(_CONNECTOR)]
    own = values.part(HISTORY, connector.options)
    taken = _taken(connector)
    for key, node in own.nodes.items():
        option = taken.get(key)
        if option is not None:
            check_option(values.script, node, option)
        elif node.key not in (_CONNECTOR, STARTUP_COLUMN, _VERSION, ORDER_COLUMN):
            raise values.error(
                node.key,
                f'option "{node.key}" has no effect on a history of {connector.name}',
                hint="Remove the option, or correct 'history.connector'.",
                is_needless=True,
            )
    if connector is FILESYSTEM:
        if values.is_set(_VERSION):
            raise values.error(
                _VERSION,
                f'option "{_VERSION}" has no effect on a history of {connector.name}',
                hint="Remove the option: the files are read as they are when the job begins.",
                is_needless=True,
            )
        return TopicHistory(file_source(own, fields))
    path = own.required("path")
    table = DeltaTableSource(path, store=store_options(values, path, HISTORY))
    return TopicHistory(table, version=values.number(_VERSION))


def _with_start(
    values: OptionValues, history: TopicHistory, fields: tuple[Field, ...]
) -> TopicHistory:
    column = values.text(STARTUP_COLUMN)
    mode = StartupMode.EARLIEST if column is None else StartupMode.TIMESTAMP
    if values.is_set(STARTUP):
        mode = StartupMode(values.required(STARTUP))
    if mode not in _STARTUP_MODES:
        raise values.error(
            STARTUP,
            f'option "{STARTUP}" is "{mode}", which leaves out rows behind the history',
            hint=f"Write one of {', '.join(_STARTUP_MODES)}.",
        )
    if column is None:
        return replace(
            history,
            startup_mode=mode,
            startup_timestamp_ms=timestamp(values, "scan.startup", mode),
            startup_offsets=offsets(values, "scan.startup", mode),
        )
    for key in _STARTUP_OPTIONS[1:] if mode is StartupMode.TIMESTAMP else _STARTUP_OPTIONS:
        if values.is_set(key):
            raise values.error(
                key,
                f'options "{key}" and "{STARTUP_COLUMN}" are both given',
                hint="Remove one of the two.",
            )
    times = [field.name for field in fields if field.type.name is TypeName.TIMESTAMP_LTZ]
    if column not in times:
        known = ", ".join(times) or "none: declare the time of a row as TIMESTAMP_LTZ(3)"
        raise values.error(
            STARTUP_COLUMN,
            f'option "{STARTUP_COLUMN}" is "{column}", which is not a TIMESTAMP_LTZ column of the '
            "table",
            hint=suggestion(column, times, f"Such columns are {known}."),
        )
    return replace(history, startup_mode=mode, startup_column=column)


def require_beginning(values: OptionValues) -> None:
    """Refuse a start of a topic without a history, from which rows would be left out."""
    for key in _STARTUP_OPTIONS:
        if values.is_set(key) and values.text(key) != StartupMode.EARLIEST:
            raise values.error(
                key,
                f'option "{key}" of table "{values.table}" is "{values.text(key)}", which leaves '
                "out rows of a dimension",
                hint="Remove the option: a dimension without history.connector is read from its "
                "beginning.",
                is_needless=True,
            )
    if values.is_set(STARTUP):
        values.ignore(STARTUP, "a compacted topic is read from its beginning")
