"""Scripts as people bring them: what is elsewhere is answered whole, by one `sluice migrate`.

Connectors, catalogs, metadata and login modules are those of Flink's and Kafka's documentation.
"""

import re
from dataclasses import replace
from itertools import product

import pytest

from service.sql.answers.answers import plan_declarations
from service.sql.answers.findings import Migration, findings, migrate, revised
from service.sql.planner.planner import plan_script
from service.sql.text.script import SqlError
from tests.service.sql.scripts import TABLES
from tests.support.lanes import some_of
from tests.support.sql_hints import refusal

KEYED = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED"
BARE = "id BIGINT, name STRING"
SINK = "CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');\n"
FOLLOWED = (
    f"CREATE TABLE c ({KEYED}) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', "
    "'username' = 'cdc', 'password' = '${secret:shop}', 'database-name' = 'shop', "
    "'table-name' = 'c');\n"
)
OF_DATABASES = ("postgres-cdc", "oracle-cdc", "sqlserver-cdc", "db2-cdc", "mongodb-cdc", "tidb-cdc")
OF_STORES = ("elasticsearch-7", "opensearch", "hbase-2.2", "redis", "mongodb", "clickhouse")
OF_LAKES = ("doris", "starrocks", "iceberg", "hudi", "paimon", "hive", "fluss", "kinesis", "pulsar")
ELSEWHERE = [*OF_DATABASES, *OF_STORES, *OF_LAKES]
ROLES = {  # a table `e` elsewhere, and what a script does with it
    "stream": (KEYED, "INSERT INTO o SELECT id, name FROM e;"),
    "dimension": (
        KEYED,
        "INSERT INTO o SELECT s.k, e.name FROM s JOIN e FOR SYSTEM_TIME AS OF s.p ON s.k = e.id;",
    ),
    "sink": (KEYED, "INSERT INTO e SELECT k, t FROM s;"),
    "sink_of_changes": (KEYED, "INSERT INTO e SELECT id, name FROM c;"),
    "sink_of_changes_without_a_key": (BARE, "INSERT INTO e SELECT id, name FROM c;"),
}


def of_role(role, clause):
    columns, query = ROLES[role]
    table = f"CREATE TABLE e ({columns}) {clause};\n"
    return TABLES + SINK + FOLLOWED + table + query


def migrated(text: str) -> Migration:
    """The migration of a script that is refused; it needs no second one."""
    assert refusal(text) is not None
    migration = migrate(text)
    assert {each.message for each in migration.left} <= {each.message for each in findings(text)}
    assert migrate(migration.sql).changes == ()
    return migration


@pytest.mark.parametrize("connector", some_of(ELSEWHERE, "postgres-cdc", "hbase-2.2", "iceberg"))
@pytest.mark.parametrize("role", ROLES)
def test_a_table_elsewhere_is_answered_by_one_migration(role, connector):
    text = of_role(role, f"WITH ('connector' = '{connector}', 'hosts' = 'h', 'index' = 'i')")
    migration = migrated(text)
    assert migration.is_accepted, migration.left
    assert not re.search(f"'{connector}'", re.sub("--.*", "", migration.sql))


@pytest.mark.parametrize("query", ["SELECT id, name FROM c", "SELECT k AS id, t FROM s"])
@pytest.mark.parametrize("connector", ["elasticsearch-7", "iceberg"])
def test_a_table_elsewhere_that_a_query_creates_is_a_sink(connector, query):
    text = TABLES + FOLLOWED + f"CREATE TABLE e WITH ('connector' = '{connector}') AS {query};"
    migration = migrated(text)
    assert "'connector' = 'delta'" in migration.sql
    # A table that a query creates has no key, which changes need.
    assert [each.message[:28] for each in migration.left] == (
        ['table "e" has no primary key'] if "FROM c" in query else []
    )


NAMED = {  # how a script says that a table belongs to another catalog, and the table's name
    "in_use": ("CREATE CATALOG lake WITH ('type' = 'x');\nUSE CATALOG lake;\n", "e"),
    "in_quotes": ("CREATE CATALOG lake WITH ('type' = 'x');\nUSE CATALOG `lake`;\n", "e"),
    "by_its_name": ("CREATE CATALOG lake WITH ('type' = 'x');\n", "lake.db.e"),
}


@pytest.mark.parametrize("clause", ["", "WITH ('bucket' = '4', 'file.format' = 'orc')"])
@pytest.mark.parametrize("named", NAMED)
@pytest.mark.parametrize("role", ROLES)
def test_a_table_of_another_catalog_needs_no_connector_to_be_migrated(role, named, clause):
    before, name = NAMED[named]
    back = "USE CATALOG default_catalog;\n" if named != "by_its_name" else ""
    columns, query = ROLES[role]
    table = f"CREATE TABLE {name} ({columns}) {clause};\n{back}"
    query = re.sub(r"\b(INTO|FROM|JOIN) e\b", r"\1 lake.db.e AS e", query)
    query = query.replace("INTO lake.db.e AS e", "INTO lake.db.e")
    query = query.replace("e AS e FOR SYSTEM_TIME AS OF s.p", "e FOR SYSTEM_TIME AS OF s.p AS e")
    if named != "by_its_name":
        query = query.replace("lake.db.e", "lake.`default_database`.e")
    migration = migrated(TABLES + SINK + FOLLOWED + before + table + query)
    assert migration.is_accepted, migration.left


