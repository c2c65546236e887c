"""A small probe: clicks joined with users, of whom an index is at hand."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from joins.dimension.index_keeper import IndexKeeper
from joins.durable.pins import Pin
from joins.kernels.probe.probe import index_spec, kernel_spec
from joins.plan.plan import (
    DeltaSink,
    Dimension,
    DimensionJoin,
    Field,
    JoinPlan,
    JoinType,
    KafkaOptions,
    KafkaSource,
    KeyPair,
    MysqlCdcSource,
    OutputColumn,
    ProbeSource,
    Sink,
)
from joins.plan.types import Column, SqlType, TypeName
from joins.worker.probe_task import IndexPlace, ProbeTask
from tests.support.changelog import Changelog, record

BIGINT, STRING = SqlType(TypeName.BIGINT), SqlType(TypeName.STRING)
USERS = Dimension(
    "users",
    MysqlCdcSource("localhost", 3306, "cdc", "${secret:shop}", "shop", "users"),
    (Field("id", BIGINT, nullable=False), Field("name", STRING)),
    ("id",),
)
PLAN = JoinPlan(
    name="job",
    sql="",
    probe=ProbeSource(
        alias="c",
        table="clicks",
        source=KafkaSource(KafkaOptions("localhost:9092", "clicks")),
        fields=(Field("user_id", BIGINT),),
    ),
    dimensions=(USERS,),
    joins=(
        DimensionJoin(
            "u", "users", JoinType.LEFT, (KeyPair(Column("c", "user_id", BIGINT), "id"),)
        ),
    ),
    where=None,
    output=(
        OutputColumn("user_id", Column("c", "user_id", BIGINT)),
        OutputColumn("name", Column("u", "name", STRING)),
    ),
    sink_table="enriched",
    sink=DeltaSink("enriched"),
)
PIN = Pin(7, "clicks", {0: 100}, {0: 200}, {"users": 1}, 1_700_000_000_000, 2)


def probe_task(directory: Path, sink: Sink | None = None) -> ProbeTask:
    """Users 1 and 2; at version 2 user 1 has another name and user 2 is gone."""
    plan = PLAN if sink is None else replace(PLAN, sink=sink)
    changelog = Changelog(directory / "changelog")
    spec = index_spec(plan, plan.joins[0], 1)
    keeper = IndexKeeper(directory / "index", (spec,), changelog.log)
    keeper.prepare(changelog.commit(record("r", 1, 5, 0), record("r", 2, 5, 1)))
    keeper.prepare(changelog.commit(record("u", 1, 9, 2), record("d", 2, 9, 3, row=1)))
    return ProbeTask(
        kernel=kernel_spec(plan),
        indexes={"u": IndexPlace("users", directory / "index", spec)},
        dead_letters=directory / "dead",
        epoch=2,
    )


def clicks(*values: bytes | None, first: int = 100) -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array(values, pa.binary()),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(first, first + count), pa.int64()),
            "timestamp": pa.array([0] * count, pa.timestamp("us", tz="UTC")),
        }
    )
