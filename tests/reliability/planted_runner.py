"""The runner with one planted bug: `python -m tests.reliability.planted_runner --plant NAME …`.

A bug is planted by replacing one function of the product in the runner's process, then the runner
runs as it always does. Bugs of the CDC process are planted in that process, which is started as
`--cdc NAME`.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.transaction import AddAction

import joins.worker.index_source
from joins.adapters.delta.log import DeltaLog
from joins.adapters.mysql import binlog as mysql_binlog
from joins.adapters.mysql.sender import ChangelogSender
from joins.adapters.process import process as source_process
from joins.batch.probe_progress import ProbeProgress
from joins.dimension.build_side import BuildSide
from joins.dimension.dimension import DimensionRuntime
from joins.durable.checkpoint import write_json_atomically
from joins.durable.pins import Pin, PinStore
from joins.sinks.delta import DeltaSinkWriter
from joins.worker.probe_task import DEAD_LETTERS, OUTPUT, ProbeTask
from joins.worker.staging import BatchReport
from joins.worker.work import Stage, Work
from service.jobs import runner
from watermark.model import PROCESSING_TIME


@dataclass(frozen=True)
class Kept:
    """What a task reads, without some of it.

    Attributes:
        keep: which rows of a part stay.
    """

    read: Stage
    keep: Callable[[pa.RecordBatch], Any]

    def __call__(self, items: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for records in self.read(items):
            yield records.filter(self.keep(records))


def around_run(change: Callable[[pa.RecordBatch, Pin], Any]) -> None:
    """Let the workers see other records than the batch has: those that `change` keeps."""
    run = DeltaSinkWriter.run

    def planted(self: Any, work: Work, task: ProbeTask, pin: Pin) -> BatchReport:
        assert work.read is not None
        kept = Kept(work.read, partial(change, pin=pin))
        return run(self, replace(work, read=kept), task, pin)

    DeltaSinkWriter.run = planted  # type: ignore[method-assign]  # the planted bug


def skip_pin_write() -> None:
    """A batch's pin is kept in memory only."""
    pins: dict[int, Pin] = {}

    def create(self: PinStore, pin: Pin) -> Pin:
        return pins.setdefault(pin.batch, pin)

    def read(self: PinStore, batch: int) -> Pin | None:
        return pins.get(batch)

    PinStore.create = create  # type: ignore[method-assign]  # the planted bug
    PinStore.read = read  # type: ignore[method-assign]  # the planted bug


def pin_after_commit() -> None:
    """The pin is written when the batch is done instead of before it begins."""
    create, read, record = PinStore.create, PinStore.read, ProbeProgress.record
    waiting: list[tuple[PinStore, Pin]] = []

    def late(self: PinStore, pin: Pin) -> Pin:
        waiting[:] = [(self, pin)]
        return pin

    def of_memory(self: PinStore, batch: int) -> Pin | None:
        held = [pin for _, pin in waiting if pin.batch == batch]
        return held[0] if held else read(self, batch)

    def recorded(self: ProbeProgress, batch: Any) -> None:
        while waiting:
            create(*waiting.pop())
        record(self, batch)

    PinStore.create = late  # type: ignore[method-assign]  # the planted bug
    PinStore.read = of_memory  # type: ignore[method-assign]  # the planted bug
    ProbeProgress.record = recorded  # type: ignore[method-assign]  # the planted bug


def forget_dead_letters() -> None:
    """What could not be read is left out and told nobody."""
    run = DeltaSinkWriter.run

    def planted(self: Any, work: Work, task: ProbeTask, pin: Pin) -> BatchReport:
        report = run(self, work, task, pin)
        report.files.pop(DEAD_LETTERS, None)  # type: ignore[attr-defined]  # a dictionary inside
        return report

    DeltaSinkWriter.run = planted  # type: ignore[method-assign]  # the planted bug


def offsets_before_output() -> None:
    """A batch counts as done when it is begun: after a crash it is not run again."""
    run, counts = DeltaSinkWriter.run, DeltaSinkWriter.committed_counts

    def marker(self: DeltaSinkWriter) -> Path:
        return self._log.path.parent / f"{self._log.path.name}.begun"

    def planted(self: Any, work: Work, task: ProbeTask, pin: Pin) -> BatchReport:
        report = run(self, work, task, pin)
        write_json_atomically(marker(self), {"batch": pin.batch})
        return report

    def known(self: DeltaSinkWriter, pin: Pin) -> Any:
        begun = marker(self)
        if begun.exists() and json.loads(begun.read_bytes())["batch"] >= pin.batch:
            return {}
        return counts(self, pin)

    DeltaSinkWriter.run = planted  # type: ignore[method-assign]  # the planted bug
    DeltaSinkWriter.committed_counts = known  # type: ignore[method-assign]  # the planted bug


