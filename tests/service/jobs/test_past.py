"""Which INSERT of a job a question is about."""

from dataclasses import replace

import pytest

from joins.plan.errors import QuestionError
from joins.plan.plan import DeltaSink, FurtherInsert, PrintSink
from service.config import Settings
from service.jobs.inspect.past import insert_of
from service.sql.planner.planner import plan
from service.wiring.past import has_own_table
from tests.service.sql.scripts import selecting


def into(table, sink):
    return FurtherInsert("s", (), (), None, (), table, sink)


ONE = plan(selecting("t"))  # into blackhole "o"
SET = replace(
    ONE,
    more_inserts=(
        into("a", DeltaSink("one")),
        into("a", DeltaSink("one/")),
        into("2", PrintSink()),
    ),
)
FOUND = {
    "the first": (SET, None, 0),
    "the only one": (ONE, None, 0),
    "by table": (SET, "o", 0),
    "by number": (SET, "3", 2),
    "a table with the name of a number": (SET, "2", 3),
}


@pytest.mark.parametrize(("job", "sink", "number"), FOUND.values(), ids=FOUND)
def test_an_insert_is_named_by_its_table_or_its_number(job, sink, number):
    assert insert_of(job, sink) == number


UNKNOWN = {
    "another table": (SET, "b", 'no INSERT into "b", it has 1 INTO "o", 2 INTO "a"'),
    "two of them": (SET, "a", 'several INSERTs into table "a"'),
    "beyond": (SET, "5", "no INSERT"),
    "zero": (SET, "0", "no INSERT"),
    "of the only one": (ONE, "2", "no INSERT"),
}


@pytest.mark.parametrize(("job", "sink", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_names_none_or_several_is_refused(job, sink, message):
    with pytest.raises(QuestionError, match=message):
        insert_of(job, sink)


def test_two_inserts_may_share_a_table(tmp_path):
    settings = Settings.load(data_dir=tmp_path)
    found = [has_own_table(SET, number, settings) for number in range(4)]
    assert found == [True, False, False, True]
