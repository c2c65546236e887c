"""The `datagen` source: a process of ours that fills an internal Kafka topic at a steady rate.

`python -m joins.adapters.datagen` reads its configuration as one JSON line on standard input and
ends when standard input closes. The topic has one partition, and the record at offset `i` is row
`i` of the stream.
"""

import json
import os
import sys
import threading
import time
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from kafka import KafkaProducer

from joins.adapters.datagen.texts import texts_of
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.options import client_options
from joins.adapters.process.redacted_output import redact_standard_error
from joins.kernels.changelog.envelope import now_ms
from joins.kernels.json.encode import encode_objects
from joins.kernels.probe.generate import Material, generate, row_limit
from joins.plan.errors import SourceError
from joins.plan.plan import DatagenField, DatagenKind, DatagenSource, Field, KafkaOptions
from joins.plan.types import SqlType
from watermark.errors import keep, secrets_in

_TICK_S = 0.05
_ACKNOWLEDGED_WITHIN_S = 30
_END_S = 2.0
_PRODUCER = {
    "acks": "all",
    "linger_ms": 5,
    "delivery_timeout_ms": 3_600_000,  # nothing expires singly: what landed is always a prefix
}


def datagen_config(
    kafka: KafkaOptions, source: DatagenSource, fields: tuple[Field, ...], seed: int
) -> dict[str, Any]:
    return {
        "secrets": secrets_in(kafka.properties),
        "bootstrap_servers": kafka.bootstrap_servers,
        "topic": kafka.topic,
        "properties": [list(p) for p in kafka.properties],
        "acknowledged_within_s": _ACKNOWLEDGED_WITHIN_S,
        "rows_per_second": source.rows_per_second,
        "number_of_rows": row_limit(source),
        "seed": seed,
        "fields": [[f.name, asdict(f.type)] for f in fields],
        "rules": [asdict(rule) for rule in source.fields],
    }


def _rules(config: dict[str, Any]) -> tuple[tuple[Field, ...], tuple[DatagenField, ...]]:
    fields = tuple(Field(name, SqlType.of_json(kind)) for name, kind in config["fields"])
    rules = tuple(
        DatagenField(**{**r, "generator": DatagenKind(r["generator"])}) for r in config["rules"]
    )
    return fields, rules


def _run(config: dict[str, Any], stopping: threading.Event) -> None:
    kafka = KafkaOptions.of_json(config)
    fields, rules = _rules(config)
    limit, texts = config["number_of_rows"], texts_of(rules, config["seed"])
    row = KafkaCluster(kafka).end_offsets(kafka.topic)[0]
    producer = KafkaProducer(**client_options(kafka), **_PRODUCER)
    started, first = time.monotonic(), row
    try:
        while not stopping.wait(_TICK_S) and (limit is None or row < limit):
            due = first + int((time.monotonic() - started) * config["rows_per_second"])
            due = min(due, row + 20_000, *([] if limit is None else [limit]))
            if due <= row:
                continue
            material = Material(now_ms(), texts)
            batch = generate(fields, rules, config["seed"], range(row, due), material)
            within_s = config["acknowledged_within_s"]
            _send(producer, kafka.topic, encode_objects(batch), last_row=due - 1, within_s=within_s)
            row = due
    finally:
        producer.close(timeout=1)  # what is not acknowledged is generated again


def _send(
    producer: KafkaProducer, topic: str, values: pa.Array, *, last_row: int, within_s: float
) -> None:
    """Write rows and wait until they have the offsets of their numbers."""
    for value in values.to_pylist():
        sent = producer.send(topic, value=value.encode(), partition=0)
    offset = sent.get(timeout=within_s).offset
    if offset != last_row:
        raise SourceError(
            f'topic "{topic}" took row {last_row} at offset {offset}',
            hint="Another program writes to this topic, or records were lost; the generator goes on"
            " at the topic's end.",
        )


def main() -> None:
    """Entry of the datagen process."""
    redact_standard_error()
    config = json.loads(sys.stdin.readline())
    keep(config["secrets"])
    stopping = threading.Event()

    def wait_for_parent() -> None:
        sys.stdin.read()
        stopping.set()
        time.sleep(_END_S)
        os._exit(0)  # nobody waits for Kafka's answer any more; the next generator asks for the end

    threading.Thread(target=wait_for_parent, daemon=True).start()
    _run(config, stopping)
