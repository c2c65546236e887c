"""Where benchmarks run: a broker and a database of their own, started when one is asked for."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.config import Settings
from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import find_java
from service.embedded.server import DatabaseSettings
from tests.support.rig import Rig, running_rig
from tests.support.services import running_services
from tests.support.topics import unique_name

CORES = 2
_BROKER = BrokerSettings(
    heap="1g", properties={"log.segment.bytes": str(256 << 20)}, jvm_options=()
)
_DATABASE = DatabaseSettings(
    options={"innodb-buffer-pool-size": "1G", "innodb-log-file-size": "512M"}
)


@dataclass
class Place:
    """A scratch directory, and servers that are started when they are first asked for.

    Attributes:
        driver_memory: of every JVM that joins, ours and the reference's.
        settings: of control planes, where they are not to be the product's own.
    """

    directory: Path
    driver_memory: str = "4g"
    services: tuple[KafkaBroker, MariaDb] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _began: float = field(default_factory=time.monotonic)

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _started(self) -> tuple[KafkaBroker, MariaDb]:
        if self.services is None:
            self.say("broker and database start")
            servers = running_services(self.directory / "servers", _BROKER, _DATABASE)
            self.services = self._stack.enter_context(servers)
        return self.services

    @property
    def kafka(self) -> KafkaBroker:
        return self._started()[0]

    @property
    def mariadb(self) -> MariaDb:
        return self._started()[1]

    def new(self, name: str) -> Path:
        self.directory.mkdir(parents=True, exist_ok=True)
        return self.directory / unique_name(name)

    def say(self, text: str) -> None:
        sys.stderr.write(f"[{time.monotonic() - self._began:7.1f} s] {text}\n")
        sys.stderr.flush()

    @contextmanager
    def rig(self, **given: Any) -> Iterator[Rig]:
        """A control plane with the product's own defaults, but for `given` and the cores."""
        defaults = {
            "spark_driver_memory": self.driver_memory,
            "spark_master": f"local[{CORES},4]",
            "spark_conf": {},
            "restart_backoff_min_s": 0.5,
            "fold_interval_s": 30.0,
        }
        values = {**defaults, **self.settings, **given}
        with running_rig(self.new("rig"), self.kafka, self.mariadb, **values) as rig:
            yield rig


def spark_jars() -> list[Path]:
    settings = Settings.load()
    cache = JarCache(settings.cache_dir, find_java(settings.cache_dir))
    return [*cache.jars(JarSet.SPARK), *cache.jars(JarSet.REFERENCE)]
