"""A real schema registry for tests: Apicurio, with the REST interface of Confluent's."""

from pathlib import Path

import httpx

from service.embedded.java import Java
from service.embedded.process import Command
from service.embedded.server import EmbeddedServer


class ApicurioRegistry(EmbeddedServer):
    """A registry whose schemas are below `data_dir`; without a `port` the earlier or a free one."""

    name = "registry"
    role = "the registry"
    state_file = "registry.json"

    def __init__(self, data_dir: Path, java: Java, home: Path, *, port: int | None = None) -> None:
        super().__init__(data_dir, ready_timeout_s=120.0)
        self._java = java
        self._home = home
        self._chosen_port = port

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/apis/ccompat/v7"

    def converter(self, part: str) -> dict[str, str]:
        settings = {
            "": "io.apicurio.registry.utils.converter.AvroConverter",
            ".apicurio.registry.url": f"http://{self.host}:{self.port}/apis/registry/v2",
            ".apicurio.registry.auto-register": "true",
            ".apicurio.registry.find-latest": "true",
            ".apicurio.registry.as-confluent": "true",
            ".apicurio.registry.use-id": "contentId",
            ".apicurio.registry.headers.enabled": "false",
        }
        return {f"{part}.converter{name}": value for name, value in settings.items()}

    def _answers(self) -> bool:
        try:
            answer = httpx.get(f"{self.url}/subjects", timeout=2.0)
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.OK

    def _prepare(self) -> None:
        self._keep_state(self._chosen_port)

    def _command(self) -> Command:
        settings = {
            "quarkus.http.host": self.host,
            "quarkus.http.port": str(self.port),
            "quarkus.datasource.jdbc.url": f"jdbc:h2:file:{self._dir / 'schemas'}",
            "quarkus.log.level": "WARN",
        }
        java = [
            str(self._java.executable),
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:+ExitOnOutOfMemoryError",
            *(f"-D{name}={value}" for name, value in settings.items()),
        ]
        (jar,) = self._home.glob("apicurio-registry-app-*-runner.jar")
        return Command([*java, "-jar", str(jar)], self.log, self._java.environment(), self._dir)
