"""A replay gives the rows that a batch has committed, or says which ones differ."""

from dataclasses import replace

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from joins.adapters.delta.log import DeltaLog
from joins.adapters.kafka.cluster import KafkaCluster, TopicPolicy
from joins.durable.checkpoint import write_json_atomically
from joins.kernels.json.exact import CanonicalRows
from joins.lookback import replay
from joins.lookback.replay import Committed, EventTimeResult, Recomputed, Verdict, _verdict
from joins.plan.errors import (
    BatchNotCommittedError,
    NotReplayableError,
    PinnedVersionExpiredError,
    RecordsExpiredError,
    UnknownBatchError,
)
from joins.plan.formats import RecordKey
from joins.plan.plan import BlackholeSink, DeltaSink, KafkaOptions, KafkaSink
from service.jobs.inspect.past import open_replayer
from tests.support.changelog import record
from tests.support.past_job import APP_ID, past_job
from tests.support.probe import PLAN
from tests.support.topics import create_topic, delete_topics, unique_name
from tests.support.transactions import transactions
from tests.support.wait import wait_until


@pytest.fixture
def job(tmp_path, kafka):
    """Users 1 and 2; one batch with a match, a padded row and two dead letters."""
    made = past_job(tmp_path, kafka.bootstrap_servers, partitions=2)
    made.change("users", record("r", 1, 5, 0), record("r", 2, 5, 1))
    made.produce({"user_id": 2}, b"\xff", partition=1)
    made.batch({"user_id": 1}, {"user_id": 9}, b"{")
    return made


def replayed(job, batch=0, **options):
    with open_replayer(job.directory) as replayer:
        return replayer.replay(batch, diff=True, **options)


def rewrite(job, change):
    (file,) = job.output.glob("part-*.parquet")
    pq.write_table(change(pq.read_table(file)), file)


def renamed(table):
    names = pc.if_else(pc.equal(table["user_id"], 1), "somebody", table["name"])
    return table.set_column(1, table.schema.field("name"), names)


def test_a_committed_batch_is_identical(job):
    result = replayed(job)
    assert result["identical"]
    assert (result["rows"], result["expected_rows"]) == (3, 3)
    assert (result["dead_letters"], result["expected_dead_letters"]) == (2, 2)
    assert result["digest"] == result["committed_digest"]
    assert result["differences"] == result["records_missing"] == []
    assert (result["compared_with"], result["pin"]["versions"]) == ("commit", {"users": 1})


def test_an_old_batch_is_identical_after_later_changes_without_its_index(job):
    for number in range(3):
        job.change(
            "users", record("u", 1, 10 + number, 2 + number), record("d", 2, 10, 20 + number)
        )
        job.batch({"user_id": 1})
    job.forget_indexes()
    before = sorted(p for p in (job.directory / "index").rglob("*"))
    assert [replayed(job, batch)["identical"] for batch in range(4)] == [True] * 4
    assert sorted(p for p in (job.directory / "index").rglob("*")) == before


def test_a_changed_row_is_named_with_both_values(job):
    rewrite(job, renamed)
    result = replayed(job)
    assert not result["identical"]
    assert result["digest"] != result["committed_digest"]
    (found,) = result["differences"]
    assert (found["kind"], found["table"]) == ("changed", "output")
    assert (found["partition"], found["offset"]) == (0, 0)
    assert (found["expected"]["name"], found["found"]["name"]) == ("r5", "somebody")


def test_a_lost_and_a_doubled_row_are_named(job):
    rewrite(job, lambda table: table.take([1, 1, 2]))
    kinds = [(d["kind"], d["partition"], d["offset"]) for d in replayed(job)["differences"]]
    assert sorted(kind for kind, *_ in kinds) == ["extra", "missing"]
    assert len({place for _, *place in map(tuple, kinds) for place in [tuple(place)]}) == 2


def test_a_row_of_a_record_outside_the_batch_is_named(job):
    def of_later_record(table):
        offsets = pc.if_else(pc.equal(table["user_id"], 1), 1000, table["_offset"])
        return table.set_column(table.column_names.index("_offset"), "_offset", offsets)

    rewrite(job, of_later_record)
    result = replayed(job)
    assert (result["verdict"], result["records_missing"]) == ("different", [])
    assert [(d["kind"], d["offset"]) for d in result["differences"]] == [
        ("missing", 0),
        ("extra", 1000),
    ]


def test_differences_are_counted_but_not_shown_unless_asked_for(job):
    rewrite(job, renamed)
    with open_replayer(job.directory) as replayer:
        result = replayer.replay(0)
    assert (result["difference_count"], result["differences"]) == (1, [])


def test_a_compacted_output_is_compared_as_it_is_now(job):
    job.batch({"user_id": 2})
    DeltaTable(str(job.output)).optimize.compact()
    assert all(
        result["identical"] and result["compared_with"] == "table"
        for result in (replayed(job, 0), replayed(job, 1))
    )


