"""Which notifications are about the table of a topic: what its records tell, before its name."""

import pyarrow as pa
import pytest

from joins.adapters.kafka.cluster import TopicDescription
from joins.adapters.topic.decoding import NoticeTopic, notice_of
from joins.kernels.debezium.changes import ForeignTable
from joins.kernels.debezium.notifications import (
    SnapshotEvent,
    SnapshotFamily,
    SnapshotNotification,
)
from joins.plan.errors import RecordsExpiredError
from joins.plan.plan import KafkaOptions
from watermark.foreign_records import Notice, NoticeKind

SCANNED = SnapshotEvent.TABLE_SCAN_COMPLETED


def notification(event, connector, table=None):
    return SnapshotNotification(
        SnapshotFamily.INITIAL, event, "id", connector, 7, table=table, rows=3
    )


MYSQL = ForeignTable("shop", "db", None, "users")
POSTGRES = ForeignTable("pg", "db", "public", "users")
SQL_SERVER = ForeignTable("srv", "one", "dbo", "users")
FLAT = ForeignTable(None, None, "public", "users")
SCANS = {
    "no_record_yet_and_the_usual_name": ("shop", "db.users", "shop.db.users", None, True),
    "no_record_yet_and_the_name_of_postgres": (
        "pg",
        "db.public.users",
        "pg.public.users",
        None,
        True,
    ),
    "no_record_yet_and_another_name": ("shop", "db.users", "users", None, False),
    "no_record_yet_and_another_table": ("shop", "db.items", "shop.db.users", None, False),
    "another_name": ("shop", "db.users", "all", MYSQL, True),
    "another_name_and_the_database_in_front": ("pg", "db.public.users", "all", POSTGRES, True),
    "another_name_and_no_database_in_front": ("pg", "public.users", "all", POSTGRES, True),
    "another_table_of_the_topics_name": ("shop", "db.items", "shop.db.items", MYSQL, False),
    "another_connector_of_the_topics_name": ("other", "db.users", "other.db.users", MYSQL, False),
    "a_table_of_another_database": ("srv", "two.dbo.users", "srv.one.dbo.users", SQL_SERVER, False),
    "a_table_of_the_same_database": ("srv", "one.dbo.users", "x", SQL_SERVER, True),
    "a_table_of_another_schema": ("pg", "db.other.users", "pg.public.users", POSTGRES, False),
    "records_without_connector": ("pg", "db.public.users", "pg.x", FLAT, True),
    "records_without_connector_and_another_name": ("pg", "db.public.users", "all", FLAT, False),
    "a_connector_that_does_not_tell_its_name": (None, "db.users", "shop.db.users", MYSQL, False),
}


@pytest.mark.parametrize(
    ("connector", "scanned", "topic", "table", "is_ours"), SCANS.values(), ids=SCANS
)
def test_a_scan_is_of_the_table_that_records_tell(connector, scanned, topic, table, is_ours):
    expected = Notice(NoticeKind.SCANNED, 7, 3) if is_ours else None
    assert notice_of(notification(SCANNED, connector, scanned), topic, table) == expected


STARTS = {
    "the_connector_of_the_topics_name": ("shop", "shop.db.users", None, True),
    "the_connector_of_the_records": ("shop", "all", MYSQL, True),
    "another_one": ("other", "other.db.users", MYSQL, False),
    "a_longer_name": ("shop", "shop2.db.users", None, False),
    "one_that_does_not_tell_its_name": (None, "all", MYSQL, True),
}


@pytest.mark.parametrize(("connector", "topic", "table", "is_ours"), STARTS.values(), ids=STARTS)
def test_a_snapshot_is_of_the_connector_that_records_tell(connector, topic, table, is_ours):
    expected = Notice(NoticeKind.STARTED, 7) if is_ours else None
    assert notice_of(notification(SnapshotEvent.STARTED, connector), topic, table) == expected


class ShrinkingTopic:
    """A topic whose oldest records go while it is read for the first time."""

    def __init__(self):
        self.begins = {0: 2}
        self.asked = []

    def require(self, topic):
        return TopicDescription(topic, "", (0,))

    def end_offsets(self, topic):
        return {0: 5}

    def beginning_offsets(self, topic):
        return self.begins

    def batches(self, topics, ranges, columns):
        self.asked.append(ranges)
        if ranges[0][0] < 4:
            self.begins = {0: 4}
            raise RecordsExpiredError("gone", hint="")
        nothing = pa.array([None], pa.binary())
        yield pa.record_batch([nothing, nothing], names=columns)


def test_notifications_that_go_while_they_are_read_are_not_waited_for():
    topic = ShrinkingTopic()
    notices = NoticeTopic(KafkaOptions("b:1", "n"), "shop.db.users", ("", ()))
    notices._cluster = notices._records = topic
    assert notices.read(MYSQL) == []
    assert not notices.is_read, "what is left of them was not read yet"
    assert notices.read(MYSQL) == []
    assert notices.read_to == ("", ((0, 5),))
    assert topic.asked == [{0: (2, 5)}, {0: (4, 5)}]
