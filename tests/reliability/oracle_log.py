"""Delta logs as the oracle reads them: JSON commits and parquet checkpoints, nothing else."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Commit:
    """One version: the data files it added and removed, its application transactions, its words.

    `added` has only files with new rows; those that a compaction wrote are in `rewritten`.
    """

    version: int
    added: tuple[str, ...]
    rewritten: tuple[str, ...]
    removed: tuple[str, ...]
    transactions: Mapping[str, int]
    metadata: Mapping[str, Any]


def _metadata(actions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    for action in actions:
        told = action.get("commitInfo", {}).get("userMetadata")
        if told:
            return dict(json.loads(told))
    return {}


class TableLog:
    """The log of the table at `root` as it is now."""

    def __init__(self, root: Path) -> None:
        self.root = root
        names = [p.name for p in (root / "_delta_log").iterdir()]
        self.versions = sorted(
            int(n[:-5]) for n in names if n.endswith(".json") and n[:20].isdigit()
        )
        self.entries = frozenset(self.versions)
        self.checkpoints = sorted(
            {int(n[:20]) for n in names if n.endswith(".checkpoint.parquet") and n[:20].isdigit()}
        )

    @property
    def newest(self) -> int:
        return max([*self.versions, *self.checkpoints])

    def commit(self, version: int) -> Commit:
        text = (self.root / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8")
        actions = [json.loads(line) for line in text.split("\n") if line]
        adds = [a["add"] for a in actions if "add" in a]
        return Commit(
            version=version,
            added=tuple(unquote(a["path"]) for a in adds if a.get("dataChange", True)),
            rewritten=tuple(unquote(a["path"]) for a in adds if not a.get("dataChange", True)),
            removed=tuple(unquote(a["remove"]["path"]) for a in actions if "remove" in a),
            transactions={a["txn"]["appId"]: a["txn"]["version"] for a in actions if "txn" in a},
            metadata=_metadata(actions),
        )

    def commits(self, first: int = 0) -> Iterator[Commit]:
        for version in self.versions:
            if version >= first:
                yield self.commit(version)

    def files_at(self, version: int) -> set[str]:
        """The data files of `version`.

        Raises:
            LookupError: the log no longer tells.
        """
        bases = [c for c in self.checkpoints if c <= version]
        base = bases[-1] if bases else -1
        files = self._checkpoint_files(base) if bases else set()
        wanted = range(base + 1, version + 1)
        if not self.entries.issuperset(wanted):
            raise LookupError(f"log of {self.root} has not all of {wanted}")
        for number in wanted:
            commit = self.commit(number)
            files -= set(commit.removed)
            files |= {*commit.added, *commit.rewritten}
        return files

    def _checkpoint_files(self, version: int) -> set[str]:
        path = self.root / "_delta_log" / f"{version:020d}.checkpoint.parquet"
        adds = pq.read_table(path, columns=["add"]).column("add").drop_null().combine_chunks()
        return {unquote(row["path"]) for row in adds.to_pylist()}

    def read(self, file: str, columns: Sequence[str] | None = None) -> pa.Table | None:
        """The rows of a data file, None if it is gone."""
        try:
            names = list(columns) if columns is not None else None
            return pq.read_table(self.root / file, columns=names, partitioning=None)
        except FileNotFoundError:
            return None
