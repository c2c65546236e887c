"""Inspection of a job's tables: dimensions at a version, their changes, the output.

Questions are JSON objects on standard input, as other users can see a command line with keys.
Answers are JSON values; with `arrow`, the rows are an Arrow stream in base64.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from joins.adapters.delta.log import DeltaLog
from joins.dimension.changelog_scan import VISIBLE, DimensionStates, PageLimit
from joins.dimension.changes import KeyHistory, KeyHistoryPage, KeyVersion, changes_between
from joins.durable.checkpoint import Checkpoint, job_app_id, output_app_id
from joins.durable.pins import PinStore
from joins.kernels.changelog.changes import DELETED
from joins.kernels.expressions.casts import whole
from joins.kernels.json.exact import json_values
from joins.kernels.probe.probe import kernel_spec
from joins.lookback.history import OutputPreview, WrittenRows
from joins.plan.errors import (
    NotReadableError,
    QuestionError,
    UnknownVersionError,
)
from joins.plan.plan import DeltaSink, Dimension, JoinPlan, Sink
from service.config import Settings
from service.jobs.inspect.past import dimension_of, insert_of, plan_of
from service.jobs.inspect.table_answers import (
    PAGE_BYTES,
    Answer,
    PageCursor,
    Question,
    absence,
    arrow_stream,
    by_key,
    changed_rows,
    described,
    fitting,
    key_objects,
    next_cursor,
    read_keys,
    row_items,
    row_page,
)
from service.jobs.store.layout import JobLayout
from service.security.resolution import output_path, with_output_logins
from service.security.secrets import SecretResolver
from service.wiring.past import has_own_table

_KINDS = {pa.string(): "STRING", pa.int32(): "INT", pa.int64(): "BIGINT"}
_HINTS = {
    "kafka": "Read its topic with a Kafka consumer; the header sluice-batch names the batch.",
    "print": "Its rows are in the runner's log: run sluice jobs logs {job}.",
}
_HINT = "Write to a delta sink to have rows to look at."


def show_output(layout: JobLayout, plan: JoinPlan, question: Question) -> Answer:
    """The newest rows, newest batch first, each batch in the order of the stream.

    `question["sink"]` names one of several INSERTs. Raises QuestionError if there is no such sink,
    NotReadableError if it is no Delta table or rows replace others, SinkError if only Spark can
    read it.
    """
    number, settings = insert_of(plan, question.get("sink")), Settings.of_runner(layout.job_dir)
    plan = with_output_logins(plan, SecretResolver.of(settings, layout.job_dir))
    own_table, plan = has_own_table(plan, number, settings), plan.inserts[number]
    sink = _readable(plan.sink, layout.job_dir.name)
    meta = Checkpoint(layout.checkpoint).read_meta()
    schema = kernel_spec(plan).output_schema
    newest: list[WrittenRows] = []
    if meta is not None:
        path = output_path(sink, settings)
        app_id = output_app_id(job_app_id(layout.job_dir.name, meta.incarnation), number)
        preview = OutputPreview(DeltaLog(path, app_id), schema, has_own_table=own_table)
        newest = preview.newest(question["limit"])
    answer: Answer = {"table": plan.sink_table, "columns": _columns(plan)}
    if question.get("arrow"):
        nothing = pa.schema([item.with_nullable(True) for item in schema]).empty_table()
        rows = pa.concat_tables([nothing, *(written.rows for written in newest)])
        return {**answer, "batches": [_batch(w) for w in newest], "arrow": arrow_stream(rows)}
    items = _items(newest, plan)
    all_rows = len(items)
    items = items[: fitting(items)]
    shown = {item["output_version"] for item in items}
    batches = [_batch(written) for written in newest if written.version in shown]
    return {**answer, "batches": batches, "items": items, "truncated": len(items) < all_rows}


def _readable(sink: Sink, job_id: str) -> DeltaSink:
    if not isinstance(sink, DeltaSink):
        raise NotReadableError(
            f'sink "{sink.kind}" keeps no table, only rows of a delta sink can be shown',
            hint=_HINTS.get(sink.kind, _HINT).format(job=job_id),
        )
    if sink.merge_key:
        raise NotReadableError(
            "the output has the newest row of each key, which do not tell their batches",
            hint="Read the table itself, with Spark or another reader of Delta tables.",
        )
    return sink


def _columns(plan: JoinPlan) -> list[Answer]:
    shown: list[Answer] = [
        {"name": c.name, "type": str(c.expression.type), "nullable": c.nullable}
        for c in plan.output
    ]
    more = list(kernel_spec(plan).output_schema)[len(plan.output) :]
    return shown + [
        {"name": item.name, "type": _KINDS[item.type], "nullable": item.nullable} for item in more
    ]


def _items(batches: Sequence[WrittenRows], plan: JoinPlan) -> list[Answer]:
    kinds = {c.name: c.expression.type for c in plan.output}
    items: list[Answer] = []
    for written in batches:
        names = written.rows.schema.names
        columns = [json_values(whole(written.rows.column(n)), kinds.get(n)) for n in names]
        for row in zip(*columns, strict=True):
            place = {"batch": written.batch, "output_version": written.version}
            items.append({**place, "values": dict(zip(names, row, strict=True))})
    return items


def _batch(written: WrittenRows) -> Answer:
    pin = {k: v for k, v in written.metadata.items() if k not in ("counts", "outcome", "replay")}
    return {
        "batch": written.batch,
        "replay": written.replay,
        "output_version": written.version,
        "committed_at_ms": written.committed_at_ms,
        "rows": written.row_count,
        "pin": pin or None,
        "counts": written.metadata.get("counts"),
    }


_NUMBERS = 3  # of a cursor: newest version, oldest version, the version that the page is below
_NOWHERE: Answer = {"position": None, "source_ts_ms": None}


def key_history(states: DimensionStates, question: Question) -> Answer:
    """The history of a key, newest version first; `question` has the key or a cursor."""
    dimension = states.dimension
    cursor = PageCursor.read(question.get("cursor"), dimension, _NUMBERS)
    if cursor is None:
        key, newest = read_keys([question["key"]], dimension), states.newest()
        below = newest + 1
    else:
        key, (newest, _, below) = cursor.key_row(dimension), cursor.versions
    limit = PageLimit(question["limit"], PAGE_BYTES)
    page = KeyHistory(states, key).page(below, limit)
    items = [_item(each, dimension) for each in page.versions]
    shown = fitting(items)
    is_whole = shown == len(items)
    going_on = page.next_below if is_whole else items[shown - 1]["version"]
    place = None if going_on is None else tuple(key.column(n)[0] for n in states.scan.key)
    numbers = (newest, page.oldest, going_on or 0)
    return {
        **described(dimension),
        "key": key_objects(key, dimension)[0],
        "version": newest,
        "oldest_version": page.oldest,
        "items": items[:shown],
        "beginning": _beginning(page, dimension) if is_whole else None,
        "next_cursor": next_cursor(place, dimension, numbers),
    }


def _item(version: KeyVersion, dimension: Dimension) -> Answer:
    before, after = (_shown(record, dimension) for record in (version.before, version.after))
    later = after if after["reason"] != "not-copied-again" else _NOWHERE
    change = "insert" if before["values"] is None else "update"
    return {
        "version": version.version,
        "committed_at_ms": version.committed_at_ms,
        "change": "delete" if after["values"] is None else change,
        "reason": after["reason"],
        "records": version.records,
        "before": before["values"],
        "after": after["values"],
        "position": later["position"],
        "source_ts_ms": later["source_ts_ms"],
    }


def _beginning(page: KeyHistoryPage, dimension: Dimension) -> Answer | None:
    if page.beginning is None:
        return None
    return {"version": page.oldest, **_shown(page.beginning, dimension)}


def _shown(record: pa.Table, dimension: Dimension) -> Answer:
    if record.num_rows == 0:
        return {"values": None, "reason": "no-record", **_NOWHERE}
    item = row_items(record, dimension)[0]
    place = {name: item[name] for name in _NOWHERE}
    if record.column(VISIBLE)[0].as_py():
        return {"values": item["values"], "reason": None, **place}
    is_deleted = record.column(DELETED)[0].as_py()
    return {"values": None, "reason": absence(is_deleted=is_deleted), **place}


class JobTables:
    """The tables of the job in `job_dir`, read only, with or without a runner."""

    def __init__(self, job_dir: Path) -> None:
        self._layout = JobLayout(job_dir)
        self._plan = plan_of(self._layout)
        self._settings = Settings.of_runner(job_dir)

    def answer(self, question: Question) -> Answer:
        answers: dict[str, Callable[[Question], Answer]] = {
            "dimensions": self._dimensions,
            "rows": self._rows,
            "changes": self._changes,
            "history": lambda history: key_history(self._of(history["table"]), history),
            "preview": lambda preview: show_output(self._layout, self._plan, preview),
        }
        return answers[question["what"]](question)

    # Dimensions
    # ------------------------------------------------------------------------------------------

    def _dimensions(self, _: Question) -> Answer:
        pin = PinStore(Checkpoint(self._layout.checkpoint).pins_directory).newest()
        pinned = {} if pin is None else dict(pin.versions)
        items = [self._dimension(d, pinned.get(d.name)) for d in self._plan.dimensions]
        return {"items": items}

    def _dimension(self, dimension: Dimension, pinned: int | None) -> Answer:
        answer: Answer = {**described(dimension), "pinned_version": pinned}
        states = self._states(dimension)
        try:
            state = states.at()
        except UnknownVersionError:
            return {**answer, "version": None, "oldest_version": None, "complete": False}
        versions = {"version": state.version, "oldest_version": states.oldest()}
        return {**answer, **versions, "complete": state.complete}

    def _rows(self, question: Question) -> Answer:
        states = self._of(question["table"])
        dimension = states.dimension
        cursor = PageCursor.read(question.get("cursor"), dimension, 1)
        state = states.at(question.get("version") if cursor is None else cursor.versions[0])
        answer: Answer = {
            **described(dimension),
            "version": state.version,
            "newest_version": states.newest(),
            "complete": state.complete,
        }
        if question.get("keys") is not None:
            return {**answer, **by_key(states, state, question)}
        limit = PageLimit(question["limit"], PAGE_BYTES)
        page = states.page(state, None if cursor is None else cursor.key, limit)
        return {**answer, **row_page(page, dimension, state, question)}

    def _changes(self, question: Question) -> Answer:
        states = self._of(question["table"])
        dimension = states.dimension
        cursor = PageCursor.read(question.get("cursor"), dimension, 2)
        bounds = (question["from"], question.get("to")) if cursor is None else cursor.versions
        before, after = states.at(bounds[0]), states.at(bounds[1])
        if before.version > after.version:
            raise QuestionError(
                f"version {before.version} is not before version {after.version}",
                hint="Begin with an earlier version; the list of tables has the oldest one.",
            )
        limit = PageLimit(question["limit"], PAGE_BYTES)
        behind = None if cursor is None else cursor.key
        page = changes_between(states, (before, after), behind, limit)
        versions = (before.version, after.version)
        answer: Answer = {
            **described(dimension),
            "from_version": versions[0],
            "to_version": versions[1],
            "complete": before.complete and after.complete,
        }
        return {**answer, **changed_rows(page, dimension, versions, question)}

    def _of(self, name: str) -> DimensionStates:
        return self._states(dimension_of(self._plan, name))

    def _states(self, dimension: Dimension) -> DimensionStates:
        partitions = dimension.source.changelog_partitions or self._settings.changelog_partitions
        log = DeltaLog(self._layout.table(dimension) / "changelog", "")
        return DimensionStates(log, dimension, partitions)
