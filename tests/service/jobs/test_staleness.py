"""Bounds that the machine cannot reach are refused at submission, with what is measured."""

from pathlib import Path

import pytest

from joins.plan.errors import SourceError
from joins.plan.formats import JSON_FORMAT
from joins.plan.plan import (
    DeltaTableSource,
    Dimension,
    Field,
    FileFormat,
    FileSource,
    KafkaOptions,
    MysqlCdcSource,
    SharedSource,
    SnapshotEvidence,
    TopicSource,
)
from joins.plan.types import SqlType, TypeName
from service.config import Settings
from service.jobs.submit.preflight import check_staleness

KAFKA = KafkaOptions("nowhere:9092", "users")
DELTA = DeltaTableSource("users")
ROWS = TopicSource(KAFKA, JSON_FORMAT)
HEARTBEATS = TopicSource(
    KAFKA, JSON_FORMAT, SnapshotEvidence(settle_ms=3_000, heartbeat_topic="beats")
)
FILES = FileSource("users.csv", FileFormat.CSV)
BOUNDS = {
    "none_is_checked_of_a_table_without_the_option": (DELTA, None, None),
    "the_pause_between_questions_and_commits": (DELTA, 1_100, None),
    "one_millisecond_less": (DELTA, 1_099, "best freshness of 1100 ms"),
    "a_topic": (ROWS, 1_099, "best freshness of 1100 ms"),
    "a_shared_table": (SharedSource("0199", "users", 2), 1_099, "best freshness of 1100 ms"),
    "heartbeats_count_later": (HEARTBEATS, 4_099, "best freshness of 4100 ms"),
    "heartbeats_with_room": (HEARTBEATS, 4_100, None),
    "files_are_always_fresh": (FILES, 1, None),
}


def users(source, bound_ms):
    fields = (Field("id", SqlType(TypeName.BIGINT), nullable=False),)
    return Dimension("users", source, fields, ("id",), max_staleness_ms=bound_ms)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.load(data_dir=tmp_path, freshness_interval_s=1.0, build_trigger_ms=100)


@pytest.mark.parametrize("case", BOUNDS)
def test_a_bound(case, settings):
    source, bound_ms, refusal = BOUNDS[case]
    if refusal is None:
        check_staleness(users(source, bound_ms), settings)
        return
    with pytest.raises(SourceError, match=refusal):
        check_staleness(users(source, bound_ms), settings)


def test_the_answer_of_a_database_is_measured(settings, mariadb):
    login = mariadb.cdc_user, mariadb.cdc_password
    source = MysqlCdcSource(mariadb.host, mariadb.port, *login, "mysql", "t")
    with pytest.raises(SourceError, match=r"answered in [1-9]\d* ms"):
        check_staleness(users(source, 1_100), settings)
    check_staleness(users(source, 600_000), settings)
