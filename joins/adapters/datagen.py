"""The `datagen` source: a process that fills an internal Kafka topic at a steady rate.

It reads its configuration, one JSON line, from standard input, and ends with that input. The topic
has one partition; the record at offset `i` is row `i`.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import structlog
from kafka import KafkaProducer

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.options import client_options
from joins.adapters.process.sessions import redact_standard_error
from joins.durable.codec import from_json
from joins.kernels.changelog.envelope import now_ms
from joins.kernels.json.encode import encode_objects
from joins.kernels.probe.generate import Material, generate, row_limit
from joins.plan.errors import SourceError
from joins.plan.faker import TEXTS, calls_of
from joins.plan.plan import DatagenField, DatagenSource, Field, KafkaOptions
from watermark.errors import keep, secrets_in

_OF_EACH = 2_000


def texts_of(rules: Iterable[DatagenField], seed: int) -> dict[str, pa.Array]:
    """Name of each kind of text in `rules` → values, the same for the same seed."""
    names = {
        call.name
        for rule in rules
        if rule.expression is not None
        for call in calls_of(rule.expression)
        if call.name in TEXTS
    }
    if not names:
        return {}
    from faker import Faker  # takes a quarter of a second, and every runner imports this module

    made = {}
    for name in sorted(names):
        faker = Faker()
        faker.seed_instance(f"{seed} {name}")
        provide = getattr(faker, TEXTS[name])
        made[name] = pa.array([str(provide()) for _ in range(_OF_EACH)], pa.string())
    return made


_TICK_S = 0.05
_ACKNOWLEDGED_WITHIN_S = 30
_END_S = 2.0
_PRODUCER = {
    "acks": "all",
    "linger_ms": 5,
    "delivery_timeout_ms": 3_600_000,  # no record expires alone: what is written is always a prefix
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
        "fields": [asdict(f) for f in fields],
        "rules": [asdict(rule) for rule in source.fields],
    }


def _rules(config: dict[str, Any]) -> tuple[tuple[Field, ...], tuple[DatagenField, ...]]:
    fields = tuple(from_json(Field, each) for each in config["fields"])
    return fields, tuple(from_json(DatagenField, each) for each in config["rules"])


def _run(config: dict[str, Any], stopping: threading.Event) -> None:
    kafka = from_json(KafkaOptions, config)
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
    redact_standard_error()
    config = json.loads(sys.stdin.readline())
    keep(config["secrets"])
    stopping = threading.Event()

    def wait_for_parent() -> None:
        sys.stdin.read()
        stopping.set()
        time.sleep(_END_S)
        os._exit(0)  # without waiting for Kafka's answer; the next generator asks for the end

    threading.Thread(target=wait_for_parent, daemon=True).start()
    _run(config, stopping)


_BACKOFF_S = (1.0, 15.0)
_HEALTHY_S = 60.0
_log = structlog.get_logger(__name__)


class DatagenProcess:
    """Keeps one generator process alive; `keep_alive` needs a thread for the life of the job."""

    def __init__(
        self, kafka: KafkaOptions, source: DatagenSource, fields: tuple[Field, ...], seed: int
    ) -> None:
        self._config = datagen_config(kafka, source, fields, seed)
        self._child: subprocess.Popen[str] | None = None
        self._started_at = 0.0
        self._start_at: float | None = 0.0
        self._wait_s = _BACKOFF_S[0]

    def keep_alive(self) -> None:
        """Start the generator, and restart it after a failure until it has made its last row.

        The pause between restarts doubles until a generator has lived for a minute.
        """
        if self._start_at is None:
            self._look()
        elif time.monotonic() >= self._start_at:
            self._start()

    def _look(self) -> None:
        code = None if self._child is None else self._child.poll()
        if code not in (None, 0):
            self._failed(f"exit code {code}")

    def _failed(self, cause: str) -> None:
        now = time.monotonic()
        if now - self._started_at > _HEALTHY_S:
            self._wait_s = _BACKOFF_S[0]
        self._start_at = now + self._wait_s
        _log.warning("generator failed", cause=cause, retry_in_s=self._wait_s)
        self._wait_s = min(2 * self._wait_s, _BACKOFF_S[1])

    def _start(self) -> None:
        self._release()
        self._started_at, self._start_at = time.monotonic(), None
        try:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "joins.adapters.datagen"], stdin=subprocess.PIPE, text=True
            )
            assert self._child.stdin is not None
            self._child.stdin.write(json.dumps(self._config) + "\n")
            self._child.stdin.flush()
        except OSError as exc:  # it has ended already, or there is no room for another process
            self._failed(str(exc))

    def _release(self) -> None:
        """End the previous process, which may still run if writing its configuration failed."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        with contextlib.suppress(OSError):
            assert child.stdin is not None
            child.stdin.close()


if __name__ == "__main__":
    main()
