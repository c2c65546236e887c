"""What the runner hands to the process of a `delta` dimension, and what that process keeps."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from joins.adapters.store.path import path_as_json, path_from_json
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.kernels.changelog.envelope import BinlogPosition
from joins.kernels.table_path import TablePath
from joins.plan.plan import Field, KafkaOptions
from joins.plan.types import SqlType


@dataclass(frozen=True, slots=True)
class DeltaFeedConfig:
    """Everything that the process of a `delta` dimension needs.

    Attributes:
        path: root of the table.
        fields: the declared columns.
        primary_key: names, in key order.
        kafka: how to reach the cluster; its topic is the changelog topic.
        partitions: of the changelog topic.
        state_file: where the process keeps its `DeltaFeedState`.
        monitor_interval_ms: how often the table is looked at.
    """

    path: TablePath
    fields: tuple[Field, ...]
    primary_key: tuple[str, ...]
    kafka: KafkaOptions
    partitions: int
    state_file: Path
    monitor_interval_ms: int

    def as_json(self) -> dict[str, Any]:
        return {
            "path": path_as_json(self.path),
            "fields": [[f.name, asdict(f.type)] for f in self.fields],
            "primary_key": list(self.primary_key),
            "kafka": asdict(self.kafka),
            "partitions": self.partitions,
            "state_file": str(self.state_file),
            "monitor_interval_ms": self.monitor_interval_ms,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            path=path_from_json(value["path"]),
            fields=tuple(Field(name, SqlType.of_json(kind)) for name, kind in value["fields"]),
            primary_key=tuple(value["primary_key"]),
            kafka=KafkaOptions.of_json(value["kafka"]),
            partitions=value["partitions"],
            state_file=Path(value["state_file"]),
            monitor_interval_ms=value["monitor_interval_ms"],
        )


@dataclass(frozen=True, slots=True)
class DeltaFeedState:
    """What is durable of a `delta` source; everything that it counts is acknowledged by Kafka.

    Attributes:
        epoch: grows when versions stop being comparable, with the generation.
        table_id: of the table's metadata.
        snapshot_version: the version that is copied, `copied` whether it is, wholly.
        files_done: of its `files_total` files, in the order of their paths.
        rows_total: rows of that version.
        version: the newest one whose changes are all sent.
        commit: digest of that version's entry in the log, None if the log does not have it.
        needed: why the table must be copied again, None while it can be followed.
    """

    epoch: int
    generation: int
    table_id: str
    snapshot_version: int
    files_total: int
    rows_total: int
    version: int
    commit: str | None
    files_done: int = 0
    copied: bool = False
    needed: str | None = None

    def place(self, version: int) -> BinlogPosition:
        return BinlogPosition(self.epoch, version, 0)


def read_state(path: Path) -> DeltaFeedState | None:
    """The state kept in `path`, None if there is none.

    Raises:
        CheckpointError: the file is damaged or of another format.
    """
    value = read_json(path)
    return None if value is None else state_from_json(value)


def abandon(path: Path, reason: str) -> None:
    kept = read_state(path)
    if kept is not None:
        write_state(path, replace(kept, needed=reason))


def state_from_json(value: Mapping[str, Any]) -> DeltaFeedState:
    return DeltaFeedState(**{k: v for k, v in value.items() if k != "format_version"})


def write_state(path: Path, state: DeltaFeedState) -> None:
    write_json_atomically(path, asdict(state))
