"""What the runner hands to a CDC process, and the boundary that the process keeps."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from joins.adapters.kafka.changelog_producer import MOST_MESSAGE_BYTES
from joins.adapters.mysql.connection import MysqlConnectionConfig
from joins.adapters.mysql.position import BinlogMark
from joins.adapters.mysql.table import CapturedTable
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.kernels.changelog.envelope import BinlogPosition
from joins.plan.plan import KafkaOptions


@dataclass(frozen=True, slots=True)
class CdcConfig:
    """Everything that a CDC process needs.

    Attributes:
        connection: to the server that LOW was taken from, and to no other one.
        server_id: of the binlog client, used by nobody else.
        low: where to begin, unless `offset_file` has a boundary of the same epoch and generation.
        generation: of the snapshot that the records belong to.
        kafka: how to reach the cluster; its topic is the changelog topic.
        partitions: of the changelog topic.
        most_bytes: of a message of it.
    """

    connection: MysqlConnectionConfig
    table: CapturedTable
    server_id: int
    low: BinlogMark
    generation: int
    kafka: KafkaOptions
    partitions: int
    offset_file: Path
    most_bytes: int = MOST_MESSAGE_BYTES

    @property
    def dead_rows_file(self) -> Path:
        return self.offset_file.with_suffix(".dead.json")

    def as_json(self) -> dict[str, Any]:
        return {
            "connection": self.connection.as_json(),
            "table": self.table.as_json(),
            "server_id": self.server_id,
            "low": self.low.as_json(),
            "generation": self.generation,
            "kafka": asdict(self.kafka),
            "partitions": self.partitions,
            "offset_file": str(self.offset_file),
            "most_bytes": self.most_bytes,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            connection=MysqlConnectionConfig.from_json(value["connection"]),
            table=CapturedTable.from_json(value["table"]),
            server_id=value["server_id"],
            low=BinlogMark.from_json(value["low"]),
            generation=value["generation"],
            kafka=KafkaOptions.of_json(value["kafka"]),
            partitions=value["partitions"],
            offset_file=Path(value["offset_file"]),
            most_bytes=value["most_bytes"],
        )


@dataclass(frozen=True, slots=True)
class AcknowledgedBoundary:
    """A transaction boundary up to which Kafka has acknowledged every record.

    Attributes:
        file_created_at_s: creation time of the binlog file, 0 if not seen; it tells files apart.
        generation: of the records.
    """

    position: BinlogPosition
    file_created_at_s: int
    generation: int


def read_boundary(path: Path) -> AcknowledgedBoundary | None:
    """The boundary kept in `path`, None if there is none.

    Raises:
        CheckpointError: the file is damaged or of another format.
    """
    value = read_json(path)
    if value is None:
        return None
    position = BinlogPosition(**value["position"])
    return AcknowledgedBoundary(position, value["file_created_at_s"], value["generation"])


def write_boundary(path: Path, boundary: AcknowledgedBoundary) -> None:
    write_json_atomically(path, asdict(boundary), lazily=True)
