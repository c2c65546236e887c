"""Starts the reference as a program, on the same offsets, cores, memory and jars as ours."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.batches import BatchTime, batch_times
from tests.bench.place import CORES, Place, spark_jars
from tests.bench.shop import CLICKS, Stream

_ROOT = Path(__file__).resolve().parents[2]
_TOLD = 8_000  # characters of its log
_RUNS_WITHIN_S = 3_600.0


@dataclass(frozen=True)
class Work:
    """What the reference is to do.

    Attributes:
        dimension: path of the Delta table; None passes the records on as they are.
        sink: Spark's name of it and its options.
        windows: `size` and `delay` of windows in which to count; None does not.
        memory: of its JVM, where it needs more than ours has: a broadcast of 5 M rows fails in 4 g
            now and then.
        real_time: in Spark's real-time mode, which has no state.
    """

    stream: Stream
    starting: Mapping[int, int]
    dimension: str | None
    sink: tuple[str, Mapping[str, str]]
    max_records: int = 500_000
    schema: str = CLICKS
    windows: Mapping[str, str] | None = None
    memory: str | None = None
    real_time: bool = False


@dataclass(frozen=True)
class Reference:
    """The reference in one place."""

    place: Place
    work: Work
    jars: list[Path] = field(default_factory=spark_jars)

    def _config(self, checkpoint: Path, *, follow: bool) -> str:
        work = self.work
        name, options = work.sink
        starting = {work.stream.topic: {str(p): at for p, at in work.starting.items()}}
        config: dict[str, Any] = {
            # in real-time mode each partition holds a slot
            "master": f"local[{len(work.starting) if work.real_time else CORES}]",
            "memory": work.memory or self.place.driver_memory,
            "jars": [str(jar) for jar in self.jars],
            "scratch": str(self.place.new("spark")),
            "bootstrap": self.place.kafka.bootstrap_servers,
            "topic": work.stream.topic,
            "starting": starting,
            "max_records": work.max_records,
            "schema": work.schema,
            "dimension": work.dimension,
            "windows": None if work.windows is None else dict(work.windows),
            "sink": {"format": name, "options": dict(options)},
            "checkpoint": str(checkpoint),
            "follow": follow,
            "real_time": work.real_time,
        }
        return json.dumps(config)

    def run(self) -> list[BatchTime]:
        """Join what is in the stream, and end; the batches but for the first two."""
        checkpoint = self.place.new("checkpoint")
        command = [sys.executable, "-m", "tests.bench.reference"]
        command.append(self._config(checkpoint, follow=False))
        with self._log().open("ab") as log:
            done = subprocess.run(
                command, cwd=_ROOT, stdout=log, stderr=log, check=False, timeout=_RUNS_WITHIN_S
            )
        if done.returncode:
            told = self._log().read_text(errors="replace")[-_TOLD:]
            raise RuntimeError(f"the reference ended with exit code {done.returncode}: {told}")
        return batch_times(checkpoint)

    @contextmanager
    def following(self) -> Iterator[None]:
        """The query runs for as long as the block lasts."""
        command = [sys.executable, "-m", "tests.bench.reference"]
        command.append(self._config(self.place.new("checkpoint"), follow=True))
        with (
            self._log().open("ab") as log,
            subprocess.Popen(
                command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            ) as program,
        ):
            assert program.stdin is not None
            assert program.stdout is not None
            try:
                assert program.stdout.readline() == b"started\n", "the reference did not start"
                yield
            finally:
                program.stdin.close()
                program.wait(timeout=60)

    def _log(self) -> Path:
        self.place.directory.mkdir(parents=True, exist_ok=True)
        return self.place.directory / "reference.log"
