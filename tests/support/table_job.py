"""A job directory with real Delta tables and an output, made without Spark, Kafka or a database."""

import itertools
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from joins.adapters.delta.log import DeltaLog, create_table
from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.durable.pins import Pin, PinStore, pin_json
from joins.kernels.probe.files import StagedFile
from joins.kernels.probe.probe import DEAD_LETTERS, kernel_spec
from joins.plan.plan import JoinPlan
from joins.plan.types import arrow_type
from service.config import Settings
from service.jobs.store import plan_codec
from service.sql.planner.planner import plan_script
from tests.support.changelog import SCHEMA, stage

APP = "sluice:{job}:incarnation"
_META = [item for item in SCHEMA if item.name.startswith("_")]
SCRIPT = """
CREATE TABLE users (user_id BIGINT, name STRING, PRIMARY KEY (user_id) NOT ENFORCED)
WITH ('connector'='mysql-cdc', 'hostname'='127.0.0.1', 'port'='3306', 'username'='cdc',
      'password'='${secret:shop}', 'database-name'='shop', 'table-name'='users',
      'changelog.partitions'='1');
CREATE TABLE prices (country STRING, item BIGINT, price DECIMAL(10, 2), weight DOUBLE, small FLOAT,
      made DATE, opens TIME(6), seen TIMESTAMP(6), changed TIMESTAMP_LTZ(6), raw BYTES, ok BOOLEAN,
      PRIMARY KEY (country, item) NOT ENFORCED)
WITH ('connector'='mysql-cdc', 'hostname'='127.0.0.1', 'port'='3306', 'username'='cdc',
      'password'='${secret:shop}', 'database-name'='shop', 'table-name'='prices',
      'changelog.partitions'='1');
CREATE TABLE clicks (user_id BIGINT, item BIGINT, proctime AS PROCTIME())
WITH ('connector'='kafka', 'topic'='clicks', 'properties.bootstrap.servers'='127.0.0.1:9092',
      'format'='json', 'scan.startup.mode'='earliest-offset');
CREATE TABLE enriched (user_id BIGINT, name STRING, price DECIMAL(10, 2)) WITH (%s);
INSERT INTO enriched SELECT c.user_id, u.name, p.price FROM clicks AS c
LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id
LEFT JOIN prices FOR SYSTEM_TIME AS OF c.proctime AS p ON c.item = p.item AND p.country = 'DE';
"""
DELTA = "'connector'='delta', 'path'='enriched'"
PRICE = {
    "country": "DE",
    "item": 7,
    "price": Decimal("12.50"),
    "weight": 0.1,
    "small": 0.1,
    "made": date(2026, 11, 21),
    "opens": (6 * 3600 + 7 * 60 + 8) * 1_000_000 + 9,
    "seen": datetime(2026, 11, 21, 6, 7, 8, 9),  # noqa: DTZ001 (a TIMESTAMP has no zone)
    "changed": datetime(2026, 11, 21, 6, 7, 8, 9, tzinfo=UTC),
    "raw": b"\xff\x00",
    "ok": True,
}


def script(sink: str = DELTA) -> str:
    return SCRIPT % sink


class TableJob:
    """The directory of one job; fills its changelogs and its output commit by commit."""

    def __init__(self, data_dir: Path, job_id: str, plan: JoinPlan | None = None) -> None:
        self.directory = data_dir / "jobs" / job_id
        self.output = data_dir / "warehouse" / "enriched"
        self.plan = plan_script(script()).plan if plan is None else plan
        self._app = APP.format(job=job_id)
        self._numbers = itertools.count()

    def write(self, data_dir: Path) -> "TableJob":
        """The files that a control plane would have written."""
        self.directory.mkdir(parents=True)
        (self.directory / "plan.json").write_bytes(plan_codec.dump(self.plan))
        Settings.load(data_dir=data_dir).hand_over(self.directory)
        return self

    def start(self) -> "TableJob":
        """The files and tables that a runner would have made."""
        meta = JobMeta("incarnation", 1, "clicks", "topic-id", {0: 0}, {})
        Checkpoint(self.directory / "checkpoint").write_meta(meta)
        for dimension in self.plan.dimensions:
            create_table(self.log(dimension.name).path, self.schema(dimension.name))
        create_table(self.output, kernel_spec(self.plan).output_schema)
        create_table(self.directory / "dead_letters", DEAD_LETTERS)
        return self

    def log(self, name: str) -> DeltaLog:
        return DeltaLog(self.directory / "tables" / name / "changelog", f"{self._app}:{name}")

    def schema(self, name: str) -> pa.Schema:
        fields = next(d.fields for d in self.plan.dimensions if d.name == name)
        return pa.schema([*((f.name, arrow_type(f.type)) for f in fields), *_META])

    def change(self, name: str, *rows: Mapping[str, Any]) -> int:
        """Commit rows (`place` has the columns of the source); returns the version."""
        log = self.log(name)
        batch = pa.RecordBatch.from_pylist(list(rows), schema=self.schema(name))
        number = next(self._numbers)
        return log.commit(number, 1, [stage(log.path, batch, number=number)], {})

    def batch(self, number: int, *rows: Mapping[str, Any], **versions: int) -> Pin:
        """Pin and commit a batch with these output rows."""
        pin = Pin(number, "clicks", {0: number * 10}, {0: number * 10 + 10}, versions, 1_000, 1)
        PinStore(self.directory / "checkpoint" / "pins").create(pin)
        told = {**pin_json(pin), "counts": {"joined": len(rows)}}
        rows_told = [
            {"_topic": "clicks", "_partition": 0, "_offset": number * 10 + at, "_batch": number}
            | {"_dimension_versions": pin.versions_text(), **row}
            for at, row in enumerate(rows)
        ]
        DeltaLog(self.output, self._app).commit(number, 1, self.staged(number, rows_told), told)
        return pin

    def staged(self, number: int, rows: list[dict[str, Any]]) -> list[StagedFile]:
        schema = kernel_spec(self.plan).output_schema
        if not rows:
            return []
        batch = pa.RecordBatch.from_pylist(rows, schema=schema)
        return [stage(self.output, batch, number=number)]


def place(op: str, pos: int, offset: int, *, generation: int = 1) -> dict[str, Any]:
    return {
        "_op": op,
        "_epoch": 0,
        "_file": 1,
        "_pos": pos,
        "_row": 0,
        "_source_ts": 1_000 + pos,
        "_partition": 0,
        "_offset": offset,
        "_generation": generation,
    }


def user(user_id: int | None, name: str | None, op: str, pos: int, offset: int) -> dict[str, Any]:
    return {"user_id": user_id, "name": name, **place(op, pos, offset)}


def fill(job: TableJob) -> None:
    """Users at versions 1 to 3, a price, and one batch."""
    job.start()
    job.change("users", *(user(key, f"user {key}", "r", 5, key) for key in (1, 2, 3)))
    job.change("users", user(None, None, "w", 9, 4))
    job.change("users", user(1, "renamed", "u", 10, 5), user(2, None, "d", 11, 6))
    job.change("prices", {**PRICE, **place("r", 1, 1)})
    row = {"user_id": 1, "name": "user 1", "price": Decimal("12.50")}
    job.batch(0, row, users=2, prices=1)
