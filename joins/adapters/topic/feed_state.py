"""What the runner hands to the process of a topic's dimension, and what that process keeps."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from joins.durable.checkpoint import read_json, write_json_atomically
from joins.kernels.debezium.changes import ForeignTable
from joins.plan.formats import RecordFormat, RecordKey
from joins.plan.plan import (
    BoundedMode,
    Field,
    KafkaOptions,
    MetadataField,
    SnapshotEvidence,
    TopicSource,
)
from joins.plan.types import SqlType


@dataclass(frozen=True, slots=True)
class TopicFeedConfig:
    """Everything that the process of a topic's dimension needs.

    Attributes:
        source: the topic; its login is resolved.
        fields: the declared columns.
        primary_key: names, in key order.
        kafka: how to reach our own cluster; its topic is the changelog topic.
        state_file: where the process keeps its `TopicFeedState`; beside it are files of keys.
        decisions_file: where the runner writes what an operator has decided.
        rowtime: the column that tells the versions of a row apart, None if none are kept.
    """

    source: TopicSource
    fields: tuple[Field, ...]
    primary_key: tuple[str, ...]
    kafka: KafkaOptions
    state_file: Path
    decisions_file: Path
    rowtime: str | None = None

    @property
    def partitions(self) -> int:
        """Of the topic, and of the changelog topic."""
        assert self.source.changelog_partitions is not None
        return self.source.changelog_partitions

    def as_json(self) -> dict[str, Any]:
        """The value of `config` in the first line on standard input."""
        return {
            "source": asdict(self.source),
            "fields": [[f.name, asdict(f.type), f.nullable] for f in self.fields],
            "primary_key": list(self.primary_key),
            "kafka": asdict(self.kafka),
            "state_file": str(self.state_file),
            "decisions_file": str(self.decisions_file),
            "rowtime": self.rowtime,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The configuration that `as_json` described."""
        source = dict(value["source"])
        evidence, key = source["evidence"], source["key"]
        source |= {
            "kafka": KafkaOptions.of_json(source["kafka"]),
            "value": RecordFormat.of_json(source["value"]),
            "key": None if key is None else RecordKey.of_json(key),
            "evidence": None if evidence is None else SnapshotEvidence(**evidence),
            "end_offsets": _pairs(source["end_offsets"]),
            "bounded_mode": BoundedMode(source["bounded_mode"]),
            "bounded_offsets": _pairs(source["bounded_offsets"]),
            "metadata": tuple(
                MetadataField(each["name"], each["key"], SqlType.of_json(each["type"]))
                for each in source["metadata"]
            ),
        }
        return cls(
            source=TopicSource(**source),
            fields=tuple(
                Field(name, SqlType.of_json(kind), nullable)
                for name, kind, nullable in value["fields"]
            ),
            primary_key=tuple(value["primary_key"]),
            kafka=KafkaOptions.of_json(value["kafka"]),
            state_file=Path(value["state_file"]),
            decisions_file=Path(value["decisions_file"]),
            rowtime=value["rowtime"],
        )


@dataclass(frozen=True, slots=True)
class TopicFeedState:
    """What is durable of a topic's source; all below its offsets is acknowledged by our cluster.

    Attributes:
        topic_id: Kafka's id of the topic; another one of the same name is read from its beginning.
        offsets: (partition, next offset).
        snapshot: what `ForeignSnapshot` keeps.
        table: what the records are of, as far as they tell.
        notice_offsets: (partition, next offset) of the topic of notifications.
        counted: keys in the file of the rows of this generation.
        placed: keys in the file of the partitions of keys.
        times: number of the file of the newest time of each key, and its entries.
        needed: why the topic must be read anew, None while it can be followed.
    """

    topic_id: str
    offsets: tuple[tuple[int, int], ...]
    snapshot: Mapping[str, Any]
    table: ForeignTable | None = None
    notice_offsets: tuple[tuple[int, int], ...] = ()
    counted: int = 0
    placed: int = 0
    times: tuple[int, int] = (0, 0)
    needed: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the table was found to be whole."""
        return self.snapshot["complete"] is not None

    @property
    def generation(self) -> int:
        """Of what is read now."""
        return int(self.snapshot["generation"])


def read_state(path: Path) -> TopicFeedState | None:
    """The state kept in `path`, None if there is none.

    Raises:
        CheckpointError: the file is damaged or of another format.
    """
    value = read_json(path)
    if value is None:
        return None
    value = {k: v for k, v in value.items() if k != "format_version"}
    table, times = value["table"], value.get("times", (0, 0))
    value |= {
        "offsets": _pairs(value["offsets"]),
        "notice_offsets": _pairs(value["notice_offsets"]),
        "table": None if table is None else ForeignTable(**table),
        "times": (int(times[0]), int(times[1])),
    }
    return TopicFeedState(**value)


def _pairs(value: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(partition), int(offset)) for partition, offset in value)


def write_state(path: Path, state: TopicFeedState) -> None:
    """Keep `state`, durable when this returns."""
    write_json_atomically(path, asdict(state))


@dataclass(frozen=True, slots=True)
class Decision:
    """What an operator has decided about a topic.

    Attributes:
        record: the acknowledgement, as it is shown.
        generation: it counts as complete; None if it is about something else.
        place: partition and offset of a record that is left out.
    """

    record: Mapping[str, Any]
    generation: int | None = None
    place: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Decisions:
    """All decisions about a topic, the oldest first."""

    all: tuple[Decision, ...] = ()

    @property
    def words(self) -> dict[int, str]:
        """Generation → why it counts as complete."""
        return {d.generation: d.record["reason"] for d in self.all if d.generation is not None}

    @property
    def skipped(self) -> frozenset[tuple[int, int]]:
        """Partition and offset of the records that are left out."""
        return frozenset(d.place for d in self.all if d.place is not None)


def read_decisions(path: Path) -> Decisions:
    """The decisions kept in `path`; none if there is no file.

    Raises:
        CheckpointError: the file is damaged or of another format.
    """
    value = read_json(path)
    if value is None:
        return Decisions()
    return Decisions(
        tuple(
            Decision(
                each["record"],
                each["generation"],
                None if each["place"] is None else (each["place"][0], each["place"][1]),
            )
            for each in value["decisions"]
        )
    )


def write_decisions(path: Path, decisions: Decisions) -> None:
    """Keep `decisions`, durable when this returns."""
    write_json_atomically(path, {"decisions": [asdict(each) for each in decisions.all]})
