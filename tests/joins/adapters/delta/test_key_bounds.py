"""What the log tells of the keys in a table's files: never too little."""

import json
from datetime import UTC, date, datetime, timedelta
from itertools import count

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.delta.merge import KeyBounds, bounds_of
from joins.kernels.probe.files import FileOrigin, ParquetStage
from tests.support.laws import examples

APP = "sluice:job:life"
KEY = pa.schema(
    [
        ("at", pa.timestamp("us")),
        ("instant", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("id", pa.int32()),
        ("name", pa.string()),
    ]
)
NEW_YEAR = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC).replace(tzinfo=None)
ENDS = [datetime.min, datetime.max]  # noqa: DTZ901 - columns without a zone
# Few values beside each other, so that files meet; parts of a millisecond on both sides of 1970.
TIMES = st.integers(-4, 4).map(lambda step: NEW_YEAR + timedelta(microseconds=step * 333))
ROW = st.tuples(
    st.none() | TIMES | st.sampled_from(ENDS),
    st.none() | TIMES.map(lambda at: at.replace(tzinfo=UTC)),
    st.none() | st.integers(0, 9).map(lambda at: date(1969, 12, 25) + timedelta(days=at)),
    st.none() | st.integers(-4, 4) | st.just(2**31 - 1),
    st.none() | st.sampled_from(["a", "b" * 40, "b" * 39 + "c", "\U0001f600"]),
)
FILES = st.lists(st.tuples(st.booleans(), st.lists(ROW, min_size=1, max_size=3)), max_size=4)


def rows_of(rows):
    columns = zip(*rows, strict=True)
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, KEY, strict=True)], KEY)


class Table:
    """A table whose files are written by delta-rs or by us."""

    def __init__(self, root) -> None:
        self.log, self.root = DeltaLog(root / "table", APP), root
        create_table(self.log.path, KEY)
        self.numbers = count()

    def add(self, rows, *, by_us):
        if not by_us:
            write_deltalake(str(self.log.path), pa.table(rows_of(rows)), mode="append")
            return
        number = next(self.numbers)
        with ParquetStage(self.log.path, KEY, FileOrigin(1, number, 0, 0)) as stage:
            stage.write(rows_of(rows))
            self.log.commit(number, 1, [stage.finish()], {})

    def may_hold(self, bounds: KeyBounds, rows) -> bool:
        with ParquetStage(self.root / "staged", KEY, FileOrigin(1, 0, 0, 0), kept=False) as stage:
            stage.write(rows_of(rows))
            file = str(self.root / "staged" / stage.finish().path)
        keys = [bounds_of([file], column.name, column.type) for column in KEY]
        return bounds.may_hold(self.log.versions.fresh(), keys)

    def bounds(self) -> KeyBounds:
        return KeyBounds(self.log.versions, list(KEY))


@settings(max_examples=examples(120))
@given(files=FILES, rows=st.lists(ROW, min_size=1, max_size=3))
def test_a_key_that_a_file_has_is_never_denied(tmp_path_factory, files, rows):
    table = Table(tmp_path_factory.mktemp("keys"))
    followed = table.bounds()
    seen = set()
    for by_us, added in files:
        table.add(added, by_us=by_us)
        seen.update(added)
        for bounds in (followed, table.bounds()):
            if seen & set(rows):
                assert table.may_hold(bounds, rows)
            assert table.may_hold(bounds, added)


def test_rising_times_are_apart_and_what_a_commit_removes_is_forgotten(tmp_path):
    table = Table(tmp_path)
    hours = [(NOON + timedelta(hours=each), None, None, None, None) for each in range(4)]
    followed = table.bounds()
    assert not table.may_hold(followed, hours)
    for at, by_us in ((0, True), (1, False)):
        table.add([hours[at]], by_us=by_us)
        for bounds in (followed, table.bounds()):
            assert not table.may_hold(bounds, hours[at + 1 :])
            assert table.may_hold(bounds, hours[at:])
            assert not table.may_hold(bounds, [(NEW_YEAR, *[None] * 4)])
    write_deltalake(str(table.log.path), pa.table(rows_of([hours[3]])), mode="overwrite")
    for bounds in (followed, table.bounds()):
        assert not table.may_hold(bounds, hours[:3])
        assert table.may_hold(bounds, hours[3:])


SILENT = {
    "no_statistics": None,
    "no_json": "{",
    "no_object": "[1]",
    "no_bounds": '{"numRecords":1}',
    "null_bounds": '{"numRecords":1,"minValues":null,"maxValues":{"id":1}}',
    "one_bound": '{"numRecords":1,"minValues":{"id":1},"maxValues":{}}',
    "other_types": '{"numRecords":1,"minValues":{"id":"1"},"maxValues":{"id":true}}',
    "a_time_with_a_zone": json.dumps(
        {side: {"at": "2026-01-01T00:00:00.000Z"} for side in ("minValues", "maxValues")}
    ),
    "a_year_beyond_the_calendar": json.dumps(
        {side: {"at": "+12026-01-01T00:00:00.000"} for side in ("minValues", "maxValues")}
    ),
}


@pytest.mark.parametrize("stats", SILENT.values(), ids=SILENT)
def test_a_file_that_does_not_tell_may_have_any_key(tmp_path, stats):
    table, row = Table(tmp_path), (NOON, None, None, 77, None)
    bounds = table.bounds()
    assert not table.may_hold(bounds, [row])
    add = {"path": "x.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
    entry = [{"add": {**add, "dataChange": True, **({} if stats is None else {"stats": stats})}}]
    assert table.log.versions.entries.put(table.log.version() + 1, entry)
    assert table.may_hold(bounds, [row])
