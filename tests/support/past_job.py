"""A job that has joined batches, made without Spark from the parts that the runner uses."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from kafka import KafkaProducer

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.kafka.cluster import KafkaCluster
from joins.dimension.index_keeper import IndexKeeper
from joins.durable.checkpoint import Checkpoint, JobMeta, write_json_atomically
from joins.durable.pins import Pin, PinStore, pin_json
from joins.kernels.changelog.envelope import CapturedColumn, changelog_schema
from joins.kernels.json.wire import Encoding
from joins.kernels.probe.files import SharedTable
from joins.kernels.probe.probe import DEAD_LETTERS, index_spec, kernel_spec
from joins.lookback.history import OutputPreview
from joins.plan.plan import DeltaSink, Dimension, Field, JoinPlan, KafkaOptions, KafkaSource
from joins.plan.stream_topics import StreamTopics
from joins.plan.types import TypeName
from joins.worker.probe_task import DEAD_LETTERS as LETTERS
from joins.worker.probe_task import OUTPUT, IndexPlace, ProbeTask, stage_delta
from joins.worker.staging import merge_reports
from service.config import Settings
from service.jobs.store import plan_codec
from service.jobs.store.layout import JobLayout
from service.jobs.store.plans import JobPlans
from tests.support.changelog import stage
from tests.support.probe import PLAN
from tests.support.topics import consume, create_topic, produce, unique_name

JOB_ID = "job-1"
INCARNATION = "incarnation"
APP_ID = f"sluice:{JOB_ID}:{INCARNATION}"
EPOCH = 2


@dataclass
class PastJob:
    """Its directory, its topic and its batches; changelogs have one partition."""

    data_dir: Path
    bootstrap: str
    topic: str
    plan: JoinPlan
    offsets: dict[int, int] = field(default_factory=dict)
    next_batch: int = 0

    @property
    def directory(self) -> Path:
        return self.data_dir / "jobs" / JOB_ID

    @property
    def output(self) -> Path:
        return self.data_dir / "warehouse" / "enriched"

    @property
    def pins(self) -> PinStore:
        return PinStore(self.directory / "checkpoint" / "pins")

    def update(self, plan: JoinPlan) -> None:
        """Make `plan` the job's next plan, as the runner's first start under it does."""
        assert JobPlans(JobLayout(self.directory)).add(plan)
        known = {dimension.name for dimension in self.plan.dimensions}
        self.plan = plan
        DeltaLog(self.output, APP_ID).upkeep.grow(
            Appends(kernel_spec(plan).output_schema, grows=True)
        )
        for dimension in plan.dimensions:
            if dimension.name not in known:
                create_table(self.log(dimension.name).path, self.schema(dimension.name))

    def rows(self) -> list[dict[str, Any]]:
        schema = kernel_spec(self.plan).output_schema
        preview = OutputPreview(DeltaLog(self.output, APP_ID), schema)
        return [row for each in preview.newest(100) for row in each.rows.to_pylist()]

    # The build side

    def log(self, dimension: str) -> DeltaLog:
        path = self.directory / "tables" / dimension / "changelog"
        return DeltaLog(path, f"{APP_ID}:{dimension}")

    def schema(self, dimension: str) -> pa.Schema:
        found = next(d for d in self.plan.dimensions if d.name == dimension)
        return changelog_schema(tuple(captured(item) for item in found.fields))

    def change(self, dimension: str, *rows: Mapping[str, Any]) -> int:
        """Commit changelog rows and make their version's index usable; returns the version."""
        log = self.log(dimension)
        last = log.batches.last_batch()
        number = 0 if last is None else last + 1
        batch = pa.RecordBatch.from_pylist(list(rows), schema=self.schema(dimension))
        version = log.commit(number, EPOCH, [stage(log.path, batch, number=number)], {})
        self.keeper(dimension).prepare(version)
        return version

    def keeper(self, dimension: str) -> IndexKeeper:
        specs = {p.spec for p in self.roles().values() if p.dimension == dimension}
        return IndexKeeper(self.directory / "index" / dimension, tuple(specs), self.log(dimension))

    def forget_indexes(self) -> None:
        for manifest in (self.directory / "index").glob("*/*/v*.json"):
            manifest.unlink()

    def fold(self, dimension: str, changelog_version: int) -> None:
        """A commit of `current` that names the changelog version it equals."""
        log = DeltaLog(self.directory / "tables" / dimension / "current", f"{APP_ID}:fold")
        last = log.batches.last_batch()
        number = 0 if last is None else last + 1
        log.commit(number, EPOCH, [], {"sluice.changelog_version": changelog_version})

    # The probe side

    def roles(self) -> dict[str, IndexPlace]:
        index = self.directory / "index"
        return {
            j.alias: IndexPlace(j.dimension, index / j.dimension, index_spec(self.plan, j, 1))
            for j in self.plan.joins
        }

    def produce(self, *values: Any, partition: int = 0) -> None:
        produce(self.bootstrap, self.topic, values, partition=partition)

    def pin(self, **versions: int) -> Pin:
        """Pin everything that is in the topic and in no batch yet, at the newest versions."""
        newest = {d.name: self.log(d.name).version() for d in self.plan.dimensions}
        ends = KafkaCluster(self.plan.probe.source.kafka).end_offsets(self.topic)
        pin = Pin(
            batch=self.next_batch,
            topic=self.topic,
            start_offsets={p: self.offsets.get(p, 0) for p in ends},
            end_offsets=ends,
            versions={**newest, **versions},
            batch_timestamp_ms=1_700_000_000_000 + self.next_batch,
            epoch=EPOCH,
            plan=self.plan.number,
        )
        self.offsets, self.next_batch = dict(ends), self.next_batch + 1
        return self.pins.create(pin)

    def join(self, pin: Pin) -> None:
        """Join and commit the batch as the runner does."""
        task = ProbeTask(
            kernel=kernel_spec(self.plan).reading(StreamTopics.one(self.topic)),
            indexes=self.roles(),
            dead_letters=self.directory / "dead_letters",
            epoch=EPOCH,
        )
        (told,) = stage_delta(
            iter(self.records(pin)), task=task, pin=pin, output=SharedTable(self.output)
        )
        report = merge_reports(told.column(0).to_pylist())
        letters = DeltaLog(task.dead_letters, APP_ID)
        letters.commit(pin.batch, EPOCH, report.files.get(LETTERS, ()), pin_json(pin))
        metadata = {**pin_json(pin), "counts": dict(report.counts)}
        if isinstance(self.plan.sink, DeltaSink):
            log = DeltaLog(self.output, APP_ID)
            log.commit(pin.batch, EPOCH, report.files.get(OUTPUT, ()), metadata)

    def batch(self, *values: Any) -> Pin:
        """Send `values`, pin, join and commit them."""
        self.produce(*values)
        pin = self.pin()
        self.join(pin)
        return pin

    def records(self, pin: Pin) -> list[pa.RecordBatch]:
        found = [
            (r.value, r.partition, r.offset, r.timestamp)
            for r in consume(self.bootstrap, self.topic)
            if pin.start_offsets.get(r.partition, 0) <= r.offset < pin.end_offsets[r.partition]
        ]
        types = (pa.binary(), pa.int32(), pa.int64(), pa.timestamp("ms", tz="UTC"))
        columns = [pa.array([r[at] for r in found], kind) for at, kind in enumerate(types)]
        columns[3] = columns[3].cast(pa.timestamp("us", tz="UTC"))
        names = ["value", "partition", "offset", "timestamp"]
        return [pa.RecordBatch.from_arrays(columns, names=names)] if found else []

    def send(
        self, topic: str, rows: list[tuple[Pin, int, int, dict[str, Any]]], *, aborted: bool = False
    ) -> None:
        """Records of a Kafka sink: (pin, source partition, source offset, row)."""
        own = {"transactional_id": unique_name("txn")} if aborted else {}
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, **own)
        if aborted:
            producer.init_transactions()
            producer.begin_transaction()
        for pin, partition, offset, row in rows:
            headers = {
                "sluice-batch": pin.batch,
                "sluice-src-topic": pin.topic,
                "sluice-src-partition": partition,
                "sluice-src-offset": offset,
                "sluice-dim-version": pin.versions_text(),
            }
            text = json.dumps(row, separators=(",", ":")).encode()
            told = [(name, str(value).encode()) for name, value in headers.items()]
            producer.send(topic, value=text, headers=told)
        producer.flush()
        if aborted:
            producer.abort_transaction()
        producer.close()


