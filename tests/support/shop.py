"""The example of the documents as test data: users in a database, clicks in a topic, rows."""

from typing import Any

from tests.support.rig import Rig, cdc_table, kafka_table

USERS = "CREATE TABLE user_info (user_id BIGINT PRIMARY KEY, gender VARCHAR(8), name VARCHAR(64))"
USERS_DDL = "user_id BIGINT, gender STRING, name STRING, PRIMARY KEY (user_id) NOT ENFORCED"
CLICKS_DDL = "user_id BIGINT, item_id BIGINT, proctime AS PROCTIME()"


def fill_users(rows: int) -> str:
    return (
        "INSERT INTO user_info SELECT seq, IF(seq % 2, 'F', 'M'), CONCAT('user ', seq) "
        f"FROM seq_1_to_{rows}"
    )


def enrich_sql(rig: Rig, schema: str, topic: str, path: str, options: tuple[str, ...] = ()) -> str:
    declared = cdc_table(rig.mariadb, schema, "user_info", USERS_DDL, options)
    return enrich_by(rig, declared, topic, path)


def enrich_by(rig: Rig, user_info: str, topic: str, path: str, options: str = "") -> str:
    return (
        user_info
        + kafka_table(rig.kafka, "click_event", topic, CLICKS_DDL)
        + "CREATE TABLE enriched (user_id BIGINT, item_id BIGINT, gender STRING, name STRING) "
        f"WITH ('connector'='delta', 'path'='{path}'{options});"
        "INSERT INTO enriched SELECT c.user_id, c.item_id, u.gender, u.name "
        "FROM click_event AS c LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u "
        "ON c.user_id = u.user_id;"
    )


def click(user: Any, item: int) -> dict[str, Any]:
    return {"user_id": user, "item_id": item}
