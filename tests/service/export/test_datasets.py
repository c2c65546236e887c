"""Names of datasets, and the columns that each output column is made of."""

from dataclasses import replace

import pytest

from joins.plan.plan import DatasetName
from service.export import datasets
from service.sql.planner.planner import plan_script

USERS = """
CREATE TABLE users (user_id BIGINT, name STRING, PRIMARY KEY (user_id) NOT ENFORCED)
WITH ('connector'='mysql-cdc', 'hostname'='db.example', 'port'='3307', 'username'='cdc',
      'password'='${secret:shop}', 'database-name'='shop', 'table-name'='people');
"""
CLICKS = """
CREATE TABLE clicks (user_id BIGINT, price DECIMAL(10, 2), ts TIMESTAMP(3), twice AS price * 2,
                     proctime AS PROCTIME(), WATERMARK FOR ts AS ts)
WITH ('connector'='kafka', 'topic'='clicks',
      'properties.bootstrap.servers'='kafka-1.example:9092,kafka-2.example:9092', 'format'='json');
"""
JOINED = """
CREATE TABLE out (id BIGINT, label STRING, doubled DECIMAL(12, 2)) WITH ({sink});
INSERT INTO out SELECT c.user_id, UPPER(u.name) || '!', c.twice FROM clicks AS c
LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;
"""
WINDOWED = """
CREATE TABLE out (start_at TIMESTAMP(3), id BIGINT, total DECIMAL(38, 2)) WITH ({sink});
INSERT INTO out SELECT window_start, user_id, SUM(price)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, user_id;
"""
STREAM = DatasetName("kafka://kafka-1.example:9092", "clicks")
TABLE = DatasetName("mysql://db.example:3307", "shop.people")
SINKS = {
    "below_the_warehouse": ("'connector'='delta', 'path'='out'", DatasetName("file", "out")),
    "absolute": ("'connector'='delta', 'path'='/lake/out'", DatasetName("file", "/lake/out")),
    "kafka": (
        "'connector'='kafka', 'topic'='out', 'format'='json',"
        " 'properties.bootstrap.servers'='k:9092'",
        DatasetName("kafka://k:9092", "out"),
    ),
    "dropped": ("'connector'='blackhole'", None),
}


def planned(statements, sink="'connector'='delta', 'path'='out'"):
    tables = CLICKS if statements is WINDOWED else USERS + CLICKS
    return plan_script(tables + statements.format(sink=sink), name="job").plan


@pytest.mark.parametrize(("sink", "name"), SINKS.values(), ids=SINKS)
def test_a_sink_has_the_name_that_other_tools_give_it(sink, name):
    found = datasets.output(planned(JOINED, sink))
    assert (found and found.dataset) == name


def test_a_topic_with_a_history_is_two_inputs():
    users = """
    CREATE TABLE users (user_id BIGINT, name STRING, PRIMARY KEY (user_id) NOT ENFORCED)
    WITH ('connector'='upsert-kafka', 'topic'='people', 'key.format'='json', 'value.format'='json',
          'properties.bootstrap.servers'='k:9092', 'history.connector'='filesystem',
          'history.path'='people', 'history.format'='parquet');
    """
    joined = JOINED.format(sink="'connector'='blackhole'")
    _, topic, files = datasets.inputs(plan_script(users + CLICKS + joined, name="job").plan)
    assert topic.dataset == DatasetName("kafka://k:9092", "people")
    assert files.dataset == DatasetName("file", "people")
    assert topic.columns == files.columns == (("user_id", "BIGINT"), ("name", "STRING"))


def test_inputs_have_their_columns_with_sql_types():
    stream, table = datasets.inputs(planned(JOINED))
    assert (stream.dataset, table.dataset) == (STREAM, TABLE)
    assert ("price", "DECIMAL(10, 2)") in stream.columns
    assert table.columns == (("user_id", "BIGINT"), ("name", "STRING"))


def test_columns_come_from_where_the_query_takes_them():
    found = datasets.origins(planned(JOINED))
    told = {
        column: [(o.dataset, o.column, o.kind) for o in origins]
        for column, origins in found.items()
    }
    assert told == {
        "id": [(STREAM, "user_id", "IDENTITY")],
        "label": [(TABLE, "name", "TRANSFORMATION")],
        "doubled": [(STREAM, "price", "TRANSFORMATION")],
    }


def test_aggregates_are_of_the_rows_of_the_window():
    found = datasets.origins(planned(WINDOWED))
    told = {column: [(o.column, o.kind) for o in origins] for column, origins in found.items()}
    assert told == {
        "start_at": [("ts", "TRANSFORMATION")],
        "id": [("user_id", "IDENTITY")],
        "total": [("price", "AGGREGATION")],
    }


def test_a_statement_set_has_all_its_outputs_each_once():
    script = """
    CREATE TABLE one (id BIGINT, x STRING) WITH ('connector'='delta', 'path'='one');
    CREATE TABLE two (x STRING) WITH ('connector'='delta', 'path'='two');
    EXECUTE STATEMENT SET BEGIN
    INSERT INTO one SELECT c.user_id, u.name FROM clicks AS c {join};
    INSERT INTO two SELECT u.name FROM clicks AS c {join};
    INSERT INTO one SELECT u.user_id, u.name FROM clicks AS c {join};
    END;
    """
    join = "JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id"
    plan = plan_script(USERS + CLICKS + script.format(join=join)).plan
    (one, made_of), (two, _) = datasets.outputs(plan)
    assert (one.dataset.name, two.dataset.name) == ("one", "two")
    ids = [(origin.dataset, origin.column) for origin in made_of["id"]]
    assert ids == [(STREAM, "user_id"), (TABLE, "user_id")]
    assert len(made_of["x"]) == 1


def test_each_topic_of_a_stream_is_an_input_of_its_own():
    plan = planned(JOINED)
    source = replace(plan.probe.source, more_topics=("visits",))
    plan = replace(plan, probe=replace(plan.probe, source=source))
    visits = replace(STREAM, name="visits")
    assert [table.dataset for table in datasets.inputs(plan)] == [STREAM, visits, TABLE]
    doubled = datasets.origins(plan)["doubled"]
    assert [(origin.dataset, origin.column) for origin in doubled] == [
        (STREAM, "price"),
        (visits, "price"),
    ]
