"""Files as a source: whatever happens to them, the records say what the table is, or why not."""

import os
from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from joins.adapters.delta.source import check_source_table
from joins.adapters.files import listing
from joins.adapters.files.feed import FileFeedSession
from joins.adapters.files.listing import FileFeedConfig, list_files
from joins.adapters.process.process import SourceProcess
from joins.durable.codec import as_json, from_json
from joins.durable.dead_rows import RESERVED_BYTES, SUFFIX, left_out
from joins.plan.errors import SnapshotNeededError, SourceError, SourceUnavailableError
from joins.plan.plan import COORDINATES, Field, KafkaOptions
from joins.plan.types import SqlType, TypeName
from tests.support.feeds import PARTITIONS, Silent
from tests.support.file_feeds import USER_FIELDS, file_feed, write_json_lines
from tests.support.topics import consume, create_topic
from tests.support.wait import wait_until

NULLABLE = tuple(replace(field, nullable=True) for field in USER_FIELDS)
COORDINATE_NAMES = tuple(field.name for field in COORDINATES)
USERS = [{"id": n, "name": f"n{n}"} for n in range(1, 7)]


@pytest.fixture
def users(tmp_path):
    """Six rows in three files of a directory, one of them below it, beside what does not count."""
    path = tmp_path / "users"
    (path / "more").mkdir(parents=True)
    (path / "_temporary").mkdir()
    write_json_lines(path / "a.json", USERS[:2])
    write_json_lines(path / "b.json", USERS[2:4])
    write_json_lines(path / "more/c.json", USERS[4:])
    for hidden in (".crc", "_SUCCESS", "_temporary/d.json"):
        (path / hidden).write_text("not a row\n")
    return path


def touched(path):
    os.utime(path, ns=(1, 1))


def test_all_rows_of_all_files_are_a_whole_table(users):
    source = file_feed(users)
    source.run()
    assert source.rows() == USERS
    assert source.copy().generation == 1


def test_a_single_file_is_a_table(users):
    source = file_feed(users / "b.json")
    source.run()
    assert (source.rows(), source.copy().generation) == (USERS[2:4], 1)


def test_of_rows_with_one_key_the_last_one_counts(users):
    write_json_lines(users / "b.json", [{"id": 3, "name": "first"}, {"id": 3, "name": "last"}])
    write_json_lines(users / "more/c.json", [{"id": 1, "name": "newest"}])
    source = file_feed(users)
    source.run()
    assert {row["id"]: row["name"] for row in source.rows()} == {1: "newest", 2: "n2", 3: "last"}


def test_of_a_key_whose_last_row_no_message_can_hold_nothing_stays(users):
    large = "x" * 2_000
    write_json_lines(users / "a.json", [{"id": 1, "name": "a"}, {"id": 2, "name": large}])
    write_json_lines(users / "b.json", [{"id": 2, "name": "b"}, {"id": 3, "name": large}])
    write_json_lines(users / "more/c.json", [{"id": 1, "name": large}, {"id": 4, "name": "d"}])
    source = file_feed(users)
    source.sink.most_bytes = RESERVED_BYTES + 1_000
    source.run()
    assert source.rows() == [{"id": 2, "name": "b"}, {"id": 4, "name": "d"}]
    dead = left_out([source.config.state_file.with_suffix(SUFFIX)], 1)
    assert (sorted(dead.rows), dead.most_bytes) == (
        ['{"id":1}', '{"id":3}'],
        RESERVED_BYTES + 1_000,
    )


def test_rows_without_a_key_are_known_by_file_and_row(users):
    same = {"id": 1, "name": None}
    write_json_lines(users / "a.json", [same, same])
    source = file_feed(users, fields=(*NULLABLE, *COORDINATES), key=COORDINATE_NAMES)
    source.sink.topic.takes = 3
    with pytest.raises(SourceUnavailableError):
        source.run()
    source.sink.topic.takes = None
    source.run()
    places = {key: (row["id"], row["name"]) for key, row in source.copy().rows.items()}
    first = {(0, 0): (1, None), (0, 1): (1, None)}
    assert places == first | {
        (file, row): (2 * file + row + 1, f"n{2 * file + row + 1}")
        for file in (1, 2)
        for row in (0, 1)
    }


def test_once_whole_the_files_are_not_looked_at_any_more(users):
    source = file_feed(users)
    source.run()
    (users / "b.json").unlink()
    write_json_lines(users / "a.json", [{"id": 1, "name": "changed"}])
    write_json_lines(users / "e.json", [{"id": 9, "name": "new"}])
    source.run()
    assert (source.rows(), source.copy().generation) == (USERS, 1)


@pytest.mark.parametrize("behind", [0, 4])
def test_files_before_a_topic_begin_behind_its_newest_generation(users, behind):
    source = file_feed(users)
    session = FileFeedSession(source.config, Silent(), behind)
    assert session.copy(source.sink)
    assert (session.state.generation, session.state.is_copied) == (behind + 1, True)
    assert source.copy().generation == 0, "their topic writes the watermark"
    sent = len(source.sink.topic.records)
    assert FileFeedSession(source.config, Silent(), behind).copy(source.sink)
    assert len(source.sink.topic.records) == sent, "they are read once"