def test_a_row_that_somebody_has_deleted_from_the_table_is_missing(job):
    DeltaTable(str(job.output)).delete("user_id = 2")
    result = replayed(job)
    assert result["compared_with"] == "table"
    assert [(d["kind"], d["expected"]["user_id"]) for d in result["differences"]] == [
        ("missing", 2)
    ]


def test_a_dead_letter_that_differs_is_named(job):
    (file,) = (job.directory / "dead_letters").glob("part-*.parquet")
    pq.write_table(pq.read_table(file).slice(0, 1), file)
    (found,) = replayed(job)["differences"]
    assert (found["kind"], found["table"]) == ("missing", "dead_letters")


def test_removed_records_are_told_and_nothing_else_is_blamed(job):
    KafkaCluster(job.plan.probe.source.kafka).delete_records_before(job.topic, {0: 2})
    result = replayed(job)
    assert not result["identical"]
    assert result["records_missing"] == [{"partition": 0, "from": 0, "to": 2}]
    assert result["difference_count"] == 0


def test_a_batch_without_any_record_left_is_refused(job):
    cluster = KafkaCluster(job.plan.probe.source.kafka)
    cluster.delete_records_before(job.topic, {0: 3, 1: 2})
    with pytest.raises(RecordsExpiredError, match="has no record of batch 0"):
        replayed(job)


def test_a_topic_that_was_made_anew_is_another_topic(job):
    delete_topics(job.bootstrap, job.topic)
    create_topic(job.bootstrap, job.topic, partitions=2)
    cluster = KafkaCluster(job.plan.probe.source.kafka)
    wait_until(lambda: cluster.describe(job.topic), what="the new topic is known")
    with pytest.raises(RecordsExpiredError, match="has id"):
        replayed(job)


def test_a_version_whose_files_are_gone_is_refused(job):
    job.forget_indexes()
    for file in job.log("users").path.glob("*.parquet"):
        file.unlink()
    with pytest.raises(PinnedVersionExpiredError, match='version 1 of dimension "users"'):
        replayed(job)


def test_unknown_and_unfinished_batches_are_refused(job):
    with pytest.raises(UnknownBatchError, match="up to 0"):
        replayed(job, 7)
    job.produce({"user_id": 1})
    job.pin()
    with pytest.raises(BatchNotCommittedError):
        replayed(job, 1)


def test_a_pruned_pin_is_read_from_the_commit(job):
    (job.directory / "checkpoint" / "pins" / "0000000000.json").unlink()
    assert replayed(job)["identical"]


def test_a_sink_that_keeps_nothing_is_refused(tmp_path, kafka):
    plan = replace(PLAN, sink=BlackholeSink())
    job = past_job(tmp_path, kafka.bootstrap_servers, plan)
    with pytest.raises(NotReplayableError, match="blackhole"):
        replayed(job)


def test_an_output_without_row_metadata_is_compared_by_its_rows(tmp_path, kafka):
    plan = replace(PLAN, sink=DeltaSink("enriched", row_metadata=False))
    job = past_job(tmp_path, kafka.bootstrap_servers, plan)
    job.change("users", record("r", 1, 5, 0))
    job.batch({"user_id": 1}, {"user_id": 1}, {"user_id": 3})
    assert replayed(job)["identical"]
    rewrite(job, renamed)
    result = replayed(job)
    assert sorted(d["kind"] for d in result["differences"]) == ["extra"] * 2 + ["missing"] * 2
    assert {d["partition"] for d in result["differences"]} == {None}


@pytest.fixture(params=[None])
def sending(tmp_path, kafka, request):
    """A job with a Kafka sink, its batch pinned and not sent yet."""
    sink = KafkaSink(
        KafkaOptions(kafka.bootstrap_servers, unique_name("out")),
        key=RecordKey(("user_id",)),
        transactional_id_prefix=request.param,
    )
    create_topic(kafka.bootstrap_servers, sink.kafka.topic, partitions=2)
    job = past_job(tmp_path, kafka.bootstrap_servers, replace(PLAN, sink=sink))
    job.change("users", record("r", 1, 5, 0))
    job.produce({"user_id": 1}, {"user_id": 3}, {"user_id": "x"})
    pin = job.pin()
    job.join(pin)
    write_json_atomically(job.directory / "checkpoint" / "kafka_sink.json", {"batch": 0})
    rows = [(pin, 0, 0, {"user_id": 1, "name": "r5"}), (pin, 0, 1, {"user_id": 3, "name": None})]
    return job, sink.kafka.topic, rows


