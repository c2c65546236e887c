"""Topics as a connector writes them, made record by record; and a feed that follows one."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kafka import KafkaProducer

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.process.sessions import SourceProtocol
from joins.adapters.topic.feed import TopicFeedSession
from joins.adapters.topic.feed_state import TopicFeedConfig
from joins.adapters.topic.producer import TopicProducer
from joins.plan.formats import KafkaFormat, RecordFormat
from joins.plan.plan import Field, KafkaOptions, SnapshotEvidence, TopicSource
from joins.plan.types import SqlType, TypeName
from tests.support.copies import Copy, copy_of
from tests.support.topics import SOON, consume, create_topic, unique_name

FIELDS = (
    Field("id", SqlType(TypeName.BIGINT), nullable=False),
    Field("name", SqlType(TypeName.STRING)),
)
SETTLED = SnapshotEvidence(settle_ms=0)


@dataclass
class Connector:
    """Writes envelopes of the table `shop.users` (`id`, `name`) as Debezium does, by its own clock.

    Attributes:
        prefix: its name, the first part of its topics and in its source blocks.
        topic: a transformation's; if there is none, of the connector's name and the table's.
        at_ms: the time of the next record.
        key_bytes: writes a key, and `value_bytes` a value; those of notifications are JSON.
    """

    servers: str
    partitions: int = 1
    prefix: str = field(default_factory=lambda: unique_name("conn"))
    config: dict[str, str] = field(default_factory=dict)
    at_ms: int = field(default_factory=lambda: int(time.time() * 1000) - 600_000)
    key_bytes: Callable[[Any], bytes] = lambda key: _bytes(key)
    value_bytes: Callable[[Any], bytes] = lambda value: _bytes(value)
    topic: str = ""

    def __post_init__(self) -> None:
        self.topic = self.topic or f"{self.prefix}.shop.users"
        self.notices = f"{self.prefix}.notices"
        create_topic(self.servers, self.topic, partitions=self.partitions, config=self.config)
        create_topic(self.servers, self.notices)
        self._producer = KafkaProducer(bootstrap_servers=self.servers, acks="all", **SOON)

    def close(self) -> None:
        self._producer.close()

    def tick(self, ms: int = 10) -> int:
        self.at_ms += ms
        return self.at_ms

    def send(self, key: Any, value: Any, *, partition: int | None = None) -> None:
        identity = key["id"] if isinstance(key, dict) else 0
        where = identity % self.partitions if partition is None else partition
        if isinstance(value, dict) and "source" in value:
            value["source"].setdefault("name", self.prefix)
        self._producer.send(
            self.topic,
            value=value if value is None else self.value_bytes(value),
            key=None if key is None else self.key_bytes(key),
            partition=where,
            timestamp_ms=self.tick(),
        ).get(timeout=300)

    def snapshot(
        self, rows: Mapping[int, str], *, is_whole: bool = True, marks: bool = True
    ) -> int:
        """Rows with their marks; when they were read."""
        source = self.tick(2_000)
        for number, (key, name) in enumerate(rows.items()):
            mark = "true"
            if marks and is_whole and number == len(rows) - 1:
                mark = "last_in_data_collection"
            elif marks and number == 0:
                mark = "first_in_data_collection"
            self.send({"id": key}, envelope("r", None, row(key, name), mark, source))
        return source

    def change(self, key: int, name: str | None) -> None:
        """An upsert, or a delete with its tombstone."""
        if name is not None:
            self.send({"id": key}, envelope("u", None, row(key, name), "false", self.tick()))
            return
        self.send({"id": key}, envelope("d", row(key, "?"), None, "false", self.tick()))
        self.send({"id": key}, None)

    def incremental(self, key: int, name: str) -> None:
        self.send({"id": key}, envelope("r", None, row(key, name), "incremental", self.tick()))

    def truncate(self) -> None:
        self.send(None, envelope("t", None, None, "false", self.tick()))

    def notify(self, kind: str, **data: str) -> None:
        value = {
            "id": unique_name("id"),
            "aggregate_type": "Initial Snapshot",
            "type": kind,
            "additional_data": {"connector_name": self.prefix, **data},
            "timestamp": str(self.tick(1)),
        }
        self._producer.send(self.notices, value=_bytes(value)).get(timeout=300)

    def scanned(self, rows: int) -> None:
        self.notify(
            "TABLE_SCAN_COMPLETED",
            scanned_collection="shop.users",
            total_rows_scanned=str(rows),
            status="SUCCEEDED",
        )


def row(key: int, name: str) -> dict[str, Any]:
    return {"id": key, "name": name}


def envelope(op: str, before: Any, after: Any, snapshot: str, source_ms: int) -> dict[str, Any]:
    source = {
        "version": "3.5.0.Final",
        "connector": "mariadb",
        "ts_ms": source_ms,
        "db": "shop",
        "table": "users",
        "snapshot": snapshot,
    }
    return {"before": before, "after": after, "op": op, "source": source, "ts_ms": source_ms}


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


class Told(SourceProtocol):
    """A protocol that remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []

    def tell(self, event: str, value: Mapping[str, Any]) -> None:
        self.events.append({"event": event, **value})

    @property
    def state(self) -> dict[str, Any]:
        return next(e["state"] for e in reversed(self.events) if "state" in e)


@dataclass
class TopicFeed:
    """A feed of a connector's topic, and what it has written."""

    config: TopicFeedConfig
    told: Told = field(default_factory=Told)

    @contextmanager
    def session(self) -> Iterator[TopicFeedSession]:
        session = TopicFeedSession(self.config, self.told)
        try:
            yield session
        finally:
            session.close()

    def run(self, session: TopicFeedSession | None = None) -> dict[str, Any]:
        """Do all that there is to do now; the state that is told."""
        if session is None:
            with self.session() as own:
                return self.run(own)
        config = self.config
        producer = TopicProducer(config.kafka, config.partitions, config.source.kafka.topic)
        session._notices_at_s = session._described_at_s = 0.0
        try:
            while session.step(producer):
                pass
            session.step(producer)
            session._store()
            session._report("progress")
        finally:
            producer.close()
        return self.told.state

    def copy(self) -> Copy:
        kafka = self.config.kafka
        return copy_of(consume(kafka.bootstrap_servers, kafka.topic), self.config.partitions)

    def rows(self) -> dict[int, str]:
        return {row["id"]: row["name"] for row in self.copy().rows.values()}


def topic_feed(
    connector: Connector,
    directory: Path,
    evidence: SnapshotEvidence | None = SETTLED,
    **source: Any,
) -> TopicFeed:
    """A feed of the connector's topic with its state in `directory`."""
    changelog = create_topic(connector.servers, partitions=connector.partitions)
    kafka = KafkaOptions(connector.servers, connector.topic)
    if evidence is None and "end_offsets" not in source:
        ends = KafkaCluster(kafka).end_offsets(connector.topic)
        source["end_offsets"] = tuple(sorted(ends.items()))
    made = TopicSource(
        kafka=kafka,
        value=source.pop("value", RecordFormat(KafkaFormat.DEBEZIUM_JSON)),
        evidence=evidence,
        changelog_partitions=connector.partitions,
        **source,
    )
    return TopicFeed(
        TopicFeedConfig(
            source=made,
            fields=FIELDS,
            primary_key=("id",),
            kafka=KafkaOptions(connector.servers, changelog),
            state_file=directory / "source.json",
            decisions_file=directory / "decisions.json",
        )
    )


def heard(connector: Connector, **more: Any) -> SnapshotEvidence:
    return replace(SETTLED, notifications_topic=connector.notices, **more)
