"""Flink's two watermark addresses in Flink's own format, for existing tools.

Vertices are `build-<table>` with a subtask for each partition of the changelog topic, `probe` with
one for each partition of the stream, `join` and `windows` with one. In event time `probe` and
`build-<table>` report their generators. A watermark in processing time keeps its number;
`currentUseProcessingTime` is then true.

Source: Flink, "REST API", `/jobs/:jobid/vertices/:vertexid/watermarks` and `…/metrics`.
"""

import re
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Path, Query

from service.api.http.access import VIEWER
from service.api.routes.progress import vertices
from service.api.services import Injected, Services
from service.errors import VertexNotFoundError
from service.schemas.jobs import EventTimeView, JobDetail, WatermarkView
from service.schemas.progress import FlinkMetric, FlinkMetricValue, VertexView

_MIN = WatermarkView(timestamp_ms=-(2**63), use_processing_time=False)
_LOW, _INPUT, _OUTPUT = "currentLowWatermark", "currentInputWatermark", "currentOutputWatermark"
_PROCESSING = "currentUseProcessingTime"
_DASHES = re.compile("(.{8})(.{4})(.{4})(.{4})(.{12})")
FlinkJobId = Annotated[
    str,
    Path(
        pattern="^([0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$",
        description="The job's id, with dashes or without.",
    ),
]
VertexId = Annotated[
    str, Path(min_length=1, max_length=300, description="build-<table>, probe, join or windows.")
]
router = APIRouter(
    prefix="/jobs/{job_id}/vertices/{vertex_id}", tags=["flink"], dependencies=[VIEWER]
)


@router.get("/watermarks", summary="Show the watermarks of a vertex, as Flink does")
def show_vertex_watermarks(
    job_id: FlinkJobId, vertex_id: VertexId, services: Injected
) -> list[FlinkMetricValue]:
    """One `currentInputWatermark` for each subtask."""
    values = _metrics(services, job_id, vertex_id)
    return [
        FlinkMetricValue(id=name, value=value)
        for name, value in values.items()
        if name.partition(".")[2] == _INPUT
    ]


@router.get(
    "/metrics",
    summary="Show metrics of a vertex, as Flink does",
    response_model=list[FlinkMetricValue] | list[FlinkMetric],
)
def show_vertex_metrics(
    job_id: FlinkJobId,
    vertex_id: VertexId,
    services: Injected,
    get: Annotated[
        str | None,
        Query(max_length=100_000, description="Comma-separated names; default: list the names."),
    ] = None,
) -> list[FlinkMetricValue] | list[FlinkMetric]:
    """Watermarks by subtask, such as `0.currentLowWatermark`; unknown names are omitted."""
    values = _metrics(services, job_id, vertex_id)
    if get is None:
        return [FlinkMetric(id=name) for name in values]
    requested = dict.fromkeys(name.strip() for name in get.split(","))
    return [FlinkMetricValue(id=name, value=values[name]) for name in requested if name in values]


def _metrics(services: Services, job_id: str, vertex_id: str) -> dict[str, str]:
    with_dashes = job_id if "-" in job_id else _DASHES.sub(r"\1-\2-\3-\4-\5", job_id)
    job = services.store.get(with_dashes)
    detail = services.detail(job)
    there = vertices(job, detail)
    vertex = next((each for each in there if each.id == vertex_id), None)
    if vertex is None:
        names = ", ".join(each.id for each in there)
        raise VertexNotFoundError(
            f'job "{job.id}" has no vertex "{vertex_id}", expected one of {names}',
            hint="GET /v1/jobs/{id}/watermarks lists the vertices.",
        )
    return {
        f"{subtask}.{name}": value
        for subtask, values in _subtasks(vertex, detail).items()
        for name, value in values.items()
    }


def _subtasks(vertex: VertexView, detail: JobDetail) -> Mapping[int, Mapping[str, str]]:
    time = detail.event_time
    if vertex.kind == "windows":
        seen = _MIN if time is None else _watermark(time.window_watermark_ms)
        return {0: _values(seen, seen)}
    if vertex.kind == "join":
        return {0: _join_in_processing_time(detail) if time is None else _join(time)}
    if vertex.kind == "probe":
        generators = _generators(time, "probe")
        watermarks = [generators.get(subtask, _MIN) for subtask in range(vertex.parallelism)]
        return {
            subtask: _values(watermark, watermark) for subtask, watermark in enumerate(watermarks)
        }
    table = next((each for each in detail.dimensions if each.name == vertex.dimension), None)
    if table is None:  # the runner has not reported yet
        return {}
    generators = _generators(time, table.name)
    if generators:
        return {
            subtask: _values(watermark, watermark)
            for subtask, watermark in sorted(generators.items())
        }
    written = None if table.emitted is None else table.emitted.watermark
    return {
        subtask: _values(written or channel.watermark, channel.watermark)
        for subtask, channel in enumerate(table.channels)
    }


def _join_in_processing_time(detail: JobDetail) -> dict[str, str]:
    tables = detail.combined_watermark or _MIN
    two = {
        "currentInput1Watermark": str(_MIN.timestamp_ms),
        "currentInput2Watermark": str(tables.timestamp_ms),
    }
    return {**_values(_MIN, tables), **two}


def _join(time: EventTimeView) -> dict[str, str]:
    """The stream is input 1, the tables follow, as Flink numbers inputs."""
    combined = _watermark(time.watermark_ms, use_processing_time=time.use_processing_time)
    inputs = {
        f"currentInput{number}Watermark": str(_watermark(each.watermark_ms).timestamp_ms)
        for number, each in enumerate(time.inputs, 1)
    }
    return {**_values(combined, combined), **inputs}


def _generators(time: EventTimeView | None, input_name: str) -> dict[int, WatermarkView]:
    """Generator watermarks by subtask (partition, counted across topics); empty without any."""
    channels = [] if time is None else [c for c in time.channels if c.input == input_name]
    return {
        at if c.topic else c.partition: _watermark(
            c.watermark_ms, use_processing_time=c.use_processing_time
        )
        for at, c in enumerate(channels)
    }


def _watermark(at_ms: int | None, *, use_processing_time: bool = False) -> WatermarkView:
    timestamp_ms = _MIN.timestamp_ms if at_ms is None else at_ms
    return WatermarkView(timestamp_ms=timestamp_ms, use_processing_time=use_processing_time)


def _values(received: WatermarkView, emitted: WatermarkView) -> dict[str, str]:
    """Metrics of one subtask: lowest received and emitted watermark."""
    return {
        _LOW: str(received.timestamp_ms),
        _INPUT: str(received.timestamp_ms),
        _OUTPUT: str(emitted.timestamp_ms),
        _PROCESSING: str(emitted.use_processing_time).lower(),
    }
