"""The streaming queries of one job: started, watched, started again with a growing delay."""

import time
from collections.abc import Callable
from typing import Protocol

import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from joins.durable.stalls import Stalls
from joins.plan.errors import CheckpointError, FencedError, JoinError
from watermark.errors import SluiceError

_RETRY_MIN_S, _RETRY_MAX_S = 1.0, 20.0
_log = structlog.get_logger(__name__)


class Query(Protocol):
    """What is asked of a query: a `StreamingQuery` of Spark's, or a loop of ours."""

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Whether it runs."""
        ...

    @property
    def lastProgress(self) -> object:  # noqa: N802 - Spark's name
        """What its newest batch has done, None before the first."""
        ...

    def exception(self) -> object:
        """Why it has ended by itself."""
        ...

    def stop(self) -> None:
        """End it."""
        ...


class Queries:
    """Keeps the named queries running; all calls but `note_error` come from one thread.

    Args:
        explain: what an error of Spark's means for a query, None if it means nothing special.
    """

    def __init__(
        self,
        stalls: Stalls,
        start: Callable[[str], Query],
        explain: Callable[[str, object], SluiceError | None],
    ) -> None:
        self._stalls = stalls
        self._start = start
        self._explain = explain
        self._queries: dict[str, Query] = {}
        self._errors: dict[str, Exception] = {}
        self._retry_at: dict[str, float] = {}
        self._retry_delay: dict[str, float] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._queries

    def note_error(self, name: str, error: Exception) -> None:
        """Why a batch of query `name` failed; from the query's own thread."""
        self._errors[name] = error

    def start(self, name: str) -> None:
        """Start query `name`; it goes on from its checkpoint."""
        self._errors.pop(name, None)
        self._queries[name] = self._start(name)

    def is_active(self, name: str) -> bool:
        """Whether query `name` runs."""
        query = self._queries.get(name)
        return query is not None and bool(query.isActive)

    def drop(self, name: str) -> None:
        """Stop query `name` and forget it, until it is started again."""
        query = self._queries.pop(name, None)
        self._retry_at.pop(name, None)
        self._retry_delay.pop(name, None)
        self._stalls.clear(name)
        if query is not None:
            _stop(query)

    def watch(self) -> None:
        """See which queries have ended, tell why, and start them again when it is time.

        Raises:
            FencedError: a newer runner has taken over.
            CheckpointError: the job's durable files cannot be used.
        """
        now = time.monotonic()
        for name, query in list(self._queries.items()):
            if query.isActive:
                self._recovered(name, query)
            elif name not in self._retry_at:
                self._note_failure(name, query)
                self._retry_delay[name] = self._next_delay(name, query)
                self._retry_at[name] = now + self._retry_delay[name]
            elif now >= self._retry_at[name]:
                self._restart(name)

    def stop(self) -> None:
        """Stop every query."""
        for query in self._queries.values():
            _stop(query)

    def _next_delay(self, name: str, query: Query) -> float:
        """Twice the last one, unless `query` did a batch meanwhile that nobody had seen yet."""
        last = self._retry_delay.get(name)
        if last is None or query.lastProgress is not None:
            return _RETRY_MIN_S
        return min(last * 2, _RETRY_MAX_S)

    def _recovered(self, name: str, query: Query) -> None:
        if name in self._retry_delay and query.lastProgress is not None:
            self._stalls.clear(name)
            del self._retry_delay[name]

    def _restart(self, name: str) -> None:
        del self._retry_at[name]
        try:
            self.start(name)
        except (FencedError, CheckpointError):
            raise
        except (SluiceError, OSError) as exc:
            self._errors[name] = exc

    def _note_failure(self, name: str, query: Query) -> None:
        error = self._errors.get(name)
        if isinstance(error, FencedError | CheckpointError):
            raise error
        if not isinstance(error, SluiceError):
            cause = error if error is not None else query.exception()
            error = self._explain(name, cause) or JoinError(
                f"{name} query ended: {_first_line(cause)}",
                hint="It is started again by itself; if this stays, see the runner's log.",
            )
        self._stalls.note(name, error)
        _log.warning("query ended", query=name, error=error.message, hint=error.hint)


def _stop(query: Query) -> None:
    try:
        query.stop()
    except (PySparkException, Py4JError) as exc:
        _log.warning("query did not stop cleanly", error=_first_line(exc))


def _first_line(error: object) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or ["unknown cause"])[0][:300]
