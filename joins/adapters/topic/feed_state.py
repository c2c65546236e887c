"""Configuration and durable state of the process of a topic's dimension."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from joins.adapters.files.listing import FileFeedConfig
from joins.adapters.store_path import DocumentPath
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.codec import from_json
from joins.kernels.debezium.changes import ForeignTable
from joins.plan.plan import (
    Field,
    FileSource,
    KafkaOptions,
    TopicSource,
)
from watermark.errors import InvalidTransitionError
from watermark.foreign_journal import CopyState, FeedPhase, FeedPosition, FeedStep, SnapshotJournal

Offsets = tuple[tuple[int, int], ...]
"""(partition, offset) pairs."""


@dataclass(frozen=True, slots=True)
class TopicFeedConfig:
    """Configuration of the process of a topic's dimension.

    `kafka` is Sluice's cluster with the changelog topic. The runner writes `decisions_file`.
    `rowtime` orders the versions of a row, None without versions. `history_path` is where the files
    of the source's history are, None without one.
    """

    source: TopicSource
    fields: tuple[Field, ...]
    primary_key: tuple[str, ...]
    kafka: KafkaOptions
    state_file: Path
    decisions_file: Path
    rowtime: str | None = None
    failpoints: str = ""
    freshness_s: float = 1.0
    history_path: DocumentPath | None = None

    @property
    def files(self) -> FileFeedConfig:
        """The configuration of the first half of a source with a history."""
        history = self.source.history
        assert history is not None
        assert self.history_path is not None
        files = history.files
        return FileFeedConfig(
            path=self.history_path,
            source=files if isinstance(files, FileSource) else None,
            version=history.version,
            fields=self.fields,
            primary_key=self.primary_key,
            kafka=self.kafka,
            partitions=self.partitions,
            state_file=history_state(self.state_file),
            newest_of=history.startup_column,
        )

    @property
    def partitions(self) -> int:
        assert self.source.changelog_partitions is not None
        return self.source.changelog_partitions


def history_state(state_file: Path) -> Path:
    """The state of the files before the topic whose journal is in `state_file`."""
    return state_file.with_suffix(".files.json")


@dataclass(frozen=True, slots=True)
class CopiedHistory:
    """The generation of the files before a topic, and the newest time in its start column."""

    generation: int
    newest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class FeedJournal:
    """Durable state of a topic's source; each step replaces the entry."""

    # phase, topic, generation and offsets, by the rules of `watermark.foreign`
    position: FeedPosition = field(default_factory=FeedPosition)
    snapshot: SnapshotJournal = field(default_factory=SnapshotJournal)
    table: ForeignTable | None = None  # of the records, as far as they say
    ends: Offsets | None = None  # (partition, offset) where a table without connector is complete
    # id of the topic of notifications, and (partition, next offset)
    notices: tuple[str, Offsets] = ("", ())
    counted: int = 0  # entries in the file of this generation's snapshot rows
    placed: int = 0  # entries in the file of the partitions of keys
    # number of the file of each key's newest time, and of its entries
    times: tuple[int, int] = (0, 0)
    # the same of the offset of each key's newest change
    time_offsets: tuple[int, int] = (0, 0)
    # the same of this generation's partition of each key, of a table with several
    owners: tuple[int, int] = (0, 0)
    values: tuple[int, int] = (0, 0)  # number of the file of large values, and of its bytes
    value_places: tuple[int, int] = (0, 0)  # as `times`, of where each key's newest values are
    needed: str | None = None  # why an abandoned topic must be read again from its beginning
    begun_ms: int | None = None  # when the topic's beginning was read; None in an older entry
    values_live: int = 0  # bytes that the file of large values was begun with

    @property
    def is_whole(self) -> bool:
        return self.position.phase is FeedPhase.WHOLE

    @property
    def generation(self) -> int:
        return self.position.generation

    @property
    def begins(self) -> bool:
        return self.position.phase in (FeedPhase.NEW, FeedPhase.ABANDONED)

    def after(
        self,
        step: FeedStep,
        *,
        topic_id: str | None = None,
        offsets: Mapping[int, int] | None = None,
        snapshot: SnapshotJournal | None = None,
        **rest: Any,  # noqa: ANN401
    ) -> Self:
        """The entry after `step`, with `rest` replaced; InvalidTransitionError if not allowed."""
        snapshot = self.snapshot if snapshot is None else snapshot
        position = self.position.after(
            step, topic_id=topic_id, generation=snapshot.generation, offsets=offsets
        )
        made = replace(self, position=position, snapshot=snapshot, **rest)
        is_complete = snapshot.state is CopyState.COMPLETE
        if step is not FeedStep.ABANDON and made.is_whole != is_complete:
            raise InvalidTransitionError(
                f'journal of a topic: step "{step}" leads to phase "{position.phase}", and its '
                f"snapshot is {'complete' if is_complete else 'not complete'}",
                hint="Report this as a defect with the job's event log.",
            )
        return made

    def as_json(self) -> dict[str, Any]:
        return {
            "phase": self.position.phase,
            "topic_id": self.position.topic_id,
            "offsets": sorted(self.position.offsets.items()),
            "snapshot": self.snapshot.as_json(),
            "table": None if self.table is None else asdict(self.table),
            "ends": self.ends,
            "notice_topic_id": self.notices[0],
            "notice_offsets": self.notices[1],
            "counted": self.counted,
            "placed": self.placed,
            "times": self.times,
            "time_offsets": self.time_offsets,
            "owners": self.owners,
            "values": self.values,
            "value_places": self.value_places,
            "needed": self.needed,
            "begun_ms": self.begun_ms,
            "values_live": self.values_live,
        }


