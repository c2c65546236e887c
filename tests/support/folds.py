"""A fold of changelog rows record by record, and a table `current` of it, both without Spark."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from joins.adapters.delta.log import DeltaLog, Rewrite, create_table
from joins.kernels.changelog.digest import ChangelogDigest, ChangelogState
from joins.worker.index_source import fold_metadata
from tests.support.changelog import SCHEMA, batch_of, stage

Row = Mapping[str, Any]


def place(row: Row) -> tuple[int, ...]:
    return (row["_epoch"], row["_file"], row["_pos"], row["_row"], row["_offset"])


def state_of(rows: Sequence[Row]) -> ChangelogState:
    digest = ChangelogDigest({})
    digest.count(batch_of(rows))
    return digest.state_after(ChangelogState())


def newest(rows: Sequence[Row], partitions: int) -> tuple[int, list[Row]]:
    """The complete generation, and each key's newest row, hidden ones included."""
    marks = [row for row in rows if row["_op"] == "w"]
    complete = min(
        max((m["_generation"] for m in marks if m["_partition"] == p), default=-1)
        for p in range(partitions)
    )
    found: dict[int, Row] = {}
    for row in rows:
        late = any(
            m["_partition"] == row["_partition"]
            and m["_generation"] >= row["_generation"]
            and m["_offset"] < row["_offset"]
            for m in marks
        )
        if row["_op"] == "w" or (row["_op"] == "r" and late):
            continue
        held = found.get(row["id"])
        if held is None or place(row) > place(held):
            found[row["id"]] = row
    return complete, list(found.values())


def shown(rows: Sequence[Row], partitions: int) -> dict[int, str | None]:
    return {row["id"]: row["name"] for row in visible(rows, partitions)}


def visible(rows: Sequence[Row], partitions: int) -> list[Row]:
    complete, found = newest(rows, partitions)
    return [row for row in found if row["_op"] != "d" and row["_generation"] >= complete]


def can_fold(rows: Sequence[Row], partitions: int) -> bool:
    complete, _ = newest(rows, partitions)
    return complete >= max((row["_generation"] for row in rows), default=0) > 0


class Current:
    """A table `current` whose folds are made here; its app id is that of `Changelog`."""

    def __init__(self, root: Path) -> None:
        create_table(root, SCHEMA)
        self.log = DeltaLog(root, "app:current")

    def fold(self, rows: Sequence[Row], version: int, partitions: int) -> None:
        """One commit that makes the table equal the changelog's `rows` up to `version`."""
        metadata = fold_metadata(version, state_of(rows))
        old = [path.name for path in self.log.files.files_at(self.log.version())]
        found = visible(rows, partitions)
        files = [stage(self.log.path, batch_of(found), number=version)] if found else []
        self.log.rewrite(Rewrite(removed=old), 1, {})
        self.log.commit(version, 1, files, metadata)
