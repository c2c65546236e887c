"""The lookup index against a dictionary that replays the same changelog record by record."""

import multiprocessing
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.index import index as index_module
from joins.kernels.index.index import (
    DimensionIndex,
    IndexSpec,
    advance,
    build,
    discard_damaged,
    is_usable,
    remove_versions,
    stored_versions,
    verify,
)
from joins.kernels.index.lock import Room
from joins.plan.errors import IndexBuildError, IndexDirectoryError, IndexDiskFullError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support.disk import largest_file
from tests.support.laws import examples

BIGINT = SqlType(TypeName.BIGINT)
STRING = SqlType(TypeName.STRING)
FIELDS = (Field("id", BIGINT), Field("city", STRING), Field("name", STRING))
BY_ID = IndexSpec(primary_key=("id",), join_key=("id",), fields=FIELDS, partitions=2)
BY_CITY = IndexSpec(primary_key=("id",), join_key=("city",), fields=FIELDS, partitions=2)
BY_CITY_AND_ID = IndexSpec(("id",), ("city", "id"), FIELDS, 2)
BY_CITY_OR_NULL = IndexSpec(("id",), ("city",), FIELDS, 2, null_safe=(0,))
BY_CITY_OR_NULL_AND_NAME = IndexSpec(("id",), ("city", "name"), FIELDS, 2, null_safe=(0,))
BY_CITY_TWICE = IndexSpec(("id",), ("city", "city"), FIELDS, 2, null_safe=(1,))
CITIES = ("Oslo", "Rome", None, "a city whose name has more than sixteen bytes")

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("name", pa.string()),
        ("_op", pa.string()),
        ("_epoch", pa.int32()),
        ("_file", pa.int64()),
        ("_pos", pa.int64()),
        ("_row", pa.int64()),
        ("_source_ts", pa.int64()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_generation", pa.int32()),
    ]
)


def record(op, id_, pos, offset, **more):
    row = dict.fromkeys(SCHEMA.names)
    row.update(id=id_, _op=op, _epoch=0, _file=1, _pos=pos, _row=0, _source_ts=0, _offset=offset)
    row["_partition"] = 0 if id_ is None else id_ % 2
    row["_generation"] = 1
    row.update(more)
    return row


def batch(rows):
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


@dataclass
class Model:
    """What the changelog means, one record after the other."""

    partitions: int = 2
    watermarks: list = field(default_factory=list)
    records: list = field(default_factory=list)

    def add(self, rows):
        self.watermarks += [row for row in rows if row["_op"] == "w"]
        self.records += [row for row in rows if row["_op"] != "w"]

    def rows(self):
        reached = [
            max((w["_generation"] for w in self.watermarks if w["_partition"] == p), default=-1)
            for p in range(self.partitions)
        ]
        complete = min(reached)
        newest = {}
        for row in self.records:
            if row["_op"] == "r" and any(
                w["_partition"] == row["_partition"]
                and w["_generation"] >= row["_generation"]
                and w["_offset"] < row["_offset"]
                for w in self.watermarks
            ):
                continue
            held = newest.get(row["id"])
            if held is None or place(row) > place(held):
                newest[row["id"]] = row
        return [
            row
            for _, row in sorted(newest.items())
            if row["_op"] != "d" and row["_generation"] >= complete
        ]

    def lookup(self, spec, keys):
        return [
            (at, row["id"], row["city"], row["name"])
            for at, key in enumerate(keys)
            for row in self.rows()
            if all(
                row[name] == part and (part is not None or n in spec.null_safe)
                for n, (name, part) in enumerate(zip(spec.join_key, key, strict=True))
            )
        ]


def place(row):
    return (row["_epoch"], row["_file"], row["_pos"], row["_row"], row["_offset"])


def answers(directory, version, spec, keys):
    found = DimensionIndex.attach(directory, version, spec)
    types = [spec.schema.field(name).type for name in spec.join_key]
    columns = [pa.array([key[at] for key in keys], kind) for at, kind in enumerate(types)]
    probes, rows = found.lookup(columns)
    taken = found.take(rows, ["id", "city", "name"]).to_pylist()
    return [
        (int(at), row["id"], row["city"], row["name"])
        for at, row in zip(probes, taken, strict=True)
    ]


