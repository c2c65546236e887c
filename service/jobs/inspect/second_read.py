"""Reads topics and files a second time, to compare their copies with them."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from joins.adapters.files.listing import FileFeedConfig, FileFeedState
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.topic.feed_state import FeedJournal, TopicFeedConfig, read_journal
from joins.adapters.topic.second_copy import read_files, read_topic
from joins.dimension.build_side import committed_offsets
from joins.dimension.changelog_scan import DimensionStates
from joins.kernels.changelog.comparison import Place
from service.connectors.port import Compared, SecondRead
from service.wiring.context import JobContext


@contextmanager
def place_of_read(job: JobContext) -> Iterator[Path]:
    directory = job.layout.verifications
    directory.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="read-", dir=directory) as place:
        yield Path(place)


def read_files_again(
    config: FileFeedConfig, place: Path, state: FileFeedState, rows_per_s: int | None
) -> SecondRead:
    read = read_files(config, place, state.generation - 1, state.files, rows_per_s)
    # what is complete has all of it
    return SecondRead(read, lambda: read.low, read.counted(), is_paced=True)


def read_topic_again(
    feed: TopicFeedConfig,
    place: Path,
    state: FeedJournal,
    of: Compared,
) -> SecondRead:
    again = read_topic(feed, place, state.generation - 1, of.proof_s, of.rows_per_s)
    assert again.ends is not None
    arrival = _Arrival(feed, of.states, again.ends, again.low)
    return SecondRead(again, arrival.proven, again.counted(), is_paced=True)


class _Arrival:
    """Whether a changelog has everything of a topic up to some ends."""

    def __init__(
        self, feed: TopicFeedConfig, states: DimensionStates, ends: Mapping[int, int], place: Place
    ) -> None:
        self._feed = feed
        self._states = states
        self._ends = ends
        self._place = place
        self._sent: Mapping[int, int] | None = None  # ends of the changelog topic with all of it

    def proven(self) -> Place | None:
        if self._sent is None and not self._is_sent():
            return None
        log, partitions = self._states.log, self._states.scan.spec.partitions
        committed = committed_offsets(log, self._states.newest(), partitions)
        assert self._sent is not None
        is_in = all(committed.get(p, 0) >= end for p, end in self._sent.items())
        return self._place if is_in else None

    def _is_sent(self) -> bool:
        offsets = read_journal(self._feed.state_file).position.offsets
        if any(offsets.get(partition, 0) < end for partition, end in self._ends.items()):
            return False
        self._sent = KafkaCluster(self._feed.kafka).end_offsets(self._feed.kafka.topic)
        return True
