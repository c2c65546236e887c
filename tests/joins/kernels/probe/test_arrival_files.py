"""Files of arrivals: what a batch's stages exchange, and what waits between batches."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.kernels.probe import arrival_files
from joins.kernels.probe.arrival_files import (
    OFFSET,
    TIME,
    ArrivalColumns,
    Released,
    ScratchWriter,
    WaitingFile,
    in_order,
    mapped,
)
from joins.kernels.probe.files import FileOrigin, ParquetStage
from joins.plan.errors import CheckpointError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName

BIGINT = SqlType(TypeName.BIGINT)
# Names that a user may choose, and files may not have twice.
COLUMNS = ArrivalColumns((Field("_offset", BIGINT), Field("A", BIGINT), Field("a", BIGINT)), True)
ORIGIN = FileOrigin(1, 2, 3, 4)


def rows(*places):
    """Arrivals of (offset, time); the carried columns are the offset, and 10 and 20 more."""
    offsets = np.array([offset for offset, _ in places], dtype=np.int64)
    times = np.array([time for _, time in places], dtype=np.int64)
    columns = [
        pa.array([0] * len(places), pa.int32()),
        pa.array(offsets),
        pa.nulls(len(places), pa.timestamp("us", tz="UTC")),
        pa.array([b"value"] * len(places), pa.binary()),
        pa.array(times),
        pa.array(times - 1),
        *(pa.array(offsets + more) for more in (0, 10, 20)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=COLUMNS.schema)


def waiting_file(directory, *groups):
    # a transfer: each group stays a row group
    with ParquetStage(directory, COLUMNS.schema, ORIGIN, kept=False) as stage:
        for group in groups:
            stage.write(group)
        return directory / stage.finish().path


def offsets_of(batches):
    return [offset for each in batches for offset in each.column(OFFSET).to_pylist()]


def interrupted(directory):
    with ScratchWriter(directory, COLUMNS.schema, ORIGIN) as writer:
        writer.write(rows((1, 5)))
        writer.write(pa.record_batch({"other": [1]}))


BETWEEN = {
    "the_lower_end_is_not_in_it": (4, 9, [1, 2, 5]),
    "nothing_is_due": (9, 9, []),
    "a_group_is_passed_over": (50, 2**63 - 1, [4]),
    "everything": (-(2**63), 2**63 - 1, [0, 1, 2, 3, 4, 5]),
}


@pytest.mark.parametrize(("after", "upto", "expected"), BETWEEN.values(), ids=BETWEEN)
def test_rows_that_wait_are_found_by_their_time(tmp_path, after, upto, expected):
    path = waiting_file(tmp_path, rows((0, 4), (1, 5), (2, 9)), rows((3, 10), (4, 99), (5, 6)))
    found = list(WaitingFile(path, COLUMNS).between(after, upto))
    assert offsets_of(found) == expected
    assert all(each.schema.equals(COLUMNS.schema, check_metadata=True) for each in found)


def test_columns_are_found_by_the_users_name_whatever_else_was_carried(tmp_path):
    path = waiting_file(tmp_path, rows((7, 1)))
    fewer = ArrivalColumns((Field("a", BIGINT), Field("_offset", BIGINT)), True)
    (found,) = WaitingFile(path, fewer).between(0, 1)
    carried = {name: values.to_pylist() for name, values in fewer.carried_of(found).items()}
    assert carried == {"a": [27], "_offset": [7]}


def test_a_file_without_a_column_that_is_read_says_which(tmp_path):
    path = waiting_file(tmp_path, rows((7, 1)))
    more = ArrivalColumns((*COLUMNS.carried, Field("price", BIGINT)), True)
    with pytest.raises(CheckpointError, match='has no column "price"'):
        list(WaitingFile(path, more).between(0, 1))


def test_a_scratch_file_is_mapped_and_a_failed_one_is_gone(tmp_path):
    with ScratchWriter(tmp_path, COLUMNS.schema, ORIGIN) as writer:
        writer.write(rows((1, 5)))
        writer.write(rows())
        writer.write(rows((2, 6), (3, 7)))
        file = writer.finish()
    assert (file.rows, offsets_of(mapped(tmp_path / file.path))) == (3, [1, 2, 3])
    with pytest.raises(pa.ArrowInvalid):
        interrupted(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [file.path]


def test_what_leaves_parquet_files_comes_first_and_leaves_nothing_behind(tmp_path):
    with Released(tmp_path, COLUMNS, ORIGIN) as released:
        released.copy(rows((1, 5)))
        released.copy(rows((2, 4)))
        assert offsets_of(released.and_then([rows((9, 5))])) == [1, 2, 9]
    assert list(tmp_path.iterdir()) == []


def test_slices_of_large_records_have_few_of_them(monkeypatch):
    monkeypatch.setattr(arrival_files, "SLICE_BYTES", 8_000)
    large = rows(*((number, 99 - number) for number in range(50)))
    values = pa.array([b"x" * 1_000] * 50)
    large = large.set_column(3, large.schema.field(3), values)
    found = list(in_order([large], lambda times: times > 9, lambda times: times))
    assert offsets_of(found) == list(range(49, -1, -1))
    assert max(each.num_rows for each in found) == 7


PLACES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8)


@given(parts=st.lists(PLACES, max_size=4), upto=st.integers(0, 9), ranked=st.booleans())
def test_due_rows_come_by_rank_and_offset_in_slices(parts, upto, ranked):
    batches = [rows(*part) for part in parts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrival_files, "SLICE_ROWS", 3)
        found = list(
            in_order(
                batches,
                lambda times: times <= upto,
                lambda t: t // 4 if ranked else np.zeros_like(t),
            )
        )
    due = sorted(
        (
            (time // 4 if ranked else 0, offset)
            for part in parts
            for offset, time in part
            if time <= upto
        )
    )
    assert offsets_of(found) == [offset for _, offset in due]
    for each in found:
        assert each.column("c1").to_pylist() == [offset + 10 for offset in offsets_of([each])]
        assert all(time <= upto for time in each.column(TIME).to_pylist())
