"""A job's tables for the typed client: rows at a version, changes between two, batches."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from service.client.transport import Transport, parsed
from service.schemas.inspection import BatchView
from service.schemas.tables import AbsentKey, DimensionRow, RowChange

if TYPE_CHECKING:
    import pyarrow as pa

Item = TypeVar("Item")
KeyValue = str | int | bool | bytes | float | object
_ARROW = "application/vnd.apache.arrow.stream"
_PAGE = 1_000
_KEYS_AT_ONCE = 100


class _Pages(Generic[Item]):
    """Pages of an address, asked for while they are read; all of the versions of the first one."""

    def __init__(self, transport: Transport, path: str, query: Mapping[str, Any]) -> None:
        self._transport = transport
        self._path = path
        self._query = dict(query)

    def _documents(self) -> Iterator[dict[str, Any]]:
        query: dict[str, Any] = {**self._query, "limit": _PAGE}
        while True:
            page = self._transport.get(self._path, **query)
            yield page
            if page["next_cursor"] is None:
                return
            query = {"cursor": page["next_cursor"], "limit": _PAGE}

    def _streams(self) -> Iterator["pa.Table"]:
        import pyarrow as pa

        query: dict[str, Any] = {n: v for n, v in self._query.items() if v is not None}
        query["limit"] = _PAGE
        while True:
            answer = self._transport.send(
                "GET", self._path, params=query, headers={"Accept": _ARROW}
            )
            yield pa.ipc.open_stream(answer.content).read_all()
            cursor = answer.headers.get("Sluice-Next-Cursor")
            if cursor is None:
                return
            query = {"cursor": cursor, "limit": _PAGE}

    def to_arrow(self) -> "pa.Table":
        """All of it as one Arrow table, with the types of the table itself."""
        import pyarrow as pa

        return pa.concat_tables(self._streams())


class Rows(_Pages[DimensionRow]):
    """Rows of a dimension in the order of its key; iterating asks for them page by page.

    Those of keys are asked for once: `absent` is of the same version as the rows.
    """

    _of_keys: dict[str, Any] | None = None

    def _documents(self) -> Iterator[dict[str, Any]]:
        if "key" not in self._query:
            yield from super()._documents()
            return
        if self._of_keys is None:
            self._of_keys = next(super()._documents())
        yield self._of_keys

    def __iter__(self) -> Iterator[DimensionRow]:
        for page in self._documents():
            yield from (parsed(DimensionRow, item) for item in page["items"])

    @property
    def absent(self) -> tuple[AbsentKey, ...]:
        """The keys that were asked for and have no row, with the reason."""
        pages = self._documents()
        return tuple(parsed(AbsentKey, a) for page in pages for a in page["absent"])


class RowChanges(_Pages[RowChange]):
    """What differs between two versions; as Arrow it has `_change_type`, as Delta's feed."""

    def __iter__(self) -> Iterator[RowChange]:
        for page in self._documents():
            yield from (parsed(RowChange, item) for item in page["items"])


class RemoteDimension:
    """A table that a job joins with, at its newest version or at a given one.

    Example:
        >>> users = job.dimension("users")
        >>> [row.values["name"] for row in users.at(2).rows(keys=[1])]
        ['user 1']
        >>> [(c.change, c.key["user_id"]) for c in users.between(2, 3)]
        [('update', 1), ('delete', 2)]
    """

    def __init__(
        self, transport: Transport, job_id: str, table: str, version: int | None = None
    ) -> None:
        self._transport = transport
        self._job_id = job_id
        self._path = f"/v1/jobs/{job_id}/dimensions/{quote(table, safe='')}"
        self._table = table
        self._version = version

    def at(self, version: int) -> "RemoteDimension":
        """The same table at `version`."""
        return RemoteDimension(self._transport, self._job_id, self._table, version)

    def rows(self, keys: Sequence[KeyValue] | None = None) -> Rows:
        """All rows, or those of up to 100 `keys`; a composite key is a tuple or a mapping.

        Raises:
            ValueError: there are more keys.
        """
        query: dict[str, Any] = {"version": self._version}
        if keys is not None:
            if not 0 < len(keys) <= _KEYS_AT_ONCE:
                raise ValueError(f"{len(keys)} keys, expected 1 to {_KEYS_AT_ONCE} at once")
            query["key"] = [_key_text(key) for key in keys]
        return Rows(self._transport, self._path, query)

    def between(self, first: int, last: int | None = None) -> RowChanges:
        """What changed from version `first` to `last`, by default to the newest."""
        query = {"from": first, "to": last}
        return RowChanges(self._transport, f"{self._path}/changes", query)


class Batches:
    """The batches of a job, the newest first; iterating asks for them page by page.

    Args:
        most: of them.
    """

    def __init__(self, transport: Transport, job_id: str, most: int | None) -> None:
        self._transport = transport
        self._path = f"/v1/jobs/{job_id}/batches"
        self._most = most

    def __iter__(self) -> Iterator[BatchView]:
        left, cursor = self._most, None
        while left is None or left > 0:
            limit = 200 if left is None else min(left, 200)
            page = self._transport.get(self._path, limit=limit, cursor=cursor)
            yield from (parsed(BatchView, item) for item in page["items"])
            cursor = page["next_cursor"]
            if cursor is None:
                return
            left = None if left is None else left - len(page["items"])

    def to_arrow(self) -> "pa.Table":
        """A row a batch: number, commit, counts, and offsets and versions of its pin as maps."""
        import pyarrow as pa

        rows = [_batch_row(batch) for batch in self]
        offsets = pa.map_(pa.int32(), pa.int64())
        schema = pa.schema(
            [
                ("batch", pa.int64()),
                ("committed", pa.bool_()),
                ("committed_at", pa.timestamp("ms", tz="UTC")),
                ("records", pa.int64()),
                *((name, pa.int64()) for name in _COUNTS),
                ("output_version", pa.int64()),
                ("start_offsets", offsets),
                ("end_offsets", offsets),
                ("versions", pa.map_(pa.string(), pa.int64())),
            ]
        )
        return pa.Table.from_pylist(rows, schema=schema)


_COUNTS = ("joined", "matched", "unmatched", "dead_letters")


def _batch_row(batch: BatchView) -> dict[str, Any]:
    counts, pin = batch.counts or {}, batch.pin
    row: dict[str, Any] = {
        "batch": batch.batch,
        "committed": batch.committed,
        "committed_at": batch.committed_at_ms,
        "records": batch.records,
        "output_version": batch.output_version,
        "versions": list((pin.get("versions") or {}).items()),
    }
    for name in ("start_offsets", "end_offsets"):
        row[name] = [(int(at), offset) for at, offset in (pin.get(name) or {}).items()]
    return row | {name: counts.get(name) for name in _COUNTS}


def _key_text(key: KeyValue) -> str:
    """A key as the address takes it: composite ones as JSON, others as their own text."""
    if isinstance(key, Mapping):
        return json.dumps({str(name): _text(part) for name, part in key.items()})
    if isinstance(key, tuple | list):
        return json.dumps([_text(part) for part in key])
    return _text(key)


def _text(value: KeyValue) -> str:
    """A value as rows show it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)
