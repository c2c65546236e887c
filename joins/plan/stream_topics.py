"""The topics of one stream, and the number of each of their partitions.

Pins, lives, state, kernels and files identify a partition by one number: the topic's index in the
stream times 2^20, plus the partition. A stream of one topic has its own partition numbers. Only
requests to a cluster and displayed texts use topics. Files that are read before the topics are one
more partition, whose offsets are the numbers of their rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from joins.plan.errors import CheckpointError, SourceError

PROBE = "probe"
"""The name of the stream among the inputs of a join; the others are tables."""
SPAN = 1 << 20
"""Numbers per topic; Kafka allows fewer partitions."""
FILES_INDEX = (1 << 11) - 1  # the columns of records have 31 bits for a number
MOST_TOPICS = FILES_INDEX
FILES = FILES_INDEX * SPAN
"""The number of the only partition of the stream's files."""
HISTORY = "history:"
"""What the name of a stream's files begins with; that of its topic follows."""
NAME = rf"(?:{HISTORY})?[A-Za-z0-9._-]{{1,249}}"
"""A pattern of the names of topics and of the files before them."""
_SHOWN = 5
_Value = TypeVar("_Value")


def input_name(name: str) -> str:
    """An input of a join for people."""
    return "the stream" if name == PROBE else f'table "{name}"'


@dataclass(frozen=True, slots=True)
class StreamTopic:
    """A topic."""

    name: str
    topic_id: str = ""  # Kafka's UUID as text; "" if unknown
    # deleted; the stream goes on without it, and no other topic gets its index
    is_gone: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "id": self.topic_id, **({"gone": True} if self.is_gone else {})}


@dataclass(frozen=True, slots=True)
class HistoryTopic:
    """The files before the topics, as one partition of the stream."""

    name: str  # no topic can have it: Kafka allows no colon
    listing_id: str  # of the list of files
    rows: int

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "id": self.listing_id, "rows": self.rows}


def partition_of(number: int) -> int:
    return number % SPAN if number >= 0 else number


def index_of(number: int) -> int:
    return number // SPAN


def is_file(number: int) -> bool:
    """True if the partition is that of the stream's files."""
    return index_of(number) == FILES_INDEX


def of_kafka(values: Mapping[int, _Value]) -> dict[int, _Value]:
    """Without the partition of the files."""
    return {number: value for number, value in values.items() if not is_file(number)}


def by_number(index: int, values: Mapping[int, _Value]) -> dict[int, _Value]:
    """Values of one topic by partition as values by number."""
    return {index * SPAN + partition: value for partition, value in values.items()}


def by_topic(values: Mapping[int, _Value]) -> dict[int, dict[int, _Value]]:
    """Values by number as topic's index → partition → value; without empty topics and files."""
    parts: dict[int, dict[int, _Value]] = {}
    for number, value in of_kafka(values).items():
        parts.setdefault(index_of(number), {})[partition_of(number)] = value
    return dict(sorted(parts.items()))


