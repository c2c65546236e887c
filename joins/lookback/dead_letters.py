"""The dead letters of a job: records without rows, each with its reason and its bytes.

They are read from the files of the table; a file's name has the batch. The key of a letter is
(batch, partition, offset), with the partition's number in the stream: a recreated topic may have
the same offset twice. The table itself has topics and their partitions.
"""

import base64
import codecs
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from joins.adapters.delta.entries import has_log
from joins.adapters.delta.log import DeltaLog
from joins.durable.letter_replays import LetterReplays, Replayed
from joins.kernels.probe.files import FileOrigin
from joins.kernels.probe.spec import insert_told
from joins.kernels.records.layout import MORE_OF_A_RECORD, numbered
from joins.kernels.table_path import TablePath, readable
from joins.plan.errors import (
    CheckpointError,
    QuestionError,
    SinkError,
    UnknownLetterError,
)
from joins.plan.stream_topics import NO_TOPICS, StreamTopics, partition_of, place_name

Coordinates = tuple[int, int, int]
Wanted = tuple[int | None, int, int]

_PLACE = ("partition", "offset")


def _none() -> StreamTopics:
    return NO_TOPICS


@dataclass(frozen=True, slots=True)
class Standing:
    """In which INSERTs of its job a letter has rows."""

    # INSERTs, from 1, in which its batch found it dead; None: all of them
    dead_in: frozenset[int] | None = None
    replayed: Replayed | None = None  # outcome of replays; None if none has tried it

    @property
    def replayed_by(self) -> int | None:
        return None if self.replayed is None else self.replayed.finished_by

    @property
    def entries(self) -> int:
        """Of the record in the table: one for each INSERT, or one for all."""
        return len(self.dead_in or (1,))

    def missing(self, inserts: int) -> tuple[int, ...]:
        if self.replayed is not None:
            return tuple(sorted(self.replayed.missing))
        return tuple(sorted(self.dead_in or range(1, inserts + 1)))


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record without rows in at least one INSERT."""

    batch: int
    topic: str
    partition: int
    offset: int
    reason: str  # one for each INSERT that has failed; only one if the record cannot be parsed
    value: bytes | None
    # when the record was written to its topic; None in tables of older jobs
    timestamp: datetime | None
    more: Mapping[str, Any] = field(default_factory=dict)  # the columns of `MORE_OF_A_RECORD`
    standing: Standing = Standing()

    @property
    def coordinates(self) -> Coordinates:
        return self.batch, self.partition, self.offset

    @property
    def replayed_by(self) -> int | None:
        return self.standing.replayed_by

    @property
    def discarded(self) -> tuple[str, str] | None:
        return None if self.standing.replayed is None else self.standing.replayed.discarded

    @property
    def is_pending(self) -> bool:
        return self.replayed_by is None and self.discarded is None

    @property
    def rows_by(self) -> Mapping[int, int]:
        return {} if self.standing.replayed is None else self.standing.replayed.rows_by

    def as_json(self, *, shown_bytes: int | None = None) -> dict[str, Any]:
        """`value` is text if the bytes are UTF-8, else there is `value_base64`.

        A value longer than `shown_bytes` is cut, and `truncated` set.
        """
        return {
            "batch": self.batch,
            "topic": self.topic,
            "partition": partition_of(self.partition),
            "offset": self.offset,
            "reason": self.reason,
            "timestamp_ms": _milliseconds(self.timestamp),
            "replayed_by": self.replayed_by,
            "replayed_inserts": sorted(self.rows_by),
            "discarded_by": None if self.discarded is None else self.discarded[0],
            "discarded_because": None if self.discarded is None else self.discarded[1],
            **_shown(self.value, shown_bytes),
        }


def _milliseconds(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)


def _shown(value: bytes | None, limit: int | None) -> dict[str, Any]:
    if value is None:
        return {"bytes": None, "truncated": False, "value": None, "value_base64": None}
    part = value if limit is None else value[:limit]
    document = {"bytes": len(value), "truncated": len(part) < len(value)}
    try:
        # The cut may be within a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(part, final=not document["truncated"])
    except UnicodeDecodeError:
        return {**document, "value": None, "value_base64": base64.b64encode(part).decode()}
    return {**document, "value": text, "value_base64": None}


@dataclass(frozen=True, slots=True)
class LetterPage:
    """Letters by (batch, partition, offset); `next_after` is None on the last page."""

    letters: tuple[DeadLetter, ...]
    next_after: Coordinates | None


class DeadLetters:
    """Reads the dead letters of one job, with and without a runner."""

    def __init__(
        self,
        table: TablePath,
        replays: LetterReplays,
        topics: Callable[[], StreamTopics] = _none,
    ) -> None:
        self._table = table
        self._replays = replays
        self.topics = topics

    def page(
        self,
        *,
        after: Coordinates | None = None,
        limit: int = 100,
        pending: bool = False,
        matching: str = "",
    ) -> LetterPage:
        """The first `limit` letters after `after`; with `pending` only those without rows yet.

        `matching` is part of the reason.
        """
        page_letters: list[DeadLetter] = []
        for letter in self.letters(after=after, pending=pending, matching=matching):
            if len(page_letters) == limit:
                return LetterPage(tuple(page_letters), page_letters[-1].coordinates)
            page_letters.append(letter)
        return LetterPage(tuple(page_letters), None)

    def letters(
        self, *, after: Coordinates | None = None, pending: bool = False, matching: str = ""
    ) -> Iterator[DeadLetter]:
        """The letters after `after` that `page` selects from, one batch in memory at a time."""
        replayed, topics = self._replays.replayed(), self.topics()
        for batch, files in self._batches().items():
            if after is not None and batch < after[0]:
                continue
            for letter in _letters_of(batch, _tables(files, topics), replayed):
                behind = after is None or letter.coordinates > after
                if behind and (letter.is_pending or not pending) and matching in letter.reason:
                    yield letter

    def of_batches(
        self, numbers: Collection[int]
    ) -> Iterator[tuple[int, dict[Coordinates, DeadLetter]]]:
        replayed, batches = self._replays.replayed(), self._batches()
        topics = self.topics()
        for batch in sorted(numbers):
            tables = _tables(batches.get(batch, []), topics)
            letters_by_place = _letters_of(batch, tables, replayed)
            yield batch, {letter.coordinates: letter for letter in letters_by_place}

    def find(self, partition: int, offset: int, batch: int | None = None) -> DeadLetter:
        """The letter at an offset; without `batch` the newest one. Raises UnknownLetterError."""
        letter_key: Wanted = (batch, partition, offset)
        place, _ = self.locate([letter_key])[letter_key]
        ((_, letters),) = self.of_batches([place[0]])
        return letters[place]

    def number(self, topic: str | None, partition: int) -> int:
        """The stream's number of a topic's partition; with a single topic `topic` may be None.

        Raises:
            QuestionError: the topic is missing, or not in the stream.
        """
        topics = self.topics()
        if topic is None and not topics.are_several:
            return partition
        number = partition if not topics else topics.number(topic or "", partition)
        if number is None:
            which = "names no topic" if topic is None else f'names topic "{topic}"'
            raise QuestionError(
                f"the place of a dead letter {which}, expected one of {topics.text}",
                hint="Write topic/partition/offset, as the list of dead letters has them.",
            )
        return number

    def place(self, letter: DeadLetter) -> str:
        several = self.topics().are_several
        place = f"{partition_of(letter.partition)}/{letter.offset}"
        return f"{letter.topic}/{place}" if several else place

    def locate(self, places: Collection[Wanted]) -> dict[Wanted, tuple[Coordinates, Standing]]:
        """Find letters in one pass; without a batch, the newest. Raises UnknownLetterError."""
        replayed, batches, missing = self._replays.replayed(), self._batches(), set(places)
        topics = self.topics()
        located: dict[Wanted, tuple[Coordinates, Standing]] = {}
        for batch in reversed(batches):
            here = {w for w in missing if w[0] is None or w[0] == batch}
            if not here:
                continue
            tables = _tables(batches[batch], topics, [*_PLACE, "reason"])
            reasons = _reasons(tables, {one[1:] for one in here})
            for one in here:
                if one[1:] in reasons:
                    at = (batch, *one[1:])
                    located[one] = at, Standing(_dead_in(reasons[one[1:]]), replayed.get(at))
            missing -= located.keys()
        if missing:
            _, partition, offset = min(missing, key=lambda w: w[1:])
            shown = (
                place_name(topics, partition) if topics.are_several else f"partition {partition}"
            )
            raise UnknownLetterError(
                f"{shown} has no dead letter at offset {offset}",
                hint="List the dead letters; a record with rows is in the output.",
            )
        return located

    def _batches(self) -> dict[int, list[TablePath]]:
        """Batch → its files, in the order of the batches."""
        files_of: dict[int, list[TablePath]] = {}
        if not has_log(self._table):
            return files_of
        log = DeltaLog(self._table, "")
        for file in log.files.files_at(log.version()):
            origin = FileOrigin.of_name(file.name)
            if origin is None:
                raise CheckpointError(
                    f'file "{file.name}" of the dead letters was not written by Sluice',
                    hint="Let no other program write to the directory of a job.",
                )
            files_of.setdefault(origin.batch, []).append(file)
        return dict(sorted(files_of.items()))


def _tables(
    files: Iterable[TablePath], topics: StreamTopics, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The letters of files, their partitions as numbers of the stream."""
    topic = ["topic"] if topics.are_several else []
    for file in files:
        table = _read(file, None if columns is None else [*columns, *topic])
        if topics.are_several:
            partitions = numbered(topics, table.column("topic"), table.column("partition"))
            at = table.schema.get_field_index("partition")
            table = table.set_column(at, "partition", partitions)
        yield table


