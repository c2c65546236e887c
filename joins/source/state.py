"""What is durable of one source's copy: LOW, how far it is, HIGH, and whether it starts over."""

from dataclasses import dataclass
from typing import Any

from joins.adapters.mysql.connection import ServerIdentity
from joins.adapters.mysql.position import BinlogMark
from joins.adapters.mysql.table import CapturedTable


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is durable of a source; see ARCHITECTURE.md.

    Attributes:
        server: the one that LOW was taken from.
        table: as it was defined at LOW.
        after: upper bound of the last chunk whose records are acknowledged, None before the first.
        high: None until every chunk is read.
        needed: why the table must be copied again, None while it can be followed.
    """

    epoch: int
    generation: int
    low: BinlogMark
    server: ServerIdentity
    table: CapturedTable
    rows_estimate: int
    after: tuple[str, ...] | None = None
    chunks_done: int = 0
    chunks_complete: bool = False
    high: BinlogMark | None = None
    needed: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "generation": self.generation,
            "low": self.low.as_json(),
            "server": self.server.as_json(),
            "table": self.table.as_json(),
            "rows_estimate": self.rows_estimate,
            "after": list(self.after) if self.after is not None else None,
            "chunks_done": self.chunks_done,
            "chunks_complete": self.chunks_complete,
            "high": self.high.as_json() if self.high is not None else None,
            "needed": self.needed,
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> "SourceState":
        return SourceState(
            epoch=value["epoch"],
            generation=value["generation"],
            low=BinlogMark.from_json(value["low"]),
            server=ServerIdentity.from_json(value["server"]),
            table=CapturedTable.from_json(value["table"]),
            rows_estimate=value["rows_estimate"],
            after=tuple(value["after"]) if value["after"] is not None else None,
            chunks_done=value["chunks_done"],
            chunks_complete=value["chunks_complete"],
            high=BinlogMark.from_json(value["high"]) if value["high"] is not None else None,
            needed=value["needed"],
        )
