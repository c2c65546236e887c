"""A CDC process under test, spoken to as the runner speaks to it."""

import contextlib
import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from joins.adapters.mysql import binlog as mysql_binlog
from joins.adapters.mysql.position import BinlogMark, server_identity, take_low
from joins.adapters.mysql.repair import Repair
from joins.adapters.mysql.sender import CdcConfig
from joins.adapters.mysql.source import check_source, choose_server_id
from joins.durable.codec import as_json
from joins.plan.plan import Field, KafkaOptions
from joins.plan.types import SqlType, TypeName
from service.embedded.database import MariaDb
from tests.support.quick_start import quick_start
from tests.support.sql import cdc_connection, new_schema
from tests.support.topics import consume, create_topic, delete_topics, end_offsets
from tests.support.wait import wait_until

PARTITIONS = 2
FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("v", SqlType(TypeName.STRING)))
TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(50))"


@contextmanager
def captured_table(
    database: MariaDb,
    bootstrap: str,
    directory: Path,
    *statements: str,
    columns: tuple[Field, ...] = FIELDS,
    table: str = TABLE,
) -> Iterator[tuple[str, CdcConfig]]:
    """(schema, configuration of a CDC process) of a new table and topic."""
    with new_schema(database, table, *statements) as schema:
        topic = create_topic(bootstrap, partitions=PARTITIONS)
        try:
            kafka = KafkaOptions(bootstrap, topic)
            yield schema, config_of(database, schema, kafka, directory, columns)
        finally:
            delete_topics(bootstrap, topic)


def config_of(
    database: MariaDb,
    schema: str,
    kafka: KafkaOptions,
    directory: Path,
    columns: tuple[Field, ...] = FIELDS,
) -> CdcConfig:
    connection = cdc_connection(database, schema)
    return CdcConfig(
        connection=connection.of_server(server_identity(connection)),
        table=check_source(connection, columns, ("id",)),
        server_id=choose_server_id(connection),
        low=take_low(connection, 0),
        generation=1,
        kafka=kafka,
        partitions=PARTITIONS,
        offset_file=directory / "sources" / "t.cdc.json",
    )


def records_of(config: CdcConfig) -> list[Any]:
    kafka = config.kafka
    count = sum(end_offsets(kafka.bootstrap_servers, kafka.topic).values())
    return list(consume(kafka.bootstrap_servers, kafka.topic, count=count)) if count else []


def position_of(value: dict[str, Any]) -> tuple[int, int, int]:
    source = value["source"]
    return source["file"], source["pos"], source["row"]


def newest(records: list[Any], key_of: str = "id") -> dict[Any, str | None]:
    """The table as the records tell it."""
    found: dict[Any, tuple[Any, str | None]] = {}
    for record in records:
        value = json.loads(record.value)
        if value["op"] != "w":
            key = json.loads(record.key)[key_of]
            after = value["after"] and value["after"]["v"]
            order = (position_of(value), record.offset)
            found[key] = max(found.get(key, (order, after)), (order, after), key=lambda f: f[0])
    return {key: after for key, (_, after) in found.items() if after is not None}


class CdcProcess:
    """The process and every event that it told, in order."""

    def __init__(self, config: CdcConfig) -> None:
        self._process = subprocess.Popen(
            quick_start("joins.adapters.mysql.binlog"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.events: list[dict[str, Any]] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._say({"config": as_json(config)})

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.events.append(json.loads(line))

    def _say(self, command: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    @property
    def pid(self) -> int:
        return self._process.pid

    def repair(self, repair: Repair) -> dict[str, Any]:
        """The answer to an order to send rows again."""
        self._say({"repair": as_json(repair)})
        return self.wait_for("repaired", lambda e: e["id"] == repair.id)

    def high(self, mark: BinlogMark, generation: int = 1) -> None:
        place = mark.position
        at = {"epoch": place.epoch, "file": place.file, "pos": place.pos}
        self._say({"high": at, "generation": generation})

    def wait_for(
        self,
        kind: str,
        that: Callable[[dict[str, Any]], bool] = lambda _: True,
        *,
        deadline_s: float = 30,
    ) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            return next((e for e in [*self.events] if e["event"] == kind and that(e)), None)

        try:
            return wait_until(found, deadline_s=deadline_s, what=f'event "{kind}"')
        except TimeoutError as exc:
            ended = f"; it ended with {self._process.poll()}; its last events:"
            raise TimeoutError(f"{exc}{ended} {self.events[-3:]}") from None

    def wait_for_position(self, mark: BinlogMark) -> None:
        place = (mark.position.file, mark.position.pos)
        self.wait_for(
            "progress",
            lambda e: (e["acknowledged"]["file"], e["acknowledged"]["pos"]) >= place,
            deadline_s=60,
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        self._say({"stop": True})
        return self._process.wait(timeout=120)

    def end_input(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(timeout=120)

    def exit_code(self) -> int:
        return self._process.wait(timeout=300)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
        self._listener.join(timeout=60)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()


class KeptEvents(mysql_binlog.BinlogProtocol):
    """The events of a binlog session, kept instead of written to standard output."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []

    def tell(self, event: str, value: Mapping[str, Any]) -> None:
        self.events.append({"event": event, **value})

    def find(self, event: str, **members: object) -> dict[str, Any] | None:
        """The last event of that name with these members."""
        named = (each for each in reversed([*self.events]) if each["event"] == event)
        return next((each for each in named if members.items() <= each.items()), None)
