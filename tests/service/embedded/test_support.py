"""The helpers of the other tests, on the shared services."""

import os
from pathlib import Path

import pytest

from joins.kernels.local_files import give_lock_up
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.process import claim_directory
from tests.support.sql import new_schema, run_sql
from tests.support.topics import consume_json, create_topic, end_offsets, produce
from tests.support.wait import wait_until


def test_records_come_back_in_the_order_they_were_sent(kafka: KafkaBroker) -> None:
    topic = create_topic(kafka.bootstrap_servers, partitions=2)
    values = [{"n": number} for number in range(100)]
    written = produce(kafka.bootstrap_servers, topic, values, partition=1)
    assert written == [(1, offset) for offset in range(100)]
    assert end_offsets(kafka.bootstrap_servers, topic) == {0: 0, 1: 100}
    assert consume_json(kafka.bootstrap_servers, topic) == values
    assert consume_json(kafka.bootstrap_servers, topic, count=7) == values[:7]


def test_a_schema_is_there_and_then_gone(mariadb: MariaDb) -> None:
    with new_schema(mariadb, "CREATE TABLE t (id INT PRIMARY KEY)") as schema:
        assert run_sql(mariadb, "INSERT INTO t VALUES (1)", "SELECT * FROM t", schema=schema) == [
            (1,)
        ]
    assert run_sql(mariadb, f"SHOW DATABASES LIKE '{schema}'") == []


def test_a_directory_is_free_for_the_next_start_though_a_child_has_the_descriptor_for_now(
    tmp_path: Path,
) -> None:
    claim = claim_directory(tmp_path, what="a server")
    copy = os.dup(claim)  # a child between fork and exec has one
    try:
        give_lock_up(claim)
        give_lock_up(claim_directory(tmp_path, what="its next start"))
    finally:
        os.close(copy)


def test_waiting_returns_the_answer_or_names_what_did_not_come() -> None:
    answers = iter([0, None, "there"])
    assert wait_until(lambda: next(answers), deadline_s=5) == "there"
    with pytest.raises(TimeoutError, match="the train not met"):
        wait_until(lambda: False, deadline_s=0, what="the train")
