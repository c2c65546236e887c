"""Delta outputs are checked when a script is submitted, not when its job starts."""

from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from joins.adapters.delta.log import create_table
from joins.kernels.probe.event_times import LATE_RECORDS
from joins.kernels.probe.probe import kernel_spec
from joins.plan.errors import SinkError, SourceError
from joins.plan.plan import SinkWriter, WatermarkSpec
from joins.plan.types import Constant, SqlType, TypeName
from service.config import Settings
from service.connectors.sinks import output_writer
from service.jobs.submit.preflight import advise, preflight
from service.security.secrets import SecretResolver
from service.sql.planner.planner import plan_script
from tests.support.rig import Rig
from tests.support.shop import USERS, enrich_sql
from tests.support.sql import new_schema
from tests.support.topics import create_topic, delete_topics, produce


@pytest.fixture(scope="module")
def submission(mariadb, kafka):
    """(plan, secrets) of the documents' example; its output is at `out/enriched`."""
    rig = Rig(Settings.load(), None, kafka, mariadb)
    topic = create_topic(kafka.bootstrap_servers)
    with new_schema(mariadb, USERS) as schema:
        planned = plan_script(enrich_sql(rig, schema, topic, "out/enriched"), name="shop")
        inline = {secret.name: secret.value for secret in planned.inline_secrets}
        yield planned.plan, inline
    delete_topics(kafka.bootstrap_servers, topic)


@pytest.fixture
def check(submission, tmp_path, monkeypatch):
    """Runs the preflight, of another plan if need be; `tmp_path`/warehouse is the warehouse."""
    plan, inline = submission

    class Inline(SecretResolver):
        def of_job(self, name):
            return inline.get(name)

    settings = Settings.load(data_dir=tmp_path)
    return lambda plan=plan: preflight(plan, settings, Inline(None))


NO_SECRETS = SecretResolver(None)
MISSPELT = {
    "topic": ("'topic'='{}", "topic"),
    "database": ("'database-name'='{}", "database"),
    "table": ("'table-name'='{}", "table"),
}


@pytest.mark.parametrize(("option", "what"), MISSPELT.values(), ids=MISSPELT)
def test_what_is_missing_outside_is_told_with_its_line_and_the_name_that_was_meant(
    check, submission, option, what
):
    plan = submission[0]
    source = plan.probe.source if what == "topic" else plan.dimensions[0].source
    name = source.kafka.topic if what == "topic" else getattr(source, what)
    written = option.format(name)
    assert written in plan.sql
    if what == "topic":
        wrong = replace(source, kafka=replace(source.kafka, topic=f"{name}x"))
        plan = replace(plan, probe=replace(plan.probe, source=wrong))
    else:
        wrong = replace(source, **{what: f"{name}x"})
        plan = replace(plan, dimensions=(replace(plan.dimensions[0], source=wrong),))
    sql = "-- one\n-- two\n" + plan.sql.replace(f"{written}'", f"\n{written}x'")
    with pytest.raises(SourceError) as caught:
        check(replace(plan, sql=sql))
    assert caught.value.hint == f'Did you mean "{name}"?'
    line, caret = caught.value.excerpt.split("\n")
    assert line[caret.index("^") :].startswith(f"'{name}x'")
    assert sql.split("\n")[caught.value.line - 1].startswith(written[:8])
    assert caught.value.message.startswith(f"line {caught.value.line}, column")


def test_an_output_that_is_not_there_yet_is_not_created(check, tmp_path):
    check()
    assert list(tmp_path.iterdir()) == []


def test_the_end_of_a_backlog_is_kept_in_the_plan(check, submission, kafka):
    plan = submission[0]
    instant = Constant("2024-03-01 08:00:00", SqlType(TypeName.TIMESTAMP, 3))
    switches = WatermarkSpec("ts", instant, after_backlog=True)
    timed = replace(plan, probe=replace(plan.probe, watermark=switches))
    topic = plan.probe.source.kafka.topic
    produce(kafka.bootstrap_servers, topic, [{}, {}], partition=0)
    first = check(timed)
    assert dict(first.probe.source.backlog_offsets)[0] == 2
    produce(kafka.bootstrap_servers, topic, [{}], partition=0)
    assert check(first).probe.source == first.probe.source, "it does not grow"
    assert check().probe.source.backlog_offsets == ()


