"""A job's tables: rows at a version, changes, batches; how a notebook shows them."""

import base64
import html
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from service.client.transport import Item, Page, Pages, Transport
from service.errors import ConfigError, WaitTimeoutError
from service.schemas.inspection import BatchView
from service.schemas.progress import BatchPage
from service.schemas.tables import (
    AbsentKey,
    DimensionChanges,
    DimensionHistory,
    DimensionRow,
    DimensionRows,
    RowChange,
    VersionOfKey,
)
from service.schemas.verification import PositionReached

if TYPE_CHECKING:
    import httpx
    import pandas as pd
    import pyarrow as pa

    from service.schemas.jobs import DimensionView, JobDetail, ListedJob


_SHOWN = 20
_WAIT_S = 8.0  # one request waits so long
_CELL = 200
Facts = Iterable[tuple[str, str]]


def html_text(value: object) -> str:
    """A value as escaped HTML text on one line, cut, control characters replaced."""
    shown = "NULL" if value is None else str(value)
    cut = shown if len(shown) <= _CELL else shown[:_CELL] + "…"
    return html.escape("".join(char if char.isprintable() else "�" for char in cut))


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    heads = "".join(f"<th>{html_text(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{html_text(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    below = f"<p>{html_text(note)}</p>" if note else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{below}"


def html_of_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, more: bool) -> str:
    note = f"the first {len(rows)} rows" if more else f"{len(rows)} rows"
    return html_table(columns, ([row.get(name) for name in columns] for row in rows), note)


def html_of_jobs(listed: Iterable["ListedJob"]) -> str:
    columns = ("name", "state", "records/s", "waiting", "dead letters", "reason", "id")
    rows = (
        (
            job.name,
            job.state if job.status is None else job.status.word,
            _known(job.records_per_s, "{:.1f}"),
            _known(job.waiting_records, "{:,}"),
            _known(job.letters_to_settle, "{:,}"),
            job.reason if job.status is None else job.status.sentence,
            job.id,
        )
        for job in listed
    )
    return html_table(columns, rows)


def html_of_job(detail: "JobDetail") -> str:
    facts = (
        f"<th>{html_text(name)}</th><td>{html_text(fact)}</td>" for name, fact in _facts(detail)
    )
    rows = "".join(f"<tr>{each}</tr>" for each in (*facts, *map(_copy, detail.dimensions)))
    return f"<table><tbody>{rows}</tbody></table>"


def _facts(detail: "JobDetail") -> Facts:
    yield "job", f"{detail.name} ({detail.id})"
    status = detail.status
    yield "state", detail.state if status is None else status.word
    yield "reason", detail.reason if status is None else status.sentence
    hint = detail.error.hint if status is None and detail.error else status and status.remedy
    if hint:
        yield "hint", hint
    probe = detail.probe
    if probe is not None:
        yield (
            "stream",
            f"{probe.generated or probe.topic}: {_known(probe.held_records, '{:,}')} held, "
            + (f"lag {_known(probe.lag_records, '{:,}')}"),
        )
        rate = _known(probe.records_per_s, "{:.1f}")
        yield "rows out", f"{probe.joined_records:,}, {rate} records/s"
        yield "dead letters", _known(probe.letters_to_settle, "{:,}")
    for sink in detail.sinks:
        yield "sink", f"{sink.table} ({sink.connector})"


def _copy(dimension: "DimensionView") -> str:
    done, total = dimension.snapshot.rows_done, dimension.snapshot.rows_total
    bar = f'<progress value="{done:d}" max="{max(1, total or done):d}"></progress>'
    version = _known(dimension.changelog_version)
    rows = f"{done:,} rows, version {version}"
    return f"<th>{html_text(dimension.name)}</th><td>{bar} {html_text(rows)}</td>"


def _known(value: object, form: str = "{}") -> str:
    return "-" if value is None else form.format(value)


