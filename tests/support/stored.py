"""A catalog for the cases of `tests/service/sql/catalog`, and what becomes of them over it."""

from pathlib import Path

from service.sql.answers.answers import plan_declarations
from service.sql.planner.planner import plan
from service.sql.stored import CatalogEntry, EntryKind
from service.sql.text.script import SqlError

USERS = """CREATE SHARED TABLE users (
id BIGINT, name STRING, age INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'mysql-cdc',
'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}', 'database-name' = 'shop',
'table-name' = 'users')"""
STREAM = """CREATE TABLE stream (user_id BIGINT, `at` AS PROCTIME()) WITH ('connector' = 'kafka',
'topic' = 't', 'properties.bootstrap.servers' = 'k:9092', 'format' = 'json',
'scan.startup.mode' = 'earliest-offset')"""
CATALOG = (
    CatalogEntry("users", EntryKind.SHARED, USERS, "0199", 4),
    CatalogEntry("stream", EntryKind.TABLE, STREAM),
    CatalogEntry(
        "sink",
        EntryKind.TABLE,
        "CREATE TABLE sink (id BIGINT, name STRING) WITH ('connector' = 'blackhole')",
    ),
    CatalogEntry(
        "adults", EntryKind.VIEW, "CREATE VIEW adults AS SELECT id, name FROM users WHERE age > 17"
    ),
)
FILES = sorted((Path(__file__).parents[1] / "service/sql/catalog").glob("*.sql"))
STORED_CASES = {path.stem: path.read_text() for path in FILES}


def refusal_over_the_catalog(name: str, text: str) -> SqlError | None:
    """Why a case is refused: as a job, or, by its name, as a script that declares."""
    try:
        if name.startswith(("declares", "shares")):
            plan_declarations(text, CATALOG)
        else:
            plan(text, catalog=CATALOG)
    except SqlError as error:
        return error
    return None
