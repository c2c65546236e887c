"""`scale`: what of a batch only the driver does, and what that means for clusters of any size.

Jobs on a standalone Spark of this machine, with one to sixteen executors of a core each, drain
topics with many partitions in batches of many tasks. The time of a batch is

    driver + each_task * tasks + each_partition * partitions
        + (start * tasks + each_read * partitions + each_record * records) / cores

with the executors' cores, of which this machine gives no more than it has. The first line is the
time of a batch in which no task runs, as Spark's log of events says; the second is the rest. The
terms are fitted to the runs with fewest and most executors; the runs between must lie where the
terms say.

With resident tasks no Spark job is scheduled: the time in which none of them works is measured by
itself, in batches that have at most one task a resident.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from statistics import median
from typing import Any

import numpy as np

from service.config import Settings
from service.embedded.java import find_java
from tests.bench.batches import pinned_span
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import DatabaseUsers, Stream, clicks_of, delta_output, users
from tests.bench.spark_events import event_log_conf, newest_tasks, seconds_of
from tests.bench.subject import opened_and_stopped
from tests.bench.timed_runner import spans_of
from tests.support.standalone import NodeWorld, executor_conf, packed_wheel, running_cluster
from tests.support.topics import unique_name

EXECUTORS = (1, 2, 4, 16)
FITTED = (EXECUTORS[0], EXECUTORS[-1])
PLANNED = (16, 64, 256)  # cores that the model speaks of
_DIM = 10_000
_RECORDS, _BATCHES = 400_000, 40  # at least so many of both; the second half counts, JVMs are warm
_LEAST_MS = 20.0  # of a batch: no two begin within 10 ms, and a pause is no driver's work
_POOL = "probe"  # of the jobs of batches
_BATCH_OF_PLAN = 500_000
_ALL_EXECUTORS = {
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a batch is made of."""

    partitions: int
    tasks: int
    records: int


SHAPES = (
    Shape(2, 2, 200_000),
    Shape(16, 4, 80_000),
    Shape(16, 16, 80_000),
    Shape(64, 32, 160_000),
    Shape(256, 4, 80_000),
    Shape(256, 64, 320_000),
)
RESIDENTS = 8
_BY_RESIDENTS = (
    Shape(16, 2, 40_000),
    Shape(16, 8, 80_000),
    Shape(64, 4, 80_000),
    Shape(256, 8, 160_000),
)


