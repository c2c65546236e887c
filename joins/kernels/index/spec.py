"""What an index holds: its keys, its columns and the channels that complete a generation."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from joins.plan.plan import Field
from joins.plan.types import arrow_type


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """One index of a dimension; several may share a directory.

    Attributes:
        primary_key: columns whose newest record is the row.
        join_key: columns that `lookup` gets, in its order; not necessarily unique.
        fields: the columns to keep, both keys included.
        partitions: of the changelog topic. A generation is complete when a watermark record of it,
            or of a later one, was read from each of them.
        null_safe: positions in `join_key` where NULL matches NULL; elsewhere it matches nothing.
        versioned: the rowtime column of a versioned index: every (primary key, rowtime) is a row of
            its own, deletions too. None for the newest rows only.
        needed_from_ms: of a versioned index, versions that end before are not asked for any more;
            None keeps all. It is no part of what the index is.
    """

    primary_key: tuple[str, ...]
    join_key: tuple[str, ...]
    fields: tuple[Field, ...]
    partitions: int
    null_safe: tuple[int, ...] = ()
    versioned: str | None = None
    needed_from_ms: int | None = field(default=None, compare=False)

    @property
    def identity(self) -> tuple[str, ...]:
        if self.versioned is None or self.versioned in self.primary_key:
            return self.primary_key
        return (*self.primary_key, self.versioned)

    @property
    def digest(self) -> str:
        """The name of the index's directory: equal for equal specifications, on every node."""
        fields = [(item.name, str(arrow_type(item.type))) for item in self.fields]
        content: list[Any] = [self.primary_key, self.join_key, fields, self.partitions]
        if self.null_safe or self.versioned is not None:
            content.append(self.null_safe)
        if self.versioned is not None:
            content.append((self.versioned, "in order of position"))
        text = json.dumps(content)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(item.name, arrow_type(item.type)) for item in self.fields])

    @property
    def join_is_unique(self) -> bool:
        return set(self.identity) <= set(self.join_key)
