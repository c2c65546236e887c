"""The `print` and `blackhole` sinks: for debugging and measurement, nothing durable."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from joins.durable.pins import Pin
from joins.kernels.json.encode import render_objects, render_rows, with_text_times
from joins.kernels.probe.probe import JoinedBatch
from joins.plan.plan import OutputColumn
from joins.worker.probe_task import BatchTask
from joins.worker.row_files import stage_rows
from joins.worker.staging import REPORT_SCHEMA, BatchReport, merge_reports
from joins.worker.work import Work

_LINES = pa.schema([("line", pa.string())])
_LINE = "|"
"""What the text of a line begins with; a report is a JSON object."""


class Lines(Protocol):
    """Where rows are printed, such as a text file."""

    def write(self, text: str, /) -> int:
        """Write a line."""

    def flush(self) -> None:
        """Make the written text readable."""


@dataclass(frozen=True, slots=True)
class _Rendering:
    output: tuple[OutputColumn, ...]
    identifier: str
    are_objects: bool = False

    def __call__(self, batch: JoinedBatch, _: Pin) -> pa.RecordBatch:
        rows = with_text_times(batch.rows, [item.expression.type for item in self.output])
        if self.are_objects:
            lines = render_objects(rows, batch.kinds)
        else:
            lines = render_rows(rows, self.identifier, batch.kinds)
        return pa.record_batch([lines], schema=_LINES)


def _stage_lines(
    batches: Iterator[pa.RecordBatch], *, task: BatchTask, pin: Pin, encode: _Rendering | None
) -> Iterator[pa.RecordBatch]:
    for batch in stage_rows(batches, task=task, pin=pin, encode=encode, schema=_LINES):
        lines = pc.binary_join_element_wise(pa.scalar(_LINE), batch.column(0), "")
        yield pa.record_batch([pc.coalesce(lines, batch.column(1))], schema=REPORT_SCHEMA)


class ConsoleSinkWriter:
    """Prints each row as `+I[…]`, or its own kind, to `stream`; a retried batch may print twice.

    A preview prints only the first `row_limit` rows, each as a JSON object after its kind.
    """

    shows_early = False

    def __init__(self, stream: Lines, identifier: str | None, row_limit: int | None = None) -> None:
        self._stream = stream
        self._left = row_limit
        self._identifier = identifier
        self._is_preview = row_limit is not None
        self._lines: list[str] = []

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        encode = self._encode(task.kernel.output)
        texts = work.texts(partial(_stage_lines, task=task, pin=pin, encode=encode))
        self._lines = [text[len(_LINE) :] for text in texts if text.startswith(_LINE)]
        return merge_reports(text for text in texts if not text.startswith(_LINE))

    def _encode(self, output: tuple[OutputColumn, ...]) -> _Rendering | None:
        if self._identifier is None:
            return None
        return _Rendering(output, self._identifier, self._is_preview)

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        lines = self._lines[: self._left]
        for line in lines:
            self._stream.write(line + "\n")
        self._stream.flush()
        self._lines = []
        if self._left is not None:
            self._left -= len(lines)

    def accept(self) -> None:
        """Does nothing: a stream of text is never another one."""

    def newest_batch(self) -> None:
        """None: nothing is durable."""

    def committed_counts(self, pin: Pin) -> None:
        """None: nothing is durable; the batch runs again."""


class ConsoleLetterWriter:
    """Prints the rows of replayed dead letters; a retried replay may print twice."""

    def __init__(
        self, stream: Lines, identifier: str | None, output: tuple[OutputColumn, ...]
    ) -> None:
        self._stream = stream
        self._encode = None if identifier is None else _Rendering(output, identifier)

    def committed(self, number: int) -> None:
        """None: nothing is durable; the replay runs again."""

    def write(
        self,
        parts: Iterable[tuple[JoinedBatch, Pin]],
        number: int,
        epoch: int,
        outcome: Callable[[], Mapping[str, Any]],
    ) -> None:
        for batch, pin in parts:
            if self._encode is not None:
                for line in self._encode(batch, pin).column(0).to_pylist():
                    self._stream.write(line + "\n")
        self._stream.flush()
