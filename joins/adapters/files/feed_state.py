"""What the runner hands to the process of a dimension of files, and what that process keeps."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from joins.adapters.files.listing import FileStamp
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.kernels.changelog.envelope import BinlogPosition
from joins.plan.plan import Field, FileFormat, FileSource, KafkaOptions
from joins.plan.types import SqlType


@dataclass(frozen=True, slots=True)
class FileFeedConfig:
    """Everything that the process of a dimension of files needs.

    Attributes:
        path: of the file, or of the directory of files, where it is here.
        source: what they are.
        fields: the declared columns.
        primary_key: names, in key order.
        kafka: how to reach the cluster; its topic is the changelog topic.
        partitions: of the changelog topic.
        state_file: where the process keeps its `FileFeedState`.
    """

    path: Path
    source: FileSource
    fields: tuple[Field, ...]
    primary_key: tuple[str, ...]
    kafka: KafkaOptions
    partitions: int
    state_file: Path

    def as_json(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "source": asdict(self.source),
            "fields": [[f.name, asdict(f.type), f.nullable] for f in self.fields],
            "primary_key": list(self.primary_key),
            "kafka": asdict(self.kafka),
            "partitions": self.partitions,
            "state_file": str(self.state_file),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The configuration that `as_json` described."""
        options = tuple((str(key), str(text)) for key, text in value["source"]["options"])
        source = {**value["source"], "options": options}
        source["format"] = FileFormat(source["format"])
        return cls(
            path=Path(value["path"]),
            source=FileSource(**source),
            fields=tuple(
                Field(name, SqlType.of_json(kind), nullable)
                for name, kind, nullable in value["fields"]
            ),
            primary_key=tuple(value["primary_key"]),
            kafka=KafkaOptions.of_json(value["kafka"]),
            partitions=value["partitions"],
            state_file=Path(value["state_file"]),
        )


@dataclass(frozen=True, slots=True)
class FileFeedState:
    """What is durable of a dimension of files; what it counts is acknowledged by Kafka.

    Attributes:
        generation: of the rows; grows when the files are read anew.
        files: as they were listed, in the order of their paths.
        files_done: of them.
        rows: that they have.
        refused: why one cannot be taken, while they are as they were listed: `message`, `hint`.
        needed: why they must be read again.
    """

    generation: int
    files: tuple[FileStamp, ...]
    files_done: int = 0
    rows: int = 0
    refused: Mapping[str, str] | None = None
    needed: str | None = None

    @property
    def is_copied(self) -> bool:
        return self.needed is None and self.files_done == len(self.files)

    @property
    def place(self) -> BinlogPosition:
        return BinlogPosition(self.generation - 1, 0, 0)

    @property
    def progress(self) -> dict[str, int]:
        return {
            "generation": self.generation,
            "rows": self.rows,
            "files_done": self.files_done,
            "files_total": len(self.files),
        }


def read_state(path: Path) -> FileFeedState | None:
    """The state kept in `path`, None if there is none.

    Raises:
        CheckpointError: the file is damaged or of another format.
    """
    value = read_json(path)
    if value is None:
        return None
    value = {k: v for k, v in value.items() if k != "format_version"}
    files = tuple(FileStamp(**each) for each in value["files"])
    return FileFeedState(**{**value, "files": files})


def abandon(path: Path, reason: str) -> None:
    kept = read_state(path)
    if kept is not None:
        write_state(path, replace(kept, needed=reason))


def write_state(path: Path, state: FileFeedState) -> None:
    write_json_atomically(path, asdict(state))
