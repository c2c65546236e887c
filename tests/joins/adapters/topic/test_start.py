"""Where a topic starts behind its history: by offsets or a time, and never behind a gap."""

import json
from dataclasses import replace

import pytest

from joins.adapters.topic.feed_state import TopicFeedConfig
from joins.adapters.topic.start import require_topic, start_of
from joins.durable.codec import as_json, from_json
from joins.plan.errors import SourceError
from joins.plan.formats import JSON_FORMAT
from joins.plan.plan import (
    DeltaTableSource,
    Field,
    FileFormat,
    FileSource,
    KafkaOptions,
    StartupMode,
    TopicHistory,
    TopicSource,
)
from joins.plan.types import SqlType, TypeName

AT = Field("at", SqlType(TypeName.TIMESTAMP_LTZ, 3))
KAFKA = KafkaOptions("b:1", "t")
FILES = FileSource("users", FileFormat.PARQUET)
EARLIEST = TopicHistory(FILES)
AT_TIME = TopicHistory(FILES, StartupMode.TIMESTAMP, startup_timestamp_ms=5)
AT_MAXIMUM = TopicHistory(FILES, StartupMode.TIMESTAMP, startup_column="at")
ENDS = {0: 90, 1: 90}


def at(*offsets):
    return EARLIEST.starting_at(dict(enumerate(offsets)))


# history, oldest offsets, first offsets at the time → the start
STARTS = {
    "the_oldest_records": (EARLIEST, {0: 7, 1: 0}, None, {0: 7, 1: 0}),
    "offsets_that_are_there": (at(7, 20), {0: 7, 1: 0}, None, {0: 7, 1: 20}),
    "offsets_at_the_end": (at(90, 90), {0: 90, 1: 0}, None, {0: 90, 1: 90}),
    "a_time_behind_older_records": (AT_TIME, {0: 7, 1: 0}, {0: 8, 1: 0}, {0: 8, 1: 0}),
    "a_time_behind_all_records": (AT_TIME, {0: 7, 1: 0}, {0: 90, 1: 90}, {0: 90, 1: 90}),
    "the_maximum_of_a_column": (AT_MAXIMUM, {0: 7, 1: 0}, {0: 30, 1: 0}, {0: 30, 1: 0}),
    "a_whole_topic_behind_files_without_a_time": (AT_MAXIMUM, {0: 0, 1: 0}, None, {0: 0, 1: 0}),
}


@pytest.mark.parametrize(("history", "begins", "found", "start"), STARTS.values(), ids=STARTS)
def test_a_topic_starts_behind_its_history(history, begins, found, start):
    assert start_of("t", history, begins, ENDS, found) == start


# history, oldest offsets, first offsets at the time → what the error says
REFUSED = {
    "offsets_that_retention_has_taken": (
        at(7, 20),
        {0: 12, 1: 0},
        None,
        '^5 records between the history and topic "t" are gone .partition 0.: the history ends at '
        "offset 7, and the oldest record is 12",
    ),
    "offsets_that_are_gone_in_all_partitions": (
        at(7, 20),
        {0: 12, 1: 1_020},
        None,
        "^1,005 records .*partition 0, 1",
    ),
    "a_time_before_the_oldest_record": (
        AT_TIME,
        {0: 12, 1: 0},
        {0: 12, 1: 0},
        "^up to 12 records .*partition 0.*no record before the history's time is left",
    ),
    "a_time_in_an_empty_partition": (AT_TIME, {0: 90, 1: 0}, {0: 90, 1: 0}, "^up to 90 records"),
    "a_maximum_before_the_oldest_record": (
        AT_MAXIMUM,
        {0: 12, 1: 0},
        {0: 12, 1: 0},
        "^up to 12 records",
    ),
    "a_part_of_a_topic_behind_files_without_a_time": (
        AT_MAXIMUM,
        {0: 12, 1: 0},
        None,
        "^12 records",
    ),
    "a_partition_without_an_offset": (at(7), {0: 7, 1: 0}, None, r"partitions \[0\] of topic"),
    "a_partition_that_is_not_there": (at(7, 0, 0), {0: 7, 1: 0}, None, r"\[0, 1, 2\] of topic"),
    "offsets_behind_the_end": (at(7, 91), {0: 7, 1: 0}, None, "offset 91 .* ends at 90"),
}


@pytest.mark.parametrize(("history", "begins", "found", "message"), REFUSED.values(), ids=REFUSED)
def test_a_start_that_may_lack_records_is_refused(history, begins, found, message):
    with pytest.raises(SourceError, match=message) as caught:
        start_of("t", history, begins, ENDS, found)
    assert caught.value.hint


def test_a_gap_says_whether_newer_files_are_enough():
    for history, expected in ((AT_TIME, "submit the job again"), (AT_MAXIMUM, "again by itself")):
        with pytest.raises(SourceError) as caught:
            start_of("t", history, {0: 12}, {0: 90}, {0: 12})
        assert expected in caught.value.hint


@pytest.mark.parametrize(
    "history",
    [
        replace(AT_MAXIMUM, files=FileSource("u", FileFormat.CSV, (("field-delimiter", ";"),))),
        replace(at(5, 7), files=DeltaTableSource("s3://b/u", store=(("k", "v"),)), version=3),
    ],
)
def test_a_process_gets_the_history_as_it_is_declared(history, tmp_path):
    source = TopicSource(KAFKA, JSON_FORMAT, changelog_partitions=2, topic_id="a", history=history)
    config = TopicFeedConfig(
        source=source,
        fields=(AT,),
        primary_key=("at",),
        kafka=KAFKA,
        state_file=tmp_path / "source.json",
        decisions_file=tmp_path / "decisions.json",
        history_path=tmp_path / "users",
    )
    told_by_json = from_json(TopicFeedConfig, json.loads(json.dumps(as_json(config))))
    assert told_by_json == config
    assert (config.files.version, config.files.newest_of) == (
        history.version,
        history.startup_column,
    )


def test_a_topic_that_was_created_again_has_no_history():
    source = TopicSource(KAFKA, JSON_FORMAT, topic_id="a", history=EARLIEST)
    require_topic(source, "a")
    with pytest.raises(SourceError, match='topic "t" has id b, expected a'):
        require_topic(source, "b")
