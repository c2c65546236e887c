"""Structured logs on standard error: lines for a terminal, JSON for everything else."""

import logging
import re
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any

import structlog

from watermark.errors import redacted

_OURS = ("service", "joins")

_SENSITIVE = re.compile(r"password|passwd|secret|token|authorization", re.IGNORECASE)


_REMEMBERED = 10_000


class PerMinute:
    """Passes one line a minute, or `every_s`, for each cause, and counts the others."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, every_s: float = 60.0
    ) -> None:
        self._clock = clock
        self._every_s = every_s
        self._lock = threading.Lock()
        self._said: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()

    def due(self, cause: Hashable) -> int | None:
        """How many lines were omitted since the last one; None if this one is omitted too."""
        with self._lock:
            now = self._clock()
            at, left_out = self._said.get(cause, (-self._every_s, 0))
            due = now - at >= self._every_s
            self._said[cause] = (now, 0) if due else (at, left_out + 1)
            self._said.move_to_end(cause)
            while len(self._said) > _REMEMBERED:
                self._said.popitem(last=False)
            return left_out if due else None


class OfLibraries(logging.Filter):
    """Limits lines of libraries to one a minute each."""

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self._seen = PerMinute()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] in _OURS:
            return True
        kind = record.exc_info[0] if record.exc_info else None
        left_out = self._seen.due((record.name, record.levelno, str(record.msg), kind))
        if left_out:
            record.msg = f"{record.msg} ({left_out} more of these were left out)"
        return left_out is not None


def configure_logs(level: str = "INFO", *, as_json: bool | None = None) -> None:
    """Send the logs of this process, including those of libraries, to standard error.

    Libraries log from WARNING. With `as_json` None, a terminal gets lines and everything else JSON.
    """
    use_json = not sys.stderr.isatty() if as_json is None else as_json
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _hide_secrets,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if use_json else structlog.dev.ConsoleRenderer()
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                renderer,
                _redacted,
            ],
            foreign_pre_chain=shared,
        )
    )
    handler.addFilter(OfLibraries())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for package in _OURS:
        logging.getLogger(package).setLevel(level)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def _redacted(_logger: object, _method: str, line: Any) -> str:  # noqa: ANN401 (it is rendered)
    return redacted(str(line))


def _hide_secrets(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    for key in event:
        if _SENSITIVE.search(key):
            event[key] = "(hidden)"
    return event
