"""Dead letters of a dimension: rows that no message of its changelog topic can hold."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from joins.durable.checkpoint import Checkpoint, read_json, write_json_atomically
from joins.kernels.changelog.envelope import (
    BinlogPosition,
    Envelopes,
    Limited,
    encode_copy,
    encode_limited,
    in_parts,
)

_NEWEST = 1_000
_LISTED_BYTES = 16 << 10  # of a key; longer ones are counted only
SUFFIX = ".dead.json"
RESERVED_BYTES = 64 << 10
"""Room in a message for the header of its batch, and for what a producer adds."""


class DeadRows:
    """The rows that one writer has left out in one generation of a copy; durable, for one thread.

    A key counts once, however often its row was left out, and no longer once a change of it fits;
    keys of more than 16 KiB are not listed and count each time. The newest keys are listed.
    `copied` is the file of another writer of the same generation whose rows this writer's changes
    replace, too.
    """

    def __init__(
        self, path: Path, generation: int, most_bytes: int, copied: Path | None = None
    ) -> None:
        self._path, self._copied = path, copied
        self._generation, self._most_bytes = generation, most_bytes
        value = _read(path, generation)
        self._rows: dict[str, int] = dict(value.get("rows", {}))
        self._unlisted: int = value.get("unlisted", 0)
        self._replaced: set[str] = set(value.get("replaced", ()))
        self._seen_ns = -1
        self._of_copy: frozenset[str] = frozenset()

    @property
    def row_bytes(self) -> int:
        """Of a record with a row: what is beyond is left out."""
        return self._most_bytes - RESERVED_BYTES

    def take(self, limited: Limited) -> pa.RecordBatch:
        """The records to send, once it is durable which rows they lack."""
        # A change that fits may replace a row that was left out.
        if limited.dead or limited.long_keys or self._rows or self._keys_of_copy():
            self.update(limited.written())
        return limited.sent()

    def copied(
        self, rows: pa.RecordBatch, key: tuple[str, ...], place: BinlogPosition, partitions: int
    ) -> Iterator[pa.RecordBatch]:
        """The records of rows of a copy, in parts; as `take`."""
        numbers = {"generation": self._generation, "partitions": partitions}
        for part in in_parts(rows):
            yield self.take(encode_copy(part, key, place, **numbers, most_bytes=self.row_bytes))

    def changed(
        self, changes: Envelopes, key: tuple[str, ...], partitions: int
    ) -> Iterator[pa.RecordBatch]:
        """The records of changes, in parts; as `take`."""
        for part in in_parts(changes):
            if part.num_rows:
                most_bytes = self.row_bytes
                yield self.take(
                    encode_limited(part, key, partitions=partitions, most_bytes=most_bytes)
                )

    def update(self, written: Iterable[tuple[str, int | None]]) -> None:
        """Take keys in the order of their changes, with the bytes of a row that was left out."""
        before = dict(self._rows), self._unlisted, len(self._replaced)
        of_copy = self._keys_of_copy()
        for key, size_bytes in written:
            if key in of_copy:
                self._replaced.add(key)
            self._rows.pop(key, None)
            if size_bytes is not None and len(key) > _LISTED_BYTES:
                self._unlisted += 1
            elif size_bytes is not None:
                self._rows[key] = size_bytes
        for key in list(self._rows)[:-_NEWEST]:
            del self._rows[key]
            self._unlisted += 1
        if before != (self._rows, self._unlisted, len(self._replaced)):
            self._write()

    def _keys_of_copy(self) -> frozenset[str]:
        if self._copied is None:
            return frozenset()
        try:
            seen_ns = self._copied.stat().st_mtime_ns
        except FileNotFoundError:
            return frozenset()
        if seen_ns != self._seen_ns:
            self._of_copy = frozenset(_read(self._copied, self._generation).get("rows", {}))
            self._seen_ns = seen_ns
        return self._of_copy

    def _write(self) -> None:
        value = {
            "generation": self._generation,
            "most_bytes": self._most_bytes,
            "rows": self._rows,
            "unlisted": self._unlisted,
            "replaced": sorted(self._replaced),
        }
        write_json_atomically(self._path, value)


def _read(path: Path, generation: int) -> Mapping[str, Any]:
    value = read_json(path)
    return {} if value is None or value["generation"] != generation else value


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The rows that a dimension lacks: key → bytes, number of those not listed, limit in bytes."""

    rows: Mapping[str, int]
    unlisted: int
    most_bytes: int


def dead_rows_of(checkpoint: Checkpoint, dimension: str) -> LeftOut:
    """What a dimension lacks in the generation that its source copies or follows."""
    source, cdc = checkpoint.source_file(dimension), checkpoint.cdc_file(dimension)
    history = source.with_suffix(".files.json")  # of a topic, behind files
    generation = max(_generation(source), _generation(history))
    return left_out((file.with_suffix(SUFFIX) for file in (source, cdc, history)), generation)


def _generation(file: Path) -> int:
    state = read_json(file) or {}
    of_snapshot = state.get("snapshot", {})  # in the journal of a topic
    return int(state.get("generation", of_snapshot.get("generation", 0)))


def left_out(files: Iterable[Path], generation: int) -> LeftOut:
    """What the writers of one dimension have left out in `generation`."""
    values = [value for file in files if (value := _read(file, generation))]
    replaced = {key for value in values for key in value["replaced"]}
    rows: dict[str, int] = {}
    for value in values:
        own = set(value["replaced"])
        rows |= {k: n for k, n in value["rows"].items() if k in own or k not in replaced}
    unlisted = sum(value["unlisted"] for value in values)
    return LeftOut(rows, unlisted, min((value["most_bytes"] for value in values), default=0))


def warning_of(table: str, files: Iterable[Path], generation: int) -> Mapping[str, Any] | None:
    dead = left_out(files, generation)
    count = len(dead.rows) + dead.unlisted
    if count == 0:
        return None
    were = "row is" if count == 1 else "rows are"
    last = [f", the last one with key {key}: {n} bytes" for key, n in dead.rows.items()][-1:]
    needed = max(dead.rows.values(), default=dead.most_bytes) + (1 << 17)
    more = ", or higher for rows that are not listed," if dead.unlisted else ""
    return {
        "type": "rows-too-large",
        "message": f'{count} {were} missing in the copy of table "{table}"{"".join(last)}, a '
        f"message of the changelog topic has {dead.most_bytes} at the most",
        "hint": f"Set SLUICE_CHANGELOG_MAX_MESSAGE_BYTES above {needed}{more} and submit the job "
        "again, or declare fewer columns; sluice dlq ls names the keys.",
    }
