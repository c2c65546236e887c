"""`maintenance`: after a thousand batches and millions of changes, all is as small and as quick.

The product's tables, index and maintenance are driven directly, without Spark, Kafka and database:
a live job would take an hour for as many batches. Each batch commits changes, advances the index,
joins 10,000 records under it and commits their rows; every twenty batches comes a round of
maintenance that keeps the versions of the last fifty (`SLUICE_REPLAY_BATCHES=50`) and takes the
changelog for folded. The output keeps its files and its log for good, so they do not count; what a
commit to one takes with the log of a day is measured by itself, in CPU time, for it waits for the
disk, too.
"""

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import (
    INTERNAL_TABLE_PROPERTIES,
    OWN_TABLE_PROPERTIES,
    DeltaLog,
    create_table,
)
from joins.dimension.index_keeper import IndexKeeper
from joins.dimension.maintenance import (
    ChangelogMaintenance,
    DimensionKey,
    OutputMaintenance,
    Upkeep,
    UpkeepSettings,
)
from joins.durable.pins import Pin
from joins.kernels.index.index import build
from joins.kernels.probe.files import FileOrigin, ParquetStage, StagedFile
from joins.kernels.probe.probe import DEAD_LETTERS as LETTER_SCHEMA
from joins.kernels.probe.probe import index_spec, kernel_spec
from joins.plan.plan import Dimension, DimensionJoin, Field, JoinType, KeyPair
from joins.plan.types import Column
from joins.worker.probe_task import OUTPUT, IndexPlace, ProbeTask, stage_delta
from joins.worker.staging import merge_reports
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.memory_bench import SCHEMA, snapshot_rows, user_rows
from tests.bench.place import Place
from tests.support.probe import BIGINT, PLAN, STRING

CHANGES, DIM, BATCHES = 5_000_000, 1_000_000, 1_000
EARLY = 100
_RECORDS = 10_000
_EVERY, _LEASED, _WINDOW = 20, 50, 40
_EPOCH, _APP = 1, "bench"
SHORT, LONG = 100, 86_400  # entries in the log: one batch a second for a day
_COMMITS = 20
_ROWS = pa.schema([("id", pa.int64())])


_USERS = Dimension(
    "users",
    PLAN.dimensions[0].source,
    (Field("user_id", BIGINT, nullable=False), Field("gender", STRING), Field("name", STRING)),
    ("user_id",),
)
_PLAN = replace(
    PLAN,
    dimensions=(_USERS,),
    joins=(
        DimensionJoin(
            "u", "users", JoinType.LEFT, (KeyPair(Column("c", "user_id", BIGINT), "user_id"),)
        ),
    ),
)


@dataclass(frozen=True)
class Sample:
    """The state behind a batch, and how long the last ones took.

    Attributes:
        files: of changelog, its log and the index, most in the last batches.
        log_bytes: of the changelog's log, most in the last batches.
    """

    files: float
    log_bytes: float
    batch_ms: float
    index_build_s: float


