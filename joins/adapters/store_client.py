"""Clients of object stores, one per store and process, and their errors as Sluice's."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import obstore.exceptions as failures
from obstore.store import AzureStore, ObjectStore, S3Store

from joins.adapters.network import current_deadline
from joins.plan.connections import (
    AZURE_ACCOUNT,
    AZURE_ENDPOINT,
    AZURE_KEY,
    AZURE_SAS,
    S3_ENDPOINT,
    S3_KEY,
    S3_PATH_STYLE,
    S3_REGION,
    S3_SECRET,
    S3_TOKEN,
    StoreOptions,
    StoreTable,
    has_credentials,
)
from joins.plan.errors import StoreRefusedError, StoreUnavailableError

_NAMES = {
    S3_ENDPOINT: "aws_endpoint",
    S3_KEY: "aws_access_key_id",
    S3_SECRET: "aws_secret_access_key",
    S3_TOKEN: "aws_session_token",
    S3_REGION: "aws_region",
    AZURE_ENDPOINT: "azure_storage_endpoint",
    AZURE_ACCOUNT: "azure_storage_account_name",
    AZURE_KEY: "azure_storage_account_key",
    AZURE_SAS: "azure_storage_sas_key",
}
_REGION = "us-east-1"  # default region; servers other than Amazon's ignore it
_PATIENCES_S = (20.0, 8.0, 4.0, 2.0, 1.0, 0.5)
"""Timeouts of one request and its retry: the longest that the deadline has room for is used."""
_CONNECT_S = 5.0
_RETRIES = 5
_SHOWN = 300
_DEBUG = re.compile(r"\s*Debug source:[\s\S]*")
_QUERY = re.compile(r"\?[^\s\"')]+")  # may contain a shared access signature
_SKEWED = ("RequestTimeTooSkewed", "RequestExpired", "Request date header too old")
_SET_CLOCKS = "Set the clock of this machine right: signatures are valid for some minutes only."
_GIVE_CREDENTIALS = (
    "Give credentials that are valid now and may list, read, write and delete there."
)


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A bucket or container; equal addresses share a client.

    `url` has no key; `config` has the names of the crate object_store.
    """

    url: str
    config: tuple[tuple[str, str], ...] = ()
    is_plain_http: bool = False

    def __repr__(self) -> str:
        return f"StoreAddress({self.url!r})"

    @classmethod
    def of(cls, table: StoreTable, options: StoreOptions) -> "StoreAddress":
        """A table's store; StoreRefusedError if the environment's credentials would mix in."""
        if has_credentials(options):
            _check_environment(table, options)
        chosen = dict(options)
        config = {_NAMES[name]: value for name, value in options if name in _NAMES}
        if table.is_azure:
            if table.account:
                config[_NAMES[AZURE_ACCOUNT]] = table.account
            endpoint = chosen.get(AZURE_ENDPOINT, os.environ.get("AZURE_STORAGE_ENDPOINT"))
        else:
            endpoint = chosen.get(S3_ENDPOINT, os.environ.get("AWS_ENDPOINT_URL"))
            hosted = chosen.get(S3_PATH_STYLE, "true").lower() == "false"
            config["aws_virtual_hosted_style_request"] = str(hosted).lower()
            if S3_REGION not in chosen and not os.environ.get("AWS_REGION"):
                config["aws_region"] = _REGION
        is_plain = endpoint is not None and urlsplit(endpoint).scheme == "http"
        return cls(table.url, tuple(sorted(config.items())), is_plain)

    def for_delta(self) -> dict[str, str]:
        patience_ms = int(_patience_s(self) * 1000)
        config = {
            **dict(self.config),
            "timeout": f"{patience_ms}ms",
            "connect_timeout": f"{min(patience_ms, int(_CONNECT_S * 1000))}ms",
            "max_retries": str(_RETRIES),
            "retry_timeout": f"{patience_ms}ms",
        }
        if self.url.startswith("s3:"):
            config["aws_conditional_put"] = "etag"
        if self.is_plain_http:
            config["allow_http"] = "true"
        return config


def _check_environment(table: StoreTable, options: StoreOptions) -> None:
    """Clients add credentials of the environment to the table's, for any server."""
    chosen = dict(options)
    if table.is_azure:
        mixed = sorted(name for name in os.environ if name.startswith("AZURE_"))
    else:
        names = ("AWS_SESSION_TOKEN", "AWS_TOKEN") if S3_TOKEN not in chosen else ()
        mixed = [name for name in names if name in os.environ]
    if mixed:
        raise StoreRefusedError(
            f'store "{table.url}" is given credentials, and the environment has {mixed[0]}, which '
            "would go there as well",
            hint=f"Start Sluice without {mixed[0]}, or leave the table's credentials out.",
        )


def client_of(address: StoreAddress) -> ObjectStore:
    return _client(address, _patience_s(address))


def _patience_s(address: StoreAddress) -> float:
    deadline = current_deadline()
    if deadline is None:
        return _PATIENCES_S[0]
    left_s = deadline.left_s(address.url)
    return next((each for each in _PATIENCES_S if each <= left_s), _PATIENCES_S[-1])


@lru_cache(maxsize=64)
def _client(address: StoreAddress, patience_s: float) -> ObjectStore:
    table = StoreTable.of(address.url)
    client_options: Any = {
        "timeout": timedelta(seconds=patience_s),
        "connect_timeout": timedelta(seconds=min(_CONNECT_S, patience_s)),
        "allow_http": address.is_plain_http,
    }
    retry: Any = {"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=patience_s)}
    kind: Any = AzureStore if table.is_azure else S3Store
    try:
        store: ObjectStore = kind(
            table.bucket,
            config={name: str(value) for name, value in address.config},
            client_options=client_options,
            retry_config=retry,
        )
    except (failures.BaseError, ValueError) as exc:
        raise StoreRefusedError(
            f'store "{address.url}" cannot be reached as it is declared: {plain(str(exc))}',
            hint="Correct the options of the table that begin with s3. or azure.; each credential "
            "needs its other half.",
        ) from None
    return store


def plain(text: str) -> str:
    return _QUERY.sub("?…", " ".join(_DEBUG.sub("", text).split()))[:_SHOWN]


@contextmanager
def store_errors(place: object) -> Iterator[None]:
    """Translate a client's errors at `place`.

    FileNotFoundError: no such object or bucket. StoreRefusedError: new credentials may help.
    StoreUnavailableError: waiting may help.
    """
    try:
        yield
    except failures.NotFoundError:
        raise FileNotFoundError(str(place)) from None
    except (failures.PermissionDeniedError, failures.UnauthenticatedError) as exc:
        skewed = any(words in str(exc) for words in _SKEWED)
        raise StoreRefusedError(
            f'store refuses "{place}": {plain(str(exc))}',
            hint=_SET_CLOCKS if skewed else _GIVE_CREDENTIALS,
        ) from None
    except failures.BaseError as exc:
        raise StoreUnavailableError(
            f'store does not serve "{place}": {plain(str(exc))}',
            hint="It is tried again; see that the store's server answers and does not throttle.",
        ) from None
