"""What became of a record: every state, every role, and the version of `current` beside it."""

from dataclasses import replace

import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.durable.checkpoint import Checkpoint
from joins.durable.probe_lives import ProbeLives
from joins.lookback.explain_row import Coordinates
from joins.plan.errors import UnknownTopicError
from joins.plan.plan import BlackholeSink, DimensionJoin, Field, JoinType, KeyPair, OutputColumn
from joins.plan.types import Call, Column, Constant, SqlType, TypeName
from service.jobs.inspect.past import open_explainer
from tests.support.changelog import record, watermark
from tests.support.past_job import open_gate, past_job
from tests.support.probe import BIGINT, PLAN, STRING, USERS
from tests.support.transactions import transactions

BOOLEAN = SqlType(TypeName.BOOLEAN)
USER = Column("c", "user_id", BIGINT)
ORDERS = replace(
    USERS,
    name="orders",
    fields=(
        Field("shop", STRING, nullable=False),
        Field("id", BIGINT, nullable=False),
        Field("owner", BIGINT),
    ),
    primary_key=("shop", "id"),
)


def order(shop, id_, owner, offset):
    return {**record("c", id_, 5 + offset, offset), "shop": shop, "owner": owner}


def explained(job, offset, partition=0):
    with open_explainer(job.directory) as explainer:
        return explainer.explain(Coordinates(job.topic, partition, offset))


@pytest.fixture
def job(tmp_path, kafka):
    made = past_job(tmp_path, kafka.bootstrap_servers)
    open_gate(made)
    made.change("users", record("r", 1, 5, 0), record("r", 2, 5, 1), watermark(2))
    return made


def test_a_joined_record_tells_row_version_pin_and_the_fold_beside_it(job):
    job.fold("users", 1)
    job.change("users", record("u", 1, 9, 3))
    pin = job.batch({"user_id": 2}, {"user_id": 1})
    job.change("users", record("d", 1, 12, 4))
    job.fold("users", 3)
    found = explained(job, 1)
    assert (found["state"], found["batch"], found["pin"]["versions"]) == ("joined", 0, {"users": 2})
    assert found["pin"]["batch_timestamp_ms"] == pin.batch_timestamp_ms
    assert found["committed_at_ms"] > pin.batch_timestamp_ms
    assert (found["record"], found["rows_from"]) == ('{"user_id":1}', "output")
    assert [(r["name"], r["_batch"]) for r in found["output_rows"]] == [("u9", 0)]
    (users,) = found["dimensions"]
    assert (users["name"], users["alias"], users["version"]) == ("users", "u", 2)
    assert users["key"] == {"id": 1}
    assert users["rows"] == [
        {
            "id": 1,
            "name": "u9",
            "_op": "u",
            "_partition": 0,
            "_offset": 3,
            "_generation": 1,
            "_position": {"epoch": 0, "file": 1, "pos": 9, "row": 0},
        }
    ]
    assert (users["current_version"], users["current_changelog_version"]) == (1, 1)
    assert users["current_equal"] is False


def test_a_fold_of_the_pinned_version_is_called_equal(job):
    job.fold("users", 1)
    job.batch({"user_id": 1})
    (users,) = explained(job, 0)["dimensions"]
    assert (users["current_version"], users["current_equal"]) == (1, True)


def test_before_the_first_fold_there_is_no_version_of_current(job):
    job.batch({"user_id": 1})
    assert explained(job, 0)["dimensions"][0]["current_version"] is None


def test_an_unmatched_record_has_a_padded_row_and_no_dimension_row(job):
    job.batch({"user_id": 3}, {"user_id": None})
    for offset, key in ((0, 3), (1, None)):
        found = explained(job, offset)
        assert (found["state"], found["output_rows"][0]["name"]) == ("unmatched", None)
        assert found["dimensions"][0]["key"] == {"id": key}
        assert found["dimensions"][0]["rows"] == []


def test_a_row_that_the_snapshot_brought_late_is_not_shown(job):
    job.change("users", record("r", 1, 900, 7))
    job.batch({"user_id": 1})
    assert explained(job, 0)["dimensions"][0]["rows"][0]["_offset"] == 0


def test_a_dead_letter_tells_its_reason(job):
    job.batch({"user_id": 1}, b'{"user_id":"x')
    found = explained(job, 1)
    assert found["state"] == "dead-letter"
    assert found["dead_letter"]["reason"] == found["reason"]
    assert (found["output_rows"], found["record"]) == ([], '{"user_id":"x')


