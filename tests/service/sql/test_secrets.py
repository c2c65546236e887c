import pytest

from service.jobs.store import plan_codec
from service.sql.answers.answers import answers, plan_declarations
from service.sql.answers.explain import explain
from service.sql.answers.findings import findings, migrate
from service.sql.planner.planner import plan, plan_script
from service.sql.text.script import SqlError
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


class NoJobs:
    """The jobs of a control plane that has none."""

    def all(self):
        return []


URLS = {
    "before_the_host": f"jdbc:mysql://me:{CANARY}@db/shop",
    "in_the_query": f"jdbc:mysql://db/shop?useSSL=false&user=me&password={CANARY}&a=b",
    "in_the_query_without_the_user": f"jdbc:mysql://me@db/shop?password={CANARY}",
}


def of_jdbc(url):
    table = f"""CREATE TABLE d (id BIGINT, name STRING) WITH (
    'connector' = 'jdbc', 'table-name' = 'd', 'url' = '{url}' -- the shop
);"""
    before, _, rest = selecting("t").partition("CREATE TABLE d")
    return before + table + rest.partition(";")[2]


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_a_login_in_a_url_is_kept_as_the_options_of_a_login(url):
    script = of_jdbc(url)
    planned = plan_script(script)
    source = planned.plan.dimensions[0].source
    (secret,) = planned.inline_secrets
    assert (source.username, source.password) == ("me", secret.reference)
    assert secret.value == CANARY
    stored = plan_codec.dump(planned.plan).decode() + "\n".join(explain(planned.plan))
    assert CANARY not in stored + " ".join(planned.warnings)
    assert plan_script(planned.plan.sql).plan == planned.plan
    assert planned.plan.sql.count("\n") == script.count("\n")


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_a_table_shows_its_login_by_reference(url):
    declared = of_jdbc(url).partition("INSERT")[0]
    (answer,) = answers(f"{declared}SHOW CREATE TABLE d;", NoJobs())
    shown = str(answer)
    assert CANARY not in shown
    assert "'username' = 'me'" in shown
    assert "${secret:inline-d-password}" in shown


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_a_refused_script_does_not_show_the_login_of_a_url(url):
    for damage in ("'connectir'", "'connector' = 'jdbc', 'username' = 'u', 'x'"):
        with pytest.raises(SqlError) as caught:
            plan_script(of_jdbc(url).replace("'connector'", damage, 1))
        error = caught.value
        assert CANARY not in f"{error.message} {error.hint} {error.excerpt}"


AGAIN = (
    TABLES.split(";")[0]
    .replace("${secret:shop}", CANARY)
    .replace("TABLE d", "TABLE IF NOT EXISTS d")
)
STORED = {
    "a_table_that_was_there": selecting("t").replace("INSERT", f"{AGAIN};\nINSERT"),
    "a_line_comment": f"-- 'password' = '{CANARY}',\n" + selecting("t"),
    "a_block_comment": f"/* user: cdc\n password: {CANARY} */" + selecting("t"),
    "a_comment_in_words": f"-- don't tell: pwd={CANARY}\n" + selecting("t"),
    "the_value_in_a_comment": f"-- was {CANARY} before\n{INLINE}",
    "a_quote_in_a_comment": f"-- it's\n-- 'password' = '{CANARY}'\n" + selecting("t"),
}


@pytest.mark.parametrize("script", STORED.values(), ids=STORED)
def test_what_is_stored_has_no_password_from_where_nothing_reads_it(script):
    stored = plan_script(script).plan
    assert CANARY not in plan_codec.dump(stored).decode()
    assert stored.sql.count("\n") == script.count("\n")
    assert plan_script(stored.sql).plan == stored


WITHOUT_EFFECT = {
    "a_key": f"SET 'my.key' = '{CANARY}';",
    "java_options": f"SET 'env.java.opts.all' = '-Dx={CANARY}';",
    "kerberos": f"SET 'security.kerberos.login.contexts' = '{CANARY}';",
    "ssl": f"SET 'security.ssl.rest.x' = '{CANARY}';",
    "a_token": f"SET 'my.token' = '{CANARY}';",
    "a_login_in_a_url": f"SET 'my.proxy' = 'http://me:{CANARY}@proxy';",
    "a_password_in_a_text": f"SET 'my.text' = 'user=me password={CANARY}';",
}


@pytest.mark.parametrize("setting", WITHOUT_EFFECT.values(), ids=WITHOUT_EFFECT)
def test_a_setting_without_effect_that_may_be_a_credential_is_not_stored(setting):
    planned = plan_script(setting + selecting("t"))
    assert CANARY not in plan_codec.dump(planned.plan).decode() + " ".join(planned.warnings)
    assert plan_script(planned.plan.sql).plan == planned.plan


