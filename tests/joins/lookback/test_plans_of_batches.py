"""Batches of a job that was changed are looked at by the plan that joined them."""

from dataclasses import replace

import pytest

from joins.durable.checkpoint import write_json_atomically
from joins.lookback.explain_row import Coordinates
from joins.plan.errors import CheckpointError
from joins.plan.plan import DimensionJoin, JoinType, KeyPair, OutputColumn
from joins.plan.types import Call, Column, Constant, SqlType, TypeName
from service.jobs.inspect.past import histories, open_explainer, open_preview, open_replayer
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


# Which rows another plan would give
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def past(tmp_path, kafka):
    """Two batches of plan 1: users 1 and 2 are known, 9 is not, and one record is damaged."""
    job = past_job(tmp_path, kafka.bootstrap_servers)
    job.change("users", record("r", 1, 5, 0), record("r", 2, 5, 1))
    job.batch({"user_id": 1}, {"user_id": 9}, b"{")
    job.batch({"user_id": 2}, {"user_id": 1})
    counted = {"batch": 1, "next_offsets": {}}
    write_json_atomically(job.directory / "checkpoint" / "progress.json", counted)
    return job


def previewed(job, plan, batches=100, within_s=60.0):
    with open_preview(job.directory, replace(plan, number=2), 0) as preview:
        return preview.compare(batches=batches, within_s=within_s)


def files_of(job):
    return {file: file.stat().st_mtime_ns for file in job.data_dir.rglob("*")}


def test_the_same_plan_changes_no_row_and_no_file(past):
    before = files_of(past)
    shown = previewed(past, past.plan)
    assert files_of(past) == before
    assert (shown["batches"], shown["oldest_batch"], shown["newest_batch"]) == (2, 0, 1)
    assert (shown["records"], shown["rows_before"], shown["rows_after"]) == (5, 4, 4)
    assert (shown["dead_letters_before"], shown["dead_letters_after"]) == (1, 1)
    differ = ("rows_changed", "rows_added", "rows_removed", "changed_values", "examples", "reason")
    assert not any(shown[name] for name in differ)


def test_changed_values_are_counted_by_column_and_shown(past):
    loud = Call("UPPER", (Column("u", "name", STRING),), STRING)
    output = tuple(replace(c, expression=loud) if c.name == "name" else c for c in past.plan.output)
    shown = previewed(past, replace(past.plan, output=output))
    assert (shown["rows_changed"], shown["changed_values"]) == (3, {"name": 3})
    assert (shown["rows_added"], shown["rows_removed"]) == (0, 0)
    for example in shown["examples"]:
        before, after = example["before"], example["after"]
        assert example["place"].startswith(f"{past.topic}/0/")
        assert after == {**before, "name": before["name"].upper()} != before


def test_rows_that_a_filter_leaves_out_are_removed_and_those_of_a_left_join_added(past):
    small = Call("<", (USER, Constant("2", BIGINT)), BOOLEAN)
    shown = previewed(past, replace(past.plan, where=small))
    assert (shown["rows_removed"], shown["rows_added"], shown["rows_changed"]) == (2, 0, 0)
    assert all(example["after"] is None for example in shown["examples"])
    inner = tuple(replace(join, join_type=JoinType.INNER) for join in past.plan.joins)
    shown = previewed(past, replace(past.plan, joins=inner))
    assert (shown["rows_removed"], shown["rows_before"], shown["rows_after"]) == (1, 4, 3)
    assert [example["before"]["user_id"] for example in shown["examples"]] == [9]


def test_a_new_column_changes_no_row_and_its_values_are_shown(past):
    more = OutputColumn("loud", Call("UPPER", (Column("u", "name", STRING),), STRING))
    shown = previewed(past, replace(past.plan, output=(*past.plan.output, more)))
    assert (shown["new_columns"], shown["rows_changed"]) == (["loud"], 0)
    assert {example["after"]["loud"] for example in shown["examples"]} >= {None}
    assert all("loud" not in example["before"] for example in shown["examples"])


def test_only_the_newest_batches_are_joined_again(past):
    shown = previewed(past, past.plan, batches=1)
    assert (shown["batches"], shown["oldest_batch"], shown["reason"]) == (1, 1, None)
    shown = previewed(past, past.plan, within_s=0.0)
    assert (shown["batches"], shown["records"]) == (0, 0)
    assert "0 s were over" in shown["reason"]


def test_batches_from_before_an_update_are_compared_with_their_plan(job):
    shown = previewed(job, replace(job.plan, where=None, number=3))
    assert (shown["batches"], shown["reason"]) == (
        1,
        'table "friends" is new: its rows are known after the update only',
    )
    assert (shown["rows_added"], shown["rows_changed"]) == (1, 0)
