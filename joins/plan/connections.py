"""Connection options of Kafka, schema registries and object stores, as plans keep them."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE = "sasl.oauthbearer.scope"
TRUSTSTORE_CERTIFICATES = "ssl.truststore.certificates"
TRUSTSTORE_FILE = "ssl.truststore.location"
KEYSTORE_CERTIFICATES = "ssl.keystore.certificate.chain"
KEYSTORE_KEY = "ssl.keystore.key"
KEYSTORE_FILE = "ssl.keystore.location"
KEY_PASSWORD = "ssl.key.password"
VERIFIED_NAME = "ssl.endpoint.identification.algorithm"
OF_THE_TOKEN_ENDPOINT = (CLIENT_ID, CLIENT_SECRET)
"""Sent to the token endpoint, not to a broker."""
FILES = {TRUSTSTORE_FILE: TRUSTSTORE_CERTIFICATES, KEYSTORE_FILE: KEYSTORE_CERTIFICATES}
"""Property with a file's path → property with its text."""
KAFKA_CREDENTIALS = frozenset(
    {"sasl.password", CLIENT_SECRET, KEYSTORE_KEY, KEYSTORE_FILE, KEY_PASSWORD}
)


class ClientNumber(StrEnum):
    """Properties that are numbers."""

    FETCH_BYTES = "fetch.max.bytes"
    PARTITION_BYTES = "max.partition.fetch.bytes"
    IDLE_MS = "connections.max.idle.ms"
    METADATA_MS = "metadata.max.age.ms"
    BACKOFF_MS = "reconnect.backoff.ms"
    BACKOFF_MAX_MS = "reconnect.backoff.max.ms"
    RETRY_MS = "retry.backoff.ms"
    RECEIVE_BYTES = "receive.buffer.bytes"
    SEND_BYTES = "send.buffer.bytes"


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """A registry with Confluent's interface."""

    url: str
    # `user:password` for basic authentication
    user_info: str | None = field(default=None, repr=False)
    ca: str | None = None  # trusted certificates, PEM; None: the machine's
    # the client's certificate, PEM, with its `key`, if the registry requires one
    cert: str | None = None
    key: str | None = field(default=None, repr=False)


S3_ENDPOINT, S3_KEY, S3_SECRET = "s3.endpoint", "s3.access-key", "s3.secret-key"
S3_TOKEN, S3_REGION, S3_PATH_STYLE = "s3.session-token", "s3.region", "s3.path.style.access"
AZURE_ENDPOINT, AZURE_ACCOUNT = "azure.endpoint", "azure.account"
AZURE_KEY, AZURE_SAS = "azure.account-key", "azure.sas-token"
STORE_CREDENTIALS = (S3_KEY, S3_SECRET, S3_TOKEN, AZURE_KEY, AZURE_SAS)
"""Secret options."""
OF_STORES = (
    *(S3_ENDPOINT, S3_KEY, S3_SECRET, S3_TOKEN, S3_REGION, S3_PATH_STYLE),
    *(AZURE_ENDPOINT, AZURE_ACCOUNT, AZURE_KEY, AZURE_SAS),
)
StoreOptions = tuple[tuple[str, str], ...]
"""Options of a table as the script has them, secrets by reference; none if the table is local."""

_SCHEME = re.compile(r"(s3a?|abfss|az)://")
_AZURE_HOST = re.compile(r"(?P<account>[a-z0-9]{3,24})\.(?:dfs|blob)\.core\.windows\.net")
_S3_SERVER = "s3.amazonaws.com:443"
STORE_PATH = (
    r"(?:s3a?://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
    r"|abfss://[a-z0-9$][a-z0-9-]{1,62}@[a-z0-9]{3,24}\.dfs\.core\.windows\.net"
    r"|az://[a-z0-9$][a-z0-9-]{1,62})"
    r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9_=+,@.-]+)+/?"
)
"""Pattern of the path of a table in a store."""


def is_in_store(path: str) -> bool:
    return _SCHEME.match(path) is not None


@dataclass(frozen=True, slots=True)
class StoreTable:
    """Address of a table in an object store."""

    scheme: str  # `s3`, `abfss` or `az`
    bucket: str  # or container
    account: str  # of Azure; empty for S3, or where an option names it
    key: str  # of the table's root, without slashes at its ends

    @classmethod
    def of(cls, path: str) -> "StoreTable":
        """`path` must be `is_in_store`."""
        parts = urlsplit(path)
        container, _, host = parts.netloc.rpartition("@")
        match = _AZURE_HOST.fullmatch(host) if container else None
        scheme = "s3" if parts.scheme == "s3a" else parts.scheme
        bucket, account = (container, match["account"]) if match else (parts.netloc, "")
        return cls(scheme, bucket, account, parts.path.strip("/"))

    @property
    def is_azure(self) -> bool:
        return self.scheme != "s3"

    @property
    def url(self) -> str:
        if self.account:
            return f"{self.scheme}://{self.bucket}@{self.account}.dfs.core.windows.net"
        return f"{self.scheme}://{self.bucket}"

    def server(self, options: StoreOptions) -> str:
        chosen = dict(options)
        endpoint = chosen.get(AZURE_ENDPOINT if self.is_azure else S3_ENDPOINT)
        if endpoint is not None:
            parts = urlsplit(endpoint)
            return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
        if not self.is_azure:
            return _S3_SERVER
        return f"{self.account or chosen.get(AZURE_ACCOUNT, '*')}.blob.core.windows.net:443"


def has_credentials(options: StoreOptions) -> bool:
    return any(name in STORE_CREDENTIALS for name, _ in options)
