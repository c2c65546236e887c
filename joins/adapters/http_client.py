"""Clients of servers that speak HTTP; within a deadline they wait no longer than it lasts."""

import ssl
from collections.abc import Mapping
from typing import Any

import httpx

from joins.adapters.deadline import current_deadline


class HttpClient(httpx.Client):
    """A client of one server, asked by its address alone: no proxy and no redirect of others.

    Args:
        server: its address, for errors.
        patience_s: how long one step of an answer is waited for.
        auth: user and password.
        verify: the certificates that are trusted; True: those of the machine.
        headers: of every request.
    """

    def __init__(
        self,
        server: str,
        patience_s: float,
        *,
        auth: tuple[str, str] | None = None,
        verify: ssl.SSLContext | bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            timeout=patience_s,
            trust_env=False,
            follow_redirects=False,
            auth=auth,
            verify=verify,
            headers=headers,
        )
        self._server = server
        self._patience_s = patience_s

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:  # noqa: ANN401
        """The answer of the server.

        Raises:
            httpx.HTTPError: there is none, or not in time.
            SourceUnavailableError: the deadline is over already.
        """
        deadline = current_deadline()
        if deadline is not None:
            left_s = deadline.left_s(self._server)
            request.extensions["timeout"] = httpx.Timeout(min(left_s, self._patience_s)).as_dict()
            deadline.on_end(self.close)  # an answer may come a byte at a time
        return super().send(request, **options)
