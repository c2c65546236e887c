"""Changes without a large value, from a topic to our records, over restarts."""

import pytest

from joins.adapters.topic.feed_state import read_journal, write_decisions
from joins.kernels.debezium.options import UNAVAILABLE_VALUE
from joins.plan.errors import ForeignRecordError
from joins.plan.formats import KafkaFormat, RecordFormat
from tests.joins.adapters.topic.test_feed import skipped
from tests.support.foreign_topics import topic_feed

FILLS = RecordFormat(KafkaFormat.DEBEZIUM_JSON, (("unsent.values", "last-version"),))


def test_a_value_that_was_not_sent_is_kept_over_restarts_and_snapshots(connector, tmp_path):
    feed = topic_feed(connector, tmp_path, value=FILLS)
    connector.snapshot({1: "a", 2: "b", 3: "c"})
    connector.change(1, UNAVAILABLE_VALUE)
    connector.change(2, "B")
    connector.change(2, UNAVAILABLE_VALUE)
    connector.change(4, "d")
    connector.change(4, UNAVAILABLE_VALUE)
    feed.run()
    assert feed.rows() == {1: "a", 2: "B", 3: "c", 4: "d"}
    connector.change(3, UNAVAILABLE_VALUE)
    connector.change(2, UNAVAILABLE_VALUE)
    feed.run()
    connector.snapshot({1: "x", 2: "y"})
    connector.change(2, UNAVAILABLE_VALUE)
    feed.run()
    assert feed.rows() == {1: "x", 2: "y"}


def test_a_row_without_a_last_version_stalls_until_its_record_is_skipped(connector, tmp_path):
    feed = topic_feed(connector, tmp_path, value=FILLS)
    connector.snapshot({1: "a", 2: "b"})
    connector.change(2, None)
    connector.change(2, UNAVAILABLE_VALUE)
    with pytest.raises(ForeignRecordError, match="there is no version of its row") as caught:
        feed.run()
    write_decisions(feed.config.decisions_file, skipped(feed, *caught.value.place))
    connector.change(1, UNAVAILABLE_VALUE)
    feed.run()
    assert feed.rows() == {1: "a"}
    assert read_journal(feed.config.state_file).memory.values[1] > 0


def test_without_the_option_such_a_record_stalls(connector, tmp_path):
    connector.snapshot({1: "a"})
    connector.change(1, UNAVAILABLE_VALUE)
    with pytest.raises(ForeignRecordError, match="the database did not send it"):
        topic_feed(connector, tmp_path).run()
