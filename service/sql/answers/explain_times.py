"""The lines of EXPLAIN about time: watermarks, what waits for what, what is late."""

from collections.abc import Iterator

from joins.plan.plan import (
    DEFAULT_MAX_FUTURE_MS,
    Aggregate,
    AggregateKind,
    JoinPlan,
    WatermarkSpec,
    Windowing,
    WindowKind,
)
from service.sql.expressions.expression_text import expression_text
from service.sql.grammar.type_rules import type_text


def watermark_lines(plan: JoinPlan) -> Iterator[str]:
    """A line for each table that has a watermark."""
    probe = plan.probe
    if probe.watermark is not None:
        yield f"WATERMARK {probe.alias}.{_watermark(probe.watermark)}"
    for dimension in plan.dimensions:
        if dimension.watermark is not None:
            yield f"WATERMARK {dimension.name}.{_watermark(dimension.watermark)}"


def waiting_lines(plan: JoinPlan) -> Iterator[str]:
    """What the records of a join by event time wait for."""
    probe = plan.probe
    if any(join.time is not None for join in plan.joins):
        tables = [probe.alias, *(d.name for d in plan.dimensions if d.watermark is not None)]
        yield f"WAIT until the watermark of {' and '.join(tables)} has reached the record's time"
        newest = [d.name for d in plan.dimensions if d.watermark is None]
        if newest:
            yield f"NEWEST rows of {', '.join(newest)}, which has no WATERMARK"
        if probe.watermark is not None and probe.watermark.after_backlog:
            yield _switched(plan)


def _switched(plan: JoinPlan) -> str:
    """What becomes of waiting where the backlog ends."""
    held = [d.name for d in plan.dimensions if d.watermark is not None]
    if held:
        return f"WAIT for {', '.join(held)} behind the backlog, too: its WATERMARK goes on"
    return "JOIN at once behind the backlog: nothing waits, nothing is late"


def late_lines(plan: JoinPlan) -> Iterator[str]:
    """When windows are emitted, and where records go that come too late."""
    probe = plan.probe
    if probe.watermark is None:
        return
    if plan.window is not None and plan.window.time is not None:
        yield f"EMIT windows when the watermark has reached their end{_lateness(plan.window)}"
        if probe.watermark.after_backlog:
            yield "EMIT windows behind the backlog when the clock has reached their end"
    late = "the job's own table" if probe.late_records_path is None else probe.late_records_path
    yield f"LATE records INTO {late}"


def window_lines(window: Windowing | None) -> Iterator[str]:
    """The window of the joined rows: its size, its keys and its aggregates."""
    if window is None:
        return
    time = "the clock" if window.time is None else expression_text(window.time)
    parts = [f"size {window.size_ms} ms"]
    if window.kind is WindowKind.SESSION:
        parts = [f"gap {window.size_ms} ms"]
    if window.slide_ms is not None:
        step = "step" if window.kind is WindowKind.CUMULATE else "slide"
        parts.append(f"{step} {window.slide_ms} ms")
    if window.offset_ms:
        parts.append(f"offset {window.offset_ms} ms")
    yield f"WINDOW {window.kind} of {time}, {', '.join(parts)}"
    keys = [f"{expression_text(key.expression)} AS {key.name}" for key in window.keys]
    yield "GROUP BY " + ", ".join(["window_start", "window_end", *keys])
    if window.aggregates:
        yield "AGGREGATE " + ", ".join(_aggregate(item) for item in window.aggregates)
    if window.having is not None:
        yield f"HAVING {expression_text(window.having)}"


def _aggregate(item: Aggregate) -> str:
    text = item.function.value
    if item.argument is not None:
        distinct = "DISTINCT " if item.distinct else ""
        separator = ""
        if item.function is AggregateKind.LISTAGG:
            separator = ", '" + item.separator.replace("'", "''") + "'"
        text = f"{text}({distinct}{expression_text(item.argument)}{separator})"
    if item.where is not None:
        text += f" FILTER (WHERE {expression_text(item.where)})"
    return f"{text}:{type_text(item.type)} AS {item.name}"


def _lateness(window: Windowing) -> str:
    if not window.lateness_ms:
        return ""
    return f", and again for each record that is late by {window.lateness_ms} ms at the most"


def _watermark(watermark: WatermarkSpec) -> str:
    parts = [f"{watermark.rowtime} AS {expression_text(watermark.expression)}"]
    if watermark.on_event:
        parts.append("on-event")
    if watermark.idle_timeout_ms is not None:
        parts.append(f"idle after {watermark.idle_timeout_ms} ms")
    if watermark.after_backlog:
        parts.append("processing time behind its backlog")
    if watermark.max_future_ms != DEFAULT_MAX_FUTURE_MS:
        parts.append(f"at most {watermark.max_future_ms} ms ahead of the clock")
    return ", ".join(parts)