def test_options_without_a_connector_in_the_own_catalog_are_only_a_guess():
    text = of_role("sink", "WITH ('topic' = 't', 'format' = 'json', 'x' = 'y')")
    assert not migrated(text).is_accepted
    (missing, *_) = findings(text)
    assert not missing.sure
    assert missing.replacement.startswith("WITH ('connector' = 'kafka', ")
    (unlike, *_) = findings(of_role("sink", "WITH ('index' = 'i')"))
    assert not unlike.sure
    assert "'connector' = 'delta'" in unlike.replacement


QUERIES = (
    *("SELECT * FROM c", "SELECT id FROM c WHERE name LIKE 'a%'", "SELECT UPPER(name) FROM c"),
    "WITH x AS (SELECT id, name FROM c) SELECT id AS k FROM x",
    "SELECT q.id FROM (SELECT id, PROCTIME() AS p FROM c) AS q",
)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_over_a_table_that_is_followed_is_made_a_job_that_prints(query):
    migration = migrated(f"{FOLLOWED}{query};")
    assert migration.is_accepted, migration.left
    made = plan_script(migration.sql).plan
    by_hand = plan_script(
        f"{FOLLOWED}CREATE TABLE shown_1 WITH ('connector' = 'print') AS {query};"
    ).plan
    assert replace(made, sql="", name="") == replace(by_hand, sql="", name="")


@pytest.mark.parametrize(
    "behind", ["CREATE TABLE z (i INT) WITH ('connector' = 'print')", "SHOW TABLES"]
)
@pytest.mark.parametrize("query", QUERIES[:2])
def test_a_declaration_behind_a_query_leaves_it_alone(query, behind):
    alone, followed = (migrated(f"{FOLLOWED}{query};{end}") for end in ("", f"\n{behind};"))
    assert followed.is_accepted, followed.left
    one, other = (plan_script(each.sql).plan for each in (alone, followed))
    assert replace(one, sql="") == replace(other, sql="")


@pytest.mark.parametrize("queries", [QUERIES[:2], QUERIES[1:4], (QUERIES[0], "SELECT k FROM s")])
def test_several_queries_are_sent_one_by_one(queries):
    text = TABLES + FOLLOWED + "".join(f"{each};\n" for each in queries)
    migration = migrated(text)
    assert migration.changes == ()
    assert "Send the query by itself." in [each.hint for each in migration.left]
    for query in queries:
        alone = f"{TABLES}{FOLLOWED}{query};"
        assert refusal(alone) is None or migrate(alone).is_accepted


OF_CDC = {  # keys of metadata of Flink CDC and of debezium-json → a type
    **dict.fromkeys(("database_name", "schema_name", "table_name"), "STRING NOT NULL"),
    "op_ts": "TIMESTAMP_LTZ(3) NOT NULL",
    **dict.fromkeys(
        ("value.source.database", "value.source.schema", "value.source.table"), "STRING"
    ),
}


@pytest.mark.parametrize("key", OF_CDC)
@pytest.mark.parametrize("form", ["`a b` {} METADATA FROM '{}' VIRTUAL", "m {} METADATA FROM '{}'"])
def test_metadata_of_a_connector_elsewhere_has_a_replacement(form, key):
    column = form.format(OF_CDC[key], key)
    text = of_role("stream", "WITH ('connector' = 'postgres-cdc', 'hostname' = 'db')")
    text = text.replace("TABLE e (id BIGINT", f"TABLE e ({column}, id BIGINT")
    of_key = next(each for each in findings(text) if key in each.message)
    assert of_key.replacement is not None
    assert not of_key.sure
    assert refusal(migrate(text).sql.replace(column, of_key.replacement)) is None


@pytest.mark.parametrize("connector", ["mysql-cdc", "postgres-cdc"])
@pytest.mark.parametrize("place", ["({}, id BIGINT", "(id BIGINT, {}"])
def test_the_kind_of_a_change_is_no_column_and_goes_with_its_comma(place, connector):
    column = "op STRING METADATA FROM 'row_kind' VIRTUAL"
    table = FOLLOWED.replace("(id BIGINT", place.format(column), 1).replace("mysql-cdc", connector)
    text = f"{table}{SINK}INSERT INTO o SELECT id, name FROM c;"
    of_column = next(each for each in findings(text) if "Remove the column" in each.hint)
    assert (of_column.sure, of_column.replacement) == (False, None)
    left = revised(text, guesses=True)
    assert left.left == ()
    assert "(id BIGINT, name STRING" in left.text


