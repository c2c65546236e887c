"""Packed columns and hash tables, for which the index tests have too few rows."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from joins.kernels.index import hash_table
from joins.kernels.index.hash_table import (
    HashTable,
    PackedColumn,
    hash_rows,
    map_arrays,
    write_arrays,
)

RNG = np.random.default_rng(7)
LOW, HIGH = np.iinfo(np.int64).min, np.iinfo(np.int64).max
COLUMNS = {
    "none": [],
    "one": [HIGH],
    "one_value": [-1] * 1000,
    "two_values_far_apart": [LOW, HIGH],
    "a_count": range(1000),
    "one_block_to_the_row": [*range(512)],
    "blocks_of_all_widths": [at % 256 << at // 256 * 4 % 9 * 6 for at in range(256 * 9)],
    "negative": [-at * 1000 for at in range(600)],
    "anything": RNG.integers(LOW, HIGH, 5000),
}


@pytest.mark.parametrize("numbers", COLUMNS.values(), ids=COLUMNS)
def test_a_packed_column_gives_back_its_numbers(tmp_path, numbers):
    numbers = np.array(numbers, dtype=np.int64)
    path = tmp_path / "column"
    with path.open("wb") as sink:
        write_arrays(sink, PackedColumn.of(numbers).arrays)
    column = PackedColumn.of_arrays(map_arrays(path))
    assert column.all().tolist() == numbers.tolist()
    if len(numbers):
        rows = RNG.integers(0, len(numbers), 500)
        assert column.at(rows).tolist() == numbers[rows].tolist()


BYTES = {
    "equal_numbers_take_none": (np.full(100_000, 12), 0),
    "a_count_takes_one": (np.arange(100_000), 1),
    "one_large_number_widens_its_block_only": (np.append(np.arange(100_000), HIGH), 1.02),
}


@pytest.mark.parametrize(("numbers", "most"), BYTES.values(), ids=BYTES)
def test_a_packed_column_takes_few_bytes_a_row(numbers, most):
    assert PackedColumn.of(numbers).nbytes <= most * len(numbers) * 1.06 + 64


KEYS = {
    "unique": np.arange(40_000),
    "few": np.arange(40_000) % 3,
    "one_of_many_rows": np.maximum(np.arange(40_000), 30_000),
    "a_bucket_each": np.arange(1),
    "none": np.arange(0),
}


@pytest.mark.parametrize("least_mark_bits", [6, 20], ids=["short_entries", "long_entries"])
@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_a_hash_table_has_all_rows_of_a_key_in_their_order(
    tmp_path, monkeypatch, keys, least_mark_bits
):
    monkeypatch.setattr(hash_table, "_LEAST_MARK_BITS", least_mark_bits)
    table = mapped(tmp_path / "table", HashTable.of([pa.array(keys)]))
    wanted = np.array([0, 39_999, 1, 30_000, 50_000, -1, 1])
    probes, rows = table.candidates(hash_rows([pa.array(wanted)]))
    assert (np.diff(probes) >= 0).all()
    equal = keys[rows] == wanted[probes]
    expected = [(at, row) for at, key in enumerate(wanted) for row in np.flatnonzero(keys == key)]
    assert list(zip(probes[equal], rows[equal], strict=True)) == expected


def test_marks_keep_nearly_all_rows_of_other_keys_away():
    table = HashTable.of([pa.array(np.arange(100_000))])
    probes, _ = table.candidates(hash_rows([pa.array(np.arange(100_000, 200_000))]))
    assert len(probes) < 1000


def test_a_table_without_its_end_is_refused(tmp_path):
    sink = io.BytesIO()
    HashTable.of([pa.array(np.arange(100))]).write(sink)
    path = tmp_path / "table"
    path.write_bytes(sink.getvalue()[:-16])
    with pytest.raises(ValueError, match="too few"):
        HashTable.map(path)


def mapped(path: Path, table: HashTable) -> HashTable:
    with path.open("wb") as sink:
        table.write(sink)
    return HashTable.map(path)
