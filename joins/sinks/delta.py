"""The `delta` sink: files staged by the workers, committed once under the batch number."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from joins.adapters.delta.log import DeltaLog
from joins.durable.pins import Pin, pin_json
from joins.kernels.probe.files import FileOrigin
from joins.kernels.probe.probe import JoinedBatch
from joins.worker.probe_task import OUTPUT, BatchTask, stage_delta
from joins.worker.staging import BatchReport
from joins.worker.work import Work

# In names of files, where it stands above every batch: only a newer epoch makes them orphans.
_FIRST_REPLAY = 9_000_000_000


class DeltaSinkWriter:
    """Writes exactly once to one Delta table."""

    def __init__(self, log: DeltaLog) -> None:
        self._log = log

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        output = self._log.shared
        stage = partial(stage_delta, task=task, pin=pin, output=output)
        return work.report(stage)

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        metadata = {**pin_json(pin), "counts": dict(report.counts)}
        self._log.commit(pin.batch, epoch, report.files.get(OUTPUT, ()), metadata)

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        """From the metadata of the batch's commit, if the table has its transaction."""
        last = self._log.batches.last_batch()
        if last is None or last < pin.batch:
            return None
        metadata = self._log.batches.batch_metadata(pin.batch) or {}
        return dict(metadata.get("counts", {}))


class DeltaLetterWriter:
    """Writes the rows of replayed dead letters exactly once: one commit a replay.

    Args:
        log: the output under the app id of its own, `<app id>:replay`; the number is the replay's.
        schema: of the output's rows.
    """

    def __init__(self, log: DeltaLog, schema: pa.Schema) -> None:
        self._log = log
        self._schema = schema

    def committed(self, number: int) -> Mapping[str, Any] | None:
        """The outcome of replay `number` if its rows are in the table."""
        last = self._log.batches.last_batch()
        if last is None or last < number:
            return None
        metadata = self._log.batches.batch_metadata(number) or {}
        return metadata.get("outcome")

    def write(
        self,
        parts: Iterable[tuple[JoinedBatch, Pin]],
        number: int,
        epoch: int,
        outcome: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Stage the rows and commit them with `outcome`, which is asked for after the last part.

        Raises:
            FencedError: a newer runner has taken over.
            SinkError: the commit failed.
        """
        origin = FileOrigin(epoch, _FIRST_REPLAY + number, 0, 0)
        with self._log.shared.stage(self._schema, origin) as stage:
            for batch, _ in parts:
                stage.write(batch.rows)
            staged = stage.finish()
        files = () if staged is None else (staged,)
        metadata = {"replay": number, "outcome": dict(outcome())}
        self._log.commit(number, epoch, files, metadata)
