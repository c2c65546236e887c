"""Reads topics and files a second time, to compare their copies with them."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from joins.adapters.files.listing import FileFeedState
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.topic.feed_state import FeedJournal, TopicFeedConfig, read_journal
from joins.adapters.topic.second_copy import SecondCopy, read_files, read_topic
from joins.dimension.build_side import committed_offsets
from joins.dimension.changelog_scan import DimensionStates
from joins.kernels.changelog.comparison import Place
from joins.lookback.verification import VerifyLimits
from joins.plan.plan import Dimension, FileSource, TopicSource
from service.wiring.context import JobContext
from service.wiring.feeds import file_feed, topic_feed

Proven = Callable[[], Place | None]


@contextmanager
def second_read(
    job: JobContext,
    dimension: Dimension,
    state: FileFeedState | FeedJournal,
    states: DimensionStates,
    limits: VerifyLimits,
) -> Iterator[tuple[SecondCopy, Proven]]:
    """The source's rows, and the proof that the changelog has everything up to where they end."""
    directory = job.layout.verifications
    directory.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="read-", dir=directory) as place:
        source = dimension.source
        if isinstance(source, FileSource):
            assert isinstance(state, FileFeedState)
            config = file_feed(job, dimension, source)
            epoch = state.generation - 1
            read = read_files(config, Path(place), epoch, state.files, limits.rows_per_s)
            yield read, lambda: read.low  # what is complete has all of it
            return
        assert isinstance(source, TopicSource)
        feed = topic_feed(job, dimension, source)
        pace = limits.proof_s, limits.rows_per_s
        again = read_topic(feed, Path(place), state.generation - 1, *pace)
        assert again.ends is not None
        yield again, _Arrival(feed, states, again.ends, again.low).proven


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
