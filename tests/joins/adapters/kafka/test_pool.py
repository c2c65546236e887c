"""Connections that are kept between two pieces of work: used again, kept apart, closed in time."""

import psutil
import pytest

from joins.adapters.kafka.pool import ClusterPool, OpenClusters
from joins.plan.errors import SourceUnavailableError
from joins.plan.plan import KafkaOptions
from service.embedded.broker import BrokerSettings, KafkaBroker
from tests.support.topics import create_topic
from tests.support.wait import wait_until


@pytest.fixture
def pool():
    made = ClusterPool()
    yield made
    made.close()


def established(servers):
    port = int(servers.rpartition(":")[2])
    held = psutil.Process().net_connections("tcp")
    return {
        one.laddr
        for one in held
        if one.raddr and one.raddr.port == port and one.status == "ESTABLISHED"
    }


@pytest.fixture
def connections(kafka):
    before = established(kafka.bootstrap_servers)
    return lambda: established(kafka.bootstrap_servers) - before


def ask(pool, servers, *properties):
    with OpenClusters(pool) as clusters:
        cluster = clusters.of(KafkaOptions(servers, "t", properties))
        cluster.reach()
        return cluster


def test_the_next_piece_of_work_uses_the_same_connection(kafka, pool, connections):
    first = ask(pool, kafka.bootstrap_servers)
    held = connections()
    assert held
    for _ in range(3):
        assert ask(pool, kafka.bootstrap_servers) is first
        assert connections() == held


def test_two_at_once_have_a_connection_each(kafka, pool):
    with OpenClusters(pool) as one, OpenClusters(pool) as two:
        options = KafkaOptions(kafka.bootstrap_servers, "")
        clusters = one.of(options), two.of(options)
        for cluster in clusters:
            cluster.reach()
        assert clusters[0] is not clusters[1]
    assert len(pool) == 2


def test_other_properties_have_another_connection(kafka, pool):
    plain = ask(pool, kafka.bootstrap_servers)
    assert ask(pool, kafka.bootstrap_servers, ("security.protocol", "PLAINTEXT")) is not plain
    assert len(pool) == 2


def test_a_connection_with_a_password_is_closed_with_the_work(kafka, pool, connections):
    options = KafkaOptions(kafka.bootstrap_servers, "", (("sasl.password", "x"),))
    with OpenClusters(pool) as clusters:
        cluster = clusters.of(options)
        cluster.reach()  # (the broker asks nobody for a password)
        assert cluster.connection.is_open
    assert (cluster.connection.is_open, len(pool)) == (False, 0)
    wait_until(lambda: not connections(), what="the connection is closed")


def test_what_is_idle_is_closed_by_itself(kafka, connections):
    pool = ClusterPool(idle_s=0.2)
    ask(pool, kafka.bootstrap_servers)
    ask(pool, kafka.bootstrap_servers, ("security.protocol", "PLAINTEXT"))
    wait_until(lambda: not connections(), what="connections are closed")
    assert len(pool) == 0
    ask(pool, kafka.bootstrap_servers)
    pool.close()


def test_a_pool_that_is_closed_keeps_nothing(kafka, pool, connections):
    ask(pool, kafka.bootstrap_servers)
    assert connections()
    pool.close()
    wait_until(lambda: not connections(), what="the connection is closed")
    ask(pool, kafka.bootstrap_servers)
    assert len(pool) == 0
    wait_until(lambda: not connections(), what="the connection is closed")


@pytest.mark.experiment
def test_a_kept_connection_whose_broker_has_restarted_is_made_anew(
    tmp_path, java, broker_jars
):
    pool = ClusterPool(idle_s=3600)  # a broker may take long to start
    with KafkaBroker(tmp_path, java, broker_jars, BrokerSettings(heap="256m")) as broker:
        servers = broker.bootstrap_servers
        topic = create_topic(servers)
        first = ask(pool, servers)
        broker.stop()
        broker.start()
        with OpenClusters(pool) as clusters:
            assert clusters.of(KafkaOptions(servers, "")) is first
            assert first.end_offsets(topic) == {0: 0}
        broker.stop()
        with pytest.raises(SourceUnavailableError, match="cannot be reached"):
            ask(pool, servers)
        assert len(pool) == 0
