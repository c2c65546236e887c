"""Indexes of versions in old pins: the runner's, which are only read, else built in a scratch."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa

from joins.adapters.delta.log import DeltaLog
from joins.adapters.kafka.cluster import KafkaCluster, TopicDescription
from joins.adapters.kafka.records import KafkaRecords
from joins.durable.pins import Pin
from joins.kernels.changelog.changes import CHANGE_COLUMNS
from joins.kernels.changelog.row_kinds import DELETE, UPDATE_BEFORE, all_kinds
from joins.kernels.index.index import DimensionIndex, IndexSpec, build, remove_versions
from joins.kernels.json.exact import CanonicalRows, row_texts
from joins.kernels.local_files import OwnDirectory
from joins.kernels.probe.probe import JoinedBatch
from joins.lookback.history import History, HistoryPlaces
from joins.plan.errors import (
    IndexBuildError,
    IndexDirectoryError,
    PinnedVersionExpiredError,
    RecordsExpiredError,
    SinkError,
    SourceError,
)
from joins.plan.stream_topics import (
    FILES,
    StreamTopic,
    by_number,
    by_topic,
    index_of,
    is_file,
    of_kafka,
)
from joins.worker.probe_task import IndexPlace

Changes = Mapping[str, str | None]
"""Key → its row as JSON text, None if the batch has deleted it."""


def last_changes(answers: Iterable[JoinedBatch], key: Sequence[str]) -> Changes:
    """The last change of each key, as a merge applies it."""
    last: dict[str, str | None] = {}
    for answer in answers:
        kinds = all_kinds(answer.kinds, answer.rows.num_rows).to_pylist()
        for (name, row), kind in zip(_keyed(answer.rows, key), kinds, strict=True):
            if kind != UPDATE_BEFORE:  # the replacing row has the same key
                last[name] = None if kind == DELETE else row
    return last


def changed_rows(
    changes: Changes,
    added: Iterable[pa.Table],
    removed: Iterable[pa.Table],
    key: Sequence[str],
) -> tuple[CanonicalRows, CanonicalRows]:
    """(rows that the commit should have brought, those that it has), from the rows of its files.

    A row of another key that is gone should have stayed; one that came should not have. A row of a
    changed key that was there and still is, beside or in place of its newest one, should have gone.
    """
    now, before = _counted(added, key), _counted(removed, key)
    expected = Counter((name, row) for name, row in changes.items() if row is not None)
    new = now - before
    lost = {at: count for at, count in (before - now).items() if at[0] not in changes}
    same = {at: count for at, count in (now & before).items() if at[0] in changes}
    return _canonical(expected + Counter(lost)), _canonical(new + Counter(same))


def _keyed(rows: pa.RecordBatch, key: Sequence[str]) -> Iterable[tuple[str, str]]:
    names = row_texts(rows.select(list(key))).to_pylist()
    return zip(names, row_texts(rows).to_pylist(), strict=True)


def _counted(tables: Iterable[pa.Table], key: Sequence[str]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for table in tables:
        for batch in table.to_batches():
            counts.update(_keyed(batch, key))
    return counts


def _canonical(rows: Counter[tuple[str, str]]) -> CanonicalRows:
    return CanonicalRows.of_texts((None, None, row) for _, row in rows.elements())


Range = tuple[int, int, int]


class PastRecords:
    """Reads the records of one job's stream again; close it when done.

    `columns` of each record, those that the job's kernel reads by default.
    """

    def __init__(self, history: History, columns: tuple[str, ...] | None = None) -> None:
        self._history = history
        self.topics = history.topics
        self._columns = columns or history.places.kernel.record_columns
        kafka = history.places.probe_kafka
        self._records = KafkaRecords(kafka)
        self._files = history.places.stream_files
        self._cluster = KafkaCluster(kafka, keep_open=True)

    def close(self) -> None:
        self._records.close()
        self._cluster.close()

    def check_topics(self, pin: Pin) -> None:
        """RecordsExpiredError if a topic is gone, or another one has its name."""
        expected = self._history.life_of(pin.batch).topics
        of_files = pin.ranges().get(FILES)
        if of_files is not None and self._files is not None:
            self._files.check(*of_files)
        read = [expected.topics[i] for i in by_topic(pin.end_offsets)]
        self._described(read, f" of batch {pin.batch}")

    def _described(self, topics: Sequence[StreamTopic], of: str = "") -> list[TopicDescription]:
        described = self._cluster.describe_all([topic.name for topic in topics])
        for topic in topics:
            there = described.get(topic.name)
            if there is None or there.topic_id != topic.topic_id:
                state = (
                    "is gone"
                    if there is None
                    else f"has id {there.topic_id}, expected {topic.topic_id}"
                )
                raise RecordsExpiredError(
                    f'topic "{topic.name}"{of} {state}',
                    hint="The records of this batch cannot be read again."
                    if of
                    else "Its records cannot be read again.",
                )
        return [described[topic.name] for topic in topics]

    def ends(self, number: int) -> tuple[dict[int, int], dict[int, int]]:
        """(oldest offsets, offsets after the newest readable record) of a partition's topic."""
        if is_file(number):
            return {number: 0}, self.topics.file_ends
        index, (topic,) = index_of(number), self._described([self.topics.topic_of(number)])
        begin, end = self._cluster.beginning_offsets(topic), self._cluster.end_offsets(topic)
        return by_number(index, begin), by_number(index, end)

    def file_of(self, number: int, offset: int) -> str | None:
        """The row of a file that is the record; None for a record of a topic."""
        if not is_file(number) or self._files is None or offset >= self._files.listed.rows:
            return None
        return self._files.named(offset)

    def high_watermarks(self, number: int) -> dict[int, int]:
        if is_file(number):
            return self.topics.file_ends
        (topic,) = self._described([self.topics.topic_of(number)])
        return by_number(index_of(number), dict(self._cluster.high_watermarks(topic)))

    def kept(self, pin: Pin) -> tuple[dict[int, tuple[int, int]], tuple[Range, ...]]:
        """(partition → available range, ranges that retention has removed) of a batch."""
        self.check_topics(pin)
        begin = dict.fromkeys(self.topics.file_ends, 0) | {
            number: offset
            for index in by_topic(pin.end_offsets)
            for number, offset in by_number(
                index, self._cluster.beginning_offsets(self.topics.names[index])
            ).items()
        }
        ranges: dict[int, tuple[int, int]] = {}
        gone: list[Range] = []
        for partition, end in sorted(pin.end_offsets.items()):
            start = pin.start_offsets.get(partition, 0)
            first = min(max(start, begin.get(partition, end)), end)
            ranges[partition] = (first, end)
            if start < first:
                gone.append((partition, start, first))
        return ranges, tuple(gone)

    def read(self, ranges: Mapping[int, tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        of_files, of_topics = ranges.get(FILES), of_kafka(ranges)
        if of_files is not None and self._files is not None:
            try:
                yield from self._files.batches(*of_files, self._columns)
            except SourceError as exc:
                raise RecordsExpiredError(exc.message, hint=exc.hint) from exc
        if of_topics:
            yield from self._records.batches(self.topics, of_topics, self._columns)


_BATCH_ROWS = 131_072
_KEPT = 4


class PastIndexes(AbstractContextManager["PastIndexes"]):
    """Indexes of every version that is still readable; a context manager."""

    def __init__(self, places: HistoryPlaces) -> None:
        self._places = places
        self._scratch = OwnDirectory("index")
        self._built: list[tuple[str, int]] = []
        self._changelogs = {
            name: DeltaLog(path / "changelog", f"{places.app_id}:{name}")
            for name, path in places.tables.items()
        }

    def __exit__(self, *_: object) -> None:
        self._scratch.remove()

    def changelog(self, dimension: str) -> DeltaLog:
        return self._changelogs[dimension]

    def of(self, versions: Mapping[str, int]) -> dict[str, DimensionIndex]:
        """Alias of the role → its index at the version of its dimension.

        Raises:
            PinnedVersionExpiredError: files of the version, or its log, are gone.
        """
        return {
            alias: self._of_role(role, versions[role.dimension])
            for alias, role in self._places.roles.items()
        }

    def _of_role(self, role: IndexPlace, version: int) -> DimensionIndex:
        try:
            return DimensionIndex.attach(role.on_node, version, role.spec)
        except (IndexBuildError, IndexDirectoryError):
            pass  # pruned, lost, or on other nodes only: the changelog has it
        directory = self._scratch.path / role.dimension
        try:
            return DimensionIndex.attach(directory, version, role.spec)
        except IndexBuildError:
            self._forget_oldest(role.dimension, directory)
        build(directory, version, role.spec, self._rows(role.dimension, version, role.spec))
        self._built.append((role.dimension, version))
        return DimensionIndex.attach(directory, version, role.spec)

    def _forget_oldest(self, dimension: str, directory: Path) -> None:
        mine = [version for name, version in self._built if name == dimension]
        if len(set(mine)) >= _KEPT:
            keep = set(mine[-(_KEPT - 1) :])
            remove_versions(directory, keep)
            self._built = [b for b in self._built if b[0] != dimension or b[1] in keep]

    def _rows(self, dimension: str, version: int, spec: IndexSpec) -> Iterator[pa.RecordBatch]:
        columns = (*spec.schema.names, *CHANGE_COLUMNS)
        for table in self.changelog_rows(dimension, version, columns):
            yield from table.to_batches(_BATCH_ROWS)

    def changelog_rows(
        self, dimension: str, version: int, columns: tuple[str, ...]
    ) -> Iterator[pa.Table]:
        """All changelog rows of `version`, one table a file.

        Raises:
            PinnedVersionExpiredError: files of the version, or its log, are gone.
        """
        log = self.changelog(dimension)
        try:
            yield from log.files.read_files(log.files.files_at(version), columns)
        except (SinkError, OSError) as exc:
            raise expired(dimension, version, exc) from exc


def expired(dimension: str, version: int, exc: Exception) -> PinnedVersionExpiredError:
    return PinnedVersionExpiredError(
        f'version {version} of dimension "{dimension}" cannot be read any more: {exc}',
        hint="Only batches whose pins are leased can be replayed; see SLUICE_REPLAY_BATCHES.",
    )
