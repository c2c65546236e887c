"""Tables that match a regular expression, as one dimension of a job."""

import json

from tests.support.rig import Rig, cdc_table, kafka_table
from tests.support.sql import new_schema, run_sql
from tests.support.topics import consume, create_topic, produce

COLUMNS = (
    "id BIGINT, part STRING METADATA FROM 'table_name' VIRTUAL, name STRING, "
    "changed TIMESTAMP_LTZ(3) METADATA FROM 'op_ts' VIRTUAL, PRIMARY KEY (part, id) NOT ENFORCED"
)


def test_records_are_joined_with_rows_of_all_tables_that_match(rig: Rig) -> None:
    """Also with those of a table that appears; the copy is compared with all of them."""
    servers = rig.kafka.bootstrap_servers
    clicks, named = create_topic(servers), create_topic(servers)
    table = "CREATE TABLE t_{} (id BIGINT PRIMARY KEY, name VARCHAR(20))"
    with new_schema(
        rig.mariadb,
        *(table.format(number) for number in (1, 2)),
        "INSERT INTO t_1 VALUES (1, 'one'), (2, 'two')",
        "INSERT INTO t_2 VALUES (1, 'other')",
    ) as schema:
        sql = (
            kafka_table(rig.kafka, "clicks", clicks, "id BIGINT, p AS PROCTIME()")
            + cdc_table(rig.mariadb, schema, "t", COLUMNS).replace("'t'", "'t_[0-9]+'")
            + kafka_table(
                rig.kafka, "named", named, "id BIGINT, part STRING, name STRING, is_copied BOOLEAN"
            ).replace(", 'scan.startup.mode'='earliest-offset'", "")
            + "INSERT INTO named SELECT c.id, t.part, t.name, t.changed < TO_TIMESTAMP_LTZ(1, 0) "
            "FROM clicks AS c LEFT JOIN t FOR SYSTEM_TIME AS OF c.p AS t ON c.id = t.id;"
        )

        def rows() -> set[tuple[object, ...]]:
            values = (json.loads(record.value) for record in consume(servers, named))
            return {tuple(value.values()) for value in values}

        with rig.job(sql) as job:
            produce(servers, clicks, [{"id": number} for number in (1, 2, 3)])
            copied = {(1, "t_1", "one", True), (1, "t_2", "other", True), (2, "t_1", "two", True)}
            expected = {*copied, (3, None, None, None)}
            job.wait_for(lambda _: rows() == expected, "rows of two tables")

            run_sql(rig.mariadb, "INSERT INTO t_2 VALUES (4, 'four')", schema=schema)
            run_sql(
                rig.mariadb,
                table.format(3),
                "INSERT INTO t_3 VALUES (5, 'five')",
                schema=schema,
            )

            def joined(row: tuple[object, ...]) -> bool:
                produce(servers, clicks, [{"id": row[0]}])
                return row in rows()

            job.wait_for(lambda _: joined((5, "t_3", "five", True)), "a second copy")
            run_sql(rig.mariadb, "UPDATE t_3 SET name = 'new' WHERE id = 5", schema=schema)
            job.wait_for(lambda _: joined((5, "t_3", "new", False)), "the change")
            answer = rig.client.post(f"/v1/jobs/{job.id}:verify", json={}, timeout=300.0).json()
            (table_of_all,) = answer["tables"]
            assert (table_of_all["state"], table_of_all["rows"]) == ("equal", 5)
