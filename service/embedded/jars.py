"""The cache of jars and binaries, shared by all checkouts of this machine.

The Ivy inside PySpark fetches a set of jars; each file is compared with the lock file, and only a
complete and correct set is renamed to its final name. That name has the lock's fingerprint, so an
existing set is used without reading its bytes again.
"""

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from service.embedded.java import Java, trust_store_options
from service.embedded.process import JarCacheError, file_lock

LOCK_FILE = Path(__file__).with_name("jars.lock")
_CHUNK_BYTES = 1 << 20


class JarSet(Enum):
    """Jars that are used and fetched together."""

    SPARK = "spark"
    BROKER = "broker"
    DATABASE = "database"
    CONNECT = "connect"  # Kafka Connect with Debezium's connectors
    POSTGRES = "postgres"
    REGISTRY = "registry"  # of schemas, for tests
    MYSQL = "mysql"  # Debezium's connector, beside Kafka Connect, for tests
    REFERENCE = "reference"  # Spark's Kafka source, which benchmarks compare with


@dataclass(frozen=True, slots=True)
class Jar:
    """A locked jar, or an `archive` (classifier and extension, such as `all.tar.gz`)."""

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
    """The jars of the lock file `path`. Raises JarCacheError."""
    try:
        lines = path.read_text().split("\n")
    except OSError as exc:
        raise _broken(path, "cannot be read") from exc
    return tuple(_parse(line, path) for line in lines if line.strip() and line[0] != "#")


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def at(jar_set: JarSet, coordinates: str, size_bytes: int = 0, sha256: str = "") -> Jar:
    """The jar, or with a fourth part the archive, of `coordinates`. Raises ValueError."""
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


_REFRESH_S = 0.3
_PARTS = {
    JarSet.SPARK: "Delta for Spark",
    JarSet.BROKER: "Kafka",
    JarSet.DATABASE: "MariaDB",
    JarSet.CONNECT: "Kafka Connect with Debezium",
    JarSet.POSTGRES: "PostgreSQL",
    JarSet.REGISTRY: "a schema registry",
    JarSet.MYSQL: "Debezium's MySQL connector",
    JarSet.REFERENCE: "Spark's Kafka source",
}


