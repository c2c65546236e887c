"""The rows that a record has met, by the kernel of the join itself."""

import json
from dataclasses import replace

import pytest

from joins.durable.checkpoint import Checkpoint
from joins.kernels.probe.probe import index_spec, kernel_spec
from joins.lookback.history import HistoryPlaces
from joins.lookback.past_indexes import PastIndexes
from joins.lookback.row_matches import RowMatches
from joins.plan.plan import DimensionJoin, JoinType, KeyPair
from joins.plan.types import Call, Case, Cast, Column, Constant, SqlType, TypeName
from joins.worker.probe_task import IndexPlace
from tests.support.changelog import Changelog, record
from tests.support.probe import BIGINT, PIN, PLAN, STRING, USERS, clicks

USER = Column("c", "user_id", BIGINT)
SMALL = Call("<", (USER, Constant("10", BIGINT)), SqlType(TypeName.BOOLEAN))
NARROWED = Case(((SMALL, Cast(USER, STRING)),), None, STRING)


def places_of(directory, plan):
    role = IndexPlace("users", directory / "index", index_spec(plan, plan.joins[0], 1))
    return HistoryPlaces(
        app_id="app",
        checkpoint=Checkpoint(directory / "checkpoint"),
        kernel=kernel_spec(plan),
        roles={"u": role},
        tables={"users": directory / "users"},
        dimensions={"users": USERS},
        dead_letters=directory / "dead_letters",
        replays=directory / "replays",
        output=None,
        probe_kafka=plan.probe.source.kafka,
        sink=plan.sink,
    )


@pytest.mark.parametrize(
    ("user_id", "met"),
    {None: [1, 3], 7: [2], 8: [], 11: []}.items(),
    ids=["null", "equal", "no_match", "null_by_its_cast_only"],
)
def test_a_null_safe_key_meets_null_only_if_it_is_null_itself(tmp_path, user_id, met):
    """A key that is NULL by its cast only is shown as the record has it."""
    changelog = Changelog(tmp_path / "users" / "changelog")
    names = {1: None, 2: "7", 3: None}
    rows = ({**record("c", at, 4 + at, at), "name": name} for at, name in names.items())
    pin = replace(PIN, versions={"users": changelog.commit(*rows)})
    pair = KeyPair(NARROWED, "name", null_safe=True, uncast=USER)
    plan = replace(PLAN, joins=(DimensionJoin("u", "users", JoinType.INNER, (pair,)),))
    places = places_of(tmp_path, plan)
    with PastIndexes(places) as indexes:
        click = clicks(json.dumps({"user_id": user_id}).encode())
        (role,) = RowMatches(places, indexes).of(click, indexes.of(pin.versions), pin)
    assert [row["id"] for row in role["rows"]] == met
    assert role["key"] == {"name": user_id if user_id in (None, 11) else str(user_id)}


def test_rows_beyond_the_first_thousand_are_counted(tmp_path):
    changelog = Changelog(tmp_path / "users" / "changelog")
    rows = ({**record("c", at, 4 + at, at), "name": "7"} for at in range(1_003))
    pin = replace(PIN, versions={"users": changelog.commit(*rows)})
    pair = KeyPair(Cast(USER, STRING), "name")
    plan = replace(PLAN, joins=(DimensionJoin("u", "users", JoinType.INNER, (pair,)),))
    places = places_of(tmp_path, plan)
    with PastIndexes(places) as indexes:
        click = clicks(json.dumps({"user_id": 7}).encode())
        (role,) = RowMatches(places, indexes).of(click, indexes.of(pin.versions), pin)
    assert (len(role["rows"]), role["rows_left_out"]) == (1_000, 3)
