"""One table after the other, copied and followed into one topic by the product, without Spark."""

import threading
import time
from collections.abc import Sequence
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from joins.adapters.mysql import binlog as mysql_binlog
from joins.adapters.mysql.chunks import Chunk, SnapshotTask, snapshot_chunk_records
from joins.adapters.mysql.connection import MysqlConnectionConfig
from joins.adapters.mysql.position import server_identity, take_high, take_low
from joins.adapters.mysql.sender import CdcConfig
from joins.adapters.mysql.source import check_source, choose_server_id
from joins.adapters.topic.producer import TopicProducer
from joins.plan.plan import Field, KafkaOptions
from tests.reliability.experiment import Lab
from tests.support.cdc import KeptEvents
from tests.support.copies import copy_of
from tests.support.topics import create_topic, delete_topics
from tests.support.wait import wait_until

Rows = dict[tuple[str, ...], dict[str, str | None]]


def as_text(rows: dict[tuple[Any, ...], dict[str, Any]]) -> Rows:
    return {
        tuple(map(str, key)): {n: None if v is None else str(v) for n, v in row.items()}
        for key, row in rows.items()
    }


class Followed:
    """The product's own CDC session and snapshot reader, and the topic that they write."""

    def __init__(self, lab: Lab, experiment: str, table: str, fields: Sequence[Field]) -> None:
        servers = lab.kafka.bootstrap_servers
        self._fields = tuple(fields)
        self._offsets = lab.place(experiment)
        self._kafka = KafkaOptions(servers, create_topic(servers, partitions=1))
        self._producer = TopicProducer(self._kafka, 1, table)
        self._part = TopicPartition(self._kafka.topic, 0)
        self._consumer = KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False)
        self._consumer.assign([self._part])
        self._consumer.seek_to_beginning(self._part)
        self._records: list[Any] = []
        self._generation = 0
        self._told = KeptEvents()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    def close(self) -> None:
        """End everything."""
        self.end()
        self._producer.close()
        self._consumer.close()
        delete_topics(self._kafka.bootstrap_servers, self._kafka.topic)

    def start(self, connection: MysqlConnectionConfig) -> None:
        """Copy the table under a new generation and follow the binlog from before."""
        self.end()
        self._generation += 1
        table = check_source(connection, self._fields, ("id",))
        connection = connection.of_server(server_identity(connection))
        low = take_low(connection, self._generation)
        config = CdcConfig(
            connection=connection,
            table=table,
            server_id=choose_server_id(connection),
            low=low,
            generation=self._generation,
            kafka=self._kafka,
            partitions=1,
            offset_file=self._offsets / f"{self._generation}.json",
        )
        task = SnapshotTask(connection, table, low.position, self._generation, 1)
        for batch in snapshot_chunk_records(task, Chunk(None, None)):
            self._producer.send(batch)
        self._told = told = KeptEvents()
        self._thread = threading.Thread(target=mysql_binlog.run, args=(config, told), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the session."""
        self._told.stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=300)
            self._thread = None

    def wait_until_it_follows(self) -> None:
        self._answer("streaming")

    def settled(self, connection: MysqlConnectionConfig) -> dict[str, Any] | None:
        """Wait until the session has read all there is; the error that ended it, if one did."""
        told, high = self._told, take_high(connection, self._generation).position
        place = {"epoch": high.epoch, "file": high.file, "pos": high.pos}
        told.events = [event for event in told.events if event["event"] == "error"]
        told.on_command({"high": place, "generation": self._generation})
        found = self._answer("watermark")
        if found["event"] == "error":
            return found
        self._read_through(int(found["partitions"][0]["offset"]))
        return None

    def _answer(self, event: str) -> dict[str, Any]:
        told = self._told
        found = wait_until(
            lambda: told.find("error", retry=False) or told.find(event),
            deadline_s=60,
            what="an answer of the source",
        )
        assert found is not None
        return found

    def _read_through(self, offset: int) -> None:
        deadline = time.monotonic() + 300
        while self._consumer.position(self._part) <= offset:
            assert time.monotonic() < deadline, "the topic's records do not come"
            for batch in self._consumer.poll(timeout_ms=200).values():
                self._records.extend(batch)

    def rows(self) -> Rows:
        """What the topic says that the table is."""
        return as_text(copy_of(self._records, 1).rows)
