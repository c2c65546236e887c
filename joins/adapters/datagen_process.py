"""The datagen process seen from the runner: started when it is not there, ended with the runner."""

import json
import subprocess
import sys

from joins.adapters.datagen import datagen_config
from joins.plan import DatagenSource, Field, KafkaOptions


class DatagenProcess:
    """Keeps one generator alive; call `keep_alive` from a thread that lives as long as the job."""

    def __init__(
        self, kafka: KafkaOptions, source: DatagenSource, fields: tuple[Field, ...], seed: int
    ) -> None:
        self._config = datagen_config(kafka, source, fields, seed)
        self._child: subprocess.Popen[str] | None = None

    def keep_alive(self) -> None:
        """Start the generator, again after a failure, but not after it has made its last row."""
        if self._child is not None and (self._child.poll() is None or self._child.returncode == 0):
            return
        self._child = subprocess.Popen(
            [sys.executable, "-m", "joins.adapters.datagen"], stdin=subprocess.PIPE, text=True
        )
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(self._config) + "\n")
        self._child.stdin.flush()
