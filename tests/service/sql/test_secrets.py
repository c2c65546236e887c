from service.jobs import plan_codec
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
