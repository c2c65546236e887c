"""Incarnations of the probe, one per acknowledged fault; batch numbers are never reused."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from joins.durable.checkpoint import Checkpoint, JobMeta, read_json, write_json_atomically
from joins.durable.pins import offsets_text, offsets_value
from joins.durable.requests import append_missing
from joins.plan.stream_topics import (
    NO_TOPICS,
    StreamTopics,
    place_json,
    topics_as_json,
    topics_of_json,
)

SUBMISSION = "submission"


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets of one partition, from `first` up to `end`, that are never joined."""

    partition: int
    first: int
    end: int

    def as_json(self, topics: StreamTopics) -> dict[str, Any]:
        return {**place_json(topics, self.partition), "from": self.first, "to": self.end}


@dataclass(frozen=True, slots=True)
class Life:
    """One incarnation: what the probe reads until the next acknowledgement."""

    directory: str
    first_batch: int
    # of the stream, with Kafka's UUIDs of those that this incarnation reads; topics may be
    # appended, never removed
    topics: StreamTopics
    # partition → first offset. Includes missing partitions, which continue at that offset if they
    # come back.
    start_offsets: Mapping[int, int]
    versions: Mapping[str, int] | None = None  # what the first batch pins, None for the newest ones
    # `submission` or the acknowledged fault; in older files also `logs-disagree`
    cause: str = SUBMISSION
    # the operator's decision, None where none was needed
    acknowledgement: Mapping[str, Any] | None = None
    # batches of earlier incarnations that were pinned and are never committed
    abandoned: tuple[int, ...] = field(default=())
    # partition → end of the stream, None if unbounded; others are not read
    end_offsets: Mapping[int, int] | None = None
    # partition → where its backlog ends and processing time begins, None for a stream that stays in
    # event time; others have no backlog
    backlog_offsets: Mapping[int, int] | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "directory": self.directory,
            "first_batch": self.first_batch,
            "topic_id": self.topics.topics[0].topic_id,
            "start_offsets": offsets_text(self.start_offsets),
            "versions": None if self.versions is None else dict(self.versions),
            "cause": self.cause,
            "acknowledgement": self.acknowledgement and dict(self.acknowledgement),
            "abandoned": list(self.abandoned),
            "end_offsets": _text(self.end_offsets),
            "backlog_offsets": _text(self.backlog_offsets),
            **({"topics": topics_as_json(self.topics)} if self.topics.are_several else {}),
        }

    def shown(self) -> dict[str, Any]:
        offsets = {
            "start_offsets": self.start_offsets,
            "end_offsets": self.end_offsets,
            "backlog_offsets": self.backlog_offsets,
        }
        places = self.topics.places
        shown = {name: each if each is None else places(each) for name, each in offsets.items()}
        return {**self.as_json(), **shown}

    @staticmethod
    def from_json(value: Mapping[str, Any], topic: str) -> "Life":
        several = topics_of_json(value.get("topics", ()))
        return Life(
            directory=value["directory"],
            first_batch=value["first_batch"],
            topics=several or StreamTopics.one(topic, value["topic_id"]),
            start_offsets=offsets_value(value["start_offsets"]),
            versions=value["versions"],
            cause=value["cause"],
            acknowledgement=value["acknowledgement"],
            abandoned=tuple(value["abandoned"]),
            end_offsets=_value(value.get("end_offsets")),
            backlog_offsets=_value(value.get("backlog_offsets")),
        )


def _text(offsets: Mapping[int, int] | None) -> dict[str, int] | None:
    return None if offsets is None else offsets_text(offsets)


def _value(text: Mapping[str, int] | None) -> dict[int, int] | None:
    return None if text is None else offsets_value(text)


class ProbeLives:
    """A job's incarnations, in `probe.json`, and the acknowledgements that began them."""

    def __init__(self, checkpoint: Checkpoint, meta: JobMeta) -> None:
        self._checkpoint = checkpoint
        self._file = checkpoint.directory / "probe.json"
        self._list = checkpoint.directory / "acknowledgements.jsonl"
        kept = read_json(self._file)
        self._lives = [first_life(meta)] if kept is None else _lives(kept, meta)
        append_missing(self._list, self.acknowledgements())

    @property
    def all(self) -> tuple[Life, ...]:
        return tuple(self._lives)

    @property
    def current(self) -> Life:
        return self._lives[-1]

    def next_directory(self) -> str:
        return f"probe-{len(self._lives) + 1}"

    def begin(self, life: Life) -> None:
        self._write([*self._lives, life])
        append_missing(self._list, self.acknowledgements())

    def add_topics(self, topics: StreamTopics) -> None:
        """Append `topics`, durably. Only then may pins contain their partitions."""
        life = self.current
        more = replace(life, topics=life.topics.with_more(topics.topics))
        self._write([*self._lives[:-1], more])

    def _write(self, lives: list[Life]) -> None:
        write_json_atomically(self._file, {"lives": [each.as_json() for each in lives]})
        self._lives = lives

    def acknowledgements(self) -> list[dict[str, Any]]:
        return [dict(life.acknowledgement) for life in self._lives if life.acknowledgement]

    def acknowledgement(self, request_id: str) -> dict[str, Any] | None:
        return next((a for a in self.acknowledgements() if a["id"] == request_id), None)


def _lives(kept: Mapping[str, Any], meta: JobMeta) -> list[Life]:
    return [Life.from_json(value, meta.probe_topic) for value in kept["lives"]]


def first_life(meta: JobMeta) -> Life:
    return Life(
        directory="probe",
        first_batch=0,
        topics=meta.topics,
        start_offsets=dict(meta.probe_start_offsets),
        end_offsets=meta.probe_end_offsets,
        backlog_offsets=meta.probe_backlog_offsets,
    )


def read_lives(checkpoint: Checkpoint) -> tuple[Life, ...]:
    """The lives of a job that another process may run; none before its first start."""
    meta, kept = checkpoint.read_meta(), read_json(checkpoint.directory / "probe.json")
    if meta is None:
        return ()
    return (first_life(meta),) if kept is None else tuple(_lives(kept, meta))


def known_topics(checkpoint: Checkpoint) -> StreamTopics:
    lives = read_lives(checkpoint)
    return lives[-1].topics if lives else NO_TOPICS


def life_of(lives: tuple[Life, ...], batch: int) -> Life | None:
    return next((life for life in reversed(lives) if life.first_batch <= batch), None)
