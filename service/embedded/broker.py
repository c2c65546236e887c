"""A real Kafka broker: one KRaft node on the loopback interface, its own controller."""

import os
import shutil
import socket
import struct
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from service.embedded.java import Java
from service.embedded.process import LOOPBACK, Command, free_port
from service.embedded.server import EmbeddedServer

_METADATA_REQUEST = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)
_LOG_SETTINGS = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
"""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """How a broker runs; `port` None takes the directory's earlier port, else a free one.

    The default `jvm_options` cost a third less CPU at the start, and throughput.
    """

    port: int | None = None
    heap: str = "512m"
    properties: Mapping[str, str] = field(default_factory=dict)
    jvm_options: Sequence[str] = ("-XX:TieredStopAtLevel=1",)
    ready_timeout_s: float = 90.0


class KafkaBroker(EmbeddedServer):
    """A broker whose data is below `data_dir`; clients connect to `bootstrap_servers`."""

    name = "kafka"
    role = "the broker"
    state_file = "broker.json"

    def __init__(
        self,
        data_dir: Path,
        java: Java,
        classpath: Sequence[Path],
        settings: BrokerSettings | None = None,
    ) -> None:
        self._settings = settings or BrokerSettings()
        super().__init__(data_dir, ready_timeout_s=self._settings.ready_timeout_s)
        self._java = java
        self._classpath = os.pathsep.join(str(path) for path in classpath)

    @property
    def bootstrap_servers(self) -> str:
        return f"{self.host}:{self.port}"

    def _answers(self) -> bool:
        return _alive_brokers(self.port) > 0

    def _prepare(self) -> None:
        self._keep_state(self._settings.port)
        self._write_configuration()
        self._format()

    def _command(self) -> Command:
        return self._java_command("kafka.Kafka", str(self._configuration))

    @property
    def _configuration(self) -> Path:
        return self._dir / "kraft.properties"

    def _write_configuration(self) -> None:
        lines = {**self._properties(free_port()), **self._settings.properties}
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        self._configuration.write_text(text)
        (self._dir / "log4j2.properties").write_text(_LOG_SETTINGS)

    def _format(self) -> None:
        logs = self._dir / "logs"
        if (logs / "meta.properties").exists():
            return
        shutil.rmtree(logs, ignore_errors=True)
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        arguments = ("format", f"--cluster-id={cluster}", f"--config={self._configuration}")
        command = self._java_command("kafka.tools.StorageTool", *arguments)
        self._run_once(command, task=f'format "{logs}"')

    def _properties(self, controller_port: int) -> dict[str, str]:
        controller = f"{LOOPBACK}:{controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{self.bootstrap_servers},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap_servers}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self._dir / "logs"),
            "auto.create.topics.enable": "false",
            "num.partitions": "1",
            "default.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "num.network.threads": "2",
            "num.io.threads": "4",
            "log.cleaner.dedupe.buffer.size": "16777216",
            "broker.heartbeat.interval.ms": "500",  # a killed broker's session must end before
            "broker.session.timeout.ms": "3000",  # its next start may register
        }

    def _java_command(self, main_class: str, *arguments: str) -> Command:
        options = [
            f"-Xmx{self._settings.heap}",
            "-XX:+UseSerialGC",
            "-XX:+ExitOnOutOfMemoryError",
            f"-Dlog4j2.configurationFile={self._dir / 'log4j2.properties'}",
            "-Djava.awt.headless=true",
            *self._settings.jvm_options,
        ]
        java = [str(self._java.executable), *options, "-cp", self._classpath, main_class]
        return Command([*java, *arguments], self.log, self._java.environment(), self._dir)


def _alive_brokers(port: int) -> int:
    """How many brokers the one on `port` reports; 0 when it does not answer.

    A Metadata request of version 1 for no topics returns the count first, behind length and
    correlation id. Source: Kafka protocol guide, "Metadata API".
    """
    try:
        with socket.create_connection((LOOPBACK, port), timeout=2.0) as link:
            link.sendall(struct.pack(">i", len(_METADATA_REQUEST)) + _METADATA_REQUEST)
            with link.makefile("rb") as answer:
                header = answer.read(12)
    except OSError:
        return 0
    return int(struct.unpack(">iii", header)[2]) if len(header) == 12 else 0
