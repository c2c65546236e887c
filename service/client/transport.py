"""Requests of the typed client: problems become typed errors, what is safe is tried again."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx
import stamina
from pydantic import BaseModel

from service.client.refusals import UnavailableError, typed
from service.client.wire import Client, RefusedError
from service.errors import ControlPlaneError

Answer = TypeVar("Answer", bound=BaseModel)
_ATTEMPTS = 6
_PATIENCE_S = 60.0
_TIMEOUT = httpx.Timeout(330.0, connect=5.0)


class Transport:
    """Speaks with one control plane.

    Args:
        client: that makes the requests.
        attempts: of a request that may be repeated.
    """

    def __init__(self, client: Client, *, attempts: int = _ATTEMPTS) -> None:
        self.client = client
        self._attempts = attempts

    def get(self, path: str, **query: object) -> dict[str, Any]:
        """A JSON document; parameters that are None are left out."""
        return dict(self.send("GET", path, params=_without_none(query)).json())

    def items(self, path: str, **query: object) -> Iterator[dict[str, Any]]:
        """The items of all pages; a page is asked for when the one before it is used up."""
        cursor = None
        while True:
            page = self.get(path, **query, cursor=cursor)
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401 (httpx's)
        """One request that may be repeated; it is, while the control plane cannot be reached.

        Raises:
            ProblemError: the control plane refuses.
            ControlPlaneError: it cannot be reached.
        """
        again = stamina.retry_context(on=_pause, attempts=self._attempts, timeout=_PATIENCE_S)
        for attempt in again:
            with attempt:
                return self._once(method, path, options)
        raise AssertionError("stamina raises what the last attempt has raised")

    def _once(self, method: str, path: str, options: Mapping[str, Any]) -> httpx.Response:
        try:
            return self.client.request(method, path, **{"timeout": _TIMEOUT, **options})
        except RefusedError as exc:
            raise typed(exc) from exc

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """An answer that goes on; raises as `send`."""
        try:
            with self.client.stream(path, headers) as answer:
                yield answer
        except RefusedError as exc:
            raise typed(exc) from exc


def parsed(model: type[Answer], document: object) -> Answer:
    """The document as `model`; what only newer control planes say is in `model_extra`."""
    return model.model_validate(document, extra="allow")


def is_passing(error: Exception) -> bool:
    """Whether the same request may succeed a little later."""
    if isinstance(error, RefusedError):
        return isinstance(error, UnavailableError)
    return isinstance(error, ControlPlaneError)


def _pause(error: Exception) -> bool | float:
    """Whether to try again, and when, if the control plane has said so."""
    if isinstance(error, UnavailableError) and error.retry_after_s is not None:
        return error.retry_after_s
    return is_passing(error)


def _without_none(query: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}
