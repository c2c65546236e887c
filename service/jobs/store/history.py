"""The last day of a job in numbers, from its reports: a file with two rings of points.

A point's time determines its slot, so the file has no head and a restart continues it. A torn
point, or one of an earlier turn, is ignored. The file is a cache of fixed size: it is written
without a sync, and a foreign file is replaced.
"""

import math
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import structlog

from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import Status

SERIES = (
    "records_per_s",
    "rows_per_s",
    "dead_letters_per_s",
    "copied_rows_per_s",
    "changes_per_s",
    "held_records",
    "lag_records",
    "table_lag_records",
    "freshness_ms",
    "source_delay_ms",
    "watermark_age_ms",
    "index_ms",
    "join_ms",
    "commit_ms",
    "as_of_age_ms",
    "latency_ms",
)
UNKNOWN = math.nan
Values = Sequence[float]
_HEADER = struct.Struct("<8sIIII40x")
_BODY = struct.Struct(f"<I{len(SERIES)}f")
_SUM = struct.Struct("<I")
_RECORD_BYTES = _BODY.size + _SUM.size
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Ring:
    """A ring of `points` points, `step_s` seconds apart."""

    step_s: int
    points: int

    def slot(self, at_ms: int) -> int:
        return at_ms // (1000 * self.step_s)


FINE, COARSE = Ring(10, 360), Ring(60, 1440)
_MAGIC = _HEADER.pack(b"SLUICEH1", len(SERIES), FINE.points, COARSE.points, _RECORD_BYTES)
FILE_BYTES = len(_MAGIC) + (FINE.points + COARSE.points) * _RECORD_BYTES


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One step of a ring, from `at_ms` on; values in the order of `SERIES`, NaN if unknown."""

    at_ms: int
    values: Values

    def numbers(self) -> dict[str, float | None]:
        return {name: _number(value) for name, value in zip(SERIES, self.values, strict=True)}

    def number(self, series: str) -> float | None:
        return _number(self.values[SERIES.index(series)])


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.7g}")


def write_point(file: Path, ring: Ring, slot: int, values: Values) -> None:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.pread(descriptor, len(_MAGIC), 0) != _MAGIC:
            _begin_anew(descriptor, file)
        body = _BODY.pack(slot & 0xFFFF_FFFF, *values)
        os.pwrite(descriptor, body + _SUM.pack(zlib.crc32(body)), _place(ring, slot))
    finally:
        os.close(descriptor)


def read_points(file: Path, ring: Ring, first: int, last: int) -> list[HistoryPoint]:
    """The existing points of slots `first` to `last`, oldest first."""
    first = max(first, last - ring.points + 1)
    try:
        with file.open("rb") as opened:
            if opened.read(len(_MAGIC)) != _MAGIC:
                return []
            slots = range(first, last + 1)
            records = [record for piece in _pieces(opened, ring, slots) for record in piece]
    except FileNotFoundError:
        return []
    points = (_point(*pair, ring) for pair in zip(records, slots, strict=True))
    return [point for point in points if point is not None]


def _pieces(file: BinaryIO, ring: Ring, slots: range) -> Iterator[list[bytes]]:
    """The records of consecutive slots; a range across the ring's end has two pieces."""
    until_end = ring.points - slots.start % ring.points
    for piece in (slots[:until_end], slots[until_end:]):
        if piece:
            file.seek(_place(ring, piece.start))
            content = file.read(len(piece) * _RECORD_BYTES)
            ends = range(_RECORD_BYTES, (len(piece) + 1) * _RECORD_BYTES, _RECORD_BYTES)
            yield [content[end - _RECORD_BYTES : end] for end in ends]