@dataclass(frozen=True, slots=True)
class StreamTopics:
    """The topics by index; the order never changes, and new ones are appended."""

    # reads better long: the topics and the numbers of their partitions, in both directions.

    topics: tuple[StreamTopic, ...]
    history: HistoryTopic | None = None

    @classmethod
    def one(cls, name: str, topic_id: str = "") -> Self:
        return cls((StreamTopic(name, topic_id),))

    def __len__(self) -> int:
        return len(self.topics)

    @property
    def are_several(self) -> bool:
        return len(self.topics) > 1 or self.history is not None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(topic.name for topic in self.topics)

    @property
    def file_ends(self) -> dict[int, int]:
        """The partition of the files with the number of their rows, if there are files."""
        return {} if self.history is None else {FILES: self.history.rows}

    @property
    def read_names(self) -> tuple[str, ...]:
        return tuple(topic.name for topic in self.topics if not topic.is_gone)

    def missing_in(self, ids: Sequence[str | None]) -> tuple[str, ...]:
        pairs = zip(self.topics, ids, strict=True)
        return tuple(topic.name for topic, i in pairs if i is None and not topic.is_gone)

    def of(self, indexes: Sequence[int]) -> "StreamTopics":
        if not indexes:
            return self
        return replace(self, topics=tuple(self.topics[index] for index in indexes))

    @property
    def text(self) -> str:
        more = f", … ({len(self)} topics)" if len(self) > _SHOWN else ""
        return ", ".join(self.names[:_SHOWN]) + more

    def with_more(self, topics: Iterable[StreamTopic]) -> "StreamTopics":
        """Append those whose names are new; SourceError if there are too many for a stream."""
        known = set(self.names)
        new = {topic.name: topic for topic in topics if topic.name not in known}
        if len(self) + len(new) > MOST_TOPICS:
            raise SourceError(
                f"the stream has {len(self) + len(new)} topics, expected at most {MOST_TOPICS}",
                hint="Name fewer topics, or make their pattern narrower.",
            )
        return replace(self, topics=(*self.topics, *new.values())) if new else self

    def identified(self, ids: Sequence[str | None]) -> "StreamTopics":
        """With the ids that the cluster shows; a topic without one is gone."""
        pairs = zip(self.topics, ids, strict=True)
        known = (replace(t, topic_id=i or t.topic_id, is_gone=i is None) for t, i in pairs)
        return replace(self, topics=tuple(known))

    def topic_of(self, number: int) -> StreamTopic:
        """CheckpointError if no topic has the number: the job's files contradict each other."""
        if self.history is not None and is_file(number):
            return StreamTopic(self.history.name, self.history.listing_id)
        if not 0 <= index_of(number) < len(self):
            raise CheckpointError(
                f"partition {number} is of none of the topics {self.text} that the job knows of",
                hint="Restore probe.json of the job's checkpoint, or submit the job again.",
            )
        return self.topics[index_of(number)]

    def read_of(self, offsets: Mapping[int, int]) -> dict[int, int]:
        return {n: offset for n, offset in offsets.items() if not self.topic_of(n).is_gone}

    def number(self, topic: str, partition: int) -> int | None:
        if self.history is not None and topic == self.history.name and partition == 0:
            return FILES
        if topic not in self.names or not 0 <= partition < SPAN:
            return None
        return self.names.index(topic) * SPAN + partition

    def place(self, number: int) -> str:
        if not self.are_several:
            return str(number)
        return f"{self.topic_of(number).name}/{partition_of(number)}"

    def places(self, offsets: Mapping[int, int]) -> dict[str, int]:
        return {self.place(number): offset for number, offset in sorted(offsets.items())}


NO_TOPICS = StreamTopics(())
"""Value of a file without topics."""


def topics_as_json(topics: StreamTopics) -> list[dict[str, Any]]:
    of_history = [] if topics.history is None else [topics.history.as_json()]
    return [*(topic.as_json() for topic in topics.topics), *of_history]


def topics_of_json(value: Iterable[Mapping[str, Any]]) -> StreamTopics:
    topics, history = list[StreamTopic](), None
    for each in value:
        if "rows" in each:
            history = HistoryTopic(each["name"], each["id"], each["rows"])
        else:
            topics.append(StreamTopic(each["name"], each["id"], bool(each.get("gone"))))
    return StreamTopics(tuple(topics), history)


def in_each(
    topics: StreamTopics, offsets: Iterable[tuple[int, int]]
) -> tuple[tuple[int, int], ...]:
    """Offsets by partition as offsets by number, the same in each topic."""
    pairs = tuple(offsets)
    return tuple((i * SPAN + p, o) for i in range(len(topics)) for p, o in pairs)


def place_json(topics: StreamTopics, number: int) -> dict[str, Any]:
    partition = {"partition": partition_of(number)}
    if not topics.are_several:
        return partition
    return {"topic": topics.topic_of(number).name, **partition}


def place_name(topics: StreamTopics, number: int) -> str:
    if is_file(number):
        return f'history of topic "{topics.names[0]}"'
    return f'topic "{topics.topic_of(number).name}" partition {partition_of(number)}'