def test_records_of_transactions_that_are_open_or_aborted(tmp_path, kafka):
    job = past_job(tmp_path, kafka.bootstrap_servers)
    job.change("users", record("r", 1, 5, 0))
    open_gate(job)
    with transactions(kafka.bootstrap_servers) as writer:
        writer.begin()
        writer.send(job.topic, {0: [{"user_id": 1}]})
        found = explained(job, 0)
        assert (found["state"], found["record"]) == ("in-open-transaction", None)
        assert "from offset 0 on" in found["reason"]
        assert explained(job, 1)["state"] == "beyond-end"
        writer.abort()
    job.join(job.pin())
    for offset in (0, 1):
        found = explained(job, offset)
        assert (found["state"], found["output_rows"]) == ("no-record", [])
        assert "aborted transaction" in found["reason"]


def test_records_that_no_batch_has_yet(tmp_path, kafka):
    job = past_job(tmp_path, kafka.bootstrap_servers)
    job.produce({"user_id": 1})
    held = explained(job, 0)
    assert (held["state"], held["batch"], held["pin"]) == ("held", None, None)
    assert held["record"] == '{"user_id":1}'
    open_gate(job)
    assert explained(job, 0)["state"] == "not-yet-joined"
    assert explained(job, 1)["state"] == "beyond-end"
    job.change("users", record("r", 1, 5, 0))
    job.pin()
    assert explained(job, 0)["state"] == "being-joined"


def test_what_the_job_does_not_read_is_refused(job):
    with open_explainer(job.directory) as explainer:
        for place in (("other", 0, 0), (job.topic, 5, 0), (job.topic, -1, 0)):
            with pytest.raises(UnknownTopicError):
                explainer.explain(Coordinates(*place))


def test_a_record_before_the_start_is_told_apart(job):
    checkpoint = job.directory / "checkpoint" / "meta.json"
    text = checkpoint.read_text()
    assert '"probe_start_offsets":{"0":0}' in text
    checkpoint.write_text(
        text.replace('"probe_start_offsets":{"0":0}', '"probe_start_offsets":{"0":2}')
    )
    job.produce(*[{"user_id": 1}] * 3)
    assert [explained(job, offset)["state"] for offset in range(3)] == [
        "before-start",
        "before-start",
        "not-yet-joined",
    ]


def test_a_record_whose_pin_was_pruned_is_found_through_the_commit(job):
    for _ in range(4):
        job.batch({"user_id": 1})
    for batch in range(3):
        (job.directory / "checkpoint" / "pins" / f"{batch:010d}.json").unlink()
    assert [explained(job, offset)["batch"] for offset in range(4)] == [0, 1, 2, 3]


def test_without_pin_and_commit_a_record_is_forgotten(tmp_path, kafka):
    job = past_job(tmp_path, kafka.bootstrap_servers, replace(PLAN, sink=BlackholeSink()))
    job.change("users", record("r", 1, 5, 0))
    job.batch({"user_id": 1})
    job.batch({"user_id": 1})
    (job.directory / "checkpoint" / "progress.json").write_text('{"format_version":1,"batch":1}')
    assert explained(job, 0)["state"] == "joined"
    (job.directory / "checkpoint" / "pins" / "0000000000.json").unlink()
    assert explained(job, 0)["state"] == "expired"
    assert explained(job, 1)["rows_from"] == "computed"


def test_what_an_acknowledgement_has_skipped_is_told(job):
    """The second life begins at offset 5; the batch with offset 3 was given up."""
    job.batch({"user_id": 1}, {"user_id": 2}, {"user_id": 3})
    job.produce(*[{"user_id": 1}] * 3)
    abandoned = job.pin()
    assert explained(job, 3)["state"] == "being-joined"
    job.pins.abandon(abandoned.batch)
    lives = ProbeLives(Checkpoint(job.directory / "checkpoint"), meta_of(job))
    lives.begin(
        replace(
            lives.current,
            directory="probe-2",
            first_batch=2,
            start_offsets={0: 5},
            cause="records-lost",
            abandoned=(1,),
        )
    )
    skipped = explained(job, 3)
    assert (skipped["state"], skipped["batch"]) == ("skipped", None)
    assert "records-lost" in skipped["reason"]
    assert explained(job, 5)["state"] == "not-yet-joined"
    assert explained(job, 2)["batch"] == 0


