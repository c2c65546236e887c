"""The lines of EXPLAIN about time: watermarks, what waits for what, what is late."""

from collections.abc import Iterator

from joins.plan import DEFAULT_MAX_FUTURE_MS, JoinPlan, WatermarkSpec
from service.sql.expression_text import expression_text


def watermark_lines(plan: JoinPlan) -> Iterator[str]:
    """A line for each table that has a watermark."""
    probe = plan.probe
    if probe.watermark is not None:
        yield f"WATERMARK {probe.alias}.{_watermark(probe.watermark)}"
    for dimension in plan.dimensions:
        if dimension.watermark is not None:
            yield f"WATERMARK {dimension.name}.{_watermark(dimension.watermark)}"


def waiting_lines(plan: JoinPlan) -> Iterator[str]:
    """What the records wait for, and where those go that come too late."""
    probe = plan.probe
    if probe.watermark is None:
        return
    if any(join.time is not None for join in plan.joins):
        tables = [probe.alias, *(d.name for d in plan.dimensions if d.watermark is not None)]
        yield f"WAIT until the watermark of {' and '.join(tables)} has reached the record's time"
        newest = [d.name for d in plan.dimensions if d.watermark is None]
        if newest:
            yield f"NEWEST rows of {', '.join(newest)}, which has no WATERMARK"
    late = "the job's own table" if probe.late_records_path is None else probe.late_records_path
    yield f"LATE records INTO {late}"


def _watermark(watermark: WatermarkSpec) -> str:
    parts = [f"{watermark.rowtime} AS {expression_text(watermark.expression)}"]
    if watermark.on_event:
        parts.append("on-event")
    if watermark.idle_timeout_ms is not None:
        parts.append(f"idle after {watermark.idle_timeout_ms} ms")
    if watermark.max_future_ms != DEFAULT_MAX_FUTURE_MS:
        parts.append(f"at most {watermark.max_future_ms} ms ahead of the clock")
    return ", ".join(parts)
