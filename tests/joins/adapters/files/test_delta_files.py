"""One version of a Delta table as the files before a topic."""

from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from joins.adapters.files.feed import FileFeedSession
from joins.adapters.files.listing import FileFeedConfig
from joins.durable.codec import as_json, from_json
from joins.plan.errors import SourceError, SourceUnavailableError
from tests.support.feeds import Silent
from tests.support.file_feeds import FileFeed, file_feed

NAMES = {1: "a", 2: "b", 3: "c"}


def rows(names):
    return pa.table({"id": pa.array(names, pa.int64()), "name": list(names.values())})


def history(path, version):
    config = replace(file_feed(path).config, source=None, version=version)
    assert from_json(FileFeedConfig, as_json(config)) == config
    return FileFeed(config)


def sent(source):
    """The newest name of each key; no watermark makes the rows visible."""
    topic = source.sink.topic
    topic.watermark(FileFeedSession(source.config, Silent(), 0).state.place, 1)
    return {row["id"]: row["name"] for row in source.rows()}


@pytest.fixture
def table(tmp_path):
    """Three versions: rows in two files, one of them deleted, one more."""
    path = tmp_path / "t"
    write_deltalake(path, rows({1: "a", 2: "b"}))
    write_deltalake(path, rows({3: "c"}), mode="append")
    DeltaTable(path).delete("id = 2")
    write_deltalake(path, rows({4: "d"}), mode="append")
    return path


VERSIONS = {
    0: {1: "a", 2: "b"},
    1: {1: "a", 2: "b", 3: "c"},
    2: {1: "a", 3: "c"},
    3: {1: "a", 3: "c", 4: "d"},
}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_rows_of_a_version_are_read_whatever_follows(table, version):
    source = history(table, version)
    assert FileFeedSession(source.config, Silent(), 0).copy(source.sink)
    assert sent(source) == VERSIONS[version]


@pytest.mark.parametrize("takes", [0, 1, 2])
def test_an_interrupted_reading_of_a_version_goes_on(table, takes):
    source = history(table, 1)
    source.sink.topic.takes = takes
    with pytest.raises(SourceUnavailableError):
        FileFeedSession(source.config, Silent(), 0).copy(source.sink)
    source.sink.topic.takes = None
    write_deltalake(table, rows({9: "later"}), mode="append")
    session = FileFeedSession(source.config, Silent(), 0)
    assert session.copy(source.sink)
    assert (session.state.generation, session.state.rows) == (1, 3)
    assert sent(source) == VERSIONS[1]


def test_a_version_whose_files_are_gone_says_what_to_do(table):
    source = history(table, 0)
    DeltaTable(table).vacuum(0, dry_run=False, enforce_retention_duration=False)
    for _ in range(2):
        with pytest.raises(SourceError, match="removed before it was read") as caught:
            FileFeedSession(source.config, Silent(), 0).copy(source.sink)
        assert "a later 'history.version' than 0" in caught.value.hint


def test_a_version_that_is_not_there_is_refused(table):
    source = history(table, 7)
    with pytest.raises(SourceError, match="at version 7"):
        FileFeedSession(source.config, Silent(), 0)
