import pytest

from service.jobs import plan_codec
from service.sql.errors import SqlError
from service.sql.explain import explain
from service.sql.planner import plan, plan_script
from tests.service.sql.scripts import TABLES, selecting

CANARY = "c4n4ry"
INLINE = selecting("t").replace("${secret:shop}", CANARY)
KAFKA = f"""{TABLES}
CREATE TABLE o (x STRING) WITH (
    'connector' = 'kafka', 'topic' = 'o',
    'properties.bootstrap.servers' = 'b:9092', 'format' = 'json',
    'properties.security.protocol' = 'SASL_SSL', 'properties.sasl.mechanism' = 'PLAIN',
    'properties.sasl.username' = 'me', 'properties.sasl.password' = 'it''s {CANARY}'
);
INSERT INTO o SELECT t FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
"""


def test_references_are_kept_as_text():
    assert plan(selecting("t")).dimensions[0].source.password == "${secret:shop}"
    assert plan_script(selecting("t")).inline_secrets == ()


def test_inline_secret_becomes_a_reference_with_a_warning():
    planned = plan_script(INLINE)
    (secret,) = planned.inline_secrets
    assert (secret.name, secret.value) == ("inline-d-password", CANARY)
    assert planned.plan.dimensions[0].source.password == "${secret:inline-d-password}"
    assert "${secret:inline-d-password}" in planned.warnings[0]


def test_inline_secret_is_nowhere_in_what_is_stored():
    for script in (INLINE, KAFKA):
        planned = plan_script(script)
        stored = plan_codec.dump(planned.plan).decode() + "\n".join(explain(planned.plan))
        assert CANARY not in stored + " ".join(planned.warnings)
        assert planned.inline_secrets[0].value.endswith(CANARY)


def test_script_is_shown_without_secrets_and_plans_alike():
    planned = plan_script(KAFKA).plan
    assert plan(planned.sql) == planned
    assert CANARY not in plan(KAFKA).sql
    assert dict(plan(KAFKA).sink.kafka.properties)["sasl.password"] == f"it's {CANARY}"


def test_explanation_never_shows_a_password():
    assert CANARY not in "\n".join(explain(plan(KAFKA)))


HINT = INLINE.replace("FROM s", f"FROM s /*+ OPTIONS('topic'='{CANARY}') */").replace(
    "JOIN d", f"JOIN d /*+ OPTIONS('password'='{CANARY}-2') */"
)
UNUSED = {
    "a_dropped_table": INLINE.replace(
        "CREATE TABLE s",
        "DROP TABLE d;\n" + TABLES.partition("CREATE TABLE s")[0] + "CREATE TABLE s",
    ),
    "a_table_that_is_there": INLINE.replace(
        "CREATE TABLE s",
        TABLES.partition("CREATE TABLE s")[0]
        .replace("CREATE TABLE d", "CREATE TABLE IF NOT EXISTS d")
        .replace("${secret:shop}", CANARY)
        + "CREATE TABLE s",
    ),
    "like": INLINE.replace("CREATE TABLE s", "CREATE TABLE e LIKE d;\nCREATE TABLE s"),
    "a_view": INLINE.replace(
        "CREATE TABLE s",
        f"CREATE VIEW v AS SELECT id FROM d /*+ OPTIONS('password'='{CANARY}') */;\nCREATE TABLE s",
    ),
    "a_view_that_is_there": INLINE.replace(
        "CREATE TABLE s",
        "CREATE VIEW v AS SELECT id FROM d;\nCREATE VIEW IF NOT EXISTS v AS "
        f"SELECT id FROM d /*+ OPTIONS('password'='{CANARY}') */;\nCREATE TABLE s",
    ),
    "an_explained_statement": INLINE.replace(
        "INSERT",
        f"EXPLAIN SELECT t FROM s JOIN d /*+ OPTIONS('password'='{CANARY}') */ "
        "FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;\nINSERT",
    ),
}


@pytest.mark.parametrize("script", UNUSED.values(), ids=UNUSED)
def test_credentials_of_what_is_not_used_are_not_stored(script):
    planned = plan_script(script)
    assert CANARY not in planned.plan.sql
    assert CANARY not in plan_codec.dump(planned.plan).decode()


def test_a_hint_has_a_secret_of_its_own():
    planned = plan_script(HINT.replace(f"'topic'='{CANARY}'", "'topic'='x'"))
    (secret,) = planned.inline_secrets
    assert secret.value == f"{CANARY}-2"
    assert planned.plan.dimensions[0].source.password == secret.reference
    assert CANARY not in planned.plan.sql


def test_a_table_made_by_like_shares_the_secret():
    script = INLINE.replace("CREATE TABLE s", "CREATE TABLE e LIKE d;\nCREATE TABLE s")
    planned = plan_script(script.replace("JOIN d", "JOIN e").replace("d.id", "e.id"))
    (secret,) = planned.inline_secrets
    assert secret.name == "inline-d-password"
    assert planned.plan.dimensions[0].source.password == secret.reference


def test_an_error_beside_a_hint_does_not_show_its_secret():
    with pytest.raises(SqlError) as caught:
        plan(HINT.replace("'topic'", "'topik'"))
    assert "topik" in caught.value.message
    assert CANARY + "-2" not in caught.value.excerpt
