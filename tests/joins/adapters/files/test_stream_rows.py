"""Ranges of a stream's files: each row under its number, whatever was read before."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from joins.adapters.files.stream_listing import list_history
from joins.adapters.files.stream_rows import StreamFiles
from joins.kernels.formats.decoders import RecordColumns
from joins.kernels.formats.encoders import values_of
from joins.kernels.records.layout import OF_THE_PROBE, ROW
from joins.plan.errors import DefinitionError, RecordsExpiredError, SourceError
from joins.plan.formats import JSON_FORMAT
from joins.plan.plan import DeltaTableSource, Field, FileFormat, FileSource, TopicHistory
from joins.plan.stream_topics import FILES
from joins.plan.types import SqlType, TypeName

NUMBER = Field("n", SqlType(TypeName.BIGINT))
STAMP = Field("at", SqlType(TypeName.TIMESTAMP_LTZ, precision=3))
FIELDS = (NUMBER, STAMP)
PARQUET = TopicHistory(FileSource("files", FileFormat.PARQUET))
OF_DELTA = TopicHistory(DeltaTableSource("files"))


def written(numbers: range) -> pa.Table:
    stamps = pa.array([n * 1_000 for n in numbers], pa.timestamp("ms", "UTC"))
    return pa.table({"at": stamps, "n": pa.array(numbers, pa.int32())})


def files_of(root: Path, history: TopicHistory, fields: tuple[Field, ...] = FIELDS) -> StreamFiles:
    listed, _ = list_history(history, root, fields)
    return StreamFiles(root, history.version, fields, listed)


def numbers_of(files: StreamFiles, first: int, end: int) -> list[int]:
    found: list[int] = []
    for batch in files.batches(first, end, OF_THE_PROBE):
        assert set(batch.column("partition").to_pylist()) == {FILES}
        start = first + len(found)
        assert batch.column("offset").to_pylist() == [*range(start, start + batch.num_rows)]
        parsed = RecordColumns(files.fields).read(batch, ("n", "at"))
        assert not parsed.bad
        found += parsed.batch.column("n").to_pylist()
        stamps = parsed.batch.column("at").cast(pa.int64()).to_pylist()
        assert [stamp // 1_000_000 for stamp in stamps] == parsed.batch.column("n").to_pylist()
    return found


def parquet(root: Path) -> StreamFiles:
    """Three files of small row groups, whose paths are not in the order of their rows."""
    for name, numbers in (("a/3", range(300, 400)), ("b/1", range(100)), ("b/2", range(100, 300))):
        path = root / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(written(numbers), path, row_group_size=17)
    return files_of(root, TopicHistory(PARQUET.files, order_column="n"))


def delta(root: Path) -> StreamFiles:
    """A version of two files, and a later one."""
    write_deltalake(root, written(range(150)))
    write_deltalake(root, written(range(150, 400)), mode="append")
    write_deltalake(root, written(range(400, 500)), mode="append")
    return files_of(root, TopicHistory(OF_DELTA.files, version=1, order_column="n"))


@pytest.mark.parametrize("made", [parquet, delta])
def test_every_range_has_its_rows(tmp_path, made):
    files, rng = made(tmp_path), random.Random(7)
    assert files.listed.rows == 400
    assert numbers_of(files, 0, 400) == [*range(400)]
    for first in range(0, 400, 23):  # forward, as batches come
        end = min(400, first + 23)
        assert numbers_of(files, first, end) == [*range(first, end)]
    for _ in range(100):
        first = rng.randrange(400)
        end = rng.randrange(first, 401)
        assert numbers_of(files, first, end) == [*range(first, end)]
    files.check(0, 400)


def test_paths_order_the_files_without_a_column(tmp_path):
    parquet(tmp_path)
    files = files_of(tmp_path, PARQUET)
    assert numbers_of(files, 0, 400) == [*range(300, 400), *range(100), *range(100, 300)]
    assert files.named(100) == 'row 1 of file "b/1.parquet"'


def test_rows_that_a_delta_version_lacks_have_no_number(tmp_path):
    delta(tmp_path)
    DeltaTable(tmp_path).delete("n < 10")
    version = DeltaTable(tmp_path).version()
    files = files_of(tmp_path, TopicHistory(OF_DELTA.files, version=version, order_column="n"))
    assert numbers_of(files, 0, files.listed.rows) == [*range(10, 500)]


def test_the_startup_column_says_the_newest_time(tmp_path):
    parquet(tmp_path)
    history = TopicHistory(PARQUET.files, startup_column="at")
    assert list_history(history, tmp_path, FIELDS)[1] == 399_000


def test_a_changed_file_is_not_read(tmp_path):
    files = parquet(tmp_path)
    pq.write_table(written(range(99)), tmp_path / "b/1.parquet")
    with pytest.raises(SourceError, match="it was changed since the job was submitted"):
        numbers_of(files, 0, 10)
    with pytest.raises(RecordsExpiredError, match="has changed"):
        files.check(0, 10)
    files.check(100, 400)
    (tmp_path / "b/2.parquet").unlink()
    with pytest.raises(RecordsExpiredError, match="is gone"):
        files.check(150, 151)
    assert numbers_of(files, 300, 400) == [*range(300, 400)]


def test_a_file_that_does_not_fit_is_refused_at_submission(tmp_path):
    pq.write_table(pa.table({"n": ["a"], "at": ["b"]}), tmp_path / "a.parquet")
    with pytest.raises(DefinitionError, match="does not fit its declaration"):
        list_history(PARQUET, tmp_path, FIELDS)


def test_a_value_that_does_not_fit_makes_its_row_bad(tmp_path):
    stamps = pa.array([5_000, 10**16, None], pa.timestamp("ms", "UTC"))
    pq.write_table(pa.table({"n": [1, 2, 3], "at": stamps}), tmp_path / "a.parquet")
    (batch,) = files_of(tmp_path, PARQUET).batches(0, 3, OF_THE_PROBE)
    parsed = RecordColumns(FIELDS).read(batch, ("n",))
    assert parsed.batch.column("n").to_pylist() == [1, 3]
    assert parsed.row_index.to_pylist() == [0, 2]
    (bad,) = parsed.bad
    assert bad.row == 1
    assert bad.reason == 'field "at": the value of the file is not TIMESTAMP_LTZ'


def test_the_value_of_a_row_is_json(tmp_path):
    files = parquet(tmp_path)
    batch = next(files.batches(5, 6, OF_THE_PROBE))
    (value,) = values_of(batch, JSON_FORMAT, FIELDS).to_pylist()
    assert value == b'{"n":5,"at":"1970-01-01 00:00:05.000000Z"}'
    assert pc.struct_field(batch.column(ROW), [0]).to_pylist() == [5]


def test_too_many_files_are_refused(tmp_path, monkeypatch):
    parquet(tmp_path)
    monkeypatch.setattr("joins.adapters.files.stream_listing.MOST_FILES", 2)
    with pytest.raises(SourceError, match="has 3 files, expected at most 2"):
        list_history(PARQUET, tmp_path, FIELDS)
