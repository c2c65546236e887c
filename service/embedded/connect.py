"""A real Kafka Connect, standalone, and the settings of Debezium's connectors."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from joins.durable.checkpoint import write_json_atomically
from service.embedded.java import Java
from service.embedded.postgres import PostgreSql
from service.embedded.process import Command, ServerStartError, wait_until
from service.embedded.server import EmbeddedServer


def postgres_connector(
    database: PostgreSql, *, prefix: str, name: str, schema: str = "public"
) -> dict[str, str]:
    """Captures all tables of `schema` in database `name` into topics `prefix.schema.table`.

    It creates a slot named `prefix` and needs a publication of that name (`publish`).
    """
    return {
        **connector_settings(prefix),
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": database.host,
        "database.port": str(database.port),
        "database.user": database.cdc_user,
        "database.password": database.cdc_password,
        "database.dbname": name,
        "schema.include.list": schema,
        "plugin.name": "pgoutput",
        "slot.name": prefix,
        "publication.name": prefix,
        "publication.autocreate.mode": "disabled",
    }


def publish(database: PostgreSql, *, prefix: str, name: str, schema: str = "public") -> None:
    """Create a connector's publication, of all present and later tables of `schema`."""
    connection = database.connect(name)
    connection.cursor().execute(f'CREATE PUBLICATION "{prefix}" FOR TABLES IN SCHEMA "{schema}"')
    connection.close()


def connector_settings(prefix: str) -> dict[str, str]:
    return {
        "topic.prefix": prefix,
        "tasks.max": "1",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": f"{prefix}.notifications",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "1",
        "poll.interval.ms": "100",
    }


_REQUEST_TIMEOUT_S = 60.0  # a PUT answers after the connector's start
_ALIVE_TIMEOUT_S = 2.0
_JSON = "org.apache.kafka.connect.json.JsonConverter"


@dataclass(frozen=True, slots=True)
class ConnectSettings:
    """How a Connect runs; REST `port` None takes the directory's earlier port, else a free one."""

    port: int | None = None
    heap: str = "384m"
    properties: Mapping[str, str] = field(default_factory=dict)
    ready_timeout_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Connectors:
    """The connectors of a Connect, through its REST API; `directory` keeps their configurations."""

    url: str
    directory: Path

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create or change the connector `name`, also for later starts. Raises httpx.HTTPError."""
        self._request("PUT", f"/connectors/{name}/config", dict(config))
        self.keep(name, config)

    def keep(self, name: str, config: Mapping[str, str]) -> None:
        document = {"name": name, "config": dict(config)}
        write_json_atomically(self.directory / f"{name}.json", document)

    def remove(self, name: str) -> None:
        (self.directory / f"{name}.json").unlink(missing_ok=True)
        self._request("DELETE", f"/connectors/{name}")

    def states(self, name: str) -> list[str]:
        status = self._request("GET", f"/connectors/{name}/status")
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    def offsets(self, name: str) -> list[dict[str, Any]]:
        answer = self._request("GET", f"/connectors/{name}/offsets")
        return [entry["offset"] for entry in answer["offsets"]]

    def topics(self, name: str) -> list[str]:
        return list(self._request("GET", f"/connectors/{name}/topics")[name]["topics"])

    def forget_offsets(self, name: str) -> None:
        self._request("DELETE", f"/connectors/{name}/offsets")

    def stop(self, name: str) -> None:
        self._request("PUT", f"/connectors/{name}/stop")

    def resume(self, name: str) -> None:
        self._request("PUT", f"/connectors/{name}/resume")

    def failure(self, name: str) -> str | None:
        status = self._request("GET", f"/connectors/{name}/status")
        parts = [status["connector"], *status["tasks"]]
        return next((part["trace"] for part in parts if part["state"] == "FAILED"), None)

    def _request(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 (JSON)
        answer = httpx.request(method, self.url + path, json=body, timeout=_REQUEST_TIMEOUT_S)
        if answer.is_error:  # its text has the cause
            raise httpx.HTTPStatusError(answer.text, request=answer.request, response=answer)
        return answer.json() if answer.content else None


class KafkaConnect(EmbeddedServer):
    """A Connect whose files are below `data_dir`; a later start resumes the same connectors."""

    name = "connect"
    role = "Connect"
    state_file = "connect.json"

    def __init__(
        self,
        data_dir: Path,
        java: Java,
        classpath: Sequence[Path],
        bootstrap_servers: str,
        settings: ConnectSettings | None = None,
    ) -> None:
        self._settings = settings or ConnectSettings()
        super().__init__(data_dir, ready_timeout_s=self._settings.ready_timeout_s)
        self._java = java
        self._classpath = os.pathsep.join(str(path) for path in classpath)
        self.bootstrap_servers = bootstrap_servers

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def connectors(self) -> "Connectors":
        return Connectors(self.url, self._connectors)

    @property
    def _connectors(self) -> Path:
        return self._dir / "connectors"

    def await_topic(self, name: str, topic: str, *, timeout_s: float) -> None:
        """Wait until the connector `name` has written to `topic`. Raises ServerStartError."""

        def is_there() -> bool:
            return topic in self.connectors.topics(name)

        process = self._process
        if process is None or not wait_until(is_there, process=process, timeout_s=timeout_s):
            raise ServerStartError(
                f'connector "{name}" has written nothing to topic "{topic}"', hint=self._hint()
            )

    def _answers(self) -> bool:
        try:
            url = f"{self.url}/connectors"
            return httpx.get(url, timeout=_ALIVE_TIMEOUT_S).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def _prepare(self) -> None:
        self._keep_state(self._settings.port)
        self._connectors.mkdir(exist_ok=True)
        lines = {**self._properties(), **self._settings.properties}
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        (self._dir / "worker.properties").write_text(text)

    def _properties(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "listeners": self.url,
            "plugin.discovery": "service_load",
            "key.converter": _JSON,
            "value.converter": _JSON,
            "offset.storage.file.filename": str(self._dir / "offsets"),
            "offset.flush.interval.ms": "500",
            "topic.creation.enable": "true",
        }

    def _command(self) -> Command:
        options = [
            f"-Xmx{self._settings.heap}",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.awt.headless=true",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
        ]
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        connectors = map(str, sorted(self._connectors.glob("*.json")))
        java = [str(self._java.executable), *options, "-cp", self._classpath, main]
        arguments = [*java, str(self._dir / "worker.properties"), *connectors]
        return Command(arguments, self.log, self._java.environment(), self._dir)
