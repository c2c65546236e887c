"""EXPLAIN as a tree of Flink's operators."""

import pytest

from service.sql.answers.explain import tree
from service.sql.planner.planner import plan
from tests.support.control_plane import script
from tests.support.sql_cases import sql_cases

PLANNED = sql_cases("plan")
JOINED = """\
Sink(table=[enriched], connector=[blackhole()])
+- Calc(select=[c.user_id AS user_id, u.name AS name])
   +- TemporalJoin(joinType=[LeftOuterJoin], on=[c.user_id = u.user_id], asOf=[PROCTIME()])
      :- TableSourceScan(table=[clicks AS c], connector=[kafka(
      +- TableSourceScan(table=[users AS u], connector=[mysql-cdc(
"""


def test_a_join_is_drawn_from_its_sink_down_to_its_tables():
    for expected, line in zip(JOINED.splitlines(), tree(plan(script())), strict=False):
        assert line.startswith(expected)


@pytest.mark.parametrize("text", PLANNED.values(), ids=PLANNED)
def test_each_table_of_a_plan_is_a_leaf_and_each_output_a_root(text):
    made = plan(text)
    lines = tree(made)
    assert sum("TableSourceScan(" in line for line in lines) == sum(
        1 + len(insert.joins) for insert in made.inserts
    )
    roots = [line.split("]")[0] for line in lines if line.startswith("Sink(")]
    assert roots == [f"Sink(table=[{insert.sink_table}" for insert in made.inserts]
    assert [line for line in lines if not line.strip() or "\n" in line] == []
