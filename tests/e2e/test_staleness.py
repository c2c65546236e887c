"""`join.max-staleness` with several dimensions: one stands still, and a held batch runs twice."""

import signal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import cdc_table, kafka_table, running_rig
from tests.support.shop import CLICKS_DDL, USERS, USERS_DDL, click, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import consume, create_topic, produce, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment
BOUND_MS = 8_000
BOUND = f"'join.max-staleness'='{BOUND_MS} ms'"
JOIN = (
    "INSERT INTO enriched SELECT c.item_id, u.name, l.level "
    "FROM click_event AS c "
    "LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id "
    "LEFT JOIN levels FOR SYSTEM_TIME AS OF c.proctime AS l ON c.user_id = l.user_id;"
)


def test_the_table_that_is_furthest_behind_holds_and_a_held_batch_has_its_rows_once(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    """The CDC process stands still; batch 0 is held, released, killed, and run from its pin."""
    servers = kafka.bootstrap_servers
    topic, path, levels = create_topic(servers), unique_name("held"), unique_name("levels")
    faults = {"failpoints": "C6=kill#0", "restart_backoff_min_s": 5.0}
    with (
        running_rig(tmp_path, kafka, mariadb, **faults) as rig,
        new_schema(mariadb, USERS, fill_users(20)) as schema,
    ):
        write_deltalake(
            str(rig.output(levels)), pa.table({"user_id": [1, 2], "level": ["gold", "iron"]})
        )
        sql = (
            cdc_table(mariadb, schema, "user_info", USERS_DDL, (BOUND,))
            + "CREATE TABLE levels (user_id BIGINT NOT NULL, level STRING, PRIMARY KEY (user_id) "
            f"NOT ENFORCED) WITH ('connector'='delta', 'path'='{levels}', "
            f"'source.monitor-interval'='200 ms', {BOUND});"
            + kafka_table(kafka, "click_event", topic, CLICKS_DDL)
            + "CREATE TABLE enriched (item_id BIGINT, name STRING, level STRING) "
            f"WITH ('connector'='delta', 'path'='{path}');" + JOIN
        )
        with rig.job(sql) as job:
            job.wait_joining()
            job.wait_for(
                lambda s: all(d["freshness"]["as_of_ms"] for d in s["dimensions"]), "T of both"
            )
            (halted,) = wait_until(
                lambda: job.children("joins.adapters.mysql.binlog"), what="the CDC process"
            )
            halted.send_signal(signal.SIGSTOP)
            try:
                job.wait_for(
                    lambda s: s["dimensions"][0]["freshness"]["age_ms"] > BOUND_MS + 1_000,
                    "user_info is too old for new records",
                )
                name_it = "UPDATE user_info SET name = '{}' WHERE user_id = 1"
                run_sql(mariadb, name_it.format("changed"), schema=schema)
                produce(servers, topic, [click(1, n) for n in range(10)])
                held = job.wait_for(
                    lambda s: (
                        s["holding"]
                        and [each["table"] for each in s["holding"]["tables"]] == ["user_info"]
                    ),
                    "the gate holds for one table",
                )
                assert (held["phase"], held["holding"]["state"]) == ("JOIN", "HOLDING")
                assert 'table "user_info" is as of' in held["reason"]
                assert job.pins.newest() is None, "nothing is pinned while it is held"
            finally:
                halted.send_signal(signal.SIGCONT)
            met = job.directory / "checkpoint" / "failpoints" / "C6=kill#0"
            job.wait_for(lambda _: met.exists(), "batch 0 is staged and its runner killed")
            pinned = job.pins.read(0)
            assert pinned is not None
            run_sql(mariadb, name_it.format("later"), schema=schema)
            rows = job.wait_output(path, 10)

            assert job.pins.read(0) == pinned, "it runs again from its pin"
            held_rows = [row for row in rows if row["_batch"] == 0]
            assert held_rows
            assert {(row["name"], row["level"]) for row in held_rows} == {("changed", "gold")}
            assert sorted(row["item_id"] for row in rows) == list(range(10))
            written_ms = {(r.partition, r.offset): r.timestamp for r in consume(servers, topic)}
            for row in rows:
                pin = job.pins.read(row["_batch"])
                assert pin is not None
                oldest_ms = min(pin.as_of[name].time_ms for name in ("user_info", "levels"))
                at_ms = written_ms[row["_partition"], row["_offset"]]
                assert at_ms <= oldest_ms + BOUND_MS
            status = job.wait_for(lambda s: not s["holding"], "the gate is open again")
            shown = [c["watermark"] for d in status["dimensions"] for c in d["channels"]]
            assert all(w["use_processing_time"] and w["timestamp_ms"] > 0 for w in shown)
            assert status["combined_watermark"]["timestamp_ms"] > 0
