"""Kafka's own names: each has an effect, is refused with what to do, or is warned of."""

import pytest

from service.sql.catalog.connectors import CONNECTORS
from service.sql.planner.planner import plan_script
from service.sql.text.script import SqlError
from tests.service.sql.scripts import JOIN, TABLES

PREFIX = "properties."
REFUSED = {  # name → words of what is said
    "sasl.jaas.config": "properties.sasl.username",
    "transactional.id": "'sink.transactional-id-prefix' instead",
    **dict.fromkeys(("ssl.truststore.password", "ssl.keystore.password"), "ssl.key.password"),
    **dict.fromkeys(("sasl.kerberos.service.name", "sasl.kerberos.kinit.cmd"), "no Kerberos"),
    **dict.fromkeys(
        (
            *("sasl.login.class", "sasl.login.callback.handler.class"),
            *("sasl.client.callback.handler.class", "sasl.login.refresh.window.factor"),
            "sasl.oauthbearer.jwks.endpoint.url",
        ),
        "renewed before it expires",
    ),
}
WITHOUT_EFFECT = {  # name → words of the warning
    "partition.discovery.interval.ms": "found before each batch",
    "max.poll.records": "'scan.max-records-per-batch'",
    "client.id.prefix": "'properties.client.id'",
    **dict.fromkeys(("enable.auto.commit", "auto.commit.interval.ms"), "behind each batch"),
    **dict.fromkeys(
        (
            *("session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms"),
            *("partition.assignment.strategy", "group.instance.id", "group.protocol"),
            "group.remote.assignor",
        ),
        "not a member of a consumer group",
    ),
    **dict.fromkeys(
        (
            *("acks", "retries", "batch.size", "linger.ms", "buffer.memory", "max.block.ms"),
            *("enable.idempotence", "max.request.size", "delivery.timeout.ms"),
            *("transaction.timeout.ms", "max.in.flight.requests.per.connection"),
            *("partitioner.class", "partitioner.ignore.keys", "compression.gzip.level"),
        ),
        "a sink sends whole batches",
    ),
    **dict.fromkeys(
        (
            *("key.deserializer", "value.deserializer", "key.serializer", "value.serializer"),
            *("interceptor.classes", "metric.reporters", "metrics.num.samples"),
            *("security.providers", "register.consumer.metrics"),
        ),
        "configures the Java client",
    ),
    **dict.fromkeys(
        (
            *("fetch.min.bytes", "fetch.max.wait.ms", "check.crcs", "client.rack"),
            "client.dns.lookup",
            *("request.timeout.ms", "default.api.timeout.ms", "exclude.internal.topics"),
            *("socket.connection.setup.timeout.ms", "allow.auto.create.topics"),
            "metadata.recovery.strategy",
        ),
        "read from partition leaders",
    ),
    **dict.fromkeys(
        (
            *("ssl.protocol", "ssl.enabled.protocols", "ssl.cipher.suites", "ssl.provider"),
            "ssl.engine.factory.class",
        ),
        "TLS 1.2 or 1.3",
    ),
}


def script(option: str) -> str:
    tables = TABLES.replace("'format' = 'json'", f"'format' = 'json', {option}", 1)
    sink = "CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');"
    return f"{tables}{sink} INSERT INTO o SELECT s.k {JOIN};"


@pytest.mark.parametrize(("name", "words"), REFUSED.items(), ids=REFUSED)
def test_a_name_that_changes_more_is_refused_with_what_to_do(name, words):
    with pytest.raises(SqlError, match=f'has no option "properties.{name}"') as caught:
        plan_script(script(f"'{PREFIX}{name}' = '1'"))
    assert words in caught.value.hint
    instead = caught.value.hint.split("'")[1] if "instead" in caught.value.hint else ""
    assert not instead or instead in {o.key for o in CONNECTORS["kafka"].options}


@pytest.mark.parametrize(("name", "words"), WITHOUT_EFFECT.items(), ids=WITHOUT_EFFECT)
def test_a_name_without_effect_is_warned_of_with_what_is_used(name, words):
    planned = plan_script(script(f"'{PREFIX}{name}' = '1'"))
    (warning,) = [text for text in planned.warnings if name in text]
    assert words in warning
    without = plan_script(script("'scan.parallelism' = '1'")).plan
    assert planned.plan.probe.source == without.probe.source


def test_a_preview_tells_no_group_where_it_is():
    tables = TABLES.replace(
        "'format' = 'json'", "'format' = 'json', 'properties.group.id' = 'g'", 1
    )
    topic = (
        "CREATE TABLE t (id BIGINT PRIMARY KEY NOT ENFORCED) WITH ('connector' = 'upsert-kafka', "
        "'topic' = 't', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', "
        "'value.format' = 'json', 'properties.group.id' = 'g');"
    )
    joined = "FROM s JOIN t FOR SYSTEM_TIME AS OF s.p ON s.k = t.id;"
    preview = plan_script(f"{tables}{topic} SELECT s.k {joined}").plan
    sink = "CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');"
    job = plan_script(f"{tables}{topic}{sink} INSERT INTO o SELECT s.k {joined}").plan
    for plan, group in ((preview, None), (job, "g")):
        sources = (plan.probe.source, plan.dimensions[0].source)
        assert [source.kafka.reported_group for source in sources] == [group, group]


def test_an_unknown_name_is_warned_of_and_a_misspelt_one_is_refused():
    warnings = plan_script(script("'properties.x' = 'y'")).warnings
    (warning,) = [text for text in warnings if "properties.x" in text]
    assert "has no effect" in warning
    with pytest.raises(SqlError) as caught:
        plan_script(script("'properties.client.idd' = 'c'"))
    assert "properties.client.id" in caught.value.hint
    assert plan_script(script("'properties.client.id' = 'c'")).plan