def reused_app_id() -> None:
    """The second batch comes under the number of the first, so the table takes it for a repeat."""
    commit = DeltaSinkWriter.commit

    def planted(self: DeltaSinkWriter, report: BatchReport, pin: Pin, epoch: int) -> None:
        if pin.batch != 1:
            commit(self, report, pin, epoch)
            return
        metadata = {"counts": dict(report.counts)}
        self._log.commit(0, epoch, report.files.get(OUTPUT, ()), metadata)

    DeltaSinkWriter.commit = planted  # type: ignore[method-assign]  # the planted bug


def stale_index() -> None:
    """A newer version's index is the older one's."""
    advance = joins.worker.index_source.advance

    def planted(
        directory: Path, before: int, version: int, spec: Any, changes: Iterator[pa.RecordBatch]
    ) -> None:
        del changes
        advance(directory, before, version, spec, iter(()))

    joins.worker.index_source.advance = planted  # the planted bug


def range_off_by_one() -> None:
    """The last record of a partition's range is not read."""

    def others(records: pa.RecordBatch, pin: Pin) -> Any:
        last = pa.array(
            [
                pin.end_offsets[partition] - 1
                for partition in records.column("partition").to_pylist()
            ]
        )
        return pc.not_equal(records.column("offset"), last)

    around_run(others)


def last_partition_dropped() -> None:
    around_run(lambda records, pin: pc.less(records.column("partition"), max(pin.end_offsets)))


def drop_tombstone() -> None:
    """Deleted rows stay."""
    append = BuildSide._append

    def others(records: pa.RecordBatch) -> Any:
        values = records.column("value").cast(pa.string())
        return pc.invert(pc.fill_null(pc.match_substring(values, '"op":"d"'), False))

    def planted(self: Any, ranges: Any, before: Any) -> None:
        if not isinstance(self._reader, Kept):
            self._reader = Kept(self._reader, others)
        append(self, ranges, before)

    BuildSide._append = planted  # type: ignore[method-assign]  # the planted bug


def valve_opens_early() -> None:
    """The first commit of a copy counts as all of it."""
    committed = DimensionRuntime._committed

    def planted(self: DimensionRuntime, batch: Any) -> None:
        committed(self, batch)
        for partition in range(self.places.partitions):
            self._on_watermark(self.dimension.name, partition, PROCESSING_TIME)

    DimensionRuntime._committed = planted  # type: ignore[method-assign]  # the planted bug


def primary_key_change_ignored() -> None:
    """A row that moves to another key stays under the old one too; see `in_cdc`."""
    popen = subprocess.Popen

    def planted(command: Sequence[str], **options: Any) -> "subprocess.Popen[str]":
        bug = "primary-key-change-ignored"
        started = [sys.executable, "-m", "tests.reliability.planted_runner", "--cdc", bug]
        return popen(started if "joins.adapters.mysql.binlog" in command else command, **options)

    source_process.subprocess.Popen = planted  # type: ignore[assignment,misc]  # the planted bug


def in_cdc() -> None:
    def planted(self: ChangelogSender, before: Any, after: Any, at_ms: int) -> None:
        self._append("u", at_ms, before, after)

    ChangelogSender._update = planted  # type: ignore[method-assign]  # the planted bug


def double_commit() -> None:
    """A batch that comes again after a crash is committed again."""
    commit = DeltaSinkWriter.commit

    def blind(self: DeltaSinkWriter, pin: Pin) -> None:
        return None

    def planted(self: DeltaSinkWriter, report: BatchReport, pin: Pin, epoch: int) -> None:
        before = self._log.version()
        commit(self, report, pin, epoch)
        if self._log.version() == before:
            _append(self._log, report)

    DeltaSinkWriter.committed_counts = blind  # type: ignore[method-assign]  # the planted bug
    DeltaSinkWriter.commit = planted  # type: ignore[method-assign]  # the planted bug


def _append(log: DeltaLog, report: BatchReport) -> None:
    table = DeltaTable(str(log.path))
    now_ms = int(time.time() * 1000)
    files = report.files.get(OUTPUT, ())
    actions = [AddAction(f.path, f.size_bytes, {}, now_ms, True, f.stats) for f in files]
    table.create_write_transaction(actions, "append", table.schema())


PLANTS: dict[str, Callable[[], None]] = {
    "skip-pin-write": skip_pin_write,
    "pin-after-commit": pin_after_commit,
    "forget-dead-letters": forget_dead_letters,
    "offsets-before-output": offsets_before_output,
    "reused-app-id": reused_app_id,
    "stale-index": stale_index,
    "range-off-by-one": range_off_by_one,
    "drop-tombstone": drop_tombstone,
    "valve-opens-early": valve_opens_early,
    "primary-key-change-ignored": primary_key_change_ignored,
    "last-partition-dropped": last_partition_dropped,
    "double-commit": double_commit,
}


def main() -> None:
    """Plant the bug, then be the runner or the CDC process."""
    option, name = sys.argv[1], sys.argv[2]
    del sys.argv[1:3]
    if option == "--cdc":
        in_cdc()
        sys.exit(mysql_binlog.main())
    PLANTS[name]()
    runner.main()


if __name__ == "__main__":
    main()
