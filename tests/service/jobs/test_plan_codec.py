"""Plans of older versions are read as they were meant."""

import json
from dataclasses import replace

from joins.plan.connections import RegistryOptions
from joins.plan.formats import JSON_FORMAT, KafkaFormat, RecordFormat, RecordKey
from joins.plan.plan import KafkaOptions, KafkaSink, SnapshotEvidence, TopicSource
from service.jobs.store import plan_codec
from tests.support.probe import PLAN, USERS

KAFKA = KafkaOptions("broker:9092", "t")
REGISTRY = RegistryOptions("http://registry:8081")
LAYOUT = (("layout", "flat"),)
DEBEZIUM = RecordFormat(KafkaFormat.DEBEZIUM_AVRO_CONFLUENT, LAYOUT, REGISTRY)


def older(source):
    named = {**source, "format": source["value"]["name"]}
    return {key: value for key, value in named.items() if key not in ("value", "key")}


def test_a_sink_keeps_its_key_and_its_format():
    plan = replace(
        PLAN, sink=KafkaSink(KAFKA, RecordFormat(KafkaFormat.DEBEZIUM_JSON), RecordKey(("a", "b")))
    )
    document = json.loads(plan_codec.dump(plan))
    sink = older(document["sink"]) | {"key_fields": ["a", "b"]}
    assert plan_codec.load(json.dumps(document | {"sink": sink}).encode()) == plan
    without = replace(plan, sink=KafkaSink(KAFKA))
    sink |= {"key_fields": [], "format": "json"}
    assert plan_codec.load(json.dumps(document | {"sink": sink}).encode()) == without


def test_a_topic_keeps_its_options_and_its_registry():
    for value, evidence, by_null, key in (
        (DEBEZIUM, SnapshotEvidence(), True, None),
        (JSON_FORMAT, None, True, RecordKey(("id",))),
        (JSON_FORMAT, None, False, None),
    ):
        source = TopicSource(KAFKA, value, evidence, by_null, key)
        plan = replace(PLAN, dimensions=(replace(USERS, source=source),))
        document = json.loads(plan_codec.dump(plan))
        (dimension,) = document["dimensions"]
        old = older(dimension["source"]) | {"format_options": list(value.options)}
        old["registry"] = None if value.registry is None else {"url": REGISTRY.url}
        document["dimensions"] = [dimension | {"source": old}]
        assert plan_codec.load(json.dumps(document).encode()) == plan