def _reasons(
    tables: Iterable[pa.Table], record_places: Collection[tuple[int, int]]
) -> dict[tuple[int, int], list[str]]:
    reasons_of: dict[tuple[int, int], list[str]] = {}
    for table in tables:
        places = zip(*(table.column(name).to_pylist() for name in _PLACE), strict=True)
        for row, place in enumerate(places):
            if place in record_places:
                reasons_of.setdefault(place, []).append(table.column("reason")[row].as_py())
    return reasons_of


def _dead_in(reasons: Iterable[str]) -> frozenset[int] | None:
    inserts = {insert_told(reason) for reason in reasons}
    return (
        None if None in inserts else frozenset(number for number in inserts if number is not None)
    )


def _letters_of(
    batch: int, tables: Iterable[pa.Table], replayed: Mapping[Coordinates, Replayed]
) -> Iterator[DeadLetter]:
    of_files = list(tables)
    if not of_files:
        return
    table = pa.concat_tables(of_files, promote_options="default")
    by = [(name, "ascending") for name in (*_PLACE, "reason")]
    rows = (
        row
        for part in table.take(pc.sort_indices(table, by)).to_batches(1024)
        for row in part.to_pylist()
    )
    for _, same in groupby(rows, key=itemgetter(*_PLACE)):
        letter_rows = list(same)
        row = letter_rows[0]
        reasons = [each["reason"] for each in letter_rows]
        tried = replayed.get((batch, row["partition"], row["offset"]))
        yield DeadLetter(
            batch=batch,
            topic=row["topic"],
            partition=row["partition"],
            offset=row["offset"],
            reason="; ".join(reasons),
            value=row["value"],
            timestamp=row.get("timestamp"),
            more={name: row.get(name) for name in MORE_OF_A_RECORD.names},
            standing=Standing(_dead_in(reasons), tried),
        )


def _read(file: TablePath, columns: list[str] | None = None) -> pa.Table:
    try:
        return pq.read_table(readable(file), columns=columns, partitioning=None)
    except (OSError, pa.ArrowException) as exc:
        raise SinkError(
            f'file "{file}" of the dead letters cannot be read: {exc}',
            hint="Restore it from a backup; the other dead letters are not affected.",
        ) from exc
