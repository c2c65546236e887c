"""The datagen process seen from the runner: started when it is not there, ended with the runner."""

import contextlib
import json
import subprocess
import sys
import time

import structlog

from joins.adapters.datagen.process import datagen_config
from joins.plan.plan import DatagenSource, Field, KafkaOptions

_BACKOFF_S = (1.0, 15.0)
_HEALTHY_S = 60.0
_log = structlog.get_logger(__name__)


class DatagenProcess:
    """Keeps one generator alive; call `keep_alive` from a thread that lives as long as the job."""

    def __init__(
        self, kafka: KafkaOptions, source: DatagenSource, fields: tuple[Field, ...], seed: int
    ) -> None:
        self._config = datagen_config(kafka, source, fields, seed)
        self._child: subprocess.Popen[str] | None = None
        self._started_at = 0.0
        self._start_at: float | None = 0.0
        self._wait_s = _BACKOFF_S[0]

    def keep_alive(self) -> None:
        """Start the generator, again after a failure, but not after it has made its last row.

        A failure is followed by a wait, which doubles until a generator lives for a minute.
        """
        if self._start_at is None:
            self._look()
        elif time.monotonic() >= self._start_at:
            self._start()

    def _look(self) -> None:
        code = None if self._child is None else self._child.poll()
        if code not in (None, 0):
            self._failed(f"exit code {code}")

    def _failed(self, cause: str) -> None:
        now = time.monotonic()
        if now - self._started_at > _HEALTHY_S:
            self._wait_s = _BACKOFF_S[0]
        self._start_at = now + self._wait_s
        _log.warning("generator failed", cause=cause, retry_in_s=self._wait_s)
        self._wait_s = min(2 * self._wait_s, _BACKOFF_S[1])

    def _start(self) -> None:
        self._release()
        self._started_at, self._start_at = time.monotonic(), None
        try:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "joins.adapters.datagen"], stdin=subprocess.PIPE, text=True
            )
            assert self._child.stdin is not None
            self._child.stdin.write(json.dumps(self._config) + "\n")
            self._child.stdin.flush()
        except OSError as exc:  # it has ended already, or there is no room for another process
            self._failed(str(exc))

    def _release(self) -> None:
        """End the one before, which may live if it could not be told what to do."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        with contextlib.suppress(OSError):
            assert child.stdin is not None
            child.stdin.close()
