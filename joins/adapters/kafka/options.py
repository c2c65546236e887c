"""kafka-python's arguments for a cluster: TLS, OAuth tokens, connections."""

import math
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import httpx
from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.net.selector import NetworkSelector

from joins.adapters.network import HttpClient, load_certificate
from joins.plan.connections import (
    CLIENT_ID,
    CLIENT_SECRET,
    KEY_PASSWORD,
    KEYSTORE_CERTIFICATES,
    KEYSTORE_KEY,
    SCOPE,
    TOKEN_URL,
    TRUSTSTORE_CERTIFICATES,
    VERIFIED_NAME,
    ClientNumber,
)
from joins.plan.plan import KafkaOptions
from watermark.errors import Secret

_TIMEOUT_S = 5.0
_USED_OF_LIFE = 0.8  # a token is renewed before it expires, like in Java's client
_LIFE_S = 300.0  # if the provider does not say


class TokenUnavailableError(kafka_errors.RetriableError):  # type: ignore[misc] # it has no types
    """The token endpoint does not answer."""


class TokenRefusedError(kafka_errors.KafkaError):  # type: ignore[misc] # it has no types
    """The token endpoint refuses this client."""


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc] # it has no types
    """The token of one login; thread-safe. TokenUnavailableError, TokenRefusedError."""

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
        with self._lock:
            if time.monotonic() >= self._renewed_at_s:
                began_s, answer = time.monotonic(), self._answer()
                token = answer.get("access_token")
                if not isinstance(token, str) or not token:
                    raise TokenRefusedError(f'"{self._url}" gives no access_token')
                life_s = _life_s(answer.get("expires_in"))
                token = Secret(token, "the token")
                self._token, self._renewed_at_s = token, began_s + _USED_OF_LIFE * life_s
            return self._token

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


def _life_s(value: object) -> float:
    """Seconds that a token lives; some providers write the number as text."""
    with suppress(ValueError):
        if math.isfinite(life_s := float(str(value))):
            return life_s
    return _LIFE_S


_OF_A_CERTIFICATE = "CERTIFICATE"  # in OpenSSL's errors; others pass, as when a broker ends
_Received = tuple[bytes, Exception | None]


class TlsError(kafka_errors.KafkaError):  # type: ignore[misc] # it has no types
    """Broker and client do not trust each other's certificates."""


_TLS_REASON = re.compile(r"[A-Z]{3,}(?:_[A-Z]+)+")


class PemError(kafka_errors.KafkaConfigurationError):  # type: ignore[misc] # it has no types
    """A certificate or key of the properties cannot be used."""


def error_about(kind: type[kafka_errors.KafkaError], what: str) -> kafka_errors.KafkaError:
    """One of Kafka's errors about `what`, which is text of ours: `refusal` shows it."""
    error = kind(what)
    error.what = what
    return error


def refusal(error: BaseException) -> str:
    """Our text of an error of ours, else Kafka's name of it; a library's text is a detail."""
    if isinstance(error, TokenUnavailableError | TokenRefusedError | PemError):
        return str(error.args[0])
    if isinstance(error, TlsError):
        reason = _TLS_REASON.search(str(error))
        why = "" if reason is None else f": {reason[0]}"
        return f"one side does not accept the other's certificate{why}"
    what, name = getattr(error, "what", None), type(error).__name__
    return name if what is None else f"{name}: {what}"


_LEADERS_AGAIN_MS = 20
"""From one question about leaders to the next: so long the first one waits behind the bootstrap."""


class NetClient(KafkaNetClient):  # type: ignore[misc] # it has no types
    """kafka-python's connections, which remember why the last attempt to connect failed."""

    def __init__(self, **configs: Any) -> None:  # noqa: ANN401 (kafka-python's own)
        net = NetworkSelector(**configs)
        super().__init__(net=net, manager=_Connections(net, **configs), **configs)


class _Connections(KafkaConnectionManager):  # type: ignore[misc] # it has no types
    def __init__(self, net: NetworkSelector, **configs: Any) -> None:  # noqa: ANN401
        super().__init__(net, **configs)
        self.cluster.config["retry_backoff_ms"] = _LEADERS_AGAIN_MS
        self._failure: BaseException | None = None

    async def _build_transport(self, *node: Any, **named: Any) -> Any:  # noqa: ANN401
        transport = await super()._build_transport(*node, **named)
        transport._sock_recv = partial(_last_words, transport._sock_recv)
        return transport

    async def _connect(self, node: Any, conn: Any, *more: Any, **named: Any) -> None:  # noqa: ANN401
        note = partial(self._note, node.node_id)
        conn.init_future.add_errback(note)
        await super()._connect(node, conn, *more, **named)
        if conn.init_future.failed():
            note(conn.init_future.exception)  # the connection was forgotten meanwhile

    def _note(self, node: object, failure: BaseException) -> None:
        if _OF_A_CERTIFICATE in str(failure):
            failure = TlsError(str(failure))
        self._failure = failure
        if isinstance(failure, TlsError | kafka_errors.SaslAuthenticationFailedError):
            self._auth_failures[node] = failure  # raised for the next request to the broker

    async def _do_bootstrap(self, deadline: float | None) -> Any:  # noqa: ANN401
        try:
            return await super()._do_bootstrap(deadline)
        except kafka_errors.KafkaTimeoutError as exc:
            if self._failure is None:
                raise
            raise kafka_errors.KafkaTimeoutError(f"{exc.args[0]}: {self._failure}") from exc


def _last_words(receive: Callable[[], _Received]) -> _Received:
    data, error = receive()
    return data, None if data else error


def tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """The TLS context for a broker; PemError for an invalid certificate or key."""
    try:
        context = ssl.create_default_context(cadata=properties.get(TRUSTSTORE_CERTIFICATES))
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = properties.get(VERIFIED_NAME, "https") == "https"
        if KEYSTORE_CERTIFICATES in properties:
            key, password = properties.get(KEYSTORE_KEY, ""), properties.get(KEY_PASSWORD, "")
            load_certificate(context, properties[KEYSTORE_CERTIFICATES], key, password)
    except (ssl.SSLError, ValueError) as exc:
        raise PemError("the PEM texts of ssl.truststore and ssl.keystore cannot be used") from exc
    return context


_CLIENT_NAMES = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "client.id": "client_id",
}
_NUMBERS = {
    ClientNumber.IDLE_MS: "connections_max_idle_ms",
    ClientNumber.METADATA_MS: "metadata_max_age_ms",
    ClientNumber.BACKOFF_MS: "reconnect_backoff_ms",
    ClientNumber.BACKOFF_MAX_MS: "reconnect_backoff_max_ms",
    ClientNumber.RETRY_MS: "retry_backoff_ms",
    ClientNumber.RECEIVE_BYTES: "receive_buffer_bytes",
    ClientNumber.SEND_BYTES: "send_buffer_bytes",
}


def client_options(kafka: KafkaOptions) -> dict[str, Any]:
    """kafka-python's keyword arguments; KafkaError for an invalid certificate or no token."""
    properties = dict(kafka.properties)
    servers = kafka.bootstrap_servers.split(",")
    options: dict[str, Any] = {"bootstrap_servers": servers, "kafka_client": NetClient}
    for name, value in properties.items():
        if name in _CLIENT_NAMES:
            options[_CLIENT_NAMES[name]] = value
        elif name in _NUMBERS:
            options[_NUMBERS[ClientNumber(name)]] = int(value)
    if properties.get("security.protocol", "").endswith("SSL"):
        options["ssl_context"] = tls_context(properties)
    if properties.get("sasl.mechanism") == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = TokenProvider(properties)
    return options
