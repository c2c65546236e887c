"""A copy of a Delta table is compared with the version that is its position."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from joins.adapters.delta.source import captured_columns, check_source_table
from joins.adapters.delta.version_read import VersionRead
from joins.dimension.changelog_scan import DimensionStates
from joins.lookback.verification import Verification, VerifyLimits
from joins.plan.plan import DeltaTableSource, Dimension, Field
from joins.plan.types import SqlType, TypeName
from tests.support.changelog import COLUMNS, Changelog, record, watermark

FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("name", SqlType(TypeName.STRING)))
EPOCH = 0


def rows(values):
    kinds = {"id": pa.int64(), "name": pa.string()}
    return pa.table({name: pa.array(values[name], kind) for name, kind in kinds.items()})


@pytest.fixture
def source(tmp_path):
    """Versions 0 to 2: three files with a row each."""
    path = tmp_path / "source"
    for key in (1, 2, 3):
        write_deltalake(path, rows({"id": [key], "name": ["r2"]}), mode="append")
    return path


@pytest.fixture
def changelog(tmp_path):
    """A copy of version 2, complete."""
    made = Changelog(tmp_path / "changelog")
    copied = [record("r", key, 0, key, file=2, row=-1) for key in (1, 2, 3)]
    made.commit(*({**row, "name": "r2"} for row in copied))
    made.commit(watermark(9))
    return made


def verify(source, changelog, *, version=None, **limits):
    assert [each.name for each in captured_columns(FIELDS)] == [each.name for each in COLUMNS]
    table = check_source_table(source, FIELDS, ("id",), version=version)
    read = VersionRead(table, FIELDS, ("id",), EPOCH)
    declared = DeltaTableSource(str(source))
    states = DimensionStates(changelog.log, Dimension("t", declared, FIELDS, ("id",)), 1)
    everything = lambda: (EPOCH, 99, 0)  # noqa: E731
    return Verification(states, read, everything, VerifyLimits(**limits)).run(states.newest())


def found(result):
    return {item["key"]["id"]: item["kind"] for item in result["items"]}


def test_an_equal_copy(source, changelog):
    result = verify(source, changelog)

    assert (result["differences"], result["rows"], result["chunks"]) == (0, 3, 3)
    assert result["position"] == {"version": 2}


def test_changes_of_later_versions_take_no_part(source, changelog):
    DeltaTable(source).update(updates={"name": "'later'"}, predicate="id = 1")
    DeltaTable(source).delete("id = 2")
    changelog.commit(record("u", 1, 0, 20, file=3), record("d", 2, 0, 21, file=4))

    assert verify(source, changelog, version=2)["differences"] == 0


def test_changes_up_to_the_version_count(source, changelog):
    DeltaTable(source).update(updates={"name": "'u0'"}, predicate="id = 1")
    changelog.commit(record("u", 1, 0, 20, file=3))

    assert verify(source, changelog)["differences"] == 0


def test_faults_are_found(source, changelog):
    DeltaTable(source).update(updates={"name": "'lost'"}, predicate="id = 1")
    DeltaTable(source).delete("id = 2")
    write_deltalake(source, rows({"id": [4], "name": [None]}), mode="append")

    assert found(verify(source, changelog)) == {1: "changed", 2: "extra", 4: "missing"}


def test_a_sample_of_files_tells_that_it_finds_no_extra_rows(source, changelog):
    result = verify(source, changelog, sample=0.4, seed=1)

    assert (result["chunks"], result["rows"], result["finds_extra"]) == (1, 1, False)
    assert result["differences"] == 0
