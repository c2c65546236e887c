"""The archive of a JVM's classes in the cache: with it a runner starts in two thirds of the time.

It fits one Java, one PySpark and one set of jars; a JVM to which it does not fit ignores it.
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
_MAKE = (sys.executable, "-m", "joins.class_warm_up")
_MAKE_S = 600


def archive_path(cache_dir: Path, java: Java, jars: Sequence[Path]) -> Path:
    """Where the archive for `java` and Spark with `jars` is, once it has been made."""
    release = java.home / "release"
    told = release.read_bytes() if release.is_file() else str(java.version).encode()
    spark = importlib.metadata.distribution("pyspark")
    parts = [told, str(java.home.resolve()).encode(), str(spark.locate_file("")).encode()]
    parts += [spark.version.encode(), *(str(jar).encode() for jar in jars)]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    return cache_dir / "classes" / f"spark-{digest}.jsa"


def class_archive(cache_dir: Path, java: Java, jars: Sequence[Path]) -> Path | None:
    """The archive, if it has been made."""
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
            told = _run([str(part) for part in command])
            if made.is_file() and made.stat().st_size > 0:
                return made.replace(path)
    _log.warning("classes are not archived, runners start more slowly", error=told)
    return None


def _run(command: Sequence[str]) -> str:
    """What the command has said at its end."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_MAKE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return str(exc)
    return (done.stderr or done.stdout)[-500:]
