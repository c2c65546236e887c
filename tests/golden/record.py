"""Record what real connectors write of every column type, in every mode: `make golden`.

Each mode is a connector of its own on the same tables; all of them copy, then stream the same
statements. A line of a file is a record as it lay in Kafka, with the number of the row, in
`rows.json`, that the database itself has shown as text before and after.
"""

import argparse
import base64
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import typer

from service.config import Settings
from service.embedded.broker import KafkaBroker
from service.embedded.connect import (
    ConnectSettings,
    KafkaConnect,
    postgres_connector,
    publish,
)
from service.embedded.database import MariaDb
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import find_java
from service.embedded.postgres import PostgreSql
from service.embedded.server import DatabaseSettings
from tests.golden import mariadb_tables, modes, postgres_tables
from tests.golden.columns import Table
from tests.support.apicurio import ApicurioRegistry
from tests.support.debezium import mariadb_connector
from tests.support.topics import consume, end_offsets
from tests.support.wait import wait_until

HERE = Path(__file__).parent
NAME = "golden"
LAST = "shape_altered"  # the table whose statements come last: its column is dropped
Row = dict[str, str | None]


@dataclass
class Truth:
    """What the database itself showed of a table's rows, after each statement."""

    table: Table
    identity: Sequence[str]
    states: list[Row] = field(default_factory=list)
    of_key: dict[tuple[str | None, ...], list[int]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _now: dict[tuple[str | None, ...], Row] = field(default_factory=dict)

    def look(self, rows: list[Row]) -> None:
        """Number every row that is new or has changed."""
        now = {tuple(row[name] for name in self.identity): row for row in rows}
        for key, row in now.items():
            if self._now.get(key) != row:
                self.of_key[key].append(len(self.states))
                self.states.append(row)
        self._now = now


class Source:
    """A database with the golden tables, and how its connectors are configured."""

    schema: str

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = tables
        self.truths = {
            table.name: Truth(table, [part.strip() for part in (table.key or "id").split(",")])
            for table in tables
        }

    def run(self, statement: str) -> list[Any]:
        raise NotImplementedError

    def columns_of(self, table: str) -> list[str]:
        found = self.run(
            "SELECT column_name FROM information_schema.columns"
            f" WHERE table_schema = '{self.schema}' AND table_name = '{table}'"
            " ORDER BY ordinal_position"
        )
        return [row[0] for row in found]

    def default_truth(self) -> str:
        raise NotImplementedError

    def create(self) -> None:
        for table in self.tables:
            self.run(table.ddl())
            for statement in table.inserts():
                self.run(statement)

    def change(self) -> None:
        """Carry out all statements; after each look at the table."""
        for table in self.tables:
            self.look(table)
            for statement in table.steps:
                self.run(statement)
                self.look(table)

    def look(self, table: Table) -> None:
        known = {column.name: column.truth for column in table.columns}
        names = self.columns_of(table.name)
        texts = ", ".join(known.get(name, self.default_truth()).format(name) for name in names)
        rows = self.run(f"SELECT {texts} FROM {table.name} ORDER BY id")
        self.truths[table.name].look([dict(zip(names, row, strict=True)) for row in rows])


class MariaSource(Source):
    name = "mariadb"

    def __init__(self, database: MariaDb) -> None:
        super().__init__(mariadb_tables.TABLES)
        self.database = database
        self._connection = database.connect(sql_mode="ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION")
        self.run(f"CREATE DATABASE {NAME}")
        self.run(f"USE {NAME}")
        self.version = f"MariaDB {self.run('SELECT VERSION()')[0][0]}"
        self.modes = modes.MARIADB
        self.schema = NAME

    def run(self, statement: str) -> list[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def default_truth(self) -> str:
        return "CAST({} AS CHAR)"

    def connector(self, mode: str) -> dict[str, str]:
        config = mariadb_connector(self.database, prefix=mode, schema=NAME)
        return {**config, "database.server.id": str(1000 + list(self.modes).index(mode))}


class PostgresSource(Source):
    name = "postgres"

    def __init__(self, database: PostgreSql) -> None:
        super().__init__(postgres_tables.TABLES)
        self.database = database
        database.connect().cursor().execute(f"CREATE DATABASE {NAME}")
        self._connection = database.connect(NAME)
        self.version = str(self.run("SELECT version()")[0][0]).partition(" on ")[0]
        for statement in postgres_tables.PREPARATION:
            self.run(statement)
        self.modes = modes.POSTGRES
        self.schema = "public"

    def create(self) -> None:
        super().create()
        for statement in postgres_tables.AFTERWARDS:
            self.run(statement)

    def run(self, statement: str) -> list[Any]:
        cursor = self._connection.cursor()
        cursor.execute(statement)
        return [] if cursor.description is None else list(cursor.fetchall())

    def default_truth(self) -> str:
        return "{}::text"

    def connector(self, mode: str) -> dict[str, str]:
        publish(self.database, prefix=mode, name=NAME)
        return postgres_connector(self.database, prefix=mode, name=NAME)


class Recorder:
    """Runs a connector a mode on one source and writes what they wrote."""

    def __init__(
        self, source: Any, connect: KafkaConnect, kafka: KafkaBroker, registry: ApicurioRegistry
    ) -> None:
        self.source = source
        self.connect = connect
        self.servers = kafka.bootstrap_servers
        self.registry = registry
        self.target = HERE / "debezium" / source.name
        self.target.mkdir(parents=True, exist_ok=True)
        self.failed: dict[str, str] = {}
        self.numbers: dict[tuple[str, int], dict[str, Any]] = {}
        self.schemas: dict[str, Any] = {}

    def record(self, only: str) -> None:
        self.source.create()
        configs = {}
        for mode, settings in self.source.modes.items():
            if not re.search(only, mode):
                continue
            if mode == modes.AVRO:
                settings |= self.registry.converter("key") | self.registry.converter("value")
            configs[mode] = {
                **self.source.connector(mode),
                **settings,
                "topic.creation.default.partitions": "1",
            }
            if tables := modes.captured(mode):
                names = [f"{self.source.schema}.{table}" for table in (*tables, LAST)]
                configs[mode]["table.include.list"] = ",".join(names)
            self.connect.connectors.put(mode, configs[mode])
            self.wait(mode, lambda mode=mode: self.told_completed(mode), "its snapshot")
            typer.echo(f"{mode} streams")
        self.source.change()
        for mode, config in configs.items():
            topic = f"{mode}.{self.source.schema}.{LAST}"
            self.wait(mode, lambda t=topic: self.count(t) >= 4, "the last statement")
            self.settle(mode)
            self.write(mode, config)
            self.connect.connectors.remove(mode)
        self.write_tables()

    def wait(self, mode: str, condition: Callable[[], bool], what: str) -> None:
        def look() -> bool:
            failure = self.connect.connectors.failure(mode)
            if failure and mode not in self.failed:
                self.failed[mode] = failure
                typer.echo(f"{mode} FAILED: {failure}")
            return mode in self.failed or condition()

        wait_until(look, deadline_s=90, what=f"{mode}: {what}")

    def settle(self, mode: str) -> None:
        before = -1
        while before != (before := sum(map(self.count, self.topics(mode)))):
            time.sleep(1)

    def told_completed(self, mode: str) -> bool:
        topic = f"{mode}.notifications"
        if not self.count(topic):
            return False
        values = [record.value or b"" for record in consume(self.servers, topic)]
        in_avro = bytes([2 * len(b"COMPLETED")]) + b"COMPLETED"
        return any(b'"COMPLETED"' in value or in_avro in value for value in values)

    def count(self, topic: str) -> int:
        return sum(end_offsets(self.servers, topic).values())

    def topics(self, mode: str) -> list[str]:
        first = f"{mode}.{self.source.schema}"
        if tables := modes.captured(mode):
            return [f"{first}.{table}" for table in tables]
        names = [f"{first}.{table.name}" for table in self.source.tables]
        return [*names, f"{mode}.notifications", f"{mode}.transaction", f"{mode}.message", mode]

    def write(self, mode: str, config: Mapping[str, str]) -> None:
        if mode in self.failed:
            return
        hidden = (
            *("database.password", "database.hostname", "database.port", "schema.history"),
            *(f"{part}.converter.apicurio.registry.url" for part in ("key", "value")),
        )
        about = {
            "database": self.source.version,
            "connector": "Debezium 3.5.0.Final",
            "mode": mode,
            "config": {k: v for k, v in config.items() if not k.startswith(hidden)},
        }
        lines = [about]
        for topic in self.topics(mode):
            records = consume(self.servers, topic) if self.count(topic) else []
            table = topic.rpartition(".")[2]
            truth = self.source.truths.get(table)
            cursor = Cursor(truth) if truth else None
            if mode == modes.AVRO:
                lines += self.in_avro(records, table)
                continue
            for record in records:
                line = wire(record)
                if cursor:
                    line |= cursor.rows_of(record)
                    self.numbers.setdefault((table, record.offset), line)
                lines.append(line)
        if mode == modes.AVRO:
            lines[0]["schemas"] = self.schemas
        path = self.target / f"{mode}.jsonl"
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
        typer.echo(f"{path} {path.stat().st_size >> 10} KiB {len(lines) - 1} records")

    def in_avro(self, records: list[Any], table: str) -> Iterator[dict[str, Any]]:
        """Lines of Avro records; the rows are those of the same record of the first mode."""
        for record in records:
            line = wire(record, encoded=True)
            for part in (record.key, record.value):
                if part is not None:
                    self.learn(int.from_bytes(part[1:5], "big"))
            same = self.numbers.get((table, record.offset))
            yield line | ({} if same is None else {k: same[k] for k in ("before", "after")})

    def learn(self, number: int) -> None:
        if str(number) not in self.schemas:
            answer = httpx.get(f"{self.registry.url}/schemas/ids/{number}").raise_for_status()
            self.schemas[str(number)] = json.loads(answer.json()["schema"])

    def write_tables(self) -> None:
        tables = {
            table.name: {
                "key": [part.strip() for part in table.key.split(",") if part],
                "columns": [
                    {
                        "name": c.name,
                        "type": c.database_type,
                        "sql": c.sql,
                        "truth": c.truth.format("c"),
                    }
                    for c in table.columns
                ],
                "statements": [*table.inserts(), *table.steps],
                "rows": self.source.truths[table.name].states,
            }
            for table in self.source.tables
        }
        text = json.dumps(tables, ensure_ascii=False, indent=0)
        (self.target / "tables.json").write_text(text + "\n")


class Cursor:
    """Says which rows of the truth a topic's records show, read in their order."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._seen: dict[tuple[str | None, ...], int] = {}

    def rows_of(self, record: Any) -> dict[str, int | None]:
        """Numbers of the rows before and after."""
        value = payload(record.value)
        key = payload(record.key)
        if value is None:
            return {"before": None, "after": None}
        op = value.get("op", value.get("__op"))
        deleted = value.get("__deleted") == "true" or op == "d"
        if op == "t":
            return {"before": None, "after": None}
        fields = key or value.get("after") or value.get("before") or value
        identity = tuple(str(fields[name]) for name in self._truth.identity)
        before = self._seen.get(identity)
        numbers = self._truth.of_key[identity]
        if deleted:
            return {"before": None if before is None else numbers[before], "after": None}
        after = 0 if before is None else before + 1
        self._seen[identity] = after
        return {
            "before": None if before is None else numbers[before],
            "after": numbers[after],
        }


def payload(text: bytes | None) -> Any:
    """The JSON of a key or value, without the envelope of its schema."""
    if text is None:
        return None
    document = json.loads(text)
    if isinstance(document, dict) and set(document) == {"schema", "payload"}:
        return document["payload"]
    return document


def wire(record: Any, *, encoded: bool = False) -> dict[str, Any]:
    """The record as it lay in Kafka; keys and values as text, or `encoded` in base64."""

    def text(part: bytes | None) -> str | None:
        if part is None:
            return None
        return base64.b64encode(part).decode() if encoded else part.decode()

    line = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": text(record.key),
        "value": text(record.value),
    }
    headers = [
        [name, base64.b64encode(value).decode()]
        for name, value in record.headers
        if not name.startswith("__debezium.context.")  # it differs with each run, and says nothing
    ]
    if headers:
        line["headers"] = headers
    return line


def main() -> int:
    """Record both databases; 1 when a connector has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("databases", nargs="*", default=["mariadb", "postgres"])
    parser.add_argument("--only", help="a regular expression of modes", default="")
    arguments = parser.parse_args()
    settings = Settings.load()
    java = find_java(settings.cache_dir)
    cache = JarCache(settings.cache_dir, java)
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        root = Path(scratch)
        start = stack.enter_context
        registry = start(ApicurioRegistry(root / "registry", java, cache.registry_home()))
        jars, heap = cache.jars(JarSet.CONNECT), ConnectSettings(heap="2g")
        for name in arguments.databases:
            if name == "mariadb":
                source: Any = MariaSource(start(MariaDb(root / name, cache.database_home())))
            else:
                many = DatabaseSettings(
                    options={"max_wal_senders": "50", "max_replication_slots": "50"}
                )
                source = PostgresSource(start(PostgreSql(root / name, cache.postgres_home(), many)))
            kafka = start(KafkaBroker(root / f"kafka-{name}", java, cache.jars(JarSet.BROKER)))
            at = root / f"connect-{name}"
            with KafkaConnect(at, java, jars, kafka.bootstrap_servers, heap) as connect:
                recorder = Recorder(source, connect, kafka, registry)
                recorder.record(arguments.only)
                failed |= recorder.failed
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
