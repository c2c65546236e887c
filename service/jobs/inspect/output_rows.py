"""The newest rows of a job's output as the answer of an inspection."""

from collections.abc import Sequence

import pyarrow as pa

from joins.adapters.delta.log import DeltaLog
from joins.durable.checkpoint import Checkpoint, job_app_id, output_app_id
from joins.kernels.expressions.casts import whole
from joins.kernels.json.exact import json_values
from joins.kernels.probe.probe import kernel_spec
from joins.lookback.history import OutputPreview, WrittenRows
from joins.plan.errors import NotReadableError
from joins.plan.plan import DeltaSink, JoinPlan, Sink
from service.config import Settings
from service.jobs.inspect.past import insert_of
from service.jobs.inspect.table_answers import Answer, Question, arrow_stream, fitting
from service.jobs.store.layout import JobLayout
from service.security.resolution import output_path, with_output_logins
from service.security.secrets import SecretResolver
from service.wiring.past import has_own_table

_KINDS = {pa.string(): "STRING", pa.int32(): "INT", pa.int64(): "BIGINT"}
_HINTS = {
    "kafka": "Read its topic with a Kafka consumer; the header sluice-batch names the batch.",
    "print": "Its rows are in the runner's log: run sluice jobs logs {job}.",
    "blackhole": "Write to a delta sink to have rows to look at.",
}


def show_output(layout: JobLayout, plan: JoinPlan, question: Question) -> Answer:
    """The newest rows, the newest batch first, the rows of each in the order of the stream.

    Of several INSERTs those of the one that `question["sink"]` names, as `insert_of` reads it.

    Raises:
        QuestionError: the job has no such sink.
        NotReadableError: the sink is no Delta table, or rows of later batches replace others.
        SinkError: the table cannot be read without Spark.
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
            hint=_HINTS[sink.kind].format(job=job_id),
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
