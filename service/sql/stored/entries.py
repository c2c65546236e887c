"""What the catalog of the control plane keeps: tables and views that later scripts may name."""

from dataclasses import dataclass
from enum import StrEnum

from joins.plan.plan import SharedSource


class EntryKind(StrEnum):
    """What an entry of the catalog is."""

    TABLE = "table"
    VIEW = "view"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A table or view that was declared outside of a job.

    Attributes:
        sql: its statement, without a semicolon; it holds references in place of secrets.
        job_id: of the job that keeps a shared table; None of all others.
        partitions: of the changelog topic of a shared table.
    """

    name: str
    kind: EntryKind
    sql: str
    job_id: str | None = None
    partitions: int | None = None
    created_at_ms: int = 0

    @property
    def source(self) -> SharedSource | None:
        if self.job_id is None:
            return None
        return SharedSource(self.job_id, self.name, self.partitions)
