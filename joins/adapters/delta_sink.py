"""The `delta` sink: files staged by the workers, committed once under the batch number."""

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
        """Commit the batch's files with its pin in the commit's metadata."""
        self._log.commit(pin.batch, epoch, report.files.get(OUTPUT, ()), pin_json(pin))

    def is_committed(self, pin: Pin) -> bool:
        """Whether the table has the batch's transaction."""
        last = self._log.last_batch()
        return last is not None and last >= pin.batch