def means(points: Sequence[HistoryPoint], step_ms: int) -> Iterator[HistoryPoint]:
    """`points` averaged over steps of `step_ms`, ignoring unknown values."""
    groups: dict[int, list[Values]] = {}
    for point in points:
        groups.setdefault(point.at_ms // step_ms, []).append(point.values)
    for number, rows in groups.items():
        yield HistoryPoint(number * step_ms, mean(rows))


def mean(rows: Sequence[Values]) -> list[float]:
    columns = zip(*rows, strict=True)
    return [_mean([value for value in column if not math.isnan(value)]) for column in columns]


def _mean(known: Sequence[float]) -> float:
    return sum(known) / len(known) if known else UNKNOWN


def _place(ring: Ring, slot: int) -> int:
    before = 0 if ring is FINE else FINE.points
    return len(_MAGIC) + (before + slot % ring.points) * _RECORD_BYTES


def _point(record: bytes, slot: int, ring: Ring) -> HistoryPoint | None:
    body, check = record[: _BODY.size], record[_BODY.size :]
    if len(check) < _SUM.size or _SUM.unpack(check)[0] != zlib.crc32(body):
        return None
    number, *values = _BODY.unpack(body)
    if number != slot & 0xFFFF_FFFF:
        return None  # of another turn
    return HistoryPoint(slot * ring.step_s * 1000, values)


def _begin_anew(descriptor: int, file: Path) -> None:
    if os.fstat(descriptor).st_size:
        _log.warning("history of another form starts again", file=str(file))
    os.ftruncate(descriptor, 0)
    os.ftruncate(descriptor, FILE_BYTES)
    os.pwrite(descriptor, _MAGIC, 0)


_LONGEST_S = 10  # between the two reports of a rate
_BOUND = 2**62  # watermarks beyond it are MIN or MAX
_STAGES = ("index", "join", "commit")


class JobSampler:
    """Samples the reports of one job, each once: a silent runner leaves a gap."""

    def __init__(self, job_dir: Path) -> None:
        self._file = JobLayout(job_dir).history
        self._reported_at_ms = 0
        self._before: tuple[int, dict[str, float]] | None = None
        self._slots = {FINE: -1, COARSE: -1}
        self._rows: dict[Ring, list[Values]] = {FINE: [], COARSE: []}

    def sample(self, status: Status) -> None:
        """Add a report to the history; one with unreadable numbers is skipped."""
        if status.updated_at_ms == self._reported_at_ms:
            return
        self._reported_at_ms = status.updated_at_ms
        try:
            values = self._values(status.updated_at_ms, status.content)
            self._add(FINE, status.updated_at_ms, values)
        except (TypeError, ValueError, KeyError, AttributeError, OSError) as exc:
            _log.warning("history is not kept", file=str(self._file), error=str(exc))

    def _add(self, ring: Ring, at_ms: int, values: Values) -> None:
        """Add to the open point; the first value of another slot closes it."""
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
        "as_of_age_ms": _as_of_age(report["updated_at_ms"], tables),
        "latency_ms": probe.get("latency_ms"),
        **{f"{stage}_ms": stages.get(stage) for stage in _STAGES},
    }
    return {name: float(value) for name, value in gauges.items() if value is not None}


def _watermark_age(report: Mapping[str, Any]) -> float | None:
    event_time = report.get("event_time") or {}
    at_ms = event_time.get("watermark_ms")
    if at_ms is None or event_time.get("use_processing_time") or abs(at_ms) >= _BOUND:
        return None
    return float(report["updated_at_ms"] - at_ms)


def _as_of_age(at_ms: int, tables: Sequence[Mapping[str, Any]]) -> float | None:
    """Of the oldest table; None unless each has proven a time."""
    times = [(table.get("freshness") or {}).get("as_of_ms") for table in tables]
    known = [time_ms for time_ms in times if time_ms is not None]
    return float(max(0, at_ms - min(known))) if known and len(known) == len(times) else None


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known)) if known else None


def _greatest(values: Iterable[float | None]) -> float | None:
    return max((float(value) for value in values if value is not None), default=None)
