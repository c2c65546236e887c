"""Several tables that are one stream: each is allowed, resolved, named and pointed at."""

import pytest

from joins.plan.errors import SourceError
from joins.plan.plan import DatasetName, KafkaSource
from service.config import Settings
from service.connectors.plans import check_allowed, resolve_secrets
from service.errors import NotAllowedError
from service.export import datasets
from service.security.secrets import SecretResolver
from service.sql.planner.planner import plan_script
from service.sql.text.dialect import told_where
from service.sql.text.script import SqlError

OF_BOTH = (
    "'connector'='kafka', 'properties.bootstrap.servers'='broker:9092', "
    "'scan.startup.mode'='earliest-offset', 'properties.security.protocol'='SASL_PLAINTEXT', "
    "'properties.sasl.mechanism'='PLAIN', 'properties.sasl.username'='me', "
    "'properties.sasl.password'='{}'"
)
SCRIPT = f"""CREATE TABLE a (id BIGINT) WITH ({OF_BOTH.format("of-a")}, 'topic'='a',
 'format'='json');
CREATE TABLE b (no INT, `of` STRING METADATA FROM 'topic' VIRTUAL) WITH ('topic'='b;c',
 {OF_BOTH.format("of-a")}, 'format'='avro-confluent', 'avro-confluent.url'='http://registry:8081',
 'avro-confluent.basic-auth.credentials-source'='USER_INFO',
 'avro-confluent.basic-auth.user-info'='${{secret:registry}}');
CREATE TABLE o (id BIGINT, t STRING) WITH ('connector'='delta', 'path'='o');
INSERT INTO o SELECT id, 'a' FROM a UNION ALL SELECT no, `of` FROM b;"""


def planned():
    return plan_script(SCRIPT).plan


def test_the_registry_of_each_table_must_be_allowed(tmp_path):
    check_allowed(planned(), Settings.load(data_dir=tmp_path, allowed_registries="registry:8081"))
    with pytest.raises(NotAllowedError, match="schema registry"):
        check_allowed(planned(), Settings.load(data_dir=tmp_path, allowed_registries="other:8081"))


def test_the_secrets_of_each_table_are_resolved(tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_SECRET_REGISTRY", "me:mine")
    monkeypatch.setenv("SLUICE_SECRET_INLINE_A_PASSWORD", "of-a")
    resolver = SecretResolver.of(Settings.load(data_dir=tmp_path), None)
    first, second = resolve_secrets(planned(), resolver).inserts
    for insert in (first, second):
        assert isinstance(insert.probe.source, KafkaSource)
        assert dict(insert.probe.source.kafka.properties)["sasl.password"] == "of-a"
    assert first.probe.source.value.registry is None
    assert second.probe.source.value.registry.user_info == "me:mine"


def test_equal_passwords_are_one_secret_and_other_ones_are_no_stream():
    assert [secret.name for secret in plan_script(SCRIPT).inline_secrets] == ["inline-a-password"]
    with pytest.raises(SqlError, match=r'option "properties\.sasl\.password" differs') as caught:
        plan_script(SCRIPT.replace("of-a", "of-b", 1))
    assert "of-a" not in str(caught.value)


def test_each_topic_has_the_columns_of_its_table_and_rows_come_of_their_own():
    names = [DatasetName("kafka://broker:9092", topic) for topic in "abc"]
    of_b = (("no", "INT"), ("of", "STRING"))
    inputs = [(each.dataset, each.columns) for each in datasets.inputs(planned())]
    assert inputs == [(names[0], (("id", "BIGINT"),)), (names[1], of_b), (names[2], of_b)]
    ((_, made_of),) = datasets.outputs(planned())
    assert [(o.dataset, o.column) for o in made_of["id"]] == [
        (names[0], "id"), (names[1], "no"), (names[2], "no")
    ]  # fmt: skip


@pytest.mark.parametrize(("topic", "line"), [("a", 1), ("b;c", 3), ("z", 1)])
def test_a_fault_is_told_where_the_table_names_it(topic, line):
    with pytest.raises(SourceError) as caught, told_where(SCRIPT, "a", "b"):
        raise SourceError(f'topic "{topic}" is gone', hint="Create it.")
    assert caught.value.message.startswith(f"line {line}, ")
