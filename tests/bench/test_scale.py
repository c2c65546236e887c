"""The model of a batch, and how the driver's share of one is told apart."""

import json
from dataclasses import astuple
from pathlib import Path

import pytest

from tests.bench.scale_bench import SHAPES, Model, Point, Shape
from tests.bench.spark_events import newest_tasks, seconds_of

pytestmark = pytest.mark.matrix

TERMS = Model(20.0, 0.1, 0.02, 30.0, 1.5, 0.004)


def points(model: Model) -> list[Point]:
    return [
        Point(executors, shape, model.ms(shape, cores), model.serial_ms(shape))
        for executors, cores in ((1, 1), (16, 2))
        for shape in SHAPES
    ]


def test_the_terms_of_measured_batches_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    found = Model.of(points(TERMS))
    assert astuple(found) == pytest.approx(astuple(TERMS), rel=1e-3)
    assert max(found.error(point) for point in points(TERMS)) < 1e-6


def test_no_term_is_below_zero() -> None:
    shapes = (Shape(2, 2, 10), Shape(2, 64, 10), Shape(256, 4, 10))
    falling = [Point(1, shape, 100.0 - shape.tasks, 50.0 - shape.tasks / 2) for shape in shapes]
    assert min(astuple(Model.of(falling))) >= 0


@pytest.mark.parametrize(
    ("span", "seconds"),
    [
        ((0.0, 10.0), 5.0),
        ((2.0, 5.0), 2.0),
        ((6.5, 6.9), 0.0),
        ((7.5, 7.6), 0.1),
    ],
    ids=["all", "cut_at_both_ends", "between_tasks", "within_one"],
)
def test_tasks_at_the_same_time_count_once(span: tuple[float, float], seconds: float) -> None:
    tasks = [(1.0, 3.0), (2.0, 4.0), (2.5, 2.6), (7.0, 9.0)]
    assert seconds_of(tasks, span) == pytest.approx(seconds)


def test_tasks_of_other_pools_and_of_older_applications_are_left_out(tmp_path: Path) -> None:
    for name, began in (("app-1", 100), ("app-2", 5_000)):
        events = [
            {"Event": "SparkListenerApplicationStart"},
            *(started(pool, stage) for pool, stage in (("probe", 7), ("build", 8))),
            *(ended(stage, began) for stage in (8, 7)),
        ]
        (tmp_path / name).write_text("".join(f"{json.dumps(event)}\n" for event in events))
    assert newest_tasks(tmp_path, "probe") == [(5.0, 5.25)]


def started(pool: str, stage: int) -> dict[str, object]:
    properties = {"spark.scheduler.pool": pool}
    return {"Event": "SparkListenerJobStart", "Stage IDs": [stage], "Properties": properties}


def ended(stage: int, began: int) -> dict[str, object]:
    info = {"Launch Time": began, "Finish Time": began + 250}
    return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Info": info}
