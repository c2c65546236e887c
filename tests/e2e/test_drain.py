"""A backlog is drained in batches of bounded size, and the build side goes on meanwhile."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import pytest

from joins.durable.pins import Pin
from tests.support.beside import beside
from tests.support.bulk import BulkProducer
from tests.support.rig import Rig, RunningJob
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema
from tests.support.topics import create_topic, unique_name

pytestmark = pytest.mark.experiment
BACKLOG, A_REQUEST = 200_000, 400
BATCH_BYTES = 120 << 10
HUGE = {**click(1, BACKLOG), "padding": "x" * (4 * BATCH_BYTES)}


@contextmanager
def changing(rig: Rig, schema: str) -> Iterator[None]:
    """A user is changed again and again."""

    def change(ended: Event) -> None:
        with rig.mariadb.connect(schema) as connection, connection.cursor() as cursor:
            number = 0
            while not ended.wait(0.05):
                number += 1
                cursor.execute("UPDATE user_info SET name = %s WHERE user_id = 1", (f"n{number}",))
                connection.commit()

    with beside(change):
        yield


def pins_of(job: RunningJob) -> list[Pin]:
    store = job.pins
    newest = store.newest()
    assert newest is not None
    found = [store.read(batch) for batch in range(newest.batch + 1)]
    return [pin for pin in found if pin is not None]


def test_a_backlog_is_drained_in_small_batches_while_the_build_side_commits(rig: Rig) -> None:
    servers, path = rig.kafka.bootstrap_servers, unique_name("drain")
    topic = create_topic(servers)
    with BulkProducer(servers, topic) as producer:
        for first in range(0, BACKLOG, A_REQUEST):
            if first == BACKLOG * 3 // 4:
                producer.send({0: [json.dumps(HUGE).encode()]})
            numbers = range(first, first + A_REQUEST)
            producer.send({0: [json.dumps(click(1 + n % 100, n)).encode() for n in numbers]})
    with new_schema(rig.mariadb, USERS, fill_users(100)) as schema, changing(rig, schema):
        sql = enrich_sql(rig, schema, topic, path).replace(
            "'scan.startup.mode'='earliest-offset'",
            "'scan.startup.mode'='earliest-offset', 'scan.bounded.mode'='latest-offset', "
            f"'scan.max-bytes-per-batch'='{BATCH_BYTES}'",
        )
        with rig.job(sql) as job:
            finished = job.wait_state("FINISHED", deadline_s=700)
            pins = pins_of(job)
            newest = rig.get(f"/v1/jobs/{job.id}/batches/{pins[-1].batch}")
    assert finished["probe"]["joined_records"] == BACKLOG + 1
    assert max(pin.records() for pin in pins) * len(json.dumps(click(1, 1))) <= BATCH_BYTES
    versions = [pin.versions["user_info"] for pin in pins]
    assert versions == sorted(versions)
    assert len(set(versions)) >= 4, f"the build side starved: {versions}"
    assert finished["probe"]["freshness_ms"] == newest["freshness_ms"]
    assert newest["freshness_ms"]["user_info"] is not None
