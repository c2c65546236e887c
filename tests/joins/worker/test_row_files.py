"""Files of rows between tasks and the driver: in a directory, or in a store and copied."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from werkzeug.wrappers import Response

from joins.kernels.probe.files import FileOrigin, ParquetStage
from joins.plan.errors import SinkError, StoreUnavailableError
from joins.worker.row_files import ROWS, RowFiles
from joins.worker.staging import BatchReport
from tests.support.object_store import ObjectStore

SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture(params=["directory", "store"])
def files(request: pytest.FixtureRequest, store: ObjectStore, tmp_path: Path) -> RowFiles:
    own = tmp_path / "staged"
    return RowFiles(own if request.param == "directory" else store.path(tmp_path.name), own)


def staged(files: RowFiles, *tasks: int, epoch: int = 2) -> BatchReport:
    """The report of a batch; each task has left its number."""
    described = []
    for task in tasks:
        with ParquetStage(files.place, SCHEMA, FileOrigin(epoch, 7, task, 1), kept=False) as stage:
            stage.write(pa.record_batch([[task]], schema=SCHEMA))
            file = stage.finish()
            assert file is not None
            described.append(file)
    return BatchReport({ROWS: tuple(described)}, {}, ())


def left(files: RowFiles) -> int:
    return len(list(files.place.iterdir()))


def test_the_driver_reads_the_files_in_the_order_of_the_tasks_and_removes_them(
    files: RowFiles, tmp_path: Path
) -> None:
    report = staged(files, 2, 0, 1)
    paths = files.paths(report)
    assert [pq.read_table(path).column(0).to_pylist() for path in paths] == [[2], [0], [1]]
    files.remove(report)
    assert left(files) == 0
    assert list((tmp_path / "staged").iterdir()) == []


def test_what_older_runners_have_left_goes_and_a_newer_ones_stays(files: RowFiles) -> None:
    files.clear(9)
    for epoch in (1, 2, 3):
        files.paths(staged(files, 0, epoch=epoch))
    files.clear(2)
    (kept,) = files.place.iterdir()
    origin = FileOrigin.of_name(kept.name)
    assert origin is not None
    assert origin.epoch == 3


def test_a_file_that_another_attempt_has_removed_is_told(files: RowFiles) -> None:
    report = staged(files, 0, 1)
    files.clear(2)
    with pytest.raises(SinkError, match=r"staged file .* is gone"):
        files.paths(report)


def test_a_store_that_is_away_is_told_by_who_reads_and_not_by_who_clears(
    store: ObjectStore, tmp_path: Path
) -> None:
    files = RowFiles(store.path(tmp_path.name), tmp_path / "staged")
    report = staged(files, 0)
    store.fault = lambda _: Response(status=400)
    try:
        with pytest.raises(StoreUnavailableError):
            files.paths(report)
        files.clear(2)
    finally:
        store.fault = lambda _: None
    assert left(files) == 1
    files.clear(2)
    assert left(files) == 0
