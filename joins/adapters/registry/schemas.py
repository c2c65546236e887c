"""The schemas that writers have registered: asked for by number, once each."""

import ssl
from typing import Any, Self

import httpx

from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.registry import RegistryOptions

_TIMEOUT_S = 10.0
_NO_SCHEMA = 40403  # Confluent's code; another 404 is from somebody who is no registry
_AVRO = "AVRO"
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"


class SchemaRegistry:
    """Schemas of one registry, for one thread; it is a context manager.

    A schema never changes behind its number, so that it is kept.
    """

    def __init__(self, options: RegistryOptions) -> None:
        """Connects when first asked.

        Raises:
            SourceError: a file of `options` cannot be read.
        """
        self._url = options.url.rstrip("/")
        self._schemas: dict[int, str] = {}
        user = (options.user, options.password or "") if options.user is not None else None
        self._client = httpx.Client(
            timeout=_TIMEOUT_S,
            follow_redirects=False,
            trust_env=False,
            auth=user,
            verify=_trusted(options),
            headers={"Accept": _ACCEPT},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def avro_schema(self, number: int) -> str | None:
        """The Avro schema with that number in JSON; None if the registry has none of that number.

        Raises:
            SourceUnavailableError: the registry does not answer.
            SourceError: it refused, or the schema is not of Avro, or is made of others.
        """
        if number not in self._schemas:
            answer = self._answer(number)
            if answer is None:
                return None
            self._schemas[number] = self._avro(number, answer)
        return self._schemas[number]

    def _answer(self, number: int) -> dict[str, Any] | None:
        try:
            answer = self._client.get(f"{self._url}/schemas/ids/{number}")
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
        value = _object(answer)
        if status == httpx.codes.NOT_FOUND and value.get("error_code") == _NO_SCHEMA:
            return None
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise SourceError(
                f'schema registry "{self._url}" refuses to tell schema {number}: status {status}',
                hint="Correct its user and password, or let this user read schemas.",
            )
        if status != httpx.codes.OK or not isinstance(value.get("schema"), str):
            raise SourceError(
                f'"{self._url}" is no schema registry: asked for schema {number} '
                f"it answers with status {status}",
                hint="Correct its address: it ends before /schemas and /subjects.",
            )
        return value

    def _avro(self, number: int, answer: dict[str, Any]) -> str:
        kind = answer.get("schemaType") or _AVRO
        if kind != _AVRO:
            raise SourceError(
                f'schema {number} of registry "{self._url}" is of type "{kind}", not "{_AVRO}"',
                hint="Declare the format that the topic has, or name a topic of Avro.",
            )
        if answer.get("references"):
            raise SourceError(
                f'schema {number} of registry "{self._url}" refers to other schemas',
                hint="Register it as one whole schema: references are not followed.",
            )
        return str(answer["schema"])


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        value = answer.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _trusted(options: RegistryOptions) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
        if options.certificate_file is not None:
            context.load_cert_chain(options.certificate_file, options.key_file)
    except OSError as exc:
        names = (options.ca_file, options.certificate_file, options.key_file)
        shown = ", ".join(f'"{name}"' for name in names if name is not None)
        raise SourceError(
            f"certificates {shown} for the schema registry cannot be read: {exc.strerror or exc}",
            hint="Name PEM files that this user can read, the key without a passphrase.",
        ) from exc
    return context
