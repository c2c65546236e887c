"""Folds of a changelog into files, one after the other, against a fold record by record."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.dimension.fold_files import FoldFiles
from joins.kernels.changelog import fold_rows
from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.fold_rows import FoldTask
from joins.kernels.probe.files import FileOrigin
from tests.support.changelog import SCHEMA, batch_of, record, stage, watermark
from tests.support.folds import newest, visible
from tests.support.laws import examples

IDS = st.integers(0, 9)
CHANGES = st.lists(st.tuples(st.sampled_from("cudr"), IDS), max_size=8)
STEPS = st.lists(
    st.tuples(CHANGES, st.booleans(), st.permutations(range(8))), min_size=1, max_size=5
)


class Table:
    """The files of a table, and of the changelog that is folded into it."""

    def __init__(self, root) -> None:
        self.changelog, self.current = root / "changelog", root / "current"
        self.files, self.rows, self.folds = [], [], 0

    def fold(self, *commits):
        """Fold the records of `commits`, a file each; returns images and the replaced files."""
        files = []
        for rows in filter(None, commits):
            self.rows += rows
            number = len(self.rows)
            files.append(self.changelog / stage(self.changelog, batch_of(rows), number=number).path)
        marks = [row for row in self.rows if row["_op"] == "w"]
        newest_mark = max(marks, key=lambda row: row["_generation"])
        place = newest_mark["_partition"], newest_mark["_generation"]
        progress = Progress({place: newest_mark["_offset"]})
        complete, _ = newest(self.rows, 1)
        task = FoldTask(files, ("id",), progress, complete, tuple(self.files))
        self.folds += 1
        fold = FoldFiles(task, self.current, FileOrigin(1, self.folds, 0, 0))
        assert FoldFiles.from_json(fold.to_json()).to_json() == fold.to_json()
        staged = fold.write()
        replaced = [self.files[at] for at in staged.rewritten]
        self.files = [file for file in self.files if file not in replaced]
        self.files += [self.current / file.path for file in staged.added]
        tables = [pq.read_table(self.current / file.path) for file in staged.changed]
        return [row for table in tables for row in table.to_pylist()], replaced

    def found(self):
        return sorted(
            (row for file in self.files for row in pq.read_table(file).to_pylist()),
            key=lambda row: row["id"],
        )

    def expected(self):
        return sorted(map(whole, visible(self.rows, 1)), key=lambda row: row["id"])


def whole(row):
    return {name: row.get(name) for name in SCHEMA.names}


def images(before, after):
    """What came and went between two states of the table."""
    old, new = ({row["id"]: row for row in rows} for rows in (before, after))
    for at in sorted(old.keys() | new.keys()):
        if old.get(at) != new.get(at):
            is_update = at in old and at in new
            if at in old:
                yield {**old[at], "_change_type": "update_preimage" if is_update else "delete"}
            if at in new:
                yield {**new[at], "_change_type": "update_postimage" if is_update else "insert"}


def ordered(rows):
    return sorted(rows, key=lambda row: (row["id"], row["_change_type"]))


@settings(max_examples=examples(200))
@given(steps=STEPS)
def test_folds_one_after_the_other_are_the_fold_of_all_records(tmp_path_factory, steps):
    """Of records in any order within a fold; at some the table has been copied anew."""
    table = Table(tmp_path_factory.mktemp("table"))
    table.fold([record("r", at, 5, at, row=-1) for at in range(4)], [watermark(4)])
    offset, generation = 5, 1
    for changes, is_copied, order in steps:
        generation += is_copied
        rows = []
        for op, id_ in changes:
            offset += 1
            more = {"generation": generation, **({"row": -1} if op == "r" else {})}
            rows.append(record(op, id_, 5 + offset, offset, **more))
        offset += 1
        marks = [watermark(offset, generation=generation)] if is_copied else []
        mixed = [rows[at] for at in order if at < len(rows)]
        if not is_copied:  # a copy that is not awaited: it comes behind the watermark record
            mixed = [{**row, "_op": "u", "_row": 0} if row["_op"] == "r" else row for row in mixed]
        if not mixed and not marks:
            continue
        before = table.found()
        changed, replaced = table.fold(mixed[:3], mixed[3:], marks)
        after = table.found()
        assert after == table.expected()
        if replaced:
            assert ordered(changed) == ordered(images(before, after))
        else:
            assert changed == []
            assert {row["id"] for row in before} <= {row["id"] for row in after}


def test_a_snapshot_row_behind_the_watermark_record_is_no_change(tmp_path):
    table = Table(tmp_path)
    table.fold([record("r", 1, 5, 0, row=-1), record("d", 2, 9, 1), watermark(2)])
    table.fold([record("r", 2, 50, 3, row=-1), record("u", 1, 12, 4)])
    assert [(row["id"], row["name"]) for row in table.found()] == [(1, "u12")]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr("joins.dimension.fold_files.FILE_ROWS", 10)
    monkeypatch.setattr(fold_rows, "_SMALL_ROWS", 5)
    monkeypatch.setattr(fold_rows, "_BATCH_ROWS", 5)


def sizes(table):
    return sorted(pq.read_metadata(file).num_rows for file in table.files)


@pytest.mark.usefixtures("small")
def test_a_file_that_loses_no_row_stays(tmp_path):
    table = Table(tmp_path)
    table.fold([record("r", at, 5, at, row=-1) for at in range(30)], [watermark(30)])
    first, second, third = table.files
    assert sizes(table) == [10, 10, 10]
    _, replaced = table.fold([record("u", 12, 6, 31), record("d", 17, 7, 32)])
    assert (replaced, sizes(table)) == ([second], [9, 10, 10])
    assert table.files[:2] == [first, third]
    assert table.found() == table.expected()


@pytest.mark.usefixtures("small")
def test_files_of_new_rows_are_put_together_as_they_come(tmp_path):
    table = Table(tmp_path)
    table.fold([record("r", at, 5, at, row=-1) for at in range(10)], [watermark(10)])
    for at in range(10, 60):
        table.fold([record("c", at, 6 + at, 1 + at)])
        assert table.found() == table.expected()
        assert len([size for size in sizes(table) if size <= 5]) <= 3
    assert sum(sizes(table)) == 60


def test_keys_of_several_columns_and_nested_values_are_kept(tmp_path):
    schema = pa.schema(
        [
            ("a", pa.string()),
            ("b", pa.decimal128(9, 2)),
            ("v", pa.list_(pa.struct([("x", pa.int8())]))),
        ]
    )
    whole_schema = pa.schema([*schema, *(SCHEMA.field(n) for n in SCHEMA.names if n[0] == "_")])

    def rows(number, *values):
        base = [record("u", None, 10 * number + at, 10 * number + at) for at in range(len(values))]
        named = [
            {**{k: v for k, v in row.items() if k[0] == "_"}, "a": a, "b": b, "v": [{"x": x}]}
            for row, (a, b, x) in zip(base, values, strict=True)
        ]
        batch = pa.RecordBatch.from_pylist(named, schema=whole_schema)
        return tmp_path / stage(tmp_path, batch, number=number).path

    current = []
    for number, values in enumerate([[("a", 1, 1), ("a", 2, 2), ("b", 1, 3)], [("a", 2, 4)]]):
        task = FoldTask([rows(number, *values)], ("a", "b"), Progress(), 0, current)
        staged = FoldFiles(task, tmp_path / "current", FileOrigin(1, number, 0, 0)).write()
        current = [tmp_path / "current" / file.path for file in staged.added]
    found = [row for file in current for row in pq.read_table(file).to_pylist()]
    assert sorted((row["a"], int(row["b"]), row["v"][0]["x"]) for row in found) == [
        ("a", 1, 1),
        ("a", 2, 4),
        ("b", 1, 3),
    ]