CHANGED_HISTORIES = {
    "a_file_is_another_one": (lambda users: touched(users / "a.json"), 0),
    "the_topic_has_begun_a_generation": (lambda users: None, 1),
    "the_topic_has_begun_several": (lambda users: None, 3),
}


@pytest.mark.parametrize(("change", "behind"), CHANGED_HISTORIES.values(), ids=CHANGED_HISTORIES)
def test_files_before_a_topic_are_read_again(users, change, behind):
    source = file_feed(users)
    FileFeedSession(source.config, Silent(), 0).copy(source.sink)
    change(users)
    session = FileFeedSession(source.config, Silent(), behind)
    assert session.copy(source.sink)
    assert session.state.generation == max(behind, 1) + 1
    assert len(source.sink.topic.records) == 2 * len(USERS)


@pytest.mark.parametrize("takes", [None, 1, 3])
def test_the_newest_time_of_all_files_is_known(users, takes):
    times = ["2024-01-01 00:00:00.007Z", None, "2024-01-01 00:00:00.009Z", None, None, None]
    rows = [{**row, "at": at} for row, at in zip(USERS, times, strict=True)]
    for name, part in (("a", rows[:2]), ("b", rows[2:4]), ("more/c", rows[4:])):
        write_json_lines(users / f"{name}.json", part)
    at = Field("at", SqlType(TypeName.TIMESTAMP_LTZ, 3))
    source = file_feed(users, fields=(*NULLABLE, at), key=("id",))
    source = replace(source, config=replace(source.config, newest_of="at"))
    source.sink.topic.takes = takes
    session = FileFeedSession(source.config, Silent(), 0)
    if takes is not None:
        with pytest.raises(SourceUnavailableError):
            session.copy(source.sink)
        source.sink.topic.takes = None
        session = FileFeedSession(source.config, Silent(), 0)
    session.copy(source.sink)
    assert session.state.newest_ms == 1_704_067_200_009


def test_a_file_that_goes_before_it_is_read_is_waited_for(users):
    source = file_feed(users)
    session = FileFeedSession(source.config, Silent())
    (users / "b.json").unlink()
    with pytest.raises(SourceUnavailableError, match=r"b\.json.* was removed before it was read"):
        session.run(source.sink)
    write_json_lines(users / "b.json", USERS[2:4])
    source.run()
    assert (source.rows(), source.copy().generation) == (USERS, 2)


def test_more_files_than_can_be_listed_are_refused(users, monkeypatch):
    monkeypatch.setattr(listing, "_MOST_FILES", 2)
    with pytest.raises(SourceError, match="has more than 2 files"):
        list_files(users)
    (users / "more/c.json").unlink()
    assert len(list_files(users)) == 2


@pytest.mark.parametrize("takes", range(9))
def test_an_interrupted_reading_goes_on_behind_the_last_whole_file(users, takes):
    source = file_feed(users)
    source.sink.topic.takes = takes
    if takes < 8:
        with pytest.raises(SourceUnavailableError):
            source.run()
        assert source.copy().generation == 0
    source.sink.topic.takes = None
    source.run()
    assert (source.rows(), source.copy().generation) == (USERS, 1)