@contextlib.contextmanager
def download_progress(jars: Sequence[Jar], arriving: Path) -> Iterator[None]:
    """Print the size of `jars`; on a terminal, show how much has arrived below `arriving`."""
    total = sum(jar.size_bytes for jar in jars)
    number = "1 file" if len(jars) == 1 else f"{len(jars)} files"
    what = f"{_PARTS[jars[0].jar_set]}: {number}, {total / 1e6:,.0f} MB"
    typer.echo(f"fetching {what}, once, into {arriving.parent}", err=True)
    if not sys.stderr.isatty():
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    done = threading.Event()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(_PARTS[jars[0].jar_set], total=total)

        def follow() -> None:
            while not done.wait(_REFRESH_S):
                progress.update(task, completed=_arrived_bytes(arriving))

        watcher = threading.Thread(target=follow, name="download-progress", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def _arrived_bytes(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*.jar*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


_MAVEN = "http://ant.apache.org/ivy/maven"  # a namespace: nothing is fetched from there
_UNPACKED = (JarSet.DATABASE, JarSet.POSTGRES, JarSet.REGISTRY)
_UNPACKED_BYTES_PER_BYTE = 5  # upper bound for unpacking a database
_BINARIES = ("bin/mariadbd", "bin/my_print_defaults", "bin/resolveip", "scripts/", "share/")
_UNTRUSTED = "PKIX path building failed"


@dataclass(frozen=True, slots=True)
class JarCache:
    """The cache below `directory`; `java` runs Ivy."""

    directory: Path
    java: Java
    locked: tuple[Jar, ...] = field(default_factory=read_lock)

    def jars(self, jar_set: JarSet) -> list[Path]:
        """Paths of the set's jars, fetched if needed; safe concurrently. Raises JarCacheError."""
        jars = self._of(jar_set)
        home = self._provide(jar_set, jars, lambda directory: None)
        return [home / jar.file_name for jar in jars]

    def database_home(self) -> Path:
        """Directory of the MariaDB programs; fetches and raises as `jars`."""
        jars = self._of(JarSet.DATABASE)
        return self._provide(JarSet.DATABASE, jars, lambda directory: _unpack(directory, jars))

    def postgres_home(self) -> Path:
        jars = self._of(JarSet.POSTGRES)
        return self._provide(JarSet.POSTGRES, jars, lambda directory: _untar(directory, jars))

    def registry_home(self) -> Path:
        jars = self._of(JarSet.REGISTRY)
        return self._provide(JarSet.REGISTRY, jars, lambda directory: _untar(directory, jars))

    def verify(self, jar_set: JarSet) -> None:
        """Hash the set's cached jars again. Raises JarCacheError if one differs or is gone."""
        for jar, path in zip(self._of(jar_set), self.jars(jar_set), strict=True):
            _check(jar, path)

    def are_here(self, jar_set: JarSet) -> bool:
        return self._home(jar_set, self._of(jar_set)).is_dir()

    def _of(self, jar_set: JarSet) -> tuple[Jar, ...]:
        return tuple(jar for jar in self.locked if jar.jar_set is jar_set)

    def _home(self, jar_set: JarSet, jars: tuple[Jar, ...]) -> Path:
        return self.directory / "jars" / f"{jar_set.value}-{fingerprint(jars)}"

    def _provide(
        self, jar_set: JarSet, jars: tuple[Jar, ...], finish: Callable[[Path], None]
    ) -> Path:
        home = self._home(jar_set, jars)
        if home.is_dir():
            return home
        try:
            with file_lock(home.with_suffix(".lock")):
                if not home.is_dir():
                    self._fill(home, jars, finish)
        except OSError as exc:
            raise _unusable(self.directory, exc) from exc
        return home

    def _fill(self, home: Path, jars: tuple[Jar, ...], finish: Callable[[Path], None]) -> None:
        for abandoned in home.parent.glob(f"{home.name}.new-*"):  # left by a killed process
            shutil.rmtree(abandoned, ignore_errors=True)
        size = sum(jar.size_bytes for jar in jars)
        unpacked = any(jar.jar_set in _UNPACKED for jar in jars)
        needed = size * (2 + (_UNPACKED_BYTES_PER_BYTE if unpacked else 0))
        free = shutil.disk_usage(self.directory).free
        if free < needed:
            raise JarCacheError(
                f'cache "{self.directory}" has {free >> 20} MiB free, needs {needed >> 20} MiB',
                hint="Free some space, or set SLUICE_CACHE_DIR to a directory on a larger disk.",
            )
        ivy_cache = home.with_suffix(".ivy")  # kept after a failure: downloads are not repeated
        draft = Path(tempfile.mkdtemp(dir=home.parent, prefix=f"{home.name}.new-"))
        try:
            with download_progress(jars, ivy_cache):
                self._fetch(jars, ivy_cache, draft)
            for jar in jars:
                self._accept(jar, draft / jar.file_name, ivy_cache)
            finish(draft)
            draft.chmod(0o755)
            draft.rename(home)
            shutil.rmtree(ivy_cache, ignore_errors=True)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _accept(self, jar: Jar, path: Path, ivy_cache: Path) -> None:
        try:
            _check(jar, path)
        except JarCacheError:
            shutil.rmtree(ivy_cache, ignore_errors=True)
            raise

    def _fetch(self, jars: tuple[Jar, ...], ivy_cache: Path, target: Path) -> None:
        missing = [jar.coordinates for jar in jars]
        report = ""
        system = trust_store_options(self.directory / "java")
        for options in [system] if self.java.bundled and system else [[], system]:
            report = self._run_ivy(jars, (ivy_cache, target), options)
            missing = [j.coordinates for j in jars if not (target / j.file_name).exists()]
            if not missing or _UNTRUSTED not in report:
                break
        if missing:
            raise JarCacheError(
                f"{len(missing)} of {len(jars)} jars cannot be fetched, first "
                f'"{missing[0]}": {_cause(report)}',
                hint="Check the network (HTTPS_PROXY is honoured) and run the command again;"
                " what has arrived is kept.",
            )

    def _run_ivy(
        self, jars: Sequence[Jar], directories: tuple[Path, Path], options: list[str]
    ) -> str:
        ivy_cache, target = directories
        ivy_cache.mkdir(parents=True, exist_ok=True)
        description = ivy_cache / "sluice-ivy.xml"
        description.write_text(ivy_description((jar, False) for jar in jars))
        pattern = f"{target}/[organisation]_[artifact]-[revision].[ext]"
        return run_ivy(
            self.java, description, ivy_cache, pattern, [*options, *proxy_options(os.environ)]
        )


def run_ivy(
    java: Java, description: Path, ivy_cache: Path, pattern: str, options: list[str]
) -> str:
    """Let Ivy retrieve the jars of `description` to `pattern`; returns its output."""
    ivy = _ivy_jar()
    arguments = ["-cache", ivy_cache, "-ivy", description, "-confs", "sluice", "-retrieve", pattern]
    done = subprocess.run(
        [str(part) for part in (java.executable, *options, "-jar", ivy, *arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return done.stdout


def _ivy_jar() -> Path:
    """Find PySpark's Ivy without importing PySpark, which takes a second."""
    package = importlib.util.find_spec("pyspark")
    homes = [] if package is None or package.origin is None else [Path(package.origin).parent]
    for jar in (jar for home in homes for jar in (home / "jars").glob("ivy-*.jar")):
        return jar
    raise JarCacheError(
        'package "pyspark" is not installed or has no Ivy',
        hint="Reinstall the packages: `pip install --force-reinstall pyspark`, or `make` in a"
        " checkout.",
    )


def ivy_description(jars: Iterable[tuple[Jar, bool]]) -> str:
    """Ivy's description of (jar, with its runtime dependencies) pairs."""
    lines = []
    for jar, complete in jars:
        conf = "sluice-&gt;runtime,master" if complete else "sluice-&gt;master"
        lines.append(
            f"<dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.name)}"
            f' rev={quoteattr(jar.revision)} conf="{conf}" transitive="{str(complete).lower()}">'
            f"{_artifact(jar)}</dependency>"
        )
    return (
        f'<ivy-module version="2.0" xmlns:m={quoteattr(_MAVEN)}>'
        '<info organisation="sluice" module="jars"/>'
        '<configurations><conf name="sluice"/></configurations>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )


def _artifact(jar: Jar) -> str:
    if not jar.archive:
        return ""
    name, ext = quoteattr(jar.name), quoteattr(jar.extension)
    classifier = quoteattr(jar.archive.partition(".")[0])
    return f"<artifact name={name} type={ext} ext={ext} m:classifier={classifier}/>"


def proxy_options(environ: Mapping[str, str]) -> list[str]:
    """JVM options for HTTPS_PROXY and NO_PROXY, which a JVM does not read."""
    proxy = environ.get("HTTPS_PROXY") or environ.get("https_proxy")
    if not proxy:
        return []
    address = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    spared = (environ.get("NO_PROXY") or environ.get("no_proxy") or "").split(",")
    hosts = "|".join(f"*{host}" if host[:1] == "." else host for host in spared if host)
    return [
        f"-Dhttps.proxyHost={address.hostname}",
        f"-Dhttps.proxyPort={address.port or 80}",
        *([f"-Dhttp.nonProxyHosts={hosts}"] if hosts else []),
    ]


def _check(jar: Jar, path: Path) -> None:
    actual = sha256_of(path) if path.exists() else "missing"
    if actual != jar.sha256:
        raise JarCacheError(
            f'jar "{jar.coordinates}" has SHA-256 {actual}, expected {jar.sha256}',
            hint="Run the command again; if it recurs, something between this machine and the"
            " jar's origin changes files. Remove the cache directory to start afresh.",
        )


def _unpack(directory: Path, jars: Sequence[Jar]) -> None:
    for jar in jars:
        archive = directory / jar.file_name
        with zipfile.ZipFile(archive) as content:
            for member in content.infolist():
                _, separator, path = member.filename.partition("/linux/")
                if separator and path.startswith(_BINARIES) and not member.is_dir():
                    _extract(content, member, directory / path)
        archive.unlink()


def _untar(directory: Path, jars: Sequence[Jar]) -> None:
    for jar in jars:
        path = directory / jar.file_name
        if jar.archive:
            with path.open("rb") as packed:
                _extract_all(packed, directory)
        else:
            with zipfile.ZipFile(path) as content:
                for name in content.namelist():
                    if name.endswith(".txz"):
                        with content.open(name) as packed:
                            _extract_all(packed, directory)
        path.unlink()


def _extract_all(packed: IO[bytes], directory: Path) -> None:
    with tarfile.open(fileobj=packed, mode="r|*") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.11.4 on
        archive.extractall(directory)


def _extract(content: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with content.open(member) as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy, 1 << 20)
    if target.parent.name in ("bin", "scripts"):
        target.chmod(0o755)


def _cause(report: str) -> str:
    lines = [line.strip() for line in report.split("\n")]
    for sign in (_UNTRUSTED, "No space left", "Exception", "Server access error", "not found"):
        for line in lines:
            if sign in line:
                return line[:160]
    return "the origin cannot be reached"


def _unusable(directory: Path, exc: OSError) -> JarCacheError:
    reason = os.strerror(exc.errno).lower() if exc.errno else str(exc)
    return JarCacheError(
        f'cache "{directory}" cannot be used: {reason}',
        hint="Free some space, correct its permissions, or set SLUICE_CACHE_DIR to another one.",
    )
