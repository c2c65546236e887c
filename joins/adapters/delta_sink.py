"""The `delta` sink: files staged by the workers, committed once under the batch number."""

from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame

from joins.adapters.delta_log import DeltaLog
from joins.pins import Pin, pin_json
from joins.probe_task import OUTPUT, ProbeTask, stage_delta
from joins.staging import REPORT_DDL, BatchReport, collect_reports


class DeltaSinkWriter:
    """Writes exactly once to one Delta table."""

    def __init__(self, log: DeltaLog) -> None:
        self._log = log

    def run(self, frame: DataFrame, task: ProbeTask, pin: Pin) -> BatchReport:
        """Join on the workers; their files lie in the table's directory, not yet in the table."""
        stage = partial(stage_delta, task=task, pin=pin, output=self._log.path)
        return collect_reports(frame.mapInArrow(stage, REPORT_DDL))

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Commit the batch's files with its pin and its counts in the commit's metadata."""
        metadata = {**pin_json(pin), "counts": dict(report.counts)}
        self._log.commit(pin.batch, epoch, report.files.get(OUTPUT, ()), metadata)

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        """From the metadata of the batch's commit, if the table has its transaction."""
        last = self._log.last_batch()
        if last is None or last < pin.batch:
            return None
        metadata = self._log.batch_metadata(pin.batch) or {}
        return dict(metadata.get("counts", {}))