@dataclass(frozen=True, slots=True)
class Point:
    """A measured batch: medians of several.

    Attributes:
        ms: how long it took.
        serial_ms: how much of that no task ran.
    """

    executors: int
    shape: Shape
    ms: float
    serial_ms: float

    @property
    def cores(self) -> int:
        return min(self.executors, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Model:
    """The terms of a batch, in milliseconds.

    Attributes:
        driver: of any batch.
        each_task, each_partition: which the driver spends one after the other.
        start, each_read: of a task, and of a partition, where it runs.
        each_record: there.
    """

    driver: float
    each_task: float
    each_partition: float
    start: float
    each_read: float
    each_record: float

    @classmethod
    def of(cls, points: Sequence[Point]) -> "Model":
        driver = _fit(points, _driver_terms, [p.serial_ms for p in points])
        elsewhere = _fit(points, _task_terms, [p.ms - p.serial_ms for p in points])
        return cls(*driver, *elsewhere)

    def serial_ms(self, shape: Shape) -> float:
        terms = (self.driver, self.each_task, self.each_partition)
        return float(np.dot(terms, _driver_terms(shape, 1)))

    def ms(self, shape: Shape, cores: int) -> float:
        terms = (self.start, self.each_read, self.each_record)
        return self.serial_ms(shape) + float(np.dot(terms, _task_terms(shape, cores)))

    def error(self, point: Point) -> float:
        return abs(self.ms(point.shape, point.cores) / point.ms - 1)

    def records_per_s(self, cores: int) -> int:
        shape = Shape(cores, cores, _BATCH_OF_PLAN)
        return round(shape.records / self.ms(shape, cores) * 1_000)


Terms = Callable[[Shape, int], tuple[float, ...]]


def _driver_terms(shape: Shape, _: int) -> tuple[float, ...]:
    return 1.0, shape.tasks, shape.partitions


def _task_terms(shape: Shape, cores: int) -> tuple[float, ...]:
    return shape.tasks / cores, shape.partitions / cores, shape.records / cores


def _fit(points: Sequence[Point], terms: Terms, values: Sequence[float]) -> list[float]:
    scale = np.array([1 / point.ms for point in points])
    rows = np.array([terms(point.shape, point.cores) for point in points])
    return _not_negative(rows * scale[:, None], np.array(values) * scale)


def _not_negative(rows: np.ndarray, values: np.ndarray) -> list[float]:
    """Least squares without negative terms: those that would be are zero (active set)."""
    active = list(range(rows.shape[1]))
    while True:
        found, *_ = np.linalg.lstsq(rows[:, active], values, rcond=None)
        negative = [term for term, value in zip(active, found, strict=True) if value < 0]
        if not negative:
            answer = np.zeros(rows.shape[1])
            answer[active] = found
            return [float(each) for each in answer]
        worst = min(zip(found, active, strict=True))[1]
        active.remove(worst)


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """The driver's own time, that of a task, and how far the model is from what it was not told."""
    dim = sizes.dim or _DIM
    java = find_java(Settings.load().cache_dir)
    with (
        running_cluster(place.new("cluster"), java, NodeWorld(), workers=max(EXECUTORS)) as cluster,
        users(place.mariadb, dim) as table,
    ):
        conf = {**executor_conf(packed_wheel(place.new("wheel"))), **_ALL_EXECUTORS}
        given = {"spark_master": cluster.master, "spark_conf": conf}
        points = [
            _measured(place, given, table, executors, shape)
            for executors in EXECUTORS
            for shape in SHAPES
        ]
        resident = [
            _measured(place, given, table, max(EXECUTORS), shape, residents=RESIDENTS)
            for shape in _BY_RESIDENTS
        ]
    model = Model.of([point for point in points if point.executors in FITTED])
    errors = [model.error(point) for point in points if point.executors not in FITTED]
    facts = {
        "model_ms": {name: float(f"{value:.3g}") for name, value in asdict(model).items()},
        "records_per_s": {str(cores): model.records_per_s(cores) for cores in PLANNED},
        "points": [_described(point) for point in points],
    }
    own_ms, of_task_ms, of_partition_ms = _fit(
        resident, _driver_terms, [point.serial_ms for point in resident]
    )
    size = f"1 to {max(EXECUTORS)} executors, 2 to 256 partitions, {dim:,} rows"
    of_residents = f"{RESIDENTS} residents of {max(EXECUTORS)} executors, 16 to 256 partitions"
    each, full = model.each_task + model.each_partition, dim >= _DIM

    def at_most(limit: float) -> Bar:
        return Bar(Sense.VALUE_AT_MOST, limit)

    own, of_task = "driver's own time of a batch", "driver's time of a task with its partition"
    farthest = "model against batches that it was not fitted to, the farthest"
    return [
        Measure(own, "ms", size, full, [model.driver], bar=at_most(20.0), facts=facts),
        Measure(of_task, "ms", size, full, [each], bar=at_most(0.1)),
        Measure(farthest, "share", size, full, [max(errors)], bar=at_most(0.2)),
        Measure(f"{own}, resident tasks", "ms", of_residents, full, [own_ms], bar=at_most(12.0)),
        Measure(
            f"{of_task}, resident tasks",
            "ms",
            of_residents,
            full,
            [of_task_ms + of_partition_ms],
            bar=at_most(0.06),
            facts={"points": [_described(point) for point in resident]},
        ),
    ]


def _described(point: Point) -> list[float]:
    times = (round(point.ms, 1), round(point.serial_ms, 1))
    return [point.executors, *astuple(point.shape), *times]


def _measured(
    place: Place,
    given: Mapping[str, Any],
    table: DatabaseUsers,
    executors: int,
    shape: Shape,
    *,
    residents: int = 0,
) -> Point:
    events = place.new("events")
    events.mkdir()
    of_shape = {
        "spark.cores.max": str(executors),
        "spark.default.parallelism": str(shape.tasks),
    }
    settings = {
        **given,
        "spark_conf": {**given["spark_conf"], **of_shape, **event_log_conf(events)},
        "max_records_per_batch": shape.records,
        "resident_tasks": residents,
    }
    calls = place.new("calls")
    if residents:
        settings["runner_command"] = (sys.executable, "-m", "tests.bench.timed_runner", str(calls))
    stream = Stream(place.kafka, partitions=shape.partitions)
    output = delta_output(unique_name("scale"))
    with (
        place.rig(**settings) as rig,
        opened_and_stopped(place, rig, table, stream, output) as subject,
    ):
        batches = max(_BATCHES, _RECORDS // shape.records)
        stream.append(shape.records * batches, clicks_of(table.rows))
        times = subject.drain()[batches // 2 :]
        tasks = spans_of(calls) if residents else newest_tasks(events, _POOL)
        ms = median(each.seconds for each in times) * 1_000
        serial_ms = 1_000 * median(
            each.seconds - seconds_of(tasks, pinned_span(subject.checkpoint, [each]))
            for each in times
        )
    if ms < _LEAST_MS:
        raise ValueError(f"a batch of {shape} takes {ms:.1f} ms: give its shape more records")
    place.say(f"{executors} executors, {shape}: {ms:.1f} ms, {serial_ms:.1f} without a task")
    return Point(executors, shape, ms, serial_ms)
