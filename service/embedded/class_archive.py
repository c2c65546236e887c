"""The archive of a JVM's classes in the cache: with it a runner starts in two thirds of the time.

It fits one Java, one PySpark and one set of jars, as they were when it was made: a JVM compares the
size and time of each jar, and where one differs it ignores the archive and says nothing.
"""

import hashlib
import importlib.metadata
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import structlog

from service.embedded.java import Java
from service.embedded.process import file_lock

_log = structlog.get_logger()
_MAKE = (sys.executable, "-m", "joins.job.class_warm_up")
_MAKE_S = 600


def archive_path(cache_dir: Path, java: Java, jars: Sequence[Path]) -> Path:
    """Where the archive for `java` and Spark with `jars` is, once it has been made."""
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
    """What a JVM compares before it trusts an archive; a jar that is missing has no size."""
    try:
        status = jar.stat()
    except FileNotFoundError:
        return f"{jar.name} is missing"
    return f"{jar.name} {status.st_size} {int(status.st_mtime)}"


def class_archive(cache_dir: Path, java: Java, jars: Sequence[Path]) -> Path | None:
    path = archive_path(cache_dir, java, jars)
    return path if path.is_file() else None


def provide_class_archive(cache_dir: Path, java: Java, jars: Sequence[Path]) -> Path | None:
    """The archive, made first if needed, which takes half a minute; None if it cannot be made.

    Nothing needs it: why there is none is only logged.
    """
    path = archive_path(cache_dir, java, jars)
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(path.with_suffix(".lock")):
        if path.is_file():
            return path
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            made = Path(scratch) / path.name
            command = [*_MAKE, made, java.home, Path(scratch) / "work", *jars]
            output = _run([str(part) for part in command])
            if made.is_file() and made.stat().st_size > 0:
                _remove_older(path)
                return made.replace(path)
    _log.warning("classes are not archived, runners start more slowly", error=output)
    return None


def _remove_older(path: Path) -> None:
    """The archives of what was installed in the same place before; each has 200 MB."""
    place = path.name.rpartition("-")[0]
    for older in path.parent.glob(f"{place}-*"):
        if older.stem != path.stem:  # the lock of this one is held
            older.unlink(missing_ok=True)


def _run(command: Sequence[str]) -> str:
    """What the command has said at its end."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_MAKE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return str(exc)
    return (done.stderr or done.stdout)[-500:]
