"""A source whose address moves to another server of its replication: by GTIDs, or by a copy."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.joins.source.test_snapshot import TABLE, Place, Source, coordinator_of, running
from tests.support.replicas import Replicas, replicas
from tests.support.sql import new_schema, run_sql
from tests.support.wait import wait_until


@pytest.fixture
def servers(database_home: Path, tmp_path: Path) -> Iterator[Replicas]:
    with replicas(tmp_path, database_home) as made:
        yield made


@dataclass(frozen=True)
class Address:
    """What a job knows of a server: its address, which may move."""

    port: int
    cdc_user: str
    cdc_password: str


@contextmanager
def source_of(servers: Replicas, place: Place) -> Iterator[Source]:
    """A source that follows `t` by the address; its rows are compared with the primary's."""
    with new_schema(servers.primary, *TABLE) as schema:
        try:
            with running(place_of(servers, place), schema) as source:
                source.database = servers.primary
                source.wait_same(1, deadline_s=120)
                yield source
        finally:
            if servers.answering is not servers.primary:
                servers.primary.start()  # the schema is dropped there


def place_of(servers: Replicas, place: Place) -> Place:
    primary = servers.primary
    address = Address(servers.address, primary.cdc_user, primary.cdc_password)
    return replace(place, database=address)


@pytest.fixture
def place(spark, mariadb, kafka, tmp_path) -> Place:
    return Place(spark, mariadb, kafka, tmp_path / "source")


def test_a_failover_to_a_server_with_every_transaction_needs_no_copy(servers, place):
    with source_of(servers, place) as source:
        source.sql(
            "SET SESSION gtid_domain_id = 7",
            "UPDATE t SET v = 'of another domain' WHERE id % 5 = 0",
        )
        run_sql(servers.replica, "FLUSH BINARY LOGS")
        source.sql("DELETE FROM t WHERE id > 900", "UPDATE t SET v = 'before' WHERE id % 3 = 0")
        servers.wait_replicated()
        source.wait_same(1)
        servers.fail_over()
        source.database = servers.replica
        source.sql(
            "INSERT INTO t (id, v, other) SELECT seq, 'after', -seq FROM seq_5000_to_5500",
            "UPDATE t SET v = CONCAT(v, '!') WHERE id % 2 = 0",
            "DELETE FROM t WHERE id % 7 = 0",
        )
        source.wait_same(1, deadline_s=120)
        state = source.coordinator.state
        assert (state.epoch, state.server.server_id) == (1, 2)
        assert source.coordinator.copied_because is None
        wait_until(lambda: source.stalls.first() is None, deadline_s=60)


@pytest.mark.parametrize("is_purged", [False, True], ids=["kept", "purged"])
def test_what_a_job_has_not_read_is_read_on_the_other_server_if_it_is_there(
    servers, place, is_purged
):
    with source_of(servers, place) as source:
        source.coordinator.stop()
        source.sql("UPDATE t SET v = 'meanwhile' WHERE id <= 500", "DELETE FROM t WHERE id = 1")
        servers.wait_replicated()
        if is_purged:
            servers.purge_replica()
        servers.fail_over()
        source.database = servers.replica
        source.sql("UPDATE t SET v = 'after' WHERE id > 990")
        coordinator, stalls = coordinator_of(place_of(servers, place), source.schema, source.topic)
        source.coordinator, source.stalls = coordinator, stalls
        coordinator.start()
        try:
            source.wait_same(2 if is_purged else 1, deadline_s=120)
            reason = coordinator.copied_because or ""
            assert ("it has purged transaction 0-1-" in reason) == is_purged
        finally:
            coordinator.stop()


def test_a_server_without_a_transaction_that_was_applied_is_copied(servers, place):
    with source_of(servers, place) as source:
        servers.wait_replicated()
        run_sql(servers.replica, "STOP SLAVE")
        source.sql("UPDATE t SET v = 'lost' WHERE id <= 500")
        source.wait_same(1)
        servers.fail_over()
        source.database = servers.replica
        source.sql("UPDATE t SET v = 'kept' WHERE id > 990")
        source.wait_same(2, deadline_s=120)
        assert "it has not transaction 0-1-" in source.coordinator.copied_because
