"""The process of a topic with a history: reads the files, then follows the topic behind them.

docs/reference/contracts.md ("The process of a topic with a history") describes the protocol.
"""

import sys
from contextlib import closing

from joins.adapters.files.feed import FileFeedSession
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.process.sessions import SourceProtocol, run_process, run_sessions
from joins.adapters.topic.feed import run_session
from joins.adapters.topic.feed_state import (
    CopiedHistory,
    FeedJournal,
    TopicFeedConfig,
    read_journal,
)
from joins.adapters.topic.producer import TopicProducer
from joins.adapters.topic.start import find_start, require_topic
from joins.plan.errors import SourceError


def check_topic_start(config: TopicFeedConfig) -> None:
    """Require the topic of the submission, and its start if that does not depend on the files."""
    source = config.source
    assert source.history is not None
    topic = source.kafka.topic
    with closing(KafkaCluster(source.kafka, keep_open=True)) as cluster:
        require_topic(source, cluster.require(topic).topic_id)
        if source.history.startup_column is None:
            find_start(cluster, topic, source.history)


def copy_files(
    config: TopicFeedConfig, protocol: SourceProtocol, kept: FeedJournal
) -> CopiedHistory | None:
    """Send the rows of the files; None if the protocol stopped it.

    Raises as `FileFeedSession.run`, and SourceError if the topic does not continue the files.
    """
    check_topic_start(config)
    files = config.files
    session = FileFeedSession(files, protocol, behind=kept.generation)
    with closing(TopicProducer(files.kafka, files.partitions, str(files.path))) as producer:
        is_copied = session.copy(producer)
    return CopiedHistory(session.state.generation, session.state.newest_ms) if is_copied else None


def run(config: TopicFeedConfig, protocol: SourceProtocol) -> int:
    """Sessions until the protocol stops; returns the exit code."""

    def session() -> None:
        kept = read_journal(config.state_file)
        history = copy_files(config, protocol, kept) if kept.begins else None
        if not protocol.stopped.is_set():
            run_session(config, protocol, history)

    return run_sessions(protocol, session, (SourceError,))


def main() -> int:
    return run_process(SourceProtocol(), TopicFeedConfig, run)


if __name__ == "__main__":
    sys.exit(main())
