"""Batches of a job that was changed are looked at by the plan that joined them."""

from dataclasses import replace

import pytest

from joins.durable.checkpoint import write_json_atomically
from joins.lookback.explain_row import Coordinates
from joins.plan.errors import CheckpointError
from joins.plan.plan import DimensionJoin, JoinType, KeyPair, OutputColumn
from joins.plan.types import Call, Column, Constant, SqlType, TypeName
from service.jobs.inspect.past import histories, open_explainer, open_replayer
from service.jobs.store.layout import JobLayout
from service.jobs.store.plans import JobPlans
from tests.support.changelog import record
from tests.support.past_job import past_job
from tests.support.probe import BIGINT, PLAN, STRING, USERS

BOOLEAN = SqlType(TypeName.BOOLEAN)
USER = Column("c", "user_id", BIGINT)
FRIENDS = replace(USERS, name="friends")
MORE = (
    *PLAN.output,
    OutputColumn("friend", Column("f", "name", STRING)),
    OutputColumn("loud", Call("UPPER", (Column("u", "name", STRING),), STRING)),
)


def changed(plan):
    """A filter, a computed column and another table."""
    friends = replace(FRIENDS, source=plan.dimensions[0].source)
    join = DimensionJoin("f", "friends", JoinType.LEFT, (KeyPair(USER, "id"),))
    return replace(
        plan,
        number=2,
        dimensions=(*plan.dimensions, friends),
        joins=(*plan.joins, join),
        where=Call("<", (USER, Constant("5", BIGINT)), BOOLEAN),
        output=MORE,
    )


@pytest.fixture
def job(tmp_path, kafka):
    """Batches 0 and 1 of plan 1, batch 2 of plan 2."""
    job = past_job(tmp_path, kafka.bootstrap_servers)
    job.change("users", record("r", 1, 5, 0), record("r", 2, 5, 1))
    job.batch({"user_id": 1}, {"user_id": 9}, b"{")
    job.batch({"user_id": 2})
    job.update(changed(job.plan))
    job.change("friends", record("r", 1, 5, 0), record("r", 4, 5, 1))
    job.batch({"user_id": 1}, {"user_id": 4}, {"user_id": 9}, b"{")
    counted = {"batch": 2, "next_offsets": {}}
    write_json_atomically(job.directory / "checkpoint" / "progress.json", counted)
    return job


def test_each_batch_replays_under_the_plan_of_its_pin(job):
    assert [pin.plan for pin in map(job.pins.read, range(3))] == [1, 1, 2]
    with open_replayer(job.directory) as replayer:
        for batch, rows, dead in ((0, 2, 1), (2, 2, 1), (1, 1, 0), (0, 2, 1)):
            result = replayer.replay(batch, diff=True)
            assert result["verdict"] == "identical", result["differences"]
            assert (result["rows"], result["dead_letters"]) == (rows, dead)
            assert result["pin"].get("plan", 1) == (2 if batch == 2 else 1)


def test_a_batch_that_was_joined_by_another_plan_than_its_pin_s_differs(job):
    path = job.directory / "plans" / "2.json"
    path.write_text(path.read_text().replace('"value":"5"', '"value":"2"'))
    with open_replayer(job.directory) as replayer:
        assert replayer.replay(0)["verdict"] == "identical"
        assert replayer.replay(2)["verdict"] == "different"


def test_a_record_is_explained_by_the_plan_of_its_batch(job):
    offsets = {0: "joined", 1: "unmatched", 2: "dead-letter", 3: "joined"}
    offsets |= {4: "joined", 5: "unmatched", 6: "filtered", 7: "dead-letter"}
    tables = {offset: ["u"] if offset < 4 else ["u", "f"] for offset in (0, 3, 4)}
    with open_explainer(job.directory) as explainer:
        for offset, state in offsets.items():
            explained = explainer.explain(Coordinates(job.topic, 0, offset))
            assert explained["state"] == state, (offset, explained["reason"])
            if offset in tables:
                assert [each["alias"] for each in explained["dimensions"]] == tables[offset]


def test_the_newest_rows_of_both_plans_are_shown_together(job):
    schema = histories(job.directory)[0].places.kernel.output_schema
    assert schema.names[:4] == ["user_id", "name", "friend", "loud"]
    rows = {row["_offset"]: row for row in job.rows()}
    assert rows[0]["friend"] is rows[0]["loud"] is None
    assert rows[4]["loud"] == rows[4]["name"].upper()


def test_a_plan_that_is_gone_is_an_error_for_its_batches_only(job):
    plans = JobPlans(JobLayout(job.directory))
    assert plans.add(replace(job.plan, number=3))
    (job.directory / "plans" / "2.json").unlink()
    with open_replayer(job.directory) as replayer:
        assert replayer.replay(0)["verdict"] == "identical"
        with pytest.raises(CheckpointError, match=r"plans/2\.json"):
            replayer.replay(2)