class Tables:
    """The tables of a job and what keeps them small."""

    def __init__(self, home: Path, dim: int) -> None:
        self._home, self._dim = home, dim
        self._spec = index_spec(_PLAN, _PLAN.joins[0], 1)
        self._kernel = kernel_spec(_PLAN)
        schemas = {
            "changelog": SCHEMA,
            "output": self._kernel.output_schema,
            "dead_letters": LETTER_SCHEMA,
        }
        for name, schema in schemas.items():
            ours = name == "changelog"
            properties = INTERNAL_TABLE_PROPERTIES if ours else OWN_TABLE_PROPERTIES
            create_table(home / name, schema, properties=properties)
        self._logs = {name: DeltaLog(home / name, f"{_APP}:{name}") for name in schemas}
        self._keeper = IndexKeeper(home / "index", (self._spec,), self._logs["changelog"])
        settings = UpkeepSettings()
        self._upkeep = ChangelogMaintenance(
            Upkeep(self._logs["changelog"], _EPOCH, settings), DimensionKey(("user_id",), 1)
        )
        self._others = [
            OutputMaintenance(Upkeep(self._logs[name], _EPOCH, settings))
            for name in ("output", "dead_letters")
        ]
        self._offset = 0
        self._commit(0, snapshot_rows(dim))

    def _commit(self, number: int, rows: Iterable[pa.RecordBatch]) -> int:
        """Append changelog rows as batch `number`, and let the index follow."""
        log = self._logs["changelog"]
        with ParquetStage(log.path, SCHEMA, FileOrigin(_EPOCH, number, 0, 0)) as stage:
            for batch in rows:
                stage.write(batch)
                self._offset += batch.num_rows
            staged = stage.finish()
        assert staged is not None
        version = log.commit(number, _EPOCH, (staged,), {"batch": number})
        self._keeper.prepare(version)
        return version

    def batch(self, number: int, changes: int) -> float:
        """One batch of changes and one of records; its milliseconds."""
        ids = 1 + (number * changes + np.arange(changes)) * 104_729 % self._dim
        rows = user_rows(np.unique(ids), "u", pos=number, offset=self._offset)
        records = self._records(number)
        began = time.perf_counter()
        version = self._commit(number, [rows])
        self._join(number, version, records)
        return (time.perf_counter() - began) * 1_000

    def _records(self, number: int) -> pa.RecordBatch:
        first = number * _RECORDS
        users = (1 + n * 7919 % self._dim for n in range(first, first + _RECORDS))
        columns = {
            "value": pa.array([b'{"user_id":%d}' % user for user in users], pa.binary()),
            "partition": pa.repeat(pa.scalar(0, pa.int32()), _RECORDS),
            "offset": pa.array(range(first, first + _RECORDS), pa.int64()),
            "timestamp": pa.repeat(pa.scalar(0, pa.timestamp("us", tz="UTC")), _RECORDS),
        }
        return pa.RecordBatch.from_pydict(columns)

    def _join(self, number: int, version: int, records: pa.RecordBatch) -> None:
        place = IndexPlace("users", self._home / "index", self._spec)
        dead = self._logs["dead_letters"]
        task = ProbeTask(self._kernel, {"u": place}, dead.path, _EPOCH)
        ends = {0: (number + 1) * _RECORDS}
        pin = Pin(number, "clicks", {0: number * _RECORDS}, ends, {"users": version}, 0, _EPOCH)
        output = self._logs["output"]
        (told,) = stage_delta(iter([records]), task=task, pin=pin, output=output.shared)
        report = merge_reports(told.column(0).to_pylist())
        assert report.counts["matched"] == _RECORDS, report.counts
        dead.commit(number, _EPOCH, (), {})
        output.commit(number, _EPOCH, report.files[OUTPUT], {})

    def maintain(self) -> None:
        """A round of maintenance, as a runner does it now and then."""
        newest = self._logs["changelog"].version()
        self._upkeep.run(max(0, newest - _LEASED), newest)
        for other in self._others:
            other.run()
        self._keeper.prune(None)

    def files(self) -> int:
        roots = (self._home / "changelog", self._home / "index")
        return sum(path.is_file() for root in roots for path in root.rglob("*"))

    def log_bytes(self) -> int:
        """Bytes of the changelog's log."""
        log = self._home / "changelog" / "_delta_log"
        return sum(path.stat().st_size for path in log.iterdir() if path.is_file())

    def index_build_s(self, scratch: Path) -> float:
        """Seconds to build the index of the newest version from the changelog alone."""
        log = self._logs["changelog"]
        version = log.version()
        began = time.perf_counter()
        tables = log.files.read_files(log.files.files_at(version))
        build(scratch, version, self._spec, (b for t in tables for b in t.to_batches()))
        return time.perf_counter() - began


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """Behind the last batch against behind the hundredth; each run has tables of its own."""
    changes, dim = sizes.records or CHANGES, sizes.dim or DIM
    batches = min(BATCHES, max(2 * EARLY, changes // 500))
    runs = [_run(place, dim, changes // batches, batches) for _ in range(sizes.runs)]
    size = f"{batches:,} batches, {changes:,} changes, {dim:,} rows"
    full = batches >= BATCHES and changes >= CHANGES and dim >= DIM
    short, long = (_commits_cpu_ms(place, entries, sizes.runs) for entries in (SHORT, LONG))
    told = {
        "files": ("files", "files of changelog, its log and index"),
        "log_bytes": ("bytes", "the changelog's log"),
        "index_build_s": ("s", "index built anew from the changelog"),
        "batch_ms": ("ms", "batch of changes, index and 10,000 records"),
    }
    return [
        Measure(
            f"{what}, behind batch {batches:,} against behind batch {EARLY}",
            unit,
            size,
            full,
            [getattr(late, name) for _, late in runs],
            [getattr(early, name) for early, _ in runs],
            Bar(Sense.RATIO_AT_MOST, 1.2),
        )
        for name, (unit, what) in told.items()
    ] + [
        Measure(
            f"CPU of a commit to an output whose log has {LONG:,} entries against {SHORT:,}",
            "ms",
            f"{LONG:,} entries",
            LONG >= 86_400,
            long,
            short,
            Bar(Sense.RATIO_AT_MOST, 1.2),
        )
    ]


def _commits_cpu_ms(place: Place, entries: int, runs: int) -> list[float]:
    """Commits of one file behind so many others; the log's older entries differ in nothing."""
    root = place.new("long-log")
    create_table(root, _ROWS)
    log = DeltaLog(root, _APP, Appends(_ROWS))
    log.commit(0, _EPOCH, [_staged(root)], {})
    entry = log.versions.entries.path(1).read_bytes()
    name = log.files.files_at(1)[0].name.encode()
    for version in range(2, entries):
        log.versions.entries.path(version).write_bytes(
            entry.replace(name, b"%d-%s" % (version, name))
        )
    log = DeltaLog(root, _APP, Appends(_ROWS))
    log.upkeep.make_checkpoint(log.version())
    found = [_commit_cpu_ms(root, log, run * _COMMITS) for run in range(runs)]
    place.say(f"log of {entries:,} entries: {median(found):.2f} ms of CPU a commit")
    return found


def _commit_cpu_ms(root: Path, log: DeltaLog, after: int) -> float:
    times = []
    for batch in range(after + 1, after + _COMMITS + 1):
        staged = _staged(root)
        began = time.process_time()
        log.commit(batch, _EPOCH, [staged], {})
        times.append((time.process_time() - began) * 1_000)
    return median(times)


def _staged(root: Path) -> StagedFile:
    with ParquetStage(root, _ROWS, FileOrigin(_EPOCH, 0, 0, 0)) as stage:
        stage.write(pa.RecordBatch.from_pydict({"id": [1]}, _ROWS))
        staged = stage.finish()
    assert staged is not None
    return staged


def _run(place: Place, dim: int, changes: int, batches: int) -> tuple[Sample, Sample]:
    tables = Tables(place.new("maintained"), dim)
    window: deque[tuple[float, float, float]] = deque(maxlen=_WINDOW)
    samples = []
    for number in range(1, batches + 1):
        took_ms = tables.batch(number, changes)
        window.append((tables.files(), tables.log_bytes(), took_ms))
        if number % _EVERY == 0:
            tables.maintain()
        if number in (EARLY, batches):
            files, log_bytes, times = zip(*window, strict=True)
            built_s = tables.index_build_s(place.new("built"))
            samples.append(Sample(max(files), max(log_bytes), median(times), built_s))
            place.say(f"batch {number}: {samples[-1]}")
    early, late = samples
    return early, late
