"""The worker's half of a batch without a JVM: what a record costs, phase by phase.

Each round times all phases and the reference in turn, on the same records. The reference is what no
join can do without: one block parse of the records and one Parquet file of the rows, by pyarrow
alone. Times are CPU seconds of this process, so that other work on the machine does not count.

What a larger record costs is measured by its parse alone, against pyarrow's reader over the same
bytes: members that nobody asks for are text and nested values by halves.
"""

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.parquet as pq

from joins.durable.pins import Pin
from joins.kernels.index.index import DimensionIndex, IndexSpec, advance, build
from joins.kernels.json.rows import parse
from joins.kernels.probe.files import FileOrigin, ParquetStage
from joins.kernels.probe.probe import (
    DEAD_LETTERS,
    BatchContext,
    JoinedBatch,
    ProbeKernelSpec,
    index_spec,
    join_batch,
    kernel_spec,
)
from joins.plan.formats import RecordKey
from joins.plan.plan import (
    DeltaSink,
    Dimension,
    DimensionJoin,
    Field,
    JoinPlan,
    JoinType,
    KafkaOptions,
    KafkaSink,
    KafkaSource,
    KeyPair,
    MysqlCdcSource,
    OutputColumn,
    ProbeSource,
)
from joins.plan.types import Column, SqlType, TypeName, arrow_type
from joins.sinks.kafka import RecordEncoding
from tests.support.poison import BIG, KINDS

RECORDS = 500_000
DIMENSIONS = (1_000_000, 5_000_000)
BATCH_ROWS = (10_000, 65_536)  # the second is what the session tells Spark to deliver
ROUNDS = 5
COMMITS, CHANGES = 120, 1_000
BAD_SHARE = 0.01
SIZES = (90, 1_000, 10_000)
SIZED_BYTES = 20_000_000
BAR = 0.4  # of the reference's speed, for the join with its staged file
POISON_BAR = 0.6
SEGMENTS_BAR = 1.2

BIGINT, INT, STRING = SqlType(TypeName.BIGINT), SqlType(TypeName.INT), SqlType(TypeName.STRING)
DOUBLE, BOOLEAN = SqlType(TypeName.DOUBLE), SqlType(TypeName.BOOLEAN)
ORIGIN = FileOrigin(1, 1, 0, 0)
CONTEXT = BatchContext(1_700_000_000_000, 7, (("items", 1),))
PIN = Pin(7, "clicks", {0: 0}, {0: RECORDS}, {"items": 1}, CONTEXT.proctime_ms, 1)
ITEMS = Dimension(
    "items",
    MysqlCdcSource("localhost", 3306, "cdc", "${secret:shop}", "shop", "items"),
    (Field("id", BIGINT, nullable=False), Field("name", STRING), Field("category_id", INT)),
    ("id",),
)
CLICK = (Field("user_id", BIGINT), Field("item_id", BIGINT))
VISIT = (
    Field("user_id", BIGINT),
    Field("url", STRING),
    Field("score", DOUBLE),
    Field("active", BOOLEAN),
)


TAKEN = (("name", STRING), ("category_id", INT))


def plan_of(fields: Sequence[Field], key: str) -> JoinPlan:
    """All columns of the probe and the name and category of the item that `key` names."""
    output = [OutputColumn(item.name, Column("c", item.name, item.type)) for item in fields]
    output += [OutputColumn(name, Column("i", name, kind)) for name, kind in TAKEN]
    pair = KeyPair(Column("c", key, BIGINT), "id")
    return JoinPlan(
        name="kernel",
        sql="",
        probe=ProbeSource(
            alias="c",
            table="clicks",
            source=KafkaSource(KafkaOptions("localhost:9092", "clicks")),
            fields=tuple(fields),
        ),
        dimensions=(ITEMS,),
        joins=(DimensionJoin("i", "items", JoinType.INNER, (pair,)),),
        where=None,
        output=tuple(output),
        sink_table="enriched",
        sink=DeltaSink("enriched"),
    )


PLAN = plan_of(CLICK, "item_id")


