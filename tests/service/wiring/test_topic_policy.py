"""A cluster whose policy refuses a config of our topics is told by name, and with its setting."""

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from joins.adapters.kafka.cluster import KafkaCluster, topic_policy
from joins.plan.errors import SourceError
from joins.plan.plan import KafkaOptions
from service.config import Settings
from service.embedded.broker import BrokerSettings, KafkaBroker
from service.wiring.meta import TOPIC_SETTINGS, topic_config

_POLICY = """
import java.util.Map;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.CreateTopicPolicy;

public class ManagedPolicy implements CreateTopicPolicy {
    public void configure(Map configs) {}
    public void close() {}
    public void validate(CreateTopicPolicy.RequestMetadata request) {
        Map configs = request.configs();
        String bytes = (String) configs.get("max.message.bytes");
        if (bytes != null && Long.parseLong(bytes) > 8388608L)
            throw new PolicyViolationException("messages are too large");
        String age = (String) configs.get("retention.ms");
        if (age != null && Long.parseLong(age) < 0L)
            throw new PolicyViolationException("not allowed here");
    }
}
"""
_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"  # Janino, which Spark brings


@pytest.fixture(scope="module")
def managed(tmp_path_factory, java, broker_jars):
    """A broker with a policy of its own, as managed ones have."""
    directory = tmp_path_factory.mktemp("managed")
    source = directory / "ManagedPolicy.java"
    source.write_text(_POLICY)
    of_spark = Path(pyspark.__file__).parent / "jars"
    compiler = [*of_spark.glob("janino-*.jar"), *of_spark.glob("commons-compiler-*.jar")]
    jars = os.pathsep.join(map(str, [*broker_jars, *compiler]))
    command = [java.executable, "-cp", jars, _COMPILER, "-d", directory, "-classpath", jars, source]
    subprocess.run(list(map(str, command)), check=True, timeout=120)
    settings = BrokerSettings(
        heap="256m", properties={"create.topic.policy.class.name": "ManagedPolicy"}
    )
    with KafkaBroker(directory / "kafka", java, [*broker_jars, directory], settings) as broker:
        yield broker


def create(broker, settings, **more):
    cluster = KafkaCluster(KafkaOptions(broker.bootstrap_servers, ""))
    config = {**topic_config(settings), **more}
    cluster.create("sluice.job.goods", 1, 1, config, settings=TOPIC_SETTINGS)
    return cluster


def test_a_policy_is_told_by_the_configs_that_it_refuses_and_kept_by_their_settings(
    managed, tmp_path
):
    with pytest.raises(SourceError) as caught:
        create(managed, Settings.load(data_dir=tmp_path))
    assert "refuses retention.ms=-1, max.message.bytes=67108864" in caught.value.message
    named = "Set SLUICE_CHANGELOG_RETENTION_MS, SLUICE_CHANGELOG_MAX_MESSAGE_BYTES to a value"
    assert named in caught.value.hint
    allowed = Settings.load(
        data_dir=tmp_path, changelog_retention_ms=86_400_000, changelog_max_message_bytes=1 << 20
    )
    cluster = create(managed, allowed)
    assert cluster.require("sluice.job.goods").partitions == (0,)
    assert topic_policy(cluster, "sluice.job.goods").retention.max_age_ms == 86_400_000


def test_a_config_that_is_none_of_ours_is_told_by_its_name(kafka, tmp_path):
    """Of a value that no broker takes the same is said."""
    with pytest.raises(SourceError) as caught:
        create(kafka, Settings.load(data_dir=tmp_path), **{"cleanup.policy": "neither"})
    assert "refuses cleanup.policy=neither" in caught.value.message
    assert "Set cleanup.policy to a value" in caught.value.hint