def read_journal(path: Path) -> FeedJournal:
    """The entry in `path`; a new source's without a file."""
    value = read_json(path)
    if value is None:
        return FeedJournal()
    snapshot = SnapshotJournal.of_json(value["snapshot"])
    table = value["table"]
    names = ("times", "time_offsets", "owners", "values", "value_places")
    pairs = (value.get(name, (0, 0)) for name in names)
    times, time_offsets, owners, values, places = ((int(n), int(count)) for n, count in pairs)
    phase = FeedPhase.COPYING if snapshot.complete is None else FeedPhase.WHOLE
    if value["needed"] is not None:
        phase = FeedPhase.ABANDONED
    ends = value.get("ends")
    return FeedJournal(
        FeedPosition(
            FeedPhase(value.get("phase", phase)),
            value["topic_id"],
            snapshot.generation,
            dict(_pairs(value["offsets"])),
        ),
        snapshot,
        None if table is None else ForeignTable(**table),
        None if ends is None else _pairs(ends),
        (value.get("notice_topic_id", ""), _pairs(value["notice_offsets"])),
        value["counted"],
        value["placed"],
        times,
        time_offsets,
        owners,
        values,
        places,
        value["needed"],
        value.get("begun_ms"),
        value.get("values_live", 0),
    )


def write_journal(path: Path, journal: FeedJournal) -> None:
    write_json_atomically(path, journal.as_json())


def abandon(path: Path, reason: str) -> None:
    journal = read_journal(path)
    if journal.position.phase is not FeedPhase.NEW:
        write_journal(path, journal.after(FeedStep.ABANDON, needed=reason))


def _pairs(value: Iterable[Sequence[int]]) -> Offsets:
    return tuple((int(partition), int(offset)) for partition, offset in value)


@dataclass(frozen=True, slots=True)
class Decision:
    """An operator's decision about a topic; `record` is the acknowledgement.

    Either `generation` counts as complete, or the record at `place` (partition and offset) of the
    topic with this id is skipped.
    """

    record: Mapping[str, Any]
    generation: int | None = None
    place: tuple[int, int] | None = None
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class Decisions:
    """All decisions about a topic, oldest first."""

    all: tuple[Decision, ...] = ()

    @property
    def words(self) -> dict[int, str]:
        return {d.generation: d.record["reason"] for d in self.all if d.generation is not None}

    def skipped(self, topic_id: str) -> frozenset[tuple[int, int]]:
        own = (d.place for d in self.all if d.topic_id == topic_id)
        return frozenset(place for place in own if place is not None)


def read_decisions(path: Path) -> Decisions:
    value = read_json(path) or {"decisions": ()}
    return Decisions(tuple(from_json(Decision, each) for each in value["decisions"]))


def write_decisions(path: Path, decisions: Decisions) -> None:
    write_json_atomically(path, {"decisions": [asdict(each) for each in decisions.all]})
