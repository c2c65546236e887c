"""Tokens for brokers: got from a provider by the client's id and secret, and kept while they hold.

Source: RFC 6749, section 4.4 (grant `client_credentials`); KIP-768 and KIP-1139 for the names.
"""

import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any

import httpx
from kafka import errors as kafka_errors
from kafka.net.sasl.oauth import AbstractTokenProvider

from joins.adapters.http_client import HttpClient
from joins.plan.connections import (
    CLIENT_ID,
    CLIENT_SECRET,
    SCOPE,
    TOKEN_URL,
    TRUSTSTORE_CERTIFICATES,
)
from watermark.errors import Secret

_TIMEOUT_S = 5.0
_USED_OF_LIFE = 0.8  # a token is renewed before it expires, as Java's client does
_LIFE_S = 300.0  # where the provider does not say


class TokenUnavailableError(kafka_errors.RetriableError):  # type: ignore[misc] # it has no types
    """The provider does not answer now."""


class TokenRefusedError(kafka_errors.KafkaError):  # type: ignore[misc] # it has no types
    """The provider gives no token to this client."""


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc] # it has no types
    """The token of one login; safe to use from several threads.

    Args:
        properties: the client's.

    Raises:
        TokenUnavailableError: there is no first token now.
        TokenRefusedError: there is none for this client.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__()
        self._url = properties[TOKEN_URL]
        self._login = properties[CLIENT_ID], properties[CLIENT_SECRET]
        self._form = {"grant_type": "client_credentials"}
        if SCOPE in properties:
            self._form["scope"] = properties[SCOPE]
        self._trusted = ssl.create_default_context()
        if TRUSTSTORE_CERTIFICATES in properties:
            self._trusted.load_verify_locations(cadata=properties[TRUSTSTORE_CERTIFICATES])
        self._lock = threading.Lock()
        self._token = ""
        self._renewed_at_s = float("-inf")
        self.token()

    def token(self) -> str:
        """A token that holds for a while.

        Raises:
            As the class.
        """
        with self._lock:
            if time.monotonic() >= self._renewed_at_s:
                self._renew()
            return self._token

    def _renew(self) -> None:
        began_s, answer = time.monotonic(), self._answer()
        token, life_s = answer.get("access_token"), answer.get("expires_in", _LIFE_S)
        if not isinstance(token, str) or not token or not isinstance(life_s, int | float):
            raise TokenRefusedError(f'"{self._url}" gives no access_token')
        token = Secret(token, "the token")
        self._token, self._renewed_at_s = token, began_s + _USED_OF_LIFE * life_s

    def _answer(self) -> Mapping[str, Any]:
        try:
            with HttpClient(
                self._url, _TIMEOUT_S, verify=self._trusted, auth=self._login
            ) as client:
                answer = client.post(self._url, data=self._form)
        except httpx.HTTPError as exc:
            raise TokenUnavailableError(
                f'token endpoint "{self._url}" does not answer: {type(exc).__name__}'
            ) from exc
        status = answer.status_code
        if status >= httpx.codes.INTERNAL_SERVER_ERROR or status == httpx.codes.TOO_MANY_REQUESTS:
            raise TokenUnavailableError(f'token endpoint "{self._url}" answers {status}')
        if status != httpx.codes.OK:
            raise TokenRefusedError(f'token endpoint "{self._url}" answers {status}')
        try:
            value = answer.json()
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise TokenRefusedError(f'"{self._url}" is no token endpoint: its answer is no JSON')
        return value