def test_a_kafka_output_is_read_back_and_repeats_are_no_difference(sending):
    job, topic, rows = sending
    other = replace(rows[0][0], batch=1)
    job.send(topic, [rows[0], *rows, (other, 0, 5, {"user_id": 1, "name": "another batch"})])
    result = replayed(job)
    assert (result["identical"], result["repeated"], result["rows"]) == (True, 1, 2)
    assert result["compared_with"] == "topic"


@pytest.mark.parametrize(("sending", "repeats"), [(None, 2), ("t", 0)], indirect=["sending"])
def test_what_an_aborted_transaction_has_sent_is_no_repeat_where_readers_do_not_see_it(
    sending, repeats
):
    job, topic, rows = sending
    job.send(topic, rows, aborted=True)
    job.send(topic, rows)
    result = replayed(job)
    assert (result["identical"], result["repeated"], result["rows"]) == (True, repeats, 2)


@pytest.mark.parametrize("sending", ["t"], indirect=True)
def test_rows_behind_an_open_transaction_of_others_are_no_difference(sending, kafka):
    job, topic, rows = sending
    with transactions(kafka.bootstrap_servers) as other:
        other.begin()
        other.send(topic, {0: [{"n": 1}], 1: [{"n": 1}]})
        job.send(topic, rows)
        with pytest.raises(NotReplayableError, match="an open transaction keeps the others"):
            replayed(job)
        other.abort()
    assert replayed(job)["identical"]


def test_a_kafka_output_that_differs_is_told(sending):
    job, topic, rows = sending
    job.send(topic, [(*rows[0][:3], {"user_id": 1, "name": "x"})])
    found = {(d["kind"], d["offset"]) for d in replayed(job)["differences"]}
    assert found == {("changed", 0), ("missing", 1)}


def test_rows_that_the_retention_of_a_kafka_output_has_removed_are_no_difference(sending):
    job, topic, rows = sending
    job.send(topic, rows)
    cluster = KafkaCluster(replace(job.plan.probe.source.kafka, topic=topic))
    cluster.delete_records_before(topic, cluster.end_offsets(topic))
    with pytest.raises(NotReplayableError, match=r"0 of the 2 rows .* its retention may have"):
        replayed(job)


def test_rows_that_compaction_may_have_removed_are_no_difference(sending, monkeypatch):
    job, topic, rows = sending
    monkeypatch.setattr(replay, "topic_policy", lambda *_: TopicPolicy(is_compacted=True))
    job.send(topic, [(*rows[0][:3], {"user_id": 1, "name": "x"})])
    with pytest.raises(NotReplayableError, match=r"1 of the 2 rows .* its compaction may have"):
        replayed(job)


def test_rows_of_a_dead_letter_that_was_replayed_are_no_difference(sending):
    job, topic, rows = sending
    job.send(topic, [*rows, (rows[0][0], 0, 2, {"user_id": 1, "name": "r5"})])
    result = replayed(job)
    assert (result["identical"], result["rows"], result["differences"]) == (True, 2, [])


def test_a_foreign_commit_between_batches_is_passed_over(job):
    DeltaTable(str(job.output)).alter.set_table_properties({"delta.checkpointInterval": "50"})
    job.batch({"user_id": 2})
    assert DeltaLog(job.output, APP_ID).batches.last_batch() == 1
    assert [replayed(job, batch)["identical"] for batch in (0, 1)] == [True, True]


NONE, ONE = CanonicalRows.merged([]), CanonicalRows.of_texts([(0, 5, "x")])
# (expected rows, dead letters, late records), (found ones; None is unknown) → verdict
COMPARED = {
    "rows": ((ONE, NONE, None), (ONE, NONE, None), Verdict.IDENTICAL),
    "dead_letters": ((NONE, ONE, None), (NONE, ONE, None), Verdict.IDENTICAL),
    "late_records": ((NONE, NONE, ONE), (NONE, NONE, ONE), Verdict.IDENTICAL),
    "nothing": ((NONE, NONE, NONE), (NONE, NONE, NONE), Verdict.NOTHING_TO_COMPARE),
    "lost_dead_letters": ((NONE, ONE, None), (NONE, None, None), Verdict.NOTHING_TO_COMPARE),
    "lost_late_records": ((NONE, NONE, ONE), (NONE, NONE, None), Verdict.NOTHING_TO_COMPARE),
}


@pytest.mark.parametrize(("expected", "found", "verdict"), COMPARED.values(), ids=COMPARED)
def test_only_what_is_known_on_both_sides_is_evidence(expected, found, verdict):
    (rows, dead, late), (rows_found, dead_found, late_found) = expected, found
    again = Recomputed(rows, dead, (), {}, EventTimeResult({}, late, None))
    there = Committed(rows_found, dead_found, "commit", event=EventTimeResult({}, late_found, None))
    assert _verdict(again, there, is_different=False, is_incomplete=False) is verdict