def test_a_table_with_the_outputs_columns_is_taken(check, submission, tmp_path):
    create_table(tmp_path / "warehouse/out/enriched", kernel_spec(submission[0]).output_schema)
    check()


def test_a_table_with_other_columns_is_refused(check, tmp_path):
    create_table(tmp_path / "warehouse/out/enriched", pa.schema([("user_id", pa.string())]))
    with pytest.raises(SinkError, match="has columns"):
        check()


def constrained(path, plan):
    create_table(path, kernel_spec(plan).output_schema)
    DeltaTable(str(path)).alter.add_constraint({"small": "item_id < 9"})


def test_whoever_submits_is_told_which_writer_a_table_needs_and_why(check, submission, tmp_path):
    plan, settings = submission[0], Settings.load(data_dir=tmp_path)
    path = tmp_path / "warehouse/out/enriched"
    assert (advise(plan, settings, NO_SECRETS), output_writer(plan, settings).is_spark) == (
        (),
        False,
    )
    constrained(path, plan)
    check()
    slower, stalls = advise(plan, settings, NO_SECRETS)
    assert "Spark's own Delta writer is used (the table uses delta.constraints.small)" in slower
    assert "violates CHECK small stalls the job" in stalls


def test_a_writer_that_is_asked_for_by_name_is_checked(submission, tmp_path):
    plan, settings = submission[0], Settings.load(data_dir=tmp_path)
    asking = {
        wanted: replace(plan, sink=replace(plan.sink, writer=wanted)) for wanted in SinkWriter
    }
    told = advise(asking[SinkWriter.SPARK], settings, NO_SECRETS)
    assert "'sink.writer' is 'spark'" in told[0]
    constrained(tmp_path / "warehouse/out/enriched", plan)
    assert output_writer(asking[SinkWriter.SPARK], settings).is_spark
    with pytest.raises(SinkError, match=r"cannot have the columnar writer.*constraints\.small"):
        output_writer(asking[SinkWriter.COLUMNAR], settings)


def test_rows_that_replace_others_need_sparks_writer(submission, tmp_path):
    plan, settings = submission[0], Settings.load(data_dir=tmp_path)
    merges = replace(plan, sink=replace(plan.sink, merge_key=("item_id",)))
    assert "its rows replace others by (item_id)" in advise(merges, settings, NO_SECRETS)[0]
    columnar = replace(merges.sink, writer=SinkWriter.COLUMNAR)
    with pytest.raises(SinkError, match="cannot have the columnar writer: its rows replace"):
        output_writer(replace(merges, sink=columnar), settings)


def test_late_records_go_to_a_table_of_late_records(check, submission, tmp_path):
    plan = submission[0]
    late = replace(plan, probe=replace(plan.probe, late_records_path="out/late"))
    check(late)
    create_table(tmp_path / "warehouse/out/late", LATE_RECORDS)
    check(late)
    other = replace(plan, probe=replace(plan.probe, late_records_path="out/clicks"))
    create_table(tmp_path / "warehouse/out/clicks", pa.schema([("user_id", pa.int64())]))
    with pytest.raises(SinkError, match="has columns"):
        check(other)


def test_an_output_in_another_table_is_refused(check, tmp_path):
    create_table(tmp_path / "warehouse/out", pa.schema([("user_id", pa.int64())]))
    with pytest.raises(SinkError, match="is in delta table"):
        check()


IN_THE_WAY = {
    "at_the_path": "warehouse/out/enriched",
    "above_the_path": "warehouse/out",
    "at_the_warehouse": "warehouse",
}


@pytest.mark.parametrize("place", IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_a_file_in_the_way_is_refused(check, tmp_path, place):
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text("")
    with pytest.raises(SinkError, match="not a directory"):
        check()
