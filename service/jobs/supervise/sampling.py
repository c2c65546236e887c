"""From the reports of a runner to points of its job's history."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import structlog

from service.jobs.store.history import (
    COARSE,
    FINE,
    SERIES,
    UNKNOWN,
    Ring,
    Values,
    mean,
    write_point,
)
from service.jobs.store.layout import JobLayout
from service.jobs.store.reports import Status

_LONGEST_S = 10  # between two reports that a rate is made of
_BOUND = 2**62  # watermarks beyond it are the first or the last that there is
_STAGES = ("index", "join", "commit")
_log = structlog.get_logger(__name__)


class JobSampler:
    """Samples the reports of one job; what it keeps is the open point of each ring.

    A report that was sampled before is passed over: a runner that is silent leaves a gap.
    """

    def __init__(self, job_dir: Path) -> None:
        self._file = JobLayout(job_dir).history
        self._reported_at_ms = 0
        self._before: tuple[int, dict[str, float]] | None = None
        self._slots = {FINE: -1, COARSE: -1}
        self._rows: dict[Ring, list[Values]] = {FINE: [], COARSE: []}

    def sample(self, status: Status) -> None:
        """Take a report into the history; one whose numbers cannot be read is left out."""
        if status.updated_at_ms == self._reported_at_ms:
            return
        self._reported_at_ms = status.updated_at_ms
        try:
            values = self._values(status.updated_at_ms, status.content)
            self._add(FINE, status.updated_at_ms, values)
        except (TypeError, ValueError, KeyError, AttributeError, OSError) as exc:
            _log.warning("history is not kept", file=str(self._file), error=str(exc))

    def _add(self, ring: Ring, at_ms: int, values: Values) -> None:
        """Add to the open point; the first one of another slot closes it."""
        slot = ring.slot(at_ms)
        rows, last = self._rows[ring], self._slots[ring]
        if slot != last:
            self._slots[ring], self._rows[ring] = slot, [values]
            if rows:
                self._close(ring, last, mean(rows))
            return
        rows.append(values)

    def _close(self, ring: Ring, slot: int, values: Values) -> None:
        write_point(self._file, ring, slot, values)
        if ring is FINE:
            self._add(COARSE, slot * FINE.step_s * 1000, values)

    def _values(self, at_ms: int, report: Mapping[str, Any]) -> list[float]:
        counters = _counted(report)
        before, self._before = self._before, (at_ms, counters)
        known = {**_rates(before, at_ms, counters), **_gauges(report)}
        return [known.get(name, UNKNOWN) for name in SERIES]


def _rates(
    before: tuple[int, dict[str, float]] | None, at_ms: int, counters: Mapping[str, float]
) -> dict[str, float]:
    """What counters have grown by in a second; nothing of one that has gone back."""
    if before is None or at_ms <= before[0]:
        return {}
    seconds = (at_ms - before[0]) / 1000
    if seconds > _LONGEST_S:
        return {}
    grown = {n: value - before[1][n] for n, value in counters.items() if n in before[1]}
    return {name: value / seconds for name, value in grown.items() if value >= 0}


def _counted(report: Mapping[str, Any]) -> dict[str, float]:
    probe, tables = report.get("probe") or {}, report.get("dimensions") or ()
    counted: dict[str, float | None] = {
        "records_per_s": _sum((probe.get("next_offsets") or {}).values()),
        "rows_per_s": probe.get("joined_records"),
        "dead_letters_per_s": probe.get("dead_letters"),
        "copied_rows_per_s": _sum(each["snapshot"]["rows_done"] for each in tables),
        "changes_per_s": _sum(each.get("streamed_records") for each in tables),
    }
    return {name: float(value) for name, value in counted.items() if value is not None}


def _gauges(report: Mapping[str, Any]) -> dict[str, float]:
    probe, tables = report.get("probe") or {}, report.get("dimensions") or ()
    stages = probe.get("batch_stages_ms") or {}
    gauges: dict[str, float | None] = {
        "held_records": probe.get("held_records"),
        "lag_records": probe.get("lag_records"),
        "table_lag_records": _sum(each.get("lag_records") for each in tables),
        "freshness_ms": _greatest((probe.get("freshness_ms") or {}).values()),
        "source_delay_ms": _greatest(each.get("binlog_delay_ms") for each in tables),
        "watermark_age_ms": _watermark_age(report),
        **{f"{stage}_ms": stages.get(stage) for stage in _STAGES},
    }
    return {name: float(value) for name, value in gauges.items() if value is not None}


def _watermark_age(report: Mapping[str, Any]) -> float | None:
    """How far the combined watermark of a job with event time is behind the report's clock."""
    event_time = report.get("event_time") or {}
    at_ms = event_time.get("watermark_ms")
    if at_ms is None or event_time.get("use_processing_time") or abs(at_ms) >= _BOUND:
        return None
    return float(report["updated_at_ms"] - at_ms)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known)) if known else None


def _greatest(values: Iterable[float | None]) -> float | None:
    return max((float(value) for value in values if value is not None), default=None)
