"""WATERMARK FOR: a table's time column, its watermark, and their options."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from joins.plan.connections import StoreOptions
from joins.plan.durations import duration_ms
from joins.plan.plan import DEFAULT_MAX_FUTURE_MS, VerifySchedule, WatermarkSpec
from joins.plan.types import (
    Call,
    Cast,
    Column,
    Constant,
    Expression,
    ProcTime,
    SqlType,
    TypeName,
    nodes,
)
from service.sql.catalog.option import (
    READ,
    Option,
    OptionType,
    TableRole,
    duration,
    ignored,
)
from service.sql.catalog.option_values import Connector, Home, OptionValues
from service.sql.catalog.settings import SOURCE_IDLE_TIMEOUT
from service.sql.catalog.stores import TABLE_PATH, TABLE_PATH_FORM, of_late_records, store_options
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import (
    NameScope,
    ScopeColumn,
    ScopeRelation,
    TimeAttribute,
    Typed,
)
from service.sql.grammar.syntax import CreateTable, WatermarkNode
from service.sql.grammar.type_parser import INSTANTS, type_text
from service.sql.text.script import Script, suggestion

EMIT_STRATEGY = "scan.watermark.emit.strategy"
IDLE_TIMEOUT = "scan.watermark.idle-timeout"
MAX_FUTURE = "scan.watermark.max-future"
MAX_WAIT = "scan.watermark.max-wait"
USE_PROCESSING_TIME = "scan.watermark.use-processing-time"
AFTER_BACKLOG = "after-backlog"
LATE_STORE = "late-records."
LATE_RECORDS = f"{LATE_STORE}path"
IDLE_OPTION = duration(
    IDLE_TIMEOUT,
    "A partition without records for longer does not hold back the watermark; 0 s for never, the "
    "setting table.exec.source.idle-timeout when missing.",
    "0 s to 1 d, such as 30 s",
    roles=READ,
)
MAX_STALENESS = "join.max-staleness"
STALENESS_OPTION = duration(
    MAX_STALENESS,
    "Of a dimension: how much newer than the table's time a record may be that is joined with it; "
    "newer records wait. When missing no record waits after the opening.",
    "1 ms to 1 d, such as 5 s",
    roles=frozenset((TableRole.DIMENSION,)),
)
LATE_ROWS_WAIT = "join.late-rows.wait"
LATE_ROWS_OPTION = duration(
    LATE_ROWS_WAIT,
    "Of a dimension: how long a record without a match waits for the table's row; then it goes out "
    "with NULL, or as a late record where INNER JOIN drops it. When missing it does not wait.",
    "1 ms to 1 d, such as 5 min",
    roles=frozenset((TableRole.DIMENSION,)),
)
LATE_ROWS_CORRECT = "join.late-rows.correct"
LATE_CORRECTION_OPTION = duration(
    LATE_ROWS_CORRECT,
    f"Of a dimension with '{LATE_ROWS_WAIT}': how long after the record has gone out with NULL a "
    "row of the table still corrects it, in outputs that take updates. When missing it stays.",
    "1 ms to 7 d, such as 1 d",
    roles=frozenset((TableRole.DIMENSION,)),
)
_LATE_TABLE = Option(
    LATE_RECORDS,
    "Delta table for late records; one in the job's directory when missing.",
    pattern=TABLE_PATH,
    form=TABLE_PATH_FORM,
    roles=frozenset((TableRole.STREAM,)),
)


_VERIFIED_ROWS_PER_S = 5_000
VERIFY_INTERVAL, VERIFY_ROWS = "verify.interval", "verify.rows-per-second"
JOIN_OPTIONS = (
    STALENESS_OPTION,
    LATE_ROWS_OPTION,
    LATE_CORRECTION_OPTION,
    *ignored("join"),
)
DIMENSION_OPTIONS = (
    *JOIN_OPTIONS,
    duration(
        VERIFY_INTERVAL,
        "How often the copy is compared with its source while the job runs, as by sluice verify; "
        "when missing only by hand.",
        "1 s to 365 d, such as 1 d",
        roles=frozenset((TableRole.DIMENSION,)),
    ),
    Option(
        VERIFY_ROWS,
        "How many rows a second such a comparison reads from the source; 5000 when missing.",
        OptionType.NUMBER,
        lowest=1,
        highest=10_000_000,
        roles=frozenset((TableRole.DIMENSION,)),
    ),
)


def verify_schedule(values: OptionValues) -> VerifySchedule | None:
    """How often the control plane compares a copy, None without the option."""
    if not values.is_set(VERIFY_INTERVAL):
        return None
    rows_per_s = values.number(VERIFY_ROWS) if values.is_set(VERIFY_ROWS) else None
    return VerifySchedule(values.milliseconds(VERIFY_INTERVAL), rows_per_s or _VERIFIED_ROWS_PER_S)


WATERMARK_OPTIONS = (
    Option(
        EMIT_STRATEGY,
        "When a record's watermark holds: from the next batch on, or for the very next record.",
        OptionType.CHOICE,
        choices=("on-periodic", "on-event"),
        roles=frozenset((TableRole.STREAM,)),
    ),
    IDLE_OPTION,
    duration(
        MAX_FUTURE,
        "A record whose time is further ahead of the clock is a dead letter, and one of a "
        "dimension gives no watermark; 1 d when missing.",
        "0 s to 3650 d, such as 1 h",
        roles=READ,
    ),
    duration(
        MAX_WAIT,
        "A partition without records for longer follows the clock: its watermark is the clock less "
        "this and less the interval of WATERMARK FOR; later records of older times are late. When "
        "missing the watermark stands still.",
        "1 ms to 1 d, such as 30 s",
        roles=frozenset((TableRole.STREAM,)),
    ),
    _LATE_TABLE,
    *of_late_records(LATE_STORE, _LATE_TABLE),
)
_KEYS = (EMIT_STRATEGY, IDLE_TIMEOUT, MAX_FUTURE, MAX_WAIT, LATE_RECORDS, USE_PROCESSING_TIME)
OF_COLUMNS = "Use the table's columns: WATERMARK FOR ts AS ts - INTERVAL '5' SECOND."


@dataclass(frozen=True, slots=True)
class TableWatermark:
    """`WATERMARK FOR` of a table.

    Attributes:
        idle_timeout_ms: 0 for never; None leaves it to the setting.
        max_wait_ms: None for a watermark that never follows the clock; a partition that does is
            never idle.
        late_records_path: table for late records of a stream; None for the job's own.
        late_store: how to reach the object store of that table.
        after_backlog: the stream switches to processing time at the end of its backlog.
    """

    node: WatermarkNode
    on_event: bool = False
    idle_timeout_ms: int | None = None
    max_wait_ms: int | None = None
    max_future_ms: int = DEFAULT_MAX_FUTURE_MS
    late_records_path: str | None = None
    late_store: StoreOptions = ()
    after_backlog: bool = False

    def spec(
        self, script: Script, relation: ScopeRelation, settings: Mapping[str, str]
    ) -> WatermarkSpec:
        idle_ms = self.idle_timeout_ms
        if idle_ms is None:
            idle_ms = duration_ms(settings.get(SOURCE_IDLE_TIMEOUT, "0 ms"))
        expression = _expression(script, self.node, relation).expression
        waits = self.max_wait_ms is not None
        return WatermarkSpec(
            rowtime=self.node.column.text,
            expression=expression,
            on_event=self.on_event,
            idle_timeout_ms=None if waits else idle_ms or None,
            max_wait_ms=self.max_wait_ms,
            bound_ms=bound_ms(expression, self.node.column.text) or 0 if waits else 0,
            max_future_ms=self.max_future_ms,
            after_backlog=self.after_backlog,
        )


def declared_watermark(
    table: CreateTable, relation: ScopeRelation, connector: Connector, values: OptionValues
) -> TableWatermark | None:
    node = table.watermark
    if node is None:
        for key in values.nodes:
            if key in _KEYS or key.startswith(LATE_STORE):
                raise values.error(
                    key,
                    f'option "{key}" has no effect without WATERMARK FOR',
                    hint="Add WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, or remove the option.",
                )
        return None
    typed = _expression(values.script, node, relation)
    if connector.home in (Home.DATABASE, Home.DELTA) and reads_clock(typed.expression):
        raise values.script.error(
            typed.at,
            f"the watermark of a {connector.name} table reads the clock",
            hint=OF_COLUMNS,
        )
    watermark = _with_options(TableWatermark(node), values)
    if watermark.max_wait_ms is not None:
        _check_max_wait(values, watermark, typed)
    return watermark


def _check_max_wait(values: OptionValues, watermark: TableWatermark, typed: Typed) -> None:
    """Refuse a watermark that cannot be compared with the clock, and options without effect."""
    column = watermark.node.column.text
    if typed.type.name is not TypeName.TIMESTAMP_LTZ:
        raise values.error(
            MAX_WAIT,
            f'option "{MAX_WAIT}" compares "{column}" with the clock, and "{column}" is '
            f"{type_text(typed.type)}, expected TIMESTAMP_LTZ",
            hint=f'Declare "{column}" as TIMESTAMP_LTZ(3), or remove the option.',
        )
    if bound_ms(typed.expression, column) is None:
        raise values.error(
            MAX_WAIT,
            f'option "{MAX_WAIT}" needs a watermark that is "{column}" less an interval',
            hint=f"Write WATERMARK FOR {column} AS {column} - INTERVAL '5' SECOND, or remove the "
            "option.",
        )
    if watermark.idle_timeout_ms:
        raise values.error(
            IDLE_TIMEOUT,
            f'options "{IDLE_TIMEOUT}" and "{MAX_WAIT}" are both given',
            hint="Remove one of the two: a partition that follows the clock is never idle.",
        )
    if watermark.after_backlog:
        raise values.error(
            MAX_WAIT,
            f'option "{MAX_WAIT}" has no effect beside "{USE_PROCESSING_TIME}"',
            hint="Remove one of the two: behind its backlog the stream is in processing time.",
            is_needless=True,
        )


def bound_ms(expression: Expression, rowtime: str) -> int | None:
    """What a watermark subtracts from `rowtime`; None unless it is that column less intervals."""
    match expression:
        case Column(name=name) if name == rowtime:
            return 0
        case Cast(operand=operand, type=SqlType(name=TypeName.TIMESTAMP_LTZ)):
            return bound_ms(operand, rowtime)
        case Call(
            function="-",
            arguments=(left, Constant(value=str(text), type=SqlType(name=TypeName.BIGINT))),
        ):  # as the planner writes an INTERVAL of milliseconds
            inner = bound_ms(left, rowtime)
            return None if inner is None or int(text) < 0 else inner + int(text)
    return None


def _with_options(watermark: TableWatermark, values: OptionValues) -> TableWatermark:
    most_ms = values.milliseconds_if_set(MAX_FUTURE)
    late_path = values.nodes[LATE_RECORDS].value if LATE_RECORDS in values.nodes else None
    return replace(
        watermark,
        on_event=EMIT_STRATEGY in values.nodes and values.text(EMIT_STRATEGY) == "on-event",
        idle_timeout_ms=values.milliseconds_if_set(IDLE_TIMEOUT),
        max_wait_ms=values.milliseconds_if_set(MAX_WAIT),
        max_future_ms=watermark.max_future_ms if most_ms is None else most_ms,
        late_records_path=late_path,
        late_store=store_options(values, late_path or "", LATE_STORE),
        after_backlog=_is_after_backlog(values),
    )


def _is_after_backlog(values: OptionValues) -> bool:
    if USE_PROCESSING_TIME not in values.nodes:
        return False
    if values.text(USE_PROCESSING_TIME) != AFTER_BACKLOG:
        return False
    if values.text("scan.bounded.mode") != "unbounded":
        raise values.error(
            USE_PROCESSING_TIME,
            f'option "{USE_PROCESSING_TIME}" has no effect on a stream that ends',
            hint="Remove it, or scan.bounded.mode: the end of a stream releases waiting rows.",
            is_needless=True,
        )
    return True


def _expression(script: Script, node: WatermarkNode, relation: ScopeRelation) -> Typed:
    column = _time_column(script, node, relation)
    planner = ExpressionPlanner(NameScope(script, (relation,)))
    typed = planner.plan(node.expression)
    if typed.is_bare_null or typed.type.name is not column.type.name:
        have = "NULL" if typed.is_bare_null else type_text(typed.type)
        raise script.error(
            typed.at,
            f'the watermark of "{column.name}" is {have}, expected {type_text(column.type)}',
            hint=f"Write WATERMARK FOR {column.name} AS {column.name} - INTERVAL '5' SECOND.",
        )
    return planner.cast(typed, column.type)


def _time_column(script: Script, node: WatermarkNode, relation: ScopeRelation) -> ScopeColumn:
    name = node.column.text
    column = relation.column(name)
    if column is None:
        known = [each.name for each in relation.columns]
        otherwise = "Columns are " + ", ".join(known[:30]) + "."
        raise script.error(
            node.column.at,
            f'WATERMARK FOR names column "{name}", which is not in "{relation.table}"',
            hint=suggestion(name, known, otherwise),
        )
    if column.time is TimeAttribute.PROCESSING:
        raise script.error(
            node.column.at,
            f'"{name}" is PROCTIME(), which has no watermark',
            hint="Name a time of the record, or join by processing time without WATERMARK FOR.",
        )
    if column.type.name not in INSTANTS or column.type.precision > 3:
        hint = "Declare it as TIMESTAMP(3) or TIMESTAMP_LTZ(3)."
        if column.type.name not in INSTANTS:
            hint = (
                f"Add a computed column, such as ts AS TO_TIMESTAMP_LTZ({column.name}, 3) for "
                f"milliseconds or ts AS CAST({column.name} AS TIMESTAMP(3)), and name it."
            )
        raise script.error(
            node.column.at,
            f'the time column "{column.name}" is {type_text(column.type)}, expected TIMESTAMP or '
            "TIMESTAMP_LTZ with 3 fractional digits at most",
            hint=hint,
        )
    return column


def reads_clock(expression: Expression) -> bool:
    return any(isinstance(node, ProcTime) for node in nodes(expression))
