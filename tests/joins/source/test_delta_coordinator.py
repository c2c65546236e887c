"""The coordinator of a `delta` source and its process: what stands in the way is a stall."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from joins.adapters.delta.source import DeltaFeedConfig, DeltaFeedState
from joins.durable.dead_rows import DeadRows
from joins.durable.requests import Stalls
from joins.plan.plan import Field, KafkaOptions
from joins.plan.types import SqlType, TypeName
from joins.source.feed_coordinator import DeltaCoordinator
from service.embedded.process import free_port
from tests.support.rig import descendants
from tests.support.wait import wait_until


@contextmanager
def running(path: Path, directory: Path) -> Iterator[tuple[DeltaCoordinator, Stalls]]:
    """A coordinator whose broker is not there."""
    kafka = KafkaOptions(f"127.0.0.1:{free_port()}", "topic")
    fields = (Field("id", SqlType(TypeName.BIGINT)),)
    config = DeltaFeedConfig(path, fields, ("id",), kafka, 2, directory / "source.json", 100)
    stalls = Stalls()
    coordinator = DeltaCoordinator("product", config, stalls)
    coordinator.start()
    try:
        yield coordinator, stalls
    finally:
        coordinator.stop()


def stalled(stalls: Stalls, text: str) -> Callable[[], bool]:
    def is_there() -> bool:
        first = stalls.first()
        return first is not None and first[0] == "source product" and text in first[1].message

    return is_there


@pytest.mark.usefixtures("processes")
def test_what_is_in_the_way_is_a_stall_and_the_next_one_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "product"
    with running(path, tmp_path) as (coordinator, stalls):
        wait_until(stalled(stalls, "there is no delta table"), what="no table")
        assert coordinator.view() is None
        write_deltalake(path, pa.table({"id": ["x"]}))
        wait_until(stalled(stalls, '"id" is string, declared BIGINT'), what="another type")
        write_deltalake(path, pa.table({"id": [1, 2]}), mode="overwrite", schema_mode="overwrite")
        wait_until(stalled(stalls, "did not take records"), what="no broker")
        assert (tmp_path / "source.json").exists()
    assert not descendants(psutil.Process(), "joins.adapters.delta.feed")


def test_rows_that_are_left_out_are_a_warning_of_their_copy(tmp_path: Path) -> None:
    config = DeltaFeedConfig(
        tmp_path, (), ("id",), KafkaOptions("nowhere:9092", "topic"), 2, tmp_path / "s.json", 100
    )
    coordinator = DeltaCoordinator("product", config, Stalls())
    DeadRows(tmp_path / "s.dead.json", 2, 1_000).update([('{"id":7}', 3_000)])
    for generation, count in ((1, 0), (2, 1), (3, 0)):
        state = DeltaFeedState(generation - 1, generation, "id", 0, 1, 2, 0, None)
        coordinator._on_event({"event": "progress", "state": asdict(state)})
        warnings = coordinator.warnings()
        assert len(warnings) == count, generation
        assert all('with key {"id":7}' in each["message"] for each in warnings)


@pytest.mark.usefixtures("processes")
def test_what_was_kept_is_shown_before_the_process_speaks(tmp_path: Path) -> None:
    path = tmp_path / "product"
    write_deltalake(path, pa.table({"id": [1, 2]}))
    with running(path, tmp_path) as (_, stalls):
        wait_until(stalled(stalls, "did not take records"), what="no broker")
    with running(path, tmp_path) as (coordinator, _):
        wait_until(lambda: coordinator.view() is not None, what="the view")
        view = coordinator.view()
        assert view is not None
        assert (view.rows_total, view.chunks_total, view.is_copied, view.version) == (
            2,
            1,
            False,
            0,
        )
