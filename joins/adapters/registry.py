"""Schemas of Confluent-compatible registries."""

import ssl
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Self
from urllib.parse import quote

import httpx

from joins.adapters.network import HttpClient, load_certificate
from joins.plan.connections import RegistryOptions
from joins.plan.errors import SourceError, SourceUnavailableError, UnreadableSchemaError
from joins.plan.formats import SUBJECT, RecordFormat, RecordKey

_TIMEOUT_S = 10.0
# Confluent's codes; another 404 is not from a registry
_NO_SCHEMA, _NO_SUBJECT = (40403,), (40401, 40402)
_NO_SUBJECT_OR_SCHEMA = (40401, 40402, 40403)
_AVRO = "AVRO"
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"


class SchemaRegistry:
    """Cached schemas of one registry; a context manager for one thread.

    A schema never changes under its number. Methods raise SourceUnavailableError if the registry
    does not answer, SourceError if it refuses.
    """

    def __init__(self, options: RegistryOptions) -> None:
        """Connects on first use; SourceError for an invalid certificate or key."""
        self._url = options.url.rstrip("/")
        self._schemas: dict[int, str] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        user, _, password = (options.user_info or "").partition(":")
        self._client = HttpClient(
            self._url,
            _TIMEOUT_S,
            auth=None if options.user_info is None else (user, password),
            verify=_trusted(options),
            headers={"Accept": _ACCEPT},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def avro_schema(self, number: int) -> str | None:
        """The Avro schema of that number in JSON, None if there is none.

        Raises UnreadableSchemaError if it is not Avro, or refers to other schemas.
        """
        if number not in self._schemas:
            what = f"schema {number}"
            answer = self._answer(f"schemas/ids/{number}", what, _NO_SCHEMA)
            if answer is None:
                return None
            self._schemas[number] = self._avro(what, answer)
        return self._schemas[number]

    def newest_avro_schema(self, subject: str) -> str | None:
        what = f'the schema of "{subject}"'
        path = f"subjects/{quote(subject, safe='')}/versions/latest"
        answer = self._answer(path, what, _NO_SUBJECT)
        return None if answer is None else self._avro(what, answer)

    def number_of(self, subject: str, schema: str) -> int:
        """The number of an Avro schema under a subject, registered if necessary."""
        if (subject, schema) not in self._numbers:
            path, body = f"subjects/{quote(subject, safe='')}", {"schema": schema}
            what = f'the schema of "{subject}"'
            answer = self._answer(path, what, _NO_SUBJECT_OR_SCHEMA, body)
            if answer is None:
                answer = self._answer(f"{path}/versions", what, (), body)
            assert answer is not None, "nothing is missing where it is made"
            self._numbers[subject, schema] = int(answer["id"])
        return self._numbers[subject, schema]

    def _answer(
        self,
        path: str,
        what: str,
        missing: tuple[int, ...],
        body: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any] | None:
        answer = self._sent(path, body)
        status, value = answer.status_code, _object(answer)
        if status == httpx.codes.NOT_FOUND and value.get("error_code") in missing:
            return None
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise SourceError(
                f'schema registry "{self._url}" refuses to tell {what}: status {status}',
                hint="Correct its user and password, or let this user read schemas.",
            )
        if body is not None and status in (httpx.codes.CONFLICT, httpx.codes.UNPROCESSABLE_ENTITY):
            raise SourceError(
                f'schema registry "{self._url}" does not take {what}: '
                f"{str(value.get('message'))[:300]}",
                hint="Declare columns that go with the schemas that the subject has, or name "
                "another subject.",
            )
        expected = ("schema", str) if body is None else ("id", int)
        if status != httpx.codes.OK or not isinstance(value.get(expected[0]), expected[1]):
            raise SourceError(
                f'"{self._url}" is no schema registry: asked for {what} '
                f"it answers with status {status}",
                hint="Correct its address: it ends before /schemas and /subjects.",
            )
        return value

    def _sent(self, path: str, body: Mapping[str, str] | None) -> httpx.Response:
        """A final answer: not 429 or 5xx."""
        url = f"{self._url}/{path}"
        try:
            answer = self._client.get(url) if body is None else self._client.post(url, json=body)
        except httpx.HTTPError as exc:
            raise SourceUnavailableError(
                f'schema registry "{self._url}" does not answer: {type(exc).__name__}',
                hint="Start it, or correct its address and its certificates; it is asked again.",
            ) from exc
        status = answer.status_code
        if status >= httpx.codes.INTERNAL_SERVER_ERROR or status == httpx.codes.TOO_MANY_REQUESTS:
            raise SourceUnavailableError(
                f'schema registry "{self._url}" answers with status {status}',
                hint="See its log; it is asked again.",
            )
        return answer

    def _avro(self, what: str, answer: Mapping[str, Any]) -> str:
        kind = answer.get("schemaType") or _AVRO
        if kind != _AVRO:
            raise UnreadableSchemaError(
                f'{what} of registry "{self._url}" is of type "{kind}", not "{_AVRO}"',
                hint="Declare the format that the topic has, or name a topic of Avro.",
            )
        if answer.get("references"):
            raise UnreadableSchemaError(
                f'{what} of registry "{self._url}" refers to other schemas',
                hint="Register it as one whole schema: references are not followed.",
            )
        return str(answer["schema"])


def check_registries(value: RecordFormat, key: RecordKey | None) -> None:
    """Check that the registries of a topic's values and keys answer."""
    for form in (value,) if key is None else (value, key.format):
        if form.registry is not None:
            with SchemaRegistry(form.registry) as registry:
                registry.newest_avro_schema(form.text(SUBJECT, "sluice-check"))


@cache
def shared_registry(options: RegistryOptions) -> SchemaRegistry:
    return SchemaRegistry(options)


def shared_schemas(options: RegistryOptions) -> Callable[[int], str | None]:
    """The schemas of `shared_registry` by number; ValueError if one is not Avro."""
    registry = shared_registry(options)

    def schema_of(number: int) -> str | None:
        try:
            return registry.avro_schema(number)
        except UnreadableSchemaError as exc:
            raise ValueError(exc.message) from exc

    return schema_of


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        value = answer.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _trusted(options: RegistryOptions) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=options.ca)
        if options.cert is not None:
            load_certificate(context, options.cert, options.key or "")
    except (ssl.SSLError, ValueError) as exc:
        raise SourceError(
            f'certificates for schema registry "{options.url}" cannot be used: {exc}',
            hint="Give PEM texts, the key without a passphrase.",
        ) from exc
    return context
