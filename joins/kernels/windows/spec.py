"""What the workers need to know of a window: made from the plan, picklable, without secrets."""

from dataclasses import dataclass
from typing import Self

from joins.plan.errors import ExpressionError
from joins.plan.plan import (
    AggregateKind,
    DeltaSink,
    JoinPlan,
    KafkaSink,
    OutputColumn,
    Windowing,
    WindowKind,
)
from joins.plan.types import Column, Expression, SqlType

WINDOW_COLUMNS = ("window_start", "window_end", "window_time")
_IN_ORDER = (AggregateKind.LISTAGG, AggregateKind.FIRST_VALUE, AggregateKind.LAST_VALUE)


@dataclass(frozen=True, slots=True)
class WindowKey:
    """A column of GROUP BY besides the window's bounds; `key_<n>` in the windows' input."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class WindowAggregate:
    """One aggregate, its expressions evaluated before: it reads columns of the window's input.

    Attributes:
        name: its column in the relation of the windows.
        argument: its column, None for `COUNT(*)`.
        argument_type: of that column.
        where: column of `FILTER (WHERE …)`, None without.
        type: of the result.
    """

    name: str
    function: AggregateKind
    argument: str | None
    argument_type: SqlType | None
    where: str | None
    distinct: bool
    separator: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """Windows of a plan, as the kernels know them. Times are in milliseconds.

    Attributes:
        size_ms: of a window; of a session its gap, of CUMULATE the largest one.
        slide_ms: from window to window; the size for TUMBLE and SESSION.
        lateness_ms: how long after its end a window takes late rows.
        time_type: of the window columns.
        buckets: what the keys are spread over; a key is always in the same bucket.
        retracts: the sink wants the old row, as -U, before a new one.
        output: the sink's columns, over the relation of the windows.
        having: over the same relation.
    """

    kind: WindowKind
    size_ms: int
    slide_ms: int
    offset_ms: int
    lateness_ms: int
    time_type: SqlType
    keys: tuple[WindowKey, ...]
    aggregates: tuple[WindowAggregate, ...]
    buckets: int
    retracts: bool
    output: tuple[OutputColumn, ...]
    having: Expression | None

    @classmethod
    def of(cls, plan: JoinPlan, buckets: int) -> Self:
        """The windows of `plan`, over `buckets` buckets.

        Raises:
            ExpressionError: the plan has no window.
        """
        window = _window_of(plan)
        aggregates = tuple(
            WindowAggregate(
                item.name,
                item.function,
                None if item.argument is None else f"arg_{at}",
                None if item.argument is None else item.argument.type,
                None if item.where is None else f"where_{at}",
                item.distinct,
                item.separator,
                item.type,
            )
            for at, item in enumerate(window.aggregates)
        )
        return cls(
            kind=window.kind,
            size_ms=window.size_ms,
            slide_ms=window.slide_ms or window.size_ms,
            offset_ms=window.offset_ms,
            # The clock brings no late rows.
            lateness_ms=window.lateness_ms if window.time is not None else 0,
            time_type=window.time_type,
            keys=tuple(WindowKey(item.name, item.expression.type) for item in window.keys),
            aggregates=aggregates,
            buckets=buckets,
            retracts=_wants_old_rows(plan),
            output=plan.output,
            having=window.having,
        )

    @property
    def needs_old_rows(self) -> bool:
        return self.retracts or self.having is not None or any(map(self._may_fail, self.output))

    def _may_fail(self, item: OutputColumn) -> bool:
        if not isinstance(item.expression, Column):
            return True
        return not item.nullable and any(item.expression.name == a.name for a in self.aggregates)

    @property
    def lists_rows(self) -> bool:
        return any(item.function in _IN_ORDER for item in self.aggregates)

    @property
    def grows(self) -> bool:
        return self.kind is WindowKind.CUMULATE

    @property
    def merges(self) -> bool:
        return self.kind is WindowKind.SESSION


def _window_of(plan: JoinPlan) -> Windowing:
    if plan.window is None:
        raise ExpressionError(
            f'job "{plan.name}" has no window to aggregate into',
            hint="Report this with the job's script: only windowed plans have this step.",
        )
    return plan.window


def _wants_old_rows(plan: JoinPlan) -> bool:
    if isinstance(plan.sink, DeltaSink):
        return False
    return not (isinstance(plan.sink, KafkaSink) and plan.sink.upsert)
