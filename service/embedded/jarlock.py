"""The lock file of the jars: which ones there are, how large they are and what they hash to.

`service.embedded.relock` makes the file anew (`make lock`).
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from service.embedded.process import JarCacheError

LOCK_FILE = Path(__file__).with_name("jars.lock")
_CHUNK_BYTES = 1 << 20


class JarSet(Enum):
    """Jars that are used, and fetched, together."""

    SPARK = "spark"
    BROKER = "broker"
    DATABASE = "database"
    CONNECT = "connect"  # Kafka Connect with Debezium's connectors
    POSTGRES = "postgres"
    REGISTRY = "registry"  # of schemas, for tests
    REFERENCE = "reference"  # Spark's Kafka source, which benchmarks compare with


@dataclass(frozen=True, slots=True)
class Jar:
    """A locked jar.

    Attributes:
        jar_set: what it is for.
        organisation, name, revision: its coordinates.
        size_bytes: length of the file.
        sha256: of the file, in hexadecimal.
        archive: its classifier and extension, such as `all.tar.gz`; "" for a jar.
    """

    jar_set: JarSet
    organisation: str
    name: str
    revision: str
    size_bytes: int
    sha256: str
    archive: str = ""

    @property
    def coordinates(self) -> str:
        parts = [self.organisation, self.name, self.revision, self.archive]
        return ":".join(part for part in parts if part)

    @property
    def extension(self) -> str:
        return self.archive.partition(".")[2] or "jar"

    @property
    def file_name(self) -> str:
        return f"{self.organisation}_{self.name}-{self.revision}.{self.extension}"

    def line(self) -> str:
        return f"{self.jar_set.value} {self.coordinates} {self.size_bytes} {self.sha256}"


def read_lock(path: Path = LOCK_FILE) -> tuple[Jar, ...]:
    """The jars of the lock file `path`; by default of the one that belongs to this code.

    Raises:
        JarCacheError: the file is missing or a line is malformed.
    """
    try:
        lines = path.read_text().splitlines()
    except OSError as exc:
        raise _broken(path, "cannot be read") from exc
    return tuple(_parse(line, path) for line in lines if line.strip() and line[0] != "#")


def sha256_of(path: Path) -> str:
    """SHA-256 of the file `path`, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def at(jar_set: JarSet, coordinates: str, size_bytes: int = 0, sha256: str = "") -> Jar:
    """The jar, or with a fourth part the archive, of `coordinates`.

    Raises:
        ValueError: they have too few or too many parts.
    """
    organisation, name, revision, *archive = coordinates.split(":")
    if len(archive) > 1:
        raise ValueError(coordinates)
    return Jar(jar_set, organisation, name, revision, size_bytes, sha256, "".join(archive))


def fingerprint(jars: Iterable[Jar]) -> str:
    return hashlib.sha256("\n".join(jar.line() for jar in jars).encode()).hexdigest()[:16]


def _parse(line: str, source: Path) -> Jar:
    try:
        jar_set, coordinates, size, sha256 = line.split()
        return at(JarSet(jar_set), coordinates, int(size), sha256)
    except ValueError as exc:
        raise _broken(source, f'has the malformed line "{line}"') from exc


def _broken(path: Path, fault: str) -> JarCacheError:
    return JarCacheError(
        f'lock file "{path}" {fault}', hint="Restore the file from the release, or run `make lock`."
    )