def notebook_display() -> Callable[[str], None] | None:
    """A function that replaces the HTML of the running cell; None outside a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)  # type: ignore[no-untyped-call] # it has no types
    return lambda shown: handle.update(HTML(shown))  # type: ignore[no-untyped-call] # as above


class Tabular(ABC):
    """Rows that are fetched on demand; each conversion fetches all of them."""

    @abstractmethod
    def to_arrow(self) -> "pa.Table":
        """All of it as one Arrow table."""

    def to_pandas(self) -> "pd.DataFrame":
        """A pandas data frame with Arrow types, so NULL stays NULL."""
        import pandas as pd

        return self.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)

    def to_polars(self) -> Any:  # noqa: ANN401 (polars is none of our packages)
        """A polars data frame; raises ConfigError if polars is not installed."""
        try:
            import polars
        except ImportError as exc:
            raise ConfigError(
                "polars is not installed",
                hint="Install it with pip install polars, or use to_arrow().",
            ) from exc
        return polars.from_arrow(self.to_arrow())

    def _repr_html_(self) -> str:
        rows = self._first(_SHOWN + 1)
        return html_of_rows(
            rows.slice(0, _SHOWN).to_pylist(), rows.column_names, more=rows.num_rows > _SHOWN
        )

    def _first(self, most: int) -> "pa.Table":
        return self.to_arrow().slice(0, most)


KeyValue = str | int | bool | bytes | float | object
_ARROW = "application/vnd.apache.arrow.stream"
_CHANGE = "_change_type"
_PAGE = 1_000
_BATCHES = 200


class _OfVersions(Pages[Page, Item], Tabular):
    """Pages of a table; all of the same version, and available as Arrow."""

    # reads better deep: rows and changes have pages as all lists, and Arrow as few others

    _cursor_is_all = True

    def _streams(self, limit: int = _PAGE) -> Iterator["pa.Table"]:
        query: dict[str, Any] = {n: v for n, v in self._query.items() if v is not None}
        while True:
            answer, rows = _arrow(self._transport, self._path, {**query, "limit": limit})
            yield rows
            cursor = answer.headers.get("Sluice-Next-Cursor")
            if cursor is None:
                return
            query = {"cursor": cursor}

    def to_arrow(self) -> "pa.Table":
        import pyarrow as pa

        return pa.concat_tables(self._streams())

    def _first(self, most: int) -> "pa.Table":
        rows = next(self._streams(most))
        own = [n for n in rows.column_names if not n.startswith("_") or n == _CHANGE]
        return rows.select(own)  # without columns about changes


def _arrow(
    transport: Transport, path: str, query: Mapping[str, Any]
) -> tuple["httpx.Response", "pa.Table"]:
    import pyarrow as pa

    answer = transport.send("GET", path, params=query, headers={"Accept": _ARROW})
    return answer, pa.ipc.open_stream(answer.content).read_all()


class OutputRows(Tabular):
    """The newest rows of a job's Delta output, with the types of the table."""

    def __init__(self, transport: Transport, path: str, **query: object) -> None:
        self._transport = transport
        self._path = path
        self._query = {name: value for name, value in query.items() if value is not None}

    def to_arrow(self) -> "pa.Table":
        return _arrow(self._transport, self._path, self._query)[1]


class Rows(_OfVersions[DimensionRows, DimensionRow]):
    """Rows of a dimension in key order; iterating fetches them page by page.

    Rows of keys are fetched once, so `absent` has the same version.
    """

    _of_keys: DimensionRows | None = None

    def _pages(self) -> Iterator[DimensionRows]:
        if self._query["key"] is None:
            yield from super()._pages()
            return
        if self._of_keys is None:
            self._of_keys = self.page()
        yield self._of_keys

    @property
    def absent(self) -> tuple[AbsentKey, ...]:
        """The requested keys without a row, with reasons."""
        return tuple(absent for page in self._pages() for absent in page.absent)


class RowChanges(_OfVersions[DimensionChanges, RowChange]):
    """Changes between two versions; as Arrow with `_change_type`, as in Delta's change feed."""


class KeyVersions(Pages[DimensionHistory, VersionOfKey]):
    """The versions that changed the row of one key, newest first.

    The last page has `beginning`: the row at the oldest readable version.
    """

    _cursor_is_all = True


