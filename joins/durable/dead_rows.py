"""Rows of a captured table that its changelog topic cannot take, by key: they have no matches."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from joins.durable.checkpoint import read_json, write_json_atomically

_NEWEST = 100


@dataclass(frozen=True, slots=True)
class DeadRow:
    """A row that is larger than a message may be.

    Attributes:
        key: as the record of the row would have it, a JSON object.
        size_bytes: of the record.
    """

    key: str
    size_bytes: int


class DeadRows:
    """Those that one writer has met in one generation of a copy, durable. For one thread."""

    def __init__(self, path: Path, generation: int, most_bytes: int) -> None:
        self._path, self._generation, self._most_bytes = path, generation, most_bytes
        value = read_json(path)
        self._is_kept = value is not None and value["generation"] == generation
        self._count = value["count"] if value is not None and self._is_kept else 0
        kept = value["newest"] if value is not None and self._is_kept else []
        self._newest = [DeadRow(**row) for row in kept]

    def add(self, rows: list[DeadRow]) -> None:
        """Keep `rows`, durable when this returns."""
        if not rows:
            return
        self._count += len(rows)
        self._newest = [*self._newest, *rows][-_NEWEST:]
        newest = [asdict(row) for row in self._newest]
        value = {"generation": self._generation, "count": self._count, "newest": newest}
        write_json_atomically(self._path, value)

    def warning(self, table: str) -> Mapping[str, Any] | None:
        """What the status shows; None without any."""
        if not self._count:
            return None
        last = self._newest[-1]
        rows = "row is" if self._count == 1 else "rows are"
        return {
            "type": "rows-too-large",
            "message": f'{self._count} {rows} missing in the copy of table "{table}", the last one '
            f"with key {last.key}: {last.size_bytes} bytes, a message of the changelog topic has "
            f"{self._most_bytes} at the most",
            "hint": f"Set SLUICE_CHANGELOG_MAX_MESSAGE_BYTES above {last.size_bytes + (1 << 17)} "
            "and submit the job again, or declare fewer columns.",
        }
