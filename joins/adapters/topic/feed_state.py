"""Configuration and durable state of the process of a topic's dimension.

The runner passes the configuration and writes the file of decisions; the process of the topic
writes the journal. The rules of the journal's steps are in `watermark.foreign_journal`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from joins.adapters.files.listing import FileFeedConfig
from joins.adapters.store_path import DocumentPath
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.codec import from_json
from joins.kernels.debezium.changes import ForeignTable
from joins.plan.plan import Field, FileSource, KafkaOptions, TopicSource
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


Numbered = tuple[int, int]
"""Number of a file that is replaced by one of the next number, and its valid entries."""


@dataclass(frozen=True, slots=True)
class FileCounts:
    """Valid entries of each file of a `KeyMemory`, under the journal's names."""

    counted: int = 0  # row-keys
    placed: int = 0  # place-keys
    owners: Numbered = (0, 0)
    times: Numbered = (0, 0)  # row-times
    time_offsets: Numbered = (0, 0)  # row-offsets
    values: Numbered = (0, 0)  # in bytes
    value_places: Numbered = (0, 0)  # values-places
    values_live: int = 0  # bytes that the file of values was begun with


@dataclass(frozen=True, slots=True)
class FeedJournal:
    """Durable state of a topic's source; each step of `FEED_STEPS` replaces the file.

    `ends` belongs to a table without a connector's evidence, `needed` to the phase ABANDONED.
    """

    # phase, topic, generation and offsets, by the rules of `watermark.foreign_journal`
    position: FeedPosition = field(default_factory=FeedPosition)
    snapshot: SnapshotJournal = field(default_factory=SnapshotJournal)
    table: ForeignTable | None = None  # as far as records have identified it
    ends: Offsets | None = None  # end offsets at which the table is complete
    notices: tuple[str, Offsets] = ("", ())  # id of the topic of notifications, next offsets
    memory: FileCounts = field(default_factory=FileCounts)
    needed: str | None = None  # why the topic must be read again from its beginning
    begun_ms: int | None = None  # when the topic's beginning was read; None in an older journal

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
        """The journal after `step`, with `rest` replaced; InvalidTransitionError if not allowed."""
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
            **asdict(self.memory),
            "needed": self.needed,
            "begun_ms": self.begun_ms,
        }


def read_journal(path: Path) -> FeedJournal:
    """The journal in `path`; that of a new source without a file."""
    value = read_json(path)
    if value is None:
        return FeedJournal()
    snapshot = SnapshotJournal.of_json(value["snapshot"])
    table = value["table"]
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
        from_json(FileCounts, value),
        value["needed"],
        value.get("begun_ms"),
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

    It has either a `generation`, which counts as complete, or a `place` (partition and offset) and
    a `topic_id`: that record of the topic with this id is left out.
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
    def overrides(self) -> dict[int, str]:
        """Generation → the operator's reason to declare it complete."""
        return {d.generation: d.record["reason"] for d in self.all if d.generation is not None}

    def skipped(self, topic_id: str) -> frozenset[tuple[int, int]]:
        places = (d.place for d in self.all if d.topic_id == topic_id)
        return frozenset(place for place in places if place is not None)


def read_decisions(path: Path) -> Decisions:
    value = read_json(path) or {"decisions": ()}
    return Decisions(tuple(from_json(Decision, each) for each in value["decisions"]))


def write_decisions(path: Path, decisions: Decisions) -> None:
    write_json_atomically(path, {"decisions": [asdict(each) for each in decisions.all]})
