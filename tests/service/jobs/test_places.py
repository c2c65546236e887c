"""Where a job may write: never where another table is, whatever the path looks like."""

from dataclasses import replace

import pyarrow as pa
import pytest

from joins.adapters.delta.log import create_table
from joins.plan.errors import SinkError
from joins.plan.plan import DeltaSink, DeltaTableSource, FileFormat, FileSource, FurtherInsert
from service.config import Settings
from service.errors import NotAllowedError
from service.jobs.store import plan_codec
from service.jobs.store.layout import JobLayout
from service.jobs.submit.places import check_new_table, check_places
from service.sql.planner.planner import plan_script
from tests.support.control_plane import script

PLAN = plan_script(script(), name="places").plan
SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def settings(tmp_path):
    """Of a warehouse with a table `shop/users` and a job that writes to `out/enriched`."""
    found = Settings.load(data_dir=tmp_path / "data", allowed_paths=str(tmp_path / "lake"))
    warehouse = found.warehouse_dir
    create_table(warehouse / "shop" / "users", SCHEMA)
    (warehouse / "link").symlink_to(warehouse / "shop")
    (warehouse / "plain").mkdir()
    layout = JobLayout(found.jobs_dir / "other")
    layout.create()
    other = writing("out/enriched", late="out/late", dimension="pool/rates")
    layout.plan.write_bytes(plan_codec.dump(other))
    third = JobLayout(found.jobs_dir / "third")
    third.create()
    third.plan.write_bytes(plan_codec.dump(writing("third", files="pool/left")))
    third.plans.mkdir()
    updated = replace(writing("third", files="pool/users"), number=2)
    third.plan_of(2).write_bytes(plan_codec.dump(updated))
    return found


def writing(path, *, late=None, dimension=None, more=None, files=None):
    probe = replace(PLAN.probe, late_records_path=late)
    dimensions = PLAN.dimensions
    if dimension is not None:
        source = DeltaTableSource(dimension)
        dimensions = tuple(replace(d, source=source) for d in dimensions)
    if files is not None:
        source = FileSource(files, FileFormat.JSON)
        dimensions = tuple(replace(d, source=source) for d in dimensions)
    further = ()
    if more is not None:
        further = (FurtherInsert("s", (), PLAN.joins, None, PLAN.output, "x", DeltaSink(more)),)
    return replace(
        PLAN, sink=DeltaSink(path), probe=probe, dimensions=dimensions, more_inserts=further
    )


TAKEN = {
    "new_directory": writing("new"),
    "beside_a_table": writing("shop/items"),
    "the_table_itself": writing("shop/users"),
    "output_of_another_job": writing("out/enriched"),
    "name_that_begins_as_anothers": writing("out/enriched_too"),
    "directory_without_tables": writing("plain"),
    "two_inserts_into_one": writing("both", more="both"),
    "dimension_of_another_job": writing("pool/rates"),
    "files_that_another_job_joins_no_more": writing("pool/left"),
    "late_records_of_another_job": writing("new", late="out/late"),
    "late_records_of_their_own": writing("new", late="late"),
    "allowed_directory": writing("{lake}"),
}
REFUSED = {
    "warehouse": writing("."),
    "warehouse_by_a_way_round": writing("shop/../"),
    "warehouse_by_its_name": writing("{warehouse}/"),
    "directory_with_a_table": writing("shop"),
    "directory_with_a_table_and_a_slash": writing("shop//"),
    "link_to_a_directory_with_a_table": writing("link"),
    "in_a_table": writing("shop/users/mine"),
    "in_a_table_by_a_link": writing("link/users/deep/mine"),
    "in_a_table_by_dots": writing("plain/../shop/users/mine"),
    "log": writing("shop/users/_delta_log"),
    "in_a_directory_that_cannot_be": writing("x" * 300 + "/mine"),
    "in_a_log": writing("plain/_delta_log/mine"),
    "in_a_log_of_other_case": writing("plain/_Delta_Log/mine"),
    "above_another_jobs_output": writing("out"),
    "in_another_jobs_output": writing("out/enriched/mine"),
    "in_another_jobs_output_of_other_case": writing("OUT/Enriched/mine"),
    "above_another_jobs_dimension": writing("pool"),
    "another_jobs_late_records": writing("out/late"),
    "one_insert_in_the_other": writing("both", more="both/inner"),
    "in_its_own_dimension": writing("mine/inner", dimension="mine"),
    "its_own_dimension_by_a_way_round": writing("mine", dimension="plain/../mine"),
    "its_own_dimension_in_another_insert": writing("new", dimension="Mine", more="mine"),
    "files_that_it_joins": writing("mine", files="mine"),
    "among_files_that_it_joins": writing("mine/inner", files="mine"),
    "around_files_that_it_joins": writing("mine", files="mine/users.json"),
    "files_that_another_job_joins": writing("pool/users"),
    "late_records_in_the_output": writing("new", late="new/late"),
    "late_records_are_the_output": writing("new", late="plain/../new"),
    "late_records_are_another_insert": writing("new", more="second", late="second"),
    "late_records_are_another_jobs_output": writing("new", late="out/enriched"),
    "late_records_are_a_dimension": writing("new", late="pool/rates"),
}


def placed(plan, settings):
    places = {"lake": settings.allowed_directories[0], "warehouse": settings.warehouse_dir}
    return replace(plan, sink=DeltaSink(plan.sink.path.format(**places)))


@pytest.mark.parametrize("plan", TAKEN.values(), ids=TAKEN)
def test_an_output_with_a_place_of_its_own_is_taken(settings, plan):
    check_places(placed(plan, settings), settings)


@pytest.mark.parametrize("plan", REFUSED.values(), ids=REFUSED)
def test_an_output_in_the_place_of_others_is_refused(settings, plan):
    with pytest.raises(SinkError, match="path") as refused:
        check_places(placed(plan, settings), settings)
    assert refused.value.hint.startswith("Give it a separate directory")
    check_places(writing("own", late="own_late"), settings)


@pytest.mark.parametrize("second", ["{data}/warehouse/both", "plain/../both", "Both"])
def test_one_output_written_in_two_ways_is_refused(settings, second):
    """The planner compares INSERTs of one table by the paths as they are written."""
    with pytest.raises(SinkError, match=r'and "both" of the script may be one') as refused:
        check_places(writing("both", more=second.format(data=settings.data_dir)), settings)
    assert "in the same way" in refused.value.hint
    check_places(writing("both", more="file://both/"), settings)


@pytest.mark.parametrize("path", ["{data}/kafka", "{data}", "{data}/jobs/other/tables"])
def test_an_output_among_the_files_of_sluice_is_refused(tmp_path, settings, path):
    everywhere = Settings.load(data_dir=tmp_path / "data", allowed_paths="/")
    with pytest.raises(NotAllowedError, match="own files"):
        check_places(writing(path.format(data=settings.data_dir)), everywhere)


def test_a_table_that_came_around_an_output_meanwhile_is_seen_when_the_job_starts(settings):
    check_new_table(DeltaSink("later/out"), settings)
    create_table(settings.warehouse_dir / "later", SCHEMA)
    with pytest.raises(SinkError, match="is in delta table"):
        check_new_table(DeltaSink("later/out"), settings)
    check_new_table(DeltaSink("later"), settings)


def test_a_plan_that_cannot_be_read_keeps_nobody_from_submitting(settings):
    JobLayout(settings.jobs_dir / "other").plan.write_bytes(b'{"delta"')
    check_places(writing("out"), settings)