class RemoteDimension:
    """A table that a job joins with, at its newest or another version.

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

    def _repr_html_(self) -> str:
        return self.rows()._repr_html_()

    def at(self, version: int | None) -> "RemoteDimension":
        """The same table at `version`; None for the newest."""
        return RemoteDimension(self._transport, self._job_id, self._table, version)

    def rows(self, keys: Sequence[KeyValue] | None = None) -> Rows:
        """All rows, or the rows of 1 to 100 `keys`; a composite key is a tuple or a mapping.

        Raises ValueError without a key; more than 100 raise InvalidRequestError on iteration.
        """
        if keys is not None and not keys:
            raise ValueError("no keys, expected 1 to 100 at once")
        query = {
            "key": None if keys is None else [_key_text(key) for key in keys],
            "version": self._version,
        }
        return Rows(self._transport, DimensionRows, self._path, _PAGE, **query)

    def between(self, first: int | None, last: int | None = None) -> RowChanges:
        """Changes from version `first` to `last`, by default to the newest.

        `first` may be None only for a page by cursor, which contains both versions.
        """
        query = {"from": first, "to": last}
        path = f"{self._path}/changes"
        return RowChanges(self._transport, DimensionChanges, path, _PAGE, **query)

    def history(self, key: KeyValue | None) -> KeyVersions:
        """The readable versions that changed the row of `key`.

        A composite key is a tuple or a mapping; None only for a page by cursor, which contains it.
        """
        query = {"key": None if key is None else _key_text(key)}
        path = f"{self._path}/history"
        return KeyVersions(self._transport, DimensionHistory, path, _PAGE, **query)

    def wait_for_position(
        self, position: str = "now", *, timeout_s: float = 60.0
    ) -> PositionReached:
        """Wait for the first committed batch that has `position` of the source.

        `now` is everything that was committed before the call. Raises WaitTimeoutError with where
        the job stands.
        """
        deadline = monotonic() + timeout_s
        while True:
            left_s = min(_WAIT_S, max(0.0, deadline - monotonic()))
            body = {"table": self._table, "position": position, "timeout_s": left_s}
            path = f"/v1/jobs/{self._job_id}/freshness/wait"
            answer = self._transport.post(PositionReached, path, json=body)
            if answer.batch is not None:
                return answer
            position = answer.token
            if monotonic() >= deadline:
                raise WaitTimeoutError(
                    f'position "{position}" of table "{self._table}" is in no batch after '
                    f"{timeout_s:g} s: {answer.text}",
                    hint="A batch needs records of the stream: see the lag in "
                    f"sluice jobs get {self._job_id}.",
                )


class Batches(Pages[BatchPage, BatchView], Tabular):
    """The `most` newest batches of a job, newest first; iterating fetches them page by page."""

    def __init__(self, transport: Transport, path: str, most: int | None) -> None:
        super().__init__(transport, BatchPage, path, min(most or _BATCHES, _BATCHES))
        self._most = most

    def __iter__(self) -> Iterator[BatchView]:
        return islice(super().__iter__(), self._most)

    def _first(self, most: int) -> "pa.Table":
        shown = most if self._most is None else min(most, self._most)
        return Batches(self._transport, self._path, shown).to_arrow()

    def to_arrow(self) -> "pa.Table":
        """A row for each batch: number, commit, counts, and maps of its pin's offsets and versions.

        Keys of offsets are partitions; for several topics `topic/partition`.
        """
        import pyarrow as pa

        batches = list(self)
        by_topic = any("/" in place for batch in batches for place in _places(batch))
        rows = [_batch_row(batch, str if by_topic else int) for batch in batches]
        offsets = pa.map_(pa.string() if by_topic else pa.int32(), pa.int64())
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


def _places(batch: BatchView) -> Mapping[str, int]:
    places: Mapping[str, int] = batch.pin.get("end_offsets") or {}
    return places


def _batch_row(batch: BatchView, place: Callable[[str], int | str]) -> dict[str, Any]:
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
        row[name] = [(place(at), offset) for at, offset in (pin.get(name) or {}).items()]
    return row | {name: counts.get(name) for name in _COUNTS}


def _key_text(key: KeyValue) -> str:
    if isinstance(key, Mapping):
        return json.dumps({str(name): _text(part) for name, part in key.items()})
    if isinstance(key, tuple | list):
        return json.dumps([_text(part) for part in key])
    return _text(key)


def _text(value: KeyValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)
