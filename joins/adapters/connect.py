"""Reads a source connector's committed offsets and configuration from Kafka Connect."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx

from joins.adapters.network import HttpClient
from joins.plan.errors import SourceError, SourceUnavailableError

_TIMEOUT_S = 5.0
_UNITS = (("ts_ms", 1.0), ("ts_usec", 0.001), ("ts_us", 0.001), ("ts_sec", 1000.0))
_RUNNING = ("snapshot", "snapshot_running")
_KEEP_NULLS = tuple(f"{part}.converter.replace.null.with.default" for part in ("key", "value"))
_NOT = (None, False, "false", "")


class ConnectOffsets:
    """Reads the offsets of one connector through Connect's REST interface; for one thread."""

    def __init__(self, url: str, connector: str) -> None:
        self._url = url.rstrip("/")
        self._connector = connector
        self._client = HttpClient(self._url, _TIMEOUT_S)

    def close(self) -> None:
        self._client.close()

    def committed_ms(self) -> int | None:
        """Source time of the committed offset; None during a snapshot and before the first commit.

        SourceUnavailableError if Connect does not answer, SourceError if it has no such connector
        or does not expose offsets.
        """
        answer = self._get("offsets")
        offsets = [each.get("offset") for each in answer.get("offsets") or ()]
        times = [committed_at_ms(offset) for offset in offsets if isinstance(offset, Mapping)]
        known = [at for at in times if at is not None]
        return min(known) if known and len(known) == len(offsets) else None

    def require(self) -> None:
        self._get("offsets")

    def nulls_replaced(self) -> tuple[str, ...]:
        """Options that let Connect replace NULL by a default; its worker may set them, too."""
        config = self._get("config")
        return tuple(key for key in _KEEP_NULLS if str(config.get(key, "true")).lower() != "false")

    def has_snapshot_threads(self) -> bool:
        """True if the connector may read one table by several threads, in chunks."""
        return str(self._get("config").get("snapshot.max.threads", "1")).strip() != "1"

    def _get(self, what: str) -> Mapping[str, Any]:
        place = f"{self._url}/connectors/{quote(self._connector, safe='')}/{what}"
        try:
            answer = self._client.get(place)
            value = answer.json() if answer.status_code == httpx.codes.OK else {}
        except (httpx.HTTPError, ValueError) as exc:
            raise SourceUnavailableError(
                f'Kafka Connect at "{self._url}" does not answer: {type(exc).__name__}',
                hint="Start it, or correct 'snapshot.connect.url'; the job goes on without it "
                "where other evidence is there.",
            ) from exc
        if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise SourceUnavailableError(
                f'Kafka Connect at "{self._url}" answers with status {answer.status_code}',
                hint="See its log; it is asked again.",
            )
        if answer.status_code != httpx.codes.OK or not isinstance(value, dict):
            raise SourceError(
                f'Kafka Connect at "{self._url}" does not tell the {what} of connector '
                f'"{self._connector}": status {answer.status_code}',
                hint="Correct 'snapshot.connect.connector'; offsets are told from Kafka 3.6 on.",
            )
        return value


def committed_at_ms(offset: Mapping[str, Any]) -> int | None:
    if any(offset.get(name) not in _NOT for name in _RUNNING):
        return None
    for name, scale in _UNITS:
        value = offset.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return int(value * scale)
    return None