@pytest.mark.parametrize("name", ["ssl.provider", "my.key", "java.naming", "sasl.jaas.config "])
def test_an_option_without_effect_that_may_be_a_credential_is_not_stored(name):
    tables = TABLES.replace(
        "'format' = 'json'", f"'format' = 'json', 'properties.{name}' = '{CANARY}'", 1
    )
    planned = plan_script(selecting("t").replace(TABLES, tables))
    assert any(name in text for text in planned.warnings)
    assert CANARY not in plan_codec.dump(planned.plan).decode() + " ".join(planned.warnings)


PASSWORD = "'password' = '${secret:shop}'"
MISPLACED = {
    "without_quotes": f"'password' = {CANARY}",
    "in_double_quotes": f"'password' = \"{CANARY}\"",
    "in_backticks": f"'password' = `{CANARY}`",
    "behind_a_colon": f"'password': '{CANARY}'",
    "behind_two_equal_signs": f"'password' == '{CANARY}'",
    "behind_nothing": f"'password' '{CANARY}'",
    "key_without_quotes": f"password = '{CANARY}'",
    "key_in_double_quotes": f'"password" = "{CANARY}"',
    "key_misspelt": f"'passwort-x' = 'x', 'pwd' = '{CANARY}'",
    "in_a_cast": f"'password' = CAST('{CANARY}' AS STRING)",
    "put_together": f"'password' = 'x' || '{CANARY}'",
    "in_two_strings": f"'password' = 'x' '{CANARY}'",
    "on_another_line": f"'password' =\n  '{CANARY}'\n  x",
    "with_a_line_in_it": f"'password' = '{CANARY}\n'",
    "with_a_dollar": f"'password' = '{CANARY}${{x'",
    "as_a_bad_reference": f"'password' = '${{secret:{CANARY} x}}'",
    "in_the_host": f"'hostname' = 'cdc:{CANARY}@db'",
    "in_a_url": f"'url' = 'jdbc:mysql://cdc:{CANARY}@db'",
    "in_a_query": f"'url' = 'jdbc:mysql://db/?user=cdc&password={CANARY}'",
    "as_jaas_text": f"'jaas' = 'x required password=\"{CANARY}\";'",
    "in_a_hint": f"/*+ 'password' = '{CANARY}' */ 'password' = 'x'",
    "as_an_unknown_setting": f"'x' = 'y'); SET 'my.token' = '{CANARY}'; SELECT (",
}


@pytest.mark.parametrize("written", MISPLACED.values(), ids=MISPLACED)
def test_a_password_in_the_wrong_place_is_not_shown(written):
    script = selecting("t").replace("'hostname' = 'db', ", "").replace(PASSWORD, written)
    with pytest.raises(SqlError) as caught:
        plan_script(script)
    error = caught.value
    assert CANARY not in f"{error.message} {error.hint} {error.excerpt}"
    assert error.excerpt.splitlines()[-1].strip() == "^"


def test_masking_takes_time_in_proportion_to_the_script():
    for part in ("password", "passw.", "a:", "-- ", "/*", "'", '"', "token=", ":" * 4 + "@", "(`"):
        with pytest.raises(SqlError):
            plan_script(part * (60_000 // len(part)) + ";")


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


@pytest.mark.parametrize("written", MISPLACED.values(), ids=MISPLACED)
def test_what_to_write_instead_shows_no_password(written):
    script = selecting("t").replace("'hostname' = 'db', ", "").replace(PASSWORD, written)
    assert CANARY not in f"{findings(script)} {migrate(script).changes}"


def test_an_option_without_effect_is_stored_and_shown_without_its_credential():
    option = f"'debezium.database.history.consumer.sasl.jaas.config' = 'x password=\"{CANARY}\"'"
    table = TABLES.split(";")[0].replace("'table-name'", f"{option}, 'table-name'")
    for script in (f"{table};", f"{table}; CREATE TABLE e LIKE d;"):
        declared, _ = plan_declarations(script, ())
        shown = answers(f"{script} SHOW CREATE TABLE d;", NoJobs())
        assert CANARY not in repr((declared, shown))


def test_the_text_of_an_expression_is_stored_and_shown_as_it_is_planned():
    stream = TABLES.split(";")[1].replace("t STRING", "token STRING")
    column = "gold AS CASE WHEN token = 'gold' THEN 1 ELSE 0 END"
    view = "CREATE VIEW v AS SELECT token = 'x' FROM s"
    script = f"{stream}; CREATE TABLE e ({column}) LIKE s; {view}"
    assert column.partition(" AS ")[2] in plan_declarations(script, ())[0][1].entry.sql
    for what, text in (("TABLE e", column.partition(" AS ")[2]), ("VIEW v", "token = 'x'")):
        assert text in str(answers(f"{script}; SHOW CREATE {what};", NoJobs()))