def captured(item: Field) -> CapturedColumn:
    whole = item.type.name is TypeName.BIGINT
    return CapturedColumn(item.name, item.type, Encoding.INTEGER if whole else Encoding.STRING)


def past_job(
    data_dir: Path, bootstrap: str, plan: JoinPlan = PLAN, *, partitions: int = 1
) -> PastJob:
    """A job that is open and has joined nothing yet."""
    topic = create_topic(bootstrap, partitions=partitions)
    source = KafkaSource(KafkaOptions(bootstrap, topic))
    dimensions = tuple(one_partition(d) for d in plan.dimensions)
    plan = replace(plan, probe=replace(plan.probe, source=source), dimensions=dimensions)
    job = PastJob(data_dir, bootstrap, topic, plan)
    job.directory.mkdir(parents=True)
    (job.directory / "plan.json").write_bytes(plan_codec.dump(plan))
    Settings.load(data_dir=data_dir).hand_over(job.directory)
    checkpoint = Checkpoint(job.directory / "checkpoint")
    described = KafkaCluster(source.kafka).require(topic)
    changelogs = {d.name: f"sluice.{JOB_ID}.{d.name}" for d in plan.dimensions}
    start = dict.fromkeys(described.partitions, 0)
    checkpoint.write_meta(JobMeta(INCARNATION, EPOCH, topic, described.topic_id, start, changelogs))
    for dimension in plan.dimensions:
        create_table(job.log(dimension.name).path, job.schema(dimension.name))
        create_table(
            job.directory / "tables" / dimension.name / "current", job.schema(dimension.name)
        )
    create_table(job.directory / "dead_letters", DEAD_LETTERS)
    create_table(job.output, kernel_spec(plan).output_schema)
    return job


def one_partition(dimension: Dimension) -> Dimension:
    return replace(dimension, source=replace(dimension.source, changelog_partitions=1))


def open_gate(job: PastJob) -> None:
    write_json_atomically(job.directory / "checkpoint" / "phase.json", {"phase": "JOIN"})
