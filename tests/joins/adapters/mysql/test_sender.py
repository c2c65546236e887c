"""The changelog's sender when Kafka does not take records: what landed is always a prefix."""

import threading
from dataclasses import replace

import pytest

from joins.adapters.kafka.changelog_producer import ChangelogProducer
from joins.adapters.mysql.binlog import BinlogProtocol, BinlogSession
from joins.adapters.mysql.events.transactions import Begin, Boundary, FileOpened
from joins.adapters.mysql.sender import AcknowledgedBoundary, ChangelogSender
from joins.durable.checkpoint import read_document
from joins.durable.dead_rows import RESERVED_BYTES, DeadRows, left_out, warning_of
from joins.plan.errors import SourceUnavailableError
from service.embedded.broker import KafkaBroker
from tests.joins.adapters.mysql.test_binlog import captured_table
from tests.support.topics import end_offsets
from tests.support.wait import wait_until


@pytest.mark.experiment
def test_a_sender_that_gave_up_sends_nothing_later(
    tmp_path, mariadb, java, broker_jars, monkeypatch
):
    monkeypatch.setattr(ChangelogProducer, "silence_s", 2.0)
    with (
        KafkaBroker(tmp_path / "kafka", java, broker_jars) as broker,
        captured_table(mariadb, broker.bootstrap_servers, tmp_path) as (_, config),
    ):
        before = set(threading.enumerate())  # the first server that starts here leaves a thread
        sender = ChangelogSender(config)
        sender.begin(1, 4)
        sender.watermark(config.low.position, 1)
        broker.stop()
        sender._append("d", 0, [1, None], None)
        with pytest.raises(SourceUnavailableError):
            sender.flush()
        sender.close()
        assert set(threading.enumerate()) <= before
        broker.start()
        ends = end_offsets(broker.bootstrap_servers, config.kafka.topic)
        assert set(ends.values()) == {1}


def test_no_boundary_is_stored_behind_rows_that_kafka_has_not_taken(
    tmp_path, mariadb, kafka, monkeypatch
):
    """Also at the end of the session, whose last act is to store one."""

    def refuse(_):
        raise SourceUnavailableError("Kafka is away", hint="Start it.")

    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (_, config):
        place = config.low.position
        for is_taken in (False, True):
            sender = ChangelogSender(config)
            session = BinlogSession(config, BinlogProtocol(), sender)
            session._take(FileOpened(place.file, 1))
            session._take(Begin(place.file, place.pos))
            sender._append("d", 0, [1, None], None)
            session._take(Boundary(place.file, place.pos + 100))
            with monkeypatch.context() as patch:
                if not is_taken:
                    patch.setattr(sender._producer, "send", refuse)
                    with pytest.raises(SourceUnavailableError):
                        sender.flush()
            session._settle()
            sender.close()
            stored = read_document(config.offset_file, AcknowledgedBoundary).position
            assert stored == replace(place, pos=place.pos + 100 * is_taken)


def test_a_row_waits_for_company_but_not_long(tmp_path, mariadb, kafka):
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (_, config):
        sender = ChangelogSender(config)
        assert sender.due_in_s() is None, "nothing waits"
        sender.begin(1, 4)
        sender._append("d", 0, [1, None], None)
        assert sender.due_in_s() <= 0.05
        wait_until(lambda: sender.due_in_s() == 0.0, what="the row is due")
        sender.flush()
        assert sender.due_in_s() is None
        sender._append("d", 0, [2, None], None)
        assert sender.due_in_s() <= 0.2
        sender.close()


def test_a_row_that_no_message_can_hold_is_left_out_by_its_key(tmp_path, mariadb, kafka):
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (_, config):
        copied = tmp_path / "copied.dead.json"
        DeadRows(copied, 1, 1_000).update([('{"id":1}', 3_000), ('{"id":2}', 2_000)])
        small = replace(config, most_bytes=RESERVED_BYTES + 1_000, copied_dead_rows=copied)
        files = (copied, small.dead_rows_file)
        sender = ChangelogSender(small)
        try:
            assert left_out(files, 1).rows == {'{"id":1}': 3_000, '{"id":2}': 2_000}
            sender.begin(1, 4)
            sender._append("c", 0, None, [1, "fits"])
            sender._append("c", 0, None, [7, "x" * 2_000])
            sender._append("u", 0, [1, "y" * 2_000], [1, "fits again"])
            sender.flush()
            warning = warning_of("shop.t", files, 1)
            first = left_out(files, 1)
            sender._append("u", 0, [7, "x" * 2_000], [7, "z" * 2_001])
            sender._append("u", 0, [7, "z" * 2_001], [7, "fits"])
            sender._append("c", 0, None, [8, "w" * 2_000])
            sender.flush()
        finally:
            sender.close()
        assert warning["type"] == "rows-too-large"
        assert '2 rows are missing in the copy of table "shop.t"' in warning["message"]
        assert 'with key {"id":7}' in warning["message"]
        assert "SLUICE_CHANGELOG_MAX_MESSAGE_BYTES" in warning["hint"]
        assert list(first.rows) == ['{"id":2}', '{"id":7}'], "a change replaces what was copied"
        now = left_out(files, 1)
        assert list(now.rows) == ['{"id":2}', '{"id":8}'], "a row that fits again is there"
        assert warning_of("shop.t", files, 2) is None, "another copy begins without"


def test_a_key_counts_once_and_beyond_the_listed_ones_by_number(tmp_path):
    file = tmp_path / "t.dead.json"
    dead = DeadRows(file, 1, 100)
    for _ in range(2):  # sent again after a crash
        dead.update((f'{{"id":{n}}}', 200) for n in range(5))
        dead = DeadRows(file, 1, 100)
    assert len(left_out([file], 1).rows) == 5
    dead.update((str(n), 200) for n in range(1_200))
    assert (len(left_out([file], 1).rows), left_out([file], 1).unlisted) == (1_000, 205)


def test_the_limit_that_the_warning_proposes_is_enough_for_every_row_it_knows(tmp_path):
    file = tmp_path / "t.dead.json"
    DeadRows(file, 1, 1_000).update([('{"id":1}', 9_000_000), ('{"id":2}', 3_000)])
    warning = warning_of("shop.t", [file], 1)
    assert 'the last one with key {"id":2}: 3000 bytes' in warning["message"]
    assert f"above {9_000_000 + (1 << 17)} and" in warning["hint"]


def test_rows_that_are_missing_are_told_also_if_their_keys_are_too_long_to_list(tmp_path):
    file = tmp_path / "t.dead.json"
    DeadRows(file, 1, 1_000).update([("k" * 20_000, 3_000)])
    warning = warning_of("shop.t", [file], 1)
    assert warning["message"].startswith('1 row is missing in the copy of table "shop.t"')
    assert "SLUICE_CHANGELOG_MAX_MESSAGE_BYTES" in warning["hint"]