def meta_of(job):
    meta = Checkpoint(job.directory / "checkpoint").read_meta()
    assert meta is not None
    return meta


def test_a_removed_record_is_told_by_its_rows_or_its_dead_letter(job):
    job.batch({"user_id": 1}, b"[", {"user_id": 2})
    KafkaCluster(job.plan.probe.source.kafka).delete_records_before(job.topic, {0: 2})
    row, letter = explained(job, 0), explained(job, 1)
    assert (row["state"], row["record"], row["output_rows"][0]["name"]) == ("joined", None, "r5")
    assert row["dimensions"][0]["key"] is None
    assert (letter["state"], letter["record"]) == ("dead-letter", "[")


def test_inner_join_and_where_are_told_apart(tmp_path, kafka):
    inner = replace(PLAN.joins[0], join_type=JoinType.INNER)
    where = Call("=", (Column("u", "name", STRING), Constant("r5", STRING)), BOOLEAN)
    job = past_job(tmp_path, kafka.bootstrap_servers, replace(PLAN, joins=(inner,), where=where))
    job.change("users", record("r", 1, 5, 0), record("r", 2, 6, 1))
    job.batch({"user_id": 1}, {"user_id": 2})
    found = explained(job, 1)
    assert (found["state"], found["output_rows"]) == ("filtered", [])
    assert found["dimensions"][0]["rows"][0]["name"] == "r6"
    assert explained(job, 0)["state"] == "joined"


def test_an_inner_join_without_a_match_is_named(tmp_path, kafka):
    inner = replace(PLAN.joins[0], join_type=JoinType.INNER)
    job = past_job(tmp_path, kafka.bootstrap_servers, replace(PLAN, joins=(inner,)))
    job.change("users", record("r", 1, 5, 0))
    job.batch({"user_id": 7})
    found = explained(job, 0)
    assert (found["state"], found["dimensions"][0]["key"]) == ("no-match", {"id": 7})


def test_fan_out_and_several_roles_over_two_dimensions(tmp_path, kafka):
    """A click's user, the user's orders (a key of two columns), and the user once more."""
    plan = replace(
        PLAN,
        dimensions=(USERS, ORDERS),
        joins=(
            PLAN.joins[0],
            DimensionJoin(
                "o", "orders", JoinType.LEFT, (KeyPair(Column("u", "id", BIGINT), "owner"),)
            ),
            DimensionJoin("again", "users", JoinType.LEFT, (KeyPair(USER, "id"),)),
        ),
        output=(
            OutputColumn("name", Column("u", "name", STRING)),
            OutputColumn("shop", Column("o", "shop", STRING)),
            OutputColumn("id", Column("o", "id", BIGINT)),
            OutputColumn("again", Column("again", "name", STRING)),
        ),
    )
    job = past_job(tmp_path, kafka.bootstrap_servers, plan)
    job.change("users", record("r", 1, 5, 0))
    job.change(
        "orders", order("a", 1, 1, 0), order("b", 2, 1, 1), order("a", 2, 8, 2), order("b", 1, 8, 3)
    )
    job.batch({"user_id": 1}, {"user_id": 5})
    found = explained(job, 0)
    assert [(r["shop"], r["id"], r["again"]) for r in found["output_rows"]] == [
        ("a", 1, "r5"),
        ("b", 2, "r5"),
    ]
    roles = {role["alias"]: role for role in found["dimensions"]}
    assert [(r["shop"], r["id"]) for r in roles["o"]["rows"]] == [("a", 1), ("b", 2)]
    assert (roles["o"]["key"], roles["again"]["key"]) == ({"owner": 1}, {"id": 1})
    assert roles["u"]["rows"] == roles["again"]["rows"] != []
    unmatched = {role["alias"]: role["key"] for role in explained(job, 1)["dimensions"]}
    assert unmatched == {"u": {"id": 5}, "o": {"owner": None}, "again": {"id": 5}}


def test_a_record_behind_the_end_of_a_bounded_job_is_told_apart(job):
    job.batch({"user_id": 1})
    checkpoint = Checkpoint(job.directory / "checkpoint")
    checkpoint.write_meta(replace(checkpoint.read_meta(), probe_end_offsets={0: 1}))
    job.produce({"user_id": 2})
    assert explained(job, 0)["state"] == "joined"
    for offset in (1, 7):
        found = explained(job, offset)
        assert (found["state"], found["batch"], found["record"]) == ("after-end", None, None)
        assert "ends at offset 1" in found["reason"]