def items(ids: np.ndarray, *, op: str, first: int) -> pa.RecordBatch:
    """Changelog rows of `ids`, at the positions from `first` on."""
    count = len(ids)
    numbers = pa.array(ids)
    columns: dict[str, Any] = {
        "id": numbers,
        "name": pc.binary_join_element_wise(f"item {op} ", numbers.cast(pa.string()), ""),
        "category_id": pa.array(ids % 1_000, pa.int32()),
        "_op": pa.repeat(pa.scalar(op), count),
        "_pos": pa.array(np.arange(first, first + count)),
        "_offset": pa.array(np.arange(first, first + count)),
    }
    constant = {"_epoch": 0, "_file": 1, "_row": 0, "_partition": 0, "_generation": 1}
    for name, value in constant.items():
        kind = pa.int64() if name in {"_file", "_row"} else pa.int32()
        columns[name] = pa.repeat(pa.scalar(value, kind), count)
    return pa.RecordBatch.from_pydict(columns)


def built(directory: Path, rows: int, spec: IndexSpec) -> DimensionIndex:
    """An index of `rows` items, as after a snapshot: one segment."""
    steps = range(0, rows, 250_000)
    batches = (items(np.arange(at, min(at + 250_000, rows)), op="r", first=at) for at in steps)
    build(directory, 1, spec, batches)
    return DimensionIndex.attach(directory, 1, spec)


def advanced(directory: Path, rows: int, spec: IndexSpec) -> DimensionIndex:
    """The same index `COMMITS` commits of `CHANGES` changes later."""
    rng = np.random.default_rng(5)
    for commit in range(COMMITS):
        ids = rng.choice(rows, CHANGES, replace=False)
        changed = items(ids, op="u", first=rows + commit * CHANGES)
        advance(directory, commit + 1, commit + 2, spec, [changed])
    return DimensionIndex.attach(directory, COMMITS + 1, spec)


def records_of(values: pa.Array) -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "value": values,
            "partition": pa.repeat(pa.scalar(0, pa.int32()), count),
            "offset": pa.array(np.arange(count)),
            "timestamp": pa.repeat(pa.scalar(0, pa.timestamp("us", tz="UTC")), count),
        }
    )


def clicks(count: int, rows: int) -> pa.RecordBatch:
    """Records with two numbers, each of an item that is there."""
    rng = np.random.default_rng(3)
    users, ids = (
        pa.array(rng.integers(0, limit, count)).cast(pa.string()) for limit in (10**7, rows)
    )
    text = pc.binary_join_element_wise('{"user_id":', users, ',"item_id":', ids, "}", "")
    return records_of(text.cast(pa.binary()))


def visits(count: int, rows: int, *, bad_share: float) -> pa.RecordBatch:
    """Records of four kinds of columns, of which some are no good in all ways that we know."""
    rng = random.Random(3)
    poison = [
        kind.value for kind in KINDS if kind.verdict == "bad" and len(kind.value or b"") < BIG
    ]
    values: list[bytes | None] = [
        b'{"user_id":%d,"url":"/items/%d","score":%.3f,"active":true}'
        % (rng.randrange(rows), rng.randrange(10**6), rng.random())
        for _ in range(count)
    ]
    for at in rng.sample(range(count), round(count * bad_share)):
        values[at] = rng.choice(poison)
    return records_of(pa.array(values, pa.binary()))


