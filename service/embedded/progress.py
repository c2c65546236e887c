"""What people see on a terminal while jars are fetched."""

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from service.embedded.jarlock import Jar

_REFRESH_S = 0.3


@contextlib.contextmanager
def download_progress(jars: Sequence[Jar], arriving: Path) -> Iterator[None]:
    """Show how much of `jars` has arrived below `arriving`, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    done = threading.Event()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        total = sum(jar.size_bytes for jar in jars)
        task = progress.add_task(f"fetching {jars[0].jar_set.value} jars", total=total)

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
