"""The history of a topic: options of files that are read before it, and where it starts."""

from dataclasses import replace

from joins.plan.plan import Field, StartupMode, TopicHistory, TopicSource
from joins.plan.types import TypeName
from service.sql.catalog.file_connectors import FILESYSTEM, file_source
from service.sql.catalog.kafka_tables import STARTUP, offsets, timestamp
from service.sql.catalog.option import Option, OptionType, TableRole, only_of, with_prefix
from service.sql.catalog.option_values import OptionValues
from service.sql.catalog.watermarks import MAX_STALENESS
from service.sql.text.script import suggestion

HISTORY = "history."
_CONNECTOR, STARTUP_COLUMN = f"{HISTORY}connector", f"{HISTORY}startup-column"
_STARTUP_OPTIONS = (STARTUP, "scan.startup.timestamp-millis", "scan.startup.specific-offsets")
_STARTUP_MODES = (StartupMode.EARLIEST, StartupMode.TIMESTAMP, StartupMode.SPECIFIC)
_OF_THE_TABLE = ("changelog.partitions", MAX_STALENESS)
_OF_A_SNAPSHOT = ("snapshot.notifications.topic", "snapshot.on-skipped", "snapshot.on-repeated")
HISTORY_OPTIONS = only_of(
    (
        Option(
            _CONNECTOR,
            "Of a dimension: what has the rows of the table that are older than the topic's start. "
            "They are read first; then each record of the topic replaces the row of its key.",
            OptionType.CHOICE,
            choices=(FILESYSTEM.name,),
        ),
        Option(
            STARTUP_COLUMN,
            "A TIMESTAMP_LTZ column of the table: its maximum in the files is the timestamp of "
            "`scan.startup.mode` `timestamp`.",
            pattern=r"[^\x00-\x1f\x7f]{1,128}",
            form="one column name",
        ),
        *with_prefix(
            HISTORY,
            *(
                replace(option, required=False)
                for option in FILESYSTEM.options
                if option.key not in _OF_THE_TABLE
            ),
        ),
    ),
    TableRole.DIMENSION,
)


def with_history(
    values: OptionValues,
    source: TopicSource,
    fields: tuple[Field, ...],
    primary_key: tuple[str, ...],
) -> TopicSource:
    """`source` behind the files of the options `history.…`; unchanged without them."""
    if not values.is_set(_CONNECTOR):
        for key in values.nodes:
            if key.startswith(HISTORY):
                values.require_beside(key, _CONNECTOR)
        return source
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
        )
    for key in _OF_A_SNAPSHOT:
        if values.is_set(key):
            raise values.error(
                key,
                f'option "{key}" has no effect on a table with a history, which takes the place of '
                "the connector's snapshot",
                hint="Remove the option.",
            )
    files = file_source(values.part(HISTORY, FILESYSTEM.options), fields)
    return replace(source, history=_with_start(values, TopicHistory(files), fields))


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
            )
    if values.is_set(STARTUP):
        values.ignore(STARTUP, "a compacted topic is read from its beginning")