def larger(record_bytes: int) -> pa.Array:
    """Visits of about so many bytes, most of them in members that no table has."""
    rest = (record_bytes - 90) // 2
    text = "".join(f'"text_{at}":"{"plain text " * 20}",' for at in range(rest // 233))
    nested = '{"tags":["a","b"],"x":1.5,"is":true},' * (rest // 37)
    members = f'{text}"nested":[{nested}null],' if rest > 0 else ""
    values = [
        f'{{"user_id":{at},{members}"url":"/items/{at % 1000}","score":{at / 7:.3f},"active":true}}'
        for at in range(SIZED_BYTES // record_bytes)
    ]
    return pa.array(values, pa.string()).cast(pa.binary())


@dataclass(frozen=True, slots=True)
class Work:
    """Batches of records, the index that they are joined with, and where the rows go."""

    spec: ProbeKernelSpec
    batches: tuple[pa.RecordBatch, ...]
    index: DimensionIndex
    root: Path

    def joined(self) -> list[JoinedBatch]:
        alias = self.spec.joins[0].alias
        return [join_batch(self.spec, each, {alias: self.index}, CONTEXT) for each in self.batches]


def streamed(records: pa.RecordBatch, batch_rows: int) -> tuple[pa.RecordBatch, ...]:
    """`records` in batches with buffers of their own, as they come out of Spark's stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema) as writer:
        writer.write_table(pa.Table.from_batches([records]), max_chunksize=batch_rows)
    return tuple(pa.ipc.open_stream(sink.getvalue()))


def phases(work: Work) -> dict[str, float]:
    """CPU seconds of each phase; `rest` is what the join does beside parse, lookup and take."""
    fields = pa.schema([(f.name, arrow_type(f.type)) for f in work.spec.fields])
    key = work.spec.joins[0].keys[0].probe.name
    seconds = {}
    seconds["parse"], parsed = timed(
        lambda: [parse(each.column("value"), fields).batch for each in work.batches]
    )
    seconds["lookup"], found = timed(
        lambda: [work.index.lookup([each.column(key)]) for each in parsed]
    )
    names = [name for name, _ in TAKEN]
    seconds["take"], _ = timed(lambda: [work.index.take(rows, names) for _, rows in found])
    seconds["join"], joined = timed(work.joined)
    seconds["rest"] = seconds["join"] - sum(seconds[each] for each in ("parse", "lookup", "take"))
    seconds["write"], _ = timed(lambda: staged(work, joined))
    sink = KafkaSink(KafkaOptions("", ""), key=RecordKey(("user_id",)))
    encode = RecordEncoding.of(sink, work.spec.output)
    plain = [replace(each, rows=each.rows.select(names_of(work))) for each in joined]
    seconds["encode"], _ = timed(lambda: [encode(each, PIN) for each in plain])
    seconds["reference"], _ = timed(lambda: least(work, fields, joined))
    return seconds


def names_of(work: Work) -> list[str]:
    return [column.name for column in work.spec.output]


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = action()
    return time.process_time() - started, result


def staged(work: Work, joined: Sequence[JoinedBatch]) -> None:
    """As `stage_delta` does it."""
    with (
        ParquetStage(work.root, work.spec.output_schema, ORIGIN) as rows,
        ParquetStage(work.root, DEAD_LETTERS, ORIGIN) as dead,
    ):
        for batch in joined:
            rows.write(batch.rows)
            dead.write(batch.dead_letters)
        files = [rows.finish(), dead.finish()]
    for file in files:
        if file is not None:
            (work.root / file.path).unlink()


def least(work: Work, fields: pa.Schema, joined: Sequence[JoinedBatch]) -> None:
    """The reference: one block parse of each batch, and one file of the rows that came out."""
    for batch in work.batches:
        read(batch.column("value"), fields)
    path = work.root / "reference.parquet"
    pq.write_table(pa.Table.from_batches([each.rows for each in joined]), path)
    path.unlink()


def read(values: pa.Array, fields: pa.Schema) -> None:
    lines = b"\n".join(values.to_pylist())
    pj.read_json(
        pa.BufferReader(lines),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=pj.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore"),
    )


def sized(record_bytes: int, rounds: int) -> dict[str, Any]:
    """CPU seconds that the parse of a million records takes, and pyarrow's reader."""
    fields = pa.schema([(item.name, arrow_type(item.type)) for item in VISIT])
    values = larger(record_bytes)
    actions = (lambda: parse(values, fields), lambda: read(values, fields))
    seconds = [[timed(action)[0] for action in actions] for _ in range(rounds + 1)][1:]
    taken, reference = (
        statistics.median(each) / len(values) * 1e6 for each in zip(*seconds, strict=True)
    )
    return {
        "part": "parse",
        "bytes": round(values.nbytes / len(values)),
        "value": round(taken, 3),
        "unit": "CPU s/M",
        "reference": round(reference, 3),
    }


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    records: int = RECORDS
    dimensions: tuple[int, ...] = DIMENSIONS
    rounds: int = ROUNDS


def throughput(work: Work, rounds: int) -> dict[str, Any]:
    """Medians over the rounds, the first of which only warms up."""
    taken = [phases(work) for _ in range(rounds + 1)][1:]
    count = sum(batch.num_rows for batch in work.batches)
    seconds = {name: statistics.median(each[name] for each in taken) for name in taken[0]}
    ratios = [each["reference"] / (each["join"] + each["write"]) for each in taken]
    return {
        "rows_per_batch": work.batches[0].num_rows,
        "dimension": work.index.num_rows,
        "value": round(count / (seconds["join"] + seconds["write"]) / 1e6, 3),
        "unit": "M rec/s",
        "reference": round(count / seconds["reference"] / 1e6, 3),
        "ratio": round(statistics.median(ratios), 3),
        "spread": [round(min(ratios), 3), round(max(ratios), 3)],
        "ns_per_record": {name: round(each / count * 1e9) for name, each in seconds.items()},
    }


def poisoned(index: DimensionIndex, root: Path, size: Size) -> dict[str, Any]:
    """The speed of join and files with bad records among the good, as a share of without."""
    plan = plan_of(VISIT, "user_id")
    clean, bad = (
        Work(
            kernel_spec(plan),
            streamed(visits(size.records // 2, index.num_rows, bad_share=share), BATCH_ROWS[1]),
            index,
            root,
        )
        for share in (0.0, BAD_SHARE)
    )
    ratios = []
    for _ in range(size.rounds + 1):
        of_clean, of_bad = (
            timed(lambda work=work: staged(work, work.joined()))[0] for work in (clean, bad)
        )
        ratios.append(of_clean / of_bad)
    return shares("poison", ratios[1:], POISON_BAR)


def commits(index: DimensionIndex, root: Path, size: Size) -> dict[str, Any]:
    """A batch of 10,000 after `COMMITS` commits, as a share of its time before them."""
    later = advanced(root, index.num_rows, index_spec(PLAN, PLAN.joins[0], 1))
    batches = streamed(clicks(BATCH_ROWS[0], index.num_rows), BATCH_ROWS[0])
    before, after = (Work(kernel_spec(PLAN), batches, each, root) for each in (index, later))
    ratios = []
    for _ in range(10 * (size.rounds + 1)):
        of_before, of_after = (
            timed(lambda work=work: staged(work, work.joined()))[0] for work in (before, after)
        )
        ratios.append(of_after / of_before)
    return {**shares("commits", ratios[10:], SEGMENTS_BAR), "segments": len(later._segments)}


def shares(name: str, ratios: Sequence[float], bar: float) -> dict[str, Any]:
    return {
        "part": name,
        "ratio": round(statistics.median(ratios), 3),
        "spread": [round(min(ratios), 3), round(max(ratios), 3)],
        "bar": bar,
    }


def run(size: Size | None = None) -> dict[str, Any]:
    """All parts; the value is that of the largest dimension in batches of the session's size."""
    size = size or Size()
    spec = index_spec(PLAN, PLAN.joins[0], 1)
    parts: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as directory:
        for rows in size.dimensions:
            root = Path(directory, str(rows))
            index = built(root, rows, spec)
            records = clicks(size.records, rows)
            for batch_rows in BATCH_ROWS:
                work = Work(kernel_spec(PLAN), streamed(records, batch_rows), index, root)
                parts.append(throughput(work, size.rounds))
        poison = poisoned(index, root, size)
        after = commits(index, root, size)
    main = parts[-1]
    sizes = [sized(each, size.rounds) for each in SIZES]
    return {
        "bench": "kernel",
        **{name: main[name] for name in ("value", "unit", "reference", "ratio")},
        "bar": BAR,
        "ok": main["ratio"] >= BAR
        and poison["ratio"] >= POISON_BAR
        and after["ratio"] <= SEGMENTS_BAR,
        "parts": [*parts, *sizes, poison, after],
    }
