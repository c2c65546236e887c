"""What people see while jars are fetched: how much it is; on a terminal, how far it is."""

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from service.embedded.jarlock import Jar, JarSet

_REFRESH_S = 0.3
_PARTS = {
    JarSet.SPARK: "Delta for Spark",
    JarSet.BROKER: "Kafka",
    JarSet.DATABASE: "MariaDB",
    JarSet.CONNECT: "Kafka Connect with Debezium",
    JarSet.POSTGRES: "PostgreSQL",
    JarSet.REGISTRY: "a schema registry",
    JarSet.REFERENCE: "Spark's Kafka source",
}


@contextlib.contextmanager
def download_progress(jars: Sequence[Jar], arriving: Path) -> Iterator[None]:
    """Say how much `jars` are; on a terminal show how much has arrived below `arriving`."""
    total = sum(jar.size_bytes for jar in jars)
    what = f"{_PARTS[jars[0].jar_set]}: {len(jars)} files, {total / 1e6:,.0f} MB"
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