WRITTEN = {  # what is written of id → whether that has the key of the stream
    **dict.fromkeys(("id", "CAST(id AS STRING)", "CAST(id AS DECIMAL(19, 0))"), True),
    **dict.fromkeys(("id + 1", "CAST(id AS INT)", "COALESCE(id, 0)"), False),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_a_sink_gets_the_key_of_the_changes_where_a_column_has_it(written):
    of_type = {"CAST(id AS STRING)": "STRING", "CAST(id AS DECIMAL(19, 0))": "DECIMAL(19, 0)"}
    columns = f"`my key` {of_type.get(written, 'BIGINT')}, y STRING".replace("my key", "k")
    text = (
        f"{FOLLOWED}CREATE TABLE e ({columns}) WITH ('connector' = 'delta', 'path' = 'e');\n"
        f"INSERT INTO e SELECT {written}, name FROM c;"
    )
    migration = migrated(text)
    assert migration.is_accepted == WRITTEN[written], migration.left
    if migration.is_accepted:
        assert plan_script(migration.sql).plan.sink.merge_key == ("k",)


MODULES = (
    *("org.apache.kafka.common.security.plain.PlainLoginModule", "a.b.plain.PlainLoginModule"),
    "org.apache.flink.kafka.shaded.org.apache.kafka.common.security.scram.ScramLoginModule",
)
LOGINS = (("me", "hunter2"), ("$ConnectionString", "Endpoint=sb://x/;Key=a b"), ("a@b", "it's"))
KAFKA = (
    "CREATE TABLE k (x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'k', "
    "'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json', "
    "'scan.startup.mode' = 'earliest-offset', 'properties.security.protocol' = 'SASL_SSL', "
    "'properties.sasl.mechanism' = 'PLAIN', {});\n"
    "CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');\nINSERT INTO o SELECT x FROM k;"
)


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def with_jaas(text):
    return KAFKA.format(f"'properties.sasl.jaas.config' = {literal(text)}")


def with_options(user, password):
    return KAFKA.format(
        f"'properties.sasl.username' = {literal(user)}, "
        f"'properties.sasl.password' = {literal(password)}"
    )


@pytest.mark.parametrize(
    ("module", "login", "form"),
    [
        *product(
            MODULES,
            LOGINS,
            (
                '{0} required username="{1}" password="{2}";',
                '{0}  required\n  password = "{2}"\n  username = "{1}" ;\n',
            ),
        )
    ],
)
def test_the_login_of_a_jaas_text_is_that_of_its_options(module, login, form):
    text = with_jaas(form.format(module, *login))
    planned, by_options = plan_script(text), plan_script(with_options(*login))
    assert planned.plan.probe == by_options.plan.probe
    assert [each.value for each in planned.inline_secrets] == [login[1]]
    assert login[1] not in planned.plan.sql
    assert plan_script(planned.plan.sql).plan == planned.plan
    assert 'Table "k" logs in by the name and the password of "properties.sasl.jaas.config".' in (
        planned.warnings
    )


JAAS = f'{MODULES[0]} required username="me" password="hunter2";'


def test_the_login_of_a_jaas_text_may_be_a_reference_as_the_catalog_asks_for():
    table, _, _ = with_jaas(JAAS).partition(";\nCREATE")
    with pytest.raises(SqlError) as refused:
        plan_declarations(table, ())
    reference = re.match(r"Write '(.*?)' in its place", refused.value.hint)[1]
    written = table.replace("hunter2", reference)
    ((declared,), _) = plan_declarations(written, ())
    assert declared.entry.sql == written
    user, password = (JAAS.replace(f'"{word}"', f'"{reference}"') for word in ("me", "hunter2"))
    for jaas, login in ((user, (reference, "hunter2")), (password, ("me", reference))):
        planned = plan_script(with_jaas(jaas))
        assert planned.plan.probe == plan_script(with_options(*login)).plan.probe
        assert plan_script(planned.plan.sql).plan == planned.plan


OTHER_JAAS = (
    JAAS.replace("plain.PlainLoginModule", "x.JndiLoginModule"),
    JAAS.replace("plain.Plain", "oauthbearer.OAuthBearer"),
    *(JAAS.replace("required", word) for word in ("requisite", "sufficient", "optional")),
    JAAS.replace(" password", ' tokenauth="true" password'),
    JAAS.replace(' username="me"', ""),
    JAAS.replace("password", "username"),
    JAAS.replace("hunter2", r"hun\ter2"),
    JAAS.replace("hunter2", "${KAFKA_PASSWORD}"),
    JAAS.replace("hunter2", "x${secret:kafka}"),
    JAAS.replace("hunter2", ""),
    JAAS.replace('"', ""),
    JAAS.removesuffix(";"),
    JAAS + JAAS,
)


@pytest.mark.parametrize("text", OTHER_JAAS)
def test_another_jaas_text_is_refused_and_not_shown(text):
    error = refusal(with_jaas(text))
    assert "'properties.sasl.username'" in error.hint
    assert "hunter2" not in f"{error.message} {error.excerpt}"


def test_a_jaas_text_beside_its_options_is_refused():
    options = f"'properties.sasl.jaas.config' = '{JAAS}', 'properties.sasl.username'"
    text = with_options("me", "hunter2").replace("'properties.sasl.username'", options)
    assert "properties.sasl.jaas.config" in refusal(text).message