CHANGES = {
    "a_file_has_other_rows": lambda users: write_json_lines(users / "a.json", USERS[:1]),
    "a_file_is_newer": lambda users: touched(users / "a.json"),
    "a_file_is_gone": lambda users: (users / "a.json").unlink(),
    "a_file_is_new": lambda users: write_json_lines(users / "more/z.json", [{"id": 9}]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_files_that_change_before_all_are_read_are_read_anew(users, change):
    source = file_feed(users)
    source.sink.topic.takes = 3
    with pytest.raises(SourceUnavailableError):
        source.run()
    source.sink.topic.takes = None
    change(users)
    source.run()
    fresh = file_feed(users)
    fresh.config.state_file.unlink()
    fresh.run()
    assert (source.rows(), source.copy().generation) == (fresh.rows(), 2)


def test_a_file_that_changes_while_it_is_read_is_read_anew(users):
    source = file_feed(users)
    session = FileFeedSession(source.config, Silent())
    touched(users / "b.json")
    with pytest.raises(SnapshotNeededError, match=r"b\.json.* was changed before the table"):
        session.run(source.sink)
    assert source.copy().generation == 0
    source.run()
    assert (source.rows(), source.copy().generation) == (USERS, 2)


def test_a_bad_row_stalls_without_being_read_again_until_the_file_is_another_one(users):
    write_json_lines(users / "b.json", [USERS[2], {"id": "four", "name": "n4"}])
    source = file_feed(users)
    messages = []
    for _ in range(3):
        with pytest.raises(SourceError) as caught:
            source.run()
        messages.append((caught.value.message, caught.value.hint))
    assert len(set(messages)) == 1
    assert f'line 2 of file "{users / "b.json"}" cannot be taken' in messages[0][0]
    assert "id" in messages[0][0]
    assert len(source.sink.topic.records) == 2, "those of the file before"
    write_json_lines(users / "b.json", USERS[2:4])
    source.run()
    assert (source.rows(), source.copy().generation) == (USERS, 2)


def test_an_error_of_kafka_is_no_refusal_of_the_file(users, monkeypatch):
    source = file_feed(users)
    refusal = SourceError("Kafka refused to write the topic", hint="Grant WRITE on the topic.")

    def refuse(records):
        raise refusal

    with monkeypatch.context() as patched:
        patched.setattr(source.sink, "send", refuse)
        with pytest.raises(SourceError, match=refusal.message):
            source.run()
    source.run()
    assert source.rows() == USERS


def one_link(path, target):
    path.mkdir()
    (path / "a.json").symlink_to(target)


def one_loop(path):
    path.symlink_to(path)


def one_pipe(path):
    path.mkdir()
    os.mkfifo(path / "a.json")


def one_of_no_text(path):
    path.mkdir(exist_ok=True)
    return path / os.fsdecode(b"d\xff.json")


# What is there, what is told, and what the hint says to do.
NO_FILES = {
    "nothing_is_there": (
        lambda path: None,
        "there is no file and no directory",
        lambda path: path.touch(),
    ),
    "the_directory_is_empty": (
        lambda path: path.mkdir(),
        "has no file",
        lambda path: (path / "a.json").touch(),
    ),
    "a_link_leads_out": (
        lambda path: one_link(path, "/etc/hostname"),
        "is a link that leads out of its directory",
        lambda path: ((path / "a.json").unlink(), (path / "a.json").touch()),
    ),
    "a_link_leads_nowhere": (
        lambda path: one_link(path, "b.json"),
        "is a link that leads nowhere",
        lambda path: ((path / "a.json").unlink(), (path / "b.json").touch()),
    ),
    "a_link_leads_to_a_directory": (
        lambda path: one_link(path, ".."),
        "is a link to a directory",
        lambda path: ((path / "a.json").unlink(), (path / "a.json").touch()),
    ),
    "it_is_a_pipe": (
        os.mkfifo,
        "is not a regular file",
        lambda path: (path.unlink(), path.touch()),
    ),
    "one_is_a_pipe": (
        one_pipe,
        "is not a regular file",
        lambda path: ((path / "a.json").unlink(), (path / "a.json").touch()),
    ),
    "a_name_is_no_text": (
        lambda path: one_of_no_text(path).touch(),
        r'/d\\udcff.json" is not UTF-8',
        lambda path: one_of_no_text(path).rename(path / "d.json"),
    ),
    "a_directory_is_not_to_be_listed": (
        one_loop,
        "cannot be listed",
        lambda path: (path.unlink(), path.touch()),
    ),
}


@pytest.mark.parametrize(("make", "message", "mend"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_table_of_files_is_told_with_what_makes_it_one(tmp_path, make, message, mend):
    make(tmp_path / "t")
    with pytest.raises(SourceError, match=message):
        list_files(tmp_path / "t")
    mend(tmp_path / "t")
    assert list_files(tmp_path / "t")


def test_a_delta_table_is_read_by_its_own_connector(tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"id": [1], "name": ["a"]}))
    with pytest.raises(SourceError, match="is a delta table") as caught:
        list_files(tmp_path / "t")
    assert "'connector' = 'delta'" in caught.value.hint
    assert check_source_table(tmp_path / "t", USER_FIELDS, ("id",)).version == 0


def test_a_link_within_the_directory_is_a_file(users):
    (users / "d.json").symlink_to(users / "_temporary/d.json")
    write_json_lines(users / "_temporary/d.json", [{"id": 9, "name": "n9"}])
    source = file_feed(users)
    source.run()
    assert source.rows() == [*USERS, {"id": 9, "name": "n9"}]


def test_the_process_ends_when_the_table_is_whole(users, kafka):
    topic = create_topic(kafka.bootstrap_servers, partitions=PARTITIONS)
    own = KafkaOptions(kafka.bootstrap_servers, topic)
    config = replace(file_feed(users).config, kafka=own)
    assert from_json(FileFeedConfig, as_json(config)) == config
    for _ in range(2):
        events = []
        process = SourceProcess("joins.adapters.files.feed", config, events.append)
        wait_until(lambda process=process: not process.running)
        process.stop()
        assert [e["event"] for e in events][-3:] == ["progress", "watermark", "ended"]
        told = {"generation": 1, "rows": 6, "files_done": 3, "files_total": 3}
        assert events[-3]["state"] == told
    records = consume(kafka.bootstrap_servers, topic)
    assert len(records) == 6 + 2 * 2, "rows once, the watermark of each partition twice"
