"""The program is replaced under a living runner, which starts processes by older names."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.control_plane import ROOT
from tests.support.rig import running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name

pytestmark = pytest.mark.experiment
BINLOG, DAEMON = "joins.adapters.mysql.binlog", "joins.worker.daemon"
OLDER: dict[str, str] = {}


def install(place: Path, names: Mapping[str, str]) -> None:
    """Put the program's packages into `place`, where it starts processes by other `names`."""
    shutil.rmtree(place, ignore_errors=True)
    for package in ("joins", "service", "watermark"):
        shutil.copytree(ROOT / package, place / package)
    for path in place.rglob("*.py"):
        text = before = path.read_text()
        for now, then in names.items():
            text = text.replace(f'"{now}"', f'"{then}"')
        if text != before:
            path.write_text(text)


def test_a_runner_goes_on_when_its_program_is_replaced(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    """Its daemon of workers and its reader of the binlog are killed behind the upgrade."""
    servers, path = kafka.bootstrap_servers, unique_name("living")
    topic, program = create_topic(servers), tmp_path / "program"
    install(program, OLDER)
    runner = ("env", f"PYTHONPATH={program}", sys.executable, "-m", "service.jobs.runner")
    with (
        running_rig(tmp_path / "data", kafka, mariadb, runner_command=runner) as rig,
        new_schema(mariadb, USERS, fill_users(100)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        produce(servers, topic, [click(n, n) for n in range(1, 11)])
        job.wait_output(path, 10)
        pid = job.status()["runner"]["pid"]
        install(program, {})
        for process in job.children(DAEMON):  # the daemon and the workers that it has forked
            process.kill()
        job.kill_child(BINLOG)
        run_sql(mariadb, "UPDATE user_info SET name = 'after' WHERE user_id = 1", schema=schema)
        job.wait_for(lambda s: s["dimensions"][0]["streamed_records"] >= 1, "the change arrives")
        produce(servers, topic, [click(1, n) for n in range(11, 21)])
        rows = job.wait_output(path, 20)
        assert {row["name"] for row in rows if row["item_id"] > 10} == {"after"}
        assert job.children(BINLOG), "it was started again, by the name that the runner knows"
        assert job.children(DAEMON)
        status = job.status()
        assert (status["runner"]["pid"], status["epoch"]) == (pid, 1)