ALL_KEYS = {
    BY_ID: [(key,) for key in [3, 0, None, 7, 1, 1, 99, 2, 4, 5, 6]],
    BY_CITY: [("Rome",), (None,), ("Oslo",), ("Paris",), ("Rome",), (CITIES[3],), ("",)],
    BY_CITY_AND_ID: [(city, key) for city in CITIES for key in range(8)],
    BY_CITY_OR_NULL: [("Rome",), (None,), ("Paris",), (None,), (CITIES[3],)],
    BY_CITY_OR_NULL_AND_NAME: [(city, name) for city in CITIES for name in ("x", None, "y")],
    BY_CITY_TWICE: [(one, other) for one in CITIES for other in CITIES],
}


@st.composite
def changelogs(draw):
    """Commits of records in offset order of each partition, with generations and repeats."""
    commits = []
    offsets = [0, 0]
    for _ in range(draw(st.integers(1, 7))):
        rows = []
        for _ in range(draw(st.integers(0, 8))):
            op = draw(st.sampled_from("rrccuudw"))
            key = draw(st.integers(0, 7))
            partition = key % 2
            rows.append(
                record(
                    op,
                    None if op == "w" else key,
                    draw(st.integers(1, 12)),
                    offsets[partition],
                    _partition=partition,
                    _file=draw(st.integers(1, 2)),
                    _generation=draw(st.integers(1, 3)),
                    city=None if op in "dw" else draw(st.sampled_from(CITIES)),
                    name=None if op in "dw" else draw(st.sampled_from(["x", "y", None])),
                )
            )
            offsets[partition] += draw(st.integers(1, 2))
        commits.append(rows)
    return commits


@settings(max_examples=examples(150))
@given(commits=changelogs(), spec=st.sampled_from(list(ALL_KEYS)), data=st.data())
def test_every_version_answers_as_the_changelog_says(commits, spec, data, tmp_path_factory):
    directory = tmp_path_factory.mktemp("index")
    merge_factor = data.draw(st.sampled_from([0, 4]))
    index_module._MERGE_FACTOR = merge_factor
    try:
        model = Model()
        seen = []
        for version, rows in enumerate(commits):
            model.add(rows)
            seen += rows
            if version == 0:
                build(directory, 0, spec, [batch(rows)])
            else:
                advance(directory, version - 1, version, spec, [batch(rows)])
            expected = model.lookup(spec, ALL_KEYS[spec])
            assert answers(directory, version, spec, ALL_KEYS[spec]) == expected
            assert DimensionIndex.attach(directory, version, spec).num_rows == len(model.rows())
        again = tmp_path_factory.mktemp("again")
        build(again, 0, spec, [batch(data.draw(st.permutations(seen)))])
        assert answers(again, 0, spec, ALL_KEYS[spec]) == expected
    finally:
        index_module._MERGE_FACTOR = 4


def people(count, start=0):
    return [
        record("r", at, 4, at, _row=-1, city=CITIES[at % 2], name=f"n{at}")
        for at in range(start, start + count)
    ]


def names(directory, version, spec=BY_ID, keys=range(12)):
    found = answers(directory, version, spec, [(key,) for key in keys])
    return {key: name for _, key, _, name in found}


RULES = {
    "a_later_position_wins_whatever_the_offset": (
        [record("u", 1, 9, 1, name="new"), record("r", 1, 4, 7, _row=-1, name="old")], {1: "new"},
    ),
    "positions_are_compared_as_numbers": (
        [record("u", 1, 9, 1, _file=9, name="old"), record("u", 1, 1, 2, _file=10, name="new")],
        {1: "new"},
    ),
    "a_new_epoch_beats_every_position": (
        [record("u", 1, 9, 1, name="old"), record("u", 1, 1, 0, _epoch=1, name="new")], {1: "new"},
    ),
    "equal_positions_go_by_offset": (
        [record("u", 1, 9, 3, name="new"), record("u", 1, 9, 2, name="old")], {1: "new"},
    ),
    "a_delete_hides": ([record("c", 1, 3, 1, name="x"), record("d", 1, 5, 2)], {}),
    "a_repeated_record_does_not_bring_a_deleted_key_back": (
        [record("d", 1, 5, 2), record("c", 1, 3, 3, name="x")], {},
    ),
    "a_deleted_key_may_be_created_again": (
        [record("d", 1, 5, 2), record("c", 1, 6, 3, name="x")], {1: "x"},
    ),
    "snapshot_rows_behind_the_watermark_are_ignored": (
        [record("w", None, 6, 5, _partition=1), record("r", 1, 4, 6, _row=-1, name="zombie")], {},
    ),
    "snapshot_rows_before_the_watermark_count": (
        [record("w", None, 6, 5, _partition=1), record("r", 1, 4, 4, _row=-1, name="x")], {1: "x"},
    ),
    "watermarks_of_other_partitions_do_not_matter": (
        [record("w", None, 6, 5, _partition=0), record("r", 1, 4, 6, _row=-1, name="x")], {1: "x"},
    ),
    "a_new_snapshot_is_not_behind_an_older_watermark": (
        [
            record("w", None, 6, 5, _partition=1),
            record("r", 1, 8, 6, _row=-1, _generation=2, name="x"),
        ],
        {1: "x"},
    ),
    "changes_behind_the_watermark_count": (
        [record("w", None, 6, 5, _partition=1), record("u", 1, 7, 6, name="x")], {1: "x"},
    ),
    "before_a_generation_is_complete_the_older_one_is_visible": (
        [record("c", 1, 4, 1, name="x"), record("w", None, 9, 2, _partition=1, _generation=2)],
        {1: "x"},
    ),
    "a_complete_generation_hides_what_it_has_not_confirmed": (
        [
            record("c", 1, 4, 1, name="gone"),
            record("c", 3, 4, 2, name="old"),
            record("r", 3, 8, 3, _row=-1, _generation=2, name="kept"),
            record("w", None, 9, 4, _partition=1, _generation=2),
            record("w", None, 9, 4, _partition=0, _generation=2),
        ],
        {3: "kept"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), RULES.values(), ids=RULES)
@pytest.mark.parametrize("way", ["one_build", "one_by_one"])
def test_the_newest_record_of_a_key_counts(tmp_path, rows, expected, way):
    if way == "one_build":
        build(tmp_path, 0, BY_ID, [batch(rows)])
        assert names(tmp_path, 0) == expected
        return
    build(tmp_path, 0, BY_ID, [])
    for version, row in enumerate(rows, start=1):
        advance(tmp_path, version - 1, version, BY_ID, [batch([row])])
    assert names(tmp_path, len(rows)) == expected


def test_a_changed_join_key_no_longer_finds_the_older_row(tmp_path):
    build(tmp_path, 0, BY_CITY, [batch([record("c", 1, 4, 1, city="Oslo", name="x")])])
    moved = record("u", 1, 5, 2, city="Rome", name="x")
    advance(tmp_path, 0, 1, BY_CITY, [batch([moved])])
    keys = [("Oslo",), ("Rome",)]
    assert answers(tmp_path, 0, BY_CITY, keys) == [(0, 1, "Oslo", "x")]
    assert answers(tmp_path, 1, BY_CITY, keys) == [(1, 1, "Rome", "x")]


def test_older_versions_keep_their_answers_while_newer_ones_merge(tmp_path):
    build(tmp_path, 0, BY_ID, [batch(people(10))])
    for version in range(1, 30):
        change = record("u", version % 10, 10 + version, 100 + version, name=f"v{version}")
        advance(tmp_path, version - 1, version, BY_ID, [batch([change])])
    for version in (0, 1, 13, 29):
        expected = {key: f"n{key}" for key in range(10)}
        expected.update({at % 10: f"v{at}" for at in range(1, version + 1)})
        assert names(tmp_path, version) == expected


def test_deletes_of_long_past_files_leave_the_index(tmp_path):
    build(tmp_path, 0, BY_ID, [batch([record("d", 1, 4, 1), record("c", 2, 4, 1, _file=9)])])
    (rows_file,) = (tmp_path / BY_ID.digest).glob("*.arrow")
    with pa.memory_map(str(rows_file)) as source:
        assert pa.ipc.open_file(source).read_all().column("id").to_pylist() == [2]


VALUES = {
    "bigint": (BIGINT, [-1, 0, 2**63 - 1]),
    "tinyint": (SqlType(TypeName.TINYINT), [-128, 0, 127]),
    "text": (
        STRING,
        ["", "ä", "abcdefgh", "abcdefghi", "x" * 255, "x" * 256, "x" * 300, "x" * 301],
    ),
    "bytes": (SqlType(TypeName.BYTES), [b"", b"\0", b"\0\0", b"\xff" * 9]),
    "decimal": (
        SqlType(TypeName.DECIMAL, 38, 2),
        [Decimal("-0.01"), Decimal("0.01"), Decimal(10) ** 35],
    ),
    "date": (SqlType(TypeName.DATE), [-1, 0, 20000]),
    "timestamp": (SqlType(TypeName.TIMESTAMP, 6), [-1, 0, 10**15]),
    "boolean": (SqlType(TypeName.BOOLEAN), [True, False]),
    "double": (SqlType(TypeName.DOUBLE), [-1.5, 0.0, 1e300]),
}


@pytest.mark.parametrize("null_safe", [(), (0,)], ids=["equal", "not_distinct"])
@pytest.mark.parametrize(("kind", "values"), VALUES.values(), ids=VALUES)
def test_keys_of_every_type_match_their_equals_only(tmp_path, kind, values, null_safe):
    fields = (Field("id", BIGINT), Field("key", kind))
    spec = IndexSpec(("id",), ("key",), fields, 1, null_safe)
    rows = [record("c", at, 4, at) for at in range(len(values) + 1)]
    array = pa.array([*values, None], spec.schema.field("key").type)
    table = batch(rows).append_column("key", array)
    build(tmp_path, 0, spec, [table])
    index = DimensionIndex.attach(tmp_path, 0, spec)
    probe = pa.concat_arrays([array, array]).slice(1)
    at, dimension_rows = index.lookup([probe])
    found = index.take(dimension_rows, ["key"]).column("key").to_pylist()
    assert found == [value for value in probe.to_pylist() if null_safe or value is not None]
    assert [probe[int(row)].as_py() for row in at] == found


def test_a_spec_without_null_safe_keys_names_the_directory_that_it_always_had():
    digests = [spec.digest for spec in (BY_ID, BY_CITY, BY_CITY_AND_ID)]
    assert digests == ["e7beec82874238f7", "d88fa5dfe6f02ea0", "66b977e9a3cbc86d"]
    assert len({spec.digest for spec in ALL_KEYS}) == len(ALL_KEYS)


def test_composite_primary_keys_and_sliced_probes(tmp_path):
    spec = IndexSpec(("city", "id"), ("id", "city"), FIELDS, 1)
    rows = [record("c", at % 3, 4, at, city=city) for at, city in enumerate(["a", "b"] * 3)]
    build(tmp_path, 0, spec, [batch(rows)])
    index = DimensionIndex.attach(tmp_path, 0, spec)
    ids, cities = pa.array([9, 0, 1, 2, None]), pa.array(["a", "b", "c", "a", "a"])
    at, dimension_rows = index.lookup([ids.slice(1), cities.slice(1)])
    assert at.tolist() == [0, 2]
    assert index.take(dimension_rows, ["id"]).column(0).to_pylist() == [0, 2]


def test_equal_hashes_are_not_equal_keys(tmp_path, monkeypatch):
    same = lambda columns: np.zeros(len(columns[0]), dtype=np.uint64)  # noqa: E731
    for module in ("index.hash_table", "changelog.changes", "index.index", "index.dimension_index"):
        monkeypatch.setattr(f"joins.kernels.{module}.hash_rows", same)
    build(tmp_path, 0, BY_ID, [batch(people(9))])
    advance(
        tmp_path, 0, 1, BY_ID, [batch([record("u", 4, 9, 50, name="new"), record("d", 5, 9, 51)])]
    )
    expected = {key: f"n{key}" for key in range(9)} | {4: "new"}
    del expected[5]
    assert names(tmp_path, 1) == expected


def test_take_gives_nulls_for_minus_one_and_keeps_the_order(tmp_path):
    index_module._MERGE_FACTOR = 0
    try:
        build(tmp_path, 0, BY_ID, [batch(people(3))])
        advance(tmp_path, 0, 1, BY_ID, [batch([record("c", 7, 9, 50, name="n7")])])
        index = DimensionIndex.attach(tmp_path, 1, BY_ID)
        _, rows = index.lookup([pa.array([7, 2, 0])])
        wanted = np.array([-1, rows[0], rows[2], -1, rows[1], rows[0]])
        taken = index.take(wanted, ["name", "id"])
        assert taken.column("id").to_pylist() == [None, 7, 0, None, 2, 7]
        assert taken.schema.names == ["name", "id"]
        assert index.take(wanted, []).num_rows == 6
    finally:
        index_module._MERGE_FACTOR = 4


def test_an_empty_dimension_answers_nothing(tmp_path):
    build(tmp_path, 0, BY_CITY, [])
    index = DimensionIndex.attach(tmp_path, 0, BY_CITY)
    at, rows = index.lookup([pa.array(["Oslo", None])])
    assert (len(at), len(rows), index.num_rows) == (0, 0, 0)
    assert index.take(np.array([-1]), ["id"]).to_pylist() == [{"id": None}]


def only(directory, pattern):
    (path,) = (directory / BY_ID.digest).glob(pattern)
    return path


def truncate(directory, pattern):
    path = only(directory, pattern)
    path.write_bytes(path.read_bytes()[:-1])


DAMAGE = {
    "manifest_is_missing": lambda home: only(home, "v0.json").unlink(),
    "manifest_is_cut_off": lambda home: truncate(home, "v0.json"),
    "manifest_is_of_another_time": lambda home: only(home, "v0.json").write_text("[]"),
    "rows_are_missing": lambda home: only(home, "*.arrow").unlink(),
    "rows_are_cut_off": lambda home: truncate(home, "*.arrow"),
    "positions_are_cut_off": lambda home: truncate(home, "*.positions"),
    "hashes_are_cut_off": lambda home: truncate(home, "*.primary"),
    "bitmap_is_missing": lambda home: only(home, "*.hidden").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_version_is_refused_and_can_be_built_again(tmp_path, damage):
    build(tmp_path, 0, BY_ID, [batch(people(5))])
    damage(tmp_path)
    with pytest.raises(IndexBuildError):
        DimensionIndex.attach(tmp_path, 0, BY_ID)
    with pytest.raises(IndexBuildError):
        advance(tmp_path, 0, 1, BY_ID, [])
    build(tmp_path, 0, BY_ID, [batch(people(5))])
    assert names(tmp_path, 0) == {key: f"n{key}" for key in range(5)}


def test_an_index_of_another_format_is_built_anew_and_never_read(tmp_path, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr("joins.kernels.index.dimension_index.FORMAT_VERSION", 1)
        build(tmp_path, 0, BY_ID, [batch(people(3))])
    before = files_of(tmp_path)
    assert not is_usable(tmp_path, 0, BY_ID)
    for use in (
        lambda: DimensionIndex.attach(tmp_path, 0, BY_ID),
        lambda: advance(tmp_path, 0, 1, BY_ID, [batch(people(1, 7))]),
    ):
        with pytest.raises(IndexBuildError, match="format 1 in place of 3"):
            use()
    build(tmp_path, 1, BY_ID, [batch(people(4))])
    assert names(tmp_path, 1) == {key: f"n{key}" for key in range(4)}
    assert files_of(tmp_path).keys() & before.keys() == {"lock"}


def test_an_index_from_before_the_node_started_is_compared_before_it_is_read(tmp_path, monkeypatch):
    """Nothing is synced: a power failure may have taken bytes of any file."""
    with monkeypatch.context() as earlier:
        earlier.setattr("joins.kernels.index.dimension_index.node_start", lambda: "earlier")
        for name in ("whole", "zeros", "read"):
            build(tmp_path / name, 0, BY_ID, [batch(people(3))])
    for use in (
        lambda: DimensionIndex.attach(tmp_path / "read", 0, BY_ID),
        lambda: advance(tmp_path / "read", 0, 1, BY_ID, [batch(people(1, 7))]),
    ):
        with pytest.raises(IndexBuildError, match="started again"):
            use()
    rows = only(tmp_path / "zeros", "*.arrow")
    rows.write_bytes(bytes(rows.stat().st_size))
    for name in ("whole", "zeros"):
        discard_damaged(tmp_path / name, 0, BY_ID)
    assert names(tmp_path / "whole", 0) == {key: f"n{key}" for key in range(3)}
    assert stored_versions(tmp_path / "zeros", BY_ID) == ()


def test_verification_finds_a_changed_byte(tmp_path):
    build(tmp_path, 0, BY_ID, [batch(people(5))])
    verify(tmp_path, 0, BY_ID)
    path = only(tmp_path, "*.arrow")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(IndexBuildError, match="checksum"):
        verify(tmp_path, 0, BY_ID)


def test_rows_without_a_declared_column_are_refused(tmp_path):
    with pytest.raises(IndexBuildError):
        build(tmp_path, 0, BY_ID, [batch(people(1)).drop_columns(["name"])])
    assert stored_versions(tmp_path, BY_ID) == ()


def test_building_twice_changes_nothing(tmp_path):
    build(tmp_path, 0, BY_ID, [batch(people(5))])
    advance(tmp_path, 0, 1, BY_ID, [batch(people(1, 7))])
    before = sorted((tmp_path / BY_ID.digest).iterdir())
    build(tmp_path, 0, BY_ID, [batch(people(1))])
    advance(tmp_path, 0, 1, BY_ID, [batch(people(1, 8))])
    assert sorted((tmp_path / BY_ID.digest).iterdir()) == before
    assert stored_versions(tmp_path, BY_ID) == (0, 1)


def test_removal_keeps_what_a_kept_version_names(tmp_path):
    build(tmp_path, 0, BY_ID, [batch(people(8))])
    build(tmp_path, 0, BY_CITY, [batch(people(8))])
    for version in range(1, 9):
        change = record("u", version % 8, 10 + version, 100 + version, name=f"v{version}")
        advance(tmp_path, version - 1, version, BY_ID, [batch([change])])
    attached = DimensionIndex.attach(tmp_path, 2, BY_ID)
    remove_versions(tmp_path, {5, 8})
    assert stored_versions(tmp_path, BY_ID) == (5, 8)
    assert stored_versions(tmp_path, BY_CITY) == ()
    for version in (5, 8):
        verify(tmp_path, version, BY_ID)
        assert names(tmp_path, version)[5] == "v5"
    _, rows = attached.lookup([pa.array([1])])
    assert attached.take(rows, ["name"]).column(0).to_pylist() == ["v1"]
    with pytest.raises(IndexBuildError):
        DimensionIndex.attach(tmp_path, 2, BY_ID)


def files_of(directory, spec=BY_ID):
    return {path.name: path.read_bytes() for path in (directory / spec.digest).iterdir()}


def test_a_build_without_room_leaves_nothing_and_says_what_it_needs(tmp_path):
    with largest_file(4096), pytest.raises(IndexDiskFullError) as caught:
        build(tmp_path, 0, BY_CITY, [batch(people(20_000))])
    assert f'index directory "{tmp_path / BY_CITY.digest}" on node ' in str(caught.value)
    assert " needs 1 MiB more" in str(caught.value)
    assert "SLUICE_INDEX_DIR" in caught.value.hint
    assert list(files_of(tmp_path, BY_CITY)) == ["lock"]
    build(tmp_path, 0, BY_CITY, [batch(people(20_000))])
    assert DimensionIndex.attach(tmp_path, 0, BY_CITY).num_rows == 20_000


def test_an_advance_without_room_leaves_the_older_versions_as_they_are(tmp_path):
    build(tmp_path, 0, BY_ID, [batch(people(5))])
    before = files_of(tmp_path)
    with largest_file(4096), pytest.raises(IndexDiskFullError):
        advance(tmp_path, 0, 1, BY_ID, [batch(people(2000, 5))])
    assert files_of(tmp_path) == before
    assert names(tmp_path, 0) == {key: f"n{key}" for key in range(5)}


def test_a_manifest_without_room_takes_the_segment_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr("joins.kernels.index.index._MERGE_FACTOR", 0)
    build(tmp_path, 0, BY_ID, [batch(people(1))])
    for version in range(1, 40):
        advance(tmp_path, version - 1, version, BY_ID, [batch(people(1, version))])
    before = files_of(tmp_path)
    limit = max(len(content) for name, content in before.items() if not name.endswith(".json"))
    assert limit < len(before["v39.json"])
    with largest_file(limit), pytest.raises(IndexDiskFullError) as caught:
        advance(tmp_path, 39, 40, BY_ID, [batch(people(1, 40))])
    assert (files_of(tmp_path), caught.value.needed_bytes) == (before, None)


def test_room_is_looked_at_before_anything_is_written(tmp_path):
    Room(tmp_path, 1 << 10).check()
    with pytest.raises(IndexDiskFullError, match="needs 1099511627776 MiB more: "):
        Room(tmp_path, 1 << 60).check()


def test_a_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(IndexDirectoryError, match="cannot be written: Not a directory"):
        build(tmp_path / "file", 0, BY_ID, [batch(people(1))])


def build_people(directory):
    build(directory, 0, BY_ID, [batch(people(2000))])
    for version in range(1, 4):
        advance(directory, version - 1, version, BY_ID, [batch(people(10, 2000 + 10 * version))])


def test_processes_that_build_at_once_build_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=build_people, args=(tmp_path,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert DimensionIndex.attach(tmp_path, 3, BY_ID).num_rows == 2030
    assert not list((tmp_path / BY_ID.digest).glob("*.partial"))
    assert len(list((tmp_path / BY_ID.digest).glob("v*.json"))) == 4


def test_attaching_again_gives_the_same_mapping(tmp_path):
    build(tmp_path, 0, BY_ID, [batch(people(5))])
    first = DimensionIndex.attach(tmp_path, 0, BY_ID)
    assert DimensionIndex.attach(tmp_path, 0, BY_ID) is first


def test_hot_keys_and_many_duplicates_fold_to_the_newest(tmp_path):
    rows = [record("u", at % 7, at, at, name=f"v{at}") for at in range(5000)]
    build(tmp_path, 0, BY_ID, [batch(rows[at : at + 500]) for at in range(0, 5000, 500)])
    assert names(tmp_path, 0) == {at % 7: f"v{at}" for at in range(4993, 5000)}


def test_a_long_history_is_compacted_while_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("joins.kernels.changelog.changes._COMPACT_ROWS", 100)
    rows = [record("u", at % 7, at, at, name=f"v{at}") for at in range(2000)]
    zombies = [record("r", 1, 9000, 9000, _row=-1, name="zombie", _offset=5000)]
    marks = [record("w", None, 9001, 4000, _partition=1)]
    parts = [
        batch(zombies),
        *(batch(rows[at : at + 50]) for at in range(0, 2000, 50)),
        batch(marks),
    ]
    build(tmp_path, 0, BY_ID, parts)
    assert names(tmp_path, 0) == {at % 7: f"v{at}" for at in range(1993, 2000)}


def users(count):
    """Changelog rows of as many users, 30 bytes each, as a snapshot brings them."""
    ids = np.arange(count)
    same = {"_op": "r", "_epoch": 0, "_file": 1, "_pos": 4, "_source_ts": 0, "_generation": 1}
    columns = {
        "id": pa.array(ids),
        "city": pa.array(np.where(ids % 2, "F", "M")),
        "name": pa.array(np.char.add("user ", (ids + 1_000_000).astype(str))),
        "_row": pa.array(ids % 131_072),
        "_offset": pa.array(ids),
        "_partition": pa.repeat(pa.scalar(0, pa.int32()), count),
    }
    for name, value in same.items():
        columns[name] = pa.repeat(pa.scalar(value, SCHEMA.field(name).type), count)
    return pa.RecordBatch.from_pydict(columns)


BY_NAME = IndexSpec(primary_key=("id",), join_key=("name",), fields=FIELDS, partitions=1)
BY_CITY_OF_ONE = IndexSpec(primary_key=("id",), join_key=("city",), fields=FIELDS, partitions=1)
SIZES = {
    "by_primary_key": (IndexSpec(("id",), ("id",), FIELDS, 1), 1.3),
    "by_another_unique_key": (BY_NAME, 1.5),
    "by_a_key_of_few_values": (BY_CITY_OF_ONE, 1.5),
}


@pytest.mark.parametrize(("spec", "most"), SIZES.values(), ids=SIZES)
def test_all_files_of_an_index_are_little_larger_than_its_rows(tmp_path, spec, most):
    rows = users(200_000)
    build(tmp_path, 0, spec, [rows])
    stored = sum(path.stat().st_size for path in (tmp_path / spec.digest).iterdir())
    assert stored <= most * rows.select(spec.schema.names).nbytes
